"""Differences between the sides of pairs: against sums written out, OLS, and studies with gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import analyse
from evenhand.errors import InputError
from tests.analysis.graded_studies import YES, study

SCALE = replace(YES, unit="response")
STATISTIC = "rate_side_difference_ppi"


def sided(
    rng: np.random.Generator,
    rates: tuple[tuple[float, ...], tuple[float, ...]] = ((0.6, 0.4), (0.3, 0.4)),
    **options: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ratings and units of answers to both sides of pairs, with the rates of either side's."""
    ratings, units = [], []
    errors = [(0.9, 0.8)] * len(rates[0])
    for side, own in zip("ab", rates, strict=True):
        labels, table = study(rng, {"g": errors}, rates=own, **options)
        ratings.append(labels.assign(unit_id=labels["unit_id"] + f"|{side}"))
        units.append(table.assign(unit_id=table["unit_id"] + f"|{side}", side=side))
    return pd.concat(ratings, ignore_index=True), pd.concat(units, ignore_index=True)


def found_in(ratings: pd.DataFrame, units: pd.DataFrame, **options: object) -> pd.DataFrame:
    results = analyse(ratings, units, [SCALE], **{"resamples": 400, **options}).results
    return results[results["statistic"] == STATISTIC].set_index("at")


def apart(ratings: pd.DataFrame, units: pd.DataFrame, rater: str, subject: str) -> pd.Series:
    """A rater's verdict on side a minus that on side b, by pair; NaN where one is missing."""
    own = ratings[ratings["rater_id"] == rater].merge(units, on="unit_id")
    own = own[own["subject"] == subject]
    wide = own.assign(y=(own["label"] == "y").astype(float)).pivot(
        index="cluster_id", columns="side", values="y"
    )
    return wide["a"] - wide["b"]


def test_an_estimate_is_ppi_of_the_differences_and_an_intercept(rng: np.random.Generator) -> None:
    """PPI++ of the differences within pairs, by numpy and as two intercepts of a regression."""
    from statsmodels.regression.linear_model import OLS

    ratings, units = sided(rng)
    found = found_in(ratings, units)
    assert set(found["subset"]) == {"side=side a>side b|binary"}
    for subject, row in found.iterrows():
        grader = apart(ratings, units, "g", str(subject))
        people = apart(ratings, units, "h0", str(subject)).reindex(grader.index)
        known = people.notna().to_numpy()
        n, more = known.sum(), (~known).sum()
        covariance = np.cov(people[known], grader[known], ddof=0)[0, 1]
        weight = covariance / (1.0 + n / more) / grader.var(ddof=0)
        z = np.where(known, people.fillna(0.0) - weight * grader, weight * grader)
        blocks = np.column_stack([known, ~known]).astype(float)
        fitted = OLS(z, blocks).fit(cov_type="HC0")
        test = fitted.t_test([[1.0, 1.0]])
        assert row["estimate"] == pytest.approx(test.effect.item(), abs=1e-6)
        # Two subjects hold together: a little wider than one interval of the regression.
        reach = (row["high"] - row["low"]) / 2 / test.sd.item()
        assert 1.96 < reach < 2.6
        assert (row["n_units"], row["n_clusters"]) == (400, 400)
        assert row["note"] == "150 of them labelled by people"
    assert found.loc["s0", "low"] > 0.1
    assert found.loc["s1", "low"] < 0 < found.loc["s1", "high"]


def test_pairs_drop_out_of_a_difference(rng: np.random.Generator) -> None:
    """Where both answers to a pair are nearly the same, it is surer than either side's rate."""
    ratings, units = sided(rng, rates=((0.5,), (0.5,)))
    first = ratings[ratings["unit_id"].str.endswith("a")]
    second = first.assign(unit_id=first["unit_id"].str[:-1] + "b")
    results = analyse(pd.concat([first, second]), units, [SCALE], resamples=400).results
    (row,) = results[results["statistic"] == STATISTIC].to_dict("records")
    rates = results[(results["statistic"] == "rate_ppi") & results["subset"].str.contains("side=")]
    assert row["estimate"] == 0
    assert row["low"] < 0 < row["high"]
    assert row["high"] - row["low"] < 0.5 * (rates["high"] - rates["low"]).min()


