"""Published tables, and the same numbers from other people's libraries."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis.agreement import coefficients as c

# Feinstein & Cicchetti (1990), J Clin Epidemiol 43:543-549: the same 85% agreement twice.
FEINSTEIN = {
    "balanced": [[40.0, 9.0], [6.0, 45.0]],
    "unbalanced": [[80.0, 10.0], [5.0, 5.0]],
}


@pytest.mark.parametrize(
    ("name", "kappa", "pi", "ac1", "prevalence", "bias", "alpha"),
    [
        ("balanced", 0.699519230769, 0.699248120301, 0.700748129676, -0.05, 0.03, 0.700751879699),
        ("unbalanced", 0.318181818182, 0.314285714286, 0.808, 0.75, 0.05, 0.317714285714),
    ],
)
def test_feinstein_and_cicchetti(
    name: str, kappa: float, pi: float, ac1: float, prevalence: float, bias: float, alpha: float
) -> None:
    table = np.array(FEINSTEIN[name])
    assert c.observed_agreement(table) == pytest.approx(0.85)
    assert c.cohen_kappa(table) == pytest.approx(kappa)
    assert c.scott_pi(table) == pytest.approx(pi)
    assert c.gwet_ac(table) == pytest.approx(ac1)
    assert c.brennan_prediger(table) == pytest.approx(0.7)  # PABAK = 2 * .85 - 1
    assert c.prevalence_index(table) == pytest.approx(prevalence)
    assert c.bias_index(table) == pytest.approx(bias)
    assert c.alpha(table + table.T) == pytest.approx(alpha)


def test_cohen_1960_and_1968() -> None:
    table = 200 * np.array([[0.44, 0.07, 0.09], [0.05, 0.20, 0.05], [0.01, 0.03, 0.06]])
    disagreement = np.array([[0.0, 1, 3], [1, 0, 6], [3, 6, 0]])
    assert c.cohen_kappa(table) == pytest.approx(0.491525423729)
    assert c.cohen_kappa(table, 1 - disagreement / 6) == pytest.approx(0.347826086957)


def test_fleiss_cohen_everitt_1969() -> None:
    table = np.array([[106.0, 10, 4], [22, 28, 10], [2, 12, 6]])
    weights = np.array([[1, 0, 0.4444], [0, 1, 0.6667], [0.4444, 0.6667, 1]])
    assert c.cohen_kappa(table) == pytest.approx(0.428571428571)
    assert c.cohen_kappa(table, weights) == pytest.approx(0.507069964867)


def test_krippendorff_2011_example_b() -> None:
    first = [1, 1, 2, 2, 4, 3, 3, 3, 5, 4, 4, 1]
    second = [2, 1, 2, 2, 2, 3, 3, 3, 5, 4, 4, 4]
    table = np.zeros((5, 5))
    np.add.at(table, (np.array(first) - 1, np.array(second) - 1), 1)
    assert c.alpha(table + table.T) == pytest.approx(0.6919642857)


@pytest.mark.parametrize("kind", ["identity", "linear", "quadratic"])
def test_kappa_is_that_of_scikit_learn_and_statsmodels(rng: np.random.Generator, kind: str) -> None:
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import cohens_kappa

    q = 4
    tables = rng.integers(0, 30, size=(5, q, q)).astype(float)
    found = c.cohen_kappa(tables, c.agreement_weights(q, kind))
    distances = 1.0 - c.agreement_weights(q, kind)
    for table, kappa in zip(tables, found, strict=True):
        a, b = np.indices((q, q)).reshape(2, -1)
        name = None if kind == "identity" else kind
        by_sklearn = cohen_kappa_score(a, b, weights=name, sample_weight=table.ravel())
        assert kappa == pytest.approx(by_sklearn)
        assert kappa == pytest.approx(cohens_kappa(table, weights=distances).kappa)


def test_declared_but_unused_categories_count() -> None:
    """On 1, 4, 5 of a declared 1-5 scale quadratic kappa is not that of three categories."""
    a, b = [1, 4, 5, 5, 4, 1], [1, 5, 5, 4, 4, 4]
    declared, seen = np.zeros((5, 5)), np.zeros((3, 3))
    rank = {1: 0, 4: 1, 5: 2}
    for x, y in zip(a, b, strict=True):
        declared[x - 1, y - 1] += 1
        seen[rank[x], rank[y]] += 1
    five = c.cohen_kappa(declared, c.agreement_weights(5, "quadratic"))
    three = c.cohen_kappa(seen, c.agreement_weights(3, "quadratic"))
    # Squared differences: observed 0+1+0+1+0+9 = 11 over 6 units, expected 178 over 36 pairs.
    assert five == pytest.approx(1 - (11 / 6) / (178 / 36))
    assert five != pytest.approx(three)


def test_degenerate_tables() -> None:
    both_constant = np.array([[10.0, 0.0], [0.0, 0.0]])
    one_constant = np.array([[6.0, 0.0], [4.0, 0.0]])
    opposite = np.array([[0.0, 10.0], [0.0, 0.0]])
    assert np.isnan(c.cohen_kappa(both_constant))
    assert np.isnan(c.scott_pi(both_constant))
    assert np.isnan(c.alpha(both_constant + both_constant.T))
    assert c.gwet_ac(both_constant) == 1.0
    assert c.brennan_prediger(both_constant) == 1.0
    assert c.cohen_kappa(one_constant) == 0.0
    assert c.cohen_kappa(opposite) == 0.0
    assert c.constant_raters(np.array([both_constant, one_constant, opposite])).all()
    assert not c.constant_raters(np.array(FEINSTEIN["balanced"]))
    assert np.isnan(c.observed_agreement(np.zeros((2, 2))))
    assert np.isnan(c.gwet_ac(np.array([[5.0]])))


def test_no_better_than_chance_is_exactly_zero() -> None:
    """Verdicts compare a grader's bound with a baseline's kappa, so rounding must not decide."""
    tables = np.outer([0.3, 0.5, 0.2], [0.61, 0.33, 0.06]) * 350
    assert c.cohen_kappa(tables) == 0.0


def test_alpha_takes_whole_numbers_and_one_value_for_each_category() -> None:
    counts = np.array([[10, 4], [4, 2]])
    for level, values in (("nominal", None), ("ordinal", None), ("interval", (0.0, 1.0))):
        assert c.alpha(counts, level, values) == c.alpha(counts.astype(float), level, values)
    with pytest.raises(ValueError, match="values"):
        c.alpha(counts, "interval", (0.0, 1.0, 2.0))
