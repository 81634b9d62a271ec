"""Options that a user declares for a file of ratings or items, on the command line or in Python,
and the sidecar: the file next to a ratings file that stores them.

The sidecar `NAME.scales.toml`, next to a study's exported ratings `NAME.csv`, holds all that the
study's analysis uses besides its two tables, so that `evenhand check` on the files gives the
results of `evenhand report`: scales, thresholds and the labels they were tuned on, settings other
than the defaults, exclusions, prices, interim analyses. It may also be written by hand; only a
scale's `categories` are required. `evenhand.reporting.exporting` writes it for a study.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from evenhand.analysis import Scale, StudyFacts
from evenhand.analysis.labels.scale import Level, Tuning
from evenhand.analysis.request import TriedWording
from evenhand.errors import InputError
from evenhand.lazy import pd, tomlkit
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings
from evenhand.study.settings.sections import DisplayNames, Section, Share, fault_of
from evenhand.study.tables.files import atomic_write
from evenhand.texts import written

Line = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""A text without line breaks and other control characters: it is printed on a terminal."""
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]  # a number of tokens, or of US dollars
EVERYBODY = "*"  # all raters that are not named, as in `--human '*'`


@runtime_checkable
class ArrowTable(Protocol):
    """A table of any library with the Arrow PyCapsule interface: polars, pyarrow, DuckDB..."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Table: TypeAlias = (
    "pd.DataFrame | ArrowTable | Mapping[Any, Collection[object]] | Sequence[Mapping[Any, object]]"
)
"""A table of a library, columns by their names, or a list of records."""


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options of a ratings file, on the command line, in Python or in its sidecar; all optional.
    The limits of the fields apply to sidecars only.

    `rubric` selects a rubric: a name in the file, a shipped rubric, or (not in a sidecar) a
    rubric's file. `categories` are all permitted labels in order, `affirmative` those that count as
    yes, `sides` the one that favours side a and the one that favours side b; `thresholds` are by
    grader. `format` names a reader of `exchange.readers` if the content does not show it. `columns`
    are the file's names of our columns, `{ours: theirs}`. With `normalise` labels and names that
    look alike are the same, with False different; with None they raise an error. `independent`
    units are clusters even if a column identifies items that they share. With `several` each label
    is a set of options. `wide` is the pattern of names of columns, one for each rater and rubric,
    and `sheet` the name of one in a workbook.
    """

    rubric: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f./\\]{0,100}$")] | None = None
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
    """Options of a ratings file and its analysis.

    `kinds` has "human" or "model" by rater id; they are `inferred` if not each was declared by the
    rater's name. `units` is a file or a table with columns on the units; `settings`, by name,
    override the study's or the sidecar's. Messages write options as on the command line, or as
    keywords if `in_python`, and call a table `name`.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    units: Path | Table | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    in_python: bool = False
    inferred: bool = False
    name: str = "ratings"

    @property
    def missing(self) -> tuple[str, ...]:
        """The codes for "no label"."""
        return tuple(self.settings.get("missing", ()))

    def of_all_rubrics(self) -> ScaleOptions:
        """Return the options without a rubric and its scale, which others do not have."""
        scale: dict[str, Any] = dict.fromkeys(("rubric", "level", "affirmative", "sides"))
        return replace(self, **scale, categories=(), thresholds={})

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
            mark = "=" if keys and keys[0].startswith("-") else " "  # "-1" is not another option
            values = (  # as in a line of a CSV file
                '"' + key.replace('"', '""') + '"' if "," in key or key.startswith('"') else key
                for key in keys
            )
            return f"--{name}{mark}{shlex.quote(','.join(values))}" if keys else f"--{name}"
        if (flag := name.removeprefix("no-")) in ("several", "independent", "normalise"):
            return f"{flag}={flag == name}"
        if name == "wide":
            return f'wide="{keys[0]}"'
        if name == "level":
            return f"level={keys[0]!r}" if keys else "level="
        return f"{name}={list(keys) or ''}"


@dataclass(frozen=True, kw_only=True)
class ItemOptions:
    """Options of an items file: the roles of its columns, and the question (`evenhand.label`)."""

    show: Sequence[str] = ()  # columns that annotators read
    subject: Sequence[str] = ()  # column of the model under test, or two for two responses
    cluster: str = ""  # column of rows that belong together
    judge: str = ""  # column of a grader's labels, which annotators never see
    missing: Sequence[str] = ()  # the grader's codes for "no label"
    each_turn: bool = False  # each turn of a conversation is an item
    rubric: Sequence[str] = ()
    question: str = ""
    options: Sequence[str] = ()
    descriptions: Mapping[str, str] = field(default_factory=dict)  # by option
    scale: str = ""  # a range of labels in place of options, such as 1-5
    several: bool = False  # any number of the options may apply
    level: Literal["nominal", "ordinal"] | None = None
    steps: int | None = None  # number of options from one of two responses to the other
    sheet: str = ""
    in_python: bool = False  # messages name keywords in place of options of the command line

    @property
    def is_about_one(self) -> bool:
        """True if labels or a rubric are given; on one response, but for rubrics on two."""
        return bool(self.rubric or self.options or self.scale)

    def refuse(self, names: Sequence[str], reason: str) -> None:
        """Raise InputError if one of these options is set; the `reason` completes the sentence."""
        for name in names:
            if getattr(self, name) not in ("", (), [], False, None):
                raise InputError(f"--{name.replace('_', '-')} {reason}")


@dataclass(frozen=True, kw_only=True)
class LabelOptions(ItemOptions):
    """Options of items to label and of their sample; `given_options` are those given, as typed."""

    sample: int | None = None
    stratify: Sequence[str] = ()
    seed: int = 1
    raters: int | None = None
    given_options: Sequence[str] = ()


SUFFIX = ".scales.toml"  # of a sidecar's name
# Limits of sidecars and baselines: one from elsewhere must not keep a machine busy for days.
MOST_BYTES = 50_000_000
_MOST_RESAMPLES = 100_000


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
    """The work and cost of one grader on one rubric (see `study.store.store.grade_totals`)."""

    attempts: int = Field(ge=0)
    units: int = Field(ge=0)
    labelled: int = Field(ge=0)
    unscored: int = Field(ge=0)
    low_mass: int = Field(default=0, ge=0)
    without_probabilities: int = Field(default=0, ge=0)
    tokens_input: Amount | None = None
    tokens_output: Amount | None = None
    cost_usd: Amount | None = None
    priced_units: int = Field(default=0, ge=0)  # those whose cost is known; 0: all, or none


class ScaleSection(Section):
    """A rubric: its scale (`analysis.labels.scale`), and facts about its ratings (`StudyFacts`)."""

    title: Line = ""
    categories: tuple[Line, ...] = Field(min_length=1)
    names: dict[Line, Line] = Field(default_factory=dict)
    level: Level | None = None
    several: bool = False
    affirmative: tuple[Line, ...] = ()
    threshold: Share = 0.5
    number: bool = False  # labels are any numbers
    unit: Literal["pair", "comparison", "response", ""] = ""
    favours: dict[Line, Literal["a", "b"]] = Field(default_factory=dict)
    unclear: tuple[Line, ...] = ()
    collapse: dict[Line, tuple[Line, ...]] = Field(default_factory=dict)
    variant_of: Line = ""
    thresholds: dict[Line, Share] = Field(default_factory=dict)
    tuned: tuple[TunedThreshold, ...] = ()
    withheld: tuple[WithheldUnits, ...] = ()
    hashes: tuple[Line, ...] | None = None  # of the rubric's accepted texts
    look: int = Field(default=1, ge=1)  # the number of the interim analysis
    usage: dict[Line, GraderUsage] = Field(default_factory=dict)  # by grader

    @model_validator(mode="after")
    def _check_collapse(self) -> Self:
        from evenhand.rubrics.model import coarser_faults

        for fault in coarser_faults(self.categories, self.unclear, self.collapse.values()):
            raise ValueError(fault)
        return self

    @model_validator(mode="after")
    def _check_tuned_graders(self) -> Self:
        for tuning in self.tuned:
            if tuning.grader not in self.thresholds:
                raise ValueError(f"tuned names {tuning.grader!r}, which has none of the thresholds")
        return self

    @classmethod
    def of(cls, scale: Scale, **facts: Any) -> Self:
        """Return the section of a scale, with its categories, level, unit, threshold and
        affirmative categories. `facts` are values of other fields, or replace these.
        """
        affirmative = tuple(key for key in scale.categories if key in scale.affirmative)
        same_fields = ("categories", "level", "number", "unit", "threshold")
        values = {name: getattr(scale, name) for name in same_fields}
        return cls(**{**values, "affirmative": affirmative, **facts})

    def scale(self, name: str) -> Scale:
        """Return the scale for the analysis. Raises InputError if it is inconsistent."""
        same_fields = "categories number threshold thresholds unit favours collapse variant_of"
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
            withheld={entry.grader: frozenset(entry.units) for entry in self.withheld},
            **{name: getattr(self, name) for name in same_fields.split()},
        )


@dataclass(frozen=True, kw_only=True)
class FileSection(FileOptions):
    """The section `[file]`: options of the file, and its raters by kind."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    human: tuple[Line, ...] = ()
    model: tuple[Line, ...] = ()

    def completing(self, options: ScaleOptions) -> ScaleOptions:
        """Return the user's options, with those that have their default taken from the section."""
        names, default = [option.name for option in fields(FileOptions)], FileOptions()
        unset = [name for name in names if getattr(options, name) == getattr(default, name)]
        values: dict[str, Any] = {name: getattr(self, name) for name in unset}
        if options.settings.get("cluster"):
            values["independent"] = options.independent
        stored = dict.fromkeys(self.human, "human") | dict.fromkeys(self.model, "model")
        kinds = {key: kind for key, kind in stored.items() if kind not in options.kinds.values()}
        settings = {**({"cluster": "unit"} if options.independent else {}), **options.settings}
        return replace(options, kinds={**kinds, **options.kinds}, settings=settings, **values)


