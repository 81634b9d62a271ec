"""Cutting questions into chunks that fit a provider's limits and the budget."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import anyio

from evenhand.graders.clients.batch_service import BatchLimits
from evenhand.graders.money import Budget
from evenhand.graders.running.jobs import DrawsJob, by_request
from evenhand.graders.running.reservations import Reservations
from evenhand.rubrics import Rubric
from evenhand.study.questions import AttackedQuestion, Question
from evenhand.study.store.logs.batches import BatchRequest, Chunk

_FRAME = 200  # bytes of a request's line in addition to the request


class Chunker:
    """A source of chunks, one after another. Prompts are rendered as their chunk is built."""

    def __init__(
        self,
        job: DrawsJob,
        limits: BatchLimits,
        reservations: Reservations,
        questions: Sequence[Question],
    ) -> None:
        self._job = job
        self._limits = limits
        self._reservations = reservations
        self._questions = list(by_request(questions, job.grader.draws_at_once))
        self._next = 0
        self.next_costs = Decimal(0)
        """The lowest amount in US dollars to set aside for the next request, if it did not fit."""

    @property
    def left(self) -> int:
        return len(self._questions) - self._next

    async def build(
        self, budget: Budget
    ) -> tuple[list[BatchRequest], list[dict[str, Any]], Decimal] | None:
        """Return the next chunk's requests, their bodies and their worst price, which is set aside;
        None where nothing is left, or nothing more fits into the budget.
        """
        requests: list[BatchRequest] = []
        bodies: list[dict[str, Any]] = []
        size, worst = 0, Decimal(0)
        seen: Counter[str] = Counter()
        while self.left and len(requests) < self._limits.requests:
            question = self._questions[self._next]
            prompt = (await anyio.to_thread.run_sync(self._job.prompts, [question]))[0]
            body = self._job.request(question, prompt)
            length = len(json.dumps(body, ensure_ascii=False).encode()) + _FRAME
            if requests and size + length > self._limits.size:
                break
            price = self._reservations.fit(body, worst, self.left)
            if price is None:
                self.next_costs = self._reservations.least(body)
                break
            sent = self._job.sent(question, prompt, body)
            seen[sent["grade_key"]] += 1
            requests.append(_request(question, sent, seen[sent["grade_key"]]))
            bodies.append(body)
            size, worst = size + length, worst + price
            self._next += 1
        if not requests:
            return None
        budget.hold(worst)
        return requests, bodies, worst


def _request(question: Sequence[Question], sent: Mapping[str, Any], nth: int) -> BatchRequest:
    """Return the journal's record of a request. Units with the same text make the same request, but
    ids within a batch must differ, so `nth` numbers them.
    """
    first, key = question[0], sent["grade_key"]
    others = zip(question[1:], sent["draw_keys"][1:], strict=True)
    trial = (*first.trial, first.suite) if isinstance(first, AttackedQuestion) else ()
    return BatchRequest(
        custom_id=key if nth == 1 else f"{key}-{nth}",
        rubric=first.rubric.name,
        rubric_hash=first.rubric.hash,
        unit_id=first.unit_id,
        order=first.order,
        draw=first.draw,
        prompt_hash=sent["prompt_hash"],
        settings=sent["settings"],
        more=[(each.draw, own) for each, own in others],
        trial=trial,
    )


def questions_of(request: BatchRequest, rubric: Rubric) -> list[Question]:
    """Return the questions of a request, one for each draw, under this text of its rubric."""
    about = (request.unit_id, rubric, request.order)
    if not request.trial:
        return [Question(*about, draw) for draw, _ in request.draws]
    attack, target, side, suite = request.trial
    return [
        AttackedQuestion(*about, draw, attack=attack, target=target, side=side, suite=suite)
        for draw, _ in request.draws
    ]


def under_way(chunks: Iterable[Chunk]) -> set[tuple[object, ...]]:
    """Return the keys of all draws in these chunks: the values that determine the prompt
    (`Question.prompted`), and the draw's number.
    """
    return {
        (asked.unit_id, asked.rubric, asked.order, *asked.trial[:3], draw)
        for chunk in chunks
        for asked in chunk.requests
        for draw, _ in asked.draws
    }
