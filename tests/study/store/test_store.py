"""The store: its address, what happens while it is away; labels, grades, replies as events."""

import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.errors import InputError, StoreAway
from evenhand.reporting.exporting import exported_ratings
from evenhand.reporting.ratings_file.declared import prices_of
from evenhand.study import Study, open_study
from evenhand.study.access import new_link_token, open_link
from evenhand.study.desk.claims import decisions_table, exclude, oversight, pause, readmit
from evenhand.study.desk.desk import AnnotationDesk, Answer, Flag
from evenhand.study.keeping import move_store
from evenhand.study.lead.disagreements import decide, sort_disagreement
from evenhand.study.lead.imports import import_ratings
from evenhand.study.session.sessions import raters_with_languages
from evenhand.study.settings.study_toml import BackgroundQuestion
from evenhand.study.store import schema
from evenhand.study.store import store as stores
from evenhand.study.store.database import Database, append, check_store, resolved
from evenhand.study.store.grades import AttackedGrade, GradeAttempt, tried_rater
from evenhand.study.store.logs import decisions, replies
from evenhand.study.tables import ratings as tables
from evenhand.study.tables.formats import pieces_of, read_table, write_table
from evenhand.study.tables.ratings import RATINGS_COLUMNS, Mark, attacked_text, validate_ratings
from evenhand.study.trust import confirm
from evenhand.study.workspace import StoreState, store_state
from harness import studies
from harness.postgresql import Postgresql
from tests.cases import refused
from tests.commands import python
from tests.ratings_files import read_ratings

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
        assert not any(part in str(refused.value) for part in ("s3cret", "tail9", "\n"))


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
    return Answer(submit_id="s", task_id=studies.task_of(desk, "r").task_id, option_key="1")


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
        assert store_state(study) == StoreState(can_read=True, can_write=False)
        only_when_back(desk, answer, other.close)


def test_a_store_that_one_has_alone_is_opened_by_nobody_else(folder):
    alone = stores.Store.connect("study.db", folder, alone=True)
    with alone.only_user(), pytest.raises(InputError, match="has the study to itself"):
        stores.Store.connect("study.db", folder, patience=PATIENCE).schema_version()
    alone.close()
    with open_study(folder) as study:
        assert study.ratings().empty


def test_a_store_that_is_not_there_is_made_where_it_is_asked_for_alone(folder):
    with pytest.raises(StoreAway, match=r"store other\.db is missing"):
        stores.Store.connect("other.db", folder)
    assert not (folder / "other.db").exists()
    made = stores.Store.connect("other.db", folder, create=True)
    assert (folder / "other.db").stat().st_mode & 0o777 == 0o600
    made.create_tables()
    refused("holds a study already", made.create_tables)
    secret = sa.select(schema.meta.c.value).where(schema.meta.c.key == "secret")
    assert [len(bytes.fromhex(each)) for each in made.values(secret)] == [32]
    made.close()


@pytest.mark.parametrize(
    ("location", "sent"),
    [
        ("study.db", ""),
        ("postgresql://ann:word@db/x", ""),
        ("postgresql://ann@db/x?password=word", ""),
        ("postgresql://ann:${EVENHAND_WORD}@db/x", ""),
        ("postgresql://ann:${WORD}@db/x", "WORD"),
        ("${WORD}", "WORD"),
        ("postgresql://ann@db/x", "PGPASSWORD"),
        ("postgresql://ann@db/x?hostaddr=127.0.0.1", "PGPASSFILE"),
        ("postgresql://ann:${EVENHAND_EMPTY}@db/x", "~/.pgpass"),
        ("postgresql://ann:word@db/x?passfile=f", "passfile"),
        ("../elsewhere.db", "not in the study's folder"),
        ("sqlite:////tmp/elsewhere.db", "not in the study's folder"),
    ],
)
def test_a_secret_goes_only_where_the_operator_says(folder, monkeypatch, location, sent):
    given = {sent if sent[:2] == "PG" else "PGPASSWORD": "secret", "EVENHAND_WORD": "secret"}
    if sent == "~/.pgpass":
        (folder / ".pgpass").touch()
        given = {"HOME": str(folder)}
    for name, setting in (given | {"EVENHAND_EMPTY": ""}).items():
        monkeypatch.setenv(name, setting)
    if not sent:
        return check_store(location, folder)
    refused(sent, check_store, location, folder)
    refused(sent, Database.connect, location, folder)
    confirm(location)
    check_store(location, folder)
    with monkeypatch.context() as forgets:
        forgets.setattr("evenhand.study.trust._confirmed", set())
        refused(sent, check_store, location, folder)
    return None


def test_who_makes_a_store_has_said_where(folder, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "secret")
    made = {"create": True, "patience": 1}
    with pytest.raises(StoreAway):
        Database.connect(f"postgresql://ann@{PORT}/made", folder, **made).schema_version()
    check_store(f"postgresql://ann@{PORT}/made", folder)
    refused("cannot be read", Database.connect, f"postgresql://ann:%00@{PORT}/x", folder, **made)


def test_an_address_takes_its_variables_from_the_environment(monkeypatch):
    monkeypatch.setenv("WORD", "p@/:w")
    monkeypatch.setenv("URL", "postgres://h/d?a=b")
    driver = "postgresql+psycopg://"
    for location, found in (
        ("study.db", "study.db"),
        ("${URL}", f"{driver}h/d?a=b"),
        ("postgresql://u:${WORD}@h/d", f"{driver}u:p%40%2F%3Aw@h/d"),
        ("sqlite:///${WORD}", "sqlite:///p%40%2F%3Aw"),
    ):
        assert resolved(location) == found
    refused("the environment variable NO_WORD, which is not set", resolved, "${NO_WORD}")


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("UPDATE meta SET value = '3' WHERE key = 'schema'", "of version 3, newer than this"),
        ("UPDATE meta SET value = '1' WHERE key = 'schema'", "version 1, this evenhand reads 2; r"),
        ("UPDATE meta SET value = 'x' WHERE key = 'schema'", "is no store of an evenhand study"),
        ("DELETE FROM meta WHERE key = 'schema'", "is no store of an evenhand study"),
        ("DROP TABLE meta", "is no store of an evenhand study"),
        ("ALTER TABLE remarks DROP COLUMN reason", "table remarks lacks the column reason"),
        ("DROP TABLE look_events", "table look_events lacks the column"),
    ],
)
def test_tables_that_are_not_the_programs_are_refused(folder, sql, says):
    with closing(sqlite3.connect(folder / "study.db", isolation_level=None)) as connection:
        connection.execute(sql)
    refused(says, stores.Store.open, "study.db", folder)
    refused(says, open_study, folder)


