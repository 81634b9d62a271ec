"""Forest plot: every grader's agreement with people, and that of people with each other."""

from __future__ import annotations

import math
from collections.abc import Collection

from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import (
    INK,
    MAX_LISTED,
    PAGE,
    ROLES,
    SERIES,
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
from evenhand.analysis.report.figures import ALL, ALL_BINARY, Figure
from evenhand.analysis.report.source import READINGS, Source, rater_title
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for
from evenhand.texts import written

_PEOPLE = "people"
_SAID = ("kind", "rater", "low", "estimate", "high")
_WIDE = 320
"""Pixels of an axis: a phone holds one of these figures, a desk three side by side."""
_ABOVE = -12


def forest(
    source: Source,
    rubric: str,
    data: tuple[Table, ...] = (),
    readings: Collection[str] = tuple(READINGS),
) -> list[Chart]:
    """Kappa with annotators of each grader and baseline, the largest first, on the categories and
    on the binary verdict (or one of these `readings`), with annotators' kappa with one another;
    empty where no grader shares items with annotators.

    Each row is drawn against the ceiling on its own items: the band of all items, or a line where
    it has a label for some of them only. Where both readings are the same, as on a yes/no rubric,
    they are drawn once, on the categories.
    """
    found = {subset: _reading(source, rubric, subset) for subset in READINGS}
    if _drawn(found[ALL]) == _drawn(found[ALL_BINARY]):
        found[ALL_BINARY] = []
    values = [datum for subset in readings for datum in found[subset]]
    if not any(datum["kind"] != _PEOPLE for datum in values):
        return []
    people = [
        f"{datum['reading']} {datum['label']}" for datum in values if datum["kind"] == _PEOPLE
    ]
    caption, alt = written("chart.forest"), written("chart.forest_alt")
    if people:
        caption = written("chart.forest_ceiling")
        alt = written("chart.forest_alt_ceiling", figures="; ".join(people))
    fewer = any(datum["ceiling"] is not None and datum["ceiling_low"] is None for datum in values)
    hollow = any(datum["kind"] == "baseline" for datum in values)
    graders = list(dict.fromkeys(g for each in readings for g in source.graders(rubric, each)))
    drawn = {str(datum["rater"]) for datum in values}
    return [
        Chart(
            caption=source.caption(rubric, caption),
            alt=alt,
            spec=_spec(values),
            data=data,
            note=joined(
                written("chart.forest_band") if people else "",
                written("chart.forest_fewer") if fewer else "",
                written("chart.forest_baselines") if hollow else "",
                left_out(graders, drawn),
            ),
        )
    ]


def _drawn(values: list[Datum]) -> list[tuple[object, ...]]:
    """What a reading says, whatever it is called."""
    return [tuple(datum[key] for key in _SAID) for datum in values]


def _spec(values: list[Datum]) -> Spec:
    readings = list(dict.fromkeys(datum["reading"] for datum in values))
    drawn = ("low", "estimate", "high", "ceiling", "ceiling_low", "ceiling_high")
    bounds = (datum[name] for datum in values for name in drawn)
    x = through_zero(bounds, written("chart.forest_axis"))
    panels = [
        {
            "title": reading,
            "transform": [{"filter": {"field": "reading", "equal": reading}}],
            "width": _WIDE,
            "height": {"step": 36},
            "layer": _layers([datum for datum in values if datum["reading"] == reading], x),
        }
        for reading in readings
    ]
    return chart_spec(values, {"vconcat": panels, "resolve": {"scale": {"x": "shared"}}})


def _layers(values: list[Datum], x: Spec) -> list[Spec]:
    """Marks of one reading, the rows in the order of `values`."""
    points = f"datum.kind != '{_PEOPLE}'"
    ceiling, band = "isValid(datum.ceiling)", "isValid(datum.ceiling_low)"
    # Names are above the lines, not to their left, so that the figure fits a phone.
    plain = {"labels": False, "ticks": False, "domain": False}
    names = [datum["who"] for datum in values if datum["kind"] != _PEOPLE]
    who = {
        "field": "who",
        "type": "nominal",
        "sort": None,
        "title": written("chart.grader"),
        "axis": plain,
        "scale": {"type": "band", "padding": 0, "domain": names},
    }
    rows = {"y": who}
    from_top_to_bottom = {
        "y": who | {"bandPosition": 0},
        "y2": {"field": "who", "bandPosition": 1},
    }
    estimate = {"x": field("estimate", x)}
    fill = {"test": "datum.kind == 'baseline'", "value": PAGE}
    filled = {
        "color": {"condition": fill, "value": SERIES[0]},
        "stroke": {"value": SERIES[0]},
    }
    name = {"x": {"value": 0}, "text": field("who", {"type": "nominal"})}
    label = {"x": {"value": _WIDE}, "text": field("label", {"type": "nominal"})}
    shaded = rows | span("x", x, "ceiling_low", "ceiling_high")
    dashed = from_top_to_bottom | {"x": field("ceiling", x)}
    return [
        layer("rect", shaded, where=band, color=ROLES["band"]),
        layer("rule", dashed, where=ceiling, color=SOFT, strokeDash=[4, 3]),
        layer("rule", rows | span("x", x), where=points, strokeWidth=2, color=SERIES[0]),
        layer("point", rows | estimate | filled, where=points, filled=True, size=70, opacity=1),
        *_over_the_line(rows | name, points, "left"),
        *_over_the_line(rows | label, points, "right"),
    ]


def _over_the_line(encoding: Spec, where: str, side: str) -> list[Spec]:
    """Letters above a row, clear of the line that they cross."""
    looks: list[Spec] = [{"color": PAGE, "stroke": PAGE, "strokeWidth": 4}, {"color": INK}]
    return [layer("text", encoding, where=where, align=side, dy=_ABOVE, **look) for look in looks]


def _reading(source: Source, rubric: str, subset: str) -> list[Datum]:
    kappa = source.kappa(rubric, subset)
    reading = f"{entry_for(kappa).label} {READINGS[subset]}"
    graders = source.graders(rubric, subset)[:MAX_LISTED]
    people = source.figures.get(rubric, kappa, "humans", "", subset)
    people = None if people is None or people.reason else people
    kinds = dict.fromkeys(graders, "grader") | dict.fromkeys(BASELINES, "baseline")
    found = [
        (kind, source.figures.get(rubric, kappa, "humans", name, subset), name)
        for name, kind in kinds.items()
    ]
    return [
        figure.datum(
            kind=kind,
            rater=name,
            who=short(rater_title(name)) if name else None,
            reading=reading,
            label=f"{figure.estimate} {figure.interval}".strip(),
            **_ceiling(source, rubric, figure, people),
        )
        for kind, figure, name in [(_PEOPLE, people, ""), *found]
        if figure is not None
    ]


def _ceiling(
    source: Source, rubric: str, figure: Figure, people: Figure | None
) -> dict[str, float | None]:
    """Return annotators' kappa with one another on the items of a figure, with its interval where
    these are all items: intervals of others are not computed.
    """
    low = own = high = None
    apart = source.figures.get(rubric, CEILING, *figure.raters, figure.subset)
    if people is not None and figure is not people:
        same = figure.n_units >= people.n_units
        if apart is not None and not apart.reason:
            own = figure.bounds[1] - apart.bounds[1]
            same = math.isclose(own, people.bounds[1], abs_tol=1e-9)
        if same:
            low, own, high = (None if math.isnan(each) else each for each in people.bounds)
    return {"ceiling": own, "ceiling_low": low, "ceiling_high": high}
