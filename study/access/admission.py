"""Admission to a study's page: the query of its address, checked against the study's settings.

    ?rater=CODE        an open study: anyone who enters a code
    ?invite=TOKEN      an invite, bound to one rater code
    ?invite=TOKEN&PROLIFIC_PID=..&STUDY_ID=..&SESSION_ID=..    a participant from Prolific
    ?pass=TOKEN        the same participant from then on: their ids leave the address

A code that belongs to an invite, an account or a participant opens nothing by itself, nor when the
invite was revoked or the account has ended.
"""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.access.accounts import accounts, make_token, read_login, read_token
from evenhand.study.access.participants import enter
from evenhand.study.refused import Refused
from evenhand.study.store.events import append
from evenhand.study.store.logs.session import add_event, events_of
from evenhand.study.store.schema import (
    account_events,
    claims,
    invite_events,
    labels,
    participant_entries,
    session_events,
)
from evenhand.study.store.store import Store
from evenhand.study.tables.ratings import RATER_CODE, RESERVED_RATERS
from evenhand.study.workspace import Study

if TYPE_CHECKING:
    import pandas as pd

# Rater codes as people type them: capitals, outer spaces and full-width forms do not matter


_LONGEST = 256
"""Letters of what was typed that are looked at; a code has 64."""


def as_written(typed: str) -> str:
    """Return the typed code without outer spaces and normalised (Unicode's NFKC).

    >>> as_written("  \uff21nn ")
    'Ann'
    """
    return unicodedata.normalize("NFKC", typed[:_LONGEST]).strip()


def folded(code: str) -> str:
    """The form in which codes are compared.

    >>> folded(" ANN ") == folded("ann")
    True
    """
    return as_written(code).casefold()


def known_spelling(typed: str, known: Collection[str]) -> str | None:
    """Return the known code that was meant, or None. An exact match comes first: an older study may
    have `Ann` and `ann` as two people.

    Raises Refused where several known codes match and none exactly.
    """
    code = as_written(typed)
    if code in known:
        return code
    same = [each for each in known if folded(each) == folded(code)]
    if len(same) > 1:
        raise Refused("several_spellings")
    return same[0] if same else None


LONGEST_HOURS = 24.0 * 90
"""No invite is good for longer: a link that lies about for ever is a key under the mat."""

_INVITE = "invite"
_PASS = "pass"  # noqa: S105 - a purpose
_PANEL_MINUTES = 24 * 60
"""A page that is open for longer is loaded again."""
_ANYONE = ""
"""The rater of an invite for participants from Prolific."""

Way = Literal["open", "invite", "account", "prolific"]


@dataclass(frozen=True)
class Admission:
    """An admitted rater, and the query that the page's address must have from now on."""

    rater_id: str
    way: Way
    address: dict[str, str] = field(default_factory=dict)
    is_new: bool = field(default=False, compare=False)
    """True for a new code of an open study, under which no one has begun: see `begin`."""


@dataclass(frozen=True)
class Invite:
    """A link's token and the rater it is for; "" for participants from Prolific."""

    rater_id: str
    token: str


def admit(study: Study, address: Mapping[str, str], login: str = "") -> Admission | None:
    """Return the rater whom the address admits, or else the login that this browser keeps; None if
    neither does.

    Raises InputError, with a sentence for the visitor, where the address is forged, expired,
    revoked, another person's, or not a way into this study.
    """
    if login:
        return _by_login(study, login)
    if token := address.get("pass"):
        rater = read_token(study.store, _PASS, token)["rater"]
        return Admission(rater, "prolific", {"pass": token})
    if token := address.get("invite"):
        return _by_invite(study, token, address)
    if code := as_written(address.get("rater", "")):
        return _by_code(study, code)
    return None


def _by_login(study: Study, token: str) -> Admission:
    account = read_login(study.store, token)
    if account.role != "expert":
        raise Refused("not_an_expert")
    return Admission(account.name, "account")


def _by_code(study: Study, code: str) -> Admission:
    if study.config.session.entry != "open":
        raise Refused("code_alone")
    with study.store.read() as connection:
        owners = (invite_events.c.rater_id, participant_entries.c.rater_id, account_events.c.name)
        taken = _ever(connection, *owners)
        columns = (claims.c.rater_id, session_events.c.rater_id, labels.c.rater_id)
        # A returning rater is looked up; all codes are read only for an unknown one.
        known = any(_is_in(connection, column, code) for column in columns)
        begun = {code} if known else _ever(connection, *columns)
    if folded(code) in map(folded, taken):
        raise Refused("code_has_a_link")
    rater = known_spelling(code, begun)
    return Admission(rater or code, "open", {"rater": rater or code}, is_new=rater is None)


def _ever(connection: sa.Connection, *columns: sa.Column[str]) -> set[str]:
    found = (connection.execute(sa.select(column).distinct()).scalars() for column in columns)
    return {code for codes in found for code in codes}


def _is_in(connection: sa.Connection, column: sa.Column[str], code: str) -> bool:
    return connection.execute(sa.select(column).where(column == code).limit(1)).first() is not None


def begin(study: Study, rater_id: str) -> None:
    """Note that a rater has begun under a new code of an open study. Once noted, it is not new."""
    with study.store.write() as connection:
        if not events_of(connection, rater_id):
            add_event(connection, rater_id, "entered", way="open")


