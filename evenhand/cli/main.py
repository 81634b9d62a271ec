"""`evenhand VERB ...`: all verbs by group, how one of them is run, and what the shell completes."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from itertools import chain

from evenhand import __version__
from evenhand.cli.terminal import print_line
from evenhand.cli.verbs import (
    BAD_INPUT,
    DONE,
    Parser,
    add_verbs,
    exit_code,
    grouped_verbs,
    trust_settings,
)
from evenhand.texts import print_anywhere

GROUPS = grouped_verbs()
ABOUT = (
    "Can an LLM grader replace annotators? Collect annotators' labels and model grades on the same "
    "rubrics, and see how well they agree."
)
WIDTH = 80
SHELLS = ("bash", "zsh", "fish")


def build_parser() -> Parser:
    """Return the parser of the whole command line."""
    overview = [textwrap.fill(ABOUT, WIDTH)]
    for group, verbs in GROUPS.items():
        overview.append("\n".join([group, *(f"  {verb.name:<12}{verb.summary}" for verb in verbs)]))
    parser = Parser(
        prog="evenhand",
        usage="evenhand [-h] [--version] [--completion SHELL] VERB ...",
        description="\n\n".join(overview),
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
    add_verbs(parser, [*chain(*GROUPS.values())], dest="verb", help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    print_anywhere()
    words = sys.argv[1:] if argv is None else argv
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions, at each Tab
        import argcomplete

        verb_parser = parser
        for word in os.environ["COMP_LINE"].split():
            if word in verb_parser.verbs:
                verb_parser = verb_parser.verbs[word]
                verb_parser.declare()  # argcomplete looks at the options before the parser does
        argcomplete.autocomplete(parser, always_complete_options=False)  # which exits
    verb = next((word for word in words if word in parser.verbs), "")
    return exit_code(f"evenhand {verb}".strip(), lambda: _run(parser, words))


def _run(parser: Parser, words: Sequence[str]) -> int | None:
    try:
        arguments = parser.parse_args(words)
    except SystemExit as stop:  # --help, --version, or an error in a sentence
        return int(stop.code or DONE)
    if arguments.completion:
        from argcomplete.shell_integration import shellcode

        # A shell must load this once in each session to complete our commands.
        print_line(shellcode(["evenhand"], shell=arguments.completion))
        return DONE
    if arguments.verb is None:
        parser.print_help()
        return BAD_INPUT
    if getattr(arguments, "trust", False):
        trust_settings(arguments)
    code: int | None = arguments.run(arguments)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
