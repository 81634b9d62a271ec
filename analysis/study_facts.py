"""Facts of a study besides its two tables, as far as an analysis uses them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TriedWording:
    """A trial among people: the units by the wording that they were dealt to, how many labels each
    is to get, and the rubric whose own wording is the old one.
    """

    of: str
    old: Collection[str]
    new: Collection[str]
    raters: int


@dataclass(frozen=True)
class StudyFacts:
    """Facts about the ratings; all of them are optional.

    `rubric_hashes` names, by rubric, the versions whose ratings count. `excluded` names the humans,
    with the reason, whose labels are left out. `raters` is a table of humans with `rater_id` and
    their own statements about themselves. `usage` is what graders did and cost (see
    `analysis.usage`), `prices` the cost of 1,000 units in US dollars, by (rubric, grader). `looks`
    counts, by rubric, looks at the verdict as labels came in, with this one (1 if not given); at 0
    no verdict is given. `sorted` counts, by (rubric, grader, kind), the disagreements with humans
    that the lead sorted. `attacked` is the table of graders' replies in the injection audit
    (`study.store.logs.replies`). `rewordings` has, by the name of a wording that was tried among
    people, that trial. `source` is the name of the ratings in messages, `strata` the
    units columns that the labelled sample was stratified by. `assigned` says that it did not depend
    on labels who was asked for which unit, as where a study assigns them.
    """

    rubric_hashes: Mapping[str, Collection[str]] | None = None
    excluded: Mapping[str, str] = field(default_factory=dict)
    raters: pd.DataFrame | None = None
    usage: pd.DataFrame | None = None
    prices: Mapping[tuple[str, str], float] = field(default_factory=dict)
    looks: Mapping[str, int] = field(default_factory=dict)
    sorted: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    attacked: pd.DataFrame | None = None
    rewordings: Mapping[str, TriedWording] = field(default_factory=dict)
    source: str = "ratings"
    strata: tuple[str, ...] = ()
    assigned: bool = False
