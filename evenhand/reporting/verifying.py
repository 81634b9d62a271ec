"""Verification of estimates against other libraries, which another process loads meanwhile."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evenhand.reporting.workers import beside

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

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
    with beside(_answer) as ask:

        def begin(coded: Coded, weight: Array | None) -> Callable[[], list[Value]]:
            from evenhand.analysis.verification import library_values

            answer = ask(coded, weight)

            def values() -> list[Value]:
                if not answer.done():
                    meanwhile()
                try:
                    found: list[Value] = answer.result()
                except (EOFError, OSError):
                    return library_values(coded, weight)
                return found

            return values

        yield begin


def _answer(connection: Connection[Any, Any]) -> None:
    gc.disable()  # it lives for two seconds
    from evenhand.analysis.verification import libraries_are_here, library_values, load_libraries

    if libraries_are_here():
        load_libraries()
        while True:
            connection.send(library_values(*connection.recv()))
