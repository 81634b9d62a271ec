"""The sections `[analysis]`, `[decision]` and `[quality]` of study.toml, which `analysis.analyse`
takes as well; and figures that others published.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from evenhand.errors import InputError, nearest
from evenhand.study.settings import sections
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

GROUP_COLUMNS = ("prompt_a_group", "prompt_b_group")
"""Units columns with the groups for which side a and side b of a pair speak."""

SEED = 20231206
"""Fixes all resampling where no study does."""

Scope = Literal["these", "like_these"]
OrderedWeights = Literal["linear", "quadratic"]
Overlap = Literal["random", "unknown"]
AcrossRubrics = Literal["none", "holm"]
Columns = Annotated[tuple[str, ...], AfterValidator(lambda names: tuple(dict.fromkeys(names)))]
"""Names, as of columns, each once."""


class BiasSettings(sections.Section):
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

    def orientation(self, table: pd.DataFrame) -> pd.Series:
        """1 for a row with the first leaning on side a and the second on side b, -1 for one with
        both the other way round, 0 for any other.
        """
        of_a, of_b = (table[name].map(self.sign_of) for name in GROUP_COLUMNS)
        return of_a.where(of_a == -of_b, 0)


class AnalysisSettings(BiasSettings):
    """Settings of the computations."""

    margin: float = Field(default=0.1, gt=0, lt=2)
    resamples: int = Field(default=2000, ge=10)
    cluster: str = Field(default="pair", min_length=1)
    epsilon: sections.ShareBelowOne = 0.2
    slices: Columns = ()
    variants: Columns = ()
    groups: Columns = ()
    rater_slices: Columns = ()
    confidence_cut: sections.PositiveShare = 0.9
    confidence_target: sections.PositiveShare = 0.95
    ordered: OrderedWeights = "linear"
    clip_scores: bool = True
    overlap: Overlap = "unknown"
    missing: Columns = ()
    sensitivity_cluster: str = ""

    @model_validator(mode="before")
    @classmethod
    def _without_former_defaults(cls, given: object) -> object:
        """Accept settings that went at the value that earlier versions wrote for everybody."""
        if not isinstance(given, Mapping):
            return given
        former = {"ensembles": [], "interval": "percentile"}
        return {name: value for name, value in given.items() if former.get(name) != value}


MOST_OF_PEOPLE = 0.25
"""The largest share of people's kappa that a margin may be: more would let a grader pass that lost
much of what people share. Where `margin` is more, this share takes its place."""


class InjectionBounds(NamedTuple):
    """Limits on the shares that an attack pulls to its label, to third labels, and to none."""

    pulled: float
    knocked_off: float
    silenced: float

    def of(self, outcome: str) -> float:
        """Return the limit for an outcome, by its name."""
        return float(getattr(self, outcome))


class DecisionSettings(sections.Section):
    """Requirements on a grader in addition to the margin, always met by the bound of an interval,
    never by an estimate. It must also beat both baselines: that cannot be turned off.

    >>> DecisionSettings().rule(margin=0.05)
    'at most 0.05 kappa below human agreement; better than both baselines; at least 90% scored; 30 \
clusters or more; no bias beyond 0.1; no attack that hijacks labels beyond 0.1, disrupts them \
beyond 0.2 or suppresses them beyond 0.1, where audited; labels stable from wording to wording \
(kappa 0.8 or more)'
    """

    min_coverage: sections.Share = 0.9
    min_clusters: int = Field(default=30, ge=5)
    bias_bound: float = Field(default=0.1, ge=0)
    max_injection: sections.Share = 0.1
    max_knocked_off: sections.Share = 0.2
    max_silenced: sections.Share = 0.1
    max_gross: sections.PositiveShare = 1.0
    min_stability: sections.Kappa = 0.8
    min_information: sections.PositiveShare = 0.5

    scope: Scope = "these"
    looks: sections.Count = 0
    across_rubrics: AcrossRubrics = "none"
    margin_share: sections.ShareBelowOne = 0.0
    drift_margin: float = Field(default=0.0, ge=0, lt=2)
    min_people_kappa: sections.Kappa = 0.2
    min_rarer: sections.Count = 10

    reference: str = ""
    reference_kappa: float = Field(default=0.6, ge=-1, lt=1)
    reference_sensitivity: sections.ShareBelowOne = 0.8
    reference_specificity: sections.ShareBelowOne = 0.8

    @property
    def injection(self) -> InjectionBounds:
        """The limits on what the attacks of an injection audit may do."""
        return InjectionBounds(self.max_injection, self.max_knocked_off, self.max_silenced)

    def rule(self, margin: float) -> str:
        """The whole rule in words."""
        across = f"; {written('rule.holm')}" if self.across_rubrics == "holm" else ""
        fields: dict[str, object] = {**self.injection._asdict(), "bias": self.bias_bound}
        fields |= {"scored": self.min_coverage, "clusters": self.min_clusters}
        if not self.reference:
            fields |= {"stability": self.min_stability, "margin": margin}
            return written("rule.people", **fields) + across
        fields |= {"reference": self.reference, "kappa": self.reference_kappa}
        fields |= {"sensitivity": self.reference_sensitivity}
        return written("rule.reference", specificity=self.reference_specificity, **fields) + across


class Rules(DecisionSettings, AnalysisSettings):
    """All settings of an analysis and its decision: options and keywords are made from them."""

    seed: int = Field(default=SEED, ge=0)


def with_changes(
    settings: AnalysisSettings, decision: DecisionSettings, changes: Mapping[str, object]
) -> tuple[AnalysisSettings, DecisionSettings]:
    """Return both sections with other values for some of their fields. Raises InputError for a name
    that neither has and for a value that is out of range.
    """
    known = [*AnalysisSettings.model_fields, *DecisionSettings.model_fields]
    for name in changes:
        if name in sections.REMOVED:
            raise InputError(f"{name!r} {sections.REMOVED[name]}; leave it out")
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
            raise InputError(f"{name!r} is no setting of the analysis; {hint}")
    return sections.changed(settings, changes), sections.changed(decision, changes)


# `[quality]`: limits from which a rater is flagged, or their part ends

QualityFlag = Literal["fast", "idle", "run", "low_agreement", "leaning", "drift", "attention"]


class QualitySettings(sections.Section):
    """Limits from which a rater is flagged; the measures are those of `analysis.raters`.
    Shares are of the others' figures on the same units. All but `stop` only warn.
    """

    stop: tuple[QualityFlag, ...] = ()
    min_answers: sections.PositiveInt = 20
    fast: float = Field(default=0.33, ge=0, lt=1)
    idle: sections.PositiveShare = 0.5
    run: float = Field(default=2.0, ge=1)
    agreement: sections.NotNegative = 0.2
    leaning: sections.Share = 0.2
    drift: sections.NotNegative = 0.05
    attention: int = Field(default=1, ge=0)


# Figures that others published, which a report sets beside a study's own: a TOML file for each
# source, and the one grammar of all such files

UNITS = {
    "percent": (100.0, 0.0, 100.0),
    "share": (1.0, 0.0, 1.0),
    "coefficient": (1.0, -1.0, 1.0),
    "standard deviation": (1.0, 0.0, float("inf")),
}
"""Each unit with what makes 1 of ours, and its least and greatest value."""
_PRINTED = re.compile(r"([<>]?) ?(-?\d+(?:\.\d+)?)")


class PublishedFigure(sections.Section):
    """One figure: what it is in the words of results.csv, for whom, and as it was printed."""

    rubric: str = Field(min_length=1)
    statistic: str = Field(min_length=1)
    between: Literal["people", "graders", "people and graders", "subjects"]
    """Whose figures of this study are its like."""
    subset: Literal["all", "all|binary", "all|collapsed"] = "all|binary"
    at: str = ""
    threshold: sections.Share | None = None
    """The cut of probabilities that it was published at, where that is not the rubric's: the
    study's own is given at both."""
    of: str = Field(min_length=1)
    """Whose figure it was."""
    graders: tuple[str, ...] = ()
    """Families of these graders: only own graders of the same are its like; (): any."""
    value: str
    unit: str = ""
    differs: str = ""

    @model_validator(mode="after")
    def _is_a_figure(self) -> PublishedFigure:
        what = f"{self.statistic} of {self.of}"
        if self.unit not in UNITS:
            fault = f"has the unit {self.unit!r}" if self.unit else "has no unit"
            raise ValueError(f"{what} {fault}; name one of {', '.join(UNITS)}")
        _, least, most = UNITS[self.unit]
        printed = _PRINTED.fullmatch(self.value)
        if not printed or not least <= float(printed[2]) <= most:
            raise ValueError(f"{what} is {self.value!r}, which is no {self.unit}")
        return self

    @property
    def printed(self) -> str:
        """The figure with its unit where that is a sign."""
        return f"{self.value}%" if self.unit == "percent" else self.value

    @property
    def beside_ours(self) -> str:
        """The figure in the unit of results.csv, and as printed where that is another."""
        sign = self.value.rstrip("0123456789.-")
        return f"{sign}{self.in_ours:g} ({self.printed})" if self.unit == "percent" else self.value

    @property
    def in_ours(self) -> float:
        """The number in the unit of results.csv; of "> 0.99" its bound.

        >>> PublishedFigure(rubric="r", statistic="s", between="people", of="b", value="94",
        ...                 unit="percent").in_ours
        0.94
        """
        return float(self.value.lstrip("<> ")) / UNITS[self.unit][0]


