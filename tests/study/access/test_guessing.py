"""Wrong passwords: who has to wait, for how long, and who never has to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.access import guessing
from evenhand.study.access.accounts import read_login, set_account, sign_in
from evenhand.study.store.schema import login_attempts
from evenhand.study.store.store import Store
from tests.study.access.conftest import PASSWORD, role_of

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
    monkeypatch.setattr(guessing, "_now", lambda: clock.now)
    return clock


@pytest.fixture
def store(make_study, clock) -> Store:
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
def test_each_wrong_password_doubles_the_wait(store, clock, name):
    for _ in range(guessing.PAIR.free):
        assert tries(store, name, FOREIGN) == "wrong"
    for wait in (1, 2, 4, 8, 16):
        assert f"try again in {wait} s" in tries(store, name, FOREIGN)
        clock.wait(wait - 0.01)
        assert "try again in 1 s" in tries(store, name, FOREIGN)  # asking too early adds nothing
        clock.wait(0.01)
        assert tries(store, name, FOREIGN) == "wrong"
    for wait in (32, 64, 128, 256, 512):
        clock.wait(wait)
        tries(store, name, FOREIGN)
    assert "try again in 10 minutes" in tries(store, name, FOREIGN)  # and never longer
    clock.wait(600)
    assert tries(store, name, FOREIGN) == "wrong"
    assert "try again in 10 minutes" in tries(store, name, FOREIGN)


@pytest.mark.slow
def test_the_lead_comes_in_from_elsewhere_while_someone_guesses(store, clock):
    before = sign_in(store, "lea", PASSWORD, 60, HOME)
    clock.wait(60)
    assert guess(store, clock, "lea", FOREIGN, 600) < 15
    assert "too many" in tries(store, "lea", FOREIGN, PASSWORD)
    assert tries(store, "lea", HOME, PASSWORD) == "lead"
    assert tries(store, "lea", OFFICE, PASSWORD) == "lead"  # an address that she never came from
    assert read_login(store, before).name == "lea"


def test_many_addresses_at_one_account_are_slowed_and_its_owner_is_not(store, clock):
    tries(store, "lea", HOME, PASSWORD)
    for number in range(60):
        assert tries(store, "lea", f"10.0.{number}.1") == "wrong"
    assert "too many" in tries(store, "lea", "10.0.7.1")
    assert tries(store, "lea", OFFICE, PASSWORD) == "lead"  # a first try is looked at
    assert tries(store, "lea", HOME) == "wrong"  # a slip, from where she always comes
    assert tries(store, "lea", HOME, PASSWORD) == "lead"


def test_one_address_at_many_accounts_is_slowed(store, clock):
    looked_at = sum(tries(store, f"name{number}", FOREIGN) == "wrong" for number in range(200))
    assert looked_at == guessing.ADDRESS.free
    clock.wait(61)
    assert tries(store, "lea", FOREIGN, PASSWORD) == "lead"


def test_addresses_of_one_ipv6_network_are_one(store, clock):
    found = {tries(store, "lea", f"2001:db8::{number:x}") for number in range(30)}
    assert any("too many" in each for each in found)
    assert tries(store, "lea", "2001:db8:0:1::1", PASSWORD) == "lead"


def test_a_right_password_ends_the_count_of_wrong_ones(store, clock):
    for _ in range(3):
        for _ in range(guessing.PAIR.free - 1):
            assert tries(store, "lea", HOME) == "wrong"
        clock.wait(1)
        assert tries(store, "lea", HOME, PASSWORD) == "lead"


def test_what_counts_no_more_is_forgotten(store, clock):
    for number in range(40):
        tries(store, f"name{number}", f"10.0.{number}.1")
    tries(store, "lea", HOME, PASSWORD)

    def kept() -> list[int]:
        with store.read() as connection:
            return list(connection.execute(sa.select(login_attempts.c.admitted)).scalars())

    assert len(kept()) == 41
    clock.wait(3601)
    tries(store, "lea", OFFICE, PASSWORD)
    assert kept() == [1, 1]  # of logins, where their owner comes from
    clock.wait(31 * 24 * 3600)
    tries(store, "lea", OFFICE, PASSWORD)
    assert kept() == [1]


@pytest.mark.slow
def test_the_owners_browser_is_let_in_whatever_strangers_do_at_its_address(store, clock):
    """As behind a proxy that nobody named: all come from one address."""
    assert tries(store, "lea", HOME, PASSWORD, "hers") == "lead"
    clock.wait(3600)
    for _ in range(40):  # at her name, and at names that there are not
        tries(store, "lea", HOME, browser="theirs")
        for number in range(3):
            tries(store, f"name{number}", HOME, browser=f"theirs {number}")
        assert tries(store, "lea", HOME, PASSWORD, "hers") == "lead"
        clock.wait(60)
    tries(store, "lea", HOME, browser="theirs")
    assert "too many" in tries(store, "lea", HOME, browser="theirs")
    assert tries(store, "lea", HOME, PASSWORD, "hers") == "lead"
    assert tries(store, "lea", OFFICE, PASSWORD, "hers") == "lead"  # and wherever she takes it


def test_what_is_typed_in_a_known_browser_is_slowed_as_well(store, clock):
    assert tries(store, "lea", HOME, PASSWORD, "hers") == "lead"
    clock.wait(1)
    found = [tries(store, "lea", f"10.0.0.{n}", browser="hers") for n in range(10)]
    assert found[: guessing.PAIR.free] == ["wrong"] * guessing.PAIR.free
    assert all("too many" in each for each in found[guessing.PAIR.free :])


def test_a_browser_is_known_at_its_own_account_alone(store, clock):
    set_account(store, "ben", PASSWORD, "lead")
    assert tries(store, "ben", FOREIGN, PASSWORD, "bens") == "lead"
    clock.wait(1)
    guesses = [tries(store, "lea", FOREIGN, browser="bens") for _ in range(10)]
    assert guesses.count("wrong") == guessing.PAIR.free


@pytest.mark.slow
def test_no_stranger_makes_the_wait_longer(store, clock):
    """The owner, somewhere new, mistypes once while a crowd guesses at her name: she waits for as
    long as she is told, however many guess meanwhile.
    """
    for number in range(60):
        tries(store, "lea", f"10.0.{number}.1")
    assert tries(store, "lea", OFFICE) == "wrong"
    for second in range(60):
        assert f"try again in {60 - second} s" in tries(store, "lea", OFFICE, PASSWORD)
        tries(store, "lea", f"10.1.{second}.1")
        clock.wait(1)
    assert tries(store, "lea", OFFICE, PASSWORD) == "lead"
