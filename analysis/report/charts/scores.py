"""Subjects' scores by grader against their scores by people, with ranks."""

from __future__ import annotations

from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import (
    MAX_LISTED,
    ROLES,
    SERIES,
    SHAPES,
    SOFT,
    Spec,
    chart_spec,
    equality,
    field,
    layer,
    panel_for_each_grader,
    short,
    span,
)
from evenhand.analysis.report.figures import ALL_BINARY
from evenhand.analysis.report.source import Source


def subject_scores(source: Source, rubric: str, data: tuple[Table, ...] = ()) -> list[Chart]:
    """One panel for each grader, a point for each subject, labelled with its two ranks; nothing
    where people or graders scored no subject."""
    scores = source.figures.select(rubric, "subject_score", ALL_BINARY)
    people = {figure.at: figure for figure in scores if figure.raters[0] == "humans"}
    graders = list(dict.fromkeys(figure.raters[0] for figure in scores))
    graders = [name for name in graders if name != "humans"]
    subjects = list(people)[:MAX_LISTED]
    values = []
    for figure in scores:
        grader, subject = figure.raters[0], figure.at
        if grader in graders[:MAX_LISTED] and subject in subjects:
            of_people = people[subject].datum()
            both = [
                source.figures.get(rubric, "subject_rank", who, "", ALL_BINARY, subject)
                for who in ("humans", grader)
            ]
            text = " → ".join(rank.estimate for rank in both if rank is not None)
            values.append(
                figure.datum(
                    grader=short(grader),
                    subject=short(subject),
                    people=of_people["estimate"],
                    people_low=of_people["low"],
                    people_high=of_people["high"],
                    people_row=of_people["row"],
                    ranks=text,
                )
            )
    if not values:
        return []
    few = len(subjects) <= len(SHAPES)
    names = [short(subject) for subject in subjects]
    whole = {
        "type": "quantitative",
        "scale": {"domain": [0, 1.1], "nice": False},  # room for the ranks above a point
        "axis": {"values": [0, 0.2, 0.4, 0.6, 0.8, 1]},
    }
    x, y = whole | {"title": "Score by people"}, whole | {"title": "Score by the grader"}
    told_apart = {
        channel: {
            "field": "subject", "type": "nominal", "title": "Subject",
            "scale": {"domain": names, "range": values_of},
        }
        for channel, values_of in (("color", SERIES), ("shape", SHAPES))
    }  # fmt: skip
    people_at, grader_at = {"x": field("people", x)}, {"y": field("estimate", y)}
    place = people_at | grader_at
    ranks = {"text": field("ranks" if few else "subject", {"type": "nominal"})}
    whisker: Spec = {"color": SOFT, "opacity": 0.7}
    point: Spec = {"filled": True, "size": 70, "opacity": 1} | ({} if few else {"color": SERIES[0]})
    spec = chart_spec(
        values,
        panel_for_each_grader(
            [
                equality(x, y, color=ROLES["rule"]),
                layer("rule", span("x", x, "people_low", "people_high") | grader_at, **whisker),
                layer("rule", span("y", y) | people_at, **whisker),
                layer("point", place | (told_apart if few else {}), **point),
                layer("text", place | ranks, dy=-11, fontSize=10),
            ],
            height=210,
        ),
    )
    notes = ["On the line both give a subject the same score."]
    if few:
        notes.append("Beside a point: the subject's rank by people → its rank by the grader.")
    if len(people) > len(subjects) or len(graders) > MAX_LISTED:
        notes.append(f"Only the first {MAX_LISTED} subjects and graders are drawn.")
    return [
        Chart(
            caption=source.caption(rubric, "subjects' scores by people and by each grader"),
            alt="Scatter plots, one for each grader: every subject's score by people across, by "
            f"the grader upwards, with intervals. Subjects: {', '.join(names)}.",
            spec=spec,
            data=data,
            note=" ".join(notes),
        )
    ]
