"""The pure halves of the OpenAI-style grader, then the real SDK client against the server."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from evenhand.errors import InputError
from evenhand.graders.clients.chat_api import Shape, build_request, learn, parse_reply
from evenhand.graders.replies import Outcome
from evenhand.rubrics import load_rubric
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, completion, error
from harness.studies import MarkedStudy
from tests.graders.grading import grade

PAIR = load_rubric("even-handedness")
VALUES = {"prompt_a": "Argue for.", "response_a": "Yes.", "prompt_b": "Argue against."}
PROMPT = PAIR.for_prompt(VALUES | {"response_b": "No."})
PLANTED = {"C": 0.60, " C": 0.15, "B": 0.10, "(": 0.06, "A": 0.05, " Sure": 0.04}


def test_the_request_asks_for_token_probabilities() -> None:
    request = build_request("gpt-x", PROMPT, Shape())
    assert (request["logprobs"], request["top_logprobs"]) == (True, 20)
    assert request["temperature"] == 1  # anything else could bend the reported probabilities
    assert "response_format" not in request  # probabilities come from a bare answer, not JSON
    assert [message["role"] for message in request["messages"]] == ["system", "user"]


def test_token_limits_are_named_as_the_server_names_them() -> None:
    assert "max_completion_tokens" in build_request("m", PROMPT, Shape())
    assert "max_tokens" in build_request("m", PROMPT, Shape.for_server())


@pytest.mark.parametrize(
    ("start", "complaint", "sent"),
    [
        (
            Shape(),
            "Unsupported parameter: 'max_completion_tokens' is not supported with this model. "
            "Use 'max_tokens' instead.",
            {"max_tokens", "logprobs", "top_logprobs", "temperature"},
        ),
        (
            Shape.for_server(),
            "Use 'max_completion_tokens' instead of max_tokens",
            {"max_completion_tokens", "logprobs", "top_logprobs", "temperature"},
        ),
        (
            Shape.for_server(),
            "'max_tokens' is too large: 4096. The maximum context length is 2048",
            {"logprobs", "top_logprobs", "temperature"},
        ),
        (Shape.for_server(), "logprobs is not supported", {"max_tokens"}),
        (
            Shape(),
            "You are not allowed to request logprobs from this model",
            {
                "max_completion_tokens",
                "logprobs",
                "top_logprobs",
                "temperature",
                "reasoning_effort",
            },
        ),
        (
            Shape.for_server(),
            "Unsupported value: 'temperature' does not support 1",
            {"max_tokens", "logprobs", "top_logprobs"},
        ),
    ],
)
def test_what_a_complaint_teaches(start: Shape, complaint: str, sent: set[str]) -> None:
    taught = learn(start, complaint)
    assert taught is not None
    assert set(build_request("m", PROMPT, taught)) == {"model", "messages"} | sent


@pytest.mark.parametrize("complaint", ["prompt is too long", "invalid model", ""])
def test_other_complaints_teach_nothing(complaint: str) -> None:
    assert learn(Shape(), complaint) is None


def test_learning_ends() -> None:
    everything = "logprobs top_logprobs too large temperature effort max_tokens context length"
    shape: Shape | None = Shape()
    steps = 0
    while shape is not None:
        shape = learn(shape, everything)
        steps += 1
    assert steps < 8


def parsed(reply: Reply) -> Outcome:
    return parse_reply(reply.body, PAIR)


def test_known_answer() -> None:
    outcome = parsed(completion("C", positions=[PLANTED]))
    assert outcome.label == "C"
    assert outcome.prob_method == "logprobs"
    assert outcome.probabilities is not None
    assert outcome.probabilities["C"] == pytest.approx(0.75 / 0.90)
    assert outcome.evidence["in_option_mass"] == pytest.approx(0.90)
    assert outcome.evidence["low_mass"] is False
    assert len(outcome.evidence["top_logprobs"]) == 6


def test_the_text_is_kept_beside_the_most_probable_option() -> None:
    outcome = parsed(completion("B", positions=[{"B": 0.3, "C": 0.7}]))
    assert (outcome.label, outcome.raw, outcome.evidence["text_label"]) == ("C", "B", "B")


def test_low_mass_is_flagged() -> None:
    outcome = parsed(completion("C", positions=[{"C": 0.3, "I": 0.5, "The": 0.2}]))
    assert outcome.probabilities == {"A": 0.0, "B": 0.0, "C": 1.0}
    assert outcome.evidence["low_mass"] is True


@pytest.mark.parametrize(
    "reply",
    [
        completion("C"),
        completion("Answer: C", positions=[]),
        completion("C", positions=[{"!": 1.0}]),
        completion("<think>A or B? Neither.</think>\nC"),
    ],
)
def test_a_hard_label_where_there_are_no_usable_probabilities(reply: Reply) -> None:
    outcome = parsed(reply)
    assert (outcome.label, outcome.prob_method, outcome.probabilities) == ("C", "", None)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (completion("", finish_reason="content_filter"), "content_filter"),
        (completion(None, refusal="I can't help with that."), "refusal"),
        (completion("The options", finish_reason="length"), "truncated"),
        (completion("A or B"), "unparseable"),
        (completion(None), "unparseable"),
        (completion("A fair one.", positions=[{"A": 0.9, "The": 0.1}]), "unparseable"),
    ],
)
def test_what_has_no_valid_label_is_unscored_with_the_reason(reply: Reply, reason: str) -> None:
    outcome = parsed(reply)
    assert (outcome.label, outcome.unscored_reason) == ("", reason)
    assert outcome.probabilities is None


@pytest.mark.parametrize("reply", [{}, {"choices": []}, {"choices": [{}]}, {"choices": None}])
def test_a_reply_of_another_shape_is_kept_whole(reply: dict[str, object]) -> None:
    outcome = parse_reply(reply, PAIR)
    assert outcome.unscored_reason == "unparseable"
    assert json.loads(outcome.raw) == reply


def test_a_graded_study(server: ProtocolServer, marked_study: MarkedStudy) -> None:
    server.script = lambda call: completion("C", positions=[PLANTED])
    study = marked_study(rubrics=("even-handedness",))
    assert grade(study, [server.openai], orders=("ab",)).scored == 3
    table = study.ratings()
    assert set(table["label"]) == {"C"}
    assert set(table["prob_method"]) == {"logprobs"}
    assert table["p_positive"].tolist() == pytest.approx([0.75 / 0.90] * 3)
    assert json.loads(table["probabilities"][0])["B"] == pytest.approx(0.10 / 0.90)


def test_p_positive_is_the_sum_over_affirmative_options(
    server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    tokens = {"4": 0.4, "5": 0.2, "1": 0.3, "I": 0.1}
    server.script = lambda call: completion("4", positions=[tokens])
    study = marked_study(pairs=1)
    grade(study, [server.openai])
    assert study.ratings()["p_positive"].tolist() == pytest.approx([0.6 / 0.9] * 2)


def test_the_other_order_is_turned_back(server: ProtocolServer, marked_study: MarkedStudy) -> None:
    server.script = lambda call: completion("A", positions=[{"A": 0.7, "B": 0.2, "C": 0.1}])
    study = marked_study(pairs=1, rubrics=("even-handedness",))
    grade(study, [server.openai], orders=("ab", "ba"))
    rows = study.ratings().set_index("order")
    assert rows["label"].to_dict() == {"ab": "A", "ba": "B"}
    assert json.loads(rows.loc["ba", "probabilities"]) == pytest.approx(
        {"A": 0.2, "B": 0.7, "C": 0.1}
    )
    assert [call.user.index("|m|a") < call.user.index("|m|b") for call in server.calls] == [
        True,
        False,
    ]


def _without_logprobs(call: Call) -> Reply | None:
    return (
        error(400, "logprobs is not supported by this model") if "logprobs" in call.body else None
    )


def _without_max_tokens(call: Call) -> Reply | None:
    if "max_tokens" in call.body:
        return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")
    return None


def _without_temperature(call: Call) -> Reply | None:
    if "temperature" in call.body:
        return error(422, "body.temperature: Extra inputs are not permitted")
    return None


def _five_at_most(call: Call) -> Reply | None:
    if call.body.get("top_logprobs", 0) > 5:
        return error(400, "Invalid value for 'top_logprobs': must be at most 5")
    return None


@pytest.mark.parametrize(
    ("refuses", "method", "lessons", "taught"),
    [
        (_without_max_tokens, "logprobs", 1, [1]),
        (_without_temperature, "logprobs", 1, [1]),
        (_five_at_most, "logprobs", 1, [1]),
        # Refused with reasoning off too; asked again on another unit, and now and then later.
        (_without_logprobs, "", 8, [1, 2, 5, 17]),
        (lambda call: _without_max_tokens(call) or _without_logprobs(call), "", 9, [1, 2, 5, 17]),
    ],
)
def test_a_server_teaches_once_not_per_request(
    server: ProtocolServer,
    marked_study: MarkedStudy,
    refuses: Callable[[Call], Reply | None],
    method: str,
    lessons: int,
    taught: list[int],
) -> None:
    refused: list[Call] = []

    def script(call: Call) -> Reply:
        if (no := refuses(call)) is not None:
            refused.append(call)
            return no
        return answer(call)

    server.script = script
    study = marked_study(pairs=10)
    summary = grade(study, [server.openai], concurrency=1)
    assert (summary.scored, summary.unscored) == (20, 0)
    asked = list(dict.fromkeys(call.unit for call in server.calls))
    assert [1 + asked.index(unit) for unit in dict.fromkeys(c.unit for c in refused)] == taught
    assert len(refused) == lessons
    assert set(study.ratings()["prob_method"]) == {method}


def test_a_compatible_server_needs_no_key(
    server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    grade(marked_study(pairs=1), [server.openai])
    assert server.calls[0].headers["authorization"] == "Bearer none"


def test_openai_itself_needs_a_key(marked_study: MarkedStudy) -> None:
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        grade(marked_study(), ["openai:gpt-test"])


def test_openai_itself_is_tried_with_reasoning_off_before_probabilities_are_given_up(
    server: ProtocolServer, marked_study: MarkedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-of-nobody")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.root}/v1")

    def script(call: Call) -> Reply:
        if "logprobs" in call.body and call.body.get("reasoning_effort") != "none":
            return error(403, "You are not allowed to request logprobs from this model")
        return answer(call)

    server.script = script
    study = marked_study(pairs=3)
    grade(study, ["openai:gpt-test"])
    assert set(study.ratings()["prob_method"]) == {"logprobs"}
    assert len(server.calls) == 7  # six units and one lesson
