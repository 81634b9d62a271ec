"""Studies with labels and grades, a store of version 0.1.0, and runs that are killed."""

import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from evenhand.rubrics import load_rubric
from evenhand.study import Study, keeping
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.store.grades import GradeAttempt
from harness.postgresql import Postgresql
from harness.studies import work_through

ROOT = Path(__file__).parents[3]
VERSION_0_1_0 = ROOT / "tests" / "study" / "store" / "version_0_1_0"
"""A study as evenhand 0.1.0 wrote it: 12 labels by two annotators, 6 grades, one exclusion; the
store as SQL. Its responses are synthetic."""

KILLED = """
import os, signal, sys
from pathlib import Path
import evenhand.study.keeping as room
room.{at} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
room.{run}(Path(sys.argv[1]), *map({cast}, sys.argv[2:]))
"""


@pytest.fixture
def labelled(make_study) -> Callable[..., Study]:
    """labelled(**fields of StudyPlan) -> an open study with labels of two annotators, and
    grades.
    """

    def make(**fields: object) -> Study:
        study = make_study(**{"rubrics": [load_rubric("refusal")], **fields})
        desk = AnnotationDesk(study)
        for rater in ("ann", "zoë"):
            work_through(desk, rater, 7, seconds=0.1, options=3)
        unit, other = study.rubric_units(study.rubrics["refusal"])[:2]
        grade = {"rater_id": "g", "rubric": "refusal", "rubric_hash": study.rubrics["refusal"].hash}
        probabilities = {"4": 0.1 + 0.2, "5": 1 - (0.1 + 0.2)}
        study.store.add_grades(
            [
                GradeAttempt(
                    **grade, unit_id=unit, label="4", p_positive=1 / 3, probabilities=probabilities
                ),
                GradeAttempt(**grade, unit_id=other, unscored_reason="refusal"),
            ]
        )
        return study

    return make


@pytest.fixture(scope="session")
def write_old_study() -> Callable[[Path], Path]:
    """write_old_study(folder) -> that folder, with a study of version 0.1.0."""

    def write(folder: Path) -> Path:
        shutil.copytree(VERSION_0_1_0, folder)
        sql = folder / "store.sql"
        with closing(sqlite3.connect(folder / "study.db")) as connection:
            connection.executescript(sql.read_text("utf-8"))
        sql.unlink()
        return folder

    return write


@pytest.fixture
def killed() -> Callable[..., None]:
    """killed(run, at, *given): run(*given) of `keeping` in a process of its own that is killed
    where it calls `at`."""

    def run(run: str, at: str, *given: object) -> None:
        cast = "Path" if isinstance(given[-1], Path) else "str"
        script = KILLED.format(run=run, at=at, cast=cast)
        command = [sys.executable, "-P", "-c", script, *map(str, given)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert ended.returncode == -signal.SIGKILL, ended.stderr

    return run


class Hanging(Postgresql):
    """A server that hangs when it is told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._patch = patch

    def hangs(self, module: ModuleType, at: str = "") -> None:
        """Hang where this module calls `at`, or now."""
        self._patch.setattr(keeping, "SILENT", 2.0)
        if not at:
            return self.freeze()
        run = getattr(module, at)

        def hang(*given: object) -> object:
            self.freeze()
            return run(*given)

        return self._patch.setattr(module, at, hang)

    def ends(self, run: Callable[[], object], error: object, match: str = "") -> None:
        """Check that this ends in such an error before 15 seconds are over."""
        begun = time.monotonic()
        with pytest.raises(error, match=match):
            run()
        assert time.monotonic() - begun < 15

    def goes_on(self) -> None:
        self.thaw()
        self._patch.undo()


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    server = Hanging(monkeypatch)
    yield server
    server.thaw()
    server.end()
