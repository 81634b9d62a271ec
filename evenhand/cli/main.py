"""`evenhand VERB ...`: all verbs by group, how one of them is run, and what the shell completes. A
parser that reports an error in one sentence, exit codes, and what options stand for.

What a verb reads is declared in `verbs.toml`. The options on a ratings file, on what its labels
mean and on how it is analysed become one `ScaleOptions` (`given_options`); those on settings are
made from the settings of study.toml: one source of names, texts and ranges.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

from evenhand import __version__
from evenhand.cli.terminal import print_line, print_lines, say, warn, working
from evenhand.errors import InputError, StoreAway, nearest
from evenhand.reporting.keywords import missing_library
from evenhand.reporting.noting import note
from evenhand.texts import print_anywhere, table_of, visible, written

if TYPE_CHECKING:
    from argparse import _ActionsContainer

    from pydantic.fields import FieldInfo

    from evenhand.analysis.verification import Libraries
    from evenhand.reporting.analysing import Analysed
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.study import Study
    from evenhand.study.settings.analysis import Rules

Result = TypeVar("Result")

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
        code, fault = BAD_INPUT, f"{command}: {error}"
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        code, fault = BAD_INPUT, f"{command}: {place}{(error.strerror or str(error)).lower()}"
    except KeyboardInterrupt:
        code, fault = INTERRUPTED, "stopped; what was collected is kept"
    except SystemExit as end:  # a library's own: its 1, or its text, which Python ends with 1 too
        if end.code is None or (isinstance(end.code, int) and end.code != NOT_MET):
            return end.code or DONE
        why = f"a library ended the program ({end.code}); please report this"
        code, fault = CRASHED, f"{command}: {why}"
    except Exception as error:
        if missing := missing_library(error):
            code, fault = BAD_INPUT, f"{command}: {missing}"
        else:
            import traceback

            traceback.print_exc()
            why = "this is a fault in evenhand; please report the lines above"
            code, fault = CRASHED, f"{command}: {why}"
    print(visible(fault), file=sys.stderr)  # noqa: T201
    return code


class Verb(NamedTuple):
    """A verb of `verbs.toml`, `called` as there."""

    called: str

    @property
    def name(self) -> str:
        """The word that is typed, after the verb that this is an action of."""
        return self.called.rpartition(" ")[2]

    @property
    def table(self) -> Mapping[str, Any]:
        """Its table in `verbs.toml`."""
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
    options: dict[str, Any] = {}
    for called, how in _tables()["shared"][name].items():
        options |= shared(called) if how == "shared" else {called: how}
    return options


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


def _above_0(read: Callable[[str], float], most: float, fault: str) -> Callable[[str], float]:
    """Return what reads a number above 0 and at most `most`, and says the `fault` of any other."""

    def number(text: str) -> float:
        if not 0 < (given := read(text)) <= most:
            raise ArgumentTypeError(fault)
        return given

    return number


TYPES: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "keys": keys,
    "path": Path,
    "path_or_address": path_or_address,
    "place_of_backups": _path,
    "tokens": _above_0(int, 1_000_000, "it must be from 1 to 1,000,000"),
    "seconds": _above_0(float, 86_400, "it must be above 0 and at most a day"),
    "dollars": _above_0(float, sys.float_info.max, "a budget must be above 0"),
}
"""What reads a value, by its name in `verbs.toml`; others are text."""


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
        self.replaced: dict[str, str] = {}
        """What to write in place of an option that is none any more."""
        self._undeclared = verb

    @property
    def options(self) -> list[str]:
        """All options with two dashes."""
        return [option for option in self._option_string_actions if option.startswith("--")]

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


def _suggestion(word: str, words: Iterable[str]) -> str:
    """
    >>> _suggestion("reprot", ["report", "respond"])
    ' (did you mean report?)'
    """
    near = nearest(word, words)
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
        parser.verbs[verb.name] = added.add_parser(
            verb.name, verb=verb, help=verb.summary, description=description
        )


def add_options(parser: Parser, to: _ActionsContainer, table: Mapping[str, Any]) -> None:
    """Add the options of a table of `verbs.toml` to a parser, or `to` a group in it."""
    for called, how in table.items():
        if called == "settings":
            add_analysis_options(parser, **how)
        elif called == "source_settings":
            add_analysis_options(parser, {*how["without"], *ONLY_CHECK})
            named = {option: written("options.of_file", option=option) for option in ONLY_CHECK}
            parser.replaced |= named
        elif how == "shared":
            add_options(parser, to, shared(called))
        elif how == "group":
            add_options(parser, parser.add_argument_group(called), shared(called))
        elif how in ("one at most", "exactly one"):
            group = parser.add_mutually_exclusive_group(required=how == "exactly one")
            add_options(parser, group, shared(called))
        elif called not in ("summary", "run", "actions"):
            add_option(to, called, how)
            if called == "--no-app":
                parser.replaced["--no-page"] = written("options.renamed", option=called)


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


def options_of(function: Callable[..., Result], arguments: Namespace, **others: Any) -> Result:
    """Call a function, or make a dataclass, with what the options called like its parameters say.
    `others` are parameters of which they do not; None leaves a parameter as it usually is.
    """
    given = vars(arguments) | others
    names = signature(function).parameters
    return function(**{name: given[name] for name in names if given.get(name) is not None})


def study_of(arguments: Namespace) -> Study:
    """Open the study that a verb is about. Options that name graders or a rubric by their display
    names have the ids from then on.
    """
    from evenhand.study import open_study

    study = open_study(arguments.dir)
    ids = {name: each for each, name in study.config.names.items()}
    for option in ("grader", "graders", "against", "candidate", "rubric"):
        given = getattr(arguments, option, None)
        if isinstance(given, str):
            setattr(arguments, option, ids.get(given, given))
        elif isinstance(given, list):
            setattr(arguments, option, [ids.get(each, each) for each in given])
    return study


def refuse(arguments: Namespace, options: Collection[str], because: str) -> None:
    """Raise InputError where an option was named that would change nothing here."""
    for option in arguments.given:
        if option in options:
            raise InputError(f"{option} {because}")


# ---- what options stand for ----------------------------------------------------------------------

OF_FILES = shared_names("file")
"""Options that only a ratings file needs: a study has rubrics and units of its own."""
ONLY_CHECK = (
    *("--wide", "--sheet", "--format", "--several"),
    *("--sides", "--threshold", "--independent"),
)
"""Options that `check` alone has, and writes next to the ratings for other verbs."""
_OWN_OPTIONS = (
    *("cluster", "missing", "reference", "slices"),
    *("margin", "epsilon", "resamples", "seed"),
)
"""Settings that have an option of their own; all others are given by `--set`."""


def app_address(text: str) -> str:
    """An address that ends in a slash, for a query to be put behind it.

    Raises InputError where a browser could not open it.

    >>> app_address("https://label.example.org/study")
    'https://label.example.org/study/'
    """
    try:
        parts = urlsplit(text)
    except ValueError:  # brackets that hold no IPv6 address
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(
            f"--url {text!r} is not a valid address; write one such as https://label.example.org/"
        )
    return text if text.endswith("/") else f"{text}/"


def reached_at(arguments: Namespace, port: int) -> tuple[str, str]:
    """Return where annotators reach the app, and the name by which it is called there, "" where it
    is this machine's own. With `--host` the app that this process starts listens to the network.

    Raises InputError for an address that a browser could not open.
    """
    if arguments.host:
        name = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        try:
            parts = urlsplit(f"http://{name}:{port}")
        except ValueError:
            parts = urlsplit("")
        host = parts.hostname or ""
        if host != arguments.host.lower() or not host.isascii():
            raise InputError(
                f"--host {arguments.host!r} is no name of a machine; write this machine's name or "
                "address on the network, such as 192.168.1.20"
            )
        os.environ["STREAMLIT_SERVER_ADDRESS"] = "::" if ":" in name else "0.0.0.0"  # noqa: S104
        warn("terminal.note", note=written("session.open_network"))
        return f"{parts.geturl()}/", host
    address = app_address(arguments.url or f"http://localhost:{port}")
    return address, (urlsplit(address).hostname or "" if arguments.url else "")


def lead_link(folder: Path, url: str) -> str:
    """Return a link to the lead's pages of the app at `url`."""
    from evenhand.study import open_study
    from evenhand.study.access import LINK_PARAMETER, new_link_token

    address = app_address(url)
    with open_study(folder) as study:
        note(study, "link")
        return f"{address}?{LINK_PARAMETER}={new_link_token(study.store)}"


