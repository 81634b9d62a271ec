"""Request of an analysis, the same for every rubric: settings, and facts about the study."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings

if TYPE_CHECKING:  # importing this module loads no numerical library
    import pandas as pd

    from evenhand.analysis.bootstrap.resamples import Resamples
    from evenhand.analysis.labels.matrix import RaterColumn
    from evenhand.analysis.labels.scale import Scale
    from evenhand.analysis.types import Array, Frequency


@dataclass(frozen=True)
class TriedWording:
    """A trial of a new wording of the rubric `of` by annotators. `old` and `new` are the ids of the
    units labelled under each wording, `raters` is the number of annotators who labelled each unit.
    """

    of: str
    old: Collection[str]
    new: Collection[str]
    raters: int


@dataclass(frozen=True)
class StudyFacts:
    """Facts about the ratings, all of them optional.

    - `rubric_hashes`: by rubric, the hashes of the versions whose ratings count.
    - `excluded`: ids of the humans whose labels are left out, with the reason.
    - `raters`: table of humans, with `rater_id` and columns of their answers about themselves.
    - `usage`: table of attempts and cost of each `rater_id` on each `rubric` (`analysis.raters`).
    - `prices`: cost of 1,000 units in US dollars, by (rubric, grader).
    - `looks`: by rubric, the number of interim analyses up to this one, 1 by default; at 0 there
      is no verdict.
    - `sorted`: number of disagreements that the study lead classified, by (rubric, grader, kind).
    - `attacked`: graders' replies in the injection audit (`study.store.logs.replies`).
    - `rewordings`: trials of new wordings, by the wording's name.
    - `source`: name of the ratings in messages.
    - `strata`: units columns that the labelled sample was stratified by.
    - `assigned`: True if units were assigned to humans independently of labels.
    - `ids`: ids of the raters and rubrics with display names, by display name.
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
    ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """Inputs of an analysis: units, settings, facts about the ratings, and resampling's seed.

    `people` are the ids of humans by "column=value", such as "party=left". If `why` is True, the
    variance of labels is split into components. `n_rubrics` does not count rubrics that are a
    wording of another. `explaining` are, by name, the columns of annotators whose values explain
    their labels: those with the same value, such as one party, agree more. `reported` are the
    scales of the rubrics that the result has (None: all); they are judged together with the others.
    """

    units: pd.DataFrame | None
    settings: AnalysisSettings
    decision: DecisionSettings = field(default_factory=DecisionSettings)
    facts: StudyFacts = field(default_factory=StudyFacts)
    seed: int = SEED
    people: Mapping[str, frozenset[str]] = field(default_factory=dict)
    why: bool = False
    n_rubrics: int = 1
    explaining: Mapping[str, RaterColumn] = field(default_factory=dict)
    reported: Mapping[str, Scale] | None = None
    _cached: dict[bytes, Resamples] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all units columns that the analysis uses."""
        return tuple(dict.fromkeys((*self.screened, *self.settings.variants, *self.strata)))

    @property
    def strata(self) -> tuple[str, ...]:
        """Columns that the labelled sample was stratified by, without those that units lack."""
        columns = () if self.units is None else self.units.columns
        return tuple(name for name in self.facts.strata if name in columns)

    @property
    def screened(self) -> tuple[str, ...]:
        """Units columns to slice or group units by, without the variants of a question."""
        return tuple(dict.fromkeys((*self.settings.slices, *self.settings.groups)))

    def resampled(
        self, frequency: Frequency, weight: Array | None = None, keep: bool = True
    ) -> Resamples:
        """Return resamples of clusters with this `frequency` and `weight`, both (clusters,). Only
        the last ones are cached. `keep` keeps their draws in memory: it changes speed, not figures.
        """
        import numpy as np

        from evenhand.analysis.bootstrap.resamples import Resamples

        key = frequency.tobytes() + (b"" if weight is None else weight.tobytes())
        if key not in self._cached:
            self._cached.clear()
            rng = np.random.default_rng(self.seed)
            self._cached[key] = Resamples(frequency, self.settings.resamples, rng, weight, keep)
        return self._cached[key]
