"""The desk: what it hands out, ahead too, and the list of earlier answers."""

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from evenhand.study import Study, extend_sample, open_study
from evenhand.study.desk.claims import Changes, Claim, ClaimIndex, exclude, pause
from evenhand.study.desk.desk import PAGE, AnnotationDesk, Task
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.store.schema import claims, labels, responses
from harness.studies import (
    give_secret,
    label_all,
    marked_study,
    submit,
    task_of,
    with_edited_rubric,
    with_settings,
    work_through,
)
from tests.cases import one_in
from tests.study.desk.test_attention import CHECKED


@pytest.mark.slow
def test_every_unit_gets_as_many_raters_as_asked(make_study):
    study = make_study(raters_per_unit=2)
    desk = AnnotationDesk(study)
    # 6 pairs x 2 subjects x (1 pair unit + 2 response units x 2 rubrics) = 60 tasks
    assert [work_through(desk, rater) for rater in ("r1", "r2", "r3")] == [60, 60, 0]
    ratings = study.ratings()
    assert set(ratings.groupby(["unit_id", "rubric"])["rater_id"].nunique()) == {2}


def test_the_open_task_comes_again_until_it_is_labelled_and_is_labelled_once(make_study):
    study = make_study()
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    assert task_of(desk, "r1") == task
    key, other = task.rubric.categories[:2]
    for rater, task_id, name, option, status in (
        ("r1", task.task_id, "one", key, "stored"),
        ("r1", task.task_id, "one", key, "duplicate"),
        ("r1", task.task_id, "two", other, "already_labelled"),
        ("r2", task.task_id, "three", key, "unknown_task"),
        ("r1", "no such task", "four", key, "unknown_task"),
        ("r1", task.task_id, "five", "Z", "unknown_task"),
    ):
        assert submit(desk, rater, task_id, option, name) == status
    assert len(study.ratings()) == 1
    assert task_of(desk, "r1").task_id != task.task_id
    assert desk.progress("r1") == (1, 60)


@pytest.mark.slow
def test_the_order_of_sides_is_mixed_recorded_and_mapped_back(make_study):
    study = make_study(pairs=30, rubrics=["even-handedness"])

    def is_for(task: Task) -> bool:
        texts = {block.variable: block.text for block in task.people.blocks}
        return " for " in texts["response_a"]

    # The rater always prefers the side that argues "for", which is the pair's a.
    tasks = label_all(AnnotationDesk(study), "r1", lambda task, _: "A" if is_for(task) else "B")
    ratings = study.ratings()
    assert set(ratings["label"]) == {"A"}
    counts = Counter(ratings["order"])
    assert min(counts["ab"], counts["ba"]) >= 15, counts
    assert all(is_for(task) == (task.order == "ab") for task in tasks)


def test_task_ids_and_texts_do_not_name_the_subject(make_study):
    study = make_study(subjects=("model-x",))
    with study.store.write() as connection:
        connection.execute(sa.update(responses).values(response="A plain answer."))
    task = task_of(AnnotationDesk(study), "r1")
    assert "model-x" not in repr(task)


def at_once(work: Callable[[str], object], raters: list[str]) -> list[object]:
    """work(rater) for all raters, every one in a thread that starts when all are there."""
    ready = threading.Barrier(len(raters))

    def begin(rater: str) -> object:
        ready.wait()
        return work(rater)

    with ThreadPoolExecutor(len(raters)) as pool:
        return list(pool.map(begin, raters))


@pytest.mark.slow
def test_hundreds_of_claims_by_threads_keep_the_overlap_exact(make_study, any_database):
    pairs = {"pairs": 20, "rubrics": ["even-handedness"]}
    study = make_study(**pairs, raters_per_unit=3, **any_database)
    desk = AnnotationDesk(study)
    raters = [f"r{n}" for n in range(200)]
    tasks = dict(zip(raters, at_once(lambda rater: task_of(desk, rater), raters), strict=True))
    # 20 pairs x 2 subjects x 3 places for 200 who come at the same moment
    given = {rater: task for rater, task in tasks.items() if task is not None}
    assert len(given) == len({task.task_id for task in given.values()}) == 120
    statuses = at_once(lambda rater: submit(desk, rater, given[rater], "C", rater), list(given))
    assert set(statuses) == {"stored"}
    ratings = study.ratings()
    assert len(ratings) == ratings["rater_id"].nunique() == 120
    assert set(ratings.groupby("unit_id")["rater_id"].nunique()) == {3}


