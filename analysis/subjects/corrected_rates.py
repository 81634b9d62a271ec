"""Correct each subject's rate of affirmative verdicts, mean label and shares of classes for errors
of the grader that labelled the units.

All three are means of values from 0 to 1, with one estimator: a verdict (a label as yes or no) is 1
or 0, as is membership in a class; labels are rescaled to 0 to 1 (result rows: original scale). The
grader's value of a unit is its *grade*, people's mean value its *reference*. *Labelled* units have
both, the *rest* has only grades: `n_...` are numbers of units, `is_...` masks (units,). Arrays
(rows, ...) have the data in row 0, then its resamples.

A grader's errors bias its rate, however many units it grades. Two corrections use both parts:

- Rogan & Gladen (1978): sensitivity and specificity turn the grader's rate into people's,
  (rate + specificity - 1) / (sensitivity + specificity - 1). It holds where the grader's error
  rates are equal on both parts, whatever their prevalence.
- Prediction-powered inference (Angelopoulos et al. 2023a; PPI++ 2023b): people's own rate, plus a
  weight times the grader's rate on the rest minus that on the labelled units. With weight 1 that is
  PPI, with 0 people's rate alone; PPI++ takes the weight from 0 to 1 with the least variance. It
  holds for any grader if the labelled units are a random sample.

Both are functions of a few sums over units (`RateSums`), so that one bootstrap resamples labelled
and unlabelled units. A reference may lie between 0 and 1: a tied unit is half affirmed. All classes
have one weight on the grader, with the least total variance, so that their shares sum to one.

Rogan-Gladen uses the error rates on all subjects together, as one subject has only a few units of
the minority class. That is wrong where a grader errs differently on different subjects; error rates
by subject are reported, too. PPI++ is computed by subject and makes no such assumption.

*People's rate* is always the mean over units of the share of people who affirm the unit, as in
`subject_score` and `prevalence`. Unlike a rate of majority verdicts it has no ties, and does not
depend on how many people labelled a unit.

The module has the sums first, with estimates and intervals, then `rogan_gladen` and `ppi_plus_plus`
for arrays of users, then the functions that add rows of results: by subject (`add_corrected_rows`),
part of the sample, group of annotators, side of pairs and class. Last are spreads for planning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from evenhand.analysis.bootstrap import intervals
from evenhand.analysis.bootstrap.intervals import Interval, Reach, Z
from evenhand.analysis.bootstrap.resamples import Bootstrap, ratio
from evenhand.analysis.labels.encoding import check_same_length, cluster_codes, units_of_both_sides
from evenhand.analysis.labels.matrix import LabelMatrix, UnitColumn, sides_of
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.results import ResultRow, from_to
from evenhand.analysis.statistics import Note, Remark, join_notes
from evenhand.analysis.subjects import scores as subject_scores
from evenhand.analysis.types import Array, Clusters, Codes, Column, Mask
from evenhand.analysis.writer import About, Counts, RubricView, SampleSize, Writer
from evenhand.errors import InputError


class RateSums(NamedTuple):
    """Sums over units, each (rows, ...)."""

    n_labelled: Array  # number of units with a reference and a grade
    affirmed: Array  # references of these units
    graded: Array  # grades of these units
    products: Array  # reference x grade of these units
    n_rest: Array  # number of units with a grade only
    rest_graded: Array  # grades of the rest
    nonbinary: Array = np.zeros(1)  # grade x (1 - grade) of all units: 0 where grades are 0 or 1
    ddof: float = 0.0  # subtracted from n in the variance of grades: 1 for means, as in ppi_py

    @classmethod
    def of(cls, feature_sums: Array) -> RateSums:
        """Return the sums from those of `rate_features`, (..., 7), each as one field."""
        return cls(*np.moveaxis(feature_sums, -1, 0))

    @property
    def grader_rate(self) -> Array:
        """Rate of the grader on all units that it graded."""
        return ratio(self.graded + self.rest_graded, self.n_labelled + self.n_rest)

    @property
    def reference_rate(self) -> Array:
        return ratio(self.affirmed, self.n_labelled)

    @property
    def sensitivity(self) -> Array:
        """Share that the grader affirms of the units that the reference affirms."""
        return ratio(self.products, self.affirmed)

    @property
    def specificity(self) -> Array:
        """Share that the grader does not affirm of the units that the reference does not affirm."""
        refused = self.n_labelled - self.affirmed
        return ratio(refused - (self.graded - self.products), refused)

    @property
    def youden_j(self) -> Array:
        """Sensitivity + specificity - 1: 0 for a grader without any information (Youden 1950)."""
        return self.sensitivity + self.specificity - 1.0

    @property
    def grader_rate_labelled(self) -> Array:
        return ratio(self.graded, self.n_labelled)

    @property
    def grader_rate_rest(self) -> Array:
        return ratio(self.rest_graded, self.n_rest)

    @property
    def covariance(self) -> Array:
        """Covariance of reference and grade on the labelled units."""
        mean_product = ratio(self.products, self.n_labelled)
        return mean_product - self.reference_rate * self.grader_rate_labelled

    @property
    def variance(self) -> Array:
        """Variance of the grades of all graded units."""
        units, rate = self.n_labelled + self.n_rest, self.grader_rate
        mean_square_deviation = rate * (1.0 - rate) - ratio(self.nonbinary, units)
        # At most half the units are subtracted, as nothing would be left of a single unit.
        return mean_square_deviation * ratio(units, np.maximum(units - self.ddof, units / 2.0))

    @property
    def ppi_weight(self) -> Array:
        """Weight of PPI++ on the grader for a mean, from 0 to 1 (Angelopoulos et al. 2023b, example
        6.1): cov(reference, grade) / ((1 + labelled / rest) var(grade)).

        It is 0 where the grades do not vary, and where people labelled all units. The rate then has
        the least variance if units are independent, not if those of a cluster are correlated. A
        weight that is estimated from few labels biases the rate.
        """
        variance = self.variance * (1.0 + ratio(self.n_labelled, self.n_rest))
        return _optimal_weight(self.covariance, variance, self.n_rest)

    def ppi(self, weight: Array | float) -> Array:
        """Return people's rate with this weight, not yet clipped; their own if all are labelled."""
        difference = self.grader_rate_rest - self.grader_rate_labelled
        return self.reference_rate + weight * np.where(self.n_rest > 0, difference, 0.0)


LABELLED, REST = RateSums._fields.index("n_labelled"), RateSums._fields.index("n_rest")
"""Columns of `rate_features` that are 1 for labelled units, and for the rest."""


def rate_features(reference: Array, grades: Array, times_in_rest: Array | float = 0.0) -> Array:
    """Return the features of each unit that `RateSums` sums, (units, 7), in the order of its
    fields, from reference and grades (units,), NaN for none. Units without a grade have only zeros.
    `times_in_rest` (units,), if positive, is how often a unit is in the rest, labelled or not.
    """
    is_labelled = ~np.isnan(reference) & ~np.isnan(grades)
    rest = np.where(times_in_rest > 0, times_in_rest, np.isnan(reference)) * ~np.isnan(grades)
    people, grades = np.nan_to_num(reference), np.nan_to_num(grades)
    both = [is_labelled, is_labelled * people, is_labelled * grades, is_labelled * people * grades]
    nonbinary = grades * (1.0 - grades) * (is_labelled + rest)
    return np.column_stack([*both, rest, rest * grades, nonbinary])


