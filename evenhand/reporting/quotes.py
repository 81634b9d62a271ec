"""Quotations of a study in a report: the texts of units, people's remarks and the words they
marked, and graders' replies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from evenhand.analysis.people.disagreements import GraderDisagreement
    from evenhand.study import Study
    from evenhand.study.tables.evidence import Mark

UnitTexts = dict[tuple[str, str], dict[str, str]]
_AT_ONCE = 400
"""Units in one query."""


class Labelled(Protocol):
    """A unit under a rubric, with people's labels by rater."""

    @property
    def rubric(self) -> str: ...

    @property
    def unit_id(self) -> str: ...

    @property
    def people(self) -> Mapping[str, str]: ...


def quoted_texts(study: Study, disagreements: list[GraderDisagreement]) -> UnitTexts:
    """Return the texts that raters read, by (rubric, unit id), each under its name."""
    from evenhand.rubrics.rendering import text_blocks
    from evenhand.study.questions import Question

    units = list(dict.fromkeys((each.rubric, each.unit_id) for each in disagreements))
    found: UnitTexts = {}
    for start in range(0, len(units), _AT_ONCE):
        some = units[start : start + _AT_ONCE]
        asked = [Question(unit, study.rubrics[rubric], "ab") for rubric, unit in some]
        for key, values in zip(some, study.values_of(asked), strict=True):
            rubric = study.rubrics[key[0]]
            shown = text_blocks(rubric.variables, rubric.blocks, values)
            read = values | {block.variable: block.text for block in shown}
            found[key] = {name.replace("_", " ").capitalize(): text for name, text in read.items()}
    return found


def quoted_remarks(study: Study, disagreements: Sequence[Labelled]) -> UnitTexts:
    """The latest reason that each person gave for a label or a flag, by (rubric, unit id)."""
    from evenhand.study.store.logs.answers import remarks_table, standing

    wanted = {(each.rubric, each.unit_id) for each in disagreements}
    said: UnitTexts = {}
    for remark in standing(remarks_table(study.store)).to_dict("records"):
        key = (remark["rubric"], remark["unit_id"])
        words = ": ".join(part for part in (remark["reason"], remark["text"]) if part)
        if key in wanted and words:
            said.setdefault(key, {})[remark["rater_id"]] = words
    return said


def quoted_marks(
    study: Study, disagreements: Sequence[Labelled]
) -> dict[tuple[str, str], list[tuple[str, Mark]]]:
    """Return (rater, marked words) by (rubric, unit id), for raters whose labels are compared."""
    from evenhand.study.store.logs.answers import marks_on

    people = {(each.rubric, each.unit_id): each.people for each in disagreements}
    units = list(people)
    found: dict[tuple[str, str], list[tuple[str, Mark]]] = {}
    for start in range(0, len(units), _AT_ONCE):
        found |= marks_on(study.store, set(units[start : start + _AT_ONCE]))
    return {
        key: [(rater, mark) for rater, mark in marks if rater in people[key]]
        for key, marks in found.items()
    }


def quoted_replies(
    study: Study, disagreements: list[GraderDisagreement]
) -> dict[tuple[str, str, str], list[str]]:
    """Return the latest reply of each grader to each order and draw, by (rubric, unit id, grader),
    as long as the rubric has its present text; equal replies are listed once.
    """
    from evenhand.study.store.logs.replies import raw_replies

    wanted = [(each.rubric, each.unit_id, each.grader) for each in disagreements]
    return raw_replies(study.store, wanted, study.accepted_hashes())
