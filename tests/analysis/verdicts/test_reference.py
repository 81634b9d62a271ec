"""One rater declared as right: graders against bars, never "may stand in for people"."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from evenhand.analysis import RESULTS_KEY, Scale, analyse
from evenhand.analysis.bootstrap.influence import level_of_look
from evenhand.errors import InputError
from tests.analysis.make import (
    analyse_labels,
    assert_verdict,
    noisy,
    people_of,
    ratings_of,
    row_of,
    rows_of,
    verdict_on,
)
from tests.peers import inter_rater, proportion

TWO = Scale("tone", ("1", "2"), affirmative=frozenset({"2"}))


EXPERT = {"resamples": 50, "reference": "expert"}


def experts(truth):
    """The labels of an expert, which are right."""
    return {"expert": [TWO.categories[code] for code in truth]}


def judged(rng, keep, n=400, **settings):
    """A grader that is right with `keep` beside the expert."""
    truth = (rng.random(n) < 0.4).astype(int)
    labels = experts(truth) | {"g": noisy(rng, truth, 2, keep)}
    return analyse_labels(labels, TWO, **EXPERT, **settings)


@pytest.mark.parametrize(
    ("keep", "n", "verdict"),
    [
        (0.95, 400, "agrees_with_reference"),
        (0.3, 400, "disagrees_with_reference"),
        (0.78, 400, "inconclusive"),
        (0.95, 25, "inconclusive"),
    ],
)
def test_verdicts(rng, keep, n, verdict):
    found = judged(rng, keep, n).verdicts[0]
    assert found["verdict"] == verdict
    assert "replace" not in found["sentence"].replace("not show that it can replace", "")
    assert (found["more_clusters"] > 0) == (verdict == "inconclusive" and n == 400)


def test_too_unequal_clusters_are_a_reason(rng):
    """Three clusters of 90 items among 40: no more than a few say anything of other clusters."""
    sizes = [90, 90, 90, *[1] * 40]
    truth = rng.integers(0, 2, sum(sizes))
    ratings = ratings_of(experts(truth) | {"g": noisy(rng, truth, 2, 0.99)})
    units = pd.DataFrame({"unit_id": ratings["unit_id"].unique()})
    units["cluster_id"] = np.repeat([f"c{n}" for n in range(len(sizes))], sizes)
    (verdict,) = analyse(ratings, units, [TWO], **EXPERT).verdicts
    assert_verdict(verdict, "inconclusive", "differ so much in size that they count as")


def test_bars_are_declared(rng):
    assert judged(rng, 0.7, reference_kappa=0.3).verdicts[0]["verdict"] == "inconclusive"
    bars = {"reference_kappa": 0.3, "reference_sensitivity": 0.5, "reference_specificity": 0.5}
    assert judged(rng, 0.7, **bars).verdicts[0]["verdict"] == "agrees_with_reference"


def test_one_expert_without_a_reference_is_told_how_to_get_an_answer(rng):
    truth = rng.integers(0, 2, 100)
    labels = experts(truth)
    verdict = verdict_on(labels | {"g": noisy(rng, truth, 2, 0.9)}, TWO, resamples=50)
    assert_verdict(verdict, "inconclusive", "--reference")


def test_figures_are_those_of_other_libraries(rng):
    found = judged(rng, 0.8)
    table = rows_of(found, "confusion", "expert", subset="all").set_index("at")["estimate"]
    n = np.array([[table.get(f"{a}>{b}", 0) for b in "12"] for a in "12"])
    kappa = row_of(found, "reference_kappa")
    theirs = inter_rater.cohens_kappa(n)
    assert kappa["estimate"] == pytest.approx(theirs.kappa)
    # A one-sided bound, by the large-sample standard error about the estimate.
    low = theirs.kappa + ndtri(level_of_look(1)) * theirs.std_kappa
    assert kappa["low"] == pytest.approx(low, abs=0.015)
    sensitivity = row_of(found, "reference_sensitivity")
    hits, whole = n[1, 1], n[1].sum()
    alpha = 2 * level_of_look(1)
    low, high = proportion.proportion_confint(hits, whole, alpha=alpha, method="beta")
    figures = [sensitivity[name] for name in ("estimate", "low", "high")]
    assert figures == pytest.approx([hits / whole, low, high], abs=0.005)


def test_people_who_are_not_the_reference_do_not_count(rng):
    truth = rng.integers(0, 2, 300)
    labels = experts(truth) | people_of(rng, truth, 0.1, 2) | {"g": noisy(rng, truth, 2, 0.95)}
    found = analyse_labels(labels, TWO, **EXPERT)
    assert found.verdicts[0]["verdict"] == "agrees_with_reference"
    assert "kappa with expert above 0.6" in found.rule


@pytest.mark.parametrize("reference", ["nobody", "g"])
def test_who_is_no_person_is_no_reference(reference):
    labels = {"expert": "12" * 20, "g": "12" * 20}
    with pytest.raises(InputError, match="no annotator or adjudicator here; there are expert"):
        analyse_labels(labels, TWO, resamples=50, reference=reference)


def test_real_labels_of_one_expert_get_an_answer(shared_data):
    """LLMBar (Zeng et al. 2024): a strong grader agrees with the gold labels, weak ones do not."""
    table = pd.read_csv(shared_data / "real" / "llmbar.csv", dtype=str).fillna("")
    graders = ["GPT-4/Vanilla", "ChatGPT/Vanilla", "Falcon/Vanilla"]
    table = table.rename(columns={"item_id": "unit_id"})
    table = table[table["rater_id"].isin(["gold", *graders])]
    scale = Scale("", ("1", "2"))
    found = analyse(table, None, [scale], resamples=50, reference="gold").verdicts
    verdicts = {each["grader"]: each["verdict"] for each in found}
    assert verdicts["Falcon/Vanilla"] == verdicts["ChatGPT/Vanilla"] == "disagrees_with_reference"
    assert verdicts["GPT-4/Vanilla"] != "disagrees_with_reference"


def test_at_a_threshold_it_says_so_everywhere(rng):
    """Good only at another threshold: the cell's kappa is that of the verdicts there."""
    truth = rng.random(600) < 0.4
    p = np.clip(np.where(truth, 0.35, 0.15) + rng.normal(0, 0.02, 600), 0, 1)
    labels = experts(truth.astype(int)) | {"g": [""] * 600}
    ratings = ratings_of(labels, positive={"g": p})
    found = analyse(ratings, None, [TWO], resamples=100, reference="expert")
    (verdict,) = found.verdicts
    assert verdict["verdict"] == "agrees_with_reference"
    assert verdict["holds_for"] == "binary"
    assert verdict["reason"].startswith("binary label at threshold 0.2")
    (key,) = verdict["kappas"]
    rows = found.results.set_index(list(RESULTS_KEY))
    assert rows.loc[tuple(key), "estimate"] > 0.9
    assert key[-1] == "held_out"
