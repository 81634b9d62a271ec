"""Check the keywords of the functions of `import evenhand`, by the decorator `taking`.

A keyword has the name and the type of a field in a class of options, such as `ScaleOptions`. Type
checkers read them in `keyword_types.pyi`, which `python -m docs.keywords` writes. Messages name the
nearest known keyword or choice, and the extra that installs a missing library.
"""

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

Params = ParamSpec("Params")
Result = TypeVar("Result")


@cache
def keyword_types() -> dict[str, dict[str, str]]:
    """Return the sets of keywords that functions accept, each {keyword: type}, by the set's name
    (see `taking`). The set for tuning lacks `reference`, a parameter of `calibrate` itself. Types
    are texts as in `keyword_types.pyi`, which imports "Names", "Table" and "Level".
    """
    from evenhand.reporting.planning import Assumptions
    from evenhand.reporting.ratings_file.declared import FileOptions, LabelOptions
    from evenhand.study.settings.analysis import Rules

    rules = {"seed": Rules.model_fields["seed"], **Rules.model_fields}  # the seed first in the list
    settings = {name: _text_of(field.annotation) for name, field in rules.items()}
    settings["missing"] = "Names"
    reference = {"reference": settings.pop("reference")}
    overlap = {"overlap": settings.pop("overlap")}
    of_source = {
        "human": "Names",
        "model": "Names",
        "units": "Table | str | os.PathLike[str] | None",
        **_types_of(FileOptions, sequence="Names"),
        "level": "Level | None",
        "thresholds": "Mapping[str, float] | None",
        "columns": "Mapping[str, str] | None",
        "name": "str",
    }
    of_plan, of_label = _types_without_none(Assumptions), _types_without_none(LabelOptions)
    of_plan["overlap"] += f" | {overlap['overlap']}"
    of_plan["strictness"] += " | None"  # None is a value of this one: the usual strictness
    of_label["missing"] = "Names"
    del of_label["in_python"], of_label["given_options"], of_label["descriptions"]  # for programs
    return {
        "": {},  # for functions without `**options`
        # `overlap` of labels is the way in which they were chosen, of a plan also a share of units.
        "RatingsKeywords": of_source | settings | reference | overlap,
        "TuningKeywords": of_source | settings | overlap,
        "PlanKeywords": of_source | settings | reference | of_plan,
        "LabelKeywords": of_label,
    }


def _types_of(options: type, sequence: str = "str | Sequence[str]") -> dict[str, str]:
    """Return a dataclass's fields as keywords, {keyword: type}; `sequence` as in `_text_of`."""
    hints = get_type_hints(options)
    return {field.name: _text_of(hints[field.name], sequence) for field in fields(options)}


def _types_without_none(options: type) -> dict[str, str]:
    """Return `_types_of` without None, which in these fields means that a keyword is left out."""
    return {name: text.removesuffix(" | None") for name, text in _types_of(options).items()}


def _text_of(hint: object, sequence: str = "str | Sequence[str]") -> str:
    """Return the text of a keyword's type for a field's type, with `sequence` for a sequence.

    >>> _text_of(dict[str, tuple[str, ...]]), _text_of(tuple[str, ...]), _text_of(float | None)
    ('Mapping[str, Sequence[str]]', 'str | Sequence[str]', 'float | None')
    """
    inner = get_args(hint)
    match get_origin(hint):
        case None:
            return "None" if hint is NoneType else cast(type, hint).__name__
        case origin if origin is Literal:
            return f"Literal[{', '.join(map(repr, inner))}]"
        case origin if origin in (dict, Mapping):
            return f"Mapping[str, {_text_of(inner[1], 'Sequence[str]')}]"
        case origin if origin in (tuple, Sequence):
            return sequence
    return " | ".join(_text_of(part, sequence) for part in inner)  # a union


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """Return the permitted values of each keyword that has a closed list of them."""
    from evenhand.analysis.labels.scale import Level
    from evenhand.analysis.thresholds.tuning import OBJECTIVES
    from evenhand.reporting.planning import STATISTICS
    from evenhand.study.settings.analysis import Rules

    hints = {name: field.annotation for name, field in Rules.model_fields.items()}
    settings = {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}
    settings.pop("overlap")  # may be a number in a plan
    others = {"level": get_args(Level), "statistic": (*STATISTICS,), "objective": (*OBJECTIVES,)}
    return settings | others


