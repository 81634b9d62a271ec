"""Flags and what is done about them, sorted disagreements, and imported ratings."""

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.analysis.report.sections.raters import KINDS as REPORTED
from evenhand.analysis.report.sections.raters import kind_title
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.desk.desk import AnnotationDesk, Flag
from evenhand.study.lead.disagreements import (
    KINDS,
    raised_flags,
    settle_flag,
    sort_disagreement,
    sorted_so_far,
)
from evenhand.study.lead.imports import import_ratings
from evenhand.study.store.database import append
from evenhand.study.store.logs.answers import remarks_table, standing
from evenhand.study.store.schema import flag_events, sorted_disagreements
from evenhand.study.tables.ratings import validate_ratings
from harness.studies import task_of, upgraded_without, with_edited_rubric


@pytest.fixture
def study(make_study) -> Study:
    """Two flags from the desk, on one unit."""
    study = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    desk = AnnotationDesk(study)
    desk.register("ann")
    task = task_of(desk, "ann")
    for reason in ("harmful", "unclear_rubric"):
        desk.submit_all("ann", [Flag(submit_id=reason, task_id=task.task_id, reason=reason)])
    return study


def test_flags_are_open_oldest_first_then_closed(study):
    first, second = raised_flags(study)
    assert (first.reason, second.reason) == ("harmful", "unclear_rubric")
    assert first.is_open
    assert first.rater_id == "ann"
    settle_flag(study, first.number, " taken out ", "lead")
    left, closed = raised_flags(study)
    assert left.reason == "unclear_rubric"
    assert (closed.is_open, closed.answer, closed.done_by) == (False, "taken out", "lead")


def test_a_flag_that_an_earlier_version_opened_again_is_open(study):
    number = raised_flags(study)[0].number
    settle_flag(study, number, "taken out", "lead")
    again = {"flag_id": number, "kind": "reopened", "text": "", "done_by": "lead"}
    with study.store.write() as connection:
        append(connection, flag_events, again)
    assert raised_flags(study)[0].is_open
    settle_flag(study, number, "put back", "deputy")
    assert study.store.values(sa.select(flag_events.c.kind)) == ["closed", "reopened", "closed"]


def test_who_raised_a_flag_is_answered_and_nobody_else(study):
    desk, number = AnnotationDesk(study), raised_flags(study)[0].number
    desk.register("ben")
    settle_flag(study, number, "the rubric was changed", "lead", " Thank you. ")
    (told,) = desk.answers_to_flags("ann")
    assert (told.reason, told.answer) == ("harmful", "Thank you.")
    assert desk.answers_to_flags("ben") == ()
    closed = raised_flags(study)[-1]
    assert (closed.is_open, closed.answer) == (False, "the rubric was changed")


def test_what_cannot_be(study):
    number = raised_flags(study)[0].number
    with pytest.raises(InputError, match="say what was done"):
        settle_flag(study, number, "  ", "lead")
    settle_flag(study, number, "done", "lead")
    with pytest.raises(InputError, match="closed already"):
        settle_flag(study, number, "again", "lead")
    with pytest.raises(InputError, match="no flag 99"):
        settle_flag(study, 99, "done", "lead")


def withdraw(study: Study, number: int) -> None:
    """As annotators could do before 0.3.0."""
    taken_back = {"flag_id": number, "kind": "withdrawn", "text": "", "done_by": "ann"}
    with study.store.write() as connection:
        append(connection, flag_events, taken_back)


def test_the_lead_sees_what_was_withdrawn_and_cannot_settle_it(study):
    for flag in raised_flags(study):
        withdraw(study, flag.number)
    found = raised_flags(study)
    assert [(flag.is_open, flag.answer, flag.done_by) for flag in found] == [(False, "", "ann")] * 2
    with pytest.raises(InputError, match="closed already"):
        settle_flag(study, found[0].number, "done", "lead")
    desk = AnnotationDesk(study)
    assert desk.next_sheet("ann").flags == ()


def test_the_export_has_the_flag_and_when_it_was_withdrawn(study):
    withdraw(study, raised_flags(study)[0].number)
    said = remarks_table(study.store)
    assert said["reason"].tolist() == ["harmful", "unclear_rubric"]
    assert said["withdrawn_at"].str[:2].tolist() == ["20", ""]
    assert standing(said)["reason"].tolist() == ["unclear_rubric"]


# Disagreements, sorted by who is wrong


UNIT = "p0001|s1|a"


def say(study: Study, kind: str, note: str = "", grader: str = "g", **other: str) -> None:
    about = {"rubric": "refusal", "unit_id": UNIT} | other
    sort_disagreement(study, "lead", **about, grader=grader, kind=kind, note=note)  # type: ignore[arg-type]


def held(study: Study) -> list[tuple[str, str, str]]:
    return [(each.grader, each.kind, each.note) for each in sorted_so_far(study)]


def test_the_report_knows_every_kind():
    assert KINDS == REPORTED
    assert len({kind_title(kind) for kind in KINDS}) == 3


def test_the_latest_word_counts_and_can_be_taken_back(make_study):
    study = make_study(pairs=1)
    with upgraded_without(study, sorted_disagreements) as again:
        say(again, "grader_wrong", " it missed the irony\n")
        say(again, "people_wrong", grader="h")
        say(again, "rubric_unclear", "on reflection")
        assert held(again) == [("h", "people_wrong", ""), ("g", "rubric_unclear", "on reflection")]
        say(again, "")
        assert held(again) == [("h", "people_wrong", "")]


@pytest.mark.parametrize("same", [True, False])
def test_under_an_edited_text_only_the_same_meaning_counts(make_study, same):
    study = make_study(pairs=1)
    say(study, "grader_wrong")
    with with_edited_rubric(study, "refusal", same=same) as edited:
        assert held(edited) == ([("g", "grader_wrong", "")] if same else [])
        say(edited, "rubric_unclear")
        assert held(edited) == [("g", "rubric_unclear", "")]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "nobody"}, "is none of grader_wrong"),
        ({"kind": "grader_wrong", "rubric": "tone"}, "no rubric 'tone'"),
        ({"kind": "grader_wrong", "unit_id": "p0009|s1|a"}, "no response item 'p0009|s1|a'"),
    ],
)
def test_what_does_not_hold_together_is_refused(make_study, wrong, said):
    study = make_study(pairs=1)
    with pytest.raises(InputError, match=said.replace("|", r"\|")):
        say(study, **wrong)
    assert held(study) == []


# Ratings from elsewhere


@pytest.mark.slow
def test_postgresql_knows_at_once_how_many_came(make_session, new_postgresql):
    study = make_session(pairs=20, store=new_postgresql())
    units = study.units_by_kind("all")["response"]
    frame = pd.DataFrame({"unit_id": list(units), "rater_id": "ann", "rater_kind": "human"})
    ratings = validate_ratings(frame.assign(rubric="refusal", label="1"))
    assert import_ratings(study, ratings, "test") == (len(units), 0)
    with study.store.read() as connection:
        known = connection.execute(
            sa.text("SELECT reltuples FROM pg_class WHERE relname IN ('labels', 'claims')")
        )
        assert known.scalars().all() == [len(units)] * 2
