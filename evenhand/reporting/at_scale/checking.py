"""`check` and `gate` with an engine: any number of ratings, analysed by their patterns of
labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from evenhand.analysis.at_scale import analyse_reduced
from evenhand.analysis.bootstrap.pattern_resamples import Spread
from evenhand.analysis.labels.reduced import Raters, Reduced
from evenhand.analysis.labels.scale import Scale
from evenhand.errors import InputError
from evenhand.reporting.at_scale.parts import Facts, Reading, Reduction
from evenhand.reporting.ratings_file.cleaning import NO_LABEL, Places
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.reporting.ratings_file.missing import listed, refuse_missing
from evenhand.reporting.ratings_file.roles import EVERYBODY
from evenhand.reporting.ratings_file.scales import declared_scales
from evenhand.reporting.ratings_file.several import refuse_sets
from evenhand.reporting.ratings_file.sidecar import sidecar_path
from evenhand.study.tables.columns import INCLUSION
from evenhand.study.tables.pieces import Piece, name_of, pieces_of
from evenhand.study.tables.spellings import folded
from evenhand.texts import written

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd

    from evenhand.reporting.analysing import Analysed

STREAM, DASK = "stream", "dask"
_USUAL = ScaleOptions()


class Engine(Protocol):
    """An engine that does the work, on this machine or a cluster."""

    @property
    def spread(self) -> Spread | None:
        """The function that draws blocks of resamples in parallel, if any."""

    @property
    def pool(self) -> Executor | None:
        """The executor that analyses rubrics in parallel, if any."""

    def scatter(self, pieces: list[Piece], reading: Reading) -> Facts:
        """Read everything once, and split it by units."""

    def reduce(self, how: Reduction) -> dict[str, Reduced]:
        """The reduced table of every rubric."""


@contextmanager
def engine_named(name: str) -> Iterator[Engine]:
    """The engine of a name: `stream`, `dask`, or `dask:` and the address of a scheduler."""
    kind, _, address = name.partition(":")
    if kind == DASK:
        from evenhand.reporting.at_scale.on_dask import on_dask

        with on_dask(address) as engine:
            yield engine
    elif name == STREAM:
        from evenhand.reporting.at_scale.streaming import streaming

        with streaming() as engine:
            yield engine
    else:
        raise InputError(
            f"--engine is {name!r}; write stream, dask, or dask:tcp://HOST:PORT for a cluster of "
            "your own"
        )


def analyse_at_scale(
    source: str | Path,
    scale: ScaleOptions = _USUAL,
    *,
    engine: str = STREAM,
    units: Path | None = None,
    verify: object = False,
    why: bool = False,
    on_stage: Callable[[str], None] | None = None,
    **changes: Any,
) -> Analysed:
    """Analyse a file, a folder of files, an address that fsspec knows, or a table of PostgreSQL, as
    far as patterns of labels allow; the notes list what is left out.

    `changes` are settings of the analysis. Raises InputError as `analyse_file` does, and for
    options that need single ratings.
    """
    from evenhand.analysis.report import ReportContext

    tell = on_stage or (lambda _: None)
    name = name_of(str(source))
    _refuse_more(str(source), scale, units)
    if verify or why:
        raise InputError("an engine keeps no units to verify estimates on, or to explain")
    with engine_named(engine) as at_work:
        reading, pieces = _reading(str(source), name, scale, str(changes.get("cluster", "pair")))
        tell("reading the labels")
        facts = at_work.scatter(pieces, reading)
        if not facts.rows:
            raise InputError(f"{name} has a header but no ratings")
        if INCLUSION in facts.filled:
            raise InputError(
                f"{name} has the column {INCLUSION!r}, and an engine weights no units; leave "
                "--engine out, or the column"
            )
        how, notes = _reduction(reading, facts, scale)
        tell("counting patterns of labels")
        tables = at_work.reduce(how)
        only_one = len(tables) == 1
        analysis = analyse_reduced(
            tables,
            how.scales,
            pool=None if only_one else at_work.pool,
            spread=at_work.spread,
            on_stage=on_stage,
            **changes,
        )
    context = ReportContext(
        name=name,
        facts={
            "file": name,
            "margin": analysis.settings.margin,
            **_facts(facts, tables),
        },
        notes=[*notes, written("scale.left_out")],
    )
    return analysis, context


def _refuse_more(source: str, scale: ScaleOptions, units: Path | None) -> None:
    """Refuse files and options that need all ratings in one piece."""
    beside = sidecar_path(Path(source))
    if "://" not in source and beside.is_file():
        raise InputError(
            f"{beside.name} stands beside the ratings, and an engine does not read it; leave "
            "--engine out, or move the ratings and declare their scale"
        )
    if units is not None:
        raise InputError(
            "--units is not read with --engine; put the column cluster_id into the ratings"
        )
    if scale.wide or scale.sheet:
        option = "--wide" if scale.wide else "--sheet"
        raise InputError(f"{option} is not read with --engine; leave one of them out")
    if scale.several:
        raise InputError(f"{scale.several_option} is not read with --engine; leave one of them out")
    if scale.normalise:
        raise InputError(
            f"{scale.normalise_spelled(True)} is not done with --engine; correct labels where they "
            "are, or name their columns with --columns"
        )


def _reading(
    source: str, name: str, scale: ScaleOptions, cluster: str
) -> tuple[Reading, list[Piece]]:
    """Return how the source is read, and its pieces."""
    import pandas as pd

    column = {"pair": "cluster_id", "unit": ""}.get(cluster, cluster)
    kept = {label.casefold() for label in scale.categories}
    no_label = NO_LABEL - kept | {folded(label).casefold() for label in scale.missing}
    reading = Reading(name, dict(scale.columns), column, dict(scale.kinds), no_label)
    pieces = pieces_of(source, reading.wanted, reading.theirs)
    for piece in pieces:
        known = [n if n != "item_id" else "unit_id" for n in piece.columns]
        known += ["rater_kind"] if scale.kinds else []
        if scale.kinds and "rater_id" not in known and piece.kind != "jsonl":
            raise InputError(
                f"{piece.name} has no column 'rater_id': with --engine a row is a rating; name its "
                "column with --columns, or leave --engine out"
            )
        if piece.kind != "jsonl":
            refuse_missing(pd.DataFrame(columns=known), piece.name, scale)
        if cluster not in ("pair", "unit") and column not in known:
            raise InputError(f"{piece.name} has no column {column!r} to cluster by")
    return reading, pieces


def _reduction(
    reading: Reading, facts: Facts, options: ScaleOptions
) -> tuple[Reduction, list[str]]:
    """Return what every part must know of all ratings; and what was assumed of the labels."""
    table, left_out = _of_named(facts.table(), options.kinds, reading.source)
    _check_versions(table)
    _check_raters(table, reading.source)
    places = Places(reading.source)
    refuse_sets(table, {}, places, options)
    asked, scales, notes = declared_scales(options, table, places)
    is_unnamed = bool((table["rubric"] == "").all())
    raters = {
        name: Raters.of(_kinds(asked if is_unnamed else asked[asked["rubric"] == name]))
        for name in scales
    }
    filled = frozenset(facts.filled | ({"rater_kind"} if options.kinds else set()))
    notes = [*left_out, *notes]
    return Reduction(reading, _named(scales), raters, filled, is_unnamed), notes


def _of_named(
    table: pd.DataFrame, kinds: Mapping[str, str], source: str
) -> tuple[pd.DataFrame, list[str]]:
    """The cells of the raters that were named, and of adjudicators; and who is left out."""
    if not kinds:
        return table, []
    raters = table["rater_id"]
    for rater in kinds.keys() - {EVERYBODY}:
        if not (raters == rater).any():
            raise InputError(f"{source} has no rater {rater!r}; it has {listed(raters.unique())}")
    named = raters.map({name: kinds.get(EVERYBODY) for name in raters} | dict(kinds))
    counts = named.notna() | (table["rater_kind"] == "adjudicator")
    others = raters[~counts].unique()
    note = written("reading.raters_left_out", names=listed(others))
    known = table.assign(rater_kind=named.fillna(table["rater_kind"]))[counts]
    return known, [note] if len(others) else []


def _named(scales: Mapping[str, Scale]) -> dict[str, Scale]:
    return {name: replace(scale, name=name) for name, scale in scales.items()}


def _kinds(table: pd.DataFrame) -> dict[str, str]:
    return dict(zip(table["rater_id"], table["rater_kind"], strict=True))


def _check_versions(table: pd.DataFrame) -> None:
    """Refuse ratings of several versions of one rubric (see `one_version`)."""
    known = table[table["rubric_hash"] != ""]
    for rubric, hashes in known.groupby("rubric")["rubric_hash"]:
        if hashes.nunique() > 1:
            raise InputError(
                f"rubric {rubric!r} has ratings of {hashes.nunique()} versions, rubric_hash "
                f"{listed(hashes.unique())}; keep the rows of one of them"
            )


def _check_raters(table: pd.DataFrame, source: str) -> None:
    """Refuse raters of two kinds, which may be in different parts, and raters with two kinds of
    probabilities, which would be split in two.
    """
    for column, what in (("rater_kind", "kinds"), ("prob_method", "kinds of probabilities")):
        known = table[table[column] != ""].drop_duplicates(["rater_id", column])
        again = known[known.duplicated("rater_id")]
        if len(again):
            rater = again["rater_id"].iloc[0]
            both = listed(known.loc[known["rater_id"] == rater, column])
            raise InputError(
                f"{source}: rater {rater!r} has ratings of two {what} ({both}); give each a "
                "rater_id of its own"
            )


def _facts(facts: Facts, tables: Mapping[str, Reduced]) -> dict[str, str | int | float]:
    from evenhand import __version__

    kinds = facts.table().drop_duplicates("rater_id")["rater_kind"]
    most = max(tables.values(), key=lambda each: each.n_units)
    return {
        "human raters": int((kinds == "human").sum()),
        "model graders": int((kinds == "model").sum()),
        "ratings": facts.rows,
        "units": most.n_units,
        "clusters": most.n_units if most.clusters is None else len(most.clusters),
        "evenhand": __version__,
    }
