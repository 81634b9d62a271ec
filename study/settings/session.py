"""The sections of study.toml for people: the sample, how units are labelled, raters' sessions."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from evenhand.study.prompts.sampling import DEFAULT_STRATA
from evenhand.study.settings.sections import (
    Count,
    Declared,
    NotNegative,
    Positive,
    PositiveInt,
    Section,
    Share,
)

# The units that people label, and how


MOST_RATERS = 1000
"""Annotators of one unit; a typing error is reported before anything is computed for it."""


class SampleSettings(Section):
    pairs: PositiveInt = Field(json_schema_extra={"usual": "250"})
    stratify: tuple[str, ...] = DEFAULT_STRATA


class RewordingSettings(Section):
    rubric: str = Field(min_length=1)
    after: int = Field(ge=0)
    pairs: int = Field(ge=2)
    ended: bool = False


class AnnotationSettings(Section):
    rubrics: tuple[str, ...] = Field(default=(), json_schema_extra={"usual": "all but those"})
    subjects: tuple[str, ...] = Field(default=(), json_schema_extra={"usual": "all"})
    raters_per_unit: int = Field(default=3, gt=0, le=MOST_RATERS)
    units_per_rater: Count = 0
    pairs_per_block: PositiveInt = 10
    repeat_share: float = Field(default=0.0, ge=0, le=0.5)
    repeat_gap: PositiveInt = 20
    lease_minutes: Positive = 120.0
    screen: Literal["one", "all"] = "one"
    display: Literal["text", "markdown"] = Field(
        default="text", json_schema_extra={"usual": "as most responses are written"}
    )
    show_controls: bool = True
    confidence: bool = False
    rationale: bool = False
    language: str = "en"
    languages: tuple[str, ...] = ()


# A rater's session. Each section may be absent: then its step is left out. Texts are plain: they
# are shown unchanged, and empty lines separate paragraphs.


Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


STUDY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""The name of a folder made in the browser, and of a study in its address."""


class SessionSettings(Section):
    entry: Literal["open", "invite", "account"] = "open"
    content_warning: str = ""
    instructions: str = ""
    login_hours: float = Field(default=12.0, gt=0)
    trusted_proxies: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    idle_minutes: Positive = 5.0
    pause_minutes: NotNegative = 50.0
    answers_per_day: Count = 0
    minutes_per_day: NotNegative = 0.0
    time_zone: str = "UTC"

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # unknown, no name at all, a folder of names
            raise ValueError(f"{name!r} is no time zone; write one such as Europe/Berlin") from None
        return name


class ConsentSettings(Section):
    text: Sentence


class TrainingSettings(Section):
    walk_through: bool = True
    file: str = ""
    pass_mark: Share = 0.0
    attempts: int = Field(default=2, ge=1)


class _ChoiceQuestion(Section):
    question: Sentence
    options: tuple[Sentence, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _options_differ(self) -> Self:
        if len(set(self.options)) < len(self.options):
            raise ValueError(f"two options of {self.question!r} are the same")
        return self


class ComprehensionQuestion(_ChoiceQuestion):
    answer: Sentence
    explanation: str = ""

    @model_validator(mode="after")
    def _answer_is_an_option(self) -> Self:
        if self.answer not in self.options:
            raise ValueError(f"the answer to {self.question!r} is none of its options")
        return self


class BackgroundQuestion(_ChoiceQuestion):
    key: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")

    @model_validator(mode="after")
    def _key_is_free(self) -> Self:
        if self.key in ("rater_id", "page_language"):
            raise ValueError(f"a background question cannot have the key {self.key!r}")
        return self


USUAL_BACKGROUND = (
    BackgroundQuestion(
        key="political_leaning",
        question="How would you describe your political views?",
        options=(
            "Very liberal",
            "Liberal",
            "Slightly liberal",
            "Moderate",
            "Slightly conservative",
            "Conservative",
            "Very conservative",
            "None of these",
        ),
    ),
    BackgroundQuestion(
        key="age_group",
        question="How old are you?",
        options=("18 to 24", "25 to 34", "35 to 44", "45 to 54", "55 to 64", "65 or older"),
    ),
    BackgroundQuestion(
        key="education",
        question="What is the highest level of education that you have completed?",
        options=("Less than secondary", "Secondary", "Some college", "Bachelor", "Postgraduate"),
    ),
)


class BackgroundSettings(Section):
    questions: tuple[BackgroundQuestion, ...] = Field(
        default=USUAL_BACKGROUND,
        json_schema_extra={"usual": "political leaning, age group, education"},
    )

    @model_validator(mode="after")
    def _keys_differ(self) -> Self:
        keys = [question.key for question in self.questions]
        if len(set(keys)) < len(keys):
            raise ValueError("two background questions have the same key")
        return self


class AttentionSettings(Section):
    file: str
    every: int = Field(default=20, ge=2)


_Code = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]


