"""Intervals by published software and by their own rules, also where resamples do not vary.

The weights of resamples against a bootstrap that really repeats the clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import krippendorff
import numpy as np
import pandas as pd
import pytest
import scipy

from benchmarks.corrected_rates import TAIL, lumpy, lumpy_rate
from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.analysis.agreement.coefficients import count_patterns, label_counts
from evenhand.analysis.agreement.groups import group_panel
from evenhand.analysis.agreement.pairs import KappaMeans, measurement_of, pair_tables
from evenhand.analysis.bootstrap import intervals
from evenhand.analysis.bootstrap.bounds import PSEUDO, Sample, lower_bound
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples, resamples_of_patterns
from evenhand.analysis.results import BASELINES
from tests.analysis.make import analyse_labels, matrix_of, noisy, ratings_of, rows_of
from tests.peers import metrics, proportion, stats


def test_the_jackknife_leaves_out_each_cluster_as_often_as_it_stands_in_the_data():
    resamples = Resamples([2, 1], 3, np.random.default_rng(0), jackknife=True)
    totals = resamples.to_rows(np.array([[10.0], [1.0]]))
    assert len(resamples) == len(totals) == 1 + 3 + 3
    assert (totals[0, 0], sorted(totals[4:, 0])) == (21.0, [11.0, 11.0, 20.0])


def test_degenerate_resamples_are_counted_and_too_many_give_no_interval():
    careful, none = ": read the interval with care", ": no interval"
    for undefined, remark in ((10, ""), (11, careful), (100, careful), (101, none)):
        values = np.linspace(0, 1, 1001)
        assert intervals.interval(values, 30).note == ""
        values[1 : undefined + 1] = np.nan
        found = intervals.interval(values, 30)
        assert found.note == f"{undefined} of 1000 resamples undefined{remark}"
        assert found.estimate == 0.0
        assert np.isnan(found.low) if undefined > 100 else found.low > 0


def test_too_few_clusters_and_undefined_estimates_say_so():
    assert intervals.interval(np.array([0.5, 0.4, 0.6]), 4).note == "too_few_clusters"
    assert intervals.interval(np.array([0.5]), 40).note == "not_resampled"
    nothing = intervals.interval(np.array([np.nan, 0.4]), 40, reason="no_variation")
    assert np.isnan(nothing.estimate)
    assert nothing.note == "no_variation"


def test_bounds_are_the_quantiles_that_numpy_gives(rng):
    for size in (1, 2, 3, 41, 1999, 2000):
        drawn = rng.normal(size=size)
        expected = np.quantile(drawn, [0.025, 0.975]).tolist()
        assert intervals.percentile_bounds(drawn) == pytest.approx(expected, rel=1e-14)
        assert intervals.percentile_bounds(drawn, 0.0) == (drawn.min(), drawn.max())


def test_expanded_percentiles_of_a_mean_are_students_interval(rng):
    """Resamples of a mean are nearly normal; expanded they are t (Hesterberg 2015)."""
    for n in (8, 20):
        data = rng.normal(size=n)
        totals = Resamples(np.ones(n), 40_000, rng).to_rows(data[:, None])[:, 0] / n
        found = intervals.interval(totals, n)
        own = stats.t.interval(0.95, n - 1, data.mean(), data.std(ddof=1) / np.sqrt(n))
        assert (found.low, found.high) == pytest.approx(own, abs=0.04 * (own[1] - own[0]))
        # Plain percentiles are further off than that.
        plain = intervals.percentile_bounds(totals[1:])
        assert plain[1] - plain[0] < (0.92 if n == 20 else 0.8) * (own[1] - own[0])


def test_the_expansion_is_that_of_published_software_and_fades():
    """R's resample::ExpandProbs(0.025, n) is pnorm(qt(0.025, n - 1) * sqrt(n / (n - 1)))."""
    for n in (5, 10, 30, 250):
        expected = stats.norm.cdf(stats.t.ppf(0.025, n - 1) * np.sqrt(n / (n - 1)))
        assert intervals.expanded_tail(n) == pytest.approx(expected, rel=1e-12)
    assert intervals.expanded_tail(100_000) == pytest.approx(0.025, abs=1e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 60, 250])
