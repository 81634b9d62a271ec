"""Kills under load, raters who do anything, and axe on every state that is in pictures."""

import asyncio
import contextlib
import random

import pytest
import sqlalchemy as sa

from docs.screenshots import take_states
from evenhand.study import open_study
from evenhand.study.store.schema import labels
from harness.rater_fuzz import fuzz, fuzzed_study
from harness.sessions import GONE, Session

# Kills while many annotators work


ANNOTATORS = 12


async def work(port: int, rater: str, acknowledged: set[str]) -> None:
    """Label as fast as the server answers, until it is gone."""
    session = Session(port, rater)
    session.acknowledged = acknowledged
    with contextlib.suppress(*GONE):
        await session.open()
        while await session.answer():
            pass


async def one_round(served, acknowledged: set[str]) -> None:
    before = len(acknowledged)
    people = [
        asyncio.create_task(work(served.port, f"r{n}", acknowledged)) for n in range(ANNOTATORS)
    ]
    while len(acknowledged) < before + 2 * ANNOTATORS:
        await asyncio.sleep(0.01)
    await asyncio.sleep(random.random() * 0.3)
    served.kill()
    await asyncio.wait_for(asyncio.gather(*people), 60)


def killed_rounds(served, rounds: int) -> None:
    acknowledged: set[str] = set()
    served.enter(*(f"r{n}" for n in range(ANNOTATORS)))
    for _ in range(rounds):
        asyncio.run(asyncio.wait_for(one_round(served, acknowledged), 120))
        served.start()
    with open_study(served.folder) as study:
        with study.store.read() as connection:
            stored = list(connection.execute(sa.select(labels.c.submit_id)).scalars())
        ratings = study.ratings()
    assert len(acknowledged) >= rounds * 2 * ANNOTATORS
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored)) == len(ratings)
    # On disk when the kill came, but not yet acknowledged: one of each annotator's a round at most.
    assert len(stored) <= len(acknowledged) + rounds * ANNOTATORS


@pytest.mark.thorough
def test_no_acknowledged_label_is_lost_by_a_kill_under_load(serve):
    killed_rounds(serve(200), 2)


@pytest.mark.load
def test_no_acknowledged_label_is_lost_by_many_kills_under_load(serve):
    killed_rounds(serve(600), 20)


# Raters who do anything, after the tests with a loop of their own


@pytest.fixture(scope="module")
def breakable(tmp_path_factory):
    with fuzzed_study(tmp_path_factory.mktemp("fuzz")) as served:
        yield served


@pytest.mark.browser
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(2), id="2", marks=pytest.mark.thorough),
        pytest.param(range(100, 140), id="40", marks=pytest.mark.load),
    ],
)
def test_what_is_stored_was_on_a_screen_and_what_is_refused_was_told(browser, breakable, seeds):
    assert fuzz(seeds, breakable, browser) == []


# States of which docs/screenshots.py takes pictures


@pytest.mark.browser
@pytest.mark.load
@pytest.mark.parametrize("size", [(390, 844), (1440, 900)], ids=str)
def test_axe_finds_nothing_serious_in_any_state(browser, tmp_path, axe, size):
    take_states(browser, tmp_path, [size], axe)
