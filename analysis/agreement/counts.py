"""Counts of the raters who chose each category of a unit, and what follows from them alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.analysis.bootstrap.patterns import count_labels
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.types import Array, Codes, Mask


def label_counts(coded: Coded, members: Sequence[int]) -> Array:
    """Count the raters that chose each category, (units, q)."""
    return count_labels(coded.codes[:, list(members)], coded.q)


def majority_codes(counts: Array) -> Codes:
    """Most frequent category (units,) from label counts (units, q); -1 for no label or a tie.

    >>> majority_codes(np.array([[2, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]])).tolist()
    [0, -1, -1, 2]
    """
    return np.where(is_tied(counts) | (counts.sum(axis=1) == 0), -1, counts.argmax(axis=1))


def usual_codes(coded: Coded, members: Sequence[int]) -> Codes:
    """The label (units,) that most of some raters gave, -1 for none or a tie; of numbers their
    median, the lower one of two.
    """
    counts = label_counts(coded, members)
    return median_codes(counts) if coded.is_number else majority_codes(counts)


def median_codes(counts: Array) -> Codes:
    """Median label (units,) from label counts (units, q), the lower one of two; -1 for none."""
    half = (counts.sum(axis=1, keepdims=True) + 1.0) // 2
    reached = (counts.cumsum(axis=1) >= half).argmax(axis=1)
    return np.where(counts.any(axis=1), reached, -1)


def unseen_labels(counts: Array, *, ordered: bool, step: int = 1) -> list[Codes]:
    """Labels (units,) that a grader could have given but did not, by how many people chose each
    (units, q): the categories after the one that most people chose, in turn; of ordered ones
    people's median, its neighbours (`step` away), and both ends of the scale, where gross errors
    lie.
    """
    q = counts.shape[1]
    if not ordered:
        most = counts.argmax(axis=1)
        return [(most + each) % q for each in range(q)]
    usual = np.maximum(median_codes(counts), 0)
    return [np.clip(usual + each, 0, q - 1) for each in (-q, -step, 0, step, q)]


def is_tied(counts: Array) -> Mask:
    """True where two or more categories share the highest count, (units,)."""
    most = counts.max(axis=1, keepdims=True)
    return np.asarray(((counts == most).sum(axis=1) > 1) & (most[:, 0] > 0))


def category_shares(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Shares of the categories (rows, q), each labelled unit counting once (Gwet 2014, ch. 5)."""
    labels = counts.sum(axis=1, keepdims=True)
    sums = resamples.sums(coded.clusters, labels > 0, counts / np.maximum(labels, 1.0))
    return ratio(sums[:, 1:], sums[:, :1])


def agreeing_shares(counts: Array, weights: Array) -> Array:
    """Return each unit's (weighted) share of agreeing ordered label pairs; 0 below two labels."""
    labels = counts.sum(axis=1)
    agreeing = (counts * (counts @ weights - 1.0)).sum(axis=1)
    pairs = labels * (labels - 1.0)
    return np.asarray(np.divide(agreeing, pairs, out=np.zeros(len(counts)), where=pairs > 0))


def coincidences(counts: Array) -> Array:
    """Return each unit's ordered pairs of labels, weighted 1 / (labels - 1): (units, q, q)."""
    q = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(q), range(q)] -= counts
    others = counts.sum(axis=1) - 1.0
    weight = np.divide(1.0, others, out=np.zeros(len(counts)), where=others > 0)
    weighted: Array = pairs * weight[:, None, None]
    return weighted
