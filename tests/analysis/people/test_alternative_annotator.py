"""The alternative annotator test against the procedure written out unit by unit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp
from statsmodels.stats.multitest import multipletests

from evenhand.analysis import Scale, alt_test
from tests.analysis.make import analyse_labels, noisy, rows_of

FIVE = ("1", "2", "3", "4", "5")


def _by_hand(
    humans: list[list[str]], grader: list[str], epsilon: float, ordinal: bool
) -> tuple[float, float]:
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
        p.append(ttest_1samp(differences, epsilon, alternative="less").pvalue)
        advantages.append(np.mean(wins))
    rejected = multipletests(p, alpha=0.05, method="fdr_by")[0]
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
    found = alt_test(
        _labels(humans),
        [None if label == "-" else label for label in grader],
        categories=FIVE,
        level=level,
        epsilon=epsilon,
    )
    winning, advantage = _by_hand(humans, grader, epsilon, level == "ordinal")
    assert found.winning_rate == winning
    assert found.advantage_probability == pytest.approx(advantage)
    assert found.annotators == (0, 1, 2)  # the fourth has under 30 units


def test_a_grader_like_every_human_without_a_handicap():
    """All differences are 0: nothing varies, p is 1, and nobody is replaced."""
    humans = [["a", "a"], ["b", "b"]] * 20
    same = [row[0] for row in humans]
    found = alt_test(humans, same, categories="ab", epsilon=0.0)
    assert found.zero_variance.all()
    assert found.p.tolist() == [1.0, 1.0]
    assert found.winning_rate == 0.0
    assert alt_test(humans, same, categories="ab", epsilon=0.1).winning_rate == 1.0


def _rows(results: pd.DataFrame, statistic: str) -> pd.DataFrame:
    own = rows_of(results, statistic, subset="all")
    assert (own["rater_a"] == "humans").all()
    return own.set_index("rater_b")


def test_rows(rng):
    truth = rng.integers(0, 3, 120)
    labels = {name: noisy(rng, truth, 3, 0.6, missing=0.1) for name in ("ann", "ben", "cem")}
    grader = noisy(rng, truth, 3, 0.7)
    results = analyse_labels(
        {**labels, "g": grader}, Scale("", FIVE[:3]), resamples=300, epsilon=0.15
    ).results
    humans = [list(row) for row in zip(*labels.values(), strict=True)]
    winning, advantage = _by_hand(humans, grader, 0.15, ordinal=False)
    rate, share = (_rows(results, f"alt_test_{name}") for name in ("winning_rate", "advantage"))
    assert rate.loc["g", "estimate"] == winning
    assert np.isnan(rate.loc["g", "low"])
    assert share.loc["g", "estimate"] == pytest.approx(advantage)
    assert share.loc["g", "low"] < advantage < share.loc["g", "high"]
    assert "epsilon 0.15; 3 of 3 humans with 30 units" in rate.loc["g", "note"]
    constant = [max("123", key="".join("".join(x) for x in labels.values()).count)] * 120
    winning, advantage = _by_hand(humans, constant, 0.15, ordinal=False)
    assert rate.loc["baseline:constant", "estimate"] == winning
    assert share.loc["baseline:constant", "estimate"] == pytest.approx(advantage)


def test_the_random_baseline_is_the_mean_of_many_random_graders(rng):
    labels = {name: rng.choice(["1", "2"], 80, p=[0.7, 0.3]) for name in ("ann", "ben", "cem")}
    results = analyse_labels(labels, Scale("", FIVE[:2]), resamples=50).results
    prevalence = np.mean([(given == "1").mean() for given in labels.values()])
    humans = [list(row) for row in zip(*labels.values(), strict=True)]
    drawn = [
        alt_test(
            humans, rng.choice(["1", "2"], 80, p=[prevalence, 1 - prevalence]), categories="12"
        ).advantage_probability
        for _ in range(300)
    ]
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
    assert [verdict["verdict"] for verdict in found.verdicts] != ["may_stand_in"]


def test_annotators_with_few_units_are_not_eligible():
    results = analyse_labels(
        {"ann": "12" * 14, "ben": "12" * 14, "g": "12" * 14}, Scale("", ("1", "2")), resamples=50
    ).results
    for statistic in ("alt_test_winning_rate", "alt_test_advantage"):
        row = _rows(results, statistic).loc["g"]
        assert np.isnan(row["estimate"])
        assert row["note"].startswith("no_eligible_annotator")
