"""Each subject's rate of affirmative verdicts, mean label, and shares of classes: as a grader
counts them, and as people would.

A mean of labels is the same on a scale from 0 to 1, where the lowest label is 0 and the highest 1;
a rate is the mean of verdicts, which are 0 or 1, and a share that of having the class. There is one
estimator of all, and figures are moved back onto the labels' scale as rows are written.

A grader that errs gets a rate wrong, however much it grades. Two corrections, both from the
sample that people labelled and the units that only the grader labelled:

- Rogan & Gladen (1978): sensitivity and specificity turn the grader's rate into people's,
  (rate + specificity - 1) / (sensitivity + specificity - 1). It holds where the grader errs alike
  on both parts, whatever their prevalence.
- Prediction-powered inference (Angelopoulos et al. 2023a; PPI++ 2023b): people's own rate on the
  sample, plus the grader's rate elsewhere minus its rate on the sample, times a weight. With weight
  1 that is PPI, with 0 people's rate alone; PPI++ takes the weight that varies least, from 0 to 1.
  It holds for any grader where the sample is a random one.

Both are functions of a few sums over units, so that a bootstrap resamples the labelled and the
unlabelled part alike. A reference may lie between 0 and 1: a tied unit counts half on either side.
Shares of classes have one weight on the grader, which varies least over all of them, and so sum to
one (ibid., for several means).

By subject, Rogan-Gladen takes its error rates from all subjects together: those of each rest on a
handful of units of the rarer verdict. That is wrong where a grader errs differently from subject to
subject, so it is tested. PPI++ is computed by subject and makes no such assumption.

*People's rate* means the same everywhere: the mean over units of the share of people who affirm the
unit, as in `subject_score` and `prevalence`. Unlike the rate of majority verdicts it does not
depend on how many people labelled a unit, and has no ties.

The side of the pairs that a subject favours is where its answers are affirmative more often, or
their labels higher. The two answers to a pair are compared with one another, and people's mean
difference is estimated by PPI++ as a mean is, with a weight on the grader of its own. What both
sides of a pair share drops out, so that a difference is surer than the two sides' rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from evenhand.analysis.bootstrap import intervals
from evenhand.analysis.bootstrap.intervals import Interval, Reach, Z
from evenhand.analysis.bootstrap.resamples import Bootstrap, ratio
from evenhand.analysis.labels.encoding import cluster_codes, same_length, units_of_both_sides
from evenhand.analysis.labels.matrix import LabelMatrix, UnitColumn, sides_of
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import Note, Remark, join_notes
from evenhand.analysis.subjects.scores import (
    MEANS,
    RATES,
    Corrected,
    Measure,
    add_difference_rows,
    all_differences,
    people_means,
    reach_together,
)
from evenhand.analysis.types import Array, Codes, Column, Mask
from evenhand.analysis.writer import About, RubricView, Writer
from evenhand.errors import InputError


class RateSums(NamedTuple):
    """Sums over units, all of one shape (rows, ...): the labelled part, then the rest. `labelled`
    units have a reference and a grade, of which `affirmed` and `graded` are the sums and `both` the
    sum of their product; `rest` units have a grade only, `rest_graded` is its sum. `between` sums
    grade x (1 - grade) over all graded units: nothing, where grades are 0 or 1. The variance of
    means' grades is over all units less one, as in the authors' ppi_py.
    """

    labelled: Array
    affirmed: Array
    graded: Array
    both: Array
    rest: Array
    rest_graded: Array
    between: Array = np.zeros(1)
    less: float = 0.0

    @property
    def raw(self) -> Array:
        """The grader's rate on all units that it graded."""
        return ratio(self.graded + self.rest_graded, self.labelled + self.rest)

    @property
    def people(self) -> Array:
        """The reference's rate on the labelled units."""
        return ratio(self.affirmed, self.labelled)

    @property
    def sensitivity(self) -> Array:
        """Share of the units that the reference affirms which the grader affirms too."""
        return ratio(self.both, self.affirmed)

    @property
    def specificity(self) -> Array:
        """Share of the units that the reference does not affirm which the grader does not affirm
        either.
        """
        refused = self.labelled - self.affirmed
        return ratio(refused - (self.graded - self.both), refused)

    @property
    def youden_j(self) -> Array:
        """Sensitivity + specificity - 1: 0 for a grader without any information (Youden 1950)."""
        return self.sensitivity + self.specificity - 1.0

    @property
    def graded_labelled(self) -> Array:
        """The grader's rate on the labelled units."""
        return ratio(self.graded, self.labelled)

    @property
    def elsewhere(self) -> Array:
        """The grader's rate where there is no reference."""
        return ratio(self.rest_graded, self.rest)

    @property
    def covariance(self) -> Array:
        """That of reference and grade, on the labelled units."""
        return ratio(self.both, self.labelled) - self.people * self.graded_labelled

    @property
    def variance(self) -> Array:
        """That of the grades, over all graded units."""
        units = self.labelled + self.rest
        about_zero = self.raw * (1.0 - self.raw) - ratio(self.between, units)
        return about_zero * ratio(units, np.maximum(units - self.less, units / 2.0))

    @property
    def ppi_weight(self) -> Array:
        """The weight of PPI++ for a mean (Angelopoulos et al. 2023b, example 6.1), from 0 to 1.

        cov(reference, grade) / ((1 + labelled / rest) var(grade)), the variance over all graded
        units; 0 where the grades do not vary, and where people labelled all of them. In resamples
        of clusters the weight is not the very best if units of one cluster go together. A weight
        fixed beforehand biases no rate; one taken from the labels does, the more the fewer they
        are.
        """
        spread = self.variance * (1.0 + ratio(self.labelled, self.rest))
        return _tuned(self.covariance, spread, self.rest)

    def ppi(self, weight: Array | float) -> Array:
        """People's rate by prediction-powered inference with this weight, as it comes; where people
        labelled everything, their own.
        """
        apart = self.elsewhere - self.graded_labelled
        return self.people + weight * np.where(self.rest > 0, apart, 0.0)


