"""Units that people disagree on: their labels without names, the rubric's options, a decision."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import streamlit as st

from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.drawn import drawn_text
from evenhand.annotate_app.lead.parts.counting import counted
from evenhand.annotate_app.lead.parts.decider import read_decision, show_decider
from evenhand.annotate_app.lead.parts.tables import show_table, to_the_minute
from evenhand.annotate_app.lead.parts.unit_texts import marked_blocks, people_text
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import block, heading, show, show_complaint
from evenhand.errors import InputError
from evenhand.rubrics.options import NONE, Option
from evenhand.rubrics.rendering import TextBlock
from evenhand.study import Study
from evenhand.study.access.accounts import Role
from evenhand.study.access.lead_login import Visitor
from evenhand.study.lead.adjudication import (
    QueuedUnit,
    Rule,
    counted_marks,
    decide,
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
_ROLES: tuple[Role, ...] = ("lead", "expert")
_DESK = "adjudication"


@dataclass
class _Desk:
    """What a visitor has before them. Acts change it, so it is an object that is no part of
    Streamlit's session.
    """

    open: Key | None = None
    revised: Key | None = None
    passed_over: set[Key] = field(default_factory=set)
    complaint: str = ""

    @property
    def key(self) -> Key | None:
        return self.revised or self.open

    def clear(self) -> None:
        self.open = self.revised = None


def show_adjudication(study: Study) -> None:
    who = require(study, *_ROLES)
    rules, rubrics = st.columns(2)
    rule = rules.selectbox("What is shown", get_args(Rule), index=1, format_func=_RULES.__getitem__)
    titles = {name: rubric.title for name, rubric in study.rubrics.items()}
    rubric = rubrics.selectbox(
        "Rubric", ["", *titles], format_func=lambda name: titles.get(name, "All rubrics")
    )
    desk: _Desk = st.session_state.setdefault(_DESK, _Desk())
    try:
        case = _opened(study, who, desk, rule, rubric)
    except InputError as error:
        desk.clear()
        show_complaint(str(error))
        case = None
    if case is not None:
        _show_case(study, who, desk, case)
    _show_past(study, who, desk)


def _opened(study: Study, who: Visitor, desk: _Desk, rule: Rule, rubric: str) -> QueuedUnit | None:
    """The decided unit that is being revised, or the one whose turn it is; shows how many wait."""
    if desk.revised is not None:
        return counted(study, reopen, who.name, desk.revised)
    passed_over = set(desk.passed_over)
    case, waiting = counted(study, open_next, who.name, rule, rubric, passed_over, desk.open)
    if not waiting:
        st.text(written("oversight.adjudicated"))
        return None
    st.text(written("lead.to_adjudicate", count=waiting))
    for lease in leases_of_others(study.store, who.name)[:_LISTED]:
        st.text(written("lead.open_elsewhere", who=lease.holder, since=lease.since))
        if case is None:
            taking = written("lead.take_over", who=lease.holder)
            opening = lead_callback(study, "lease", _take_over, desk, lease.key, roles=_ROLES)
            st.button(taking, key=_token(lease.key), on_click=opening)
    show_outcome("lease")
    if case is not None:
        desk.open = case.key
    return case


def _take_over(study: Study, who: Visitor, desk: _Desk, key: Key) -> None:
    """Open a unit that another adjudicator has open."""
    take_over(study.store, who.name, key)
    desk.open = key


def _show_case(study: Study, who: Visitor, desk: _Desk, case: QueuedUnit) -> None:
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
        if case.key == desk.revised:
            _say_decided(study, who, case)
        complaint, desk.complaint = desk.complaint, ""
        options, said = ((), number.said) if number else (people.options, "")
        if people.several:
            options = (*options, Option(key=NONE, name="None of these"))
        show_decider(
            _token(case.key),
            options,
            said,
            complaint,
            lead_callback(study, "decision", _take, desk, roles=_ROLES),
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


def _take(study: Study, who: Visitor, desk: _Desk, *, decider: Mapping[str, Any]) -> None:
    """Store the decision on the unit that is open, or pass it over."""
    if (sent := read_decision(decider.get("sent"))) is None:
        return
    key = desk.key
    try:
        if key is None or sent.token != _token(key):
            raise InputError(written("lead.unit_changed"))
        if sent.passes:
            desk.passed_over.add(key)
        else:
            decide(study, who.name, *key, sent.label, sent.reason, holder=who.name)
        desk.clear()
    except InputError as error:
        desk.complaint = str(error)


def _say_decided(study: Study, who: Visitor, case: QueuedUnit) -> None:
    past = past_decisions(study, who.name)
    for row in past[(past["unit_id"] == case.unit_id)].to_dict("records"):
        if row["rubric"] == case.rubric:
            at = to_the_minute(row["created_at"])
            text = written("lead.revising", label=row["label"], at=at, reason=row["reason"])
            show(block(text))


def _show_past(study: Study, who: Visitor, desk: _Desk) -> None:
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
        desk.revised = (rows[number]["unit_id"], rows[number]["rubric"])
        st.rerun()


def _token(key: Key) -> str:
    """A name for the unit on the page, since its own id may reveal the subject."""
    return hashlib.sha256("\x1f".join(key).encode()).hexdigest()[:16]
