"""Backups, stores moved and upgraded, whatever is killed or hangs: no row is lost; the doctor."""

import contextlib
import gc
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.errors import InputError, StoreAway
from evenhand.study import Study, keeping, open_study
from evenhand.study.desk.claims import oversight
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.settings.study_toml import change_config, read_config
from evenhand.study.store.database import Database
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.store.schema import SCHEMA_VERSION, meta, metadata
from evenhand.study.workspace import hours_since_backup
from harness.postgresql import Postgresql
from harness.released import COMMITS, released
from harness.studies import label_all, submit, task_of, work_through
from tests.cases import refused

ROOT = Path(__file__).parents[2]


@pytest.fixture
def labelled(make_study) -> Callable[..., Study]:
    """labelled(**fields of StudyPlan) -> an open study with labels of two people, and grades."""

    def make(**fields: object) -> Study:
        study = make_study(**{"rubrics": ["refusal"], **fields})
        desk = AnnotationDesk(study)
        for rater in ("ann", "zoë"):
            work_through(desk, rater, 7, seconds=0.1, options=3)
        unit, other = study.rubric_units(study.rubrics["refusal"])[:2]
        grade = {"rater_id": "g", "rubric": "refusal", "rubric_hash": study.rubrics["refusal"].hash}
        stated = {"p_positive": 1 / 3, "probabilities": {"4": 0.1 + 0.2, "5": 1 - (0.1 + 0.2)}}
        found = GradeAttempt(**grade, unit_id=unit, label="4", **stated)
        none = GradeAttempt(**grade, unit_id=other, unscored_reason="refusal")
        study.store.add_grades([found, none])
        return study

    return make


def write_old_study(folder: Path) -> Path:
    """A study as evenhand 0.1.0 wrote it: 12 labels by two annotators, 6 grades, one exclusion; its
    responses are synthetic.
    """
    shutil.copytree(ROOT / "tests" / "study" / "store" / "version_0_1_0", folder)
    with closing(sqlite3.connect(folder / "study.db")) as connection:
        connection.executescript((folder / "store.sql").read_text("utf-8"))
    (folder / "store.sql").unlink()
    return folder


@pytest.fixture
def old_study(tmp_path: Path) -> Path:
    return write_old_study(tmp_path / "old")


