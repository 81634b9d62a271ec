"""The processes that share the work of a report."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from evenhand.analysis import AnalysisSettings, Scale
from evenhand.analysis.all_rubrics import analyse_rubrics
from evenhand.analysis.request import Request
from evenhand.errors import InputError
from evenhand.graders.providers import parse_spec
from evenhand.reporting.workers import MOST_MEMORY, StandBy, apart, one_at_a_time, workers
from harness.served import holds

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
from evenhand.reporting.workers import apart

threading.Thread(target=apart, args=(time.sleep, 600), daemon=True).start()
while not (children := multiprocessing.active_children()):
    time.sleep(0.01)
print(children[0].pid, flush=True)
time.sleep(float(sys.argv[1]))
"""
_BESIDE = """
import multiprocessing, time
from evenhand.reporting.workers import libraries_beside

with libraries_beside():
    print(multiprocessing.active_children()[0].pid, flush=True)
    time.sleep(600)
"""


def _takes_memory() -> None:
    bytearray(MOST_MEMORY)


def _takes_time() -> None:
    """Beyond a limit that is lowered, so that the test is fast."""
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass


def _ratings() -> pd.DataFrame:
    """Two rubrics with two annotators and a grader."""
    given = {
        ("human", "ann"): "yyyynnnnyy",
        ("human", "ben"): "yyynnnnnyn",
        ("model", "gpt"): "yynnnynnyy",
    }
    return pd.DataFrame(
        [
            {"unit_id": f"u{n}", "rubric": name, "rater_id": who, "rater_kind": kind, "label": key}
            for name, step in (("calm", 1), ("kind", 3))
            for (kind, who), keys in given.items()
            for n, key in enumerate((keys * 4)[::step])
        ]
    )


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_an_analysis_is_the_same_however_many_processes_share_it() -> None:
    scales = [Scale(name, ("y", "n"), affirmative=frozenset("y")) for name in ("calm", "kind")]
    request = Request(None, AnalysisSettings(resamples=200))
    alone = analyse_rubrics(_ratings(), scales, request)
    with workers() as pool:
        assert pool is not None
        shared = analyse_rubrics(_ratings(), scales, request, pool=pool)
    assert set(shared.results["rubric"]) == {"calm", "kind"}
    pd.testing.assert_frame_equal(shared.results, alone.results)
    assert (shared.verdicts, shared.notes) == (alone.verdicts, alone.notes)


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_after_an_error_nobody_waits_for_the_rest() -> None:
    def fail() -> None:
        with workers() as pool:
            assert pool is not None
            pool.submit(time.sleep, 600)
            pool.submit(parse_spec, "nonsense").result()

    with pytest.raises(InputError, match="is not a valid grader"):
        fail()


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_a_process_ended_from_outside_is_one_clear_sentence() -> None:
    def end_one() -> None:
        with workers() as pool:
            assert pool is not None
            pool.submit(os._exit, 1).result()

    with pytest.raises(InputError, match="memory runs out"):
        end_one()


def test_a_single_core_works_alone() -> None:
    with workers() as pool:
        assert pool is None


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core shares nothing")
@pytest.mark.parametrize("program", [_SHARING, _APART, _BESIDE], ids=["sharing", "apart", "beside"])
def test_no_process_outlives_its_parent(tmp_path: Path, program: str) -> None:
    with _at_work(tmp_path, program, seconds=600) as parent:
        worker = _worker_of(parent)
        assert _runs(worker)
        parent.send_signal(signal.SIGKILL)
    assert _ends(worker)


def test_a_program_that_ends_waits_for_nothing_apart(tmp_path: Path) -> None:
    with _at_work(tmp_path, _APART, seconds=0) as parent:
        worker = _worker_of(parent)
        assert parent.wait(timeout=30) == 0
    assert _ends(worker)


# ---- apart --------------------------------------------------------------------------------------


