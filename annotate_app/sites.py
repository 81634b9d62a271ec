"""The studies that this process serves: their paths and host names, the addresses of their
visitors, and each study as its files are now.

A study that a lead creates is added here and served at once. A change of a study's files, on a
page or by hand, takes effect when the next page is drawn, in every process that serves the study;
but `hosts` and `trusted_proxies` are read once and, like `store`, need a restart.
"""

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

from evenhand.annotate_app.languages import offered
from evenhand.errors import InputError, StoreAway
from evenhand.reporting.report import stop_flagged_in
from evenhand.reporting.workers import run_apart
from evenhand.study import Study, open_study
from evenhand.study.access import check_signing
from evenhand.study.desk.claims import SessionDesign
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.progress import data_version
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.study_toml import FILE_NAME, STUDY_NAME, SessionSettings, read_config
from evenhand.study.store.logs.decisions import note_settings
from evenhand.study.workspace import checked_rubrics, files_of
from evenhand.texts import written

Result = TypeVar("Result")

_RESERVED = ("health", "static")  # paths of the app's health, and of Streamlit's files behind nginx
_MOST_THREADS = 8  # threads for one study's store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Site:
    """A study and the path of its address, such as "/refusals"; "" for the root. `alone` if the
    process serves no other study. `opening` is held while its files and store are opened.
    """

    folder: Path
    path: str = ""
    alone: bool = True
    opening: threading.Lock = field(default_factory=threading.Lock, compare=False)
    _limiter: CapacityLimiter = field(
        default_factory=lambda: CapacityLimiter(_MOST_THREADS), compare=False
    )

    async def work(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run a function that asks the store in one of a few threads for this study: a store that
        does not answer leaves threads to other studies.
        """
        return await to_thread.run_sync(function, *arguments, limiter=self._limiter)

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a thread."""
        return self._limiter.statistics().tasks_waiting


_sites: dict[str, Site] = {}


def add_study(folder: Path, path: str | None = None) -> Site:
    """Serve a study at its folder's name, or as the only one at a `path`; return its site."""
    site_path = f"/{folder.name}" if path is None else path
    _sites[site_path] = Site(folder.resolve(), site_path, alone=path is not None)
    return _sites[site_path]


def sites() -> list[Site]:
    """Return the studies that are served, in the order of their paths."""
    return [_sites[path] for path in sorted(_sites)]


def site_of(scope: Scope) -> Site | None:
    """Return the study that a request is for, or None."""
    first_part = scope["path"].removeprefix("/").partition("/")[0]
    return _sites.get(f"/{first_part}") or _sites.get("")  # the only study may be at the root


def study_path(name: str) -> str:
    """Return the path of a study's address, such as "/refusals", for its name, with or without
    slashes. Raises InputError if the name cannot be part of an address.
    """
    bare = name.strip("/")
    if not STUDY_NAME.fullmatch(bare) or bare.casefold() in _RESERVED:
        raise InputError(written("several.bad_name", name=name))
    return f"/{bare}"


def studies_in(folders: Iterable[Path]) -> list[Path]:
    """Return these folders, each folder of studies replaced by its studies. Folders whose names
    begin with a dot, which an interrupted run leaves behind, are left out.
    """
    studies: list[Path] = []
    for folder in folders:
        within = [] if (folder / FILE_NAME).exists() else sorted(folder.glob(f"[!.]*/{FILE_NAME}"))
        studies += [file.parent.resolve() for file in within] or [folder.resolve()]
    return studies


def check_names(names: Iterable[str]) -> None:
    """Raise InputError if a name cannot be part of an address, or two differ only by case."""
    seen: set[str] = set()
    for name in names:
        study_path(name)
        if name.casefold() in seen:
            raise InputError(written("several.same_name", name=name))
        seen.add(name.casefold())


# ---- host names, and addresses of visitors ------------------------------------------------------

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
MOST_BYTES = 1_000_000  # bytes of one message at most: `maxWidgetStateSize` in Streamlit's settings
MOST_PAGES = 60  # of a study open at once at one address: enough for a classroom, not for a flood

STUDY = b"x-evenhand-study"
"""Header with the study's path for Streamlit (`trustedUserHeaders`); clients' own are dropped."""

open_pages: Counter[tuple[str, str]] = Counter()
"""Number of open pages by the study's path and the visitor's address."""


def base_path(scope: Scope) -> str:
    """Return the path of the study that a request is for, such as "/refusals"; "" for the root."""
    site = site_of(scope)
    return site.path if site else ""


def present_site() -> Site | None:
    """Return the study whose page is being drawn, by the header `STUDY`; None outside the app."""
    return _sites.get(str(st.user.to_dict().get("study")))


def headers_of(scope: Scope, name: bytes) -> list[str]:
    """Return the values of every header of this name, in lower case."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def is_own_name(host: str, site: Site | None) -> bool:
    """Return True if a `Host` header, or the part after `//` of an origin, is a name of the study.
    Under any other name that leads here, a stranger's page could speak to the study as its own.
    """
    try:
        parts = urlsplit(f"//{host}")
        name, _port = parts.hostname, parts.port  # a port that is no number raises ValueError
    except ValueError:
        return False
    public_name = str(st.get_option("browser.serverAddress"))  # see `evenhand.annotate_app.command`
    names = {known.lower() for known in (*_LOCAL_NAMES, public_name, *_settings(site).hosts)}
    return parts.netloc == host and (name or "").rstrip(".") in names  # `host` alone: no path


def address_of(scope: Scope) -> str:
    """Return a visitor's address, to limit their use; "" (no limit) if a local proxy hides it."""
    peer = (scope.get("client") or ("",))[0]
    forwarded = headers_of(scope, b"x-forwarded-for")
    trusted = _settings(site_of(scope)).trusted_proxies
    if forwarded and peer in _LOCAL_NAMES and peer not in trusted:
        return ""
    return client_address(peer, forwarded, trusted)


def visitor_address() -> str:
    """Return the address of this page's visitor, or of an untrusted proxy, to limit logins."""
    peer = st.context.ip_address or "127.0.0.1"  # Streamlit: None for local clients
    forwarded = st.context.headers.get_all("X-Forwarded-For")
    return client_address(peer, forwarded, _settings(present_site()).trusted_proxies)


def client_address(peer: str, forwarded: Iterable[str], trusted: Collection[str]) -> str:
    """Return the address that a connection comes from: the peer's, unless it is a trusted proxy.

    `forwarded` are the `X-Forwarded-For` headers, to which each proxy appends its client's address.
    They are read from the end as long as the proxies are trusted: anyone can write the beginning.

    >>> client_address("10.0.0.1", ["1.2.3.4"], [])
    '10.0.0.1'
    >>> client_address("10.0.0.1", ["6.6.6.6, 1.2.3.4"], ["10.0.0.1"])
    '1.2.3.4'
    """
    address = peer
    hops = [hop.strip() for header in forwarded for hop in header.split(",")]
    with suppress(ValueError):
        while hops and address in trusted:
            ipaddress.ip_address(hops[-1])  # raises ValueError if it is no address
            address = hops.pop()
    return address


def is_secure(scope: Scope) -> bool:
    """Return True if the browser uses TLS, here or to a proxy (a false header harms its sender)."""
    return scope["scheme"] in ("https", "wss") or "https" in headers_of(scope, b"x-forwarded-proto")


def has_room(path: str, address: str) -> bool:
    """Return True if one more page of the study at a path may be open at a visitor's address."""
    return not address or open_pages[path, address] < MOST_PAGES  # "": an unknown address


def _settings(site: Site | None) -> SessionSettings:
    """Return `hosts` and `trusted_proxies`; none as long as they cannot be read."""
    try:
        return _session_settings(site.folder) if site else SessionSettings()
    except InputError:
        return SessionSettings()


@cache  # until a restart
def _session_settings(folder: Path) -> SessionSettings:
    return read_config(folder).session


# ---- a served study, as its files are now -------------------------------------------------------

_STORE_PATIENCE = 1.5  # seconds for the store; an annotator's page resends an answer only later
_MOST_RECENT = 4  # earlier states of the files that a process remembers
_Stamp = tuple[tuple[str, int, int, int], ...]  # of each file: name, time in ns, size, inode


@dataclass(frozen=True)
class Desks:
    """A study's desk, which hands out items, and its sessions; `state` identifies their files."""

    desk: AnnotationDesk
    sessions: Sessions
    state: str


class ServedStudy:
    """A study with one connection to its store, for all pages of this process. While its files
    contradict each other, as when somebody edits them, it stays as it was.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        study = open_study(folder, patience=_STORE_PATIENCE)
        self._stamp = _stamp(study)
        self._refused_at: tuple[int, int] | None = None  # the store's size, if files are refused
        self._desks = _desks(study, self._stamp)
        self._recent = {self._desks.state: self._desks}
        self._watch = start_watch(study)

    def desks(self, state: str = "") -> Desks:
        """Return the desk and the sessions of the study as its files are now, or, for a recent
        `state`, as they were when that page was drawn: an answer is stored for what was shown.
        """
        study = self._desks.desk.study
        # Files that were refused may have named a subject before its responses were imported.
        present = _stamp(study), study.store.size() if self._refused_at else None
        if present != (self._stamp, self._refused_at):
            with self._lock:
                if present != (self._stamp, self._refused_at):  # no other thread was first
                    self._update(present[0])
                    self._stamp = present[0]
        return self._recent.get(state, self._desks)

    def _update(self, stamp: _Stamp) -> None:
        """Take in the changed files, unless they contradict each other."""
        old = self._desks.desk.study
        size, self._refused_at = old.store.size(), None
        try:
            config = read_config(old.folder)
            if config.store != old.config.store:
                raise InputError("the study was moved to another store; start the app again")
            study = Study(old.folder, config, checked_rubrics(old.folder, config), old.store)
            check_settings(study)
            self._desks = _desks(study, stamp)
            earlier = dict(list(self._recent.items())[-_MOST_RECENT:])
            self._recent = earlier | {self._desks.state: self._desks}
        except InputError as error:
            self._refused_at = size
            _log.warning("the study's files have changed, and are not taken in: %s", error)
            return
        note_settings(study.store, (study.folder / FILE_NAME).read_text("utf-8-sig"))
        self._watch.set()
        self._watch = start_watch(study)


_served = cache(ServedStudy)


def served(site: Site) -> ServedStudy:
    """Return the served study of a site, opened once in this process."""
    with site.opening:
        return _served(site.folder)


def check_settings(study: Study) -> None:
    """Raise InputError where a page would, as study.toml does not fit the study or the program."""
    study.check_labelled_subjects()
    offered(study.config.annotation)
    SessionDesign(study)  # reads the attention checks, and the trial of a wording
    if study.config.prolific and study.config.prolific.signed_for:
        check_signing()


def _desks(study: Study, stamp: _Stamp) -> Desks:
    state = hashlib.sha256(repr(stamp).encode()).hexdigest()[:16]
    return Desks(AnnotationDesk(study), Sessions(study), state)


def _stamp(study: Study) -> _Stamp:
    """Return a value that changes whenever a file of the study is written, made or removed."""
    paths = {study.folder / name for name in files_of(study.folder, study.config)}
    return tuple(map(_file_stamp, sorted(paths | {*study.folder.glob("*.toml")})))


def _file_stamp(path: Path) -> tuple[str, int, int, int]:
    with suppress(OSError):
        status = path.stat()
        return path.name, status.st_mtime_ns, status.st_size, status.st_ino
    return path.name, 0, 0, 0


# ---- the watch: it excludes annotators that the study's rules stop ------------------------------
# Agreement is computed in a separate process, so that the serving process does not hold it and no
# annotator waits for it.


def start_watch(study: Study, every: float = 60.0) -> threading.Event:
    """Start a thread that checks the annotators, if labels came in, every `every` seconds; none in
    a study without rules that stop anyone. Setting the returned event ends the watch.
    """
    end = threading.Event()
    if study.config.quality.stop:
        threading.Thread(target=_watch, args=(study, every, end), daemon=True).start()
    return end


def _watch(study: Study, every: float, end: threading.Event) -> None:
    checked_version = ""
    while not end.wait(every):
        try:
            if (version := data_version(study)) != checked_version:
                checked_version = version
                run_apart(stop_flagged_in, study.folder.resolve())
        except (InputError, StoreAway) as error:
            _log.error("the annotators could not be checked: %s", error)
        except Exception:  # if the watch died, nobody would be stopped any more
            _log.exception("the annotators could not be checked")
