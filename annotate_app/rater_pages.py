"""The annotator's pages: the choice of a language, the item in the panel, the notice of unsent
answers, and the pages before and after the labelling. What is stored is decided by `study.session`.

Streamlit draws the panel, a component with code of ours, once. From then on the panel sends
answers, and gets the next item, by messages of its own: see `routes.py`.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app import html_texts, payload
from evenhand.annotate_app.acts import show_outcome, storing_callback
from evenhand.annotate_app.entry import logging_out, ticket_of
from evenhand.annotate_app.html_texts import block, drawn_text, heading, plain, show
from evenhand.annotate_app.languages import ENGLISH, Language, fitting, offered
from evenhand.annotate_app.logins import present_browser
from evenhand.annotate_app.sites import Desks
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access import Admission, read_ticket
from evenhand.study.desk.desk import MIDNIGHT_GRACE, AnnotationDesk, start_of_day
from evenhand.study.prompts.sampling import digest
from evenhand.study.session.sessions import (
    MAX_COMPREHENSION_ATTEMPTS,
    End,
    Sessions,
    Step,
    completion_code,
    completion_url,
)

# ---- the language -------------------------------------------------------------------------------
# The language of the page is the first that the study offers of these: the rater's choice, in the
# link (`?lang=de`) or on the page, now or earlier (the browser remembers it for the study); the
# browser's setting; the study's usual language.

_PARAMETER = "lang"
_CHOSEN = "language"  # in the session's state: the code of the language that was chosen
_KEEPER = "language_keeper"
_language_keeper = component(
    "evenhand_language",
    html="<label hidden><span></span> <select></select></label>",
    css=payload.app_files("language.css"),
    js=payload.app_files("language.js"),
)


def present_language(study: Study) -> Language:
    """Return the language of the page. Raises InputError if study.toml names an unknown one."""
    # Removed from the address, which then contains only the rater's link again.
    _store_choice(study, st.query_params.pop(_PARAMETER, None))
    wanted = [st.session_state.get(_CHOSEN), st.context.locale]
    return fitting(wanted, offered(study.config.annotation))


def _store_choice(study: Study, code: Any) -> None:
    """Store a code that a browser sent as the language chosen, if the study offers it."""
    if isinstance(code, str) and code in offered(study.config.annotation):
        st.session_state[_CHOSEN] = code


def keep_language(study: Study, language: Language, *, in_panel: bool) -> None:
    """Tell the browser the page's language; it keeps the rater's choice, or returns an earlier one.
    `in_panel`: the panel offers the choice, so that it is not drawn here.
    """

    def store_choice() -> None:
        _store_choice(study, st.session_state[_KEEPER]["chosen"])

    owner = f"{study.folder.resolve()}\n{study.config.name}"
    data = {
        "name": "evenhand-language-" + hashlib.sha256(owner.encode()).hexdigest()[:16],
        "chosen": st.session_state.get(_CHOSEN, ""),
        "shown": language.code,
        "dir": language.dir,
        "label": language.say("panel.language"),
        "offered": {code: other.name for code, other in offered(study.config.annotation).items()},
        "in_panel": in_panel,
    }
    with st.container(key="language"):
        _language_keeper(key=_KEEPER, data=data, on_chosen_change=store_choice)


# ---- the item, in the panel ---------------------------------------------------------------------

_PANEL = "panel"
_DRAWN = "drawn panel"  # in the session's state
# The inline code fetches the panel's module, or reloads a page of an older version.
_code = payload.app_files("panel/fetching.js").replace("PANEL_PATH", f"'{payload.panel_path()}'")
_mount = component("evenhand_panel", js=_code)


@dataclass(frozen=True)
class DrawnPanel:
    """The panel as a run of this session drew it. A later run that finds the store away draws it
    again: the panel keeps the rater's answers, sends them again, and shows that it waits.
    """

    study: Study
    data: Mapping[str, Any]

    def draw(self) -> None:
        """Draw the panel, and remember it for the session's next run. It sends only a chosen
        language, a logout and the end of this step by Streamlit.
        """
        st.session_state[_DRAWN] = self

        def store_language() -> None:
            state = st.session_state.get(_PANEL)
            sent = state.get("language") if isinstance(state, Mapping) else None
            _store_choice(self.study, sent.get("code") if isinstance(sent, Mapping) else None)

        _mount(
            key=_PANEL,
            data=self.data,
            on_language_change=store_language,
            on_log_out_change=logging_out(self.study),
            on_page_change=lambda: None,  # Streamlit runs the script again, which draws the step
        )


def pop_panel() -> DrawnPanel | None:
    """Remove and return the panel that this session's last run drew; None if it drew none."""
    drawn: DrawnPanel | None = st.session_state.pop(_DRAWN, None)
    return drawn


