"""Access to a study: who may log in, and which annotator a page's address admits.

In this order: delays after wrong passwords; signed tokens that expire; accounts with a password;
the lead's links that work once; single sign-on; participants from Prolific; rater codes as people
type them; `admit`, and tickets for the panel, the part of the page that itself asks the server;
making and revoking invites. A token's claims (its data) can be read by anyone who has it, but not
changed. Accounts are events: a new password, another role or the end of one is only appended.

`admit` compares the query of a page's address with the study's settings:

    ?rater=CODE        an open study: anyone who enters a code
    ?invite=TOKEN      an invite, bound to one rater code
    ?invite=TOKEN&PROLIFIC_PID=..&STUDY_ID=..&SESSION_ID=..    a participant from Prolific
    ?pass=TOKEN        the same participant from then on: their ids leave the address

A code that belongs to an invite, an account or a participant opens nothing by itself, not even
after the invite was revoked or the account disabled.
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
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import sqlalchemy as sa

from evenhand.errors import InputError, Refused
from evenhand.lazy import pd
from evenhand.study.desk.claims import has_place
from evenhand.study.settings import study_toml
from evenhand.study.store import schema
from evenhand.study.store.database import append
from evenhand.study.store.logs.decisions import note_act, note_settings
from evenhand.study.store.schema import account_events, invite_events, participant_entries
from evenhand.study.store.store import Store, add_event, events_of, release_reason
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.ratings import RATER_CODE, RESERVED_RATERS
from evenhand.study.workspace import Study, study_secret
from evenhand.texts import written

if TYPE_CHECKING:
    from argon2 import PasswordHasher
    from itsdangerous import URLSafeTimedSerializer
    from joserfc.jwk import KeySet

# Limits on guessing passwords: wrong ones delay their sender, and no one else. A client that
# guesses at an account from an address waits twice as long after each wrong password
# (SENDER_LIMIT). Weaker rules limit guesses at one account from many addresses (ACCOUNT_LIMIT), and
# from one address at many accounts (ADDRESS_LIMIT). Each counts the wait from the client's own last
# guess, so that no one can make another's wait longer. ACCOUNT_LIMIT spares an address from which
# the account's owner has logged in before; the browser in which they did waits only for its own
# guesses. A first try from any address is always checked. Old attempts are deleted. An attempt has
# a row for each of its senders: the address, and the browser if it is known.

FAILURE_PERIOD = timedelta(hours=1)  # for which a wrong password counts
LOGIN_PERIOD = timedelta(days=30)  # for which a login's address and browser are the owner's

_Rows = Sequence[Any]  # of `login_attempts`, in the order of time


@dataclass(frozen=True)
class _Backoff:
    """A delay: after `n_free` wrong passwords, waits from one second double up to `max_seconds`."""

    n_free: int
    max_seconds: float

    def seconds_left(self, failures: _Rows, sender_failures: _Rows, now: datetime) -> float:
        """Return the seconds to wait after `failures` of anyone, counted from the sender's last."""
        doublings = len(failures) - self.n_free
        if doublings < 0 or not sender_failures:
            return 0.0
        elapsed = now - datetime.fromisoformat(sender_failures[-1].created_at)
        wait = 2.0 ** min(doublings, 20)  # 20: exceeds every `max_seconds`; more may overflow
        return min(wait, self.max_seconds) - elapsed.total_seconds()


SENDER_LIMIT = _Backoff(n_free=4, max_seconds=600.0)
ACCOUNT_LIMIT = _Backoff(n_free=50, max_seconds=60.0)
ADDRESS_LIMIT = _Backoff(n_free=25, max_seconds=60.0)

_BROWSER_PREFIX = "b:"  # tells a browser's key from an address's: both are in `address_key`


@dataclass(frozen=True)
class Attempt:
    """An attempt to log in, as keyed digests, since the name may be a mistyped password."""

    name_key: str
    address_key: str
    browser_key: str = ""


def digest_attempt(secret: bytes, name: str, address: str, browser: str = "") -> Attempt:
    """Return the keyed digests of an attempt. `address` is the client's; an IPv6 address is reduced
    to its network of 64 bits. `browser` identifies the client's browser; "" if it is not known.
    """

    def key(text: str) -> str:
        return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()[:32]

    browser_key = _BROWSER_PREFIX + key(browser) if browser else ""
    return Attempt(key(name), key(_network(address)), browser_key)


