"""Parts of the sample, some of the people, and other clusters: the same figures on less."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.errors import InputError

SCALE = Scale("", ("1", "2", "3"), "ordinal", frozenset({"3"}))
MAIN = {
    "observed_agreement",
    "weighted_kappa_quadratic",
    "krippendorff_alpha_ordinal",
    "human_ceiling_difference",
}


@pytest.fixture
def sliced(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three people and two graders on 60 pairs of 4 units; grader g fails on topic t0."""
    truth = rng.integers(0, 3, 240)
    labels = {name: noisy(rng, truth, 3, 0.7, missing=0.1) for name in ("ann", "ben", "cem")}
    topic = np.array([f"t{n // 4 % 3}" for n in range(240)])
    good, bad = noisy(rng, truth, 3, 0.9), noisy(rng, truth, 3, 0.0)
    labels["g"] = list(np.where(topic == "t0", bad, good))
    labels["h"] = noisy(rng, truth, 3, 0.6)
    units = pd.DataFrame(
        {
            "unit_id": [f"u{n:05d}" for n in range(240)],
            "cluster_id": [f"c{n // 4}" for n in range(240)],
            "stance": [f"s{n // 12}" for n in range(240)],
            "topic": topic,
            "side": ["a" if n % 2 else "" for n in range(240)],
        }
    )
    return make_ratings(labels, ["g", "h"]), units


def _of(results: pd.DataFrame, subset: str, at: str = "") -> pd.DataFrame:
    own = results[(results["subset"] == subset) & (results["at"] == at)]
    return own.set_index(["statistic", "rater_a", "rater_b"])


