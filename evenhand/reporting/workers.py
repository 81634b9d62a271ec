"""Run functions in other processes: to share a long analysis (`workers`), or to keep long work
from delaying annotators' pages (`run_apart`, `StandBy`).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from types import ModuleType
from typing import Any, TypeVar, cast

from evenhand.errors import InputError, StoreAway
from evenhand.texts import written

Result = TypeVar("Result")

_PER_CORE = 2  # processes, so that of three rubrics on two cores none waits for another to end
_LOW_PRIORITY = 10  # as an increment of `nice`
_MEDIUM_PRIORITY = 5  # for what a lead waits for: between annotators' pages and the analysis
_PRELOADED = [  # each process needs these; a fork server imports them once
    "evenhand.__main__",  # sets that Python collects garbage rarely
    "evenhand.analysis.all_rubrics",
    "krippendorff",
    "pandas",
    "scipy.stats",
    "sklearn.metrics",
    "statsmodels.stats.inter_rater",
]
_ENDED_EARLY = (
    "a worker process ended early, as happens when memory runs out; close other programs and run "
    "this again"
)
MOST_SECONDS = 120  # seconds of computing that a file uploaded on a page may take in its process
MOST_MEMORY = 3 * 1024**3  # bytes
_TOO_MUCH = (
    f"this takes more than {MOST_SECONDS} seconds of computing or {MOST_MEMORY // 1024**3} GB of "
    "memory; make the file smaller, or use the command line, which has no such limit"
)
_starting = threading.Lock()  # held while a process is started: `_detached` changes globals
_turns = threading.Condition()  # of `one_at_a_time`; it guards the two below
_running: set[object] = set()  # persons with a running process
_latest: dict[object, object] = {}  # the latest turn of each person with one: a unique object


class _Workers(ProcessPoolExecutor):
    """A pool of processes that may be started while this one has threads, and that end with it."""

    def __init__(self, count: int, context: BaseContext, priority: int = 0) -> None:
        super().__init__(count, context, initializer=_set_up_process, initargs=(priority,))
        self._earlier_processes = multiprocessing.active_children()

    def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
        """Submit a task, for which another process may be started."""
        with _detached():
            future = super().submit(*arguments, **options)
            super().submit(os.getpid)  # any task: the pool only then watches a process it started
            return future

    def end(self) -> None:
        """End the processes, whatever they are doing."""
        for process in multiprocessing.active_children():
            if process not in self._earlier_processes:
                process.terminate()
        self.shutdown()


@contextmanager
def workers() -> Iterator[Executor | None]:
    """Yield two processes for each core to share work with, or None on a machine with one core.
    They are no forks of this process, as it may have threads. Raises InputError if one ends early.
    """
    cores = os.cpu_count() or 1
    if cores < 2:
        yield None
        return
    with _Workers(_PER_CORE * cores, _safe_context()) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise InputError(_ENDED_EARLY) from None
        except BaseException:
            pool.end()  # the remaining tasks are not needed
            raise


def _safe_context() -> BaseContext:
    """Return a start method that is safe with threads: a fork server on Linux, else "spawn"."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")  # the libraries of macOS allow no fork
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    # Without this, an interrupt of this process would also end the server while it imports.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    with _detached():
        forkserver.ensure_running()
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return context