def test_a_share_without_variation_has_clopper_and_pearsons_interval(n):
    for estimate in (0.0, 1.0):
        found = intervals.widened(intervals.Interval(estimate, estimate, estimate), n, "share")
        of_clusters = intervals.share_bounds(np.full(n, 4.0 * estimate), np.full(n, 4.0))
        expected = proportion.proportion_confint(estimate * n, n, method="beta")
        assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)
        assert of_clusters == pytest.approx((estimate, *expected), abs=1e-12)


def test_unlike_clusters_move_each_statistic_as_far_as_its_range_allows():
    share = intervals.unseen(60)
    assert (1 - share) ** 60 == pytest.approx(0.025)

    def bounds(estimate, kind, apart=1.0):
        found = intervals.widened(intervals.Interval(estimate, estimate, estimate), 60, kind, apart)
        return found.low, found.high

    assert bounds(0.5, "share") == pytest.approx((0.5 - 0.5 * share, 0.5 + 0.5 * share))
    assert bounds(1.0, "signed") == pytest.approx((1 - 2 * share, 1.0))
    assert bounds(0.0, "signed") == pytest.approx((-share, share))
    # Kappa 1 with chance agreement .5, and a difference of two such.
    assert bounds(1.0, "coefficient", 0.5) == pytest.approx((1 - share / 0.5, 1.0))
    assert bounds(0.0, "difference", 0.5) == pytest.approx((-share / 0.5, share / 0.5))
    # Nobody knows how far: all that is sure is the range.
    assert bounds(1.0, "coefficient", 0.0) == (-1.0, 1.0)
    assert bounds(-1.0, "difference", 0.5) == pytest.approx((-1.0, -1 + share / 0.5))


def test_only_an_interval_without_width_is_widened():
    wide, none = intervals.Interval(0.5, 0.4, 0.6), intervals.Interval(0.5, math.nan, math.nan)
    assert intervals.widened(wide, 60, "share") is wide
    assert intervals.widened(none, 60, "share") is none
    place = intervals.Interval(2.0, 2.0, 2.0)
    assert intervals.widened(place, 60, "place") is place
    unknown = intervals.widened(intervals.Interval(3.0, 3.0, 3.0), 60, None)
    assert math.isnan(unknown.low)
    assert unknown.note == "no_resample_differs"


def test_expected_disagreement_by_the_names_of_coefficients():
    shares, places = np.array([0.5, 0.25, 0.25]), np.arange(3.0)
    ordered = intervals.Chance(shares, ordered="linear")
    apart = np.abs(places[:, None] - places) / 2
    for name, weights in (
        ("cohen_kappa", np.sign(apart)),
        ("weighted_kappa_linear", apart),
        ("weighted_kappa_quadratic", apart**2),
        ("human_ceiling_difference", apart),
    ):
        assert ordered.disagreement(name) == pytest.approx(shares @ weights @ shares)
    for name in ("gwet_ac1", "brennan_prediger"):
        assert ordered.disagreement(name) == pytest.approx(2 / 3)


def test_where_hardly_anybody_says_yes_the_interval_is_doubted():
    """Such intervals of alpha hold the truth in .69 of studies (benchmarks.small_samples)."""
    rare = {"ann": "2" * 4 + "1" * 96, "ben": "12" * 2 + "1" * 96, "cem": "2" * 3 + "1" * 97}
    usual = {name: labels[:50] + "2" * 50 for name, labels in rare.items()}
    doubted = {}
    for name, labels in (("rare", rare), ("usual", usual)):
        found = analyse_labels(labels, Scale("r", ("1", "2")), [])
        own = found.results[found.results["statistic"] == "krippendorff_alpha_nominal"]
        assert own["low"].notna().all()
        doubted[name] = own["note"].str.contains("a rarer category in only 4 clusters").all()
    assert doubted == {"rare": True, "usual": False}


