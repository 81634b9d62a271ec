"""A grader compared with people: estimates, and how far they may lie from the truth.

Both sides are computed on the same units with the same weights (`analysis.agreement.pairs`).

For a verdict the rubric's categories decide, and binary labels where a grader gives none. A
grader with probabilities is compared once more, at thresholds tuned on other clusters.
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
from evenhand.analysis.bootstrap.bounds import (
    PSEUDO,
    Kappas,
    Sample,
    both_bounds,
    chance_above,
    influence,
    kappas_of,
    lower_bound,
)
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, effective_size
from evenhand.analysis.people.comparison import with_and_among_humans
from evenhand.analysis.requirement import MAX_GROWTH, ClusterCounts
from evenhand.analysis.statistics import Remark
from evenhand.analysis.thresholds.tuning import (
    has_both,
    held_out_views,
    human_majority,
    probability_graders,
    with_verdicts,
)
from evenhand.analysis.types import Array, Codes, Mask, Numbers
from evenhand.study.settings.analysis import MOST_OF_PEOPLE

HELD_OUT, UNTUNED = "held_out", "untuned"
TUNED_FOR = "kappa"


@dataclass(frozen=True)
class Reading:
    """A view of one grader's labels together with all other raters'; `at` tells several apart."""

    coded: Coded
    grader: int
    at: str = ""
    counts_once: bool = True
    """False for a second view of the same labels, with which the level is not shared."""

    @property
    def view(self) -> tuple[str, str, str]:
        """The grader, and which view of its labels this is: subset and `at`."""
        return self.coded.raters[self.grader], self.coded.subset, self.at

    @property
    def key(self) -> dict[str, str]:
        """The key of the rows that compare this grader with people."""
        grader, subset, at = self.view
        return {"rater_a": "humans", "rater_b": grader, "subset": subset, "at": at}


def readings_of(labels: LabelMatrix) -> Iterator[Reading]:
    """Yield the views of every grader's labels that verdicts use."""
    verdicts = labels.on_verdicts() if labels.has_verdicts else None
    categories = labels.on_categories()
    tunable = probability_graders(labels) if verdicts is not None else []
    majority = human_majority(labels).verdicts
    for grader in labels.models:
        gives_categories = (labels.codes[:, grader] >= 0).any()
        if gives_categories or verdicts is None:
            yield Reading(categories, grader)
        elif labels.raters[grader] not in labels.scale.tunings:
            yield Reading(verdicts, grader)
        else:
            # Verdicts at a tuned threshold are compared below. Those at the untuned one were a
            # comparison too, before it was tuned.
            yield Reading(verdicts, grader, counts_once=False)
            held = ~np.isnan(labels.positive[:, grader])
            usual = labels.scale.untuned_threshold_for(labels.raters[grader])
            above = labels.positive[held, grader] >= usual
            yield Reading(with_verdicts(verdicts, grader, held, above), grader, UNTUNED)
        if verdicts is None or grader not in tunable or not has_both(labels, grader, majority):
            continue
        name = labels.raters[grader]
        if name in labels.scale.tunings:  # no verdict is made by what was tuned on it
            yield Reading(verdicts, grader, HELD_OUT)
            continue
        default = labels.scale.threshold_for(name)
        retuned = held_out_views(labels, verdicts, grader, majority, default)
        if TUNED_FOR in retuned:
            yield Reading(retuned[TUNED_FOR], grader, HELD_OUT)


def if_wrong(labels: LabelMatrix, reading: Reading, mass: Numbers) -> Reading | None:
    """The same view with every missing answer of the grader as wrong as can be: the label furthest
    from those of the unit's annotators; None where no answer is missing.

    `mass` (clusters,) is how much each cluster counts. It spends no level: it says what answers
    that were not given could change about a comparison that is made anyway.
    """
    coded, grader = reading.coded, reading.grader
    people = list(coded.people_beside(grader))
    missing = labels.assigned_to(grader) & ~labels.scored[:, grader] & coded.labelled_by_any(people)
    if not missing.any():
        return None
    codes = coded.codes.copy()
    codes[missing, grader] = _furthest(coded, people, missing, mass[coded.clusters])
    return replace(reading, coded=replace(coded, codes=codes), counts_once=False)


def _furthest(coded: Coded, people: Sequence[int], units: Mask, mass: Numbers) -> Codes:
    """The label of each of the `units` (chosen units,) furthest on average from those that `people`
    gave it: the one that fewest of them chose, or an end of an ordered scale. Of several the one
    nearest to what they say elsewhere: the more frequent a wrong label is, the more agreement is
    due to chance, and the lower is kappa. `mass` (units,) is how much each unit counts.
    """
    values = np.asarray(coded.values)
    if coded.level == "nominal":
        ends, apart = np.arange(coded.q), 1.0 - np.eye(coded.q)
    else:
        ends = np.array([values.argmin(), values.argmax()])
        apart = np.abs(values[ends][:, None] - values)
    distance = label_counts(coded.only(units, coded.subset), people) @ apart.T
    codes = coded.codes[:, people].astype(np.intp)
    given = sum(np.bincount(column[column >= 0], mass[column >= 0], coded.q) for column in codes.T)
    usual = np.broadcast_to(apart @ given, distance.shape)
    return np.asarray(ends[np.lexsort((-usual, distance))[:, -1]])