def killed(run: str, at: str, *given: object) -> None:
    """`run(*given)` of `keeping` in a process of its own that is killed where it calls `at`."""
    cast = "Path" if isinstance(given[-1], Path) else "str"
    script = f"""
import os, sys
from pathlib import Path
import evenhand.study.keeping as room
room.{at} = lambda *_, **__: os.kill(os.getpid(), {signal.SIGKILL:d})
room.{run}(Path(sys.argv[1]), *map({cast}, sys.argv[2:]))
"""
    command = [sys.executable, "-P", "-c", script, *map(str, given)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


class Hanging(Postgresql):
    """A server that hangs where `keeping` calls what it is told, or at once."""

    def hangs(self, patch: pytest.MonkeyPatch, at: str = "") -> None:
        patch.setattr(keeping, "SILENT", 2.0)
        if not at:
            return self.freeze()
        run = getattr(keeping, at)
        return patch.setattr(keeping, at, lambda *given: (self.freeze(), run(*given))[1])


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    server = Hanging()
    yield server
    server.thaw()
    server.end()


@pytest.mark.journey
def test_what_is_restored_is_the_study(any_database, labelled, tmp_path):
    study = labelled(**any_database)
    (study.folder / "practice.toml").write_text("# named in study.toml")
    (study.folder / "report").mkdir()
    (study.folder / "report" / "report.md").write_text("a report")
    file, again = tmp_path / "study.zip", tmp_path / "again"
    before = rows_of(study.config.store, study.folder)
    contents = keeping.backup_study(study.folder, file)
    assert (contents.labels, contents.raters) == (14, 2)
    assert (contents.grades, contents.graders) == (2, 1)
    assert (contents.pairs, contents.responses) == (6, 24)
    (tmp_path / "unpacked").mkdir()
    keeping.unpack(file, tmp_path / "unpacked")
    assert "postgresql" not in (tmp_path / "unpacked" / "study.toml").read_text()
    assert keeping.restore_study(file, again) == contents
    with open_study(again) as restored:
        assert restored.config == study.config.model_copy(update={"store": "study.db"})
        assert restored.ratings().equals(study.ratings())
        assert rows_of("study.db", again) == before
        desk = AnnotationDesk(restored)
        assert submit(desk, "ann", task_of(desk, "ann"), "1") == "stored"
    assert (again / "practice.toml").read_text() == "# named in study.toml"
    assert (again / "report" / "report.md").read_text() == "a report"
    kept = [file, *(each for each in again.rglob("*") if each.is_file())]
    assert {stat.S_IMODE(each.stat().st_mode) for each in kept} == {0o600}
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "at"),
    [
        ("backup", "copy_tables"),
        ("move from", "copy_tables"),
        ("move to", ""),
        ("upgrade", "migrate"),
        pytest.param("backup", "", marks=pytest.mark.thorough),
        pytest.param("move from", "", marks=pytest.mark.thorough),
        pytest.param("move to", "copy_tables", marks=pytest.mark.thorough),
    ],
)
def test_a_database_that_hangs_ends_all_in_a_sentence(what, at, old_study, tmp_path, hanging):
    def run() -> None:
        if what == "backup":
            keeping.keep_backups(old_study, tmp_path, 14, verify=True)
        elif what == "upgrade":
            keeping.upgrade_store(old_study)
        else:
            keeping.move_store(old_study, "new.db" if what == "move from" else new)

    new = hanging.new_database()
    if what != "upgrade":
        keeping.upgrade_store(old_study)
    if what != "move to":
        keeping.move_store(old_study, new)
    store, patch, begun = read_config(old_study).store, pytest.MonkeyPatch(), time.monotonic()
    hanging.hangs(patch, at)
    told = "does not answer|cannot be (copied there|opened|backed up)"
    with pytest.raises((StoreAway, InputError), match=told):
        run()
    assert time.monotonic() - begun < 15
    assert (read_config(old_study).store, list(tmp_path.glob("*.zip"))) == (store, [])
    hanging.thaw()
    patch.undo()
    gc.collect()  # what has failed holds its connection, as long as its traceback is kept
    for _ in range(75):  # until the server knows that the former connections are gone
        with contextlib.suppress(InputError):  # the study is open elsewhere
            run()
            break
        time.sleep(0.2)
    else:
        run()
    if what == "upgrade":
        upgraded(old_study)


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
            contents = keeping.backup_study(study.folder, tmp_path / f"{n}.zip")
            assert 14 + before <= contents.labels <= 14 + len(acknowledged) + 1
    finally:
        over.set()
        person.join()
    assert acknowledged
    assert keeping.restore_study(tmp_path / "2.zip", tmp_path / "again") == contents


