"""Reliability diagram: of units with some probability, how many does the reference affirm?"""

from __future__ import annotations

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
from evenhand.analysis.report.figures import ALL_BINARY
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.source import Source, reference_title
from evenhand.analysis.report.table_draft import TableDraft

_STATED, _SHARE = "reliability_probability", "reliability"


def reliability_diagrams(source: Source, rubric: str) -> list[Chart]:
    """Mean probability against share affirmative in each bin, a panel for each grader; nothing
    where no grader's probabilities meet a reference."""
    shares = source.figures.select(rubric, _SHARE, ALL_BINARY)
    graders = list(dict.fromkeys(figure.raters for figure in shares))
    drawn = graders[:MAX_LISTED]
    if not drawn:
        return []
    draft = TableDraft(
        source.caption(rubric, "probabilities and what they came to"),
        "Probability",
        [entry_for(name).label for name in (_STATED, _SHARE)],
    )
    values: list[Datum] = []
    for raters in drawn:
        draft.group(raters[1])
        for share in shares:
            stated = source.figures.get(rubric, _STATED, *share.raters, ALL_BINARY, share.at)
            if share.raters == raters and stated is not None:
                draft.add(share.at, [stated, share])
                values.append(
                    share.datum(
                        grader=short(raters[1]),
                        units=share.n_units,
                        stated=stated.bounds[1],
                        stated_row=stated.line,
                    )
                )
    whom = reference_title(drawn[0][0])
    return [
        Chart(
            caption=source.caption(rubric, "do probabilities mean what they say"),
            alt="Reliability diagrams, one for each grader: the mean probability of the units in "
            f"each bin across, the share of them that {whom} affirmed upwards, with intervals, "
            "beside the line on which both are equal. "
            f"Graders: {', '.join(short(name) for _, name in drawn)}.",
            spec=chart_spec(values, _panels(whom)),
            data=tuple(draft.finish()),
            note="On the dashed line probabilities mean what they say; below it the grader "
            "overstates, above it it understates." + left_out(graders),
        )
    ]


def _panels(whom: str) -> Spec:
    across = {"title": "Mean probability"} | FROM_0_TO_1
    y = {"title": f"Share affirmed by {whom}"} | FROM_0_TO_1
    x = {"x": field("stated", across)}
    estimate = x | {"y": field("estimate", y)}
    size = {
        "field": "units", "type": "quantitative", "title": "Units in the bin",
        "scale": {"rangeMin": 20, "rangeMax": 170},
        "legend": {"tickCount": 3, "columns": 4},
    }  # fmt: skip
    return panel_for_each_grader(
        [
            equality(across, y, color=SOFT, strokeDash=[4, 3]),
            layer("rule", x | span("y", y), color=SERIES[0], opacity=0.6),
            layer("line", estimate, color=SERIES[0], strokeWidth=1),
            layer("point", estimate | {"size": size}, filled=True, color=SERIES[0], opacity=1),
        ],
        height=210,
    )
