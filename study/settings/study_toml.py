"""`study.toml`: what a study is set to. Validated; unknown keys are refused, comments are kept."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from evenhand.errors import InputError
from evenhand.study.prompts.sampling import DEFAULT_STRATA
from evenhand.study.settings.quality import QualitySettings
from evenhand.study.settings.sections import Section, refusal_of
from evenhand.study.settings.session import (
    AttentionSettings,
    BackgroundSettings,
    ComprehensionQuestion,
    ConsentSettings,
    ProlificSettings,
    SessionSettings,
    TrainingSettings,
)
from evenhand.study.tables.atomic import atomic_write

__all__ = [
    "FILE_NAME",
    "AnalysisSettings",
    "AnnotationSettings",
    "DecisionSettings",
    "SampleSettings",
    "StudyConfig",
    "change_config",
    "new_config_text",
    "read_config",
]

FILE_NAME = "study.toml"


class SampleSettings(Section):
    pairs: int = Field(gt=0)
    stratify: tuple[str, ...] = DEFAULT_STRATA


class AnnotationSettings(Section):
    rubrics: tuple[str, ...] = ()
    """Which rubrics people label; empty means all of the study's."""
    subjects: tuple[str, ...] = ()
    """Whose responses people label; empty means all."""
    raters_per_unit: int = Field(default=3, gt=0)
    units_per_rater: int = Field(default=0, ge=0)
    """The most units that one person is given, whatever the rubrics; 0 means no limit."""
    pairs_per_block: int = Field(default=10, gt=0)
    """A person works through so many pairs before the next ones come."""
    repeat_share: float = Field(default=0.0, ge=0, le=0.5)
    """How large a share of a person's answers is asked for a second time, unannounced."""
    repeat_gap: int = Field(default=20, gt=0)
    """At least so many answers lie between an answer and its repeat."""
    lease_minutes: float = Field(default=120.0, gt=0)
    """How long a unit that was given out and not answered stays reserved."""
    screen: Literal["one", "all"] = "one"
    """One rubric at a time, or all rubrics of a unit on one screen."""
    confidence: bool = False
    rationale: bool = False


class AnalysisSettings(Section):
    margin: float = Field(default=0.1, ge=0)
    """How far below people's own agreement a grader may lie, in kappa."""
    resamples: int = Field(default=2000, ge=100)
    cluster: str = "pair"
    """What is resampled: pairs, "unit", or any units column."""
    interval: Literal["percentile", "bca"] = "percentile"
    epsilon: float = Field(default=0.2, ge=0, lt=1)
    """The handicap of the alternative annotator test: .2 experts, .15 skilled, .1 crowd."""
    slices: tuple[str, ...] = ()
    """Units columns by which the main figures are repeated."""
    variants: tuple[str, ...] = ()
    """Units columns that tell variants of one question apart: how stable are answers and grades?"""
    groups: tuple[str, ...] = ()
    """Units columns that say whom a unit is about: does a grader fail one group?"""
    confidence_cut: float = Field(default=0.9, gt=0, le=1)
    """The confidence from which a grader's labels are looked at by themselves."""
    confidence_target: float = Field(default=0.95, gt=0, le=1)
    """The agreement with people that a chosen cut is to reach."""
    sensitivity_cluster: str = ""
    """A units column that shows what other clusters would do to the intervals."""
    ensembles: tuple[tuple[str, ...], ...] = ()
    """The graders of each ensemble; without, there is one of all graders."""
    leanings: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Two leanings and the groups of each, to tell directions from the first to the second."""
    families: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Parts of models' names by family, beside the usual ones."""


class DecisionSettings(Section):
    """When a grader may stand in for people, beside `analysis.margin`."""

    min_coverage: float = Field(default=0.98, ge=0, le=1)
    """The share of what it was asked that a grader must have scored."""
    min_clusters: int = Field(default=30, ge=5)
    bias_bound: float = Field(default=0.1, ge=0)
    """No audited bias may lie wholly beyond it."""
    min_stability: float = Field(default=0.8, ge=-1, le=1)
    """Kappa from wording to wording of a rubric, below which a label moves with the wording."""
    min_information: float = Field(default=0.5, gt=0, le=1)
    """To be used with correction: its kappa with people, as a share of their own."""


class StudyConfig(Section):
    name: str = Field(min_length=1)
    seed: int = Field(ge=0)
    synthetic: bool = False
    store: str = "study.db"
    """A file beside study.toml (SQLite), or a SQLAlchemy URL."""
    sample: SampleSettings
    annotation: AnnotationSettings = AnnotationSettings()
    session: SessionSettings = SessionSettings()
    consent: ConsentSettings | None = None
    training: TrainingSettings | None = None
    comprehension: tuple[ComprehensionQuestion, ...] = ()
    background: BackgroundSettings | None = None
    attention: AttentionSettings | None = None
    prolific: ProlificSettings | None = None
    analysis: AnalysisSettings = AnalysisSettings()
    decision: DecisionSettings = DecisionSettings()
    quality: QualitySettings = QualitySettings()
    thresholds: dict[str, dict[str, float]] = Field(default_factory=dict)
    """rubric -> grader -> threshold, where it is not the rubric's own."""
    same_text: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """rubric -> hashes of older texts whose labels may be pooled with the present one's."""


def read_config(folder: Path) -> StudyConfig:
    """The study's settings. Raises InputError where there is no study or a key is wrong."""
    path = folder / FILE_NAME
    if not path.is_file():
        raise InputError(
            f"{folder} is not a study: it has no {FILE_NAME}; make one with `evenhand new`"
        )
    try:
        return StudyConfig.model_validate(tomllib.loads(path.read_text("utf-8-sig")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{FILE_NAME} is not valid TOML: {error}") from None
    except ValidationError as error:
        raise refusal_of(FILE_NAME, error) from None


def new_config_text(config: StudyConfig) -> str:
    """A commented study.toml for a new study."""
    import tomlkit

    values = config.model_dump(mode="json")
    document = tomlkit.document()
    for key in ("name", "seed", "store"):
        document[key] = values[key]
    if config.synthetic:
        flag = tomlkit.item(True)
        document["synthetic"] = flag.comment("simulated data; every page says so")
    document["sample"] = values["sample"]
    annotation = tomlkit.table()
    annotation.add(tomlkit.comment("what people label; an empty list means all"))
    annotation.update(values["annotation"])
    document["annotation"] = annotation
    analysis = tomlkit.table()
    analysis.add(tomlkit.comment("a grader may lie this much kappa below people's own agreement"))
    analysis.update({key: value for key, value in values["analysis"].items() if value != {}})
    document["analysis"] = analysis
    document["decision"] = values["decision"]
    return tomlkit.dumps(document)


def change_config(folder: Path, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Set keys (section -> key -> value) in study.toml, leaving the rest as its owner wrote it.

    "thresholds.NAME" is a section within a section; one that is not there yet is added at the end.
    """
    import tomlkit

    path = folder / FILE_NAME
    document = tomlkit.parse(path.read_text("utf-8"))
    for section, values in changes.items():
        table: Any = document
        parts = section.split(".", 1)
        for depth, part in enumerate(parts, start=1):
            if part not in table:
                table[part] = tomlkit.table(is_super_table=depth < len(parts))
            table = table[part]
        for key, value in values.items():
            table[key] = value
    text = tomlkit.dumps(document)
    StudyConfig.model_validate(tomllib.loads(text))
    atomic_write(path, text.encode())
