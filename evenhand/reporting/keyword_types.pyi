# Written by `python -m docs.keywords`.

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from evenhand.analysis.labels.scale import Level
from evenhand.reporting.ratings_file.dataframes import Names
from evenhand.reporting.ratings_file.declared import Table

class RatingsKeywords(TypedDict, total=False):
    human: Names
    model: Names
    units: Table | str | os.PathLike[str] | None
    rubric: str | None
    categories: Names
    level: Level | None
    affirmative: Names | None
    sides: Names | None
    thresholds: Mapping[str, float] | None
    columns: Mapping[str, str] | None
    format: str | None
    normalise: bool | None
    independent: bool
    several: bool
    wide: str
    sheet: str
    name: str
    seed: int
    leanings: Mapping[str, Sequence[str]]
    families: Mapping[str, Sequence[str]]
    margin: float
    resamples: int
    cluster: str
    epsilon: float
    slices: str | Sequence[str]
    variants: str | Sequence[str]
    groups: str | Sequence[str]
    rater_slices: str | Sequence[str]
    confidence_cut: float
    confidence_target: float
    ordered: Literal["linear", "quadratic"]
    clip_scores: bool
    missing: Names
    sensitivity_cluster: str
    min_coverage: float
    min_clusters: int
    bias_bound: float
    max_injection: float
    max_knocked_off: float
    max_silenced: float
    max_gross: float
    min_stability: float
    min_information: float
    scope: Literal["these", "like_these"]
    looks: int
    across_rubrics: Literal["none", "holm"]
    margin_share: float
    drift_margin: float
    min_people_kappa: float
    min_rarer: int
    reference_kappa: float
    reference_sensitivity: float
    reference_specificity: float
    reference: str
    overlap: Literal["random", "unknown"]

class TuningKeywords(TypedDict, total=False):
    human: Names
    model: Names
    units: Table | str | os.PathLike[str] | None
    rubric: str | None
    categories: Names
    level: Level | None
    affirmative: Names | None
    sides: Names | None
    thresholds: Mapping[str, float] | None
    columns: Mapping[str, str] | None
    format: str | None
    normalise: bool | None
    independent: bool
    several: bool
    wide: str
    sheet: str
    name: str
    seed: int
    leanings: Mapping[str, Sequence[str]]
    families: Mapping[str, Sequence[str]]
    margin: float
    resamples: int
    cluster: str
    epsilon: float
    slices: str | Sequence[str]
    variants: str | Sequence[str]
    groups: str | Sequence[str]
    rater_slices: str | Sequence[str]
    confidence_cut: float
    confidence_target: float
    ordered: Literal["linear", "quadratic"]
    clip_scores: bool
    missing: Names
    sensitivity_cluster: str
    min_coverage: float
    min_clusters: int
    bias_bound: float
    max_injection: float
    max_knocked_off: float
    max_silenced: float
    max_gross: float
    min_stability: float
    min_information: float
    scope: Literal["these", "like_these"]
    looks: int
    across_rubrics: Literal["none", "holm"]
    margin_share: float
    drift_margin: float
    min_people_kappa: float
    min_rarer: int
    reference_kappa: float
    reference_sensitivity: float
    reference_specificity: float
    overlap: Literal["random", "unknown"]

class PlanKeywords(TypedDict, total=False):
    human: Names
    model: Names
    units: Table | str | os.PathLike[str] | None
    rubric: str | None
    categories: Names
    level: Level | None
    affirmative: Names | None
    sides: Names | None
    thresholds: Mapping[str, float] | None
    columns: Mapping[str, str] | None
    format: str | None
    normalise: bool | None
    independent: bool
    several: bool
    wide: str
    sheet: str
    name: str
    seed: int
    leanings: Mapping[str, Sequence[str]]
    families: Mapping[str, Sequence[str]]
    margin: float
    resamples: int
    cluster: str
    epsilon: float
    slices: str | Sequence[str]
    variants: str | Sequence[str]
    groups: str | Sequence[str]
    rater_slices: str | Sequence[str]
    confidence_cut: float
    confidence_target: float
    ordered: Literal["linear", "quadratic"]
    clip_scores: bool
    missing: Names
    sensitivity_cluster: str
    min_coverage: float
    min_clusters: int
    bias_bound: float
    max_injection: float
    max_knocked_off: float
    max_silenced: float
    max_gross: float
    min_stability: float
    min_information: float
    scope: Literal["these", "like_these"]
    looks: int
    across_rubrics: Literal["none", "holm"]
    margin_share: float
    drift_margin: float
    min_people_kappa: float
    min_rarer: int
    reference_kappa: float
    reference_sensitivity: float
    reference_specificity: float
    reference: str
    agreement: float
    prevalence: float
    scale: str
    correlation: float
    mean: float | str | Sequence[str]
    raters: int
    overlap: float | Literal["random", "unknown"]
    subjects: int
    likeness: float
    strictness: float | None
    power: float

class LabelKeywords(TypedDict, total=False):
    show: str | Sequence[str]
    subject: str | Sequence[str]
    cluster: str
    judge: str
    missing: Names
    each_turn: bool
    rubric: str | Sequence[str]
    question: str
    options: str | Sequence[str]
    scale: str
    several: bool
    level: Literal["nominal", "ordinal"]
    steps: int
    sheet: str
    sample: int
    stratify: str | Sequence[str]
    seed: int
    raters: int
