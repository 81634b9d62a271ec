"""Does the correction change which subject has the higher rate, and how sure is that?

Asked of PPI++ only: Rogan-Gladen with one pair of error rates for all subjects is one straight line
for all raw rates, and leaves their order as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRow, ResultRows, from_to
from evenhand.analysis.subjects.scores import kendall, mid_ranks
from evenhand.analysis.types import Array

_SUBSET = "all" + BINARY


def add_order_rows(
    rows: ResultRows,
    resamples: Resamples,
    grader: str,
    subjects: Sequence[str],
    raw: Array,
    corrected: Array,
) -> None:
    """How a grader's subjects stand by their raw and by their corrected rates (rows, subjects).

    `rate_rank_raw` and `rate_rank_ppi` (at = subject) are places, 1 the highest rate;
    `rate_order_kendall` is tau-b of raw and corrected rates; `rate_order_flip` (at = "A>B",
    neighbours by the raw rates) is the share of resamples in which the corrected rate of B is above
    that of A, equal rates counting half: an order that changes at all flips two neighbours. Only of
    subjects whose `rate_ppi` row is defined, and two of them at least.
    """
    found = (rows.get("rate_ppi", "humans", grader, _SUBSET, name) for name in subjects)
    of = {at: row for at, row in enumerate(found) if row and not np.isnan(row["estimate"])}
    if len(of) < 2:
        return
    order = _Order(rows, resamples, grader, list(of.values()))
    # Ranks jump: no jackknife can measure a subject's influence on them.
    plain = np.s_[: 1 + resamples.resamples], list(of)
    raw, corrected = raw[plain], corrected[plain]
    order.add_ranks("rate_rank_raw", raw)
    order.add_ranks("rate_rank_ppi", corrected)
    order.add_kendall(raw, corrected)
    order.add_flips(raw, corrected)


@dataclass(frozen=True)
class _Order:
    """The order of some subjects under one grader; `of` are rows of theirs, for the counts."""

    rows: ResultRows
    resamples: Resamples
    grader: str
    of: Sequence[ResultRow]

    def add_ranks(self, statistic: str, rates: Array) -> None:
        for row, values in zip(self.of, mid_ranks(-rates).T, strict=True):
            found = self.resamples.interval(values, row["n_clusters"])
            self._add(statistic, found, row["at"], [row])

    def add_kendall(self, raw: Array, corrected: Array) -> None:
        clusters = max(row["n_clusters"] for row in self.of)
        found = self.resamples.interval(kendall(raw, corrected), clusters)
        self._add("rate_order_kendall", found, "", self.of)

    def add_flips(self, raw: Array, corrected: Array) -> None:
        drawn = corrected[1:]
        for first, second in pairwise(np.argsort(-raw[0], kind="stable")):
            apart = drawn[:, second] - drawn[:, first]
            apart = apart[~np.isnan(apart)]
            share = float(np.mean(0.5 + 0.5 * np.sign(apart))) if len(apart) else np.nan
            changed = corrected[0, second] > corrected[0, first]
            note = Remark("order_changed") if changed else ""
            rows = [self.of[first], self.of[second]]
            at = from_to(rows[0]["at"], rows[1]["at"])
            self._add("rate_order_flip", Interval.point(share, note), at, rows)

    def _add(self, statistic: str, found: Interval, at: str, of: Sequence[ResultRow]) -> None:
        """`n_units` are those of the subjects that the row speaks of."""
        self.rows.add(
            statistic,
            found,
            (sum(row["n_units"] for row in of), max(row["n_clusters"] for row in of)),
            rater_a="humans",
            rater_b=self.grader,
            subset=_SUBSET,
            at=at,
        )
