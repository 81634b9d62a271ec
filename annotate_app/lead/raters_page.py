"""Pages of the lead, who runs the study: on annotators (quality of labels, flags that they raise on
items, recruitment), on accounts with a password, and the pages Export and Log.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from functools import partial
from mimetypes import guess_type
from pathlib import Path
from typing import Any, get_args

import streamlit as st
from streamlit.components.v2 import component
from streamlit.runtime.uploaded_file_manager import UploadedFile

from evenhand.annotate_app.acts import act_form, lead_callback, show_outcome
from evenhand.annotate_app.html_texts import block, heading, plain, show, show_complaint
from evenhand.annotate_app.languages import language
from evenhand.annotate_app.lead import parts
from evenhand.annotate_app.logins import require, root_address
from evenhand.annotate_app.payload import app_files
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.reporting import exporting
from evenhand.reporting.ratings_file.declared import sidecar_path
from evenhand.study import Study, access, extend_sample, open_study
from evenhand.study.desk import claims
from evenhand.study.lead import progress
from evenhand.study.lead.disagreements import RaisedFlag, raised_flags, settle_flag
from evenhand.study.prompts.pairs import prompts_noun
from evenhand.study.session import sessions
from evenhand.study.store.logs.decisions import acts, note_act
from evenhand.study.store.logs.replies import was_audited
from evenhand.texts import readable_name, written


def show_raters(study: Study) -> None:
    """Draw the quality of the annotators' labels, or all details of one annotator if chosen."""
    raters = parts.latest(study, progress.rater_progress)["rater_id"].tolist()
    names = {rater: study.config.names.get(rater, rater) for rater in raters}
    above = st.container()  # for the table, which needs the choice
    rater = parts.choose_any("Show one annotator", names, "All", "one_rater", bind="query-params")
    with above:
        _show_quality(study, rater)
    if rater is not None:
        _show_rater(study, rater)
        st.subheader("Exclude or readmit", anchor=False)
        st.text(written("lead.exclusion"))
        is_excluded = rater in claims.oversight(study.store).exclusions
        label = "Readmit" if is_excluded else "Exclude"
        with act_form(study, "exclusion", label, _exclude_or_readmit, rater, is_excluded):
            st.text_input("Reason, shown in the report", autocomplete="off", key="exclusion.reason")


@st.fragment(run_every="3s")
def _show_quality(study: Study, rater: str | None) -> None:
    """Draw the table of annotators, or the row of one, as soon as the figures are made."""
    require(study, "lead")
    if (figures := parts.latest_figures(study)) is None:
        return
    excluded, names = claims.oversight(study.store).exclusions, study.config.names
    table = figures.quality
    is_excluded, is_flagged = table["rater_id"].isin(list(excluded)), table["flagged"] != ""
    st.text(written("lead.to_do_raters", count=int((is_flagged & ~is_excluded).sum()) or "none"))
    order = is_excluded * 2 - is_flagged  # flagged annotators first, excluded ones last
    table = table.loc[order.sort_values(kind="stable").index]
    if rater is not None:
        table = table[table["rater_id"] == rater]
    states = parts.latest(study, progress.rater_progress).set_index("rater_id")["state"]
    rows: list[Any] = table.to_dict("records")
    table = table.assign(
        rater_id=[_name_and_flags(row, names, excluded) for row in rows],
        state=table["rater_id"].map(states).fillna(""),
        kappa=[kappa_cell(row) for row in rows],
        checks=[_PASSED.format_map(row) if row["attention_given"] else "" for row in rows],
    )
    columns = "rater_id state answers kappa median_seconds pace idle_minutes longest_run"
    columns += " checks" if table["checks"].any() else ""
    title = "Annotators compared with the others on the same items"
    with st.container(key="stacked-quality"):
        parts.show_table(table, title, columns, html_columns=("rater_id", "kappa"))


_PASSED = "{attention_passed:.0f} of {attention_given:.0f}"  # attention checks


