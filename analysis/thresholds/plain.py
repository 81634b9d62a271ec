"""Thresholds and scores of probabilities on plain arrays.

Probabilities and verdicts are (units,); intervals are from the bootstrap, of clusters if given.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Bootstrap
from evenhand.analysis.labels.plain import cluster_codes, same_length
from evenhand.analysis.thresholds.advice import Kind, calibrate
from evenhand.analysis.thresholds.calibration_error import BinnedGaps
from evenhand.analysis.thresholds.probabilities import recalibrated
from evenhand.analysis.thresholds.reliability import brier_parts
from evenhand.analysis.thresholds.sweep import OBJECTIVES
from evenhand.analysis.types import Column
from evenhand.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TunedThreshold(Interval):
    """The threshold that matches a reference best, what it is worth, and whether to use it.

    `estimate` is the threshold, with its 95% interval (see `analysis.thresholds.sweep`); `value` is
    the objective on the units tuned on, `corrected` the same minus the optimism of tuning,
    `at_default` at the threshold in use; `held_out_gain` is tuned minus default on clusters not
    tuned on, `gain_low` its lower bound. `recommended` is the threshold to use, `advice` is
    "tuned", "default" or "not_identifiable" (see `analysis.thresholds.advice`), and `reason`
    explains it.
    """

    value: float
    corrected: float
    at_default: float
    held_out_gain: float
    gain_low: float
    recommended: float
    advice: Kind
    reason: str

    @property
    def threshold(self) -> float:
        """The estimate."""
        return self.estimate

    @property
    def wins_held_out(self) -> bool:
        """True if the lower bound of the gain lies above 0."""
        return bool(self.gain_low > 0)


def tune_threshold(
    positive: Column[float],
    reference: Column[int],
    *,
    objective: str = "kappa",
    default: float = 0.5,
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> TunedThreshold:
    """Sweep every threshold of probabilities (units,) against verdicts (units,), exactly.

    `objective` is "kappa", "agreement", "f1", "youden" or "prevalence" (see
    `analysis.thresholds.sweep.OBJECTIVES`); `clusters` (units,) are resampled, or else units.

    >>> positive = [0.1, 0.2, 0.35, 0.6, 0.3, 0.4, 0.7, 0.9] * 5
    >>> found = tune_threshold(positive, [p > 0.25 for p in positive])
    >>> found.threshold, found.value, round(found.at_default, 3), found.advice
    (0.3, 1.0, 0.333, 'tuned')
    """
    scores, verdicts = np.asarray(positive, dtype=float), np.asarray(reference, dtype=bool)
    same_length(scores, verdicts)
    if objective not in OBJECTIVES:
        known = ", ".join(OBJECTIVES)
        raise InputError(f"the objective is {objective!r}; it must be one of {known}")
    if np.isnan(scores).any() or len(np.unique(verdicts)) < 2:
        raise InputError(
            "a threshold needs a probability for every unit and both verdicts in the reference"
        )
    of = cluster_codes(clusters, len(scores))
    n = int(of.max()) + 1
    resamples = (bootstrap or Bootstrap()).draw(np.ones(n))
    found = calibrate(scores, verdicts.astype(np.int8), of, resamples, n, default)[objective]
    return TunedThreshold(
        **vars(found.threshold),
        value=found.value,
        corrected=found.corrected,
        at_default=found.at_default.estimate,
        held_out_gain=np.nan if found.gain is None else found.gain.estimate,
        gain_low=np.nan if found.gain is None else found.gain.low,
        recommended=found.advice.threshold,
        advice=found.advice.kind,
        reason=found.advice.reason.text,
    )


@dataclass(frozen=True)
class ProbabilityScores:
    """Calibration and sharpness of probabilities, against a reference.

    `brier` is the mean squared distance from the reference: `miscalibration` - `discrimination` +
    `uncertainty` (see `analysis.thresholds.reliability`). `ece` is the calibration error, the root
    of the mean squared distance of probabilities and shares in bins of equal size, free of what
    chance adds, with its 95% interval (see `analysis.thresholds.calibration_error`). The last two
    are of probabilities recalibrated by an isotonic curve that was fitted on other clusters, NaN
    where there is one cluster only.
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
        raise InputError("probabilities are needed for every unit, each between 0 and 1")
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
