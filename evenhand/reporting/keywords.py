"""Keywords of the functions of `import evenhand`.

They are written once, for type checkers (`Unpack`), for editors (`__signature__`) and for messages:
a keyword or a choice that there is not names the nearest, and a library that is not installed the
extra that brings it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar, cast, get_args

from evenhand.errors import InputError, did_you_mean
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.labels.scale import Level
    from evenhand.reporting.ratings_file.dataframes import Names
    from evenhand.reporting.ratings_file.frames import Table

P = ParamSpec("P")
R = TypeVar("R")


class _MostSettings(TypedDict, total=False):
    """All settings but the declared reference."""

    seed: int
    leanings: Mapping[str, Sequence[str]]
    families: Mapping[str, Sequence[str]]
    margin: float
    resamples: int
    cluster: str
    interval: Literal["percentile", "bca"]
    epsilon: float
    slices: str | Sequence[str]
    variants: str | Sequence[str]
    groups: str | Sequence[str]
    rater_slices: str | Sequence[str]
    confidence_cut: float
    confidence_target: float
    ordered: Literal["linear", "quadratic"]
    missing: Names
    sensitivity_cluster: str
    min_coverage: float
    min_clusters: int
    bias_bound: float
    max_injection: float
    max_knocked_off: float
    max_silenced: float
    max_gross: float
    min_stability: float
    min_information: float
    scope: Literal["these", "like_these"]
    looks: int
    across_rubrics: Literal["none", "holm"]
    margin_share: float
    drift_margin: float
    min_people_kappa: float
    min_rarer: int
    reference_kappa: float
    reference_sensitivity: float
    reference_specificity: float


class Settings(_MostSettings, total=False):
    """Settings of an analysis, as in study.toml (docs/study-settings.md)."""

    reference: str


class _OfRatings(TypedDict, total=False):
    """What is said of labels (see `check`)."""

    human: Names
    model: Names
    units: Table | str | os.PathLike[str] | None
    rubric: str | None
    categories: Names
    level: Level | None
    affirmative: Names | None
    sides: Names | None
    thresholds: Mapping[str, float] | None
    columns: Mapping[str, str] | None
    format: str | None
    normalise: bool | None
    independent: bool
    several: bool
    wide: str
    sheet: str
    name: str


class RatingsKeywords(_OfRatings, Settings, total=False):
    """What is said of labels, and settings."""

    overlap: Literal["random", "unknown"]


class TuningKeywords(_OfRatings, _MostSettings, total=False):
    """The same where the reference is whom thresholds are tuned to."""

    overlap: Literal["random", "unknown"]


class PlanKeywords(_OfRatings, Settings, total=False):
    """What is assumed for a plan without a pilot (`reporting.planning.Assumptions`), or said of the
    labels of one.
    """

    agreement: float
    prevalence: float
    scale: str
    correlation: float
    mean: float
    raters: int
    overlap: float
    subjects: int
    likeness: float
    strictness: float | None
    power: float


class LabelKeywords(TypedDict, total=False):
    """What is said of items and asked of them (see `label`)."""

    show: str | Sequence[str]
    subject: str | Sequence[str]
    cluster: str
    judge: str
    missing: Names
    each_turn: bool
    rubric: str | Sequence[str]
    question: str
    options: str | Sequence[str]
    scale: str
    several: bool
    level: Literal["nominal", "ordinal"]
    steps: int
    sheet: str
    sample: int
    stratify: str | Sequence[str]
    seed: int
    raters: int


OF_COLUMNS = ("slices", "variants", "groups", "rater_slices")
"""Settings that are several columns, for which one may be named alone."""


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """The values that a keyword may have, of those with few."""
    from evenhand.analysis.labels.scale import Level
    from evenhand.analysis.thresholds.sweep import OBJECTIVES
    from evenhand.reporting.planning import STATISTICS
    from evenhand.study.settings.analysis import OrderedWeights

    return {
        "level": get_args(Level),
        "interval": ("percentile", "bca"),
        "ordered": get_args(OrderedWeights),
        "scope": ("these", "like_these"),
        "across_rubrics": ("none", "holm"),
        "statistic": tuple(STATISTICS),
        "objective": tuple(OBJECTIVES),
    }


_KINDS: dict[str, tuple[type, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "True or False"),
    "str": (str, "text"),
    "os.PathLike": (os.PathLike, "a path"),
    "Mapping": (Mapping, "a dict"),
    "Sequence": (Collection, "a list"),
}
"""What a value is to be, by its type hint. Labels and tables are looked at by who reads them."""


class _LeftOut:
    """The default of a keyword in a signature."""

    def __repr__(self) -> str:
        return "..."


class NoKeywords(TypedDict):
    """No keywords besides those that a function names."""


def taking(keywords: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function with `**options` take the keywords of a TypedDict and no others, and show them
    to editors.

    Its InputErrors speak of keywords where a command would speak of its options.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = signature(function)
        named = [each for each in own.parameters.values() if each.kind != Parameter.VAR_KEYWORD]
        hints: dict[str, Any] = keywords.__annotations__
        known = {each.name: str(each.annotation) for each in named} | {
            name: getattr(hint, "__forward_arg__", str(hint)) for name, hint in hints.items()
        }

        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            named_by_place = dict(zip(own.parameters, args, strict=False))
            _check(function.__name__, {**named_by_place, **options}, known)
            try:
                return function(*args, **options)
            except InputError as error:
                raise InputError(in_python(str(error), known)) from None
            except ModuleNotFoundError as error:
                if missing := missing_library(error):
                    raise InputError(missing) from error
                raise

        further = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=_LeftOut(), annotation=known[name])
            for name in hints
            if name not in own.parameters
        ]
        vars(checked)["__signature__"] = own.replace(parameters=[*named, *further])
        return checked

    return decorate


def _check(function: str, options: Mapping[str, object], known: Mapping[str, str]) -> None:
    for name, value in options.items():
        if name not in known:
            raise InputError(f"{function} has no argument {name}{did_you_mean(name, known)}")
        if wanted := _another_kind(value, known[name]):
            raise InputError(f"{name} must be {wanted}, not {_short(value)}")
        if name == "seed" and cast(int, value) < 0:
            raise InputError("seed must be 0 or more")
        allowed = _choices().get(name, ())
        if allowed and value is not None and value not in allowed:
            near = did_you_mean(str(value), allowed) or f"; use {', '.join(allowed)}"
            raise InputError(f"{name} is {value!r}{near}")


def _another_kind(value: object, hint: str) -> str:
    """Say what a value should be; "" if it is that.

    >>> _another_kind("5", "int"), _another_kind(None, "float | None"), _another_kind(1, "float")
    ('a whole number', '', '')
    """
    names = [each.partition("[")[0] for each in hint.split(" | ")]
    if (value is None and "None" in names) or not {"None", *_KINDS} >= set(names):
        return ""
    kinds = [_KINDS[name] for name in names if name != "None"]
    is_bool = isinstance(value, bool) and "bool" not in names
    if not is_bool and isinstance(value, tuple(kind for kind, _ in kinds)):
        return ""
    return " or ".join(said for _, said in kinds)


def _short(value: object) -> str:
    is_plain = isinstance(value, (str, Real, type(None)))
    return repr(value)[:60] if is_plain else f"a {type(value).__name__}"


def in_python(sentence: str, known: Mapping[str, str]) -> str:
    """A sentence with keywords for options of the command line; `known` has their types.

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

    def keyword(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
        meant = next((each for each in (name, plural) if each in known), None)
        if meant is None:
            return found[0]
        if found[2]:
            return f"{meant}:"
        if known[meant] == "bool":
            return f"{meant}=True"
        given = [value for value in (found[3] or "").strip().split(",") if value]
        values = ", ".join(value if value.isdigit() else f'"{value}"' for value in given)
        return f"{meant}=[{values}]" if "," in values else f"{meant}={values}"

    # An option may be followed by an example of its value: NAME, yes,no or 1-5.
    example = r"( (?:\w+(?:,\w+)+|[A-Z]{2,}|\d[\w.-]*)(?!\w))?"
    sentence = re.sub(r"--set (\w+)", lambda found: f"--{found[1].replace('_', '-')}", sentence)
    return re.sub(rf"--([a-z][a-z-]*)(:?){example}", keyword, sentence)


_EXTRAS = {
    "grade": ("aiohttp", "anthropic", "genai_prices", "httpx2", "openai", "regex", "tenacity"),
    "report": ("krippendorff", "sklearn", "statsmodels", "vl_convert"),
}
"""Modules by the extra of the package that installs them; others are those of `study`."""


def missing_library(error: Exception) -> str:
    """Say which library is missing and how to install it; "" where an error is about another
    thing.
    """
    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    library = name.partition(".")[0]
    if library in ("", "evenhand"):
        return ""
    extra = next((name for name, own in _EXTRAS.items() if library in own), "study")
    return written("lean.library", library=library, extra=extra)
