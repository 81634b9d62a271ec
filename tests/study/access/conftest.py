"""A store with nobody in it, passwords that are checked quickly, and the role that one gives."""

import pytest
from argon2 import PasswordHasher

from evenhand.study.access import accounts
from evenhand.study.access.accounts import read_login, sign_in
from evenhand.study.refused import Refused
from evenhand.study.store.store import Store

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def cheap_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same library, with less work for each check."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(accounts, "_hasher", lambda: hasher)
    accounts._no_ones_hash.cache_clear()


@pytest.fixture
def store(make_study) -> Store:
    return make_study().store


def role_of(
    store: Store, name: str, password: str, address: str = "", browser: str = ""
) -> str | None:
    """Log in as on the page and return the account's role; None where name or password is wrong."""
    try:
        login = sign_in(store, name, password, address, browser)
    except Refused as refused:
        if refused.reason != "wrong_password":
            raise
        return None
    return read_login(store, login).role
