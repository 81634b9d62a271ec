"""Compare a grader with people: estimates, and bounds on them for a verdict.

`grader_views` yields the label views on which a grader is compared: the rubric's categories, or
binary labels if it gives no categories; and, if it gives probabilities, its binary labels at
thresholds tuned on other clusters. `Comparator.compare` turns a view into a `Comparison`.
Grader-human and human-human kappa are computed on the same units with the same weights
(`analysis.agreement.pairs`); `Support` and `ScoreBounds` bound them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from evenhand.analysis.agreement.coefficients import label_counts, unseen_labels
from evenhand.analysis.agreement.pairs import KappaMeans, Overlap, deciding_kappa, measurement_of
from evenhand.analysis.bootstrap import bounds
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, effective_size
from evenhand.analysis.people.comparison import with_and_among_humans
from evenhand.analysis.requirement import MAX_GROWTH, ClusterCounts
from evenhand.analysis.statistics import Remark
from evenhand.analysis.thresholds import tuning
from evenhand.analysis.types import Array, Codes, Mask, Numbers
from evenhand.study.settings.analysis import MAX_MARGIN_SHARE

HELD_OUT, UNTUNED = "held_out", "untuned"
"""Values of `at`: thresholds tuned on other clusters, and a rubric's threshold before tuning."""
TUNED_FOR = "kappa"
"""Objective of the tuned thresholds that verdicts are based on."""


@dataclass(frozen=True)
class GraderView:
    """A view of the labels of the `grader` (column of `coded`), with those of other raters. `at`
    distinguishes views of one subset: "" for labels as they are, `HELD_OUT` or `UNTUNED`.
    """

    coded: Coded
    grader: int
    at: str = ""
    shares_level: bool = True
    """False if it gets no part of the error rate, as another view of the same labels has it."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The grader's name, the subset and `at`."""
        return self.coded.raters[self.grader], self.coded.subset, self.at

    @property
    def row_key(self) -> dict[str, str]:
        """The key of the result rows that compare this grader with people."""
        grader, subset, at = self.key
        return {"rater_a": "humans", "rater_b": grader, "subset": subset, "at": at}


def grader_views(labels: LabelMatrix) -> Iterator[GraderView]:
    """Yield the views of every grader's labels that verdicts use: of the labels as they are, which
    are categories, or binary if the grader gives only probabilities; if the threshold of such a
    grader was tuned, also of its labels before tuning (`UNTUNED`); and, for probabilities that can
    be tuned, of binary labels at thresholds tuned on other clusters (`HELD_OUT`).
    """
    binary = labels.on_binary() if labels.has_binary else None
    categories = labels.on_categories()
    tunable = tuning.probability_graders(labels) if binary is not None else []
    majority = tuning.human_majority(labels).verdicts
    for grader in labels.models:
        name = labels.raters[grader]
        is_tuned = name in labels.scale.tunings
        if (labels.codes[:, grader] >= 0).any() or binary is None:
            yield GraderView(categories, grader)
        elif not is_tuned:
            yield GraderView(binary, grader)
        else:
            # `HELD_OUT` below yields these labels again, whose thresholds are held out already (see
            # `with_held_out_thresholds`), and takes their part of the level; `UNTUNED` has its own.
            yield GraderView(binary, grader, shares_level=False)
            has_probability = ~np.isnan(labels.positive[:, grader])
            untuned = labels.scale.untuned_threshold_for(name)
            above = labels.positive[has_probability, grader] >= untuned
            coded = tuning.with_verdicts(binary, grader, has_probability, above)
            yield GraderView(coded, grader, UNTUNED)
        is_tunable = grader in tunable and tuning.has_both_verdicts(labels, grader, majority)
        if binary is None or not is_tunable:
            continue
        if is_tuned:  # the same labels as above
            yield GraderView(binary, grader, HELD_OUT)
        else:
            default = labels.scale.threshold_for(name)
            tuned_views = tuning.held_out_views(labels, binary, grader, majority, default)
            if TUNED_FOR in tuned_views:
                yield GraderView(tuned_views[TUNED_FOR], grader, HELD_OUT)


