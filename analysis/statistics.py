"""Statistics of results.csv (`statistics.toml`), and remarks on its rows (`remarks.toml`).

`statistics.toml` defines each statistic: its kind, its display and its names. Intervals, reports
and pages use this entry, never a part of the statistic's name.

The note of a row is text for readers. Facts about a row that the analysis or the report uses, such
as a tuned threshold or the reason why there is no interval, are codes of remarks, so that texts can
be reworded without a change of verdicts.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from evenhand.texts import DASH, table_of

Kind = Literal["share", "unit", "signed", "coefficient", "difference", "place"]
"""Kind of a statistic: a `share` of cases; another number from 0 to 1 (`unit`) or from -1 to 1
(`signed`); a chance-corrected `coefficient`; a `difference` of two coefficients; a `place`, such as
a cut, a median or a number of people, whose interval may have no width."""
VARIANTS: dict[str, list[str]] = table_of("evenhand.analysis", "variants.toml")
"""Suffixes and prefixes of variants' names, with the words that they add to label and name."""
_MOST_PLACES = 10
"""Most decimals: a value and a limit that do not differ to these count as equal."""


@dataclass(frozen=True)
class Statistic:
    """An entry of `statistics.toml`, which begins with a description of the fields."""

    label: str
    name: str
    meaning: str = ""
    source: str = ""
    why: str = ""  # a sentence: the question that it answers, or what it decides
    kind: Kind | None = None
    weights: Literal["identity", "linear", "quadratic"] | None = None
    chance: Literal["pooled", "uniform"] = "pooled"  # from pooled raters' shares, or equal ones
    own_margins: bool = False  # chance agreement is computed from each rater's own shares
    places: int = 2  # decimals that are shown
    digits: int | None = None  # significant digits, instead of `places`
    signed: bool = False  # True if "+" is shown

    def shown(self, value: float, limits: Iterable[float] = ()) -> str:
        """Return a value rounded for display, with enough decimals to differ from its `limits`."""
        if self.digits:
            return f"{value:.{self.digits}g}"
        places = places_apart(value, limits, self.places)
        rounded = round(value, places) + 0.0  # turns -0.0 into 0.0
        return f"{rounded:{'+' if self.signed else ''}.{places}f}"


@cache
def statistics() -> dict[str, Statistic]:
    """Return the entries of `statistics.toml`, by the names of results.csv."""
    table = table_of("evenhand.analysis", "statistics.toml")
    return {name: Statistic(**fields) for name, fields in table.items()}


def places_apart(value: float, limits: Iterable[float], places: int = 2) -> int:
    """Return the fewest decimals, from `places` on, at which a value differs from each limit.

    Decisions are made on unrounded bounds, so a rounded one must lie on the same side of its limit.
    A value that equals the limit, or is not known, needs no more decimals.

    >>> [places_apart(bound, [-0.1]) for bound in (-0.0973, -0.1049, -0.15, -0.1, float("nan"))]
    [3, 3, 2, 2, 2]
    """
    unequal = [number for number in limits if abs(value - number) > 10.0**-_MOST_PLACES]
    for n in range(places, _MOST_PLACES):
        if f"{value:.{n}f}" not in {f"{number:.{n}f}" for number in unequal}:
            return n
    return _MOST_PLACES


def shown_apart(value: float, limits: Iterable[float], *, sign: str = "", places: int = 2) -> str:
    """Return a number with enough decimals to differ from its limits, and a `sign` as in format
    specifications ("-0" is shown as 0); a dash if the number is not known.

    >>> shown_apart(-0.0973, [-0.1], sign="+"), shown_apart(0.62, [0.6]), shown_apart(0.5996, [0.6])
    ('-0.097', '0.62', '0.5996')
    """
    if not math.isfinite(value):
        return DASH
    return f"{value:{sign}z.{places_apart(value, limits, places)}f}"


