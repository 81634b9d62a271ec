"""The pages before the labelling and after it: thin, over `study.session`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app.acts import show_outcome, storing_callback
from evenhand.annotate_app.drawn import (
    block,
    drawn_blocks,
    drawn_rubric,
    drawn_text,
    heading,
    plain,
    show,
    show_complaint,
)
from evenhand.annotate_app.entry import ticket_of
from evenhand.annotate_app.languages import Language
from evenhand.annotate_app.logins import present_browser
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.admission import Admission, read_ticket
from evenhand.study.session.sessions import (
    CHANCES,
    End,
    Sessions,
    Step,
    completion_code,
    completion_url,
)
from evenhand.study.settings.study_toml import BackgroundQuestion

_PREFER_NOT = ""
"""Choice not to answer: nothing is stored."""

_HERE = Path(__file__).parent
_code_at_end = component(
    "evenhand_code",
    html='<div class="end"></div>',
    css=(_HERE / "panel" / "copying.css").read_text("utf-8"),
    js="\n".join(
        (_HERE / name).read_text("utf-8") for name in ("panel/copying.js", "code_at_end.js")
    ),
)
_CODES: dict[str, End] = {
    "screened_out": "screened_out",
    "no_consent": "no_consent",
    "returned": "returned",
    "timed_out": "returned",
}
"""End of a session -> its completion code; a rejected submission has ended at Prolific."""


_Press = Callable[..., None]
"""`_press` for the rater of a page."""


def show_step(sessions: Sessions, admission: Admission, step: Step, reader: Language) -> None:
    """Draw the page of a rater's step; "practice" and "labelling" are the panel's."""
    pages: dict[str, Callable[[Sessions, _Press, Step, Language], None]] = {
        "welcome": _welcome,
        "consent": _consent,
        "rubric": _rubric,
        "feedback": partial(_feedback, admission.rater_id),
        "comprehension": _comprehension,
        "background": _background,
    }
    st.html(_HERE / "session_pages.css")
    with st.container(key="step"):
        if step.name == "ended":
            _ended(sessions, admission, step, reader)
            return
        steps = sessions.steps
        place = "practice" if step.name == "feedback" else step.name
        at = steps.index(place) + 1
        show(block(reader.say("session.place", at=at, of=len(steps)), "place"))
        ticket = ticket_of(sessions.study, admission)
        rater = partial(_rater_of, sessions.study, ticket, present_browser())
        pages[step.name](sessions, partial(_press, rater), step, reader)


def _press(
    rater: Callable[[], str],
    label: str,
    key: str,
    store: Callable[..., Any],
    *arguments: object,
    place: str = "",
    button: Callable[..., bool] = st.button,
    is_first: bool = True,
) -> None:
    """Draw a button that stores an act of the rater's."""
    place = place or key
    act = storing_callback(place, rater, store, *arguments)
    kind = "primary" if is_first else "secondary"
    # A restarted server does not know of the callback yet, and the run carries the act out. Where
    # both do it is stored once, since by then the step is another.
    if button(label, type=kind, key=key, on_click=act):
        act()
        st.rerun()
    show_outcome(place)


def _rater_of(study: Study, ticket: str, browser: str) -> str:
    return read_ticket(study, ticket, browser).rater_id


