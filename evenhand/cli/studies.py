"""`new`, `extend` and `label`: making a study, enlarging it, and having people rate a file of items
in one command; files into it and out of it (`import`, `export`), and keeping it safe and current
(`backup`, `restore`, `doctor`, `store`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from evenhand.cli.main import (
    BAD_INPUT,
    DONE,
    annotators_address,
    app_address,
    call_with_options,
    options_from_command,
    print_lead_link,
    refuse,
    shared_option_names,
    study_of,
)
from evenhand.cli.terminal import console, print_line, print_lines, print_next, say, working
from evenhand.errors import InputError
from evenhand.exchange import writers
from evenhand.exchange.readers.reading import TABLE, format_of
from evenhand.exchange.readers.source import Source
from evenhand.reporting import exporting, new_study
from evenhand.reporting.new_study import display_of, names_shown
from evenhand.reporting.noting import changing_settings, note, note_in
from evenhand.reporting.panel import Columns, table_of
from evenhand.reporting.ratings_file.dataframes import rows_of_file
from evenhand.reporting.ratings_file.declared import LabelOptions, ScaleOptions, sidecar_path
from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import Study, extend_sample, keeping
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.desk.claims import judged_without_prompt
from evenhand.study.lead.imports import import_ratings, names_of_study
from evenhand.study.lead.progress import SECONDS_TO_DECIDE, WORDS_PER_MINUTE
from evenhand.study.prompts.pairs import prompts_noun, read_responses
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.formats import read_table, write_table, xlsx_bytes
from evenhand.study.tables.ratings import split_ratings
from evenhand.study.trust import remember
from evenhand.texts import written

ITEM_OPTIONS = shared_option_names("items")
"""Options that say what an items file holds, and what is asked."""
SETTLED = {*ITEM_OPTIONS, "--sample", "--stratify", "--seed", "--raters"}
"""Options that a study of items has settled once it is made."""


def label_options(arguments: argparse.Namespace) -> LabelOptions:
    """Return what the command line says of an items file."""
    settled = [option for option in arguments.given if option in SETTLED]
    return call_with_options(LabelOptions, arguments, given=settled)


def run_label(arguments: argparse.Namespace) -> int:
    from evenhand.annotate_app import serve
    from evenhand.local_page import app_port, open_when_up

    port = app_port(arguments.port)
    folder: Path = arguments.dir or Path(f"{arguments.file.stem}-study")
    wanted = label_options(arguments)
    address, public = annotators_address(arguments, port)
    labelling = new_study.label_items(arguments.file, folder, wanted, port=port, address=address)
    print_lines([*labelling.notes, labelling.links_heading])
    for link in labelling.links:
        print_line(link)
    if not public:
        say("items.here_only")
    print_lead_link(folder, address.rstrip("/"))
    if not arguments.no_browser:
        open_when_up(labelling.links[0], port)
    return serve(folder, port=port, public_host=public)


def run_new(arguments: argparse.Namespace) -> None:
    new_study.check_numbers(arguments.raters, arguments.seed)
    made = None
    if arguments.items:
        made = new_study.item_study(arguments.items, label_options(arguments))
    else:
        because = "goes with --items; pairs and propositions have rubrics"
        refuse(arguments, ITEM_OPTIONS, because)
    if made:
        rubrics: Sequence[Rubric] = made.rubrics
    elif arguments.rubric:
        rubrics = [load_rubric(name) for name in arguments.rubric]
    else:
        rubrics = usual_rubrics(propositions=arguments.propositions is not None)
    others = {"items": made and made.items, "rubrics": rubrics, "raters_per_unit": arguments.raters}
    plan = call_with_options(StudyPlan, arguments, **others)
    if "://" in arguments.store or "$" in arguments.store:
        remember(arguments.dir, [arguments.store])  # as it was typed
    judged = new_study.make_study(arguments.dir, plan, made)
    with study_of(arguments) as study:
        if made:
            print_lines(made.sentences(judged, arguments.dir, study.config.sample.pairs))
        describe_study(study)
    folder = arguments.dir
    has_responses = arguments.responses is not None or made is not None
    steps = [] if has_responses else [f"import {folder} RESPONSES.jsonl"]
    has_cues = any(rubric.lexical for rubric in plan.rubrics)
    grader = "baseline:lexical" if has_cues else "PROVIDER:MODEL"
    steps += [f"annotate {folder}", f"grade {folder} --grader {grader}", f"report {folder}"]
    print_next(*steps)


def run_extend(arguments: argparse.Namespace) -> None:
    with study_of(arguments) as study:
        before = study.config.sample.pairs
        with changing_settings(study):
            size = extend_sample(study, arguments.pairs, arguments.by)
        note(study, "sample", "", f"pairs: {size}")
    with study_of(arguments) as study:
        noun = prompts_noun(study.store.pairs())
        say("new.grown", before=before, after=size, noun=noun)
        if arguments.by == "uncertainty":
            say("new.by_uncertainty", noun=noun)
        describe_study(study)


def describe_study(study: Study) -> None:
    """Print the sample and its size, the work it means, and what it can decide."""
    preview = new_study.preview_of(study)
    noun, counts = preview.noun, {"sampled": preview.sampled, "total": preview.total}
    say("new.sampled", **counts, noun=noun, seed=study.config.seed)
    load = preview.load
    if load:
        columns: Columns = {
            "rubric": lambda assigned: assigned.rubric,
            "units": lambda assigned: f"{assigned.units}",
            "annotators each": lambda assigned: f"{assigned.raters}",
            "labels": lambda assigned: f"{assigned.judgments}",
            "hours": lambda assigned: f"{assigned.hours:.0f}",
        }
        print_lines([table_of(columns, load, written("new.work"))])
        say("new.hours", words=WORDS_PER_MINUTE, seconds=SECONDS_TO_DECIDE)
    else:
        say("new.no_responses")
    # Rubrics that are judged without the prompt, and whether that can be kept.
    if hiding := judged_without_prompt(study.labelled_rubrics()):
        names = ", ".join(rubric.name for rubric in hiding)
        together = study.config.annotation.screen == "all"
        say("prompts.together" if together else "prompts.first", rubrics=names)
        if study.config.annotation.repeat_share:
            say("prompts.repeats", rubrics=names)
    print_lines(filter(None, (preview.display, *preview.precision, *preview.names)))


# Files into a study and out of it, and keeping a study safe and current

_NAMING = shared_option_names("naming")
"""Options that say who is who in a ratings file that is exported."""
_TABLES = ["--units", "--remarks", "--answers"]


def run_import(arguments: argparse.Namespace) -> None:
    with study_of(arguments) as study:
        kind = arguments.kind
        if kind is None and (arguments.format or format_of(Source(arguments.file))) == TABLE:
            kind = "responses" if "response" in read_table(arguments.file) else "ratings"
        if kind == "responses":
            because = "is about ratings, and the file holds responses"
            refuse(arguments, shared_option_names("reading"), because)
            _import_responses(study, arguments.file)
        else:
            options = options_from_command(arguments)
            settings = {"missing": options.missing or study.config.analysis.missing}
            _import_ratings(study, arguments.file, replace(options, settings=settings))


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
    rows, read = rows_of_file(file, options)
    ratings, _ = split_ratings(rows, file.name)
    is_none = ratings["label"].isin(options.missing)
    ratings = names_of_study(study, ratings[~is_none], options.normalise)
    print_lines(read.notes)
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
        (_export_final if arguments.final else _export_tables)(arguments)


def _export_to_tool(arguments: argparse.Namespace) -> None:
    tables = ["--final", *_TABLES]
    refuse(arguments, tables, "is a table of its own; export it without --format")
    if arguments.dir.is_dir():
        refuse(arguments, _NAMING, "is for a ratings file; a study has its own columns")
    if arguments.out is None:
        raise InputError("say where to write: --out FILE")
    how = writers.format_of(arguments.format)
    writers.check_out(arguments.out, how)
    options = replace(options_from_command(arguments), format=None, units=None)
    material = exporting.material_of(arguments.dir, arguments.rater or (), options)
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


def _export_final(arguments: argparse.Namespace) -> None:
    refuse(arguments, _TABLES, "is a table of its own; export it without --final")
    if (out := arguments.out) is None:
        raise InputError("say where to write: --out FILE")
    with study_of(arguments) as study:
        table = exporting.exported_final(study)
        if out.suffix.casefold() == ".xlsx":
            atomic_write(out, xlsx_bytes(table, out.name))
        else:
            write_table(table, out)
        note(study, "export", out.name)
    say("tables.wrote_final", count=len(table), file=out)


def _export_tables(arguments: argparse.Namespace) -> None:
    out: Path | None = arguments.out
    if not (out or arguments.units or arguments.remarks or arguments.answers):
        raise InputError("say what to write: --out FILE for the ratings, --units FILE for items")
    # Without its units a verdict on the ratings would know of no clusters.
    to_units: Path | None = arguments.units or (out and exporting.part_path(out, "units"))
    named = [path for path in (out, to_units, arguments.remarks, arguments.answers) if path]
    if len(set(named)) < len(named):
        raise InputError("two tables would go to the same file; give each its own")

    def write(what: str, table: pd.DataFrame, file: Path) -> None:
        write_table(table, file)
        say(f"tables.wrote_{what}", count=len(table), file=file)

    with study_of(arguments) as study:
        if out is not None:
            write("ratings", exporting.exported_ratings(study), out)
            attacked, audit = exporting.exported_attacked(study), ""
            if len(attacked):
                to_attacked = exporting.part_path(out, "attacked")
                write("attacked", attacked, to_attacked)
                audit = to_attacked.name
            units = to_units or exporting.part_path(out, "units")
            text = exporting.sidecar_text(study, units.name, audit)
            atomic_write(sidecar_path(out), text.encode())
            say("tables.wrote_scales", file=sidecar_path(out))
            side = study.config.side
            if {*study.config.analysis.rater_slices} - ({side.key} if side else set()):
                say("terminal.note", note=written("tables.background"))
        if to_units is not None:
            write("units", exporting.exported_units(study), to_units)
        if arguments.remarks is not None:
            write("remarks", exporting.exported_remarks(study), arguments.remarks)
        if arguments.answers is not None:
            write("answers", exporting.exported_answers(study), arguments.answers)
        note(study, "export", ", ".join(path.name for path in named))


def run_backup(arguments: argparse.Namespace) -> None:
    if (arguments.file is None) == (arguments.to is None):
        raise InputError("name a new FILE, or a folder with --to")
    if arguments.to is not None:
        with working("backing up"):
            how = {"verify": arguments.verify}
            kept = keeping.keep_backups(arguments.dir, arguments.to, arguments.keep, **how)
        note_in(arguments.dir, "backup", kept.file.name)
        say("keep.backup_tried" if arguments.verify else "keep.backup", file=kept.file)
        say("keep.holds", **asdict(kept.contents))
        say("keep.backups", count=kept.number, folder=arguments.to)
        return
    refuse(arguments, ["--keep", "--verify"], "goes with --to")
    with working("backing up"):
        contents = keeping.backup_study(arguments.dir, arguments.file)
    note_in(arguments.dir, "backup", arguments.file.name)
    say("keep.backup", file=arguments.file)
    say("keep.holds", **asdict(contents))
    say("keep.backup_secret")


def run_doctor(arguments: argparse.Namespace) -> int:
    findings = keeping.examine(arguments.dir, app_address(arguments.url) if arguments.url else "")
    for finding in findings:
        say("doctor.good" if finding.is_well else "doctor.mend", says=finding.says)
    ill = sum(not finding.is_well for finding in findings)
    console().print(written("doctor.end", count=ill) if ill else written("doctor.well"))
    return BAD_INPUT if ill else DONE


def run_restore(arguments: argparse.Namespace) -> None:
    with working("restoring"):
        hosts: list[str] = []
        contents = keeping.restore_study(arguments.file, arguments.dir, hosts.extend)
    note_in(arguments.dir, "study", arguments.dir.name, f"from {arguments.file.name}")
    say("keep.restore", folder=arguments.dir)
    say("keep.holds", **asdict(contents))
    if hosts:
        say("keep.hosts", names=", ".join(hosts), folder=arguments.dir)
    say("keep.restore_next", folder=arguments.dir)


def run_copy(arguments: argparse.Namespace) -> None:
    with working("copying the store"):
        moved = keeping.move_store(arguments.dir, arguments.to)
    note_in(arguments.dir, "store", "", "copied")
    rows = sum(table.rows for table in moved.values())
    say("keep.copy", rows=rows, tables=len(moved))
    say("keep.copy_now")


def run_upgrade(arguments: argparse.Namespace) -> None:
    with working("upgrading the store"):
        done = keeping.upgrade_store(arguments.dir)
    if done.backup is None:
        say("keep.upgrade_none", now=done.now)
        return
    note_in(arguments.dir, "store", "", f"schema {done.before} to {done.now}")
    say("keep.upgrade", before=done.before, now=done.now)
    say("keep.upgrade_backup", file=done.backup)
