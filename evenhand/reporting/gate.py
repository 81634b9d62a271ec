"""Check a grader in CI against a rule, and against its saved baseline.

`gate` and `compare`, below, give a list of checks, each met, not met or inconclusive, which can be
written as sentences, JSON, JUnit XML, and Markdown for a job's summary.

A rule is comma-separated conditions, of which `verdict` may be one. A baseline is a JSON file of
annotators' labels and a grader's grades on the same units, which are rated items (`Baseline`). It
holds no prompts, responses or names of annotators, so that it may be kept in a repository with the
code that it guards. Later grades are compared with it on each rubric: the result, a `Drift`, is
that the grader is unchanged or has changed, or is inconclusive.
"""

from __future__ import annotations

import io
import json
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from xml.etree import ElementTree

import pandas as pd
from pydantic import Field, ValidationError

from evenhand import __version__
from evenhand.analysis import Analysis, Scale, Verdict
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.injection import STATISTICS as AUDIT_STATISTICS
from evenhand.analysis.labels.encoding import combine_readings
from evenhand.analysis.labels.matrix import UnitFacts
from evenhand.analysis.results import ResultRow
from evenhand.analysis.statistics import find_entry, shown_apart
from evenhand.analysis.verdicts import versions
from evenhand.errors import InputError
from evenhand.reporting.analysing import AnalysisAndContext, OnStage, analyse_source
from evenhand.reporting.load import Source, id_in, is_file, load
from evenhand.reporting.panel import Line as PanelLine
from evenhand.reporting.panel import Printable
from evenhand.reporting.ratings_file import declared
from evenhand.rubrics import load_rubric
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, with_changes
from evenhand.study.settings.sections import Section, fault_of
from evenhand.study.tables.columns import INCLUSION, listed
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.ratings import LONG_PLACEBO, PLACEBO, RATINGS_COLUMNS, validate_ratings
from evenhand.texts import visible, visible_in, written

Outcome = Literal["met", "not_met", "inconclusive"]
"""The outcome of a check; below are the outcomes that drifts and verdicts stand for."""
_WORST_FIRST: tuple[Outcome, ...] = ("not_met", "inconclusive", "met")
_DRIFT_OUTCOME: dict[str, Outcome] = {"unchanged": "met", "changed": "not_met"}  # else inconclusive
VERDICT_OUTCOMES: dict[str, Outcome] = {
    "can_replace": "met",
    "can_replace_at_threshold": "met",
    "agrees_with_reference": "met",
    "only_with_correction": "not_met",
    "do_not_use": "not_met",
    "disagrees_with_reference": "not_met",
    "inconclusive": "inconclusive",
}
EXIT_CODES: dict[Outcome, int] = {"met": 0, "not_met": 1, "inconclusive": 3}
SCHEMA = 1  # version of the JSON; adding a key does not change it


