"""Comparisons of graders with humans, with baselines and with each other. Functions add rows to a
`View`: the labels of one rubric, as its categories or as the binary label, with resamples.

*Human ceiling*: does a grader agree with humans as well as they do with each other? Every grader
has to beat two baselines: one always gives the humans' most frequent category, the other random
labels at the humans' prevalence. Other rows compare graders, and the leniency of raters.

*Rates*: the true positive rate is the share of units with an affirmative reference label that the
grader affirms; the true negative rate is the share of the other units that it does not affirm. The
reference label is the humans' majority label, or that of the one rater who is declared the
reference. Ties are left out. The interval is that of every share (`analysis.bootstrap.intervals`).

*Alternative annotator test*: would a grader be as good a choice as one of the humans (Calderon,
Reichart & Dror 2025, "The alternative annotator test for LLM-as-a-judge")? A pass is not
non-inferiority, and a constant can pass: no verdict rests on it, and baselines are reported, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Any, NamedTuple, TypedDict

import numpy as np
from scipy.special import stdtr

from evenhand.analysis.agreement import coefficients
from evenhand.analysis.agreement import pairs as pairwise
from evenhand.analysis.bootstrap import significance
from evenhand.analysis.bootstrap.intervals import Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples, count_labels, ratio
from evenhand.analysis.labels import encoding
from evenhand.analysis.labels.matrix import BINARY_ALL, Coded
from evenhand.analysis.labels.scale import Level, category_values
from evenhand.analysis.results import BASELINES, ResultRows
from evenhand.analysis.statistics import Remark, entry_for, join_notes
from evenhand.analysis.types import Array, Categories, Clusters, Codes, Integers, Mask
from evenhand.analysis.writer import About, RubricView, View, Writer

CEILING = "human_ceiling_difference"
TOO_FEW_HUMANS = Remark("too_few_shared_by_humans", (pairwise.MIN_SHARED_UNITS,))
TOO_FEW_UNITS = Remark("too_few_shared_by_grader", (pairwise.MIN_SHARED_UNITS,))


class CeilingMeans(NamedTuple):
    """Mean kappas of a grader with humans and of the humans with one another, on the same `units`
    (units,); their difference is `human_ceiling_difference`. Of a mean's `values` (rows,) row 0 is
    that of the data, the others are those of resamples. A mean on too few units is None.
    """

    units: Mask
    with_humans: pairwise.MeanOverTables | None
    among_humans: pairwise.MeanOverTables | None


def add_ceiling_rows(view: View) -> None:
    """Add `human_ceiling_difference` of every grader. The difference is the grader's kappa with
    humans minus the humans' kappa with one another, both on the units with labels of the grader and
    two humans, with the same weights (`analysis.agreement.pairs`) and in the same resamples.
    """
    coded, kappas = view.coded, view.once(pairwise.KappaMeans)
    for grader in coded.members("model"):
        if coded.humans_not_copied(grader):
            means = with_and_among_humans(kappas, coded, grader)
            _add_difference(view, coded.raters[grader], means)


def add_baseline_ceiling_rows(view: View) -> None:
    """Add `human_ceiling_difference` of the baselines, on all units with labels of two humans."""
    humans, kappa = view.coded.members("human"), pairwise.deciding_kappa(view.coded)
    units = np.asarray(view.coded.labelled[:, list(humans)].sum(axis=1) >= 2)
    means = CeilingMeans(units, None, None)
    has_enough = view.count(units)[0] >= pairwise.MIN_SHARED_UNITS
    for name, shares in view.once(baselines).items():
        if has_enough:
            with_humans = _baseline_means(view, units, shares, [kappa])[kappa]
            among_humans = view.once(pairwise.KappaMeans).among(humans)[kappa]
            means = CeilingMeans(units, with_humans, among_humans)
        _add_difference(view, name, means)


def add_baseline_rows(view: View) -> None:
    """Add observed agreement and kappa of the two baselines with the humans. No random labels are
    drawn: as a baseline's labels do not depend on the unit, its expected table with a human is the
    product of the human's counts and the baseline's shares.
    """
    coded, humans = view.coded, view.coded.members("human")
    n_humans = coded.labelled[:, list(humans)].sum(axis=1)
    has_two = np.asarray(n_humans >= 2)
    has_enough = view.count(has_two)[0] >= pairwise.MIN_SHARED_UNITS
    units = has_two if has_enough else np.asarray(n_humans >= 1)
    n_compared = int(coded.labelled[units][:, list(humans)].any(axis=0).sum())
    panel_note = "1 human" if n_compared == 1 else f"mean over {n_compared} humans"
    names = ["observed_agreement", "cohen_kappa", pairwise.deciding_kappa(coded)]
    constant, _ = BASELINES
    for baseline, shares in view.once(baselines).items():
        labels_note = _baseline_in_words(coded, shares)
        for statistic, mean in _baseline_means(view, units, shares, names).items():
            # Chance by a constant rater's own shares is all of its agreement: kappa is 0.
            is_zero = baseline == constant and entry_for(statistic).own_margins
            remark = Remark("constant_rater") if is_zero else ""
            about = About(a="humans", b=baseline, note=join_notes(remark, labels_note, panel_note))
            view.add(statistic, mean.values, units, undefined=mean.undefined, **about)


def _baseline_in_words(coded: Coded, shares: Array) -> str:
    """Return the note on the labels of a baseline with these shares of the categories (q,)."""
    if shares.max() == 1.0:
        return f"always {coded.categories[int(shares.argmax())]}"
    if coded.is_number:
        return "expected value where numbers are drawn from annotators'"
    by_category = zip(coded.categories, shares, strict=True)
    prevalence = ", ".join(f"{category} {share:.3f}" for category, share in by_category)
    return f"expected value at {prevalence}"


def with_and_among_humans(
    kappas: pairwise.KappaMeans, coded: Coded, grader: int, min_people: int = 2
) -> CeilingMeans:
    """Return a grader's mean kappa with humans, and the humans' with one another, on the units with
    labels of the grader and `min_people` humans.

    `coded` are the labels of `kappas`, except that this grader's may differ, on the same units: the
    humans' mean is taken from `kappas`, where it may be cached. Both means are None on fewer than
    30 units; the humans' is also None where few units have two humans' labels.
    """
    resamples, kappa = kappas.resamples, pairwise.deciding_kappa(coded)
    people = coded.humans_not_copied(grader)
    units, has_two = pairwise.compared_units(coded, resamples, people, grader, min_people)
    if resamples.count(coded.clusters, units)[0] < pairwise.MIN_SHARED_UNITS:
        return CeilingMeans(units, None, None)
    with_humans = pairwise.KappaMeans(coded, resamples, [kappa]).with_rater(people, grader, units)
    among_humans = kappas.among(people, units)[kappa] if has_two else None
    return CeilingMeans(units, with_humans[kappa], among_humans)


def baselines(coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """Return the baselines' shares of the categories (q,), computed from the humans' labels. The
    constant one gives the humans' most frequent category or, of numbers, the nearest to their mean.
    """
    humans = coded.members("human")
    if not coded.labelled_by_any(humans).any():
        return {}
    counts = coefficients.label_counts(coded, humans)
    prevalence = coefficients.category_shares(counts, coded, resamples)[0]  # row 0: in the data
    code = prevalence.argmax()
    if coded.is_number:
        code = np.abs(np.asarray(coded.values) - prevalence @ coded.values).argmin()
    constant = np.zeros(coded.q)
    constant[code] = 1.0
    return dict(zip(BASELINES, (constant, prevalence), strict=True))


def _baseline_means(
    view: View, units: Mask, shares: Array, names: Sequence[str]
) -> dict[str, pairwise.MeanOverTables]:
    """Return, by name, means over the humans of the statistics of their tables with a baseline: the
    tables expected on `units` (units,) if it has these `shares` of the categories (q,).
    """
    coded, resamples, measurement = view.coded, view.resamples, pairwise.measurement_of(view.coded)
    defined = measurement.statistics()
    statistics = {name: defined[name] for name in names if name in defined}
    overlap = pairwise.Overlap.of(coded, resamples, coded.members("human"), units)
    # Only the humans' counts are used from these tables, so any rater will do: all codes are 0.
    chunks = overlap.tables_with_rater(np.zeros(len(units), dtype=np.intp), len(resamples))
    expected = (measurement.expected_cells(features, shares) for features in chunks)
    return pairwise.means_of(overlap, expected, resamples, statistics)


def _add_difference(view: View, grader: str, means: CeilingMeans) -> None:
    """Add a grader's mean kappa with humans minus that among humans; undefined without either."""
    counts, coded = view.count(means.units), view.coded
    with_humans, among_humans = means.with_humans, means.among_humans
    if with_humans is None or among_humans is None:
        reason = TOO_FEW_UNITS if with_humans is None else TOO_FEW_HUMANS
        view.add(CEILING, Interval.undefined(reason), counts, a="humans", b=grader)
        return
    words, other_words = (  # such as "0.7123, 3 pairs"
        ", ".join(filter(None, (f"{mean.values[0]:.4g}", mean.pairs_in_words)))
        for mean in (with_humans, among_humans)
    )
    weights = "unweighted" if coded.level == "nominal" else coded.ordered
    kappas = f"{weights} kappa: with humans {words}; between humans {other_words}"
    note = join_notes(Remark("pooled_pairs") if with_humans.pooled else "", kappas)
    about = About(a="humans", b=grader, note=note)
    undefined = max(with_humans.undefined, among_humans.undefined)  # shares of resampled values
    values = with_humans.values - among_humans.values
    view.add(CEILING, values, counts, undefined=undefined, **about)


