"""Permutation test of the parts of a sample, adjusted for all of them: studentised max-T.

Under the null hypothesis clusters could as well lie in other parts. The statistic of a part is its
mean outcome minus that of the rest, in standard errors, so that parts may differ in spread (Chung &
Romano 2013). The largest |t| of all parts in a permutation adjusts for their number (Westfall &
Young 1993). A bootstrap cannot do this: a part without an error varies in no resample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.types import Array, Codes, Frequency

PRIOR = 20.0
"""A part's variance is drawn to the common one as if by so many more clusters."""
_DRAWS, _FEWER, _MANY_UNITS = 999, 199, 20_000
_TOLERANCE = 1e-9
"""Room for rounding: permutations whose |t| equals that of the data count as equally large."""
_SUMS = 6
"""Sums that `_t` needs: clusters, sizes, totals, squared totals, products, squared sizes."""


@dataclass(frozen=True)
class Parts:
    """Outcomes of units in the parts of a sample.

    `outcome` and `mass` (units, tests) are a unit's outcome and how much it counts in each test,
    such as that of one grader; mass 0 leaves it out. `part` (units,) is -1 where a unit is in none.
    `times` (units,) is how many identical units, each its own cluster, a row stands for. Where all
    clusters are single units, only units of the same `stratum` (units,) change places.
    """

    outcome: Array
    mass: Array
    part: Codes
    cluster: Codes
    times: Frequency
    stratum: Codes | None = None


class MaxT(NamedTuple):
    """P values (parts, tests): of each part alone, and adjusted for all. NaN is no test."""

    p: Array
    adjusted: Array


def max_t(columns: Sequence[Parts]) -> list[MaxT]:
    """Test whether each part's mean outcome differs from the rest's, adjusted over all columns.

    Clusters change parts at random. Where at least half of every part shares its clusters with
    other parts, units change parts within clusters instead, and their outcomes are taken from the
    cluster's mean; where less does, a cluster's units in one part move together. The data count as
    one permutation (Phipson & Smyth 2010) of 1,000; of 200 above 20,000 rows. NaN where a part or
    the rest has no unit.

    Four parts of 20 units; one error in each of three, five in the last:

    >>> units, outcome = np.arange(80), np.ones((80, 1))
    >>> outcome[[0, 20, 40, 60, 61, 62, 63, 64]] = 0
    >>> found = max_t([Parts(outcome, np.ones((80, 1)), units // 20, units, np.ones_like(units))])
    >>> found[0].p.ravel().round(2).tolist(), found[0].adjusted.ravel().round(2).tolist()
    ([0.19, 0.21, 0.21, 0.02], [0.5, 0.5, 0.5, 0.07])
    """
    draws = _FEWER if max((len(each.part) for each in columns), default=0) > _MANY_UNITS else _DRAWS
    tested = [_values_of_t(each, draws) for each in columns]
    largest = np.zeros(draws)
    for _, drawn in tested:
        largest = np.maximum(largest, drawn.max(axis=(1, 2), initial=0.0))

    def p(seen: Array, drawn: Array) -> Array:
        as_large = (drawn >= seen - _TOLERANCE).sum(axis=0)
        return np.where(np.isnan(seen), np.nan, (1 + as_large) / (1 + draws))

    return [MaxT(p(seen, drawn), p(seen, largest[:, None, None])) for seen, drawn in tested]


def max_t_notes(columns: Sequence[Parts]) -> list[list[list[str]]]:
    """Describe the p values of `max_t`, by column, part and test; "" where there is none."""
    found = max_t(columns)
    tests = sum(int((~np.isnan(each.p)).sum()) for each in found)

    def note(p: float, adjusted: float) -> str:
        if np.isnan(p):
            return ""
        return f"permutation p {p:.4g}; max-T p {adjusted:.4g} of {tests}"

    return [
        [[note(*both) for both in zip(*part, strict=True)] for part in zip(*each, strict=True)]
        for each in found
    ]


def _values_of_t(of: Parts, draws: int) -> tuple[Array, Array]:
    """Return |t| in the data (parts, tests), and in permutations (draws, parts, tests): there 0
    where it is undefined.
    """
    shape = int(of.part.max(initial=-1)) + 1, of.outcome.shape[1], _SUMS
    if not (of.mass[of.part >= 0] > 0).any():
        return np.full(shape[:2], np.nan), np.zeros((draws, *shape[:2]))
    moved = _moved(of)
    sums = np.zeros((1 + draws, *shape))
    present = np.unique(moved.part)
    for place, each in enumerate(moved.sums(draws)):
        sums[place, present] = each.reshape(len(present), *shape[1:])
    t = _t(sums)
    return t[0], np.nan_to_num(t[1:])