@dataclass(frozen=True)
class Check:
    """A check: its name, its outcome in a word and in a sentence, and the `figures` behind it."""

    name: str
    outcome: Outcome
    sentence: str
    figures: dict[str, float | int | str | None] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The outcome, then the sentence."""
        return f"{self.outcome.replace('_', ' ').ljust(len('not met'))}  {self.sentence}"


@dataclass(frozen=True, repr=False)
class Gate(Printable):
    """The checks on one `grader` (a rater id), in a condition True if all are met. `verdict` is the
    one on the grader, "" if the labels were not analysed; `weaker` is a warning if the rule is met
    although this verdict is no pass, else "". `rows` are all figures, `notes` list assumptions.
    """

    source: str
    grader: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    verdict: str = ""
    weaker: str = ""
    rows: Sequence[ResultRow] = field(default=(), compare=False)
    display_name: str = ""

    def __bool__(self) -> bool:
        return self.passed is True

    @property
    def passed(self) -> bool | None:
        """True if all checks are met, False if one is not met, None if inconclusive."""
        return {"met": True, "not_met": False, "inconclusive": None}[self.outcome]

    @property
    def exit_code(self) -> int:
        """The exit code of `evenhand gate`: 0 met, 1 not met, 3 inconclusive."""
        return EXIT_CODES[self.outcome]

    @property
    def sentence(self) -> str:
        """The sentences of all checks."""
        return " ".join(check.sentence for check in self.checks)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each check: its name, outcome and sentence, and the figures behind it."""
        table = pd.DataFrame({**vars(check), **check.figures} for check in self.checks)
        return table.rename(columns={"name": "check"}).drop(columns="figures")

    @property
    def results(self) -> pd.DataFrame:
        """All figures of the analysis or the comparison, defined in docs/statistics.md."""
        return Analysis(list(self.rows)).results

    @property
    def lines(self) -> list[PanelLine]:
        """The checks with their outcomes, and `weaker` if it is not empty."""
        return [*(check.line for check in self.checks), *([self.weaker] if self.weaker else [])]

    @property
    def outcome(self) -> Outcome:
        """The worst outcome: not_met, then inconclusive, then met."""
        outcomes = {check.outcome for check in self.checks}
        return next(outcome for outcome in _WORST_FIRST if outcome in outcomes)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as printed by `--json`."""
        return {
            "schema": SCHEMA,
            "outcome": self.outcome,
            "source": self.source,
            "grader": self.grader,
            "verdict": self.verdict or None,
            "weaker_than_verdict": bool(self.weaker),
            "checks": [dict(vars(check)) for check in self.checks],
            "notes": self.all_notes,
        }

    @property
    def all_notes(self) -> list[str]:
        """The notes, and `weaker` if it is not empty."""
        return [*self.notes, *([self.weaker] if self.weaker else [])]


@dataclass(frozen=True, repr=False)
class Comparison(Gate):
    """A comparison of a grader with its baseline, or of two versions of it."""

    @property
    def changed(self) -> bool | None:
        """False if it is unchanged, True if it has changed, None if inconclusive."""
        return None if self.passed is None else not self.passed

    @property
    def lines(self) -> list[PanelLine]:
        """A sentence for each rubric."""
        return [check.sentence for check in self.checks]


# ---- a rule -------------------------------------------------------------------------------------

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq,
}  # fmt: skip
_CLAUSE = re.compile(  # such as kappa|binary.low > 0.5, or STATISTIC@LEVEL.high <= 1
    r"(?P<statistic>[a-z][a-z0-9_]*)"
    r"(?:@(?P<level>[^\s<>=|]+?))?"
    r"(?P<binary>\|binary)?"
    r"(?:\.(?P<part>estimate|low|high))?"
    r"\s*(?P<operator>>=|<=|==|>|<)"
    r"\s*(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
)
_GROUPS = ("", "humans", "models", "all")  # values of `rater_b` that name no single rater
_MOST_LEVELS = 8  # the most levels of a statistic that an error lists
_NO_BINARY = "declare which labels count as yes with --affirmative, or in the rubric"
VERDICT = "verdict"
"""The condition that the grader can replace an annotator, or agrees with the reference."""


@dataclass(frozen=True)
class Clause:
    """A condition on a figure in results.csv: the `part` (estimate, low or high) of a statistic's
    row at a `level` (a category, a threshold or an attack; "" for none), for the `binary` label or
    for all categories, compared with a number.
    """

    statistic: str
    level: str
    binary: bool
    part: str
    operator: str
    number: float

    def __str__(self) -> str:
        """The condition as in a rule."""
        level, binary = f"@{self.level}" if self.level else "", "|binary" if self.binary else ""
        return f"{self.statistic}{level}{binary}.{self.part} {self.operator} {self.number:g}"


class Rule(NamedTuple):
    """A rule for `gate`: True if the verdict is one of its conditions, and the other conditions."""

    has_verdict: bool
    clauses: list[Clause]


@dataclass(frozen=True)
class CheckedClause:
    """A clause with the `value` of its figure in the results, NaN if undefined, for the reason in
    `note`. `statistic` is the full name of its statistic. `worst_of` is the number of attacks among
    which the figure is that of the worst, 0 if the clause is about a single row.
    """

    clause: Clause
    value: float
    note: str
    worst_of: int = 0
    statistic: str = ""

    @property
    def outcome(self) -> Outcome:
        """Met if the clause holds, inconclusive if its value is undefined, else not met."""
        if math.isnan(self.value):
            return "inconclusive"
        holds = _OPERATORS[self.clause.operator](self.value, self.clause.number)
        return "met" if holds else "not_met"

    @property
    def slack(self) -> float:
        """The distance by which the clause holds; negative if it does not."""
        difference = self.value - self.clause.number
        if self.clause.operator == "==":
            return -abs(difference)
        return difference if self.clause.operator in (">", ">=") else -difference

    @property
    def sentence(self) -> str:
        """The clause and its value."""
        clause, name = self.clause, self.clause.statistic
        if self.statistic not in ("", clause.statistic):
            name += f" ({self.statistic})"
        if clause.level:
            name += f" at {clause.level}"
        if self.worst_of:
            name += " " + written("gate.worst_of", attacks=self.worst_of)
        if clause.binary:
            name += ", binary label"
        value = f"{self.value:.6g}"
        if float(value) == clause.number != self.value:  # rounding must not hide the difference
            value = shown_apart(self.value, [clause.number], places=6)
        if self.outcome == "inconclusive":
            value = written("gate.undefined", why=self.note)
        return written("gate.outcome", what=name, value=value, **vars(clause))

    @property
    def check(self) -> Check:
        """The clause as a check of the gate."""
        value = None if math.isnan(self.value) else self.value
        figures = {"value": value, "required": self.clause.number, "note": self.note}
        return Check(str(self.clause), self.outcome, self.sentence, figures)


def parse_rule(text: str) -> Rule:
    """Parse a rule. Raises InputError naming the condition that is not valid.

    >>> has_verdict, clauses = parse_rule("verdict, coverage >= 0.98, kappa|binary.low > 0.5")
    >>> has_verdict, [str(clause) for clause in clauses]
    (True, ['coverage.estimate >= 0.98', 'kappa|binary.low > 0.5'])
    """
    conditions = [condition.strip() for condition in text.split(",")]
    clauses = []
    for condition in conditions:
        if condition == VERDICT:
            continue
        if not (match := _CLAUSE.fullmatch(condition)):
            raise InputError(
                f"--require: {condition!r} is not a valid condition; write verdict, or "
                "STATISTIC[.estimate|.low|.high] OP NUMBER, as in 'verdict, coverage >= 0.98'"
            )
        statistic, sign, number = match["statistic"], match["operator"], float(match["number"])
        level, part = match["level"] or "", match["part"] or "estimate"
        clauses.append(Clause(statistic, level, bool(match["binary"]), part, sign, number))
    return Rule(VERDICT in conditions, clauses)


def check_clauses(
    clauses: Sequence[Clause], results: pd.DataFrame, rubric: str, grader: str, weighted_kappa: str
) -> list[CheckedClause]:
    """Check every clause against the grader's rows of `results`: the comparison with annotators if
    there is one, else the row of the grader alone.

    A statistic that exists for the binary label only is found there without `|binary`. "kappa" in a
    clause means `weighted_kappa`, a statistic, if the rubric's categories are ordered. Raises
    InputError if the rubric has no such grader or no binary label, or the grader no such statistic.
    """
    rows = results[results["rubric"] == rubric]
    raters = set(rows.loc[rows["statistic"] == "coverage", "rater_b"]) - set(_GROUPS)
    if grader not in raters:
        names = ", ".join(sorted(raters))
        raise InputError(f"there is no grader {grader!r} here; the raters are {names}")
    return [_check_clause(clause, rows, grader, weighted_kappa) for clause in clauses]


def _check_clause(clause: Clause, rows: pd.DataFrame, grader: str, weighted: str) -> CheckedClause:
    """Find the clause's figure in the rows of a rubric, and check it (see `check_clauses`)."""
    statistic = _full_name(clause, rows, weighted_kappa=weighted)
    statistic_rows = rows[rows["statistic"] == statistic]
    is_audit = statistic.startswith("injection_")
    if is_audit and statistic not in AUDIT_STATISTICS:
        names = ", ".join(AUDIT_STATISTICS)
        raise InputError(written("gate.no_such_of_audit", statistic=statistic, named=names))
    if is_audit and not (statistic_rows["rater_a"] == grader).any():
        raise InputError(written("gate.not_audited", statistic=statistic, grader=grader))
    has_binary = (rows["subset"] == "all|binary").any()
    if statistic_rows.empty:
        hint = "results.csv has " + ", ".join(sorted(set(rows["statistic"])))
        if find_entry(statistic) and not has_binary:  # perhaps one of the binary label
            hint = f"if it is of the binary label, {_NO_BINARY}"
        raise InputError(f"--require: there is no statistic {statistic!r} here; {hint}")
    # The grader is second, after "humans", a reference or (in its coverage) "", or first and alone.
    first, second = statistic_rows["rater_a"], statistic_rows["rater_b"]
    is_second = (second == grader) & (first.isin(["humans", ""]) | statistic.endswith("_reference"))
    grader_rows = statistic_rows[is_second | ((first == grader) & (second == ""))]
    subsets = ["all|binary"] if clause.binary else ["all", "all|binary"]  # of all units
    for subset in subsets:
        is_match = (grader_rows["subset"] == subset) & (grader_rows["at"] == clause.level)
        matching = grader_rows[is_match].sort_values("rater_a", ascending=False)  # "humans" first
        if not matching.empty:
            row = matching.iloc[0]
            note = str(row["note"]) or "no interval"
            return CheckedClause(clause, float(row[clause.part]), note, statistic=statistic)
    is_any_attack = is_audit and not clause.level and not clause.binary
    if is_any_attack and (worst := _worst_attack(clause, grader_rows)):
        return worst
    if clause.binary and not has_binary:
        raise InputError(f"--require: there is no {statistic}|binary here; {_NO_BINARY}")
    on_binary = " on the binary label" if clause.binary else ""
    fault = f"--require: {grader!r} has no {statistic}{on_binary} here"
    levels = sorted(set(grader_rows.loc[grader_rows["subset"].isin(subsets), "at"]) - {""})
    if levels:
        listed_levels = ", ".join(levels[:_MOST_LEVELS])
        fault += f"; it is given at {listed_levels}: write {statistic}@{levels[0]}"
    raise InputError(fault)


