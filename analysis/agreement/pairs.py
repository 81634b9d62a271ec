"""Agreement of two raters, and its mean over many pairs of raters.

`CategoryMeasurement` counts and compares labels that are categories, `NumberMeasurement`
(`analysis.agreement.numbers`) labels that are numbers. `pair_tables` gives the tables of pairs of
raters, `Overlap` the tables of a set of raters, and `KappaMeans` the mean kappa over these. Tables
are counted by cluster (identical clusters once, see `Resamples`), as *cluster tables* (clusters,
cells, tables), and then summed over the clusters of each resample. Arrays (rows, ...) have the data
in row 0, and then its resamples.

If raters label different units, every unit still counts once: a unit with m labels spreads its
weight evenly over its m (m - 1) / 2 pairs of labels, or over its m pairs of a label with a further
rater's label. Raters who labelled at least half of the units have one weighted table for each two
of them. The other raters share tables, whose two margins are equal, as in Krippendorff's alpha
(2004). A statistic is the mean over tables, weighted by the labels in each. If all raters label all
units, this is the plain mean over pairs of raters (Light 1971). In a crowd, where no two raters
share many units, it is the statistic of a single table of all pairs of labels.

A plain mean over pairs would compare raters on different units. For example, if a third annotator
labels only units on which two disagree, the pairs with the third consist of nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TypeVar

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.numbers import NumberMeasurement
from evenhand.analysis.bootstrap.bounds import table_sums
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.statistics import Remark, Remarks, entry_for, join_notes
from evenhand.analysis.types import Array, Codes, Integers, Mask, Numbers
from evenhand.analysis.writer import About, View

Pairs = Sequence[tuple[int, int]]  # of raters, by their columns
PairStatistics = Mapping[str, c.PairStatistic]
T = TypeVar("T")

MAX_LISTED_RATERS = 12
"""Most raters of whom every pair has rows; if there are more, only pairs of graders have rows."""
MIN_SHARED_UNITS = 30  # fewest units on which a grader is compared with people
DECIDING_KAPPAS = ("cohen_kappa", "weighted_kappa_linear", "weighted_kappa_quadratic")
"""The kappas that verdicts may use."""
OVER_PAIRS = (*DECIDING_KAPPAS, "scott_pi")
"""Statistics of two raters whose mean over the tables of a group is reported."""
CHUNK_CELLS = 1_000_000  # approximate number of cells of tables in memory at once
INDIVIDUAL_SHARE = 0.5  # lowest share of the units that a rater with individual tables has labelled
MAX_INDIVIDUAL = 150
"""Most raters with individual tables; if there are more, all share one: the number of pairs grows
with the square, and the mean over so many equals the pooled statistic to two decimals."""
_LARGEST_SCALE = 5040  # largest factor that makes weights whole; else they stay fractions


class CategoryMeasurement:
    """Counts and statistics of two raters' labels that are categories.

    A table of two raters (..., q, q) has the first rater's categories in rows and the second's in
    columns. `NumberMeasurement` has the same methods for labels that are numbers.
    """

    def __init__(self, coded: Coded) -> None:
        self.coded = coded
        self.shape: tuple[int, ...] = (coded.q, coded.q)
        self.n_cells = coded.q**2

    def statistics(self) -> dict[str, c.PairStatistic]:
        """Return the panel for one pair of raters, by name: functions of tables (..., q, q)."""
        coded = self.coded
        panel: dict[str, c.PairStatistic] = {
            "observed_agreement": c.observed,
            "cohen_kappa": c.kappas,
        }
        quadratic = c.agreement_weights(coded.q, "quadratic")
        if coded.level != "nominal":
            linear = c.agreement_weights(coded.q, "linear")
            panel["weighted_kappa_linear"] = partial(c.kappas, weights=linear)
            panel["weighted_kappa_quadratic"] = partial(c.kappas, weights=quadratic)
        panel["scott_pi"] = partial(c.corrected, chance=c.scott_chance)
        panel["gwet_ac1"] = partial(c.corrected, chance=c.gwet_chance)
        if coded.level != "nominal":
            panel["gwet_ac2"] = partial(c.corrected, chance=c.gwet_chance, weights=quadratic)
        panel["brennan_prediger"] = partial(c.corrected, chance=c.uniform_chance)
        panel |= {
            f"krippendorff_alpha_{level}": partial(_pair_alpha, level=level, values=coded.values)
            for level in self.alpha_levels
        }
        if coded.level != "nominal":
            panel["mean_difference"] = partial(c.mean_differences, values=coded.values)
            panel["spearman"] = c.rank_correlations
        if coded.is_binary:
            panel |= {"prevalence_index": c.prevalence_index, "bias_index": c.bias_index}
        return panel

    @property
    def alpha_levels(self) -> tuple[str, ...]:
        """Levels of alpha: nominal always, the metric ones for ordered categories. On an ordinal
        scale the interval metric assumes equal steps, as quadratic weights do.
        """
        return ("nominal",) if self.coded.level == "nominal" else ("nominal", "ordinal", "interval")

    @property
    def agreement_weights(self) -> Array:
        """Agreement weights (q, q) of the kappa that verdicts use."""
        kind = "identity" if self.coded.level == "nominal" else self.coded.ordered
        return c.agreement_weights(self.coded.q, kind)

    @property
    def distances(self) -> Array:
        """Distances (q, q) of categories in the kappa that verdicts use, from 0 to 1."""
        return 1.0 - self.agreement_weights

    def cluster_tables(
        self, cluster: Codes, first: Integers, second: Integers, mass: Numbers, weight: Array | None
    ) -> Numbers:
        """Return each cluster's tables of pairs of raters, (clusters, cells, pairs).

        `first` and `second` (units, pairs) are the raters' codes, -1 missing. `weight`
        (units, pairs) are the weights of the pairs of labels, None if all are 1. `cluster` (units,)
        is the cluster of each unit, `mass` (clusters,) the weight of each cluster in the data.
        """
        q, n_pairs = self.coded.q, first.shape[1]
        missing_cell = len(mass) * q * q * n_pairs
        cell = (cluster.astype(np.intp) * q)[:, None] + first  # in an array (clusters, q, q, pairs)
        cell = (cell * q + second) * n_pairs + np.arange(n_pairs)
        cell = np.where((first >= 0) & (second >= 0), cell, missing_cell).ravel()
        weights = None if weight is None else weight.ravel()
        counts = np.bincount(cell, weights, minlength=missing_cell + 1)
        return counts[:-1].reshape(len(mass), q * q, n_pairs)  # without `missing_cell`

    def expected_cells(self, cluster_tables: Numbers, shares: Array) -> Array:
        """Return the expected cells of cluster tables (clusters, cells, tables) if the second rater
        chose categories with probabilities `shares` (q,) regardless of the unit.
        """
        n, _, n_tables = cluster_tables.shape
        first = cluster_tables.reshape(n, self.coded.q, self.coded.q, n_tables).sum(axis=2)
        return np.asarray((first[:, :, None] * shares[:, None]).reshape(cluster_tables.shape))

    def square_tables(self, tables: Array) -> Array:
        """Return the cells that sum to the weight of the pairs of labels, (..., q, q): here all."""
        return tables

    def kappa_sums(self, tables: Array) -> Array:
        """Return the sums (..., 2 + 2q) that kappa depends on (`bounds.table_sums`)."""
        return table_sums(tables, self.distances)


def measurement_of(coded: Coded) -> CategoryMeasurement | NumberMeasurement:
    """Return the measurement that counts and compares the labels of this view."""
    return NumberMeasurement(coded) if coded.is_number else CategoryMeasurement(coded)


def deciding_kappa(coded: Coded) -> str:
    """Return the kappa that verdicts use: unweighted for nominal labels, else weighted."""
    return "cohen_kappa" if coded.level == "nominal" else f"weighted_kappa_{coded.ordered}"


def pair_tables(coded: Coded, pairs: Pairs, resamples: Resamples) -> Array:
    """Return tables (rows, pairs, q, q) of the pairs' shared units in every resample; for numbers
    (rows, pairs, cells). Callers pass few enough `pairs` for memory.
    """
    measurement = measurement_of(coded)
    # Pairs come last: sums over cells then run along contiguous pairs.
    cluster_tables = np.empty((resamples.n_types, measurement.n_cells, len(pairs)))
    step = max(1, CHUNK_CELLS // max(1, len(coded.codes)))
    for start in range(0, len(pairs), step):
        chunk = slice(start, start + step)
        first, second = (coded.codes[:, list(rater)] for rater in zip(*pairs[chunk], strict=True))
        cluster_tables[:, :, chunk] = measurement.cluster_tables(
            coded.clusters, first, second, resamples.mass, None
        )
    return _as_tables(measurement.shape, resamples.to_rows(cluster_tables))


def _as_tables(shape: tuple[int, ...], cells: Numbers) -> Array:
    """Return cells (rows, cells, tables) as tables of this shape, (rows, tables, *shape)."""
    rows, _, n_tables = cells.shape
    return np.asarray(np.moveaxis(cells.reshape(rows, *shape, n_tables), -1, 1))


def data_table(coded: Coded, a: int, b: int, resamples: Resamples) -> Array:
    """Return the contingency table (q, q) of two raters in the data, without resamples."""
    shared = coded.labelled[:, a] & coded.labelled[:, b]
    cell = coded.codes[shared, a].astype(np.intp) * coded.q + coded.codes[shared, b]
    weights = resamples.frequency[coded.clusters[shared]]
    return np.bincount(cell, weights, minlength=coded.q**2).astype(float).reshape(coded.q, coded.q)


def listed_raters(coded: Coded) -> tuple[int, ...]:
    """Return the raters whose pairs have rows: all raters, or if these are many, the graders."""
    all_raters, graders = tuple(range(len(coded.raters))), coded.members("model")
    if len(all_raters) <= MAX_LISTED_RATERS:
        return all_raters
    return graders if len(graders) <= MAX_LISTED_RATERS else ()


def pairs_that_meet(coded: Coded, raters: Sequence[int]) -> Pairs:
    """Return the pairs of raters that share units."""
    labelled = coded.labelled
    return [(a, b) for a, b in combinations(raters, 2) if (labelled[:, a] & labelled[:, b]).any()]


class MeanOverTables:
    """Mean of a statistic over tables of raters, weighted by their sizes, added chunk by chunk.
    Tables for which it is undefined in the data are left out; `n_left_out` is their number.
    `pooled` is True if raters share a table.
    """

    def __init__(self, rows: int, *, pooled: bool = False) -> None:
        self._total, self._size, self._n_defined = np.zeros((3, rows))
        self.n_left_out, self.pooled = 0, pooled

    def add(self, values: Array, sizes: Array | None = None) -> None:
        """Add replicates (rows, tables) of more tables, by default with equal `sizes`."""
        is_defined = ~np.isnan(values[0])
        is_empty = np.zeros_like(is_defined) if sizes is None else sizes[0] == 0
        self.n_left_out += int((~is_defined & ~is_empty).sum())  # empty tables are not counted
        replicates = values[:, is_defined]
        has_value = ~np.isnan(replicates)
        size = has_value * (1.0 if sizes is None else sizes[:, is_defined])
        self._total += np.where(has_value, replicates * size, 0.0).sum(axis=1)
        self._size += size.sum(axis=1)
        self._n_defined += has_value.sum(axis=1)

    @property
    def values(self) -> Array:
        """Replicates of the mean (rows,)."""
        return ratio(self._total, self._size)

    @property
    def undefined(self) -> float:
        """Share of undefined values among the resampled values of the tables in the mean."""
        n_values = self._n_defined[0] * (len(self._n_defined) - 1)  # tables times resamples
        return 1.0 - float(self._n_defined[1:].sum() / n_values) if n_values else 0.0

    @property
    def n_tables(self) -> int:
        """Number of tables that the mean is over."""
        return int(self._n_defined[0])

    @property
    def pairs_in_words(self) -> str:
        """Phrase with the number of pairs of raters that the mean is over; "" if pooled."""
        if self.pooled or not self.n_tables:
            return ""
        several = f"mean over {self.n_tables} pairs of raters"
        return several if self.n_tables > 1 else "1 pair of raters"

    @property
    def note(self) -> Remarks:
        """Remarks on the tables that the mean is over and those for which it is undefined."""
        undefined = ""
        if self.n_left_out:
            n_all = self.n_left_out + self.n_tables
            undefined = f"undefined for {self.n_left_out} of {n_all} pairs of raters"
        pooled = Remark("pooled_pairs") if self.pooled else ""
        return join_notes(pooled, self.pairs_in_words, undefined)


def mean_over_pairs(
    coded: Coded, pairs: Pairs, resamples: Resamples, statistics: PairStatistics
) -> dict[str, MeanOverTables]:
    """Return the plain mean of each statistic over pairs of raters, in every resample."""
    means = {name: MeanOverTables(len(resamples)) for name in statistics}
    for _, tables in _table_chunks(coded, pairs, resamples):
        for name, statistic in statistics.items():
            means[name].add(statistic(tables))
    return means


def _table_chunks(
    coded: Coded, pairs: Pairs, resamples: Resamples
) -> Iterator[tuple[Pairs, Array]]:
    """Yield some pairs at a time with their `pair_tables`, so that memory stays bounded."""
    n_cells = measurement_of(coded).n_cells
    for chunk in _chunks(pairs, n_cells, max(len(resamples), resamples.n_types)):
        yield chunk, pair_tables(coded, chunk, resamples)


def _chunks(items: Sequence[T], n_cells: int, n_tables: int) -> Iterator[Sequence[T]]:
    """Yield some items at a time, so that `n_tables` tables of each item fit in memory."""
    step = max(1, CHUNK_CELLS // (n_cells * max(n_tables, 1)))
    for start in range(0, len(items), step):
        yield items[start : start + step]


def _pair_alpha(tables: Array, level: str, values: tuple[float, ...]) -> Array:
    """Return alpha (...) of two raters from their tables (..., q, q)."""
    return c.alpha(tables + np.swapaxes(tables, -1, -2), level, values)  # pairs in both orders


@dataclass(frozen=True)
class Overlap:
    """Labels of several raters on some units, and these raters' tables."""

    coded: Coded
    raters: tuple[int, ...]  # columns: first `individual`, then `pooled`
    units: Mask
    individual: tuple[int, ...]  # raters with individual tables
    pooled: tuple[int, ...]  # raters who share tables
    mass: Numbers  # weight of each cluster in the data, (clusters,)
    label_scale: float = 1.0  # makes the weights of labels in tables whole, for faster sums
    pair_scale: float = 1.0  # the same for the weights of pairs of labels

    @classmethod
    def of(
        cls, coded: Coded, resamples: Resamples, raters: Sequence[int], units: Mask | None = None
    ) -> Overlap:
        """Return the overlap of raters on `units`, or on all units that one of them labelled."""
        labelled = coded.labelled[:, list(raters)]
        labelled = labelled if units is None else labelled & units[:, None]
        unit, column = np.nonzero(labelled)  # positions of each label
        has_label = np.zeros(len(coded.codes), dtype=bool)
        has_label[unit] = True
        # Raters with labels on half of the units have individual tables, unless they are too many.
        unit_mass = resamples.mass[coded.clusters].astype(float)
        rater_mass = np.bincount(column, unit_mass[unit], minlength=len(raters))
        is_present = rater_mass > 0
        least_mass = INDIVIDUAL_SHARE * unit_mass[has_label].sum() * (1 - 1e-9)  # rounding errors
        is_individual = is_present & (rater_mass >= least_mass)
        if is_individual.sum() > MAX_INDIVIDUAL:
            is_individual[:] = False
        if (is_present & ~is_individual).sum() == 1:
            is_individual = is_present  # the only one left has nobody to share a table with
        columns = np.asarray(raters, dtype=np.intp)
        individual = tuple(columns[is_individual].tolist())
        pooled = tuple(columns[is_present & ~is_individual].tolist())
        sizes = np.unique(np.bincount(unit, minlength=len(has_label))[has_label])  # of units
        scales = _scale_to_whole(sizes), _scale_to_whole(sizes * (sizes - 1) // 2)
        raters = (*individual, *pooled)
        return cls(coded, raters, has_label, individual, pooled, resamples.mass, *scales)

    def tables_with_rater(self, codes: Integers, rows: int = 1) -> Iterator[Numbers]:
        """Yield the tables (clusters, cells, tables) of the raters with a further rater, whose
        labels are `codes` (units,): some at a time, so that `rows` resamples of them fit in memory.
        """
        coded, all_units = self.coded, np.arange(len(self.units))
        other_codes = np.where(self.units, codes, -1).astype(np.intp)[:, None]
        n_cells, n_tables = self._measurement.n_cells, max(len(self.mass), rows)  # for each rater
        for chunk in _chunks(self.individual, n_cells, n_tables):
            rater_codes = coded.codes[:, list(chunk)].astype(np.intp)
            other = np.broadcast_to(other_codes, rater_codes.shape)
            weight = self._label_weights(all_units, rater_codes)
            yield self._cluster_tables(all_units, rater_codes, other, weight)
        if self.pooled:
            unit, pooled_codes = self._pooled_labels
            weight = self._label_weights(unit, pooled_codes)
            yield self._cluster_tables(unit, pooled_codes, other_codes[unit], weight)

    def tables_among(self, rows: int = 1) -> Iterator[Numbers]:
        """Yield the tables of the raters with one another, as `tables_with_rater` does."""
        coded, all_units = self.coded, np.arange(len(self.units))
        unit_codes = np.where(self.units[:, None], coded.codes, -1)
        pairs, n_tables = list(combinations(self.individual, 2)), max(len(self.mass), rows)
        for chunk in _chunks(pairs, self._measurement.n_cells, n_tables):
            first, second = (
                unit_codes[:, list(rater)].astype(np.intp) for rater in zip(*chunk, strict=True)
            )
            weight = self._pair_weights(all_units, first, second)
            yield self._cluster_tables(all_units, first, second, weight)
        if not self.pooled:
            return
        unit, codes = self._pooled_labels
        for rater in self.individual:
            rater_codes = unit_codes[unit, rater].astype(np.intp)[:, None]
            weight = self._pair_weights(unit, rater_codes, codes)
            yield self._cluster_tables(unit, rater_codes, codes, weight)
        pooled_table = np.zeros((len(self.mass), self._measurement.n_cells, 1))
        for i, j in label_pairs(unit):
            weight = self._pair_weights(unit[i], codes[i], codes[j])
            half = np.full(codes[i].shape, 0.5) if weight is None else weight / 2.0
            # A half in either order of the two labels: the margins of the table are then equal.
            for first, second in ((codes[i], codes[j]), (codes[j], codes[i])):
                pooled_table += self._cluster_tables(unit[i], first, second, half)
        yield pooled_table

    def _cluster_tables(
        self, unit: Codes, first: Codes, second: Codes, weight: Array | None
    ) -> Numbers:
        """Return the tables of labels with units (n,), and codes and weights (n, tables)."""
        clusters = self.coded.clusters[unit]
        return self._measurement.cluster_tables(clusters, first, second, self.mass, weight)

    def _label_weights(self, unit: Codes, codes: Codes) -> Array | None:
        """Return scaled weights of labels of these units (n,), codes (n, raters); None if all 1.

        A label of a unit with m labels weighs 1 / m. If the third label was given because the first
        two differ (`tie_breaks`), only the first two count. Which two these were is unknown: each
        of the unit's D differing pairs is equally likely. A label that differs from d others is in
        d of these pairs, so that it weighs d / (2 D).
        """
        per_label = (self.label_scale * c.one_over(self.n_labels))[unit][:, None]
        weight: Array = np.broadcast_to(per_label, codes.shape)
        if not self.coded.tie_breaks:
            return None if self._is_unweighted else weight
        n_labels, n_pairs = self.n_labels[unit][:, None], self._n_differing_pairs[unit][:, None]
        n_differing = n_labels - self._label_counts[unit[:, None], codes]
        tie_break_weight = self.label_scale * (n_differing / np.maximum(2.0 * n_pairs, 1.0))
        return np.where(n_labels > 2, tie_break_weight, weight)

    def _pair_weights(self, unit: Codes, first: Codes, second: Codes) -> Array | None:
        """Return scaled weights of pairs of labels of these units, codes (n, pairs); None if all 1.

        A pair of a unit with m labels weighs 2 / (m (m - 1)). If third labels were given because
        the first two differ, only the D differing pairs count, 1 / D each (see `_label_weights`).
        """
        per_pair = (self.pair_scale * c.one_over(self.n_labels * (self.n_labels - 1) // 2))[unit]
        weight: Array = np.broadcast_to(per_pair[:, None], first.shape)
        if not self.coded.tie_breaks:
            return None if self._is_unweighted else weight
        n_labels, n_pairs = self.n_labels[unit][:, None], self._n_differing_pairs[unit][:, None]
        tie_break_weight = self.pair_scale * ((first != second) / np.maximum(n_pairs, 1.0))
        return np.where(n_labels > 2, tie_break_weight, weight)

    def sums_with_rater(self, codes: Integers) -> Array:
        """Return the sums (clusters, tables, 2 + 2q) of the tables with a further rater's `codes`
        (units,), from which kappa is bounded (`analysis.bootstrap.bounds.table_sums`).
        """
        return self._kappa_sums(self.tables_with_rater(codes)) / self.label_scale

    def sums_among(self) -> Array:
        """Return the sums (clusters, tables, 2 + 2q) of the tables of the raters with one another,
        in the order of `tables_without`.
        """
        return self._kappa_sums(self.tables_among()) / self.pair_scale

    def tables_without(self, rater: int) -> tuple[Mask, Mask]:
        """Return masks of the tables that do not involve an individual rater: of the tables of
        `sums_with_rater`, and of those of `sums_among`. For individual raters A, B and C and pooled
        raters P, the first are A, B, C and P, the second AB, AC, BC, AP, BP, CP and PP.
        """
        with_rater = [other != rater for other in self.individual]
        among = [rater not in pair for pair in combinations(self.individual, 2)]
        if self.pooled:
            with_rater = [*with_rater, True]
            among += with_rater
        return np.array(with_rater, dtype=bool), np.array(among, dtype=bool)

    def _kappa_sums(self, chunks: Iterator[Numbers]) -> Array:
        """Return the sums (clusters, tables, 2 + 2q) of tables (clusters, cells, tables)."""
        measurement = self._measurement
        sums = [np.zeros((len(self.mass), 0, 2 + 2 * len(measurement.distances)))]
        for cluster_tables in chunks:
            tables = _as_tables(measurement.shape, cluster_tables).astype(float)
            sums.append(measurement.kappa_sums(tables))
        return np.concatenate(sums, axis=1)

    def on_units(self, chosen: Codes) -> Overlap:
        """Return the overlap on some of the units (positions), each a cluster of its own."""
        codes, clusters = self.coded.codes[chosen], np.arange(len(chosen))
        coded = replace(self.coded, codes=codes, clusters=clusters)
        mass = self.mass[self.coded.clusters[chosen]]
        return replace(self, coded=coded, units=self.units[chosen], mass=mass)

    def without(self, rater: int) -> Overlap:
        """Return the overlap without a rater's labels, on the units that keep two labels, so that
        they still have a pair. If some units have a single label even now, because raters are only
        compared with a grader, one label is enough.
        """
        codes = self.coded.codes.copy()
        codes[:, rater] = -1
        others = replace(self, coded=replace(self.coded, codes=codes))
        min_labels = min(int(self.n_labels[self.units].min(initial=2)), 2)
        return replace(others, units=self.units & (others.n_labels >= min_labels))

    @cached_property
    def n_labels(self) -> Codes:
        """Number of the raters who labelled each unit, (units,); 0 outside."""
        labelled = self.coded.labelled[:, list(self.raters)]
        return np.where(self.units, labelled.sum(axis=1), 0).astype(np.intp)

    @cached_property
    def _measurement(self) -> CategoryMeasurement | NumberMeasurement:
        return measurement_of(self.coded)

    @cached_property
    def _is_unweighted(self) -> bool:
        """True if every label and every pair has the weight 1."""
        sizes = np.unique(self.n_labels[self.units])  # numbers of labels of a unit
        n_pairs = np.maximum(sizes * (sizes - 1) // 2, 1)
        scales = (self.label_scale, self.pair_scale)  # these times 1 / size and 1 / pairs are 1
        return len(sizes) == 1 and scales == (sizes[0], n_pairs[0])

    @cached_property
    def _pooled_labels(self) -> tuple[Codes, Codes]:
        """Units (labels,) and codes (labels, 1) of the pooled raters' labels, in order of units."""
        columns = np.asarray(self.pooled, dtype=np.intp)
        unit, rater = np.nonzero(self.coded.labelled[:, columns] & self.units[:, None])
        return unit, self.coded.codes[unit, columns[rater]].astype(np.intp)[:, None]

    @cached_property
    def _label_counts(self) -> Array:
        """Number of the raters who chose each category, (units, q)."""
        return c.label_counts(self.coded, self.raters)

    @cached_property
    def _n_differing_pairs(self) -> Array:
        """Number of pairs of labels that differ, (units,)."""
        return np.asarray((self.n_labels**2 - (self._label_counts**2).sum(axis=1)) / 2.0)


def _scale_to_whole(divisors: Codes) -> float:
    """Return a factor that makes 1 over each of the `divisors` whole; 1 if it is too large."""
    common = math.lcm(*divisors[divisors > 0].tolist())
    return float(common) if common <= _LARGEST_SCALE else 1.0


def label_pairs(unit: Codes) -> Iterator[tuple[Codes, Codes]]:
    """Yield the positions of all pairs of labels of one unit, from sorted units (labels,)."""
    for distance in range(1, len(unit)):
        first = np.flatnonzero(unit[distance:] == unit[:-distance])
        if not len(first):  # no unit has labels that are so far apart, or further
            return
        yield first, first + distance


class KappaMeans:
    """Means of kappas over the tables of raters, cached by set of raters and units: the kappa among
    people is needed for people's rows, and as the ceiling that every grader is compared with.
    """

    def __init__(
        self, coded: Coded, resamples: Resamples, names: Sequence[str] = OVER_PAIRS
    ) -> None:
        self.coded, self.resamples = coded, resamples
        panel = measurement_of(coded).statistics()
        self._statistics = {name: panel[name] for name in names if name in panel}
        self._means_among: dict[tuple[tuple[int, ...], bytes], dict[str, MeanOverTables]] = {}

    def with_rater(
        self, raters: Sequence[int], grader: int, units: Mask
    ) -> dict[str, MeanOverTables]:
        """Return the means of the kappas over raters with a grader, by name."""
        overlap = Overlap.of(self.coded, self.resamples, raters, units)
        return means_with(overlap, self.coded.codes[:, grader], self.resamples, self._statistics)

    def among(self, raters: Sequence[int], units: Mask | None = None) -> dict[str, MeanOverTables]:
        """Return the means of the kappas among raters, by name, on `units` (units,) or all."""
        pairable = self.coded.labelled[:, list(raters)].sum(axis=1) >= 2
        units = pairable if units is None else pairable & units
        key = tuple(raters), units.tobytes()
        if key not in self._means_among:
            overlap = Overlap.of(self.coded, self.resamples, raters, units)
            chunks = overlap.tables_among(len(self.resamples))
            self._means_among[key] = means_of(overlap, chunks, self.resamples, self._statistics)
        return self._means_among[key]


def means_with(
    overlap: Overlap, codes: Integers, resamples: Resamples, statistics: PairStatistics
) -> dict[str, MeanOverTables]:
    """Return means of statistics over raters with a further rater's labels, `codes` (units,)."""
    chunks = overlap.tables_with_rater(codes, len(resamples))
    return means_of(overlap, chunks, resamples, statistics)


def means_of(
    overlap: Overlap, chunks: Iterator[Numbers], resamples: Resamples, statistics: PairStatistics
) -> dict[str, MeanOverTables]:
    """Return the mean of each statistic over the cluster tables in `chunks`, in every resample."""
    measurement, pooled = measurement_of(overlap.coded), bool(overlap.pooled)
    means = {name: MeanOverTables(len(resamples), pooled=pooled) for name in statistics}
    for cluster_tables in chunks:
        tables = _as_tables(measurement.shape, resamples.to_rows(cluster_tables))
        # The scale of weights is still in both: statistics and their mean are the same with it.
        sizes = measurement.square_tables(tables).sum((-2, -1))
        for name, statistic in statistics.items():
            means[name].add(statistic(tables), sizes)
    return means


def compared_units(
    coded: Coded, resamples: Resamples, people: Sequence[int], grader: int, min_people: int = 2
) -> tuple[Mask, bool]:
    """Return two results: the mask (units,) of units on which a grader is compared with people, and
    True if each has labels of two people, so that people's agreement is known on the same units.

    If fewer than `MIN_SHARED_UNITS` units have labels of the grader and two people, or if
    `min_people` is 1, the label of one person is enough.
    """
    n_people = np.where(coded.labelled[:, grader], coded.labelled[:, list(people)].sum(axis=1), 0)
    if min_people == 2:
        has_two = np.asarray(n_people >= 2)
        if resamples.count(coded.clusters, has_two)[0] >= MIN_SHARED_UNITS:
            return has_two, True
    return np.asarray(n_people >= 1), False


def add_pair_rows(view: View, prefix: str = "") -> None:
    """Add rows for every pair of listed raters that share units. With a `prefix` of the statistics'
    names, labels are verdicts on pairs of responses, and only agreement and kappa have rows.
    """
    coded, raters, measurement = view.coded, view.coded.raters, measurement_of(view.coded)
    statistics = _chosen_statistics(measurement.statistics(), prefix)
    pairs = pairs_that_meet(coded, listed_raters(coded))
    for chunk, tables in _table_chunks(coded, pairs, view.resamples):
        data = measurement.square_tables(tables[0])  # row 0: without resampling
        n_used_by_first, n_used_by_second = ((data.sum(axis) > 0).sum(-1) for axis in (-1, -2))
        is_constant = (n_used_by_first == 1) | (n_used_by_second == 1)
        counts = [view.count(coded.labelled[:, a] & coded.labelled[:, b]) for a, b in chunk]
        for name, statistic in statistics.items():
            values = statistic(tables)
            # With chance agreement from each rater's shares, a constant rater's coefficient is 0.
            has_remark = is_constant & entry_for(name).own_margins & ~np.isnan(values[0])
            for k, (a, b) in enumerate(chunk):
                note = Remark("constant_rater") if has_remark[k] else ""
                about = About(a=raters[a], b=raters[b], note=note)
                view.add(prefix + name, values[:, k], counts[k], **about)


def _chosen_statistics(
    statistics: PairStatistics, prefix: str, names: Sequence[str] = ()
) -> dict[str, c.PairStatistic]:
    """Return agreement and kappa if there is a `prefix`, else the statistics in `names`, or all."""
    chosen = ("observed_agreement", "cohen_kappa") if prefix else (names or tuple(statistics))
    return {name: statistics[name] for name in chosen if name in statistics}


def add_humans_rows(view: View, prefix: str = "", names: Sequence[str] = ()) -> None:
    """Add rows of each grader with humans, as means over the humans: all statistics, or `names`.
    A `prefix` is that of `add_pair_rows`, and is not combined with `names`.
    """
    coded, resamples = view.coded, view.resamples
    statistics = _chosen_statistics(measurement_of(coded).statistics(), prefix, names)
    for grader in coded.members("model"):
        people = coded.humans_not_copied(grader)
        units, _ = compared_units(coded, resamples, people, grader)
        if not units.any():
            continue
        counts, codes = view.count(units), coded.codes[:, grader]
        is_constant = len(np.unique(codes[units])) == 1
        overlap = Overlap.of(coded, resamples, people, units)
        for name, mean in means_with(overlap, codes, resamples, statistics).items():
            remark = Remark("constant_rater") if is_constant and entry_for(name).own_margins else ""
            note = join_notes(remark, mean.note, few_units_note(counts))
            about = About(a="humans", b=coded.raters[grader], note=note)
            view.add(prefix + name, mean.values, counts, undefined=mean.undefined, **about)


def few_units_note(counts: tuple[int, int]) -> str:
    """Return a note if there are fewer than 30 units, else ""; `counts` are (units, clusters)."""
    return f"fewer than {MIN_SHARED_UNITS} items" if counts[0] < MIN_SHARED_UNITS else ""
