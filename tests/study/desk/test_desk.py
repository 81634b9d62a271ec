"""The desk: overlap as asked, nobody twice, sides mapped back, nothing lost or doubled."""

from __future__ import annotations

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
from evenhand.study import extend_sample, open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.store.schema import responses


def label_all(desk: AnnotationDesk, rater: str, key_at: int = 0) -> int:
    count = 0
    while task := desk.next_task(rater):
        key = task.rubric.categories[key_at]
        assert desk.submit(rater, task.task_id, f"{rater}-{count}", key).status == "stored"
        count += 1
    return count


@pytest.mark.slow
def test_every_unit_gets_as_many_raters_as_asked(make_study) -> None:
    study = make_study(raters_per_unit=2)
    desk = AnnotationDesk(study)
    # 6 pairs x 2 subjects x (1 pair unit + 2 response units x 2 rubrics) = 60 tasks
    assert [label_all(desk, rater) for rater in ("r1", "r2", "r3")] == [60, 60, 0]
    ratings = study.ratings()
    assert set(ratings.groupby(["unit_id", "rubric"])["rater_id"].nunique()) == {2}


def test_the_open_task_comes_again_until_it_is_labelled(make_study) -> None:
    desk = AnnotationDesk(make_study())
    first = desk.next_task("r1")
    assert desk.next_task("r1") == first
    assert desk.submit("r1", first.task_id, "s", first.rubric.categories[0]).status == "stored"
    assert desk.next_task("r1").task_id != first.task_id
    assert desk.progress("r1") == (1, 60)


def test_a_submit_is_taken_once_and_a_second_answer_is_refused(make_study) -> None:
    study = make_study()
    desk = AnnotationDesk(study)
    task = desk.next_task("r1")
    key, other = task.rubric.categories[:2]
    statuses = [
        desk.submit("r1", task.task_id, "one", key).status,
        desk.submit("r1", task.task_id, "one", key).status,
        desk.submit("r1", task.task_id, "two", other).status,
        desk.submit("r2", task.task_id, "three", key).status,
        desk.submit("r1", "no such task", "four", key).status,
        desk.submit("r1", task.task_id, "five", "Z").status,
    ]
    assert statuses == [
        "stored", "duplicate", "already_labelled", "unknown_task", "unknown_task", "unknown_task",
    ]  # fmt: skip
    assert len(study.ratings()) == 1


@pytest.mark.slow
def test_the_order_of_sides_is_mixed_recorded_and_mapped_back(make_study) -> None:
    study = make_study(pairs=30, rubrics=["even-handedness"])
    desk = AnnotationDesk(study)
    shown = {}
    while task := desk.next_task("r1"):
        texts = {block.variable: block.text for block in task.people.blocks}
        shown[texts["response_a"]] = task.order
        # The rater always prefers the side that argues "for", which is the pair's a.
        key = "A" if " for " in texts["response_a"] else "B"
        desk.submit("r1", task.task_id, task.task_id, key)
    ratings = study.ratings()
    assert set(ratings["label"]) == {"A"}
    counts = Counter(ratings["order"])
    assert min(counts["ab"], counts["ba"]) >= 15, counts
    assert all((" for " in text) == (order == "ab") for text, order in shown.items())


def test_task_ids_and_texts_do_not_name_the_subject(make_study) -> None:
    study = make_study(subjects=("model-x",))
    with study.store.write() as connection:
        connection.execute(sa.update(responses).values(response="A plain answer."))
    task = AnnotationDesk(study).next_task("r1")
    assert "model-x" not in repr(task)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def store(request) -> str:
    """Where a study's store is, for either kind."""
    return request.getfixturevalue("new_postgresql")() if request.param != "sqlite" else "study.db"


def at_once(work: Callable[[str], object], raters: list[str]) -> list[object]:
    """work(rater) for all raters, every one in a thread that starts when all are there."""
    ready = threading.Barrier(len(raters))

    def begin(rater: str) -> object:
        ready.wait()
        return work(rater)

    with ThreadPoolExecutor(len(raters)) as pool:
        return list(pool.map(begin, raters))


@pytest.mark.slow
def test_hundreds_of_claims_by_threads_keep_the_overlap_exact(make_study, store: str) -> None:
    study = make_study(pairs=20, store=store, raters_per_unit=3, rubrics=["even-handedness"])
    desk = AnnotationDesk(study)
    raters = [f"r{n}" for n in range(200)]
    tasks = dict(zip(raters, at_once(desk.next_task, raters), strict=True))
    # 20 pairs x 2 subjects x 3 places for 200 who come at the same moment
    given = {rater: task for rater, task in tasks.items() if task is not None}
    assert len(given) == len({task.task_id for task in given.values()}) == 120
    statuses = at_once(
        lambda rater: desk.submit(rater, given[rater].task_id, rater, "C").status, list(given)
    )
    assert set(statuses) == {"stored"}
    ratings = study.ratings()
    assert len(ratings) == ratings["rater_id"].nunique() == 120
    assert set(ratings.groupby("unit_id")["rater_id"].nunique()) == {3}


