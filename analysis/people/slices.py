"""Main figures repeated: in parts of the sample, for some of the humans, with other clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.agreement.groups import add_group_rows
from evenhand.analysis.agreement.overlap import KappaMeans, add_humans_rows
from evenhand.analysis.agreement.pairs import alpha_levels, deciding_kappa
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.bootstrap.significance import screened
from evenhand.analysis.labels.counted import ALL_RATERS
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.labels.units import UnitColumn, check_values
from evenhand.analysis.notes import Code, join_notes
from evenhand.analysis.people.ceiling import CEILING, add_ceiling_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array
from evenhand.analysis.writer import About, Writer
from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


FEW_UNITS = 30


def add_main_rows(
    rows: ResultRows, coded: Coded, resamples: Resamples, *, at: str = "", note: str = ""
) -> None:
    """Add the humans' agreement, the graders' agreement with them, and the ceiling differences.

    The statistics are `observed_agreement`, the deciding kappa and alpha at the scale's level; the
    `subset` of `coded` is that of the rows.
    """
    kappa = deciding_kappa(coded)
    levels = alpha_levels(coded)
    metric = "ordinal" if "ordinal" in levels else levels[0]
    main = ("observed_agreement", kappa, f"krippendorff_alpha_{metric}", CEILING)
    found, out = ResultRows(rows.rubric, chance=rows.chance), Writer.of(rows, coded, resamples)
    kappas = KappaMeans(coded, resamples, [kappa])
    add_group_rows(found, kappas, ["humans"])
    add_humans_rows(found, coded, resamples, names=main[:2])
    add_ceiling_rows(found, kappas)
    for row in found.rows.values():
        if row["statistic"] in main:
            known = Interval(row["estimate"], row["low"], row["high"], row["remarks"])
            units = row["n_units"], row["n_clusters"]
            about = join_notes(_few(units), note)
            of = About(a=row["rater_a"], b=row["rater_b"], at=at, note=about)
            out.add_interval(row["statistic"], known, units, **of)


def add_slice_rows(
    rows: ResultRows, columns: Sequence[UnitColumn], coded: Coded, resamples: Resamples
) -> None:
    """Add the main figures in every slice of the units, and `slice_difference` of every grader.

    The latter is the share of agreeing pairs of labels, a human's and the grader's on one unit: in
    the slice minus in the rest, in the same resamples. All differences of a view are screened
    together.
    """
    out = Writer.of(rows, coded, resamples)
    differences: list[_Difference] = []
    for column in columns:
        for code, value in enumerate(column.values):
            chosen = column.codes == code
            if not chosen.any():
                continue
            subset = coded.part(f"{column.name}={value}")
            kept = np.unique(coded.clusters[chosen])
            add_main_rows(rows, coded.only(chosen, subset), resamples.only(kept))
        if not coded.is_number:
            differences += _differences(out, column, coded)
    notes = screened([resamples.plain(each.values) for each in differences])
    for each, note in zip(differences, notes, strict=True):
        of = About(a="humans", b=each.grader, note=join_notes(_few(each.inside), note))
        why: Code = "no_pairable_units"
        out.on(each.subset).add("slice_difference", each.values, each.inside, reason=why, **of)


def members_of(
    raters: pd.DataFrame | None, columns: Sequence[str], units: Sequence[str] = ()
) -> dict[str, frozenset[str]]:
    """Return the raters of every `column=value`. `units` are the columns that units are sliced by.

    Raises InputError where the table or a column is missing, a rater is listed twice, or a column
    is sliced by for units too.
    """
    if not columns:
        return {}
    if raters is None or "rater_id" not in raters:
        raise InputError(
            "slicing by raters needs a table of raters with a column rater_id; give it"
        )
    again = raters["rater_id"].duplicated()
    if again.any():
        who = raters.loc[again, "rater_id"].iloc[0]
        raise InputError(f"raters: {who!r} stands more than once; keep one row for each rater")
    found: dict[str, frozenset[str]] = {}
    for column in columns:
        if column in units:
            raise InputError(
                f"{column!r} is a column of the units and of the raters to slice by; rename one"
            )
        if column not in raters or column == "rater_id":
            known = ", ".join(str(name) for name in raters if name != "rater_id") or "none"
            raise InputError(f"raters has no column {column!r} to slice by; it has {known}")
        cells = raters[column].fillna("").astype(str)
        check_values(column, sorted(set(cells) - {""}))
        for value, own in raters["rater_id"].groupby(cells, sort=True):
            if value != "":
                found[f"{column}={value}"] = frozenset(own.astype(str))
    return found


def add_rater_slice_rows(
    rows: ResultRows, coded: Coded, resamples: Resamples, raters: Mapping[str, frozenset[str]]
) -> None:
    """Add the main figures with only the humans of every subgroup."""
    for name, members in raters.items():
        kinds = tuple(
            "left out" if kind == "human" and rater not in members else kind
            for rater, kind in zip(coded.raters, coded.kinds, strict=True)
        )
        humans = kinds.count("human")
        if humans:
            part = replace(coded, kinds=kinds, subset=coded.part(name))
            add_main_rows(rows, part, resamples, note="1 human" if humans == 1 else "")


def add_all_raters_rows(rows: ResultRows, everyone: LabelMatrix, resamples: Resamples) -> None:
    """Add the main figures with the excluded raters among the humans: subset `raters=all`."""
    add_main_rows(rows, everyone.on_categories(ALL_RATERS), resamples)
    if everyone.has_verdicts:
        add_main_rows(rows, everyone.on_verdicts(ALL_RATERS), resamples)


@dataclass(frozen=True)
class _Difference:
    """Replicates (rows,) of one grader's agreement in a slice minus that in the rest."""

    grader: str
    subset: str
    values: Array
    inside: tuple[int, int]


def _differences(out: Writer, column: UnitColumn, coded: Coded) -> Iterator[_Difference]:
    humans = list(coded.members("human"))
    inside = column.codes[:, None] == np.arange(len(column.values))
    known = column.codes >= 0
    for grader in coded.members("model"):
        both = coded.labelled[:, humans] & coded.labelled[:, [grader]]
        agreed = both & (coded.codes[:, humans] == coded.codes[:, [grader]])
        pairs = np.where(known, both.sum(axis=1), 0)
        hits = np.where(known, agreed.sum(axis=1), 0)
        sums = out.sums(inside * hits[:, None], inside * pairs[:, None])
        hit, pair = np.split(sums, 2, axis=1)
        rest = ratio(hit.sum(axis=1, keepdims=True) - hit, pair.sum(axis=1, keepdims=True) - pair)
        values = ratio(hit, pair) - rest
        for code, value in enumerate(column.values):
            subset = coded.part(f"{column.name}={value}")
            units = out.count(inside[:, code] & (pairs > 0))
            yield _Difference(coded.raters[grader], subset, values[:, code], units)


def _few(units: tuple[int, int]) -> str:
    return f"fewer than {FEW_UNITS} units" if units[0] < FEW_UNITS else ""
