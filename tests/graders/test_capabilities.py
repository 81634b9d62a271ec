"""What a run says at its start about the life of a model."""

from __future__ import annotations

import pytest

from evenhand.cli.main import main
from evenhand.graders.capabilities import about_retirement
from evenhand.graders.spec import parse_spec
from harness.protocol_server import ProtocolServer
from harness.replies import Reply, answer, error
from harness.studies import MarkedStudy
from tests.graders.grading import grade

AGAIN = "its grades cannot be collected again."


def entry(**fields: object) -> Reply:
    """A model's entry in the catalogue of the Messages API."""
    known = {
        "id": "claude-test",
        "type": "model",
        "display_name": "Test",
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
    }
    return Reply(body=known | fields)


@pytest.mark.parametrize(
    ("reply", "warnings"),
    [
        (entry(), ()),
        (
            entry(lifecycle="deprecated", retires_at="2026-11-30T00:00:00Z"),
            (f"claude-test retires on 2026-11-30. After that {AGAIN}",),
        ),
        (
            entry(lifecycle="deprecated"),
            ("claude-test is deprecated. Its grades may soon be impossible to collect again.",),
        ),
        (
            entry(lifecycle="retired", retires_at="2026-01-05T00:00:00Z"),
            (f"claude-test is retired, so {AGAIN}",),
        ),
        (error(404, "no such model"), ()),
        (error(500), ()),
        (Reply(200, "<html>a proxy's page</html>"), ()),
        (entry(lifecycle="sk-ant-KEY", retires_at="sk-ant-KEY"), ()),
    ],
)
@pytest.mark.parametrize("batch", [False, True])
def test_the_catalogue_is_asked_and_grading_goes_on_whatever_it_says(
    server: ProtocolServer,
    claude: str,
    marked_study: MarkedStudy,
    reply: Reply,
    warnings: tuple[str, ...],
    batch: bool,
) -> None:
    server.models["claude-test"] = reply
    (summary,) = grade(marked_study(pairs=1), [claude], batch=batch, wait_scale=0.0005).graders
    assert (summary.warnings, summary.scored, summary.stopped) == (warnings, 2, "")


def test_a_retired_model_is_named_before_its_requests_fail(
    server: ProtocolServer,
    claude: str,
    marked_study: MarkedStudy,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.models["claude-test"] = entry(lifecycle="retired")
    server.script = lambda call: error(404, "not_found_error: claude-test")
    study = marked_study(pairs=1)
    assert main(["grade", str(study.folder), "--grader", claude]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"Warning: claude-test is retired, so {AGAIN}" in said
    assert "there is no model 'claude-test'" in said
    server.script = answer  # what was asked under its name stays open
    assert grade(study, [claude]).scored == 2


@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")  # the SDK says so too
@pytest.mark.parametrize("model", ["openai:gpt-5", "anthropic:claude-sonnet-4-5"])
def test_where_the_provider_says_nothing_our_own_table_does(
    server: ProtocolServer,
    claude: str,
    marked_study: MarkedStudy,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-loopback")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.root}/v1")
    (summary,) = grade(marked_study(pairs=1), [model]).graders
    assert summary.warnings == tuple(about_retirement(parse_spec(model))) != ()
