"""`[prices]`: the prices of models, where the study knows better than the price table."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from evenhand.study.settings.sections import Section

Dollars = Annotated[float, Field(ge=0, le=1e6)]
_MILLION = 1_000_000


class ModelPrices(Section):
    """US dollars for a million tokens."""

    input: Dollars = Field(
        description="US dollars for a million tokens of input; NAME is a grader or a model"
    )
    output: Dollars = Field(description="the same for output, thinking included")
    cache_read: Dollars | None = Field(
        default=None, description="for input read from a cache; input's price where it is left out"
    )
    cache_write: Dollars | None = Field(
        default=None, description="for input written to a cache, likewise"
    )

    def cost(self, read: int, cached: int, written: int, output: int) -> Decimal:
        """Return the cost in US dollars; `read` counts all input. Without a price for cached tokens
        that of input applies.

        >>> ModelPrices(input=2, output=10, cache_read=1).cost(1_000_000, 500_000, 0, 100_000)
        Decimal('2.5')
        """
        fresh = max(read - cached - written, 0)
        from_cache = self.input if self.cache_read is None else self.cache_read
        to_cache = self.input if self.cache_write is None else self.cache_write
        counted = (
            (fresh, self.input),
            (cached, from_cache),
            (written, to_cache),
            (output, self.output),
        )
        return sum((n * Decimal(str(usd)) / _MILLION for n, usd in counted), Decimal(0))
