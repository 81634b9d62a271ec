"""A unit as people read it: its texts under their labels, drawn as on the raters' page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evenhand.annotate_app.drawn import beside_each_other, drawn_block, drawn_blocks
from evenhand.annotate_app.languages import ENGLISH
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


def marked_blocks(
    study: Study,
    texts: Sequence[TextBlock],
    marks: Sequence[tuple[str, Mark]],
    said: Callable[[Sequence[str]], str],
) -> str:
    """The texts of a unit in its own order, beside each other; where people marked words, the text
    as it was written with them. `said` words the note on the raters that marked them.
    """

    def shown(text: TextBlock) -> str:
        own = [(who, mark) for who, mark in marks if mark.text == text.variable]
        if not own:
            return drawn_block(text, ENGLISH, study.config.annotation.display)
        return marked_block([(part, said(who)) for part, who in pieces(text.text, own)], text.label)

    return beside_each_other([(text.side, shown(text)) for text in texts])


def unit_blocks(study: Study, unit_id: str, rubric_name: str) -> str:
    """The unit's texts, for `plain_text.show`.

    Raises InputError where the study has no such rubric any more.
    """
    if rubric_name not in study.rubrics:
        raise InputError(f"the study has no rubric {rubric_name!r} any more")
    if has_known_answer(unit_id):
        return block("A practice unit or an attention check; its texts stand in the study's file.")
    texts = people_text(study, unit_id, rubric_name).blocks
    return drawn_blocks(texts, ENGLISH, study.config.annotation.display)
