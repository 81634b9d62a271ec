"""Whole runs against the protocol server: faults, retries, early stops, provenance."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from email.utils import formatdate
from typing import Any

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.graders import GradingOptions, forecast
from evenhand.graders.failures import ATTEMPTS
from evenhand.graders.providers import key_variable
from evenhand.graders.running.network import FAILURES_IN_A_ROW
from evenhand.rubrics import load_rubric
from evenhand.study import Study
from evenhand.study.store.schema import grades
from harness.protocol_server import ProtocolServer
from harness.replies import DROPPED, Call, Reply, answer, completion, error, labelled
from harness.studies import MarkedStudy, with_edited_rubric
from tests.graders.grading import grade

FAST = {"wait_scale": 0.001}
"""Waits between attempts a thousand times shorter."""


def rows(study: Study) -> list[dict[str, Any]]:
    """The stored grade events, all columns."""
    with study.store.read() as connection:
        query = sa.select(grades).order_by(grades.c.event_id)
        return [dict(row._mapping) for row in connection.execute(query)]


FAULTS = [
    error(429, "slow down", {"retry-after": "1"}),
    error(529, "overloaded"),
    error(500),
    error(503),
    error(408),
    error(409),
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
    ("provider", "pairs"),
    [
        ("anthropic", 150),
        ("openai", 40),
        pytest.param("anthropic", 1000, marks=pytest.mark.load),
        pytest.param("openai", 1000, marks=pytest.mark.load),
    ],
)
def test_grades_arrive_each_once_though_every_fifth_reply_is_a_fault(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, provider: str, pairs: int
) -> None:
    def faulty(call: Call) -> Reply:
        luck = hashlib.sha256(f"{call.unit}{call.nth}".encode()).digest()
        return FAULTS[luck[1] % len(FAULTS)] if luck[0] % 5 == 0 else answer(call)

    server.script = faulty
    study = marked_study(pairs=pairs)
    grader = claude if provider == "anthropic" else server.openai
    summary = grade(study, [grader], **FAST)
    assert (summary.scored, summary.unscored, summary.stopped) == (2 * pairs, 0, ())
    stored = rows(study)
    assert len(stored) == len({row["unit_id"] for row in stored}) == 2 * pairs
    asked = Counter(call.unit for call in server.calls)
    assert {row["unit_id"]: row["provenance"]["attempts"] for row in stored} == dict(asked)
    assert summary.graders[0].requests == len(server.calls) > 2.2 * pairs
    expected = {call.unit: call.choice for call in server.calls}
    assert {row["unit_id"]: row["label"] for row in stored} == expected


@pytest.mark.parametrize(
    "header", [{"retry-after": "5"}, {"retry-after-ms": "5000"}, {"retry-after": "{date}"}]
)
def test_the_server_says_how_long_to_wait(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, header: dict[str, str]
) -> None:
    def script(call: Call) -> Reply:
        if call.nth > 1:
            return labelled("C")
        date = formatdate(time.time() + 5, usegmt=True)  # whole seconds: 4 to 5 from now
        return error(429, headers={k: v.format(date=date) for k, v in header.items()})

    server.script = script
    grade(
        marked_study(pairs=1, rubrics=("even-handedness",)),
        [claude],
        orders=("ab",),
        wait_scale=0.1,
    )
    first, second = server.calls
    assert 0.39 <= second.at - first.at < 2  # a tenth; unasked it would be 0.1 to 0.2 seconds


def test_waits_double_where_the_server_does_not_say(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: labelled("C") if call.nth > 4 else error(500)
    grade(
        marked_study(pairs=1, rubrics=("even-handedness",)),
        [claude],
        wait_scale=0.05,
        orders=("ab",),
    )
    at = [call.at for call in server.calls]
    # 1, 2, 4 and 8 seconds, each with up to one more, all of it by a twentieth
    for attempt, least in enumerate([0.05, 0.1, 0.2, 0.4]):
        assert least <= at[attempt + 1] - at[attempt] < least + 1


def test_a_server_that_asks_for_a_long_pause_stops_the_grader(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: error(429, headers={"retry-after": "7200"})
    summary = grade(marked_study(), [claude])
    assert "wait 120 minutes" in summary.stopped[0]
    assert len(server.calls) == 1


def test_an_exhausted_question_is_unscored_and_asked_again_by_the_next_run(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    broken = {"p0002|m|a"}
    server.script = lambda call: error(500) if call.unit in broken else answer(call)
    study = marked_study()
    summary = grade(study, [claude], **FAST)
    assert summary.graders[0].unscored == {"request_failed": 1}
    assert Counter(call.unit for call in server.calls)["p0002|m|a"] == ATTEMPTS == 8
    (failed,) = [row for row in rows(study) if row["unscored_reason"]]
    assert failed["provenance"]["status"] == 500
    assert failed["provenance"]["attempts"] == 8
    broken.clear()
    again = grade(study, [claude], **FAST)
    assert (again.graders[0].already, again.scored) == (5, 1)
    assert set(study.ratings()["unscored_reason"]) == {""}


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_rejected_question_is_not_retried(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, status: int
) -> None:
    def script(call: Call) -> Reply:
        return error(status, "too long") if call.unit == "p0002|m|a" else answer(call)

    server.script = script
    study = marked_study()
    summary = grade(study, [claude], **FAST)
    assert summary.graders[0].unscored == {f"request_rejected: {status}": 1}
    assert len(server.calls) == 6
    assert grade(study, [claude]).graders[0].already == 6


@pytest.mark.parametrize("status", [401, 403, 404, 402])
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_what_no_question_can_pass_stops_the_grader_at_once(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, status: int, provider: str
) -> None:
    server.script = lambda call: error(status, "no such thing")
    study = marked_study(pairs=10)
    grader = claude if provider == "anthropic" else server.openai
    summary = grade(study, [grader], **FAST)
    assert len(server.calls) == 1
    assert summary.graders[0].unasked == 20
    assert rows(study) == []  # nothing was learnt about any unit
    (sentence,) = summary.stopped
    named = "claude-test" if provider == "anthropic" else "test-model"
    variable = "ANTHROPIC_API_KEY" if provider == "anthropic" else key_variable(server.root)
    assert (named if status in (403, 404) else variable) in sentence


def test_a_spent_account_stops_the_grader(
    server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    body = {
        "error": {"message": "quota", "type": "insufficient_quota", "code": "insufficient_quota"}
    }
    server.script = lambda call: Reply(429, body)
    summary = grade(marked_study(), [server.openai], **FAST)
    assert "no credit left" in summary.stopped[0]
    assert len(server.calls) == 1


def test_a_key_that_is_revoked_on_the_way_keeps_what_has_come(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: answer(call) if len(server.calls) <= 10 else error(401)
    study = marked_study(pairs=10)
    summary = grade(study, [claude], concurrency=4, **FAST)
    assert summary.scored == len(rows(study)) == 10
    assert len(server.calls) <= 10 + 4
    server.script = answer
    assert grade(study, [claude], **FAST).scored == 10


def test_many_rejections_in_a_row_stop_the_grader_and_condemn_no_unit(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: error(400, "a region is not supported")
    study = marked_study(pairs=10)
    summary = grade(study, [claude], concurrency=4, **FAST)
    assert "in a row failed" in summary.stopped[0]
    assert "a region" in summary.stopped[0]
    assert len(server.calls) <= FAILURES_IN_A_ROW + 4
    assert set(summary.graders[0].unscored) == {"request_failed"}
    server.script = answer
    assert grade(study, [claude], **FAST).scored == 20


def test_a_server_that_is_not_there_stops_the_grader_after_one_question(
    marked_study: MarkedStudy,
) -> None:
    study = marked_study(pairs=20)
    summary = grade(study, ["openai:m@http://127.0.0.1:9/v1"], **FAST)
    assert "no reply from http://127.0.0.1:9/v1" in summary.stopped[0]
    assert summary.graders[0].requests == ATTEMPTS


def test_a_server_that_hangs_is_given_up_by_the_timeout(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    def script(call: Call) -> Reply:
        slow = call.unit == "p0001|m|a" and call.nth == 1
        return Reply(200, labelled("1").body, delay=1.0 if slow else 0.0)

    server.script = script
    summary = grade(marked_study(pairs=1), [claude], timeout=0.3, **FAST)
    assert summary.scored == 2
    assert len(server.calls) == 3


def test_one_stopped_grader_leaves_the_others_be(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    def script(call: Call) -> Reply:
        return error(401) if call.path.endswith("/v1/messages") else answer(call)

    server.script = script
    study = marked_study(pairs=5)
    summary = grade(study, [claude, server.openai, "baseline:lexical"], **FAST)
    assert [g.scored for g in summary.graders] == [0, 10, 10]
    assert len(summary.stopped) == 1


def test_a_second_run_asks_nothing(server: ProtocolServer, marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=5, rubrics=("hedging", "even-handedness"))
    steps: list[tuple[int, int, str]] = []
    grade(study, [server.openai], orders=("ab",), progress=lambda *step: steps.append(step))
    assert [done for done, _, _ in steps] == list(range(1, 16))
    assert {(total, label) for _, total, label in steps} == {(15, server.openai)}
    calls = len(server.calls)
    again = grade(study, [server.openai], orders=("ab",))
    assert (again.graders[0].already, again.graders[0].planned) == (15, 0)
    assert len(server.calls) == calls


def test_a_changed_rubric_is_asked_anew(server: ProtocolServer, marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=2)
    grade(study, [server.openai])
    hedging = study.rubrics["hedging"]
    study.rubrics["hedging"] = hedging.model_copy(update={"question": "How much hedging?"})
    study.rubrics["hedging"].__dict__.pop("hash", None)
    assert grade(study, [server.openai]).scored == 4


def test_concurrency_is_used_and_kept(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    under_way = most = 0

    def script(call: Call) -> Reply:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        time.sleep(0.02)
        under_way -= 1
        return answer(call)

    server.script = script
    grade(marked_study(pairs=15), [claude], concurrency=6)
    assert 4 <= most <= 6


def test_provenance_says_how_a_grade_came_about(
    server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    import openai

    server.script = lambda call: completion("4", positions=[{"4": 0.5, "5": 0.2, "The": 0.3}])
    study = marked_study(pairs=1)
    grade(study, [server.openai])
    row = rows(study)[0]
    facts = row["provenance"]
    prompt = server.calls[0]
    assert facts["provider"] == "openai"
    assert facts["base_url"] == f"{server.root}/v1/"
    assert facts["sdk"] == f"openai {openai.__version__}"
    assert (facts["requested_model"], facts["returned_model"]) == ("test-model", "test-model-2026")
    assert (facts["request_id"], facts["reply_id"]) == ("req_2", "chatcmpl-1")
    words = hashlib.sha256(f"{prompt.system}\0{prompt.user}".encode()).hexdigest()
    assert facts["prompt_hash"] == words[:16]
    assert len(facts["grade_key"]) == 40
    assert facts["settings"] == {
        "max_tokens": 4096,
        "logprobs": True,
        "top_logprobs": 20,
        "temperature": 1,
    }
    assert facts["stop_reason"] == "stop"
    assert facts["usage"]["prompt_tokens"] == 900
    assert facts["in_option_mass"] == pytest.approx(0.7)
    assert facts["low_mass"] is True
    assert [token for token, _ in facts["top_logprobs"]] == ["4", "5", "The"]
    assert facts["attempts"] == 1
    assert facts["started_at"] <= facts["finished_at"] <= row["created_at"]
    assert facts["tool"].startswith("evenhand")
    assert row["raw"] == "4"
    json.dumps(facts)


@pytest.mark.parametrize("same", [True, False])
def test_an_edit_that_is_declared_harmless_asks_nothing_again(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, same: bool
) -> None:
    study = marked_study(pairs=2)
    server.script = lambda call: (
        completion("", finish_reason="length") if call.unit == "p0001|m|a" else answer(call)
    )
    assert grade(study, [server.openai]).scored == 3
    server.script = answer
    with with_edited_rubric(study, "hedging", same=same) as edited:
        (forecast_of,) = forecast(edited, [server.openai], GradingOptions())
        assert (forecast_of.already, forecast_of.new) == ((4, 0) if same else (0, 4))
        (again,) = grade(edited, [server.openai], retry_unscored=True).graders
        assert (again.already, again.scored) == ((3, 1) if same else (0, 4))


def test_input_that_cannot_be_graded_is_refused_before_anything_is_asked(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    study = marked_study()
    with pytest.raises(InputError, match="no rubric 'nothing'"):
        grade(study, [claude], ["nothing"])
    with pytest.raises(InputError, match="scope"):
        grade(study, [claude], scope="some")
    with pytest.raises(InputError, match="concurrency"):
        grade(study, [claude], concurrency=0)
    with pytest.raises(InputError, match="at least one grader"):
        grade(study, [])
    with pytest.raises(InputError, match="not a valid grader"):
        grade(study, [claude, "nonsense"])
    assert server.calls == []


def test_a_unit_that_the_rubric_cannot_show_is_one_sentence_not_a_group_of_errors(
    server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    hedging = load_rubric("hedging")
    needs_topic = hedging.model_copy(
        update={
            "question": "How much does it hedge on {topic_name}?",
            "variables": ("response", "topic_name"),
        }
    )
    with pytest.raises(InputError, match="needs 'topic_name'"):
        grade(marked_study(rubrics=(needs_topic,)), [server.openai])
    assert server.calls == []
