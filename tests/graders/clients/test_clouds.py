"""Claude on Bedrock, Vertex and Foundry: the SDK's own clients, on loopback, with credentials of
nobody.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from evenhand.errors import InputError
from harness.installing import installed, pip_command
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, error, labelled
from harness.studies import MarkedStudy
from tests.graders.grading import grade
from tests.graders.running.test_runner import FAST, rows

KEY = "credential-of-nobody-0123456789"
CLOUDS = {
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK", "anthropic.claude-x-v1:0", "/model/{model}/invoke"),
    "vertex": (
        "VERTEX_ACCESS_TOKEN",
        "claude-x@20260101",
        "/projects/p/locations/eu/publishers/anthropic/models/{model}:rawPredict",
    ),
    "foundry": ("ANTHROPIC_FOUNDRY_API_KEY", "claude-x", "/v1/messages"),
}


@pytest.fixture(params=CLOUDS)
def cloud(
    request: pytest.FixtureRequest, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> str:
    """A cloud whose address and credentials the environment holds."""
    name: str = request.param
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("CLOUD_ML_REGION", "eu")
    monkeypatch.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "p")
    monkeypatch.setenv(f"ANTHROPIC_{name.upper()}_BASE_URL", server.root)
    monkeypatch.setenv(CLOUDS[name][0], KEY)
    server.script = lambda call: labelled("2")
    return name


def test_a_cloud_grades(server: ProtocolServer, marked_study: MarkedStudy, cloud: str) -> None:
    _, model, path = CLOUDS[cloud]
    study = marked_study(pairs=2)
    summary = grade(study, [f"{cloud}:{model}"], **FAST)
    assert (summary.scored, summary.stopped) == (4, ())
    assert {call.path for call in server.calls} == {path.format(model=model)}
    assert all(KEY in repr(call.headers) for call in server.calls)
    assert {row["rater_id"] for row in rows(study)} == {f"{cloud}:{model}@{server.root}"}
    assert {row["label"] for row in rows(study)} == {"2"}
    study.close()
    assert KEY not in (study.folder / "study.db").read_bytes().decode("latin-1")


def test_what_a_cloud_echoes_of_its_credentials_is_kept_nowhere(
    server: ProtocolServer, marked_study: MarkedStudy, cloud: str
) -> None:
    def echo(call: Call) -> Reply:
        secrets = json.dumps(dict(call.headers))
        return error(400, secrets) if call.nth % 2 else Reply(200, {"x": secrets})

    server.script = echo
    study = marked_study(pairs=2)
    summary = grade(study, [f"{cloud}:{CLOUDS[cloud][1]}"], **FAST)
    study.close()
    assert KEY not in (study.folder / "study.db").read_bytes().decode("latin-1") + repr(summary)
    assert server.calls


def test_a_clouds_credentials_go_to_no_other_address(
    server: ProtocolServer, marked_study: MarkedStudy, cloud: str
) -> None:
    other = ProtocolServer()
    other.script = server.script
    grade(marked_study(pairs=1), [f"{cloud}:{CLOUDS[cloud][1]}@{other.root}"], **FAST)
    assert other.calls
    assert not [call for call in other.calls if KEY in repr(call.headers)]
    other.close()


def test_a_cloud_has_no_batches(marked_study: MarkedStudy, cloud: str) -> None:
    with pytest.raises(InputError, match="no batch service"):
        grade(marked_study(), [f"{cloud}:{CLOUDS[cloud][1]}"], batch=True)


@pytest.mark.parametrize(
    ("cloud", "gone", "sentence"),
    [
        ("bedrock", "AWS_REGION", "region"),
        ("vertex", "CLOUD_ML_REGION", "region"),
        ("vertex", "ANTHROPIC_VERTEX_PROJECT_ID", "ANTHROPIC_VERTEX_PROJECT_ID"),
        ("foundry", "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_API_KEY"),
    ],
    indirect=["cloud"],
)
def test_what_a_cloud_lacks_is_named_before_anything_is_asked(
    server: ProtocolServer,
    marked_study: MarkedStudy,
    cloud: str,
    monkeypatch: pytest.MonkeyPatch,
    gone: str,
    sentence: str,
) -> None:
    monkeypatch.delenv(gone)
    with pytest.raises(InputError, match=sentence):
        grade(marked_study(), [f"{cloud}:{CLOUDS[cloud][1]}"])
    assert server.calls == []


@pytest.mark.parametrize("cloud", ["bedrock", "vertex"], indirect=True)
def test_credentials_that_are_no_token_need_the_clouds_own_library(
    marked_study: MarkedStudy, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CLOUDS[cloud][0])
    for library in ("boto3", "google.auth"):
        monkeypatch.setitem(sys.modules, library, None)  # as where it is not installed
    with pytest.raises(InputError, match=rf"evenhand\[{cloud}\]"):
        grade(marked_study(), [f"{cloud}:{CLOUDS[cloud][1]}"])


@pytest.mark.parametrize("cloud", ["bedrock"], indirect=True)
def test_a_request_is_signed_with_aws_credentials(
    server: ProtocolServer, marked_study: MarkedStudy, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("boto3") is None:
        monkeypatch.syspath_prepend(installed("boto3-1.43", pip_command("boto3==1.43.*")))
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    assert grade(marked_study(pairs=2), [f"{cloud}:{CLOUDS[cloud][1]}"], **FAST).scored == 4
    signed = {call.headers["authorization"].partition("/")[0] for call in server.calls}
    assert signed == {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE"}


@pytest.mark.parametrize("cloud", ["vertex"], indirect=True)
def test_credentials_that_cannot_be_had_stop_the_grader(
    server: ProtocolServer,
    marked_study: MarkedStudy,
    cloud: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    if find_spec("google.auth") is None:
        monkeypatch.syspath_prepend(
            installed("google-auth-2", pip_command("google-auth[requests]==2.*"))
        )
    monkeypatch.delenv("VERTEX_ACCESS_TOKEN")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    (sentence,) = grade(marked_study(pairs=1), [f"{cloud}:{CLOUDS[cloud][1]}"], **FAST).stopped
    assert "no credentials for vertex could be had" in sentence
    assert server.calls == []
