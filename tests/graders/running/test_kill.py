"""A run that is killed at a random instant and started again gives the table of a quiet run."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from evenhand.study import Study
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, error
from harness.studies import MarkedStudy
from tests.graders.grading import grade

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
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


def _grade_and_kill(study: Study, server: ProtocolServer, calls: int) -> None:
    """Grade in a process of its own; kill -9 it once it has sent so many more requests."""
    wanted = len(server.calls) + calls
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, str(study.folder), server.openai, "live"], cwd=ROOT
    )
    try:
        deadline = time.monotonic() + 30
        while len(server.calls) < wanted:
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline, "the run did not get going"
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.02))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _table(study: Study) -> pd.DataFrame:
    """What a run decides, without when and how long."""
    table = study.ratings().drop(columns=["seconds", "created_at"])
    return table.sort_values("unit_id", ignore_index=True)


def _finished(study: Study, rater_id: str) -> set[str]:
    hedging = study.rubrics["hedging"]
    found = study.store.finished_grades(rater_id, "hedging", [hedging.hash])
    return {unit for unit, _, _ in found}


@pytest.mark.parametrize(
    "kills",
    [1, pytest.param(3, marks=pytest.mark.thorough), pytest.param(20, marks=pytest.mark.load)],
)
def test_nothing_is_lost_and_nothing_asked_twice_but_what_was_under_way(
    server: ProtocolServer, marked_study: MarkedStudy, kills: int
) -> None:
    pairs = 20 * kills
    server.script = _slow
    quiet = marked_study(pairs=pairs, name="quiet")
    grade(quiet, [server.openai], wait_scale=0.001)
    killed = marked_study(pairs=pairs, name="killed")
    kept: set[str] = set()
    for _ in range(kills):
        calls = random.randint(2, 30)
        print("killed after", calls, "requests")
        before = len(server.calls)
        _grade_and_kill(killed, server, calls)
        time.sleep(0.05)  # let the server log what was already on its way
        asked = Counter(call.unit for call in server.calls[before:])
        assert not kept & set(asked), "a finished grade was asked again"
        now = _finished(killed, server.openai)
        assert kept <= now, "a kept grade was lost"
        assert len(set(asked) - now) <= CONCURRENCY, "an answered grade was not kept"
        kept = now
    assert 0 < len(kept) < 2 * pairs
    before = len(server.calls)
    summary = grade(killed, [server.openai], wait_scale=0.001)
    assert summary.graders[0].already == len(kept)
    assert {call.unit for call in server.calls[before:]} == set(_table(quiet)["unit_id"]) - kept
    pd.testing.assert_frame_equal(_table(killed), _table(quiet))


def _batch_and_kill(study: Study, grader: str, seconds: float) -> bool:
    """Grade by batches in a process of its own; kill -9 it after so long. False: it was done."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, str(study.folder), grader, "batch"], cwd=ROOT
    )
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
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_killed_batch_is_found_again(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, provider: str, kills: int
) -> None:
    grader = claude if provider == "anthropic" else server.openai
    quiet = marked_study(pairs=20, name="quiet")
    grade(quiet, [grader], wait_scale=0.001)
    server.calls.clear()
    server.batches.looks = 12
    server.batches.delay = 0.05
    killed = marked_study(pairs=20, name="killed")
    began = time.monotonic()
    _batch_and_kill(killed, grader, 0.0)
    started = 0
    for _ in range(kills):
        # A start takes about so long; what comes after it is where the instants matter.
        seconds = random.uniform(0.8, 2.2)
        print("killed after", seconds)
        started += _batch_and_kill(killed, grader, seconds)
    print(started, "of", kills, "killed in", time.monotonic() - began)
    server.batches.looks = 1
    summary = grade(killed, [grader], batch=True, wait_scale=0.001)
    assert summary.stopped == ()
    pd.testing.assert_frame_equal(_table(killed), _table(quiet))
    asked = Counter(call.unit for call in server.batches.calls)
    assert set(asked.values()) == {1}, "a batch was sent twice"
    live = Counter(call.unit for call in server.calls)
    assert sum(live.values()) <= kills + 2  # the one asked alone before the batch, each time
