"""Units that people disagree on: their labels without names, the rubric's options, a decision."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import get_args

import streamlit as st

from evenhand.annotate_app.drawn import drawn_text
from evenhand.annotate_app.lead.parts.counting import counted
from evenhand.annotate_app.lead.parts.decider import Sent, show_decider
from evenhand.annotate_app.lead.parts.tables import show_table, to_the_minute
from evenhand.annotate_app.lead.parts.unit_texts import marked_blocks, people_text
from evenhand.annotate_app.logins.lead_login import admitted, require
from evenhand.annotate_app.plain_text import block, heading, show, show_complaint
from evenhand.errors import InputError
from evenhand.rubrics.options import NONE, Option
from evenhand.rubrics.rendering import TextBlock
from evenhand.study import Study
from evenhand.study.access.lead_login import Visitor
from evenhand.study.lead.adjudication import (
    QueuedUnit,
    Rule,
    counted_marks,
    decide,
    give_back,
    leases_of_others,
    open_next,
    past_decisions,
    reopen,
    take_over,
)
from evenhand.study.questions import Key
from evenhand.texts import written

_RULES = {
    "no_majority": "No category has a majority",
    "any": "The labels are not all the same",
    "distance_2": "Two labels lie two or more steps apart",
}
_LISTED = 5
_PASSED_OVER = "adjudication_passed_over"
_OPEN = "adjudication_open"
_REVISED = "adjudication_revised"
_COMPLAINT = "adjudication_complaint"


def show_adjudication(study: Study) -> None:
    who = require(study, "lead", "expert")
    rules, rubrics = st.columns(2)
    rule = rules.selectbox("What is shown", get_args(Rule), index=1, format_func=_RULES.__getitem__)
    titles = {name: rubric.title for name, rubric in study.rubrics.items()}
    rubric = rubrics.selectbox(
        "Rubric", ["", *titles], format_func=lambda name: titles.get(name, "All rubrics")
    )
    try:
        case = _opened(study, who, rule, rubric)
    except InputError as error:
        _close()
        show_complaint(str(error))
        case = None
    if case is not None:
        _show_case(study, who, case)
    _show_past(study, who)


def leave_adjudication(study: Study) -> None:
    """Release the unit that a visitor has open, at logout."""
    if (who := admitted(study, "lead", "expert")) is not None:
        give_back(study.store, who.name)


def _opened(study: Study, who: Visitor, rule: Rule, rubric: str) -> QueuedUnit | None:
    """The decided unit that is being revised, or the one whose turn it is; shows how many wait."""
    revised: Key | None = st.session_state.get(_REVISED)
    if revised is not None:
        return counted(study, reopen, who.name, revised)
    passed_over = st.session_state.setdefault(_PASSED_OVER, set())
    at: Key | None = st.session_state.get(_OPEN)
    case, waiting = counted(study, open_next, who.name, rule, rubric, passed_over, at)
    if not waiting:
        st.text(written("oversight.adjudicated"))
        return None
    st.text(written("lead.to_adjudicate", count=waiting))
    for lease in leases_of_others(study.store, who.name)[:_LISTED]:
        st.text(written("lead.open_elsewhere", who=lease.holder, since=lease.since))
        if case is None:
            taking = written("lead.take_over", who=lease.holder)
            act = (study, lease.key)
            st.button(taking, key=_token(lease.key), on_click=_take_over, args=act)
    if case is not None:
        st.session_state[_OPEN] = case.key
    return case


def _take_over(study: Study, key: Key) -> None:
    """Open a unit that another adjudicator has open."""
    if (who := admitted(study, "lead", "expert")) is not None:
        take_over(study.store, who.name, key)
        st.session_state[_OPEN] = key


def _show_case(study: Study, who: Visitor, case: QueuedUnit) -> None:
    people = people_text(study, case.unit_id, case.rubric)
    number = people.number
    names = {
        option.key: option.key if number else f"{option.key}: {option.name}"
        for option in people.options
    }
    if people.several:
        names = {label: label for label in sorted(set(case.labels))}
    texts, decision = st.columns([3, 2], gap="large")
    with texts:
        show(heading("Unit"), _texts(study, case, people.blocks))
    with decision, st.container(key="decision"):
        show(heading(people.title), block(people.question))
        counts = ((name, case.labels.count(key)) for key, name in names.items())
        st.text("People chose: " + "; ".join(f"{name} ({n})" for name, n in counts if n))
        for reason in case.reasons:
            show(block(reason, "quote", "Someone wrote"))
        if case.key == st.session_state.get(_REVISED):
            _say_decided(study, who, case)
        complaint = st.session_state.pop(_COMPLAINT, "")
        options, said = ((), number.said) if number else (people.options, "")
        if people.several:
            options = (*options, Option(key=NONE, name="None of these"))
        show_decider(
            _token(case.key),
            options,
            said,
            complaint,
            lambda sent: _take(study, sent),
            several=people.several,
        )
        st.text(written("lead.keys"))
        with st.expander("Instructions"):
            # Only what the lead wrote is drawn with its links, not what a unit filled into it.
            own = people.instructions == study.rubrics[case.rubric].instructions
            show(drawn_text(people.instructions) if own else block(people.instructions))


def _texts(study: Study, case: QueuedUnit, texts: Sequence[TextBlock]) -> str:
    """The unit's texts; words that people marked show by how many, not by whom."""

    def said(who: Sequence[str]) -> str:
        if not who:
            return ""
        return written("evidence.marked_by_some", count=len(who), labels=len(case.labels))

    return marked_blocks(study, texts, counted_marks(study, case.key), said)


