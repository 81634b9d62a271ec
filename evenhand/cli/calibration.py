"""`calibrate`: the threshold at which a grader's probabilities best match people, or another
grader.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evenhand.cli.noting import changing_settings, note
from evenhand.cli.terminal import console, print_table, working
from evenhand.cli.verbs import Parser, Verb
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.results import ResultRow
    from evenhand.analysis.thresholds.rows import ThresholdResults
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
        "--write", action="store_true", help="write recommended thresholds to study.toml"
    )
    calibrate.add_argument(
        "--threshold", type=float, metavar="T", help="with --write: set this threshold by hand"
    )


def _calibrate(arguments: argparse.Namespace) -> None:
    from evenhand.errors import InputError
    from evenhand.reporting.thresholds import study_thresholds
    from evenhand.study import open_study

    if arguments.threshold is not None:
        _check_threshold(arguments)
    with open_study(arguments.dir) as study:
        with working("reading the labels") as tell:
            found = study_thresholds(study, arguments.rubric, arguments.reference, on_stage=tell)
        rows = [
            row
            for each in found.values()
            for row in each.rows
            if arguments.grader in (None, row["rater_b"])
        ]
        if not rows:
            whose = f" of {arguments.grader}" if arguments.grader else ""
            raise InputError(f"there are no probabilities{whose} to tune a threshold on")
        _print(study, rows, arguments.objective)
        if left := [name for name in study.rubrics if name not in found and not arguments.rubric]:
            named = arguments.reference
            whom = written("calibrate.annotators") if named == "humans" else named
            rubrics = ", ".join(left)
            console().print(written("calibrate.left_out", whom=whom, rubrics=rubrics))
        if arguments.write and arguments.threshold is not None:
            _write_declared(study, arguments)
        elif arguments.write:
            _write_tuned(study, found, rows, arguments)


def _check_threshold(arguments: argparse.Namespace) -> None:
    from evenhand.errors import InputError

    if not (arguments.write and arguments.rubric and arguments.grader):
        raise InputError("--threshold needs --write, --rubric and --grader")
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


def _write_declared(study: Study, arguments: argparse.Namespace) -> None:
    """Put the threshold that was named into study.toml."""
    from evenhand.reporting.thresholds import write_thresholds

    chosen = {arguments.rubric: {arguments.grader: arguments.threshold}}
    with changing_settings(study):
        write_thresholds(study, chosen)
    _say_written(study, chosen)


def _write_tuned(
    study: Study,
    found: Mapping[str, ThresholdResults],
    rows: list[ResultRow],
    arguments: argparse.Namespace,
) -> None:
    """Put thresholds that win on held-out units into study.toml, and their basis into the store."""
    from evenhand.reporting.thresholds import recommended_thresholds, write_tuned_thresholds

    chosen = recommended_thresholds(rows, arguments.objective)
    if not chosen:
        console().print(written("calibrate.unchanged"))
        return
    asked = {"objective": arguments.objective, "reference": arguments.reference}
    with changing_settings(study):
        write_tuned_thresholds(study, found, chosen, **asked)
    _say_written(study, chosen)


def _say_written(study: Study, chosen: Mapping[str, Mapping[str, float]]) -> None:
    for rubric, thresholds in chosen.items():
        for grader, threshold in thresholds.items():
            note(study, "threshold", f"{rubric}, {grader}", f"{threshold:g}")
            console().print(
                written("calibrate.set", grader=grader, rubric=rubric, threshold=threshold)
            )


VERBS = (
    Verb(
        "calibrate", "find the threshold at which probabilities match people", _options, _calibrate
    ),
)
