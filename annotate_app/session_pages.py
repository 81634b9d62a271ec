"""The pages before the labelling and after it: thin, over `study.session`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app import session_strings as words
from evenhand.annotate_app import strings
from evenhand.annotate_app.plain_text import block, heading, items, plain, show, show_complaint
from evenhand.rubrics import Rubric
from evenhand.study.access.admission import Admission
from evenhand.study.session.prolific import End, completion_code, completion_url
from evenhand.study.session.sessions import CHANCES, Sessions
from evenhand.study.session.step import Step

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
"""Why a session ended -> the code that says so; a rejected submission has ended at Prolific."""


def show_step(sessions: Sessions, admission: Admission, step: Step) -> None:
    """Draw the page of the step that a rater is at; not the panel's, "practice" and "labelling"."""
    pages: dict[str, Callable[[Sessions, str, Step], None]] = {
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
            _ended(sessions, admission, step)
            return
        steps = sessions.steps
        place = "practice" if step.name == "feedback" else step.name
        at = steps.index(place) + 1
        show(block(words.PLACE.format(at=at, of=len(steps)), "place"))
        pages[step.name](sessions, admission.rater_id, step)


def _welcome(sessions: Sessions, rater: str, step: Step) -> None:
    settings = sessions.study.config.session
    show(heading(words.WELCOME_TITLE, 1))
    if settings.content_warning:
        show(block(settings.content_warning, "warning", words.WARNING))
    if settings.instructions:
        show(block(settings.instructions))
    if _goes_on("welcome"):
        sessions.read_welcome(rater)
        st.rerun()


def _consent(sessions: Sessions, rater: str, step: Step) -> None:
    consent = sessions.study.config.consent
    show(heading(words.CONSENT_TITLE, 1), block(consent.text if consent else ""))
    agrees = st.button(words.AGREE, type="primary")
    disagrees = st.button(words.DISAGREE)
    if agrees or disagrees:
        sessions.decide_consent(rater, agreed=agrees)
        st.rerun()


def _rubric(sessions: Sessions, rater: str, step: Step) -> None:
    rubric = step.rubric
    assert rubric is not None  # noqa: S101 - the step says so
    # A rubric may speak of the unit's own columns: here they are named, not filled in.
    named = {name: f"[{name.replace('_', ' ')}]" for name in rubric.variables}
    people = rubric.for_people(named)
    show(heading(people.title, 1), heading(people.question), block(people.instructions))
    show(heading(words.OPTIONS), items(_anchors(rubric)))
    if _goes_on(f"rubric-{rubric.name}"):
        sessions.read_rubric(rater, rubric)
        st.rerun()


def _anchors(rubric: Rubric) -> list[tuple[str, list[str]]]:
    return [
        (
            option.name,
            [option.description, *(words.EXAMPLE.format(text=text) for text in option.examples)],
        )
        for option in rubric.options
    ]


def _feedback(sessions: Sessions, rater: str, step: Step) -> None:
    feedback = sessions.practice.feedback(rater, step)
    show(heading(words.FEEDBACK_TITLE, 1))
    for told in feedback.told:
        said = words.RIGHT if told.right else words.WRONG
        kind = "right" if told.right else "wrong"
        answer = words.YOUR_ANSWER.format(answer=told.given or words.SKIPPED)
        wanted = (
            "" if told.right else words.RIGHT_ANSWER.format(answer=words.OR.join(told.accepted))
        )
        show(block(said, kind, told.title), block("\n".join(filter(None, (answer, wanted)))))
    if feedback.explanation:
        show(block(feedback.explanation))
    show(heading(words.WHAT_YOU_READ))
    for text in feedback.blocks:
        show(block(text.text, "quote", text.label))
    unit, rubric = step.screen[0].key
    if _goes_on(f"feedback-{unit}-{rubric}-{step.attempt}"):
        sessions.read_feedback(rater, step)
        st.rerun()


def _comprehension(sessions: Sessions, rater: str, step: Step) -> None:
    questions = sessions.study.config.comprehension
    show(heading(words.COMPREHENSION_TITLE, 1), block(words.COMPREHENSION_TEXT))
    if step.attempt:
        show_complaint(words.COMPREHENSION_AGAIN.format(left=CHANCES - step.attempt))
    # Another key for another chance: the wrong answer is not there already.
    with st.form(f"comprehension-{step.attempt}", border=False):
        given = []
        for number, question in enumerate(questions):
            answer = st.radio(
                plain(question.question),
                question.options,
                index=None,
                format_func=plain,
                key=f"question-{step.attempt}-{number}",
            )
            if number in step.missed and question.explanation:
                show(block(question.explanation, "hint"))
            given.append(answer)
        sent = st.form_submit_button(words.CHECK, type="primary")
    answers = [answer for answer in given if answer is not None]
    if sent and len(answers) < len(questions):
        show_complaint(words.ANSWER_ALL)
    elif sent:
        sessions.answer_comprehension(rater, answers)
        st.rerun()


def _background(sessions: Sessions, rater: str, step: Step) -> None:
    background = sessions.study.config.background
    questions = background.questions if background else ()
    show(heading(words.BACKGROUND_TITLE, 1), block(words.BACKGROUND_TEXT))
    with st.form("background", border=False):
        given = {
            question.key: st.selectbox(
                plain(question.question),
                (*question.options, words.PREFER_NOT),
                index=None,
                placeholder=words.NOT_ANSWERED,
                key=f"background-{question.key}",
            )
            for question in questions
        }
        sent = st.form_submit_button(words.GO_ON, type="primary")
        skipped = st.form_submit_button(words.SKIP_ALL)
    if sent or skipped:
        # Who prefers not to say has said nothing: it is not kept.
        answers = {
            key: answer for key, answer in given.items() if answer not in (None, words.PREFER_NOT)
        }
        sessions.answer_background(rater, {} if skipped else answers)
        st.rerun()


def _ended(sessions: Sessions, admission: Admission, step: Step) -> None:
    title, text = words.ENDED[step.reason]
    show(heading(title, 1), block(text))
    end = _CODES.get(step.reason) if admission.way == "prolific" else None
    if end and (code := completion_code(sessions.study, end)):
        url = completion_url(sessions.study, end)
        st.link_button(words.BACK_TO_PROLIFIC, url, type="primary")
        _code_at_end(key="code", data={"code": code, "words": strings.COPYING})
    else:
        show(block(words.CLOSE))


def _goes_on(key: str) -> bool:
    # No callback: a server that was started anew does not know of it yet, and would lose the click.
    return st.button(words.GO_ON, type="primary", key=f"go-on-{key}")
