"""Units, the things that are labelled: a pair's two responses by one subject, or one response. And
questions: one unit under one rubric.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import (
    IMAGE_PREFIX,
    as_messages,
    image_of,
    in_words,
    is_conversation,
    turns_of,
    with_appended_text,
)
from evenhand.study.prompts.pairs import sides_of


def unit_id(pair_id: str, subject: str, side: str = "") -> str:
    """The id of a unit; readable, so that an exported table explains itself.

    >>> unit_id("p0001", "model-x"), unit_id("p0001", "model-x", "b")
    ('p0001|model-x', 'p0001|model-x|b')
    """
    return "|".join([pair_id, subject, side] if side else [pair_id, subject])


def parse_unit_id(text: str) -> tuple[str, str, str]:
    """(pair_id, subject, side) of a unit id; side is "" for a pair.

    >>> parse_unit_id("p0001|model-x|b")
    ('p0001', 'model-x', 'b')
    """
    pair_id, _, rest = text.partition("|")
    subject, _, side = rest.partition("|")
    return pair_id, subject, side


def has_known_answer(unit_id: str) -> bool:
    """Return True for a unit of the practice or of the attention checks, not one of the study's
    own.

    >>> has_known_answer("check:read-on"), has_known_answer("p0001|model-x")
    (True, False)
    """
    return "|" not in unit_id


def units_table(pairs: pd.DataFrame, answered: pd.DataFrame) -> pd.DataFrame:
    """The `units` table: for every pair and subject one pair unit and two response units, or the
    one response unit where prompts are not paired.

    `answered` has the columns `pair_id, subject`, one row per pair that the subject answered. A
    response unit also carries `prompt`, `stance` and `group` of its own side, where the pairs file
    has them. Pairs that no subject has answered get one row, without a subject.
    """
    cells: pd.DataFrame = pairs.drop(columns="sample_position").set_index("pair_id")
    for column in cells:
        if cells[column].str.startswith(IMAGE_PREFIX).any():  # nobody slices by an image
            cells[column] = cells[column].map(in_words)
    subjects: dict[str, list[str]] = {}
    for pair, subject in zip(answered["pair_id"], answered["subject"], strict=True):
        subjects.setdefault(pair, []).append(subject)
    sides = sides_of(pairs)
    kinds = ("", *sides) if len(sides) == 2 else sides
    rows = []
    for pair, row in zip(cells.index, cells.to_dict("records"), strict=True):
        for subject in sorted(subjects.get(pair, [])):
            rows += [_unit(pair, subject, side, row) for side in kinds]
        if pair not in subjects:
            rows.append(_unit(pair, "", "", row))
    return pd.DataFrame(rows).fillna("")


def presented_values(
    rubric: Rubric,
    unit: tuple[str, str, str],
    order: str,
    cells: Mapping[str, str],
    texts: Mapping[str, str],
) -> dict[str, str]:
    """The rubric's template variables for one unit, in the order in which it is shown. With order
    "ba" the two sides change places, so that what a rater sees as A is the pair's b.
    """
    _, _, side = unit
    if side:
        values = dict(cells) | _own_side(cells, side) | {"response": texts[side]}
        return {name: values[name] for name in rubric.variables if name in values}
    values = dict(cells) | {"response_a": texts["a"], "response_b": texts["b"]}
    if rubric.unit == "comparison" and "prompt_a" in cells:  # both sides answer one prompt
        values |= {"prompt": cells["prompt_a"]}
    if order == "ba":
        values = {name: values.get(_other_side(name), cell) for name, cell in values.items()}
    return {name: values[name] for name in rubric.variables if name in values}


def _unit(pair: str, subject: str, side: str, row: Mapping[Any, str]) -> dict[str, str]:
    unit = unit_id(pair, subject, side) if subject else pair
    known = {"unit_id": unit, "cluster_id": pair, "subject": subject, "side": side}
    of_side = _own_side(row, side) if side else {}
    return known | {name: cell for name, cell in row.items() if name not in known} | of_side


def _own_side(row: Mapping[Any, str], side: str) -> dict[str, str]:
    names = {f"{name}_{side}": name for name in ("prompt", "stance")}
    names[f"prompt_{side}_group"] = "group"
    return {short: row[name] for name, short in names.items() if name in row}


def _other_side(name: str) -> str:
    """Return the name of the other side's column, if the name has a side.

    >>> _other_side("prompt_a_group"), _other_side("response_b"), _other_side("topic_name")
    ('prompt_b_group', 'response_a', 'topic_name')
    """
    exchanged = {"a": "b", "b": "a"}
    return "_".join(exchanged.get(part, part) for part in name.split("_"))


# A question: one unit under one rubric, the one noun for it, for people and graders. A `Task` is a
# question as shown to a person, a `Claim` the store's record of the rater it was given to.

Key = tuple[str, str]
"""(unit id, rubric name): the question, for any rater and in any order of sides."""


@dataclass(frozen=True)
class Question:
    """A unit under one rubric, as shown in one order; `draw` counts repeats of the same. `order` is
    "ab" or "ba", or "" where it is not settled yet or there is one side only.
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

    `attack` is its name (see `study.tables.ratings`), `target` the option that it asks for, `side`
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
            return values | {held: as_messages(with_appended_text(turns, turn, self.suffix))}
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
