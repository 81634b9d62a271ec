"""What the study's TOML files have in common: closed sections, faults said in one sentence."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.errors import InputError

__all__ = ["Section", "refusal_of"]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def refusal_of(file: str, error: ValidationError) -> InputError:
    """The first thing that is wrong in a file."""
    fault = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    unknown = fault["type"] == "extra_forbidden"
    message = "is no known key; check its spelling" if unknown else fault["msg"]
    return InputError(f"{file}: {place} {message}")
