"""The threshold sweep against trying every threshold, resample by resample, and its interval.

Folds keep clusters whole.
Thresholds judged on clusters that they were not tuned on.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, recall_score

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.thresholds.sweep import (
    CURVE_POINTS,
    OBJECTIVES,
    Candidates,
    Outcomes,
    folds,
    held_out_verdicts,
    sweep,
    threshold_interval,
)


def _objective(y: np.ndarray, verdict: np.ndarray, name: str) -> float:
    """The second implementation: scikit-learn."""
    if name == "kappa":
        return float(cohen_kappa_score(y, verdict, labels=[0, 1]))
    if name == "agreement":
        return float(np.mean(verdict == y))
    if name == "f1":
        return float(f1_score(y, verdict, zero_division=0))
    if name == "youden":
        return float(recall_score(y, verdict) + recall_score(y, verdict, pos_label=0) - 1)
    return 1 - abs(float(verdict.mean() - y.mean()))


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTIVES)
def test_sweep_is_exact_in_every_resample(rng: np.random.Generator, name: str) -> None:
    p = np.round(rng.random(40), 2)
    y = (rng.random(40) < p).astype(np.int8)
    clusters = np.repeat(np.arange(10), 4)
    resamples = Resamples(np.ones(10), 5, np.random.default_rng(4))
    found = sweep(p, y, clusters, resamples, 0.5)[name]
    for row, weight in enumerate(np.vstack(list(resamples.blocks()))):
        units = np.repeat(np.arange(40), weight[clusters])
        if len(np.unique(y[units])) < 2:
            continue
        each = {
            at: _objective(y[units], (p[units] >= at).astype(int), name)
            for at in sorted({*p, 0.5, 1.0})
        }
        assert found.tuned[row] == pytest.approx(max(each.values()))
        assert each[found.threshold[row]] == pytest.approx(found.tuned[row])
        course = [each[at] for at in found.curve.thresholds]
        assert found.curve.values[row] == pytest.approx(course)


def test_the_kappa_of_the_sweep_is_that_of_everywhere_else(rng: np.random.Generator) -> None:
    tables = rng.integers(0, 4, (500, 2, 2)).astype(float)
    affirmed, others = tables.sum(axis=2).T
    kappa = OBJECTIVES["kappa"](Outcomes(tables[:, 0, 0], tables[:, 1, 0], affirmed, others))
    with np.errstate(invalid="ignore"):
        assert kappa == pytest.approx(c.cohen_kappa(tables), nan_ok=True)


def test_the_default_is_kept_where_it_is_as_good_as_any() -> None:
    p, y = np.array([0.1, 0.2, 0.8, 0.9] * 5), np.array([0, 0, 1, 1] * 5, dtype=np.int8)
    resamples = Resamples(np.ones(20), 50, np.random.default_rng(1))
    found = sweep(p, y, np.arange(20), resamples, 0.5)["kappa"]
    assert found.threshold[0] == 0.5
    assert found.tuned[0] == 1.0


def test_the_interval_holds_every_threshold_with_the_same_verdicts() -> None:
    """Nothing lies between .2 and .8, and no verdict there is ever wrong: all are as good."""
    p, y = np.array([0.1, 0.2, 0.8, 0.9] * 10), np.array([0, 0, 1, 1] * 10, dtype=np.int8)
    resamples = Resamples(np.ones(40), 200, np.random.default_rng(1))
    found = threshold_interval(sweep(p, y, np.arange(40), resamples, 0.5)["kappa"], resamples, 40)
    assert (found.low, found.high) == (0.2, 0.8)


def test_the_curve_is_bounded_and_holds_the_default_and_the_best(rng: np.random.Generator) -> None:
    p = rng.random(300)
    y = (rng.random(300) < p).astype(np.int8)
    resamples = Resamples(np.ones(300), 20, np.random.default_rng(1))
    for found in sweep(p, y, np.arange(300), resamples, 0.5).values():
        at = found.curve.thresholds
        assert CURVE_POINTS <= len(at) <= CURVE_POINTS + len(OBJECTIVES) + 1
        assert (np.diff(at) > 0).all()
        assert {0.5, 1.0, found.threshold[0]} <= set(at.tolist())
        assert not found.curve.complete


def test_too_few_clusters_give_no_interval() -> None:
    p, y = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1], dtype=np.int8)
    resamples = Resamples(np.ones(4), 50, np.random.default_rng(1))
    found = threshold_interval(sweep(p, y, np.arange(4), resamples, 0.5)["kappa"], resamples, 4)
    assert np.isnan(found.low)
    assert found.note == "too_few_clusters"


def test_folds_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    """As even in size, whole in clusters, and ten of them."""
    from sklearn.model_selection import GroupKFold

    clusters = rng.integers(0, 37, 300)
    own = folds(clusters)
    theirs = [len(test) for _, test in GroupKFold(10).split(clusters, groups=clusters)]
    assert sorted(np.bincount(own)) == sorted(theirs)
    assert all(len(set(own[clusters == cluster])) == 1 for cluster in set(clusters.tolist()))
    assert set(folds(np.zeros(5, dtype=np.intp))) == {0}


def test_no_unit_has_a_say_in_its_own_threshold(rng: np.random.Generator) -> None:
    """Turning the reference of one cluster round changes no verdict in its fold."""
    p, clusters = rng.random(200), np.repeat(np.arange(50), 4)
    reference = (rng.random(200) < p).astype(np.int8)
    before = held_out_verdicts(p, reference, clusters, 0.5)
    own = folds(clusters) == folds(clusters)[0]
    turned = np.where(own, 1 - reference, reference).astype(np.int8)
    after = held_out_verdicts(p, turned, clusters, 0.5)
    assert all((before[name][own] == after[name][own]).all() for name in before)
    assert any((before[name][~own] != after[name][~own]).any() for name in before)


def test_units_without_a_reference_are_judged_and_not_tuned_on(rng: np.random.Generator) -> None:
    p, clusters = rng.random(100), np.arange(100)
    reference = (p >= 0.3).astype(np.int8)
    reference[::5] = -1
    found = held_out_verdicts(p, reference, clusters, 0.5)["kappa"]
    # A cut between the nearest probabilities on either side of .3 that have a reference.
    known = np.sort(p[reference >= 0])
    near = known[known >= 0.3][:3].max()
    clear = (p < known[known < 0.3][-1]) | (p > near)
    assert (found[clear] == (p >= 0.3)[clear]).all()


def test_a_single_cluster_cannot_be_held_out() -> None:
    one = np.zeros(20, dtype=np.intp)
    assert held_out_verdicts(np.linspace(0, 1, 20), np.ones(20, dtype=np.int8), one, 0.5) == {}


def test_candidates_count_what_lies_below() -> None:
    affirmed = np.array([False, True, True])
    found = Candidates.of(np.array([0.2, 0.9, 0.2]), affirmed, np.arange(3), 0.5)
    below = zip(*(each.tolist() for each in found.below), strict=True)
    assert dict(zip(found.thresholds.tolist(), below, strict=True)) == {
        0.2: (0, 0),
        0.5: (1, 1),
        0.9: (1, 1),
        1.0: (2, 1),
    }
