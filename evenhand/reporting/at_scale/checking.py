"""`check` and `gate` with Dask: any number of ratings, analysed by their patterns of labels.

Every task is a pure function of a piece of the source or of other tasks' results, so that those of
a worker that dies are computed again elsewhere. Workers need this package and the source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.analysis.at_scale import analyse_reduced
from evenhand.analysis.labels.reduced import Raters, Reduced
from evenhand.analysis.labels.scale import Scale
from evenhand.errors import InputError
from evenhand.reporting.at_scale.parts import (
    Facts,
    Reading,
    Reduction,
    add_up,
    one_part,
    read_parts,
    reduce_part,
)
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
    import pandas as pd

    from evenhand.reporting.analysing import Analysed

PART_ROWS = 500_000
"""Approximate number of rows reduced at a time."""
MOST_PARTS = 4096
_PATIENCE = 10.0
"""Seconds until a scheduler must have answered."""
_TOGETHER = 8
"""Reduced tables that a task adds up."""
_USUAL = ScaleOptions()


def analyse_at_scale(
    source: str | Path,
    scale: ScaleOptions = _USUAL,
    *,
    engine: str,
    units: Path | None = None,
    verify: object = False,
    why: bool = False,
    on_stage: Callable[[str], None] | None = None,
    **changes: Any,
) -> Analysed:
    """Analyse a file, a folder of files, or an address that fsspec knows, as far as patterns of
    labels allow; the notes list what is left out.

    `engine` is `dask` for processes of this machine, or `dask:` and the address of a scheduler;
    `changes` are settings of the analysis. Raises InputError as `analyse_file` does, and for
    options that need single ratings.
    """
    from evenhand.analysis.report import ReportContext

    tell = on_stage or (lambda _: None)
    name, address = name_of(str(source)), _address(engine)
    _refuse_more(str(source), scale, units)
    if verify or why:
        raise InputError("an engine keeps no units to verify estimates on, or to explain")
    reading, pieces = _reading(str(source), name, scale, str(changes.get("cluster", "pair")))
    with _cluster(address) as client:
        tell("reading the labels")
        facts, parts = _scattered(client, pieces, reading)
        if not facts.rows:
            raise InputError(f"{name} has a header but no ratings")
        if INCLUSION in facts.filled:
            raise InputError(
                f"{name} has the column {INCLUSION!r}, and an engine weights no units; leave "
                "--engine out, or the column"
            )
        how, notes = _reduction(reading, facts, scale)
        tell("counting patterns of labels")
        tables = _reduced(client, parts, how)
    analysis = analyse_reduced(tables, how.scales, on_stage=on_stage, **changes)
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
    for is_given, option, instead in (
        (units is not None, "--units", "put the column cluster_id into the ratings"),
        (scale.wide, "--wide", "write a row for each rating"),
        (scale.sheet, "--sheet", "save the sheet as a file of its own"),
        (scale.several, scale.several_option, "leave one of them out"),
        (scale.normalise, scale.normalise_spelled(True), "correct labels where they are"),
    ):
        if is_given:
            raise InputError(f"{option} is not read with --engine; {instead}")


# ---- on Dask -----------------------------------------------------------------------------------


def _address(engine: str) -> str:
    """The address of the scheduler that is named, "" for processes of this machine."""
    kind, _, address = engine.partition(":")
    if kind != "dask":
        raise InputError(
            f"--engine is {engine!r}; write dask, or dask:tcp://HOST:PORT for a cluster of your own"
        )
    return address


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """A client of the cluster at an address, or of one of this machine's processes.

    Raises InputError without the libraries, and where no cluster answers.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError('--engine needs Dask: pip install "evenhand[scale]"') from None
    cores, loopback = os.cpu_count() or 1, "127.0.0.1:0"
    here = {"n_workers": cores, "threads_per_worker": 1, "dashboard_address": loopback}
    at = {"address": address, "timeout": _PATIENCE} if address else here
    try:
        client: Any = Client(**at)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        yield client


def _scattered(
    client: Any, pieces: Sequence[Piece], reading: Reading
) -> tuple[Facts, list[list[Any]]]:
    """Read everything once: the facts, and the pieces of each part, which stay with the workers."""
    rows = sum(piece.rows for piece in pieces)
    parts = min(max(rows // PART_ROWS, 1), MOST_PARTS)
    read = [client.submit(read_parts, piece, reading, parts, pure=False) for piece in pieces]
    facts = client.gather([client.submit(itemgetter(0), each, pure=False) for each in read])
    return sum(facts, Facts()), [
        [client.submit(one_part, each, part, pure=False) for each in read] for part in range(parts)
    ]


def _reduced(client: Any, parts: Sequence[list[Any]], how: Reduction) -> dict[str, Reduced]:
    """Reduce every part, and add up as a tree."""
    held = client.submit(_itself, how, pure=False)
    found = [client.submit(reduce_part, each, held, pure=False) for each in parts]
    while len(found) > 1:
        groups = (found[at : at + _TOGETHER] for at in range(0, len(found), _TOGETHER))
        found = [client.submit(add_up, group, pure=False) for group in groups]
    return add_up([found[0].result()])


def _itself(given: Reduction) -> Reduction:
    return given


# ---- what is read ------------------------------------------------------------------------------


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
    table, left_out = _of_named(facts.table(), reading)
    _check_alike(table, reading.source)
    places = Places(reading.source)
    refuse_sets(table, {}, places, options)
    asked, scales, notes = declared_scales(options, table, places)
    is_unnamed = bool((table["rubric"] == "").all())
    raters = {
        name: Raters.of(_kinds(asked if is_unnamed else asked[asked["rubric"] == name]))
        for name in scales
    }
    notes = [*left_out, *notes]
    return Reduction(reading, _named(scales), raters, frozenset(facts.filled), is_unnamed), notes


def _of_named(table: pd.DataFrame, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    """The cells of the raters that were named, and of adjudicators; and who is left out."""
    if not reading.kinds:
        return table, []
    raters = table["rater_id"]
    for rater in reading.kinds.keys() - {EVERYBODY, *raters}:
        raise InputError(
            f"{reading.source} has no rater {rater!r}; it has {listed(raters.unique())}"
        )
    counts = table["rater_kind"] != ""
    others = raters[~counts].unique()
    note = written("reading.raters_left_out", names=listed(others))
    return table[counts], [note] if len(others) else []


def _named(scales: Mapping[str, Scale]) -> dict[str, Scale]:
    return {name: replace(scale, name=name) for name, scale in scales.items()}


def _kinds(table: pd.DataFrame) -> dict[str, str]:
    return dict(zip(table["rater_id"], table["rater_kind"], strict=True))


_APART = "give each a rater_id of its own"
_ALIKE = (
    ("rubric", "rubric_hash", "rubric {0!r} has ratings of more versions", "keep the rows of one"),
    ("rater_id", "rater_kind", "rater {0!r} has ratings of two kinds", _APART),
    ("rater_id", "prob_method", "rater {0!r} has ratings of two kinds of probabilities", _APART),
)
"""What all rows of a rubric or rater have in common, although they may be in different parts."""


def _check_alike(table: pd.DataFrame, source: str) -> None:
    for key, column, says, instead in _ALIKE:
        known = table[table[column] != ""].drop_duplicates([key, column])
        for name, own in known.groupby(key)[column]:
            if len(own) > 1:
                raise InputError(
                    f"{source}: {says.format(name)}, {column} {listed(own)}; {instead}"
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
