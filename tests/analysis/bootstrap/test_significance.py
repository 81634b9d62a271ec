"""Small tests and corrections against statsmodels and published tables.

Permutation tests of parts: against a loop over all permutations, and on degenerate data.
"""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis.bootstrap.significance import (
    PRIOR,
    Parts,
    benjamini_hochberg,
    benjamini_yekutieli,
    clustered_homogeneity,
    holm,
    max_t,
    max_t_notes,
    mcnemar_exact,
    sign_flip,
    sign_flip_above,
    stuart_maxwell,
)
from tests.known_values import known_values
from tests.peers import contingency_tables, multitest


def test_benjamini_and_hochbergs_15_p_values():
    known = known_values("multiple_testing_bh1995")
    p, expected = known["data"]["p"], known["expected"]
    assert benjamini_yekutieli(p) == pytest.approx(expected["BY"], abs=1e-12)
    assert holm(p) == pytest.approx(expected["holm"], abs=1e-12)
    assert benjamini_hochberg(p) == pytest.approx(expected["BH"], abs=1e-12)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=15, deadline=None)
def test_corrections_are_those_of_statsmodels(p):
    assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert benjamini_hochberg(p) == pytest.approx(multitest.multipletests(p, method="fdr_bh")[1])
    assert benjamini_yekutieli(p) == pytest.approx(multitest.multipletests(p, method="fdr_by")[1])


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg, benjamini_yekutieli])
def test_what_was_not_tested_costs_the_others_nothing(correct):
    found = correct([0.01, np.nan, 0.04, np.nan, 0.03])
    assert np.isnan(found[[1, 3]]).all()
    assert found[[0, 2, 4]].tolist() == correct([0.01, 0.04, 0.03]).tolist()
    assert len(correct([])) == 0


@given(st.integers(0, 60), st.integers(0, 60))
@settings(max_examples=25, deadline=None)
def test_mcnemar_is_that_of_statsmodels(b, c):
    assert sign_flip([1] * b + [-1] * c + [0] * 3) == mcnemar_exact(b, c)  # of single units
    if b + c == 0:
        assert mcnemar_exact(b, c) == 1.0
        return
    theirs = contingency_tables.mcnemar([[5, b], [c, 5]], exact=True).pvalue
    assert mcnemar_exact(b, c) == pytest.approx(theirs)


@given(st.lists(st.integers(-4, 4), max_size=9))
@settings(max_examples=30, deadline=None)
def test_sign_flips_are_all_counted(apart):
    """Every way of flipping the signs, one by one, on both sides and on one."""
    ways = np.array([np.dot(signs, apart) for signs in product((1, -1), repeat=len(apart))])
    assert sign_flip(apart) == pytest.approx(np.mean(abs(ways) >= abs(sum(apart))))
    assert sign_flip_above(apart) == pytest.approx(np.mean(ways >= sum(apart)))


@given(st.lists(st.integers(0, 12), min_size=9, max_size=9))
@settings(max_examples=25, deadline=None)
def test_single_units_as_clusters_are_stuart_and_maxwells_test(cells):
    table = np.array(cells).reshape(3, 3)
    first, second = (np.repeat(np.indices((3, 3))[axis].ravel(), cells) for axis in (0, 1))
    found = clustered_homogeneity(np.eye(3)[first] - np.eye(3)[second])
    assert found == pytest.approx(stuart_maxwell(table), nan_ok=True)


def test_homogeneity_of_two_categories_is_obuchowskis_score(rng):
    """Obuchowski 1998: (b - c)^2 over the sum of (b_k - c_k)^2 over the clusters k."""
    apart = rng.integers(-4, 6, 30)
    found = clustered_homogeneity(np.column_stack([apart, -apart]))
    assert found.statistic == pytest.approx(apart.sum() ** 2 / (apart**2).sum())
    assert found.degrees == 1
    for nothing in (np.zeros((0, 3)), np.zeros((5, 3)), [[1, -1, 0], [-1, 1, 0]]):
        assert clustered_homogeneity(nothing).p == 1.0
    # One cluster says nothing of spread in two directions, nor does confusion within groups.
    assert np.isnan(clustered_homogeneity([[3, -1, -2]]).p)
    assert np.isnan(stuart_maxwell([[5, 4, 0, 0], [1, 5, 0, 0], [0, 0, 5, 4], [0, 0, 1, 5]]).p)


