"""Bounds at the null: against a second implementation, published intervals, and hard samples.

The second implementation is written from the method's description alone, in plain loops over the 16
patterns that three people and a grader make of two categories, with derivatives by differences.
"""

import math
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from evenhand.analysis import Scale
from evenhand.analysis.bootstrap import bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.verdicts.comparison import Comparator, grader_views
from tests.analysis.make import matrix_of
from tests.peers import proportion, stats

PATTERNS = list(product((0, 1), repeat=4))
"""Labels of three people, and last of the grader."""
PEOPLE, GRADER = (0, 1, 2), 3
ALPHA = 0.02
DISTANCE = 1.0 - np.eye(2)


def plain_kappa(weights, a, b):
    """Cohen's kappa of two of the four, NaN where both always say the same one thing."""
    size = sum(weights.values())
    agree = sum(w for p, w in weights.items() if p[a] == p[b]) / size
    first = sum(w for p, w in weights.items() if p[a]) / size
    second = sum(w for p, w in weights.items() if p[b]) / size
    by_chance = first * second + (1 - first) * (1 - second)
    return (agree - by_chance) / (1 - by_chance) if 1 - by_chance > 1e-12 else math.nan


def plain_with(weights):
    return sum(plain_kappa(weights, person, GRADER) for person in PEOPLE) / 3


def plain_among(weights):
    return sum(plain_kappa(weights, a, b) for a, b in combinations(PEOPLE, 2)) / 3


def without_each(counts, statistic):
    """Each pattern's influence: what the statistic loses without one such unit, times the rest."""
    n = sum(counts.values())
    less = {p: statistic({**counts, p: counts[p] - 1}) for p in counts if counts[p] > 0}
    mean = sum(counts[p] * less[p] for p in less) / n
    return {p: (n - 1) * (mean - less[p]) for p in less}


class PlainNull:
    """Weights of the patterns that move from the data to where a value would be true."""

    def __init__(self, counts, kept=1.0):
        self.counts = {p: c for p, c in counts.items() if c > 0}
        self.n = sum(self.counts.values())

        def tested(weights):  # the margin is a share of annotators' kappa, or none
            return plain_with(weights) - kept * plain_among(weights)

        people = without_each(self.counts, plain_among)
        # What people reach is no doing of the grader, and counts as far as it is linear.
        self.people = {p[:3]: -kept * (plain_among(self.counts) + x) for p, x in people.items()}
        self.estimate = tested(self.counts)
        weights = Counter(self.counts)
        for seen, count in self.counts.items():
            for label in (0, 1):  # half a unit in all, shared by every label not seen
                weights[(*seen[:3], label)] += 0.5 * count / (2 * self.n)
        size = sum(weights.values())
        self.weights = {p: w / size for p, w in weights.items()}
        jackknife = without_each(self.counts, tested)
        mean = sum(self.counts[p] * x for p, x in jackknife.items()) / self.n
        squares = sum(self.counts[p] * (x - mean) ** 2 for p, x in jackknife.items())
        own = self.influence({p: c / self.n for p, c in self.counts.items()})
        spread = math.sqrt(sum(c / self.n * own[p] ** 2 for p, c in self.counts.items()))
        self.stretch = max(math.sqrt(squares / (self.n - 1)) / spread, 1.0) if spread > 1e-9 else 1

    def value(self, weights):
        size = sum(weights.values())
        fixed = sum(w * self.people[p[:3]] for p, w in weights.items()) / size
        return plain_with(weights) + fixed

    def influence(self, weights, h=1e-6):
        """By differences both ways, of every pattern whose weight may grow."""
        found = {}
        for p in [(*each, label) for each in self.people for label in (0, 1)]:
            ends = []
            for step in (h, -h):
                moved = {q: (1 - step) * w for q, w in weights.items()}
                moved[p] = moved.get(p, 0.0) + step
                ends.append(self.value(moved))
            found[p] = (ends[0] - ends[1]) / (2 * h)
        return found

    def error_and_quantile(self, alpha):
        x = self.influence(self.weights)
        weights = self.weights.items()
        second, third, fourth = (sum(w * x[p] ** k for p, w in weights) for k in (2, 3, 4))
        second = max(second, 1e-12)
        skew, kurtosis = third / second**1.5, fourth / second**2
        most = max(self.n - 1, 1)
        freedom = 2 * self.n / max(kurtosis - 1 - skew**2, 1e-9)
        freedom = min(max(freedom, min(4, most)), most)
        alike = (1 + skew**2) / max(kurtosis, 1)
        skew = max(skew / math.sqrt(self.n), -1.5)
        z = stats.norm.isf(alpha)
        bent = z + skew * (z**2 - 1) / 6 + 0.15 * max(-skew, 0) * alike**2
        return math.sqrt(second / self.n) * self.stretch, stats.t.isf(alpha, freedom) / z * bent

    def move(self, distance):
        x = self.influence(self.weights)
        variance = max(sum(w * x[p] ** 2 for p, w in self.weights.items()), 1e-12)
        moved = {p: math.exp(min(max(distance / variance * x[p], -3), 3)) for p in self.weights}
        grown = {p: w * moved[p] for p, w in self.weights.items()}
        size = sum(grown.values())
        self.weights = {p: w / size for p, w in grown.items()}