@dataclass(frozen=True, kw_only=True)
class CeilingDifference(Interval):
    """A grader's mean kappa with humans minus the humans' among themselves, with its 95% interval:
    where `low` lies above -margin, the grader is not inferior to humans by that margin.

    `note` explains any NaN, and gives the two kappas.
    """

    n_units: int
    n_clusters: int


def human_ceiling(
    humans: Any,
    grader: Any,
    *,
    categories: Categories,
    level: Level = "nominal",
    clusters: Clusters = None,
    bootstrap: Bootstrap | None = None,
) -> CeilingDifference:
    """Estimate `human_ceiling_difference` from labels of humans (units, raters) and a grader.

    Kappa is unweighted on the nominal level, and has linear weights on the others. Each unit with
    labels of the grader and two humans counts once (`analysis.agreement.pairs`). The interval
    resamples `clusters` (units,), or else units, jointly for all raters.

    >>> humans = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]] * 10
    >>> difference = human_ceiling(humans, [row[0] for row in humans], categories="ab")
    >>> round(difference.estimate, 3), difference.low > -0.1
    (0.25, True)
    """
    people = encoding.encode_labels(humans, categories)
    grades = encoding.encode_column(grader, categories)
    encoding.check_same_length(people, grades)
    coded = encoding.coded_raters(people, grades[:, None], categories, level)
    coded = replace(coded, clusters=encoding.cluster_codes(clusters, len(grades)))
    resamples = (bootstrap or Bootstrap()).draw(np.ones(int(coded.clusters.max()) + 1))
    rows = ResultRows("")  # widens intervals and explains NaN as in an analysis
    rows.record_chance(coded, resamples)
    view = View.of(rows, coded, resamples)
    kappas = pairwise.KappaMeans(coded, resamples, [pairwise.deciding_kappa(coded)])
    _add_difference(view, "", with_and_among_humans(kappas, coded, grader=people.shape[1]))
    (row,) = rows.rows.values()
    interval = Interval(row["estimate"], row["low"], row["high"], row["remarks"])
    return CeilingDifference(**vars(interval), n_units=row["n_units"], n_clusters=row["n_clusters"])


