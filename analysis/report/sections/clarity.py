"""Clear and unclear: is a grader right where people see a side, and less sure where they do not?"""

from __future__ import annotations

from evenhand.analysis.labels.matrix import COLLAPSED, UNCLEAR
from evenhand.analysis.people.clarity import CLEAR_AGREEMENT
from evenhand.analysis.report.blocks import Block, ReportSection
from evenhand.analysis.report.figures import ALL, Figure
from evenhand.analysis.report.sections.published import with_published
from evenhand.analysis.report.sections.wording import defined, sentences
from evenhand.analysis.report.source import Layers, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_SUBSET = ALL + COLLAPSED
_PEOPLE = ["clear_share", "fleiss_kappa", "observed_agreement"]
_SURE = {"clear": written("clarity.sure_clear"), UNCLEAR: written("clarity.sure_unclear")}


def section(source: Source) -> ReportSection | None:
    """Build the section for rubrics that call a category unclear: people first, then graders."""
    return source.section(
        "clear-and-unclear",
        written("clarity.title"),
        lambda rubric: Layers(
            answers=_answer(source, rubric),
            folded=[*_people(source, rubric), *_graders(source, rubric)],
        ),
        about=[written("clarity.about")],
    )


def _answer(source: Source, rubric: str) -> list[list[object]]:
    """State how often people see a side, and which grader agrees best with them there."""
    clear = source.figures.get(rubric, "clear_share", "humans", "", _SUBSET)
    if clear is None:
        return []
    agree = defined(source.figures.select(rubric, CLEAR_AGREEMENT, _SUBSET))
    said = in_pieces("report.clear", share=clear)
    if not agree:
        return [said]
    best = agree[0]
    return [sentences(said, in_pieces("report.clear_best", grader=best.raters[1], share=best))]


def _people(source: Source, rubric: str) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, written("clarity.annotators")),
        "Who",
        [entry_for(name).label for name in _PEOPLE],
        count="",
    )
    row = [source.figures.get(rubric, name, "humans", "", _SUBSET) for name in _PEOPLE]
    if row[0] is None:
        return []
    draft.add(rater_title("humans"), row)
    columns = {
        entry_for("clear_share").label: "clear_share",
        entry_for("fleiss_kappa").label: "fleiss_kappa",
    }
    return [with_published(table, source, rubric, columns) for table in draft.finish()]


def _graders(source: Source, rubric: str) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, written("clarity.graders")),
        "Grader",
        [entry_for(CLEAR_AGREEMENT).label, *_SURE.values()],
        count="",
    )
    for figure in source.figures.select(rubric, CLEAR_AGREEMENT, _SUBSET):
        confidence: list[Figure | None] = [
            source.figures.get(rubric, "mean_confidence", *figure.raters, _SUBSET, at)
            for at in _SURE
        ]
        draft.add(figure.raters[1], [figure, *confidence])
    columns = {
        entry_for(CLEAR_AGREEMENT).label: "clear_agreement",
        _SURE["clear"]: "confidence_clear",
        _SURE[UNCLEAR]: "confidence_unclear",
    }
    return [with_published(table, source, rubric, columns) for table in draft.finish()]