def _name_and_flags(
    row: Mapping[str, Any], names: Mapping[str, str], excluded: Mapping[str, claims.Exclusion]
) -> str:
    """Return HTML: an annotator's name as a link to their page, above the flags on their work."""
    rater = row["rater_id"]
    flags = [f"excluded: {excluded[rater].reason}"] if rater in excluded else []
    flags += [parts.WORDS["chips"][flag].format_map(row) for flag in row["flagged"].split()]
    chips = "".join(f'<li dir="auto">{html.escape(flag)}</li>' for flag in flags)
    name = html.escape(names.get(rater, rater))
    link = f'<a href="{html.escape(parts.page_of("Annotators", "one_rater", rater))}">{name}</a>'
    return f"{link}<ul>{chips}</ul>" if chips else link


def kappa_cell(row: Mapping[str, Any]) -> str:
    """Return HTML: an annotator's kappa with the others as a dot and interval on a line from 0 to
    1, and in numbers; empty where kappa is not known.
    """
    kappa, low, high = row["agreement"], row["agreement_low"], row["agreement_high"]
    if math.isnan(kappa):
        return ""
    interval = "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
    points = {"at": kappa, "low": low if interval else kappa, "high": high if interval else kappa}
    style = "; ".join(f"--{name}: {min(max(value, 0), 1):.2%}" for name, value in points.items())
    line = f'<small class="evenhand-line">0 <i class="evenhand-dot" style="{style}"></i> 1</small>'
    return f"{line}{kappa:.2f}{interval}"


def _exclude_or_readmit(
    study: Study, who: access.Visitor, rater: str, is_excluded: bool, *, reason: str
) -> None:
    (claims.readmit if is_excluded else claims.exclude)(study.store, rater, reason, who.name)


# ---- one annotator ------------------------------------------------------------------------------

_MOST_ROWS = 50  # latest answers on the page; the export has all


def _show_rater(study: Study, rater: str) -> None:
    """Draw one annotator's exclusion, attention checks and latest answers."""
    if (exclusion := claims.oversight(study.store).exclusions.get(rater)) is not None:
        at, by = parts.to_the_minute(exclusion.created_at), exclusion.done_by
        st.text(written("lead.rater_excluded", by=by, at=at, reason=exclusion.reason))
    answers = parts.counted(study, progress.rater_answers, rater)
    st.subheader("Attention checks", anchor=False)
    checks = parts.counted(study, claims.attention_results)
    checks = checks[checks["rater_id"] == rater]
    if checks.empty:
        st.text(written("lead.rater_no_checks"))
    else:
        checks = checks.assign(result=checks["passed"].map({True: "passed", False: "failed"}))
        columns = "created_at check_id rubric expected given result"
        parts.show_table(checks, "Attention checks", columns)
    with st.expander("Latest answers"):
        columns = "created_at rubric unit_id label others seconds"
        parts.show_table(answers.iloc[::-1].head(_MOST_ROWS), "Latest answers", columns)


# ---- flags that annotators raised on items ------------------------------------------------------

_MOST_FLAGS = 20  # on the page; the next ones follow once these are resolved


def show_flags(study: Study) -> None:
    """Draw the flags on items, open ones first, with fields to resolve each."""
    if not (flags := raised_flags(study)):
        st.text(written("lead.no_flags"))
        return
    n_open = sum(flag.is_open for flag in flags)
    st.text(written("lead.flags_open", open=n_open, closed=len(flags) - n_open))
    for flag in flags[:_MOST_FLAGS]:
        with st.container(border=True):
            _show_flag(study, flag)


def _show_flag(study: Study, flag: RaisedFlag) -> None:
    """Draw a flag with its item, and the fields to resolve it, or how it was resolved."""
    at, rubric = parts.to_the_minute(flag.created_at), parts.rubric_titles(study).get(flag.rubric)
    raised = written("lead.flag_raised", rater=flag.rater_id, rubric=rubric or flag.rubric, at=at)
    title = heading(parts.WORDS["flags"].get(flag.reason, flag.reason), 3)
    show(title, block(raised, "note"), block(flag.text, "quote") if flag.text else "")
    words = parts.first_words(study, flag.unit_id, flag.rubric)
    with st.expander(plain(f"The item: {words}" if words else "The item")):
        st.text(flag.unit_id)
        try:
            show(parts.unit_blocks(study, flag.unit_id, flag.rubric))
        except InputError as error:  # no such rubric any more; the flag can still be resolved
            show_complaint(str(error))
    form = f"flag-{flag.number}"
    if flag.is_open:
        with act_form(study, form, "Mark as resolved", _settle, flag.number):
            row, answer = st.container(horizontal=True), "Answer to the annotator (optional)"
            note = "What was done about it (for leads)"
            row.text_input(note, autocomplete="off", key=f"{form}.note")
            row.text_input(answer, autocomplete="off", key=f"{form}.answer")
    else:  # resolved by a lead, or, before version 0.3.0, withdrawn by its annotator
        at, note = parts.to_the_minute(flag.done_at), flag.note or "withdrawn"
        st.text(written("lead.flag_settled", by=flag.done_by, at=at, note=note))
    show_outcome(form)


