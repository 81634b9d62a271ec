"""Backups that are kept without hands: one a night, tried, and the oldest removed."""

from __future__ import annotations

import shutil
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study import open_study
from evenhand.study.keeping import backup
from evenhand.study.keeping.backup import keep_backups, restore_study
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.meta import hours_since_backup
from evenhand.study.store.schema import meta


class Nights:
    """A night later with every backup."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 1, 3, 15, tzinfo=UTC)

    def now(self, _: object) -> datetime:
        self._now += timedelta(days=1)
        return self._now


@pytest.fixture
def nights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "datetime", Nights())


def names(place: Path) -> list[str]:
    return sorted(each.name for each in place.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_the_latest_are_kept_and_others_are_left(
    database: str, labelled, tmp_path: Path, nights: None, request: pytest.FixtureRequest
) -> None:
    url = {} if database == "sqlite" else {"store": request.getfixturevalue("new_postgresql")()}
    study = labelled(**url)
    place = tmp_path / "backups"
    place.mkdir()
    # Another study in a folder of the same name, and a file of somebody's.
    shutil.copytree(study.folder, tmp_path / "other" / study.folder.name)
    if database == "sqlite":
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
    labelled, tmp_path: Path, nights: None, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_what_keeps_nothing_is_refused(labelled, tmp_path: Path, keep: int) -> None:
    study = labelled()
    with pytest.raises(InputError, match="--keep must be 1 or more"):
        keep_backups(study.folder, tmp_path, keep)
    with pytest.raises(InputError, match="no folder"):
        keep_backups(study.folder, tmp_path / "absent", 1)
