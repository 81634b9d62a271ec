"""Graders and humans, on plain labels: the human ceiling and the alternative annotator test.

Labels are as in `analysis.agreement.plain`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, deciding_kappa
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Bootstrap
from evenhand.analysis.labels.plain import (
    category_values,
    cluster_codes,
    coded_raters,
    encode_column,
    encode_labels,
    same_length,
)
from evenhand.analysis.labels.scale import Level
from evenhand.analysis.people.alternative_annotator import EPSILON, AltTest, alt_test_codes
from evenhand.analysis.people.ceiling import CEILING, add_ceiling_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Column
from evenhand.errors import InputError


@dataclass(frozen=True, kw_only=True)
class CeilingDifference(Interval):
    """A grader's mean kappa with humans minus the humans' among themselves, with its 95% interval.

    `note` explains any NaN, and names the kappas that the difference is of.
    """

    n_units: int
    n_clusters: int

    def shows_no_worse_than(self, margin: float) -> bool:
        """Return True if the lower bound lies above -margin: non-inferiority to humans."""
        return bool(self.low > -margin)


def human_ceiling(
    humans: Any,
    grader: Any,
    *,
    categories: Column[Hashable],
    level: Level = "nominal",
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> CeilingDifference:
    """Estimate `human_ceiling_difference` from a grader's and humans' plain labels.

    The grader's are (units,), the humans' (units, raters).

    Unweighted kappa on the nominal level, linear weights on the others; each unit with labels of
    the grader and two humans counts once (`analysis.agreement.overlap`). The interval resamples
    `clusters` (units,), or else units, jointly for all raters.

    >>> humans = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]] * 10
    >>> found = human_ceiling(humans, [row[0] for row in humans], categories="ab")
    >>> round(found.estimate, 3), found.shows_no_worse_than(0.1)
    (0.25, True)
    """
    people, own = encode_labels(humans, categories), encode_column(grader, categories)
    same_length(people, own)
    coded = coded_raters(people, own[:, None], categories, level)
    coded = replace(coded, clusters=cluster_codes(clusters, len(own)))
    resamples = (bootstrap or Bootstrap()).draw(np.ones(int(coded.clusters.max()) + 1))
    rows = ResultRows("")
    rows.know_chance(coded, resamples)
    add_ceiling_rows(rows, KappaMeans(coded, resamples, [deciding_kappa(coded)]))
    row = rows.get(CEILING, "humans", coded.raters[-1])
    if row is None:
        raise InputError("there is no human to compare with; give labels (units, raters)")
    return CeilingDifference(
        row["estimate"],
        row["low"],
        row["high"],
        row["remarks"],
        n_units=row["n_units"],
        n_clusters=row["n_clusters"],
    )


def alt_test(
    humans: Any,
    grader: Any,
    *,
    categories: Column[Hashable],
    level: Level = "nominal",
    epsilon: float = EPSILON,
    min_units: int = MIN_SHARED_UNITS,
) -> AltTest:
    """Run the alternative annotator test (Calderon, Reichart & Dror 2025); see `AltTest`.

    `humans` are labels (units, raters), `grader` labels (units,). Exact matches count on the
    nominal level, the root mean square error of the categories' values on the others. `epsilon` is
    .2 for experts (the default), .15 for skilled annotators and .1 for a crowd, as its authors
    advise. A pass is not non-inferiority: a constant can pass.

    A grader that repeats the labels of the first of three humans, who agree on three units of four:

    >>> humans = [["a", "a", "a"], ["b", "b", "b"], ["a", "a", "b"], ["b", "b", "b"]] * 10
    >>> found = alt_test(humans, [row[0] for row in humans], categories="ab")
    >>> found.winning_rate, found.advantage_probability, found.passed
    (1.0, 1.0, True)
    """
    people, own = encode_labels(humans, categories), encode_column(grader, categories)
    same_length(people, own)
    one_hot = np.vstack([np.eye(len(categories)), np.zeros(len(categories))])
    values = None if level == "nominal" else np.asarray(category_values(categories, level))
    return alt_test_codes(people, one_hot[own], values, epsilon=epsilon, min_units=min_units)
