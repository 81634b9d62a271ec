"""Grids of shaded cells with their numbers in them: kappa of all raters, confusion matrices, and
subjects' rates by part of the sample.
"""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import (
    HEAT,
    MAX_LISTED,
    ROLES,
    Datum,
    Spec,
    chart_spec,
    field,
    joined,
    layer,
    left_out,
    one_for_each,
    short,
    shortened,
)
from evenhand.analysis.report.figures import ALL, Figure
from evenhand.analysis.report.source import READINGS, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import entry_for
from evenhand.texts import DASH, written

_COUNT_STEPS = [0.01, 0.03, 0.1, 0.25, 0.5]
"""Shares of the largest count: one category often holds most, and the errors matter."""
_KAPPA_STEPS = [0.2, 0.4, 0.6, 0.75, 0.9]
_RATE_STEPS = [0.05, 0.15, 0.3, 0.5, 0.75]
_MOST_PARTS = 40


def heat_map(source: Source, rubric: str, data: tuple[Table, ...] = ()) -> list[Chart]:
    """Kappa of every two raters, people and graders alike; empty where no pair is listed."""
    kappa = source.kappa(rubric, ALL)
    pairs = source.pairs(rubric, kappa, ALL)
    if not pairs:
        return []
    values: list[Datum] = []
    for pair in pairs:
        figure = source.figures.get(rubric, kappa, *pair)
        if figure is not None:
            first, second = (short(rater_title(rater)) for rater in pair)
            values += [figure.datum(a=first, b=second), figure.datum(a=second, b=first)]
    raters = [short(rater_title(rater)) for rater in source.raters(rubric)]
    undefined = [each for each in values if each["estimate"] is None]
    label = entry_for(kappa).label
    rater = written("chart.rater")
    grid = _shaded(raters, _KAPPA_STEPS, x=rater, y=rater, slanted=True)
    spec = chart_spec(
        values,
        {"width": {"step": 50}, "height": {"step": 30}} | grid,
    )
    return [
        Chart(
            caption=source.caption(rubric, written("chart.heat_map", statistic=label)),
            alt=written(
                "chart.heat_map_alt",
                statistic=label, reading=READINGS[ALL], raters=", ".join(raters),
            ),
            spec=spec,
            data=data,
            note=written("chart.heat_map_note", dash=DASH) if undefined else "",
        )
    ]  # fmt: skip


def confusions(source: Source, rubric: str) -> list[Chart]:
    """Draw a confusion matrix of each grader against people, as shaded counts."""
    categories = list(
        dict.fromkeys(figure.at for figure in source.figures.select(rubric, "prevalence"))
    )
    graders = source.graders(rubric, ALL)
    drawn = graders[:MAX_LISTED]
    found = [
        (grader, said, graded, figure)
        for grader in drawn
        for said in categories
        for graded in categories
        if (figure := _cell(source, rubric, grader, said, graded)) is not None
    ]
    if not found:
        return []
    values = [
        figure.datum(a=graded, b=said, grader=short(grader))
        for grader, said, graded, figure in found
    ]
    most = max(figure.bounds[1] for *_, figure in found)
    steps = [most * share for share in _COUNT_STEPS]
    annotators = rater_title("humans")
    grid = _shaded(categories, steps, x=written("chart.grader"), y=annotators)
    spec = chart_spec(
        values,
        {
            "facet": one_for_each("grader", values),
            "spec": {"width": max(190, 42 * len(categories)), "height": {"step": 28}} | grid,
        },
    )
    return [
        Chart(
            caption=source.caption(rubric, written("chart.confusion")),
            alt=written("chart.confusion_alt", graders=", ".join(map(short, drawn))),
            spec=spec,
            data=tuple(_matrix(source, rubric, grader, categories) for grader in drawn),
            note=joined(
                written("chart.confusion_note"),
                left_out(graders, {grader for grader, *_ in found}),
            ),
        )
    ]


