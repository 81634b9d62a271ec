"""A study that this process serves, as its files are now: a change of them, on a lead's page or
by hand, is in force at the next page that is drawn, in every process that serves the study.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evenhand.annotate_app.sites import Site
from evenhand.annotate_app.watch import start_watch
from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.desk.claims import AttentionChecks
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.study_toml import FILE_NAME, read_config
from evenhand.study.store.logs.decisions import note_settings
from evenhand.study.workspace import files_of, rubrics_in_step

_PATIENCE = 1.5  # seconds to wait for the store: less than the panel waits before it sends again

_MOST_KEPT = 4
"""Earlier states of the files that a process remembers."""

_Stamp = tuple[tuple[str, int, int, int], ...]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Desks:
    """The desk and the sessions of a study, and the name of the state of its files."""

    desk: AnnotationDesk
    sessions: Sessions
    drawn: str


def served(site: Site) -> ServedStudy:
    """Return this study, opened once, with its one connection, in this process."""
    with site.opening:
        return _served(site.folder)


class ServedStudy:
    """A study with its one connection to the store, for all pages of this process.

    Where the files do not hold together, as while somebody edits them, the study stays as it was.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        study = open_study(folder, patience=_PATIENCE)
        self._seen = _stamp(study)
        self._desks = _desks(study, self._seen)
        self._kept = {self._desks.drawn: self._desks}
        self._watch = start_watch(study)

    def desks(self, drawn: str = "") -> Desks:
        """Return the desk and the sessions of the study as its files are now; or as they were when
        a page was `drawn`, while this is remembered: what was shown is answered as it was shown.
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
            study = Study(old.folder, config, rubrics_in_step(old.folder, config), old.store)
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


def _desks(study: Study, stamp: _Stamp) -> Desks:
    drawn = hashlib.sha256(repr(stamp).encode()).hexdigest()[:16]
    return Desks(AnnotationDesk(study), Sessions(study), drawn)


def _stamp(study: Study) -> _Stamp:
    """Changes whenever one of the study's files is written, made or removed, or another that its
    settings may name by now.
    """
    named = {study.folder / each for each in files_of(study.folder, study.config)}
    return tuple(map(_of_file, sorted(named | {*study.folder.glob("*.toml")})))


def _of_file(path: Path) -> tuple[str, int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return path.name, 0, 0, 0
    return path.name, found.st_mtime_ns, found.st_size, found.st_ino
