"""Matching of classes to categories."""

from __future__ import annotations

import numpy as np

from evenhand.analysis.types import Codes, Numbers


def best_match(together: Numbers) -> Codes:
    """Match each category (column) with a class (row), one to one.

    The match maximises the sum of the matched counts of `together` (q, q).

    >>> best_match(np.array([[1, 8, 0], [9, 2, 0], [0, 0, 3]])).tolist()
    [1, 0, 2]
    """
    best = np.asarray(together).argmax(axis=0)
    if len(np.unique(best)) == len(best):  # each has its own best one, so no match counts more
        return np.asarray(best)
    from scipy.optimize import linear_sum_assignment  # slow to import, seldom needed

    classes, categories = linear_sum_assignment(together, maximize=True)
    return np.asarray(classes[np.argsort(categories)])
