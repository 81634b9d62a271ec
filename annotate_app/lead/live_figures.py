"""The study's figures while people label: the report and the table of raters, made apart.

A process of its own, of lower priority, makes them (`evenhand.reporting.live_figures`). So no
annotator waits while it counts, and the pages show the same rows as the report. What it made stays
until something new has come in.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from evenhand.analysis.raters.quality import QUALITY_COLUMNS
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.errors import InputError
from evenhand.reporting.live_figures import QUALITY_FILE, study_figures
from evenhand.reporting.workers import apart
from evenhand.study import Study
from evenhand.study.lead.progress import data_version

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)

_FAILED = "the figures could not be made; the app's log says why"
_TEXTS = ("rater_id", "leaning_at", "flagged", "reason", "excluded")


def latest_figures(study: Study) -> LiveFigures | None:
    """The latest figures; newer ones are on their way where something has come in since.

    Says what there is to say of their age; None while there are none.
    """
    maker = _maker(str(study.folder.resolve()))
    version = data_version(study)
    maker.wanted(version)
    found = maker.latest
    if found is None:
        st.text("Computing the figures; they will appear here.")
        return None
    if found.complaint:
        show_complaint(found.complaint)
        return None
    current = found.version == version
    st.text("With every label so far." if current else "New labels have come in; computing again.")
    return found


@dataclass(frozen=True)
class LiveFigures:
    """The figures of one state of the study, in a folder of its own."""

    version: str
    folder: Path
    complaint: str = ""
    """Why there are no figures, in one sentence; else empty."""

    @cached_property
    def results(self) -> pd.DataFrame:
        import pandas as pd

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
        import pandas as pd

        # A rater may be called NA: only numbers can be missing.
        numbers = [name for name in QUALITY_COLUMNS if name not in _TEXTS]
        return pd.read_csv(
            self.folder / QUALITY_FILE,
            dtype=dict.fromkeys(_TEXTS, str),
            keep_default_na=False,
            na_values={name: [""] for name in numbers},
        )


class FiguresMaker:
    """Makes the figures of one study anew on request. Safe under many threads."""

    def __init__(self, study_folder: Path) -> None:
        self._study = study_folder.resolve()
        self._home = tempfile.TemporaryDirectory(prefix="evenhand-lead-")  # for this user only
        self._lock = threading.Lock()
        self._running = False
        self._former: LiveFigures | None = None
        self.latest: LiveFigures | None = None

    def wanted(self, version: str) -> None:
        """See to it that there are figures for this state of the study; returns at once."""
        with self._lock:
            known = self.latest is not None and self.latest.version == version
            if known or self._running:
                return
            self._running = True
        threading.Thread(target=self._make, args=(version,), daemon=True).start()

    def _make(self, version: str) -> None:
        out = Path(tempfile.mkdtemp(dir=self._home.name))
        complaint = ""
        try:
            apart(study_figures, self._study, out)
        except InputError as error:
            complaint = str(error)
        except Exception:
            _log.exception(_FAILED)
            complaint = _FAILED
        # Somebody may be reading the last ones; those before them are out of sight.
        if self._former is not None:
            shutil.rmtree(self._former.folder, ignore_errors=True)
        self._former, self.latest = self.latest, LiveFigures(version, out, complaint)
        self._running = False


@st.cache_resource(show_spinner=False)
def _maker(folder: str) -> FiguresMaker:
    """One for each study of this process."""
    return FiguresMaker(Path(folder))
