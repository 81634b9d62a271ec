"""Accounts with a password, and signed tokens that expire.

A token's claims can be read by anyone who has it, but not changed. Accounts are events: a new
password, another role or the end of an account is appended, never written over.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.refused import Refused
from evenhand.study.store.database import append
from evenhand.study.store.meta import study_secret
from evenhand.study.store.schema import account_events, is_latest, lead_events, login_attempts
from evenhand.study.store.store import Store
from evenhand.study.tables.ratings import RATER_CODE, RESERVED_RATERS

if TYPE_CHECKING:
    from argon2 import PasswordHasher
    from itsdangerous import URLSafeTimedSerializer


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
    """A rule for delays: `free` wrong passwords cost nothing; each one more doubles the wait, from
    one second up to `longest`.
    """

    free: int
    longest: float

    def wait(self, wrong: int) -> float:
        over = wrong - self.free
        return 0.0 if over < 0 else min(2.0 ** min(over, 20), self.longest)


_BROWSER = "b:"
"""Prefix of the key of a browser, which takes the place of an address's."""

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
    at_home = _last_in(tries, who, who.browser_key) if who.browser_key else ""
    if at_home:
        waits = [_left(PAIR, _since(at_home, _of(wrong, who, who.browser_key)), now)]
    else:
        by_address = [each for each in wrong if not each.address_key.startswith(_BROWSER)]
        of_account = [each for each in by_address if each.name_key == who.name_key]
        of_address = [each for each in by_address if each.address_key == who.address_key]
        of_pair = _of(wrong, who, who.address_key)
        admitted = _last_in(tries, who, who.address_key)
        waits = [_left(ADDRESS, of_address, now), _left(PAIR, _since(admitted, of_pair), now)]
        if of_address and not admitted:
            waits.append(_left(ACCOUNT, of_account, now, of_address))
    if (left := max(waits)) > 0:
        raise _refusal(left)


def note_attempt(connection: sa.Connection, who: Attempt, admitted: bool) -> None:
    """Keep one attempt within a `write()`, and forget those that count no more."""
    now = _now()
    over = sa.or_(
        login_attempts.c.created_at < _written(now - KNOWN_FOR),
        sa.and_(
            login_attempts.c.admitted == 0, login_attempts.c.created_at < _written(now - WINDOW)
        ),
    )
    connection.execute(sa.delete(login_attempts).where(over))
    event = {"name_key": who.name_key, "admitted": int(admitted), "created_at": _written(now)}
    senders = [key for key in (who.address_key, who.browser_key) if key]
    rows = [event | {"address_key": key} for key in senders]
    connection.execute(sa.insert(login_attempts), rows)


def _left(
    rule: _Slowing, wrong: Sequence[Any], now: datetime, own: Sequence[Any] | None = None
) -> float:
    """Return the seconds left to wait after these wrong passwords, counted from the last of `own`,
    or of `wrong` if `own` is None.
    """
    last = wrong if own is None else own
    if not wrong or not last:
        return 0.0
    passed = now - datetime.fromisoformat(last[-1].created_at)
    return rule.wait(len(wrong)) - passed.total_seconds()


def _of(tries: Sequence[Any], who: Attempt, sender: str) -> list[Any]:
    """Return the attempts at this account from one sender (an address or a browser)."""
    return [e for e in tries if e.name_key == who.name_key and e.address_key == sender]


def _last_in(tries: Sequence[Any], who: Attempt, sender: str) -> str:
    """When the account's owner last came in from there; "" for never."""
    found = [each.created_at for each in _of(tries, who, sender) if each.admitted]
    return max(found, default="")


def _since(moment: str, tries: Sequence[Any]) -> list[Any]:
    return [each for each in tries if each.created_at > moment]


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


def _refusal(seconds: float) -> Refused:
    whole = max(int(seconds + 0.999), 1)
    if whole < 120:
        return Refused("wait_seconds", seconds=whole)
    return Refused("wait_minutes", minutes=(whole + 59) // 60)


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def _now() -> datetime:
    return datetime.now(UTC)


# Passwords, tokens and accounts

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
            _hasher().verify(
                row.password_hash if row and known else _no_ones_hash(), password[:LONGEST_PASSWORD]
            )
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
