"""Verification of estimates against other libraries, which another process loads meanwhile."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evenhand.reporting.workers import beside

if TYPE_CHECKING:
    from evenhand.analysis.labels.matrix import Coded
    from evenhand.analysis.types import Array
    from evenhand.analysis.verification import Libraries, Value


@contextmanager
def libraries_beside(meanwhile: Callable[[], None]) -> Iterator[bool | Libraries]:
    """Yield the `verify` argument of `evenhand.analysis.analyse`, with the libraries in a process
    of their own: enter it before anything else is loaded. `meanwhile` is called where their answer
    is not there yet.

    On a machine with one core they are loaded here, and where the process has ended, too.
    """
    if (os.cpu_count() or 1) < 2:
        yield True
        return
    with beside(_load) as process:

        def begin(coded: Coded, weight: Array | None) -> Callable[[], list[Value]]:
            from evenhand.analysis.verification import in_this_process, library_values

            here = in_this_process(coded, weight)
            try:
                answer = process.submit(library_values, coded, weight)
            except BrokenProcessPool:
                return here

            def values() -> list[Value]:
                if not answer.done():
                    meanwhile()
                try:
                    return answer.result()
                except BrokenProcessPool:
                    return here()

            return values

        yield begin


def _load() -> None:
    gc.disable()  # it lives for two seconds
    from evenhand.analysis.verification import load_libraries

    load_libraries()
