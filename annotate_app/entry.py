"""Entry to the app: annotators by their address, a login that the browser keeps, or single sign-on;
leads by a link that works once, by name and password, or single sign-on.

The code of the lead's pages is imported only once a lead or an expert has logged in. `language` is
always the language of the person who reads the page.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from evenhand.annotate_app import logins
from evenhand.annotate_app.html_texts import block, show, show_complaint
from evenhand.annotate_app.languages import ENGLISH, Language
from evenhand.annotate_app.payload import own_words
from evenhand.annotate_app.sites import visitor_address
from evenhand.errors import InputError
from evenhand.study import Study, access, open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.settings.study_toml import read_config
from evenhand.texts import written

# ---- single sign-on, by Streamlit's `st.login` --------------------------------------------------
#
# The annotators' and the lead's entry are two providers to Streamlit, with the same settings: it
# sends every visitor back to the front page, where only the provider's name tells the two apart.

# Keys in the session: whether `arrive` has checked the visitor, and the error if it refused them.
_CHECKED, _REFUSED = "single_sign_on_checked", "single_sign_on_refused"


def app_secrets(folder: Path) -> dict[str, Any]:
    """Return Streamlit's settings for the study's provider, in the form of a secrets.toml. Empty if
    the study has no provider, or one that cannot work, which the page reports.
    """
    try:
        if (settings := read_config(folder).oidc) is None:
            return {}
        provider = {
            "client_id": settings.client_id,
            "client_secret": access.client_secret(settings),
            "server_metadata_url": settings.server_metadata_url,
            "client_kwargs": {"scope": "openid email"},
        }
        with open_study(folder) as study:
            shared = {
                "redirect_uri": f"{settings.address}/oauth2callback",
                "cookie_secret": access.cookie_secret(study.store),
            }
    except InputError:
        return {}
    return {"auth": {**shared, "lead": provider, "label": provider}}


def offer_single_sign_on(study: Study, entry: Literal["lead", "label"], language: Language) -> None:
    """Draw the button of the study's provider, if it has one, and why the visitor was refused."""
    if (settings := study.config.oidc) is None:
        return
    if st.button(language.say("login.single_sign_on"), width="stretch", key="single-sign-on"):
        st.session_state.pop(_REFUSED, None)
        try:
            access.client_secret(settings)  # without it the login would fail later
        except InputError as error:
            show_complaint(str(error))
        else:
            st.login(entry)
    if refused := st.session_state.get(_REFUSED):
        show_complaint(language.complaint(refused))


def arrive(study: Study) -> None:
    """Admit a visitor who comes back from the provider, at the entry that they used.

    Checked once in a session, as Streamlit reads the provider's cookie only when it begins.
    """
    if study.config.oidc is None or st.session_state.get(_CHECKED):
        return
    st.session_state[_CHECKED] = True
    user = st.user.to_dict()
    entry = user.get("provider")
    if user.get("is_logged_in") is not True or entry not in ("lead", "label"):
        return
    minutes = access.LOGIN_MINUTES if entry == "lead" else study.config.session.login_hours * 60
    try:
        login = access.sign_on(study, user, minutes)
    except InputError as error:
        st.session_state[_REFUSED] = error
    else:
        if login is None:  # the token has expired, was used, or is for another study
            return
        logins.KeptLogin(entry).keep(login)
    if entry == "lead":
        st.query_params[access.LINK_PARAMETER] = _INSIDE


# ---- annotators ---------------------------------------------------------------------------------

# Keys in the session: the annotator's admission, and the code to show in the field again.
_ADMITTED, _TYPED = "admitted", "typed code"
_ANNOTATOR_LOGIN = logins.KeptLogin("label")


