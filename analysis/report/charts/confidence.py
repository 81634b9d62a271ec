"""Confidence filter: the share of a grader's labels that a cut keeps, and their agreement."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import (
    FROM_0_TO_1,
    INK,
    MAX_LISTED,
    PAGE,
    SERIES,
    Datum,
    Spec,
    chart_spec,
    field,
    joined,
    layer,
    left_out,
    panel_for_each_grader,
    short,
    span,
)
from evenhand.analysis.report.source import Source
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.thresholds.confidence import AGREEMENT, CHOSEN, COVERAGE
from evenhand.texts import written


def coverage_curves(source: Source, rubric: str, data: tuple[Table, ...] = ()) -> list[Chart]:
    """Coverage against agreement as the cut rises, a panel for each grader; empty where no grader
    states a confidence.
    """
    coverage = source.figures.everywhere(rubric, COVERAGE)
    graders = source.in_order(rubric, coverage)
    chosen = {
        figure.raters: figure.bounds[1] for figure in source.figures.everywhere(rubric, CHOSEN)
    }
    curves: dict[str, list[Datum]] = {}
    for raters in graders[:MAX_LISTED]:
        for kept in coverage:
            agreed = source.figures.get(rubric, AGREEMENT, *kept.raters, kept.subset, kept.at)
            if kept.raters == raters and agreed is not None:
                curves.setdefault(raters[1], []).append(
                    agreed.datum(
                        grader=short(raters[1]),
                        at=float(kept.at),
                        kept=kept.bounds[1],
                        kept_row=kept.line,
                        declared=kept.says("declared_cut"),
                        chosen=float(kept.at) == chosen.get(kept.raters),
                    )
                )
    values = [datum for curve in curves.values() for datum in curve]
    if not values:
        return []
    marked = [
        written(f"chart.confidence_{mark}")
        for mark in ("declared", "chosen")
        if any(each[mark] and each["estimate"] is not None for each in values)
    ]
    drawn = ", ".join(map(short, curves))
    return [
        Chart(
            caption=source.caption(rubric, written("chart.confidence")),
            alt=joined(written("chart.confidence_alt", graders=drawn), *marked),
            spec=chart_spec(values, _panels(values)),
            data=data,
            note=joined(
                written("chart.confidence_note"),
                *marked,
                left_out([name for _, name in graders], curves),
            ),
        )
    ]


def _panels(values: Sequence[Datum]) -> Spec:
    x = field("kept", {"title": entry_for(COVERAGE).label} | FROM_0_TO_1)
    y = {"type": "quantitative", "title": entry_for(AGREEMENT).label, "scale": {"zero": False}}
    estimate = {"x": x, "y": field("estimate", y)}
    band = {"x": x} | span("y", y)
    cut = {"filled": True, "opacity": 1}
    return panel_for_each_grader(
        values,
        [
            layer("area", band, where="isValid(datum.low)", color=SERIES[0], opacity=0.25),
            layer("line", estimate, color=SERIES[0], point={"color": SERIES[0]}),
            layer(
                "point", estimate, where="datum.declared",
                shape="circle", size=90, color=PAGE, stroke=INK, **cut,
            ),
            layer(
                "point", estimate, where="datum.chosen",
                shape="diamond", size=75, color=SERIES[1], **cut,
            ),
        ],
        height=150,
    )  # fmt: skip
