"""Overall agreement: subjects' scores by rater, and how the raters' scores correlate."""

from __future__ import annotations

from evenhand.analysis.report.blocks import ReportSection, Table
from evenhand.analysis.report.charts.scores import subject_scores
from evenhand.analysis.report.figures import ALL_BINARY
from evenhand.analysis.report.sections.published import beside_published
from evenhand.analysis.report.sections.wording import defined, sentences
from evenhand.analysis.report.source import Layers, Source, pair_title, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_CORRELATIONS = ["spearman", "pearson", "kendall"]


def section(source: Source) -> ReportSection | None:
    """Scores and correlations of every rubric that has subjects."""

    def layers_of(rubric: str) -> Layers:
        scores = tuple(_scores(source, rubric))
        drawn = subject_scores(source, rubric, scores) or scores
        correlations = _correlations(source, rubric)
        return Layers(
            answers=_answer(source, rubric) if drawn else [],
            folded=[*drawn, *correlations, *beside_published(source, rubric)],
        )

    return source.section(
        "overall-agreement",
        written("overall.title"),
        layers_of,
        about=[written("overall.about")],
        otherwise=written("overall.none"),
    )


def _answer(source: Source, rubric: str) -> list[list[object]]:
    """The graders whose scores correlate best and worst with people's."""
    found = source.figures.select(rubric, _CORRELATIONS[0], ALL_BINARY)
    alike = defined(figure for figure in found if figure.raters[0] == "humans")
    if not alike:
        scored = {
            each.raters[0] for each in source.figures.select(rubric, "subject_score", ALL_BINARY)
        }
        graders = defined(found)
        if "humans" in scored or not graders:
            return [in_pieces("report.scores_unknown")]
        first, second = graders[0].raters
        about = {"first": first, "second": second, "rho": graders[0]}
        return [in_pieces("report.scores_of_graders", **about)]
    best, worst = alike[0], alike[-1]
    said = in_pieces("report.scores", grader=best.raters[1], rho=best)
    if worst is best:
        return [said]
    return [sentences(said, in_pieces("report.scores_least", grader=worst.raters[1], rho=worst))]


def _scores(source: Source, rubric: str) -> list[Table]:
    scores = source.figures.select(rubric, "subject_score", ALL_BINARY)
    raters = list(dict.fromkeys(figure.raters[0] for figure in scores))
    draft = TableDraft(
        source.caption(rubric, written("overall.caption")),
        "Subject",
        [rater_title(rater) for rater in raters],
        count="",
    )
    by_place = {(figure.at, figure.raters[0]): figure for figure in scores}
    for subject in sorted({figure.at for figure in scores}):
        draft.add(subject, [by_place.get((subject, rater)) for rater in raters])
    return draft.finish()


def _correlations(source: Source, rubric: str) -> list[Table]:
    draft = TableDraft(
        source.caption(rubric, written("overall.correlations")),
        "Raters",
        [entry_for(name).label for name in _CORRELATIONS],
        asides=True,
    )
    for figure in source.figures.select(rubric, _CORRELATIONS[0], ALL_BINARY):
        row = source.row(rubric, _CORRELATIONS, figure.raters, ALL_BINARY)
        draft.add(pair_title(figure.raters), row)
    return draft.finish()