@pytest.mark.slow
@pytest.mark.parametrize("at", ["read_snapshot", "check_archive"])
def test_a_killed_backup_leaves_the_study_and_no_file(at, labelled, tmp_path):
    study = labelled()
    before = rows_of("study.db", study.folder)
    killed("backup_study", at, study.folder, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()
    assert rows_of("study.db", study.folder) == before
    assert keeping.backup_study(study.folder, tmp_path / "b.zip").labels == 14
    killed("restore_study", "read_snapshot", tmp_path / "b.zip", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert keeping.restore_study(tmp_path / "b.zip", tmp_path / "again").labels == 14


def test_where_it_may_not_be_written(labelled, tmp_path):
    study = labelled()
    refused("would be lost with", keeping.backup_study, study.folder, study.folder / "b.zip")
    refused("there is no folder", keeping.backup_study, study.folder, tmp_path / "none" / "b.zip")
    refused("no folder", keeping.keep_backups, study.folder, tmp_path / "absent", 1)
    for keep in (0, -1):
        refused("--keep must be 1 or more", keeping.keep_backups, study.folder, tmp_path, keep)
    (tmp_path / "b.zip").write_text("something of mine")
    refused("exists already", keeping.backup_study, study.folder, tmp_path / "b.zip")
    assert (tmp_path / "b.zip").read_text() == "something of mine"
    keeping.backup_study(study.folder, tmp_path / "c.zip")
    refused("is not empty", keeping.restore_study, tmp_path / "c.zip", study.folder)


def test_a_file_whose_name_no_backup_has_is_left_out_and_named(old_study, tmp_path, caplog):
    kept = {"at 9.12\u202fAM.png", "no\u00a0break.txt"}
    for name in (*kept, "a\\b.txt", "a\nb.toml", "study.db-notes", "backup.json", "r\udce9sum.txt"):
        (old_study / name).write_text("mine")
    (tmp_path / "private.txt").write_text("mine")
    (old_study / "zz.txt").symlink_to(tmp_path / "private.txt")
    keeping.backup_study(old_study, tmp_path / "b.zip")
    odd = r"'a\nb.toml', a\b.txt, backup.json, 'r\udce9sum.txt', study.db-notes"
    assert f"leaves out {odd}, zz.txt;" in caplog.text
    keeping.restore_study(tmp_path / "b.zip", tmp_path / "new")
    assert kept < {each.name for each in (tmp_path / "new").iterdir()}


def test_a_damaged_store_is_not_backed_up(labelled, tmp_path):
    study = labelled(pairs=60)
    study.close()
    store = study.folder / "study.db"
    content = bytearray(store.read_bytes())
    half = len(content) // 2
    content[half : half + 8192] = b"\x55" * 8192
    store.write_bytes(content)
    refused("damaged", keeping.backup_study, study.folder, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


@pytest.fixture
def nights(monkeypatch: pytest.MonkeyPatch) -> None:
    """A night later with every backup."""

    class Nights:
        latest = datetime(2026, 3, 1, 3, 15, tzinfo=UTC)

        def now(self, _: object) -> datetime:
            self.latest += timedelta(days=1)
            return self.latest

    monkeypatch.setattr(keeping, "datetime", Nights())


@pytest.mark.slow
def test_the_latest_are_kept_and_others_are_left(database, labelled, tmp_path, nights):
    study, place = labelled(**database), tmp_path / "backups"
    place.mkdir()
    # Another study in a folder of the same name, and a file of somebody's.
    shutil.copytree(study.folder, tmp_path / "other" / study.folder.name)
    if not database:
        with open_study(tmp_path / "other" / study.folder.name) as other:
            keeping.keep_backups(other.folder, place, 1)
    (place / "notes-20200101-000000.zip").write_text("mine")
    before = set(place.iterdir())
    assert hours_since_backup(study.store) is None
    kept = [keeping.keep_backups(study.folder, place, 3, verify=True) for _ in range(5)]
    assert [each.n_kept for each in kept] == [1, 2, 3, 3, 3]
    assert set(place.iterdir()) == before | {each.file for each in kept[-3:]}
    assert kept[-1].contents.labels == 14
    keeping.restore_study(kept[-1].file, tmp_path / "again")
    assert (hours_since_backup(study.store) or 0) < 1


@pytest.mark.slow
def test_one_that_cannot_be_restored_is_none_and_removes_none(labelled, tmp_path, nights):
    """The archive is sound, so that only a trial shows it: its settings name no rubric there is."""
    study = labelled()
    first = keeping.keep_backups(study.folder, tmp_path, 1, verify=True)
    with study.store.write() as connection:
        connection.execute(sa.delete(meta).where(meta.c.key == "last_backup"))
    change_config(study.folder, {"annotation": {"rubrics": ["absent"]}})
    with pytest.raises(InputError, match=r"could not be restored and is removed: .*rubric"):
        keeping.keep_backups(study.folder, tmp_path, 1, verify=True)
    assert list(tmp_path.glob("*.zip")) == [first.file]
    assert zipfile.is_zipfile(first.file)
    assert hours_since_backup(study.store) is None


@pytest.fixture(scope="module")
def good_backup(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("good")
    keeping.backup_study(write_old_study(home / "study"), home / "good.zip")
    return home / "good.zip"


@pytest.fixture
def forge(good_backup: Path, tmp_path: Path) -> Callable[..., Path]:
    """forge(change, links=..., listed=...) -> a backup whose files `change` has changed, with a
    list that agrees with them but for `listed`."""
    with zipfile.ZipFile(good_backup) as good:
        files = {name: good.read(name) for name in good.namelist()}
    listing = json.loads(files.pop("backup.json"))

    def make(change=lambda _: None, links=(), listed=lambda _: None) -> Path:
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


def restore_refused(file: Path, folder: Path, says: str) -> None:
    before = sorted(folder.parent.rglob("*"))
    refused(says, keeping.restore_study, file, folder)
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.parametrize("name", [
    "../evil.toml", "/evil.toml", "rubrics/../../evil.toml", "a\\..\\evil", "./evil",
    "a//b", "new\nline", "folder/", "study.db-wal", "study.db-journal", ".hidden/a",
])  # fmt: skip
def test_a_path_outside_or_odd_is_refused(name, forge, tmp_path):
    bad = forge(lambda files: files.update({name: b""}))
    restore_refused(bad, tmp_path / "new", "which no backup does")


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        (lambda it: it["files"].pop("study.toml"), "holds other files than its list"),
        (lambda it: it["files"].update(more={"bytes": 0, "sha256": ""}), "other files"),
        (lambda it: it["files"]["study.db"].update(sha256="0" * 64), "is not as it was"),
        (lambda it: it["tables"].update(labels=15), "other rows than its list"),
        (lambda it: it.update(format=2), "a newer evenhand made"),
        (lambda it: it.update(more=2), "is damaged, or a newer"),
        # More than the disk holds.
        (lambda it: it["files"]["study.db"].update(bytes=1 << 60), "another size"),
    ],
)
def test_a_list_that_no_backup_has_is_refused(listed, says, forge, tmp_path):
    restore_refused(forge(listed=listed), tmp_path / "new", says)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"link": b"/etc/passwd"}, "'link', which no backup does"),
        ({"a": b"", "a/b": b""}, "a/b of the backup cannot be unpacked"),
        ({"n" * 300: b""}, "n of the backup cannot be unpacked"),
        ({"zeros": bytes(10_000_000)}, "zeros has another size in the archive"),
        ((b'"study.db"', b'"../evil.db"'), "names another store"),
        ("CREATE TRIGGER t AFTER INSERT ON labels BEGIN SELECT 1; END", "the trigger 't'"),
        ("CREATE VIEW v AS SELECT 1", "the view 'v'"),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "the table 'f'"),
        ("DROP TABLE grades", "no grades"),
        ("UPDATE meta SET value = '99' WHERE key = 'schema'", "newer than this evenhand"),
    ],
)
def test_files_and_a_store_that_no_backup_has_are_refused(change, says, forge, tmp_path):
    def changed(files: dict[str, bytes]) -> None:
        if isinstance(change, dict):
            files.update(change)
        elif isinstance(change, tuple):
            files["study.toml"] = files["study.toml"].replace(*change)
        else:
            file = tmp_path / "changed.db"
            file.write_bytes(files["study.db"])
            with closing(sqlite3.connect(file)) as connection:
                connection.execute(change)
                connection.commit()
            files["study.db"] = file.read_bytes()
            file.unlink()

    def listed(listing) -> None:
        if "zeros" in listing["files"]:
            listing["files"]["zeros"].update(bytes=10)
        if "DROP" in change:
            listing["tables"].pop("grades")

    bad = forge(changed, links=["link"], listed=listed)
    raw = bad.read_bytes()
    restore_refused(bad, tmp_path / "new", says)
    assert bad.read_bytes() == raw


