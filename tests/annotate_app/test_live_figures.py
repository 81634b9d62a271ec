"""Live figures: made apart, once for each state of the study."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evenhand.annotate_app.lead.agreement_page import enough, main_rows
from evenhand.annotate_app.lead.parts.live_figures import FiguresMaker, LiveFigures
from evenhand.annotate_app.lead.raters_page import in_words
from evenhand.reporting.live_figures import study_quality
from evenhand.study import open_study
from evenhand.study.lead.progress import data_version
from harness.studies import with_labels


def made(maker: FiguresMaker, version: str) -> LiveFigures:
    for _ in range(600):
        maker.wanted(version)
        if maker.latest and maker.latest.version == version:
            return maker.latest
        time.sleep(0.1)
    pytest.fail("no figures")


def label(folder: Path, rater: str, labels: str) -> str:
    with open_study(folder) as study:
        return data_version(with_labels(study, {rater: labels}, "shorter"))


def test_a_rater_whom_nobody_labels_beside_has_no_usual_run(make_study):
    folder = make_study(6)
    label(folder, "ann", "LRCLRC")
    with open_study(folder) as study:
        (row,) = in_words(study_quality(study)).to_dict("records")
    assert (row["run"], row["kappa"], row["lean"], row["checks"]) == ("", "", "", "")


@pytest.mark.thorough
def test_figures_follow_the_labels(make_study):
    folder = make_study(12)
    maker = FiguresMaker(folder)
    with open_study(folder) as study:
        empty = made(maker, data_version(study))
    assert empty.complaint.startswith("the study has no labels and no grades yet")
    assert maker.kept is None

    label(folder, "ann", "LRCLRCLRCLRC")
    first = made(maker, label(folder, "NA", "LRCLRCLRCLRR"))
    assert first.complaint == ""
    assert first.quality["rater_id"].tolist() == ["NA", "ann"]
    assert in_words(first.quality)["kappa"].str.startswith("0.87").all()
    main = main_rows(first.results)
    assert main["who"].iloc[0] == "Annotators with one another"
    (sentence,) = enough(main, 0.01, "pair")
    assert sentence.startswith("shorter: label about ")
    (sentence,) = enough(main, 0.5, "pair")
    assert sentence.startswith("shorter: enough.")

    maker.wanted(first.version)
    assert maker.latest is first  # nothing has come in: nothing is made
    stages = set()
    newer = label(folder, "cy", "LLLLLLLLLLLL")
    maker.wanted(newer)
    while maker.stage:
        assert maker.kept is first  # what was finished last stays until there is more
        stages.add(maker.stage)
        time.sleep(0.01)
    assert {"reading the labels", "analysing shorter (1 of 1)"} <= stages
    second = made(maker, newer)
    assert maker.kept is second
    assert len(second.quality) == 3
    assert second.over_time["labels"].tolist() == [6, 12, 18, 24, 30, 36]
    assert first.results is not None  # who still looks at the last ones can