def _optimal_weight(covariance: Array, variance: Array, n_rest: Array) -> Array:
    """Return the weight on the grader, covariance / variance clipped to [0, 1]: 0 where grades do
    not vary or no unit is unlabelled (`n_rest` is 0), NaN where a resample has no labelled unit.
    """
    weight = np.divide(covariance, variance, out=np.zeros(variance.shape), where=variance > 1e-12)
    return np.where(np.isnan(variance) & (n_rest > 0), np.nan, np.clip(weight, 0.0, 1.0))


def stratified_ppi(sums: RateSums, *, classes: bool = False) -> tuple[Array, Array]:
    """Return people's rate by stratified PPI++, and the weight on the grader.

    Both are (rows, ...), from `sums` (rows, ..., strata). With `classes` the sums are (rows, ...,
    classes, strata), and so the rates (rows, ..., classes): all classes have one weight.

    Each stratum counts by its share of all units in the data, as the sample is random within strata
    only (Fisch et al. 2024, section 4). All strata have one weight, as many weights tuned on few
    labels each would add up to a bias. It is the one with the least variance: sum S^2 cov / n over
    sum S^2 var (1 / n + 1 / rest), S the share; with one stratum it is that of PPI++.
    """
    axes = (-2, -1) if classes else (-1,)  # that have one weight
    n_units = (sums.n_labelled + sums.n_rest)[:1]  # in the data
    stratum_share = ratio(n_units, n_units.sum(axis=-1, keepdims=True))
    one = np.ones(1)  # 1 / n is NaN if n is 0, by `ratio`
    stratum_variance = sums.variance * (ratio(one, sums.n_labelled) + ratio(one, sums.n_rest))
    covariance = (stratum_share**2 * ratio(sums.covariance, sums.n_labelled)).sum(axis=axes)
    variance = (stratum_share**2 * stratum_variance).sum(axis=axes)
    weight = _optimal_weight(covariance, variance, sums.n_rest.sum(axis=axes))
    rates = sums.ppi(np.expand_dims(weight, axes))  # of each stratum
    return (stratum_share * rates).sum(axis=-1), weight


def rogan_gladen_rate(rate: Array, sensitivity: Array, specificity: Array) -> Array:
    """Return Rogan & Gladen's estimate, NaN where sensitivity + specificity is at most 1.

    >>> rogan_gladen_rate(np.array(0.48), np.array(70 / 80), np.array(100 / 120)).round(4).item()
    0.4424
    """
    j = sensitivity + specificity - 1.0
    return np.where(j > 0, (rate + specificity - 1.0) / np.where(j > 0, j, 1.0), np.nan)


def clip_rates(rate: Array) -> Array:
    """Clip corrected rates to [0, 1], which they may leave by chance."""
    return np.asarray(np.clip(rate, 0.0, 1.0))


def corrected_interval(
    interval: Interval, resampled: Array, n_units: int, sample: Counts, reach: Reach | None = None
) -> Interval:
    """Return the interval of a corrected rate, within [0, 1]: the interval of a share with the
    variance of the resampled rates; where no resample differs, `widened` as the clusters allow.

    `resampled` are the resampled rates (rows,), not clipped; `n_units` counts the graded units,
    `sample` the units, and the clusters, that people labelled.

    A bound is the narrower of Wilson's (1927), with Student's t for the number of clusters with the
    rarer outcome, and a score bound. `reach` has the score bounds, and that number of clusters:
    `ppi_reach`, or one without score bounds (of Rogan & Gladen's rates, and of means). Without a
    `reach` both bounds follow from the variance, as those of a plain share.
    """
    n_labelled, n_clusters = sample
    ends = np.array([interval.estimate, interval.low, interval.high])
    estimate, low, high = clip_rates(ends).tolist()
    interval = Interval(estimate, low, high, interval.remarks)
    # The number of units matters for a rate of 0 or 1, which is taken to lie one unit inside: with
    # a `reach`, one unit of those that people labelled, on which the correction rests.
    n_inside = n_units if reach is None else n_labelled
    interval = intervals.share_interval(interval, resampled, n_inside, n_clusters, reach)
    low, high = clip_rates(np.array([interval.low, interval.high])).tolist()
    return intervals.widened(replace(interval, low=low, high=high), n_clusters, kind="unit")


def ppi_reach(sums: Array, weight: float) -> Reach | None:
    """Return the `reach` of `corrected_interval` for a PPI++ rate, from `rate_features` summed over
    clusters, (clusters, 7) or (clusters, strata, 7), and the weight on the grader.

    Both parts, the labelled units and the rest, are scaled so that each stratum has its share of
    all units. None with one labelled cluster, and with weight 0, where the rate is people's own.
    """
    if not weight > 0.0:
        return None
    sums = sums.reshape(len(sums), -1, sums.shape[-1])
    n_units = sums[..., [LABELLED, REST]].sum(axis=0)  # (strata, parts)
    scale = np.nan_to_num(ratio(n_units.sum(axis=1, keepdims=True), n_units))
    # Sums over strata, (clusters,), scaled for the labelled units, and for the rest.
    labelled, rest = (RateSums.of((sums * scale[:, [part]]).sum(axis=1)) for part in (0, 1))
    deviation = rest.rest_graded - rest.rest_graded.sum() / rest.n_rest.sum() * rest.n_rest
    unlabelled_error = weight * math.sqrt(float((deviation**2).sum())) / float(rest.n_rest.sum())
    columns = [labelled.affirmed, weight * labelled.graded, labelled.n_labelled]
    by_cluster = np.column_stack(columns)[labelled.n_labelled > 0]
    if len(by_cluster) < 2:
        return None
    kinds, times = np.unique(by_cluster, axis=0, return_counts=True)  # equal clusters: one kind
    cases, graded, sizes = kinds.T
    return intervals.powered_reach(cases, graded, sizes, times.astype(float), unlabelled_error)


@dataclass(frozen=True, kw_only=True)
class RoganGladen(Interval):
    """People's rate from a grader's rate and error rates, with its 95% interval, within [0, 1]."""

    sensitivity: float
    specificity: float


@dataclass(frozen=True, kw_only=True)
class PredictionPowered(Interval):
    """People's rate on the sample, moved by `weight` times the grader's rate elsewhere minus its
    rate on the sample; with its 95% interval, all within [0, 1]. `note` gives the reason for a NaN.
    """

    weight: float


def rogan_gladen(
    reference: Column[float],
    grades: Column[float],
    rest: Column[float],
    *,
    clusters: Clusters = None,
    bootstrap: Bootstrap | None = None,
) -> RoganGladen:
    """Return Rogan & Gladen's estimate (1978) of people's rate.

    `reference` (labelled units,) are people's verdicts: 0, 1, or between the two where they
    disagree. `grades` (labelled units,) are the grader's verdicts on these units, `rest` (other
    units,) those on the units that no person labelled, 0 or 1. `clusters` are hashable ids of the
    units' clusters, labelled units first; without them, units are resampled. `bootstrap` has the
    number of resamples and the seed of the interval; labelled and other units are resampled.
    Raises InputError where verdicts are missing or out of range.

    80 units that people affirm, of which the grader affirms 70, and 120 others with 20 false
    alarms; it affirms 480 of 1,000 units elsewhere:

    >>> people, grader = np.repeat([[1, 1], [0, 1], [1, 0], [0, 0]], [70, 20, 10, 100], axis=0).T
    >>> elsewhere = np.repeat([1, 0], [480, 520])
    >>> result = rogan_gladen(people, grader, elsewhere)
    >>> round(result.estimate, 4), round(result.low, 2), round(result.high, 2)
    (0.4424, 0.36, 0.53)
    """
    features = _unit_features(reference, grades, rest)
    sums = RateSums.of(features.sum(axis=0))
    estimate = float(clip_rates(_rest_rogan_gladen(sums)))
    if math.isnan(estimate):
        bounds = Interval.undefined(_undefined_reason(sums))
    else:
        bounds = _resampled_interval(features, clusters, bootstrap, _rest_rogan_gladen)
    return RoganGladen(
        estimate, bounds.low, bounds.high, bounds.remarks,
        sensitivity=float(sums.sensitivity), specificity=float(sums.specificity),
    )  # fmt: skip