_VARIES = 1e-9
"""More standard deviation than rounding leaves."""


@dataclass(frozen=True)
class AtNull:
    """A statistic of a grader, bounded at the null (`analysis.bootstrap.bounds`)."""

    statistic: Kappas
    sample: Sample

    def reach(self, alpha: float) -> tuple[float, float]:
        """Return the distances of both bounds from the estimate: (below, above), NaN where
        undefined.
        """
        estimate = float(self.sample.estimate)
        if self.statistic.is_empty:
            return math.nan, math.nan
        low, high = both_bounds(self.statistic, self.sample, alpha).tolist()
        return estimate - low, high - estimate

    def bounded(self, estimate: float, alpha: float) -> Interval:
        """Return what `around` does, where the estimate is defined and some level is left."""
        if math.isnan(estimate):
            return Interval.undefined("too_few_raters")
        if not alpha:
            return Interval(estimate, math.nan, math.nan, (Remark("no_level"),))
        return self.around(estimate, alpha)

    def around(self, estimate: float, alpha: float) -> Interval:
        """Return an estimate with both one-sided bounds of the statistic around it."""
        below, above = self.reach(alpha)
        return Interval(estimate, estimate - below, estimate + above)

    def mirrored(self) -> AtNull:
        """The negative of the statistic: its lower bound is this one's upper bound."""
        sample = replace(self.sample, estimate=-self.sample.estimate)
        of = self.statistic
        return AtNull(replace(of, sign=-of.sign, linear=-of.linear), sample)

    def chance_above(self, null: float) -> float:
        """The approximate probability that the statistic is above a value."""
        if self.statistic.is_empty:
            return math.nan
        return float(chance_above(self.statistic, self.sample, np.array(null)))

    def growth(self, null: float, alpha: float) -> float:
        """Factor by which the sample must grow for its lower bound to be above a value, if all else
        stays the same; infinite where it is not realistic.
        """
        if not float(self.sample.estimate) > null or not alpha > 0:
            return math.inf

        def is_enough(factor: float) -> bool:
            sample, statistic = self.sample, self.statistic
            seen = statistic.base >= 1.0
            grown = replace(statistic, base=np.where(seen, factor, 1.0) * statistic.base)
            clusters, effective = factor * sample.clusters, factor * sample.effective_clusters
            many = replace(sample, clusters=clusters, effective_clusters=effective)
            return float(lower_bound(grown, many, alpha)) > null

        low, high = 1.0, 1.0
        while not is_enough(high):
            if high >= 1.0 + MAX_GROWTH:
                return math.inf
            low, high = high, min(2.0 * high, 1.0 + MAX_GROWTH)
        while high > low * 1.02:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high


@dataclass(frozen=True)
class Comparison:
    """A grader compared with people on one label view.

    `difference` is its kappa with people minus theirs with one another, compared with `margin`, or
    with this `share` of their kappa; `difference_influence` (clusters,) is that on what is tested,
    `below_people` bounds it at the null. `kappas` (rows,) are its kappa in the data and without
    each cluster, and `above_baseline` bounds it above the better baseline's.
    `people_kappa` is that of the `people` (their number) with one another, with the influence of
    each cluster on it (clusters,); `people_variance` is that of the difference over people, NaN for
    fewer than three or if not asked for. `sample.minority` counts clusters in which a person chose
    another category than the commonest; `chance` is the chance agreement that shares like people's
    imply. `units` (units,) are those compared; `pooled` is True where people with few labels share
    a table.
    """

    reading: Reading
    counts: tuple[int, int]
    sample: ClusterCounts
    difference: float
    difference_influence: Array
    margin: float
    share: float
    below_people: AtNull
    kappas: Array
    best_baseline_kappa: float
    above_baseline: AtNull
    people: int
    people_kappa: float
    people_influence: Array
    people_variance: float
    chance: float
    constant: bool
    units: Mask
    pooled: bool

    @property
    def baseline_difference(self) -> float:
        """Kappa minus the better baseline's."""
        return float(self.kappas[0]) - self.best_baseline_kappa

    @property
    def null(self) -> float:
        """Value of the tested quantity if the grader lies below people by exactly the margin."""
        return float(self.below_people.sample.estimate) - self.difference - self.margin

    @cached_property
    def chance_within(self) -> float:
        """The approximate probability that the grader is within the margin."""
        return self.below_people.chance_above(self.null)