@given(st.lists(st.integers(0, 12), min_size=16, max_size=16))
@settings(max_examples=25, deadline=None)
def test_stuart_maxwell_is_that_of_statsmodels(cells):
    table = np.array(cells, dtype=float).reshape(4, 4)
    apart = table - np.diag(np.diag(table))
    found = stuart_maxwell(table)
    if np.array_equal(apart.sum(axis=0), apart.sum(axis=1)):
        assert found.p == 1.0
    elif not np.isnan(found.p) and ((apart + apart.T).sum(axis=0) > 0).all():
        theirs = contingency_tables.SquareTable(table, shift_zeros=False).homogeneity()
        assert found.statistic == pytest.approx(theirs.statistic)
        assert (found.degrees, found.p) == (theirs.df, pytest.approx(theirs.pvalue))


def test_one_sided_flips_of_fractions_are_drawn_and_of_ones_the_sign_test():
    assert sign_flip_above([1] * 7 + [-1] * 2) == pytest.approx(mcnemar_exact(7, 2) / 2)
    apart = np.linspace(-0.4, 0.9, 10)
    ways = np.array(list(product((-1, 1), repeat=10))) @ apart
    assert sign_flip_above(apart) == pytest.approx(np.mean(ways >= apart.sum()), abs=0.01)
    assert sign_flip_above(np.full(40, 0.5)) == pytest.approx(1e-4)
    assert sign_flip_above([]) == sign_flip_above([0.0, 0.0]) == 1.0


