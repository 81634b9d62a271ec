"""Does a grader fail one group? Its performance against people's consensus, group by group.

A grader can agree well overall and fail the units about one group, source or topic. For every value
of a units column: balanced accuracy, precision, recall and kappa against the majority of people
(the form of Tables 4 and 12 of Feng, Park, Liu & Tsvetkov 2023), each group's difference to the
rest, and the gap between best and worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.bootstrap.intervals import LEVEL, Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.bootstrap.significance import benjamini_hochberg, bootstrap_p
from evenhand.analysis.labels.matrix import BINARY, Coded
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.notes import Code, Remark
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes, Mask

GAP = "group_gap"
BALANCED = "group_balanced_accuracy"
FEW_UNITS = 30


def add_group_performance_rows(
    rows: ResultRows, coded: Coded, resamples: Resamples, columns: Sequence[UnitColumn]
) -> None:
    """For every grader and group column, against the majority of people.

    In each group (subset = "column=value") `group_balanced_accuracy`, `group_kappa`,
    `group_precision` and `group_recall` (at = category), and `group_difference`: its balanced
    accuracy less that of all other groups' units, screened together by Benjamini & Hochberg.
    `group_gap` (at = column) is the best group's balanced accuracy less the worst one's; its
    interval is simultaneous for all groups, so that the picking of the two is paid for.
    """
    humans = coded.members("human")
    if not humans:
        return
    reference = majority_codes(label_counts(coded, humans))
    for grader in coded.members("model"):
        for column in columns:
            groups = _groups(coded, resamples, column, reference, grader)
            for group in groups:
                _add_group(rows, coded, resamples, group)
            if len(groups) > 1:
                _add_differences(rows, coded, resamples, groups)
                _add_gap(rows, coded, resamples, column, groups)


@dataclass(frozen=True)
class _Group:
    """One group under one grader: tables (rows, q, q) in it and in the rest, and its units."""

    grader: str
    subset: str
    value: str
    tables: Array
    rest: Array
    units: Mask
    numbers: tuple[int, int]


def _groups(
    coded: Coded,
    resamples: Resamples,
    column: UnitColumn,
    reference: Codes,
    grader: int,
) -> list[_Group]:
    said = coded.codes[:, grader]
    both = (reference >= 0) & (said >= 0) & (column.codes >= 0)
    q = coded.q
    cells = np.zeros((len(said), q * q))
    cells[np.flatnonzero(both), (reference * q + said)[both]] = 1.0
    every = _totals(cells, coded, resamples)
    found = []
    for code, value in enumerate(column.values):
        inside = both & (column.codes == code)
        if not inside.any():
            continue
        tables = _totals(cells * inside[:, None], coded, resamples)
        found.append(
            _Group(
                coded.raters[grader],
                f"{column.name}={value}" + (BINARY if coded.is_binary else ""),
                value,
                tables,
                every - tables,
                inside,
                resamples.count(coded.clusters, inside),
            )
        )
    return found


def _totals(cells: Array, coded: Coded, resamples: Resamples) -> Array:
    sums = resamples.totals(resamples.cluster_sums(coded.clusters, cells))
    return sums.reshape(-1, coded.q, coded.q)


def _add_group(rows: ResultRows, coded: Coded, resamples: Resamples, group: _Group) -> None:
    few = f"fewer than {FEW_UNITS} units" if group.numbers[0] < FEW_UNITS else ""

    def add(statistic: str, values: Array, at: str, reason: Code) -> None:
        rows.add(
            statistic,
            resamples.interval(values, group.numbers[1], reason=reason),
            group.numbers,
            rater_a="humans",
            rater_b=group.grader,
            subset=group.subset,
            at=at,
            note=few,
        )

    add(BALANCED, c.balanced_accuracy(group.tables), "", "no_pairable_units")
    add("group_kappa", c.cohen_kappa(group.tables), "", "no_variation")
    wanted, said = group.tables.sum(-1), group.tables.sum(-2)
    right = np.diagonal(group.tables, axis1=-2, axis2=-1)
    for code, category in enumerate(coded.categories[:1] if coded.is_binary else coded.categories):
        for statistic, of in (("group_precision", said), ("group_recall", wanted)):
            share = ratio(right[:, code], of[:, code])
            add(statistic, share, category, "category_not_used")


def _add_differences(
    rows: ResultRows, coded: Coded, resamples: Resamples, groups: Sequence[_Group]
) -> None:
    values = [c.balanced_accuracy(each.tables) - c.balanced_accuracy(each.rest) for each in groups]
    raw = np.array([bootstrap_p(each[: 1 + resamples.resamples]) for each in values])
    tested = ~np.isnan(raw)
    adjusted = np.full(len(raw), np.nan)
    adjusted[tested] = benjamini_hochberg(raw[tested])
    for group, each, p, corrected in zip(groups, values, raw, adjusted, strict=True):
        note = ""
        if not np.isnan(p):
            note = f"bootstrap p {p:.4g}; Benjamini-Hochberg p {corrected:.4g} of {tested.sum()}"
        rows.add(
            "group_difference",
            resamples.interval(each, group.numbers[1], reason="no_pairable_units"),
            group.numbers,
            rater_a="humans",
            rater_b=group.grader,
            subset=group.subset,
            note=note,
        )


def _add_gap(
    rows: ResultRows,
    coded: Coded,
    resamples: Resamples,
    column: UnitColumn,
    groups: Sequence[_Group],
) -> None:
    values = np.stack([c.balanced_accuracy(each.tables) for each in groups], axis=1)
    values = values[: 1 + resamples.resamples]
    inside = np.logical_or.reduce([each.units for each in groups])
    worst, best = int(np.nanargmin(values[0])), int(np.nanargmax(values[0]))
    rows.add(
        GAP,
        _gap_interval(values),
        resamples.count(coded.clusters, inside),
        rater_a="humans",
        rater_b=groups[0].grader,
        subset=coded.subset,
        at=column.name,
        note=f"worst {groups[worst].value}, best {groups[best].value}",
    )


def _gap_interval(values: Array) -> Interval:
    """The range of the groups' values (rows, groups), with a simultaneous interval.

    As in Tukey's comparison of all pairs: how far apart two groups' errors stray in a resample, at
    its 95% quantile, is the room to allow for on either side. Groups that a resample leaves out
    stray not at all.
    """
    strayed = values[1:] - values[0]
    gap = float(np.nanmax(values[0]) - np.nanmin(values[0]))
    if np.isnan(strayed).all() or len(strayed) == 0:
        return Interval.point(gap, Remark("not_resampled"))
    strayed = np.where(np.isnan(strayed), 0.0, strayed)
    room = float(np.quantile(strayed.max(axis=1) - strayed.min(axis=1), LEVEL))
    return Interval(gap, max(gap - room, 0.0), min(gap + room, 1.0))
