"""What a request used, what it costs at most and did cost, and a budget that is never exceeded.

Prices are those that the study names, else those of the genai-prices package, as shipped with it:
nothing is looked up over the network. A model that neither knows has no tariff. Usage is read in
either provider's words; a test walks both SDKs' types: a field that is new there fails it until it
is read here or known to cost nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import anyio

from evenhand.graders.providers import GraderSpec
from evenhand.graders.replies import Stopped
from evenhand.study.settings.study_toml import ModelPrices
from evenhand.texts import written

_MOST_TOKENS = 10**9  # more is no count of anything
_HIDDEN_INPUT = 2_000  # tokens that a provider adds of its own: schema, frame of the conversation
_UNLIMITED_OUTPUT = 128_000  # tokens that a request without a limit of its own may bring
_BYTES_PER_TOKEN = 4  # of English text, for estimates; a token is one byte at least
_MOST_BYTES_PER_TOKEN = 8  # on average over a prompt; long English words have six
_CLAUDES_IMAGE, _DEAREST_IMAGE, _USUAL_IMAGE = 5_000, 26_000, 1_600
"""Tokens of an image of at most 1568 pixels a side: at most with Anthropic, at most anywhere
(gpt-4o-mini), and usually.
"""
_IN_THE_US = Decimal("1.1")  # Claude, where a workspace keeps it there
_DEAREST_HEADER = 1e6
_COST_HEADER = "x-litellm-response-cost"
LIMIT_NAMES = ("max_tokens", "max_completion_tokens")


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
            read, details = _count(usage, "prompt_tokens"), _part(usage, "prompt_tokens_details")
            cached = _count(details, "cached_tokens")
            written = max(written, _count(details, "cache_write_tokens"))
            # Some servers count thinking in the total alone.
            beyond = _count(usage, "total_tokens") - read
            return cls(
                read, cached, written, max(_count(usage, "completion_tokens"), beyond), written_1h
            )
        cached = _count(usage, "cache_read_input_tokens")
        read = _count(usage, "input_tokens") + cached + written
        searches = _count(_part(usage, "server_tool_use"), "web_search_requests")
        return cls(read, cached, written, _count(usage, "output_tokens"), written_1h, searches)


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
        terms = (tier, usage.get("speed"), usage.get("inference_geo"))
        return cls(*(word if isinstance(word, str) else "" for word in terms))


def _part(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = fields.get(name)
    return part if isinstance(part, Mapping) else {}


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_TOKENS:
        return value
    return 0


class OverBudget(Stopped):
    """The next request might cost more than is left of the budget."""


@lru_cache(maxsize=100_000)
def _listed(
    model: str,
    by: tuple[tuple[str, Any], ...],
    context: tuple[tuple[str, str], ...],
    tokens: Tokens,
) -> Decimal:
    """Look up the price of these tokens in US dollars; cached, because the lookup is slow."""
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=tokens.input,
        cache_read_tokens=tokens.cached,
        cache_write_tokens=tokens.written,
        cache_write_1h_tokens=tokens.written_1h,
        output_tokens=tokens.output,
        web_searches=tokens.searches,
    )
    price = calc_price(usage, model, price_context=dict(context), **dict(by))
    return Decimal(price.total_price)


@dataclass(frozen=True, slots=True)
class Tariff:
    """The prices of one model, asked live or in a batch, in a service tier. `named` are the study's
    own prices, which apply in every case.
    """

    spec: GraderSpec
    batch: bool = False
    tier: str = ""
    named: ModelPrices | None = None

    @classmethod
    def find(
        cls,
        spec: GraderSpec,
        *,
        batch: bool = False,
        tier: str = "",
        prices: Mapping[str, ModelPrices] | None = None,
    ) -> Tariff | None:
        """Return the model's tariff, or None if it has no known price. `prices` are the study's
        own, by grader, with or without an address, or by model.
        """
        if spec.api_format == "baseline":
            return None
        prices = prices or {}
        names = (spec.text, f"{spec.provider}:{spec.model}", spec.model)
        study_prices = next((prices[name] for name in names if name in prices), None)
        tariff = cls(spec, batch, tier, study_prices)
        try:
            tariff.cost(Tokens(input=1, output=1))
        except LookupError:
            return None
        return tariff

    @property
    def source(self) -> str:
        """The name of the source of these prices."""
        return "study.toml" if self.named else f"genai-prices {version('genai-prices')}"

    def cost(self, tokens: Tokens, terms: Terms | None = None) -> Decimal:
        """Return the price of the tokens in US dollars. Raises LookupError if it is not known."""
        if self.named:
            return self.named.cost(tokens.input, tokens.cached, tokens.written, tokens.output)
        terms = terms or Terms()
        context = {
            "processing": "batch" if self.batch else "",
            "service_tier": terms.tier or self.tier,
            "speed": terms.speed,
        }
        given = tuple((name, value) for name, value in context.items() if value)
        price = _listed(self.spec.model, tuple(self.spec.endpoint.prices.items()), given, tokens)
        return price * _IN_THE_US if terms.place == "us" else price

    def at_most(self, request: Mapping[str, Any], output: int | None = None) -> Decimal:
        """Return an upper bound on the bill for a request, in US dollars: every byte of text a
        token, every image as many as a provider counts at most, all input written to the dearest
        cache, and as many tokens of output as the request allows (or `output`) for each of its
        draws.
        """
        claude = self.spec.api_format == "messages"
        bare, images = _without_images(request)
        size = len(json.dumps(bare, ensure_ascii=False).encode()) + _HIDDEN_INPUT
        size += images * (_CLAUDES_IMAGE if claude else _DEAREST_IMAGE)
        limit = output_limit(request) if output is None else output
        out = limit * int(request.get("n", 1))
        kinds = (
            Tokens(input=size, output=out),
            Tokens(input=size, written=size, output=out),
            Tokens(input=size, written=size, written_1h=size, output=out),
        )
        return max(self.cost(kind, Terms(place="us" if claude else "")) for kind in kinds)

    def at_least(self, request: Mapping[str, Any]) -> Decimal:
        """Return a lower estimate of the bill in US dollars: the prompt in long tokens, all read
        from the cache, and an answer of one token.
        """
        prompt = _text_of([request.get("system", ""), request.get("messages", "")])
        size = len(prompt.encode()) // _MOST_BYTES_PER_TOKEN
        return self.cost(Tokens(input=size, cached=size, output=1))


def _text_of(part: object) -> str:
    """Return the text of a part of a request, without the JSON around it."""
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        return _text_of(part.get("content", part.get("text", "")))
    return "".join(map(_text_of, part)) if isinstance(part, (list, tuple)) else ""


def input_estimate(request: Mapping[str, Any]) -> int:
    """Return a rough number of tokens for a request of English text, with its images."""
    bare, images = _without_images(request)
    text = len(json.dumps(bare, ensure_ascii=False).encode()) // _BYTES_PER_TOKEN
    return text + images * _USUAL_IMAGE


def _without_images(request: Mapping[str, Any]) -> tuple[Any, int]:
    """Return the request without what its images hold, and their number."""
    images = 0

    def bare(part: Any) -> Any:
        nonlocal images
        if isinstance(part, Mapping):
            held = part.get("type") == "base64"
            images += held
            return {name: bare(value) for name, value in part.items() if not held or name != "data"}
        if isinstance(part, list):
            return [bare(item) for item in part]
        if isinstance(part, str) and part.startswith("data:image/"):
            images += 1
            return ""
        return part

    return bare(request), images


def output_limit(request: Mapping[str, Any]) -> int:
    """Return the most tokens that an answer to this request may have."""
    return next((int(request[name]) for name in LIMIT_NAMES if name in request), _UNLIMITED_OUTPUT)


def usage_facts(
    evidence: Mapping[str, Any], tariff: Tariff | None, charged: float | None = None
) -> dict[str, Any]:
    """Return the usage and, where known, the cost for a grade's provenance. The cost is the amount
    that the gateway reports, else the price of the tokens used.
    """
    facts: dict[str, Any] = {}
    if isinstance(usage := evidence.get("usage"), Mapping) and usage:
        tokens = Tokens.of(usage)
        facts["tokens"] = asdict(tokens)
        if tariff:
            price = tariff.cost(tokens, Terms.of(evidence))
            facts |= {"cost_usd": float(price), "price_data": tariff.source}
    if charged is not None:
        facts |= {"cost_usd": charged, "price_data": _COST_HEADER}
    return facts


def charged_by(headers: Mapping[str, str]) -> float | None:
    """Return the cost of a reply in US dollars as a gateway reports it, or None.

    0 counts as not reported: LiteLLM sends it for every model whose price it does not know.

    >>> charged_by({"x-litellm-response-cost": "0.0021"}), charged_by({}), charged_by({
    ...     "x-litellm-response-cost": "nan"})
    (0.0021, None, None)
    """
    try:
        charged = float(headers[_COST_HEADER])
    except (KeyError, ValueError):
        return None
    return charged if math.isfinite(charged) and 0 < charged < _DEAREST_HEADER else None


class Budget:
    """The money in US dollars that several graders may spend together. Without a limit everything
    is granted.
    """

    def __init__(self, limit: float | None = None, spent: float = 0.0) -> None:
        self.limit = None if limit is None else Decimal(str(limit))
        self.spent = Decimal(str(spent))
        self.lost = Decimal(0)
        """The part of `spent` for requests whose reply never came and may not have been billed."""
        self.exhausted = False
        self._reserved = Decimal(0)
        self._waiting: list[anyio.Event] = []

    @property
    def _room(self) -> Decimal:
        """The amount that is neither spent nor reserved."""
        return (Decimal("inf") if self.limit is None else self.limit) - self.spent - self._reserved

    async def reserve(self, amount: Decimal, least: Decimal | None = None) -> Decimal:
        """Set an amount aside, or as much of it as is free if that is at least `least`; return the
        amount set aside. Where `least` does not fit, wait for other reservations to be settled.
        Raises OverBudget where it never will fit.
        """
        least = amount if least is None else least
        while not self.fits(least):
            if self._reserved == 0:
                self.exhausted = True
                name = "over_budget_with_lost" if self.lost else "over_budget"
                sums = {"limit": self.limit, "spent": self.spent, "lost": self.lost}
                raise OverBudget(written(f"grade.{name}", **sums, least=least))
            settled = anyio.Event()
            self._waiting.append(settled)
            await settled.wait()
        granted = min(amount, self._room)
        self._reserved += granted
        return granted

    def fits(self, amount: Decimal) -> bool:
        return amount <= self._room

    def hold(self, amount: Decimal) -> None:
        """Set an amount aside for what is under way already, whether it fits or not."""
        self._reserved += amount

    def settle(self, reserved: Decimal, spent: Decimal, *, lost: bool = False) -> None:
        """Turn a reservation into what was spent, or may have been where the reply was `lost`."""
        self._reserved -= reserved
        self.spent += spent
        self.lost += spent if lost else 0
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()
