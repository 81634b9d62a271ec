"""`evenhand VERB ...`: all verbs by group, how one of them is run, and what the shell completes."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence

from evenhand import __version__
from evenhand.cli.options import trust_settings
from evenhand.cli.terminal import print_line
from evenhand.cli.verbs import BAD_INPUT, DONE, Parser, add_verbs, exit_code, grouped_verbs
from evenhand.visible import print_anywhere

GROUPS = grouped_verbs()
ABOUT = (
    "Can an LLM grader replace annotators? Collect annotators' labels and model grades on the same "
    "rubrics, and see how well they agree."
)
WIDTH = 80
SHELLS = ("bash", "zsh", "fish")


def build_parser() -> Parser:
    """Return the parser of the whole command line."""
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
    print_anywhere()
    words = sys.argv[1:] if argv is None else argv
    parser = build_parser()
    _complete(parser)
    verb = next((word for word in words if word in parser.verbs), "")
    return exit_code(f"evenhand {verb}".strip(), lambda: _run(parser, words))


def _complete(parser: Parser) -> None:
    """Answer a shell that asks for completions (at each Tab), and exit; do nothing otherwise."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    own = parser
    for word in os.environ["COMP_LINE"].split():
        if word in own.verbs:
            own = own.verbs[word]
            own.declare()  # argcomplete looks at the options before the parser comes to this
    argcomplete.autocomplete(parser, always_complete_options=False)


def _run(parser: Parser, words: Sequence[str]) -> int | None:
    try:
        arguments = parser.parse_args(words)
    except SystemExit as stop:  # --help, --version, or an error in a sentence
        return int(stop.code or DONE)
    if arguments.completion:
        print_line(_shell_code(arguments.completion))
        return DONE
    if arguments.verb is None:
        parser.print_help()
        return BAD_INPUT
    if getattr(arguments, "trust", False):
        trust_settings(arguments)
    code: int | None = arguments.run(arguments)
    return code


def _shell_code(shell: str) -> str:
    """Return the code that a shell must load once in each session to complete our commands."""
    from argcomplete.shell_integration import shellcode

    return shellcode(["evenhand"], shell=shell)


if __name__ == "__main__":
    raise SystemExit(main())
