"""The confidence filter: counts by hand, and who has one."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import analyse
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.thresholds.routing import candidate_cuts
from evenhand.errors import InputError
from evenhand.rubrics import load_rubric

SIDES = Scale.from_rubric(load_rubric("stance"))


def study(
    said: list[str], people: list[str], confidence: list[float], scale: Scale = SIDES
) -> pd.DataFrame:
    """Two people who agree, and a grader that gives its label this probability."""
    rows = []
    for n, (own, theirs, p) in enumerate(zip(said, people, confidence, strict=True)):
        unit = f"u{n:04d}"
        rows += [(unit, who, "human", theirs, "") for who in ("ann", "ben")]
        rest = (1 - p) / (len(scale.categories) - 1)
        shares = {key: p if key == own else rest for key in scale.categories}
        rows.append((unit, "g", "model", own, json.dumps(shares)))
    names = ["unit_id", "rater_id", "rater_kind", "label", "probabilities"]
    return pd.DataFrame(rows, columns=names).assign(rubric=scale.name)


def filtered(ratings: pd.DataFrame, scale: Scale = SIDES, **rule: float) -> pd.DataFrame:
    found = analyse(ratings, None, [scale], resamples=200, **rule)
    rows = found.results[found.results["statistic"].str.startswith("confidence_")]
    return rows.set_index(["statistic", "at"])


@pytest.fixture
def surer_is_better() -> pd.DataFrame:
    """100 units: sure of .95 on 60, all right; of .8 on 20, 16 right; of .6 on 20, 5 right.

    Strength differs throughout (4 where people say 3): it collapses away. Among the unsure 40, ten
    are unclear to people, and the grader calls five of those so.
    """
    people = ["3"] * 60 + ["1"] * 20 + ["1"] * 10 + ["U"] * 10
    said = ["4"] * 60 + ["2"] * 16 + ["4"] * 4 + ["4"] * 10 + ["U"] * 5 + ["4"] * 5
    return study(said, people, [0.95] * 60 + [0.8] * 20 + [0.6] * 20)


def test_the_curve_is_what_counting_gives(surer_is_better):
    rows = filtered(surer_is_better, confidence_cut=0.9)
    for cut, kept, right in [(0.6, 100, 81), (0.8, 80, 76), (0.9, 60, 60), (0.95, 60, 60)]:
        coverage = rows.loc[("confidence_coverage", repr(cut))]
        agreement = rows.loc[("confidence_agreement", repr(cut))]
        assert (coverage["estimate"], coverage["n_units"]) == (kept / 100, 100)
        assert agreement["estimate"] == pytest.approx(right / kept)
        assert agreement["n_units"] == kept
        assert ("the declared cut" in agreement["note"]) is (cut == 0.9)
    assert set(rows["subset"]) == {"all|collapsed"}


def test_cuts_to_try_are_bounded_and_occur(rng):
    confidence = rng.random(5000)
    cuts = candidate_cuts(confidence, 0.9)
    assert len(cuts) == 21
    assert set(cuts) - {0.9} <= set(confidence)
    kept = [(confidence >= cut).mean() for cut in cuts if cut != 0.9]
    assert np.allclose(np.diff(kept), -0.05, atol=0.001)


def test_without_coarser_categories_the_categories_themselves_count():
    """No affirmative options either: units of one pattern must not be folded into one."""
    plain = Scale("tone", ("x", "y"))
    ratings = study(["x"] * 60 + ["y"] * 60, ["x"] * 120, [0.9] * 60 + [0.6] * 60, plain)
    rows = filtered(ratings, plain)
    assert set(rows["subset"]) == {"all"}
    assert rows.loc[("confidence_agreement", "0.6"), "estimate"] == 0.5
    assert rows.loc[("confidence_agreement", "0.9"), "estimate"] == 1


def test_hard_labels_have_no_such_rows(surer_is_better):
    assert filtered(surer_is_better.drop(columns="probabilities")).empty


def test_a_cut_or_target_outside_0_and_1_is_refused(surer_is_better):
    for rule, must in (("confidence_cut", "be greater than 0"), ("confidence_target", "be less")):
        with pytest.raises(InputError, match=f"{rule} is .*; it must {must}"):
            filtered(surer_is_better, **{rule: 0.0 if "cut" in rule else 1.2})
