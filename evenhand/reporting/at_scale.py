"""`check` and `gate` with Dask: any number of ratings, analysed by their patterns of labels.

Every task is a pure function of a piece of the source or of other tasks' results, so that those of
a worker that dies are computed again elsewhere. Workers need this package and the source. Ratings
are scattered by a hash of their unit, as a unit's ratings need not be next to each other; then each
part is reduced by itself, and the reduced tables are added up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand import __version__
from evenhand.analysis.all_rubrics import analyse_reduced
from evenhand.analysis.labels.encoding import Reduced, by_kind, merged, reduce_ratings
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.report import ReportContext
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.columns import everybody_of, refuse_missing
from evenhand.reporting.ratings_file.declared import ScaleOptions, sidecar_path
from evenhand.reporting.ratings_file.labels import (
    NO_LABEL,
    RatingsInput,
    declared_scales,
    keep_named_raters,
    refuse_sets,
)
from evenhand.study.tables.columns import INCLUSION, folded, listed
from evenhand.study.tables.formats import (
    PIECE_ROWS,
    ROW,
    Piece,
    batches_of,
    check_part,
    pieces_of,
    source_name,
)
from evenhand.study.tables.ratings import RATINGS_COLUMNS, split_ratings
from evenhand.texts import written

if TYPE_CHECKING:
    import pyarrow as pa

    from evenhand.reporting.analysing import Analysed

_PART = "check a part of the ratings"
REFUSED = {
    "units": ("--units", "put the column cluster_id into the ratings"),
    "wide": ("--wide", "write a row for each rating"),
    "sheet": ("--sheet", "save the sheet as a separate file"),
    "several": ("--several", "write each option as a separate rubric"),
    "normalise": ("--normalise", "correct labels where they are"),
    "slices": ("--slice", _PART),
    "groups": ("--set groups", _PART),
    "rater_slices": ("--set rater_slices", _PART),
    "variants": ("--set variants", _PART),
    "sensitivity_cluster": ("--set sensitivity_cluster", _PART),
    "sidecar": ("a file of settings", "move the ratings and declare their scale"),
    "weights": (f"the column {INCLUSION}", "take it out, and every item counts alike"),
    "numbers": ("a scale of numbers", "declare --categories"),
}
"""Options that need single ratings, and what to do instead (docs/millions.md)."""
PART_ROWS = 500_000
"""Approximate number of rows reduced at a time."""
MOST_PARTS = 4096
_PATIENCE = 10.0
"""Seconds until a scheduler must have answered."""
_TOGETHER = 8
"""Reduced tables that a task adds up."""
UNUSED = ("seconds", "created_at", "rubric_hash")
"""Columns of ratings that no statistic here takes; of the hash only how many there are matters."""
COLUMNS = tuple(name for name in RATINGS_COLUMNS if name not in UNUSED)
_KEYS = ("rubric", "rater_id", "rater_kind", "prob_method", "label", "rubric_hash")
_REPEATED = ("unit_id", "rater_id", "order", "draw")


def analyse_at_scale(
    source: str | Path,
    scale: ScaleOptions,
    *,
    engine: str,
    units: Path | None = None,
    verify: object = False,
    why: bool = False,
    on_stage: Callable[[str], None] | None = None,
    **changes: Any,
) -> Analysed:
    """Analyse a file, a folder of files, or an address that fsspec knows, as far as patterns of
    labels allow; the notes list what is left out, as `verify` and `why` are. `engine` is `dask` for
    processes of this machine, or `dask:` and the address of a scheduler; `changes` are settings of
    the analysis. Raises InputError as `analyse_file` does, and for what is `REFUSED`.
    """
    tell = on_stage or (lambda _: None)
    name, connected = source_name(str(source)), _connector(engine)
    is_local = "://" not in str(source)
    given = {**vars(scale), **changes, "units": units}
    given["sidecar"] = is_local and sidecar_path(Path(source)).is_file()
    _refuse(name, given)
    reading, pieces = _reading(str(source), name, scale, str(changes.get("cluster", "pair")))
    with connected() as client:
        submit = partial(client.submit, pure=False)
        tell("reading the labels")
        count = min(max(sum(piece.rows for piece in pieces) // PART_ROWS, 1), MOST_PARTS)
        read = [submit(read_parts, piece, reading, count) for piece in pieces]
        by_piece = client.gather([submit(itemgetter(0), task) for task in read])
        parts = [[submit(one_part, task, part) for task in read] for part in range(count)]
        del read
        if not any(by_piece):
            raise InputError(f"{name} has a header but no ratings")
        facts = Facts.all_of([task for task in by_piece if task])
        how, notes = _plan(reading, facts, scale)
        tell("counting patterns of labels")
        held = submit(copy, how)  # a task, as what is sent to a worker is lost with it
        reduced = [submit(reduce_part, tables, held) for tables in parts]
        while len(reduced) > 1:
            groups = (reduced[at : at + _TOGETHER] for at in range(0, len(reduced), _TOGETHER))
            reduced = [submit(add_up, group) for group in groups]
        tables = add_up([reduced[0].result()])
    analysis = analyse_reduced(tables, how.scales, on_stage=on_stage, **changes)
    kinds, most = [*how.kinds.values()], max(tables.values(), key=lambda table: table.n_units)
    shown: dict[str, str | int | float] = {
        "file": name,
        "margin": analysis.settings.margin,
        "annotators": kinds.count("human"),
        "model graders": kinds.count("model"),
        "ratings": facts.rows,
        "items": most.n_units,
        "clusters": most.n_units if most.clusters is None else len(most.clusters),
        "evenhand": __version__,
    }
    notes = [*notes, written("scale.left_out")]
    return analysis, ReportContext(name=name, facts=shown, notes=notes)


def _refuse(source: str, given: Mapping[str, object]) -> None:
    for name, (what, instead) in REFUSED.items():
        if given.get(name):
            raise InputError(
                f"{source}: {what} is not read with --engine; {instead}, or leave --engine out"
            )


def _connector(engine: str) -> Callable[[], Any]:
    """Return the function that connects to the cluster that is named, or to one of this machine's
    processes. Raises InputError without the libraries, and it where no cluster answers.
    """
    kind, _, address = engine.partition(":")
    if kind != "dask":
        raise InputError(
            f"--engine is {engine!r}; write dask, or dask:tcp://HOST:PORT for a cluster of your own"
        )
    try:
        from distributed import Client
    except ImportError:
        raise InputError('--engine needs Dask: pip install "evenhand[scale]"') from None
    cores, loopback = os.cpu_count() or 1, "127.0.0.1:0"
    local = {"n_workers": cores, "threads_per_worker": 1, "dashboard_address": loopback}
    at = {"address": address, "timeout": _PATIENCE} if address else local

    def connected() -> Any:
        try:
            return Client(**at)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {address}: {error}") from None

    return connected


# ---- what is read, and what is known of all of it -----------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Instructions for reading ratings: the source's names of our columns, its column for the
    cluster ("" where every unit is its own), and the labels that say that there is none, in lower
    case.
    """

    source: str
    theirs: Mapping[str, str]
    cluster: str = ""
    no_label: frozenset[str] = NO_LABEL

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that are read."""
        extra = (self.cluster,) if self.cluster else ()
        return (*COLUMNS, "item_id", "rubric_hash", INCLUSION, *extra)


@dataclass(frozen=True)
class Facts:
    """Facts about ratings that are needed before any are reduced: the distinct cells, each with the
    first of its rows as its index; the columns that are filled in; and the number of rows.
    """

    cells: pd.DataFrame
    filled: frozenset[str]
    rows: int

    @classmethod
    def all_of(cls, parts: Sequence[Facts]) -> Facts:
        """The facts about several parts together, the cells in the order of their rows."""
        cells = pd.concat([part.cells for part in parts]).rename_axis(ROW).reset_index()
        cells = cells.sort_values([ROW, *_KEYS]).drop_duplicates(list(_KEYS)).set_index(ROW)
        filled = frozenset().union(*(part.filled for part in parts))
        return cls(cells, filled, sum(part.rows for part in parts))


@dataclass(frozen=True)
class Reduction:
    """Instructions for reducing parts: every rubric's scale and raters, by kind. A source without
    rubrics has all of its ratings under the only one. `kinds` are those of all raters; where they
    were `named`, other raters are left out.
    """

    reading: Reading
    scales: Mapping[str, Scale]
    raters: Mapping[str, Mapping[str, str]]
    filled: frozenset[str]
    kinds: Mapping[str, str]
    named: bool = False
    is_unnamed: bool = True


def _reading(
    source: str, name: str, scale: ScaleOptions, cluster: str
) -> tuple[Reading, list[Piece]]:
    """Return how the source is read, and its pieces."""
    column = {"pair": "cluster_id", "unit": ""}.get(cluster, cluster)
    kept = {label.casefold() for label in scale.categories}
    no_label = NO_LABEL - kept | {folded(label).casefold() for label in scale.missing}
    reading = Reading(name, dict(scale.columns), column, no_label)
    pieces = pieces_of(source, reading.wanted, reading.theirs)
    for piece in pieces:
        columns = [n if n != "item_id" else "unit_id" for n in piece.columns]
        columns += ["rater_kind"] if scale.kinds else []
        if scale.kinds and "rater_id" not in columns:
            raise InputError(
                f"{piece.name} has no column 'rater_id': with --engine a row is a rating; name its "
                "column with --columns, or leave --engine out"
            )
        refuse_missing(pd.DataFrame(columns=columns), piece.name, scale)
        if cluster not in ("pair", "unit") and column not in columns:
            raise InputError(f"{piece.name} has no column {column!r} to cluster by")
    return reading, pieces


def _plan(reading: Reading, facts: Facts, options: ScaleOptions) -> tuple[Reduction, list[str]]:
    """Return what every part must know of all ratings; and what was assumed of the labels."""
    given = RatingsInput(reading.source, everybody_of(options, facts.cells["rater_id"].unique()))
    table = keep_named_raters(facts.cells, given)
    _check_alike(table, reading.source)
    refuse_sets(table, {}, given)
    asked, declared = declared_scales(table, given, {})
    numbers = any(scale.is_number for scale in declared.values())
    _refuse(reading.source, {"weights": INCLUSION in facts.filled, "numbers": numbers})
    is_unnamed = bool((table["rubric"] == "").all())
    scales, raters = {}, {}
    for name, scale in declared.items():
        rows = asked if is_unnamed else asked[asked["rubric"] == name]
        scales[name] = replace(scale, name=name)
        raters[name] = by_kind(_kinds(rows))
    named, kinds = bool(options.kinds), _kinds(table)
    how = Reduction(reading, scales, raters, facts.filled, kinds, named, is_unnamed)
    return how, given.notes


def _kinds(table: pd.DataFrame) -> dict[str, str]:
    return dict(zip(table["rater_id"], table["rater_kind"], strict=True))


_APART = "give each a rater_id of its own"
_ALIKE = (
    ("rubric", "rubric_hash", "rubric {0!r} has ratings of more versions", "keep the rows of one"),
    ("rater_id", "rater_kind", "rater {0!r} has ratings of two kinds", _APART),
    ("rater_id", "prob_method", "rater {0!r} has ratings of two kinds of probabilities", _APART),
)
"""Columns with one value in all rows of a rubric or rater, in whatever parts they are."""


def _check_alike(table: pd.DataFrame, source: str) -> None:
    for key, column, says, instead in _ALIKE:
        filled = table[table[column] != ""].drop_duplicates([key, column])
        for name, values in filled.groupby(key)[column]:
            if len(values) > 1:
                raise InputError(
                    f"{source}: {says.format(name)}, {column} {listed(values)}; {instead}"
                )


# ---- tasks --------------------------------------------------------------------------------------


def read_piece(piece: Piece, reading: Reading) -> Iterator[pa.Table]:
    """The rows of a piece, under our names."""
    for table in batches_of(piece, reading.theirs):
        if "item_id" in table.column_names:
            if "unit_id" in table.column_names:
                table = table.drop_columns(["item_id"])
            else:
                table = table.rename_columns({"item_id": "unit_id"})
        yield _folded(table, reading.no_label)


def read_parts(piece: Piece, reading: Reading, parts: int) -> tuple[Facts | None, list[pa.Table]]:
    """A piece's facts, None where it has no rows, and its rows by the part of their unit. Raises
    InputError where a worker cannot hold all of it.
    """
    import pyarrow as pa

    tables: list[pa.Table] = []
    size = rows = 0
    for read in read_piece(piece, reading):
        tables.append(read)
        size, rows = size + read.nbytes, rows + len(read)
        check_part(size, rows, PIECE_ROWS, piece.name)
    if not rows:
        return None, []
    table = pa.concat_tables(tables).combine_chunks()
    return facts_of(table), scattered(table, parts)


def one_part(piece: tuple[Facts | None, list[pa.Table]], part: int) -> pa.Table | None:
    """The rows of one part: a copy, as a slice would be sent with all that it is cut from."""
    return piece[1][part].take(np.arange(len(piece[1][part]))) if piece[1] else None


def _folded(table: pa.Table, no_label: frozenset[str]) -> pa.Table:
    """Return rows in one spelling where nobody sees a difference, without words for no label."""
    import pyarrow as pa

    for at, name in enumerate(table.column_names):
        if name not in ("unit_id", "rater_id", "label"):
            continue
        coded = table.column(name).combine_chunks().dictionary_encode()
        texts = [folded(text) for text in coded.dictionary.to_pylist()]
        if name == "label":
            texts = ["" if text.casefold() in no_label else text for text in texts]
        table = table.set_column(at, name, pa.array(texts, pa.string()).take(coded.indices))
    return table


def facts_of(table: pa.Table) -> Facts:
    """The facts about some rows."""
    import pyarrow.compute as pc

    grouped = _with(table, _KEYS).group_by(list(_KEYS)).aggregate([(ROW, "min")])
    cells = grouped.to_pandas().astype(dict.fromkeys(_KEYS, "str")).set_index(f"{ROW}_min")
    columns = [name for name in table.column_names if name != ROW]
    filled = [name for name in columns if pc.any(pc.not_equal(table[name], "")).as_py()]
    return Facts(cells, frozenset(filled), len(table))


def scattered(table: pa.Table, parts: int) -> list[pa.Table]:
    """Split rows by the part of their unit: a hash of its id, the same on every machine."""
    hashed = pd.util.hash_array(np.asarray(table.column("unit_id").to_pylist(), dtype=object))
    part = hashed % np.uint64(parts)
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(parts + 1, dtype=np.uint64))
    ordered = table.take(order)
    return [ordered.slice(ends[k], ends[k + 1] - ends[k]) for k in range(parts)]


def reduce_part(tables: Sequence[pa.Table | None], how: Reduction) -> dict[str, Reduced]:
    """The reduced table of each rubric that the rows of some units are under. Raises InputError
    naming the first row that breaks a rule of ratings.
    """
    import pyarrow as pa

    kept = [name for name in dict.fromkeys((*COLUMNS, how.reading.cluster)) if name in how.filled]
    held = [_with(table, kept) for table in tables if table is not None and len(table)]
    if not held:
        return {}
    # Repeated readings are in one order, as sums of fractions depend on it; else as in the source.
    order = [name for name in _REPEATED if name in kept] if {"order", "draw"} & {*kept} else [ROW]
    rows = pa.concat_tables(held).sort_by([(name, "ascending") for name in order])
    frame = rows.select(kept).to_pandas().astype("str")
    frame.index = rows.column(ROW).to_numpy()
    if how.named:
        frame["rater_kind"] = frame["rater_id"].map(how.kinds)
        frame = frame[frame["rater_kind"].notna()]
    frame = frame.rename(columns={how.reading.cluster: "cluster_id"})
    if not frame.index.is_unique:  # rows of several files: their numbers say nothing alone
        frame = frame.reset_index(drop=True)
    for name in ("rater_kind", "label"):
        frame[name] = frame.get(name, "")
    ratings, units = split_ratings(frame, how.reading.source)
    clusters = units.set_index("unit_id")["cluster_id"] if "cluster_id" in units else None
    if clusters is not None and (clusters == "").any():
        raise InputError(
            f"{how.reading.source}: {how.reading.cluster} of item "
            f"{clusters.index[int((clusters == '').argmax())]!r} is empty; every item needs a "
            "cluster, or resample units with --cluster unit"
        )
    parts = {}
    for name, scale in how.scales.items():
        of_rubric = ratings if how.is_unnamed else ratings[ratings["rubric"] == name]
        if len(of_rubric):
            parts[name] = reduce_ratings(
                of_rubric, clusters, scale, how.raters[name], how.reading.source
            )
    return parts


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
