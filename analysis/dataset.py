"""Ratings with all that says what they mean: the one form in which an analysis takes them.

A study, a file or a table becomes a `Dataset` in `evenhand.reporting.load`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand.analysis.labels.encoding import one_version
from evenhand.analysis.request import StudyFacts
from evenhand.analysis.results import BASELINES
from evenhand.errors import InputError
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings, with_changes
from evenhand.texts import written

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd

    from evenhand.analysis.all_rubrics import Analysis
    from evenhand.analysis.labels.scale import Scale
    from evenhand.analysis.verification import Libraries

T = TypeVar("T")
_GROUPS = ("humans", "models", "all", *BASELINES)
"""What the results call raters that are none of the ratings'."""


@dataclass(frozen=True, repr=False)
class Dataset:
    """Ratings and units, with scales, settings and facts.

    `ratings` and `units` are the two tables of data/README.md. `scales` are by rubric, with the
    thresholds in force; `settings` and `decision` say how to analyse and what a grader must meet;
    `facts` is what else is known of the ratings (which versions of a rubric count, who is
    excluded, ...); `seed` fixes all resampling.

    `name` is what messages call the ratings, `title` the study's name. `titles` and `names` are
    those of rubrics, and of their options. `called` are display names of raters and rubrics by id.
    `notes` say how the labels were read. A `synthetic` one holds made-up labels.
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
    called: Mapping[str, str] = field(default_factory=dict)
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

    def id_of(self, name: str) -> str:
        """Return the id of the rater or rubric that has a display name, or that has this id."""
        return next((id_ for id_, called in self.called.items() if called == name), name)

    def call(self, name: str) -> str:
        """Return the display name of an id: itself where it has none."""
        scale = self.scales.get(name)
        if name not in self.called and scale and scale.part_of in self.called:
            return self.called[scale.part_of] + name.removeprefix(scale.part_of)
        return self.called.get(name, name)

    @property
    def ids(self) -> list[str]:
        """The ids of all raters and rubrics, which may have display names."""
        rubrics = [name for scale in self.scales.values() for name in (scale.name, scale.part_of)]
        return list(filter(None, dict.fromkeys([*self.ratings["rater_id"].unique(), *rubrics])))

    def named(self) -> Dataset:
        """Return it with display names in place of ids, wherever an analysis may name a rater or a
        rubric: all that follows from it says them. `facts.ids` leads back. Raises InputError where
        a name is the id of another rater or rubric.
        """
        if not self.called:
            return self
        facts, call, ids = self.facts, self.call, self.ids
        for id_, name in self.called.items():
            if name != id_ and name in (*ids, *_GROUPS):
                raise InputError(written("names.taken", id=repr(id_), name=repr(name)))

        def keyed(values: Mapping[str, T]) -> dict[str, T]:
            return {call(key): value for key, value in values.items()}

        def table(given: pd.DataFrame) -> pd.DataFrame:
            columns = [name for name in ("rater_id", "rubric") if name in given]
            names = {name: {id_: call(id_) for id_ in given[name].unique()} for name in columns}
            return given.assign(**{name: given[name].map(names[name]) for name in columns})

        def scale(of: Scale) -> Scale:
            return replace(
                of,
                name=call(of.name),
                thresholds=keyed(of.thresholds),
                tunings=keyed(of.tunings),
                variant_of=call(of.variant_of),
                withheld=keyed(of.withheld),
                part_of=call(of.part_of),
                ids=facts.ids,
            )

        hashes, tried = facts.rubric_hashes, facts.rewordings
        facts = replace(
            facts,
            raters=facts.raters if facts.raters is None else table(facts.raters),
            usage=facts.usage if facts.usage is None else table(facts.usage),
            attacked=facts.attacked if facts.attacked is None else table(facts.attacked),
            rubric_hashes=None if hashes is None else keyed(hashes),
            excluded=keyed(facts.excluded),
            prices={(call(on), call(who)): usd for (on, who), usd in facts.prices.items()},
            looks=keyed(facts.looks),
            sorted={(call(r), call(g), kind): n for (r, g, kind), n in facts.sorted.items()},
            rewordings=keyed({of: replace(each, of=call(each.of)) for of, each in tried.items()}),
            ids={name: id_ for id_ in ids if (name := call(id_)) != id_},
        )
        reference = call(self.decision.reference)
        return replace(
            self,
            ratings=table(self.ratings),
            scales={call(name): scale(declared) for name, declared in self.scales.items()},
            decision=self.decision.model_copy(update={"reference": reference}),
            facts=facts,
            titles=keyed(self.titles),
            names=keyed(self.names),
        )

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
