"""Reliability diagram without bins: the share affirmative at each stated probability."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.analysis.report.blocks import Chart
from evenhand.analysis.report.charts.style import (
    FROM_0_TO_1,
    MAX_LISTED,
    SERIES,
    SOFT,
    Datum,
    Spec,
    chart_spec,
    equality,
    field,
    joined,
    layer,
    left_out,
    panel_for_each_grader,
    short,
    span,
)
from evenhand.analysis.report.figures import ALL_BINARY, shown
from evenhand.analysis.report.source import Source, reference_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import written

_STATED, _SHARE = "reliability_probability", "reliability"


def reliability_diagrams(source: Source, rubric: str) -> list[Chart]:
    """Probability against the share affirmative by the isotonic curve, with the band of a
    calibrated grader's curve; a panel for each grader, empty where no grader's probabilities meet a
    reference.
    """
    shares = source.figures.select(rubric, _SHARE, ALL_BINARY)
    graders = source.in_order(rubric, shares)
    drawn = graders[:MAX_LISTED]
    if not drawn:
        return []
    draft = TableDraft(
        source.caption(rubric, written("chart.reliability_table")),
        "Probability",
        [entry_for(name).label for name in (_STATED, _SHARE)],
    )
    values: list[Datum] = []
    with_figure = set()
    for raters in drawn:
        draft.group(raters[1])
        for share in shares:
            stated = source.figures.get(rubric, _STATED, *share.raters, ALL_BINARY, share.at)
            if share.raters == raters and stated is not None:
                draft.add(shown(stated.bounds[1], "threshold"), [stated, share])
                with_figure.add(raters[1])
                values.append(
                    share.datum(
                        grader=short(raters[1]),
                        units=share.n_units,
                        stated=stated.bounds[1],
                        stated_row=stated.line,
                        stated_low=stated.bounds[0],
                        stated_high=stated.bounds[2],
                    )
                )
    whom = reference_title(drawn[0][0])
    seen = [short(name) for _, name in drawn if name in with_figure]
    return [
        Chart(
            caption=source.caption(rubric, written("chart.reliability")),
            alt=written("chart.reliability_alt", reference=whom, graders=", ".join(seen)),
            spec=chart_spec(values, _panels(values, whom)),
            data=tuple(draft.finish()),
            note=joined(
                written("chart.reliability_note"),
                left_out([name for _, name in graders], with_figure),
            ),
        )
    ]


def _panels(values: Sequence[Datum], whom: str) -> Spec:
    across = {"title": written("chart.reliability_axis")} | FROM_0_TO_1
    y = {"title": written("chart.reliability_share", reference=whom)} | FROM_0_TO_1
    x = {"x": field("stated", across)}
    estimate = x | {"y": field("estimate", y)}
    band = x | span("y", y, "stated_low", "stated_high")
    size = {
        "field": "units", "type": "quantitative", "title": written("chart.reliability_units"),
        "scale": {"rangeMin": 20, "rangeMax": 170},
        "legend": {"tickCount": 3, "columns": 4},
    }  # fmt: skip
    return panel_for_each_grader(
        values,
        [
            layer("area", band, color=SOFT, opacity=0.25),
            equality(across, y, color=SOFT, strokeDash=[4, 3]),
            layer("line", estimate, color=SERIES[0], strokeWidth=1),
            layer("point", estimate | {"size": size}, filled=True, color=SERIES[0], opacity=1),
        ],
        height=210,
    )
