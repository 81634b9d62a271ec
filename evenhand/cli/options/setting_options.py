"""Command-line options made from the settings of study.toml: one source of names, texts, ranges."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from evenhand.cli.options.scale_options import add_scale_options, keys_in, scale_options
from evenhand.cli.terminal import console, working
from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from evenhand.analysis.verification import Libraries
    from evenhand.reporting.analysing import Analysed
    from evenhand.study.settings.sections import Section


def add_analysis_options(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """Add the options on a ratings file that a study has in its study.toml instead.

    `without` lists options that a verb cannot use.
    """
    from evenhand.study.settings.sections import keys_of

    add_scale_options(parser, without)
    for name, field in keys_of(_settings()).items():
        option = _option(name, field)
        if option not in without:
            parser.add_argument(option, dest=name, help=_help(field), **_shape(field))


def option_names() -> list[str]:
    """The options of all settings."""
    return [_option(name, field) for name, field in _settings().model_fields.items()]


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add `--engine`: the place to read ratings that are too many for one table."""
    parser.add_argument(
        "--engine",
        metavar="ENGINE",
        help="for millions of ratings: stream, dask, or dask:tcp://HOST:PORT (docs/scaling.md)",
    )


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
    if engine := engine_of(arguments, source):
        from evenhand.reporting.at_scale.checking import analyse_at_scale

        run = partial(analyse_at_scale, engine=engine)
    scale, settings = scale_options(arguments), given_settings(arguments)
    with working("reading the labels") as tell:
        analysis, context = run(
            source, scale, units=arguments.units, verify=verify, why=why, on_stage=tell, **settings
        )
    for remark in context.notes:
        console().print(remark)
    if context.synthetic:
        console().print(written("terminal.synthetic"))
    return analysis, context


def engine_of(arguments: argparse.Namespace, source: Path | str) -> str:
    """The engine that was named, if any. Raises InputError for an address without one."""
    engine: str = getattr(arguments, "engine", None) or ""
    if isinstance(source, str) and not engine:
        raise InputError("the source is an address, which check and gate read with --engine stream")
    return engine


def given_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that the command line names. Raises InputError for one out of range."""
    from pydantic import ValidationError

    from evenhand.study.settings.sections import fault_of

    fields = _settings().model_fields
    given = {
        name: _parsed(text, name, field)
        for name, field in fields.items()
        if (text := getattr(arguments, name, None)) is not None
    }
    if not given:
        return {}
    try:
        checked = _settings().model_validate(given)
    except ValidationError as error:
        raise InputError(fault_of(error, _called)) from None
    return {name: getattr(checked, name) for name in given}


@cache
def _settings() -> type[Section]:
    """All settings of an analysis as one class."""
    from pydantic import Field, create_model

    from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings

    seed = Field(default=SEED, ge=0, description="fixes all resampling")
    bases = (DecisionSettings, AnalysisSettings)
    return create_model("GivenSettings", __base__=bases, seed=(int, seed))


def _option(name: str, field: FieldInfo) -> str:
    """Return the name of a setting's option, in the singular where it may be given several times.

    >>> fields = _settings().model_fields
    >>> [_option(name, fields[name]) for name in ("margin", "rater_slices", "families")]
    ['--margin', '--rater-slice', '--family']
    """
    if get_origin(field.annotation) in (tuple, dict):
        name = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
    return f"--{name.replace('_', '-')}"


def _called(place: str) -> str:
    """The option at the head of a place such as "leanings.left"."""
    name = place.partition(".")[0]
    return _option(name, _settings().model_fields[name]) if name else ""


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
    if kind is dict:
        return {"action": "append", "metavar": "NAME=KEY,..."}
    if kind is tuple:
        return {"action": "append", "metavar": "G1,G2" if _is_nested(field) else "COL"}
    numbers: dict[object, str] = {int: "N", float: "X"}
    return {"metavar": numbers.get(field.annotation, "COL")}


def _parsed(given: str | list[str], name: str, field: FieldInfo) -> object:
    """A value for the settings' class from the words that followed the option."""
    if isinstance(given, str):
        return given
    if get_origin(field.annotation) is dict:
        return dict(_entry(word, name, field) for word in given)
    return [keys_in(word) for word in given] if _is_nested(field) else given


def _entry(word: str, name: str, field: FieldInfo) -> tuple[str, tuple[str, ...]]:
    key, _, keys = word.partition("=")
    if not key or not keys:
        raise InputError(f"{_option(name, field)} is {word!r}; write NAME=KEY,...")
    return key, keys_in(keys) or ()


def _is_nested(field: FieldInfo) -> bool:
    return get_origin(get_args(field.annotation)[0]) is tuple
