"""Shift of a grader's calls with some property, beyond what humans' score of the units explains.

The sample is divided by the property that should not matter: own family or not, a part of the
sample or the rest, fifths of the length. In each part the share of the grader's affirmative calls
is compared with the one expected of a grader without bias (see `analysis.bias.expected`).

Calls are numbers: how affirmative a unit is, and which side of a pair it favours. A *verdict call*
is 1 or 0. A *directed call* is 1 where side a is favoured, -1 where side b is, else 0: by a pair
rubric's options, or, on responses, the verdict on side a minus that on side b.

The side that a grader favours is adjusted for the side that humans favour. A plain difference of
grader and humans would accuse any grader that merely errs more than humans do: where one side is
favoured more often, it misses more of that. So humans' own lean is scaled by how sharply the grader
sees what humans see, its *sharpness*

    r = cov(grader, person) / cov(person, another person),

both over the units that two humans labelled. If a rater's errors depend only on the unit's latent
truth T, the expected call is q + s T; then cov(grader, person) = s_g s_p var(T), humans among each
other have s_p^2 var(T), r = s_g / s_p, and *lean of the grader - r x lean of humans* is 0 whatever
s_g is: for a grader exchangeable with humans (r = 1), for one that guesses (r = 0), for any
between. This is Spearman's (1904) correction for attenuation, taken at the level of a slope.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bias.expected import Labelled, Noise, People, beyond_expected
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.encoding import units_of_both_sides
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL, LabelMatrix, favour_signs
from evenhand.analysis.notes import Code, Note, Remark
from evenhand.analysis.types import Array, Codes, Mask, Numbers


@dataclass(frozen=True)
class Calls:
    """Calls `values` (units, raters), NaN for none, with each unit's cluster and subject.

    `unit` (units,) is the unit's row in the label matrix; `subset` names the rows on all of the
    calls.
    """

    raters: tuple[str, ...]
    kinds: tuple[str, ...]
    values: Array
    clusters: Codes
    subjects: tuple[str, ...]
    subject: Codes
    unit: Codes
    subset: str

    @property
    def graders(self) -> tuple[int, ...]:
        """Columns of the model graders."""
        return tuple(at for at, kind in enumerate(self.kinds) if kind == "model")

    @property
    def people(self) -> Array:
        """The humans' calls (units, humans)."""
        return self.values[:, [kind == "human" for kind in self.kinds]]

    def oriented(self, sign: Array) -> Calls:
        """Swap the sides of directed calls where `sign` (units,) is -1; no call where it is 0."""
        factor = np.where(sign == 0, np.nan, sign)
        return replace(self, values=self.values * factor[:, None])

    def without_graders_but(self, grader: str) -> Calls:
        """Return the calls of humans and this grader."""
        kept = [
            name == grader or kind != "model"
            for name, kind in zip(self.raters, self.kinds, strict=True)
        ]
        return replace(
            self,
            raters=tuple(compress(self.raters, kept)),
            kinds=tuple(compress(self.kinds, kept)),
            values=self.values[:, kept],
        )

    def part(self, name: str) -> str:
        """Return the `subset` of rows on a part of the units."""
        return name + BINARY if self.subset.endswith(BINARY) else name


def verdict_calls(labels: LabelMatrix) -> Calls | None:
    """Return 1 for an affirmative verdict, 0 for another; None where the scale has no verdict."""
    if not labels.has_verdicts:
        return None
    return _calls(labels, labels.verdict_values, np.arange(len(labels.codes)), BINARY_ALL)


def directed_calls(labels: LabelMatrix) -> Calls | None:
    """Return the side that every rater favours, or None where rubric or units have no sides."""
    if labels.scale.favours:
        signs = favour_signs(labels.scale.categories, labels.scale.favours)
        return _calls(labels, signs[labels.codes], np.arange(len(labels.codes)), "all")
    verdicts = verdict_calls(labels)
    a, b = units_of_both_sides(labels)
    if verdicts is None or not len(a):
        return None
    return _calls(labels, verdicts.values[a] - verdicts.values[b], a, verdicts.subset)


def _calls(labels: LabelMatrix, values: Array, unit: Codes, subset: str) -> Calls:
    return Calls(
        raters=labels.raters,
        kinds=labels.kinds,
        values=values,
        clusters=labels.clusters[unit],
        subjects=labels.subjects,
        subject=labels.subject[unit],
        unit=unit,
        subset=subset,
    )


MIN_TWICE = 30
"""Sharpness is estimated from this many units with two humans' labels; else it is taken as 1."""
NOT_SCALED = Remark("sharpness_assumed", (MIN_TWICE,))


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


def side_shift(calls: Calls, grader: int, resamples: Resamples) -> Shift | None:
    """Estimate a grader's mean call minus r times that of humans, on the units that both called;
    None where there are none.
    """
    people, called = calls.people, calls.values[:, grader]
    held = ~np.isnan(people)
    n_people = held.sum(axis=1)
    shared = (n_people > 0) & ~np.isnan(called)
    if not shared.any():
        return None
    total, squares = (np.where(held, each, 0.0).sum(axis=1) for each in (people, people**2))
    person = np.where(shared, ratio(total, n_people.astype(float)), 0.0)
    graded, twice = np.where(shared, called, 0.0), shared & (n_people >= 2)
    note: Note = NOT_SCALED
    sharpness = np.ones(len(resamples))
    if resamples.count(calls.clusters, twice)[0] >= MIN_TWICE:
        orders = np.where(twice, n_people * (n_people - 1), 1).astype(float)
        two_people = (total**2 - squares) / orders
        products = (twice * each for each in (graded, person, graded * person, two_people))
        n, sg, sp, sgp, spp = resamples.sums(calls.clusters, twice, *products).T
        with_person = ratio(sgp, n) - ratio(sg, n) * ratio(sp, n)
        among_people = ratio(spp, n) - ratio(sp, n) ** 2
        # NaN where humans agree no better than chance.
        sharpness = ratio(with_person, np.where(among_people > 1e-12, among_people, 0.0))
        note = ""
    n, sg, sp = resamples.sums(calls.clusters, shared, graded, person).T
    # Where humans do not lean at all the grader's sharpness does not matter.
    lean = np.where(sp == 0, 0.0, sharpness * ratio(sp, n))
    reason: Code = "people_agree_by_chance" if np.isnan(sharpness[0]) else "no_variation"
    counts = resamples.count(calls.clusters, shared)
    return Shift(ratio(sg, n) - lean, counts, note, reason)


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
    # A human's leniency is affirmations above the mean on the same units; 0 for one who shares
    # fewer than 30 units with others.
    twice, leniency = people[k >= 2], np.zeros(people.shape[1])
    if len(twice):
        shared = (~np.isnan(twice)).sum(axis=0)
        # The mean over a unit's humans includes the human; of all humans they are one in many.
        many = k[k >= 2] / (k[k >= 2] - 1.0) * (1.0 - 1.0 / people.shape[1])
        apart = (twice - np.nanmean(twice, axis=1, keepdims=True)) * many[:, None]
        mean_apart = np.nansum(apart, axis=0) / np.maximum(shared, 1)
        leniency = np.where(shared >= MIN_TWICE, mean_apart, 0.0)
    calls = np.where(held, people - leniency, 0.0)
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
