"""Commands of a study's lead: `lead`, `progress`, `pause`, `quality`, `exclude` and `adjudicate`;
and `invite`, `account` and `session` for annotators' access. Each function `run_VERB` runs one of
them with its parsed options. The app has a page for each; see docs/people.md. `note` enters what a
command did in the study's log, and `say` prints a sentence of `texts.toml`.
"""

from __future__ import annotations

import math
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from getpass import getpass

from evenhand.cli.main import app_address, lead_link, refuse, study_of
from evenhand.cli.terminal import console, print_line, print_table, say, warn
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.reporting.noting import note, operator
from evenhand.reporting.report import stop_flagged, study_quality
from evenhand.study import Study, access
from evenhand.study.desk.claims import attention_results, exclude, oversight, pause, readmit, resume
from evenhand.study.lead.disagreements import adjudication_queue, import_decisions, queue_table
from evenhand.study.lead.progress import forecast, rater_progress, rubric_progress, time_left
from evenhand.study.session import sessions
from evenhand.study.tables.formats import read_table, write_table
from evenhand.texts import readable_name, written

PASSWORD_VARIABLE = "EVENHAND_PASSWORD"  # noqa: S105 - the name of an environment variable
_MOST_LINKS = 10_000  # the most links that one call of `invite` makes
_RELEASE_REASONS = {"returned": "returned", "timed_out": "timed-out", "rejected": "rejected"}
"""Options of `session` that release participants' places, with the reason as users read it."""


def run_lead(arguments: Namespace) -> None:
    """Print a link to the lead's pages, which works once."""
    console().print(lead_link(arguments.dir, arguments.url))


def run_progress(arguments: Namespace) -> None:
    """Print the labelling progress by rubric and by annotator, and the time left."""
    with study_of(arguments) as study:
        rubrics, raters = rubric_progress(study), rater_progress(study)
        time_left_text, paused = time_left(forecast(study)), oversight(study.store).paused
    _print_frame(rubrics, "By rubric", {"median_seconds": "{:.0f}", "hours_left": "{:.1f}"})
    if len(raters):
        _print_frame(raters, "By annotator", {"median_seconds": "{:.0f}", "hours": "{:.1f}"})
    console().print(time_left_text)
    if paused:
        say("progress.paused", folder=arguments.dir)


def run_pause(arguments: Namespace) -> None:
    """Stop assigning items to annotators, or with `--resume` go on."""
    with study_of(arguments) as study:
        if arguments.resume:
            resume(study.store, arguments.reason, operator())
            say("oversight.resumed")
        else:
            pause(study.store, arguments.reason, operator())
            say("oversight.paused", folder=arguments.dir)


def run_quality(arguments: Namespace) -> None:
    """Print the quality of annotators' labels; with `--stop`, exclude those flagged for it."""
    with study_of(arguments) as study:
        table = study_quality(study)
        stopped_raters = stop_flagged(study, table) if arguments.stop else []
        if arguments.out is not None:
            write_table(table, arguments.out)
            note(study, "export", arguments.out.name)
    if table.empty:
        say("oversight.nobody")
    else:
        columns = table[["rater_id", "answers", "median_seconds", "agreement", "drift", "flagged"]]
        formats = {"median_seconds": "{:.0f}", "agreement": "{:.2f}", "drift": "{:+.2f}"}
        _print_frame(columns, "Annotators", formats)
    for row in table.to_dict("records"):
        if row["excluded"]:
            say("oversight.is_excluded", rater=row["rater_id"], reason=row["excluded"])
        elif row["reason"]:
            say("oversight.flagged", rater=row["rater_id"], reason=row["reason"])
    for rater in stopped_raters:
        say("oversight.stopped", rater=rater)
    if arguments.out is not None:
        say("oversight.wrote_raters", count=len(table), file=arguments.out)


def run_exclude(arguments: Namespace) -> None:
    """Exclude an annotator's labels, or with `--readmit` let them count again."""
    change = readmit if arguments.readmit else exclude
    with study_of(arguments) as study:
        change(study.store, arguments.rater, arguments.reason, operator())
    say(f"oversight.{'readmitted' if arguments.readmit else 'excluded'}", rater=arguments.rater)


def run_adjudicate(arguments: Namespace) -> None:
    """Import a file of decisions if one is named, then print or write the items to adjudicate."""
    if arguments.decisions and not arguments.by:
        raise InputError("say who made these decisions: add --by NAME")
    if not arguments.decisions:
        refuse(arguments, ["--by"], "says who made the decisions; add --decisions FILE")
    with study_of(arguments) as study:
        if arguments.decisions:
            decisions, table = arguments.decisions, read_table(arguments.decisions)
            n_new, n_left = import_decisions(study, arguments.by, table, decisions.name)
            counts = {"count": n_new, "known": len(table) - n_new - n_left, "left": n_left}
            say("oversight.decisions", name=arguments.by, **counts)
            note(study, "import", decisions.name, f"decisions of {arguments.by}: {n_new}")
        queue = queue_table(adjudication_queue(study))
        if arguments.out is not None:
            write_table(queue, arguments.out)
            note(study, "export", arguments.out.name)
    if arguments.out is not None:
        say("oversight.wrote_queue", count=len(queue), file=arguments.out)
    elif queue.empty:
        say("oversight.adjudicated")
    else:
        _print_frame(queue[["unit_id", "rubric", "labels"]], "To adjudicate", {})


