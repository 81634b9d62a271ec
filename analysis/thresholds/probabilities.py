"""Calibration of a grader's probabilities: Brier score, calibration error, reliability.

Also the effect of recalibration: an isotonic curve from probability to share, fitted on some
clusters and judged on others. Every row names how the probability was obtained (token
probabilities, draws, stated); graders with several ways are split before
(`analysis.labels.combine`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.bootstrap.folds import folds
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.notes import Note, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.thresholds.calibration_error import BinnedGaps
from evenhand.analysis.thresholds.references import (
    Reference,
    main_reference,
    probability_graders,
    references_of,
)
from evenhand.analysis.thresholds.reliability import isotonic_curve, reliability_curve
from evenhand.analysis.types import Array, Codes, Numbers
from evenhand.analysis.writer import About, Counts, Writer


@dataclass(frozen=True)
class _Stated:
    """Stated probabilities (units,) with the reference's verdicts (units,), 0 or 1, by cluster."""

    positive: Array
    affirmed: Array
    clusters: Codes

    def squares(self, resamples: Resamples) -> Array:
        """Replicates (rows,) of the Brier score: the mean squared distance (Brier 1950)."""
        sums = self._totals(resamples, (self.positive - self.affirmed) ** 2)
        return np.asarray(sums[:, 0] / sums[:, -1])

    def error(self, resamples: Resamples, n_clusters: int) -> Interval:
        """The debiased calibration error with its interval."""
        data = self.positive, self.affirmed, self.clusters
        gaps = BinnedGaps.of(*data, resamples.n_types, counts=resamples.weight)
        return gaps.interval(resamples, n_clusters)

    def _totals(self, resamples: Resamples, *features: Numbers) -> Array:
        """Sums of the features, and of 1 last, in every resample: (rows, features + 1)."""
        totals = resamples.sums(self.clusters, *features, np.ones(len(self.positive)))
        totals[totals[:, -1] == 0] = np.nan
        return totals


def recalibrated(
    positive: Array, affirmed: Array, clusters: Codes, weight: Array | None = None
) -> Array | None:
    """Probabilities (units,) put through an isotonic curve that was fitted on other clusters.

    Between the probabilities that the curve was fitted on it runs straight, outside of them it is
    level. `weight` (units,) is how much each counts. None with a single cluster. Source: Zadrozny &
    Elkan 2002.
    """
    fold = folds(clusters)
    if fold.max(initial=0) < 1:
        return None
    out = np.empty(len(positive))
    for each in range(int(fold.max()) + 1):
        test = fold == each
        own = None if weight is None else weight[~test]
        stated, share = isotonic_curve(positive[~test], affirmed[~test], own)
        out[test] = np.interp(positive[test], stated, share)
    return out


def add_probability_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """Add calibration rows for every probability grader, against people or else the only reference
    there is.

    `brier`, `ece`, and `brier_recalibrated`, cross-fitted by cluster; and with at = probability
    `reliability`, the share affirmative, and `reliability_probability`, with the bounds of that
    share for a calibrated grader.
    """
    out, references = Writer(rows, resamples, labels.clusters, BINARY_ALL), references_of(labels)
    for reference in references:
        if reference.name == main_reference(references):
            for grader in probability_graders(labels):
                _add_quality(out, labels, grader, reference)


def _add_quality(out: Writer, labels: LabelMatrix, grader: int, reference: Reference) -> None:
    held = ~np.isnan(labels.positive[:, grader]) & (reference.verdicts >= 0)
    units, resamples, method = out.count(held), out.resamples, labels.methods[grader]
    given = _Stated(
        labels.positive[held, grader],
        reference.verdicts[held].astype(float),
        labels.clusters[held],
    )

    def add(
        statistic: str, found: Interval, at: str = "", note: Note = "", on: Counts = units
    ) -> None:
        about = join_notes(note, method, reference.note)
        of = About(a=reference.name, b=labels.raters[grader], at=at, note=about)
        out.add_interval(statistic, found, on, **of)

    if not units[0]:
        for statistic in ("brier", "ece"):
            add(statistic, Interval.undefined("no_pairable_units"))
        return
    add("brier", resamples.interval(given.squares(resamples), units[1]))
    weight = labels.weight_of(held)
    add("ece", given.error(resamples, units[1]))
    better = recalibrated(given.positive, given.affirmed, given.clusters, weight)
    if better is not None:
        anew = replace(given, positive=better)
        note = "isotonic, fitted on other clusters"
        add("brier_recalibrated", resamples.interval(anew.squares(resamples), units[1]), "", note)
    curve = reliability_curve(given.positive, given.affirmed, given.clusters, weight)
    for stated, share, low, high, step in zip(
        curve.stated, curve.share, curve.low, curve.high, curve.step, strict=True
    ):
        here = resamples.count(given.clusters, curve.step_of_unit == step)
        add("reliability", Interval.point(share), repr(float(stated)), on=here)
        band = Interval(float(stated), min(low, stated), max(high, stated))
        add("reliability_probability", band, repr(float(stated)), on=here)
