"""Units, which are what gets a label: a pair's two responses by one subject (the rated model), or
one response; and questions, each a unit under one rubric.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from evenhand.lazy import pd
from evenhand.rubrics import Rubric, rendering
from evenhand.study.prompts.pairs import sides_of


def unit_id(pair_id: str, subject: str, side: str = "") -> str:
    """Return the id of a unit; it is readable, so that an exported table explains itself.

    >>> unit_id("p0001", "model-x"), unit_id("p0001", "model-x", "b")
    ('p0001|model-x', 'p0001|model-x|b')
    """
    return "|".join([pair_id, subject, side] if side else [pair_id, subject])


class UnitParts(NamedTuple):
    """The parts of a unit's id; `side` is "" for a pair."""

    pair_id: str
    subject: str
    side: str


def parse_unit_id(text: str) -> UnitParts:
    """Return the parts of a unit id.

    >>> parse_unit_id("p0001|model-x|b")
    UnitParts(pair_id='p0001', subject='model-x', side='b')
    """
    pair_id, _, subject_and_side = text.partition("|")
    subject, _, side = subject_and_side.partition("|")
    return UnitParts(pair_id, subject, side)


def has_known_answer(unit_id: str) -> bool:
    """Return True for a unit of the practice or an attention check, False for a unit of the sample.

    >>> has_known_answer("check:read-on"), has_known_answer("p0001|model-x")
    (True, False)
    """
    return "|" not in unit_id  # which separates pair, subject and side


def units_table(pairs: pd.DataFrame, answered: pd.DataFrame) -> pd.DataFrame:
    """Return the `units` table: for every pair and subject one pair unit and two response units, or
    one response unit where prompts are not paired.

    `answered` has the columns `pair_id, subject`, one row per pair that the subject answered. A
    response unit also has `prompt`, `stance` and `group` of its side, where the pairs file has
    them. Pairs that no subject has answered have one row, without a subject.
    """
    cells: pd.DataFrame = pairs.drop(columns="sample_position").set_index("pair_id")
    for column in cells:
        if cells[column].str.startswith(rendering.IMAGE_PREFIX).any():
            cells[column] = cells[column].map(rendering.in_words)  # slices are named by values
    subjects: dict[str, list[str]] = {}
    for pair, subject in zip(answered["pair_id"], answered["subject"], strict=True):
        subjects.setdefault(pair, []).append(subject)
    sides = sides_of(pairs)
    unit_sides = ("", *sides) if len(sides) == 2 else sides  # "": the pair unit
    rows = []
    for pair, row in zip(cells.index, cells.to_dict("records"), strict=True):
        for subject in sorted(subjects.get(pair, [])):
            rows += [_unit_row(pair, subject, side, row) for side in unit_sides]
        if pair not in subjects:
            rows.append(_unit_row(pair, "", "", row))
    return pd.DataFrame(rows).fillna("")


def presented_values(
    rubric: Rubric,
    unit: tuple[str, str, str],
    order: str,
    cells: Mapping[str, str],
    texts: Mapping[str, str],
) -> dict[str, str]:
    """Return the rubric's template variables for one unit, in the order in which it is shown. With
    order "ba" the two sides are swapped, so that raters see the pair's b as A. `unit` is (pair_id,
    subject, side); `cells` are the pair's columns, `texts` the responses by side.
    """
    _, _, side = unit
    if side:
        values = dict(cells) | _cells_of_side(cells, side) | {"response": texts[side]}
        return {name: values[name] for name in rubric.variables if name in values}
    values = dict(cells) | {"response_a": texts["a"], "response_b": texts["b"]}
    if rubric.unit == "comparison" and "prompt_a" in cells:  # both sides answer one prompt
        values |= {"prompt": cells["prompt_a"]}
    if order == "ba":
        values = {name: values.get(swap_side(name), cell) for name, cell in values.items()}
    return {name: values[name] for name in rubric.variables if name in values}


def _unit_row(pair: str, subject: str, side: str, row: Mapping[Any, str]) -> dict[str, str]:
    """Return the row of one unit in the `units` table; without a subject the unit is the pair."""
    unit = unit_id(pair, subject, side) if subject else pair
    unit_cells = {"unit_id": unit, "cluster_id": pair, "subject": subject, "side": side}
    side_cells = _cells_of_side(row, side) if side else {}
    pair_cells = {name: cell for name, cell in row.items() if name not in unit_cells}
    return unit_cells | pair_cells | side_cells


