"""Who gets in: by password, link, provider or Prolific's word, and who has to wait."""

import json
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product
from typing import Any

import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher, extract_parameters
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from evenhand.errors import InputError, Refused
from evenhand.study import Study, access, open_study
from evenhand.study.desk.claims import decisions_table, exclude
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.session.sessions import Sessions, participants_table
from evenhand.study.settings.study_toml import OidcSettings, change_config
from evenhand.study.store.database import append
from evenhand.study.store.schema import account_events, invite_events, login_attempts
from evenhand.study.store.store import Store, events_of
from evenhand.study.workspace import study_secret
from harness.studies import ASKS, CODES, label_all, task_of, with_labels
from tests.annotate_app.together import two_studies
from tests.cases import refused

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def cheap_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same library, with less work for each check."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(access, "_hasher", lambda: hasher)
    access._decoy_hash.cache_clear()


@pytest.fixture
def store(make_study) -> Store:
    return make_study().store


def role_of(
    store: Store, name: str, password: str, address: str = "", browser: str = ""
) -> str | None:
    """Log in as on the page and return the account's role; None where name or password is wrong."""
    try:
        login = access.sign_in(store, name, password, address, browser)
    except Refused as refused:
        if refused.reason != "wrong_password":
            raise
        return None
    return access.read_login(store, login).role


def test_secrets_are_made_once_and_are_every_studys_own(make_study):
    one, other = make_study(), make_study()
    assert len(study_secret(one.store)) == 32
    reopened = Store.open("study.db", one.folder)
    for secret in (study_secret, access.cookie_secret):
        assert secret(reopened) == secret(one.store) != secret(other.store)
    reopened.close()


def test_forged_foreign_and_expired_tokens_are_refused(make_study):
    store, elsewhere = make_study().store, make_study().store
    token = access.make_token(store, "invite", {"rater": "r-1"}, minutes=1)
    assert access.read_token(store, "invite", token) == {"rater": "r-1"}
    assert token.replace("-", "").replace("_", "").replace(".", "").isalnum()  # fit for an address
    body, _, signature = token.partition(".")
    foreign = access.make_token(elsewhere, "invite", {"rater": "r-1"}, minutes=1)
    login = access.make_token(store, "login", {"rater": "r-1"}, minutes=1)
    changed = body[:-1] + ("A" if body[-1] != "A" else "B") + "." + signature
    for each in ("", "nonsense", token[:-1], changed, foreign, login):
        refused("this link is not valid; ask for a new", access.read_token, store, "invite", each)
    over = access.make_token(store, "invite", {"rater": "r-1"}, minutes=0)
    refused("this link has expired", access.read_token, store, "invite", over)


def test_a_password_lets_in_under_its_role_and_is_not_in_the_store(store):
    access.set_account(store, "ada", PASSWORD, "expert")
    access.set_account(store, "bo", PASSWORD, "lead")
    assert (role_of(store, "ada", PASSWORD), role_of(store, "bo", PASSWORD)) == ("expert", "lead")
    assert role_of(store, "ada", PASSWORD + "x") is None
    assert list(access.accounts(store)) == ["ada", "bo"]
    token = access.sign_in(store, "ada", PASSWORD, minutes=5)
    access.set_account(store, "ada", "another password", "lead")
    refused("log in again", access.read_login, store, token)
    assert role_of(store, "ada", PASSWORD) is None
    assert role_of(store, "ada", "another password") == "lead"
    with pytest.raises(InputError, match="expired"):
        access.read_login(store, access.sign_in(store, "ada", "another password", minutes=0))
    role_of(store, PASSWORD, "typed into the wrong field", "203.0.113.5")
    rows, attempts = (store.rows(sa.select(table)) for table in (account_events, login_attempts))
    assert [row.kind for row in rows] == ["set"] * 3  # nothing is written over
    assert all(row.password_hash.startswith("$argon2id$") for row in rows)
    assert not [each for each in (PASSWORD, "203.0.113.5") if each in str(rows) + str(attempts)]


def test_what_no_account_can_be_and_a_disabled_one_lets_nobody_in(store):
    for name, password, role, sentence in (
        ("a b", PASSWORD, "expert", "an account's name is"),
        ("humans", PASSWORD, "expert", "an account's name is"),
        ("ada", "short", "expert", "a password has 10 to 200 characters"),
        ("ada", "x" * 201, "expert", "a password has 10 to 200 characters"),
        ("ada", PASSWORD, "root", "there is no role 'root'"),
    ):
        refused(sentence, access.set_account, store, name, password, role)
    assert access.accounts(store) == {}
    access.set_account(store, "ada", PASSWORD, "expert")
    token = access.sign_in(store, "ada", PASSWORD, minutes=5)
    assert access.read_login(store, token).role == "expert"
    access.disable_account(store, "ada")
    assert role_of(store, "ada", PASSWORD) is None
    refused("log in again", access.read_login, store, token)
    refused("no account 'ada'", access.disable_account, store, "ada")
    access.set_account(store, "ada", PASSWORD, "expert")
    assert role_of(store, "ada", PASSWORD) == "expert"
    refused("log in again", access.read_login, store, token)