def _settle(study: Study, who: access.Visitor, number: int, *, note: str, answer: str) -> None:
    settle_flag(study, number, note, who.name, answer)


# ---- recruitment: invitations, assignments, pause, sample ---------------------------------------

_MOST_INVITES = 200
_ANYONE = "anyone from Prolific"  # whose link is stored with the rater id ""


def show_recruitment(study: Study) -> None:
    """Draw invitations, assignments, and the fields to pause the study or enlarge the sample."""
    is_paused = claims.oversight(study.store).paused
    change = claims.resume if is_paused else claims.pause
    _show_invites(study)
    _show_assignments(study)
    st.header("Pause", anchor=False)
    toggle = lead_callback(study, "pause", lambda study, who: change(study.store, done_by=who.name))
    st.text(written("lead.paused" if is_paused else "lead.pausing"))
    title = "Resume the study" if is_paused else "Pause the study"
    st.button(title, type="primary" if is_paused else "secondary", on_click=toggle)
    show_outcome("pause")
    st.header("Sample", anchor=False)
    pairs, sample = study.store.pairs(), study.store.sample()
    sampled, total, noun = len(sample), len(pairs), prompts_noun(pairs)
    st.text(written("lead.sampled", sampled=sampled, total=total, noun=noun))
    if (most := total - sampled) != 0:
        act = f"extend{sampled}"  # once the sample is another one, no older click counts
        with act_form(study, act, "Enlarge the sample", _extend, sample):
            st.number_input(f"More {noun}", 1, most, value=min(20, most), key=f"{act}.more")


_links = component(
    "evenhand_invites",
    html='<div class="invites evenhand-scroll"></div>',
    css=app_files("panel/copying.css"),
    js=app_files("panel/copying.js", "lead/invites.js"),
    isolate_styles=False,
)


def _show_invites(study: Study) -> None:
    """Draw the form for new links, and the links made so far."""
    st.header("Invitations", anchor=False)
    st.text(written("lead.invites"))
    invites = access.invites_table(study)
    made = len(invites)  # once it is another number, no older click counts
    with st.form("invite", border=False):
        left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
        codes = "Annotator codes, separated by commas; leave empty to generate codes"
        left.text_input(codes, autocomplete="off", key="invite.codes")
        middle.number_input("Codes to generate", 1, _MOST_INVITES, value=1, key="invite.count")
        most = int(access.LONGEST_HOURS)
        right.number_input("Valid for (hours)", 1, most, value=168, key="invite.hours")
        make = lead_callback(study, "invite", partial(_invite, for_prolific=False), made)
        st.form_submit_button("Make links", type="primary", on_click=make, key=f"links{made}")
        if study.config.prolific is not None:
            make = lead_callback(study, "invite", partial(_invite, for_prolific=True), made)
            st.form_submit_button("Make the address for Prolific", on_click=make, key=f"open{made}")
    show_outcome("invite")
    if invites.empty:
        st.text(written("lead.no_invites"))
        return
    _show_links(study, invites.head(_MOST_INVITES))
    names = {rater: rater or _ANYONE for rater in invites["rater_id"]}
    chosen = parts.choose_any("Revoke the links of", names, "Choose an annotator", "revoke.rater")
    st.button("Revoke", disabled=chosen is None, on_click=lead_callback(study, "revoke", _revoke))
    show_outcome("revoke")


