"""`evenhand VERB ...`: all verbs by group, and how one of them is run."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence

from evenhand import __version__
from evenhand.cli import (
    audits,
    baselines,
    calibration,
    decisions,
    demo,
    gate,
    items,
    keeping,
    lead,
    planning,
    ratings,
    reports,
    rubrics,
    sessions,
    studies,
    tables,
)
from evenhand.cli.completion import SHELLS, complete, shell_code
from evenhand.cli.exits import BAD_INPUT, DONE, exit_code
from evenhand.cli.terminal import print_line
from evenhand.cli.verbs import Parser, Verb, add_verbs
from evenhand.errors import InputError

GROUPS: dict[str, tuple[Verb, ...]] = {
    "Make a study": (*demo.VERBS, *items.VERBS, *planning.VERBS, *studies.VERBS, *rubrics.VERBS),
    "Collect responses, labels and grades": (*ratings.VERBS, *audits.VERBS, *tables.VERBS),
    "Lead the annotators": (*sessions.VERBS, *lead.VERBS),
    "Keep a study": keeping.VERBS,
    "Analyse": reports.VERBS,
    "Decide": (*decisions.VERBS, *gate.VERBS, *baselines.VERBS, *calibration.VERBS),
}
"""The verbs as `evenhand --help` shows them."""

ABOUT = (
    "Can an LLM grader replace human raters? Collect human labels and model grades on the same "
    "rubrics, and see how well they agree."
)
WIDTH = 80


def build_parser() -> Parser:
    """Return the parser of the whole command line. Verbs import what they need only once they
    run.
    """
    parser = Parser(
        prog="evenhand",
        usage="evenhand [-h] [--version] [--completion SHELL] VERB ...",
        description=_overview(),
        epilog="`evenhand VERB --help` shows the options of a verb.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"evenhand {__version__}")
    parser.add_argument(
        "--completion",
        choices=SHELLS,
        metavar="SHELL",
        help=f"print the code that lets {', '.join(SHELLS)} complete verbs and options",
    )
    verbs = [verb for group in GROUPS.values() for verb in group]
    add_verbs(parser, verbs, dest="verb", help=argparse.SUPPRESS)
    return parser


def _overview() -> str:
    """Return the help's overview: the purpose of evenhand, and every verb under its group."""
    parts = [textwrap.fill(ABOUT, WIDTH)]
    for group, verbs in GROUPS.items():
        parts.append("\n".join([group, *(f"  {verb.name:<12}{verb.summary}" for verb in verbs)]))
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    parser = build_parser()
    complete(parser)
    verb = next((word for word in words if word in parser.verbs), "")
    return exit_code(f"evenhand {verb}".strip(), lambda: _run(parser, words))


def _run(parser: Parser, words: Sequence[str]) -> int | None:
    if sys.platform == "win32":
        raise InputError(
            "evenhand runs on Linux and macOS; on Windows, install it in the Windows Subsystem for "
            "Linux (WSL)"
        )
    try:
        arguments = parser.parse_args(words)
    except SystemExit as stop:  # --help, --version, or an error in a sentence
        return int(stop.code or DONE)
    if arguments.completion:
        print_line(shell_code(arguments.completion))
        return DONE
    if arguments.verb is None:
        parser.print_help()
        return BAD_INPUT
    code: int | None = arguments.run(arguments)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