def with_missing_as_wrong(
    labels: LabelMatrix, view: GraderView, cluster_weights: Numbers
) -> GraderView | None:
    """Return the view with every missing label of the grader replaced by the label furthest from
    the annotators' labels of that unit; None where no label is missing.

    `cluster_weights` (clusters,) are the weights of the clusters. The view takes no part of the
    error rate: it is the worst case of a comparison that is made anyway.
    """
    coded, grader = view.coded, view.grader
    people = list(coded.humans_not_copied(grader))
    missing = labels.assigned_to(grader) & ~labels.scored[:, grader] & coded.labelled_by_any(people)
    if not missing.any():
        return None
    codes, unit_weights = coded.codes.copy(), cluster_weights[coded.clusters]
    codes[missing, grader] = _furthest_labels(coded, people, missing, unit_weights)
    return replace(view, coded=replace(coded, codes=codes), shares_level=False)


def _furthest_labels(coded: Coded, people: Sequence[int], units: Mask, weights: Numbers) -> Codes:
    """Return, for each unit in the mask `units` (units,), the label with the largest mean distance
    from that unit's labels by `people`: the label that fewest chose, or an end of an ordered scale.
    Of labels equally far from the unit's, return the nearest to people's labels of all units, with
    `weights` (units,): a frequent wrong label raises chance agreement, and so lowers kappa most.
    """
    values = np.asarray(coded.values)
    if coded.level == "nominal":
        candidates, distance = np.arange(coded.q), 1.0 - np.eye(coded.q)
    else:
        candidates = np.array([values.argmin(), values.argmax()])
        distance = np.abs(values[candidates][:, None] - values)
    # Each candidate's distance from the unit's labels, and from all units': (units, candidates).
    from_unit = label_counts(coded.only(units, coded.subset), people) @ distance.T
    totals = np.zeros(coded.q)  # weight of each label over all units
    for codes in coded.codes[:, people].astype(np.intp).T:
        totals += np.bincount(codes[codes >= 0], weights[codes >= 0], coded.q)
    from_all_units = np.broadcast_to(distance @ totals, from_unit.shape)
    # Each unit's candidates by `from_unit`; of equal ones, the nearest to all units comes last.
    return np.asarray(candidates[np.lexsort((-from_all_units, from_unit))[:, -1]])


_MIN_SPREAD = 1e-9
"""Standard deviations below this are rounding errors."""


@dataclass(frozen=True)
class ScoreBounds:
    """Score bounds of a mean kappa or a difference of kappas: the values that a test just rejects,
    by the variance under the tested value. `statistic` is a function of the weights of the points
    of a `Support`; `sample` has its `estimate` in the data, and the numbers of clusters.
    """

    statistic: bounds.Kappas
    sample: bounds.Sample

    def reach(self, alpha: float) -> tuple[float, float]:
        """Return the distances of both bounds from the estimate (below, above), or NaN."""
        estimate = float(self.sample.estimate)
        if self.statistic.is_empty:
            return math.nan, math.nan
        low, high = bounds.both_bounds(self.statistic, self.sample, alpha).tolist()
        return estimate - low, high - estimate

    def interval_or_remark(self, estimate: float, alpha: float) -> Interval:
        """Return `interval`; a remark without bounds if the estimate is undefined or alpha is 0."""
        if math.isnan(estimate):
            return Interval.undefined("too_few_raters")
        if not alpha:
            return Interval(estimate, math.nan, math.nan, (Remark("no_level"),))
        return self.interval(estimate, alpha)

    def interval(self, estimate: float, alpha: float) -> Interval:
        """Return `estimate`, the statistic or the statistic less a constant (such as the kappa of a
        baseline), with both one-sided bounds of the statistic less the same constant.
        """
        below, above = self.reach(alpha)
        return Interval(estimate, estimate - below, estimate + above)

    def negated(self) -> ScoreBounds:
        """Return the bounds of the negative statistic, whose lower bound is the upper one here."""
        statistic, estimate = self.statistic, self.sample.estimate
        negative = replace(statistic, sign=-statistic.sign, linear=-statistic.linear)
        return ScoreBounds(negative, replace(self.sample, estimate=-estimate))

    def chance_above(self, null: float) -> float:
        """Return the approximate probability that the statistic is above the value `null`."""
        if self.statistic.is_empty:
            return math.nan
        return float(bounds.chance_above(self.statistic, self.sample, np.array(null)))

    def growth(self, null: float, alpha: float) -> float:
        """Return the factor by which a sample must grow for a lower bound above `null`, or inf."""
        sample, statistic = self.sample, self.statistic
        if not float(sample.estimate) > null or not alpha > 0:
            return math.inf

        def is_enough(factor: float) -> bool:
            # Observed points weigh 1 (`Support`); unobserved labels weigh less, and do not grow.
            larger_base = np.where(statistic.base >= 1.0, factor, 1.0) * statistic.base
            clusters, effective = factor * sample.clusters, factor * sample.effective_clusters
            larger_sample = replace(sample, clusters=clusters, effective_clusters=effective)
            bound = bounds.lower_bound(replace(statistic, base=larger_base), larger_sample, alpha)
            return float(bound) > null

        low, high = 1.0, 1.0
        while not is_enough(high):
            if high >= 1.0 + MAX_GROWTH:
                return math.inf
            low, high = high, min(2.0 * high, 1.0 + MAX_GROWTH)
        while high > low * 1.02:  # to 2% of the factor
            middle = math.sqrt(low * high)
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high


