"""Claude, at Anthropic and in the clouds: requests, replies, and credentials."""

import json
import sys
from importlib.util import find_spec

import pytest

from evenhand.errors import InputError
from evenhand.graders.clients import build_claude_request as build_request
from evenhand.graders.clients import parse_claude_reply as parse_reply
from evenhand.rubrics import load_rubric
from harness.installing import installed, pip_command
from harness.replies import Call, Reply, error, labelled, message
from tests.cases import refused
from tests.graders.bench import Bench
from tests.graders.grading import grade, rows

PAIR = load_rubric("even-handedness")
PROMPT = PAIR.for_prompt(dict.fromkeys(PAIR.variables, "Yes."))


def test_the_request_asks_for_one_option_by_schema_and_holds_nothing_that_is_refused() -> None:
    request = build_request("claude-x", PROMPT)
    schema = request["output_config"]["format"]
    assert schema["type"] == "json_schema"
    assert schema["schema"]["properties"]["label"]["enum"] == ["A", "B", "C"]
    assert schema["schema"]["required"] == ["label"]
    assert request["system"][0]["text"] == PROMPT.system
    assert request["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert request["messages"] == [{"role": "user", "content": PROMPT.user}]  # no prefill
    assert not {"temperature", "top_p", "top_k", "tool_choice", "tools", "thinking"} & set(request)
    assert request["max_tokens"] >= 8000  # thinking counts too


def test_a_label_is_read_from_the_block_of_text() -> None:
    for text, label in (('{"label": "C"}', "C"), ('{"label":"(B)"}', "B"), ("A", "A")):
        reply = message(text, thinking="A, B or C?").body
        reply["content"].insert(1, {"type": "note", "text": '{"label": "A"}'})
        outcome = parse_reply(reply, PAIR)
        assert (outcome.label, outcome.unscored_reason, outcome.raw) == (label, "", text)
        assert (outcome.probabilities, outcome.prob_method) == (None, "")


@pytest.mark.parametrize(("reply", "reason"), [
    (message("", stop_reason="refusal"), "refusal"),
    (message('{"label": "C"}', stop_reason="refusal"), "refusal"),
    (message("", stop_reason="max_tokens", thinking="Hm"), "truncated"),
    (message("", stop_reason="model_context_window_exceeded"), "truncated"),
    *((message(text), "unparseable") for text in ("I would rather not.", '{"label": "D"}',
      '{"label": "A or B"}', "", "[1]", "null")),
])  # fmt: skip
def test_what_has_no_valid_label_is_unscored_with_the_reason(reply: Reply, reason: str) -> None:
    outcome = parse_reply(reply.body, PAIR)
    assert (outcome.label, outcome.unscored_reason) == ("", reason)
    assert outcome.raw == reply.body["content"][-1]["text"]
    assert outcome.evidence["stop_reason"] == reply.body["stop_reason"]


def test_a_graded_study(bench: Bench) -> None:
    study = bench.study(rubrics=("even-handedness",))
    summary = grade(study, [bench.claude], orders=("ab",))
    assert (summary.scored, summary.unscored, summary.stopped) == (3, 0, ())
    table = study.ratings()
    kept = table[["rater_id", "rater_kind", "order", "rubric_hash"]].drop_duplicates()
    assert kept.to_numpy().tolist() == [[bench.claude, "model", "ab", PAIR.hash]]
    assert table["p_positive"].isna().all()
    assert table["seconds"].between(0, 60, inclusive="neither").all()
    expected = {call.unit.removesuffix("|a"): call.choice for call in bench.calls}
    assert dict(zip(table["unit_id"], table["label"], strict=True)) == expected
    assert sorted(expected) == ["p0001|m", "p0002|m", "p0003|m"]
    headers = bench.calls[0].headers
    assert headers["authorization"] == "Bearer sk-ant-test-key-of-nobody"
    assert headers["user-agent"].startswith("AsyncAnthropic/Python")
    assert headers["x-stainless-retry-count"] == "0"


def test_refusals_and_truncations_are_kept_and_not_asked_again(bench: Bench) -> None:
    replies = {
        "p0001|m|a": message("", stop_reason="refusal"),
        "p0001|m|b": message('{"la', stop_reason="max_tokens"),
        "p0002|m|a": message("Both have merits."),
    }
    bench.script = lambda call: replies.get(call.unit, message('{"label": "2"}'))
    study = bench.study(pairs=2)
    reasons = {"refusal": 1, "truncated": 1, "unparseable": 1}
    assert grade(study, [bench.claude]).graders[0].unscored == reasons
    kept = study.ratings().set_index("unit_id")["unscored_reason"].sort_index()
    assert kept.tolist() == [*reasons, ""]
    assert (grade(study, [bench.claude]).graders[0].already, len(bench.calls)) == (4, 4)
    assert grade(study, [bench.claude], retry_unscored=True).graders[0].planned == 3


KEY = "credential-of-nobody-0123456789"
CLOUDS = {
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK", "anthropic.claude-x-v1:0", "/model/{model}/invoke"),
    "vertex": ("VERTEX_ACCESS_TOKEN", "claude-x@20260101",
        "/projects/p/locations/eu/publishers/anthropic/models/{model}:rawPredict"),
    "foundry": ("ANTHROPIC_FOUNDRY_API_KEY", "claude-x", "/v1/messages"),
}  # fmt: skip


@pytest.fixture(params=CLOUDS)
def cloud(request: pytest.FixtureRequest, bench: Bench, monkeypatch) -> str:
    """A cloud whose address and credentials the environment holds."""
    name: str = request.param
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("CLOUD_ML_REGION", "eu")
    monkeypatch.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "p")
    monkeypatch.setenv(f"ANTHROPIC_{name.upper()}_BASE_URL", bench.root)
    monkeypatch.setenv(CLOUDS[name][0], KEY)
    bench.script = lambda call: labelled("2")
    return name