def _tell(count: int, on_stage: Callable[[str], None]) -> int:
    for stage in range(count):
        on_stage(f"stage {stage}")
    return os.getpid()


@pytest.mark.slow
def test_what_is_told_apart_is_told_here_in_its_order() -> None:
    told: list[str] = []
    assert apart(_tell, 3, on_stage=told.append) != os.getpid()
    assert told == ["stage 0", "stage 1", "stage 2"]


def test_apart_is_another_process_of_lower_priority() -> None:
    assert apart(os.getpid) != os.getpid()
    assert apart(os.nice, 0) == min(os.nice(0) + 10, 19)


@pytest.mark.slow
def test_an_error_comes_back_as_it_was_or_with_its_traceback() -> None:
    with pytest.raises(InputError, match="is not a valid grader"):
        apart(parse_spec, "nonsense")
    with pytest.raises(RuntimeError, match=r"(?s)Traceback.*ValueError: invalid literal"):
        apart(int, "nonsense")
    with pytest.raises(InputError, match=r"^/none/such: no such file or directory$"):
        apart(os.mkdir, "/none/such")
    with pytest.raises(InputError, match="memory runs out"):
        apart(os._exit, 1)


def test_what_lies_in_the_working_folder_is_nobodys_module(here: Path, monkeypatch) -> None:
    for name in ("analysis", "signal", "statistics", "study"):
        (here / f"{name}.py").write_text("raise SystemExit('somebody else's')\n", "utf-8")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert apart(os.getcwd) == str(here)
    assert "PYTHONSAFEPATH" not in os.environ  # what else this program starts is its own affair


# ---- helpers ------------------------------------------------------------------------------------


def _at_work(home: Path, program: str, seconds: float) -> subprocess.Popen[str]:
    script = home / "at_work.py"
    script.write_text(program, "utf-8")
    command = [sys.executable, "-P", str(script), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _worker_of(parent: subprocess.Popen[str]) -> int:
    assert parent.stdout is not None
    return int(parent.stdout.readline())


def _ends(process: int) -> bool:
    return holds(lambda: not _runs(process), 30)


def _runs(process: int) -> bool:
    """Whether it is there and not merely unburied."""
    try:
        status = Path(f"/proc/{process}/stat").read_text("utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


# Standing by


@pytest.mark.slow
def test_who_stands_by_stays_and_gives_way() -> None:
    helper = StandBy()
    first = helper.ask(os.getpid)
    assert first != os.getpid()
    assert helper.ask(os.getpid) == first
    assert helper.ask(os.getpriority, os.PRIO_PROCESS, 0) > os.getpriority(os.PRIO_PROCESS, 0)
    with pytest.raises(InputError):
        helper.ask(parse_spec, "")


def test_after_one_that_was_ended_another_stands_by() -> None:
    helper = StandBy()
    first = helper.ask(os.getpid)
    with pytest.raises(InputError, match="a worker process ended early"):
        helper.ask(os._exit, 1)
    assert helper.ask(os.getpid) != first


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the system limits no process elsewhere")
@pytest.mark.parametrize("function", [_takes_memory, _takes_time])
def test_a_process_for_a_page_ends_at_its_limits(function: Callable[[], None]) -> None:
    with pytest.raises(InputError, match="make the file smaller"):
        apart(function, is_limited=True)


def test_each_lead_has_one_process_and_one_that_waits() -> None:
    """Of two that come meanwhile the later takes the place of the other, and gets its turn."""
    ends: list[str] = []
    is_refused = threading.Event()

    def ask() -> None:
        try:
            with one_at_a_time("ann"):
                ends.append("had its turn")
        except InputError as error:
            ends.append(str(error))
            is_refused.set()

    two = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
    with one_at_a_time("ann"), one_at_a_time("ben"):
        for thread in two:
            thread.start()
        assert is_refused.wait(60)
    for thread in two:
        thread.join(60)
    refusal = "Your last file is still being read. Wait until that is done, and try again."
    assert ends == [refusal, "had its turn"]