@pytest.mark.parametrize(("cases", "n"), [(0, 5), (1, 50), (10, 20), (49, 50), (250, 250)])
def test_wilson_is_statsmodels(cases, n):
    expected = proportion.proportion_confint(cases, n, method="wilson")
    assert intervals.wilson(cases / n, n) == pytest.approx(expected, abs=1e-12)


@dataclass(frozen=True)
class _Ratio:
    """A ratio of sums over clusters as `lower_bound` takes it."""

    over: np.ndarray
    under: np.ndarray
    base: np.ndarray

    def at(self, weights):
        under = (weights * self.under).sum(axis=-1)
        value = (weights * self.over).sum(axis=-1) / under
        return value, (self.over - value[..., None] * self.under) / under[..., None]


@pytest.mark.parametrize(("k", "weight"), [(25, 0.0), (60, 0.0), (60, 0.8), (200, 0.4)])
def test_score_bounds_are_those_of_the_general_walk(k, weight):
    rng = np.random.default_rng(k)
    cases, sizes = lumpy("logit-normal", k, rng)
    less = weight * rng.binomial(cases, 0.8)
    clusters, size = float(k), sizes.astype(float)
    over = np.concatenate([cases - less, -less, sizes - less])
    base = np.concatenate([np.ones(k), np.full(2 * k, PSEUDO / (2 * k))])
    statistic = _Ratio(over, np.tile(size, 3), base)
    estimate = np.array((cases - less).sum() / size.sum())
    worth = size.sum() ** 2 / (size**2).sum()
    sample = Sample(estimate, clusters, worth, np.array(math.sqrt(k / (k - 1))))
    low = lower_bound(statistic, sample, 0.025)
    mirrored = replace(statistic, over=-over), replace(sample, estimate=-estimate)
    expected = [float(low), -float(lower_bound(*mirrored, 0.025))]
    found = intervals.ratio_bounds(cases, size, np.ones(k), subtracted=less)
    assert found == pytest.approx(expected, abs=0.02 * (expected[1] - expected[0]))


def test_clusters_that_carry_the_rarer_outcome():
    """(3 + 3 + 2)^2 / (9 + 9 + 4) = 2.9 of ten clusters of four."""
    cases, sizes, ones = np.array([3.0, 3, 2] + [0.0] * 7), np.full(10, 4.0), np.ones(10)
    assert intervals.effective_carriers(cases, sizes, ones) == pytest.approx(64 / 22)
    assert intervals.effective_carriers(sizes - cases, sizes, ones) == pytest.approx(64 / 22)
    assert intervals.effective_carriers(0 * cases, sizes, ones) == 0.0


@pytest.mark.parametrize("name", ["few carry all", "logit-normal", "one unit each"])
def test_resamples_and_sums_over_clusters_give_one_interval(name):
    cases, sizes = lumpy(name, 80, np.random.default_rng(3))
    resamples = Resamples(np.ones(80), 4000, np.random.default_rng(1))
    sums = resamples.to_rows(np.column_stack([cases, sizes]).astype(float))
    values = sums[:, 0] / sums[:, 1]
    plain = intervals.interval(values, 80)
    found = intervals.share_interval(plain, values[1:], int(sizes.sum()), 80)
    share, low, high = intervals.share_bounds(cases * 1.0, sizes * 1.0)
    assert found.estimate == share
    weighted = intervals.share_bounds(cases * 0.01, sizes * 0.01)
    assert weighted == pytest.approx((share, low, high)), "whatever the scale of the weights"
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05 * (high - low))


