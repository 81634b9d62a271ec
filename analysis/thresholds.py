"""Thresholds of probability graders: which one agrees best with a reference, and how sure that is.

The sweep is exact: verdicts change only at probabilities that occur, so every distinct one is
tried, besides the threshold in use and 1. Among equally good thresholds the one nearest to that in
use is taken. A tuned threshold looks better on the units it was tuned on than it is; the bootstrap
measures by how much (Efron & Tibshirani 1993, ch. 17).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis import coefficients as c
from analysis.encoding import BINARY, LabelMatrix
from analysis.folds import folds
from analysis.resampling import Interval, Resamples
from analysis.results import ResultRows, join_notes

__all__ = [
    "OBJECTIVES",
    "Candidates",
    "Reference",
    "Sweep",
    "add_threshold_rows",
    "best_of",
    "held_out_gain",
    "human_majority",
    "sweep",
]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

OBJECTIVES: dict[str, Callable[[Array], Array]] = {
    "kappa": c.cohen_kappa,
    "agreement": c.observed_agreement,
}
AT_THRESHOLD = {
    "kappa": "cohen_kappa_at_threshold",
    "agreement": "observed_agreement_at_threshold",
}
_SUBSET = "all" + BINARY
_SWEEP_CELLS = 2_000_000


@dataclass(frozen=True)
class Reference:
    """What a grader's threshold is tuned to: verdicts (units,), 1, 0 or -1, and a remark."""

    name: str
    verdicts: npt.NDArray[np.int8]
    note: str = ""


@dataclass(frozen=True)
class Sweep:
    """What tuning did in every resample: the threshold (rows,), its value there, and its value on
    the data as they are. Row 0 is the data."""

    threshold: Array
    tuned: Array
    transferred: Array

    @property
    def optimism(self) -> float:
        """How much better a tuned threshold looks where it was tuned, on average."""
        return float(np.nanmean((self.tuned - self.transferred)[1:]))


def human_majority(labels: LabelMatrix) -> Reference:
    """The humans' majority verdict on each unit; ties are left out and counted (in the data)."""
    verdicts = labels.verdicts[:, list(labels.humans)]
    positive, negative = ((verdicts == value).sum(axis=1) for value in (1, 0))
    majority = np.where(positive > negative, 1, np.where(negative > positive, 0, -1))
    tied = int(((positive == negative) & (positive > 0)).sum())
    ties = f"{tied} tied units left out" if tied else ""
    return Reference(
        "humans", majority.astype(np.int8), join_notes("against the humans' majority", ties)
    )


@dataclass(frozen=True)
class Candidates:
    """The thresholds worth trying on some probabilities (units,), nearest to the default first.

    `order` sorts the units by probability and `below` says how many lie under each threshold.
    """

    thresholds: Array
    order: Codes
    below: Codes

    @classmethod
    def of(cls, positive: Array, default: float) -> Candidates:
        """Every distinct probability, the default, and 1."""
        thresholds = np.unique(np.concatenate([positive, [default, 1.0]]))
        thresholds = thresholds[np.argsort(np.abs(thresholds - default), kind="stable")]
        order = np.argsort(positive)
        return cls(thresholds, order, np.searchsorted(positive[order], thresholds, side="left"))

    def tables(self, weights: npt.ArrayLike, affirmed: npt.NDArray[np.bool_]) -> Array:
        """Tables (rows, thresholds, 2, 2), reference by grader, affirmative first.

        `weights` (rows, units) and `affirmed` (units,), the reference, stand as the units do.
        """
        sorted_weights = np.asarray(weights, dtype=np.float64)[:, self.order]
        all_below = _running_sum(sorted_weights)
        affirmed_below = _running_sum(sorted_weights * affirmed[self.order])
        missed, rejected = affirmed_below[:, self.below], all_below[:, self.below]
        right = rejected - missed
        hits = affirmed_below[:, -1:] - missed
        false_alarms = (all_below[:, -1:] - affirmed_below[:, -1:]) - right
        # Cells first in memory: sums over a table then run along whole stretches of thresholds.
        return np.moveaxis(np.array([[hits, missed], [false_alarms, right]]), (0, 1), (-2, -1))


def best_of(values: Array) -> Codes:
    """The first of the best (rows,) of values (rows, thresholds); equal but for rounding is equal.

    As thresholds stand nearest to the default first, that is the one that changes least.
    """
    comparable = np.where(np.isnan(values), -np.inf, np.round(values, 12))
    return np.asarray(comparable.argmax(axis=1))


def sweep(
    positive: Array,
    reference: npt.NDArray[np.int8],
    clusters: Codes,
    resamples: Resamples,
    default: float,
) -> dict[str, Sweep]:
    """Tune the threshold of probabilities (units,) to a reference (units,) of 0 and 1.

    One sweep for each objective. Resamples that leave the objective undefined have NaN.
    """
    candidates = Candidates.of(positive, default)
    chunks: dict[str, list[tuple[Codes, Array]]] = {objective: [] for objective in OBJECTIVES}
    on_data: dict[str, Array] = {}
    for start, weights in resamples.unit_weights(clusters, _SWEEP_CELLS):
        tables = candidates.tables(weights, reference == 1)
        for objective, function in OBJECTIVES.items():
            values = function(tables)
            if start == 0:
                on_data[objective] = values[0]
            best = best_of(values)
            chunks[objective].append((best, values[np.arange(len(values)), best]))
    return {
        objective: _gathered(parts, candidates.thresholds, on_data[objective])
        for objective, parts in chunks.items()
    }