def ppi_plus_plus(
    reference: Column[float],
    grades: Column[float],
    rest: Column[float],
    *,
    weight: float | None = None,
    method: Literal["bootstrap", "normal"] = "bootstrap",
    clusters: Clusters = None,
    bootstrap: Bootstrap | None = None,
) -> PredictionPowered:
    """Return people's rate by prediction-powered inference (Angelopoulos et al., arXiv 2311.01453).

    `weight`, from 0 to 1, is that on the grader: 1 is PPI, 0 the sample alone; without it, it is
    estimated (PPI++). `method` is "bootstrap" for an interval by resampling, with the weight
    estimated in each resample, or "normal" for the large-sample interval of independent units. The
    other parameters and errors are those of `rogan_gladen`.

    The units of the example of `rogan_gladen`:

    >>> people, grader = np.repeat([[1, 1], [0, 1], [1, 0], [0, 0]], [70, 20, 10, 100], axis=0).T
    >>> elsewhere = np.repeat([1, 0], [480, 520])
    >>> rate = ppi_plus_plus(people, grader, elsewhere, method="normal")
    >>> round(rate.estimate, 4), round(rate.low, 4), round(rate.high, 4), round(rate.weight, 4)
    (0.417, 0.3647, 0.4694, 0.5681)
    >>> rate = ppi_plus_plus(people, grader, elsewhere, weight=1, method="normal")
    >>> round(rate.estimate, 4), round(rate.low, 4), round(rate.high, 4)
    (0.43, 0.3684, 0.4916)
    """
    if weight is not None and not 0 <= weight <= 1:
        raise InputError(f"the weight is {weight}; it must lie between 0 and 1")
    features = _unit_features(reference, grades, rest)
    sums = RateSums.of(features.sum(axis=0))

    def rate(sampled: RateSums) -> Array:
        return sampled.ppi(sampled.ppi_weight if weight is None else weight)

    used_weight = float(sums.ppi_weight if weight is None else weight)
    estimate = float(clip_rates(rate(sums)))
    if sums.n_rest == 0:
        used_weight = estimate = math.nan
    if math.isnan(estimate):
        bounds = Interval.undefined(_undefined_reason(sums))
    elif method == "bootstrap":
        bounds = _resampled_interval(features, clusters, bootstrap, rate, used_weight)
    elif method == "normal":
        errors = np.asarray(reference, float) - used_weight * np.asarray(grades, float)
        grader_variance = np.var(np.asarray(rest, float)) / len(rest)
        half = Z * math.sqrt(used_weight**2 * grader_variance + np.var(errors) / len(errors))
        bounds = Interval(estimate, *clip_rates(estimate + np.array([-half, half])).tolist())
    else:
        raise InputError(f"method is {method!r}; it must be bootstrap or normal")
    return PredictionPowered(estimate, bounds.low, bounds.high, bounds.remarks, weight=used_weight)


def _unit_features(reference: Column[float], grades: Column[float], rest: Column[float]) -> Array:
    """Return the features (units, 7) of the labelled units, then of the rest, after checks."""
    people, grades = np.asarray(reference, dtype=float), np.asarray(grades, dtype=float)
    check_same_length(people, grades)
    all_grades = np.concatenate([grades, np.asarray(rest, dtype=float)])
    if not np.isin(all_grades, (0, 1)).all() or not ((people >= 0) & (people <= 1)).all():
        raise InputError(
            "a grader's verdicts must be 0 or 1, and the reference's between 0 and 1, none missing"
        )
    return rate_features(np.concatenate([people, np.full(len(rest), np.nan)]), all_grades)


def _rest_rogan_gladen(sums: RateSums) -> Array:
    """Return Rogan & Gladen's estimate for the units without a reference."""
    return rogan_gladen_rate(sums.grader_rate_rest, sums.sensitivity, sums.specificity)


def _undefined_reason(sums: RateSums) -> str:
    """Return the remark code for an undefined estimate."""
    if sums.n_rest == 0:
        return "no_unlabelled_units"
    return "no_variation" if math.isnan(sums.youden_j) else "grader_not_informative"


def _resampled_interval(
    features: Array,
    clusters: Clusters,
    bootstrap: Bootstrap | None,
    rate: Callable[[RateSums], Array],
    weight: float | None = None,
) -> Interval:
    """Return the interval of a rate from resamples of units or clusters. Equal clusters are counted
    and resampled together. `weight` is that of PPI, None for Rogan & Gladen, without score bounds.
    """
    codes = cluster_codes(clusters, len(features))
    columns = [np.bincount(codes, weights=column) for column in features.T]
    sums: Array = np.column_stack(columns).astype(float)
    patterns, times = np.unique(sums, axis=0, return_counts=True)
    resamples = (bootstrap or Bootstrap()).draw(times)
    replicates = rate(RateSums.of(resamples.to_rows(patterns)))
    n_labelled, n_clusters = features[:, LABELLED].sum(), np.count_nonzero(sums[:, LABELLED])
    labelled = SampleSize(int(n_labelled), int(n_clusters))
    interval = resamples.interval(replicates, labelled.clusters)
    reach = Reach(carriers=labelled.clusters) if weight is None else ppi_reach(sums, weight)
    return corrected_interval(interval, replicates[1:], len(features), labelled, reach)


# ---- Rows of rates and means by subject ----------------------------------------------------------
# They come from a *view* (`RubricView`): all labels of a rubric, read on one set of categories,
# such as yes and no. `out` is the `Writer` of one subset: the view itself, or a part of it.
# `Writer.add` takes a figure as its values (rows,), for which it computes an interval, or as a
# finished `Interval` or number; and its units as a mask (units,) or as `Counts`.
PEOPLES_OWN = Remark("peoples_own")  # of all graded units: PPI++ is people's own rate
MOST_COMPARED = 40  # most subjects whose differences are listed: 40 have 780 differences
FEW_UNITS = 30  # labelled units below which a figure of a part of the sample has a note
FEW = Remark("few_labelled", (FEW_UNITS,))
MIN_STRATUM = 20
"""Strata with fewer labelled or fewer unlabelled clusters are merged: a resample needs some of
both, and a share of few clusters is not reliable."""