def print_lead_link(folder: Path, url: str, path: str = "") -> None:
    """Print how to reach the lead's pages of the app that is about to start, at a `path` of its own
    where there are several.

    The link itself is printed on a terminal only: the output of a service is kept in a log.
    """
    if sys.stdout.isatty():
        say("terminal.lead_link", link=lead_link(folder, url + path))
    else:
        at = f" --url {url}{path}" if path else ""
        say("terminal.lead_link_elsewhere", folder=f"{folder}{at}")


# ---- an analysis: what a verb declares ---------------------------------------------------------


def trust_settings(arguments: Namespace) -> None:
    """Trust what the settings of the verb's studies declare, and say so. Raises InputError where
    there is no study.
    """
    from evenhand.study.settings import study_toml
    from evenhand.study.trust import remember

    by_folder = {}
    if file := getattr(arguments, "settings", None):
        by_folder[file.parent] = study_toml.declarations(study_toml.read_model_settings(file))
    named = getattr(arguments, "dirs", None) or [getattr(arguments, "dir", None)]
    for place in map(Path, filter(None, (*named, getattr(arguments, "source", None)))):
        files = [place / study_toml.FILE_NAME, *sorted(place.glob(f"[!.]*/{study_toml.FILE_NAME}"))]
        folders = [path.parent for path in files if path.is_file()]
        by_folder |= {
            folder: study_toml.declarations(study_toml.read_config(folder)) for folder in folders
        }
        if not by_folder:
            raise InputError(written("trust.no_study", folder=place))
    for folder, declared in by_folder.items():
        remember(folder, declared.values())
        names = {"folder": folder, "names": ", ".join(declared)}
        warn("trust.now" if declared else "trust.nothing", **names)