def _tuned(shared: Array, spread: Array, rest: Array) -> Array:
    """The weight on the grader, `shared` / `spread` from 0 to 1: 0 without spread or without a
    `rest` to draw on, NaN where a resample has none of a part.
    """
    weight = np.divide(shared, spread, out=np.zeros(spread.shape), where=spread > 1e-12)
    return np.where(np.isnan(spread) & (rest > 0), np.nan, np.clip(weight, 0.0, 1.0))


def stratified_ppi(sums: RateSums, *, classes: bool = False) -> tuple[Array, Array]:
    """People's rate by stratified prediction-powered inference, and the weight on the grader.

    `sums` are (rows, ..., strata), row 0 the data; both results (rows, ...). Each stratum counts by
    its share of all units in the data, as the sample is random within strata only (Fisch et al.
    2024, section 4). One weight for all strata
    is as good as the sample allows: tuned on the few labels of each, many weights add up to a bias.
    It is the one that varies least, sum W^2 cov / n over sum W^2 var (1 / n + 1 / rest), and with
    one stratum that of PPI++. Of `classes`, (rows, ..., classes, strata), it is one for all, too.
    """
    size = (sums.labelled + sums.rest)[:1]
    share = ratio(size, size.sum(axis=-1, keepdims=True))
    one, over = np.ones(1), (-2, -1) if classes else -1
    spread = sums.variance * (ratio(one, sums.labelled) + ratio(one, sums.rest))
    shared = (share**2 * ratio(sums.covariance, sums.labelled)).sum(axis=over)
    total = (share**2 * spread).sum(axis=over)
    weight = _tuned(shared, total, sums.rest.sum(axis=over))
    each = weight[..., None, None] if classes else weight[..., None]
    return (share * sums.ppi(each)).sum(axis=-1), weight


def corrected_interval(
    found: Interval,
    drawn: Array,
    n_units: int,
    labelled: tuple[int, int],
    reach: Reach | None = None,
) -> Interval:
    """The interval of a corrected rate, within [0, 1]: a share's with the rate's own variance, or
    as wide as the clusters allow where no resample differs.

    `drawn` are the resampled rates as they come, `n_units` all units graded, `labelled` the (units,
    clusters) that people labelled, `reach` that of prediction-powered inference.
    """
    estimate, low, high = clipped(np.array([found.estimate, found.low, found.high])).tolist()
    within = Interval(estimate, low, high, found.remarks)
    units = n_units if reach is None else labelled[0]
    found = intervals.share_interval(within, drawn, units, labelled[1], reach)
    low, high = clipped(np.array([found.low, found.high])).tolist()
    return intervals.widened(replace(found, low=low, high=high), labelled[1], "unit")


def ppi_reach(sums: Array, weight: float) -> Reach | None:
    """Return the score reach of a PPI++ rate, from sums of features over clusters (clusters, k), or
    (clusters, strata, k), as of `rate_features`, and the weight on the grader.

    Units count so that each stratum has its share of all. None with one labelled cluster, or
    without a weight: then the rate is people's own, and its interval that of any share.
    """
    if not weight > 0.0:
        return None
    sums = sums.reshape(len(sums), -1, sums.shape[-1])[..., :6]
    held = sums[..., [0, 4]].sum(axis=0)
    counted = np.nan_to_num(ratio(held.sum(axis=1, keepdims=True), held))[:, [0, 0, 0, 0, 1, 1]]
    labelled, affirmed, graded, _, rest, rest_graded = (sums * counted).sum(axis=1).T
    apart = rest_graded - rest_graded.sum() / rest.sum() * rest
    unlabelled_error = weight * math.sqrt(float((apart**2).sum())) / float(rest.sum())
    columns = np.column_stack([affirmed, weight * graded, labelled])[labelled > 0]
    if len(columns) < 2:
        return None
    kinds, times = np.unique(columns, axis=0, return_counts=True)
    cases, shifted, sizes = kinds.T
    return intervals.powered_reach(cases, shifted, sizes, times.astype(float), unlabelled_error)


def invert(rate: Array, sensitivity: Array, specificity: Array) -> Array:
    """Rogan & Gladen's estimate, NaN where sensitivity + specificity is no more than 1.

    >>> invert(np.array(0.48), np.array(70 / 80), np.array(100 / 120)).round(4).item()
    0.4424
    """
    j = sensitivity + specificity - 1.0
    return np.where(j > 0, (rate + specificity - 1.0) / np.where(j > 0, j, 1.0), np.nan)


def clipped(rate: Array) -> Array:
    """Move a corrected rate that leaves the range of rates by chance to its nearest end."""
    return np.asarray(np.clip(rate, 0.0, 1.0))


def rate_features(reference: Array, grades: Array) -> Array:
    """Return the features of each unit that `RateSums` sums, (units, 7), from reference and
    grades (units,), NaN for none. Units without a grade count nowhere.
    """
    labelled = ~np.isnan(reference) & ~np.isnan(grades)
    rest = np.isnan(reference) & ~np.isnan(grades)
    y, f = np.nan_to_num(reference), np.nan_to_num(grades)
    apart = [labelled, labelled * y, labelled * f, labelled * y * f, rest, rest * f, f * (1.0 - f)]
    return np.column_stack(apart)