def test_an_unknown_name_takes_as_long(store, monkeypatch):
    checked = []

    class Counting(PasswordHasher):
        def verify(self, hash, password):
            checked.append(extract_parameters(hash))
            return super().verify(hash, password)

    hasher = Counting(time_cost=2, memory_cost=16, parallelism=1)
    monkeypatch.setattr(access, "_hasher", lambda: hasher)
    access.set_account(store, "ada", PASSWORD, "expert")
    role_of(store, "ada", "wrong password")
    known = list(checked)
    role_of(store, "eve", "wrong password")
    assert len(known) == 1
    assert checked == known * 2  # the same work, whoever asks


WRONG = "wrong password"
HOME, OFFICE, FOREIGN = "203.0.113.5", "198.51.100.7", "192.0.2.66"


class Clock:
    now = datetime(2026, 3, 1, 9, tzinfo=UTC)

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(access, "_now", lambda: clock.now)
    return clock


@pytest.fixture
def guarded(make_study, clock) -> Store:
    store = make_study().store
    access.set_account(store, "lea", PASSWORD, "lead")
    return store


def tries(store: Store, name: str, address: str, password: str = WRONG, browser: str = "") -> str:
    """What came of one attempt."""
    try:
        return role_of(store, name, password, address, browser) or "wrong"
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("name", ["lea", "nobody"])
def test_each_wrong_password_doubles_the_wait(guarded, clock, name):
    for _ in range(access.SENDER_LIMIT.n_free):
        assert tries(guarded, name, FOREIGN) == "wrong"
    for wait in (1, 2, 4, 8, 16):
        assert f"try again in {wait} s" in tries(guarded, name, FOREIGN)
        clock.wait(wait - 0.01)
        assert "try again in 1 s" in tries(guarded, name, FOREIGN)  # asking too early adds nothing
        clock.wait(0.01)
        assert tries(guarded, name, FOREIGN) == "wrong"
    for wait in (32, 64, 128, 256, 512):
        clock.wait(wait)
        tries(guarded, name, FOREIGN)
    assert "try again in 10 minutes" in tries(guarded, name, FOREIGN)  # and never longer
    clock.wait(600)
    assert tries(guarded, name, FOREIGN) == "wrong"
    assert "try again in 10 minutes" in tries(guarded, name, FOREIGN)


@pytest.mark.journey
def test_many_addresses_at_one_account_are_slowed_and_its_owner_is_not(guarded, clock):
    for _ in range(3):  # a right password ends the count of wrong ones
        for _ in range(access.SENDER_LIMIT.n_free - 1):
            assert tries(guarded, "lea", HOME) == "wrong"
        clock.wait(1)
        assert tries(guarded, "lea", HOME, PASSWORD) == "lead"
    for number in range(60):
        assert tries(guarded, "lea", f"10.0.{number}.1") == "wrong"
    assert "too many" in tries(guarded, "lea", "10.0.7.1")
    assert tries(guarded, "lea", OFFICE, PASSWORD) == "lead"  # a first try is looked at
    assert tries(guarded, "lea", HOME) == "wrong"  # a slip, from where she always comes
    assert tries(guarded, "lea", HOME, PASSWORD) == "lead"


@pytest.mark.journey
def test_one_address_at_many_accounts_is_slowed(guarded, clock):
    free = access.ADDRESS_LIMIT.n_free
    found = [tries(guarded, f"name{number}", FOREIGN) for number in range(free + 20)]
    assert found.count("wrong") == free
    clock.wait(61)
    assert tries(guarded, "lea", FOREIGN, PASSWORD) == "lead"
    # Addresses of one IPv6 network are one.
    found = {tries(guarded, "lea", f"2001:db8::{number:x}") for number in range(30)}
    assert any("too many" in each for each in found)
    assert tries(guarded, "lea", "2001:db8:0:1::1", PASSWORD) == "lead"


