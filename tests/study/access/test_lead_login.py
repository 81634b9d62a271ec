"""Who gets to the lead's pages, and who does not."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.study.access import lead_login as lead_access
from evenhand.study.access.accounts import disable_account, make_token, set_account
from evenhand.study.access.lead_login import (
    Visitor,
    log_in,
    log_out,
    new_link_token,
    open_link,
    visitor,
)
from evenhand.study.desk.oversight import decisions_table
from tests.study.access.conftest import PASSWORD


def test_a_link_works_once_and_its_login_until_it_is_over(store):
    link = new_link_token(store)
    login = open_link(store, link)
    assert (
        visitor(store, login) == visitor(store, login) == Visitor("lead", "lead", has_account=False)
    )
    with pytest.raises(InputError, match="used already"):
        open_link(store, link)
    assert visitor(store, open_link(store, new_link_token(store))).role == "lead"
    assert decisions_table(store).empty  # the note that a link was used is no decision


def test_what_is_no_link_or_no_login_opens_nothing(store, make_study):
    login, elsewhere = open_link(store, new_link_token(store)), make_study().store
    about = {"nonce": "x", "name": "lead", "version": 1}
    for purpose in ("invite", "lead", "", "login"):
        token = make_token(store, purpose, about, 60)
        for opens in (open_link, visitor):
            with pytest.raises(InputError):
                opens(store, token)
    with pytest.raises(InputError, match="not valid"):
        open_link(store, login)
    for token in (
        new_link_token(store),
        login[:-2],
        f"{login}x",
        "",
        open_link(elsewhere, new_link_token(elsewhere)),
    ):
        with pytest.raises(InputError, match="log in again"):
            visitor(store, token)


def test_link_and_login_expire(store, monkeypatch):
    monkeypatch.setattr(lead_access, "LINK_MINUTES", 0)
    with pytest.raises(InputError, match="expired"):
        open_link(store, new_link_token(store))
    monkeypatch.setattr(lead_access, "LINK_MINUTES", 60)
    monkeypatch.setattr(lead_access, "LOGIN_MINUTES", 0)
    login = open_link(store, new_link_token(store))
    with pytest.raises(InputError):
        visitor(store, login)


def test_an_account_comes_in_with_its_role_until_it_ends(store):
    set_account(store, "chair", PASSWORD, "expert")
    login = log_in(store, "chair", PASSWORD)
    assert visitor(store, login) == Visitor("chair", "expert")
    for name, password in (("chair", "another one"), ("nobody", PASSWORD)):
        with pytest.raises(InputError, match="name or password is wrong"):
            log_in(store, name, password)
    disable_account(store, "chair")
    with pytest.raises(InputError, match="log in again"):
        visitor(store, login)


def test_who_logged_out_is_out_wherever_the_login_is_kept(store):
    set_account(store, "chair", PASSWORD, "lead")
    other = log_in(store, "chair", PASSWORD)
    for login in (open_link(store, new_link_token(store)), log_in(store, "chair", PASSWORD)):
        assert visitor(store, login).role == "lead"
        log_out(store, login)
        with pytest.raises(InputError, match="log in again"):
            visitor(store, login)
        assert visitor(store, other).name == "chair"
