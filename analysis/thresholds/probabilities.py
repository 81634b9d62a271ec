"""Calibration of a grader's probabilities: Brier score, calibration error, reliability.

Also the effect of recalibration: an isotonic curve from probability to share, fitted on some
clusters and judged on others. Every row names how the probability was obtained (token
probabilities, draws, stated); graders with several ways are split before
(`analysis.labels.encoding`).

Shares differ from probabilities by chance alone, in bins of few units by a lot: the plain mean
distance of a perfectly calibrated grader is far from 0. The squared distance can be debiased
exactly (Kumar, Liang & Ma 2019); its root is on the scale of the probabilities.

Reliability, the share affirmative at each stated probability, needs no bins (CORP). The curve is
the isotonic regression of the reference on the probability, which picks its steps itself; it splits
the Brier score into miscalibration, discrimination and uncertainty. Source: Dimitriadis, Gneiting &
Jordan 2021.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Interval
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples, ratio
from evenhand.analysis.labels.encoding import cluster_codes, same_length
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.thresholds.rows import (
    Reference,
    main_reference,
    probability_graders,
    references_of,
)
from evenhand.analysis.thresholds.sweep import folds
from evenhand.analysis.types import Array, Codes, Column
from evenhand.analysis.writer import About, Counts, RubricView
from evenhand.errors import InputError

BINS = 10
MIN_IN_BIN = 10
"""Units in a bin at least: with fewer than 100 units there are fewer bins."""


def equal_mass_bins(positive: Array, bins: int | None = None) -> Codes:
    """Bins (units,) of about equally many units; equal probabilities share a bin.

    >>> equal_mass_bins(np.array([0.1, 0.2, 0.2, 0.2, 0.8, 0.9]), 3).tolist()
    [0, 1, 1, 1, 2, 2]
    """
    wanted = bins or min(BINS, max(1, len(positive) // MIN_IN_BIN))
    shares = np.arange(1, wanted) / wanted
    bounds = np.unique(np.quantile(positive, shares, method="higher"))
    place = np.searchsorted(bounds, positive, side="right")
    return np.unique(place, return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True)
class BinnedGaps:
    """Gaps between shares and probabilities in bins: share affirmative minus mean probability,
    `gap` (bins,), and the share of the units in each bin, `weight` (bins,). `influence` (clusters,
    bins) is the contribution of each cluster to the error of a gap, as often as it counts,
    `variance` (bins,) that of the gap; in a bin of a single cluster all of the gap.
    """

    gap: Array
    weight: Array
    influence: Array
    variance: Array

    @classmethod
    def of(
        cls,
        positive: Array,
        affirmed: Array,
        clusters: Codes,
        n_clusters: int,
        bins: int | None = None,
        counts: Array | None = None,
    ) -> BinnedGaps:
        """Compute the gaps from probabilities, 0 or 1, and clusters numbered below `n_clusters`,
        each (units,); `counts` (clusters,) is how often each cluster counts, 1 unless given.
        """
        place = equal_mass_bins(positive, bins)
        shape = (n_clusters, int(place.max()) + 1)
        cell = clusters * shape[1] + place
        units, apart = (
            np.bincount(cell, weights, shape[0] * shape[1]).reshape(shape)
            for weights in (np.ones(len(place)), affirmed - positive)
        )
        each = np.ones((n_clusters, 1)) if counts is None else counts[:, None]
        inside = (each * units).sum(axis=0)
        gap = (each * apart).sum(axis=0) / inside
        # Deviations from a mean are a little smaller than errors, the more so the fewer clusters.
        clusters_in = (units > 0).sum(axis=0)
        wider = np.sqrt(clusters_in / np.maximum(clusters_in - 1, 1))
        influence = (apart - gap * units) / inside * wider
        variance = np.where(clusters_in > 1, ((each * influence) ** 2).sum(axis=0), gap**2)
        return cls(gap, inside / inside.sum(), influence, variance)

    @property
    def squared(self) -> float:
        """The mean squared gap minus its bias, the variance of the gaps; below 0 by chance."""
        return float(self.weight @ (self.gap**2 - self.variance))

    @property
    def error(self) -> float:
        """Calibration error, the root of `squared`; 0 where the latter is below 0."""
        return math.sqrt(max(0.0, self.squared))

    def interval(self, resamples: Resamples, n_clusters: int) -> Interval:
        """The error with its 95% interval, by inverting a test at every size of error.

        The gaps' errors in the resamples are added to gaps of the same shape and every size; a size
        is in the interval unless the mean squared gap seen is in its highest or lowest 2.5%. 0 is
        tried like any other size, which percentiles of resamples cannot do. Where the squared error
        is below 0 the upper bound is that of 0.
        """
        if n_clusters < MIN_CLUSTERS:
            return Interval.point(self.error, Remark("too_few_clusters"))
        if resamples.resamples == 0:
            return Interval.point(self.error, Remark("not_resampled"))
        errors = resamples.totals(self.influence)[1 : 1 + resamples.resamples]
        chance = (errors**2) @ self.weight
        if not chance.any():
            return Interval.point(self.error, Remark("no_variation"))
        seen = float(self.weight @ self.gap**2)
        size = math.sqrt(seen)
        shape = self.gap / size if size > 0 else np.ones(len(self.gap))
        along = errors @ (self.weight * shape)
        at_least = max(seen, seen - self.squared)
        low = float(np.quantile(_sizes(seen, along, chance), 0.025))
        high = float(np.quantile(_sizes(at_least, along, chance), 0.975))
        return Interval(self.error, min(low, self.error), max(high, self.error))


def _sizes(seen: float, along: Array, chance: Array) -> Array:
    """The size of error that each resample's errors would turn into the mean square `seen`: the
    larger solution of size^2 + 2 size x along + chance = seen; 0 where chance alone is more.
    """
    root = -along + np.sqrt(np.maximum(0.0, along**2 + seen - chance))
    return np.asarray(np.where(chance < seen, root, 0.0))


MAX_POINTS = 60
"""Points through which a curve is drawn at most."""
_DRAWS = 400
_DRAWN_UNITS = 20_000_000
_FEWEST_DRAWS = 100


def isotonic_curve(
    positive: Array, affirmed: Array, weight: Array | None = None
) -> tuple[Array, Array]:
    """The distinct probabilities, and the share of affirmatives at each that rises best with them.

    `weight` (units,) is how much each unit counts, here and below; 1 unless given.

    >>> isotonic_curve(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 0.0]))[1].tolist()
    [0.0, 0.5, 0.5]
    """
    from scipy.optimize import isotonic_regression

    counts = np.ones(len(positive)) if weight is None else weight
    stated, place = np.unique(positive, return_inverse=True)
    times = np.bincount(place.reshape(-1), weights=counts)
    share = np.bincount(place.reshape(-1), weights=counts * affirmed) / times
    return stated, np.asarray(isotonic_regression(share, weights=times).x)


@dataclass(frozen=True)
class BrierParts:
    """Brier score = miscalibration - discrimination + uncertainty.

    `miscalibration` is how much recalibration on the same units would lower the score,
    `discrimination` how much lower the recalibrated probabilities score than the constant share of
    affirmatives, and `uncertainty` is the score of that constant. No part is below 0.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float