def _show_links(study: Study, invites: pd.DataFrame) -> None:
    """Draw the links (rows of `access.invites_table`), their states, and an invitation's text."""
    base, started = root_address(), sessions.known_raters(study)
    states = parts.latest(study, progress.rater_progress).set_index("rater_id")["state"].to_dict()
    rows = []
    for invite in invites.to_dict("records"):
        rater, token, state = invite["rater_id"], invite["token"], invite["state"]
        if states.get(rater) in ("finished", "excluded"):
            state = states[rater]
        elif rater in started and state == "open":
            state = "started"
        link = f"{base}?invite={token}" if rater else sessions.study_url(base, token)
        is_valid = token and invite["state"] == "open"
        row = {"code": rater or _ANYONE, "state": state, "sends": bool(rater)}  # not Prolific's
        row |= {"until": parts.to_the_minute(invite["until"]), "link": link if is_valid else ""}
        rows.append(row)
    reader = language(study.config.annotation.language)
    titles = ", ".join(rubric.title or rubric.question for rubric in study.labelled_rubrics())
    text = reader.say("session.invitation", titles=titles)
    if minutes := parts.latest(study, progress.annotator_minutes):
        time = f"{minutes / 60:.0f} h" if minutes >= 300 else f"{5 * math.ceil(minutes / 5)} min"
        text += " " + reader.say("session.takes", time=time)
    text += "\n{link}"  # which the component fills in for each link
    show(block(text, "quote", "Text to send"))
    _links(key="invites", data={"rows": rows, "text": text})


def _invite(
    study: Study, who: access.Visitor, shown: int, *,
    for_prolific: bool, codes: str, count: int, hours: int,
) -> str | None:  # fmt: skip
    raters = [""] if for_prolific else parts.split_list(codes)  # "" for anyone from Prolific
    raters = raters or [access.new_code() for _ in range(count)]
    invites = access.make_invites(study, raters, hours, shown)
    note_act(study.store, "invite", about="", detail=f"made: {len(invites)}", done_by=who.name)
    prolific = study.config.prolific
    if for_prolific and not (prolific and prolific.signed_for):
        return written("lead.prolific_known_id")
    return None


def _revoke(study: Study, who: access.Visitor, *, rater: str) -> str:
    revoked = access.revoke_invites(study, rater)
    note_act(study.store, "invite", rater, detail=f"revoked: {revoked}", done_by=who.name)
    return written("lead.revoked", count=revoked)


def _extend(study: Study, who: access.Visitor, shown: list[str], *, more: int) -> None:
    with open_study(study.folder) as reopened:  # its settings may be newer than those of `study`
        extend_sample(reopened, more, old=shown)
        note_act(study.store, "sample", "", f"pairs: {len(reopened.store.sample())}", who.name)


# ---- assignments of participants: released or given again, and what is owed ---------------------


def _show_assignments(study: Study) -> None:
    """Draw the participants, and the fields to release or return their assignments."""
    st.header("Assignments", anchor=False)
    if quotas := sessions.Sessions(study).sides():  # by answer to the background question with some
        counts = (f"{answer} ({people} of {quota})" for answer, (people, quota) in quotas.items())
        st.text(written("lead.sides", sides=", ".join(counts)))
    times = sessions.session_times(study, sessions.Sessions(study))
    if times.empty:
        st.text(written("session.nobody"))
    else:
        times = times.assign(minutes=times["active_seconds"] / 60)
        columns = "rater_id state units minutes end owed why"
        parts.show_table(times, "Participants", columns, folded=True)
    st.text(written("lead.places"))
    label, names = "Annotator code or participant id", {rater: rater for rater in times["rater_id"]}
    name = parts.choose_any(label, names, "Pick or type", "places.name", accept_new_options=True)
    acts: Mapping[str, str] = parts.WORDS["acts"]
    act = st.selectbox("What happened", acts, format_func=acts.__getitem__, key="places.act")
    change = lead_callback(study, "places", _change_assignment)
    title = acts[act].partition(": ")[2].capitalize()  # such as "Release the open items"
    st.button(title, "places", on_click=change, disabled=not name)
    show_outcome("places")
    if study.config.prolific is None:
        return
    with act_form(study, "submissions", "Take in the list", _take_submissions, clears=True):
        label, key = written("lead.submissions"), "submissions.file"
        st.file_uploader(label, ["csv"], max_upload_size=parts.MOST_MB, key=key)