def rates_by_part(
    by: str,
    parts: Mapping[str, Mapping[str, Figure]],
    data: tuple[Table, ...],
    caption: str,
) -> list[Chart]:
    """Draw the subjects' rates, `by` whose labels, by part ("column=value"), then by subject; empty
    where none is known.
    """
    columns: dict[str, list[str]] = {}
    for part in parts:
        columns.setdefault(part.partition("=")[0], []).append(part)
    most = {part for own in columns.values() for part in own[:_MOST_PARTS]}
    drawn = [part for part in parts if part in most]
    every = dict.fromkeys(subject for figures in parts.values() for subject in figures)
    subjects = list(every)[:MAX_LISTED]
    found = [
        (part, subject, figure)
        for part in drawn
        for subject in subjects
        if (figure := parts[part].get(subject))
    ]
    if all(figure.reason for *_, figure in found):
        return []
    titles = shortened(subjects) | {"": written("rates.all_units")}
    named = shortened([part.partition("=")[2] for part in drawn])
    values: list[Datum] = []
    rows: dict[str, dict[str, None]] = {}
    for part, subject, figure in found:
        column, _, value = part.partition("=")
        rows.setdefault(column, {})[named[value]] = None
        mark = "*" if figure.says("few_labelled") else ""
        datum = figure.datum(a=titles[subject], b=named[value], column=column)
        values.append(datum | {"shown": f"{figure.estimate}{mark}"})
    heads = [titles[subject] for subject in subjects]
    named = {"x": written("chart.scores_subject"), "y": written("chart.rates_part")}
    panels = [
        {
            "title": column,
            "transform": [{"filter": {"field": "column", "equal": column}}],
            "width": {"step": 58},
            "height": {"step": 28},
        }
        | _shaded([*heads, *own], _RATE_STEPS, **named, slanted=True)
        for column, own in rows.items()
    ]
    spec = chart_spec(values, {"vconcat": panels})
    few = any(figure.says("few_labelled") for *_, figure in found)
    return [
        Chart(
            caption=caption,
            alt=written(
                "chart.rates_by_part_alt",
                by=by, subjects=", ".join(heads), parts=", ".join(drawn),
            ),
            spec=spec,
            data=data,
            note=joined(
                written("chart.rates_by_part_note", by=by),
                written("chart.few_labelled") if few else "",
                written("chart.heat_map_note", dash=DASH)
                if any(figure.reason for *_, figure in found)
                else "",
                left_out(list(every), subjects, "subjects"),
                *(left_out(own, drawn, "values", _MOST_PARTS) for own in columns.values()),
            ),
        )
    ]  # fmt: skip


def _cell(source: Source, rubric: str, grader: str, said: str, graded: str) -> Figure | None:
    return source.figures.get(rubric, "confusion", "humans", grader, ALL, from_to(said, graded))


def _matrix(source: Source, rubric: str, grader: str, categories: list[str]) -> Table:
    draft = TableDraft(
        source.caption(rubric, written("chart.confusion_table", grader=grader)),
        rater_title("humans"),
        categories,
        count="",
    )
    for said in categories:
        draft.add(said, [_cell(source, rubric, grader, said, graded) for graded in categories])
    return draft.finish()[0]


def _shaded(order: list[str], steps: list[float], *, x: str, y: str, slanted: bool = False) -> Spec:
    """Cells shaded by the step that their estimate reaches, the number in a colour that is legible
    on the shade.
    """
    bare = {"domain": False, "ticks": False}
    sides = {
        "x": {
            "field": "a", "type": "nominal", "sort": order, "title": x,
            "axis": bare | ({"orient": "top", "labelAngle": -35} if slanted else {"labelAngle": 0}),
        },
        "y": {
            "field": "b", "type": "nominal", "sort": order, "title": y,
            "axis": bare,
        },
    }  # fmt: skip
    ink = {
        "condition": {"test": f"datum.estimate >= {steps[3]}", "value": ROLES["heat-high-ink"]},
        "value": ROLES["heat-low-ink"],
    }
    fill = {
        "field": "estimate",
        "type": "quantitative",
        "scale": {"type": "threshold", "domain": steps, "range": HEAT},
        "legend": None,
    }
    return {
        "encoding": sides,
        "layer": [
            layer("rect", {"color": fill}, stroke=ROLES["page"]),
            layer("text", {"text": field("shown", {"type": "nominal"}), "color": ink}),
        ],
    }
