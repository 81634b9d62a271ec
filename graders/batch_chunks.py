"""Cutting questions into chunks that fit a provider's limits and the budget."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import anyio

from evenhand.graders.batch_end import BatchLimits
from evenhand.graders.jobs import GradeJob
from evenhand.graders.money import Purse, Tariff
from evenhand.graders.plan import Question
from evenhand.study.store.batches import Chunk, Place

__all__ = ["Chunker", "under_way"]

_FRAME = 200  # bytes that a request's line has beside the request


class Chunker:
    """Hands out one chunk after another. Prompts are rendered only once their chunk is built."""

    def __init__(
        self,
        job: GradeJob,
        limits: BatchLimits,
        tariff: Tariff | None,
        questions: Sequence[Question],
    ) -> None:
        self._job = job
        self._limits = limits
        self._tariff = tariff
        self._questions = questions
        self._next = 0
        self.next_costs = Decimal(0)
        """What the next request costs at most, where it did not fit into the budget."""

    @property
    def left(self) -> int:
        return len(self._questions) - self._next

    async def build(self, purse: Purse) -> tuple[list[Place], list[dict[str, Any]], Decimal] | None:
        """The next chunk with its worst price, which is set aside; None where nothing is left, or
        nothing more fits into the budget.
        """
        places: list[Place] = []
        requests: list[dict[str, Any]] = []
        size, worst = 0, Decimal(0)
        seen: Counter[str] = Counter()
        while self.left and len(places) < self._limits.requests:
            question = self._questions[self._next]
            prompt = (await anyio.to_thread.run_sync(self._job.prompts, [question]))[0]
            request = self._job.grader.request(prompt)
            length = len(json.dumps(request, ensure_ascii=False).encode()) + _FRAME
            price = self._tariff.at_most(request) if self._tariff else Decimal(0)
            if places and size + length > self._limits.size:
                break
            if not purse.fits(worst + price):
                self.next_costs = price
                break
            sent = self._job.sent(question, prompt, request)
            seen[sent["grade_key"]] += 1
            places.append(_place(question, sent, seen[sent["grade_key"]]))
            requests.append(request)
            size, worst = size + length, worst + price
            self._next += 1
        if not places:
            return None
        purse.hold(worst)
        return places, requests, worst


def _place(question: Question, sent: Mapping[str, Any], nth: int) -> Place:
    """Units with the same text make the same request, but ids within a batch must differ."""
    key = sent["grade_key"]
    return Place(
        custom_id=key if nth == 1 else f"{key}-{nth}",
        rubric=question.rubric.name,
        rubric_hash=question.rubric.hash,
        unit_id=question.unit_id,
        order=question.order,
        draw=question.draw,
        prompt_hash=sent["prompt_hash"],
        settings=sent["settings"],
    )


def under_way(chunks: Iterable[Chunk]) -> set[tuple[str, str, str, int]]:
    """(rubric, unit_id, order, draw) of every question in these chunks."""
    return {(p.rubric, p.unit_id, p.order, p.draw) for chunk in chunks for p in chunk.places}
