"""Coverage: unscored units are neither wrong nor dropped, so their share is reported."""

from __future__ import annotations

from collections import Counter

import numpy as np

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS
from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.shares import share_bounds
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import Writer

COVERAGE = "coverage"
ABSENT = "absent"
UNSCORED_AS_DISAGREEMENT = "observed_agreement_unscored_as_disagreement"


def add_coverage_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """Add `coverage`: the share of a rater's assigned units with a valid label or probability.

    Units that humans labelled count as assigned to every grader. `rater_a` is empty and `rater_b`
    the rater; the note counts the reasons of the unscored ones. Either bound holds with 97.5%, also
    where hardly anything or nothing is unscored.
    """
    out = Writer(rows, resamples, labels.clusters)
    for rater, name in enumerate(labels.raters):
        asked = labels.put_to(rater)
        scored = labels.scored[:, rater] & asked
        sums = resamples.cluster_sums(labels.clusters, np.column_stack([scored, asked]))
        found = Interval(*share_bounds(*resamples.each_cluster(sums).T))
        if not asked.any():
            found = Interval.undefined("no_labels")
        elif out.count(asked)[1] < MIN_CLUSTERS:
            found = Interval.point(found.estimate, Remark("too_few_clusters"))
        about = join_notes(unscored_remark(labels, rater, resamples), out.as_sampled)
        out.add_interval(COVERAGE, found, asked, b=name, note=about)


def add_unscored_rows(
    rows: ResultRows, labels: LabelMatrix, coded: Coded, resamples: Resamples
) -> None:
    """Add graders' agreement with humans, counting each unscored grade as a disagreement.

    On the units that the grader was asked and two humans labelled (one, where there are fewer than
    30 of them), each counting once, as in its agreement on the units that it scored.
    """
    out, humans = Writer.of(rows, coded, resamples), list(coded.members("human"))
    number = coded.labelled[:, humans].sum(axis=1)
    for grader in coded.members("model"):
        put = labels.put_to(grader)
        units = np.asarray(put & (number >= 2))
        if out.count(units)[0] < MIN_SHARED_UNITS:
            units = np.asarray(put & (number >= 1))
        if not units.any():
            continue
        given = coded.codes[:, [grader]]
        agreed = ((given >= 0) & (coded.codes[:, humans] == given)).sum(axis=1)
        out.add(
            UNSCORED_AS_DISAGREEMENT,
            out.share(agreed / np.maximum(number, 1), units),
            units,
            a="humans",
            b=coded.raters[grader],
            note=unscored_remark(labels, grader, resamples),
        )


def unscored_remark(labels: LabelMatrix, rater: int, resamples: Resamples) -> Note:
    """Count the reasons for unscored units; those without any row are absent."""
    absent = labels.put_to(rater) & ~labels.asked[:, rater]
    reasons = labels.reasons[rater] + Counter(
        {ABSENT: int(absent @ resamples.frequency[labels.clusters])}
    )
    counted = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    return Remark("unscored", (counted,)) if counted else ""
