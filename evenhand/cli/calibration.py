"""`calibrate`: at which threshold a grader's probabilities match people, or another grader."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evenhand.cli.terminal import console, print_table, working
from evenhand.cli.verbs import Parser, Verb

if TYPE_CHECKING:
    from evenhand.analysis.results import ResultRow
    from evenhand.study import Study

OBJECTIVES = ("kappa", "agreement", "f1", "youden", "prevalence")


def _options(calibrate: Parser) -> None:
    calibrate.add_study()
    calibrate.add_argument("--rubric", metavar="NAME", help="only this rubric")
    calibrate.add_argument("--grader", metavar="NAME", help="only this grader")
    calibrate.add_argument(
        "--reference", default="humans", metavar="humans|RATER", help="whom to match (humans)"
    )
    calibrate.add_argument("--objective", choices=OBJECTIVES, default="kappa", help="(kappa)")
    calibrate.add_argument(
        "--write", action="store_true", help="put what is recommended in study.toml"
    )
    calibrate.add_argument(
        "--threshold", type=float, metavar="T", help="with --write: this one, recommended or not"
    )


def _calibrate(arguments: argparse.Namespace) -> None:
    from evenhand.errors import InputError
    from evenhand.reporting.thresholds import study_thresholds
    from evenhand.study import open_study

    if arguments.threshold is not None:
        _check_threshold(arguments)
    with open_study(arguments.dir) as study:
        with working("tuning"):
            found = study_thresholds(study, arguments.rubric, arguments.reference)
        rows = [row for row in found if arguments.grader in (None, row["rater_b"])]
        if not rows:
            whose = f" of {arguments.grader}" if arguments.grader else ""
            raise InputError(f"there are no probabilities{whose} to tune a threshold of")
        _print(study, rows, arguments.objective)
        if arguments.write:
            _write(study, rows, arguments)


def _check_threshold(arguments: argparse.Namespace) -> None:
    from evenhand.errors import InputError

    if not (arguments.write and arguments.rubric and arguments.grader):
        raise InputError("--threshold needs --write, and --rubric and --grader to say whose it is")
    if not 0 <= arguments.threshold <= 1:
        raise InputError(f"--threshold is {arguments.threshold:g}; it must lie between 0 and 1")


def _print(study: Study, rows: list[ResultRow], objective: str) -> None:
    from evenhand.analysis import Analysis
    from evenhand.analysis.report import ReportContext, render_thresholds_text

    context = ReportContext(
        name=study.config.name,
        synthetic=study.config.synthetic,
        facts={},
        rubric_titles={name: rubric.title for name, rubric in study.rubrics.items()},
    )
    for tables, sentences in render_thresholds_text(Analysis(rows), context, objective):
        for table in tables:
            cells = [
                [row.heading, *(f"{cell.text} {cell.interval}".strip() for cell in row.cells)]
                for row in table.rows
            ]
            print_table([table.stub, *table.columns], cells, title=table.caption)
        for sentence in sentences:
            console().print(sentence)


def _write(study: Study, rows: list[ResultRow], arguments: argparse.Namespace) -> None:
    """Put thresholds into study.toml: the one that was named, or those that win held out."""
    from evenhand.reporting.thresholds import recommended_thresholds, write_thresholds

    if arguments.threshold is not None:
        chosen = {arguments.rubric: {arguments.grader: arguments.threshold}}
    else:
        chosen = recommended_thresholds(rows, arguments.objective)
    if not chosen:
        console().print("study.toml stays as it is: no tuned threshold is recommended.")
        return
    write_thresholds(study, chosen)
    for rubric, thresholds in chosen.items():
        for grader, threshold in thresholds.items():
            console().print(f"study.toml: the threshold of {grader} on {rubric} is {threshold:g}.")


VERBS = (
    Verb("calibrate", "the threshold at which probabilities match people", _options, _calibrate),
)