def run_apart(
    function: Callable[..., Result],
    *arguments: object,
    on_stage: Callable[[str], None] | None = None,
    is_limited: bool = False,
) -> Result:
    """Run a function of a module in another process with low priority, and return its result.
    With `is_limited` the process ends after `MOST_SECONDS` or beyond `MOST_MEMORY`.

    With `on_stage` the function is called with an `on_stage`, whose calls are passed on to this
    one. Modules that the function imports are not loaded here. Raises the function's InputError or
    StoreAway; InputError naming the file of an OSError, or if the process was ended from outside;
    and RuntimeError with the traceback of any other error.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    # A daemon, so that this process can end before it.
    answer_arguments = (sender, function, arguments, on_stage is not None, is_limited)
    process = context.Process(target=_answer, args=answer_arguments, daemon=True)
    with receiver:
        with sender, _detached():
            process.start()
        try:
            while isinstance(message := receiver.recv(), str):  # a stage
                if on_stage:
                    on_stage(message)
            result, error = message  # the last message; the error is None without one
        except EOFError:  # the process ended without one
            raise InputError(_TOO_MUCH if is_limited else _ENDED_EARLY) from None
        finally:
            process.join()
    if error is not None:
        raise error
    return cast("Result", result)


def _answer(
    sender: Connection[Any, Any],
    function: Callable[..., object],
    arguments: tuple[object, ...],
    sends_stages: bool,
    is_limited: bool,
) -> None:
    """Run the function of `run_apart` in its process: send stages, then a result and an error."""
    _set_up_process(_LOW_PRIORITY)
    if is_limited and sys.platform != "win32":  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    options = {"on_stage": sender.send} if sends_stages else {}
    try:
        sender.send((function(*arguments, **options), None))
    except (InputError, StoreAway) as error:
        sender.send((None, error))
    except Exception as error:
        reported: Exception = RuntimeError(traceback.format_exc())
        if isinstance(error, MemoryError):
            reported = InputError(_TOO_MUCH)
        elif isinstance(error, OSError) and error.filename and error.strerror:
            reported = InputError(f"{error.filename}: {error.strerror.lower()}")
        sender.send((None, reported))


@contextmanager
def one_at_a_time(person: object) -> Iterator[None]:
    """Wait until a person's running process has ended, so that each has one at most. Raises
    InputError if a newer turn of theirs comes meanwhile, as after a reload of the page.
    """
    turn = object()
    with _turns:
        _latest[person] = turn
        _turns.notify_all()
        _turns.wait_for(lambda: person not in _running or _latest.get(person) is not turn)
        if _latest.get(person) is not turn:
            raise InputError(written("lead.still_reading"))
        _running.add(person)
    try:
        yield
    finally:
        with _turns:
            _running.remove(person)
            if _latest.get(person) is turn:
                del _latest[person]
            _turns.notify_all()


class StandBy:
    """A process of lower priority for short, repeated tasks, one after the other. It starts with
    the first task, or with `prepare`. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: _Workers | None = None

    def ask(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run a function of a module in the process and return its result. Raises its exceptions,
        and InputError if the process was ended from outside; the next call starts another.
        """
        pool = self._started_pool()
        try:
            return cast("Result", pool.submit(function, *arguments).result())
        except BrokenProcessPool:
            with self._lock:
                if self._pool is pool:
                    self._pool = None
            raise InputError(_ENDED_EARLY) from None

    def prepare(self) -> None:
        """Start the process without waiting, before the first task."""
        self._started_pool().submit(os.getpid)  # any task

    def _started_pool(self) -> _Workers:
        """Return the pool, of one process, which is made if there is none."""
        with self._lock:
            if self._pool is None:
                self._pool = _Workers(1, multiprocessing.get_context("spawn"), _MEDIUM_PRIORITY)
            return self._pool


@contextmanager
def _detached() -> Iterator[None]:
    """Let processes that start in this block share only the search path with this one. Otherwise
    they would run the program's main module again, which may do anything, and would look for
    Python's own modules in the working folder first, which may hold a user's `statistics.py`.
    """
    with _starting:
        main, safe_path = sys.modules["__main__"], os.environ.get("PYTHONSAFEPATH")
        sys.modules["__main__"] = ModuleType("__main__")
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            if safe_path is None:
                del os.environ["PYTHONSAFEPATH"]
            else:
                os.environ["PYTHONSAFEPATH"] = safe_path


def _set_up_process(priority: int) -> None:
    """Set up a new process: its priority, its end with the parent's, and no keyboard interrupt."""
    if hasattr(os, "nice"):  # not on Windows
        os.nice(priority)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_after_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_after_parent, daemon=True).start()
