"""Settings of a study in `study.toml`: a class for each section, reading, and changes of the file
that keep its comments. `settings.toml` explains every section and key, so the classes do not.

`StudyConfig` is the whole file. Sections before it: what is sampled and labelled, a rater's
session, logins by OpenID Connect, servers and prices of models; after it: reading, changes.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from evenhand.errors import InputError
from evenhand.lazy import tomlkit
from evenhand.study.prompts.sampling import DEFAULT_STRATA
from evenhand.study.settings import sections
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, QualitySettings
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.ratings import RATINGS_COLUMNS
from evenhand.study.trust import inside

MOST_RATERS = 1000  # limit of annotators of one unit, so that a typing error is reported at once


class SampleSettings(sections.Section):
    pairs: sections.PositiveInt
    stratify: tuple[str, ...] = DEFAULT_STRATA


class RewordingSettings(sections.Section):
    rubric: str = Field(min_length=1)  # the new wording, which a trial compares with the old one
    after: int = Field(ge=0)  # pairs of the sample before those of the trial
    pairs: int = Field(ge=2)  # of the trial, half under each wording
    ended: bool = False


class AnnotationSettings(sections.Section):
    rubrics: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    raters_per_unit: int = Field(default=3, gt=0, le=MOST_RATERS)
    units_per_rater: sections.Count = 0  # 0: no limit
    pairs_per_block: sections.PositiveInt = 10
    repeat_share: float = Field(default=0.0, ge=0, le=0.5)  # of items shown again, unannounced
    repeat_gap: sections.PositiveInt = 20  # answers between an answer and its repeat
    lease_minutes: sections.Positive = 120.0  # for which an unanswered item stays reserved
    screen: Literal["one", "all"] = "one"
    display: Literal["text", "markdown"] = "text"
    show_controls: bool = True
    confidence: bool = False
    rationale: bool = False
    language: str = "en"
    languages: tuple[str, ...] = ()


# ---- a rater's session --------------------------------------------------------------------------
# Without its section a step is left out. Texts are plain: they are shown unchanged, and empty lines
# separate paragraphs.
Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

START = ".start"  # name in addresses of the page on which a lead makes the first study
STUDY_NAME = re.compile(r"\.start|[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Valid names of studies made in the browser, and of studies in addresses."""


class SessionSettings(sections.Section):
    entry: Literal["open", "invite", "account"] = "open"
    content_warning: str = ""
    instructions: str = ""
    login_hours: float = Field(default=12.0, gt=0)
    trusted_proxies: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    idle_minutes: sections.Positive = 5.0
    pause_minutes: sections.NotNegative = 50.0
    answers_per_day: sections.Count = 0
    minutes_per_day: sections.NotNegative = 0.0
    time_zone: str = "UTC"

    @field_validator("time_zone")
    @classmethod
    def _check_time_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # unknown, not a name, or a folder of names
            raise ValueError(f"{name!r} is no time zone; write one such as Europe/Berlin") from None
        return name


class ConsentSettings(sections.Section):
    text: Sentence


class TrainingSettings(sections.Section):
    walk_through: bool = True
    file: str = ""
    pass_mark: sections.Share = 0.0
    attempts: int = Field(default=2, ge=1)


class _ChoiceQuestion(sections.Section):
    question: Sentence
    options: tuple[Sentence, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if len(set(self.options)) < len(self.options):
            raise ValueError(f"two options of {self.question!r} are the same")
        return self


class ComprehensionQuestion(_ChoiceQuestion):
    answer: Sentence
    explanation: str = ""

    @model_validator(mode="after")
    def _check_answer(self) -> Self:
        if self.answer not in self.options:
            raise ValueError(f"the answer to {self.question!r} is none of its options")
        return self


class BackgroundQuestion(_ChoiceQuestion):
    key: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    quotas: tuple[sections.Count, ...] = ()

    @model_validator(mode="after")
    def _check_quotas(self) -> Self:
        if self.key in (*RATINGS_COLUMNS, "page_language"):
            raise ValueError(f"a background question cannot have the key {self.key!r}")
        if self.quotas and (len(self.quotas) != len(self.options) or not any(self.quotas)):
            raise ValueError(f"{self.key} needs a quota of people for each option, not all 0")
        return self


_DEFAULT_BACKGROUND = sections.settings_words()["usual_background"]
USUAL_BACKGROUND = tuple(BackgroundQuestion(**question) for question in _DEFAULT_BACKGROUND)


class BackgroundSettings(sections.Section):
    questions: tuple[BackgroundQuestion, ...] = USUAL_BACKGROUND

    @model_validator(mode="after")
    def _check_questions(self) -> Self:
        keys = [question.key for question in self.questions]
        if len(set(keys)) < len(keys):
            raise ValueError("two background questions have the same key")
        if sum(bool(question.quotas) for question in self.questions) > 1:
            raise ValueError("two background questions have quotas; keep those of one")
        return self

    @property
    def optional(self) -> tuple[BackgroundQuestion, ...]:
        """Questions that a rater may skip: those without quotas."""
        return tuple(question for question in self.questions if not question.quotas)


class AttentionSettings(sections.Section):
    file: str
    every: int = Field(default=20, ge=2)


_Code = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]


