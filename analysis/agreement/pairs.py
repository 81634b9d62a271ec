"""Agreement of two raters, and its mean over many pairs of raters.

Where not everybody labels everything, every unit counts once. A unit with m labels spreads its
weight evenly over its m (m - 1) / 2 pairs of labels, and over its m pairs of one of them with
another rater's. Each two raters have a weighted table of such pairs.
Raters who labelled fewer than half of the units share tables, in which margins are alike, as in
Krippendorff's alpha (2004). A statistic is the mean over tables, each counting by the weight that
it holds. Where everybody labels everything that is the plain mean over pairs of raters
(Light 1971); in a crowd, where no two share many units, all pairs of labels are in one table.

A mean over pairs of raters in which each pair has its own units compares raters on different units:
where a third person labels only what two disagree on, pairs with the third hold nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TypeVar

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement import numbers
from evenhand.analysis.agreement.coefficients import label_counts, one_over
from evenhand.analysis.agreement.numbers import number_sums
from evenhand.analysis.bootstrap.bounds import table_sums
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.statistics import Remark, Remarks, entry_for, join_notes
from evenhand.analysis.types import Array, Codes, Integers, Mask, Numbers
from evenhand.analysis.writer import View

PairStatistic = Callable[[Array], Array]
Pairs = Sequence[tuple[int, int]]

MAX_LISTED_RATERS = 12
"""Above this many raters, pairs with a human have pooled rows only."""
MIN_SHARED_UNITS = 30
"""On fewer units a grader is not compared with people."""
DECIDING_KAPPAS = ("cohen_kappa", "weighted_kappa_linear", "weighted_kappa_quadratic")
"""The kappas that verdicts may use."""
CHUNK_CELLS = 1_000_000
"""Numbers in memory at once, about."""


def pair_statistics(coded: Coded) -> dict[str, PairStatistic]:
    """Return the panel for one pair of raters, by name: functions of tables (..., q, q), of numbers
    (..., cells).
    """
    if coded.is_number:
        return _number_statistics(coded)
    linear, quadratic = (c.agreement_weights(coded.q, kind) for kind in ("linear", "quadratic"))
    panel: dict[str, PairStatistic] = {"observed_agreement": c.observed, "cohen_kappa": c.kappas}
    if coded.level != "nominal":
        panel["weighted_kappa_linear"] = partial(c.kappas, weights=linear)
        panel["weighted_kappa_quadratic"] = partial(c.kappas, weights=quadratic)
    panel["scott_pi"] = partial(c.corrected, chance=c.scott_chance)
    panel["gwet_ac1"] = partial(c.corrected, chance=c.gwet_chance)
    if coded.level != "nominal":
        panel["gwet_ac2"] = partial(c.corrected, chance=c.gwet_chance, weights=quadratic)
    panel["brennan_prediger"] = partial(c.corrected, chance=c.uniform_chance)
    panel |= {
        f"krippendorff_alpha_{level}": partial(_alpha_of_two, level=level, values=coded.values)
        for level in alpha_levels(coded)
    }
    if coded.level != "nominal":
        panel["mean_difference"] = partial(c.mean_differences, values=coded.values)
        panel["spearman"] = c.rank_correlations
    if coded.is_binary:
        panel |= {"prevalence_index": c.prevalence_index, "bias_index": c.bias_index}
    return panel


def _number_statistics(coded: Coded) -> dict[str, PairStatistic]:
    """The panel for numbers: functions of tables (..., cells)."""
    span, apart = float(np.ptp(coded.values)), 1.0 - numbers.AGREEMENT

    of_moments: dict[str, PairStatistic] = {
        "weighted_kappa_quadratic": partial(c.kappas, weights=numbers.AGREEMENT),
        "krippendorff_alpha_interval": lambda moments: c.alpha_with(
            moments + np.swapaxes(moments, -1, -2), apart
        ),
        "icc_a1": lambda moments: numbers.squares_of_two(moments).agreement,
        "icc_c1": lambda moments: numbers.squares_of_two(moments).consistency,
        "mean_difference": partial(numbers.mean_difference, span=span),
        "rms_difference": partial(numbers.root_mean_square_difference, span=span),
    }

    def on_tables(statistic: PairStatistic) -> PairStatistic:
        return lambda tables: statistic(numbers.moments(tables))

    linear: PairStatistic = partial(numbers.linear_kappa, values=coded.grid[1])
    panel = {name: on_tables(statistic) for name, statistic in of_moments.items()}
    return {"weighted_kappa_linear": linear, **panel, "spearman": numbers.rank_correlation}


def alpha_levels(coded: Coded) -> tuple[str, ...]:
    """Return the levels of alpha: nominal always, the metric ones for ordered categories. On an
    ordinal scale the interval metric assumes equal steps, as quadratic weights do.
    """
    if coded.is_number:
        return ("interval",)
    return ("nominal",) if coded.level == "nominal" else ("nominal", "ordinal", "interval")


def deciding_kappa(coded: Coded) -> str:
    """Return the kappa that verdicts use: unweighted for nominal data, else with linear weights, or
    with those that the scale asks for.
    """
    return "cohen_kappa" if coded.level == "nominal" else f"weighted_kappa_{coded.ordered}"


def distances(coded: Coded) -> Array:
    """Distances of labels in the kappa that verdicts use, between categories (q, q) or between
    points of the grid of numbers: 1 - agreement weights, from 0 to 1.
    """
    if not coded.is_number:
        kind = "identity" if coded.level == "nominal" else coded.ordered
        return 1.0 - c.agreement_weights(coded.q, kind)
    at = coded.grid[1]
    apart: Array = np.abs(at[:, None] - at)
    return apart**2 if coded.ordered == "quadratic" else apart


def pair_tables(coded: Coded, pairs: Pairs, resamples: Resamples) -> Array:
    """Tables (rows, pairs, q, q) of the pairs' shared units in every resample; of numbers (rows,
    pairs, cells). Callers keep `pairs` short enough for memory.
    """
    # Pairs last in memory: sums over a table's cells then run along contiguous pairs.
    exact = np.float64 if coded.is_number else np.float32
    features = np.empty((resamples.n_types, coded.cells, len(pairs)), dtype=exact)
    step = max(1, CHUNK_CELLS // max(1, len(coded.codes)))
    for start in range(0, len(pairs), step):
        some = slice(start, start + step)
        first, second = (coded.codes[:, list(raters)] for raters in zip(*pairs[some], strict=True))
        features[:, :, some] = cluster_tables(coded, coded.clusters, first, second, resamples.mass)
    return as_tables(coded, resamples.totals(features))


def as_tables(coded: Coded, totals: Array) -> Array:
    """Return sums (rows, cells, tables) as tables (rows, tables, q, q); of numbers
    (rows, tables, cells).
    """
    rows, _, tables = totals.shape
    shape = (rows, coded.cells, tables) if coded.is_number else (rows, coded.q, coded.q, tables)
    return np.asarray(np.moveaxis(totals.reshape(shape), -1, 1))


def cluster_tables(
    coded: Coded,
    clusters: Codes,
    first: Integers,
    second: Integers,
    mass: Numbers,
    weight: Array | None = None,
) -> Numbers:
    """The cells (clusters, cells, pairs) of each cluster's tables of two raters' codes
    (units, pairs), -1 missing, weighted by `weight` (units, pairs); `clusters` (units,) are the
    units', and `mass` (clusters,) is how much each counts in the data.
    """
    both, q, pairs = (first >= 0) & (second >= 0), coded.q, first.shape[1]
    n_clusters = len(mass)
    if coded.is_number:
        tables = []
        for k, held in enumerate(both.T):
            sides = first[held, k].astype(np.intp), second[held, k].astype(np.intp)
            weights = None if weight is None else weight[held, k]
            tables.append(numbers.cluster_cells(coded, clusters[held], *sides, weights, mass))
        return np.stack(tables, axis=-1) if tables else np.zeros((n_clusters, coded.cells, 0))
    left_out = n_clusters * q * q * pairs
    cell = (clusters.astype(np.intp) * q)[:, None] + first
    cell = (cell * q + second) * pairs + np.arange(pairs)
    cell = np.where(both, cell, left_out).ravel()
    weights = None if weight is None else weight.ravel()
    counts = np.bincount(cell, weights, minlength=left_out + 1)
    return counts[:-1].reshape(n_clusters, q * q, pairs)


def expected_cells(coded: Coded, features: Numbers, share: Array) -> Array:
    """Return sums (clusters, cells, tables) as they would be if the second rater chose the
    categories with probabilities `share` (q,), whatever the unit.
    """
    n, _, tables = features.shape
    if not coded.is_number:
        first = features.reshape(n, coded.q, coded.q, tables).sum(axis=2)
        return np.asarray((first[:, :, None] * share[:, None]).reshape(features.shape))
    return numbers.expected_cells(coded, features, share)


def data_table(coded: Coded, a: int, b: int, resamples: Resamples) -> Array:
    """The contingency table (q, q) of two raters in the data alone."""
    both = coded.labelled[:, a] & coded.labelled[:, b]
    cell = coded.codes[both, a].astype(np.intp) * coded.q + coded.codes[both, b]
    weights = resamples.frequency[coded.clusters[both]]
    counts = np.bincount(cell, weights, minlength=coded.q**2).astype(float)
    return counts.reshape(coded.q, coded.q)


def listed_raters(coded: Coded) -> tuple[int, ...]:
    """Raters whose pairs have rows of their own. All raters where they are few; else the graders,
    which are few even where humans are many.
    """
    for listed in (tuple(range(len(coded.raters))), coded.members("model")):
        if len(listed) <= MAX_LISTED_RATERS:
            return listed
    return ()


def pairs_that_meet(coded: Coded, raters: Sequence[int]) -> Pairs:
    """Return the pairs of raters that share units."""
    held = coded.labelled
    return [(a, b) for a, b in combinations(raters, 2) if (held[:, a] & held[:, b]).any()]


class MeanOverTables:
    """Mean of a statistic over tables of raters, added chunk by chunk, each counting by its size.
    Tables undefined in the data are left out; `n_undefined` is their number. `pooled` is True where
    raters share a table.
    """

    def __init__(self, rows: int, *, pooled: bool = False) -> None:
        self._total, self._size, self._defined = np.zeros((3, rows))
        self.n_undefined, self.pooled = 0, pooled

    def add(self, values: Array, sizes: Array | None = None) -> None:
        """Add replicates (rows, tables) of more tables."""
        is_defined = ~np.isnan(values[0])
        empty = False if sizes is None else sizes[0] == 0
        self.n_undefined += int((~is_defined & ~np.asarray(empty)).sum())
        defined = values[:, is_defined]
        held = ~np.isnan(defined)
        size = held * (1.0 if sizes is None else sizes[:, is_defined])
        self._total += np.where(held, defined * size, 0.0).sum(axis=1)
        self._size += size.sum(axis=1)
        self._defined += held.sum(axis=1)

    @property
    def values(self) -> Array:
        """Replicates of the mean (rows,)."""
        return ratio(self._total, self._size)

    @property
    def undefined(self) -> float:
        """Share of the tables' resampled values that were undefined, and so missing from the mean
        of a resample.
        """
        wanted = self._defined[0] * (len(self._defined) - 1)
        return 1.0 - float(self._defined[1:].sum() / wanted) if wanted else 0.0

    @property
    def n_tables(self) -> int:
        """Number of tables that the mean is over."""
        return int(self._defined[0])

    @property
    def over(self) -> str:
        """The number of pairs of raters that the mean is over, in words."""
        if self.pooled or not self.n_tables:
            return ""
        pairs = f"mean over {self.n_tables} pairs of raters"
        return pairs if self.n_tables > 1 else "1 pair of raters"

    @property
    def note(self) -> Remarks:
        """Remarks on the tables that the mean is over and those for which it is undefined."""
        every, lost = self.n_undefined + self.n_tables, ""
        if self.n_undefined:
            lost = f"undefined for {self.n_undefined} of {every} pairs of raters"
        return join_notes(Remark("pooled_pairs") if self.pooled else "", self.over, lost)


def mean_over_pairs(
    coded: Coded, pairs: Pairs, resamples: Resamples, statistics: Mapping[str, PairStatistic]
) -> dict[str, MeanOverTables]:
    """Return the plain mean of each statistic over pairs of raters, in every resample."""
    means = {name: MeanOverTables(len(resamples)) for name in statistics}
    for _, tables in table_chunks(coded, pairs, resamples):
        for name, statistic in statistics.items():
            means[name].add(statistic(tables))
    return means


def table_chunks(coded: Coded, pairs: Pairs, resamples: Resamples) -> Iterator[tuple[Pairs, Array]]:
    """Yield `pair_tables` of some pairs at a time, so that memory stays bounded."""
    for chunk in _some(coded, pairs, max(len(resamples), resamples.n_types)):
        yield chunk, pair_tables(coded, chunk, resamples)


def _some(coded: Coded, tables: Sequence[T], rows: int) -> Iterator[Sequence[T]]:
    """Yield some tables at a time, so that `rows` of their cells fit in memory."""
    step = max(1, CHUNK_CELLS // (coded.cells * max(rows, 1)))
    for start in range(0, len(tables), step):
        yield tables[start : start + step]


def _alpha_of_two(tables: Array, level: str, values: tuple[float, ...]) -> Array:
    """Alpha of two raters: every shared unit adds its two labels once in each order."""
    return c.alpha(tables + np.swapaxes(tables, -1, -2), level, values)


def add_pair_rows(view: View, prefix: str = "") -> None:
    """Add rows for every pair of listed raters that share units. `prefix` goes before the
    statistics' names, for labels of something other than single units.
    """
    coded, raters = view.coded, view.coded.raters
    pairs, statistics = pairs_that_meet(coded, listed_raters(coded)), pair_statistics(coded)
    for chunk, tables in table_chunks(coded, pairs, view.resamples):
        first = numbers.moments(tables[0]) if coded.is_number else tables[0]
        # One of the two used a single category throughout.
        constant = np.any([(first.sum(axis) > 0).sum(-1) == 1 for axis in (-1, -2)], axis=0)
        both = [view.count(coded.labelled[:, a] & coded.labelled[:, b]) for a, b in chunk]
        for name, statistic in chosen(statistics, prefix).items():
            values = statistic(tables)
            flagged = constant & entry_for(name).own_margins & ~np.isnan(values[0])
            for k, (a, b) in enumerate(chunk):
                note = Remark("constant_rater") if flagged[k] else ""
                view.add(prefix + name, values[:, k], both[k], a=raters[a], b=raters[b], note=note)


def chosen(
    statistics: dict[str, PairStatistic], prefix: str, names: Sequence[str] = ()
) -> dict[str, PairStatistic]:
    """Return the statistics in `names`, or all; with a prefix only agreement and kappa. A prefix
    marks the overall verdicts of a study, for which these two are enough.
    """
    wanted = ("observed_agreement", "cohen_kappa") if prefix else (names or tuple(statistics))
    return {name: statistics[name] for name in wanted if name in statistics}


T = TypeVar("T")

OWN_SHARE = 0.5
"""Raters who labelled at least this share of the units have tables of their own."""
MOST_APART = 150
"""With more such raters all share one table: their number of pairs grows with its square, and the
mean over so many pairs is that of the pooled table but for the third decimal."""
OVER_PAIRS = ("cohen_kappa", "weighted_kappa_linear", "weighted_kappa_quadratic", "scott_pi")
"""Statistics of two raters that a group has as a mean over its tables."""

_LARGEST_SCALE = 5040


@dataclass(frozen=True)
class Overlap:
    """Labels of several `raters` (columns) on some `units` (units,), and who shares a table.

    `apart` are the raters with tables of their own, `together` those who share one. `mass`
    (clusters,) is how much each cluster counts in the data. `scales` are
    factors on the weights of labels and of pairs: such that they are whole numbers, of which sums
    are faster.
    """

    coded: Coded
    raters: tuple[int, ...]
    units: Mask
    apart: tuple[int, ...]
    together: tuple[int, ...]
    mass: Numbers
    scales: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of(
        cls, coded: Coded, resamples: Resamples, raters: Sequence[int], units: Mask | None = None
    ) -> Overlap:
        """Return the overlap of raters on units, or on all that one of them labelled."""
        unit, rater = np.nonzero(coded.labelled[:, list(raters)])
        if units is not None:
            unit, rater = unit[units[unit]], rater[units[unit]]
        inside = np.zeros(len(coded.codes), dtype=bool)
        inside[unit] = True
        mass = resamples.mass[coded.clusters].astype(float)
        held = np.bincount(rater, mass[unit], minlength=len(raters))
        much = held >= OWN_SHARE * mass[inside].sum()
        if much.sum() > MOST_APART:
            much[:] = False
        if ((held > 0) & ~much).sum() == 1:  # nobody to share a table with
            much = held > 0
        some = [who for who, n in zip(raters, held, strict=True) if n > 0]
        apart = tuple(who for who, alone in zip(raters, much, strict=True) if alone and who in some)
        shared = tuple(who for who in some if who not in set(apart))
        numbers = np.unique(np.bincount(unit)[inside[: unit.max(initial=-1) + 1]])
        scales = _whole(numbers), _whole(numbers * (numbers - 1) // 2)
        return cls(coded, (*apart, *shared), inside, apart, shared, resamples.mass, scales)

    def with_rater(self, codes: Integers, rows: int = 1) -> Iterator[Numbers]:
        """Yield the tables of the raters with another one, whose `codes` (units,) these are:
        (clusters, cells, tables), some tables at a time, so that `rows` of them fit in memory.
        """
        coded, units = self.coded, np.arange(len(self.units))
        given = np.where(self.units, codes, -1).astype(np.intp)
        for some in _some(coded, self.apart, max(len(self.mass), rows)):
            own = coded.codes[:, list(some)].astype(np.intp)
            other = np.broadcast_to(given[:, None], own.shape)
            weight = self._weigh_labels(units, own)
            yield cluster_tables(coded, coded.clusters, own, other, self.mass, weight)
        if self.together:
            unit, own = self._entries
            yield self._one_table(unit, own, given[unit], self._weigh_labels(unit, own))

    def among(self, rows: int = 1) -> Iterator[Numbers]:
        """Yield the tables of the raters with one another, as `with_rater` does."""
        coded, units = self.coded, np.arange(len(self.units))
        inside = np.where(self.units[:, None], coded.codes, -1)
        for some in _some(coded, list(combinations(self.apart, 2)), max(len(self.mass), rows)):
            first, second = (
                inside[:, list(side)].astype(np.intp) for side in zip(*some, strict=True)
            )
            weight = self._weigh_pairs(units, first, second)
            yield cluster_tables(coded, coded.clusters, first, second, self.mass, weight)
        if not self.together:
            return
        unit, code = self._entries
        for rater in self.apart:
            codes = inside[unit, rater].astype(np.intp)
            yield self._one_table(unit, codes, code, self._weigh_pairs(unit, codes, code))
        shared = np.zeros((len(self.mass), coded.cells, 1))
        for i, j in entry_pairs(unit):
            weight = self._weigh_pairs(unit[i], code[i], code[j])
            half = np.ones(len(i)) / 2.0 if weight is None else weight / 2.0
            for first, second in ((code[i], code[j]), (code[j], code[i])):
                shared += self._one_table(unit[i], first, second, half)
        yield shared

    def _one_table(self, unit: Codes, first: Codes, second: Codes, weight: Array | None) -> Numbers:
        """Sums (clusters, cells, 1) over pairs of labels, given with their units."""
        clusters, sides = self.coded.clusters[unit], (first[:, None], second[:, None])
        return cluster_tables(
            self.coded, clusters, *sides, self.mass, None if weight is None else weight[:, None]
        )

    def _weigh_labels(self, unit: Codes, codes: Codes) -> Array | None:
        """Weight of labels with these units and codes; None where all count alike."""
        of_unit = self.scales[0] * one_over(self.number)
        weight: Array = np.broadcast_to(_across(of_unit[unit], codes), codes.shape)
        if not self.coded.tie_breaks:
            return None if self._is_even else weight
        # Any two labels that differ may have come first: only they count.
        alike = self._counts[_across(unit, codes), codes]
        others = _across(self.number[unit], codes) - alike
        whole = weight * _across(self.number[unit], codes)
        share = others / np.maximum(2.0 * _across(self._differing[unit], codes), 1.0)
        return np.where(_across(self.number[unit] > 2, codes), whole * share, weight)

    def _weigh_pairs(self, unit: Codes, first: Codes, second: Codes) -> Array | None:
        """Weight of pairs of labels with these units and codes; None where all count alike."""
        of_unit = self.scales[1] * one_over(self.number * (self.number - 1) // 2)
        weight: Array = np.broadcast_to(_across(of_unit[unit], first), first.shape)
        if not self.coded.tie_breaks:
            return None if self._is_even else weight
        n = _across(self.number[unit], first)
        whole = weight * (n * (n - 1) / 2.0)
        share = (first != second) / np.maximum(_across(self._differing[unit], first), 1.0)
        return np.where(n > 2, whole * share, weight)

    def sums_with_rater(self, codes: Integers) -> Array:
        """Return the sums (clusters, tables, 2 + 2q) of the tables with another rater's `codes`
        (units,), by which kappa is bounded (`analysis.bootstrap.bounds.table_sums`).
        """
        return self._sums(self.with_rater(codes)) / self.scales[0]

    def sums_among(self) -> Array:
        """Return the sums (clusters, tables, 2 + 2q) of the tables of the raters with one another:
        of each two apart, of each apart with those together, of those together.
        """
        return self._sums(self.among()) / self.scales[1]

    def _sums(self, chunks: Iterator[Numbers]) -> Array:
        """Sums (clusters, tables, 2 + 2q) of tables, given as (clusters, cells, tables)."""
        coded, apart = self.coded, distances(self.coded)
        sums = [np.zeros((len(self.mass), 0, 2 + 2 * len(apart)))]
        for features in chunks:
            cells = np.moveaxis(features, -1, 1).astype(float)
            if coded.is_number:
                sums.append(number_sums(coded, cells))
            else:
                tables = cells.reshape(*cells.shape[:2], coded.q, coded.q)
                sums.append(table_sums(tables, apart))
        return np.concatenate(sums, axis=1)

    def only(self, chosen: Codes) -> Overlap:
        """Return the overlap on some of the units (positions), each a cluster of its own."""
        codes, clusters = self.coded.codes[chosen], np.arange(len(chosen))
        coded = replace(self.coded, codes=codes, clusters=clusters)
        mass = self.mass[self.coded.clusters[chosen]]
        return replace(self, coded=coded, units=self.units[chosen], mass=mass)

    def without(self, rater: int) -> Overlap:
        """Return the overlap without a rater's labels, on units that then have enough."""
        codes = self.coded.codes.copy()
        codes[:, rater] = -1
        rest = replace(self, coded=replace(self.coded, codes=codes))
        least = min(int(self.number[self.units].min(initial=2)), 2)
        return replace(rest, units=self.units & (rest.number >= least))

    @cached_property
    def number(self) -> Codes:
        """Number of the raters who labelled each unit, (units,); 0 outside."""
        held = self.coded.labelled[:, list(self.raters)]
        return np.where(self.units, held.sum(axis=1), 0).astype(np.intp)

    @cached_property
    def _is_even(self) -> bool:
        """True where every label and every pair has the weight 1."""
        number = np.unique(self.number[self.units])
        pairs = np.maximum(number * (number - 1) // 2, 1)
        return len(number) == 1 and self.scales == (number[0], pairs[0])

    @cached_property
    def _entries(self) -> tuple[Codes, Codes]:
        """Unit and code of each label of those who share a table, by unit."""
        columns = np.asarray(self.together, dtype=np.intp)
        unit, rater = np.nonzero(self.coded.labelled[:, columns] & self.units[:, None])
        return unit, self.coded.codes[unit, columns[rater]].astype(np.intp)

    @cached_property
    def _counts(self) -> Array:
        """Number of the raters who chose each category, (units, q)."""
        return label_counts(self.coded, self.raters)

    @cached_property
    def _differing(self) -> Array:
        """Number of pairs of labels that differ, (units,)."""
        return np.asarray((self.number**2 - (self._counts**2).sum(axis=1)) / 2.0)


def _across(values: Numbers, codes: Codes) -> Numbers:
    """Values (units,) in the shape of codes (units,) or (units, raters)."""
    return values if codes.ndim == 1 else values[:, None]


def _whole(numbers: Codes) -> float:
    """A factor that makes one over each of these numbers whole, or 1 where it would be large."""
    common = math.lcm(*numbers[numbers > 0].tolist())
    return float(common) if common <= _LARGEST_SCALE else 1.0


def entry_pairs(unit: Codes) -> Iterator[tuple[Codes, Codes]]:
    """Yield the positions of all pairs of entries of one unit; `unit` ascends."""
    step = 1
    while True:
        first = np.flatnonzero(unit[step:] == unit[:-step]) if step < len(unit) else unit[:0]
        if not len(first):
            return
        yield first, first + step
        step += 1


class KappaMeans:
    """Means of kappas over the tables of raters, computed once for each set of raters and units.
    People's kappa with one another is needed for their own rows and for every grader's ceiling,
    mostly on the same units.
    """

    def __init__(
        self, coded: Coded, resamples: Resamples, names: Sequence[str] = OVER_PAIRS
    ) -> None:
        self.coded, self.resamples = coded, resamples
        panel = pair_statistics(coded)
        self._statistics = {name: panel[name] for name in names if name in panel}
        self._known: dict[tuple[tuple[int, ...], bytes], dict[str, MeanOverTables]] = {}

    def with_rater(
        self, raters: Sequence[int], grader: int, units: Mask
    ) -> dict[str, MeanOverTables]:
        """Return the means over raters with another one, by name."""
        overlap = Overlap.of(self.coded, self.resamples, raters, units)
        return means_with(overlap, self.coded.codes[:, grader], self.resamples, self._statistics)

    def among(self, raters: Sequence[int], units: Mask | None = None) -> dict[str, MeanOverTables]:
        """Return the means over raters with one another, by name."""
        held = self.coded.labelled[:, list(raters)].sum(axis=1) >= 2
        units = held if units is None else held & units
        key = tuple(raters), units.tobytes()
        if key not in self._known:
            overlap = Overlap.of(self.coded, self.resamples, raters, units)
            chunks = overlap.among(len(self.resamples))
            self._known[key] = means_of(overlap, chunks, self.resamples, self._statistics)
        return self._known[key]


def means_with(
    overlap: Overlap, codes: Integers, resamples: Resamples, statistics: Mapping[str, PairStatistic]
) -> dict[str, MeanOverTables]:
    """Return the mean of each statistic over raters with another one, who gave these `codes`
    (units,), in every resample.
    """
    chunks = overlap.with_rater(codes, len(resamples))
    return means_of(overlap, chunks, resamples, statistics)


def means_of(
    overlap: Overlap,
    chunks: Iterator[Numbers],
    resamples: Resamples,
    statistics: Mapping[str, PairStatistic],
) -> dict[str, MeanOverTables]:
    """Return the mean of each statistic over tables, given as sums (clusters, cells, tables), some
    at a time, in every resample.
    """
    pooled = bool(overlap.together)
    means = {name: MeanOverTables(len(resamples), pooled=pooled) for name in statistics}
    for features in chunks:
        tables = as_tables(overlap.coded, resamples.totals(features))
        sizes = (numbers.moments(tables) if overlap.coded.is_number else tables).sum((-2, -1))
        for name, statistic in statistics.items():
            means[name].add(statistic(tables), sizes)
    return means


def compared_units(
    coded: Coded, resamples: Resamples, people: Sequence[int], grader: int, least: int = 2
) -> tuple[Mask, bool]:
    """Return the units (units,) on which a grader is compared with people, and whether it can be
    compared with people's agreement there.

    They have the grader's label and two people's, so that both are computed on the same units;
    where there are fewer than 30 of them, or with `least` = 1, one person's is enough.
    """
    number = np.where(coded.labelled[:, grader], coded.labelled[:, list(people)].sum(axis=1), 0)
    if least == 2:
        twice = np.asarray(number >= 2)
        if resamples.count(coded.clusters, twice)[0] >= MIN_SHARED_UNITS:
            return twice, True
    return np.asarray(number >= 1), False


def add_humans_rows(view: View, prefix: str = "", names: Sequence[str] = ()) -> None:
    """Add rows of each grader with humans: means over the humans. Only the statistics in `names`,
    if any are given.
    """
    coded, resamples = view.coded, view.resamples
    statistics = chosen(pair_statistics(coded), prefix, names)
    for grader in coded.members("model"):
        people = coded.people_beside(grader)
        units, _ = compared_units(coded, resamples, people, grader)
        if not units.any():
            continue
        counts, codes = view.count(units), coded.codes[:, grader]
        used = np.unique(codes[units])
        overlap = Overlap.of(coded, resamples, people, units)
        few = f"fewer than {MIN_SHARED_UNITS} items" if counts[0] < MIN_SHARED_UNITS else ""
        for name, mean in means_with(overlap, codes, resamples, statistics).items():
            constant = len(used) == 1 and entry_for(name).own_margins
            view.add(
                prefix + name,
                mean.values,
                counts,
                undefined=mean.undefined,
                a="humans",
                b=coded.raters[grader],
                note=join_notes(Remark("constant_rater") if constant else "", mean.note, few),
            )
