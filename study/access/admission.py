"""Admission to a study's page: the query of its address, checked against the study's settings; and
the participants whom Prolific sends.

    ?rater=CODE        an open study: anyone who enters a code
    ?invite=TOKEN      an invite, bound to one rater code
    ?invite=TOKEN&PROLIFIC_PID=..&STUDY_ID=..&SESSION_ID=..    a participant from Prolific
    ?pass=TOKEN        the same participant from then on: their ids leave the address

A code that belongs to an invite, an account or a participant opens nothing by itself, nor when the
invite was revoked or the account has ended.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import threading
import time
import unicodedata
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa

from evenhand.errors import InputError, Refused
from evenhand.lazy import pd
from evenhand.study.access.accounts import accounts, make_token, read_login, read_token
from evenhand.study.desk.claims import ends_of, has_room, sides_named
from evenhand.study.settings.study_toml import ProlificSettings
from evenhand.study.store.database import append
from evenhand.study.store.schema import (
    account_events,
    claims,
    invite_events,
    labels,
    participant_entries,
    session_events,
)
from evenhand.study.store.store import add_event, events_of, given_back
from evenhand.study.tables.ratings import RATER_CODE, RESERVED_RATERS
from evenhand.study.workspace import Study
from evenhand.texts import written

if TYPE_CHECKING:
    from joserfc.jwk import KeySet


# Participants from Prolific: the rater that each of them is here, and the places that are left. The
# link at Prolific is one for all, so anyone who has it can invent a participant, or enter as one
# whose id they know. `[prolific] signed_for` lets in only whom Prolific has signed for; without it
# `places` limits what that opens. Each participant is one rater, however often they come.

# Addresses that Prolific has signed: who comes with one is the participant that it names. Facts:
# docs.prolific.com, "Retrieve JSON Web Key Set (JWKS)": RS256, the page's origin as `aud`, an
# `exp`, and what the address asks for under `prolific`.

TOKEN = "prolific_token"  # noqa: S105 - the name of a parameter

SIGNING_KEYS = "https://api.prolific.com/.well-known/study/jwks.json"
"""Where Prolific's public keys are read."""
_LONGEST_TOKEN = 8_000
_LARGEST_KEYS = 1_000_000
_DAY, _MINUTE = 86_400.0, 60.0
_PATIENCE = 5.0  # seconds to wait for the keys
_CLOCKS = 60  # seconds by which Prolific's clock may differ from this machine's


def check_signing() -> None:
    """Raise InputError where signatures cannot be checked, as the library is not installed."""
    if find_spec("joserfc") is None:
        raise InputError(written("single_sign_on.no_signing"))


def signed_ids(settings: ProlificSettings, token: str) -> dict[str, str]:
    """The ids of the participant whom a token names, by the names that an address has for them.
    Raises Refused where Prolific has not signed it for this page, or its time is over.
    """
    from joserfc import jwt
    from joserfc.errors import JoseError

    if not token or len(token) > _LONGEST_TOKEN:
        raise Refused("prolific_unsigned")
    must_have = jwt.JWTClaimsRegistry(
        aud={"essential": True, "values": [settings.signed_for, f"{settings.signed_for}/"]},
        exp={"essential": True},
        leeway=_CLOCKS,
    )
    try:
        keys = _keys_at(SIGNING_KEYS, token)
        read = jwt.decode(token, keys, algorithms=["RS256"])
        must_have.validate(read.claims)
    except Refused:
        raise
    except (JoseError, ValueError, TypeError, AttributeError) as error:  # any text may come
        raise Refused("prolific_unsigned") from error
    asked = read.claims.get("prolific")
    ids = asked if isinstance(asked, Mapping) else {}
    return {str(name): value for name, value in ids.items() if isinstance(value, str)}


_known_keys: dict[str, tuple[float, KeySet | None]] = {}
"""Keys by their address, and when they were asked for."""
_asking = threading.Lock()


def _keys_at(url: str, token: str) -> KeySet:
    """Prolific's public keys at an address, asked for once a day, and when a token names one that
    is new; once a minute at most, whether they could be had or not. Raises Refused where there are
    none and none can be had.
    """
    from joserfc.jws import extract_compact

    with _asking:
        asked, keys = _known_keys.get(url, (-math.inf, None))
        age = time.monotonic() - asked
        wanted = keys is None or age > _DAY
        if keys is not None and not wanted:
            named = extract_compact(token.encode()).headers().get("kid")
            wanted = all(key.kid != named for key in keys.keys)
        if wanted and age > _MINUTE:
            keys = _fetched(url) or keys
            _known_keys[url] = (time.monotonic(), keys)
        if keys is None:
            raise Refused("prolific_keys_away")
        return keys


