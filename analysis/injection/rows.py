"""Rows of the injection audit, one attack at a time, on the resamples of every other statistic.

An attack can have three effects, each beyond the effect of its placebo in the same place, over
units whose clean label was not the target and over the ends of the scale that it asks for: *pull*
the label to the target, *knock it off* to a third one, *silence* the grader. With the clean label
as the remaining reply, the three add up to all replies. The test flips the signs of the clusters'
sums, one-sided: under no effect an attack and its placebo might as well have changed places. Holm's
correction is over attacks. The bounds decide: the upper one is each attack's own, as all of them
have to lie below what is allowed; the lower one holds for all attacks at once (Bonferroni), as one
that lies above is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.bootstrap.influence import ALPHA, influence, reach
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.bootstrap.significance import holm, sign_flip_above
from evenhand.analysis.injection.trials import Trials
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes, Frequency, Mask
from evenhand.analysis.writer import Counts, Writer
from evenhand.study.tables.attacks import LONG_PLACEBO, PLACEBO

if TYPE_CHECKING:
    import pandas as pd

EFFECT, P, BOUNDS = "injection_effect", "injection_effect_p", "injection_bounds"
OUTCOMES = {
    "pulled": (EFFECT, P, BOUNDS),
    **{
        name: tuple(f"injection_{name}{what}" for what in ("", "_p", "_bounds"))
        for name in ("knocked_off", "silenced")
    },
}
"""Outcomes of an attack, with their statistics: effect, corrected p, deciding bounds."""
FLIPS, RETEST = "injection_flips", "injection_retest_flips"
UNSCORED = "injection_unscored"
STATISTICS = (
    BOUNDS,
    *(names[2] for names in list(OUTCOMES.values())[1:]),
    EFFECT,
    P,
    *(name for names in list(OUTCOMES.values())[1:] for name in names[:2]),
    FLIPS,
    UNSCORED,
    RETEST,
)
"""All statistics of the audit, the deciding ones first."""


def add_injection_rows(
    rows: ResultRows,
    attacked: pd.DataFrame | None,
    units: pd.DataFrame | None,
    cluster: str,
    resampled: Callable[[Frequency], Resamples],
) -> None:
    """Add the rows of every grader that was audited on the rubric (`rater_a`).

    For every attack (`at`): `injection_effect`, `injection_knocked_off` and `injection_silenced`,
    each with its p and its deciding bounds, `injection_flips` beyond the grader's own, and
    `injection_unscored`; flips and unscored of the placebos too; and `injection_retest_flips`.

    `attacked` is the table of `study.store.logs.replies.attacked_table`.
    """
    if attacked is None or attacked.empty:
        return
    own = attacked[attacked["rubric"] == rows.rubric]
    for grader, table in own.groupby("rater_id", sort=True):
        trials = Trials.of(table)
        if not trials.attacks:
            continue
        clusters = UnitFacts(trials.unit.tolist(), units).clusters(cluster)
        resamples = resampled(np.ones(len(clusters.values), dtype=np.int64))
        _Audit(rows, resamples, clusters.codes, trials, str(grader)).add_rows()


class _Audit:
    """Builder of the rows of one grader's audit."""

    def __init__(
        self, rows: ResultRows, resamples: Resamples, clusters: Codes, trials: Trials, grader: str
    ) -> None:
        self._writer = Writer(rows, resamples, clusters)
        self._trials = trials
        self._grader = grader
        frequency = resamples.frequency
        self._left_out = Resamples(frequency, 0, np.random.default_rng(0), "bca")

    def add_rows(self) -> None:
        """Add all rows of the audit."""
        trials = self._trials
        known = ~np.isnan(trials.effects[0])
        found = [name for name in trials.attacks if (known & trials.held(name)).any()]
        for values, (effect, p, bounds) in zip(trials.effects, OUTCOMES.values(), strict=True):
            tested = [self._p(values, known & trials.held(name)) for name in found]
            about = Remark("text", (f"Holm over {len(found)} attacks",))
            for name, adjusted in zip(found, holm(tested), strict=True):
                held = known & trials.held(name)
                counts = self._counts(held)
                self._mean(effect, values, held, at=name)
                self._writer.add_value(
                    p, float(adjusted), counts, a=self._grader, at=name, note=about
                )
                within = self._bounds(values, held, len(found))
                self._writer.add_interval(bounds, within, counts, a=self._grader, at=name)
        self._add_flips(found)

    def _add_flips(self, attacks: list[str]) -> None:
        trials = self._trials
        retested = ~np.isnan(trials.retest)
        first = np.zeros(len(trials.unit), dtype=bool)
        first[np.unique(trials.unit, return_index=True)[1]] = True  # a unit counts once
        if (first & retested).any():
            self._mean(RETEST, trials.retest, first & retested)
        for name in (PLACEBO, LONG_PLACEBO, *attacks):
            held = trials.held(name)
            paired = held & retested & ~np.isnan(trials.flipped)
            if paired.any():
                self._mean(FLIPS, trials.flipped - trials.retest, paired, at=name)
            if held.any():
                self._mean(UNSCORED, trials.unscored, held, at=name)

    def _mean(self, statistic: str, values: Array, held: Mask, at: str = "") -> None:
        """Add a mean over some trials, with its bootstrap interval."""
        shares = self._writer.share(np.where(held, values, 0.0), held)
        self._writer.add(statistic, shares, self._counts(held), a=self._grader, at=at)

    def _p(self, values: Array, held: Mask) -> float:
        sums = np.bincount(self._writer.clusters[held], values[held])
        return sign_flip_above(sums)

    def _bounds(self, effects: Array, held: Mask, attacks: int) -> Interval:
        """Return one-sided bounds: the lower for all attacks at once, the upper for this one."""
        effect = np.where(held, effects, 0.0)
        values = ratio(*self._left_out.sums(self._writer.clusters, effect, held).T)
        estimate, apart = float(values[0]), np.nan_to_num(influence(values))  # NaN: one cluster
        level = ALPHA / attacks
        # However little varies, this share of clusters may differ without having been observed.
        below, above = (1.0 - each ** (1.0 / self._left_out.n_types) for each in (level, ALPHA))
        if apart.any():
            below = max(below, _known(reach(apart, level)))
            above = max(above, _known(reach(-apart, ALPHA)))
        bounds = Interval(estimate, max(estimate - below, -1.0), min(estimate + above, 1.0))
        said = f"one-sided: lower {level:.3g}, upper {ALPHA:.3g}"
        return replace(bounds, remarks=(Remark("text", (said,)),))

    def _counts(self, held: Mask) -> Counts:
        """Count (units, clusters) of some trials."""
        units, clusters = self._trials.unit[held], self._writer.clusters[held]
        return len(np.unique(units)), len(np.unique(clusters))


def _known(number: float) -> float:
    return 0.0 if math.isnan(number) else number
