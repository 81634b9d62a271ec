"""A unit as people read it: its texts under their labels, each of them only text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evenhand.annotate_app.plain_text import block, marked_block
from evenhand.errors import InputError
from evenhand.rubrics.rendering import PeopleText, TextBlock
from evenhand.study import Study
from evenhand.study.prompts.units import has_known_answer
from evenhand.study.tables.evidence import Mark, pieces


def people_text(study: Study, unit_id: str, rubric_name: str) -> PeopleText:
    """The rubric and the unit in its own order."""
    rubric = study.rubrics[rubric_name]
    return rubric.for_people(study.values(rubric, unit_id))


def quoted_block(
    text: TextBlock, marks: Iterable[tuple[str, Mark]], said: Callable[[Sequence[str]], str]
) -> str:
    """A text of a unit in its own order, with the words that people marked in it; `said` words the
    note on the raters that marked them.
    """
    own = [(who, mark) for who, mark in marks if mark.text == text.variable]
    if not own:
        return block(text.text, "quote", text.label)
    return marked_block([(part, said(who)) for part, who in pieces(text.text, own)], text.label)


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
