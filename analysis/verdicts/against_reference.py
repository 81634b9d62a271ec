"""Graders against one rater whose labels count as right: an expert, gold answers, a consensus.

One person does not show how far people agree, so no verdict can say that a grader may replace
people. It can say that the grader agrees with this one, by bars set with the reference.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, KappaMeans, deciding_kappa
from evenhand.analysis.bootstrap.influence import influence, simultaneous_level
from evenhand.analysis.bootstrap.intervals import Deciding, Interval
from evenhand.analysis.bootstrap.looks import level_of_look
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.weights import effective_size
from evenhand.analysis.notes import Remark
from evenhand.analysis.people.coverage import share_bounds
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array
from evenhand.analysis.verdicts.comparison import Points, sizes_of
from evenhand.analysis.verdicts.readings import UNTUNED, Reading, readings_of
from evenhand.study.settings.analysis import DecisionSettings

KAPPA = "reference_kappa"
SENSITIVITY, SPECIFICITY = "reference_sensitivity", "reference_specificity"
RARER = "reference_rarer_clusters"
WORTH = "reference_clusters_worth"


def add_reference_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    rule: DecisionSettings,
    look: int = 1,
) -> None:
    """Add rows comparing every grader with the reference, and at = "held_out" for thresholds tuned
    on other clusters: `reference_kappa`, and where there is a binary verdict
    `reference_sensitivity` and `reference_specificity`; `reference_rarer_clusters` counts the
    clusters in which the reference chose another category than its commonest,
    `reference_clusters_worth` is their effective number.

    `low` and `high` are one-sided bounds at the level of the verdict: kappa's like those of
    `non_inferiority` and for all graders at once, the shares' by Clopper & Pearson (1934) on the
    effective sample size. A pass needs all three bars cleared, so the three need no correction for
    multiple tests.
    """
    alone = labels.beside_only(rule.reference)
    if not alone.humans or not alone.scored[:, alone.humans[0]].any():
        return
    left_out = resamples.left_out(alone.clusters[alone.scored[:, alone.humans[0]]])
    found = [
        each
        for reading in readings_of(alone)
        if reading.at != UNTUNED and (each := _Compared.of(reading, alone, left_out))
    ]
    alpha, after = (level_of_look(each, rule.looks) for each in (look, look + 1))
    known = [each.apart for each in found if np.ptp(each.apart) > 0]
    together = simultaneous_level(np.column_stack(known), alpha) if known and alpha else alpha
    following = together * after / alpha if alpha else 0.0
    level = Deciding(together, look, len(found), following)
    for each in found:
        each.add(rows, alpha, level)


class _Compared:
    """A grader compared with the reference, the only human there is, on one label view."""

    def __init__(
        self, reading: Reading, labels: LabelMatrix, left_out: Resamples, kappas: Array
    ) -> None:
        self.reading, self.labels, self.left_out = reading, labels, left_out
        self.kappa, self.kappas, self.apart = float(kappas[0]), kappas, influence(kappas)

    @classmethod
    def of(cls, reading: Reading, labels: LabelMatrix, left_out: Resamples) -> _Compared | None:
        """Compare a label view with the reference; None where fewer than 30 units have both labels,
        or kappa is undefined.
        """
        coded, grader = reading.coded, reading.grader
        (reference,) = coded.members("human")
        both = coded.labelled[:, grader] & coded.labelled[:, reference]
        if left_out.count(coded.clusters, both)[0] < MIN_SHARED_UNITS:
            return None
        kind = deciding_kappa(coded)
        means = KappaMeans(coded, left_out, [kind]).over([(reference, grader)])
        values = means[kind].values
        return cls(reading, labels, left_out, values) if np.isfinite(values).all() else None

    def add(self, rows: ResultRows, alpha: float, level: Deciding) -> None:
        """Add the rows of this label view; the shares' bounds are at `alpha`."""
        coded, grader = self.reading.coded, self.reading.grader
        (reference,) = coded.members("human")
        both = coded.labelled[:, grader] & coded.labelled[:, reference]
        counts = self.left_out.count(coded.clusters, both)
        about = {
            "rater_a": coded.raters[reference],
            "rater_b": coded.raters[grader],
            "at": self.reading.at,
        }
        used = np.bincount(coded.codes[both, reference], minlength=coded.q)
        worth = effective_size(sizes_of(coded, self.left_out, both))
        found = self._bounded(level.alpha, worth)
        rows.add(KAPPA, found.held(level), counts, **about, subset=coded.subset)
        rows.add(WORTH, Interval.point(worth), counts, **about, subset=coded.subset)
        other = both & (coded.codes[:, reference] != used.argmax())
        rarer = self.left_out.count(coded.clusters, other)[1]
        rows.add(RARER, Interval.point(float(rarer)), counts, **about, subset=coded.subset)
        if not self.labels.has_verdicts:
            return
        verdicts = coded if coded.is_binary else self.labels.on_verdicts()
        for name, code in ((SENSITIVITY, 0), (SPECIFICITY, 1)):
            whole = (verdicts.codes[:, reference] == code) & verdicts.labelled[:, grader]
            part = whole & (verdicts.codes[:, grader] == code)
            sums = self.left_out.cluster_sums(verdicts.clusters, np.column_stack([part, whole]))
            if self.left_out.weight is not None:
                sums = sums * self.left_out.weight[:, None]
            each = self.left_out.each_cluster(sums)
            found = Interval.undefined("no_labels")
            if whole.any() and alpha:
                found = Interval(*share_bounds(each[:, 0], each[:, 1], alpha))
            inside = self.left_out.count(verdicts.clusters, whole)
            rows.add(name, found.held(level), inside, **about, subset=verdicts.subset)

    def _bounded(self, alpha: float, worth: float) -> Interval:
        """Return kappa with both one-sided bounds, taken at the null."""
        if not alpha:
            return Interval(self.kappa, np.nan, np.nan, (Remark("no_level"),))
        points = Points.of(self.reading.coded, self.left_out, [self.reading.grader], pooled=False)
        below, above = points.at_null(self.kappas, worth).reach(alpha)
        return Interval(self.kappa, self.kappa - below, self.kappa + above)
