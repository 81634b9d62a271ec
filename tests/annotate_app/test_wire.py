"""What travels between server and panel: answers by POST, stored once and taken from nobody without
a ticket; what is named where the browser has it; and every sentence in every language.
"""

import copy
import json
import re
import sqlite3
import string
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
import sqlalchemy as sa
from itsdangerous import URLSafeTimedSerializer
from starlette.testclient import TestClient

from evenhand.annotate_app import payload, routes, sites
from evenhand.annotate_app.languages import ENGLISH, fitting, known_languages, language, offered
from evenhand.annotate_app.logins import browser_of
from evenhand.annotate_app.rater_pages import config_of
from evenhand.annotate_app.routes import ANSWERS
from evenhand.annotate_app.sites import MOST_BYTES, Site, served
from evenhand.cli.ratings import prepare_serving
from evenhand.errors import InputError, Reason, Refused
from evenhand.rubrics import load_rubric
from evenhand.rubrics.loading import parse_rubric
from evenhand.rubrics.rendering import TEXT_VARIABLES
from evenhand.study import Study, access, open_study
from evenhand.study.creation import declare_rewording
from evenhand.study.desk.claims import exclude
from evenhand.study.desk.desk import FLAG_REASONS, SKIP_REASONS, AnnotationDesk, Answer, Flag
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings import study_toml
from evenhand.study.store.schema import labels, responses
from evenhand.study.store.store import events_of
from evenhand.study.tables.ratings import MOST_MARKS, Mark
from evenhand.texts import texts
from harness.served import holds
from harness.sessions import Session
from harness.studies import CODES, MORE_CODES, SHORTER, send, submit, task_of, with_labels
from tests.cases import refused

PASSWORD = "correct horse battery"
COOKIES = ("a" * 43, "b" * 43)
"""What two browsers might hold."""


class Panel:
    """The panel of a rater in one browser: it sends as the real one does, and keeps what comes."""

    def __init__(
        self, client: TestClient, study: Study, admission: access.Admission, login: str
    ) -> None:
        self.client, self.study, self.admission = client, study, admission
        self.path = path_of(study.folder)
        scope = {"type": "http", "scheme": "http", "path": f"{self.path}/"}
        browser = browser_of(scope | {"headers": self._cookie(0)})
        self.ticket = access.make_ticket(study, admission, login, browser)
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
        answer = self.say({"has": [*self.session.kept], **said})
        assert answer.status_code == 200
        data: dict[str, Any] = answer.json()
        if "page" not in data:
            self.session.take(data)
        return data

    def answers(self) -> list[dict[str, Any]]:
        return self.session.first_options(self.take()["sheet"])

    def stored(self) -> list[str]:
        with self.study.store.read() as connection:
            return list(connection.execute(sa.select(labels.c.submit_id)).scalars())


def path_of(folder: Path) -> str:
    """The path at which a study is served here: folders have one name."""
    return f"/{folder.parent.name}-{folder.name}"


@pytest.fixture
def panel_of(monkeypatch, client) -> Callable[..., Panel]:
    """panel_of(folder, rater, address, login): the panel of somebody who was admitted."""

    def make(
        folder: Path, rater: str = "ann", address: dict[str, str] | None = None, login: str = ""
    ) -> Panel:
        site = Site(folder, path_of(folder), alone=False)
        monkeypatch.setitem(sites._sites, site.path, site)
        study = served(site).desks().desk.study
        admission = access.admit(study, address or {"rater": rater}, login)
        assert admission is not None
        return Panel(client, study, admission, login)

    return make


@pytest.fixture
def panel(panel_of, make_study) -> Panel:
    return panel_of(make_study(5))


