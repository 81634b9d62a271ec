"""`calibrate`: the threshold at which a grader's probabilities best match people, or another
grader.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evenhand.cli.terminal import console, print_lines, working
from evenhand.cli.verbs import Parser, Verb
from evenhand.reporting.noting import changing_settings, note
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.thresholds import Calibration
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
    from evenhand.reporting.load import from_study
    from evenhand.reporting.thresholds import calibrate
    from evenhand.study import open_study

    if arguments.threshold is not None:
        _check_threshold(arguments)
    with open_study(arguments.dir) as study:
        with working("reading the labels") as tell:
            found = calibrate(
                from_study(study),
                arguments.rubric,
                grader=arguments.grader,
                reference=arguments.reference,
                objective=arguments.objective,
                on_stage=tell,
            )
        print_lines(found.lines)
        if arguments.write and arguments.threshold is not None:
            _write_declared(study, arguments)
        elif arguments.write:
            _write_tuned(study, found)


def _check_threshold(arguments: argparse.Namespace) -> None:
    from evenhand.errors import InputError

    if not (arguments.write and arguments.rubric and arguments.grader):
        raise InputError("--threshold needs --write, --rubric and --grader")
    if not 0 <= arguments.threshold <= 1:
        raise InputError(f"--threshold is {arguments.threshold:g}; it must lie between 0 and 1")


def _write_declared(study: Study, arguments: argparse.Namespace) -> None:
    """Put the threshold that was named into study.toml."""
    from evenhand.reporting.thresholds import write_thresholds

    chosen = {arguments.rubric: {arguments.grader: arguments.threshold}}
    with changing_settings(study):
        write_thresholds(study, chosen)
    _say_written(study, chosen)


def _write_tuned(study: Study, found: Calibration) -> None:
    """Put thresholds that win on held-out units into study.toml, and their basis into the store."""
    from evenhand.reporting.thresholds import write_tuned_thresholds

    chosen = found.thresholds
    if not chosen:
        console().print(written("calibrate.unchanged"))
        return
    asked = {"objective": found.objective, "reference": found.reference}
    with changing_settings(study):
        write_tuned_thresholds(study, found.found, chosen, **asked)
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
