"""Probabilities are what they claim: none made up, none lost in silence, no draw counted twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from evenhand.cli.main import main
from evenhand.graders.clients.chat_api import parse_reply
from evenhand.study.store.totals import grade_totals
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, completion, error
from harness.studies import MarkedStudy
from tests.graders.clients.test_openai_chat import PAIR
from tests.graders.grading import grade

FAST = {"wait_scale": 0.0005}
NO_LOGPROBS = error(400, "logprobs is not supported")


def test_what_is_not_listed_may_be_any_options() -> None:
    alone = parse_reply(completion("B", positions=[{"B": 0.55}]).body, PAIR)
    assert (alone.label, alone.probabilities, alone.prob_method) == ("B", None, "")
    assert alone.evidence["unseen"] == pytest.approx(0.45)
    tail = parse_reply(completion("B", positions=[{"B": 0.55, "A": 0.25, "Sure": 0.1}]).body, PAIR)
    assert tail.probabilities is not None
    assert tail.probabilities["B"] == pytest.approx(0.55 / 0.8)


@pytest.mark.parametrize("times", [1, 2, 9])
def test_a_refusal_after_probabilities_is_asked_again_then_counted(
    server: ProtocolServer, marked_study: MarkedStudy, times: int
) -> None:
    asked: list[Call] = []

    def script(call: Call) -> Reply:
        if call.unit == "p0002|m|a" and "logprobs" in call.body:
            asked.append(call)
            if len(asked) <= times:
                return NO_LOGPROBS
        return answer(call)

    server.script = script
    study = marked_study(pairs=3)
    summary = grade(study, [server.openai], concurrency=1, **FAST)
    table = study.ratings().set_index("unit_id")
    assert summary.scored == 6
    lost = set(table.index[table["prob_method"] == ""])
    assert lost == ({"p0002|m|a"} if times == 9 else set())
    assert summary.graders[0].without_probabilities == len(lost)
    assert len(server.calls) == 6 + min(times, 3)
    asked.extend([asked[0]] * 9)  # it is mended
    arguments = ["grade", str(study.folder), "--grader", server.openai]
    assert main(arguments) == 0
    assert main([*arguments, "--retry-unscored"]) == 0
    assert set(study.ratings()["prob_method"]) == {"logprobs"}


def test_the_terminal_says_how_many_lack_probabilities(
    server: ProtocolServer, marked_study: MarkedStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(call: Call) -> Reply:
        return completion("2") if call.unit == "p0002|m|a" else answer(call)  # another model's

    server.script = script
    study = marked_study(pairs=3)
    assert main(["grade", str(study.folder), "--grader", server.openai]) == 0
    said = capsys.readouterr().out
    assert "1 of 6 without probabilities. Run again with --retry-unscored" in said


def test_a_server_that_gives_none_is_not_paid_again_for_it(
    server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: completion("2")
    study = marked_study(pairs=2)
    assert grade(study, [server.openai]).graders[0].without_probabilities == 4
    assert grade(study, [server.openai], retry_unscored=True).graders[0].planned == 0


@pytest.mark.parametrize(("name", "lessons"), [("azure/gpt-5.6", 0), ("an-alias", 1)])
def test_reasoning_is_off_where_probabilities_need_that_behind_a_gateway_too(
    server: ProtocolServer, marked_study: MarkedStudy, name: str, lessons: int
) -> None:
    def script(call: Call) -> Reply:
        if "logprobs" in call.body and call.body.get("reasoning_effort") != "none":
            return error(403, "You are not allowed to request logprobs from this model")
        return answer(call)

    server.script = script
    study = marked_study(pairs=3)
    grade(study, [f"openai:{name}@{server.root}/v1"])
    assert set(study.ratings()["prob_method"]) == {"logprobs"}
    assert len(server.calls) == 6 + lessons


@pytest.mark.slow
@pytest.mark.parametrize("batch", [False, True])
def test_a_refusal_at_the_very_first_request_is_not_believed_for_the_run(
    server: ProtocolServer,
    marked_study: MarkedStudy,
    capsys: pytest.CaptureFixture[str],
    batch: bool,
) -> None:
    first: list[str] = []

    def script(call: Call) -> Reply:
        first.append(call.unit)
        refused = call.unit == first[0] and "logprobs" in call.body
        return NO_LOGPROBS if refused else answer(call)

    server.script = script
    study = marked_study(pairs=4)
    arguments = ["grade", str(study.folder), "--grader", server.openai]
    assert grade(study, [server.openai], batch=batch, **FAST).scored == 8
    table = study.ratings().set_index("unit_id")
    assert set(table.index[table["prob_method"] == ""]) == {first[0]}
    if batch:  # the second is asked live too, so that the batch asks for probabilities
        assert (len(server.batches.calls), len(server.calls)) == (6, 3 + 1)
    server.script = answer  # it is mended
    assert main(arguments) == 0
    assert main([*arguments, "--retry-unscored"]) == 0
    assert set(study.ratings()["prob_method"]) == {"logprobs"}


def test_probabilities_are_asked_for_again_in_the_middle_of_a_run(
    server: ProtocolServer, marked_study: MarkedStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def script(call: Call) -> Reply:
        asked.extend([call.unit] if call.unit not in asked else [])
        return NO_LOGPROBS if len(asked) <= 4 and "logprobs" in call.body else answer(call)

    server.script = script
    study = marked_study(pairs=5)
    arguments = ["grade", str(study.folder), "--grader", server.openai, "--concurrency", "1"]
    assert main(arguments) == 0
    assert "4 of 10 without probabilities" in capsys.readouterr().out
    table = study.ratings().set_index("unit_id")
    assert set(table.index[table["prob_method"] == ""]) == set(asked[:4])


@pytest.mark.parametrize("effort", ["", "low"])
def test_a_gateway_that_drops_the_wish_for_probabilities_is_asked_without_reasoning(
    server: ProtocolServer, marked_study: MarkedStudy, effort: str
) -> None:
    """An alias says nothing of its model, and no refusal does."""

    def script(call: Call) -> Reply:
        if call.body.get("reasoning_effort") != "none":
            return completion(call.choice)
        return answer(call)

    server.script = script
    study = marked_study(pairs=3)
    summary = grade(study, [server.openai], effort=effort).graders[0]
    if effort:  # it is a part of who the grader is
        assert summary.without_probabilities == 6
        assert {call.body["reasoning_effort"] for call in server.calls} == {"low"}
        return
    assert (summary.without_probabilities, len(server.calls)) == (1, 6)
    assert grade(study, [server.openai], retry_unscored=True).scored == 1
    assert set(study.ratings()["prob_method"]) == {"logprobs"}


@pytest.mark.parametrize(
    ("refuses", "calls"),
    [
        (None, 6),  # taken, and there are none all the same
        (error(400, "Unsupported parameter: 'reasoning_effort'"), 7),
        (error(400, "something is wrong"), 7),
        (error(500), 7),
    ],
)
def test_reasoning_is_off_for_one_unit_where_that_brings_nothing(
    server: ProtocolServer, marked_study: MarkedStudy, refuses: Reply | None, calls: int
) -> None:
    def script(call: Call) -> Reply:
        tried = "reasoning_effort" in call.body
        return refuses if refuses and tried else completion("2")

    server.script = script
    study = marked_study(pairs=3)
    summary = grade(study, [server.openai], **FAST).graders[0]
    assert (summary.scored, summary.without_probabilities) == (6, 6)
    assert sum("reasoning_effort" in call.body for call in server.calls) == 1
    assert all(call.body["logprobs"] for call in server.calls)
    assert len(server.calls) == calls


def test_a_trial_is_made_after_the_server_has_asked_to_wait(
    server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    def script(call: Call) -> Reply:
        if call.body.get("reasoning_effort") != "none":
            return completion(call.choice)
        return error(429) if call.nth == 1 else answer(call)

    server.script = script
    study = marked_study(pairs=2)
    assert grade(study, [server.openai], **FAST).graders[0].without_probabilities == 1


class Cache:
    """A gateway's: the same words bring the same reply, unless that is declined."""

    def __init__(self, declined: Callable[[Call], bool], headers: dict[str, str]) -> None:
        self.kept: dict[str, Reply] = {}
        self.declined = declined
        self.headers = headers

    def __call__(self, call: Call) -> Reply:
        words = json.dumps(call.body["messages"])
        if words not in self.kept or self.declined(call):
            reply = answer(call)
            named = reply.body | {"id": f"chatcmpl-{call.nth}-{len(self.kept)}"}
            self.kept[words] = replace(reply, body=named, headers=self.headers)
        return self.kept[words]


