"""Consensus, the alternative annotator test and repeats on plain labels.

Labels are as in `analysis.agreement.plain`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.agreement import dawid_skene as lc
from evenhand.analysis.agreement.consensus import majority_codes
from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS
from evenhand.analysis.agreement.plain import Agreement, Weights, cohen_kappa
from evenhand.analysis.labels.plain import (
    category_values,
    count_labels,
    encode_column,
    encode_labels,
    same_length,
)
from evenhand.analysis.labels.scale import Level
from evenhand.analysis.people.alternative_annotator import EPSILON, AltTest, alt_test_codes
from evenhand.errors import InputError

__all__ = ["IntraRater", "Majority", "alt_test", "dawid_skene", "intra_rater", "majority"]

Array = npt.NDArray[np.float64]
Categories = Sequence[Hashable]


@dataclass(frozen=True)
class Majority:
    """The majority's label for each unit (None where tied or without labels), and the ties."""

    labels: tuple[Hashable | None, ...]
    tied: npt.NDArray[np.bool_]

    @property
    def ties(self) -> float:
        """Share of the units with a label that are tied."""
        known = sum(label is not None for label in self.labels) + int(self.tied.sum())
        return float(self.tied.sum() / known) if known else np.nan


def majority(labels: Any, *, categories: Categories) -> Majority:
    """The most frequent label of every unit of labels (units, raters); ties are declared.

    >>> found = majority([["a", "a", "b"], ["a", "b", None], [None, "b", None]], categories="ab")
    >>> found.labels, found.tied.tolist()
    (('a', None, 'b'), [False, True, False])
    """
    counts = count_labels(encode_labels(labels, categories), len(categories))
    codes = majority_codes(counts)
    return Majority(
        tuple(categories[code] if code >= 0 else None for code in codes),
        (codes < 0) & (counts.sum(axis=1) > 0),
    )


def dawid_skene(
    labels: Any, *, categories: Categories, raters: Sequence[Hashable] | None = None
) -> lc.DawidSkene:
    """Dawid & Skene's model (1979) of labels (units, raters) by EM; see `DawidSkene`.

    `raters` names the columns; columns of the same name are one rater's repeats, who then has one
    confusion matrix, in the order of first mention. Raises InputError below two categories.

    Three raters who agree on the first nine units of ten, one of them alone on the last:

    >>> labels = [["a"] * 3] * 5 + [["b"] * 3] * 4 + [["b", "b", "a"]]
    >>> found = dawid_skene(labels, categories="ab")
    >>> found.converged, found.prevalence.round(3).tolist(), found.codes[-1].item()
    (True, [0.5, 0.5], 1)
    """
    if len(categories) < 2:
        raise InputError("Dawid and Skene's model needs at least two categories; declare them all")
    counts = lc.counts_of_codes(encode_labels(labels, categories), len(categories))
    names = list(range(counts.shape[1])) if raters is None else list(raters)
    if len(names) != counts.shape[1]:
        raise InputError(
            f"raters names {len(names)} columns, and the labels have {counts.shape[1]}"
        )
    columns = [[k for k, name in enumerate(names) if name == one] for one in dict.fromkeys(names)]
    return lc.fit(np.stack([counts[:, own].sum(axis=1) for own in columns], axis=1))


def alt_test(
    humans: Any,
    grader: Any,
    *,
    categories: Categories,
    level: Level = "nominal",
    epsilon: float = EPSILON,
    min_units: int = MIN_SHARED_UNITS,
) -> AltTest:
    """The alternative annotator test (Calderon, Reichart & Dror 2025); see `AltTest`.

    `humans` are labels (units, raters), `grader` labels (units,). Exact matches count on the
    nominal level, the root mean square error of the categories' values on the others. `epsilon` is
    .2 for experts (the default), .15 for skilled people and .1 for a crowd, as its authors advise.
    A pass is not non-inferiority: a constant can pass.

    A grader that says what the first of three people says, who agree on three units of four:

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


@dataclass(frozen=True)
class IntraRater:
    """A rater's agreement with themselves: means over pairs of readings, and each pair's kappa."""

    agreement: float
    kappa: float
    pairs: dict[tuple[int, int], Agreement]


def intra_rater(
    readings: Any, *, categories: Categories, weights: Weights = "identity"
) -> IntraRater:
    """Agreement of one rater's repeated readings (units, readings) of the same units.

    >>> found = intra_rater([["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]], categories="ab")
    >>> found.agreement, found.kappa
    (0.75, 0.5)
    """
    codes = encode_labels(readings, categories)
    pairs = list(combinations(range(codes.shape[1]), 2))
    order = range(len(categories))
    named = [[None if code < 0 else int(code) for code in column] for column in codes.T]
    kappas = {
        (a, b): cohen_kappa(named[a], named[b], categories=order, weights=weights) for a, b in pairs
    }
    agreed = []
    for a, b in pairs:
        both = (codes[:, a] >= 0) & (codes[:, b] >= 0)
        agreed.append(float((codes[both, a] == codes[both, b]).mean()) if both.any() else np.nan)
    return IntraRater(_mean(agreed), _mean([each.estimate for each in kappas.values()]), kappas)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan
