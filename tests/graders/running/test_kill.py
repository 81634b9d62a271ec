"""A run that is killed at a random instant and started again gives the table of a quiet run; and
shards of a run on one PostgreSQL: parted, locked, paid and taken over. Synthetic throughout.
"""

import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain

import pandas as pd
import pytest

from evenhand.graders import Shard
from evenhand.graders.running import RunLocked, only_runner
from evenhand.study import Study, open_study
from evenhand.study.keeping import move_store
from harness.killing import killed_after, started
from harness.replies import Call, Reply, answer, error
from tests.cases import refused
from tests.graders.bench import Bench
from tests.graders.grading import decided, grade

CONCURRENCY = 8
PROGRAM = f"""
import sys
from evenhand.graders import GradingOptions, RequestLimits, Shard, grade
from evenhand.study import open_study

study, grader, how = sys.argv[1:]
options = GradingOptions(shard=Shard.parse(how)) if "/" in how else GradingOptions()
limits = RequestLimits(concurrency={CONCURRENCY}, wait_scale=0.001)
grade(open_study(study), [grader], options, limits, batch=how == "batch")
"""


KILLS = [1, pytest.param(3, marks=pytest.mark.thorough), pytest.param(20, marks=pytest.mark.load)]


@pytest.mark.slow
@pytest.mark.parametrize("kills", KILLS)
def test_nothing_is_lost_and_nothing_asked_twice_but_what_was_under_way(bench, kills):
    def slow(call: Call) -> Reply:
        """A server that takes its time and is now and then too busy."""
        reply = error(529) if call.nth == 1 and hash(call.unit) % 7 == 0 else answer(call)
        return replace(reply, delay=0.02)

    def finished() -> set[str]:
        hashes = [killed.rubrics["hedging"].hash]
        return {unit for unit, *_ in killed.store.finished_grades(bench.openai, "hedging", hashes)}

    pairs, bench.script = 20 * kills, slow
    quiet, killed = (bench.study(pairs=pairs, name=name) for name in ("quiet", "killed"))
    grade(quiet, [bench.openai])
    kept: set[str] = set()
    for _ in range(kills):
        calls = random.randint(2, 30)
        print("killed after", calls, "requests")
        before = len(bench.calls)
        ended = not killed_after(calls, bench, PROGRAM, killed.folder, bench.openai, "live")
        assert not ended, "the run ended before it could be killed"
        time.sleep(0.05)  # let the server log what was already on its way
        asked = {call.unit for call in bench.calls[before:]}
        assert not kept & asked, "a finished grade was asked again"
        now = finished()
        assert kept <= now, "a kept grade was lost"
        assert len(asked - now) <= CONCURRENCY, "an answered grade was not kept"
        kept = now
    assert 0 < len(kept) < 2 * pairs
    before = len(bench.calls)
    assert grade(killed, [bench.openai]).graders[0].already == len(kept)
    assert {call.unit for call in bench.calls[before:]} == set(decided(quiet)["unit_id"]) - kept
    pd.testing.assert_frame_equal(decided(killed), decided(quiet))


@pytest.mark.slow
@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_batch_is_found_again(bench: Bench, grader: str, kills: int) -> None:
    quiet, killed = (bench.study(pairs=20, name=name) for name in ("quiet", "killed"))
    grade(quiet, [grader])
    bench.calls.clear()
    bench.batches.looks, bench.batches.delay = 12, 0.05
    # A start takes about so long; what comes after it is where the instants matter.
    for seconds in (0.0, *(random.uniform(0.8, 2.2) for _ in range(kills))):
        print("killed after", seconds)
        process = started(PROGRAM, killed.folder, grader, "batch")
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        process.wait()
    bench.batches.looks = 1
    assert grade(killed, [grader], batch=True).stopped == ()
    pd.testing.assert_frame_equal(decided(killed), decided(quiet))
    asked = Counter(call.unit for call in bench.batches.calls)
    assert set(asked.values()) == {1}, "a batch was sent twice"
    assert len(bench.calls) <= kills + 2  # the one asked alone before the batch, each time


@pytest.fixture
def shared(marked_study, new_postgresql):
    """shared(pairs) -> a study on PostgreSQL."""
    with ExitStack() as opened:

        def make(pairs: int = 3) -> Study:
            made = marked_study(pairs=pairs, name="shared")
            made.close()
            move_store(made.folder, new_postgresql())
            return opened.enter_context(open_study(made.folder))

        yield make


