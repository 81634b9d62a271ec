"""What a user types to name a grader: `PROVIDER:MODEL`, for a server of one's own `@BASE_URL`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from evenhand.errors import InputError
from evenhand.graders.providers import Place, known_providers, placed
from evenhand.study.settings.study_toml import NAMED, ProviderSettings, fault_of_address

BASELINES = ("lexical",)

_SERVER = re.compile(r"@(?=https?://)")
_LOOKS_LIKE_KEY = re.compile(r"\bsk-[A-Za-z0-9_-]{16,}")
_FORMS = "anthropic:MODEL, openai:MODEL, openai:MODEL@BASE_URL or baseline:lexical"


@dataclass(frozen=True, slots=True)
class GraderSpec:
    """A grader as its user named it, and the place where it is asked.

    `text` is the grader's `rater_id`: the name as typed, plus the address where the environment or
    study.toml sets one that differs from the provider's public one. `base_url` is that address, or
    empty.
    """

    text: str
    provider: str
    model: str
    base_url: str = ""
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def at(self) -> Place:
        """The place where the grader is asked. Raises LookupError for a baseline."""
        if self.place is None:
            raise LookupError(f"{self.text} is not behind a network")
        return self.place

    @property
    def speaks(self) -> str:
        """The form of its requests: "chat", "messages", "baseline" or a form of its own."""
        return self.place.provider.speaks if self.place else self.provider


def parse_spec(text: str, own: Mapping[str, ProviderSettings] | None = None) -> GraderSpec:
    """Read a grader's name; `own` are the providers that study.toml names.

    >>> parse_spec("openai:qwen3:8b@http://localhost:11434/v1")
    GraderSpec(text='openai:qwen3:8b@http://localhost:11434/v1', provider='openai', \
model='qwen3:8b', base_url='http://localhost:11434/v1')

    Raises InputError where the name is not valid, or carries a key: keys come from the environment
    only, and no message repeats a possible key.
    """
    if _LOOKS_LIKE_KEY.search(text):
        raise InputError(
            "a grader's name must not hold an API key; put the key in the environment "
            "(such as ANTHROPIC_API_KEY or OPENAI_API_KEY)"
        )
    providers = known_providers(own or {})
    provider, colon, rest = text.partition(":")
    if not colon or provider not in providers:
        others = ", ".join(f"{name}:" for name in providers if name not in _FORMS)
        raise InputError(
            f"{_shown(text)!r} is not a valid grader; write {_FORMS}; or begin with {others}"
        )
    model, *servers = _SERVER.split(rest, maxsplit=1)
    if not model or not model.isprintable() or re.search(r"\s", model):
        raise InputError(f"{_shown(text)!r} does not name a model; write {_FORMS}")
    if provider == "baseline":
        if rest not in BASELINES:
            raise InputError(
                f"there is no baseline {_shown(rest)!r}; write baseline:{BASELINES[0]}"
            )
        return GraderSpec(text, provider, model)
    row = providers[provider]
    if not servers and "@" in model and row.speaks != "messages":
        raise InputError(f"grader {_shown(text)!r}: BASE_URL must begin with http:// or https://")
    typed = servers[0] if servers else ""
    if typed and (fault := fault_of_address(typed)):
        raise InputError(f"grader '{provider}:{model}@...': the BASE_URL {fault}")
    place = placed(row, typed)
    if not place.base_url and not row.client:
        named = ", ".join(NAMED.findall(row.base_url))
        raise InputError(
            f"grader {_shown(text)!r}: it is not known where {provider} is; write "
            f"{provider}:MODEL@BASE_URL, or set {named}"
        )
    if typed or not place.in_name:
        return GraderSpec(text, provider, model, typed, place)
    return GraderSpec(f"{text}@{place.in_name}", provider, model, place.in_name, place)


def _shown(text: str) -> str:
    """Return the part of a name that a message may repeat: nothing after an @, which may hold
    credentials, and at most 80 characters.
    """
    head, at, _ = text.partition("@")
    return head[:80] + ("@..." if at else "")
