"""Subjects: their scores by rater, how these correlate, whose answers raters prefer, and the side
of the pairs that is favoured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.report import charts
from evenhand.analysis.report.blocks import Chart, Table, items
from evenhand.analysis.report.figures import ALL_BINARY, Figure, defined
from evenhand.analysis.report.sections.published import beside_published
from evenhand.analysis.report.source import (
    Column,
    Layers,
    RubricFigures,
    TableRow,
    distinct,
    listed,
    pair_title,
    rater_title,
    rows_of,
    sentences,
)
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_CORRELATIONS = ["spearman", "pearson", "kendall"]
_PEOPLE, _GRADER = rater_title("humans"), written("chart.scores_grader")
_ALIKE = ["strength_spearman", "same_best"]
_CORRECTED = "win_rate_ppi"
_NET = "direction_net"
_APART = ("subject", "group")
"""Columns whose values have tables of their own."""


# Overall agreement


def overall_layers(figures: RubricFigures) -> Layers:
    """Scores and correlations of a rubric that has subjects."""
    scores = figures.select("subject_score", ALL_BINARY)
    columns = _by_raters(dict.fromkeys(figure.rater for figure in scores))
    rows = sorted(distinct(scores, "at"))
    table = figures.table(written("overall.caption"), "Subject", columns, rows, count="")
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


def _by_raters(raters: Iterable[str]) -> list[tuple[str, Column]]:
    """Return a column for each rater, with its figure of the row's statistic."""
    return [(rater_title(rater), {"rater_a": rater}) for rater in raters]


def _alike_overall(figures: RubricFigures) -> list[object]:
    """The graders whose scores correlate best and worst with people's."""
    found = figures.select(_CORRELATIONS[0], ALL_BINARY)
    alike = defined(figure for figure in found if figure.rater == "humans")
    if not alike:
        scored = {each.rater for each in figures.select("subject_score", ALL_BINARY)}
        if "humans" in scored or not (graders := defined(found)):
            return in_pieces("report.scores_unknown")
        first, second = graders[0].raters
        return in_pieces("report.scores_of_graders", first=first, second=second, rho=graders[0])
    best, worst = alike[0], alike[-1]
    said = in_pieces("report.scores", grader=best.grader, rho=best)
    least = in_pieces("report.scores_least", grader=worst.grader, rho=worst)
    return said if worst is best else sentences(said, least)