@pytest.mark.journey
def test_an_answer_and_its_repeat_are_stored_once(panel):
    answers = panel.answers()
    of_old = [{"submit_id": f"old{n}", "task_id": "t", "seconds": None} for n in range(50)]
    said = panel.take(answers=of_old)["receipts"]  # refused for good: it holds nothing up
    assert said == {each["submit_id"]: "unknown_task" for each in of_old}
    seen = [panel.take(answers=answers) for _ in range(2)]
    (submit_id,) = panel.stored()
    assert [each["receipts"] for each in seen] == [{submit_id: "stored"}, {submit_id: "duplicate"}]
    assert [each["progress"] for each in seen] == [{"done": 1, "total": 5}] * 2
    assert seen[0]["sheet"] == seen[1]["sheet"]  # the next one comes with the receipt
    assert seen[0]["sheet"]["id"] != answers[0]["sheet_id"]


@pytest.mark.journey
def test_all_that_a_panel_can_wish_for_comes_in_one_answer(panel):
    answers = panel.answers()
    task = answers[0]["task_id"]
    look = {"nonce": "n1", "wish": "task", "task_id": task}
    back = panel.take(answers=answers, look=look)  # what has just come is among the earlier ones
    assert (back["looked"], back["sheet"]["earlier"], back["sheet"]["id"]) == ("n1", True, task)
    flag = {"submit_id": "f1", "task_id": task, "flag": "other", "text": "why"}
    flagged = panel.take(answers=[flag], look=look)
    assert [each["text"] for each in flagged["sheet"]["flags"]] == ["why"]
    found = panel.take(look={"nonce": "n2", "wish": "list", "task_id": task, "start": 0})
    assert [row["task"] for row in found["earlier"]["rows"]] == [task]
    assert found["sheet"]["earlier"]
    edit = answers[0] | {"submit_id": "e1", "edit": True, "option_key": "R"}
    assert panel.take(answers=[edit])["receipts"] == {"e1": "stored"}
    again = answers[0] | {"submit_id": "x"}
    assert panel.take(answers=[again])["receipts"] == {"x": "already_labelled"}
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
    assert newer["study_state"] != shown["study_state"]
    waited = first | {"study_state": shown["study_state"]}
    (second,) = panel.session.first_options(newer["ahead"])
    assert (first["option_key"], second["option_key"]) == ("L", "X")
    said = panel.take(answers=[waited, second | {"study_state": newer["study_state"]}])
    assert list(said["receipts"].values()) == ["stored", "stored"]


def test_settings_that_annotate_would_refuse_are_not_taken_in(panel):
    text = SHORTER.replace('"shorter"', '"short"\nvariant_of = "shorter"').replace("is s", "was s")
    declare_rewording(panel.study, parse_rubric(text, "short.toml"), text, 4)
    task = panel.answers()[0]["task_id"]  # the trial has begun
    file = panel.study.folder / "study.toml"
    good = file.read_text("utf-8")
    unknown = ({"subjects": ["nobody"]}, {"language": "fr"}, {"languages": ["fr"]})
    for change in (*({"annotation": each} for each in unknown), {"rewording": {"pairs": 2}}):
        study_toml.change_config(panel.study.folder, change)
        assert panel.answers()[0]["task_id"] == task, change
        refused("", prepare_serving, panel.study.folder, "", "", "")
        file.write_text(good, "utf-8")
    # A subject that is named before its responses are imported.
    study_toml.change_config(panel.study.folder, {"annotation": unknown[0]})
    desks = served(sites._sites[panel.path]).desks
    assert desks().desk.study.config.annotation.subjects == ()
    panel.study.store.add_responses(panel.study.store.responses().assign(subject="nobody"))
    assert desks().desk.study.config.annotation.subjects == ("nobody",)


ODD = {"answers": 7, "look": [], "has": {}, "study_state": [], "language": {}}
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
    monkeypatch.setitem(routes._in_progress, (panel.path, "testclient"), sites.MOST_PAGES)
    assert panel.say({"answers": answers}).status_code == 503
    monkeypatch.setitem(routes._in_progress, (panel.path, "testclient"), sites.MOST_PAGES - 1)
    with monkeypatch.context() as crowded:
        crowded.setattr(routes, "_MOST_WAITING", 0)  # as many wait for the store as may
        assert panel.say({"answers": answers}).status_code == 503
    assert (panel.stored(), panel.say({"answers": answers}).status_code) == ([], 200)


