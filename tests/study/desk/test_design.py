"""The order of the questions, rubrics without the prompt, how far one is, and the lead's stops."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import groupby

import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from evenhand.study import Study, extend_sample, open_study
from evenhand.study.desk.claims import (
    decisions_table,
    exclude,
    judged_without_prompt,
    oversight,
    pause,
    readmit,
    resume,
)
from evenhand.study.desk.desk import (
    AnnotationDesk,
    Worked,
    as_people_say,
    day_of,
    is_enough,
    minutes_left,
)
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.study_toml import SessionSettings, change_config
from harness.studies import give_secret, label_all, submit, task_of, work_through


def walk(desk: AnnotationDesk, rater: str, most: int = 10_000) -> list[str]:
    """Answer sheet after sheet; returns the task ids in order. Progress never lies."""
    asked: list[str] = []
    before = desk.progress(rater)[0]
    while len(asked) < most and (sheet := desk.next_sheet(rater)):
        assert sheet.done == before + len(asked) < sheet.total
        for task in sheet.tasks:
            assert submit(desk, rater, task, task.rubric.categories[len(asked) % 3]) == "stored"
            asked.append(task.task_id)
    return asked


@pytest.fixture
def make_pairs(make_study):
    """make_pairs(pairs, raters_per_unit, **annotation settings) -> a study of pairs."""
    return lambda pairs, raters_per_unit=3, **annotation: make_study(
        pairs=pairs,
        raters_per_unit=raters_per_unit,
        rubrics=["even-handedness"],
        annotation=annotation,
    )


def by_time(study, rater: str):
    """The rater's rows in the order in which they were given."""
    ratings = study.ratings()
    return ratings[ratings["rater_id"] == rater]


