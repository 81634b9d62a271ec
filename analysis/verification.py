"""Point estimates held against the libraries that others would use, before a report is written.

Estimates and resamples come from one engine; on the data as they are it must say what
scikit-learn, krippendorff and statsmodels say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from itertools import combinations

import numpy as np

from evenhand.analysis.agreement.counts import label_counts
from evenhand.analysis.agreement.groups import groups
from evenhand.analysis.agreement.pairs import listed_raters
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array

TOLERANCE = 1e-9
_KAPPAS = {
    "cohen_kappa": None,
    "weighted_kappa_linear": "linear",
    "weighted_kappa_quadratic": "quadratic",
}
Value = tuple[str, str, str, float]
"""What a library says of a statistic of two raters, or of a group and nobody."""
Libraries = Callable[[Coded, Array | None], Callable[[], list[Value]]]
"""Begins to ask the libraries about a reading (see `library_values`), and gives back what waits for
their answer. What was begun first is waited for first.
"""


@dataclass(frozen=True)
class Verification:
    """How many estimates were compared, and the largest difference found."""

    compared: int = 0
    largest: float = 0.0

    def __add__(self, other: Verification) -> Verification:
        return Verification(self.compared + other.compared, max(self.largest, other.largest))


@cache
def libraries_are_here() -> bool:
    """Whether there is anything to compare with: an installation for `check` alone has nothing."""
    return all(find_spec(name) for name in ("krippendorff", "sklearn", "statsmodels"))


def load_libraries() -> None:
    """Import them, which takes a second."""
    import krippendorff  # noqa: F401
    import sklearn.metrics  # noqa: F401
    import statsmodels.stats.inter_rater  # noqa: F401


def library_values(coded: Coded, weight: Array | None = None) -> list[Value]:
    """What the libraries say of one reading. Where clusters do not count alike, `weight`
    (clusters,), only scikit-learn can follow.
    """
    return [*_pairs(coded, weight), *(_groups(coded) if weight is None else ())]


def in_this_process(coded: Coded, weight: Array | None) -> Callable[[], list[Value]]:
    """Asks the libraries once the answer is wanted (`Libraries`)."""
    return partial(library_values, coded, weight)


def verify_estimates(rows: ResultRows, subset: str, values: Iterable[Value]) -> Verification:
    """Compare the rows of one reading with the libraries' values; undefined ones are passed over.

    Raises RuntimeError where a difference exceeds TOLERANCE: then the report would be wrong.
    """
    found = Verification()
    for statistic, rater_a, rater_b, theirs in values:
        row = rows.get(statistic, rater_a, rater_b, subset)
        if row is None or math.isnan(row["estimate"]) or math.isnan(theirs):
            continue
        difference = abs(row["estimate"] - theirs)
        if difference > TOLERANCE:
            raise RuntimeError(
                f"{statistic} of {rater_a} {rater_b} on {rows.rubric} is {row['estimate']}, "
                f"a library gives {theirs}"
            )
        found += Verification(1, difference)
    return found


def _pairs(coded: Coded, weight: Array | None) -> Iterator[Value]:
    """Cohen's kappas by scikit-learn."""
    from sklearn import config_context
    from sklearn.metrics import cohen_kappa_score

    wanted = dict(list(_KAPPAS.items())[: 1 if coded.level == "nominal" else None])
    for one, two in combinations(listed_raters(coded), 2):
        both = coded.labelled[:, one] & coded.labelled[:, two]
        first, second = coded.codes[both, one], coded.codes[both, two]
        if len(np.union1d(first, second)) < 2:
            continue  # undefined: nothing varies
        counts = None if weight is None else weight[coded.clusters[both]]
        for statistic, weights in wanted.items():
            # Its checks of the arguments take longer than the coefficient.
            with config_context(skip_parameter_validation=True, assume_finite=True):
                value = cohen_kappa_score(
                    first, second, labels=range(coded.q), weights=weights, sample_weight=counts
                )
            yield statistic, coded.raters[one], coded.raters[two], float(value)


def _groups(coded: Coded) -> Iterator[Value]:
    """Krippendorff's alphas by krippendorff; Fleiss' kappa by statsmodels where all labelled units
    have equally many labels, the only case in which it is right: a unit with one label has its part
    in the marginals.
    """
    import krippendorff
    from statsmodels.stats.inter_rater import fleiss_kappa

    for group, members in groups(coded).items():
        counts = label_counts(coded, members).astype(int)
        equally_many = len(np.unique(counts.sum(axis=1)[counts.any(axis=1)])) == 1
        counts = counts[counts.sum(axis=1) >= 2]
        if (counts.sum(axis=0) > 0).sum() < 2:
            continue
        for level in ("nominal", "ordinal", "interval"):
            domain = coded.values if level == "interval" else range(coded.q)
            value = krippendorff.alpha(
                value_counts=counts, value_domain=list(domain), level_of_measurement=level
            )
            yield f"krippendorff_alpha_{level}", group, "", float(value)
        if equally_many:
            yield "fleiss_kappa", group, "", float(fleiss_kappa(counts))
