"""Side of the pairs that each subject favours: where its answers are affirmative more often.

The two answers to a pair are compared with one another: their difference is -1, 0 or 1, by people
and by a grader, and people's mean difference is estimated from both by prediction-powered inference
(PPI++, Angelopoulos et al. 2023b), with a weight on the grader of its own. What both sides of a
pair share drops out, so that a difference is surer than the two sides' rates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.bootstrap.boundary import unseen
from evenhand.analysis.bootstrap.intervals import Interval, interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import BINARY, LabelMatrix
from evenhand.analysis.labels.pair_rule import units_of_both_sides
from evenhand.analysis.notes import Reason, Remark, join_notes
from evenhand.analysis.results import ResultRows, from_to
from evenhand.analysis.subjects.corrected_rates import (
    FEW,
    FEW_UNITS,
    PEOPLES_OWN,
    cell_sums,
    graded_verdicts,
)
from evenhand.analysis.subjects.differences import reach_together
from evenhand.analysis.subjects.formulas import RateSums, rate_features
from evenhand.analysis.subjects.scores import people_means
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.analysis.writer import About, Writer

STATISTIC = "rate_side_difference_ppi"


def add_side_difference_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    sign: Array,
    sides: tuple[str, str],
    resamples: Resamples,
    rubrics: int,
) -> None:
    """Add `rate_side_difference_ppi` of every subject (at), subset "side=A>B|binary": the rate of
    affirmative answers to the first of the `sides` minus that to the second, by each grader.

    `labels` has a row for each answer, and resamples its clusters; `sign` (units,) is 1 where side
    a is the first of the sides, -1 where side b is, 0 where neither is known to be. An answer
    without its counterpart is left out, and a note says so. All intervals of a grader hold
    together, over so many `rubrics`.
    """
    a, b = units_of_both_sides(labels)
    if not len(a) or not labels.humans or not labels.models:
        return
    known = sign[a] != 0
    a, b, forward = a[known], b[known], sign[a[known]] > 0
    first, second = np.where(forward, a, b), np.where(forward, b, a)
    subset = f"side={from_to(*sides)}{BINARY}"
    out = Writer(rows, resamples, labels.clusters[first], subset)
    subject = labels.subject if labels.subjects else np.zeros(len(labels.codes), dtype=np.intp)
    subjects, people = labels.subjects or ("",), people_means(labels)
    for model, own in graded_verdicts(labels).items():
        answers = (labels.side >= 0) & (sign != 0) & ~np.isnan(own) & (subject >= 0)
        apart = _Apart(
            out,
            labels.raters[model],
            subjects,
            subject[first],
            people[first] - people[second],
            own[first] - own[second],
            np.bincount(subject[answers], minlength=len(subjects)),
        )
        apart.add_rows(0.05 / rubrics)


def pair_features(people: Array, graded: Array) -> Array:
    """Features of each pair whose sums `paired_ppi` takes, (pairs, 7), from the difference between
    its two answers by people and by a grader, each (pairs,), NaN for none.
    """
    return np.column_stack([rate_features(people, graded), np.nan_to_num(graded) ** 2])


def paired_ppi(sums: Array) -> tuple[Array, Array]:
    """People's mean difference by PPI++, (rows, ...), and the mean difference of the labelled pairs
    alone, (...), from sums of `pair_features`, (7, rows, ...).
    """
    *six, squares = sums
    parts = RateSums(*six)
    weight = parts.weight_for(ratio(squares, parts.labelled + parts.rest) - parts.raw**2)
    return parts.ppi(weight), parts.people[0]


def paired_reach(drawn: Array, labelled: Array, clusters: Codes, alpha: float) -> Array:
    """How far from the estimates the bounds of all subjects lie, (subjects,), so that they hold
    together. `drawn` are resampled differences (rows, subjects), `labelled` those of the labelled
    pairs alone, in so many `clusters` (subjects,).

    A difference varies as if one pair more favoured either side, as two rates with a case more on
    either side do (Agresti & Caffo 2000): these lie 1 - m and 1 + m from the mean m. Nor is it
    surer than the labelled clusters are that none goes the other way (`boundary.unseen`).
    """
    more = 2.0 * (1.0 + labelled**2) / clusters**2
    reach = reach_together(lambda some: drawn[:, some], clusters, [more], alpha)
    tail = alpha / 2.0 / len(clusters)
    least = np.array([unseen(count, tail) for count in clusters.tolist()])
    return np.maximum(reach, least * (1.0 + np.abs(labelled)))


@dataclass(frozen=True)
class _Apart:
    """Differences within pairs by one grader; `people`, `graded` and `subject` are by pair and
    subject, NaN where one of the two answers has no label, `answers` (subjects,) counts the single
    answers that the grader graded.
    """

    out: Writer
    grader: str
    subjects: tuple[str, ...]
    subject: Codes
    people: Array
    graded: Array
    answers: Codes

    def add_rows(self, alpha: float) -> None:
        """Add the row of every subject that has answers."""
        both = ~np.isnan(self.graded)
        labelled = both & ~np.isnan(self.people)
        features = pair_features(self.people, self.graded)
        sums = cell_sums(features, self.subject, len(self.subjects), self.out)
        rates, alone = paired_ppi(sums)
        drawn = self.out.resamples.plain(rates)
        inside = [both & (self.subject == k) for k in range(len(self.subjects))]
        counts = [self.out.count(labelled & mine) for mine in inside]
        clusters = np.array([count[1] for count in counts])
        found = [interval(drawn[:, k], count[1]) for k, count in enumerate(counts)]
        at = np.flatnonzero([not np.isnan(each.low) for each in found])
        if len(at):
            reach = paired_reach(drawn[1:, at], alone[at], clusters[at], alpha)
            for k, apart in zip(at.tolist(), reach.tolist(), strict=True):
                estimate = float(np.clip(found[k].estimate, -1.0, 1.0))
                found[k] = replace(found[k], low=estimate - apart, high=estimate + apart)
        for k, name in enumerate(self.subjects):
            if self.answers[k]:
                self._add(name, inside[k], labelled, found[k], int(self.answers[k]))

    def _add(self, name: str, mine: Mask, labelled: Mask, found: Interval, answers: int) -> None:
        counts, known = self.out.count(mine), self.out.count(mine & labelled)
        of = About(a="humans", b=self.grader, at=name)
        why: Reason | None = None
        if not mine.any():
            why = Remark("one_side_only")
        elif not known[0]:
            why = Remark("no_pairable_units")
        if why:
            self.out.add_interval(STATISTIC, Interval.undefined(why), counts, **of)
            return
        estimate, low, high = np.clip([found.estimate, found.low, found.high], -1.0, 1.0).tolist()
        alone = answers - 2 * int(mine.sum())
        of["note"] = join_notes(
            PEOPLES_OWN if counts == known else "",
            FEW if known[0] < FEW_UNITS else "",
            Remark("one_side_left_out", (alone,)) if alone else "",
            Remark("labelled_by_people", (known[0],)),
        )
        within = Interval(estimate, low, high, found.remarks)
        self.out.add_interval(STATISTIC, within, counts, **of)
