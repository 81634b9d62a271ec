"""Thresholds of graders that give probabilities: the effect of tuning, and the threshold to use.

And the calibration of the probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from evenhand.analysis.notes import Code
from evenhand.analysis.report import charts
from evenhand.analysis.report.blocks import Chart, Table, items, traced
from evenhand.analysis.report.figures import ALL_BINARY, Figure, Key, lines_of, shown
from evenhand.analysis.report.source import (
    Column,
    Layers,
    ReportContext,
    RubricFigures,
    Source,
    listed,
    reference_title,
    rows_of,
    sentences,
)
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.thresholds.rows import AT_THRESHOLD, CURVE, IN_FORCE
from evenhand.analysis.thresholds.sweep import OBJECTIVES
from evenhand.texts import in_pieces, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

MAIN = "kappa"
"""The objective that the section's sentences are about."""
_OTHERS = [each for each in OBJECTIVES if each != MAIN]
_TITLES = {
    name: written(f"thresholds.objective_{name}")
    for name in ("kappa", "agreement", "f1", "youden", "prevalence")
}
_QUALITY = ["brier", "ece", "brier_recalibrated"]
_COLUMNS = [
    written(f"thresholds.{name}") for name in ("at_default", "tuned", "at_tuned", "held_out_gain")
]
_KINDS: tuple[Code, ...] = ("tuned", "default", "not_identifiable")
"""Kinds of recommendations, each with its words over a panel."""
_CHOSEN = ("threshold", "threshold_recommended")
_BEST, _DEFAULT = "best", "default"
_STEPS = "step-before"
"""A threshold gives the verdicts of the next probability above it, so the curve has steps."""
_STATED, _SHARE = "reliability_probability", "reliability"


def layers(figures: RubricFigures) -> Layers:
    """Tuned thresholds of a rubric that has graders with probabilities."""
    found = _advised(figures, MAIN)
    lines = (
        traced(_sentence(figures, each), lines_of([each, *_evidence(figures, each)]))
        for each in found
    )
    scored = figures.select("brier", ALL_BINARY)
    who = [(_matched(*each.raters), each.raters) for each in scored]
    return Layers(
        answers=_answer(figures, found),
        folded=[
            *items(written("thresholds.what"), lines),
            *threshold_curves(figures),
            *_tuned(figures, [MAIN]),
            *figures.panel(written("thresholds.errors"), "Grader", _QUALITY, who, ALL_BINARY),
            *reliability_diagrams(figures),
        ],
        appendix=_tuned(figures, _OTHERS, "others"),
    )


def _answer(figures: RubricFigures, found: Sequence[Figure]) -> list[list[object]]:
    """Name the threshold to use for each grader, preferably tuned to people."""
    by_people = [each for each in found if each.rater == "humans"] or found
    said: list[list[object]] = []
    kept: dict[str, list[Figure]] = {}
    for advised in by_people:
        grader, (_, gain) = advised.grader, _evidence(figures, advised)
        if advised.says("tuned") and gain:
            about = {"grader": grader, "threshold": advised, "gain": gain}
            said.append(in_pieces("report.threshold_tuned", **about))
        else:
            kept.setdefault(advised.estimate, []).append(advised)
    for same in kept.values():
        graders = listed([[each.grader] for each in same])
        default = replace(same[0], interval="")  # which is of the best threshold
        said.append(in_pieces("report.threshold_kept", threshold=default, graders=graders))
    return [sentences(*said)]


def render_thresholds_text(
    analysis: Analysis, context: ReportContext, objective: str = MAIN
) -> list[tuple[list[Table], list[str]]]:
    """Return for every rubric the table of one objective and its sentences, for a terminal."""
    source = Source.of(analysis, context)
    return [
        (
            [
                replace(table, caption=source.marked(table.caption))
                for table in _tuned(figures, [objective])
            ],
            [_sentence(figures, each) for each in _advised(figures, objective)],
        )
        for figures in source.rubrics
    ]


def _advised(figures: RubricFigures, objective: str) -> list[Figure]:
    found = figures.select("threshold_recommended", ALL_BINARY)
    return [figure for figure in found if figure.at == objective]


def _tuned(figures: RubricFigures, objectives: Sequence[str], what: str = "caption") -> list[Table]:
    """Tabulate tuned thresholds, each between the value at the default and its own."""

    def value_at(key: Key, at: str) -> Figure | None:
        return figures.by_key(key._replace(statistic=AT_THRESHOLD.get(key.at, ""), at=at))

    cells: tuple[Column, ...] = (
        lambda key: value_at(key, figures.default_threshold((key.rater_a, key.rater_b))),
        {},
        lambda key: value_at(key, repr(tuned[key].bounds[1])),
        "threshold_held_out_gain",
    )
    found = figures.select("threshold", ALL_BINARY)
    tuned = {figure.key: figure for figure in found if figure.at in objectives}
    rows = rows_of(
        tuned.values(), lambda each: _TITLES[each.at], lambda each: _matched(*each.raters)
    )
    columns = zip(_COLUMNS, cells, strict=True)
    tuned_to = written("thresholds.tuned_to")
    return figures.table(written(f"thresholds.{what}"), tuned_to, columns, rows)


