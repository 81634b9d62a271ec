"""`report` and `check`: how far raters agree, for a study and for anyone's ratings file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.setting_options import add_analysis_options, analyse_asked
from evenhand.cli.terminal import console, print_table, working
from evenhand.reporting.analysing import analyse_file, analyse_study

if TYPE_CHECKING:
    from evenhand.analysis import Analysis
    from evenhand.study import Study

__all__ = ["add_verbs", "report_study"]


def add_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = verbs.add_parser("report", help="write report.html, .md, .json and results.csv")
    report.add_argument("dir", type=Path, metavar="DIR")
    report.add_argument("--out", type=Path, metavar="DIR", help="where to (DIR/report)")
    report.set_defaults(run=_report)

    check = verbs.add_parser("check", help="the same analysis on a ratings file, no study needed")
    check.add_argument("file", type=Path, metavar="RATINGS")
    check.add_argument("--out", type=Path, metavar="DIR", help="write the four report files too")
    check.set_defaults(run=_check, declare=add_analysis_options)


def _report(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study

    with open_study(arguments.dir) as study:
        out = report_study(study, arguments.out or arguments.dir / "report")
    console().print(f"Report: {out / 'report.html'}")


def report_study(study: Study, out: Path) -> Path:
    """Analyse a study, print the verdicts and write the report files."""
    from evenhand.analysis.report import prepare_drawing, write_report
    from evenhand.reporting.workers import workers

    with working("analysing"), workers(meanwhile=prepare_drawing) as pool:
        analysis, context = analyse_study(study, pool=pool)
    write_report(analysis, context, out)
    _print_verdicts(analysis)
    return out


def _check(arguments: argparse.Namespace) -> None:
    from evenhand.analysis.report import render_table_text, write_report

    out = arguments.out
    analysis, context = analyse_asked(
        arguments.file, arguments, by=analyse_file, verify=out is not None
    )
    for title, columns, rows in render_table_text(analysis, context):
        print_table(columns, rows, title=title)
    _print_verdicts(analysis)
    if out is not None:
        write_report(analysis, context, out)
        console().print(f"Report: {out / 'report.html'}")


def _print_verdicts(analysis: Analysis) -> None:
    from evenhand.reporting.panel import verdict_lines

    for line in verdict_lines(analysis):
        console().print(line)
