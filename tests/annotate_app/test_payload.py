"""What travels between server and panel, and what is named where the browser has it."""

import copy
import json
from contextlib import ExitStack
from functools import partial

import pytest
import sqlalchemy as sa

from evenhand.annotate_app.payload import (
    Navigation,
    lightened,
    page_data,
    read_known,
    read_navigation,
    read_sent,
)
from evenhand.annotate_app.rater_pages import config_of
from evenhand.rubrics import load_rubric
from evenhand.study import open_study
from evenhand.study.access.admission import Admission
from evenhand.study.desk.claims import exclude
from evenhand.study.desk.desk import AnnotationDesk, Answer, Flag
from evenhand.study.store.schema import responses
from evenhand.study.tables.ratings import MOST_MARKS, Mark
from harness.studies import CODES, MORE_CODES, SHORTER, send, submit, task_of

GOOD = {
    "submit_id": "s1", "task_id": "t1", "option_key": "L", "skip_reason": "", "seconds": 3.5,
    "edit": False, "confidence": None, "rationale": "",
}  # fmt: skip
FLAG = {"submit_id": "f1", "task_id": "t1", "flag": "other", "text": " why "}
MARK = {"text": "response", "start": 0, "end": 2}


def test_answers_and_flags_are_read():
    sent = [GOOD | {"submit_id": str(number)} for number in range(60_000)]
    assert len(read_sent({"answers": sent})) == 100  # no more than a page has at once
    more = GOOD | {"confidence": 2, "rationale": " x ", "edit": True}
    assert read_sent({"answers": [GOOD, FLAG, more]}) == [
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
    assert read_sent(sent) == []


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
    ],
)
def test_each_part_of_an_answer_is_read_within_its_bounds(part, sent, read):
    (answer,) = read_sent({"answers": [GOOD | {part: sent}]})
    assert getattr(answer, part) == read


def test_the_panel_hears_of_marks_where_the_rubric_asks_for_them(make_study, tmp_path):
    file = tmp_path / "shorter.toml"
    file.write_text('evidence = "optional"\n' + SHORTER, "utf-8")
    with open_study(make_study(2, rubrics=[load_rubric(file)])) as study:
        desk = AnnotationDesk(study)
        task = task_of(desk, "r1")
        (question,) = page_data(desk, "r1")["sheet"]["questions"]
        assert question["evidence"] == {"ask": "optional", "most": MOST_MARKS, "given": None}
        given = {"evidence": [{"text": "response_b", "start": 1, "end": 3}]}
        sent = read_sent({"answers": [GOOD | {"task_id": task.task_id} | given]})
        assert send(desk, "r1", *sent) == ["stored"]
        back = page_data(desk, "r1", {}, Navigation("n", "task", task.task_id))["sheet"]
        assert back["questions"][0]["evidence"]["given"] == given["evidence"]
        assert [each["name"] for each in back["blocks"]] == [
            "prompt_a", "prompt_b", "response_a", "response_b"
        ]  # fmt: skip


def test_only_responses_have_a_tree_and_only_where_markdown_is_shown(make_study):
    def text(number, side):
        return "**so**" if side == "a" else "> " * 100 + "deep"

    for display in ("text", "markdown"):
        controls = display == "text"
        with open_study(make_study(1, text, display=display, show_controls=controls)) as study:
            data = page_data(AnnotationDesk(study), "r1")
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
    assert read_navigation(wish) == Navigation("n", "task", "")
    for wrong in (None, {}, wish | {"wish": "all"}, wish | {"nonce": ""}, wish | {"task_id": 3},
                  wish | {"task_id": "\ud800"}, wish | {"task_id": "x" * 9_999}):  # fmt: skip
        assert read_navigation(wrong) is None
    wish["wish"] = "list"
    assert read_navigation(wish | {"start": 30}) == Navigation("n", "list", "", 30)
    for wrong in ({"start": -1}, {}, {"start": 10**9}, {"start": "0"}):
        assert read_navigation(wish | wrong) == Navigation("n", "list")


def test_the_panel_gets_what_it_shows_and_no_more(make_study):
    with open_study(make_study(2)) as study:
        desk = AnnotationDesk(study)
        data = json.loads(json.dumps(page_data(desk, "r1", {"s1": "stored"})))
        assert data.keys() == {
            "drafts", "rater", "practice", "synthetic", "words", "asks", "controls", "progress",
            "receipts", "told", "looked", "earlier", "sheet", "ahead", "finish", "minutes",
            "pause_minutes", "resumes", "language", "languages",
        }  # fmt: skip
        assert data["sheet"].keys() == {
            "id", "language", "earlier", "number", "before", "blocks", "questions", "confidence",
            "rationale", "flags",
        }  # fmt: skip
        (question,) = data["sheet"]["questions"]
        assert question.keys() == {
            "task", "lang", "wording", "title", "question", "instructions", "guide", "options",
            "given",
        }  # fmt: skip
        assert {key for option in question["options"] for key in option} == {
            "key", "name", "description", "examples"
        }  # fmt: skip
        assert question["given"] is None
        assert data["receipts"] == {"s1": "stored"}
        assert data["progress"] == {"done": 0, "total": 2}
        assert page_data(desk, "r2")["drafts"] != data["drafts"]


