"""A study between stores and between versions: every row the same, or as it was."""

import contextlib
import gc
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError, StoreAway
from evenhand.study import keeping, open_study
from evenhand.study.desk.claims import oversight
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.keeping import (
    backup_study,
    check_archive,
    copy_tables,
    found_tables,
    move_store,
    restore_study,
    states,
    upgrade_store,
)
from evenhand.study.settings.study_toml import change_config, read_config
from evenhand.study.store.database import Database
from evenhand.study.store.schema import SCHEMA_VERSION, metadata
from harness.studies import work_through


def once_it_has_noticed(run: Callable[[], object]) -> None:
    """Run it when the server, back again, knows that the former connections are gone."""
    gc.collect()  # what has failed holds its connection, as long as its traceback is kept
    end = time.monotonic() + 15
    while time.monotonic() < end:
        with contextlib.suppress(InputError):  # the study is open elsewhere
            run()
            return
        time.sleep(0.2)
    run()


HANGS = "the store (does not answer|cannot be copied there|.* cannot be opened): .+$"


@pytest.fixture
def folder(labelled) -> Path:
    """A study with labels, closed."""
    study = labelled()
    study.close()
    return study.folder


def rows_of(location: str, folder: Path):
    store = Database.connect(location, folder)
    with store.read() as connection:
        found = states(connection, found_tables(connection))
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


@pytest.mark.slow
def test_there_and_back(labelled, new_postgresql):
    study = labelled()
    folder, ratings, url = study.folder, study.ratings(), new_postgresql()
    comment = "# a comment of the lead's\n"
    settings = folder / "study.toml"
    settings.write_text(comment + settings.read_text())
    study.close()
    moved = move_store(folder, url)
    assert moved["labels"].rows == 14
    assert moved == rows_of("study.db", folder) == rows_of(url, folder)
    assert differences(url, folder) == []
    assert settings.read_text().startswith(comment)
    with open_study(folder) as there:
        assert there.config.store == url
        assert there.ratings().equals(ratings)
        work_through(AnnotationDesk(there), "ann", 1)  # events are counted on from the last one
    assert rows_of("study.db", folder) == moved
    with pytest.raises(InputError, match="another state of this one"):
        move_store(folder, "study.db")
    back = move_store(folder, "back.db")
    assert back["labels"].rows == 15
    assert back == rows_of(url, folder) == rows_of("back.db", folder)
    assert differences("back.db", folder) == []
    assert (folder / "back.db").stat().st_mode & 0o777 == 0o600
    (folder / "study.db-wal").touch()  # as a killed process leaves it
    backup_study(folder, folder.parent / "b.zip")  # former stores are not in it
    assert sorted(check_archive(folder.parent / "b.zip").files) == [
        "rubrics/refusal.toml", "study.db", "study.toml",
    ]  # fmt: skip
    assert restore_study(folder.parent / "b.zip", folder.parent / "again").labels == 15
    with open_study(folder) as again:
        assert again.config.store == "back.db"
        assert again.ratings().iloc[:14].equals(ratings.iloc[:14])


