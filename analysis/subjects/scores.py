"""Overall results: each subject's score under each rater, and how the raters' scores correlate.

The correlations are written here, since nothing else in an analysis needs scipy.stats, which takes
0.4 s to load.

Subjects differ by every two subjects' difference, whose intervals all hold together. They are taken
from resamples of clusters that all subjects share, so that subjects who answered the same prompts
are compared prompt by prompt: a difference may be surer than either rate. The critical value is
that of the largest standardised difference among all pairs (max-t; Hothorn, Bretz & Westfall 2008;
by resampling: Romano & Wolf 2005), widened for few clusters as t is beside the normal distribution.

The ranks that the data allow follow from them (Mogstad, Romano, Shaikh & Wilhelm 2024): nobody who
is clearly above a subject can rank below it. All sets hold together, at the same level.
"""

from __future__ import annotations

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
from evenhand.analysis.writer import About, Counts, RubricView, Writer

Correlation = Callable[[Array, Array], Array]

MAX_EXACT = 9
"""Subjects up to which all orders are tried: 9! is 362,880."""


def pearson(x: Array, y: Array) -> Array:
    """Pearson's r along the last axis; NaN without variation."""
    x = x - x.mean(-1, keepdims=True)
    y = y - y.mean(-1, keepdims=True)
    spread = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    return np.clip(ratio((x * y).sum(-1), spread), -1.0, 1.0)


def spearman(x: Array, y: Array) -> Array:
    """Spearman's rho along the last axis, ties at mean ranks.

    >>> spearman(np.array([1, 2, 2, 3, 4, 5, 5]), np.array([2, 1, 3, 3, 4, 4, 6])).round(4).item()
    0.8889
    """
    return pearson(mid_ranks(x), mid_ranks(y))


def mid_ranks(x: Array) -> Array:
    """Ranks along the last axis, tied values at their mean; rows that hold NaN are all NaN."""
    lower, tied = (np.zeros(x.shape) for _ in range(2))
    for column in np.moveaxis(x, -1, 0)[..., None]:
        lower += column < x
        tied += column == x
    ranks = lower + (tied + 1.0) / 2.0
    return np.where(np.isnan(x).any(axis=-1, keepdims=True), np.nan, ranks)


def kendall(x: Array, y: Array) -> Array:
    """Kendall's tau-b along the last axis.

    >>> kendall(np.array([1, 2, 2, 3, 4, 5, 5]), np.array([2, 1, 3, 3, 4, 4, 6])).round(4).item()
    0.7895
    """
    first, second = np.triu_indices(x.shape[-1], 1)
    signs = [np.sign(scores[..., first] - scores[..., second]) for scores in (x, y)]
    untied = np.sqrt((signs[0] ** 2).sum(-1) * (signs[1] ** 2).sum(-1))
    return ratio((signs[0] * signs[1]).sum(-1), untied)


CORRELATIONS = {"spearman": spearman, "pearson": pearson, "kendall": kendall}


def exact_p(correlation: Correlation, x: Array, y: Array) -> float:
    """Two-sided p of no association from all n! orders of x (n <= 9): twice the smaller tail.

    Four subjects in perfect agreement are no proof: 2 of 24 orders are as extreme.

    >>> ranks = np.array([1.0, 2.0, 3.0, 4.0])
    >>> round(exact_p(spearman, ranks, ranks), 4)
    0.0833
    """
    observed = float(correlation(x, y))
    every = correlation(x[_orders(len(x))], np.broadcast_to(y, (1, len(y))))
    # Sums of the same numbers in another order differ by rounding; that is a tie.
    tails = (np.mean(every >= observed - 1e-9), np.mean(every <= observed + 1e-9))
    return min(1.0, 2.0 * float(min(tails)))


@lru_cache(maxsize=4)
def _orders(n: int) -> Labels:
    return np.array(list(permutations(range(n))), dtype=np.int8)


MIN_SUBJECTS = 3