def add_grader_comparison_rows(view: View) -> None:
    """Add `kappa_difference` and `mcnemar_p` of every two graders; above 12 graders, only of the
    best one with each other. The difference is the first's mean kappa with humans minus the
    second's, on the units that both labelled and in the same resamples, so that it is paired.
    """
    coded, humans, kappas = view.coded, view.coded.members("human"), view.once(pairwise.KappaMeans)
    kappa = pairwise.deciding_kappa(coded)
    majority = coefficients.majority_codes(coefficients.label_counts(coded, humans))
    for first, second in _compared_graders(view):
        both = coded.labelled[:, first] & coded.labelled[:, second]
        units = both & coded.labelled_by_any(humans)
        if view.count(units)[0] >= pairwise.MIN_SHARED_UNITS:
            mean, other_mean = (kappas.with_rater(humans, k, units)[kappa] for k in (first, second))
            about = About(a=coded.raters[first], b=coded.raters[second])
            undefined = max(mean.undefined, other_mean.undefined)
            difference = mean.values - other_mean.values
            view.add("kappa_difference", difference, units, undefined=undefined, **about)
            if not coded.is_number:
                _add_mcnemar(view, first, second, np.where(both, majority, -1))


def _compared_graders(view: View) -> list[tuple[int, int]]:
    """Return the pairs of graders (columns) to compare; of many, only those with the best one."""
    coded, graders = view.coded, view.coded.members("model")
    if len(graders) <= pairwise.MAX_LISTED_RATERS:
        return list(combinations(graders, 2))

    def estimated_kappa(grader: int) -> float:
        statistic = pairwise.deciding_kappa(coded)  # its rows have been added before
        row = view.rows.get(statistic, "humans", coded.raters[grader], coded.subset)
        return -math.inf if row is None or math.isnan(row["estimate"]) else row["estimate"]

    best = max(graders, key=estimated_kappa)
    return [(min(best, other), max(best, other)) for other in graders if other != best]


