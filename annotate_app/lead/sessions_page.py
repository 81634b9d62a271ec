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
from evenhand.annotate_app.lead.drawing import show_table
from evenhand.annotate_app.lead.editing import MOST_MB, listed, written_down
from evenhand.annotate_app.lead.live_figures import counted, latest_figures
from evenhand.annotate_app.logins import require, root_address
from evenhand.lazy import pd
from evenhand.reporting.exporting import (
    as_csv,
    exported_answers,
    exported_attacked,
    exported_decisions,
    exported_ratings,
    exported_remarks,
    exported_times,
    exported_units,
    part_path,
    sidecar_text,
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
    _show_invites(study)
    _show_places(study)
    st.header("Pause", anchor=False)
    is_paused = oversight(study.store).paused
    turning = lead_callback(study, "pause", _turn, resume if is_paused else pause)
    st.text(written("lead.paused" if is_paused else "lead.pausing"))
    if is_paused:
        st.button("Go on", type="primary", on_click=turning)
    else:
        st.button("Pause the study", on_click=turning)
    show_outcome("pause")
    st.header("Sample", anchor=False)
    pairs = study.store.pairs()
    sampled, total, noun = len(study.store.sample()), len(pairs), prompts_noun(pairs)
    st.text(written("lead.sampled", sampled=sampled, total=total, noun=noun))
    if (most := total - sampled) != 0:
        with act_form(study, "extend", "Enlarge the sample", _extend):
            st.number_input(f"More {noun}", 1, most, min(20, most), key="extend.more")


def _show_invites(study: Study) -> None:
    st.header("Invites", anchor=False)
    st.text(written("lead.invites"))
    with st.form("invite", border=False):
        st.text_input(
            "Annotator codes, separated by commas; leave it empty for new ones",
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
    made = invites_table(study)
    if made.empty:
        st.text(written("lead.no_invites"))
        return
    shown, headings = made.assign(who=made["rater_id"].replace("", _ANYONE)), {"who": "For"}
    headings["open"] = "Links"
    show_table(shown, "Links that were made", "who open revoked last_made", headings=headings)
    with act_form(study, "revoke", "Revoke", _revoke):
        st.selectbox(
            "Revoke the links of",
            made["rater_id"].tolist(),
            index=None,
            format_func=lambda name: name or _ANYONE,
            placeholder="Choose whose",
            key="revoke.rater",
        )


def _invite(
    study: Study, who: Visitor, is_address: bool, *, codes: str, count: int, hours: int
) -> Callable[[], None]:
    raters = [""] if is_address else listed(codes) or [new_code() for _ in range(count)]
    made = make_invites(study, raters, hours)
    note_act(study.store, "invite", "", f"made: {len(made)}", who.name)
    prolific = study.config.prolific
    return partial(_show_links, made, is_address and not (prolific and prolific.signed_for))


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
        f"{invite.rater_id} {base}?invite={invite.token}"
        if invite.rater_id
        else study_url(base, invite.token)
        for invite in made
    )
    st.code("\n".join(lines), language=None, wrap_lines=True)
    if any_id:
        st.text(written("lead.prolific_known_id"))


def _turn(study: Study, who: Visitor, turn: Callable[..., None]) -> None:
    turn(study.store, "", who.name)


def _extend(study: Study, who: Visitor, *, more: int) -> None:
    with open_study(study.folder) as present:  # its settings may be newer than ours
        extend_sample(present, more)
        note_act(study.store, "sample", "", f"pairs: {len(present.store.sample())}", who.name)


# Participants' places: given back, taken up again, and what is owed


_ACTS = {
    "returned": "Returned: give the place back",
    "timed_out": "Timed out: give the place back",
    "rejected": "Rejected: give back the answered places too",
    "readmit": "Let them go on after all",
}


def _show_places(study: Study) -> None:
    st.header("Places", anchor=False)
    times = session_times(study, Sessions(study))
    if times.empty:
        st.text(written("session.nobody"))
    else:
        times = times.assign(minutes=times["active_seconds"] / 60)
        columns = "rater_id state units minutes end owed why"
        show_table(times, "Who took part", columns, folded=True)
    st.text(written("lead.places"))
    with act_form(study, "places", "Change the place", _change_place, clears=True):
        st.text_input("Annotator code or participant id", autocomplete="off", key="places.name")
        acts = list(_ACTS)
        st.selectbox("What happened", acts, format_func=_ACTS.__getitem__, key="places.act")
    if study.config.prolific is None:
        return
    with act_form(study, "submissions", "Take in the list", _take_submissions, clears=True):
        label, key = written("lead.submissions"), "submissions.file"
        st.file_uploader(label, ["csv"], max_upload_size=MOST_MB, key=key)


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
    sessions, outcomes = Sessions(study), []
    for rater, act in acts.items():
        if act in RELEASE_REASONS:
            outcomes.append(written("lead.freed", rater=rater, count=sessions.release(rater, act)))
        else:
            sessions.readmit(rater)
            outcomes.append(written("session.readmitted", rater=rater))
        note_act(study.store, "place", rater, act, who.name)
    return "\n".join(outcomes)


# Accounts with a password: list them, with their roles, create one, end one.

_ROLES = {"expert": "Expert: labels and adjudicates", "lead": "Lead: everything on these pages"}


def show_accounts(study: Study) -> None:
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
    existing = accounts(study.store)
    if existing:
        st.header("End an account", anchor=False)
        with st.form("disable", border=False, clear_on_submit=True):
            st.selectbox(
                "Account",
                list(existing),
                index=None,
                placeholder="Choose an account",
                key="disable.name",
            )
            st.form_submit_button("End it", on_click=lead_callback(study, "disable", _disable))
    show_outcome("disable")
    st.header("Accounts", anchor=False)
    if existing:
        rows = [{"name": account.name, "role": account.role} for account in existing.values()]
        show_table(pd.DataFrame(rows), "Who can log in", "name role")
    else:
        st.text(written("lead.no_accounts"))


def _set(study: Study, who: Visitor, *, name: str, password: str, role: Role) -> str:
    name = name.strip()
    set_account(study.store, name, password, role)
    note_act(study.store, "account", name, f"set: {role}", who.name)
    return written("session.logs_in", name=name, role=role)


def _disable(study: Study, who: Visitor, *, name: str | None) -> str | None:
    if name is None:
        return None
    disable_account(study.store, name)
    note_act(study.store, "account", name, "ended", who.name)
    return written("session.disabled", name=name)


# The study's tables and its report, to take away.

_TABLES: dict[str, tuple[str, Callable[[Study], pd.DataFrame]]] = {
    "ratings.csv": ("Ratings", exported_ratings),
    "ratings.units.csv": ("Items, sampled or rated", exported_units),
    "remarks.csv": ("Remarks of raters", exported_remarks),
    "answers.csv": ("How answers were given", exported_answers),
    "raters.csv": ("Annotators and their pace", rater_progress),
    "times.csv": ("Times and pay", exported_times),
    "attention.csv": ("Attention checks", attention_results),
    "background.csv": ("What annotators said of themselves", raters_table),
    "decisions.csv": ("Decisions of the lead", exported_decisions),
}
_AUDIT = ("Answers of the injection audit", exported_attacked)
_ATTACKED = part_path(Path("ratings.csv"), "attacked").name
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
            _offer_file(study, who, name, title, partial(counted, study, as_csv, make))
        sidecar, title = sidecar_path(Path("ratings.csv")).name, "Scales, thresholds and settings"
        make_sidecar = partial(sidecar_of, study, _ATTACKED if audited else "")
        _offer_file(study, who, sidecar, title, make_sidecar, "application/toml")
    st.header("Report", anchor=False)
    _report(study)


def _offer_file(
    study: Study, who: str, name: str, title: str, make: Callable[[], bytes], mime: str = "text/csv"
) -> None:
    """Draw the button that makes a file on request; its download is noted in the log."""

    def noted() -> bytes:
        content = make()
        note_act(study.store, "export", name, f"{len(content):,} bytes", who)
        return content

    st.download_button(title, data=noted, file_name=name, mime=mime, on_click="ignore")


def sidecar_of(study: Study, attacked: str) -> bytes:
    """Return the sidecar that `evenhand check ratings.csv` reads with the ratings, the units and,
    after an injection audit, its file of `attacked` answers.
    """
    return sidecar_text(study, part_path(Path("ratings.csv"), "units").name, attacked).encode()


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
LOGGED = {
    "account", "adjudication", "backup", "disagreement", "exclude", "export", "file",
    "flag_answered", "flag_closed", "flag_reopened", "flag_withdrawn", "grades", "import", "invite",
    "link", "pause", "place", "readmit", "responses", "resume", "rewording", "sample", "settings",
    "store", "study", "threshold",
}  # fmt: skip
"""Kinds of acts, each with its words in texts.toml."""


def show_log(study: Study) -> None:
    logged = acts(study.store)
    if logged.empty:
        st.text(written("lead.no_acts"))
        return
    shown = logged.head(_MOST)
    kinds = shown["kind"].str.replace(" ", "_")
    shown = shown.assign(kind=[written(f"lead.act_{kind}") for kind in kinds])
    st.text(written("lead.acts", shown=len(shown), count=len(logged)))
    headings = {"done_by": "Who", "kind": "What", "detail": "In detail"}
    columns = "created_at done_by kind about detail"
    show_table(shown, "What leads did", columns, headings=headings)
