"""Units on which graders and people differ, one by one, for the lead to decide who is wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.report.sections.disagreements import kind_title
from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.lead.parts.live_figures import latest_figures
from evenhand.annotate_app.lead.parts.unit_texts import marked_blocks
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import block, heading, items, show
from evenhand.errors import InputError
from evenhand.reporting.analysing import quoted_marks, quoted_remarks, quoted_replies
from evenhand.reporting.live_figures import DISAGREEMENTS_FILE
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import TextBlock
from evenhand.study import Study
from evenhand.study.access.lead_login import Visitor
from evenhand.study.lead.disagreements import (
    KINDS,
    Kind,
    SortedDisagreement,
    sort_disagreement,
    sorted_so_far,
)
from evenhand.study.tables.evidence import Mark
from evenhand.texts import written

About = tuple[str, str, str]
"""(rubric, unit id, grader)."""

_EVERY = "3s"
_ALL, _OPEN = "*", ""
_AT = "disagreement_at"
_SORTED = "sorted"


@dataclass(frozen=True)
class _Queue:
    """The disagreements chosen, how they are sorted so far, and the lead's place among them."""

    chosen: Sequence[GraderDisagreement]
    said: dict[About, SortedDisagreement]
    at: int

    @property
    def current(self) -> GraderDisagreement:
        return self.chosen[self.at]

    def about(self, steps: int) -> About:
        """The disagreement this number of steps further on; wraps around at the end."""
        return _about(self.chosen[(self.at + steps) % len(self.chosen)])


@dataclass
class _Place:
    """The disagreement that the lead is at; sorting one moves it, so it is no part of Streamlit's
    session.
    """

    at: About | None = None


def show_disagreements(study: Study) -> None:
    require(study, "lead")
    age = st.empty()
    with age.container():
        figures = latest_figures(study)
    if figures is None:
        age.empty()
        _wait(study)
        return
    found = [each for each in _found(figures.folder) if each.rubric in study.rubrics]
    said = {(each.rubric, each.unit_id, each.grader): each for each in sorted_so_far(study)}
    if not found:
        st.text(written("disagreement.none"))
        return
    chosen = _chosen(found, said)
    left = sum(_about(each) not in said for each in found)
    st.text(written("disagreement.left", chosen=len(chosen), left=left, found=len(found)))
    if chosen:
        places = [_about(each) for each in chosen]
        place: _Place = st.session_state.setdefault(_AT, _Place())
        queue = _Queue(chosen, said, places.index(place.at) if place.at in places else 0)
        place.at = _about(queue.current)
        _show_unit(study, queue.current)
        _sort(study, queue, place)


@st.fragment(run_every=_EVERY)
def _wait(study: Study) -> None:  # until there are figures
    require(study, "lead")
    if latest_figures(study) is not None:
        st.rerun()


@lru_cache(maxsize=4)
def _found(folder: Path) -> list[GraderDisagreement]:
    """The disagreements as they were found last, the widest first."""
    rows = json.loads((folder / DISAGREEMENTS_FILE).read_text("utf-8"))
    return [GraderDisagreement(**row) for row in rows]


def _about(each: GraderDisagreement) -> About:
    return each.rubric, each.unit_id, each.grader


def _chosen(
    found: Sequence[GraderDisagreement], said: dict[About, SortedDisagreement]
) -> list[GraderDisagreement]:
    """Filter the disagreements by the lead's choices on the page."""
    parts = {(name, value) for each in found for name, value in each.parts.items()}
    rubric, grader, part, state = st.columns(4)
    with rubric:
        of_rubric = _choice("Rubric", {each.rubric for each in found})
    with grader:
        of_grader = _choice("Grader", {each.grader for each in found})
    with part:
        in_part = _choice("Part of the sample", parts, ": ".join)
    with state:
        names = {_OPEN: written("disagreement.not_sorted"), _ALL: "All"}
        names |= {kind: kind_title(kind) for kind in KINDS}
        sorted_as = st.selectbox("Sorted as", list(names), format_func=names.__getitem__)

    def kind(each: GraderDisagreement) -> str:
        known = said.get(_about(each))
        return known.kind if known else _OPEN

    return [
        each
        for each in found
        if of_rubric in (_ALL, each.rubric)
        and of_grader in (_ALL, each.grader)
        and (in_part == _ALL or in_part in each.parts.items())
        and sorted_as in (_ALL, kind(each))
    ]


