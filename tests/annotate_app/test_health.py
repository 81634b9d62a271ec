"""`/health` asks the store, but never more than once a second, and waits for nobody."""

from __future__ import annotations

import asyncio
import threading
import time

from evenhand.annotate_app.health import Health
from evenhand.study.workspace import StoreState

WELL, AWAY = StoreState(read=True, write=True), StoreState(read=False, write=False)


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


def test_no_answer_is_a_no_and_holds_up_nobody():
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
        health._patience = 30
        assert await health.state() == WELL

    asyncio.run(twice())


def test_a_fault_in_asking_is_a_no():
    def ask() -> StoreState:
        raise OSError("out of files")

    assert asyncio.run(Health(lambda: asyncio.to_thread(ask)).state()) == AWAY