def _add_mcnemar(view: View, first: int, second: int, majority: Codes) -> None:
    """Add `mcnemar_p`, the p value of the hypothesis that two graders (columns) match the humans'
    `majority` (codes of units, -1 for none) equally often. Signs are flipped by cluster.
    """
    coded, resamples = view.coded, view.resamples
    matches, other_matches = (coded.codes[:, k] == majority for k in (first, second))
    compared = np.asarray(majority >= 0)
    only_first = compared & matches & ~other_matches
    only_second = compared & other_matches & ~matches
    wins = (only_first * 1.0 - only_second)[:, None]  # 1 for the first, -1 for the second
    wins_by_cluster = resamples.to_clusters(resamples.sums_by_type(coded.clusters, wins))
    (n_first, _), (n_second, _) = view.count(only_first), view.count(only_second)  # units
    matched = f"with the humans' majority only the first {n_first}, only the second {n_second}"
    a, b, note = coded.raters[first], coded.raters[second], join_notes(matched, view.as_sampled)
    p = significance.sign_flip(wins_by_cluster[:, 0])
    view.add("mcnemar_p", p, compared, a=a, b=b, note=note)


def add_leniency_rows(view: View) -> None:
    """Add `stuart_maxwell_p`, the p value of the hypothesis that a human and a grader use the
    categories equally often. If there are too many humans to list, they are compared all together,
    and count as often as they label. The note adds Holm's correction over the rows of one rubric.
    """
    coded, humans = view.coded, view.coded.members("human")
    members_by_name = {"humans": humans}
    if len(pairwise.listed_raters(coded)) == len(coded.raters):
        members_by_name = {coded.raters[human]: (human,) for human in humans}
    tests = []
    for (name, members), grader in product(members_by_name.items(), coded.members("model")):
        counts = coefficients.label_counts(coded, members)
        shared = (counts.sum(axis=1) > 0) & coded.labelled[:, grader]
        if shared.any():
            grades = coded.codes[:, [grader]] == np.arange(coded.q)
            differences = (counts - grades * counts.sum(axis=1, keepdims=True)) * shared[:, None]
            test = significance.clustered_homogeneity(view.sums_by_cluster(differences))
            tests.append((name, coded.raters[grader], shared, test.p))
    corrected = significance.holm([p for *_, p in tests])
    for (name, grader_name, shared, p), adjusted in zip(tests, corrected, strict=True):
        about = About(a=name, b=grader_name, note="" if math.isnan(p) else f"Holm p {adjusted:.4g}")
        view.add("stuart_maxwell_p", p, shared, reason="not_testable", **about)


