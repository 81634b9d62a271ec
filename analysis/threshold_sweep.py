"""The exact sweep over thresholds: which one is best, and which others cannot be told from it.

Verdicts change only at probabilities that occur, so every distinct one is tried, besides the
threshold in use and 1. Among equally good thresholds the one nearest to that in use is taken. A
tuned threshold looks better on the units it was tuned on than it is; the bootstrap measures by how
much (Efron & Tibshirani 1993, ch. 17).

The best threshold jumps from one probability to another, so the bootstrap of it promises nothing
(Abrevaya & Huang 2005). Its interval is a comparison turned round instead: it spans all thresholds
whose objective is not significantly below the best one's, in the same resamples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.resampling import Interval, Resamples

__all__ = ["OBJECTIVES", "Candidates", "Curve", "Sweep", "best_of", "sweep", "threshold_interval"]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Weights = npt.NDArray[np.integer[Any]]

CURVE_POINTS = 41
"""Thresholds at which the whole course of an objective is kept, spread over those that occur."""
CRITICAL = 1.96
"""How many standard errors below the best a threshold may lie. The best is picked, so a threshold's
distance from it is not normal: near the optimum the objective is a Brownian motion less a parabola
(Kim & Pollard 1990). By simulation of that limit the interval, from the lowest to the highest
threshold kept, holds the true optimum in 98.8% of samples at 1.96 and in 95% at 1.56; at moderate n
it holds it less often than in the limit, hence not less (docs/calibration.md)."""

_CACHED_CELLS = 100_000
"""Tables made at a time: they stay in the processor's cache."""
_NO_VARIATION = 1e-12
_ROUNDING = 1e-12


def _kappa(tables: Array) -> Array:
    hits, missed, false, right = _cells(tables)
    expected = (hits + missed) * (missed + right) + (hits + false) * (false + right)
    room = _NO_VARIATION * (hits + missed + false + right) ** 2
    return _ratio(2.0 * (hits * right - missed * false), expected, room)


def _agreement(tables: Array) -> Array:
    hits, missed, false, right = _cells(tables)
    return _ratio(hits + right, hits + missed + false + right)


def _f1(tables: Array) -> Array:
    hits, missed, false, _ = _cells(tables)
    return _ratio(2.0 * hits, 2.0 * hits + missed + false)


def _youden(tables: Array) -> Array:
    hits, missed, false, right = _cells(tables)
    return _ratio(hits, hits + missed) - _ratio(false, false + right)


def _prevalence_match(tables: Array) -> Array:
    hits, missed, false, right = _cells(tables)
    return 1.0 - _ratio(np.abs(false - missed), hits + missed + false + right)


OBJECTIVES: dict[str, Callable[[Array], Array]] = {
    "kappa": _kappa,
    "agreement": _agreement,
    "f1": _f1,
    "youden": _youden,
    "prevalence": _prevalence_match,
}
"""What a threshold is tuned to, as functions of tables (..., 2, 2), reference by grader and
affirmative first: Cohen's kappa; observed agreement; F1 of the affirmative verdict; sensitivity +
specificity - 1 (Youden 1950); 1 less the distance between the two shares of affirmative verdicts.
In closed form, as millions of tables go through them; NaN where undefined."""


@dataclass(frozen=True)
class Curve:
    """An objective's course: thresholds (points,) ascending, values (rows, points), row 0 the data.

    `complete` says that no threshold that occurs lies between two points.
    """

    thresholds: Array
    values: Array
    complete: bool


@dataclass(frozen=True)
class Sweep:
    """What tuning did in every resample: the threshold (rows,), its value there, and its value on
    the data as they are; and the objective's course. Row 0 is the data."""

    threshold: Array
    tuned: Array
    transferred: Array
    curve: Curve

    @property
    def optimism(self) -> float:
        """How much better a tuned threshold looks where it was tuned, on average."""
        return float(np.nanmean((self.tuned - self.transferred)[1:]))


@dataclass(frozen=True)
class Candidates:
    """The thresholds worth trying on some probabilities, nearest to the default first.

    For the units that the reference affirms, and for the others: the `clusters` that they are in,
    sorted by probability, and how many of them lie `below` each threshold.
    """

    thresholds: Array
    clusters: tuple[Codes, Codes]
    below: tuple[Codes, Codes]

    @classmethod
    def of(
        cls,
        positive: Array,
        affirmed: npt.NDArray[np.bool_],
        clusters: Codes,
        default: float,
    ) -> Candidates:
        """Every distinct probability of some units (units,), the default, and 1."""
        thresholds = np.unique(np.concatenate([positive, [default, 1.0]]))
        thresholds = thresholds[np.argsort(np.abs(thresholds - default), kind="stable")]
        order = np.argsort(positive)
        first, second = order[affirmed[order]], order[~affirmed[order]]
        return cls(
            thresholds,
            (clusters[first], clusters[second]),
            (
                np.searchsorted(positive[first], thresholds, side="left"),
                np.searchsorted(positive[second], thresholds, side="left"),
            ),
        )

    def tables(self, weights: Weights) -> Array:
        """Tables (thresholds, rows, 2, 2), reference by grader, affirmative first.

        `weights` (rows, clusters) say how often each cluster counts.
        """
        # Rows last and cells first in memory: all that is computed runs along whole stretches.
        by_cluster = np.ascontiguousarray(weights.T, dtype=np.int32)
        cells = np.empty((2, 2, len(self.thresholds), len(weights)))
        for cell, clusters, below in zip(cells, self.clusters, self.below, strict=True):
            running = _running_sum(by_cluster[clusters])
            cell[1] = running[below]
            np.subtract(running[-1], cell[1], out=cell[0])
        return np.moveaxis(cells, (0, 1), (-2, -1))

    def spread(self, besides: Codes) -> Codes:
        """At most `CURVE_POINTS` of the thresholds spread evenly over all of them, the default and
        those `besides`: positions, ascending by threshold."""
        ascending = np.argsort(self.thresholds)
        points = min(CURVE_POINTS, len(ascending))
        even = ascending[np.linspace(0, len(ascending) - 1, points).round().astype(np.intp)]
        chosen = np.unique(np.concatenate([even, besides, [0]]))
        return chosen[np.argsort(self.thresholds[chosen])]


