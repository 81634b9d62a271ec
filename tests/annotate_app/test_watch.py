"""The watch over the raters: it ends a part while the app runs, and loads nothing into it."""

from __future__ import annotations

import time

import pytest

from evenhand.annotate_app.watch import start_watch
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from harness.studies import with_labels


@pytest.mark.slow
def test_a_rater_whom_a_rule_stops_gets_no_further_unit(make_study):
    folder = make_study(30)
    file = folder / "study.toml"
    file.write_text(file.read_text("utf-8") + "\n[quality]\nstop = ['fast']\n", "utf-8")
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        over = start_watch(study, every=0.2)
        try:
            for rater, seconds in (("ann", 30.0), ("ben", 25.0), ("hasty", 2.0)):
                with_labels(study, {rater: ("LRC" * 9)[:25]}, "shorter", seconds=seconds)
            for _ in range(300):
                if desk.ended("hasty"):
                    break
                time.sleep(0.2)
        finally:
            over.set()
        assert [desk.ended(rater) for rater in ("ann", "ben", "hasty")] == ["", "", "excluded"]
        assert desk.next_sheet("hasty") is None
        assert len(study.ratings()) == 75


def test_without_a_rule_that_stops_nobody_is_watched(make_study, monkeypatch):
    monkeypatch.setattr("threading.Thread", None)  # starting one would fail
    with open_study(make_study(2)) as study:
        start_watch(study)