def test_what_counts_no_more_is_forgotten(guarded, clock):
    for number in range(40):
        tries(guarded, f"name{number}", f"10.0.{number}.1")
    tries(guarded, "lea", HOME, PASSWORD)

    def kept() -> list[int]:
        return guarded.values(sa.select(login_attempts.c.admitted))

    assert len(kept()) == 41
    clock.wait(3601)
    tries(guarded, "lea", OFFICE, PASSWORD)
    assert kept() == [1, 1]  # of logins, where their owner comes from
    clock.wait(31 * 24 * 3600)
    tries(guarded, "lea", OFFICE, PASSWORD)
    assert kept() == [1]


@pytest.mark.slow
def test_the_owners_browser_is_let_in_whatever_strangers_do_at_its_address(guarded, clock):
    """As behind a proxy that nobody named: all come from one address."""
    assert tries(guarded, "lea", HOME, PASSWORD, "hers") == "lead"
    clock.wait(3600)
    for _ in range(40):  # at her name, and at names that there are not
        tries(guarded, "lea", HOME, browser="theirs")
        for number in range(3):
            tries(guarded, f"name{number}", HOME, browser=f"theirs {number}")
        assert tries(guarded, "lea", HOME, PASSWORD, "hers") == "lead"
        clock.wait(60)
    tries(guarded, "lea", HOME, browser="theirs")
    assert "too many" in tries(guarded, "lea", HOME, browser="theirs")
    assert tries(guarded, "lea", HOME, PASSWORD, "hers") == "lead"
    assert tries(guarded, "lea", OFFICE, PASSWORD, "hers") == "lead"  # and wherever she takes it


def test_what_is_typed_in_a_known_browser_is_slowed_as_well(guarded, clock):
    assert tries(guarded, "lea", HOME, PASSWORD, "hers") == "lead"
    clock.wait(1)
    found = [tries(guarded, "lea", f"10.0.0.{n}", browser="hers") for n in range(10)]
    assert found[: access.SENDER_LIMIT.n_free] == ["wrong"] * access.SENDER_LIMIT.n_free
    assert all("too many" in each for each in found[access.SENDER_LIMIT.n_free :])
    # It is known at its own account alone.
    access.set_account(guarded, "ben", PASSWORD, "lead")
    assert tries(guarded, "ben", FOREIGN, PASSWORD, "bens") == "lead"
    clock.wait(1)
    guesses = [tries(guarded, "lea", FOREIGN, browser="bens") for _ in range(10)]
    assert guesses.count("wrong") == access.SENDER_LIMIT.n_free


@pytest.mark.slow
def test_no_stranger_makes_the_wait_longer(guarded, clock):
    """The owner, somewhere new, mistypes once while a crowd guesses at her name: she waits for as
    long as she is told, however many guess meanwhile.
    """
    for number in range(60):
        tries(guarded, "lea", f"10.0.{number}.1")
    assert tries(guarded, "lea", OFFICE) == "wrong"
    for second in range(60):
        assert f"try again in {60 - second} s" in tries(guarded, "lea", OFFICE, PASSWORD)
        tries(guarded, "lea", f"10.1.{second}.1")
        clock.wait(1)
    assert tries(guarded, "lea", OFFICE, PASSWORD) == "lead"


def test_a_link_works_once_and_its_login_until_it_is_over(store, monkeypatch):
    link = access.new_link_token(store)
    login = access.open_link(store, link)
    for _ in range(2):
        assert access.visitor(store, login) == access.Visitor("lead", "lead", has_account=False)
    refused("used already", access.open_link, store, link)
    assert decisions_table(store).empty  # the note that a link was used is no decision
    monkeypatch.setattr(access, "LOGIN_MINUTES", 0)
    refused("", access.visitor, store, access.open_link(store, access.new_link_token(store)))
    monkeypatch.setattr(access, "LINK_MINUTES", 0)
    refused("expired", access.open_link, store, access.new_link_token(store))


def test_what_is_no_link_or_no_login_opens_nothing(store, make_study):
    login, elsewhere = access.open_link(store, access.new_link_token(store)), make_study().store
    about = {"nonce": "x", "name": "lead", "version": 1}
    for purpose in ("invite", "lead", "", "login"):
        token = access.make_token(store, purpose, about, 60)
        for opens in (access.open_link, access.visitor):
            refused("", opens, store, token)
    refused("not valid", access.open_link, store, login)
    theirs = access.open_link(elsewhere, access.new_link_token(elsewhere))
    for token in (access.new_link_token(store), login[:-2], f"{login}x", "", theirs):
        refused("log in again", access.visitor, store, token)


