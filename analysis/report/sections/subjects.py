"""Subjects: their scores by rater, how these correlate, and whose answers raters prefer."""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.analysis.report import charts
from evenhand.analysis.report.blocks import Chart, ReportSection, Table
from evenhand.analysis.report.figures import ALL_BINARY, Figure, defined
from evenhand.analysis.report.sections.published import beside_published
from evenhand.analysis.report.source import (
    Layers,
    RubricFigures,
    Source,
    crossed,
    pair_title,
    rater_title,
    sentences,
)
from evenhand.analysis.report.tables import FigureRow
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_CORRELATIONS = ["spearman", "pearson", "kendall"]
_PEOPLE, _GRADER = rater_title("humans"), written("chart.scores_grader")
_BY_RATER = ("win_rate", "strength")
_ALIKE = ["strength_spearman", "same_best"]
_CORRECTED = "win_rate_ppi"


# Overall agreement


def overall_layers(figures: RubricFigures) -> Layers:
    """Scores and correlations of a rubric that has subjects."""
    scores = figures.select("subject_score", ALL_BINARY)
    raters = list(dict.fromkeys(figure.raters[0] for figure in scores))
    by_subject = crossed(scores, lambda each: each.at, lambda each: each.raters[0], raters)
    table = figures.table(
        written("overall.caption"),
        "Subject",
        list(map(rater_title, raters)),
        sorted(by_subject.items()),
        count="",
    )
    drawn = _scores(figures, table) or table
    correlated = figures.select(_CORRELATIONS[0], ALL_BINARY)
    who = [(pair_title(each.raters), each.raters) for each in correlated]
    what = written("overall.correlations")
    return Layers(
        answers=[_alike_overall(figures)] if drawn else [],
        folded=[
            *drawn,
            *figures.panel(what, "Raters", _CORRELATIONS, who, ALL_BINARY, asides=True),
            *beside_published(figures),
        ],
    )


def _alike_overall(figures: RubricFigures) -> list[object]:
    """The graders whose scores correlate best and worst with people's."""
    found = figures.select(_CORRELATIONS[0], ALL_BINARY)
    alike = defined(figure for figure in found if figure.raters[0] == "humans")
    if not alike:
        scored = {each.raters[0] for each in figures.select("subject_score", ALL_BINARY)}
        graders = defined(found)
        if "humans" in scored or not graders:
            return in_pieces("report.scores_unknown")
        first, second = graders[0].raters
        about = {"first": first, "second": second, "rho": graders[0]}
        return in_pieces("report.scores_of_graders", **about)
    best, worst = alike[0], alike[-1]
    said = in_pieces("report.scores", grader=best.raters[1], rho=best)
    least = in_pieces("report.scores_least", grader=worst.raters[1], rho=worst)
    return said if worst is best else sentences(said, least)


def _scores(figures: RubricFigures, data: Iterable[Table]) -> list[Chart]:
    """Draw every subject's score by people and by the grader, a panel for each grader, in the order
    of people's scores; empty where people or graders scored no subject.
    """
    scores = figures.select("subject_score", ALL_BINARY)
    people = {figure.at: figure for figure in scores if figure.raters[0] == "humans"}
    by_grader = {(figure.raters[0], figure.at): figure for figure in scores}
    graders = figures.by_agreement(
        dict.fromkeys(name for name, _ in by_grader if name != "humans"), ALL_BINARY
    )
    subjects = sorted(people, key=lambda name: people[name].bounds[1], reverse=True)
    values: list[charts.Datum] = []
    drawn = set()
    for grader in graders[: charts.MAX_LISTED]:
        for subject in subjects[: charts.MAX_LISTED]:
            figure = by_grader.get((grader, subject))
            if figure is not None and not figure.reason:
                panel = {"grader": charts.short(grader), "subject": charts.short(subject)}
                values.append(people[subject].datum(who=_PEOPLE, **panel))
                values.append(figure.datum(who=_GRADER, **panel))
                drawn |= {grader, subject}
    if not values:
        return []
    scored = list(dict.fromkeys(figure.at for figure in scores))
    known = [*subjects, *(each for each in scored if each not in people)]
    names = [charts.short(subject) for subject in subjects[: charts.MAX_LISTED] if subject in drawn]
    return figures.chart(
        written("chart.scores"),
        written("chart.scores_alt", subjects=", ".join(names)),
        charts.chart_spec(values, _panels(values, names)),
        data,
        charts.joined(
            written("chart.scores_note"),
            charts.left_out(graders, drawn),
            charts.left_out(known, drawn, "subjects"),
        ),
    )


