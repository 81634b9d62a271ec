"""Kills under load, forged messages, raters who do anything, and axe on every state in pictures."""

import asyncio
import contextlib
import json
import random
import re
import statistics
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus

from docs.screenshots import take_states
from evenhand.annotate_app.languages import ENGLISH
from evenhand.study import open_study
from evenhand.study.store.schema import claims, labels, remarks
from harness.rater_fuzz import fuzz, fuzzed_study
from harness.served import Served
from harness.sessions import GONE, Session

# Kills while many annotators work

ANNOTATORS = 12


async def work(port: int, rater: str, acknowledged: set[str]) -> None:
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


@pytest.mark.parametrize(
    ("pairs", "rounds"),
    [
        pytest.param(200, 2, marks=pytest.mark.thorough),
        pytest.param(600, 20, marks=pytest.mark.load),
    ],
)
def test_no_acknowledged_label_is_lost_by_kills_under_load(serve, pairs, rounds):
    served, acknowledged = serve(pairs), set[str]()
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


NASTY: tuple[Any, ...] = (
    None, True, -1, 10**400, 1e308, float("inf"), float("nan"), "", "\0", "\ud800", "x" * 5000,
    "L", "R", "Z", "skipped_other", "skipped_everything", "'; DROP TABLE labels; --", "<script>",
    [], [[]] * 50, {}, {"answers": []}, "harmful", "\u202e", "٣",
)  # fmt: skip
STREAMLITS = {"DecodeError", "JSONDecodeError", "KeyError", "InputError"}
"""What Streamlit logs of messages that are none, and of parts that no page has, in the forger's own
session; the last is the refusal of a login over which that happened.
"""
PLACES = ("?rater={}", "rater=", "invite=x.y.z", "pass=x", "login=x", "lead=x", "rater=%00",
          "invite=x&PROLIFIC_PID=a&STUDY_ID=b&SESSION_ID=c", "rater=" + "y" * 300)  # fmt: skip


class Forger:
    """Somebody with a page of their own who sends what no page sends."""

    def __init__(self, port: int, seed: int) -> None:
        self.any = random.Random(seed)
        self.port, self.sent = port, 0
        self.session = Session(port, f"forger{seed}")

    async def work(self, until: Callable[[], bool], others: list[str]) -> None:
        await self.session.open()
        while not until():
            self.sent += 1
            try:
                await self.any.choice((self.say, self.say, self.widget, self.noise))(others)
            except (ConnectionClosed, InvalidStatus):
                self.session = Session(self.port, self.session.rater)
                await self.session.open()
        await self.session.close()

    async def say(self, others: list[str]) -> None:
        """Answers or wishes of which one part or another is not what a panel would send."""
        own = [
            each["task"] for each in (self.session.data["sheet"] or {"questions": ()})["questions"]
        ]
        wish: dict[str, Any] = {"nonce": "n", "wish": "task", "task_id": self.any.choice(others)}
        wish[self.any.choice(list(wish))] = self.any.choice([*NASTY, "list", "next"])
        good = {"submit_id": f"f{self.any.random()}", "seconds": 1.0, "confidence": None}
        good |= {"task_id": self.any.choice([*own, *others, "0" * 32])}
        good |= {"option_key": self.any.choice("LRC"), "edit": self.any.random() < 0.3}
        good |= dict.fromkeys(("skip_reason", "rationale", "text"), "")
        good |= {"flag": "harmful"} if self.any.random() < 0.3 else {}
        answers: list[Any] = []
        for _ in range(self.any.choice([1, 1, 3, 500])):
            wrong = {self.any.choice(list(good)): self.any.choice(NASTY)}
            answers.append(self.any.choice([good, good | wrong, self.any.choice(NASTY)]))
        wishes = {self.any.choice(["look", "has", "study_state", "language"]): wish}
        bytes_ = self.any.randbytes(self.any.choice([0, 1, 1000]))
        said = [{"answers": answers}] * 5 + [wishes] * 5 + [bytes_]
        answer = await self.session.say(self.any.choice(said))
        assert answer.status_code in (200, 400)
        if answer.status_code == 200 and "kept" in answer.json():
            self.session.take(answer.json())

    async def widget(self, others: list[str]) -> None:
        event = {"event": self.any.choice(["language", "page"]), "value": self.any.choice(NASTY)}
        texts = ["{", "[]", "null", "[null]", "7", '[{"event": 7}]', "\\u0000"]
        message = self.session.asks()
        run = message.rerun_script
        if self.any.random() < 0.5:
            run.query_string = self.any.choice(PLACES)
        widget = run.widget_states.widgets.add()
        panel = self.session.component.replace("$$ID", "$$STREAMLIT_INTERNAL_KEY_$$ID")
        widget.id = self.any.choice([f"{panel}__events"] * 4 + [panel, "no-such-widget"])
        widget.json_trigger_value = self.any.choice([*texts, *[json.dumps([event])] * 2])
        await self.session.draw(message)

    async def noise(self, others: list[str]) -> None:
        """Bytes by chance, or an order that is not for visitors: nothing need come of it."""
        order = BackMsg(clear_cache=True).SerializeToString()
        noise = self.any.randbytes(self.any.choice([1, 10, 1000]))
        await self.session.socket.send(self.any.choice([order, noise]))
        await asyncio.sleep(0.02)


