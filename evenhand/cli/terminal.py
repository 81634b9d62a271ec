"""Output of the commands: tables and sentences on stdout, progress on stderr at a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.reporting.panel import Line, blocks_of, text_table
from evenhand.texts import visible, written

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.graders.running import Progress

_FILE_WIDTH = 200  # characters in a line of output that goes to a file or a pipe
_NO_LIMIT = 10_000  # characters: wider than any table


def console(*, stderr: bool = False) -> Console:
    """Return rich's console, which wraps lines at a terminal and leaves them whole otherwise."""
    from rich.console import Console

    class Terminal(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            printed = [visible(item) if isinstance(item, str) else item for item in objects]
            super().print(*printed, **options)

        def on_broken_pipe(self) -> None:
            self.quiet = True
            discard_output(self.file)

    terminal = Terminal(stderr=stderr, highlight=False, emoji=False, markup=False, soft_wrap=True)
    if not terminal.is_terminal:
        terminal.width = _FILE_WIDTH
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


def discard_output(file: IO[str]) -> None:
    """Discard further output after its reader has closed it (`evenhand check ... | head`), so that
    the command goes on to its own exit code. Rich would exit with 1, the "not met" of `gate`.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


def print_line(text: str) -> None:
    """Print a line unchanged, with its tabs."""
    try:
        print(text, flush=True)  # noqa: T201
    except BrokenPipeError:
        discard_output(sys.stdout)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table whose columns, except the first, are aligned to the right. If the terminal is
    too narrow, use less space between columns; else print every row as a block of lines.
    """
    from rich.measure import Measurement

    screen = console()
    for padding in (1, 0):
        table = text_table(columns, rows, title=title, padding=padding)
        width = Measurement.get(screen, screen.options.update(max_width=_NO_LIMIT), table).maximum
        if not screen.is_terminal:  # a file has lines of any width
            screen.width = max(width, screen.width)
        if width <= screen.width:
            screen.print(table, soft_wrap=False)
            return
    for line in blocks_of(columns, rows, title=title, width=screen.width):
        screen.print(line)


def print_lines(lines: Iterable[Line]) -> None:
    """Print sentences and tables, in order."""
    for line in lines:
        if isinstance(line, str):
            console().print(line)
        else:
            title, columns, rows = line
            print_table(columns, rows, title=title)


@contextmanager
def working(title: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr during work; yield a function that changes its title."""
    with console(stderr=True).status(visible(title)) as status:
        yield lambda title: status.update(visible(title))


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Show a progress bar on stderr, if that is a terminal; yield a function that advances it."""
    from rich import progress as bars

    screen = console(stderr=True)
    numbers = (bars.MofNCompleteColumn(), bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
    columns = (bars.TextColumn("{task.description}", markup=False), bars.BarColumn(), *numbers)
    with bars.Progress(*columns, console=screen, disable=not screen.is_terminal) as progress:
        task = progress.add_task(visible(title), total=None)

        def advance(done: int, total: int, label: str) -> None:
            progress.update(task, completed=done, total=total, description=visible(label or title))

        yield advance


def confirms(budget: float | None) -> bool:
    """Ask for consent. Without a terminal, a budget counts as consent; none raises InputError."""
    if not sys.stdin.isatty():
        if budget is None:
            raise InputError(written("reproduce.say_yes"))
        return True
    try:
        return input(f"{written('reproduce.go_on')} ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
