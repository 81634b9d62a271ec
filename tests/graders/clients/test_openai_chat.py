"""OpenAI's Chat Completions and servers that speak them: requests, replies, probabilities."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evenhand.cli.main import main
from evenhand.graders.clients import Probing, Shape, adapt
from evenhand.graders.clients import build_chat_request as build_request
from evenhand.graders.clients import parse_chat_reply as parse_reply
from evenhand.graders.replies import Outcome
from evenhand.rubrics import load_rubric
from harness.replies import Call, Reply, answer, completion, error
from tests.commands import Run
from tests.graders.bench import Bench
from tests.graders.grading import grade

PAIR = load_rubric("even-handedness")
PROMPT = PAIR.for_prompt(dict.fromkeys(PAIR.variables, "Yes."))
PLANTED = {"C": 0.60, " C": 0.15, "B": 0.10, "(": 0.06, "A": 0.05, " Sure": 0.04}


def test_the_request_asks_for_token_probabilities_and_limits_as_the_server_names_them() -> None:
    request = build_request("gpt-x", PROMPT, Shape())
    assert (request["logprobs"], request["top_logprobs"]) == (True, 20)
    assert request["temperature"] == 1  # anything else could bend the reported probabilities
    assert "response_format" not in request  # probabilities come from a bare answer, not JSON
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert "max_completion_tokens" in build_request("m", PROMPT, Shape())
    assert "max_tokens" in build_request("m", PROMPT, Shape.for_server())


@pytest.mark.parametrize(("start", "complaint", "sent"), [
    (Shape(),
     "Unsupported parameter: 'max_completion_tokens' is not supported with this model. "
     "Use 'max_tokens' instead.", {"max_tokens", "logprobs", "top_logprobs", "temperature"}),
    (Shape.for_server(), "Use 'max_completion_tokens' instead of max_tokens",
     {"max_completion_tokens", "logprobs", "top_logprobs", "temperature"}),
    (Shape.for_server(), "'max_tokens' is too large: 4096. The maximum context length is 2048",
     {"logprobs", "top_logprobs", "temperature"}),
    (Shape.for_server(), "logprobs is not supported", {"max_tokens"}),
    (Shape(), "You are not allowed to request logprobs from this model",
     {"max_completion_tokens", "logprobs", "top_logprobs", "temperature", "reasoning_effort"}),
    (Shape.for_server(), "Unsupported value: 'temperature' does not support 1",
     {"max_tokens", "logprobs", "top_logprobs"}),
])  # fmt: skip
def test_what_a_complaint_teaches(start: Shape, complaint: str, sent: set[str]) -> None:
    taught = adapt(start, complaint)
    assert taught is not None
    assert set(build_request("m", PROMPT, taught)) == {"model", "messages"} | sent


def test_other_complaints_teach_nothing_and_learning_ends() -> None:
    for complaint in ("prompt is too long", "invalid model", ""):
        assert adapt(Shape(), complaint) is None
    everything = "logprobs top_logprobs too large temperature effort max_tokens context length"
    shape: Shape | None = Shape()
    for _ in range(8):
        shape = adapt(shape, everything) if shape else None
    assert shape is None


def test_probabilities_are_tried_again_rarely_and_without_reasoning_once() -> None:
    bare, told = Shape().without_probabilities(), Outcome(label="C")
    taken: list[tuple[str, ...] | None] = []
    probing = Probing(Shape())
    for final in (Shape(), bare, Shape(), Shape()):  # none come, and one way is refused
        trial = probing.take_trial()
        taken.append(trial and trial.efforts)
        probing.learn_from_reply(trial or Shape(), final, told, is_trial=trial is not None)
    assert taken == [None, ("none",), ("", "none"), None]
    assert (probing.shape, probing.settled) == (Shape(), True)
    probing, tried = Probing(Shape()), []
    for _ in range(9):  # they are refused: asked for again with the next request, then after 4 more
        trial = probing.take_trial()
        tried.append(trial is not None)
        probing.learn_from_reply(trial or probing.shape, bare, told, is_trial=tried[-1])
    assert tried == [False, True, False, False, True, False, False, False, False]
    postponed = Probing(Shape())
    for left in (True, True, True, False):
        postponed.postpone(bare)
        assert (postponed.take_trial() is not None, postponed.settled) == (left, True)
    probing.learn_from_reply(Shape(), Shape(), replace(told, prob_method="logprobs"), is_trial=True)
    assert (probing.has_probabilities, probing.shape) == (True, Shape())


def test_a_broken_server_that_names_a_parameter_is_asked_the_same_again(bench: Bench) -> None:
    bench.script = lambda call: error(500, "logprobs died") if call.nth == 1 else answer(call)
    assert grade(bench.study(pairs=1), [bench.openai]).scored == 2
    assert all("logprobs" in call.body for call in bench.calls)


def parsed(text: str | None, **more: Any) -> Outcome:
    return parse_reply(completion(text, **more).body, PAIR)


def test_known_answer() -> None:
    outcome = parsed("C", positions=[PLANTED])
    assert (outcome.label, outcome.prob_method) == ("C", "logprobs")
    assert outcome.probabilities["C"] == pytest.approx(0.75 / 0.90)
    assert outcome.evidence["in_option_mass"] == pytest.approx(0.90)
    assert (outcome.evidence["low_mass"], len(outcome.evidence["top_logprobs"])) == (False, 6)
    # The most probable option and its text are kept, and low mass is flagged.
    outcome = parsed("B", positions=[{"B": 0.3, "C": 0.7}])
    assert (outcome.label, outcome.raw, outcome.evidence["text_label"]) == ("C", "B", "B")
    outcome = parsed("C", positions=[{"C": 0.3, "I": 0.5, "The": 0.2}])
    assert outcome.probabilities == {"A": 0.0, "B": 0.0, "C": 1.0}
    assert outcome.evidence["low_mass"] is True
    # What is not listed may be any option's.
    alone = parsed("B", positions=[{"B": 0.55}])
    assert (alone.label, alone.probabilities, alone.prob_method) == ("B", None, "")
    assert alone.evidence["unseen"] == pytest.approx(0.45)
    places = ({"<think>": 1.0}, {"A": 0.9, "B": 0.1}, {"</think>": 1.0}, {"B": 0.6, "C": 0.4})
    thought = parsed("<think>A</think>B", positions=[*places])
    assert (thought.label, thought.probabilities["B"]) == ("B", pytest.approx(0.6))
    tail = parsed("B", positions=[{"B": 0.55, "A": 0.25, "Sure": 0.1}])
    assert tail.probabilities["B"] == pytest.approx(0.55 / 0.8)


@pytest.mark.parametrize(
    ("text", "positions"),
    [("C", None), ("Answer: C", []), ("C", [{"!": 1.0}]), ("<think>A or B?</think>\nC", None)],
)
def test_a_hard_label_where_there_are_no_usable_probabilities(text, positions):
    outcome = parsed(text, positions=positions)
    assert (outcome.label, outcome.prob_method, outcome.probabilities) == ("C", "", None)


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ("", {"finish_reason": "content_filter"}, "content_filter"),
        (None, {"refusal": "I can't help with that."}, "refusal"),
        ("The options", {"finish_reason": "length"}, "truncated"),
        ("A or B", {}, "unparseable"),
        (None, {}, "unparseable"),
        ("A fair one.", {"positions": [{"A": 0.9, "The": 0.1}]}, "unparseable"),
    ],
)
def test_what_has_no_valid_label_is_unscored_with_the_reason(text, more, reason):
    outcome = parsed(text, **more)
    assert (outcome.label, outcome.unscored_reason, outcome.probabilities) == ("", reason, None)


def test_p_positive_is_the_sum_over_affirmative_options(bench: Bench) -> None:
    tokens = {"4": 0.4, "5": 0.2, "1": 0.3, "I": 0.1}
    bench.script = lambda call: completion("4", positions=[tokens])
    study = bench.study(pairs=1)
    grade(study, [bench.openai])
    assert study.ratings()["p_positive"].tolist() == pytest.approx([0.6 / 0.9] * 2)


def test_both_orders_are_asked_and_the_other_is_turned_back(bench: Bench) -> None:
    tokens = {"A": 0.7, "B": 0.2, "C": 0.1}
    bench.script = lambda call: (
        completion("A", positions=[tokens]) if "A" in call.keys else completion("2")
    )
    study = bench.study(pairs=1, rubrics=("even-handedness", "hedging"))
    grade(study, [bench.openai], method="logprobs", orders=("ab", "ba"), concurrency=1)
    table = study.ratings()
    assert set(table[table["rubric"] == "hedging"]["order"]) == {""}
    rows = table[table["rubric"] == "even-handedness"].set_index("order")
    assert rows["label"].to_dict() == {"ab": "A", "ba": "B"}
    found = json.loads(rows.loc["ba", "probabilities"])
    assert found == pytest.approx({"A": 0.2, "B": 0.7, "C": 0.1})
    asked = [call.user for call in bench.calls if "A" in call.keys]
    first, second = (text.index("|m|a") < text.index("|m|b") for text in asked)
    assert first and not second


REFUSED = {
    "logprobs": error(400, "logprobs is not supported by this model"),
    "max_tokens": error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'."),
    "temperature": error(422, "body.temperature: Extra inputs are not permitted"),
    "top_logprobs": error(400, "Invalid value for 'top_logprobs': must be at most 5"),
}
NO_LOGPROBS = error(400, "logprobs is not supported")


@pytest.mark.journey
@pytest.mark.parametrize(
    ("refuses", "method", "lessons", "taught"),
    [
        (["temperature"], "logprobs", 1, [1]),
        (["top_logprobs"], "logprobs", 1, [1]),
        # Refused with reasoning off too; asked again on another unit, and now and then later.
        (["max_tokens", "logprobs"], "", 9, [1, 2, 5, 17]),
    ],
)
def test_a_server_teaches_once_not_per_request(bench, refuses, method, lessons, taught):
    refused: list[Call] = []

    def script(call: Call) -> Reply:
        for name in refuses:
            if name in call.body and (name != "top_logprobs" or call.body[name] > 5):
                refused.append(call)
                return REFUSED[name]
        return answer(call)

    bench.script, study = script, bench.study(pairs=10)
    summary = grade(study, [bench.openai], concurrency=1)
    assert (summary.scored, summary.unscored) == (20, 0)
    asked = list(dict.fromkeys(call.unit for call in bench.calls))
    assert [1 + asked.index(unit) for unit in dict.fromkeys(c.unit for c in refused)] == taught
    assert (len(refused), set(study.ratings()["prob_method"])) == (lessons, {method})


@pytest.mark.journey
@pytest.mark.parametrize("times", [1, 2, 9])
def test_a_refusal_after_probabilities_is_asked_again_then_counted(bench, times):
    asked: list[Call] = []

    def script(call: Call) -> Reply:
        if call.unit == "p0002|m|a" and "logprobs" in call.body:
            asked.append(call)
            if len(asked) <= times:
                return NO_LOGPROBS
        return answer(call)

    bench.script = script
    study = bench.study(pairs=3)
    summary = grade(study, [bench.openai], concurrency=1)
    table = study.ratings().set_index("unit_id")
    assert summary.scored == 6
    lost = set(table.index[table["prob_method"] == ""])
    assert lost == ({"p0002|m|a"} if times == 9 else set())
    assert summary.graders[0].without_probabilities == len(lost)
    assert len(bench.calls) == 6 + min(times, 3)
    asked.extend([asked[0]] * 9)  # it is mended
    arguments = ["grade", str(study.folder), "--grader", bench.openai]
    assert (main(arguments), main([*arguments, "--retry-unscored"])) == (0, 0)
    assert set(study.ratings()["prob_method"]) == {"logprobs"}


@pytest.mark.parametrize(("name", "lessons"), [("", 1), ("azure/gpt-5.6", 0), ("an-alias", 1)])
def test_reasoning_is_off_where_probabilities_need_that_at_openai_and_behind_a_gateway(
    bench, name, lessons
):
    def script(call: Call) -> Reply:
        if "logprobs" in call.body and call.body.get("reasoning_effort") != "none":
            return error(403, "You are not allowed to request logprobs from this model")
        return answer(call)

    bench.script = script
    study = bench.study(pairs=3)
    grade(study, [f"openai:{name}@{bench.root}/v1" if name else bench.as_openai("gpt-test")])
    assert (set(study.ratings()["prob_method"]), len(bench.calls)) == ({"logprobs"}, 6 + lessons)


@pytest.mark.slow
def test_a_refusal_at_the_very_first_request_is_not_believed_for_the_batch(bench: Bench) -> None:
    first: list[str] = []

    def script(call: Call) -> Reply:
        first.append(call.unit)
        return NO_LOGPROBS if call.unit == first[0] and "logprobs" in call.body else answer(call)

    bench.script, study = script, bench.study(pairs=4)
    assert grade(study, [bench.openai], batch=True).scored == 8
    table = study.ratings().set_index("unit_id")
    assert set(table.index[table["prob_method"] == ""]) == {first[0]}
    # The second is asked live too, so that the batch asks for probabilities.
    assert (len(bench.batches.calls), len(bench.calls)) == (6, 3 + 1)


@pytest.mark.journey
def test_probabilities_are_asked_for_again_in_the_middle_of_a_run(bench: Bench, run: Run) -> None:
    asked: list[str] = []

    def script(call: Call) -> Reply:
        asked.extend([call.unit] if call.unit not in asked else [])
        return NO_LOGPROBS if len(asked) <= 4 and "logprobs" in call.body else answer(call)

    bench.script, study = script, bench.study(pairs=5)
    said = run.ok("grade", study.folder, "--grader", bench.openai, "--concurrency", "1")
    assert "4 of 10 without probabilities. Run again with --retry-unscored" in said
    table = study.ratings().set_index("unit_id")
    assert set(table.index[table["prob_method"] == ""]) == set(asked[:4])


def without_reasoning(call: Call) -> Reply:
    """An answer where reasoning is off, and one without probabilities elsewhere."""
    return answer(call) if call.body.get("reasoning_effort") == "none" else completion(call.choice)


@pytest.mark.journey
def test_a_gateway_that_drops_the_wish_for_probabilities_is_asked_without_reasoning(bench):
    """An alias says nothing of its model, and no refusal does."""
    bench.script, study = without_reasoning, bench.study(pairs=3)
    told = grade(study, [bench.openai], effort="low").graders[0]  # a part of who the grader is
    assert told.without_probabilities == 6
    assert {call.body["reasoning_effort"] for call in bench.calls} == {"low"}
    bench.calls.clear()
    told = grade(study, [bench.openai]).graders[0]
    assert (told.without_probabilities, len(bench.calls)) == (1, 6)
    assert grade(study, [bench.openai], retry_unscored=True).scored == 1
    bench.script = lambda call: error(429) if call.nth == 1 else without_reasoning(call)
    waited = grade(bench.study(pairs=2, name="waited"), [bench.openai]).graders[0]
    assert waited.without_probabilities == 1, "tried after the server has asked to wait"


@pytest.mark.parametrize(
    ("refuses", "calls"),
    [
        (None, 6),  # taken, and there are none all the same
        (error(400, "Unsupported parameter: 'reasoning_effort'"), 7),
        (error(500), 7),
    ],
)
def test_reasoning_is_off_for_one_unit_where_that_brings_nothing(bench, refuses, calls):
    bench.script = lambda call: (
        refuses if refuses and "reasoning_effort" in call.body else completion("2")
    )
    study = bench.study(pairs=3)
    summary = grade(study, [bench.openai]).graders[0]
    assert (summary.scored, summary.without_probabilities) == (6, 6)
    assert sum("reasoning_effort" in call.body for call in bench.calls) == 1
    assert all(call.body["logprobs"] for call in bench.calls)
    assert len(bench.calls) == calls
    again = grade(study, [bench.openai], retry_unscored=True).graders[0]
    assert again.planned == 0, "a server that gives none is not paid again for it"


class Cache:
    """A gateway's: the same words bring the same reply, unless that is declined."""

    def __init__(self, declined: Callable[[Call], bool], headers: dict[str, str]) -> None:
        self.kept: dict[str, Reply] = {}
        self.declined, self.headers = declined, headers

    def __call__(self, call: Call) -> Reply:
        words, reply = json.dumps(call.body["messages"]), answer(call)
        named = reply.body | {"id": f"chatcmpl-{call.nth}-{len(self.kept)}"}
        reply = replace(reply, body=named, headers=self.headers)
        # Kept in one step: calls come side by side.
        return reply if self.declined(call) else self.kept.setdefault(words, reply)