def test_degenerate_shares():
    assert np.isnan(intervals.share_bounds(np.zeros(0), np.zeros(0))).all()
    assert np.isnan(intervals.share_bounds(np.zeros(3), np.zeros(3))).all()
    one = intervals.share_bounds(np.array([3.0]), np.array([4.0]))
    two = intervals.share_bounds(np.arange(2.0), np.ones(2))
    for share, low, high in (one, two):
        assert 0.0 <= low < share < high <= 1.0
    assert two[2] - two[1] > 0.9, "two clusters that differ tell nearly nothing"
    # A cluster of no weight is none.
    some, weight = np.array([1.0, 0, 1, 0, 0, 1]), np.array([1.0, 1, 1, 1, 1, 0])
    without = intervals.share_bounds(some[:5], weight[:5])
    assert intervals.share_bounds(some * weight, weight) == without
    # With the fewest carriers that count as many, sums in another order give the same bounds.
    in_order, reverse = ((np.arange(66)[::step] < 36) * 1.0 for step in (1, -1))
    found = [intervals.share_bounds(part, np.ones(66)) for part in (in_order, reverse)]
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    # Without an interval, or without variation, there is nothing to replace.
    none, nobody = intervals.Interval.point(0.3), intervals.Interval(0.0, 0.0, 0.0)
    assert intervals.share_interval(none, np.array([0.3]), 4, 4) is none
    assert intervals.share_interval(nobody, np.zeros(50), 30, 30) is nobody
    # A corrected rate of 0 whose resamples vary has its bound at 0.
    varies = np.abs(np.random.default_rng(0).normal(0, 0.02, 500))
    found = intervals.share_interval(intervals.Interval(0.0, 0.0, 0.04), varies, 50, 50)
    assert found.low == 0.0
    assert 0.02 < found.high < 0.2
    for share in (1e-9, 1 - 1e-9):  # finite at the very ends
        low, high = intervals.bounds_from_variance(share, 0.01, 1e12, 20)
        assert 0.0 <= low <= high <= 1.0


def test_the_reach_of_a_correction_adds_what_nobody_labelled_in_squares():
    rng = np.random.default_rng(2)
    cases, sizes = (each * 1.0 for each in lumpy("few carry all", 40, rng))
    ones = np.ones(40)
    alone = intervals.powered_reach(cases, 0.0 * cases, sizes, ones, 0.0)
    share = cases.sum() / sizes.sum()
    expected = intervals.ratio_bounds(cases, sizes, ones)
    assert (share - alone.below, share + alone.above) == pytest.approx(expected)
    more = intervals.powered_reach(cases, 0.0 * cases, sizes, ones, 0.02)
    assert more.above == pytest.approx(math.hypot(alone.above, 1.959964 * 0.02))
    # A grader that sees nearly all of the cases leaves less to be unsure of.
    graded = 0.8 * rng.binomial(cases.astype(int), 0.9)
    seen = intervals.powered_reach(cases, graded, sizes, ones, 0.0)
    assert seen.above < alone.above
    assert seen.carriers == alone.carriers == intervals.effective_carriers(cases, sizes, ones)


PAIRS, OTHERS = 60, 80
PEOPLE, GRADERS = ("ann", "ben", "cid"), ("bot", "bot2")


def everybody_agrees(*, alike, probabilities):
    """60 pairs that all label and 80 that graders do; all say "y" always or every other time."""
    pair, subject = np.divmod(np.arange(3 * (PAIRS + OTHERS)), 3)
    columns = {"cluster_id": pair, "subject": subject, "topic": pair % 2, "group": pair % 3}
    units = pd.DataFrame(columns).astype(str)
    yes = alike | ((subject + pair) % 2 == 1)
    label = np.where(yes, "y", "n")
    by_people = np.where(pair < PAIRS, label, "-")
    labels = dict.fromkeys(PEOPLE, by_people) | dict.fromkeys(GRADERS, label)
    stated = dict.fromkeys(GRADERS, np.where(yes, 0.9, 0.1)) if probabilities else None
    units.insert(0, "unit_id", [f"u{n:05d}" for n in range(len(units))])
    return ratings_of(labels, GRADERS, stated), units