def brier_parts(positive: Array, affirmed: Array) -> BrierParts:
    """Parts of the mean squared distance of probabilities (units,) from 0 or 1 (units,).

    Scores of 1.01 / 3 as stated, .5 / 3 along the curve 0, 1/2, 1/2, and 2/9 at the constant 1/3:

    >>> parts = brier_parts(np.array([0.1, 0.2, 0.6]), np.array([0.0, 1.0, 0.0]))
    >>> [round(each, 4) for each in (parts.miscalibration, parts.discrimination, parts.uncertainty)]
    [0.17, 0.0556, 0.2222]
    """
    curve = np.interp(positive, *isotonic_curve(positive, affirmed))
    share = np.average(affirmed)
    stated, recalibrated, constant = (
        float(np.average((each - affirmed) ** 2)) for each in (positive, curve, share)
    )
    return BrierParts(max(0.0, stated - recalibrated), max(0.0, constant - recalibrated), constant)


@dataclass(frozen=True)
class ReliabilityCurve:
    """Points of the curve, both ends of its steps: `stated` probability, `share` affirmative, and
    which `step` they are on; `low` and `high` are the bounds of a calibrated grader's share in 95%.
    All (points,); `step_of_unit` (units,) says where each unit is.
    """

    stated: Array
    share: Array
    step: Codes
    low: Array
    high: Array
    step_of_unit: Codes


