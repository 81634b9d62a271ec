"""The app's own host names, and the addresses of its visitors, by study.toml and `--url`."""

from __future__ import annotations

import ipaddress
import sys
from collections import Counter
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import streamlit as st
from streamlit import config

from evenhand.annotate_app.neighbours import place_of_studies
from evenhand.errors import InputError
from evenhand.study.settings.session import SessionSettings
from evenhand.study.settings.study_toml import read_config

if TYPE_CHECKING:
    from starlette.types import Scope

_HERE = ("localhost", "127.0.0.1", "::1")
MOST_BYTES = 1_000_000
"""Bytes of one message at most: `maxWidgetStateSize` in Streamlit's settings."""
MOST_PAGES = 60
"""Pages of one address open at once in a process: enough for a classroom, not for a flood."""

open_pages: Counter[str] = Counter()
"""The connections of pages, by address."""


def base_path() -> str:
    """Return the path at which the app's address begins, such as "/refusals"; "" for the root."""
    path = str(config.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def as_sent(scope: Scope) -> Scope:
    """The request as our router got it, whose own socket has no address: whom the router speaks
    with is the last in `X-Forwarded-For`. Any other request is as it is.
    """
    if scope.get("client") is not None or place_of_studies() is None:
        return scope
    name = b"x-forwarded-for"
    before, _, peer = ",".join(headers_of(scope, name)).rpartition(",")
    headers = [each for each in scope["headers"] if each[0] != name]
    if before:
        headers.append((name, before.encode("latin-1")))
    return {**scope, "client": (peer.strip(), 0), "headers": headers}


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
    return client_address(peer, forwarded, _settings().trusted_proxies)


def visitor_address() -> str:
    """Return the address of the visitor whose page is being drawn, in the same way."""
    peer = st.context.ip_address or "127.0.0.1"  # Streamlit: None for local clients
    forwarded = st.context.headers.get_all("X-Forwarded-For")
    return client_address(peer, forwarded, _settings().trusted_proxies)


def client_address(peer: str, forwarded: Iterable[str], trusted: Collection[str]) -> str:
    """Return the address that a connection comes from: the peer's, unless the peer is a trusted
    proxy.

    `forwarded` are the `X-Forwarded-For` headers. Each proxy appends the address of its client, so
    they are read from the end, as long as the proxies are trusted: anyone can write the rest.

    >>> client_address("10.0.0.1", ["1.2.3.4"], [])
    '10.0.0.1'
    >>> client_address("10.0.0.1", ["6.6.6.6, 1.2.3.4"], ["10.0.0.1"])
    '1.2.3.4'
    """
    address = peer
    hops = [hop.strip() for header in forwarded for hop in header.split(",")]
    for hop in reversed(hops):
        if address not in trusted or not _is_address(hop):
            break
        address = hop
    return address


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


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
