"""`improve`: a better grader, and the proof that it is, on labels that nothing was tuned to."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.exits import DONE
from evenhand.cli.ratings import (
    add_asking,
    add_pace,
    ended,
    grading_options,
    print_forecast,
    print_run,
    print_stop,
    request_limits,
)
from evenhand.cli.terminal import console, print_lines, progress_bar
from evenhand.cli.verbs import Parser, Verb
from evenhand.reporting.noting import note, operator
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.improving import ImproveOptions
    from evenhand.study import Study


def _options(improve: Parser) -> None:
    improve.add_study()
    improve.add_argument("--rubric", required=True, metavar="NAME", help="the rubric it grades")
    improve.add_argument(
        "--grader", required=True, metavar="GRADER", help="the old grader, as `grade` names it"
    )
    improve.add_argument(
        "--candidates",
        type=Path,
        metavar="DIR",
        help="judge prompts to try in its place, one TOML file each (docs/graders.md)",
    )
    improve.add_argument(
        "--candidate",
        action="append",
        default=[],
        metavar="GRADER",
        help="another grader to try, asked as the old one is; repeatable",
    )
    improve.add_argument(
        "--propose",
        type=int,
        default=0,
        metavar="K",
        help="have GEPA (an extra) propose up to K sets of instructions from what it got wrong",
    )
    improve.add_argument(
        "--proposer",
        default="",
        metavar="GRADER",
        help="the model that writes them (the old grader's)",
    )
    improve.add_argument(
        "--draws", type=int, default=1, metavar="K", help="ask K times, as the grader is asked (1)"
    )
    add_asking(improve)
    improve.add_argument(
        "--learn",
        type=Path,
        metavar="FILE",
        help="write the units to learn from, with labels and reasons, and ask nothing",
    )
    improve.add_argument(
        "--dry-run", action="store_true", help="show what would be asked and cost; no network"
    )
    add_pace(improve)


def _improve(arguments: argparse.Namespace) -> int:
    from evenhand.graders.running.runner import RunSummary
    from evenhand.reporting.improving import (
        ImproveOptions,
        forecast_improving,
        improve,
        provable,
    )
    from evenhand.reporting.suggestions import rubric_first
    from evenhand.study import open_study

    options = ImproveOptions(
        rubric=arguments.rubric,
        grader=arguments.grader,
        grading=grading_options(arguments),
        candidates=arguments.candidates,
        others=arguments.candidate,
        proposals=arguments.propose,
        proposer=arguments.proposer,
    )
    with open_study(arguments.dir) as study:
        if arguments.learn:
            return _write_learn(study, options, arguments.learn)
        if said := provable(study, options):
            console().print(said)
        if first := rubric_first(study, options):
            console().print(first)
        if arguments.dry_run:
            print_forecast(forecast_improving(study, options))
            console().print(written("improve.dry_run"))
            return DONE
        with progress_bar("improving") as progress:
            limits = request_limits(arguments)
            found = improve(study, options, limits, progress, done_by=operator())
        note(study, "grades", found.old.rater_id, f"improve {found.rubric}: {found.outcome}")
        print_run(RunSummary(tuple(found.graders), found.over_budget))
        print_lines(found.lines)
    print_stop("improve", found.stopped, [w for each in found.graders for w in each.warnings])
    return ended(over_budget=found.over_budget, stopped=bool(found.stopped))


def _write_learn(study: Study, options: ImproveOptions, file: Path) -> int:
    from evenhand.reporting.improving import labels_to_learn
    from evenhand.study.tables.formats import write_table

    found = labels_to_learn(study, options, done_by=operator())
    write_table(found, file)
    wrong = int((found["agrees"] == "no").sum())
    about = {"file": file, "count": len(found), "wrong": wrong, "old": options.grader}
    console().print(written("improve.wrote_learn", **about))
    return DONE


VERBS = (
    Verb(
        "improve",
        "find a better grader, and prove it on labels kept for that",
        _options,
        _improve,
    ),
)