def show_items(desks: Desks, admission: Admission, language: Language, *, practice: bool) -> None:
    """Show the rater's item in the panel, of the practice or of the labelling."""
    study, data = desks.desk.study, hand_out(desks, admission, language, practice=practice)
    panel_data = payload.lightened(data, known=frozenset())  # a new panel gets all texts in full
    ticket, note = ticket_of(study, admission), None if practice else unsent_note(study)
    DrawnPanel(study, {"ticket": ticket, "note": note, "panel": panel_data}).draw()


def hand_out(
    desks: Desks,
    admission: Admission,
    language: Language,
    *,
    practice: bool,
    receipts: Mapping[str, str] = payload.NO_RECEIPTS,
    look: payload.Navigation | None = None,
) -> dict[str, Any]:
    """Hand the rater their next item, or the earlier one that they want to `look` at; return what
    the panel shows, with the item as its "sheet", None if none is left. `receipts`: statuses, by
    id, of what the panel has sent. If no item is left and nothing else ends the work, such as a
    pause or the end of the day, store the session as complete.
    """
    rater, labelling_desk = admission.rater_id, desks.desk
    read_config = partial(config_of, labelling_desk, admission, language, practice=practice)
    desk = desks.sessions.practice if practice else labelling_desk
    data = payload.page_data(desk, rater, receipts, look, read_config, language)
    if data["sheet"] is None and not practice and not labelling_desk.end_reason(rater):
        desks.sessions.complete(rater)
    return data | {"study_state": desks.state}  # the panel returns it with answers


def config_of(
    desk: AnnotationDesk, admission: Admission, language: Language = ENGLISH, practice: bool = False
) -> payload.PanelConfig:
    """Return the panel's present words and links for a rater. Excluded participants never get the
    link with which others finish.
    """
    study, is_participant = desk.study, admission.way == "prolific"
    end_reason = "" if practice else desk.end_reason(admission.rater_id)
    words = language.part("panel_prolific") if is_participant else {}
    finish = resumes = ""  # the link back, and when work resumes
    if end_reason == "day":
        now = datetime.now(UTC) - MIDNIGHT_GRACE  # it may be past midnight by now
        resumes = start_of_day(study.config.session, now, later=1).isoformat()
    elif end_reason == "excluded" and is_participant:
        finish = completion_url(study, "stopped")
    elif not (end_reason or practice) and is_participant:
        has_labelled = desk.has_labelled(admission.rater_id)
        finish = completion_url(study, "complete" if has_labelled else "nothing_left")
    if end_reason:
        # The panel's last screen has the words "done_..." after some work, else "nothing_...".
        last = language.part(f"panel_{'stopped' if finish else end_reason}")
        words |= {f"{when}_{name}": last[name] for when in ("done", "nothing") for name in last}
    way_out = {"open": "change_rater", "account": "log_out"}.get(admission.way, "")
    return payload.PanelConfig(practice, words, way_out, finish, resumes)


# ---- the notice of answers that wait unsent in the browser, on pages without the panel ----------

