"""Groups: does a grader that agrees well on the whole fail one group?"""

from __future__ import annotations

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.slices import BALANCED
from evenhand.analysis.report.blocks import Block, ReportSection
from evenhand.analysis.report.sections.wording import defined
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_DIFFERENCE = "group_difference"


def section(source: Source) -> ReportSection | None:
    """Performance by group against people's consensus; None where no group column was named."""
    return source.section(
        "groups",
        written("groups.title"),
        lambda rubric: Layers(
            answers=_answer(source, rubric),
            folded=_overview(source, rubric),
            appendix=_differences(source, rubric),
        ),
        about=[written("groups.about")],
    )


def _answer(source: Source, rubric: str) -> list[list[object]]:
    """The grader and the group on which it falls furthest behind its other groups."""
    reading = _reading(source, rubric)
    found = defined(
        each
        for each in source.figures.everywhere(rubric, _DIFFERENCE)
        if each.subset.endswith(BINARY) == bool(reading)
    )
    if not found:
        return []
    worst = min(found, key=lambda each: each.bounds[1])
    group, grader = worst.subset.removesuffix(BINARY), worst.raters[1]
    return [in_pieces("report.group", grader=grader, group=group, difference=worst)]


def _reading(source: Source, rubric: str) -> str:
    """The binary verdict where the rubric has one, else the categories."""
    found = source.figures.everywhere(rubric, BALANCED)
    return BINARY if any(each.subset.endswith(BINARY) for each in found) else ""


def _overview(source: Source, rubric: str) -> list[Block]:
    """Tabulate each grader's agreement by group."""
    reading = _reading(source, rubric)
    out: list[Block] = []
    for column, raters in _columns(source, rubric).items():
        subsets = _subsets(source, rubric, column, reading)
        titles = [_value(subset) for subset in subsets]
        draft = TableDraft(
            source.caption(rubric, written("groups.caption", column=column)),
            "Grader",
            titles,
            count="",
        )
        for pair in raters:
            row = [source.figures.get(rubric, BALANCED, *pair, each) for each in subsets]
            draft.add(pair[1], row)
        out += draft.finish()
    return out


def _differences(source: Source, rubric: str) -> list[Block]:
    """Tabulate every group's difference to the rest."""
    reading = _reading(source, rubric)
    label = entry_for(_DIFFERENCE).label
    out: list[Block] = []
    for column, raters in _columns(source, rubric).items():
        caption = source.caption(rubric, written("groups.differences", column=column))
        draft = TableDraft(caption, "Group", [label], drawn=label)
        for pair in raters:
            draft.group(pair[1])
            for subset in _subsets(source, rubric, column, reading):
                row = [source.figures.get(rubric, _DIFFERENCE, *pair, subset)]
                draft.add(_value(subset), row)
        out += draft.finish()
    return out


def _columns(source: Source, rubric: str) -> dict[str, dict[tuple[str, str], None]]:
    """Return by column of groups the raters that are compared."""
    found: dict[str, dict[tuple[str, str], None]] = {}
    for figure in source.figures.everywhere(rubric, BALANCED):
        found.setdefault(figure.subset.partition("=")[0], {})[figure.raters] = None
    return found


def _subsets(source: Source, rubric: str, column: str, reading: str) -> list[str]:
    found = source.figures.everywhere(rubric, BALANCED)
    return [
        subset
        for subset in dict.fromkeys(each.subset for each in found)
        if subset.startswith(f"{column}=") and subset.endswith(BINARY) == bool(reading)
    ]


def _value(subset: str) -> str:
    return subset.partition("=")[2].removesuffix(BINARY)
