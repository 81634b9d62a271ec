"""Progress of the labelling."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any

import streamlit as st

from evenhand.analysis.agreement.pairs import DECIDING_KAPPAS
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.planning.more_clusters import clusters_for_width
from evenhand.analysis.report.charts import (
    ROLES,
    SERIES,
    SHAPES,
    Spec,
    chart_spec,
    field,
    layer,
    span,
)
from evenhand.analysis.report.figures import ALL, ALL_BINARY
from evenhand.analysis.report.source import GROUPS, rater_title
from evenhand.analysis.results import RESULTS_KEY
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verdicts.ranking import deciding_keys
from evenhand.annotate_app.lead.parts.drawing import (
    rater_page,
    records,
    show_chart,
    show_drawn,
    show_funnel,
    show_table,
)
from evenhand.annotate_app.lead.parts.live_figures import latest, latest_figures
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import heading, show
from evenhand.lazy import pd
from evenhand.study import Study
from evenhand.study.desk.oversight import oversight
from evenhand.study.lead.progress import (
    labels_over_time,
    rater_progress,
    rubric_progress,
    time_left,
)
from evenhand.study.prompts.pairs import cluster_noun
from evenhand.study.session.times import grader_costs
from evenhand.texts import written

_PROGRESS_EVERY = "10s"
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


@st.fragment(run_every=_PROGRESS_EVERY)
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
        "rubric units wanted done open free median_seconds hours_left",
        headings={"wanted": "Places", "done": "Labelled"},
        folded=True,
    )
    if raters.empty:
        st.text(written("lead.nobody_began"))
        return
    counts, step = latest(study, labels_over_time)
    show(heading(f"Labels by the {step}"))
    show_chart(timeline_chart(counts, step))
    columns = "rater_id state answers skipped open median_seconds hours last_answer"
    ways = {"rater_id": rater_page}
    show_table(raters, "By rater", columns, headings={"open": "Open"}, ways=ways)
    totals = latest(study, grader_costs)
    if not totals.empty:
        columns = "rater_id rubric units labelled unscored tokens_input tokens_output cost_usd"
        show_table(totals, "By grader", columns, headings={"rater_id": "Grader"}, folded=True)


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


# Agreement among people, and of each grader with them, while labels come in.

_AGREEMENT_EVERY = "3s"
_UNTIL = {
    "type": "temporal",
    "title": "labels until (UTC)",
    "scale": {"type": "utc"},
    "axis": {"tickCount": 8},
}
_STATISTICS = ("observed_agreement", *DECIDING_KAPPAS, CEILING)


def show_agreement(study: Study) -> None:
    require(study, "lead")
    wanted = st.number_input(
        "Wanted half-width of an interval of kappa", 0.01, 0.5, 0.05, 0.01, key="half_width"
    )
    _agreement(study, wanted)


@st.fragment(run_every=_AGREEMENT_EVERY)
def _agreement(study: Study, half_width: float) -> None:
    require(study, "lead")
    figures = latest_figures(study)
    if figures is None:
        return
    verdicts = figures.report["verdicts"]
    main = main_rows(figures.results, verdicts)
    if main.empty:
        st.text(written("lead.no_agreement"))
        return
    st.header("Is it enough?", anchor=False)
    noun = cluster_noun(study.store.pairs(), study.config.analysis.cluster)
    for sentence in enough(main, half_width, noun):
        st.text(sentence)
    if verdicts:
        st.header("Verdicts so far", anchor=False)
    for verdict in verdicts:
        st.text(verdict["sentence"])
    st.header("Agreement", anchor=False)
    show_drawn(figures.forests)
    caption = f"Main figures with 95% CIs. {written('verdict.bounds')}"
    columns = "rubric who figure estimate low high n_units n_clusters note"
    show_table(main, caption, columns, folded=True)
    st.header("As labels came in", anchor=False)
    show_chart(over_time_chart(figures.over_time))
    show_table(
        figures.over_time,
        "People's kappa with 95% intervals, as labels came in",
        "rubric until labels n_units estimate low high",
        headings={"n_units": "Units labelled twice", "estimate": "People's kappa"},
        folded=True,
    )
    for note in figures.report["study"]["notes"]:
        st.text(note)


def main_rows(results: pd.DataFrame, verdicts: Iterable[Verdict] = ()) -> pd.DataFrame:
    """The rows that matter while labels come in and those that decide the verdicts, people with
    each other first, with `who` and `figure` in words.
    """
    usual = (
        (results["rater_a"] == "humans")
        & (results["subset"] == ALL)
        & (results["at"] == "")
        & results["statistic"].isin(_STATISTICS)
    )
    found = (deciding_keys(each["verdict"], each["evidence"]) for each in verdicts)
    keys = [key for each in found for key in each if key]
    rows = results[usual | results.set_index(list(RESULTS_KEY)).index.isin(keys)]
    rows = rows.assign(
        who=[rater_title(grader) if grader else GROUPS["humans"] for grader in rows["rater_b"]],
        figure=[
            entry_for(name).label + (", binary verdict" if subset == ALL_BINARY else "")
            for name, subset in zip(rows["statistic"], rows["subset"], strict=True)
        ],
        people_first=rows["rater_b"] != "",
    )
    return rows.sort_values(["rubric", "statistic", "people_first"], kind="stable")


def enough(main: pd.DataFrame, half_width: float, noun: str) -> list[str]:
    """Return for every rubric the number of clusters (each a `noun`) still to label for the wanted
    half-width of people's kappa, as a sentence.
    """
    sentences = []
    people = main[(main["rater_b"] == "") & main["statistic"].isin(DECIDING_KAPPAS)]
    for row in people.drop_duplicates("rubric", keep="last").to_dict("records"):
        rubric, known = row["rubric"], (row["high"] - row["low"]) / 2
        more = clusters_for_width(row["n_clusters"], row["low"], row["high"], half_width, math.inf)
        if more is None:
            sentences.append(f"{rubric}: too few labels to say.")
        elif more == 0:
            sentences.append(f"{rubric}: enough. People's kappa is known to within {known:.2f}.")
        else:
            sentences.append(
                f"{rubric}: label about {more} more {noun}s to know people's kappa to within "
                f"{half_width:.2f}; it is known to within {known:.2f}."
            )
    return sentences


def over_time_chart(course: pd.DataFrame) -> Spec:
    """People's kappa by rubric, after each further share of their labels."""
    kappa = {"type": "quantitative", "title": "people's kappa", "scale": {"zero": False}}
    rubric = {"type": "nominal", "title": None}
    return chart_spec(
        records(course.dropna(subset=["estimate"])),
        {
            "description": "People's kappa with 95% intervals as labels came in; "
            "the table has it all.",
            "height": 320,
            "encoding": {
                "x": field("until", _UNTIL),
                "color": field("rubric", rubric | {"scale": {"range": SERIES}}),
            },
            "layer": [
                layer("rule", span("y", kappa), strokeWidth=2),
                layer("line", {"y": field("estimate", kappa)}),
                layer(
                    "point",
                    {
                        "y": field("estimate", kappa),
                        "shape": field("rubric", rubric | {"scale": {"range": SHAPES}}),
                    },
                    filled=True,
                    size=60,
                    opacity=1,
                ),
            ],
        },
    )
