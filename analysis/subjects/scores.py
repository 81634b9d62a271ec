"""Subjects' scores by each rater, correlations of the raters' scores, and comparisons of subjects.

The correlations are implemented here because scipy.stats takes 0.4 s to load, and nothing else in
an analysis needs it.

The intervals of the differences of every two subjects hold together. All subjects share the
resamples of clusters, so that subjects who answered the same prompts are compared prompt by prompt:
a difference may vary less than either rate. The critical value is that of the largest standardised
difference among all pairs (max-t; Hothorn, Bretz & Westfall 2008; by resampling: Romano & Wolf
2005), widened for few clusters as Student's t widens the normal distribution.

Sets of possible ranks follow from these intervals (Mogstad, Romano, Shaikh & Wilhelm 2024): a
subject that is significantly above another cannot rank below it. All sets hold together, too.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval, Reach, Z
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.results import ResultRow, from_to
from evenhand.analysis.statistics import Remark, join_notes
from evenhand.analysis.types import Array, Codes, Labels, Mask
from evenhand.analysis.writer import About, RubricView, Writer

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
    mean of their verdicts. Two raters are compared on the units that both scored. Subjects' means
    are (rows, subjects): row 0 is the data, the other rows are resamples. A correlation is
    undefined in a resample without any unit of a subject.
    """
    labels, verdict_values = out.labels, out.labels.verdict_values
    if not labels.subjects:
        return
    scores = {"humans": people_means(labels)} if labels.humans else {}
    scores |= {labels.raters[model]: verdict_values[:, model] for model in labels.models}
    for name, score in scores.items():
        scored = ~np.isnan(score) & (labels.subject >= 0)
        subjects, (mean,) = _subject_means(out.over(scored), labels, scored, score)
        for column, subject in enumerate(subjects):
            units = scored & (labels.subject == subject)
            out.add("subject_score", mean[:, column], units, a=name, at=labels.subjects[subject])
    for first, second in combinations(scores, 2):
        shared = ~np.isnan(scores[first]) & ~np.isnan(scores[second]) & (labels.subject >= 0)
        both = scores[first], scores[second]
        subjects, (x, y) = _subject_means(out.over(shared), labels, shared, *both)
        counts, n = out.count(shared), len(subjects)
        for name, correlation in CORRELATIONS.items():
            interval, p = Interval.undefined("too_few_subjects"), ""
            if n >= MIN_SUBJECTS:
                interval = out.resamples.interval(correlation(x, y), counts.clusters)
                if not np.isnan(interval.estimate) and n <= MAX_EXACT:
                    p = f"exact p {exact_p(correlation, x[0], y[0]):.4g}"
            out.add(name, interval, counts, a=first, b=second, note=join_notes(f"{n} subjects", p))


def people_means(labels: LabelMatrix, annotators: Sequence[int] | None = None) -> Array:
    """Return the share of annotators who affirm each unit among those who labelled it, (units,);
    NaN for none. Its mean is *people's rate*. `annotators` are their numbers, by default all.
    """
    people = labels.verdicts[:, list(labels.humans if annotators is None else annotators)]
    return ratio((people == 1).sum(axis=1), (people >= 0).sum(axis=1))


def _subject_means(
    out: Writer, labels: LabelMatrix, scored: Mask, *scores: Array
) -> tuple[Codes, list[Array]]:
    """Return the subjects of the `scored` units, and their means (rows, subjects) of each score."""
    subjects = np.unique(labels.subject[scored])
    in_subject = scored[:, None] & (labels.subject[:, None] == subjects)
    count = out.sums(in_subject)
    sums = (out.sums(np.where(in_subject, np.nan_to_num(score)[:, None], 0.0)) for score in scores)
    # Scores that are equal stay tied: sums differ by rounding between processors.
    return subjects, [ratio(total, count).round(12) for total in sums]


# ---- Comparisons of subjects ---------------------------------------------------------------------
MOST_COMPARED = 40  # most subjects whose differences are listed: 40 have 780 differences
_BLOCK = 1_000  # pairs of subjects computed at a time, which bounds memory


def wilson_reach(clusters: float) -> Reach:
    """Return the `Reach` without score bounds, with Student's t for `clusters`, normal for inf."""
    return Reach(below=np.inf, above=np.inf, carriers=clusters)


class Measure(NamedTuple):
    """Names of the statistics of subjects' rates or means, and their scale."""

    people: str  # of people's labels
    raw: str  # of the grader's labels
    powered: str  # people's, by PPI++ (prediction-powered) from both; the following are of these:
    difference: str  # differences between subjects
    sides: str  # differences between groups of annotators, or between the two answers of pairs
    least: str  # the least of all groups of annotators
    onto: tuple[float, float] = (0.0, 1.0)  # start and span of the scale for values from 0 to 1

    @property
    def is_rate(self) -> bool:
        """True for rates of affirmative verdicts."""
        return self.raw == RATES.raw

    def reach(self, clusters: float) -> Reach | None:
        """Return the `Reach` of a mean; None for a rate, whose reach depends on its rarer outcome.
        A mean has no such outcome: all `clusters` count for Student's t. With PPI++, `clusters` is
        inf, for the normal distribution, as each resample estimates the weight again.
        """
        return None if self.is_rate else wilson_reach(clusters)


