"""Agreement of two raters, and its mean over many pairs of raters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement import numbers
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Remark, Remarks, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.types import Array, Integers, Mask, Numbers
from evenhand.analysis.writer import Writer

PairStatistic = Callable[[Array], Array]
Pairs = Sequence[tuple[int, int]]

MAX_LISTED_RATERS = 12
"""Above this many raters, pairs with a human have pooled rows only."""
MEANS_OVER_PAIRS = ("cohen_kappa", "weighted_kappa_linear", "weighted_kappa_quadratic", "scott_pi")
"""Statistics of two raters that a group has as a mean over its pairs."""
MIN_SHARED_UNITS = 30
"""Pairs of raters that share fewer units are left out of means over pairs."""

_CHUNK_CELLS = 1_000_000


def pair_statistics(coded: Coded) -> dict[str, PairStatistic]:
    """Return the panel for one pair of raters, by name: functions of tables (..., q, q)."""
    if coded.is_number:
        return _number_statistics(coded)
    linear, quadratic = (c.agreement_weights(coded.q, kind) for kind in ("linear", "quadratic"))
    panel: dict[str, PairStatistic] = {
        "observed_agreement": c.observed_agreement,
        "cohen_kappa": c.cohen_kappa,
    }
    if coded.level != "nominal":
        panel["weighted_kappa_linear"] = lambda tables: c.cohen_kappa(tables, linear)
        panel["weighted_kappa_quadratic"] = lambda tables: c.cohen_kappa(tables, quadratic)
    panel |= {"scott_pi": c.scott_pi, "gwet_ac1": c.gwet_ac}
    if coded.level != "nominal":
        panel["gwet_ac2"] = lambda tables: c.gwet_ac(tables, quadratic)
    panel["brennan_prediger"] = c.brennan_prediger
    panel |= {
        f"krippendorff_alpha_{level}": _alpha_of_two(level, coded.values)
        for level in alpha_levels(coded)
    }
    if coded.is_binary:
        panel |= {"prevalence_index": c.prevalence_index, "bias_index": c.bias_index}
    return panel


def _number_statistics(coded: Coded) -> dict[str, PairStatistic]:
    """The panel for numbers: functions of tables (..., 3, 3)."""
    span, apart = float(np.ptp(coded.values)), 1.0 - numbers.AGREEMENT
    return {
        "weighted_kappa_quadratic": lambda tables: c.cohen_kappa(tables, numbers.AGREEMENT),
        "krippendorff_alpha_interval": lambda tables: c.alpha_with(
            tables + np.swapaxes(tables, -1, -2), apart
        ),
        "icc_a1": lambda tables: numbers.squares_of_two(tables).agreement,
        "icc_c1": lambda tables: numbers.squares_of_two(tables).consistency,
        "mean_difference": lambda tables: numbers.mean_difference(tables, span),
        "rms_difference": lambda tables: numbers.root_mean_square_difference(tables, span),
    }


def agreement_between(coded: Coded) -> Array:
    """Agreement weights (width, width) of the kappa that verdicts use."""
    if coded.is_number:
        return numbers.AGREEMENT
    return c.agreement_weights(coded.q, "identity" if coded.level == "nominal" else "quadratic")


def alpha_levels(coded: Coded) -> tuple[str, ...]:
    """Return the levels of alpha: nominal always, the metric ones for ordered categories.

    On an ordinal scale the interval metric assumes equal steps, as quadratic weights do.
    """
    if coded.is_number:
        return ("interval",)
    return ("nominal",) if coded.level == "nominal" else ("nominal", "ordinal", "interval")


def deciding_kappa(coded: Coded) -> str:
    """Return the kappa that verdicts use: unweighted for nominal data, else quadratic."""
    return "cohen_kappa" if coded.level == "nominal" else "weighted_kappa_quadratic"


def pair_tables(
    coded: Coded,
    pairs: Pairs,
    resamples: Resamples,
    within: Mask | None = None,
) -> Array:
    """Contingency tables (rows, pairs, q, q) of the pairs' shared units in every resample; of
    numbers (rows, pairs, 3, 3).

    `within` (units,) restricts the units. Callers keep `pairs` short enough for memory.
    """
    q, n_types = coded.width, resamples.n_types
    # Pairs last in memory: sums over a table's cells then run along contiguous pairs.
    exact = np.float64 if coded.is_number else np.float32
    features = np.empty((n_types, q * q, len(pairs)), dtype=exact)
    codes = coded.codes if within is None else np.where(within[:, None], coded.codes, -1)
    step = max(1, _CHUNK_CELLS // max(1, len(codes)))
    for start in range(0, len(pairs), step):
        some = slice(start, start + step)
        first, second = (codes[:, list(raters)] for raters in zip(*pairs[some], strict=True))
        features[:, :, some] = cluster_tables(coded, first, second, n_types)
    totals = resamples.totals(features).reshape(len(resamples), q, q, len(pairs))
    return np.moveaxis(totals, -1, 1)


def cluster_tables(coded: Coded, first: Integers, second: Integers, n_clusters: int) -> Numbers:
    """The cells (clusters, width^2, pairs) of each cluster's tables of two raters' codes
    (units, pairs), -1 missing.
    """
    both, q, pairs = (first >= 0) & (second >= 0), coded.width, first.shape[1]
    if coded.is_number:
        tables = [
            _number_table(coded, first[:, k], second[:, k], both[:, k], n_clusters)
            for k in range(pairs)
        ]
        return np.stack(tables, axis=-1)
    left_out = n_clusters * q * q * pairs
    cell = (coded.clusters.astype(np.intp) * q)[:, None] + first
    cell = (cell * q + second) * pairs + np.arange(pairs)
    cell = np.where(both, cell, left_out).ravel()
    return np.bincount(cell, minlength=left_out + 1)[:-1].reshape(n_clusters, q * q, pairs)


def _number_table(
    coded: Coded, first: Integers, second: Integers, both: Mask, n_clusters: int
) -> Numbers:
    """The sums (clusters, width^2) of two raters' numbers, by codes (units,)."""
    clusters = coded.clusters[both]
    first, second = first[both].astype(np.intp), second[both].astype(np.intp)
    sides = coded.sides[first][:, :, None] * coded.sides[second][:, None, :]
    cells = sides.reshape(len(sides), -1)
    return np.column_stack([np.bincount(clusters, each, n_clusters) for each in cells.T])


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


