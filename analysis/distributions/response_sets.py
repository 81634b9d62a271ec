"""Several right answers: a label is right where a share of people gave it, not only the most.

Forced to name one, people who find two answers right may choose otherwise than a grader that finds
the same two right, and agreement with most people's label then ranks graders wrongly (Guerdan,
Barocas, Holstein, Wallach, Wu & Chouldechova 2025). Nobody was asked for all answers that they
find right, so the set of right labels is read off people's shares, at several cut-offs.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.types import Array, Mask

RIGHT_SHARES = (0.1, 0.2, 0.3)
"""The shares of people from which a label counts as right."""
AFFIRMED_SHARES = (0.2, 0.3, 0.4, 0.5)
"""The shares of people from which a unit counts as affirmative."""
MIN_GIVEN = 2
"""A label that one person alone gave may be a slip, and is never right."""

_ROUNDING = 1e-9


def right_labels(counts: Array, share: float) -> Mask:
    """The labels that such a share of people gave, and two people at least: (units, q).

    >>> right_labels(np.array([[7.0, 2.0, 1.0]]), 0.1).tolist()
    [[True, True, False]]
    """
    return counts >= _needed(counts.sum(axis=1, keepdims=True), share)


def right_without_one(counts: Array, share: float) -> Array:
    """How often each label is right by what all people but one gave, (units, q).

    So a grader is held against as many people as each person is.
    """
    people = counts.sum(axis=1, keepdims=True)
    needed = _needed(people - 1.0, share)
    without_own = counts * (counts - 1.0 >= needed)
    return np.asarray((without_own + (people - counts) * (counts >= needed)) / people)


def right_by_others(counts: Array, share: float) -> Array:
    """How often a person's label is right by what the others gave, (units,).

    >>> right_by_others(np.array([[3.0, 2.0]]), 0.1).tolist()
    [0.6]
    """
    people = counts.sum(axis=1, keepdims=True)
    right = counts - 1.0 >= _needed(people - 1.0, share)
    return np.asarray((counts * right / people).sum(axis=1))


def affirmed(counts: Array, share: float) -> Mask:
    """The units that such a share of people affirm, (units,); affirmative is the first category."""
    return np.asarray(counts[:, 0] >= share * counts.sum(axis=1) - _ROUNDING)


def _needed(people: Array, share: float) -> Array:
    return np.maximum(MIN_GIVEN, share * people - _ROUNDING)