def refuse_guessing(store: Store, attempt: Attempt) -> None:
    """Raise Refused, with the time left, if the sender of this attempt has to wait."""
    now, columns = _now(), schema.login_attempts.c
    query = sa.select(schema.login_attempts).where(
        sa.or_(columns.name_key == attempt.name_key, columns.address_key == attempt.address_key),
        columns.created_at > _timestamp(now - LOGIN_PERIOD),
    )
    attempts = store.rows(query.order_by(columns.event_id))
    if (seconds_left := _seconds_to_wait(attempts, attempt, now)) <= 0:
        return
    if (seconds := math.ceil(seconds_left)) < 120:  # a longer wait is shown in minutes
        raise Refused("wait_seconds", seconds=seconds)
    raise Refused("wait_minutes", minutes=math.ceil(seconds / 60))


def _seconds_to_wait(attempts: _Rows, attempt: Attempt, now: datetime) -> float:
    """Return the longest wait that a limit sets for the sender, in seconds; zero or less: none.
    `attempts` are those at the same account or from the same address.
    """
    period_start = _timestamp(now - FAILURE_PERIOD)

    def login_and_failures(sender_key: str) -> tuple[str, _Rows]:
        """Return the sender's last login to the account ("": none), and their failures since."""
        keys = (attempt.name_key, sender_key)
        own_attempts = [row for row in attempts if (row.name_key, row.address_key) == keys]
        last_login = max((row.created_at for row in own_attempts if row.admitted), default="")
        start = max(period_start, last_login)
        failures = [row for row in own_attempts if not row.admitted and row.created_at > start]
        return last_login, failures

    if attempt.browser_key:
        last_login, failures = login_and_failures(attempt.browser_key)
        if last_login:
            return SENDER_LIMIT.seconds_left(failures, failures, now)
    # The other limits also count guesses of others at the account, or guesses at other accounts.
    recent = [row for row in attempts if not row.admitted and row.created_at > period_start]
    by_address = [row for row in recent if not row.address_key.startswith(_BROWSER_PREFIX)]
    account_failures = [row for row in by_address if row.name_key == attempt.name_key]
    address_failures = [row for row in by_address if row.address_key == attempt.address_key]
    last_login, failures = login_and_failures(attempt.address_key)
    waits = [SENDER_LIMIT.seconds_left(failures, failures, now)]  # all are the sender's
    waits.append(ADDRESS_LIMIT.seconds_left(address_failures, address_failures, now))
    if not last_login:
        waits.append(ACCOUNT_LIMIT.seconds_left(account_failures, address_failures, now))
    return max(waits)


def note_attempt(connection: sa.Connection, attempt: Attempt, admitted: bool) -> None:
    """Record an attempt within a `write()`, and delete those that no longer count."""
    now, attempts = _now(), schema.login_attempts
    made_at, is_failure = attempts.c.created_at, attempts.c.admitted == 0
    is_old_failure = is_failure & (made_at < _timestamp(now - FAILURE_PERIOD))
    is_old = (made_at < _timestamp(now - LOGIN_PERIOD)) | is_old_failure
    connection.execute(sa.delete(attempts).where(is_old))
    event = {"name_key": attempt.name_key, "admitted": int(admitted), "created_at": _timestamp(now)}
    senders = [{"address_key": key} for key in (attempt.address_key, attempt.browser_key) if key]
    connection.execute(sa.insert(schema.login_attempts), [event | sender for sender in senders])


def _network(address: str) -> str:
    """Return the address under which a client's attempts are counted: IPv6 by networks of 64 bits.

    >>> _network("2001:db8::1"), _network("10.0.0.7"), _network("")
    ('2001:db8::/64', '10.0.0.7', '')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def _timestamp(moment: datetime) -> str:
    """Return a time in the form in which the store keeps it."""
    return moment.isoformat(timespec="milliseconds")


def _now() -> datetime:
    return datetime.now(UTC)


# Signed tokens that expire. Each has a purpose, such as "login", and is valid for no other.


def make_token(store: Store, purpose: str, claims: dict[str, Any], minutes: float) -> str:
    """Return a signed text, safe in a URL, that carries `claims` (JSON) for `minutes`."""
    return _signer(store, purpose).dumps({"minutes": minutes, "claims": claims})


def read_token(store: Store, purpose: str, token: str) -> dict[str, Any]:
    """Return the claims of a token made for this purpose. Raises InputError where it was made
    elsewhere or for another purpose, was changed, or has expired.
    """
    from itsdangerous import BadData

    try:
        signed, made_at = _signer(store, purpose).loads(token, return_timestamp=True)
    except BadData:
        raise Refused("link_invalid") from None
    if (datetime.now(UTC) - made_at).total_seconds() >= signed["minutes"] * 60:
        raise Refused("link_expired")
    return dict(signed["claims"])


def _signer(store: Store, purpose: str) -> URLSafeTimedSerializer:
    """Return the serializer that signs tokens with the study's secret, for one purpose alone."""
    from itsdangerous import URLSafeTimedSerializer

    digest = {"digest_method": hashlib.sha256}
    return URLSafeTimedSerializer(study_secret(store), salt=purpose, signer_kwargs=digest)


