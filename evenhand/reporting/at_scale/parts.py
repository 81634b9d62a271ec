"""The work on parts of the ratings: pure functions of Arrow tables, which Dask may repeat.

Ratings are scattered by a hash of their unit first, as a unit's ratings need not be next to each
other; then each part is reduced by itself, and the reduced tables are added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.labels.reduced import Raters, Reduced, merged, reduce_ratings
from evenhand.analysis.labels.scale import Scale
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.cleaning import NO_LABEL
from evenhand.reporting.ratings_file.roles import EVERYBODY
from evenhand.study.tables.columns import INCLUSION
from evenhand.study.tables.decoded import check_part
from evenhand.study.tables.pieces import PIECE_ROWS, ROW, Piece, batches_of
from evenhand.study.tables.ratings import RATINGS_COLUMNS, split_ratings
from evenhand.study.tables.spellings import folded

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

UNUSED = ("seconds", "created_at", "rubric_hash")
"""Columns of ratings that no statistic here takes; of the hash only how many there are matters."""
COLUMNS = tuple(name for name in RATINGS_COLUMNS if name not in UNUSED)
_KEYS = ("rubric", "rater_id", "rater_kind", "prob_method", "label", "rubric_hash")
_REPEATED = ("unit_id", "rater_id", "order", "draw")


@dataclass(frozen=True)
class Reading:
    """Instructions for reading ratings: the source's names of our columns, its column for the
    cluster ("" where every unit is its own), and the kind of each rater named; others are left out.
    """

    source: str
    theirs: Mapping[str, str]
    cluster: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)
    no_label: frozenset[str] = NO_LABEL
    """Labels that say that there is none, in lower case."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that are read."""
        extra = (self.cluster,) if self.cluster else ()
        return (*COLUMNS, "item_id", "rubric_hash", INCLUSION, *extra)


@dataclass
class Facts:
    """Facts about all ratings that are needed before any are reduced: the distinct cells, each with
    the first of its rows; and the columns that are filled in.
    """

    cells: dict[tuple[str, ...], int] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    rows: int = 0

    def __add__(self, other: Facts) -> Facts:
        cells = self.cells | other.cells
        for key in self.cells.keys() & other.cells.keys():
            cells[key] = min(self.cells[key], other.cells[key])
        return Facts(cells, self.filled | other.filled, self.rows + other.rows)

    def table(self) -> pd.DataFrame:
        """The distinct cells in the order of their first rows, which the index says."""
        import pandas as pd

        ordered = sorted(self.cells, key=lambda key: (self.cells[key], key))
        index = [self.cells[key] for key in ordered]
        return pd.DataFrame(ordered, columns=list(_KEYS), index=index).astype("str")


@dataclass(frozen=True)
class Reduction:
    """Instructions for reducing parts: every rubric's scale and raters. A source without rubrics
    has all of its ratings under the only one.
    """

    reading: Reading
    scales: Mapping[str, Scale]
    raters: Mapping[str, Raters]
    filled: frozenset[str]
    is_unnamed: bool


def read_piece(piece: Piece, reading: Reading) -> Iterator[pa.Table]:
    """The rows of a piece, under our names."""
    for table in batches_of(piece, reading.theirs):
        if "unit_id" not in table.column_names and "item_id" in table.column_names:
            names = ["unit_id" if n == "item_id" else n for n in table.column_names]
            table = table.rename_columns(names)
        elif "item_id" in table.column_names:
            table = table.drop_columns(["item_id"])
        yield _of_named(_folded(table, reading.no_label), reading.kinds)


def read_parts(piece: Piece, reading: Reading, parts: int) -> tuple[Facts, list[pa.Table]]:
    """A piece's facts, and its rows by the part of their unit.

    Raises InputError where a worker cannot hold all of it.
    """
    import pyarrow as pa

    tables: list[pa.Table] = []
    size = rows = 0
    for read in read_piece(piece, reading):
        tables.append(read)
        size, rows = size + read.nbytes, rows + len(read)
        check_part(size, rows, PIECE_ROWS, piece.name)
    if not rows:
        return Facts(), []
    table = pa.concat_tables(tables).combine_chunks()
    return facts_of(table), scattered(table, parts)


def one_part(piece: tuple[Facts, list[pa.Table]], part: int) -> pa.Table | None:
    """The rows of one part: a copy, as a slice would be sent with all that it is cut from."""
    return piece[1][part].take(np.arange(len(piece[1][part]))) if piece[1] else None


def _folded(table: pa.Table, no_label: frozenset[str]) -> pa.Table:
    """The rows with items, raters and labels in one spelling where nobody sees a difference, and
    without labels that say that there is none.
    """
    import pyarrow as pa

    for name in ("unit_id", "rater_id", "label"):
        if name not in table.column_names:
            continue
        at = table.column_names.index(name)
        coded = table.column(name).combine_chunks().dictionary_encode()
        texts = [folded(text) for text in coded.dictionary.to_pylist()]
        if name == "label":
            texts = ["" if text.casefold() in no_label else text for text in texts]
        if texts != coded.dictionary.to_pylist():
            table = table.set_column(at, name, pa.array(texts, pa.string()).take(coded.indices))
    return table


