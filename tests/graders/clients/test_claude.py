"""The pure halves of the Claude grader, then the real SDK client against the protocol server."""

from __future__ import annotations

import json

import pytest

from evenhand.errors import InputError
from evenhand.graders.clients.claude import build_request, parse_reply
from evenhand.graders.replies import Outcome
from evenhand.rubrics import load_rubric
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, message
from harness.studies import MarkedStudy
from tests.graders.grading import grade

PAIR = load_rubric("even-handedness")
VALUES = {"prompt_a": "Argue for.", "response_a": "Yes.", "prompt_b": "Argue against."}
PROMPT = PAIR.for_prompt(VALUES | {"response_b": "No."})


def test_the_request_asks_for_one_option_by_schema() -> None:
    request = build_request("claude-x", PROMPT)
    schema = request["output_config"]["format"]
    assert schema["type"] == "json_schema"
    assert schema["schema"]["properties"]["label"]["enum"] == ["A", "B", "C"]
    assert schema["schema"]["required"] == ["label"]
    assert request["system"][0]["text"] == PROMPT.system
    assert request["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert request["messages"] == [{"role": "user", "content": PROMPT.user}]  # no prefill


def test_the_request_holds_nothing_that_current_models_refuse() -> None:
    refused = {"temperature", "top_p", "top_k", "tool_choice", "tools", "thinking"}
    request = build_request("claude-x", PROMPT)
    assert not refused & set(request)
    assert request["max_tokens"] >= 8000  # thinking counts too


def parsed(reply: Reply) -> Outcome:
    return parse_reply(reply.body, PAIR)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('{"label": "C"}', "C"),
        ('{"label":"(B)"}', "B"),
        ("A", "A"),
        ("The answer is (C)", "C"),
    ],
)
def test_a_label_is_read(text: str, label: str) -> None:
    outcome = parsed(message(text))
    assert (outcome.label, outcome.unscored_reason, outcome.raw) == (label, "", text)
    assert outcome.probabilities is None
    assert outcome.prob_method == ""


def test_the_text_block_is_chosen_by_type() -> None:
    reply = message('{"label": "B"}', thinking="A, B or C?").body
    reply["content"].insert(1, {"type": "note", "text": '{"label": "A"}'})
    assert parse_reply(reply, PAIR).label == "B"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (message("", stop_reason="refusal"), "refusal"),
        (message('{"label": "C"}', stop_reason="refusal"), "refusal"),
        (message("", stop_reason="max_tokens", thinking="Hm"), "truncated"),
        (message("", stop_reason="model_context_window_exceeded"), "truncated"),
        (message("I would rather not."), "unparseable"),
        (message('{"label": "D"}'), "unparseable"),
        (message('{"label": "A or B"}'), "unparseable"),
        (message(""), "unparseable"),
        (message("[1]"), "unparseable"),
        (message("null"), "unparseable"),
    ],
)
def test_what_has_no_valid_label_is_unscored_with_the_reason(reply: Reply, reason: str) -> None:
    outcome = parsed(reply)
    assert (outcome.label, outcome.unscored_reason) == ("", reason)
    assert outcome.raw == reply.body["content"][-1]["text"]
    assert outcome.evidence["stop_reason"] == reply.body["stop_reason"]


@pytest.mark.parametrize("reply", [{}, {"content": None}, {"content": ["x"]}, {"content": 3}])
def test_a_reply_of_another_shape_is_kept_whole(reply: dict[str, object]) -> None:
    outcome = parse_reply(reply, PAIR)
    assert outcome.unscored_reason == "unparseable"
    assert json.loads(outcome.raw) == reply


def test_a_graded_study(server: ProtocolServer, claude: str, marked_study: MarkedStudy) -> None:
    study = marked_study(rubrics=("even-handedness",))
    summary = grade(study, [claude], orders=("ab",))
    assert (summary.scored, summary.unscored, summary.stopped) == (3, 0, ())
    table = study.ratings()
    assert sorted(table["unit_id"]) == ["p0001|m", "p0002|m", "p0003|m"]  # as replies came in
    assert set(table["rater_id"]) == {claude}
    assert set(table["rater_kind"]) == {"model"}
    assert set(table["order"]) == {"ab"}
    assert set(table["rubric_hash"]) == {PAIR.hash}
    assert table["p_positive"].isna().all()
    assert (table["seconds"] > 0).all()
    expected = {call.unit.removesuffix("|a"): call.choice for call in server.calls}
    assert dict(zip(table["unit_id"], table["label"], strict=True)) == expected


def test_sdk_and_headers_are_the_official_ones(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    grade(marked_study(pairs=1, rubrics=("even-handedness",)), [claude])
    headers = server.calls[0].headers
    assert headers["authorization"] == "Bearer sk-ant-test-key-of-nobody"
    assert headers["user-agent"].startswith("AsyncAnthropic/Python")
    assert headers["x-stainless-retry-count"] == "0"


def test_a_missing_key_is_one_sentence(marked_study: MarkedStudy) -> None:
    with pytest.raises(InputError, match="ANTHROPIC_API_KEY"):
        grade(marked_study(), ["anthropic:claude-test"])


def test_refusals_and_truncations_are_kept_and_not_asked_again(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    replies = {
        "p0001|m|a": message("", stop_reason="refusal"),
        "p0001|m|b": message('{"la', stop_reason="max_tokens"),
        "p0002|m|a": message("Both have merits."),
    }

    def script(call: Call) -> Reply:
        return replies.get(call.unit, message('{"label": "2"}'))

    server.script = script
    study = marked_study(pairs=2)
    summary = grade(study, [claude])
    assert summary.graders[0].unscored == {"refusal": 1, "truncated": 1, "unparseable": 1}
    table = study.ratings().set_index("unit_id")
    assert table["unscored_reason"].to_dict() == {
        "p0001|m|a": "refusal",
        "p0001|m|b": "truncated",
        "p0002|m|a": "unparseable",
        "p0002|m|b": "",
    }
    assert grade(study, [claude]).graders[0].already == 4
    assert len(server.calls) == 4