# Accounts with a password, and their logins. A login is a signed token.

Role = Literal["expert", "lead"]

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200
"""Hashing costs the server time and memory, so the length of a password is limited."""

LOGIN_MINUTES = 8 * 60.0  # validity of a login by password or link
_LOGIN = "login"  # purpose of the token of an account's login
_ENDED: Literal["logged_out"] = "logged_out"  # kind of the event that ends a login
_hashing_lock = threading.Lock()  # for one password check at a time: each takes 64 MB for 0.1 s


@dataclass(frozen=True)
class Account:
    """The account of a person who has a password, or whom an identity provider vouches for.
    `version` is the id of its latest event, so it changes with password and role.
    """

    name: str
    role: Role
    version: int


def set_account(store: Store, name: str, password: str, role: Role) -> None:
    """Create an account, or change its password or role. Raises InputError where the name cannot be
    a rater's, the password is too short or too long, or there is no such role.
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
    password_hash = _hasher().hash(password)
    _append_account_event(store, name=name, kind="set", role=role, password_hash=password_hash)


def disable_account(store: Store, name: str) -> None:
    """Disable an account and end all its logins. Raises InputError where there is none."""
    if name not in accounts(store):
        raise InputError(f"there is no account {name!r}")
    _append_account_event(store, name=name, kind="disabled", role="", password_hash="")


def accounts(store: Store) -> dict[str, Account]:
    """Return the accounts that are not disabled, by name."""
    query = sa.select(account_events).where(schema.is_latest(account_events, "name"))
    return {
        row.name: Account(row.name, row.role, row.event_id)
        for row in store.rows(query.order_by(account_events.c.name))
        if row.kind == "set"  # not "disabled"
    }


def sign_in(
    store: Store,
    name: str,
    password: str,
    address: str = "",
    browser: str = "",
    minutes: float = LOGIN_MINUTES,
) -> str:
    """Return a token for a new login of this account. See `read_login`. An unknown name takes as
    long as a known one. Raises InputError where name or password is wrong, or where this sender has
    to wait after wrong passwords: see `refuse_guessing`.
    """
    from argon2.exceptions import VerificationError

    attempt = digest_attempt(study_secret(store), name, address, browser)
    refuse_guessing(store, attempt)  # before the lock: a client that must wait delays no other
    with _hashing_lock:
        refuse_guessing(store, attempt)  # again: others may have guessed while this one waited
        with store.read() as connection:
            row = connection.execute(_select_account(name)).first()
        has_password = row is not None and row.kind == "set" and bool(row.password_hash)
        expected_hash = row.password_hash if row and has_password else _decoy_hash()
        try:
            _hasher().verify(expected_hash, password[:LONGEST_PASSWORD])
            is_right = has_password
        except VerificationError:
            is_right = False
        with store.write() as connection:
            note_attempt(connection, attempt, is_right)
    if row is None or not is_right:
        raise Refused("wrong_password")
    return make_login(store, _LOGIN, {"name": name, "version": row.event_id}, minutes)


def sign_in_vouched(store: Store, name: str, role: Role, minutes: float) -> str:
    """Return a token for a new login of a person for whom an identity provider vouches. The account
    is created at the first login, without a password, and its role follows `role`. Raises
    InputError where the account was disabled: a new login at the provider does not undo that.
    """
    with store.write() as connection:
        row = connection.execute(_select_account(name)).first()
        if row is not None and row.kind != "set":  # "disabled"
            raise Refused("account_ended")
        if row is None or row.role != role:
            event = {"name": name, "kind": "set", "role": role}
            event["password_hash"] = row.password_hash if row else ""
            append(connection, account_events, event)
            row = connection.execute(_select_account(name)).one()
    return make_login(store, _LOGIN, {"name": name, "version": row.event_id}, minutes)


def read_login(store: Store, token: str) -> Account:
    """Return the account of a token made by `sign_in`. Raises InputError where the token is invalid
    or expired, or the account has ended or changed since.
    """
    claims = read_open_login(store, _LOGIN, token)
    account = accounts(store).get(claims["name"])
    if account is None or account.version != claims["version"]:  # ended, or changed
        raise Refused("login_ended")
    return account


def make_login(store: Store, purpose: str, claims: dict[str, Any], minutes: float) -> str:
    """Return a token for a new login, with a random number by which `log_out` can end it."""
    return make_token(store, purpose, claims | {"login": secrets.token_hex(8)}, minutes)


def read_open_login(store: Store, purpose: str, token: str) -> dict[str, Any]:
    """Return a login token's claims. Raises InputError as `read_token`, and for an ended login."""
    claims = read_token(store, purpose, token)
    login = claims.get("login")  # tokens of version 0.1.0 have no number
    events = schema.lead_events.c  # `reason` has what `note_act` calls the detail
    ends_login = sa.and_(events.kind == _ENDED, events.reason == login)
    if login is None or store.values(sa.select(events.event_id).where(ends_login)):
        raise Refused("login_ended")
    return claims


