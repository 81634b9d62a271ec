"""Grades by batches: the same as live, each paid for once, whenever the run ends."""

import itertools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.graders import GradingOptions, RequestLimits, RunSummary
from evenhand.graders.clients import ClaudeBatches
from evenhand.graders.replies import ATTEMPTS
from evenhand.graders.running import FAILURES_IN_A_ROW, BatchRun, Rounds
from evenhand.study import Study
from evenhand.study.store.logs.replies import BatchJournal
from evenhand.study.store.schema import batch_events
from evenhand.study.store.store import total_spent
from harness.killing import dying
from harness.replies import Call, Reply, answer, error
from harness.studies import with_edited_rubric
from tests.graders.bench import Bench
from tests.graders.grading import FAST, decided, grade, rows

pytestmark = pytest.mark.journey
PRICED = ("anthropic:claude-opus-5", "openai:gpt-4o")


def by_batch(study: Study, grader: str, **options: Any) -> RunSummary:
    return grade(study, [grader], batch=True, **options)


def provenances(study: Study) -> dict[tuple[str, str], dict[str, Any]]:
    """What stands with the grades of one run, without what tells one run from another."""
    own = {"started_at", "finished_at", "attempts", "batch_id", "chunk", "request_id", "reply_id"}
    return {
        (row["unit_id"], row["order"]): {k: v for k, v in row["provenance"].items() if k not in own}
        for row in rows(study)
    }


def kinds(study: Study) -> list[str]:
    return study.store.table(sa.select(batch_events.c.kind))["kind"].tolist()


def sizes(bench: Bench) -> list[int]:
    """How many requests each batch had."""
    return [len(batch["lines"]) for batch in bench.batches.made]


def test_the_same_grades_under_the_same_keys_as_live(bench: Bench, grader: str) -> None:
    live, batch = (
        bench.study(pairs=5, rubrics=("hedging", "even-handedness"), name=name)
        for name in ("live", "batch")
    )
    grade(live, [grader], orders=("ab", "ba"))
    summary = by_batch(batch, grader, orders=("ab", "ba"))
    assert (summary.scored, summary.stopped) == (20, ())
    pd.testing.assert_frame_equal(decided(batch), decided(live))
    assert provenances(batch) == provenances(live)
    for facts in provenances(batch).values():
        assert len(facts["prompt_hash"]) == 16
        assert facts["settings"]
    assert len(bench.calls) == 20 + 1  # one asked alone before the batch
    assert (len(bench.batches.calls), kinds(batch)) == (19, ["intended", "submitted", "collected"])


def test_only_what_expired_or_can_be_asked_again_is(bench: Bench, grader: str) -> None:
    fates = {"p0002|m|a": "expired", "p0002|m|b": "errored", "p0003|m|a": "canceled"}
    bench.batches.fate = lambda call: (
        "invalid" if call.unit == "p0003|m|b" else fates.get(call.unit, "") * (call.nth == 1)
    )
    summary = by_batch(bench.study(pairs=4), grader)
    assert (summary.scored, summary.graders[0].unscored) == (7, {"request_rejected: 400": 1})
    asked = Counter(call.unit for call in bench.batches.calls)
    assert {unit: n for unit, n in asked.items() if n > 1} == dict.fromkeys(fates, 2)
    assert sizes(bench) == [7, 3]


def test_an_item_that_is_rejected_first_holds_no_batch_up(bench: Bench, grader: str) -> None:
    turns = itertools.count()
    bench.script = lambda call: answer(call) if next(turns) else error(413)
    summary = by_batch(bench.study(pairs=2), grader)
    assert (summary.scored, summary.unscored, sizes(bench)) == (3, 1, [2])
    bench.script = lambda call: error(413)
    assert by_batch(bench.study(pairs=8, name="other"), grader).stopped
    assert (len(bench.calls), len(sizes(bench))) == (2 + FAILURES_IN_A_ROW, 1)


