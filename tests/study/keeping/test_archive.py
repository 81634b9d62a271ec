"""An archive from anyone: nothing outside the folder, no link, no byte that it does not declare."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.study.keeping.backup import backup_study, restore_study

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
def test_a_path_outside_or_odd_is_refused(name: str, forge, tmp_path: Path) -> None:
    refused(
        forge(lambda files: files.update({name: b""})), tmp_path / "new", "which no backup does"
    )


def test_a_link_is_refused(forge, tmp_path: Path) -> None:
    bad = forge(lambda files: files.update(link=b"/etc/passwd"), links=["link"])
    refused(bad, tmp_path / "new", "'link', which no backup does")


def test_sizes_are_those_declared(forge, tmp_path: Path) -> None:
    def smaller(listing) -> None:
        listing["files"]["zeros"]["bytes"] = 10

    bad = forge(lambda files: files.update(zeros=bytes(10_000_000)), listed=smaller)
    refused(bad, tmp_path / "new", "zeros has another size in the archive")


def test_more_than_the_disk_holds_is_refused(forge, tmp_path: Path) -> None:
    def larger(listing) -> None:
        listing["files"]["study.db"]["bytes"] = 1 << 60

    bad = forge(lambda files: None, listed=larger)
    raw = bad.read_bytes()
    refused(bad, tmp_path / "new", "another size")
    assert bad.read_bytes() == raw


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        (lambda listing: listing["files"].pop("study.toml"), "holds other files than its list"),
        (lambda listing: listing["files"].update(more={"bytes": 0, "sha256": ""}), "other files"),
        (lambda listing: listing["files"]["study.db"].update(sha256="0" * 64), "is not as it was"),
        (lambda listing: listing["tables"].update(labels=15), "other rows than its list"),
        (lambda listing: listing.update(format=2), "a newer evenhand made"),
        (lambda listing: listing.update(more=2), "is damaged, or a newer"),
    ],
)
def test_a_list_that_is_not_of_the_files_is_refused(listed, says, forge, tmp_path: Path) -> None:
    refused(forge(lambda files: None, listed=listed), tmp_path / "new", says)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "CREATE TRIGGER t AFTER INSERT ON labels BEGIN DELETE FROM labels; END",
            "the trigger 't'",
        ),
        ("CREATE VIEW v AS SELECT 1", "the view 'v'"),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "the table 'f'"),
        ("DROP TABLE grades", "no grades"),
        ("UPDATE meta SET value = '99' WHERE key = 'schema'", "newer than this evenhand"),
    ],
)
def test_a_store_with_what_no_store_has_is_refused(sql, says, forge, tmp_path: Path) -> None:
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


def test_settings_that_name_a_store_elsewhere_are_refused(forge, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        files["study.toml"] = files["study.toml"].replace(b'"study.db"', b'"../evil.db"')

    refused(forge(change), tmp_path / "new", "names another store")


def test_half_a_backup_and_none_are_refused(forge, tmp_path: Path) -> None:
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