def test_whoever_changes_a_table_raises_the_version():
    """A digest of all tables: where it is another, so must be SCHEMA_VERSION, and this test."""
    facts: list[object] = []
    for table in schema.metadata.sorted_tables:
        for each in table.columns:
            default = each.default.arg if each.default is not None and each.default.is_scalar else 0
            stored = getattr(each.server_default, "arg", None), each.unique, each.autoincrement
            kind = type(each.type).__name__, getattr(each.type, "none_as_null", None)
            facts.append((str(each), *kind, each.nullable, each.primary_key, default, *stored))
        grouped = (*table.indexes, *table.constraints)
        facts += sorted((str(each.name), *map(str, each.columns)) for each in grouped)
    digest = sha256(repr(facts).encode()).hexdigest()[:16]
    assert (schema.SCHEMA_VERSION, digest) == ("2", "593930245b25ef9d")


@pytest.mark.journey
def test_a_store_is_for_its_only_user_alone(make_study, database, monkeypatch):
    monkeypatch.setattr("evenhand.study.store.database._ALONE_PATIENCE", 0.1)
    study = make_study(**database)
    alone = stores.Store.connect(study.config.store, study.folder, alone=True)
    for _ in range(2):
        with pytest.raises(InputError, match="open elsewhere; stop"), alone.only_user():
            pass
    study.close()
    with alone.only_user() as connection:
        keys = connection.execute(sa.select(schema.meta.c.key)).scalars().all()
        assert keys == ["schema", "secret"]
    alone.close()


@pytest.mark.journey
def test_postgresql_bounds_every_wait_and_a_read_sees_one_state(make_study, new_postgresql):
    study = make_study(store=new_postgresql())
    names = ("transaction_isolation", "lock_timeout", "idle_in_transaction_session_timeout")

    def shown(connection: sa.Connection) -> list[str]:
        return [connection.execute(sa.text(f"SHOW {name}")).scalar_one() for name in names]

    with open_study(study.folder, patience=0.4) as other:
        client = {"connect_timeout": "5", "keepalives_idle": "10", "tcp_user_timeout": "15000"}
        for begin, isolation, idle in (
            (other.store.write, "read committed", "10s"),
            (partial(other.store.write, bounded=False), "read committed", "0"),
            (other.store.read, "repeatable read", "0"),
        ):
            with begin() as connection:
                assert shown(connection) == [isolation, "400ms", idle]
                parameters = connection.connection.driver_connection.info.get_parameters()
                assert client.items() <= parameters.items()
        with study.store.write():
            assert other.store.values(sa.select(schema.meta.c.key))  # a reader does not wait
            with pytest.raises(StoreAway, match="lock"), other.store.write():
                pass


@pytest.mark.journey
def test_a_server_that_is_silent_within_a_transaction_is_given_up(make_study, new_postgresql):
    study = make_study(store=new_postgresql())
    for limits in ({"silent": 1.2}, {"patience": 0.15}):  # of a patience eight times as long
        store = Database.connect(study.config.store, study.folder, **limits)
        with store.read() as connection:
            for _ in range(2 if "silent" in limits else 1):  # each answer is a sign of life
                connection.execute(sa.text("SELECT pg_sleep(0.7)"))
        with pytest.raises(StoreAway), store.read() as connection:
            connection.execute(sa.text("SELECT pg_sleep(30)"))
        assert store.values(sa.select(sa.literal(1))) == [1]  # by a new connection
        store.close()


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
            study.store.subjects()
        over.set()
        thread.join()
        assert study.store.subjects() == ["s1", "s2"]


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
    refused("is no store of an evenhand study, or it is damaged", open_study, folder)
    shutil.move(moved, folder / "study.db")
    with open_study(folder) as study:
        assert store_state(study) == StoreState(can_read=True, can_write=True)


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
        assert not store_state(study).can_read
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
            while store_state(study) != StoreState(can_read=True, can_write=True):
                assert time.monotonic() - begun < 15
            os.kill(frozen.pid, signal.SIGCONT)
            assert frozen.stdout.readline() == "away\n"
            kept = study.store.values(sa.select(schema.meta.c.key))
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


def attempt(unit: str, **fields: object) -> GradeAttempt:
    usual = {"rater_id": "g", "rubric": "refusal", "rubric_hash": "h"}
    return GradeAttempt(unit_id=unit, **usual | fields)  # type: ignore[arg-type]


def first_unit(study: Study) -> str:
    return study.rubric_units(study.rubrics["refusal"])[0]


