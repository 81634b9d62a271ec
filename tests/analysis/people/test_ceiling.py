"""The human ceiling and the baselines, against sums written out."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, alt_test
from evenhand.analysis.agreement.coefficients import cohen_kappa
from evenhand.analysis.bootstrap.resamples import Bootstrap
from evenhand.analysis.people.comparison import human_ceiling
from tests.analysis.make import analyse_labels, noisy, row_of, rows_of
from tests.peers import metrics, multitest, stats

TWO = ("1", "2")


def _kappa(a: Sequence[str], b: Sequence[str], weights: str | None = None, q: int = 3) -> float:
    both = [(x, y) for x, y in zip(a, b, strict=True) if "-" not in (x, y)]
    labels = [str(k + 1) for k in range(q)]
    first, second = zip(*both, strict=True)
    return float(metrics.cohen_kappa_score(first, second, labels=labels, weights=weights))


@pytest.mark.parametrize(("level", "weights"), [("nominal", None), ("ordinal", "linear")])
def test_the_difference_is_between_two_plain_means_on_the_same_units(rng, level, weights):
    truth = rng.integers(0, 3, 200)
    humans = {name: noisy(rng, truth, 3, 0.7) for name in ("ann", "ben", "cem")}
    grader = noisy(rng, truth, 3, 0.6, missing=0.3)
    scale = Scale("", ("1", "2", "3"), level)
    found = analyse_labels({**humans, "g": grader}, scale, resamples=300)
    on_same = {
        name: [x if g != "-" else "-" for x, g in zip(given, grader, strict=True)]
        for name, given in humans.items()
    }
    with_grader = np.mean([_kappa(given, grader, weights) for given in humans.values()])
    among = np.mean([_kappa(a, b, weights) for a, b in combinations(on_same.values(), 2)])
    row = row_of(found.results, "human_ceiling_difference", "humans", "g")
    assert row["estimate"] == pytest.approx(with_grader - among)
    assert row["low"] < row["estimate"] < row["high"]
    assert row["n_units"] == sum(label != "-" for label in grader)


def test_the_difference_is_paired(rng):
    """A grader g that repeats ann: (1 + k) / 2 - k = (1 - k) / 2 in every single resample."""
    truth = rng.integers(0, 2, 300)
    ann, ben = (noisy(rng, truth, 2, 0.7) for _ in range(2))
    bootstrap = Bootstrap(resamples=500)
    people = list(zip(ann, ben, strict=True))
    found = human_ceiling(people, ann, categories=TWO, bootstrap=bootstrap)
    apart = [str(unit) for unit in range(300)]  # else equal units are drawn together
    k = cohen_kappa(ann, ben, categories=TWO, clusters=apart, bootstrap=bootstrap)
    assert k.estimate == pytest.approx(_kappa(ann, ben, q=2))
    mirrored = [(1 - each) / 2 for each in (k.estimate, k.high, k.low)]
    assert [found.estimate, found.low, found.high] == pytest.approx(mirrored)


def test_without_30_shared_units_there_is_no_ceiling():
    alike = dict.fromkeys(("ann", "ben", "g"), "12" * 10)
    results = analyse_labels(alike, Scale("", TWO), resamples=100).results
    row = row_of(results, "human_ceiling_difference", "humans", "g")
    assert np.isnan(row["estimate"])
    assert row["note"] == "fewer than 30 items have labels of the grader and an annotator"
    mean = row_of(results, "cohen_kappa", "humans", "g")
    assert mean["estimate"] == pytest.approx(1.0)
    assert "fewer than 30 items" in mean["note"]


def test_baselines_stand_beside_the_humans():
    """ann says 1 on 60 of 80 units, ben on 40: prevalence 5/8, so constant is right 5/8 of it."""
    given = {"ann": "1" * 60 + "2" * 20, "ben": "1" * 40 + "2" * 40}
    results = analyse_labels(given, Scale("", TWO), resamples=200).results
    constant = row_of(results, "observed_agreement", "humans", "baseline:constant")
    assert constant["estimate"] == pytest.approx((60 / 80 + 40 / 80) / 2)
    assert "always 1" in constant["note"]
    random = row_of(results, "observed_agreement", "humans", "baseline:random")
    expected = [(a * 5 + (80 - a) * 3) / 8 / 80 for a in (60, 40)]
    assert random["estimate"] == pytest.approx(np.mean(expected))
    people = _kappa(*given.values(), q=2)
    for name in ("baseline:constant", "baseline:random"):
        assert row_of(results, "cohen_kappa", "humans", name)["estimate"] == 0.0
        difference = row_of(results, "human_ceiling_difference", "humans", name)
        assert difference["estimate"] == pytest.approx(-people)
    assert "constant_rater" in row_of(results, "cohen_kappa", "humans", "baseline:constant")["note"]


# --- The alternative annotator test, unit by unit -------------------------------------------------
FIVE = ("1", "2", "3", "4", "5")


def _by_hand(humans, grader, epsilon, ordinal):
    """Calderon, Reichart & Dror (2025), one unit and one annotator after the other."""

    def score(label: str, others: list[str]) -> float:
        if ordinal:
            return -float(np.sqrt(np.mean([(int(label) - int(other)) ** 2 for other in others])))
        return float(np.mean([label == other for other in others]))

    usable = [i for i, row in enumerate(humans) if sum(x != "-" for x in row) >= 2]
    usable = [i for i in usable if grader[i] != "-"]
    p, advantages = [], []
    for j in range(len(humans[0])):
        own = [i for i in usable if humans[i][j] != "-"]
        if len(own) < 30:
            continue
        wins, differences = [], []
        for i in own:
            others = [x for k, x in enumerate(humans[i]) if k != j and x != "-"]
            theirs, mine = score(grader[i], others), score(humans[i][j], others)
            won, lost = theirs >= mine - 1e-12, mine >= theirs - 1e-12
            wins.append(won)
            differences.append(float(lost) - float(won))
        p.append(stats.ttest_1samp(differences, epsilon, alternative="less").pvalue)
        advantages.append(np.mean(wins))
    rejected = multitest.multipletests(p, alpha=0.05, method="fdr_by")[0]
    return float(np.mean(rejected)), float(np.mean(advantages))


def _labels(rows: list[list[str]]) -> list[list[str | None]]:
    return [[None if cell == "-" else cell for cell in row] for row in rows]


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("keep", [0.3, 0.75])
def test_it_is_the_procedure_of_its_authors(rng, level, epsilon, keep):
    truth = rng.integers(0, 5, 90)
    raters = [noisy(rng, truth, 5, 0.6, missing) for missing in (0.0, 0.1, 0.3, 0.72)]
    humans = [list(row) for row in zip(*raters, strict=True)]
    grader = noisy(rng, truth, 5, keep, missing=0.1)
    own = [None if label == "-" else label for label in grader]
    found = alt_test(_labels(humans), own, categories=FIVE, level=level, epsilon=epsilon)
    winning, advantage = _by_hand(humans, grader, epsilon, level == "ordinal")
    assert found.winning_rate == winning
    assert found.advantage_probability == pytest.approx(advantage)
    assert found.annotators == (0, 1, 2)  # the fourth has under 30 units


def _rows(results: pd.DataFrame, statistic: str) -> pd.DataFrame:
    own = rows_of(results, statistic, subset="all")
    assert (own["rater_a"] == "humans").all()
    return own.set_index("rater_b")


def test_rows(rng):
    truth = rng.integers(0, 3, 120)
    labels = {name: noisy(rng, truth, 3, 0.6, missing=0.1) for name in ("ann", "ben", "cem")}
    grader = noisy(rng, truth, 3, 0.7)
    asked = {"resamples": 300, "epsilon": 0.15}
    results = analyse_labels({**labels, "g": grader}, Scale("", FIVE[:3]), **asked).results
    humans = [list(row) for row in zip(*labels.values(), strict=True)]
    winning, advantage = _by_hand(humans, grader, 0.15, ordinal=False)
    rate, share = (_rows(results, f"alt_test_{name}") for name in ("winning_rate", "advantage"))
    assert rate.loc["g", "estimate"] == winning
    assert np.isnan(rate.loc["g", "low"])
    assert share.loc["g", "estimate"] == pytest.approx(advantage)
    assert share.loc["g", "low"] < advantage < share.loc["g", "high"]
    assert "epsilon 0.15; 3 of 3 humans with 30 items" in rate.loc["g", "note"]
    constant = [max("123", key="".join("".join(x) for x in labels.values()).count)] * 120
    winning, advantage = _by_hand(humans, constant, 0.15, ordinal=False)
    assert rate.loc["baseline:constant", "estimate"] == winning
    assert share.loc["baseline:constant", "estimate"] == pytest.approx(advantage)


def test_the_random_baseline_is_the_mean_of_many_random_graders(rng):
    labels = {name: rng.choice(["1", "2"], 80, p=[0.7, 0.3]) for name in ("ann", "ben", "cem")}
    results = analyse_labels(labels, Scale("", FIVE[:2]), resamples=50).results
    prevalence = np.mean([(given == "1").mean() for given in labels.values()])
    humans = [list(row) for row in zip(*labels.values(), strict=True)]
    graders = (rng.choice(["1", "2"], 80, p=[prevalence, 1 - prevalence]) for _ in range(300))
    drawn = [alt_test(humans, each, categories="12").advantage_probability for each in graders]
    expected = _rows(results, "alt_test_advantage").loc["baseline:random", "estimate"]
    assert expected == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / np.sqrt(300))


def test_a_constant_can_pass_and_gets_no_verdict_for_it():
    """Nine labels in ten are 1: always 1 is as near to the others as a person is."""
    rng = np.random.default_rng(4)
    labels = {name: rng.choice(["1", "2"], 300, p=[0.9, 0.1]) for name in ("ann", "ben", "cem")}
    found = analyse_labels({**labels, "g": ["1"] * 300}, Scale("", ("1", "2")), resamples=300)
    rate = _rows(found.results, "alt_test_winning_rate")
    assert rate.loc["baseline:constant", "estimate"] == rate.loc["g", "estimate"] == 1.0
    assert "passes (at 0.5; no verdict)" in rate.loc["g", "note"]
    assert [verdict["verdict"] for verdict in found.verdicts] != ["can_replace"]
