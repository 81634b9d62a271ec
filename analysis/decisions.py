"""May a grader stand in, and from which probability: the ceiling and thresholds on plain labels.

Labels are as in `analysis.functions`; intervals are from the bootstrap, of clusters if given.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.arrays import (
    cluster_codes,
    coded_raters,
    encode_column,
    encode_labels,
    same_length,
)
from analysis.ceiling import CEILING, add_ceiling_rows
from analysis.encoded import Bootstrap
from analysis.pairs import KappaMeans, deciding_kappa
from analysis.results import ResultRows
from analysis.scale import Level
from analysis.thresholds import OBJECTIVES, held_out_gain, sweep
from rubrics.errors import InputError

__all__ = ["CeilingDifference", "TunedThreshold", "human_ceiling", "tune_threshold"]

Array = npt.NDArray[np.float64]
Categories = Sequence[Hashable]


@dataclass(frozen=True)
class CeilingDifference:
    """A grader's mean kappa with people less people's among themselves, with its 95% interval.

    `note` says why something is NaN, and which kappas the difference is of.
    """

    estimate: float
    low: float
    high: float
    n_units: int
    n_clusters: int
    note: str

    def shows_no_worse_than(self, margin: float) -> bool:
        """Whether the lower bound lies above -margin: non-inferiority to people."""
        return bool(self.low > -margin)


def human_ceiling(
    humans: Any,
    grader: Any,
    *,
    categories: Categories,
    level: Level = "nominal",
    clusters: Sequence[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> CeilingDifference:
    """`human_ceiling_difference` of a grader's labels (units,) and humans' (units, raters).

    Unweighted kappa on the nominal level, quadratic on the others, the plain mean over pairs of
    raters that share at least 30 of the grader's units; the interval resamples `clusters` (units,),
    or else units, jointly for everybody.

    >>> humans = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]] * 10
    >>> found = human_ceiling(humans, [row[0] for row in humans], categories="ab")
    >>> round(found.estimate, 3), found.shows_no_worse_than(0.1)
    (0.25, True)
    """
    people, own = encode_labels(humans, categories), encode_column(grader, categories)
    same_length(people, own)
    coded = coded_raters(people, own[:, None], categories, level)
    coded = replace(coded, clusters=cluster_codes(clusters, len(own)))
    resamples = (bootstrap or Bootstrap()).draw(np.ones(int(coded.clusters.max()) + 1))
    rows = ResultRows("")
    add_ceiling_rows(rows, KappaMeans(coded, resamples, [deciding_kappa(coded)]))
    row = rows.get(CEILING, "humans", coded.raters[-1])
    if row is None:
        raise InputError("there is no human to compare with; give labels (units, raters)")
    return CeilingDifference(
        row["estimate"], row["low"], row["high"], row["n_units"], row["n_clusters"], row["note"]
    )


@dataclass(frozen=True)
class TunedThreshold:
    """The threshold that matches a reference best, and what it is worth.

    `low` and `high` bound the threshold (95%, bootstrap); `value` is the objective on the units
    tuned on, `corrected` the same less the optimism of tuning, `at_default` at the threshold in
    use; `held_out_gain` is tuned less default on clusters not tuned on, `gain_low` its lower bound.
    """

    threshold: float
    low: float
    high: float
    value: float
    corrected: float
    at_default: float
    held_out_gain: float
    gain_low: float

    @property
    def wins_held_out(self) -> bool:
        """Whether it may replace the default: the gain's lower bound lies above 0."""
        return bool(self.gain_low > 0)


def tune_threshold(
    positive: Sequence[float],
    reference: Sequence[bool],
    *,
    objective: str = "kappa",
    default: float = 0.5,
    clusters: Sequence[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> TunedThreshold:
    """Sweep every threshold of probabilities (units,) against verdicts (units,), exactly.

    `objective` is "kappa" or "agreement"; `clusters` (units,) are resampled, or else units.

    >>> positive = [0.1, 0.2, 0.35, 0.6, 0.3, 0.4, 0.7, 0.9] * 5
    >>> found = tune_threshold(positive, [p > 0.25 for p in positive])
    >>> found.threshold, found.value, round(found.at_default, 3)
    (0.3, 1.0, 0.333)
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
    resamples = (bootstrap or Bootstrap()).draw(np.ones(int(of.max()) + 1))
    found = sweep(scores, verdicts.astype(np.int8), of, resamples, default)[objective]
    bounds = resamples.interval(found.threshold, int(of.max()) + 1)
    gain = held_out_gain(scores, verdicts, of, resamples, default).get(objective)
    won = None if gain is None else resamples.interval(gain, int(of.max()) + 1)
    usual = OBJECTIVES[objective](_two_by_two(verdicts, scores >= default))
    return TunedThreshold(
        threshold=bounds.estimate,
        low=bounds.low,
        high=bounds.high,
        value=float(found.tuned[0]),
        corrected=float(found.tuned[0]) - found.optimism,
        at_default=float(usual),
        held_out_gain=np.nan if won is None else won.estimate,
        gain_low=np.nan if won is None else won.low,
    )


def _two_by_two(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> Array:
    cells = [(a & b).sum() for a in (first, ~first) for b in (second, ~second)]
    return np.reshape(cells, (2, 2)).astype(float)