def test_who_looks_back_gets_their_own_answer_and_the_list_and_the_end_has_no_sheet(make_study):
    with open_study(make_study(2)) as study:
        desk = AnnotationDesk(study)
        task = task_of(desk, "r1")
        submit(desk, "r1", task, "L")
        back = page_data(desk, "r1", {}, Navigation("n", "list", task.task_id))
        assert back["looked"] == "n"
        assert back["sheet"]["earlier"] is True
        assert back["sheet"]["questions"][0]["given"] == {"option": "L", "skip": ""}
        (row,) = back["earlier"]["rows"]
        assert (row["number"], row["flagged"], back["earlier"]["found"]) == (1, False, 1)
        assert row["at"].startswith("20")
        assert row["task"] == task.task_id
        assert row["answer"] == "Response A"
        assert row["excerpt"].startswith("Response ")
        other = page_data(desk, "r2", {}, Navigation("n", "list", task.task_id))
        assert other["earlier"] == {"rows": [], "start": 0, "found": 0}
        assert other["sheet"]["earlier"] is False
        submit(desk, "r1", task_of(desk, "r1"), "C")
        end = page_data(desk, "r1")
    assert (end["sheet"], end["progress"]) == (None, {"done": 2, "total": 2})


PARTICIPANT = Admission("r1", "prolific")


@pytest.fixture
def participant(make_session):
    """participant(pairs, lines of study.toml) -> the desk of a study, and what the page of a
    participant is sent when it asks."""
    with ExitStack() as studies:

        def make(pairs: int, toml: str):
            desk = AnnotationDesk(studies.enter_context(open_study(make_session(pairs, toml))))
            config = partial(config_of, desk, PARTICIPANT)
            return desk, lambda: page_data(desk, "r1", {}, None, config)

        yield make


def test_a_days_end_brings_no_completion_code(participant):
    desk, data = participant(2, MORE_CODES + "\n[session]\nanswers_per_day = 1\n")
    submit(desk, "r1", task_of(desk, "r1"), "L")
    sent = data()
    assert (sent["sheet"], sent["finish"], sent["progress"]["total"]) == (None, "", 2)
    assert sent["resumes"][10:16] == "T00:00"
    assert "DONE1" not in json.dumps(sent)


@pytest.mark.parametrize(
    ("codes", "answers", "excluded", "code"),
    [
        (MORE_CODES, 1, False, "DONE1"),
        (MORE_CODES, 1, True, "STOP4"),
        (MORE_CODES, 0, False, "NONE5"),
        (CODES, 1, True, ""),
        (CODES, 0, False, "DONE1"),
    ],
)
def test_each_end_has_its_code(participant, codes, answers, excluded, code):
    desk, data = participant(1, codes)
    if answers:
        assert data()["finish"] == ""
        submit(desk, "r1", task_of(desk, "r1"), "C")
    else:
        with desk.study.store.write() as connection:
            connection.execute(sa.delete(responses))
    if excluded:
        exclude(desk.study.store, "r1", "too fast")
    assert data()["sheet"] is None
    assert data()["finish"].rpartition("=")[2] == code
    assert ("below to return" in data()["words"]["done_text"]) == bool(code)


def test_an_exclusion_while_the_page_is_made_keeps_the_code_back(participant):
    desk, data = participant(2, MORE_CODES)
    task_of(desk, "r1")
    assert config_of(desk, PARTICIPANT).finish.endswith("DONE1")
    exclude(desk.study.store, "r1", "too fast")
    assert data()["finish"].endswith("STOP4")
    assert "DONE1" not in json.dumps(data())


# What the browser has already


TEXTS = {"title": "Evenness", "question": "Which?", "instructions": "Read.", "options": [1, 2]}
DATA = {
    "words": {"submit": "Submit"},
    "asks": {"skip": {}},
    "controls": {"200b": "zero-width space"},
    "sheet": {
        "blocks": ["a text"],
        "questions": [{"task": "t1", "given": None, **TEXTS}, {"task": "t2", "given": 1, **TEXTS}],
    },
    "ahead": {"blocks": ["another"], "questions": [{"task": "t3", "given": None, **TEXTS}]},
}


def test_each_part_is_sent_once_under_its_name_and_nothing_is_lost():
    before = copy.deepcopy(DATA)
    light = lightened(DATA, frozenset())
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
    assert [kept[name] for name in light["ahead"]["blocks"]] == ["another"]


def test_what_the_browser_has_is_named_and_what_has_changed_is_sent():
    first = lightened(DATA, frozenset())
    again = lightened(DATA, frozenset(first["kept"]))
    assert again == first | {"kept": {}}
    then = lightened({**DATA, "sheet": DATA["ahead"], "ahead": None}, frozenset(first["kept"]))
    assert then["kept"] == {}  # of a unit that was sent ahead nothing is sent again
    assert then["sheet"] == first["ahead"]
    changed = lightened(DATA | {"words": {"submit": "Senden"}}, frozenset(first["kept"]))
    assert list(changed["kept"].values()) == [{"submit": "Senden"}]
    assert lightened(DATA | {"sheet": None}, frozenset(first["kept"]))["sheet"] is None


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        (None, set()),
        ({"answers": []}, set()),
        ({"has": "a" * 16}, set()),
        ({"has": ["a" * 16, 7, None, "short", "b" * 17, ["c" * 16]]}, {"a" * 16}),
        ({"has": [f"{n:016}" for n in range(1000)]}, {f"{n:016}" for n in range(64)}),
    ],
)
def test_what_a_browser_says_that_it_has_is_bounded(sent, known):
    assert read_known(sent) == known
