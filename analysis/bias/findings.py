"""Rows of the audit, shifts and their p values, and findings in sentences that claim no more.

A shift is *found* where its corrected p lies below .05 and its interval leaves out 0. Where nothing
is found the sentence gives the largest bias possible, the outer end of the interval.
Where a shift may come from noise that changes with the property, the sentence names that instead.

The planned questions (side, order, length, family, groups of humans) are few: Holm's correction
covers those of one grader and rubric. Parts of the sample are a screening: Benjamini-Hochberg over
all of a rubric's. A row NAME of a question comes with another one, NAME_p.

Where raters' noise may change with the property, a shift is read in two ways. A bias must show in
both: the interval spans the two, p is the larger (intersection-union test: Berger 1982).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from evenhand.analysis.bias.shift import Shift
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.significance import benjamini_hochberg, bootstrap_p, holm
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL
from evenhand.analysis.notes import Note, Remark, join_notes, reason_in_words, says
from evenhand.analysis.results import ResultRow, ResultRows, TableRow, key_of, sample_of
from evenhand.analysis.types import Array
from evenhand.texts import written

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
        drawn: Resamples | None = None,
    ) -> None:
        """Add a row on a grader's calls against those of humans, or on its calls `alone`. `exact_p`
        replaces the p of the bootstrap, and `drawn` are resamples of other clusters.
        """
        counts, resamples = shift.counts, self.resamples if drawn is None else drawn
        a, b = (grader, "") if alone else ("humans", grader)
        few = f"fewer than {FEW_CLUSTERS} clusters" if counts[1] < FEW_CLUSTERS else ""
        readings = [shift.values] if shift.if_noisy is None else [shift.values, shift.if_noisy]
        each = [resamples.interval(v, counts[1], reason=shift.reason) for v in readings]
        found = _of_both(*each) if len(each) > 1 else each[0]
        key = {"rater_a": a, "rater_b": b, "subset": subset, "at": at}
        name, about = statistic + self.suffix, join_notes(few, note, shift.note)
        found = self.rows.add(name, found, counts, **key, note=about)
        if statistic in (*PLANNED, *SCREENED):
            plain = [resamples.plain(values) for values in readings]
            p = max(map(bootstrap_p, plain)) if exact_p is None else exact_p
            if not np.isnan(p) and not np.isnan(found.low):
                self._tests.append(_Test(statistic, grader, key, counts, p, self.suffix))

    def retuned(self, grader: str) -> AuditRows:
        """Return an audit of a grader's other verdicts.

        It keeps the tests that do not rest on the grader's verdicts.
        """
        kept = [
            test
            for test in self._tests
            if test.grader != grader or not test.key["subset"].endswith(BINARY)
        ]
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


def _of_both(first: Interval, if_noisy: Interval) -> Interval:
    """Return the first reading with an interval that spans both, and a remark if only the first
    shows a bias; without bounds if either reading has none.
    """
    low = float(np.minimum(first.low, if_noisy.low))
    high = float(np.maximum(first.high, if_noisy.high))
    remarks = first.remarks or if_noisy.remarks
    if (first.low > 0 or first.high < 0) and low <= 0 <= high:
        remarks = join_notes(remarks, Remark("noise_may_explain", (if_noisy.estimate,)))
    return replace(first, low=low, high=high, remarks=remarks)


BOUND = 0.1
"""The largest shift, in share of calls, that is tolerated unless another bound is given."""
Status = Literal["found", "nothing_found", "inconclusive"]
AnyRow = TypeVar("AnyRow", bound=TableRow)


@dataclass(frozen=True)
class Finding:
    """A row of the audit, with the row of its corrected p if it was tested."""

    row: ResultRow
    p: ResultRow | None

    @property
    def grader(self) -> str:
        """The grader that the finding is about."""
        return audited_grader(self.row)

    @property
    def status(self) -> Status:
        """Status of the finding: found, nothing found, or cannot tell."""
        return status_of(self.row, self.p)

    def beyond(self, bound: float) -> bool:
        """Return True if a shift was found and its whole interval is beyond +/- `bound`."""
        outside = self.row["low"] > bound or self.row["high"] < -bound
        return self.status == "found" and outside

    @property
    def sentence(self) -> str:
        """The finding as a sentence."""
        said = {"grader": self.grader, "question": _words(self.row)[0]}
        if self.p is None:
            return written("bias.undefined", why=reason_in_words(self.row["remarks"]), **said)
        if self.status == "found":
            return written("bias.found", fault=self.fault, **said)
        said |= {"sample": sample_of(self.row)}
        noisy = next((r for r in self.row["remarks"] if r.code == "noise_may_explain"), None)
        if noisy is not None:
            ends = {end: self.row[end] for end in ("estimate", "low", "high")}
            shifts = {"shift": self._shift, "if_noisy": noisy.detail[0]}
            return written("bias.noise", **said, **shifts, **ends)
        name = "nothing_weak" if self.largest > BOUND else "nothing"
        return written(f"bias.{name}", bound=BOUND, most=self.largest, **said)

    @property
    def largest(self) -> float:
        """The largest bias that is not excluded."""
        return max(abs(self.row["low"]), abs(self.row["high"]))

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        """The rows that the sentence is based on."""
        return (self.row,) if self.p is None else (self.row, self.p)

    @property
    def _shift(self) -> str:
        _, up, down = _words(self.row)
        return up if self.row["estimate"] > 0 else down

    @property
    def fault(self) -> str:
        """The shift in words, with its interval."""
        shift = self._shift
        if says(self.row["remarks"], "sharpness_assumed"):
            shift = written("bias.sharpness", shift=shift)
        said = {"shift": shift, "size": abs(self.row["estimate"]), "sample": sample_of(self.row)}
        said |= {"low": self.row["low"], "high": self.row["high"]}
        if self.p:
            return written("bias.fault_tested", p=self.p["estimate"], **said)
        return written("bias.fault", **said)

    @property
    def short(self) -> str:
        """The shift in a few words."""
        return written("bias.short", question=_words(self.row)[0], shift=self.row["estimate"])


def audited_grader(row: TableRow) -> str:
    """Return the grader that a row of the audit is about."""
    return row["rater_b"] or row["rater_a"]


def status_of(row: TableRow, p: TableRow | None) -> Status:
    """Return the status of a row of the audit, given the row of its corrected p."""
    if p is None:
        return "inconclusive"
    apart = row["low"] > 0 or row["high"] < 0
    return "found" if apart and p["estimate"] < LEVEL else "nothing_found"


def audited(rows: Iterable[AnyRow], suffix: str = "") -> Iterator[tuple[AnyRow, AnyRow | None]]:
    """Yield the audit's rows, in the order of its questions, with their p."""
    by_key = {key_of(row): row for row in rows if row["statistic"].startswith("bias_")}
    asked = {question + suffix: at for at, question in enumerate((*PLANNED, *SCREENED))}
    own = [(key, row) for key, row in by_key.items() if key[1] in asked]
    for key, row in sorted(own, key=lambda each: asked[each[0][1]]):
        yield row, by_key.get((key[0], f"{key[1]}_p", *key[2:]))


