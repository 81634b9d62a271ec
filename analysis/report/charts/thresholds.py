"""Threshold curve: what each threshold reaches, which one is best and how surely, which to use."""

from __future__ import annotations

from collections.abc import Sequence

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
    layer,
    left_out,
    panel_for_each_grader,
    short,
    span,
    through_zero,
)
from evenhand.analysis.report.figures import ALL_BINARY, Figure, shown
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.source import Source, reference_title
from evenhand.analysis.report.table_draft import TableDraft

_ADVICE = {
    "tuned": "use {estimate} {interval}",
    "default": "keep {estimate}",
    "not_identifiable": "keep {estimate}: the best is not identifiable",
}
"""What stands over a panel, by the kind of recommendation."""
_BEST, _DEFAULT = "best", "default"
_BOUNDS = ("low", "estimate", "high")
_STEPS = "step-before"
"""A threshold gives the verdicts of the next probability above it, so the curve has steps."""


def threshold_curves(source: Source, rubric: str, objective: str) -> list[Chart]:
    """The course of an objective over the thresholds, a panel for each grader; nothing where no
    grader's probabilities meet a reference."""
    statistic = f"threshold_curve_{objective}"
    figures = source.figures.select(rubric, statistic, ALL_BINARY)
    graders = source.in_order(rubric, figures)
    drawn = graders[:MAX_LISTED]
    if not drawn:
        return []
    label = f"{entry_for(statistic).label} with {reference_title(drawn[0][0])}"
    draft = TableDraft(
        source.caption(rubric, f"{label} at each threshold"),
        "Threshold",
        [entry_for(name).label for name in (statistic, "threshold", "threshold_recommended")],
        count="",
    )
    values: list[Datum] = []
    advice: dict[str, str] = {}
    for raters in drawn:
        curve = [figure for figure in figures if figure.raters == raters]
        best, advised = (
            source.figures.get(rubric, name, *raters, ALL_BINARY, objective)
            for name in ("threshold", "threshold_recommended")
        )
        if best is None or advised is None:
            continue
        default = source.default_threshold(rubric, raters)
        text = _ADVICE[advised.remarks[0].code].format_map(vars(advised))
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
    return [
        Chart(
            caption=source.caption(rubric, f"{label}, by threshold"),
            alt=f"Curves, one for each grader: {label} across all thresholds, with its interval. "
            f"{said} "
            f"{'; '.join(f'{grader}: {text}' for grader, text in advice.items())}.",
            spec=chart_spec(values, _panels(values, label)),
            data=tuple(draft.finish()),
            note=said + left_out([name for _, name in graders], advice),
        )
    ]


def _point(figure: Figure, default: str, best: Figure, advised: Figure) -> Datum:
    """A point of the curve, and whether it is marked."""
    at = float(figure.at)
    mark = _DEFAULT if figure.at == default else _BEST if at == best.bounds[1] else ""
    return figure.datum(kind="curve", at=at, mark=mark, used=at == advised.bounds[1])


def _marks(values: Sequence[Datum]) -> str:
    """What the marks that are drawn mean."""
    drawn = {datum.get("mark") for datum in values}
    strip = any(datum["kind"] == "interval" and datum["low"] is not None for datum in values)
    best = "Diamond and upright strip: the best threshold on these units, and its interval."
    said = ["Circle and dashed line: the default."] if _DEFAULT in drawn else []
    if _BEST in drawn:
        said.append(best if strip else "Diamond: the best threshold on these units.")
    if any(datum.get("used") and datum.get("mark") for datum in values):
        said.append("Filled: the one to use.")
    return " ".join(said)


def _panels(values: Sequence[Datum], label: str) -> Spec:
    x = {"title": "Threshold"} | FROM_0_TO_1
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