class WordingTrial(Section):
    """A trial of another wording of a rubric on annotators (`analysis.request.TriedWording`)."""

    of: Line  # the rubric with the old wording
    old: tuple[Line, ...]  # ids of the units labelled under the old wording
    new: tuple[Line, ...]  # and under the new one
    raters: int = Field(gt=0)


class Sidecar(Section):
    """A whole sidecar; every field may be left out. `units` and `attacked` (the answers of the
    injection audit) name files next to it, `strata` the columns that the sample was stratified by.
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
    def _check_file_name(cls, name: str) -> str:
        """Check that a name has no folder, so that the file is next to the sidecar."""
        if name and (Path(name).name != name or name == ".." or "\\" in name):
            raise ValueError(f"{name!r} is not the name of a file beside this one")
        return name

    @field_validator("analysis")
    @classmethod
    def _check_resamples(cls, settings: AnalysisSettings) -> AnalysisSettings:
        if settings.resamples > _MOST_RESAMPLES:
            raise ValueError(f"resamples is {settings.resamples}; at most {_MOST_RESAMPLES} here")
        return settings

    @model_validator(mode="after")
    def _check_variants(self) -> Self:
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
        """Return the sidecar's facts about the ratings, which messages call `source`."""
        scales = self.scales.items()
        hashes = {name: scale.hashes for name, scale in scales if scale.hashes is not None}
        usage_rows = [
            {"rubric": name, "rater_id": grader, **usage.model_dump()}
            for name, scale in scales
            for grader, usage in scale.usage.items()
        ]
        dtypes = dict.fromkeys(["tokens_input", "tokens_output", "cost_usd"], float)  # None is NaN
        usage = pd.DataFrame(usage_rows).astype(dtypes) if usage_rows else None
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
    """Return the cost of 1,000 units in US dollars, with failed attempts, by rubric and grader."""
    prices: dict[tuple[str, str], float] = {}
    for row in usage.to_dict("records"):
        n_units = row["priced_units"] or row["units"]  # those whose cost is known
        if n_units and row["cost_usd"] == row["cost_usd"]:  # not NaN
            prices[str(row["rubric"]), str(row["rater_id"])] = 1000 * row["cost_usd"] / n_units
    return prices


