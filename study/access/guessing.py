"""Limits on guessing passwords: wrong ones delay their sender, and no one else.

A client that guesses at an account from an address waits twice as long after each wrong password.
Weaker rules limit the guesses at one account from many addresses, and from one address at many
accounts. Each counts the wait from the client's own last guess, so that no one can make another's
wait longer. An address from which the account's owner has logged in before is exempt from the first
rule, and the browser in which they did from all rules but its own guesses. A first try from any
address is always checked. Attempts are kept for as long as they count.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from evenhand.study.refused import Refused
from evenhand.study.store.schema import login_attempts
from evenhand.study.store.store import Store

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
