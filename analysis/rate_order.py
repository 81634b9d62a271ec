"""Does a correction change which subject has the higher rate, and how sure is that?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from analysis.encoding import BINARY
from analysis.overall import kendall, mid_ranks
from analysis.resampling import Interval, Resamples
from analysis.results import ResultRow, ResultRows, from_to

__all__ = ["CORRECTIONS", "add_order_rows"]

Array = npt.NDArray[np.float64]

CORRECTIONS = ("rogan_gladen", "ppi")
_SUBSET = "all" + BINARY


def add_order_rows(
    rows: ResultRows,
    resamples: Resamples,
    grader: str,
    subjects: Sequence[str],
    rates: Mapping[str, Array],
) -> None:
    """How a grader's subjects stand before and after each correction.

    `rates` are replicates (rows, subjects) by statistic, of which the rows are there already.
    `rate_rank_raw`, `rate_rank_rogan_gladen` and `rate_rank_ppi` (at = subject) are places, 1 the
    highest rate; `rate_order_kendall` (at = correction) is tau-b of the raw and the corrected
    rates; `rate_order_flip_rogan_gladen` and `_ppi` (at = "A>B", neighbours by the raw rates) are
    the share of resamples in which the corrected rate of B is above that of A, equal rates counting
    half: if the correction changes the order at all, it flips two neighbours. Subjects without both
    rates take no part; with fewer than two there is no order.
    """
    known = _known(rows, "raw", grader, subjects)
    if len(known) < 2:
        return
    raw = rates["rate_raw"]
    _Order(rows, resamples, grader, known).add_ranks("rate_rank_raw", raw)
    for correction in CORRECTIONS:
        comparable = _known(rows, correction, grader, subjects)
        if len(comparable) < 2:
            continue
        few = f"among {len(comparable)} of {len(known)} subjects"
        note = few if len(comparable) < len(known) else ""
        order = _Order(rows, resamples, grader, comparable, note)
        corrected = rates[f"rate_{correction}"]
        order.add_ranks(f"rate_rank_{correction}", corrected)
        order.add_kendall(correction, raw, corrected)
        order.add_flips(f"rate_order_flip_{correction}", raw, corrected)


def _known(
    rows: ResultRows, kind: str, grader: str, subjects: Sequence[str]
) -> dict[int, ResultRow]:
    """The rows of the subjects whose rate of this kind is defined, by the subject's place."""
    found = (rows.get(f"rate_{kind}", "humans", grader, _SUBSET, name) for name in subjects)
    return {at: row for at, row in enumerate(found) if row and not np.isnan(row["estimate"])}


class _Order:
    """The order of some subjects under one grader; `of` are rows of theirs, by their place."""

    def __init__(
        self,
        rows: ResultRows,
        resamples: Resamples,
        grader: str,
        of: Mapping[int, ResultRow],
        note: str = "",
    ) -> None:
        self.rows, self.resamples, self.grader, self.note = rows, resamples, grader, note
        self.places, self.of = list(of), list(of.values())

    def add_ranks(self, statistic: str, rates: Array) -> None:
        ranks = mid_ranks(-rates[:, self.places])
        for row, values in zip(self.of, ranks.T, strict=True):
            found = self.resamples.interval(values, row["n_clusters"])
            self._add(statistic, found, row["at"], [row])

    def add_kendall(self, correction: str, raw: Array, corrected: Array) -> None:
        tau = kendall(raw[:, self.places], corrected[:, self.places])
        clusters = max(row["n_clusters"] for row in self.of)
        self._add("rate_order_kendall", self.resamples.interval(tau, clusters), correction, self.of)

    def add_flips(self, statistic: str, raw: Array, corrected: Array) -> None:
        before, after = raw[0, self.places], corrected[: 1 + self.resamples.resamples, self.places]
        for first, second in pairwise(np.argsort(-before, kind="stable")):
            apart = after[:, second] - after[:, first]
            drawn = apart[1:][~np.isnan(apart[1:])]
            share = float(np.mean(0.5 + 0.5 * np.sign(drawn))) if len(drawn) else np.nan
            flipped = "the estimates change places" if apart[0] > 0 else ""
            rows = [self.of[first], self.of[second]]
            at = from_to(rows[0]["at"], rows[1]["at"])
            self._add(statistic, Interval(share, np.nan, np.nan, flipped), at, rows)

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
            note=self.note,
        )
