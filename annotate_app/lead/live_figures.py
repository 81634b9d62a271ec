"""The study's counts and figures while people label: the report and the table of raters.

A separate process of lower priority makes them (`evenhand.reporting.report`). So no annotator
waits while it counts, and the pages show the same rows as the report. Its figures are kept until
something new has come in.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from evenhand.analysis.raters import QUALITY_COLUMNS
from evenhand.annotate_app.drawn import show_complaint
from evenhand.errors import InputError, StoreAway
from evenhand.lazy import pd
from evenhand.reporting.report import (
    FORESTS_FILE,
    OVER_TIME_FILE,
    QUALITY_FILE,
    counted_of,
    study_figures,
)
from evenhand.reporting.workers import StandBy, apart
from evenhand.study import Study
from evenhand.study.lead.progress import data_version
from evenhand.texts import written

# Counts for the lead's pages, made outside the process that serves the annotators. With 100,000
# labels a table takes a second to count, and Python counts one thing at a time: in the serving
# process everyone would wait. So one further process of low priority does it, for all who look,
# with a connection of its own to the store.

Counted = TypeVar("Counted")
_PROCESS = StandBy()
"""One for this process of the app, which no visitor's "clear the caches" ends."""


def counted(study: Study, count: Callable[..., Counted], *arguments: object) -> Counted:
    """Return `count(study, *arguments)` for the present data. `count` is a function of a module
    that has nothing to do with pages: the other process loads it.
    """
    result: Counted = _PROCESS.ask(counted_of, study.folder.resolve(), count, arguments)
    return result


def latest(study: Study, count: Callable[[Study], Counted]) -> Counted:
    """Return `count(study)`, counted once for all viewers, and again when new data has come in or
    the minute is over: leases run out although nothing comes in.
    """
    name, minute = f"{count.__module__}.{count.__qualname__}", int(time.time() // 60)
    result: Counted = _kept(study, count, name, str(study.folder), data_version(study), minute)
    return result


@st.cache_data(max_entries=20, show_spinner=False)
def _kept(
    _study: Study, _count: Callable[[Study], Any], name: str, folder: str, version: str, minute: int
) -> Any:
    return counted(_study, _count)


stand_by = _PROCESS.prepare
"""Starts the process ahead of its use, when somebody logs in who will need it."""


_log = logging.getLogger(__name__)

_FAILED = "the figures could not be made; the app's log says why"
_TEXTS = ("rater_id", "leaning_at", "flagged", "reason", "excluded")
_ESTIMATE = ("estimate", "low", "high")


def latest_figures(study: Study) -> LiveFigures | None:
    """The latest figures; newer ones are being made if something has come in since.

    Shows their age, and the stage that the newer ones are in; None while there are none.
    """
    maker = _maker(study.folder.resolve())
    version = data_version(study)
    maker.wanted(version)
    figures = maker.kept
    if maker.stage:
        seconds = int(time.monotonic() - maker.since)
        st.text(written("lead.making", stage=maker.stage, seconds=seconds))
    elif maker.latest and maker.latest.complaint:
        show_complaint(maker.latest.complaint)
    if figures is not None:
        is_current = figures.version == version
        st.text(written("lead.current" if is_current else "lead.older", at=figures.made_at))
    return figures


@dataclass(frozen=True)
class LiveFigures:
    """The figures of one state of the study, in a folder of its own."""

    version: str
    folder: Path
    complaint: str = ""
    """Why there are no figures, in one sentence; else empty."""
    made_at: str = ""
    """When they were begun (UTC, to the minute): labels that came later are not in them."""

    @cached_property
    def results(self) -> pd.DataFrame:
        return self._table("results.csv", _ESTIMATE)

    @cached_property
    def report(self) -> Any:
        """report.json: the verdicts, the notes, the rubrics' titles."""
        return json.loads((self.folder / "report.json").read_text("utf-8"))

    @cached_property
    def quality(self) -> pd.DataFrame:
        numbers = [name for name in QUALITY_COLUMNS if name not in _TEXTS]
        return self._table(QUALITY_FILE, numbers, _TEXTS)

    @cached_property
    def forests(self) -> Any:
        """The report's forest plots, a list of `svg`, `alt`, `caption`, `note`."""
        return json.loads((self.folder / FORESTS_FILE).read_text("utf-8"))

    @cached_property
    def over_time(self) -> pd.DataFrame:
        """People's agreement as their labels came in (`analysis.raters`)."""
        return self._table(OVER_TIME_FILE, _ESTIMATE, ("rubric",))

    def _table(self, name: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> pd.DataFrame:
        return pd.read_csv(
            self.folder / name,
            dtype=dict.fromkeys(texts, str),
            keep_default_na=False,  # a rater may be called NA: only numbers can be missing
            na_values={column: [""] for column in numbers},
        )


class FiguresMaker:
    """Makes the figures of one study on request. Safe under many threads.

    `latest` is the last attempt, `kept` the last that gave figures. While one is being made,
    `stage` names the present step, and it began at `since` (`time.monotonic`).
    """

    def __init__(self, study_folder: Path) -> None:
        self._study = study_folder.resolve()
        self._home = tempfile.TemporaryDirectory(prefix="evenhand-lead-")  # for this user only
        self._lock = threading.Lock()
        self._running = False
        self._former: LiveFigures | None = None
        self.latest: LiveFigures | None = None
        self.kept: LiveFigures | None = None
        self.stage = ""
        self.since = 0.0

    def wanted(self, version: str) -> None:
        """Request figures for this state of the study; returns at once."""
        with self._lock:
            if self._running or (self.latest and self.latest.version == version):
                return
            self._running = True
            self._tell(written("lead.stage_starting"))
            self.since = time.monotonic()
        threading.Thread(target=self._make, args=(version,), daemon=True).start()

    def _tell(self, stage: str) -> None:
        self.stage = stage

    def _make(self, version: str) -> None:
        out = Path(tempfile.mkdtemp(dir=self._home.name))
        complaint, at = "", datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        try:
            apart(study_figures, self._study, out, on_stage=self._tell)
        except InputError as error:
            complaint = str(error)
        except StoreAway as error:
            _log.warning("%s: %s", _FAILED, error)
            complaint, version = _FAILED, ""  # so that they are tried again
        except Exception:
            _log.exception(_FAILED)
            complaint = _FAILED
        self.latest = LiveFigures(version, out, complaint, at)
        if complaint:
            shutil.rmtree(out, ignore_errors=True)
        else:
            # Somebody may be reading the last ones; those before them are out of sight.
            if self._former is not None:
                shutil.rmtree(self._former.folder, ignore_errors=True)
            self._former, self.kept = self.kept, self.latest
        self.stage, self._running = "", False


_maker = cache(FiguresMaker)
"""The maker for the study in a folder, one for each study of this process."""