def findings(rows: Iterable[ResultRow], suffix: str = "") -> list[Finding]:
    """Return the findings of the audit, in the order of its questions.

    With `suffix` HELD_OUT they are on verdicts by thresholds tuned on other clusters.
    """
    return [Finding(row, p) for row, p in audited(rows, suffix)]


def flagged(
    rows: ResultRows, grader: str, bound: float = BOUND, *, held_out: bool = False
) -> list[Finding]:
    """Return the findings on this grader that remain after correction and exceed `bound`.

    Their intervals lie wholly beyond plus or minus `bound`. `held_out` takes the grader's verdicts
    by thresholds tuned on other clusters, where these were audited; what does not rest on verdicts
    is the same.
    """
    usual, other = (findings(rows.rows.values(), suffix) for suffix in ("", HELD_OUT))
    other = [one for one in other if one.grader == grader]
    if held_out and other:
        usual = [one for one in usual if not one.row["subset"].endswith(BINARY)] + other
    return [one for one in usual if one.grader == grader and one.beyond(bound)]


def screening_sentence(screened: list[Finding]) -> str:
    """Summarise in one sentence all of a grader's slices in which nothing was found."""
    quiet = [each for each in screened if each.status == "nothing_found"]
    untold = sum(each.status == "inconclusive" for each in screened)
    parts = []
    if quiet:
        widest = max(quiet, key=lambda each: each.largest)
        most = {"most": widest.largest, "part": _part(widest.row)}
        found = written("bias.slices_nothing", quiet=len(quiet), all=len(screened), **most)
        parts.append(found)
    if untold:
        parts.append(written("bias.slices_untold", untold=untold, all=len(screened)))
    if not parts:
        return ""
    return written("bias.slices", grader=screened[0].grader, found="; ".join(parts))


def _part(row: ResultRow) -> str:
    return row["subset"].removesuffix(BINARY)


def _words(row: ResultRow) -> tuple[str, str, str]:
    """The question that a row of the audit answers, and its shift in words: if upward, if
    downward.
    """
    part, at, affirms = _part(row), row["at"], row["subset"].endswith(BINARY)
    first, _, second = at.partition(">")
    text = at.removesuffix("_words")
    question, *shifts = {
        "bias_side": (
            "side" if part == "all" else "side_in_part",
            "side_affirms" if affirms else "side_leans",
        ),
        "bias_order": ("order", "order_first", "order_second"),
        "bias_length": ("length", "length_affirms" if affirms else "length_leans")
        if text.startswith("response")
        else ("length_of", "length_of_affirms"),
        "bias_self_preference": ("family", "family_affirms"),
        "bias_rater_group": ("group", "group_sides"),
        "bias_slice": ("slice", "slice_affirms"),
    }[row["statistic"].removesuffix(HELD_OUT)]
    about = {"part": part, "group": part, "text": text, "family": at, "others": at}
    up = {"more": "more", "longer": "longer", "first": first, "second": second, **about}
    down = {"more": "less", "longer": "shorter", "first": second, "second": first, **about}
    return (
        written(f"bias.{question}", **about),
        written(f"bias.{shifts[0]}", **up),
        written(f"bias.{shifts[-1]}", **down),
    )
