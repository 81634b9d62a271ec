"""The app's own host names, and the addresses of its visitors, by study.toml and `--url`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from streamlit import config

from evenhand.errors import InputError
from evenhand.study.access.addresses import client_address
from evenhand.study.settings.session import SessionSettings
from evenhand.study.settings.study_toml import read_config

if TYPE_CHECKING:
    from starlette.types import Scope

_HERE = ("localhost", "127.0.0.1", "::1")
MOST_PAGES = 60
"""Pages of one address open at once in a process: enough for a classroom, not for a flood."""

open_pages: Counter[str] = Counter()
"""The connections of pages, by address."""


def headers_of(scope: Scope, name: bytes) -> list[str]:
    """Return every header of this name, which is given in lower case."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def is_own_name(host: str) -> bool:
    """Return True if a `Host` header, or the part behind `//` in an origin, names this site.
    Another name that leads here is somebody else's: a page of theirs would speak to the study as
    its own.
    """
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return parts.netloc == host and (name or "").rstrip(".") in _own_names()


def address_of(scope: Scope) -> str:
    """The address of a visitor; "" where it is that of an untrusted proxy on this machine, which
    all visitors share.
    """
    peer = (scope.get("client") or ("",))[0]
    forwarded = headers_of(scope, b"x-forwarded-for")
    if forwarded and peer in _HERE and peer not in _settings().trusted_proxies:
        return ""
    return visitor_address(peer, forwarded)


def visitor_address(peer: str, forwarded: Iterable[str]) -> str:
    """The address of a visitor, as reported by the peer or by a proxy that the study trusts."""
    return client_address(peer, forwarded, _settings().trusted_proxies)


def is_secure(scope: Scope) -> bool:
    """Return True if the browser speaks TLS, to a proxy or here. A client that lies about it harms
    only itself.
    """
    return scope["scheme"] in ("https", "wss") or "https" in headers_of(scope, b"x-forwarded-proto")


def has_room(address: str) -> bool:
    """Return True if one more page of this address may be open."""
    return not address or open_pages[address] < MOST_PAGES


@cache
def _own_names() -> frozenset[str]:
    set_by_hand = config.is_manually_set("browser.serverAddress")  # see `serve.command`
    public = [config.get_option("browser.serverAddress")] if set_by_hand else []
    return frozenset(name.lower() for name in (*_HERE, *public, *_settings().hosts))


@cache
def _settings() -> SessionSettings:
    """The session settings at the start of the app; the defaults where the study does not open."""
    try:
        return read_config(Path(sys.argv[1])).session
    except (InputError, IndexError):
        return SessionSettings()
