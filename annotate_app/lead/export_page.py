"""The study's tables and its report, to take away."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from evenhand.annotate_app.lead.parts.drawing import show_table
from evenhand.annotate_app.lead.parts.live_figures import counted, latest_figures
from evenhand.annotate_app.logins.lead_login import require
from evenhand.lazy import pd
from evenhand.reporting.exporting import (
    as_csv,
    attacked_path,
    exported_answers,
    exported_attacked,
    exported_decisions,
    exported_ratings,
    exported_remarks,
    exported_times,
    exported_units,
    sidecar_text,
    units_path,
)
from evenhand.reporting.ratings_file.declared import sidecar_path
from evenhand.study import Study
from evenhand.study.desk.attention import attention_results
from evenhand.study.lead.progress import data_version, rater_progress
from evenhand.study.session.times import raters_table
from evenhand.study.store.logs.decisions import acts, note_act
from evenhand.study.store.logs.replies import was_audited
from evenhand.texts import written

_TABLES: dict[str, tuple[str, Callable[[Study], pd.DataFrame]]] = {
    "ratings.csv": ("Ratings", exported_ratings),
    "ratings.units.csv": ("Units, sampled or rated", exported_units),
    "remarks.csv": ("Remarks of raters", exported_remarks),
    "answers.csv": ("How answers were given", exported_answers),
    "raters.csv": ("Raters and their pace", rater_progress),
    "times.csv": ("Times and pay", exported_times),
    "attention.csv": ("Attention checks", attention_results),
    "background.csv": ("What raters said of themselves", raters_table),
    "decisions.csv": ("Decisions of the lead", exported_decisions),
}
_AUDIT = ("Answers of the injection audit", exported_attacked)
_ATTACKED = attacked_path(Path("ratings.csv")).name
_REPORT = {
    "report.html": ("Report", "text/html"),
    "report.md": ("Report as Markdown", "text/markdown"),
    "report.json": ("Report as JSON", "application/json"),
    "results.csv": ("Results", "text/csv"),
}


def show_export(study: Study) -> None:
    who = require(study, "lead").name
    st.header("Tables", anchor=False)
    st.text(
        "As CSV. A cell that a spreadsheet would run as a formula has an apostrophe before it; "
        "evenhand takes it off again when it reads the file."
    )
    audited = was_audited(study.store)
    tables = _TABLES | ({_ATTACKED: _AUDIT} if audited else {})
    with st.container(horizontal=True):
        for name, (title, make) in tables.items():
            st.download_button(
                title,
                # Made on request, not each time the page is drawn.
                data=partial(_noted, study, who, name, partial(counted, study, as_csv, make)),
                file_name=name,
                mime="text/csv",
                on_click="ignore",
            )
        sidecar = sidecar_path(Path("ratings.csv")).name
        make_sidecar = partial(_sidecar, study, _ATTACKED if audited else "")
        st.download_button(
            "Scales, thresholds and settings",
            data=partial(_noted, study, who, sidecar, make_sidecar),
            file_name=sidecar,
            mime="application/toml",
            on_click="ignore",
        )
    st.header("Report", anchor=False)
    _report(study)


def _noted(study: Study, who: str, name: str, make: Callable[[], bytes]) -> bytes:
    """A file; its download is noted in the log."""
    content = make()
    note_act(study.store, "export", name, f"{len(content):,} bytes", who)
    return content


def _sidecar(study: Study, attacked: str) -> bytes:
    """Return the sidecar that `evenhand check ratings.csv` reads with the ratings, the units and,
    after an injection audit, its file of `attacked` answers.
    """
    return sidecar_text(study, units_path(Path("ratings.csv")).name, attacked).encode()


@st.fragment(run_every="5s")
def _report(study: Study) -> None:
    who = require(study, "lead").name
    figures = latest_figures(study)
    if figures is None:
        return
    if figures.version != data_version(study):
        st.text(written("lead.report_older"))
    with st.container(horizontal=True):
        for name, (title, mime) in _REPORT.items():
            file = figures.folder / name
            if file.is_file():
                st.download_button(
                    title,
                    data=file.read_bytes(),
                    file_name=name,
                    mime=mime,
                    on_click=note_act,
                    args=(study.store, "export", name, "", who),
                )


# The log of the leads' acts: who, what and when. Nothing here is ever changed or removed.

_MOST = 500
_ACTS = (
    "act_account",
    "act_adjudication",
    "act_backup",
    "act_disagreement",
    "act_exclude",
    "act_export",
    "act_file",
    "act_flag_closed",
    "act_flag_reopened",
    "act_flag_withdrawn",
    "act_grades",
    "act_import",
    "act_invite",
    "act_link",
    "act_pause",
    "act_place",
    "act_readmit",
    "act_responses",
    "act_resume",
    "act_rewording",
    "act_sample",
    "act_settings",
    "act_store",
    "act_study",
    "act_threshold",
)


def show_log(study: Study) -> None:
    require(study, "lead")
    found = acts(study.store)
    if found.empty:
        st.text(written("lead.no_acts"))
        return
    shown = found.head(_MOST)
    shown = shown.assign(kind=shown["kind"].map(_said))
    st.text(written("lead.acts", shown=len(shown), count=len(found)))
    headings = {"done_by": "Who", "kind": "What", "detail": "In detail"}
    columns = "created_at done_by kind about detail"
    show_table(shown, "What leads did", columns, headings=headings)


def _said(kind: str) -> str:
    (key,) = (each for each in _ACTS if each == f"act_{kind.replace(' ', '_')}")
    return written(f"lead.{key}")
