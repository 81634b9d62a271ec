"""The sheet after the one in view, which is sent ahead: the same work in the same order."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from evenhand.study import Study, open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.oversight import exclude, pause
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import claims
from tests.study.desk.test_attention import ATTENTION, ONE_RUBRIC


def given_out(study: Study, rater: str, *, ahead: bool) -> list[tuple[str, ...]]:
    """What a rater is given from first to last: unit, rubric, draw and order of each task."""
    desk, ids, promised = AnnotationDesk(study), [], None
    while sheet := desk.next_sheet(rater):
        if ahead:
            assert promised is None or [each.task_id for each in sheet.tasks] == promised
            following = desk.sheet_ahead(rater, sheet)
            promised = following and [each.task_id for each in following.tasks]
            assert following is None or following.done == sheet.done + len(sheet.tasks)
        for task in sheet.tasks:
            option = task.rubric.options[-1].key
            assert desk.submit(rater, task.task_id, f"{task.task_id}", option).status == "stored"
            ids.append(task.task_id)
    assert promised is None  # what was sent ahead has come
    with study.store.read() as connection:
        rows = {row.task_id: row for row in connection.execute(sa.select(claims))}
    assert len(rows) == len(ids)
    return [
        (rows[each].unit_id, rows[each].rubric, rows[each].draw, rows[each].order) for each in ids
    ]


@pytest.mark.parametrize("screen", ["one", "all"])
def test_who_is_sent_units_ahead_gets_the_same_ones_in_the_same_order(
    make_session, screen, tmp_path
) -> None:
    """Repeats and attention checks, too, come where they would have come."""
    seen = []
    for ahead in (False, True):
        study = make_session(ATTENTION, {"attention.toml": ONE_RUBRIC}, pairs=12, seed=3)
        settings = {"screen": screen, "repeat_share": 0.3, "repeat_gap": 4, "units_per_rater": 20}
        change_config(study.folder, {"annotation": settings})
        with study.store.write() as connection:  # what is drawn by chance, drawn alike
            connection.execute(
                sa.text("update meta set value = :secret where key = 'secret'"),
                {"secret": "5" * 64},
            )
        study.close()
        with open_study(study.folder) as opened:
            seen.append(given_out(opened, "ann", ahead=ahead))
    without, with_ahead = seen
    assert len(without) > 20
    assert any(draw for _, _, draw, _ in without)
    assert with_ahead == without


@pytest.mark.parametrize(
    ("limit", "seconds", "given"),
    [("answers_per_day = 5", 1.0, 5), ("minutes_per_day = 20", 300.0, 4)],
)
def test_no_unit_is_sent_ahead_that_a_day_may_have_no_room_for(
    make_session, limit, seconds, given
) -> None:
    """A change of an earlier answer counts, too, and a unit may take as long as it can."""
    study = make_session(f"[session]\n{limit}\n")
    desk, count, ahead = AnnotationDesk(study), 0, []
    while sheet := desk.next_sheet("r1"):
        ahead.append(desk.sheet_ahead("r1", sheet) is not None)
        count += 1
        desk.submit("r1", sheet.tasks[0].task_id, str(count), "1", seconds)
    assert (count, desk.ended("r1")) == (given, "day")
    assert ahead[0]
    assert not any(ahead[-2:])


def test_nothing_is_sent_ahead_in_a_paused_study_or_to_who_is_excluded(make_session) -> None:
    study = make_session("")
    desk = AnnotationDesk(study)
    sheets = {rater: desk.next_sheet(rater) for rater in ("r1", "r2")}
    exclude(study.store, "r2", "typed at random")
    assert desk.sheet_ahead("r1", sheets["r1"])
    assert desk.sheet_ahead("r2", sheets["r2"]) is None
    pause(study.store)
    assert desk.sheet_ahead("r1", sheets["r1"]) is None


def test_a_unit_sent_ahead_counts_as_one_of_its_raters(make_session) -> None:
    study = make_session("", raters_per_unit=1, pairs=2)
    first, second = AnnotationDesk(study), AnnotationDesk(study)
    sheet = first.next_sheet("r1")
    ahead = first.sheet_ahead("r1", sheet)
    taken = set()
    while other := second.next_sheet("r2"):
        taken.add(other.tasks[0].task_id)
        second.submit("r2", other.tasks[0].task_id, other.tasks[0].task_id, "1")
    for each in (sheet, ahead):
        assert (
            first.submit("r1", each.tasks[0].task_id, each.tasks[0].task_id, "1").status == "stored"
        )
    ratings = study.ratings()
    assert not ratings.duplicated(["unit_id", "rubric"]).any()
    assert first.next_sheet("r1") is None


def test_a_renewed_lease_keeps_the_order_of_what_is_in_view_and_what_comes(
    make_session, monkeypatch
) -> None:
    study = make_session("")
    desk = AnnotationDesk(study)
    sheet = desk.next_sheet("r1")
    with study.store.write() as connection:  # half of the lease ago
        connection.execute(sa.update(claims).values(claimed_at="2020-01-01T00:00:00.000+00:00"))
    desk = AnnotationDesk(study)
    ahead = desk.sheet_ahead("r1", sheet)
    assert desk.next_sheet("r1").tasks[0].task_id == sheet.tasks[0].task_id
    assert desk.sheet_ahead("r1", sheet).tasks[0].task_id == ahead.tasks[0].task_id
