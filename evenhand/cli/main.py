"""The command line, `evenhand VERB ...`: from the verbs and options of `verbs.toml` to a call.

A verb is a command such as `grade` or `rubric check`. `exit_code` runs one and reports its errors.
`Verb` and `shared_options` read `verbs.toml`; `Parser` and `add_options` make argparse's parsers of
it. Then come functions that turn parsed options into values, such as `call_with`, `study_of`,
`run_analysis` and `scale_options` for a ratings file. Options for settings are made from the
settings' classes, so that names, texts and ranges have one source.
"""

from __future__ import annotations

import argparse
import csv
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

    from evenhand.reporting.analysing import AnalysisAndContext
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.study import Study
    from evenhand.study.settings.analysis import Rules

Result = TypeVar("Result")
ReadNumber = Callable[[str], float]  # from the text of an option's value

# Exit codes of the program
DONE = 0
NOT_MET = 1
"""Exit code of `gate` alone. A crash must not have it, or it would read as a failed grader."""
BAD_INPUT = STOPPED = CRASHED = 2
OVER_BUDGET = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def exit_code(command: str, run: Callable[[], int | None]) -> int:
    """Run a command, print an error as one sentence, and return the exit code (`run`'s, if any)."""
    try:
        return run() or DONE
    except (InputError, StoreAway) as error:
        code, message = BAD_INPUT, f"{command}: {error}"
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        code, message = BAD_INPUT, f"{command}: {file}{(error.strerror or str(error)).lower()}"
    except KeyboardInterrupt:
        code, message = INTERRUPTED, "stopped; what was collected is kept"
    except SystemExit as end:  # raised by a library
        if end.code is None or (isinstance(end.code, int) and end.code != NOT_MET):
            return end.code or DONE
        # Python exits with 1 for a text, too, and 1 would read as a failed grader.
        reason = f"a library ended the program ({end.code}); please report this"
        code, message = CRASHED, f"{command}: {reason}"
    except Exception as error:
        if advice := missing_library(error):
            code, message = BAD_INPUT, f"{command}: {advice}"
        else:
            import traceback

            traceback.print_exc()
            reason = "this is a fault in evenhand; please report the lines above"
            code, message = CRASHED, f"{command}: {reason}"
    print(visible(message), file=sys.stderr)  # noqa: T201
    return code


class Verb(NamedTuple):
    """A verb of `verbs.toml`, with its name there, such as "rubric check"."""

    full_name: str

    @property
    def name(self) -> str:
        """The last word of its full name."""
        return self.full_name.rpartition(" ")[2]

    @property
    def table(self) -> Mapping[str, Any]:
        """Its table in `verbs.toml`."""
        return _verb_tables()[self.full_name]

    @property
    def summary(self) -> str:
        """The line in `evenhand --help`."""
        return str(self.table["summary"])

    @property
    def actions(self) -> list[Verb]:
        """The verbs below this one, such as "rubric check" below "rubric"."""
        return [Verb(name) for name in _verb_tables() if name.startswith(f"{self.full_name} ")]

    def run(self, arguments: Namespace) -> int | None:
        """Import the verb's module, run its function, and return the exit code or None."""
        module, _, function = self.table["run"].partition(".")
        code: int | None = getattr(import_module(f"evenhand.cli.{module}"), function)(arguments)
        return code


def _verb_tables() -> dict[str, dict[str, Any]]:
    """Return the content of `verbs.toml`, whose head explains it."""
    return table_of("evenhand.cli", "verbs.toml")


def shared_options(name: str) -> dict[str, Any]:
    """Return a set of options that verbs share: each "--name VALUE" with its help or its table."""
    options: dict[str, Any] = {}
    for declaration, spec in _verb_tables()["shared"][name].items():
        options |= shared_options(declaration) if spec == "shared" else {declaration: spec}
    return options


