"""The database: its address, and what happens while it is away."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError, StoreAway
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk, Answer
from evenhand.study.keeping import move_store
from evenhand.study.store.database import Database, check_store
from evenhand.study.store.schema import meta
from evenhand.study.store.store import Store
from evenhand.study.tables.formats import pieces_of
from evenhand.study.trust import confirm
from evenhand.study.workspace import StoreState, store_state
from harness.postgresql import Postgresql
from harness.studies import task_of
from tests.commands import python

# Addresses


PORT = "127.0.0.1:1"
ADDRESSES = [
    f"postgresql+psycopg://lead:s3cret@{PORT}/none",
    f"postgresql://lead:s3cret@tail9@{PORT}/db",
    f"postgresql://lead:s3cret@tail9/x@{PORT}/db",
    f"postgresql://le@ad:s3cret:tail9@{PORT}/db",
    "postgresql://lead:s3cret@tail9:x@nosuchhost.invalid/db",
    "postgresql://lead:s3cret#tail9@nosuchhost.invalid:notaport/db",
    "postgresql://lead:s3cret@[::1/db",
    "postgresql://lead:s3cret@host:tail9/db",
    "postgresql://lead:s3cret@127.0.0.1:999999/db",
    f"postgresql://lead:s3cret@{PORT}/db?connect_timeout=tail",
    f"postgresql://lead:s3cret%zz@{PORT}/db",
    "postgresql://host/db?application_name=lead:s3cret@tail9",  # a driver takes host for the host
    "postgresql://[",
    "postgresql://:::",
    "://",
    "foo://lead:s3cret@tail9",
    "mysql://lead:s3cret@tail9@h/db",
    "sqlite:////no/such/folder/x.db",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_malformed_is_one_sentence_without_its_password(address, tmp_path):
    """Of version 0.2.0 an @ that was not escaped showed the tail of the password, and a port that
    is no number ended in a traceback.
    """
    reads = [lambda: Database.connect(address, tmp_path, patience=1)]
    if address.startswith("postgresql"):  # so it is where ratings are read from an address
        reads.append(lambda: pieces_of(address, ["label"], {}))
    for read in reads:
        with pytest.raises((InputError, StoreAway)) as refused:
            read()
        said = str(refused.value)
        assert "s3cret" not in said
        assert "tail9" not in said
        assert "\n" not in said


PATIENCE = 0.2


@pytest.fixture
def folder(make_study) -> Path:
    study = make_study(rubrics=["refusal"])
    study.close()
    return study.folder


@pytest.fixture
def server(folder: Path) -> Iterator[Postgresql]:
    """A PostgreSQL of our own, to which the study has moved."""
    server = Postgresql()
    move_store(folder, server.new_database())
    yield server
    server.thaw()
    server.end()


def labelled(desk: AnnotationDesk) -> Answer:
    return Answer(submit_id="s", task_id=task_of(desk, "r").task_id, option_key="1")


def only_when_back(desk: AnnotationDesk, answer: Answer, back) -> None:
    """While the store is away an answer is refused whole; once it is back, it is stored once."""
    with pytest.raises(StoreAway):
        desk.submit_all("r", [answer])
    back()
    assert len(desk.study.ratings()) == 0
    assert desk.submit_all("r", [answer])[0] == "stored"
    assert desk.submit_all("r", [answer])[0] == "duplicate"
    assert len(desk.study.ratings()) == 1


def test_a_lock_of_another_process_is_waited_for_and_then_told(folder):
    with open_study(folder, patience=PATIENCE) as study:
        desk = AnnotationDesk(study)
        answer = labelled(desk)
        other = sqlite3.connect(folder / "study.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert store_state(study) == StoreState(read=True, write=False)
        only_when_back(desk, answer, other.close)


def test_a_store_that_one_has_alone_is_opened_by_nobody_else(folder):
    alone = Store.connect("study.db", folder, alone=True)
    with alone.only_user(), pytest.raises(InputError, match="has the study to itself"):
        Store.connect("study.db", folder, patience=PATIENCE).schema_version()
    alone.close()
    with open_study(folder) as study:
        assert study.ratings().empty


def test_a_store_that_is_not_there_is_made_where_it_is_asked_for_alone(folder):
    with pytest.raises(StoreAway, match=r"store other\.db is missing"):
        Store.connect("other.db", folder)
    assert not (folder / "other.db").exists()
    made = Store.connect("other.db", folder, create=True)
    made.create_tables()
    with pytest.raises(InputError, match="holds a study already"):
        made.create_tables()
    made.close()
    for name in ("../elsewhere.db", "sqlite:////tmp/elsewhere.db"):
        with pytest.raises(InputError, match="store"):
            Store.connect(name, folder)


def test_a_password_from_the_environment_goes_only_where_the_operator_says(folder, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "secret")
    for own in ("ann:word@db/x", "ann@db/x?password=word"):
        check_store(f"postgresql://{own}", folder)
    with pytest.raises(InputError, match="PGPASSWORD"):
        check_store("postgresql://ann@db/x", folder)
    confirm("postgresql://ann@db/x")
    check_store("postgresql://ann@db/x", folder)


def test_nobody_waits_for_long_behind_a_thread_that_waits(folder):
    with open_study(folder, patience=PATIENCE) as study:
        holds, over = threading.Event(), threading.Event()

        def hold() -> None:
            with study.store.read():
                holds.set()
                over.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        assert holds.wait(30)
        with pytest.raises(StoreAway, match="others wait"):
            study.subjects()
        over.set()
        thread.join()
        assert study.subjects() == ["s1", "s2"]


def test_a_full_disk_refuses_an_answer_whole_and_takes_it_later(folder):
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        answer = labelled(desk)
        size = (folder / "study.db-wal").stat().st_size
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))  # Python ignores SIGXFSZ
        try:
            only_when_back(desk, answer, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, usual))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@pytest.mark.slow
def test_a_store_out_of_reach_is_told_on_the_terminal_in_one_sentence(folder):
    moved = folder / "moved.db"
    shutil.move(folder / "study.db", moved)
    done = python("-m", "evenhand", "progress", folder)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "store study.db is missing" in done.stderr
    (folder / "study.db").mkdir()
    with pytest.raises(StoreAway, match="missing"):
        open_study(folder)
    (folder / "study.db").rmdir()
    (folder / "study.db").write_bytes(b"no database" * 1000)
    with pytest.raises(InputError, match="is no store of an evenhand study, or it is damaged"):
        open_study(folder)
    shutil.move(moved, folder / "study.db")
    with open_study(folder) as study:
        assert store_state(study) == StoreState(read=True, write=True)


@pytest.mark.slow
def test_a_postgresql_that_crashed_or_is_frozen_is_away_and_the_same_study_goes_on(folder, server):
    with open_study(folder, patience=PATIENCE) as study:
        desk = AnnotationDesk(study)
        answer = labelled(desk)
        server.freeze()
        begun = time.monotonic()
        for _ in range(2):  # a connection that was there, and a new one
            with pytest.raises(StoreAway):
                desk.submit_all("r", [answer])
        assert time.monotonic() - begun < 15
        server.thaw()
        server.crash()
        with pytest.raises(StoreAway):
            open_study(folder)
        assert not store_state(study).read
        only_when_back(desk, answer, server.start)
        with (
            study.store.write(),
            open_study(folder, patience=PATIENCE) as other,  # as another process has it
            pytest.raises(StoreAway, match="lock"),
            other.store.write(),
        ):
            pass


@pytest.mark.slow
def test_a_process_frozen_inside_a_write_gives_the_lock_back(folder, server):
    """It stops in the middle of a write and stays so: another writes before 15 seconds are over,
    and what the first was about to write is not there, nor when it goes on.
    """
    command = [sys.executable, "-c", FREEZES, str(folder)]
    frozen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert frozen.stdout is not None
        assert frozen.stdout.readline() == "inside\n"
        os.kill(frozen.pid, signal.SIGSTOP)
        with open_study(folder, patience=PATIENCE) as study:
            with pytest.raises(StoreAway, match="lock"), study.store.write():
                pass
            begun = time.monotonic()
            while store_state(study) != StoreState(read=True, write=True):
                assert time.monotonic() - begun < 15
            os.kill(frozen.pid, signal.SIGCONT)
            assert frozen.stdout.readline() == "away\n"
            with study.store.read() as connection:
                kept = connection.execute(sa.select(meta.c.key)).scalars().all()
            assert not any(key.startswith("frozen") for key in kept)
    finally:
        frozen.kill()
        frozen.wait()


FREEZES = """
import sys
from evenhand.errors import StoreAway
from evenhand.study import open_study
from evenhand.study.store.schema import meta
import sqlalchemy as sa, time
with open_study(sys.argv[1], patience=1.5) as study:
    try:
        with study.store.write() as connection:
            connection.execute(sa.insert(meta).values(key="frozen", value=""))
            print("inside", flush=True)
            time.sleep(1)
            connection.execute(sa.insert(meta).values(key="frozen too", value=""))
    except StoreAway:
        print("away", flush=True)
"""
