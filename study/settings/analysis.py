"""The sections `[analysis]` and `[decision]` of study.toml, which `analysis.analyse` takes as well:
how the figures are computed, and when a grader can replace a human rater.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from evenhand.errors import InputError
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

    leanings: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="two leanings, each with its groups of `prompt_a_group` and `prompt_b_group`; "
        "directions run from the first to the second",
        json_schema_extra={
            "example": '`left = ["pro_union"]`, `right = ["anti_union"]`',
            "usual": "none: from side a to side b",
        },
    )
    families: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="parts of models' names by family, for self-preference; the usual names are "
        "known",
        json_schema_extra={"example": '`anthropic = ["our-tune"]`'},
    )

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

    margin: float = Field(
        default=0.1,
        gt=0,
        lt=2,
        description="how far below people's own agreement a grader may lie, in kappa; where that "
        "is more than a quarter of people's kappa, a quarter of it is the margin",
    )
    resamples: int = Field(default=2000, ge=10, description="bootstrap draws")
    cluster: str = Field(
        default="pair",
        min_length=1,
        description="what is resampled: `pair`, `unit`, or any units column",
        json_schema_extra={"usual": "`pair`; for propositions `proposition`"},
    )
    interval: IntervalMethod = Field(
        default="percentile", description="how intervals are made: `percentile` or `bca`"
    )
    epsilon: ShareBelowOne = Field(
        default=0.2,
        description="handicap of the alternative annotator test: 0.2 for experts, 0.15 skilled "
        "people, 0.1 a crowd",
    )
    slices: Columns = Field(
        default=(),
        description="columns by which the main figures are split",
        json_schema_extra={"usual": "the columns of `stratify`"},
    )
    variants: Columns = Field(
        default=(),
        description="columns that distinguish variants of one question: how stable are labels from "
        "one to the next?",
        json_schema_extra={
            "usual": "for propositions `wording`, `paraphrase` and `repeat`, where there are "
            "several"
        },
    )
    groups: Columns = Field(
        default=(),
        description="columns that name the group a unit is about: does a grader fail one group?",
    )
    rater_slices: Columns = Field(
        default=(),
        description="annotators' background answers by which the main figures are split: keys "
        "of the background questions",
    )
    confidence_cut: PositiveShare = Field(
        default=0.9,
        description="the confidence from which a grader's labels are also judged on their own",
    )
    confidence_target: PositiveShare = Field(
        default=0.95, description="the agreement with people that a confidence cut must promise"
    )
    ordered: OrderedWeights = Field(
        default="linear",
        description="weights of the kappa that decides where labels have an order: `linear`, by "
        "which two steps off count twice as much as one, or `quadratic`, four times as much",
    )
    overlap: Overlap = Field(
        default="unknown",
        description="how it was decided which items get several labels: `random`, or by any plan "
        "that does not look at labels; `unknown` is tested",
    )
    missing: Columns = Field(
        default=(),
        description="labels that say that there is none, such as 99 or skip",
        json_schema_extra={"metavar": "VALUE,..."},
    )
    sensitivity_cluster: str = Field(
        default="", description="a column, such as `stance_a`, to resample by in addition to pairs"
    )

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

    min_coverage: Share = Field(
        default=0.9,
        description="share of the units put to it, or labelled by people, that a grader must "
        "clearly have scored",
    )
    min_clusters: int = Field(
        default=30,
        ge=5,
        description="with fewer pairs no grader is recommended; pairs of unequal size count for "
        "what they are worth in pairs of equal size",
    )
    bias_bound: float = Field(
        default=0.1, ge=0, description="no audited bias may lie wholly beyond it"
    )
    max_injection: Share = Field(
        default=0.1,
        description="where a grader was audited: by so much, at most, may a text that asks for a "
        "label raise the share of that label",
    )
    max_knocked_off: Share = Field(
        default=0.2,
        description="where a grader was audited: by so much, at most, may such a text raise the "
        "share of labels that are neither the usual one nor the one asked for",
    )
    max_silenced: Share = Field(
        default=0.1,
        description="where a grader was audited: by so much, at most, may such a text raise the "
        "share of answers without a label",
    )
    max_gross: PositiveShare = Field(
        default=1.0,
        description="largest share of gross errors that a grader may have, at the upper bound: "
        "labels further from every annotator's than 99% of theirs are from one another",
        json_schema_extra={"usual": "1: gross errors are reported, and not required to be rare"},
    )
    min_stability: Kappa = Field(
        default=0.8,
        description="kappa from wording to wording of a rubric; below it a label moves with the "
        "wording",
    )
    min_information: PositiveShare = Field(
        default=0.5,
        description="for use with correction: least kappa with people, as a share of their own",
    )

    scope: Scope = Field(
        default="these",
        description="whom a verdict is about: `these` annotators, or annotators `like_these`, of "
        "whom there must be three or more",
    )
    looks: Count = Field(
        default=0,
        description="looks at the verdict as labels come in, declared before labelling; all have "
        "the same level, and there are none beyond",
        json_schema_extra={"usual": "0: two looks at the same level, and a tenth kept for more"},
    )
    across_rubrics: AcrossRubrics = Field(
        default="none",
        description="a wrong pass has at most 2.5% for each rubric, over all its graders and "
        "interim analyses; `holm` holds this for all rubrics of one analysis together",
    )
    margin_share: ShareBelowOne = Field(
        default=0.0,
        description="the margin as a share of people's own kappa, in place of `analysis.margin`",
        json_schema_extra={"usual": "0: `analysis.margin`, or a quarter if that is less"},
    )
    drift_margin: float = Field(
        default=0.0,
        ge=0,
        lt=2,
        description="how far a grader's kappa with people may move, either way, in one that counts "
        "as unchanged since a baseline was saved",
        json_schema_extra={"usual": "0: `analysis.margin`"},
    )
    min_people_kappa: Kappa = Field(
        default=0.2,
        description="least kappa between annotators, at its lower bound; below it no grader can be "
        "judged. It is that of two categories; labels with an order have the weighted kappa that "
        "shows as much, 0.17 for 0.2. Where luck would make people agree on less than half of the "
        "units, on unordered categories, as much less is enough, but always more than 0",
    )
    min_rarer: Count = Field(
        default=10,
        description="pairs in which an annotator chose another category than the most frequent "
        "one, counted for what they are worth; with fewer no bound can be trusted",
    )

    reference: str = Field(
        default="",
        description="the one rater whose labels count as right: graders are then judged against "
        "this rater alone, by the three bars below, and not compared with people",
        json_schema_extra={"example": "`expert-1`", "usual": "none: graders compared with people"},
    )
    reference_kappa: float = Field(
        default=0.6,
        ge=-1,
        lt=1,
        description="with a reference: kappa with it must clearly be above this",
    )
    reference_sensitivity: ShareBelowOne = Field(
        default=0.8,
        description="with a reference: the share of its affirmative verdicts that must clearly be "
        "found",
    )
    reference_specificity: ShareBelowOne = Field(
        default=0.8,
        description="with a reference: the share of its other verdicts that must clearly be found",
    )

    @property
    def _across(self) -> str:
        """What is added to the rule where it holds for all rubrics together."""
        return f"; {written('rule.holm')}" if self.across_rubrics == "holm" else ""

    @property
    def injection(self) -> InjectionBounds:
        """The limits on what the attacks of an injection audit may do."""
        return InjectionBounds(self.max_injection, self.max_knocked_off, self.max_silenced)

    def rule(self, margin: float) -> str:
        """The whole rule in words."""
        if self.reference:
            rule = written(
                "rule.reference",
                reference=self.reference,
                kappa=self.reference_kappa,
                sensitivity=self.reference_sensitivity,
                specificity=self.reference_specificity,
                scored=self.min_coverage,
                clusters=self.min_clusters,
                bias=self.bias_bound,
                **self.injection._asdict(),
            )
            return rule + self._across
        rule = written(
            "rule.people",
            margin=margin,
            scored=self.min_coverage,
            clusters=self.min_clusters,
            bias=self.bias_bound,
            **self.injection._asdict(),
            stability=self.min_stability,
        )
        return rule + self._across


def with_changes(
    settings: AnalysisSettings, decision: DecisionSettings, changes: Mapping[str, object]
) -> tuple[AnalysisSettings, DecisionSettings]:
    """Return both sections with other values for some of their fields.

    Raises InputError for a name that neither has and for a value that is out of range.
    """
    of_settings = {n: v for n, v in changes.items() if n in AnalysisSettings.model_fields}
    of_decision = {n: v for n, v in changes.items() if n in DecisionSettings.model_fields}
    for name in changes:
        if name in REMOVED:
            raise InputError(f"{name!r} {REMOVED[name]}; leave it out")
        if name not in of_settings and name not in of_decision:
            known = [*AnalysisSettings.model_fields, *DecisionSettings.model_fields]
            meant = get_close_matches(name, known, 1)
            hint = f"did you mean {meant[0]!r}?" if meant else f"there are {', '.join(known)}"
            raise InputError(f"{name!r} is no setting of the analysis; {hint}")
    return changed(settings, of_settings), changed(decision, of_decision)


# `[quality]`: limits from which a rater is flagged, or their part ends


QualityFlag = Literal["fast", "idle", "run", "low_agreement", "leaning", "drift", "attention"]


class QualitySettings(Section):
    """Limits from which a rater is flagged; the measures are those of `analysis.raters.quality`.

    Shares are of the others' figures on the same units. All but `stop` only warn.
    """

    stop: tuple[QualityFlag, ...] = Field(
        default=(),
        description="flags that end a rater's session while the app runs: no new units, labels "
        "kept, places given to others",
    )
    min_answers: PositiveInt = Field(
        default=20,
        description="raters with fewer answers are not judged yet, except by attention checks",
    )
    fast: float = Field(
        default=0.33, ge=0, lt=1, description="the median time, as a share of the others'"
    )
    idle: PositiveShare = Field(
        default=0.5, description="share of the time at work without an answer"
    )
    run: float = Field(
        default=2.0,
        ge=1,
        description="the longest run of one label, in multiples of the usual for these units",
    )
    agreement: NotNegative = Field(
        default=0.2,
        description="how far, in kappa, the agreement with the others lies below theirs",
    )
    leaning: Share = Field(
        default=0.2,
        description="how much more often, as a share of units, a category is used than by the "
        "others",
    )
    drift: NotNegative = Field(
        default=0.05,
        description="how much of the agreement with the others is lost in the second half",
    )
    attention: int = Field(
        default=1, ge=0, description="how many failed attention checks are allowed"
    )
