"""Graders compared with annotators: agreement against the human ceiling, and against the price."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.raters.pace import PRICE
from evenhand.analysis.report import charts
from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.figures import ALL, ALL_BINARY, Figure, Key, defined
from evenhand.analysis.report.source import (
    GROUPS,
    READINGS,
    Column,
    Layers,
    RubricFigures,
    rater_title,
    sentences,
)
from evenhand.analysis.report.terminal_panel import rates_table
from evenhand.analysis.results import BASELINES, TableRow, key_of
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.ranking import Candidate
from evenhand.texts import in_pieces, written

OF_NUMBERS = ("icc_a1", "icc_c1", "rms_difference", "mean_difference")
_PANEL = (
    "observed_agreement",
    "cohen_kappa",
    "weighted_kappa_linear",
    "weighted_kappa_quadratic",
    "gwet_ac1",
    "brennan_prediger",
)
_PEOPLE = "people"
_SAID = ("kind", "rater", "low", "estimate", "high")
_WIDE = 320
"""Pixels of an axis: a phone holds one of these figures, a desk three side by side."""
_ABOVE = -12


def layers(figures: RubricFigures) -> Layers:
    """Graders and baselines compared with annotators."""
    tables: list[Table] = []
    for subset, reading in READINGS.items():
        if any(each.rater == "humans" for each in figures.select(figures.usual(subset), subset)):
            statistics = [*_PANEL, figures.alphas(subset)[0], *OF_NUMBERS, CEILING]
            who = [(GROUPS["humans"], ("humans", ""))]
            who += [(name, ("humans", name)) for name in figures.graders(subset)]
            who += [(rater_title(name), ("humans", name)) for name in BASELINES]
            what = written("ceiling.caption", reading=reading)
            tables += figures.panel(what, "Rater", statistics, who, subset)
    drawn, prices = forest(figures, tables), price_front(figures)
    return Layers(
        answers=[_answer(figures)] if tables else [],
        open=[*drawn, *rates_table(figures)],
        folded=prices if drawn else [*tables, *prices],
    )


def _answer(figures: RubricFigures) -> list[object]:
    """People's kappa with each other, and the two graders that are closest to it and furthest."""
    # Graders that give probabilities alone are compared on the binary verdict.
    subset = ALL if figures.graders() else ALL_BINARY
    kappa = figures.kappa(subset)
    people, said = figures.get(kappa, "humans", "", subset), []
    if people and people.reason:
        said = in_pieces("report.ceiling_unknown", reason=people.reason.words)
    elif people:
        said = in_pieces("report.ceiling", people=people)
    names = figures.graders(subset)
    graders = defined(figures.get(kappa, "humans", name, subset) for name in names)
    if not graders:
        return sentences(said, in_pieces("report.ceiling_no_grader"))
    best, worst = graders[0], graders[-1]
    about = {"best": best, "first": best.grader, "worst": worst, "last": worst.grader}
    if best is worst:
        one = in_pieces("report.ceiling_grader", name=best.grader, best=best)
        return sentences(said, one)
    return sentences(said, in_pieces("report.ceiling_graders", **about))


# Forest plot


def forest(
    figures: RubricFigures,
    data: Iterable[Table] = (),
    readings: Collection[str] = tuple(READINGS),
) -> list[Chart]:
    """Kappa with annotators of each grader and baseline, the largest first, on the categories and
    on the binary verdict (or one of these `readings`), with annotators' kappa with one another;
    empty where no grader shares items with annotators.

    Each row is drawn against the ceiling on its own items: the band of all items, or a line where
    it has a label for some of them only. Where both readings are the same, as on a yes/no rubric,
    they are drawn once, on the categories.
    """
    found = {subset: _reading(figures, subset) for subset in READINGS}
    # What each says, whatever it is called.
    said = [[tuple(datum[key] for key in _SAID) for datum in each] for each in found.values()]
    if said[0] == said[1]:
        found[ALL_BINARY] = []
    values = [datum for subset in readings for datum in found[subset]]
    if not any(datum["kind"] != _PEOPLE for datum in values):
        return []
    together = [datum for datum in values if datum["kind"] == _PEOPLE]
    people = "; ".join(f"{datum['reading']} {datum['label']}" for datum in together)
    fewer = any(datum["ceiling"] is not None and datum["ceiling_low"] is None for datum in values)
    hollow = any(datum["kind"] == "baseline" for datum in values)
    graders = list(dict.fromkeys(g for each in readings for g in figures.graders(each)))
    drawn = ("low", "estimate", "high", "ceiling", "ceiling_low", "ceiling_high")
    bounds = (datum[name] for datum in values for name in drawn)
    x = charts.through_zero(bounds, written("chart.forest_axis"))
    panels = [
        charts.panel("reading", reading, width=_WIDE, height={"step": 36})
        | {"layer": _rows([datum for datum in values if datum["reading"] == reading], x)}
        for reading in dict.fromkeys(datum["reading"] for datum in values)
    ]
    return figures.chart(
        written("chart.forest_ceiling" if people else "chart.forest"),
        written("chart.forest_alt_ceiling" if people else "chart.forest_alt", figures=people),
        values,
        {"vconcat": panels, "resolve": {"scale": {"x": "shared"}}},
        data,
        written("chart.forest_band") if people else "",
        written("chart.forest_fewer") if fewer else "",
        written("chart.forest_baselines") if hollow else "",
        charts.left_out(graders, {str(datum["rater"]) for datum in values}),
    )


