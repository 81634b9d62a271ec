"""The pages on units whose labels differ: among people, for an adjudicator to decide, with their
labels without names; and between graders and people.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import streamlit as st
from streamlit.components.v2 import component

from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.report.sections.raters import kind_title
from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.html_texts import block, drawn_text, heading, items, show, show_complaint
from evenhand.annotate_app.lead.parts import (
    WORDS,
    PageLink,
    counted,
    latest,
    latest_figures,
    marked_blocks,
    page_of,
    people_text,
    show_table,
    to_the_minute,
    unit_blocks,
)
from evenhand.annotate_app.logins import require
from evenhand.errors import InputError
from evenhand.reporting.analysing import quoted_marks, quoted_remarks, quoted_replies
from evenhand.reporting.report import DISAGREEMENTS_FILE
from evenhand.rubrics.options import Option
from evenhand.study import Study
from evenhand.study.access import Role, Visitor
from evenhand.study.lead.disagreements import (
    KINDS,
    Kind,
    QueuedUnit,
    SortedDisagreement,
    counted_marks,
    decide,
    final_labels,
    grader_labels,
    last_label,
    open_next,
    past_decisions,
    raised_flags,
    reopen,
    sort_disagreement,
    sorted_so_far,
)
from evenhand.study.prompts.units import Key
from evenhand.texts import written

# The options, the reason and the keys of a decision, as a part of the page of its own. A choice
# stays in the browser until it is sent, with the unit that it is about: keys pressed faster than
# the page is drawn never decide the next unit.

LONGEST_REASON = 4000
_KEY = "decision.decider"
_HERE = Path(__file__).parent
_mount = component(
    "evenhand_decider",
    html=(_HERE / "decider.html").read_text("utf-8"),
    css=(_HERE / "decider.css").read_text("utf-8"),
    js=(_HERE / "decider.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Sent:
    """A decision on the unit of this token, or the wish to skip it."""

    token: str
    label: str = ""
    reason: str = ""
    passes: bool = False


def option_rows(options: Sequence[Option], given: Sequence[str] = ()) -> list[dict[str, str]]:
    """The options as drawn, each with its digit, if any, and how often it was `given`.

    Options whose keys are digits have these; else the first nine are numbered.
    """
    have_digits = any(option.key.isdecimal() and len(option.key) == 1 for option in options)
    digits = "0123456789" if have_digits else "123456789"
    rows = []
    for place, option in enumerate(options, start=1):
        digit = option.key if have_digits else str(place)
        texts = {"key": option.key, "name": option.name, "description": option.description}
        votes = written("lead.votes", count=given.count(option.key)) if option.key in given else ""
        rows.append(texts | {"digit": digit if digit in digits else "", "votes": votes})
    return rows


def read_decision(sent: Any) -> Sent | None:
    """Read a decision from the page; None if malformed, since any client may send one."""
    if not isinstance(sent, dict):
        return None
    texts = [sent.get(name, "") for name in ("token", "label", "reason")]
    if not all(isinstance(text, str) and len(text) <= LONGEST_REASON for text in texts):
        return None
    token, label, reason = texts
    return Sent(token, label, reason, passes=sent.get("passes") is True)


_ROLES: tuple[Role, ...] = ("lead", "expert")
_DESK = "adjudication"


@dataclass
class _Desk:
    """A visitor's work: a mutable object, since acts may not write to Streamlit's session."""

    open: Key | None = None
    revised: Key | None = None
    passed_over: set[Key] = field(default_factory=set)
    complaint: str = ""
    seen: int | None = None
    """The latest label when the unit was opened."""

    @property
    def key(self) -> Key | None:
        return self.revised or self.open

    def clear(self) -> None:
        self.open = self.revised = self.seen = None


def show_adjudication(study: Study) -> None:
    who = require(study, *_ROLES)
    desk: _Desk = st.session_state.setdefault(_DESK, _Desk())
    unit, of = (st.query_params.pop(name, "") for name in ("unit", "rubric"))
    if unit and who.role == "lead":
        desk.revised, desk.seen = (unit, of), None
    try:
        case = _opened(study, who, desk)
    except InputError as error:
        desk.clear()
        show_complaint(str(error))
        case = None
    if case is not None:
        _show_case(study, who, desk, case)
    elif desk.complaint:
        show_complaint(desk.complaint)
        desk.complaint = ""
    _show_past(study, who, desk)


def _opened(study: Study, who: Visitor, desk: _Desk) -> QueuedUnit | None:
    """The decided unit that is being revised, or the one whose turn it is; shows how many wait."""
    if desk.seen is None:
        desk.seen = last_label(study.store)
    if desk.revised is not None:
        return counted(study, reopen, desk.revised)
    passed_over = set(desk.passed_over)
    case, waiting = counted(study, open_next, who.name, passed_over, desk.open)
    if not waiting:
        st.text(written("oversight.adjudicated"))
        return None
    st.text(written("lead.to_adjudicate", count=waiting))
    desk.open = case.key if case else None
    return case


def _show_case(study: Study, who: Visitor, desk: _Desk, case: QueuedUnit) -> None:
    people = people_text(study, case.unit_id, case.rubric)
    kind, given = people.kind, case.labels

    def marked_by(raters: Sequence[str]) -> str:  # how many, not who
        return written("evidence.marked_by_some", count=len(raters), labels=len(given))

    texts, decision = st.columns([3, 2])
    with texts:
        marks = counted_marks(study, case.key)
        # To the lead by its cluster alone: the rest of an id may name the subject.
        number = f" {case.unit_id.partition('|')[0]}" if who.role == "lead" else ""
        show(heading(f"Item{number}"), marked_blocks(study, people.blocks, marks, marked_by))
    with decision, st.container(key="decision"):
        show(heading(people.title), block(people.question))
        if not kind.listed:
            counts = (f"{label} ({given.count(label)})" for label in kind.in_order(set(given)))
            st.text("Annotators chose: " + "; ".join(counts))
        for reason in case.reasons:
            show(block(reason, "quote", "Someone wrote"))
        if case.key == desk.revised:
            past = past_decisions(study, who.name)
            same = (past["unit_id"] == case.unit_id) & (past["rubric"] == case.rubric)
            for row in past[same].to_dict("records"):
                at = to_the_minute(row["created_at"])
                text = written("lead.revising", label=row["label"], at=at, reason=row["reason"])
                show(block(text))
        chosen = [key for label in given for key in kind.parts(label) or [label]]
        data = {
            "token": _token(case.key),
            "options": option_rows(kind.choices("None of these"), chosen),
            "number": "" if kind.listed else kind.permitted,
            "several": not kind.is_single,
            "reasons": list(WORDS["usual_reasons"].values()),
            "complaint": desk.complaint,
        }
        desk.complaint = ""
        # Called before the run that follows a decision, on whichever unit; the field
        # `decision.decider` holds it then, as `sent`.
        taking = lead_callback(study, "decision", _take, desk, roles=_ROLES)
        _mount(key=_KEY, data=data, on_sent_change=taking)
        st.text(written("lead.keys"))
        with st.expander("Instructions"):
            # Only what the lead wrote is drawn with its links, not what a unit filled into it.
            is_whole = people.instructions == study.rubrics[case.rubric].instructions
            show(drawn_text(people.instructions) if is_whole else block(people.instructions))


def _take(study: Study, who: Visitor, desk: _Desk, *, decider: Mapping[str, Any]) -> None:
    """Save decision on the unit that is open, or skip it."""
    if (sent := read_decision(decider.get("sent"))) is None:
        return
    key = desk.key
    try:
        if key is None or sent.token != _token(key):
            raise InputError(written("lead.unit_changed"))
        if sent.passes:
            desk.passed_over.add(key)
        else:
            desk.complaint = decide(study, who.name, *key, sent.label, sent.reason, desk.seen)
        desk.clear()
    except InputError as error:
        desk.complaint = str(error)


def _show_past(study: Study, who: Visitor, desk: _Desk) -> None:
    """Show past decisions: to the lead all, to an adjudicator their own, which they may revise."""
    st.header("Past decisions", anchor=False)
    past = past_decisions(study, "" if who.role == "lead" else who.name)
    if past.empty:
        st.text(written("lead.no_decisions"))
        return
    past = past.assign(number=range(len(past), 0, -1))
    columns = "number created_at rubric label reason done_by"
    headings = {"number": "No.", "label": "Decision"}
    show_table(past, "Decisions so far, the latest first", columns, headings=headings)
    rows = {row["number"]: row for row in past[past["done_by"] == who.name].to_dict("records")}
    with st.form("revise", border=False, clear_on_submit=True):
        number = st.selectbox("Revise a decision of yours", list(rows), index=None,
            format_func=lambda n: f"No. {n}: {rows[n]['label']} on {rows[n]['rubric']}",
            placeholder="Choose a decision")  # fmt: skip
        chosen = st.form_submit_button("Open it again")
    if chosen and number is not None:
        desk.revised, desk.seen = (rows[number]["unit_id"], rows[number]["rubric"]), None
        st.rerun()


def _token(parts: Key | About) -> str:
    """A name for a unit or a disagreement on the page, since a unit's id may reveal the subject."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


