"""A better grader: where graders and people differ, what was tried, what was proved, what is next.

No button of this page spends money: keys for models are on the machine and not in a browser, so the
page gives the command that takes the next step, to be copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from evenhand.analysis.report.disagreements_page import kind_title
from evenhand.analysis.verdicts.ranking import rank_graders
from evenhand.annotate_app.lead.parts.live_figures import latest_figures
from evenhand.annotate_app.lead.parts.tables import show_table
from evenhand.annotate_app.lead.parts.ways import Way
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import plain
from evenhand.reporting.analysing import told_of
from evenhand.reporting.bettering import (
    asked_anew,
    errors_by_kind,
    latest_end,
    next_move,
    sorted_by_kind,
    tried_table,
    words_tried,
)
from evenhand.study import Study
from evenhand.study.lead.disagreements import KINDS
from evenhand.study.lead.progress import data_version
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis.verdicts.ranking import Candidate

_TITLES = {
    "grader": "Grader",
    "origin": "From",
    "kappa": "Kappa with people",
    "clusters": "On clusters",
    "gain": "Gain",
    "low": "From",
    "high": "To",
}
_EVERY = "3s"
_NUMBERS = {"kappa": ".2f", "gain": "+z.2f", "low": "+z.2f", "high": "+z.2f"}


def show_better_grader(study: Study) -> None:
    require(study, "lead")
    names = list(study.rubrics)
    rubric = names[0]
    if len(names) > 1:
        rubric = st.selectbox("Rubric", names, key="better_rubric", bind="query-params")
    age, ranking = st.empty(), list["Candidate"]()
    with age.container():
        figures = latest_figures(study)
    if figures is None:
        age.empty()
        _wait(study)
    else:
        ranked = rank_graders(figures.results, figures.report["verdicts"])
        ranking = list(ranked.get(rubric, ()))
    end = latest_end(study, rubric)
    st.header("Next step", anchor=False)
    _show_next(study, rubric, end, ranking)
    st.header("Where graders and people differ", anchor=False)
    graders = [end["old"]] if end else [each.verdict["grader"] for each in ranking[:1]]
    for grader in graders:
        _show_errors(study, rubric, grader)
    _show_kinds(study, rubric)
    st.header("What was tried", anchor=False)
    if end is None:
        st.text(written("better.nothing_tried"))
        return
    about = "95% intervals on the labels to choose on"
    show_table(
        _tried(str(study.folder), data_version(study), study, rubric, end), about, _TITLES, _NUMBERS
    )
    st.text(written("better.too_high"))
    for name, words in words_tried(study, rubric).items():
        with st.expander(f"What {plain(name)} reads"):
            st.code(words, language=None, wrap_lines=True)
    st.header("The proof", anchor=False)
    if asked_anew(study, rubric, end):
        st.text(written("better.asked_anew", rubric=rubric))
    for sentence in told_of(end)[1:]:
        st.text(sentence)
    if end["price"] is not None:
        st.text(written("methods.improved_price", price=end["price"]))
    if end.get("difference"):
        st.header("What is new in the text", anchor=False)
        st.code(end["difference"], language=None, wrap_lines=True)


@st.fragment(run_every=_EVERY)
def _wait(study: Study) -> None:  # until there are figures
    require(study, "lead")
    if latest_figures(study) is not None:
        st.rerun()


def _show_next(
    study: Study, rubric: str, end: dict[str, Any] | None, ranking: list[Candidate]
) -> None:
    move = next_move(study, rubric, end, ranking)
    if move is None:
        known = ranking and written("better.passes", grader=ranking[0].verdict["grader"])
        st.text(known or written("better.no_grader"))
        return
    st.text(move.said)
    with st.container(key="next-step"):
        st.code(move.command, language=None, wrap_lines=True)
    st.text(written("better.on_the_machine"))


def _show_errors(study: Study, rubric: str, grader: str) -> None:
    found, units = _errors(str(study.folder), data_version(study), study, rubric, grader)
    if found.empty:
        st.text(written("better.no_errors", grader=grader))
        return
    titles = {"people": "Most people", "grader": "Grader", "units": "Units", "clear": "All agree"}
    show_table(found, written("better.errors", grader=grader, units=units), titles)


def _show_kinds(study: Study, rubric: str) -> None:
    import pandas as pd

    found = sorted_by_kind(study, rubric)
    if found:
        rows = [
            {"grader": grader, **{str(kind): counts[kind] for kind in KINDS}}
            for grader, counts in found.items()
        ]
        titles = {"grader": "Grader"} | {str(kind): kind_title(kind) for kind in KINDS}
        show_table(pd.DataFrame(rows), "Disagreements that were sorted, by kind", titles)
    else:
        st.text(written("better.not_sorted"))
    Way("Disagreements", "Sort disagreements").show()


@st.cache_data(show_spinner=False, max_entries=8)
def _tried(
    folder: str, version: str, _study: Study, rubric: str, end: dict[str, Any]
) -> pd.DataFrame:
    return tried_table(_study, rubric, end)


@st.cache_data(show_spinner=False, max_entries=8)
def _errors(
    folder: str, version: str, _study: Study, rubric: str, grader: str
) -> tuple[pd.DataFrame, int]:
    return errors_by_kind(_study, rubric, grader)