def _fetched(url: str) -> KeySet | None:
    """The keys at an address; None where they cannot be had."""
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:  # noqa: S310 - see settings
            held: Any = json.loads(answer.read(_LARGEST_KEYS))
        return KeySet.import_key_set(held)
    except (OSError, ValueError, KeyError, TypeError, JoseError):
        return None


_ID = re.compile(r"[0-9a-f]{24}")
"""Prolific's ids are object ids of its database: 12 bytes, as hexadecimal digits."""
_NAMES = {"participant_id": "PROLIFIC_PID", "study_id": "STUDY_ID", "session_id": "SESSION_ID"}


def new_code() -> str:
    """A rater code that says nothing about the person."""
    return f"r-{secrets.token_hex(5)}"


def enter(study: Study, address: Mapping[str, str]) -> str:
    """The rater that a participant is: always the same one, whatever their submission. Raises
    Refused where an id is none of Prolific's or not signed by it, no place is left, or they were
    rejected.
    """
    settings = study.config.prolific
    if settings and settings.signed_for:
        address = signed_ids(settings, address.get(TOKEN, ""))
    entry = {column: address.get(name, "") for column, name in _NAMES.items()}
    if not all(map(_ID.fullmatch, entry.values())):
        raise Refused("prolific_only")
    latest = (
        sa.select(participant_entries)
        .where(participant_entries.c.participant_id == entry["participant_id"])
        .order_by(participant_entries.c.event_id.desc())
        .limit(1)
    )
    with study.store.write() as connection:  # one newcomer at a time: two never share a place
        known = connection.execute(latest).first()
        rater: str = known.rater_id if known else new_code()
        if known is not None and known.session_id == entry["session_id"]:
            return rater
        if known is None:
            _need_place(study, connection)
        else:
            reason = given_back(events_of(connection, rater))
            if reason == "rejected":
                raise Refused("closed_before")
            if reason:  # another submission goes on, in a place that was given back
                _need_place(study, connection)
                for side in sides_named(study, connection, rater).values():
                    if not has_room(study, connection, side):
                        raise Refused("no_places")
                add_event(connection, rater, "readmitted")
        append(connection, participant_entries, entry | {"rater_id": rater})
        add_event(connection, rater, "entered", way="prolific")
    return rater


def _need_place(study: Study, connection: sa.Connection) -> None:
    settings = study.config.prolific
    if settings is None or not settings.places:
        return
    query = sa.select(participant_entries.c.rater_id).distinct()
    raters = set(connection.execute(query).scalars())
    if len(raters) < settings.places:
        return
    ends = ends_of(connection)
    freed = sum(ends.get(rater) in settings.free_again for rater in raters)
    if len(raters) - freed >= settings.places:
        raise Refused("no_places")


# Rater codes as people type them: capitals, outer spaces and full-width forms do not matter

_LONGEST = 256  # letters of what was typed that are looked at; a code has 64


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


LONGEST_HOURS = 24.0 * 90
"""No invite is good for longer: a link that lies about for ever is a key under the mat."""

_INVITE = "invite"
_TOKEN_OF_LINK = re.compile(r"[\w-]{22}\.[\d.e+-]+", re.ASCII)
_PASS = "pass"  # noqa: S105 - a purpose
_PANEL_MINUTES = 24 * 60  # a page that is open for longer is loaded again
_ANYONE = ""  # the rater of an invite for participants from Prolific

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
    """A link's token and the rater it is for; "" for participants from Prolific.

    A token is 128 bits of chance and the hours that it is good for, from its entry in the log on.
    """

    rater_id: str
    token: str


def admit(study: Study, address: Mapping[str, str], login: str = "") -> Admission | None:
    """Return the rater whom the address admits, or else the login that this browser keeps; None if
    neither does. Raises InputError, with a sentence for the visitor, where the address is forged,
    expired, revoked, another person's, or not a way into this study.
    """
    if login:
        account = read_login(study.store, login)
        if account.role != "expert":
            raise Refused("not_an_expert")
        return Admission(account.name, "account")
    if token := address.get("pass"):
        rater = read_token(study.store, _PASS, token)["rater"]
        return Admission(rater, "prolific", {"pass": token})
    if token := address.get("invite"):
        return _by_invite(study, token, address)
    if code := as_written(address.get("rater", "")):
        return _by_code(study, code)
    return None


