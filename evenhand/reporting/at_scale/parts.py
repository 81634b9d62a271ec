"""The work on parts of the ratings, the same for every engine: pure functions of Arrow tables.

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
from evenhand.study.tables.pieces import ROW, Piece, batches_of
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
    its number of rows and the first of them; and the columns that are filled in.
    """

    cells: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    rows: int = 0

    def __add__(self, other: Facts) -> Facts:
        cells = dict(self.cells)
        for key, (times, first) in other.cells.items():
            known = cells.get(key, (0, first))
            cells[key] = known[0] + times, min(known[1], first)
        return Facts(cells, self.filled | other.filled, self.rows + other.rows)

    def table(self) -> pd.DataFrame:
        """The distinct cells, in the order of the rows that have them first; `times` counts them,
        and the index says where."""
        import pandas as pd

        ordered = sorted(self.cells.items(), key=lambda cell: (cell[1][1], cell[0]))
        rows = [(*key, times) for key, (times, _) in ordered]
        index = [first for _, (_, first) in ordered]
        frame = pd.DataFrame(rows, columns=[*_KEYS, "times"], index=index)
        return frame.astype(dict.fromkeys(_KEYS, "str"))


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
        yield _folded(table, reading.no_label)


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
    """The rows of the raters that were named, with the kinds they were given, and of adjudicators.

    Raises InputError where the rows say another kind.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rater = table.column("rater_id").combine_chunks().dictionary_encode()
    others = kinds.get(EVERYBODY, "")
    named = [kinds.get(name, others) for name in rater.dictionary.to_pylist()]
    given = pa.array(named, pa.string()).take(rater.indices)
    if "rater_kind" not in table.column_names:
        table = table.append_column("rater_kind", given)
        return table.filter(pc.not_equal(given, ""))
    at, own = table.column_names.index("rater_kind"), table.column("rater_kind").combine_chunks()
    clash = pc.and_(pc.not_equal(given, ""), pc.not_equal(given, own))
    if pc.any(clash).as_py():
        row = pc.index(clash, True).as_py()
        name, kind = table.column("rater_id")[row].as_py(), own[row].as_py()
        raise InputError(f"{name!r} is named as {given[row].as_py()}, but its rater_kind is {kind}")
    counts = pc.or_(pc.not_equal(given, ""), pc.equal(own, "adjudicator"))
    return table.set_column(at, "rater_kind", own).filter(counts)


def facts_of(table: pa.Table) -> Facts:
    """The facts of some rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(table):
        return Facts()
    empty = pa.array(np.full(len(table), ""), pa.string())
    keys = {n: table.column(n) if n in table.column_names else empty for n in _KEYS}
    found = pa.table({**keys, ROW: table.column(ROW)}).group_by(list(_KEYS))
    counted = found.aggregate([(ROW, "count"), (ROW, "min")]).to_pylist()
    cells = {
        tuple(cell[n] for n in _KEYS): (cell[f"{ROW}_count"], cell[f"{ROW}_min"])
        for cell in counted
    }
    filled = {
        name
        for name in table.column_names
        if name != ROW and pc.any(pc.not_equal(table.column(name), "")).as_py()
    }
    return Facts(cells, filled, len(table))


def scattered(
    table: pa.Table, parts: int, kinds: Mapping[str, str] | None = None
) -> list[pa.Table]:
    """Split the rows that count by the part of their unit: a hash of its id, the same on every
    machine. `kinds` are those of the raters named, if any were.
    """
    import pandas as pd

    table = _of_named(table, kinds) if kinds else table
    hashed = pd.util.hash_array(np.asarray(table.column("unit_id").to_pylist(), dtype=object))
    part = hashed % np.uint64(parts)
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(parts + 1, dtype=np.uint64))
    ordered = table.take(order)
    return [ordered.slice(ends[k], ends[k + 1] - ends[k]) for k in range(parts)]


def reduce_part(tables: Sequence[pa.Table], how: Reduction) -> dict[str, Reduced]:
    """The reduced table of each rubric that the rows of some units are under.

    Raises InputError naming the first row that breaks a rule of ratings.
    """
    import pyarrow as pa

    kept = [name for name in dict.fromkeys((*COLUMNS, how.reading.cluster)) if name in how.filled]
    held = [_with(table, kept) for table in tables if len(table)]
    if not held:
        return {}
    rows = pa.concat_tables(held)
    rows = rows.sort_by([(name, "ascending") for name in _sorted_by(kept)])
    frame = rows.select(kept).to_pandas().astype("str")
    frame.index = rows.column(ROW).to_numpy()
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


def parts_for(pieces: Sequence[Piece], part_rows: int, most: int) -> int:
    """Return the number of parts to scatter ratings into: of about `part_rows` each, where the
    number of ratings is known.
    """
    known = [piece.rows for piece in pieces]
    if None in known:
        return most // 4
    return int(min(max(sum(rows or 0 for rows in known) // part_rows, 1), most))