def test_every_unit_is_in_one_part_whatever_else_there_is() -> None:
    units = [f"p{n:04d}|s|a" for n in range(400)]
    for of in (1, 2, 7):
        held = [[unit for unit in units if Shard(k, of).contains(unit)] for k in range(1, of + 1)]
        assert sorted(chain.from_iterable(held)) == units
        assert min(map(len, held)) > 0.6 * len(units) / of
    assert [str(other) for other in Shard(2, 4).others()] == ["3/4", "4/4", "1/4"]


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "1/0", "-1/2", "1/1001", "1/2/3", "a/b"])
def test_what_is_no_part_is_refused(text: str) -> None:
    refused("write which part of how many", Shard.parse, text)
    assert (Shard.parse("2/8"), str(Shard.parse("1000/1000"))) == (Shard(2, 8), "1000/1000")


def test_a_study_in_a_file_and_a_batch_have_no_shards(bench: Bench) -> None:
    for said, more in (("store copy", {}), ("--shard or --batch", {"batch": True})):
        refused(said, grade, bench.study(name=said), [bench.openai], shard=Shard(1, 2), **more)
    assert not bench.calls


@pytest.mark.slow
def test_parts_are_held_one_by_one_and_never_of_two_ways_of_parting(shared):
    def held(other: Shard, said: str) -> None:
        with pytest.raises(RunLocked, match=said), only_runner(elsewhere, other):
            pass

    study = shared()
    with open_study(study.folder) as elsewhere:
        with only_runner(study, Shard(1, 2)):
            with only_runner(elsewhere, Shard(2, 2)):
                pass
            held(Shard(1, 2), "shard 1/2 is being collected")
            held(Shard(2, 3), "in 2 shards")
            held(Shard(), "in 2 shards")
        with only_runner(study):
            held(Shard(), "another run is collecting")
        with only_runner(elsewhere, Shard(2, 3)):  # all were let go
            pass


@pytest.mark.slow
def test_a_part_that_nobody_collects_is_taken_over_within_the_budget(bench, shared):
    study, told = shared(pairs=8), []
    progress = {"progress": lambda done, total, _: told.append((done, total))}
    with open_study(study.folder) as elsewhere, only_runner(elsewhere, Shard(2, 3)):
        summary = grade(study, [bench.openai], shard=Shard(1, 3), **progress)
    units = set(study.rubric_units(study.rubrics["hedging"]))
    mine = {unit for unit in units if not Shard(2, 3).contains(unit)}
    assert {call.unit for call in bench.calls} == mine
    assert summary.scored == summary.graders[0].planned == len(mine)
    assert told[-1] == (len(mine), len(mine))
    assert grade(study, [bench.openai], shard=Shard(2, 3)).scored == len(units - mine)
    assert Counter(call.unit for call in bench.calls) == Counter(units)


@pytest.mark.slow
def test_each_shard_has_its_share_of_the_budget(bench: Bench, shared: Callable[..., Study]) -> None:
    folder = shared(pairs=20).folder
    with (folder / "study.toml").open("a") as file:
        file.write(f'\n[prices."{bench.openai}"]\ninput = 100.0\noutput = 100.0\n')
    with open_study(folder) as study:
        summary = grade(study, [bench.openai], shard=Shard(1, 4), budget=4.0, concurrency=1)
        spent = study.grade_totals()["cost_usd"].sum()
    assert summary.over_budget
    assert 0.2 < spent <= 1.0, "what the four may spend together is 4"


@pytest.mark.thorough
@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.load)])
def test_a_killed_shard_is_taken_over_and_nothing_is_lost_or_asked_twice(bench, shared, kills):
    pairs = 30 * kills
    bench.script = lambda call: replace(answer(call), delay=0.03)
    study = shared(pairs)
    for _ in range(kills):
        ended = not killed_after(12, bench, PROGRAM, study.folder, bench.openai, "1/2")
        assert not ended, "the shard ended before it could be killed"
    assert started(PROGRAM, study.folder, bench.openai, "2/2").wait(120) == 0
    asked = Counter(call.unit for call in bench.calls)
    units = set(study.rubric_units(study.rubrics["hedging"]))
    assert set(asked) == units
    assert asked.total() <= len(units) + kills * CONCURRENCY, "a finished grade was asked again"
    quiet = bench.study(pairs=pairs, name="quiet")
    bench.script = answer
    grade(quiet, [bench.openai])
    pd.testing.assert_frame_equal(decided(study), decided(quiet))