def _reading(figures: RubricFigures, subset: str) -> list[charts.Datum]:
    kappa = figures.kappa(subset)
    people = figures.get(kappa, "humans", "", subset)
    people = None if people is None or people.reason else people
    kinds = dict.fromkeys(figures.graders(subset)[: charts.MAX_LISTED], "grader")
    kinds |= dict.fromkeys(BASELINES, "baseline")
    found = [
        (kind, figures.get(kappa, "humans", name, subset), name) for name, kind in kinds.items()
    ]
    return [
        figure.datum(
            kind=kind,
            rater=name,
            who=charts.short(rater_title(name)) if name else None,
            reading=f"{entry_for(kappa).label} {READINGS[subset]}",
            label=figure.text,
            **_ceiling(figures, figure, people),
        )
        for kind, figure, name in [(_PEOPLE, people, ""), *found]
        if figure is not None
    ]


def _ceiling(
    figures: RubricFigures, figure: Figure, people: Figure | None
) -> dict[str, float | None]:
    """Return annotators' kappa with one another on the items of a figure, with its interval where
    these are all items: intervals of others are not computed.
    """
    low = ceiling = high = None
    apart = figures.get(CEILING, *figure.raters, figure.subset)
    if people is not None and figure is not people:
        same = figure.n_units >= people.n_units
        if apart is not None and not apart.reason:
            ceiling = figure.bounds[1] - apart.bounds[1]
            same = math.isclose(ceiling, people.bounds[1], abs_tol=1e-9)
        if same:
            low, ceiling, high = (None if math.isnan(each) else each for each in people.bounds)
    return {"ceiling": ceiling, "ceiling_low": low, "ceiling_high": high}


def _rows(values: list[charts.Datum], x: charts.Spec) -> list[charts.Spec]:
    """Marks of one reading, the rows in the order of `values`."""
    points = f"datum.kind != '{_PEOPLE}'"
    names = [datum["who"] for datum in values if datum["kind"] != _PEOPLE]
    # Names are above the lines, not to their left, so that the figure fits a phone.
    who = charts.nominal(
        "who",
        sort=None,
        title=written("chart.grader"),
        axis={"labels": False, "ticks": False, "domain": False},
        scale={"type": "band", "padding": 0, "domain": names},
    )
    rows = {"y": who}
    full_height = {"y": who | {"bandPosition": 0}, "y2": {"field": "who", "bandPosition": 1}}
    fill = {"test": "datum.kind == 'baseline'", "value": charts.PAGE}
    filled = {
        "x": charts.field("estimate", x),
        "color": {"condition": fill, "value": charts.SERIES[0]},
        "stroke": {"value": charts.SERIES[0]},
    }
    shaded = rows | charts.span("x", x, "ceiling_low", "ceiling_high")
    dashed = full_height | {"x": charts.field("ceiling", x)}
    interval, blue = rows | charts.span("x", x), charts.SERIES[0]
    # Letters above a row, clear of the line that they cross.
    looks: list[charts.Spec] = [
        {"color": charts.PAGE, "stroke": charts.PAGE, "strokeWidth": 4},
        {"color": charts.INK},
    ]
    letters = [
        charts.layer(
            "text", rows | {"x": {"value": at}, "text": charts.nominal(name)},
            where=points, align=side, dy=_ABOVE, **look,
        )
        for at, name, side in ((0, "who", "left"), (_WIDE, "label", "right"))
        for look in looks
    ]  # fmt: skip
    band = {"where": "isValid(datum.ceiling_low)", "color": charts.ROLES["band"]}
    return [
        charts.layer("rect", shaded, **band),
        charts.layer("rule", dashed, where="isValid(datum.ceiling)", **charts.DASHED),
        charts.layer("rule", interval, where=points, strokeWidth=2, color=blue),
        charts.layer("point", rows | filled, where=points, size=70, **charts.DOT),
        *letters,
    ]