def test_who_logged_out_is_out_wherever_the_login_is_kept(store):
    access.set_account(store, "chair", PASSWORD, "lead")
    other = access.sign_in(store, "chair", PASSWORD)
    for login in (
        access.open_link(store, access.new_link_token(store)),
        access.sign_in(store, "chair", PASSWORD),
    ):
        assert access.visitor(store, login).role == "lead"
        for _ in range(2):  # the same again changes nothing
            access.log_out(store, login)
            refused("log in again", access.visitor, store, login)
        assert access.visitor(store, other).name == "chair"
    refused("this login has ended", access.read_login, store, login)
    access.log_out(store, "forged")
    access.log_out(store, "")


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


def word(email: str = "", **claims: Any) -> dict[str, Any]:
    """The claims of a sound token, each time another."""
    usual = {"iss": "https://id.example.org", "aud": "evenhand", "exp": time.time() + 60}
    usual |= {"sub": f"of {email}", "email": email, "email_verified": True}
    return usual | {"nonce": f"nonce-{secrets.token_hex(8)}"} | claims


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
        refused("does not know you", access.sign_on, study, word(email, sub=sub), 60)
        assert not access.accounts(study.store)
        return
    login = access.sign_on(study, word(email, sub=sub), 60)
    found = access.visitor(study.store, login)
    assert found.role == role
    assert found.name.startswith("sso-") and len(found.name) == 16
    if role == "expert":
        assert access.admit(study, {}, login).rater_id == found.name


def test_an_address_that_is_not_verified_is_anybodys(study):
    for verified in (False, None, "true", 1):
        for email in ("ada@example.org", "eve@example.org"):  # nobody learns who is listed
            refused("not verified", access.sign_on, study, word(email, email_verified=verified), 60)
        listed = word("", sub="00u1", email_verified=verified)
        assert access.visitor(study.store, access.sign_on(study, listed, 60)).role == "lead"
    said_nothing = word("ada@example.org")
    del said_nothing["email_verified"]
    refused("not verified", access.sign_on, study, said_nothing, 60)


def test_a_word_that_is_not_for_this_study_or_over_is_none(study):
    for claims in (
        {"aud": "another-app", "azp": "evenhand"}, {"aud": ["another-app"]}, {"exp": 1_000_000_000},
        {"exp": None}, {"nonce": ""}, {"nonce": None}, {"sub": ""}, {"iss": None},
    ):  # fmt: skip
        assert access.sign_on(study, word("ada@example.org") | claims, 60) is None, claims
    assert access.sign_on(study, word("ada@example.org", aud=["other", "evenhand"]), 60) is not None


def test_a_word_counts_once_and_its_login_ends_for_good(study, make_study):
    said = word("ada@example.org")
    assert access.sign_on(make_study(), said, 60) is None  # of a study without a provider
    login = access.sign_on(study, said, 60)
    assert access.sign_on(study, said, 60) is None
    name = access.visitor(study.store, login).name
    # A person keeps their code, of one provider, and no password opens it.
    again = access.sign_on(study, word("ada@example.org"), 60)
    elsewhere = access.sign_on(study, word("ada@example.org", iss="https://other.example.org"), 60)
    names = [access.visitor(study.store, each).name for each in (again, elsewhere)]
    assert names[0] == name != names[1]
    assert list(access.accounts(study.store)) == sorted(names)
    assert role_of(study.store, name, "") is None
    refused("link or a login", access.admit, study, {"rater": name})
    access.log_out(study.store, login)
    assert access.sign_on(study, said, 60) is None
    other = access.sign_on(study, word("ada@example.org"), 60)
    access.disable_account(study.store, name)
    for each in (login, other):
        refused("log in again", access.visitor, study.store, each)
    refused("account in this study was ended", access.sign_on, study, word("ada@example.org"), 60)


def test_another_list_gives_another_role_and_ends_the_login_before(study):
    before = access.sign_on(study, word("ada@example.org"), 60)
    change_config(study.folder, {"oidc": SET | {"leads": []}})
    with open_study(study.folder) as changed:
        login = access.sign_on(changed, word("ada@example.org"), 60)
        assert access.visitor(changed.store, login).role == "expert"
    refused("log in again", access.visitor, study.store, before)


def test_what_is_missing_is_named(monkeypatch):
    settings = OidcSettings.model_validate(SET)
    monkeypatch.setenv("EVENHAND_TEST_SECRET", "s3cret")
    assert access.client_secret(settings) == "s3cret"
    monkeypatch.delenv("EVENHAND_TEST_SECRET")
    refused("EVENHAND_TEST_SECRET, which is not set", access.client_secret, settings)
    monkeypatch.setitem(sys.modules, "authlib", None)  # as where it is not installed
    refused(r"evenhand\[oidc\]", access.client_secret, settings)


