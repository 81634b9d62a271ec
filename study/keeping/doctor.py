"""Health check of a study that is served, as far as its folder and store show it."""

from __future__ import annotations

import platform
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

import sqlalchemy as sa

from evenhand.errors import InputError, StoreAway
from evenhand.study.settings.study_toml import SessionSettings, read_config
from evenhand.study.store.store import Store
from evenhand.study.tables.files import HAS_MODES, user_name
from evenhand.study.workspace import Study, open_study, store_state
from evenhand.texts import written

OLD_HOURS = 50.0
"""Older than a night's backup that one night has missed."""
_OLDEST_SERVER = 14
_NAMED = 3


@dataclass(frozen=True)
class Finding:
    """The result of one check: a sentence, with what to do where it is not well."""

    is_well: bool
    says: str


def examine(folder: Path, url: str = "") -> list[Finding]:
    """All there is to say about a study that people reach at `url`; "" where that is not known.

    Raises InputError where the folder holds no study.
    """
    config = read_config(folder)
    # First: to open a study closes its files to others.
    found = [*_files(folder), *_ways_in(config.session, url)]
    try:
        with open_study(folder, patience=2.0) as study:
            kind = study.store.engine.dialect.name
            return [_well("opens", kind=kind), *found, *_store(study), _versions(study.store)]
    except (InputError, StoreAway) as error:
        return [_ill("not_open", reason=error), *found]


def serving_notes(study: Study, url: str) -> list[str]:
    """Return what should be repaired in an open study that is about to be served at `url`."""
    found = [*_files(study.folder), *_ways_in(study.config.session, url), *_store(study)]
    return [each.says for each in found if not each.is_well]


def _ways_in(session: SessionSettings, url: str) -> Iterator[Finding]:
    if session.entry == "open":
        yield _ill("open_entry")
    else:
        yield _well("entry", entry=session.entry)
    if session.trusted_proxies:
        yield _well("proxies", proxies=", ".join(session.trusted_proxies))
    else:
        yield _ill("no_proxies")
    address = urlsplit(url)
    names = [name for name in (address.hostname, *session.hosts) if name]
    yield _well("hosts", hosts=", ".join(names)) if names else _ill("no_hosts")
    if url and address.scheme != "https":
        yield _ill("no_tls", url=url)


def _files(folder: Path) -> Iterator[Finding]:
    if not HAS_MODES:
        return
    folder = folder.resolve()
    owner = folder.stat().st_uid
    others, loose = [], []
    for path in (folder, *folder.rglob("*")):
        try:
            found = path.lstat()
        except OSError:  # gone meanwhile, as a temporary file is
            continue
        name = str(path.relative_to(folder.parent))
        if found.st_uid != owner:
            others.append(name)
        if stat.S_IMODE(found.st_mode) & 0o077 and not stat.S_ISLNK(found.st_mode):
            loose.append(name)
    if others:
        yield _ill("other_owner", files=_some(others), owner=user_name(owner))
    if loose:
        yield _ill("loose_modes", files=_some(loose))
    if not others and not loose:
        yield _well("modes")


def _store(study: Study) -> Iterator[Finding]:
    state = store_state(study)
    yield _well("writes") if state.write else _ill("no_write")
    if missing := study.missing_images():
        yield _ill("missing_images", count=len(missing), first=missing[0])
    hours = state.hours_since_backup
    if hours is None:
        yield _ill("no_backup")
    elif hours > OLD_HOURS:
        yield _ill("old_backup", hours=hours)
    else:
        yield _well("backup", hours=hours)


def _versions(store: Store) -> Finding:
    database = f"SQLite {sqlite3.sqlite_version}"
    if store.engine.dialect.name == "postgresql":
        server = str(store.values(sa.text("SHOW server_version"))[0])
        database = f"PostgreSQL {server}"
        if int(server.partition(".")[0]) < _OLDEST_SERVER:
            return _ill("old_server", version=server)
    return _well(
        "versions",
        evenhand=_installed("evenhand"),
        streamlit=_installed("streamlit"),
        python=platform.python_version(),
        database=database,
    )


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "?"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(sorted(names)[:_NAMED]) + more


def _well(name: str, **fields: object) -> Finding:
    return Finding(True, written(f"doctor.{name}", **fields))


def _ill(name: str, **fields: object) -> Finding:
    return Finding(False, written(f"doctor.{name}", **fields))