def limit_shown(limit: float, *bounds: float) -> str:
    """Return a limit with the decimals of the bounds compared with it, without trailing zeros.

    >>> limit_shown(0.1, 0.0973), limit_shown(0.0923, 0.0901), limit_shown(0.0923, 0.15)
    ('0.10', '0.092', '0.09')
    """
    if not math.isfinite(limit):
        return DASH
    places = max([2, *(places_apart(bound, [limit]) for bound in bounds)])
    whole, _, decimals = f"{limit:.{places}f}".partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def share_apart(share: float, limit: float) -> str:
    """Return a share in percent with enough decimals, one or more, to differ from its limit.

    >>> share_apart(0.8997, 0.9), share_apart(0.85, 0.9)
    ('89.97%', '85.0%')
    """
    return f"{share:.{places_apart(100 * share, [100 * limit], 1)}%}"


@cache
def find_entry(name: str) -> Statistic | None:
    """Return the entry of a statistic, for a variant made from its base's; None without one.

    >>> entry = find_entry("bias_order_p")
    >>> entry.name if entry else ""
    'Order of presentation, corrected p'
    """
    if entry := statistics().get(name):
        return entry
    for affix, (label, words) in VARIANTS.items():
        base_name = name.removesuffix(affix) if affix.startswith("_") else name.removeprefix(affix)
        base = None if base_name == name else find_entry(base_name)
        if base is not None:
            full_label = f"{base.label}, {label}" if base.label and label else base.label or label
            full_name = f"{base.name}, {words}"
            if affix == "_p":  # a p value is shown with two digits, whatever its base
                return Statistic(full_label, full_name, digits=2)
            return replace(base, label=full_label, name=full_name)
    return None


def entry_for(name: str) -> Statistic:
    """Return the entry of a statistic; if there is none, one with its name as label.

    >>> entry_for("gwet_ac1").label, entry_for("some_new_index").name
    ('AC1', 'some new index')
    """
    plain = name.replace("_", " ")
    return find_entry(name) or Statistic(plain, plain)


_TABLES = table_of("evenhand.analysis", "remarks.toml")
NOTE_TEXTS: dict[str, str] = _TABLES["notes"]
"""Texts of remarks in the notes of results.csv, by code; braces are for a remark's `detail`."""
REPORT_TEXTS: dict[str, str] = _TABLES["report"]
"""Texts of remarks in the report, by code, where they differ from the note."""


@dataclass(frozen=True)
class Remark:
    """A remark on a row: its code, and the `detail` that its text is filled with.

    >>> Remark("few_clusters", (30,)).text, Remark("no_labels").text, Remark("no_labels").words
    ('fewer than 30 clusters', 'no_labels', 'no labels')
    """

    code: str
    detail: tuple[object, ...] = ()

    @property
    def text(self) -> str:
        """Text of the remark in the notes of results.csv."""
        return NOTE_TEXTS.get(self.code, self.code).format(*self.detail)

    @property
    def words(self) -> str:
        """Text of the remark in the report."""
        text = REPORT_TEXTS.get(self.code)
        return self.text if text is None else text.format(*self.detail)


Reason = str | Remark
"""Reason why a value is undefined: a remark, or its code."""
Remarks = tuple[Remark, ...]
Note = str | Remark | Remarks
"""Accepted forms of a note. A text is for readers only; "; " separates several."""


def join_notes(*notes: Note) -> Remarks:
    """Join notes in order, leaving out empty ones.

    >>> text_of(join_notes(Remark("constant_rater"), "", "mean over 3 pairs"))
    'constant_rater; mean over 3 pairs'
    """
    remarks: list[Remark] = []
    for note in notes:
        if isinstance(note, str):
            remarks += (Remark("text", (text,)) for text in note.split("; ") if text)
        else:
            remarks += (note,) if isinstance(note, Remark) else note
    return tuple(remarks)


def text_of(remarks: Remarks) -> str:
    """Return the text of a row's remarks, its note."""
    return "; ".join(remark.text for remark in remarks)


def says(remarks: Remarks, code: str) -> bool:
    """Return True if one of the remarks has this code.

    >>> says(join_notes("tuned by hand"), "tuned"), says((Remark("tuned"),), "tuned")
    (False, True)
    """
    return any(remark.code == code for remark in remarks)


def reason_in_words(remarks: Remarks) -> str:
    """Return the reason for an undefined value, within a sentence: the first remark.

    >>> reason_in_words(join_notes(Remark("no_variation"), "3 subjects"))
    'no variation'
    """
    return remarks[0].words if remarks else "undefined"
