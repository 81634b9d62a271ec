"""A new study from uploaded files: first a preview, then the study itself."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from evenhand.annotate_app.lead.parts.tables import show_table
from evenhand.annotate_app.lead.parts.uploads import MOST_MB, TABLES, written_down
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.errors import InputError
from evenhand.reporting.new_study import (
    StudyPreview,
    create_and_preview,
    folder_beside,
    preview_plan,
)
from evenhand.reporting.workers import apart
from evenhand.rubrics import Rubric, load_rubric, shipped_rubrics
from evenhand.study import Study
from evenhand.study.creation import USUAL_SAMPLE, StudyPlan
from evenhand.study.store.logs.decisions import note_act
from evenhand.texts import written

_MOST_SAMPLED = 100_000
_MOST_RATERS = 50


def show_new_study(study: Study) -> None:
    who = require(study, "lead").name
    st.text(written("lead.new_study"))
    known = {name: load_rubric(name) for name in shipped_rubrics()} | study.rubrics
    with st.form("new_study", border=False):
        name = st.text_input("Name of the study, and of its folder", autocomplete="off")
        pairs = st.file_uploader("Pairs of prompts", TABLES, max_upload_size=MOST_MB)
        responses = st.file_uploader(
            "Responses, if there are any yet", TABLES, max_upload_size=MOST_MB
        )
        rubrics = st.multiselect("Rubrics", list(known), placeholder="Choose the rubrics")
        left, middle, right = st.columns(3)
        sample = left.number_input("Pairs to label", 1, _MOST_SAMPLED, USUAL_SAMPLE)
        raters = middle.number_input("Raters on each unit", 1, _MOST_RATERS, 3)
        seed = right.number_input("Seed of the sample", 0, 2**31 - 1, 1)
        look, create, _ = st.columns([1, 1, 2])
        looks = look.form_submit_button("See what it means", width="stretch")
        creates = create.form_submit_button("Create the study", width="stretch")
    if not (looks or creates):
        return
    try:
        with written_down(pairs=pairs, responses=responses) as files:
            chosen = [known[each] for each in rubrics]
            plan = _plan(files, chosen, int(sample), int(raters), int(seed))
            folder = folder_beside(study.folder, name.strip()) if creates else None
            # In a process apart: a file that harms its reader does not affect the annotators.
            with st.spinner("Reading the files"):
                if folder is None:
                    found = apart(preview_plan, plan)
                else:
                    found = apart(create_and_preview, folder, plan)
    except InputError as error:
        show_complaint(str(error))
        return
    if folder is not None:
        note_act(study.store, "study", folder.name, "", who)
        st.text(written("lead.new_written", name=folder.name))
    _show_preview(found)


def _plan(
    files: dict[str, Path | None], rubrics: list[Rubric], sample: int, raters: int, seed: int
) -> StudyPlan:
    if files["pairs"] is None:
        raise InputError("upload a file of pairs")
    if not rubrics:
        raise InputError("choose at least one rubric")
    return StudyPlan(
        pairs=files["pairs"],
        responses=files["responses"],
        rubrics=rubrics,
        sample=sample,
        raters_per_unit=raters,
        seed=seed,
    )


def _show_preview(found: StudyPreview) -> None:
    import pandas as pd

    sizes = {"sampled": found.sampled, "total": found.total, "noun": found.noun}
    st.text(written("lead.new_sampled", **sizes))
    if not found.load.rubrics:
        st.text(written("lead.new_no_responses"))
    else:
        rows = [
            (each.rubric, each.units, each.raters, each.judgments, each.hours)
            for each in found.load.rubrics
        ]
        columns = ["rubric", "units", "raters", "judgments", "hours"]
        titles = {name: name.capitalize() for name in columns}
        show_table(pd.DataFrame(rows, columns=columns), "Work", titles, {"hours": ".0f"})
        load = found.load
        pace = {"words": load.words_per_minute, "seconds": load.seconds_to_decide}
        st.text(written("lead.new_hours", **pace))
    for sentence in (found.display, *found.precision):
        if sentence:
            st.text(sentence)
