"""The lead's acts, looks at the verdict, and tuned thresholds: kept as they were, on both kinds of
store.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.study import create_study, open_study
from evenhand.study.access.lead_login import new_link_token, open_link
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.oversight import decisions_table, exclude, oversight, pause, readmit
from evenhand.study.store.logs.decisions import (
    ACT_COLUMNS,
    TUNED_THRESHOLDS,
    TunedThreshold,
    acts,
    labels_hash,
    look_numbers,
    note_act,
    note_settings,
)
from evenhand.study.store.schema import lead_events, threshold_events
from harness.studies import upgraded_without

# Acts


def test_every_act_says_who_and_what_the_latest_first(make_study) -> None:
    study = make_study()
    assert acts(study.store).empty
    assert tuple(acts(study.store)) == ACT_COLUMNS
    desk = AnnotationDesk(study)
    task = desk.next_task("ann")
    desk.submit("ann", task.task_id, "s", task.rubric.categories[0])
    exclude(study.store, "ann", "too fast", "ada")
    note_act(study.store, "export", "ratings.csv", "120 bytes", "ben")
    readmit(study.store, "ann", "it was a slip", "ada")
    pause(study.store, "lunch", "ada")
    found = acts(study.store)
    assert found["kind"].tolist() == ["pause", "readmit", "export", "exclude"]
    assert found["done_by"].tolist() == ["ada", "ada", "ben", "ada"]
    assert found.loc[2, ["about", "detail"]].tolist() == ["ratings.csv", "120 bytes"]
    assert found["created_at"].is_monotonic_decreasing
    # What is noted decides nothing, and is no decision.
    assert oversight(study.store).paused
    assert not oversight(study.store).exclusions
    assert decisions_table(study.store)["kind"].tolist() == ["exclude", "readmit", "pause"]


def test_links_and_logins_are_no_acts(make_study) -> None:
    study = make_study()
    open_link(study.store, new_link_token(study.store))
    assert acts(study.store).empty


def test_settings_are_noted_once_they_are_others(make_study) -> None:
    study = make_study()
    for text in ("one", "one", "two", "two", "one"):
        note_settings(study.store, text)
    found = acts(study.store)
    assert found["kind"].tolist() == ["settings"] * 3
    assert found["detail"].nunique() == 2


def test_what_was_noted_stays_as_it_was(make_study) -> None:
    study = make_study()

    def kept() -> pd.DataFrame:
        return study.store.table(sa.select(lead_events).order_by(lead_events.c.event_id))

    before = kept().head(0)
    for number in range(3):
        note_act(study.store, "account", f"name{number}", "set: lead", "ada")
        now = kept()
        assert now.head(number).reset_index(drop=True).equals(before) or number == 0
        before = now


# Looks: counted by what people had labelled, and never forgotten


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


# Tuned thresholds


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_what_was_tuned_is_kept_to_the_last_digit(
    make_study, request: pytest.FixtureRequest, database: str
) -> None:
    options = {}
    if database == "postgresql":
        options["store"] = request.getfixturevalue("new_postgresql")()
    study = make_study(**options)
    about = {"rubric": "refusal", "grader": "g", "reference": "humans", "instead_of": 0.1 + 0.2}
    first = TunedThreshold(threshold=1 / 3, objective="kappa", clusters=["p1", "p2"], **about)
    second = TunedThreshold(threshold=0.1314, objective="f1", clusters=["p9"], **about)
    with upgraded_without(study, threshold_events) as again:
        assert TUNED_THRESHOLDS.all(again.store) == []
        TUNED_THRESHOLDS.append(again.store, [])
        TUNED_THRESHOLDS.append(again.store, [first])
        TUNED_THRESHOLDS.append(again.store, [second])
        found = TUNED_THRESHOLDS.all(again.store)
    assert [each.clusters for each in found] == [["p1", "p2"], ["p9"]]
    assert [(each.threshold, each.instead_of) for each in found] == [
        (1 / 3, 0.1 + 0.2),
        (0.1314, 0.1 + 0.2),
    ]
    assert [(each.objective, each.created_at) for each in found] == [
        ("kappa", first.created_at),
        ("f1", second.created_at),
    ]
