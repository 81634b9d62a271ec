"""Analyse any number of ratings with Dask, for `check` and `gate`, by their patterns of labels: a
pattern is what each rater answered about a unit, and units with the same pattern are counted.

The source is read in pieces (files, or sections of one). As a unit's ratings may be in several, the
ratings are then split into parts by a hash of their unit. Each part is reduced by itself to counts
of label patterns, and the reduced tables are added up. Every task is a pure function of a piece or
of other tasks' results: those of a worker that dies are computed again elsewhere. Workers need this
package and the source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand import __version__
from evenhand.analysis.all_rubrics import analyse_reduced
from evenhand.analysis.labels.encoding import Reduced, by_kind, merged, reduce_ratings
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.report import ReportContext
from evenhand.errors import InputError
from evenhand.lazy import pa, pc
from evenhand.reporting.ratings_file import labels
from evenhand.reporting.ratings_file.columns import refuse_missing, with_everybody_named
from evenhand.reporting.ratings_file.criteria import POINTS
from evenhand.reporting.ratings_file.declared import ScaleOptions, sidecar_path
from evenhand.study.tables import formats
from evenhand.study.tables.columns import INCLUSION, folded, listed
from evenhand.study.tables.ratings import RATINGS_COLUMNS, split_ratings
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.analysing import AnalysisAndContext

_CHECK_A_PART = "check a part of the ratings"
REFUSED = {
    "units": ("--units", "put the column cluster_id into the ratings"),
    "wide": ("--wide", "write a row for each rating"),
    "sheet": ("--sheet", "save the sheet as a separate file"),
    "several": ("--several", "write each option as a separate rubric"),
    "normalise": ("--normalise", "correct labels where they are"),
    "slices": ("--slice", _CHECK_A_PART),
    "groups": ("--set groups", _CHECK_A_PART),
    "rater_slices": ("--set rater_slices", _CHECK_A_PART),
    "variants": ("--set variants", _CHECK_A_PART),
    "sensitivity_cluster": ("--set sensitivity_cluster", _CHECK_A_PART),
    "sidecar": ("a file of settings", "move the ratings and declare their scale"),
    "weights": (f"the column {INCLUSION}", "take it out, and every item counts alike"),
    "points": (f"the column {POINTS}", "take it out, and every criterion counts alike"),
    "numbers": ("a scale of numbers", "declare --categories"),
}
"""By name, what would need single ratings: as users write it, and the alternative to it."""
PART_ROWS = 500_000  # approximate number of rows reduced at a time
MOST_PARTS = 4096
_TIMEOUT = 10.0  # seconds until a scheduler must have answered
_TABLES_PER_TASK = 8  # reduced tables that a task adds up
UNUSED = ("seconds", "created_at", "rubric_hash")
"""Columns that no statistic uses here; `rubric_hash` is read for the number of hashes alone."""
COLUMNS = tuple(name for name in RATINGS_COLUMNS if name not in UNUSED)
_KEYS = ("rubric", "rater_id", "rater_kind", "prob_method", "label", "rubric_hash")
"""Columns whose combinations of values are needed before any ratings are reduced (`Facts`)."""
_REPEATED = ("unit_id", "rater_id", "order", "draw")  # tell a rater's ratings of a unit apart


def analyse_at_scale(
    source: str | Path,
    options: ScaleOptions,
    *,
    engine: str,
    units: Path | None = None,
    verify: object = False,
    why: bool = False,
    on_stage: Callable[[str], None] | None = None,
    **changes: Any,
) -> AnalysisAndContext:
    """Analyse a file, a folder of files, or an address that fsspec knows, as far as patterns of
    labels allow; the notes list what is left out. `engine` is `dask` for processes of this machine,
    or `dask:` and a scheduler's address; `changes` are settings; `verify` and `why` are accepted as
    by `analyse_file`, without effect. Raises InputError as that does, and for `REFUSED` options.
    """
    progress = on_stage or (lambda _: None)
    name, connect = formats.source_name(str(source)), _connector(engine)
    has_sidecar = "://" not in str(source) and sidecar_path(Path(source)).is_file()
    _refuse(name, {**vars(options), **changes, "units": units, "sidecar": has_sidecar})
    reading, pieces = _reading(str(source), name, options, str(changes.get("cluster", "pair")))
    with connect() as client:
        submit = partial(client.submit, pure=False)  # without hashing arguments to reuse results
        progress("reading the labels")
        n_parts = min(max(sum(piece.rows for piece in pieces) // PART_ROWS, 1), MOST_PARTS)
        read_tasks = [submit(read_parts, piece, reading, n_parts) for piece in pieces]
        piece_facts = client.gather([submit(attrgetter("facts"), task) for task in read_tasks])
        parts = range(n_parts)  # for each, a list of tasks, one for each piece's rows of this part
        part_tasks = [[submit(one_part, task, part) for task in read_tasks] for part in parts]
        del read_tasks  # so that workers can free the pieces
        known_facts = [facts for facts in piece_facts if facts is not None]
        if not known_facts:
            raise InputError(f"{name} has a header but no ratings")
        facts = Facts.all_of(known_facts)
        plan, notes = _plan(reading, facts, options)
        reported = plan.scales
        if options.rubric is not None and changes.get("across_rubrics") == "holm":
            whole, _ = _plan(reading, facts, options.of_all_rubrics())
            if reported.keys() < whole.scales.keys():
                plan = replace(whole, scales={**whole.scales, **reported})
        progress("counting patterns of labels")
        plan_task = submit(copy, plan)  # data sent to a worker is lost with it, a task is not
        reduced = [submit(reduce_part, tasks, plan_task) for tasks in part_tasks]
        while len(reduced) > 1:
            starts = range(0, len(reduced), _TABLES_PER_TASK)
            reduced = [submit(add_up, reduced[i : i + _TABLES_PER_TASK]) for i in starts]
        tables = add_up([reduced[0].result()])  # sorts the rubrics of a single part, too
    analysis = analyse_reduced(tables, plan.scales, on_stage=on_stage, reported=reported, **changes)
    kinds, largest = [*plan.kinds.values()], max(tables.values(), key=attrgetter("n_units"))
    figures: dict[str, str | int | float] = {
        "file": name,
        "margin": analysis.settings.margin,
        "annotators": kinds.count("human"),
        "model graders": kinds.count("model"),
        "ratings": facts.rows,
        "items": largest.n_units,
        "clusters": largest.n_units if largest.clusters is None else len(largest.clusters),
        "evenhand": __version__,
    }
    notes = [*notes, written("scale.left_out")]
    return analysis, ReportContext(name=name, facts=figures, notes=notes)


def _refuse(source: str, options: Mapping[str, object]) -> None:
    """Raise InputError if an option of `REFUSED` is set."""
    for name, (option, alternative) in REFUSED.items():
        if options.get(name):
            fault = f"{option} is not read with --engine"
            raise InputError(f"{source}: {fault}; {alternative}, or leave --engine out")


def _connector(engine: str) -> Callable[[], Any]:
    """Return a function that connects to the cluster at the address in `engine`, or to one of this
    machine's processes, or raises InputError if none answers. Raises InputError without Dask.
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
    remote = {"address": address, "timeout": _TIMEOUT}

    def connect() -> Any:
        try:
            return Client(**(remote if address else local))  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {address}: {error}") from None

    return connect


