"""Responses' numbers of words beside the units."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from evenhand.rubrics import asked_rubric
from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.prompts.items import item_columns, make_items
from evenhand.study.prompts.pairs import LENGTH_COLUMNS


def test_every_unit_carries_the_lengths_of_its_own_responses(make_study: Callable) -> None:
    """ "s1: for 0." has three words, as has every response of the fixture."""
    study = make_study()
    units = study.units_with_lengths("all").set_index("unit_id")
    assert units.loc["p0001|s1", list(LENGTH_COLUMNS)].tolist() == ["", "3", "3"]
    assert units.loc["p0001|s1|b", list(LENGTH_COLUMNS)].tolist() == ["3", "", ""]
    assert study.units("all").columns.tolist() == units.reset_index().columns.tolist()[:-3]


def test_what_is_shown_beside_a_response_has_a_length_too(tmp_path: Path) -> None:
    rows = {
        "prompt": ["Where is it?", "Where?"],
        "context": ["In Basel, since May.", ""],
        "output": ["Basel", "Bern"],
    }
    frame = pd.DataFrame(rows)
    items = make_items(frame, item_columns(frame, "f.csv"), "f.csv")
    rubric = asked_rubric("Good?", items.blocks, options=["yes", "no"])
    create_study(tmp_path / "s", StudyPlan(items=items, rubrics=[rubric]))
    with open_study(tmp_path / "s") as study:
        units = study.units_with_lengths().sort_values("unit_id")
    assert units["prompt_words"].tolist() == ["3", "1"]
    assert units["context_words"].tolist() == ["4", ""]
    assert units["response_words"].tolist() == ["1", "1"]


def test_pairs_without_responses_have_no_length(make_study: Callable) -> None:
    units = make_study(responses=None).units_with_lengths()
    assert (units[list(LENGTH_COLUMNS)] == "").all(axis=None)