def _t(sums: Array) -> Array:
    """Return |t| (..., parts, tests) from sums (..., parts, tests, 6); NaN without a rest."""
    number, size, total, squares, products, sizes = np.moveaxis(sums, -1, 0)
    mean = np.nan_to_num(ratio(total, size))
    spread = squares - 2.0 * mean * products + mean**2 * sizes
    # Variances are those of one unit of size; a mean's is that over its size. What is common is
    # the variance of totals over their squared sizes: large clusters and weights vary by as much.
    common = ratio(squares.sum(axis=-2, keepdims=True), sizes.sum(axis=-2, keepdims=True))
    variance = np.nan_to_num(ratio(number * spread + PRIOR * common * sizes, size))
    variance = variance / (number + PRIOR)
    rest = size.sum(axis=-2, keepdims=True) - size
    rest_mean = ratio(total.sum(axis=-2, keepdims=True) - total, rest)
    weighted = variance * size
    rest_variance = ratio(weighted.sum(axis=-2, keepdims=True) - weighted, rest)
    apart = np.abs(ratio(total, size) - rest_mean)
    error = np.sqrt(ratio(variance, size) + ratio(rest_variance, rest))
    return np.where(apart < _TOLERANCE, 0.0 * apart, ratio(apart, error))


@dataclass(frozen=True)
class _Moved:
    """What changes places within blocks: features (moved, 6 tests), parts, blocks, and times."""

    features: Array
    part: Codes
    block: Codes
    times: Frequency

    def sums(self, draws: int) -> Iterator[Array]:
        """Yield the present parts' sums (parts, 6 tests): of the data, then of permutations."""
        rng, often = np.random.default_rng(_DRAWS), self.times
        if often.max() > 1 and often.sum() > _MANY_UNITS:
            yield from self._sums_of_tables(draws, rng)
            return
        features, part, block = (
            np.repeat(each, often, axis=0) for each in (self.features, self.part, self.block)
        )
        order, alone = np.argsort(block, kind="stable"), np.ptp(block) == 0
        slots = part[order]
        by_part = np.argsort(slots, kind="stable")
        starts = np.flatnonzero(np.diff(slots[by_part], prepend=-1))
        yield np.add.reduceat(features[order[by_part]], starts)
        for _ in range(draws):
            lots = rng.random(len(order))
            mixed = np.argsort(lots) if alone else np.lexsort((lots, block))
            yield np.add.reduceat(features[mixed[by_part]], starts)

    def _sums_of_tables(self, draws: int, rng: np.random.Generator) -> Iterator[Array]:
        """Yield the sums as `sums` does, from random tables (kinds of rows, parts) with the margins
        of the data: a million rows are of few kinds.
        """
        _, part = np.unique(self.part, return_inverse=True)
        table = np.eye(int(part.max()) + 1)[part] * self.times[:, None]
        yield table.T @ self.features
        blocks = []
        for each in np.unique(self.block):
            rows = self.block == each
            kinds, kind = np.unique(self.features[rows], axis=0, return_inverse=True)
            counts = np.bincount(kind.ravel(), self.times[rows]).astype(np.int64)
            blocks.append((kinds, counts, table[rows].sum(axis=0).astype(np.int64)))
        for _ in range(draws):
            sums = np.zeros((table.shape[1], self.features.shape[1]))
            for kinds, left, sizes in blocks:
                for at, size in enumerate(sizes):
                    taken = rng.multivariate_hypergeometric(left, size, method="marginals")
                    sums[at] += taken @ kinds
                    left = left - taken
            yield sums


def _moved(of: Parts) -> _Moved:
    """Return what changes places: clusters, their pieces in each part, or units in clusters."""
    known = np.flatnonzero((of.part >= 0) & (of.mass > 0).any(axis=1))
    # In an order of their own, for equal p values however rows are kept.
    order = np.lexsort((*of.outcome[known].T, of.part[known], of.cluster[known]))
    known = known[order]
    mass, part, times = of.mass[known], of.part[known], of.times[known]
    outcome, block = np.where(mass > 0, of.outcome[known], 0.0), np.zeros(len(part), dtype=np.intp)
    kept, cluster = np.unique(of.cluster[known], return_inverse=True)
    count = int(part.max(initial=0)) + 1
    pieces, first, piece = np.unique(cluster * count + part, return_index=True, return_inverse=True)
    cut = np.bincount(pieces // count)[cluster] > 1
    within = cut.any() and (2 * np.bincount(part, cut) >= np.bincount(part)).all()
    if within:
        mass, outcome, part, block = mass[cut], outcome[cut], part[cut], cluster[cut]
        times = times[cut]
    elif len(kept) == len(part) and of.stratum is not None:
        block = of.stratum[known]
    centre = block if within else np.zeros_like(block)
    means = ratio(*(_sums(each * times[:, None], centre) for each in (mass * outcome, mass)))
    size, total = mass, mass * (outcome - np.nan_to_num(means)[centre])
    if not within and len(kept) < len(part):
        size, total = _sums(size, piece), _sums(total, piece)
        part, block, times = part[first], block[first], times[first]
    each = size > 0, size, total, total**2, total * size, size**2
    features = np.stack(each, axis=-1).reshape(len(size), -1).astype(float)
    return _Moved(features, part, block, times)


def _sums(values: Array, groups: Codes) -> Array:
    """Sum values (units, tests) over groups: (groups, tests)."""
    count = int(groups.max(initial=-1)) + 1
    return np.column_stack([np.bincount(groups, each, count) for each in values.T])
