"""A grader's performance by group: scikit-learn's values, a known weak group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score

from evenhand.analysis import analyse
from evenhand.analysis.labels.scale import Scale

YES = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))


def study(
    rng: np.random.Generator, errors: dict[str, float], per_group: int = 150
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three people who always agree, and a grader that errs with its group's probability."""
    groups = [group for group in errors for _ in range(per_group)]
    truth = rng.random(len(groups)) < 0.4
    wrong = rng.random(len(groups)) < np.array([errors[group] for group in groups])
    rows = []
    for n, (real, flip) in enumerate(zip(truth, wrong, strict=True)):
        for who in ("ann", "ben", "cleo"):
            rows.append((f"u{n}", who, "human", "y" if real else "n"))
        rows.append((f"u{n}", "g", "model", "y" if real != flip else "n"))
    ratings = pd.DataFrame(rows, columns=["unit_id", "rater_id", "rater_kind", "label"])
    ids = [f"u{n}" for n in range(len(groups))]
    return ratings, pd.DataFrame({"unit_id": ids, "cluster_id": ids, "source": groups})


def results_of(ratings: pd.DataFrame, units: pd.DataFrame, resamples: int = 500) -> pd.DataFrame:
    found = analyse(ratings, units, [YES], groups=["source"], resamples=resamples).results
    return found[found["statistic"].str.startswith("group_")].set_index(
        ["statistic", "subset", "at"]
    )


def test_values_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    ratings, units = study(rng, {"left": 0.1, "right": 0.25}, 60)
    rows = results_of(ratings, units)
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label")
    for group in ("left", "right"):
        own = wide.loc[units.loc[units["source"] == group, "unit_id"]]
        said, is_so = own["g"], own["ann"]
        subset = f"source={group}|binary"
        expected = {
            ("group_balanced_accuracy", ""): balanced_accuracy_score(is_so, said),
        }
        for (statistic, at), value in expected.items():
            assert rows.loc[(statistic, subset, at), "estimate"] == pytest.approx(value)


def test_a_known_weak_group_is_named(rng: np.random.Generator) -> None:
    rows = results_of(*study(rng, {"left": 0.05, "centre": 0.05, "right": 0.30}))
    weak = rows.loc[("group_difference", "source=right|binary", "")]
    assert weak["high"] < 0
    assert weak["note"] == "permutation p 0.001; max-T p 0.001 of 3"


def test_a_group_of_harder_units_alone_is_not_called_different(rng: np.random.Generator) -> None:
    """The grader misses four in ten "y" and no "n", whatever the group; one group has no "y", so
    that its balanced accuracy is 1.
    """
    ratings, units = study(rng, {"left": 0.0, "right": 0.0}, 120)
    ratings = ratings[ratings["rater_id"] != "cleo"]
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label")
    left = wide.index.isin(units.loc[units["source"] == "left", "unit_id"])
    wide.loc[left, :] = "n"
    missed = (wide["ann"] == "y") & (rng.random(240) < 0.4)
    wide.loc[missed, "g"] = "n"
    ratings = wide.stack().rename("label").reset_index()
    ratings["rater_kind"] = np.where(ratings["rater_id"] == "g", "model", "human")
    rows = results_of(ratings, units, resamples=50)
    row = rows.loc[("group_difference", "source=left|binary", "")]
    assert row["estimate"] > 0.1
    assert row["note"] == "permutation p 1; max-T p 1 of 2"


def test_an_empty_group_and_a_single_one(rng: np.random.Generator) -> None:
    ratings, units = study(rng, {"only": 0.1}, 40)
    units.loc[units.index[:5], "source"] = ""
    rows = results_of(ratings, units)
    assert rows.loc[("group_balanced_accuracy", "source=only", ""), "n_units"] == 35
    assert "group_difference" not in rows.index.get_level_values(0)
