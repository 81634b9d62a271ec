"""Accounts: tokens, passwords, logins by link and by a provider, and who has to wait."""

import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Literal

import pytest
import sqlalchemy as sa
from argon2 import Parameters, PasswordHasher, extract_parameters

from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.access import accounts as access
from evenhand.study.access.accounts import (
    Visitor,
    accounts,
    client_secret,
    cookie_secret,
    disable_account,
    log_out,
    make_token,
    new_link_token,
    open_link,
    read_login,
    read_token,
    set_account,
    settle_beside,
    sign_in,
    sign_on,
    visitor,
)
from evenhand.study.access.admission import admit
from evenhand.study.desk.claims import decisions_table
from evenhand.study.settings.study_toml import OidcSettings, change_config
from evenhand.study.store.schema import account_events, login_attempts
from evenhand.study.store.store import Store
from evenhand.study.workspace import study_secret
from tests.annotate_app.together import two_studies
from tests.study.access.conftest import PASSWORD, role_of


def test_secrets_are_made_once_and_are_every_studys_own(make_study):
    one, other = make_study(), make_study()
    assert len(study_secret(one.store)) == 32
    reopened = Store.open("study.db", one.folder)
    for secret in (study_secret, cookie_secret):
        assert secret(reopened) == secret(one.store) != secret(other.store)
    reopened.close()


def test_forged_foreign_and_expired_tokens_are_refused(make_study):
    store, elsewhere = make_study().store, make_study().store
    token = make_token(store, "invite", {"rater": "r-1"}, minutes=1)
    assert read_token(store, "invite", token) == {"rater": "r-1"}
    assert token.replace("-", "").replace("_", "").replace(".", "").isalnum()  # fit for an address
    body, _, signature = token.partition(".")
    foreign = make_token(elsewhere, "invite", {"rater": "r-1"}, minutes=1)
    login = make_token(store, "login", {"rater": "r-1"}, minutes=1)
    changed = body[:-1] + ("A" if body[-1] != "A" else "B") + "." + signature
    for each in ("", "nonsense", token[:-1], changed, foreign, login):
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
        log_out(store, here)
        with pytest.raises(InputError, match="this login has ended"):
            read_login(store, here)
    assert read_login(store, there).name == "ada"
    log_out(store, "forged")
    log_out(store, "")


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


# Wrong passwords: who has to wait, for how long, and who never has to


WRONG = "wrong password"
HOME, OFFICE, FOREIGN = "203.0.113.5", "198.51.100.7", "192.0.2.66"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 9, tzinfo=UTC)

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
    set_account(store, "lea", PASSWORD, "lead")
    return store


def tries(store: Store, name: str, address: str, password: str = WRONG, browser: str = "") -> str:
    """What came of one attempt."""
    try:
        return role_of(store, name, password, address, browser) or "wrong"
    except InputError as error:
        return str(error)


def guess(store: Store, clock: Clock, name: str, address: str, seconds: float) -> int:
    """Guess without a pause for so long; how many guesses were looked at."""
    looked_at, end = 0, clock.now + timedelta(seconds=seconds)
    while clock.now < end:
        looked_at += tries(store, name, address) == "wrong"
        clock.wait(0.5)
    return looked_at


@pytest.mark.parametrize("name", ["lea", "nobody"])
def test_each_wrong_password_doubles_the_wait(guarded, clock, name):
    for _ in range(access.PAIR.free):
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


@pytest.mark.slow
def test_the_lead_comes_in_from_elsewhere_while_someone_guesses(guarded, clock):
    before = sign_in(guarded, "lea", PASSWORD, HOME)
    clock.wait(60)
    assert guess(guarded, clock, "lea", FOREIGN, 600) < 15
    assert "too many" in tries(guarded, "lea", FOREIGN, PASSWORD)
    assert tries(guarded, "lea", HOME, PASSWORD) == "lead"
    assert tries(guarded, "lea", OFFICE, PASSWORD) == "lead"  # an address that she never came from
    assert read_login(guarded, before).name == "lea"


def test_many_addresses_at_one_account_are_slowed_and_its_owner_is_not(guarded, clock):
    tries(guarded, "lea", HOME, PASSWORD)
    for number in range(60):
        assert tries(guarded, "lea", f"10.0.{number}.1") == "wrong"
    assert "too many" in tries(guarded, "lea", "10.0.7.1")
    assert tries(guarded, "lea", OFFICE, PASSWORD) == "lead"  # a first try is looked at
    assert tries(guarded, "lea", HOME) == "wrong"  # a slip, from where she always comes
    assert tries(guarded, "lea", HOME, PASSWORD) == "lead"


