"""Shares and quotients that may be of nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ratio"]

Array = npt.NDArray[np.float64]


def ratio(part: Array, whole: Array) -> Array:
    """part / whole, NaN where whole is 0 but for rounding; shapes broadcast.

    >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    return np.asarray(part / np.where(np.abs(whole) > 1e-12, whole, np.nan))
