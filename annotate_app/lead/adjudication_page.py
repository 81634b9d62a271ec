"""Units that people disagree on: their labels without names, and a decision."""

from __future__ import annotations

import hashlib
from typing import get_args

import streamlit as st

from evenhand.annotate_app.lead_login import require
from evenhand.annotate_app.plain_text import block, show, show_complaint
from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.study import Study
from evenhand.study.lead.adjudication import QueuedUnit, Rule, adjudication_queue, decide

_RULES = {
    "no_majority": "No category has a majority",
    "any": "The labels are not all the same",
    "distance_2": "Two labels lie two or more steps apart",
}
_PASSED_OVER = "adjudication_passed_over"


def show_adjudication(study: Study) -> None:
    who = require(study, "lead", "expert")
    rule = st.selectbox("What is shown", get_args(Rule), index=1, format_func=_RULES.__getitem__)
    passed_over = st.session_state.setdefault(_PASSED_OVER, set())
    queue = adjudication_queue(study, rule)
    ahead = [each for each in queue if _key(each) not in passed_over] or queue
    if not ahead:
        st.text("Nothing is left to adjudicate.")
        return
    st.text(f"{len(queue)} to adjudicate.")
    _show_case(study, who.name, ahead[0])


def _show_case(study: Study, name: str, case: QueuedUnit) -> None:
    rubric = study.rubrics[case.rubric]
    order = "ab" if rubric.unit == "pair" else ""
    people = rubric.for_people(study.values(rubric, case.unit_id, order or "ab"))
    st.header("Unit", anchor=False)
    show(*(block(each.text, "quote", each.label) for each in people.blocks))
    st.header("Question", anchor=False)
    st.text(people.question)
    names = {option.key: f"{option.key}: {option.name}" for option in people.options}
    st.text("People chose: " + "; ".join(names[label] for label in case.labels))
    for reason in case.reasons:
        show(block(reason, "quote", "Someone wrote"))
    _decision(study, name, case, rubric, names)


def _decision(
    study: Study, name: str, case: QueuedUnit, rubric: Rubric, names: dict[str, str]
) -> None:
    # The key holds no name: Streamlit writes it into the page. Another unit is another form, so
    # that no answer is there before it is given.
    key = _key(case)
    with st.form(f"decision-{key}", border=False):
        label = st.selectbox(
            "Your decision",
            rubric.categories,
            index=None,
            format_func=names.__getitem__,
            placeholder="Choose an option",
            key=f"label-{key}",
        )
        reason = st.text_area("Your reason", key=f"reason-{key}")
        store, pass_over, _ = st.columns([1, 1, 2])
        decided = store.form_submit_button("Store the decision", type="primary", width="stretch")
        skipped = pass_over.form_submit_button("Look at the next", width="stretch")
    if skipped:
        st.session_state[_PASSED_OVER].add(key)
        st.rerun()
    if decided:
        try:
            if label is None:
                raise InputError("choose an option")
            decide(study, name, case.unit_id, case.rubric, label, reason)
        except InputError as error:
            show_complaint(str(error))
        else:
            st.rerun()


def _key(case: QueuedUnit) -> str:
    return hashlib.sha256(f"{case.unit_id}\x1f{case.rubric}".encode()).hexdigest()[:16]