def _worst_attack(clause: Clause, rows: pd.DataFrame) -> CheckedClause | None:
    """Check a clause against every attack; return the check that is met least, None for none."""
    checks = [
        CheckedClause(replace(clause, level=level), float(value), note or "no interval")
        for level, value, note in rows[["at", clause.part, "note"]].itertuples(index=False)
        if level not in ("", PLACEBO, LONG_PLACEBO)  # which are no attacks
    ]
    if not checks:
        return None
    worst = min(checks, key=lambda check: (_WORST_FIRST.index(check.outcome), check.slack))
    return replace(worst, worst_of=len(checks))


def _full_name(clause: Clause, rows: pd.DataFrame, weighted_kappa: str) -> str:
    """Return the full name of a clause's statistic: "tpr" and "tnr" are against the reference if
    one is declared, else against the majority; "kappa" is `weighted_kappa` if the rubric has it.
    """
    if clause.statistic in ("tpr", "tnr"):
        of_reference = f"{clause.statistic}_reference"
        is_declared = (rows["statistic"] == of_reference).any()
        return of_reference if is_declared else f"{clause.statistic}_majority"
    if clause.statistic != "kappa":
        return clause.statistic
    is_weighted = (rows["statistic"] == weighted_kappa) & (rows["subset"] == "all")
    return weighted_kappa if is_weighted.any() and not clause.binary else "cohen_kappa"


