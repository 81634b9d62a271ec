"""What a rubric is: one closed list of options, and the text that people and graders both read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rubrics.parsing import RubricParser
from rubrics.rendering import (
    TEXT_VARIABLES,
    PeopleText,
    PromptText,
    placeholders,
    render_for_people,
    render_for_prompt,
)

__all__ = ["Cue", "LexicalCues", "Option", "Rubric"]

KEY = re.compile(r"[A-Za-z0-9_+-]{1,24}")
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Texts(_Strict):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Option(_Texts):
    """One permitted category: the key is what is stored, the rest is what raters read."""

    key: str
    name: str = Field(min_length=1)
    description: str = ""
    examples: tuple[str, ...] = ()
    swapped: str = ""
    """What this choice is called once the two sides are exchanged; the same key if empty."""
    favours: Literal["a", "b", ""] = ""
    """The side of the pair that this choice finds better served; empty: neither."""

    @field_validator("key")
    @classmethod
    def _key_is_a_token(cls, value: str) -> str:
        if not KEY.fullmatch(value):
            raise ValueError(f"an option key is 1 to 24 letters, digits, _ + or -, not {value!r}")
        return value


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
    """How the offline lexical grader reads a response under this rubric. Raters never see it.

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
    """Count matches per so many words; 0 counts them as they are."""
    length_weight: float = 0.0
    """What a doubling of the response's length adds to its score (contrast)."""
    tolerance: float = Field(default=0.0, ge=0)
    """The difference of scores within which two responses count as alike (contrast)."""


class Rubric(_Texts):
    """A rubric as its file has it. Level of measurement and affirmative options are declared, never
    inferred from labels.
    """

    name: str
    title: str = Field(min_length=1)
    unit: Literal["pair", "response"]
    level: Literal["nominal", "ordinal", "interval"]
    question: str = Field(min_length=1)
    instructions: str = Field(min_length=1)
    variables: tuple[str, ...] = Field(min_length=1)
    options: tuple[Option, ...] = Field(min_length=2)
    affirmative: tuple[str, ...] = ()
    threshold: float = Field(default=0.5, ge=0, le=1)
    lexical: LexicalCues | None = None

    @field_validator("name")
    @classmethod
    def _name_is_an_id(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError(f"a rubric's name is lower-case letters, digits and -, not {value!r}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        keys = self.categories
        if len({key.casefold() for key in keys}) < len(keys):
            raise ValueError("two options share a key; give each its own")
        if unknown := set(self.affirmative) - set(keys):
            raise ValueError(f"affirmative names {sorted(unknown)[0]!r}, which is no option's key")
        if self.level == "interval" and not all(_is_number(key) for key in keys):
            raise ValueError("an interval scale needs numbers as option keys")
        self._check_variables()
        self._check_swaps()
        return self

    def _check_variables(self) -> None:
        used = placeholders(self.question) | placeholders(self.instructions)
        declared = set(self.variables)
        if undeclared := used - declared:
            raise ValueError(
                f"the text uses {{{sorted(undeclared)[0]}}}, which `variables` does not list"
            )
        for option in self.options:
            for text in (option.name, option.description, *option.examples):
                if found := placeholders(text):
                    raise ValueError(
                        f"option {option.key!r} holds {{{min(found)}}}; variables belong in the "
                        "instructions or the question"
                    )
        shown = declared & set(TEXT_VARIABLES)
        if inline := shown & used:
            raise ValueError(
                f"{{{sorted(inline)[0]}}} is shown beside the rubric; take it out of the text"
            )
        if unused := declared - shown - used:
            raise ValueError(f"`variables` lists {sorted(unused)[0]!r}, which no text uses")
        if not any(name.startswith("response") for name in shown):
            raise ValueError("`variables` names no response to be rated")
        if (self.unit == "pair") != any(name.endswith(("_a", "_b")) for name in shown):
            raise ValueError(
                "a rubric on pairs shows prompt_a, response_a, prompt_b, response_b; "
                "one on responses shows prompt, response"
            )

    def _check_swaps(self) -> None:
        swaps = {option.key: option.swapped or option.key for option in self.options}
        for key, other in swaps.items():
            if swaps.get(other) != key:
                raise ValueError(f"`swapped` of option {key!r} must name an option that names it")
            if self.unit == "response" and other != key:
                raise ValueError("`swapped` belongs to rubrics on pairs; a response has one side")
        exchanged = {"a": "b", "b": "a", "": ""}
        favours = {option.key: option.favours for option in self.options}
        for key, side in favours.items():
            if favours[swaps[key]] != exchanged[side]:
                raise ValueError(
                    f"option {key!r} favours {side!r}, so its `swapped` must name one that favours "
                    f"{exchanged[side]!r}"
                )

    @property
    def categories(self) -> tuple[str, ...]:
        """The option keys in their order on the scale."""
        return tuple(option.key for option in self.options)

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits of SHA-256 over everything that a rater sees.

        Level, affirmative options, favoured sides, threshold and lexical cues stay outside: they
        change how labels are read, not what a rater was asked.
        """
        seen = self.model_dump(
            mode="json",
            include={"title", "unit", "question", "instructions", "variables", "options"},
            exclude={"options": {"__all__": {"favours"}}},
        )
        text = json.dumps(seen, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def swap(self, key: str) -> str:
        """The category in the pair's own orientation, chosen as `key` with the sides exchanged."""
        for option in self.options:
            if option.key == key:
                return option.swapped or option.key
        raise KeyError(key)

    def for_people(self, values: Mapping[str, str]) -> PeopleText:
        """The rubric and one unit as the annotation page shows them."""
        return render_for_people(self, values)

    def for_prompt(self, values: Mapping[str, str]) -> PromptText:
        """The same words as a prompt for a grader."""
        return render_for_prompt(self, values)

    def parser(self) -> RubricParser:
        """The reader of a grader's answer."""
        return RubricParser({option.key: option.name for option in self.options})


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
