"""What a user types to name a grader: `PROVIDER:MODEL`, for a compatible server `@BASE_URL`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from evenhand.errors import InputError

PROVIDERS = ("anthropic", "openai", "baseline")
BASELINES = ("lexical",)

_SERVER = re.compile(r"@(?=https?://)")
_LOOKS_LIKE_KEY = re.compile(r"\bsk-[A-Za-z0-9_-]{16,}")
_FORMS = "anthropic:MODEL, openai:MODEL, openai:MODEL@BASE_URL or baseline:lexical"


@dataclass(frozen=True, slots=True)
class GraderSpec:
    """A grader as its user named it. `text` is that exact string: the grader's `rater_id`."""

    text: str
    provider: str
    model: str
    base_url: str = ""


def parse_spec(text: str) -> GraderSpec:
    """Read a grader's name.

    >>> parse_spec("openai:qwen3:8b@http://localhost:11434/v1")
    GraderSpec(text='openai:qwen3:8b@http://localhost:11434/v1', provider='openai', \
model='qwen3:8b', base_url='http://localhost:11434/v1')

    Raises InputError where it is none, or carries a key: keys come from the environment only, and
    no message repeats what may be one.
    """
    if _LOOKS_LIKE_KEY.search(text):
        raise InputError(
            "a grader's name must not hold an API key; put the key in the environment "
            "(ANTHROPIC_API_KEY or OPENAI_API_KEY)"
        )
    provider, colon, rest = text.partition(":")
    if not colon or provider not in PROVIDERS:
        raise InputError(f"{_shown(text)!r} is not a valid grader; write {_FORMS}")
    model, *servers = _SERVER.split(rest, maxsplit=1)
    if not model or not model.isprintable() or re.search(r"\s", model):
        raise InputError(f"{_shown(text)!r} does not name a model; write {_FORMS}")
    if provider == "baseline" and (rest not in BASELINES):
        raise InputError(f"there is no baseline {_shown(rest)!r}; write baseline:{BASELINES[0]}")
    if not servers:
        if "@" in model and provider == "openai":
            raise InputError(
                f"grader {_shown(text)!r}: BASE_URL must begin with http:// or https://"
            )
        return GraderSpec(text, provider, model)
    if provider != "openai":
        raise InputError(
            f"grader {_shown(text)!r}: a BASE_URL belongs to openai:MODEL@BASE_URL only; "
            "for another Anthropic endpoint set ANTHROPIC_BASE_URL"
        )
    _check_base_url(servers[0], model)
    return GraderSpec(text, provider, model, servers[0])


def _check_base_url(url: str, model: str) -> None:
    where = f"grader 'openai:{model}@...'"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise InputError(f"{where}: the BASE_URL is not a valid address") from None
    if parts.username is not None or parts.password is not None:
        raise InputError(
            f"{where}: the BASE_URL holds credentials; take them out and set OPENAI_API_KEY"
        )
    if parts.query or parts.fragment:
        raise InputError(
            f"{where}: the BASE_URL must end before any ? or #; keys come from OPENAI_API_KEY"
        )
    if not parts.hostname or not url.isprintable() or re.search(r"\s", url):
        raise InputError(f"{where}: the BASE_URL is not a valid address")


def _shown(text: str) -> str:
    """What a message may repeat: nothing after an @, where credentials stand."""
    head, at, _ = text.partition("@")
    return head[:80] + ("@..." if at else "")
