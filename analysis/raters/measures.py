"""One person compared with the others who labelled the same units: measures of label quality.

On a unit the others are everyone else who labelled it, each with the same weight. All measures are
ratios of sums over units, so that one bootstrap of clusters gives their intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.numbers import AGREEMENT
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.counted import one_version
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.matrix import number_sides
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.types import Array, Codes, Integers, Labels, Mask

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class People:
    """First labels of all people on one rubric: arrays of (units, raters).

    `codes` are -1 where missing, `turn` is the place of a label in its rater's own sequence,
    `seconds` the time it took (NaN: not known). `clusters` (units,) index what is resampled, over
    all rubrics alike. `counted` (raters,) marks the raters who count among "the others".
    """

    scale: Scale
    raters: tuple[str, ...]
    codes: Labels
    turn: Array
    seconds: Array
    clusters: Codes
    counted: Mask

    @cached_property
    def labels(self) -> Array:
        """Return the labels of the counted raters, one-hot: (units, raters, categories)."""
        own = np.vstack([self.sides, np.zeros(self.sides.shape[1])])
        return np.asarray(own[self.codes] * self.counted[None, :, None])

    @cached_property
    def sides(self) -> Array:
        """What each category adds to a side of a table, (categories, width): see `Coded.sides`."""
        if self.scale.is_number:
            return number_sides(self.scale.values)
        return np.eye(len(self.scale.categories))

    @cached_property
    def totals(self) -> Array:
        """Labels of the counted raters, (units, categories)."""
        return np.asarray(self.labels.sum(axis=1))

    @cached_property
    def weights(self) -> Array:
        """Agreement weights (categories, categories) of the kappa that decides."""
        if self.scale.is_number:
            return AGREEMENT
        ordered = self.scale.level != "nominal"
        return c.agreement_weights(
            len(self.scale.categories), self.scale.ordered if ordered else "identity"
        )

    def beside(self, rater: str) -> Beside | None:
        """Compare the rater with the others; None where they share no unit."""
        if rater not in self.raters:
            return None
        at = self.raters.index(rater)
        others = self.totals - self.labels[:, at]
        shared = np.flatnonzero((self.codes[:, at] >= 0) & (others.sum(axis=1) > 0))
        if len(shared) == 0:
            return None
        shared = shared[np.argsort(self.turn[shared, at], kind="stable")]
        counts = others[shared]
        return Beside(
            self,
            self.codes[shared, at].astype(np.intp),
            counts / counts.sum(axis=1, keepdims=True),
            self.clusters[shared],
        )


@dataclass(frozen=True)
class Beside:
    """A rater's labels (n,), in their own sequence, and the others' shares (n, categories)."""

    people: People
    codes: Codes
    shares: Array
    clusters: Codes

    def kappa(self, resamples: Resamples) -> Array:
        """Kappa of the rater with the others, (rows,): weighted where the scale has an order.

        The table counts a unit once: its cells are the shares of the others' labels.
        """
        q = self.shares.shape[1]
        cells = self.people.sides[self.codes][:, :, None] * self.shares[:, None, :]
        tables = resamples.sums(self.clusters, cells.reshape(len(cells), -1)).reshape(-1, q, q)
        return c.cohen_kappa(tables, self.people.weights)

    def leanings(self, resamples: Resamples) -> Array:
        """Return how much more often the rater uses each category than the others do on the same
        units: differences between two shares, (rows, categories).
        """
        q = self.shares.shape[1]
        more = self.people.sides[self.codes] - self.shares
        sums = resamples.sums(self.clusters, more, np.ones(len(more)))
        return ratio(sums[:, :q], sums[:, q:])

    def drift(self) -> Array:
        """Features (n, 4) whose sums give the drift: agreement in the second half of the rater's
        sequence and its units, the same of the first half. See `drift_of`.

        Agreement is the rater's with the others minus the others' with each other, so that harder
        units in one half do not look like a change of the rater.
        """
        weights = self.people.weights
        own = (self.people.sides[self.codes] @ weights * self.shares).sum(axis=1)
        usual = ((self.shares @ weights) * self.shares).sum(axis=1)
        late = np.arange(len(self.codes)) >= len(self.codes) / 2
        gain = own - usual
        return np.column_stack([gain * late, late, gain * ~late, ~late])


def drift_of(sums: Array) -> Array:
    """Second half minus first half from sums (rows, 4) of `Beside.drift`: (rows,)."""
    return np.asarray(ratio(sums[:, 0], sums[:, 1]) - ratio(sums[:, 2], sums[:, 3]))


def longest_run(codes: Codes) -> int:
    """The longest stretch of one label.

    >>> longest_run(np.array([0, 1, 1, 1, 0]))
    3
    """
    return int(_longest_runs(codes[None, :])[0])


def usual_longest_run(beside: Beside, rng: np.random.Generator, sequences: int = 200) -> float:
    """The 99% quantile of the longest run if each label were one of the others' on that unit."""
    limits = beside.shares.cumsum(axis=1)[:, :-1]
    drawn = rng.random((sequences, len(limits), 1))
    return float(np.quantile(_longest_runs((drawn > limits).sum(axis=2)), 0.99))


def _longest_runs(sequences: Codes) -> Integers:
    """The longest run of every row of (sequences, n)."""
    running = np.ones(len(sequences), dtype=np.int64)
    longest = running.copy()
    for at in range(1, sequences.shape[1]):
        running = np.where(sequences[:, at] == sequences[:, at - 1], running + 1, 1)
        np.maximum(longest, running, out=longest)
    return longest


def people_on(
    ratings: pd.DataFrame,
    scales: Mapping[str, Scale],
    units: pd.DataFrame | None,
    cluster: str,
    rubric_hashes: Mapping[str, Collection[str]] | None,
    excluded: Collection[str],
) -> Iterator[People]:
    """The people of every rubric that has labels. `ratings` is a validated table."""
    human = ratings[ratings["rater_kind"] == "human"]
    rated = human["unit_id"].drop_duplicates().tolist()
    cluster_of = dict(zip(rated, UnitFacts(rated, units).clusters(cluster).codes, strict=True))
    for name, scale in scales.items():
        accepted = None if rubric_hashes is None else rubric_hashes.get(name)
        own, _ = one_version(human[human["rubric"] == name], name, accepted)
        if own.empty:
            continue
        readings = combine_readings(own, scale)
        matrix = encode(readings, scale)
        first = own.sort_values(["draw", "created_at"], kind="stable")
        first = first.drop_duplicates(["unit_id", "rater_id"])
        turn = first.sort_values("created_at", kind="stable").groupby("rater_id").cumcount()
        at_unit = {unit: at for at, unit in enumerate(readings.units)}
        at_rater = {rater: at for at, rater in enumerate(matrix.raters)}
        at = (first["unit_id"].map(at_unit), first["rater_id"].map(at_rater))
        turns, seconds = (np.full(matrix.codes.shape, np.nan) for _ in range(2))
        turns[at] = turn.reindex(first.index)
        seconds[at] = first["seconds"]
        yield People(
            scale=scale,
            raters=matrix.raters,
            codes=matrix.codes,
            turn=turns,
            seconds=seconds,
            clusters=np.array([cluster_of[unit] for unit in readings.units], dtype=np.intp),
            counted=np.array([rater not in excluded for rater in matrix.raters]),
        )
