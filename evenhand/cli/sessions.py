"""`invite`, `account` and `session`: the people who may label, and the state of their sessions."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli.options import USUAL_ADDRESS, app_address
from evenhand.cli.terminal import console, print_line, print_table
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.errors import InputError
from evenhand.reporting.noting import note
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study import Study
    from evenhand.study.session.sessions import Sessions

PASSWORD_VARIABLE = "EVENHAND_PASSWORD"  # noqa: S105 - a name
_REASONS = {"returned": "returned", "timed_out": "timed-out", "rejected": "rejected"}


def _invite_options(invite: Parser) -> None:
    invite.add_study()
    whom = invite.add_mutually_exclusive_group(required=True)
    whom.add_argument(
        "--for", dest="raters", action="append", metavar="NAME", help="this rater; repeatable"
    )
    whom.add_argument("--count", type=int, metavar="N", help="this many raters, with new codes")
    whom.add_argument(
        "--prolific", action="store_true", help="print the one address to enter at Prolific"
    )
    invite.add_argument("--revoke", action="store_true", help="revoke their links instead")
    invite.add_argument(
        "--hours", type=float, default=168.0, metavar="H", help="how long a link is valid (168)"
    )
    invite.add_argument(
        "--url",
        default=USUAL_ADDRESS,
        metavar="URL",
        help=f"where raters reach the app ({USUAL_ADDRESS})",
    )


def _account_options(account: Parser) -> None:
    account.add_study()
    account.add_argument("action", choices=["add", "disable"])
    account.add_argument("name", metavar="NAME")
    account.add_argument(
        "--role", choices=["expert", "lead"], default="expert", help="what it is for (expert)"
    )


def _session_options(session: Parser) -> None:
    session.add_study()
    for reason, word in _REASONS.items():
        session.add_argument(
            f"--{word}",
            dest=reason,
            action="append",
            default=[],
            metavar="ID",
            help=f"give back the places of this rater or participant, as {word}; repeatable",
        )
    session.add_argument(
        "--readmit", action="append", default=[], metavar="ID", help="let this rater go on"
    )
    session.add_argument(
        "--submissions",
        type=Path,
        metavar="FILE",
        help="give places back as Prolific's export says",
    )
    for option, says in {
        "times": "start, end, active seconds, units and pay of every rater",
        "background": "what raters said about themselves",
        "attention": "answers to attention checks",
        "participants": "which rater is which participant; keep it apart from labels",
    }.items():
        session.add_argument(f"--{option}", type=Path, metavar="FILE", help=f"write {says}")


def _invite(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.access.admission import make_invites, revoke_invites
    from evenhand.study.access.participants import new_code
    from evenhand.study.session.prolific import study_url

    if arguments.count is not None and not 0 < arguments.count <= 10_000:
        raise InputError("--count must be from 1 to 10,000")
    if arguments.revoke and arguments.count:
        raise InputError("--revoke needs to know whose links; add --for NAME or --prolific")
    if arguments.revoke:
        refuse(arguments, ["--hours", "--url"], "is about new links; leave it out with --revoke")
    base = app_address(arguments.url)
    with open_study(arguments.dir) as study:
        if arguments.revoke:
            for rater in arguments.raters or [""]:
                revoked = revoke_invites(study, rater)
                note(study, "invite", rater, f"revoked: {revoked}")
                whose = rater or "Prolific"
                console().print(written("session.revoked", whose=whose, count=revoked))
            return
        if arguments.prolific:
            _check_prolific(study)
            if study.config.prolific and not study.config.prolific.places:
                console(stderr=True).print(
                    written("terminal.note", note=written("session.no_places"))
                )
            (link,) = make_invites(study, [""], arguments.hours)
            note(study, "invite", "Prolific", "made: 1")
            print_line(study_url(base, link.token))
            return
        raters = arguments.raters or [new_code() for _ in range(arguments.count)]
        note(study, "invite", "", f"made: {len(raters)}")
        for link in make_invites(study, raters, arguments.hours):
            print_line(f"{link.rater_id}\t{base}?invite={link.token}")


def _check_prolific(study: Study) -> None:
    if study.config.prolific is None:
        raise InputError(
            "study.toml has no [prolific] section, so participants would get no completion code; "
            "see docs/people.md"
        )


def _account(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.access.accounts import disable_account, set_account

    if arguments.action == "disable":
        refuse(arguments, ["--role"], "is only for a login that is added; leave it out")
    with open_study(arguments.dir) as study:
        if arguments.action == "disable":
            disable_account(study.store, arguments.name)
            note(study, "account", arguments.name, "ended")
            console().print(written("session.disabled", name=arguments.name))
        else:
            set_account(study.store, arguments.name, _password(), arguments.role)
            done = f"set: {arguments.role}"
            note(study, "account", arguments.name, done)
            console().print(written("session.logs_in", name=arguments.name, role=arguments.role))


def _password() -> str:
    """Read a password from the environment, a pipe, or a person - never from the command line,
    which other users can see.
    """
    from getpass import getpass

    if given := os.environ.get(PASSWORD_VARIABLE):
        return given
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    entered = getpass("Password: ")
    if getpass("Again: ") != entered:
        raise InputError("the two passwords differ; nothing was changed")
    return entered


def _session(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.session.prolific import rater_of, released_submissions
    from evenhand.study.session.sessions import Sessions

    with open_study(arguments.dir) as study:
        sessions = Sessions(study)
        reasons = {
            rater_of(study, name): reason
            for reason in _REASONS
            for name in getattr(arguments, reason)
        }
        readmitted = [rater_of(study, name) for name in arguments.readmit]
        if arguments.submissions:
            reasons |= released_submissions(study, arguments.submissions)
        for rater, reason in reasons.items():
            freed = sessions.release(rater, reason)
            note(study, "place", rater, reason)
            why = _REASONS[reason]
            console().print(written("session.released", rater=rater, reason=why, freed=freed))
        for rater in readmitted:
            sessions.readmit(rater)
            note(study, "place", rater, "readmit")
            console().print(written("session.readmitted", rater=rater))
        _write_tables(study, sessions, arguments)


def _write_tables(study: Study, sessions: Sessions, arguments: argparse.Namespace) -> None:
    from evenhand.study.desk.attention import attention_results
    from evenhand.study.session.background import raters_table
    from evenhand.study.session.prolific import participants_table
    from evenhand.study.session.times import session_times
    from evenhand.study.tables.formats import write_table

    tables: dict[str, Callable[[], pd.DataFrame]] = {
        "times": lambda: session_times(study, sessions),
        "background": lambda: raters_table(study),
        "attention": lambda: attention_results(study),
        "participants": lambda: participants_table(study),
    }
    for name, table in tables.items():
        if path := getattr(arguments, name):
            write_table(table(), path)
            note(study, "export", path.name)
    asked = (*_REASONS, "readmit", "submissions", *tables)
    if not any(getattr(arguments, name) for name in asked):
        _print_times(tables["times"]())


def _print_times(times: pd.DataFrame) -> None:
    if times.empty:
        console().print(written("session.nobody"))
        return
    rows = [
        [
            row["rater_id"],
            row["state"],
            str(row["units"]),
            f"{row['active_seconds'] / 60:.1f}",
            row["end"],
            _amount(row),
        ]
        for row in times.to_dict("records")
    ]
    print_table(["rater", "state", "units", "active minutes", "last seen", "owed"], rows)


def _amount(row: dict[Hashable, Any]) -> str:
    return "-" if math.isnan(row["owed"]) else f"{row['owed']:.2f} {row['currency']}"


VERBS = (
    Verb("invite", "make links that let raters in", _invite_options, _invite),
    Verb("account", "add or disable a login with a password", _account_options, _account),
    Verb("session", "who took part and for how long; give places back", _session_options, _session),
)
