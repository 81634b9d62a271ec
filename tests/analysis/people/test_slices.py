"""Parts of the sample, some of the people, and other clusters: the same figures on less.

A grader's performance by group: scikit-learn's values, a known weak group.
"""

import re

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from benchmarks import slices
from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.cli.main import main
from evenhand.errors import InputError
from tests.analysis.make import analyse_labels, by_at, noisy, ratings_of, rows_of
from tests.peers import metrics

SCALE = Scale("", ("1", "2", "3"), "ordinal", frozenset({"3"}))
MEANS = ["subject_score", "mean_ppi"]
MAIN = {"observed_agreement", "weighted_kappa_linear", "krippendorff_alpha_ordinal"}
MAIN |= {"human_ceiling_difference"}


@pytest.fixture
def sliced(rng):
    """Three people and two graders on 60 pairs of 4 units; grader g fails on topic t0."""
    truth = rng.integers(0, 3, 240)
    labels = {name: noisy(rng, truth, 3, 0.7, missing=0.1) for name in ("ann", "ben", "cem")}
    topic = np.array([f"t{n // 4 % 3}" for n in range(240)])
    good, bad = noisy(rng, truth, 3, 0.9), noisy(rng, truth, 3, 0.0)
    labels["g"] = list(np.where(topic == "t0", bad, good))
    labels["h"] = noisy(rng, truth, 3, 0.6)
    where = [(f"u{n:05d}", f"c{n // 4}", f"s{n // 12}", "a" * (n % 2)) for n in range(240)]
    units = pd.DataFrame(where, columns=["unit_id", "cluster_id", "stance", "side"])
    units["topic"] = topic
    return ratings_of(labels, ["g", "h"]), units


def _of(results, subset, at=""):
    own = results[(results["subset"] == subset) & (results["at"] == at)]
    return own.set_index(["statistic", "rater_a", "rater_b"])


