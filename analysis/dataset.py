"""Ratings with their units, scales, settings and facts: the input of an analysis (`Dataset`).

`evenhand.reporting.load` makes a `Dataset` from a study, a file or a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand.analysis.labels.encoding import one_version
from evenhand.analysis.request import StudyFacts
from evenhand.analysis.results import BASELINES
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings, with_changes
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis
    from evenhand.analysis.labels.scale import Scale

T = TypeVar("T")
_RESERVED = ("humans", "models", "all", *BASELINES)
"""Names in the results for groups of raters and baselines, which no rater may have."""


@dataclass(frozen=True, repr=False)
class Dataset:
    """Ratings and units, with scales, settings and facts.

    `ratings` and `units` are the two tables of data/README.md. `scales` are by rubric, with the
    active thresholds. `settings` are those of the analysis, `decision` is the rule that a grader
    must meet, `facts` are further facts about the ratings, `seed` is that of all resampling.

    Messages call the ratings `name`; `title` is the study's name. `titles` are those of rubrics,
    `names` those of options, by rubric and key, and `names_by_id` the display names of raters and
    rubrics. `notes` say how labels were read. `synthetic` is True for simulated labels.
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
    names_by_id: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    synthetic: bool = False

    def __repr__(self) -> str:
        kinds = self.ratings.drop_duplicates("rater_id")["rater_kind"].value_counts().to_dict()
        raters = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        units = self.ratings["unit_id"].nunique()
        size = f"{len(self.ratings)} ratings of {units} units; raters: {raters or 'none'}"
        return f"Dataset({self.name!r}, {size}; rubrics: {', '.join(self.scales) or 'one'})"

    def changed(self, **changes: Any) -> Dataset:
        """Return the dataset with other settings (fields of `[analysis]` or `[decision]`), or
        another seed. Raises InputError for a setting that does not exist or is out of range.
        """
        seed = changes.pop("seed", self.seed)
        settings, decision = with_changes(self.settings, self.decision, changes)
        return replace(self, settings=settings, decision=decision, seed=seed)

    def id_of(self, name: str) -> str:
        """Return the id of the rater or rubric with this display name; if none has it, the name."""
        ids = (*self.names_by_id, *self.scales)
        return next((id_ for id_ in ids if self.name_of(id_) == name), name)

    def name_of(self, id_: str) -> str:
        """Return the display name of an id, or the id if it has none. "RUBRIC/option", which is one
        option of a set, has the display name of RUBRIC in place of its id.
        """
        names, scale = self.names_by_id, self.scales.get(id_)
        if id_ not in names and scale and scale.part_of in names:
            return names[scale.part_of] + id_.removeprefix(scale.part_of)
        return names.get(id_, id_)

    @property
    def ids(self) -> list[str]:
        """List of the ids of all raters and rubrics; `facts.ids` maps display names to ids."""
        rubrics = [name for scale in self.scales.values() for name in (scale.name, scale.part_of)]
        return list(filter(None, dict.fromkeys([*self.ratings["rater_id"].unique(), *rubrics])))

    def named(self) -> Dataset:
        """Return the dataset with display names in place of the ids of raters and rubrics;
        `facts.ids` maps them to ids. Raises InputError if a name is another one's id or reserved.
        """
        if not self.names_by_id:
            return self
        facts, name_of, ids = self.facts, self.name_of, self.ids
        id_by_name = {name: id_ for id_ in ids if (name := name_of(id_)) != id_}
        for id_, name in self.names_by_id.items():
            if name != id_ and name in (*ids, *_RESERVED):
                raise InputError(written("names.taken", id=repr(id_), name=repr(name)))

        def named_keys(values: Mapping[str, T]) -> dict[str, T]:
            return {name_of(key): value for key, value in values.items()}

        def named_table(table: pd.DataFrame | None) -> Any:
            if table is None:
                return None
            columns = [name for name in ("rater_id", "rubric") if name in table]
            names = {name: {id_: name_of(id_) for id_ in table[name].unique()} for name in columns}
            return table.assign(**{name: table[name].map(names[name]) for name in columns})

        def named_scale(scale: Scale) -> Scale:
            return replace(
                scale,
                name=name_of(scale.name),
                thresholds=named_keys(scale.thresholds),
                tunings=named_keys(scale.tunings),
                variant_of=name_of(scale.variant_of),
                withheld=named_keys(scale.withheld),
                part_of=name_of(scale.part_of),
                ids=id_by_name,
            )

        hashes, tried = facts.rubric_hashes, facts.rewordings.items()
        reference = name_of(self.decision.reference)
        facts = replace(
            facts,
            raters=named_table(facts.raters),
            usage=named_table(facts.usage),
            attacked=named_table(facts.attacked),
            rubric_hashes=None if hashes is None else named_keys(hashes),
            excluded=named_keys(facts.excluded),
            prices={(name_of(r), name_of(g)): usd for (r, g), usd in facts.prices.items()},
            looks=named_keys(facts.looks),
            sorted={(name_of(r), name_of(g), kind): n for (r, g, kind), n in facts.sorted.items()},
            rewordings={name_of(new): replace(trial, of=name_of(trial.of)) for new, trial in tried},
            ids=id_by_name,
        )
        return replace(
            self,
            ratings=named_table(self.ratings),
            scales={name_of(name): named_scale(scale) for name, scale in self.scales.items()},
            decision=self.decision.model_copy(update={"reference": reference}),
            facts=facts,
            titles=named_keys(self.titles),
            names=named_keys(self.names),
        )

    def counted(self, rubric: str) -> pd.DataFrame:
        """Return the ratings of one rubric, without those under other versions of it and those of
        excluded raters. Raises InputError if there are several versions and none was chosen.
        """
        ratings = self.ratings[self.ratings["rubric"] == rubric]
        accepted, _ = one_version(ratings, rubric, (self.facts.rubric_hashes or {}).get(rubric))
        return accepted[~accepted["rater_id"].isin(list(self.facts.excluded))]

    def analyse(
        self,
        *,
        verify: bool = False,
        why: bool = False,
        pool: Executor | None = None,
        on_stage: Callable[[str], None] | None = None,
        reported: Mapping[str, Scale] | None = None,
    ) -> Analysis:
        """Return the analysis of the dataset (see `evenhand.analysis.analyse`; for `pool` and
        `on_stage`, `all_rubrics.analyse_rubrics`; for `reported`, `Request`).
        """
        # Loaded on use: most uses of a dataset need no analysis.
        from evenhand.analysis.all_rubrics import analyse_rubrics
        from evenhand.analysis.request import Request

        inputs = self.units, self.settings, self.decision, self.facts, self.seed
        request = Request(*inputs, why=why, reported=reported)
        return analyse_rubrics(
            self.ratings, self.scales, request, verify=verify, pool=pool, on_stage=on_stage
        )