@dataclass(frozen=True)
class Comparison:
    """A grader compared with people on one label view.

    Arrays of (rows,) have the value of all data first, then the values without each cluster;
    influences are (clusters,). `counts` are numbers of units and clusters, `units` (units,) a mask,
    `sample` the clusters: all, effective, and with a minority label.

    `difference` is grader-human kappa k minus human-human kappa K, `margin` how far it may lie
    below 0. `margin_share` is s if the margin is the share s of K, and 0 if it is a fixed number.
    The *tested quantity* is k - (1 - s) K, so that the error of K in the margin counts, too; with
    a fixed margin it is the difference. `difference_influence` and `difference_bounds` belong to
    it, and `null` is its value at the margin. `kappas` (rows,) are grader-human kappa;
    `baseline_bounds` bound it, and so its lead over `best_baseline_kappa`.
    `people_kappa` is the kappa of `n_people` people with one another, `people_differ` the numbers
    of clusters in which they gave different labels to a unit, and in which only the same.
    `people_variance` is the variance of the difference over people, NaN for fewer than three or if
    not requested.
    `chance_agreement` is that of two raters with people's shares of the labels. `is_constant`: the
    grader gave one label only; `is_pooled`: some people share a table.
    """

    view: GraderView
    counts: tuple[int, int]
    units: Mask
    sample: ClusterCounts
    difference: float
    difference_influence: Array
    margin: float
    margin_share: float
    difference_bounds: ScoreBounds
    kappas: Array
    best_baseline_kappa: float
    baseline_bounds: ScoreBounds
    n_people: int
    people_kappa: float
    people_differ: tuple[int, int]
    people_influence: Array
    people_variance: float
    chance_agreement: float
    is_constant: bool
    is_pooled: bool

    @property
    def baseline_difference(self) -> float:
        """Kappa minus the better baseline's."""
        return float(self.kappas[0]) - self.best_baseline_kappa

    @property
    def null(self) -> float:
        """Value of the tested quantity at the margin: 0 with a `margin_share`, else -`margin`."""
        # Tested quantity - difference = `margin_share` x people's kappa: the margin, or 0.
        return float(self.difference_bounds.sample.estimate) - self.difference - self.margin

    @cached_property
    def chance_within(self) -> float:
        """Approximate probability that the grader is within the margin."""
        return self.difference_bounds.chance_above(self.null)