def shared_units(coded: Coded, resamples: Resamples, within: Mask | None = None) -> Integers:
    """Count the units that each two raters share, (raters, raters)."""
    held = coded.labelled if within is None else coded.labelled & within[:, None]
    held = held.astype(np.float64)
    shared = held.T @ (held * resamples.frequency[coded.clusters][:, None])
    return shared.astype(np.int64)


def eligible_pairs(pairs: Pairs, shared: Integers) -> tuple[Pairs, str]:
    """Return the pairs that share at least 30 units, else all that share any; with a note."""
    enough = [pair for pair in pairs if shared[pair] >= MIN_SHARED_UNITS]
    if enough:
        left_out = sum(1 for pair in pairs if 0 < shared[pair] < MIN_SHARED_UNITS)
        note = f"{left_out} left out: under {MIN_SHARED_UNITS} shared units" if left_out else ""
        return enough, note
    some = [pair for pair in pairs if shared[pair] > 0]
    return some, f"no pair of raters shares {MIN_SHARED_UNITS} units" if some else ""


@dataclass(frozen=True)
class MeanOverPairs:
    """Plain mean of a statistic over pairs of raters: replicates (rows,) and the pairs behind it.

    Pairs undefined in the data are left out; `undefined` is the share of the other pairs' resampled
    values that were undefined and so missing from a resample's mean.
    """

    values: Array
    undefined: float
    n_pairs: int
    n_undefined_pairs: int

    @property
    def over(self) -> str:
        """The number of pairs that the mean is over, in words."""
        if self.n_pairs > 1:
            return f"mean over {self.n_pairs} pairs of raters"
        return "1 pair of raters" if self.n_pairs else ""

    @property
    def note(self) -> Remarks:
        """Remarks on the pairs that the mean is over and those for which it is undefined."""
        lost = ""
        if self.n_undefined_pairs:
            lost = f"undefined for {self.n_undefined_pairs} of "
            lost += f"{self.n_pairs + self.n_undefined_pairs} pairs of raters"
        return join_notes(self.over, lost)


def mean_over_pairs(
    coded: Coded,
    pairs: Pairs,
    resamples: Resamples,
    statistics: Mapping[str, PairStatistic],
    within: Mask | None = None,
) -> dict[str, MeanOverPairs]:
    """Return the mean of each statistic over the pairs, in every resample."""
    means = {name: RunningMean(len(resamples)) for name in statistics}
    for _, tables in table_chunks(coded, pairs, resamples, within):
        for name, statistic in statistics.items():
            means[name].add(statistic(tables))
    return {name: mean.result() for name, mean in means.items()}


class RunningMean:
    """Accumulator of replicates (rows, pairs) of one statistic, chunk by chunk, into their mean."""

    def __init__(self, rows: int) -> None:
        self._total, self._defined = np.zeros(rows), np.zeros(rows)
        self._undefined_pairs = 0

    def add(self, values: Array) -> None:
        """Add more pairs; those undefined in the data (row 0) are counted and left out."""
        defined = values[:, ~np.isnan(values[0])]
        self._undefined_pairs += values.shape[1] - defined.shape[1]
        held = ~np.isnan(defined)
        self._total += np.where(held, defined, 0.0).sum(axis=1)
        self._defined += held.sum(axis=1)

    def result(self) -> MeanOverPairs:
        """Return the mean over all pairs added."""
        held = self._defined
        wanted = held[0] * (len(held) - 1)
        return MeanOverPairs(
            values=np.divide(self._total, held, out=np.full(len(held), np.nan), where=held > 0),
            undefined=1.0 - float(held[1:].sum() / wanted) if wanted else 0.0,
            n_pairs=int(held[0]),
            n_undefined_pairs=self._undefined_pairs,
        )


