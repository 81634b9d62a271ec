"""Rubrics that are judged without the prompt, and the raters who may have seen it all the same.

Which rubrics these are follows from their variables. They come first in a block of pairs; where
they share a screen with others, are repeated, or are changed later, the prompt is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.rubrics import Rubric
from evenhand.study.prompts.units import has_known_answer, parse_unit_id
from evenhand.study.store.schema import claims

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.workspace import Study

_PROMPTS = {"prompt", "prompt_a", "prompt_b"}


@dataclass(frozen=True)
class PromptsSeen:
    """The number of human labels under a rubric that hides the prompt (`labels`), and of those
    given after its rater had been shown it (`seen`).
    """

    rubric: Rubric
    labels: int
    seen: int


def shows_prompt(rubric: Rubric) -> bool:
    return not _PROMPTS.isdisjoint(rubric.variables)


def hiding_first(rubrics: Iterable[Rubric]) -> list[Rubric]:
    """Sort the rubrics that hide the prompt before those that show it, otherwise in the given
    order.
    """
    return sorted(rubrics, key=shows_prompt)


def judged_without_prompt(rubrics: Sequence[Rubric]) -> list[Rubric]:
    """The rubrics that hide a prompt which another one of them shows."""
    hiding = [rubric for rubric in rubrics if not shows_prompt(rubric)]
    return hiding if len(hiding) < len(rubrics) else []


def prompts_seen(study: Study, ratings: pd.DataFrame) -> list[PromptsSeen]:
    """Count, for every rubric that hides the prompt, the labels that people gave after they had
    been handed a question that shows it; rubrics without any such label are left out.

    `ratings` is the study's table. For labels from elsewhere, which the desk did not hand out, this
    is not known, and they count as unseen.
    """
    handed = _prompts_handed_out(study)
    found = []
    for rubric in judged_without_prompt(list(study.rubrics.values())):
        own = ratings[(ratings["rubric"] == rubric.name) & (ratings["rater_kind"] == "human")]
        own = own[own["label"] != ""]
        seen = 0
        for rater, unit, given in zip(
            own["rater_id"], own["unit_id"], own["created_at"], strict=True
        ):
            shown = (handed.get((rater, *prompt)) for prompt in _prompts_of(unit))
            seen += any(moment is not None and moment <= given for moment in shown)
        if seen:
            found.append(PromptsSeen(rubric, len(own), seen))
    return found


def _prompts_handed_out(study: Study) -> dict[tuple[str, str, str], str]:
    """When each rater was first shown a prompt: (rater, pair, side) -> moment."""
    showing = [name for name, rubric in study.rubrics.items() if shows_prompt(rubric)]
    query = sa.select(claims.c.rater_id, claims.c.unit_id, claims.c.claimed_at).where(
        claims.c.rubric.in_(showing)
    )
    handed: dict[tuple[str, str, str], str] = {}
    with study.store.read() as connection:
        for rater, unit, moment in connection.execute(query):
            for prompt in () if has_known_answer(unit) else _prompts_of(unit):
                key = (rater, *prompt)
                handed[key] = min(moment, handed.get(key, moment))
    return handed


def _prompts_of(unit_id: str) -> list[tuple[str, str]]:
    """The prompts of a unit, (pair, side): of a pair both."""
    pair, _, side = parse_unit_id(unit_id)
    return [(pair, each) for each in side or "ab"]
