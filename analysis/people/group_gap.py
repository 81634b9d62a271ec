"""Group gap: does a grader fail one group? Its performance by group, against the consensus.

A grader can agree well overall and fail the units about one group, source or topic. For every value
of a units column: balanced accuracy, precision, recall and kappa against the majority of humans
(the form of Tables 4 and 12 of Feng, Park, Liu & Tsvetkov 2023), each group's difference from the
rest, and the gap between best and worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.bootstrap.intervals import LEVEL, Interval
from evenhand.analysis.bootstrap.max_t import Parts, max_t_notes
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.analysis.writer import About, Writer

GAP = "group_gap"
BALANCED = "group_balanced_accuracy"
FEW_UNITS = 30


def add_group_performance_rows(
    rows: ResultRows, coded: Coded, resamples: Resamples, columns: Sequence[UnitColumn]
) -> None:
    """Add performance by group for every grader and column, against the majority of humans.

    In each group (subset = "column=value") `group_balanced_accuracy`, `group_kappa`,
    `group_precision` and `group_recall` (at = category), and `group_difference`: its balanced
    accuracy minus that of all other groups' units, tested together for all groups, columns and
    graders (see `_tested`). `group_gap` (at = column) is the best group's balanced accuracy minus
    the worst one's; its interval is simultaneous for all groups, so that it allows for the choice
    of the two.
    """
    humans = coded.members("human")
    if not humans:
        return
    out = Writer.of(rows, coded, resamples)
    reference = majority_codes(label_counts(coded, humans))
    notes = max_t_notes([_tested(out, coded, column, reference) for column in columns])
    for k, grader in enumerate(coded.members("model")):
        for column, of_column in zip(columns, notes, strict=True):
            groups = _groups(out, coded, column, reference, grader)
            for group in groups:
                _add_group(group, coded)
            if len(groups) > 1:
                for group in groups:
                    _add_difference(group, of_column[column.values.index(group.value)][k])
                _add_gap(out, column.name, groups)


@dataclass(frozen=True)
class _Group:
    """A group under one grader: tables (rows, q, q) in it and in the rest, and its units."""

    out: Writer
    grader: str
    value: str
    tables: Array
    rest: Array
    units: Mask


def _groups(
    out: Writer, coded: Coded, column: UnitColumn, reference: Codes, grader: int
) -> list[_Group]:
    said, q = coded.codes[:, grader], coded.q
    both = (reference >= 0) & (said >= 0) & (column.codes >= 0)
    cells = np.zeros((len(said), q * q))
    cells[np.flatnonzero(both), (reference * q + said)[both]] = 1.0
    every = out.sums(cells).reshape(-1, q, q)
    found = []
    for code, value in enumerate(column.values):
        inside = both & (column.codes == code)
        if inside.any():
            tables = out.sums(cells * inside[:, None]).reshape(-1, q, q)
            own = out.on(coded.part(f"{column.name}={value}"))
            rest = every - tables
            found.append(_Group(own, coded.raters[grader], value, tables, rest, inside))
    return found


def _tested(out: Writer, coded: Coded, column: UnitColumn, reference: Codes) -> Parts:
    """Return what `max_t` tests: whether a grader repeats the majority's category on a unit, minus
    how often it repeats that category in all groups.

    All categories count equally, as in balanced accuracy. So a group is not told apart for having
    more units of a harder category, or none of an easier one; single units change places only with
    others of their category.
    """
    graders = list(coded.members("model"))
    outcome, mass = np.zeros((2, len(reference), len(graders)))
    for k, grader in enumerate(graders):
        said = coded.codes[:, grader]
        units = np.flatnonzero((reference >= 0) & (said >= 0) & (column.codes >= 0))
        right, wanted = said[units] == reference[units], np.eye(coded.q)[reference[units]]
        cells = np.zeros((len(reference), 2 * coded.q))
        cells[units] = np.hstack([wanted * right[:, None], wanted])
        hits, of = np.split(out.sums(cells)[0], 2)
        outcome[units, k] = right - ratio(hits, of)[reference[units]]
        mass[units, k] = 1.0 / of[reference[units]]
    return out.parts(outcome, mass, column.codes, reference)


def _add_group(group: _Group, coded: Coded) -> None:
    out, units = group.out, group.out.count(group.units)
    few = f"fewer than {FEW_UNITS} units" if units[0] < FEW_UNITS else ""
    add = partial(out.add, units=units, a="humans", b=group.grader, note=few)
    add(BALANCED, c.balanced_accuracy(group.tables), reason="no_pairable_units")
    add("group_kappa", c.cohen_kappa(group.tables))
    wanted, said = group.tables.sum(-1), group.tables.sum(-2)
    right = np.diagonal(group.tables, axis1=-2, axis2=-1)
    for code, category in enumerate(coded.categories[:1] if coded.is_binary else coded.categories):
        for statistic, of in (("group_precision", said), ("group_recall", wanted)):
            share = ratio(right[:, code], of[:, code])
            add(statistic, share, at=category, reason="category_not_used")


def _add_difference(group: _Group, note: str) -> None:
    values = c.balanced_accuracy(group.tables) - c.balanced_accuracy(group.rest)
    about = About(a="humans", b=group.grader, note=note)
    group.out.add("group_difference", values, group.units, reason="no_pairable_units", **about)


def _add_gap(out: Writer, column: str, groups: Sequence[_Group]) -> None:
    values = np.stack([c.balanced_accuracy(each.tables) for each in groups], axis=1)
    values = out.resamples.plain(values)
    units = np.logical_or.reduce([each.units for each in groups])
    worst, best = groups[int(np.nanargmin(values[0]))], groups[int(np.nanargmax(values[0]))]
    note = f"worst {worst.value}, best {best.value}"
    about = About(a="humans", b=worst.grader, at=column, note=note)
    out.add_interval(GAP, _gap_interval(values), units, **about)


def _gap_interval(values: Array) -> Interval:
    """Return the range of the groups' values (rows, groups), with a simultaneous interval.

    As in Tukey's comparison of all pairs, the margin on either side is the 95% quantile of the
    range of the groups' errors in a resample. Groups that a resample leaves out have no error.
    """
    strayed = values[1:] - values[0]
    gap = float(np.nanmax(values[0]) - np.nanmin(values[0]))
    if np.isnan(strayed).all() or len(strayed) == 0:
        return Interval.point(gap, Remark("not_resampled"))
    strayed = np.where(np.isnan(strayed), 0.0, strayed)
    room = float(np.quantile(strayed.max(axis=1) - strayed.min(axis=1), LEVEL))
    return Interval(gap, max(gap - room, 0.0), min(gap + room, 1.0))