def shared_option_names(name: str) -> list[str]:
    """Return the names of the options of a set that verbs share.

    >>> shared_option_names("batch")
    ['--batch', '--cancel']
    """
    return [declaration.partition(" ")[0] for declaration in shared_options(name)]


def path_or_address(text: str) -> Path | str:
    """Return a path; or an address such as s3://BUCKET/FOLDER unchanged."""
    return text if "://" in text else Path(text)


def utf8_text(text: str) -> str:
    """Return a text. Raises ArgumentTypeError where it is not UTF-8, as only a path may be."""
    if text.encode(errors="ignore").decode() != text:
        raise ArgumentTypeError(f"{text!r} is not UTF-8 text")
    return text


def split_values(text: str) -> tuple[str, ...]:
    """Return the parts of a value that are separated by commas, as in a line of a CSV file.

    >>> split_values("yes, no"), split_values('"Smith, Jo",ben')
    (('yes', 'no'), ('Smith, Jo', 'ben'))
    """
    values = chain(*csv.reader(text.replace("\r", "\n").split("\n"), skipinitialspace=True))
    return tuple(value.strip() for value in values if value.strip())


def backup_folder(text: str) -> Path:
    """Return a path. Raises ArgumentTypeError for an address."""
    if "://" in text:
        raise ArgumentTypeError(
            "a backup is kept in a folder, not at an address; mount the bucket (rclone mount) and "
            "name a folder there"
        )
    return Path(text)


def positive_number(read: ReadNumber, maximum: float, message: str) -> ReadNumber:
    """Return a reader of numbers above 0 and up to `maximum`, with a `message` for others."""

    def read_number(text: str) -> float:
        if not 0 < (value := read(text)) <= maximum:
            raise ArgumentTypeError(message)
        return value

    return read_number


TYPES: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "keys": lambda text: split_values(utf8_text(text)),
    "path": Path,
    "path_or_address": path_or_address,
    "place_of_backups": backup_folder,
    "tokens": positive_number(int, 1_000_000, "it must be from 1 to 1,000,000"),
    "seconds": positive_number(float, 86_400, "it must be above 0 and at most a day"),
    "dollars": positive_number(float, sys.float_info.max, "a budget must be above 0"),
}
"""Functions that read an option's value, by their names in `verbs.toml`; other values are text."""


