"""Overall results: each subject's score under each rater, and how the raters' scores correlate.

The correlations are written here, since nothing else in an analysis needs scipy.stats, which takes
0.4 s to load.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations, permutations

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.notes import join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes, Labels, Mask
from evenhand.analysis.writer import Writer

Correlation = Callable[[Array, Array], Array]

MAX_EXACT = 9
"""Subjects up to which all orders are tried: 9! is 362,880."""


def pearson(x: Array, y: Array) -> Array:
    """Pearson's r along the last axis; NaN without variation."""
    x = x - x.mean(-1, keepdims=True)
    y = y - y.mean(-1, keepdims=True)
    spread = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    varies = spread > 1e-12
    r: Array = np.where(varies, (x * y).sum(-1) / np.where(varies, spread, 1.0), np.nan)
    return np.clip(r, -1.0, 1.0)


def spearman(x: Array, y: Array) -> Array:
    """Spearman's rho along the last axis, ties at mean ranks.

    >>> spearman(np.array([1, 2, 2, 3, 4, 5, 5]), np.array([2, 1, 3, 3, 4, 4, 6])).round(4).item()
    0.8889
    """
    return pearson(mid_ranks(x), mid_ranks(y))


def mid_ranks(x: Array) -> Array:
    """Ranks along the last axis, tied values at their mean; rows that hold NaN are all NaN."""
    n = x.shape[-1]
    order = np.argsort(x, axis=-1)
    ordered = np.take_along_axis(x, order, axis=-1)
    position = np.arange(n)
    new = np.ones(x.shape, dtype=bool)
    new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    last = np.ones(x.shape, dtype=bool)
    last[..., :-1] = new[..., 1:]
    first_tied = np.maximum.accumulate(np.where(new, position, 0), axis=-1)
    last_tied = np.where(last, position, n - 1)[..., ::-1]
    last_tied = np.minimum.accumulate(last_tied, axis=-1)[..., ::-1]
    ranks = np.empty(x.shape)
    np.put_along_axis(ranks, order, (first_tied + last_tied) / 2.0 + 1.0, axis=-1)
    return np.where(np.isnan(x).any(axis=-1, keepdims=True), np.nan, ranks)


def kendall(x: Array, y: Array) -> Array:
    """Kendall's tau-b along the last axis.

    >>> kendall(np.array([1, 2, 2, 3, 4, 5, 5]), np.array([2, 1, 3, 3, 4, 4, 6])).round(4).item()
    0.7895
    """
    first, second = np.triu_indices(x.shape[-1], 1)
    signs = [np.sign(each[..., first] - each[..., second]) for each in (x, y)]
    untied = np.sqrt((signs[0] ** 2).sum(-1) * (signs[1] ** 2).sum(-1))
    agreeing = (signs[0] * signs[1]).sum(-1)
    tau: Array = np.where(untied > 0, agreeing / np.where(untied > 0, untied, 1.0), np.nan)
    return tau


CORRELATIONS: dict[str, Correlation] = {
    "spearman": spearman,
    "pearson": pearson,
    "kendall": kendall,
}


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


def add_overall_rows(rows: ResultRows, verdicts: LabelMatrix, resamples: Resamples) -> None:
    """`subject_score` of humans and graders, and correlations of the scores.

    `verdicts` has one row per unit that counts towards a score. The humans' verdict on a unit is
    the mean of theirs. Two raters are compared on the units that both have; a subject that a
    resample leaves without units makes that resample degenerate.
    """
    out, scores = Writer(rows, resamples, verdicts.clusters, BINARY_ALL), _unit_scores(verdicts)
    for name, score in scores.items():
        held = ~np.isnan(score) & (verdicts.subject >= 0)
        (means,), subjects = _subject_means(out, verdicts, held, score)
        for column, subject in enumerate(subjects):
            units, at = out.count(held & (verdicts.subject == subject)), verdicts.subjects[subject]
            out.add("subject_score", means[:, column], units, a=name, at=at)
    for first, second in combinations(scores, 2):
        shared = ~np.isnan(scores[first]) & ~np.isnan(scores[second]) & (verdicts.subject >= 0)
        means, subjects = _subject_means(out, verdicts, shared, scores[first], scores[second])
        units = out.count(shared)
        for name, correlation in CORRELATIONS.items():
            found, p = _correlate(correlation, *means, resamples=resamples, n_clusters=units[1])
            note = join_notes(f"{len(subjects)} subjects", p)
            out.add_interval(name, found, units, a=first, b=second, note=note)


def _unit_scores(verdicts: LabelMatrix) -> dict[str, Array]:
    """Return each unit's verdict by the humans (their mean) and by each grader, NaN for none."""
    table = verdicts.verdict_values
    scores = {"humans": people_means(verdicts)} if verdicts.humans else {}
    scores |= {verdicts.raters[model]: table[:, model] for model in verdicts.models}
    return scores


def people_means(verdicts: LabelMatrix) -> Array:
    """The share of people who affirm each unit, of those who labelled it, (units,); NaN for none.

    Its mean over units is *people's rate*: of every score, rate and prevalence the same.
    """
    people = verdicts.verdicts[:, list(verdicts.humans)]
    return ratio((people == 1).sum(axis=1), (people >= 0).sum(axis=1))


def _subject_means(
    out: Writer, verdicts: LabelMatrix, held: Mask, *scores: Array
) -> tuple[tuple[Array, ...], Codes]:
    """Mean scores (rows, subjects) over the held units, and which subjects those are."""
    subjects = np.unique(verdicts.subject[held])
    own = held[:, None] & (verdicts.subject[:, None] == subjects)
    count = out.sums(own)
    sums = (out.sums(np.where(own, np.nan_to_num(each)[:, None], 0.0)) for each in scores)
    return tuple(ratio(each, count) for each in sums), subjects


def _correlate(
    correlation: Correlation, x: Array, y: Array, *, resamples: Resamples, n_clusters: int
) -> tuple[Interval, str]:
    n = x.shape[1]
    if n < MIN_SUBJECTS:
        return Interval.undefined("too_few_subjects"), ""
    found = resamples.interval(correlation(x, y), n_clusters)
    if np.isnan(found.estimate) or n > MAX_EXACT:
        return found, ""
    return found, f"exact p {exact_p(correlation, x[0], y[0]):.4g}"