@pytest.mark.journey
@pytest.mark.parametrize("role", ["lead", "expert"])
def test_who_came_by_a_link_takes_nobodys_account_along(tmp_path, role):
    """Not even that of somebody who is called as they are."""
    first, second = two_studies(tmp_path)
    with open_study(first) as study, open_study(second) as made:
        access.set_account(study.store, "lead", PASSWORD, role)
        link = access.new_link_token(study.store)
        by_link = access.visitor(study.store, access.open_link(study.store, link))
        assert not access.copy_access(study, made, by_link)
        assert not access.copy_access(study, made, access.Visitor("nobody", "lead"))
        assert set(access.accounts(made.store)) == {"ada"}
        by_account = access.visitor(study.store, access.sign_in(study.store, "lead", PASSWORD))
        assert access.copy_access(study, made, by_account) == (role == "lead")
        assert ("lead" in access.accounts(made.store)) == (role == "lead")


CLOSED = '[session]\nentry = "invite"'
PROLIFIC = {"PROLIFIC_PID": "5f1e" * 6, "STUDY_ID": "5f1f" * 6, "SESSION_ID": "5f20" * 6}

FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "bO-7")


def invite(study: Study, rater: str, hours: float = 1) -> dict[str, str]:
    return {"invite": access.make_invites(study, [rater], hours)[0].token}


def test_one_person_however_the_code_is_typed(make_session):
    study = make_session()
    task_of(AnnotationDesk(study), "Bo-7")
    for typed in ("bo-7", "BO-7", "  Bo-7\t", "\u3000bo-7", FULL_WIDTH):
        came = access.admit(study, {"rater": typed})
        assert (came.rater_id, came.query, came.is_new) == ("Bo-7", {"rater": "Bo-7"}, False)
    task_of(AnnotationDesk(study), "bo-7")  # two annotators from before this was so
    for typed in ("Bo-7", "bo-7"):
        assert access.admit(study, {"rater": typed}).rater_id == typed
    with pytest.raises(InputError, match="more than one spelling"):
        access.admit(study, {"rater": "BO-7"})  # neither: never a guess whose labels they are
    invite(study, "ann")
    refused("a link or a login of its own", access.admit, study, {"rater": "ANN"})
    with_labels(study, {"Cy": "1"})  # from elsewhere
    known = access.admit(study, {"rater": "cy"})
    assert (known.rater_id, known.is_new) == ("Cy", False)


def test_an_open_study_takes_any_code_which_is_new_until_somebody_begins_under_it(make_session):
    study = make_session()
    assert (access.admit(study, {}), access.admit(study, {"rater": " "})) == (None, None)
    anna = access.Admission("anna", "open", {"rater": "anna"})
    assert access.admit(study, {"rater": " anna "}) == anna
    code = access.admit(study, {"rater": "\ufdfa" * 100_000}).rater_id  # each grows to 18 letters
    assert len(code) < 5_000  # cut before it is looked at
    refused("letters, digits", AnnotationDesk(study).register, code)

    def kinds() -> list[str]:
        with study.store.read() as connection:
            return [event.kind for event in events_of(connection, "bO-7")]

    for _ in range(2):  # asking changes nothing
        assert access.admit(study, {"rater": FULL_WIDTH}).is_new
    assert kinds() == []
    for _ in range(2):
        access.record_entry(study, "bO-7")
    assert not access.admit(study, {"rater": "BO-7"}).is_new
    assert kinds() == ["entered"]


@pytest.mark.parametrize("entry", ["invite", "account"])
def test_a_closed_study_says_the_same_of_every_code(make_session, entry):
    study = make_session(f'[session]\nentry = "{entry}"\n')
    task_of(AnnotationDesk(study), "known")
    for code in ("known", "KNOWN", "nobody"):
        refused("a code alone does not open this study", access.admit, study, {"rater": code})


def test_an_invite_lets_in_the_rater_it_is_for_and_nobody_else(make_session):
    study = make_session(CLOSED)
    address = invite(study, "anna")
    assert access.admit(study, address) == access.Admission("anna", "invite", address)
    # Another rater's code beside the token changes nothing; a code alone opens nothing.
    assert access.admit(study, address | {"rater": "bo"}).rater_id == "anna"
    refused("a code alone does not open this study", access.admit, study, {"rater": "anna"})


def test_forged_expired_revoked_and_foreign_links_are_refused(make_session):
    study, other = (make_session(CLOSED) for _ in range(2))
    token, foreign = (invite(each, "anna")["invite"] for each in (study, other))
    passed = access.make_token(study.store, "pass", {"rater": "anna"}, 5)
    for wrong in (token[:-2] + "xx", token.partition(".")[0], foreign, passed):
        for query in ({"invite": wrong}, {"pass": wrong[:-1]}):
            refused("this link is not valid", access.admit, study, query)
    refused("this link has expired", access.admit, study, invite(study, "anna", hours=1e-9))
    assert [access.revoke_invites(study, "anna") for _ in range(2)] == [2, 0]
    refused("this link was revoked", access.admit, study, {"invite": token})
    assert access.admit(study, invite(study, "anna")).rater_id == "anna"  # a new one
    came = access.admit(study, invite(study, "") | PROLIFIC)
    assert access.admit(study, came.query) == came
    access.revoke_invites(study, "")
    refused("this link was revoked", access.admit, study, came.query)