class Parser(ArgumentParser):
    """An argument parser whose errors are one sentence with a suggestion; argparse would print the
    whole usage. The options of a `verb` are added when it is first used: some come from the
    settings' classes, which are too slow to load for `evenhand --help`. The parsed namespace has
    the names of the options on the command line in `given_options`.
    """

    def __init__(self, *, verb: Verb | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.register("type", None, utf8_text)  # of options without a type
        self.verbs: dict[str, Parser] = {}
        self.replacements: dict[str, str] = {}
        """Messages for options that are not accepted here, with what to write instead."""
        self._undeclared_verb = verb  # None once `declare` has added its options

    @property
    def options(self) -> list[str]:
        """The names of all options, with two dashes."""
        return [option for option in self._option_string_actions if option.startswith("--")]

    def declare(self) -> None:
        """Add the verb's options and actions, if that has not been done."""
        verb, self._undeclared_verb = self._undeclared_verb, None
        if verb is None:
            return
        if verb.actions:
            add_verbs(self, verb.actions, dest=verb.table.get("actions", "action"), required=True)
        add_options(self, self, verb.table)
        if "run" in verb.table:
            self.set_defaults(run=verb.run)

    def error(self, message: str) -> NoReturn:
        """Print an error with a hint to the help, and exit."""
        self.exit(BAD_INPUT, f"{self.prog}: {message}; see `{self.prog} --help`\n")

    def parse_known_args(
        self, args: Iterable[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse arguments as argparse does, and store the names of the options among them."""
        self.declare()
        command_line = list(sys.argv[1:] if args is None else args)
        # Before argparse, which would report a missing --require rather than the typo --requier.
        option_names = self._option_names(command_line)
        arguments, unknown = super().parse_known_args(command_line, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        arguments.given_options = [*option_names, *getattr(arguments, "given_options", ())]
        return arguments, unknown

    def _option_names(self, command_line: Sequence[str]) -> list[str]:
        """Return the full names of the options before a verb; exit with an error for a typo."""
        options, option_names = self.options, list[str]()
        first_word = command_line[0] if command_line else ""
        needs_verb = bool(self.verbs and first_word) and not first_word.startswith("-")
        if needs_verb and first_word not in self.verbs:
            self.error(f"invalid choice: {first_word!r}{_suggestion(first_word, self.verbs)}")
        for word in command_line:
            if word == "--" or word in self.verbs:
                break  # what follows a verb is read by its own parser
            if not word.startswith("--") or " " in word:
                continue
            typed = word.partition("=")[0]  # argparse accepts the beginning of a name, too
            matches = [option for option in options if option.startswith(typed)]
            if matches:
                option_names.append(typed if typed in options else matches[0])
            elif typed in self.replacements:
                self.error(f"{typed} {self.replacements[typed]}")
            else:
                self.error(f"unrecognized option: {typed}{_suggestion(typed, options)}")
        return option_names


def _suggestion(word: str, candidates: Iterable[str]) -> str:
    """Return the candidate nearest to a word, as the end of a message, or "".

    >>> _suggestion("reprot", ["report", "respond"])
    ' (did you mean report?)'
    """
    candidate = nearest(word, candidates)
    return f" (did you mean {candidate}?)" if candidate else ""


def add_verbs(parser: Parser, verbs: Sequence[Verb], *, dest: str, **options: Any) -> None:
    """Add verbs to a parser, as argparse's `add_subparsers` with these `options`."""
    subparsers = parser.add_subparsers(
        dest=dest, metavar=dest.upper(), prog=parser.prog, parser_class=Parser, **options
    )
    subparsers.type = str  # what follows a verb is read by its own parser
    for verb in verbs:
        description = f"{verb.summary[0].upper()}{verb.summary[1:]}."
        parser.verbs[verb.name] = subparsers.add_parser(
            verb.name, verb=verb, help=verb.summary, description=description
        )


def add_options(parser: Parser, target: _ActionsContainer, table: Mapping[str, Any]) -> None:
    """Add the options of a table of `verbs.toml` (see its head) to a parser or a `target` in it."""
    for declaration, spec in table.items():
        if declaration == "settings":
            add_analysis_options(parser, **spec)
        elif declaration == "source_settings":  # without the options that `check` stores in a file
            add_analysis_options(parser, {*spec["without"], *CHECK_OPTIONS})
            for option in CHECK_OPTIONS:
                parser.replacements[option] = written("options.of_file", option=option)
        elif spec == "shared":
            add_options(parser, target, shared_options(declaration))
        elif spec == "group":
            add_options(parser, parser.add_argument_group(declaration), shared_options(declaration))
        elif spec in ("one at most", "exactly one"):
            group = parser.add_mutually_exclusive_group(required=spec == "exactly one")
            add_options(parser, group, shared_options(declaration))
        elif declaration not in ("summary", "run", "actions"):
            add_option(target, declaration, spec)
            if declaration == "--no-app":  # called --no-page in earlier versions
                parser.replacements["--no-page"] = written("options.renamed", option=declaration)


def add_option(target: _ActionsContainer, declaration: str, spec: str | Mapping[str, Any]) -> None:
    """Add an option ("--name VALUE") or an argument ("name VALUE") by its help or its table."""
    name, _, metavar = declaration.partition(" ")
    options: dict[str, Any] = {"help": spec} if isinstance(spec, str) else dict(spec)
    if "help" in options:
        options["help"] = options["help"].replace("%", "%%")
    if "type" in options:
        options["type"] = TYPES[options["type"]]
    if options.get("action") == "yes or no":
        options["action"] = BooleanOptionalAction
    if metavar:
        options["metavar"] = metavar
    elif not options.keys() & {"choices", "action"}:
        options["action"] = "store_true"
    target.add_argument(name, **options)


def call_with(function: Callable[..., Result], arguments: Namespace, **values: Any) -> Result:
    """Call a function or a dataclass with the values of the options named like its parameters, and
    with these `values` in place of some. A value of None leaves the parameter's default.
    """
    values = vars(arguments) | values
    parameters = signature(function).parameters
    return function(**{name: values[name] for name in parameters if values.get(name) is not None})


def study_of(arguments: Namespace) -> Study:
    """Open the study in `arguments.dir`; replace display names in the other arguments by ids."""
    from evenhand.study import open_study

    study = open_study(arguments.dir)
    id_by_name = {name: rater_id for rater_id, name in study.config.names.items()}
    for option in ("grader", "graders", "against", "candidate", "rubric"):
        value = getattr(arguments, option, None)
        if isinstance(value, str):
            setattr(arguments, option, id_by_name.get(value, value))
        elif isinstance(value, list):
            setattr(arguments, option, [id_by_name.get(rater_id, rater_id) for rater_id in value])
    return study


def refuse(arguments: Namespace, options: Collection[str], reason: str) -> None:
    """Raise InputError if one of these options, which would have no effect, was given."""
    for option in arguments.given_options:
        if option in options:
            raise InputError(f"{option} {reason}")


def trust_settings(arguments: Namespace) -> None:
    """Trust the addresses that the verb's studies declare. Raises InputError without a study."""
    from evenhand.study.settings import study_toml
    from evenhand.study.trust import remember

    declared_by_folder = {}
    if settings_file := getattr(arguments, "settings", None):
        settings = study_toml.read_model_settings(settings_file)
        declared_by_folder[settings_file.parent] = study_toml.declarations(settings)
    # A verb names its study as `dir` or `source`, or several as `dirs`.
    paths = getattr(arguments, "dirs", None) or [getattr(arguments, "dir", None)]
    paths = [*paths, getattr(arguments, "source", None)]
    for path in map(Path, filter(None, paths)):  # a study's folder, or a folder of studies
        files = [path / study_toml.FILE_NAME, *sorted(path.glob(f"[!.]*/{study_toml.FILE_NAME}"))]
        for folder in (file.parent for file in files if file.is_file()):
            declared_by_folder[folder] = study_toml.declarations(study_toml.read_config(folder))
        if not declared_by_folder:
            raise InputError(written("trust.no_study", folder=path))
    for folder, declared in declared_by_folder.items():
        remember(folder, declared.values())
        names = {"folder": folder, "names": ", ".join(declared)}
        warn("trust.now" if declared else "trust.nothing", **names)


# ---- addresses of the app and links --------------------------------------------------------------


def app_address(text: str) -> str:
    """Return the app's address with a slash at the end. Raises InputError if it is not a valid one.

    >>> app_address("https://label.example.org/study")
    'https://label.example.org/study/'
    """
    try:
        url = urlsplit(text)
    except ValueError:  # brackets that hold no IPv6 address
        url = urlsplit("")
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise InputError(
            f"--url {text!r} is not a valid address; write one such as https://label.example.org/"
        )
    return text if text.endswith("/") else f"{text}/"


def annotators_address(arguments: Namespace, port: int) -> tuple[str, str]:
    """Return the app's address for annotators, and its host name, or "" on this machine. With
    `--host` the app will listen to the network. Raises InputError for an address that is not valid.
    """
    if arguments.host:
        is_ipv6 = ":" in arguments.host
        host_in_url = f"[{arguments.host}]" if is_ipv6 else arguments.host
        try:
            url = urlsplit(f"http://{host_in_url}:{port}")
        except ValueError:
            url = urlsplit("")
        host = url.hostname or ""
        if host != arguments.host.lower() or not host.isascii() or " " in host:
            raise InputError(
                f"--host {arguments.host!r} is no name of a machine; write this machine's name or "
                "address on the network, such as 192.168.1.20"
            )
        os.environ["STREAMLIT_SERVER_ADDRESS"] = "::" if is_ipv6 else "0.0.0.0"  # noqa: S104
        warn("terminal.note", note=written("session.open_network"))
        return f"{url.geturl()}/", host
    if not arguments.url:
        return f"http://localhost:{port}/", ""
    return app_address(arguments.url), urlsplit(arguments.url).hostname or ""


def lead_link(folder: Path, url: str) -> str:
    """Return a link to the lead's pages of the app at `url`."""
    from evenhand.study import open_study
    from evenhand.study.access import LINK_PARAMETER, new_link_token

    address = app_address(url)
    with open_study(folder) as study:
        note(study, "link")
        return f"{address}?{LINK_PARAMETER}={new_link_token(study.store)}"


def print_lead_link(folder: Path, url: str, path: str = "") -> None:
    """Print the link to the lead's pages of the app that is about to start, or without a terminal
    how to get it, so that no log has it. `path` is the study's, if the app serves several.
    """
    if sys.stdout.isatty():
        say("terminal.lead_link", link=lead_link(folder, url + path))
    else:
        typed = f"{folder} --url {url}{path}" if path else str(folder)
        say("terminal.lead_link_elsewhere", arguments=typed)


# ---- options of an analysis ----------------------------------------------------------------------

FILE_OPTIONS = shared_option_names("file")
"""Options for a ratings file; a study has rubrics and units of its own."""
CHECK_OPTIONS = ["--wide", "--sheet", "--format", "--several"]
CHECK_OPTIONS += ["--sides", "--threshold", "--independent"]
"""Options of `check` alone, which stores them next to the ratings for other verbs."""
_SETTINGS_WITH_OPTION = ["cluster", "missing", "reference", "slices"]
_SETTINGS_WITH_OPTION += ["margin", "epsilon", "resamples", "seed"]
"""Settings with an option of their own; the others are given by `--set`."""


def add_analysis_options(
    parser: Parser, without: Collection[str] = (), only: Collection[str] = ()
) -> None:
    """Add the options of a ratings file, of its scale and of the analysis, which a study has in its
    study.toml. `without` names options and settings that a verb does not use, `only` those it uses.
    """
    from evenhand.study.settings.sections import keys_of

    fields = keys_of(_settings_class())
    if only:
        without = {*FILE_OPTIONS, *fields} - {*only}
    for declaration, spec in shared_options("file").items():
        if declaration.partition(" ")[0] not in without:
            add_option(parser, declaration, spec)
    for name, field in fields.items():
        if name not in _SETTINGS_WITH_OPTION:
            parser.replacements[_option_name(name, field)] = written("options.set", name=name)
    for name in _SETTINGS_WITH_OPTION:
        field = fields[name]
        if name not in without:
            summary = (field.description or "").replace("`", "").replace("%", "%%")
            default = field.get_default(call_default_factory=True)
            summary += f" ({default})" if default not in ("", (), {}) else ""
            options = _argparse_options(field)
            parser.add_argument(_option_name(name, field), dest=name, help=summary, **options)
    add_options(parser, parser, shared_options("other_settings"))
    parser.set_defaults(unused=without)  # for `settings_of`, which refuses these in --set


def _settings_class() -> type[Rules]:
    """Return the class of all settings, which is too slow to import for `evenhand --help`."""
    from evenhand.study.settings.analysis import Rules

    return Rules


def _option_name(name: str, field: FieldInfo) -> str:
    """Return the name of a setting's option, in the singular where it may be given several times.

    >>> fields = _settings_class().model_fields
    >>> [_option_name(name, fields[name]) for name in ("margin", "rater_slices", "families")]
    ['--margin', '--rater-slice', '--family']
    """
    if get_origin(field.annotation) in (tuple, dict):
        name = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
    return f"--{name.replace('_', '-')}"


def _argparse_options(field: FieldInfo) -> dict[str, Any]:
    """Return argparse's arguments for a setting's option, whose value stays a text."""
    kind = get_origin(field.annotation)
    if kind is Literal:
        return {"choices": get_args(field.annotation)}
    if isinstance(field.json_schema_extra, dict) and "metavar" in field.json_schema_extra:
        return {"metavar": field.json_schema_extra["metavar"], "type": split_values}
    if kind is tuple:
        return {"action": "append", "metavar": "COL"}
    metavars: dict[object, str] = {int: "N", float: "X"}
    return {"metavar": metavars.get(field.annotation, "COL")}


# ---- values of these options ---------------------------------------------------------------------


def refuse_file_options(arguments: Namespace, allowed: Collection[str] = ()) -> None:
    """Raise InputError where an option of ratings files is given, except the `allowed` ones."""
    reason = "is for a ratings file; a study has rubrics of its own"
    refuse(arguments, {*FILE_OPTIONS} - {*allowed}, reason)


def run_analysis(
    source: Path | str,
    arguments: Namespace,
    *,
    analyse: Callable[..., AnalysisAndContext] | None = None,
    verify: bool = False,
    why: bool = False,
) -> AnalysisAndContext:
    """Analyse a study or a ratings file with the options of the command line, and print the
    assumptions made. Options of ratings files are refused with a study. `analyse` is the function
    to use, by default `analyse_source`; `verify` and `why` are as in `analysis.analyse`.
    """
    from evenhand.reporting.analysing import analyse_source
    from evenhand.reporting.load import is_study

    if isinstance(source, Path) and is_study(source):
        refuse_file_options(arguments)
    run: Callable[..., AnalysisAndContext] = analyse or analyse_source
    engine = named_engine(arguments, source)
    options = scale_options(arguments)
    if engine:  # for millions of ratings, of which only counts of label patterns are analysed
        from evenhand.reporting.at_scale import analyse_at_scale

        units = getattr(arguments, "units", None)
        run = partial(analyse_at_scale, engine=engine, units=units, **options.settings)
    with working("reading the labels") as on_stage:
        analysis, context = run(source, options, verify=verify, why=why, on_stage=on_stage)
    print_lines(context.all_notes)
    return analysis, context


def named_engine(arguments: Namespace, source: Path | str) -> str:
    """Return the value of `--engine`, or "". Raises InputError for an address without one."""
    engine: str = getattr(arguments, "engine", None) or ""
    if isinstance(source, str) and not engine:
        raise InputError("the source is an address, which check and gate read with --engine dask")
    return engine


def scale_options(arguments: Namespace) -> ScaleOptions:
    """Return the options of a ratings file and its analysis. Raises InputError for invalid ones."""
    from evenhand.reporting.ratings_file.dataframes import kinds_of
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.study.tables.ratings import columns_in

    values = {name: value for name, value in vars(arguments).items() if value is not None}
    # Fields have the names of their options, except `thresholds` and `kinds` (--human and --model).
    fields = {option.strip("-") for option in FILE_OPTIONS} - {"human", "model", "threshold"}
    file_values = {name: value for name, value in values.items() if name in fields}
    file_values["thresholds"] = {}
    for text in values.get("threshold", ()):
        grader, _, number = text.rpartition("=")
        try:
            file_values["thresholds"][grader.strip()] = float(number)
        except ValueError:
            example = "write GRADER=T, as in my-grader=0.2"
            raise InputError(f"--threshold is {text!r}; {example}") from None
    file_values["columns"] = columns_in(values.get("columns"))
    kinds = kinds_of(values.get("human", ()), values.get("model", ()))
    return ScaleOptions(**file_values, kinds=kinds, settings=settings_of(arguments))


def settings_of(arguments: Namespace) -> dict[str, Any]:
    """Return the settings on the command line, by name. Raises InputError for invalid ones."""
    from pydantic import ValidationError

    from evenhand.study.settings.sections import fault_of

    values = vars(arguments)
    names = (name for name in _SETTINGS_WITH_OPTION if values.get(name) is not None)
    settings: dict[str, Any] = {name: values[name] for name in names}
    for assignment in getattr(arguments, "set", ()):
        name, entry, value = _parse_assignment(assignment)
        if name in getattr(arguments, "unused", ()):
            raise InputError(written("options.unused", name=name))
        if entry:
            settings[name] = {**settings.get(name, {}), entry: value}
        elif isinstance(value, tuple):
            settings[name] = (*settings.get(name, ()), *value)
        else:
            settings[name] = value
    if not settings:
        return {}
    try:
        checked = _settings_class().model_validate(settings)
    except ValidationError as error:
        raise InputError(fault_of(error, _name_on_command_line)) from None
    return {name: getattr(checked, name) for name in settings}


def _name_on_command_line(location: str) -> str:
    """Return the option of the setting at a location such as "leanings.left"."""
    name = location.partition(".")[0]
    if name and name not in _SETTINGS_WITH_OPTION:
        return f"--set {name}"
    return _option_name(name, _settings_class().model_fields[name]) if name else ""


def _parse_assignment(assignment: str) -> tuple[str, str, object]:
    """Return (setting, entry, value) of a `--set NAME=VALUE` or `--set NAME.ENTRY=VALUE`; the entry
    is "" where the setting has none. Raises InputError where there is no such setting.
    """
    fields = _settings_class().model_fields
    setting, equals, value = assignment.partition("=")
    name, _, entry = setting.strip().partition(".")
    if not equals or name not in fields:
        example = nearest(name, fields) or "looks"  # any setting that is a plain number would do
        raise InputError(written("options.no_setting", word=assignment, near=example))
    field = fields[name]
    if get_origin(field.annotation) is dict:
        if not entry or not split_values(value):
            raise InputError(written("options.entry", name=name))
        return name, entry, split_values(value)
    return name, "", split_values(value) if get_origin(field.annotation) is tuple else value.strip()


# ---- the program ---------------------------------------------------------------------------------

GROUPS = {group: [*map(Verb, verbs)] for group, verbs in _verb_tables()["groups"].items()}
"""The verbs by group, as `evenhand --help` shows them."""
ABOUT = (
    "Can an LLM grader replace annotators? Collect annotators' labels and model grades on the same "
    "rubrics, and see how well they agree."
)
WIDTH = 80  # characters in a line of `evenhand --help`
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
    completion = f"print the code that lets {', '.join(SHELLS)} complete verbs and options"
    parser.add_argument("--completion", choices=SHELLS, metavar="SHELL", help=completion)
    add_verbs(parser, [*chain(*GROUPS.values())], dest="verb", help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    print_anywhere()
    command_line = sys.argv[1:] if argv is None else argv
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions, at each Tab
        import argcomplete

        verb_parser = parser
        for word in os.environ["COMP_LINE"].split():
            if word in verb_parser.verbs:
                verb_parser = verb_parser.verbs[word]
                verb_parser.declare()  # argcomplete reads the options without parsing
        argcomplete.autocomplete(parser, always_complete_options=False)  # which exits
    verb = next((word for word in command_line if word in parser.verbs), "")
    return exit_code(f"evenhand {verb}".strip(), lambda: _run(parser, command_line))


def _run(parser: Parser, command_line: Sequence[str]) -> int | None:
    """Parse the command line and run the verb; return its exit code or None."""
    try:
        arguments = parser.parse_args(command_line)
    except SystemExit as stop:  # --help, --version, or an error in a sentence
        return int(stop.code or DONE)
    if arguments.completion:
        from argcomplete.shell_integration import shellcode

        # A shell loads this once in each session.
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
