"""Answers as the store takes them, with flags and the words that decided."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import Study, open_study
from evenhand.study.desk.answers import SKIP_REASONS, Answer, Flag, Receipt, Withdrawal
from evenhand.study.desk.claims import last_version
from evenhand.study.desk.desk import AnnotationDesk, Task
from evenhand.study.session.sessions import PracticeDesk
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.answers import answers_table, marks_on, remarks_table
from evenhand.study.store.schema import claims, flag_events, labels, remarks
from evenhand.study.tables.evidence import Mark


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


def test_a_lease_that_ran_out_frees_the_place_and_the_late_label_counts(one_unit) -> None:
    with one_unit as study:
        desk = AnnotationDesk(study)
        late = desk.next_task("away")
        assert desk.next_task("other") is None
        let_leases_run_out(study)
        taken = desk.next_task("other")
        assert taken is not None
        assert desk.submit("other", taken.task_id, "o", "C").status == "stored"
        assert desk.submit("away", late.task_id, "a", "C").status == "stored"
        assert set(study.ratings()["rater_id"]) == {"away", "other"}


def test_who_comes_back_to_a_place_that_is_gone_is_not_sent_there(one_unit) -> None:
    with one_unit as study:
        desk = AnnotationDesk(study)
        late = desk.next_task("away")
        let_leases_run_out(study)
        taken = desk.next_task("other")
        desk.submit("other", taken.task_id, "o", "C")
        assert desk.next_task("away") is None
        assert desk.progress("away") == (0, 0)
        # What they had chosen before they left still arrives, also by another process' desk.
        assert AnnotationDesk(study).submit("away", late.task_id, "a", "C").status == "stored"
        assert desk.progress("away") == (1, 1)


def test_who_comes_back_in_time_has_the_lease_renewed(one_unit) -> None:
    with one_unit as study:
        desk = AnnotationDesk(study)
        first = desk.next_task("away")
        let_leases_run_out(study)
        assert desk.next_task("away").task_id == first.task_id
        assert desk.next_task("other") is None


def test_a_place_that_was_given_up_is_taken_up_again(one_unit) -> None:
    with one_unit as study:
        desk = AnnotationDesk(study)
        first = desk.next_task("r1")
        let_leases_run_out(study)
        desk.next_task("r2")
        assert desk.next_task("r1") is None  # r1's claim is released
        let_leases_run_out(study)
        again = desk.next_task("r1")  # and r2 has left too
        assert (again.task_id, again.order) == (first.task_id, first.order)
        assert desk.submit("r1", again.task_id, "s", "A").status == "stored"
        assert desk.next_task("r2") is None


def test_an_edit_is_added_and_counts_and_the_first_answer_stays(make_study) -> None:
    study = make_study(rubrics=["even-handedness"])
    desk = AnnotationDesk(study)
    for n in range(6):
        task = desk.next_task("r1")
        desk.submit("r1", task.task_id, f"s{n}", "A", 2.0)
    back = desk.reopen("r1")
    assert back is not None
    assert (back.tasks[0].task_id, back.tasks[0].given.option_key) == (task.task_id, "A")
    edit = Answer(submit_id="e", task_id=task.task_id, option_key="B", seconds=1.0, edit=True)
    assert [desk.submit_all("r1", [edit])[0].status for _ in range(2)] == ["stored", "duplicate"]
    assert desk.reopen("r1").tasks[0].given.option_key == "B"
    rows = study.ratings()
    assert len(rows) == 6
    assert (rows["seconds"] == 1.0).sum() == 1
    with study.store.read() as connection:
        query = sa.select(labels.c.label).where(labels.c.submit_id.in_(("s5", "e")))
        history = connection.execute(query.order_by(labels.c.event_id))
        turned = {"ab": ["A", "B"], "ba": ["B", "A"]}[task.order]
        assert list(history.scalars()) == turned
    assert desk.progress("r1") == (6, 12)
    assert desk.next_task("r1").task_id != task.task_id


@pytest.mark.slow
def test_earlier_answers_are_listed_and_no_others_can_be_opened(make_study) -> None:
    desk = AnnotationDesk(make_study(pairs=20, rubrics=["even-handedness"]))
    assert desk.earlier("r1").rows == ()
    assert desk.reopen("r1") is None
    done = []
    for n in range(35):
        task = desk.next_task("r1")
        desk.submit("r1", task.task_id, f"s{n}", "ABC"[n % 3])
        done.append(task.task_id)
    listed, rest = (desk.earlier("r1", start=start) for start in (0, 30))
    rows = [*listed.rows, *rest.rows]
    assert [row.task.task_id for row in rows] == done[::-1]
    assert [row.number for row in rows] == list(range(35, 0, -1))
    assert (len(listed.rows), listed.found, rest.start) == (30, 35, 30)
    assert [row.task.given.option_key for row in rows[:3]] == ["B", "A", "C"]
    assert all(row.task.given.created_at.startswith("20") for row in rows)
    assert desk.earlier("r1", start=1000).rows == ()
    assert desk.reopen("r1", done[10]).tasks[0].task_id == done[10]
    assert desk.reopen("r1", done[0]).tasks[0].task_id == done[0]
    assert desk.reopen("r1", desk.next_task("r1").task_id) is None
    assert desk.reopen("r2", done[10]) is None


@pytest.mark.slow
def test_no_repeat_stands_beside_its_first_answer(make_study) -> None:
    study = make_study(pairs=20, rubrics=["even-handedness"])
    change_config(study.folder, {"annotation": {"repeat_share": 0.5, "repeat_gap": 6}})
    with open_study(study.folder) as repeating:
        desk = AnnotationDesk(repeating)
        count = 0
        while task := desk.next_task("r1"):
            texts = [block.text for block in task.people.blocks]
            earlier = [
                [block.text for block in row.task.people.blocks] for row in desk.earlier("r1").rows
            ]
            assert texts not in earlier
            desk.submit("r1", task.task_id, task.task_id, "C")
            count += 1
        assert count == 60


@pytest.mark.slow
def test_a_skip_is_an_answer_without_a_label(make_study) -> None:
    study = make_study(raters_per_unit=1, rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = desk.next_task("r1")
    skip = Answer(submit_id="s", task_id=task.task_id, skip_reason=SKIP_REASONS[0])
    assert desk.submit_all("r1", [skip])[0].status == "stored"
    row = study.ratings().iloc[0]
    assert (row["label"], row["unscored_reason"]) == ("", "skipped_undecidable")
    assert desk.progress("r1") == (1, 24)
    assert desk.reopen("r1").tasks[0].given.skip_reason == SKIP_REASONS[0]
    edit = Answer(submit_id="e", task_id=task.task_id, option_key="1", edit=True)
    assert desk.submit_all("r1", [edit])[0].status == "stored"
    assert study.ratings()["label"].tolist() == ["1"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"option_key": "Z"},
        {"skip_reason": "bored"},
        {"option_key": "1", "skip_reason": SKIP_REASONS[0]},
        {},
    ],
)
def test_what_is_neither_a_label_nor_a_skip_is_not_stored(make_study, wrong) -> None:
    study = make_study(rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = desk.next_task("r1")
    answer = Answer(submit_id="s", task_id=task.task_id, **wrong)
    assert desk.submit_all("r1", [answer])[0].status == "unknown_task"
    assert study.ratings().empty


def test_remarks_stand_beside_the_labels_and_outside_the_ratings(make_study) -> None:
    study = make_study(rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = desk.next_task("r1")
    answer = Answer(
        submit_id="s", task_id=task.task_id, option_key="2", confidence=3, rationale="It is."
    )
    flag = Flag(submit_id="f", task_id=task.task_id, reason="harmful", text="See line 2.")
    for statuses in (["stored", "stored"], ["duplicate", "duplicate"]):
        assert [r.status for r in desk.submit_all("r1", [answer, flag])] == statuses
    bad = Flag(submit_id="g", task_id=task.task_id, reason="dull")
    assert desk.submit_all("r1", [bad])[0].status == "unknown_task"
    assert desk.submit_all("r2", [flag])[0].status == "unknown_task"
    given = desk.reopen("r1").tasks[0].given
    assert (given.option_key, given.confidence, given.rationale) == ("2", 3, "It is.")
    table = remarks_table(study.store)
    assert table["kind"].tolist() == ["answer", "flag"]
    assert table["confidence"].tolist()[0] == 3
    assert table["text"].tolist() == ["It is.", "See line 2."]
    assert len(study.ratings()) == 1
    assert "confidence" not in study.ratings()


def test_several_answers_go_in_together_or_not_at_all(make_study) -> None:
    study = make_study(rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = desk.next_task("r1")
    good = Answer(submit_id="s", task_id=task.task_id, option_key="2")
    broken = Answer(
        submit_id="t", task_id=task.task_id, option_key="2", seconds=object(), edit=True
    )  # type: ignore[arg-type]
    with pytest.raises(sa.exc.SQLAlchemyError):
        desk.submit_all("r1", [good, broken])
    assert study.ratings().empty
    assert desk.next_task("r1").task_id == task.task_id
    assert desk.submit_all("r1", [good])[0].status == "stored"


# A rater's own flags


@pytest.fixture
def desk(make_study) -> AnnotationDesk:
    return AnnotationDesk(make_study(pairs=20, rubrics=["even-handedness"]))


def flag(desk: AnnotationDesk, rater: str = "r1", name: str = "f") -> str:
    """Flag the unit at hand; returns its task."""
    task = desk.next_task(rater).task_id
    sent = Flag(submit_id=name, task_id=task, reason="other", text="odd")
    assert desk.submit_all(rater, [sent])[0].status == "stored"
    return task


def take_back(desk: AnnotationDesk, rater: str, task: str, name: str = "f") -> str:
    word = Withdrawal(submit_id=f"w-{name}", task_id=task, flag_id=name)
    return desk.submit_all(rater, [word])[0].status


def test_a_flag_stands_on_its_unit_at_hand_and_when_looking_back(desk):
    task = flag(desk)
    (own,) = desk.next_sheet("r1").flags
    assert (own.flag_id, own.task_id, own.reason, own.text) == ("f", task, "other", "odd")
    desk.submit("r1", task, "s", "A")
    assert desk.next_sheet("r1").flags == ()
    assert desk.reopen("r1").flags == (own,)
    assert [row.flagged for row in desk.earlier("r1").rows] == [True]
    assert desk.next_sheet("r2").flags == ()


def test_it_is_withdrawn_once_and_both_rows_stay(desk):
    task = flag(desk)
    assert [take_back(desk, "r1", task) for _ in range(2)] == ["stored", "duplicate"]
    assert desk.next_sheet("r1").flags == ()
    with desk.study.store.read() as connection:
        assert len(connection.execute(sa.select(remarks)).all()) == 1
        (row,) = connection.execute(sa.select(flag_events)).all()
    assert (row.kind, row.done_by) == ("withdrawn", "r1")
    flag(desk, name="again")  # and may be raised anew
    assert [own.flag_id for own in desk.next_sheet("r1").flags] == ["again"]


def test_nobody_withdraws_what_is_not_theirs_or_not_there(desk):
    task = flag(desk)
    other = desk.next_task("r2").task_id
    assert take_back(desk, "r2", other) == "unknown_task"
    assert take_back(desk, "r2", task) == "unknown_task"
    assert take_back(desk, "r1", task, "none") == "unknown_task"
    desk.submit("r1", task, "s", "A")
    assert take_back(desk, "r1", desk.next_task("r1").task_id) == "unknown_task"  # another unit's
    assert len(desk.reopen("r1").flags) == 1


@pytest.mark.slow
def test_a_hidden_repeat_does_not_show_the_flag_on_its_first_showing(make_study):
    study = make_study(pairs=8, rubrics=["even-handedness"])
    change_config(study.folder, {"annotation": {"repeat_share": 0.5, "repeat_gap": 2}})
    with open_study(study.folder) as repeating:
        desk = AnnotationDesk(repeating)
        count = 0
        while sheet := desk.next_sheet("r1"):
            assert sheet.flags == ()
            flag(desk, name=f"f{count}")
            desk.submit("r1", sheet.tasks[0].task_id, f"s{count}", "A")
            count += 1
    assert count == 24


# The words that decided


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
