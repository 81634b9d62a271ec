"""The design of the annotators' sessions, fixed by the study's key: the questions and their order.

The sample is handed out block by block, so that its first pairs reach their full number of raters
early. Within a block what is judged without the prompt comes before what shows it, and every rater
has an order of their own, so that no unit is always the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import sqlalchemy as sa

from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.study import seeding
from evenhand.study.desk.attention import AttentionChecks
from evenhand.study.prompts.units import has_known_answer, parse_unit_id
from evenhand.study.questions import Key, Question, Screen, rubrics_by_screen
from evenhand.study.rewording import Rewording, rewording_of
from evenhand.study.store.schema import claims
from evenhand.study.workspace import Study


class SessionDesign:
    """Questions, their order and their repeats, fixed by the study's settings, sample and key."""

    def __init__(self, study: Study) -> None:
        self.key = study.blinding_key
        self.settings = study.config.annotation
        by_pair: dict[str, list[str]] = {}
        for unit, pair in study.labelled_units():
            by_pair.setdefault(pair, []).append(unit)
        rubrics = hiding_first(study.labelled_rubrics())
        self._rewording = rewording_of(study)
        self._stages = list(
            _stages(by_pair, rubrics, self.settings.pairs_per_block, self.whole, self._rewording)
        )
        self.questions = {
            question.key: question
            for stage in self._stages
            for screen in stage
            for question in screen
        }
        self.checks = AttentionChecks(study)
        of_a_pair = len(self.questions) / max(len(by_pair), 1)
        self.block_size = max(1, round(of_a_pair * self.settings.pairs_per_block))
        """Answers in a block, hidden repeats and checks apart."""
        asked = self.settings.model_dump(include={"units_per_rater", "repeat_share", "repeat_gap"})
        texts = sorted(rubric.hash for rubric in rubrics)
        sizes = f"{len(self.questions)} {len(self.checks.screens)}"
        self.plan = seeding.digest(study.config.seed, "plan", str(asked), sizes, *texts)[:16]
        """Changes with whatever changes how many answers a rater has to give."""
        self._keys = [{asked.key for screen in stage for asked in screen} for stage in self._stages]

    @property
    def whole(self) -> bool:
        """True if all rubrics of a unit are on one screen."""
        return self.settings.screen == "all"

    def screens(self, rater_id: str, free: Set[Key]) -> Iterator[Screen]:
        """The questions among `free`, screen by screen in this rater's order.

        Within a stage of a block the subjects mix, so that no one rates one subject in a row. Where
        another wording is tried, units of one wording come together, the first one drawn by the
        key.
        """

        def place(screen: Screen) -> tuple[str, str]:
            unit, wording = screen[0].unit_id, ""
            if self._rewording:
                names = ",".join(asked.rubric.name for asked in screen)
                wording = self.digest("wording", rater_id, first, names)
            return wording, self.digest("place", rater_id, unit)

        for stage, keys in zip(self._stages, self._keys, strict=True):
            if keys.isdisjoint(free):
                continue  # most stages of most raters: they are not even put in order
            first = stage[0][0].unit_id
            for screen in sorted(stage, key=place):
                questions = tuple(question for question in screen if question.key in free)
                if questions:
                    yield questions

    def answered(self, held: Set[Key]) -> Set[Key]:
        """Return the questions of which a rater who has these has no need."""
        return self._rewording.answered(held) if self._rewording else held

    def side_order(self, rater_id: str, unit_id: str, shown: Mapping[tuple[str, str], int]) -> str:
        """Return the order in which this rater sees the two sides: "ab" or "ba".

        `shown` counts the units shown to the rater so far, by (subject, order). The order that was
        rarer with this subject is taken, then the one that was rarer overall, then one drawn by the
        key: per rater and subject the two differ by one at most.
        """
        subject = parse_unit_id(unit_id)[1]
        lead = shown.get((subject, "ab"), 0) - shown.get((subject, "ba"), 0)
        if lead == 0:
            lead = sum(n if order == "ab" else -n for (_, order), n in shown.items())
        if lead == 0:
            lead = 1 if int(self.digest("order", rater_id, unit_id)[:8], 16) % 2 else -1
        return "ba" if lead > 0 else "ab"

    def planned_repeats(self, answers: int) -> int:
        """Return how many of a rater's `answers` are asked for again.

        Fewer where there are too few answers for a repeat to keep its distance.
        """
        share = int(self.settings.repeat_share * answers + 1e-9)
        return max(0, min(share, answers - self.settings.repeat_gap))

    def repeat_after(self, rater_id: str, number: int) -> int:
        """Return by how many answers a rater's repeat of this number (from 0) comes late."""
        stretch = round(1 / self.settings.repeat_share)
        return seeding.drawn(self.key, stretch, "repeat", rater_id, str(number))

    def digest(self, *parts: str) -> str:
        return seeding.digest(self.key, *parts)


def _stages(
    by_pair: Mapping[str, list[str]],
    rubrics: list[Rubric],
    size: int,
    whole: bool,
    rewording: Rewording | None,
) -> Iterator[list[Screen]]:
    """Block by block; within a block rubric by rubric, or kind of unit by kind of unit."""
    pairs = list(by_pair)
    for start in range(0, len(pairs), size):
        block = [unit for pair in pairs[start : start + size] for unit in by_pair[pair]]
        for asked in rubrics_by_screen(rubrics, whole):
            screens = [
                tuple(
                    Question(unit, wording)
                    for rubric in asked
                    if (wording := rewording.asked(rubric, unit) if rewording else rubric)
                )
                for unit in block
                if (parse_unit_id(unit)[2] == "") == asked[0].has_sides
            ]
            if any(screens):
                yield [screen for screen in screens if screen]


# Rubrics that are judged without the prompt, and the raters who may have seen it all the same.
# Which rubrics these are follows from their variables. They come first in a block of pairs; where
# they share a screen with others, are repeated, or are changed later, the prompt is known.


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
    """Sort the rubrics that hide the prompt before the others, otherwise in the given order."""
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
    for rater, unit, moment in study.store.rows(query):
        for prompt in () if has_known_answer(unit) else _prompts_of(unit):
            key = (rater, *prompt)
            handed[key] = min(moment, handed.get(key, moment))
    return handed


def _prompts_of(unit_id: str) -> list[tuple[str, str]]:
    """The prompts of a unit, (pair, side): of a pair both."""
    pair, _, side = parse_unit_id(unit_id)
    return [(pair, each) for each in side or "ab"]