def test_a_cached_reply_is_one_draw_and_is_said(bench: Bench, run: Run) -> None:
    bench.script = Cache(lambda call: False, {})
    study = bench.study(pairs=1)
    arguments = ["grade", str(study.folder), "--grader", bench.openai, "--draws", "5"]
    assert "8 draws repeated an earlier reply" in run.ok(*arguments)
    assert study.ratings()["label"].ne("").sum() == 2
    bench.script = answer  # the cache is off: what it gave again is asked anew, and nothing else
    (summary,) = grade(study, [bench.openai], draws=5).graders
    assert (summary.already, summary.scored) == (2, 8)


@pytest.mark.parametrize("provider", ["", "openai", "vllm"])
@pytest.mark.parametrize("litellm", [False, True])
def test_caching_is_declined_where_that_exists(bench, monkeypatch, litellm, provider):
    """By whichever name a server is asked that is not OpenAI's own."""
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-loopback")
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", f"{bench.root}/v1")

    def is_declined(call: Call) -> bool:
        if litellm:
            return call.body.get("cache") == {"no-cache": True}
        assert "cache" not in call.body
        return call.headers.get("cache-control") == "no-cache"

    bench.script = Cache(is_declined, {"x-litellm-version": "1.106"} if litellm else {})
    study = bench.study(pairs=1)
    assert grade(study, [f"{provider}:m" if provider else bench.openai], draws=5).scored == 10
    assert study.ratings()["label"].ne("").all()


@pytest.mark.parametrize(("most", "given", "requests"), [(9, 3, 4), (1, 1, 4 * 3 + 1), (9, 1, 12)])
def test_openais_own_draws_go_as_one_request(bench, most, given, requests):
    def script(call: Call) -> Reply:
        n = call.body.get("n", 1)
        if n > most:
            return error(400, "Unsupported parameter: 'n'")
        reply = answer(call)
        choices = [{**reply.body["choices"][0], "index": at} for at in range(min(n, given))]
        return replace(reply, body=reply.body | {"choices": choices, "id": f"c-{call.nth}"})

    bench.as_openai()
    bench.script = script
    study = bench.study(pairs=2)
    assert (grade(study, ["openai:gpt-4o"], draws=3).scored, len(bench.calls)) == (12, requests)
    assert sorted(study.ratings()["draw"]) == sorted([0, 1, 2] * 4)
    totals = study.grade_totals().iloc[0]
    answered = 12 if given == 1 else 4
    assert totals["tokens_input"] == answered * 900
    assert totals["cost_usd"] == pytest.approx(answered * (900 * 2.5 + 10) / 1e6)
    assert grade(study, ["openai:gpt-4o"], draws=3).graders[0].planned == 0