@dataclass(frozen=True, kw_only=True)
class RoganGladen(Interval):
    """People's rate from a grader's and its errors, with its 95% interval, all within [0, 1].

    `note` gives the reason where something is NaN.
    """

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
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> RoganGladen:
    """Rogan & Gladen's estimate (1978) of people's rate.

    Parameters
    ----------
    reference, grades : sequences (labelled units,)
        People's verdicts, 0, 1 or between the two where they disagree, and the grader's, 0 or 1.
    rest : sequence (other units,)
        The grader's verdicts on the units that no person labelled.
    clusters : sequence, optional
        Any hashable id of each unit's cluster, the labelled ones first; else units are drawn.
    bootstrap : Bootstrap, optional
        Number of resamples and seed of the interval; labelled and other units are drawn alike.

    Returns
    -------
    RoganGladen

    Raises
    ------
    InputError
        Where verdicts are missing or out of range.

    Examples
    --------
    80 units that people affirm, of which the grader affirms 70, and 120 others with 20 false
    alarms; it affirms 480 of 1,000 units elsewhere:

    >>> people, grader = np.repeat([[1, 1], [0, 1], [1, 0], [0, 0]], [70, 20, 10, 100], axis=0).T
    >>> elsewhere = np.repeat([1, 0], [480, 520])
    >>> result = rogan_gladen(people, grader, elsewhere)
    >>> round(result.estimate, 4), round(result.low, 2), round(result.high, 2)
    (0.4424, 0.36, 0.53)
    """
    units = _units(reference, grades, rest)
    sums = RateSums(*units.sum(axis=0))
    estimate = float(clipped(_inverted(sums)))
    if math.isnan(estimate):
        bounds = Interval.undefined(_why_undefined(sums))
    else:
        bounds = _resampled(units, clusters, bootstrap, _inverted)
    given = estimate, bounds.low, bounds.high, bounds.remarks
    sensitivity, specificity = float(sums.sensitivity), float(sums.specificity)
    return RoganGladen(*given, sensitivity=sensitivity, specificity=specificity)


