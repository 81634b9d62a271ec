"""Where everybody agrees no resample differs, and yet no interval is a single number."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.analysis.results import BASELINES
from tests.analysis.make import rows_of

PAIRS, OTHERS = 60, 80
PEOPLE, GRADERS = ("ann", "ben", "cid"), ("bot", "bot2")
PLACES = {"threshold"}
"""A place or a cut is one of a few numbers: that no resample moves it is an answer."""


def everybody_agrees(*, alike: bool, probabilities: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """60 pairs that all label and 80 that only graders do, of three subjects; all say "y" to
    everything if `alike`, else to every other unit."""
    ratings, units = [], []
    for pair in range(PAIRS + OTHERS):
        for subject in range(3):
            unit = f"p{pair}-{subject}"
            label = "y" if alike or (pair + subject) % 2 else "n"
            units.append(
                {
                    "unit_id": unit,
                    "cluster_id": f"p{pair}",
                    "subject": f"s{subject}",
                    "topic": f"t{pair % 2}",
                    "group": f"g{pair % 3}",
                }
            )
            raters = (*PEOPLE, *GRADERS) if pair < PAIRS else GRADERS
            for rater in raters:
                kind = "model" if rater in GRADERS else "human"
                row = {"unit_id": unit, "rater_id": rater, "rater_kind": kind, "label": label}
                if probabilities and kind == "model":
                    row["p_positive"] = 0.9 if label == "y" else 0.1
                ratings.append(row)
    return pd.DataFrame(ratings), pd.DataFrame(units)


def results_of(ratings: pd.DataFrame, units: pd.DataFrame, method: str) -> pd.DataFrame:
    scale = Scale("", ("y", "n"), affirmative=frozenset("y"))
    asked = {"slices": ["topic"], "groups": ["group"], "interval": method}
    facts = StudyFacts(strata=("topic",))
    return analyse(ratings, units, [scale], resamples=200, facts=facts, **asked).results


@pytest.mark.slow
@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("alike", [False, True])
def test_no_interval_is_a_single_number(alike, probabilities, method):
    ratings, units = everybody_agrees(alike=alike, probabilities=probabilities)
    results = results_of(ratings, units, method)
    assert results["low"].notna().sum() > 300
    single = results[results["high"] - results["low"] < 1e-9]
    # The kappa of a baseline is 0 by construction, whatever anybody says.
    constant = single["rater_b"].isin(BASELINES) & (single["estimate"] == 0)
    kappas = single["statistic"].str.contains("kappa")
    left = single[~(constant & kappas) & ~single["statistic"].isin(PLACES)]
    assert left["statistic"].tolist() == []
    inside = results.dropna(subset=["low"])
    assert (inside["low"] <= inside["estimate"] + 1e-9).all()
    assert (inside["high"] >= inside["estimate"] - 1e-9).all()


@pytest.mark.slow
def test_the_intervals_are_those_of_the_clusters_that_might_differ():
    ratings, units = everybody_agrees(alike=False, probabilities=False)
    results = results_of(ratings, units, "percentile")
    rows = results[(results["subset"] == "all|binary") & (results["at"] == "")]
    found = rows.set_index(["statistic", "rater_a", "rater_b"])[["estimate", "low", "high"]]
    share, affirmed = 1 - 0.025 ** (1 / PAIRS), (ratings["label"] == "y").mean()
    apart = 2 * affirmed * (1 - affirmed)
    for statistic, expected in (
        ("observed_agreement", [1.0, 1 - share, 1.0]),
        ("cohen_kappa", [1.0, 1 - share / apart, 1.0]),
        ("human_ceiling_difference", [0.0, -share / apart, share / apart]),
    ):
        assert found.loc[(statistic, "humans", "bot")].tolist() == pytest.approx(expected)


def test_nobody_affirmed_anything_is_no_proof_that_nobody_would():
    """By subject 60 pairs are labelled and 140 graded: people's sample says how sure that is."""
    ratings, units = everybody_agrees(alike=True, probabilities=False)
    ratings["label"] = "n"
    results = results_of(ratings, units, "percentile")
    for statistic, clusters in (("rate_human", PAIRS), ("rate_raw", 140), ("rate_ppi", PAIRS)):
        rows = rows_of(results, statistic, subset="all|binary")
        assert len(rows) > 0
        assert (rows["estimate"] == 0).all()
        assert (rows["low"] == 0).all()
        upper = 1 - 0.025 ** (1 / clusters)
        assert rows["high"].to_numpy() == pytest.approx(np.full(len(rows), upper))
