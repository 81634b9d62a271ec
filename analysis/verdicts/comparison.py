"""Compare a grader with people: estimates, and bounds on them for a verdict.

1. `grader_views` yields the labels on which each grader is compared, as a `GraderView`.
2. `Comparator.compare` turns a view into a `Comparison`. Grader-human and human-human kappa are
   computed on the same units with the same weights (`analysis.agreement.pairs`).
3. `ScoreBounds` bound these kappas, from a `Support`: the clusters as observed, and the same
   clusters with other labels that the grader could have given (`analysis.bootstrap.bounds`).

A grader has a *table* of labels with each person, people one with each other. Some people share a
*pooled* table, as they labelled few units; others have *individual* ones (see `Overlap`). All that
kappa depends on are a table's *sums*, (2 + 2q): its size, the summed distance of both raters'
labels, and each rater's numbers of the q labels (`bounds.table_sums`).

Clusters are left out one at a time (jackknife). Arrays of (rows,) have the value in all data first,
then the values without each cluster.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

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
from evenhand.study.settings.analysis import MAX_MARGIN_SHARE, Scope

HELD_OUT = "held_out"  # value of `at` for thresholds tuned on other clusters
UNTUNED = "untuned"  # value of `at` for a rubric's threshold before tuning
TUNED_FOR = "kappa"  # objective of the tuned thresholds that verdicts are based on


@dataclass(frozen=True)
class GraderView:
    """One grader's labels of one kind, such as binary ones, with those of the other raters."""

    coded: Coded
    grader: int  # its column in `coded`
    at: str = ""  # "" for labels as they are, else `HELD_OUT` or `UNTUNED`
    shares_level: bool = True  # it takes a part of the error rate (see `grader_views`)

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
    """Yield the views of every grader's labels that verdicts use:

    `at`       part  labels                                  of a grader with
    ""         yes   categories                              categories, or no binary labels at all
    ""         yes   binary, at its threshold                only probabilities, and no tuning
    ""         no    binary, at held-out thresholds          only probabilities, and tuning
    `UNTUNED`  yes   binary, at the threshold before tuning  only probabilities, and tuning
    `HELD_OUT` yes   binary, at held-out thresholds          probabilities that can be tuned

    A comparison that takes a *part* of the error rate leaves less of it to the others. `HELD_OUT`
    repeats the binary labels at "" after tuning, and takes the part for both. `UNTUNED` keeps the
    part that it had before tuning: a comparison that was made still counts as one.
    """
    binary = labels.on_binary() if labels.has_binary else None
    categories = labels.on_categories()
    tunable = tuning.probability_graders(labels) if binary is not None else []
    majority = tuning.human_majority(labels).verdicts  # binary labels, not verdicts on graders
    for grader in labels.models:
        name = labels.raters[grader]
        is_tuned = name in labels.scale.tunings
        if (labels.codes[:, grader] >= 0).any() or binary is None:
            yield GraderView(categories, grader)
        elif not is_tuned:
            yield GraderView(binary, grader)
        else:
            yield GraderView(binary, grader, shares_level=False)
            has_probability = ~np.isnan(labels.positive[:, grader])
            untuned = labels.scale.untuned_threshold_for(name)
            above = labels.positive[has_probability, grader] >= untuned
            coded = tuning.with_verdicts(binary, grader, has_probability, above)
            yield GraderView(coded, grader, UNTUNED)
        is_tunable = grader in tunable and tuning.has_both_verdicts(labels, grader, majority)
        if binary is None or not is_tunable:
            continue
        if is_tuned:
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
    the annotators' labels of that unit; None where no label is missing. It takes no part of the
    error rate: it is the worst case of a comparison made anyway. `cluster_weights` are (clusters,).
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
    else:  # the ends of the scale
        candidates = np.array([values.argmin(), values.argmax()])
        distance = np.abs(values[candidates][:, None] - values)
    # The summed distance of each candidate from the labels of a unit and of all, by candidate.
    from_unit = label_counts(coded.only(units, coded.subset), people) @ distance.T  # (units, ...)
    label_weights = np.zeros(coded.q)  # over all units
    for codes in coded.codes[:, people].astype(np.intp).T:
        label_weights += np.bincount(codes[codes >= 0], weights[codes >= 0], coded.q)
    from_all = np.broadcast_to(distance @ label_weights, from_unit.shape)
    ascending = np.lexsort((-from_all, from_unit))  # by `from_unit`, then the nearest to all last
    return np.asarray(candidates[ascending[:, -1]])