def ppi_plus_plus(
    reference: Column[float],
    grades: Column[float],
    rest: Column[float],
    *,
    weight: float | None = None,
    method: Literal["bootstrap", "normal"] = "bootstrap",
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> PredictionPowered:
    """Prediction-powered inference for people's rate (Angelopoulos et al. 2023, arXiv 2311.01453).

    Other parameters, and what is raised, are those of `rogan_gladen`.

    Parameters
    ----------
    weight : float from 0 to 1, optional
        On the grader; estimated (PPI++) unless given. 1 is PPI, 0 the sample alone.
    method : "bootstrap" or "normal"
        With the weight estimated in each resample; or the large-sample interval of independent
        units.

    Returns
    -------
    PredictionPowered

    Examples
    --------
    The units of `rogan_gladen`'s example:

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
    units = _units(reference, grades, rest)
    sums = RateSums(*units.sum(axis=0))

    def rate(each: RateSums) -> Array:
        return each.ppi(each.ppi_weight if weight is None else weight)

    used = float(sums.ppi_weight if weight is None else weight)
    estimate = float(clipped(rate(sums)))
    if sums.rest == 0:  # there is nothing to draw on
        used = estimate = math.nan
    if math.isnan(estimate):
        bounds = Interval.undefined(_why_undefined(sums))
    elif method == "bootstrap":
        bounds = _resampled(units, clusters, bootstrap, rate, used)
    elif method == "normal":
        y, f, g = (np.asarray(given, dtype=float) for given in (reference, grades, rest))
        variance = used**2 * np.var(g) / len(g) + np.var(y - used * f) / len(y)
        half = Z * math.sqrt(variance)
        bounds = Interval(estimate, *clipped(estimate + np.array([-half, half])).tolist())
    else:
        raise InputError(f"method is {method!r}; it must be bootstrap or normal")
    return PredictionPowered(estimate, bounds.low, bounds.high, bounds.remarks, weight=used)


def _units(reference: Column[float], grades: Column[float], rest: Column[float]) -> Array:
    """Features of the labelled units, then of the rest: (units, 6)."""
    y, f, g = (np.asarray(given, dtype=float) for given in (reference, grades, rest))
    same_length(y, f)
    binary = np.isin(f, (0, 1)).all() and np.isin(g, (0, 1)).all()
    if not binary or not ((y >= 0) & (y <= 1)).all():
        raise InputError(
            "a grader's verdicts must be 0 or 1, and the reference's between 0 and 1, none missing"
        )
    return rate_features(np.concatenate([y, np.full(len(g), np.nan)]), np.concatenate([f, g]))


def _inverted(sums: RateSums) -> Array:
    return invert(sums.elsewhere, sums.sensitivity, sums.specificity)


def _why_undefined(sums: RateSums) -> str:
    if sums.rest == 0:
        return "no_unlabelled_units"
    return "no_variation" if math.isnan(sums.youden_j) else "grader_not_informative"


def _resampled(
    units: Array,
    clusters: Column[Hashable] | None,
    bootstrap: Bootstrap | None,
    rate: Callable[[RateSums], Array],
    weight: float | None = None,
) -> Interval:
    """Return the interval of a rate from resamples of units or clusters, like ones folded into one,
    with the `weight` of prediction-powered inference, None for Rogan & Gladen. What is known of the
    rate rests on the labelled ones.
    """
    of = cluster_codes(clusters, len(units))
    sums = np.column_stack([np.bincount(of, weights=column) for column in units.T]).astype(float)
    distinct, times = np.unique(sums, axis=0, return_counts=True)
    resamples = (bootstrap or Bootstrap()).draw(times)
    replicates = rate(RateSums(*resamples.totals(distinct).T))
    labelled = int(units[:, 0].sum()), int(np.count_nonzero(sums[:, 0]))
    interval = resamples.interval(replicates, labelled[1])
    reach = Reach(np.inf, np.inf, labelled[1]) if weight is None else ppi_reach(sums, weight)
    return corrected_interval(interval, replicates[1:], len(units), labelled, reach)


NOT_INFORMATIVE = Remark("grader_not_informative")
"""Rogan-Gladen divides by sensitivity + specificity - 1, which may be 0 for all that is known."""
NOTHING_UNLABELLED = Remark("no_unlabelled_units")
"""The grader graded only what people labelled: there is nothing to correct it on."""
PEOPLES_OWN = Remark("peoples_own")
"""People labelled all that the grader graded: PPI++ is their own rate."""
IMPOSSIBLE = Remark("outside_zero_one")
"""The whole interval lies beyond [0, 1]: the error rates cannot be those of this subject."""
FEW_UNITS = 30
FEW = Remark("few_labelled", (FEW_UNITS,))
MIN_STRATUM = 20
"""Strata of fewer labelled clusters, or fewer others, are taken together: a resample must not come
out without any, and a share of few says nothing of its own."""


class Scores(NamedTuple):
    """What a view's labels are worth, from 0 to 1, by people (units,) and by every grader that has
    any, NaN for none; and what their means are.
    """

    measure: Measure
    people: Array
    graded: dict[str, Array]

    @classmethod
    def of(cls, view: RubricView, humans: Sequence[int] | None = None) -> Scores:
        """The verdicts of a binary view, else where labels lie on the scale; of some `humans`."""
        labels, measure = view.labels, RATES
        annotators = list(labels.humans if humans is None else humans)
        people, each = people_means(labels, annotators), labels.verdict_values
        if not view.coded.is_binary:
            values = np.array(labels.scale.values)
            measure = MEANS._replace(onto=(float(values.min()), float(np.ptp(values)) or 1.0))
            decided = [category not in labels.scale.unclear for category in labels.scale.categories]
            at = np.where(decided, (values - measure.onto[0]) / measure.onto[1], np.nan)
            each = np.append(at, np.nan)[labels.codes]
            given = each[:, annotators]
            people = ratio(np.nansum(given, axis=1), (~np.isnan(given)).sum(axis=1))
        graded = [model for model in labels.models if not np.isnan(each[:, model]).all()]
        return cls(measure, people, {labels.raters[model]: each[:, model] for model in graded})


def add_corrected_rows(out: RubricView) -> None:
    """Rates or means by subject (at): people's own, and each grader's before and after correction.

    The labels have one row per unit that counts towards a rate. `rate_human` is people's on what
    they labelled; `rate_raw`, `rate_rogan_gladen` and `rate_ppi` are for all units that the grader
    graded; `sensitivity`, `specificity` and `youden_j` of those that people labelled too. Means of
    labels are `subject_score` of people and of the grader, and `mean_ppi`. Where the labelled
    sample is stratified, PPI++ is too. Differences between subjects hold together over all rubrics.
    Where the units table names no subject, all units are one. Without people there are raw figures
    alone.
    """
    labels, scores, groups = out.labels, Scores.of(out), _Groups.of(out.labels)
    strata = joint_strata(labels.columns(out.request.strata), len(labels.codes))
    _add_people_rows(out, scores, groups)
    for grader in scores.graded:
        _Corrected(out, groups, grader, scores, strata).add_rows(out.request.rubrics)


def add_part_rows(whole: RubricView, columns: Sequence[UnitColumn] | None = None) -> None:
    """Rates or means by subject (at) in every part of the sample by these `columns` or those
    requested: people's own, each grader's, and its PPI++ with the errors that it makes in that
    part.

    What rests on fewer than `FEW_UNITS` labelled units says so. Without people there are raw
    figures alone.
    """
    labels, scores, groups = whole.labels, Scores.of(whole), _Groups.of(whole.labels)
    columns = labels.columns(whole.request.screened) if columns is None else columns
    for part, chosen in (part for column in columns for part in column.parts()):
        kept, clusters = np.unique(whole.clusters[chosen], return_inverse=True)
        out = Writer(whole.rows, whole.resamples.only(kept), clusters, whole.coded.part(part))
        graded = {grader: each[chosen] for grader, each in scores.graded.items()}
        own = scores._replace(people=scores.people[chosen], graded=graded)
        inside = replace(groups, codes=groups.codes[chosen])
        _add_people_rows(out, own, inside)
        for grader in graded:
            _Corrected(out, inside, grader, own).add_raw_and_ppi()


def add_public_rows(whole: RubricView) -> None:
    """Rates or means by subject (at) as the annotators of each side have them (subset =
    "column=value"): their own, and each grader's PPI++ with its errors by their labels. Then the
    difference of every two sides (subset = "column=first>second") by the statistic of two sides of
    a pair, all bounds of a grader together, and the least of all sides ("column=*").

    The least is the true least of a side with probability .975 at either end: below, every side's
    own bound holds for it; above, each bound is widened by Bonferroni, as any side may be lowest.
    """
    labels, groups = whole.labels, _Groups.of(whole.labels)
    for column, sides in sides_of(whole.request.people, labels).items():
        by_grader: dict[str, list[_Corrected]] = {}
        for side, members in sides.items():
            scores = Scores.of(whole, members)
            out = whole.on(whole.coded.part(f"{column}={side}"))
            _add_people_rows(out, scores, groups)
            for grader in scores.graded:
                corrected = _Corrected(out, groups, grader, scores)
                corrected.add_raw_and_ppi()
                by_grader.setdefault(grader, []).append(corrected)
        for grader, rates in by_grader.items():
            _add_sides_together(whole, column, list(sides), grader, rates)


def _add_sides_together(
    whole: RubricView, column: str, sides: Sequence[str], grader: str, each: Sequence[_Corrected]
) -> None:
    """Add the differences between sides, and the least, of each subject, from one grader's figures
    by the annotators of each side.
    """
    measure, groups = each[0].measure, each[0].groups
    start, span = measure.onto
    more = float(ndtri(1.0 - 0.025 / len(sides))) / Z
    alpha = 0.05 / whole.request.rubrics / len(groups.names)
    for at, name, member in groups:
        on_side = member & each[0].graded
        rows = [
            whole.rows.get(measure.powered, "humans", grader, one.out.subset, name) for one in each
        ]
        of = [row for row in rows if row and not np.isnan(row["estimate"])]
        if len(of) < len(sides):
            continue
        rates = np.column_stack([one.rates[:, at] for one in each])
        rates[0] = clipped(rates[0])
        labelled = np.array([whole.count(one.both & member)[1] for one in each])
        every = all_differences(rates, labelled, alpha, is_rate=measure.is_rate)
        ends = np.clip([every.estimate, every.low, every.high], -1.0, 1.0).T.tolist()
        for first, second, bounds in zip(every.first, every.second, ends, strict=True):
            out = whole.on(whole.coded.part(f"{column}={from_to(sides[first], sides[second])}"))
            about = About(a="humans", b=grader, at=name, onto=(0.0, span))
            out.add(measure.sides, Interval(*bounds), on_side, **about)
        values = np.array([[row["estimate"], row["low"], row["high"]] for row in of])
        values[:, 2] = values[:, 0] + more * (values[:, 2] - values[:, 0])
        values = clipped((values.min(axis=0) - start) / span)
        out = whole.on(whole.coded.part(f"{column}=*"))
        about = About(a="humans", b=grader, at=name, onto=measure.onto)
        out.add(measure.least, Interval(*values.tolist()), on_side, **about)


def spreads(view: RubricView) -> dict[tuple[str, str], Corrected]:
    """Return what a plan for a corrected mean ("mean"), or for a difference of two subjects within
    clusters ("difference"), rests on, by this and the grader, on the labels' own scale: pooled over
    subjects, or over every two of them.
    """
    scores, groups, clusters = Scores.of(view), _Groups.of(view.labels), view.labels.clusters
    count, corrected = len(groups.names), dict[tuple[str, str], Corrected]()
    unit = clusters if count > 1 else np.arange(len(clusters))
    for grader, graded in scores.graded.items():
        both = ~np.isnan(scores.people + graded) & (groups.codes >= 0)
        at, shape = (unit[both], groups.codes[both]), (int(unit.max()) + 1, count)
        sums = np.zeros((3, *shape))
        for total, values in zip(sums, (scores.people, graded, both), strict=True):
            np.add.at(total, at, values[both])
        people, by_grader = (ratio(total, sums[2]).T for total in sums[:2])
        of = {
            "mean": list(zip(people, by_grader, strict=True)),
            "difference": [
                (people[i] - people[j], by_grader[i] - by_grader[j])
                for i, j in zip(*np.triu_indices(count, 1), strict=True)
            ],
        }
        for what, parts in of.items():
            kept = [np.stack(part)[:, ~np.isnan(part[0])] for part in parts]
            kept = [part - part.mean(axis=1, keepdims=True) for part in kept if part.shape[1] > 1]
            freedom = sum(part.shape[1] - 1 for part in kept)
            if freedom > 1:
                (y, shared), (_, f) = sum(part @ part.T for part in kept) / freedom
                r = shared / math.sqrt(y * f) if y * f > 0 else 0.0
                spread = math.sqrt(y) * scores.measure.onto[1]
                corrected[what, grader] = Corrected(spread, min(max(r, 0.0), 1.0))
    return corrected


def has_means(scale: Scale) -> bool:
    """True for labels in an order, of more than two, which favour no side."""
    return scale.level != "nominal" and len(scale.categories) > 2 and not scale.favours


def add_share_rows(view: RubricView) -> None:
    """Add `prevalence_ppi` of every class (at): people's share of it on all units that a grader
    graded, and by subject, part of the sample and side (subset). A grader's shares sum to one.
    """
    labels = view.labels
    has = np.vstack([np.eye(view.coded.q), np.full(view.coded.q, np.nan)])[labels.codes]
    counts = np.nansum(has[:, list(labels.humans)], axis=1)
    people = ratio(counts, counts.sum(axis=1, keepdims=True))
    strata = joint_strata(labels.columns(view.request.strata), len(people))
    columns = [UnitColumn("subject", labels.subjects, labels.subject), *labels.sides]
    columns += labels.columns(view.request.screened)
    parts = [(part, chosen) for column in columns for part, chosen in column.parts()]
    for grader in [model for model in labels.models if (labels.codes[:, model] >= 0).any()]:
        each = zip(people.T, has[:, grader].T, strict=True)
        features = np.stack([rate_features(*of_class) for of_class in each], axis=1)
        graded, known = labels.codes[:, grader] >= 0, ~np.isnan(people[:, 0])
        for part, chosen in [("all", np.ones(len(people), dtype=bool)), *parts]:
            out, in_part = view.on(part), graded & chosen
            if not (in_part & known).any():
                continue
            held = [in_part & known, in_part & ~known]
            joined = large_strata(strata, held, lambda units: view.count(units)[1])
            codes = np.where(in_part, joined, -1)
            count = int(joined.max()) + 1
            cells = cell_sums(features.reshape(len(people), -1), codes, count, out)
            apart = cells.reshape(len(counts.T), 7, *cells.shape[1:])
            sums = RateSums(*np.moveaxis(apart, 0, 2))._replace(less=1.0)
            shares, weight = stratified_ppi(sums, classes=True)
            shares = clipped(shares)
            shares /= shares.sum(axis=1, keepdims=True)
            for at, name in enumerate(view.coded.categories):
                reach = _reach_in(out, features[:, at], codes, float(weight[0]))
                about = About(a="humans", b=labels.raters[grader], at=name)
                labelled = out.count(held[0])
                rests_on = _rests_on(out, held[0], held[1], count)
                about["note"] = join_notes(rests_on, Remark("labelled_by_people", labelled[:1]))
                interval = out.resamples.interval(shares[:, at], labelled[1])
                drawn = shares[1:, at]
                within = corrected_interval(interval, drawn, out.count(in_part)[0], labelled, reach)
                out.add("prevalence_ppi", within, in_part, **about)


def _reach_in(out: Writer, features: Array, strata: Codes, weight: float) -> Reach | None:
    """The reach of a figure on the units that have a stratum, (units,), -1 for none."""
    inside = strata[:, None] == np.arange(int(strata.max()) + 1)
    columns = (inside[:, :, None] * features[:, None, :]).reshape(len(strata), -1)
    sums = out.each_cluster(columns).reshape(-1, inside.shape[1], features.shape[1])
    return ppi_reach(sums, weight)


def _rests_on(out: Writer, labelled: Mask, rest: Mask, strata: int) -> Note:
    """Say what a figure of PPI++ rests on that is not as usual: units (units,) without others, so
    many strata, few labels in a part of the sample.
    """
    within: Note = f"in {strata} strata" if strata > 1 else ""
    if not out.subset.startswith("all") and out.count(labelled)[0] < FEW_UNITS:
        within = FEW
    return join_notes("" if rest.any() else PEOPLES_OWN, within)


@dataclass(frozen=True)
class _Groups:
    """The groups whose rates are estimated: the subjects, or one nameless group of everything."""

    names: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, labels: LabelMatrix) -> _Groups:
        if labels.subjects:
            return cls(labels.subjects, labels.subject)
        return cls(("",), np.zeros(len(labels.codes), dtype=np.intp))

    def __iter__(self) -> Iterator[tuple[int, str, Mask]]:
        """Place, name and member units (units,) of each group."""
        for at, name in enumerate(self.names):
            yield at, name, self.codes == at

    def sums(self, features: Array, out: Writer, less: float = 0.0) -> RateSums:
        """The features (units, 7) summed by group in every resample: each (rows, groups)."""
        return RateSums(*cell_sums(features, self.codes, len(self.names), out))._replace(less=less)


def _add_people_rows(out: Writer, scores: Scores, groups: _Groups) -> None:
    measure, reference, _ = scores
    labelled = ~np.isnan(reference)
    features = np.column_stack([labelled, np.where(labelled, reference, 0.0)])
    people = ratio(*cell_sums(features, groups.codes, len(groups.names), out)[::-1])
    for at, name, member in groups:
        if (in_part := labelled & member).any():
            counts, about = out.count(in_part), About(a="humans", at=name, onto=measure.onto)
            about["reach"] = measure.reach(counts[1])
            out.add(measure.people, people[:, at], counts, **about)


def joint_strata(columns: Sequence[UnitColumn], n_units: int) -> Codes:
    """The cell of the columns' joint values that each unit is in, (units,); 0 without columns."""
    if not columns:
        return np.zeros(n_units, dtype=np.intp)
    cells = np.column_stack([column.codes for column in columns])
    return np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)