def add_analysis_options(
    parser: Parser, without: Collection[str] = (), only: Collection[str] = ()
) -> None:
    """Add the options on a ratings file, on the meaning of its labels and on the analysis, that a
    study has in its study.toml instead; `without` lists options and settings that a verb cannot
    use, or `only` those that it can.
    """
    from evenhand.study.settings.sections import keys_of

    fields = keys_of(_rules())
    if only:
        without = {*OF_FILES, *fields} - {*only}
    for called, how in shared("file").items():
        if called.partition(" ")[0] not in without:
            add_option(parser, called, how)
    options = {name: _option(name, fields[name]) for name in _OWN_OPTIONS}
    for name, option in options.items():
        if name not in without:
            text = (fields[name].description or "").replace("`", "").replace("%", "%%")
            default = fields[name].get_default(call_default_factory=True)
            text += f" ({default})" if default not in ("", (), {}) else ""
            parser.add_argument(option, dest=name, help=text, **_shape(fields[name]))
    add_options(parser, parser, shared("other_settings"))
    parser.set_defaults(unused=without)
    parser.replaced |= {
        _option(name, field): written("options.set", name=name)
        for name, field in fields.items()
        if name not in _OWN_OPTIONS
    }


def _rules() -> type[Rules]:
    """Return all settings as one class, which takes longer to load than `evenhand --help` may."""
    from evenhand.study.settings.analysis import Rules

    return Rules


def _option(name: str, field: FieldInfo) -> str:
    """Return the name of a setting's option, in the singular where it may be given several times.

    >>> fields = _rules().model_fields
    >>> [_option(name, fields[name]) for name in ("margin", "rater_slices", "families")]
    ['--margin', '--rater-slice', '--family']
    """
    if get_origin(field.annotation) in (tuple, dict):
        name = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
    return f"--{name.replace('_', '-')}"


def _shape(field: FieldInfo) -> dict[str, Any]:
    """Return argparse's arguments for the option: it is read as text, which `given_settings`
    converts.
    """
    kind = get_origin(field.annotation)
    if kind is Literal:
        return {"choices": get_args(field.annotation)}
    if isinstance(field.json_schema_extra, dict) and "metavar" in field.json_schema_extra:
        return {"metavar": field.json_schema_extra["metavar"], "type": keys}
    if kind is tuple:
        return {"action": "append", "metavar": "COL"}
    numbers: dict[object, str] = {int: "N", float: "X"}
    return {"metavar": numbers.get(field.annotation, "COL")}


# ---- an analysis: what was given ---------------------------------------------------------------


def refuse_of_files(arguments: Namespace, but: Collection[str] = ()) -> None:
    """Raise InputError where an option on a ratings file is given, `but` one of these."""
    refuse(arguments, {*OF_FILES} - {*but}, "is for a ratings file; a study has rubrics of its own")


