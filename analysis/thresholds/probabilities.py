"""Whether a grader's probabilities mean what they say: Brier score, calibration error, reliability.

And what recalibration would bring: an isotonic curve from probability to share, fitted on some
clusters and judged on others. How a probability came about (token probabilities, draws, stated)
stands in every row; graders with several ways are parted before (`analysis.labels.combine`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.bootstrap.folds import folds
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.notes import Note, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.thresholds.references import (
    Reference,
    main_reference,
    probability_graders,
    references_of,
)
from evenhand.analysis.types import Array, Codes, Numbers
from evenhand.analysis.writer import About, Counts, Writer

BINS = 10
_BINS_NOTE = f"{BINS} bins of equal width"


@dataclass(frozen=True)
class _Pairs:
    """Probabilities (units,) beside what the reference says (units,), 0 or 1, by cluster."""

    positive: Array
    affirmed: Array
    clusters: Codes

    def squares(self, resamples: Resamples) -> Array:
        """Replicates (rows,) of the Brier score: the mean squared distance (Brier 1950)."""
        sums = self._totals(resamples, (self.positive - self.affirmed) ** 2)
        return np.asarray(sums[:, 0] / sums[:, -1])

    def skill(self, resamples: Resamples) -> Array:
        """Replicates of 1 - Brier score / that of always stating the share of affirmatives."""
        sums = self._totals(resamples, (self.positive - self.affirmed) ** 2, self.affirmed)
        share = sums[:, 1] / sums[:, -1]
        always = share * (1.0 - share)
        brier = sums[:, 0] / sums[:, -1]
        return np.asarray(1.0 - ratio(brier, always))

    def bins(self, resamples: Resamples) -> tuple[Array, Array, Array]:
        """Units, affirmatives and summed probabilities in each bin, three arrays (rows, BINS)."""
        inside = bin_of(self.positive)[:, None] == np.arange(BINS)
        columns = [
            inside,
            inside * self.affirmed[:, None],
            inside * self.positive[:, None],
        ]
        totals = self._totals(resamples, *(part for each in columns for part in each.T))
        units, affirmed, stated = (totals[:, at * BINS : (at + 1) * BINS] for at in range(3))
        return units, affirmed, stated

    def _totals(self, resamples: Resamples, *features: Numbers) -> Array:
        """Sums of the features, and of 1 last, in every resample: (rows, features + 1)."""
        totals = resamples.sums(self.clusters, *features, np.ones(len(self.positive)))
        totals[totals[:, -1] == 0] = np.nan
        return totals


def bin_of(positive: Array, bins: int = BINS) -> Codes:
    """The bin of each probability: equal widths, a bound belongs to the bin above, 1 to the last.

    >>> bin_of(np.array([0.0, 0.099, 0.1, 0.3, 1.0])).tolist()
    [0, 0, 1, 3, 9]
    """
    # Decimals such as 0.3 lie a hair below their bound as binary fractions.
    place = np.floor(np.asarray(positive) * bins + 1e-9).astype(np.intp)
    return np.minimum(place, bins - 1)


def calibration_error(positive: Array, affirmed: Array, bins: int = BINS) -> float:
    """Expected calibration error: the distance between mean probability and share affirmative in
    each of some bins of equal width, weighted by the bins' units; empty bins weigh nothing.

    Source: Naeini, Cooper & Hauskrecht 2015.

    >>> calibration_error(np.array([0.9, 0.9, 0.1, 0.1]), np.array([1, 0, 0, 0])).__round__(3)
    0.25
    """
    place = bin_of(positive, bins)
    apart = np.bincount(place, weights=positive - affirmed, minlength=bins)
    return float(np.abs(apart).sum() / len(positive))


def recalibrated(positive: Array, affirmed: Array, clusters: Codes) -> Array | None:
    """Probabilities (units,) put through an isotonic curve that was fitted on other clusters.

    Between the probabilities that the curve was fitted on it runs straight, outside of them it is
    level. None with a single cluster. Source: Zadrozny & Elkan 2002.
    """
    fold = folds(clusters)
    if fold.max(initial=0) < 1:
        return None
    out = np.empty(len(positive))
    for each in range(int(fold.max()) + 1):
        test = fold == each
        stated, share = isotonic_curve(positive[~test], affirmed[~test])
        out[test] = np.interp(positive[test], stated, share)
    return out


def isotonic_curve(positive: Array, affirmed: Array) -> tuple[Array, Array]:
    """The distinct probabilities, and the share of affirmatives at each that rises best with them.

    >>> isotonic_curve(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 0.0]))[1].tolist()
    [0.0, 0.5, 0.5]
    """
    from scipy.optimize import isotonic_regression

    stated, place, times = np.unique(positive, return_inverse=True, return_counts=True)
    share = np.bincount(place.reshape(-1), weights=affirmed) / times
    return stated, np.asarray(isotonic_regression(share, weights=times).x)


def add_probability_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """For every probability grader, against people or else the only reference there is.

    `brier`, `brier_skill`, `ece`; `brier_recalibrated` and `ece_recalibrated`, cross-fitted by
    cluster; and with at = bin `reliability`, the share affirmative, and `reliability_probability`,
    the mean probability.
    """
    out, references = Writer(rows, resamples, labels.clusters, BINARY_ALL), references_of(labels)
    for reference in references:
        if reference.name == main_reference(references):
            for grader in probability_graders(labels):
                _add_quality(out, labels, grader, reference)


def _add_quality(out: Writer, labels: LabelMatrix, grader: int, reference: Reference) -> None:
    held = ~np.isnan(labels.positive[:, grader]) & (reference.verdicts >= 0)
    units, resamples, method = out.count(held), out.resamples, labels.methods[grader]
    given = _Pairs(
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
        for statistic in ("brier", "brier_skill", "ece"):
            add(statistic, Interval.undefined("no_pairable_units"))
        return
    inside, affirmed, stated = given.bins(resamples)
    add("brier", resamples.interval(given.squares(resamples), units[1]))
    add("brier_skill", resamples.interval(given.skill(resamples), units[1]))
    add("ece", _error_interval(inside, affirmed, stated, resamples, units[1]), note=_BINS_NOTE)
    better = recalibrated(given.positive, given.affirmed, given.clusters)
    if better is not None:
        anew = replace(given, positive=better)
        note = "isotonic, fitted on other clusters"
        add("brier_recalibrated", resamples.interval(anew.squares(resamples), units[1]), "", note)
        error = _error_interval(*anew.bins(resamples), resamples, units[1])
        add("ece_recalibrated", error, "", join_notes(note, _BINS_NOTE))
    for place in np.flatnonzero(inside[0]):
        at = f"{place / BINS:.1f}-{(place + 1) / BINS:.1f}"
        here = resamples.count(given.clusters, bin_of(given.positive) == place)
        for statistic, sums in (("reliability", affirmed), ("reliability_probability", stated)):
            shares = ratio(sums[:, place], inside[:, place])
            add(statistic, resamples.interval(shares, here[1], reason="no_labels"), at, on=here)


def _error_interval(
    units: Array, affirmed: Array, stated: Array, resamples: Resamples, n_clusters: int
) -> Interval:
    """Calibration error with its interval. Chance alone parts shares from probabilities, and more
    so in a resample: the resamples are moved back by what they exceed the data on average.
    """
    with np.errstate(invalid="ignore"):
        values = np.abs(stated - affirmed).sum(axis=1) / units.sum(axis=1)
    drawn = values[1 : 1 + resamples.resamples]
    excess = float(np.nanmean(drawn)) - values[0] if len(drawn) else 0.0
    values[1 : 1 + resamples.resamples] = np.maximum(drawn - excess, 0.0)
    return resamples.interval(resamples.plain(values), n_clusters)
