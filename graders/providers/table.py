"""The table of providers: those of `providers.toml`, and those that a study names itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from evenhand.errors import InputError
from evenhand.graders.providers.forms import is_form
from evenhand.study.settings.providers import ProviderSettings

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")

Own = Mapping[str, ProviderSettings]
"""The providers named in study.toml, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A row of the table; `by_study` is True where study.toml gives the address."""

    name: str
    speaks: str
    base_url: str = ""
    base_url_env: str = ""
    key_env: str = ""
    key: str = "needed"
    prices: str = ""
    client: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    by_study: bool = False


@cache
def _rows() -> dict[str, Provider]:
    text = files("evenhand.graders.providers").joinpath("providers.toml").read_text("utf-8")
    rows: dict[str, dict[str, Any]] = tomllib.loads(text)
    return {name: Provider(name=name, **row) for name, row in rows.items()}


def known_providers(own: Own) -> dict[str, Provider]:
    """Return the providers by name; settings in study.toml override the table.

    Raises InputError where study.toml has an invalid setting, or a new provider without an address.
    """
    providers = dict(_rows())
    for name, said in own.items():
        providers[name] = _with(providers.get(name), name, said)
    return providers


def key_variables() -> set[str]:
    """Return the environment variables that hold keys of providers in the table."""
    return {row.key_env for row in _rows().values() if row.key_env}


def _with(row: Provider | None, name: str, said: ProviderSettings) -> Provider:
    if name == "baseline" or not _NAME.fullmatch(name):
        raise InputError(
            f"[providers.{name}] in study.toml: choose a name of lower-case letters, digits and -"
        )
    if row is None:
        if not said.base_url:
            raise InputError(f"[providers.{name}] in study.toml needs a base_url")
        row = Provider(name=name, speaks="chat", key="optional")
    if said.speaks:
        if said.speaks not in ("chat", "messages") and not is_form(said.speaks):
            raise InputError(
                f"[providers.{name}] in study.toml: speaks is {said.speaks!r}; write chat or "
                "messages"
            )
        row = replace(row, speaks=said.speaks)
    if said.headers:
        row = replace(row, headers=said.headers)
    if said.base_url:
        # A key of the table is for the table's address, so it does not follow to this one.
        url = {"base_url": said.base_url, "base_url_env": "", "key_env": "", "key": "optional"}
        row = replace(row, **url, by_study=True)  # type: ignore[arg-type]
    return replace(row, key_env=said.key_env) if said.key_env else row
