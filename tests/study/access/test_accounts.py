"""Signed tokens and accounts: what they let in, and what they keep out."""

from __future__ import annotations

from typing import Literal

import pytest
import sqlalchemy as sa
from argon2 import Parameters, PasswordHasher, extract_parameters

from evenhand.errors import InputError
from evenhand.study.access import accounts as access
from evenhand.study.access.accounts import (
    accounts,
    disable_account,
    make_token,
    read_login,
    read_token,
    set_account,
    sign_in,
    sign_out,
)
from evenhand.study.store.meta import study_secret
from evenhand.study.store.schema import account_events, login_attempts
from evenhand.study.store.store import Store
from tests.study.access.conftest import PASSWORD, role_of


def test_the_secret_is_made_once_and_is_every_studys_own(make_study):
    one, other = make_study(), make_study()
    assert len(study_secret(one.store)) == 32
    reopened = Store.open("study.db", one.folder)
    assert study_secret(reopened) == study_secret(one.store) != study_secret(other.store)
    reopened.close()


def test_a_token_says_what_was_put_in(store):
    token = make_token(store, "invite", {"rater": "r-1", "count": 2}, minutes=1)
    assert read_token(store, "invite", token) == {"rater": "r-1", "count": 2}
    assert token.replace("-", "").replace("_", "").replace(".", "").isalnum()  # fit for an address


def test_forged_foreign_and_expired_tokens_are_refused(make_study):
    store, elsewhere = make_study().store, make_study().store
    token = make_token(store, "invite", {"rater": "r-1"}, minutes=1)
    body, _, signature = token.partition(".")
    forged = [
        "",
        "nonsense",
        token[:-1],
        body[:-1] + ("A" if body[-1] != "A" else "B") + "." + signature,
        make_token(elsewhere, "invite", {"rater": "r-1"}, minutes=1),
        make_token(store, "login", {"rater": "r-1"}, minutes=1),
    ]
    for each in forged:
        with pytest.raises(InputError, match="this link is not valid; ask for a new one"):
            read_token(store, "invite", each)
    over = make_token(store, "invite", {"rater": "r-1"}, minutes=0)
    with pytest.raises(InputError, match="this link has expired"):
        read_token(store, "invite", over)


def test_a_password_lets_in_under_its_role(store):
    set_account(store, "ada", PASSWORD, "expert")
    set_account(store, "bo", PASSWORD, "lead")
    assert role_of(store, "ada", PASSWORD) == "expert"
    assert role_of(store, "bo", PASSWORD) == "lead"
    assert role_of(store, "ada", PASSWORD + "x") is None
    assert role_of(store, "eve", PASSWORD) is None
    assert list(accounts(store)) == ["ada", "bo"]


def test_passwords_are_not_in_the_store_and_nothing_is_written_over(store):
    set_account(store, "ada", PASSWORD, "expert")
    set_account(store, "ada", "another password", "lead")
    assert role_of(store, "ada", "another password") == "lead"
    role_of(store, PASSWORD, "typed into the wrong field", "203.0.113.5")
    with store.read() as connection:
        rows = connection.execute(sa.select(account_events)).all()
        attempts = connection.execute(sa.select(login_attempts)).all()
    assert [row.kind for row in rows] == ["set", "set"]
    assert all(row.password_hash.startswith("$argon2id$") for row in rows)
    assert not [each for each in (PASSWORD, "203.0.113.5") if each in str(rows) + str(attempts)]


@pytest.mark.parametrize(
    ("name", "password", "role", "sentence"),
    [
        ("a b", PASSWORD, "expert", "an account's name is"),
        ("humans", PASSWORD, "expert", "an account's name is"),
        ("ada", "short", "expert", "a password has 10 to 200 characters"),
        ("ada", "x" * 201, "expert", "a password has 10 to 200 characters"),
        ("ada", PASSWORD, "root", "there is no role 'root'"),
    ],
)
def test_what_no_account_can_be(store, name, password, role, sentence):
    with pytest.raises(InputError, match=sentence):
        set_account(store, name, password, role)
    assert accounts(store) == {}


def test_a_disabled_account_lets_nobody_in(store):
    set_account(store, "ada", PASSWORD, "expert")
    token = sign_in(store, "ada", PASSWORD, minutes=5)
    assert read_login(store, token).role == "expert"
    disable_account(store, "ada")
    assert role_of(store, "ada", PASSWORD) is None
    with pytest.raises(InputError, match="log in again"):
        read_login(store, token)
    with pytest.raises(InputError, match="no account 'ada'"):
        disable_account(store, "ada")
    set_account(store, "ada", PASSWORD, "expert")
    assert role_of(store, "ada", PASSWORD) == "expert"
    with pytest.raises(InputError, match="log in again"):
        read_login(store, token)


def test_a_login_ends_with_the_password_and_with_its_time(store):
    set_account(store, "ada", PASSWORD, "expert")
    token = sign_in(store, "ada", PASSWORD, minutes=5)
    set_account(store, "ada", "another password", "expert")
    with pytest.raises(InputError, match="name or password is wrong"):
        sign_in(store, "ada", PASSWORD, minutes=5)
    with pytest.raises(InputError, match="log in again"):
        read_login(store, token)
    with pytest.raises(InputError, match="expired"):
        read_login(store, sign_in(store, "ada", "another password", minutes=0))


def test_a_login_ends_on_the_server_and_no_other_with_it(store):
    set_account(store, "ada", PASSWORD, "expert")
    here, there = (sign_in(store, "ada", PASSWORD, minutes=5) for _ in range(2))
    for _ in range(2):  # the same again changes nothing
        sign_out(store, here)
        with pytest.raises(InputError, match="this login has ended"):
            read_login(store, here)
    assert read_login(store, there).name == "ada"
    sign_out(store, "forged")
    sign_out(store, "")


def test_an_unknown_name_takes_as_long(store, monkeypatch):
    checked: list[Parameters] = []

    class Counting(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
            checked.append(extract_parameters(str(hash)))
            return super().verify(hash, password)

    hasher = Counting(time_cost=2, memory_cost=16, parallelism=1)
    monkeypatch.setattr(access, "_hasher", lambda: hasher)
    set_account(store, "ada", PASSWORD, "expert")
    role_of(store, "ada", "wrong password")
    known = list(checked)
    role_of(store, "eve", "wrong password")
    assert len(known) == 1
    assert checked == known * 2  # the same work, whoever asks
