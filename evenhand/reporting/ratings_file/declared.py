"""Declarations of a user for a file of ratings or of items, by options of the command line or by
keywords in Python, and the file next to a ratings file that keeps them.

`NAME.scales.toml`, next to a study's exported ratings `NAME.csv`, holds what the analysis of the
study uses in addition to its two tables, so that `evenhand check` on the files gives the results of
`evenhand report`: scales, thresholds and what these were tuned on, settings other than the
defaults, exclusions, prices, looks. It may also be written by hand for any ratings; all of it but a
scale's `categories` may be left out. `evenhand.reporting.exporting` writes it.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self, runtime_checkable

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from evenhand.analysis import Scale, StudyFacts
from evenhand.analysis.labels.scale import Level, Tuning
from evenhand.analysis.request import TriedWording
from evenhand.errors import InputError
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings
from evenhand.study.settings.sections import DisplayNames, Section, Share, fault_of
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd


Line = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""A text without line breaks and other control characters: it is printed on a terminal."""
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
EVERYBODY = "*"
"""All raters that are not named, as `--human '*'` has it."""


@runtime_checkable
class ArrowTable(Protocol):
    """A table of any library with the Arrow PyCapsule interface: polars, pyarrow, DuckDB..."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


if TYPE_CHECKING:
    Table = (
        pd.DataFrame
        | ArrowTable
        | Mapping[Any, Collection[object]]
        | Sequence[Mapping[Any, object]]
    )
    """A table of a library, columns by their names, or a list of records."""


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options of a ratings file, on the command line, in Python or in its sidecar, which alone is
    held to the limits of the fields; all of them may be left out.

    `rubric` is the only one asked for: a name in the file, a shipped rubric, or a rubric's file,
    which no sidecar names.
    `categories` are all permitted labels in order, `affirmative` those that count as yes, `sides`
    the one that favours side a and the one that favours side b; `thresholds` are by grader.
    `format` names a reader of `exchange.readers` where its content does not show which.
    `columns` are its names of our columns, `{ours: theirs}`.
    With `normalise` labels and names that look alike are taken for one, with False for different
    ones; None asks.
    Units that are `independent` are so even where a column names items that several of them share.
    With `several` each label is a set of options.
    `wide` is the pattern of the names of columns that a rater has for each rubric, and `sheet` the
    one of a workbook that is read.
    """

    rubric: Annotated[str, Field(pattern=r"^[\w-]{0,100}$")] | None = None
    categories: tuple[Line, ...] = ()
    level: Level | None = None
    affirmative: tuple[Line, ...] | None = None
    sides: tuple[Line, ...] | None = None
    thresholds: dict[Line, Share] = field(default_factory=dict)
    columns: dict[Line, Line] = field(default_factory=dict)
    format: Line | None = None
    normalise: bool | None = None
    independent: bool = False
    several: bool = False
    wide: Line = ""
    sheet: Line = ""