def _change_assignment(study: Study, who: access.Visitor, *, name: str | None, act: str) -> str:
    return _change_assignments(study, who, {sessions.rater_of(study, (name or "").strip()): act})


def _take_submissions(
    study: Study, who: access.Visitor, *, file: UploadedFile | None
) -> str | None:
    if file is None:
        return None
    with parts.uploaded_files(submissions=file) as paths:
        path = paths["submissions"]
        reasons = sessions.released_submissions(study, path) if path is not None else {}
    return _change_assignments(study, who, reasons) or written("lead.submissions_none")


def _change_assignments(study: Study, who: access.Visitor, acts: Mapping[str, str]) -> str:
    """Carry out each annotator's act, named as in `acts` of words.toml; return what was done."""
    participants, outcomes = sessions.Sessions(study), []
    for rater, act in acts.items():
        if act in sessions.RELEASE_REASONS:
            count = participants.release(rater, act)
            outcomes.append(written("lead.freed", rater=rater, count=count))
        else:
            participants.readmit(rater)
            outcomes.append(written("session.readmitted", rater=rater))
        note_act(study.store, "place", rater, act, who.name)
    return "\n".join(outcomes)


# ---- accounts with a password -------------------------------------------------------------------


def show_accounts(study: Study) -> None:
    """Draw the accounts, and the fields to add, change or remove one."""
    st.text(written("lead.accounts"))
    existing, titles = access.accounts(study.store), parts.WORDS["accounts"]
    if existing:
        table = pd.DataFrame([*existing.values()])
        table["role"] = table["role"].map(titles)
        parts.show_table(table, "Accounts", "name role")
    st.header("Change or add an account" if existing else "Add the first account", anchor=False)
    with act_form(study, "account", "Save the account", _set_account, clears=True, is_primary=True):
        st.text_input("Name", autocomplete="off", key="account.name")
        label, fill = f"Password (at least {access.SHORTEST_PASSWORD} characters)", "new-password"
        st.text_input(label, type="password", autocomplete=fill, key="account.password")
        st.radio("Role", get_args(access.Role), format_func=titles.__getitem__, key="account.role")
    if existing:
        title, hint = "Remove an account", "Choose an account"
        chosen = st.selectbox(title, [*existing], index=None, placeholder=hint, key="disable.name")
        disable = lead_callback(study, "disable", _disable_account)
        st.button("Remove", disabled=chosen is None, on_click=disable)
    show_outcome("disable")


def _set_account(
    study: Study, who: access.Visitor, *, name: str, password: str, role: access.Role
) -> str:
    name = name.strip()
    access.set_account(study.store, name, password, role)
    note_act(study.store, "account", name, f"set: {role}", who.name)
    return written("session.logs_in", name=name, role=role)


def _disable_account(study: Study, who: access.Visitor, *, name: str) -> str:
    access.disable_account(study.store, name)
    note_act(study.store, "account", name, "ended", who.name)
    return written("session.disabled", name=name)


# ---- export: the report and the study's tables --------------------------------------------------

_FINAL_BOOK, _UNITS = "final-labels.xlsx", "ratings.units.csv"  # units: the items
_TABLES: dict[str, Callable[[Study], pd.DataFrame]] = {
    "final-labels.csv": exporting.exported_final,
    "ratings.csv": exporting.exported_ratings,
    _UNITS: exporting.exported_units,
    "remarks.csv": exporting.exported_remarks,
    "answers.csv": exporting.exported_answers,
    "raters.csv": progress.rater_progress,
    "times.csv": exporting.exported_times,
    "attention.csv": claims.attention_results,
    "background.csv": sessions.raters_table,
    "decisions.csv": exporting.exported_decisions,
}
_ATTACKED = exporting.part_path(Path("ratings.csv"), "attacked").name  # the prompt-injection audit
_REPORT = ("report.html", "report.md", "report.json", "results.csv")


