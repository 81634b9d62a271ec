"""Choices that a seed or a key fixes once and for all, in every process and on every machine.

A seed is public: anyone who reads study.toml, or tries the numbers from 0 on, can work out all that
it fixes. What annotators must not foresee is drawn with a key, which never leaves the store.
"""

from __future__ import annotations

import hashlib
import hmac


def digest(seed: int | bytes, *parts: str) -> str:
    """64 hexadecimal digits that the seed, or the key (in bytes: RFC 2104), and the parts fix."""
    if isinstance(seed, bytes):
        return hmac.digest(seed, "\x1f".join(parts).encode(), "sha256").hex()
    text = "\x1f".join([str(seed), *parts])
    return hashlib.sha256(text.encode()).hexdigest()


def drawn(seed: int | bytes, below: int, *parts: str) -> int:
    """A number from 0 to `below` - 1.

    >>> [drawn(1, 6, "die", str(throw)) for throw in range(5)]
    [3, 1, 5, 4, 5]
    """
    return int(digest(seed, *parts)[:8], 16) % below
