"""Logins of a study's lead and experts: by a link that works once, or by their account.

Both give a login: a signed token that the browser keeps for one window and sends again on a reload.
Neither the link nor the login opens anything that an annotator's rater code or invite could open.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.access.accounts import (
    Role,
    end_login,
    make_login,
    make_token,
    read_login,
    read_open_login,
    read_token,
    sign_in,
    sign_out,
)
from evenhand.study.store.events import append
from evenhand.study.store.schema import lead_events
from evenhand.study.store.store import Store

LINK_PARAMETER = "lead"
"""The query parameter of the app's address that holds a link's token."""
LINK_MINUTES = 60.0
LOGIN_MINUTES = 8 * 60.0

_LINK = "lead-link"
_BY_LINK = "lead-by-link"
_USED = "used"


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


def log_in(store: Store, name: str, password: str, address: str = "", browser: str = "") -> str:
    """The login of an account. Raises InputError where name or password is wrong."""
    return sign_in(store, name, password, LOGIN_MINUTES, address, browser)


def log_out(store: Store, login: str) -> None:
    """End a login on the server. One that is none or over is left."""
    end_login(store, _BY_LINK, login)
    sign_out(store, login)


def visitor(store: Store, login: str) -> Visitor:
    """Return the person of a login. Raises InputError where it is invalid or expired, or its
    account has ended.
    """
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
    used = sa.select(lead_events.c.event_id).where(
        lead_events.c.kind == _USED, lead_events.c.reason == nonce
    )
    with store.write() as connection:
        if connection.execute(used).first():
            return False
        event = {"kind": _USED, "rater_id": "", "reason": nonce, "done_by": ""}
        append(connection, lead_events, event)
    return True
