"""Looks at the verdict: counted by what people had labelled, and never forgotten."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.store.logs.looks import labels_hash, look_numbers


def test_the_same_labels_are_the_same_look(make_study: Callable) -> None:
    store = make_study().store
    assert look_numbers(store, {"refusal": "first"}, record=True) == {"refusal": 1}
    assert look_numbers(store, {"refusal": "first"}, record=True) == {"refusal": 1}
    assert look_numbers(store, {"refusal": "second", "hedging": "first"}, record=True) == {
        "refusal": 2,
        "hedging": 1,
    }
    assert look_numbers(store, {"refusal": "first"}, record=True) == {"refusal": 1}


def test_who_does_not_look_leaves_no_trace(make_study: Callable) -> None:
    store = make_study().store
    look_numbers(store, {"refusal": "first"}, record=True)
    assert look_numbers(store, {"refusal": "second"}, record=False) == {"refusal": 0}
    assert look_numbers(store, {"refusal": "second"}, record=True) == {"refusal": 2}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_looks_outlive_the_program(
    kind: str, tmp_path, new_postgresql: Callable[[], str], make_study: Callable
) -> None:
    made = make_study()
    folder = made.folder
    if kind == "postgresql":
        folder = tmp_path / "elsewhere"
        pairs, rubrics = tmp_path / "pairs.csv", usual_rubrics(propositions=False)
        create_study(folder, StudyPlan(pairs=pairs, rubrics=rubrics, store=new_postgresql()))
    with open_study(folder) as study:
        look_numbers(study.store, {"refusal": "first"}, record=True)
    with open_study(folder) as study:
        assert look_numbers(study.store, {"refusal": "next"}, record=True) == {"refusal": 2}


def test_the_hash_knows_peoples_labels_and_nothing_else() -> None:
    rows = pd.DataFrame(
        {
            "unit_id": ["u1", "u2", "u1"],
            "rater_id": ["ann", "ann", "model"],
            "rater_kind": ["human", "human", "model"],
            "label": ["1", "2", "1"],
            "order": "",
            "draw": 0,
        }
    )
    same = labels_hash(rows)
    assert labels_hash(rows.iloc[::-1]) == same
    assert labels_hash(rows[rows["rater_kind"] == "human"]) == same
    assert labels_hash(rows.replace({"label": {"2": "3"}})) != same
