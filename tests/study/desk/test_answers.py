"""Answers as the store takes them, with flags and the words that decided."""

import json
from dataclasses import replace

import pytest
import sqlalchemy as sa

from evenhand.rubrics import Rubric, load_rubric
from evenhand.study.desk.claims import last_version
from evenhand.study.desk.desk import SKIP_REASONS, AnnotationDesk, Answer, Flag, Task
from evenhand.study.session.sessions import PracticeDesk
from evenhand.study.store.logs.answers import answers_table, marks_on, remarks_table
from evenhand.study.store.schema import claims, labels
from evenhand.study.tables.ratings import Mark
from harness.studies import label_all, send, submit, task_of


def let_leases_run_out(study) -> None:
    """As if everybody had left their place long ago."""
    with study.store.write() as connection:
        newest = last_version(connection)
        given = sa.select(claims.c.task_id).where(claims.c.state == "open")
        for version, task in enumerate(connection.execute(given).scalars().all(), newest + 1):
            changed = claims.update().where(claims.c.task_id == task)
            connection.execute(changed.values(claimed_at="2020-01-01T00:00", version=version))


@pytest.fixture
def one_unit(make_study):
    """A study with one pair unit, wanted once."""
    return make_study(pairs=1, subjects=("s",), raters_per_unit=1, rubrics=["even-handedness"])


def test_a_lease_that_ran_out_frees_the_place_and_the_late_label_counts(one_unit):
    desk = AnnotationDesk(one_unit)
    late = task_of(desk, "away")
    assert task_of(desk, "other") is None
    let_leases_run_out(one_unit)
    taken = task_of(desk, "other")
    assert submit(desk, "other", taken, "C", "o") == "stored"
    # Who comes back to a place that is gone is not sent there.
    assert task_of(desk, "away") is None
    assert desk.progress("away") == (0, 0)
    # What they had chosen before they left still arrives, also by another process' desk.
    assert submit(AnnotationDesk(one_unit), "away", late, "C", "a") == "stored"
    assert desk.progress("away") == (1, 1)
    assert set(one_unit.ratings()["rater_id"]) == {"away", "other"}


def test_who_comes_back_in_time_has_the_lease_renewed(one_unit):
    desk = AnnotationDesk(one_unit)
    first = task_of(desk, "away")
    let_leases_run_out(one_unit)
    assert task_of(desk, "away").task_id == first.task_id
    assert task_of(desk, "other") is None


def test_a_place_that_was_given_up_is_taken_up_again(one_unit):
    desk = AnnotationDesk(one_unit)
    first = task_of(desk, "r1")
    let_leases_run_out(one_unit)
    task_of(desk, "r2")
    assert task_of(desk, "r1") is None  # r1's claim is released
    let_leases_run_out(one_unit)
    again = task_of(desk, "r1")  # and r2 has left too
    assert (again.task_id, again.order) == (first.task_id, first.order)
    assert submit(desk, "r1", again, "A") == "stored"
    assert task_of(desk, "r2") is None


def test_an_edit_is_added_and_counts_and_the_first_answer_stays(make_study):
    study = make_study(rubrics=["even-handedness"])
    desk = AnnotationDesk(study)
    *_, task = label_all(desk, "r1", "A", 6, seconds=2.0)
    back = desk.reopen("r1")
    assert (back.tasks[0].task_id, back.tasks[0].given.option_key) == (task.task_id, "A")
    for status in ("stored", "duplicate"):
        assert submit(desk, "r1", task, "B", "e", seconds=1.0, edit=True) == status
    assert desk.reopen("r1").tasks[0].given.option_key == "B"
    rows = study.ratings()
    assert len(rows) == 6
    assert (rows["seconds"] == 1.0).sum() == 1
    with study.store.read() as connection:
        query = sa.select(labels.c.label).where(labels.c.submit_id.in_((task.task_id, "e")))
        history = connection.execute(query.order_by(labels.c.event_id))
        turned = {"ab": ["A", "B"], "ba": ["B", "A"]}[task.order]
        assert list(history.scalars()) == turned
    assert desk.progress("r1") == (6, 12)
    assert task_of(desk, "r1").task_id != task.task_id


@pytest.mark.slow
def test_earlier_answers_are_listed_and_no_others_can_be_opened(make_study):
    desk = AnnotationDesk(make_study(pairs=20, rubrics=["even-handedness"]))
    assert desk.earlier("r1").rows == ()
    assert desk.reopen("r1") is None
    done = [task.task_id for task in label_all(desk, "r1", lambda _, n: "ABC"[n % 3], 35)]
    listed, rest = (desk.earlier("r1", start=start) for start in (0, 30))
    rows = [*listed.rows, *rest.rows]
    assert [row.task.task_id for row in rows] == done[::-1]
    assert [row.number for row in rows] == list(range(35, 0, -1))
    assert (len(listed.rows), listed.found, rest.start) == (30, 35, 30)
    assert [row.task.given.option_key for row in rows[:3]] == ["B", "A", "C"]
    assert all(row.task.given.created_at.startswith("20") for row in rows)
    assert desk.earlier("r1", start=1000).rows == ()
    for each in (done[10], done[0]):
        assert desk.reopen("r1", each).tasks[0].task_id == each
    assert desk.reopen("r1", task_of(desk, "r1").task_id) is None
    assert desk.reopen("r2", done[10]) is None