def _take(study: Study, sent: Sent) -> None:
    """Store the decision on the unit that is open, or pass it over."""
    who = admitted(study, "lead", "expert")
    if who is None:
        return
    key: Key | None = st.session_state.get(_REVISED) or st.session_state.get(_OPEN)
    try:
        if key is None or sent.token != _token(key):
            raise InputError(written("lead.unit_changed"))
        if sent.passes:
            st.session_state.setdefault(_PASSED_OVER, set()).add(key)
        else:
            decide(study, who.name, *key, sent.label, sent.reason, holder=who.name)
        _close()
    except InputError as error:
        st.session_state[_COMPLAINT] = str(error)


def _close() -> None:
    st.session_state.pop(_OPEN, None)
    st.session_state.pop(_REVISED, None)


def _say_decided(study: Study, who: Visitor, case: QueuedUnit) -> None:
    past = past_decisions(study, who.name)
    for row in past[(past["unit_id"] == case.unit_id)].to_dict("records"):
        if row["rubric"] == case.rubric:
            at = to_the_minute(row["created_at"])
            text = written("lead.revising", label=row["label"], at=at, reason=row["reason"])
            show(block(text))


def _show_past(study: Study, who: Visitor) -> None:
    """Show past decisions: everybody's to the lead, their own to an adjudicator; each may revise
    their own.
    """
    st.header("Past decisions", anchor=False)
    past = past_decisions(study, "" if who.role == "lead" else who.name)
    if past.empty:
        st.text(written("lead.no_decisions"))
        return
    past = past.assign(number=range(len(past), 0, -1), at=past["created_at"].map(to_the_minute))
    titles = {
        "number": "No.",
        "at": "When (UTC)",
        "rubric": "Rubric",
        "label": "Decision",
        "reason": "Reason",
        "done_by": "By",
    }
    show_table(past, "Decisions so far, the latest first", titles)
    own = past[past["done_by"] == who.name]
    rows = {row["number"]: row for row in own.to_dict("records")}
    with st.form("revise", border=False, clear_on_submit=True):
        number = st.selectbox("Revise a decision of yours", list(rows), index=None,
            format_func=lambda n: f"No. {n}: {rows[n]['label']} on {rows[n]['rubric']}",
            placeholder="Choose a decision")  # fmt: skip
        chosen = st.form_submit_button("Open it again")
    if chosen and number is not None:
        st.session_state[_REVISED] = (rows[number]["unit_id"], rows[number]["rubric"])
        st.rerun()


def _token(key: Key) -> str:
    """A name for the unit on the page, since its own id may reveal the subject."""
    return hashlib.sha256("\x1f".join(key).encode()).hexdigest()[:16]