def _choice(label: str, values: Iterable[Any], title: Callable[[Any], str] = str) -> Any:
    """Let the lead choose one of the values, or all."""
    return st.selectbox(
        label,
        [_ALL, *sorted(values)],
        format_func=lambda value: "All" if value == _ALL else title(value),
    )


def _show_unit(study: Study, found: GraderDisagreement) -> None:
    rubric = study.rubrics[found.rubric]
    people = rubric.for_people(study.values(rubric, found.unit_id))
    options = () if rubric.number else people.options
    names = {option.key: f"{option.key}: {option.name}" for option in options}
    reasons = quoted_remarks(study, [found]).get((found.rubric, found.unit_id), {})
    show(heading(f"{found.unit_id}, {rubric.title}"))
    grader, humans = st.columns(2)
    with grader:
        show(items([(found.grader, [names.get(found.label, found.label)])]))
        for reply in quoted_replies(study, [found]).get(_about(found), ()):
            show(block(reply, "quote", written("disagreement.page_reply")))
    with humans:
        given = sorted(found.people.items())
        show(items((who, [names.get(of, of), reasons.get(who, "")]) for who, of in given))
    marks = quoted_marks(study, [found]).get((found.rubric, found.unit_id), [])
    _show_texts(study, people.blocks, marks)
    _show_rubric(rubric, people.question)


def _show_texts(
    study: Study, texts: Sequence[TextBlock], marks: Sequence[tuple[str, Mark]]
) -> None:
    """Show the texts as raters saw them, with the words that people marked."""

    def said(who: Sequence[str]) -> str:
        return written("evidence.marked_by", who=", ".join(who)) if who else ""

    show(marked_blocks(study, texts, marks, said))


def _show_rubric(rubric: Rubric, question: str) -> None:
    with st.expander("The rubric"):
        st.text(question)
        options = () if rubric.number else rubric.options
        show(items((f"{each.key}: {each.name}", [each.description]) for each in options))
        if rubric.number:
            st.text(f"Answer: {rubric.permitted}")


def _sort(study: Study, queue: _Queue, place: _Place) -> None:
    """The note, a button for each kind, and the way to the next. Each has a key."""
    found = _about(queue.current)
    known, key = queue.said.get(found), _key(found)
    if known:
        st.text(written("disagreement.so_far", kind=kind_title(known.kind), who=known.done_by))
    st.text_area("Note", known.note if known else "", key=f"{_SORTED}.{key}")

    def button(title: str, name: str, shortcut: str, act: Callable[[], None]) -> None:
        st.button(title, key=f"{name}-{key}", shortcut=shortcut, on_click=act)

    def sorting(kind: Kind | Literal[""]) -> Callable[[], None]:
        return lead_callback(study, _SORTED, _store, place, found, queue.about(1), kind)

    with st.container(horizontal=True, key="disagreement-keys"):
        for number, kind in enumerate(KINDS, start=1):
            button(kind_title(kind), kind, str(number), sorting(kind))
        if known:
            button("Take back", "back", "T", sorting(""))
        button("Previous", "previous", "P", partial(setattr, place, "at", queue.about(-1)))
        button("Next", "next", "N", partial(setattr, place, "at", queue.about(1)))
    show_outcome(_SORTED)


def _store(
    study: Study,
    who: Visitor,
    place: _Place,
    about: About,
    following: About,
    kind: Kind | Literal[""],
    **notes: str,
) -> None:
    """Store how the disagreement on the page is sorted, and turn to the one that follows."""
    if place.at != about:
        raise InputError(written("lead.unit_changed"))
    rubric, unit, grader = about
    about_it = {"rubric": rubric, "unit_id": unit, "grader": grader, "note": notes[_key(about)]}
    sort_disagreement(study, who.name, kind=kind, **about_it)
    place.at = following


def _key(about: About) -> str:
    """A name for a disagreement, since Streamlit would write its own ids into the page."""
    return hashlib.sha256("\x1f".join(about).encode()).hexdigest()[:16]