def test_a_ticket_is_of_one_rater_and_study_and_ends(panel, panel_of, make_study, tmp_path):
    answers = panel.answers()
    bob = panel_of(panel.study.folder, "bob")
    assert bob.take(answers=answers)["receipts"] == {answers[0]["submit_id"]: "unknown_task"}
    good = panel.ticket
    claims = URLSafeTimedSerializer("", salt="panel").loads_unsafe(good)[1]["claims"]
    assert claims.keys() == {"rater", "way", "address", "login", "browser"}
    assert good.count(COOKIES[0]) == 0
    head, rest = good.split(".", 1)
    over = access.make_token(panel.study.store, f"panel {panel.study.folder}", claims, 0)
    of_use = access.make_token(panel.study.store, "pass", claims, 60)
    for wrong in ("", "x.y.z", f"{head[:-2]}AA.{rest}", bob.ticket[:20] + good[20:], over, of_use):
        panel.ticket = wrong
        assert panel.say().status_code == 403, wrong
    other = panel_of(make_study(5))  # a copy of the folder, with its secret
    other.ticket = good
    assert other.say({"answers": answers}).status_code == 403
    assert not (other.stored() or panel.stored())


@pytest.mark.journey
def test_a_revoked_link_and_an_ended_login_take_no_more_answers(panel_of, make_study):
    folder = make_study(5)
    ann = panel_of(folder)
    assert ann.say().status_code == 200
    study_toml.change_config(folder, {"session": {"entry": "invite"}})
    assert ann.say().status_code == 403  # a code alone is good no more
    study = served(Site(folder)).desks().desk.study
    (invite,) = access.make_invites(study, ["ivy"], 1)
    ivy = panel_of(folder, address={"invite": invite.token})
    access.set_account(study.store, "eve", PASSWORD, "expert")
    login = access.sign_in(study.store, "eve", PASSWORD)
    waiting = {each: each.answers() for each in (ivy, panel_of(folder, login=login))}
    for each in waiting:
        assert each.say().status_code == 200
    access.revoke_invites(study, "ivy")
    access.log_out(study.store, login)
    for each, answers in waiting.items():
        assert each.say({"answers": answers}).status_code == 403
    assert ivy.stored() == []


@pytest.mark.slow
def test_a_locked_store_holds_up_no_other_study(panel, panel_of, make_study):
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


GOOD = {
    "submit_id": "s1", "task_id": "t1", "option_key": "L", "skip_reason": "", "seconds": 3.5,
    "edit": False, "confidence": None, "rationale": "",
}  # fmt: skip
FLAG = {"submit_id": "f1", "task_id": "t1", "flag": "other", "text": " why "}
MARK = {"text": "response", "start": 0, "end": 2}