@pytest.mark.slow
def test_a_difference_would_be_found(labelled):
    study = labelled()
    before = rows_of("study.db", study.folder)
    changed = sa.text("UPDATE labels SET seconds = 0.10000000000000002 WHERE event_id = 3")
    with study.store.write() as connection:
        connection.execute(changed)
    after = rows_of("study.db", study.folder)
    assert [name for name in before if before[name] != after[name]] == ["labels"]
    with study.store.write() as connection:
        connection.execute(sa.text("DROP INDEX labels_by_rater"))
        connection.execute(sa.text("ALTER TABLE remarks DROP COLUMN reason"))
    assert len(differences("study.db", study.folder)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
@pytest.mark.parametrize("at", ["copy_tables", "change_config"])
def test_a_killed_move_leaves_the_study_and_can_be_run_again(at, to, folder, killed, request):
    place = "new.db" if to == "sqlite" else request.getfixturevalue("new_postgresql")()
    before = rows_of("study.db", folder)
    killed("move_store", at, folder, place)
    assert read_config(folder).store == "study.db"
    assert rows_of("study.db", folder) == before
    assert move_store(folder, place) == before
    assert read_config(folder).store == place


@pytest.mark.slow
def test_nobody_may_have_it_open(labelled, new_postgresql):
    """What is written to the former store afterwards would be lost."""
    study, url = labelled(), new_postgresql()
    with pytest.raises(InputError, match="open elsewhere; stop `evenhand annotate`"):
        move_store(study.folder, url)
    study.close()
    move_store(study.folder, url)
    with open_study(study.folder), pytest.raises(InputError, match="open elsewhere"):
        move_store(study.folder, "back.db")
    assert not (study.folder / "back.db").exists()


@pytest.mark.slow
def test_who_opened_it_meanwhile_does_not_write_to_the_former_store(folder, monkeypatch):
    from evenhand.study import workspace

    connect = workspace.Store.open

    def moved_first(location: str, folder: Path, **options: float):
        move_store(folder, "new.db")
        return connect(location, folder, **options)

    monkeypatch.setattr(workspace.Store, "open", moved_first)
    with pytest.raises(InputError, match="moved to another store meanwhile"):
        open_study(folder)


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("study.db", "where the study's store is already"),
        ("../study.db", "takes the URL"),
        ("mysql://host/db", "takes the URL"),
        ("", "takes the URL"),
        ("rubrics", "takes the URL"),
        ("study.toml", "cannot be copied there: file is not a database"),
        ("${NOT_SET}", "NOT_SET, which is not set"),
    ],
)
def test_a_place_that_is_none_is_refused(to, says, folder):
    before = (folder / "study.toml").read_bytes()
    with pytest.raises(InputError, match=says):
        move_store(folder, to)
    assert (folder / "study.toml").read_bytes() == before


@pytest.mark.slow
def test_what_postgresql_cannot_keep_is_said(labelled, new_postgresql):
    study = labelled()
    with study.store.write() as connection:
        zero = sa.text("UPDATE responses SET response = :r WHERE rowid = 1")
        connection.execute(zero, {"r": "a\0"})
    study.close()
    url = new_postgresql()
    with pytest.raises(InputError, match=r"a row of responses cannot be copied: .*NUL"):
        move_store(study.folder, url)
    assert read_config(study.folder).store == "study.db"
    assert rows_of(url, study.folder) == {}


@pytest.mark.slow
def test_a_password_need_not_stand_in_study_toml(folder, new_postgresql, monkeypatch):
    url = sa.make_url(new_postgresql()).set(password="ge:he/im@")
    text = url.render_as_string(hide_password=False).replace("ge%3Ahe%2Fim%40", "${PASSWORD}")
    assert "${PASSWORD}" in text
    monkeypatch.setenv("PASSWORD", "ge:he/im@")
    move_store(folder, text)
    with open_study(folder) as there:
        assert there.config.store == text
        assert there.store.engine.url.password == "ge:he/im@"
        assert len(there.ratings()) == 16
    monkeypatch.delenv("PASSWORD")
    with pytest.raises(InputError, match="PASSWORD, which is not set"):
        open_study(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "at"),
    [
        ("former", "copy_tables"),
        ("new", ""),
        pytest.param("former", "", marks=pytest.mark.thorough),
        pytest.param("new", "copy_tables", marks=pytest.mark.thorough),
    ],
)
def test_a_database_that_hangs_ends_a_move_in_a_sentence(
    which, at, folder, new_postgresql, hanging
):
    store, new = "study.db", hanging.new_database()
    if which == "former":
        move_store(folder, new)
        store, new = new, new_postgresql()
    hanging.hangs(keeping, at)
    hanging.ends(lambda: move_store(folder, new), (StoreAway, InputError), HANGS)
    assert read_config(folder).store == store
    hanging.goes_on()
    once_it_has_noticed(lambda: move_store(folder, new))
    assert read_config(folder).store == new


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_copies_belongs_to_whom_the_folder_belongs_to(folder, new_postgresql):
    for entry in (folder, *folder.rglob("*")):
        os.chown(entry, 12345, 12345)
    for place in (new_postgresql(), "again.db"):
        move_store(folder, place)
        owners = {entry.name: entry.stat().st_uid for entry in (folder, *folder.rglob("*"))}
        assert set(owners.values()) == {12345}, owners
    assert (folder / "again.db").exists()