def test_large_work_is_cut_into_chunks_and_progress_told(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr(ClaudeBatches, "most_requests", 4)
    told: list[str] = []
    progress = {"progress": lambda done, total, text: told.append(text)}
    assert by_batch(bench.study(pairs=5), bench.claude, **progress).scored == 10
    assert sizes(bench) == [4, 4, 1]
    assert "batch batch_2: 0 of 1 done" in told


@pytest.mark.slow
@pytest.mark.parametrize("step", ["intend", "submitted", "collected"])
@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_ends_at_any_step_is_continued(bench, grader, step, after):
    study = bench.study(pairs=4)
    with dying(BatchJournal, step, after=after):
        by_batch(study, grader)
    assert by_batch(study, grader).stopped == ()
    assert decided(study)["unscored_reason"].tolist() == [""] * 8
    assert set(Counter(call.unit for call in [*bench.calls, *bench.batches.calls]).values()) == {1}


@pytest.mark.slow
def test_what_comes_after_a_harmless_edit_is_read_under_the_old_text_and_not_paid_again(bench):
    study = bench.study(pairs=3)
    old = study.rubrics["hedging"].hash
    with dying(BatchRun, "_collect_all"):
        by_batch(study, bench.claude)
    with with_edited_rubric(study, "hedging", same=True) as edited:
        assert grade(edited, [bench.claude]).unscored == 0  # what is under way is collected as well
        assert edited.ratings()["rubric_hash"].tolist() == [old] * 6
        assert by_batch(edited, bench.claude).graders[0].already == 6
    assert len(bench.calls) + len(bench.batches.calls) == 6


def test_replies_under_a_text_that_was_edited_are_paid_for_and_asked_again(bench: Bench) -> None:
    study, grader = bench.study(pairs=2), "anthropic:claude-opus-5"
    old = study.rubrics["hedging"].hash
    with dying(BatchRun, "_collect_all"):
        by_batch(study, grader)
    with with_edited_rubric(study, "hedging", same=False) as edited:
        (told,) = grade(edited, [grader]).graders
        assert (told.scored, told.unscored, told.unasked) == (4, {"rubric_changed": 3}, 0)
        assert all(row["provenance"]["cost_usd"] for row in rows(edited))
        assert len(edited.store.finished_grades(told.rater_id, "hedging", [old])) == 1


def test_what_another_run_left_under_way_counts_as_planned(bench: Bench) -> None:
    study = bench.study(pairs=2, rubrics=("hedging", "refusal"))
    with dying(BatchRun, "_collect_all"):
        by_batch(study, bench.claude, rubrics=["hedging"])
    (told,) = grade(study, [bench.claude], rubrics=["refusal"]).graders
    assert (told.scored, told.unasked, sizes(bench)) == (4 + 3, 0, [3])


@pytest.mark.parametrize("fault", ["before", "after", "busy", "within the results"])
def test_a_connection_that_breaks_makes_no_second_batch(bench, grader, fault):
    ways = iter([Reply(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")])
    get = bench.batches.get

    def breaking(path, headers):
        return (path.endswith(("/results", "/content")) and next(ways, None)) or get(path, headers)

    if fault == "busy":
        bench.batches.get_replies = [error(500), error(503)]
    elif fault == "within the results":
        bench.batches.get = breaking
    else:
        bench.batches.drop = [fault]
    assert (by_batch(bench.study(pairs=2), grader).scored, sizes(bench)) == (4, [3])


def test_cancel_keeps_what_has_come_and_sends_nothing(bench: Bench, grader: str) -> None:
    bench.batches.looks = 1000
    study = bench.study(pairs=2)
    with dying(BatchRun, "_collect_all"):
        by_batch(study, grader)
    bench.batches.fate = lambda call: ""
    assert by_batch(study, grader, cancel=True).stopped == ()
    assert bench.batches.made[0]["cancelled"]
    assert (len(bench.batches.made), kinds(study)[-1]) == (1, "collected")


@pytest.mark.parametrize("name", PRICED)
@pytest.mark.parametrize("gone", [r"/batches/\w+$", r"/(results|content)$", "archived"])
def test_a_batch_that_is_gone_is_asked_again_only_if_it_is_given_up(bench, name, gone):
    bench.as_openai()
    study, get = bench.study(pairs=2), bench.batches.get
    with dying(BatchRun, "_collect_all"):
        by_batch(study, name)
    if gone == "archived":  # at OpenAI, files are deleted
        bench.batches.archived_at, gone = "2026-11-01T00:00:00Z", r"/content$"
    bench.batches.get = lambda path, headers: (
        error(404) if re.search(gone, path) else get(path, headers)
    )
    for told in (by_batch(study, name), grade(study, [name])):
        assert "no longer has batch batch_0 or its results" in told.stopped[0]
    (told,) = by_batch(study, name, cancel=True).graders
    assert "no longer has" in told.warnings[-1]
    assert total_spent(study.store) > 0.05, "its worst price"
    assert (grade(study, [name]).scored, sizes(bench)) == (3, [3])


@pytest.mark.parametrize("name", PRICED)
@pytest.mark.parametrize("n_faults", [0, ATTEMPTS])
def test_a_batch_that_is_refused_or_left_stops_its_grader_alone(bench, name, n_faults):
    bench.as_openai()
    bench.batches.refuse = "" if n_faults else "the file is not to our taste"
    bench.batches.get_replies = [error(500)] * n_faults
    study, limits = bench.study(pairs=2), RequestLimits(budget=5.0, **FAST)
    run = replace(Rounds.begin(study, limits), batch=True)
    (why,) = run.grade([(name, GradingOptions())]).stopped
    assert ("not to our taste" in why) == (n_faults == 0)
    assert (run.budget.spent > 0.05) == (n_faults > 0), "what is under way may be billed"
    assert run.budget.fits(run.budget.limit - run.budget.spent), "no other grader waits for it"
    bench.batches.refuse = ""
    assert by_batch(study, name).scored == 3


UNREADABLE_LINES: list[Callable[[str], str]] = [
    lambda line: line[: len(line) // 2],
    lambda line: f"[{line}]",
    lambda line: line.partition(",")[0] + "}",
    lambda line: line.replace('"custom_id": "', '"custom_id": "x'),  # names no request of ours
    lambda line: line.replace('": "', '": \n"', 3),
    lambda line: '{"a":' * 100_000,
    lambda line: "<html>",
]


def test_a_line_of_the_results_that_cannot_be_read_costs_its_request_alone(bench, grader):
    within = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r"  # what else may end a line, but not here
    sent, faults = itertools.count(1), dict(enumerate(UNREADABLE_LINES, start=1))
    bench.batches.write = lambda line: faults.get(next(sent), str)(
        line.replace('"id": "', f'"note": "a{within}b", "id": "')
    )
    summary = by_batch(bench.study(pairs=5), grader)
    assert (summary.scored, summary.stopped) == (10, ())
    assert sizes(bench) == [9, len(faults)]


@pytest.mark.parametrize("n_lost", [1, 3])
def test_later_runs_count_the_worst_price_of_a_batch_with_lost_lines(bench, n_lost):
    sent, study = itertools.count(), bench.study(pairs=2)
    bench.batches.write = lambda line: f"[{line}]" if next(sent) < n_lost else line
    summary = by_batch(study, "anthropic:claude-opus-5")
    assert (summary.scored, sizes(bench)) == (4, [3, n_lost])
    assert 0.3 < total_spent(study.store) == pytest.approx(float(summary.spent))


def test_a_line_that_never_becomes_readable_is_recorded_as_failed(bench, grader):
    bench.script = lambda call: replace(answer(call), body=answer(call).body | {"note": call.unit})
    bench.batches.write = lambda line: line.replace("{", "", "p0002|m|a" in line)
    study = bench.study(pairs=2)
    assert by_batch(study, grader).graders[0].unscored == {"request_failed": 1}
    assert sizes(bench) == [3] + [1] * (ATTEMPTS - 1)
    (facts,) = [row["provenance"] for row in rows(study) if row["unscored_reason"]]
    assert "no readable reply" in str(facts)


def test_a_page_in_place_of_the_results_leaves_the_batch_to_be_collected_later(bench, grader):
    bench.batches.write = lambda line: "<html>Sign in</html>"
    study = bench.study(pairs=1)
    assert "cannot be read" in by_batch(study, grader).stopped[0]
    bench.batches.write = str
    assert (by_batch(study, grader).stopped, len(decided(study))) == ((), 2)
    assert sizes(bench) == [1]


def test_units_with_the_same_text_are_asked_apart(bench: Bench) -> None:
    study = bench.study(pairs=2)
    with study.store.write() as connection:
        connection.execute(sa.text("UPDATE responses SET response = 'I cannot.'"))
    # The server refuses a custom id that comes twice.
    assert by_batch(study, bench.claude).scored == 4


def several(most: int) -> Callable[[Call], Reply]:
    """At most so many answers, by turns: one reply's draws differ."""

    def script(call: Call) -> Reply:
        (choice,) = answer(call).body["choices"]
        choices = [
            {**choice, "index": at, "message": {"role": "assistant", "content": key}}
            for at, key in zip(range(min(call.body.get("n", 1), most)), call.keys, strict=False)
        ]
        return replace(answer(call), body=answer(call).body | {"choices": choices})

    return script


@pytest.fixture
def own(bench: Bench) -> str:
    """OpenAI's own model, at the protocol server, which gives as many answers as asked for."""
    bench.script = several(128)
    return bench.as_openai()


def test_draws_of_a_unit_are_one_request_of_a_batch(bench: Bench, own: str) -> None:
    live, batch = bench.study(pairs=3, name="live"), bench.study(pairs=3, name="batch")
    grade(live, [own], draws=4)
    bench.calls.clear()
    assert by_batch(batch, own, draws=4).scored == 24
    assert (len(bench.calls), len(bench.batches.calls)) == (1, 5)
    assert {call.body["n"] for call in bench.batches.calls} == {4}
    pd.testing.assert_frame_equal(decided(batch), decided(live))
    keys = [{row["provenance"]["grade_key"] for row in rows(each)} for each in (live, batch)]
    assert (keys[0], len(keys[0])) == (keys[1], 24)
    totals = batch.grade_totals().iloc[0]
    assert totals["tokens_input"] == 6 * 900
    # Five of six at half the price.
    assert totals["cost_usd"] == pytest.approx((1 + 5 / 2) * (900 * 2.5 + 10) / 1e6)


@pytest.mark.parametrize("most", [1, 2])
def test_draws_that_did_not_come_are_asked_for_again(bench: Bench, own: str, most: int) -> None:
    """A server that takes `n` and gives fewer: what it gives at once is known from the first."""
    bench.script, study = several(most), bench.study(pairs=2)
    assert by_batch(study, own, draws=4).scored == 16
    assert sorted(study.ratings()["draw"]) == sorted([*range(4)] * 4)
    assert len(bench.batches.made) == 1
    assert {call.body.get("n", 1) for call in bench.batches.calls} == {most}
    # One that gives fewer in the batch alone is asked for the rest in another.
    bench.script = lambda call: several(3 if bench.batches.made[1:] else 128)(call)
    assert by_batch(bench.study(pairs=2, name="other"), own, draws=4).scored == 16
    assert sizes(bench)[1:] == [3, 3]


@pytest.mark.parametrize("step", ["submitted", "collected"])
@pytest.mark.parametrize("after", [False, True])
def test_draws_in_a_batch_survive_a_kill(bench: Bench, own: str, step: str, after: bool) -> None:
    study = bench.study(pairs=2)
    with dying(BatchJournal, step, after=after):
        by_batch(study, own, draws=3)
    assert by_batch(study, own, draws=3).stopped == ()
    assert decided(study)["draw"].tolist() == [0, 1, 2] * 4
    assert set(Counter(call.unit for call in [*bench.calls, *bench.batches.calls]).values()) == {1}
    # More draws add to these, those that are missing alone.
    assert by_batch(study, own, draws=5).scored == 8
    assert {call.body["n"] for call in bench.batches.calls[3:]} == {2}


def test_a_budget_counts_every_draw_of_a_request(bench: Bench, own: str) -> None:
    study = bench.study(pairs=6)
    budget = 0.2  # 4 draws with 1,024 tokens each may cost $0.02 and more in a batch
    summary = by_batch(study, own, draws=4, budget=budget)
    limits = [call.body["max_completion_tokens"] for call in bench.batches.calls]
    assert sum(4 * limit * 5e-6 for limit in limits[: sizes(bench)[0]]) <= budget
    assert summary.scored + summary.graders[0].unasked == 48
    counts = Counter(study.ratings()["unit_id"]).values()
    assert set(counts) == {4}, "a unit's draws are reserved for together"