@pytest.mark.slow
def test_every_rater_has_an_order_of_their_own_that_the_key_fixes(make_study):
    orders = []
    for secret in ("aa", "aa", "bb"):  # and the same seed, which is public
        study = make_study(pairs=12, seed=1, rubrics=["refusal"])
        give_secret(study, secret)
        desk = AnnotationDesk(study)
        walk(desk, "r1")
        walk(desk, "r2")
        orders += [list(by_time(study, rater)["unit_id"]) for rater in ("r1", "r2")]
    assert orders[0] == orders[2]
    assert orders[1] == orders[3]
    assert orders[0] != orders[1]
    assert orders[0] != orders[4]
    # Yet all finish the first ten pairs before the last two.
    sample = study.store.sample()
    blocks = [
        [sample.index(parse_unit_id(unit)[0]) // 10 for unit in order] for order in orders[4:]
    ]
    assert all(block == sorted(block) for block in blocks)


@pytest.mark.slow
def test_sides_are_balanced_within_every_rater_and_subject(make_study):
    study = make_study(pairs=31, raters_per_unit=2, rubrics=["even-handedness"])
    desk = AnnotationDesk(study)
    for count in (7, 20, 62):  # whenever somebody stops, not only at the end
        for rater in ("r1", "r2"):
            walk(desk, rater, count - desk.progress(rater)[0])
            rows = by_time(study, rater)
            counts = Counter(rows["order"])
            assert abs(counts["ab"] - counts["ba"]) <= 2, counts
            of = rows["unit_id"].str.split("|").str[1]
            per_subject = Counter(zip(of, rows["order"], strict=True))
            for subject in ("s1", "s2"):
                assert abs(per_subject[subject, "ab"] - per_subject[subject, "ba"]) <= 1
    both = (by_time(study, rater) for rater in ("r1", "r2"))
    orders = [each.set_index("unit_id")["order"].to_dict() for each in both]
    assert 10 < sum(orders[0][unit] != orders[1][unit] for unit in orders[0]) < 52


@pytest.mark.slow
def test_hidden_repeats_come_late_once_and_look_like_any_other(make_pairs):
    study = make_pairs(15, repeat_share=0.2, repeat_gap=10)
    desk = AnnotationDesk(study)
    assert desk.progress("r1") == (0, 36)  # 30 units and a fifth of them again
    asked = walk(desk, "r1")
    rows = by_time(study, "r1").reset_index(drop=True)
    assert len(asked) == len(set(asked)) == len(rows) == 36
    again = rows[rows["draw"] == 1]
    assert len(again) == 6
    assert set(rows["draw"]) == {0, 1}
    for at, row in again.iterrows():
        first = rows[(rows["unit_id"] == row["unit_id"]) & (rows["draw"] == 0)]
        assert at - first.index[0] > 10
        assert first["order"].iloc[0] == row["order"]
    assert again.index[0] < 20  # spread over the session, not heaped at its end


@pytest.mark.slow
def test_repeats_fill_no_place_and_few_units_have_none_that_could_keep_its_distance(make_pairs):
    desk = AnnotationDesk(make_pairs(15, repeat_share=0.2, repeat_gap=5, raters_per_unit=2))
    assert [len(walk(desk, rater)) for rater in ("r1", "r2", "r3")] == [36, 36, 0]
    few = AnnotationDesk(make_pairs(3, repeat_share=0.5, repeat_gap=20))
    assert len(walk(few, "r1")) == 6


@pytest.mark.slow
def test_nobody_is_given_more_units_than_the_limit(make_study):
    study = make_study(pairs=6, raters_per_unit=1, annotation={"units_per_rater": 8})
    for rater in ("r1", "r2", "r3", "r4", "r5"):
        walk(AnnotationDesk(study), rater)
    rows = study.ratings()
    units = rows.groupby("rater_id")["unit_id"].nunique()
    # 12 pair units and 24 response units, each by one rater under all of its rubrics
    assert units.to_dict() == {"r1": 8, "r2": 8, "r3": 8, "r4": 8, "r5": 4}
    assert len(rows) == 60


@pytest.mark.slow
def test_all_rubrics_of_a_unit_on_one_sheet(make_study):
    whole = {"screen": "all", "repeat_share": 0.2, "repeat_gap": 6}
    study = make_study(pairs=6, raters_per_unit=2, annotation=whole)
    desk, asked = AnnotationDesk(study), Counter()
    while sheet := desk.next_sheet("r1"):
        asked[tuple(task.rubric.name for task in sheet.tasks)] += 1
        label_all(desk, "r1", most=1)
    assert asked["even-handedness",] >= 12
    assert asked["hedging", "refusal"] >= 24
    assert set(asked) == {("even-handedness",), ("hedging", "refusal")}
    rows = by_time(study, "r1")
    assert (rows["draw"] == 0).sum() == 60
    assert 12 <= (rows["draw"] == 1).sum() <= 13
    assert desk.progress("r1")[0] == desk.progress("r1")[1] == len(rows)


@pytest.mark.slow
def test_labels_outlive_a_change_of_the_design_and_of_the_sample(make_study):
    study = make_study(pairs=12, sample=6, raters_per_unit=2)
    walk(AnnotationDesk(study), "r1", 25)
    open_task = task_of(AnnotationDesk(study), "r1")
    before = study.ratings()
    extend_sample(study, 4)
    other = {"raters_per_unit": 1, "pairs_per_block": 3, "screen": "all", "repeat_share": 0.1}
    change_config(study.folder, {"annotation": other})
    with open_study(study.folder) as changed:
        desk = AnnotationDesk(changed)
        assert task_of(desk, "r1").task_id == open_task.task_id
        walk(desk, "r2")
        for task in desk.next_sheet("r1").tasks:
            assert submit(desk, "r1", task, task.rubric.categories[0]) != "unknown_task"
        after = changed.ratings()
    kept = after.merge(before, how="inner")
    assert len(kept) == len(before) == 25
    first = after[after["draw"] == 0]
    assert set(first.groupby(["unit_id", "rubric"])["rater_id"].nunique()) == {1}
    assert len(first) == 100


@pytest.mark.parametrize(
    ("key", "value"), [("repeat_share", 0.7), ("screen", "two"), ("lease_minutes", 0)]
)
def test_a_wrong_setting_is_one_sentence(make_study, key, value):
    file = make_study().folder / "study.toml"
    file.write_text(re.sub(rf"(?m)^{key} = .*$", f"{key} = {value!r}", file.read_text()))
    with pytest.raises(InputError, match=f"annotation.{key}"):
        open_study(file.parent)


# Rubrics judged without the prompt


@pytest.mark.slow
def test_a_block_asks_first_what_is_judged_without_the_prompt(make_study):
    study = make_study(pairs=12)
    assert study.config.annotation.rubrics == ("even-handedness", "hedging", "refusal")
    asked = [task.rubric.name for task in label_all(AnnotationDesk(study), "r1")]
    stages = [name for name, _ in groupby(asked)]
    assert stages == ["hedging", "even-handedness", "refusal"] * 2  # in both blocks


@pytest.mark.slow
def test_one_screen_for_all_shows_the_prompt_and_that_is_said(make_study, capsys):
    study = make_study(pairs=4, sample=2, subjects=("s",))
    change_config(study.folder, {"annotation": {"screen": "all", "repeat_share": 0.1}})
    assert main(["extend", str(study.folder), "--pairs", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "annotators see the prompt when they label hedging" in said
    assert "Repeats of hedging may come after the annotator has seen the prompt." in said
    with open_study(study.folder) as study:
        asked = label_all(AnnotationDesk(study), "r1")
        assert [task.rubric.name for task in asked[:2]] == ["hedging", "refusal"]


def test_only_what_another_rubric_shows_is_hidden():
    hedging, refusal = load_rubric("hedging"), load_rubric("refusal")
    assert judged_without_prompt([refusal, hedging]) == [hedging]
    assert judged_without_prompt([hedging]) == []
    assert judged_without_prompt([refusal]) == []


# What raters are told of how far they are: a total, and minutes that are their own


@pytest.fixture
def shared(make_session) -> Study:
    """24 answers, each wanted once: whoever labels one takes it from the others."""
    return make_session(raters_per_unit=1)


def test_the_total_is_what_is_given_and_what_others_leave(shared):
    desk, sessions = AnnotationDesk(shared), Sessions(shared)
    assert desk.next_sheet("r1").total == 24
    work_through(desk, "r1", 2)
    work_through(desk, "r2", 6)
    assert (desk.next_sheet("r1").done, desk.next_sheet("r1").total) == (2, 18)
    assert desk.progress("r1") == AnnotationDesk(shared).progress("r1") == (2, 18)
    sessions.release("r2", "rejected")
    assert desk.next_sheet("r1").total == 24


def test_minutes_rest_on_the_recent_answers_and_come_once_there_are_five():
    quick, slow = Worked("", 6.0), Worked("", 60.0)
    assert minutes_left([quick] * 4, 100) is None
    assert minutes_left([Worked("", 0.0)] * 9, 100) is None  # imported, without times
    assert minutes_left([quick] * 5, 100) == 10
    assert minutes_left([quick] * 6 + [Worked("", 7200.0)] * 3, 100) == 10  # three breaks
    assert minutes_left([slow] * 50 + [quick] * 30, 100) == 10


@pytest.mark.parametrize(
    ("minutes", "said"),
    [(0, 1), (1.4, 1), (9.4, 9), (9.9, 10), (12.4, 10), (34.2, 35), (59, 60), (84, 80), (119, 120),
     (149, 120), (151, 180)],
)  # fmt: skip
def test_minutes_are_no_finer_than_the_estimate(minutes, said):
    assert as_people_say(minutes) == said


def test_a_sheet_says_the_minutes_left(make_session):
    study = make_session(rubrics=[load_rubric("refusal"), load_rubric("even-handedness")])
    desk = AnnotationDesk(study)
    assert desk.next_sheet("r1").minutes is None
    work_through(desk, "r1", 6, seconds=60.0)
    sheet = desk.next_sheet("r1")
    assert (sheet.total, sheet.minutes) == (36, 30)


# A day's end


@pytest.mark.parametrize(
    ("settings", "answers", "seconds", "enough"),
    [
        ({}, 900, 900.0, False),
        ({"answers_per_day": 3}, 2, 1.0, False),
        ({"answers_per_day": 3}, 3, 1.0, True),
        ({"minutes_per_day": 2}, 5, 23.0, False),
        ({"minutes_per_day": 2}, 5, 24.0, True),
        ({"minutes_per_day": 11, "idle_minutes": 5}, 2, 3600.0, False),  # left in view
    ],
)
def test_enough_for_a_day(settings, answers, seconds, enough):
    now = datetime(2026, 5, 4, 12, tzinfo=UTC)
    worked = [Worked("2026-05-04T08:00:00.000+00:00", seconds)] * answers
    assert is_enough(SessionSettings(**settings), worked, now) is enough


def test_a_day_begins_at_midnight_where_the_study_says():
    worked = [Worked("2026-05-03T22:30:00.000+00:00", 9.0)]  # half past midnight in Berlin
    now = datetime(2026, 5, 4, 1, tzinfo=UTC)
    here = SessionSettings(answers_per_day=1)
    there = SessionSettings(answers_per_day=1, time_zone="Europe/Berlin")
    assert not is_enough(here, worked, now)
    assert is_enough(there, worked, now)
    assert not is_enough(there, worked, now + timedelta(days=1))
    assert day_of(there, now, later=1).isoformat() == "2026-05-05T00:00:00+02:00"


@pytest.mark.parametrize("name", ["Nowhere/Town", "../etc", "Europe", ""])
def test_no_time_zone_of_this_name(name):
    with pytest.raises(ValueError, match="is no time zone"):
        SessionSettings(time_zone=name)


def test_a_day_ends_after_the_unit_at_hand_and_only_where_more_is_left(make_session):
    desk = AnnotationDesk(make_session("[session]\nanswers_per_day = 3\n"))
    held = task_of(desk, "r1")
    assert work_through(desk, "r1") == 3
    assert (desk.next_sheet("r1"), desk.ended("r1")) == (None, "day")
    assert desk.progress("r1") == (3, 24)
    assert desk.reopen("r1") is not None  # what was given can be looked at, and changed
    assert submit(desk, "r1", held, "2", "late") == "already_labelled"
    assert desk.ended("r2") == ""
    # An answer changed while another unit is at hand: that unit is finished.
    (first,) = label_all(desk, "r2", "1", 1)
    open_one = task_of(desk, "r2")
    for n in range(4):
        submit(desk, "r2", first, "2", f"e{n}", edit=True)
    assert task_of(desk, "r2").task_id == open_one.task_id
    submit(desk, "r2", open_one, "1")
    assert desk.ended("r2") == "day"
    done = AnnotationDesk(make_session("[session]\nanswers_per_day = 24\n"))
    assert work_through(done, "r1") == 24  # who is done is done whatever the day
    assert (done.next_sheet("r1"), done.ended("r1")) == (None, "")


# The lead pauses, excludes and readmits: at once, in every process


@pytest.fixture
def study(make_study):
    return make_study(pairs=4, subjects=("s",), rubrics=["refusal"], raters_per_unit=1)


def test_a_pause_stops_the_handing_out_and_not_the_taking_in(study):
    desk, other = AnnotationDesk(study), AnnotationDesk(study)
    task = task_of(desk, "r1")
    with open_study(study.folder) as elsewhere:  # as another process has it
        pause(elsewhere.store, "night", "ann")
    assert (desk.next_sheet("r1"), other.next_sheet("r2")) == (None, None)
    assert desk.ended("r1") == "paused"
    assert submit(desk, "r1", task, task.rubric.categories[0]) == "stored"
    resume(study.store)
    resume(study.store)  # what is decided already adds nothing
    assert decisions_table(study.store)["kind"].tolist() == ["pause", "resume"]
    assert desk.ended("r1") == ""
    assert desk.next_sheet("r1") is not None


def test_an_excluded_raters_places_go_to_others_and_the_labels_stay(study):
    desk = AnnotationDesk(study)
    assert work_through(desk, "careless", 5) == 5  # of 8 units
    assert desk.next_sheet("slow") is not None  # who holds a task, and has answered none
    assert work_through(desk, "r1") == 2
    exclude(study.store, "careless", "answered without reading", "ann")
    assert desk.ended("careless") == "excluded"
    assert desk.next_sheet("careless") is None
    assert work_through(desk, "r1") == 5
    exclude(study.store, "slow", "never answered")
    assert work_through(desk, "r1") == 1
    assert study.ratings()["rater_id"].value_counts().to_dict() == {"r1": 8, "careless": 5}
    assert desk.progress("r2") == (0, 0)


def test_a_readmitted_raters_places_are_filled_again(study):
    desk = AnnotationDesk(study)
    work_through(desk, "r1", 5)
    exclude(study.store, "r1", "looked careless")
    assert desk.progress("r2") == (0, 8)
    readmit(study.store, "r1", "was not")
    assert desk.progress("r2") == (0, 3)
    assert work_through(desk, "r1") == 3
    kinds = decisions_table(study.store)[["kind", "rater_id", "reason"]].to_numpy().tolist()
    assert kinds == [["exclude", "r1", "looked careless"], ["readmit", "r1", "was not"]]


def test_what_cannot_be_decided_is_one_sentence(study):
    work_through(AnnotationDesk(study), "r1", 1)
    with pytest.raises(InputError, match="needs a reason"):
        exclude(study.store, "r1", "  ")
    with pytest.raises(InputError, match="no annotator 'nobody'"):
        exclude(study.store, "nobody", "never came")
    with pytest.raises(InputError, match="'r1' is not excluded"):
        readmit(study.store, "r1", "why not")
    exclude(study.store, "r1", "left")
    with pytest.raises(InputError, match="say why"):
        readmit(study.store, "r1", "")
    assert oversight(study.store).exclusions["r1"].reason == "left"