_ARRIVED = "unsent arrived"  # in the session's state: by rater and submit id, True if stored
_MOST_UNSENT = 200
_unsent_notice = component(
    "evenhand_unsent",
    html='<p class="unsent" role="alert" hidden><span></span> <button type="button"></button></p>',
    css=payload.app_files("unsent.css"),
    js=payload.app_files("panel/drafts.js", "panel/view.js", "unsent.js"),
)


def unsent_note(study: Study) -> dict[str, Any]:
    """Return the name of the browser's note of where unsent answers wait. It depends on the address
    alone, so that it is found when a rater comes back by the same one but is not admitted.
    """
    address = sorted(st.query_params.to_dict().items())
    name = digest(study.blinding_key, "unsent", repr(address))[:16]
    return {"name": f"evenhand-unsent-{name}", "by_link": bool(address)}


def show_unsent(
    desk: AnnotationDesk, language: Language, rater: str | None = None, *, is_over: bool = False
) -> None:
    """Draw the notice of this rater's answers that did not arrive, until it is read; without a
    rater, of all who used the panel by this address. `is_over`: answers cannot be sent later. The
    browser deletes only answers that are stored: a rater may be admitted again.
    """
    arrived = st.session_state.get(_ARRIVED, {}).get(rater, {})
    words, kind = language.part("panel"), "over" if is_over else "kept"
    data = {
        "note": unsent_note(desk.study),
        "drafts": payload.drafts_name(desk, rater) if rater else "",
        "arrived": arrived,
        "kind": kind,
        "words": {name: words[name] for name in ("lost", "noted")}
        | {"why": language.part("unsent")[kind]},
    }
    waiting = _unsent_notice(key="unsent", data=data, on_waiting_change=lambda: None)["waiting"]
    if rater and isinstance(waiting, list):
        ids = [submit_id for submit_id in waiting[:_MOST_UNSENT] if isinstance(submit_id, str)]
        if not arrived.keys() >= {*ids}:  # the store was not yet asked about all
            stored = desk.stored_submissions(rater, ids)
            st.session_state[_ARRIVED] = {rater: {id_: id_ in stored for id_ in ids}}
            st.rerun()


# ---- the pages before the labelling and after it ------------------------------------------------

_code_at_end = component(
    "evenhand_code",
    html='<div class="end"></div>',
    css=payload.app_files("panel/copying.css"),
    js=payload.app_files("panel/copying.js", "code_at_end.js"),
)
_END_BY_REASON: dict[str, End] = {
    "screened_out": "screened_out",
    "side_full": "screened_out",
    "no_consent": "no_consent",
    "returned": "returned",
    "timed_out": "returned",
}
"""Ends with a code that leads back to Prolific, by reason; "rejected" comes after that return."""


@dataclass(frozen=True)
class _StepPage:
    """The page of a rater's step, in their language."""

    sessions: Sessions
    admission: Admission
    step: Step
    language: Language

    def say(self, key: str, /, **fields: object) -> str:
        return self.language.say(key, **fields)

    def draw_button(
        self,
        label: str,
        key: str,
        store: Callable[..., None],
        *arguments: object,
        form: str = "",
        is_first: bool = True,
    ) -> None:
        """Draw a button that calls `store(rater, *arguments)`; in a form also with the fields, with
        keys `FORM.NAME` (see `acts`).
        """
        study = self.sessions.study
        admit = partial(read_ticket, study, ticket_of(study, self.admission), present_browser())
        place, button = form or key, st.form_submit_button if form else st.button
        act = storing_callback(place, lambda: admit().rater_id, store, *arguments)
        # Streamlit has called `on_click` before, unless the server restarted since the page was
        # drawn; so call it here, too. A second call stores nothing: that step or attempt is over.
        if button(label, type="primary" if is_first else "secondary", key=key, on_click=act):
            act()
            st.rerun()
        show_outcome(place)


def _key(name: str, *shown: str) -> str:
    """Return a widget's key by the texts shown with it: once they change, no older click counts."""
    return f"{name}-{hashlib.sha256(repr(shown).encode()).hexdigest()[:16]}"


