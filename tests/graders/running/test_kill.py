"""A run that is killed at a random instant and started again gives the table of a quiet run."""

import random
import signal
import subprocess
import time
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest

from evenhand.study import Study
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


def _slow(call: Call) -> Reply:
    """A server that takes its time and is now and then too busy."""
    reply = error(529) if call.nth == 1 and hash(call.unit) % 7 == 0 else answer(call)
    return replace(reply, delay=0.02)


def _finished(study: Study, rater_id: str) -> set[str]:
    hedging = study.rubrics["hedging"]
    found = study.store.finished_grades(rater_id, "hedging", [hedging.hash])
    return {unit for unit, _, _ in found}


@pytest.mark.parametrize(
    "kills",
    [1, pytest.param(3, marks=pytest.mark.thorough), pytest.param(20, marks=pytest.mark.load)],
)
def test_nothing_is_lost_and_nothing_asked_twice_but_what_was_under_way(bench, kills):
    pairs = 20 * kills
    bench.script = _slow
    quiet = bench.study(pairs=pairs, name="quiet")
    grade(quiet, [bench.openai])
    killed = bench.study(pairs=pairs, name="killed")
    kept: set[str] = set()
    for _ in range(kills):
        calls = random.randint(2, 30)
        print("killed after", calls, "requests")
        before = len(bench.calls)
        ended = not killed_after(calls, bench, PROGRAM, killed.folder, bench.openai, "live")
        assert not ended, "the run ended before it could be killed"
        time.sleep(0.05)  # let the server log what was already on its way
        asked = Counter(call.unit for call in bench.calls[before:])
        assert not kept & set(asked), "a finished grade was asked again"
        now = _finished(killed, bench.openai)
        assert kept <= now, "a kept grade was lost"
        assert len(set(asked) - now) <= CONCURRENCY, "an answered grade was not kept"
        kept = now
    assert 0 < len(kept) < 2 * pairs
    before = len(bench.calls)
    summary = grade(killed, [bench.openai])
    assert summary.graders[0].already == len(kept)
    assert {call.unit for call in bench.calls[before:]} == set(decided(quiet)["unit_id"]) - kept
    pd.testing.assert_frame_equal(decided(killed), decided(quiet))


def _batch_and_kill(study: Study, grader: str, seconds: float) -> bool:
    """Grade by batches in a process of its own; kill -9 it after so long. False: it was done."""
    process = started(PROGRAM, study.folder, grader, "batch")
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


@pytest.mark.parametrize(
    "kills",
    [1, pytest.param(3, marks=pytest.mark.thorough), pytest.param(20, marks=pytest.mark.load)],
)
def test_a_killed_batch_is_found_again(bench: Bench, grader: str, kills: int) -> None:
    quiet = bench.study(pairs=20, name="quiet")
    grade(quiet, [grader])
    bench.calls.clear()
    bench.batches.looks = 12
    bench.batches.delay = 0.05
    killed = bench.study(pairs=20, name="killed")
    began = time.monotonic()
    _batch_and_kill(killed, grader, 0.0)
    started = 0
    for _ in range(kills):
        # A start takes about so long; what comes after it is where the instants matter.
        seconds = random.uniform(0.8, 2.2)
        print("killed after", seconds)
        started += _batch_and_kill(killed, grader, seconds)
    print(started, "of", kills, "killed in", time.monotonic() - began)
    bench.batches.looks = 1
    summary = grade(killed, [grader], batch=True)
    assert summary.stopped == ()
    pd.testing.assert_frame_equal(decided(killed), decided(quiet))
    asked = Counter(call.unit for call in bench.batches.calls)
    assert set(asked.values()) == {1}, "a batch was sent twice"
    live = Counter(call.unit for call in bench.calls)
    assert sum(live.values()) <= kills + 2  # the one asked alone before the batch, each time