def test_a_code_with_a_link_or_a_login_opens_nothing_by_itself(make_session):
    study = make_session()
    invite(study, "anna")
    access.set_account(study.store, "bo", PASSWORD, "expert")
    participant = access.admit(study, invite(study, "") | PROLIFIC).rater_id
    for ended in (False, True):  # whose end opens nothing: somebody's answers lie behind it
        if ended:
            access.revoke_invites(study, "anna")
            access.disable_account(study.store, "bo")
        for code in ("anna", "bo", participant):
            refused("a link or a login of its own", access.admit, study, {"rater": code})


def test_an_expert_comes_in_by_login_while_it_lasts(make_session):
    study = make_session('[session]\nentry = "account"')
    access.set_account(study.store, "bo", PASSWORD, "expert")
    access.set_account(study.store, "cy", PASSWORD, "lead")
    login = access.sign_in(study.store, "bo", PASSWORD)
    assert access.admit(study, {}, login) == access.Admission("bo", "account", {})
    assert access.admit(study, {"login": login}) is None  # no address lets an account in
    refused("does not label", access.admit, study, {}, access.sign_in(study.store, "cy", PASSWORD))
    refused("takes no links", access.admit, study, invite(study, "anna"))
    refused("a code alone", access.admit, study, {"rater": "bo"})
    access.disable_account(study.store, "bo")
    refused("log in again", access.admit, study, {}, login)


def test_a_ticket_shows_one_raters_panel_in_one_browser_while_they_are_let_in(make_session):
    study, closed = make_session(), make_session(CLOSED)
    came = access.admit(study, {"rater": "ann"})
    ticket = access.make_ticket(study, came, "", "hers")
    assert access.read_ticket(study, ticket, "hers") == came
    refused("link is not valid", access.read_ticket, study, ticket, "another's")
    refused("link is not valid", access.read_ticket, closed, ticket, "hers")
    ticket = access.make_ticket(closed, access.admit(closed, invite(closed, "ben")), "", "his")
    assert access.read_ticket(closed, ticket, "his").rater_id == "ben"
    access.revoke_invites(closed, "ben")
    refused("this link was revoked", access.read_ticket, closed, ticket, "his")


def test_who_cannot_be_invited_or_for_so_long(make_session):
    study = make_session()
    access.set_account(study.store, "bo", PASSWORD, "expert")
    too_long = "more than 0 and at most 2160 hours"
    for rater, hours, sentence in (
        ("a b", 1, "'a b' is no annotator code"),
        ("humans", 1, "stands for a group"),
        ("bo", 1, "has an account"),
        *(("ben", hours, too_long) for hours in (0, -1, float("nan"), float("inf"), 1e300)),
    ):
        refused(sentence, access.make_invites, study, ["anna", rater], hours=hours)
    assert access.admit(study, {"rater": "anna"}).way == "open"  # none was made


def test_a_participant_is_always_the_same_rater_under_another_name(make_session):
    study = make_session(f"{CLOSED}\nlogin_hours = 0.05\n")
    link = invite(study, "")
    first = access.admit(study, link | PROLIFIC)
    assert first.way == "prolific"
    assert first.rater_id.startswith("r-")
    assert not any(value in str(first) for value in PROLIFIC.values())
    label_all(AnnotationDesk(study), first.rater_id, most=1)
    # A second submission goes on where the first stopped.
    for query in (first.query, link | PROLIFIC, link | PROLIFIC | {"SESSION_ID": "5f21" * 6}):
        assert access.admit(study, query).rater_id == first.rater_id
    other = PROLIFIC | {"PROLIFIC_PID": "5f2e" * 6, "SESSION_ID": "5f30" * 6}
    assert access.admit(study, link | other).rater_id != first.rater_id
    assert participants_table(study)["rater_id"].tolist()[:2] == [first.rater_id] * 2
    assert len(participants_table(study)) == 3
    assert AnnotationDesk(study).progress(first.rater_id)[0] == 1
    # Who returned a submission may come again, who was rejected not.
    sessions, again = Sessions(study), link | PROLIFIC | {"SESSION_ID": "5f22" * 6}
    sessions.release(first.rater_id, "returned")
    for earlier in (PROLIFIC, PROLIFIC | {"SESSION_ID": "5f21" * 6}):
        assert access.admit(study, link | earlier).rater_id == first.rater_id
    assert sessions.next_step(first.rater_id).reason == "returned"  # it stays returned
    assert access.admit(study, again).rater_id == first.rater_id
    assert sessions.next_step(first.rater_id).name == "labelling"
    sessions.release(first.rater_id, "rejected")
    with pytest.raises(InputError, match="your submission to this study was closed"):
        access.admit(study, link | PROLIFIC | {"SESSION_ID": "5f23" * 6})


