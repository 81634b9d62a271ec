"""A run that is killed at a random instant and started again gives the table of a quiet run."""

import random
import subprocess
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pandas as pd
import pytest

from harness.replies import Call, Reply, answer, error
from tests.graders.bench import Bench
from tests.graders.grading import decided, grade
from tests.graders.killing import killed_after, started

pytestmark = pytest.mark.slow

CONCURRENCY = 8
PROGRAM = f"""
import sys
from evenhand.graders import RequestLimits, grade
from evenhand.study import open_study

grade(
    open_study(sys.argv[1]),
    [sys.argv[2]],
    limits=RequestLimits(concurrency={CONCURRENCY}, wait_scale=0.001),
    batch=sys.argv[3] == "batch",
)
"""


KILLS = [1, pytest.param(3, marks=pytest.mark.thorough), pytest.param(20, marks=pytest.mark.load)]


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