def _by_code(study: Study, code: str) -> Admission:
    if study.config.session.entry != "open":
        raise Refused("code_alone")
    with study.store.read() as connection:
        owners = (invite_events.c.rater_id, participant_entries.c.rater_id, account_events.c.name)
        taken = _ever(connection, *owners)
        columns = (claims.c.rater_id, session_events.c.rater_id, labels.c.rater_id)
        # A returning rater is looked up; all codes are read only for an unknown one.
        asked = (sa.select(column).where(column == code).limit(1) for column in columns)
        known = any(connection.execute(each).first() for each in asked)
        begun = {code} if known else _ever(connection, *columns)
    if folded(code) in map(folded, taken):
        raise Refused("code_has_a_link")
    # An exact match comes first: an older study may have `Ann` and `ann` as two people.
    same = [code] if code in begun else [each for each in begun if folded(each) == folded(code)]
    if len(same) > 1:
        raise Refused("several_spellings")
    rater = same[0] if same else None
    return Admission(rater or code, "open", {"rater": rater or code}, is_new=rater is None)


def _ever(connection: sa.Connection, *columns: sa.Column[str]) -> set[str]:
    every = sa.union(*(sa.select(column) for column in columns))
    return set(connection.execute(every).scalars())


def begin(study: Study, rater_id: str) -> None:
    """Note that a rater has begun under a new code of an open study. Once noted, it is not new."""
    with study.store.write() as connection:
        if not events_of(connection, rater_id):
            add_event(connection, rater_id, "entered", way="open")


def _by_invite(study: Study, token: str, address: Mapping[str, str]) -> Admission:
    if study.config.session.entry == "account":
        raise Refused("no_links")
    log = _log_of(study, token) if _TOKEN_OF_LINK.fullmatch(token) else ()
    if not log:  # a link of before 0.3.0 is a signed text, which names its entry in the log
        log = _log_of(study, read_token(study.store, _INVITE, token)["invite"])
    elif _end(token, log[0].created_at) <= datetime.now(UTC):
        raise Refused("link_expired")
    if not log or log[-1].kind != "made":
        raise Refused("link_revoked")
    if (rater := log[0].rater_id) != _ANYONE:
        return Admission(rater, "invite", {"invite": token})
    rater, minutes = enter(study, address), study.config.session.login_hours * 60
    token = make_token(study.store, _PASS, {"rater": rater}, minutes)
    return Admission(rater, "prolific", {"pass": token})


def _log_of(study: Study, invite: str) -> Sequence[Any]:
    query = sa.select(invite_events).where(invite_events.c.invite_id == invite)
    return study.store.rows(query.order_by(invite_events.c.event_id))


def _end(token: str, made_at: str) -> datetime:
    return datetime.fromisoformat(made_at) + timedelta(hours=float(token.partition(".")[2]))


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
                f"{rater!r} is no annotator code: 1 to 64 letters, digits, dots, hyphens or "
                f"underscores"
            )
        if rater in known:
            raise InputError(f"{rater!r} has an account, and needs no link")
    made = [Invite(rater, f"{secrets.token_urlsafe(16)}.{hours:g}") for rater in raters]
    with study.store.write() as connection:
        for each in made:
            _note(connection, each.token, each.rater_id, "made")
    return made


def invites_table(study: Study) -> pd.DataFrame:
    """Return a row per link, the latest first: `rater_id, token, until, state`. A `rater_id` of ""
    means participants from Prolific. `state` is "open", "revoked" or "expired". A link of before
    0.4 is known to itself alone: its `token` and `until` are empty.
    """
    query = sa.select(invite_events).order_by(invite_events.c.event_id)
    events, now, rows = study.store.rows(query), datetime.now(UTC).isoformat(), []
    kinds = {event.invite_id: event.kind for event in events}
    for made in (event for event in events if event.kind == "made"):
        token = made.invite_id if "." in made.invite_id else ""
        until = _end(token, made.created_at).isoformat() if token else ""
        state = "expired" if "" < until <= now else "open"
        state = state if kinds[made.invite_id] == "made" else kinds[made.invite_id]
        rows.append((made.rater_id, token, until, state))
    return pd.DataFrame(rows[::-1], columns=["rater_id", "token", "until", "state"])


def revoke_invites(study: Study, rater: str) -> int:
    """Revoke every invite of a rater, or with "" those from Prolific; return how many."""
    of_rater = sa.select(invite_events).where(invite_events.c.rater_id == rater)
    with study.store.write() as connection:
        events = connection.execute(of_rater.order_by(invite_events.c.event_id))
        kinds = {row.invite_id: row.kind for row in events}
        open_ones = [invite for invite, kind in kinds.items() if kind == "made"]
        for invite in open_ones:
            _note(connection, invite, rater, "revoked")
    return len(open_ones)


def _note(connection: sa.Connection, invite: str, rater: str, kind: str) -> None:
    event: dict[str, Any] = {"invite_id": invite, "rater_id": rater, "kind": kind}
    append(connection, invite_events, event)