# ---- Rates ---------------------------------------------------------------------------------------
MAJORITY = ("tpr_majority", "tnr_majority")  # names of the two rates, by reference label
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
        people, grades = coded.humans_not_copied(grader), coded.codes[:, grader]
        if not people:
            continue
        compared_with = coded.raters[coded.members("human")[0]] if reference else "humans"
        counts = coefficients.label_counts(coded, people)
        tied, majority = coefficients.is_tied(counts), coefficients.majority_codes(counts)
        tied_note = _items_in_words(view, tied & (grades >= 0), "tied and left out")
        for code, name in enumerate(REFERENCE if reference else MAJORITY):  # code 0: affirmative
            units = (majority == code) & (grades >= 0)
            has_one_label = units & (counts.sum(axis=1) == 1)
            by_one = _items_in_words(view, has_one_label, "labelled by one annotator")
            note = join_notes(tied_note, "" if reference else by_one)
            rate = Interval.undefined("no_labels")
            if view.count(units)[0]:
                part_and_whole = np.column_stack([units & (grades == code), units])
                rate = Interval(*share_bounds(*view.sums_by_cluster(part_and_whole).T))
            view.add(name, rate, units, a=compared_with, b=coded.raters[grader], note=note)


def _items_in_words(view: View, units: Mask, predicate: str) -> str:
    """Return "3 items" with a `predicate`, for the number of the units; "" where there is none."""
    count = view.count(units)[0] if units.any() else 0
    return f"{count} {'item' if count == 1 else 'items'} {predicate}" if count else ""


def rates_of(rows: ResultRows, people: str, grader: str) -> dict[str, Rate]:
    """Return `tpr` and `tnr` of one grader against the majority of `people` ("humans", or the
    reference), by name; empty where there is no binary label.
    """
    rates: dict[str, Rate] = {}
    for name in (*MAJORITY, *REFERENCE):
        if row := rows.get(name, people, grader, BINARY_ALL):
            figures = row["estimate"], row["low"], row["high"]
            estimate, low, high = (None if math.isnan(figure) else figure for figure in figures)
            rate = Rate(estimate=estimate, low=low, high=high, n=row["n_units"])
            rates[name.removesuffix("_majority").removesuffix("_reference")] = rate
    return rates


# ---- Alternative annotator test ------------------------------------------------------------------
EPSILON = 0.2
"""The cost-benefit handicap that the authors advise where the humans are experts."""
FALSE_DISCOVERY_RATE = 0.05
PASSING_RATE = 0.5
"""Winning rate from which a grader passes the alternative annotator test."""
NO_ELIGIBLE = "no_eligible_annotator"
_ROUNDING = 1e-9
"""Differences of losses and of shares up to this size count as 0."""


