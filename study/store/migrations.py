"""Upgrading an older store to the program's schema, all of it or nothing."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn

from evenhand.errors import InputError
from evenhand.study.store.database import set_schema_version
from evenhand.study.store.schema import SHOWN, batches, grades, metadata

ADDED = {
    "labels": SHOWN,
    "attention_labels": SHOWN,
    "practice_labels": SHOWN,
    "login_attempts": ("address_key",),
}
"""Columns that tables of schema 1 lack. Schema 1 is that of version 0.1.0, 2 of 0.2.0."""
_EVERYBODYS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
}


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring a store of schema 1 to the program's schema, within the caller's transaction.

    Raises InputError for a version that never was.
    """
    if version != 1:
        raise InputError(f"the store is of version {version}, which no evenhand wrote")
    metadata.create_all(connection)
    for table, names in ADDED.items():
        for name in names:
            column = CreateColumn(metadata.tables[table].c[name]).compile(connection)
            connection.execute(sa.text(f"ALTER TABLE {table} ADD COLUMN {column}"))
    _name_addresses(connection, grades, grades.c.provenance["base_url"].as_string())
    _name_addresses(connection, batches, batches.c.base_url)
    set_schema_version(connection)


def _name_addresses(
    connection: sa.Connection, table: sa.Table, column: sa.ColumnElement[str]
) -> None:
    """Put the address into the names of graders that another server than the provider's answered.

    Version 0.1.0 sent `anthropic:MODEL` to ANTHROPIC_BASE_URL and kept the grades under that name.
    """
    named = sa.select(table.c.rater_id, column).distinct()
    for rater, address in connection.execute(named).all():
        provider, _, model = rater.partition(":")
        known, address = _EVERYBODYS.get(provider), (address or "").rstrip("/")
        if not known or not address or address == known or "@http" in rater:
            continue
        model, hashed, settings = model.partition("#")
        connection.execute(
            sa.update(table)
            .where(table.c.rater_id == rater, column.in_((address, f"{address}/")))
            .values(rater_id=f"{provider}:{model}@{address}{hashed}{settings}")
        )