def show_step(sessions: Sessions, admission: Admission, step: Step, language: Language) -> None:
    """Draw the page of a rater's step; the panel draws "practice" and "labelling"."""
    page = _StepPage(sessions, admission, step, language)
    st.html(Path(__file__).with_name("session_pages.css"))
    with st.container(key="step"):
        if step.name != "ended":
            name = "practice" if step.name == "feedback" else step.name
            at, of = sessions.steps.index(name) + 1, len(sessions.steps)
            bar = f'<progress value="{at}" max="{of}" aria-hidden="true"></progress>'
            show(block(page.say("session.place", at=at, of=of), "place"), bar)
        _PAGES[step.name](page)


def _show_welcome(page: _StepPage) -> None:
    texts, code = page.sessions.texts, page.language.code
    warning = texts.in_language("content_warning", code)
    instructions = texts.in_language("instructions", code)
    show(heading(page.say("session.welcome_title"), 1))
    if warning.text:
        label = page.say("session.warning")
        show(drawn_text(warning.text, "warning", label, lang=warning.language))
    if instructions.text:
        show(drawn_text(instructions.text, lang=instructions.language))
    key = f"go-on-{_key('welcome', warning.text, instructions.text)}"
    page.draw_button(page.say("session.go_on"), key, page.sessions.record_welcome_read, code)


def _show_consent(page: _StepPage) -> None:
    sessions, code = page.sessions, page.language.code
    consent = sessions.texts.in_language("consent", code)
    title = heading(page.say("session.consent_title"), 1)
    show(title, drawn_text(consent.text, lang=consent.language))
    agree, disagree = (_key(name, consent.text) for name in ("agree", "disagree"))
    page.draw_button(page.say("session.agree"), agree, sessions.decide_consent, True, code)
    no = page.say("session.disagree")
    page.draw_button(no, disagree, sessions.decide_consent, False, code, is_first=False)


def _show_side(page: _StepPage) -> None:
    """Draw the background question with quotas, of which an answer is called a side."""
    question = page.sessions.study.config.side
    assert question is not None  # noqa: S101 - else there is no such step
    text, options = page.language.background(question)
    form = _key("side", repr(question))
    names = dict(zip(question.options, map(plain, options), strict=True))
    show(heading(page.say("session.background_title"), 1), block(page.say("session.side_text")))
    with st.form(form, border=False):
        st.radio(plain(text), list(names), index=None, format_func=names.get, key=f"{form}.side")
        page.draw_button(page.say("session.go_on"), f"{form}-sent", _store_side, page, form=form)


def _store_side(rater: str, page: _StepPage, *, side: str | None) -> None:
    if side is None:
        raise InputError(page.say("session.answer_all"))
    page.sessions.answer_side(rater, side)


def _show_rubric(page: _StepPage) -> None:
    original, code = page.step.rubric, page.language.code
    assert original is not None  # noqa: S101 - each step "rubric" has one
    rubric = original.in_language(code)
    show(html_texts.drawn_rubric(rubric, page.language))
    label, key = page.say("session.go_on"), f"go-on-rubric-{rubric.name}-{rubric.hash}"
    page.draw_button(label, key, page.sessions.record_rubric_read, original, code)


def _show_feedback(page: _StepPage) -> None:
    practice, annotation = page.sessions.practice, page.sessions.study.config.annotation
    feedback = practice.feedback(page.admission.rater_id, page.step, page.language.code)
    show(heading(page.say("session.feedback_title"), 1))
    for answer in feedback.questions:
        kind = "right" if answer.is_right else "wrong"
        given = answer.given or page.say("session.skipped")
        lines = [page.say("session.your_answer", answer=given)]
        if not answer.is_right:
            accepted = page.say("session.or").join(answer.accepted)
            lines.append(page.say("session.right_answer", answer=accepted))
        show(block(page.say(f"session.{kind}"), kind, answer.question), block("\n".join(lines)))
    if feedback.explanation:
        show(drawn_text(feedback.explanation, lang=annotation.language))
    read = html_texts.drawn_blocks(feedback.blocks, page.language, annotation.display)
    show(heading(page.say("session.what_you_read")), read)
    number = practice.units.screens.index(page.step.screen)  # the unit's name reveals too much
    key = f"go-on-feedback-{number}-{page.step.attempt}"
    page.draw_button(page.say("session.go_on"), key, page.sessions.record_feedback_read, page.step)