def best_of(values: Array) -> Codes:
    """The first of the best (rows,) of values (thresholds, rows); equal but for rounding is equal.

    As thresholds stand nearest to the default first, that is the one that changes least.
    """
    best = np.fmax.reduce(values, axis=0)
    return np.asarray((values >= best - _ROUNDING).argmax(axis=0))


def sweep(
    positive: Array,
    reference: npt.NDArray[np.int8],
    clusters: Codes,
    resamples: Resamples,
    default: float,
) -> dict[str, Sweep]:
    """Tune the threshold of probabilities (units,) to a reference (units,) of 0 and 1.

    One sweep for each objective. Resamples that leave the objective undefined have NaN.
    """
    candidates = Candidates.of(positive, reference == 1, clusters, default)
    first = candidates.tables(resamples.frequency[None, :])
    on_data = {objective: function(first)[:, 0] for objective, function in OBJECTIVES.items()}
    best_on_data = [best_of(values[:, None])[0] for values in on_data.values()]
    points = candidates.spread(np.array(best_on_data, dtype=np.intp))
    chunks: dict[str, list[tuple[Codes, Array, Array]]] = {name: [] for name in OBJECTIVES}
    step = max(1, _CACHED_CELLS // len(candidates.thresholds))
    for block in resamples.blocks():
        for start in range(0, len(block), step):
            tables = candidates.tables(block[start : start + step])
            for objective, function in OBJECTIVES.items():
                values = function(tables)
                best = best_of(values)
                reached = values[best, np.arange(len(best))]
                chunks[objective].append((best, reached, values[points].T))
    return {
        objective: _gathered(parts, candidates.thresholds, points, on_data[objective])
        for objective, parts in chunks.items()
    }


def _gathered(
    parts: list[tuple[Codes, Array, Array]], candidates: Array, points: Codes, on_data: Array
) -> Sweep:
    best, tuned, course = (np.concatenate(each) for each in zip(*parts, strict=True))
    complete = len(points) == len(candidates)
    return Sweep(
        np.where(np.isnan(tuned), np.nan, candidates[best]),
        tuned,
        on_data[best],
        Curve(candidates[points], course, complete),
    )


def threshold_interval(found: Sweep, resamples: Resamples, n_clusters: int) -> Interval:
    """The tuned threshold with the 95% interval that turning the comparison round gives.

    From the lowest to the highest threshold that lies no more than `CRITICAL` standard errors of
    the paired difference below the best. Between two points of the curve nothing was compared, so
    the interval reaches to the next point that is ruled out; below the lowest probability
    verdicts change no more, so it reaches to 0 there.
    """
    plain = resamples.interval(found.threshold, n_clusters)
    if np.isnan(plain.low):
        return plain
    at, values = found.curve.thresholds, found.curve.values
    # A resample without both verdicts tells no threshold from another.
    behind = np.nan_to_num(values[:, [int(np.flatnonzero(at == plain.estimate)[0])]] - values)
    kept = np.flatnonzero(behind[0] <= CRITICAL * behind[1:].std(axis=0) + _NO_VARIATION)
    low = float(at[kept[0] - 1]) if kept[0] else 0.0
    after = int(kept[-1]) + (0 if found.curve.complete else 1)
    high = float(at[after]) if after < len(at) else 1.0
    return replace(plain, low=low, high=high)


def _cells(tables: Array) -> tuple[Array, Array, Array, Array]:
    """Both affirmative, only the reference, only the grader, neither."""
    return tables[..., 0, 0], tables[..., 0, 1], tables[..., 1, 0], tables[..., 1, 1]


def _ratio(above: Array, below: Array, room: float | Array = 0.0) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > room, above / below, np.nan)


def _running_sum(values: Weights) -> Weights:
    """Sums of the first 0, 1, 2, ... rows."""
    out = np.zeros((values.shape[0] + 1, values.shape[1]), dtype=values.dtype)
    np.cumsum(values, axis=0, dtype=values.dtype, out=out[1:])
    return out