def analyse_asked(
    source: Path | str,
    arguments: Namespace,
    *,
    by: Callable[..., Analysed] | None = None,
    verify: bool | Libraries = False,
    why: bool = False,
) -> Analysed:
    """Analyse a study or a ratings file as the command line asks, and print the assumptions made.
    Options that only a file needs are refused with a study.

    `by` is the function that does it, by default `analyse_source`.
    """
    from evenhand.reporting.analysing import analyse_source
    from evenhand.reporting.load import is_study

    if isinstance(source, Path) and is_study(source):
        refuse_of_files(arguments)
    run: Callable[..., Analysed] = by or analyse_source
    engine = engine_of(arguments, source)
    options = given_options(arguments)
    if engine:
        from evenhand.reporting.at_scale import analyse_at_scale

        units = getattr(arguments, "units", None)
        run = partial(analyse_at_scale, engine=engine, units=units, **options.settings)
    with working("reading the labels") as tell:
        analysis, context = run(source, options, verify=verify, why=why, on_stage=tell)
    print_lines(context.said)
    return analysis, context


def engine_of(arguments: Namespace, source: Path | str) -> str:
    """The engine that was named, if any. Raises InputError for an address without one."""
    engine: str = getattr(arguments, "engine", None) or ""
    if isinstance(source, str) and not engine:
        raise InputError("the source is an address, which check and gate read with --engine dask")
    return engine


def given_options(arguments: Namespace) -> ScaleOptions:
    """Return all that the command line says of a ratings file and its analysis. Raises InputError
    where it is not valid.
    """
    from evenhand.reporting.ratings_file.dataframes import kinds_of
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.study.tables.ratings import columns_in

    named = {name: value for name, value in vars(arguments).items() if value is not None}
    options = {option.strip("-") for option in OF_FILES} - {"human", "model", "threshold"}
    given = {name: value for name, value in named.items() if name in options}
    given["thresholds"] = {}
    for text in named.get("threshold", ()):
        grader, _, number = text.rpartition("=")
        try:
            given["thresholds"][grader.strip()] = float(number)
        except ValueError:
            example = "write GRADER=T, as in my-grader=0.2"
            raise InputError(f"--threshold is {text!r}; {example}") from None
    given["columns"] = columns_in(named.get("columns"))
    kinds = kinds_of(named.get("human", ()), named.get("model", ()))
    return ScaleOptions(**given, kinds=kinds, settings=given_settings(arguments))


def given_settings(arguments: Namespace) -> dict[str, Any]:
    """The settings that the command line names. Raises InputError for one out of range."""
    from pydantic import ValidationError

    from evenhand.study.settings.sections import fault_of

    named = vars(arguments)
    given: dict[str, Any] = {n: named[n] for n in _OWN_OPTIONS if named.get(n) is not None}
    for word in getattr(arguments, "set", ()):
        name, entry, value = _set(word)
        if name in getattr(arguments, "unused", ()):
            raise InputError(written("options.unused", name=name))
        if entry:
            given[name] = {**given.get(name, {}), entry: value}
        else:
            given[name] = (*given.get(name, ()), *value) if isinstance(value, tuple) else value
    if not given:
        return {}
    try:
        checked = _rules().model_validate(given)
    except ValidationError as error:
        raise InputError(fault_of(error, _called)) from None
    return {name: getattr(checked, name) for name in given}


def _called(place: str) -> str:
    """The option at the head of a place such as "leanings.left"."""
    name = place.partition(".")[0]
    if name and name not in _OWN_OPTIONS:
        return f"--set {name}"
    return _option(name, _rules().model_fields[name]) if name else ""


def _set(word: str) -> tuple[str, str, object]:
    """Return the setting that a word of `--set` names, the entry where it has entries ("": it has
    none), and the value. Raises InputError where there is no such setting.
    """
    fields = _rules().model_fields
    named, equals, value = word.partition("=")
    name, _, entry = named.strip().partition(".")
    if not equals or name not in fields:
        near = nearest(name, fields)
        raise InputError(written("options.no_setting", word=word, near=near or "looks"))
    field = fields[name]
    if get_origin(field.annotation) is dict:
        if not entry or not keys(value):
            raise InputError(written("options.entry", name=name))
        return name, entry, keys(value)
    is_several = get_origin(field.annotation) is tuple
    return name, "", keys(value) if is_several else value.strip()


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
