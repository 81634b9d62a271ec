"""Verbs of the command line, a parser that reports an error in one sentence, and exit codes."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from evenhand.errors import InputError, StoreAway, nearest
from evenhand.reporting.keywords import missing_library
from evenhand.visible import visible

if TYPE_CHECKING:
    from argparse import _ActionsContainer

    from evenhand.study import Study

DONE = 0
NOT_MET = 1
"""Only `gate` ends so. A crash must not, or it would read as a grader that falls short."""
BAD_INPUT = STOPPED = CRASHED = 2
OVER_BUDGET = 3
INTERRUPTED = 130


def exit_code(command: str, run: Callable[[], int | None]) -> int:
    """Run a command, print an error as one sentence, and return the exit code."""
    try:
        return run() or DONE
    except (InputError, StoreAway) as error:
        _say(f"{command}: {error}")
        return BAD_INPUT
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _say(f"{command}: {place}{(error.strerror or str(error)).lower()}")
        return BAD_INPUT
    except KeyboardInterrupt:
        _say("stopped; what was collected is kept")
        return INTERRUPTED
    except SystemExit as end:  # a library's own: its 1, or its text, which Python ends with 1 too
        if end.code is None or (isinstance(end.code, int) and end.code != NOT_MET):
            return end.code or DONE
        _say(f"{command}: a library ended the program ({end.code}); please report this")
        return CRASHED
    except Exception as error:
        if missing := missing_library(error):
            _say(f"{command}: {missing}")
            return BAD_INPUT
        import traceback

        traceback.print_exc()
        _say(f"{command}: this is a fault in evenhand; please report the lines above")
        return CRASHED


def _say(sentence: str) -> None:
    print(visible(sentence), file=sys.stderr)  # noqa: T201


class Verb(NamedTuple):
    """A verb: `summary` is its line in `evenhand --help`; `run` returns the exit code, or None.

    `declare` adds what the verb reads, and no more. A verb of verbs, such as `rubric`, has these in
    its place, and no `run` of its own.
    """

    name: str
    summary: str
    declare: Callable[[Parser], None] | tuple[Verb, ...]
    run: Callable[[Namespace], int | None] | None = None


class Parser(ArgumentParser):
    """An argument parser whose errors are one sentence with a suggestion; argparse would print the
    whole usage.

    The options of a `verb` are declared once it is used: some come from the settings' classes,
    which take longer to load than `evenhand --help` may. The parsed namespace holds `given`, the
    options that were named.
    """

    def __init__(self, *, verb: Verb | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.verbs: dict[str, Parser] = {}
        self.seldom: set[str] = set()
        self.replaced: dict[str, str] = {}
        """What to write in place of an option that is none any more."""
        self._undeclared = verb

    def add_study(self) -> None:
        """The folder of the study that a verb is about."""
        self.add_argument("dir", type=Path, metavar="DIR", help="the study's folder")
        self.add_trust()

    def add_trust(self) -> None:
        """The operator's word for what a study's settings send (`evenhand.study.trust`)."""
        self.add_argument(
            "--trust",
            action="store_true",
            help="send what the study's settings name, from now on (docs/security.md)",
        )

    @property
    def options(self) -> list[str]:
        """All options with two dashes."""
        return [option for option in self._option_string_actions if option.startswith("--")]

    def seldom_needed(self, options: Iterable[str]) -> None:
        """Leave these options out of `--help`; `--help-all` has them."""
        if not self.seldom:
            self.add_argument("--help-all", action=_WholeHelp, nargs=0, help="all options")
        self.seldom.update(options)

    def format_help(self) -> str:
        seldom = [each for each in self._actions if self.seldom & {*each.option_strings}]
        texts = [each.help for each in seldom]
        for each in seldom:
            each.help = SUPPRESS
        try:
            return super().format_help()
        finally:
            for each, text in zip(seldom, texts, strict=True):
                each.help = text

    def whole_help(self) -> str:
        """The help with all options."""
        return super().format_help()

    def declare(self) -> None:
        """Take in the options of the verb, unless it has happened."""
        verb, self._undeclared = self._undeclared, None
        if verb is not None:
            if isinstance(verb.declare, tuple):
                add_verbs(self, verb.declare, dest="action", required=True)
            else:
                verb.declare(self)
            if verb.run is not None:
                self.set_defaults(run=verb.run)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}; see `{self.prog} --help`\n")

    def parse_known_args(
        self, args: Iterable[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        self.declare()
        words = list(sys.argv[1:] if args is None else args)
        # Looked for first: argparse would speak of a missing --require before a mistyped --requier.
        given = self._named(words)
        arguments, left = super().parse_known_args(words, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        arguments.given = [*given, *getattr(arguments, "given", ())]
        return arguments, left

    def _named(self, words: Sequence[str]) -> list[str]:
        """The options among the words up to a verb, written out; ends where one is mistyped."""
        options, given = self.options, []
        if self.verbs and words and words[0][:1] != "-" and words[0] not in self.verbs:
            self.error(f"invalid choice: {words[0]!r}{_suggestion(words[0], self.verbs)}")
        for word in words:
            if word == "--" or word in self.verbs:
                break  # what follows a verb is read by its own parser
            if word.startswith("--") and " " not in word:
                named = word.partition("=")[0]
                meant = [named] if named in options else [o for o in options if o.startswith(named)]
                if not meant and named in self.replaced:
                    self.error(f"{named} {self.replaced[named]}")
                if not meant:
                    self.error(f"unrecognized option: {named}{_suggestion(named, options)}")
                given += meant[:1]
        return given


class _WholeHelp(Action):
    """Print the help with all options, and exit."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> NoReturn:
        parser._print_message(parser.whole_help() if isinstance(parser, Parser) else "", sys.stdout)
        parser.exit()


