"""Slice plot: where a grader agrees with people more, or less, than in the rest of the sample."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import (
    SERIES,
    SHAPES,
    SOFT,
    Datum,
    Spec,
    chart_spec,
    field,
    joined,
    layer,
    left_out,
    short,
    span,
    through_zero,
)
from evenhand.analysis.report.source import Source
from evenhand.texts import written

_MOST_VALUES = 24


def slice_plot(
    source: Source, rubric: str, column: str, data: tuple[Table, ...] = ()
) -> list[Chart]:
    """`slice_difference` with its interval, for every value of a column and every grader."""
    prefix = f"{column}="
    figures = source.figures.slices(rubric, "slice_difference").get(column, [])
    graders = source.by_agreement(rubric, dict.fromkeys(figure.raters[1] for figure in figures))
    parts = list(dict.fromkeys(figure.subset.removeprefix(prefix) for figure in figures))
    defined = [
        figure
        for figure in figures
        if figure.raters[1] in graders[: len(SHAPES)]
        and figure.subset.removeprefix(prefix) in parts[:_MOST_VALUES]
        and not figure.reason
    ]
    if not defined:
        return []
    values: list[Datum] = [
        figure.datum(
            value=short(figure.subset.removeprefix(prefix)), grader=short(figure.raters[1])
        )
        for figure in defined
    ]
    drawn = [name for name in graders if any(name == each.raters[1] for each in defined)]
    names = [short(name) for name in drawn]
    with_figure = {figure.subset.removeprefix(prefix) for figure in defined}
    return [
        Chart(
            caption=source.caption(rubric, written("chart.parts", column=column)),
            alt=written("chart.parts_alt", column=column, graders=", ".join(names)),
            spec=chart_spec(values, _drawing(values, column, names)),
            data=data,
            note=joined(
                written("chart.parts_note"),
                left_out(graders, drawn, most=len(SHAPES)),
                left_out(parts, with_figure, "values", _MOST_VALUES),
            ),
        )
    ]


def _drawing(values: Sequence[Datum], column: str, graders: Sequence[str]) -> Spec:
    """Estimates and intervals by value, graders one below the other within each."""
    bounds = (datum[name] for datum in values for name in ("low", "estimate", "high"))
    x = through_zero(bounds, written("chart.parts_axis"))
    by_grader = {"field": "grader", "type": "nominal", "title": written("chart.grader")}
    place = {
        "y": {
            "field": "value",
            "type": "nominal",
            "sort": None,
            "title": column,
            "scale": {"paddingInner": 0.35},
        },
        "yOffset": {"field": "grader", "type": "nominal", "sort": graders},
        "color": by_grader | {"scale": {"domain": graders, "range": SERIES}},
    }
    zero = {"data": {"values": [{"zero": 0}]}}
    shape = {"shape": by_grader | {"scale": {"domain": graders, "range": SHAPES}}}
    estimate = {"x": field("estimate", x)}
    return {
        "width": 420,
        "height": {"step": 12, "for": "offset"},
        "layer": [
            zero | layer("rule", {"x": field("zero", x)}, color=SOFT),
            layer("rule", place | span("x", x), strokeWidth=1.5),
            layer("point", place | estimate | shape, filled=True, size=45, opacity=1),
        ],
    }