def current_rater(desk: AnnotationDesk) -> access.Admission | None:
    """Admit the annotator that the address or a login names; return None if neither names one.

    Checked on every run: a revoked link and an expired login end here. Raises InputError if the
    annotator is not admitted.
    """
    query = st.query_params.to_dict()
    previous: access.Admission | None = st.session_state.get(_ADMITTED)
    login = _ANNOTATOR_LOGIN.held()
    is_open = desk.study.config.session.entry == "open"
    has_same_code = previous is not None and previous.way == "open" and previous.query == query
    if has_same_code and is_open and not login:
        return previous  # codes do not expire
    try:
        admission = access.admit(desk.study, query, login)
    except InputError:
        if login:
            _ANNOTATOR_LOGIN.forget()
        raise
    if admission is None:
        return None
    if previous is None or previous.rater_id != admission.rater_id:
        desk.register(admission.rater_id)
    if not admission.is_new:  # a new code is to be confirmed first (`confirm_new_code`)
        st.session_state[_ADMITTED] = admission
    if query != admission.query:
        st.query_params.from_dict(admission.query)
    return admission


def ticket_of(study: Study, admission: access.Admission) -> str:
    """Return the ticket with which the panel's messages prove that they are this annotator's."""
    return access.make_ticket(study, admission, _ANNOTATOR_LOGIN.held(), logins.present_browser())


def keep_login(study: Study, admission: access.Admission | None = None) -> None:
    """Let the browser keep the login of an annotator with an account, or give back the kept one."""
    may_log_in = admission is None and (study.config.oidc is not None or _has_experts(study))
    if _ANNOTATOR_LOGIN.held() or _ANNOTATOR_LOGIN.is_leaving() or may_log_in:
        _ANNOTATOR_LOGIN.show(study)


def logging_out(study: Study) -> Callable[[], None]:
    """Return a callback that ends the annotator's login, in the browser and on the server."""
    login = _ANNOTATOR_LOGIN.held()

    def end_login() -> None:
        access.log_out(study.store, login)
        _ANNOTATOR_LOGIN.forget(also_at_provider=True)
        st.session_state.pop(_ADMITTED, None)

    return end_login


def ask_for_entry(desk: AnnotationDesk, language: Language, complaint: str = "") -> None:
    """Draw the ways of entry that this study has, below the error of the last attempt."""
    entry = desk.study.config.session.entry
    with st.container(key="entry"):
        st.title(language.say("entry.title"), anchor=False)
        if complaint:
            show_complaint(complaint)
        if entry == "open":
            _ask_for_code(desk, language)
        elif entry == "invite" and not complaint:
            st.text(language.say("entry.invite"))
        offer_single_sign_on(desk.study, "label", language)
        if entry == "account" or _has_experts(desk.study):
            _ask_for_account(desk.study, language, is_only=entry == "account")


def confirm_new_code(desk: AnnotationDesk, admission: access.Admission, language: Language) -> None:
    """Ask to confirm a code that nobody has used yet, before anything is stored under it."""
    with st.container(key="entry"):
        st.title(language.say("entry.new_code_title"), anchor=False)
        show(block(admission.rater_id, "code"), block(language.say("entry.new_code_text")))
        go_on, change = language.say("entry.new_code_go_on"), language.say("entry.new_code_change")
        confirm = partial(access.record_entry, desk.study, admission.rater_id)
        is_confirmed = st.button(
            go_on, type="primary", width="stretch", key="code-go-on", on_click=confirm
        )
        is_rejected = st.button(change, width="stretch", key="code-change")
    if is_confirmed:  # a server that was restarted meanwhile has not called the callback
        confirm()
        st.rerun()
    if is_rejected:
        st.session_state[_TYPED] = admission.rater_id
        _rerun_at({})


def _ask_for_code(desk: AnnotationDesk, language: Language) -> None:
    """Draw the field of an annotator's code under the rubrics' titles; admit a code once sent."""
    rubrics = [rubric.in_language(language.code) for rubric in desk.study.labelled_rubrics()]
    titles = dict.fromkeys(filter(None, (own_words(rubric.title) for rubric in rubrics)))
    show(block(" · ".join(titles), "titles"), block(language.say("entry.text")))
    with st.form("entry-form", border=False):
        typed = st.query_params.get("rater", st.session_state.get(_TYPED, "")).strip()
        label, button = language.say("entry.label"), language.say("entry.button")
        code = st.text_input(label, value=typed, autocomplete="off", key="entry-code")
        is_sent = st.form_submit_button(button, type="primary", width="stretch", key="entry-go")
    if not is_sent:
        return
    try:
        if (admission := access.admit(desk.study, {"rater": code})) is None:
            raise InputError(language.say("entry.empty"))
        desk.register(admission.rater_id)
    except InputError as error:
        show_complaint(language.complaint(error))
    else:
        _rerun_at(admission.query)


