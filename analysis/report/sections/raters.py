"""The raters: how much each labelled and how fast, and their use of the categories."""

from __future__ import annotations

from evenhand.analysis.agreement.pairs import DECIDING_KAPPAS
from evenhand.analysis.labels.combine import ALL_RATERS
from evenhand.analysis.labels.matrix import AFFIRMATIVE, BINARY
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.people.disagreements import COVERAGE, UNSCORED_AS_DISAGREEMENT
from evenhand.analysis.report.blocks import Block, Paragraph, ReportSection, Table
from evenhand.analysis.report.charts.shares import label_distribution
from evenhand.analysis.report.figures import ALL, ALL_BINARY, Figure
from evenhand.analysis.report.sections.wording import defined, sentences
from evenhand.analysis.report.source import READINGS, Layers, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_WORK = ("rater_agreement", "rater_seconds_median")
_MEAN = "mean_number"
_WITH_EXCLUDED = {ALL: ALL_RATERS, ALL_BINARY: ALL_RATERS + BINARY}
_EXCLUSION_PANEL = ["observed_agreement", *DECIDING_KAPPAS, CEILING]


def section(source: Source) -> ReportSection | None:
    """Labels given, shares of the categories, coverage, and the bounds due to missing grades."""

    def layers_of(rubric: str) -> Layers:
        labels = (*_raters(source, rubric), *_numbers(source, rubric))
        return Layers(
            answers=_answer(source, rubric, labelled=bool(labels)),
            folded=[
                *(label_distribution(source, rubric, labels) or labels),
                *_not_listed(source, rubric),
                *_work(source, rubric),
                *exclusion_blocks(source, rubric),
            ],
            appendix=_sensitivity(source, rubric),
        )

    return source.section(
        "raters", written("raters.title"), layers_of, otherwise=written("raters.none")
    )


def _answer(source: Source, rubric: str, *, labelled: bool) -> list[list[object]]:
    """State how far single people agree with the others, and which grader left most units out."""
    said: list[list[object]] = []
    if people := defined(source.figures.select(rubric, _WORK[0])):
        high, low = people[0], people[-1]
        numbers = source.figures.select(rubric, _MEAN)
        first, last = low.raters[0], high.raters[0]
        said.append(
            in_pieces(
                "report.people_numbers" if numbers else "report.people",
                low=low,
                first=first,
                high=high,
                last=last,
            )
        )
    elif labelled:
        said.append(in_pieces("report.pair_none"))
    graders = set(source.graders(rubric, ALL))
    found = source.figures.select(rubric, COVERAGE)
    if scored := defined(each for each in found if each.raters[1] in graders):
        least = scored[-1]
        missing = least.bounds[1] < 1
        said.append(
            in_pieces("report.coverage", grader=least.raters[1], share=least)
            if missing
            else in_pieces("report.coverage_all")
        )
    return [sentences(*said)] if said else []


def _raters(source: Source, rubric: str) -> list[Table]:
    shares = _shares(source, rubric)
    coverage = {figure.raters[1]: figure for figure in source.figures.select(rubric, COVERAGE)}
    columns = list(dict.fromkeys((figure.subset, figure.at) for figure in shares))
    draft = TableDraft(
        source.caption(rubric, written("raters.caption")),
        "Rater",
        [*(_share_title(*column) for column in columns), entry_for(COVERAGE).label],
        count=written("raters.labelled_units"),
    )
    by_place = {(figure.raters[0], figure.subset, figure.at): figure for figure in shares}
    for rater in dict.fromkeys(figure.raters[0] for figure in shares):
        row = [by_place.get((rater, *column)) for column in columns]
        draft.add(rater_title(rater), [*row, coverage.get(rater)])
    return draft.finish()


def _numbers(source: Source, rubric: str) -> list[Table]:
    """Tabulate the mean of every rater's numbers."""
    coverage = {figure.raters[1]: figure for figure in source.figures.select(rubric, COVERAGE)}
    draft = TableDraft(
        source.caption(rubric, written("raters.numbers")),
        "Rater",
        [entry_for(_MEAN).label, entry_for(COVERAGE).label],
        count=written("raters.labelled_units"),
    )
    for figure in source.figures.select(rubric, _MEAN):
        draft.add(rater_title(figure.raters[0]), [figure, coverage.get(figure.raters[0])])
    return draft.finish()


def _not_listed(source: Source, rubric: str) -> list[Block]:
    listed = {figure.raters[0] for figure in _shares(source, rubric)}
    listed |= {figure.raters[0] for figure in source.figures.select(rubric, _MEAN)}
    if {figure.raters[1] for figure in source.figures.select(rubric, COVERAGE)} <= listed:
        return []
    return [Paragraph(written("raters.not_listed"))]


def _work(source: Source, rubric: str) -> list[Table]:
    """Tabulate every rater's agreement with the others and time per label."""
    draft = TableDraft(
        source.caption(rubric, written("raters.work")),
        "Rater",
        [entry_for(name).label for name in _WORK],
        count="Labels",
    )
    given = [f.raters[0] for name in _WORK for f in source.figures.select(rubric, name)]
    for rater in dict.fromkeys(given):
        draft.add(rater, [source.figures.get(rubric, name, rater) for name in _WORK])
    return draft.finish()


def _sensitivity(source: Source, rubric: str) -> list[Block]:
    statistics = ["observed_agreement", UNSCORED_AS_DISAGREEMENT]
    draft = TableDraft(
        source.caption(rubric, written("raters.sensitivity")),
        "Grader",
        [entry_for(name).label for name in statistics],
    )
    figures = {
        subset: source.figures.select(rubric, UNSCORED_AS_DISAGREEMENT, subset)
        for subset in READINGS
    }
    for subset, reading in READINGS.items():
        draft.group(written("raters.with_annotators", reading=reading))
        for figure in figures[subset]:
            if figure.says("unscored"):
                row = source.row(rubric, statistics, figure.raters, subset)
                draft.add(figure.raters[1], row)
    tables = draft.finish()
    if any(figures.values()) and not tables:
        return [Paragraph(written("raters.none_unscored"))]
    return [*tables]


def _shares(source: Source, rubric: str) -> list[Figure]:
    return [
        figure
        for subset in READINGS
        for figure in source.figures.select(rubric, "prevalence", subset)
    ]


def _share_title(subset: str, category: str) -> str:
    affirmed = (subset, category) == (ALL_BINARY, AFFIRMATIVE)
    return written("raters.affirmative") if affirmed else category


def exclusion_blocks(source: Source, rubric: str) -> list[Block]:
    """People among themselves and every grader with them; empty where no rater is excluded."""
    draft = TableDraft(
        source.caption(rubric, written("exclusions.caption")),
        "Rater",
        [entry_for(name).label for name in _EXCLUSION_PANEL],
    )
    for main, everyone in _WITH_EXCLUDED.items():
        found = source.figures.select(rubric, source.usual(rubric, main), everyone)
        listed = [figure.raters for figure in found if figure.raters[0] == "humans"]
        for title, subset in (("without", main), ("with", everyone)):
            binary = subset.endswith(BINARY)
            draft.group(written(f"exclusions.{title}_binary" if binary else f"exclusions.{title}"))
            for raters in listed:
                name = rater_title(raters[1] or raters[0])
                draft.add(name, source.row(rubric, _EXCLUSION_PANEL, raters, subset))
    tables = draft.finish()
    return [Paragraph(written("exclusions.about")), *tables] if tables else []
