"""What the audit found, in sentences that say no more than their rows.

A shift is *found* where its corrected p lies below .05 and its interval leaves out 0. Where nothing
is found the sentence says what any bias is at most, and how large a one the sample would show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

from evenhand.analysis.bias.audit_rows import HELD_OUT, LEVEL, PLANNED, SCREENED
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.notes import reason_in_words, says
from evenhand.analysis.results import ResultRow, ResultRows, TableRow, key_of

BOUND = 0.1
"""The shift, in share of calls, that is still let pass unless another bound is asked for."""
Status = Literal["found", "nothing_found", "cannot_tell"]
AnyRow = TypeVar("AnyRow", bound=TableRow)


@dataclass(frozen=True)
class Finding:
    """A row of the audit; if it was tested, with the rows of its corrected p, of what any bias is
    at most, and of the bias that is found with 80% power.
    """

    row: ResultRow
    p: ResultRow | None
    at_most: ResultRow | None = None
    detectable: ResultRow | None = None

    @property
    def grader(self) -> str:
        """Whom it is about."""
        return audited_grader(self.row)

    @property
    def status(self) -> Status:
        """Whether a shift was found."""
        return status_of(self.row, self.p)

    def beyond(self, bound: float) -> bool:
        """Whether a shift was found and all of its interval lies beyond plus or minus `bound`."""
        outside = self.row["low"] > bound or self.row["high"] < -bound
        return self.status == "found" and outside

    @property
    def sentence(self) -> str:
        """What the rows say."""
        question, _, _ = self._words
        if self.p is None:
            return (
                f"{self.grader}, {question}: cannot tell ({reason_in_words(self.row['remarks'])})."
            )
        if self.status == "nothing_found":
            return f"{self.grader}, {question}: {self._nothing}"
        return f"{self.grader}, {question}: it {self.fault}."

    @property
    def largest(self) -> float:
        """What any bias is at most."""
        return self.at_most["estimate"] if self.at_most else _widest(self.row)

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        """What the sentence is read off."""
        unseen = () if self.status == "found" else (self.at_most, self.detectable)
        return tuple(row for row in (self.row, self.p, *unseen) if row is not None)

    @property
    def _words(self) -> Words:
        return _WORDS[self.row["statistic"].removesuffix(HELD_OUT)](self.row)

    @property
    def _nothing(self) -> str:
        """That nothing was found, and how much that says."""
        said = f"no bias detected on {_sample(self.row)}; any bias is at most {self.largest:.2f}"
        if self.at_most is None or self.detectable is None:
            return f"{said}."
        least = self.detectable["estimate"]
        if least > BOUND:
            power = (
                f"The sample is too small to rely on finding a bias of {BOUND:g}: 80% power needs "
                f"one of {least:.2f}."
            )
        else:
            power = f"A bias of {least:.2f} would be found with 80% power."
        return f"{said} (90% CI). {power}"

    @property
    def fault(self) -> str:
        """The shift in words, with its interval."""
        _, more, less = self._words
        said = more if self.row["estimate"] > 0 else less
        if says(self.row["remarks"], "sharpness_assumed"):
            said += ", if it sees as sharply as people do"
        p = f"corrected p {self.p['estimate']:.2g}; " if self.p else ""
        return (
            f"{said}, by {abs(self.row['estimate']):.2f} (95% CI {self.row['low']:+.2f} "
            f"to {self.row['high']:+.2f}; {p}{_sample(self.row)})"
        )

    @property
    def short(self) -> str:
        """The shift in a few words."""
        question, _, _ = self._words
        return f"{question} bias {self.row['estimate']:+.2f}"


def audited_grader(row: TableRow) -> str:
    """Whom a row of the audit is about."""
    return row["rater_b"] or row["rater_a"]


def status_of(row: TableRow, p: TableRow | None) -> Status:
    """Whether a row of the audit, with that of its corrected p, shows a shift."""
    if p is None:
        return "cannot_tell"
    apart = row["low"] > 0 or row["high"] < 0
    return "found" if apart and p["estimate"] < LEVEL else "nothing_found"


def audited(rows: Iterable[AnyRow], suffix: str = "") -> Iterator[tuple[AnyRow, AnyRow | None]]:
    """The audit's rows, in the order of its questions, with their p."""
    by_key = {key_of(row): row for row in rows if row["statistic"].startswith("bias_")}
    asked = {question + suffix: at for at, question in enumerate((*PLANNED, *SCREENED))}
    own = [(key, row) for key, row in by_key.items() if key[1] in asked]
    for key, row in sorted(own, key=lambda each: asked[each[0][1]]):
        yield row, by_key.get((key[0], f"{key[1]}_p", *key[2:]))