def _matched(reference: str, grader: str) -> str:
    return written("thresholds.matched_to", grader=grader, reference=reference_title(reference))


def _evidence(figures: RubricFigures, advised: Figure) -> list[Figure | None]:
    """The tuned threshold and its held-out gain."""
    names = ("threshold", "threshold_held_out_gain")
    return figures.row(names, advised.raters, ALL_BINARY, advised.at)


def _sentence(figures: RubricFigures, advised: Figure) -> str:
    """State which threshold to use, in plain words, with the figures behind the advice."""
    kind, reason, *others = advised.remarks
    at = figures.default_threshold(advised.raters)
    default = shown(float(at), "threshold") if at else written("thresholds.default")
    tuned, gain = _evidence(figures, advised)
    best = tuned.text if tuned else ""
    won = gain.text if gain else ""
    why = reason.words
    if kind.code == "tuned":
        answer = "use"
    elif kind.code == "not_identifiable":
        answer = "not_identifiable"
        if reason.code == "interval_too_wide":
            why = written("thresholds.too_wide", why=why, best=best)
    elif tuned is not None and tuned.bounds[1] == float(at or "nan"):
        answer = "not_better"
    else:
        answer = "not_won"
    reference, grader = advised.raters
    said = written(
        f"thresholds.{answer}",
        grader=grader, reference=reference_title(reference), objective=_TITLES[advised.at],
        default=default, best=best, gain=won, why=why,
    )  # fmt: skip
    coarse = [each.words for each in others if each.code == "coarse_draws"]
    more = [f"{each[0].upper()}{each[1:]}." for each in coarse]
    if in_force := figures.get(IN_FORCE, "", grader, ALL_BINARY):
        of = in_force.remarks[0].words
        more.append(written("thresholds.in_force", threshold=in_force.estimate, why=of))
    return " ".join([said, *more])


# Threshold curve


def threshold_curves(figures: RubricFigures) -> list[Chart]:
    """The course of kappa over the thresholds, a panel for each grader, with the best and its
    interval, and the one to use; empty where no grader's probabilities meet a reference.
    """
    graders = figures.in_order(figures.select(CURVE, ALL_BINARY))
    values: list[charts.Datum] = []
    curves: list[Figure] = []
    advice: dict[str, str] = {}
    for raters in graders[: charts.MAX_LISTED]:
        best, advised = figures.row(_CHOSEN, raters, ALL_BINARY, MAIN)
        if best is None or advised is None:
            continue
        curve = figures.between(CURVE, *raters, ALL_BINARY)
        default = figures.default_threshold(raters)
        kind = next(each for each in _KINDS if advised.says(each))
        text = advice[raters[1]] = written(
            f"chart.advice_{kind}", estimate=advised.estimate, interval=advised.interval
        )
        panel = {"grader": charts.short(raters[1])}
        for point in curve:
            at = float(point.at)
            mark = _BEST if at == best.bounds[1] else ""
            mark = _DEFAULT if point.at == default else mark
            used = at == advised.bounds[1]
            values.append(point.datum(kind="curve", at=at, mark=mark, used=used, **panel))
        values += [best.datum(kind="interval", **panel)]
        values += [advised.datum(kind="advice", text=text, **panel)]
        curves += curve
    if not values:
        return []

    def chosen(key: Key, *, name: str) -> Figure | None:
        figure = figures.by_key(key._replace(statistic=name, at=MAIN))
        return figure if figure and float(key.at) == figure.bounds[1] else None

    columns: list[str | tuple[str, Column]] = [CURVE]
    columns += [(entry_for(n).label, partial(chosen, name=n)) for n in _CHOSEN]
    rows = rows_of(curves, lambda e: shown(float(e.at), "threshold"), lambda e: e.grader)
    names = {"statistic": entry_for(CURVE).label, "reference": reference_title(graders[0][0])}
    label = written("chart.threshold_label", **names)
    what = written("chart.threshold_table", **names)
    said = _marks(values)
    every = "; ".join(
        written("chart.threshold_advice", grader=grader, advice=text)
        for grader, text in advice.items()
    )
    return figures.chart(
        written("chart.threshold", **names),
        written("chart.threshold_alt", label=label, marks=said, advice=every),
        values,
        _curves(values, label),
        figures.table(what, "Threshold", columns, rows, count=""),
        said,
        charts.left_out([name for _, name in graders], advice),
    )


def _marks(values: Sequence[charts.Datum]) -> str:
    """Explain the marks that are drawn."""
    drawn = {datum.get("mark") for datum in values}
    strip = any(datum["kind"] == "interval" and datum["low"] is not None for datum in values)
    said = [written("chart.threshold_default")] if _DEFAULT in drawn else []
    if _BEST in drawn:
        said.append(written("chart.threshold_best_interval" if strip else "chart.threshold_best"))
    if any(datum.get("used") and datum.get("mark") for datum in values):
        said.append(written("chart.threshold_used"))
    return " ".join(said)