def _scores(figures: RubricFigures, data: Iterable[Table]) -> list[Chart]:
    """Draw every subject's score by people and by the grader, a panel for each grader, in the order
    of people's scores; empty where people or graders scored no subject.
    """
    scores = figures.select("subject_score", ALL_BINARY)
    people = {figure.at: figure for figure in scores if figure.rater == "humans"}
    names = dict.fromkeys(figure.rater for figure in scores if figure.rater != "humans")
    graders = figures.by_agreement(names, ALL_BINARY)
    subjects = sorted(people, key=lambda name: people[name].bounds[1], reverse=True)
    values: list[charts.Datum] = []
    drawn = set()
    for grader in graders[: charts.MAX_LISTED]:
        for subject in subjects[: charts.MAX_LISTED]:
            figure = figures.by_key(people[subject].key._replace(rater_a=grader))
            if figure is not None and not figure.reason:
                panel = {"grader": charts.short(grader), "subject": charts.short(subject)}
                values.append(people[subject].datum(who=_PEOPLE, **panel))
                values.append(figure.datum(who=_GRADER, **panel))
                drawn |= {grader, subject}
    if not values:
        return []
    known = list(dict.fromkeys([*subjects, *(figure.at for figure in scores)]))
    axis = [charts.short(subject) for subject in subjects[: charts.MAX_LISTED] if subject in drawn]
    return figures.chart(
        written("chart.scores"),
        written("chart.scores_alt", subjects=", ".join(axis)),
        values,
        _panels(values, axis),
        data,
        written("chart.scores_note"),
        charts.left_out(graders, drawn),
        charts.left_out(known, drawn, "subjects"),
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


def preference_layers(figures: RubricFigures) -> Layers:
    """Win rates and strengths by annotators and by every grader."""
    rates = dict.fromkeys(figure.rater for figure in figures.select("win_rate"))
    graders = figures.by_agreement([name for name in rates if name != "humans"])
    raters = ["humans", *graders]
    rows: list[TableRow] = []
    for statistic in ("win_rate", "strength"):
        found = (each for each in figures.select(statistic) if each.rater in raters)
        by_subject = sorted(distinct(found, "at"))
        rows += [(entry_for(statistic).name, None), *by_subject]
    what = written("preference.caption")
    by_rater = figures.table(what, "Subject", _by_raters(raters), rows, count="")
    who = [(grader, ("humans", grader)) for grader in graders]
    alike = figures.panel(written("preference.alike"), "Grader", _ALIKE, who, asides=True)
    return Layers(
        answers=_preferred(figures, graders),
        folded=[*by_rater, *alike, *_corrected(figures, graders)],
        about=[written("preference.strength")],
    )


def _preferred(figures: RubricFigures, graders: list[str]) -> list[list[object]]:
    """The subject that each rater prefers, how alike they rank, and what being first gains."""
    said: list[list[object]] = []
    for rater in ("humans", *graders):
        for best in defined(figures.between("win_rate", rater))[:1]:
            whose = "preference_people" if rater == "humans" else "preference_grader"
            about = {"grader": rater, "subject": best.at, "rate": best}
            said.append(in_pieces(f"report.{whose}", **about))
    for grader in graders:
        rho = figures.get(_ALIKE[0], "humans", grader)
        if rho and rho.reason:
            why = rho.reason.words
            said.append(in_pieces("report.preference_not_alike", grader=grader, why=why))
        elif rho:
            said.append(in_pieces("report.preference_alike", grader=grader, rho=rho))
    gains = figures.select("order_gain")
    return [*said, *(in_pieces("report.preference_order", gain=gain) for gain in gains)]


def _corrected(figures: RubricFigures, graders: list[str]) -> list[Table]:
    """Tabulate rates of the answers that a grader alone compared, as people would have it."""
    rows: list[TableRow] = []
    for grader in graders:
        if any(not each.reason for each in figures.between(_CORRECTED, "humans", grader)):
            rows.append((grader, None))
            rows += rows_of(figures.between("win_rate", grader), lambda each: each.at)
    columns: list[tuple[str, Column]] = [
        (written("preference.by_grader"), "win_rate"),
        (written("preference.by_people"), {"rater_a": "humans"}),
        (
            entry_for(_CORRECTED).label,
            lambda key: figures.by_key(
                key._replace(statistic=_CORRECTED, rater_a="humans", rater_b=key.rater_a)
            ),
        ),
    ]
    return figures.table(written("preference.corrected"), "Subject", columns, rows)


# Direction: which side of the pairs is favoured, by people and by graders, for every subject


def direction_layers(figures: RubricFigures) -> Layers:
    """Annotators and graders: on everything, for every subject, for every group; nothing where no
    option favours a side and no unit is one side of a pair.
    """
    net = figures.everywhere(_NET)
    of_subjects = [figure for figure in net if _part(figure)[0] == "subject"]
    people = [figure for figure in of_subjects if figure.rater == "humans"]
    others = [figure for figure in net if _part(figure)[0] not in _APART]
    latest = {figure.subset: _sides(figure, *_part(figure)) for figure in others}
    by_part = rows_of(
        others,
        lambda each: rater_title(each.rater),
        lambda each: latest[each.subset],
        by="subset",
    )
    unnamed = any(figure.at == "side a>side b" for figure in net)
    return Layers(
        answers=_favoured(net),
        folded=[
            *items(written("direction.what"), map(_sentence, people or of_subjects)),
            *_by_rater(figures, net, "subject", _value),
            *figures.table(written("direction.by_rater"), "Rater", [_NET], by_part),
        ],
        appendix=_by_rater(figures, net, "group", _sides),
        about=[written("direction.side_a")] if unnamed else [],
    )


def _favoured(net: list[Figure]) -> list[list[object]]:
    """The subjects on which a side is favoured, by people where they labelled, else by the first
    grader; or the widest.
    """
    known = [figure for figure in net if figure.interval]
    raters = [figure.rater for figure in known]
    rater = "humans" if "humans" in raters else next(iter(raters), "")
    by_rater = [figure for figure in known if figure.rater == rater]
    own = [figure for figure in by_rater if _part(figure)[0] == "subject"] or by_rater
    if not own:
        return [in_pieces("report.direction_unknown")] if net else []
    apart = [figure for figure in own if not figure.bounds[0] <= 0 <= figure.bounds[2]]
    who = rater_title(rater)
    if not apart:
        widest = max(own, key=lambda figure: max(-figure.bounds[0], figure.bounds[2]))
        place = _value(widest) or written("direction.everywhere")
        even = "direction_even" if rater == "humans" else "direction_even_by_one"
        return [in_pieces(f"report.{even}", who=who, place=place, net=widest)]
    favoured = [
        in_pieces(
            "direction.on",
            favoured=_favoured_first(each)[0],
            place=_value(each) or written("direction.everywhere"),
            net=each,
        )
        for each in apart
    ]
    favours = "direction" if rater == "humans" else "direction_by_one"
    return [in_pieces(f"report.{favours}", who=who, favoured=listed(favoured))]


def _favoured_first(figure: Figure) -> tuple[str, str]:
    first, _, second = figure.at.partition(">")
    return (first, second) if figure.bounds[1] > 0 else (second, first)


def _sentence(figure: Figure) -> str:
    """Say which side a rater favours on a subject, if any."""
    low, _, high = figure.bounds
    who = {"rater": rater_title(figure.rater), "subject": _value(figure)}
    figures = written("direction.figures", net=figure.text, units=figure.n_units, line=figure.line)
    if math.isnan(low):
        return written("direction.open", **who, figures=figures)
    if low <= 0 <= high:
        return written("direction.even", **who, most=max(-low, high), figures=figures)
    favoured, other = _favoured_first(figure)
    return written(
        "direction.affirms" if figure.subset.endswith(BINARY) else "direction.favours",
        **who, favoured=favoured, other=other, figures=figures,
    )  # fmt: skip


def _by_rater(
    figures: RubricFigures, net: list[Figure], column: str, title: Callable[[Figure], str]
) -> list[Table]:
    """A row for every subject or group, a column for every rater."""
    own = [figure for figure in net if _part(figure)[0] == column]
    latest = {figure.subset: figure for figure in own}
    rows: list[TableRow] = [(_sides(own[0]), None)] if column == "subject" and own else []
    rows += rows_of(latest.values(), title)
    columns = _by_raters(dict.fromkeys(figure.rater for figure in own))
    what = written("direction.by_column", column=column)
    return figures.table(what, column.title(), columns, rows)


def _part(figure: Figure) -> tuple[str, str]:
    """Column and value of what a figure is on; ("all", "") for everything."""
    column, _, value = figure.subset.removesuffix(BINARY).partition("=")
    return column, value


def _value(figure: Figure) -> str:
    return _part(figure)[1]


def _sides(figure: Figure, column: str = "", value: str = "") -> str:
    """The two sides of a figure in words, and the part of the sample, if it has a value."""
    first, _, second = figure.at.partition(">")
    return written(
        "direction.sides_where" if value else "direction.sides",
        first=first, second=second, column=column, value=value,
    )  # fmt: skip
