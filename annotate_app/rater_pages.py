"""The annotator's pages: the choice of a language, the item in the panel, the notice of unsent
answers, and the pages before and after the labelling. What is stored is decided by `study.session`.

Streamlit draws the panel once. From then on the panel sends answers, and gets the next item, by
messages of its own: see `routes.py`.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app import payload
from evenhand.annotate_app.acts import show_outcome, storing_callback
from evenhand.annotate_app.entry import logging_out, ticket_of
from evenhand.annotate_app.html_texts import (
    block,
    drawn_blocks,
    drawn_rubric,
    drawn_text,
    heading,
    plain,
    show,
    show_complaint,
)
from evenhand.annotate_app.languages import ENGLISH, Language, Sentence, fitting, offered
from evenhand.annotate_app.logins import present_browser
from evenhand.annotate_app.sites import Desks
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access import Admission, Way, read_ticket
from evenhand.study.desk.desk import JUST_NOW, AnnotationDesk, Desk, start_of_day
from evenhand.study.prompts.sampling import digest
from evenhand.study.session.sessions import (
    MAX_COMPREHENSION_ATTEMPTS,
    End,
    Sessions,
    Step,
    completion_code,
    completion_url,
)

# The language of the page is the first that the study offers of these: the reader's choice, in the
# link (`?lang=de`) or on the page, now or earlier (the browser remembers it for the study); the
# browser's setting; the study's usual language.

PARAMETER = "lang"
_CHOSEN = "language"
_KEEPER = "language_keeper"

_keeper = component(
    "evenhand_language",
    html="<label hidden><span></span> <select></select></label>",
    css=payload.app_files("language.css"),
    js=payload.app_files("language.js"),
)


def present_language(study: Study) -> Language:
    """Return the language of the page. Raises InputError for a language that is not offered."""
    among = offered(study.config.annotation)
    # Removed from the address, which then names only the rater again.
    if (asked := st.query_params.pop(PARAMETER, None)) is not None:
        choose(asked, study)
    return fitting([st.session_state.get(_CHOSEN), st.context.locale], among)


def choose(code: Any, study: Study) -> None:
    """Store the language that the browser says was chosen, if the study offers it."""
    if isinstance(code, str) and code in offered(study.config.annotation):
        st.session_state[_CHOSEN] = code


def keep_language(study: Study, reader: Language, *, offered_here: bool) -> None:
    """Tell the browser the page's language; it stores the reader's choice, or gives back an earlier
    one. `offered_here`: the choice is drawn on this page, which has no panel.
    """

    def take_choice() -> None:
        choose(st.session_state[_KEEPER]["chosen"], study)

    owner = f"{study.folder.resolve()}\n{study.config.name}"
    data = {
        "name": "evenhand-language-" + hashlib.sha256(owner.encode()).hexdigest()[:16],
        "chosen": st.session_state.get(_CHOSEN, ""),
        "shown": reader.code,
        "dir": reader.dir,
        "label": reader.say("panel.language"),
        "offered": {code: other.name for code, other in offered(study.config.annotation).items()},
        "here": offered_here,
    }
    with st.container(key="language"):
        _keeper(key=_KEEPER, data=data, on_chosen_change=take_choice)


_PANEL = "panel"
_SHOWN = "shown"
_NONE: Mapping[str, str] = {}

_mount = component("evenhand_panel", js=payload.fetching_code())


def take_panel() -> Callable[[], None] | None:
    """Return what draws the panel as this session's last run showed it, if it did: while the store
    is away, it keeps the rater's answers, sends them again, and shows that it waits.
    """
    shown: Callable[[], None] | None = st.session_state.pop(_SHOWN, None)
    return shown


def show_units(desks: Desks, admission: Admission, reader: Language, *, practice: bool) -> None:
    """Show the rater's unit in the panel, of the practice or of the labelling."""
    study = desks.desk.study
    data = panel_data(desks, admission, reader, practice=practice)
    shown = {
        "ticket": ticket_of(study, admission),
        "here": None if practice else word_left(study),
        "panel": payload.lightened(data, frozenset()),
    }
    _draw_panel(study, shown)


