"""Options that several verbs share, and the values that they stand for.

Those on a ratings file, on what its labels mean and on how it is analysed become one `ScaleOptions`
(`given_options`). Options on settings are made from the settings of study.toml: one source of
names, texts and ranges.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

from evenhand.cli.terminal import print_lines, say, warn, working
from evenhand.cli.verbs import (
    DRAWN,
    Parser,
    add_option,
    add_options,
    keys,
    refuse,
    shared,
    shared_names,
)
from evenhand.errors import InputError, nearest
from evenhand.reporting.noting import note
from evenhand.texts import written

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from evenhand.analysis import Analysis
    from evenhand.analysis.verification import Libraries
    from evenhand.reporting.analysing import Analysed
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.study.settings.analysis import Rules

OF_FILES = shared_names("file")
"""Options that only a ratings file needs: a study has rubrics and units of its own."""
ONLY_CHECK = (
    *("--wide", "--sheet", "--format", "--several"),
    *("--sides", "--threshold", "--independent"),
)
"""Options that `check` alone has, and writes next to the ratings for other verbs."""
NEEDED = {
    *("--human", "--model", "--columns", "--categories", "--affirmative", "--level"),
    *("--units", "--cluster", "--rubric", "--margin", "--missing"),
}
"""Options on a file and its analysis that most need."""
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


def reached_at(arguments: argparse.Namespace, port: int) -> tuple[str, str]:
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
    from evenhand.study.access.accounts import LINK_PARAMETER, new_link_token

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


def trust_settings(arguments: argparse.Namespace) -> None:
    """Trust what the settings of the verb's studies declare, and say so. Raises InputError where
    there is no study.
    """
    from evenhand.study.settings.study_toml import (
        FILE_NAME,
        declarations,
        read_config,
        read_model_settings,
    )
    from evenhand.study.trust import remember

    found = {}
    if file := getattr(arguments, "settings", None):
        found[file.parent] = declarations(read_model_settings(file))
    named = getattr(arguments, "dirs", None) or [getattr(arguments, "dir", None)]
    for place in map(Path, filter(None, (*named, getattr(arguments, "source", None)))):
        files = [place / FILE_NAME, *sorted(place.glob(f"[!.]*/{FILE_NAME}"))]
        folders = [each.parent for each in files if each.is_file()]
        found |= {folder: declarations(read_config(folder)) for folder in folders}
        if not found:
            raise InputError(written("trust.no_study", folder=place))
    for folder, declared in found.items():
        remember(folder, declared.values())
        names = {"folder": folder, "names": ", ".join(declared)}
        warn("trust.now" if declared else "trust.nothing", **names)


def add_source_settings(parser: Parser, without: Collection[str]) -> None:
    """Add the options on how a study or a ratings file is analysed, `without` those that the verb
    has no use for.
    """
    add_analysis_options(parser, {*without, *ONLY_CHECK})
    parser.replaced |= {option: written("options.of_file", option=option) for option in ONLY_CHECK}


def add_analysis_options(
    parser: Parser, without: Collection[str] = (), only: Collection[str] = ()
) -> None:
    """Add the options on a ratings file, on the meaning of its labels and on the analysis, that a
    study has in its study.toml instead; `without` lists options and settings that a verb cannot
    use, or `only` those that it can. Help shows `NEEDED`, and the others where it is asked for all.
    """
    from evenhand.study.settings.sections import keys_of

    fields = keys_of(_rules())
    if only:
        without = {*OF_FILES, *fields} - {*only}
    for called, how in shared("file").items():
        if called.partition(" ")[0] not in without:
            add_option(parser, called, how)
    own = {name: _option(name, fields[name]) for name in _OWN_OPTIONS}
    for name, option in own.items():
        if name not in without:
            how = {"help": _help(fields[name]), **_shape(fields[name])}
            parser.add_argument(option, dest=name, **how)
    add_options(parser, parser, shared("other_settings"))
    parser.seldom_needed({*OF_FILES, *own.values()} - NEEDED)
    parser.set_defaults(unused=without)
    rest = {
        _option(name, field): name for name, field in fields.items() if name not in _OWN_OPTIONS
    }
    parser.replaced |= {option: written("options.set", name=name) for option, name in rest.items()}


DRAWN |= {"settings": add_analysis_options, "source_settings": add_source_settings}


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


def _help(field: FieldInfo) -> str:
    """Return the setting's description with its default."""
    text = (field.description or "").replace("`", "").replace("%", "%%")
    usual = field.get_default(call_default_factory=True)
    return f"{text} ({usual})" if usual not in ("", (), {}) else text


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


def refuse_of_files(arguments: argparse.Namespace, but: Collection[str] = ()) -> None:
    """Raise InputError where an option on a ratings file is given, `but` one of these."""
    refuse(arguments, {*OF_FILES} - {*but}, "is for a ratings file; a study has rubrics of its own")


def analysis_of(arguments: argparse.Namespace, *, why: bool = False) -> Analysis:
    """Return the analysis of the source. Options that only a file needs are refused with a
    study.
    """
    from evenhand.reporting.load import is_study

    if isinstance(arguments.source, Path) and is_study(arguments.source):
        refuse_of_files(arguments)
    analysis, _ = analyse_asked(arguments.source, arguments, why=why)
    return analysis


def analyse_asked(
    source: Path | str,
    arguments: argparse.Namespace,
    *,
    by: Callable[..., Analysed] | None = None,
    verify: bool | Libraries = False,
    why: bool = False,
) -> Analysed:
    """Analyse a study or a ratings file as the command line asks, and print the assumptions made.

    `by` is the function that does it, by default `analyse_source`.
    """
    from evenhand.reporting.analysing import analyse_source

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


def engine_of(arguments: argparse.Namespace, source: Path | str) -> str:
    """The engine that was named, if any. Raises InputError for an address without one."""
    engine: str = getattr(arguments, "engine", None) or ""
    if isinstance(source, str) and not engine:
        raise InputError("the source is an address, which check and gate read with --engine dask")
    return engine


def given_options(arguments: argparse.Namespace) -> ScaleOptions:
    """Return all that the command line says of a ratings file and its analysis. Raises InputError
    where it is not valid.
    """
    from evenhand.reporting.ratings_file.dataframes import kinds_of
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.study.tables.ratings import columns_in

    said = {name: value for name, value in vars(arguments).items() if value is not None}
    names = [option.strip("-") for option in OF_FILES if option.strip("-") in said]
    given = {name: said[name] for name in names if name not in ("human", "model", "threshold")}
    given["thresholds"] = dict(map(_threshold, said.get("threshold", ())))
    given["columns"] = columns_in(said.get("columns"))
    kinds = kinds_of(said.get("human", ()), said.get("model", ()))
    return ScaleOptions(**given, kinds=kinds, settings=given_settings(arguments))


def _threshold(text: str) -> tuple[str, float]:
    grader, _, number = text.rpartition("=")
    try:
        return grader.strip(), float(number)
    except ValueError:
        raise InputError(f"--threshold is {text!r}; write GRADER=T, as in my-grader=0.2") from None


def given_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that the command line names. Raises InputError for one out of range."""
    from pydantic import ValidationError

    from evenhand.study.settings.sections import fault_of

    own = {name: getattr(arguments, name, None) for name in _OWN_OPTIONS}
    given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
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
