"""Rows of the audit: shifts, their p, how large a bias may be, and how large a one would be found.

The planned questions (side, order, length, family, people's groups) are few: Holm's correction over
those of one grader and rubric. Parts of the sample are a screening: Benjamini-Hochberg over all of
a rubric's. A row NAME of a question has three beside it: NAME_p; NAME_at_most, beyond which no bias
lies by two one-sided tests at 5% (Schuirmann 1987), which is the outer end of a 90% interval; and
NAME_detectable, the bias that is found in 80% of such samples if it is the only one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from evenhand.analysis.bias.shift import Shift
from evenhand.analysis.bootstrap.intervals import Interval, expanded_tail, percentile_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.significance import benjamini_hochberg, bootstrap_p, holm
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL
from evenhand.analysis.notes import Code, Note, Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array

PLANNED = ("bias_side", "bias_order", "bias_length", "bias_self_preference", "bias_rater_group")
SCREENED = ("bias_slice",)
FEW_CLUSTERS = 10
LEVEL, POWER, ONE_SIDED = 0.05, 0.8, 0.05
"""A shift is found where its corrected p lies below `LEVEL`."""
HELD_OUT = "_held_out"
"""What statistics on verdicts by thresholds tuned on other clusters end in."""


@dataclass(frozen=True)
class _Test:
    statistic: str
    grader: str
    key: dict[str, str]
    counts: tuple[int, int]
    p: float
    found: Interval
    drawn: Array
    suffix: str

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
    suffix: str = ""
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
        name, about = statistic + self.suffix, join_notes(few, note)
        found = self.rows.add(name, found, counts, **key, note=about)
        if statistic in (*PLANNED, *SCREENED):
            drawn = self.resamples.plain(values)
            p = bootstrap_p(drawn) if exact_p is None else exact_p
            if not np.isnan(p) and not np.isnan(found.low):
                self._tests.append(
                    _Test(statistic, grader, key, counts, p, found, drawn, self.suffix)
                )

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

    def retuned(self, grader: str) -> AuditRows:
        """To audit a grader's other verdicts: what does not rest on its verdicts stays as it is."""
        kept = [t for t in self._tests if t.grader != grader or not _on_verdicts(t)]
        resamples = self.resamples
        return AuditRows(self.rows, lambda: resamples, HELD_OUT, kept)

    def add_tests(self) -> None:
        """Beside every tested row its p after correction, and what bias may be there unseen."""
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
                continue  # it stands there already
            for what, value, note in (
                ("p", float(p), join_notes(Remark("uncorrected_p", (test.p,)), how)),
                ("at_most", _at_most(test), "two one-sided tests at 5%"),
                ("detectable", _detectable(test, len(tests)), f"power 80% as one of {len(tests)}"),
            ):
                name = f"{test.statistic}{self.suffix}_{what}"
                self.rows.add(name, Interval.point(value), test.counts, **test.key, note=note)


def _on_verdicts(test: _Test) -> bool:
    return test.key["subset"].endswith(BINARY)


def _at_most(test: _Test) -> float:
    """The outer end of the 90% interval; of the 95% one where no resample differs."""
    drawn = test.drawn[~np.isnan(test.drawn)]
    ends = (test.found.low, test.found.high)
    if np.ptp(drawn) > 0:
        tail = expanded_tail(test.counts[1], ONE_SIDED)
        ends = percentile_bounds(drawn[1:], tail)
    return max(abs(end) for end in ends)


def _detectable(test: _Test, tests: int) -> float:
    """The bias found with a chance of 80% as the only one of so many that are tested."""
    from scipy.special import stdtrit

    freedom = test.counts[1] - 1
    error = (test.found.high - test.found.low) / (2.0 * stdtrit(freedom, 1.0 - LEVEL / 2.0))
    return float(error * (stdtrit(freedom, 1.0 - LEVEL / 2.0 / tests) + stdtrit(freedom, POWER)))