def parts(outcome, part, cluster=None, mass=None, **more):
    """Outcomes of one test, or of several in columns, each unit its own cluster unless given."""
    values = np.array(outcome, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    n = len(values)
    weight = np.ones_like(values) if mass is None else np.array(mass, dtype=float)
    clusters = np.arange(n) if cluster is None else np.array(cluster)
    each_once = np.ones(n, dtype=np.int64)
    return Parts(values, weight, np.array(part), clusters, more.pop("times", each_once), **more)


def of(*columns):
    return max_t(columns)


def by_loops(outcome, part, cluster, mass):
    """P of whole clusters in parts, alone and adjusted, from every permutation of the clusters."""
    centred = mass * (outcome - (mass * outcome).sum() / mass.sum())
    names = sorted(set(cluster))
    sizes = np.array([mass[cluster == name].sum() for name in names])
    totals = np.array([centred[cluster == name].sum() for name in names])
    own = [int(part[cluster == name][0]) for name in names]

    def t(of_cluster):
        labels, found = np.array(of_cluster), []
        common = (totals**2).sum() / (sizes**2).sum()
        means, spreads, masses = {}, {}, {}
        for each in sorted(set(own)):
            here = labels == each
            masses[each] = sizes[here].sum()
            means[each] = totals[here].sum() / masses[each]
            spread = ((totals - means[each] * sizes)[here] ** 2).sum() / masses[each]
            shared = common * (sizes[here] ** 2).sum() / masses[each]
            spreads[each] = (here.sum() * spread + PRIOR * shared) / (here.sum() + PRIOR)
        for each in means:
            others = [name for name in means if name != each]
            rest = sum(masses[name] for name in others)
            mean = sum(means[name] * masses[name] for name in others) / rest
            spread = sum(spreads[name] * masses[name] for name in others) / rest
            error = np.sqrt(spreads[each] / masses[each] + spread / rest)
            found.append(abs(means[each] - mean) / error)
        return found

    seen = np.array(t(tuple(own)))
    drawn = np.array([t(each) for each in permutations(own)])
    alone = (drawn >= seen - 1e-9).mean(axis=0)
    return alone.tolist(), (drawn.max(axis=1)[:, None] >= seen - 1e-9).mean(axis=0).tolist()


@pytest.mark.slow
def test_p_is_that_of_all_permutations_in_loops(rng):
    """Seven clusters of 1 to 4 units in three parts, of unlike weight: all 5,040 permutations."""
    cluster = np.repeat(np.arange(7), [1, 4, 2, 3, 1, 2, 4])
    part = np.array([0, 0, 0, 1, 1, 2, 2])[cluster]
    mass = rng.choice([1.0, 2.0], 7)[cluster]
    outcome = rng.random(len(part)) + 0.6 * (part == 2)
    alone, adjusted = by_loops(outcome, part, cluster, mass)
    (found,) = of(parts(outcome, part, cluster, mass[:, None]))
    # 999 drawn ones: a standard error of .016 at most.
    assert found.p.ravel() == pytest.approx(alone, abs=0.06)
    assert found.adjusted.ravel() == pytest.approx(adjusted, abs=0.06)
    assert max(alone) - min(alone) > 0.2  # which the data tell apart


def test_a_part_without_an_error_is_not_called_different():
    """Six parts of 30, 15 errors among them and none in the first: the bootstrap had a p of 0."""
    errors = [0, 3, 3, 3, 3, 3]
    outcome = [1.0] * 180
    for at, count in enumerate(errors):
        outcome[30 * at : 30 * at + count] = [0.0] * count
    (found,) = of(parts(outcome, np.repeat(np.arange(6), 30)))
    assert found.adjusted[0, 0] > 0.2
    assert found.p[0, 0] < found.adjusted[0, 0]


def test_a_worse_part_is_found_and_pays_for_the_others():
    part = np.repeat(np.arange(6), 60)
    outcome = (np.arange(360) % 25 > 1).astype(float)
    outcome[60:80] = 0.0
    alone = of(parts(outcome, part))[0]
    assert alone.adjusted[1, 0] < 0.01
    # A second column and grader in which nothing differs leave p as it is, and add to its price.
    twice = np.column_stack([outcome, np.arange(360) % 9 > 0])
    first, second = of(parts(twice, part), parts(twice, np.arange(360) % 4))
    assert first.p[:, 0] == pytest.approx(alone.p[:, 0])
    assert (first.adjusted[:, 0] >= alone.adjusted[:, 0]).all()
    assert second.adjusted.min() > 0.05


def test_within_clusters_what_clusters_share_counts_for_nothing():
    """Two units a cluster, one in each part; clusters differ much, the parts by a tenth."""
    level = np.repeat(np.linspace(0, 10, 40), 2)
    part = np.tile([0, 1], 40)
    outcome = level + 0.1 * part + np.resize([0.0, 0.03, 0.01], 80)
    (within,) = of(parts(outcome, part, np.repeat(np.arange(40), 2)))
    (without,) = of(parts(outcome, part))
    assert within.adjusted.max() < 0.01
    assert without.adjusted.min() > 0.5


@pytest.mark.parametrize("many", [0, 20_000])
def test_rows_that_stand_for_many_units_are_these_units(many, monkeypatch):
    """By random tables, as of many units, and one by one."""
    outcome, part = np.array([1, 0, 1, 0, 1, 0.0]), np.array([0, 0, 1, 1, 2, 2])
    times = np.array([50, 10, 55, 5, 40, 20])
    for strata in (None, np.array([0, 1, 0, 1, 1, 0])):
        rows = parts(outcome, part, times=times, stratum=strata)
        again = None if strata is None else np.repeat(strata, times)
        units = parts(np.repeat(outcome, times), np.repeat(part, times), stratum=again)
        one_by_one = of(units)[0]
        with monkeypatch.context() as patch:
            patch.setattr("evenhand.analysis.bootstrap.significance._MANY_UNITS", many)
            together = of(rows)[0]
        # Of 199 drawn ones, a standard error of .035 at most.
        assert together.p.ravel() == pytest.approx(one_by_one.p.ravel(), abs=0.1)
        assert together.adjusted.ravel() == pytest.approx(one_by_one.adjusted.ravel(), abs=0.1)
        assert np.ptp(one_by_one.p) > 0.3


def test_within_strata_a_harder_kind_of_unit_is_not_a_worse_part():
    """The part has more of the kind that is often wrong, and is no worse in either kind."""
    part = np.repeat([0, 1], 100)
    kind = np.concatenate([np.arange(100) < 80, np.arange(100) < 20])
    outcome = np.where(kind, np.resize([1.0, 0.0], 200), 1.0)
    assert of(parts(outcome, part))[0].adjusted.max() < 0.01
    means = np.array([outcome[kind == each].mean() for each in (False, True)])
    same = outcome - means[kind.astype(int)]
    assert of(parts(same, part, stratum=kind.astype(int)))[0].adjusted.min() > 0.5


def test_degenerate_data():
    assert of() == []
    (none,) = of(parts(np.zeros((0, 1)), np.zeros(0, dtype=int)))
    assert none.p.shape == (0, 1)
    (outside,) = of(parts([1, 0], [-1, -1]))
    assert outside.p.shape == (0, 1)
    (alone,) = of(parts([1, 0, 1], [0, 0, 0]))
    assert np.isnan(alone.p).all()
    (same,) = of(parts([1, 1, 1, 1], [0, 0, 1, 1]))
    assert (same.adjusted == 1).all()
    (tiny,) = of(parts([1, 0], [0, 1]))
    assert (tiny.adjusted == 1).all()
    # The second grader has no item in the last part; the first part's code is unused.
    mass = np.ones((40, 2))
    mass[30:, 1] = 0
    part = 1 + np.arange(40) // 10
    (found,) = of(parts(np.resize([1.0, 0.0, 1.0], (40, 2)), part, mass=mass))
    assert np.isnan(found.p[0]).all()
    assert np.isnan(found.p[4, 1])
    assert not np.isnan(found.p[1:, 0]).any()


def test_notes_say_each_p_and_how_many_there_are():
    (notes,) = max_t_notes([parts([0.0] * 20 + [1.0] * 40, np.repeat([0, 1, 3], 20))])
    first, _, absent, _ = notes
    assert (first, absent) == (["permutation p 0.001; max-T p 0.001 of 3"], [""])
