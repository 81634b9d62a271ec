"""Label distribution: the share of each category among a rater's labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

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
    short,
    span,
)
from evenhand.analysis.report.figures import ALL, Figure
from evenhand.analysis.report.source import Source, rater_title
from evenhand.texts import written

_MOST = 2 * MAX_LISTED
_LEGIBLE = 0.05
"""A share below this has no room for its category's name."""


def label_distribution(source: Source, rubric: str, data: tuple[Table, ...] = ()) -> list[Chart]:
    """Stacked shares of the categories, a bar for each rater; empty where there are more categories
    than can be told apart.
    """
    figures = source.figures.select(rubric, "prevalence")
    categories = list(dict.fromkeys(figure.at for figure in figures))
    raters = _in_order(source, rubric, dict.fromkeys(figure.raters[0] for figure in figures))
    drawn = raters[:_MOST]
    if not 2 <= len(categories) <= len(HEAT):
        return []
    bars = {rater: _bar(figures, rater) for rater in drawn}
    values = [part for rater in drawn for part in bars[rater]]
    return [
        Chart(
            caption=source.caption(rubric, written("chart.shares")),
            alt=written(
                "chart.shares_alt",
                raters=", ".join(dict.fromkeys(str(part["who"]) for part in values)),
                categories=", ".join(categories),
            ),
            spec=chart_spec(values, _drawing(categories)),
            data=data,
            note=left_out(raters, [rater for rater in drawn if bars[rater]], "raters", _MOST),
        )
    ]


def _bar(figures: Iterable[Figure], rater: str) -> list[Datum]:
    """The parts of one rater's bar. The start of a part is only its place in the drawing."""
    parts: list[Datum] = []
    start = 0.0
    for figure in figures:
        share = figure.bounds[1]
        if figure.raters[0] == rater and not math.isnan(share):
            end = start + share
            place = {"from": start, "to": end, "middle": (start + end) / 2}
            text = figure.at if share >= _LEGIBLE else ""
            who = short(rater_title(rater))
            parts.append(figure.datum(who=who, category=figure.at, text=text, **place))
            start = end
    return parts


def _drawing(categories: Sequence[str]) -> Spec:
    """The bars, each part in the shade of its category, with its name where there is room."""
    shades = (HEAT if len(categories) > 3 else HEAT[1::2])[: len(categories)]
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
    ink = {
        "condition": {
            "test": {"field": "category", "oneOf": bright},
            "value": ROLES["heat-high-ink"],
        },
        "value": ROLES["heat-low-ink"],
    }
    name = {"x": field("middle", x), "text": field("text", {"type": "nominal"}), "color": ink}
    return {
        "width": 420,
        "height": {"step": 24},
        "encoding": {"y": y},
        "layer": [
            layer("bar", part | {"color": shade}, stroke=ROLES["page"], height={"band": 0.85}),
            layer("text", name),
        ],
    }


def _in_order(source: Source, rubric: str, raters: Iterable[str]) -> list[str]:
    """Groups and people as they come, then graders by their agreement with people."""
    given, graders = list(raters), source.graders(rubric, ALL)
    first = [name for name in given if name not in graders]
    return first + [name for name in graders if name in given]