def panel_data(
    desks: Desks,
    admission: Admission,
    reader: Language,
    *,
    practice: bool,
    receipts: Mapping[str, str] = _NONE,
    look: payload.Navigation | None = None,
) -> dict[str, Any]:
    """Return the panel's data: the rater's open item, the one to look back at (`look`), or the end.
    If nothing is left, and it is no pause or end of a day, the session is stored as complete.
    """
    rater, desk = admission.rater_id, desks.desk

    def config_now() -> payload.PanelConfig:
        if practice:
            return payload.PanelConfig(practice=True, words=_words_for(admission.way, reader))
        return config_of(desk, admission, reader)

    shown: Desk = desks.sessions.practice if practice else desk
    data = payload.page_data(shown, rater, receipts, look, config_now, reader)
    if not practice and data["sheet"] is None and not desk.end_reason(rater):
        desks.sessions.complete(rater)
    return data | {"drawn": desks.drawn}


def config_of(
    desk: AnnotationDesk, admission: Admission, reader: Language = ENGLISH
) -> payload.PanelConfig:
    """Return the words and links for a rater now; the excluded never get the link for finishers."""
    ended = desk.end_reason(admission.rater_id)
    words = _words_for(admission.way, reader)
    if ended:
        words |= _end(reader, ended)
    if ended == "day":
        resumes = start_of_day(desk.study.config.session, datetime.now(UTC) - JUST_NOW, later=1)
        return payload.PanelConfig(words=words, resumes=resumes.isoformat())
    if admission.way != "prolific" or ended == "paused":
        return payload.PanelConfig(words=words)
    if ended == "excluded":
        url = completion_url(desk.study, "stopped")
        words |= _end(reader, "stopped") if url else {}
        return payload.PanelConfig(words=words, finish=url, finish_idle=url)
    return payload.PanelConfig(
        words=words,
        finish=completion_url(desk.study, "complete"),
        finish_idle=completion_url(desk.study, "nothing_left"),
    )


def _words_for(way: Way, reader: Language) -> dict[str, Sentence]:
    """Return the panel's words that depend on the way of entry: only an account has a logout, and
    only a code can be changed.
    """
    words: dict[str, Sentence] = {} if way == "open" else {"change_rater": ""}
    if way != "account":
        words["log_out"] = ""
    return words | reader.part("panel_prolific") if way == "prolific" else words


def _end(reader: Language, kind: str) -> dict[str, Sentence]:
    """Return the words of the last screen, whether or not there was work before it."""
    parts = reader.part(f"panel_{kind}").items()
    return {f"{when}_{name}": text for when in ("done", "nothing") for name, text in parts}


def _draw_panel(study: Study, data: Mapping[str, Any]) -> None:
    """Draw the panel; only a chosen language, a logout and the next step come back by Streamlit."""
    st.session_state[_SHOWN] = partial(_draw_panel, study, data)

    def choose_language() -> None:
        state = st.session_state.get(_PANEL)
        sent = state.get("language") if isinstance(state, Mapping) else None
        choose(sent.get("code") if isinstance(sent, Mapping) else None, study)

    _mount(
        key=_PANEL,
        data=data,
        on_language_change=choose_language,
        on_log_out_change=logging_out(study),
        on_page_change=lambda: None,
    )


# The notice of answers that wait unsent in the browser, on pages that have no panel to send them

_UNSENT = "unsent"
_ARRIVED = "unsent arrived"  # in the session's state: by rater, which of them are stored after all
_MOST_UNSENT = 200
_unsent_notice = component(
    "evenhand_unsent",
    html='<p class="unsent" role="alert" hidden><span></span> <button type="button"></button></p>',
    css=payload.app_files("unsent.css"),
    js=payload.app_files("panel/drafts.js", "panel/view.js", "unsent.js"),
)


def word_left(study: Study) -> dict[str, Any]:
    """Return the name under which the panel stores in the browser what waits, so that it is found
    when a rater comes back by the same address but is not admitted.
    """
    address = sorted(st.query_params.to_dict().items())
    name = digest(study.blinding_key, "unsent", repr(address))[:16]
    return {"name": f"evenhand-unsent-{name}", "byLink": bool(address)}


