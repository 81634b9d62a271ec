"""Scores of subjects, which are the models whose responses are rated, and comparisons of subjects.

**Scores** are subjects' means of a rater's verdicts. Two raters' scores are correlated by functions
of our own, because scipy.stats takes 0.4 s to load and nothing else in an analysis needs it.

**Differences** of every two subjects, in their rates of affirmative verdicts or means of labels,
have intervals that hold together. All subjects share the resamples of clusters, so that subjects
who answered the same prompts are compared prompt by prompt: a difference may vary less than either
rate. The critical value is that of the largest standardised difference among all pairs (max-t;
Hothorn, Bretz & Westfall 2008; by resampling: Romano & Wolf 2005), widened for few clusters as
Student's t widens the normal distribution.

**Possible ranks** follow from these intervals (Mogstad, Romano, Shaikh & Wilhelm 2024): a subject
that is significantly above another cannot rank below it. All sets of ranks hold together, too.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.statistics import join_notes
from evenhand.analysis.types import Array, Codes, Labels, Mask
from evenhand.analysis.writer import RubricView, Writer

# ---- Scores and their correlations ---------------------------------------------------------------
Correlation = Callable[[Array, Array], Array]
"""Function that returns the correlation of two arrays along the last axis."""

MAX_EXACT = 9  # most subjects for which `exact_p` tries all orders of the scores: 9! is 362,880
MIN_SUBJECTS = 3  # fewest subjects for which scores are correlated


def pearson(x: Array, y: Array) -> Array:
    """Return Pearson's r along the last axis; NaN without variation."""
    x, y = (scores - scores.mean(-1, keepdims=True) for scores in (x, y))
    return np.clip(ratio((x * y).sum(-1), np.sqrt((x**2).sum(-1) * (y**2).sum(-1))), -1.0, 1.0)


def spearman(x: Array, y: Array) -> Array:
    """Return Spearman's rho along the last axis, ties at mean ranks.

    >>> spearman(np.array([1, 2, 2, 3, 4, 5, 5]), np.array([2, 1, 3, 3, 4, 4, 6])).round(4).item()
    0.8889
    """
    return pearson(mid_ranks(x), mid_ranks(y))


def mid_ranks(x: Array) -> Array:
    """Return ranks along the last axis, tied values at their mean; rows with a NaN are all NaN."""
    n_lower, n_equal = np.zeros((2, *x.shape))
    for column in np.moveaxis(x, -1, 0)[..., None]:
        n_lower += column < x
        n_equal += column == x
    ranks = n_lower + (n_equal + 1.0) / 2.0
    return np.where(np.isnan(x).any(axis=-1, keepdims=True), np.nan, ranks)


def kendall(x: Array, y: Array) -> Array:
    """Return Kendall's tau-b along the last axis.

    >>> kendall(np.array([1, 2, 2, 3, 4, 5, 5]), np.array([2, 1, 3, 3, 4, 4, 6])).round(4).item()
    0.7895
    """
    first, second = np.triu_indices(x.shape[-1], 1)
    x_sign, y_sign = (np.sign(scores[..., first] - scores[..., second]) for scores in (x, y))
    return ratio((x_sign * y_sign).sum(-1), np.sqrt((x_sign**2).sum(-1) * (y_sign**2).sum(-1)))


CORRELATIONS = {"spearman": spearman, "pearson": pearson, "kendall": kendall}


def exact_p(correlation: Correlation, x: Array, y: Array) -> float:
    """Return the two-sided p of no association of x and y (n,): twice the share of all n! orders of
    x (n <= 9) that correlate at least, or else at most, as observed; the smaller share counts.

    With four subjects even perfect agreement is not significant: 2 of 24 orders are as extreme.

    >>> ranks = np.array([1.0, 2.0, 3.0, 4.0])
    >>> round(exact_p(spearman, ranks, ranks), 4)
    0.0833
    """
    observed = float(correlation(x, y))
    permuted = correlation(x[_orders(len(x))], np.broadcast_to(y, (1, len(y))))
    # Sums of the same numbers in another order differ by rounding: count these as ties.
    tails = (np.mean(permuted >= observed - 1e-9), np.mean(permuted <= observed + 1e-9))
    return min(1.0, 2.0 * float(min(tails)))


@lru_cache(maxsize=4)
def _orders(n: int) -> Labels:
    """Return all orders of n positions, (n!, n)."""
    return np.array(list(permutations(range(n))), dtype=np.int8)


