"""What a reply says it used, in either provider's words.

A test walks both SDKs' types: a field that is new there fails it until it is read here or known to
cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOST_TOKENS = 10**9  # more is no count of anything


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens billed. `input` includes those read from a cache (`cached`) and written to one
    (`written`, which includes those kept for an hour, `written_1h`); `searches` counts web
    searches.
    """

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    written_1h: int = 0
    searches: int = 0

    @classmethod
    def of(cls, usage: Mapping[str, Any]) -> Tokens:
        """Read from either provider's usage.

        >>> Tokens.of({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7})
        Tokens(input=95, cached=90, written=0, output=7, written_1h=0, searches=0)
        >>> Tokens.of({"prompt_tokens": 95, "completion_tokens": 7,
        ...            "prompt_tokens_details": {"cached_tokens": 90}})
        Tokens(input=95, cached=90, written=0, output=7, written_1h=0, searches=0)
        """
        by_life = _part(usage, "cache_creation")
        written_1h = _count(by_life, "ephemeral_1h_input_tokens")
        written = max(
            _count(usage, "cache_creation_input_tokens"),
            _count(by_life, "ephemeral_5m_input_tokens") + written_1h,
        )
        if "prompt_tokens" in usage:
            details = _part(usage, "prompt_tokens_details")
            prompt = _count(usage, "prompt_tokens")
            # Some servers count thinking in the total alone.
            beyond = _count(usage, "total_tokens") - prompt
            return cls(
                input=prompt,
                cached=_count(details, "cached_tokens"),
                written=max(written, _count(details, "cache_write_tokens")),
                output=max(_count(usage, "completion_tokens"), beyond),
                written_1h=written_1h,
            )
        cached = _count(usage, "cache_read_input_tokens")
        return cls(
            input=_count(usage, "input_tokens") + cached + written,
            cached=cached,
            written=written,
            output=_count(usage, "output_tokens"),
            written_1h=written_1h,
            searches=_count(_part(usage, "server_tool_use"), "web_search_requests"),
        )


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of service that change a request's price; empty where the reply names none."""

    tier: str = ""
    speed: str = ""
    place: str = ""

    @classmethod
    def of(cls, evidence: Mapping[str, Any]) -> Terms:
        """Read from a reply's `usage` and, with OpenAI, from its `service_tier`.

        >>> Terms.of({"usage": {"speed": "fast"}, "service_tier": "flex"})
        Terms(tier='flex', speed='fast', place='')
        """
        usage = _part(evidence, "usage")
        tier = evidence.get("service_tier") or usage.get("service_tier")
        said = (tier, usage.get("speed"), usage.get("inference_geo"))
        return cls(*(word if isinstance(word, str) else "" for word in said))


def _part(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = fields.get(name)
    return part if isinstance(part, Mapping) else {}


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_TOKENS:
        return value
    return 0