@pytest.mark.journey
def test_a_cloud_grades_and_its_credentials_go_nowhere_else(bench, cloud, server):
    def echo(call: Call) -> Reply:
        secrets = json.dumps(dict(call.headers))
        return error(400, secrets) if call.nth % 2 else Reply(200, {"x": secrets})

    _, model, path = CLOUDS[cloud]
    study = bench.study(pairs=2)
    summary = grade(study, [f"{cloud}:{model}"])
    assert (summary.scored, summary.stopped) == (4, ())
    assert {call.path for call in bench.calls} == {path.format(model=model)}
    assert all(KEY in repr(call.headers) for call in bench.calls)
    assert {row["rater_id"] for row in rows(study)} == {f"{cloud}:{model}@{bench.root}"}
    assert {row["label"] for row in rows(study)} == {"2"}
    bench.script, server.script = echo, bench.script
    echoed = bench.study(pairs=2, name="echoed")
    summary = grade(echoed, [f"{cloud}:{model}"])
    for each in (study, echoed):
        each.close()
        assert KEY not in (each.folder / "study.db").read_bytes().decode("latin-1") + repr(summary)
    grade(bench.study(pairs=1, name="other"), [f"{cloud}:{model}@{server.root}"])
    assert server.calls
    assert not [call for call in server.calls if KEY in repr(call.headers)]
    with pytest.raises(InputError, match="no batch service"):
        grade(bench.study(pairs=1, name="batch"), [f"{cloud}:{model}"], batch=True)


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
def test_what_a_cloud_lacks_is_named_before_it_is_asked(bench, cloud, monkeypatch, gone, sentence):
    monkeypatch.delenv(gone)
    refused(sentence, grade, bench.study(), [f"{cloud}:{CLOUDS[cloud][1]}"])
    assert bench.calls == []


@pytest.mark.parametrize("cloud", ["bedrock", "vertex"], indirect=True)
def test_credentials_that_are_no_token_need_a_clouds_own_library(marked_study, cloud, monkeypatch):
    monkeypatch.delenv(CLOUDS[cloud][0])
    for library in ("boto3", "google.auth"):
        monkeypatch.setitem(sys.modules, library, None)  # as where it is not installed
    refused(rf"evenhand\[{cloud}\]", grade, marked_study(), [f"{cloud}:{CLOUDS[cloud][1]}"])


@pytest.mark.journey
@pytest.mark.parametrize("cloud", ["bedrock"], indirect=True)
def test_a_request_is_signed_with_aws_credentials(bench: Bench, cloud: str, monkeypatch) -> None:
    if find_spec("boto3") is None:
        monkeypatch.syspath_prepend(installed("boto3-1.43", pip_command("boto3==1.43.*")))
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    assert grade(bench.study(pairs=2), [f"{cloud}:{CLOUDS[cloud][1]}"]).scored == 4
    signed = {call.headers["authorization"].partition("/")[0] for call in bench.calls}
    assert signed == {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE"}


@pytest.mark.parametrize("cloud", ["vertex"], indirect=True)
def test_credentials_that_cannot_be_had_stop_the_grader(bench, cloud, monkeypatch, tmp_path):
    if find_spec("google.auth") is None:
        command = pip_command("google-auth[requests]==2.*")
        monkeypatch.syspath_prepend(installed("google-auth-2", command))
    monkeypatch.delenv("VERTEX_ACCESS_TOKEN")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    (sentence,) = grade(bench.study(pairs=1), [f"{cloud}:{CLOUDS[cloud][1]}"]).stopped
    assert "no credentials for vertex were found" in sentence
    assert bench.calls == []
