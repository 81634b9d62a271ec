"""Accounts with a password, and signed tokens that expire.

A token's claims can be read by anyone who has it, but not changed. Accounts are events: a new
password, another role or the end of an account is appended, never written over.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.access.guessing import attempt, note_attempt, refuse_guessing
from evenhand.study.refused import Refused
from evenhand.study.store.events import append
from evenhand.study.store.meta import study_secret
from evenhand.study.store.schema import account_events, is_latest, lead_events
from evenhand.study.store.store import Store
from evenhand.study.tables.ratings import RATER_CODE, RESERVED_RATERS

if TYPE_CHECKING:
    from argon2 import PasswordHasher
    from itsdangerous import URLSafeTimedSerializer

Role = Literal["expert", "lead"]

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200
"""Hashing costs the server time and memory, so the length of a password is limited."""

_LOGIN = "login"
_ENDED = "logged_out"
_one_at_a_time = threading.Lock()
"""A check takes 64 MB for a tenth of a second: a crowd at the door must not take it all at once."""


# Signed tokens


def make_token(store: Store, purpose: str, claims: dict[str, Any], minutes: float) -> str:
    """Return a signed text, safe in a URL, that carries `claims` (JSON-able) and is valid for
    `minutes`.
    """
    return _signer(store, purpose).dumps({"minutes": minutes, "claims": claims})


def read_token(store: Store, purpose: str, token: str) -> dict[str, Any]:
    """Return the claims of a token made for this purpose.

    Raises InputError where it was made elsewhere or for another purpose, was changed, or is over.
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


# Accounts


@dataclass(frozen=True)
class Account:
    """A person with a password, or one whom an identity provider vouches for. `version` changes
    with the password and the role.
    """

    name: str
    role: Role
    version: int


def set_account(store: Store, name: str, password: str, role: Role) -> None:
    """Make an account, or give the one of this name another password or role.

    Raises InputError where the name cannot be a rater's, the password is too short or too long, or
    the role is none.
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


def copy_account(store: Store, other: Store, name: str) -> bool:
    """Make an account with this password in another store. True if there is a lead's of this name
    that has a password.
    """
    with store.read() as connection:
        row = connection.execute(_present().where(account_events.c.name == name)).first()
    if row is None or not row.password_hash or row.role != "lead":
        return False
    _add(other, name=name, kind="set", role=row.role, password_hash=row.password_hash)
    return True


def accounts(store: Store) -> dict[str, Account]:
    """The accounts that there are, by name."""
    with store.read() as connection:
        return {
            row.name: Account(row.name, row.role, row.event_id)
            for row in connection.execute(_present().order_by(account_events.c.name))
            if row.kind == "set"
        }


def sign_in(
    store: Store, name: str, password: str, minutes: float, address: str = "", browser: str = ""
) -> str:
    """Return a token for a new login of this account. See `read_login`.

    A name that is unknown takes as long as one that is known. Raises InputError where name or
    password is wrong and, whether or not the name is known, where this sender has to wait after
    wrong passwords: see `guessing`.
    """
    found = _checked(store, name, password, address, browser)
    if found is None:
        raise Refused("wrong_password")
    return make_login(store, _LOGIN, {"name": name, "version": found.version}, minutes)


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
    """Return the account of a token made by `sign_in`.

    Raises InputError where the token is invalid or expired, or the account has ended or changed
    since.
    """
    claims = read_open_login(store, _LOGIN, token)
    account = accounts(store).get(claims["name"])
    if account is None or account.version != claims["version"]:
        raise Refused("login_ended")
    return account


# Logins, which end on the server: who has a copy of the token has nothing


def make_login(store: Store, purpose: str, claims: dict[str, Any], minutes: float) -> str:
    """A token with a number of its own, by which `end_login` ends it."""
    return make_token(store, purpose, claims | {"login": secrets.token_hex(8)}, minutes)


def read_open_login(store: Store, purpose: str, token: str) -> dict[str, Any]:
    """Return the claims of a login token. Raises InputError as `read_token` does, and where the
    login was ended.
    """
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
    with store.write() as connection:
        event = {"kind": _ENDED, "rater_id": "", "reason": login, "done_by": ""}
        append(connection, lead_events, event)


def sign_out(store: Store, token: str) -> None:
    """End a login of `sign_in`."""
    end_login(store, _LOGIN, token)


def _checked(store: Store, name: str, password: str, address: str, browser: str) -> Account | None:
    from argon2.exceptions import VerificationError

    who = attempt(study_secret(store), name, address, browser)
    refuse_guessing(store, who)  # before the queue, so that a client that must wait delays no other
    with _one_at_a_time:
        refuse_guessing(store, who)
        with store.read() as connection:
            row = connection.execute(_present().where(account_events.c.name == name)).first()
        known = row is not None and row.kind == "set" and bool(row.password_hash)
        try:
            _hasher().verify(
                row.password_hash if row and known else _no_ones_hash(), password[:LONGEST_PASSWORD]
            )
            admitted = known
        except VerificationError:
            admitted = False
        with store.write() as connection:
            note_attempt(connection, who, admitted)
    return Account(row.name, row.role, row.event_id) if row and admitted else None


def _present() -> sa.Select[Any]:
    """Select the latest event of every account."""
    return sa.select(account_events).where(is_latest(account_events, "name"))


def _add(store: Store, **event: str) -> None:
    with store.write() as connection:
        append(connection, account_events, event)


@cache
def _hasher() -> PasswordHasher:
    """Return an Argon2id hasher with the library's defaults: RFC 9106's parameters for low
    memory.
    """
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _no_ones_hash() -> str:
    """Return a hash to check passwords of unknown names against, so that they take equally long."""
    return _hasher().hash(secrets.token_hex(16))
