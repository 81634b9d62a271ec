"""Threshold curve: the objective at each threshold, the best and its interval, the one to use."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.analysis.notes import Code
from evenhand.analysis.report.blocks import Chart
from evenhand.analysis.report.charts.style import (
    FROM_0_TO_1,
    INK,
    MAX_LISTED,
    PAGE,
    SERIES,
    SOFT,
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
    through_zero,
)
from evenhand.analysis.report.figures import ALL_BINARY, Figure, shown
from evenhand.analysis.report.source import Source, reference_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.thresholds.rows import CURVE
from evenhand.texts import written

_KINDS: tuple[Code, ...] = ("tuned", "default", "not_identifiable")
"""Kinds of recommendations, each with its words over a panel."""
_BEST, _DEFAULT = "best", "default"
_BOUNDS = ("low", "estimate", "high")
_STEPS = "step-before"
"""A threshold gives the verdicts of the next probability above it, so the curve has steps."""


def threshold_curves(source: Source, rubric: str) -> list[Chart]:
    """The course of kappa over the thresholds, a panel for each grader; empty where no
    grader's probabilities meet a reference.
    """
    statistic = CURVE
    figures = source.figures.select(rubric, statistic, ALL_BINARY)
    graders = source.in_order(rubric, figures)
    drawn = graders[:MAX_LISTED]
    if not drawn:
        return []
    names = {"statistic": entry_for(statistic).label, "reference": reference_title(drawn[0][0])}
    label = written("chart.threshold_label", **names)
    draft = TableDraft(
        source.caption(rubric, written("chart.threshold_table", **names)),
        "Threshold",
        [entry_for(name).label for name in (statistic, "threshold", "threshold_recommended")],
        count="",
    )
    values: list[Datum] = []
    advice: dict[str, str] = {}
    for raters in drawn:
        curve = [figure for figure in figures if figure.raters == raters]
        best, advised = (
            source.figures.get(rubric, name, *raters, ALL_BINARY, "kappa")
            for name in ("threshold", "threshold_recommended")
        )
        if best is None or advised is None:
            continue
        default = source.default_threshold(rubric, raters)
        text = _advice(advised)
        panel = {"grader": short(raters[1])}
        values += [_point(figure, default, best, advised) | panel for figure in curve]
        values += [best.datum(kind="interval", **panel)]
        values += [advised.datum(kind="advice", text=text, **panel)]
        advice[raters[1]] = text
        draft.group(raters[1])
        for figure in curve:
            marks = [
                each if float(figure.at) == each.bounds[1] else None for each in (best, advised)
            ]
            draft.add(shown(float(figure.at), "threshold"), [figure, *marks])
    if not values:
        return []
    said = _marks(values)
    every = "; ".join(
        written("chart.threshold_advice", grader=grader, advice=text)
        for grader, text in advice.items()
    )
    return [
        Chart(
            caption=source.caption(rubric, written("chart.threshold", **names)),
            alt=written("chart.threshold_alt", label=label, marks=said, advice=every),
            spec=chart_spec(values, _panels(values, label)),
            data=tuple(draft.finish()),
            note=joined(said, left_out([name for _, name in graders], advice)),
        )
    ]


def _advice(advised: Figure) -> str:
    kind = next(each for each in _KINDS if advised.says(each))
    return written(f"chart.advice_{kind}", estimate=advised.estimate, interval=advised.interval)


def _point(figure: Figure, default: str, best: Figure, advised: Figure) -> Datum:
    """A point of the curve, and whether it is marked."""
    at = float(figure.at)
    mark = _DEFAULT if figure.at == default else _BEST if at == best.bounds[1] else ""
    return figure.datum(kind="curve", at=at, mark=mark, used=at == advised.bounds[1])


def _marks(values: Sequence[Datum]) -> str:
    """Explain the marks that are drawn."""
    drawn = {datum.get("mark") for datum in values}
    strip = any(datum["kind"] == "interval" and datum["low"] is not None for datum in values)
    said = [written("chart.threshold_default")] if _DEFAULT in drawn else []
    if _BEST in drawn:
        said.append(written("chart.threshold_best_interval" if strip else "chart.threshold_best"))
    if any(datum.get("used") and datum.get("mark") for datum in values):
        said.append(written("chart.threshold_used"))
    return joined(*said)


def _panels(values: Sequence[Datum], label: str) -> Spec:
    x = {"title": written("chart.threshold_axis")} | FROM_0_TO_1
    curves = [datum for datum in values if datum["kind"] == "curve"]
    y = through_zero((datum[name] for datum in curves for name in _BOUNDS), label)
    at = {"x": field("at", x)}
    estimate = at | {"y": field("estimate", y)}
    curve, best = "datum.kind == 'curve'", f"datum.mark == '{_BEST}'"
    blue = {"color": SERIES[0], "interpolate": _STEPS}
    orange = {"test": best, "value": SERIES[1]}
    marked = {
        "shape": {"condition": {"test": best, "value": "diamond"}, "value": "circle"},
        "stroke": {"condition": orange, "value": INK},
        "color": {"condition": [{"test": "!datum.used", "value": PAGE}, orange], "value": INK},
    }
    text = {"x": {"value": 0}, "y": {"value": -8}, "text": field("text", {"type": "nominal"})}
    return panel_for_each_grader(
        values,
        [
            layer(
                "rect", span("x", x), where="datum.kind == 'interval' && isValid(datum.low)",
                color=SERIES[1], opacity=0.25,
            ),
            layer(
                "area", at | span("y", y), where=f"{curve} && isValid(datum.low)",
                opacity=0.25, **blue,
            ),
            layer("rule", at, where=f"datum.mark == '{_DEFAULT}'", color=SOFT, strokeDash=[4, 3]),
            layer("line", estimate, where=curve, **blue),
            layer(
                "point", estimate | marked, where=f"{curve} && datum.mark != ''",
                filled=True, size=75, opacity=1,
            ),
            layer("text", text, where="datum.kind == 'advice'", align="left", color=INK),
        ],
        height=150,
    )  # fmt: skip
