"""Proposals by GEPA (Agrawal et al. 2025), reflective evolution of prompts with a Pareto front: an
extra, `pip install 'evenhand[gepa]'`.

GEPA decides which words are changed, on which units, and what is kept. What is asked of the writer,
what its answer may be, and how words are tried are evenhand's own, on units to learn from alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from evenhand.errors import InputError
from evenhand.reporting.lessons import Lesson
from evenhand.texts import written

_PART = "instructions"
_MINIBATCH = 8
"""Units that one change is written from, and tried on first."""


class Trainer(Protocol):
    """What GEPA needs of a grader and a writer."""

    def label(self, instructions: str, lessons: Sequence[Lesson]) -> Mapping[str, str]:
        """Return the grader's labels under these instructions, by unit."""
        ...

    def rewrite(self, instructions: str, lessons: Sequence[Lesson], nth: int) -> str | None:
        """Return the `nth` rewriting of the instructions after these units, as they were graded
        under them; the same where it cannot be tried, None where there was nothing to ask.
        """
        ...


def check_installed() -> None:
    """Raise InputError where GEPA is not installed."""
    try:
        import gepa  # noqa: F401
    except ImportError:
        raise InputError(written("improve.no_gepa")) from None


def evolved(
    start: str, lessons: Sequence[Lesson], count: int, seed: int, trainer: Trainer
) -> list[str]:
    """Return the instructions that GEPA kept of at most `count` rewritings, the best on these units
    first. What the trainer raises ends it, and is raised.
    """
    from gepa import optimize

    adapter = _Adapter(trainer)
    found = optimize(
        seed_candidate={_PART: start},
        trainset=list(lessons),
        adapter=adapter,
        reflection_minibatch_size=min(_MINIBATCH, len(lessons)),
        stop_callbacks=lambda state: adapter.failure is not None or adapter.written >= count,
        # Where it finds nothing to rewrite, it must come to an end too.
        max_metric_calls=(count + 1) * (len(lessons) + 4 * _MINIBATCH),
        logger=_Silent(),
        seed=seed,
    )
    if adapter.failure is not None:
        raise adapter.failure
    scored = zip(found.val_aggregate_scores, found.candidates, strict=True)
    ordered = sorted(list(scored)[1:], key=lambda each: -each[0])
    return list(dict.fromkeys(each[_PART] for _, each in ordered))


class _Adapter:
    """The grader and the writer, as GEPA calls them. An instance is a lesson; its score is the
    share of people who gave it the grader's label.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self.written = 0
        self.failure: Exception | None = None

    def evaluate(
        self, batch: list[Lesson], candidate: dict[str, str], capture_traces: bool = False
    ) -> Any:
        from gepa import EvaluationBatch

        labels = self._trainer.label(candidate[_PART], batch)
        graded = [replace(each, graded=labels.get(each.unit_id, "")) for each in batch]
        given = [list(each.people.values()) for each in graded]
        scores = [
            own.count(each.graded) / len(own) for own, each in zip(given, graded, strict=True)
        ]
        return EvaluationBatch(outputs=graded, scores=scores, trajectories=graded)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        return {_PART: [{"lesson": each} for each in eval_batch.trajectories]}

    def propose_new_texts(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        if self.failure is not None:
            raise self.failure
        lessons = [each["lesson"] for each in reflective_dataset[_PART]]
        try:
            new = self._trainer.rewrite(candidate[_PART], lessons, self.written)
        except Exception as failure:  # GEPA would go on with another
            self.failure = failure
            raise
        self.written += new is not None
        return {_PART: candidate[_PART] if new is None else new}


class _Silent:
    """GEPA's log, which it would print."""

    def log(self, message: str) -> None:
        pass
