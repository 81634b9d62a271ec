"""Groups: does a grader that agrees well on the whole fail one group?"""

from __future__ import annotations

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.group_gap import BALANCED, GAP
from evenhand.analysis.report.blocks import Block, ReportSection
from evenhand.analysis.report.figures import ALL, ALL_BINARY
from evenhand.analysis.report.sections.wording import defined, sentences
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_DETAIL = [BALANCED, "group_precision", "group_recall", "group_kappa", "group_difference"]


def section(source: Source) -> ReportSection | None:
    """Performance by group against people's consensus; None where no group column was named."""
    return source.section(
        "groups",
        written("groups.title"),
        lambda rubric: Layers(
            answers=_answer(source, rubric),
            folded=_overview(source, rubric),
            appendix=_detail(source, rubric),
        ),
        about=[written("groups.about")],
    )


def _answer(source: Source, rubric: str) -> list[list[object]]:
    """The grader that differs most between groups, and whether that may be chance."""
    reading = _reading(source, rubric)
    gaps = defined(source.figures.select(rubric, GAP, ALL + reading))
    if not gaps:
        return []
    widest = gaps[0]
    said = in_pieces("report.gap", grader=widest.raters[1], column=widest.at, gap=widest)
    known = widest.bounds[0] > 0
    return [sentences(said, in_pieces("report.gap_clear" if known else "report.gap_chance"))]


def _reading(source: Source, rubric: str) -> str:
    """The binary verdict where the rubric has one, else the categories."""
    return BINARY if source.figures.select(rubric, GAP, ALL_BINARY) else ""


def _overview(source: Source, rubric: str) -> list[Block]:
    """Tabulate each grader's agreement by group, and the gap."""
    reading = _reading(source, rubric)
    out: list[Block] = []
    gaps = source.figures.select(rubric, GAP, ALL + reading)
    for column in dict.fromkeys(each.at for each in gaps):
        subsets = _subsets(source, rubric, column, reading)
        titles = [_value(subset) for subset in subsets]
        draft = TableDraft(
            source.caption(rubric, written("groups.caption", column=column)),
            "Grader",
            [*titles, entry_for(GAP).label],
            count="",
        )
        for gap in (each for each in gaps if each.at == column):
            grader = gap.raters[1]
            row = [source.figures.get(rubric, BALANCED, *gap.raters, each) for each in subsets]
            draft.add(grader, [*row, gap])
        out += draft.finish()
    return out


def _detail(source: Source, rubric: str) -> list[Block]:
    """Precision, recall and kappa of every grader in every group."""
    reading = _reading(source, rubric)
    out: list[Block] = []
    gaps = source.figures.select(rubric, GAP, ALL + reading)
    for column in dict.fromkeys(each.at for each in gaps):
        draft = TableDraft(
            source.caption(rubric, written("groups.detail", column=column)),
            "Group",
            [entry_for(name).label for name in _DETAIL],
            drawn=entry_for("group_difference").label,
        )
        for gap in (each for each in gaps if each.at == column):
            draft.group(gap.raters[1])
            for subset in _subsets(source, rubric, column, reading):
                at = "affirmative" if reading else ""
                draft.add(
                    _value(subset),
                    [
                        source.figures.get(
                            rubric,
                            name,
                            *gap.raters,
                            subset,
                            at if name in ("group_precision", "group_recall") else "",
                        )
                        for name in _DETAIL
                    ],
                )
        out += draft.finish()
    return out


def _subsets(source: Source, rubric: str, column: str, reading: str) -> list[str]:
    found = source.figures.everywhere(rubric, BALANCED)
    return [
        subset
        for subset in dict.fromkeys(each.subset for each in found)
        if subset.startswith(f"{column}=") and subset.endswith(BINARY) == bool(reading)
    ]


def _value(subset: str) -> str:
    return subset.partition("=")[2].removesuffix(BINARY)