def reliability_curve(
    positive: Array, affirmed: Array, clusters: Codes, weight: Array | None = None
) -> ReliabilityCurve:
    """The isotonic curve with its consistency band, from arrays (units,).

    For the band the reference is simulated as if the probabilities were true, and the curve fitted
    to it; the errors of units in one cluster are correlated in the simulation as in the data.
    """
    stated, share = isotonic_curve(positive, affirmed, weight)
    step = np.cumsum(np.diff(share, prepend=share[0]) > 0)
    change = np.flatnonzero(np.diff(step))
    ends = np.unique([0, *change, *(change + 1), len(step) - 1])
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, MAX_POINTS).round().astype(int))]
    # The correlation of two units' errors within a cluster, from 0 to 1; 0 for single units.
    expected = np.interp(positive, stated, share)
    both, most = (
        float((np.bincount(clusters, weights=each) ** 2).sum() - (each**2).sum())
        for each in (affirmed - expected, np.sqrt(expected * (1.0 - expected)))
    )
    together = float(np.clip(both / most, 0.0, 1.0)) if most > 1e-12 else 0.0
    counts = np.ones(len(positive)) if weight is None else weight
    low, high = _band(positive, clusters, together, ends, counts)
    of_unit = np.asarray(step[np.searchsorted(stated, positive)], dtype=np.intp)
    return ReliabilityCurve(stated[ends], share[ends], step[ends], low, high, of_unit)


