"""Rater timing and drift: speed and agreement over a rater's session."""

from __future__ import annotations

from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import (
    MAX_LISTED,
    SERIES,
    Datum,
    chart_spec,
    field,
    joined,
    layer,
    left_out,
    one_for_each,
    short,
    span,
)
from evenhand.analysis.report.source import Source
from evenhand.analysis.statistics import entry_for
from evenhand.texts import written

SESSION_STATISTICS = ("rater_seconds_part", "rater_agreement_part")


def session_drift(source: Source, rubric: str, data: tuple[Table, ...] = ()) -> list[Chart]:
    """Median time and agreement with other people by part of the session, a panel for each person;
    empty where the order of the labels is not known.
    """
    figures = {name: source.figures.select(rubric, name) for name in SESSION_STATISTICS}
    raters = list(dict.fromkeys(f.raters[0] for each in figures.values() for f in each))
    drawn = raters[:MAX_LISTED]
    if not drawn:
        return []
    values = [
        figure.datum(rater=short(figure.raters[0]), part=int(figure.at), statistic=name)
        for name, each in figures.items()
        for figure in each
        if figure.raters[0] in drawn
    ]
    panels = [_panel(name, values) for name in SESSION_STATISTICS if figures[name]]
    spec = chart_spec(values, {"vconcat": panels})
    return [
        Chart(
            caption=source.caption(rubric, written("chart.sessions")),
            alt=written("chart.sessions_alt", annotators=", ".join(map(short, drawn))),
            spec=spec,
            data=data,
            note=joined(written("chart.sessions_note"), left_out(raters, drawn, "annotators")),
        )
    ]


def _panel(statistic: str, values: list[Datum]) -> dict[str, object]:
    x = {
        "field": "part", "type": "ordinal", "title": written("chart.sessions_axis"),
        "axis": {"labelAngle": 0},
    }  # fmt: skip
    y = {
        "type": "quantitative", "title": entry_for(statistic).label,
        "scale": {"zero": statistic == SESSION_STATISTICS[0]},
    }  # fmt: skip
    return {
        "transform": [{"filter": f"datum.statistic == '{statistic}'"}],
        "facet": one_for_each("rater", values),
        "columns": 4,
        "spec": {
            "width": 150,
            "height": 90,
            "encoding": {"x": x},
            "layer": [
                layer("rule", span("y", y), color=SERIES[0], opacity=0.6),
                layer(
                    "line",
                    {"y": field("estimate", y)},
                    color=SERIES[0],
                    point={"color": SERIES[0]},
                ),
            ],
        },
    }