def _of_named(table: pa.Table, kinds: Mapping[str, str]) -> pa.Table:
    """The rows with the kinds that raters were given, "" for those who were not named and are no
    adjudicators; as they are where none were named.

    Raises InputError where the rows say another kind.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not kinds:
        return table
    rater = table.column("rater_id").combine_chunks().dictionary_encode()
    others = kinds.get(EVERYBODY, "")
    named = [kinds.get(name, others) for name in rater.dictionary.to_pylist()]
    given = pa.array(named, pa.string()).take(rater.indices)
    if "rater_kind" not in table.column_names:
        return table.append_column("rater_kind", given)
    at, own = table.column_names.index("rater_kind"), table.column("rater_kind").combine_chunks()
    clash = pc.and_(pc.not_equal(given, ""), pc.not_equal(given, own))
    if pc.any(clash).as_py():
        row = pc.index(clash, True).as_py()
        name, kind = table.column("rater_id")[row].as_py(), own[row].as_py()
        raise InputError(f"{name!r} is named as {given[row].as_py()}, but its rater_kind is {kind}")
    counts = pc.or_(pc.not_equal(given, ""), pc.equal(own, "adjudicator"))
    return table.set_column(at, "rater_kind", pc.if_else(counts, own, ""))


def facts_of(table: pa.Table) -> Facts:
    """The facts of some rows."""
    import pyarrow.compute as pc

    if not len(table):
        return Facts()
    found = _with(table, _KEYS).group_by(list(_KEYS)).aggregate([(ROW, "min")]).to_pylist()
    cells = {tuple(cell[n] for n in _KEYS): cell[f"{ROW}_min"] for cell in found}
    filled = {
        name
        for name in table.column_names
        if name != ROW and pc.any(pc.not_equal(table.column(name), "")).as_py()
    }
    return Facts(cells, filled, len(table))


def scattered(table: pa.Table, parts: int) -> list[pa.Table]:
    """Split rows by the part of their unit: a hash of its id, the same on every machine."""
    import pandas as pd

    hashed = pd.util.hash_array(np.asarray(table.column("unit_id").to_pylist(), dtype=object))
    part = hashed % np.uint64(parts)
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(parts + 1, dtype=np.uint64))
    ordered = table.take(order)
    return [ordered.slice(ends[k], ends[k + 1] - ends[k]) for k in range(parts)]


def reduce_part(tables: Sequence[pa.Table | None], how: Reduction) -> dict[str, Reduced]:
    """The reduced table of each rubric that the rows of some units are under.

    Raises InputError naming the first row that breaks a rule of ratings.
    """
    import pyarrow as pa

    kept = [name for name in dict.fromkeys((*COLUMNS, how.reading.cluster)) if name in how.filled]
    held = [_with(table, kept) for table in tables if table is not None and len(table)]
    if not held:
        return {}
    rows = pa.concat_tables(held)
    rows = rows.sort_by([(name, "ascending") for name in _sorted_by(kept)])
    frame = rows.select(kept).to_pandas().astype("str")
    frame.index = rows.column(ROW).to_numpy()
    if how.reading.kinds:
        frame = frame[frame["rater_kind"] != ""]
    frame = frame.rename(columns={how.reading.cluster: "cluster_id"})
    if not frame.index.is_unique:  # rows of several files: their numbers say nothing alone
        frame = frame.reset_index(drop=True)
    for name in ("rater_kind", "label"):
        frame[name] = frame.get(name, "")
    ratings, units = split_ratings(frame, how.reading.source)
    clusters = units.set_index("unit_id")["cluster_id"] if "cluster_id" in units else None
    if clusters is not None and (clusters == "").any():
        raise InputError(
            f"{how.reading.source}: {how.reading.cluster} of unit "
            f"{clusters.index[int((clusters == '').argmax())]!r} is empty; every unit needs a "
            "cluster, or resample units with --cluster unit"
        )
    found = {}
    for name, scale in how.scales.items():
        own = ratings if how.is_unnamed else ratings[ratings["rubric"] == name]
        if len(own):
            found[name] = reduce_ratings(own, clusters, scale, how.raters[name], how.reading.source)
    return found


def _sorted_by(columns: Sequence[str]) -> list[str]:
    """Repeated readings are in one order, whatever the order of the rows, as sums of fractions
    depend on it; else rows are in that of the source."""
    repeated = {"order", "draw"} & set(columns)
    return [name for name in _REPEATED if name in columns] if repeated else [ROW]


def _with(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """A table with these columns, "" where it lacks one."""
    import pyarrow as pa

    empty = pa.array(np.full(len(table), ""), pa.string())
    has = set(table.column_names)
    cells = {name: table.column(name) if name in has else empty for name in columns}
    return pa.table({**cells, ROW: table.column(ROW)})


def add_up(parts: Sequence[Mapping[str, Reduced]]) -> dict[str, Reduced]:
    """The tables of all units together, by rubric."""
    names = sorted({name for part in parts for name in part})
    return {name: merged([part[name] for part in parts if name in part]) for name in names}
