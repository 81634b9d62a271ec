"""Groups: does a grader fail one? Its performance by group, against the majority.

A grader can agree well overall and fail the units about one group, source or topic. For every value
of a units column: balanced accuracy against the majority of humans (as in Tables 4 and 12 of Feng,
Park, Liu & Tsvetkov 2023), and the group's difference from the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.bootstrap.max_t import Parts, max_t_notes
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.analysis.writer import About, Writer

BALANCED = "group_balanced_accuracy"
FEW_UNITS = 30


def add_group_performance_rows(
    rows: ResultRows, coded: Coded, resamples: Resamples, columns: Sequence[UnitColumn]
) -> None:
    """Add performance by group for every grader and column, against the majority of humans.

    In each group (subset = "column=value") `group_balanced_accuracy`, and `group_difference`: this
    minus that of all other groups' units, tested together for all groups, columns and graders (see
    `_tested`).
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
                few = out.count(group.units)[0] < FEW_UNITS
                note = f"fewer than {FEW_UNITS} units" if few else ""
                _add(group, BALANCED, c.balanced_accuracy(group.tables), note)
            for group in groups if len(groups) > 1 else ():
                apart = c.balanced_accuracy(group.tables) - c.balanced_accuracy(group.rest)
                note = of_column[column.values.index(group.value)][k]
                _add(group, "group_difference", apart, note)


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


def _add(group: _Group, statistic: str, values: Array, note: str) -> None:
    about = About(a="humans", b=group.grader, note=note)
    group.out.add(statistic, values, group.units, reason="no_pairable_units", **about)