class SubjectStatistics(NamedTuple):
    """Names of the statistics of subjects' rates of affirmative verdicts (`RATES`), or of the means
    of their labels (`MEANS`), and the scale of these.
    """

    by_people: str  # of people's labels
    raw: str  # of the grader's labels
    corrected: str  # people's, by PPI++ (prediction-powered) from both; the following are of these:
    difference: str  # differences between subjects
    side_difference: str  # between groups of annotators, or between the two answers of pairs
    least_side: str  # the least of all groups of annotators
    onto: tuple[float, float] = (0.0, 1.0)  # start and span of the scale for values from 0 to 1

    @property
    def is_rate(self) -> bool:
        """True for rates of affirmative verdicts."""
        return self.raw == RATES.raw

    def reach(self, n_clusters: float) -> Reach | None:
        """Return the `Reach` of a mean; None for a rate, whose reach depends on its rarer outcome.
        A mean has no such outcome: all clusters count for Student's t. With PPI++, `n_clusters` is
        inf, for the normal distribution, as each resample estimates the weight again.
        """
        return None if self.is_rate else Reach(carriers=n_clusters)


RATES = SubjectStatistics(
    by_people="rate_human", raw="rate_raw", corrected="rate_ppi", least_side="rate_least_ppi",
    difference="rate_difference_ppi", side_difference="rate_side_difference_ppi",
)  # fmt: skip
MEANS = SubjectStatistics(
    by_people="subject_score", raw="subject_score", corrected="mean_ppi",
    difference="mean_difference_ppi", side_difference="mean_difference_ppi",
    least_side="mean_least_ppi",
)  # fmt: skip


class Scores(NamedTuple):
    """Labels of a view as numbers from 0 to 1, NaN for none."""

    statistics: SubjectStatistics  # names of the statistics of means over units
    people: Array  # people's mean, (units,)
    grades: dict[str, Array]  # of every grader by name, (units,)
    times_in_rest: Array  # those of `LabelMatrix`, (units,)

    @classmethod
    def of(cls, view: RubricView, humans: Sequence[int] | None = None) -> Scores:
        """Return verdicts of a binary view, else positions on the scale. `humans` are columns."""
        labels, scale = view.labels, view.labels.scale
        annotators = list(labels.humans if humans is None else humans)
        if view.coded.is_binary:
            statistics, scores = RATES, labels.verdict_values
            people = subject_scores.people_means(labels, annotators)
        else:
            values = np.array(scale.values)
            start, span = float(values.min()), float(np.ptp(values)) or 1.0  # all equal: 1
            statistics = MEANS._replace(onto=(start, span))
            is_clear = [key not in scale.unclear for key in scale.categories]
            positions = np.where(is_clear, (values - start) / span, np.nan)
            scores = np.append(positions, np.nan)[labels.codes]  # code -1 is the last: no label
            by_people = scores[:, annotators]
            people = ratio(np.nansum(by_people, axis=1), (~np.isnan(by_people)).sum(axis=1))
        graders = [model for model in labels.models if np.isfinite(scores[:, model]).any()]
        grades = {labels.raters[model]: scores[:, model] for model in graders}
        return cls(statistics, people, grades, labels.times_in_rest)


@dataclass(frozen=True)
class _Groups:
    """Subjects, or one nameless group of all units. `codes` (units,) index `names`; -1 for none."""

    names: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, labels: LabelMatrix) -> _Groups:
        if labels.subjects:
            return cls(labels.subjects, labels.subject)
        return cls(("",), np.zeros(len(labels.codes), dtype=np.intp))

    def __iter__(self) -> Iterator[tuple[int, str, Mask]]:
        """Yield number, name and member units (units,) of each group."""
        for group, name in enumerate(self.names):
            yield group, name, self.codes == group


def add_corrected_rows(view: RubricView) -> None:
    """Add rates or means by subject (at): people's own, and each grader's raw and corrected ones.

    The labels have one row per unit that counts towards a rate. `rate_human` is people's rate on
    their units; `rate_raw`, `rate_rogan_gladen` and `rate_ppi` are for all units that the grader
    graded; `sensitivity`, `specificity` and `youden_j` are on those of them that people labelled.
    Means of labels are `subject_score` of people and of the grader, and `mean_ppi`. PPI++ is
    stratified if the labelled sample is. Intervals of differences between subjects hold together
    over all rubrics. Without subjects all units are one group; without people figures are only raw.
    """
    labels, scores, groups = view.labels, Scores.of(view), _Groups.of(view.labels)
    strata = joint_strata(labels.columns(view.request.strata), len(labels.codes))
    _add_people_rows(view, scores, groups)
    for grader in scores.grades:
        corrected = _CorrectedRates(view, groups, grader, scores, strata)
        if corrected.is_labelled.any() and scores.statistics.is_rate:
            corrected.add_rates_and_error_rates()
        else:
            corrected.add_raw_and_ppi()
        if corrected.is_labelled.any():
            corrected.add_differences_and_ranks(view.request.n_rubrics)


def _add_people_rows(out: Writer, scores: Scores, groups: _Groups) -> None:
    """Add people's own rate or mean of each group."""
    statistics, reference = scores.statistics, scores.people
    is_labelled = ~np.isnan(reference)
    features = np.column_stack([is_labelled, np.where(is_labelled, reference, 0.0)])
    n_labelled, affirmed = cell_sums(features, groups.codes, len(groups.names), out)
    people = ratio(affirmed, n_labelled)
    for group, name, is_member in groups:
        if (units := is_labelled & is_member).any():
            counts, about = out.count(units), About(a="humans", at=name, onto=statistics.onto)
            about["reach"] = statistics.reach(counts.clusters)
            out.add(statistics.by_people, people[:, group], counts, **about)


