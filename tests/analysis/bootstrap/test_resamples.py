"""The weights engine against a bootstrap that really repeats the clusters."""

import krippendorff
import numpy as np
import pytest
from scipy.sparse import csr_array

from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.groups import group_panel
from evenhand.analysis.agreement.pairs import KappaMeans, pair_statistics, pair_tables
from evenhand.analysis.bootstrap.resamples import (
    Bootstrap,
    Resamples,
    count_patterns,
    resamples_of_patterns,
)
from evenhand.analysis.labels.scale import Scale
from tests.analysis.make import matrix_of, noisy
from tests.peers import metrics

SCALE = Scale("", ("1", "2", "3", "4"), "ordinal")


@pytest.fixture
def clustered(rng):
    """Three raters with gaps on 60 units in 12 clusters of unequal size."""
    truth = rng.integers(0, 4, 60)
    clusters = np.sort(rng.integers(0, 12, 60))
    clusters[:12] = np.arange(12)
    labels = {name: noisy(rng, truth, 4, 0.6, missing=0.15) for name in "abc"}
    return matrix_of(labels, SCALE, clusters=[f"c{k:02d}" for k in clusters])


def test_weights_are_what_repeating_the_clusters_gives(clustered):
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
        kappa = metrics.cohen_kappa_score(
            codes[both, 0], codes[both, 1], labels=[0, 1, 2, 3], weights="quadratic"
        )
        assert kappas[row] == pytest.approx(kappa)
        alpha = krippendorff.alpha(
            reliability_data=codes.T, level_of_measurement="ordinal", value_domain=[0, 1, 2, 3]
        )
        assert panel["krippendorff_alpha_ordinal"][row] == pytest.approx(alpha)


def test_the_ceiling_is_what_repeating_the_clusters_gives(rng):
    truth = rng.integers(0, 3, 120)
    scale = Scale("", ("1", "2", "3"))
    labels = {name: noisy(rng, truth, 3, 0.7) for name in ("a", "b", "g")}
    matrix = matrix_of(
        labels, scale, graders=["g"], clusters=[f"c{n // 4:02d}" for n in range(120)]
    )
    coded = matrix.on_categories()
    resamples = Resamples(np.ones(30), 20, np.random.default_rng(5))
    means, everywhere = KappaMeans(coded, resamples), np.ones(120, dtype=bool)
    with_grader = means.with_rater([0, 1], 2, everywhere)["cohen_kappa"].values
    difference = with_grader - means.among([0, 1])["cohen_kappa"].values
    for row, weight in enumerate(np.vstack(list(resamples.blocks()))):
        drawn = np.repeat(np.arange(30), weight)
        codes = np.concatenate([coded.codes[coded.clusters == k] for k in drawn])
        kappa = {
            (i, j): metrics.cohen_kappa_score(codes[:, i], codes[:, j], labels=[0, 1, 2])
            for i, j in ((0, 2), (1, 2), (0, 1))
        }
        expected = (kappa[0, 2] + kappa[1, 2]) / 2 - kappa[0, 1]
        assert difference[row] == pytest.approx(expected)


def test_the_chunks_of_a_computation_change_nothing(monkeypatch):
    features = np.random.default_rng(1).integers(0, 9, (700, 12))
    frequency = np.random.default_rng(3).integers(1, 4, 700)

    def everything():
        resamples = Resamples(frequency, 520, np.random.default_rng(9), jackknife=True)
        return resamples.totals(features), np.vstack(list(resamples.blocks()))

    whole = everything()
    assert whole[1].shape == (521, 700)
    # Threads for everything, nothing kept, pieces of a few rows and columns.
    monkeypatch.setattr("evenhand.analysis.bootstrap.resamples._WORTH_THREADS", 0)
    monkeypatch.setattr("evenhand.analysis.bootstrap.resamples._KEEP_BYTES", 0)
    monkeypatch.setattr("evenhand.analysis.bootstrap.resamples._CACHED_CELLS", 1_000)
    in_pieces = everything()
    assert np.array_equal(whole[0], in_pieces[0])
    assert np.array_equal(whole[1], in_pieces[1])


def test_counts_are_multinomial_however_they_are_drawn():
    """Few folded clusters by category, many by single draws: the same mean and variance."""
    few = Resamples([900, 80, 20], 4000, np.random.default_rng(1))
    many = Resamples([3, 2, 1], 4000, np.random.default_rng(2))
    for resamples in (few, many):
        total = resamples.frequency.sum()
        drawn = np.vstack(list(resamples.blocks()))[1:].astype(float)
        share = resamples.frequency / total
        assert (drawn.sum(axis=1) == total).all()
        assert drawn.mean(axis=0) == pytest.approx(total * share, rel=0.05)
        assert drawn.var(axis=0) == pytest.approx(total * share * (1 - share), rel=0.1)


# --- Patterns of labels ---------------------------------------------------------------------------
@pytest.mark.parametrize(("raters", "q"), [(3, 5), (5, 5), (9, 8), (124, 10)])
def test_count_patterns_are_the_counts_of_the_units(raters, q):
    codes = np.random.default_rng(1).integers(-1, q, (400, raters)).astype(np.int8)
    counts, times = count_patterns(codes, q)
    each = np.stack([(codes == code).sum(axis=1) for code in range(q)], axis=1)
    expected, frequency = np.unique(each, axis=0, return_counts=True)
    found = dict(zip(map(tuple, counts.astype(int)), times, strict=True))
    assert found == dict(zip(map(tuple, expected), frequency, strict=True))


def test_many_clusters_are_resampled_in_groups_and_the_note_says_so(monkeypatch):
    """A share's standard error is known: the spread of groups must give it."""
    monkeypatch.setattr("evenhand.analysis.bootstrap.resamples.GROUPS", 500)
    rng = np.random.default_rng(1)
    n, size = 20_000, 3
    lean = np.repeat(rng.random(n), size)  # units of a cluster are alike
    affirmed = (rng.random(n * size) < lean).astype(np.int64)
    cells = csr_array((np.ones(n * size, np.int64), (np.repeat(np.arange(n), size), affirmed)))
    keys = np.arange(n, dtype=np.uint64)
    groups = resamples_of_patterns(cells, keys, Bootstrap(1000, 2).draw, 2, many=n - 1)
    assert groups.is_pooled
    drawn = groups.totals(np.array([[0], [1]]))[:, 0] / groups.totals(np.ones((2, 1)))[:, 0]
    truth = affirmed.reshape(n, size).mean(axis=1).std(ddof=1) / np.sqrt(n)
    assert drawn[1:].std() == pytest.approx(truth, rel=0.1)  # 500 groups: 3.2%, 1,000 draws: 2.2%
    found = groups.interval(drawn, n)
    assert found.note == "interval from 500 random groups of the 20,000 clusters"
    again = resamples_of_patterns(cells, keys, Bootstrap(1000, 2).draw, 3, many=n - 1)
    assert (again._members != groups._members).nnz  # another seed, other groups
