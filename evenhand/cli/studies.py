"""Commands that make and keep a study: `new`, `extend` and `label` (a file of items, in one
command); `import` and `export`; `backup`, `restore`, `doctor`, and `store copy` and `store
upgrade`. Each function `run_VERB` runs one of them with its parsed options.
"""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from evenhand.cli import main
from evenhand.cli.terminal import console, print_line, print_lines, print_next, say, working
from evenhand.errors import InputError
from evenhand.exchange import writers
from evenhand.exchange.readers.reading import TABLE, format_of
from evenhand.exchange.readers.source import Source
from evenhand.reporting import exporting, new_study
from evenhand.reporting.noting import changing_settings, note, note_in
from evenhand.reporting.ratings_file.dataframes import rows_of_file
from evenhand.reporting.ratings_file.declared import LabelOptions, ScaleOptions, sidecar_path
from evenhand.reporting.ratings_file.labels import labels_of_rubrics
from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import Study, extend_sample, keeping
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.desk.claims import judged_without_prompt
from evenhand.study.lead.imports import import_ratings, with_study_names
from evenhand.study.lead.progress import SECONDS_TO_DECIDE, WORDS_PER_MINUTE
from evenhand.study.prompts.pairs import prompts_noun, read_responses
from evenhand.study.settings.study_toml import change_config
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.formats import read_table, write_table, xlsx_bytes
from evenhand.study.tables.ratings import split_ratings
from evenhand.study.trust import remember
from evenhand.texts import written

ITEM_OPTIONS = main.shared_option_names("items")
"""Options on the columns of an items file, and on its rubric."""
FIXED_OPTIONS = {*ITEM_OPTIONS, "--sample", "--stratify", "--seed", "--raters"}
"""Options that cannot change once a study of items is made."""


def label_options(arguments: Namespace) -> LabelOptions:
    """Return the options of an items file."""
    fixed = [option for option in arguments.given_options if option in FIXED_OPTIONS]
    return main.call_with(LabelOptions, arguments, given_options=fixed)


def run_label(arguments: Namespace) -> int:
    """Make a study of a file of items, print annotators' links, and serve their page."""
    from evenhand.annotate_app import serve
    from evenhand.local_page import app_port, open_when_up

    port = app_port(arguments.port)
    folder: Path = arguments.dir or Path(f"{arguments.file.stem}-study")
    options = label_options(arguments)
    address, host_name = main.annotators_address(arguments, port)
    labelling = new_study.label_items(arguments.file, folder, options, port=port, address=address)
    print_lines([*labelling.notes, labelling.links_heading])
    for link in labelling.links:
        print_line(link)
    if not host_name:
        say("items.here_only")
    main.print_lead_link(folder, address.rstrip("/"))
    if not arguments.no_browser:
        open_when_up(labelling.links[0], port)
    return serve(folder, port=port, public_host=host_name)


def run_new(arguments: Namespace) -> None:
    """Make a study of prompts or of items, and print what it can decide and the next commands."""
    new_study.check_raters_and_seed(arguments.raters, arguments.seed)
    content = items = None
    rubrics: Sequence[Rubric]
    if arguments.items:
        content = new_study.read_content(arguments.items, label_options(arguments))
        rubrics, items = content.rubrics, content.items
    else:
        reason = "goes with --items; pairs and propositions have rubrics"
        main.refuse(arguments, ITEM_OPTIONS, reason)
        usual = usual_rubrics(propositions=arguments.propositions is not None)
        rubrics = [load_rubric(name) for name in arguments.rubric or ()] or usual
    design = {"items": items, "rubrics": rubrics, "raters_per_unit": arguments.raters}
    plan = main.call_with(StudyPlan, arguments, **design)
    if "://" in arguments.store or "$" in arguments.store:  # an address, or a variable of one
        remember(arguments.dir, [arguments.store])  # trusted, since the user typed it
    n_judged = new_study.make_study(arguments.dir, plan, content)  # labels of a judge's column
    with main.study_of(arguments) as study:
        if content:
            print_lines(content.sentences(n_judged, arguments.dir, study.config.sample.pairs))
        describe_study(study)
    folder = arguments.dir
    has_responses = arguments.responses is not None or content is not None
    steps = [] if has_responses else [f"import {folder} RESPONSES.jsonl"]
    suits_offline_grader = any(rubric.lexical for rubric in plan.rubrics)
    grader = "baseline:lexical" if suits_offline_grader else "PROVIDER:MODEL"
    steps += [f"annotate {folder}", f"grade {folder} --grader {grader}", f"report {folder}"]
    print_next(*steps)


