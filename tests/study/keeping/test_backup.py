"""A backup is the whole study at one moment, or there is none; what is restored is the same."""

from __future__ import annotations

import shutil
import stat
import threading
import time
from pathlib import Path

import pytest

from evenhand.errors import InputError, StoreAway
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.keeping import backup, copying
from evenhand.study.keeping.backup import backup_study, keep_backups, restore_study, unpack
from evenhand.study.keeping.copying import found_tables, states
from evenhand.study.keeping.moving import move_store
from harness.postgresql import Postgresql


def state_of(study):
    with study.store.read() as connection:
        return states(connection, found_tables(connection))


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_what_is_restored_is_the_study(
    database: str, labelled, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = {} if database == "sqlite" else {"store": request.getfixturevalue("new_postgresql")()}
    study = labelled(**url)
    (study.folder / "practice.toml").write_text("# named in study.toml")
    (study.folder / "report").mkdir()
    (study.folder / "report" / "report.md").write_text("a report")
    file, before = tmp_path / "study.zip", state_of(study)
    contents = backup_study(study.folder, file)
    assert (contents.labels, contents.raters) == (14, 2)
    assert (contents.grades, contents.graders) == (2, 1)
    assert (contents.pairs, contents.responses) == (6, 24)
    assert restore_study(file, tmp_path / "again") == contents
    with open_study(tmp_path / "again") as again:
        assert again.config == study.config.model_copy(update={"store": "study.db"})
        assert again.ratings().equals(study.ratings())
        assert state_of(again) == before
        desk = AnnotationDesk(again)
        assert desk.submit("ann", desk.next_task("ann").task_id, "on", "1").status == "stored"
    assert (tmp_path / "again" / "practice.toml").read_text() == "# named in study.toml"
    assert (tmp_path / "again" / "report" / "report.md").read_text() == "a report"
    assert modes(tmp_path / "again") == {0o600}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("at", [pytest.param("before", marks=pytest.mark.thorough), "within"])
def test_a_backup_of_a_database_that_hangs_ends_in_a_sentence(
    at: str, labelled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, server = labelled(), Postgresql()
    study.close()
    monkeypatch.setattr(backup, "SILENT", 2.0)
    to = tmp_path / "backups"
    to.mkdir()
    try:
        move_store(study.folder, server.new_database())
        if at == "before":
            server.freeze()
        else:
            copy = copying.copy_tables

            def hang(*given):
                server.freeze()
                return copy(*given)

            monkeypatch.setattr(copying, "copy_tables", hang)
        begun = time.monotonic()
        with pytest.raises(StoreAway):
            keep_backups(study.folder, to, 14, verify=True)
        assert time.monotonic() - begun < 15
        assert list(to.iterdir()) == []
        server.thaw()
        monkeypatch.undo()
        assert keep_backups(study.folder, to, 14, verify=True).contents.labels == 14
    finally:
        server.thaw()
        server.end()


@pytest.mark.slow
def test_a_backup_names_no_database(labelled, new_postgresql, tmp_path: Path) -> None:
    study = labelled(store=new_postgresql())
    backup_study(study.folder, tmp_path / "b.zip")
    unpack(tmp_path / "b.zip", tmp_path)
    settings = (tmp_path / "study.toml").read_text()
    assert 'store = "study.db"' in settings
    assert "postgresql" not in settings


@pytest.mark.slow
def test_people_label_while_it_is_made(labelled, tmp_path: Path) -> None:
    study = labelled(pairs=30)
    acknowledged, over = [], threading.Event()

    def label() -> None:
        with open_study(study.folder) as own:
            desk = AnnotationDesk(own)
            while not over.is_set() and (task := desk.next_task("eva")):
                desk.submit("eva", task.task_id, f"e{len(acknowledged)}", "1", 0.1)
                acknowledged.append(task.task_id)

    person = threading.Thread(target=label)
    person.start()
    try:
        for n in range(3):
            before = len(acknowledged)
            contents = backup_study(study.folder, tmp_path / f"{n}.zip")
            assert 14 + before <= contents.labels <= 14 + len(acknowledged) + 1
    finally:
        over.set()
        person.join()
    assert acknowledged
    assert restore_study(tmp_path / "2.zip", tmp_path / "again") == contents


def test_a_copy_of_the_file_is_no_backup(labelled, tmp_path: Path) -> None:
    """Why there is a verb: the last labels are in the log beside the store."""
    study = labelled()
    copied = tmp_path / "copied"
    copied.mkdir()
    shutil.copytree(study.folder / "rubrics", copied / "rubrics")
    for name in ("study.toml", "study.db"):
        shutil.copy(study.folder / name, copied / name)
    with open_study(copied) as lost:
        assert len(lost.ratings()) == 0
    backup_study(study.folder, tmp_path / "b.zip")
    assert restore_study(tmp_path / "b.zip", tmp_path / "whole").labels == 14


@pytest.mark.slow
@pytest.mark.parametrize("at", ["read_snapshot", "check_archive"])
def test_a_killed_backup_leaves_the_study_and_no_file(
    at: str, labelled, tmp_path: Path, killed
) -> None:
    study = labelled()
    before = state_of(study)
    killed("backup", "backup_study", at, study.folder, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()
    assert state_of(study) == before
    assert backup_study(study.folder, tmp_path / "b.zip").labels == 14


@pytest.mark.slow
def test_a_killed_restore_leaves_the_backup_and_no_folder(labelled, tmp_path: Path, killed) -> None:
    backup_study(labelled().folder, tmp_path / "b.zip")
    killed("backup", "restore_study", "read_snapshot", tmp_path / "b.zip", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert restore_study(tmp_path / "b.zip", tmp_path / "again").labels == 14


def test_where_it_may_not_be_written(labelled, tmp_path: Path) -> None:
    study = labelled()
    with pytest.raises(InputError, match="would be lost with the study's folder"):
        backup_study(study.folder, study.folder / "b.zip")
    with pytest.raises(InputError, match="there is no folder"):
        backup_study(study.folder, tmp_path / "none" / "b.zip")
    (tmp_path / "b.zip").write_text("something of mine")
    with pytest.raises(InputError, match="exists already"):
        backup_study(study.folder, tmp_path / "b.zip")
    assert (tmp_path / "b.zip").read_text() == "something of mine"
    backup_study(study.folder, tmp_path / "c.zip")
    with pytest.raises(InputError, match="is not empty"):
        restore_study(tmp_path / "c.zip", study.folder)


def test_a_damaged_store_is_not_backed_up(labelled, tmp_path: Path) -> None:
    study = labelled(pairs=60)
    study.close()
    store = study.folder / "study.db"
    content = bytearray(store.read_bytes())
    half = len(content) // 2
    content[half : half + 8192] = b"\x55" * 8192
    store.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        backup_study(study.folder, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()
