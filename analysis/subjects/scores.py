"""Overall results: each subject's score under each rater, and how the raters' scores correlate."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.notes import join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.subjects.correlation import (
    CORRELATIONS,
    MAX_EXACT,
    Correlation,
    exact_p,
)
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.analysis.writer import Writer

MIN_SUBJECTS = 3


def add_overall_rows(rows: ResultRows, verdicts: LabelMatrix, resamples: Resamples) -> None:
    """`subject_score` of humans and graders, and correlations of the scores.

    `verdicts` has one row per unit that counts towards a score. The humans' verdict on a unit is
    the mean of theirs. Two raters are compared on the units that both have; a subject that a
    resample leaves without units makes that resample degenerate.
    """
    out, scores = Writer(rows, resamples, verdicts.clusters, BINARY_ALL), _unit_scores(verdicts)
    for name, score in scores.items():
        _add_subject_scores(out, verdicts, name, score)
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
    table = verdicts.verdicts.astype(float)
    table[table < 0] = np.nan
    scores = {"humans": people_means(verdicts)} if verdicts.humans else {}
    scores |= {verdicts.raters[model]: table[:, model] for model in verdicts.models}
    return scores


def people_means(verdicts: LabelMatrix) -> Array:
    """The share of people who affirm each unit, of those who labelled it, (units,); NaN for none.

    Its mean over units is *people's rate*: of every score, rate and prevalence the same.
    """
    people = verdicts.verdicts[:, list(verdicts.humans)]
    return ratio((people == 1).sum(axis=1), (people >= 0).sum(axis=1))


def _add_subject_scores(out: Writer, verdicts: LabelMatrix, name: str, score: Array) -> None:
    held = ~np.isnan(score) & (verdicts.subject >= 0)
    (means,), subjects = _subject_means(out, verdicts, held, score)
    for column, subject in enumerate(subjects):
        units, at = out.count(held & (verdicts.subject == subject)), verdicts.subjects[subject]
        out.add("subject_score", means[:, column], units, a=name, at=at)


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
