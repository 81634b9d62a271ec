"""Whose labels deserve a second look, and what the lead decides about it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from evenhand.annotate_app.lead.live_figures import latest_figures
from evenhand.annotate_app.lead.tables import show_table, to_the_minute
from evenhand.annotate_app.lead_login import require
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.desk.oversight import decisions_table, exclude, oversight, readmit
from evenhand.study.lead.progress import rater_progress

if TYPE_CHECKING:
    import pandas as pd

_EVERY = "3s"
_TITLES = {
    "rater_id": "Rater",
    "state": "State",
    "why": "A second look, because",
    "answers": "Answers",
    "median_seconds": "Median seconds",
    "pace": "Of the others' time",
    "idle_minutes": "Idle minutes",
    "run": "Longest run (usual)",
    "kappa": "Kappa with the others",
    "lean": "Leaning",
    "drift": "Drift",
    "checks": "Attention checks",
}
_NUMBERS = {"median_seconds": ".0f", "pace": ".0%", "idle_minutes": ".0f", "drift": "+.2f"}


def show_raters(study: Study) -> None:
    who = require(study, "lead")
    _quality(study)
    _decide(study, who.name)
    decisions = decisions_table(study.store)
    if len(decisions):
        titles = {
            "created_at": "When (UTC)",
            "kind": "Decision",
            "rater_id": "Rater",
            "reason": "Reason",
            "done_by": "By",
        }
        decisions = decisions.assign(created_at=decisions["created_at"].map(to_the_minute))
        show_table(decisions, "Decisions so far", titles)


@st.fragment(run_every=_EVERY)
def _quality(study: Study) -> None:
    require(study, "lead")
    figures = latest_figures(study)
    if figures is None:
        return
    table = in_words(figures.quality)
    excluded = oversight(study.store).exclusions
    states = rater_progress(study).set_index("rater_id")["state"]
    table = table.assign(
        state=table["rater_id"].map(states).fillna(""),
        why=[
            f"excluded: {excluded[rater].reason}" if rater in excluded else reason
            for rater, reason in zip(table["rater_id"], table["reason"], strict=True)
        ],
    )
    show_table(table, "Raters beside the others on the same units", _TITLES, _NUMBERS)


def in_words(quality: pd.DataFrame) -> pd.DataFrame:
    """The table of raters with what belongs together in one cell: `run, kappa, lean, checks`."""
    rows = quality.to_dict("records")
    return quality.assign(
        run=[f"{row['longest_run']} ({row['usual_run']:.0f})" for row in rows],
        kappa=[_with_interval(row, "agreement") for row in rows],
        lean=[
            f"{row['leaning']:+.2f} {row['leaning_at']}" if row["leaning_at"] else ""
            for row in rows
        ],
        checks=[
            f"{row['attention_passed']} of {row['attention_given']}"
            if row["attention_given"]
            else ""
            for row in rows
        ],
    )


def _with_interval(row: Mapping[Hashable, Any], name: str) -> str:
    estimate, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if estimate != estimate:
        return ""
    return f"{estimate:.2f}" + ("" if low != low else f" ({low:.2f} to {high:.2f})")


def _decide(study: Study, name: str) -> None:
    st.header("Exclude or readmit", anchor=False)
    st.text(
        "An excluded rater gets no further unit and their places go to others. Their labels are "
        "kept; the report shows its main figures with and without them."
    )
    raters = rater_progress(study)["rater_id"].tolist()
    with st.form("exclusion", border=False):
        rater = st.selectbox("Rater", raters, index=None, placeholder="Choose a rater")
        reason = st.text_input("Reason, which stands in the report", autocomplete="off")
        out, back, _ = st.columns([1, 1, 2])
        exclusion = out.form_submit_button("Exclude", width="stretch")
        readmission = back.form_submit_button("Readmit", width="stretch")
    if exclusion or readmission:
        try:
            act = exclude if exclusion else readmit
            act(study.store, rater or "", reason, name)
        except InputError as error:
            show_complaint("choose a rater" if rater is None else str(error))
        else:
            st.rerun()
