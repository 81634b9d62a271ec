"""Forms of requests beside Chat Completions and Messages: one file each, two pure functions.

A form is a module in this folder, named in `speaks` of `providers.toml` or of study.toml:

- `PATH`, what follows the base URL;
- `request(question)`, the JSON object to send;
- `read(reply)`, what the JSON object that came back says.

Keys, retries, budgets, what is kept and what is hidden are the same for every form. Where `read`
raises KeyError, TypeError, ValueError or the like, the reply is kept as unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, cast

__all__ = ["Answer", "Form", "Question", "form_of", "is_form"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to a model. `system` is empty for a subject; `schema` is the JSON schema of the
    answer where a distribution is asked for.
    """

    model: str
    system: str
    user: str
    max_tokens: int
    schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The content of a reply. `unscored` is the reason if it holds no answer (refusal, truncated,
    content_filter); `usage` counts `input_tokens` and `output_tokens`.
    """

    text: str
    unscored: str = ""
    model: str = ""
    id: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)


class Form(Protocol):
    PATH: str

    def request(self, question: Question) -> dict[str, Any]: ...

    def read(self, reply: Mapping[str, Any]) -> Answer: ...


def is_form(name: str) -> bool:
    """Return True if this folder holds a form of that name."""
    return (
        bool(re.fullmatch(r"[a-z][a-z0-9_]*", name)) and find_spec(f"{__name__}.{name}") is not None
    )


def form_of(name: str) -> Form:
    return cast(Form, import_module(f"{__name__}.{name}"))