@st.fragment(run_every="5s")
def show_export(study: Study) -> None:
    """Draw a download button for each file of the report and each table, and texts for a paper."""
    who = require(study, "lead").name
    if (figures := parts.latest_figures(study)) is not None:
        st.header("Report and results", anchor=False)
        files = [file for name in _REPORT if (file := figures.folder / name).is_file()]
        with st.container(key="files-report"):
            _offer_files(study, who, {file.name: file.read_bytes for file in files})
    st.header("Tables", anchor=False)
    audited = was_audited(study.store)
    tables = _TABLES | ({_ATTACKED: exporting.exported_attacked} if audited else {})
    makers: dict[str, Callable[[], bytes]] = {
        name: partial(parts.counted, study, exporting.as_csv, make) for name, make in tables.items()
    }
    makers[_FINAL_BOOK] = partial(parts.counted, study, exporting.final_book)
    # The sidecar goes with ratings.csv: it tells `evenhand check` what the ratings mean.
    sidecar, attacked = sidecar_path(Path("ratings.csv")).name, _ATTACKED if audited else ""
    makers[sidecar] = lambda: exporting.sidecar_text(study, _UNITS, attacked).encode()
    with st.container(key="files-tables"):
        _offer_files(study, who, makers)
        show(block(written("lead.export_tables"), "note"))
    if figures is None:
        return
    for part in ("methods", "results_text"):
        st.header(parts.WORDS["files"][part], anchor=False)
        with st.container(key=f"paragraph-{part}"):
            st.code(figures.report[part], language=None, wrap_lines=True)


def _offer_files(study: Study, who: str, makers: Mapping[str, Callable[[], bytes]]) -> None:
    """Draw a row for each table or text, with a button per format; `makers` return the contents."""
    for stem, contents in parts.WORDS["contents"].items():
        if names := [name for name in makers if Path(name).stem == stem]:
            with st.container(key=f"file-{stem.replace('.', '-')}"):
                show(block(parts.WORDS["files"][stem], "title"), block(contents, "note"))
                with st.container(horizontal=True):
                    for name in names:
                        _offer_file(study, who, name, makers[name])


def _offer_file(study: Study, who: str, name: str, make: Callable[[], bytes]) -> None:
    """Draw a button that makes a file on request; downloads are logged."""

    def make_and_note() -> bytes:
        content = make()
        note_act(study.store, "export", name, f"{len(content):,} bytes", who)
        return content

    # The page shows only the format, next to the title; a screen reader reads out both.
    title, words = parts.WORDS["files"][Path(name).stem], parts.WORDS["formats"]
    st.download_button(
        f"**{title}** {words[Path(name).suffix]}",
        data=make_and_note,
        file_name=name,
        mime=guess_type(name)[0],
        on_click="ignore",
        type="primary" if name == _REPORT[0] else "secondary",
    )


# ---- the log of the leads' acts -----------------------------------------------------------------

_MOST_ACTS = 500


def show_log(study: Study) -> None:
    """Draw the latest acts, of one kind or person if chosen; a run of equal acts shares a row."""
    logged, filters = acts(study.store), {"kind": "What", "done_by": "Who"}
    summary, kinds = st.container(), logged["kind"]
    logged["kind"] = kinds.map(parts.WORDS["log"].get).fillna(kinds.map(readable_name))
    with st.container(horizontal=True, key="filters"):
        for name, title in filters.items():
            chosen = st.selectbox(title, sorted(set(logged[name])), None, placeholder="All")
            logged = logged if chosen is None else logged[logged[name] == chosen]
    table = logged.head(_MOST_ACTS)
    with summary:
        show(block(written("lead.acts", shown=len(table), count=len(logged)), "note"))
    contents = table[["done_by", "kind", "about", "detail"]]
    runs = (contents != contents.shift()).any(axis=1).cumsum()  # the number of each act's run
    times = table["created_at"].map(parts.to_the_minute).map(html.escape).groupby(runs).agg(list)
    fold = "<details><summary>{} times since {}</summary>{}</details>".format
    folds = [fold(len(run), run[-1], ", ".join(run)) if len(run) > 1 else "" for run in times]
    table = table[~runs.duplicated()]
    table = table.assign(kind=table["kind"].map(html.escape) + folds)
    filled = " ".join(name for name in ("about", "detail") if table[name].any())
    with st.container(key="stacked-log"):
        headings = filters | {"detail": "In detail"}
        columns = f"created_at kind {filled} done_by"
        parts.show_table(table, "Logged actions", columns, headings=headings, html_columns=["kind"])