class _CorrectedRates:
    """Rates or means of one grader by group, from `scores`, and their rows.

    - `is_graded`, `is_labelled` (by people) and `is_compared` (both) are masks (units,).
    - `features` (units, 7) are those of `rate_features`, `sums` (rows, groups) their sums.
    - `rates` and `weight` (rows, groups) are of PPI++. It is stratified in groups with several of
      the sample's `strata` (units,): `strata_of` has these by number of group, small ones merged.
    """

    def __init__(
        self, out: Writer, groups: _Groups, grader: str, scores: Scores, strata: Codes | None = None
    ) -> None:
        self.out, self.groups, self.grader, self.statistics = out, groups, grader, scores.statistics
        self.reference, grades = scores.people, scores.grades[grader]
        about = About(a="humans", b=grader, onto=self.statistics.onto)
        self._add = partial(out.add, reason="no_variation", **about)
        self.is_graded, self.is_labelled = ~np.isnan(grades), ~np.isnan(self.reference)
        self.is_compared = self.is_graded & self.is_labelled
        self.features = rate_features(self.reference, grades, scores.times_in_rest)
        self.sums = self._sums(groups.codes, len(groups.names))
        self.weight = self.sums.ppi_weight
        self.rates = self.sums.ppi(self.weight)
        self.strata_of: dict[int, Codes] = {}
        if strata is not None:
            for group, _, is_member in groups:
                self._stratify(group, is_member, strata)

    def _stratify(self, group: int, is_member: Mask, strata: Codes) -> None:
        """Replace the rates and weights of a group by stratified ones, if it has several strata."""
        parts = [is_member & (self.features[:, column] > 0) for column in (LABELLED, REST)]
        merged = merge_small_strata(strata, parts, self.out.count)
        n_strata = int(merged.max(initial=0)) + 1
        if n_strata > 1:
            self.strata_of[group] = np.where(is_member, merged, -1)
            sums = self._sums(self.strata_of[group], n_strata)
            self.rates[:, group], self.weight[:, group] = stratified_ppi(sums)

    def _sums(self, codes: Codes, n_codes: int) -> RateSums:
        """Return the sums by code (units,) in every resample, each (rows, codes)."""
        sums = RateSums(*cell_sums(self.features, codes, n_codes, self.out))
        return sums._replace(ddof=0.0 if self.statistics.is_rate else 1.0)

    def add_rates_and_error_rates(self) -> None:
        """Add the grader's error rates, its raw rates, PPI++, and Rogan & Gladen's estimates."""
        sums = self.sums[:-1]  # without `ddof`
        pooled = RateSums(*(total.sum(axis=1, keepdims=True) for total in sums))
        unusable_reason = self._add_error_rates(pooled)
        self.add_raw_and_ppi()
        rates = rogan_gladen_rate(self.sums.grader_rate, pooled.sensitivity, pooled.specificity)
        all_compared = self.out.count(self.is_compared)  # error rates are of all groups' labels
        statistic, reach = "rate_rogan_gladen", Reach(carriers=all_compared.clusters)
        for group, name, is_member in self.groups:
            if not (units := self.is_graded & is_member).any():
                continue
            is_needed = (units & ~self.is_labelled).any()
            reason = unusable_reason if is_needed else Remark("no_unlabelled_units")
            if reason:
                self._add(statistic, np.nan, units, at=name, reason=reason)
            else:
                self._add_corrected(statistic, rates[:, group], name, units, all_compared, reach)

    def _add_error_rates(self, pooled: RateSums) -> Remark | None:
        """Add sensitivity and specificity overall and by group, and J overall only, as it needs
        many units of the minority class; return the reason why they cannot be used, or None.
        """
        affirmed = self.is_compared & (self.reference > 0)
        refused = self.is_compared & (self.reference < 1)
        self._add("sensitivity", pooled.sensitivity[:, 0], affirmed)
        self._add("specificity", pooled.specificity[:, 0], refused)
        j = self._add("youden_j", pooled.youden_j[:, 0], self.is_compared)
        for group, name, is_member in self.groups:
            if len(self.groups.names) > 1 and (self.is_compared & is_member).any():
                sensitivity, specificity = self.sums.sensitivity, self.sums.specificity
                self._add("sensitivity", sensitivity[:, group], affirmed & is_member, at=name)
                self._add("specificity", specificity[:, group], refused & is_member, at=name)
        if np.isnan(j.estimate):
            return Remark("no_variation" if self.is_compared.any() else "no_pairable_units")
        if np.isnan(j.low):
            return j.remarks[0]  # why there is no interval
        # Rogan & Gladen divide by J, which must not be 0.
        return None if j.low > 0 else Remark("grader_not_informative")

    def add_raw_and_ppi(self) -> None:
        """Add each group's raw rate, and that of PPI++."""
        for group, name, is_member in self.groups:
            if not (units := self.is_graded & is_member).any():
                continue
            about = About(at=name, reach=self.statistics.reach(self.out.count(units).clusters))
            if not self.statistics.is_rate:
                about |= About(a=self.grader, b="")  # a raw mean is the grader's `subject_score`
            self._add(self.statistics.raw, self.sums.grader_rate[:, group], units, **about)
            if (units & self.is_labelled).any():
                self._add_ppi(group, name, units)
            elif self.is_labelled.any():
                reason = Remark("no_pairable_units")
                self._add(self.statistics.corrected, np.nan, units, at=name, reason=reason)

    def _add_ppi(self, group: int, name: str, units: Mask) -> None:
        """Add the rate of PPI++ of a group's graded `units`, of which people labelled some."""
        in_sample, weight = units & self.is_labelled, float(self.weight[0, group])
        strata = self.strata_of.get(group, np.where(units, 0, -1))  # by default one
        sample = self.out.count(in_sample)
        if self.statistics.is_rate:
            reach = _stratified_reach(self.out, self.features, strata, weight)
        else:  # with weight 0 people's own mean (see `SubjectStatistics.reach`)
            reach = self.statistics.reach(np.inf if weight > 0 else sample.clusters)
        note = _sample_note(self.out, in_sample, units & ~self.is_labelled, int(strata.max()) + 1)
        rates = self.rates[:, group]
        self._add_corrected(self.statistics.corrected, rates, name, units, sample, reach, note)

    def _add_corrected(
        self,
        statistic: str,
        rates: Array,
        name: str,
        units: Mask,
        sample: SampleSize,
        reach: Reach | None,
        note: Note = "",
    ) -> None:
        """Add a group's corrected rate, clipped. `sample` counts the labels that it rests on."""
        interval = self.out.resamples.interval(rates, sample.clusters)
        if interval.low > 1 or interval.high < 0:  # the error rates cannot be this group's
            interval = Interval.undefined(Remark("outside_zero_one"))
        outside = "clipped to [0, 1]" if interval.estimate < 0 or interval.estimate > 1 else ""
        n_labelled = self.out.count(units & self.is_labelled).units
        notes = join_notes(note, outside, Remark("labelled_by_people", (n_labelled,)))
        counts = self.out.count(units)
        interval = corrected_interval(interval, rates[1:], counts.units, sample, reach)
        self._add(statistic, interval, counts, at=name, note=notes)

    def add_differences_and_ranks(self, rubrics: int) -> None:
        """Add differences of the groups' rates, with bounds that hold together over `rubrics`, and
        the groups' ranks by their rates.
        """
        key = self.statistics.corrected, "humans", self.grader, self.out.subset
        by_group = {group: self.out.rows.get(*key, name) for group, name, _ in self.groups}
        defined = {k: row for k, row in by_group.items() if row and not np.isnan(row["estimate"])}
        if len(defined) < 2:
            return
        rows, rates = list(defined.values()), self.rates[:, list(defined)]  # a copy
        rates[0] = clip_rates(rates[0])  # those of the data, as in the rows of the rates
        masks = [is_member for group, _, is_member in self.groups if group in defined]
        n_compared = [self.out.count(self.is_compared & mask).clusters for mask in masks]
        # A subject has an answer in a cluster even where its grade is missing.
        n_answers = self.out.resamples.sums_by_type(self.out.clusters, np.column_stack(masks))
        answered = self.out.resamples.to_clusters(n_answers) > 0
        differences = subject_scores.all_differences(
            rates, np.array(n_compared), 0.05 / rubrics, is_rate=self.statistics.is_rate
        )
        self._add_differences(rows, differences, answered)
        # The rank of each subject (at = subject) with those that it may have; 1 is the highest.
        estimates = rates[0].round(12)  # ties stay ties, as in subjects' scores
        ranks = 1 + (estimates > estimates[:, None]).sum(axis=1)
        possible = subject_scores.rank_sets(differences, len(rows))
        for row, rank, highest, lowest in zip(rows, ranks, *possible, strict=True):
            rank_set = Interval(float(rank), low=float(highest), high=float(lowest))
            about = About(a="humans", b=self.grader, at=row["at"])
            self.out.add("rate_rank_set", rank_set, (row["n_units"], row["n_clusters"]), **about)

    def _add_differences(
        self, rows: Sequence[ResultRow], differences: subject_scores.Differences, answered: Mask
    ) -> None:
        """Add the difference of every two subjects (at = "A>B", A minus B), unless there are more
        than `MOST_COMPARED`. `rows` are the subjects' rows of PPI++, by number. `answered`
        (clusters, subjects) is True where a subject has an answer: a note tells if those of two
        subjects are in other clusters.
        """
        if len(rows) > MOST_COMPARED:
            return
        bounds = np.clip([differences.estimate, differences.low, differences.high], -1.0, 1.0)
        pairs = zip(differences.first, differences.second, bounds.T.tolist(), strict=True)
        for i, j, interval in pairs:
            first, second = rows[i], rows[j]
            n_both = int((answered[:, i] & answered[:, j]).sum())
            n_either = int((answered[:, i] | answered[:, j]).sum())
            about = About(a="humans", b=self.grader, at=from_to(first["at"], second["at"]))
            about["onto"] = (0.0, self.statistics.onto[1])  # scaled, but not shifted
            if n_both < n_either:
                about["note"] = Remark("prompts_differ", (n_both, n_either))
            n_clusters = max(first["n_clusters"], second["n_clusters"])  # mostly the same ones
            counts = first["n_units"] + second["n_units"], n_clusters
            self.out.add(self.statistics.difference, Interval(*interval), counts, **about)