def add_overall_rows(out: RubricView) -> None:
    """`subject_score` of humans and graders, and correlations of the scores.

    The labels have one row per unit that counts towards a score. The humans' verdict on a unit is
    the mean of theirs. Two raters are compared on the units that both have; a subject that a
    resample leaves without units makes that resample degenerate.
    """
    verdicts, table = out.labels, out.labels.verdict_values
    if not verdicts.subjects:
        return
    scores = {"humans": people_means(verdicts)} if verdicts.humans else {}
    scores |= {verdicts.raters[model]: table[:, model] for model in verdicts.models}
    for name, score in scores.items():
        held = ~np.isnan(score) & (verdicts.subject >= 0)
        (mean,), subjects = _subject_means(out, verdicts, held, score)
        for column, subject in enumerate(subjects):
            units, at = out.count(held & (verdicts.subject == subject)), verdicts.subjects[subject]
            out.add("subject_score", mean[:, column], units, a=name, at=at)
    for first, second in combinations(scores, 2):
        shared = ~np.isnan(scores[first]) & ~np.isnan(scores[second]) & (verdicts.subject >= 0)
        (x, y), subjects = _subject_means(out, verdicts, shared, scores[first], scores[second])
        units, n = out.count(shared), len(subjects)
        for name, correlation in CORRELATIONS.items():
            interval, p = Interval.undefined("too_few_subjects"), ""
            if n >= MIN_SUBJECTS:
                interval = out.resamples.interval(correlation(x, y), units[1])
                if not np.isnan(interval.estimate) and n <= MAX_EXACT:
                    p = f"exact p {exact_p(correlation, x[0], y[0]):.4g}"
            out.add(name, interval, units, a=first, b=second, note=join_notes(f"{n} subjects", p))


def people_means(verdicts: LabelMatrix, some: Sequence[int] | None = None) -> Array:
    """The share of people, or of `some`, who affirm each unit, of those who labelled it, (units,);
    NaN for none. Its mean over units is *people's rate*: of every score and prevalence the same.
    """
    people = verdicts.verdicts[:, list(verdicts.humans if some is None else some)]
    return ratio((people == 1).sum(axis=1), (people >= 0).sum(axis=1))


def _subject_means(
    out: Writer, verdicts: LabelMatrix, held: Mask, *scores: Array
) -> tuple[tuple[Array, ...], Codes]:
    """Mean scores (rows, subjects) over the held units, and which subjects those are."""
    subjects = np.unique(verdicts.subject[held])
    inside = held[:, None] & (verdicts.subject[:, None] == subjects)
    count = out.sums(inside)
    sums = (out.sums(np.where(inside, np.nan_to_num(score)[:, None], 0.0)) for score in scores)
    return tuple(ratio(total, count) for total in sums), subjects


MOST_COMPARED = 40
"""Most subjects whose differences are listed: more have over 780."""
_TOGETHER = 1_000
"""Pairs computed at a time: bounds memory."""


class Measure(NamedTuple):
    """What is corrected: the statistics of people's, the raw and the corrected figure, of
    differences between subjects and between sides, of the least of several sides, and where 0 and 1
    lie on the labels' scale.
    """

    people: str
    raw: str
    powered: str
    difference: str
    sides: str
    least: str
    onto: tuple[float, float] = (0.0, 1.0)

    @property
    def is_rate(self) -> bool:
        """True for rates of affirmative verdicts."""
        return self.raw == RATES.raw

    def reach(self, clusters: float) -> Reach | None:
        """The reach of a mean: Wilson's bounds on the effective size, without a score bound, as of
        labels between the ends of the scale no case is rare. Student's t is for so many `clusters`:
        inf where a weight on the grader is estimated in each resample, which varies as widely. None
        for a rate, which has its own.
        """
        return None if self.is_rate else Reach(np.inf, np.inf, clusters)


RATES = Measure(
    "rate_human", "rate_raw", "rate_ppi", "rate_difference_ppi", "rate_side_difference_ppi",
    "rate_least_ppi",
)  # fmt: skip
MEANS = Measure(
    "subject_score", "subject_score", "mean_ppi", "mean_difference_ppi", "mean_difference_ppi",
    "mean_least_ppi",
)  # fmt: skip


