"""Rows of the audit, and what many looks at one grader cost.

The planned questions (side, order, length, family, people's groups) are few: Holm's correction over
those of one grader and rubric. Parts of the sample are a screening: Benjamini-Hochberg over all of
a rubric's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from evenhand.analysis.bias.shift import Shift
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.significance import benjamini_hochberg, bootstrap_p, holm
from evenhand.analysis.labels.matrix import BINARY_ALL
from evenhand.analysis.notes import Code, Note, Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array

PLANNED = ("bias_side", "bias_order", "bias_length", "bias_self_preference", "bias_rater_group")
SCREENED = ("bias_slice",)
FEW_CLUSTERS = 10


@dataclass(frozen=True)
class _Test:
    statistic: str
    grader: str
    key: dict[str, str]
    counts: tuple[int, int]
    p: float

    @property
    def planned(self) -> bool:
        """Whether this was asked of every grader from the start, on all that it called."""
        whole = self.key["subset"] in ("all", BINARY_ALL) or self.statistic == "bias_rater_group"
        return whole and self.statistic in PLANNED


@dataclass
class AuditRows:
    """Adds rows and remembers their p, so that all are corrected together at the end."""

    rows: ResultRows
    draw: Callable[[], Resamples]
    _tests: list[_Test] = field(default_factory=list)

    @cached_property
    def resamples(self) -> Resamples:
        """Drawn only once there is something to audit: a million units may have nothing."""
        return self.draw()

    def add(
        self,
        statistic: str,
        grader: str,
        values: Array,
        counts: tuple[int, int],
        *,
        subset: str,
        at: str = "",
        note: Note = "",
        reason: Code = "no_variation",
        alone: bool = False,
        exact_p: float | None = None,
    ) -> None:
        """A row from replicates, on a grader against people or `alone`; `reason` says why
        the estimate is undefined, if it is; `exact_p` replaces the p of the bootstrap.
        """
        a, b = (grader, "") if alone else ("humans", grader)
        few = f"fewer than {FEW_CLUSTERS} clusters" if counts[1] < FEW_CLUSTERS else ""
        found = self.resamples.interval(values, counts[1], reason=reason)
        key = {"rater_a": a, "rater_b": b, "subset": subset, "at": at}
        self.rows.add(statistic, found, counts, **key, note=join_notes(few, note))
        if statistic in (*PLANNED, *SCREENED):
            p = bootstrap_p(self.resamples.plain(values)) if exact_p is None else exact_p
            if not np.isnan(p) and not np.isnan(found.low):
                self._tests.append(_Test(statistic, grader, key, counts, p))

    def add_shift(
        self,
        statistic: str,
        grader: str,
        shift: Shift,
        *,
        subset: str,
        at: str = "",
        note: Note = "",
    ) -> None:
        """A row on a shift beyond what people's score explains."""
        self.add(
            statistic,
            grader,
            shift.values,
            shift.counts,
            subset=subset,
            at=at,
            note=join_notes(note, shift.note),
            reason=shift.reason,
        )

    def take(self, other: AuditRows) -> None:
        """Correct for the tests of another, on other resamples of the same rubric, too."""
        self._tests += other._tests

    def add_corrected_p(self) -> None:
        """A row NAME_p beside every tested row NAME: its p after correction."""
        screened = [test for test in self._tests if not test.planned]
        for test, p in zip(screened, benjamini_hochberg([t.p for t in screened]), strict=True):
            self._add_p(test, p, f"Benjamini-Hochberg over {len(screened)} parts of the sample")
        for grader in dict.fromkeys(test.grader for test in self._tests):
            own = [t for t in self._tests if t.grader == grader and t.planned]
            for test, p in zip(own, holm([t.p for t in own]), strict=True):
                self._add_p(test, p, f"Holm over this grader's questions, {len(own)} in all")

    def _add_p(self, test: _Test, p: float, how: str) -> None:
        note = join_notes(Remark("uncorrected_p", (test.p,)), how)
        found = Interval.point(float(p))
        self.rows.add(f"{test.statistic}_p", found, test.counts, **test.key, note=note)