@dataclass(frozen=True, kw_only=True)
class ScaleOptions(FileOptions):
    """Options declared for a ratings file and its analysis.

    `kinds` are those of its raters; `inferred` ones were not declared for each rater by name.
    `units` is a file or a table of the units' columns; `settings` are those of the analysis that
    replace the study's or the sidecar's own, by name.
    Messages name these as options of the command line, or as they are called `in_python`, and a
    table that is no file by its `name`.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    units: Path | Table | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    in_python: bool = False
    inferred: bool = False
    name: str = "ratings"

    @property
    def missing(self) -> tuple[str, ...]:
        """The labels that say that there is none."""
        return tuple(self.settings.get("missing", ()))

    def spelled(self, name: str, *keys: str) -> str:
        """Return an option with its keys as the user writes it, in Python or on the command line.

        >>> ScaleOptions().spelled("categories", "1", "2"), ScaleOptions().spelled("missing", "-1")
        ('--categories 1,2', '--missing=-1')
        >>> ScaleOptions().spelled("wide", "{rater}_{rubric}"), ScaleOptions().spelled("several")
        ("--wide '{rater}_{rubric}'", '--several')
        >>> ScaleOptions(in_python=True).spelled("categories", "1", "2")
        "categories=['1', '2']"
        >>> ScaleOptions(in_python=True).spelled("no-normalise")
        'normalise=False'
        """
        if not self.in_python:
            mark = "=" if keys and keys[0].startswith("-") else " "
            return f"--{name}{mark}{shlex.quote(','.join(keys))}" if keys else f"--{name}"
        if (flag := name.removeprefix("no-")) in ("several", "independent", "normalise"):
            return f"{flag}={flag == name}"
        if name == "wide":
            return f'wide="{keys[0]}"'
        if name == "level":
            return f"level={keys[0]!r}" if keys else "level="
        return f"{name}={list(keys) or ''}"


@dataclass(frozen=True, kw_only=True)
class ItemOptions:
    """Options of an items file, by command line or in Python: roles of columns, the question."""

    show: Sequence[str] = ()
    subject: Sequence[str] = ()
    cluster: str = ""
    judge: str = ""
    missing: Sequence[str] = ()
    each_turn: bool = False
    rubric: Sequence[str] = ()
    question: str = ""
    options: Sequence[str] = ()
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """What options mean, by their names."""
    scale: str = ""
    several: bool = False
    level: Literal["nominal", "ordinal"] | None = None
    steps: int | None = None
    sheet: str = ""
    in_python: bool = False
    """Messages name keywords in place of options of the command line."""

    @property
    def of_one(self) -> bool:
        """True where what is asked is of one response; without it, it may be of two."""
        return bool(self.rubric or self.options or self.scale)

    def refuse(self, names: Sequence[str], because: str) -> None:
        """Raise InputError where an option is given that would change nothing here."""
        for name in names:
            if getattr(self, name) not in ("", (), [], False, None):
                raise InputError(f"--{name.replace('_', '-')} {because}")


@dataclass(frozen=True, kw_only=True)
class LabelOptions(ItemOptions):
    """Options of items to label, with how many of them are sampled for how many raters. `given`
    are the options that a user named, in order.
    """

    sample: int | None = None
    stratify: Sequence[str] = ()
    seed: int = 1
    raters: int | None = None
    given: Sequence[str] = ()


SUFFIX = ".scales.toml"
MOST_BYTES = 50_000_000
_MOST_RESAMPLES = 100_000
"""A file from elsewhere must not keep a machine busy for days."""


class TunedThreshold(Section):
    """A tuned threshold with what it was tuned on (`analysis.labels.scale.Tuning`)."""

    grader: Line
    objective: Line
    reference: Line
    instead_of: Share
    clusters: tuple[Line, ...]


class WithheldUnits(Section):
    """Units on which a grader's labels do not count (`analysis.labels.scale.Scale.withheld`)."""

    grader: Line
    units: tuple[Line, ...]


class GraderUsage(Section):
    """Work and cost of one grader, as far as known (`analysis.raters`)."""

    attempts: int = Field(ge=0)
    units: int = Field(ge=0)
    labelled: int = Field(ge=0)
    unscored: int = Field(ge=0)
    low_mass: int = Field(default=0, ge=0)
    without_probabilities: int = Field(default=0, ge=0)
    tokens_input: Amount | None = None
    tokens_output: Amount | None = None
    cost_usd: Amount | None = None


class ScaleSection(Section):
    """A rubric: its scale (`analysis.labels.scale.Scale`), and the facts about its ratings."""

    title: Line = ""
    categories: tuple[Line, ...] = Field(min_length=1)
    names: dict[Line, Line] = Field(default_factory=dict)
    level: Level | None = None
    several: bool = False
    affirmative: tuple[Line, ...] = ()
    threshold: Share = 0.5
    unit: Literal["pair", "comparison", "response", ""] = ""
    favours: dict[Line, Literal["a", "b"]] = Field(default_factory=dict)
    unclear: tuple[Line, ...] = ()
    collapse: dict[Line, tuple[Line, ...]] = Field(default_factory=dict)
    variant_of: Line = ""
    thresholds: dict[Line, Share] = Field(default_factory=dict)
    tuned: tuple[TunedThreshold, ...] = ()
    withheld: tuple[WithheldUnits, ...] = ()
    hashes: tuple[Line, ...] | None = None
    look: int = Field(default=1, ge=1)
    usage: dict[Line, GraderUsage] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _coarser(self) -> Self:
        from evenhand.rubrics.model import coarser_faults

        for fault in coarser_faults(self.categories, self.unclear, self.collapse.values()):
            raise ValueError(fault)
        return self

    @model_validator(mode="after")
    def _tuned_ones_are_thresholds(self) -> Self:
        for tuning in self.tuned:
            if tuning.grader not in self.thresholds:
                raise ValueError(f"tuned names {tuning.grader!r}, which has none of the thresholds")
        return self

    @classmethod
    def of(cls, scale: Scale, **more: Any) -> Self:
        """Return the section of a scale, with what `more` is known of the rubric."""
        named = (key for key in scale.categories if key in scale.affirmative)
        facts = {"categories": scale.categories, "level": scale.level, "unit": scale.unit}
        return cls(**{**facts, "threshold": scale.threshold, "affirmative": tuple(named), **more})

    def scale(self, name: str) -> Scale:
        """The scale as the analysis takes it."""
        same = (
            "categories",
            "threshold",
            "thresholds",
            "unit",
            "favours",
            "collapse",
            "variant_of",
        )
        return Scale(
            name=name,
            level=self.level or "nominal",
            affirmative=frozenset(self.affirmative),
            tunings={
                tuned.grader: Tuning(
                    frozenset(tuned.clusters), tuned.objective, tuned.reference, tuned.instead_of
                )
                for tuned in self.tuned
            },
            unclear=frozenset(self.unclear),
            withheld={part.grader: frozenset(part.units) for part in self.withheld},
            **{field: getattr(self, field) for field in same},
        )


