"""Agreement of two raters, and its mean over many pairs of raters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from analysis import coefficients as c
from analysis.encoding import Coded
from analysis.resampling import Resamples, interval
from analysis.results import ResultRows, join_notes

__all__ = [
    "MAX_LISTED_RATERS",
    "MIN_SHARED_UNITS",
    "MeanOverPairs",
    "PairStatistic",
    "add_pair_rows",
    "ceiling_kappa",
    "eligible_pairs",
    "mean_over_pairs",
    "pair_statistics",
    "pair_tables",
    "shared_units",
]

Array = npt.NDArray[np.float64]
PairStatistic = Callable[[Array], Array]
Pairs = Sequence[tuple[int, int]]

MAX_LISTED_RATERS = 12
"""Above this many raters, pairs of raters appear pooled only."""
MIN_SHARED_UNITS = 30
"""Pairs of raters that share fewer units stay out of means over pairs."""

_CHUNK_CELLS = 4_000_000


def pair_statistics(coded: Coded) -> dict[str, PairStatistic]:
    """The panel for one pair of raters, by name: functions of tables (..., q, q)."""
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


def alpha_levels(coded: Coded) -> tuple[str, ...]:
    """Levels at which alpha is given: nominal always; the metric ones where there is an order.

    On an ordinal scale the interval metric takes equal steps for granted, as quadratic weights do.
    """
    return ("nominal",) if coded.level == "nominal" else ("nominal", "ordinal", "interval")


def ceiling_kappa(coded: Coded) -> PairStatistic:
    """The kappa that decides: unweighted on nominal data, quadratic where there is an order."""
    if coded.level == "nominal":
        return c.cohen_kappa
    quadratic = c.agreement_weights(coded.q, "quadratic")
    return lambda tables: c.cohen_kappa(tables, quadratic)


def pair_tables(
    coded: Coded,
    pairs: Pairs,
    resamples: Resamples,
    within: npt.NDArray[np.bool_] | None = None,
) -> Array:
    """Contingency tables (rows, pairs, q, q) of the pairs' shared units in every resample.

    `within` (units,) restricts the units. Callers keep `pairs` short enough for memory.
    """
    q, n_types = coded.q, resamples.n_types
    features = np.empty((n_types, len(pairs), q * q), dtype=np.float32)
    for k, (a, b) in enumerate(pairs):
        both = coded.labelled[:, a] & coded.labelled[:, b]
        both = both if within is None else both & within
        first, second = (coded.codes[both, rater].astype(np.intp) for rater in (a, b))
        cell = coded.clusters[both] * (q * q) + first * q + second
        features[:, k] = np.bincount(cell, minlength=n_types * q * q).reshape(n_types, q * q)
    return resamples.totals(features).reshape(len(resamples), len(pairs), q, q)


def shared_units(
    coded: Coded, resamples: Resamples, within: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.int64]:
    """How many units each two raters share, (raters, raters)."""
    held = coded.labelled if within is None else coded.labelled & within[:, None]
    held = held.astype(np.float64)
    shared = held.T @ (held * resamples.frequency[coded.clusters][:, None])
    return shared.astype(np.int64)


def eligible_pairs(pairs: Pairs, shared: npt.NDArray[np.int64]) -> tuple[Pairs, str]:
    """The pairs that share at least 30 units, else all that share any; and what to say of it."""
    enough = [pair for pair in pairs if shared[pair] >= MIN_SHARED_UNITS]
    if enough:
        left_out = sum(1 for pair in pairs if 0 < shared[pair] < MIN_SHARED_UNITS)
        note = f"{left_out} left out: under {MIN_SHARED_UNITS} shared units" if left_out else ""
        return enough, note
    some = [pair for pair in pairs if shared[pair] > 0]
    return some, f"no pair of raters shares {MIN_SHARED_UNITS} units" if some else ""


@dataclass(frozen=True)
class MeanOverPairs:
    """A statistic's plain mean over pairs of raters: replicates (rows,) and how it came about.

    Pairs undefined in the data are left out; `undefined` is the share of the other pairs' resampled
    values that were undefined and so missing from a resample's mean.
    """

    values: Array
    undefined: float
    n_pairs: int
    n_undefined_pairs: int

    @property
    def note(self) -> str:
        """What the mean is over."""
        pairs = "1 pair" if self.n_pairs == 1 else f"{self.n_pairs} pairs"
        lost = f"{self.n_undefined_pairs} undefined" if self.n_undefined_pairs else ""
        return join_notes(f"mean over {pairs} of raters", lost)


def mean_over_pairs(
    coded: Coded,
    pairs: Pairs,
    resamples: Resamples,
    statistics: Mapping[str, PairStatistic],
    within: npt.NDArray[np.bool_] | None = None,
) -> dict[str, MeanOverPairs]:
    """The mean of each statistic over the pairs, in every resample."""
    rows = len(resamples)
    total = {name: np.zeros(rows) for name in statistics}
    defined = {name: np.zeros(rows) for name in statistics}
    n_undefined = dict.fromkeys(statistics, 0)
    for _, tables in _table_chunks(coded, pairs, resamples, within):
        for name, statistic in statistics.items():
            values = statistic(tables)
            values = values[:, ~np.isnan(values[0])]
            n_undefined[name] += tables.shape[1] - values.shape[1]
            held = ~np.isnan(values)
            total[name] += np.where(held, values, 0.0).sum(axis=1)
            defined[name] += held.sum(axis=1)
    return {
        name: MeanOverPairs(
            values=np.divide(
                total[name], defined[name], out=np.full(rows, np.nan), where=defined[name] > 0
            ),
            undefined=_share_undefined(defined[name]),
            n_pairs=len(pairs) - n_undefined[name],
            n_undefined_pairs=n_undefined[name],
        )
        for name in statistics
    }


def add_pair_rows(rows: ResultRows, coded: Coded, resamples: Resamples, prefix: str = "") -> None:
    """Every pair of raters that share units (unless there are too many raters to list).

    `prefix` goes before the statistics' names, for labels that are not on single units.
    """
    if len(coded.raters) > MAX_LISTED_RATERS:
        return
    shared = shared_units(coded, resamples)
    pairs = [pair for pair in combinations(range(len(coded.raters)), 2) if shared[pair] > 0]
    statistics = _chosen(pair_statistics(coded), prefix)
    for chunk, tables in _table_chunks(coded, pairs, resamples):
        flags = c.constant_raters(tables[0])
        for name, statistic in statistics.items():
            values = statistic(tables)
            for k, (a, b) in enumerate(chunk):
                counts = resamples.count(
                    coded.clusters, coded.labelled[:, a] & coded.labelled[:, b]
                )
                rows.add(
                    prefix + name,
                    interval(values[:, k], counts[1]),
                    counts,
                    rater_a=coded.raters[a],
                    rater_b=coded.raters[b],
                    subset=coded.subset,
                    note="constant_rater" if flags[k] and "kappa" in name else "",
                )


def add_humans_rows(rows: ResultRows, coded: Coded, resamples: Resamples, prefix: str = "") -> None:
    """Each grader against people in general: the plain mean over the humans."""
    shared = shared_units(coded, resamples)
    humans = coded.members("human")
    statistics = _chosen(pair_statistics(coded), prefix)
    for grader in coded.members("model"):
        pairs, about = eligible_pairs([(human, grader) for human in humans], shared)
        if not pairs:
            continue
        people = [human for human, _ in pairs]
        either = coded.labelled[:, people].any(axis=1) & coded.labelled[:, grader]
        counts = resamples.count(coded.clusters, either)
        used = set(coded.codes[either, grader].tolist())
        for name, mean in mean_over_pairs(coded, pairs, resamples, statistics).items():
            constant = "constant_rater" if len(used) == 1 and "kappa" in name else ""
            rows.add(
                prefix + name,
                interval(mean.values, counts[1], undefined=mean.undefined),
                counts,
                rater_a="humans",
                rater_b=coded.raters[grader],
                subset=coded.subset,
                note=join_notes(constant, mean.note, about),
            )


def _chosen(statistics: dict[str, PairStatistic], prefix: str) -> dict[str, PairStatistic]:
    """With a prefix, only agreement and kappa: the two that speak of a study's overall verdicts."""
    if not prefix:
        return statistics
    return {name: statistics[name] for name in ("observed_agreement", "cohen_kappa")}


def _table_chunks(
    coded: Coded,
    pairs: Pairs,
    resamples: Resamples,
    within: npt.NDArray[np.bool_] | None = None,
) -> Iterator[tuple[Pairs, Array]]:
    cells = coded.q**2 * max(len(resamples), resamples.n_types)
    step = max(1, _CHUNK_CELLS // cells)
    for start in range(0, len(pairs), step):
        chunk = pairs[start : start + step]
        yield chunk, pair_tables(coded, chunk, resamples, within)


def _alpha_of_two(level: str, values: tuple[float, ...]) -> PairStatistic:
    """Alpha of two raters: every shared unit adds its two labels once in each order."""
    return lambda tables: c.alpha(tables + np.swapaxes(tables, -1, -2), level, values)


def _share_undefined(defined: Array) -> float:
    """Share of values missing from the resamples, among those defined in the data (row 0)."""
    wanted = defined[0] * (len(defined) - 1)
    return 1.0 - float(defined[1:].sum() / wanted) if wanted else 0.0
