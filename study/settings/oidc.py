"""The section of study.toml that lets people in by their organisation's login (OpenID Connect)."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from evenhand.study.settings.sections import Section

_VARIABLE = re.compile(r"\$\{\w+\}")
_PERSON = re.compile(r"sub:\S+|[^@\s]+@[^@\s]+")
_HERE = ("localhost", "127.0.0.1", "::1")


def _is_private(address: str) -> str:
    """Return the address if no one on the way can read or change its traffic; else raise
    ValueError.
    """
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return address
    if parts.scheme == "http" and parts.hostname in _HERE:
        return address
    raise ValueError(f"{address!r} is no https address; write one such as https://example.org")


def _is_origin(address: str) -> str:
    if urlsplit(address).path.strip("/") or urlsplit(address).query:
        raise ValueError(f"{address!r} names a page; write the address up to the host or port")
    return _is_private(address).rstrip("/")


def _is_variable(secret: str) -> str:
    if not _VARIABLE.fullmatch(secret):  # the value is not repeated: it may be the secret
        raise ValueError("a secret does not stand in study.toml; write ${NAME}, and set NAME")
    return secret


def _is_person(entry: str) -> str:
    if not _PERSON.fullmatch(entry):
        raise ValueError(f"{entry!r} is no person; write an e-mail address, or sub:IDENTIFIER")
    return entry


Person = Annotated[str, AfterValidator(_is_person)]


class OidcSettings(Section):
    server_metadata_url: Annotated[str, AfterValidator(_is_private)] = Field(
        description="where the provider describes itself, an address that ends in "
        "`/.well-known/openid-configuration`"
    )
    client_id: str = Field(min_length=1, description="the name that the provider gave to this app")
    client_secret: Annotated[str, AfterValidator(_is_variable)] = Field(
        description="`${NAME}`: the environment variable that holds the app's secret"
    )
    address: Annotated[str, AfterValidator(_is_origin)] = Field(
        description="where people reach the app, such as `https://study.example.org`; the provider "
        "must know `ADDRESS/oauth2callback` as its redirect URI"
    )
    label: str = Field(default="", description="the button's text; empty: evenhand's own words")
    leads: tuple[Person, ...] = Field(
        default=(),
        description="who leads the study: e-mail addresses that the provider has verified, or "
        "`sub:IDENTIFIER`",
    )
    experts: tuple[Person, ...] = Field(
        default=(), description="who labels and adjudicates as an expert, written alike"
    )
