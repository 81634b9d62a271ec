"""Shift of a grader's calls with some property, beyond what humans' score of the units explains.

The sample is divided by the property that should not matter: own family or not, a part of the
sample or the rest, fifths of the length. In each part the share of the grader's affirmative calls
is compared with the one expected of a grader without bias (see `analysis.bias.expected`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bias.beside_people import MIN_TWICE, NOT_SCALED
from evenhand.analysis.bias.calls import Calls
from evenhand.analysis.bias.expected import Labelled, Noise, People, beyond_expected
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.notes import Code, Note
from evenhand.analysis.types import Array, Mask, Numbers

PARTS = 5
"""Number of equal parts into which a property with many values, such as a length, is divided."""


@dataclass(frozen=True)
class Shift:
    """Shift of calls: replicates `values` (rows,), the data first; `counts` (units, clusters);
    `reason` explains an undefined estimate. `if_noisy` (rows,) is the shift if raters' noise
    changes with the property; None where that is not asked.
    """

    values: Array
    counts: tuple[int, int]
    note: Note = ""
    reason: Code = "no_variation"
    if_noisy: Array | None = None


def shift_with(
    calls: Calls, grader: int, x: Array, resamples: Resamples, *, noisy: bool = False
) -> Shift | None:
    """Estimate the shift of one grader; for several on the same property see `Shifts`."""
    return Shifts(calls, x, resamples, noisy=noisy).of(grader)


class Shifts:
    """Rise of graders' calls with x (units,), NaN where not known, beyond what is expected.

    It is the least squares slope of calls minus expected ones, which for x of 0 and 1 is a
    difference. Within a part expected calls rise in a straight line with those of humans.

    A call of more than two values is split into steps, *at least 0* and *at least 1*.

    `noisy` allows for noise of all raters that changes with x: annotators' spread may, and the
    shift is estimated a second time with strictness in units of that noise.
    """

    def __init__(
        self, calls: Calls, x: Array, resamples: Resamples, *, noisy: bool = False
    ) -> None:
        self._calls, self._x, self._resamples, self._noisy = calls, x, resamples, noisy
        self._steps = np.unique(calls.values[~np.isnan(calls.values)])[1:]
        self._people: dict[bytes, _People] = {}

    def of(self, grader: int) -> Shift | None:
        """Estimate the shift of one grader; None without a unit that it and a human called."""
        calls = self._calls
        own = calls.values[:, grader]
        known = ~np.isnan(own) & ~np.isnan(calls.people).all(axis=1) & ~np.isnan(self._x)
        if not known.any():
            return None
        # Graders mostly called the same units: what people said there is summed once.
        key = known.tobytes()
        if key not in self._people:
            self._people[key] = _People(
                calls, known, self._x, self._steps, self._resamples, noisy=self._noisy
            )
        people = self._people[key]
        readings = [False, True] if self._noisy and people.twice else [False]
        totals = np.zeros((len(readings), len(self._resamples)))
        reason: Code = "no_variation"
        for step, at_step in zip(self._steps, people.steps, strict=True):
            for total, noisy in zip(totals, readings, strict=True):
                rise, told = people.beyond(own[known] >= step, at_step, noisy=noisy)
                if people.parts > 1 and np.isnan(at_step.law.variance[0]).any():
                    reason = "people_agree_by_chance"
                elif not told:
                    reason = "no_sharpness_fits"
                total += rise
        note = "" if people.twice else NOT_SCALED
        counts = self._resamples.count(calls.clusters, known)
        return Shift(totals[0], counts, note, reason, totals[1] if len(totals) > 1 else None)


class _Step(NamedTuple):
    """Humans' calls at or above one step: their `mean` on each unit (units,), the `sums` that
    `Labelled` needs of them, their sum with the unit's place (`placed`), the distribution of tau
    (`law`), and the `noise` of all raters along the place, if that may change.
    """

    mean: Array
    sums: dict[str, Array]
    placed: Array
    law: People
    noise: Noise | None


class _People:
    """Calls of annotators on units that a grader called, part by part; sums are (rows, parts)."""

    def __init__(
        self,
        calls: Calls,
        known: Mask,
        x: Array,
        steps: Array,
        resamples: Resamples,
        *,
        noisy: bool,
    ) -> None:
        people = calls.people[known]
        self._place, self._inside = x[known], parts_of(x[known])
        self._clusters, self._resamples = calls.clusters[known], resamples
        enough = (~np.isnan(people)).sum(axis=1)[:, None] >= [2, 3]
        self.parts = self._inside.shape[1]
        self.twice = bool(enough[:, 0].sum() >= MIN_TWICE)
        third = bool((enough[:, 1, None] & self._inside).sum(axis=0).min() >= MIN_TWICE)
        place = self._place
        self.n, sx, sxx = self._sums(np.ones(len(place)), place, place**2)
        self._mean = ratio(sx, self.n)
        whole = ratio(sx.sum(axis=1), self.n.sum(axis=1))
        self.aside = self._mean - whole[:, None]
        self._within = sxx - sx * self._mean
        self.spread = (self.n * self.aside**2 + self._within).sum(axis=1)
        self.steps = []
        for step in steps:
            products = _products(np.where(np.isnan(people), np.nan, people >= step))
            found = self._sums(*products.values(), products["person"] * place)
            sums = {"n": self.n, **dict(zip(products, found[:-1], strict=True))}
            empty = Labelled(grader=self.n, both=self.n, **sums)
            noise = Noise.along(empty, self._mean) if noisy and self.twice else None
            law = People.of(empty, third, noise) if self.twice else People.alike(empty)
            self.steps.append(_Step(products["person"], sums, found[-1], law, noise))

    def beyond(self, calls: Mask, step: _Step, *, noisy: bool) -> tuple[Array, bool]:
        """Rise with x of a grader's `calls` of 1 and 0 beyond those expected, (rows,), and False
        where no sharpness fits them. `noisy` has strictness change with all raters' noise.
        """
        grader, both, placed = self._sums(calls, calls * step.mean, calls * self._place)
        labelled = Labelled(grader=grader, both=both, **step.sums)
        noise = step.noise if noisy else None
        found = beyond_expected(labelled, step.law, free=self.twice, noise=noise)
        inner = placed - self._mean * grader
        inner -= found.rise * (step.placed - self._mean * step.sums["person"])
        if noise is not None:
            inner += noise.rise * found.strict * self._within
        share = (self.n * self.aside * found.share).sum(axis=1)
        return ratio(share + inner.sum(axis=1), self.spread), found.told

    def _sums(self, *columns: Numbers) -> Array:
        """Sum columns (units,) within each part, (columns, rows, parts)."""
        each = np.column_stack(columns)[:, :, None] * self._inside[:, None, :]
        sums = self._resamples.sums(self._clusters, each.reshape(len(each), -1))
        return np.moveaxis(sums.reshape(len(sums), len(columns), -1), 1, 0)


def parts_of(x: Array) -> Mask:
    """Assign each value to a part, (units, parts): its own where there are few values."""
    values = np.unique(x)
    if len(values) > PARTS:
        limits = np.unique(np.quantile(x, np.arange(1, PARTS) / PARTS))
        codes = np.searchsorted(limits, x)
        return np.asarray(codes[:, None] == np.unique(codes))
    return np.asarray(x[:, None] == values)


def _products(people: Array) -> dict[str, Array]:
    """Return what `Labelled` sums: annotators' calls of 1 and 0, each (units,). Each one's calls
    count minus their own leniency, so that a difference in it does not pass for one between units.
    """
    held = ~np.isnan(people)
    k = held.sum(axis=1).astype(float)
    calls = np.where(held, people - _leniency(people, k), 0.0)
    first, second, third = (np.asarray((calls**power).sum(axis=1)) for power in (1, 2, 3))
    mean = first / k
    two = np.nan_to_num(ratio(first**2 - second, k * (k - 1.0)))
    three = ratio(first**3 - 3.0 * first * second + 2.0 * third, k * (k - 1.0) * (k - 2.0))
    by_two, by_three = (k >= 2).astype(float), (k >= 3).astype(float)
    return {
        "person": mean,
        "n2": by_two,
        "person2": by_two * mean,
        "two2": two,
        "n3": by_three,
        "person3": by_three * mean,
        "two3": by_three * two,
        "three3": np.nan_to_num(three),
    }


def _leniency(people: Array, k: Array) -> Array:
    """Estimate each human's leniency, (people,): affirmations above the mean on the same units.

    0 for a human who shares fewer than 30 units with others.
    """
    twice = people[k >= 2]
    shared = (~np.isnan(twice)).sum(axis=0)
    if not len(twice):
        return np.zeros(people.shape[1])
    # The mean over a unit's humans includes the human; of all humans they are one in many.
    many = k[k >= 2] / (k[k >= 2] - 1.0) * (1.0 - 1.0 / people.shape[1])
    apart = (twice - np.nanmean(twice, axis=1, keepdims=True)) * many[:, None]
    mean = np.nansum(apart, axis=0) / np.maximum(shared, 1)
    return np.asarray(np.where(shared >= MIN_TWICE, mean, 0.0))