def _curves(values: Sequence[charts.Datum], label: str) -> charts.Spec:
    x = {"title": written("chart.threshold_axis")} | charts.FROM_0_TO_1
    curves = [datum for datum in values if datum["kind"] == "curve"]
    y = charts.through_zero(charts.bounds_of(curves), label)
    at = {"x": charts.field("at", x)}
    estimate = at | {"y": charts.field("estimate", y)}
    curve, best = "datum.kind == 'curve'", f"datum.mark == '{_BEST}'"
    blue = {"color": charts.SERIES[0], "interpolate": _STEPS}
    orange = {"test": best, "value": charts.SERIES[1]}
    marked = {
        "shape": {"condition": {"test": best, "value": "diamond"}, "value": "circle"},
        "stroke": {"condition": orange, "value": charts.INK},
        "color": {
            "condition": [{"test": "!datum.used", "value": charts.PAGE}, orange],
            "value": charts.INK,
        },
    }
    text = {"x": {"value": 0}, "y": {"value": -8}, "text": charts.nominal("text")}
    strip, band = charts.span("x", x), at | charts.span("y", y)
    pale: charts.Spec = {"color": charts.SERIES[1], "opacity": 0.25}
    layers = [
        charts.layer("rect", strip, where="datum.kind == 'interval' && isValid(datum.low)", **pale),
        charts.layer("area", band, where=f"{curve} && isValid(datum.low)", opacity=0.25, **blue),
        charts.layer("rule", at, where=f"datum.mark == '{_DEFAULT}'", **charts.DASHED),
        charts.layer("line", estimate, where=curve, **blue),
        charts.layer(
            "point", estimate | marked, where=f"{curve} && datum.mark != ''", size=75, **charts.DOT
        ),
        charts.layer("text", text, where="datum.kind == 'advice'", align="left", color=charts.INK),
    ]
    return charts.panel_for_each_grader(values, layers, height=150)


# Reliability diagram


def reliability_diagrams(figures: RubricFigures) -> list[Chart]:
    """The share affirmative at each stated probability, without bins, by the isotonic curve, with
    the band of a calibrated grader's curve; a panel for each grader, empty where no grader's
    probabilities meet a reference.
    """
    graders = figures.in_order(figures.select(_SHARE, ALL_BINARY))
    drawn = graders[: charts.MAX_LISTED]
    if not drawn:
        return []
    values: list[charts.Datum] = []
    shares: list[Figure] = []
    for raters in drawn:
        for share in figures.between(_SHARE, *raters, ALL_BINARY):
            if stated := figures.by_key(share.key._replace(statistic=_STATED)):
                shares.append(share)
                low, middle, high = stated.bounds
                about = {"grader": charts.short(raters[1]), "units": share.n_units}
                about |= {"stated": middle, "stated_row": stated.line}
                values.append(share.datum(**about, stated_low=low, stated_high=high))

    def probability(share: Figure) -> str:
        stated = figures.by_key(share.key._replace(statistic=_STATED))
        return shown(stated.bounds[1], "threshold") if stated else ""

    with_figure = {share.grader for share in shares}
    whom = reference_title(drawn[0][0])
    seen = [charts.short(name) for _, name in drawn if name in with_figure]
    rows = rows_of(shares, probability, lambda each: each.grader)
    return figures.chart(
        written("chart.reliability"),
        written("chart.reliability_alt", reference=whom, graders=", ".join(seen)),
        values,
        _panels(values, whom),
        figures.table(written("chart.reliability_table"), "Probability", [_STATED, _SHARE], rows),
        written("chart.reliability_note"),
        charts.left_out([name for _, name in graders], with_figure),
    )


def _panels(values: Sequence[charts.Datum], whom: str) -> charts.Spec:
    across = {"title": written("chart.reliability_axis")} | charts.FROM_0_TO_1
    y = {"title": written("chart.reliability_share", reference=whom)} | charts.FROM_0_TO_1
    x = {"x": charts.field("stated", across)}
    estimate = x | {"y": charts.field("estimate", y)}
    band = x | charts.span("y", y, "stated_low", "stated_high")
    size = {
        "field": "units", "type": "quantitative", "title": written("chart.reliability_units"),
        "scale": {"rangeMin": 20, "rangeMax": 170},
        "legend": {"tickCount": 3, "columns": 4},
    }  # fmt: skip
    ends = charts.span("x", across, "x", "x2") | charts.span("y", y, "y", "y2")
    blue = {"color": charts.SERIES[0]}
    layers = [
        charts.layer("area", band, color=charts.SOFT, opacity=0.25),
        # The line on which what is stated and the share are equal.
        charts.line_at(ends, look=charts.DASHED, x=0, y=0, x2=1, y2=1),
        charts.layer("line", estimate, strokeWidth=1, **blue),
        charts.layer("point", estimate | {"size": size}, **blue, **charts.DOT),
    ]
    return charts.panel_for_each_grader(values, layers, height=210)
