"""The work that a study asks of people: labels, and their hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.study.workspace import Study

WORDS_PER_MINUTE = 238
"""Silent reading of English prose by adults (Brysbaert 2019, J. of Memory and Language 109)."""
SECONDS_TO_DECIDE = 5


@dataclass(frozen=True)
class RubricLoad:
    rubric: str
    units: int
    raters: int
    words: int
    """Words to read once through all units."""

    @property
    def judgments(self) -> int:
        return self.units * self.raters

    @property
    def hours(self) -> float:
        reading = self.raters * self.words / WORDS_PER_MINUTE / 60
        return reading + self.judgments * SECONDS_TO_DECIDE / 3600


@dataclass(frozen=True)
class Workload:
    rubrics: tuple[RubricLoad, ...]
    words_per_minute: int = WORDS_PER_MINUTE
    seconds_to_decide: int = SECONDS_TO_DECIDE


def workload(study: Study) -> Workload:
    """Judgments and reading for every rubric that people label; none before there are responses."""
    sampled = set(study.store.sample())
    wanted = set(study.config.annotation.subjects)
    responses = study.store.responses()
    responses = responses[responses["pair_id"].isin(sampled)]
    if wanted:
        responses = responses[responses["subject"].isin(wanted)]
    if responses.empty:
        return Workload(())
    words = sum(len(text.split()) for text in responses["response"])
    raters = study.config.annotation.raters_per_unit
    return Workload(
        tuple(
            RubricLoad(
                rubric.name,
                len(responses) // 2 if rubric.has_sides else len(responses),
                raters,
                words,
            )
            for rubric in study.labelled_rubrics()
        )
    )