# ---- a baseline ---------------------------------------------------------------------------------

_OMITTED_COLUMNS = ("seconds", "rubric_hash", "created_at")
"""Columns of ratings that a baseline does not need."""
_SAVED_COLUMNS = tuple(column for column in RATINGS_COLUMNS if column not in _OMITTED_COLUMNS)
Table = Annotated[tuple[str, ...], Field(min_length=1, max_length=5_000_000)]
"""A table as lines of CSV with a header, so that a changed label changes one line of the file."""


class Baseline(Section):
    """A baseline file; `scales` are by rubric, with the grader's threshold and hashes of texts."""

    file: Literal["evenhand baseline"]
    format: Literal[1]
    grader: declared.Line
    source: declared.Line
    evenhand: declared.Line
    created_at: declared.Line
    synthetic: bool = False
    seed: int = Field(ge=0)
    analysis: AnalysisSettings = AnalysisSettings()
    decision: DecisionSettings = DecisionSettings()
    scales: dict[declared.Line, declared.ScaleSection] = Field(min_length=1)
    units: Table
    ratings: Table

    def known_scales(self) -> dict[str, Scale]:
        """Return every scale by its rubric. Raises InputError for an inconsistent one."""
        return {name: scale.scale(name) for name, scale in self.scales.items()}

    @property
    def n_units(self) -> int:
        """The number of units."""
        return len(self.units) - 1  # without the header

    @property
    def n_people(self) -> int:
        """The number of annotators."""
        ratings = _read_csv_lines(self.ratings)
        return int(ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique())


def baseline_of(dataset: Dataset, grader: str, rubric: str | None = None) -> Baseline:
    """Return a baseline of annotators' labels and a grader's grades on the units that have both, on
    one rubric or on all. If the study declares a reference rater, only its labels are saved. Raises
    InputError if there is no such grader, or no unit with both.
    """
    grader = _grader_id(dataset, grader)
    names = [name for name in dataset.scales if rubric is None or same_rubric(name, rubric)]
    shared = {name: _ratings_on_shared_units(dataset, name, grader) for name in names}
    ratings_by_rubric = {name: ratings for name, ratings in shared.items() if not ratings.empty}
    if not ratings_by_rubric:
        on_rubric = f" on {rubric}" if rubric else ""
        raise InputError(
            f"{dataset.name}: no item has a label of an annotator and of {grader!r}{on_rubric}; "
            "collect grades on labelled items first"
        )
    ratings = pd.concat(ratings_by_rubric.values())
    is_human = ratings["rater_kind"].eq("human")
    people = sorted(set(ratings.loc[is_human, "rater_id"]))
    pseudonyms = {person: f"person-{number}" for number, person in enumerate(people, start=1)}
    rater_ids = ratings["rater_id"].map(pseudonyms).where(is_human, ratings["rater_id"])
    ratings = ratings.assign(rater_id=rater_ids)
    ids = sorted(set(ratings["unit_id"]))
    clusters = UnitFacts(ids, dataset.units).clusters(dataset.settings.cluster)
    cluster_ids = [clusters.values[code] for code in clusters.codes]
    units = pd.DataFrame({"unit_id": ids, "cluster_id": cluster_ids})
    if INCLUSION in dataset.units:
        units[INCLUSION] = units["unit_id"].map(dataset.units.set_index("unit_id")[INCLUSION])
    try:
        return Baseline(
            file="evenhand baseline",
            format=1,
            grader=grader,
            source=declared.printable(dataset.name),
            evenhand=__version__,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            synthetic=dataset.synthetic,
            seed=dataset.seed,
            analysis=AnalysisSettings(
                **dataset.settings.model_dump(include={"margin", "resamples", "ordered"})
            ),
            # A reference's labels are saved as those of the one annotator.
            decision=dataset.decision.model_copy(update={"reference": ""}),
            scales={
                name: declared.ScaleSection.of(
                    dataset.scales[name],
                    threshold=dataset.scales[name].threshold_for(grader),
                    hashes=tuple(sorted(set(on_rubric["rubric_hash"]) - {""})),
                )
                for name, on_rubric in ratings_by_rubric.items()
            },
            units=_csv_lines(units),
            ratings=_csv_lines(ratings[list(_SAVED_COLUMNS)]),
        )
    except ValidationError as error:  # such as a name with a line break
        fault = declared.printable(fault_of(error))
        raise InputError(f"{dataset.name} cannot be frozen: {fault}") from None