def tell_unsent(
    desk: AnnotationDesk, reader: Language, rater: str | None = None, over: bool = False
) -> None:
    """Draw the notice of this rater's answers that did not arrive, until it is read; without a
    rater, of those who used the panel by this address. `over`: they cannot be sent later.

    The browser deletes only answers that are stored: a rater may be admitted again.
    """
    arrived = st.session_state.get(_ARRIVED, {}).get(rater, {})
    words, kind = reader.part("panel"), "over" if over else "kept"
    data = {
        "here": word_left(desk.study),
        "place": payload.drafts_name(desk, rater) if rater else "",
        "heard": arrived,
        "kind": kind,
        "words": {name: words[name] for name in ("lost", "noted")}
        | {"why": reader.part("unsent")[kind]},
    }
    waiting = _unsent_notice(key=_UNSENT, data=data, on_waiting_change=lambda: None)["waiting"]
    if rater and isinstance(waiting, list):
        ids = [submit_id for submit_id in waiting[:_MOST_UNSENT] if isinstance(submit_id, str)]
        if not arrived.keys() >= {*ids}:
            stored = desk.stored_submissions(rater, ids)
            st.session_state[_ARRIVED] = {rater: {id_: id_ in stored for id_ in ids}}
            st.rerun()


# The pages before the labelling and after it

_PREFER_NOT = ""
"""Choice not to answer: nothing is stored."""
_code_at_end = component(
    "evenhand_code",
    html='<div class="end"></div>',
    css=payload.app_files("panel/copying.css"),
    js=payload.app_files("panel/copying.js", "code_at_end.js"),
)
_CODES: dict[str, End] = {
    "screened_out": "screened_out",
    "side_full": "screened_out",
    "no_consent": "no_consent",
    "returned": "returned",
    "timed_out": "returned",
}
"""Reason of an end -> the end whose code leads back to Prolific; a rejected one has ended there."""

_Press = Callable[..., None]
"""`_press` with its first argument, the rater of the page."""


def show_step(sessions: Sessions, admission: Admission, step: Step, reader: Language) -> None:
    """Draw the page of a rater's step; the panel draws "practice" and "labelling"."""
    pages: dict[str, Callable[[Sessions, _Press, Step, Language], None]] = {
        "welcome": _welcome,
        "consent": _consent,
        "side": _side,
        "rubric": _rubric,
        "feedback": partial(_feedback, admission.rater_id),
        "comprehension": _comprehension,
        "background": _background,
    }
    st.html(Path(__file__).with_name("session_pages.css"))
    with st.container(key="step"):
        if step.name == "ended":
            _ended(sessions, admission, step, reader)
            return
        steps = sessions.steps
        place = "practice" if step.name == "feedback" else step.name
        number = steps.index(place) + 1
        show(block(reader.say("session.place", at=number, of=len(steps)), "place"))
        ticket = ticket_of(sessions.study, admission)
        read = partial(read_ticket, sessions.study, ticket, present_browser())
        pages[step.name](sessions, partial(_press, lambda: read().rater_id), step, reader)


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
    """Draw a button that stores an act of the rater's, with the fields of `place` (see `acts`)."""
    place = place or key
    act = storing_callback(place, rater, store, *arguments)
    kind = "primary" if is_first else "secondary"
    # A restarted server does not know the callback yet, so that the run calls it. Where both call
    # it the act is stored once, since by then the step is another.
    if button(label, type=kind, key=key, on_click=act):
        act()
        st.rerun()
    show_outcome(place)


