"""The study's counts and figures while people label: the report and the table of raters, made
apart.

A process of its own, of lower priority, makes them (`evenhand.reporting.report`). So no
annotator waits while it counts, and the pages show the same rows as the report. Its figures are
kept until something new has come in.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from evenhand.analysis.raters.quality import QUALITY_COLUMNS
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
    found: Counted = _PROCESS.ask(counted_of, study.folder.resolve(), count, arguments)
    return found


def latest(study: Study, count: Callable[[Study], Counted]) -> Counted:
    """Return `count(study)`, counted once for all viewers, and again when new data has come in or
    the minute is over: leases run out although nothing comes in.
    """
    name, minute = f"{count.__module__}.{count.__qualname__}", int(time.time() // 60)
    found: Counted = _kept(study, count, name, str(study.folder), data_version(study), minute)
    return found


@st.cache_data(max_entries=20, show_spinner=False)
def _kept(
    _study: Study, _count: Callable[[Study], Any], name: str, folder: str, version: str, minute: int
) -> Any:
    return counted(_study, _count)


def stand_by() -> None:
    """Start the process ahead of its use, when somebody logs in who will need it."""
    _PROCESS.prepare()


_log = logging.getLogger(__name__)

_FAILED = "the figures could not be made; the app's log says why"
_TEXTS = ("rater_id", "leaning_at", "flagged", "reason", "excluded")


def latest_figures(study: Study) -> LiveFigures | None:
    """The latest figures; newer ones are being made if something has come in since.

    Shows their age, and the stage that the newer ones are in; None while there are none.
    """
    maker = _maker(str(study.folder.resolve()))
    version = data_version(study)
    maker.wanted(version)
    found = maker.kept
    if maker.stage:
        seconds = int(time.monotonic() - maker.since)
        st.text(written("lead.making", stage=maker.stage, seconds=seconds))
    elif maker.latest and maker.latest.complaint:
        show_complaint(maker.latest.complaint)
    if found is None:
        return None
    is_current = found.version == version
    st.text(written("lead.current" if is_current else "lead.older", at=found.made_at))
    return found


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
        return pd.read_csv(
            self.folder / "results.csv",
            keep_default_na=False,
            na_values={name: [""] for name in ("estimate", "low", "high")},
        )

    @cached_property
    def report(self) -> dict[str, Any]:
        """report.json: the verdicts, the notes, the rubrics' titles."""
        found: dict[str, Any] = json.loads((self.folder / "report.json").read_text("utf-8"))
        return found

    @cached_property
    def quality(self) -> pd.DataFrame:
        # A rater may be called NA: only numbers can be missing.
        numbers = [name for name in QUALITY_COLUMNS if name not in _TEXTS]
        return pd.read_csv(
            self.folder / QUALITY_FILE,
            dtype=dict.fromkeys(_TEXTS, str),
            keep_default_na=False,
            na_values={name: [""] for name in numbers},
        )

    @cached_property
    def forests(self) -> list[dict[str, str]]:
        """The report's forest plots: `svg`, `alt`, `caption`, `note`."""
        found: list[dict[str, str]] = json.loads((self.folder / FORESTS_FILE).read_text("utf-8"))
        return found

    @cached_property
    def over_time(self) -> pd.DataFrame:
        """People's agreement as their labels came in (`analysis.raters.pace`)."""
        return pd.read_csv(
            self.folder / OVER_TIME_FILE, dtype={"rubric": str}, keep_default_na=False,
            na_values={name: [""] for name in ("estimate", "low", "high")},
        )  # fmt: skip


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
            known = self.latest is not None and self.latest.version == version
            if known or self._running:
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


@cache
def _maker(folder: str) -> FiguresMaker:
    """Return the maker for a study, one for each study of this process."""
    return FiguresMaker(Path(folder))
