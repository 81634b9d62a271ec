"""The processes that share the work of a report."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from evenhand.analysis import AnalysisSettings, Scale
from evenhand.analysis.all_rubrics import analyse_rubrics
from evenhand.analysis.request import Request
from evenhand.errors import InputError
from evenhand.graders.providers import parse_spec
from evenhand.reporting import workers
from harness.served import holds
from tests.cases import refused

# Without a guard: were a process to run it again, it would start processes without end.
_SHARING = """
import os, time
from evenhand.reporting.workers import workers

with workers() as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600)
    time.sleep(600)
"""
_APART = """
import multiprocessing, sys, threading, time
from evenhand.reporting.workers import run_apart

threading.Thread(target=run_apart, args=(time.sleep, 600), daemon=True).start()
while not (children := multiprocessing.active_children()):
    time.sleep(0.01)
print(children[0].pid, flush=True)
time.sleep(float(sys.argv[1]))
"""

# Two rubrics, each with two readings.
GIVEN = {"ann": "yyyynnnnyy", "ben": "yyynnnnnyn", "gpt": "yynnnynnyy"}
SCALES = [Scale(name, ("y", "n"), affirmative=frozenset("y")) for name in ("calm", "kind")]
RATINGS = pd.DataFrame(
    {
        "unit_id": f"u{n}",
        "rubric": name,
        "rater_id": who,
        "rater_kind": "model" if who == "gpt" else "human",
        "label": key,
    }
    for name, step in (("calm", 1), ("kind", 3))
    for who, keys in GIVEN.items()
    for n, key in enumerate((keys * 4)[::step])
)


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_an_analysis_is_the_same_however_many_processes_share_it():
    request = Request(None, AnalysisSettings(resamples=200))
    alone = analyse_rubrics(RATINGS, SCALES, request)
    with workers.workers() as pool:
        assert pool is not None
        shared = analyse_rubrics(RATINGS, SCALES, request, pool=pool)
    assert set(shared.results["rubric"]) == {"calm", "kind"}
    pd.testing.assert_frame_equal(shared.results, alone.results)
    assert (shared.verdicts, shared.notes) == (alone.verdicts, alone.notes)


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize(
    ("work", "told"),
    [((parse_spec, "nonsense"), "is not a valid grader"), ((os._exit, 1), "memory runs out")],
    ids=["an error", "ended from outside"],
)
def test_after_an_error_nobody_waits_for_the_rest(work, told):
    def fail() -> None:
        with workers.workers() as pool:
            assert pool is not None
            pool.submit(time.sleep, 600)
            pool.submit(*work).result()

    refused(told, fail)


def test_a_single_core_works_alone():
    with workers.workers() as pool:
        assert pool is None


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core shares nothing")
@pytest.mark.parametrize(
    ("program", "seconds"),
    [(_SHARING, 600), (_APART, 600), (_APART, 0)],
    ids=["sharing", "apart", "apart from one that ends"],
)
def test_no_process_outlives_its_parent(tmp_path, program, seconds):
    script = tmp_path / "at_work.py"
    script.write_text(program, "utf-8")
    command = [sys.executable, "-P", str(script), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        if seconds:
            assert _runs(worker)
            parent.send_signal(signal.SIGKILL)
        assert parent.wait(timeout=30) == (-signal.SIGKILL if seconds else 0)
    assert holds(lambda: not _runs(worker), 30)


def _runs(process: int) -> bool:
    """Whether it is there and not merely unburied."""
    try:
        status = Path(f"/proc/{process}/stat").read_text("utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _tell(count, on_stage):
    for stage in range(count):
        on_stage(f"stage {stage}")
    return os.getpid()


def test_apart_is_another_process_of_lower_priority(here, monkeypatch):
    """What lies in the working folder is none of its modules."""
    for name in ("analysis", "signal", "statistics", "study"):
        (here / f"{name}.py").write_text("raise SystemExit('somebody else's')\n", "utf-8")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert workers.run_apart(os.getcwd) == str(here)
    assert workers.run_apart(os.nice, 0) == min(os.nice(0) + 10, 19)
    kinds = (resource.RLIMIT_CPU, resource.RLIMIT_AS)
    for kind, most in zip(kinds, (workers.MOST_SECONDS, workers.MOST_MEMORY), strict=True):
        assert workers.run_apart(resource.getrlimit, kind) == resource.getrlimit(kind)
        assert workers.run_apart(resource.getrlimit, kind, is_limited=True) == (most, most)
    assert "PYTHONSAFEPATH" not in os.environ  # what else this program starts is its own affair


@pytest.mark.slow
def test_what_is_told_apart_is_told_here_in_its_order():
    told: list[str] = []
    assert workers.run_apart(_tell, 3, on_stage=told.append) != os.getpid()
    assert told == ["stage 0", "stage 1", "stage 2"]


@pytest.mark.journey
@pytest.mark.parametrize(
    ("error", "told", "work"),
    [
        (InputError, "is not a valid grader", (parse_spec, "nonsense")),
        (RuntimeError, r"(?s)Traceback.*ValueError: invalid literal", (int, "nonsense")),
        (InputError, r"^/none/such: no such file or directory$", (os.mkdir, "/none/such")),
        (InputError, "memory runs out", (os._exit, 1)),
    ],
)
def test_an_error_comes_back_as_it_was_or_with_its_traceback(error, told, work):
    with pytest.raises(error, match=told):
        workers.run_apart(*work)


def test_who_stands_by_stays_gives_way_and_is_replaced():
    helper = workers.StandBy()
    first = helper.ask(os.getpid)
    assert first != os.getpid()
    assert helper.ask(os.getpid) == first
    assert helper.ask(os.getpriority, os.PRIO_PROCESS, 0) > os.getpriority(os.PRIO_PROCESS, 0)
    refused("a worker process ended early", helper.ask, os._exit, 1)
    assert helper.ask(os.getpid) != first


def _takes_memory():
    bytearray(workers.MOST_MEMORY)


def _takes_time():
    """Beyond a limit that is lowered, so that the test is fast."""
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the system limits no process elsewhere")
@pytest.mark.parametrize("function", [_takes_memory, _takes_time])
def test_a_process_for_a_page_ends_at_its_limits(function):
    refused("make the file smaller", workers.run_apart, function, is_limited=True)


def test_each_lead_has_one_process_and_one_that_waits():
    """Of two that come meanwhile the later takes the place of the other, and gets its turn."""
    ends: list[str] = []
    is_refused = threading.Event()

    def ask() -> None:
        try:
            with workers.one_at_a_time("ann"):
                ends.append("had its turn")
        except InputError as error:
            ends.append(str(error))
            is_refused.set()

    two = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
    with workers.one_at_a_time("ann"), workers.one_at_a_time("ben"):
        for thread in two:
            thread.start()
        assert is_refused.wait(60)
    for thread in two:
        thread.join(60)
    refusal = "Your last file is still being read. Wait until that is done, and try again."
    assert ends == [refusal, "had its turn"]