def test_sqlite_is_durable_in_wal_mode_and_a_writer_has_it_alone_until_it_is_done(make_study):
    study = make_study()
    for name, value in (("journal_mode", "wal"), ("synchronous", 2)):  # 2: FULL
        assert study.store.values(sa.text(f"PRAGMA {name}")) == [value]
    for patience, milliseconds in ((30.0, 30_000), (0.2, 200)):
        with open_study(study.folder, patience=patience) as opened:
            assert opened.store.values(sa.text("PRAGMA busy_timeout")) == [milliseconds]
    other = sqlite3.connect(study.folder / "study.db", timeout=0, isolation_level=None)
    with study.store.read():
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    with study.store.write(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()


def test_the_latest_attempt_counts_and_the_first_stays(make_study):
    store = make_study().store
    for wrong in ({}, {"label": "1", "unscored_reason": "refusal"}):
        with pytest.raises(ValueError, match="a label or a reason"):
            attempt("u", **wrong)
    store.add_grades([attempt("u", unscored_reason="request_failed"), attempt("v", label="1")])
    assert store.finished_grades("g", "refusal", ["h"]) == {("v", "", 0)}
    store.add_grades([attempt("u", label="2", p_positive=0.25, probabilities={"2": 1.0})])
    # A failed request takes no label back; an unreadable reply before it was to be followed by one.
    asked = attempt("w", unscored_reason="unparseable", provenance={"asked_again": True})
    store.add_grades([asked, *(attempt(unit, unscored_reason="request_failed") for unit in "uw")])
    # Edited, graded again, edited back: the first grades are current again.
    store.add_grades([attempt("u", label="5", rubric_hash="another")])
    assert store.finished_grades("g", "refusal", ["h"]) == {("v", "", 0), ("u", "", 0)}
    ratings = store.ratings({"refusal": ["h"]}).set_index("unit_id")
    assert ratings.loc["u", ["label", "p_positive"]].tolist() == ["2", 0.25]
    assert store.ratings({"refusal": ["another"]}).set_index("unit_id").loc["u", "label"] == "5"
    # A label without probabilities that was asked for again, in vain; also under a text that may
    # be declared to mean the same.
    again = {"unscored_reason": "unparseable"}
    store.add_grades([attempt("v", rubric_hash=text, **again) for text in ("h", "another")])
    for texts in (["h"], ["h", "another"]):
        assert store.ratings({"refusal": texts}).set_index("unit_id").loc["v", "label"] == "1"
        totals = stores.grade_totals(store, {"refusal": texts})
        assert totals.loc[0, ["labelled", "unscored"]].tolist() == [2, 1]
    assert len(store.rows(sa.select(schema.grades))) == 9
    for asked in (("h", "refusal", ["h"]), ("g", "tone", ["h"]), ("g", "refusal", [])):
        assert store.finished_grades(*asked) == set()


def test_responses_come_later_and_never_change(make_study):
    study = make_study(responses=None)
    assert (study.store.subjects(), len(study.units())) == ([], 6)
    rows = [{"pair_id": "p0001", "subject": "s", "side": side, "response": "text"} for side in "ab"]
    frame = pd.DataFrame(rows)
    assert [study.store.add_responses(frame) for _ in range(2)] == [2, 0]
    other = frame.assign(response="other")
    refused("another response to p0001 side a", study.store.add_responses, other)
    assert len(study.units()) == 5 + 3
    assert study.store.texts_of([("p0001", "s")])["p0001", "s"][1] == {"a": "text", "b": "text"}


def test_a_study_counts_its_sample_responses_and_texts(make_study):
    study = make_study(pairs=3, rubrics=["refusal"])
    store, rubric = study.store, study.rubrics["refusal"]
    assert store.size() == (3, 12)
    assert store.pairs().columns[:2].tolist() == ["pair_id", "sample_position"]
    studies.label_all(AnnotationDesk(study), "ann", most=2)
    unit = first_unit(study)
    store.add_grades([attempt(unit, label="1", rubric_hash=rubric.hash), attempt(unit, label="1")])
    tried = tried_rater("g", rubric.hash)
    store.add_grades([attempt(unit, rater_id=tried, label="1", rubric_hash=rubric.hash)])
    assert store.text_versions() == {("refusal", rubric.hash): 3, ("refusal", "h"): 1}


def test_without_retries_an_unscored_grade_is_finished_and_with_them_what_lacks_a_label(make_study):
    store = make_study().store
    store.add_grades([attempt("a", label="1", prob_method="logprobs"), attempt("b", label="1")])
    store.add_grades([attempt("c", unscored_reason="refusal"), attempt("d", rubric="s", label="x")])
    store.add_grades([attempt("d", rater_id="plain", label="1")])
    asked = "g", "refusal", ["h"]
    assert {unit for unit, *_ in store.finished_grades(*asked)} == {"a", "b", "c"}
    assert {unit for unit, *_ in store.finished_grades(*asked, labelled_only=True)} == {"a"}
    plain = store.finished_grades("plain", "refusal", ["h"], labelled_only=True)
    assert plain == {("d", "", 0)}  # a grader without any probabilities lacks none
    assert store.finished_grades("g", "s", ["h"], labelled_only=True) == plain


def test_words_are_marked_by_present_answers_and_not_by_hidden_repeats(make_study):
    study, details = make_study(rubrics=["refusal"]), schema.answer_details
    unit = first_unit(study)
    studies.label_all(AnnotationDesk(study), "ann", most=1)
    (key,) = {("refusal", labelled) for labelled in study.ratings()["unit_id"]}
    mark = Mark("response", 0, 3)
    assert stores.marks_on(study.store, [key]) == {}
    with study.store.write() as connection:
        repeated = sa.select(schema.labels).where(schema.labels.c.rater_id == "ann")
        row = connection.execute(repeated).mappings().one()
        again = {**row, "event_id": None, "submit_id": "again", "draw": 1}
        connection.execute(sa.insert(schema.labels), [again])
        for submit_id, marks in ((row["submit_id"], (mark,)), ("again", (Mark("response", 4, 6),))):
            event = {"display": "text", "evidence": tables.written_marks(marks)}
            known = sa.update(details).where(details.c.submit_id == submit_id)
            if not connection.execute(known.values(event)).rowcount:
                connection.execute(sa.insert(details), {"submit_id": submit_id, **event})
    assert stores.marks_on(study.store, [key]) == {key: [("ann", mark)]}
    assert stores.marks_on(study.store, [("hedging", unit)]) == {}
    with study.store.write() as connection:  # an answer from elsewhere, of which no details are
        latest = {**row, "event_id": None, "submit_id": "latest"}
        connection.execute(sa.insert(schema.labels), [latest])
    assert stores.marks_on(study.store, [key]) == {}


def test_whole_pairs_of_responses_are_taken_once(make_study):
    study = make_study(responses=None)
    log = replies.ResponseLog(study.store)
    texts, answer = [("p0001", "a"), ("p0001", "b"), ("p0002", "a")], {"response": "text"}
    for pair, side in (*texts, ("p0002", "b")):
        fields = answer if (pair, side) in texts else {"unscored_reason": "refusal"}
        log.append([replies.ResponseAttempt(subject="s", pair_id=pair, side=side, **fields)])
    assert log.answered("s") == set(texts)
    assert [log.add_whole_pairs("s") for _ in range(2)] == [2, 0]
    assert study.store.size()[1] == 2


def test_files_that_a_lead_changes_are_noted_by_name(make_study):
    store = make_study().store
    decisions.note_settings(store, "seed = 1")
    changed = {"study.toml": ("seed = 2", "seed 1 -> 2"), "consent.md": ("Yes?", "a text")}
    with store.write() as connection:
        decisions.note_files(connection, "ada", changed)
    decisions.note_settings(store, "seed = 2")  # known: the page that wrote it has noted it
    noted, settings = decisions.acts(store), ["settings", "study.toml"]
    rows = noted[["kind", "about", "done_by"]].values.tolist()
    assert rows == [["file", "consent.md", "ada"], [*settings, "ada"], [*settings, ""]]
    assert noted.loc[0, "detail"] == "a text"
    assert noted.loc[1, "detail"].endswith(" seed 1 -> 2")


def test_steps_of_an_improvement_are_kept_as_they_were_first_and_readings_are_counted(make_study):
    store = make_study().store
    for grader, is_new in (("g", True), ("g", False), ("h", True)):
        decisions.note_start(store, "refusal", grader, is_new=is_new, done_by="lead")
    decisions.check_clusters(store, "refusal", "stance_id")
    decisions.note_parts(store, "refusal", {"p1": "learn", "p2": "prove"}, "pair", "lead")
    decisions.note_parts(store, "refusal", {"p2": "choose", "p3": "prove"}, "pair", "lead")
    decisions.note_parts(store, "hedging", {"p1": "prove"}, "pair", "lead")
    assert decisions.parts_of(store, "refusal") == {"p1": "learn", "p2": "prove", "p3": "prove"}
    assert decisions.rubrics_improved(store) == ["refusal", "hedging"]
    assert decisions.acts(store).empty, "the log of acts has sentences, not these"
    decisions.check_clusters(store, "refusal", "pair")
    told = r"split by 'pair', and analysis\.cluster is now 'unit'"
    refused(told, decisions.check_clusters, store, "refusal", "unit")

    def read(new: str, content: str = "h", rubric: str = "refusal") -> int:
        reading = decisions.ProofReading(old="o", new=new, content=content)
        return decisions.note_reading(store, rubric, reading, "lead")

    assert [read("a"), read("b"), read("a", "i"), read("b", "j"), read("a")] == [1, 1, 2, 3, 1]
    assert read("a", rubric="hedging") == 1
    assert decisions.contents_read(store, "refusal") == ["h", "i", "j"]
    assert decisions.contents_read(store, "hedging") == ["h"]


def test_a_pair_counts_as_labelled_by_people_alone(make_study):
    study = make_study(rubrics=["refusal"])
    store, sample = study.store, study.store.sample()
    assert decisions.current_inclusion(store) == {}
    chances = dict.fromkeys(sample, 0.6)
    store.extend_sample(sample, (), [{"by": "chance", "chances": chances, "taken": sample}])
    units = study.rubric_units(study.rubrics["refusal"])
    store.add_grades([attempt(unit, label="1") for unit in units])
    assert decisions.current_inclusion(store) == chances  # nobody has labelled: all of the wave
    studies.label_all(AnnotationDesk(study), "ann", most=1)
    share = 0.6 / len(sample)
    assert decisions.current_inclusion(store) == pytest.approx(dict.fromkeys(sample, share))


@pytest.mark.slow
def test_ratings_go_out_and_come_in_again(make_study, tmp_path):
    study, other = make_study(), make_study()
    studies.work_through(AnnotationDesk(study), "r1", 20, 1.5, 3)
    fields = {"label": "4", "probabilities": {"4": 0.75}, "p_positive": 0.75}
    study.store.add_grades([attempt(first_unit(study), **fields)])
    for suffix in ("csv", "jsonl", "parquet"):
        write_table(study.ratings(), tmp_path / f"out.{suffix}")
        ratings, _ = read_ratings(tmp_path / f"out.{suffix}")
        assert ratings.reset_index(drop=True).equals(study.ratings())
    assert [import_ratings(other, ratings, "out") for _ in range(2)] == [(21, 0), (0, 21)]
    # Imported labels fill places: of 3 raters a unit, these units now want 2 more.
    assert AnnotationDesk(other).progress("r1") == (20, 60)
    by = list(ratings.columns)[:3]
    one, two = (each.sort_values(by).reset_index(drop=True) for each in (other.ratings(), ratings))
    assert one.equals(two)


@pytest.mark.journey
def test_imported_ratings_must_fit_the_study(make_study):
    study = make_study()
    said = {"unit_id": first_unit(study), "rubric": "refusal", "rater_id": "r"}
    said |= {"rater_kind": "human", "label": "1"}
    empty = "row 2: neither a label nor an unscored_reason"

    def taken(**fields: str) -> tuple[int, int]:
        return import_ratings(study, validate_ratings(pd.DataFrame([said | fields])), "f.csv")

    for wrong, says in (
        ({"label": "9"}, "row 2: label '9' is none of 1, 2, 3, 4, 5"),
        ({"rubric": "politeness"}, "row 2: the study has no rubric 'politeness'"),
        ({"unit_id": "p9|s|a"}, "row 2: the study has no response item 'p9|s|a'"),
        ({"rubric": ""}, "row 2: the rubric is empty"),
        ({"created_at": "3 May, noon"}, "row 2: created_at is '3 May, noon'; write a time as 2026"),
        *(({"label": "", "rater_kind": kind}, empty) for kind in ("human", "model")),
    ):
        refused(re.escape(says), taken, **wrong)
    assert study.ratings().empty
    for label in ("1", "2", "1"):  # an import may take back what another said
        assert taken(label=label, created_at="2026-01-01T00:00:00+00:00") == (1, 0)
        assert study.ratings()["label"].tolist() == [label]
        assert study.ratings()["rubric_hash"].tolist() == [study.rubrics["refusal"].hash]
    (row,) = AnnotationDesk(study).earlier("r").rows
    assert studies.submit(AnnotationDesk(study), "r", row.task, "3", edit=True) == "stored"
    assert taken(label="1") == (0, 1)
    assert study.ratings()["label"].tolist() == ["3"], "what its rater revised stays"
    refused(r"f\.csv, row 2: rater 'r' is model here and human in", taken, rater_kind="model")
    # A grade from elsewhere may be a probability alone, a person's label not.
    about = {"rater_id": "g", "rater_kind": "model", "label": "", "p_positive": "0.25"}
    assert [taken(**about) for _ in range(2)] == [(1, 0), (0, 1)]
    kept = study.ratings().set_index("rater_id").loc["g"]
    assert (kept["label"], kept["p_positive"], kept["unscored_reason"]) == ("", 0.25, "")
    totals = study.grade_totals().iloc[0]
    assert (totals["labelled"], totals["unscored"]) == (1, 0)
    refused("neither a label", taken, **about | {"rater_kind": "human", "rater_id": "ann"})
    assert len(study.ratings()) == 2
    rows = validate_ratings(pd.DataFrame([said, said | {"rater_id": "s"}]))
    draws = rows.assign(draw=pd.array([1, None], dtype="Int64"))  # one may be missing
    assert validate_ratings(draws)["draw"].tolist() == [1, 0]
    study = make_study(rubrics=["refusal"])  # the only one, of rows that name none
    assert taken(rubric="") == (1, 0)
    other = pd.DataFrame([said | {"rubric": ""}, said | {"rubric": "politeness"}])
    told = "row 3: the study has no rubric 'politeness'"
    refused(told, import_ratings, study, validate_ratings(other), "f.csv")
    assert len(study.ratings()) == 1, "all or none"


WRITER = """
import sys
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from harness.studies import submit, task_of
with open_study(sys.argv[1]) as study:
    desk = AnnotationDesk(study)
    while task := task_of(desk, "r1"):
        print(task.task_id, submit(desk, "r1", task, task.rubric.categories[0]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.load)])
def test_no_acknowledged_label_is_lost_by_kills(make_study, rounds):
    study, acknowledged = make_study(pairs=20 * rounds), set()
    for _ in range(rounds):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(study.folder)],
            cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        acknowledged.add(process.stdout.readline().split()[0])
        time.sleep(random.random() * 0.1)
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().splitlines()
        acknowledged |= {line.split()[0] for line in rest if line.endswith("stored")}
        process.wait()
    stored = study.store.values(sa.select(schema.labels.c.submit_id))
    assert len(stored) == len(set(stored))
    assert acknowledged <= set(stored)
    # A label that was on disk when the kill came, before it was acknowledged: one a round at most.
    assert len(stored) <= len(acknowledged) + rounds


def test_two_extensions_at_once_are_one(make_study):
    study = make_study(pairs=6, sample=2)
    sample = study.store.sample()
    more = [pair for pair in study.store.pairs()["pair_id"] if pair not in sample]
    study.store.extend_sample(sample, more[:1])
    refused("the sample was enlarged meanwhile", study.store.extend_sample, sample, [])


@pytest.mark.slow
def test_one_read_sees_one_state(make_study, database):
    """On PostgreSQL of version 0.2.0 each statement of a read saw a state of its own."""
    study = make_study(**database)
    other = stores.Store.open(study.config.store, study.folder)
    count = sa.select(sa.func.count()).select_from(schema.told_totals)
    told = {"rater_id": "r", "plan": "p", "total": 1, "created_at": "now"}
    with study.store.read() as connection:
        seen = [connection.execute(count).scalar_one()]
        with other.write() as writing:
            writing.execute(sa.insert(schema.told_totals).values(told))
        seen.append(connection.execute(count).scalar_one())
    other.close()
    assert (seen, study.store.values(count)) == ([0, 0], [1])
    with study.store.write() as connection:  # and whoever writes sees the latest, as ever
        assert connection.get_isolation_level() != "REPEATABLE READ"


def dated(unit: str, at: int, *, rater: str = "g", **fields: object) -> GradeAttempt:
    return attempt(unit, rater_id=rater, created_at=f"2026-11-{at:02d}", **fields)


def paid(model: str, tokens: tuple[int, int, int], usd: float | None = None) -> dict[str, object]:
    counts = dict(zip(("input", "output", "cached"), tokens, strict=True))
    facts: dict[str, object] = {"returned_model": model, "tokens": {**counts, "written": 0}}
    return facts if usd is None else facts | {"cost_usd": usd}


@pytest.mark.journey
def test_attempts_add_up(make_study, database):
    store = make_study(**database).store
    low = paid("m-2", (100, 7, 50), 0.5) | {"low_mass": True}
    asked = paid("m-2", (100, 0, 50), 0.25) | {"method": "logprobs"}
    store.add_grades(
        [
            dated("u", 3, unscored_reason="refusal", provenance=paid("m-1", (100, 5, 0), 0.25)),
            dated("u", 4, label="1", prob_method="logprobs", provenance=low),
            dated("u", 4, label="1", draw=1, provenance=asked),
            dated("v", 5, unscored_reason="refusal", provenance=paid("m-2", (100, 1, 0), 1)),
            dated("w", 2, unscored_reason="request_failed", provenance={"error": "no"}),
            dated("x", 2, unscored_reason="refusal", provenance=paid("m-2", (0, 0, 0), 0)),
            dated("u", 6, rater="h", label="1", provenance=paid("n", (8, 2, 0))),
            dated("u", 6, rater="i", label="1"),
        ]
    )
    totals, none = stores.grade_totals(store, {"refusal": ["h"]}), make_study().grade_totals()
    assert tuple(totals) == stores.TOTALS_COLUMNS == tuple(none)
    totals = totals.set_index("rater_id")
    first = totals.loc["g"].to_dict()
    assert set(json.loads(first.pop("models"))) == {"m-1", "m-2"}
    assert json.loads(first.pop("unscored_reasons")) == {"refusal": 2, "request_failed": 1}
    assert first == {
        "rubric": "refusal", "attempts": 6, "units": 4, "labelled": 2, "unscored": 3,
        "low_mass": 1, "without_probabilities": 1, "tokens_input": 400, "tokens_output": 13,
        "tokens_cached": 100, "cached_share": 0.25, "cost_usd": 2.0, "priced_units": 3,
        "first_at": "2026-11-02", "last_at": "2026-11-05",
    }  # fmt: skip
    assert prices_of(totals.reset_index()) == {("refusal", "g"): pytest.approx(1000 * 2.0 / 3)}
    assert totals.loc["h", "tokens_input"] == 8
    assert pd.isna(totals.loc["h", "cost_usd"])  # no known price is not nothing
    assert totals.loc["i", ["tokens_input", "cached_share"]].isna().all()
    assert totals.loc["i", "models"] == "{}"
    models = pd.DataFrame({"rater_id": [*"ggh"], "models": ['{"m": 2}', '{"m": 1, "n": 4}', "{}"]})
    assert stores.models_that_answered(models) == {"g": {"n": 4, "m": 3}}


def test_a_label_keeps_the_language_and_the_text_shown(make_study, tmp_path):
    study = make_study(rubrics=["refusal"])
    rubric, desk = study.rubrics["refusal"], AnnotationDesk(study)

    def label(rater: str, language: str, name: str = "") -> None:
        task = studies.task_of(desk, rater)
        assert studies.submit(desk, rater, task, "1", name or rater, language=language) == "stored"

    assert "page_language" not in raters_with_languages(study)
    label("r-en", "en")
    assert list(exported_ratings(study)) == list(RATINGS_COLUMNS)
    for rater, language in (("r-de", "de"), ("r-fr", "fr"), ("r-old", "")):
        label(rater, language)
    rows = study.store.rows(sa.select(schema.labels))
    found = {row.rater_id: (row.page_language, row.shown_hash, row.rubric_hash) for row in rows}
    assert found == {
        "r-en": ("en", rubric.hash, rubric.hash),
        "r-de": ("de", rubric.in_language("de").hash, rubric.hash),
        "r-fr": ("fr", rubric.hash, rubric.hash),  # not translated: the original was shown
        "r-old": ("", "", rubric.hash),
    }
    write_table(exported_ratings(study), tmp_path / "ratings.csv")
    table = read_table(tmp_path / "ratings.csv")
    assert list(table) == [*RATINGS_COLUMNS, "page_language", "shown_hash"]
    out = table.set_index("rater_id")[["page_language", "shown_hash"]]
    assert out.loc["r-de"].tolist() == ["de", rubric.in_language("de").hash]
    label("r-both", "de", "first")
    label("r-both", "es", "second")
    table = raters_with_languages(study)
    languages = dict(zip(table["rater_id"], table["page_language"], strict=True))
    assert (languages["r-both"], languages["r-de"]) == ("", "de")  # who changed belongs to neither
    with pytest.raises(ValueError, match="cannot have the key 'page_language'"):
        BackgroundQuestion(key="page_language", question="Which?", options=("a", "b"))


def test_every_act_says_who_and_what_the_latest_first(make_study):
    study = make_study()
    assert decisions.acts(study.store).empty
    assert tuple(decisions.acts(study.store)) == decisions.ACT_COLUMNS
    studies.label_all(AnnotationDesk(study), "ann", most=1)
    open_link(study.store, new_link_token(study.store))  # which is none
    exclude(study.store, "ann", "too fast", "ada")
    decisions.note_act(study.store, "export", "ratings.csv", "120 bytes", "ben")
    readmit(study.store, "ann", "it was a slip", "ada")
    pause(study.store, "lunch", "ada")
    found = decisions.acts(study.store)
    assert found["kind"].tolist() == ["pause", "readmit", "export", "exclude"]
    assert found["done_by"].tolist() == ["ada", "ada", "ben", "ada"]
    assert found.loc[2, ["about", "detail"]].tolist() == ["ratings.csv", "120 bytes"]
    assert found["created_at"].is_monotonic_decreasing
    # What is noted decides nothing, and is no decision.
    assert oversight(study.store).paused
    assert not oversight(study.store).exclusions
    assert decisions_table(study.store)["kind"].tolist() == ["exclude", "readmit", "pause"]
    for text in ("one", "one", "two", "two", "one"):
        decisions.note_settings(study.store, text)
    noted = decisions.acts(study.store)
    assert noted["kind"].tolist() == ["settings"] * 3 + found["kind"].tolist()
    assert noted["detail"][:3].nunique() == 2
    assert noted.iloc[3:].reset_index(drop=True).equals(found)  # what was noted stays as it was


def test_the_same_labels_are_the_same_look_and_others_leave_no_trace(make_study, any_database):
    folder = make_study(**any_database).folder
    for digests, record, numbers in (
        ({"refusal": "first"}, True, {"refusal": 1}),
        ({"refusal": "first"}, True, {"refusal": 1}),
        ({"refusal": "second"}, False, {"refusal": 0}),
        ({"refusal": "second", "hedging": "first"}, True, {"refusal": 2, "hedging": 1}),
        ({"refusal": "first"}, True, {"refusal": 1}),
    ):
        with open_study(folder) as study:  # looks outlive the program
            assert decisions.look_numbers(study.store, digests, record=record) == numbers
            # To ask for the number of a look is none.
            assert decisions.coming_looks(study.store, {"tone": "first"}) == {"tone": 1}
    with open_study(folder) as study:
        present = {"refusal": "third", "hedging": "first"}
        assert decisions.coming_looks(study.store, present) == {"refusal": 3, "hedging": 1}


@pytest.mark.slow
def test_what_was_tuned_is_kept_to_the_last_digit(make_study, any_database):
    study = make_study(**any_database)
    about = {"rubric": "refusal", "grader": "g", "reference": "humans", "instead_of": 0.1 + 0.2}
    found = {"objective": "kappa", "clusters": ["p1", "p2"]}
    first = decisions.TunedThreshold(threshold=1 / 3, **found, **about)
    second = decisions.TunedThreshold(threshold=0.1314, objective="f1", clusters=["p9"], **about)
    with studies.upgraded_without(study, schema.threshold_events) as again:
        assert decisions.TUNED_THRESHOLDS.all(again.store) == []
        for added in ([], [first], [second]):
            decisions.TUNED_THRESHOLDS.append(again.store, added)
        assert decisions.TUNED_THRESHOLDS.all(again.store) == [first, second]


def test_candidates_choices_and_ends_are_kept_and_a_text_is_led_to_by_what_it_learned(make_study):
    store = make_study().store
    parts = {"p1": "learn", "p2": "choose", "p3": "choose", "p4": "prove"}
    decisions.note_parts(store, "refusal", parts, "pair", "lead")
    text, other = "m#prompt-01234567", "m#prompt-abcdefab"
    tried = decisions.CandidateRecord(origin="a", is_new=True, has_own_text=True)
    plain = decisions.CandidateRecord(origin="another", is_new=True, has_own_text=False)
    # Each is kept as it was first.
    for new in ({text: tried, "model": plain, other: tried}, {text: replace(tried, origin="b")}):
        decisions.note_candidates(store, "refusal", new, "lead")
    assert decisions.candidates_of(store, "refusal") == {text: tried, "model": plain, other: tried}
    assert decisions.chosen_on(store, "refusal") == {}, "who was tried only was not chosen"
    for _ in range(2):
        decisions.note_choice(store, "refusal", text, ["p2"], "lead")
    decisions.note_choice(store, "refusal", "model", ["p2", "p3"], "lead")
    assert decisions.chosen_on(store, "refusal") == {text: {"p2"}, "model": {"p2", "p3"}}
    influences = {"01234567": {"p1", "p2"}, "abcdefab": {"p1"}}
    assert decisions.influences_on_texts(store, "refusal") == influences
    for outcome, price in (("not_shown", 1.0), ("not_shown", 2.0), ("better", None)):
        end = {"outcome": outcome, "low": None, "price": price}
        decisions.note_end(store, "refusal", end, "lead")
    assert [end["outcome"] for _, end in decisions.ends_of(store)] == ["not_shown", "better"]


UNIT = "p0001|s1"
ABOUT = ("even-handedness", UNIT, "g")


def test_the_latest_reply_to_each_order_and_draw_stands_once(make_study):
    study = make_study(pairs=1)

    def reply(raw: str, order: str = "ab", draw: int = 0, **other: object) -> GradeAttempt:
        return GradeAttempt(**GIVEN | other, order=order, draw=draw, raw=raw)

    given = [reply("first"), reply("second"), reply("turned", "ba"), reply("second", draw=1)]
    given += [reply("older text", draw=2, rubric_hash="before"), reply(" ", draw=3)]
    given += [reply("no label", label="", unscored_reason="unparseable")]
    given += [reply("another grader's", rater_id="h"), reply("another's", unit_id="p0002|s1")]
    study.store.add_grades(given)
    accepted = {ABOUT[0]: ("now",)}
    assert replies.raw_replies(study.store, [("refusal", UNIT, "g")], accepted) == {}
    for more in ([], [(ABOUT[0], f"p{n}|s1", "g") for n in range(900)]):
        found = replies.raw_replies(study.store, [*more, ABOUT], accepted)
        assert found == {ABOUT: ["second", "turned"]}


GIVEN = {"rater_id": "g", "rubric": ABOUT[0], "unit_id": UNIT, "rubric_hash": "now", "label": "C"}
ATTACK = {"attack": "flattery", "target": "A", "side": "a", "suite": "1"}


def test_replies_are_known_by_their_prompt_under_attack_too(make_study):
    study = make_study(pairs=1)
    facts, given = {"reply_id": "r1", "created": 5, "choice": 2}, GIVEN | {"order": "ab"}
    lost = {"label": "", "unscored_reason": "request_failed"}
    for rater in "gh":
        study.store.add_grades([GradeAttempt(**given | {"rater_id": rater}, provenance=facts)])
    for fields, reply_id in (({}, "r2"), (lost, "r3")):
        grade = AttackedGrade(**given | fields, **ATTACK, provenance={"reply_id": reply_id})
        study.store.add_grades([grade])
    clean, attacked = (UNIT, ABOUT[0], "ab"), {"reply_id": "r2", "created": None, "choice": None}
    found = replies.reply_identities(study.store, "g")
    assert found == {clean: [facts], (*clean, "flattery", "A", "a"): [attacked]}


@pytest.mark.parametrize("attacked", [False, True])
def test_who_gave_probabilities_without_reasoning_is_known(make_study, attacked):
    study = make_study(pairs=1)

    def grade(effort: str, method: str) -> None:
        given = GIVEN | {"prob_method": method}
        provenance = {"settings": {"reasoning_effort": effort} if effort else {}}
        kind = AttackedGrade(**given, **ATTACK, provenance=provenance) if attacked else None
        study.store.add_grades([kind or GradeAttempt(**given, provenance=provenance)])

    grade("", "logprobs")
    grade("none", "")
    assert not replies.gave_probabilities_without_reasoning(study.store, "g")
    grade("none", "logprobs")
    assert replies.gave_probabilities_without_reasoning(study.store, "g")
    assert not replies.gave_probabilities_without_reasoning(study.store, "h")


def attacked(study: Study, label: str = "3", **about: object) -> AttackedGrade:
    usual = {"attack": "plain_order", "target": "5", "side": "", "suite": "1", "draw": 0}
    usual |= {"rater_id": "g", "rubric": "refusal", "unit_id": "u"}
    digest = study.rubrics["refusal"].hash
    return AttackedGrade(label=label, rubric_hash=digest, **usual | about)  # type: ignore[arg-type]


def test_what_failed_for_the_network_is_open_and_only_the_last_suite_counts(make_study):
    study = make_study()
    accepted = study.accepted_hashes()

    def finished(suite: str = "1") -> dict[tuple[str, str, str, str, int], str]:
        return replies.finished_trials(study.store, "g", "refusal", accepted["refusal"], suite)

    failed = attacked(study, "", unscored_reason="request_failed")
    refused = attacked(study, "", attack="flattery", unscored_reason="refusal")
    about = {"rater_id": "g", "rubric": "refusal", "rubric_hash": accepted["refusal"][0]}
    study.store.add_grades([failed, refused, GradeAttempt(**about, unit_id="u", label="1")])
    assert finished() == {("u", "flattery", "5", "", 0): ""}
    study.store.add_grades([attacked(study, "5")])
    assert (finished()["u", "plain_order", "5", "", 0], finished("2")) == ("5", {})
    assert study.ratings()["label"].tolist() == ["1"]  # in a table of its own
    study.store.add_grades([attacked(study, "4", suite="2"), attacked(study, "5", suite="2")])
    # A failed request takes no label back; an unreadable reply before it was to be followed by one.
    asked = {"unscored_reason": "unparseable", "provenance": {"asked_again": True}}
    again = [attacked(study, "", suite="2", draw=1, **asked)]
    failed = [replace(failed, suite="2", draw=draw) for draw in (0, 1)]
    study.store.add_grades(again + failed)
    assert finished("2") == {("u", "plain_order", "5", "", 0): "5"}
    table = replies.attacked_table(study.store, accepted)
    assert table[["attack", "label"]].to_numpy().tolist() == [["plain_order", "5"]]
    assert replies.attacked_table(study.store, {"refusal": ("another",)}).empty


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_of_it_says_the_same(make_study, tmp_path, suffix):
    study, file = make_study(), tmp_path / f"attacked.{suffix}"
    stated = {"1": 0.25, "5": 0.75}
    study.store.add_grades([attacked(study), attacked(study, attack="clean", probabilities=stated)])
    table = replies.attacked_table(study.store, study.accepted_hashes())
    write_table(attacked_text(table), file)
    read, columns = tables.read_attacked(file), list(tables.ATTACKED_COLUMNS)
    pd.testing.assert_frame_equal(read, table[columns], check_dtype=False)


def test_a_file_that_is_none_is_refused(make_study, tmp_path):
    study, file = make_study(), tmp_path / "attacked.csv"
    study.store.add_grades([attacked(study)])
    written = attacked_text(replies.attacked_table(study.store, study.accepted_hashes()))
    wrong = ("[1]", "{", '{"1": "x"}', '{"1": NaN}', '{"1": 9}', "[" * 99_999)
    cells = [("attack", "none of ours"), ("draw", "-1")]
    for column, cell in (*cells, *(("probabilities", each) for each in wrong)):
        write_table(written.assign(**{column: cell}), file)
        refused(r"attacked\.csv, row 2: attack, draw or prob", tables.read_attacked, file)
        write_table(written.drop(columns=column), file)
        refused(f"no column '{column}'", tables.read_attacked, file)


def test_a_batch_is_under_way_from_when_it_is_intended_until_its_grades_are_there(make_study):
    store = make_study().store
    asked = replies.BatchRequest("c1", "refusal", "h", "u", "ab", 0, more=[], trial=[])
    journal = replies.BatchJournal(store)
    for chunk, requests in (("one", (asked,)), ("two", ())):
        about = {"rater_id": "g", "base_url": "https://x"}
        journal.intend(replies.Chunk(chunk=chunk, requests=requests, **about))
    assert [each.batch_id for each in journal.under_way("g")] == ["", ""]
    journal.submitted("one", "b7")
    named, other = journal.under_way("g")
    assert (named.batch_id, named.requests, other.batch_id) == ("b7", (asked,), "")
    journal.abandoned("two")
    assert (journal.count("g"), journal.count("other"), journal.known_batches()) == (2, 0, {"b7"})
    grade = GradeAttempt(rater_id="g", rubric="refusal", unit_id="u", rubric_hash="h", label="1")
    journal.collected("one", "b7", [grade])
    assert journal.under_way("g") == []
    assert store.finished_grades("g", "refusal", ["h"]) == {("u", "", 0)}


def test_the_price_of_an_improvement_is_that_of_all_attempts_since_it_began(make_study):
    store = make_study().store

    def grade(unit: str, cost: float | None) -> GradeAttempt:
        about = GIVEN | {"rubric": "refusal", "unit_id": unit}
        return GradeAttempt(**about, provenance={"cost_usd": cost})

    decisions.note_parts(store, "refusal", {"c": "learn"}, "item", "ann")
    store.add_grades([grade("u", 0.25), grade("u", 0.5000004), grade("v", 8.0)])
    assert decisions.price_of(store, "refusal", ["g"], ["u"]) == 0.75
    assert decisions.price_of(store, "refusal", ["other"], ["u"]) == 0
    store.add_grades([grade("u", None)])
    assert decisions.price_of(store, "refusal", ["g"], ["u"]) is None


def test_proposals_count_into_the_price_and_the_first_reply_to_each_stands(make_study):
    store = make_study().store
    about = {"rubric": "refusal", "proposer": "m", "system": "s", "user": "u"}
    failed, refused = ({"unscored_reason": reason} for reason in ("request_failed", "refusal"))
    results = (("1", 0.5, failed), ("1", 0.25, {"reply": "first"}))
    results += (("1", 0.125, {"reply": "second"}), ("2", 1.0, refused))
    given = [
        decisions.ProposalAttempt(**about, request=request, provenance={"cost_usd": cost}, **more)
        for request, cost, more in results
    ]
    decisions.note_proposals(store, given)
    assert decisions.proposals_of(store, "refusal") == {"1": given[1], "2": given[3]}
    assert decisions.proposals_of(store, "hedging") == {}
    decisions.note_parts(store, "refusal", {"c": "learn"}, "item", "ann")
    assert decisions.price_of(store, "refusal", [], []) == 1.875
    audit = GIVEN | ATTACK | {"rubric": "refusal"}
    store.add_grades([AttackedGrade(**audit, provenance={"cost_usd": 2.0})])
    store.add_grades([GradeAttempt(**GIVEN, provenance={"cost_usd": 4.0})])  # on another rubric
    before = {"rubric": "refusal", "created_at": "2026-01-01"}
    store.add_grades([GradeAttempt(**GIVEN | before, provenance={"cost_usd": 8.0})])
    assert decisions.price_of(store, "refusal", ["g"], [UNIT]) == 3.875
    assert decisions.acts(store).empty


def test_flags_disagreements_and_adjudications_are_acts_too(make_study):
    study = make_study(rubrics=["refusal"])
    unit = first_unit(study)
    with study.store.write() as connection:
        answered = {"flag_id": 7, "kind": "answered", "text": "Thanks.", "done_by": "ada"}
        append(connection, schema.flag_events, answered)
    about = {"rubric": "refusal", "unit_id": unit, "grader": "g"}
    sort_disagreement(study, "ben", **about, kind="people_wrong")
    decide(study, "cy", unit, "refusal", "4", "it does")
    found = decisions.acts(study.store)[["done_by", "kind", "about", "detail"]]
    assert sorted(found.to_numpy().tolist()) == [
        ["ada", "flag answered", "7", "Thanks."],
        ["ben", "disagreement", unit, "people_wrong"],
        ["cy", "adjudication", unit, "4"],
    ]


@pytest.mark.journey
def test_what_comes_with_labels_is_read_back(make_study):
    study = make_study(rubrics=["refusal"])
    store, desk, kinds = study.store, AnnotationDesk(study), {"ann": "human", "g": "model"}
    assert stores.all_labels_were_assigned(store)
    task_id = studies.task_of(desk, "ann").task_id
    answer = Answer(submit_id="s", task_id=task_id, option_key="2", confidence=3, rationale="It is")
    flag = Flag(submit_id="f", task_id=task_id, reason="other", text="odd")
    assert studies.send(desk, "ann", replace(answer, language="en"), flag) == ["stored"] * 2
    store.add_grades([attempt("u", label="1")])
    with store.read() as connection:
        for who, kind in (kinds | {"x": ""}).items():
            assert stores.rater_kind(connection, who) == kind
        assert stores.rater_kinds(connection) == kinds
    assert stores.all_labels_were_assigned(store)
    assert stores.with_shown(store, study.ratings()).equals(study.ratings())  # in English alone
    assert stores.languages_of_raters(store) == {"ann": "en"}
    said = stores.remarks_table(store)
    rows = said[["kind", "confidence", "text"]].fillna(0).to_numpy().tolist()
    assert rows == [["answer", 3, "It is"], ["flag", 0, "odd"]]
    assert said["withdrawn_at"].tolist() == ["", ""]
    with store.write() as connection:
        for number, kind in ((2, "answered"), (1, "closed"), (2, "withdrawn")):
            event = {"flag_id": number, "kind": kind, "text": "", "done_by": "ann"}
            append(connection, schema.flag_events, event)
    assert stores.remarks_table(store)["withdrawn_at"].ne("").tolist() == [False, True]
    studies.with_labels(study, {"ben": "1"})
    assert not stores.all_labels_were_assigned(store)
    studies.mark_words(study, "ben", Mark("response", 0, 3))
    found = stores.answers_table(store)
    rows = found[["rater_id", "label", "display"]].to_numpy().tolist()
    assert rows == [["ann", "2", ""], ["ben", "1", "text"]]
    evidence = [{"text": "response", "start": 0, "end": 3}]
    assert found["evidence"].map(json.loads).tolist() == [[], evidence]
    with store.write() as connection:
        for who, way in (("ann", "open"), ("ben", "invite"), ("ann", "prolific")):
            stores.add_event(connection, who, "entered", way=way)
        ways = [event.detail["way"] for event in stores.events_of(connection, "ann")]
    assert ways == ["open", "prolific"]


def test_what_was_spent_is_the_known_cost_of_grades_and_responses_with_what_is_held(make_study):
    store = make_study(pairs=2).store
    assert stores.total_spent(store) == 0.0
    paid_for = [{"cost_usd": 0.5}, {"held_usd": 0.25}, {}, {"cost_usd": None}]
    store.add_grades([attempt("u", label="1", provenance=facts) for facts in paid_for])
    asked = {"subject": "s", "pair_id": "p0001", "side": "a", "response": "text"}
    log = replies.ResponseLog(store)
    log.append([replies.ResponseAttempt(**asked, provenance={"cost_usd": 2.0, "held_usd": 4.0})])
    log.append([])
    assert stores.total_spent(store) == 6.75


def test_an_error_shows_no_text_and_a_number_that_is_none_is_not_kept(make_study):
    study = make_study(rubrics=["refusal"])
    store = study.store
    with pytest.raises(sa.exc.SQLAlchemyError) as raised:
        store.add_grades([attempt("u", label="1", raw="a private text", seconds=object())])
    assert "private" not in str(raised.value)
    with pytest.raises(ValueError, match="JSON"):
        decisions.note_end(store, "refusal", {"low": float("nan")}, "lead")
    studies.with_labels(study, {"ann": "1"})
    tables = store.values(sa.text("SELECT name FROM sqlite_master"))
    assert "sqlite_stat1" not in tables  # statistics are PostgreSQL's affair


def test_texts_are_those_asked_for_and_pairs_stand_as_in_the_file(make_study):
    store = make_study(pairs=3, sample=2).store
    asked = [("p0001", "s1"), ("p0002", "s2"), ("p0003", "none")]
    texts = store.texts_of(asked)
    assert [*texts] == asked
    assert texts["p0001", "s1"][1] == {"a": "s1: for 0.", "b": "s1: against 0."}
    assert texts["p0002", "s2"][0]["prompt_a"] == "Argue for 1"
    assert texts["p0003", "none"][1] == {}
    assert store.responses()["response"].tolist()[:2] == [*texts["p0001", "s1"][1].values()]
    found = store.pairs()
    assert found["pair_id"].tolist() == ["p0001", "p0002", "p0003"]
    positions = found.set_index("pair_id")["sample_position"].dropna().sort_values()
    assert (positions.tolist(), positions.index.tolist()) == ([0, 1], store.sample())
    keys = [[*key] for key in product(found["pair_id"], ("s1", "s2"), "ab")]
    assert store.answered().to_numpy().tolist() == keys


def test_a_reason_is_told_of_either_order_and_an_audit_is_known_of(make_study):
    store = make_study(pairs=1).store
    assert not replies.was_audited(store)
    lost = {"label": "", "unscored_reason": "request_failed"}
    store.add_grades([AttackedGrade(**GIVEN | lost, **ATTACK)])
    assert not replies.was_audited(store)
    store.add_grades([AttackedGrade(**GIVEN, **ATTACK)])
    assert replies.was_audited(store)
    for order in ("ab", "ba"):
        store.add_grades([GradeAttempt(**GIVEN, order=order, raw="{", provenance={"reason": "R"})])
    (said,) = replies.raw_replies(store, [ABOUT], {ABOUT[0]: ("now",)}).values()
    assert said == ["Its reason: R", "Its reason, with the two sides exchanged: R"]
    request = replies.BatchRequest("c" * 40 + "d", "r", "h", "u", "ab", 2, more=[(3, "k")])
    assert request.draws == [(2, "c" * 40), (3, "k")]