def sidecar_path(ratings: Path) -> Path:
    """Return the path of a ratings file's sidecar.

    >>> sidecar_path(Path("out/ratings.csv")).as_posix()
    'out/ratings.scales.toml'
    """
    return ratings.parent / f"{ratings.stem}{SUFFIX}"


def read_sidecar(ratings: Path) -> Sidecar | None:
    """Read the sidecar of a ratings file, None without one. Raises InputError if it is invalid."""
    path = sidecar_path(ratings)
    return _validated(path, lambda: _read_toml(path)) if path.exists() else None


def _validated(path: Path, read: Callable[[], dict[str, Any]]) -> Sidecar:
    """Return the sidecar whose content `read` returns. Raises InputError naming the file."""
    try:
        sidecar = Sidecar.model_validate(read())
        sidecar.known_scales()
    except (ValidationError, InputError) as error:
        fault = fault_of(error) if isinstance(error, ValidationError) else str(error)
        raise InputError(f"{path.name}: {printable(fault, 500)}") from None
    return sidecar


def write_settings(ratings: Path, options: ScaleOptions) -> Path:
    """Write the options of a ratings file, its units and its analysis into its sidecar, which keeps
    the rest; return its path. Raises InputError, and writes nothing, if units are in another folder
    or the rubric is a file.
    """
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
    sections: dict[str, dict[str, Any]] = {"file": {}}
    for name in (option.name for option in fields(FileSection)):
        # The fields `human` and `model` are lists of raters; the other fields are options.
        raters = [rater for rater, kind in options.kinds.items() if kind == name]
        if value := raters or getattr(options, name, None):
            sections["file"][name] = value
    if options.normalise is False:
        sections["file"]["normalise"] = False
    for section, model in (("analysis", AnalysisSettings), ("decision", DecisionSettings)):
        sections[section] = {key: settings[key] for key in settings if key in model.model_fields}
    if options.independent:  # what is new replaces what excludes it
        document.get("analysis", {}).pop("cluster", None)
    if settings.get("cluster"):
        document.get("file", {}).pop("independent", None)
    for section, values in sections.items():
        if values:
            document.setdefault(section, tomlkit.table()).update(values)
    _validated(path, document.unwrap)
    atomic_write(path, tomlkit.dumps(document).encode())
    return path


def named_file(ratings: Path, kind: str, name: str, advice: str) -> Path | None:
    """Return the path of a file that a sidecar names, None for "". Raises InputError if missing."""
    path = ratings.with_name(name) if name else None
    if path and not path.is_file():
        file = sidecar_path(ratings).name
        raise InputError(f"{file} names the {kind} {path.name}, which is not next to it; {advice}")
    return path


def _read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises InputError, without the file's name, if that is not possible."""
    if not path.is_file():
        raise InputError("this is a folder; remove it or put the file in its place")
    if path.stat().st_size > MOST_BYTES:
        limit = MOST_BYTES // 1_000_000
        raise InputError(f"the file has more than {limit} MB; export the study again")
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text; save it as UTF-8") from None
    except (ValueError, RecursionError) as error:  # also for a number or a nesting beyond limits
        raise InputError(f"the file is not valid TOML ({error}); export the study again") from None


def printable(text: str, most: int = 300) -> str:
    """Return a text of a file for the terminal: at most `most` characters, `?` for control ones."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:most])
