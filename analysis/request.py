"""Request of an analysis, the same for every rubric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.study_facts import StudyFacts
from evenhand.analysis.types import Array, DataFrame, Frequency
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings


@dataclass(frozen=True)
class Request:
    """Inputs of an analysis: the units, the settings, what else is known of the ratings, the seed
    of all resampling. `people` are the raters of every `column=value`; `why` asks for the variance
    of their labels too. `rubrics` is how many are asked of people and graders.
    """

    units: DataFrame | None
    settings: AnalysisSettings
    decision: DecisionSettings = field(default_factory=DecisionSettings)
    facts: StudyFacts = field(default_factory=StudyFacts)
    seed: int = SEED
    people: Mapping[str, frozenset[str]] = field(default_factory=dict)
    why: bool = False
    rubrics: int = 1
    _latest: dict[bytes, Resamples] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """All units columns that are needed."""
        return tuple(dict.fromkeys((*self.screened, *self.settings.variants, *self.strata)))

    @property
    def strata(self) -> tuple[str, ...]:
        """Columns that the labelled sample was stratified by, as far as units have them."""
        known = () if self.units is None else self.units.columns
        return tuple(name for name in self.facts.strata if name in known)

    @property
    def screened(self) -> tuple[str, ...]:
        """Units columns that describe the kind of a unit, but not how it was put."""
        return tuple(dict.fromkeys((*self.settings.slices, *self.settings.groups)))

    def resampled(
        self, frequency: Frequency, weight: Array | None = None, keep: bool = True
    ) -> Resamples:
        """Return resamples of clusters with this frequency and weight.

        The latest ones are cached.
        """
        key = frequency.tobytes() + (b"" if weight is None else weight.tobytes())
        if key not in self._latest:
            self._latest.clear()
            rng = np.random.default_rng(self.seed)
            settings = self.settings
            self._latest[key] = Resamples(
                frequency, settings.resamples, rng, settings.interval, weight, keep
            )
        return self._latest[key]
