"""Random generators that depend on what is drawn, not on the order in which it is drawn."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(*parts: object) -> np.random.Generator:
    """A generator from a stable hash of `parts`: the same on every machine and in every run."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def pick(rng: np.random.Generator, weights: tuple[float, ...]) -> int:
    """An index drawn with the given weights (they need not sum to 1)."""
    target = rng.random() * sum(weights)
    for index, weight in enumerate(weights):
        target -= weight
        if target < 0:
            return index
    return len(weights) - 1
