"""Views: labels read in one way (on their categories, or as a binary label) with resamples of their
clusters. Each statistic is computed on a view, which also adds its rows to the results.

`Writer` adds rows of one subset. It is extended by `View` (one view of the labels), `RubricView`
(all labels of a rubric, and the request) and `RatedView` (the single ratings).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypedDict, TypeVar

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval, Reach, share_interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.bootstrap.significance import Parts
from evenhand.analysis.labels.encoding import Readings
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, UnitFacts
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.statistics import Note, Reason, Remark, entry_for
from evenhand.analysis.types import Array, Codes, DataFrame, Mask, Numbers

Counts = tuple[int, int]
"""Numbers of units and clusters of a row; `SampleSize` has names for them."""
Figure = Array | float | Interval
"""Value of a row: replicates (rows,), one number without an interval, or an interval."""
Draw = Resamples | Callable[[], Resamples]
"""Resamples, or the function that draws them when they are first needed."""
T = TypeVar("T")


class SampleSize(NamedTuple):
    """Numbers of units and clusters in the data."""

    units: int
    clusters: int


class About(TypedDict, total=False):
    """Optional arguments of `Writer.add`: the raters of a row (`a` and `b`), what it is for (`at`),
    such as a subject or class, its note, the start and span of the scale that it is mapped `onto`,
    and the `Reach` of a share.
    """

    a: str
    b: str
    at: str
    note: Note
    onto: tuple[float, float]
    reach: Reach | None


@dataclass(frozen=True)
class Writer:
    """Writer of rows of one subset, with intervals from resamples of `clusters` (units,)."""

    rows: ResultRows
    draw: Draw
    clusters: Codes
    subset: str = "all"

    @cached_property
    def resamples(self) -> Resamples:
        """Resamples of the clusters, drawn on first use."""
        return self.draw if isinstance(self.draw, Resamples) else self.draw()

    def on(self, subset: str, clusters: Codes | None = None) -> Writer:
        """Return a writer of another subset, with its `clusters` (units,) if they are others."""
        clusters = self.clusters if clusters is None else clusters
        return Writer(self.rows, lambda: self.resamples, clusters, subset)  # drawn on first use

    @property
    def as_sampled(self) -> Note:
        """Remark on unweighted values of a weighted sample; "" for an unweighted sample."""
        return "" if self.resamples.weight is None else Remark("as_sampled")

    def sums(self, *features: Numbers) -> Array:
        """Return the sums of features (units,) or (units, k) in every resample, (rows, columns)."""
        return self.resamples.sums(self.clusters, *features)

    def sums_by_cluster(self, features: Numbers) -> Array:
        """Return the weighted sums of features (units, k) over each cluster, (clusters, k)."""
        return self.resamples.sums_by_cluster(self.clusters, features)

    def share(self, part: Numbers, whole: Mask) -> Array:
        """Return the mean of `part` (units,) over the units of the mask `whole`, (rows,)."""
        return ratio(*self.sums(np.where(whole, part, 0), whole).T)

    def parts(
        self, outcome: Array, mass: Array, part: Codes, stratum: Codes | None = None
    ) -> Parts:
        """Return the `Parts` that `max_t` tests, from arrays by unit (see there), with weights."""
        rows, cluster, times = self.resamples.units(self.clusters)
        if self.resamples.weight is not None:
            mass = mass * self.resamples.weight[self.clusters][:, None]
        strata = None if stratum is None else stratum[rows]
        return Parts(outcome[rows], mass[rows], part[rows], cluster, times, strata)

    def count(self, units: Mask) -> SampleSize:
        """Return the numbers of units and clusters in a mask (units,)."""
        return SampleSize(*self.resamples.count(self.clusters, units))

    def add(
        self,
        statistic: str,
        figure: Figure,
        units: Mask | Counts,
        *,
        a: str = "",
        b: str = "",
        at: str = "",
        note: Note = "",
        onto: tuple[float, float] = (0.0, 1.0),
        reach: Reach | None = None,
        reason: Reason | None = None,
        undefined: float | None = None,
    ) -> Interval:
        """Add a row, and return its interval as stored.

        `units` is a mask (units,), or the numbers of units and clusters if rows share them; `a` and
        `b` are the raters. `reason` explains a NaN; `onto` is that of `ResultRows.add`, `reach`
        that of `share_interval`, `undefined` that of `Resamples.interval`.
        """
        counts = units if isinstance(units, tuple) else self.count(units)
        if isinstance(figure, np.ndarray):
            interval = self.resamples.interval(
                figure, counts[1], reason=reason or "no_variation", min_undefined_share=undefined
            )
            if entry_for(statistic).kind == "share":
                interval = share_interval(interval, figure[1:], *counts, reach)
        elif isinstance(figure, Interval):
            interval = figure
        elif reason is not None and np.isnan(figure):
            interval = Interval.undefined(reason)
        else:
            interval = Interval.point(figure)
        key = {"rater_a": a, "rater_b": b, "subset": self.subset, "at": at}
        return self.rows.add(statistic, interval, counts, onto, **key, note=note)


@dataclass(frozen=True)
class View(Writer):
    """One view of the labels (`coded`), and its resamples. `cache` has values that several
    statistics use, by the function that computes them.
    """

    coded: Coded = field(kw_only=True)
    cache: dict[Any, Any] = field(default_factory=dict, kw_only=True, repr=False)

    @classmethod
    def of(cls, rows: ResultRows, coded: Coded, resamples: Resamples) -> View:
        """Return a view of labels with these resamples of their clusters."""
        return View(rows, resamples, coded.clusters, coded.subset, coded=coded)

    def over(self, units: Mask) -> View:
        """Return the view for a figure on `units` (units,): this one, but see `RubricView`."""
        return self

    def once(self, compute: Callable[[Coded, Resamples], T]) -> T:
        """Return `compute` of the labels and the resamples, cached for all statistics."""
        if compute not in self.cache:
            self.cache[compute] = compute(self.coded, self.resamples)
        value: T = self.cache[compute]
        return value


@dataclass(frozen=True, kw_only=True)
class RubricView(View):
    """One view of the labels of a rubric, and the request of the analysis. `labels` are all labels;
    `coded` may have only those in agreement (`LabelMatrix.in_agreement`).
    """

    labels: LabelMatrix
    request: Request

    def over(self, units: Mask) -> RubricView:
        """Return the view for a figure on `units` (units,). If these are of both parts of a
        weighted sample (`labels.matrix`), clusters that are in both count in both.
        """
        labels, weight = self.labels, self.labels.weight
        if weight is None or not labels.times_in_rest.any():
            return self
        is_sampled = np.isin(labels.clusters, labels.clusters[labels.sampled])
        if not (units & ~is_sampled).any():
            return self
        resamples = copy(self.resamples)
        resamples.weight = weight.copy()
        resamples.weight[labels.clusters] *= 1.0 + labels.times_in_rest
        return replace(self, draw=resamples, cache={})

    @classmethod
    def of_labels(
        cls, rows: ResultRows, labels: LabelMatrix, draw: Draw, request: Request
    ) -> list[RubricView]:
        """Return the views of labels: on categories, and on the binary label if there is one."""
        sample = rows, draw, labels.clusters
        return [
            cls(*sample, coded.subset, coded=coded, labels=labels, request=request)
            for coded in labels.views
        ]

    def seen_as(self, coded: Coded, labels: LabelMatrix | None = None) -> RubricView:
        """Return the view `coded` of these labels, or of other `labels` in the same clusters."""
        labels = self.labels if labels is None else labels
        view = replace(self, coded=coded, clusters=coded.clusters, subset=coded.subset, cache={})
        return replace(view, labels=labels, draw=lambda: self.resamples)  # drawn on first use


@dataclass(frozen=True, kw_only=True)
class RatedView(RubricView):
    """A view of the categories with the single ratings, in which equal clusters are not merged.

    `all_ratings` are the ratings of the rubric, `ratings` those of raters who are not excluded,
    `readings` the labels that result from combining them. `variants` are the rubric's other
    wordings with their ratings.
    """

    ratings: DataFrame
    all_ratings: DataFrame
    readings: Readings
    variants: Sequence[tuple[Scale, DataFrame]] = ()

    @classmethod
    def on_units(
        cls, rows: ResultRows, labels: LabelMatrix, request: Request, **rated: Any
    ) -> RatedView:
        """Return the view of labels; `rated` are the fields that `RatedView` adds."""
        frequency, coded = np.ones(labels.n_clusters, dtype=np.int64), labels.on_categories()
        draw = partial(request.resampled, frequency, labels.weight)
        return cls(
            rows, draw, labels.clusters, coded=coded, labels=labels, request=request, **rated
        )

    @cached_property
    def facts(self) -> UnitFacts:
        """Facts about the units, in the order of the labels' rows."""
        return UnitFacts(self.readings.units, self.request.units)
