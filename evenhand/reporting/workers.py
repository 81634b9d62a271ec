"""Other processes: to share a long analysis, or to keep one from delaying people's pages."""

from __future__ import annotations

import gc
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
from typing import TYPE_CHECKING, Any, TypeVar, cast

from evenhand.errors import InputError, StoreAway
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.labels.matrix import Coded
    from evenhand.analysis.types import Array
    from evenhand.analysis.verification import Libraries, Value

Result = TypeVar("Result")

_PER_CORE = 2
"""More processes than cores: three rubrics on two cores then end together."""
_LOW_PRIORITY = 10
_WAITED_FOR = 5
"""The priority of a process on which the lead waits: between the annotators' and the figures'."""
_IMPORTED = [
    "evenhand.__main__",  # collects garbage rarely
    "evenhand.analysis.all_rubrics",
    "krippendorff",
    "pandas",
    "scipy.stats",
    "sklearn.metrics",
    "statsmodels.stats.inter_rater",
]
"""Modules that each process needs; a fork server imports them once, while the labels are read."""
_ENDED_EARLY = (
    "a worker process ended early, as happens when memory runs out; close other programs and run "
    "this again"
)
MOST_SECONDS = 120
"""Seconds of computing that a file from a page may take in its process, and bytes of memory."""
MOST_MEMORY = 3 * 1024**3
_TOO_MUCH = (
    f"this takes more than {MOST_SECONDS} seconds of computing or {MOST_MEMORY // 1024**3} GB of "
    "memory; make the file smaller, or use the command line, which has no such limit"
)
_starting = threading.Lock()
_turns = threading.Condition()
_at_work: set[object] = set()
_newest: dict[object, object] = {}
"""Who has a process at work, and who of those that wait for theirs came last."""


# ---- sharing ------------------------------------------------------------------------------------


class _Workers(ProcessPoolExecutor):
    """Processes that may be started while this one has threads, and that end with it."""

    def __init__(self, count: int, context: BaseContext, priority: int = 0) -> None:
        super().__init__(count, context, _begin, (priority,))
        self._others = multiprocessing.active_children()

    def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
        """Starts a process where all are at work."""
        with _detached():
            return super().submit(*arguments, **options)

    def end(self) -> None:
        """End the processes, whatever they are doing."""
        for process in multiprocessing.active_children():
            if process not in self._others:
                process.terminate()
        self.shutdown()


@contextmanager
def workers() -> Iterator[Executor | None]:
    """Processes to share work with, or None on a machine with one core.

    They are no copies of this process, as it may have threads; there are two for each core. Raises
    InputError where one of them ends early.
    """
    cores = os.cpu_count() or 1
    if cores < 2:
        yield None
        return
    with _Workers(_PER_CORE * cores, _context()) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise InputError(_ENDED_EARLY) from None
        except BaseException:
            pool.end()  # no one waits for the rest
            raise


