"""What a study knows beside its two tables, and what an analysis makes use of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StudyFacts:
    """Where the ratings come from; all of it may be left out.

    `rubric_hashes` names, by rubric, the versions whose ratings count. `excluded` names the people,
    with the reason, whose labels stay out. `raters` is a table of people with `rater_id` and what
    they said of themselves. `usage` says what graders did and cost (see `analysis.usage`), `prices`
    what 1,000 units cost in US dollars, by (rubric, grader). `looks` counts, by rubric, looks at
    the verdict as labels came in, with this one (1 where not said); at 0 no verdict is given.
    `sorted` counts, by (rubric, grader, kind), the disagreements with people that the lead sorted.
    `attacked` is what graders said in the injection audit (`study.store.logs.attacked_log`).
    `source` is what messages call the ratings, `strata` the units columns that the labelled sample
    was stratified by.
    """

    rubric_hashes: Mapping[str, Collection[str]] | None = None
    excluded: Mapping[str, str] = field(default_factory=dict)
    raters: pd.DataFrame | None = None
    usage: pd.DataFrame | None = None
    prices: Mapping[tuple[str, str], float] = field(default_factory=dict)
    looks: Mapping[str, int] = field(default_factory=dict)
    sorted: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    attacked: pd.DataFrame | None = None
    source: str = "ratings"
    strata: tuple[str, ...] = ()