def _band(
    positive: Array, clusters: Codes, together: float, points: Codes, counts: Array
) -> tuple[Array, Array]:
    """Bounds (points,) at some of the distinct probabilities."""
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(2021)
    draws = int(np.clip(_DRAWN_UNITS // len(positive), _FEWEST_DRAWS, _DRAWS))
    place, n_clusters = np.unique(positive, return_inverse=True)[1], int(clusters.max()) + 1
    place = place.reshape(-1)
    times = np.bincount(place, weights=counts)
    curves = np.empty((draws, len(points)))
    for draw in range(draws):
        chance = rng.random(len(positive))
        if together > 0:
            shared = rng.random(len(positive)) < np.sqrt(together)
            chance = np.where(shared, rng.random(n_clusters)[clusters], chance)
        share = np.bincount(place, weights=counts * (chance < positive)) / times
        curves[draw] = isotonic_regression(share, weights=times).x[points]
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    return low, high


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


def add_probability_rows(view: RubricView) -> None:
    """Add calibration rows for every probability grader, against people or else the only reference
    there is.

    `brier`, `ece`, and `brier_recalibrated`, cross-fitted by cluster; and with at = probability
    `reliability`, the share affirmative, and `reliability_probability`, with the bounds of that
    share for a calibrated grader.
    """
    references = references_of(view.labels)
    for reference in references:
        if reference.name == main_reference(references):
            for grader in probability_graders(view.labels):
                _add_quality(view, grader, reference)


def _add_quality(view: RubricView, grader: int, reference: Reference) -> None:
    labels, resamples = view.labels, view.resamples
    held = ~np.isnan(labels.positive[:, grader]) & (reference.verdicts >= 0)
    units, method = view.count(held), labels.methods[grader]
    positive, affirmed = labels.positive[held, grader], reference.verdicts[held].astype(float)
    clusters, weight = labels.clusters[held], labels.weight_of(held)

    def add(
        statistic: str, found: Interval, at: str = "", note: Note = "", on: Counts = units
    ) -> None:
        about = join_notes(note, method, reference.note)
        of = About(a=reference.name, b=labels.raters[grader], at=at, note=about)
        view.add(statistic, found, on, **of)

    if not units[0]:
        for statistic in ("brier", "ece"):
            add(statistic, Interval.undefined("no_pairable_units"))
        return

    def brier(stated: Array) -> Interval:
        """The mean squared distance (Brier 1950)."""
        squares = (stated - affirmed) ** 2
        sums = resamples.sums(clusters, squares, np.ones(len(squares)))
        return resamples.interval(ratio(*sums.T), units[1])

    add("brier", brier(positive))
    counts = resamples.weight
    gaps = BinnedGaps.of(positive, affirmed, clusters, resamples.n_types, counts=counts)
    add("ece", gaps.interval(resamples, units[1]))
    better = recalibrated(positive, affirmed, clusters, weight)
    if better is not None:
        add("brier_recalibrated", brier(better), "", "isotonic, fitted on other clusters")
    curve = reliability_curve(positive, affirmed, clusters, weight)
    for stated, share, low, high, step in zip(
        curve.stated, curve.share, curve.low, curve.high, curve.step, strict=True
    ):
        here = resamples.count(clusters, curve.step_of_unit == step)
        add("reliability", Interval.point(share), repr(float(stated)), on=here)
        band = Interval(float(stated), min(low, stated), max(high, stated))
        add("reliability_probability", band, repr(float(stated)), on=here)


@dataclass(frozen=True)
class ProbabilityScores:
    """Calibration and sharpness of probabilities, against a reference.

    `brier` is the mean squared distance from the reference: `miscalibration` - `discrimination` +
    `uncertainty`. `ece` is the calibration error, the root of the mean squared distance of
    probabilities and shares in bins of equal size, free of what chance adds, with its 95% interval.
    The last two are of probabilities recalibrated by an isotonic curve that was fitted on other
    clusters, NaN where there is one cluster only.
    """

    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    ece: float
    ece_low: float
    ece_high: float
    brier_recalibrated: float
    ece_recalibrated: float


def score_probabilities(
    positive: Column[float],
    reference: Column[int],
    *,
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> ProbabilityScores:
    """Brier score and calibration error of probabilities (units,) against verdicts (units,).

    `clusters` (units,) are resampled, or else units; below five the error has no interval (NaN).

    >>> found = score_probabilities([0.05, 0.15, 0.85, 0.95], [False, False, True, True])
    >>> round(found.brier, 4), round(found.ece, 4), found.discrimination
    (0.0125, 0.0, 0.25)
    """
    scores, affirmed = np.asarray(positive, dtype=float), np.asarray(reference, dtype=float)
    same_length(scores, affirmed)
    if not len(scores) or not ((scores >= 0) & (scores <= 1)).all():
        raise InputError("probabilities are needed for every item, each between 0 and 1")
    of = cluster_codes(clusters, len(scores))
    n = int(of.max()) + 1
    parts = brier_parts(scores, affirmed)
    gaps = BinnedGaps.of(scores, affirmed, of, n)
    error = gaps.interval((bootstrap or Bootstrap()).draw(np.ones(n)), n)
    better = recalibrated(scores, affirmed, of)
    anew = np.full(len(scores), np.nan) if better is None else better
    return ProbabilityScores(
        brier=float(np.mean((scores - affirmed) ** 2)),
        **vars(parts),
        ece=error.estimate,
        ece_low=error.low,
        ece_high=error.high,
        brier_recalibrated=float(np.mean((anew - affirmed) ** 2)),
        ece_recalibrated=(
            np.nan if better is None else BinnedGaps.of(better, affirmed, of, n).error
        ),
    )
