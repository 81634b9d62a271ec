"""Whom a provider's word lets in, as what, and how often."""

from __future__ import annotations

import sys
import time
from itertools import count
from typing import Any

import pytest

from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.access.accounts import accounts, disable_account
from evenhand.study.access.admission import admit
from evenhand.study.access.lead_login import log_out, visitor
from evenhand.study.access.single_sign_on import client_secret, cookie_secret, sign_on
from evenhand.study.settings.session import OidcSettings
from evenhand.study.settings.study_toml import change_config
from tests.study.access.conftest import role_of

SET = {
    "server_metadata_url": "https://id.example.org/.well-known/openid-configuration",
    "client_id": "evenhand",
    "client_secret": "${EVENHAND_TEST_SECRET}",
    "address": "https://study.example.org",
    "leads": ["ada@example.org", "sub:00u1", "KIT@example.org"],
    "experts": ["ben@example.org", "ada@example.org"],
}


@pytest.fixture
def study(make_study) -> Study:
    folder = make_study().folder
    change_config(folder, {"oidc": SET})
    with open_study(folder) as study:
        yield study


_NONCES = count()


def word(email: str = "", **claims: Any) -> dict[str, Any]:
    """The claims of a sound token, each time another."""
    usual = {"iss": "https://id.example.org", "aud": "evenhand", "exp": time.time() + 60}
    usual |= {"sub": f"of {email}", "email": email, "email_verified": True}
    return usual | {"nonce": f"nonce-{next(_NONCES)}"} | claims


@pytest.mark.parametrize(
    ("email", "sub", "role"),
    [
        ("ada@example.org", "x", "lead"),  # in both lists
        ("Ada@Example.org", "x", "lead"),
        ("", "00u1", "lead"),
        ("ben@example.org", "x", "expert"),
        ("eve@example.org", "x", None),
        ("", "x", None),
        ("", "ada@example.org", None),  # an identifier is no address
        ("sub:00u1", "x", None),  # nor an address an identifier
        ("\u212ait@example.org", "x", None),  # the Kelvin sign, whose small letter is k
    ],
)
def test_who_is_listed_comes_in_as_what_they_are_listed_as(study, email, sub, role):
    if role is None:
        with pytest.raises(InputError, match="does not know you"):
            sign_on(study, word(email, sub=sub), 60)
        assert not accounts(study.store)
        return
    login = sign_on(study, word(email, sub=sub), 60)
    found = visitor(study.store, login)
    assert found.role == role
    assert found.name.startswith("sso-") and len(found.name) == 16
    if role == "expert":
        assert admit(study, {}, login).rater_id == found.name


@pytest.mark.parametrize("verified", [False, None, "true", 1, "absent"])
def test_an_address_that_is_not_verified_is_anybodys(study, verified):
    claims = word("ada@example.org", email_verified=verified)
    if verified == "absent":
        del claims["email_verified"]
    with pytest.raises(InputError, match="not verified"):
        sign_on(study, claims, 60)
    with pytest.raises(InputError, match="not verified"):  # so that nobody learns who is listed
        sign_on(study, word("eve@example.org", email_verified=verified), 60)
    listed = word("", sub="00u1", email_verified=verified)
    assert visitor(study.store, sign_on(study, listed, 60)).role == "lead"


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another-app", "azp": "evenhand"},
        {"aud": ["another-app"]},
        {"exp": 1_000_000_000},
        {"exp": None},
        {"nonce": ""},
        {"nonce": None},
        {"sub": ""},
        {"iss": None},
    ],
    ids=str,
)
def test_a_word_that_is_not_for_this_study_or_over_is_none(study, claims):
    assert sign_on(study, word("ada@example.org") | claims, 60) is None
    assert sign_on(study, word("ada@example.org", aud=["other", "evenhand"]), 60) is not None


def test_a_word_counts_once_and_its_login_ends_for_good(study, make_study):
    said = word("ada@example.org")
    assert sign_on(make_study(), said, 60) is None  # of a study without a provider
    login = sign_on(study, said, 60)
    assert sign_on(study, said, 60) is None
    name = visitor(study.store, login).name
    log_out(study.store, login)
    assert sign_on(study, said, 60) is None
    other = sign_on(study, word("ada@example.org"), 60)
    disable_account(study.store, name)
    for each in (login, other):
        with pytest.raises(InputError, match="log in again"):
            visitor(study.store, each)
    with pytest.raises(InputError, match="account in this study was ended"):
        sign_on(study, word("ada@example.org"), 60)


@pytest.mark.slow
def test_a_person_keeps_their_code_and_no_password_opens_it(study, make_study):
    first = visitor(study.store, sign_on(study, word("ada@example.org"), 60))
    assert visitor(study.store, sign_on(study, word("ada@example.org"), 60)) == first
    other = sign_on(study, word("ada@example.org", iss="https://other.example.org"), 60)
    assert visitor(study.store, other) != first
    assert list(accounts(study.store)) == sorted({first.name, visitor(study.store, other).name})
    assert role_of(study.store, first.name, "") is None
    with pytest.raises(InputError, match="link or a login"):
        admit(study, {"rater": first.name})


def test_another_list_gives_another_role_and_ends_the_login_before(study):
    before = sign_on(study, word("ada@example.org"), 60)
    change_config(study.folder, {"oidc": SET | {"leads": []}})
    with open_study(study.folder) as changed:
        assert (
            visitor(changed.store, sign_on(changed, word("ada@example.org"), 60)).role == "expert"
        )
    with pytest.raises(InputError, match="log in again"):
        visitor(study.store, before)


def test_what_is_missing_is_named(monkeypatch):
    settings = OidcSettings.model_validate(SET)
    monkeypatch.setenv("EVENHAND_TEST_SECRET", "s3cret")
    assert client_secret(settings) == "s3cret"
    monkeypatch.delenv("EVENHAND_TEST_SECRET")
    with pytest.raises(InputError, match="EVENHAND_TEST_SECRET, which is not set"):
        client_secret(settings)
    monkeypatch.setitem(sys.modules, "authlib", None)  # as where it is not installed
    with pytest.raises(InputError, match=r"evenhand\[oidc\]"):
        client_secret(settings)


def test_every_study_signs_its_cookies_with_a_secret_of_its_own(make_study):
    one, other = make_study().store, make_study().store
    assert cookie_secret(one) == cookie_secret(one) != cookie_secret(other)
