"""Cues that the offline lexical grader looks for under a rubric. Raters never see them."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Cue(_Strict):
    """A case-insensitive regular expression and what a match adds to the score."""

    pattern: str = Field(min_length=1)
    weight: float

    @field_validator("pattern")
    @classmethod
    def _pattern_compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"{value!r} is not a regular expression: {error}") from None
        return value


class LexicalCues(_Strict):
    """Cues by which the offline lexical grader reads a response under this rubric. Raters never see
    it.

    `ordinal` scores one response and places it on the scale; `contrast` scores two responses, each
    score levelling off at plus or minus `scale`, and compares them.
    """

    kind: Literal["ordinal", "contrast"]
    cues: tuple[Cue, ...] = Field(min_length=1)
    scale: float = Field(gt=0)
    """The score, or difference of scores, that places a reading well past the middle."""
    spread: float = Field(gt=0)
    """Standard deviation of the reading: in categories, or of the difference of scores."""
    per_words: int = Field(default=0, ge=0)
    """Count matches per this number of words; 0 counts them as they are."""
    length_weight: float = 0.0
    """Amount that a doubling of the response's length adds to its score (contrast)."""
    tolerance: float = Field(default=0.0, ge=0)
    """The difference of scores within which two responses count as alike (contrast)."""


class PolarityWords(_Strict):
    """Words for and against, and how the balance of their mass is placed on the scale.

    The mass of the positive words against that of the negative ones, normalised; a difference
    beyond `strong` reads as the outer option, and none of either as `unclear` (Feng, Park, Liu &
    Tsvetkov 2023, section 2.1 and Table 7). Add words of your own to either list.
    """

    kind: Literal["polarity"]
    positive: tuple[str, ...] = Field(min_length=1)
    negative: tuple[str, ...] = Field(min_length=1)
    strong: float = Field(default=0.3, ge=0, lt=1)
    scale: tuple[str, str, str, str, str]
    """Options from strongly negative to strongly positive, then the one for no lean."""

    @model_validator(mode="after")
    def _words_take_one_side(self) -> Self:
        both = {word.casefold() for word in self.positive} & {
            word.casefold() for word in self.negative
        }
        if both:
            raise ValueError(f"{min(both)!r} is positive and negative; keep it in one list")
        return self