def _select_account(name: str) -> sa.Select[Any]:
    """Select the latest event of an account; its kind is "set" or "disabled"."""
    latest = schema.is_latest(account_events, "name")
    return sa.select(account_events).where(latest, account_events.c.name == name)


def _append_account_event(store: Store, **event: str) -> None:
    with store.write() as connection:
        append(connection, account_events, event)


@cache
def _hasher() -> PasswordHasher:
    """Return an Argon2id hasher with the library's defaults (RFC 9106, low memory)."""
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _decoy_hash() -> str:
    """Return a hash to check passwords of unknown names against, so that they take equally long."""
    return _hasher().hash(secrets.token_hex(16))


# Logins of a study's lead and experts: by a link that works once, by their account, or by single
# sign-on. All give a login: a signed token that the browser keeps for one window and sends again on
# a reload. Neither a link nor a login gives access to what an annotator's code or invite opens.

LINK_PARAMETER = "lead"  # the query parameter of the app's address that holds a link's token
LINK_MINUTES = 60.0

_LINK, _BY_LINK = "lead-link", "lead-by-link"  # purposes of tokens: a link, and the login it gives
_USED: Literal["used"] = "used"  # kind of the event that a link or an ID token was used


@dataclass(frozen=True)
class Visitor:
    """The person logged in, by an account or a link; `name` is recorded with their decisions."""

    name: str
    role: Role
    has_account: bool = True


def new_link_token(store: Store) -> str:
    """Return the token of a link to the lead's pages, valid for an hour and for one use."""
    return make_token(store, _LINK, {"nonce": secrets.token_hex(8)}, LINK_MINUTES)


def open_link(store: Store, token: str) -> str:
    """Return the login that a link gives. Raises InputError if it is invalid, expired or used."""
    if not use_once(store, read_token(store, _LINK, token)["nonce"]):
        raise InputError("this link was used already; ask for a new one")
    return make_login(store, _BY_LINK, {}, LOGIN_MINUTES)


def log_out(store: Store, login: str) -> None:
    """End a login on the server, so in every browser. An invalid or expired one is ignored."""
    for purpose in (_BY_LINK, _LOGIN):
        with contextlib.suppress(InputError):
            number = read_open_login(store, purpose, login)["login"]
            note_act(store, _ENDED, about="", detail=number, done_by="")


def visitor(store: Store, login: str) -> Visitor:
    """Return the person of a login. Raises InputError where it is invalid or expired."""
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
    events = schema.lead_events.c
    earlier_use = sa.select(events.event_id).where(events.kind == _USED, events.reason == nonce)
    with store.write() as connection:
        if connection.execute(earlier_use).first():
            return False
        note_act(store, _USED, about="", detail=nonce, done_by="")  # within this transaction
    return True


_ENTRY_SETTINGS = {"entry", "trusted_proxies", "hosts"}  # of `[session]`; they control access


def copy_access(study: Study, new_study: Study, lead: Visitor) -> bool:
    """Copy this study's access settings and its lead's account to a new study at the same address.
    Return True if the lead has an account with a password, which was copied.
    """
    entry_settings = study.config.session.model_dump(mode="json", include=_ENTRY_SETTINGS)
    path = new_study.folder / study_toml.FILE_NAME
    text = study_toml.with_values(path.read_text("utf-8"), {"session": entry_settings})
    atomic_write(path, text.encode())
    note_settings(new_study.store, text, lead.name)
    with study.store.read() as connection:
        row = connection.execute(_select_account(lead.name)).first()
    if not lead.has_account or row is None or not row.password_hash or row.role != "lead":
        return False
    columns = {"name": lead.name, "role": row.role, "password_hash": row.password_hash}
    _append_account_event(new_study.store, kind="set", **columns)
    return True


# Single sign-on (OpenID Connect). An ID token works once: it gives a login of the study, which ends
# as every other does. Streamlit and Authlib have checked its signature before.