@dataclass(frozen=True)
class Reading:
    """Instructions for reading ratings."""

    source: str  # its name in messages
    theirs: Mapping[str, str]  # the source's names of our columns, `{ours: theirs}`
    cluster: str = ""  # the column of clusters, "" if every unit is one
    declared: Mapping[str, str] = field(default_factory=dict)  # labels, by their `folded` form
    codes: frozenset[str] = frozenset()  # declared codes for "no label"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, some of them to refuse them."""
        extra = (self.cluster,) if self.cluster else ()
        refused = {INCLUSION, POINTS} - {*self.theirs.values()}
        return (*COLUMNS, "item_id", "rubric_hash", *sorted(refused), *extra)


@dataclass(frozen=True)
class Facts:
    """Facts about ratings that are needed before any are reduced."""

    cells: pd.DataFrame  # distinct combinations of the columns `_KEYS`, indexed by their first rows
    filled: frozenset[str]  # columns with any content
    rows: int  # number of rows
    with_probabilities: frozenset[str] = frozenset()  # raters

    @classmethod
    def all_of(cls, facts: Sequence[Facts]) -> Facts:
        """Return the facts about several pieces together, cells in the order of their rows."""
        cells = pd.concat([entry.cells for entry in facts]).rename_axis(formats.ROW).reset_index()
        cells = cells.sort_values([formats.ROW, *_KEYS]).drop_duplicates(list(_KEYS))
        filled = frozenset().union(*(entry.filled for entry in facts))
        raters = frozenset().union(*(entry.with_probabilities for entry in facts))
        return cls(cells.set_index(formats.ROW), filled, sum(entry.rows for entry in facts), raters)


