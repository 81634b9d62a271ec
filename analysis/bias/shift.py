"""How far a grader's calls shift with something, beyond what people's score of the units explains.

The sample is parted by whatever should not matter: own family or not, a part of the sample or the
rest, fifths of the length. In each part the share of the grader's affirmative calls is held against
the one expected of a grader without bias (see `analysis.bias.expected`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bias.beside_people import MIN_TWICE, NOT_SCALED
from evenhand.analysis.bias.calls import Calls
from evenhand.analysis.bias.expected import Labelled, People, beyond_expected
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.notes import Code, Note
from evenhand.analysis.types import Array, Mask

PARTS = 5
"""What takes many values, such as a length, is parted into so many equal parts."""


@dataclass(frozen=True)
class Shift:
    """`values` (rows,) are replicates, the data first; `counts` (units, clusters)."""

    values: Array
    counts: tuple[int, int]
    note: Note
    reason: Code


def shift_with(calls: Calls, grader: int, x: Array, resamples: Resamples) -> Shift | None:
    """How calls rise with x (units,), NaN where not known, beyond what is expected: the least
    squares slope of calls minus expected ones, which for x of 0 and 1 is a difference. Within a
    part expected calls rise in a straight line with people's. None without a unit that the grader
    and a person called.

    A call of more than two values is taken apart into steps, *at least 0* and *at least 1*.
    """
    own = calls.values[:, grader]
    known = ~np.isnan(own) & ~np.isnan(calls.people).all(axis=1) & ~np.isnan(x)
    if not known.any():
        return None
    counts = resamples.count(calls.clusters, known)
    held, people = own[known], calls.people[known]
    inside = parts_of(x[known])
    clusters = calls.clusters[known]
    enough = (~np.isnan(people)).sum(axis=1)[:, None] >= [2, 3]
    twice = bool(enough[:, 0].sum() >= MIN_TWICE)
    third = bool((enough[:, 1, None] & inside).sum(axis=0).min() >= MIN_TWICE)

    def sums(values: Array) -> Array:
        """Of each column within each part, (rows, columns, parts)."""
        columns = (values[:, :, None] * inside[:, None, :]).reshape(len(values), -1)
        return resamples.sums(clusters, columns).reshape(len(resamples), values.shape[1], -1)

    place = x[known]
    n, sx, sxx = np.moveaxis(sums(np.column_stack([np.ones(len(held)), place, place**2])), 1, 0)
    mean = ratio(sx, n)
    aside = mean - ratio(sx.sum(axis=1), n.sum(axis=1))[:, None]
    spread = (n * aside**2 + sxx - sx * mean).sum(axis=1)
    total = np.zeros(len(resamples))
    reason: Code = "no_variation"
    for step in np.unique(calls.values[~np.isnan(calls.values)])[1:]:
        affirmed = np.where(np.isnan(people), np.nan, people >= step)
        products = _products(held >= step, affirmed)
        labelled = Labelled(*np.moveaxis(sums(products), 1, 0))
        law = People.of(labelled, third) if twice else People.alike(labelled)
        beyond = beyond_expected(labelled, law, free=twice)
        if inside.shape[1] > 1 and np.isnan(law.variance[0]).any():
            reason = "people_agree_by_chance"
        elif not beyond.told:
            reason = "no_sharpness_fits"
        with_grader, with_person = np.moveaxis(sums(products[:, 1:3] * place[:, None]), 1, 0)
        inner = with_grader - mean * labelled.grader
        inner -= beyond.rise * (with_person - mean * labelled.person)
        total += ratio((n * aside * beyond.share + inner).sum(axis=1), spread)
    return Shift(total, counts, "" if twice else NOT_SCALED, reason)


def parts_of(x: Array) -> Mask:
    """Which part each value is in, (units, parts): its own where there are few values."""
    values = np.unique(x)
    if len(values) > PARTS:
        limits = np.unique(np.quantile(x, np.arange(1, PARTS) / PARTS))
        codes = np.searchsorted(limits, x)
        return np.asarray(codes[:, None] == np.unique(codes))
    return np.asarray(x[:, None] == values)


def _products(grader: Mask, people: Array) -> Array:
    """What `Labelled` sums, of calls of 1 and 0: (units, 11). A person's calls count less that
    person's own leniency, so that people who differ in it do not seem to see different units.
    """
    held = ~np.isnan(people)
    k = held.sum(axis=1).astype(float)
    calls = np.where(held, people - _leniency(people, k), 0.0)
    first, second, third = (np.asarray((calls**power).sum(axis=1)) for power in (1, 2, 3))
    mean = first / k
    two = np.nan_to_num(ratio(first**2 - second, k * (k - 1.0)))
    three = ratio(first**3 - 3.0 * first * second + 2.0 * third, k * (k - 1.0) * (k - 2.0))
    three = np.nan_to_num(three)
    by_two, by_three = k >= 2, k >= 3
    return np.column_stack(
        [
            *(np.ones(len(k)), grader, mean, grader * mean),
            *(by_two, by_two * mean, two),
            *(by_three, by_three * mean, by_three * two, three),
        ]
    ).astype(float)


def _leniency(people: Array, k: Array) -> Array:
    """How much oftener than people at large each person affirms the same units, (people,).

    0 for who shares fewer than 30 units with others.
    """
    twice = people[k >= 2]
    shared = (~np.isnan(twice)).sum(axis=0)
    if not len(twice):
        return np.zeros(people.shape[1])
    # The mean of a unit's people has the person in it; people at large, one in so many.
    many = k[k >= 2] / (k[k >= 2] - 1.0) * (1.0 - 1.0 / people.shape[1])
    apart = (twice - np.nanmean(twice, axis=1, keepdims=True)) * many[:, None]
    mean = np.nansum(apart, axis=0) / np.maximum(shared, 1)
    return np.asarray(np.where(shared >= MIN_TWICE, mean, 0.0))