def sign_on(study: Study, id_claims: Mapping[str, Any], minutes: float) -> str | None:
    """Return a login for the subject of an ID token's claims (OpenID Connect Core 1.0, section 2).
    None where the token is not for this study, has expired, or was used before. Raises InputError,
    with a sentence for the visitor, where the study does not let them in.
    """
    settings = study.config.oidc
    issuer, subject, nonce = (id_claims.get(name) for name in ("iss", "sub", "nonce"))
    audience, expiry = id_claims.get("aud"), id_claims.get("exp")
    audience = audience if isinstance(audience, list) else [audience]
    if settings is None or settings.client_id not in audience:
        return None
    if not isinstance(expiry, int | float) or time.time() >= expiry:
        return None
    if not all(isinstance(claim, str) and claim for claim in (issuer, subject, nonce)):
        return None
    if not use_once(study.store, str(nonce)):
        return None
    role = _listed_role(settings, id_claims)
    # A rater code that stays the same for a person and does not reveal their address.
    identity = f"{issuer}\n{subject}".encode()
    digest = hmac.new(study_secret(study.store), identity, hashlib.sha256).hexdigest()
    return sign_in_vouched(study.store, f"sso-{digest[:12]}", role, minutes)


def client_secret(settings: study_toml.OidcSettings) -> str:
    """Return the app's secret at the provider. Raises InputError where single sign-on cannot work:
    the study's file may not send the secret, the library is missing, or the environment has none.
    """
    name = settings.client_secret[2:-1]  # the setting is "${NAME}"
    settings.check("[oidc] client_secret", name, settings.server_metadata_url)
    if find_spec("authlib") is None:
        raise InputError(written("single_sign_on.no_extra"))
    if secret := os.environ.get(name):
        return secret
    raise InputError(written("single_sign_on.no_secret", name=name))


def cookie_secret(store: Store) -> str:
    """Return the key that signs the cookies in which a browser carries the ID token."""
    return hmac.new(study_secret(store), b"single sign-on", hashlib.sha256).hexdigest()


def _listed_role(settings: study_toml.OidcSettings, id_claims: Mapping[str, Any]) -> Role:
    """Return the role of the token's subject, lead before expert. An unverified email address may
    be anyone's, so it is not looked up, and the refusal does not reveal whether it is listed.
    """
    is_verified = id_claims.get("email_verified") is True
    email = str(id_claims.get("email", "")) if is_verified else ""
    lists: dict[Role, tuple[str, ...]] = {"lead": settings.leads, "expert": settings.experts}
    for role, people in lists.items():
        # Only ASCII letters are compared without case: look-alikes of other scripts never match.
        addresses = [person.lower() for person in people if not person.startswith("sub:")]
        is_listed = email.isascii() and email.lower() in addresses
        if is_listed or f"sub:{id_claims['sub']}" in people:
            return role
    raise Refused("not_invited" if is_verified else "email_not_verified")


# Participants from Prolific, each of whom is one rater, however often they come. All have the same
# link, so anyone who has it can invent a participant, or enter as one whose id they know. With
# `[prolific] signed_for` only addresses that Prolific has signed let in; without it `places` limits
# the number of participants. Source: docs.prolific.com, "Retrieve JSON Web Key Set (JWKS)": tokens
# are signed with RS256, and have the page's origin (`aud`), an `exp`, and ids under `prolific`.

TOKEN_PARAMETER = "prolific_token"  # noqa: S105 - the name of a parameter

SIGNING_KEYS = "https://api.prolific.com/.well-known/study/jwks.json"  # Prolific's public keys
_MAX_TOKEN_CHARACTERS = 8_000
_MAX_KEYS_BYTES = 1_000_000
_KEYS_LIFETIME, _FETCH_INTERVAL = 86_400.0, 60.0  # seconds
_KEYS_TIMEOUT = 5.0  # seconds
_CLOCK_SKEW = 60  # seconds by which Prolific's clock may differ from this machine's


def check_signing() -> None:
    """Raise InputError if the library that checks Prolific's signatures is not installed."""
    if find_spec("joserfc") is None:
        raise InputError(written("single_sign_on.no_signing"))


def signed_ids(settings: study_toml.ProlificSettings, token: str) -> dict[str, str]:
    """Return the participant's ids in a signed token, by their names in an address. Raises Refused
    where Prolific has not signed it for this page, or it has expired.
    """
    from joserfc import jwt
    from joserfc.errors import JoseError

    if not token or len(token) > _MAX_TOKEN_CHARACTERS:
        raise Refused("prolific_unsigned")
    required = jwt.JWTClaimsRegistry(
        aud={"essential": True, "values": [settings.signed_for, f"{settings.signed_for}/"]},
        exp={"essential": True},
        leeway=_CLOCK_SKEW,
    )
    try:
        decoded = jwt.decode(token, _public_keys(SIGNING_KEYS, token), algorithms=["RS256"])
        required.validate(decoded.claims)
    except Refused:
        raise
    except (JoseError, ValueError, TypeError, AttributeError) as error:  # any text may come
        raise Refused("prolific_unsigned") from error
    ids = decoded.claims.get("prolific")
    ids = ids if isinstance(ids, Mapping) else {}
    return {str(name): value for name, value in ids.items() if isinstance(value, str)}


