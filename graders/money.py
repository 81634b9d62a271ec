"""Prices of requests, and a budget that is never exceeded.

`Tokens` and `Terms` are read from a reply's usage in either provider's form. `Tariff` turns them
into US dollars, and bounds the price of a request before it is sent. `Budget` reserves and settles
these amounts for several graders.

Prices are those that the study names, else those shipped with the genai-prices package; nothing is
looked up over the network. A model without either has no tariff. A test compares the fields read
here with both SDKs' types, and fails for a new field until it is read or known to cost nothing.
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

_MAX_TOKENS = 10**9  # a larger value in a reply is a fault, and counts as 0
_ADDED_INPUT = 2_000  # tokens that a provider adds to a request: a schema, marks of the turns
_UNLIMITED_OUTPUT = 128_000  # most tokens of an answer to a request without a limit
_BYTES_PER_TOKEN = 4  # of English text, for estimates; a token is one byte at least
_MAX_BYTES_PER_TOKEN = 8  # on average over a prompt; long English words have six
# Tokens of an image of at most 1568 pixels a side.
_USUAL_IMAGE = 1_600  # for estimates
_MAX_CLAUDE_IMAGE = 5_000
_MAX_IMAGE = 26_000  # of any model: gpt-4o-mini's
_US_FACTOR = Decimal("1.1")  # price of Claude restricted to the US
_COST_HEADER = "x-litellm-response-cost"  # in which a gateway reports the cost of a reply
_MAX_HEADER_USD = 1e6  # a larger cost in that header is a fault
LIMIT_NAMES = ("max_tokens", "max_completion_tokens")  # fields that limit a request's output


@dataclass(frozen=True, slots=True)
class Tokens:
    """Numbers of tokens billed. `input` includes those read from a cache (`cached`) and written to
    one (`written`; `written_1h` of these are kept for an hour). `searches` counts web searches.
    """

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    written_1h: int = 0
    searches: int = 0

    @classmethod
    def from_usage(cls, usage: Mapping[str, Any]) -> Tokens:
        """Return the tokens in either provider's usage object.

        >>> Tokens.from_usage({"input_tokens": 5, "cache_read_input_tokens": 90,
        ...                    "output_tokens": 7})
        Tokens(input=95, cached=90, written=0, output=7, written_1h=0, searches=0)
        >>> Tokens.from_usage({"prompt_tokens": 95, "completion_tokens": 7,
        ...            "prompt_tokens_details": {"cached_tokens": 90}})
        Tokens(input=95, cached=90, written=0, output=7, written_1h=0, searches=0)
        """
        by_lifetime = _object(usage, "cache_creation")
        written_1h = _count(by_lifetime, "ephemeral_1h_input_tokens")
        written = max(  # the sum by lifetime may be missing, or the total
            _count(usage, "cache_creation_input_tokens"),
            _count(by_lifetime, "ephemeral_5m_input_tokens") + written_1h,
        )
        if "prompt_tokens" in usage:  # OpenAI's form, whose input includes the cached tokens
            n_input = _count(usage, "prompt_tokens")
            details = _object(usage, "prompt_tokens_details")
            cached = _count(details, "cached_tokens")
            written = max(written, _count(details, "cache_write_tokens"))
            # Some servers count thinking only in the total.
            n_not_input = _count(usage, "total_tokens") - n_input
            output = max(_count(usage, "completion_tokens"), n_not_input)
            return cls(n_input, cached, written, output, written_1h)
        cached = _count(usage, "cache_read_input_tokens")
        n_input = _count(usage, "input_tokens") + cached + written  # Anthropic counts them apart
        searches = _count(_object(usage, "server_tool_use"), "web_search_requests")
        return cls(n_input, cached, written, _count(usage, "output_tokens"), written_1h, searches)


@dataclass(frozen=True, slots=True)
class Terms:
    """The service tier, speed and region that change a request's price; "" where not reported."""

    tier: str = ""
    speed: str = ""
    region: str = ""

    @classmethod
    def from_reply(cls, evidence: Mapping[str, Any]) -> Terms:
        """Return the terms in a reply's `usage` and, with OpenAI, its `service_tier`.

        >>> Terms.from_reply({"usage": {"speed": "fast"}, "service_tier": "flex"})
        Terms(tier='flex', speed='fast', region='')
        """
        usage = _object(evidence, "usage")
        tier = evidence.get("service_tier") or usage.get("service_tier")
        values = (tier, usage.get("speed"), usage.get("inference_geo"))  # in the fields' order
        return cls(*(value if isinstance(value, str) else "" for value in values))