@pytest.mark.slow
def test_a_slice_is_an_analysis_of_its_units(
    sliced: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    ratings, units = sliced
    whole = analyse(ratings, units, [SCALE], slices=["topic"], resamples=400).results
    kept = units.loc[units["topic"] == "t1", "unit_id"]
    alone = analyse(ratings[ratings["unit_id"].isin(kept)], units, [SCALE], resamples=400).results
    for ending in ("", "|binary"):
        part, same = _of(whole, f"topic=t1{ending}"), _of(alone, f"all{ending}")
        to_the_rest = ["slice_difference", "part_non_inferiority"]
        bias = ("bias_slice", "bias_slice_p", "bias_slice_at_most", "bias_slice_detectable")
        to_the_rest += (*bias, "rate_human", "rate_raw", "rate_ppi") if ending else ()
        main = part.drop(to_the_rest, level="statistic", errors="ignore")
        kappa = "cohen_kappa" if ending else "weighted_kappa_quadratic"
        alpha = "krippendorff_alpha_" + ("nominal" if ending else "ordinal")
        wanted = {"observed_agreement", kappa, alpha, "human_ceiling_difference"}
        assert set(main.index.get_level_values(0)) == wanted
        for key, row in main.iterrows():
            assert row["estimate"] == pytest.approx(same.loc[key, "estimate"]), key
            assert row["n_units"] == same.loc[key, "n_units"]
            # Other resamples of the same clusters: alike but for chance.
            width = same.loc[key, "high"] - same.loc[key, "low"]
            assert row["low"] == pytest.approx(same.loc[key, "low"], abs=0.25 * width)
    pd.testing.assert_frame_equal(
        whole[whole["subset"].isin(["all", "all|binary"])].reset_index(drop=True),
        analyse(ratings, units, [SCALE], resamples=400).results,
    )


@pytest.mark.slow
def test_slice_differences_are_screened_together(
    sliced: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    ratings, units = sliced
    results = analyse(ratings, units, [SCALE], slices=["topic"], resamples=500).results
    found = results[(results["statistic"] == "slice_difference")]
    found = found[~found["subset"].str.endswith("|binary")]
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label")
    inside = units.set_index("unit_id").loc[wide.index, "topic"] == "t0"
    row = found[(found["rater_b"] == "g") & (found["subset"] == "topic=t0")].iloc[0]
    people = wide[["ann", "ben", "cem"]]
    agree, held = people.eq(wide["g"], axis=0), people.notna()
    share = {w: agree[inside == w].sum().sum() / held[inside == w].sum().sum() for w in (0, 1)}
    assert row["estimate"] == pytest.approx(share[1] - share[0])
    assert row["high"] < 0
    given = found["note"].str.extract(r"bootstrap p ([\d.e-]+); Benjamini-Hochberg p ([\d.e-]+)")
    raw, adjusted = given[0].astype(float), given[1].astype(float)
    assert adjusted.to_numpy() == pytest.approx(multipletests(raw, method="fdr_bh")[1], rel=2e-3)
    assert found["note"].str.endswith("of 6").all()
    assert adjusted[found["rater_b"].to_numpy() == "g"].iloc[0] < 0.05


@pytest.mark.thorough
def test_screening_keeps_its_level(make_ratings: Callable) -> None:
    """Where nothing differs, raw p values below .1 come up in about a tenth of samples."""
    rng = np.random.default_rng(8)
    low = 0
    for _ in range(60):
        labels = {name: rng.choice(["1", "2"], 120) for name in ("ann", "g")}
        units = pd.DataFrame(
            {"unit_id": [f"u{n:05d}" for n in range(120)], "part": ["x", "y"] * 60}
        )
        found = analyse(
            make_ratings(labels, ["g"]),
            units,
            [Scale("", ("1", "2"))],
            slices=["part"],
            resamples=200,
        ).results
        note = found.loc[found["statistic"] == "slice_difference", "note"].iloc[0]
        low += float(note.split("bootstrap p ")[1].split(";")[0]) < 0.1
    assert 1 <= low <= 14  # 6 expected; outside has a chance below 0.3%


@pytest.mark.slow
def test_small_slices_say_so_and_empty_cells_are_no_slice(
    sliced: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    ratings, units = sliced
    units = units.assign(topic=["rare"] * 20 + ["common"] * 220)
    results = analyse(ratings, units, [SCALE], slices=["topic", "side"], resamples=100).results
    rare = results[results["subset"] == "topic=rare"]
    rare = rare[rare["statistic"] != "part_non_inferiority"]
    assert rare["note"].str.contains("fewer than 30 units").all()
    assert not results.loc[results["subset"] == "topic=common", "note"].str.contains("fewer").any()
    assert set(results["subset"].str.split("=").str[0]) == {"all", "all|binary", "topic", "side"}
    assert not results["subset"].str.startswith("side=|").any()


@pytest.mark.slow
def test_a_subgroup_of_raters_is_an_analysis_without_the_others(
    sliced: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    ratings, units = sliced
    raters = pd.DataFrame({"rater_id": ["ann", "ben", "cem"], "trained": ["yes", "yes", "no"]})
    results = analyse(
        ratings,
        units,
        [SCALE],
        facts=StudyFacts(raters=raters),
        rater_slices=["trained"],
        resamples=200,
    ).results
    alone = analyse(ratings[ratings["rater_id"] != "cem"], units, [SCALE], resamples=200).results
    part, same = _of(results, "trained=yes"), _of(alone, "all")
    assert set(part.index.get_level_values(0)) == MAIN
    for key, row in part.iterrows():
        assert row["estimate"] == pytest.approx(same.loc[key, "estimate"]), key
    single = _of(results, "trained=no")
    assert np.isnan(single.loc[("observed_agreement", "humans", ""), "estimate"])
    assert single["note"].str.contains("1 human").all()


@pytest.mark.slow
def test_the_sensitivity_line_is_the_analysis_with_other_clusters(
    sliced: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    ratings, units = sliced
    results = analyse(ratings, units, [SCALE], sensitivity_cluster="stance", resamples=200).results
    other = analyse(ratings, units, [SCALE], cluster="stance", resamples=200).results
    line, same = _of(results, "all", "cluster=stance"), _of(other, "all")
    assert set(line.index.get_level_values(0)) == MAIN
    for key, row in line.iterrows():
        assert row["n_clusters"] == 20
        for column in ("estimate", "low", "high"):
            assert row[column] == pytest.approx(same.loc[key, column]), key
    assert not analyse(ratings, units, [SCALE], resamples=50).results["at"].str.contains("=").any()


@pytest.mark.slow
def test_bad_requests(sliced: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    ratings, units = sliced
    known = StudyFacts(raters=pd.DataFrame({"rater_id": ["ann", "ben"], "topic": ["x", "y"]}))

    def refused(match: str, **request: object) -> None:
        with pytest.raises(InputError, match=match):
            analyse(ratings, request.pop("units", units), [SCALE], resamples=20, **request)  # type: ignore[arg-type]

    refused("no column 'tpoic' to slice by; it has cluster_id", slices=["tpoic"])
    refused("needs a units table", slices=["topic"], units=None)
    refused("no column 'unit_id' to slice by", slices=["unit_id"])
    refused("'cluster_id' has 60 values, and at most 50", slices=["cluster_id"])
    refused(
        "no column 'town' to slice by; it has topic",
        facts=known,
        rater_slices=["town"],
    )
    refused("needs a table of raters with a column rater_id", rater_slices=["topic"])
    refused(
        "of the units and of the raters",
        facts=known,
        rater_slices=["topic"],
        slices=["topic"],
    )
    twice = pd.DataFrame({"rater_id": ["ann", "ann"], "town": ["x", "y"]})
    refused("'ann' stands more than once", facts=StudyFacts(raters=twice), rater_slices=["town"])
    refused("no column 'nation' to cluster by", sensitivity_cluster="nation")
    refused("epsilon is 1.5", epsilon=1.5)
