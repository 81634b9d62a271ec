"""`reproduce`: a published study again, from its prompts to its report, in one command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from evenhand.cli.ratings import (
    add_pace,
    before_serving,
    ended,
    print_coverage,
    print_run,
    print_stop,
    request_limits,
)
from evenhand.cli.reports import print_report
from evenhand.cli.terminal import console, print_lines, progress_bar, say, working
from evenhand.cli.verbs import DONE, Parser, Verb, add, add_choice, add_flag, add_verbs
from evenhand.errors import InputError
from evenhand.reporting.noting import note
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reproduction import Collected, Reproduction
    from evenhand.study import Study

_DRAWS, _PEOPLES_PROMPTS = 10, 110
"""Of the study on stances: how often each prompt is put, and how many people label."""


def _options(reproduce: Parser) -> None:
    add_verbs(reproduce, SOURCES, dest="source", required=True)


def _even_handedness_options(verb: Parser) -> None:
    _add_folder(verb, "even-handedness")
    add(verb, "--pairs FILE", "the paired prompts, as published", Path, required=True)
    _add_models(verb)
    add(verb, "--sample N", "pairs to be labelled, or all that there are (250)", int)
    add_choice(
        verb,
        "--orders",
        ["ab", "both"],
        "in which orders graders see pairs; ab halves their cost (both)",
        "both",
    )
    _add_rest(verb, scope="sample")


def _stance_options(verb: Parser) -> None:
    _add_folder(verb, "stance")
    add(verb, "--propositions FILE", "statements (id, text)", Path, required=True)
    add(verb, "--wordings FILE", "ways to put them (seven of our own)", Path)
    add(
        verb,
        "--paraphrase MODEL",
        "a model that writes six paraphrases of each (those in the file)",
        default="",
    )
    add(verb, "--repeats K", f"how often to put each prompt ({_DRAWS})", int, _DRAWS)
    _add_models(verb)
    add(
        verb,
        "--sample N",
        f"prompts whose responses people label, or all that there are ({_PEOPLES_PROMPTS})",
        int,
    )
    _add_rest(verb, scope="all")


def _add_folder(verb: Parser, source: str) -> None:
    add(verb, "dir DIR", f"the study's folder ({source}-study)", Path, nargs="?")
    verb.add_trust()


def _add_models(verb: Parser) -> None:
    add(
        verb,
        "--subject SUBJECT",
        "a model to ask, such as anthropic:MODEL; repeatable",
        default=[],
        action="append",
    )
    add(verb, "--responses FILE", "subjects that were asked elsewhere", Path)
    add(
        verb,
        "--grader GRADER",
        "a grader, as `evenhand grade` names it; repeatable",
        default=[],
        action="append",
    )


def _add_rest(verb: Parser, *, scope: str) -> None:
    add(
        verb,
        "--raters N",
        "annotators per unit (3); named at a terminal, their page opens at the end",
        int,
    )
    add(verb, "--seed N", "fixes the sample (1)", int, 1)
    add_choice(
        verb,
        "--scope",
        ["sample", "all"],
        f"which prompts subjects and graders get ({scope})",
        scope,
    )
    add(verb, "--draws K", "ask graders K times, for a probability", int, 1)
    add(
        verb,
        "--settings FILE",
        "providers and prices of your own, as in study.toml, which takes them over",
        Path,
    )
    add_flag(verb, "--batch", "ask graders by the providers' cheaper batches")
    add_flag(verb, "--dry-run", "say what it costs, and end; no network")
    add_flag(verb, "--yes", "go on without asking")
    add(verb, "--port P", "of the annotators' page (8501)", int)
    add_flag(verb, "--no-page", "end after the report, without that page")
    add_pace(verb)


def _even_handedness(arguments: argparse.Namespace) -> int:
    from evenhand.reproduction import Reproduction

    wanted = Reproduction(
        source="even-handedness",
        prompts=arguments.pairs,
        sample=arguments.sample,
        orders=("ab", "ba") if arguments.orders == "both" else ("ab",),
        **_shared(arguments),
    )
    return _reproduce(arguments, wanted)


def _stance(arguments: argparse.Namespace) -> int:
    from evenhand.reproduction import Reproduction

    wanted = Reproduction(
        source="stance",
        prompts=arguments.propositions,
        sample=arguments.sample,
        usual_sample=_PEOPLES_PROMPTS,
        wordings=arguments.wordings,
        paraphraser=arguments.paraphrase,
        repeats=arguments.repeats,
        **_shared(arguments),
    )
    return _reproduce(arguments, wanted)


def _shared(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what both sources are told alike."""
    from evenhand.reporting.new_study import check_numbers

    check_numbers(3 if arguments.raters is None else arguments.raters, arguments.seed)
    return {
        "subjects": tuple(arguments.subject),
        "graders": tuple(arguments.grader),
        "responses": arguments.responses,
        "raters": arguments.raters,
        "seed": arguments.seed,
        "scope": arguments.scope,
        "draws": arguments.draws,
        "settings": arguments.settings,
        "batch": arguments.batch,
    }


def _reproduce(arguments: argparse.Namespace, wanted: Reproduction) -> int:
    """Say what the whole costs, ask whether to go on, and go as far as it can be gone today."""
    from evenhand.local_page import app_port
    from evenhand.reproduction import collect, foresee, opened, paraphrase, paraphrases_folder

    port = app_port(arguments.port)
    folder: Path = arguments.dir or Path(f"{wanted.source}-study")
    limits = request_limits(arguments)
    with working(written("reproduce.pricing")):
        found = foresee(wanted, folder, limits, ready=not arguments.dry_run)
    print_lines(found.lines)
    if limits.budget is not None and found.cost and found.cost[1] + found.spent > limits.budget:
        say("reproduce.over", budget=limits.budget)
    if arguments.dry_run:
        return DONE
    if not _agreed(arguments):
        say("reproduce.declined")
        return DONE
    if ended_early := paraphrase(wanted, folder, limits, progress_bar):
        print_stop("reproduce", ended_early.stopped, ended_early.warnings)
        say("reproduce.again")
        return ended(over_budget=ended_early.over_budget, stopped=True)
    if wanted.paraphraser:
        say("reproduce.paraphrases_in", folder=paraphrases_folder(folder))
    with opened(wanted, folder) as study:
        collected = collect(study, wanted, limits, progress_bar)
        _print_collected(study, collected)
        if study.ratings().empty:
            say("reproduce.nothing")
        else:
            print_report(study, folder / "report")
            note(study, "export", "report.html")
            say("terminal.report", page=folder / "report" / "report.html")
    stopped = collected.stopped
    print_stop("reproduce", stopped, collected.warnings)
    code = ended(over_budget=collected.over_budget, stopped=bool(stopped))
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
    from evenhand.annotate_app.serve import serve
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


SOURCES = (
    Verb(
        "even-handedness",
        "paired prompts: is a model equally willing to help both sides? (Shen et al. 2025)",
        _even_handedness_options,
        _even_handedness,
    ),
    Verb(
        "stance",
        "propositions: which stance do answers take, and is it stable? (Feng et al. 2023)",
        _stance_options,
        _stance,
    ),
)
VERBS = (Verb("reproduce", "do a published study again, on models of your own", _options),)
