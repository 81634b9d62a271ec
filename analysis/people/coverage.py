"""How much each rater answered: unscored units are neither wrong nor dropped, so they are shown."""

from __future__ import annotations

from collections import Counter

import numpy as np

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, RunningMean
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.results import ResultRows

COVERAGE = "coverage"
UNSCORED_AS_DISAGREEMENT = "observed_agreement_unscored_as_disagreement"


def add_coverage_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """`coverage`: the share of the units put to a rater that have a valid label or probability.

    `rater_a` is empty and `rater_b` the rater; the note counts the reasons of the unscored ones.
    """
    scored = labels.scored
    for rater, name in enumerate(labels.raters):
        asked = labels.asked[:, rater]
        features = np.column_stack([asked & scored[:, rater], asked])
        sums = resamples.totals(resamples.cluster_sums(labels.clusters, features))
        numbers = resamples.count(labels.clusters, asked)
        rows.add(
            COVERAGE,
            resamples.interval(ratio(*sums.T), numbers[1]),
            numbers,
            rater_a="",
            rater_b=name,
            subset="all",
            note=_listed(labels.reasons[rater]),
        )


def add_unscored_rows(
    rows: ResultRows, labels: LabelMatrix, coded: Coded, resamples: Resamples
) -> None:
    """Each grader's agreement with humans where every unscored grade counts as a disagreement.

    The mean over humans of agreements / units that the human labelled and the grader was asked.
    """
    humans = list(coded.members("human"))
    for grader in coded.members("model"):
        put = coded.labelled[:, humans] & labels.asked[:, [grader]]
        shared = put.T @ resamples.frequency[coded.clusters]
        people = shared >= MIN_SHARED_UNITS if (shared >= MIN_SHARED_UNITS).any() else shared > 0
        if not people.any():
            continue
        put = put[:, people]
        agreed = put & (coded.codes[:, humans][:, people] == coded.codes[:, [grader]])
        sums = resamples.totals(resamples.cluster_sums(coded.clusters, np.hstack([agreed, put])))
        mean = RunningMean(len(sums))
        mean.add(ratio(*sums.reshape(len(sums), 2, -1).swapaxes(0, 1)))
        numbers = resamples.count(coded.clusters, np.asarray(put.any(axis=1)))
        found = mean.result()
        rows.add(
            UNSCORED_AS_DISAGREEMENT,
            resamples.interval(found.values, numbers[1], undefined=found.undefined),
            numbers,
            rater_a="humans",
            rater_b=coded.raters[grader],
            subset=coded.subset,
            note=join_notes(found.note, _listed(labels.reasons[grader])),
        )


def _listed(reasons: Counter[str]) -> Note:
    counted = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    return Remark("unscored", (counted,)) if counted else ""
