"""Other processes, for what a long analysis can do side by side."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from types import ModuleType
from typing import Any

from evenhand.errors import InputError

__all__ = ["workers"]

_PER_CORE = 2
"""More processes than cores: three rubrics on two cores then end together."""
_MOST = 61  # processes that Windows can wait for
_IMPORTED = [
    "evenhand.analysis.one_rubric",
    "krippendorff",
    "pandas",
    "scipy.stats",
    "sklearn.metrics",
    "statsmodels.stats.inter_rater",
]
"""What each would import for itself; a fork server does it once, while the labels are read."""


class _Workers(ProcessPoolExecutor):
    """Processes; once they have been given work, this process has time for something else."""

    meanwhile: Callable[[], None] | None = None

    def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
        """Starts a process where all are at work. A process runs the program's main module again,
        unless there is none: nothing of it is needed, and who knows what it does."""
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return super().submit(*arguments, **options)
        finally:
            sys.modules["__main__"] = main

    def map(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        results = super().map(*arguments, **options)
        if self.meanwhile:
            self.meanwhile()
        return results


@contextmanager
def workers(meanwhile: Callable[[], None] | None = None) -> Iterator[Executor | None]:
    """Processes to share work with, or None on a machine with one core.

    They are no copies of this process, as it may have threads. `meanwhile` is what this process
    does while they are at work. Raises InputError where one of them ends early.
    """
    cores = os.cpu_count() or 1
    if cores < 2:
        yield None
        return
    others = multiprocessing.active_children()
    with _Workers(min(_PER_CORE * cores, _MOST), _context(), _stay_with_parent) as pool:
        pool.meanwhile = meanwhile
        try:
            yield pool
        except BrokenProcessPool:
            raise InputError(
                "a process that had a part of the work ended early, as happens where memory is "
                "short; close other programs and run this again"
            ) from None
        except BaseException:
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()  # nobody waits for the rest
            raise


def _context() -> BaseContext:
    """A server to fork from where that is safe: the libraries of other systems do not bear it."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    # The server would otherwise be interrupted with this process, while it still imports.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    forkserver.ensure_running()
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return context


def _stay_with_parent() -> None:
    """End when the parent does, however it ends; leave a keyboard's interrupt to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