def large_strata(strata: Codes, parts: Sequence[Mask], count: Callable[[Mask], int]) -> Codes:
    """Renumber strata (units,) so that each has `MIN_STRATUM` of both parts, the labelled units and
    the rest, each (units,), by `count`. Smaller ones are one stratum, 0, with the smallest of the
    others if they are too small even so.
    """
    out, number, together = np.zeros(len(strata), dtype=np.intp), 0, np.zeros(2, dtype=np.intp)
    held = {
        stratum: np.array([count((strata == stratum) & part) for part in parts])
        for stratum in np.unique(strata[np.any(parts, axis=0)])
    }
    for stratum in sorted(held, key=lambda row: held[row].min()):
        short = together.any() and together.min() < MIN_STRATUM
        if short or held[stratum].min() < MIN_STRATUM:
            together += held[stratum]
        else:
            number += 1
            out[strata == stratum] = number
    return out if together.any() else np.maximum(out - 1, 0)


def cell_sums(features: Array, codes: Codes, count: int, out: Writer) -> Array:
    """Sum features (units, k) over the units of each code, in every resample: (k, rows, count)."""
    inside, n_types = codes >= 0, out.resamples.n_types
    cell = out.clusters[inside] * count + codes[inside]
    size = n_types * count
    cells = [np.bincount(cell, weights=column[inside], minlength=size) for column in features.T]
    shaped = np.stack(cells, axis=1).reshape(n_types, count, len(cells))
    return np.moveaxis(out.resamples.totals(shaped), -1, 0)


