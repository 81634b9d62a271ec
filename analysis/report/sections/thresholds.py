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
from evenhand.analysis.report.blocks import Chart, Part, Table, items, traced
from evenhand.analysis.report.figures import ALL_BINARY, Figure, Key, lines_of, shown
from evenhand.analysis.report.source import (
    Column,
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
_COLUMNS = [
    written(f"thresholds.{name}") for name in ("at_default", "tuned", "at_tuned", "held_out_gain")
]
_KINDS: tuple[Code, ...] = ("tuned", "default", "not_identifiable")
"""Kinds of recommendations, each with its words over a panel."""
_CHOSEN = ("threshold", "threshold_recommended")
_BEST, _DEFAULT = "best", "default"
_STATED, _SHARE = "reliability_probability", "reliability"


def layers(figures: RubricFigures) -> Part:
    """Tuned thresholds of a rubric that has graders with probabilities."""
    found = _advised(figures, MAIN)
    lines = (
        traced(_sentence(figures, each), lines_of([each, *_evidence(figures, each)]))
        for each in found
    )
    scored = figures.select("brier", ALL_BINARY)
    who = [(_matched(*each.raters), each.raters) for each in scored]
    return Part(
        answers=_answer(figures, found),
        folded=[
            *items(written("thresholds.what"), lines),
            *threshold_curves(figures),
            *_tuned(figures, [MAIN]),
            *figures.table("thresholds.errors", who),
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
            [replace(t, caption=source.marked(t.caption)) for t in _tuned(figures, [objective])],
            [_sentence(figures, advised) for advised in _advised(figures, objective)],
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
    return figures.table(f"thresholds.{what}", rows, zip(_COLUMNS, cells, strict=True))


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
        curve = figures.select(CURVE, ALL_BINARY, raters)
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
    every = "; ".join(
        written("chart.threshold_advice", grader=grader, advice=text)
        for grader, text in advice.items()
    )
    return figures.chart(
        "threshold", values, figures.table("chart.threshold_table", rows, columns, **names),
        charts.left_out([name for _, name in graders], advice),
        **names, label=written("chart.threshold_label", **names), marks=_marks(values),
        advice=every, graders=charts.in_order(values, "grader"),
        y=charts.through_zero(charts.bounds_of(d for d in values if d["kind"] == "curve")),
    )  # fmt: skip


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
        for share in figures.select(_SHARE, ALL_BINARY, raters):
            if stated := figures.by_key(share.key._replace(statistic=_STATED)):
                shares.append(share)
                low, middle, high = stated.bounds
                about = {"grader": charts.short(raters[1]), "units": share.n_units}
                about |= {"stated": middle, "stated_row": stated.line}
                values.append(share.datum(**about, stated_low=low, stated_high=high))

    def probability(share: Figure) -> str:
        stated = figures.by_key(share.key._replace(statistic=_STATED))
        return shown(stated.bounds[1], "threshold") if stated else ""

    rows = rows_of(shares, probability, lambda each: each.grader)
    return figures.chart(
        "reliability", values, figures.table("chart.reliability_table", rows),
        charts.left_out([name for _, name in graders], {share.grader for share in shares}),
        reference=reference_title(drawn[0][0]), graders=charts.in_order(values, "grader"),
    )  # fmt: skip
