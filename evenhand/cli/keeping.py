"""What goes into a study and comes out of it (`import`, `export`), and keeping it safe and current
(`backup`, `restore`, `doctor`, `store`).
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from evenhand.cli.options import app_address, given_options
from evenhand.cli.terminal import console, print_lines, say, working
from evenhand.cli.verbs import BAD_INPUT, DONE, refuse, shared_names, study_of
from evenhand.errors import InputError
from evenhand.exchange import writers
from evenhand.exchange.readers.reading import TABLE, format_of
from evenhand.exchange.readers.source import Source
from evenhand.reporting.exporting import (
    attacked_path,
    exported_attacked,
    exported_ratings,
    exported_units,
    material_of,
    sidecar_text,
    units_path,
)
from evenhand.reporting.new_study import display_of, names_shown
from evenhand.reporting.noting import note, note_in
from evenhand.reporting.ratings_file.dataframes import rows_of_file
from evenhand.reporting.ratings_file.declared import ScaleOptions, sidecar_path
from evenhand.study import Study
from evenhand.study.keeping import (
    Contents,
    backup_study,
    examine,
    keep_backups,
    move_store,
    restore_study,
    upgrade_store,
)
from evenhand.study.lead.imports import import_ratings, names_of_study
from evenhand.study.prompts.pairs import read_responses
from evenhand.study.store.logs.answers import answers_table, remarks_table
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.formats import read_table, write_table
from evenhand.study.tables.ratings import split_ratings
from evenhand.texts import written

_NAMING = shared_names("naming")
"""Options that say who is who in a ratings file that is exported."""


def run_import(arguments: argparse.Namespace) -> None:
    with study_of(arguments) as study:
        kind = arguments.kind or _kind_of(arguments.file, arguments.format)
        if kind == "responses":
            because = "is about ratings, and the file holds responses"
            refuse(arguments, shared_names("reading"), because)
            _import_responses(study, arguments.file)
        else:
            options = given_options(arguments)
            missing = options.missing or study.config.analysis.missing
            settings = {"missing": missing}
            _import_ratings(study, arguments.file, replace(options, settings=settings))


def _kind_of(file: Path, form: str | None) -> str:
    """responses or ratings, by the columns of a table; all exports of other tools are ratings."""
    is_table = (form or format_of(Source(file))) == TABLE
    return "responses" if is_table and "response" in read_table(file) else "ratings"


def _import_responses(study: Study, file: Path) -> None:
    frame = read_responses(file, study.store.pairs(), study.rubrics.values())
    new = study.store.add_responses(frame)
    empty = int((frame["response"].str.strip() == "").sum())
    note(study, "import", file.name, f"responses: {new}")
    subjects, known = frame["subject"].nunique(), len(frame) - new
    say("tables.responses", new=new, subjects=subjects, known=known, empty=empty)
    if new:
        print_lines([sentence for sentence in (display_of(study), *names_shown(study)) if sentence])


def _import_ratings(study: Study, file: Path, options: ScaleOptions) -> None:
    rows = rows_of_file(file, options)
    ratings, _ = split_ratings(rows.table, file.name)
    is_none = ratings["label"].isin(options.missing)
    ratings = names_of_study(study, ratings[~is_none], options.normalise)
    print_lines(rows.notes)
    if is_none.any():
        labels = f"{', '.join(options.missing)} ({int(is_none.sum()):,})"
        say("reading.no_label", labels=labels)
    new, known = import_ratings(study, ratings, file.name)
    note(study, "import", file.name, f"ratings: {new}")
    raters = ratings["rater_id"].nunique()
    say("tables.ratings", new=new, raters=raters, known=known)


def run_export(arguments: argparse.Namespace) -> None:
    if arguments.format is not None:
        _export_to_tool(arguments)
    else:
        refuse(arguments, ["--rater", *_NAMING], "goes with --format, for another tool")
        _export_tables(arguments)


def _export_to_tool(arguments: argparse.Namespace) -> None:
    beside = ["--units", "--remarks", "--answers"]
    refuse(arguments, beside, "is a table of its own; export it without --format")
    if arguments.dir.is_dir():
        refuse(arguments, _NAMING, "is for a ratings file; a study has its own columns")
    if arguments.out is None:
        raise InputError("say where to write: --out FILE")
    how = writers.format_of(arguments.format)
    writers.check_out(arguments.out, how)
    options = replace(given_options(arguments), format=None, units=None)
    material = material_of(arguments.dir, arguments.rater or (), options)
    made = how.make(material)
    out, *others = writers.save(made, arguments.out, how)
    if arguments.dir.is_dir():
        note_in(arguments.dir, "export", ", ".join(file.name for file in (out, *others)))
    print_lines(material.notes)
    say("writers.wrote", count=made.count, rows=how.rows, tool=how.tool, file=out)
    for file in others:
        say("writers.beside", file=file)
    for sentence in made.left_out:
        say("terminal.note", note=sentence)


def _export_tables(arguments: argparse.Namespace) -> None:
    out: Path | None = arguments.out
    if not (out or arguments.units or arguments.remarks or arguments.answers):
        raise InputError("say what to write: --out FILE for the ratings, --units FILE for units")
    # Without its units a verdict on the ratings would know of no clusters.
    to_units: Path | None = arguments.units or (out and units_path(out))
    named = [path for path in (out, to_units, arguments.remarks, arguments.answers) if path]
    if len(set(named)) < len(named):
        raise InputError("two tables would go to the same file; give each its own")

    def write(what: str, table: pd.DataFrame, file: Path) -> None:
        write_table(table, file)
        say(f"tables.wrote_{what}", count=len(table), file=file)

    with study_of(arguments) as study:
        if out is not None:
            write("ratings", exported_ratings(study), out)
            beside = sidecar_path(out)
            attacked, to_attacked = exported_attacked(study), attacked_path(out)
            if len(attacked):
                write("attacked", attacked, to_attacked)
            audit = to_attacked.name if len(attacked) else ""
            text = sidecar_text(study, (to_units or units_path(out)).name, audit)
            atomic_write(beside, text.encode())
            say("tables.wrote_scales", file=beside)
            if study.config.analysis.rater_slices:
                say("terminal.note", note=written("tables.background"))
        if to_units is not None:
            write("units", exported_units(study), to_units)
        if arguments.remarks is not None:
            write("remarks", remarks_table(study.store), arguments.remarks)
        if arguments.answers is not None:
            write("answers", answers_table(study.store), arguments.answers)
        note(study, "export", ", ".join(path.name for path in named))


def run_backup(arguments: argparse.Namespace) -> None:
    if (arguments.file is None) == (arguments.to is None):
        raise InputError("name a new FILE, or a folder with --to")
    if arguments.to is not None:
        with working("backing up"):
            kept = keep_backups(
                arguments.dir, arguments.to, arguments.keep, verify=arguments.verify
            )
        note_in(arguments.dir, "backup", kept.file.name)
        said = "backup_tried" if arguments.verify else "backup"
        say(f"keep.{said}", file=kept.file)
        _say(kept.contents)
        say("keep.backups", count=kept.number, folder=arguments.to)
        return
    refuse(arguments, ["--keep", "--verify"], "goes with --to")
    with working("backing up"):
        contents = backup_study(arguments.dir, arguments.file)
    note_in(arguments.dir, "backup", arguments.file.name)
    say("keep.backup", file=arguments.file)
    _say(contents)
    say("keep.backup_secret")


def run_doctor(arguments: argparse.Namespace) -> int:
    found = examine(arguments.dir, app_address(arguments.url) if arguments.url else "")
    for each in found:
        say("doctor.good" if each.is_well else "doctor.mend", says=each.says)
    ill = sum(not each.is_well for each in found)
    console().print(written("doctor.end", count=ill) if ill else written("doctor.well"))
    return BAD_INPUT if ill else DONE


def run_restore(arguments: argparse.Namespace) -> None:
    with working("restoring"):
        hosts: list[str] = []
        contents = restore_study(arguments.file, arguments.dir, hosts.extend)
    note_in(arguments.dir, "study", arguments.dir.name, f"from {arguments.file.name}")
    say("keep.restore", folder=arguments.dir)
    _say(contents)
    if hosts:
        said = {"names": ", ".join(hosts), "folder": arguments.dir}
        say("keep.hosts", **said)
    say("keep.restore_next", folder=arguments.dir)


def _say(contents: Contents) -> None:
    say("keep.holds", **asdict(contents))


def run_copy(arguments: argparse.Namespace) -> None:
    with working("copying the store"):
        moved = move_store(arguments.dir, arguments.to)
    note_in(arguments.dir, "store", "", "copied")
    rows = sum(table.rows for table in moved.values())
    say("keep.copy", rows=rows, tables=len(moved))
    say("keep.copy_now")


def run_upgrade(arguments: argparse.Namespace) -> None:
    with working("upgrading the store"):
        done = upgrade_store(arguments.dir)
    if done.backup is None:
        say("keep.upgrade_none", now=done.now)
        return
    note_in(arguments.dir, "store", "", f"schema {done.before} to {done.now}")
    say("keep.upgrade", before=done.before, now=done.now)
    say("keep.upgrade_backup", file=done.backup)
