"""The study's figures while people label: the report and the table of raters, made apart.

A process of its own, of lower priority, runs the very verbs that a person would run. So no
annotator waits while it counts, and the pages show the same rows as the report. What it made stays
until something new has come in.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.analysis.raters.quality import QUALITY_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Figures", "LiveFigures"]

_log = logging.getLogger(__name__)

_BAD_INPUT = 2
"""The exit code of a verb that says in one sentence what is wrong."""
_FAILED = "the figures could not be made; the app's log says why"
_TEXTS = ("rater_id", "leaning_at", "flagged", "reason", "excluded")
_HOME = Path(__file__).resolve().parents[2]
_RUN = (
    "import os, sys\n"
    "if hasattr(os, 'nice'): os.nice(10)\n"
    "from evenhand.cli.main import main\n"
    "folder, out = sys.argv[1:]\n"
    "made = main(['quality', folder, '--out', f'{out}/quality.csv'])\n"
    "sys.exit(made or main(['report', folder, '--out', out]))\n"
)


@dataclass(frozen=True)
class Figures:
    """What the verbs wrote for one state of the study, in a folder of its own."""

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
            self.folder / "quality.csv",
            dtype=dict.fromkeys(_TEXTS, str),
            keep_default_na=False,
            na_values={name: [""] for name in numbers},
        )


class LiveFigures:
    """The latest figures of one study, made anew on request. Safe under many threads."""

    def __init__(self, study_folder: Path) -> None:
        self._study = study_folder.resolve()
        self._home = tempfile.TemporaryDirectory(prefix="evenhand-lead-")  # for this user only
        self._lock = threading.Lock()
        self._running = False
        self._former: Figures | None = None
        self.latest: Figures | None = None

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
        complaint = _FAILED
        try:
            complaint = self._run(out)
        finally:
            # Somebody may be reading the last ones; those before them are out of sight.
            if self._former is not None:
                shutil.rmtree(self._former.folder, ignore_errors=True)
            self._former, self.latest = self.latest, Figures(version, out, complaint)
            self._running = False

    def _run(self, out: Path) -> str:
        """Run the verbs; what is wrong, or nothing."""
        done = subprocess.run(
            [sys.executable, "-c", _RUN, str(self._study), str(out)],
            env=os.environ | {"PYTHONPATH": str(_HOME)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return ""
        if done.returncode == _BAD_INPUT:
            return done.stderr.strip().splitlines()[-1].partition(": ")[2]
        _log.error("the figures could not be made: %s", done.stderr.strip())
        return _FAILED
