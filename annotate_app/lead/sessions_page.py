"""The pages on who takes part, what is taken away, and who did what: sessions (invitations, pause,
and the size of the sample), accounts, export, log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import get_args

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from evenhand.annotate_app.acts import act_form, lead_callback, show_outcome
from evenhand.annotate_app.lead.parts.drawing import show_table
from evenhand.annotate_app.lead.parts.editing import MOST_MB, listed, written_down
from evenhand.annotate_app.lead.parts.live_figures import counted, latest_figures
from evenhand.annotate_app.logins.lead_login import require, root_address
from evenhand.lazy import pd
from evenhand.reporting.exporting import (
    as_csv,
    attacked_path,
    exported_answers,
    exported_attacked,
    exported_decisions,
    exported_ratings,
    exported_remarks,
    exported_times,
    exported_units,
    sidecar_text,
    units_path,
)
from evenhand.reporting.ratings_file.declared import sidecar_path
from evenhand.study import Study, extend_sample, open_study
from evenhand.study.access.accounts import (
    SHORTEST_PASSWORD,
    Role,
    Visitor,
    accounts,
    disable_account,
    set_account,
)
from evenhand.study.access.admission import (
    LONGEST_HOURS,
    Invite,
    invites_table,
    make_invites,
    new_code,
    revoke_invites,
)
from evenhand.study.desk.claims import attention_results, oversight, pause, resume
from evenhand.study.lead.progress import data_version, rater_progress
from evenhand.study.prompts.pairs import prompts_noun
from evenhand.study.session.sessions import (
    RELEASE_REASONS,
    Sessions,
    rater_of,
    raters_table,
    released_submissions,
    session_times,
    study_url,
)
from evenhand.study.store.logs.decisions import acts, note_act
from evenhand.study.store.logs.replies import was_audited
from evenhand.texts import written

_MOST_INVITES = 200
_ANYONE = "anyone from Prolific"


def show_sessions(study: Study) -> None:
    require(study, "lead")
    _ask_for_invites(study)
    _show_invites(study)
    show_places(study)
    _ask_for_pause(study)
    _ask_for_more(study)


def _ask_for_invites(study: Study) -> None:
    st.header("Invites", anchor=False)
    st.text(written("lead.invites"))
    with st.form("invite", border=False):
        st.text_input(
            "Rater codes, separated by commas; leave it empty for new ones",
            autocomplete="off",
            key="invite.codes",
        )
        st.number_input("How many new ones", 1, _MOST_INVITES, 1, key="invite.count")
        st.number_input("Valid for so many hours", 1, int(LONGEST_HOURS), 168, key="invite.hours")
        st.form_submit_button("Make links", on_click=lead_callback(study, "invite", _invite, False))
        if study.config.prolific is not None:
            inviting = lead_callback(study, "invite", _invite, True)
            st.form_submit_button("Make the address for Prolific", on_click=inviting)
    show_outcome("invite")


def _invite(
    study: Study, who: Visitor, is_address: bool, *, codes: str, count: int, hours: int
) -> Callable[[], None]:
    raters = [""] if is_address else listed(codes) or [new_code() for _ in range(count)]
    made = make_invites(study, raters, hours)
    note_act(study.store, "invite", "", f"made: {len(made)}", who.name)
    prolific = study.config.prolific
    return partial(_show_links, made, is_address and not (prolific and prolific.signed_for))


def _show_invites(study: Study) -> None:
    made = invites_table(study)
    if made.empty:
        st.text(written("lead.no_invites"))
        return
    raters = made["rater_id"].tolist()
    shown, headings = made.assign(who=made["rater_id"].replace("", _ANYONE)), {"who": "For"}
    headings["open"] = "Links"
    show_table(shown, "Links that were made", "who open revoked last_made", headings=headings)
    with act_form(study, "revoke", "Revoke", _revoke):
        st.selectbox(
            "Revoke the links of",
            raters,
            index=None,
            format_func=lambda name: name or _ANYONE,
            placeholder="Choose whose",
            key="revoke.rater",
        )


def _revoke(study: Study, who: Visitor, *, rater: str | None) -> str | None:
    if rater is None:
        return None
    revoked = revoke_invites(study, rater)
    note_act(study.store, "invite", rater, f"revoked: {revoked}", who.name)
    return written("lead.revoked", count=revoked)


def _show_links(made: list[Invite], any_id: bool) -> None:
    base = root_address()
    st.text(written("lead.links_once"))
    lines = (
        f"{each.rater_id} {base}?invite={each.token}"
        if each.rater_id
        else study_url(base, each.token)
        for each in made
    )
    st.code("\n".join(lines), language=None, wrap_lines=True)
    if any_id:
        st.text(written("lead.prolific_known_id"))


def _ask_for_pause(study: Study) -> None:
    st.header("Pause", anchor=False)
    if oversight(study.store).paused:
        st.text(written("lead.paused"))
        st.button("Go on", type="primary", on_click=lead_callback(study, "pause", _turn, resume))
    else:
        st.text(written("lead.pausing"))
        st.button("Pause the study", on_click=lead_callback(study, "pause", _turn, pause))
    show_outcome("pause")


def _turn(study: Study, who: Visitor, turn: Callable[..., None]) -> None:
    turn(study.store, "", who.name)


def _ask_for_more(study: Study) -> None:
    st.header("Sample", anchor=False)
    pairs = study.store.pairs()
    sampled, total, noun = len(study.store.sample()), len(pairs), prompts_noun(pairs)
    st.text(written("lead.sampled", sampled=sampled, total=total, noun=noun))
    if sampled == total:
        return
    with act_form(study, "extend", "Enlarge the sample", _extend):
        most = total - sampled
        st.number_input(f"More {noun}", 1, most, min(20, most), key="extend.more")


def _extend(study: Study, who: Visitor, *, more: int) -> None:
    with open_study(study.folder) as present:  # its settings may be newer than ours
        extend_sample(present, more)
        note_act(study.store, "sample", "", f"pairs: {len(present.store.sample())}", who.name)


# Participants' places: given back, taken up again, and what is owed


_READMIT = "readmit"
_ACTS = {
    "returned": "Returned: give the place back",
    "timed_out": "Timed out: give the place back",
    "rejected": "Rejected: give back the answered places too",
    _READMIT: "Let them go on after all",
}


def show_places(study: Study) -> None:
    """The part of the page on people's places. The caller has checked the visitor's login."""
    st.header("Places", anchor=False)
    _show_times(study, Sessions(study))
    st.text(written("lead.places"))
    with act_form(study, "places", "Change the place", _change_place, clears=True):
        st.text_input("Rater code or participant id", autocomplete="off", key="places.name")
        acts = list(_ACTS)
        st.selectbox("What happened", acts, format_func=_ACTS.__getitem__, key="places.act")
    if study.config.prolific is None:
        return
    with act_form(study, "submissions", "Take in the list", _take_submissions, clears=True):
        said, key = written("lead.submissions"), "submissions.file"
        st.file_uploader(said, ["csv"], max_upload_size=MOST_MB, key=key)


def _change_place(study: Study, who: Visitor, *, name: str, act: str) -> str:
    return _change_places(study, who, {rater_of(study, name.strip()): act})


def _take_submissions(study: Study, who: Visitor, *, file: UploadedFile | None) -> str | None:
    if file is None:
        return None
    with written_down(submissions=file) as paths:
        path = paths["submissions"]
        reasons = released_submissions(study, path) if path is not None else {}
    return _change_places(study, who, reasons) or written("lead.submissions_none")


def _change_places(study: Study, who: Visitor, acts: Mapping[str, str]) -> str:
    """Carry out the act chosen for each rater; return what came of each, one a line."""
    sessions, said = Sessions(study), []
    for rater, act in acts.items():
        if act in RELEASE_REASONS:
            said.append(written("lead.freed", rater=rater, count=sessions.release(rater, act)))
        else:
            sessions.readmit(rater)
            said.append(written("session.readmitted", rater=rater))
        note_act(study.store, "place", rater, act, who.name)
    return "\n".join(said)


def _show_times(study: Study, sessions: Sessions) -> None:
    times = session_times(study, sessions)
    if times.empty:
        st.text(written("session.nobody"))
        return
    times = times.assign(minutes=times["active_seconds"] / 60)
    columns = "rater_id state units minutes end owed why"
    show_table(times, "Who took part", columns, folded=True)


# Accounts with a password: list them, with their roles, create one, end one.

_ROLES = {"expert": "Expert: labels and adjudicates", "lead": "Lead: everything on these pages"}


def show_accounts(study: Study) -> None:
    require(study, "lead")
    _ask_for_account(study)
    _ask_for_end(study)
    _show_known(study)


def _ask_for_account(study: Study) -> None:
    st.header("Add an account, or change one", anchor=False)
    with act_form(study, "account", "Save the account", _set, clears=True):
        st.text_input("Name", autocomplete="off", key="account.name")
        st.text_input(
            f"Password (at least {SHORTEST_PASSWORD} characters)",
            type="password",
            autocomplete="new-password",
            key="account.password",
        )
        roles = get_args(Role)
        st.selectbox("Role", roles, format_func=_ROLES.__getitem__, key="account.role")


def _set(study: Study, who: Visitor, *, name: str, password: str, role: Role) -> str:
    name = name.strip()
    set_account(study.store, name, password, role)
    note_act(study.store, "account", name, f"set: {role}", who.name)
    return written("session.logs_in", name=name, role=role)


def _ask_for_end(study: Study) -> None:
    names = list(accounts(study.store))
    if names:
        st.header("End an account", anchor=False)
        with st.form("disable", border=False, clear_on_submit=True):
            st.selectbox(
                "Account", names, index=None, placeholder="Choose an account", key="disable.name"
            )
            st.form_submit_button("End it", on_click=lead_callback(study, "disable", _disable))
    show_outcome("disable")


def _disable(study: Study, who: Visitor, *, name: str | None) -> str | None:
    if name is None:
        return None
    disable_account(study.store, name)
    note_act(study.store, "account", name, "ended", who.name)
    return written("session.disabled", name=name)


def _show_known(study: Study) -> None:
    known = accounts(study.store).values()
    st.header("Accounts", anchor=False)
    if not known:
        st.text(written("lead.no_accounts"))
        return
    rows = pd.DataFrame([{"name": each.name, "role": each.role} for each in known])
    show_table(rows, "Who can log in", "name role")


# The study's tables and its report, to take away.

_TABLES: dict[str, tuple[str, Callable[[Study], pd.DataFrame]]] = {
    "ratings.csv": ("Ratings", exported_ratings),
    "ratings.units.csv": ("Units, sampled or rated", exported_units),
    "remarks.csv": ("Remarks of raters", exported_remarks),
    "answers.csv": ("How answers were given", exported_answers),
    "raters.csv": ("Raters and their pace", rater_progress),
    "times.csv": ("Times and pay", exported_times),
    "attention.csv": ("Attention checks", attention_results),
    "background.csv": ("What raters said of themselves", raters_table),
    "decisions.csv": ("Decisions of the lead", exported_decisions),
}
_AUDIT = ("Answers of the injection audit", exported_attacked)
_ATTACKED = attacked_path(Path("ratings.csv")).name
_REPORT = {
    "report.html": ("Report", "text/html"),
    "report.md": ("Report as Markdown", "text/markdown"),
    "report.json": ("Report as JSON", "application/json"),
    "results.csv": ("Results", "text/csv"),
}


def show_export(study: Study) -> None:
    who = require(study, "lead").name
    st.header("Tables", anchor=False)
    st.text(
        "As CSV. A cell that a spreadsheet would run as a formula has an apostrophe before it; "
        "evenhand takes it off again when it reads the file."
    )
    audited = was_audited(study.store)
    tables = _TABLES | ({_ATTACKED: _AUDIT} if audited else {})
    with st.container(horizontal=True):
        for name, (title, make) in tables.items():
            st.download_button(
                title,
                # Made on request, not each time the page is drawn.
                data=partial(_noted, study, who, name, partial(counted, study, as_csv, make)),
                file_name=name,
                mime="text/csv",
                on_click="ignore",
            )
        sidecar = sidecar_path(Path("ratings.csv")).name
        make_sidecar = partial(_sidecar, study, _ATTACKED if audited else "")
        st.download_button(
            "Scales, thresholds and settings",
            data=partial(_noted, study, who, sidecar, make_sidecar),
            file_name=sidecar,
            mime="application/toml",
            on_click="ignore",
        )
    st.header("Report", anchor=False)
    _report(study)


def _noted(study: Study, who: str, name: str, make: Callable[[], bytes]) -> bytes:
    """A file; its download is noted in the log."""
    content = make()
    note_act(study.store, "export", name, f"{len(content):,} bytes", who)
    return content


def _sidecar(study: Study, attacked: str) -> bytes:
    """Return the sidecar that `evenhand check ratings.csv` reads with the ratings, the units and,
    after an injection audit, its file of `attacked` answers.
    """
    return sidecar_text(study, units_path(Path("ratings.csv")).name, attacked).encode()


@st.fragment(run_every="5s")
def _report(study: Study) -> None:
    who = require(study, "lead").name
    figures = latest_figures(study)
    if figures is None:
        return
    if figures.version != data_version(study):
        st.text(written("lead.report_older"))
    with st.container(horizontal=True):
        for name, (title, mime) in _REPORT.items():
            file = figures.folder / name
            if file.is_file():
                st.download_button(
                    title,
                    data=file.read_bytes(),
                    file_name=name,
                    mime=mime,
                    on_click=note_act,
                    args=(study.store, "export", name, "", who),
                )


# The log of the leads' acts: who, what and when. Nothing here is ever changed or removed.

_MOST = 500
_LOGGED = (
    "act_account",
    "act_adjudication",
    "act_backup",
    "act_disagreement",
    "act_exclude",
    "act_export",
    "act_file",
    "act_flag_closed",
    "act_flag_reopened",
    "act_flag_withdrawn",
    "act_grades",
    "act_import",
    "act_invite",
    "act_link",
    "act_pause",
    "act_place",
    "act_readmit",
    "act_responses",
    "act_resume",
    "act_rewording",
    "act_sample",
    "act_settings",
    "act_store",
    "act_study",
    "act_threshold",
)


def show_log(study: Study) -> None:
    require(study, "lead")
    found = acts(study.store)
    if found.empty:
        st.text(written("lead.no_acts"))
        return
    shown = found.head(_MOST)
    shown = shown.assign(kind=shown["kind"].map(_said))
    st.text(written("lead.acts", shown=len(shown), count=len(found)))
    headings = {"done_by": "Who", "kind": "What", "detail": "In detail"}
    columns = "created_at done_by kind about detail"
    show_table(shown, "What leads did", columns, headings=headings)


def _said(kind: str) -> str:
    (key,) = (each for each in _LOGGED if each == f"act_{kind.replace(' ', '_')}")
    return written(f"lead.{key}")
