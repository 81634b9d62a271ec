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

from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.notes import Remark
from evenhand.analysis.thresholds.held_out import held_out_verdicts, verdict_outcomes
from evenhand.analysis.thresholds.sweep import (
    OBJECTIVES,
    Curve,
    Outcomes,
    sweep,
    threshold_interval,
)
from evenhand.analysis.types import Array, Codes, Labels

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
