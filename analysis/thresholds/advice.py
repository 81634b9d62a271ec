"""Tuning of one grader's threshold to one reference: the result, and the threshold to use.

- *tuned*: the tuned threshold wins held out: the lower bound of its gain over the default, on
  clusters that it was not tuned on, lies above 0.
- *not_identifiable*: the data cannot tell. Fewer than 30 clusters; or neither the tuned nor the
  default threshold agrees with the reference beyond chance (lower bounds of kappa); or nothing wins
  and the interval of the threshold spans more than half of the scale.
- *default*: everything else; the default is as good as can be shown.

The last two keep the default.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples
from evenhand.analysis.labels.encoding import cluster_codes, same_length
from evenhand.analysis.notes import Remark
from evenhand.analysis.thresholds.sweep import (
    OBJECTIVES,
    Curve,
    Outcomes,
    held_out_verdicts,
    sweep,
    threshold_interval,
    verdict_outcomes,
)
from evenhand.analysis.types import Array, Codes, Column, Labels
from evenhand.errors import InputError

MIN_CLUSTERS = 30
TOO_WIDE = 0.5
"""An interval of the threshold that spans more than this says nothing of where to put it."""

Kind = Literal["tuned", "default", "not_identifiable"]


@dataclass(frozen=True)
class Advice:
    """Advised threshold, the kind of advice, and the reason."""

    kind: Kind
    threshold: float
    reason: Remark


@dataclass(frozen=True)
class Calibration:
    """Result of tuning a threshold to one objective.

    `threshold` is the tuned one with its interval, `value` the objective there on the units tuned
    on, `corrected` the same minus the `optimism` of tuning, `at_default` the objective at the
    `default`. `gain` is tuned minus default, held out; None where there is one cluster only.
    """

    objective: str
    default: float
    threshold: Interval
    value: float
    optimism: float
    at_default: Interval
    gain: Interval | None
    advice: Advice
    curve: Curve

    @property
    def corrected(self) -> float:
        """Value of the objective to expect from the tuned threshold on other units."""
        return self.value - self.optimism


def calibrate(
    positive: Array,
    reference: Labels,
    clusters: Codes,
    resamples: Resamples,
    n_clusters: int,
    default: float,
) -> dict[str, Calibration]:
    """Tune the threshold of probabilities (units,) to a reference (units,) of 0 and 1.

    Results are by objective. Both verdicts must occur in the reference; `n_clusters` is the number
    of clusters of the units.
    """
    affirmed = reference == 1
    weight = None if resamples.weight is None else resamples.weight[clusters]
    elsewhere_verdicts = held_out_verdicts(positive, reference, clusters, default, weight)

    def kappa(outcomes: Outcomes) -> Interval:
        return resamples.interval(OBJECTIVES["kappa"](outcomes), n_clusters)

    by_default = verdict_outcomes(positive >= default, affirmed, clusters, resamples)
    held_out = {
        objective: verdict_outcomes(verdict, affirmed, clusters, resamples)
        for objective, verdict in elsewhere_verdicts.items()
    }
    default_kappa = kappa(by_default)
    found = {}
    for objective, swept in sweep(positive, reference, clusters, resamples, default).items():
        function = OBJECTIVES[objective]
        usual = function(by_default)
        threshold = threshold_interval(swept, resamples, n_clusters)
        gain, informative = None, default_kappa
        if objective in held_out:
            elsewhere = held_out[objective]
            gain = resamples.interval(function(elsewhere) - usual, n_clusters)
            informative = kappa(elsewhere)
        found[objective] = Calibration(
            objective=objective,
            default=default,
            threshold=threshold,
            value=float(swept.tuned[0]),
            optimism=swept.optimism,
            at_default=resamples.interval(usual, n_clusters),
            gain=gain,
            advice=advise(threshold, default, gain, informative, default_kappa, n_clusters),
            curve=swept.curve,
        )
    return found


def advise(
    threshold: Interval,
    default: float,
    gain: Interval | None,
    held_out_kappa: Interval,
    default_kappa: Interval,
    n_clusters: int,
) -> Advice:
    """Tuned, default, or not identifiable; decided from bounds (see the module)."""
    informed = held_out_kappa.low > 0
    if n_clusters < MIN_CLUSTERS:
        return Advice("not_identifiable", default, Remark("few_clusters", (MIN_CLUSTERS,)))
    if not informed and not default_kappa.low > 0:
        return Advice("not_identifiable", default, Remark("agrees_by_chance"))
    if threshold.estimate == default:
        return Advice("default", default, Remark("no_better_threshold"))
    if gain is not None and gain.low > 0 and informed:
        return Advice("tuned", threshold.estimate, Remark("wins_held_out"))
    if threshold.high - threshold.low > TOO_WIDE:
        return Advice("not_identifiable", default, Remark("interval_too_wide"))
    return Advice("default", default, Remark("does_not_win_held_out"))


def draws_needed(threshold: float) -> int:
    """Smallest number of draws for a threshold: shares of k draws come in steps of 1 / k, and fewer
    than this leave no step between the threshold and the nearer end of the scale. 1 at the ends.

    >>> draws_needed(0.1), draws_needed(0.5), draws_needed(0.95), draws_needed(1.0)
    (10, 2, 20, 1)
    """
    nearer = min(threshold, 1.0 - threshold)
    return int(np.ceil(1.0 / nearer - 1e-9)) if nearer > 0 else 1


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
