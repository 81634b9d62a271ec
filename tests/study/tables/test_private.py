"""Nobody else reads a study: not its store, its log, its settings, its reports."""

import errno
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.study import open_study
from evenhand.study.tables.files import tighten
from harness.studies import write_pairs, write_responses

pytestmark = pytest.mark.slow


@pytest.fixture
def loose() -> Iterator[None]:
    """As on many a server: group and others may do everything."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    every = [folder, *folder.rglob("*")]
    return [str(each) for each in every if stat.S_IMODE(each.lstat().st_mode) & 0o077]


@pytest.fixture
def study(tmp_path: Path, loose: None) -> Path:
    folder, pairs = tmp_path / "study", write_pairs(tmp_path / "pairs.csv")
    responses = write_responses(tmp_path / "responses.jsonl")
    assert main(["new", str(folder), "--pairs", str(pairs), "--sample", "4"]) == 0
    assert main(["import", str(folder), str(responses)]) == 0
    return folder


def test_under_a_loose_umask_all_is_private(study):
    with open_study(study) as opened:
        opened.store.subjects()
        assert (study / "study.db-wal").exists(), "the log is there while the store is open"
        assert open_to_others(study) == []
    assert main(["grade", str(study), "--grader", "baseline:lexical"]) == 0
    assert main(["report", str(study), "--figures", str(study / "figures")]) == 0
    assert main(["export", str(study), "--out", str(study / "ratings.csv")]) == 0
    assert (study / "report" / "report.html").exists()
    assert open_to_others(study) == []


def test_one_that_others_could_read_is_closed_with_a_note(study, caplog):
    outside = study.with_name("elsewhere.csv")
    outside.write_text("mine")
    (study / "link.csv").symlink_to(outside)
    (study / "study.db").chmod(0o644)
    study.chmod(0o755)
    with caplog.at_level(logging.WARNING), open_study(study):
        pass
    assert f"others could read {study}; only you can from now on" in caplog.text
    assert open_to_others(study) == [str(study / "link.csv")]
    assert stat.S_IMODE(outside.stat().st_mode) == 0o666, "what a link leads to is left alone"
    caplog.clear()
    with open_study(study):
        pass
    assert not caplog.records


def test_a_study_behind_a_link_is_closed_as_well(study):
    study.chmod(0o755)
    link = study.with_name("linked")
    link.symlink_to(study)
    assert tighten(link) == 1
    assert open_to_others(study) == []


def test_what_cannot_be_closed_is_left_as_it_is(study, monkeypatch):
    study.chmod(0o755)

    def chmod(path: Path, mode: int) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "chmod", chmod)  # as on a disk that can only be read
    assert tighten(study) == 0
