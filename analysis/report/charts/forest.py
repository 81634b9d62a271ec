"""Forest plot: every grader's agreement with people, and that of people with each other."""

from __future__ import annotations

from collections.abc import Collection

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
from evenhand.analysis.report.figures import ALL, ALL_BINARY
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
    """Kappa with people of each grader, ensemble and baseline, the largest first, on the categories
    and on the binary verdict (or one of these `readings`), with the band of people's kappa with
    each other; empty where no grader shares units with people. Where both readings are the same,
    as on a yes/no rubric, they are drawn once, on the categories.
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
    points, band = f"datum.kind != '{_PEOPLE}'", f"datum.kind == '{_PEOPLE}'"
    # Names are above the lines, not to their left, so that the figure fits a phone.
    plain = {"labels": False, "ticks": False, "domain": False}
    who = {
        "field": "who",
        "type": "nominal",
        "sort": None,
        "title": written("chart.grader"),
        "axis": plain,
    }
    rows = {"y": who}
    bounds = (datum[name] for datum in values for name in ("low", "estimate", "high"))
    x = through_zero(bounds, written("chart.forest_axis"))
    estimate = {"x": field("estimate", x)}
    fill = {"test": "datum.kind == 'baseline'", "value": PAGE}
    filled = {
        "color": {"condition": fill, "value": SERIES[0]},
        "stroke": {"value": SERIES[0]},
    }
    name = {"x": {"value": 0}, "text": field("who", {"type": "nominal"})}
    label = {"x": {"value": _WIDE}, "text": field("label", {"type": "nominal"})}
    layers = [
        layer("rect", span("x", x), where=band, color=ROLES["band"]),
        layer("rule", estimate, where=band, color=SOFT, strokeDash=[4, 3]),
        layer("rule", rows | span("x", x), where=points, strokeWidth=2, color=SERIES[0]),
        layer("point", rows | estimate | filled, where=points, filled=True, size=70, opacity=1),
        *_over_the_line(rows | name, points, "left"),
        *_over_the_line(rows | label, points, "right"),
    ]
    return chart_spec(
        values,
        {
            "vconcat": [
                {
                    "title": reading,
                    "transform": [{"filter": {"field": "reading", "equal": reading}}],
                    "width": _WIDE,
                    "height": {"step": 36},
                    "layer": layers,
                }
                for reading in readings
            ],
            "resolve": {"scale": {"x": "shared"}},
        },
    )


def _over_the_line(encoding: Spec, where: str, side: str) -> list[Spec]:
    """Letters above a row, clear of the line that they cross."""
    looks: list[Spec] = [{"color": PAGE, "stroke": PAGE, "strokeWidth": 4}, {"color": INK}]
    return [layer("text", encoding, where=where, align=side, dy=_ABOVE, **look) for look in looks]


def _reading(source: Source, rubric: str, subset: str) -> list[Datum]:
    kappa = source.kappa(rubric, subset)
    reading = f"{entry_for(kappa).label} {READINGS[subset]}"
    who = [(_PEOPLE, "")]
    kinds = dict.fromkeys(source.graders(rubric, subset)[:MAX_LISTED], "grader")
    kinds |= dict.fromkeys(source.ensembles(rubric, subset), "ensemble")
    who += [(kinds[name], name) for name in source.by_agreement(rubric, kinds, subset)]
    who += [("baseline", name) for name in BASELINES]
    found = [
        (kind, name, source.figures.get(rubric, kappa, "humans", name, subset))
        for kind, name in who
    ]
    return [
        figure.datum(
            kind=kind,
            rater=name,
            who=short(rater_title(name)) if name else None,
            reading=reading,
            label=f"{figure.estimate} {figure.interval}".strip(),
        )
        for kind, name, figure in found
        if figure is not None and not (kind == _PEOPLE and figure.reason)
    ]
