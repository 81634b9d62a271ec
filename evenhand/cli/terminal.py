"""Output of the verbs: tables and sentences on stdout, progress on stderr at a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.texts import visible, written

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.graders.running import Progress
    from evenhand.reporting.panel import Line


def console(*, stderr: bool = False) -> Console:
    """A console that wraps for people and leaves lines whole for programs."""
    from rich.console import Console

    class Terminal(Console):
        def print(self, *objects: Any, **how: Any) -> None:
            super().print(*(visible(o) if isinstance(o, str) else o for o in objects), **how)

        def on_broken_pipe(self) -> None:
            self.quiet = True
            _unheard(self.file)

    terminal = Terminal(stderr=stderr, highlight=False, emoji=False, markup=False, soft_wrap=True)
    if not terminal.is_terminal:
        terminal.width = 200
    return terminal


def say(key: str, /, **fields: object) -> None:
    """Print a sentence of `texts.toml`."""
    console().print(written(key, **fields))


def warn(key: str, /, **fields: object) -> None:
    """Print a sentence of `texts.toml` on stderr."""
    console(stderr=True).print(written(key, **fields))


def print_next(*steps: str) -> None:
    """Print the commands to run next, one on a line."""
    say("terminal.next", command="\n      ".join(f"evenhand {step}" for step in steps))


def _unheard(file: IO[str]) -> None:
    """Discard further output once its reader has closed it (`evenhand check ... | head`), so that
    the verb ends as it would have. Rich would exit with 1, which is the "not met" of `gate`.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


def print_line(text: str) -> None:
    """Print a line unchanged, with its tabs, for a pipe."""
    try:
        print(text, flush=True)  # noqa: T201
    except BrokenPipeError:
        _unheard(sys.stdout)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", ranked: bool = False
) -> None:
    """Print a plain table; all columns but the first are numbers, aligned to the right. Where the
    terminal is too narrow for it, there is less space between columns; then, where these are
    `ranked`, the last ones are left out and named. Else every row becomes a block of its own.
    """
    from rich.measure import Measurement

    from evenhand.reporting.panel import blocks_of, text_table

    screen, every = console(), range(len(columns))
    filled = [k for k in every if not k or {row[k] for row in rows if k < len(row)} - {"", "-"}]
    fewer = [filled[:count] for count in range(len(filled), 3, -1)] if ranked else []
    for places, padding in [(every, 1), (every, 0), *((some, 0) for some in fewer)]:
        cells = [[row[k] for k in places if k < len(row)] for row in rows]
        table = text_table([columns[k] for k in places], cells, title=title, padding=padding)
        wide = Measurement.get(screen, screen.options.update(max_width=10_000), table).maximum
        screen.width = screen.width if screen.is_terminal else max(wide, screen.width)
        if wide <= screen.width:
            screen.print(table, soft_wrap=False)
            if left := [columns[k] for k in filled if k not in places]:
                say("terminal.left_out", columns=", ".join(left))
            return
    for line in blocks_of(columns, rows, title=title, width=screen.width):
        screen.print(line)


def print_lines(lines: Iterable[Line], *, ranked: bool = False) -> None:
    """Print sentences and tables, in order; of tables that are too wide the last columns may be
    left out where these are `ranked`.
    """
    for line in lines:
        if isinstance(line, str):
            console().print(line)
        else:
            title, columns, rows = line
            print_table(columns, rows, title=title, ranked=ranked)


@contextmanager
def working(title: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr during work of unknown length.

    Yields a function that changes its title.
    """
    with console(stderr=True).status(visible(title)) as status:
        yield lambda title: status.update(visible(title))


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Show a progress bar on stderr; silent where it is not a terminal."""
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
        task = progress.add_task(visible(title), total=None)

        def advance(done: int, total: int, label: str) -> None:
            progress.update(task, completed=done, total=total, description=visible(label or title))

        yield advance


def agreed(budget: float | None) -> bool:
    """Ask at the terminal whether to go on; without one a budget says so. Raises InputError without
    either.
    """
    if not sys.stdin.isatty():
        if budget is None:
            raise InputError(written("reproduce.say_yes"))
        return True
    try:
        return input(f"{written('reproduce.go_on')} ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
