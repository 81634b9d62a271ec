"""Every statistic of results.csv: what it is, how it is shown, and what it is called.

One table, `statistics.toml`: intervals, reports and pages look here, never at a statistic's name.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

Kind = Literal["share", "unit", "signed", "coefficient", "difference", "place"]
"""What a statistic is: a share of cases; anything else from 0 to 1; or from -1 to 1; corrected for
chance; a difference of two such; a place, a cut, a median or a number of people, whose interval
may be one number."""


@dataclass(frozen=True)
class Statistic:
    """An entry of the table; the head of `statistics.toml` says what each field means."""

    label: str
    name: str
    meaning: str = ""
    source: str = ""
    kind: Kind | None = None
    weights: Literal["identity", "linear", "quadratic"] | None = None
    chance: Literal["pooled", "uniform"] = "pooled"
    own_margins: bool = False
    places: int = 2
    digits: int | None = None
    signed: bool = False

    def shown(self, value: float) -> str:
        """A value rounded for display."""
        if self.digits:
            return f"{value:.{self.digits}g}"
        rounded = round(value, self.places) + 0.0  # turns -0.0 into 0.0
        return f"{rounded:{'+' if self.signed else ''}.{self.places}f}"


@cache
def statistics() -> dict[str, Statistic]:
    """The table, by the names of results.csv."""
    text = files("evenhand.analysis").joinpath("statistics.toml").read_text("utf-8")
    return {name: Statistic(**fields) for name, fields in tomllib.loads(text).items()}


_ABOUT_ANOTHER = (
    ("_p", "p", "corrected p"),
    ("_at_most", "at most", "the most that any bias may be"),
    ("_detectable", "80% power", "the bias found with 80% power"),
    ("_held_out", "held out", "at thresholds tuned on other clusters"),
)
"""What the name of a statistic may end in, with what it is then called."""


@cache
def entry_for(name: str) -> Statistic:
    """Look a statistic up in the table; one that is not there goes by its own name.

    >>> entry_for("gwet_ac1").label, entry_for("bias_order_p").name
    ('AC1', 'Order of presentation, corrected p')
    >>> entry_for("some_new_index").name
    'some new index'
    """
    if found := statistics().get(name):
        return found
    for ending, label, words in _ABOUT_ANOTHER:
        if name.endswith(ending):
            base = entry_for(name.removesuffix(ending))
            named = (f"{base.label}, {label}", f"{base.name}, {words}")
            if ending == "_held_out":
                return replace(base, label=named[0], name=named[1], meaning="", source="")
            return Statistic(*named, digits=2 if ending == "_p" else None)
    plain = name.replace("_", " ")
    return Statistic(plain, plain)