def _welcome(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    warning = sessions.texts.shown("content_warning", reader.code)
    instructions = sessions.texts.shown("instructions", reader.code)
    show(heading(reader.say("session.welcome_title"), 1))
    if warning.text:
        label = reader.say("session.warning")
        show(drawn_text(warning.text, "warning", label, lang=warning.language))
    if instructions.text:
        show(drawn_text(instructions.text, lang=instructions.language))
    key = f"go-on-{_key('welcome', warning.text, instructions.text)}"
    press(reader.say("session.go_on"), key, sessions.read_welcome, reader.code)


def _consent(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    consent = sessions.texts.shown("consent", reader.code)
    title = heading(reader.say("session.consent_title"), 1)
    show(title, drawn_text(consent.text, lang=consent.language))
    agree, disagree = (_key(name, consent.text) for name in ("agree", "disagree"))
    press(reader.say("session.agree"), agree, sessions.decide_consent, True, reader.code)
    no = reader.say("session.disagree")
    press(no, disagree, sessions.decide_consent, False, reader.code, is_first=False)


def _rubric(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    assert step.rubric is not None  # noqa: S101 - the step says so
    rubric = step.rubric.in_language(reader.code)
    show(drawn_rubric(rubric, reader))
    key = f"go-on-rubric-{rubric.name}-{rubric.hash}"
    press(reader.say("session.go_on"), key, sessions.read_rubric, step.rubric, reader.code)


def _feedback(rater: str, sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    feedback = sessions.practice.feedback(rater, step, reader.code)
    show(heading(reader.say("session.feedback_title"), 1))
    for told in feedback.told:
        kind = "right" if told.right else "wrong"
        given = told.given or reader.say("session.skipped")
        answers = [reader.say("session.your_answer", answer=given)]
        if not told.right:
            accepted = reader.say("session.or").join(told.accepted)
            answers.append(reader.say("session.right_answer", answer=accepted))
        show(block(reader.say(f"session.{kind}"), kind, told.title), block("\n".join(answers)))
    if feedback.explanation:
        show(drawn_text(feedback.explanation, lang=sessions.study.config.annotation.language))
    show(heading(reader.say("session.what_you_read")))
    show(drawn_blocks(feedback.blocks, reader, sessions.study.config.annotation.display))
    place = sessions.practice.units.screens.index(step.screen)  # the unit's name reveals too much
    key = f"go-on-feedback-{place}-{step.attempt}"
    press(reader.say("session.go_on"), key, sessions.read_feedback, step)


def _comprehension(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    questions = sessions.study.config.comprehension
    key = _key(f"question-{step.attempt}", *map(repr, questions))
    title = heading(reader.say("session.comprehension_title"), 1)
    show(title, block(reader.say("session.comprehension_text")))
    if step.attempt:
        left = CHANCES - step.attempt
        show_complaint(reader.say("session.comprehension_again", count=left))
    # Another key for another chance: the wrong answer is not there already.
    with st.form(f"form-{key}", border=False):
        for number, question in enumerate(questions):
            st.radio(
                plain(question.question),
                question.options,
                index=None,
                format_func=plain,
                key=f"{key}.{number}",
            )
            if number in step.missed and question.explanation:
                show(block(question.explanation, "hint"))
        answer = partial(_answer, sessions, reader)
        press(
            reader.say("session.check"),
            f"check-{key}",
            answer,
            place=key,
            button=st.form_submit_button,
        )


def _answer(sessions: Sessions, reader: Language, rater: str, /, **given: str | None) -> None:
    places = sorted(given, key=int)
    answers = [answer for place in places if (answer := given[place]) is not None]
    if len(answers) < len(places):
        raise InputError(reader.say("session.answer_all"))
    sessions.answer_comprehension(rater, answers)


def _background(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    background = sessions.study.config.background
    questions = background.questions if background else ()
    title = heading(reader.say("session.background_title"), 1)
    show(title, block(reader.say("session.background_text")))
    form = _key("background", *map(repr, questions))
    with st.form(form, border=False):
        for question in questions:
            _choice(question, reader, form)
        go_on, skip_all = reader.say("session.go_on"), reader.say("session.skip_all")
        own = {"button": st.form_submit_button}
        press(go_on, f"{form}-sent", _tell, sessions, place=form, **own)
        skipping = f"{form}-skipped"
        press(skip_all, skipping, sessions.answer_background, {}, is_first=False, **own)


def _tell(rater: str, sessions: Sessions, /, **given: str | None) -> None:
    sessions.answer_background(rater, {key: answer for key, answer in given.items() if answer})


def _choice(question: BackgroundQuestion, reader: Language, form: str) -> None:
    """Ask a question in the reader's language; the answer is in the study's own words."""
    said, options = reader.background(question)
    names = dict(zip(question.options, options, strict=True))
    names[_PREFER_NOT] = reader.say("session.prefer_not")
    st.selectbox(
        plain(said),
        list(names),
        index=None,
        format_func=names.__getitem__,
        placeholder=reader.say("session.not_answered"),
        key=f"{form}.{question.key}",
    )


def _ended(sessions: Sessions, admission: Admission, step: Step, reader: Language) -> None:
    ended = f"ended.{step.reason}"
    show(heading(reader.say(f"{ended}.title"), 1), block(reader.say(f"{ended}.text")))
    end = _CODES.get(step.reason) if admission.way == "prolific" else None
    if end and (code := completion_code(sessions.study, end)):
        url = completion_url(sessions.study, end)
        st.link_button(reader.say("session.back_to_prolific"), url, type="primary")
        words = reader.part("panel")
        copying = {name: words[name] for name in ("code", "copy", "copied", "marked")}
        _code_at_end(key="code", data={"code": code, "words": copying})
    else:
        show(block(reader.say("session.close")))


def _key(name: str, *shown: str) -> str:
    """A widget's key that is of these texts: a click on a page from before a change of them counts
    for nothing, and the new ones are shown.
    """
    return f"{name}-{hashlib.sha256(repr(shown).encode()).hexdigest()[:16]}"