def results_of(ratings, units):
    scale = Scale("", ("y", "n"), affirmative=frozenset("y"))
    asked = {"slices": ["topic"], "groups": ["group"]}
    facts = StudyFacts(strata=("topic",))
    return analyse(ratings, units, [scale], resamples=50, facts=facts, **asked).results


@pytest.mark.slow
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("alike", [False, True])
def test_no_interval_is_a_single_number(alike, probabilities):
    ratings, units = everybody_agrees(alike=alike, probabilities=probabilities)
    results = results_of(ratings, units)
    assert results["low"].notna().sum() > 300
    single = results[results["high"] - results["low"] < 1e-9]
    # The kappa of a baseline is 0 by construction; that no resample moves a cut is an answer.
    constant = single["rater_b"].isin(BASELINES) & (single["estimate"] == 0)
    kappas = single["statistic"].str.contains("kappa")
    left = single[~(constant & kappas) & (single["statistic"] != "threshold")]
    assert left["statistic"].tolist() == []
    inside = results.dropna(subset=["low"])
    assert (inside["low"] <= inside["estimate"] + 1e-9).all()
    assert (inside["high"] >= inside["estimate"] - 1e-9).all()


@pytest.mark.journey
def test_nobody_affirmed_anything_is_no_proof_that_nobody_would():
    """By subject 60 pairs are labelled and 140 graded: people's sample says how sure that is."""
    ratings, units = everybody_agrees(alike=True, probabilities=False)
    ratings["label"] = "n"
    results = results_of(ratings, units)
    for statistic, clusters in (("rate_human", PAIRS), ("rate_raw", 140), ("rate_ppi", PAIRS)):
        rows = rows_of(results, statistic, subset="all|binary")
        assert len(rows) > 0
        assert (rows["estimate"] == 0).all()
        assert (rows["low"] == 0).all()
        upper = 1 - 0.025 ** (1 / clusters)
        assert rows["high"].to_numpy() == pytest.approx(np.full(len(rows), upper))


def test_weights_are_what_repeating_the_clusters_gives(rng):
    """Three raters with gaps on 60 units in 12 clusters of unequal size."""
    truth = rng.integers(0, 4, 60)
    clusters = np.sort(rng.integers(0, 12, 60))
    clusters[:12] = np.arange(12)
    labels = {name: noisy(rng, truth, 4, 0.6, missing=0.15) for name in "abc"}
    scale = Scale("", ("1", "2", "3", "4"), "ordinal")
    coded = matrix_of(labels, scale, clusters=[f"c{k:02d}" for k in clusters]).on_categories()
    resamples = Resamples(np.ones(12), 25, np.random.default_rng(3))
    tables = pair_tables(coded, [(0, 1)], resamples)
    kappas = measurement_of(coded).statistics()["weighted_kappa_quadratic"](tables)[:, 0]
    panel = group_panel(label_counts(coded, [0, 1, 2]), coded, resamples)
    weights = np.vstack(list(resamples.weighted_blocks()))
    assert weights.shape == (26, 12)
    for row, weight in enumerate(weights):
        drawn = np.repeat(np.arange(12), weight)
        units = np.concatenate([np.flatnonzero(coded.clusters == k) for k in drawn])
        codes = coded.codes[units].astype(float)
        codes[codes < 0] = np.nan
        both = ~np.isnan(codes[:, :2]).any(axis=1)
        four = [0, 1, 2, 3]
        kappa = metrics.cohen_kappa_score(*codes[both, :2].T, labels=four, weights="quadratic")
        assert kappas[row] == pytest.approx(kappa)
        alpha = krippendorff.alpha(codes.T, level_of_measurement="ordinal", value_domain=four)
        assert panel["krippendorff_alpha_ordinal"][row] == pytest.approx(alpha)