@dataclass(frozen=True, kw_only=True)
class FileSection(FileOptions):
    """The section `[file]`: what the file itself means, and who its raters are."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    human: tuple[Line, ...] = ()
    model: tuple[Line, ...] = ()

    def under(self, options: ScaleOptions) -> ScaleOptions:
        """Return the options, with these where nothing else is given."""
        kinds = dict.fromkeys(self.human, "human") | dict.fromkeys(self.model, "model")
        values: dict[str, Any] = {opt.name: getattr(self, opt.name) for opt in fields(FileOptions)}
        given = {name: value for name, value in (values | {"kinds": kinds}).items() if value}
        given |= {} if self.normalise is None else {"normalise": self.normalise}
        usual = ScaleOptions()
        is_open = [name for name in given if getattr(options, name) == getattr(usual, name)]
        return replace(options, **{name: given[name] for name in is_open})


class WordingTrial(Section):
    """A trial of a wording among people (`analysis.request.TriedWording`)."""

    of: Line
    old: tuple[Line, ...]
    new: tuple[Line, ...]
    raters: int = Field(gt=0)


class Sidecar(Section):
    """The whole file; without any of it the labels are analysed by themselves. `units` and
    `attacked` (the answers of the injection audit) name files next to this one, `strata` the
    columns that the sample was stratified by.
    """

    format: Literal[1] = 1
    study: Line = ""
    synthetic: bool = False
    seed: int = Field(default=SEED, ge=0)
    units: Line = ""
    attacked: Line = ""
    strata: tuple[Line, ...] = ()
    excluded: dict[Line, Line] = Field(default_factory=dict)
    file: FileSection = FileSection()
    analysis: AnalysisSettings = AnalysisSettings()
    decision: DecisionSettings = DecisionSettings()
    scales: dict[Line, ScaleSection] = Field(default_factory=dict)
    rewordings: dict[Line, WordingTrial] = Field(default_factory=dict)
    names: DisplayNames = Field(default_factory=dict)

    @field_validator("units", "attacked")
    @classmethod
    def _beside(cls, name: str) -> str:
        if name and (Path(name).name != name or name == ".." or "\\" in name):
            raise ValueError(f"{name!r} is not the name of a file beside this one")
        return name

    @field_validator("analysis")
    @classmethod
    def _in_time(cls, settings: AnalysisSettings) -> AnalysisSettings:
        if settings.resamples > _MOST_RESAMPLES:
            raise ValueError(f"resamples is {settings.resamples}; at most {_MOST_RESAMPLES} here")
        return settings

    @model_validator(mode="after")
    def _wordings(self) -> Self:
        for name, scale in self.scales.items():
            if scale.variant_of and scale.variant_of not in self.scales:
                raise ValueError(
                    f"scales.{name} is a variant of {scale.variant_of!r}, which has no scale here"
                )
        return self

    def known_scales(self) -> dict[str, Scale]:
        """Return every scale by its rubric. Raises InputError for an inconsistent one."""
        return {name: scale.scale(name) for name, scale in self.scales.items()}

    def facts(
        self, raters: pd.DataFrame | None, source: str, attacked: pd.DataFrame | None = None
    ) -> StudyFacts:
        """Return the facts about the ratings, which messages call `source`."""
        import pandas as pd

        scales = self.scales.items()
        hashes = {name: scale.hashes for name, scale in scales if scale.hashes is not None}
        used = [
            {"rubric": name, "rater_id": grader, **usage.model_dump()}
            for name, scale in scales
            for grader, usage in scale.usage.items()
        ]
        numbers = dict.fromkeys(["tokens_input", "tokens_output", "cost_usd"], float)
        usage = pd.DataFrame(used).astype(numbers) if used else None
        return StudyFacts(
            rubric_hashes=hashes or None,
            excluded=self.excluded,
            raters=raters,
            usage=usage,
            prices={} if usage is None else prices_of(usage),
            looks={name: section.look for name, section in self.scales.items()},
            attacked=attacked,
            rewordings={
                name: TriedWording(wording.of, wording.old, wording.new, wording.raters)
                for name, wording in self.rewordings.items()
            },
            source=source,
            strata=self.strata,
        )


def prices_of(usage: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the cost of 1,000 units, by rubric and grader: all attempts over the units graded."""
    return {
        (str(row["rubric"]), str(row["rater_id"])): 1000 * row["cost_usd"] / row["units"]
        for row in usage.to_dict("records")
        if row["units"] and row["cost_usd"] == row["cost_usd"]
    }


