"""The weights engine against a bootstrap that really repeats the clusters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from analysis.groups import group_panel, label_counts
from analysis.pairs import pair_statistics, pair_tables
from analysis.resampling import Resamples, interval
from analysis.scale import Scale

SCALE = Scale("", ("1", "2", "3", "4"), "ordinal")


@pytest.fixture
def clustered(make_matrix: Callable, noisy: Callable, rng: np.random.Generator):
    """Three raters with gaps on 60 units in 12 clusters of unequal size."""
    truth = rng.integers(0, 4, 60)
    clusters = np.sort(rng.integers(0, 12, 60))
    clusters[:12] = np.arange(12)
    labels = {name: noisy(rng, truth, 4, 0.6, missing=0.15) for name in "abc"}
    return make_matrix(labels, SCALE, clusters=[f"c{k:02d}" for k in clusters])


def test_weights_are_what_repeating_the_clusters_gives(clustered) -> None:
    import krippendorff
    from sklearn.metrics import cohen_kappa_score

    coded = clustered.on_categories()
    resamples = Resamples(np.ones(12), 25, np.random.default_rng(3))
    tables = pair_tables(coded, [(0, 1)], resamples)
    kappas = pair_statistics(coded)["weighted_kappa_quadratic"](tables)[:, 0]
    panel = group_panel(label_counts(coded, [0, 1, 2]), coded, resamples)
    weights = np.vstack(list(resamples.blocks()))
    assert weights.shape == (26, 12)
    for row, weight in enumerate(weights):
        drawn = np.repeat(np.arange(12), weight)
        units = np.concatenate([np.flatnonzero(coded.clusters == k) for k in drawn])
        codes = coded.codes[units].astype(float)
        codes[codes < 0] = np.nan
        both = ~np.isnan(codes[:, :2]).any(axis=1)
        kappa = cohen_kappa_score(
            codes[both, 0], codes[both, 1], labels=[0, 1, 2, 3], weights="quadratic"
        )
        assert kappas[row] == pytest.approx(kappa)
        alpha = krippendorff.alpha(
            reliability_data=codes.T, level_of_measurement="ordinal", value_domain=[0, 1, 2, 3]
        )
        assert panel["krippendorff_alpha_ordinal"][row] == pytest.approx(alpha)


def test_row_0_is_the_data_and_every_resample_has_as_many_clusters() -> None:
    resamples = Resamples(np.ones(40), 300, np.random.default_rng(0))
    weights = np.vstack(list(resamples.blocks()))
    assert (weights[0] == 1).all()
    assert (weights.sum(axis=1) == 40).all()
    assert len(np.unique(weights[1:], axis=0)) == 300


def test_the_same_seed_gives_the_same_resamples_kept_or_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = Resamples(np.ones(30), 600, np.random.default_rng(5))
    monkeypatch.setattr("analysis.resampling._KEEP_BYTES", 0)
    drawn = Resamples(np.ones(30), 600, np.random.default_rng(5))
    features = np.random.default_rng(1).random((30, 4))
    assert np.array_equal(kept.totals(features), drawn.totals(features))
    assert np.array_equal(drawn.totals(features), drawn.totals(features))


def test_whole_numbers_are_summed_exactly() -> None:
    resamples = Resamples(np.ones(50), 100, np.random.default_rng(2))
    features = np.random.default_rng(1).integers(0, 1000, (50, 3))
    weights = np.vstack(list(resamples.blocks())).astype(np.int64)
    assert np.array_equal(resamples.totals(features), weights @ features)


def test_folding_identical_units_keeps_the_estimate_and_the_spread(
    make_matrix: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 2, 4000)
    scale = Scale("", ("1", "2"))
    matrix = make_matrix({name: noisy(rng, truth, 2, 0.7) for name in "ab"}, scale)
    folded, frequency = matrix.folded()
    assert len(folded.codes) == 4
    assert frequency.sum() == 4000
    found = []
    for labels, counts in ((matrix, np.ones(4000)), (folded, frequency)):
        resamples = Resamples(counts, 2000, np.random.default_rng(8))
        tables = pair_tables(labels.on_categories(), [(0, 1)], resamples)
        found.append(
            interval(pair_statistics(labels.on_categories())["cohen_kappa"](tables)[:, 0], 4000)
        )
    plain, fast = found
    assert fast.estimate == pytest.approx(plain.estimate)
    assert fast.low == pytest.approx(plain.low, abs=0.004)
    assert fast.high == pytest.approx(plain.high, abs=0.004)


def test_degenerate_resamples_are_counted_and_too_many_give_no_interval() -> None:
    values = np.linspace(0, 1, 1001)
    few, some, many = values.copy(), values.copy(), values.copy()
    few[1:6] = some[1:51] = many[1:202] = np.nan
    assert interval(values, 30).note == ""
    assert interval(few, 30).note == "degenerate_resamples 5 of 1000"
    assert interval(some, 30).note == "degenerate_resamples 50 of 1000: warning"
    assert interval(some, 30).low > 0
    assert np.isnan(interval(many, 30).low)
    assert interval(many, 30).estimate == 0.0
    assert interval(many, 30).note == "degenerate_resamples 201 of 1000: no interval"


def test_too_few_clusters_and_undefined_estimates_say_so() -> None:
    assert interval(np.array([0.5, 0.4, 0.6]), 4).note == "too_few_clusters"
    nothing = interval(np.array([np.nan, 0.4]), 40, reason="no_variation")
    assert np.isnan(nothing.estimate)
    assert nothing.note == "no_variation"
