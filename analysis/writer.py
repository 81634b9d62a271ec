"""Writer of rows about one view of the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval, kind_of, share_interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.bootstrap.significance import Parts
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Note, Reason, Remark
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes, Mask, Numbers

Counts = tuple[int, int]
"""(units, clusters) that a row is about."""


class About(TypedDict, total=False):
    """Raters of a row (`a` and `b`), its `at`, and its note."""

    a: str
    b: str
    at: str
    note: Note


@dataclass(frozen=True)
class Writer:
    """Writes rows of one subset, with intervals from one set of resamples of `clusters` (units,).

    Methods that take `units` accept a mask (units,), or the numbers of units and clusters, where
    many rows share them.
    """

    rows: ResultRows
    resamples: Resamples
    clusters: Codes
    subset: str = "all"

    @classmethod
    def of(cls, rows: ResultRows, coded: Coded, resamples: Resamples) -> Writer:
        """Return a writer for one view of the labels."""
        return cls(rows, resamples, coded.clusters, coded.subset)

    def on(self, subset: str) -> Writer:
        """Return the same writer for another subset."""
        return replace(self, subset=subset)

    @property
    def as_sampled(self) -> Note:
        """Note for unweighted figures of a weighted sample; else ""."""
        return "" if self.resamples.weight is None else Remark("as_sampled")

    def sums(self, *features: Numbers) -> Array:
        """Sum features (units,) or (units, k) in every resample: (rows, columns)."""
        return self.resamples.sums(self.clusters, *features)

    def each_cluster(self, features: Numbers) -> Array:
        """Sum features (units, k) over each cluster of the data, weighted: (clusters, k)."""
        sums = self.resamples.cluster_sums(self.clusters, features)
        if self.resamples.weight is not None:
            sums = sums * self.resamples.weight[:, None]
        return self.resamples.each_cluster(sums)

    def share(self, part: Numbers, whole: Mask) -> Array:
        """Return the sum of `part` over the units of `whole`, per such unit, (rows,)."""
        return ratio(*self.sums(np.where(whole, part, 0), whole).T)

    def parts(
        self, outcome: Array, mass: Array, part: Codes, stratum: Codes | None = None
    ) -> Parts:
        """Return outcomes of units by part, for `max_t`, with the clusters' sampling weights."""
        rows, cluster, times = self.resamples.units(self.clusters)
        if self.resamples.weight is not None:
            mass = mass * self.resamples.weight[self.clusters][:, None]
        strata = None if stratum is None else stratum[rows]
        return Parts(outcome[rows], mass[rows], part[rows], cluster, times, strata)

    def count(self, units: Mask) -> Counts:
        """Count (units, clusters) in the data among some units (units,)."""
        return self.resamples.count(self.clusters, units)

    def add(
        self,
        statistic: str,
        values: Array,
        units: Mask | Counts,
        *,
        reason: Reason = "no_variation",
        undefined: float | None = None,
        **about: Unpack[About],
    ) -> Interval:
        """Add a row from replicates (rows,), and return its interval (see `Resamples.interval`)."""
        counts = self._counts(units)
        found = self.resamples.interval(values, counts[1], reason=reason, undefined=undefined)
        if kind_of(statistic) == "share":
            found = share_interval(found, self.resamples.plain(values)[1:], *counts)
        return self.add_interval(statistic, found, counts, **about)

    def add_value(
        self,
        statistic: str,
        value: float,
        units: Mask | Counts,
        *,
        reason: Reason | None = None,
        **about: Unpack[About],
    ) -> None:
        """Add a row of one number without an interval; `reason` explains a NaN."""
        found = Interval.point(value)
        if reason is not None and np.isnan(value):
            found = Interval.undefined(reason)
        self.add_interval(statistic, found, units, **about)

    def add_interval(
        self,
        statistic: str,
        found: Interval,
        units: Mask | Counts,
        *,
        a: str = "",
        b: str = "",
        at: str = "",
        note: Note = "",
    ) -> Interval:
        """Add a row of a given interval, and return the interval as stored."""
        counts, key = self._counts(units), {"rater_a": a, "rater_b": b, "subset": self.subset}
        return self.rows.add(statistic, found, counts, **key, at=at, note=note)

    def _counts(self, units: Mask | Counts) -> Counts:
        return units if isinstance(units, tuple) else self.count(units)
