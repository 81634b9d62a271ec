"""The studies that this process serves, each at a path of its own, or one alone; their host names
and the addresses of their visitors.

A lead's page that makes a study adds it here, and it is served from then on.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import streamlit as st
from anyio import CapacityLimiter, to_thread
from starlette.types import Scope

from evenhand.errors import InputError
from evenhand.study.settings.study_toml import FILE_NAME, STUDY_NAME, SessionSettings, read_config
from evenhand.texts import written

Result = TypeVar("Result")

_TAKEN = ("health", "static")
"""The address of all studies' health, and what nginx takes for Streamlit's files."""
_MOST_AT_WORK = 8


@dataclass(frozen=True)
class Site:
    """A study and the path at which its address begins, such as "/refusals"; "" for the root. None
    may join one that is served alone.
    """

    folder: Path
    path: str = ""
    alone: bool = True
    opening: threading.Lock = field(default_factory=threading.Lock, compare=False)
    _room: CapacityLimiter = field(
        default_factory=lambda: CapacityLimiter(_MOST_AT_WORK), compare=False
    )

    async def work(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run in a thread what asks the store, of a few for this study: while its store hangs,
        threads are left for the others.
        """
        return await to_thread.run_sync(function, *arguments, limiter=self._room)

    @property
    def waiting(self) -> int:
        """Calls that wait for a thread."""
        return self._room.statistics().tasks_waiting


_sites: dict[str, Site] = {}


def add_study(folder: Path, path: str | None = None) -> Site:
    """Serve one more study, under the name of its folder; or one alone at this path."""
    own = f"/{folder.name}" if path is None else path
    _sites[own] = Site(folder.resolve(), own, path is not None)
    return _sites[own]


def sites() -> list[Site]:
    """The studies that are served, by name."""
    return [_sites[path] for path in sorted(_sites)]


def site_at(path: str) -> Site | None:
    """The study whose address begins so; None where there is none."""
    return _sites.get(path)


def site_of(scope: Scope) -> Site | None:
    """The study that a request is for; None where there is none."""
    return _sites.get(f"/{scope['path'].removeprefix('/').partition('/')[0]}") or _sites.get("")


def study_path(name: str) -> str:
    """Return the path of a study's address, such as "/refusals", of its name, with slashes or
    without. Raises InputError where no path can be called so.
    """
    bare = name.strip("/")
    if not STUDY_NAME.fullmatch(bare) or bare.casefold() in _TAKEN:
        raise InputError(written("several.bad_name", name=name))
    return f"/{bare}"


def studies_in(folders: Iterable[Path]) -> list[Path]:
    """Return these folders, and in place of one that holds studies and is none, those: without
    what a killed run left there, whose name begins with a dot.
    """
    found: list[Path] = []
    for folder in folders:
        within = [] if (folder / FILE_NAME).exists() else sorted(folder.glob(f"[!.]*/{FILE_NAME}"))
        found += [each.parent.resolve() for each in within] or [folder.resolve()]
    return found


def check_names(names: Iterable[str]) -> None:
    """Raise InputError where a name cannot be part of an address, or two would be mixed up."""
    seen: set[str] = set()
    for name in names:
        study_path(name)
        if name.casefold() in seen:
            raise InputError(written("several.same_name", name=name))
        seen.add(name.casefold())


# The app's own host names, and the addresses of its visitors, by study.toml and `--url`.

_HERE = ("localhost", "127.0.0.1", "::1")
MOST_BYTES = 1_000_000
"""Bytes of one message at most: `maxWidgetStateSize` in Streamlit's settings."""
MOST_PAGES = 60
"""Pages of a study open at once at one address: enough for a classroom, not for a flood."""

STUDY = b"x-evenhand-study"
"""Header that names the study's path to Streamlit (`trustedUserHeaders`); a client's own is
dropped.
"""

open_pages: Counter[tuple[str, str]] = Counter()
"""The connections of pages, by the study's path and the address."""


def base_path(scope: Scope) -> str:
    """Return the path at which the study's address begins, such as "/refusals"; "" for the root."""
    site = site_of(scope)
    return site.path if site else ""


def present_site() -> Site | None:
    """The study whose page is being drawn, as the door named it; None outside of the app."""
    return site_at(str(st.user.to_dict().get("study")))


def headers_of(scope: Scope, name: bytes) -> list[str]:
    """Return every header of this name, which is given in lower case."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def is_own_name(host: str, site: Site | None) -> bool:
    """Return True if a `Host` header, or the part behind `//` in an origin, names this study's.
    Another name that leads here is somebody else's: a page of theirs would speak to the study as
    its own.
    """
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return parts.netloc == host and (name or "").rstrip(".") in _own_names(site)


def address_of(scope: Scope) -> str:
    """The address of a visitor; "" where it is that of an untrusted proxy on this machine, which
    all visitors share.
    """
    peer = (scope.get("client") or ("",))[0]
    forwarded = headers_of(scope, b"x-forwarded-for")
    trusted = _settings(site_of(scope)).trusted_proxies
    if forwarded and peer in _HERE and peer not in trusted:
        return ""
    return client_address(peer, forwarded, trusted)


def visitor_address() -> str:
    """Return the address of the visitor whose page is being drawn, in the same way."""
    peer = st.context.ip_address or "127.0.0.1"  # Streamlit: None for local clients
    forwarded = st.context.headers.get_all("X-Forwarded-For")
    return client_address(peer, forwarded, _settings(present_site()).trusted_proxies)


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


def has_room(visitor: tuple[str, str]) -> bool:
    """Return True if one more page of this study may be open at this address."""
    return not visitor[1] or open_pages[visitor] < MOST_PAGES


@cache
def _own_names(site: Site | None) -> frozenset[str]:
    public = str(st.get_option("browser.serverAddress"))  # see `serve.command`
    return frozenset(name.lower() for name in (*_HERE, public, *_settings(site).hosts))


@cache
def _settings(site: Site | None) -> SessionSettings:
    """The session settings as the study is first asked for; the defaults where it does not open."""
    try:
        return read_config(site.folder).session if site else SessionSettings()
    except InputError:
        return SessionSettings()
