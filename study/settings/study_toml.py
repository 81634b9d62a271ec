"""`study.toml`: the settings of a study. Validated; unknown keys are refused, comments are kept."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from evenhand.errors import InputError
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, QualitySettings
from evenhand.study.settings.annotation import AnnotationSettings, SampleSettings
from evenhand.study.settings.providers import ModelPrices, ProviderSettings
from evenhand.study.settings.sections import Section, Share, refusal_of
from evenhand.study.settings.session import (
    AttentionSettings,
    BackgroundSettings,
    ComprehensionQuestion,
    ConsentSettings,
    OidcSettings,
    PaySettings,
    ProlificSettings,
    SessionSettings,
    TrainingSettings,
)
from evenhand.study.tables.atomic import atomic_write

FILE_NAME = "study.toml"


class StudyConfig(Section):
    name: str = Field(
        min_length=1,
        description="shown in the report",
        json_schema_extra={"usual": "the folder's name"},
    )
    seed: int = Field(
        ge=0,
        description="fixes the sample and all resampling",
        json_schema_extra={"usual": "1"},
    )
    synthetic: bool = Field(
        default=False, description="true marks every page and table as simulated"
    )
    store: str = Field(
        default="study.db",
        description="a file beside study.toml (SQLite), or a URL such as "
        "`postgresql://...`; `${NAME}` in it is taken from the environment",
    )
    sample: SampleSettings
    annotation: AnnotationSettings = AnnotationSettings()
    session: SessionSettings = SessionSettings()
    consent: ConsentSettings | None = None
    training: TrainingSettings | None = None
    comprehension: tuple[ComprehensionQuestion, ...] = ()
    background: BackgroundSettings | None = None
    attention: AttentionSettings | None = None
    prolific: ProlificSettings | None = None
    pay: PaySettings | None = None
    oidc: OidcSettings | None = None
    analysis: AnalysisSettings = AnalysisSettings()
    decision: DecisionSettings = DecisionSettings()
    quality: QualitySettings = QualitySettings()
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    thresholds: dict[str, dict[str, Share]] = Field(
        default_factory=dict,
        description="by rubric and grader: a threshold other than the rubric's own. "
        "`evenhand calibrate --write` writes a tuned one, which is judged on other pairs than "
        "those it was tuned on; a number written by hand counts as declared",
        json_schema_extra={"example": '`"GRADER" = 0.1`'},
    )
    prices: dict[str, ModelPrices] = Field(
        default_factory=dict,
        description="by a grader's or model's name: its price, instead of the price table's",
    )
    same_text: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="older texts of a rubric whose labels may be pooled with the present one's",
        json_schema_extra={"example": '`RUBRIC = ["HASH"]`'},
    )


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
    """Set keys (section -> key -> value) in study.toml; see `changed_text`."""
    path = folder / FILE_NAME
    atomic_write(path, changed_text(path.read_text("utf-8-sig"), changes).encode())


def changed_text(text: str, changes: Mapping[str, Mapping[str, Any]]) -> str:
    """The settings with other values for some keys, the rest as its owner wrote it.

    "thresholds.NAME" is a section within a section, "" the keys before any section; one that is not
    there yet is added at the end.
    """
    import tomlkit

    document = tomlkit.parse(text)
    for section, values in changes.items():
        table: Any = document
        parts = section.split(".", 1) if section else []
        for depth, part in enumerate(parts, start=1):
            if part not in table:
                table[part] = tomlkit.table(is_super_table=depth < len(parts))
            table = table[part]
        for key, value in values.items():
            table[key] = value
    text = tomlkit.dumps(document)
    StudyConfig.model_validate(tomllib.loads(text))
    return text
