"""Backups: made, kept, restored, and archives that anyone may have made; and the doctor."""

import json
import os
import shutil
import sqlite3
import stat
import threading
import zipfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError, StoreAway
from evenhand.study import keeping, open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.keeping import (
    backup_study,
    examine,
    found_tables,
    keep_backups,
    move_store,
    restore_study,
    serving_notes,
    states,
    unpack,
)
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import meta
from evenhand.study.workspace import hours_since_backup
from harness.studies import label_all, submit, task_of


def state_of(study):
    with study.store.read() as connection:
        return states(connection, found_tables(connection))


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_what_is_restored_is_the_study(database, labelled, tmp_path):
    study = labelled(**database)
    (study.folder / "practice.toml").write_text("# named in study.toml")
    (study.folder / "report").mkdir()
    (study.folder / "report" / "report.md").write_text("a report")
    file, again, before = tmp_path / "study.zip", tmp_path / "again", state_of(study)
    contents = backup_study(study.folder, file)
    assert (contents.labels, contents.raters) == (14, 2)
    assert (contents.grades, contents.graders) == (2, 1)
    assert (contents.pairs, contents.responses) == (6, 24)
    (tmp_path / "unpacked").mkdir()
    unpack(file, tmp_path / "unpacked")
    assert "postgresql" not in (tmp_path / "unpacked" / "study.toml").read_text()
    assert restore_study(file, again) == contents
    with open_study(again) as restored:
        assert restored.config == study.config.model_copy(update={"store": "study.db"})
        assert restored.ratings().equals(study.ratings())
        assert state_of(restored) == before
        desk = AnnotationDesk(restored)
        assert submit(desk, "ann", task_of(desk, "ann"), "1") == "stored"
    assert (again / "practice.toml").read_text() == "# named in study.toml"
    assert (again / "report" / "report.md").read_text() == "a report"
    assert modes(again) == {0o600}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("at", [pytest.param("", marks=pytest.mark.thorough), "copy_tables"])
def test_a_backup_of_a_database_that_hangs_ends_in_a_sentence(at, labelled, tmp_path, hanging):
    study, to = labelled(), tmp_path / "backups"
    study.close()
    to.mkdir()
    move_store(study.folder, hanging.new_database())
    hanging.hangs(keeping, at)
    hanging.ends(lambda: keep_backups(study.folder, to, 14, verify=True), StoreAway)
    assert list(to.iterdir()) == []
    hanging.goes_on()
    assert keep_backups(study.folder, to, 14, verify=True).contents.labels == 14


@pytest.mark.slow
def test_people_label_while_it_is_made(labelled, tmp_path):
    study = labelled(pairs=30)
    acknowledged, over = [], threading.Event()

    def label() -> None:
        with open_study(study.folder) as own:
            desk = AnnotationDesk(own)
            while not over.is_set() and (done := label_all(desk, "eva", "1", 1)):
                acknowledged.extend(done)

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


