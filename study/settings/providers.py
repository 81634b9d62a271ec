"""The sections `[providers.NAME]` of study.toml: servers of one's own, and the settings sent to
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from evenhand.study.settings.sections import Declared, Section

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAMED = re.compile(r"\$\{([^}]*)\}")


def fault_of_address(url: str) -> str:
    """Return the fault of a server's address, without repeating the address; "" if it has none.

    >>> fault_of_address("https://key@example.com/v1")
    'holds credentials; take them out and name the variable that holds the key'
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is not a valid address"
    if parts.scheme not in ("http", "https"):
        return "must begin with http:// or https://"
    if parts.username is not None or parts.password is not None:
        return "holds credentials; take them out and name the variable that holds the key"
    if parts.query or parts.fragment:
        return "must end before any ? or #; keys come from the environment"
    if not parts.hostname or not url.isprintable() or re.search(r"\s", url):
        return "is not a valid address"
    return ""


class ProviderSettings(Declared):
    """A server that graders may name. Secrets are in the environment, never in study.toml."""

    base_url: str = Field(
        default="", description="its address, up to where /chat/completions or /v1/messages begins"
    )
    key_env: str = Field(
        default="",
        description="the variable that holds its key; without it, one named for the host "
        "([providers](graders.md#providers-and-keys))",
    )
    headers: dict[str, str] = Field(
        default_factory=dict,
        description="sent with every request; `${EVENHAND_NAME}` is taken from the environment",
        json_schema_extra={"example": '`x-team = "${EVENHAND_TEAM_TOKEN}"`'},
    )
    speaks: str = Field(
        default="",
        description="`chat` (OpenAI's Chat Completions), `messages` (Anthropic's) or a form of "
        "[your own](graders.md#a-provider-of-another-form)",
        json_schema_extra={"usual": "`chat`"},
    )

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and (fault := fault_of_address(value)):
            raise ValueError(f"the address {fault}")
        return value

    @field_validator("key_env")
    @classmethod
    def _names_a_variable(cls, value: str) -> str:
        if value and not VARIABLE.fullmatch(value):
            # It may be the key itself, so it is not repeated.
            raise ValueError("write the name of an environment variable, never the key itself")
        return value

    @field_validator("headers")
    @classmethod
    def _headers_can_be_sent(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or not text.isprintable():
                raise ValueError(f"{name!r} is not a header that can be sent")
            for variable in NAMED.findall(text):
                if not VARIABLE.fullmatch(variable):
                    raise ValueError(f"the header {name!r} names no variable between its braces")
        return value

    def variables(self) -> Iterator[tuple[str, str]]:
        """The variables that it takes something from, each after the key that names it."""
        texts = {"base_url": self.base_url, **{f"headers.{k}": v for k, v in self.headers.items()}}
        for key, text in texts.items():
            yield from ((key, name) for name in NAMED.findall(text))
        if self.key_env:
            yield "key_env", self.key_env


# `[prices]`: the prices of models, where the study knows better than the price table


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
