"""Simulate an annotator who keeps every byte that the server sends and has read the code.

The attacks are those that told subject and side of every unit of version 0.2.0: digests of what can
be guessed. `told` says how much better than chance guesses are, whatever they rest on.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import httpx2
import numpy as np
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from evenhand.study.desk.desk import TimedAnswer, minutes_left
from harness.sessions import Session

SEEDS = range(50)
"""The seeds that are tried; who makes a study seldom takes another than the usual one."""


@dataclass
class Screen:
    """One screen: each message with the seconds since it was requested."""

    number: int
    data: Mapping[str, Any]
    messages: Sequence[tuple[float, bytes]]

    @property
    def task(self) -> str:
        task: str = self.data["sheet"]["questions"][0]["task"]
        return task

    @property
    def rubric(self) -> str:
        title: str = self.data["sheet"]["questions"][0]["title"]
        return title

    def features(self, before: Screen | None, after: Screen | None) -> list[float]:
        """Return features of a screen: sizes and times of its messages, lengths of its texts."""
        sizes = [len(raw) for _, raw in self.messages]
        moments = [1000 * at for at, _ in self.messages]
        blocks = self.data["sheet"]["blocks"]
        lengths = [len(block["text"]) for block in blocks]
        shown = [self.number, len(sizes), sum(sizes), max(sizes), moments[-1], moments[0]]
        shown += [sum(sizes) - max(sizes), sum(lengths), lengths[-1], min(lengths), len(blocks)]
        for other in (before, self, after):
            shown += [0.0] * 3 if other is None else other.counters()
        return shown

    def counters(self) -> list[float]:
        """Return the figures in the margin, and how far the estimate is off that of all answers."""
        progress = self.data["progress"]
        left = progress["total"] - progress["done"]
        every = [TimedAnswer("", seconds_given(n)) for n in range(self.number)]
        counted = minutes_left(every, left) or 0
        beside = (self.data["minutes"] or counted) - counted
        return [progress["done"] - self.number, progress["total"], beside]


def seconds_given(number: int) -> float:
    """Return the time that the attacker claims for an answer, which moves the time estimate."""
    return 500.0 * (number + 1)


@dataclass
class Watcher(Session):
    """An annotator who keeps every message received."""

    messages: list[tuple[float, bytes]] = field(default_factory=list)
    everything: list[bytes] = field(default_factory=list)

    async def screens(self) -> list[Screen]:
        """Label to the end."""
        found: list[Screen] = []
        await self.open()
        while (sheet := self.data["sheet"]) is not None:
            found.append(Screen(len(found), self.data, self.messages))
            self.messages = []
            seconds = seconds_given(len(found) - 1)
            await self.submit([each | {"seconds": seconds} for each in self.first_options(sheet)])
        await self.close()
        return found

    async def _next(self) -> ForwardMsg:
        message = await super()._next()
        self._keep(message.SerializeToString())
        return message

    async def say(self, said: Any) -> httpx2.Response:
        answer = await super().say(said)
        self._keep(answer.content)
        return answer

    def _keep(self, raw: bytes) -> None:
        self.messages.append((time.perf_counter() - self.begun, raw))
        self.everything.append(raw)


# ---- digests of what can be guessed ------------------------------------------------------------


def public_digest(seed: int, *parts: str) -> str:
    """Return the digest from which version 0.2.0 derived every draw and every id."""
    return hashlib.sha256("\x1f".join([str(seed), *parts]).encode()).hexdigest()


def guessed_ids(
    raters: Iterable[str],
    units: Iterable[str],
    rubrics: Mapping[str, str],
    seeds: Iterable[int] = SEEDS,
) -> dict[str, str]:
    """Return units by the ids that their tasks would have; `rubrics` are (name, hash of text)."""
    return {
        public_digest(seed, "task", rater, unit, *rubric, str(draw))[:24]: unit
        for seed, rater, unit, rubric, draw in product(
            seeds, raters, units, rubrics.items(), (0, 1)
        )
    }


def identified(received: Iterable[bytes], guesses: Mapping[str, str]) -> set[str]:
    """Return the units whose guessed id occurs anywhere in what was received."""
    return {guesses[token] for token in _tokens(received) if token in guesses}


def _tokens(received: Iterable[bytes]) -> Iterator[str]:
    for raw in received:
        for run in re.findall(rb"[0-9a-f]{24,}", raw):
            text = run.decode()
            yield from (text[at : at + 24] for at in range(len(text) - 23))


# ---- guesses of any kind ------------------------------------------------------------------------


def told(right: Sequence[float], clusters: Sequence[object]) -> float:
    """Return by how many standard errors a guesser is above chance. `right` holds hit minus chance
    for each guess. Guesses of one cluster rest on the same texts, so a cluster counts once.
    """
    sums: dict[object, float] = {}
    for value, cluster in zip(right, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value
    by_cluster = np.array(list(sums.values()))
    spread = float(np.sqrt((by_cluster**2).sum()))
    return float(by_cluster.sum()) / spread if spread else 0.0
