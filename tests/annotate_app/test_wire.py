"""Answers by POST: stored once whoever sends them again, and taken from nobody without a ticket."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from itsdangerous import URLSafeTimedSerializer
from starlette.testclient import TestClient

from evenhand.annotate_app import routes, sites
from evenhand.annotate_app.app import make_app
from evenhand.annotate_app.logins import browser_of
from evenhand.annotate_app.routes import ANSWERS
from evenhand.annotate_app.sites import MOST_BYTES, Site, served
from evenhand.study import Study
from evenhand.study.access.accounts import log_out, make_token, set_account, sign_in
from evenhand.study.access.admission import (
    Admission,
    admit,
    make_invites,
    make_ticket,
    revoke_invites,
)
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.answers import events_of
from evenhand.study.store.schema import labels
from harness.served import holds
from harness.sessions import Session

PASSWORD = "correct horse battery"
COOKIES = ("a" * 43, "b" * 43)
"""What two browsers might hold."""


class Panel:
    """The panel of a rater in one browser: it sends as the real one does, and keeps what comes."""

    def __init__(self, client: TestClient, study: Study, admission: Admission, login: str) -> None:
        self.client, self.study, self.admission = client, study, admission
        self.path = path_of(study.folder)
        scope = {"type": "http", "scheme": "http", "path": f"{self.path}/"}
        browser = browser_of(scope | {"headers": self._cookie(0)})
        self.ticket = make_ticket(study, admission, login, browser)
        self.session = Session(0, admission.rater_id)

    def _cookie(self, browser: int | None) -> list[tuple[bytes, bytes]]:
        if browser is None:
            return []
        name = "evenhand_session" + self.path.replace("/", "_")
        return [(b"cookie", f"{name}={COOKIES[browser]}".encode())]

    def say(self, said: Any = None, browser: int | None = 0, **headers: str) -> Any:
        """The server's answer to a message; `said` may be bytes that are no JSON."""
        content = said if isinstance(said, bytes) else json.dumps(said or {}).encode()
        given = [*self._cookie(browser), (b"x-evenhand-ticket", self.ticket.encode())]
        given += [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
        return self.client.post(f"{self.path}/{ANSWERS}", content=content, headers=dict(given))

    def take(self, **said: Any) -> dict[str, Any]:
        """The panel's data after a message."""
        answer = self.say({"has": [*self.session.kept], **said})
        assert answer.status_code == 200
        data: dict[str, Any] = answer.json()
        if "page" not in data:
            self.session.take(data)
        return data

    def answers(self) -> list[dict[str, Any]]:
        """Answers to what is in view."""
        return self.session.first_options(self.take()["sheet"])

    def stored(self) -> list[str]:
        with self.study.store.read() as connection:
            return list(connection.execute(sa.select(labels.c.submit_id)).scalars())


def path_of(folder: Path) -> str:
    """The path at which a study is served here: folders have one name."""
    return f"/{folder.parent.name}-{folder.name}"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(make_app(), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def panel_of(monkeypatch, client) -> Callable[..., Panel]:
    """panel_of(folder, rater, address, login): the panel of somebody who was admitted."""

    def make(
        folder: Path, rater: str = "ann", address: dict[str, str] | None = None, login: str = ""
    ) -> Panel:
        site = Site(folder, path_of(folder), alone=False)
        monkeypatch.setitem(sites._sites, site.path, site)
        study = served(site).desks().desk.study
        admission = admit(study, address or {"rater": rater}, login)
        assert admission is not None
        return Panel(client, study, admission, login)

    return make


@pytest.fixture
def panel(panel_of, make_study) -> Panel:
    return panel_of(make_study(5))


def test_an_answer_and_its_repeat_are_stored_once(panel):
    answers = panel.answers()
    seen = [panel.take(answers=answers) for _ in range(2)]
    (submit_id,) = panel.stored()
    assert [each["receipts"] for each in seen] == [{submit_id: "stored"}, {submit_id: "duplicate"}]
    assert [each["progress"] for each in seen] == [{"done": 1, "total": 5}] * 2
    assert seen[0]["sheet"] == seen[1]["sheet"]  # the next one comes with the receipt
    assert seen[0]["sheet"]["id"] != answers[0]["sheet_id"]


def test_all_that_a_panel_can_wish_for_comes_in_one_answer(panel):
    answers = panel.answers()
    task = answers[0]["task_id"]
    look = {"nonce": "n1", "wish": "task", "task_id": task}
    back = panel.take(answers=answers, look=look)  # what has just come is among the earlier ones
    assert (back["looked"], back["sheet"]["earlier"], back["sheet"]["id"]) == ("n1", True, task)
    flag = {"submit_id": "f1", "task_id": task, "flag": "other", "text": "why"}
    flagged = panel.take(answers=[flag], look=look)
    assert [each["text"] for each in flagged["sheet"]["flags"]] == ["why"]
    listed = {"nonce": "n2", "wish": "list", "task_id": task, "start": 0}
    found = panel.take(look=listed)
    assert [row["task"] for row in found["earlier"]["rows"]] == [task]
    assert found["sheet"]["earlier"]
    edit = answers[0] | {"submit_id": "e1", "edit": True, "option_key": "R"}
    assert panel.take(answers=[edit])["receipts"] == {"e1": "stored"}
    again = panel.take(answers=[answers[0] | {"submit_id": "x"}])
    assert again["receipts"] == {"x": "already_labelled"}
    while panel.take()["sheet"]:
        ended = panel.take(answers=panel.answers())
    assert (ended["sheet"], ended["progress"]) == (None, {"done": 5, "total": 5})
    with panel.study.store.read() as connection:
        kinds = [event.kind for event in events_of(connection, "ann")]
    assert kinds.count("completed") == 1


def test_the_page_of_another_step_is_told_and_what_was_given_is_kept(panel):
    answers = panel.answers()
    Sessions(panel.study).release("ann", "timed_out")
    said = panel.take(answers=answers)
    assert said == {"receipts": {answers[0]["submit_id"]: "stored"}, "page": "ended"}
    assert panel.stored() == [answers[0]["submit_id"]]


def test_what_was_shown_is_answered_as_it_was_shown(panel):
    shown = panel.take()
    (first,) = panel.answers()
    file = panel.study.folder / "rubrics" / "shorter.toml"
    text = file.read_text("utf-8")
    assert '"L"' in text
    file.write_text(text.replace('"L"', '"X"').replace("shorter?", "the shorter one?"), "utf-8")
    newer = panel.take()
    assert newer["drawn"] != shown["drawn"]
    waited = first | {"drawn": shown["drawn"]}
    (second,) = panel.session.first_options(newer["ahead"])
    options = (first["option_key"], second["option_key"])
    assert options == ("L", "X")
    said = panel.take(answers=[waited, second | {"drawn": newer["drawn"]}])
    assert list(said["receipts"].values()) == ["stored", "stored"]


ODD = {"answers": 7, "look": [], "has": {}, "drawn": [], "language": {}}
HOSTILE = {
    "another browser": ({"browser": 1}, 403),
    "no cookie": ({"browser": None}, 403),
    "a foreign page": ({"origin": "https://elsewhere.example.org"}, 403),
    "a page of no origin": ({"origin": "null"}, 403),
    "our own page": ({"origin": "http://localhost"}, 200),
    "another host": ({"host": "elsewhere.example.org"}, 421),
    "too long": ({"said": b" " * (MOST_BYTES + 1)}, 413),
    "no JSON": ({"said": b"{"}, 400),
    "no JSON of a stranger": ({"said": b"{", "browser": 1}, 403),
    "deep JSON": ({"said": b"[" * 100_000}, 400),
    "no object": ({"said": b"[]"}, 400),
    "odd parts": ({"said": ODD}, 200),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_who_may_not_send_is_refused_and_nothing_is_stored(panel, case):
    how, status = HOSTILE[case]
    answer = panel.say(**{"said": {"answers": panel.answers()}, **how})
    assert answer.status_code == status
    assert status == 200 or not (panel.stored() or "receipts" in answer.text)


def test_of_one_address_only_so_many_messages_are_read_at_once(panel, monkeypatch):
    answers = panel.answers()
    monkeypatch.setitem(routes._under_way, (panel.path, "testclient"), sites.MOST_PAGES)
    assert panel.say({"answers": answers}).status_code == 503
    monkeypatch.setitem(routes._under_way, (panel.path, "testclient"), sites.MOST_PAGES - 1)
    with monkeypatch.context() as crowded:
        crowded.setattr(routes, "_MOST_WAITING", 0)  # as many wait for the store as may
        assert panel.say({"answers": answers}).status_code == 503
    assert panel.stored() == []
    assert panel.say({"answers": answers}).status_code == 200


def test_what_cannot_be_read_is_refused_for_good_and_holds_nothing_up(panel):
    of_old = [{"submit_id": f"old{n}", "task_id": "t", "seconds": None} for n in range(50)]
    answers = panel.answers()
    said = panel.take(answers=[*of_old, *answers])["receipts"]
    assert said.pop(answers[0]["submit_id"]) == "stored"
    assert said == {each["submit_id"]: "unknown_task" for each in of_old}


def test_a_ticket_is_of_one_rater_and_study_and_ends(panel, panel_of, make_study, tmp_path):
    answers = panel.answers()
    bob = panel_of(panel.study.folder, "bob")
    assert bob.take(answers=answers)["receipts"] == {answers[0]["submit_id"]: "unknown_task"}
    good = panel.ticket
    claims = URLSafeTimedSerializer("", salt="panel").loads_unsafe(good)[1]["claims"]
    assert claims.keys() == {"rater", "way", "address", "login", "browser"}
    assert good.count(COOKIES[0]) == 0
    head, rest = good.split(".", 1)
    over = make_token(panel.study.store, f"panel {panel.study.folder}", claims, 0)
    of_use = make_token(panel.study.store, "pass", claims, 60)
    for wrong in ("", "x.y.z", f"{head[:-2]}AA.{rest}", bob.ticket[:20] + good[20:], over, of_use):
        panel.ticket = wrong
        assert panel.say().status_code == 403, wrong
    other = panel_of(make_study(5))  # a copy of the folder, with its secret
    other.ticket = good
    assert other.say({"answers": answers}).status_code == 403
    assert not (other.stored() or panel.stored())


def test_a_revoked_link_and_an_ended_login_take_no_more_answers(panel_of, make_study):
    folder = make_study(5)
    ann = panel_of(folder)
    assert ann.say().status_code == 200
    change_config(folder, {"session": {"entry": "invite"}})
    assert ann.say().status_code == 403  # a code alone is good no more
    study = served(Site(folder)).desks().desk.study
    (invite,) = make_invites(study, ["ivy"], 1)
    ivy = panel_of(folder, address={"invite": invite.token})
    set_account(study.store, "eve", PASSWORD, "expert")
    login = sign_in(study.store, "eve", PASSWORD)
    eve = panel_of(folder, login=login)
    waiting = {each: each.answers() for each in (ivy, eve)}
    for each in waiting:
        assert each.say().status_code == 200
    revoke_invites(study, "ivy")
    log_out(study.store, login)
    for each, answers in waiting.items():
        assert each.say({"answers": answers}).status_code == 403
    assert ivy.stored() == []


def test_a_store_that_takes_nothing_is_said_and_the_answer_may_come_again(panel):
    answers = panel.answers()
    other = sqlite3.connect(panel.study.folder / "study.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert panel.say({"answers": answers}).status_code == 503
    other.execute("ROLLBACK")
    other.close()
    assert panel.take(answers=answers)["receipts"] == {answers[0]["submit_id"]: "stored"}


def test_a_locked_store_holds_up_no_other_study(panel, panel_of, make_study):
    """Who asks of the other is answered while most of those at the locked one wait."""
    other, many = panel_of(make_study(5)), 24
    answers, others = panel.answers(), other.answers()
    lock = sqlite3.connect(panel.study.folder / "study.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    with ThreadPoolExecutor(many) as people:
        waiting = [people.submit(panel.say, {"answers": answers}) for _ in range(many)]
        assert holds(lambda: sum(each.running() for each in waiting) == many)
        said = other.take(answers=others)
        ended = sum(each.done() for each in waiting)
    assert set(said["receipts"].values()) == {"stored"}
    assert ended < many / 2
    assert {each.result().status_code for each in waiting} == {503}
    lock.execute("ROLLBACK")
    lock.close()
    receipts = [panel.take(answers=answers)["receipts"] for _ in range(2)]
    assert [set(each.values()) for each in receipts] == [{"stored"}, {"duplicate"}]
