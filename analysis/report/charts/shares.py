"""Label distribution: how much of what a rater said falls into each category."""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import (
    HEAT,
    MAX_LISTED,
    ROLES,
    Spec,
    chart_spec,
    field,
    layer,
    left_out,
    short,
    span,
)
from evenhand.analysis.report.figures import ALL
from evenhand.analysis.report.source import Source, rater_title
from evenhand.texts import written

_MOST = 2 * MAX_LISTED
_LEGIBLE = 0.05
"""A share below this has no room for its category's name."""


def label_distribution(source: Source, rubric: str, data: tuple[Table, ...] = ()) -> list[Chart]:
    """Stacked shares of the categories, a bar for each rater; nothing where there are more
    categories than can be told apart."""
    figures = source.figures.select(rubric, "prevalence")
    categories = list(dict.fromkeys(figure.at for figure in figures))
    raters = _in_order(source, rubric, dict.fromkeys(figure.raters[0] for figure in figures))
    drawn = raters[:_MOST]
    if not 2 <= len(categories) <= len(HEAT):
        return []
    start = dict.fromkeys(raters, 0.0)
    values = []
    for figure in sorted(figures, key=lambda each: raters.index(each.raters[0])):
        rater, share = figure.raters[0], figure.bounds[1]
        if rater in drawn and share == share:
            # Where a bar's part begins is its place in the drawing, not a number that is shown.
            end = start[rater] + share
            place = {"from": start[rater], "to": end, "middle": (start[rater] + end) / 2}
            text = figure.at if share >= _LEGIBLE else ""
            who = short(rater_title(rater))
            values.append(figure.datum(who=who, category=figure.at, text=text, **place))
            start[rater] = end
    shown = {rater for rater in raters if start[rater]}
    shades = HEAT if len(categories) > 3 else HEAT[1::2]
    shades = shades[: len(categories)]
    bright = [
        category for category, shade in zip(categories, shades, strict=True) if shade in HEAT[4:]
    ]
    x: Spec = {
        "type": "quantitative",
        "title": written("chart.shares_axis"),
        "scale": {"domain": [0, 1]},
    }
    y = {"field": "who", "type": "nominal", "sort": None, "title": written("chart.rater")}
    part = span("x", {"axis": {"format": ".0%"}} | x, "from", "to")
    shade: Spec = {
        "field": "category",
        "type": "nominal",
        "sort": None,
        "title": written("chart.shares_category"),
        "scale": {"domain": categories, "range": shades},
        "legend": {"symbolType": "square", "columns": len(categories)},
    }
    on_bright = {"field": "category", "oneOf": bright}
    ink = {
        "condition": {"test": on_bright, "value": ROLES["heat-high-ink"]},
        "value": ROLES["heat-low-ink"],
    }
    name = {"x": field("middle", x), "text": field("text", {"type": "nominal"}), "color": ink}
    spec = chart_spec(
        values,
        {
            "width": 420,
            "height": {"step": 24},
            "encoding": {"y": y},
            "layer": [
                layer("bar", part | {"color": shade}, stroke=ROLES["page"], height={"band": 0.85}),
                layer("text", name),
            ],
        },
    )
    return [
        Chart(
            caption=source.caption(rubric, written("chart.shares")),
            alt=written(
                "chart.shares_alt",
                raters=", ".join(dict.fromkeys(str(datum["who"]) for datum in values)),
                categories=", ".join(categories),
            ),
            spec=spec,
            data=data,
            note=left_out(raters, shown, "raters", _MOST),
        )
    ]


def _in_order(source: Source, rubric: str, raters: Iterable[str]) -> list[str]:
    """Groups and people as they come, then graders by their agreement with people."""
    given, graders = list(raters), source.graders(rubric, ALL)
    first = [name for name in given if name not in graders]
    return first + [name for name in graders if name in given]
