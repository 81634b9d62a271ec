"""`reproduce`: a published study again, from its prompts to its report, in one command."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evenhand.cli.ratings import (
    before_serving,
    print_coverage,
    print_end,
    print_run,
    request_limits,
)
from evenhand.cli.reports import print_report
from evenhand.cli.terminal import console, print_lines, progress_bar, say, working
from evenhand.cli.verbs import DONE
from evenhand.errors import InputError
from evenhand.reporting.noting import note
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reproduction import Collected
    from evenhand.study import Study


def run_reproduce(arguments: argparse.Namespace) -> int:
    """Say what the whole costs, ask whether to go on, and go as far as it can be gone today."""
    from evenhand.local_page import app_port
    from evenhand.reproduction import Reproduction, collect, foresee, opened, paraphrase

    names = {each.name for each in fields(Reproduction)}
    given = {name: value for name, value in vars(arguments).items() if name in names}
    folder: Path = arguments.dir or Path(f"{arguments.source}-study")
    wanted = Reproduction(folder=folder, **given)
    port = app_port(arguments.port)
    limits = request_limits(arguments)
    with working(written("reproduce.pricing")):
        found = foresee(wanted, limits, ready=not arguments.dry_run)
    print_lines(found.lines)
    budget, expected = limits.budget, found.whole.expected
    if budget is not None and expected is not None and expected + found.spent > budget:
        say("reproduce.over", budget=budget)
    if arguments.dry_run:
        return DONE
    if not _agreed(arguments):
        say("reproduce.declined")
        return DONE
    if ended_early := paraphrase(wanted, limits, progress_bar):
        code = print_end("reproduce", ended_early)
        say("reproduce.again")
        return code
    if wanted.paraphraser:
        say("reproduce.paraphrases_in", folder=wanted.paraphrases_folder)
    with opened(wanted) as study:
        collected = collect(study, wanted, limits, progress_bar)
        _print_collected(study, collected)
        if study.ratings().empty:
            say("reproduce.nothing")
        else:
            print_report(study, folder / "report")
            note(study, "export", "report.html")
            say("terminal.report", page=folder / "report" / "report.html")
    code = print_end("reproduce", collected.run)
    if code == DONE and _page_wanted(arguments):
        _serve(folder, port)
    say("terminal.next", command=f"evenhand annotate {folder}")
    say("reproduce.again")
    return code


def _page_wanted(arguments: argparse.Namespace) -> bool:
    """Return True where annotators are asked for, and somebody is there to see their page: a
    script goes on.
    """
    there = sys.stdin.isatty() and sys.stdout.isatty()
    return arguments.raters is not None and there and not arguments.no_page


def _serve(folder: Path, port: int) -> NoReturn:
    """Serve the study for its annotators until the app is stopped, and open their page."""
    from evenhand.annotate_app import serve
    from evenhand.local_page import open_when_up

    address = f"http://localhost:{port}"
    before_serving(folder, "", address, "")
    say("reproduce.page", address=address)
    say("reproduce.again")
    open_when_up(address, port)
    serve(folder, port=port)


def _agreed(arguments: argparse.Namespace) -> bool:
    """Ask at the terminal whether to go on. Raises InputError where nobody is there to answer, and
    neither --yes nor a budget says so.
    """
    if arguments.yes:
        return True
    if not sys.stdin.isatty():
        if arguments.budget is None:
            raise InputError(written("reproduce.say_yes"))
        return True
    try:
        return input(f"{written('reproduce.go_on')} ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _print_collected(study: Study, collected: Collected) -> None:
    for each in collected.responses:
        run = each.run
        numbers = {"collected": run.scored, "known": run.already, "added": each.added}
        left = run.planned - run.scored
        say("grade.responses", subject=run.rater_id, left=left, **numbers)
    for sentence in collected.notes:
        console().print(sentence)
    if collected.grades:
        print_run(collected.grades)
        print_coverage(study, [part.rater_id for part in collected.grades.graders])