class ProlificSettings(sections.Section):
    """Settings for participants from Prolific, with a completion code for each end."""

    complete: _Code
    screened_out: _Code
    no_consent: _Code
    stopped: _Code | Literal[""] = ""
    returned: _Code | Literal[""] = ""
    nothing_left: _Code | Literal[""] = ""
    places: sections.Count = 0
    signed_for: str = Field(default="", pattern=r"^(https?://[^/\s]+)?$")  # start of addresses
    free_again: tuple[  # outcomes that free a place
        Literal["returned", "timed_out", "rejected", "screened_out", "no_consent", "stopped"], ...
    ] = ("returned", "timed_out", "rejected", "screened_out", "no_consent")


class PaySettings(sections.Section):
    """Amounts that people are owed; evenhand itself pays nothing."""

    complete: float = Field(ge=0)
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    screened_out: float = Field(default=0.0, ge=0)
    nothing_left: float = Field(default=0.0, ge=0)
    stopped: Literal["share", "full"] = "share"


# ---- logins by OpenID Connect -------------------------------------------------------------------
_SECRET = re.compile(r"\$\{\w+\}")  # ${NAME}: the variable that holds it
_PERSON = re.compile(r"sub:\S+|[^@\s]+@[^@\s]+")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def _check_encrypted(address: str) -> str:
    """Return the address if its traffic is encrypted or local; else raise ValueError."""
    parts = urlsplit(address)
    is_local = parts.scheme == "http" and parts.hostname in _THIS_MACHINE
    if is_local or (parts.scheme == "https" and parts.hostname):
        return address
    raise ValueError(f"{address!r} is no https address; write one such as https://example.org")


def _check_origin(address: str) -> str:
    """Return the address without a slash at its end; raise ValueError if it names a page."""
    path = urlsplit(address).path.strip("/")  # the name of one of several studies, or ""
    if (path and not STUDY_NAME.fullmatch(path)) or urlsplit(address).query:
        raise ValueError(f"{address!r} names a page; write the address up to the host or port")
    return _check_encrypted(address).rstrip("/")


def _check_variable(secret: str) -> str:
    if not _SECRET.fullmatch(secret):  # not repeated in the message: it may be the secret
        raise ValueError("a secret does not stand in study.toml; write ${NAME}, and set NAME")
    return secret


def _check_person(entry: str) -> str:
    if not _PERSON.fullmatch(entry):
        raise ValueError(f"{entry!r} is no person; write an e-mail address, or sub:IDENTIFIER")
    return entry


Person = Annotated[str, AfterValidator(_check_person)]


