"""Reliability diagram without bins: how often does the reference affirm at each probability?"""

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
    layer,
    left_out,
    panel_for_each_grader,
    short,
    span,
)
from evenhand.analysis.report.figures import ALL_BINARY, shown
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.source import Source, reference_title
from evenhand.analysis.report.table_draft import TableDraft

_STATED, _SHARE = "reliability_probability", "reliability"


def reliability_diagrams(source: Source, rubric: str) -> list[Chart]:
    """Probability against the share affirmative by the isotonic curve, and where a calibrated
    grader's curve would be; a panel for each grader, nothing where no grader's probabilities meet a
    reference."""
    shares = source.figures.select(rubric, _SHARE, ALL_BINARY)
    graders = source.in_order(rubric, shares)
    drawn = graders[:MAX_LISTED]
    if not drawn:
        return []
    draft = TableDraft(
        source.caption(rubric, "probabilities and what they came to"),
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
    return [
        Chart(
            caption=source.caption(rubric, "do probabilities mean what they say"),
            alt="Reliability diagrams, one for each grader: the stated probability across, the "
            f"share that {whom} affirmed upwards, by the rising curve that fits best. Beside it "
            "the line on which both are equal, and the band in which a calibrated grader's curve "
            "would be. "
            f"Graders: {', '.join(short(name) for _, name in drawn if name in with_figure)}.",
            spec=chart_spec(values, _panels(values, whom)),
            data=tuple(draft.finish()),
            note="On the dashed line probabilities mean what they say; below it the grader "
            "overstates, above it it understates. At 95% of its points a calibrated grader's curve "
            "lies within the grey band." + left_out([name for _, name in graders], with_figure),
        )
    ]


def _panels(values: Sequence[Datum], whom: str) -> Spec:
    across = {"title": "Stated probability"} | FROM_0_TO_1
    y = {"title": f"Share affirmed by {whom}"} | FROM_0_TO_1
    x = {"x": field("stated", across)}
    estimate = x | {"y": field("estimate", y)}
    band = x | span("y", y, "stated_low", "stated_high")
    size = {
        "field": "units", "type": "quantitative", "title": "Units on the step",
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