def add_overall_rows(out: RubricView) -> None:
    """Add `subject_score` of humans and graders, and the correlations of these scores.

    The labels have one row per unit that counts towards a score. The humans' score of a unit is the
    mean of their verdicts. Two raters are compared on the units that both scored. A correlation is
    undefined in a resample without any unit of a subject.
    """
    labels, verdict_values = out.labels, out.labels.verdict_values
    if not labels.subjects:
        return
    scores = {"humans": people_means(labels)} if labels.humans else {}  # by rater, (units,) each
    scores |= {labels.raters[model]: verdict_values[:, model] for model in labels.models}
    for rater, score in scores.items():
        is_scored = ~np.isnan(score) & (labels.subject >= 0)
        subjects, (means,) = _subject_means(out.over(is_scored), labels, is_scored, score)
        for column, subject in enumerate(subjects):
            units = is_scored & (labels.subject == subject)
            out.add("subject_score", means[:, column], units, a=rater, at=labels.subjects[subject])
    for first, second in combinations(scores, 2):
        by_both = ~np.isnan(scores[first]) & ~np.isnan(scores[second]) & (labels.subject >= 0)
        both = scores[first], scores[second]
        subjects, (x, y) = _subject_means(out.over(by_both), labels, by_both, *both)
        counts, n = out.count(by_both), len(subjects)
        for statistic, correlation in CORRELATIONS.items():
            interval, exact = Interval.undefined("too_few_subjects"), ""
            if n >= MIN_SUBJECTS:
                interval = out.resamples.interval(correlation(x, y), counts.clusters)
                if not np.isnan(interval.estimate) and n <= MAX_EXACT:
                    exact = f"exact p {exact_p(correlation, x[0], y[0]):.4g}"
            note = join_notes(f"{n} subjects", exact)
            out.add(statistic, interval, counts, a=first, b=second, note=note)


def people_means(labels: LabelMatrix, annotators: Sequence[int] | None = None) -> Array:
    """Return the share of annotators who affirm each unit among those who labelled it, (units,);
    NaN for none. Its mean is *people's rate*. `annotators` are their numbers, by default all.
    """
    people = labels.verdicts[:, list(labels.humans if annotators is None else annotators)]
    return ratio((people == 1).sum(axis=1), (people >= 0).sum(axis=1))


def _subject_means(
    out: Writer, labels: LabelMatrix, is_scored: Mask, *scores: Array
) -> tuple[Codes, list[Array]]:
    """Return the numbers of the subjects with scored units, and for each of the `scores` (units,)
    the subjects' means, (rows, subjects): row 0 is the data, the others are resamples.
    """
    subjects = np.unique(labels.subject[is_scored])
    in_subject = is_scored[:, None] & (labels.subject[:, None] == subjects)
    count = out.sums(in_subject)
    sums = (out.sums(np.where(in_subject, np.nan_to_num(score)[:, None], 0.0)) for score in scores)
    # Scores that are equal stay tied: sums differ by rounding between processors.
    return subjects, [ratio(total, count).round(12) for total in sums]


# ---- Differences and ranks -----------------------------------------------------------------------
_BLOCK = 1_000  # pairs of subjects computed at a time, which bounds memory


class Differences(NamedTuple):
    """Differences between the subjects of each pair: the numbers of the `first` and the `second`
    subject, and first minus second with bounds that hold together, all (pairs,).
    """

    first: Codes
    second: Codes
    estimate: Array
    low: Array
    high: Array


