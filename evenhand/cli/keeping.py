"""`backup`, `restore`, `doctor` and `store`: keeping a study safe, elsewhere, and up to date."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.exits import BAD_INPUT, DONE
from evenhand.cli.terminal import console, working
from evenhand.cli.verbs import Parser, Verb, add_verbs, refuse
from evenhand.errors import InputError
from evenhand.reporting.noting import note_in
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study.keeping.copying import Contents


def _path(text: str) -> Path:
    """A path; an address is refused."""
    if "://" in text:
        raise argparse.ArgumentTypeError(
            "a backup is kept in a folder, not at an address; mount the bucket (rclone mount) and "
            "name a folder there"
        )
    return Path(text)


def _backup_options(backup: Parser) -> None:
    backup.add_study()
    backup.add_argument("file", nargs="?", type=_path, metavar="FILE", help="a new file, elsewhere")
    backup.add_argument(
        "--to",
        type=_path,
        metavar="FOLDER",
        help="a file of its own in this folder, for every night",
    )
    backup.add_argument(
        "--keep", type=int, default=14, metavar="N", help="with --to: the N latest stay (14)"
    )
    backup.add_argument(
        "--verify", action="store_true", help="with --to: read it back and restore it on trial"
    )


def _restore_options(restore: Parser) -> None:
    restore.add_argument("file", type=_path, metavar="FILE", help="what `evenhand backup` wrote")
    restore.add_argument("dir", type=Path, metavar="DIR", help="a new folder for the study")


def _store_options(store: Parser) -> None:
    add_verbs(store, ACTIONS, dest="action", required=True)


def _copy_options(copy: Parser) -> None:
    copy.add_study()
    copy.add_argument(
        "--to",
        required=True,
        metavar="URL",
        help="an empty PostgreSQL database, or a new file in the study's folder, such as study.db",
    )


def _upgrade_options(upgrade: Parser) -> None:
    upgrade.add_study()


def _backup(arguments: argparse.Namespace) -> None:
    from evenhand.study.keeping.backup import backup_study, keep_backups

    if (arguments.file is None) == (arguments.to is None):
        raise InputError("name a new FILE, or a folder with --to")
    if arguments.to is not None:
        with working("backing up"):
            kept = keep_backups(
                arguments.dir, arguments.to, arguments.keep, verify=arguments.verify
            )
        note_in(arguments.dir, "backup", kept.file.name)
        said = "backup_tried" if arguments.verify else "backup"
        console().print(written(f"keep.{said}", file=kept.file))
        _say(kept.contents)
        console().print(written("keep.backups", count=kept.number, folder=arguments.to))
        return
    refuse(arguments, ["--keep", "--verify"], "goes with --to")
    with working("backing up"):
        contents = backup_study(arguments.dir, arguments.file)
    note_in(arguments.dir, "backup", arguments.file.name)
    console().print(written("keep.backup", file=arguments.file))
    _say(contents)
    console().print(written("keep.backup_secret"))


def _doctor_options(doctor: Parser) -> None:
    doctor.add_study()
    doctor.add_argument("--url", metavar="URL", help="where people reach the app: https://NAME")


def _doctor(arguments: argparse.Namespace) -> int:
    from evenhand.cli.options import app_address
    from evenhand.study.keeping.doctor import examine

    found = examine(arguments.dir, app_address(arguments.url) if arguments.url else "")
    for each in found:
        console().print(written("doctor.good" if each.is_well else "doctor.mend", says=each.says))
    ill = sum(not each.is_well for each in found)
    console().print(written("doctor.end", count=ill) if ill else written("doctor.well"))
    return BAD_INPUT if ill else DONE


def _restore(arguments: argparse.Namespace) -> None:
    from evenhand.study.keeping.backup import restore_study

    with working("restoring"):
        hosts: list[str] = []
        contents = restore_study(arguments.file, arguments.dir, hosts.extend)
    note_in(arguments.dir, "study", arguments.dir.name, f"from {arguments.file.name}")
    console().print(written("keep.restore", folder=arguments.dir))
    _say(contents)
    if hosts:
        said = {"names": ", ".join(hosts), "folder": arguments.dir}
        console().print(written("keep.hosts", **said))
    console().print(written("keep.restore_next", folder=arguments.dir))


def _say(contents: Contents) -> None:
    console().print(written("keep.holds", **asdict(contents)))


def _copy(arguments: argparse.Namespace) -> None:
    from evenhand.study.keeping.moving import move_store

    with working("copying the store"):
        moved = move_store(arguments.dir, arguments.to)
    note_in(arguments.dir, "store", "", "copied")
    rows = sum(table.rows for table in moved.values())
    console().print(written("keep.copy", rows=rows, tables=len(moved)))
    console().print(written("keep.copy_now"))


def _upgrade(arguments: argparse.Namespace) -> None:
    from evenhand.study.keeping.moving import upgrade_store

    with working("upgrading the store"):
        done = upgrade_store(arguments.dir)
    if done.backup is None:
        console().print(written("keep.upgrade_none", now=done.now))
        return
    note_in(arguments.dir, "store", "", f"schema {done.before} to {done.now}")
    console().print(written("keep.upgrade", before=done.before, now=done.now))
    console().print(written("keep.upgrade_backup", file=done.backup))


ACTIONS = (
    Verb("copy", "move the study's store to another database", _copy_options, _copy),
    Verb("upgrade", "bring an older study's store to this evenhand", _upgrade_options, _upgrade),
)
VERBS = (
    Verb("backup", "write a study to one file, while people label", _backup_options, _backup),
    Verb("restore", "make a study's folder from a backup", _restore_options, _restore),
    Verb("doctor", "what is not as a served study should be", _doctor_options, _doctor),
    Verb("store", "move a study's database, or upgrade it", _store_options),
)