@dataclass(frozen=True)
class Comparator:
    """Compare graders with people, in the data and without each cluster (`left_out`). `margin` is
    how far below people they may lie, or else `margin_share` of people's own kappa. With `least` =
    1 units with one person's label count too, and people are not compared with one another.
    """

    left_out: Resamples
    margin: float
    margin_share: float = 0.0
    least: int = 2
    _known: dict[tuple[str, tuple[str, ...]], KappaMeans] = field(default_factory=dict)

    def compared(
        self, reading: Reading, best_baseline_kappa: float = 0.0, *, over_people: bool = True
    ) -> Comparison | None:
        """Compare one label view of a grader with people, with the variance `over_people` if it is
        asked for; None where they share too few units.
        """
        coded, grader, left_out = reading.coded, reading.grader, self.left_out
        key = coded.subset, coded.kinds  # people's labels are the same in all views of one name
        if key not in self._known:
            self._known[key] = KappaMeans(coded, left_out, [deciding_kappa(coded)])
        kappas = self._known[key]
        units, mean, people = with_and_among_humans(kappas, coded, grader, self.least)
        if mean is None:
            return None
        with_people = mean.values
        among = people.values if people else np.full(len(with_people), np.nan)
        people_kappa, share = float(among[0]), self.margin_share
        if not share and self.margin > MOST_OF_PEOPLE * people_kappa > 0:
            share = MOST_OF_PEOPLE
        tested = with_people - (1.0 - share) * among
        # The weight of each cluster: the number of its units times its sampling weight.
        sizes = left_out.by_cluster(coded.clusters, units[:, None].astype(float))[:, 0]
        overlap = Overlap.of(coded, left_out, coded.people_beside(grader), units)
        points = Points.of(overlap, left_out, [grader])
        minority, chance = _minority(overlap, left_out, sizes)
        worth = effective_size(sizes) if sizes.any() else 0.0
        counts = left_out.count(coded.clusters, units)
        grades = coded.codes[:, grader].astype(np.intp)
        return Comparison(
            reading=reading,
            counts=counts,
            sample=ClusterCounts(counts[1], worth, minority),
            difference=float(with_people[0]) - people_kappa,
            difference_influence=influence(tested),
            margin=share * people_kappa if share else self.margin,
            share=share,
            below_people=points.at_null(tested, worth, (1.0 - share) * among),
            kappas=with_people,
            best_baseline_kappa=best_baseline_kappa,
            above_baseline=points.at_null(with_people, worth),
            people=len(overlap.raters),
            people_kappa=people_kappa,
            people_influence=influence(among),
            people_variance=_over_people(overlap, left_out, grades) if over_people else math.nan,
            chance=chance,
            constant=len(np.unique(coded.codes[units, grader])) < 2,
            units=units,
            pooled=mean.pooled,
        )


