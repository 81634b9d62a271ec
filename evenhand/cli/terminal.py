"""What verbs print: tables and sentences on stdout, progress on stderr where a person watches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Report", "console", "print_table", "progress_bar", "working"]


class Report(Protocol):
    """How long work tells where it stands."""

    def __call__(self, done: int, total: int, label: str) -> None: ...


def console(*, stderr: bool = False) -> Console:
    """A console that wraps for people and leaves lines whole for programs."""
    from rich.console import Console

    found = Console(stderr=stderr, highlight=False, emoji=False, markup=False, soft_wrap=True)
    if not found.is_terminal:
        found.width = 200
    return found


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """A plain table; all columns but the first are numbers and stand to the right."""
    from evenhand.reporting.panel import text_table

    console().print(text_table(columns, rows, title=title), soft_wrap=False)


@contextmanager
def working(title: str) -> Iterator[None]:
    """A sign of life on stderr during work that cannot say how far it is."""
    with console(stderr=True).status(title):
        yield


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """A progress bar on stderr; silent where nobody watches."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    screen = console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, disable=not screen.is_terminal) as progress:
        task = progress.add_task(title, total=None)

        def report(done: int, total: int, label: str) -> None:
            progress.update(task, completed=done, total=total, description=label or title)

        yield report