def test_answers_and_flags_are_read():
    sent = [GOOD | {"submit_id": str(number)} for number in range(60_000)]
    assert len(payload.read_sent({"answers": sent})) == 100  # no more than a page has at once
    more = GOOD | {"confidence": 2, "rationale": " x ", "edit": True}
    assert payload.read_sent({"answers": [GOOD, FLAG, more]}) == [
        Answer(submit_id="s1", task_id="t1", option_key="L", seconds=3.5),
        Flag(submit_id="f1", task_id="t1", reason="other", text="why"),
        Answer(
            submit_id="s1", task_id="t1", option_key="L", seconds=3.5,
            edit=True, confidence=2, rationale="x",
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sent",
    [
        *(None, "text", [], {}, {"answers": None}, {"answers": [None, "x", {}]}),
        *(
            {"answers": [good | {part: wrong}]}
            for good, part, every in (
                (GOOD, "task_id", ("", "\ud800")),
                (GOOD, "submit_id", (7, "a\0")),
                (GOOD, "option_key", ("x" * 129, "")),
                (GOOD, "skip_reason", ("x" * 129,)),
                (GOOD, "seconds", ("soon", float("nan"), 10**400, float("inf"))),
                (GOOD, "confidence", (9, True)),
                (GOOD, "display", ("html", 1, None, ["text"])),
                (GOOD, "evidence", (None, MARK, [MARK] * 2, [MARK | {"end": "2"}], [MARK] * 1000)),
                (FLAG, "flag", ("",)),
                (FLAG, "task_id", (None,)),
            )
            for wrong in every
        ),
    ],
)
def test_what_is_no_answer_is_left_out(sent):
    assert payload.read_sent(sent) == []


@pytest.mark.parametrize(
    ("part", "sent", "read"),
    [
        ("display", "text", "text"),
        ("display", "markdown", "markdown"),
        ("evidence", [MARK], (Mark("response", 0, 2),)),
        ("seconds", -5, 0.0),  # within a day
        ("seconds", 1e9, 86400.0),
        ("rationale", "x" * 10_000, "x" * 4000),
        ("rationale", "a\0b\ud800c 🙂", "abc 🙂"),  # what a database can keep
        ("language", "de", "de"),  # one that there is not costs no answer
        *(("language", odd, "") for odd in ("xx", "", None, 7, ["de"], "de" * 10_000, {"de": 1})),
    ],
)
def test_each_part_of_an_answer_is_read_within_its_bounds(part, sent, read):
    (answer,) = payload.read_sent({"answers": [GOOD | {part: sent}]})
    assert (getattr(answer, part), answer.option_key) == (read, GOOD["option_key"])


def test_the_panel_hears_of_marks_where_the_rubric_asks_for_them(make_study):
    rubric = parse_rubric('evidence = "optional"\n' + SHORTER, "shorter.toml")
    with open_study(make_study(2, rubrics=[rubric])) as study:
        desk = AnnotationDesk(study)
        task = task_of(desk, "r1")
        (question,) = payload.page_data(desk, "r1")["sheet"]["questions"]
        assert question["evidence"] == {"ask": "optional", "most": MOST_MARKS, "given": None}
        given = {"evidence": [{"text": "response_b", "start": 1, "end": 3}]}
        sent = payload.read_sent({"answers": [GOOD | {"task_id": task.task_id} | given]})
        assert send(desk, "r1", *sent) == ["stored"]
        look = payload.Navigation("n", "task", task.task_id)
        back = payload.page_data(desk, "r1", {}, look)["sheet"]
    assert back["questions"][0]["evidence"]["given"] == given["evidence"]
    assert "response_b" in {each["name"] for each in back["blocks"]}


def test_only_responses_have_a_tree_and_only_where_markdown_is_shown(make_study):
    def text(number, side):
        return "**so**" if side == "a" else "> " * 100 + "deep"

    for display in ("text", "markdown"):
        controls = display == "text"
        with open_study(make_study(1, text, display=display, show_controls=controls)) as study:
            data = payload.page_data(AnnotationDesk(study), "r1")
        sheet = data["sheet"]
        assert bool(data["controls"]) == controls  # their names, where marks are wanted
        trees = {(each["kind"], each["text"]): each["tree"] for each in sheet["blocks"]}
        plain = {each["text"]: each["plain"] for each in sheet["blocks"]}
        drawn = (["p", {}, ["strong", {}, "so"]],) if display == "markdown" else None
        assert trees["response", "**so**"] == drawn
        assert [tree for (kind, _), tree in trees.items() if kind == "prompt"] == [None, None]
        assert plain[text(1, "b")] == (display == "markdown")
        assert not plain["**so**"]


def test_wishes_to_look_back_are_read_and_the_start_of_a_list_within_bounds():
    wish = {"nonce": "n", "wish": "task", "task_id": ""}
    assert payload.read_navigation(wish) == payload.Navigation("n", "task", "")
    for wrong in (None, {}, wish | {"wish": "all"}, wish | {"nonce": ""}, wish | {"task_id": 3},
                  wish | {"task_id": "\ud800"}, wish | {"task_id": "x" * 9_999}):  # fmt: skip
        assert payload.read_navigation(wrong) is None
    wish["wish"] = "list"
    assert payload.read_navigation(wish | {"start": 30}) == payload.Navigation("n", "list", "", 30)
    for wrong in ({"start": -1}, {}, {"start": 10**9}, {"start": "0"}):
        assert payload.read_navigation(wish | wrong) == payload.Navigation("n", "list")


def test_the_panel_gets_what_it_shows_and_no_more(make_study):
    with open_study(make_study(2)) as study:
        data = json.loads(json.dumps(payload.page_data(AnnotationDesk(study), "r1")))
    sheet = data["sheet"]
    (question,) = sheet["questions"]
    assert data.keys() == {
        "drafts", "rater", "practice", "synthetic", "words", "asks", "controls", "progress",
        "receipts", "looked", "earlier", "sheet", "ahead", "finish", "minutes", "pause_minutes",
        "resumes", "language", "languages", "flag_answers", "way_out",
    }  # fmt: skip
    assert sheet.keys() == {
        "id", "language", "earlier", "number", "before", "blocks", "questions", "confidence",
        "rationale", "flags",
    }  # fmt: skip
    assert question.keys() == {
        "task", "lang", "wording", "title", "question", "instructions", "guide", "options", "given",
    }  # fmt: skip
    options = {key for option in question["options"] for key in option}
    assert options == {"key", "name", "description", "examples"}


def test_who_looks_back_gets_their_own_answer_and_the_list_and_the_end_has_no_sheet(make_study):
    with open_study(make_study(2)) as study:
        desk = AnnotationDesk(study)
        task = task_of(desk, "r1")
        submit(desk, "r1", task, "L")
        back = payload.page_data(desk, "r1", {}, payload.Navigation("n", "list", task.task_id))
        assert back["looked"] == "n"
        assert back["sheet"]["earlier"] is True
        assert back["sheet"]["questions"][0]["given"] == {"option": "L", "skip": ""}
        (row,) = back["earlier"]["rows"]
        assert (row["number"], row["flagged"], back["earlier"]["found"]) == (1, False, 1)
        assert (row["task"], row["answer"]) == (task.task_id, "Response A")
        assert row["at"].startswith("20") and row["excerpt"].startswith("A: Prompt ")
        other = payload.page_data(desk, "r2", {}, payload.Navigation("n", "list", task.task_id))
        assert other["drafts"] != back["drafts"]
        assert other["earlier"] == {"rows": [], "start": 0, "found": 0}
        assert other["sheet"]["earlier"] is False
        submit(desk, "r1", task_of(desk, "r1"), "C")
        end = payload.page_data(desk, "r1")
    assert (end["sheet"], end["progress"]) == (None, {"done": 2, "total": 2})


@pytest.fixture
def participant(make_session):
    """participant(pairs, lines of study.toml) -> the desk of a study, the settings of a
    participant's page, and what it is sent when it asks."""
    with ExitStack() as studies:

        def make(pairs: int, toml: str):
            desk = AnnotationDesk(studies.enter_context(open_study(make_session(pairs, toml))))
            config = partial(config_of, desk, access.Admission("r1", "prolific"))
            return desk, config, lambda: payload.page_data(desk, "r1", {}, None, config)

        yield make


def test_a_days_end_brings_no_completion_code(participant):
    desk, _, data = participant(2, MORE_CODES + "\n[session]\nanswers_per_day = 1\n")
    submit(desk, "r1", task_of(desk, "r1"), "L")
    sent = data()
    assert (sent["sheet"], sent["finish"], sent["progress"]["total"]) == (None, "", 2)
    assert sent["resumes"][10:16] == "T00:00"
    assert "DONE1" not in json.dumps(sent)


@pytest.mark.parametrize(
    ("codes", "answers", "excluded", "code"),
    [
        pytest.param(MORE_CODES, 1, False, "DONE1", id="done"),
        pytest.param(MORE_CODES, 1, True, "STOP4", id="excluded"),
        pytest.param(MORE_CODES, 0, False, "NONE5", id="nothing left"),
        pytest.param(MORE_CODES, "former", False, "DONE1", id="done under a former text"),
        pytest.param(CODES, 1, True, "", id="excluded, without a code"),
        pytest.param(CODES, 0, False, "DONE1", id="nothing left, without a code"),
    ],
)
def test_each_end_has_its_code(participant, codes, answers, excluded, code):
    desk, config, data = participant(1, codes)
    if answers == "former":
        with_labels(desk.study, {"r1": "C"}, "shorter", rubric_hash="former")
    if answers == 1:
        assert data()["finish"] == ""
        submit(desk, "r1", task_of(desk, "r1"), "C")
    else:
        with desk.study.store.write() as connection:
            connection.execute(sa.delete(responses))
    assert config().finish.endswith("DONE1" if answers else code)  # while the page is made
    if excluded:
        exclude(desk.study.store, "r1", "too fast")
    sent = data()
    assert sent["sheet"] is None
    assert sent["finish"].rpartition("=")[2] == code
    assert ("below to return" in sent["words"]["done_text"]) == bool(code)
    assert code == "DONE1" or "DONE1" not in json.dumps(sent)


TEXTS = {"title": "Evenness", "question": "Which?", "instructions": "Read.", "options": [1, 2]}
ASKED = [{"task": f"t{n}", "given": n - 1 or None, **TEXTS} for n in (1, 2)]
DATA = {
    "words": {"submit": "Submit"},
    "asks": {"skip": {}},
    "controls": {"200b": "zero-width space"},
    "sheet": {"blocks": ["a text"], "questions": ASKED},
    "ahead": {"blocks": ["another"], "questions": [{"task": "t3", "given": None, **TEXTS}]},
}


def test_each_part_is_sent_once_under_its_name_and_nothing_is_lost():
    before = copy.deepcopy(DATA)
    light = payload.lightened(DATA, frozenset())
    assert before == DATA  # of which others may hold parts
    kept = light["kept"]
    assert len(kept) == 6  # all questions are of one rubric
    assert all(kept[light[key]] == DATA[key] for key in ("words", "asks", "controls"))
    whole = [
        {"task": question["task"], "given": question["given"], **kept[question["rubric"]]}
        for question in light["sheet"]["questions"]
    ]
    assert whole == DATA["sheet"]["questions"]
    assert [kept[name] for name in light["sheet"]["blocks"]] == ["a text"]
    has = frozenset(kept)
    assert payload.lightened(DATA, has) == light | {"kept": {}}
    then = payload.lightened({**DATA, "sheet": DATA["ahead"], "ahead": None}, has)
    assert then["kept"] == {}  # of a unit that was sent ahead nothing is sent again
    assert then["sheet"] == light["ahead"]
    changed = payload.lightened(DATA | {"words": {"submit": "Senden"}}, has)
    assert list(changed["kept"].values()) == [{"submit": "Senden"}]
    assert payload.lightened(DATA | {"sheet": None}, has)["sheet"] is None


def test_what_a_browser_says_that_it_has_is_bounded():
    for sent in (None, {"answers": []}, {"has": "a" * 16}):
        assert payload.read_known(sent) == set()
    odd = ["a" * 16, 7, None, "short", "b" * 17, ["c" * 16]]
    assert payload.read_known({"has": odd}) == {"a" * 16}
    many = [f"{n:016}" for n in range(1000)]
    assert payload.read_known({"has": many}) == set(many[:64])


APP = Path(__file__).parents[2] / "annotate_app"
AWAY_PAGE_WRITER = APP.parent / "deploy" / "nginx" / "write_away_page.py"
KINDS_OF_LABELS = APP.parent / "rubrics" / "options.py"
TRANSLATIONS = [code for code in known_languages() if code != ENGLISH.code]
ONLY_TRANSLATED = ("refused.", "background.")
"""Rooms whose English stands elsewhere."""
MAY_BE_EQUAL = {"de": {"panel.key_enter"}, "es": set[str]()}
"""Words that a language shares with English; each is looked at before it comes here."""


def counted(key: str, among: dict[str, str]) -> str:
    whole, _, form = key.rpartition(".")
    return whole if form in ("one", "other") and f"{whole}.one" in among else key


def sentences(code: str) -> dict[str, str]:
    """Every text of a language by its key; a plural form is a text of its own."""

    def leaves(node: Any, *place: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, str):
            yield ".".join(place), node
            return
        for name, each in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(each, *place, str(name))

    return dict(leaves(language(code).sections))


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_a_language_has_the_keys_and_fields_of_english_and_is_no_english(code):
    own = {key for key in sentences(code) if not key.startswith(ONLY_TRANSLATED)}
    missing = sorted(sentences(ENGLISH.code).keys() - own)
    assert not missing, f"{code}.toml lacks {', '.join(missing)}"
    more = sorted(own - sentences(ENGLISH.code).keys())
    assert not more, f"{code}.toml has {', '.join(more)}, which en.toml has not"
    refused = {key: text for key, text in texts().items() if key.startswith("refused.")}
    english = sentences(ENGLISH.code) | refused
    for key, text in sentences(code).items():
        assert text == text.strip() or key == "session.or", key
        if key in english:
            assert fields(text) == fields(english[key]), f"{code}.toml: {key}"
            equal = text.casefold() == english[key].casefold()
            assert equal == (key in MAY_BE_EQUAL[code]), f"{code}.toml: {key} is {text!r}"


@pytest.mark.parametrize("code", known_languages())
def test_every_sentence_renders(code):
    own = sentences(code)
    for key, text in own.items():
        filled = dict.fromkeys(fields(text), "X")
        said = counted(key, own)
        if said != key:
            for filled["count"] in (1,) if key.endswith(".one") else (0, 2):
                assert language(code).say(said, **filled) == text.format(**filled)
        elif not key.startswith("background."):
            assert "{" not in language(code).say(key, **filled)


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_what_english_says_elsewhere_is_translated(code):
    rooms = language(code).sections
    assert rooms["refused"].keys() == set(get_args(Reason))
    for reason in get_args(Reason):
        error = Refused(reason, minutes=10, seconds=9)
        assert str(error) == texts()[f"refused.{reason}"].format(minutes=10, seconds=9)
        assert language(code).complaint(error) not in ("", str(error))
    assert rooms["background"].keys() == {question.key for question in study_toml.USUAL_BACKGROUND}
    for question in study_toml.USUAL_BACKGROUND:
        said, options = language(code).background(question)
        assert said != question.question
        assert len(set(options)) == len(question.options)
        assert not {*options} & {*question.options} - {"Conservador"}


def test_what_the_study_words_itself_stays_as_it_is():
    usual = study_toml.USUAL_BACKGROUND[0]
    own = study_toml.BackgroundQuestion(key=usual.key, question="Left?", options=("L", "R"))
    assert language("de").background(own) == ("Left?", ("L", "R"))
    assert ENGLISH.background(usual) == (usual.question, usual.options)
    assert language("de").complaint(InputError("the disk is full")) == "the disk is full"


def test_every_sentence_is_used_and_every_use_has_one():
    known = sentences(ENGLISH.code)
    files = [*APP.rglob("*.py"), AWAY_PAGE_WRITER, KINDS_OF_LABELS]
    code = "\n".join(file.read_text("utf-8") for file in files)
    said = set(re.findall(r'(?:say|in_every_language|sentence)\(\s*"([\w.]+)"', code))
    rooms = set(re.findall(r'part\(\s*"(\w+)"', code)) | {"panel_paused", "panel_excluded"}
    rooms |= {"panel_stopped", "panel_day", "ended", "block", "turn"}
    keys = {counted(key, known) for key in known}
    assert said <= keys
    in_rooms = {key for key in keys if key.partition(".")[0] in rooms}
    assert keys == said | in_rooms | {"session.right", "session.wrong"}


def test_every_word_of_the_panel_is_used_in_it():
    code = "\n".join(file.read_text("utf-8") for file in (APP / "panel").iterdir())
    used = set(re.findall(r'words\.(\w+)|data-word="(\w+)"', code))
    names = {name for pair in used for name in pair if name}
    made = {f"{kind}_{part}" for kind in ("skip", "flag") for part in ("title", "text", "confirm")}
    made |= {f"{kind}_{part}" for kind in ("done", "nothing") for part in ("title", "text")}
    states = {"saved", "waiting", "offline", "away", "failed", "already_labelled", "unknown_task"}
    states |= {"image_missing", "empty_prompt", "empty_response", "empty_context"}
    states |= {"flag_coming", "flag_stored", "flag_lost"}
    assert {*ENGLISH.part("panel")} == names | made | states


def test_closed_lists_have_their_words():
    assert tuple(ENGLISH.part("skip")) == SKIP_REASONS
    assert tuple(ENGLISH.part("flag")) == FLAG_REASONS
    assert ENGLISH.part("block") == TEXT_VARIABLES


def test_the_study_says_what_the_page_is_in(make_study):
    with open_study(make_study(2, language="de", languages=["es"])) as study:
        among = offered(study.config.annotation)
        data = payload.page_data(AnnotationDesk(study), "r", language=fitting([], among))
    assert data["language"] == "de"
    assert data["languages"] == {"de": "Deutsch", "es": "Español"}
    assert data["words"]["skip"] == "Auslassen"
    assert fitting(["fr", "es-MX"], among).code == "es"
    assert fitting(["en"], among).code == "de"  # known, but not offered here


def test_whoever_comes_by_any_way_reads_one_language(make_study):
    with open_study(make_study(1)) as study:
        desk = AnnotationDesk(study)
        for code in known_languages():
            own = {text for key, text in sentences(code).items() if key.startswith("panel")}
            for way in ("open", "invite", "account", "prolific"):
                words = config_of(desk, access.Admission("r", way), language(code)).words
                assert {text for text in words.values() if text} <= own, (code, way)


def test_a_unit_is_asked_in_the_readers_language(make_study):
    with open_study(make_study(2, rubrics=[load_rubric("even-handedness")])) as study:
        desk = AnnotationDesk(study)
        pages = [payload.page_data(desk, "r", language=language(code)) for code in ("en", "de")]
    english, german = (page["sheet"] for page in pages)
    (asked,), (original,) = german["questions"], english["questions"]
    assert (german["language"], asked["lang"], original["lang"]) == ("de", "de", "en")
    assert asked["title"] == "Ausgewogenheit"
    keys = [[option["key"] for option in each["options"]] for each in (asked, original)]
    assert keys[0] == keys[1]
    assert [block["label"] for block in german["blocks"]][:2] == ["Anfrage A", "Anfrage B"]
    texts_shown = [[block["text"] for block in each["blocks"]] for each in (german, english)]
    assert texts_shown[0] == texts_shown[1]


def test_an_untranslated_rubric_keeps_its_own_language(make_study):
    with open_study(make_study(2)) as study:
        sheet = payload.page_data(AnnotationDesk(study), "r", language=language("de"))["sheet"]
    (asked,) = sheet["questions"]
    assert (asked["lang"], asked["question"]) == ("en", "Which response is shorter?")
    told = "the language 'xx'; evenhand knows de, en, es$"
    refused(told, offered, study_toml.AnnotationSettings(languages=("de", "xx")))
