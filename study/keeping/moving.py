"""Moving a study's store to another place, SQLite or PostgreSQL, or to a newer schema.

Until the last step the study is unchanged; a run that is killed has done nothing, or all.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn

from evenhand.errors import InputError, StoreAway
from evenhand.study.keeping.backup import (
    BACKUPS,
    States,
    backup_of,
    copy_tables,
    found_tables,
    states,
)
from evenhand.study.settings.study_toml import change_config, read_config
from evenhand.study.store.database import SILENT, Database, is_url, resolved, set_schema_version
from evenhand.study.store.meta import study_secret
from evenhand.study.store.schema import SCHEMA_VERSION, SHOWN, batches, grades, meta, metadata
from evenhand.study.tables.files import give_to_owner_of, new_folder, tighten
from evenhand.study.trust import remember

_FILE_URL = "sqlite:///"


@dataclass(frozen=True)
class Upgraded:
    """The schema before an upgrade and after it, and the backup of the study from before."""

    before: int
    now: int
    backup: Path | None


def move_store(folder: Path, to: str) -> States:
    """Copy the store to a URL, or to a file name within the folder, and let study.toml name it.

    Returns the rows and checksum of every table. The former store stays as it is. Raises InputError
    where the study is open elsewhere, or the place holds anything but this very state of it; it or
    StoreAway where one of the two does not answer.
    """
    config = read_config(folder)
    place = _new_place(folder, config.store, to)
    if "://" in place or "$" in place:
        remember(folder, [place])  # as it was typed
    store = Database.connect(config.store, folder, alone=True, silent=SILENT)
    with contextlib.closing(store), store.only_user() as source:
        moved = _to_database(store, source, place, folder)
        change_config(folder, {"": {"store": place}})
    _hand_over(folder)
    return moved


def upgrade_store(folder: Path) -> Upgraded:
    """Bring the store to the program's schema, all or nothing, after a backup.

    Raises InputError where a newer evenhand wrote it, or the study is open elsewhere; StoreAway
    where the database does not answer.
    """
    config = read_config(folder)
    store = Database.connect(config.store, folder, alone=True, silent=SILENT)
    with contextlib.closing(store):
        with store.only_user():  # no one else is about to write
            pass
        before, now = store.schema_version(), int(SCHEMA_VERSION)
        if before == now:
            store.check_schema()
            study_secret(store)
            _hand_over(folder)
            return Upgraded(before, now, None)
        new_folder(folder / BACKUPS)
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        file = folder / BACKUPS / f"schema-{before}-{moment}.zip"
        backup_of(store, folder, file)
        with store.only_user() as connection:
            kept = found_tables(connection)
            rows = _rows(connection, kept)
            migrate(connection, before)
            if _rows(connection, kept) != rows:
                raise InputError("the upgrade would have lost rows; nothing was changed")
        store.check_schema()
        study_secret(store)  # made with every new study; versions before 0.3.0 made it late
    _hand_over(folder)
    return Upgraded(before, now, file)


def _hand_over(folder: Path) -> None:
    """Close the folder to others, and give what root wrote in it to the study's owner."""
    tighten(folder)
    give_to_owner_of(folder, *folder.iterdir(), *(folder / BACKUPS).glob("*"))


def _rows(connection: sa.Connection, tables: sa.MetaData) -> dict[str, int]:
    count = sa.select(sa.func.count())
    return {
        name: connection.execute(count.select_from(table)).scalar_one()
        for name, table in tables.tables.items()
        if name != "alembic_version"
    }


def _new_place(folder: Path, present: str, to: str) -> str:
    """Return the store's new location. Raises InputError for the present or an invalid one."""
    location = resolved(to)
    if location.startswith(_FILE_URL):
        path = Path(location.removeprefix(_FILE_URL))
        is_ours = path.parent.resolve() == folder.resolve()
        to = location = path.name if is_ours else str(path)
    if location == resolved(present):
        raise InputError("--to names the place where the study's store is already")
    is_name = Path(location).name == location and location[:1] not in ("", ".")
    is_file = is_name and not (folder / location).is_dir()
    if not location.startswith("postgresql+psycopg://") and not is_file:
        raise InputError(
            "--to takes the URL of a PostgreSQL database, or the name of a file in the study's "
            "folder, such as study.db"
        )
    return to


def _to_database(store: Database, source: sa.Connection, place: str, folder: Path) -> States:
    location = resolved(place)
    file = folder / location
    if is_url(location) or file.exists():
        target = Database.connect(place, folder, silent=SILENT)
        with contextlib.closing(target):
            return _copied(store, source, target)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{location}.") as building:
        target = Database.connect(location, Path(building), create=True)
        with contextlib.closing(target):
            moved = _copied(store, source, target)
        os.replace(Path(building) / location, file)  # closed, so it has no log next to it
    return moved


def _copied(store: Database, source: sa.Connection, target: Database) -> States:
    """Copy to an empty database; one that holds the same already, since a run was stopped between
    the copy and the settings, is left as it is.
    """

    def on_rows() -> None:  # whichever of the two they come from, the other has nothing to say
        store.goes_on()
        target.goes_on()

    try:
        with target.write(bounded=False) as connection:
            if not sa.inspect(connection).has_table(meta.name):
                return copy_tables(source, connection, on_rows)
            wanted = states(source, found_tables(source), on_rows)
            if states(connection, found_tables(connection), on_rows) == wanted:
                return wanted
    except (StoreAway, sa.exc.DatabaseError) as error:
        reason = str(error.__cause__).splitlines()[0]  # in the driver's words
        raise InputError(f"the store cannot be copied there: {reason}") from None
    raise InputError(
        "--to holds another study, or another state of this one; name an empty database or a new "
        "file"
    )


# Upgrading an older store to the program's schema, all of it or nothing


ADDED = {
    "labels": SHOWN,
    "attention_labels": SHOWN,
    "practice_labels": SHOWN,
    "login_attempts": ("address_key",),
}
"""Columns that tables of schema 1 lack. Schema 1 is that of version 0.1.0, 2 of 0.2.0."""
_EVERYBODYS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}


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