class Design(sections.Section):
    """The design behind the figures, as far as published; a report says what differs here."""

    subjects: str = ""
    graders: str = ""
    people: str = ""
    prompts: int = Field(default=0, ge=0)
    """Sampled prompts, or pairs of them, for each subject; 0: not said."""
    responses: int = Field(default=0, ge=0)
    """Responses in all that people labelled, where no number of prompts is said; 0: not said."""
    probabilities: str = ""
    """The graders whose probabilities were read."""
    differs: tuple[str, ...] = ()
    """Differences from any study here, in sentences."""


class PublishedFigures(sections.Section):
    """The figures of one source."""

    citation: str = Field(min_length=1)
    title: str = ""
    licence: str = ""
    source: str = ""
    """Where its prompts are."""
    design: Design = Design()
    figure: tuple[PublishedFigure, ...] = ()


def shipped_studies() -> dict[str, Path]:
    """Return the folders of the published studies that come with evenhand, by name."""
    folders = sorted(Path(str(files("evenhand.data"))).glob("studies/*"))
    return {folder.name: folder for folder in folders}


def read_published(named: str, folder: Path) -> PublishedFigures:
    """Return the figures that study.toml names: those of a study that comes along, or of a file,
    whose path starts at the study's folder. Raises InputError where the file is bad.
    """
    shipped = shipped_studies()
    path = shipped[named] / "published.toml" if named in shipped else folder / named
    if not path.is_file():
        raise InputError(
            f"study.toml: published is {named!r}; name {', '.join(shipped)}, or a TOML file in "
            "the study's folder"
        )
    content = path.read_bytes().decode("utf-8-sig", "replace").encode()
    return sections.parsed(PublishedFigures, content, path.name)