class _Corrected:
    """Rates or means of one grader by group, from `scores`. PPI++ (`rates` and `weight`, (rows,
    groups)) is stratified in groups whose labels reach for two strata or more; `strata` has their
    stratum of each unit (units,).
    """

    def __init__(
        self,
        out: Writer,
        groups: _Groups,
        grader: str,
        scores: Scores,
        strata: Codes | None = None,
    ) -> None:
        self.out, self.groups, self.grader, self.measure = out, groups, grader, scores.measure
        self.reference, grades = scores.people, scores.graded[grader]
        about = About(a="humans", b=grader, onto=self.measure.onto)
        self._add = partial(out.add, reason="no_variation", **about)
        self.graded, self.labelled = ~np.isnan(grades), ~np.isnan(self.reference)
        self.both = self.graded & self.labelled
        self.features = rate_features(self.reference, grades)
        less = 0.0 if self.measure.is_rate else 1.0
        self.sums = groups.sums(self.features, out, less)
        self.weight = self.sums.ppi_weight
        self.rates = self.sums.ppi(self.weight)
        self.strata: dict[int, Codes] = {}
        if strata is None:
            return
        for at, _, member in groups:
            parts = [member & (self.features[:, column] > 0) for column in (0, 4)]
            joined = large_strata(strata, parts, lambda units: out.count(units)[1])
            if count := int(joined.max(initial=0)):
                codes = self.strata[at] = np.where(member, joined, -1)
                parted = RateSums(*cell_sums(self.features, codes, count + 1, out))
                parted = parted._replace(less=less)
                self.rates[:, at], self.weight[:, at] = stratified_ppi(parted)

    def add_rows(self, rubrics: int) -> None:
        """All rows of this grader; before people have labelled anything its raw rates. The groups'
        differences hold together over so many rubrics.
        """
        if self.labelled.any() and self.measure.is_rate:
            self._add_by_error_rates()
        else:
            self.add_raw_and_ppi()
        if self.labelled.any():
            self._add_differences(rubrics)

    def _add_by_error_rates(self) -> None:
        """Add the error rates, and the corrected rates with Rogan and Gladen's among them."""
        pooled = RateSums(*(total.sum(axis=1, keepdims=True) for total in self.sums[:7]))
        useless = self._add_error_rates(pooled)
        self.add_raw_and_ppi()
        inverted = invert(self.sums.raw, pooled.sensitivity, pooled.specificity)
        for at, name, member in self.groups:
            if (in_part := self.graded & member).any():
                why = useless if (in_part & ~self.labelled).any() else NOTHING_UNLABELLED
                self._add_corrected("rate_rogan_gladen", inverted[:, at], name, in_part, why)

    def add_raw_and_ppi(self) -> None:
        """Add each group's raw rate, and PPI++."""
        for at, name, member in self.groups:
            if not (in_part := self.graded & member).any():
                continue
            a, b = ("humans", self.grader) if self.measure.is_rate else (self.grader, "")
            reach = self.measure.reach(self.out.count(in_part)[1])
            self._add(
                self.measure.raw, self.sums.raw[:, at], in_part, a=a, b=b, at=name, reach=reach
            )
            if not self.labelled.any():
                continue
            labelled = in_part & self.labelled
            why = None if labelled.any() else Remark("no_pairable_units")
            strata = self.strata.get(at, np.where(in_part, 0, -1))
            about = _rests_on(self.out, labelled, in_part & ~self.labelled, int(strata.max()) + 1)
            weighed = bool(self.weight[0, at] > 0)
            reach = self.measure.reach(np.inf if weighed else self.out.count(labelled)[1])
            if not why and self.measure.is_rate:
                reach = _reach_in(self.out, self.features, strata, float(self.weight[0, at]))
            self._add_corrected(
                self.measure.powered, self.rates[:, at], name, in_part, why, about, reach
            )

    def _add_differences(self, rubrics: int) -> None:
        """Add the differences of the groups' corrected rates, if there are two that are defined."""
        rows = {
            at: self.out.rows.get(
                self.measure.powered, "humans", self.grader, self.out.subset, name
            )
            for at, name, _ in self.groups
        }
        of = {at: row for at, row in rows.items() if row and not np.isnan(row["estimate"])}
        if len(of) < 2:
            return
        rates = self.rates[:, list(of)]
        rates[0] = clipped(rates[0])  # as the rows of the rates have it
        members = [member for at, _, member in self.groups if at in of]
        labelled = np.array([self.out.count(self.both & member)[1] for member in members])
        # A grade that is missing is an answer, too.
        of_type = self.out.resamples.cluster_sums(self.out.clusters, np.column_stack(members))
        answered = self.out.resamples.each_cluster(of_type) > 0
        given = list(of.values()), rates, labelled, answered, rubrics
        add_difference_rows(self.out, self.grader, self.measure, *given)

    def _add_error_rates(self, pooled: RateSums) -> Remark | None:
        """Add sensitivity and specificity overall and by group, and J overall, as few units of the
        rarer verdict tell little of it; return why they cannot be used, if so.
        """
        affirmed, refused = self.both & (self.reference > 0), self.both & (self.reference < 1)
        self._add("sensitivity", pooled.sensitivity[:, 0], affirmed)
        self._add("specificity", pooled.specificity[:, 0], refused)
        j = self._add("youden_j", pooled.youden_j[:, 0], self.both)
        for at, name, member in self.groups if len(self.groups.names) > 1 else ():
            if (self.both & member).any():
                self._add("sensitivity", self.sums.sensitivity[:, at], affirmed & member, at=name)
                self._add("specificity", self.sums.specificity[:, at], refused & member, at=name)
        if np.isnan(j.estimate):
            return Remark("no_variation" if self.both.any() else "no_pairable_units")
        if np.isnan(j.low):
            return j.remarks[0]
        return None if j.low > 0 else NOT_INFORMATIVE

    def _add_corrected(
        self,
        statistic: str,
        values: Array,
        name: str,
        units: Mask,
        why: Remark | None,
        about: Note = "",
        reach: Reach | None = None,
    ) -> None:
        """A corrected rate within [0, 1], of PPI++ with its `reach`; or `why` there is none."""
        if why:
            self._add(statistic, np.full(len(values), np.nan), units, at=name, reason=why)
            return
        counts, labelled = self.out.count(units), self.out.count(units & self.labelled)
        rests_on = labelled
        if statistic == "rate_rogan_gladen":  # what it may be off by is not bounded by these labels
            rests_on = self.out.count(self.both)
            reach = Reach(np.inf, np.inf, rests_on[1])
        interval = self.out.resamples.interval(values, rests_on[1])
        if interval.low > 1 or interval.high < 0:
            interval = Interval.undefined(IMPOSSIBLE)
        outside = "clipped to [0, 1]" if interval.estimate < 0 or interval.estimate > 1 else ""
        note = join_notes(about, outside, Remark("labelled_by_people", (labelled[0],)))
        drawn = values[1:]
        within = corrected_interval(interval, drawn, counts[0], rests_on, reach)
        self._add(statistic, within, counts, at=name, note=note)


