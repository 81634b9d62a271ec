"""A new study from uploaded files: first a preview, then the study itself."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from evenhand.annotate_app.lead.parts.tables import show_table
from evenhand.annotate_app.lead.parts.uploads import MOST_MB, OF_TOOLS, TABLES, written_down
from evenhand.annotate_app.logins.lead_login import require, root_address
from evenhand.annotate_app.neighbours import add_study, check_names, names_in, place_of_studies
from evenhand.annotate_app.plain_text import show, show_complaint
from evenhand.errors import InputError
from evenhand.reporting.item_study import ItemOptions
from evenhand.reporting.labelling import LabelOptions, create_items, preview_items
from evenhand.reporting.new_study import (
    StudyPreview,
    create_and_preview,
    folder_beside,
    preview_plan,
)
from evenhand.reporting.workers import apart
from evenhand.rubrics import Rubric, load_rubric, shipped_rubrics
from evenhand.study import Study, open_study
from evenhand.study.access.beside import settle_beside
from evenhand.study.access.lead_login import LINK_PARAMETER, Visitor, new_link_token
from evenhand.study.creation import USUAL_SAMPLE, StudyPlan
from evenhand.study.store.logs.decisions import note_act
from evenhand.texts import written

_MOST_SAMPLED = 100_000
_MOST_RATERS = 50


_KINDS = {"items": "Rows of a file: responses, conversations, logs", "pairs": "Paired prompts"}


def show_new_study(study: Study) -> None:
    who = require(study, "lead")
    st.text(written("lead.new_study"))
    kind = st.radio("What people rate", list(_KINDS), format_func=_KINDS.__getitem__)
    if kind == "items":
        _of_items(study, who)
    else:
        _of_pairs(study, who)


def _of_items(study: Study, who: Visitor) -> None:
    with st.form("new_items", border=False):
        name = _asked_name()
        items = st.file_uploader(
            "Items: a table, or the file of a tool", OF_TOOLS, max_upload_size=MOST_MB
        )
        rubrics = st.multiselect(
            "Rubrics", list(shipped_rubrics()), placeholder="Choose one, or ask a question"
        )
        question = st.text_input("Or a question of your own", autocomplete="off")
        options = st.text_input("Its answers, such as yes, no", autocomplete="off")
        with st.expander("Columns, where their names do not say what they are"):
            columns = {
                "show": st.text_input("What raters read, in this order", autocomplete="off"),
                "subject": st.text_input("Who answered", autocomplete="off"),
                "cluster": st.text_input("What belongs together", autocomplete="off"),
                "judge": st.text_input(
                    "A judge's labels, which raters never see", autocomplete="off"
                ),
            }
        sample, raters, seed, looks, creates = _numbers("Items to label", 1, None)
    if not (looks or creates):
        return
    wanted = LabelOptions(
        items=ItemOptions(
            show=_listed(columns["show"]),
            subject=_listed(columns["subject"]),
            cluster=columns["cluster"].strip(),
            judge=columns["judge"].strip(),
            rubrics=rubrics,
            question=question.strip(),
            options=_listed(options),
        ),
        sample=sample,
        seed=seed,
        raters=raters,
    )
    try:
        with written_down(OF_TOOLS, items=items) as files:
            if (file := files["items"]) is None:
                raise InputError("upload a file of items")
            folder = _new_folder(study, name.strip()) if creates else None
            with st.spinner("Reading the file"):
                if folder is None:
                    found, said = apart(preview_items, file, wanted)
                else:
                    found, said = apart(create_items, folder, file, wanted)
    except InputError as error:
        show_complaint(str(error))
        return
    if folder is not None:
        _say_made(study, folder, who)
    for sentence in said:
        st.text(sentence)
    _show_preview(found)


def _asked_name() -> str:
    name = st.text_input("Name of the study, and of its folder", autocomplete="off")
    if place_of_studies():
        st.text(written("several.name_is_read"))
    return name


def _numbers(what: str, raters: int, sample: int | None) -> tuple[int | None, int, int, bool, bool]:
    """The sample's size, the raters on each unit, the seed, and which button was pressed."""
    left, middle, right = st.columns(3)
    usual = f"{USUAL_SAMPLE}, or all there are"
    wanted = left.number_input(what, 1, _MOST_SAMPLED, sample, placeholder=usual)
    people = middle.number_input("Raters on each unit", 1, _MOST_RATERS, raters)
    seed = right.number_input("Seed of the sample", 0, 2**31 - 1, 1)
    look, create, _ = st.columns([1, 1, 2])
    looks = look.form_submit_button("See what it means", width="stretch")
    creates = create.form_submit_button("Create the study", width="stretch")
    return wanted and int(wanted), int(people), int(seed), looks, creates


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _new_folder(study: Study, name: str) -> Path:
    """The new study's folder. Raises InputError where it, or its address, is another's."""
    folder = folder_beside(study.folder, name)
    if place := place_of_studies():
        check_names([*names_in(place), name])
    return folder


def _say_made(study: Study, folder: Path, who: Visitor) -> None:
    name = folder.name
    note_act(study.store, "study", name, "", who.name)
    if (place := place_of_studies()) is None:
        st.text(written("lead.new_written", name=name))
        return
    with open_study(folder) as made:
        goes_along = settle_beside(study, made, who)
        token = new_link_token(made.store)
    add_study(place, folder)
    around = root_address().rstrip("/").rpartition("/")[0]
    st.text(written("several.opened", name=name, address=f"{around}/{name}/"))
    if goes_along:
        st.text(written("several.goes_along"))
    way_in = written("several.lead_link", name=name)
    link = f'<a href="../{name}/?{LINK_PARAMETER}={token}">{way_in}</a>'
    show(f'<p class="evenhand-way-in">{link}</p>')


def _of_pairs(study: Study, who: Visitor) -> None:
    known = {name: load_rubric(name) for name in shipped_rubrics()} | study.rubrics
    with st.form("new_study", border=False):
        name = _asked_name()
        pairs = st.file_uploader("Pairs of prompts", TABLES, max_upload_size=MOST_MB)
        responses = st.file_uploader(
            "Responses, if there are any yet", TABLES, max_upload_size=MOST_MB
        )
        rubrics = st.multiselect("Rubrics", list(known), placeholder="Choose the rubrics")
        sample, raters, seed, looks, creates = _numbers("Pairs to label", 3, USUAL_SAMPLE)
    if not (looks or creates):
        return
    try:
        with written_down(pairs=pairs, responses=responses) as files:
            chosen = [known[each] for each in rubrics]
            plan = _plan(files, chosen, sample, raters, seed)
            folder = _new_folder(study, name.strip()) if creates else None
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
        _say_made(study, folder, who)
    _show_preview(found)


def _plan(
    files: dict[str, Path | None], rubrics: list[Rubric], sample: int | None, raters: int, seed: int
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
