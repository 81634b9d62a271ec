"""How much each rater answered: unscored units are neither wrong nor dropped, so they are shown."""

from __future__ import annotations

from collections import Counter

import numpy as np

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, RunningMean
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import Writer

COVERAGE = "coverage"
UNSCORED_AS_DISAGREEMENT = "observed_agreement_unscored_as_disagreement"


def add_coverage_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """`coverage`: the share of the units put to a rater that have a valid label or probability.

    `rater_a` is empty and `rater_b` the rater; the note counts the reasons of the unscored ones.
    """
    out, scored = Writer(rows, resamples, labels.clusters), labels.scored
    for rater, name in enumerate(labels.raters):
        asked = labels.asked[:, rater]
        values = out.share(scored[:, rater], asked)
        out.add(COVERAGE, values, asked, b=name, note=_listed(labels.reasons[rater]))


def add_unscored_rows(
    rows: ResultRows, labels: LabelMatrix, coded: Coded, resamples: Resamples
) -> None:
    """Each grader's agreement with humans where every unscored grade counts as a disagreement.

    The mean over humans of agreements / units that the human labelled and the grader was asked.
    """
    out, humans = Writer.of(rows, coded, resamples), list(coded.members("human"))
    for grader in coded.members("model"):
        put = coded.labelled[:, humans] & labels.asked[:, [grader]]
        shared = put.T @ resamples.frequency[coded.clusters]
        people = shared >= MIN_SHARED_UNITS if (shared >= MIN_SHARED_UNITS).any() else shared > 0
        if not people.any():
            continue
        put = put[:, people]
        agreed = put & (coded.codes[:, humans][:, people] == coded.codes[:, [grader]])
        mean = RunningMean(len(resamples))
        mean.add(ratio(*np.split(out.sums(agreed, put), 2, axis=1)))
        found = mean.result()
        out.add(
            UNSCORED_AS_DISAGREEMENT,
            found.values,
            np.asarray(put.any(axis=1)),
            undefined=found.undefined,
            a="humans",
            b=coded.raters[grader],
            note=join_notes(found.note, _listed(labels.reasons[grader])),
        )


def _listed(reasons: Counter[str]) -> Note:
    counted = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    return Remark("unscored", (counted,)) if counted else ""
