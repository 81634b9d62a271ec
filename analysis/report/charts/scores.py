"""Subjects' scores by grader and by people."""

from __future__ import annotations

from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import (
    MAX_LISTED,
    PAGE,
    SERIES,
    Datum,
    chart_spec,
    field,
    joined,
    layer,
    left_out,
    panel_for_each_grader,
    short,
    span,
    through_zero,
)
from evenhand.analysis.report.figures import ALL_BINARY
from evenhand.analysis.report.source import Source, rater_title
from evenhand.texts import written

_PEOPLE, _GRADER = rater_title("humans"), written("chart.scores_grader")


def subject_scores(source: Source, rubric: str, data: tuple[Table, ...] = ()) -> list[Chart]:
    """Draw every subject's score by people and by the grader, a panel for each grader, in the order
    of people's scores; empty where people or graders scored no subject.
    """
    scores = source.figures.select(rubric, "subject_score", ALL_BINARY)
    people = {figure.at: figure for figure in scores if figure.raters[0] == "humans"}
    by_grader = {(figure.raters[0], figure.at): figure for figure in scores}
    graders = source.by_agreement(
        rubric, dict.fromkeys(name for name, _ in by_grader if name != "humans"), ALL_BINARY
    )
    subjects = sorted(people, key=lambda name: people[name].bounds[1], reverse=True)
    values: list[Datum] = []
    drawn = set()
    for grader in graders[:MAX_LISTED]:
        for subject in subjects[:MAX_LISTED]:
            figure = by_grader.get((grader, subject))
            if figure is not None and not figure.reason:
                panel = {"grader": short(grader), "subject": short(subject)}
                values.append(people[subject].datum(who=_PEOPLE, **panel))
                values.append(figure.datum(who=_GRADER, **panel))
                drawn |= {grader, subject}
    if not values:
        return []
    scored = list(dict.fromkeys(figure.at for figure in scores))
    known = [*subjects, *(each for each in scored if each not in people)]
    names = [short(subject) for subject in subjects[:MAX_LISTED] if subject in drawn]
    return [
        Chart(
            caption=source.caption(rubric, written("chart.scores")),
            alt=written("chart.scores_alt", subjects=", ".join(names)),
            spec=chart_spec(values, _panels(values, names)),
            data=data,
            note=joined(
                written("chart.scores_note"),
                left_out(graders, drawn),
                left_out(known, drawn, "subjects"),
            ),
        )
    ]


def _panels(values: list[Datum], names: list[str]) -> dict[str, object]:
    bounds = (datum[name] for datum in values for name in ("low", "estimate", "high"))
    x = through_zero(bounds, written("chart.scores_axis"))
    who = {"field": "who", "type": "nominal", "sort": [_PEOPLE, _GRADER]}
    two = {"domain": [_PEOPLE, _GRADER]}
    by, subject = written("chart.scores_by"), written("chart.scores_subject")
    place = {
        "y": {"field": "subject", "type": "nominal", "sort": names, "title": subject},
        "yOffset": who,
        "color": who | {"title": by, "scale": two | {"range": SERIES[:2]}},
    }
    point = place | {
        "x": field("estimate", x),
        "shape": who | {"title": by, "scale": two | {"range": ["circle", "diamond"]}},
        "fill": who | {"title": by, "scale": two | {"range": [PAGE, SERIES[1]]}},
    }
    return panel_for_each_grader(
        values,
        [
            layer("rule", place | span("x", x), strokeWidth=1.5),
            layer("point", point, size=50, opacity=1),
        ],
        height={"step": 13, "for": "offset"},
    )