def cell_sums(features: Array, codes: Codes, n_codes: int, out: Writer) -> Array:
    """Return sums of features (units, k) by code (units,), -1 for none: (k, rows, codes)."""
    has_code, n_types = codes >= 0, out.resamples.n_types  # of clusters: equal ones are one type
    cell, size = out.clusters[has_code] * n_codes + codes[has_code], n_types * n_codes
    sums = [np.bincount(cell, weights=column[has_code], minlength=size) for column in features.T]
    by_type = np.stack(sums, axis=1).reshape(n_types, n_codes, len(sums))
    return np.moveaxis(out.resamples.to_rows(by_type), -1, 0)


def joint_strata(columns: Sequence[UnitColumn], n_units: int) -> Codes:
    """Return the stratum of each unit, (units,): the number of its combination of values."""
    if not columns:
        return np.zeros(n_units, dtype=np.intp)
    cells = np.column_stack([column.codes for column in columns])
    return np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)


def merge_small_strata(
    strata: Codes, parts: Sequence[Mask], count: Callable[[Mask], Counts]
) -> Codes:
    """Return strata (units,) renumbered so that each has `MIN_STRATUM` clusters (see `count`) of
    both `parts`: labelled and other units (units,). Smaller strata are merged into stratum 0, with
    the smallest of the others if they are still too small together: of 30, 4, 30 and 6 clusters of
    either part, the first joins the two small ones, with the numbers 0, 0, 1, 0.
    """
    counts = {  # of clusters in both parts: [1], as [0] is the number of units
        stratum: np.array([count((strata == stratum) & part)[1] for part in parts])
        for stratum in np.unique(strata[np.any(parts, axis=0)])
    }
    renumbered = np.zeros(len(strata), dtype=np.intp)
    n_unmerged, count_merged = 0, np.zeros(2)  # strata not merged; clusters in stratum 0
    for stratum in sorted(counts, key=lambda stratum: counts[stratum].min()):  # the smallest first
        is_small = counts[stratum].min() < MIN_STRATUM
        if is_small or (count_merged.any() and count_merged.min() < MIN_STRATUM):
            count_merged += counts[stratum]
        else:
            n_unmerged += 1
            renumbered[strata == stratum] = n_unmerged
    # If none was merged, stratum 0 is empty, and the others start at 1.
    return renumbered if count_merged.any() else np.maximum(renumbered - 1, 0)


def _stratified_reach(out: Writer, features: Array, strata: Codes, weight: float) -> Reach | None:
    """Return `ppi_reach` from features (units, 7) and strata (units,), -1 for none."""
    n_strata = int(strata.max()) + 1
    in_stratum = strata[:, None] == np.arange(n_strata)
    by_stratum = in_stratum[:, :, None] * features[:, None, :]  # (units, strata, 7)
    sums = out.sums_by_cluster(by_stratum.reshape(len(strata), -1))
    return ppi_reach(sums.reshape(len(sums), n_strata, -1), weight)


def _sample_note(out: Writer, in_sample: Mask, in_rest: Mask, n_strata: int) -> Note:
    """Return a note on what a PPI++ figure rests on: people's labels alone, strata, few labels."""
    note: Note = f"in {n_strata} strata" if n_strata > 1 else ""
    if not out.subset.startswith("all") and out.count(in_sample).units < FEW_UNITS:
        note = FEW
    return join_notes("" if in_rest.any() else PEOPLES_OWN, note)


def add_part_rows(view: RubricView, columns: Sequence[UnitColumn] | None = None) -> None:
    """Add rates or means by subject (at) in every part of the sample by these `columns`, by default
    the requested ones: people's own, each grader's, and its PPI++ with its errors in that part.
    Figures on fewer than `FEW_UNITS` labelled units have a note. Without people all are raw.
    """
    labels, scores, groups = view.labels, Scores.of(view), _Groups.of(view.labels)
    columns = labels.columns(view.request.screened) if columns is None else columns
    for part, chosen in chain.from_iterable(column.parts() for column in columns):
        clusters_in_part, clusters = np.unique(view.clusters[chosen], return_inverse=True)
        resamples = view.resamples.only(clusters_in_part)
        out = Writer(view.rows, resamples, clusters, view.coded.part(part))
        grades = {grader: values[chosen] for grader, values in scores.grades.items()}
        times_in_rest = scores.times_in_rest[chosen]
        part_scores = Scores(scores.statistics, scores.people[chosen], grades, times_in_rest)
        part_groups = replace(groups, codes=groups.codes[chosen])
        _add_people_rows(out, part_scores, part_groups)
        for grader in grades:
            _CorrectedRates(out, part_groups, grader, part_scores).add_raw_and_ppi()


def add_people_side_rows(view: RubricView) -> None:
    """Add rates or means by subject (at) for each side of the annotators, such as women (subset =
    "column=value"): its own, and each grader's PPI++ corrected with the side's labels. Then add the
    difference of every two sides (subset = "column=first>second"), where all bounds of a grader
    hold together, and the least of all sides (subset = "column=*").

    Each bound of the least holds with probability .975: the lower one is the least of the sides'
    lower bounds; the upper ones are widened by Bonferroni, as any side may have the least.
    """
    labels, groups = view.labels, _Groups.of(view.labels)
    for column, sides in sides_of(view.request.people, labels).items():
        by_grader: dict[str, dict[str, _CorrectedRates]] = {}
        for side, members in sides.items():
            scores = Scores.of(view, members)
            out = view.on(view.coded.part(f"{column}={side}"))
            _add_people_rows(out, scores, groups)
            for grader in scores.grades:
                corrected = _CorrectedRates(out, groups, grader, scores)
                corrected.add_raw_and_ppi()
                by_grader.setdefault(grader, {})[side] = corrected
        for grader, by_side in by_grader.items():
            _add_side_comparison_rows(view, column, grader, by_side)


