"""Whole runs against the protocol server: faults, retries, early stops, provenance."""

import hashlib
import json
import threading
import time
from collections import Counter
from email.utils import formatdate

import pytest

from evenhand.errors import InputError
from evenhand.graders import GradingOptions, forecast
from evenhand.graders.providers import key_variable
from evenhand.graders.replies import ATTEMPTS
from evenhand.graders.running import FAILURES_IN_A_ROW, LiveRun, grade_key
from evenhand.rubrics import load_rubric
from harness.replies import DROPPED, Call, Reply, answer, completion, error, labelled
from harness.studies import with_edited_rubric
from tests.cases import refused
from tests.graders.bench import Bench
from tests.graders.grading import grade, rows

FAULTS = [
    error(429, "slow down", {"retry-after": "1"}),
    *map(error, (529, 500, 503, 408, 409)),
    DROPPED,
    Reply(raw=b"no HTTP\r\n\r\n"),
    Reply(raw=b"HTTP/1.1 200 \xff\r\ncontent-length: 0\r\n\r\n"),
    Reply(raw=b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"id": "cut'),
    Reply(200, '{"id": "half a rep'),
    Reply(200, "<html>proxy</html>", {"content-type": "text/html"}),
    Reply(200, {"error": {"message": "upstream"}}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grader", "pairs"),
    [
        ("anthropic", 150),
        ("openai", 40),
        pytest.param("anthropic", 1000, marks=pytest.mark.load),
        pytest.param("openai", 1000, marks=pytest.mark.load),
    ],
    indirect=["grader"],
)
def test_grades_arrive_each_once_though_every_fifth_reply_is_a_fault(bench, grader, pairs):
    def faulty(call: Call) -> Reply:
        luck = hashlib.sha256(f"{call.unit}{call.nth}".encode()).digest()
        return FAULTS[luck[1] % len(FAULTS)] if luck[0] % 5 == 0 else answer(call)

    bench.script, study = faulty, bench.study(pairs=pairs)
    summary = grade(study, [grader])
    assert (summary.scored, summary.unscored, summary.stopped) == (2 * pairs, 0, ())
    stored = rows(study)
    assert len(stored) == len({row["unit_id"] for row in stored}) == 2 * pairs
    asked = Counter(call.unit for call in bench.calls)
    assert {row["unit_id"]: row["provenance"]["attempts"] for row in stored} == dict(asked)
    assert summary.graders[0].requests == len(bench.calls) > 2.2 * pairs
    expected = {call.unit: call.choice for call in bench.calls}
    assert {row["unit_id"]: row["label"] for row in stored} == expected


@pytest.mark.parametrize("headers", [{"retry-after": "5"}, {"retry-after-ms": "5000"}, "date", {}])
def test_the_server_says_how_long_to_wait_and_waits_double_where_not(bench, headers, monkeypatch):
    waits: list[float] = []

    async def slept(_: LiveRun, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(LiveRun, "_pause", slept)
    if headers == "date":
        headers = {"retry-after": formatdate(time.time() + 5.4, usegmt=True)}  # whole seconds
    n_busy = 1 if headers else 4
    bench.script = lambda call: labelled("C") if call.nth > n_busy else error(429, headers=headers)
    study = bench.study(pairs=1, rubrics=("even-handedness",))
    assert grade(study, [bench.claude], orders=("ab",), wait_scale=1).scored == 1
    # By itself it waits 1, 2, 4 and 8 seconds, each with up to one more.
    assert waits == pytest.approx([5] if headers else [1.5, 2.5, 4.5, 8.5], abs=0.7)


def test_an_exhausted_question_is_unscored_and_asked_again_by_the_next_run(bench: Bench) -> None:
    broken = {"p0001|m|a"}
    bench.script = lambda call: error(500) if call.unit in broken else answer(call)
    study = bench.study(pairs=1)
    assert grade(study, [bench.claude]).graders[0].unscored == {"request_failed": 1}
    assert Counter(call.unit for call in bench.calls)["p0001|m|a"] == ATTEMPTS == 8
    (facts,) = [row["provenance"] for row in rows(study) if row["unscored_reason"]]
    assert (facts["status"], facts["attempts"]) == (500, 8)
    broken.clear()
    again = grade(study, [bench.claude])
    assert (again.graders[0].already, again.scored) == (1, 1)
    assert set(study.ratings()["unscored_reason"]) == {""}


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_rejected_question_is_not_retried(bench: Bench, status: int) -> None:
    bench.script = lambda call: error(status) if call.unit == "p0001|m|a" else answer(call)
    study = bench.study(pairs=1)
    assert grade(study, [bench.claude]).graders[0].unscored == {f"request_rejected: {status}": 1}
    assert (len(bench.calls), grade(study, [bench.claude]).graders[0].already) == (2, 2)


@pytest.mark.parametrize("status", [401, 403, 404, 402, 429])
def test_what_no_question_can_pass_stops_the_grader_at_once(bench, status, grader):
    bench.script = lambda call: error(status, "no such thing", {"retry-after": "7200"})
    study = bench.study(pairs=3)
    summary = grade(study, [grader])
    assert (len(bench.calls), summary.graders[0].unasked) == (1, 6)
    assert rows(study) == []  # nothing was learnt about any unit
    (sentence,) = summary.stopped
    model = "claude-test" if grader == bench.claude else "test-model"
    variable = "ANTHROPIC_API_KEY" if grader == bench.claude else key_variable(bench.root)
    assert {403: model, 404: model, 429: "wait 120 minutes"}.get(status, variable) in sentence


@pytest.mark.journey
def test_a_key_that_is_revoked_on_the_way_keeps_what_has_come(bench: Bench) -> None:
    bench.script = lambda call: answer(call) if len(bench.calls) <= 4 else error(401)
    study = bench.study(pairs=5)
    summary = grade(study, [bench.claude], concurrency=2)
    assert summary.scored == len(rows(study)) == 4
    assert len(bench.calls) <= 4 + 2
    # One stopped grader leaves the others be.
    bench.script = lambda call: error(401) if call.path.endswith("/v1/messages") else answer(call)
    summary = grade(study, [bench.claude, bench.openai, "baseline:lexical"])
    assert ([each.scored for each in summary.graders], len(summary.stopped)) == ([0, 10, 10], 1)
    bench.script = answer
    assert grade(study, [bench.claude]).scored == 6


def test_many_rejections_in_a_row_stop_the_grader_and_condemn_no_unit(bench: Bench) -> None:
    bench.script = lambda call: error(400, "a region is not supported")
    study = bench.study(pairs=5)
    summary = grade(study, [bench.claude], concurrency=2)
    assert "in a row failed" in summary.stopped[0]
    assert "a region" in summary.stopped[0]
    assert len(bench.calls) <= FAILURES_IN_A_ROW + 2
    assert set(summary.graders[0].unscored) == {"request_failed"}
    bench.script = answer
    assert grade(study, [bench.claude]).scored == 10


def test_a_second_run_asks_nothing(bench: Bench) -> None:
    study = bench.study(pairs=2, rubrics=("hedging", "even-handedness"))
    steps: list[tuple[int, int, str]] = []
    grade(study, [bench.openai], orders=("ab",), progress=lambda *step: steps.append(step))
    assert steps == [(done, 6, bench.openai) for done in range(1, 7)]
    bench.calls.clear()
    again = grade(study, [bench.openai], orders=("ab",)).graders[0]
    assert (again.already, again.planned, bench.calls) == (6, 0, [])


def test_concurrency_is_used_and_kept(bench: Bench) -> None:
    under_way = most = 0
    used = threading.Event()

    def script(call: Call) -> Reply:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 3:
            used.set()
        if len(bench.calls) > 2:  # before, one is asked alone
            used.wait(10)
        under_way -= 1
        return answer(call)

    bench.script = script
    grade(bench.study(pairs=3), [bench.claude], concurrency=4)
    assert 3 <= most <= 4


def test_provenance_says_how_a_grade_came_about(bench: Bench) -> None:
    import openai

    bench.script = lambda call: completion("4", positions=[{"4": 0.5, "5": 0.2, "The": 0.3}])
    study = bench.study(pairs=1)
    grade(study, [bench.openai])
    row = rows(study)[0]
    facts = row["provenance"]
    prompt = bench.calls[0]
    assert (facts["provider"], facts["base_url"]) == ("openai", f"{bench.root}/v1/")
    assert facts["sdk"] == f"openai {openai.__version__}"
    assert (facts["requested_model"], facts["returned_model"]) == ("test-model", "test-model-2026")
    assert (facts["request_id"], facts["reply_id"]) == ("req_2", "chatcmpl-1")
    words = hashlib.sha256(f"{prompt.system}\0{prompt.user}".encode()).hexdigest()
    assert (facts["prompt_hash"], len(facts["grade_key"])) == (words[:16], 40)
    asked = {"max_tokens": 4096, "logprobs": True, "top_logprobs": 20, "temperature": 1}
    assert (facts["settings"], facts["stop_reason"]) == (asked, "stop")
    assert (facts["usage"]["prompt_tokens"], facts["in_option_mass"]) == (900, pytest.approx(0.7))
    assert facts["low_mass"] is True
    assert [token for token, _ in facts["top_logprobs"]] == ["4", "5", "The"]
    assert facts["attempts"] == 1
    assert facts["started_at"] <= facts["finished_at"] <= row["created_at"]
    assert facts["tool"].startswith("evenhand")
    assert row["raw"] == "4"
    json.dumps(facts)
    # The same request to the same service is the same grade, whichever library sent it.
    service = {"provider": "a", "base_url": "b", "sdk": "x 1"}
    others = [service | {"sdk": "x 2"}, service | {"base_url": "c"}, service | {"provider": "c"}]
    key, *keys = (grade_key(each, {"model": "m"}, 0) for each in (service, *others))
    assert [each == key for each in keys] == [True, False, False]
    assert key != grade_key(service, {"model": "m"}, 1)


@pytest.mark.parametrize("same", [True, False])
def test_an_edit_that_is_declared_harmless_asks_nothing_again(bench: Bench, same: bool) -> None:
    study = bench.study(pairs=2)
    bench.script = lambda call: (
        completion("", finish_reason="length") if call.unit == "p0001|m|a" else answer(call)
    )
    assert grade(study, [bench.openai]).scored == 3
    bench.script = answer
    with with_edited_rubric(study, "hedging", same=same) as edited:
        (forecast_of,) = forecast(edited, [bench.openai], GradingOptions())
        assert (forecast_of.already, forecast_of.new) == ((4, 0) if same else (0, 4))
        (again,) = grade(edited, [bench.openai], retry_unscored=True).graders
        assert (again.already, again.scored) == ((3, 1) if same else (0, 4))


def test_input_that_cannot_be_graded_is_refused_before_anything_is_asked(bench: Bench) -> None:
    study = bench.study()
    for said, graders, options in (
        ("no rubric 'nothing'", [bench.claude], {"rubrics": ["nothing"]}),
        ("scope", [bench.claude], {"scope": "some"}),
        ("concurrency", [bench.claude], {"concurrency": 0}),
        ("timeout", [bench.claude], {"timeout": 0}),
        ("at least one grader", [], {}),
        ("not a valid grader", [bench.claude, "nonsense"], {}),
    ):
        refused(said, grade, study, graders, **options)
    more = {"question": "On {topic_name}?", "variables": ("response", "topic_name")}
    needs_topic = load_rubric("hedging").model_copy(update=more)
    with pytest.raises(InputError, match="needs 'topic_name'"):  # no group of errors
        grade(bench.study(rubrics=(needs_topic,), name="topics"), [bench.openai])
    assert bench.calls == []
