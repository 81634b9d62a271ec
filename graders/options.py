"""The options of a run: what is graded and how, within which limits, and which part of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.rubrics import Instructions, JudgePrompt, Rubric

BOTH_ORDERS = ("ab", "ba")
"""Orders in which each pair is shown by default: many graders favour what they read first."""
TIMEOUT = 300.0
"""Seconds for one answer, about the time that 16,000 tokens take."""
MOST = 1000


@dataclass(frozen=True, slots=True)
class Shard:
    """The `index`-th, from 1, of `of` parts of the units, for machines that collect grades side by
    side. All questions about a unit are in one part, on every machine and whatever is added to the
    study.

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


@dataclass(frozen=True, kw_only=True)
class GradingOptions:
    """The user's options for a run: what to grade, and how to ask. `rubrics` None means all;
    `orders` are those in which pairs are shown; `method` to `seed` become each grader's
    `GraderSettings`; with `retry_unscored` outcomes without a label are asked again. `text` is a
    new version of one of the study's rubrics: only this version is tried, on pairs that did not
    inform it. `prompt` replaces the text of the one rubric chosen, or its instructions. Only units
    in `shard` are asked about, and only these `units` where some are named.
    """

    rubrics: Sequence[str] | None = None
    scope: str = "sample"
    orders: Sequence[str] = BOTH_ORDERS
    draws: int = 1
    method: str = ""
    max_tokens: int = 0
    effort: str = ""
    service_tier: str = ""
    temperature: float | None = None
    seed: int | None = None
    retry_unscored: bool = False
    text: Rubric | None = None
    prompt: JudgePrompt | Instructions | None = None
    shard: Shard = WHOLE
    units: Collection[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The limits of a run: concurrent requests, seconds that one may take, a factor on all waits,
    and the most to spend, in US dollars (None: no limit). Raises InputError where one is not valid.
    """

    concurrency: int = 32
    timeout: float = TIMEOUT
    wait_scale: float = 1.0
    budget: float | None = None

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise InputError(f"concurrency is {self.concurrency}; it must be at least 1")
        if not self.timeout > 0:
            raise InputError(f"timeout is {self.timeout}; it must be above 0")