def _add_side_comparison_rows(
    view: RubricView, column: str, grader: str, by_side: Mapping[str, _CorrectedRates]
) -> None:
    """Add each subject's differences between sides, and the least side, by one grader's rates."""
    sides, all_rates = list(by_side), list(by_side.values())
    statistics, groups = all_rates[0].statistics, all_rates[0].groups
    start, span = statistics.onto  # of the rows' scale, which values from 0 to 1 are mapped onto
    widening = float(ndtri(1.0 - 0.025 / len(sides))) / Z  # Bonferroni: any may be the least
    alpha = 0.05 / view.request.n_rubrics / len(groups.names)  # Bonferroni again
    for group, name, is_member in groups:
        graded = is_member & all_rates[0].is_graded
        keys = ((statistics.corrected, "humans", grader, each.out.subset) for each in all_rates)
        rows = [view.rows.get(*key, name) for key in keys]
        defined = [row for row in rows if row and not np.isnan(row["estimate"])]
        if len(defined) < len(sides):  # the least side is unknown
            continue
        rates = np.column_stack([corrected.rates[:, group] for corrected in all_rates])
        rates[0] = clip_rates(rates[0])  # those of the data, as in the rows of the rates
        masks = (corrected.is_compared & is_member for corrected in all_rates)
        n_compared = np.array([view.count(mask).clusters for mask in masks])
        pairs = subject_scores.all_differences(rates, n_compared, alpha, is_rate=statistics.is_rate)
        ends = np.clip([pairs.estimate, pairs.low, pairs.high], -1.0, 1.0).T.tolist()
        for first, second, bounds in zip(pairs.first, pairs.second, ends, strict=True):
            out = view.on(view.coded.part(f"{column}={from_to(sides[first], sides[second])}"))
            about = About(a="humans", b=grader, at=name, onto=(0.0, span))
            out.add(statistics.side_difference, Interval(*bounds), graded, **about)
        side_intervals = [[row["estimate"], row["low"], row["high"]] for row in defined]
        estimates, lows, highs = np.array(side_intervals).T
        highs = estimates + widening * (highs - estimates)
        least_values = np.array([estimates.min(), lows.min(), highs.min()])
        least = clip_rates((least_values - start) / span)  # from the scale of the rows to 0 to 1
        out = view.on(view.coded.part(f"{column}=*"))
        about = About(a="humans", b=grader, at=name, onto=statistics.onto)
        out.add(statistics.least_side, Interval(*least.tolist()), graded, **about)


def has_means(scale: Scale) -> bool:
    """Return True for a scale of three or more ordered categories, none of which favours a side."""
    return scale.level != "nominal" and len(scale.categories) > 2 and not scale.favours


def add_share_rows(view: RubricView) -> None:
    """Add `prevalence_ppi` of every class (at): people's share of it on all units that a grader
    graded, and by subject, part of the sample and side (subset). A grader's shares sum to one.
    """
    labels = view.labels
    has_class = np.vstack([np.eye(view.coded.q), np.full(view.coded.q, np.nan)])  # last: code -1
    indicators = has_class[labels.codes]  # (units, raters, classes), NaN for no label
    votes = np.nansum(indicators[:, list(labels.humans)], axis=1)
    people = ratio(votes, votes.sum(axis=1, keepdims=True))
    strata = joint_strata(labels.columns(view.request.strata), len(people))
    columns = [UnitColumn("subject", labels.subjects, labels.subject), *labels.sides]
    columns += labels.columns(view.request.screened)
    parts = [("all", np.ones(len(people), dtype=bool))]
    parts += chain.from_iterable(column.parts() for column in columns)
    for grader in labels.models:
        graded = labels.codes[:, grader] >= 0
        classes = zip(people.T, indicators[:, grader].T, strict=True)
        by_class = [rate_features(*each, labels.times_in_rest) for each in classes]
        features = np.stack(by_class, axis=1)
        for part, chosen in parts:
            out, about = view.on(part), About(a="humans", b=labels.raters[grader])
            _add_shares(out, view.coded.categories, features, graded & chosen, strata, about)


def _add_shares(
    out: Writer, names: Sequence[str], features: Array, units: Mask, strata: Codes, about: About
) -> None:
    """Add `prevalence_ppi` of the named classes in graded `units`: features (units, classes, 7)."""
    in_sample, in_rest = (units & (features[:, 0, column] > 0) for column in (LABELLED, REST))
    if not in_sample.any():
        return
    merged = merge_small_strata(strata, [in_sample, in_rest], out.count)
    codes, n_strata = np.where(units, merged, -1), int(merged.max()) + 1
    sums = cell_sums(features.reshape(len(units), -1), codes, n_strata, out)
    sums = sums.reshape(*features.shape[1:], *sums.shape[1:])  # (classes, 7, rows, strata)
    by_field = RateSums(*np.moveaxis(sums, 0, 2))  # each (rows, classes, strata)
    shares, weight = stratified_ppi(by_field._replace(ddof=1.0), classes=True)
    shares = clip_rates(shares)
    shares /= shares.sum(axis=1, keepdims=True)
    n_units, sample = out.count(units).units, out.count(in_sample)
    note = _sample_note(out, in_sample, in_rest, n_strata)
    about["note"] = join_notes(note, Remark("labelled_by_people", (sample.units,)))
    for code, name in enumerate(names):
        reach = _stratified_reach(out, features[:, code], codes, float(weight[0]))
        interval = out.resamples.interval(shares[:, code], sample.clusters)
        interval = corrected_interval(interval, shares[1:, code], n_units, sample, reach)
        about["at"] = name
        out.add("prevalence_ppi", interval, units, **about)


def add_side_difference_rows(view: RubricView, sign: Array) -> None:
    """Add `rate_side_difference_ppi` or `mean_difference_ppi` of every subject (at) by each grader,
    subset "side=A>B": the rate or mean of its answers to the first declared side minus that of its
    answers to the second; it favours the side with the higher one. Mean differences within pairs
    vary less than the rates of the sides, as effects on both answers cancel.

    The labels have a row for each answer; `sign` (units,) is 1 where side a is the first declared
    side, -1 where side b is, 0 where neither is known to be. An answer without its counterpart is
    left out, with a note. All intervals of a grader hold together, over all rubrics.
    """
    labels, request = view.labels, view.request
    a, b = units_of_both_sides(labels)  # the two answers of each pair
    if not len(a) or not labels.humans or not labels.models:
        return
    oriented = sign[a] != 0
    a, b = a[oriented], b[oriented]
    a_is_first = sign[a] > 0
    first, second = np.where(a_is_first, a, b), np.where(a_is_first, b, a)
    subset = view.coded.part(f"side={from_to(*request.settings.sides)}")
    out = view.on(subset, labels.clusters[first])  # its units are pairs
    groups, (statistics, people, by_grader, times_in_rest) = _Groups.of(labels), Scores.of(view)
    people_difference, subject = people[first] - people[second], groups.codes[first]  # (pairs,)
    for grader, scores in by_grader.items():
        grader_difference = scores[first] - scores[second]
        is_graded = ~np.isnan(grader_difference)
        is_labelled = is_graded & ~np.isnan(people_difference)
        pairs_of = [is_graded & (subject == k) for k in range(len(groups.names))]
        samples = [out.count(is_labelled & pairs) for pairs in pairs_of]
        features = rate_features(people_difference, grader_difference, times_in_rest[first])
        n_clusters = np.array([sample.clusters for sample in samples])
        data, is_rate = (out, features, subject, n_clusters), statistics.is_rate
        differences = _paired_differences(*data, 0.05 / request.n_rubrics, is_rate=is_rate)
        # Answers, (units,), that a pair could have: those with a known side and a grade.
        is_answer = (labels.side >= 0) & (sign != 0) & ~np.isnan(scores) & (groups.codes >= 0)
        n_answers = np.bincount(groups.codes[is_answer], minlength=len(groups.names))
        for k in np.flatnonzero(n_answers):  # the subjects with an answer
            pairs, n_labelled = pairs_of[k], samples[k].units
            about = About(a="humans", b=grader, at=groups.names[k], onto=(0.0, statistics.onto[1]))
            if not pairs.any() or not n_labelled:
                reason = Remark("no_pairable_units" if pairs.any() else "one_side_only")
                out.add(statistics.side_difference, Interval.undefined(reason), pairs, **about)
                continue
            n_unpaired = int(n_answers[k]) - 2 * int(pairs.sum())
            about["note"] = join_notes(
                PEOPLES_OWN if out.count(pairs) == samples[k] else "",
                FEW if n_labelled < FEW_UNITS else "",
                Remark("one_side_left_out", (n_unpaired,)) if n_unpaired else "",
                Remark("labelled_by_people", (n_labelled,)),
            )
            out.add(statistics.side_difference, differences[k], pairs, **about)


