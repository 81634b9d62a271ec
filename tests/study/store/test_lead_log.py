"""What leads did: every act with who and when, and none of them ever changed."""

from __future__ import annotations

import pandas as pd
import sqlalchemy as sa

from evenhand.study.access.lead_login import new_link_token, open_link
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.oversight import decisions_table, exclude, oversight, pause, readmit
from evenhand.study.store.logs.lead_log import COLUMNS, acts, note_act, note_settings
from evenhand.study.store.schema import lead_events


def test_every_act_says_who_and_what_the_latest_first(make_study) -> None:
    study = make_study()
    assert acts(study.store).empty
    assert tuple(acts(study.store)) == COLUMNS
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