def test_a_participants_ids_alone_open_nothing(make_session):
    study = make_session(CLOSED)
    link = invite(study, "")
    access.admit(study, link | PROLIFIC)
    wrong = ("", "<script>", "5f1e", "5F1E" * 6, "5f1e" * 7, "5f1g" * 6, "5f1e" * 6 + "\n")
    for name, value in product(PROLIFIC, (*wrong, "٣" * 24)):
        refused("works from Prolific only", access.admit, study, link | {**PROLIFIC, name: value})
    assert len(participants_table(study)) == 1
    refused("not valid", access.admit, study, {"invite": "forged"} | PROLIFIC)
    # An invite for one rater stays that rater's, whatever the address says besides.
    assert access.admit(study, invite(study, "anna") | PROLIFIC).rater_id == "anna"


def test_a_link_is_short_and_one_of_before_still_works(make_session):
    study = make_session(CLOSED)
    assert access.invites_table(study).empty
    assert len(invite(study, "anna", 168)["invite"]) <= 28
    access.revoke_invites(study, "anna")
    access.make_invites(study, ["anna", "ben"], 1)
    access.make_invites(study, ["cy"], 1e-9)
    states = access.invites_table(study).groupby("rater_id")["state"].apply(list).to_dict()
    assert states == {"anna": ["open", "revoked"], "ben": ["open"], "cy": ["expired"]}
    about = {"invite": "ab" * 8, "rater": "bo"}
    older = [access.make_token(study.store, "invite", about, minutes) for minutes in (60, 0)]
    refused("link was revoked", access.admit, study, {"invite": older[0]})  # the log has none such
    with study.store.write() as connection:
        append(connection, invite_events, {"invite_id": "ab" * 8, "rater_id": "bo", "kind": "made"})
    assert access.admit(study, {"invite": older[0]}).rater_id == "bo"
    wrong = ((older[1], "expired"), ("ab" * 8, "not valid"), ("\0" * 22 + ".1", "not valid"))
    for token, said in wrong:
        refused(said, access.admit, study, {"invite": token})
    assert access.invites_table(study).set_index("rater_id").loc["bo", "token"] == ""
    access.revoke_invites(study, "bo")
    refused("this link was revoked", access.admit, study, {"invite": older[0]})


FULL = "all places in this study are taken"


def address(number: int, submission: int = 0) -> dict[str, str]:
    """What Prolific adds to the link of a participant."""
    ids = {"PROLIFIC_PID": number, "STUDY_ID": 7, "SESSION_ID": 100 * number + submission}
    return {name: f"{value:024x}" for name, value in ids.items()}


def end_part(sessions: Sessions, rater: str, way: str) -> None:
    """End somebody's part in this way."""
    if way in ("no_consent", "screened_out", "stopped"):
        sessions.decide_consent(rater, agreed=way != "no_consent")
        for attempt in range(2 * (way == "screened_out")):
            sessions.answer_comprehension(rater, ["that"], attempt)
        if way == "stopped":
            task_of(AnnotationDesk(sessions.study), rater)
            exclude(sessions.study.store, rater, "too fast")
    else:
        sessions.release(rater, way)


ENDS = ("no_consent", "screened_out", "stopped", "returned", "timed_out", "rejected")


@pytest.mark.parametrize("end", ENDS)
def test_a_place_is_free_again_only_as_the_study_says(make_session, end):
    for free_again, freed in (([end], True), ([other for other in ENDS if other != end], False)):
        study = make_session(f"{ASKS}{CODES}places = 1\nfree_again = {free_again}\n")
        rater, sessions = access.enter_participant(study, address(1)), Sessions(study)
        refused(FULL, access.enter_participant, study, address(2))
        assert access.enter_participant(study, address(1, submission=2)) == rater
        end_part(sessions, rater, end)
        if freed:
            access.enter_participant(study, address(2))
            if end in ("returned", "timed_out", "rejected"):  # nor does who left it return
                refused("", access.enter_participant, study, address(1, submission=1))
        refused(FULL, access.enter_participant, study, address(3))


