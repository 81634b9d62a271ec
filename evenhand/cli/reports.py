"""`report`, `check` and `demo`: agreement of raters, for a study, for any ratings file, and for a
look offline at a synthetic study or at published labels.
"""

from __future__ import annotations

import argparse
import shlex
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.options import add_analysis_options, analyse_asked, given_options, print_lead_link
from evenhand.cli.terminal import print_lines, progress_bar, say, working
from evenhand.cli.verbs import DONE, Parser, refuse, study_of
from evenhand.demo import PUBLISHED, default_folder, finding, is_demo, judge_published, make_demo
from evenhand.errors import InputError
from evenhand.reporting.noting import note

if TYPE_CHECKING:
    from evenhand.analysis.verification import Libraries
    from evenhand.study import Study


def run_report(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.report import browser_path, print_pdf
    from evenhand.study.tables.files import check_folder

    out: Path = arguments.out or arguments.dir / "report"
    browser = browser_path() if arguments.format == "pdf" else None
    for folder in filter(None, [out, arguments.figures]):
        check_folder(folder)
    with study_of(arguments) as study:
        print_report(study, out, arguments.figures, full=arguments.full)
        note(study, "export", "report.html")
    say("terminal.report", page=out / "report.html")
    if browser:
        with working("printing the report"):
            print_pdf(browser, out / "report.html", out / "report.pdf")
        say("terminal.printed", file=out / "report.pdf")


def print_report(
    study: Study, out: Path, figures: Path | None = None, *, full: bool = False
) -> None:
    """Write the report of a study, with a sign of life meanwhile, and print what it comes to; its
    figures as files of their own where a folder is named."""
    from evenhand.analysis.report.files import PUBLISHED
    from evenhand.reporting.panel import last_lines, published_table
    from evenhand.reporting.report import report_study

    with working("reading the labels") as tell:
        analysis = report_study(study, out, figures=figures, full=full, on_stage=tell)
    # Ratings that count no longer are said here, too: whoever edited a rubric may not know.
    print_lines([*study.edited_rubrics(), *last_lines(analysis)])
    if study.config.published:
        print_lines([published_table(out / PUBLISHED)])
    if figures is not None:
        say("terminal.figures", folder=figures)


def run_check(arguments: argparse.Namespace) -> None:
    from evenhand.study.tables.files import check_folder

    out, figures = arguments.out, arguments.figures
    if arguments.full and out is None:
        raise InputError("--full unfolds the page that is written: name a folder for it with --out")
    for folder in filter(None, [out, figures]):
        check_folder(folder)
    if (Path(arguments.file) / "study.toml").is_file():
        raise InputError(
            f"{arguments.file} is a study's folder; write `evenhand report {arguments.file}`"
        )
    if arguments.engine:
        refuse(arguments, ["--write-settings"], "needs the labels in one table")
    with _libraries(arguments) as verify:
        from evenhand.reporting.analysing import analyse_file

        analysis, context = analyse_asked(arguments.file, arguments, by=analyse_file, verify=verify)
    from evenhand.analysis.report import write_figures, write_report
    from evenhand.reporting.library import Check
    from evenhand.reporting.ratings_file.declared import write_settings

    print_lines(Check(analysis, context).lines)
    if arguments.write_settings:
        written_to = write_settings(arguments.file, given_options(arguments))
        say("reading.wrote_settings", file=written_to)
    if out is not None:
        write_report(analysis, context, out, full=arguments.full)
        say("terminal.report", page=out / "report.html")
    if figures is not None:
        with working("drawing figures"):
            write_figures(analysis, context, figures)
        say("terminal.figures", folder=figures)


def _libraries(arguments: argparse.Namespace) -> AbstractContextManager[bool | Libraries]:
    """Verify estimates against other libraries only when files are written, and not with an engine,
    which has no units to compare.
    """
    if arguments.engine or not (arguments.out or arguments.figures):
        return nullcontext(False)
    from evenhand.reporting.report import libraries_beside

    return libraries_beside(meanwhile=_prepare_report)


def _prepare_report() -> None:
    from evenhand.analysis.report import prepare_report

    prepare_report()


def run_demo(arguments: argparse.Namespace) -> int:
    if arguments.study in PUBLISHED:
        return _published(arguments)
    from evenhand.study import open_study

    folder: Path = arguments.dir or default_folder(arguments.study)
    if is_demo(folder):
        say("demo.kept", folder=folder)
    else:
        with progress_bar("demo study") as progress:
            make_demo(arguments.study, folder, progress)
        say("demo.created", folder=folder)
    with open_study(folder) as study:
        print_report(study, folder / "report")
    say("demo.report", page=folder / "report" / "report.html")
    if arguments.no_app:
        return DONE
    from evenhand.annotate_app import serve
    from evenhand.local_page import app_port

    port = app_port(arguments.port)
    address = f"http://localhost:{port}"
    say("demo.app", address=address)
    print_lead_link(folder, address)
    return serve(folder, port=port)


def _published(arguments: argparse.Namespace) -> int:
    """Judge published labels as `evenhand check` does, with the options that are printed."""
    import webbrowser

    study = arguments.study
    refuse(arguments, ["--port"], f"is for a study with an app, and {study} is a file of labels")
    published, folder = PUBLISHED[study], arguments.dir or Path(study)
    check = Parser()
    add_analysis_options(check)
    scale = given_options(check.parse_args(published.options.split()))
    with working("reading the labels"):
        analysis = judge_published(study, scale, folder)
    print_lines(finding(study, analysis))
    page = folder / "report.html"
    say("terminal.report", page=page)
    command = f"evenhand check {shlex.quote(str(folder / published.file))} {published.options}"
    say("terminal.next", command=command)
    if not arguments.no_app:
        webbrowser.open(page.resolve().as_uri())
    return DONE