def plain_lower(counts, alpha, step=0.25, steps=80, kept=1.0):
    null = PlainNull(counts, kept)
    if null.error_and_quantile(alpha)[0] < 1e-4:  # a saddle, from which no step leads
        return min(null.value(null.weights), null.estimate) - 2.0
    value_before, beyond_before = null.estimate, -2.0
    for _ in range(steps):
        value = null.value(null.weights)
        error, quantile = null.error_and_quantile(alpha)
        beyond = (null.estimate - value) / max(error, 1e-12) - quantile
        if beyond > 0:
            share = beyond_before / (beyond_before - beyond)
            return value_before + share * (value - value_before)
        value_before, beyond_before = value, beyond
        null.move(-step * error)
    end = min(null.value(null.weights), null.estimate)
    return end if null.error_and_quantile(alpha)[0] < 1e-4 else end - 2.0


def grouped(n):
    """All studies of n units, people taken as alike: who of them says yes goes round."""
    kinds = [(yes, label) for yes in range(4) for label in (0, 1)]
    for bars in combinations(range(n + 7), 7):
        ends = (-1, *bars, n + 7)
        counts = Counter()
        for (yes, label), low, high in zip(kinds, ends[:-1], ends[1:], strict=True):
            for unit in range(high - low - 1):
                said = [1] * yes + [0] * (3 - yes)
                turn = unit % 3
                counts[(*said[turn:], *said[:turn], label)] += 1
        yield counts


def is_defined(counts):
    """Whether all six kappas are, in the data and without any unit."""
    seen = {p: c for p, c in counts.items() if c > 0}
    return sum(seen.values()) > 1 and all(
        math.isfinite(plain_with(each) - plain_among(each))
        for each in (seen, *({**seen, p: seen[p] - 1} for p in seen if sum(seen.values()) > 1))
        if sum(each.values()) > 0
    )


def statistic_of(studies):
    """The product's statistic for several studies of one size at once."""
    tables = np.stack([_table(pattern) for pattern in PATTERNS])
    nulls = [PlainNull(each) for each in studies]
    base = np.array([[each.get(p, 0) for p in PATTERNS] for each in studies], dtype=float)
    n = base.sum(axis=1)
    by_people = base.reshape(-1, 8, 2).sum(axis=2).repeat(2, axis=1)
    linear = np.array([[each.people.get(p[:3], 0.0) for p in PATTERNS] for each in nulls])
    estimate, stretch = np.array([(each.estimate, each.stretch) for each in nulls]).T
    base = base + 0.25 * by_people / n[:, None]
    statistic = bounds.Kappas(bounds.table_sums(tables, DISTANCE), DISTANCE, linear, base)
    return statistic, bounds.Sample(estimate, float(n[0]), float(n[0]), stretch)