def _panels(values: list[charts.Datum], names: list[str]) -> charts.Spec:
    x = charts.through_zero(charts.bounds_of(values), written("chart.scores_axis"))
    by, subject = written("chart.scores_by"), written("chart.scores_subject")

    def who(*looks: str) -> charts.Spec:
        scale = {"domain": [_PEOPLE, _GRADER], "range": list(looks)}
        return charts.nominal("who", sort=[_PEOPLE, _GRADER], title=by, scale=scale)

    place = {
        "y": charts.nominal("subject", sort=names, title=subject),
        "yOffset": charts.nominal("who", sort=[_PEOPLE, _GRADER]),
        "color": who(*charts.SERIES[:2]),
    }
    point = place | {
        "x": charts.field("estimate", x),
        "shape": who("circle", "diamond"),
        "fill": who(charts.PAGE, charts.SERIES[1]),
    }
    layers = [
        charts.layer("rule", place | charts.span("x", x), strokeWidth=1.5),
        charts.layer("point", point, size=50, opacity=1),
    ]
    return charts.panel_for_each_grader(values, layers, height={"step": 13, "for": "offset"})


# Preference


def preference_section(source: Source) -> ReportSection | None:
    """Win rates and strengths by annotators and by every grader; None where nothing compares two
    answers to one prompt.
    """
    about = [written("preference.about"), written("preference.strength")]
    return source.section("preference", written("preference.title"), _preference, about=about)


def _preference(figures: RubricFigures) -> Layers:
    rates = dict.fromkeys(figure.raters[0] for figure in figures.select("win_rate"))
    graders = figures.by_agreement([name for name in rates if name != "humans"])
    who = [(grader, ("humans", grader)) for grader in graders]
    what = written("preference.alike")
    return Layers(
        answers=_preferred(figures, graders),
        folded=[
            *_by_rater(figures, graders),
            *figures.panel(what, "Grader", _ALIKE, who, asides=True),
            *_corrected(figures, graders),
        ],
    )


def _by_subject(
    figures: RubricFigures, statistic: str, first: str, second: str = ""
) -> dict[str, Figure]:
    """Figures of one rater or of two, by subject."""
    found = figures.select(statistic)
    return {figure.at: figure for figure in found if figure.raters == (first, second)}


def _preferred(figures: RubricFigures, graders: list[str]) -> list[list[object]]:
    """The subject that each rater prefers, how alike they rank, and what being first gains."""
    said: list[list[object]] = []
    for rater in ("humans", *graders):
        rates = defined(_by_subject(figures, "win_rate", rater).values())
        if rates and rater == "humans":
            best = {"subject": rates[0].at, "rate": rates[0]}
            said.append(in_pieces("report.preference_people", **best))
        elif rates:
            best = {"subject": rates[0].at, "rate": rates[0]}
            said.append(in_pieces("report.preference_grader", grader=rater, **best))
    for grader in graders:
        rho = figures.get(_ALIKE[0], "humans", grader)
        if rho and not rho.reason:
            said.append(in_pieces("report.preference_alike", grader=grader, rho=rho))
        elif rho and rho.reason:
            why = rho.reason.words
            said.append(in_pieces("report.preference_not_alike", grader=grader, why=why))
    gains = figures.select("order_gain")
    return [*said, *(in_pieces("report.preference_order", gain=gain) for gain in gains)]


def _by_rater(figures: RubricFigures, graders: list[str]) -> list[Table]:
    raters = ["humans", *graders]
    rows: list[FigureRow] = []
    for statistic in _BY_RATER:
        columns = [_by_subject(figures, statistic, rater) for rater in raters]
        rows.append((entry_for(statistic).name, None))
        for subject in sorted({at for column in columns for at in column}):
            rows.append((subject, [column.get(subject) for column in columns]))
    titles = list(map(rater_title, raters))
    return figures.table(written("preference.caption"), "Subject", titles, rows, count="")


def _corrected(figures: RubricFigures, graders: list[str]) -> list[Table]:
    people = _by_subject(figures, "win_rate", "humans")
    rows: list[FigureRow] = []
    for grader in graders:
        corrected = _by_subject(figures, _CORRECTED, "humans", grader)
        if all(figure.reason for figure in corrected.values()):
            continue  # nothing was compared by the grader alone
        rows.append((grader, None))
        for subject, rate in _by_subject(figures, "win_rate", grader).items():
            rows.append((subject, [rate, people.get(subject), corrected.get(subject)]))
    columns = [written(f"preference.{name}") for name in ("by_grader", "by_people")]
    columns.append(entry_for(_CORRECTED).label)
    return figures.table(written("preference.corrected"), "Subject", columns, rows)