def _ask_for_account(study: Study, language: Language, *, is_only: bool) -> None:
    with st.container() if is_only else st.expander(language.say("login.title")):
        entered = _ask_for_password(language)
    if entered is None:
        return
    minutes = study.config.session.login_hours * 60
    try:
        _ANNOTATOR_LOGIN.keep(access.sign_in(study.store, *entered, minutes))
    except InputError as error:
        show_complaint(language.complaint(error))
    else:
        _rerun_at({})


def _has_experts(study: Study) -> bool:
    return any(account.role == "expert" for account in access.accounts(study.store).values())


def _rerun_at(address: dict[str, str]) -> None:
    st.query_params.from_dict(address)
    st.rerun()


def _ask_for_password(language: Language) -> tuple[str, str, str, str] | None:
    """Draw the form of a login; return the name and password that were just sent, with the
    visitor's address and browser (arguments of `access.sign_in`), or None.
    """
    with st.form("login-form", border=False):
        name = st.text_input(language.say("login.name"), autocomplete="username")
        label, fill = language.say("login.password"), "current-password"
        password = st.text_input(label, type="password", autocomplete=fill)
        sent = st.form_submit_button(language.say("login.button"), type="primary", width="stretch")
    return (name.strip(), password, visitor_address(), logins.present_browser()) if sent else None


# ---- leads and experts --------------------------------------------------------------------------

_INSIDE = "in"
"""Value in the address that replaces the token of a link, once the link was used."""
_COMPLAINT = "lead_complaint"


def is_lead_asked_for() -> bool:
    """Return True if the address asks for the lead's pages."""
    return access.LINK_PARAMETER in st.query_params or bool(logins.present_place())


def show_lead_entry(read_study: Callable[[], Study]) -> None:
    """Draw the lead's pages for visitors who may see them, the login for all others. `read_study`
    returns the study as its files are now.
    """
    study = read_study()
    token = st.query_params.get(access.LINK_PARAMETER, "")
    if token not in ("", _INSIDE):
        try:
            admit_lead(access.open_link(study.store, token))
        except InputError as error:
            st.session_state[_COMPLAINT] = str(error)
        if logins.present_place():
            del st.query_params[access.LINK_PARAMETER]
        else:
            st.query_params[access.LINK_PARAMETER] = _INSIDE
    if not logins.LOGIN.held():
        # Only the requested page is declared here, so that it is shown after the login.
        places, title = {"", logins.present_place()}, written("lead_door.title")
        pages = [logins.hidden_page(place, title, lambda: None) for place in places]
        st.navigation(pages, position="hidden")
    logins.LOGIN.show(study)
    try:
        logins.require(study, "lead", "expert")
    except InputError as error:
        _ask_for_lead_login(study, str(error))
        return
    from evenhand.annotate_app.lead.pages import show_pages

    show_pages(read_study)


def _ask_for_lead_login(study: Study, complaint: str) -> None:
    if logins.LOGIN.held():  # the login has expired
        st.session_state[_COMPLAINT] = complaint
        logins.LOGIN.forget()
        st.rerun()
    with st.container(key="entry"):
        st.title(written("lead_door.title"), anchor=False)
        show(block(written("lead_door.text"), "login"))
        offer_single_sign_on(study, "lead", ENGLISH)
        if entered := _ask_for_password(ENGLISH):
            try:
                admit_lead(access.sign_in(study.store, *entered))
            except InputError as error:
                st.session_state[_COMPLAINT] = str(error)
            else:
                st.rerun()
        if last_complaint := st.session_state.get(_COMPLAINT, ""):
            show_complaint(last_complaint)


def admit_lead(login: str) -> None:
    """Let a lead with this login in, and clear the earlier complaint."""
    logins.LOGIN.keep(login)
    st.session_state.pop(_COMPLAINT, None)
