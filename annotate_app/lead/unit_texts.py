"""A unit as people read it: its texts under their labels, each of them only text."""

from __future__ import annotations

from evenhand.annotate_app.plain_text import block
from evenhand.errors import InputError
from evenhand.rubrics.rendering import PeopleText
from evenhand.study import Study
from evenhand.study.prompts.units import has_known_answer


def people_text(study: Study, unit_id: str, rubric_name: str) -> PeopleText:
    """The rubric and the unit in its own order."""
    rubric = study.rubrics[rubric_name]
    return rubric.for_people(study.values(rubric, unit_id))


def unit_blocks(study: Study, unit_id: str, rubric_name: str) -> list[str]:
    """The unit's texts, for `plain_text.show`.

    Raises InputError where the study has no such rubric any more.
    """
    if rubric_name not in study.rubrics:
        raise InputError(f"the study has no rubric {rubric_name!r} any more")
    if has_known_answer(unit_id):
        return [
            block("A practice unit or an attention check; its texts stand in the study's file.")
        ]
    return [
        block(each.text, "quote", each.label)
        for each in people_text(study, unit_id, rubric_name).blocks
    ]
