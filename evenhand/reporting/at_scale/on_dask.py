"""The Dask engine: the same work as tasks of a cluster, whose scheduler repeats lost ones.

Every task is a pure function of a piece of the source or of other tasks' results, so that those of
a worker that dies are computed again elsewhere. Workers need this package and the source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.analysis.bootstrap.pattern_resamples import Spread
from evenhand.analysis.bootstrap.resamples import Counts
from evenhand.analysis.labels.reduced import Reduced
from evenhand.errors import InputError
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
from evenhand.study.tables.decoded import check_part
from evenhand.study.tables.pieces import PIECE_ROWS, Piece

if TYPE_CHECKING:
    import pyarrow as pa

PART_ROWS = 500_000
MOST_PARTS = 4096
_PATIENCE = 10.0
"""Seconds until a scheduler must have answered."""
_TOGETHER = 8
"""Reduced tables that a task adds up."""


class OnDask:
    """Ratings on a cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._pieces: list[Any] = []
        self._parts = 1

    @property
    def pool(self) -> Executor:
        """The cluster, to share rubrics out to."""
        pool: Executor = self._client.get_executor(pure=False)
        return pool

    def scatter(self, pieces: Sequence[Piece], reading: Reading) -> Facts:
        """Read everything once; the rows stay with the workers."""
        self._parts, submit = parts_for(pieces, PART_ROWS, MOST_PARTS), self._client.submit
        self._pieces = [
            submit(_scatter, piece, reading, self._parts, pure=False) for piece in pieces
        ]
        facts = [submit(itemgetter(0), piece, pure=False) for piece in self._pieces]
        return sum(self._client.gather(facts), Facts())

    def reduce(self, how: Reduction) -> dict[str, Reduced]:
        """Reduce every part, and add up as a tree."""
        submit = self._client.submit
        how = submit(_itself, how, pure=False)
        found = [
            submit(
                _reduce,
                [submit(_part, piece, part, pure=False) for piece in self._pieces],
                how,
                pure=False,
            )
            for part in range(self._parts)
        ]
        self._pieces = []
        while len(found) > 1:
            groups = (found[at : at + _TOGETHER] for at in range(0, len(found), _TOGETHER))
            found = [submit(add_up, group, pure=False) for group in groups]
        reduced: dict[str, Reduced] = add_up([found[0].result()])
        return reduced

    @property
    def spread(self) -> Spread:
        """The workers, to share blocks of resamples out to."""
        return self._spread

    def _spread(self, draw: Callable[[int], Counts], blocks: Iterable[int]) -> list[Counts]:
        held = self._client.submit(_itself, draw, pure=False)
        drawn = [self._client.submit(_drawn, held, block, pure=False) for block in blocks]
        found: list[Counts] = self._client.gather(drawn)
        return found


@contextmanager
def on_dask(address: str) -> Iterator[OnDask]:
    """A cluster at an address, or one of this machine's processes where it is "".

    Raises InputError without the libraries, and where no cluster answers.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            'the dask engine needs Dask: pip install "evenhand[scale]"; --engine stream does the '
            "same on this machine without it"
        ) from None
    if address:
        try:
            client: Any = Client(address, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
        with client:
            yield OnDask(client)
        return
    cores = os.cpu_count() or 1
    with (
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=cores, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        yield OnDask(client)


def _scatter(piece: Piece, reading: Reading, parts: int) -> tuple[Facts, list[pa.Table]]:
    import pyarrow as pa

    tables: list[pa.Table] = []
    size = rows = 0
    for read in read_piece(piece, reading):
        tables.append(read)
        size, rows = size + read.nbytes, rows + len(read)
        check_part(size, rows, PIECE_ROWS, piece.name)  # a worker holds all of it
    if not tables:
        return Facts(), []
    table = pa.concat_tables(tables).combine_chunks()
    return facts_of(table), scattered(table, parts, reading.kinds)


def _part(piece: tuple[Facts, list[pa.Table]], part: int) -> pa.Table | None:
    """The rows of one part: a copy, as a slice would be sent with all that it is cut from."""
    if not piece[1]:
        return None
    rows = piece[1][part]
    return rows.take(np.arange(len(rows)))


def _reduce(tables: Sequence[pa.Table | None], how: Reduction) -> dict[str, Reduced]:
    return reduce_part([table for table in tables if table is not None], how)


def _itself(given: Any) -> Any:
    return given


def _drawn(draw: Callable[[int], Counts], block: int) -> Counts:
    return draw(block)
