"""The verdicts first, in the report's own words; then what is waiting for the lead."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import streamlit as st

from evenhand.analysis.results import RESULTS_KEY
from evenhand.analysis.verdicts.judge import limits_of
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.annotate_app.lead.parts.board import BoardCard, board, show_funnel
from evenhand.annotate_app.lead.parts.counting import latest
from evenhand.annotate_app.lead.parts.live_figures import LiveFigures, latest_figures
from evenhand.annotate_app.lead.parts.ways import link_to
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import show
from evenhand.reporting.live_figures import count_look
from evenhand.reporting.workers import apart
from evenhand.study import Study
from evenhand.study.desk.oversight import oversight
from evenhand.study.lead.adjudication import queue_length
from evenhand.study.lead.flags import raised_flags
from evenhand.study.lead.progress import rater_progress, rubric_progress, time_left
from evenhand.study.store.meta import hours_since_backup
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis.verdicts.judge import Verdict

_EVERY = "5s"


def show_overview(study: Study) -> None:
    require(study, "lead")
    _verdicts(study)
    _ask_for_verdict(study)
    _progress(study)


@st.fragment(run_every=_EVERY)
def _progress(study: Study) -> None:
    require(study, "lead")
    st.header("Who has come how far", anchor=False)
    st.text(time_left(latest(study, rubric_progress)))
    show_funnel(study)
    if latest(study, rater_progress).empty:
        link_to("Sessions", written("lead.invite_first"))


@st.fragment(run_every=_EVERY)
def _verdicts(study: Study) -> None:
    require(study, "lead")
    st.header("Verdicts so far", anchor=False)
    figures = latest_figures(study)
    if figures is not None:
        verdicts = figures.report["verdicts"]
        if not verdicts:
            st.text(written("lead.no_verdict"))
        titles = {name: rubric.title for name, rubric in study.rubrics.items()}
        for rubric in dict.fromkeys(each["rubric"] for each in verdicts):
            own = [each for each in verdicts if each["rubric"] == rubric]
            cards = [verdict_card(each, figures.results) for each in own]
            show(board(titles.get(rubric, rubric), cards))
        for limit in limits_of(verdicts):
            st.text(limit)
    st.header("Waiting for you", anchor=False)
    to_do = waiting(study, figures)
    for page, sentence in to_do.items():
        link_to(page, sentence)
    if not to_do:
        st.text(written("lead.nothing_waits"))
    hours = hours_since_backup(study.store)
    st.text(written("lead.no_backup") if hours is None else written("lead.backup_age", hours=hours))


def _ask_for_verdict(study: Study) -> None:
    """A look at the verdict: only on request, never as a side effect, as each look is counted."""
    st.text(written("lead.look"))
    if st.button("Ask for a verdict now"):
        with st.spinner("Counting the look"):
            apart(count_look, study.folder.resolve())
        st.rerun()


def verdict_card(verdict: Verdict, results: pd.DataFrame) -> BoardCard:
    """Make the board's card of one grader on one rubric."""
    title = TITLES[verdict["verdict"]]
    said = [written("lead.reason", reason=verdict["reason"])] if verdict["reason"] else []
    estimates = results.set_index(list(RESULTS_KEY))["estimate"]
    kappas = [estimates.get(tuple(key), math.nan) for key in verdict["kappas"]]
    if len(kappas) == 2 and not any(map(math.isnan, kappas)):
        said.append(written("lead.kappas", grader=kappas[0], people=kappas[1]))
    words = f"{title.icon} {title.words}"
    return BoardCard(verdict["verdict"], words, verdict["grader"], said, verdict["sentence"])


def waiting(study: Study, figures: LiveFigures | None) -> dict[str, str]:
    """What waits for the lead's decision: the page where it is made -> a sentence."""
    excluded = oversight(study.store).exclusions
    counts = {
        "adjudication": latest(study, queue_length),
        "flags": sum(flag.is_open for flag in raised_flags(study)),
    }
    if figures is not None:
        flagged = figures.quality[figures.quality["flagged"] != ""]["rater_id"]
        counts["raters"] = int((~flagged.isin(list(excluded))).sum())
    to_do = {name: count for name, count in counts.items() if count}
    said = {
        name.capitalize(): written(f"lead.to_do_{name}", count=count)
        for name, count in to_do.items()
    }
    if oversight(study.store).paused:
        said["Sessions"] = written("lead.paused")
    return said