def _object(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the field of this name if it is an object, else {}."""
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}


def _count(usage: Mapping[str, Any], name: str) -> int:
    """Return the field of this name if it is a plausible count, else 0."""
    value = usage.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MAX_TOKENS:
        return value
    return 0


class OverBudget(Stopped):
    """The next request might cost more than is left of the budget."""


@lru_cache(maxsize=100_000)
def _listed_price(
    model: str,
    provider: tuple[tuple[str, Any], ...],  # pairs, as `lru_cache` cannot hash a dict
    context: tuple[tuple[str, str], ...],
    tokens: Tokens,
) -> Decimal:
    """Return the price of these tokens in US dollars by genai-prices; the lookup is slow."""
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=tokens.input,
        cache_read_tokens=tokens.cached,
        cache_write_tokens=tokens.written,
        cache_write_1h_tokens=tokens.written_1h,
        output_tokens=tokens.output,
        web_searches=tokens.searches,
    )
    price = calc_price(usage, model, price_context=dict(context), **dict(provider))
    return Decimal(price.total_price)


@dataclass(frozen=True, slots=True)
class Tariff:
    """The prices of one model; the `study_prices` of study.toml hold for every tier and batch."""

    spec: GraderSpec
    batch: bool = False
    tier: str = ""
    study_prices: ModelPrices | None = None

    @classmethod
    def find(
        cls,
        spec: GraderSpec,
        *,
        batch: bool = False,
        tier: str = "",
        prices: Mapping[str, ModelPrices] | None = None,
    ) -> Tariff | None:
        """Return the model's tariff, or None if no price is known. `prices` are the study's own, by
        the grader's name, with or without an address, or by the model's.
        """
        if spec.api_format == "baseline":
            return None
        prices = prices or {}
        names = (spec.text, f"{spec.provider}:{spec.model}", spec.model)
        study_prices = next((prices[name] for name in names if name in prices), None)
        tariff = cls(spec, batch, tier, study_prices)
        try:
            tariff.cost(Tokens(input=1, output=1))  # for its LookupError
        except LookupError:
            return None
        return tariff

    @property
    def source(self) -> str:
        """The name of the source of these prices."""
        return "study.toml" if self.study_prices else f"genai-prices {version('genai-prices')}"

    def cost(self, tokens: Tokens, terms: Terms | None = None) -> Decimal:
        """Return the price of the tokens in US dollars. Raises LookupError if it is not known."""
        if prices := self.study_prices:
            return prices.cost(tokens.input, tokens.cached, tokens.written, tokens.output)
        terms = terms or Terms()
        context = {
            "processing": "batch" if self.batch else "",
            "service_tier": terms.tier or self.tier,
            "speed": terms.speed,
        }
        named_context = tuple((name, value) for name, value in context.items() if value)
        provider = tuple(self.spec.endpoint.prices.items())
        price = _listed_price(self.spec.model, provider, named_context, tokens)
        return price * _US_FACTOR if terms.region == "us" else price

    def at_most(self, request: Mapping[str, Any], output: int | None = None) -> Decimal:
        """Return an upper bound on the bill for a request, in US dollars. It counts a token for
        every byte of text, the most tokens of any provider for every image, all input written to
        the dearest cache, and for each draw `output` tokens, or else as many as the request allows.
        """
        is_claude = self.spec.api_format == "messages"
        without_images, n_images = _without_images(request)
        n_input = len(json.dumps(without_images, ensure_ascii=False).encode()) + _ADDED_INPUT
        n_input += n_images * (_MAX_CLAUDE_IMAGE if is_claude else _MAX_IMAGE)
        limit = output_limit(request) if output is None else output
        n_output = limit * int(request.get("n", 1))  # `n` answers to one request
        dearest_terms = Terms(region="us" if is_claude else "")  # only Claude costs more in the US
        cases = (  # no cache, the usual cache, one for an hour
            Tokens(input=n_input, output=n_output),
            Tokens(input=n_input, written=n_input, output=n_output),
            Tokens(input=n_input, written=n_input, written_1h=n_input, output=n_output),
        )
        return max(self.cost(tokens, dearest_terms) for tokens in cases)

    def at_least(self, request: Mapping[str, Any]) -> Decimal:
        """Return a low estimate of the bill in US dollars: a cached prompt, one token of output."""
        prompt = _text_of([request.get("system", ""), request.get("messages", "")])
        n_input = len(prompt.encode()) // _MAX_BYTES_PER_TOKEN
        return self.cost(Tokens(input=n_input, cached=n_input, output=1))


def _text_of(part: object) -> str:
    """Return the text of a part of a request, without the JSON around it."""
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        return _text_of(part.get("content", part.get("text", "")))
    return "".join(map(_text_of, part)) if isinstance(part, (list, tuple)) else ""


def input_estimate(request: Mapping[str, Any]) -> int:
    """Return a rough number of tokens for a request of English text, with its images."""
    without_images, n_images = _without_images(request)
    text = len(json.dumps(without_images, ensure_ascii=False).encode()) // _BYTES_PER_TOKEN
    return text + n_images * _USUAL_IMAGE


def _without_images(request: Mapping[str, Any]) -> tuple[Any, int]:
    """Return the request without the data of its images, and the number of images."""
    n_images = 0

    def strip(part: Any) -> Any:
        nonlocal n_images
        if isinstance(part, Mapping):
            is_image = part.get("type") == "base64"  # in a request to Claude
            n_images += is_image
            names = [name for name in part if not is_image or name != "data"]
            return {name: strip(part[name]) for name in names}
        if isinstance(part, list):
            return [strip(item) for item in part]
        if isinstance(part, str) and part.startswith("data:image/"):  # to a chat server
            n_images += 1
            return ""
        return part

    return strip(request), n_images


def output_limit(request: Mapping[str, Any]) -> int:
    """Return the most tokens that an answer to this request may have."""
    return next((int(request[name]) for name in LIMIT_NAMES if name in request), _UNLIMITED_OUTPUT)


def usage_facts(
    evidence: Mapping[str, Any], tariff: Tariff | None, charged_usd: float | None = None
) -> dict[str, Any]:
    """Return what a grade's provenance has on its reply: the tokens used and, if known, the cost
    and its source. The cost is `charged_usd`, as a gateway reports it, else the tokens' price.
    """
    facts: dict[str, Any] = {}
    if isinstance(usage := evidence.get("usage"), Mapping) and usage:
        tokens = Tokens.from_usage(usage)
        facts["tokens"] = asdict(tokens)
        if tariff:
            price = tariff.cost(tokens, Terms.from_reply(evidence))
            facts |= {"cost_usd": float(price), "price_data": tariff.source}
    if charged_usd is not None:
        facts |= {"cost_usd": charged_usd, "price_data": _COST_HEADER}
    return facts


def charged_by(headers: Mapping[str, str]) -> float | None:
    """Return the cost of a reply in US dollars as a gateway reports it, or None.

    0 counts as not reported: LiteLLM sends it for every model whose price it does not know.

    >>> charged_by({"x-litellm-response-cost": "0.0021"}), charged_by({}), charged_by({
    ...     "x-litellm-response-cost": "nan"})
    (0.0021, None, None)
    """
    try:
        usd = float(headers[_COST_HEADER])
    except (KeyError, ValueError):
        return None
    return usd if math.isfinite(usd) and 0 < usd < _MAX_HEADER_USD else None


class Budget:
    """The US dollars that several graders may spend together; any amount if the limit is None."""

    def __init__(self, limit: float | None = None, spent: float = 0.0) -> None:
        self.limit = None if limit is None else Decimal(str(limit))
        self.spent = Decimal(str(spent))
        self.lost = Decimal(0)  # of `spent`, for requests without a reply, perhaps not billed
        self.exhausted = False
        self._reserved = Decimal(0)
        self._waiting: list[anyio.Event] = []  # each set at the next settlement

    @property
    def _available(self) -> Decimal:
        """The amount that is neither spent nor reserved."""
        return (Decimal("inf") if self.limit is None else self.limit) - self.spent - self._reserved

    async def reserve(self, amount: Decimal, min_amount: Decimal | None = None) -> Decimal:
        """Reserve an amount, or what is available if that is at least `min_amount`, and return the
        reserved amount. Where `min_amount` is not available, wait until other reservations are
        settled. Raises OverBudget if no reservation is left that could free it.
        """
        min_amount = amount if min_amount is None else min_amount
        while not self.fits(min_amount):
            if self._reserved == 0:
                self.exhausted = True
                name = "over_budget_with_lost" if self.lost else "over_budget"
                amounts = {"limit": self.limit, "spent": self.spent, "lost": self.lost}
                raise OverBudget(written(f"grade.{name}", **amounts, least=min_amount))
            settlement = anyio.Event()
            self._waiting.append(settlement)
            await settlement.wait()
        granted = min(amount, self._available)
        self._reserved += granted
        return granted

    def fits(self, amount: Decimal) -> bool:
        """Return True if an amount is available."""
        return amount <= self._available

    def hold(self, amount: Decimal) -> None:
        """Reserve an amount for requests that are under way, even if it is not available."""
        self._reserved += amount

    def settle(self, reserved: Decimal, spent: Decimal, *, lost: bool = False) -> None:
        """Replace a reservation by the amount spent, which is assumed if the reply was `lost`."""
        self._reserved -= reserved
        self.spent += spent
        self.lost += spent if lost else 0
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()