class _FetchedKeys(NamedTuple):
    """The latest keys, and the time (`time.monotonic`) of the last request, even if it failed."""

    keys: KeySet | None = None
    requested_at: float = -math.inf


_known_keys: dict[str, _FetchedKeys] = {}  # by their address
_fetching_lock = threading.Lock()


def _public_keys(url: str, token: str) -> KeySet:
    """Return Prolific's public keys. They are fetched once a day, and when a token names an unknown
    key; at most once a minute, also after failures. Raises Refused where there are none.
    """
    from joserfc.jws import extract_compact

    with _fetching_lock:
        keys, requested_at = _known_keys.get(url, _FetchedKeys())
        age = time.monotonic() - requested_at
        is_stale = keys is None or age > _KEYS_LIFETIME
        if keys is not None and not is_stale:
            key_id = extract_compact(token.encode()).headers().get("kid")
            is_stale = all(key.kid != key_id for key in keys.keys)
        if is_stale and age > _FETCH_INTERVAL:
            keys = _fetch_keys(url) or keys
            _known_keys[url] = _FetchedKeys(keys, time.monotonic())
        if keys is None:
            raise Refused("prolific_keys_away")
        return keys


def _fetch_keys(url: str) -> KeySet | None:
    """Return the keys at an address; None if they cannot be read."""
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        with urllib.request.urlopen(url, timeout=_KEYS_TIMEOUT) as response:  # noqa: S310 - see settings
            content: Any = json.loads(response.read(_MAX_KEYS_BYTES))
        return KeySet.import_key_set(content)
    except (OSError, ValueError, KeyError, TypeError, JoseError):
        return None


_PROLIFIC_ID = re.compile(r"[0-9a-f]{24}")  # an object id of their database: 12 bytes
_ID_NAMES = {"participant_id": "PROLIFIC_PID", "study_id": "STUDY_ID", "session_id": "SESSION_ID"}
"""Query parameters by the columns of `participant_entries`."""


def new_code() -> str:
    """Return a random rater code, which reveals nothing about the person."""
    return f"r-{secrets.token_hex(5)}"


def enter_participant(study: Study, query: Mapping[str, str]) -> str:
    """Record the entry of the participant in an address's query; return their only rater code.
    Another submission takes a released place again. Raises Refused where an id is not one of
    Prolific's, their work was rejected, or they have no place in the study.
    """
    settings = study.config.prolific
    if settings and settings.signed_for:
        query = signed_ids(settings, query.get(TOKEN_PARAMETER, ""))
    entry = {column: query.get(name, "") for column, name in _ID_NAMES.items()}
    if not all(map(_PROLIFIC_ID.fullmatch, entry.values())):
        raise Refused("prolific_only")
    is_same_person = participant_entries.c.participant_id == entry["participant_id"]
    with study.store.write() as connection:  # one newcomer at a time: two never share a place
        entries = connection.execute(sa.select(participant_entries).where(is_same_person)).all()
        rater: str = entries[0].rater_id if entries else new_code()
        if entry["session_id"] in {earlier.session_id for earlier in entries}:
            return rater  # a page is loaded again, perhaps that of an earlier submission
        reason = release_reason(events_of(connection, rater))
        if reason == "rejected":
            raise Refused("closed_before")
        if (reason or not entries) and not has_place(study, connection, rater if entries else ""):
            raise Refused("no_places")
        if reason:
            add_event(connection, rater, "readmitted")
        append(connection, participant_entries, entry | {"rater_id": rater})
        add_event(connection, rater, "entered", way="prolific")
    return rater


# Rater codes as people type them: case, outer spaces and full-width forms are ignored

_MAX_TYPED_CHARACTERS = 256  # the rest of what was typed is ignored; a code has 64


def normalized_code(typed: str) -> str:
    """Return the typed code without outer spaces and normalised (Unicode's NFKC).

    >>> normalized_code("  \uff21nn ")
    'Ann'
    """
    return unicodedata.normalize("NFKC", typed[:_MAX_TYPED_CHARACTERS]).strip()


def _folded(code: str) -> str:
    """Return the form in which codes are compared.

    >>> _folded(" ANN ") == _folded("ann")
    True
    """
    return normalized_code(code).casefold()


# Admission of raters, by their login or by the query of the page's address

LONGEST_HOURS = 24.0 * 90  # longest validity of an invite

_INVITE, _PASS = "invite", "pass"  # purposes of tokens
_INVITE_TOKEN = re.compile(r"[\w-]{22}\.[\d.e+-]+", re.ASCII)  # see `Invite`
_PANEL_MINUTES = 24 * 60  # a page that is open for longer is loaded again
_ANYONE = ""  # the rater of an invite for participants from Prolific

Way = Literal["open", "invite", "account", "prolific"]
"""What admits a rater: a typed code of an open study, an invite, a login, or Prolific's ids."""


