"""The options of a rubric: a closed list, read by people, graders and parsers alike."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

KEY = re.compile(r"[A-Za-z0-9_+-]{1,24}")


class Texts(BaseModel):
    """A part of a rubric file: without unknown fields, and without white space around its texts."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


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
