"""The role that a name and a password give, by a login as on the page."""

from __future__ import annotations

from evenhand.study.access.accounts import read_login, sign_in
from evenhand.study.refused import Refused
from evenhand.study.store.store import Store


def role_of(
    store: Store, name: str, password: str, address: str = "", browser: str = ""
) -> str | None:
    """Log in and return the account's role; None where name or password is wrong."""
    try:
        login = sign_in(store, name, password, 5, address, browser)
    except Refused as refused:
        if refused.reason != "wrong_password":
            raise
        return None
    return read_login(store, login).role