def _context() -> BaseContext:
    """A server to fork from where that is safe: the libraries of macOS do not bear it."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    # The server would otherwise be interrupted with this process, while it still imports.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    with _detached():
        forkserver.ensure_running()
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return context


# ---- estimates of other libraries ---------------------------------------------------------------


@contextmanager
def libraries_beside() -> Iterator[bool | Libraries]:
    """Yield the `verify` argument of `evenhand.analysis.analyse`, with the libraries in a process
    of their own: enter it before anything else is loaded. A report is prepared while their answer
    is not there yet.

    On a machine with one core they are loaded here, and where the process has ended, too.
    """
    if (os.cpu_count() or 1) < 2:
        yield True
        return
    pool = _Workers(1, multiprocessing.get_context("spawn"))

    def begin(coded: Coded, weight: Array | None) -> Callable[[], list[Value]]:
        from evenhand.analysis.verification import in_this_process, library_values

        analyses = in_this_process(coded, weight)
        try:
            answer = pool.submit(library_values, coded, weight)
        except BrokenProcessPool:
            return analyses

        def values() -> list[Value]:
            if not answer.done():  # meanwhile
                from evenhand.analysis.report import prepare_report

                prepare_report()
            try:
                return cast("list[Value]", answer.result())
            except BrokenProcessPool:
                return analyses()

        return values

    try:
        pool.submit(_load)
        yield begin
    finally:
        pool.end()  # whatever it is doing


def _load() -> None:
    from evenhand.analysis.verification import load_libraries

    gc.disable()  # it lives for two seconds
    load_libraries()


# ---- apart --------------------------------------------------------------------------------------


def apart(
    function: Callable[..., Result],
    *arguments: object,
    on_stage: Callable[[str], None] | None = None,
    is_limited: bool = False,
) -> Result:
    """Run a function of a module in a process of its own with low priority, and return its result.
    One that `is_limited` ends where it takes more than `MOST_SECONDS` or `MOST_MEMORY`.

    With `on_stage` the function gets an `on_stage` of its own, whose calls are passed on to this
    one. Nothing that it imports is loaded here, and it does not delay what waits for this process.
    Raises the InputError or StoreAway that it raised, InputError naming the file that the system
    did not let it use, RuntimeError with the traceback of any other error, and InputError where the
    process was ended from outside.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    # A daemon, so that this process need not wait for it when it wants to end.
    asked = (sender, function, arguments, on_stage is not None, is_limited)
    process = context.Process(target=_answer, args=asked, daemon=True)
    with receiver:
        with sender, _detached():
            process.start()
        try:
            while isinstance(answer := receiver.recv(), str):
                if on_stage:
                    on_stage(answer)
            result, error = answer
        except EOFError:
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
    tells: bool,
    is_limited: bool,
) -> None:
    """Run the function of `apart` in its process: send stages, then a result and an error."""
    _begin(_LOW_PRIORITY)
    if is_limited and sys.platform != "win32":  # where the system can end it
        import resource

        for kind, most in ((resource.RLIMIT_CPU, MOST_SECONDS), (resource.RLIMIT_AS, MOST_MEMORY)):
            resource.setrlimit(kind, (most, most))
    options = {"on_stage": sender.send} if tells else {}
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
def one_at_a_time(whose: object) -> Iterator[None]:
    """Let each person have one process at work, and wait for the one before. Raises InputError
    where another came to wait meanwhile: a page that was asked again needs its last answer only.
    """
    turn = object()
    with _turns:
        _newest[whose] = turn
        _turns.notify_all()
        _turns.wait_for(lambda: whose not in _at_work or _newest.get(whose) is not turn)
        if _newest.get(whose) is not turn:
            raise InputError(written("lead.still_reading"))
        _at_work.add(whose)
    try:
        yield
    finally:
        with _turns:
            _at_work.remove(whose)
            if _newest.get(whose) is turn:
                del _newest[whose]
            _turns.notify_all()


# ---- standing by --------------------------------------------------------------------------------


class StandBy:
    """A process of low priority that stays, for short tasks that come again and again.

    It starts with the first task, or with `prepare`, and does one after the other. Safe under many
    threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: _Workers | None = None

    def ask(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run a function of a module in the process and return its result. Raises what it raises,
        and InputError where the process was ended from outside; the next call starts another.
        """
        pool = self._present()
        try:
            return cast("Result", pool.submit(function, *arguments).result())
        except BrokenProcessPool:
            with self._lock:
                if self._pool is pool:
                    self._pool = None
            raise InputError(_ENDED_EARLY) from None

    def prepare(self) -> None:
        """Start the process without waiting: a task is about to come."""
        self._present().submit(os.getpid)

    def _present(self) -> _Workers:
        with self._lock:
            if self._pool is None:
                self._pool = _Workers(1, multiprocessing.get_context("spawn"), _WAITED_FOR)
            return self._pool


# ---- all ----------------------------------------------------------------------------------------


@contextmanager
def _detached() -> Iterator[None]:
    """Let processes that start meanwhile share nothing with this one but the search path.

    They would run the program's main module again, unless there is none: nothing of it is needed,
    and it may do anything. And Python would look for its own modules in the working folder first,
    which may hold a user's `statistics.py`.
    """
    with _starting:
        main, safe = sys.modules["__main__"], os.environ.get("PYTHONSAFEPATH")
        sys.modules["__main__"] = ModuleType("__main__")
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            if safe is None:
                del os.environ["PYTHONSAFEPATH"]
            else:
                os.environ["PYTHONSAFEPATH"] = safe


def _begin(priority: int) -> None:
    """Begin as a process of this priority, which ends when its parent does, however that ends, and
    leaves a keyboard's interrupt to it.
    """
    if hasattr(os, "nice"):  # on Windows all are alike
        os.nice(priority)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_after_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_after_parent, daemon=True).start()
