"""Choices that a seed fixes once and for all, in every process and on every machine."""

from __future__ import annotations

import hashlib


def digest(seed: int, *parts: str) -> str:
    """64 hexadecimal digits that the seed and the parts determine."""
    text = "\x1f".join([str(seed), *parts])
    return hashlib.sha256(text.encode()).hexdigest()


def drawn(seed: int, below: int, *parts: str) -> int:
    """A number from 0 to `below` - 1.

    >>> [drawn(1, 6, "die", str(throw)) for throw in range(5)]
    [3, 1, 5, 4, 5]
    """
    return int(digest(seed, *parts)[:8], 16) % below
