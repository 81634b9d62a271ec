"""`evenhand VERB ...`: finds the verb, runs it, and turns bad input into one sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from evenhand import __version__
from evenhand.cli import calibration as calibration_verb
from evenhand.cli import decisions as decision_verbs
from evenhand.cli import demo as demo_verb
from evenhand.cli import lead as lead_verbs
from evenhand.cli import planning as planning_verb
from evenhand.cli import ratings as rating_verbs
from evenhand.cli import reports as report_verbs
from evenhand.cli import rubrics as rubric_verbs
from evenhand.cli import sessions as session_verbs
from evenhand.cli import studies as study_verbs

__all__ = ["main"]

EXIT_OK, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 0, 2, 130

FAMILIES = (
    demo_verb,
    study_verbs,
    rating_verbs,
    session_verbs,
    lead_verbs,
    report_verbs,
    decision_verbs,
    planning_verb,
    calibration_verb,
    rubric_verbs,
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence; argparse would print the whole usage first."""

    def parse_known_args(self, *words: Any, **options: Any) -> Any:
        # Some options come from the settings' classes, which `evenhand --help` need not load.
        if declare := self.get_default("declare"):
            self.set_defaults(declare=None)
            declare(self)
        return super().parse_known_args(*words, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message}; see `{self.prog} --help`\n")


class _Verbs(argparse._SubParsersAction):
    """`evenhand VERB --help` begins with what `evenhand --help` says of the verb."""

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:
        said = options["help"]
        return super().add_parser(name, description=f"{said[0].upper()}{said[1:]}.", **options)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line. Verbs import what they need only once they run."""
    parser = _Parser(
        prog="evenhand",
        description="May an LLM grader stand in for people? Collect human labels and model "
        "grades on the same rubrics, and see how far they agree.",
    )
    parser.add_argument("--version", action="version", version=f"evenhand {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser, action=_Verbs)
    for family in FAMILIES:
        family.add_verbs(verbs)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    parser = build_parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    if arguments.verb is None:
        parser.print_help()
        return EXIT_BAD_INPUT
    return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from evenhand.errors import InputError

    try:
        return int(arguments.run(arguments) or EXIT_OK)
    except InputError as error:
        print(f"evenhand {arguments.verb}: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_BAD_INPUT
    except BrokenPipeError:
        # Whoever read our output has closed it (`evenhand check ... | head`).
        sys.stderr.close()
        return EXIT_OK
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        reason = (error.strerror or str(error)).lower()
        print(f"evenhand {arguments.verb}: {place}{reason}", file=sys.stderr)  # noqa: T201
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print("stopped; what was collected is kept", file=sys.stderr)  # noqa: T201
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
