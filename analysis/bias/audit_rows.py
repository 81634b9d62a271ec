"""Rows of the audit: shifts and their p values.

The planned questions (side, order, length, family, groups of humans) are few: Holm's correction
covers those of one grader and rubric. Parts of the sample are a screening: Benjamini-Hochberg over
all of a rubric's. A row NAME of a question comes with another one, NAME_p.

Where raters' noise may change with the property, a shift is read in two ways. A bias must show in
both: the interval spans the two, p is the larger (intersection-union test: Berger 1982).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from evenhand.analysis.bias.shift import Shift
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.significance import benjamini_hochberg, bootstrap_p, holm
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array

PLANNED = ("bias_side", "bias_order", "bias_length", "bias_self_preference", "bias_rater_group")
SCREENED = ("bias_slice",)
FEW_CLUSTERS = 10
LEVEL = 0.05
"""A shift is found where its corrected p lies below `LEVEL`."""
HELD_OUT = "_held_out"
"""Suffix of statistics on verdicts by thresholds tuned on other clusters."""


@dataclass(frozen=True)
class _Test:
    statistic: str
    grader: str
    key: dict[str, str]
    counts: tuple[int, int]
    p: float
    suffix: str

    @property
    def planned(self) -> bool:
        """True for a planned question on all of the grader's calls, False for a screened part."""
        whole = self.key["subset"] in ("all", BINARY_ALL) or self.statistic == "bias_rater_group"
        return whole and self.statistic in PLANNED


@dataclass
class AuditRows:
    """Adds rows and remembers their p values, so that all are corrected together at the end."""

    rows: ResultRows
    draw: Callable[[], Resamples]
    suffix: str = ""
    _tests: list[_Test] = field(default_factory=list)

    @cached_property
    def resamples(self) -> Resamples:
        """The resamples, drawn only once there is something to audit."""
        return self.draw()

    def add(
        self,
        statistic: str,
        grader: str,
        shift: Shift,
        *,
        subset: str,
        at: str = "",
        note: Note = "",
        alone: bool = False,
        exact_p: float | None = None,
    ) -> None:
        """Add a row on a grader's calls against those of humans, or on its calls `alone`. `exact_p`
        replaces the p of the bootstrap.
        """
        counts = shift.counts
        a, b = (grader, "") if alone else ("humans", grader)
        few = f"fewer than {FEW_CLUSTERS} clusters" if counts[1] < FEW_CLUSTERS else ""
        readings = [shift.values] if shift.if_noisy is None else [shift.values, shift.if_noisy]
        each = [self.resamples.interval(v, counts[1], reason=shift.reason) for v in readings]
        found = _of_both(*each) if len(each) > 1 else each[0]
        key = {"rater_a": a, "rater_b": b, "subset": subset, "at": at}
        name, about = statistic + self.suffix, join_notes(few, note, shift.note)
        found = self.rows.add(name, found, counts, **key, note=about)
        if statistic in (*PLANNED, *SCREENED):
            drawn = [self.resamples.plain(values) for values in readings]
            p = max(map(bootstrap_p, drawn)) if exact_p is None else exact_p
            if not np.isnan(p) and not np.isnan(found.low):
                self._tests.append(_Test(statistic, grader, key, counts, p, self.suffix))

    def take(self, other: AuditRows) -> None:
        """Include the tests of another audit of the same rubric in the correction."""
        self._tests += other._tests

    def retuned(self, grader: str) -> AuditRows:
        """Return an audit of a grader's other verdicts.

        It keeps the tests that do not rest on the grader's verdicts.
        """
        kept = [t for t in self._tests if t.grader != grader or not _on_verdicts(t)]
        resamples = self.resamples
        return AuditRows(self.rows, lambda: resamples, HELD_OUT, kept)

    def add_tests(self) -> None:
        """Add the corrected p of every tested row."""
        screened = [test for test in self._tests if not test.planned]
        how = f"Benjamini-Hochberg over {len(screened)} parts of the sample"
        self._add_tests(screened, benjamini_hochberg, how)
        for grader in dict.fromkeys(test.grader for test in self._tests):
            own = [t for t in self._tests if t.grader == grader and t.planned]
            self._add_tests(own, holm, f"Holm over this grader's questions, {len(own)} in all")

    def _add_tests(
        self, tests: Sequence[_Test], corrected: Callable[[list[float]], Array], how: str
    ) -> None:
        for test, p in zip(tests, corrected([test.p for test in tests]), strict=True):
            if self.suffix != test.suffix:
                continue  # already added
            name, note = f"{test.statistic}{self.suffix}_p", Remark("uncorrected_p", (test.p,))
            found = Interval.point(float(p))
            self.rows.add(name, found, test.counts, **test.key, note=join_notes(note, how))


def _on_verdicts(test: _Test) -> bool:
    return test.key["subset"].endswith(BINARY)


def _of_both(first: Interval, if_noisy: Interval) -> Interval:
    """Return the first reading with an interval that spans both, and a remark if only the first
    shows a bias; without bounds if either reading has none.
    """
    low, high = (
        float(of([getattr(first, end), getattr(if_noisy, end)]))
        for of, end in ((np.min, "low"), (np.max, "high"))
    )
    remarks = first.remarks or if_noisy.remarks
    if (first.low > 0 or first.high < 0) and low <= 0 <= high:
        noisy = Remark("noise_may_explain", (if_noisy.estimate,))
        remarks = join_notes(remarks, noisy)
    return replace(first, low=low, high=high, remarks=remarks)