def _by_invite(study: Study, token: str, address: Mapping[str, str]) -> Admission:
    if study.config.session.entry == "account":
        raise Refused("no_links")
    said = read_token(study.store, _INVITE, token)
    with study.store.read() as connection:
        last = (
            sa.select(invite_events.c.kind)
            .where(invite_events.c.invite_id == said["invite"])
            .order_by(invite_events.c.event_id.desc())
            .limit(1)
        )
        if connection.execute(last).scalar_one_or_none() != "made":
            raise Refused("link_revoked")
    if said["rater"] != _ANYONE:
        return Admission(said["rater"], "invite", {"invite": token})
    return _by_pass(study, enter(study, address))


def _by_pass(study: Study, rater: str) -> Admission:
    minutes = study.config.session.login_hours * 60
    address = {"pass": make_token(study.store, _PASS, {"rater": rater}, minutes)}
    return Admission(rater, "prolific", address)


# Tickets, by which the panel's messages are known


def make_ticket(study: Study, admission: Admission, login: str, browser: str) -> str:
    """Return a ticket for the panel of an admitted rater, good in this browser alone."""
    claims = {"rater": admission.rater_id, "way": admission.way, "address": admission.address}
    claims |= {"login": login, "browser": browser}
    return make_token(study.store, _panel_of(study), claims, _PANEL_MINUTES)


def read_ticket(study: Study, ticket: str, browser: str) -> Admission:
    """Return the rater whose panel this browser has, admitted as they were when it was drawn.

    Raises InputError where the ticket is forged, expired or another browser's, or they would not be
    admitted any more: their link was revoked, or their login has ended.
    """
    claims = read_token(study.store, _panel_of(study), ticket)
    if not secrets.compare_digest(claims["browser"], browser):
        raise Refused("link_invalid")
    if claims["way"] == study.config.session.entry == "open":  # a code does not run out
        return Admission(claims["rater"], "open", claims["address"])
    admission = admit(study, claims["address"], claims["login"])
    if admission is None or admission.rater_id != claims["rater"]:
        raise Refused("link_invalid")
    return admission


def _panel_of(study: Study) -> str:
    """Purpose of a ticket: a study and a copy of it, which have one secret, are two."""
    return f"panel {study.folder.resolve()}"


# Invites


def make_invites(study: Study, raters: list[str], hours: float) -> list[Invite]:
    """Return an invite for each of these raters, valid for `hours`; for "" one from Prolific.

    Raises InputError where the hours are too few or too many, or a code cannot be a rater's, is
    reserved for a group, or belongs to an account.
    """
    if not 0 < hours <= LONGEST_HOURS:
        raise InputError(f"a link is good for more than 0 and at most {LONGEST_HOURS:g} hours")
    known = accounts(study.store)
    for rater in raters:
        if rater in RESERVED_RATERS:
            raise InputError(f"{rater!r} stands for a group or a baseline in results")
        if rater and not RATER_CODE.fullmatch(rater):
            raise InputError(
                f"{rater!r} is no rater code: 1 to 64 letters, digits, dots, hyphens or underscores"
            )
        if rater in known:
            raise InputError(f"{rater!r} has an account, and needs no link")
    made = []
    with study.store.write() as connection:
        for rater in raters:
            invite = secrets.token_hex(8)
            _note(connection, invite, rater, "made")
            made.append((invite, rater))
    return [
        Invite(rater, _invite_token(study.store, invite, rater, hours)) for invite, rater in made
    ]


def invites_table(study: Study) -> pd.DataFrame:
    """Return the number of links per rater: `rater_id, open, revoked, last_made`, the latest first.

    A `rater_id` of "" means participants from Prolific. `open` links may have expired: only the
    link itself holds its end.
    """
    events = study.store.table(sa.select(invite_events).order_by(invite_events.c.event_id))
    latest = events.drop_duplicates("invite_id", keep="last")
    latest = latest.assign(is_open=latest["kind"] == "made")
    made = events[events["kind"] == "made"].groupby("rater_id")["created_at"].max()
    counts = latest.groupby("rater_id")["is_open"].agg(["sum", "size"])
    found = counts.assign(open=counts["sum"], revoked=counts["size"] - counts["sum"])
    found = found.join(made.rename("last_made")).reset_index()
    found = found.sort_values("last_made", ascending=False, kind="stable")
    return found[["rater_id", "open", "revoked", "last_made"]]


def revoke_invites(study: Study, rater: str) -> int:
    """Revoke every invite of a rater, or with "" those from Prolific; return how many."""
    of_rater = sa.select(invite_events).where(invite_events.c.rater_id == rater)
    with study.store.write() as connection:
        kinds = {
            row.invite_id: row.kind
            for row in connection.execute(of_rater.order_by(invite_events.c.event_id))
        }
        open_ones = [invite for invite, kind in kinds.items() if kind == "made"]
        for invite in open_ones:
            _note(connection, invite, rater, "revoked")
    return len(open_ones)


def _invite_token(store: Store, invite: str, rater: str, hours: float) -> str:
    return make_token(store, _INVITE, {"invite": invite, "rater": rater}, hours * 60)


def _note(connection: sa.Connection, invite: str, rater: str, kind: str) -> None:
    event: dict[str, Any] = {"invite_id": invite, "rater_id": rater, "kind": kind}
    append(connection, invite_events, event)
