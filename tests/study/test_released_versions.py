"""A study at work under a released version, as installed then, goes on under this one: every
exported row is the same, what was open is answered, and a kill during the upgrade loses nothing.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.keeping import States, found_tables, states
from evenhand.study.settings.study_toml import change_config, read_config
from evenhand.study.store.database import Database, is_url
from harness.postgresql import Postgresql
from harness.released import COMMITS, released
from harness.studies import submit, task_of

pytestmark = pytest.mark.load

ROOT = Path(__file__).parents[2]
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


def held(folder: Path) -> States:
    """Rows and checksum of every table but the secret and what a closed program left."""
    with closing(Database.connect(read_config(folder).store, folder)) as store, store.read() as one:
        return states(one, found_tables(one))


def copied(folder: Path, to: Path, server: Postgresql) -> Path:
    """The same study once more, its database too."""
    shutil.copytree(folder, to)
    if is_url(read_config(folder).store):
        url = sa.make_url(read_config(folder).store)
        there = sa.make_url(server.new_database())
        engine = sa.create_engine(there.set(database="postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {there.database}")
            connection.exec_driver_sql(f"CREATE DATABASE {there.database} TEMPLATE {url.database}")
        engine.dispose()
        change_config(to, {"": {"store": there.render_as_string(hide_password=False)}})
    return to


def upgraded(folder: Path, killed_after: float | None = None) -> tuple[bool, float]:
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


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("version", COMMITS)
def test_a_study_at_work_goes_on_after_the_upgrade_and_after_every_kill(
    version, database, postgresql, tmp_path
):
    python = released(version)
    program, now = python.with_name("evenhand"), Path(sys.executable).with_name("evenhand")
    where = ran(python, "-c", "import evenhand; print(evenhand.__version__, evenhand.__file__)")
    assert where.startswith(f"{version} {python.parents[1]}"), where
    store = "study.db" if database == "sqlite" else postgresql.new_database()
    work = Path(__file__).with_name("work_on_released.py")
    old = tmp_path / "old"
    is_open = json.loads(ran(python, work, old, store, PAIRS, RATERS, ANSWERS))
    ran(program, "grade", old, "--grader", "baseline:lexical", "--scope", "all")
    ran(program, "exclude", old, EXCLUDED, "--reason", "a test")
    before = exported(program, old, tmp_path / "before")
    assert len(before["ratings"]) > RATERS * ANSWERS
    untouched = held(old)

    def check(folder: Path, to: str) -> None:
        after = exported(now, folder, tmp_path / to)
        for name, table in before.items():
            assert set(table) <= set(after[name]), name
            pd.testing.assert_frame_equal(in_order(after[name][list(table)]), table)
        check_work_goes_on(folder, is_open)

    whole = copied(old, tmp_path / "whole", postgresql)
    ended, seconds = upgraded(whole)
    assert ended
    check(whole, "after")
    killed = 0
    for number in range(KILLS):
        folder = copied(old, tmp_path / f"killed-{number}", postgresql)
        ended, _ = upgraded(folder, killed_after=0.7 * seconds * number / KILLS)
        killed += not ended
        if ended:  # too late: the machine was busier when the time was taken
            seconds /= 2
        if not ended and version == "0.1.0":
            kept = held(folder)
            assert kept == untouched or {*kept} > {*untouched}  # as it was, or all of it done
        assert upgraded(folder)[0]
        check(folder, f"after-{number}")
    assert killed >= KILLS / 2
