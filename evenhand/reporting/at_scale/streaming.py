"""The streaming engine: parts of the ratings on this machine's disk, one after the other in memory.

Half of the work is to scatter the ratings, half to reduce them; both are shared by processes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.analysis.bootstrap.pattern_resamples import Spread
from evenhand.analysis.labels.reduced import Reduced
from evenhand.reporting.at_scale.parts import (
    Facts,
    Reading,
    Reduction,
    add_up,
    facts_of,
    parts_for,
    read_piece,
    reduce_part,
    scattered,
)
from evenhand.reporting.workers import workers
from evenhand.study.tables.pieces import Piece

if TYPE_CHECKING:
    import pyarrow as pa

PART_ROWS = 250_000
"""Approximate number of rows reduced at a time: some 300 MB."""
MOST_PARTS = 4096
"""Most files written at a time; a billion rows still have parts of the usual size."""
_WRITTEN = 500
"""Approximate number of rows written to a part at a time."""
_TOGETHER = 8
"""Reduced tables that are added up at a time."""


class Streaming:
    """Ratings on the way through a folder of this machine."""

    def __init__(self, folder: Path, pool: Executor | None) -> None:
        self._folder, self.pool = folder, pool
        self.spread: Spread | None = None  # blocks of resamples are drawn by threads
        self._parts = 1

    def scatter(self, pieces: Sequence[Piece], reading: Reading) -> Facts:
        """Read everything once."""
        self._parts = parts_for(pieces, PART_ROWS, MOST_PARTS)
        shares = min(len(pieces), os.cpu_count() or 1)
        work = partial(_scatter, folder=self._folder, reading=reading, parts=self._parts)
        given = [(n, pieces[n::shares]) for n in range(shares)]
        return sum((self.pool.map if self.pool else map)(work, given), Facts())

    def reduce(self, how: Reduction) -> dict[str, Reduced]:
        """Reduce every part, and add up as they come."""
        work = partial(_reduce, folder=self._folder, how=how)
        levels: list[list[dict[str, Reduced]]] = [[]]
        for found in (self.pool.map if self.pool else map)(work, range(self._parts)):
            levels[0].append(found)
            for level, held in enumerate(levels):  # like is added to like: a tree
                if len(held) == _TOGETHER:
                    levels += [[]] if level + 1 == len(levels) else []
                    levels[level + 1].append(add_up(held))
                    held.clear()
        return add_up([table for held in levels for table in held])


@contextmanager
def streaming() -> Iterator[Streaming]:
    """Processes, and a folder that is gone afterwards; TMPDIR says on which disk."""
    with (
        tempfile.TemporaryDirectory(prefix="evenhand-") as folder,
        workers(per_core=1) as pool,
    ):
        yield Streaming(Path(folder), pool)


def _scatter(
    given: tuple[int, Sequence[Piece]], folder: Path, reading: Reading, parts: int
) -> Facts:
    """Write one process's pieces into files of its own, one a part."""
    import pyarrow as pa

    number, pieces = given
    _allow_files(2 * parts)
    facts = Facts()
    with ExitStack() as files:
        writers: dict[tuple[int, tuple[str, ...]], pa.RecordBatchStreamWriter] = {}
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        for piece in pieces:
            for table in _gathered(read_piece(piece, reading), _WRITTEN * parts):
                facts += facts_of(table)
                for part, rows in enumerate(scattered(table, parts, reading.kinds)):
                    key = part, tuple(rows.column_names)
                    if key not in writers:
                        file = folder / f"{part}-{number}-{len(writers)}.arrow"
                        opened = files.enter_context(pa.OSFile(str(file), "wb"))
                        writer = pa.ipc.new_stream(opened, rows.schema, options=options)
                        writers[key] = files.enter_context(writer)
                    writers[key].write_table(rows)
    return facts


def _allow_files(count: int) -> None:
    """Raise the limit of open files by `count`, as far as the system lets this process."""
    try:
        import resource
    except ModuleNotFoundError:  # on Windows, where there is no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = soft + count
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))


def _gathered(tables: Iterator[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Join small tables into ones of at least `rows` rows; the last may have fewer."""
    import pyarrow as pa

    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= rows:
            yield pa.concat_tables(held).combine_chunks()
            held = []
    if held:
        yield pa.concat_tables(held).combine_chunks()


def _reduce(part: int, folder: Path, how: Reduction) -> dict[str, Reduced]:
    """Read one part again, reduce it, and take its files away."""
    import pyarrow as pa

    tables = []
    files = sorted(folder.glob(f"{part}-*.arrow"))
    for file in files:
        with pa.OSFile(str(file), "rb") as opened:
            tables.append(pa.ipc.open_stream(opened).read_all())
    found = reduce_part(tables, how) if tables else {}
    for file in files:
        file.unlink()
    return found