def run_extend(arguments: Namespace) -> None:
    """Enlarge the sample of a study, and print what it can decide now."""
    with main.study_of(arguments) as study:
        old_size = study.config.sample.pairs
        new_size = len(study.store.sample())
        with changing_settings(study):
            if new_size > old_size:  # a kill cut off an earlier call: no more than finish it
                change_config(study.folder, {"sample": {"pairs": new_size}})
            else:
                new_size = extend_sample(study, arguments.pairs, arguments.by)
        note(study, "sample", detail=f"pairs: {new_size}")
    with main.study_of(arguments) as study:  # opened again, with the new settings
        noun = prompts_noun(study.store.pairs())
        say("new.grown", before=old_size, after=new_size, noun=noun)
        if arguments.by == "uncertainty":
            say("new.by_uncertainty", noun=noun)
        describe_study(study)


def describe_study(study: Study) -> None:
    """Print the sample's size, the annotators' workload, and what the study can decide."""
    preview = new_study.preview_of(study)
    noun, counts = preview.noun, {"sampled": preview.sampled, "total": preview.total}
    say("new.sampled", **counts, noun=noun, seed=study.config.seed)
    if preview.load:
        rows = []
        for work in preview.load:  # on one rubric
            counts_of_rubric = map(str, (work.units, work.raters, work.judgments))
            rows.append([work.rubric, *counts_of_rubric, f"{work.hours:.0f}"])
        columns = ["rubric", "items", "annotators each", "labels", "hours"]
        print_lines([(written("new.work"), columns, rows)])
        say("new.hours", words=WORDS_PER_MINUTE, seconds=SECONDS_TO_DECIDE)
    else:
        say("new.no_responses")
    if shown_without_prompt := judged_without_prompt(study.labelled_rubrics()):
        names = ", ".join(rubric.name for rubric in shown_without_prompt)
        is_one_screen = study.config.annotation.screen == "all"
        say("prompts.together" if is_one_screen else "prompts.first", rubrics=names)
        if study.config.annotation.repeat_share:
            say("prompts.repeats", rubrics=names)
    print_lines(filter(None, (preview.display, *preview.precision, *preview.names)))


_RATER_OPTIONS = main.shared_option_names("naming")
"""Options on the raters of a ratings file that is exported."""
_TABLE_OPTIONS = ["--units", "--remarks", "--answers"]
"""Options of `export` that name files for further tables."""


def run_import(arguments: Namespace) -> None:
    """Store the responses or the ratings of a file."""
    with main.study_of(arguments) as study:
        kind = arguments.kind
        # Files of other tools hold ratings; a table's columns show which of the two it holds.
        if kind is None and (arguments.format or format_of(Source(arguments.file))) == TABLE:
            kind = "responses" if "response" in read_table(arguments.file) else "ratings"
        if kind == "responses":
            options = main.shared_option_names("reading")
            main.refuse(arguments, options, "is about ratings, and the file holds responses")
            _import_responses(study, arguments.file)
        else:
            scale = main.scale_options(arguments)
            missing = scale.missing or study.config.analysis.missing
            _import_ratings(study, arguments.file, replace(scale, settings={"missing": missing}))


def _import_responses(study: Study, file: Path) -> None:
    """Store the responses of a file, and print their numbers."""
    frame = read_responses(file, study.store.pairs(), study.rubrics.values())
    n_new = study.store.add_responses(frame)
    n_empty = int((frame["response"].str.strip() == "").sum())
    note(study, "import", file.name, f"responses: {n_new}")
    n_subjects, n_known = frame["subject"].nunique(), len(frame) - n_new
    say("tables.responses", new=n_new, subjects=n_subjects, known=n_known, empty=n_empty)
    if n_new:
        print_lines([*filter(None, (new_study.display_of(study), *new_study.names_shown(study)))])


