"""Grids of shaded cells with their numbers in them: kappa of all raters, and confusion matrices."""

from __future__ import annotations

from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import (
    HEAT,
    MAX_LISTED,
    ROLES,
    Datum,
    Spec,
    chart_spec,
    field,
    layer,
    left_out,
    one_for_each,
    short,
)
from evenhand.analysis.report.figures import ALL, DASH, Figure
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.source import READINGS, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import from_to

_COUNT_STEPS = [0.01, 0.03, 0.1, 0.25, 0.5]
"""Of the largest count: one category often holds most, and the errors are what one looks for."""
_KAPPA_STEPS = [0.2, 0.4, 0.6, 0.75, 0.9]


def heat_map(source: Source, rubric: str, data: tuple[Table, ...] = ()) -> list[Chart]:
    """Kappa of every two raters, people and graders alike; nothing where no pair is listed."""
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
    grid = _shaded(raters, _KAPPA_STEPS, x="Rater", y="Rater", slanted=True)
    spec = chart_spec(
        values,
        {"width": {"step": 50}, "height": {"step": 30}} | grid,
    )
    return [
        Chart(
            caption=source.caption(rubric, f"{label} of every two raters"),
            alt=f"Heat map of {label}, {READINGS[ALL]}, for every two raters: {', '.join(raters)}. "
            "Each cell holds its number.",
            spec=spec,
            data=data,
            note=f"A cell with {DASH}: undefined." if undefined else "",
        )
    ]


def confusions(source: Source, rubric: str) -> list[Chart]:
    """What graders say where people say something else: one matrix for each grader."""
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
    grid = _shaded(categories, steps, x="Grader", y="People")
    spec = chart_spec(
        values,
        {
            "facet": one_for_each("grader", values),
            "spec": {"width": max(190, 42 * len(categories)), "height": {"step": 28}} | grid,
        },
    )
    return [
        Chart(
            caption=source.caption(rubric, "labels of people and of each grader"),
            alt="Confusion matrices, one for each grader: rows are people's labels, columns the "
            f"grader's; each cell counts label pairs. Graders: {', '.join(map(short, drawn))}.",
            spec=spec,
            data=tuple(_matrix(source, rubric, grader, categories) for grader in drawn),
            note="Each cell counts pairs of labels on a unit, a person's and the grader's; on the "
            "diagonal they agree." + left_out(graders, {grader for grader, *_ in found}),
        )
    ]


def _cell(source: Source, rubric: str, grader: str, said: str, graded: str) -> Figure | None:
    return source.figures.get(rubric, "confusion", "humans", grader, ALL, from_to(said, graded))


def _matrix(source: Source, rubric: str, grader: str, categories: list[str]) -> Table:
    draft = TableDraft(
        source.caption(rubric, f"labels of people (rows) and of {grader} (columns)"),
        "People",
        categories,
        count="",
    )
    for said in categories:
        draft.add(said, [_cell(source, rubric, grader, said, graded) for graded in categories])
    return draft.finish()[0]


def _shaded(order: list[str], steps: list[float], *, x: str, y: str, slanted: bool = False) -> Spec:
    """Cells shaded by the step that their estimate reaches, the number in a colour that stands out
    on the shade."""
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