def test_a_copy_of_the_file_is_no_backup(labelled, tmp_path):
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
def test_a_killed_backup_leaves_the_study_and_no_file(at, labelled, tmp_path, killed):
    study = labelled()
    before = state_of(study)
    killed("backup_study", at, study.folder, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()
    assert state_of(study) == before
    assert backup_study(study.folder, tmp_path / "b.zip").labels == 14
    killed("restore_study", "read_snapshot", tmp_path / "b.zip", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert restore_study(tmp_path / "b.zip", tmp_path / "again").labels == 14


def test_where_it_may_not_be_written(labelled, tmp_path):
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


def test_a_damaged_store_is_not_backed_up(labelled, tmp_path):
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


# Backups that are kept


class Nights:
    """A night later with every backup."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 1, 3, 15, tzinfo=UTC)

    def now(self, _: object) -> datetime:
        self._now += timedelta(days=1)
        return self._now


@pytest.fixture
def nights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "datetime", Nights())


def names(place: Path) -> list[str]:
    return sorted(each.name for each in place.iterdir())


@pytest.mark.slow
def test_the_latest_are_kept_and_others_are_left(database, labelled, tmp_path, nights):
    study = labelled(**database)
    place = tmp_path / "backups"
    place.mkdir()
    # Another study in a folder of the same name, and a file of somebody's.
    shutil.copytree(study.folder, tmp_path / "other" / study.folder.name)
    if not database:
        with open_study(tmp_path / "other" / study.folder.name) as other:
            keep_backups(other.folder, place, 1)
    (place / "notes-20200101-000000.zip").write_text("mine")
    before = set(names(place))
    assert hours_since_backup(study.store) is None
    kept = [keep_backups(study.folder, place, 3, verify=True) for _ in range(5)]
    assert [each.number for each in kept] == [1, 2, 3, 3, 3]
    assert set(names(place)) == before | {each.file.name for each in kept[-3:]}
    assert kept[-1].contents.labels == 14
    restore_study(kept[-1].file, tmp_path / "again")
    assert (hours_since_backup(study.store) or 0) < 1


@pytest.mark.slow
def test_one_that_cannot_be_restored_is_none_and_removes_none(
    labelled, tmp_path, nights, monkeypatch
):
    """The archive is sound, so that only a trial shows it: its settings name no rubric there is."""
    study = labelled()
    first = keep_backups(study.folder, tmp_path, 1, verify=True)
    with study.store.write() as connection:
        connection.execute(sa.delete(meta).where(meta.c.key == "last_backup"))
    change_config(study.folder, {"annotation": {"rubrics": ["absent"]}})
    with pytest.raises(InputError, match=r"could not be restored and is removed: .*rubric"):
        keep_backups(study.folder, tmp_path, 1, verify=True)
    assert [each for each in names(tmp_path) if each.endswith(".zip")] == [first.file.name]
    assert zipfile.is_zipfile(first.file)
    assert hours_since_backup(study.store) is None


@pytest.mark.parametrize("keep", [0, -1])
def test_what_keeps_nothing_is_refused(labelled, tmp_path, keep):
    study = labelled()
    with pytest.raises(InputError, match="--keep must be 1 or more"):
        keep_backups(study.folder, tmp_path, keep)
    with pytest.raises(InputError, match="no folder"):
        keep_backups(study.folder, tmp_path / "absent", 1)


# The archive


Files = dict[str, bytes]


@pytest.fixture(scope="module")
def good_backup(write_old_study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("good")
    backup_study(write_old_study(home / "study"), home / "good.zip")
    return home / "good.zip"


@pytest.fixture
def forge(good_backup: Path, tmp_path: Path) -> Callable[..., Path]:
    """forge(change, links=..., listed=...) -> a backup whose files `change` has changed, with a
    list that agrees with them but for `listed`."""
    with zipfile.ZipFile(good_backup) as good:
        files = {name: good.read(name) for name in good.namelist()}
    listing = json.loads(files.pop("backup.json"))

    def make(change: Callable[[Files], object], links=(), listed=lambda _: None) -> Path:
        change(files)
        listing["files"] = {
            name: {"bytes": len(content), "sha256": sha256(content).hexdigest()}
            for name, content in files.items()
        }
        listed(listing)
        bad = tmp_path / "bad.zip"
        with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("backup.json", json.dumps(listing))
            for name, content in files.items():
                info = zipfile.ZipInfo(name)
                info.external_attr = (0o120777 if name in links else 0o100600) << 16
                archive.writestr(info, content)
        return bad

    return make


def refused(file: Path, folder: Path, says: str) -> None:
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(InputError, match=says):
        restore_study(file, folder)
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.parametrize(
    "name",
    [
        "../evil.toml", "/evil.toml", "rubrics/../../evil.toml", "a\\..\\evil", "./evil",
        "a//b", "new\nline", "folder/", "study.db-wal", "study.db-journal",
    ],
)  # fmt: skip
def test_a_path_outside_or_odd_is_refused(name, forge, tmp_path):
    bad = forge(lambda files: files.update({name: b""}))
    refused(bad, tmp_path / "new", "which no backup does")


def nothing(_: object) -> None:
    pass


def elsewhere(files: Files) -> None:
    files["study.toml"] = files["study.toml"].replace(b'"study.db"', b'"../evil.db"')


@pytest.mark.parametrize(
    ("change", "listed", "says"),
    [
        (nothing, lambda it: it["files"].pop("study.toml"), "holds other files than its list"),
        (nothing, lambda it: it["files"].update(more={"bytes": 0, "sha256": ""}), "other files"),
        (nothing, lambda it: it["files"]["study.db"].update(sha256="0" * 64), "is not as it was"),
        (nothing, lambda it: it["tables"].update(labels=15), "other rows than its list"),
        (nothing, lambda it: it.update(format=2), "a newer evenhand made"),
        (nothing, lambda it: it.update(more=2), "is damaged, or a newer"),
        (lambda files: files.update(link=b"/etc/passwd"), nothing, "'link', which no backup does"),
        (
            lambda files: files.update(zeros=bytes(10_000_000)),
            lambda it: it["files"]["zeros"].update(bytes=10),
            "zeros has another size in the archive",
        ),
        # More than the disk holds.
        (nothing, lambda it: it["files"]["study.db"].update(bytes=1 << 60), "another size"),
        (elsewhere, nothing, "names another store"),
    ],
)
def test_files_and_a_list_that_no_backup_has_are_refused(change, listed, says, forge, tmp_path):
    bad = forge(change, links=["link"], listed=listed)
    raw = bad.read_bytes()
    refused(bad, tmp_path / "new", says)
    assert bad.read_bytes() == raw


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON labels BEGIN SELECT 1; END", "the trigger 't'"),
        ("CREATE VIEW v AS SELECT 1", "the view 'v'"),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "the table 'f'"),
        ("DROP TABLE grades", "no grades"),
        ("UPDATE meta SET value = '99' WHERE key = 'schema'", "newer than this evenhand"),
    ],
)
def test_a_store_with_what_no_store_has_is_refused(sql, says, forge, tmp_path):
    def change(files: Files) -> None:
        file = tmp_path / "changed.db"
        file.write_bytes(files["study.db"])
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(sql)
            connection.commit()
        files["study.db"] = file.read_bytes()
        file.unlink()

    def no_grades(listing) -> None:
        if "DROP" in sql:
            listing["tables"].pop("grades")

    refused(forge(change, listed=no_grades), tmp_path / "new", says)


def test_half_a_backup_and_none_are_refused(forge, tmp_path):
    good = forge(lambda files: None).read_bytes()
    half = tmp_path / "half.zip"
    half.write_bytes(good[: len(good) // 2])
    refused(half, tmp_path / "new", "only a part of one")
    half.write_bytes(good[:200] + bytes(255 - byte for byte in good[200:210]) + good[210:])
    refused(half, tmp_path / "new", "damaged|not read")
    with zipfile.ZipFile(half, "w") as archive:
        archive.writestr("study.toml", "")
    refused(half, tmp_path / "new", r"it has no backup\.json")
    refused(tmp_path / "none.zip", tmp_path / "new", "there is no file")


# What the doctor finds: each fault by itself, and none where there is none


URL = "https://study.example.org/"


@pytest.fixture
def sound(make_study, tmp_path: Path) -> Path:
    """A study that is served as docs/serving.md says."""
    study = make_study()
    study.close()
    well = {"entry": "invite", "trusted_proxies": ["127.0.0.1"]}
    change_config(study.folder, {"session": well})
    (tmp_path / "backups").mkdir()
    keep_backups(study.folder, tmp_path / "backups", 14, verify=True)
    return study.folder


def ills(folder: Path, url: str = URL) -> list[str]:
    return [each.says for each in examine(folder, url) if not each.is_well]


def test_a_sound_study_has_nothing_to_mend_and_one_without_a_backup_is_told_so(sound, make_study):
    assert ills(sound) == []
    assert len(examine(sound, URL)) >= 7
    with open_study(sound) as study:
        assert serving_notes(study, URL) == []
    assert any("No backup has been made" in each for each in ills(make_study().folder))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda f: change_config(f, {"session": {"entry": "open"}}), "any annotator code"),
        (lambda f: change_config(f, {"session": {"trusted_proxies": []}}), "No proxy is trusted"),
        (lambda f: (f / "study.toml").chmod(0o644), "Others on this machine can read"),
        (lambda f: os.chown(f / "study.db", 12345, 12345), "Files of another owner"),
        (lambda f: (f / "study.db").rename(f / "elsewhere.db"), "does not open"),
        (lambda f: change_config(f, {"annotation": {"rubrics": ["absent"]}}), "does not open"),
    ],
    ids=["open", "proxy", "modes", "owner", "store", "settings"],
)
def test_each_fault_is_found_by_itself(sound, harm, says):
    if "owner" in says and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    harm(sound)
    (found,) = ills(sound)
    assert says in found


def test_where_people_reach_it_counts(sound):
    assert "Only this machine's own names" in ills(sound, "")[0]
    assert "without TLS" in ills(sound, "http://study.example.org/")[0]
    change_config(sound, {"session": {"hosts": ["lab.example.org"]}})
    assert ills(sound, "") == []
