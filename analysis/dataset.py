"""Ratings with all that says what they mean: the one form in which an analysis takes them.

A study, a file or a table becomes a `Dataset` in `evenhand.reporting.load`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evenhand.analysis.labels.encoding import one_version
from evenhand.analysis.request import StudyFacts
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings, with_changes

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd

    from evenhand.analysis.all_rubrics import Analysis
    from evenhand.analysis.labels.scale import Scale
    from evenhand.analysis.verification import Libraries


@dataclass(frozen=True, repr=False)
class Dataset:
    """Ratings and units, with scales, settings and facts.

    `ratings` and `units` are the two tables of data/README.md. `scales` are by rubric, with the
    thresholds in force; `settings` and `decision` say how to analyse and what a grader must meet;
    `facts` is what else is known of the ratings (which versions of a rubric count, who is
    excluded, ...); `seed` fixes all resampling.

    `name` is what messages call the ratings, `title` the study's name. `titles` and `names` are
    those of rubrics, and of their options. `notes` say how the labels were read. A `synthetic` one
    holds made-up labels.
    """

    name: str
    ratings: pd.DataFrame
    units: pd.DataFrame
    scales: Mapping[str, Scale]
    settings: AnalysisSettings = field(default_factory=AnalysisSettings)
    decision: DecisionSettings = field(default_factory=DecisionSettings)
    seed: int = SEED
    facts: StudyFacts = field(default_factory=StudyFacts)
    title: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    synthetic: bool = False

    def __repr__(self) -> str:
        kinds = self.ratings.drop_duplicates("rater_id")["rater_kind"].value_counts().to_dict()
        raters = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        units = self.ratings["unit_id"].nunique()
        about = f"{len(self.ratings)} ratings of {units} units; raters: {raters or 'none'}"
        return f"Dataset({self.name!r}, {about}; rubrics: {', '.join(self.scales) or 'one'})"

    def changed(self, **changes: Any) -> Dataset:
        """Return it with other settings (fields of `[analysis]` or `[decision]`), or another seed.
        Raises InputError for a setting that does not exist or is out of range.
        """
        seed = changes.pop("seed", self.seed)
        settings, decision = with_changes(self.settings, self.decision, changes)
        return replace(self, settings=settings, decision=decision, seed=seed)

    def counted(self, rubric: str) -> pd.DataFrame:
        """Return the ratings of one rubric that count. Those given under another version of it and
        those of excluded raters are left out. Raises InputError where there are several versions
        and none was chosen.
        """
        hashes = self.facts.rubric_hashes
        ratings = self.ratings[self.ratings["rubric"] == rubric]
        accepted, _ = one_version(ratings, rubric, hashes.get(rubric) if hashes else None)
        return accepted[~accepted["rater_id"].isin(list(self.facts.excluded))]

    def analyse(
        self,
        *,
        verify: bool | Libraries = False,
        why: bool = False,
        pool: Executor | None = None,
        on_stage: Callable[[str], None] | None = None,
    ) -> Analysis:
        """Analyse it (see `evenhand.analysis.analyse`; for `pool` and `on_stage`,
        `all_rubrics.analyse_rubrics`).
        """
        # Most uses need none of it.
        from evenhand.analysis.all_rubrics import analyse_rubrics
        from evenhand.analysis.request import Request

        request = Request(self.units, self.settings, self.decision, self.facts, self.seed, why=why)
        return analyse_rubrics(
            self.ratings, self.scales, request, verify=verify, pool=pool, on_stage=on_stage
        )