@pytest.mark.slow
def test_of_newcomers_at_the_same_moment_one_gets_the_last_place(make_session, any_database):
    many = 8
    study = make_session(f"{CODES}places = 2\n", **any_database)
    access.enter_participant(study, address(1))
    at_once = threading.Barrier(many)

    def come(number: int) -> str:
        with open_study(study.folder) as own:  # a connection of one's own, as another process has
            at_once.wait()
            try:
                return access.enter_participant(own, address(number))
            except InputError as error:
                return "" if FULL in str(error) else "another fault"

    with ThreadPoolExecutor(many) as pool:
        found = list(pool.map(come, range(2, 2 + many)))
    assert (sum(bool(rater) for rater in found), len(participants_table(study))) == (1, 2)


PAGE = "https://rate.example.org"


@cache
def keys() -> list[RSAKey]:
    """Two of Prolific's, and a stranger's."""
    return [RSAKey.generate_key(2048, {"kid": kid}) for kid in ("first", "second", "first")]


class Signer:
    """A server of keys, as Prolific has one, and its signatures."""

    def __init__(self) -> None:
        self.keys = [keys()[0]]
        self.asked = 0
        signer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                signer.asked += 1
                said = {"keys": [key.as_dict(private=False) for key in signer.keys]}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(said).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks.json"

    def sign(self, number: int, key: RSAKey | None = None, **claims: object) -> str:
        own = {"aud": PAGE, "exp": int(time.time()) + 300, "prolific": address(number)}
        key = key or self.keys[-1]
        return jwt.encode({"alg": "RS256", "kid": key.kid}, own | claims, key)


@pytest.fixture
def signer(monkeypatch) -> Iterator[Signer]:
    monkeypatch.setattr(access, "_known_keys", {})
    made = Signer()
    monkeypatch.setattr(access, "SIGNING_KEYS", made.url)
    yield made
    made.server.shutdown()


@pytest.fixture
def signed(make_session, signer):
    return make_session(f'{CODES}places = 5\nsigned_for = "{PAGE}"\n')


def come_in(signed, token: str, claimed: int = 1) -> str:
    (invite,) = access.make_invites(signed, [""], hours=1)
    query = {"invite": invite.token, "prolific_token": token, **address(claimed)}
    return access.admit(signed, query).rater_id


def test_who_prolific_signed_for_is_let_in_and_a_new_key_not_asked_for_at_every_forged_token(
    signed, signer, monkeypatch
):
    rater = come_in(signed, signer.sign(1), claimed=2)  # the ids beside it count for nothing
    assert participants_table(signed)["participant_id"].tolist() == [address(1)["PROLIFIC_PID"]]
    assert (come_in(signed, signer.sign(1)), signer.asked) == (rater, 1)
    come_in(signed, signer.sign(1))
    signer.keys.append(keys()[1])
    with pytest.raises(Refused):
        come_in(signed, signer.sign(2))
    assert signer.asked == 1
    monkeypatch.setattr(access, "_FETCH_INTERVAL", 0.0)
    come_in(signed, signer.sign(2))
    assert signer.asked == 2


def test_what_is_signed_for_another_page_time_or_by_another_opens_nothing(signed, signer):
    now = int(time.time())
    for claims in (
        {"aud": "https://elsewhere.example.org"}, {"exp": 1}, {"aud": None}, {"exp": None},
        {"prolific": None}, {"prolific": {"PROLIFIC_PID": 7}},
        {"iat": now + 600}, {"nbf": now + 600}, {"exp": now - 600},
    ):  # fmt: skip
        with pytest.raises(Refused, match="Prolific"):
            come_in(signed, signer.sign(1, **claims))
    assert participants_table(signed).empty
    rater = come_in(signed, signer.sign(1, iat=now + 30, nbf=now + 30))  # clocks may differ
    assert come_in(signed, signer.sign(1, exp=now - 30)) == rater
    unsigned = jwt.encode({"alg": "HS256"}, {"aud": PAGE}, OctKey.generate_key(256))
    garbage = ("", "a.b.c", "....", "\u00e9.\u00e9.\u00e9", "eyJ9.e30.", "x" * 10_000)
    for token in (*garbage, signer.sign(1, keys()[2]), unsigned):
        with pytest.raises(Refused, match="not signed by Prolific"):
            come_in(signed, token)
    assert len(participants_table(signed)) == 1


def test_where_the_keys_cannot_be_had_nobody_is_taken_for_somebody(signed, signer):
    token = signer.sign(1)
    signer.server.shutdown()
    signer.server.server_close()
    with pytest.raises(Refused, match="cannot be asked at present"):
        come_in(signed, token)
