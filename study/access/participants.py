"""Participants from Prolific: the rater that each of them is here, and the places that are left.

The link at Prolific is one for all, so anyone who has it can invent a participant, or enter as one
whose id they know. `[prolific] signed_for` lets in only whom Prolific has signed for; without it
`places` limits what that opens. Each participant is one rater, however often they come.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.desk.oversight import Oversight
from evenhand.study.refused import Refused
from evenhand.study.store.events import append
from evenhand.study.store.logs.session import Event, add_event, events_of, given_back
from evenhand.study.store.schema import participant_entries, session_events
from evenhand.study.workspace import Study
from evenhand.texts import written

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

    from evenhand.study.settings.session import ProlificSettings


# Addresses that Prolific has signed: who comes with one is the participant that it names. Facts:
# docs.prolific.com, "Retrieve JSON Web Key Set (JWKS)": RS256, the page's origin as `aud`, an
# `exp`, and what the address asks for under `prolific`.

TOKEN = "prolific_token"  # noqa: S105 - the name of a parameter

_LONGEST_TOKEN = 8_000
_LARGEST_KEYS = 1_000_000
_DAY, _MINUTE = 86_400.0, 60.0
_PATIENCE = 5.0
"""Seconds to wait for the keys."""
_CLOCKS = 60
"""Seconds by which Prolific's clock may differ from this machine's."""


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
        keys = _KEYS.of(settings.signing_keys, token)
        read = jwt.decode(token, keys, algorithms=["RS256"])
        must_have.validate(read.claims)
    except Refused:
        raise
    except (JoseError, ValueError, TypeError, AttributeError) as error:  # any text may come
        raise Refused("prolific_unsigned") from error
    said = read.claims.get("prolific")
    ids = said if isinstance(said, Mapping) else {}
    return {str(name): value for name, value in ids.items() if isinstance(value, str)}


class _Keys:
    """Prolific's public keys, asked for once a day, and when a token names one that is new; once a
    minute at most, whether they could be had or not.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, KeySet | None]] = {}

    def of(self, url: str, token: str) -> KeySet:
        """The keys at an address. Raises Refused where there are none and none can be had."""
        with self._lock:
            asked, keys = self._known.get(url, (-math.inf, None))
            age = time.monotonic() - asked
            wanted = keys is None or age > _DAY or not _has_key_of(keys, token)
            if wanted and age > _MINUTE:
                keys = _fetched(url) or keys
                self._known[url] = (time.monotonic(), keys)
            if keys is None:
                raise Refused("prolific_keys_away")
            return keys


_KEYS = _Keys()


def _has_key_of(keys: KeySet, token: str) -> bool:
    from joserfc.jws import extract_compact

    named = extract_compact(token.encode()).headers().get("kid")
    return any(key.kid == named for key in keys.keys)


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
_ENDS = ("released", "readmitted", "consent", "screened_out")
_NAMES = {"participant_id": "PROLIFIC_PID", "study_id": "STUDY_ID", "session_id": "SESSION_ID"}


def new_code() -> str:
    """A rater code that says nothing about the person."""
    return f"r-{secrets.token_hex(5)}"


def enter(study: Study, address: Mapping[str, str]) -> str:
    """The rater that a participant is: always the same one, whatever their submission.

    Raises Refused where an id is none of Prolific's or not signed by it, no place is left, or they
    were rejected.
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
            _take_up_again(study, connection, rater)
        append(connection, participant_entries, entry | {"rater_id": rater})
        add_event(connection, rater, "entered", way="prolific")
    return rater


def _take_up_again(study: Study, connection: sa.Connection, rater: str) -> None:
    """Let another submission continue where the previous one stopped; a place that was given back
    is taken again.
    """
    reason = given_back(events_of(connection, rater))
    if reason == "rejected":
        raise Refused("closed_before")
    if reason:
        _need_place(study, connection)
        add_event(connection, rater, "readmitted")


def _need_place(study: Study, connection: sa.Connection) -> None:
    settings = study.config.prolific
    if settings is None or not settings.places:
        return
    query = sa.select(participant_entries.c.rater_id).distinct()
    raters = set(connection.execute(query).scalars())
    if len(raters) < settings.places:
        return
    ends = _ends(connection, raters)
    freed = sum(ends[rater] in settings.free_again for rater in raters)
    if len(raters) - freed >= settings.places:
        raise Refused("no_places")


def _ends(connection: sa.Connection, raters: set[str]) -> dict[str, str]:
    """Why each of these raters ended before they were done, as far as it can free a place."""
    logs: dict[str, list[Event]] = defaultdict(list)
    query = sa.select(session_events).where(session_events.c.kind.in_(_ENDS))
    for row in connection.execute(query.order_by(session_events.c.event_id)):
        logs[row.rater_id].append(Event(row.kind, row.detail, row.created_at))
    excluded = Oversight().renewed(connection).exclusions
    return {
        rater: _end(logs[rater]) or ("stopped" if rater in excluded else "") for rater in raters
    }


def _end(log: list[Event]) -> str:
    if reason := given_back(log):
        return reason
    if any(event.kind == "consent" and not event.detail["agreed"] for event in log):
        return "no_consent"
    return "screened_out" if any(event.kind == "screened_out" for event in log) else ""
