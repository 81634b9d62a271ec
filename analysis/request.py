"""Request of an analysis, the same for every rubric: settings, and what is known of the study."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings

if TYPE_CHECKING:  # who declares what is known of a study waits for no numerical library
    import pandas as pd

    from evenhand.analysis.bootstrap.resamples import Resamples
    from evenhand.analysis.labels.matrix import Public
    from evenhand.analysis.types import Array, Frequency


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
    their own statements about themselves. `usage` has what each `rater_id` did and cost on each
    `rubric` (see `analysis.raters`), `prices` the cost of 1,000 units in US dollars, by
    (rubric, grader). `looks` counts, by rubric, looks at the verdict as labels came in, with this
    one (1 if not given); at 0 no verdict is given. `sorted` counts, by (rubric, grader, kind), the
    disagreements with humans that the lead sorted. `attacked` is the table of graders' replies in
    the injection audit (`study.store.logs.replies`). `rewordings` has, by the name of a wording
    that was tried among people, that trial. `source` is the name of the ratings in messages,
    `strata` the units columns that the labelled sample was stratified by. `assigned` says that it
    did not depend on labels who was asked for which unit, as where a study assigns them. Where
    raters and rubrics go by display names, `ids` has the id of each.
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
    """Inputs of an analysis: the units, the settings, what else is known of the ratings, the seed
    of all resampling. `people` are the raters of every `column=value`; `why` asks for the variance
    of their labels too. `rubrics` is how many are asked of people and graders. `publics` has the
    columns of annotators that explain their labels.
    """

    units: pd.DataFrame | None
    settings: AnalysisSettings
    decision: DecisionSettings = field(default_factory=DecisionSettings)
    facts: StudyFacts = field(default_factory=StudyFacts)
    seed: int = SEED
    people: Mapping[str, frozenset[str]] = field(default_factory=dict)
    why: bool = False
    rubrics: int = 1
    publics: Mapping[str, Public] = field(default_factory=dict)
    _latest: dict[bytes, Resamples] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """All units columns that are needed."""
        return tuple(dict.fromkeys((*self.screened, *self.settings.variants, *self.strata)))

    @property
    def strata(self) -> tuple[str, ...]:
        """Columns that the labelled sample was stratified by, as far as units have them."""
        columns = () if self.units is None else self.units.columns
        return tuple(name for name in self.facts.strata if name in columns)

    @property
    def screened(self) -> tuple[str, ...]:
        """Units columns that describe the kind of a unit, but not how it was put."""
        return tuple(dict.fromkeys((*self.settings.slices, *self.settings.groups)))

    def resampled(
        self, frequency: Frequency, weight: Array | None = None, keep: bool = True
    ) -> Resamples:
        """Return resamples of clusters with this frequency and weight; the latest are cached."""
        import numpy as np

        from evenhand.analysis.bootstrap.resamples import Resamples

        key = frequency.tobytes() + (b"" if weight is None else weight.tobytes())
        if key not in self._latest:
            self._latest.clear()
            drawn = self.settings.resamples, np.random.default_rng(self.seed)
            self._latest[key] = Resamples(frequency, *drawn, weight, keep)
        return self._latest[key]
