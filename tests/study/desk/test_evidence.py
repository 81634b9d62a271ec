"""The words that decided: asked for by the rubric, held against the texts, stored and exported."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import Study
from evenhand.study.desk.answers import SKIP_REASONS, Answer, Receipt
from evenhand.study.desk.desk import AnnotationDesk, Task
from evenhand.study.session.practice import PracticeDesk
from evenhand.study.store.logs.answers import answers_table, marks_on
from evenhand.study.tables.evidence import Mark

PAIR, SINGLE = "even-handedness", "refusal"


def asking(name: str, how: str) -> Rubric:
    return load_rubric(name).model_copy(update={"evidence": how})


@pytest.fixture
def make(make_study: Callable[..., Study]) -> Callable[..., Study]:
    return lambda name=SINGLE, how="required", **plan: make_study(
        rubrics=[asking(name, how)], subjects=("s",), **plan
    )


def give(desk: AnnotationDesk, task: Task, *marks: Mark, submit: str = "s", **more: object) -> str:
    said: dict[str, object] = {"option_key": task.rubric.categories[0], "display": "text"} | more
    answer = Answer(submit_id=submit, task_id=task.task_id, evidence=marks, **said)  # type: ignore[arg-type]
    (receipt,) = desk.submit_all("r1", [answer])
    assert isinstance(receipt, Receipt)
    return receipt.status


def shown(task: Task, name: str) -> str:
    return next(block.text for block in task.people.blocks if block.variable == name)


def test_an_answer_without_the_words_that_decided_waits_for_them(make) -> None:
    study = make()
    desk = AnnotationDesk(study)
    task = desk.next_task("r1")
    assert give(desk, task) == "needs_evidence"
    assert study.ratings().empty
    assert desk.next_task("r1").task_id == task.task_id
    assert give(desk, task, option_key="", skip_reason=SKIP_REASONS[0]) == "stored"
    following = desk.next_task("r1")
    assert give(desk, following, Mark("response", 0, 2), submit="t") == "stored"


def test_marks_may_be_left_out_where_they_are_optional(make) -> None:
    desk = AnnotationDesk(make(how="optional"))
    assert give(desk, desk.next_task("r1")) == "stored"
    assert give(desk, desk.next_task("r1"), Mark("response", 0, 2), submit="t") == "stored"


@pytest.mark.parametrize(
    ("how", "mark"),
    [
        ("required", Mark("response", 0, 10_000)),
        ("required", Mark("prompt", 0, 1)),
        ("required", Mark("response_a", 0, 1)),
        ("", Mark("response", 0, 1)),
    ],
)
def test_marks_beyond_the_texts_or_not_asked_for_are_refused(make, how: str, mark: Mark) -> None:
    study = make(how=how)
    desk = AnnotationDesk(study)
    assert give(desk, desk.next_task("r1"), mark) == "unknown_task"
    assert study.ratings().empty


def test_marks_are_kept_on_the_pairs_own_sides_and_shown_as_they_were_given(make) -> None:
    study = make(PAIR)
    desk = AnnotationDesk(study)
    orders = set()
    for n in range(6):
        task = desk.next_task("r1")
        orders.add(task.order)
        end = len(shown(task, "response_a"))
        mark = Mark("response_a", 1, end)
        assert give(desk, task, mark, submit=str(n)) == "stored"
        assert desk.reopen("r1").tasks[0].given.evidence == (mark,)
        unit = answers_table(study.store).iloc[-1]
        (kept,) = json.loads(unit["evidence"])
        own = {"ab": "response_a", "ba": "response_b"}[task.order]
        assert kept == {"text": own, "start": 1, "end": end}
        values = study.values(task.rubric, unit["unit_id"])
        assert values[own] == shown(task, "response_a")
    assert orders == {"ab", "ba"}


def test_the_latest_answer_has_the_marks_that_count_and_none_is_lost(make) -> None:
    study = make(how="optional")
    desk = AnnotationDesk(study)
    task = desk.next_task("r1")
    give(desk, task, Mark("response", 0, 2))
    assert give(desk, task, Mark("response", 0, 2)) == "duplicate"
    give(desk, task, Mark("response", 3, 4), Mark("response", 0, 1), submit="t", edit=True)
    table = answers_table(study.store)
    unit = table["unit_id"].iloc[0]
    given = (Mark("response", 0, 1), Mark("response", 3, 4))
    assert [json.loads(cell) for cell in table["evidence"]] == [[vars(each) for each in given]]
    assert table["display"].tolist() == ["text"]
    key = (SINGLE, unit)
    assert marks_on(study.store, {key}) == {key: [("r1", mark) for mark in given]}
    give(desk, task, submit="u", edit=True, display="")
    assert marks_on(study.store, {key}) == {}
    assert answers_table(study.store)["evidence"].tolist() == ["[]"]


CHECK = """
[[unit]]
name = "one"
expected = { refusal = "5" }
values = { prompt = "Write.", response = "Choose the last." }
"""


def test_practice_asks_for_them_too(make_session: Callable[..., Study]) -> None:
    study = make_session(
        '[training]\nfile = "practice.toml"\nwalk_through = false\n',
        {"practice.toml": CHECK},
        rubrics=[asking(SINGLE, "required")],
    )
    practice = PracticeDesk(study)
    (task,) = practice.next_sheet("r1").tasks
    for mark, status in (
        ((), "needs_evidence"),
        ((Mark("response", 0, 99),), "unknown_task"),
        ((Mark("response", 0, 6),), "stored"),
    ):
        answer = Answer(submit_id="p", task_id=task.task_id, option_key="5", evidence=mark)
        assert practice.submit_all("r1", [answer])[0].status == status


def test_attention_checks_ask_for_them_too(make_session: Callable[..., Study]) -> None:
    study = make_session(
        '[attention]\nfile = "checks.toml"\nevery = 2\n',
        {"checks.toml": CHECK},
        rubrics=[asking(SINGLE, "required")],
    )
    desk = AnnotationDesk(study)
    seen = []
    for n in range(4):
        task = desk.next_task("r1")
        seen.append(shown(task, "response"))
        assert give(desk, task, Mark("response", 0, len(seen[-1]) + 1), submit=f"x{n}") != "stored"
        assert give(desk, task, Mark("response", 0, len(seen[-1])), submit=str(n)) == "stored"
    assert "Choose the last." in seen