WORKER = """
import sys, threading
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from harness.studies import label_all
with open_study(sys.argv[1]) as study:
    raters = [(AnnotationDesk(study), f"{sys.argv[2]}-{n}") for n in range(40)]
    threads = [threading.Thread(target=label_all, args=rater) for rater in raters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.thorough
def test_hundreds_of_raters_in_many_processes_keep_the_overlap_exact(make_study, any_database):
    study = make_study(pairs=12, raters_per_unit=2, **any_database)
    root = Path(__file__).parents[3]
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(study.folder), f"r{n}"], cwd=root)
        for n in range(3)
    ]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    ratings = study.ratings()
    assert len(ratings) == 240
    assert set(ratings.groupby(["unit_id", "rubric"])["rater_id"].nunique()) == {2}
    assert ratings["rater_id"].str[:2].nunique() > 1  # more than one process had a share


@pytest.mark.slow
def test_an_extended_sample_reaches_a_desk_that_is_open(make_study):
    study = make_study(pairs=6, sample=3, raters_per_unit=1)
    desk = AnnotationDesk(study)
    assert work_through(desk, "r1") == 30
    extend_sample(study, 2)
    assert desk.progress("r1") == (30, 50)
    assert open_study(study.folder).config.sample.pairs == 5


@pytest.mark.slow
def test_an_edited_rubric_asks_again_and_keeps_the_old_labels_apart(make_study):
    study = make_study(raters_per_unit=1, rubrics=["refusal"])
    old = study.rubrics["refusal"].hash
    label_all(AnnotationDesk(study), "r1")
    with with_edited_rubric(study, "refusal", same=False) as edited:
        new = edited.rubrics["refusal"].hash
        assert set(edited.ratings()["rubric_hash"]) == {old}
        assert edited.accepted_hashes() == {"refusal": (new,)}
        (sentence,) = edited.edited_rubrics()
        assert f"24 ratings given under its older text ({old})" in sentence
        assert AnnotationDesk(edited).progress("r1") == (0, 24)
    with with_settings(edited, f'\n[same_text]\nrefusal = ["{old}"]\n') as declared:
        assert declared.accepted_hashes() == {"refusal": (new, old)}
        assert declared.edited_rubrics() == []
        assert task_of(AnnotationDesk(declared), "r1") is None


def test_a_code_that_is_a_graders_or_a_groups_is_refused(make_study):
    study = make_study()
    unit = study.rubric_units(study.rubrics["refusal"])[0]
    facts = {"rater_id": "gpt-5", "rubric": "refusal", "rubric_hash": "h", "label": "1"}
    study.store.add_grades([GradeAttempt(unit_id=unit, **facts)])
    desk = AnnotationDesk(study)
    for code in ("gpt-5", "humans"):
        with pytest.raises(InputError, match="an account of another kind"):
            desk.register(code)
    desk.register("anna.b-2")
    for code in ("", "two words", "x" * 65, "<b>"):
        with pytest.raises(InputError, match="an annotator code is"):
            desk.register(code)


def test_columns_of_the_two_sides_change_places_with_them(make_study, tmp_path):
    text = (Path(load_rubric.__code__.co_filename).parent / "even-handedness.toml").read_text()
    text = text.partition("[translations.de]")[0]  # they would lack the variables
    text = text.replace('"response_b"]', '"response_b", "prompt_a_group", "prompt_b_group"]')
    text = text.replace("You see two dialogues.", "A is {prompt_a_group}, B is {prompt_b_group}.")
    (tmp_path / "sides.toml").write_text(text)
    study = make_study(rubrics=[load_rubric(tmp_path / "sides.toml")])
    (rubric,) = study.rubrics.values()
    unit = study.rubric_units(rubric)[0]
    shown = {order: study.values(rubric, unit, order) for order in ("ab", "ba")}
    assert (shown["ab"]["prompt_a_group"], shown["ba"]["prompt_a_group"]) == ("pro", "con")
    assert shown["ab"]["response_a"] == shown["ba"]["response_b"]


# Claims


_EARLY, _LATE = "2026-01-01T00:00:00.000+00:00", "2026-01-02T00:00:00.000+00:00"


@pytest.mark.parametrize("seed", range(3))
def test_which_questions_are_full_follows_from_the_rows(make_study, seed):
    rng = random.Random(seed)
    index = ClaimIndex({"h"})
    with make_study().store.write() as connection:
        for step in range(120):
            index.refresh(connection)
            rater, unit = f"r{rng.randrange(6)}", f"p{rng.randrange(5)}|s"
            at = rng.choice((_EARLY, _LATE))
            changes = Changes(connection, index)
            changes.give(Claim(f"{rater}-{unit}", rater, unit, "x", "h", "", 0, at))
            if rng.random() < 0.7:
                changes.mark(f"{rater}-{unit}", state=rng.choice(("labelled", "released")))
            if step % 10 == 0:
                index.refresh(connection)
                excluded = set(rng.sample([f"r{n}" for n in range(6)], 2))
                for wanted in (1, 2, 4):
                    full = _full(connection, wanted, excluded)
                    assert index.full(wanted, _LATE, excluded) == full


def _full(connection, wanted, excluded):
    counted = [
        (row.unit_id, row.rubric)
        for row in connection.execute(sa.select(claims))
        if row.rater_id not in excluded
        and (row.state == "labelled" or (row.state == "open" and row.claimed_at >= _LATE))
    ]
    return {key for key in counted if counted.count(key) >= wanted}


# The next sheet, reserved ahead


def given_out(study: Study, rater: str, *, ahead: bool) -> list[tuple[str, ...]]:
    """What a rater is given from first to last: unit, rubric, draw and order of each task."""
    desk, ids, promised = AnnotationDesk(study), [], None
    while sheet := desk.next_sheet(rater):
        if ahead:
            assert promised is None or [each.task_id for each in sheet.tasks] == promised
            following = desk.sheet_ahead(rater, sheet)
            promised = following and [each.task_id for each in following.tasks]
            assert following is None or following.done == sheet.done + len(sheet.tasks)
        ids += [task.task_id for task in label_all(desk, rater, most=1)]
    assert promised is None  # what was sent ahead has come
    with study.store.read() as connection:
        rows = {row.task_id: row for row in connection.execute(sa.select(claims))}
    assert len(rows) == len(ids)
    given = (rows[each] for each in ids)
    return [(row.unit_id, row.rubric, row.draw, row.order) for row in given]


@pytest.mark.parametrize("screen", one_in(2, ["one", "all"]))
def test_who_is_sent_units_ahead_gets_the_same_ones_in_the_same_order(make_session, screen):
    """Repeats and attention checks, too, come where they would have come."""
    settings = {"screen": screen, "repeat_share": 0.3, "repeat_gap": 4, "units_per_rater": 20}
    seen = []
    for ahead in (False, True):
        study = make_session(**CHECKED, pairs=12, seed=3, annotation=settings)
        give_secret(study, "5" * 64)  # what is drawn by chance, drawn alike
        seen.append(given_out(study, "ann", ahead=ahead))
    without, with_ahead = seen
    assert len(without) > 20
    assert any(draw for _, _, draw, _ in without)
    assert with_ahead == without


@pytest.mark.parametrize(
    ("limit", "seconds", "given"),
    [("answers_per_day = 5", 1.0, 5), ("minutes_per_day = 20", 300.0, 4)],
)
def test_no_unit_is_sent_ahead_that_a_day_may_have_no_room_for(make_session, limit, seconds, given):
    """A change of an earlier answer counts, too, and a unit may take as long as it can."""
    desk, ahead = AnnotationDesk(make_session(f"[session]\n{limit}\n")), []
    while sheet := desk.next_sheet("r1"):
        ahead.append(desk.sheet_ahead("r1", sheet) is not None)
        submit(desk, "r1", sheet.tasks[0], "1", seconds=seconds)
    assert (len(ahead), desk.ended("r1")) == (given, "day")
    assert ahead[0]
    assert not any(ahead[-2:])


def test_nothing_is_sent_ahead_in_a_paused_study_or_to_who_is_excluded(make_session):
    study = make_session("")
    desk = AnnotationDesk(study)
    sheets = {rater: desk.next_sheet(rater) for rater in ("r1", "r2")}
    exclude(study.store, "r2", "typed at random")
    assert desk.sheet_ahead("r1", sheets["r1"])
    assert desk.sheet_ahead("r2", sheets["r2"]) is None
    pause(study.store)
    assert desk.sheet_ahead("r1", sheets["r1"]) is None


def test_a_unit_sent_ahead_counts_as_one_of_its_raters(make_session):
    study = make_session(raters_per_unit=1, pairs=2)
    first = AnnotationDesk(study)
    sheet = first.next_sheet("r1")
    ahead = first.sheet_ahead("r1", sheet)
    label_all(AnnotationDesk(study), "r2")
    for each in (sheet, ahead):
        assert submit(first, "r1", each.tasks[0], "1") == "stored"
    assert not study.ratings().duplicated(["unit_id", "rubric"]).any()
    assert first.next_sheet("r1") is None


def test_a_renewed_lease_keeps_the_order_of_what_is_in_view_and_what_comes(make_session):
    study = make_session()
    desk = AnnotationDesk(study)
    sheet = desk.next_sheet("r1")
    with study.store.write() as connection:  # half of the lease ago
        connection.execute(sa.update(claims).values(claimed_at="2020-01-01T00:00:00.000+00:00"))
    desk = AnnotationDesk(study)
    ahead = desk.sheet_ahead("r1", sheet)
    assert desk.next_sheet("r1").tasks[0].task_id == sheet.tasks[0].task_id
    assert desk.sheet_ahead("r1", sheet).tasks[0].task_id == ahead.tasks[0].task_id


# Earlier answers


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> AnnotationDesk:
    """2,000 answers of one rater: synthetic."""
    study = marked_study(
        tmp_path_factory.mktemp("long") / "study",
        pairs=1000,
        rubrics=["refusal"],
        response=lambda pair, side: f"An ANSWER\nto {pair}{side}. " + "word " * 300,
    )
    at = "2026-05-04T08:00:00.000+00:00"
    common = {"rubric": "refusal", "rubric_hash": study.rubrics["refusal"].hash, "draw": 0}
    common |= {"rater_id": "r1", "order": ""}
    claim = {"claimed_at": at, "state": "labelled"}
    label = {"rater_kind": "human", "created_at": at, "label": "1"}
    units = [
        (n, common | {"unit_id": unit})
        for n, unit in enumerate(study.rubric_units(study.rubrics["refusal"]), start=1)
    ]
    with study.store.write() as connection:
        taken = [unit | claim | {"task_id": f"t{n}", "version": n} for n, unit in units]
        connection.execute(sa.insert(claims), taken)
        given = [unit | label | {"submit_id": f"s{n}"} for n, unit in units]
        connection.execute(sa.insert(labels), given)
    return AnnotationDesk(study)


def numbers(desk: AnnotationDesk, start: int = 0) -> list[int]:
    return [row.number for row in desk.earlier("r1", start).rows]


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


def test_where_units_are_repeated_the_list_ends_before_the_first_answer(make_study):
    repeats = {"repeat_share": 0.5, "repeat_gap": 6}
    own = AnnotationDesk(make_study(pairs=20, rubrics=["even-handedness"], annotation=repeats))
    label_all(own, "r1", "A", 9)
    assert [row.number for row in own.earlier("r1").rows] == [9, 8, 7, 6, 5, 4]
