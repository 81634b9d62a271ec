"""A study between SQLite and PostgreSQL: every row the same, and the switch is the last step."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError, StoreAway
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.keeping import moving
from evenhand.study.keeping.backup import backup_study, check_archive, restore_study
from evenhand.study.keeping.copying import found_tables, states
from evenhand.study.keeping.moving import move_store
from evenhand.study.settings.study_toml import read_config
from evenhand.study.store.database import Database
from evenhand.study.store.schema import metadata
from harness.postgresql import Postgresql
from harness.studies import submit, task_of


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
        desk = AnnotationDesk(there)  # events are counted on from the last one
        assert submit(desk, "ann", task_of(desk, "ann").task_id, "1", "on") == "stored"
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
    with study.store.write() as connection:
        connection.execute(
            sa.text("UPDATE labels SET seconds = 0.10000000000000002 WHERE event_id = 3")
        )
    after = rows_of("study.db", study.folder)
    assert [name for name in before if before[name] != after[name]] == ["labels"]
    with study.store.write() as connection:
        connection.execute(sa.text("DROP INDEX labels_by_rater"))
        connection.execute(sa.text("ALTER TABLE remarks DROP COLUMN reason"))
    assert len(differences("study.db", study.folder)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
@pytest.mark.parametrize("at", ["copy_tables", "change_config"])
def test_a_killed_move_leaves_the_study_and_can_be_run_again(at, to, labelled, killed, request):
    study = labelled()
    study.close()
    place = "new.db" if to == "sqlite" else request.getfixturevalue("new_postgresql")()
    before = rows_of("study.db", study.folder)
    killed("moving", "move_store", at, study.folder, place)
    assert read_config(study.folder).store == "study.db"
    assert rows_of("study.db", study.folder) == before
    assert move_store(study.folder, place) == before
    assert read_config(study.folder).store == place


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
def test_who_opened_it_meanwhile_does_not_write_to_the_former_store(labelled, monkeypatch):
    study = labelled()
    study.close()
    from evenhand.study import workspace

    connect = workspace.Store.open

    def moved_first(location: str, folder: Path, **options: float):
        move_store(folder, "new.db")
        return connect(location, folder, **options)

    monkeypatch.setattr(workspace.Store, "open", moved_first)
    with pytest.raises(InputError, match="moved to another store meanwhile"):
        open_study(study.folder)


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
def test_a_place_that_is_none_is_refused(to, says, labelled):
    study = labelled()
    study.close()
    before = (study.folder / "study.toml").read_bytes()
    with pytest.raises(InputError, match=says):
        move_store(study.folder, to)
    assert (study.folder / "study.toml").read_bytes() == before


@pytest.mark.slow
def test_what_postgresql_cannot_keep_is_said(labelled, new_postgresql):
    study = labelled()
    with study.store.write() as connection:
        connection.execute(
            sa.text("UPDATE responses SET response = :r WHERE rowid = 1"), {"r": "a\0"}
        )
    study.close()
    url = new_postgresql()
    with pytest.raises(InputError, match=r"a row of responses cannot be copied: .*NUL"):
        move_store(study.folder, url)
    assert read_config(study.folder).store == "study.db"
    assert rows_of(url, study.folder) == {}


@pytest.mark.slow
def test_a_password_need_not_stand_in_study_toml(labelled, new_postgresql, monkeypatch):
    study = labelled()
    study.close()
    url = sa.make_url(new_postgresql()).set(password="ge:he/im@")
    text = url.render_as_string(hide_password=False).replace("ge%3Ahe%2Fim%40", "${PASSWORD}")
    assert "${PASSWORD}" in text
    monkeypatch.setenv("PASSWORD", "ge:he/im@")
    move_store(study.folder, text)
    with open_study(study.folder) as there:
        assert there.config.store == text
        assert there.store.engine.url.password == "ge:he/im@"
        assert len(there.ratings()) == 16
    monkeypatch.delenv("PASSWORD")
    with pytest.raises(InputError, match="PASSWORD, which is not set"):
        open_study(study.folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "at"),
    [
        ("former", "within"),
        ("new", "before"),
        pytest.param("former", "before", marks=pytest.mark.thorough),
        pytest.param("new", "within", marks=pytest.mark.thorough),
    ],
)
def test_a_database_that_hangs_ends_a_move_in_a_sentence(
    which, at, labelled, new_postgresql, monkeypatch
):
    study, server = labelled(), Postgresql()
    folder, store, new = study.folder, "study.db", server.new_database()
    study.close()
    monkeypatch.setattr(moving, "SILENT", 2.0)
    try:
        if which == "former":
            move_store(folder, new)
            store, new = new, new_postgresql()
        if at == "before":
            server.freeze()
        else:
            copy = moving.copy_tables

            def hang(*given):
                server.freeze()
                return copy(*given)

            monkeypatch.setattr(moving, "copy_tables", hang)
        begun = time.monotonic()
        with pytest.raises((StoreAway, InputError), match=HANGS):
            move_store(folder, new)
        assert time.monotonic() - begun < 15
        assert read_config(folder).store == store
        server.thaw()
        monkeypatch.undo()
        once_it_has_noticed(lambda: move_store(folder, new))
        assert read_config(folder).store == new
    finally:
        server.thaw()
        server.end()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_copies_belongs_to_whom_the_folder_belongs_to(labelled, new_postgresql):
    study = labelled()
    folder, url = study.folder, new_postgresql()
    study.close()
    for entry in (folder, *folder.rglob("*")):
        os.chown(entry, 12345, 12345)
    for place in (url, "again.db"):
        move_store(folder, place)
        owners = {entry.name: entry.stat().st_uid for entry in (folder, *folder.rglob("*"))}
        assert set(owners.values()) == {12345}, owners
    assert (folder / "again.db").exists()