def _cells_of_side(row: Mapping[Any, str], side: str) -> dict[str, str]:
    """Return a side's prompt, stance and group under their short names, as far as they exist."""
    short_names = {f"{name}_{side}": name for name in ("prompt", "stance")}
    short_names[f"prompt_{side}_group"] = "group"
    return {short_name: row[name] for name, short_name in short_names.items() if name in row}


def swap_side(name: str) -> str:
    """Return a column's name with the side swapped, if it has a side.

    >>> swap_side("prompt_a_group"), swap_side("response_b"), swap_side("topic_name")
    ('prompt_b_group', 'response_a', 'topic_name')
    """
    return "_".join({"a": "b", "b": "a"}.get(part, part) for part in name.split("_"))


# ---- questions, for annotators and graders ------------------------------------------------------
# In `study.desk` a `Task` is a question as one annotator sees it, and a `Claim` the store's record
# that an annotator was given it.
Key = tuple[str, str]  # (unit id, rubric name): the question, for any rater and order of sides


@dataclass(frozen=True)
class Question:
    """A unit under one rubric, as shown in one order; `draw` counts repeats of the same question.
    `order` is "ab" or "ba", or "" where it is not decided yet or there is only one side.
    """

    unit_id: str
    rubric: Rubric
    order: str = ""
    draw: int = 0

    @cached_property
    def key(self) -> Key:
        """The unit and the rubric's name."""
        return (self.unit_id, self.rubric.name)

    @property
    def prompt_key(self) -> tuple[str, ...]:
        """Key of the question's prompt: questions with the same key differ only in their draw."""
        return (self.unit_id, self.rubric.name, self.order)

    def presented(self, values: dict[str, str]) -> dict[str, str]:
        """Return the unit's template variables as this question shows them."""
        return values


@dataclass(frozen=True)
class AttackedQuestion(Question):
    """A question of the injection audit: a unit with `suffix` appended to one of its texts; in a
    conversation to one turn, drawn by the unit's id, in an image to its description. `attack` is
    the attack's name (see `study.tables.ratings`), `target` the option that the attack asks for,
    `side` the changed text (see `variable_of`), `suite` the version of the attacks' texts.
    """

    attack: str = ""
    target: str = ""
    side: str = ""
    suite: str = ""
    suffix: str = field(default="", compare=False)  # follows from the other fields

    @property
    def trial(self) -> tuple[str, str, str]:
        """Key of the appended text: attack, target and side."""
        return (self.attack, self.target, self.side)

    @property
    def prompt_key(self) -> tuple[str, ...]:
        return (self.unit_id, self.rubric.name, self.order, *self.trial)

    def presented(self, values: dict[str, str]) -> dict[str, str]:
        if not self.suffix:  # the clean text, for comparison
            return values
        variable = variable_of(self.side)
        if variable in self.rubric.conversations and rendering.is_conversation(values[variable]):
            turns = [*rendering.turns_of(values[variable])]
            index = zlib.crc32(self.unit_id.encode()) % len(turns)
            turns[index] = replace(turns[index], text=turns[index].text + self.suffix)
            changed = rendering.as_messages(turns)
        elif image := rendering.image_of(values[variable]):  # in its description
            changed = replace(image, alt=image.alt + self.suffix).cell
        else:
            changed = values[variable] + self.suffix
        return values | {variable: changed}


def variable_of(side: str) -> str:
    """Return the rubric's variable to which an attack is added, from its `side`.

    >>> variable_of(""), variable_of("a"), variable_of("prompt_b"), variable_of("context")
    ('response', 'response_a', 'prompt_b', 'context')
    """
    return {"": "response", "a": "response_a", "b": "response_b"}.get(side, side)


Screen = tuple[Question, ...]  # the questions asked at once: one, or all of a unit


def rubrics_by_screen(rubrics: Iterable[Rubric], one_screen_per_unit: bool) -> list[list[Rubric]]:
    """Group the rubrics by screen: each alone, or all of one kind of unit together."""
    groups: dict[str, list[Rubric]] = {}
    for rubric in rubrics:
        groups.setdefault(rubric.unit if one_screen_per_unit else rubric.name, []).append(rubric)
    return list(groups.values())
