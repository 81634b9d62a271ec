"""Findings of the audit, in sentences that claim no more than their rows.

A shift is *found* where its corrected p lies below .05 and its interval leaves out 0. Where nothing
is found the sentence gives the largest bias possible, the outer end of the interval.
Where a shift may come from noise that changes with the property, the sentence names that instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

from evenhand.analysis.bias.audit_rows import HELD_OUT, LEVEL, PLANNED, SCREENED
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.notes import reason_in_words, says
from evenhand.analysis.results import ResultRow, ResultRows, TableRow, key_of
from evenhand.texts import written

BOUND = 0.1
"""The largest shift, in share of calls, that is tolerated unless another bound is given."""
Status = Literal["found", "nothing_found", "cannot_tell"]
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
        said = {"grader": self.grader, "question": self._words[0]}
        if self.p is None:
            return written("bias.undefined", why=reason_in_words(self.row["remarks"]), **said)
        if self.status == "found":
            return written("bias.found", fault=self.fault, **said)
        said |= {"sample": _sample(self.row)}
        noisy = next((r for r in self.row["remarks"] if r.code == "noise_may_explain"), None)
        if noisy is not None:
            return written(
                "bias.noise",
                shift=self._shift,
                estimate=self.row["estimate"],
                if_noisy=noisy.detail[0],
                low=self.row["low"],
                high=self.row["high"],
                **said,
            )
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
    def _words(self) -> Words:
        return _WORDS[self.row["statistic"].removesuffix(HELD_OUT)](self.row)

    @property
    def _shift(self) -> str:
        _, more, less = self._words
        return more if self.row["estimate"] > 0 else less

    @property
    def fault(self) -> str:
        """The shift in words, with its interval."""
        shift = self._shift
        if says(self.row["remarks"], "sharpness_assumed"):
            shift = written("bias.sharpness", shift=shift)
        said = {"shift": shift, "size": abs(self.row["estimate"]), "sample": _sample(self.row)}
        said |= {"low": self.row["low"], "high": self.row["high"]}
        if self.p:
            return written("bias.fault_tested", p=self.p["estimate"], **said)
        return written("bias.fault", **said)

    @property
    def short(self) -> str:
        """The shift in a few words."""
        return written("bias.short", question=self._words[0], shift=self.row["estimate"])


def audited_grader(row: TableRow) -> str:
    """Return the grader that a row of the audit is about."""
    return row["rater_b"] or row["rater_a"]


def status_of(row: TableRow, p: TableRow | None) -> Status:
    """Return the status of a row of the audit, given the row of its corrected p."""
    if p is None:
        return "cannot_tell"
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
    untold = sum(each.status == "cannot_tell" for each in screened)
    parts = []
    if quiet:
        widest = max(quiet, key=lambda each: each.largest)
        parts.append(
            written(
                "bias.slices_nothing",
                quiet=len(quiet),
                all=len(screened),
                most=widest.largest,
                part=_part(widest.row),
            )
        )
    if untold:
        parts.append(written("bias.slices_untold", untold=untold, all=len(screened)))
    if not parts:
        return ""
    return written("bias.slices", grader=screened[0].grader, found="; ".join(parts))


def _sample(row: ResultRow) -> str:
    units = f"{row['n_units']} units"
    apart = row["n_clusters"] != row["n_units"]
    return f"{units} in {row['n_clusters']} clusters" if apart else units


def _part(row: ResultRow) -> str:
    return row["subset"].removesuffix(BINARY)


Words = tuple[str, str, str]


def _side(row: ResultRow) -> Words:
    part = _part(row)
    question = written("bias.side") if part == "all" else written("bias.side_in_part", part=part)
    first, _, second = row["at"].partition(">")
    how = "affirms" if row["subset"].endswith(BINARY) else "leans"
    return (
        question,
        written(f"bias.side_{how}", first=first, second=second),
        written(f"bias.side_{how}", first=second, second=first),
    )


def _order(_: ResultRow) -> Words:
    return written("bias.order"), written("bias.order_first"), written("bias.order_second")


def _length(row: ResultRow) -> Words:
    question, text = written("bias.length"), row["at"].removesuffix("_words")
    if not text.startswith("response"):
        question = written("bias.length_of", text=text)
        more, less = (
            written("bias.length_of_affirms", more=how, text=text) for how in ("more", "less")
        )
    elif row["subset"].endswith(BINARY):
        more, less = (written("bias.length_affirms", more=how) for how in ("more", "less"))
    else:
        more, less = (written("bias.length_leans", longer=how) for how in ("longer", "shorter"))
    return question, more, less


def _family(row: ResultRow) -> Words:
    more, less = (
        written("bias.family_affirms", more=how, family=row["at"]) for how in ("more", "less")
    )
    return written("bias.family"), more, less


def _rater_group(row: ResultRow) -> Words:
    group = _part(row)
    more, less = (
        written("bias.group_sides", more=how, group=group, others=row["at"])
        for how in ("more", "less")
    )
    return written("bias.group", group=group), more, less


def _slice(row: ResultRow) -> Words:
    part = _part(row)
    more, less = (written("bias.slice_affirms", more=how, part=part) for how in ("more", "less"))
    return written("bias.slice", part=part), more, less


_WORDS: dict[str, Callable[[ResultRow], Words]] = {
    "bias_side": _side,
    "bias_order": _order,
    "bias_length": _length,
    "bias_self_preference": _family,
    "bias_rater_group": _rater_group,
    "bias_slice": _slice,
}