# A study of any released version opens after an upgrade, with every row, or is as it was


@pytest.fixture
def old_study(write_old_study, tmp_path: Path) -> Path:
    return write_old_study(tmp_path / "old")


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
    upgrade_store(folder)
    with open_study(folder) as study:
        ratings = study.ratings()
        assert ratings["rater_id"].value_counts().to_dict() == {
            "ann": 6, "ben": 6, "baseline:lexical": 6,
        }  # fmt: skip
        assert ratings["label"].tolist()[:6] == ["1", "2", "3", "1", "2", "3"]
        assert ratings["seconds"].tolist()[:6] == [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
        assert list(oversight(study.store).exclusions) == ["ben"]
        assert work_through(AnnotationDesk(study), "cem", 1) == 1
    assert differences(read_config(folder).store, folder) == []


@pytest.mark.slow
def test_a_study_of_0_1_0_opens_after_the_upgrade(old_study, tmp_path):
    before, of = content(old_study / "study.db"), columns(old_study / "study.db")
    assert len(before["labels"]) == 12
    with pytest.raises(InputError, match="run `evenhand store upgrade`"):
        open_study(old_study)
    done = upgrade_store(old_study)
    assert (done.before, done.now) == (1, int(SCHEMA_VERSION))
    meta = [(key, SCHEMA_VERSION if key == "schema" else value) for key, value in before["meta"]]
    assert content(old_study / "study.db", of) == before | {"meta": meta}
    assert upgrade_store(old_study).backup is None
    upgraded(old_study)
    with open_study(old_study), pytest.raises(InputError, match="open elsewhere"):
        upgrade_store(old_study)
    assert done.backup is not None
    restore_study(done.backup, tmp_path / "before")
    assert content(tmp_path / "before" / "study.db") == before
    upgraded(tmp_path / "before")


def test_an_upgrade_closes_what_0_1_0_left_open_to_others(old_study):
    (old_study / "backups").mkdir(mode=0o755)
    for entry in (old_study, *old_study.rglob("*")):
        entry.chmod(0o755 if entry.is_dir() else 0o644)
    upgrade_store(old_study)
    for entry in (old_study, *old_study.rglob("*")):
        assert entry.stat().st_mode & 0o077 == 0, entry


@pytest.mark.slow
def test_a_study_of_0_1_0_on_postgresql(old_study, new_postgresql):
    url = new_postgresql()
    old = Database.connect("study.db", old_study)
    there = Database.connect(url, old_study)
    with old.read() as source, there.write() as target:
        copy_tables(source, target)
    old.close()
    there.close()
    change_config(old_study, {"": {"store": url}})
    upgraded(old_study)


@pytest.mark.slow
@pytest.mark.parametrize("at", [pytest.param("", marks=pytest.mark.thorough), "migrate"])
def test_an_upgrade_of_a_database_that_hangs_ends_in_a_sentence(at, old_study, hanging):
    move_store(old_study, hanging.new_database())
    hanging.hangs(keeping, at)
    match = r"does not answer|cannot be opened"
    hanging.ends(lambda: upgrade_store(old_study), StoreAway, match)
    hanging.goes_on()
    once_it_has_noticed(lambda: upgrade_store(old_study))
    upgraded(old_study)


def test_grades_that_another_server_gave_are_named_for_it(old_study):
    """0.1.0 kept them under the provider's name alone, so a mock's counted as the model's."""
    said = [
        ("p0001|s1|a", "anthropic:m", "http://127.0.0.1:9/"),
        ("p0001|s1|b", "anthropic:m#7707ad", "http://127.0.0.1:9/"),
        ("p0002|s1|a", "anthropic:m", "https://api.anthropic.com/"),
        ("p0002|s1|b", "openai:m", "https://gateway.example/v1/"),
        ("p0003|s1|a", "openai:m", "https://api.openai.com/v1/"),
        ("p0003|s1|b", "openai:m@http://h/v1", "http://h/v1/"),
    ]
    with closing(sqlite3.connect(old_study / "study.db")) as connection:
        for unit, rater, address in said:
            connection.execute(
                "UPDATE grades SET rater_id = ?, provenance = ? WHERE unit_id = ?",
                (rater, json.dumps({"base_url": address}), unit),
            )
        connection.commit()
    upgrade_store(old_study)
    with open_study(old_study) as study:
        ratings = study.ratings()
    graders = ratings[ratings["rater_kind"] == "model"].set_index("unit_id")["rater_id"]
    assert graders.to_dict() == {
        "p0001|s1|a": "anthropic:m@http://127.0.0.1:9",
        "p0001|s1|b": "anthropic:m@http://127.0.0.1:9#7707ad",
        "p0002|s1|a": "anthropic:m",
        "p0002|s1|b": "openai:m@https://gateway.example/v1",
        "p0003|s1|a": "openai:m",
        "p0003|s1|b": "openai:m@http://h/v1",
    }


@pytest.mark.slow
@pytest.mark.parametrize("at", ["migrate", "backup_of"])
def test_an_upgrade_that_fails_has_changed_nothing(at, old_study, monkeypatch):
    before = content(old_study / "study.db")
    run = getattr(keeping, at)

    def fail(*arguments: object) -> None:
        run(*arguments)
        raise OSError("no space left on device")

    monkeypatch.setattr(keeping, at, fail)
    with pytest.raises(OSError, match="no space"):
        upgrade_store(old_study)
    assert content(old_study / "study.db") == before
    monkeypatch.undo()
    upgraded(old_study)


def test_a_lost_row_is_refused(old_study, monkeypatch):
    before = content(old_study / "study.db")

    def careless(connection: sa.Connection, _version: int) -> None:
        connection.execute(sa.text("DELETE FROM labels WHERE event_id = 1"))

    monkeypatch.setattr(keeping, "migrate", careless)
    with pytest.raises(InputError, match="would have lost rows"):
        upgrade_store(old_study)
    assert content(old_study / "study.db") == before


@pytest.mark.slow
def test_a_killed_upgrade_can_be_run_again(old_study, killed):
    before = content(old_study / "study.db")
    killed("upgrade_store", "migrate", old_study)
    assert content(old_study / "study.db") == before
    upgraded(old_study)


@pytest.mark.parametrize("version", ["99", "0", "banana"])
def test_a_version_that_is_not_known(version, old_study):
    with closing(sqlite3.connect(old_study / "study.db")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", [version])
        connection.commit()
    says = {"99": "newer than this evenhand", "0": "no evenhand wrote", "banana": "damaged"}
    with pytest.raises(InputError, match=says[version]):
        upgrade_store(old_study)
    shutil.rmtree(old_study / "backups", ignore_errors=True)
    with pytest.raises(InputError, match=r"newer than|damaged|run `evenhand store upgrade`"):
        open_study(old_study)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("ALTER TABLE remarks DROP COLUMN reason", "table remarks lacks the column reason"),
        ("DROP TABLE look_events", "table look_events lacks the column"),
    ],
)
def test_a_missing_column_is_a_sentence(sql, says, make_study):
    study = make_study()
    with study.store.write() as connection:
        connection.execute(sa.text(sql))
    study.close()
    with pytest.raises(InputError, match=says):
        open_study(study.folder)
