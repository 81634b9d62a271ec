"""Who gets in: accounts with a password, signed tokens that expire, logins of experts and leads (by
their account, by a link that works once, or by single sign-on), and admission to a study's page.

A token's claims can be read by anyone who has it, but not changed. Accounts are events: a new
password, another role or the end of an account is appended, never written over.

Admission checks the query of a page's address against the study's settings, and knows the
participants whom Prolific sends.

    ?rater=CODE        an open study: anyone who enters a code
    ?invite=TOKEN      an invite, bound to one rater code
    ?invite=TOKEN&PROLIFIC_PID=..&STUDY_ID=..&SESSION_ID=..    a participant from Prolific
    ?pass=TOKEN        the same participant from then on: their ids leave the address

A code that belongs to an invite, an account or a participant opens nothing by itself, nor when the
invite was revoked or the account has ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import json
import math
import os
import re
import secrets
import threading
import time
import unicodedata
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

import sqlalchemy as sa

from evenhand.errors import InputError, Refused
from evenhand.lazy import pd
from evenhand.study.desk.claims import ends_of, has_room, sides_named
from evenhand.study.settings.study_toml import (
    FILE_NAME,
    OidcSettings,
    ProlificSettings,
    with_values,
)
from evenhand.study.store.database import append
from evenhand.study.store.logs.decisions import note_act, note_settings
from evenhand.study.store.schema import (
    account_events,
    claims,
    invite_events,
    is_latest,
    labels,
    lead_events,
    login_attempts,
    participant_entries,
    session_events,
)
from evenhand.study.store.store import Store, add_event, events_of, given_back
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.ratings import RATER_CODE, RESERVED_RATERS
from evenhand.study.workspace import Study, study_secret
from evenhand.texts import written

if TYPE_CHECKING:
    from argon2 import PasswordHasher
    from itsdangerous import URLSafeTimedSerializer
    from joserfc.jwk import KeySet

# Limits on guessing passwords: wrong ones delay their sender, and no one else. A client that
# guesses at an account from an address waits twice as long after each wrong password. Weaker rules
# limit the guesses at one account from many addresses, and from one address at many accounts. Each
# counts the wait from the client's own last guess, so that no one can make another's wait longer.
# An address from which the account's owner has logged in before is exempt from the first rule, and
# the browser in which they did from all rules but its own guesses. A first try from any address is
# always checked. Attempts are kept for as long as they count.

WINDOW = timedelta(hours=1)
"""Wrong passwords count for so long."""
KNOWN_FOR = timedelta(days=30)
"""So long after a login its address is one that the account's owner comes from."""


@dataclass(frozen=True)
class _Slowing:
    """A delay: after `free` wrong passwords, waits from one second double up to `longest`."""

    free: int
    longest: float

    def left(self, wrong: Sequence[Any], last: Sequence[Any], now: datetime) -> float:
        """Return the seconds to wait after these `wrong` passwords, from the `last` attempt on."""
        over = len(wrong) - self.free
        if over < 0 or not last:
            return 0.0
        passed = now - datetime.fromisoformat(last[-1].created_at)
        return min(2.0 ** min(over, 20), self.longest) - passed.total_seconds()


_BROWSER = "b:"  # prefix of the key of a browser, which takes the place of an address's

PAIR = _Slowing(free=4, longest=600.0)
ACCOUNT = _Slowing(free=50, longest=60.0)
ADDRESS = _Slowing(free=25, longest=60.0)


@dataclass(frozen=True)
class Attempt:
    """A client's attempt at an account from an address. People type passwords into the wrong field,
    so what was typed is kept only as a keyed digest.
    """

    name_key: str
    address_key: str
    browser_key: str = ""


def attempt(secret: bytes, name: str, address: str, browser: str = "") -> Attempt:
    """Return the keyed digests of an attempt. `address` is the client's; an IPv6 address is reduced
    to its network of 64 bits. `browser` identifies the client's browser; "" if it is not known.
    """

    def key(text: str) -> str:
        return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()[:32]

    return Attempt(key(name), key(_network(address)), _BROWSER + key(browser) if browser else "")