class OidcSettings(sections.Declared):
    sends_nothing = frozenset({"leads", "experts"})  # these keys may change unconfirmed

    server_metadata_url: Annotated[str, AfterValidator(_check_encrypted)]
    client_id: str = Field(min_length=1)
    client_secret: Annotated[str, AfterValidator(_check_variable)]
    address: Annotated[str, AfterValidator(_check_origin)]
    leads: tuple[Person, ...] = ()
    experts: tuple[Person, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_label(cls, values: object) -> object:
        """Accept the key `label` of versions before 0.3."""
        if isinstance(values, Mapping):
            return {name: value for name, value in values.items() if name != "label"}
        return values


# ---- servers that graders may use, what is sent to them, and prices of models -------------------
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
REFERENCE = re.compile(r"\$\{([^}]*)\}")  # to an environment variable


def fault_of_address(url: str) -> str:
    """Return the fault of a server's address, without repeating the address; "" if it has none.

    >>> fault_of_address("https://key@example.com/v1")
    'holds credentials; take them out and name the variable that holds the key'
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for one that is no number
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


class ProviderSettings(sections.Declared):
    """A server that graders may name. Secrets are in the environment, never in study.toml."""

    base_url: str = ""
    key_env: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    speaks: str = ""  # the protocol of the server's API

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str) -> str:
        if value and (fault := fault_of_address(value)):
            raise ValueError(f"the address {fault}")
        return value

    @field_validator("key_env")
    @classmethod
    def _check_key_env(cls, value: str) -> str:
        if value and not VARIABLE.fullmatch(value):
            # It may be the key itself, so it is not repeated.
            raise ValueError("write the name of an environment variable, never the key itself")
        return value

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or not text.isprintable():
                raise ValueError(f"{name!r} is not a header that can be sent")
            for variable in REFERENCE.findall(text):
                if not VARIABLE.fullmatch(variable):
                    raise ValueError(f"the header {name!r} names no variable between its braces")
        return value

    def variables(self) -> Iterator[tuple[str, str]]:
        """Yield (key, name) of each environment variable that a key of the section uses."""
        headers = {f"headers.{name}": text for name, text in self.headers.items()}
        for key, text in {"base_url": self.base_url, **headers}.items():
            yield from ((key, name) for name in REFERENCE.findall(text))
        if self.key_env:
            yield "key_env", self.key_env


Dollars = Annotated[float, Field(ge=0, le=1e6)]
_MILLION = 1_000_000


class ModelPrices(sections.Section):
    """Prices of a model, in US dollars for a million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def cost(self, read: int, cached: int, written: int, output: int) -> Decimal:
        """Return the cost in US dollars. `read` counts all input tokens, `cached` and `written`
        those read from and written to the cache, for which the input's price is the default.

        >>> ModelPrices(input=2, output=10, cache_read=1).cost(1_000_000, 500_000, 0, 100_000)
        Decimal('2.5')
        """
        from_cache = self.input if self.cache_read is None else self.cache_read
        to_cache = self.input if self.cache_write is None else self.cache_write
        tokens = (max(read - cached - written, 0), cached, written, output)
        prices = (self.input, from_cache, to_cache, self.output)
        costs = (n * Decimal(str(usd)) / _MILLION for n, usd in zip(tokens, prices, strict=True))
        return sum(costs, Decimal(0))


# ---- the whole file -----------------------------------------------------------------------------
FILE_NAME = "study.toml"
Changes = Mapping[str, Mapping[str, Any] | None]
"""New values: section -> key -> value. None removes a key or a section."""


class ModelSettings(sections.Section):
    """Servers and prices of models: sections that a file may provide for a new study."""

    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    prices: dict[str, ModelPrices] = Field(default_factory=dict)

    @property
    def changes(self) -> Changes:
        """Return the settings as changes of a study.toml."""
        kinds = self.model_dump(mode="json", exclude_unset=True).items()
        return {f"{kind}.{name}": keys for kind, by_name in kinds for name, keys in by_name.items()}


class StudyConfig(sections.Section):
    name: str = Field(min_length=1)
    seed: sections.Count
    synthetic: bool = False
    store: str = "study.db"
    published: str = ""
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
    thresholds: dict[str, dict[str, sections.Share]] = Field(default_factory=dict)  # rubric, grader
    prices: dict[str, ModelPrices] = Field(default_factory=dict)
    same_text: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # rubric: older hashes
    names: sections.DisplayNames = Field(default_factory=dict)

    @property
    def side(self) -> BackgroundQuestion | None:
        """Return the background question with quotas, if any: its options are the sides."""
        questions = self.background.questions if self.background else ()
        return next((question for question in questions if question.quotas), None)


def read_config(folder: Path) -> StudyConfig:
    """Read a study's settings. Raises InputError without a study, or for a bad setting."""
    path = folder / FILE_NAME
    if not path.is_file():
        raise InputError(
            f"{folder} is not a study: it has no {FILE_NAME}; make one with `evenhand new`"
        )
    config = sections.parsed(StudyConfig, path.read_bytes(), path.name, file=path)
    inside(folder, config.published, "published")
    for name, section in (("training", config.training), ("attention", config.attention)):
        inside(folder, section.file if section else "", f"[{name}] file")
    return config


def declarations(config: StudyConfig | ModelSettings) -> dict[str, object]:
    """Return all settings that may send something to a host (see `evenhand.study.trust`)."""
    senders: dict[str, object] = {}
    if isinstance(config, StudyConfig):
        if "://" in config.store or "$" in config.store:  # not the name of a file
            senders["store"] = config.store
        if config.oidc:
            senders["[oidc]"] = config.oidc.declaration
    providers = config.providers.items()
    return senders | {f"[providers.{name}]": server.declaration for name, server in providers}


def read_model_settings(path: Path) -> ModelSettings:
    """Read providers and prices from a file. Raises InputError for no file or a bad key."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    return sections.parsed(ModelSettings, path.read_bytes(), path.name, file=path)


def new_config_text(config: StudyConfig) -> str:
    """Return a commented study.toml for a new study."""
    values = config.model_dump(mode="json")
    document = tomlkit.document()
    for key in ("name", "seed", "store"):
        document[key] = values[key]
    if config.synthetic:
        document["synthetic"] = tomlkit.item(True).comment("simulated data; every page says so")
    document["sample"] = values["sample"]
    annotation = tomlkit.table()
    annotation.add(tomlkit.comment("what annotators label; an empty list means all"))
    annotation.update(values["annotation"])
    document["annotation"] = annotation
    analysis = tomlkit.table()
    about_margin = "a grader may lie this much kappa below annotators' own agreement"
    analysis.add(tomlkit.comment(about_margin))
    # An empty dict would be written as a heading without keys.
    analysis.update({key: value for key, value in values["analysis"].items() if value != {}})
    document["analysis"] = analysis
    document["decision"] = values["decision"]
    return tomlkit.dumps(document)


def change_config(folder: Path, changes: Changes) -> None:
    """Set keys in study.toml; see `changed_text`."""
    path = folder / FILE_NAME
    atomic_write(path, changed_text(path.read_text("utf-8-sig"), changes).encode())


def changed_text(text: str, changes: Changes) -> str:
    """Return the text of study.toml with changed values. Raises ValidationError for a bad one."""
    text = with_values(text, changes)
    StudyConfig.model_validate(tomllib.loads(text))
    return text


def with_values(text: str, changes: Changes) -> str:
    """Return the text of a TOML file with changed values; comments and layout stay. A dot separates
    a section from one within it ("thresholds.NAME"); "" stands for the keys before any section. A
    missing section is added at the end. None removes a key or a whole section.
    """
    document = tomlkit.parse(text)
    for section, values in changes.items():
        if values is None:
            document.pop(section, None)
            continue
        table: Any = document
        path = section.split(".", 1) if section else []
        for depth, name in enumerate(path, start=1):
            if name not in table:
                table[name] = tomlkit.table(is_super_table=depth < len(path))  # outer: no header
            table = table[name]
        _set_values(table, values)
    return tomlkit.dumps(document)


def without_hosts(text: str, heading: str) -> tuple[str, list[str]]:
    """Return the text with sections that name hosts as comments below a heading; their names."""
    values = tomllib.loads(text)
    host_sections = {key: values[key] for key in ("providers", "oidc") if values.get(key)}
    if not host_sections:
        return text, []
    document = tomlkit.parse(text)
    for key in host_sections:
        document.remove(key)
    lines = [heading, *tomlkit.dumps(host_sections).splitlines()]
    comments = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    names = [f"[providers.{name}]" for name in host_sections.get("providers", ())]
    names += ["[oidc]"] if "oidc" in host_sections else []
    return f"{tomlkit.dumps(document).rstrip()}\n\n{comments}", names


def with_entry(text: str, key: str, index: int, entry: Mapping[str, Any] | None) -> str:
    """Return the text of a TOML file in which the list of tables at `key` ("background.questions")
    has this entry at an index; one after the last is new, None removes the entry.
    """
    document = tomlkit.parse(text)
    table: Any = document
    *path, name = key.split(".")
    for part in path:
        table = table[part]
    if name not in table:
        is_inline = isinstance(table, tomlkit.items.InlineTable)
        table[name] = tomlkit.array() if is_inline else tomlkit.aot()
    entries = table[name]
    if entry is None:
        del entries[index]
        if not len(entries):
            del table[name]
    elif index < len(entries):
        _replace_values(entries[index], entry)
    else:
        are_inline = not isinstance(entries, tomlkit.items.AoT)
        new_entry = tomlkit.inline_table() if are_inline else tomlkit.table()
        _set_values(new_entry, entry)
        if not are_inline:
            new_entry.add(tomlkit.nl())
        entries.append(new_entry)
    return tomlkit.dumps(document)


def _set_values(table: Any, values: Mapping[str, Any]) -> None:
    """Set keys of a table, or remove them (None); a key that has that value stays as written."""
    for key, value in values.items():
        if value is None:
            table.pop(key, None)
        elif isinstance(value, Mapping):
            if key not in table:
                table[key] = tomlkit.inline_table()
            _replace_values(table[key], value)
        elif key not in table or table[key] != value:
            has_lines = isinstance(value, str) and "\n" in value[1:]
            # TOML drops a line break with which a text of several lines begins.
            is_multiline = has_lines and not value.startswith("\n") and "\r" not in value
            table[key] = tomlkit.string(value, multiline=True) if is_multiline else value


def _replace_values(table: Any, values: Mapping[str, Any]) -> None:
    """Set keys of a table, and remove those that are not among the values."""
    _set_values(table, {key: values.get(key) for key in {**table, **values}})


def in_words(value: object) -> str:
    """Return a value as a person reads it.

    >>> in_words(("a", "b")), in_words(()), in_words(0.5), in_words({"x": 0.1})
    ('a, b', 'none', '0.5', 'x = 0.1')
    """
    if value in ((), {}, "", None):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(f"{key} = {in_words(inner)}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