def test_the_ceiling_is_what_repeating_the_clusters_gives(rng):
    truth = rng.integers(0, 3, 120)
    scale = Scale("", ("1", "2", "3"))
    labels = {name: noisy(rng, truth, 3, 0.7) for name in ("a", "b", "g")}
    clusters = [f"c{n // 4:02d}" for n in range(120)]
    coded = matrix_of(labels, scale, clusters=clusters).on_categories()
    resamples = Resamples(np.ones(30), 20, np.random.default_rng(5))
    means, everywhere = KappaMeans(coded, resamples), np.ones(120, dtype=bool)
    with_grader = means.with_rater([0, 1], 2, everywhere)["cohen_kappa"].values
    difference = with_grader - means.among([0, 1])["cohen_kappa"].values
    for row, weight in enumerate(np.vstack(list(resamples.weighted_blocks()))):
        drawn = np.repeat(np.arange(30), weight)
        codes = np.concatenate([coded.codes[coded.clusters == k] for k in drawn])
        kappa = {
            (i, j): metrics.cohen_kappa_score(codes[:, i], codes[:, j], labels=[0, 1, 2])
            for i, j in ((0, 2), (1, 2), (0, 1))
        }
        assert difference[row] == pytest.approx((kappa[0, 2] + kappa[1, 2]) / 2 - kappa[0, 1])


def test_the_chunks_of_a_computation_change_nothing(monkeypatch):
    features = np.random.default_rng(1).integers(0, 9, (700, 12))
    frequency = np.random.default_rng(3).integers(1, 4, 700)

    def everything():
        resamples = Resamples(frequency, 520, np.random.default_rng(9), jackknife=True)
        return resamples.to_rows(features), np.vstack(list(resamples.weighted_blocks()))

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
        drawn = np.vstack(list(resamples.weighted_blocks()))[1:].astype(float)
        share = resamples.frequency / total
        assert (drawn.sum(axis=1) == total).all()
        assert drawn.mean(axis=0) == pytest.approx(total * share, rel=0.05)
        assert drawn.var(axis=0) == pytest.approx(total * share * (1 - share), rel=0.1)


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
    entries = np.ones(n * size, np.int64), (np.repeat(np.arange(n), size), affirmed)
    cells = scipy.sparse.csr_array(entries)
    keys = np.arange(n, dtype=np.uint64)
    groups = resamples_of_patterns(cells, keys, Bootstrap(1000, 2).draw, 2, many=n - 1)
    assert groups.is_pooled
    drawn = groups.to_rows(np.array([[0], [1]]))[:, 0] / groups.to_rows(np.ones((2, 1)))[:, 0]
    truth = affirmed.reshape(n, size).mean(axis=1).std(ddof=1) / np.sqrt(n)
    assert drawn[1:].std() == pytest.approx(truth, rel=0.1)  # 500 groups: 3.2%, 1,000 draws: 2.2%
    found = groups.interval(drawn, n)
    assert found.note == "interval from 500 random groups of the 20,000 clusters"
    again = resamples_of_patterns(cells, keys, Bootstrap(1000, 2).draw, 3, many=n - 1)
    assert (again._by_group != groups._by_group).nnz  # another seed, other groups


@pytest.mark.slow
@pytest.mark.parametrize(("name", "clusters"), [("few carry all", 40), ("logit-normal", 100)])
def test_the_truth_seldom_lies_outside_in_lumpy_clusters(name, clusters):
    """An interval of the estimate's standard error lies below it in far more studies."""
    rng, truth, runs = np.random.default_rng(5), lumpy_rate(name), 300
    missed, plain = np.zeros(2), 0
    for _ in range(runs):
        cases, sizes = (each * 1.0 for each in lumpy(name, clusters, rng))
        share, low, high = intervals.share_bounds(cases, sizes)
        missed += low > truth, high < truth
        error = math.sqrt(((cases - share * sizes) ** 2).sum()) / sizes.sum()
        plain += share + 2.0 * error < truth
    assert (missed <= TAIL * runs).all()
    assert plain > TAIL * runs