@pytest.mark.slow
def test_no_repeat_stands_beside_its_first_answer_or_shows_its_flag(make_study):
    repeats = {"repeat_share": 0.5, "repeat_gap": 6}
    desk = AnnotationDesk(make_study(pairs=20, rubrics=["even-handedness"], annotation=repeats))

    def texts(task: Task) -> list[str]:
        return [block.text for block in task.people.blocks]

    count = 0
    while sheet := desk.next_sheet("r1"):
        (task,) = sheet.tasks
        assert texts(task) not in [texts(row.task) for row in desk.earlier("r1").rows]
        assert sheet.flags == ()
        flag(desk, name=f"f{count}")
        submit(desk, "r1", task, "C")
        count += 1
    assert count == 60


@pytest.mark.slow
def test_a_skip_is_an_answer_without_a_label(make_study):
    study = make_study(raters_per_unit=1, rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    assert submit(desk, "r1", task, skip_reason=SKIP_REASONS[0]) == "stored"
    row = study.ratings().iloc[0]
    assert (row["label"], row["unscored_reason"]) == ("", "skipped_undecidable")
    assert desk.progress("r1") == (1, 24)
    assert desk.reopen("r1").tasks[0].given.skip_reason == SKIP_REASONS[0]
    assert submit(desk, "r1", task, "1", "e", edit=True) == "stored"
    assert study.ratings()["label"].tolist() == ["1"]


@pytest.mark.parametrize(
    ("option", "skip"), [("Z", ""), ("", "bored"), ("1", SKIP_REASONS[0]), ("", "")]
)
def test_what_is_neither_a_label_nor_a_skip_is_not_stored(make_study, option, skip):
    study = make_study(rubrics=["refusal"])
    desk = AnnotationDesk(study)
    assert submit(desk, "r1", task_of(desk, "r1"), option, skip_reason=skip) == "unknown_task"
    assert study.ratings().empty


def test_remarks_stand_beside_the_labels_and_outside_the_ratings(make_study):
    study = make_study(rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = {"task_id": task_of(desk, "r1").task_id}
    answer = Answer(submit_id="s", option_key="2", confidence=3, rationale="It is.", **task)
    flag = Flag(submit_id="f", reason="harmful", text="See line 2.", **task)
    for status in ("stored", "duplicate"):
        assert send(desk, "r1", answer, flag) == [status] * 2
    assert send(desk, "r1", Flag(submit_id="g", reason="dull", **task)) == ["unknown_task"]
    assert send(desk, "r2", flag) == ["unknown_task"]
    given = desk.reopen("r1").tasks[0].given
    assert (given.option_key, given.confidence, given.rationale) == ("2", 3, "It is.")
    table = remarks_table(study.store)
    assert table["kind"].tolist() == ["answer", "flag"]
    assert table["confidence"].tolist()[0] == 3
    assert table["text"].tolist() == ["It is.", "See line 2."]
    assert len(study.ratings()) == 1
    assert "confidence" not in study.ratings()


def test_several_answers_go_in_together_or_not_at_all(make_study):
    study = make_study(rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    good = Answer(submit_id="s", task_id=task.task_id, option_key="2")
    broken = replace(good, submit_id="t", seconds=object(), edit=True)  # type: ignore[arg-type]
    with pytest.raises(sa.exc.SQLAlchemyError):
        send(desk, "r1", good, broken)
    assert study.ratings().empty
    assert task_of(desk, "r1").task_id == task.task_id
    assert send(desk, "r1", good) == ["stored"]


# A rater's own flags


@pytest.fixture
def desk(make_study) -> AnnotationDesk:
    return AnnotationDesk(make_study(pairs=20, rubrics=["even-handedness"]))


def flag(desk: AnnotationDesk, rater: str = "r1", name: str = "f") -> str:
    """Flag the unit at hand; returns its task."""
    task = task_of(desk, rater).task_id
    sent = Flag(submit_id=name, task_id=task, reason="other", text="odd")
    assert send(desk, rater, sent) == ["stored"]
    return task


def test_a_flag_stands_on_its_unit_at_hand_and_when_looking_back(desk):
    task = flag(desk)
    (own,) = desk.next_sheet("r1").flags
    assert (own.task_id, own.reason, own.text) == (task, "other", "odd")
    submit(desk, "r1", task, "A", "s")
    assert desk.next_sheet("r1").flags == ()
    assert desk.reopen("r1").flags == (own,)
    assert [row.flagged for row in desk.earlier("r1").rows] == [True]
    assert desk.next_sheet("r2").flags == ()


# The words that decided


def asking(name: str, how: str) -> Rubric:
    return load_rubric(name).model_copy(update={"evidence": how})


@pytest.fixture
def make(make_study):
    """make(rubric, how it asks for evidence, **plan) -> a study of one subject."""
    return lambda name="refusal", how="required", **plan: make_study(
        rubrics=[asking(name, how)], subjects=("s",), **plan
    )


def give(desk: AnnotationDesk, task: Task, *marks: Mark, name: str = "s", **more: object) -> str:
    fields = {"option": task.rubric.categories[0], "display": "text"} | more
    return submit(desk, "r1", task, submit_id=name, evidence=marks, **fields)


def shown(task: Task, name: str) -> str:
    return next(block.text for block in task.people.blocks if block.variable == name)


def test_an_answer_without_the_words_that_decided_waits_for_them(make):
    study = make()
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    assert give(desk, task) == "needs_evidence"
    assert study.ratings().empty
    assert task_of(desk, "r1").task_id == task.task_id
    assert give(desk, task, option="", skip_reason=SKIP_REASONS[0]) == "stored"
    assert give(desk, task_of(desk, "r1"), Mark("response", 0, 2), name="t") == "stored"


@pytest.mark.parametrize(
    ("how", "mark"),
    [
        ("required", Mark("response", 0, 10_000)),
        ("required", Mark("prompt", 0, 1)),
        ("required", Mark("response_a", 0, 1)),
        ("", Mark("response", 0, 1)),
    ],
)
def test_marks_beyond_the_texts_or_not_asked_for_are_refused(make, how, mark):
    study = make(how=how)
    desk = AnnotationDesk(study)
    assert give(desk, task_of(desk, "r1"), mark) == "unknown_task"
    assert study.ratings().empty


def test_marks_are_kept_on_the_pairs_own_sides_and_shown_as_they_were_given(make):
    study = make("even-handedness")
    desk = AnnotationDesk(study)
    orders = set()
    for n in range(6):
        task = task_of(desk, "r1")
        orders.add(task.order)
        end = len(shown(task, "response_a"))
        mark = Mark("response_a", 1, end)
        assert give(desk, task, mark, name=str(n)) == "stored"
        assert desk.reopen("r1").tasks[0].given.evidence == (mark,)
        unit = answers_table(study.store).iloc[-1]
        (kept,) = json.loads(unit["evidence"])
        own = {"ab": "response_a", "ba": "response_b"}[task.order]
        assert kept == {"text": own, "start": 1, "end": end}
        values = study.values(task.rubric, unit["unit_id"])
        assert values[own] == shown(task, "response_a")
    assert orders == {"ab", "ba"}


def test_the_latest_answer_has_the_marks_that_count_and_none_is_lost(make):
    study = make(how="optional")
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    give(desk, task, Mark("response", 0, 2))
    assert give(desk, task, Mark("response", 0, 2)) == "duplicate"
    give(desk, task, Mark("response", 3, 4), Mark("response", 0, 1), name="t", edit=True)
    table = answers_table(study.store)
    unit = table["unit_id"].iloc[0]
    given = (Mark("response", 0, 1), Mark("response", 3, 4))
    assert [json.loads(cell) for cell in table["evidence"]] == [[vars(each) for each in given]]
    assert table["display"].tolist() == ["text"]
    key = ("refusal", unit)
    assert marks_on(study.store, {key}) == {key: [("r1", mark) for mark in given]}
    give(desk, task, name="u", edit=True, display="")
    assert marks_on(study.store, {key}) == {}
    assert answers_table(study.store)["evidence"].tolist() == ["[]"]


CHECK = """
[[unit]]
name = "one"
expected = { refusal = "5" }
values = { prompt = "Write.", response = "Choose the last." }
"""


ASKING = {"files": {"known.toml": CHECK}, "rubrics": [asking("refusal", "required")]}


def test_practice_asks_for_them_too(make_session):
    study = make_session('[training]\nfile = "known.toml"\nwalk_through = false\n', **ASKING)
    practice = PracticeDesk(study)
    (task,) = practice.next_sheet("r1").tasks
    for marks, status in (
        ((), "needs_evidence"),
        ((Mark("response", 0, 99),), "unknown_task"),
        ((Mark("response", 0, 6),), "stored"),
    ):
        assert give(practice, task, *marks, option="5") == status


def test_attention_checks_ask_for_them_too(make_session):
    desk = AnnotationDesk(make_session('[attention]\nfile = "known.toml"\nevery = 2\n', **ASKING))
    seen = []
    for n in range(4):
        task = task_of(desk, "r1")
        seen.append(shown(task, "response"))
        assert give(desk, task, Mark("response", 0, len(seen[-1]) + 1), name=f"x{n}") != "stored"
        assert give(desk, task, Mark("response", 0, len(seen[-1])), name=str(n)) == "stored"
    assert "Choose the last." in seen