def _suggestion(word: str, known: Iterable[str]) -> str:
    """
    >>> _suggestion("reprot", ["report", "respond"])
    ' (did you mean report?)'
    """
    near = nearest(word, known)
    return f" (did you mean {near}?)" if near else ""


def add_verbs(parser: Parser, verbs: Sequence[Verb], *, dest: str, **options: Any) -> None:
    """Add verbs of which one may follow; its name goes to `dest`, its function to `run`.

    `options` are argparse's for the group of verbs.
    """
    added = parser.add_subparsers(
        dest=dest, metavar=dest.upper(), prog=parser.prog, parser_class=Parser, **options
    )
    for verb in verbs:
        description = f"{verb.summary[0].upper()}{verb.summary[1:]}."
        own = added.add_parser(verb.name, verb=verb, help=verb.summary, description=description)
        parser.verbs[verb.name] = own


def add(
    to: _ActionsContainer,
    called: str,
    text: str,
    kind: Callable[[str], Any] = str,
    default: object = None,
    **how: Any,
) -> None:
    """Add an option, or an argument by its place, `called` "--name VALUE" or "name VALUE"; `text`
    is its help, and `kind` reads its value.
    """
    name, metavar = called.split(" ", 1)
    to.add_argument(name, metavar=metavar, help=text, type=kind, default=default, **how)


def add_flag(to: _ActionsContainer, name: str, text: str) -> None:
    """Add an option without a value."""
    to.add_argument(name, action="store_true", help=text)


def add_choice(
    to: _ActionsContainer, name: str, choices: Iterable[str], text: str, default: str | None = None
) -> None:
    """Add an option with one of these values."""
    to.add_argument(name, choices=choices, help=text, default=default)


def study_of(arguments: Namespace) -> Study:
    """Open the study that a verb is about."""
    from evenhand.study import open_study

    return open_study(arguments.dir)


def refuse(arguments: Namespace, options: Collection[str], because: str) -> None:
    """Raise InputError where an option was named that would change nothing here."""
    for option in arguments.given:
        if option in options:
            raise InputError(f"{option} {because}")
