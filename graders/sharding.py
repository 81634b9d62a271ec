"""A part of a study's questions, for machines that collect grades side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from evenhand.errors import InputError

MOST = 1000


@dataclass(frozen=True, slots=True)
class Shard:
    """The `index`-th, from 1, of `of` parts of the units. All questions about a unit are in one
    part, on every machine and whatever is added to the study.

    >>> [sum(Shard(part, 3).holds(f"p{unit}|s") for unit in range(300)) for part in (1, 2, 3)]
    [94, 105, 101]
    """

    index: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read a shard written as "2/8". Raises InputError where the text is not valid."""
        found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
        index, of = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= index <= of <= MOST:
            raise InputError(
                f"--shard is {text!r}; write which part of how many, such as 2/8 for the second of "
                f"eight (at most {MOST})"
            )
        return cls(index, of)

    def holds(self, unit_id: str) -> bool:
        number = int.from_bytes(blake2b(unit_id.encode(), digest_size=8).digest())
        return number % self.of == self.index - 1

    def others(self) -> Iterator[Shard]:
        """Yield the other parts, the next one first."""
        for step in range(self.of - 1):
            yield Shard((self.index + step) % self.of + 1, self.of)

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


WHOLE = Shard()
