"""What a request costs at most, what it did cost, and a budget that is never exceeded.

Prices are those of the genai-prices package, as shipped with it: nothing is looked up over the
network. A model that it does not know has no tariff.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import Any

import anyio

from evenhand.graders.failures import Stopped
from evenhand.graders.spec import GraderSpec

_HIDDEN_INPUT = 2_000  # tokens that a provider adds of its own: schema, frame of the conversation
_UNLIMITED_OUTPUT = 128_000  # a request without a limit of its own may bring so many tokens
_MOST_TOKENS = 10**9  # more is no count of anything
_BYTES_PER_TOKEN = 4  # of English text, for estimates; a token is one byte at least


class OverBudget(Stopped):
    """The next request might cost more than is left."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What was billed. `input` counts those read from and written to a cache too."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0

    @classmethod
    def of(cls, usage: Mapping[str, Any]) -> Tokens:
        """Read from either provider's usage.

        >>> Tokens.of({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7})
        Tokens(input=95, cached=90, written=0, output=7)
        >>> Tokens.of({"prompt_tokens": 95, "completion_tokens": 7,
        ...            "prompt_tokens_details": {"cached_tokens": 90}})
        Tokens(input=95, cached=90, written=0, output=7)
        """
        if "prompt_tokens" in usage:
            details = usage.get("prompt_tokens_details")
            details = details if isinstance(details, Mapping) else {}
            return cls(
                input=_count(usage, "prompt_tokens"),
                cached=_count(details, "cached_tokens"),
                output=_count(usage, "completion_tokens"),
            )
        cached = _count(usage, "cache_read_input_tokens")
        written = _count(usage, "cache_creation_input_tokens")
        return cls(
            input=_count(usage, "input_tokens") + cached + written,
            cached=cached,
            written=written,
            output=_count(usage, "output_tokens"),
        )


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_TOKENS:
        return value
    return 0


@dataclass(frozen=True, slots=True)
class Tariff:
    """The prices of one model, asked live or in a batch."""

    spec: GraderSpec
    batch: bool = False

    @classmethod
    def find(cls, spec: GraderSpec, *, batch: bool = False) -> Tariff | None:
        """None where the model has no known price."""
        if spec.provider == "baseline":
            return None
        tariff = cls(spec, batch)
        try:
            tariff.cost(Tokens(input=1, output=1))
        except LookupError:
            return None
        return tariff

    def cost(self, tokens: Tokens) -> Decimal:
        """In US dollars. Raises LookupError where the price is not known."""
        from genai_prices import Usage, calc_price

        usage = Usage(
            input_tokens=tokens.input,
            cache_read_tokens=tokens.cached,
            cache_write_tokens=tokens.written,
            output_tokens=tokens.output,
        )
        context = {"processing": "batch"} if self.batch else None
        by = self.spec.at.prices
        found = calc_price(usage, self.spec.model, price_context=context, **by)
        return Decimal(found.total_price)

    def at_most(self, request: Mapping[str, Any]) -> Decimal:
        """No bill for this request is higher: every byte a token, all written to the cache, and as
        much output as it allows.
        """
        size = len(json.dumps(request, ensure_ascii=False).encode()) + _HIDDEN_INPUT
        written = size if self.spec.speaks == "messages" else 0
        return self.cost(Tokens(input=size, written=written, output=_output_limit(request)))

    def at_least(self, request: Mapping[str, Any]) -> Decimal:
        """What it costs if the model answers with nothing but the key."""
        size = len(json.dumps(request, ensure_ascii=False).encode()) // _BYTES_PER_TOKEN
        return self.cost(Tokens(input=size, output=1))


def usage_facts(usage: Mapping[str, Any] | None, tariff: Tariff | None) -> dict[str, Any]:
    """What a grade's provenance says of its usage and, where there is a price, of its cost."""
    if not usage:
        return {}
    tokens = Tokens.of(usage)
    facts: dict[str, Any] = {"tokens": asdict(tokens)}
    if tariff:
        facts |= {"cost_usd": float(tariff.cost(tokens)), "price_data": _price_data()}
    return facts


@cache
def _price_data() -> str:
    return f"genai-prices {version('genai-prices')}"


def _output_limit(request: Mapping[str, Any]) -> int:
    names = ("max_tokens", "max_completion_tokens")
    return next((int(request[name]) for name in names if name in request), _UNLIMITED_OUTPUT)


class Budget:
    """What several graders may spend together. Without a limit everything is granted."""

    def __init__(self, limit: float | None = None) -> None:
        self.limit = None if limit is None else Decimal(str(limit))
        self.spent = Decimal(0)
        self.exhausted = False
        self._reserved = Decimal(0)
        self._waiting: list[anyio.Event] = []

    def room(self) -> Decimal | None:
        """What is neither spent nor reserved; None without a limit."""
        return None if self.limit is None else self.limit - self.spent - self._reserved

    async def reserve(self, amount: Decimal) -> None:
        """Set an amount aside, waiting for others' reservations to be settled where it does not
        fit. Raises OverBudget where it never will.
        """
        while not self.fits(amount):
            if self._reserved == 0:
                self.exhausted = True
                raise OverBudget(
                    f"the budget of ${self.limit} is used up: ${self.spent:.4f} are spent, and the "
                    f"next request may cost ${amount:.4f}; run again with a higher --budget to go "
                    "on"
                )
            settled = anyio.Event()
            self._waiting.append(settled)
            await settled.wait()
        self._reserved += amount

    def fits(self, amount: Decimal) -> bool:
        room = self.room()
        return room is None or amount <= room

    def hold(self, amount: Decimal) -> None:
        """Set an amount aside for what is under way already, whether it fits or not."""
        self._reserved += amount

    def settle(self, reserved: Decimal, spent: Decimal) -> None:
        """Turn a reservation into what was spent."""
        self._reserved -= reserved
        self.spent += spent
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()
