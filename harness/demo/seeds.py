"""Random generators that depend on what is drawn, not on the order in which it is drawn."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(*parts: object) -> np.random.Generator:
    """Return a generator seeded by a stable hash of `parts`, the same on every machine."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def pick(rng: np.random.Generator, weights: tuple[float, ...]) -> int:
    """Return an index drawn with the given weights, which need not sum to 1."""
    target = rng.random() * sum(weights)
    for index, weight in enumerate(weights):
        target -= weight
        if target < 0:
            return index
    return len(weights) - 1