@dataclass(frozen=True)
class Points:
    """Data that the kappas of one grader or two are computed from: the clusters that they labelled
    (or groups of many, the `rows` of the jackknife) as they are and with every other label by a
    grader: `sums` (points, tables, 2 + 2q), each point with its weight.
    """

    sums: Array
    weights: Array
    distance: Array
    rows: Codes
    graders: int

    @classmethod
    def of(cls, overlap: Overlap, left_out: Resamples, graders: Sequence[int]) -> Points:
        """Return the points of graders on these units; of two, of the first minus the other."""
        coded, n = overlap.coded, left_out.n_types
        mass = np.ones(n) if left_out.weight is None else left_out.weight

        def sums(grades: Codes) -> Array:
            return left_out.each_row(overlap.sums_with_rater(grades) * mass[:, None, None])

        labels = [coded.codes[:, grader].astype(np.intp) for grader in graders]
        as_given = [sums(grades) for grades in labels]
        seen = np.concatenate(as_given, axis=1)
        rows = np.flatnonzero(seen.any(axis=(1, 2)))
        unseen = []
        step = max(round((coded.q - 1) / 10), 1) if coded.is_number else 1  # a tenth of the numbers
        counts = label_counts(coded, overlap.raters)
        for other in unseen_labels(counts, ordered=coded.level != "nominal", step=step):
            for which, grades in enumerate(labels):
                changed = [*as_given]
                changed[which] = sums(np.where(grades >= 0, other, -1))
                moved = (np.concatenate(changed, axis=1) - seen) / left_out.clusters_in_row
                unseen.append((seen + moved)[rows])
        count, others = len(rows), max(len(rows) * len(unseen), 1)
        clusters = max(len(labels) * left_out.clusters_in_row * count, 1.0)
        pseudo = PSEUDO / math.sqrt(max(seen[..., 0].sum() / clusters, 1.0))  # units of a cluster
        weights = np.concatenate([np.ones(count), np.full(count * len(unseen), pseudo / others)])
        points = np.concatenate([seen[rows], *unseen])
        return cls(points, weights, measurement_of(coded).distances, rows, len(labels))

    def at_null(self, values: Array, worth: float, linear: Array | None = None) -> AtNull:
        """A statistic of these tables, minus what is `linear` in the clusters' weights. Both are
        given in the data and without each cluster (rows,); `worth` is the effective number of
        clusters.
        """
        kept, n = np.concatenate([[0], 1 + self.rows]), len(self.rows)
        minus = np.zeros(len(self.weights))
        if linear is not None and n:
            minus -= np.tile(linear[0] + influence(linear[kept]), len(self.weights) // n)
        statistic = Kappas(self.sums, self.distance, minus, self.weights, self.graders)
        data = np.where(np.arange(len(self.weights)) < n, 1.0 / max(n, 1), 0.0)
        spread = float(np.sqrt((data * statistic.at(data)[1] ** 2).sum()))
        stretch = 1.0
        if n > 1 and spread > _VARIES:
            stretch = max(float(influence(values[kept]).std(ddof=1)) / spread, 1.0)
        return AtNull(statistic, Sample(np.array(values[0]), n, worth, np.array(stretch)))


def _over_people(overlap: Overlap, left_out: Resamples, grades: Codes) -> float:
    """Variance of the difference over people, each left out in turn; NaN for fewer than three.
    Without someone apart, their tables go. Without someone who shares a table, the weight of the
    units that they labelled goes to the other labels there.
    """
    people, among = overlap.raters, list(combinations(range(len(overlap.individual)), 2))
    if len(people) < 3:
        return math.nan
    mass = left_out.mass.astype(float)

    def totals(part: Overlap, given: Codes, weight: Array) -> tuple[Array, Array]:
        sums = part.sums_with_rater(given), part.sums_among()
        return np.tensordot(weight, sums[0], 1), np.tensordot(weight, sums[1], 1)

    whole = totals(overlap, grades, mass)
    distance, without = measurement_of(overlap.coded).distances, []
    for n in range(len(overlap.individual)):
        others = np.arange(len(whole[0])) != n
        pairs = np.array([n not in pair for pair in among], dtype=bool)
        shared = np.arange(len(whole[1]) - len(among)) != n
        kept = np.concatenate([pairs, shared])
        without.append(_difference(whole[0][others], whole[1][kept], distance))
    weight = left_out.mass[overlap.coded.clusters].astype(float)
    for rater in overlap.pooled:
        units = np.flatnonzero(overlap.units & overlap.coded.labelled[:, rater])
        part, given, of_units = overlap.on_units(units), grades[units], weight[units]
        before, after = totals(part, given, of_units), totals(part.without(rater), given, of_units)
        with_people, rest = (
            total + now - was for total, was, now in zip(whole, before, after, strict=True)
        )
        without.append(_difference(with_people, rest, distance))
    defined = np.array([difference for difference in without if math.isfinite(difference)])
    m = len(defined)
    return (m - 1) / m * float(((defined - defined.mean()) ** 2).sum()) if m > 2 else math.nan


def _difference(with_people: Array, among: Array, distance: Array) -> float:
    """Mean kappa of one set of tables, given as sums (tables, 2 + 2q), minus that of another."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no person left to compare: undefined
        return float(kappas_of(with_people, distance)[0] - kappas_of(among, distance)[0])


def _minority(overlap: Overlap, left_out: Resamples, sizes: Array) -> tuple[float, float]:
    """(effective number of the clusters, of these `sizes`, in which a person chose another category
    than the commonest, mean over people, those who share a table counting as one by their majority;
    the agreement that people's shares of the categories would bring by chance).
    """
    coded = overlap.coded
    codes = np.where(overlap.units[:, None], coded.codes[:, list(overlap.raters)], -1)
    mass = left_out.mass[coded.clusters].astype(float)
    shares = mass @ label_counts(replace(coded, codes=codes), range(codes.shape[1]))
    labelled = codes >= 0
    other = labelled & (codes != shares.argmax())
    apart = len(overlap.individual)
    masks = list(other[:, :apart].T)
    if overlap.pooled:
        masks.append(2 * other[:, apart:].sum(axis=1) > labelled[:, apart:].sum(axis=1))
    held = left_out.cluster_sums(coded.clusters, np.array(masks, dtype=float).T)
    clusters = left_out.each_cluster(held).T > 0
    numbers = [effective_size(sizes[inside]) if sizes[inside].any() else 0.0 for inside in clusters]
    shares = shares / max(shares.sum(), 1.0)
    return float(np.mean(numbers)) if numbers else 0.0, float((shares**2).sum())