def _print_frame(frame: pd.DataFrame, title: str, formats: dict[str, str]) -> None:
    """Print a table; `formats` are format strings of numbers, by column."""

    def cell_text(column: str, value: object) -> str:
        if value != value:  # NaN: not known
            return "-"
        return formats[column].format(value) if column in formats else str(value)

    records = frame.to_dict("records")
    rows = [[cell_text(str(column), row[column]) for column in frame] for row in records]
    print_table([readable_name(str(column)).lower() for column in frame], rows, title=title)


def run_invite(arguments: Namespace) -> None:
    """Print links for annotators or for Prolific, or with `--revoke` revoke those made before."""
    if arguments.count is not None and not 0 < arguments.count <= _MOST_LINKS:
        raise InputError(f"--count must be from 1 to {_MOST_LINKS:,}")
    if arguments.revoke and arguments.count:  # --count excludes --for and --prolific
        raise InputError("--revoke needs to know whose links; add --for NAME or --prolific")
    if arguments.revoke:
        refuse(arguments, ["--hours", "--url"], "is about new links; leave it out with --revoke")
    address = app_address(arguments.url)
    with study_of(arguments) as study:
        if arguments.revoke:
            for rater in arguments.raters or [""]:  # links for Prolific are stored under ""
                n_revoked = access.revoke_invites(study, rater)
                note(study, "invite", rater, f"revoked: {n_revoked}")
                say("session.revoked", whose=rater or "Prolific", count=n_revoked)
        elif arguments.prolific:
            _print_prolific_link(study, address, arguments.hours)
        else:
            raters = arguments.raters or [access.new_code() for _ in range(arguments.count)]
            note(study, "invite", detail=f"made: {len(raters)}")
            for link in access.make_invites(study, raters, arguments.hours):
                print_line(f"{link.rater_id}\t{address}?invite={link.token}")


def _print_prolific_link(study: Study, address: str, hours: float) -> None:
    """Print the link by which all participants of Prolific reach the app in the next `hours`."""
    if study.config.prolific is None:
        raise InputError(
            "study.toml has no [prolific] section, so participants would get no completion "
            "code; see docs/people.md"
        )
    if not study.config.prolific.places:
        warn("terminal.note", note=written("session.no_places"))
    (link,) = access.make_invites(study, [""], hours)  # "": for anyone from Prolific
    note(study, "invite", "Prolific", "made: 1")
    print_line(sessions.study_url(address, link.token))


def run_account(arguments: Namespace) -> None:
    """Add a login with a password, or disable one."""
    if arguments.action == "disable":
        refuse(arguments, ["--role"], "is only for a login that is added; leave it out")
    with study_of(arguments) as study:
        if arguments.action == "disable":
            access.disable_account(study.store, arguments.name)
            note(study, "account", arguments.name, "ended")
            say("session.disabled", name=arguments.name)
        else:
            access.set_account(study.store, arguments.name, read_password(), arguments.role)
            note(study, "account", arguments.name, f"set: {arguments.role}")
            say("session.logs_in", name=arguments.name, role=arguments.role)


def read_password() -> str:
    """Return a password from the environment, a pipe or a prompt, never from the command line."""
    if password := os.environ.get(PASSWORD_VARIABLE):
        return password
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    entered = getpass("Password: ")
    if getpass("Again: ") != entered:
        raise InputError("the two passwords differ; nothing was changed")
    return entered


def run_session(arguments: Namespace) -> None:
    """Release or readmit participants and write tables; without options, print working times."""
    with study_of(arguments) as study:
        study_sessions = sessions.Sessions(study)
        reason_by_rater: dict[str, str] = {}  # of the raters to release
        for reason in _RELEASE_REASONS:
            for name in getattr(arguments, reason):
                reason_by_rater[sessions.rater_of(study, name)] = reason
        readmitted = [sessions.rater_of(study, name) for name in arguments.readmit]
        if arguments.submissions:
            reason_by_rater |= sessions.released_submissions(study, arguments.submissions)
        for rater, reason in reason_by_rater.items():
            n_freed = study_sessions.release(rater, reason)
            note(study, "place", rater, reason)
            say("session.released", rater=rater, reason=_RELEASE_REASONS[reason], freed=n_freed)
        for rater in readmitted:
            study_sessions.readmit(rater)
            note(study, "place", rater, "readmit")
            say("session.readmitted", rater=rater)
        table_makers: dict[str, Callable[[Study], pd.DataFrame]] = {
            "times": lambda study: sessions.session_times(study, study_sessions),
            "background": sessions.raters_table,
            "attention": attention_results,
            "participants": sessions.participants_table,
        }
        for option, make_table in table_makers.items():
            if path := getattr(arguments, option):
                write_table(make_table(study), path)
                note(study, "export", path.name)
        options = (*_RELEASE_REASONS, "readmit", "submissions", *table_makers)
        if not any(getattr(arguments, option) for option in options):
            _print_times(sessions.session_times(study, study_sessions))


def _print_times(times: pd.DataFrame) -> None:
    """Print the annotators' working times and payments due."""
    if times.empty:
        say("session.nobody")
        return
    rows = []
    for row in times.to_dict("records"):
        minutes = f"{row['active_seconds'] / 60:.1f}"
        owed = "-" if math.isnan(row["owed"]) else f"{row['owed']:.2f} {row['currency']}"
        rows.append([row["rater_id"], row["state"], str(row["units"]), minutes, row["end"], owed])
    print_table(["annotator", "state", "items", "active minutes", "last seen", "owed"], rows)
