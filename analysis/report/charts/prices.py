"""Price against agreement: the price of 1,000 units, and each grader's difference from people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evenhand.analysis.report.blocks import Chart
from evenhand.analysis.report.charts.style import (
    MAX_LISTED,
    SERIES,
    SHAPES,
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
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.source import READINGS, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import TableRow, key_of
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.usage import PRICE
from evenhand.analysis.verdicts.ranking import Candidate
from evenhand.texts import written


def price_front(source: Source, rubric: str) -> list[Chart]:
    """Draw every grader with a known price, by price and by the difference from people that its
    verdict rests on, and the Pareto front of both; empty with fewer than two such graders.
    """
    ranked = sorted(source.ranking.get(rubric, ()), key=lambda each: each.agreement, reverse=True)
    priced = [each for each in ranked if math.isfinite(each.usd) and math.isfinite(each.agreement)]
    drawn = priced[:MAX_LISTED]
    if len(drawn) < 2:
        return []
    values: list[Datum] = []
    draft = TableDraft(
        source.caption(rubric, written("chart.price_table")),
        "Grader",
        [
            entry_for(PRICE).label,
            *(written("chart.price_difference_on", reading=each) for each in READINGS.values()),
        ],
        count="",
    )
    for each in drawn:
        difference, price = _figure(source, each.difference), _figure(source, each.price)
        if difference is None or price is None:
            continue
        grader = each.verdict["grader"]
        values.append(
            difference.datum(
                grader=short(grader),
                price=price.bounds[1],
                price_row=price.line,
                front=each.best_buy,
            )
        )
        by_reading = [difference if difference.subset == subset else None for subset in READINGS]
        draft.add(grader, [price, *by_reading])
    unpriced = _names([each for each in ranked if each not in priced])
    return [
        Chart(
            caption=source.caption(rubric, written("chart.price")),
            alt=written("chart.price_alt", graders=", ".join(map(short, _names(drawn)))),
            spec=_spec(source, values),
            data=tuple(draft.finish()),
            note=joined(
                written("chart.price_note"),
                left_out(_names(priced), _names(drawn)),
                written("chart.price_missing", graders=", ".join(unpriced)) if unpriced else "",
            ),
        )
    ]


def _names(candidates: Sequence[Candidate]) -> list[str]:
    return [each.verdict["grader"] for each in candidates]


def _figure(source: Source, row: TableRow | None) -> Figure | None:
    return source.figures.by_key(key_of(row)) if row else None


def _spec(source: Source, values: list[Datum]) -> Spec:
    margin = -source.analysis.settings.margin
    bounds = [datum[name] for datum in values for name in ("low", "estimate", "high")]
    x = through_zero((datum["price"] for datum in values), written("chart.price_axis"))
    y = through_zero([*bounds, margin], written("chart.price_difference"))
    level = {"y": field("at", y)}
    price, estimate = {"x": field("price", x)}, {"y": field("estimate", y)}
    names = [datum["grader"] for datum in values]
    ranges = {"color": SERIES + SERIES, "shape": SHAPES + SHAPES[1:] + SHAPES[:1]}
    told_apart = {
        channel: {
            "field": "grader", "type": "nominal", "title": written("chart.grader"),
            "scale": {"domain": names, "range": known[: len(names)]},
        }
        for channel, known in ranges.items()
    }  # fmt: skip
    return chart_spec(
        values,
        {
            "width": 320,
            "height": 240,
            "layer": [
                {"data": {"values": [{"at": 0}]}} | layer("rule", level, color=SOFT),
                {"data": {"values": [{"at": margin}]}}
                | layer("rule", level, color=SOFT, strokeDash=[4, 3]),
                layer(
                    "line", price | estimate, where="datum.front",
                    color=SOFT, interpolate="step-after",
                ),
                layer("rule", price | span("y", y) | {"color": told_apart["color"]}),
                layer("point", price | estimate | told_apart, filled=True, size=80, opacity=1),
            ],
        },
    )  # fmt: skip
