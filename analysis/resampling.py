"""The cluster bootstrap: one set of weights that every statistic of a rubric shares.

A resample draws as many clusters as there are, with replacement; all it needs to know is how often
each cluster came up. Every statistic is a function of sums over clusters, so that resampling is one
product *weights x per-cluster sums*, and differences between statistics are paired by construction.

Row 0 of everything is the data as they are: estimate and resamples go through the same code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Interval", "Resamples", "interval"]

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.floating[Any] | np.integer[Any] | np.bool_]
Counts = npt.NDArray[np.unsignedinteger[Any] | np.int64]

LEVEL = 0.95
MIN_CLUSTERS = 5
"""Fewer clusters than this give no interval: resamples of so few say nothing about spread."""
WARN_DEGENERATE, MAX_DEGENERATE = 0.01, 0.10

_BLOCK = 250
"""Resamples drawn together: bounds memory and fixes which random stream a resample comes from."""
_KEEP_BYTES = 400_000_000
_CHUNK_CELLS = 16_000_000
_EXACT_FLOAT32 = 2**24


class Resamples:
    """Weights (1 + resamples, clusters); row 0 holds each cluster's own frequency.

    `frequency` (clusters,) says how often each cluster stands in the data: 1, or more where
    identical ones have been folded into one. `rng` is used for seeds only, so that a block can be
    drawn again instead of kept where it would be large.

    >>> Resamples(np.ones(3), 2, np.random.default_rng(7)).totals(np.ones((3, 1))).tolist()
    [[3.0], [3.0], [3.0]]
    """

    def __init__(self, frequency: npt.ArrayLike, resamples: int, rng: np.random.Generator) -> None:
        self.frequency: npt.NDArray[np.int64] = np.asarray(frequency, dtype=np.int64)
        self.resamples = resamples
        starts = range(0, resamples, _BLOCK)
        self._sizes = [min(_BLOCK, resamples - start) for start in starts]
        self._seeds = np.random.SeedSequence(int(rng.integers(2**63))).spawn(len(self._sizes))
        self._kept: list[Counts] | None = None
        if resamples * self.n_types <= _KEEP_BYTES:
            self._kept = [self._draw(block) for block in range(len(self._sizes))]

    def __len__(self) -> int:
        """Rows of everything that is computed: the data and the resamples."""
        return 1 + self.resamples

    @property
    def n_types(self) -> int:
        """Distinct clusters, the second axis of the weights."""
        return len(self.frequency)

    def blocks(self) -> Iterator[Counts]:
        """The weights in consecutive blocks of rows, integers (rows, clusters)."""
        yield self.frequency[None, :]
        for block in range(len(self._sizes)):
            yield self._kept[block] if self._kept is not None else self._draw(block)

    def totals(self, features: Numbers) -> Array:
        """Sums over clusters of features (clusters, ...) in every resample: (rows, ...)."""
        shape = features.shape[1:]
        flat = features.reshape(self.n_types, -1)
        dtype = np.float32 if self._is_exact(flat) else np.float64
        sums: npt.NDArray[np.floating[Any]] = np.ascontiguousarray(flat, dtype=dtype)
        out = np.empty((len(self), sums.shape[1]))
        row = 0
        for weights in self.blocks():
            step = max(1, _CHUNK_CELLS // max(1, self.n_types))
            for start in range(0, len(weights), step):
                part: npt.NDArray[np.floating[Any]] = weights[start : start + step].astype(dtype)
                out[row : row + len(part)] = part @ sums
                row += len(part)
        return out.reshape(len(self), *shape)

    def unit_weights(
        self, clusters: npt.NDArray[np.intp], cells: int = _CHUNK_CELLS
    ) -> Iterator[tuple[int, Counts]]:
        """(first row, weights (rows, units)) in chunks, for statistics that are no sums."""
        row = 0
        step = max(1, cells // max(1, len(clusters)))
        for weights in self.blocks():
            for start in range(0, len(weights), step):
                part = weights[start : start + step, clusters]
                yield row, part
                row += len(part)

    def cluster_sums(self, clusters: npt.NDArray[np.intp], units: Numbers) -> Array:
        """Features of units (units, k) summed over their clusters: (clusters, k)."""
        from scipy.sparse import csr_array

        n = len(clusters)
        membership = csr_array((np.ones(n), (clusters, np.arange(n))), shape=(self.n_types, n))
        sums: Array = membership @ np.asarray(units, dtype=float)
        return sums

    def count(
        self, clusters: npt.NDArray[np.intp], chosen: npt.NDArray[np.bool_]
    ) -> tuple[int, int]:
        """(units, clusters) in the data among the chosen units."""
        inside = clusters[chosen]
        return int(self.frequency[inside].sum()), int(self.frequency[np.unique(inside)].sum())

    def _is_exact(self, flat: Numbers) -> bool:
        """Whether float32 sums whole numbers without rounding (twice as fast as float64)."""
        if flat.size == 0 or not np.array_equal(flat, np.rint(flat)):
            return False
        largest = float(np.abs(flat).max()) * float(self.frequency.sum())
        return largest < _EXACT_FLOAT32

    def _draw(self, block: int) -> Counts:
        rng = np.random.default_rng(self._seeds[block])
        size, total = self._sizes[block], int(self.frequency.sum())
        if total > self.n_types:
            folded = rng.multinomial(total, self.frequency / total, size=size)
            return folded.astype(np.min_scalar_type(total))
        drawn = rng.integers(0, self.n_types, size=(size, self.n_types), dtype=np.int64)
        drawn += np.arange(size)[:, None] * self.n_types
        counts = np.bincount(drawn.ravel(), minlength=size * self.n_types)
        return counts.reshape(size, self.n_types).astype(
            np.min_scalar_type(int(counts.max(initial=0)))
        )


@dataclass(frozen=True)
class Interval:
    """An estimate with its percentile interval; NaN where undefined, with the reasons in `note`."""

    estimate: float
    low: float
    high: float
    note: str = ""


def interval(
    values: Array,
    n_clusters: int,
    *,
    undefined: float | None = None,
    reason: str = "no_variation",
) -> Interval:
    """Read estimate and 95% interval off replicates (rows,), row 0 the data.

    `undefined` is the share of resampled values that were undefined, where `values` cannot show it
    (means over pairs of raters); `reason` says why the estimate is undefined, if it is.
    """
    estimate = float(values[0])
    if np.isnan(estimate):
        return Interval(np.nan, np.nan, np.nan, reason)
    if n_clusters < MIN_CLUSTERS:
        return Interval(estimate, np.nan, np.nan, "too_few_clusters")
    drawn = values[1:]
    if len(drawn) == 0:
        return Interval(estimate, np.nan, np.nan, "not_resampled")
    defined = drawn[~np.isnan(drawn)]
    lost = max(1.0 - len(defined) / len(drawn), undefined or 0.0)
    note = _degenerate_note(lost, len(drawn))
    if lost > MAX_DEGENERATE:
        return Interval(estimate, np.nan, np.nan, note)
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return Interval(estimate, float(low), float(high), note)


def _degenerate_note(lost: float, resamples: int) -> str:
    if lost == 0.0:
        return ""
    count = f"degenerate_resamples {lost * resamples:.4g} of {resamples}"
    if lost > MAX_DEGENERATE:
        return f"{count}: no interval"
    return f"{count}: warning" if lost > WARN_DEGENERATE else count
