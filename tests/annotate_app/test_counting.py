"""What the lead's pages count: in another process, the same numbers, and fresh."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd
import pytest

from evenhand.annotate_app.lead.parts.counting import counted, latest
from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.oversight import exclude
from evenhand.study.lead.adjudication import adjudication_queue, queue_length
from evenhand.study.lead.imports import import_ratings
from evenhand.study.lead.progress import (
    confusions,
    label_shares,
    labels_over_time,
    rater_answers,
    rater_progress,
    rubric_progress,
)
from evenhand.study.session.funnel import funnel
from evenhand.study.tables.ratings import validate_ratings
from harness.studies import label_all, task_of


def _at_random(folder: Path, seed: int) -> Study:
    """Six people with labels, skips and times at random; one is excluded, one has a task open."""
    rng = random.Random(seed)
    rows = [
        {
            "unit_id": f"p{unit:04d}|secret-subject",
            "rubric": "shorter",
            "rater_id": f"r{rater}",
            "rater_kind": "human",
            "label": (label := rng.choice(["L", "R", "C", ""])),
            "unscored_reason": "" if label else "skipped_other",
            "seconds": rng.choice([None, rng.uniform(1, 90)]),
            "created_at": f"2026-03-0{rng.randint(1, 9)}T09:00:00.000+00:00",
        }
        for rater in range(6)
        for unit in range(1, 13)
        if rng.random() < 0.7
    ]
    study = open_study(folder)
    import_ratings(study, validate_ratings(pd.DataFrame(rows)), "test")
    exclude(study.store, f"r{rng.randrange(6)}", "at random")
    task_of(AnnotationDesk(study), "new")
    return study


@pytest.mark.slow
def test_another_process_counts_the_same(make_study):
    for seed in (1, 2):
        with _at_random(make_study(12), seed) as study:
            for count in (rubric_progress, rater_progress):
                pd.testing.assert_frame_equal(latest(study, count), count(study))
            table, step = latest(study, labels_over_time)
            pd.testing.assert_frame_equal(table, labels_over_time(study)[0])
            assert step == "day"
            assert latest(study, funnel) == funnel(study)
            assert latest(study, queue_length) == len(adjudication_queue(study)) > 0
            for of_one in (rater_answers, label_shares):
                pd.testing.assert_frame_equal(counted(study, of_one, "r1"), of_one(study, "r1"))
            (theirs,) = counted(study, confusions, "r1").values()
            (ours,) = confusions(study, "r1").values()
            pd.testing.assert_frame_equal(theirs, ours)


def test_what_comes_in_is_counted_at_the_next_look(make_study):
    with _at_random(make_study(12), 3) as study:
        before = latest(study, rubric_progress)["done"].sum()
        assert latest(study, rater_progress).set_index("rater_id").loc["new", "answers"] == 0
        label_all(AnnotationDesk(study), "new", "L", 1)
        assert latest(study, rubric_progress)["done"].sum() == before + 1
        assert latest(study, rater_progress).set_index("rater_id").loc["new", "answers"] == 1


def test_what_is_wrong_there_is_said_here(make_study):
    with (
        open_study(make_study(12)) as study,
        pytest.raises(InputError, match="there is no rule 'no such rule'"),
    ):
        counted(study, adjudication_queue, "no such rule")