def test_one_address_at_many_accounts_is_slowed(guarded, clock):
    looked_at = sum(tries(guarded, f"name{number}", FOREIGN) == "wrong" for number in range(200))
    assert looked_at == access.ADDRESS.free
    clock.wait(61)
    assert tries(guarded, "lea", FOREIGN, PASSWORD) == "lead"
    # Addresses of one IPv6 network are one.
    found = {tries(guarded, "lea", f"2001:db8::{number:x}") for number in range(30)}
    assert any("too many" in each for each in found)
    assert tries(guarded, "lea", "2001:db8:0:1::1", PASSWORD) == "lead"


def test_a_right_password_ends_the_count_of_wrong_ones(guarded, clock):
    for _ in range(3):
        for _ in range(access.PAIR.free - 1):
            assert tries(guarded, "lea", HOME) == "wrong"
        clock.wait(1)
        assert tries(guarded, "lea", HOME, PASSWORD) == "lead"


def test_what_counts_no_more_is_forgotten(guarded, clock):
    for number in range(40):
        tries(guarded, f"name{number}", f"10.0.{number}.1")
    tries(guarded, "lea", HOME, PASSWORD)

    def kept() -> list[int]:
        with guarded.read() as connection:
            return list(connection.execute(sa.select(login_attempts.c.admitted)).scalars())

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
    assert found[: access.PAIR.free] == ["wrong"] * access.PAIR.free
    assert all("too many" in each for each in found[access.PAIR.free :])
    # It is known at its own account alone.
    set_account(guarded, "ben", PASSWORD, "lead")
    assert tries(guarded, "ben", FOREIGN, PASSWORD, "bens") == "lead"
    clock.wait(1)
    guesses = [tries(guarded, "lea", FOREIGN, browser="bens") for _ in range(10)]
    assert guesses.count("wrong") == access.PAIR.free


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


# Who gets to the lead's pages, and who does not


def test_a_link_works_once_and_its_login_until_it_is_over(store):
    link = new_link_token(store)
    login = open_link(store, link)
    for _ in range(2):
        assert visitor(store, login) == Visitor("lead", "lead", has_account=False)
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
    theirs = open_link(elsewhere, new_link_token(elsewhere))
    for token in (new_link_token(store), login[:-2], f"{login}x", "", theirs):
        with pytest.raises(InputError, match="log in again"):
            visitor(store, token)


def test_link_and_login_expire(store, monkeypatch):
    monkeypatch.setattr(access, "LINK_MINUTES", 0)
    with pytest.raises(InputError, match="expired"):
        open_link(store, new_link_token(store))
    monkeypatch.setattr(access, "LINK_MINUTES", 60)
    monkeypatch.setattr(access, "LOGIN_MINUTES", 0)
    login = open_link(store, new_link_token(store))
    with pytest.raises(InputError):
        visitor(store, login)


def test_who_logged_out_is_out_wherever_the_login_is_kept(store):
    set_account(store, "chair", PASSWORD, "lead")
    other = sign_in(store, "chair", PASSWORD)
    for login in (open_link(store, new_link_token(store)), sign_in(store, "chair", PASSWORD)):
        assert visitor(store, login).role == "lead"
        log_out(store, login)
        with pytest.raises(InputError, match="log in again"):
            visitor(store, login)
        assert visitor(store, other).name == "chair"


# Whom a provider's word lets in, as what, and how often


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
    [{"aud": "another-app", "azp": "evenhand"}, {"aud": ["another-app"]}, {"exp": 1_000_000_000},
     {"exp": None}, {"nonce": ""}, {"nonce": None}, {"sub": ""}, {"iss": None}],
    ids=str,
)  # fmt: skip
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
        login = sign_on(changed, word("ada@example.org"), 60)
        assert visitor(changed.store, login).role == "expert"
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


# Whose account goes along into a study made beside another


@pytest.mark.parametrize("role", ["lead", "expert"])
def test_who_came_by_a_link_takes_nobodys_account_along(tmp_path, role):
    """Not even that of somebody who is called as they are."""
    first, second = two_studies(tmp_path)
    with open_study(first) as study, open_study(second) as made:
        set_account(study.store, "lead", PASSWORD, role)  # type: ignore[arg-type]
        by_link = visitor(study.store, open_link(study.store, new_link_token(study.store)))
        assert not settle_beside(study, made, by_link)
        assert not settle_beside(study, made, Visitor("nobody", "lead"))
        assert set(accounts(made.store)) == {"ada"}
        by_account = visitor(study.store, sign_in(study.store, "lead", PASSWORD))
        assert settle_beside(study, made, by_account) == (role == "lead")
        assert ("lead" in accounts(made.store)) == (role == "lead")
