"""Levels of repeated looks at a verdict (alpha spending).

Looking again after labelling more is another chance to be wrong. The default plan is two looks at
equal levels: one at the labels as they are, one after as many more as the first advised. As the
second look includes the labels of the first, both go wrong together more often than independent
looks, and each may spend more than half of the error (Pocock 1977; Lan & DeMets 1983). The number
of labels at the second look is not known at the first: four times as many are allowed for. A tenth
of the error is kept for further looks, of which each may spend half of what is left.

A study that declares its looks shares the whole error evenly among them, at equal steps, and has
none beyond.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from evenhand.analysis.bootstrap.influence import ALPHA, level_together

USUAL = 2
"""Looks at equal levels, where none are declared."""
_GROWTH = 4.0
"""Ratio of the labels at the second look to those at the first that is allowed for."""
_KEPT = 0.1
"""The share of the error that is kept for looks beyond the usual ones."""


@lru_cache(maxsize=256)
def level_of_look(look: int, declared: int = 0, alpha: float = ALPHA) -> float:
    """Return the one-sided level of a study's `look`, from 1; 0.0 where none is left.

    For look 0 the level is 0.0, too.

    >>> [round(level_of_look(look), 4) for look in (1, 2, 3, 4)]
    [0.0123, 0.0123, 0.0013, 0.0006]
    >>> [round(level_of_look(look, declared=2), 3) for look in (1, 2, 3)]
    [0.015, 0.015, 0.0]
    """
    if not look:
        return 0.0
    if declared:
        sizes = np.arange(1.0, declared + 1.0)
        return _each(sizes, alpha) if look <= declared else 0.0
    if look <= USUAL:
        return _each(np.array([1.0, _GROWTH]), alpha * (1.0 - _KEPT))
    return float(alpha * _KEPT * 0.5 ** (look - USUAL))


def level_of_reading(reading: int, declared: int = 0, alpha: float = ALPHA) -> float:
    """Return the one-sided level of the `reading`, from 1, of labels kept for a proof; 0.0 where
    none is left. As `level_of_look`, but readings may be of other graders and have nothing in
    common, so that levels add up to the error (Bonferroni).

    >>> [round(level_of_reading(reading), 5) for reading in (1, 2, 3, 4)]
    [0.01125, 0.01125, 0.00125, 0.00063]
    >>> [level_of_reading(reading, declared=2) for reading in (1, 2, 3)]
    [0.0125, 0.0125, 0.0]
    """
    if declared:
        return alpha / declared if 1 <= reading <= declared else 0.0
    if 1 <= reading <= USUAL:
        return alpha * (1.0 - _KEPT) / USUAL
    return float(alpha * _KEPT * 0.5 ** (reading - USUAL)) if reading else 0.0


def _each(sizes: np.ndarray, alpha: float) -> float:
    """Return the level of each look at nested samples of these sizes."""
    if len(sizes) == 1:
        return alpha
    ratio = sizes[:, None] / sizes[None, :]
    return level_together(np.sqrt(np.minimum(ratio, 1.0 / ratio)), alpha)