class KappaMeans:
    """Mean kappas over pairs of raters, computed once for each set of pairs and units.

    The mean kappa among humans is needed for their own rows and for every grader's ceiling, mostly
    on the same units; with many raters it is the most expensive computation of all.
    """

    def __init__(
        self, coded: Coded, resamples: Resamples, names: Sequence[str] = MEANS_OVER_PAIRS
    ) -> None:
        self.coded, self.resamples = coded, resamples
        panel = pair_statistics(coded)
        self._statistics = {name: panel[name] for name in names if name in panel}
        self._known: dict[tuple[Pairs, bytes], dict[str, MeanOverPairs]] = {}

    def over(self, pairs: Pairs, within: Mask | None = None) -> dict[str, MeanOverPairs]:
        """Return `mean_over_pairs` of the kappas, by name."""
        raters = sorted({rater for pair in pairs for rater in pair})
        pairable = self.coded.labelled[:, raters].sum(axis=1) >= 2
        units = pairable if within is None else pairable & within
        key = (tuple(pairs), units.tobytes())
        if key not in self._known:
            self._known[key] = mean_over_pairs(
                self.coded, pairs, self.resamples, self._statistics, units
            )
        return self._known[key]


def table_chunks(
    coded: Coded,
    pairs: Pairs,
    resamples: Resamples,
    within: Mask | None = None,
) -> Iterator[tuple[Pairs, Array]]:
    """Yield `pair_tables` of some pairs at a time, so that memory stays bounded."""
    cells = coded.width**2 * max(len(resamples), resamples.n_types)
    step = max(1, _CHUNK_CELLS // cells)
    for start in range(0, len(pairs), step):
        chunk = pairs[start : start + step]
        yield chunk, pair_tables(coded, chunk, resamples, within)


def _alpha_of_two(level: str, values: tuple[float, ...]) -> PairStatistic:
    """Alpha of two raters: every shared unit adds its two labels once in each order."""
    return lambda tables: c.alpha(tables + np.swapaxes(tables, -1, -2), level, values)


def add_pair_rows(rows: ResultRows, coded: Coded, resamples: Resamples, prefix: str = "") -> None:
    """Add rows for every pair of listed raters that share units.

    `prefix` goes before the statistics' names, for labels of something other than single units.
    """
    raters = coded.raters
    out, shared = Writer.of(rows, coded, resamples), shared_units(coded, resamples)
    pairs = [pair for pair in combinations(listed_raters(coded), 2) if shared[pair] > 0]
    statistics = _chosen(pair_statistics(coded), prefix)
    for chunk, tables in table_chunks(coded, pairs, resamples):
        constant = c.constant_raters(tables[0])
        both = [out.count(coded.labelled[:, a] & coded.labelled[:, b]) for a, b in chunk]
        for name, statistic in statistics.items():
            values = statistic(tables)
            flagged = constant & entry_for(name).own_margins & ~np.isnan(values[0])
            for k, (a, b) in enumerate(chunk):
                note = Remark("constant_rater") if flagged[k] else ""
                out.add(prefix + name, values[:, k], both[k], a=raters[a], b=raters[b], note=note)


def add_humans_rows(
    rows: ResultRows,
    coded: Coded,
    resamples: Resamples,
    prefix: str = "",
    names: Sequence[str] = (),
    kind: str = "model",
) -> None:
    """Add rows of each grader, or rater of another kind, with humans: means over the humans.

    Only the statistics in `names`, if any are given.
    """
    out, shared = Writer.of(rows, coded, resamples), shared_units(coded, resamples)
    statistics = _chosen(pair_statistics(coded), prefix, names)
    for grader in coded.members(kind):
        humans = coded.people_beside(grader)
        pairs, about = eligible_pairs([(human, grader) for human in humans], shared)
        if not pairs:
            continue
        people = [human for human, _ in pairs]
        either = coded.labelled_by_any(people) & coded.labelled[:, grader]
        units, used = out.count(either), set(coded.codes[either, grader].tolist())
        for name, mean in mean_over_pairs(coded, pairs, resamples, statistics).items():
            constant = len(used) == 1 and entry_for(name).own_margins
            out.add(
                prefix + name,
                mean.values,
                units,
                undefined=mean.undefined,
                a="humans",
                b=coded.raters[grader],
                note=join_notes(Remark("constant_rater") if constant else "", mean.note, about),
            )


def _chosen(
    statistics: dict[str, PairStatistic], prefix: str, names: Sequence[str] = ()
) -> dict[str, PairStatistic]:
    """Return the statistics in `names`, or all; with a prefix only agreement and kappa.

    A prefix marks the overall verdicts of a study, for which these two are enough.
    """
    wanted = ("observed_agreement", "cohen_kappa") if prefix else (names or tuple(statistics))
    return {name: statistics[name] for name in wanted if name in statistics}