def refuse_guessing(store: Store, who: Attempt) -> None:
    """Raises Refused, which says how long, where the sender has to wait before the next try."""
    now = _now()
    rows = login_attempts.c
    query = sa.select(login_attempts).where(
        sa.or_(rows.name_key == who.name_key, rows.address_key == who.address_key),
        rows.created_at > _written(now - KNOWN_FOR),
    )
    with store.read() as connection:
        tries = connection.execute(query.order_by(rows.event_id)).all()
    since = _written(now - WINDOW)
    wrong = [each for each in tries if not each.admitted and each.created_at > since]

    def from_sender(sender: str) -> tuple[str, list[Any]]:
        """Return the owner's last login from there ("": none), and the wrong passwords since."""
        key = (who.name_key, sender)
        here = [each for each in tries if (each.name_key, each.address_key) == key]
        admitted = max((each.created_at for each in here if each.admitted), default="")
        after = max(since, admitted)
        return admitted, [e for e in here if not e.admitted and e.created_at > after]

    at_home, of_browser = from_sender(who.browser_key) if who.browser_key else ("", [])
    if at_home:
        waits = [PAIR.left(of_browser, of_browser, now)]
    else:
        by_address = [each for each in wrong if not each.address_key.startswith(_BROWSER)]
        of_account = [each for each in by_address if each.name_key == who.name_key]
        of_address = [each for each in by_address if each.address_key == who.address_key]
        admitted, of_pair = from_sender(who.address_key)
        waits = [ADDRESS.left(of_address, of_address, now), PAIR.left(of_pair, of_pair, now)]
        if of_address and not admitted:
            waits.append(ACCOUNT.left(of_account, of_address, now))
    if (left := max(waits)) > 0:
        seconds = max(int(left + 0.999), 1)
        if seconds < 120:
            raise Refused("wait_seconds", seconds=seconds)
        raise Refused("wait_minutes", minutes=(seconds + 59) // 60)


def note_attempt(connection: sa.Connection, who: Attempt, admitted: bool) -> None:
    """Keep one attempt within a `write()`, and forget those that count no more."""
    now, rows = _now(), login_attempts.c
    is_wrong_and_over = sa.and_(rows.admitted == 0, rows.created_at < _written(now - WINDOW))
    over = sa.or_(rows.created_at < _written(now - KNOWN_FOR), is_wrong_and_over)
    connection.execute(sa.delete(login_attempts).where(over))
    event = {"name_key": who.name_key, "admitted": int(admitted), "created_at": _written(now)}
    senders = [{"address_key": key} for key in (who.address_key, who.browser_key) if key]
    connection.execute(sa.insert(login_attempts), [event | sender for sender in senders])


def _network(address: str) -> str:
    """The address as one sender has it.

    >>> _network("2001:db8::1"), _network("10.0.0.7"), _network("")
    ('2001:db8::/64', '10.0.0.7', '')
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if known.version == 4:
        return str(known)
    return str(ipaddress.ip_network((known, 64), strict=False))


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def _now() -> datetime:
    return datetime.now(UTC)


Role = Literal["expert", "lead"]

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200
"""Hashing costs the server time and memory, so the length of a password is limited."""

LOGIN_MINUTES = 8 * 60.0
_LOGIN = "login"
_ENDED: Literal["logged_out"] = "logged_out"
_one_at_a_time = threading.Lock()
"""A check takes 64 MB for a tenth of a second: a crowd at the door must not take it all at once."""


def make_token(store: Store, purpose: str, claims: dict[str, Any], minutes: float) -> str:
    """Return a signed text, safe in a URL, that carries `claims` (JSON) for `minutes`."""
    return _signer(store, purpose).dumps({"minutes": minutes, "claims": claims})


def read_token(store: Store, purpose: str, token: str) -> dict[str, Any]:
    """Return the claims of a token made for this purpose. Raises InputError where it was made
    elsewhere or for another purpose, was changed, or is over.
    """
    from itsdangerous import BadData

    try:
        signed, made_at = _signer(store, purpose).loads(token, return_timestamp=True)
    except BadData:
        raise Refused("link_invalid") from None
    if (datetime.now(UTC) - made_at).total_seconds() >= signed["minutes"] * 60:
        raise Refused("link_expired")
    claims: dict[str, Any] = signed["claims"]
    return claims


def _signer(store: Store, purpose: str) -> URLSafeTimedSerializer:
    from itsdangerous import URLSafeTimedSerializer

    # The salt keeps the purposes apart: a token of one is no token of another.
    return URLSafeTimedSerializer(
        study_secret(store), salt=purpose, signer_kwargs={"digest_method": hashlib.sha256}
    )


@dataclass(frozen=True)
class Account:
    """A person with a password or vouched for; `version` changes with the password and the role."""

    name: str
    role: Role
    version: int


def set_account(store: Store, name: str, password: str, role: Role) -> None:
    """Make an account, or give the one of this name another password or role. Raises InputError
    where the name cannot be a rater's, the password is too short or too long, or the role is none.
    """
    if not RATER_CODE.fullmatch(name) or name in RESERVED_RATERS:
        raise InputError(
            "an account's name is 1 to 64 letters, digits, dots, hyphens or underscores"
        )
    if role not in get_args(Role):
        raise InputError(f"there is no role {role!r}; take one of {', '.join(get_args(Role))}")
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(
            f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters; choose another"
        )
    _add(store, name=name, kind="set", role=role, password_hash=_hasher().hash(password))


def disable_account(store: Store, name: str) -> None:
    """End an account, and with it every login. Raises InputError where there is none."""
    if name not in accounts(store):
        raise InputError(f"there is no account {name!r}")
    _add(store, name=name, kind="disabled", role="", password_hash="")


def accounts(store: Store) -> dict[str, Account]:
    """The accounts that there are, by name."""
    with store.read() as connection:
        return {
            row.name: Account(row.name, row.role, row.event_id)
            for row in connection.execute(_present().order_by(account_events.c.name))
            if row.kind == "set"
        }


def sign_in(
    store: Store,
    name: str,
    password: str,
    address: str = "",
    browser: str = "",
    minutes: float = LOGIN_MINUTES,
) -> str:
    """Return a token for a new login of this account. See `read_login`.

    A name that is unknown takes as long as one that is known. Raises InputError where name or
    password is wrong and, whether or not the name is known, where this sender has to wait after
    wrong passwords: see `refuse_guessing`.
    """
    from argon2.exceptions import VerificationError

    who = attempt(study_secret(store), name, address, browser)
    refuse_guessing(store, who)  # before the queue, so that a client that must wait delays no other
    with _one_at_a_time:
        refuse_guessing(store, who)
        with store.read() as connection:
            row = connection.execute(_present().where(account_events.c.name == name)).first()
        known = row is not None and row.kind == "set" and bool(row.password_hash)
        try:
            kept = row.password_hash if row and known else _no_ones_hash()
            _hasher().verify(kept, password[:LONGEST_PASSWORD])
        except VerificationError:
            known = False
        with store.write() as connection:
            note_attempt(connection, who, known)
    if row is None or not known:
        raise Refused("wrong_password")
    return make_login(store, _LOGIN, {"name": name, "version": row.event_id}, minutes)


def sign_in_vouched(store: Store, name: str, role: Role, minutes: float) -> str:
    """Return a token for a new login of a person whom a provider vouches for.

    As `sign_in`, for an account that has no password unless it is given one. It is created at the
    first login, and its role follows `role`.

    Raises InputError where the account was ended: being vouched for again does not undo that.
    """
    with store.write() as connection:
        query = _present().where(account_events.c.name == name)
        row = connection.execute(query).first()
        if row is not None and row.kind != "set":
            raise Refused("account_ended")
        if row is None or row.role != role:
            event = {"name": name, "kind": "set", "role": role}
            event["password_hash"] = row.password_hash if row else ""
            append(connection, account_events, event)
            row = connection.execute(query).one()
    return make_login(store, _LOGIN, {"name": name, "version": row.event_id}, minutes)


def read_login(store: Store, token: str) -> Account:
    """Return the account of a token made by `sign_in`. Raises InputError where the token is invalid
    or expired, or the account has ended or changed since.
    """
    claims = read_open_login(store, _LOGIN, token)
    account = accounts(store).get(claims["name"])
    if account is None or account.version != claims["version"]:
        raise Refused("login_ended")
    return account


def make_login(store: Store, purpose: str, claims: dict[str, Any], minutes: float) -> str:
    """A token with a number of its own, by which `end_login` ends it."""
    return make_token(store, purpose, claims | {"login": secrets.token_hex(8)}, minutes)


def read_open_login(store: Store, purpose: str, token: str) -> dict[str, Any]:
    """Return a login token's claims. Raises InputError as `read_token`, and for an ended login."""
    claims = read_token(store, purpose, token)
    with store.read() as connection:
        login = claims.get("login")  # version 0.1.0 gave them no number
        ended = lead_events.c.kind == _ENDED, lead_events.c.reason == login
        ends = sa.select(lead_events.c.event_id).where(*ended)
        if login is None or connection.execute(ends).first():
            raise Refused("login_ended")
    return claims


def end_login(store: Store, purpose: str, token: str) -> None:
    """Log out: the token opens nothing any more, in whichever browser. One that is none is left."""
    try:
        login = read_open_login(store, purpose, token)["login"]
    except InputError:
        return
    note_act(store, _ENDED, "", login, "")


def _present() -> sa.Select[Any]:
    """Select the latest event of every account."""
    return sa.select(account_events).where(is_latest(account_events, "name"))


def _add(store: Store, **event: str) -> None:
    with store.write() as connection:
        append(connection, account_events, event)


@cache
def _hasher() -> PasswordHasher:
    """Return an Argon2id hasher with the library's defaults (RFC 9106, low memory)."""
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _no_ones_hash() -> str:
    """Return a hash to check passwords of unknown names against, so that they take equally long."""
    return _hasher().hash(secrets.token_hex(16))


# Logins of a study's lead and experts: by a link that works once, by their account, or by single
# sign-on. All give a login: a signed token that the browser keeps for one window and sends again on
# a reload. Neither the link nor the login opens anything that an annotator's code or invite could
# open.

LINK_PARAMETER = "lead"
"""The query parameter of the app's address that holds a link's token."""
LINK_MINUTES = 60.0

_LINK = "lead-link"
_BY_LINK = "lead-by-link"
_USED: Literal["used"] = "used"


@dataclass(frozen=True)
class Visitor:
    """The person logged in. `name` is recorded with every decision of theirs; who came by a link
    `has_account` no more than a name.
    """

    name: str
    role: Role
    has_account: bool = True


def new_link_token(store: Store) -> str:
    """Return the token of a link to the lead's pages, valid for an hour and for one use."""
    return make_token(store, _LINK, {"nonce": secrets.token_hex(8)}, LINK_MINUTES)


def open_link(store: Store, token: str) -> str:
    """The login that a link gives. Raises InputError where it is none, is over, or was used."""
    claims = read_token(store, _LINK, token)
    if not use_once(store, claims["nonce"]):
        raise InputError("this link was used already; ask for a new one")
    return make_login(store, _BY_LINK, {}, LOGIN_MINUTES)


def log_out(store: Store, login: str) -> None:
    """End a login on the server. One that is none or over is left."""
    end_login(store, _BY_LINK, login)
    end_login(store, _LOGIN, login)


def visitor(store: Store, login: str) -> Visitor:
    """Return the person of a login. Raises InputError where it or its account is over or bad."""
    with contextlib.suppress(InputError):
        read_open_login(store, _BY_LINK, login)
        return Visitor("lead", "lead", has_account=False)
    try:
        account = read_login(store, login)
    except InputError:
        raise InputError("this login is not valid or is over; log in again") from None
    return Visitor(account.name, account.role)


def use_once(store: Store, nonce: str) -> bool:
    """Return True at the first use of a link's or an ID token's nonce, and record the use."""
    is_use = lead_events.c.kind == _USED, lead_events.c.reason == nonce
    used = sa.select(lead_events.c.event_id).where(*is_use)
    with store.write() as connection:
        if connection.execute(used).first():
            return False
        note_act(store, _USED, "", nonce, "")
    return True


# A study made beside the one whose lead made it, to be served at the same address.

_LIKE_HERE = ("entry", "trusted_proxies", "hosts")
"""Settings that say who gets in: the world reaches the new study as it does this one."""


def settle_beside(study: Study, made: Study, lead: Visitor) -> bool:
    """Give a new study this one's ways in and its lead's account. True if the lead has one here."""
    ways_in = study.config.session.model_dump(mode="json", include={*_LIKE_HERE})
    path = made.folder / FILE_NAME
    text = with_values(path.read_text("utf-8"), {"session": ways_in})
    atomic_write(path, text.encode())
    note_settings(made.store, text, lead.name)
    with study.store.read() as connection:
        row = connection.execute(_present().where(account_events.c.name == lead.name)).first()
    if not lead.has_account or row is None or not row.password_hash or row.role != "lead":
        return False
    _add(made.store, name=lead.name, kind="set", role=row.role, password_hash=row.password_hash)
    return True


# Single sign-on (OpenID Connect): the people whom an organisation vouches for, and their roles. An
# ID token counts once: it gives a login of the study's own, which ends as every other does. Its
# signature is checked before, by Streamlit and Authlib; its audience and expiry are checked here
# too.


def sign_on(study: Study, word: Mapping[str, Any], minutes: float) -> str | None:
    """Return a login for the subject of an ID token's claims (OpenID Connect Core 1.0, section 2).
    None where the token is not for this study, has expired, or was used before. Raises InputError,
    with a sentence for the visitor, where the study does not let them in.
    """
    settings = study.config.oidc
    issuer, subject, nonce = (word.get(name) for name in ("iss", "sub", "nonce"))
    audience, until = word.get("aud"), word.get("exp")
    audience = audience if isinstance(audience, list) else [audience]
    if settings is None or settings.client_id not in audience:
        return None
    if not isinstance(until, int | float) or time.time() >= until:
        return None
    if not all(isinstance(each, str) and each for each in (issuer, subject, nonce)):
        return None
    if not use_once(study.store, str(nonce)):
        return None
    role, person = _role(settings, word), f"{issuer}\n{subject}".encode()
    # A rater code that stays the same for a person and does not reveal their address.
    digest = hmac.new(study_secret(study.store), person, hashlib.sha256).hexdigest()
    return sign_in_vouched(study.store, f"sso-{digest[:12]}", role, minutes)


def client_secret(settings: OidcSettings) -> str:
    """The app's secret at the provider. Raises InputError where single sign-on cannot work: the
    file may not send the secret, the library is not installed, or the environment has none.
    """
    name = settings.client_secret[2:-1]
    settings.check("[oidc] client_secret", name, settings.server_metadata_url)
    if find_spec("authlib") is None:
        raise InputError(written("single_sign_on.no_extra"))
    if not (secret := os.environ.get(name)):
        raise InputError(written("single_sign_on.no_secret", name=name))
    return secret


def cookie_secret(store: Store) -> str:
    """Return the study's own key that signs the cookies in which a browser carries the ID token."""
    return hmac.new(study_secret(store), b"single sign-on", hashlib.sha256).hexdigest()


def _role(settings: OidcSettings, word: Mapping[str, Any]) -> Role:
    """Return the role of the token's subject, lead before expert. An unverified email address may
    be anyone's, so it is not looked up, and the refusal does not reveal whether it is listed.
    """
    verified = word.get("email_verified") is True
    email = str(word.get("email", "")) if verified else ""
    lists: dict[Role, tuple[str, ...]] = {"lead": settings.leads, "expert": settings.experts}
    for role, people in lists.items():
        # Capital letters make no other address; other scripts' look-alikes do.
        addresses = [person.lower() for person in people if not person.startswith("sub:")]
        if f"sub:{word['sub']}" in people or (email.isascii() and email.lower() in addresses):
            return role
    raise Refused("not_invited" if verified else "email_not_verified")


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
        known = any(connection.execute(query).first() for query in asked)
        begun = {code} if known else _ever(connection, *columns)
    if folded(code) in map(folded, taken):
        raise Refused("code_has_a_link")
    # An exact match comes first: an older study may have `Ann` and `ann` as two people.
    same = [code] if code in begun else [other for other in begun if folded(other) == folded(code)]
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
        for invite in made:
            _note(connection, invite.token, invite.rater_id, "made")
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