class FactsAndParts(NamedTuple):
    """The facts about a piece, None without rows, and its rows by part, [] without rows."""

    facts: Facts | None
    parts: list[pa.Table]


@dataclass(frozen=True)
class Reduction:
    """Instructions for reducing parts."""

    reading: Reading
    scales: Mapping[str, Scale]  # by rubric
    raters: Mapping[str, Mapping[str, str]]  # by rubric, the kinds of its raters, in their order
    filled: frozenset[str]  # columns with any content
    kinds: Mapping[str, str]  # of all raters
    only_named: bool = False  # raters whom the options do not name are left out
    without_rubrics: bool = True  # all ratings are on the only scale


def _reading(
    source: str, name: str, options: ScaleOptions, cluster: str
) -> tuple[Reading, list[formats.Piece]]:
    """Return the instructions for reading the source, and its pieces, whose columns are checked."""
    cluster_by = {"pair": "cluster_id", "unit": ""}.get(cluster, cluster)  # "pair" is the default
    codes = frozenset(map(folded, options.missing))
    declared = {folded(label): label for label in options.categories}  # even if they say "none"
    reading = Reading(name, dict(options.columns), cluster_by, declared, codes)
    pieces = formats.pieces_of(source, reading.columns, reading.theirs)
    for piece in pieces:
        columns = ["unit_id" if column == "item_id" else column for column in piece.columns]
        columns += ["rater_kind"] if options.kinds else []  # the options give it
        if options.kinds and "rater_id" not in columns:
            raise InputError(
                f"{piece.name} has no column 'rater_id': with --engine a row is a rating; name its "
                "column with --columns, or leave --engine out"
            )
        refuse_missing(pd.DataFrame(columns=columns), piece.name, options)
        if cluster not in ("pair", "unit") and cluster_by not in columns:
            raise InputError(f"{piece.name} has no column {cluster_by!r} to cluster by")
    return reading, pieces


def _plan(reading: Reading, facts: Facts, options: ScaleOptions) -> tuple[Reduction, list[str]]:
    """Return instructions for reducing parts, and notes; `facts.cells` stand for the ratings."""
    options = with_everybody_named(options, facts.cells["rater_id"].unique())
    ratings_input = labels.RatingsInput(reading.source, options, can_join=False)
    table, notes = labels.keep_named_raters(facts.cells, ratings_input)
    # Raters with similar names may be one if no unit has both. Units are not known here; one for
    # each rater makes `join_names` refuse such names whatever they labelled.
    labels.join_names(table.assign(unit_id=table["rater_id"]), ratings_input)
    for key, column, fault, fix in _CONSISTENT:
        for id_, values in table[table[column] != ""].groupby(key)[column]:
            if values.nunique() > 1:
                both = f"{fault.format(id_)}, {column} {listed(values.unique())}"
                raise InputError(f"{reading.source}: {both}; {fix}")
    labels.refuse_sets(table, stored_scales={}, reading=ratings_input)  # a sidecar was refused
    labels.check_thresholds(options, facts.with_probabilities)
    table = table.assign(probabilities="")  # which are looked for where numbers are shortened
    scaled = labels.declared_scales(table, ratings_input, stored_scales={})
    found = {"weights": INCLUSION in facts.filled, "points": POINTS in facts.filled}
    has_numbers = any(scale.is_number for scale in scaled.scales.values())
    _refuse(reading.source, {**found, "numbers": has_numbers})
    without_rubrics = bool((table["rubric"] == "").all())
    scales, raters, rows = {}, {}, scaled.ratings
    for name, scale in scaled.scales.items():
        rubric_rows = rows if without_rubrics else rows[rows["rubric"] == name]
        scales[name] = replace(scale, name=name)
        raters[name] = by_kind(_kinds(rubric_rows))
    only_named, kinds = bool(options.kinds), _kinds(table)
    plan = Reduction(reading, scales, raters, facts.filled, kinds, only_named, without_rubrics)
    return plan, [*notes, *scaled.notes]