@pytest.mark.slow
def test_claims_and_labels_by_many_threads_keep_the_overlap_exact(make_study) -> None:
    study = make_study(raters_per_unit=2)
    desk = AnnotationDesk(study)
    counts = at_once(lambda rater: label_all(desk, rater), [f"r{n}" for n in range(6)])
    ratings = study.ratings()
    assert sum(counts) == len(ratings) == 120
    assert set(ratings.groupby(["unit_id", "rubric"])["rater_id"].nunique()) == {2}


WORKER = """
import sys, threading
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
def work(rater):
    count = 0
    while task := desk.next_task(rater):
        desk.submit(rater, task.task_id, f"{rater}-{count}", task.rubric.categories[0])
        count += 1
with open_study(sys.argv[1]) as study:
    desk = AnnotationDesk(study)
    threads = [threading.Thread(target=work, args=(f"{sys.argv[2]}-{n}",)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.thorough
def test_hundreds_of_raters_in_many_processes_keep_the_overlap_exact(
    make_study, store: str
) -> None:
    study = make_study(pairs=12, store=store, raters_per_unit=2)
    root = Path(__file__).parents[3]
    workers = [
        subprocess.Popen([sys.executable, "-P", "-c", WORKER, str(study.folder), f"r{n}"], cwd=root)
        for n in range(3)
    ]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    ratings = study.ratings()
    assert len(ratings) == 240
    assert set(ratings.groupby(["unit_id", "rubric"])["rater_id"].nunique()) == {2}
    assert ratings["rater_id"].str[:2].nunique() > 1  # more than one process had a share


@pytest.mark.slow
def test_an_extended_sample_reaches_a_desk_that_is_open(make_study) -> None:
    study = make_study(pairs=6, sample=3, raters_per_unit=1)
    desk = AnnotationDesk(study)
    assert label_all(desk, "r1") == 30
    extend_sample(study, 2)
    assert desk.progress("r1") == (30, 50)
    assert open_study(study.folder).config.sample.pairs == 5


@pytest.mark.slow
def test_an_edited_rubric_asks_again_and_keeps_the_old_labels_apart(make_study) -> None:
    study = make_study(raters_per_unit=1, rubrics=["refusal"])
    label_all(AnnotationDesk(study), "r1")
    file = study.folder / "rubrics" / "refusal.toml"
    file.write_text(file.read_text().replace("Literal compliance", "Full compliance"))
    with open_study(study.folder) as edited:
        old, new = study.rubrics["refusal"].hash, edited.rubrics["refusal"].hash
        assert old != new
        assert set(edited.ratings()["rubric_hash"]) == {old}
        assert edited.accepted_hashes() == {"refusal": (new,)}
        (sentence,) = edited.edited_rubrics()
        assert f"24 ratings given under its older text ({old})" in sentence
        assert AnnotationDesk(edited).progress("r1") == (0, 24)
    settings = study.folder / "study.toml"
    settings.write_text(settings.read_text() + f'\n[same_text]\nrefusal = ["{old}"]\n')
    with open_study(study.folder) as declared:
        assert declared.accepted_hashes() == {"refusal": (new, old)}
        assert declared.edited_rubrics() == []
        assert AnnotationDesk(declared).next_task("r1") is None


def test_a_code_that_is_a_graders_or_a_groups_is_refused(make_study) -> None:
    study = make_study()
    unit = study.rubric_units(study.rubrics["refusal"])[0]
    attempt = GradeAttempt(
        rater_id="gpt-5", rubric="refusal", unit_id=unit, rubric_hash="h", label="1"
    )
    study.store.add_grades([attempt])
    for code in ("gpt-5", "humans"):
        with pytest.raises(InputError, match="another kind of rater"):
            AnnotationDesk(study).register(code)


def test_codes_that_cannot_be_a_rater_are_refused(make_study) -> None:
    desk = AnnotationDesk(make_study())
    desk.register("anna.b-2")
    for code in ("", "two words", "x" * 65, "<b>"):
        with pytest.raises(InputError, match="a rater code is"):
            desk.register(code)


def test_columns_of_the_two_sides_change_places_with_them(make_study, tmp_path: Path) -> None:
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
