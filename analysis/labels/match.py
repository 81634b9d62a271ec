"""Which class is called by which category."""

from __future__ import annotations

import numpy as np

from evenhand.analysis.types import Codes, Numbers


def best_match(together: Numbers) -> Codes:
    """The class (row) of each category (column), one to one, so that as many as possible of the
    counts `together` (q, q) stand where they match.

    >>> best_match(np.array([[1, 8, 0], [9, 2, 0], [0, 0, 3]])).tolist()
    [1, 0, 2]
    """
    best = np.asarray(together).argmax(axis=0)
    if len(np.unique(best)) == len(best):  # each has its own best one, so no match counts more
        return np.asarray(best)
    from scipy.optimize import linear_sum_assignment  # slow to import, seldom needed

    classes, categories = linear_sum_assignment(together, maximize=True)
    return np.asarray(classes[np.argsort(categories)])
