"""Comparisons of raters: does a grader agree with humans as well as they do with each other (the
human ceiling), with two baselines that any grader has to beat (always the humans' most frequent
category, and random labels at their prevalence); which grader is closer; which rater more lenient.

Also the true positive and true negative rates of graders, against the majority or one reference.
Of the units whose majority is affirmative (other), or that the one rater who is declared the
reference affirms, the share that the grader calls so. Ties are left out. The interval is that of
every share (`analysis.bootstrap.intervals`).

The alternative annotator test asks whether a grader would be as good a choice as one of the humans
(Calderon, Reichart & Dror 2025, "The alternative annotator test for LLM-as-a-judge"). A pass is not
non-inferiority, and a constant can pass: no verdict rests on it, and the baselines are reported
with it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Any, TypedDict

import numpy as np
from scipy.special import stdtr

from evenhand.analysis.agreement.coefficients import (
    category_shares,
    is_tied,
    label_counts,
    majority_codes,
)
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    MIN_SHARED_UNITS,
    KappaMeans,
    MeanOverTables,
    Overlap,
    PairStatistic,
    compared_units,
    deciding_kappa,
    expected_cells,
    listed_raters,
    means_of,
    means_with,
    pair_statistics,
)
from evenhand.analysis.bootstrap.intervals import Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples, count_labels, ratio
from evenhand.analysis.bootstrap.significance import (
    benjamini_yekutieli,
    clustered_homogeneity,
    holm,
    sign_flip,
)
from evenhand.analysis.labels.encoding import (
    cluster_codes,
    coded_raters,
    encode_column,
    encode_labels,
    same_length,
)
from evenhand.analysis.labels.matrix import BINARY_ALL, Coded
from evenhand.analysis.labels.scale import Level, category_values
from evenhand.analysis.results import BASELINES, ResultRows
from evenhand.analysis.statistics import Remark, entry_for, join_notes
from evenhand.analysis.types import Array, Codes, Column, Integers, Mask
from evenhand.analysis.writer import About, RubricView, View, Writer
from evenhand.errors import InputError

CEILING = "human_ceiling_difference"
TOO_FEW_HUMANS = Remark("too_few_shared_by_humans", (MIN_SHARED_UNITS,))
TOO_FEW_UNITS = Remark("too_few_shared_by_grader", (MIN_SHARED_UNITS,))


def add_ceiling_rows(view: View) -> None:
    """Add `human_ceiling_difference` of every grader. The difference is the grader's kappa with
    humans minus the humans' kappa with one another, both on the units with labels of the grader and
    two humans, with the same weights (`analysis.agreement.pairs`) and in the same resamples.
    """
    coded, kappas = view.coded, view.once(KappaMeans)
    for grader in coded.members("model"):
        if coded.people_beside(grader):
            compared = with_and_among_humans(kappas, coded, grader)
            _add_difference(view, coded.raters[grader], *compared)


def add_baseline_ceiling_rows(view: View) -> None:
    """Add `human_ceiling_difference` of the baselines, on all units that two humans labelled."""
    coded, humans, kappa = view.coded, view.coded.members("human"), deciding_kappa(view.coded)
    if not humans:
        return
    units = np.asarray(coded.labelled[:, list(humans)].sum(axis=1) >= 2)
    enough = view.count(units)[0] >= MIN_SHARED_UNITS
    among = view.once(KappaMeans).among(humans)[kappa] if enough else None
    statistics = {kappa: pair_statistics(coded)[kappa]}
    for name, share in view.once(baselines).items():
        mean = _baseline_means(view, units, share, statistics)[kappa] if enough else None
        _add_difference(view, name, units, mean, among)


def add_baseline_rows(view: View) -> None:
    """Add observed agreement and kappa of the two baselines with the humans. A baseline's labels do
    not depend on the unit, so that its table with a human is the product of the human's counts and
    the baseline's shares: expected values, with no random labels drawn.
    """
    coded, humans = view.coded, view.coded.members("human")
    number = coded.labelled[:, list(humans)].sum(axis=1)
    twice = np.asarray(number >= 2)
    units = twice if view.count(twice)[0] >= MIN_SHARED_UNITS else np.asarray(number >= 1)
    panel = pair_statistics(coded)
    wanted = dict.fromkeys(["observed_agreement", "cohen_kappa", deciding_kappa(coded)])
    statistics = {name: panel[name] for name in wanted if name in panel}
    for name, share in view.once(baselines).items():
        means = _baseline_means(view, units, share, statistics)
        people = int(coded.labelled[units][:, list(humans)].any(axis=0).sum())
        over = "1 human" if people == 1 else f"mean over {people} humans"
        shares = zip(coded.categories, share, strict=True)
        if share.max() == 1.0:
            given = f"always {coded.categories[int(share.argmax())]}"
        elif coded.is_number:
            given = "expected value where numbers are drawn from annotators'"
        else:
            drawn = ", ".join(f"{category} {part:.3f}" for category, part in shares)
            given = f"expected value at {drawn}"
        about = join_notes(given, over)
        for statistic, mean in means.items():
            constant = name == BASELINES[0] and entry_for(statistic).own_margins
            note = join_notes(Remark("constant_rater") if constant else "", about)
            of = About(a="humans", b=name, note=note)
            view.add(statistic, mean.values, units, undefined=mean.undefined, **of)


def with_and_among_humans(
    kappas: KappaMeans, coded: Coded, grader: int, least: int = 2
) -> tuple[Mask, MeanOverTables | None, MeanOverTables | None]:
    """Return the compared units (units,) and both sides of the ceiling difference of a grader.

    `coded` are the labels of `kappas`, but perhaps for those of this grader, on the same units: the
    humans' side is taken from `kappas`, which may have it already. The grader's side is None on
    fewer than 30 units, the humans' side too where few units have two humans' labels, or with
    `least` = 1.
    """
    resamples, kappa = kappas.resamples, deciding_kappa(coded)
    people = coded.people_beside(grader)
    units, both = compared_units(coded, resamples, people, grader, least)
    if resamples.count(coded.clusters, units)[0] < MIN_SHARED_UNITS:
        return units, None, None
    overlap = Overlap.of(coded, resamples, people, units)
    statistics = {kappa: pair_statistics(coded)[kappa]}
    mean = means_with(overlap, coded.codes[:, grader], resamples, statistics)[kappa]
    return units, mean, kappas.among(people, units)[kappa] if both else None


def baselines(coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """Return the baselines' shares of the categories (q,), computed from the humans' labels. The
    constant one says what people say most often, of numbers the one nearest to their mean.
    """
    humans = coded.members("human")
    if not coded.labelled_by_any(humans).any():
        return {}
    prevalence = category_shares(label_counts(coded, humans), coded, resamples)[0]
    constant = np.zeros(coded.q)
    usual = np.abs(np.asarray(coded.values) - prevalence @ coded.values).argmin()
    constant[usual if coded.is_number else prevalence.argmax()] = 1.0
    return dict(zip(BASELINES, (constant, prevalence), strict=True))


def _baseline_means(
    view: View, units: Mask, share: Array, statistics: dict[str, PairStatistic]
) -> dict[str, MeanOverTables]:
    """Means over the humans of statistics of expected tables with a baseline, as `means_with`."""
    coded, resamples = view.coded, view.resamples
    overlap = Overlap.of(coded, resamples, coded.members("human"), units)
    constant = np.zeros(len(units), dtype=np.intp)
    chunks = overlap.with_rater(constant, len(resamples))
    expected = (expected_cells(coded, features, share) for features in chunks)
    return means_of(overlap, expected, resamples, statistics)


def _add_difference(
    view: View, grader: str, units: Mask, mean: MeanOverTables | None, people: MeanOverTables | None
) -> None:
    counts, coded = view.count(units), view.coded
    if mean is None or people is None:
        few = Interval.undefined(TOO_FEW_UNITS if mean is None else TOO_FEW_HUMANS)
        view.add(CEILING, few, counts, a="humans", b=grader)
        return
    kind = "unweighted" if coded.level == "nominal" else coded.ordered
    text = "; ".join(
        ", ".join(filter(None, (f"{whom} humans {kappa.values[0]:.4g}", kappa.over)))
        for whom, kappa in (("with", mean), ("between", people))
    )
    note = join_notes(Remark("pooled_pairs") if mean.pooled else "", f"{kind} kappa: {text}")
    apart, lost = mean.values - people.values, max(mean.undefined, people.undefined)
    view.add(CEILING, apart, counts, a="humans", b=grader, note=note, undefined=lost)


@dataclass(frozen=True, kw_only=True)
class CeilingDifference(Interval):
    """A grader's mean kappa with humans minus the humans' among themselves, with its 95% interval:
    where `low` lies above -margin, the grader is not inferior to humans by that margin.

    `note` explains any NaN, and names the kappas that the difference is of.
    """

    n_units: int
    n_clusters: int


def human_ceiling(
    humans: Any,
    grader: Any,
    *,
    categories: Column[Hashable],
    level: Level = "nominal",
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> CeilingDifference:
    """Estimate `human_ceiling_difference` from a grader's and humans' plain labels.

    The grader's are (units,), the humans' (units, raters).

    Unweighted kappa on the nominal level, linear weights on the others; each unit with labels of
    the grader and two humans counts once (`analysis.agreement.pairs`). The interval resamples
    `clusters` (units,), or else units, jointly for all raters.

    >>> humans = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]] * 10
    >>> found = human_ceiling(humans, [row[0] for row in humans], categories="ab")
    >>> round(found.estimate, 3), found.low > -0.1
    (0.25, True)
    """
    people, grades = encode_labels(humans, categories), encode_column(grader, categories)
    same_length(people, grades)
    coded = coded_raters(people, grades[:, None], categories, level)
    coded = replace(coded, clusters=cluster_codes(clusters, len(grades)))
    resamples = (bootstrap or Bootstrap()).draw(np.ones(int(coded.clusters.max()) + 1))
    rows = ResultRows("")
    rows.know_chance(coded, resamples)
    view = View.of(rows, coded, resamples)
    view.known[KappaMeans] = KappaMeans(coded, resamples, [deciding_kappa(coded)])
    add_ceiling_rows(view)
    row = rows.get(CEILING, "humans", coded.raters[-1])
    if row is None:
        raise InputError("there is no human to compare with; give labels (units, raters)")
    fields = row["estimate"], row["low"], row["high"], row["remarks"]
    return CeilingDifference(*fields, n_units=row["n_units"], n_clusters=row["n_clusters"])


def add_grader_comparison_rows(view: View) -> None:
    """Add `kappa_difference` and `mcnemar_p` of every two graders. Above 12 graders, of the best
    one and every other. The difference is the first's mean kappa with humans minus the second's, on
    the units that both labelled and in the same resamples, so that it is paired.
    """
    coded, resamples, kappas = view.coded, view.resamples, view.once(KappaMeans)
    graders = coded.members("model")
    pairs, name = list(combinations(graders, 2)), deciding_kappa(coded)

    def kappa(grader: int) -> float:
        row = view.rows.get(name, "humans", coded.raters[grader], coded.subset)
        return -math.inf if row is None or math.isnan(row["estimate"]) else row["estimate"]

    if len(graders) > MAX_LISTED_RATERS:
        best = max(graders, key=kappa)
        pairs = [(min(best, g), max(best, g)) for g in graders if g != best]
    humans = coded.members("human")
    majority = majority_codes(label_counts(coded, humans))
    for first, second in pairs:
        within = coded.labelled[:, first] & coded.labelled[:, second]
        units = within & coded.labelled_by_any(humans)
        if view.count(units)[0] < MIN_SHARED_UNITS:
            continue
        one, other = (kappas.with_rater(humans, rater, units)[name] for rater in (first, second))
        apart, lost = one.values - other.values, max(one.undefined, other.undefined)
        names = About(a=coded.raters[first], b=coded.raters[second])
        view.add("kappa_difference", apart, units, undefined=lost, **names)
        if coded.is_number:
            continue
        # Do the two equally often match the humans' majority? Ties take no part; signs are flipped
        # for whole clusters.
        judged = within & (majority >= 0)
        right = coded.codes[:, [first, second]] == majority[:, None]
        alone = [judged & right[:, a] & ~right[:, 1 - a] for a in (0, 1)]
        exact = sign_flip(_by_cluster(coded, resamples, alone[0] * 1.0 - alone[1])[:, 0])
        only_one, only_other = (view.count(units)[0] for units in alone)
        names["note"] = join_notes(
            f"with the humans' majority only the first {only_one}, only the second {only_other}",
            view.as_sampled,
        )
        view.add("mcnemar_p", exact, judged, **names)


def add_leniency_rows(view: View) -> None:
    """Add `stuart_maxwell_p` of humans with graders: do they use categories equally often? Where
    there are too many humans to list, the rows are of each grader and all humans together, who then
    count as often as they label. The note adds Holm's correction over the rows of one rubric.
    """
    coded, resamples = view.coded, view.resamples
    humans = coded.members("human")
    people = {"humans": humans}
    if len(listed_raters(coded)) == len(coded.raters):
        people = {coded.raters[human]: (human,) for human in humans}
    tests = []
    for (name, members), grader in product(people.items(), coded.members("model")):
        counts = label_counts(coded, members)
        both = (counts.sum(axis=1) > 0) & coded.labelled[:, grader]
        if both.any():
            grades = coded.codes[:, [grader]] == np.arange(coded.q)
            apart = (counts - grades * counts.sum(axis=1, keepdims=True)) * both[:, None]
            apart = _by_cluster(coded, resamples, apart)
            if resamples.weight is not None:
                apart = apart * np.repeat(resamples.weight, resamples.frequency)[:, None]
            tests.append((name, coded.raters[grader], both, clustered_homogeneity(apart).p))
    for (a, b, both, p), adjusted in zip(tests, holm([p for *_, p in tests]), strict=True):
        note = "" if np.isnan(p) else f"Holm p {adjusted:.4g}"
        view.add("stuart_maxwell_p", p, both, reason="not_testable", a=a, b=b, note=note)


def _by_cluster(coded: Coded, resamples: Resamples, apart: Array) -> Array:
    """Sum differences of units, (units,) or (units, k), over each cluster: (clusters, k)."""
    sums = resamples.cluster_sums(coded.clusters, apart.reshape(len(apart), -1))
    return resamples.each_cluster(sums)


MAJORITY = ("tpr_majority", "tnr_majority")
REFERENCE = ("tpr_reference", "tnr_reference")


class Rate(TypedDict):
    """A rate with its 95% interval, from `n` units; None where it cannot be estimated."""

    estimate: float | None
    low: float | None
    high: float | None
    n: int


def add_majority_rows(view: View, *, reference: bool = False) -> None:
    """Add `tpr_majority` and `tnr_majority` of every grader on the binary label. They are
    `tpr_reference` and `tnr_reference` where the one human is a `reference`.
    """
    coded = view.coded
    for grader in coded.members("model"):
        people, given = coded.people_beside(grader), coded.codes[:, grader]
        if not people:
            continue
        compared_with = coded.raters[coded.members("human")[0]] if reference else "humans"
        counts = label_counts(coded, people)
        tied, majority = is_tied(counts), majority_codes(counts)
        lone = ~tied & (counts.sum(axis=1) == 1)
        for code, name in enumerate(REFERENCE if reference else MAJORITY):
            whole, rate = (majority == code) & (given >= 0), Interval.undefined("no_labels")
            if whole.any() and view.count(whole)[0]:
                both = np.column_stack([whole & (given == code), whole])
                rate = Interval(*share_bounds(*view.each_cluster(both).T))
            left_out = _counted(view, tied & (given >= 0), "tied and left out")
            of_one = "" if reference else _counted(view, lone & whole, "labelled by one annotator")
            note = join_notes(left_out, of_one)
            view.add(name, rate, whole, a=compared_with, b=coded.raters[grader], note=note)


def _counted(out: Writer, units: Mask, what: str) -> str:
    count = out.count(units)[0] if units.any() else 0
    return f"{count} {'item' if count == 1 else 'items'} {what}" if count else ""


def rates_of(rows: ResultRows, people: str, grader: str) -> dict[str, Rate]:
    """Return the rates of one grader for its verdict. `tpr` and `tnr` are against the majority of
    `people` ("humans", or the reference); empty where there is no binary label.
    """
    rates: dict[str, Rate] = {}
    for name in (*MAJORITY, *REFERENCE):
        if row := rows.get(name, people, grader, BINARY_ALL):
            ends = (row["estimate"], row["low"], row["high"])
            estimate, low, high = (None if np.isnan(end) else end for end in ends)
            rate = Rate(estimate=estimate, low=low, high=high, n=row["n_units"])
            rates[name.partition("_")[0]] = rate
    return rates


EPSILON = 0.2
"""The cost-benefit handicap that the authors advise where the humans are experts."""
FALSE_DISCOVERY_RATE = 0.05
PASSING_RATE = 0.5
NO_ELIGIBLE = "no_eligible_annotator"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class AltTest:
    """Result of the test; the arrays have one entry per eligible annotator.

    `annotators` are columns of the humans' labels; `advantage` is how often the grader is at least
    as close to the other humans as the annotator is; `p` is one-sided; `rejected` after
    Benjamini-Yekutieli; `zero_variance` marks annotators whose differences are all the same.
    """

    annotators: tuple[int, ...]
    n: Integers
    advantage: Array
    p: Array
    rejected: Mask
    zero_variance: Mask
    epsilon: float

    @property
    def winning_rate(self) -> float:
        """Share of the annotators that the grader may replace; NaN where none is eligible."""
        return float(self.rejected.mean()) if len(self.rejected) else np.nan

    @property
    def advantage_probability(self) -> float:
        """Mean advantage over the annotators; NaN where none is eligible."""
        return float(self.advantage.mean()) if len(self.advantage) else np.nan

    @property
    def passed(self) -> bool:
        """True if the winning rate reaches one half. Never a verdict by itself."""
        return bool(self.winning_rate >= PASSING_RATE)


@dataclass(frozen=True)
class _Comparisons:
    """Comparisons of the grader with each human on each unit, expected over the grader's labels:
    `unit` and `human` (comparisons,), and the `values` (3, comparisons) of wins (grader at least as
    close to the others), of the difference (human's win minus grader's) and of its square.
    """

    unit: Codes
    human: Codes
    values: Array

    def of(self, humans: Sequence[int]) -> _Comparisons:
        """Return the comparisons with some of the humans, numbered in this order."""
        place = np.full(int(self.human.max(initial=-1)) + 1, -1)
        place[list(humans)] = np.arange(len(humans))
        kept = place[self.human] >= 0
        return _Comparisons(self.unit[kept], place[self.human[kept]], self.values[:, kept])


def add_alt_test_rows(view: RubricView) -> None:
    """Add `alt_test_winning_rate` and `alt_test_advantage` of every grader and baseline.

    Baselines' labels do not depend on the unit, so that expected comparisons replace random labels.
    The advantage has a bootstrap interval; the winning rate counts rejections of a test that takes
    units as independent, so it has none.
    """
    coded, epsilon = view.coded, view.request.settings.epsilon
    members = list(coded.members("human"))
    if not members:
        return
    humans = coded.codes[:, members]
    one_hot = np.vstack([np.eye(coded.q), np.zeros(coded.q)])
    graders = {coded.raters[g]: one_hot[coded.codes[:, g]] for g in coded.members("model")}
    of_baselines = view.once(baselines)
    graders |= {name: np.tile(share, (len(humans), 1)) for name, share in of_baselines.items()}
    values = None if coded.level == "nominal" else np.asarray(coded.values)
    frequency = view.resamples.frequency[coded.clusters].astype(float)
    for name, labels in graders.items():
        compared = _compare(humans, labels, values)
        test = _tested(compared, len(members), frequency, epsilon, MIN_SHARED_UNITS)
        compared, n = compared.of(test.annotators), len(test.annotators)
        met = np.bincount(compared.unit, minlength=len(humans)) > 0
        units = view.count(met)
        flat = int(test.zero_variance.sum())
        passes = "passes" if test.passed else "does not pass"
        outcome = f"{passes} (at {PASSING_RATE:g}; no verdict); t tests take items as independent"
        about = join_notes(
            Remark("zero_variance", (flat, n)) if flat else "",
            f"epsilon {epsilon:g}",
            f"{n} of {len(members)} humans with {MIN_SHARED_UNITS} items",
        )
        add = partial(view.add, units=units, a="humans", b=name, reason=NO_ELIGIBLE)
        wins = join_notes(about, outcome if n else "", view.as_sampled)
        add("alt_test_winning_rate", test.winning_rate, note=wins)
        add("alt_test_advantage", _advantages(compared, n, view), note=about)


def _tested(
    compared: _Comparisons, humans: int, count: Array, epsilon: float, min_units: int
) -> AltTest:
    weight = count[compared.unit]
    n = np.bincount(compared.human, weight, humans).astype(float)
    eligible = np.flatnonzero(n >= max(min_units, 2))
    n = n[eligible]
    advantage, mean, square = (
        np.bincount(compared.human, values * weight, humans)[eligible] / n
        for values in compared.values
    )
    variance = np.maximum(square - mean**2, 0.0) * n / (n - 1.0)
    flat, below = variance < _ROUNDING, mean - epsilon
    # A t test; without variance 0 or 1, by the sign.
    t = below / np.sqrt(np.where(flat, 1.0, variance) / n)
    p = np.where(flat, np.where(below < -_ROUNDING, 0.0, 1.0), stdtr(n - 1.0, t))
    return AltTest(
        annotators=tuple(eligible.tolist()),
        n=n.astype(np.int64),
        advantage=advantage,
        p=p,
        rejected=benjamini_yekutieli(p) <= FALSE_DISCOVERY_RATE,
        zero_variance=flat,
        epsilon=epsilon,
    )


def _compare(humans: Integers, grader: Array, values: Array | None) -> _Comparisons:
    """Compare the grader with each human, both scored against the other humans."""
    q = grader.shape[1]
    counts = count_labels(humans, q)
    usable = (counts.sum(axis=1) >= 2) & (grader.sum(axis=1) > 0)
    unit, human = np.nonzero((humans >= 0) & usable[:, None])
    labels = humans[unit, human].astype(np.intp)
    # Distance of each category from all labels of a unit; the annotator's own is subtracted below.
    distance = 1.0 - np.eye(q) if values is None else np.subtract.outer(values, values) ** 2
    total = counts @ distance
    human_loss = total[unit, labels]
    expected = np.zeros((3, len(unit)))
    for code in range(q):
        likely = grader[unit, code]
        loss = total[unit, code] - distance[code][labels]
        won, lost = loss <= human_loss + _ROUNDING, human_loss <= loss + _ROUNDING
        gap = lost.astype(float) - won
        expected += likely * np.stack([won, gap, gap**2])
    return _Comparisons(unit, human, expected)


def _advantages(compared: _Comparisons, humans: int, out: Writer) -> Array:
    """Mean over annotators of the share of units that the grader wins, (rows,); without the rows of
    the jackknife.
    """
    from scipy.sparse import csr_array

    resamples, ones = out.resamples, np.ones(len(compared.unit))
    if humans == 0:
        return np.full(len(resamples), np.nan)
    at, shape = (out.clusters[compared.unit], compared.human), (resamples.n_types, humans)
    won, held = (csr_array((values, at), shape=shape) for values in (compared.values[0], ones))
    shares = []
    for block in resamples.blocks():
        share = ratio(block @ won, np.asarray(block @ held, dtype=float))
        shares.append(np.ascontiguousarray(share).mean(axis=1))
    return np.concatenate(shares)


def alt_test(
    humans: Any,
    grader: Any,
    *,
    categories: Column[Hashable],
    level: Level = "nominal",
    epsilon: float = EPSILON,
    min_units: int = MIN_SHARED_UNITS,
) -> AltTest:
    """Run the alternative annotator test (Calderon, Reichart & Dror 2025); see `AltTest`.

    `humans` are labels (units, raters), `grader` labels (units,). Exact matches count on the
    nominal level, the root mean square error of the categories' values on the others. `epsilon` is
    .2 for experts (the default), .15 for skilled annotators and .1 for a crowd, as its authors
    advise. A pass is not non-inferiority: a constant can pass.

    A grader that repeats the labels of the first of three humans, who agree on three units of four:

    >>> humans = [["a", "a", "a"], ["b", "b", "b"], ["a", "a", "b"], ["b", "b", "b"]] * 10
    >>> found = alt_test(humans, [row[0] for row in humans], categories="ab")
    >>> found.winning_rate, found.advantage_probability, found.passed
    (1.0, 1.0, True)
    """
    people, grades = encode_labels(humans, categories), encode_column(grader, categories)
    same_length(people, grades)
    one_hot = np.vstack([np.eye(len(categories)), np.zeros(len(categories))])
    values = None if level == "nominal" else np.asarray(category_values(categories, level))
    compared = _compare(people, one_hot[grades], values)
    return _tested(compared, people.shape[1], np.ones(len(people)), epsilon, min_units)