class ProlificSettings(Section):
    """The completion codes that the study on Prolific knows; each leads back there."""

    complete: _Code
    screened_out: _Code
    no_consent: _Code
    stopped: _Code | Literal[""] = ""
    returned: _Code | Literal[""] = ""
    nothing_left: _Code | Literal[""] = Field(
        default="", json_schema_extra={"usual": "as `complete`"}
    )
    places: Count = 0
    signed_for: str = Field(default="", pattern=r"^(https?://[^/\s]+)?$")
    signing_keys: str = Field(
        default="https://api.prolific.com/.well-known/study/jwks.json",
        pattern=r"^(https://|http://(127\.0\.0\.1|localhost)[:/])",
    )
    free_again: tuple[
        Literal["returned", "timed_out", "rejected", "screened_out", "no_consent", "stopped"], ...
    ] = ("returned", "timed_out", "rejected", "screened_out", "no_consent")


class PaySettings(Section):
    """Amounts that people are owed. Evenhand pays nothing: see the table of times."""

    complete: float = Field(ge=0)
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    screened_out: float = Field(default=0.0, ge=0)
    nothing_left: float = Field(default=0.0, ge=0)
    stopped: Literal["share", "full"] = "share"


# `[oidc]`: lets people in by their organisation's login (OpenID Connect)


_VARIABLE = re.compile(r"\$\{\w+\}")
_PERSON = re.compile(r"sub:\S+|[^@\s]+@[^@\s]+")
_HERE = ("localhost", "127.0.0.1", "::1")


def _is_private(address: str) -> str:
    """Return the address if no one on the way can read its traffic; else raise ValueError."""
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return address
    if parts.scheme == "http" and parts.hostname in _HERE:
        return address
    raise ValueError(f"{address!r} is no https address; write one such as https://example.org")


def _is_origin(address: str) -> str:
    path = urlsplit(address).path.strip("/")  # of one study among several
    if (path and not STUDY_NAME.fullmatch(path)) or urlsplit(address).query:
        raise ValueError(f"{address!r} names a page; write the address up to the host or port")
    return _is_private(address).rstrip("/")


def _is_variable(secret: str) -> str:
    if not _VARIABLE.fullmatch(secret):  # the value is not repeated: it may be the secret
        raise ValueError("a secret does not stand in study.toml; write ${NAME}, and set NAME")
    return secret


def _is_person(entry: str) -> str:
    if not _PERSON.fullmatch(entry):
        raise ValueError(f"{entry!r} is no person; write an e-mail address, or sub:IDENTIFIER")
    return entry


Person = Annotated[str, AfterValidator(_is_person)]


class OidcSettings(Declared):
    sends_nothing = frozenset({"label", "leads", "experts"})

    server_metadata_url: Annotated[str, AfterValidator(_is_private)]
    client_id: str = Field(min_length=1)
    client_secret: Annotated[str, AfterValidator(_is_variable)]
    address: Annotated[str, AfterValidator(_is_origin)]
    label: str = ""
    leads: tuple[Person, ...] = ()
    experts: tuple[Person, ...] = ()