def _welcome(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    warning = sessions.texts.in_language("content_warning", reader.code)
    instructions = sessions.texts.in_language("instructions", reader.code)
    show(heading(reader.say("session.welcome_title"), 1))
    if warning.text:
        label = reader.say("session.warning")
        show(drawn_text(warning.text, "warning", label, lang=warning.language))
    if instructions.text:
        show(drawn_text(instructions.text, lang=instructions.language))
    key = f"go-on-{_key('welcome', warning.text, instructions.text)}"
    press(reader.say("session.go_on"), key, sessions.read_welcome, reader.code)


def _consent(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    consent = sessions.texts.in_language("consent", reader.code)
    title = heading(reader.say("session.consent_title"), 1)
    show(title, drawn_text(consent.text, lang=consent.language))
    agree, disagree = (_key(name, consent.text) for name in ("agree", "disagree"))
    press(reader.say("session.agree"), agree, sessions.decide_consent, True, reader.code)
    no = reader.say("session.disagree")
    press(no, disagree, sessions.decide_consent, False, reader.code, is_first=False)


def _side(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    asked = sessions.study.config.side
    assert asked is not None  # noqa: S101 - the step says so
    text, options = reader.background(asked)
    form = _key("side", repr(asked))
    shown = dict(zip(asked.options, map(plain, options), strict=True))
    show(heading(reader.say("session.background_title"), 1), block(reader.say("session.side_text")))
    with st.form(form, border=False):
        st.radio(plain(text), list(shown), index=None, format_func=shown.get, key=f"{form}.side")
        store, button = partial(_store_side, sessions, reader), st.form_submit_button
        press(reader.say("session.go_on"), f"{form}-sent", store, place=form, button=button)


def _store_side(sessions: Sessions, reader: Language, rater: str, /, *, side: str | None) -> None:
    if side is None:
        raise InputError(reader.say("session.answer_all"))
    sessions.answer_side(rater, side)


def _rubric(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    assert step.rubric is not None  # noqa: S101 - the step says so
    rubric = step.rubric.in_language(reader.code)
    show(drawn_rubric(rubric, reader))
    key = f"go-on-rubric-{rubric.name}-{rubric.hash}"
    press(reader.say("session.go_on"), key, sessions.read_rubric, step.rubric, reader.code)


def _feedback(rater: str, sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    feedback = sessions.practice.feedback(rater, step, reader.code)
    show(heading(reader.say("session.feedback_title"), 1))
    for answer in feedback.questions:
        kind = "right" if answer.is_right else "wrong"
        label = answer.given or reader.say("session.skipped")
        lines = [reader.say("session.your_answer", answer=label)]
        if not answer.is_right:
            accepted = reader.say("session.or").join(answer.accepted)
            lines.append(reader.say("session.right_answer", answer=accepted))
        show(block(reader.say(f"session.{kind}"), kind, answer.title), block("\n".join(lines)))
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
        left = MAX_COMPREHENSION_ATTEMPTS - step.attempt
        show_complaint(reader.say("session.comprehension_again", count=left))
    # Another key for another chance: the wrong answer is not there already.
    with st.form(f"form-{key}", border=False):
        for number, question in enumerate(questions):
            text, field = plain(question.question), f"{key}.{number}"
            st.radio(text, question.options, index=None, format_func=plain, key=field)
            if number in step.missed and question.explanation:
                show(block(question.explanation, "hint"))
        label, store = reader.say("session.check"), partial(_store_answers, sessions, reader)
        press(label, f"check-{key}", store, place=key, button=st.form_submit_button)


def _store_answers(sessions: Sessions, reader: Language, rater: str, **answers: str | None) -> None:
    """Store the answers, by the numbers of their questions. Raises InputError if one is missing."""
    in_order = [answers[number] for number in sorted(answers, key=int)]
    complete = [answer for answer in in_order if answer is not None]
    if len(complete) < len(in_order):
        raise InputError(reader.say("session.answer_all"))
    sessions.answer_comprehension(rater, complete)


def _background(sessions: Sessions, press: _Press, step: Step, reader: Language) -> None:
    background = sessions.study.config.background
    questions = background.optional if background else ()
    title = heading(reader.say("session.background_title"), 1)
    show(title, block(reader.say("session.background_text")))
    form = _key("background", *map(repr, questions))
    with st.form(form, border=False):
        for question in questions:  # in the reader's language; answers are in the study's words
            text, options = reader.background(question)
            names = dict(zip(question.options, options, strict=True))
            names[_PREFER_NOT] = reader.say("session.prefer_not")
            st.selectbox(
                plain(text),
                list(names),
                index=None,
                format_func=names.__getitem__,
                placeholder=reader.say("session.not_answered"),
                key=f"{form}.{question.key}",
            )
        go_on, skip_all = reader.say("session.go_on"), reader.say("session.skip_all")
        in_form = {"button": st.form_submit_button}
        press(go_on, f"{form}-sent", _store_background, sessions, place=form, **in_form)
        skipping = f"{form}-skipped"
        press(skip_all, skipping, sessions.answer_background, {}, is_first=False, **in_form)


def _store_background(rater: str, sessions: Sessions, /, **answers: str | None) -> None:
    sessions.answer_background(rater, {key: answer for key, answer in answers.items() if answer})


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
    """Return a widget's key that depends on the texts shown with it: a click on a page from before
    a change of them counts for nothing, and the new texts are shown.
    """
    return f"{name}-{hashlib.sha256(repr(shown).encode()).hexdigest()[:16]}"
