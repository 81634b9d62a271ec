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
    pairs: PositiveInt = Field(
        description="how many pairs are labelled; changed by `evenhand extend`",
        json_schema_extra={"usual": "250"},
    )
    stratify: tuple[str, ...] = Field(
        default=DEFAULT_STRATA, description="columns whose shares the sample keeps"
    )


class RewordingSettings(Section):
    rubric: str = Field(
        min_length=1,
        description="another wording of a rubric, which is tried among annotators: "
        "`evenhand rubric reword` writes this section",
    )
    after: int = Field(ge=0, description="pairs of the sample that come before those of the trial")
    pairs: int = Field(
        ge=2, description="pairs of the trial: half under the old wording, half under the new one"
    )
    ended: bool = Field(
        default=False,
        description="true: no more of the trial is given out; the section stays for good",
    )


class AnnotationSettings(Section):
    rubrics: tuple[str, ...] = Field(
        default=(),
        description="rubrics to be labelled; an empty list means all but other wordings of one",
        json_schema_extra={"usual": "all but those"},
    )
    subjects: tuple[str, ...] = Field(
        default=(),
        description="subjects whose responses are labelled; an empty list means all",
        json_schema_extra={"usual": "all"},
    )
    raters_per_unit: int = Field(default=3, gt=0, le=MOST_RATERS, description="annotators per unit")
    units_per_rater: Count = Field(
        default=0, description="the most units one annotator gets, over all rubrics; 0: no limit"
    )
    pairs_per_block: PositiveInt = Field(
        default=10, description="how many pairs an annotator works through before the next block"
    )
    repeat_share: float = Field(
        default=0.0,
        ge=0,
        le=0.5,
        description="share of an annotator's units that are asked again, unannounced; 0 to 0.5",
    )
    repeat_gap: PositiveInt = Field(
        default=20, description="least number of answers between an answer and its repeat"
    )
    lease_minutes: Positive = Field(
        default=120.0,
        description="how long a unit that was given out stays reserved without an answer",
    )
    screen: Literal["one", "all"] = Field(
        default="one",
        description='`"one"`: one rubric at a time; `"all"`: all rubrics of a unit at once',
    )
    display: Literal["text", "markdown"] = Field(
        default="text",
        description='how responses are shown: `"text"`, as they were written; `"markdown"`, with '
        "their headings, lists, tables and code drawn; recorded with every label",
        json_schema_extra={"usual": "as most responses are written"},
    )
    show_controls: bool = Field(
        default=True,
        description="true shows zero-width, bidirectional and other control characters as marks",
    )
    confidence: bool = Field(default=False, description="true asks annotators how sure they are")
    rationale: bool = Field(default=False, description="true shows a field for reasons")
    language: str = Field(
        default="en",
        description="what the annotators' pages are in, and the study's own texts on them: `en`, "
        "`de` or `es`",
    )
    languages: tuple[str, ...] = Field(
        default=(), description="other languages that annotators can choose for their pages"
    )


# A rater's session. Each section may be absent: then its step is left out. Texts are plain: they
# are shown unchanged, and empty lines separate paragraphs.


Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