def _gathered(parts: list[tuple[Codes, Array]], candidates: Array, on_data: Array) -> Sweep:
    best = np.concatenate([chosen for chosen, _ in parts])
    tuned = np.concatenate([values for _, values in parts])
    return Sweep(np.where(np.isnan(tuned), np.nan, candidates[best]), tuned, on_data[best])


def held_out_gain(
    positive: Array,
    affirmed: npt.NDArray[np.bool_],
    clusters: Codes,
    resamples: Resamples,
    default: float,
) -> dict[str, Array]:
    """Tuned minus default threshold, by objective, where each cluster is judged by a threshold
    tuned without it: replicates (rows,) of the difference. None with a single cluster.
    """
    fold = folds(clusters)
    if fold.max(initial=0) < 1:
        return {}
    tuned = {objective: np.zeros(len(positive), dtype=bool) for objective in OBJECTIVES}
    for each in range(fold.max() + 1):
        train, test = np.flatnonzero(fold != each), np.flatnonzero(fold == each)
        candidates = Candidates.of(positive[train], default)
        tables = candidates.tables(np.ones((1, len(train))), affirmed[train])
        for objective, function in OBJECTIVES.items():
            threshold = candidates.thresholds[best_of(function(tables))[0]]
            tuned[objective][test] = positive[test] >= threshold
    by_default = _fixed_tables(positive >= default, affirmed, clusters, resamples)
    return {
        objective: function(_fixed_tables(tuned[objective], affirmed, clusters, resamples))
        - function(by_default)
        for objective, function in OBJECTIVES.items()
    }


def add_threshold_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """For every probability grader and reference: the tuned threshold and what it would bring.

    `threshold` (at = objective), `cohen_kappa_at_threshold` and `observed_agreement_at_threshold`
    (at = the threshold) for the tuned and the default one, their `_corrected` form, which takes the
    optimism of tuning off, and `threshold_held_out_gain` (at = objective): what tuning brings on
    clusters that it has not seen. The default is kept unless the lower bound of that lies above 0.
    """
    gives_p = np.asarray((~np.isnan(labels.positive)).any(axis=0))
    references = [human_majority(labels)] if labels.humans else []
    references += [
        Reference(labels.raters[model], labels.verdicts[:, model])
        for model in labels.models
        if not gives_p[model]
    ]
    for grader in (model for model in labels.models if gives_p[model]):
        for reference in references:
            _add_tuning(rows, labels, resamples, grader, reference)


def _add_tuning(
    rows: ResultRows, labels: LabelMatrix, resamples: Resamples, grader: int, reference: Reference
) -> None:
    held = ~np.isnan(labels.positive[:, grader]) & (reference.verdicts >= 0)
    numbers = resamples.count(labels.clusters, held)
    positive, verdicts = labels.positive[held, grader], reference.verdicts[held]
    clusters = labels.clusters[held]
    name = labels.raters[grader]
    default = labels.scale.threshold_for(name)

    def add(statistic: str, found: Interval, at: str, note: str) -> None:
        rows.add(
            statistic,
            found,
            numbers,
            rater_a=reference.name,
            rater_b=name,
            subset=_SUBSET,
            at=at,
            note=join_notes(note, reference.note),
        )

    if len(np.unique(verdicts)) < 2:
        reason = "no_variation" if numbers[0] else "no_pairable_units"
        for objective in OBJECTIVES:
            add("threshold", Interval(np.nan, np.nan, np.nan, reason), objective, "")
        return
    held_out = held_out_gain(positive, verdicts == 1, clusters, resamples, default)
    for objective, gain in held_out.items():
        found_gain = resamples.interval(gain, numbers[1])
        wins = "the tuned threshold wins held out" if found_gain.low > 0 else "keep the default"
        add("threshold_held_out_gain", found_gain, objective, wins)
    chosen = {default: "the default threshold"}
    for objective, found in sweep(positive, verdicts, clusters, resamples, default).items():
        threshold = float(found.threshold[0])
        chosen.setdefault(threshold, "tuned on these units: optimistic")
        kept = "equals the default" if threshold == default else ""
        add("threshold", resamples.interval(found.threshold, numbers[1]), objective, kept)
        add(
            f"{AT_THRESHOLD[objective]}_corrected",
            Interval(float(found.tuned[0]) - found.optimism, np.nan, np.nan),
            repr(threshold),
            f"tuned for {objective}, less its optimism of {found.optimism:.3g}",
        )
    for threshold, note in chosen.items():
        tables = _fixed_tables(positive >= threshold, verdicts == 1, clusters, resamples)
        for objective, function in OBJECTIVES.items():
            found_at = resamples.interval(function(tables), numbers[1])
            add(AT_THRESHOLD[objective], found_at, repr(threshold), note)


def _running_sum(values: Array) -> Array:
    """Sums of the first 0, 1, 2, ... columns."""
    out = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(values, axis=1, out=out[:, 1:])
    return out


def _fixed_tables(
    verdict: npt.NDArray[np.bool_],
    reference: npt.NDArray[np.bool_],
    clusters: Codes,
    resamples: Resamples,
) -> Array:
    cells = [of & by for of in (reference, ~reference) for by in (verdict, ~verdict)]
    sums = resamples.totals(resamples.cluster_sums(clusters, np.column_stack(cells)))
    return sums.reshape(-1, 2, 2)