# Every item with its labels, from the table of final labels that is exported.

_MOST_ITEMS = 50
_TO_ITEM = {"item_id": partial(page_of, "Items", "item")}
_DECIDED, _ORDERS = WORDS["decided"], WORDS["orders"]


def show_items(study: Study) -> None:
    require(study, "lead")
    with st.container(horizontal=True):
        searched = st.text_input("Item id, or part of it", key="item", bind="query-params")
        titles = {name: rubric.title for name, rubric in study.rubrics.items()}
        all_titles = {"": "All rubrics"} | titles
        rubric = st.selectbox("Rubric", list(all_titles), format_func=all_titles.__getitem__)
        decided = st.selectbox("Decided by", list(_DECIDED), format_func=_DECIDED.__getitem__)
        order = st.selectbox("Order", list(_ORDERS), format_func=_ORDERS.__getitem__)
    with_graders = st.toggle("Show graders' labels")
    flags = Counter((flag.unit_id, flag.rubric) for flag in raised_flags(study) if flag.is_open)
    items_table = latest(study, final_labels)
    keys = list(zip(items_table["item_id"], items_table["rubric"], strict=True))
    given = items_table["labels"].map(_by_rater)
    items_table = items_table.assign(given=given, flags=[flags[key] for key in keys])
    if with_graders:
        graded = latest(study, grader_labels)
        items_table["graders"] = [_by_rater(graded.get(key, {})) for key in keys]
    # Read as text, so that no pattern in it is expanded.
    wanted = searched.strip().casefold()
    matches = items_table["item_id"].str.casefold().str.contains(wanted, regex=False)
    if rubric:
        matches &= items_table["rubric"] == rubric
    if decided != "all":
        matches &= items_table["decided_by"] == decided.replace("none", "")
    items_table = items_table[matches]
    if order != "sample":
        items_table = items_table.sort_values(order, ascending=order == "agreement", kind="stable")
    pages = max(1, -(-len(items_table) // _MOST_ITEMS))
    page = st.number_input(f"Page (of {pages:,})", 1, pages, 1) if pages > 1 else 1
    st.text(written("lead.items", count=len(items_table)))
    shown = items_table.iloc[(page - 1) * _MOST_ITEMS : page * _MOST_ITEMS]
    shown = shown.assign(decided_by=shown["decided_by"].replace("", "none").map(_DECIDED))
    columns = "item_id rubric final_label decided_by n_labels given flags"
    columns += " graders" * with_graders
    with st.container(key="items"):
        show_table(shown, "Items and their labels", columns, links=_TO_ITEM)
    if items_table["item_id"].nunique() == 1:
        for row in shown.to_dict("records"):
            _show_item(study, row["item_id"], row["rubric"], is_labelled=row["n_labels"] > 0)


def show_least_agreed(study: Study, *, folded: bool = False) -> None:
    """The items on which annotators agree least; nothing where they agree on all."""
    table = latest(study, final_labels).query("agreement < 1")
    table = table.sort_values("agreement", kind="stable").head(10)
    if len(table):
        table = table.assign(given=table["labels"].map(_by_rater))
        caption, columns = "Items with the least agreement", "item_id rubric given"
        show_table(table, caption, columns, links=_TO_ITEM, folded=folded)


def _by_rater(labels: Mapping[str, str]) -> str:
    return "; ".join(f"{rater}: {label}" for rater, label in sorted(labels.items()))


def _show_item(study: Study, unit: str, rubric: str, *, is_labelled: bool) -> None:
    """Draw an item as annotators saw it, and the way to its adjudication."""
    show(heading(study.rubrics[rubric].title))
    show(unit_blocks(study, unit, rubric))
    if is_labelled:  # a link: Streamlit switches from no page whose fields are in its address
        asked = {"unit": unit, "rubric": rubric}
        PageLink("Adjudication", "Adjudicate this item →", asked).show()


# Units on which graders and people differ, one by one, for the lead to decide who is wrong.

About = tuple[str, str, str]
"""(rubric, unit id, grader)."""

_ALL, _OPEN = "*", ""
_AT = "disagreement_at"
_SORTED = "sorted"


@dataclass
class _Place:
    """The disagreement that the lead is at; mutable, since acts may not write to the session."""

    at: About | None = None


def show_disagreements(study: Study) -> None:
    age = st.empty()
    with age.container():
        figures = latest_figures(study)
    if figures is None:
        age.empty()
        _wait(study)
        return
    disagreements = [case for case in _latest(figures.folder) if case.rubric in study.rubrics]
    earlier = {_about(decision): decision for decision in sorted_so_far(study)}
    if not disagreements:
        st.text(written("disagreement.none"))
        show_least_agreed(study)
        return
    names, by_grader = study.config.names, Counter(case.grader for case in disagreements)
    graders = (f"{names.get(grader, grader)} {n:,}" for grader, n in by_grader.most_common())
    counts = {"found": len(disagreements), "graders": ", ".join(graders)}
    counts["left"] = sum(_about(case) not in earlier for case in disagreements)
    summary = st.empty()  # above the choices, which determine its last number
    chosen = _chosen(names, disagreements, earlier)
    summary.text(written("disagreement.left", chosen=len(chosen), **counts))
    if chosen:
        by_about = {_about(case): case for case in chosen}
        place: _Place = st.session_state.setdefault(_AT, _Place())
        place.at = about = place.at if place.at in by_about else next(iter(by_about))
        sort = partial(_sort, study, place, about, list(by_about), earlier.get(about))
        _show_unit(study, by_about[about], sort)


@st.fragment(run_every="3s")
def _wait(study: Study) -> None:  # until there are figures
    require(study, "lead")
    if latest_figures(study) is not None:
        st.rerun()


@lru_cache(maxsize=4)
def _latest(folder: Path) -> list[GraderDisagreement]:
    """The disagreements of the latest figures, the widest first."""
    rows = json.loads((folder / DISAGREEMENTS_FILE).read_text("utf-8"))
    return [GraderDisagreement(**row) for row in rows]


def _about(each: GraderDisagreement | SortedDisagreement) -> About:
    return each.rubric, each.unit_id, each.grader


def _chosen(
    called: Mapping[str, str],
    disagreements: Sequence[GraderDisagreement],
    earlier: dict[About, SortedDisagreement],
) -> list[GraderDisagreement]:
    """Filter the disagreements by the lead's choices on the page."""
    columns = iter(st.columns(3))

    def choice(label: str, values: Iterable[Any], title: Callable[[Any], str] = str) -> Any:
        names = {_ALL: "All"} | {value: title(value) for value in sorted(values)}
        return next(columns).selectbox(label, list(names), format_func=names.__getitem__)

    def name(each: str) -> str:
        return called.get(each, each)

    of_rubric = choice("Rubric", {case.rubric for case in disagreements}, name)
    of_grader = choice("Grader", {case.grader for case in disagreements}, name)
    kinds = {_OPEN: written("disagreement.not_sorted"), _ALL: "All"}
    kinds |= {kind: kind_title(kind) for kind in KINDS}
    sorted_as = next(columns).selectbox("Cause", list(kinds), format_func=kinds.__getitem__)

    def kind_of(each: GraderDisagreement) -> str:
        before = earlier.get(_about(each))
        return before.kind if before else _OPEN

    return [
        case
        for case in disagreements
        if of_rubric in (_ALL, case.rubric)
        and of_grader in (_ALL, case.grader)
        and sorted_as in (_ALL, kind_of(case))
    ]


def _show_unit(study: Study, shown: GraderDisagreement, sort: Callable[[], None]) -> None:
    """Draw who said what, what `sort` draws, and the texts."""
    rubric, unit = study.rubrics[shown.rubric], (shown.rubric, shown.unit_id)
    people = people_text(study, shown.unit_id, shown.rubric)
    options, title_of = rubric.kind.listed, rubric.kind.title_of
    reasons = quoted_remarks(study, [shown]).get(unit, {})
    show(heading(f"{shown.unit_id}, {rubric.title}"))
    grader, humans = st.columns(2)
    with grader:
        name = study.config.names.get(shown.grader, shown.grader)
        show(items([(name, [title_of(shown.label)])]))
        for reply in quoted_replies(study, [shown]).get(_about(shown), ()):
            show(block(reply, "quote", written("disagreement.page_reply")))
    with humans:
        given = sorted(shown.people.items())
        show(items((who, [title_of(label), reasons.get(who, "")]) for who, label in given))
    sort()

    def marked_by(raters: Sequence[str]) -> str:
        return written("evidence.marked_by", who=", ".join(raters))

    marks = quoted_marks(study, [shown]).get(unit, [])
    show(marked_blocks(study, people.blocks, marks, marked_by))
    with st.expander("The rubric"):
        st.text(people.question)
        show(items((title_of(option.key), [option.description]) for option in options))
        if not options:
            st.text(f"Answer: {rubric.kind.permitted}")


def _sort(
    study: Study,
    place: _Place,
    about: About,
    chosen: Sequence[About],
    before: SortedDisagreement | None,
) -> None:
    """Draw a button for each kind, and the way to the next, each with a key; and the note."""
    at, key = chosen.index(about), _token(about)
    previous, following = chosen[at - 1], chosen[(at + 1) % len(chosen)]
    if before:
        st.text(written("disagreement.so_far", kind=kind_title(before.kind), who=before.done_by))

    def button(title: str, name: str, shortcut: str, act: Callable[[], None]) -> None:
        st.button(title, key=f"{name}-{key}", shortcut=shortcut, on_click=act)

    def store(study: Study, who: Visitor, kind: Kind | Literal[""], **notes: str) -> None:
        if place.at != about:
            raise InputError(written("lead.unit_changed"))
        named = dict(zip(("rubric", "unit_id", "grader"), about, strict=True))
        sort_disagreement(study, who.name, kind=kind, note=notes[key], **named)
        place.at = following

    def sorting(kind: Kind | Literal[""]) -> Callable[[], None]:
        return lead_callback(study, _SORTED, store, kind)

    st.text("Why do they differ?")
    with st.container(horizontal=True, key="disagreement-keys"):
        for number, kind in enumerate(KINDS, start=1):
            button(kind_title(kind), kind, str(number), sorting(kind))
        if before:
            button("Take it back", "back", "T", sorting(""))
        button("Previous", "previous", "P", partial(setattr, place, "at", previous))
        button("Next", "next", "N", partial(setattr, place, "at", following))
    show_outcome(_SORTED)
    st.text_area(
        "Note, saved with your choice",
        before.note if before else "",
        key=f"{_SORTED}.{key}",
        height=68,
    )