@pytest.mark.slow
def test_a_slice_is_an_analysis_of_its_units(sliced):
    ratings, units = sliced
    whole = analyse(ratings, units, [SCALE], slices=["topic"], resamples=400).results
    kept = units.loc[units["topic"] == "t1", "unit_id"]
    alone = analyse(ratings[ratings["unit_id"].isin(kept)], units, [SCALE], resamples=400).results
    for ending in ("", "|binary"):
        part, same = _of(whole, f"topic=t1{ending}"), _of(alone, f"all{ending}")
        to_the_rest = ["slice_difference", "part_non_inferiority"]
        bias = ("bias_slice", "bias_slice_p")
        to_the_rest += (*bias, "rate_human", "rate_raw", "rate_ppi") if ending else MEANS
        main = part.drop(to_the_rest, level="statistic", errors="ignore")
        kappa = "cohen_kappa" if ending else "weighted_kappa_linear"
        alpha = "krippendorff_alpha_" + ("nominal" if ending else "ordinal")
        wanted = {"observed_agreement", kappa, alpha, "human_ceiling_difference"}
        assert set(main.index.get_level_values(0)) == wanted
        for key, row in main.iterrows():
            assert row["estimate"] == pytest.approx(same.loc[key, "estimate"]), key
            assert row["n_units"] == same.loc[key, "n_units"]
            # Other resamples of the same clusters: alike but for chance.
            width = same.loc[key, "high"] - same.loc[key, "low"]
            assert row["low"] == pytest.approx(same.loc[key, "low"], abs=0.25 * width)
    rest = whole[whole["subset"].isin(["all", "all|binary"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(rest, analyse(ratings, units, [SCALE], resamples=400).results)


@pytest.mark.slow
def test_a_slice_is_compared_with_the_rest_by_mean_agreement_of_units(sliced):
    """Of ordered labels 1 minus the distance in steps of two; every unit counts once."""
    ratings, units = sliced
    results = analyse(ratings, units, [SCALE], slices=["topic"], resamples=500).results
    found = rows_of(results, "slice_difference")
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label").astype(float)
    inside = units.set_index("unit_id").loc[wide.index, "topic"] == "t0"
    people = wide[["ann", "ben", "cem"]]
    for subset, of_labels in (
        ("topic=t0", 1 - people.sub(wide["g"], axis=0).abs() / 2),
        ("topic=t0|binary", people.eq(3).eq(wide["g"].eq(3), axis=0).where(people.notna())),
    ):
        of_units = of_labels.astype(float).mean(axis=1)
        row = found[(found["rater_b"] == "g") & (found["subset"] == subset)].iloc[0]
        assert row["estimate"] == pytest.approx(of_units[inside].mean() - of_units[~inside].mean())
        assert row["high"] < 0
        assert row["note"] == "permutation p 0.001; max-T p 0.001 of 6"
    other = found[(found["rater_b"] == "h") & (found["subset"] == "topic=t1")].iloc[0]
    assert float(other["note"].split("max-T p ")[1].split()[0]) > 0.05  # adjusted


def test_numbers_are_compared_by_their_distance():
    """Ten units of each source; the grader is 10 off in one, 30 in the other, of 0 to 50."""
    truth = [0, 10, 20, 30, 50] * 4
    off = [10] * 10 + [30, 30, 30, -30, -30] * 2
    score = [str(min(abs(a + b), 50)) for a, b in zip(truth, off, strict=True)]
    labels = {"ann": [str(each) for each in truth], "g": score}
    ratings = ratings_of(labels)
    sources = list("a" * 10 + "b" * 10)
    units = pd.DataFrame({"unit_id": ratings["unit_id"].unique(), "source": sources})
    scale = Scale("", tuple(sorted({*labels["ann"], *score}, key=float)), "interval", number=True)
    results = analyse(ratings, units, [scale], slices=["source"], resamples=50).results
    row = rows_of(results, "slice_difference", subset="source=a")
    apart = np.abs(np.array(score, dtype=float) - truth) / 50
    assert row["estimate"].iloc[0] == pytest.approx(apart[10:].mean() - apart[:10].mean())


@pytest.mark.slow
def test_small_slices_say_so_and_empty_cells_are_no_slice(sliced):
    ratings, units = sliced
    units = units.assign(topic=["rare"] * 20 + ["common"] * 220)
    results = analyse(ratings, units, [SCALE], slices=["topic", "side"], resamples=100).results
    rare = results[results["subset"] == "topic=rare"]
    rare = rare[~rare["statistic"].isin(["part_non_inferiority", "subject_score"])]
    assert rare["note"].str.contains("fewer than 30 items").all()
    assert not results.loc[results["subset"] == "topic=common", "note"].str.contains("fewer").any()
    assert set(results["subset"].str.split("=").str[0]) == {"all", "all|binary", "topic", "side"}
    assert not results["subset"].str.startswith("side=|").any()


@pytest.mark.slow
def test_a_subgroup_of_raters_is_an_analysis_without_the_others(sliced):
    ratings, units = sliced
    raters = pd.DataFrame({"rater_id": ["ann", "ben", "cem"], "trained": ["yes", "yes", "no"]})
    asked = {"facts": StudyFacts(raters=raters), "rater_slices": ["trained"], "resamples": 200}
    results = analyse(ratings, units, [SCALE], **asked).results
    alone = analyse(ratings[ratings["rater_id"] != "cem"], units, [SCALE], resamples=200).results
    part, same = _of(results, "trained=yes"), _of(alone, "all")
    assert set(part.index.get_level_values(0)) == MAIN
    for key, row in part.iterrows():
        assert row["estimate"] == pytest.approx(same.loc[key, "estimate"]), key
    single = _of(results, "trained=no")
    assert np.isnan(single.loc[("observed_agreement", "humans", ""), "estimate"])
    assert single["note"].str.contains("1 human").all()


@pytest.mark.slow
def test_the_sensitivity_line_is_the_analysis_with_other_clusters(sliced):
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
def test_bad_requests(sliced):
    ratings, units = sliced
    known = StudyFacts(raters=pd.DataFrame({"rater_id": ["ann", "ben"], "topic": ["x", "y"]}))

    def refused(match, **request):
        with pytest.raises(InputError, match=match):
            analyse(ratings, request.pop("units", units), [SCALE], resamples=20, **request)

    refused("no column 'tpoic' to slice by; it has cluster_id", slices=["tpoic"])
    refused("needs a units table", slices=["topic"], units=None)
    refused("no column 'unit_id' to slice by", slices=["unit_id"])
    refused("'cluster_id' has 60 values, and at most 50", slices=["cluster_id"])
    refused("names a view of the labels", units=units.assign(topic="x|binary"), slices=["topic"])
    refused("no column 'town' to slice by; it has topic", facts=known, rater_slices=["town"])
    refused("needs a table of raters with a column rater_id", rater_slices=["topic"])
    for by in ("slices", "groups"):
        asked = {"facts": known, "rater_slices": ["topic"], by: ["topic"]}
        refused("of the units and of the raters", **asked)
    twice = pd.DataFrame({"rater_id": ["ann", "ann"], "town": ["x", "y"]})
    refused("'ann' stands more than once", facts=StudyFacts(raters=twice), rater_slices=["town"])
    refused("no column 'nation' to cluster by", sensitivity_cluster="nation")
    refused("epsilon is 1.5", epsilon=1.5)


YES = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))


def study(rng, errors, per_group=150):
    """Three people who always agree, and a grader that errs with its group's probability."""
    groups = [group for group in errors for _ in range(per_group)]
    truth = rng.random(len(groups)) < 0.4
    wrong = rng.random(len(groups)) < np.array([errors[group] for group in groups])
    labels = dict.fromkeys(("ann", "ben", "cleo"), np.where(truth, "y", "n"))
    ratings = ratings_of(labels | {"g": np.where(truth != wrong, "y", "n")})
    ids = ratings["unit_id"].unique()
    return ratings, pd.DataFrame({"unit_id": ids, "cluster_id": ids, "source": groups})


def results_of(ratings, units, resamples=50):
    found = analyse(ratings, units, [YES], groups=["source"], resamples=resamples).results
    own = found[found["statistic"].str.startswith("group_")]
    return own.set_index(["statistic", "subset", "at"])


def test_values_are_those_of_scikit_learn(rng):
    ratings, units = study(rng, {"left": 0.1, "right": 0.25}, 60)
    rows = results_of(ratings, units)
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label")
    for group in ("left", "right"):
        own = wide.loc[units.loc[units["source"] == group, "unit_id"]]
        said, is_so = own["g"], own["ann"]
        row = rows.loc[("group_balanced_accuracy", f"source={group}|binary", "")]
        assert row["estimate"] == pytest.approx(metrics.balanced_accuracy_score(is_so, said))


@pytest.mark.journey
def test_a_group_of_harder_units_alone_is_not_called_different(rng):
    """The grader misses four in ten "y" and no "n" in any group, of which one has no "y"."""
    ratings, units = study(rng, {"left": 0.0, "right": 0.0}, 120)
    ratings = ratings[ratings["rater_id"] != "cleo"]
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label")
    wide.loc[wide.index.isin(units.loc[units["source"] == "left", "unit_id"]), :] = "n"
    wide.loc[(wide["ann"] == "y") & (rng.random(240) < 0.4), "g"] = "n"
    ratings = wide.stack().rename("label").reset_index()
    ratings["rater_kind"] = np.where(ratings["rater_id"] == "g", "model", "human")
    rows = results_of(ratings, units, resamples=50)
    row = rows.loc[("group_difference", "source=left|binary", "")]
    assert row["estimate"] > 0.1
    assert row["note"] == "permutation p 1; max-T p 1 of 2"


@pytest.mark.slow
def test_sides_of_annotators_are_found_corrected_and_named(tmp_path):
    """60 prompts x 3 models x 120 annotators of two sides; a grader alone labels a third."""
    cell = slices.Sides("", apart=1.2, follows=True)
    whole, out = slices.as_file(*slices.sided(cell, np.random.default_rng(1))), tmp_path / "out"
    whole.to_csv(file := tmp_path / "r.csv", index=False)
    assert main(["check", str(file), "--affirmative", "yes", "--out", str(out)]) == 0
    report = (out / "report.md").read_text().replace("\\", "")
    assert "agrees more with annotators of leaning=left than with right" in report
    assert re.search(r"differ by leaning: kappa is 0\.\d+ within sides and -?0\.\d+ across", report)
    found = pd.read_csv(out / "results.csv")
    assert not found["subset"].str.match(r"c\d=").any()  # columns that say nothing
    found = found.set_index(["statistic", "subset", "at"])["estimate"]
    rates = {}
    for side in ("left", "right"):  # as if the others had not labelled anything
        alone = whole[whole["leaning"].isin([side, ""])].drop(columns="leaning")
        rows = eh.check(alone, affirmative=["yes"], resamples=50).results
        rows = rows.query("statistic == 'rate_ppi' and subset == 'all|binary'").set_index("at")
        rates[side] = rows["estimate"]
        for model, rate in rates[side].items():
            assert found["rate_ppi", f"leaning={side}|binary", model] == pytest.approx(rate)
    for model, (left, right) in pd.DataFrame(rates).iterrows():
        gap = found["rate_side_difference_ppi", "leaning=left>right|binary", model]
        assert gap == pytest.approx(left - right)
        assert found["rate_least_ppi", "leaning=*|binary", model] == pytest.approx(min(left, right))


def test_a_part_without_two_annotators_says_why_it_has_no_difference(rng):
    ratings, units = study(rng, {"left": 0.0, "right": 0.1}, 40)
    is_alone = ratings["unit_id"].isin(units.loc[units["source"] == "left", "unit_id"])
    ratings = ratings[~is_alone | ratings["rater_id"].isin(["ann", "g"])]
    asked = {"slices": ["source"], "overlap": "random", "resamples": 20}
    parts = rows_of(analyse(ratings, units, [YES], **asked).results, "part_non_inferiority")
    assert parts.set_index("subset").loc["source=left", "note"] == "too_few_raters; margin 0.1"


def test_contested_items_leave_out_who_is_compared():
    labels, kinds = {"a": "yyyn", "b": "yyny", "c": "yynn", "d": "ynyn"}, ("split", "majority")
    sums = {}
    rows = analyse_labels(labels | {"g": "yyyy"}, Scale("", ("y", "n")))
    for left_out, given in labels.items():
        for at, label in enumerate(given):
            others = [each[at] for who, each in labels.items() if who != left_out]
            most = max(map(others.count, "yn"))
            kind = "unanimous" if most == 3 else kinds[most > 1.5]
            each = np.array([1.0, others.count(label) / 3, others.count("y") / 3])
            sums[kind] = sums.get(kind, np.zeros(3)) + each
    found = by_at(rows, "agreement_by_labels")["estimate"]
    for kind, (size, people, graded) in sums.items():
        assert found[kind] == pytest.approx(graded / size)
        assert found[f"{kind}: annotators"] == pytest.approx(people / size)
    assert len(found) == 2 * len(sums) == 4


@pytest.mark.journey
def test_a_known_weak_group_is_named(rng):
    rows = results_of(*study(rng, {"left": 0.05, "centre": 0.05, "right": 0.30}))
    weak = rows.loc[("group_difference", "source=right|binary", "")]
    assert weak["high"] < 0
    assert weak["note"] == "permutation p 0.001; max-T p 0.001 of 3"