def all_differences(
    rates: Array, n_clusters: Codes, alpha: float = 0.05, *, is_rate: bool = True
) -> Differences:
    """Return the difference of every two rates, or means from 0 to 1 (`is_rate` False), with bounds
    that all hold together except in a share `alpha` of studies.

    `rates` (rows, subjects) are those of the data in row 0, then of the resamples, which all
    subjects share; `n_clusters` (subjects,) counts the clusters that people labelled. For few
    clusters and rates near 0 or 1 the variance of resamples is too small. That of rates is computed
    as if each subject had one affirmed and one other case more (Agresti & Caffo 2000). That of
    means grows only if no resample differs, by as much as for a rate of 0 or 1.

    >>> drawn = np.random.default_rng(5).normal(size=(4000, 3)) * 0.1 + [0.2, 0.5, 0.9]
    >>> differences = all_differences(np.vstack([[0.2, 0.5, 0.9], drawn]), np.full(3, 200))
    >>> differences.estimate.round(1).tolist(), (differences.high < 0).tolist()
    ([-0.3, -0.7, -0.4], [False, True, True])
    """
    first, second = np.triu_indices(rates.shape[1], 1)
    estimate = rates[0, first] - rates[0, second]
    # With r = (n p + 1) / (n + 2), r (1 - r) / n = p (1 - p) / n + ((1 - 2p) / n)^2 + O(1 / n^3).
    added = ((1.0 - 2.0 * np.clip(rates[0], 0.0, 1.0)) / n_clusters) ** 2  # to each variance
    if not is_rate:
        added = np.where(np.nanvar(rates[1:], axis=0) < 1e-12, 1.0 / n_clusters**2, 0.0)

    def resampled(pairs: slice) -> Array:
        return np.asarray(rates[1:, first[pairs]] - rates[1:, second[pairs]])

    fewer = np.minimum(n_clusters[first], n_clusters[second])  # gives the wider Student's t
    half_width = joint_half_widths(resampled, fewer, (added[first], added[second]), alpha)
    return Differences(first, second, estimate, estimate - half_width, estimate + half_width)


def joint_half_widths(
    resampled: Callable[[slice], Array], n_clusters: Codes, added: Sequence[Array], alpha: float
) -> Array:
    """Return the half-widths of the intervals of several figures, (figures,), so that all hold
    together except in a share `alpha` of studies: the max-t method (see the module).

    `resampled` returns the replicates (rows, figures) of a slice of the figures; `n_clusters`
    (figures,) counts their clusters. The arrays `added` (figures,) are added to the variance.
    """
    from scipy.special import ndtr, stdtrit

    freedom, count = np.maximum(n_clusters - 1.0, 1.0), len(n_clusters)
    # The variance of each figure, and the largest standardised deviation in each resample. As -1
    # replaces undefined deviations below, the largest is negative if none is defined.
    variance, largest = np.empty(count), np.full(len(resampled(slice(0, 1))), -1.0)
    for start in range(0, count, _BLOCK):
        columns = slice(start, start + _BLOCK)
        replicates = resampled(columns)
        undefined = np.isnan(replicates).all(axis=0)
        replicates = np.where(undefined, 0.0, replicates)
        # Resampling n clusters has (n - 1) / n of the variance.
        unbiased = np.nanvar(replicates, axis=0) * (freedom[columns] + 1.0) / freedom[columns]
        variance[columns] = np.where(undefined, np.nan, unbiased)
        varies = variance[columns] > 1e-12
        deviations = np.abs(replicates - np.nanmean(replicates, axis=0))[:, varies]
        standardised = np.nan_to_num(deviations, nan=-1.0) / np.sqrt(variance[columns][varies])
        largest = np.maximum(largest, standardised.max(axis=1, initial=-1.0))
    # The level at which a normal quantile is the critical value of the largest deviation. Where no
    # resample differs, the figures' correlation is unknown: use Bonferroni's level.
    defined = largest[largest >= 0.0]
    level = ndtr(np.quantile(defined, 1.0 - alpha)) if len(defined) else 1.0 - alpha / 2 / count
    return np.asarray(np.sqrt(sum(added, start=variance)) * stdtrit(freedom, level))


def rank_sets(differences: Differences, subjects: int) -> tuple[Codes, Codes]:
    """Return the highest and the lowest rank that each subject may have, (subjects,) each; rank 1
    is the largest estimate.

    The highest rank is one plus the number of subjects significantly above, the lowest is the
    number of subjects minus those significantly below (Mogstad et al. 2024, section 3).

    >>> bounds = np.array([0.4, 0.1]), np.array([0.2, -0.1]), np.array([0.6, 0.3])
    >>> differences = Differences(np.array([0, 1]), np.array([2, 2]), *bounds)
    >>> [ranks.tolist() for ranks in rank_sets(differences, 3)]
    [[1, 1, 2], [2, 3, 3]]
    """
    # (2, pairs): is the first clearly above, or the second? Both False if bounds are NaN.
    is_clear = np.stack([differences.low > 0, differences.high < 0])
    higher = np.stack([differences.first, differences.second])[is_clear]
    lower = np.stack([differences.second, differences.first])[is_clear]
    n_above, n_below = (np.bincount(side, minlength=subjects) for side in (lower, higher))
    return 1 + n_above, subjects - n_below
