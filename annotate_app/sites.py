"""The studies that this process serves, each at its own path, or one alone: their host names, the
addresses of their visitors, and each study as its files are now.

A lead's page that makes a study adds it here, and it is served from then on. A change of a study's
files, on a lead's page or by hand, takes effect at the next page that is drawn, in every process
that serves the study.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import streamlit as st
from anyio import CapacityLimiter, to_thread
from starlette.types import Scope

from evenhand.errors import InputError, StoreAway
from evenhand.reporting.report import stop_flagged_in
from evenhand.reporting.workers import run_apart
from evenhand.study import Study, open_study
from evenhand.study.desk.claims import AttentionChecks
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.progress import data_version
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.study_toml import FILE_NAME, STUDY_NAME, SessionSettings, read_config
from evenhand.study.store.logs.decisions import note_settings
from evenhand.study.workspace import checked_rubrics, files_of
from evenhand.texts import written

Result = TypeVar("Result")

_TAKEN = ("health", "static")
"""The address of all studies' health, and what nginx takes for Streamlit's files."""
_MOST_AT_WORK = 8

_log = logging.getLogger(__name__)


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
    begins = f"/{folder.name}" if path is None else path
    _sites[begins] = Site(folder.resolve(), begins, path is not None)
    return _sites[begins]


def sites() -> list[Site]:
    """The studies that are served, by name."""
    return [_sites[path] for path in sorted(_sites)]


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
    studies: list[Path] = []
    for folder in folders:
        within = [] if (folder / FILE_NAME).exists() else sorted(folder.glob(f"[!.]*/{FILE_NAME}"))
        studies += [file.parent.resolve() for file in within] or [folder.resolve()]
    return studies


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
    """The study whose page is being drawn (see `logins.bound`); None outside of the app."""
    return _sites.get(str(st.user.to_dict().get("study")))


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
    """The address of a visitor; "" behind an untrusted local proxy, which all visitors share."""
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
    with suppress(ValueError):
        while hops and address in trusted:
            ipaddress.ip_address(hops[-1])  # ends the search at what is no address
            address = hops.pop()
    return address


def is_secure(scope: Scope) -> bool:
    """Return True if the browser speaks TLS, here or to a proxy; who lies harms only themselves."""
    return scope["scheme"] in ("https", "wss") or "https" in headers_of(scope, b"x-forwarded-proto")


def has_room(visitor: tuple[str, str]) -> bool:
    """Return True if one more page of this study may be open at this address."""
    return not visitor[1] or open_pages[visitor] < MOST_PAGES


@cache
def _own_names(site: Site | None) -> frozenset[str]:
    public = str(st.get_option("browser.serverAddress"))  # see `evenhand.annotate_app.command`
    return frozenset(name.lower() for name in (*_HERE, public, *_settings(site).hosts))


@cache
def _settings(site: Site | None) -> SessionSettings:
    """The session settings as the study is first asked for; the defaults where it does not open."""
    try:
        return read_config(site.folder).session if site else SessionSettings()
    except InputError:
        return SessionSettings()


# A served study, as its files are now.

_STORE_PATIENCE = 1.5  # seconds to wait for the store: less than the panel waits before it resends
_MOST_KEPT = 4
"""Earlier states of the files that a process remembers."""
_Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class Desks:
    """The desk and the sessions of a study, and the name of the state of its files."""

    desk: AnnotationDesk
    sessions: Sessions
    drawn: str


class ServedStudy:
    """A study with its one connection to the store, for all pages of this process.

    Where the files do not hold together, as while somebody edits them, the study stays as it was.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        study = open_study(folder, patience=_STORE_PATIENCE)
        self._seen = _stamp(study)
        self._desks = _desks(study, self._seen)
        self._kept = {self._desks.drawn: self._desks}
        self._watch = start_watch(study)

    def desks(self, drawn: str = "") -> Desks:
        """Return the desk and the sessions of the study as its files are now; or as they were when
        a page was `drawn`, while this is remembered: an answer is stored for what was shown.
        """
        stamp = _stamp(self._desks.desk.study)
        if stamp != self._seen:
            with self._lock:
                if stamp != self._seen:
                    self._take_in(stamp)
                    self._seen = stamp
        return self._kept.get(drawn, self._desks)

    def _take_in(self, stamp: _Stamp) -> None:
        old = self._desks.desk.study
        try:
            config = read_config(old.folder)
            if config.store != old.config.store:
                raise InputError("the study was moved to another store; start the app again")
            study = Study(old.folder, config, checked_rubrics(old.folder, config), old.store)
            AttentionChecks(study)  # which the desk reads when it first needs them
            self._desks = _desks(study, stamp)
            latest = list(self._kept.items())[-_MOST_KEPT:]
            self._kept = {**dict(latest), self._desks.drawn: self._desks}
        except InputError as error:
            _log.warning("the study's files have changed, and are not taken in: %s", error)
            return
        note_settings(study.store, (study.folder / FILE_NAME).read_text("utf-8-sig"))
        self._watch.set()
        self._watch = start_watch(study)


_served = cache(ServedStudy)


def served(site: Site) -> ServedStudy:
    """Return this study, opened once, with its one connection, in this process."""
    with site.opening:
        return _served(site.folder)


def _desks(study: Study, stamp: _Stamp) -> Desks:
    drawn = hashlib.sha256(repr(stamp).encode()).hexdigest()[:16]
    return Desks(AnnotationDesk(study), Sessions(study), drawn)


def _stamp(study: Study) -> _Stamp:
    """A value that changes whenever one of the study's files is written, made or removed, or
    another that its settings may name by now.
    """
    named = {study.folder / name for name in files_of(study.folder, study.config)}
    return tuple(map(_file_stamp, sorted(named | {*study.folder.glob("*.toml")})))


def _file_stamp(path: Path) -> tuple[str, int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return path.name, 0, 0, 0
    return path.name, status.st_mtime_ns, status.st_size, status.st_ino


# The watch ends the participation of raters whom the study's own rules stop, while the app runs.
# Agreement is computed in a separate process: nothing of it enters the process that serves the
# annotators, and no annotator waits for it.


def start_watch(study: Study, every: float = 60.0) -> threading.Event:
    """Check the raters every so many seconds if labels came in, in a study whose rules may stop
    anyone. Ends when the event that it returns is set.
    """
    over = threading.Event()
    if study.config.quality.stop:
        threading.Thread(target=_watch, args=(study, every, over), daemon=True).start()
    return over


def _watch(study: Study, every: float, over: threading.Event) -> None:
    seen = ""
    while not over.wait(every):
        try:
            if (present := data_version(study)) != seen:
                seen = present
                run_apart(stop_flagged_in, study.folder.resolve())
        except (InputError, StoreAway) as error:
            _log.error("the annotators could not be looked at: %s", error)
        except Exception:  # a watch that dies would look like a crowd without fault
            _log.exception("the annotators could not be looked at")