def compared(counts):
    """The product's whole way, from labels on, each unit a cluster of several alike."""
    n = int(sum(counts.values()))
    copies = -(-30 // n)
    units = [p for p, count in sorted(counts.items()) for _ in range(int(count) * copies)]
    raters = zip(("h1", "h2", "h3", "g"), np.array(["n", "y"])[np.array(units).T], strict=True)
    clusters = [f"u{at // copies:03}" for at in range(len(units))]
    labels = matrix_of(dict(raters), Scale("R", ("n", "y")), clusters=clusters)
    left_out = Resamples(np.ones(n), 0, np.random.default_rng(0), jackknife=True)
    (reading,) = grader_views(labels)
    found = Comparator(left_out, 0.1).compare(reading)
    assert found is not None
    return found


def drawn(seed, studies, low, high):
    """Studies (synthetic) of which all kappas are defined, of every quality."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < studies:
        yes = rng.random(rng.integers(low, high + 1)) < rng.uniform(0.2, 0.8)
        right = (*rng.uniform(0.7, 1.0, 3), rng.uniform(0.5, 1.0))
        said = np.array([np.where(rng.random(len(yes)) < each, yes, ~yes) for each in right])
        counts = Counter(map(tuple, said.T.astype(int).tolist()))
        if is_defined(counts):
            found.append(counts)
    return found


@pytest.mark.parametrize(
    "size", [2, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 7, 9, 10, 11)), 6, 12]
)
def test_a_second_implementation_agrees(size):
    """All studies of up to four units, and some of each size up to twelve."""
    studies = grouped(size) if size <= 4 else drawn(size, 20, size, size)
    known = [each for each in studies if is_defined(each)]
    if not known:
        return
    found = bounds.lower_bound(*statistic_of(known), ALPHA)
    plainly = np.array([plain_lower(each, ALPHA) for each in known])
    nothing = -1.5  # beyond what can be, nothing is ruled out, however far the bound went
    assert np.maximum(found, nothing) == pytest.approx(np.maximum(plainly, nothing), abs=2e-4)


@pytest.mark.slow
def test_the_whole_way_from_labels_agrees():
    for counts in drawn(2, 12, 30, 60):
        product = compared(counts)
        estimate = float(product.tested_bounds.sample.estimate)
        low = estimate - product.tested_bounds.reach(ALPHA)[0]
        assert not product.is_pooled
        kept = 1.0 - product.margin_share
        tested = plain_with(counts) - kept * plain_among(counts)
        assert estimate == pytest.approx(tested, abs=1e-9)
        assert low == pytest.approx(plain_lower(counts, ALPHA, kept=kept), abs=2e-4)


def one_table(right, wrong):
    """A share that is right, as kappa of balanced labels: twice the share, minus 1."""
    n = right + wrong
    tables = np.zeros((4, 1, 2, 2))
    for at, cell in enumerate([(0, 0), (1, 1), (0, 1), (1, 0)]):
        tables[at, 0][cell] = 1.0
    base = np.array([right / 2, right / 2, wrong / 2, wrong / 2]) + 0.125
    kappas = bounds.Kappas(bounds.table_sums(tables, DISTANCE), DISTANCE, np.zeros(4), base)
    return kappas, bounds.Sample(np.array(2 * right / n - 1), n, n, np.array(1.0))


@pytest.mark.parametrize("n", [30, 60, 100, 250, 1000])
@pytest.mark.parametrize("share_wrong", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_one_kind_of_error_has_wilsons_bounds(n, share_wrong):
    """A share in disguise: between Wilson's score interval and Clopper & Pearson's exact one, but
    for 0.55 of a unit, the part of whole numbers that power can spare.
    """
    wrong = round(n * share_wrong)
    table = one_table(n - wrong, wrong)
    low, high = ((1 + float(bound)) / 2 for bound in bounds.both_bounds(*table, 0.025))
    wilson = proportion.proportion_confint(n - wrong, n, 0.05, "wilson")
    exact = proportion.proportion_confint(n - wrong, n, 0.05, "beta")
    near = 0.55 / n
    assert min(wilson[0], exact[0]) - near <= low <= max(wilson[0], exact[0]) + near
    assert min(wilson[1], exact[1]) - near <= high <= max(wilson[1], exact[1]) + near


def test_the_chance_is_by_the_level_of_the_bound_less_what_would_be_too_sure():
    for counts in drawn(4, 8, 30, 80):
        statistic, sample = statistic_of([counts])
        for alpha in (0.02, 0.1, 0.3):
            bound = bounds.lower_bound(statistic, sample, alpha)
            if bound[0] > -1.5:
                fitting = stats.norm.cdf(stats.norm.isf(alpha) - 0.2)
                chance = bounds.chance_above(statistic, sample, bound)
                assert chance == pytest.approx(fitting, abs=0.02)


def _table(pattern):
    """A unit in the tables of each person and the grader."""
    table = np.zeros((3, 2, 2))
    for person in PEOPLE:
        table[person, pattern[person], pattern[GRADER]] = 1.0
    return table


@pytest.mark.parametrize("n", [2, 30])
@pytest.mark.parametrize(
    "said",
    [
        pytest.param([(1, 1, 1, 1)], id="one category"),
        pytest.param([(1, 1, 1, 1), (0, 0, 0, 0)], id="no error"),
        pytest.param([(1, 1, 1, 0), (0, 0, 0, 1)], id="all errors"),
        pytest.param([(1, 0, 1, 1), (0, 0, 0, 0)], id="one person constant"),
        pytest.param([(1, 1, 1, 1), (0, 0, 0, 1)], id="the grader constant"),
        pytest.param([(1, 0, 0, 1), (0, 0, 0, 0)], id="two annotators constant"),
    ],
)
def test_hard_samples_end_in_a_bound_or_none(said, n):
    """Nothing raises or warns, and no bound is infinite or on the wrong side."""
    found = compared(Counter(said[unit % len(said)] for unit in range(n)))
    for tested in (found.tested_bounds, found.kappa_bounds):
        below, above = tested.reach(ALPHA)
        assert math.isnan(below) or (math.isfinite(below) and below >= -1e-9)
        assert math.isnan(above) or (math.isfinite(above) and above >= -1e-9)
        assert not math.isinf(tested.chance_above(-0.1))


def test_where_nobody_erred_an_error_may_still_come():
    """On thirty units, also with a slip of a person: about 3 in 30 may go unseen."""
    alike = Counter({(1, 1, 1, 1): 15, (0, 0, 0, 0): 15})
    slip = Counter({(1, 1, 1, 1): 15, (0, 0, 0, 0): 14, (1, 0, 0, 0): 1})
    for counts in (alike, slip):
        found = compared(counts)
        below, _ = found.tested_bounds.reach(ALPHA)
        assert found.difference - below < -0.15


def test_a_skewed_mean_is_missed_as_often_as_stated():
    """A share of .1 among 60: the plain t bound misses far more often than one side allows."""
    drawn = (np.random.default_rng(2).random((1500, 60)) < 0.9).astype(float)
    varying = drawn[drawn.std(axis=1) > 0]
    lower = [each.mean() - bounds.reach(each - each.mean()) for each in varying]
    plain = varying.mean(axis=1) - 2.0 * varying.std(axis=1, ddof=1) / math.sqrt(60)
    assert np.mean(np.array(lower) > 0.9) <= 0.03
    assert np.mean(plain > 0.9) > 0.05


def test_the_simultaneous_level_is_that_of_the_joint_normal():
    rng = np.random.default_rng(3)
    correlation = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.4], [0.2, 0.4, 1.0]])
    contributions = rng.multivariate_normal(np.zeros(3), correlation, 5000)
    observed = np.corrcoef(contributions, rowvar=False)
    level = bounds.simultaneous_level(contributions, 0.02)
    joint = stats.multivariate_normal(np.zeros(3), observed, seed=1)
    assert 1.0 - joint.cdf(np.full(3, stats.norm.isf(level))) == pytest.approx(0.02, rel=0.05)
    assert bounds.simultaneous_level(contributions[:, :1], 0.02) == 0.02
    alone = rng.normal(size=(5000, 6))
    assert 0.02 / 6 <= bounds.simultaneous_level(alone, 0.02) == pytest.approx(0.02 / 6, rel=0.06)


def test_people_who_differ_widen_the_bound():
    these = bounds.reach(np.random.default_rng(4).normal(size=200))
    assert bounds.reach_over_people(these, 0.0, 3, 200) == pytest.approx(these)
    many, few = (bounds.reach_over_people(these, 0.005, people, 200) for people in (30, 3))
    assert these < many < few
    # The chance above such a bound, from that for these people.
    for alpha in (0.01, 0.2, 0.45):
        these = 0.05 * stats.t.isf(alpha, 199)
        reach = float(bounds.reach_over_people(these, 0.005, 3, 200, alpha))
        chance = stats.t.cdf(reach / 0.05, 199)
        assert bounds.chance_over_people(chance, reach, 0.005, 3, 200) == pytest.approx(1 - alpha)
        assert bounds.chance_over_people(1 - chance, -reach, 0.005, 3, 200) == pytest.approx(alpha)
