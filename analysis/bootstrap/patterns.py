"""Distinct rows of labels and how often each occurs in the data.

A bootstrap of units depends on nothing else, so a million labels cost what their few hundred
patterns cost. Rows are first encoded as whole numbers, which are counted in one pass, not sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.types import Array, Codes, Integers

Small = npt.NDArray[np.integer[Any] | np.bool_]

_COUNTABLE = 4_000_000
_LARGEST_KEY = 2**62


def distinct_rows(columns: Sequence[Small]) -> tuple[Codes, Codes]:
    """Find the distinct rows of columns (rows,).

    Returns the position of one row (patterns,) of each kind, and how many such rows there are.
    Codes are small whole numbers from -1 up.

    >>> distinct_rows([np.array([0, 1, 0, 0]), np.array([2, -1, 2, 0])])
    (array([3, 2, 1]), array([1, 2, 1]))
    """
    key, size = np.zeros(len(columns[0]), dtype=np.intp), 1
    for column in columns:
        width = int(column.max(initial=0)) + 2
        if size * width >= _LARGEST_KEY:
            _, key = np.unique(key, return_inverse=True)
            size = int(key.max(initial=0)) + 1
        key *= width
        key += column
        key += 1
        size *= width
    if size > _COUNTABLE:
        _, first, counts = np.unique(key, return_index=True, return_counts=True)
        return first, counts
    counts = np.bincount(key, minlength=1)
    used = np.flatnonzero(counts)
    at = np.empty(len(counts), dtype=np.intp)
    at[key] = np.arange(len(key))
    return at[used], counts[used]


def count_labels(codes: Integers, q: int) -> Array:
    """Count raters by category, (units, q), from codes (units, raters), -1 missing."""
    return np.stack([(codes == code).sum(axis=1) for code in range(q)], axis=1).astype(float)


def count_patterns(codes: Integers, q: int) -> tuple[Array, Codes]:
    """Return distinct counts of the categories (patterns, q) over units, and how often each occurs.

    `codes` (units, raters) are 0 to q - 1, -1 missing. Statistics of a group of raters need no
    more: five raters on five categories have at most 126 patterns if nothing is missing.

    >>> counts, times = count_patterns(np.array([[0, 1, 0], [1, 0, 0], [1, 1, -1]]), 2)
    >>> counts.tolist(), times.tolist()
    ([[2.0, 1.0], [0.0, 2.0]], [2, 1])
    """
    base = codes.shape[1] + 1
    if base**q >= _LARGEST_KEY:
        counts = count_labels(codes, q)
        kept, times = distinct_rows(list(counts.T.astype(np.intp)))
        return counts[kept], times
    # The key is the counts' digits to the base, so a rater's label adds one at its digit.
    digit = np.array([base**code for code in range(q)] + [0], dtype=np.intp)
    key = np.zeros(len(codes), dtype=np.intp)
    for rater in range(codes.shape[1]):
        key += digit[np.ascontiguousarray(codes[:, rater])]
    if base**q <= _COUNTABLE:
        every = np.bincount(key, minlength=1)
        used = np.flatnonzero(every)
        times = every[used]
    else:
        used, times = np.unique(key, return_counts=True)
    return (used[:, None] // digit[:q] % base).astype(float), times
