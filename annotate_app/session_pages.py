"""The pages before the labelling and after it: thin, over `study.session`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app.drawn import drawn_blocks, drawn_rubric, drawn_text
from evenhand.annotate_app.languages import Language
from evenhand.annotate_app.plain_text import block, heading, plain, show, show_complaint
from evenhand.study.access.admission import Admission
from evenhand.study.session.prolific import End, completion_code, completion_url
from evenhand.study.session.sessions import CHANCES, Sessions
from evenhand.study.session.step import Step
from evenhand.study.settings.session import BackgroundQuestion

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


def show_step(sessions: Sessions, admission: Admission, step: Step, reader: Language) -> None:
    """Draw the page of a rater's step; "practice" and "labelling" are the panel's."""
    pages: dict[str, Callable[[Sessions, str, Step, Language], None]] = {
        "welcome": _welcome,
        "consent": _consent,
        "rubric": _rubric,
        "feedback": _feedback,
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
        pages[step.name](sessions, admission.rater_id, step, reader)


def _welcome(sessions: Sessions, rater: str, step: Step, reader: Language) -> None:
    warning = sessions.texts.shown("content_warning", reader.code)
    instructions = sessions.texts.shown("instructions", reader.code)
    show(heading(reader.say("session.welcome_title"), 1))
    if warning.text:
        label = reader.say("session.warning")
        show(drawn_text(warning.text, "warning", label, lang=warning.language))
    if instructions.text:
        show(drawn_text(instructions.text, lang=instructions.language))
    if _goes_on(_key("welcome", warning.text, instructions.text), reader):
        sessions.read_welcome(rater, reader.code)
        st.rerun()


def _consent(sessions: Sessions, rater: str, step: Step, reader: Language) -> None:
    consent = sessions.texts.shown("consent", reader.code)
    title = heading(reader.say("session.consent_title"), 1)
    show(title, drawn_text(consent.text, lang=consent.language))
    agrees = st.button(reader.say("session.agree"), type="primary", key=_key("agree", consent.text))
    disagrees = st.button(reader.say("session.disagree"), key=_key("disagree", consent.text))
    if agrees or disagrees:
        sessions.decide_consent(rater, agreed=agrees, language=reader.code)
        st.rerun()


def _rubric(sessions: Sessions, rater: str, step: Step, reader: Language) -> None:
    assert step.rubric is not None  # noqa: S101 - the step says so
    rubric = step.rubric.in_language(reader.code)
    show(drawn_rubric(rubric, reader))
    if _goes_on(f"rubric-{rubric.name}-{rubric.hash}", reader):
        sessions.read_rubric(rater, step.rubric, reader.code)
        st.rerun()


def _feedback(sessions: Sessions, rater: str, step: Step, reader: Language) -> None:
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
    if _goes_on(f"feedback-{place}-{step.attempt}", reader):
        sessions.read_feedback(rater, step)
        st.rerun()


def _comprehension(sessions: Sessions, rater: str, step: Step, reader: Language) -> None:
    questions = sessions.study.config.comprehension
    key = _key(f"question-{step.attempt}", *map(repr, questions))
    title = heading(reader.say("session.comprehension_title"), 1)
    show(title, block(reader.say("session.comprehension_text")))
    if step.attempt:
        left = CHANCES - step.attempt
        show_complaint(reader.say("session.comprehension_again", count=left))
    # Another key for another chance: the wrong answer is not there already.
    with st.form(f"form-{key}", border=False):
        given = []
        for number, question in enumerate(questions):
            answer = st.radio(
                plain(question.question),
                question.options,
                index=None,
                format_func=plain,
                key=f"{key}-{number}",
            )
            if number in step.missed and question.explanation:
                show(block(question.explanation, "hint"))
            given.append(answer)
        label = reader.say("session.check")
        sent = st.form_submit_button(label, type="primary", key=f"check-{key}")
    answers = [answer for answer in given if answer is not None]
    if sent and len(answers) < len(questions):
        show_complaint(reader.say("session.answer_all"))
    elif sent:
        sessions.answer_comprehension(rater, answers)
        st.rerun()


def _background(sessions: Sessions, rater: str, step: Step, reader: Language) -> None:
    background = sessions.study.config.background
    questions = background.questions if background else ()
    title = heading(reader.say("session.background_title"), 1)
    show(title, block(reader.say("session.background_text")))
    form = _key("background", *map(repr, questions))
    with st.form(form, border=False):
        given = {question.key: _choice(question, reader, form) for question in questions}
        go_on, skip_all = reader.say("session.go_on"), reader.say("session.skip_all")
        sent = st.form_submit_button(go_on, type="primary", key=f"{form}-sent")
        skipped = st.form_submit_button(skip_all, key=f"{form}-skipped")
    if sent or skipped:
        answers = {key: answer for key, answer in given.items() if answer}
        sessions.answer_background(rater, {} if skipped else answers)
        st.rerun()


def _choice(question: BackgroundQuestion, reader: Language, form: str) -> str | None:
    """Return the chosen option in the study's own words; it is shown in the reader's language."""
    said, options = reader.background(question)
    names = dict(zip(question.options, options, strict=True))
    names[_PREFER_NOT] = reader.say("session.prefer_not")
    return st.selectbox(
        plain(said),
        list(names),
        index=None,
        format_func=names.__getitem__,
        placeholder=reader.say("session.not_answered"),
        key=f"{form}-{question.key}",
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


def _goes_on(key: str, reader: Language) -> bool:
    # No callback: a restarted server does not know of it yet, and would lose the click.
    return st.button(reader.say("session.go_on"), type="primary", key=f"go-on-{key}")
