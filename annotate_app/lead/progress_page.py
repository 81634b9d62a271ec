"""Progress of the labelling."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import streamlit as st

from evenhand.analysis.report.charts import ROLES, SERIES, Spec, chart_spec, field
from evenhand.annotate_app.lead.parts.board import show_funnel
from evenhand.annotate_app.lead.parts.charts import records, show_chart
from evenhand.annotate_app.lead.parts.counting import latest
from evenhand.annotate_app.lead.parts.tables import rater_page, show_table, to_the_minute
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import heading, show
from evenhand.study import Study
from evenhand.study.desk.oversight import oversight
from evenhand.study.lead.progress import (
    labels_over_time,
    rater_progress,
    rubric_progress,
    time_left,
)
from evenhand.study.session.times import grader_costs
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

_EVERY = "10s"
_PLACES = {
    "type": "quantitative",
    "title": "places",
    "stack": True,
    "axis": {"tickCount": 6},
}
_STATES = {"done": "labelled", "open": "given out", "free": "free"}


def show_progress(study: Study) -> None:
    require(study, "lead")
    _progress(study)


@st.fragment(run_every=_EVERY)
def _progress(study: Study) -> None:
    require(study, "lead")
    rubrics, raters = latest(study, rubric_progress), latest(study, rater_progress)
    if oversight(study.store).paused:
        st.text(written("lead.paused"))
    st.text(time_left(rubrics))
    show_funnel(study)
    show_chart(places_chart(rubrics.to_dict("records")))
    show_table(
        rubrics,
        "Places by rubric: one for every rater that a unit wants",
        {
            "rubric": "Rubric",
            "units": "Units",
            "wanted": "Places",
            "done": "Labelled",
            "open": "Given out",
            "free": "Free",
            "median_seconds": "Median seconds",
            "hours_left": "Hours left",
        },
        {"median_seconds": ".0f", "hours_left": ".1f"},
        folded=True,
    )
    if raters.empty:
        st.text(written("lead.nobody_began"))
        return
    counts, step = latest(study, labels_over_time)
    show(heading(f"Labels by the {step}"))
    show_chart(timeline_chart(counts, step))
    show_table(
        raters.assign(last_answer=raters["last_answer"].map(to_the_minute)),
        "By rater",
        {
            "rater_id": "Rater",
            "state": "State",
            "answers": "Answers",
            "skipped": "Skipped",
            "open": "Open",
            "median_seconds": "Median seconds",
            "hours": "Hours",
            "last_answer": "Last answer (UTC)",
        },
        {"median_seconds": ".0f", "hours": ".1f"},
        ways={"rater_id": rater_page},
    )
    _graders(study)


def _graders(study: Study) -> None:
    totals = latest(study, grader_costs)
    if totals.empty:
        return
    show_table(
        totals,
        "By grader",
        {
            "rater_id": "Grader",
            "rubric": "Rubric",
            "units": "Units",
            "labelled": "Labelled",
            "unscored": "Unscored",
            "tokens_input": "Tokens read",
            "tokens_output": "Tokens written",
            "cost_usd": "Cost (USD)",
        },
        {"tokens_input": ".0f", "tokens_output": ".0f", "cost_usd": ".2f"},
        folded=True,
    )


def timeline_chart(counts: pd.DataFrame, step: str) -> Spec:
    """Bars of labels by the hour or day, in UTC."""
    unit = "utcyearmonthdate" + ("hours" if step == "hour" else "")
    return chart_spec(
        records(counts),
        {
            "description": f"Labels by the {step}, by rubric.",
            "mark": "bar",
            "height": 280,
            "encoding": {
                "x": field(
                    "start", {"type": "temporal", "timeUnit": unit, "title": f"{step} (UTC)"}
                ),
                "y": field("labels", {"type": "quantitative", "title": "labels", "stack": True}),
                "color": field(
                    "rubric", {"type": "nominal", "title": None, "scale": {"range": SERIES}}
                ),
                "tooltip": [field("start"), field("rubric"), field("labels")],
            },
        },
    )


def places_chart(rubrics: list[dict[Hashable, Any]]) -> Spec:
    """Bars of places labelled, given out and free, by rubric."""
    values = [
        {"rubric": row["rubric"], "state": word, "places": row[state], "at": at}
        for row in rubrics
        for at, (state, word) in enumerate(_STATES.items())
    ]
    colours = [SERIES[0], SERIES[4], ROLES["rule"]]
    states = {"domain": list(_STATES.values()), "range": colours}
    return chart_spec(
        values,
        {
            "description": "Places labelled, given out and free, by rubric; "
            "the table has the numbers.",
            "mark": "bar",
            "height": {"step": 28},
            "encoding": {
                "y": field("rubric", {"type": "nominal", "title": None}),
                "x": field("places", _PLACES),
                "order": field("at", {"type": "quantitative"}),
                "color": field("state", {"type": "nominal", "title": None, "scale": states}),
                "tooltip": [field("rubric"), field("state"), field("places")],
            },
        },
    )
