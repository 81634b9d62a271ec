"""`report` and `check`: agreement of raters, for a study and for any ratings file."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.options import (
    add_analysis_options,
    add_engine,
    analyse_asked,
    given_options,
    path_or_address,
)
from evenhand.cli.terminal import console, print_lines, print_table, working
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.errors import InputError
from evenhand.reporting.noting import note
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis import Analysis
    from evenhand.analysis.verification import Libraries
    from evenhand.study import Study


def _report_options(report: Parser) -> None:
    report.add_study()
    report.add_argument("--out", type=Path, metavar="DIR", help="output folder (DIR/report)")
    _add_form(report)
    report.add_argument(
        "--format",
        choices=["html", "pdf"],
        default="html",
        help="pdf: also print report.pdf (html)",
    )


def _check_options(check: Parser) -> None:
    check.add_argument("file", type=path_or_address, metavar="RATINGS")
    add_analysis_options(check, without=["drift_margin"])
    add_engine(check)
    check.add_argument(
        "--write-settings",
        action="store_true",
        help="write what the options say into a file next to RATINGS, for all verbs that read it",
    )
    check.add_argument("--out", type=Path, metavar="DIR", help="also write the four report files")
    _add_form(check)


def _add_form(verb: Parser) -> None:
    verb.add_argument(
        "--full", action="store_true", help="unfold every table and figure, on paper too"
    )
    verb.add_argument(
        "--figures", type=Path, metavar="DIR", help="write each figure and table to files here"
    )


def _report(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.report import browser_path, print_pdf
    from evenhand.study import open_study
    from evenhand.study.tables.files import check_folder

    out: Path = arguments.out or arguments.dir / "report"
    browser = browser_path() if arguments.format == "pdf" else None
    for folder in filter(None, [out, arguments.figures]):
        check_folder(folder)
    with open_study(arguments.dir) as study:
        print_report(study, out, arguments.figures, full=arguments.full)
        note(study, "export", "report.html")
    console().print(written("terminal.report", page=out / "report.html"))
    if browser:
        with working("printing the report"):
            print_pdf(browser, out / "report.html", out / "report.pdf")
        console().print(written("terminal.printed", file=out / "report.pdf"))


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
    for line in [*study.edited_rubrics(), *last_lines(analysis)]:
        console().print(line)
    if study.config.published:
        print_lines([published_table(out / PUBLISHED)])
    _print_figures(figures)


def _print_figures(folder: Path | None) -> None:
    if folder is not None:
        console().print(written("terminal.figures", folder=folder))


def _check(arguments: argparse.Namespace) -> None:
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
    from evenhand.analysis.report import render_table_text

    for title, columns, rows in render_table_text(analysis, context):
        print_table(columns, rows, title=title)
    _print_verdicts(analysis)
    if arguments.write_settings:
        from evenhand.reporting.ratings_file.sidecar import write_settings

        written_to = write_settings(arguments.file, given_options(arguments))
        console().print(written("reading.wrote_settings", file=written_to))
    if out is not None:
        from evenhand.analysis.report import write_report

        write_report(analysis, context, out, full=arguments.full)
        console().print(written("terminal.report", page=out / "report.html"))
    if figures is not None:
        from evenhand.analysis.report import write_figures

        with working("drawing figures"):
            write_figures(analysis, context, figures)
        _print_figures(figures)


def _libraries(arguments: argparse.Namespace) -> AbstractContextManager[bool | Libraries]:
    """Verify estimates against other libraries only when files are written, and not with an engine,
    which has no units to compare.
    """
    if arguments.engine or not (arguments.out or arguments.figures):
        return nullcontext(False)
    from evenhand.reporting.verifying import libraries_beside

    return libraries_beside(meanwhile=_prepare_report)


def _prepare_report() -> None:
    from evenhand.analysis.report import prepare_report

    prepare_report()


def _print_verdicts(analysis: Analysis) -> None:
    from evenhand.reporting.panel import verdict_lines

    for line in verdict_lines(analysis):
        console().print(line)


VERBS = (
    Verb(
        "report",
        "analyse a study and write report.html, .md, .json and results.csv",
        _report_options,
        _report,
    ),
    Verb("check", "analyse a ratings file; no study needed", _check_options, _check),
)