def _import_ratings(study: Study, file: Path, options: ScaleOptions) -> None:
    """Store the ratings of a file, read with these options, and print their numbers."""
    rows, reading = rows_of_file(file, options)
    ratings, notes = labels_of_rubrics(split_ratings(rows, file.name)[0], reading, study.rubrics)
    ratings = with_study_names(study, ratings, options.normalise)
    print_lines([*reading.notes, *notes])
    n_new, n_known = import_ratings(study, ratings, file.name)
    note(study, "import", file.name, f"ratings: {n_new}")
    say("tables.ratings", new=n_new, raters=ratings["rater_id"].nunique(), known=n_known)


def run_export(arguments: Namespace) -> None:
    """Write a study's tables, its final labels, or a file for another tool."""
    if arguments.format is not None:
        _export_to_tool(arguments)
    else:
        main.refuse(arguments, ["--rater", *_RATER_OPTIONS], "goes with --format, for another tool")
        (_export_final if arguments.final else _export_tables)(arguments)


def _export_to_tool(arguments: Namespace) -> None:
    """Write the ratings of a study or of a file in the format of another tool."""
    table_options = ["--final", *_TABLE_OPTIONS]
    main.refuse(arguments, table_options, "is a table of its own; export it without --format")
    if arguments.dir.is_dir():
        main.refuse(arguments, _RATER_OPTIONS, "is for a ratings file; a study has its own columns")
    if arguments.out is None:
        raise InputError("say where to write: --out FILE")
    writer = writers.format_of(arguments.format)
    writers.check_out(arguments.out, writer)
    options = replace(main.scale_options(arguments), format=None, units=None)
    study_export = exporting.material_of(arguments.dir, arguments.rater or (), options)
    written_tables = writer.make(study_export)
    main_file, *further_files = writers.save(written_tables, arguments.out, writer)
    if arguments.dir.is_dir():
        names = [file.name for file in (main_file, *further_files)]
        note_in(arguments.dir, "export", ", ".join(names))
    print_lines(study_export.notes)
    counts = {"count": written_tables.count, "rows": writer.rows}
    say("writers.wrote", **counts, tool=writer.tool, file=main_file)
    for file in further_files:
        say("writers.beside", file=file)
    for sentence in written_tables.left_out:
        say("terminal.note", note=sentence)


def _export_final(arguments: Namespace) -> None:
    """Write the final label of each item."""
    main.refuse(arguments, _TABLE_OPTIONS, "is a table of its own; export it without --final")
    if (out := arguments.out) is None:
        raise InputError("say where to write: --out FILE")
    with main.study_of(arguments) as study:
        table = exporting.exported_final(study)
        if out.suffix.casefold() == ".xlsx":
            atomic_write(out, xlsx_bytes(table, out.name))
        else:
            write_table(table, out)
        note(study, "export", out.name)
    say("tables.wrote_final", count=len(table), file=out)


def _export_tables(arguments: Namespace) -> None:
    """Write the tables that are asked for; with ratings also the units, which have clusters."""
    out: Path | None = arguments.out
    if not (out or arguments.units or arguments.remarks or arguments.answers):
        raise InputError("say what to write: --out FILE for the ratings, --units FILE for items")
    units_file: Path | None = arguments.units or (out and exporting.part_path(out, "units"))
    files = [path for path in (out, units_file, arguments.remarks, arguments.answers) if path]
    if len(set(files)) < len(files):
        raise InputError("two tables would go to the same file; give each its own")
    with main.study_of(arguments) as study:
        if out is not None and units_file is not None:
            _write_ratings(study, out, units_file)
        if units_file is not None:
            _write_kind("units", exporting.exported_units(study), units_file)
        if arguments.remarks is not None:
            _write_kind("remarks", exporting.exported_remarks(study), arguments.remarks)
        if arguments.answers is not None:
            _write_kind("answers", exporting.exported_answers(study), arguments.answers)
        note(study, "export", ", ".join(path.name for path in files))