@dataclass(frozen=True)
class Corrected:
    """What a mean by PPI++ rests on: the standard deviation of annotators' labels of an item, of a
    difference that within pairs, and their correlation with the grader's.

    With n items labelled of N graded, the weight that varies least gives the mean the variance
    sd^2 ((1 - r^2) / n + r^2 / N) (Angelopoulos, Duchi & Zrnic 2023, example 6.1): a grader saves
    as many labels as its correlation squared, at most.
    """

    sd: float
    correlation: float

    def labels_for(self, width: float, graded: float) -> int | None:
        """Return the fewest labelled items with which half the 95% interval is `width`, of so many
        graded ones (inf: their mean is known); None where these are too few.

        >>> Corrected(0.5, 0.8).labels_for(0.05, 2000), Corrected(0.5, 0.8).labels_for(0.05, 300)
        (158, None)
        """
        left = (width / (Z * self.sd)) ** 2 - self.correlation**2 / graded
        needed = (1.0 - self.correlation**2) / left if left > 0 else math.inf
        return max(math.ceil(needed - 1e-9), 2) if needed <= graded else None


class Differences(NamedTuple):
    """Differences of estimates, first minus second of each pair, (pairs,), and their bounds, which
    hold together.
    """

    first: Codes
    second: Codes
    estimate: Array
    low: Array
    high: Array


def all_differences(
    rates: Array, clusters: Codes, alpha: float = 0.05, *, is_rate: bool = True
) -> Differences:
    """Every two rates' difference, with bounds all of which hold but in `alpha` of studies.

    `rates` (rows, subjects) are the data's in row 0 and then the resamples', which all subjects
    share; a resample in which a rate is NaN tells nothing of its pairs. Each rests on so many
    `clusters` (subjects,) that people labelled. A difference varies as if every rate had one case
    and one of the others more (Agresti & Caffo 2000): few clusters, or a rate near 0 or 1, would
    else make it look too sure. Other means do so where no resample differs.

    >>> drawn = np.random.default_rng(5).normal(size=(4000, 3)) * 0.1 + [0.2, 0.5, 0.9]
    >>> found = all_differences(np.vstack([[0.2, 0.5, 0.9], drawn]), np.full(3, 200))
    >>> found.estimate.round(1).tolist(), (found.high < 0).tolist()
    ([-0.3, -0.7, -0.4], [False, True, True])
    """
    first, second = np.triu_indices(rates.shape[1], 1)
    estimate = rates[0, first] - rates[0, second]
    more = ((1.0 - 2.0 * np.clip(rates[0], 0.0, 1.0)) / clusters) ** 2
    if not is_rate:
        more = np.where(np.nanvar(rates[1:], axis=0) < 1e-12, 1.0 / clusters**2, 0.0)

    def resampled(some: slice) -> Array:
        return np.asarray(rates[1:, first[some]] - rates[1:, second[some]])

    fewer = np.minimum(clusters[first], clusters[second])
    reach = reach_together(resampled, fewer, (more[first], more[second]), alpha)
    return Differences(first, second, estimate, estimate - reach, estimate + reach)


def reach_together(
    resampled: Callable[[slice], Array], clusters: Codes, more: Sequence[Array], alpha: float
) -> Array:
    """Distance of the bounds of some figures from their estimates, (figures,), so that all hold but
    in `alpha` of studies.

    `resampled` gives (rows, figures) of a slice of the figures, each of which rests on so many
    `clusters` (figures,); all of `more` (figures,) are added to their variance.
    """
    from scipy.special import ndtr, stdtrit

    freedom, count = np.maximum(clusters - 1.0, 1.0), len(clusters)
    variance, largest = np.empty(count), np.full(len(resampled(slice(0, 1))), -1.0)
    for start in range(0, count, _TOGETHER):
        some = slice(start, start + _TOGETHER)
        drawn = resampled(some)
        undefined = np.isnan(drawn).all(axis=0)
        drawn = np.where(undefined, 0.0, drawn)
        # Resampling n clusters has (n - 1) / n of the variance.
        spread = np.nanvar(drawn, axis=0) * (freedom[some] + 1.0) / freedom[some]
        variance[some] = np.where(undefined, np.nan, spread)
        varying = variance[some] > 1e-12
        moved = np.abs(drawn - np.nanmean(drawn, axis=0))[:, varying]
        apart = np.nan_to_num(moved, nan=-1.0) / np.sqrt(variance[some][varying])
        largest = np.maximum(largest, apart.max(axis=1, initial=-1.0))
    defined = largest[largest >= 0.0]
    # Where no resample differs there is nothing to learn of how they go together (Bonferroni).
    level = ndtr(np.quantile(defined, 1.0 - alpha)) if len(defined) else 1.0 - alpha / 2 / count
    return np.asarray(np.sqrt(sum(more, start=variance)) * stdtrit(freedom, level))