def add_side_difference_rows(view: RubricView, sign: Array) -> None:
    """Add `rate_side_difference_ppi` or `mean_difference_ppi` of every subject (at), subset
    "side=A>B": the rate or mean of its answers to the first of the declared sides minus that to the
    second, by each grader.

    The labels have a row for each answer; `sign` (units,) is 1 where side a is the first of the
    sides, -1 where side b is, 0 where neither is known to be. An answer without its counterpart is
    left out, and a note says so. All intervals of a grader hold together, over all rubrics.
    """
    labels, request = view.labels, view.request
    a, b = units_of_both_sides(labels)
    if not len(a) or not labels.humans or not labels.models:
        return
    oriented = sign[a] != 0
    a, b, forward = a[oriented], b[oriented], sign[a[oriented]] > 0
    first, second = np.where(forward, a, b), np.where(forward, b, a)
    subset = view.coded.part(f"side={from_to(*request.settings.sides)}")
    out = view.on(subset, labels.clusters[first])
    groups, (measure, people, by_grader) = _Groups.of(labels), Scores.of(view)
    of_people, subject = people[first] - people[second], groups.codes[first]
    for grader, scores in by_grader.items():
        answered = (labels.side >= 0) & (sign != 0) & ~np.isnan(scores) & (groups.codes >= 0)
        answers = np.bincount(groups.codes[answered], minlength=len(groups.names))
        graded = scores[first] - scores[second]
        both, labelled = ~np.isnan(graded), ~np.isnan(graded) & ~np.isnan(of_people)
        pairs = [subject == k for k in range(len(groups.names))]
        with_label = [out.count(labelled & mine) for mine in pairs]
        features, clusters = rate_features(of_people, graded), np.array([n for _, n in with_label])
        differences = _paired(
            out, features, subject, clusters, 0.05 / request.rubrics, measure.is_rate
        )
        for k in np.flatnonzero(answers):
            mine, alone = both & pairs[k], int(answers[k]) - 2 * int((both & pairs[k]).sum())
            about = About(a="humans", b=grader, at=groups.names[k], onto=(0.0, measure.onto[1]))
            if not mine.any() or not with_label[k][0]:
                why = Remark("no_pairable_units" if mine.any() else "one_side_only")
                out.add(measure.sides, Interval.undefined(why), mine, **about)
                continue
            about["note"] = join_notes(
                PEOPLES_OWN if out.count(mine) == with_label[k] else "",
                FEW if with_label[k][0] < FEW_UNITS else "",
                Remark("one_side_left_out", (alone,)) if alone else "",
                Remark("labelled_by_people", (with_label[k][0],)),
            )
            out.add(measure.sides, differences[k], mine, **about)


