"""Looking back: all earlier answers, found by number, prompt or text."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.sheets import LONGEST_SEARCH, PAGE, excerpt
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import claims, labels


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> AnnotationDesk:
    """2,000 answers of one rater: synthetic."""
    from harness.studies import marked_study

    study = marked_study(
        tmp_path_factory.mktemp("long") / "study",
        pairs=1000,
        rubrics=["refusal"],
        response=lambda pair, side: f"An ANSWER\nto {pair}{side}. " + "word " * 300,
    )
    desk = AnnotationDesk(study)
    at = "2026-05-04T08:00:00.000+00:00"
    common = {"rubric": "refusal", "rubric_hash": study.rubrics["refusal"].hash, "draw": 0}
    given, taken = [], []
    units = study.rubric_units(study.rubrics["refusal"])
    for n, unit in enumerate(units, start=1):
        own = common | {"unit_id": unit, "rater_id": "r1", "order": ""}
        taken.append(
            own | {"task_id": f"t{n}", "claimed_at": at, "state": "labelled", "version": n}
        )
        given.append(own | {"submit_id": f"s{n}", "rater_kind": "human", "created_at": at,
                            "label": "1"})  # fmt: skip
    with study.store.write() as connection:
        connection.execute(sa.insert(claims), taken)
        connection.execute(sa.insert(labels), given)
    return desk


def numbers(desk: AnnotationDesk, search: str = "", start: int = 0) -> list[int]:
    return [row.number for row in desk.earlier("r1", search, start).rows]


@pytest.mark.slow
def test_all_are_listed_a_page_at_a_time(desk):
    first = desk.earlier("r1")
    assert (first.found, len(first.rows)) == (2000, PAGE)
    assert numbers(desk)[0] == 2000
    assert numbers(desk, start=1990) == list(range(10, 0, -1))
    row = first.rows[0]
    assert (row.task.given.option_key, row.task.given.created_at[:10]) == ("1", "2026-05-04")
    assert len(row.excerpt) <= 160
    assert desk.reopen("r1", "t1").tasks[0].task_id == "t1"


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("argue for 7.", 1),  # the prompt of one side
        ("ARGUE  FOR 7.", 1),
        ("answer to 12a.", 1),  # over the end of a line
        ("answer to 12", 22),  # 12 and 120 to 129, both sides
        ("word word", 2000),
        ("nowhere", 0),
        ("%", 0),
        ("   ", 2000),
    ],
)
def test_a_search_finds_what_was_shown(desk, search, found):
    assert desk.earlier("r1", search).found == found


def test_a_number_finds_the_answer_of_this_number(desk):
    assert 1234 in numbers(desk, "1234")
    assert numbers(desk, "#1234") == [1234]


def test_an_excerpt_shows_what_was_found(desk):
    (row,) = desk.earlier("r1", "for 7.").rows
    assert "Argue for 7." in row.excerpt
    people = row.task.people
    assert excerpt(people, "") == people.blocks[-1].text[:160]
    late = excerpt(people, "an answer to")
    assert "ANSWER to 7a." in late


def test_a_search_of_two_thousand_is_quick_and_its_words_are_bounded(desk):
    begun = time.process_time()
    assert desk.earlier("r1", "nowhere " + "x" * 100_000).found == 0
    assert time.process_time() - begun < 2  # usually 0.15 s
    assert desk.earlier("r1", "word" + " " * LONGEST_SEARCH + "x").found == 2000  # cut


def test_no_other_rater_finds_anything(desk):
    assert desk.earlier("r2", "word").found == 0


def test_where_units_are_repeated_the_list_ends_before_the_first_answer(make_study):
    study = make_study(pairs=20, rubrics=["even-handedness"])
    change_config(study.folder, {"annotation": {"repeat_share": 0.5, "repeat_gap": 6}})
    with open_study(study.folder) as repeating:
        own = AnnotationDesk(repeating)
        for n in range(9):
            own.submit("r1", own.next_task("r1").task_id, f"s{n}", "A")
        assert [row.number for row in own.earlier("r1").rows] == [9, 8, 7, 6, 5, 4]
        assert own.earlier("r1", "argue").found == 6
