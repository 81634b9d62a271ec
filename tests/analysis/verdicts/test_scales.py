"""Gross errors that are too rare to be seen buy no verdict on ordered labels and numbers. All data
are synthetic; `python -m benchmarks.scales` has more scales, and many studies of each.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale
from evenhand.analysis.verdicts.drift import Versions, drift_of, paired_labels
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from evenhand.study.tables.ratings import validate_ratings
from tests.analysis.simulated_labels import analysed, passes

pytestmark = pytest.mark.slow

VERSIONS = Versions("before", "after")
SQUARES = {"ordered": "quadratic"}


class World(NamedTuple):
    """A scale; `squares` and `linear` are the shares of labels at its low end, with half the error
    of an annotator elsewhere, that cost a grader the margin with these weights, and `later` the
    share that costs a later version with an annotator's error the margin in squares.
    """

    scale: Scale
    squares: float
    linear: float
    later: float


WORLDS = {
    "0-100": World(
        Scale("r", tuple(str(n) for n in range(101)), "interval", number=True), 0.020, 0.077, 0.0146
    ),
    "1-5": World(Scale("r", tuple("12345"), "ordinal"), 0.024, 0.078, 0.015),
}
Name = Literal["0-100", "1-5"]


def draw(
    name: Name, rng: np.random.Generator, items: int, noise: float, low: float
) -> tuple[np.ndarray, np.ndarray]:
    """Codes of three annotators (items, 3) and of a grader (items,) with `noise` times their error,
    which gives the lowest label on a share `low` of items. Most labels are high.
    """
    if name == "0-100":
        values, error, least, most = 100 * rng.beta(5, 2.2, items), 5.1, 0, 100
    else:
        values, error, least, most = 5.4 - rng.gamma(1.6, 0.55, items), 0.34, 1, 5

    def cut(seen: np.ndarray) -> np.ndarray:
        return np.clip(np.round(seen), least, most).astype(int) - least

    people = cut(values[:, None] + error * rng.standard_t(6, (items, 3)))
    grader = cut(values + noise * error * rng.standard_t(6, items))
    return people, np.where(rng.random(items) < low, 0, grader)


@pytest.mark.parametrize(
    ("name", "items", "seeds"),
    [
        ("0-100", 60, (3, 9, 0)),
        ("0-100", 100, (2, 5, 8)),
        ("1-5", 60, (9, 0)),
        ("1-5", 100, (8, 0)),
    ],
)
def test_rare_gross_errors_at_the_margin_do_not_pass_with_squares(name, items, seeds):
    """In the first studies of each line there is hardly any such error to see."""
    for seed in seeds:
        low = WORLDS[name].squares
        people, grader = draw(name, np.random.default_rng(seed), items, 0.5, low)
        found = analysed(people, grader[:, None], WORLDS[name].scale, **SQUARES)
        assert passes(found) == [False], seed


@pytest.mark.parametrize("name", ["0-100", "1-5"])
def test_gross_errors_at_the_margin_do_not_pass_with_linear_weights(name):
    for seed in range(3):
        low = WORLDS[name].linear
        people, grader = draw(name, np.random.default_rng(seed), 60, 0.5, low)
        assert passes(analysed(people, grader[:, None], WORLDS[name].scale)) == [False], seed


@pytest.mark.parametrize("name", ["0-100", "1-5"])
def test_a_grader_without_gross_errors_passes_on_100_items(name):
    people, grader = draw(name, np.random.default_rng(3), 100, 0.5, 0.0)
    assert passes(analysed(people, grader[:, None], WORLDS[name].scale)) == [True]


def versions(people: np.ndarray, before: np.ndarray, after: np.ndarray) -> pd.DataFrame:
    """Ratings by annotators and by both versions of a grader."""
    columns = [*people.T, before, after]
    names = [*(f"a{n}" for n in range(people.shape[1])), VERSIONS.before, VERSIONS.after]
    parts = [
        pd.DataFrame({"unit_id": [f"u{n:04}" for n in range(len(codes))], "code": codes}).assign(
            rater_id=name, rater_kind="human" if name.startswith("a") and len(name) < 5 else "model"
        )
        for name, codes in zip(names, columns, strict=True)
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("name", ["0-100", "1-5"])
def test_a_version_that_lost_the_margin_by_rare_gross_errors_is_not_called_unchanged(name):
    world = WORLDS[name]
    for seed in (0, 1, 2):
        rng = np.random.default_rng(seed)
        people, before = draw(name, rng, 60, 1.0, 0.0)
        after = np.where(rng.random(60) < world.later, 0, before)
        ratings = versions(people, before, after)
        ratings["label"] = np.array(world.scale.categories)[ratings.pop("code")]
        labels = paired_labels(
            validate_ratings(ratings.assign(rubric="r")), None, world.scale, VERSIONS
        )
        settings = AnalysisSettings(resamples=10, **SQUARES)
        assert drift_of(labels, VERSIONS, settings, DecisionSettings()).verdict != "unchanged", seed