@dataclass(frozen=True)
class Support:
    """The points whose weights score bounds vary, for one grader's kappa with people, or for the
    difference of two graders' kappas.

    A *point* is what a row of the jackknife leaves out: a cluster or, of very many clusters, a
    group of them. First come the observed points. The same points follow, once for each other label
    that a grader could have given: errors that have not occurred yet.
    """

    sums: Array  # of each point in people's tables with a grader, (points, tables, 2 + 2q)
    weights: Array  # of the points, (points,)
    distance: Array  # of two labels, (q, q)
    row_without: Codes  # jackknife row, from 0, that leaves out each observed point, (observed,)
    n_graders: int  # 2: the tables of the first come first, and kappa is theirs minus the second's

    @classmethod
    def of(cls, overlap: Overlap, jackknife: Resamples, graders: Sequence[int]) -> Support:
        """Return the support for graders (columns) on the units of their `overlap` with people."""
        coded, clusters_per_point = overlap.coded, jackknife.clusters_in_row
        weight = np.ones(jackknife.n_types) if jackknife.weight is None else jackknife.weight

        def sums_of(codes: Codes) -> Array:
            """Return the sums of what each row leaves out, (jackknife rows, tables, 2 + 2q)."""
            return jackknife.to_left_out(overlap.sums_with_rater(codes) * weight[:, None, None])

        graders_codes = [coded.codes[:, grader].astype(np.intp) for grader in graders]
        graders_sums = [sums_of(codes) for codes in graders_codes]
        in_rows = np.concatenate(graders_sums, axis=1)
        row_without = np.flatnonzero(in_rows.any(axis=(1, 2)))  # points without labels are none
        observed = in_rows[row_without]
        unobserved = []
        step = max(round((coded.q - 1) / 10), 1) if coded.is_number else 1  # a tenth of the numbers
        counts = label_counts(coded, overlap.raters)
        for label in unseen_labels(counts, ordered=coded.level != "nominal", step=step):
            for position, codes in enumerate(graders_codes):  # the grader whose labels change
                sums = [*graders_sums]
                sums[position] = sums_of(np.where(codes >= 0, label, -1))
                change = np.concatenate(sums, axis=1)[row_without] - observed
                # In a point that is a group, only one of its clusters changes.
                unobserved.append(observed + change / clusters_per_point)
        n_observed, n_unobserved = len(row_without), len(row_without) * len(unobserved)
        # Sum 0 is a table's size. Units, and so clusters, count once for each grader.
        n_clusters = max(len(graders) * clusters_per_point * n_observed, 1.0)
        units_per_cluster = max(in_rows[..., 0].sum() / n_clusters, 1.0)
        # All unobserved points together weigh less than half a cluster (`PSEUDO`), which supposes
        # equal labels in a cluster, and more than half a unit, which supposes independent ones, by
        # the same factor: with m units in a cluster `PSEUDO` / sqrt(m).
        pseudo_weight = bounds.PSEUDO / math.sqrt(units_per_cluster) / max(n_unobserved, 1)
        weights = np.concatenate([np.ones(n_observed), np.full(n_unobserved, pseudo_weight)])
        points = np.concatenate([observed, *unobserved])
        return cls(points, weights, measurement_of(coded).distances, row_without, len(graders))

    def score_bounds(
        self, values: Array, effective: float, subtracted: Array | None = None
    ) -> ScoreBounds:
        """Return the bounds of the statistic `values` (rows,): mean kappa of the tables, or that
        minus `subtracted` (rows,), such as people's kappa, which the grader's labels cannot change.
        `effective` is the effective number of clusters.
        """
        n_observed, n_points = len(self.row_without), len(self.weights)
        rows = np.concatenate([[0], 1 + self.row_without])  # row 0 has all data
        # A value of each point, of which `Kappas` adds the weighted mean: the negated sum of the
        # estimate of `subtracted` and the point's influence on it. The grader's labels change
        # neither, so that each repetition of the observed points has the same values.
        linear = np.zeros(n_points)
        if subtracted is not None and n_observed:
            by_point = subtracted[0] + bounds.influence(subtracted[rows])
            linear -= np.tile(by_point, n_points // n_observed)
        statistic = bounds.Kappas(self.sums, self.distance, linear, self.weights, self.n_graders)
        # Standard errors are computed from the points' influence, a linear approximation. If the
        # jackknife's `values` deviate more than that does in the data, they are stretched.
        data = np.where(np.arange(n_points) < n_observed, 1.0 / max(n_observed, 1), 0.0)  # weights
        deviation = float(np.sqrt((data * statistic.at(data)[1] ** 2).sum()))  # of the influence
        stretch = 1.0
        if n_observed > 1 and deviation > 1e-9:  # else rounding errors
            stretch = max(float(bounds.influence(values[rows]).std(ddof=1)) / deviation, 1.0)
        sample = bounds.Sample(np.array(values[0]), n_observed, effective, np.array(stretch))
        return ScoreBounds(statistic, sample)


@dataclass(frozen=True)
class ScoreBounds:
    """Score bounds of a mean kappa or a difference of kappas: the values that a test just rejects,
    by the variance under the tested value. `statistic` is a function of the weights of the points
    of a `Support`; `sample` has its estimate in the data, and the numbers of clusters.
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
        """Return `estimate` with both one-sided bounds, at the distances of the statistic's bounds.
        It may be the statistic minus a constant, such as the lead of kappa over a baseline's kappa.
        """
        below, above = self.reach(alpha)
        return Interval(estimate, estimate - below, estimate + above)

    def negated(self) -> ScoreBounds:
        """Return the bounds of the negative statistic: lower bounds then test from above, too."""
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
            # Observed points weigh 1 (`Support`); unobserved ones weigh less, and do not grow.
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
    """A grader compared with people on one label view; influences are (clusters,).

    With grader-human kappa k, human-human kappa K and a margin that is the share s of K, the
    *tested quantity* is k - (1 - s) K = (k - K) + s K, so that the error of K in the margin counts,
    too. It is the difference k - K if the margin is a fixed number (s = 0). Where the difference is
    exactly -`margin`, the tested quantity is s K - `margin`, the `null` of the tests.
    """

    view: GraderView
    units: Mask  # (units,), the units compared
    counts: tuple[int, int]  # numbers of these units and of their clusters
    sample: ClusterCounts  # clusters: all, effective, and with a minority label
    kappas: Array  # k, (rows,)
    kappa_bounds: ScoreBounds  # of k, and so of its lead over the better baseline
    best_baseline_kappa: float
    people_kappa: float  # K
    people_influence: Array  # of K
    difference: float  # k - K
    people_variance: float  # of the difference, over people; NaN for under three, or not requested
    margin: float  # how far the difference may lie below 0
    margin_share: float  # s; 0 for a fixed margin
    tested_influence: Array  # of the tested quantity
    tested_bounds: ScoreBounds  # of the tested quantity
    n_people: int
    is_pooled: bool  # some people share a table
    clusters_differing: int  # clusters with a unit on which people differ
    clusters_alike: int  # other clusters with a unit that two people labelled
    chance_agreement: float  # of two raters with people's shares of the labels
    is_constant: bool  # the grader gave one label only

    @property
    def baseline_difference(self) -> float:
        """Kappa minus the better baseline's."""
        return float(self.kappas[0]) - self.best_baseline_kappa

    @property
    def null(self) -> float:
        """Value of the tested quantity if the difference is -`margin`: s K - `margin`."""
        share_of_kappa = float(self.tested_bounds.sample.estimate) - self.difference  # s K
        return share_of_kappa - self.margin

    @cached_property
    def chance_within(self) -> float:
        """Approximate probability that the grader is within the margin."""
        return self.tested_bounds.chance_above(self.null)

    def chance_within_for(self, scope: Scope) -> float:
        """Return `chance_within`, over people like these if a verdict has this `scope`."""
        if scope == "these" or math.isnan(self.people_variance):
            return self.chance_within
        distance, people = self.difference + self.margin, (self.people_variance, self.n_people)
        effective = self.sample.effective
        return bounds.chance_over_people(self.chance_within, distance, *people, effective)


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
        units, grader_mean, people_mean = with_and_among_humans(
            self._kappa_means[key], coded, grader, self.min_people
        )
        if grader_mean is None:
            return None
        kappas = grader_mean.values
        people_kappas = people_mean.values if people_mean else np.full(len(kappas), np.nan)
        people_kappa, margin_share = float(people_kappas[0]), self.margin_share
        if not margin_share and 0 < MAX_MARGIN_SHARE * people_kappa < self.margin:
            margin_share = MAX_MARGIN_SHARE  # a fixed margin is capped at this share
        subtracted = (1.0 - margin_share) * people_kappas
        tested_quantity = kappas - subtracted

        # People's labels
        overlap = Overlap.of(coded, jackknife, coded.humans_not_copied(grader), units)
        counts_by_label = label_counts(coded, overlap.raters)  # of people, (units, q)
        n_differ, n_alike = _differing_clusters(coded, jackknife, units, counts_by_label)
        unit_weights = jackknife.mass[coded.clusters].astype(float) * overlap.units
        label_weights = unit_weights @ counts_by_label
        label_shares = label_weights / max(label_weights.sum(), 1.0)

        # Numbers of clusters, each of which weighs its number of units times its sampling weight
        sizes = jackknife.sums_by_cluster(coded.clusters, units[:, None].astype(float))[:, 0]
        minority = _minority_clusters(overlap, jackknife, sizes, int(label_weights.argmax()))
        effective = effective_size(sizes) if sizes.any() else 0.0
        counts = jackknife.count(coded.clusters, units)

        # Bounds
        support = Support.of(overlap, jackknife, [grader])
        codes = coded.codes[:, grader].astype(np.intp)
        variance = _variance_over_people(overlap, jackknife, codes) if over_people else math.nan
        return Comparison(
            view=view, units=units, counts=counts,
            sample=ClusterCounts(counts[1], effective, minority),
            kappas=kappas, kappa_bounds=support.score_bounds(kappas, effective),
            best_baseline_kappa=best_baseline_kappa,
            people_kappa=people_kappa, people_influence=bounds.influence(people_kappas),
            difference=float(kappas[0]) - people_kappa, people_variance=variance,
            margin=margin_share * people_kappa if margin_share else self.margin,
            margin_share=margin_share, tested_influence=bounds.influence(tested_quantity),
            tested_bounds=support.score_bounds(tested_quantity, effective, subtracted),
            n_people=len(overlap.raters), is_pooled=grader_mean.pooled,
            clusters_differing=n_differ, clusters_alike=n_alike,
            chance_agreement=float((label_shares**2).sum()),
            is_constant=len(np.unique(codes[units])) < 2,
        )  # fmt: skip


def _differing_clusters(
    coded: Coded, jackknife: Resamples, units: Mask, counts_by_label: Array
) -> tuple[int, int]:
    """Return the number of clusters with a unit on which people differ, and that of other clusters
    with two people's labels of a unit, from people's `counts_by_label` (units, q). On an ordered
    scale all count as differing. `evidence._people_kappa` takes differences as equally large, which
    they are not there; the least value of people's kappa that it derives then has no effect.
    """
    has_two = units & (counts_by_label.sum(axis=1) > 1)
    differs = has_two & (((counts_by_label > 0).sum(axis=1) > 1) | (coded.level != "nominal"))
    n_differ = jackknife.count(coded.clusters, differs)[1]
    return n_differ, jackknife.count(coded.clusters, has_two)[1] - n_differ


def _variance_over_people(overlap: Overlap, jackknife: Resamples, codes: Codes) -> float:
    """Return the jackknife variance over people of the difference between the grader's kappa, with
    labels `codes` (units,), and people's; NaN for fewer than three people.

    A person with individual tables is left out by leaving out these. For a person who shares a
    table, its sums are computed again without that person's labels.
    """
    if len(overlap.raters) < 3:
        return math.nan

    def total_sums(overlap: Overlap, codes: Codes, weights: Array) -> tuple[Array, Array]:
        """Return sums over clusters, (tables, 2 + 2q), with the grader, and among people."""
        by_cluster = overlap.sums_with_rater(codes), overlap.sums_among()
        return np.tensordot(weights, by_cluster[0], 1), np.tensordot(weights, by_cluster[1], 1)

    cluster_weights = jackknife.mass.astype(float)  # frequencies times sampling weights
    with_grader, among = total_sums(overlap, codes, cluster_weights)
    distance, differences = measurement_of(overlap.coded).distances, []
    for person in overlap.individual:
        stay_with_grader, stay_among = overlap.tables_without(person)
        sums = with_grader[stay_with_grader], among[stay_among]
        differences.append(_kappa_minus_peoples(*sums, distance))
    unit_weights = cluster_weights[overlap.coded.clusters]
    for person in overlap.pooled:
        units = np.flatnonzero(overlap.units & overlap.coded.labelled[:, person])
        part = overlap.on_units(units)  # no other units change, so add the change in these
        before = total_sums(part, codes[units], unit_weights[units])
        after = total_sums(part.without(person), codes[units], unit_weights[units])
        sums = with_grader + after[0] - before[0], among + after[1] - before[1]
        differences.append(_kappa_minus_peoples(*sums, distance))
    defined = np.array([difference for difference in differences if math.isfinite(difference)])
    n = len(defined)
    return (n - 1) / n * float(((defined - defined.mean()) ** 2).sum()) if n > 2 else math.nan


def _kappa_minus_peoples(with_grader: Array, among: Array, distance: Array) -> float:
    """Return mean kappa of tables with the grader minus that of people's, each (tables, 2 + 2q)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no person left to compare: undefined
        kappa, people_kappa = (bounds.kappas_of(sums, distance)[0] for sums in (with_grader, among))
        return float(kappa - people_kappa)


def _minority_clusters(overlap: Overlap, jackknife: Resamples, sizes: Array, label: int) -> float:
    """Return the effective number of clusters in which a person gave another label than the most
    frequent one (the code `label`), as a mean over people. Those who share a table count as one
    person, who gives such a label where most of them do. `sizes` (clusters,) are cluster weights.
    """
    coded, n_individual = overlap.coded, len(overlap.individual)
    codes = np.where(overlap.units[:, None], coded.codes[:, list(overlap.raters)], -1)
    is_labelled = codes >= 0  # (units, people): first `individual`, then `pooled`
    in_minority = is_labelled & (codes != label)
    masks = list(in_minority[:, :n_individual].T)  # of units, by person
    if overlap.pooled:
        n_minority = in_minority[:, n_individual:].sum(axis=1)
        masks.append(2 * n_minority > is_labelled[:, n_individual:].sum(axis=1))
    n_units = jackknife.sums_by_type(coded.clusters, np.array(masks, dtype=float).T)
    minority_sizes = [sizes[mask] for mask in jackknife.to_clusters(n_units).T > 0]
    by_person = [effective_size(person) if person.any() else 0.0 for person in minority_sizes]
    return float(np.mean(by_person)) if by_person else 0.0