@dataclass(frozen=True)
class Admission:
    """An admitted rater, and the query that the page's address must have from now on."""

    rater_id: str
    way: Way
    query: dict[str, str] = field(default_factory=dict)
    is_new: bool = field(default=False, compare=False)
    """True for a new code of an open study, under which no one has begun: see `record_entry`."""


@dataclass(frozen=True)
class Invite:
    """A rater, or "" for participants from Prolific, and the token of their link: 128 random bits,
    a dot, and the hours for which it is valid from its entry in the log on.
    """

    rater_id: str
    token: str


def admit(study: Study, query: Mapping[str, str], login: str = "") -> Admission | None:
    """Return the rater whom the browser's login admits, or without a login the address's query;
    None if neither is there. Raises InputError, with a sentence for the visitor, where the query is
    forged, expired, revoked, another person's, or of a kind that this study does not accept.
    """
    if login:
        account = read_login(study.store, login)
        if account.role != "expert":
            raise Refused("not_an_expert")
        return Admission(account.name, "account")
    if token := query.get("pass"):
        claims = read_token(study.store, _PASS, token)
        # The entry of the link that it came by; a pass of an earlier version does not name it.
        is_link = invite_events.c.event_id == claims.get("link", 0)
        link = study.store.values(sa.select(invite_events.c.invite_id).where(is_link))
        if any(_invite_log(study, invite)[-1].kind == "revoked" for invite in link):
            raise Refused("link_revoked")
        return Admission(claims["rater"], "prolific", {"pass": token})
    if token := query.get("invite"):
        return _admit_invite(study, token, query)
    if code := normalized_code(query.get("rater", "")):
        return _admit_code(study, code)
    return None


def _admit_code(study: Study, code: str) -> Admission:
    """Admit the rater of a typed code, known or new. Raises Refused unless the study is open."""
    if study.config.session.entry != "open":
        raise Refused("code_alone")
    with study.store.read() as connection:
        owned = (invite_events.c.rater_id, participant_entries.c.rater_id, account_events.c.name)
        owned_codes = _distinct_values(connection, *owned)
        # Under a code in one of these logs somebody has worked.
        used = [log.c.rater_id for log in (schema.claims, schema.session_events, schema.labels)]
        # A returning rater is looked up; all codes are read only for an unknown one.
        queries = (sa.select(column).where(column == code).limit(1) for column in used)
        is_known = any(connection.execute(query).first() for query in queries)
        used_codes = {code} if is_known else _distinct_values(connection, *used)
    if _folded(code) in map(_folded, owned_codes):
        raise Refused("code_has_a_link")
    # An exact match comes first: an older study may have `Ann` and `ann` as two people.
    spellings = [other for other in used_codes if _folded(other) == _folded(code)]
    if len(spellings) > 1:
        raise Refused("several_spellings")
    rater = spellings[0] if spellings else code
    return Admission(rater, "open", {"rater": rater}, is_new=not spellings)


def _distinct_values(connection: sa.Connection, *columns: sa.Column[str]) -> set[str]:
    """Return all values of these columns, of whichever tables."""
    return set(connection.execute(sa.union(*(sa.select(column) for column in columns))).scalars())


def record_entry(study: Study, rater_id: str) -> None:
    """Record that a rater has begun under a new code of an open study."""
    with study.store.write() as connection:
        if not events_of(connection, rater_id):
            add_event(connection, rater_id, "entered", way="open")


def _admit_invite(study: Study, token: str, query: Mapping[str, str]) -> Admission:
    """Admit the rater of an invite, or the Prolific participant in its address. Raises Refused
    where the invite is unknown, expired or revoked, or the study takes none.
    """
    if study.config.session.entry == "account":
        raise Refused("no_links")
    log = _invite_log(study, token) if _INVITE_TOKEN.fullmatch(token) else ()
    if not log:  # before 0.3.0 an invite was a signed text, which names its entry in the log
        log = _invite_log(study, read_token(study.store, _INVITE, token)["invite"])
    elif _expiry(token, log[0].created_at) <= datetime.now(UTC):
        raise Refused("link_expired")
    if not log or log[-1].kind != "made":
        raise Refused("link_revoked")
    if (rater := log[0].rater_id) != _ANYONE:
        return Admission(rater, "invite", {"invite": token})
    rater = enter_participant(study, query)
    claims = {"rater": rater, "link": log[0].event_id}  # not its token, which opens the study
    token = make_token(study.store, _PASS, claims, 60 * study.config.session.login_hours)
    return Admission(rater, "prolific", {"pass": token})


def _invite_log(study: Study, invite: str) -> Sequence[Any]:
    """Return the rows of `invite_events` of one invite, the first one first."""
    query = sa.select(invite_events).where(invite_events.c.invite_id == invite)
    return study.store.rows(query.order_by(invite_events.c.event_id))