def _show_comprehension(page: _StepPage) -> None:
    questions, step = page.sessions.study.config.comprehension, page.step
    # Another key for another attempt: the wrong answers are not chosen already.
    key = _key(f"question-{step.attempt}", *map(repr, questions))
    title = heading(page.say("session.comprehension_title"), 1)
    show(title, block(page.say("session.comprehension_text")))
    if step.attempt:
        left = MAX_COMPREHENSION_ATTEMPTS - step.attempt
        html_texts.show_complaint(page.say("session.comprehension_again", count=left))
    with st.form(key, border=False):
        for number, question in enumerate(questions):
            text, field = plain(question.question), f"{key}.{number}"
            st.radio(text, question.options, index=None, format_func=plain, key=field)
            if number in step.missed and question.explanation:
                show(block(question.explanation, "hint"))
        page.draw_button(page.say("session.check"), f"check-{key}", _store_answers, page, form=key)


def _store_answers(rater: str, page: _StepPage, **answers: str | None) -> None:
    """Store the answers, by the numbers of their questions. Raises InputError if one is missing."""
    in_order = [answers[number] for number in sorted(answers, key=int)]
    complete = [answer for answer in in_order if answer is not None]
    if len(complete) < len(in_order):
        raise InputError(page.say("session.answer_all"))
    page.sessions.answer_comprehension(rater, complete, page.step.attempt)


def _show_background(page: _StepPage) -> None:
    background = page.sessions.study.config.background
    questions = background.optional if background else ()
    title = heading(page.say("session.background_title"), 1)
    show(title, block(page.say("session.background_text")))
    form = _key("background", *map(repr, questions))
    with st.form(form, border=False):
        for question in questions:  # shown in the page's language, stored in the study's words
            text, options = page.language.background(question)
            names = dict(zip(question.options, options, strict=True))
            names[""] = page.say("session.prefer_not")  # of which nothing is stored
            label, hint = plain(text), page.say("session.not_answered")
            field, title_of = f"{form}.{question.key}", names.__getitem__
            st.selectbox(label, list(names), None, title_of, placeholder=hint, key=field)
        go_on, sent = page.say("session.go_on"), f"{form}-sent"
        page.draw_button(go_on, sent, _store_background, page, form=form)
    skip, skipped = page.say("session.skip_all"), f"{form}-skipped"
    page.draw_button(skip, skipped, page.sessions.answer_background, {}, is_first=False)


def _store_background(rater: str, page: _StepPage, **answers: str | None) -> None:
    to_store = {key: answer for key, answer in answers.items() if answer}
    page.sessions.answer_background(rater, to_store)


def _show_end(page: _StepPage) -> None:
    reason, study = page.step.reason, page.sessions.study
    title, text = (page.say(f"ended.{reason}.{part}") for part in ("title", "text"))
    show(heading(title, 1), block(text))
    end = _END_BY_REASON.get(reason) if page.admission.way == "prolific" else None
    if end and (code := completion_code(study, end)):
        label, address = page.say("session.back_to_prolific"), completion_url(study, end)
        st.link_button(label, address, type="primary")
        words = page.language.part("panel")
        copying = {name: words[name] for name in ("code", "copy", "copied", "marked")}
        _code_at_end(key="code", data={"code": code, "words": copying})
    else:
        show(block(page.say("session.close")))


_PAGES: Mapping[str, Callable[[_StepPage], None]] = {
    "welcome": _show_welcome,
    "consent": _show_consent,
    "side": _show_side,
    "rubric": _show_rubric,
    "feedback": _show_feedback,
    "comprehension": _show_comprehension,
    "background": _show_background,
    "ended": _show_end,
}
