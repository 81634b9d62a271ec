"""The study's figures while people label: the report and the table of raters, made apart.

A process of its own, of lower priority, runs the very verbs that a person would run. So no
annotator waits while it counts, and the pages show the same rows as the report. What it made stays
until something new has come in.
"""

from __future__ import annotations

import json
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

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Figures", "LiveFigures"]

_HOME = Path(__file__).resolve().parents[2]
_RUN = (
    "import os, sys\n"
    "if hasattr(os, 'nice'): os.nice(10)\n"
    "from evenhand.main import main\n"
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

        return pd.read_csv(self.folder / "quality.csv", dtype={"rater_id": str}).fillna(
            {"flagged": "", "reason": "", "excluded": "", "leaning_at": ""}
        )


class LiveFigures:
    """The latest figures of one study, made anew on request. Safe under many threads."""

    def __init__(self, study_folder: Path) -> None:
        self._study = study_folder.resolve()
        self._home = Path(tempfile.mkdtemp(prefix="evenhand-lead-"))  # for this user only
        self._lock = threading.Lock()
        self._running = False
        self.latest: Figures | None = None

    @property
    def running(self) -> bool:
        return self._running

    def wanted(self, version: str) -> None:
        """See to it that there are figures for this state of the study; returns at once."""
        with self._lock:
            known = self.latest is not None and self.latest.version == version
            if known or self._running:
                return
            self._running = True
        threading.Thread(target=self._make, args=(version,), daemon=True).start()

    def _make(self, version: str) -> None:
        out = Path(tempfile.mkdtemp(dir=self._home))
        complaint = "the figures could not be made"
        try:
            done = subprocess.run(
                [sys.executable, "-c", _RUN, str(self._study), str(out)],
                env=os.environ | {"PYTHONPATH": str(_HOME)},
                capture_output=True,
                text=True,
                check=False,
            )
            complaint = ""
            if done.returncode:
                lines = done.stderr.strip().splitlines()
                said = lines[-1].partition(": ")[2] if lines else ""
                complaint = said or "the figures could not be made"
        finally:
            before, self.latest = self.latest, Figures(version, out, complaint)
            self._running = False
        if before is not None:
            shutil.rmtree(before.folder, ignore_errors=True)
