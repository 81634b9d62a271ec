"""`annotate` and `grade`: collecting ratings from people and from models."""

from __future__ import annotations

import argparse
from pathlib import Path

from evenhand.terminal import console, print_table, progress_bar

__all__ = ["add_verbs"]


def add_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    annotate = verbs.add_parser("annotate", help="serve the annotation page")
    annotate.add_argument("dir", type=Path, metavar="DIR")
    annotate.add_argument("--port", type=int, metavar="P", help="port on this machine (8501)")
    annotate.set_defaults(run=_annotate)

    grade = verbs.add_parser("grade", help="collect grades from model graders; resumable")
    grade.add_argument("dir", type=Path, metavar="DIR")
    grade.add_argument(
        "--grader",
        action="append",
        required=True,
        metavar="GRADER",
        help="anthropic:MODEL, openai:MODEL, openai:MODEL@BASE_URL or baseline:lexical; repeatable",
    )
    grade.add_argument(
        "--rubric", action="append", metavar="NAME", help="only this rubric; repeatable (all)"
    )
    grade.add_argument(
        "--scope", choices=["sample", "all"], default="sample", help="which pairs (sample)"
    )
    grade.add_argument(
        "--concurrency", type=int, default=32, metavar="N", help="requests at once (32)"
    )
    grade.set_defaults(run=_grade)


def _annotate(arguments: argparse.Namespace) -> int:
    from annotate_app.serve import serve
    from rubrics.errors import InputError
    from study import open_study

    if arguments.port is not None and not 0 < arguments.port < 65536:
        raise InputError(f"--port {arguments.port} is no port; take one from 1024 to 65535")

    # A study that does not open is a sentence here, not an error in the browser.
    with open_study(arguments.dir) as study:
        study.check_labelled_subjects()
        for sentence in study.edited_rubrics():
            console(stderr=True).print(f"Note: {sentence}")
    return serve(arguments.dir, port=arguments.port)


def _grade(arguments: argparse.Namespace) -> int:
    from graders import grade
    from study import open_study

    with open_study(arguments.dir) as study, progress_bar("grading") as progress:
        for sentence in study.edited_rubrics():
            console(stderr=True).print(f"Note: {sentence}")
        summary = grade(
            study,
            arguments.grader,
            rubrics=arguments.rubric,
            scope=arguments.scope,
            concurrency=arguments.concurrency,
            progress=progress,
        )
    print_table(
        ["grader", "known before", "to ask", "labelled", "unscored", "left"],
        [
            (
                part.rater_id,
                str(part.already),
                str(part.planned),
                str(part.scored),
                str(sum(part.unscored.values())),
                str(part.unasked),
            )
            for part in summary.graders
        ],
    )
    for part in summary.graders:
        for reason, count in sorted(part.unscored.items()):
            console().print(f"{part.rater_id}: {count} unscored, {reason}")
    for sentence in summary.stopped:
        console(stderr=True).print(f"evenhand grade: {sentence}")
    console().print(f"Next: evenhand report {arguments.dir}")
    return 2 if summary.stopped else 0
