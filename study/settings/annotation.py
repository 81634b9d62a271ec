"""The sections `[sample]`, `[annotation]` and `[rewording]` of study.toml: the units that people
label, and how.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenhand.study.prompts.sampling import DEFAULT_STRATA
from evenhand.study.settings.sections import Section

MOST_RATERS = 1000
"""Annotators of one unit; a typing error is reported before anything is computed for it."""


class SampleSettings(Section):
    pairs: int = Field(
        gt=0,
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
    units_per_rater: int = Field(
        default=0,
        ge=0,
        description="the most units one annotator gets, over all rubrics; 0: no limit",
    )
    pairs_per_block: int = Field(
        default=10,
        gt=0,
        description="how many pairs an annotator works through before the next block",
    )
    repeat_share: float = Field(
        default=0.0,
        ge=0,
        le=0.5,
        description="share of an annotator's units that are asked again, unannounced; 0 to 0.5",
    )
    repeat_gap: int = Field(
        default=20,
        gt=0,
        description="least number of answers between an answer and its repeat",
    )
    lease_minutes: float = Field(
        default=120.0,
        gt=0,
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
