"""The look at quality: a synthetic crowd with known faults, and each measure by hand."""

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.analysis.raters import IDLE_SECONDS, QUALITY_COLUMNS, rater_quality
from evenhand.study.settings.analysis import QualitySettings
from tests.analysis.crowd import FAULTS, SCALES, crowd
from tests.analysis.make import ratings_of
from tests.peers import metrics

YES_NO = {"": Scale("", ("y", "n"))}


@pytest.mark.journey
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crowds_known_faults_are_named_and_nobody_else(seed):
    found = rater_quality(crowd(seed), SCALES).set_index("rater_id")
    named = {rater: set(flags.split()) for rater, flags in found["flagged"].items() if flags}
    assert named.keys() == FAULTS.keys()
    for rater, faults in FAULTS.items():
        assert faults <= named[rater], (rater, found.loc[rater])
    assert found.columns.tolist() == list(QUALITY_COLUMNS[1:])
    assert "of the others' time" in found.loc["hasty", "reason"]


def quality(labels):
    return rater_quality(ratings_of(labels), YES_NO).set_index("rater_id")


def test_with_one_other_rater_the_agreement_is_cohens_kappa():
    labels = {"ann": "yynnyynynnyy" * 4, "ben": "yynyyynynyyn" * 4}
    found = quality(labels)
    expected = metrics.cohen_kappa_score(list(labels["ann"]), list(labels["ben"]))
    assert found["agreement"].tolist() == pytest.approx([expected, expected])
    assert (found["behind"].tolist(), set(found["flagged"])) == ([0, 0], {""})


def test_leaning_by_hand():
    # The others say y on 10 of 40 units; ann on 30, so 20 of 40 more: a half.
    others = "y" * 10 + "n" * 30
    row = quality({"ann": "y" * 30 + "n" * 10, "ben": others, "cy": others}).loc["ann"]
    assert (row["leaning"], row["leaning_at"]) == (0.5, "y")


def test_drift_by_hand():
    # The others always agree; ann agrees with them on all of the first 20, on half of the rest.
    others = "yn" * 20
    row = quality({"ann": others[:20] + "y" * 20, "ben": others, "cy": others}).loc["ann"]
    assert row["drift"] == -0.5
    assert "drift" in row["flagged"]


def timed(minutes, seconds):
    start = pd.Timestamp("2026-03-02T09:00:00Z")
    stamps = [(start + pd.Timedelta(minutes=at)).isoformat() for at in minutes]
    return ratings_of({"ann": "y" * len(minutes)}).assign(seconds=seconds, created_at=stamps)


def test_idle_time_is_counted_within_a_session_only():
    # Gaps of 1, 12 and 300 minutes, of which 30 s each went into the answer: only the 12 are idle.
    rules = QualitySettings(min_answers=4)
    row = rater_quality(timed([0, 1, 13, 313], 30), YES_NO, rules=rules).iloc[0]
    assert (row["idle_minutes"], row["flagged"]) == (11.5, "idle")


def test_attention_checks_count_from_the_first_answer_on():
    checks = pd.DataFrame({"rater_id": ["ann"] * 3, "passed": [True, False, False]})
    row = rater_quality(timed([0, 1], 20), YES_NO, attention=checks).iloc[0]
    assert (row["attention_passed"], row["attention_given"]) == (1, 3)
    assert (row["flagged"], row["reason"]) == ("attention", "failed 2 of 3 attention checks")


def test_a_lone_rater_and_none_at_all():
    row = rater_quality(timed([0, 1], 20), YES_NO).iloc[0]
    assert np.isnan([row["agreement"], row["drift"]]).all()
    assert row["flagged"] == ""
    assert rater_quality(timed([0], 1).assign(rater_kind="model"), YES_NO).empty


def test_a_run_that_the_units_explain_is_usual():
    # Everybody says y 40 times on end: nothing to see. One who says so where the others mix is.
    assert set(quality(dict.fromkeys(("ann", "ben", "cy"), "y" * 40))["flagged"]) == {""}
    row = quality({"ann": "y" * 40, "ben": "yn" * 20, "cy": "ny" * 20}).loc["ann"]
    assert row["longest_run"] == 40
    assert "run" in row["flagged"]


SCALE = Scale("", ("x", "y"))


def session(labels, seconds=None):
    """Labels by rater, one letter a unit, given in the order of the units a second apart."""
    ratings = ratings_of(labels)
    unit = ratings["unit_id"].str[1:].astype(int)
    took = zip(ratings["rater_id"], unit, strict=True)
    ratings["seconds"] = [(seconds or {}).get(who, [10.0] * 999)[n] for who, n in took]
    ratings["created_at"] = [f"2026-03-02T10:{n // 60:02}:{n % 60:02}+00:00" for n in unit]
    return ratings


def found(ratings):
    results = analyse(ratings, None, [SCALE], resamples=20).results
    return results.set_index(["statistic", "rater_a", "at"])


def test_agreement_with_the_others():
    """ann and ben agree on all of the first 20 units and on half of the last 20."""
    rows = found(session({"ann": "x" * 40, "ben": "x" * 20 + "xy" * 10}))
    whole = rows.loc[("rater_agreement", "ann", "")]
    assert whole["estimate"] == pytest.approx(0.75)
    reach = 1.96 * np.sqrt(0.75 * 0.25 / 40 * 40 / 39)
    assert whole["low"] == pytest.approx(0.75 - reach, abs=1e-4)


def test_time_per_label_leaves_pauses_out_and_counts_them():
    times = [*range(1, 30), IDLE_SECONDS + 1]
    rows = found(session({"ann": "x" * 30, "ben": "x" * 30}, {"ann": times}))
    row = rows.loc[("rater_seconds_median", "ann", "")]
    assert (row["estimate"], row["note"]) == (15, "left out, over 900 s: 1")
