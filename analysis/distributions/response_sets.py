"""Response sets: a label is right where a share of humans gave it, not only the most frequent.

Forced to name one, humans who find two answers right may choose differently from a grader that
finds the same two right, and agreement with the majority label then ranks graders wrongly (Guerdan,
Barocas, Holstein, Wallach, Wu & Chouldechova 2025). Raters were not asked for all answers that they
find right, so the set of right labels is taken from the humans' shares, at several cut-offs.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.types import Array, Mask

RIGHT_SHARES = (0.1, 0.2, 0.3)
"""The shares of people from which a label counts as right."""
MIN_GIVEN = 2
"""A label that only one human gave may be a slip, and is never right."""

_ROUNDING = 1e-9


def right_labels(counts: Array, share: float) -> Mask:
    """Labels that such a share of humans gave, and at least two of them: (units, q).

    >>> right_labels(np.array([[7.0, 2.0, 1.0]]), 0.1).tolist()
    [[True, True, False]]
    """
    return counts >= _needed(counts.sum(axis=1, keepdims=True), share)


def right_without_one(counts: Array, share: float) -> Array:
    """Probability that each label is right by the labels of all humans but one, (units, q).

    A grader is thereby compared with as many humans as each human is.
    """
    people = counts.sum(axis=1, keepdims=True)
    needed = _needed(people - 1.0, share)
    without_own = counts * (counts - 1.0 >= needed)
    return np.asarray((without_own + (people - counts) * (counts >= needed)) / people)


def right_by_others(counts: Array, share: float) -> Array:
    """Probability that a human's label is right by the labels of the others, (units,).

    >>> right_by_others(np.array([[3.0, 2.0]]), 0.1).tolist()
    [0.6]
    """
    people = counts.sum(axis=1, keepdims=True)
    right = counts - 1.0 >= _needed(people - 1.0, share)
    return np.asarray((counts * right / people).sum(axis=1))


def _needed(people: Array, share: float) -> Array:
    return np.maximum(MIN_GIVEN, share * people - _ROUNDING)
