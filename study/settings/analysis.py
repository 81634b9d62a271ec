"""The sections `[analysis]` and `[decision]` of study.toml, which `analysis.analyse` takes as well:
how the figures are computed, and when a grader can replace a human rater.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from evenhand.errors import InputError, nearest
from evenhand.study.settings.sections import (
    REMOVED,
    Count,
    Kappa,
    NotNegative,
    PositiveInt,
    PositiveShare,
    Section,
    Share,
    ShareBelowOne,
    changed,
)
from evenhand.texts import written

GROUP_COLUMNS = ("prompt_a_group", "prompt_b_group")
"""Units columns with the groups for which side a and side b of a pair speak."""

SEED = 20231206
"""Fixes all resampling where no study does."""

IntervalMethod = Literal["percentile", "bca"]
Scope = Literal["these", "like_these"]
OrderedWeights = Literal["linear", "quadratic"]
Overlap = Literal["random", "unknown"]
AcrossRubrics = Literal["none", "holm"]
Columns = Annotated[tuple[str, ...], AfterValidator(lambda names: tuple(dict.fromkeys(names)))]
"""Names, as of columns, each once."""


class BiasSettings(Section):
    """Groups and model families for the bias audit.

    >>> BiasSettings(leanings={"left": ["union"], "right": ["employer"]}).sign_of("employer")
    -1
    """

    leanings: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    families: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _two_leanings_apart(self) -> Self:
        if len(self.leanings) not in (0, 2):
            raise ValueError(
                f"leanings names {', '.join(self.leanings)}; name the two that are to be compared, "
                "each with its groups"
            )
        first, second = [set(groups) for groups in self.leanings.values()] or [set(), set()]
        if both := first & second:
            raise ValueError(f"leanings has the group {min(both)!r} on both sides; keep one")
        return self

    @property
    def sides(self) -> tuple[str, str]:
        """The names of the two sides, the one that directions count as positive first."""
        first, second = self.leanings or ("side a", "side b")
        return first, second

    def sign_of(self, group: str) -> int:
        """1 for a group of the first leaning, -1 for one of the second, 0 for any other."""
        for sign, groups in zip((1, -1), self.leanings.values(), strict=False):
            if group in groups:
                return sign
        return 0


class AnalysisSettings(BiasSettings):
    """Settings of the computations."""

    margin: float = Field(default=0.1, gt=0, lt=2)
    resamples: int = Field(default=2000, ge=10)
    cluster: str = Field(default="pair", min_length=1)
    interval: IntervalMethod = "percentile"
    epsilon: ShareBelowOne = 0.2
    slices: Columns = ()
    variants: Columns = ()
    groups: Columns = ()
    rater_slices: Columns = ()
    confidence_cut: PositiveShare = 0.9
    confidence_target: PositiveShare = 0.95
    ordered: OrderedWeights = "linear"
    overlap: Overlap = "unknown"
    missing: Columns = ()
    sensitivity_cluster: str = ""

    @model_validator(mode="before")
    @classmethod
    def _without_empty_ensembles(cls, given: object) -> object:
        """Accept `ensembles = []`, which `new` wrote into each study.toml before version 0.3."""
        if isinstance(given, Mapping) and not given.get("ensembles", True):
            return {name: value for name, value in given.items() if name != "ensembles"}
        return given


MOST_OF_PEOPLE = 0.25
"""The largest share of people's kappa that a margin may be: more would let a grader pass that lost
much of what people share. Where `margin` is more, this share takes its place."""


class InjectionBounds(NamedTuple):
    """Limits on how much an attack may raise three shares: of the label that it asks for, of third
    labels, and of answers without a label.
    """

    pulled: float
    knocked_off: float
    silenced: float

    def of(self, outcome: str) -> float:
        """Return the limit for an outcome, by its name."""
        return float(getattr(self, outcome))


class DecisionSettings(Section):
    """Requirements on a grader in addition to the margin, always met by the bound of an interval,
    never by an estimate. It must also beat both baselines: that cannot be turned off.

    >>> DecisionSettings().rule(margin=0.05)
    'at most 0.05 kappa below people; better than both baselines; at least 90% scored; 30 clusters \
or more; no bias beyond 0.1; no attack that pulls labels beyond 0.1, knocks them off beyond 0.2 or \
silences beyond 0.1, where audited; labels stable from wording to wording (kappa 0.8 or more)'
    """

    min_coverage: Share = 0.9
    min_clusters: int = Field(default=30, ge=5)
    bias_bound: float = Field(default=0.1, ge=0)
    max_injection: Share = 0.1
    max_knocked_off: Share = 0.2
    max_silenced: Share = 0.1
    max_gross: PositiveShare = 1.0
    min_stability: Kappa = 0.8
    min_information: PositiveShare = 0.5

    scope: Scope = "these"
    looks: Count = 0
    across_rubrics: AcrossRubrics = "none"
    margin_share: ShareBelowOne = 0.0
    drift_margin: float = Field(default=0.0, ge=0, lt=2)
    min_people_kappa: Kappa = 0.2
    min_rarer: Count = 10

    reference: str = ""
    reference_kappa: float = Field(default=0.6, ge=-1, lt=1)
    reference_sensitivity: ShareBelowOne = 0.8
    reference_specificity: ShareBelowOne = 0.8

    @property
    def injection(self) -> InjectionBounds:
        """The limits on what the attacks of an injection audit may do."""
        return InjectionBounds(self.max_injection, self.max_knocked_off, self.max_silenced)

    def rule(self, margin: float) -> str:
        """The whole rule in words."""
        across = f"; {written('rule.holm')}" if self.across_rubrics == "holm" else ""
        both: dict[str, float] = self.injection._asdict()
        both |= {"scored": self.min_coverage, "clusters": self.min_clusters}
        both["bias"] = self.bias_bound
        if not self.reference:
            both["stability"] = self.min_stability
            return written("rule.people", margin=margin, **both) + across
        rule = written(
            "rule.reference",
            reference=self.reference,
            kappa=self.reference_kappa,
            sensitivity=self.reference_sensitivity,
            specificity=self.reference_specificity,
            **both,
        )
        return rule + across


class Rules(DecisionSettings, AnalysisSettings):
    """All settings of an analysis and its decision, by which options of the command line and
    keywords in Python are made.
    """

    seed: int = Field(default=SEED, ge=0)


def with_changes(
    settings: AnalysisSettings, decision: DecisionSettings, changes: Mapping[str, object]
) -> tuple[AnalysisSettings, DecisionSettings]:
    """Return both sections with other values for some of their fields.

    Raises InputError for a name that neither has and for a value that is out of range.
    """
    known = [*AnalysisSettings.model_fields, *DecisionSettings.model_fields]
    for name in changes:
        if name in REMOVED:
            raise InputError(f"{name!r} {REMOVED[name]}; leave it out")
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
            raise InputError(f"{name!r} is no setting of the analysis; {hint}")
    return changed(settings, changes), changed(decision, changes)


# `[quality]`: limits from which a rater is flagged, or their part ends


QualityFlag = Literal["fast", "idle", "run", "low_agreement", "leaning", "drift", "attention"]


class QualitySettings(Section):
    """Limits from which a rater is flagged; the measures are those of `analysis.raters`.

    Shares are of the others' figures on the same units. All but `stop` only warn.
    """

    stop: tuple[QualityFlag, ...] = ()
    min_answers: PositiveInt = 20
    fast: float = Field(default=0.33, ge=0, lt=1)
    idle: PositiveShare = 0.5
    run: float = Field(default=2.0, ge=1)
    agreement: NotNegative = 0.2
    leaning: Share = 0.2
    drift: NotNegative = 0.05
    attention: int = Field(default=1, ge=0)
