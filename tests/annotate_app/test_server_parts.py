"""Parts of the server by themselves: health, addresses, the log, the watch over the raters."""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator

import pytest

from evenhand.annotate_app.request_filter import LogLimit, visitor
from evenhand.annotate_app.routes import Health
from evenhand.annotate_app.sites import client_address, start_watch
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.workspace import StoreState
from harness.studies import with_labels

WELL, AWAY = StoreState(read=True, write=True), StoreState(read=False, write=False)
PROXY, INNER, CLIENT = "10.0.0.1", "10.0.0.2", "203.0.113.9"

# `/health` asks the store, but never more than once a second, and waits for nobody


def test_however_many_want_to_know_the_store_is_asked_once_a_while():
    asked = []

    def ask() -> StoreState:
        asked.append(threading.current_thread())
        time.sleep(0.02)
        return WELL if len(asked) > 1 else AWAY

    async def many() -> None:
        health = Health(lambda: asyncio.to_thread(ask), keep=0.2)
        assert await asyncio.gather(*(health.state() for _ in range(50))) == [AWAY] * 50
        assert await health.state() == AWAY
        assert len(asked) == 1
        await asyncio.sleep(0.2)
        assert await health.state() == WELL

    asyncio.run(many())
    assert len(asked) == 2
    assert threading.main_thread() not in asked  # everybody else's work goes on meanwhile


def test_no_answer_and_a_fault_in_asking_is_a_no_and_holds_up_nobody():
    def fails() -> StoreState:
        raise OSError("out of files")

    assert asyncio.run(Health(lambda: asyncio.to_thread(fails)).state()) == AWAY
    over = threading.Event()
    asked = []

    def ask() -> StoreState:
        asked.append(1)
        return WELL if over.wait(30) else AWAY

    async def twice() -> None:
        health = Health(lambda: asyncio.to_thread(ask), keep=0, patience=0.05)
        assert await health.state() == AWAY
        assert await health.state() == AWAY
        assert len(asked) == 1  # the first is still waited for
        over.set()
        health.patience = 30
        assert await health.state() == WELL

    asyncio.run(twice())


# Who is believed about where a visitor comes from


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "found"),
    [
        (CLIENT, [], [], CLIENT),
        (CLIENT, ["6.6.6.6"], [], CLIENT),  # nobody is believed
        (CLIENT, ["6.6.6.6"], [PROXY], CLIENT),  # nor is he who is no proxy
        (PROXY, [CLIENT], [PROXY], CLIENT),
        (PROXY, [f"6.6.6.6, {CLIENT}"], [PROXY], CLIENT),  # what the client wrote itself
        (PROXY, ["6.6.6.6", CLIENT], [PROXY], CLIENT),
        (PROXY, [f"6.6.6.6, {CLIENT}, {INNER}"], [PROXY, INNER], CLIENT),
        (PROXY, ["<script>"], [PROXY], PROXY),
        (PROXY, [""], [PROXY], PROXY),
        (PROXY, [INNER], [PROXY, INNER], INNER),
        ("127.0.0.1", ["2001:db8::1"], ["127.0.0.1"], "2001:db8::1"),
    ],
)
def test_the_last_that_a_trusted_proxy_says(peer, forwarded, trusted, found):
    assert client_address(peer, forwarded, trusted) == found


# What a visitor can make the app write


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += self.format(record).split("\n")


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, Kept]]:
    logger, kept = logging.Logger("bounded"), Kept()
    logger.addFilter(LogLimit())
    logger.addHandler(kept)
    yield logger, kept
    visitor.set("")


def test_each_visitor_has_room_for_some_lines_a_minute(log):
    logger, kept = log
    for address in ("203.0.113.1", "203.0.113.2"):
        visitor.set(address)
        for _ in range(500):
            logger.warning("of %s", address)
    visitor.set("")
    logger.warning("the app's own")
    assert kept.lines.count("of 203.0.113.1") == kept.lines.count("of 203.0.113.2") == 30
    assert sum("left out" in line for line in kept.lines) == 2
    assert kept.lines[-1] == "the app's own"


def test_nothing_logged_begins_a_line_of_its_own(log):
    logger, kept = log
    hostile = "x\nforged\r\n\x1b[2J\u2028forged"
    logger.warning("said: %s", hostile)
    try:
        raise ValueError(hostile * 9_000)
    except ValueError:
        logger.exception("raised: %s", hostile)
    logger.warning("%d", hostile)  # does not fit
    assert not any(line.startswith("forged") for line in kept.lines)
    assert all(line.isprintable() for line in kept.lines)
    assert sum(map(len, kept.lines)) < 20_000
    assert any(line.startswith("  | ") for line in kept.lines)


# The watch over the raters


@pytest.mark.slow
def test_a_rater_whom_a_rule_stops_gets_no_further_unit(make_study):
    folder = make_study(30)
    file = folder / "study.toml"
    file.write_text(file.read_text("utf-8") + "\n[quality]\nstop = ['fast']\n", "utf-8")
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        over = start_watch(study, every=0.2)
        try:
            for rater, seconds in (("ann", 30.0), ("ben", 25.0), ("hasty", 2.0)):
                with_labels(study, {rater: ("LRC" * 9)[:25]}, "shorter", seconds=seconds)
            for _ in range(300):
                if desk.ended("hasty"):
                    break
                time.sleep(0.2)
        finally:
            over.set()
        assert [desk.ended(rater) for rater in ("ann", "ben", "hasty")] == ["", "", "excluded"]
        assert desk.next_sheet("hasty") is None
        assert len(study.ratings()) == 75


def test_without_a_rule_that_stops_nobody_is_watched(make_study, monkeypatch):
    monkeypatch.setattr("threading.Thread", None)  # starting one would fail
    with open_study(make_study(2)) as study:
        start_watch(study)