def test_a_cached_reply_is_one_draw_and_is_said(
    server: ProtocolServer, marked_study: MarkedStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = Cache(lambda call: False, {})
    study = marked_study(pairs=1)
    arguments = ["grade", str(study.folder), "--grader", server.openai, "--draws", "5"]
    assert main(arguments) == 0
    assert "8 draws repeated an earlier reply" in capsys.readouterr().out
    table = study.ratings()
    assert table["label"].ne("").sum() == 2
    server.script = answer  # the cache is off: what it gave again is asked anew, and nothing else
    (summary,) = grade(study, [server.openai], draws=5).graders
    assert (summary.already, summary.scored) == (2, 8)


@pytest.mark.parametrize("provider", ["", "openai", "vllm"])
@pytest.mark.parametrize("litellm", [False, True])
def test_caching_is_declined_where_that_exists(
    server: ProtocolServer,
    marked_study: MarkedStudy,
    monkeypatch: pytest.MonkeyPatch,
    litellm: bool,
    provider: str,
) -> None:
    """By whichever name a server is asked that is not OpenAI's own."""
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-loopback")
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", f"{server.root}/v1")
    grader = f"{provider}:m" if provider else server.openai

    def by_body(call: Call) -> bool:
        return call.body.get("cache") == {"no-cache": True}

    def by_header(call: Call) -> bool:
        assert "cache" not in call.body
        return call.headers.get("cache-control") == "no-cache"

    headers = {"x-litellm-version": "1.106"} if litellm else {}
    server.script = Cache(by_body if litellm else by_header, headers)
    study = marked_study(pairs=1)
    assert grade(study, [grader], draws=5).scored == 10
    assert study.ratings()["label"].ne("").all()


@pytest.mark.parametrize(("most", "requests"), [(128, 4), (8, 4), (1, 4 * 3 + 1)])
def test_openais_own_draws_go_as_one_request(
    server: ProtocolServer,
    marked_study: MarkedStudy,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    requests: int,
) -> None:
    def script(call: Call) -> Reply:
        n = call.body.get("n", 1)
        if n > most:
            return error(400, "Unsupported parameter: 'n'")
        reply = answer(call)
        choices = [{**reply.body["choices"][0], "index": at} for at in range(n)]
        return replace(reply, body=reply.body | {"choices": choices, "id": f"c-{call.nth}"})

    monkeypatch.setenv("OPENAI_API_KEY", "key-for-loopback")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.root}/v1")
    server.script = script
    study = marked_study(pairs=2)
    summary = grade(study, ["openai:gpt-4o"], draws=3)
    assert (summary.scored, len(server.calls)) == (12, requests)
    assert sorted(study.ratings()["draw"]) == sorted([0, 1, 2] * 4)
    totals = grade_totals(study.store).iloc[0]
    answered = 12 if most == 1 else 4
    assert totals["tokens_input"] == answered * 900
    assert totals["cost_usd"] == pytest.approx(answered * (900 * 2.5 + 10) / 1e6)
    assert grade(study, ["openai:gpt-4o"], draws=3).graders[0].planned == 0


def test_fewer_draws_than_asked_for_are_asked_for_again(
    server: ProtocolServer, marked_study: MarkedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(call: Call) -> Reply:
        """Takes `n` and gives one answer, as some servers do."""
        reply = answer(call)
        return replace(reply, body=reply.body | {"id": f"c-{call.nth}"})

    monkeypatch.setenv("OPENAI_API_KEY", "key-for-loopback")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.root}/v1")
    server.script = script
    study = marked_study(pairs=1)
    summary = grade(study, ["openai:gpt-4o"], draws=3, concurrency=1)
    assert (summary.scored, len(server.calls)) == (6, 6)
