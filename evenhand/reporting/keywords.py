"""Check the keywords of the functions of `import evenhand` (`taking`).

Keywords and their types are those of the fields of the options that they become, for messages and
for type checkers (`keyword_types.pyi`, written by `python -m docs.keywords`). Messages name the
nearest known keyword or choice, and the extra that installs a missing library.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from inspect import signature
from numbers import Integral, Real
from types import NoneType
from typing import Literal, ParamSpec, TypeVar, cast, get_args, get_origin, get_type_hints

from evenhand.errors import InputError, did_you_mean
from evenhand.texts import written

P = ParamSpec("P")
R = TypeVar("R")


@cache
def keyword_types() -> dict[str, dict[str, str]]:
    """Return sets of keywords with the types of their values: for ratings; for tuning, whose
    `reference` is another parameter; for a plan, with assumptions; and for items to label.
    """
    from evenhand.reporting.planning import Assumptions
    from evenhand.reporting.ratings_file.declared import FileOptions, LabelOptions
    from evenhand.study.settings.analysis import Rules

    rules = {"seed": Rules.model_fields["seed"], **Rules.model_fields}
    settings = {name: _type(field.annotation) for name, field in rules.items()}
    settings["missing"] = "Names"
    reference, overlap = ({name: settings.pop(name)} for name in ("reference", "overlap"))
    labels = {
        **{"human": "Names", "model": "Names", "units": "Table | str | os.PathLike[str] | None"},
        **_types_of(FileOptions, several="Names"),
        **{"level": "Level | None", "thresholds": "Mapping[str, float] | None"},
        **{"columns": "Mapping[str, str] | None", "name": "str"},
    }
    # None in these means that a keyword was left out, so that only `strictness` may be None.
    assumed, items = (
        {name: kind.removesuffix(" | None") for name, kind in _types_of(options).items()}
        for options in (Assumptions, LabelOptions)
    )
    assumed["strictness"] += " | None"
    items["missing"] = "Names"
    del items["in_python"], items["given_options"], items["descriptions"]
    return {
        "": {},
        # `overlap` of labels is the way in which they were chosen, of a plan a share of units.
        "RatingsKeywords": labels | settings | reference | overlap,
        "TuningKeywords": labels | settings | overlap,
        "PlanKeywords": labels | settings | reference | assumed,
        "LabelKeywords": items,
    }


def _types_of(options: type, several: str = "str | Sequence[str]") -> dict[str, str]:
    """Return the types of the fields of a dataclass that its constructor takes."""
    kinds = get_type_hints(options)
    return {field.name: _type(kinds[field.name], several) for field in fields(options)}


def _type(kind: object, several: str = "str | Sequence[str]") -> str:
    """Return the text of a keyword's type for a field's type; `several` is that of a sequence.

    >>> _type(dict[str, tuple[str, ...]]), _type(tuple[str, ...]), _type(float | None)
    ('Mapping[str, Sequence[str]]', 'str | Sequence[str]', 'float | None')
    """
    inner = get_args(kind)
    match get_origin(kind):
        case None:
            return "None" if kind is NoneType else cast(type, kind).__name__
        case origin if origin is Literal:
            return f"Literal[{', '.join(map(repr, inner))}]"
        case origin if origin in (dict, Mapping):
            return f"Mapping[str, {_type(inner[1], 'Sequence[str]')}]"
        case origin if origin in (tuple, Sequence):
            return several
    return " | ".join(_type(part, several) for part in inner)


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """Return the values of keywords that have a closed list of them."""
    from evenhand.analysis.labels.scale import Level
    from evenhand.analysis.thresholds.tuning import OBJECTIVES
    from evenhand.reporting.planning import STATISTICS
    from evenhand.study.settings.analysis import Rules

    kinds = {name: field.annotation for name, field in Rules.model_fields.items()}
    settings = {name: get_args(kind) for name, kind in kinds.items() if get_origin(kind) is Literal}
    settings.pop("overlap")  # a number in a plan
    others = {"level": get_args(Level), "statistic": (*STATISTICS,), "objective": (*OBJECTIVES,)}
    return settings | others


_KINDS: dict[str, tuple[type, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "True or False"),
    "str": (str, "text"),
    "os.PathLike": (os.PathLike, "a path"),
    "Mapping": (Mapping, "a dict"),
    "Sequence": (Collection, "a list"),
}
"""Types of values by type hint, with the words for them; labels and tables are checked later."""


def taking(keywords: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function with `**options` to accept only the keywords of a set of `keyword_types`.
    Its InputErrors name keywords in place of command-line options.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(function).parameters
        own_types = {name: str(parameter.annotation) for name, parameter in parameters.items()}
        own_types.pop("options", None)
        types = own_types | keyword_types()[keywords]

        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            positional = dict(zip(parameters, args, strict=False))
            _check(function.__name__, {**positional, **options}, types)
            try:
                return function(*args, **options)
            except InputError as error:
                raise InputError(in_python(str(error), types)) from None
            except ModuleNotFoundError as error:
                if missing := missing_library(error):
                    raise InputError(missing) from error
                raise

        return checked

    return decorate


def _check(function: str, options: Mapping[str, object], types: Mapping[str, str]) -> None:
    """Raise InputError if a keyword is unknown, or its value of another type or not allowed."""
    for name, value in options.items():
        if name not in types:
            raise InputError(f"{function} has no argument {name}{did_you_mean(name, types)}")
        if expected := _expected_kind(value, types[name]):
            is_plain = isinstance(value, (str, Real, type(None)))
            quoted = repr(value)[:60] if is_plain else f"a {type(value).__name__}"
            raise InputError(f"{name} must be {expected}, not {quoted}")
        if name == "seed" and cast(int, value) < 0:
            raise InputError("seed must be 0 or more")
        allowed = _choices().get(name, ())
        if allowed and value is not None and value not in allowed:
            hint = did_you_mean(str(value), allowed) or f"; use {', '.join(allowed)}"
            raise InputError(f"{name} is {value!r}{hint}")


def _expected_kind(value: object, hint: str) -> str:
    """Return the kind of value that a type hint asks for, in words; "" if `value` is of it.

    >>> _expected_kind("5", "int"), _expected_kind(None, "float | None"), _expected_kind(1, "float")
    ('a whole number', '', '')
    """
    names = [part.partition("[")[0] for part in hint.split(" | ")]
    if (value is None and "None" in names) or not {"None", *_KINDS} >= set(names):
        return ""
    kinds = [_KINDS[name] for name in names if name != "None"]
    is_bool = isinstance(value, bool) and "bool" not in names
    if not is_bool and isinstance(value, tuple(kind for kind, _ in kinds)):
        return ""
    return " or ".join(words for _, words in kinds)


def in_python(sentence: str, types: Mapping[str, str]) -> str:
    """Return a sentence with keywords in place of command-line options; `types` are by keyword.

    >>> known = {"baseline": "str | None", "new_rubric": "bool", "slices": "Sequence[str]"}
    >>> in_python("add --new-rubric, --slice or --baseline; see --json", known)
    'add new_rubric=True, slices= or baseline=; see --json'
    >>> in_python("choose one with --baseline: a, b", known)
    'choose one with baseline: a, b'
    >>> in_python("add --baseline FILE or --slice a,b", known)
    'add baseline="FILE" or slices=["a", "b"]'
    >>> in_python("--set slices is no setting of this verb", known)
    'slices= is no setting of this verb'
    """

    def keyword(option: re.Match[str]) -> str:
        name = option[1].replace("-", "_")
        plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
        known_name = next((part for part in (name, plural) if part in types), None)
        if known_name is None:
            return option[0]
        if option[2]:
            return f"{known_name}:"
        if types[known_name] == "bool":
            return f"{known_name}=True"
        examples = [value for value in (option[3] or "").strip().split(",") if value]
        values = ", ".join(value if value.isdigit() else f'"{value}"' for value in examples)
        return f"{known_name}=[{values}]" if "," in values else f"{known_name}={values}"

    # An option may be followed by an example of its value: NAME, yes,no or 1-5.
    example = r"( (?:\w+(?:,\w+)+|[A-Z]{2,}|\d[\w.-]*)(?!\w))?"
    sentence = re.sub(r"--set (\w+)", lambda option: f"--{option[1].replace('_', '-')}", sentence)
    return re.sub(rf"--([a-z][a-z-]*)(:?){example}", keyword, sentence)


_EXTRAS = {
    "grade": ("aiohttp", "anthropic", "genai_prices", "httpx2", "openai", "regex", "tenacity"),
    "report": ("krippendorff", "sklearn", "statsmodels", "vl_convert"),
}
"""Modules by the extra of the package that installs them; others are those of `study`."""


def missing_library(error: Exception) -> str:
    """Say which library is missing and how to install it; "" for any other error."""
    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    library = name.partition(".")[0]
    if library in ("", "evenhand"):
        return ""
    extra = next((name for name, modules in _EXTRAS.items() if library in modules), "study")
    return written("lean.library", library=library, extra=extra)
