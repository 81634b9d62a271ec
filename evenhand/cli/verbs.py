"""Verbs of the command line, a parser that reports an error in one sentence, and exit codes.

What a verb reads is declared in `verbs.toml`.
"""

from __future__ import annotations

import sys
from argparse import (
    SUPPRESS,
    Action,
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
)
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from evenhand.errors import InputError, StoreAway, nearest
from evenhand.reporting.keywords import missing_library
from evenhand.texts import table_of
from evenhand.visible import visible

if TYPE_CHECKING:
    from argparse import _ActionsContainer

    from _typeshed import DataclassInstance

    from evenhand.study import Study

Options = TypeVar("Options", bound="DataclassInstance")

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
    """A verb of `verbs.toml`, `called` as there."""

    called: str

    @property
    def name(self) -> str:
        """What is typed, after the verb that this is an action of."""
        return self.called.rpartition(" ")[2]

    @property
    def table(self) -> Mapping[str, Any]:
        """What is declared of it."""
        table: Mapping[str, Any] = _tables()[self.called]
        return table

    @property
    def summary(self) -> str:
        """The line in `evenhand --help`."""
        return str(self.table["summary"])

    @property
    def actions(self) -> list[Verb]:
        """The verbs of a verb of verbs, such as `rubric`."""
        return [Verb(called) for called in _tables() if called.startswith(f"{self.called} ")]

    def run(self, arguments: Namespace) -> int | None:
        """Run its function, of whose module nothing is loaded before; returns the exit code, or
        None.
        """
        module, _, function = self.table["run"].partition(".")
        code: int | None = getattr(import_module(f"evenhand.cli.{module}"), function)(arguments)
        return code


def _tables() -> dict[str, Any]:
    return table_of("evenhand.cli", "verbs.toml")


def grouped_verbs() -> dict[str, list[Verb]]:
    """Return the verbs as `evenhand --help` shows them."""
    return {group: [*map(Verb, verbs)] for group, verbs in _tables()["groups"].items()}


def shared(name: str) -> dict[str, Any]:
    """Return the options of a set that verbs share, by name and metavar, with how each is read; of
    sets within it, too.
    """
    found: dict[str, Any] = {}
    for called, how in _tables()["shared"][name].items():
        found |= shared(called) if how == "shared" else {called: how}
    return found


def shared_names(name: str) -> list[str]:
    """Return the names of the options of a set that verbs share.

    >>> shared_names("batch")
    ['--batch', '--cancel']
    """
    return [called.partition(" ")[0] for called in shared(name)]


def path_or_address(text: str) -> Path | str:
    """A path, or an address such as s3://BUCKET/FOLDER as it is."""
    return text if "://" in text else Path(text)


def keys(text: str) -> tuple[str, ...]:
    """The parts of a value, separated by commas.

    >>> keys("yes, no")
    ('yes', 'no')
    """
    return tuple(key.strip() for key in text.split(",") if key.strip())


def _path(text: str) -> Path:
    """A path; an address is refused."""
    if "://" in text:
        raise ArgumentTypeError(
            "a backup is kept in a folder, not at an address; mount the bucket (rclone mount) and "
            "name a folder there"
        )
    return Path(text)


def _tokens(text: str) -> int:
    number = int(text)
    if not 0 < number <= 1_000_000:
        raise ArgumentTypeError("it must be from 1 to 1,000,000")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 86_400:
        raise ArgumentTypeError("it must be above 0 and at most a day")
    return seconds


def _dollars(text: str) -> float:
    amount = float(text)
    if not 0 < amount < float("inf"):
        raise ArgumentTypeError("a budget must be above 0")
    return amount


TYPES: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "keys": keys,
    "path": Path,
    "path_or_address": path_or_address,
    "place_of_backups": _path,
    "tokens": _tokens,
    "seconds": _seconds,
    "dollars": _dollars,
}
"""What reads a value, by its name in `verbs.toml`; others are text."""
DRAWN: dict[str, Callable[..., None]] = {}
"""Sets of options that are drawn from the settings' classes, by their names in `verbs.toml`."""


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
        if verb is None:
            return
        if verb.actions:
            add_verbs(self, verb.actions, dest=verb.table.get("actions", "action"), required=True)
        add_options(self, self, verb.table)
        if "run" in verb.table:
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


def add_options(parser: Parser, to: _ActionsContainer, table: Mapping[str, Any]) -> None:
    """Add the options of a table of `verbs.toml` to a parser, or `to` a group in it."""
    for called, how in table.items():
        if called in DRAWN:
            DRAWN[called](parser, **how)
        elif how == "shared":
            add_options(parser, to, shared(called))
        elif how == "group":
            add_options(parser, parser.add_argument_group(called), shared(called))
        elif how in ("one at most", "exactly one"):
            group = parser.add_mutually_exclusive_group(required=how == "exactly one")
            add_options(parser, group, shared(called))
        elif called not in ("summary", "run", "actions"):
            add_option(to, called, how)


def add_option(to: _ActionsContainer, called: str, how: str | Mapping[str, Any]) -> None:
    """Add an option, or an argument by its place, `called` "--name VALUE" or "name VALUE"; `how` is
    its help, or all that `verbs.toml` says of it.
    """
    name, _, metavar = called.partition(" ")
    given: dict[str, Any] = {"help": how} if isinstance(how, str) else dict(how)
    if "help" in given:
        given["help"] = given["help"].replace("%", "%%")
    if "type" in given:
        given["type"] = TYPES[given["type"]]
    if given.get("action") == "yes or no":
        given["action"] = BooleanOptionalAction
    if metavar:
        given["metavar"] = metavar
    elif not given.keys() & {"choices", "action"}:
        given["action"] = "store_true"
    to.add_argument(name, **given)


def options_of(kind: type[Options], arguments: Namespace, **others: Any) -> Options:
    """Return a dataclass with what the options called like its fields say. `others` are fields of
    which they do not; None leaves a field as it usually is.
    """
    given = {each.name: getattr(arguments, each.name, None) for each in fields(kind)} | others
    return kind(**{name: value for name, value in given.items() if value is not None})


def study_of(arguments: Namespace) -> Study:
    """Open the study that a verb is about."""
    from evenhand.study import open_study

    return open_study(arguments.dir)


def refuse(arguments: Namespace, options: Collection[str], because: str) -> None:
    """Raise InputError where an option was named that would change nothing here."""
    for option in arguments.given:
        if option in options:
            raise InputError(f"{option} {because}")
