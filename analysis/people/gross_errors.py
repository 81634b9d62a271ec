"""Gross errors: a grader's labels further from every person's than theirs are from each other.

A kappa averages over units, and one gross error in a hundred hardly moves it. So errors beyond what
people disagree by are counted, with the share of them that a sample cannot rule out.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.agreement.overlap import compared_units, entry_pairs
from evenhand.analysis.bootstrap.influence import ALPHA
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.shares import share_bounds
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes
from evenhand.analysis.writer import Writer

GROSS = "gross_errors"
USUAL = 0.99
"""Share of the distances of people's labels of one unit that a gross error exceeds."""


def add_gross_error_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """Add `gross_errors` of every grader on an ordered scale: the share of its labels further from
    every person's than 99% of people's labels of one unit from each other; `at` is that distance.

    `low` and `high` are Clopper & Pearson's (1934) on the effective sample size.
    """
    if coded.level == "nominal":
        return
    out, values = Writer.of(rows, coded, resamples), np.asarray(coded.values, dtype=float)
    for grader in coded.members("model"):
        people = coded.people_beside(grader)
        units, both = compared_units(coded, resamples, people, grader)
        if not both:
            continue
        unit, person = np.nonzero(coded.labelled[:, list(people)] & units[:, None])
        given = coded.codes[unit, np.asarray(people)[person]].astype(np.intp)
        far = _usual_distance(unit, given, values, resamples.mass[coded.clusters].astype(float))
        apart = np.abs(values[given] - values[coded.codes[unit, grader].astype(np.intp)])
        nearest = np.full(len(units), np.inf)
        np.minimum.at(nearest, unit, apart)
        gross = units & (nearest > far + 1e-9)
        each = out.each_cluster(np.column_stack([gross, units]))
        found = Interval(*share_bounds(each[:, 0], each[:, 1], ALPHA))
        of = {"a": "humans", "b": coded.raters[grader], "at": f"{far:g}"}
        out.add_interval(GROSS, found, units, **of)


def _usual_distance(unit: Codes, given: Codes, values: Array, mass: Array) -> float:
    """The distance that 99% of pairs of labels of one unit do not exceed, each unit counting once,
    from labels with their units and codes.
    """
    q, number = len(values), np.bincount(unit, minlength=len(mass)).astype(float)
    together = np.zeros(q * q)
    for i, j in entry_pairs(unit):
        at = unit[i]
        weight = mass[at] / (number[at] * (number[at] - 1.0))
        together += np.bincount(given[i] * q + given[j], weight, q * q)
    apart = np.abs(values[:, None] - values).ravel()
    order = np.argsort(apart, kind="stable")
    reached = together[order].cumsum()
    return float(apart[order][np.searchsorted(reached, USUAL * reached[-1] - 1e-9)])