RATES = Measure(
    people="rate_human", raw="rate_raw", powered="rate_ppi", least="rate_least_ppi",
    difference="rate_difference_ppi", sides="rate_side_difference_ppi",
)  # fmt: skip
MEANS = Measure(
    people="subject_score", raw="subject_score", powered="mean_ppi", least="mean_least_ppi",
    difference="mean_difference_ppi", sides="mean_difference_ppi",
)  # fmt: skip


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
    rates: Array, clusters: Codes, alpha: float = 0.05, *, is_rate: bool = True
) -> Differences:
    """Return the difference of every two rates, with bounds that all hold together except in a
    share `alpha` of studies.

    `rates` (rows, subjects) are those of the data in row 0, then of the resamples, which all
    subjects share; `clusters` (subjects,) are the numbers of clusters that people labelled. For few
    clusters and rates near 0 or 1 the variance of resamples is too small: that of rates is computed
    as if each subject had one affirmed and one other case more (Agresti & Caffo 2000), and that of
    other means, only if no resample differs, as for a rate of 0 or 1.

    >>> drawn = np.random.default_rng(5).normal(size=(4000, 3)) * 0.1 + [0.2, 0.5, 0.9]
    >>> differences = all_differences(np.vstack([[0.2, 0.5, 0.9], drawn]), np.full(3, 200))
    >>> differences.estimate.round(1).tolist(), (differences.high < 0).tolist()
    ([-0.3, -0.7, -0.4], [False, True, True])
    """
    first, second = np.triu_indices(rates.shape[1], 1)
    estimate = rates[0, first] - rates[0, second]
    # With r = (n p + 1) / (n + 2), r (1 - r) / n = p (1 - p) / n + ((1 - 2p) / n)^2 + O(1 / n^3).
    extra = ((1.0 - 2.0 * np.clip(rates[0], 0.0, 1.0)) / clusters) ** 2
    if not is_rate:
        extra = np.where(np.nanvar(rates[1:], axis=0) < 1e-12, 1.0 / clusters**2, 0.0)

    def resampled(pairs: slice) -> Array:
        return np.asarray(rates[1:, first[pairs]] - rates[1:, second[pairs]])

    n_clusters = np.minimum(clusters[first], clusters[second])  # gives the wider Student's t
    half_width = joint_half_widths(resampled, n_clusters, (extra[first], extra[second]), alpha)
    return Differences(first, second, estimate, estimate - half_width, estimate + half_width)


def joint_half_widths(
    resampled: Callable[[slice], Array], clusters: Codes, extra: Sequence[Array], alpha: float
) -> Array:
    """Return the half-widths of the intervals of several figures, (figures,), so that all hold
    together except in a share `alpha` of studies: the max-t method (see the module).

    `resampled` returns the replicates (rows, figures) of a slice of the figures, `clusters`
    (figures,) are their numbers of clusters. Arrays of `extra` (figures,) add to the variance.
    """
    from scipy.special import ndtr, stdtrit

    freedom, count = np.maximum(clusters - 1.0, 1.0), len(clusters)
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
    return np.asarray(np.sqrt(sum(extra, start=variance)) * stdtrit(freedom, level))


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


def add_difference_rows(
    out: Writer,
    grader: str,
    measure: Measure,
    rows: Sequence[ResultRow],
    rates: Array,
    labelled: Codes,
    answered: Mask,
    rubrics: int,
) -> None:
    """Add the difference of rates or means (at = "A>B", A minus B) of every two subjects, and the
    interval of possible ranks of each subject, `rate_rank_set` (at = subject); 1 is the highest.

    `rows` are the subjects' result rows of PPI++, `rates` (1 + resamples, subjects) their rates
    from 0 to 1, the data's first. `labelled` (subjects,) are the numbers of clusters that people
    labelled, `answered` (clusters, subjects) is True where a subject has an answer; a note tells if
    these differ. All bounds of a grader hold together, over all `rubrics`, in 95% of studies.
    """
    pairs = all_differences(rates, labelled, 0.05 / rubrics, is_rate=measure.is_rate)
    if len(rows) <= MOST_COMPARED:
        bounds = np.clip([pairs.estimate, pairs.low, pairs.high], -1.0, 1.0).T.tolist()
        for i, j, interval in zip(pairs.first, pairs.second, bounds, strict=True):
            first, second = rows[i], rows[j]
            n_both = int((answered[:, i] & answered[:, j]).sum())
            n_either = int((answered[:, i] | answered[:, j]).sum())
            about = About(a="humans", b=grader, at=from_to(first["at"], second["at"]))
            about["onto"] = (0.0, measure.onto[1])  # a difference is scaled, but not shifted
            if n_both < n_either:
                about["note"] = Remark("prompts_differ", (n_both, n_either))
            clusters = max(first["n_clusters"], second["n_clusters"])  # mostly the same ones
            counts = first["n_units"] + second["n_units"], clusters
            out.add(measure.difference, Interval(*interval), counts, **about)
    estimates = rates[0].round(12)  # ties stay ties, as in `_subject_means`
    ranks = 1 + (estimates > estimates[:, None]).sum(axis=1)
    for row, rank, highest, lowest in zip(rows, ranks, *rank_sets(pairs, len(rows)), strict=True):
        rank_set = Interval(float(rank), low=float(highest), high=float(lowest))
        about = About(a="humans", b=grader, at=row["at"])
        out.add("rate_rank_set", rank_set, (row["n_units"], row["n_clusters"]), **about)