def test_half_a_backup_and_none_are_refused(forge, tmp_path):
    good = forge().read_bytes()
    half = tmp_path / "half.zip"
    half.write_bytes(good[: len(good) // 2])
    restore_refused(half, tmp_path / "new", "only a part of one")
    entry, end = good.index(b"PK\1\2"), good.rindex(b"PK\5\6")
    version, method, position = (entry + 6, b"c"), (entry + 10, b"\x0e"), (end + 19, b"\x7f")
    for at, damage in ((200, b"\1\2\3\4\5\6"), version, method, position):
        half.write_bytes(good[:at] + damage + good[at + len(damage) :])
        restore_refused(half, tmp_path / "new", "damaged|not read|no backup")
    with zipfile.ZipFile(half, "w") as archive:
        archive.writestr("study.toml", "")
    restore_refused(half, tmp_path / "new", r"it has no backup\.json")
    restore_refused(tmp_path / "none.zip", tmp_path / "new", "there is no file")


URL = "https://study.example.org/"


@pytest.fixture
def sound(make_study, tmp_path: Path) -> Path:
    """A study that is served as docs/serving.md says."""
    study = make_study()
    study.close()
    change_config(study.folder, {"session": {"entry": "invite", "trusted_proxies": ["127.0.0.1"]}})
    (tmp_path / "backups").mkdir()
    keeping.keep_backups(study.folder, tmp_path / "backups", 14, verify=True)
    return study.folder


def ills(folder: Path, url: str = URL) -> list[str]:
    return [each.sentence for each in keeping.examine(folder, url) if not each.is_well]


def test_a_sound_study_has_nothing_to_mend_and_one_without_a_backup_is_told_so(sound, make_study):
    assert ills(sound) == []
    assert len(keeping.examine(sound, URL)) >= 7
    with open_study(sound) as study:
        assert keeping.serving_notes(study, URL) == []
    assert "Only this machine's own names" in ills(sound, "")[0]
    assert "without TLS" in ills(sound, "http://study.example.org/")[0]
    change_config(sound, {"session": {"hosts": ["lab.example.org"]}})
    assert ills(sound, "") == []
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


@pytest.fixture
def folder(labelled) -> Path:
    """A study with labels, closed."""
    study = labelled()
    study.close()
    return study.folder


def rows_of(location: str, folder: Path):
    store = Database.connect(location, folder)
    with store.read() as connection:
        found = keeping.states(connection, keeping.reflected_tables(connection), bool)
    store.close()
    return found


def differences(location: str, folder: Path):
    """What of the program's schema a database lacks or has beside it, as Alembic sees it."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    store = Database.connect(location, folder)
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        found = compare_metadata(context, metadata)
    store.close()
    return found


@pytest.mark.journey
def test_there_and_back(labelled, new_postgresql):
    study = labelled()
    folder, ratings, url = study.folder, study.ratings(), new_postgresql()
    comment = "# a comment of the lead's\n"
    settings = folder / "study.toml"
    settings.write_text(comment + settings.read_text())
    study.close()
    moved = keeping.move_store(folder, url)
    assert moved["labels"].rows == 14
    assert moved == rows_of("study.db", folder) == rows_of(url, folder)
    assert differences(url, folder) == []
    assert settings.read_text().startswith(comment)
    with open_study(folder) as there:
        assert there.config.store == url
        assert there.ratings().equals(ratings)
        work_through(AnnotationDesk(there), "ann", 1)  # events are counted on from the last one
    assert rows_of("study.db", folder) == moved
    refused("another state of this one", keeping.move_store, folder, "study.db")
    back = keeping.move_store(folder, "back.db")
    assert back["labels"].rows == 15
    assert back == rows_of(url, folder) == rows_of("back.db", folder)
    assert differences("back.db", folder) == []
    assert (folder / "back.db").stat().st_mode & 0o777 == 0o600
    (folder / "study.db-wal").touch()  # as a killed process leaves it
    keeping.backup_study(folder, folder.parent / "b.zip")  # former stores are not in it
    kept = keeping.check_archive(folder.parent / "b.zip").files
    assert sorted(kept) == ["rubrics/refusal.toml", "study.db", "study.toml"]
    assert keeping.restore_study(folder.parent / "b.zip", folder.parent / "again").labels == 15
    with open_study(folder) as again:
        assert again.config.store == "back.db"
        assert again.ratings().iloc[:14].equals(ratings.iloc[:14])


@pytest.mark.slow
@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
@pytest.mark.parametrize("at", ["copy_tables", "study_toml.change_config"])
def test_a_killed_move_leaves_the_study_and_can_be_run_again(at, to, folder, request):
    place = "new.db" if to == "sqlite" else request.getfixturevalue("new_postgresql")()
    before = rows_of("study.db", folder)
    killed("move_store", at, folder, place)
    assert (read_config(folder).store, rows_of("study.db", folder)) == ("study.db", before)
    assert (keeping.move_store(folder, place), read_config(folder).store) == (before, place)


@pytest.mark.slow
def test_nobody_may_have_it_open(labelled, new_postgresql):
    """What is written to the former store afterwards would be lost."""
    study, url = labelled(), new_postgresql()
    refused("open elsewhere; stop `evenhand annotate`", keeping.move_store, study.folder, url)
    study.close()
    keeping.move_store(study.folder, url)
    with open_study(study.folder), pytest.raises(InputError, match="open elsewhere"):
        keeping.move_store(study.folder, "back.db")
    assert not (study.folder / "back.db").exists()


@pytest.mark.slow
def test_who_opened_it_meanwhile_does_not_write_to_the_former_store(folder, monkeypatch):
    from evenhand.study import workspace

    connect = workspace.Store.open

    def moved_first(location: str, folder: Path, **options: float):
        keeping.move_store(folder, "new.db")
        return connect(location, folder, **options)

    monkeypatch.setattr(workspace.Store, "open", moved_first)
    refused("moved to another store meanwhile", open_study, folder)


def test_a_place_that_is_none_is_refused(folder):
    before = (folder / "study.toml").read_bytes()
    for to, says in (
        ("study.db", "where the study's store is already"),
        *((place, "takes the URL") for place in ("../study.db", "mysql://host/db", "", "rubrics")),
        ("study.toml", "cannot be copied there: file is not a database"),
        ("${NOT_SET}", "NOT_SET, which is not set"),
    ):
        refused(says, keeping.move_store, folder, to)
        assert (folder / "study.toml").read_bytes() == before


@pytest.mark.slow
def test_what_postgresql_cannot_keep_is_said(labelled, new_postgresql):
    study = labelled()
    with study.store.write() as connection:
        zero = sa.text("UPDATE responses SET response = :r WHERE rowid = 1")
        connection.execute(zero, {"r": "a\0"})
    study.close()
    url = new_postgresql()
    refused(r"a row of responses cannot be copied: .*NUL", keeping.move_store, study.folder, url)
    assert (read_config(study.folder).store, rows_of(url, study.folder)) == ("study.db", {})


@pytest.mark.slow
def test_a_password_need_not_stand_in_study_toml(folder, new_postgresql, monkeypatch):
    url = sa.make_url(new_postgresql()).set(password="ge:he/im@")
    text = url.render_as_string(hide_password=False).replace("ge%3Ahe%2Fim%40", "${PASSWORD}")
    assert "${PASSWORD}" in text
    monkeypatch.setenv("PASSWORD", "ge:he/im@")
    keeping.move_store(folder, text)
    with open_study(folder) as there:
        assert (there.config.store, there.store.engine.url.password) == (text, "ge:he/im@")
        assert len(there.ratings()) == 16
    monkeypatch.delenv("PASSWORD")
    refused("PASSWORD, which is not set", open_study, folder)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_copies_belongs_to_whom_the_folder_belongs_to(folder, new_postgresql):
    for entry in (folder, *folder.rglob("*")):
        os.chown(entry, 12345, 12345)
    for place in (new_postgresql(), "again.db"):
        keeping.move_store(folder, place)
        owners = {entry.name: entry.stat().st_uid for entry in (folder, *folder.rglob("*"))}
        assert set(owners.values()) == {12345}, owners
    assert (folder / "again.db").exists()


def columns(file: Path) -> dict[str, str]:
    """The columns of each table."""
    query = (
        "SELECT t.name, group_concat('\"' || c.name || '\"') FROM sqlite_master AS t "
        "JOIN pragma_table_info(t.name) AS c WHERE t.type = 'table' GROUP BY t.name"
    )
    with closing(sqlite3.connect(file)) as connection:
        return dict(connection.execute(query).fetchall())


def content(file: Path, of: dict[str, str] | None = None) -> dict[str, list[tuple]]:
    """Every row of each table, in these columns or in all."""
    named = (of or columns(file)).items()
    with closing(sqlite3.connect(file)) as connection:
        return {
            table: connection.execute(f'SELECT {names} FROM "{table}"').fetchall()  # noqa: S608
            for table, names in named
        }


def upgraded(folder: Path) -> None:
    """Upgrade it, and look whether all is there."""
    keeping.upgrade_store(folder)
    with open_study(folder) as study:
        ratings = study.ratings()
        counts = ratings["rater_id"].value_counts().to_dict()
        assert counts == {"ann": 6, "ben": 6, "baseline:lexical": 6}
        assert ratings["label"].tolist()[:6] == ["1", "2", "3", "1", "2", "3"]
        assert ratings["seconds"].tolist()[:6] == [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
        assert list(oversight(study.store).exclusions) == ["ben"]
        assert work_through(AnnotationDesk(study), "cem", 1) == 1
    assert differences(read_config(folder).store, folder) == []


@pytest.mark.journey
def test_a_study_of_0_1_0_opens_after_the_upgrade(old_study, tmp_path):
    before, of = content(old_study / "study.db"), columns(old_study / "study.db")
    assert len(before["labels"]) == 12
    refused("run `evenhand store upgrade`", open_study, old_study)
    (old_study / "backups").mkdir(mode=0o755)
    for entry in (old_study, *old_study.rglob("*")):  # as 0.1.0 left it open to others
        entry.chmod(0o755 if entry.is_dir() else 0o644)
    done = keeping.upgrade_store(old_study)
    for entry in (old_study, *old_study.rglob("*")):
        assert entry.stat().st_mode & 0o077 == 0, entry
    assert (done.before, done.now) == (1, int(SCHEMA_VERSION))
    meta = [(key, SCHEMA_VERSION if key == "schema" else value) for key, value in before["meta"]]
    assert content(old_study / "study.db", of) == before | {"meta": meta}
    assert keeping.upgrade_store(old_study).backup is None
    upgraded(old_study)
    with open_study(old_study), pytest.raises(InputError, match="open elsewhere"):
        keeping.upgrade_store(old_study)
    assert done.backup is not None
    keeping.restore_study(done.backup, tmp_path / "before")
    assert content(tmp_path / "before" / "study.db") == before
    upgraded(tmp_path / "before")


def test_grades_that_another_server_gave_are_named_for_it(old_study):
    """0.1.0 kept them under the provider's name alone, so a mock's counted as the model's."""
    here, gateway = "http://127.0.0.1:9", "https://gateway.example/v1"
    said = [
        ("p0001|s1|a", "anthropic:m", here, f"anthropic:m@{here}"),
        ("p0001|s1|b", "anthropic:m#7707ad", here, f"anthropic:m@{here}#7707ad"),
        ("p0002|s1|a", "anthropic:m", "https://api.anthropic.com", "anthropic:m"),
        ("p0002|s1|b", "openai:m", gateway, f"openai:m@{gateway}"),
        ("p0003|s1|a", "openai:m", "https://api.openai.com/v1", "openai:m"),
        ("p0003|s1|b", "openai:m@http://h/v1", "http://h/v1", "openai:m@http://h/v1"),
    ]
    with closing(sqlite3.connect(old_study / "study.db")) as connection:
        for unit, rater, address, _ in said:
            connection.execute(
                "UPDATE grades SET rater_id = ?, provenance = ? WHERE unit_id = ?",
                (rater, json.dumps({"base_url": f"{address}/"}), unit),
            )
        connection.commit()
    keeping.upgrade_store(old_study)
    with open_study(old_study) as study:
        ratings = study.ratings()
    graders = ratings[ratings["rater_kind"] == "model"].set_index("unit_id")["rater_id"]
    assert graders.to_dict() == {unit: named for unit, _, _, named in said}


@pytest.mark.slow
@pytest.mark.parametrize("at", ["migrate", "backup_of"])
def test_an_upgrade_that_fails_or_is_killed_has_changed_nothing(at, old_study, monkeypatch):
    before = content(old_study / "study.db")
    if at == "migrate":
        killed("upgrade_store", "migrate", old_study)
        assert content(old_study / "study.db") == before
    run = getattr(keeping, at)

    def fail(*arguments: object) -> None:
        run(*arguments)
        raise OSError("no space left on device")

    monkeypatch.setattr(keeping, at, fail)
    with pytest.raises(OSError, match="no space"):
        keeping.upgrade_store(old_study)
    assert content(old_study / "study.db") == before
    monkeypatch.undo()
    upgraded(old_study)


def test_a_lost_row_is_refused(old_study, monkeypatch):
    before = content(old_study / "study.db")

    def careless(connection: sa.Connection, _version: int) -> None:
        connection.execute(sa.text("DELETE FROM labels WHERE event_id = 1"))

    monkeypatch.setattr(keeping, "migrate", careless)
    refused("would have lost rows", keeping.upgrade_store, old_study)
    assert content(old_study / "study.db") == before


@pytest.mark.journey
@pytest.mark.parametrize("version", ["99", "0", "banana"])
def test_a_version_that_is_not_known(version, old_study):
    with closing(sqlite3.connect(old_study / "study.db")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", [version])
        connection.commit()
    says = {"99": "newer than this evenhand", "0": "no evenhand wrote", "banana": "damaged"}
    refused(says[version], keeping.upgrade_store, old_study)
    shutil.rmtree(old_study / "backups", ignore_errors=True)
    refused(r"newer than|damaged|run `evenhand store upgrade`", open_study, old_study)


PAIRS, RATERS, ANSWERS = 200, 6, 60
EXCLUDED = "rater-1"
KILLS = 5
UPGRADE = """
import sys
from pathlib import Path
from evenhand.study.keeping import upgrade_store
print("begun", flush=True)
upgrade_store(Path(sys.argv[1]))
print("done", flush=True)
"""


def ran(*command: object) -> str:
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = list(map(str, command))
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT.parent, env=alone)
    assert done.returncode == 0, done.stderr
    return done.stdout


def exported(program: Path, folder: Path, to: Path) -> dict[str, pd.DataFrame]:
    """What the command line of a version writes of a study, cell by cell, in one order."""
    to.mkdir()
    names = {"--out": "ratings", "--units": "units", "--remarks": "remarks"}
    options = [word for option, name in names.items() for word in (option, to / f"{name}.csv")]
    ran(program, "export", folder, *options)
    tables = {
        name: pd.read_csv(to / f"{name}.csv", dtype=str, keep_default_na=False)
        for name in names.values()
    }
    return {name: in_order(table) for name, table in tables.items()}


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values(list(table)).reset_index(drop=True)


def upgraded_by_itself(folder: Path, killed_after: float | None = None) -> tuple[bool, float]:
    """Upgrade in a process of its own, killed so many seconds after it began; whether it came to
    its end, and how long it took.
    """
    command = [sys.executable, "-P", "-c", UPGRADE, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        begun = time.perf_counter()
        if killed_after is not None:
            time.sleep(killed_after)
            process.send_signal(signal.SIGKILL)
        ended = "done" in process.stdout.readline()  # Python's own end may take longer than all
        took = time.perf_counter() - begun
    assert killed_after is not None or process.returncode == 0
    return ended, took


def check_work_goes_on(folder: Path, is_open: dict[str, Any]) -> None:
    """What was on each screen is stored under the id of then, once, and what was answered stays."""
    with open_study(folder) as study:
        before = len(study.ratings())
        desk = AnnotationDesk(study)
        for rater, each in is_open.items():
            for status in ("stored", "duplicate"):
                assert submit(desk, rater, each["open"], each["key"], f"{rater}-new") == status
            task, submit_id, key = each["last"]
            assert submit(desk, rater, task, key, submit_id) == "duplicate"
            following = task_of(desk, rater)
            assert (following is None) == (rater == EXCLUDED)
            assert following is None or following.task_id != each["open"]
        assert len(study.ratings()) == before + len(is_open)


@pytest.mark.load
@pytest.mark.parametrize("version", COMMITS)
def test_a_study_at_work_goes_on_after_the_upgrade_and_after_every_kill(version, tmp_path):
    python = released(version)
    program, now = python.with_name("evenhand"), Path(sys.executable).with_name("evenhand")
    where = ran(python, "-c", "import evenhand; print(evenhand.__version__, evenhand.__file__)")
    assert where.startswith(f"{version} {python.parents[1]}"), where
    work = Path(__file__).with_name("work_on_released.py")
    old = tmp_path / "old"
    is_open = json.loads(ran(python, work, old, "study.db", PAIRS, RATERS, ANSWERS))
    ran(program, "grade", old, "--grader", "baseline:lexical", "--scope", "all")
    ran(program, "exclude", old, EXCLUDED, "--reason", "a test")
    before = exported(program, old, tmp_path / "before")
    assert len(before["ratings"]) > RATERS * ANSWERS
    untouched = rows_of("study.db", old)

    def check(folder: Path, to: str) -> None:
        after = exported(now, folder, tmp_path / to)
        for name, table in before.items():
            assert set(table) <= set(after[name]), name
            pd.testing.assert_frame_equal(in_order(after[name][list(table)]), table)
        check_work_goes_on(folder, is_open)

    whole = shutil.copytree(old, tmp_path / "whole")
    ended, seconds = upgraded_by_itself(whole)
    assert ended
    check(whole, "after")
    kills = 0
    for number in range(KILLS):
        folder = shutil.copytree(old, tmp_path / f"killed-{number}")
        ended, _ = upgraded_by_itself(folder, killed_after=0.7 * seconds * number / KILLS)
        kills += not ended
        if ended:  # too late: the machine was busier when the time was taken
            seconds /= 2
        if not ended and version == "0.1.0":
            kept = rows_of("study.db", folder)
            assert kept == untouched or {*kept} > {*untouched}  # as it was, or all of it done
        assert upgraded_by_itself(folder)[0]
        check(folder, f"after-{number}")
    assert kills >= KILLS / 2