_KINDS: dict[str, tuple[type, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "True or False"),
    "str": (str, "text"),
    "Literal": (str, "text"),
    "os.PathLike": (os.PathLike, "a path"),
    "Mapping": (Mapping, "a dict"),
    "Sequence": (Collection, "a list"),
}
"""Classes of values by type hint, with the words for them; labels and tables are checked later."""
_MOST_QUOTED = 60  # the most characters of a value that a message quotes


def taking(keywords: str = "") -> Callable[[Callable[Params, Result]], Callable[Params, Result]]:
    """Decorate a function so that its `**options` accept only the keywords of the set called
    `keywords` in `keyword_types`, and its InputErrors name keywords, not command-line options.
    """

    def decorate(function: Callable[Params, Result]) -> Callable[Params, Result]:
        parameters = signature(function).parameters
        types = {name: str(parameter.annotation) for name, parameter in parameters.items()}
        types.pop("options", None)
        types |= keyword_types()[keywords]

        @wraps(function)
        def checked(*args: Params.args, **options: Params.kwargs) -> Result:
            positional = dict(zip(parameters, args, strict=False))
            _check(function.__name__, {**positional, **options}, types)
            try:
                return function(*args, **options)
            except InputError as error:
                raise InputError(in_python(str(error), types)) from None
            except ModuleNotFoundError as error:
                if advice := missing_library(error):
                    raise InputError(advice) from error
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
            quoted = repr(value)[:_MOST_QUOTED] if is_plain else f"a {type(value).__name__}"
            raise InputError(f"{name} must be {expected}, not {quoted}")
        if name == "seed" and cast(int, value) < 0:
            raise InputError("seed must be 0 or more")
        allowed = _choices().get(name, ())
        if allowed and value is not None and value not in allowed:
            hint = did_you_mean(str(value), allowed) or f"; use {', '.join(allowed)}"
            raise InputError(f"{name} is {value!r}{hint}")


def _expected_kind(value: object, hint: str) -> str:
    """Return the kind of value that a type hint asks for, in words; "" if the value is of it.

    >>> _expected_kind("5", "int"), _expected_kind(None, "float | None"), _expected_kind(1, "float")
    ('a whole number', '', '')
    """
    names = [part.partition("[")[0] for part in hint.split(" | ")]
    is_checked = {"None", *_KINDS} >= set(names)  # not "Table", which is checked when read
    if not is_checked or (value is None and "None" in names):
        return ""
    kinds = [_KINDS[name] for name in names if name != "None"]
    is_wrong_bool = isinstance(value, bool) and "bool" not in names  # Python takes it for a number
    if not is_wrong_bool and isinstance(value, tuple(kind for kind, _ in kinds)):
        return ""
    return " or ".join(in_words for _, in_words in kinds)


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

    def as_keyword(match: re.Match[str]) -> str:
        singular = match["option"].replace("-", "_")
        plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
        keyword = next((name for name in (singular, plural) if name in types), None)
        if keyword is None:
            return match[0]
        if match["colon"]:
            return f"{keyword}:"
        if types[keyword] == "bool":
            return f"{keyword}=True"
        examples = [value for value in (match["example"] or "").strip().split(",") if value]
        values = ", ".join(value if value.isdigit() else f'"{value}"' for value in examples)
        return f"{keyword}=[{values}]" if "," in values else f"{keyword}={values}"

    # A setting is a keyword of its own, `--set NAME` on the command line. An option may be followed
    # by an example of its value: NAME, yes,no or 1-5.
    example = r"(?P<example> (?:\w+(?:,\w+)+|[A-Z]{2,}|\d[\w.-]*)(?!\w))?"
    sentence = re.sub(r"--set (\w+)", lambda match: f"--{match[1].replace('_', '-')}", sentence)
    return re.sub(rf"--(?P<option>[a-z][a-z-]*)(?P<colon>:?){example}", as_keyword, sentence)


_EXTRAS = {
    "grade": ("aiohttp", "anthropic", "genai_prices", "httpx2", "openai", "regex", "tenacity"),
    "report": ("krippendorff", "sklearn", "statsmodels", "vl_convert"),
}
"""Modules by the extra of the package that installs them; `study` installs all other ones."""


def missing_library(error: Exception) -> str:
    """Say which library is missing and how to install it; "" for any other error."""
    module = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    library = module.partition(".")[0]
    if library in ("", "evenhand"):
        return ""
    extra = next((extra for extra, modules in _EXTRAS.items() if library in modules), "study")
    return written("lean.library", library=library, extra=extra)
