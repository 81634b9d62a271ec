"""Does the correction change which subject has the higher rate, and how sure is that?

Only for PPI++: Rogan-Gladen with one pair of error rates for all subjects is one straight line
for all raw rates, and leaves their order as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRow, from_to
from evenhand.analysis.subjects.correlation import kendall, mid_ranks
from evenhand.analysis.types import Array
from evenhand.analysis.writer import About, Writer


def add_rank_rows(
    out: Writer, grader: str, subjects: Sequence[str], raw: Array, corrected: Array
) -> None:
    """Add rows on a grader's ranking of the subjects by raw and by corrected rates (rows,
    subjects).

    `rate_rank_raw` and `rate_rank_ppi` (at = subject) are places, 1 the highest rate;
    `rate_order_kendall` is tau-b of raw and corrected rates; `rate_order_flip` (at = "A>B",
    neighbours by the raw rates) is the share of resamples in which the corrected rate of B is above
    that of A, equal rates counting half: an order that changes at all flips two neighbours. Only of
    subjects whose `rate_ppi` row is defined, and two of them at least.
    """
    found = (out.rows.get("rate_ppi", "humans", grader, out.subset, name) for name in subjects)
    of = {at: row for at, row in enumerate(found) if row and not np.isnan(row["estimate"])}
    if len(of) < 2:
        return
    order = _Order(out, grader, list(of.values()))
    # Ranks jump: no jackknife can measure a subject's influence on them.
    raw, corrected = (out.resamples.plain(rates)[:, list(of)] for rates in (raw, corrected))
    order.add_ranks("rate_rank_raw", raw)
    order.add_ranks("rate_rank_ppi", corrected)
    order.add_kendall(raw, corrected)
    order.add_flips(raw, corrected)


@dataclass(frozen=True)
class _Order:
    """The order of some subjects under one grader; `of` are rows of theirs, for the counts."""

    out: Writer
    grader: str
    of: Sequence[ResultRow]

    def add_ranks(self, statistic: str, rates: Array) -> None:
        for row, values in zip(self.of, mid_ranks(-rates).T, strict=True):
            units = self._units([row])
            self.out.add(statistic, values, units, a="humans", b=self.grader, at=row["at"])

    def add_kendall(self, raw: Array, corrected: Array) -> None:
        values, units = kendall(raw, corrected), self._units(self.of)
        self.out.add("rate_order_kendall", values, units, a="humans", b=self.grader)

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
            of = About(a="humans", b=self.grader, at=at, note=note)
            self.out.add_value("rate_order_flip", share, self._units(rows), **of)

    def _units(self, of: Sequence[ResultRow]) -> tuple[int, int]:
        """Units and clusters of the subjects that a row is about."""
        return sum(row["n_units"] for row in of), max(row["n_clusters"] for row in of)