def _expiry(token: str, made_at: str) -> datetime:
    """Return the time at which an invite made at `made_at` expires; its token has the hours."""
    return datetime.fromisoformat(made_at) + timedelta(hours=float(token.partition(".")[2]))


# Tickets, by which the panel's own requests to the server show who was admitted


def make_ticket(study: Study, admission: Admission, login: str, browser: str) -> str:
    """Return a ticket for the panel of an admitted rater, valid in this browser alone."""
    claims = {"rater": admission.rater_id, "way": admission.way, "address": admission.query}
    claims |= {"login": login, "browser": browser}
    return make_token(study.store, _panel_purpose(study), claims, _PANEL_MINUTES)


def read_ticket(study: Study, ticket: str, browser: str) -> Admission:
    """Return the admission of the rater whose panel this browser shows. Raises InputError where the
    ticket is forged, expired or another browser's, or the rater would no longer be admitted.
    """
    claims = read_token(study.store, _panel_purpose(study), ticket)
    if not secrets.compare_digest(claims["browser"], browser):
        raise Refused("link_invalid")
    # A code does not expire, unlike an invite or a login: its rater is not admitted again.
    if claims["way"] == "open" and study.config.session.entry == "open":
        return Admission(claims["rater"], "open", claims["address"])
    admission = admit(study, claims["address"], claims["login"])
    if admission is None or admission.rater_id != claims["rater"]:
        raise Refused("link_invalid")
    return admission


def _panel_purpose(study: Study) -> str:
    """Return the purpose of tickets, with the folder: a copy of the study has the same secret."""
    return f"panel {study.folder.resolve()}"


# Invites, made and revoked by the lead


def make_invites(study: Study, raters: list[str], hours: float, n_made: int = -1) -> list[Invite]:
    """Return an invite for each of these raters, valid for `hours`; for "" one for participants
    from Prolific. Raises InputError where the hours are too few or too many, a code cannot be a
    rater's, is a group's or an account's, or there are not `n_made` invites yet (-1: any number).
    """
    if not 0 < hours <= LONGEST_HOURS:
        raise InputError(f"a link is good for more than 0 and at most {LONGEST_HOURS:g} hours")
    existing_accounts = accounts(study.store)
    for rater in raters:
        if rater in RESERVED_RATERS:
            raise InputError(f"{rater!r} stands for a group or a baseline in results")
        if rater and not RATER_CODE.fullmatch(rater):
            raise InputError(
                f"{rater!r} is no annotator code: 1 to 64 letters, digits, dots, hyphens or "
                f"underscores"
            )
        if rater in existing_accounts:
            raise InputError(f"{rater!r} has an account, and needs no link")
    invites = [Invite(rater, f"{secrets.token_urlsafe(16)}.{hours:g}") for rater in raters]
    with study.store.write() as connection:
        if n_made not in (-1, len(invites_table(study))):  # read within this transaction
            raise InputError("links were made meanwhile; look at them before making more")
        for invite in invites:
            event = {"invite_id": invite.token, "rater_id": invite.rater_id, "kind": "made"}
            append(connection, invite_events, event)
    return invites


def invites_table(study: Study) -> pd.DataFrame:
    """Return a row per invite, the latest first: `rater_id` ("": participants from Prolific),
    `token`, `until` (both empty for one of before 0.3.0), `state`: "open", "revoked" or "expired".
    """
    events = study.store.rows(sa.select(invite_events).order_by(invite_events.c.event_id))
    now, rows = datetime.now(UTC).isoformat(), []
    latest_kinds = {event.invite_id: event.kind for event in events}
    for invite in (event for event in events if event.kind == "made"):
        token = invite.invite_id if "." in invite.invite_id else ""
        until = _expiry(token, invite.created_at).isoformat() if token else ""
        state = latest_kinds[invite.invite_id]
        if state == "made":
            state = "expired" if until and until <= now else "open"  # ISO 8601 sorts by time
        rows.append((invite.rater_id, token, until, state))
    return pd.DataFrame(rows[::-1], columns=["rater_id", "token", "until", "state"])


def revoke_invites(study: Study, rater: str) -> int:
    """Revoke every invite of a rater, or those for Prolific with ""; return their number."""
    is_open = schema.is_latest(invite_events, "invite_id") & (invite_events.c.kind == "made")
    query = sa.select(invite_events.c.invite_id).where(invite_events.c.rater_id == rater, is_open)
    revoked = {"rater_id": rater, "kind": "revoked"}
    with study.store.write() as connection:
        open_invites = connection.execute(query).scalars().all()
        append(connection, invite_events, *({"invite_id": one} | revoked for one in open_invites))
    return len(open_invites)
