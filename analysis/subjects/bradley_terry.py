"""Strengths of subjects from comparisons of two (Bradley & Terry 1952).

The chance that s is preferred to t is 1 / (1 + exp(strength of t - strength of s)). A tie counts as
half a win for either, as in public leaderboards (Chiang et al. 2024): that needs no further
parameter and ranks alike, while strengths lie closer together than in a model of ties (Davidson
1970). There is one most likely set of strengths if, however the subjects are parted in two, some of
either part have won against some of the other (Ford 1957); else there is none.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.notes import Code
from evenhand.analysis.types import Array, Mask

_STEPS = 100
_LONGEST = 2.0
_ENOUGH = 1e-11
_BLOCK = 250
"""Tables fitted at a time, which bounds memory."""


def strengths(wins: Array) -> Array:
    """Return the most likely strengths, log odds that sum to 0, (rows, subjects); NaN in rows where
    there are none.

    `wins` (rows, subjects, subjects) says how often the first was preferred to the second.

    Of two subjects of which one wins three times out of four, by hand:

    >>> strengths(np.array([[[0.0, 3.0], [1.0, 0.0]]])).round(4) + 0.0
    array([[ 0.5493, -0.5493]])
    >>> float(np.log(3) / 2).__round__(4)
    0.5493
    """
    out = np.full(wins.shape[:2], np.nan)
    fits = np.flatnonzero(is_linked(wins))
    for start in range(0, len(fits), _BLOCK):
        rows = fits[start : start + _BLOCK]
        out[rows] = _fitted(wins[rows])
    return out


def why_undefined(wins: Array) -> Code:
    """Return the reason why a table of wins (subjects, subjects) has no strengths."""
    linked = is_linked((wins + wins.T)[None])[0]
    return "subject_unbeaten" if linked else "subjects_not_linked"


def is_linked(wins: Array) -> Mask:
    """Return True for tables in which every subject is reached from every other by wins, (rows,).

    >>> chain = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    >>> is_linked(np.array([chain, chain + chain.T]))
    array([False,  True])
    """
    n = wins.shape[-1]
    reached = (wins > 0) | np.eye(n, dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(max(n, 2)))))):
        paths = reached.astype(np.float32)
        reached = paths @ paths > 0
    return np.asarray(reached.all(axis=(1, 2)))


def _fitted(wins: Array) -> Array:
    """Newton's method on the log-likelihood, which is concave."""
    n_rows, n = wins.shape[:2]
    played = wins + wins.transpose(0, 2, 1)
    theta, place = np.zeros((n_rows, n)), np.arange(n)
    for _ in range(_STEPS):
        apart = theta[:, :, None] - theta[:, None, :]
        expected = 1.0 / (1.0 + np.exp(-apart))
        slope = (wins - played * expected).sum(axis=2)
        bend = played * expected * (1.0 - expected)
        each = bend.sum(axis=2)
        # Slopes sum to 0: the same number in every cell keeps the strengths' sum at 0.
        hessian = each.mean(axis=1)[:, None, None] / n - bend
        hessian[:, place, place] += each
        step = np.linalg.solve(hessian, slope[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        theta += step * np.minimum(1.0, _LONGEST / np.maximum(longest, _ENOUGH))
        if longest.max() < _ENOUGH:
            break
    return np.asarray(theta - theta.mean(axis=1, keepdims=True))
