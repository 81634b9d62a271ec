"""Fields of a reply that nothing depends on: what is none of their kind is passed over."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

T = TypeVar("T")


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


OrNone = Annotated[T | None, WrapValidator(_or_none)]
"""A field that is None where the value has another type."""
