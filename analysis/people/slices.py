"""Main figures repeated: in parts of the sample, for some of the humans, with other clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.agreement.coefficients import agreement_weights
from evenhand.analysis.agreement.counts import label_counts
from evenhand.analysis.agreement.groups import add_group_rows
from evenhand.analysis.agreement.overlap import KappaMeans, add_humans_rows
from evenhand.analysis.agreement.pairs import alpha_levels, deciding_kappa
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.max_t import max_t_notes
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.counted import ALL_RATERS
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.labels.units import UnitColumn, check_values
from evenhand.analysis.notes import Remark, join_notes
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
    """Add the main figures in every slice of the units, and `slice_difference` of every grader."""
    for column in columns:
        for code, value in enumerate(column.values):
            chosen = column.codes == code
            if not chosen.any():
                continue
            subset = coded.part(f"{column.name}={value}")
            kept = np.unique(coded.clusters[chosen])
            add_main_rows(rows, coded.only(chosen, subset), resamples.only(kept))
    add_slice_difference_rows(rows, columns, coded, resamples)


def add_slice_difference_rows(
    rows: ResultRows, columns: Sequence[UnitColumn], coded: Coded, resamples: Resamples
) -> None:
    """Add `slice_difference`: a grader's mean agreement with humans over the units of a slice minus
    that over the rest (see `unit_agreement`).

    All slices, columns and graders of the view are tested together (see `bootstrap.max_t`).
    """
    out, graders = Writer.of(rows, coded, resamples), coded.members("model")
    agreement, held = np.zeros((2, len(coded.codes), len(graders)))
    for k, grader in enumerate(graders):
        agreement[:, k], held[:, k] = unit_agreement(coded, grader)
    tested = max_t_notes([out.parts(agreement, held, column.codes) for column in columns])
    for column, notes in zip(columns, tested, strict=True):
        inside = column.codes[:, None] == np.arange(len(column.values))
        for k, grader in enumerate(graders):
            sums = out.sums(inside * held[:, [k]], inside * agreement[:, [k]])
            size, agreed = np.split(sums, 2, axis=1)
            rest = (each.sum(axis=1, keepdims=True) - each for each in (agreed, size))
            values = ratio(agreed, size) - ratio(*rest)
            for code, value in enumerate(column.values):
                units = out.count(inside[:, code] & (held[:, k] > 0))
                note = join_notes(_few(units), notes[code][k])
                about = About(a="humans", b=coded.raters[grader], note=note)
                at, why = out.on(coded.part(f"{column.name}={value}")), Remark("no_pairable_units")
                at.add("slice_difference", values[:, code], units, reason=why, **about)


def unit_agreement(coded: Coded, grader: int) -> tuple[Array, Array]:
    """Return a grader's mean agreement with the humans of each unit (units,), and 1 where there is
    any, else 0.

    The agreement of two labels is 1 or 0; of ordered labels and numbers 1 minus their distance as a
    share of the largest, the linear weights of Cohen (1968).
    """
    counts, code = label_counts(coded, coded.people_beside(grader)), coded.codes[:, grader]
    if coded.is_number:
        values = np.asarray(coded.values)
        apart = np.abs(values[:, None] - values)
        weights = 1.0 - apart / max(float(apart.max(initial=0.0)), 1e-300)
    else:
        ordered = coded.level != "nominal"
        weights = agreement_weights(coded.q, "linear" if ordered else "identity")
    held = (counts.sum(axis=1) > 0) & (code >= 0)
    agreed = (counts * weights[np.maximum(code, 0)]).sum(axis=1)
    return np.where(held, agreed / np.maximum(counts.sum(axis=1), 1.0), 0.0), held.astype(float)


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


def _few(units: tuple[int, int]) -> str:
    return f"fewer than {FEW_UNITS} units" if units[0] < FEW_UNITS else ""