@dataclass(frozen=True)
class AltTest:
    """Result of the alternative annotator test; arrays have one entry per eligible annotator.

    `annotators` are columns of the humans' labels, `n` their numbers of units, `advantage` how
    often the grader is at least as close to the other humans as the annotator is. `p` is one-sided;
    `rejected` marks those below the level after correction, `zero_variance` equal differences.
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
        """True if the winning rate is at least one half; never a verdict by itself."""
        return bool(self.winning_rate >= PASSING_RATE)


class _Comparisons(NamedTuple):
    """Comparisons of a grader with each of `n_humans` humans on each unit, (comparisons,) each.

    `unit` and `human` are positions. The others are expected values over the grader's labels:
    `grader_wins` (1 if it is at least as close to the other humans as this human is, else 0),
    `difference`, the human's win minus the grader's, and `squared_difference`.
    """

    n_humans: int
    unit: Codes
    human: Codes
    grader_wins: Array
    difference: Array
    squared_difference: Array


def add_alt_test_rows(view: RubricView) -> None:
    """Add `alt_test_winning_rate` and `alt_test_advantage` of every grader and baseline.

    Comparisons with a baseline are expected values, without random labels. The advantage has a
    bootstrap interval; the winning rate has none, as its tests take units as independent.
    """
    coded, epsilon = view.coded, view.request.settings.epsilon
    humans = coded.codes[:, list(coded.members("human"))]
    if not humans.size:
        return
    values = None if coded.level == "nominal" else np.asarray(coded.values)
    frequency = view.resamples.frequency[coded.clusters].astype(float)
    graders = coded.members("model")
    # Probabilities of the labels (units, q), by grader or baseline.
    by_name = {coded.raters[k]: _one_hot(coded.codes[:, k], coded.q) for k in graders}
    for baseline, shares in view.once(baselines).items():
        by_name[baseline] = np.tile(shares, (len(humans), 1))
    for name, probabilities in by_name.items():
        comparisons = _compare(humans, probabilities, values)
        test = _test_of(comparisons, frequency, epsilon, pairwise.MIN_SHARED_UNITS)
        _add_alt_test(view, name, comparisons, test)


def _add_alt_test(view: View, name: str, comparisons: _Comparisons, test: AltTest) -> None:
    """Add the rows of a grader or baseline from its comparisons and their test."""
    is_eligible = np.isin(comparisons.human, test.annotators)
    compared = np.isin(np.arange(len(view.clusters)), comparisons.unit[is_eligible])
    n_eligible, n_flat = len(test.annotators), int(test.zero_variance.sum())
    note = join_notes(
        Remark("zero_variance", (n_flat, n_eligible)) if n_flat else "",
        f"epsilon {test.epsilon:g}",
        f"{n_eligible} of {comparisons.n_humans} humans with {pairwise.MIN_SHARED_UNITS} items",
    )
    passes = "passes" if test.passed else "does not pass"
    outcome = f"{passes} (at {PASSING_RATE:g}; no verdict); t tests take items as independent"
    winning_note = join_notes(note, outcome if n_eligible else "", view.as_sampled)
    add = partial(view.add, units=view.count(compared), a="humans", b=name, reason=NO_ELIGIBLE)
    add("alt_test_winning_rate", test.winning_rate, note=winning_note)
    add("alt_test_advantage", _mean_advantage(comparisons, test.annotators, view), note=note)


def _test_of(
    comparisons: _Comparisons, frequency: Array, epsilon: float, min_units: int
) -> AltTest:
    """Test a grader against each human with `min_units` comparisons on units with a `frequency`."""
    weight = frequency[comparisons.unit]
    n = np.bincount(comparisons.human, weight, comparisons.n_humans).astype(float)
    eligible = np.flatnonzero(n >= max(min_units, 2))  # a variance needs two
    n = n[eligible]

    def mean_by_human(outcome: Array) -> Array:
        """Return the means (eligible humans,) of an outcome of comparisons (comparisons,)."""
        sums = np.bincount(comparisons.human, outcome * weight, comparisons.n_humans)
        return np.asarray(sums[eligible] / n)

    mean = mean_by_human(comparisons.difference)
    mean_square = mean_by_human(comparisons.squared_difference)
    variance = np.maximum(mean_square - mean**2, 0.0) * n / (n - 1.0)
    is_flat, excess = variance < _ROUNDING, mean - epsilon
    # A one-sided t test that the mean is below epsilon; without variance, p is 0 or 1 by the sign.
    t = excess / np.sqrt(np.where(is_flat, 1.0, variance) / n)
    p = np.where(is_flat, np.where(excess < -_ROUNDING, 0.0, 1.0), stdtr(n - 1.0, t))
    return AltTest(
        annotators=tuple(eligible.tolist()),
        n=n.astype(np.int64),
        advantage=mean_by_human(comparisons.grader_wins),
        p=p,
        rejected=significance.benjamini_yekutieli(p) <= FALSE_DISCOVERY_RATE,
        zero_variance=is_flat,
        epsilon=epsilon,
    )


def _one_hot(codes: Integers, q: int) -> Array:
    """Return an array (units, q) with 1 at the code of each label (units,), else 0."""
    return np.asarray(codes[:, None] == np.arange(q), dtype=float)


def _compare(humans: Integers, grader: Array, values: Array | None) -> _Comparisons:
    """Compare the grader with each human, both scored against the other humans.

    `humans` are codes (units, raters), `grader` the probabilities of the grader's labels
    (units, q). The loss is squared distance of the categories' `values` (q,); if None, inequality.
    """
    q = grader.shape[1]
    counts = count_labels(humans, q)
    usable = (counts.sum(axis=1) >= 2) & (grader.sum(axis=1) > 0)
    unit, human = np.nonzero((humans >= 0) & usable[:, None])
    codes = humans[unit, human].astype(np.intp)
    # Losses against the other humans: the compared human's own label adds nothing to the human's
    # loss, and is subtracted from the grader's.
    distance = 1.0 - np.eye(q) if values is None else np.subtract.outer(values, values) ** 2
    total = counts @ distance
    human_loss = total[unit, codes]
    grader_wins, difference, squared_difference = np.zeros((3, len(unit)))
    for code in range(q):  # the grader's label
        probability = grader[unit, code]
        grader_loss = total[unit, code] - distance[code][codes]
        grader_win = grader_loss <= human_loss + _ROUNDING
        win_difference = (human_loss <= grader_loss + _ROUNDING).astype(float) - grader_win
        grader_wins += probability * grader_win
        difference += probability * win_difference
        squared_difference += probability * win_difference**2
    return _Comparisons(humans.shape[1], unit, human, grader_wins, difference, squared_difference)


def _mean_advantage(comparisons: _Comparisons, humans: Sequence[int], writer: Writer) -> Array:
    """Return the mean over these humans of the share of units that the grader wins, (rows,)."""
    from scipy.sparse import csr_array

    resamples = writer.resamples
    if not humans:
        return np.full(len(resamples), np.nan)

    def by_cluster(outcome: Array) -> csr_array:
        """Return the sums (clusters, these humans) of an outcome of comparisons (comparisons,)."""
        cells = writer.clusters[comparisons.unit], comparisons.human
        shape = resamples.n_types, comparisons.n_humans
        return csr_array((outcome, cells), shape=shape)[:, list(humans)]

    wins, units = by_cluster(comparisons.grader_wins), by_cluster(np.ones(len(comparisons.unit)))
    means = []
    for block in resamples.weighted_blocks():  # weights (some rows, clusters)
        shares = ratio(block @ wins, np.asarray(block @ units, dtype=float))
        means.append(np.ascontiguousarray(shares).mean(axis=1))
    return np.concatenate(means)


def alt_test(
    humans: Any,
    grader: Any,
    *,
    categories: Categories,
    level: Level = "nominal",
    epsilon: float = EPSILON,
    min_units: int = pairwise.MIN_SHARED_UNITS,
) -> AltTest:
    """Run the alternative annotator test (Calderon, Reichart & Dror 2025); see `AltTest`.

    `humans` are labels (units, raters), `grader` labels (units,). Labels are scored by exact
    matches on the nominal level, and by the root mean square error of the categories' values on the
    others. The authors advise an `epsilon` of .2 for experts (the default), .15 for skilled
    annotators and .1 for a crowd. A pass is not non-inferiority: a constant can pass.

    A grader that repeats the labels of the first of three humans, who agree on three units of four:

    >>> humans = [["a", "a", "a"], ["b", "b", "b"], ["a", "a", "b"], ["b", "b", "b"]] * 10
    >>> test = alt_test(humans, [row[0] for row in humans], categories="ab")
    >>> test.winning_rate, test.advantage_probability, test.passed
    (1.0, 1.0, True)
    """
    people = encoding.encode_labels(humans, categories)
    grades = encoding.encode_column(grader, categories)
    encoding.check_same_length(people, grades)
    values = None if level == "nominal" else np.asarray(category_values(categories, level))
    comparisons = _compare(people, _one_hot(grades, len(categories)), values)
    return _test_of(comparisons, np.ones(len(people)), epsilon, min_units)
