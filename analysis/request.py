"""What an analysis was asked for, the same for every rubric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.bias import BiasSettings
from evenhand.analysis.bootstrap.intervals import IntervalMethod
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.thresholds.confidence import ConfidenceRule
from evenhand.analysis.types import Frequency
from evenhand.analysis.verdicts.rule import DecisionRule
from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Request:
    """The options of `analysis.analyse`; `people` are the raters of every `column=value`."""

    units: pd.DataFrame | None
    cluster: str
    sensitivity_cluster: str
    slices: tuple[str, ...]
    variants: tuple[str, ...]
    groups: tuple[str, ...]
    people: Mapping[str, frozenset[str]]
    excluded: Mapping[str, str]
    ensembles: Sequence[Sequence[str]]
    prices: Mapping[tuple[str, str], float]
    usage: pd.DataFrame | None
    rule: DecisionRule
    bias: BiasSettings
    epsilon: float
    confidence: ConfidenceRule
    resamples: int
    seed: int
    method: IntervalMethod
    source: str
    why: bool
    _latest: dict[bytes, Resamples] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise InputError(f"resamples is {self.resamples}; it must be 1 or more")
        if not 0 <= self.epsilon < 1:
            raise InputError(f"epsilon is {self.epsilon}; it must lie between 0 and 1")

    @property
    def columns(self) -> tuple[str, ...]:
        """Every units column that is asked for."""
        return tuple(dict.fromkeys((*self.slices, *self.groups, *self.variants)))

    @property
    def screened(self) -> tuple[str, ...]:
        """The units columns that say of what kind a unit is, but not how it was put."""
        return tuple(dict.fromkeys((*self.slices, *self.groups)))

    def resampled(self, frequency: Frequency) -> Resamples:
        """Resamples of clusters that stand in the data so often; the latest are kept."""
        key = frequency.tobytes()
        if key not in self._latest:
            self._latest.clear()
            rng = np.random.default_rng(self.seed)
            self._latest[key] = Resamples(frequency, self.resamples, rng, self.method)
        return self._latest[key]
