"""`study.toml`: the settings of a study. Validated; unknown keys are refused, comments are kept."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from evenhand.errors import InputError
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, QualitySettings
from evenhand.study.settings.sections import Declared, Section, Share, parsed
from evenhand.study.settings.session import (
    AnnotationSettings,
    AttentionSettings,
    BackgroundSettings,
    ComprehensionQuestion,
    ConsentSettings,
    OidcSettings,
    PaySettings,
    ProlificSettings,
    RewordingSettings,
    SampleSettings,
    SessionSettings,
    TrainingSettings,
)
from evenhand.study.tables.files import atomic_write
from evenhand.study.trust import inside

# The sections `[providers.NAME]` of study.toml: servers of one's own, and the settings sent to
# them.

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAMED = re.compile(r"\$\{([^}]*)\}")


def fault_of_address(url: str) -> str:
    """Return the fault of a server's address, without repeating the address; "" if it has none.

    >>> fault_of_address("https://key@example.com/v1")
    'holds credentials; take them out and name the variable that holds the key'
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is not a valid address"
    if parts.scheme not in ("http", "https"):
        return "must begin with http:// or https://"
    if parts.username is not None or parts.password is not None:
        return "holds credentials; take them out and name the variable that holds the key"
    if parts.query or parts.fragment:
        return "must end before any ? or #; keys come from the environment"
    if not parts.hostname or not url.isprintable() or re.search(r"\s", url):
        return "is not a valid address"
    return ""


