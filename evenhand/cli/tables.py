"""`import`, `export`: the tables that go into a study and come out of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.options import FILE_OPTIONS, FORMAT_OPTION, file_options, keys_in
from evenhand.cli.terminal import console, print_lines
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.errors import InputError
from evenhand.reporting.noting import note, note_in
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.study import Study


_NAMING = ("--columns", "--human", "--model")
"""Options that say who is who in a ratings file that is exported."""


def _import_options(imports: Parser) -> None:
    imports.add_study()
    imports.add_argument(
        "file", type=Path, metavar="FILE", help="a table, or an export of another tool"
    )
    imports.add_argument(
        "--kind",
        choices=["ratings", "responses"],
        help="what the file holds (seen from its columns)",
    )
    for option, how in (FORMAT_OPTION | FILE_OPTIONS).items():
        imports.add_argument(option, **how)
    imports.add_argument(
        "--missing", metavar="VALUE,...", help="labels that say that there is none, such as 99"
    )


def _export_options(export: Parser) -> None:
    export.add_argument(
        "dir", type=Path, metavar="DIR|RATINGS", help="the study's folder; or a file, with --format"
    )
    export.add_trust()
    export.add_argument("--out", type=Path, metavar="FILE", help="where the ratings go")
    export.add_argument(
        "--format",
        metavar="NAME",
        help="for a tool: argilla, hugging-face, inspect, label-studio, langfuse, langsmith, "
        "mlflow, phoenix, wide",
    )
    export.add_argument(
        "--rater", action="append", metavar="ID", help="only this rater, repeatable (--format)"
    )
    export.add_argument(
        "--units", type=Path, metavar="FILE", help="where the units go (next to the ratings)"
    )
    export.add_argument(
        "--remarks", type=Path, metavar="FILE", help="where confidence, reasons and flags go"
    )
    export.add_argument(
        "--answers", type=Path, metavar="FILE", help="where it goes how each label was given"
    )
    for option in _NAMING:
        export.add_argument(option, **FILE_OPTIONS[option])


def _import(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.study import open_study

    with open_study(arguments.dir) as study:
        kind = arguments.kind or _kind_of(arguments.file, arguments.format)
        if kind == "responses":
            refuse(
                arguments,
                FORMAT_OPTION | FILE_OPTIONS,
                "is about ratings, and the file holds responses",
            )
            _import_responses(study, arguments.file)
        else:
            missing = keys_in(arguments.missing) or study.config.analysis.missing
            options = ScaleOptions(
                format=arguments.format, settings={"missing": missing}, **file_options(arguments)
            )
            _import_ratings(study, arguments.file, options)


def _kind_of(file: Path, form: str | None) -> str:
    """responses or ratings, by the columns of a table; all exports of other tools are ratings."""
    from evenhand.exchange.readers.reading import TABLE, format_of
    from evenhand.exchange.readers.source import Source
    from evenhand.study.tables.formats import read_table

    is_table = (form or format_of(Source(file))) == TABLE
    return "responses" if is_table and "response" in read_table(file) else "ratings"


def _import_responses(study: Study, file: Path) -> None:
    from evenhand.reporting.names_shown import names_shown
    from evenhand.reporting.new_study import display_of
    from evenhand.study.prompts.pairs import read_responses

    frame = read_responses(file, study.store.pairs(), study.rubrics.values())
    new = study.store.add_responses(frame)
    empty = int((frame["response"].str.strip() == "").sum())
    note(study, "import", file.name, f"responses: {new}")
    subjects, known = frame["subject"].nunique(), len(frame) - new
    console().print(
        written("tables.responses", new=new, subjects=subjects, known=known, empty=empty)
    )
    if new:
        print_lines([sentence for sentence in (display_of(study), *names_shown(study)) if sentence])


def _import_ratings(study: Study, file: Path, options: ScaleOptions) -> None:
    from evenhand.reporting.ratings_file.dataframes import rows_of_file
    from evenhand.study.lead.imports import import_ratings, names_of_study
    from evenhand.study.tables.ratings import split_ratings

    rows = rows_of_file(file, options)
    ratings, _ = split_ratings(rows.table, file.name)
    is_none = ratings["label"].isin(options.missing)
    ratings = names_of_study(study, ratings[~is_none], options.normalise)
    for sentence in rows.notes:
        console().print(sentence)
    if is_none.any():
        labels = f"{', '.join(options.missing)} ({int(is_none.sum()):,})"
        console().print(written("reading.no_label", labels=labels))
    new, known = import_ratings(study, ratings, file.name)
    note(study, "import", file.name, f"ratings: {new}")
    raters = ratings["rater_id"].nunique()
    console().print(written("tables.ratings", new=new, raters=raters, known=known))


def _export(arguments: argparse.Namespace) -> None:
    if arguments.format is not None:
        _export_to_tool(arguments)
    else:
        refuse(arguments, ["--rater", *_NAMING], "goes with --format, for another tool")
        _export_tables(arguments)


def _export_to_tool(arguments: argparse.Namespace) -> None:
    from evenhand.exchange.writers import check_out, format_of, save
    from evenhand.reporting.ratings_file.dataframes import kinds_of
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.reporting.to_tools import material_of
    from evenhand.study.tables.ratings import columns_in

    beside = ["--units", "--remarks", "--answers"]
    refuse(arguments, beside, "is a table of its own; export it without --format")
    if arguments.dir.is_dir():
        refuse(arguments, _NAMING, "is for a ratings file; a study has its own columns")
    if arguments.out is None:
        raise InputError("say where to write: --out FILE")
    how = format_of(arguments.format)
    check_out(arguments.out, how)
    kinds = kinds_of(keys_in(arguments.human) or (), keys_in(arguments.model) or ())
    options = ScaleOptions(columns=columns_in(arguments.columns), kinds=kinds)
    material = material_of(arguments.dir, arguments.rater or (), options)
    made = how.make(material)
    out, *others = save(made, arguments.out, how)
    if arguments.dir.is_dir():
        note_in(arguments.dir, "export", ", ".join(file.name for file in (out, *others)))
    say = console().print
    for sentence in material.notes:
        say(sentence)
    say(written("writers.wrote", count=made.count, rows=how.rows, tool=how.tool, file=out))
    for file in others:
        say(written("writers.beside", file=file))
    for sentence in made.left_out:
        say(written("terminal.note", note=sentence))


def _export_tables(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.exporting import (
        attacked_path,
        exported_attacked,
        exported_ratings,
        exported_units,
        sidecar_text,
        units_path,
    )
    from evenhand.reporting.ratings_file.sidecar import sidecar_path
    from evenhand.study import open_study
    from evenhand.study.store.logs.answers import answers_table, remarks_table
    from evenhand.study.tables.files import atomic_write
    from evenhand.study.tables.formats import write_table

    out: Path | None = arguments.out
    if not (out or arguments.units or arguments.remarks or arguments.answers):
        raise InputError("say what to write: --out FILE for the ratings, --units FILE for units")
    # Without its units a verdict on the ratings would know of no clusters.
    to_units: Path | None = arguments.units or (out and units_path(out))
    named = [path for path in (out, to_units, arguments.remarks, arguments.answers) if path]
    if len(set(named)) < len(named):
        raise InputError("two tables would go to the same file; give each its own")
    with open_study(arguments.dir) as study:
        if out is not None:
            ratings = exported_ratings(study)
            write_table(ratings, out)
            console().print(written("tables.wrote_ratings", count=len(ratings), file=out))
            beside = sidecar_path(out)
            attacked, to_attacked = exported_attacked(study), attacked_path(out)
            if len(attacked):
                write_table(attacked, to_attacked)
                console().print(
                    written("tables.wrote_attacked", count=len(attacked), file=to_attacked)
                )
            audit = to_attacked.name if len(attacked) else ""
            text = sidecar_text(study, (to_units or units_path(out)).name, audit)
            atomic_write(beside, text.encode())
            console().print(written("tables.wrote_scales", file=beside))
            if study.config.analysis.rater_slices:
                warning = written("tables.background")
                console().print(written("terminal.note", note=warning))
        if to_units is not None:
            units = exported_units(study)
            write_table(units, to_units)
            console().print(written("tables.wrote_units", count=len(units), file=to_units))
        if arguments.remarks is not None:
            remarks = remarks_table(study.store)
            write_table(remarks, arguments.remarks)
            written_to = arguments.remarks
            console().print(written("tables.wrote_remarks", count=len(remarks), file=written_to))
        if arguments.answers is not None:
            answers = answers_table(study.store)
            write_table(answers, arguments.answers)
            written_to = arguments.answers
            console().print(written("tables.wrote_answers", count=len(answers), file=written_to))
        files = ", ".join(path.name for path in named)
        note(study, "export", files)


VERBS = (
    Verb("import", "add ratings or responses from a file", _import_options, _import),
    Verb(
        "export", "write ratings and units to files, or for another tool", _export_options, _export
    ),
)