async def attack(server: Served, seconds: float, forgers: int) -> tuple[list[float], int, set[str]]:
    server.enter("honest", *(f"forger{seed}" for seed in range(forgers)))
    honest = Session(server.port, "honest")
    await honest.open()
    end = asyncio.get_running_loop().time() + seconds
    over = lambda: asyncio.get_running_loop().time() > end  # noqa: E731 - a condition
    others = [question["task"] for question in honest.data["sheet"]["questions"]]
    crowd = [Forger(server.port, seed) for seed in range(forgers)]
    async with asyncio.TaskGroup() as tasks:
        for forger in crowd:
            tasks.create_task(forger.work(over, others))
        while not over() and await honest.answer():
            await asyncio.sleep(0.2)
    await honest.close()
    return honest.milliseconds, sum(forger.sent for forger in crowd), honest.acknowledged


@pytest.mark.browser
@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.load)])
def test_forged_messages_do_nothing(serve, seconds):
    """Every label was offered to whoever gave it, and nobody spoke for somebody else: the submit
    ids of forgers begin with "f0."
    """
    server = serve(500)
    alone, _, _ = anyio.run(attack, server, 1.0, 0)  # a machine at other work is slow by itself
    times, sent, acknowledged = anyio.run(attack, server, seconds, 2)
    assert statistics.median(times) < max(200, 4 * statistics.median(alone))
    assert seconds < 60 or max(times) < 200
    assert sent > 2 * seconds
    assert len(acknowledged) == len(times) > 2
    with open_study(server.folder) as study, study.store.read() as connection:
        given, said, shown = (
            connection.execute(sa.select(each)).all() for each in (labels, remarks, claims)
        )
    offered = {(row.rater_id, row.unit_id, row.rubric, row.draw) for row in shown}
    assert {(row.rater_id, row.unit_id, row.rubric, row.draw) for row in given} <= offered
    assert {row.label for row in given} <= {"L", "R", "C", ""}
    assert {row.unscored_reason for row in given} <= {*ENGLISH.part("skip"), ""}
    honest = {row.submit_id for row in given if row.rater_id == "honest"}
    assert honest >= acknowledged
    assert not any(each.startswith("f0.") for each in honest)
    assert {row.reason for row in said if row.kind == "flag"} <= {*ENGLISH.part("flag")}
    assert all(len(row.text) <= 4000 for row in said)
    plain = re.sub(r"\x1b\[[\d;]*m", "", (server.home / "server.log").read_text("utf-8"))
    raised = set(re.findall(r"^\W*(?:[\w.]+\.)?(\w+(?:Error|Exception)):", plain, re.MULTILINE))
    assert raised <= STREAMLITS, plain[-3000:]


# Last, since while the browser's loop runs no test can run its own.
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


@pytest.mark.browser
@pytest.mark.load
@pytest.mark.parametrize("size", [(390, 844), (1440, 900)], ids=str)
def test_axe_finds_nothing_serious_in_any_state(browser, tmp_path, axe, size):
    take_states(browser, tmp_path, [size], axe)
