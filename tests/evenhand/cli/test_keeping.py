"""A study that was backed up and restored, or moved, says the same in its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.reporting.analysing import analyse_study
from evenhand.study import Study, open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.settings.study_toml import change_config
from harness.studies import work_through
from tests.evenhand.cli.commands import Run


@pytest.fixture
def study(make_study, run: Run) -> Study:
    """Six pairs labelled by three people and graded offline; closed."""
    study = make_study(subjects=("s1",), stratify=(), rubrics=["refusal"])
    desk = AnnotationDesk(study)
    for rater in ("ann", "ben", "cem"):
        work_through(desk, rater, seconds=2.0, options=5)
    study.close()
    change_config(study.folder, {"analysis": {"resamples": 100}})
    assert run("grade", study.folder, "--grader", "baseline:lexical").returncode == 0
    return study


def results(folder: Path) -> list[str]:
    """What `evenhand report` has in results.csv, row by row."""
    with open_study(folder) as study:
        return [repr(row) for row in analyse_study(study, verify=False)[0].rows]


@pytest.mark.slow
def test_a_restored_and_a_moved_study_have_the_same_report(
    study: Study, run: Run, tmp_path: Path
) -> None:
    done = run("backup", study.folder, tmp_path / "b.zip")
    with open_study(study.folder) as now:
        kinds = now.ratings()["rater_kind"].value_counts()
    assert f"Labels: {kinds['human']}; annotators: 3; grades: {kinds['model']};" in done.stdout
    restored = run("restore", tmp_path / "b.zip", tmp_path / "again")
    assert done.stdout.splitlines()[1] == restored.stdout.splitlines()[1]
    moved = run("store", "copy", study.folder, "--to", "moved.db")
    assert "every table's count and checksum are the same" in moved.stdout
    first, second = results(study.folder), results(tmp_path / "again")
    assert first == second
    assert len(first) > 100


@pytest.mark.slow
def test_what_is_wrong_is_one_sentence(study: Study, run: Run, tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_text("no zip")
    for words, says in (
        (("restore", tmp_path / "b.zip", tmp_path / "again"), "is no backup of evenhand"),
        (("backup", study.folder, tmp_path / "b.zip"), "exists already"),
        (("backup", tmp_path, tmp_path / "c.zip"), "is not a study"),
        (("backup", study.folder, "--to", "s3://me:secret@b/c"), "kept in a folder, not at an"),
        (("restore", "s3://b/c.zip", tmp_path / "again"), "kept in a folder, not at an address"),
        (("store", "copy", study.folder, "--to", "study.db"), "where the study's store is already"),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
        assert "secret" not in done.stderr
    done = run("store", "upgrade", study.folder)
    assert done.returncode == 0
    assert "the newest; nothing was changed" in done.stdout