def _paired_differences(
    out: Writer, features: Array, subject: Codes, n_clusters: Codes, alpha: float, *, is_rate: bool
) -> list[Interval]:
    """Return people's mean difference within the pairs of each subject, from the features of pairs
    (pairs, 7) and their subjects (pairs,). `n_clusters` (subjects,) are those with a pair that
    people labelled. All bounds hold together, except in a share `alpha` of studies.
    """
    sums = RateSums(*cell_sums(features, subject, len(n_clusters), out))
    sums = sums._replace(ddof=0.0 if is_rate else 1.0)
    means, labelled_means = sums.ppi(sums.ppi_weight), sums.reference_rate[0]
    separate = [intervals.interval(means[:, k], n) for k, n in enumerate(n_clusters.tolist())]
    ends = np.array([[interval.estimate, interval.low, interval.high] for interval in separate])
    defined = np.flatnonzero(~np.isnan(ends[:, 1]))
    if len(defined):  # the bounds that hold together replace the separate ones
        sample = labelled_means[defined], n_clusters[defined]
        half = paired_half_widths(means[1:, defined], *sample, alpha, is_rate=is_rate)
        ends[defined, 1:] = np.clip(ends[defined, :1], -1.0, 1.0) + np.column_stack([-half, half])
    all_ends = np.clip(ends, -1.0, 1.0).tolist()
    return [
        replace(interval, estimate=estimate, low=low, high=high)
        for interval, (estimate, low, high) in zip(separate, all_ends, strict=True)
    ]


def paired_half_widths(
    replicates: Array, means: Array, n_clusters: Codes, alpha: float, *, is_rate: bool = True
) -> Array:
    """Return the half-widths of all subjects' intervals, which hold together except in a share
    `alpha` of studies. `replicates` are resampled differences (rows, subjects); `means` and
    `n_clusters` (subjects,) are the mean differences and the clusters of the labelled pairs alone.

    Resamples repeat only the differences of labelled pairs. Two additions allow for others: to the
    variance, one more pair in favour of each side, 1 - m and 1 + m from the mean m, as in Agresti &
    Caffo's interval (2000); and a half-width of at least 1 + |m| times the share of clusters that
    may be unobserved (`intervals.unseen`). For means, both only if no resample differs.
    """
    has_additions = np.ones(len(n_clusters)) if is_rate else np.nanvar(replicates, axis=0) < 1e-12
    extra = has_additions * 2.0 * (1.0 + means**2) / n_clusters**2
    joint_half_widths = subject_scores.joint_half_widths
    half = joint_half_widths(lambda columns: replicates[:, columns], n_clusters, [extra], alpha)
    tail = alpha / 2.0 / len(n_clusters)
    unseen = np.array([intervals.unseen(count, tail) for count in n_clusters.tolist()])
    return np.asarray(np.maximum(half, has_additions * unseen * (1.0 + np.abs(means))))


# ---- Spreads for planning ------------------------------------------------------------------------
@dataclass(frozen=True)
class LabelSpread:
    """Standard deviation of annotators' labels of items, or of differences within pairs, and their
    correlation with the grader's labels: the figures that a sample for PPI++ is planned with.

    With n items labelled of N graded, the best weight gives the mean the variance
    sd^2 ((1 - r^2) / n + r^2 / N) (Angelopoulos, Duchi & Zrnic 2023, example 6.1), where r is the
    correlation: a grader saves at most the share r^2 of the labels.
    """

    sd: float
    correlation: float

    def labels_for(self, width: float, graded: float) -> int | None:
        """Return the fewest labelled items with which half the 95% interval is `width`, of `graded`
        items (inf if the grader's mean is known); None if more than these would be needed.

        >>> spread = LabelSpread(sd=0.5, correlation=0.8)
        >>> spread.labels_for(0.05, 2000), spread.labels_for(0.05, 300)
        (158, None)
        """
        variance_left = (width / (Z * self.sd)) ** 2 - self.correlation**2 / graded
        needed = (1.0 - self.correlation**2) / variance_left if variance_left > 0 else math.inf
        return max(math.ceil(needed - 1e-9), 2) if needed <= graded else None


def label_spreads(view: RubricView) -> dict[tuple[str, str], LabelSpread]:
    """Return the spreads that a sample size is planned with, by ("mean" or "difference", grader):
    of labels around each subject's mean, or of differences of two subjects within clusters. Spreads
    are pooled over subjects, or pairs of subjects, and have the scale of the labels.
    """
    scores, groups, clusters = Scores.of(view), _Groups.of(view.labels), view.labels.clusters
    n_groups, spreads = len(groups.names), dict[tuple[str, str], LabelSpread]()
    first, second = np.triu_indices(n_groups, 1)
    # Several subjects are compared within clusters; of one group, each unit counts as a cluster.
    cluster_of = clusters if n_groups > 1 else np.arange(len(clusters))
    mass = np.ones(view.labels.n_clusters) if view.labels.weight is None else view.labels.weight
    mass = mass if n_groups > 1 else mass[clusters]
    for grader, grades in scores.grades.items():
        is_compared = ~np.isnan(scores.people + grades) & (groups.codes >= 0)
        cells = cluster_of[is_compared], groups.codes[is_compared]
        sums = np.zeros((3, len(mass), n_groups))  # people, grader, number
        for total, values in zip(sums, (scores.people, grades, is_compared), strict=True):
            np.add.at(total, cells, values[is_compared])
        means = ratio(sums[:2], sums[2]).transpose(2, 0, 1)  # (subjects, people/grader, clusters)
        for quantity, samples in (("mean", means), ("difference", means[first] - means[second])):
            if (spread := _pooled_spread(samples, mass, scores.statistics.onto[1])) is not None:
                spreads[quantity, grader] = spread
    return spreads


def _pooled_spread(samples: Array, weight: Array, span: float) -> LabelSpread | None:
    """Return the spread of people's and the grader's values in `samples` (samples, 2, clusters),
    NaN for none, from their covariance matrix within samples by the `weight` of each cluster;
    None if its freedom is below two.
    """
    sums, freedom = np.zeros((2, 2)), 0
    for sample in samples:
        if (is_defined := ~np.isnan(sample[0])).any():
            part, weights = sample[:, is_defined], weight[is_defined] / weight[is_defined].mean()
            centred = part - np.average(part, axis=1, weights=weights)[:, None]
            sums, freedom = sums + (weights * centred) @ centred.T, freedom + len(weights) - 1
    if freedom < 2:
        return None
    (people_variance, covariance), (_, grader_variance) = sums / freedom
    product = people_variance * grader_variance
    r = covariance / math.sqrt(product) if product > 0 else 0.0
    return LabelSpread(math.sqrt(people_variance) * span, min(max(r, 0.0), 1.0))