def rank_sets(apart: Differences, subjects: int) -> tuple[Codes, Codes]:
    """The highest and the lowest rank that each subject may have, (subjects,) each; 1 is the
    largest estimate.

    The highest is one more than those that are clearly above it, the lowest leaves below it those
    that clearly are (Mogstad, Romano, Shaikh & Wilhelm 2024, section 3).

    >>> each = np.array([0.4, 0.1]), np.array([0.2, -0.1]), np.array([0.6, 0.3])
    >>> found = Differences(np.array([0, 1]), np.array([2, 2]), *each)
    >>> [ranks.tolist() for ranks in rank_sets(found, 3)]
    [[1, 1, 2], [2, 3, 3]]
    """
    above, below = np.zeros(subjects, dtype=np.intp), np.zeros(subjects, dtype=np.intp)
    first_above, second_above = apart.low > 0, apart.high < 0  # False where there are no bounds
    np.add.at(above, apart.second[first_above], 1)
    np.add.at(below, apart.first[first_above], 1)
    np.add.at(above, apart.first[second_above], 1)
    np.add.at(below, apart.second[second_above], 1)
    return 1 + above, subjects - below


def add_difference_rows(
    out: Writer,
    grader: str,
    measure: Measure,
    of: Sequence[ResultRow],
    rates: Array,
    labelled: Codes,
    answered: Mask,
    rubrics: int,
) -> None:
    """Add the difference of rates or means (at = "A>B", A minus B) of every two subjects, and the
    ranks that the data allow: `rate_rank_set` (at = subject), whose interval is the set, 1 the
    highest.

    `measure` says what differs; `of` are the subjects' rows of PPI++, `rates` (rows, subjects) the
    data's and the resamples' from 0 to 1, as they come, `labelled` (subjects,) how many clusters
    people labelled, and `answered` (clusters, subjects) who has an answer there: where two differ
    in that, a note says so. All bounds of so many `rubrics` hold together in 95% of studies, for
    one grader.
    """
    every = all_differences(rates, labelled, 0.05 / rubrics, is_rate=measure.is_rate)
    names = [row["at"] for row in of]
    bounds = np.column_stack([every.estimate, every.low, every.high])
    if len(of) <= MOST_COMPARED:
        for first, second, (estimate, low, high) in zip(
            every.first, every.second, np.clip(bounds, -1.0, 1.0).tolist(), strict=True
        ):
            one, other = answered[:, first], answered[:, second]
            both, either = int((one & other).sum()), int((one | other).sum())
            about = About(a="humans", b=grader, at=from_to(names[first], names[second]))
            about["onto"] = (0.0, measure.onto[1])
            about["note"] = Remark("prompts_differ", (both, either)) if both < either else ""
            apart, counts = Interval(estimate, low, high), counts_of([of[first], of[second]])
            out.add(measure.difference, apart, counts, **about)
    ranks = 1 + (rates[0] > rates[0][:, None]).sum(axis=1)
    for row, rank, highest, lowest in zip(of, ranks, *rank_sets(every, len(of)), strict=True):
        allowed = Interval(float(rank), float(highest), float(lowest))
        about = About(a="humans", b=grader, at=row["at"])
        out.add("rate_rank_set", allowed, counts_of([row]), **about)


def counts_of(of: Sequence[ResultRow]) -> Counts:
    """Units and clusters of the subjects that a row is about."""
    return sum(row["n_units"] for row in of), max(row["n_clusters"] for row in of)