@dataclass(frozen=True)
class Comparator:
    """Compare graders with people, in the data and without each cluster (`jackknife`). `margin` is
    how far below human-human kappa a grader may lie, unless `margin_share` sets it as a share of
    that. With `min_people` = 1, units with one person's label count, without human-human kappa.
    """

    jackknife: Resamples
    margin: float
    margin_share: float = 0.0
    min_people: int = 2
    _kappa_means: dict[tuple[str, tuple[str, ...]], KappaMeans] = field(default_factory=dict)

    def compare(
        self, view: GraderView, best_baseline_kappa: float = 0.0, *, over_people: bool = True
    ) -> Comparison | None:
        """Compare one view of a grader's labels with people's; return None if they share too few
        units. The variance over people is computed only if `over_people`, as it takes long.
        """
        coded, grader, jackknife = view.coded, view.grader, self.jackknife
        key = coded.subset, coded.kinds  # people's labels are the same in all views of a subset
        if key not in self._kappa_means:
            self._kappa_means[key] = KappaMeans(coded, jackknife, [deciding_kappa(coded)])
        means = with_and_among_humans(self._kappa_means[key], coded, grader, self.min_people)
        units, grader_mean, people_mean = means
        if grader_mean is None:
            return None
        kappas = grader_mean.values
        people_kappas = people_mean.values if people_mean else np.full(len(kappas), np.nan)
        people_kappa, share = float(people_kappas[0]), self.margin_share
        if not share and 0 < MAX_MARGIN_SHARE * people_kappa < self.margin:
            share = MAX_MARGIN_SHARE  # a fixed margin is capped at this share of people's kappa
        subtracted = (1.0 - share) * people_kappas  # to get the tested quantity (`Comparison`)

        # The weight of each cluster: the number of its units times its sampling weight.
        sizes = jackknife.by_cluster(coded.clusters, units[:, None].astype(float))[:, 0]
        overlap = Overlap.of(coded, jackknife, coded.humans_not_copied(grader), units)
        support = Support.of(overlap, jackknife, [grader])
        unit_weights = jackknife.mass[coded.clusters].astype(float) * overlap.units
        counts_by_label = label_counts(coded, overlap.raters)  # of people, (units, q)
        label_totals = unit_weights @ counts_by_label
        label_shares = label_totals / max(label_totals.sum(), 1.0)
        minority = _minority_clusters(overlap, jackknife, sizes, int(label_totals.argmax()))
        effective = effective_size(sizes) if sizes.any() else 0.0
        counts = jackknife.count(coded.clusters, units)
        by_two = units & (counts_by_label.sum(axis=1) > 1)
        # With an order some differences count less: then all clusters are taken to differ.
        differ = by_two & (((counts_by_label > 0).sum(axis=1) > 1) | (coded.level != "nominal"))
        n_differ, n = (jackknife.count(coded.clusters, mask)[1] for mask in (differ, by_two))
        codes = coded.codes[:, grader].astype(np.intp)
        variance = _variance_over_people(overlap, jackknife, codes) if over_people else math.nan
        return Comparison(
            view=view, counts=counts, units=units, is_pooled=grader_mean.pooled,
            sample=ClusterCounts(counts[1], effective, minority),
            difference=float(kappas[0]) - people_kappa,
            difference_influence=bounds.influence(kappas - subtracted),
            difference_bounds=support.score_bounds(kappas - subtracted, effective, subtracted),
            margin=share * people_kappa if share else self.margin, margin_share=share,
            kappas=kappas, is_constant=len(np.unique(codes[units])) < 2,
            best_baseline_kappa=best_baseline_kappa,
            baseline_bounds=support.score_bounds(kappas, effective),
            n_people=len(overlap.raters), people_kappa=people_kappa,
            people_differ=(n_differ, n - n_differ), people_variance=variance,
            people_influence=bounds.influence(people_kappas),
            chance_agreement=float((label_shares**2).sum()),
        )  # fmt: skip