class ProviderSettings(Declared):
    """A server that graders may name. Secrets are in the environment, never in study.toml."""

    base_url: str = ""
    key_env: str = ""
    headers: dict[str, str] = Field(
        default_factory=dict, json_schema_extra={"example": '`x-team = "${EVENHAND_TEAM_TOKEN}"`'}
    )
    speaks: str = Field(default="", json_schema_extra={"usual": "`chat`"})

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and (fault := fault_of_address(value)):
            raise ValueError(f"the address {fault}")
        return value

    @field_validator("key_env")
    @classmethod
    def _names_a_variable(cls, value: str) -> str:
        if value and not VARIABLE.fullmatch(value):
            # It may be the key itself, so it is not repeated.
            raise ValueError("write the name of an environment variable, never the key itself")
        return value

    @field_validator("headers")
    @classmethod
    def _headers_can_be_sent(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or not text.isprintable():
                raise ValueError(f"{name!r} is not a header that can be sent")
            for variable in NAMED.findall(text):
                if not VARIABLE.fullmatch(variable):
                    raise ValueError(f"the header {name!r} names no variable between its braces")
        return value

    def variables(self) -> Iterator[tuple[str, str]]:
        """The variables that it takes something from, each after the key that names it."""
        texts = {"base_url": self.base_url, **{f"headers.{k}": v for k, v in self.headers.items()}}
        for key, text in texts.items():
            yield from ((key, name) for name in NAMED.findall(text))
        if self.key_env:
            yield "key_env", self.key_env


# `[prices]`: the prices of models, where the study knows better than the price table


Dollars = Annotated[float, Field(ge=0, le=1e6)]
_MILLION = 1_000_000


class ModelPrices(Section):
    """US dollars for a million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def cost(self, read: int, cached: int, written: int, output: int) -> Decimal:
        """Return the cost in US dollars; `read` counts all input. Without a price for cached tokens
        that of input applies.

        >>> ModelPrices(input=2, output=10, cache_read=1).cost(1_000_000, 500_000, 0, 100_000)
        Decimal('2.5')
        """
        fresh = max(read - cached - written, 0)
        from_cache = self.input if self.cache_read is None else self.cache_read
        to_cache = self.input if self.cache_write is None else self.cache_write
        counted = (
            (fresh, self.input),
            (cached, from_cache),
            (written, to_cache),
            (output, self.output),
        )
        return sum((n * Decimal(str(usd)) / _MILLION for n, usd in counted), Decimal(0))


FILE_NAME = "study.toml"
Changes = Mapping[str, Mapping[str, Any] | None]
"""Section -> key -> value."""


class ModelSettings(Section):
    """Where models are asked, and what they cost: sections that a file may hold for a new study."""

    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    prices: dict[str, ModelPrices] = Field(default_factory=dict)

    @property
    def changes(self) -> Changes:
        """The settings as changes of a study.toml."""
        named = self.model_dump(mode="json", exclude_unset=True)
        return {f"{part}.{k}": v for part, sections in named.items() for k, v in sections.items()}


class StudyConfig(Section):
    name: str = Field(min_length=1, json_schema_extra={"usual": "the folder's name"})
    seed: int = Field(ge=0, json_schema_extra={"usual": "1"})
    synthetic: bool = False
    store: str = "study.db"
    published: str = Field(default="", json_schema_extra={"usual": "none"})
    sample: SampleSettings
    annotation: AnnotationSettings = AnnotationSettings()
    rewording: RewordingSettings | None = None
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
        default_factory=dict, json_schema_extra={"example": '`"GRADER" = 0.1`'}
    )
    prices: dict[str, ModelPrices] = Field(default_factory=dict)
    same_text: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, json_schema_extra={"example": '`RUBRIC = ["HASH"]`'}
    )


def read_config(folder: Path) -> StudyConfig:
    """The study's settings. Raises InputError without a study, for a wrong key or outside file."""
    path = folder / FILE_NAME
    if not path.is_file():
        raise InputError(
            f"{folder} is not a study: it has no {FILE_NAME}; make one with `evenhand new`"
        )
    config = parsed(StudyConfig, path.read_bytes(), path.name, file=path)
    inside(folder, config.published, "published")
    for name, section in (("training", config.training), ("attention", config.attention)):
        inside(folder, section.file if section else "", f"[{name}] file")
    return config


def declarations(config: StudyConfig | ModelSettings) -> dict[str, object]:
    """All in the settings that may send something, as `evenhand.study.trust` takes it."""
    found: dict[str, object] = {}
    if isinstance(config, StudyConfig):
        found |= {"store": config.store} if "://" in config.store or "$" in config.store else {}
        found |= {"[oidc]": config.oidc.declaration} if config.oidc else {}
    return found | {f"[providers.{k}]": v.declaration for k, v in config.providers.items()}


def read_model_settings(path: Path) -> ModelSettings:
    """The providers and prices in a file. Raises InputError without a file or for a wrong key."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    return parsed(ModelSettings, path.read_bytes(), path.name, file=path)


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


def change_config(folder: Path, changes: Changes) -> None:
    """Set keys in study.toml; see `changed_text`."""
    path = folder / FILE_NAME
    atomic_write(path, changed_text(path.read_text("utf-8-sig"), changes).encode())


def changed_text(text: str, changes: Changes) -> str:
    """The settings with other values for some keys, the rest as its owner wrote it."""
    text = with_values(text, changes)
    StudyConfig.model_validate(tomllib.loads(text))
    return text


def with_values(text: str, changes: Changes) -> str:
    """The text of a TOML file with other values for some keys; comments and layout stay.

    "thresholds.NAME" is a section within a section, "" the keys before any section; one that is not
    there yet is added at the end. None takes out a key, or a whole section.
    """
    import tomlkit

    document = tomlkit.parse(text)
    for section, values in changes.items():
        table: Any = document
        parts = section.split(".", 1) if section else []
        if values is None:
            document.pop(section, None)
            continue
        for depth, part in enumerate(parts, start=1):
            if part not in table:
                table[part] = tomlkit.table(is_super_table=depth < len(parts))
            table = table[part]
        _set(table, values)
    return tomlkit.dumps(document)


def without_hosts(text: str, heading: str) -> tuple[str, list[str]]:
    """The settings with what names hosts, `[providers]` and `[oidc]`, as comments at the end, under
    a heading; and what that was.
    """
    import tomlkit

    values = tomllib.loads(text)
    hosts = {key: values[key] for key in ("providers", "oidc") if values.get(key)}
    if not hosts:
        return text, []
    document = tomlkit.parse(text)
    for key in hosts:
        document.remove(key)
    lines = [heading, *tomlkit.dumps(hosts).splitlines()]
    comments = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    names = [f"[providers.{name}]" for name in hosts.get("providers", ())]
    names += ["[oidc]"] if "oidc" in hosts else []
    return f"{tomlkit.dumps(document).rstrip()}\n\n{comments}", names


def with_entry(text: str, place: str, at: int, entry: Mapping[str, Any] | None) -> str:
    """The text of a TOML file whose list of tables at this place, such as `background.questions`,
    has this entry at place `at`, the one after the last being a new one; None takes it out.
    """
    import tomlkit

    document = tomlkit.parse(text)
    table: Any = document
    *above, name = place.split(".")
    for part in above:
        table = table[part]
    if name not in table:
        is_inline = isinstance(table, tomlkit.items.InlineTable)
        table[name] = tomlkit.array() if is_inline else tomlkit.aot()
    entries = table[name]
    if entry is None:
        del entries[at]
        if not len(entries):
            del table[name]
    elif at < len(entries):
        _set(entries[at], {key: entry.get(key) for key in {**entries[at], **entry}})
    else:
        inline = not isinstance(entries, tomlkit.items.AoT)
        new = tomlkit.inline_table() if inline else tomlkit.table()
        _set(new, entry)
        if not inline:
            new.add(tomlkit.nl())
        entries.append(new)
    return tomlkit.dumps(document)


def _set(table: Any, values: Mapping[str, Any]) -> None:
    """Set keys of a table; those that have their value already stay as they are written."""
    import tomlkit

    for key, value in values.items():
        if value is None:
            table.pop(key, None)
        elif isinstance(value, Mapping):
            if key not in table:
                table[key] = tomlkit.inline_table()
            _set(table[key], {each: value.get(each) for each in {**table[key], **value}})
        elif key not in table or table[key] != value:
            # A TOML text of several lines loses a line's end at its beginning.
            several = isinstance(value, str) and "\n" in value[1:] and "\r" not in value
            several = several and not value.startswith("\n")
            table[key] = tomlkit.string(value, multiline=True) if several else value