def findings(rows: Iterable[ResultRow], suffix: str = "") -> list[Finding]:
    """What the audit found, in the order of its questions; with `suffix` HELD_OUT on verdicts by
    thresholds tuned on other clusters.
    """
    by_key = {key_of(row): row for row in rows if row["statistic"].startswith("bias_")}

    def beside(key: tuple[str, ...], what: str) -> ResultRow | None:
        return by_key.get((key[0], f"{key[1]}_{what}", *key[2:]))  # type: ignore[arg-type]

    return [
        Finding(row, p, beside(key_of(row), "at_most"), beside(key_of(row), "detectable"))
        for row, p in audited(by_key.values(), suffix)
    ]


def flagged(
    rows: ResultRows, grader: str, bound: float = BOUND, *, held_out: bool = False
) -> list[Finding]:
    """The findings on this grader whose shift stands after correction and whose interval lies
    wholly beyond plus or minus `bound`.

    `held_out` asks of the grader's verdicts by thresholds tuned on other clusters, where these
    were audited; what does not rest on verdicts is the same.
    """
    usual, other = (findings(rows.rows.values(), suffix) for suffix in ("", HELD_OUT))
    other = [one for one in other if one.grader == grader]
    if held_out and other:
        usual = [one for one in usual if not one.row["subset"].endswith(BINARY)] + other
    return [one for one in usual if one.grader == grader and one.beyond(bound)]


def screening_sentence(screened: list[Finding]) -> str:
    """One sentence on all of a grader's slices in which nothing was found."""
    quiet = [each for each in screened if each.status == "nothing_found"]
    untold = sum(each.status == "cannot_tell" for each in screened)
    parts = []
    if quiet:
        widest = max(quiet, key=lambda each: each.largest)
        parts.append(
            f"no bias detected in {len(quiet)} of {len(screened)} slices; any bias is at most "
            f"{widest.largest:.2f}, which {_part(widest.row)} leaves possible"
        )
    if untold:
        parts.append(f"{untold} of {len(screened)} slices too small to tell")
    return f"{screened[0].grader}, slices: {'; '.join(parts)}." if parts else ""


def _widest(row: ResultRow) -> float:
    return max(abs(row["low"]), abs(row["high"]))


def _sample(row: ResultRow) -> str:
    units = f"{row['n_units']} units"
    apart = row["n_clusters"] != row["n_units"]
    return f"{units} in {row['n_clusters']} clusters" if apart else units


def _part(row: ResultRow) -> str:
    return row["subset"].removesuffix(BINARY)


Words = tuple[str, str, str]


def _side(row: ResultRow) -> Words:
    part = _part(row)
    question = "side of the pair" if part == "all" else f"side of the pair where {part}"
    first, _, second = row["at"].partition(">")
    if row["subset"].endswith(BINARY):
        said = "is more often affirmative on {} than on {}, beyond what people see"
    else:
        said = "leans to {} rather than {}, beyond what people see"
    return question, said.format(first, second), said.format(second, first)


def _order(_: ResultRow) -> Words:
    return "order", "favours the side shown first", "favours the side shown second"


def _length(row: ResultRow) -> Words:
    if row["subset"].endswith(BINARY):
        said = (
            "is {} often affirmative on longer responses than people's own labels explain, for "
            "each doubling"
        )
        return "length", said.format("more"), said.format("less")
    said = "leans towards the {} response more than people's own labels explain, for each doubling"
    return "length", said.format("longer"), said.format("shorter")


def _family(row: ResultRow) -> Words:
    said = (
        f"is {{}} often affirmative on subjects of its own family ({row['at']}) than people's own "
    )
    said += "labels explain"
    return "self-preference", said.format("more"), said.format("less")


def _rater_group(row: ResultRow) -> Words:
    group = row["subset"].removesuffix(BINARY)
    said = f"agrees {{}} with people of {group} than with {row['at']}"
    return f"people of {group}", said.format("more"), said.format("less")


def _slice(row: ResultRow) -> Words:
    said = f"is {{}} often affirmative where {_part(row)} than people's own labels explain"
    return f"slice {_part(row)}", said.format("more"), said.format("less")


_WORDS: dict[str, Callable[[ResultRow], Words]] = {
    "bias_side": _side,
    "bias_order": _order,
    "bias_length": _length,
    "bias_self_preference": _family,
    "bias_rater_group": _rater_group,
    "bias_slice": _slice,
}
