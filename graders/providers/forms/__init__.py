"""Forms of requests other than OpenAI's Chat Completions and Anthropic's Messages, a module each.

A form is a module in this folder, named in `speaks` of `providers.toml` or of study.toml, with:

- `PATH`, the path after the base URL;
- `request(question)`, which returns the JSON object to send;
- `read(reply)`, which returns the `Answer` in the JSON object of a reply.

Keys, retries, budgets and stored facts are the same for every form. If `read` raises a LookupError,
TypeError, ValueError, AttributeError or RecursionError, the reply is stored as unreadable.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, cast


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to a model: the system prompt ("" for a model under test), the user's message, and
    the limit on output. `schema` is the answer's JSON schema if probabilities are asked for.
    """

    model: str
    system: str
    user: str
    max_tokens: int
    schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The content of a reply. If it has no answer, `unscored` is the reason ("refusal", "truncated"
    or "content_filter"). `usage` has the numbers of `input_tokens` and `output_tokens`.
    """

    text: str
    unscored: str = ""
    model: str = ""  # the model that answered, as the server names it
    id: str = ""  # the reply's id, by which a reply that comes twice is recognised
    usage: Mapping[str, int] = field(default_factory=dict)


class Form(Protocol):
    """The content of a module of this folder, as the docstring above describes it."""

    PATH: str

    def request(self, question: Question) -> dict[str, Any]: ...

    def read(self, reply: Mapping[str, Any]) -> Answer: ...


def is_form(name: str) -> bool:
    """Return True if this folder has a form of this name."""
    is_module_name = re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None
    return is_module_name and find_spec(f"{__name__}.{name}") is not None


def form_of(name: str) -> Form:
    """Return the form of this name. Raises ModuleNotFoundError if there is none."""
    return cast(Form, import_module(f"{__name__}.{name}"))