# Price against agreement


def price_front(figures: RubricFigures) -> list[Chart]:
    """Draw every grader with a known price, by price and by the difference from people that its
    verdict rests on, and the Pareto front of both; empty with fewer than two such graders.
    """
    candidates = figures.source.ranking.get(figures.rubric, ())
    ranked = sorted(candidates, key=lambda each: each.agreement, reverse=True)
    priced = [each for each in ranked if math.isfinite(each.usd) and math.isfinite(each.agreement)]
    drawn = priced[: charts.MAX_LISTED]
    if len(drawn) < 2:
        return []

    def figure(row: TableRow | None) -> Figure | None:
        return figures.by_key(key_of(row)) if row else None

    values: list[charts.Datum] = []
    rows = []
    for each in drawn:
        difference, price = figure(each.difference), figure(each.price)
        if difference is None or price is None:
            continue
        grader = each.verdict["grader"]
        about = {"price": price.bounds[1], "price_row": price.line, "front": each.best_buy}
        values.append(difference.datum(grader=charts.short(grader), **about))
        rows.append((grader, difference))
    of_price = {"statistic": PRICE, "rater_a": "", "subset": ALL, "at": ""}

    def on_reading(key: Key, *, subset: str) -> Figure | None:
        return figures.by_key(key) if key.subset == subset else None

    columns: list[tuple[str, Column]] = [(entry_for(PRICE).label, of_price)]
    columns += [
        (
            written("chart.price_difference_on", reading=reading),
            partial(on_reading, subset=subset),
        )
        for subset, reading in READINGS.items()
    ]
    unpriced = _names([each for each in ranked if each not in priced])
    return figures.chart(
        written("chart.price"),
        written("chart.price_alt", graders=", ".join(map(charts.short, _names(drawn)))),
        values,
        _front(values, -figures.analysis.settings.margin),
        figures.table(written("chart.price_table"), "Grader", columns, rows, count=""),
        written("chart.price_note"),
        charts.left_out(_names(priced), _names(drawn)),
        written("chart.price_missing", graders=", ".join(unpriced)) if unpriced else "",
    )


def _names(candidates: Sequence[Candidate]) -> list[str]:
    return [each.verdict["grader"] for each in candidates]


def _front(values: list[charts.Datum], margin: float) -> charts.Spec:
    x = charts.through_zero((datum["price"] for datum in values), written("chart.price_axis"))
    y = charts.through_zero([*charts.bounds_of(values), margin], written("chart.price_difference"))
    level = {"y": charts.field("at", y)}
    price, estimate = {"x": charts.field("price", x)}, {"y": charts.field("estimate", y)}
    names = [datum["grader"] for datum in values]
    ranges = {
        "color": charts.SERIES + charts.SERIES,
        "shape": charts.SHAPES + charts.SHAPES[1:] + charts.SHAPES[:1],
    }
    told_apart = {
        channel: charts.nominal(
            "grader",
            title=written("chart.grader"),
            scale={"domain": names, "range": known[: len(names)]},
        )
        for channel, known in ranges.items()
    }
    behind = {"color": charts.SOFT, "interpolate": "step-after"}
    layers = [
        charts.line_at(level, look={"color": charts.SOFT}, at=0),
        charts.line_at(level, look=charts.DASHED, at=margin),
        charts.layer("line", price | estimate, where="datum.front", **behind),
        charts.layer("rule", price | charts.span("y", y) | {"color": told_apart["color"]}),
        charts.layer("point", price | estimate | told_apart, size=80, **charts.DOT),
    ]
    return {"width": 320, "height": 240, "layer": layers}
