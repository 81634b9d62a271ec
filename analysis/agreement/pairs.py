"""Agreement of two raters, and its mean over many pairs of raters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement import numbers
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Remark, Remarks, join_notes
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.types import Array, Codes, Integers, Numbers
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
    """Return the panel for one pair of raters, by name: functions of tables (..., q, q)."""
    if coded.is_number:
        return _number_statistics(coded)
    linear, quadratic = (c.agreement_weights(coded.q, kind) for kind in ("linear", "quadratic"))
    panel: dict[str, PairStatistic] = {
        "observed_agreement": c.observed,
        "cohen_kappa": c.kappas,
    }
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
        "mean_difference": lambda moments: numbers.mean_difference(moments, span),
        "rms_difference": lambda moments: numbers.root_mean_square_difference(moments, span),
    }

    def on_tables(statistic: PairStatistic) -> PairStatistic:
        return lambda tables: statistic(numbers.moments(tables))

    panel: dict[str, PairStatistic] = {
        "weighted_kappa_linear": lambda tables: numbers.linear_kappa(tables, coded.grid[1])
    }
    return panel | {name: on_tables(statistic) for name, statistic in of_moments.items()}


def alpha_levels(coded: Coded) -> tuple[str, ...]:
    """Return the levels of alpha: nominal always, the metric ones for ordered categories.

    On an ordinal scale the interval metric assumes equal steps, as quadratic weights do.
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
    """Tables (rows, pairs, q, q) of the pairs' shared units in every resample; of numbers
    (rows, pairs, cells).

    Callers keep `pairs` short enough for memory.
    """
    # Pairs last in memory: sums over a table's cells then run along contiguous pairs.
    exact = np.float64 if coded.is_number else np.float32
    features = np.empty((resamples.n_types, coded.cells, len(pairs)), dtype=exact)
    step = max(1, CHUNK_CELLS // max(1, len(coded.codes)))
    for start in range(0, len(pairs), step):
        some = slice(start, start + step)
        first, second = (coded.codes[:, list(raters)] for raters in zip(*pairs[some], strict=True))
        features[:, :, some] = cluster_tables(
            coded, coded.clusters, first, second, resamples.n_types
        )
    return as_tables(coded, resamples.totals(features))


def as_tables(coded: Coded, totals: Array) -> Array:
    """Return sums (rows, cells, tables) as tables (rows, tables, q, q); of numbers
    (rows, tables, cells).
    """
    rows, _, tables = totals.shape
    shape = (rows, coded.cells, tables) if coded.is_number else (rows, coded.q, coded.q, tables)
    return np.asarray(np.moveaxis(totals.reshape(shape), -1, 1))


def table_sizes(coded: Coded, tables: Array) -> Array:
    """Return what each table (..., q, q) holds in all; of numbers, (..., cells)."""
    return np.asarray((numbers.moments(tables) if coded.is_number else tables).sum((-2, -1)))


def cluster_tables(
    coded: Coded,
    clusters: Codes,
    first: Integers,
    second: Integers,
    n_clusters: int,
    weight: Array | None = None,
) -> Numbers:
    """The cells (clusters, cells, pairs) of each cluster's tables of two raters' codes
    (units, pairs), -1 missing, weighted by `weight` (units, pairs); `clusters` (units,) are the
    units'.
    """
    both, q, pairs = (first >= 0) & (second >= 0), coded.q, first.shape[1]
    if coded.is_number:
        tables = []
        for k, held in enumerate(both.T):
            sides = first[held, k].astype(np.intp), second[held, k].astype(np.intp)
            own = None if weight is None else weight[held, k]
            tables.append(numbers.cluster_cells(coded, clusters[held], *sides, n_clusters, own))
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
    """Raters whose pairs have rows of their own.

    All raters where they are few; else the graders, which are few even where humans are many.
    """
    for listed in (tuple(range(len(coded.raters))), coded.members("model")):
        if len(listed) <= MAX_LISTED_RATERS:
            return listed
    return ()


def pairs_that_meet(coded: Coded, raters: Sequence[int]) -> Pairs:
    """Return the pairs of raters that share units."""
    held = coded.labelled
    return [(a, b) for a, b in combinations(raters, 2) if (held[:, a] & held[:, b]).any()]


@dataclass(frozen=True)
class MeanOverTables:
    """Mean of a statistic over tables of raters: replicates (rows,) and the tables behind it.

    Tables undefined in the data are left out; `undefined` is the share of the other tables'
    resampled values that were undefined and so missing from a resample's mean. `pooled` is True
    where raters share a table.
    """

    values: Array
    undefined: float
    n_tables: int
    n_undefined: int
    pooled: bool = False

    @property
    def over(self) -> str:
        """The number of pairs of raters that the mean is over, in words."""
        if self.pooled:
            return ""
        if self.n_tables > 1:
            return f"mean over {self.n_tables} pairs of raters"
        return "1 pair of raters" if self.n_tables else ""

    @property
    def note(self) -> Remarks:
        """Remarks on the tables that the mean is over and those for which it is undefined."""
        lost = ""
        if self.n_undefined:
            lost = f"undefined for {self.n_undefined} of "
            lost += f"{self.n_tables + self.n_undefined} pairs of raters"
        return join_notes(Remark("pooled_pairs") if self.pooled else "", self.over, lost)


class RunningMean:
    """Accumulator of replicates (rows, tables) of one statistic, chunk by chunk, into their mean,
    in which each table counts by its size.
    """

    def __init__(self, rows: int, *, pooled: bool = False) -> None:
        self._total, self._size, self._defined = np.zeros((3, rows))
        self._undefined_tables, self._pooled = 0, pooled

    def add(self, values: Array, sizes: Array | None = None) -> None:
        """Add more tables; those undefined in the data (row 0) are counted and left out."""
        known = ~np.isnan(values[0])
        empty = False if sizes is None else sizes[0] == 0
        self._undefined_tables += int((~known & ~np.asarray(empty)).sum())
        defined = values[:, known]
        held = ~np.isnan(defined)
        size = held * (1.0 if sizes is None else sizes[:, known])
        self._total += np.where(held, defined * size, 0.0).sum(axis=1)
        self._size += size.sum(axis=1)
        self._defined += held.sum(axis=1)

    def result(self) -> MeanOverTables:
        """Return the mean over all tables added."""
        held, rows = self._defined, len(self._defined)
        wanted = held[0] * (rows - 1)
        return MeanOverTables(
            values=ratio(self._total, self._size),
            undefined=1.0 - float(held[1:].sum() / wanted) if wanted else 0.0,
            n_tables=int(held[0]),
            n_undefined=self._undefined_tables,
            pooled=self._pooled,
        )


def mean_over_pairs(
    coded: Coded, pairs: Pairs, resamples: Resamples, statistics: Mapping[str, PairStatistic]
) -> dict[str, MeanOverTables]:
    """Return the plain mean of each statistic over pairs of raters, in every resample."""
    means = {name: RunningMean(len(resamples)) for name in statistics}
    for _, tables in table_chunks(coded, pairs, resamples):
        for name, statistic in statistics.items():
            means[name].add(statistic(tables))
    return {name: mean.result() for name, mean in means.items()}


def table_chunks(coded: Coded, pairs: Pairs, resamples: Resamples) -> Iterator[tuple[Pairs, Array]]:
    """Yield `pair_tables` of some pairs at a time, so that memory stays bounded."""
    cells = coded.cells * max(len(resamples), resamples.n_types)
    step = max(1, CHUNK_CELLS // cells)
    for start in range(0, len(pairs), step):
        chunk = pairs[start : start + step]
        yield chunk, pair_tables(coded, chunk, resamples)


def _alpha_of_two(tables: Array, level: str, values: tuple[float, ...]) -> Array:
    """Alpha of two raters: every shared unit adds its two labels once in each order."""
    return c.alpha(tables + np.swapaxes(tables, -1, -2), level, values)


def add_pair_rows(view: View, prefix: str = "") -> None:
    """Add rows for every pair of listed raters that share units.

    `prefix` goes before the statistics' names, for labels of something other than single units.
    """
    coded, raters = view.coded, view.coded.raters
    pairs, statistics = pairs_that_meet(coded, listed_raters(coded)), pair_statistics(coded)
    for chunk, tables in table_chunks(coded, pairs, view.resamples):
        first = tables[0]
        constant = c.constant_raters(numbers.moments(first) if coded.is_number else first)
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
    """Return the statistics in `names`, or all; with a prefix only agreement and kappa.

    A prefix marks the overall verdicts of a study, for which these two are enough.
    """
    wanted = ("observed_agreement", "cohen_kappa") if prefix else (names or tuple(statistics))
    return {name: statistics[name] for name in wanted if name in statistics}