@dataclass(frozen=True)
class Support:
    """Support of the score bounds of one grader's kappa, or of the difference of two graders'. A
    *point* is what a row of the jackknife leaves out: a cluster or, of very many, a group of them.
    The observed points come first. The same points follow with every other label that a grader
    could have given: errors that have not occurred yet. These weigh half a cluster in all
    (`bounds.PSEUDO`), less if clusters are large.

    `sums` (points, tables, 2 + 2q) are what each point adds to each table with a grader: its size,
    the summed distance of labels, and both raters' counts of the q labels (`bounds.table_sums`).
    `weights` (points,) are the points' weights, `distance` (q, q) the distances of labels.
    `clusters` (observed points,) number the jackknife's rows that leave these out, from 0.
    """

    sums: Array
    weights: Array
    distance: Array
    clusters: Codes
    n_graders: int

    @classmethod
    def of(cls, overlap: Overlap, jackknife: Resamples, graders: Sequence[int]) -> Support:
        """Return the support for graders on these units; for two, of the first minus the second."""
        coded, clusters_per_point = overlap.coded, jackknife.clusters_in_row
        weight = np.ones(jackknife.n_types) if jackknife.weight is None else jackknife.weight

        def table_sums(codes: Codes) -> Array:
            by_cluster = overlap.sums_with_rater(codes) * weight[:, None, None]
            return jackknife.omitted_sums(by_cluster)  # a point: the clusters that a row leaves out

        graders_codes = [coded.codes[:, grader].astype(np.intp) for grader in graders]
        graders_sums = [table_sums(codes) for codes in graders_codes]
        observed = np.concatenate(graders_sums, axis=1)
        clusters = np.flatnonzero(observed.any(axis=(1, 2)))
        unobserved = []
        step = max(round((coded.q - 1) / 10), 1) if coded.is_number else 1  # a tenth of the numbers
        counts = label_counts(coded, overlap.raters)
        for label in unseen_labels(counts, ordered=coded.level != "nominal", step=step):
            for changed, codes in enumerate(graders_codes):  # one grader's labels are changed
                all_sums = [*graders_sums]
                all_sums[changed] = table_sums(np.where(codes >= 0, label, -1))
                mean_change = (np.concatenate(all_sums, axis=1) - observed) / clusters_per_point
                # Of a group of clusters only one changes.
                unobserved.append((observed + mean_change)[clusters])
        n_observed, n_unobserved = len(clusters), len(clusters) * len(unobserved)
        # Column 0 is a table's size. Units, and so clusters, count once for each grader.
        n_clusters = max(len(graders) * clusters_per_point * n_observed, 1.0)
        units_per_cluster = max(observed[..., 0].sum() / n_clusters, 1.0)
        # In all, the geometric mean of the weights of half a cluster and of half a unit.
        pseudo_weight = bounds.PSEUDO / math.sqrt(units_per_cluster) / max(n_unobserved, 1)
        weights = np.concatenate([np.ones(n_observed), np.full(n_unobserved, pseudo_weight)])
        points = np.concatenate([observed[clusters], *unobserved])
        return cls(points, weights, measurement_of(coded).distances, clusters, len(graders))

    def score_bounds(
        self, values: Array, effective: float, subtracted: Array | None = None
    ) -> ScoreBounds:
        """Return the bounds of the mean kappa of these tables minus `subtracted`, which does not
        depend on the grader's labels. `values` (rows,) are the difference, `subtracted` (rows,) its
        second term, for all data and without each cluster; `effective` counts effective clusters.
        """
        # Row 0 of the jackknife has all data; `clusters` counts from the row after it.
        rows, n = np.concatenate([[0], 1 + self.clusters]), len(self.clusters)
        linear = np.zeros(len(self.weights))  # the points' values, whose mean is added to kappa
        if subtracted is not None and n:
            # As a mean over points, `subtracted` is the estimate plus each point's influence. The
            # points with other labels of the grader repeat the n observed points and their values.
            by_point = subtracted[0] + bounds.influence(subtracted[rows])
            linear -= np.tile(by_point, len(self.weights) // n)
        statistic = bounds.Kappas(self.sums, self.distance, linear, self.weights, self.n_graders)
        observed = np.where(np.arange(len(self.weights)) < n, 1.0 / max(n, 1), 0.0)
        point_influence = statistic.at(observed)[1]  # a linear approximation of the jackknife's
        spread = float(np.sqrt((observed * point_influence**2).sum()))
        stretch = 1.0  # the jackknife's spread divided by that of the approximation, if above 1
        if n > 1 and spread > _MIN_SPREAD:
            stretch = max(float(bounds.influence(values[rows]).std(ddof=1)) / spread, 1.0)
        sample = bounds.Sample(np.array(values[0]), n, effective, np.array(stretch))
        return ScoreBounds(statistic, sample)


def _variance_over_people(overlap: Overlap, jackknife: Resamples, codes: Codes) -> float:
    """Return the jackknife variance over people of the difference between the grader's kappa, with
    labels `codes` (units,), and people's; NaN for fewer than three people.

    A person with tables of their own is left out by leaving out these tables. For a person who
    shares a table, its sums are computed again without that person's labels.
    """
    pairs = list(combinations(range(len(overlap.individual)), 2))
    if len(overlap.raters) < 3:
        return math.nan

    def total_sums(overlap: Overlap, codes: Codes, weights: Array) -> tuple[Array, Array]:
        """Return sums over clusters of the tables with the grader, and of those among people."""
        by_cluster = overlap.sums_with_rater(codes), overlap.sums_among()
        return np.tensordot(weights, by_cluster[0], 1), np.tensordot(weights, by_cluster[1], 1)

    cluster_weights = jackknife.mass.astype(float)  # frequencies times sampling weights
    with_grader, among = total_sums(overlap, codes, cluster_weights)
    distance, differences = measurement_of(overlap.coded).distances, []
    # The tables in `among` (`Overlap.sums_among`): of each pair in `pairs`; then, if some people
    # share a table, of each person in `overlap.individual` with them, and last of them alone.
    n_shared = len(among) - len(pairs)
    for left_out in range(len(overlap.individual)):
        other_people = np.arange(len(with_grader)) != left_out
        other_pairs = np.array([left_out not in pair for pair in pairs], dtype=bool)
        other_tables = np.concatenate([other_pairs, np.arange(n_shared) != left_out])
        differences.append(_difference(with_grader[other_people], among[other_tables], distance))
    unit_weights = cluster_weights[overlap.coded.clusters]
    for rater in overlap.pooled:
        units = np.flatnonzero(overlap.units & overlap.coded.labelled[:, rater])
        part = overlap.on_units(units)
        before = total_sums(part, codes[units], unit_weights[units])
        after = total_sums(part.without(rater), codes[units], unit_weights[units])
        sums = with_grader + after[0] - before[0], among + after[1] - before[1]
        differences.append(_difference(*sums, distance))
    defined = np.array([difference for difference in differences if math.isfinite(difference)])
    n = len(defined)
    return (n - 1) / n * float(((defined - defined.mean()) ** 2).sum()) if n > 2 else math.nan


def _difference(with_grader: Array, among: Array, distance: Array) -> float:
    """Return the mean kappa of tables with the grader minus that among people, (tables, 2 + 2q)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no person left to compare: undefined
        kappa, people_kappa = (bounds.kappas_of(sums, distance)[0] for sums in (with_grader, among))
        return float(kappa - people_kappa)


def _minority_clusters(overlap: Overlap, jackknife: Resamples, sizes: Array, label: int) -> float:
    """Return the effective number of clusters in which a person gave another label than the most
    frequent one (the code `label`), as a mean over people. People who share a table count as one,
    by their majority. `sizes` (clusters,) are the clusters' weights.
    """
    coded = overlap.coded
    codes = np.where(overlap.units[:, None], coded.codes[:, list(overlap.raters)], -1)
    labelled = codes >= 0
    in_minority = labelled & (codes != label)
    n_individual = len(overlap.individual)
    masks = list(in_minority[:, :n_individual].T)
    if overlap.pooled:
        n_minority = in_minority[:, n_individual:].sum(axis=1)
        masks.append(2 * n_minority > labelled[:, n_individual:].sum(axis=1))
    by_cluster = jackknife.cluster_sums(coded.clusters, np.array(masks, dtype=float).T)
    minority_sizes = [sizes[mask] for mask in jackknife.each_cluster(by_cluster).T > 0]
    effective = [effective_size(part) if part.any() else 0.0 for part in minority_sizes]
    return float(np.mean(effective)) if effective else 0.0  # by person
