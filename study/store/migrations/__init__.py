"""Upgrading an older store to the program's schema, all of it or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.store.database import set_schema_version
from evenhand.study.store.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

_VERSIONS = str(Path(__file__).parent)
"""The schema's history for Alembic: one file for each version, named by it."""


def scripts() -> ScriptDirectory:
    """The schema's history."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(_VERSIONS, version_locations=[_VERSIONS])


def migrate(connection: sa.Connection, version: int) -> None:
    """Run the migrations from a schema's version to the program's, within the caller's transaction.

    Raises InputError for a version that never was.
    """
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.runtime.migration import MigrationContext

    script = scripts()
    if str(version) not in {each.revision for each in script.walk_revisions()}:
        raise InputError(f"the store is of version {version}, which no evenhand wrote")

    def steps(present: Any, _context: Any) -> Any:
        return script._upgrade_revs(SCHEMA_VERSION, present)

    # `meta` holds a store's schema version: new stores are made without Alembic.
    MigrationContext.configure(connection).stamp(script, str(version))
    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection)
        environment.run_migrations()
    set_schema_version(connection)
