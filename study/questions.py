"""A question: one unit under one rubric. The one noun for it, for people and graders.

A `Task` is a question as shown to a person, a `Claim` the store's record of the rater it was given
to.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import as_messages, image_of, is_conversation, turns_of, with_said

Key = tuple[str, str]
"""(unit id, rubric name): the question, for any rater and in any order of sides."""


@dataclass(frozen=True)
class Question:
    """A unit under one rubric, as shown in one order; `draw` counts repeats of the same.

    `order` is "ab" or "ba", or "" where it is not settled yet or there is one side only.
    """

    unit_id: str
    rubric: Rubric
    order: str = ""
    draw: int = 0

    @cached_property
    def key(self) -> Key:
        return (self.unit_id, self.rubric.name)

    @property
    def prompted(self) -> tuple[str, ...]:
        """The key of the question's prompt: questions that share it differ only in their draw."""
        return (self.unit_id, self.rubric.name, self.order)

    def presented(self, values: dict[str, str]) -> dict[str, str]:
        """The unit's template variables as this question shows them."""
        return values


@dataclass(frozen=True)
class AttackedQuestion(Question):
    """A question of the injection audit: the unit with `suffix` at the end of one of its texts, of
    a conversation at the end of a turn that is drawn by the unit's id, of an image at the end of
    its description.

    `attack` is its name (see `study.tables.attacks`), `target` the option that it asks for, `side`
    the text that holds it (see `variable_of`), `suite` the version of the attacks' texts.
    """

    attack: str = ""
    target: str = ""
    side: str = ""
    suite: str = ""
    suffix: str = ""

    @property
    def trial(self) -> tuple[str, str, str]:
        """The key of the text added to the unit's own: attack, target and side."""
        return (self.attack, self.target, self.side)

    @property
    def prompted(self) -> tuple[str, ...]:
        return (self.unit_id, self.rubric.name, self.order, *self.trial)

    def presented(self, values: dict[str, str]) -> dict[str, str]:
        held = variable_of(self.side)
        if not self.suffix:
            return values
        if held in self.rubric.conversations and is_conversation(values[held]):
            turns = turns_of(values[held])
            turn = zlib.crc32(self.unit_id.encode()) % len(turns)
            return values | {held: as_messages(with_said(turns, turn, self.suffix))}
        if image := image_of(values[held]):  # in its description
            return values | {held: replace(image, alt=image.alt + self.suffix).cell}
        return values | {held: values[held] + self.suffix}


def variable_of(place: str) -> str:
    """Return the rubric's variable to which an attack is added.

    >>> variable_of(""), variable_of("a"), variable_of("prompt_b"), variable_of("context")
    ('response', 'response_a', 'prompt_b', 'context')
    """
    return {"": "response", "a": "response_a", "b": "response_b"}.get(place, place)


Screen = tuple[Question, ...]
"""The questions asked at once: one, or all of a unit."""


def rubrics_by_screen(rubrics: Iterable[Rubric], whole: bool) -> list[list[Rubric]]:
    """Group the rubrics by screen: each alone, or (`whole`) all of one kind of unit together."""
    groups: dict[str, list[Rubric]] = {}
    for rubric in rubrics:
        groups.setdefault(rubric.unit if whole else rubric.name, []).append(rubric)
    return list(groups.values())