STUDY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""The name of a folder made in the browser, and of a study in its address."""


class SessionSettings(Section):
    entry: Literal["open", "invite", "account"] = Field(
        default="open",
        description='who gets in: `"open"`, whoever enters a rater code; `"invite"`, whoever has a '
        'signed link; `"account"`, whoever has an account',
    )
    content_warning: str = Field(default="", description="shown on the first page")
    instructions: str = Field(default="", description="shown on the first page")
    login_hours: float = Field(
        default=12.0, gt=0, description="how long a login, or an entry from Prolific, lasts"
    )
    trusted_proxies: tuple[str, ...] = Field(
        default=(),
        description="addresses of proxies before the app, such as `127.0.0.1`, whose word on where "
        "a visitor comes from is taken (`X-Forwarded-For`); nobody else's is",
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        description="further names and addresses by which people reach the app, such as "
        "`10.0.0.5`; this machine's own and that of `--url` are known, and no other is answered",
    )
    idle_minutes: Positive = Field(
        default=5.0, description="a longer pause between two answers counts as this much work"
    )
    pause_minutes: NotNegative = Field(
        default=50.0,
        description="after so many minutes of work without a rest the page offers a pause between "
        "two units; 0: never",
    )
    answers_per_day: Count = Field(
        default=0,
        description="the most answers one annotator gives in a day (one rubric on one unit is one "
        "answer, and so is a change; the unit at hand is finished); 0: no limit",
    )
    minutes_per_day: NotNegative = Field(
        default=0.0, description="the same in minutes with a unit in view; 0: no limit"
    )
    time_zone: str = Field(
        default="UTC", description="where a day begins at midnight, such as `Europe/Berlin`"
    )

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # unknown, no name at all, a folder of names
            raise ValueError(f"{name!r} is no time zone; write one such as Europe/Berlin") from None
        return name


class ConsentSettings(Section):
    text: Sentence = Field(description="what a rater agrees to before anything else")


class TrainingSettings(Section):
    walk_through: bool = Field(
        default=True, description="every rubric is explained, with its options and examples"
    )
    file: str = Field(default="", description="the study's file of practice units")
    pass_mark: Share = Field(
        default=0.0, description="share of right practice answers that is needed to go on; 0: none"
    )
    attempts: int = Field(default=2, ge=1, description="how often the practice may be tried")


class _ChoiceQuestion(Section):
    question: Sentence = Field(description="what is asked")
    options: tuple[Sentence, ...] = Field(
        min_length=2, description="the answers to choose from, two or more"
    )

    @model_validator(mode="after")
    def _options_differ(self) -> Self:
        if len(set(self.options)) < len(self.options):
            raise ValueError(f"two options of {self.question!r} are the same")
        return self


class ComprehensionQuestion(_ChoiceQuestion):
    answer: Sentence = Field(description="the right option")
    explanation: str = Field(default="", description="shown after a wrong answer")

    @model_validator(mode="after")
    def _answer_is_an_option(self) -> Self:
        if self.answer not in self.options:
            raise ValueError(f"the answer to {self.question!r} is none of its options")
        return self


class BackgroundQuestion(_ChoiceQuestion):
    key: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,39}$", description="the column's name in the table of raters"
    )

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
        description="questions about the annotator, each with `key`, `question`, `options`",
        json_schema_extra={"usual": "political leaning, age group, education"},
    )

    @model_validator(mode="after")
    def _keys_differ(self) -> Self:
        keys = [question.key for question in self.questions]
        if len(set(keys)) < len(keys):
            raise ValueError("two background questions have the same key")
        return self


class AttentionSettings(Section):
    file: str = Field(description="the study's file of units with a known answer")
    every: int = Field(default=20, ge=2, description="one check among this many answers")


_Code = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]


class ProlificSettings(Section):
    """The completion codes that the study on Prolific knows; each leads back there."""

    complete: _Code = Field(description="code of whoever is done")
    screened_out: _Code = Field(description="code of whoever did not pass the training")
    no_consent: _Code = Field(description="code of whoever did not consent")
    stopped: _Code | Literal[""] = Field(
        default="",
        description="code of whoever the lead excluded or a rule of the study stopped; without one "
        "there is no link",
    )
    returned: _Code | Literal[""] = Field(
        default="",
        description="code of whoever's place was given back; without one there is no link",
    )
    nothing_left: _Code | Literal[""] = Field(
        default="",
        description="code of whoever found no unit left, and answered none",
        json_schema_extra={"usual": "as `complete`"},
    )
    places: Count = Field(
        default=0,
        description="how many participants are let in, whatever ids the addresses claim; 0: no "
        "limit. As many as at Prolific",
    )
    signed_for: str = Field(
        default="",
        pattern=r"^(https?://[^/\s]+)?$",
        description="the beginning of this page's public address, such as "
        "`https://rate.example.org`: then only participants whose address Prolific has signed for "
        "it are let in (there: *secured external URL*; needs `evenhand[oidc]`). Without it whoever "
        "knows the study's address and a participant's id enters as that participant",
    )
    signing_keys: str = Field(
        default="https://api.prolific.com/.well-known/study/jwks.json",
        pattern=r"^(https://|http://(127\.0\.0\.1|localhost)[:/])",
        description="where Prolific's public keys are read, once a day",
    )
    free_again: tuple[
        Literal["returned", "timed_out", "rejected", "screened_out", "no_consent", "stopped"], ...
    ] = Field(
        default=("returned", "timed_out", "rejected", "screened_out", "no_consent"),
        description="the ends after which a place goes to somebody else",
    )


class PaySettings(Section):
    """Amounts that people are owed. Evenhand pays nothing: see the table of times."""

    complete: float = Field(ge=0, description="owed to whoever is done")
    currency: str = Field(pattern=r"^[A-Z]{3}$", description="of these amounts, such as `GBP`")
    screened_out: float = Field(
        default=0.0, ge=0, description="owed to whoever did not pass the training"
    )
    nothing_left: float = Field(
        default=0.0, ge=0, description="owed to whoever found no unit left, and answered none"
    )
    stopped: Literal["share", "full"] = Field(
        default="share",
        description="owed to whoever a rule of the study stopped: `share`, the part of `complete` "
        "that their units are of `units_per_rater` (or of what the median finisher answered); "
        "`full`, all of it",
    )


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

    server_metadata_url: Annotated[str, AfterValidator(_is_private)] = Field(
        description="where the provider describes itself, an address that ends in "
        "`/.well-known/openid-configuration`"
    )
    client_id: str = Field(min_length=1, description="the name that the provider gave to this app")
    client_secret: Annotated[str, AfterValidator(_is_variable)] = Field(
        description="`${EVENHAND_NAME}`: the environment variable that holds the app's secret"
    )
    address: Annotated[str, AfterValidator(_is_origin)] = Field(
        description="where people reach the app, such as `https://study.example.org`, or with "
        "`/NAME` one study of several; the provider must know "
        "`ADDRESS/oauth2callback` as its redirect URI"
    )
    label: str = Field(default="", description="the button's text; empty: evenhand's own words")
    leads: tuple[Person, ...] = Field(
        default=(),
        description="who leads the study: e-mail addresses that the provider has verified, or "
        "`sub:IDENTIFIER`",
    )
    experts: tuple[Person, ...] = Field(
        default=(), description="who labels and adjudicates as an expert, written alike"
    )
