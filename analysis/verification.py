"""Verify point estimates against scikit-learn, krippendorff and statsmodels, before a report is
written. Resampled values are not compared, as the functions of the estimates compute them, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.groups import groups
from evenhand.analysis.agreement.pairs import listed_raters
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array

TOLERANCE = 1e-9
"""Largest difference between an estimate and a library's value."""


class Value(NamedTuple):
    """A library's value of a statistic of two raters, or of a group (`rater_b` is "")."""

    statistic: str
    rater_a: str
    rater_b: str
    value: float


@dataclass(frozen=True)
class Verification:
    """Number of estimates compared, and their largest difference from a library's value."""

    compared: int = 0
    largest: float = 0.0

    def __add__(self, other: Verification) -> Verification:
        return Verification(self.compared + other.compared, max(self.largest, other.largest))


@cache
def libraries_are_here() -> bool:
    """Return True if the libraries are installed; an installation for `check` alone lacks them."""
    return all(find_spec(name) for name in ("krippendorff", "sklearn", "statsmodels"))


def library_values(coded: Coded, weight: Array | None = None) -> list[Value]:
    """Return the libraries' values for one view of the labels (on one set of categories). With a
    `weight` (clusters,), only kappas of two raters, as their other coefficients take no weights.
    """
    return [*_pair_values(coded, weight), *(_group_values(coded) if weight is None else ())]


def verify_estimates(rows: ResultRows, subset: str, values: Iterable[Value]) -> Verification:
    """Compare the rows of one view with the libraries' values, without undefined ones; return the
    number of comparisons. Raises RuntimeError if a difference exceeds `TOLERANCE`.
    """
    verification = Verification()
    for statistic, rater_a, rater_b, expected in values:
        row = rows.get(statistic, rater_a, rater_b, subset)
        if row is None or math.isnan(row["estimate"]) or math.isnan(expected):
            continue
        difference = abs(row["estimate"] - expected)
        if difference > TOLERANCE:
            raise RuntimeError(
                f"{statistic} of {rater_a} {rater_b} on {rows.rubric} is {row['estimate']}, "
                f"a library gives {expected}"
            )
        verification += Verification(1, difference)
    return verification


def _pair_values(coded: Coded, weight: Array | None) -> Iterator[Value]:
    """Yield Cohen's kappas by scikit-learn, and weighted ones by statsmodels, which is faster."""
    from sklearn import config_context
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import cohens_kappa

    if coded.is_number:
        return  # the libraries' weights are by rank
    q = coded.q
    for a, b in combinations(listed_raters(coded), 2):
        shared = coded.labelled[:, a] & coded.labelled[:, b]
        first, second = coded.codes[shared, a], coded.codes[shared, b]
        if len(np.union1d(first, second)) < 2:
            continue  # undefined without variation
        unit_weight = None if weight is None else weight[coded.clusters[shared]]
        rater_a, rater_b = coded.raters[a], coded.raters[b]
        # scikit-learn's checks of the arguments take longer than the coefficient.
        with config_context(skip_parameter_validation=True, assume_finite=True):
            value = cohen_kappa_score(first, second, labels=range(q), sample_weight=unit_weight)
        yield Value("cohen_kappa", rater_a, rater_b, float(value))
        cells = first.astype(np.intp) * q + second  # of a flattened table
        table = np.bincount(cells, unit_weight, minlength=q * q).reshape(q, q)
        for weights in ("linear", "quadratic") if coded.level != "nominal" else ():
            value = cohens_kappa(table, wt=weights, return_results=False)
            yield Value(f"weighted_kappa_{weights}", rater_a, rater_b, float(value))


def _group_values(coded: Coded) -> Iterator[Value]:
    """Yield Krippendorff's alphas; and Fleiss' kappa if all labelled units have the same number of
    labels, as the shares of categories in ours (`group_panel`) include units with one label.
    """
    import krippendorff
    from statsmodels.stats.inter_rater import fleiss_kappa

    for group, members in groups(coded).items():
        counts = label_counts(coded, members).astype(int)
        has_equal_counts = len(np.unique(counts.sum(axis=1)[counts.any(axis=1)])) == 1
        counts = counts[counts.sum(axis=1) >= 2]
        if (counts.sum(axis=0) > 0).sum() < 2:
            continue
        for level in ("nominal", "ordinal", "interval"):
            domain = coded.values if level == "interval" else range(coded.q)
            value = krippendorff.alpha(
                value_counts=counts, value_domain=list(domain), level_of_measurement=level
            )
            yield Value(f"krippendorff_alpha_{level}", group, "", float(value))
        if has_equal_counts:
            yield Value("fleiss_kappa", group, "", float(fleiss_kappa(counts)))
