"""Bias audit: attributes that shift graders' labels but not people's."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from evenhand.analysis.bias import BOUND, Finding, findings, screening_sentence
from evenhand.analysis.bias.findings import PLANNED, SCREENED
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.report.blocks import Block, Items, ReportSection, Table, traced
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.sections.wording import listed, sentences
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import ResultRow, key_of
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_DETAILS = ("bias_order_flips", "bias_order_first")


def section(source: Source) -> ReportSection | None:
    """Sentences first, then the figures of every question, then the parts of the sample."""
    found = findings(source.analysis.rows)

    def layers_of(rubric: str) -> Layers:
        own = [each for each in found if each.row["rubric"] == rubric]
        return Layers(
            answers=[_answer(source, own)] if own else [],
            folded=[*_sentences(source, own), *_questions(source, rubric)],
            appendix=[*_details(source, rubric), *_slices(source, rubric)],
        )

    return source.section(
        "bias-audit",
        written("bias_section.title"),
        layers_of,
        about=[written("bias_section.about", bound=BOUND)],
        otherwise=written("bias_section.none"),
    )


def _answer(source: Source, own: list[Finding]) -> list[object]:
    """The biases that were found, those beyond the bound first; or the widest interval."""
    found = [each for each in own if each.status == "found"]
    if found:
        large, small = (
            listed(
                [_shift(source, each) for each in found if each.beyond(BOUND) == is_large],
                "; ",
            )
            for is_large in (True, False)
        )
        return sentences(
            in_pieces("report.bias", found=large) if large else [],
            in_pieces("report.bias_small", found=small) if small else [],
        )
    limits = [each for each in own if each.p and each.row["statistic"] in PLANNED]
    if not limits:
        return in_pieces("report.bias_unknown")
    widest = max(limits, key=lambda each: each.largest)
    shift = _figure(source, widest.row)
    return in_pieces("report.bias_none", shift=shift, asked=_asked(shift))


def _shift(source: Source, finding: Finding) -> list[object]:
    """Return the figure of a finding, with its grader and question."""
    figure = _figure(source, finding.row)
    return [f"{_asked(figure)} ", figure]


def _figure(source: Source, row: ResultRow) -> Figure:
    (found,) = filter(None, [source.figures.by_key(key_of(row))])
    return found


def _asked(figure: Figure) -> str:
    return f"{_heading(figure)}: {entry_for(figure.statistic).name.lower()}"


def _sentences(source: Source, own: list[Finding]) -> list[Block]:
    """Return sentences on the biases found, and on the rest: the planned questions, and one
    sentence per grader on the parts of the sample.
    """
    shown = [_traced(source, each) for each in own if each.status == "found"]
    screened = [each for each in own if each.row["statistic"] in SCREENED]
    rest = [
        _traced(source, each)
        for each in own
        if each.status != "found" and each.row["statistic"] in PLANNED
    ]
    by_grader = sorted(screened, key=lambda each: each.grader)
    for _, of_grader in groupby(by_grader, key=lambda each: each.grader):
        rest += filter(None, [screening_sentence(list(of_grader))])
    titled = {written("bias_section.found"): shown, written("bias_section.rest"): rest}
    return [Items(title, tuple(lines)) for title, lines in titled.items() if lines]


def _traced(source: Source, finding: Finding) -> str:
    """The sentence, marked where it lies beyond the bound, with the rows that it was read off."""
    figures = [source.figures.by_key(key_of(row)) for row in finding.rows]
    lines = ", ".join(str(figure.line) for figure in figures if figure)
    said = finding.sentence
    if finding.beyond(BOUND):
        said = written("bias_section.beyond", sentence=said, bound=BOUND)
    return traced(said, lines)


def _questions(source: Source, rubric: str) -> list[Table]:
    """A row for every planned question to every grader: the shift and its p."""
    shift = written("bias_section.shift")
    draft = TableDraft(
        source.caption(rubric, written("bias_section.caption")),
        written("bias_section.question"),
        [shift, written("bias_section.p")],
        drawn=shift,
    )
    for statistic in PLANNED:
        draft.group(entry_for(statistic).name)
        for figure in source.figures.everywhere(rubric, statistic):
            p = source.figures.by_key((rubric, f"{statistic}_p", *figure.key[2:]))
            draft.add(_heading(figure), [figure, p and _without_uncorrected(p)])
    return draft.finish()


def _without_uncorrected(p: Figure) -> Figure:
    """Keep only the remark on how a p was corrected; the uncorrected p is in results.csv."""
    return replace(p, remarks=tuple(each for each in p.remarks if each.code != "uncorrected_p"))


def _details(source: Source, rubric: str) -> list[Table]:
    """Tabulate details of the planned questions that are not tested."""
    caption = source.caption(rubric, written("bias_section.details"))
    draft = TableDraft(caption, written("bias_section.question"), ["Figure"])
    for statistic in _DETAILS:
        draft.group(entry_for(statistic).name)
        for figure in source.figures.everywhere(rubric, statistic):
            draft.add(_heading(figure), [figure])
    return draft.finish()


def _slices(source: Source, rubric: str) -> list[Table]:
    own = [f for name in SCREENED for f in source.figures.everywhere(rubric, name)]
    graders = list(dict.fromkeys(figure.raters[1] for figure in own))
    draft = TableDraft(source.caption(rubric, written("bias_section.parts")), "Part", graders)
    by_place = {(figure.subset, figure.raters[1]): figure for figure in own}
    for subset in dict.fromkeys(figure.subset for figure in own):
        row = [by_place.get((subset, grader)) for grader in graders]
        draft.add(subset.removesuffix(BINARY), row)
    return draft.finish()


def _heading(figure: Figure) -> str:
    """Name the grader of a row, the part of the sample and the sides."""
    grader = figure.raters[1] or figure.raters[0]
    part = figure.subset.removesuffix(BINARY)
    first, _, second = figure.at.partition(">")
    sides = written("direction.sides", first=first, second=second) if second else first
    about = ["" if part == "all" else part, sides]
    return ", ".join([grader, *filter(None, about)])