def _write_ratings(study: Study, out: Path, units_file: Path) -> None:
    """Write a study's ratings, its injection audit if there was one, and a TOML file next to them
    (the sidecar) that says what the labels mean.
    """
    _write_kind("ratings", exporting.exported_ratings(study), out)
    attacked, audit_name = exporting.exported_attacked(study), ""
    if len(attacked):
        attacked_file = exporting.part_path(out, "attacked")
        _write_kind("attacked", attacked, attacked_file)
        audit_name = attacked_file.name
    text = exporting.sidecar_text(study, units_file.name, audit_name)
    atomic_write(sidecar_path(out), text.encode())
    say("tables.wrote_scales", file=sidecar_path(out))
    side = study.config.side  # the only background question whose answers are exported
    if any(side is None or column != side.key for column in study.config.analysis.rater_slices):
        say("terminal.note", note=written("tables.background"))


def _write_kind(kind: str, table: pd.DataFrame, file: Path) -> None:
    """Write a table of a kind, such as "units", and print its number of rows."""
    write_table(table, file)
    say(f"tables.wrote_{kind}", count=len(table), file=file)


def run_backup(arguments: Namespace) -> None:
    """Write a study into a new file, or into a folder of backups (`--to`)."""
    if (arguments.file is None) == (arguments.to is None):
        raise InputError("name a new FILE, or a folder with --to")
    if arguments.to is not None:
        with working("backing up"):
            options = {"verify": arguments.verify}
            backup = keeping.keep_backups(arguments.dir, arguments.to, arguments.keep, **options)
        note_in(arguments.dir, "backup", backup.file.name)
        say("keep.backup_tried" if arguments.verify else "keep.backup", file=backup.file)
        say("keep.holds", **asdict(backup.contents))
        say("keep.backups", count=backup.n_kept, folder=arguments.to)
        return
    main.refuse(arguments, ["--keep", "--verify"], "goes with --to")
    with working("backing up"):
        contents = keeping.backup_study(arguments.dir, arguments.file)
    note_in(arguments.dir, "backup", arguments.file.name)
    say("keep.backup", file=arguments.file)
    say("keep.holds", **asdict(contents))
    say("keep.backup_secret")


def run_doctor(arguments: Namespace) -> int:
    """Print what is well with a study and what is not; return the exit code."""
    address = main.app_address(arguments.url) if arguments.url else ""
    findings = keeping.examine(arguments.dir, address)
    for finding in findings:
        say("doctor.good" if finding.is_well else "doctor.mend", says=finding.sentence)
    n_problems = sum(not finding.is_well for finding in findings)
    end = written("doctor.end", count=n_problems) if n_problems else written("doctor.well")
    console().print(end)
    return main.BAD_INPUT if n_problems else main.DONE


def run_restore(arguments: Namespace) -> None:
    """Make a study's folder from a backup."""
    with working("restoring"):
        hosts: list[str] = []  # named in the backup's study.toml, whose sections are disabled
        contents = keeping.restore_study(arguments.file, arguments.dir, on_hosts=hosts.extend)
    note_in(arguments.dir, "study", arguments.dir.name, f"from {arguments.file.name}")
    say("keep.restore", folder=arguments.dir)
    say("keep.holds", **asdict(contents))
    if hosts:
        say("keep.hosts", names=", ".join(hosts), folder=arguments.dir)
    say("keep.restore_next", folder=arguments.dir)


def run_copy(arguments: Namespace) -> None:
    """Copy a study's store into another database."""
    with working("copying the store"):
        copied_tables = keeping.move_store(arguments.dir, arguments.to)
    note_in(arguments.dir, "store", detail="copied")
    n_rows = sum(table.rows for table in copied_tables.values())
    say("keep.copy", rows=n_rows, tables=len(copied_tables))
    say("keep.copy_now")


def run_upgrade(arguments: Namespace) -> None:
    """Upgrade a study's store to the schema of this version, after a backup."""
    with working("upgrading the store"):
        upgrade = keeping.upgrade_store(arguments.dir)
    if upgrade.backup is None:
        say("keep.upgrade_none", now=upgrade.now)
        return
    note_in(arguments.dir, "store", detail=f"schema {upgrade.before} to {upgrade.now}")
    say("keep.upgrade", before=upgrade.before, now=upgrade.now)
    say("keep.upgrade_backup", file=upgrade.backup)
