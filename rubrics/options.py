"""The options of a rubric: a closed list, read by people, graders and parsers alike."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

KEY = re.compile(r"[A-Za-z0-9_+-]{1,24}")


class Texts(BaseModel):
    """A part of a rubric file: without unknown fields, and without white space around its texts."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


COLUMN = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Block(Texts):
    """A text of the unit that raters read beside the question: the column that holds it, the label
    above it, and how it is shown. Without a `kind` the response is shown as the study shows
    responses, and any other text as plain text.
    """

    column: str
    label: str = Field(min_length=1, max_length=120)
    kind: Literal["text", "markdown", "code", "conversation", ""] = ""

    @field_validator("column")
    @classmethod
    def _column_is_a_name(cls, value: str) -> str:
        if not COLUMN.fullmatch(value):
            raise ValueError(f"a block's column is lower-case letters, digits and _, not {value!r}")
        if value.endswith(("_a", "_b")):
            raise ValueError(f"a block's column may not end in _a or _b, as {value!r} does")
        return value

    def of_side(self, side: str) -> Block:
        """The block for one of two answers."""
        return self.model_copy(update={"label": f"{self.label} {side.upper()}"})


class Golden(Texts):
    """A golden answer: a unit's `texts` by variable, and the option that is right for it. Graders
    are held against these; raters never see them.
    """

    label: str
    texts: dict[str, str] = Field(min_length=1)


class Option(Texts):
    """A permitted category: the key is stored, and raters read the rest."""

    key: str
    name: str = Field(min_length=1)
    description: str = ""
    examples: tuple[str, ...] = ()
    swapped: str = ""
    """Key of this choice once the two sides are exchanged; the same key if empty."""
    favours: Literal["a", "b", ""] = ""
    """The side of the pair that this choice finds better served; empty: neither."""

    @field_validator("key")
    @classmethod
    def _key_is_a_token(cls, value: str) -> str:
        if not KEY.fullmatch(value):
            raise ValueError(f"an option key is 1 to 24 letters, digits, _ + or -, not {value!r}")
        return value