def sidecar_path(ratings: Path) -> Path:
    """Return the path of a ratings file's sidecar.

    >>> sidecar_path(Path("out/ratings.csv")).as_posix()
    'out/ratings.scales.toml'
    """
    return ratings.parent / f"{ratings.stem}{SUFFIX}"


def read_sidecar(ratings: Path) -> Sidecar | None:
    """The sidecar of a ratings file, or None where it has none. Raises InputError, one sentence,
    where it is damaged.
    """
    path = sidecar_path(ratings)
    return _checked(path, lambda: _toml(path)) if path.exists() else None


def _checked(path: Path, read: Callable[[], dict[str, Any]]) -> Sidecar:
    try:
        sidecar = Sidecar.model_validate(read())
        sidecar.known_scales()
    except (ValidationError, InputError) as error:
        fault = fault_of(error) if isinstance(error, ValidationError) else str(error)
        raise InputError(f"{path.name}: {printable(fault, 500)}") from None
    return sidecar


def write_settings(ratings: Path, options: ScaleOptions) -> Path:
    """Write what the options say of a ratings file, of its units and of its analysis into its
    sidecar, which keeps the rest. Raises InputError, and writes nothing, where the units are
    elsewhere or the rubric is a file.
    """
    import tomlkit

    from evenhand.study.tables.files import atomic_write

    path = sidecar_path(ratings)
    document = tomlkit.parse(path.read_text("utf-8-sig") if path.exists() else "")
    if isinstance(options.units, Path):
        if options.units.resolve().parent != ratings.resolve().parent:
            raise InputError(written("reading.units_elsewhere", units=options.units))
        document["units"] = options.units.name
    if (options.rubric or "").endswith(".toml"):
        raise InputError(
            f"{options.rubric} is a file; leave out --write-settings and give --rubric to each "
            "command, or name a rubric that comes with evenhand"
        )
    if (settings := dict(options.settings)).get("seed") is not None:
        document["seed"] = settings.pop("seed")
    given: dict[str, dict[str, Any]] = {"file": {}}
    for name in (option.name for option in fields(FileSection)):
        raters = [rater for rater, kind in options.kinds.items() if kind == name]
        if value := raters or getattr(options, name, None):
            given["file"][name] = value
    if options.normalise is False:
        given["file"]["normalise"] = False
    for section, of in (("analysis", AnalysisSettings), ("decision", DecisionSettings)):
        given[section] = {name: settings[name] for name in settings if name in of.model_fields}
    for section, values in given.items():
        if values:
            document.setdefault(section, tomlkit.table()).update(values)
    _checked(path, document.unwrap)
    atomic_write(path, tomlkit.dumps(document).encode())
    return path


def named_file(ratings: Path, what: str, name: str, advice: str) -> Path | None:
    """Return the path of a file that a sidecar names, or None. Raises InputError if missing."""
    path = ratings.with_name(name) if name else None
    if path and not path.is_file():
        file = sidecar_path(ratings).name
        raise InputError(f"{file} names the {what} {path.name}, which is not next to it; {advice}")
    return path


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError("this is a folder; remove it or put the file in its place")
    if path.stat().st_size > MOST_BYTES:
        raise InputError(
            f"the file has more than {MOST_BYTES // 1_000_000} MB; export the study again"
        )
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text; save it as UTF-8") from None
    except (ValueError, RecursionError) as error:  # a number or a nesting beyond all bounds, too
        raise InputError(f"the file is not valid TOML ({error}); export the study again") from None


def printable(fault: str, most: int = 300) -> str:
    """Return a file's fault without control characters, which could steer the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in fault[:most])