def _paired(
    out: Writer, features: Array, subject: Codes, clusters: Codes, alpha: float, is_rate: bool
) -> list[Interval]:
    """Return people's mean difference within pairs of each subject, from the features of pairs
    (pairs, 7) and their subjects (pairs,); the bounds hold together but in `alpha` of studies.
    `clusters` (subjects,) have a pair that people labelled.
    """
    sums = RateSums(*cell_sums(features, subject, len(clusters), out))
    sums = sums._replace(less=0.0 if is_rate else 1.0)
    drawn, alone = sums.ppi(sums.ppi_weight), sums.people[0]
    apart = [intervals.interval(drawn[:, k], count) for k, count in enumerate(clusters.tolist())]
    ends = np.array([[interval.estimate, interval.low, interval.high] for interval in apart])
    if len(at := np.flatnonzero(~np.isnan(ends[:, 1]))):
        given = drawn[1:, at], alone[at], clusters[at], alpha
        reach = paired_reach(*given, is_rate=is_rate)
        ends[at, 1:] = np.clip(ends[at, :1], -1.0, 1.0) + np.column_stack([-reach, reach])
    inside = np.clip(ends, -1.0, 1.0).tolist()
    return [
        replace(interval, estimate=estimate, low=low, high=high)
        for interval, (estimate, low, high) in zip(apart, inside, strict=True)
    ]


def paired_reach(
    drawn: Array, labelled: Array, clusters: Codes, alpha: float, *, is_rate: bool = True
) -> Array:
    """Distance of the bounds of all subjects from their estimates, (subjects,), so that they hold
    together. `drawn` are resampled differences (rows, subjects), `labelled` those of the labelled
    pairs alone, in so many `clusters` (subjects,).

    A difference varies as if one pair more favoured either side, as two rates with a case more on
    either side do (Agresti & Caffo 2000): these lie 1 - m and 1 + m from the mean m. Nor is it
    surer than the labelled clusters are that none goes the other way (`boundary.unseen`). Of scores
    this holds where no resample differs.
    """
    few = np.ones(len(clusters)) if is_rate else np.nanvar(drawn, axis=0) < 1e-12
    more = few * 2.0 * (1.0 + labelled**2) / clusters**2
    reach = reach_together(lambda some: drawn[:, some], clusters, [more], alpha)
    tail = alpha / 2.0 / len(clusters)
    least = np.array([intervals.unseen(count, tail) for count in clusters.tolist()])
    return np.asarray(np.maximum(reach, few * least * (1.0 + np.abs(labelled))))