def _kinds(table: pd.DataFrame) -> dict[str, str]:
    """Return the kind of each rater, by rater id."""
    return dict(zip(table["rater_id"], table["rater_kind"], strict=True))


_SPLIT = "give each a rater_id of its own"
_CONSISTENT = (
    ("rubric", "rubric_hash", "rubric {0!r} has ratings of more versions", "keep the rows of one"),
    ("rater_id", "rater_kind", "rater {0!r} has ratings of two kinds", _SPLIT),
    ("rater_id", "prob_method", "rater {0!r} has ratings of two kinds of probabilities", _SPLIT),
)
"""By column of rubrics or raters, one that has a single value for each; the fault; the remedy."""


def read_piece(piece: formats.Piece, reading: Reading) -> Iterator[pa.Table]:
    """Yield the rows of a piece in tables with our names of columns."""
    for table in formats.batches_of(piece, reading.theirs):
        if "item_id" in table.column_names:
            # A JSONL file has all columns, some of them without content.
            if piece.kind == "JSONL" and not pc.any(pc.not_equal(table["unit_id"], "")).as_py():
                table = table.drop_columns(["unit_id"])
            if "unit_id" in table.column_names:
                table = table.drop_columns(["item_id"])
            else:
                table = table.rename_columns({"item_id": "unit_id"})
        yield _folded(table, reading)


def read_parts(piece: formats.Piece, reading: Reading, n_parts: int) -> FactsAndParts:
    """Return a piece's facts and its rows by part. Raises InputError if the piece is too large."""
    tables: list[pa.Table] = []
    n_bytes = n_rows = 0
    for table in read_piece(piece, reading):
        tables.append(table)
        n_bytes, n_rows = n_bytes + table.nbytes, n_rows + len(table)
        formats.check_part(n_bytes, n_rows, formats.PIECE_ROWS, piece.name)
    if not n_rows:
        return FactsAndParts(None, [])
    table = pa.concat_tables(tables).combine_chunks()
    return FactsAndParts(facts_of(table), scattered(table, n_parts))


def one_part(piece: FactsAndParts, part_index: int) -> pa.Table | None:
    """Return a copy of a piece's rows of one part: a slice would be sent with its whole table."""
    part = piece.parts[part_index] if piece.parts else None
    return None if part is None else part.take(np.arange(len(part)))


def _folded(table: pa.Table, reading: Reading) -> pa.Table:
    """Return rows without invisible differences in spelling and without codes for "no label"."""
    for position, name in enumerate(table.column_names):
        if name not in ("unit_id", "rater_id", "label"):
            continue
        encoded = table.column(name).combine_chunks().dictionary_encode()
        texts = [folded(text) for text in encoded.dictionary.to_pylist()]
        if name == "label":
            words = {text for text in texts if text.casefold() in labels.NO_LABEL}
            missing = (words - reading.declared.keys()) | reading.codes
            texts = ["" if text in missing else reading.declared.get(text, text) for text in texts]
        table = table.set_column(position, name, pa.array(texts, pa.string()).take(encoded.indices))
    return table