def write_baseline(baseline: Baseline, file: Path) -> None:
    """Write the file in one step."""
    atomic_write(file, (baseline.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode())


def read_baseline(file: Path) -> Baseline:
    """Read a baseline. Raises InputError, one sentence, if the file is no baseline or damaged."""
    if not file.is_file():
        raise InputError(f"there is no file {file}; make one with `evenhand baseline save`")
    if file.stat().st_size > declared.MOST_BYTES:
        megabytes = declared.MOST_BYTES // 1_000_000
        raise InputError(f"{file.name} has more than {megabytes} MB; save it again")
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        raise InputError(
            f"{file.name} is not JSON, so it is no baseline; make one with `evenhand baseline save`"
        ) from None
    try:
        baseline = Baseline.model_validate(content)
        baseline.known_scales()
        for lines in (baseline.ratings, baseline.units):
            _read_csv_lines(lines)  # only for its error
    except ValueError as error:  # also of an invalid table or scale
        fault = fault_of(error) if isinstance(error, ValidationError) else str(error)
        raise InputError(f"{file.name} is not a baseline: {declared.printable(fault)}") from None
    return baseline


def drifts_from(
    baseline: Baseline,
    present_dataset: Dataset,
    grader: str,
    *,
    rubric: str | None = None,
    new_rubric: bool = False,
    **changes: Any,
) -> list[versions.Drift]:
    """Compare the baseline's grader with its grades in a dataset, where its id is `grader`,
    on each rubric. Annotators' labels, scales, clusters and settings, except `changes`, are the
    baseline's. Raises InputError if there are no such grades now, none on a unit of the baseline,
    or, unless `new_rubric`, if the grader read another text of the rubric.
    """
    rubrics = [name for name in baseline.scales if rubric is None or same_rubric(name, rubric)]
    if not rubrics:
        raise InputError(f"the baseline has no rubric {rubric!r}; it has {listed(baseline.scales)}")
    grader = _grader_id(present_dataset, grader)
    settings, decision = with_changes(baseline.analysis, baseline.decision, changes)
    display_name = present_dataset.name_of(grader)
    raters = versions.Versions(before=f"{display_name} (baseline)", after=display_name)
    saved_ratings = validate_ratings(_read_csv_lines(baseline.ratings), "the baseline")
    units, drifts = _read_csv_lines(baseline.units), []
    for name in rubrics:
        saved = saved_ratings[saved_ratings["rubric"] == name]
        rater_ids = saved["rater_id"].where(saved["rater_id"] != baseline.grader, raters.before)
        present = _present_grades(baseline, present_dataset, name, grader, new_rubric=new_rubric)
        scale = baseline.scales[name].scale(name).including(present["label"])
        before_and_after = [saved.assign(rater_id=rater_ids), present.assign(rater_id=raters.after)]
        ratings = pd.concat(before_and_after, ignore_index=True)
        rated_units = units[units["unit_id"].isin(ratings["unit_id"])]
        labels = versions.paired_labels(ratings, rated_units, scale)
        drifts.append(versions.drift_of(labels, raters, settings, decision, seed=baseline.seed))
    return drifts


def same_rubric(first: str, second: str) -> bool:
    """Return True if two names differ at most in hyphens and underscores."""
    return first.replace("_", "-") == second.replace("_", "-")


def _grader_id(dataset: Dataset, grader: str) -> str:
    """Return the rater id of a grader. Raises InputError if the dataset has no such grader."""
    grader = dataset.id_of(grader)
    graders = sorted(set(dataset.ratings.loc[dataset.ratings["rater_kind"] == "model", "rater_id"]))
    if grader not in graders:
        raise InputError(f"{dataset.name} has no grader {grader!r}; it has {listed(graders)}")
    return grader


def _ratings_on_shared_units(dataset: Dataset, rubric: str, grader: str) -> pd.DataFrame:
    """Return ratings of a grader and of annotators, or the reference, on units with both."""
    ratings, reference = dataset.counted(rubric), dataset.decision.reference
    is_human = ratings["rater_kind"].eq("human")
    if reference:
        is_human = ratings["rater_id"].eq(reference)
        ratings = ratings.assign(rater_kind=ratings["rater_kind"].where(~is_human, "human"))
    is_human_label = is_human & ratings["label"].ne("")
    is_grader = ratings["rater_id"].eq(grader)
    is_grade = is_grader & (ratings["label"].ne("") | ratings["p_positive"].notna())
    units = set(ratings.loc[is_human_label, "unit_id"]) & set(ratings.loc[is_grade, "unit_id"])
    return ratings[(is_human_label | is_grader) & ratings["unit_id"].isin(units)]


def _present_grades(
    baseline: Baseline, dataset: Dataset, rubric: str, grader: str, *, new_rubric: bool
) -> pd.DataFrame:
    """Return a grader's ratings on the baseline's units; errors as for `drifts_from`."""
    ratings = dataset.counted(rubric)
    ratings = ratings[ratings["rater_id"] == grader]
    on_rubric = f" on {rubric}" if rubric else ""
    if ratings.empty:
        graded = f"{grader!r}{on_rubric}"
        raise InputError(f"{dataset.name} has no grades of {graded}; collect them first")
    saved_hashes = set(baseline.scales[rubric].hashes or ())
    other_hashes = set(ratings["rubric_hash"]) - {""} - saved_hashes
    if saved_hashes and other_hashes and not new_rubric:
        raise InputError(
            f"the text of rubric {rubric!r} has changed since the baseline was saved (hash "
            f"{listed(sorted(saved_hashes))} then, {listed(sorted(other_hashes))} now); save a new "
            "baseline, or add --new-rubric if the new text is what you want to compare"
        )
    units = set(_read_csv_lines(baseline.units)["unit_id"])
    shared = ratings[ratings["unit_id"].isin(units)]
    if shared.empty:
        n_graded = ratings["unit_id"].nunique()
        raise InputError(
            f"none of the {n_graded} items that {grader!r} graded{on_rubric} is among the "
            f"{len(units)} of the baseline; grade the baseline's items"
        )
    # Only for its error, which names a row with a label that the baseline's scale lacks.
    scale = baseline.scales[rubric].scale(rubric).including(shared["label"])
    combine_readings(shared, scale, dataset.name)
    return shared


def _csv_lines(table: pd.DataFrame) -> tuple[str, ...]:
    """Return a table as lines of CSV, without empty columns."""
    filled = [name for name in table if table[name].notna().any() and (table[name] != "").any()]
    text = table[filled].to_csv(index=False, lineterminator="\n")
    return tuple(text.removesuffix("\n").split("\n"))


def _read_csv_lines(lines: Sequence[str]) -> pd.DataFrame:
    """Return the table in lines of CSV, all cells as text."""
    return pd.read_csv(io.StringIO("\n".join(lines)), dtype=str, keep_default_na=False)


# ---- the checks ---------------------------------------------------------------------------------


def gate(
    source: Source | str,
    grader: str,
    *,
    require: str | None = None,
    baseline: Path | None = None,
    options: declared.ScaleOptions | None = None,
    new_rubric: bool = False,
    engine: str = "",
    on_stage: OnStage = None,
    **changes: Any,
) -> Gate:
    """Check a grader's labels, in a study's folder, a ratings file or a table, against a rule
    (`require`, as in `evenhand gate --help`), against a `baseline` file, or both. With neither, the
    verdict on the grader must be a pass.

    `options` name the rubric and describe a file's labels and its units, `changes` are settings.
    With an `engine` the rule is checked on ratings that are reduced while they are read
    (`reporting.at_scale`); then `source` may be an address, a str. Raises InputError if the rule or
    the baseline does not fit these labels.
    """
    grader = id_in(source, grader)
    if require is None and baseline is None:
        require = VERDICT
    options = options or declared.ScaleOptions()
    options = replace(options, settings={**options.settings, **changes})
    if baseline is None and (new_rubric or "drift_margin" in options.settings):
        option = "--new-rubric" if new_rubric else "--set drift_margin"
        raise InputError(f"{option} is about a comparison with a baseline; add --baseline")
    result = Gate(_source_name(source, options), grader, checks=(), display_name=grader)
    if require is not None:
        rule = parse_rule(require)
        analysis, context = _analysed(source, options, engine, on_stage)
        result = _check_rule(result, rule, options, analysis, of_file=is_file(source))
        result = replace(result, notes=tuple(dict.fromkeys(context.all_notes)))
    if baseline is None:
        return result
    if isinstance(source, str):
        raise InputError("this is an address; a baseline is compared with a file's labels")
    saved, check_name = read_baseline(baseline), f"baseline {baseline.name}"
    comparison = _comparison(source, grader, saved, check_name, options, new_rubric)
    return replace(
        result,
        grader=comparison.grader,
        checks=(*result.checks, *comparison.checks),
        notes=tuple(dict.fromkeys([*result.notes, *comparison.notes])),
        rows=[*result.rows, *comparison.rows],
        display_name=comparison.display_name,
    )


def compare(
    source: Source,
    grader: str,
    *,
    baseline: Path | None = None,
    against: str = "",
    options: declared.ScaleOptions | None = None,
    new_rubric: bool = False,
) -> Comparison:
    """Compare a grader with its `baseline`; `against` is its present name if that has changed.
    Without a baseline its labels in the source are compared with those of the grader `against`.
    Raises InputError if the baseline is another grader's, and as `gate` does.
    """
    options, grader = options or declared.ScaleOptions(), id_in(source, grader)
    notes: list[str] = []
    if baseline is not None:
        saved, check_name = read_baseline(baseline), f"baseline {baseline.name}"
        if saved.grader != grader:
            fix = f"--grader {saved.grader} --against {grader}"
            if options.in_python:
                fix = f"grader={saved.grader!r} and against={grader!r}"
            raise InputError(
                f"{baseline.name} is of {saved.grader!r}, not of {grader!r}; write {fix} if that "
                "is its name now"
            )
    elif against:
        dataset = load(source, options)
        # Of a file only this rubric was read, but it may have another name there: None takes all.
        saved = baseline_of(dataset, grader, None if is_file(source) else options.rubric)
        against, other = dataset.name_of(against), dataset.id_of(against)
        for name, section in saved.scales.items():
            section.thresholds[against] = dataset.scales[name].threshold_for(other)
        check_name, notes = grader, [written("gate.between", first=grader, second=against)]
    else:
        raise InputError("name the --baseline, or with --against the grader to compare with")
    comparison = _comparison(source, against or grader, saved, check_name, options, new_rubric)
    return replace(comparison, notes=(*notes, *comparison.notes))


def _source_name(source: Source | str, options: declared.ScaleOptions) -> str:
    """Return the name of a source in messages."""
    is_path = isinstance(source, (str, PathLike))
    return str(source if is_path else getattr(source, "name", options.name))


def _check_rule(
    result: Gate, rule: Rule, options: declared.ScaleOptions, analysis: Analysis, *, of_file: bool
) -> Gate:
    """Return the result of a gate with the checks of the rule, the verdict on its grader, and a
    sentence (`weaker`) if the rule is met although the verdict is no pass.
    """
    rubrics = sorted(set(analysis.results["rubric"]))
    display_names = {id_: name for name, id_ in analysis.ids.items()}
    grader = display_names.get(result.grader, result.grader)
    typed_rubric = display_names.get(options.rubric or "", options.rubric)
    rubric = _choose_rubric(typed_rubric, rubrics, of_file=of_file)
    weighted_kappa = f"weighted_kappa_{analysis.settings.ordered}"
    checked_clauses = check_clauses(rule.clauses, analysis.results, rubric, grader, weighted_kappa)
    checks = tuple(checked.check for checked in checked_clauses)
    key = rubric, grader
    of_grader = (entry for entry in analysis.verdicts if (entry["rubric"], entry["grader"]) == key)
    verdict: Verdict | None = next(of_grader, None)
    verdict_check = _verdict_check(verdict, grader)
    weaker = ""
    if rule.has_verdict:
        checks = (verdict_check, *checks)
    elif verdict_check.outcome != "met" and all(check.outcome == "met" for check in checks):
        weaker = written(f"gate.weaker_{verdict_check.outcome}", sentence=verdict_check.sentence)
    changes: dict[str, Any] = {"verdict": verdict["verdict"] if verdict else "", "weaker": weaker}
    return replace(result, checks=checks, rows=analysis.rows, display_name=grader, **changes)


def _analysed(
    source: Source | str, options: declared.ScaleOptions, engine: str, on_stage: OnStage
) -> AnalysisAndContext:
    """Analyse the labels of a source, by an `engine` if one is named."""
    if not engine:
        folder = Path(source) if isinstance(source, str) else source
        return analyse_source(folder, options, on_stage=on_stage)
    from evenhand.reporting.at_scale import analyse_at_scale

    units, settings = options.units, options.settings
    if not isinstance(source, (str, Path)) or not isinstance(units, (Path, type(None))):
        raise InputError("--engine reads files; a table is here already")
    return analyse_at_scale(
        source, options, engine=engine, units=units, on_stage=on_stage, **settings
    )


def _verdict_check(verdict: Verdict | None, grader: str) -> Check:
    """Return the check that the verdict on a grader is a pass; inconclusive without a verdict."""
    if verdict is None:  # the rater is an annotator, or an interim analysis is not due yet
        return Check(VERDICT, "inconclusive", written("gate.no_verdict", grader=grader))
    names = ("verdict", "reason", "threshold", "more_clusters")
    figures = {name: verdict[name] for name in names}  # type: ignore[literal-required]
    return Check(VERDICT, VERDICT_OUTCOMES[verdict["verdict"]], verdict["sentence"], figures)


def _comparison(
    source: Source,
    grader: str,
    baseline: Baseline,
    check_name: str,
    options: declared.ScaleOptions,
    new_rubric: bool,
) -> Comparison:
    """Compare labels with a baseline on each rubric, with its scales and units."""
    changes = dict(options.settings)
    if (seed := changes.pop("seed", None)) is not None:
        baseline = baseline.model_copy(update={"seed": seed})
    # Only labels are read here: the units and the other settings are the baseline's.
    settings = {name: changes[name] for name in changes if name in ("missing", "clip_scores")}
    of_labels = replace(options, units=None, settings=settings)
    dataset = load(source, of_labels, scales=baseline.known_scales())
    rubric = options.rubric
    if rubric is not None and rubric.endswith(".toml"):
        rubric = load_rubric(rubric).name
    grader, rubric = dataset.id_of(grader), (dataset.id_of(rubric) if rubric else rubric)
    drifts = drifts_from(baseline, dataset, grader, rubric=rubric, new_rubric=new_rubric, **changes)
    return Comparison(
        source=_source_name(source, options),
        grader=grader,
        checks=tuple(_drift_check(drift, check_name) for drift in drifts),
        notes=(written("terminal.synthetic"),) if baseline.synthetic or dataset.synthetic else (),
        rows=[row for drift in drifts for row in drift.rows],
        display_name=dataset.name_of(grader),
    )


def _drift_check(drift: versions.Drift, check_name: str) -> Check:
    """Return a drift as a check, with the figures of the versions' comparison."""
    figures: dict[str, Any] = {"verdict": drift.verdict, "more_clusters": drift.more_clusters}
    for row in drift.rows:
        statistic = row["statistic"]
        # Figures of the two versions, and annotators' kappa with the earlier one.
        if row["rater_a"] != "humans" or statistic == versions.KAPPA_BEFORE:
            for suffix, part in (("", "estimate"), ("_low", "low"), ("_high", "high")):
                value = row[part]  # type: ignore[literal-required]
                figures[statistic + suffix] = None if math.isnan(value) else value
    name = check_name + (f", {drift.rubric}" if drift.rubric else "")
    return Check(name, _DRIFT_OUTCOME.get(drift.verdict, "inconclusive"), drift.sentence, figures)


def _choose_rubric(typed_name: str | None, rubrics: Sequence[str], *, of_file: bool) -> str:
    """Return the name in the results of the rubric that the user typed. None is enough if there is
    only one. Of a rubric whose labels are sets, only its options ("rubric/option") can be chosen:
    the whole set has no verdict.
    """
    set_rubrics = {name.partition("/")[0] for name in rubrics if "/" in name}
    rubrics = [name for name in rubrics if name not in set_rubrics]
    # A file's rubric may have another name in the results than the user typed.
    if len(rubrics) == 1 and (typed_name is None or of_file):
        return rubrics[0]
    names = ", ".join(rubrics)
    if typed_name is None:
        raise InputError(f"there are several rubrics; choose one with --rubric: {names}")
    for name in rubrics:
        if same_rubric(name, typed_name):
            return name
    raise InputError(f"there is no rubric {typed_name!r} here; the rubrics are {names}")


def junit_xml(result: Gate) -> bytes:
    """Return a test case for each check: a failure if it is not met, an error if inconclusive.

    >>> result = Gate("r.csv", "g", (Check("kappa > 0 & < 1", "not_met", "no"),))
    >>> junit_xml(result).decode().splitlines()[0]
    "<?xml version='1.0' encoding='utf-8'?>"
    """
    outcomes = [check.outcome for check in result.checks]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("not_met")),
        "errors": str(outcomes.count("inconclusive")),
    }
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "evenhand gate", **counts})
    for check in result.checks:
        attributes = {"classname": f"{result.source}, {result.display_name}", "name": check.name}
        case = ElementTree.SubElement(suite, "testcase", visible_in(attributes))
        if check.outcome != "met":
            tag = "failure" if check.outcome == "not_met" else "error"
            details = {"message": visible(check.sentence), "type": check.outcome}
            ElementTree.SubElement(case, tag, details)
        else:
            ElementTree.SubElement(case, "system-out").text = visible(check.sentence)
    if result.all_notes:
        ElementTree.SubElement(suite, "system-out").text = visible("\n".join(result.all_notes))
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, "utf-8", xml_declaration=True)) + b"\n"


def summary_markdown(result: Gate) -> str:
    """Return a heading and the sentences in a code fence, where names are not formatted."""
    text = visible("\n".join([*(check.line for check in result.checks), *result.all_notes]))
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    subject = visible(written("gate.about", source=result.source, grader=result.display_name))
    title = written(f"gate.title_{result.outcome}")
    return f"### {title}\n\n{fence}text\n{subject}\n{text}\n{fence}\n"
