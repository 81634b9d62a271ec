"""One runner per study, or per part of it: two at once would ask, and pay for, the same twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.graders.options import WHOLE, Shard
from evenhand.study.store.database import Database
from evenhand.study.tables.files import FILE
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study

_FILE = ".grading.lock"


class Elsewhere(InputError):  # noqa: N818  (the caller made no error)
    """Another process is already collecting these grades."""


@contextmanager
def only_runner(study: Study, shard: Shard = WHOLE) -> Iterator[None]:
    """Hold the study's lock. It ends with the process, however that ends.

    A study on a database server has its lock there, since its runners may be on several machines.
    Raises Elsewhere at once where another runner holds it, even for other graders, and
    InputError for a part of a study that other machines cannot reach, or on Windows.
    """
    if study.store.engine.dialect.name == "postgresql":
        with _on_server(study, shard):
            yield
    elif shard != WHOLE:
        raise InputError(
            "--shard is for machines that share a study on PostgreSQL, and this one is in a file; "
            "move it with `evenhand store copy`, or leave --shard out"
        )
    else:
        with _in_folder(study.folder):
            yield


@contextmanager
def _on_server(study: Study, shard: Shard) -> Iterator[None]:
    with _collecting(study.store, shard.index, shard.of) as other:
        if other == "same" and shard != WHOLE:
            raise Elsewhere(f"shard {shard} is being collected by another run, which goes on")
        if other:
            parts = "" if other in ("same", "1") else f" in {other} shards"
            raise Elsewhere(
                f"another run is collecting for this study{parts}; wait until it ends, or stop "
                "it: what it has collected is kept"
            )
        yield


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ModuleNotFoundError:
        raise InputError(written("lean.no_locks")) from None
    descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, FILE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            raise Elsewhere(
                f"another run (process {holder}) is collecting for this study; wait until it ends, "
                "or stop it: what it has collected is kept"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


# On a database server: the lock is the server's own and belongs to a connection. It ends with the
# process, however that ends, and within a minute where a whole machine is gone.


_SPACE = 0x65766763
"""Among the advisory locks of the database; the second number says which part of how many."""
_NOTICED = (
    "SET tcp_keepalives_idle = 20",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)
_HELD = sa.text(
    "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = :space AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@contextmanager
def _collecting(database: Database, index: int, of: int) -> Iterator[str]:
    """Collect part `index` of `of`. Yields the conflict with another process: "" if there is none,
    "same" if it has this part, or "3" if it collects in three parts.
    """
    with database.engine.connect().execution_options(
        isolation_level="AUTOCOMMIT", evenhand_write=False
    ) as connection:
        for setting in _NOTICED:
            connection.exec_driver_sql(setting)
        mine = sa.func.pg_try_advisory_lock(_SPACE, (of << 16) + index)
        if not connection.execute(sa.select(mine)).scalar_one():
            yield "same"
            return
        try:
            held = connection.execute(_HELD, {"space": _SPACE}).scalars()
            yield next((str(number >> 16) for number in held if number >> 16 != of), "")
        finally:
            connection.execute(sa.select(sa.func.pg_advisory_unlock(_SPACE, (of << 16) + index)))