def test_leanings_say_which_side_is_first(rng: np.random.Generator) -> None:
    ratings, units = sided(rng)
    number = units["cluster_id"].str[1:].astype(int)
    swapped, unknown = number % 2 == 0, number % 10 == 9
    for column, names in (("prompt_a_group", ("pro", "con")), ("prompt_b_group", ("con", "pro"))):
        units[column] = np.where(unknown, "x", np.where(swapped, *names))
    leanings = {"left": ["pro"], "right": ["con"]}
    found = found_in(ratings, units, leanings=leanings)
    assert set(found["subset"]) == {"side=left>right|binary"}
    assert (found["n_units"] == 360).all()
    assert abs(found.loc["s0", "estimate"]) < 0.1  # the sides change places: nothing is left
    results = analyse(ratings, units, [SCALE], resamples=50, leanings=leanings).results
    raw = results[(results["statistic"] == "rate_raw") & results["subset"].str.contains("leaning=")]
    raw = raw.set_index(["subset", "at"])["estimate"]
    own = ratings[ratings["rater_id"] == "g"].merge(units, on="unit_id")
    left = own["prompt_a_group"].eq("pro") & own["side"].eq("a")
    left |= own["prompt_b_group"].eq("pro") & own["side"].eq("b")
    expected = own[left & own["subject"].eq("s0")]["label"].eq("y").mean()
    assert raw["leaning=left|binary", "s0"] == pytest.approx(expected)


def test_what_has_one_side_only_is_left_out_and_said(rng: np.random.Generator) -> None:
    ratings, units = sided(rng, rates=((0.6, 0.4, 0.5), (0.3, 0.4, 0.5)))
    unit = ratings["unit_id"]
    one_side = unit.str.contains(r"\|s1\|b") | unit.str.contains(r"p039\d\|s0\|b")
    nobody = unit.str.contains(r"\|s2") & (ratings["rater_kind"] == "human")
    found = found_in(ratings[~one_side & ~nobody], units)
    assert found.loc["s0", "n_units"] == 390
    assert found.loc["s0", "note"].startswith("10 answers to one side alone left out; ")
    for subject, reason in (("s1", "answers to one side of each pair only"),
                            ("s2", "no_pairable_units")):  # fmt: skip
        assert np.isnan(found.loc[subject, ["estimate", "low", "high"]].astype(float)).all()
        assert found.loc[subject, "note"] == reason
    ratings, units = sided(rng, pairs=60, labelled=60)
    found = found_in(ratings, units)
    assert found["note"].str.startswith("people labelled all of them: their own rate").all()
    for subject, row in found.iterrows():
        theirs = apart(ratings, units, "h0", str(subject))
        assert row["estimate"] == pytest.approx(theirs.mean())
        assert row["low"] < row["estimate"] < row["high"]


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_sides_that_never_differ_have_bounds(rate: float, rng: np.random.Generator) -> None:
    ratings, units = sided(rng, rates=((rate,) * 2,) * 2, labelled=20)
    ratings["label"] = "y" if rate else "n"
    found = found_in(ratings, units, resamples=50)
    assert (found["estimate"] == 0).all()
    assert (found["low"] < 0).all()
    assert (found["high"] > 0).all()
    assert found["note"].str.startswith("fewer than 30 units are labelled").all()


def test_one_side_of_every_pair_has_no_row(rng: np.random.Generator) -> None:
    ratings, units = sided(rng)
    first = ratings["unit_id"].str.endswith("|a")
    assert found_in(ratings[first], units, resamples=50).empty


@pytest.mark.parametrize("labelled", [6, 40])
def test_pairs_that_all_go_one_way_leave_room(labelled: int, rng: np.random.Generator) -> None:
    """As much as that many labelled pairs leave, not the graded ones."""
    found = found_in(*sided(rng, rates=((1.0, 0.5, 0.0), (0.0, 0.5, 1.0)), labelled=labelled))
    most = 1 - 2 * (1 - 0.025 ** (1 / labelled))
    assert found.loc["s0", "estimate"] > 0.9
    assert found.loc["s0", "low"] <= most
    assert found.loc["s2", "estimate"] < -0.9
    assert found.loc["s2", "high"] >= -most


def test_too_few_labelled_pairs_have_no_interval(rng: np.random.Generator) -> None:
    found = found_in(*sided(rng, rates=((1.0, 0.5), (0.0, 0.5)), labelled=4))
    assert found["estimate"].notna().all()
    assert found[["low", "high"]].isna().all(axis=None)
    assert found["note"].str.startswith("too_few_clusters; ").all()


def test_a_column_of_sides_or_leanings_is_refused_by_name(rng: np.random.Generator) -> None:
    ratings, units = sided(rng)
    units = units.assign(prompt_a_group="pro", prompt_b_group="con", leaning="left")
    leanings = {"left": ["pro"], "right": ["con"]}
    for column in ("side", "leaning"):
        with pytest.raises(InputError, match=f"units: {column} cannot be a column"):
            analyse(ratings, units, [SCALE], slices=[column], leanings=leanings, resamples=20)
    assert not analyse(ratings, units, [SCALE], slices=["leaning"], resamples=20).results.empty
