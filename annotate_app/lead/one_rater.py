"""The page for one rater: answers, pace, confusions with the others, checks, flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from evenhand.annotate_app.lead.parts.counting import counted
from evenhand.annotate_app.lead.parts.tables import show_table, to_the_minute
from evenhand.study import Study
from evenhand.study.desk.attention import attention_results
from evenhand.study.desk.oversight import oversight
from evenhand.study.lead.one_rater import confusions, label_shares, rater_answers
from evenhand.study.store.logs.answers import remarks_table
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 50
"""Answers and remarks that are shown, the latest; all are in the export."""
_MOMENTS = ("created_at", "withdrawn_at")
_COLOUR = "#4a8fc7"


def show_rater(study: Study, rater: str) -> None:
    """Everything that there is to see of one rater. The caller has checked the visitor's login."""
    out = oversight(study.store).exclusions.get(rater)
    if out is not None:
        at = to_the_minute(out.created_at)
        st.text(written("lead.rater_excluded", by=out.done_by, at=at, reason=out.reason))
    answers = counted(study, rater_answers, rater)
    _show_shares(counted(study, label_shares, rater))
    _show_confusions(study, rater)
    st.subheader("Pace", anchor=False)
    st.vega_lite_chart(pace_chart(answers), width="stretch")
    st.subheader("Attention checks", anchor=False)
    _show_checks(study, rater)
    st.subheader("Flags and remarks", anchor=False)
    _show_remarks(study, rater)
    with st.expander("Latest answers"):
        latest = answers.iloc[::-1].head(_MOST_ROWS)
        titles = {
            "created_at": "When (UTC)",
            "rubric": "Rubric",
            "unit_id": "Unit",
            "label": "Label",
            "others": "The others",
            "seconds": "Seconds",
        }
        latest = latest.assign(created_at=latest["created_at"].map(to_the_minute))
        show_table(latest, "Latest answers", titles, {"seconds": ".0f"})


def pace_chart(answers: pd.DataFrame) -> dict[str, object]:
    """Seconds for each answer, in the order in which they were given."""
    timed = answers.dropna(subset=["seconds"]).reset_index(drop=True)
    values = [
        {"turn": turn, "seconds": seconds, "rubric": rubric}
        for turn, (seconds, rubric) in enumerate(
            zip(timed["seconds"], timed["rubric"], strict=True), start=1
        )
    ]
    return {
        "description": "Seconds for each answer, in the order in which they were given.",
        "data": {"values": values},
        "mark": {"type": "point", "size": 24, "color": _COLOUR},
        "height": 180,
        "encoding": {
            "x": {"field": "turn", "type": "quantitative", "title": "answer"},
            "y": {
                "field": "seconds",
                "type": "quantitative",
                "title": "seconds (log scale)",
                "scale": {"type": "symlog"},
            },
            "tooltip": [{"field": "turn"}, {"field": "seconds"}, {"field": "rubric"}],
        },
    }


def _show_shares(shares: pd.DataFrame) -> None:
    titles = {
        "rubric": "Rubric",
        "label": "Label",
        "answers": "Answers",
        "share": "Share",
        "others_share": "Others on the same units",
    }
    show_table(shares, "Labels given", titles, {"share": ".0%", "others_share": ".0%"})


def _show_confusions(study: Study, rater: str) -> None:
    found = counted(study, confusions, rater)
    st.subheader("Confusions with the others", anchor=False)
    st.text(written("lead.confusions") if found else written("lead.rater_no_others"))
    for rubric, table in found.items():
        cells = table.reset_index()
        titles = {"label": "This rater"} | {key: key for key in table.columns}
        show_table(cells, study.rubrics[rubric].title, titles, dict.fromkeys(table.columns, ".1f"))


def _show_checks(study: Study, rater: str) -> None:
    checks = counted(study, attention_results)
    own = checks[checks["rater_id"] == rater]
    if own.empty:
        st.text(written("lead.rater_no_checks"))
        return
    own = own.assign(
        created_at=own["created_at"].map(to_the_minute),
        passed=own["passed"].map({True: "passed", False: "failed"}),
    )
    titles = {
        "created_at": "When (UTC)",
        "check_id": "Check",
        "rubric": "Rubric",
        "expected": "Expected",
        "given": "Given",
        "passed": "Result",
    }
    show_table(own, "Attention checks", titles)


def _show_remarks(study: Study, rater: str) -> None:
    said = remarks_table(study.store)
    own = said[(said["rater_id"] == rater) & ((said["kind"] == "flag") | (said["text"] != ""))]
    if own.empty:
        st.text(written("lead.rater_no_remarks"))
        return
    own = own.iloc[::-1].head(_MOST_ROWS)
    moments = {name: own[name].map(lambda at: at and to_the_minute(at)) for name in _MOMENTS}
    own = own.assign(**moments)
    titles = {
        "created_at": "When (UTC)",
        "kind": "Kind",
        "rubric": "Rubric",
        "unit_id": "Unit",
        "reason": "Reason",
        "text": "Text",
        "withdrawn_at": "Withdrawn (UTC)",
    }
    show_table(own, "Flags and remarks", titles)
