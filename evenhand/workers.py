"""Other processes, for what a long analysis can do side by side."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import forkserver
from typing import Any

from rubrics.errors import InputError

__all__ = ["workers"]

_PER_CORE = 2
"""More processes than cores: three rubrics on two cores then end together."""
_IMPORTED = [
    "analysis.one_rubric",
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

    def map(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        results = super().map(*arguments, **options)
        if self.meanwhile:
            self.meanwhile()
        return results


@contextmanager
def workers(meanwhile: Callable[[], None] | None = None) -> Iterator[Executor | None]:
    """Processes to share work with, or None on a machine with one core.

    They start fresh instead of as copies of this process, as it may have threads. `meanwhile` is
    what this process does while they are at work. Raises InputError where one is ended from
    outside.
    """
    cores = os.cpu_count() or 1
    if cores < 2:
        yield None
        return
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        context.set_forkserver_preload(_IMPORTED)
        forkserver.ensure_running()
    with _Workers(_PER_CORE * cores, context, _stay_with_parent) as pool:
        pool.meanwhile = meanwhile
        try:
            yield pool
        except BrokenProcessPool:
            raise InputError(
                "a process that had a part of the work was ended from outside, as happens where "
                "memory is short; close other programs and run this again"
            ) from None


def _stay_with_parent() -> None:
    """End when the parent does, however it ends; leave a keyboard's interrupt to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
