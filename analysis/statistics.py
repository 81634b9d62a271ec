"""Every statistic of results.csv: what it is, how it is shown, and what it is called.

One table, `statistics.toml`: intervals, reports and pages look here, never at a statistic's name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from evenhand.texts import DASH, table_of

Kind = Literal["share", "unit", "signed", "coefficient", "difference", "place"]
"""Kind of a statistic: a share of cases; anything else from 0 to 1; or from -1 to 1; corrected for
chance; a difference of two such; a place, a cut, a median or a number of people, whose interval
may be one number."""


@dataclass(frozen=True)
class Statistic:
    """An entry of the table; the head of `statistics.toml` says what each field means."""

    label: str
    name: str
    meaning: str = ""
    source: str = ""
    why: str = ""
    kind: Kind | None = None
    weights: Literal["identity", "linear", "quadratic"] | None = None
    chance: Literal["pooled", "uniform"] = "pooled"
    own_margins: bool = False
    places: int = 2
    digits: int | None = None
    signed: bool = False

    def shown(self, value: float, limits: Iterable[float] = ()) -> str:
        """A value rounded for display, so that it differs from `limits` that it is held against."""
        if self.digits:
            return f"{value:.{self.digits}g}"
        places = places_apart(value, limits, self.places)
        rounded = round(value, places) + 0.0  # turns -0.0 into 0.0
        return f"{rounded:{'+' if self.signed else ''}.{places}f}"


@cache
def statistics() -> dict[str, Statistic]:
    """The table, by the names of results.csv."""
    table = table_of("evenhand.analysis", "statistics.toml")
    return {name: Statistic(**fields) for name, fields in table.items()}


_MOST_PLACES = 10
"""A value that differs from its limit by less than can be told at so many decimals equals it."""


def places_apart(value: float, limits: Iterable[float], places: int = 2) -> int:
    """Return the fewest decimals, from `places` on, at which a value differs from each limit.

    A decision takes a bound as it is, so that a rounded one must lie on the same side of its limit.
    One that equals the limit, or is not known, needs no more decimals.

    >>> [places_apart(bound, [-0.1]) for bound in (-0.0973, -0.1049, -0.15, -0.1, float("nan"))]
    [3, 3, 2, 2, 2]
    """
    apart = [each for each in limits if abs(value - each) > 10.0**-_MOST_PLACES]
    for n in range(places, _MOST_PLACES):
        if f"{value:.{n}f}" not in {f"{each:.{n}f}" for each in apart}:
            return n
    return _MOST_PLACES


def shown_apart(value: float, limits: Iterable[float], *, sign: str = "", places: int = 2) -> str:
    """A number with as many decimals as tell it from its limits, and a `sign` as in format
    specifications; a dash where it is not known.

    >>> shown_apart(-0.0973, [-0.1], sign="+"), shown_apart(0.62, [0.6]), shown_apart(0.5996, [0.6])
    ('-0.097', '0.62', '0.5996')
    """
    if not math.isfinite(value):
        return DASH
    return f"{value:{sign}z.{places_apart(value, limits, places)}f}"


def limit_shown(limit: float, *bounds: float, places: int = 2) -> str:
    """A limit with the decimals of the bounds that are held against it, without zeros at its end.

    >>> limit_shown(0.1, 0.0973), limit_shown(0.0923, 0.0901), limit_shown(0.0923, 0.15)
    ('0.10', '0.092', '0.09')
    """
    if not math.isfinite(limit):
        return DASH
    text = f"{limit:.{max([places, *(places_apart(each, [limit], places) for each in bounds)])}f}"
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(places, '0')}"


def share_apart(share: float, limit: float) -> str:
    """A share in percent with as many decimals, one or more, as tell it from its limit.

    >>> share_apart(0.8997, 0.9), share_apart(0.85, 0.9)
    ('89.97%', '85.0%')
    """
    return f"{share:.{places_apart(100 * share, [100 * limit], 1)}%}"


VARIANTS: dict[str, list[str]] = table_of("evenhand.analysis", "variants.toml")
"""Endings and beginnings of names of variants, with what the label and the name add."""


@cache
def find_entry(name: str) -> Statistic | None:
    """Look a statistic up in the table, or the entry that it is a variant of.

    >>> found = find_entry("bias_order_p")
    >>> found.name if found else ""
    'Order of presentation, corrected p'
    """
    if entry := statistics().get(name):
        return entry
    for affix, (label, words) in VARIANTS.items():
        is_ending = affix.startswith("_")
        rest = name.removesuffix(affix) if is_ending else name.removeprefix(affix)
        base = None if rest == name else find_entry(rest)
        if base is not None:
            named = (", ".join(filter(None, (base.label, label))), f"{base.name}, {words}")
            if affix == "_p":
                return Statistic(*named, digits=2)
            return replace(base, label=named[0], name=named[1])
    return None


def entry_for(name: str) -> Statistic:
    """Look a statistic up; one that is not there goes by its own name.

    >>> entry_for("gwet_ac1").label, entry_for("some_new_index").name
    ('AC1', 'some new index')
    """
    plain = name.replace("_", " ")
    return find_entry(name) or Statistic(plain, plain)