def facts_of(table: pa.Table) -> Facts:
    """Return the facts about these rows."""
    grouped = _pick(table, _KEYS).group_by(list(_KEYS)).aggregate([(formats.ROW, "min")])
    cells = grouped.to_pandas().astype(dict.fromkeys(_KEYS, "str")).set_index(f"{formats.ROW}_min")
    columns = [name for name in table.column_names if name != formats.ROW]
    filled = [name for name in columns if pc.any(pc.not_equal(table[name], "")).as_py()]
    shares = _pick(table, ("rater_id", "p_positive", "probabilities"))
    is_known = (pc.not_equal(shares[name], "") for name in ("p_positive", "probabilities"))
    raters = frozenset(shares["rater_id"].filter(pc.or_(*is_known)).unique().to_pylist())
    return Facts(cells, frozenset(filled), len(table), raters)


def scattered(table: pa.Table, n_parts: int) -> list[pa.Table]:
    """Split rows into parts by a hash of their unit id that is the same on every machine."""
    hashes = pd.util.hash_array(np.asarray(table.column("unit_id").to_pylist(), dtype=object))
    part_of_row = hashes % np.uint64(n_parts)
    order = np.argsort(part_of_row, kind="stable")
    bounds = np.searchsorted(part_of_row[order], np.arange(n_parts + 1, dtype=np.uint64))
    ordered = table.take(order)
    return [ordered.slice(start, end - start) for start, end in pairwise(bounds)]


def reduce_part(tables: Sequence[pa.Table | None], plan: Reduction) -> dict[str, Reduced]:
    """Reduce all rows of some units, by rubric. Raises InputError naming the first invalid row."""
    names = dict.fromkeys((*COLUMNS, plan.reading.cluster))  # each once
    columns = [name for name in names if name in plan.filled]
    filled_tables = [_pick(table, columns) for table in tables if table is not None and len(table)]
    if not filled_tables:
        return {}
    sort_keys = [formats.ROW]
    if {"order", "draw"} & {*columns}:  # sums of repeated readings depend on their order
        sort_keys = [name for name in _REPEATED if name in columns]
    rows = pa.concat_tables(filled_tables).sort_by([(name, "ascending") for name in sort_keys])
    frame = rows.select(columns).to_pandas().astype("str")
    frame.index = rows.column(formats.ROW).to_numpy()
    if plan.only_named:
        frame["rater_kind"] = frame["rater_id"].map(plan.kinds)
        frame = frame[frame["rater_kind"].notna()]
    frame = frame.rename(columns={plan.reading.cluster: "cluster_id"})
    if not frame.index.is_unique:  # row numbers of several files
        frame = frame.reset_index(drop=True)
    for name in ("rater_kind", "label"):
        frame[name] = frame.get(name, "")
    ratings, units = split_ratings(frame, plan.reading.source)
    clusters = units.set_index("unit_id")["cluster_id"] if "cluster_id" in units else None
    if clusters is not None and (clusters == "").any():
        raise InputError(
            f"{plan.reading.source}: {plan.reading.cluster} of item "
            f"{clusters.index[int((clusters == '').argmax())]!r} is empty; every item needs a "
            "cluster, or resample units with --cluster unit"
        )
    reduced = {}
    for name, scale in plan.scales.items():
        rubric_rows = ratings if plan.without_rubrics else ratings[ratings["rubric"] == name]
        if len(rubric_rows):
            raters, source = plan.raters[name], plan.reading.source
            reduced[name] = reduce_ratings(rubric_rows, clusters, scale, raters, source)
    return reduced


def _pick(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return a table with these columns and the row numbers, "" in columns that it lacks."""
    empty = pa.array(np.full(len(table), ""), pa.string())
    present = set(table.column_names)
    cells = {name: table.column(name) if name in present else empty for name in columns}
    return pa.table({**cells, formats.ROW: table.column(formats.ROW)})


def add_up(parts: Sequence[Mapping[str, Reduced]]) -> dict[str, Reduced]:
    """Return the reduced tables of several parts, each by rubric, added up by rubric."""
    return {
        rubric: merged([by_rubric[rubric] for by_rubric in parts if rubric in by_rubric])
        for rubric in sorted({rubric for by_rubric in parts for rubric in by_rubric})
    }
