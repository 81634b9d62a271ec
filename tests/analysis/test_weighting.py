"""Pairs that were not equally likely to be picked: what every figure makes of it (synthetic)."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.analysis.results import key_of
from evenhand.analysis.statistics import says
from evenhand.errors import InputError
from tests.analysis.make import ratings_of

SCALE = Scale("r", ("1", "2", "3"), "ordinal", frozenset({"3"}))
SMALL = {"resamples": 20}
NOT_SUMS = (
    # Chosen on folds, which copies of a pair are spread over.
    "held_out", "recalibrated", "threshold_recommended",
    # The spread of resamples, of which there are others; counts, and lists of units.
    "rarer_clusters", "clusters_worth", "clusters_to_pass",
    # Of weights that differ less is known than of copies.
    "chance_within_margin", "effective_clusters", "disagreement",
    # At cuts and in bins that part the units, not what they stand for.
    "confidence_", "ece",
)  # fmt: skip


def study(pairs=40):
    """Two subjects' answers on each pair, three people, a grader and one with probabilities; pairs
    with an odd number were twice as likely to be picked, and are harder."""
    rng = np.random.default_rng(5)
    rows, units = [], []
    for pair, subject in itertools.product(range(pairs), ("s1", "s2")):
        unit, hard = f"p{pair}|{subject}", pair % 2
        truth = rng.integers(3)
        units.append((unit, f"p{pair}", subject, "ab"[pair % 4 // 2], 0.4 if hard else 0.2))
        for rater in ("ann", "ben", "cy", "plain", "sure"):
            label = truth if rng.random() < (0.5 if hard else 0.9) else rng.integers(3)
            row = {"unit_id": unit, "rater_id": rater, "label": str(label + 1)}
            row["rater_kind"] = "human" if rater in ("ann", "ben", "cy") else "model"
            if rater == "sure":
                shares = rng.dirichlet(np.ones(3)) / 2 + np.eye(3)[label] / 2
                row["probabilities"] = json.dumps(dict(zip("123", shares.tolist(), strict=True)))
                row["prob_method"] = "logprobs"
            rows.append(row)
    columns = ["unit_id", "cluster_id", "subject", "topic", "inclusion_probability"]
    return pd.DataFrame(rows).fillna(""), pd.DataFrame(units, columns=columns)


def copied(frame, likely):
    """The same with every pair that was less likely to be picked there a second time."""
    again = frame[~frame["unit_id"].isin(likely)].copy()
    for name in ("unit_id", "cluster_id"):
        if name in again:
            again[name] = "again-" + again[name]
    return pd.concat([frame, again], ignore_index=True)


def by_key(found):
    return {key_of(row): row for row in found.rows}


@pytest.mark.slow
def test_half_the_probability_counts_like_standing_there_twice():
    ratings, units = study()
    likely = set(units.loc[units["inclusion_probability"] == 0.4, "unit_id"])
    settings = {"slices": ["topic"], **SMALL}
    found = by_key(analyse(ratings, units, [SCALE], **settings))
    plain = units.drop(columns="inclusion_probability")
    twice = by_key(analyse(copied(ratings, likely), copied(plain, likely), [SCALE], **settings))
    compared, as_sampled = set(), set()
    for key, row in found.items():
        if any(part in f"{key[1]} {key[5]}" for part in NOT_SUMS):
            continue
        if says(row["remarks"], "as_sampled") or key[1].endswith(("_p", "_errors")):
            as_sampled.add(key[1])
            continue
        # Alpha takes off one label of a sample of its own size, which copies make larger; and a
        # stratum's spread is held to that of all by so many units.
        room = 5e-3 if key[1].startswith("bias_") else 2e-3 if "alpha" in key[1] else 1e-9
        assert row["estimate"] == pytest.approx(twice[key]["estimate"], abs=room, nan_ok=True), key
        compared.add(key[1])
    assert {"confusion", "coverage", "mcnemar_p", "alt_test_winning_rate"} <= as_sampled
    assert len(compared) > 50
    assert {"cohen_kappa", "non_inferiority", "threshold", "brier"} <= compared


@pytest.mark.parametrize("kind", ["human", "adjudicator"])
def test_an_estimate_is_that_of_horvitz_and_thompson_over_the_estimated_size(kind):
    # One answer to each of four prompts is labelled; they stand for 1 / p: 2, 4, 4 and 10 of 20.
    # Ann and the grader agree on the first and the last: 12 / 20.
    ratings = ratings_of({"ann": "1-1-1-1-", "g": "11212111"}).replace("human", kind)
    units = pd.DataFrame({"unit_id": sorted({*ratings["unit_id"]}), "prompt": [*"aabbccdd"]})
    units["inclusion_probability"] = np.repeat([0.5, 0.25, 0.25, 0.1], 2)
    found = analyse(ratings, units, [SCALE], cluster="prompt", **SMALL)
    row = by_key(found)["r", "observed_agreement", "ann", "g", "all", ""]
    assert row["estimate"] == pytest.approx(12 / 20)
    row = by_key(found)["r", "effective_clusters", "humans", "", "all", ""]
    assert (row["estimate"], row["n_units"]) == (pytest.approx(20**2 / (4 + 16 + 16 + 100)), 4)
    assert any("the 4 labelled clusters count as 3 (Kish)" in note for note in found.notes)


@pytest.mark.parametrize("likely", [0.97, 1.0])
def test_items_that_are_nearly_always_picked_count_on_both_sides_of_a_correction(likely):
    """Two of eight items were picked for certain and are all affirmed. Of the six others, of which
    a half were picked, one in three is, by people and grader: 1/4 + 3/4 * 1/3 = 1/2 of all. A
    second grader agrees with the first on one of six of these.
    """
    labels = {"ann": 10 * "33311---", "g": 10 * "33311311", "h": 10 * "11333133"}
    ratings = ratings_of(labels, graders=("g", "h"))
    units = pd.DataFrame({"unit_id": sorted({*ratings["unit_id"]}), "subject": "s"})
    units["inclusion_probability"] = np.tile([likely] * 2 + [0.5] * 6, 10)
    found = by_key(analyse(ratings, units, [SCALE], **SMALL))
    corrected = [(f"rate_{way}", "humans", "g", "s") for way in ("raw", "ppi", "rogan_gladen")]
    halves = [*corrected, ("rate_human", "humans", "", "s"), ("subject_score", "g", "", "s")]
    keys = dict.fromkeys([*halves, ("prevalence", "g", "", "affirmative")], 1 / 2)
    keys |= {("observed_agreement", *of, ""): 1 / 8 for of in (("g", "h"), ("models", ""))}
    for (*raters, at), share in keys.items():
        row = found["r", *raters, "all|binary", at]
        assert row["estimate"] == pytest.approx(share, abs=0.01), raters


@pytest.mark.slow
def test_equal_probabilities_only_say_that_overlap_is_random():
    # Cy labels where the two others differ.
    labels = {"ann": "1122", "ben": "1221", "cy": "-1-2", "g": "1122"}
    ratings = ratings_of({rater: 20 * given for rater, given in labels.items()})
    units = pd.DataFrame({"unit_id": ratings["unit_id"].unique()})
    for cell, overlap, is_tested in (("", "unknown", True), (0.3, "random", False)):
        plain = analyse(ratings, units, [SCALE], overlap=overlap, **SMALL)
        same = analyse(ratings, units.assign(inclusion_probability=cell), [SCALE], **SMALL)
        pd.testing.assert_frame_equal(same.results, plain.results)
        assert same.notes == plain.notes
        assert ("Labels by cy were given mostly" in " ".join(same.notes)) == is_tested


@pytest.mark.slow
def test_what_never_varies_is_bounded_by_the_least_likely_pairs():
    ratings, units = study()
    ratings["label"] = np.where(ratings["unit_id"].str.contains("1"), "3", "1")
    ratings = ratings.assign(probabilities="", prob_method="")
    weighted = by_key(analyse(ratings, units, [SCALE], **SMALL))
    plain = by_key(analyse(ratings, units.drop(columns="inclusion_probability"), [SCALE], **SMALL))
    key = ("r", "non_inferiority", "humans", "plain", "all", "")
    # Half of the pairs count 4/3: as if only 40 / (4/3) = 30 had been seen.
    assert weighted[key]["low"] < plain[key]["low"] < 0
    key = ("r", "observed_agreement", "humans", "", "all", "")
    assert weighted[key]["low"] == pytest.approx(0.025 ** (1 / 30))
    assert plain[key]["low"] == pytest.approx(0.025 ** (1 / 40))


@pytest.mark.parametrize("cell", [0, 1.2, "often", ""])
def test_a_probability_that_is_none_is_named(cell):
    ratings, units = study(8)
    units = units.astype({"inclusion_probability": object})
    units.loc[3, "inclusion_probability"] = cell
    with pytest.raises(InputError, match=r"inclusion_probability of item 'p1\|s2' is .* above 0"):
        analyse(ratings, units, [SCALE], **SMALL)


@pytest.mark.slow
def test_clusters_of_pairs_with_several_probabilities_are_refused_or_left_out():
    ratings, units = study(20)
    with pytest.raises(InputError, match="items of topic 'a' were not equally likely"):
        analyse(ratings, units, [SCALE], cluster="topic", **SMALL)
    found = analyse(ratings, units, [SCALE], sensitivity_cluster="topic", **SMALL)
    why = "because items were sampled with unequal probabilities."
    assert f"There are no intervals by topic, {why}" in found.notes
    assert not any(row["at"] == "cluster=topic" for row in found.rows)


@pytest.mark.slow
def test_estimates_are_verified_with_weights():
    ratings, units = study(20)
    found = analyse(ratings, units, [SCALE], verify=True, **SMALL).verification
    assert found.compared > 20
    assert found.largest < 1e-9
