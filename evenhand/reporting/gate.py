"""The gate: a grader checked in CI against a rule, and against its saved baseline.

The result is a list of checks, each met, not met, or undecided, and can be written as sentences, as
JSON, as JUnit XML, and as Markdown for a job's summary.

A rule is comma-separated conditions, of which `verdict` may be one. A baseline is units with
people's labels and a grader's grades, frozen, to compare later runs with: a JSON file of one fixed
shape (`Baseline`). It holds labels, scales, the hash of the rubric that was shown, clusters and the
settings that decide; no prompts, no responses, no names of people. So it may be kept in a
repository with the code that it guards. To ask the grader again one needs the texts, which stay
with the study.
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
from typing import TYPE_CHECKING, Annotated, Any, Literal
from xml.etree import ElementTree

import pandas as pd
from pydantic import Field, ValidationError

from evenhand import __version__
from evenhand.analysis import Analysis, Scale, Verdict
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.injection import STATISTICS as AUDIT_STATISTICS
from evenhand.analysis.labels.encoding import combine_readings
from evenhand.analysis.labels.matrix import UnitFacts
from evenhand.analysis.requirement import State, state_of
from evenhand.analysis.results import ResultRow
from evenhand.analysis.statistics import shown_apart
from evenhand.analysis.verdicts.versions import (
    KAPPA_BEFORE,
    Drift,
    Versions,
    drift_of,
    paired_labels,
)
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_source
from evenhand.reporting.load import id_in, is_file, load
from evenhand.reporting.panel import Line as PanelLine
from evenhand.reporting.panel import Shown
from evenhand.reporting.ratings_file.declared import (
    MOST_BYTES,
    Line,
    ScaleOptions,
    ScaleSection,
    printable,
)
from evenhand.rubrics import load_rubric
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, with_changes
from evenhand.study.settings.sections import Section, fault_of
from evenhand.study.tables.columns import INCLUSION, listed
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.ratings import LONG_PLACEBO, PLACEBO, RATINGS_COLUMNS, validate_ratings
from evenhand.texts import visible, visible_in, written

if TYPE_CHECKING:
    from evenhand.reporting.load import Source

Outcome = Literal["met", "not_met", "inconclusive"]
_WORST_FIRST: tuple[Outcome, ...] = ("not_met", "inconclusive", "met")
_OF_STATE: dict[State, Outcome] = {"met": "met", "open": "inconclusive", "broken": "not_met"}
_OF_DRIFT: dict[str, Outcome] = {
    "unchanged": "met",
    "changed": "not_met",
    "inconclusive": "inconclusive",
}
OUTCOMES: dict[str, Outcome] = {
    "can_replace": "met",
    "can_replace_at_threshold": "met",
    "agrees_with_reference": "met",
    "only_with_correction": "not_met",
    "do_not_use": "not_met",
    "disagrees_with_reference": "not_met",
    "inconclusive": "inconclusive",
}
EXIT_CODES: dict[Outcome, int] = {"met": 0, "not_met": 1, "inconclusive": 3}
SCHEMA = 1
"""Of the JSON; a key may be added to it without another number."""


@dataclass(frozen=True)
class Check:
    """A check: its name, its outcome, and the `figures` behind it."""

    name: str
    outcome: Outcome
    sentence: str
    figures: dict[str, float | int | str | None] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The sentence with its outcome before it."""
        return f"{self.outcome.replace('_', ' '):<7}  {self.sentence}"


@dataclass(frozen=True, repr=False)
class Gate(Shown):
    """All checks on one grader; true only if they are all met. `notes` list what was assumed of the
    labels. `verdict` is that on the grader, where the labels were analysed, and `weaker` is a
    sentence where the rule is met without it. `shown` is the display name of the grader, an id.
    """

    source: str
    grader: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    verdict: str = ""
    weaker: str = ""
    rows: Sequence[ResultRow] = field(default=(), compare=False)
    shown: str = ""

    def __bool__(self) -> bool:
        return self.passed is True

    @property
    def passed(self) -> bool | None:
        """True if all checks are met, False if one is not met, None where we cannot tell."""
        return {"met": True, "not_met": False, "inconclusive": None}[self.outcome]

    @property
    def exit_code(self) -> int:
        """The code that `evenhand gate` ends with: 0 met, 1 not met, 3 we cannot tell."""
        return EXIT_CODES[self.outcome]

    @property
    def sentence(self) -> str:
        """The sentences of all checks."""
        return " ".join(check.sentence for check in self.checks)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each check: its name, outcome and sentence, and the figures behind it."""
        return pd.DataFrame(
            {"check": of.name, "outcome": of.outcome, "sentence": of.sentence, **of.figures}
            for of in self.checks
        )

    @property
    def results(self) -> pd.DataFrame:
        """All figures of the analysis or the comparison, defined in docs/statistics.md."""
        return Analysis(list(self.rows)).results

    @property
    def lines(self) -> list[PanelLine]:
        """The checks with their outcomes, and that the rule is weaker than the verdict if it is."""
        return [*(check.line for check in self.checks), *([self.weaker] if self.weaker else [])]

    @property
    def outcome(self) -> Outcome:
        """The worst outcome: not_met, then inconclusive, then met."""
        given = {check.outcome for check in self.checks}
        return next(word for word in _WORST_FIRST if word in given)

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
        """The notes, and that the rule is weaker than the verdict where it is."""
        return [*self.notes, *([self.weaker] if self.weaker else [])]


@dataclass(frozen=True, repr=False)
class Comparison(Gate):
    """A comparison of a grader with its baseline, or with another name of it."""

    @property
    def changed(self) -> bool | None:
        """False if it is unchanged, True if it has changed, None where we cannot tell."""
        return None if self.passed is None else not self.passed

    @property
    def lines(self) -> list[PanelLine]:
        """A sentence for each rubric."""
        return [check.sentence for check in self.checks]


# ---- a rule -------------------------------------------------------------------------------------

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
_CLAUSE = re.compile(
    r"(?P<statistic>[a-z][a-z0-9_]*)"
    r"(?:@(?P<at>[^\s<>=|]+?))?"
    r"(?P<binary>\|binary)?"
    r"(?:\.(?P<part>estimate|low|high))?"
    r"\s*(?P<operator>>=|<=|==|>|<)"
    r"\s*(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
)
_WORST: tuple[State, ...] = ("broken", "open", "met")
_GROUPS = ("", "humans", "models", "all")
VERDICT = "verdict"
"""The condition that the grader can replace a human rater, or agrees with the reference."""


@dataclass(frozen=True)
class Clause:
    """A condition: a part of a statistic's row (at a category or threshold) and a bound."""

    statistic: str
    at: str
    binary: bool
    part: str
    operator: str
    number: float

    def __str__(self) -> str:
        """The condition as it is written in a rule."""
        at, binary = f"@{self.at}" if self.at else "", "|binary" if self.binary else ""
        return f"{self.statistic}{at}{binary}.{self.part} {self.operator} {self.number:g}"


Rule = tuple[bool, list[Clause]]
"""A rule for `gate`: whether the verdict is one of its conditions, and the others."""


@dataclass(frozen=True)
class CheckedClause:
    """A clause with the value that it was held against; `note` says why there is none. `worst_of`
    counts the attacks among which this one is furthest from meeting it, and `statistic` is the full
    name of one that the clause calls by a short one.
    """

    clause: Clause
    value: float
    note: str
    worst_of: int = 0
    statistic: str = ""

    @property
    def state(self) -> State:
        """Met if the clause holds, open if there is no value to hold it against, else broken."""
        is_known = not math.isnan(self.value)
        holds = _OPERATORS[self.clause.operator](self.value, self.clause.number)
        return state_of(met=is_known and holds, broken=is_known)

    @property
    def slack(self) -> float:
        """The margin by which the clause holds; negative if it does not."""
        above = self.value - self.clause.number
        sign = {">": 1, ">=": 1, "<": -1, "<=": -1}.get(self.clause.operator)
        return -abs(above) if sign is None else sign * above

    @property
    def sentence(self) -> str:
        """The clause and its value."""
        one = self.clause
        at = f" at {one.at}" if one.at else ""
        if self.statistic not in ("", one.statistic):
            at = f" ({self.statistic}){at}"
        if self.worst_of:
            at += " " + written("gate.worst_of", attacks=self.worst_of)
        reading = ", binary label" if one.binary else ""
        shown = f"{self.value:.6g}"
        if float(shown) == one.number != self.value:  # on the other side of it, however little
            shown = shown_apart(self.value, [one.number], places=6)
        if self.state == "open":
            shown = written("gate.undefined", why=self.note)
        return written(
            "gate.outcome",
            what=f"{one.statistic}{at}{reading}",
            part=one.part,
            value=shown,
            operator=one.operator,
            number=one.number,
        )

    @property
    def check(self) -> Check:
        """The clause as a check of the gate."""
        value = None if math.isnan(self.value) else self.value
        figures = {"value": value, "required": self.clause.number, "note": self.note}
        return Check(str(self.clause), _OF_STATE[self.state], self.sentence, figures)


def parse_rule(text: str) -> Rule:
    """A rule as it is written. Raises InputError naming the condition that is not valid.

    >>> has_verdict, clauses = parse_rule("verdict, coverage >= 0.98, kappa|binary.low > 0.5")
    >>> has_verdict, [str(clause) for clause in clauses]
    (True, ['coverage.estimate >= 0.98', 'kappa|binary.low > 0.5'])
    """
    parts = [part.strip() for part in text.split(",")]
    clauses = []
    for part in parts:
        if part == VERDICT:
            continue
        if not (match := _CLAUSE.fullmatch(part)):
            raise InputError(
                f"--require: {part!r} is not a valid condition; write verdict, or "
                "STATISTIC[.estimate|.low|.high] OP NUMBER, as in 'verdict, coverage >= 0.98'"
            )
        fields: dict[str, Any] = {**match.groupdict(), "number": float(match["number"])}
        fields |= {"at": match["at"] or "", "part": match["part"] or "estimate"}
        clauses.append(Clause(**fields | {"binary": bool(match["binary"])}))
    return VERDICT in parts, clauses


def check_clauses(
    clauses: Sequence[Clause], results: pd.DataFrame, rubric: str, grader: str, kappa: str
) -> list[CheckedClause]:
    """Check every clause against the grader's rows: with people where there are such, else its own.

    A statistic that is given for the binary label only is found there. Raises InputError where
    the rubric has no such grader, no binary label, or the grader no such statistic.
    """
    rows = results[results["rubric"] == rubric]
    raters = set(rows.loc[rows["statistic"] == "coverage", "rater_b"]) - set(_GROUPS)
    if grader not in raters:
        raise InputError(
            f"there is no grader {grader!r} here; the raters are {', '.join(sorted(raters))}"
        )
    return [_outcome(clause, rows, grader, kappa) for clause in clauses]


def _outcome(clause: Clause, rows: pd.DataFrame, grader: str, kappa: str) -> CheckedClause:
    statistic = _full_name(clause, rows, kappa)
    of = rows[rows["statistic"] == statistic]
    is_audit = statistic.startswith("injection_")
    if is_audit and statistic not in AUDIT_STATISTICS:
        named = ", ".join(AUDIT_STATISTICS)
        raise InputError(written("gate.no_such_of_audit", statistic=statistic, named=named))
    if is_audit and not (of["rater_a"] == grader).any():
        raise InputError(written("gate.not_audited", statistic=statistic, grader=grader))
    if of.empty:
        raise InputError(
            f"--require: there is no statistic {statistic!r} here; results.csv has "
            + ", ".join(sorted(set(rows["statistic"])))
        )
    with_people = of["rater_a"].isin(["humans", ""]) | of["statistic"].str.endswith("_reference")
    alone = (of["rater_a"] == grader) & (of["rater_b"] == "")
    of = of[(with_people & (of["rater_b"] == grader)) | alone]
    subsets = ["all|binary"] if clause.binary else ["all", "all|binary"]
    for subset in subsets:
        matching = of[(of["subset"] == subset) & (of["at"] == clause.at)]
        if not matching.empty:
            row = matching.sort_values("rater_a", ascending=False).iloc[0]  # with people first
            note = str(row["note"]) or "no interval"
            return CheckedClause(clause, float(row[clause.part]), note, statistic=statistic)
    if is_audit and not clause.binary and not clause.at:  # no attack is named: against each
        by_attack = [
            CheckedClause(replace(clause, at=at), float(value), note or "no interval")
            for at, value, note in zip(of["at"], of[clause.part], of["note"], strict=True)
            if at.partition(">")[0] not in ("", PLACEBO, LONG_PLACEBO)
        ]
        if by_attack:
            worst = min(by_attack, key=lambda rule: (_WORST.index(rule.state), rule.slack))
            return replace(worst, worst_of=len(by_attack))
    if clause.binary and not (rows["subset"] == "all|binary").any():
        raise InputError(
            f"--require: there is no {statistic}|binary here, as no labels count as yes; "
            "declare them with --affirmative, or in the rubric"
        )
    where = " on the binary label" if clause.binary else ""
    what = f"--require: {grader!r} has no {statistic}{where} here"
    places = sorted(set(of.loc[of["subset"].isin(subsets), "at"]) - {""})
    if places:
        what += f"; it is given at {', '.join(places[:8])}: write {statistic}@{places[0]}"
    raise InputError(what)


def _full_name(clause: Clause, rows: pd.DataFrame, kappa: str) -> str:
    """The statistic that a clause is about; `kappa` is the one that the report shows where the
    rubric's categories are in an order, and rates are against the reference if one is declared.
    """
    if clause.statistic in ("tpr", "tnr"):
        of_reference = f"{clause.statistic}_reference"
        is_declared = (rows["statistic"] == of_reference).any()
        return of_reference if is_declared else f"{clause.statistic}_majority"
    if clause.statistic != "kappa":
        return clause.statistic
    weighted = (rows["statistic"] == kappa) & (rows["subset"] == "all")
    return kappa if weighted.any() and not clause.binary else "cohen_kappa"


# ---- a baseline ---------------------------------------------------------------------------------

_LEFT_OUT = ("seconds", "rubric_hash", "created_at")
_KEPT = tuple(column for column in RATINGS_COLUMNS if column not in _LEFT_OUT)
_BASELINE = " (baseline)"
"""Suffix of a grader's name for its grades in the baseline."""
Table = Annotated[tuple[str, ...], Field(min_length=1, max_length=5_000_000)]
"""A CSV file in lines, the header first: a change of a label is a change of one line."""


class Baseline(Section):
    """The file as a whole. `scales` have the rubrics' `hashes`; thresholds are the grader's."""

    file: Literal["evenhand baseline"]
    format: Literal[1]
    grader: Line
    source: Line
    evenhand: Line
    created_at: Line
    synthetic: bool = False
    seed: int = Field(ge=0)
    analysis: AnalysisSettings = AnalysisSettings()
    decision: DecisionSettings = DecisionSettings()
    scales: dict[Line, ScaleSection] = Field(min_length=1)
    units: Table
    ratings: Table

    def known_scales(self) -> dict[str, Scale]:
        """Return every scale by its rubric. Raises InputError for an inconsistent one."""
        return {name: scale.scale(name) for name, scale in self.scales.items()}

    @property
    def n_units(self) -> int:
        """The number of units that it holds."""
        return len(self.units) - 1

    @property
    def n_people(self) -> int:
        """The number of people whose labels it holds."""
        ratings = _table(self.ratings)
        return int(ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique())


def baseline_of(dataset: Dataset, grader: str, rubric: str | None = None) -> Baseline:
    """Freeze the labels of people and a grader on the units that both labelled, on one rubric or on
    all. Where the study declares a reference, only its labels are taken of people's.

    Raises InputError where there is no such grader, or nothing to freeze.
    """
    grader = _checked(dataset, grader)
    wanted = [n for n in dataset.scales if rubric is None or same_rubric(n, rubric)]
    kept = {name: both for name in wanted if len(both := _both(dataset, name, grader))}
    if not kept:
        place = f" on {rubric}" if rubric else ""
        raise InputError(
            f"{dataset.name}: no item has a label of an annotator and of {grader!r}{place}; "
            "collect grades on labelled items first"
        )
    ratings = pd.concat(kept.values())
    is_person = ratings["rater_kind"].eq("human")
    people = sorted(set(ratings.loc[is_person, "rater_id"]))  # their names are not needed later
    numbers = {person: f"person-{n}" for n, person in enumerate(people, start=1)}
    names = ratings["rater_id"].map(numbers).where(is_person, ratings["rater_id"])
    ratings = ratings.assign(rater_id=names)
    ids = sorted(set(ratings["unit_id"]))
    clusters = UnitFacts(ids, dataset.units).clusters(dataset.settings.cluster)
    units = pd.DataFrame(
        {"unit_id": ids, "cluster_id": [clusters.values[code] for code in clusters.codes]}
    )
    if INCLUSION in dataset.units:
        chances = dataset.units.set_index("unit_id")[INCLUSION]
        units[INCLUSION] = units["unit_id"].map(chances)
    try:
        return Baseline(
            file="evenhand baseline",
            format=1,
            grader=grader,
            source=printable(dataset.name),
            evenhand=__version__,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            synthetic=dataset.synthetic,
            seed=dataset.seed,
            analysis=AnalysisSettings(
                margin=dataset.settings.margin, resamples=dataset.settings.resamples
            ),
            decision=dataset.decision.model_copy(update={"reference": ""}),
            scales={
                name: ScaleSection.of(
                    dataset.scales[name],
                    threshold=dataset.scales[name].threshold_for(grader),
                    hashes=tuple(sorted(set(both["rubric_hash"]) - {""})),
                )
                for name, both in kept.items()
            },
            units=_lines(units),
            ratings=_lines(ratings[list(_KEPT)]),
        )
    except ValidationError as error:  # a name that no line can hold
        raise InputError(f"{dataset.name} cannot be frozen: {printable(fault_of(error))}") from None


def write_baseline(baseline: Baseline, file: Path) -> None:
    """Write the file in one step."""
    atomic_write(file, (baseline.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode())


def read_baseline(file: Path) -> Baseline:
    """The baseline in a file. Raises InputError, one sentence, where it is none or damaged."""
    if not file.is_file():
        raise InputError(f"there is no file {file}; make one with `evenhand baseline save`")
    if file.stat().st_size > MOST_BYTES:
        raise InputError(f"{file.name} has more than {MOST_BYTES // 1_000_000} MB; save it again")
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        raise InputError(
            f"{file.name} is not JSON, so it is no baseline; make one with `evenhand baseline save`"
        ) from None
    try:
        baseline = Baseline.model_validate(content)
        baseline.known_scales()
        _table(baseline.ratings), _table(baseline.units)
    except ValidationError as error:
        raise InputError(f"{file.name} is not a baseline: {printable(fault_of(error))}") from None
    except (ValueError, InputError) as error:  # no table, or no scale
        raise InputError(f"{file.name} is not a baseline: {printable(str(error))}") from None
    return baseline


def compared(
    baseline: Baseline,
    now: Dataset,
    grader: str,
    *,
    rubric: str | None = None,
    new_rubric: bool = False,
    **changes: Any,
) -> list[Drift]:
    """Compare the baseline's grader with what it is now, under the name `grader`, on each rubric.

    People's labels are those of the baseline, and so are scales, clusters and settings except the
    `changes`. Raises InputError where there are no such grades now, none on a unit of the baseline,
    or grades under another text of the rubric, unless `new_rubric` allows it.
    """
    wanted = [n for n in baseline.scales if rubric is None or same_rubric(n, rubric)]
    if not wanted:
        rubrics = listed(baseline.scales)
        raise InputError(f"the baseline has no rubric {rubric!r}; it has {rubrics}")
    grader = _checked(now, grader)
    settings, decision = with_changes(baseline.analysis, baseline.decision, changes)
    shown = now.call(grader)
    versions = Versions(shown + _BASELINE, shown)
    before = validate_ratings(_table(baseline.ratings), "the baseline")
    units, drifts = _table(baseline.units), []
    for name in wanted:
        saved = before[before["rubric"] == name]
        raters = saved["rater_id"].where(saved["rater_id"] != baseline.grader, versions.before)
        new = _present(baseline, now, name, grader, new_rubric=new_rubric)
        scale = baseline.scales[name].scale(name)
        rows = [saved.assign(rater_id=raters), new.assign(rater_id=versions.after)]
        ratings = pd.concat(rows, ignore_index=True)
        rated = units[units["unit_id"].isin(ratings["unit_id"])]
        labels = paired_labels(ratings, rated, scale, versions)
        drifts.append(drift_of(labels, versions, settings, decision, seed=baseline.seed))
    return drifts


def same_rubric(name: str, other: str) -> bool:
    """Return True if two names are of one rubric, written with hyphens or underscores."""
    return name.replace("_", "-") == other.replace("_", "-")


def _checked(dataset: Dataset, grader: str) -> str:
    """Return the id of a grader. Raises InputError where a dataset has no such one."""
    grader = dataset.id_of(grader)
    graders = sorted(set(dataset.ratings.loc[dataset.ratings["rater_kind"] == "model", "rater_id"]))
    if grader not in graders:
        raise InputError(f"{dataset.name} has no grader {grader!r}; it has {listed(graders)}")
    return grader


def _both(dataset: Dataset, name: str, grader: str) -> pd.DataFrame:
    """The ratings of people and of the grader on units that both labelled."""
    ratings, reference = dataset.counted(name), dataset.decision.reference
    people = ratings["rater_kind"].eq("human")
    if reference:
        people = ratings["rater_id"].eq(reference)
        ratings = ratings.assign(rater_kind=ratings["rater_kind"].where(~people, "human"))
    people &= ratings["label"].ne("")
    is_grader = ratings["rater_id"].eq(grader)
    scored = is_grader & (ratings["label"].ne("") | ratings["p_positive"].notna())
    units = set(ratings.loc[people, "unit_id"]) & set(ratings.loc[scored, "unit_id"])
    return ratings[(people | is_grader) & ratings["unit_id"].isin(units)]


def _present(
    baseline: Baseline, now: Dataset, name: str, grader: str, *, new_rubric: bool
) -> pd.DataFrame:
    """The grader's present grades on the baseline's units."""
    ratings = now.counted(name)
    ratings = ratings[ratings["rater_id"] == grader]
    place = f" on {name}" if name else ""
    if ratings.empty:
        raise InputError(f"{now.name} has no grades of {grader!r}{place}; collect them first")
    hashes, known = set(ratings["rubric_hash"]) - {""}, baseline.scales[name].hashes
    if known and (other := hashes - set(known)) and not new_rubric:
        raise InputError(
            f"the text of rubric {name!r} has changed since the baseline was saved (hash "
            f"{listed(sorted(known))} then, {listed(sorted(other))} now); save a new baseline, or "
            "add --new-rubric if the new text is what you want to compare"
        )
    units = set(_table(baseline.units)["unit_id"])
    shared = ratings[ratings["unit_id"].isin(units)]
    if shared.empty:
        raise InputError(
            f"none of the {ratings['unit_id'].nunique()} items that {grader!r} graded{place} is "
            f"among the {len(units)} of the baseline; grade the baseline's items"
        )
    combine_readings(shared, baseline.scales[name].scale(name), now.name)  # names a row that is off
    return shared


def _lines(table: pd.DataFrame) -> tuple[str, ...]:
    """A table as lines of CSV, without columns that are empty all over."""
    filled = [name for name in table if table[name].notna().any() and (table[name] != "").any()]
    text = table[filled].to_csv(index=False, lineterminator="\n")
    return tuple(text.removesuffix("\n").split("\n"))


def _table(lines: Sequence[str]) -> pd.DataFrame:
    """The table again, all cells as text."""
    text = io.StringIO("\n".join(lines))
    return pd.read_csv(text, dtype=str, keep_default_na=False)


# ---- the checks ---------------------------------------------------------------------------------


def gate(
    source: Source | str,
    grader: str,
    *,
    require: str | None = None,
    baseline: Path | None = None,
    options: ScaleOptions | None = None,
    new_rubric: bool = False,
    engine: str = "",
    on_stage: Callable[[str], None] | None = None,
    **changes: Any,
) -> Gate:
    """Check a grader's labels, in a study's folder, a ratings file or a table, against a rule
    (`require`, as in `evenhand gate --help`), against a `baseline` file, or both. With neither the
    verdict on the grader must be a pass.

    `options` name the rubric and describe a file's labels and its units, `changes` are settings. A
    source that is a text is an address, which is read with an `engine`.
    With an `engine` the rule is checked on ratings that are reduced while they are read
    (`reporting.at_scale`). Raises InputError where either cannot be checked on these labels.
    """
    grader = shown = id_in(source, grader)
    if require is None and baseline is None:
        require = VERDICT
    options = options or ScaleOptions()
    options = replace(options, settings={**options.settings, **changes})
    if baseline is None and (new_rubric or "drift_margin" in options.settings):
        option = "--new-rubric" if new_rubric else "--set drift_margin"
        raise InputError(f"{option} is about a comparison with a baseline; add --baseline")
    checks: list[Check] = []
    notes: list[str] = []
    rows: list[ResultRow] = []
    verdict, weaker = "", ""
    if require is not None:
        rule = parse_rule(require)
        if engine:
            from evenhand.reporting.at_scale import analyse_at_scale

            units, settings = options.units, options.settings
            if not isinstance(source, (str, Path)) or not isinstance(units, (Path, type(None))):
                raise InputError("--engine reads files; a table is here already")
            analysis, context = analyse_at_scale(
                source, options, engine=engine, units=units, on_stage=on_stage, **settings
            )
        else:
            place = Path(source) if isinstance(source, str) else source
            analysis, context = analyse_source(place, options, on_stage=on_stage)
        shown = next((name for name, id_ in analysis.ids.items() if id_ == grader), grader)
        checks, verdict, weaker = _of_rule(source, shown, rule, options, analysis)
        notes += context.said
        rows += analysis.rows
    if baseline is not None:
        if isinstance(source, str):
            raise InputError("this is an address; a baseline is compared with a file's labels")
        called = f"baseline {baseline.name}"
        comparison = _drift(source, grader, read_baseline(baseline), called, options, new_rubric)
        grader, shown = comparison.grader, comparison.shown
        checks += comparison.checks
        rows += comparison.rows
        notes += comparison.notes
    once = tuple(dict.fromkeys(notes))
    about = tuple(checks), once, verdict, weaker, rows, shown
    return Gate(_called(source, options), grader, *about)


def compare(
    source: Source,
    grader: str,
    *,
    baseline: Path | None = None,
    against: str = "",
    options: ScaleOptions | None = None,
    new_rubric: bool = False,
) -> Comparison:
    """Compare a grader with its `baseline`, under the name `against` if it has another one now.
    Without a baseline its labels in the source itself are compared with those of `against`.

    Raises InputError where the baseline is another grader's, and as `gate` does.
    """
    options, grader = options or ScaleOptions(), id_in(source, grader)
    notes: list[str] = []
    if baseline is not None:
        saved, called = read_baseline(baseline), f"baseline {baseline.name}"
        if saved.grader != grader:
            again = f"--grader {saved.grader} --against {grader}"
            if options.in_python:
                again = f"grader={saved.grader!r} and against={grader!r}"
            raise InputError(
                f"{baseline.name} is of {saved.grader!r}, not of {grader!r}; write {again} if that "
                "is its name now"
            )
    elif against:
        # Of a file only the rubric's rows were read, whatever the rubric is called there.
        dataset = load(source, options)
        saved = baseline_of(dataset, grader, None if is_file(source) else options.rubric)
        called, notes = grader, [written("gate.between", first=grader, second=against)]
    else:
        raise InputError("name the --baseline, or with --against the grader to compare with")
    drift = _drift(source, against or grader, saved, called, options, new_rubric)
    return replace(drift, notes=(*notes, *drift.notes))


def _called(source: Source | str, options: ScaleOptions) -> str:
    """The name of a source in messages."""
    if isinstance(source, (str, PathLike)):
        return str(source)
    return str(getattr(source, "name", options.name))


def _of_rule(
    source: Source | str, grader: str, rule: Rule, options: ScaleOptions, analysis: Analysis
) -> tuple[list[Check], str, str]:
    """Return the checks of the rule; the verdict on the grader; and, where the rule is met without
    the verdict, a sentence that the rule is the weaker of the two.
    """
    rubrics = sorted(set(analysis.results["rubric"]))
    called = {id_: name for name, id_ in analysis.ids.items()}
    asked = called.get(options.rubric or "", options.rubric)
    rubric = _one_rubric(asked, rubrics, is_file=is_file(source))
    kappa = f"weighted_kappa_{analysis.settings.ordered}"
    has_verdict, clauses = rule
    checked = check_clauses(clauses, analysis.results, rubric, grader, kappa)
    checks = [requirement.check for requirement in checked]
    verdicts = (v for v in analysis.verdicts if (v["rubric"], v["grader"]) == (rubric, grader))
    judged: Verdict | None = next(verdicts, None)
    # There is none on people, and none on labels that may not be looked at yet.
    check = Check(VERDICT, "inconclusive", written("gate.no_verdict", grader=grader))
    if judged is not None:
        names = ("verdict", "reason", "threshold", "more_clusters")
        figures = {name: judged[name] for name in names}  # type: ignore[literal-required]
        check = Check(VERDICT, OUTCOMES[judged["verdict"]], judged["sentence"], figures)
    verdict = judged["verdict"] if judged else ""
    if has_verdict:
        return [check, *checks], verdict, ""
    is_weaker = check.outcome != "met" and all(clause.outcome == "met" for clause in checks)
    weaker = written(f"gate.weaker_{check.outcome}", sentence=check.sentence) if is_weaker else ""
    return checks, verdict, weaker


def _drift(
    source: Source,
    grader: str,
    baseline: Baseline,
    called: str,
    options: ScaleOptions,
    new_rubric: bool,
) -> Comparison:
    """Return the comparison with the baseline, which messages call so, on each rubric; scales and
    units are the baseline's. A note says where its labels are made up.
    """
    changes = dict(options.settings)
    if (seed := changes.pop("seed", None)) is not None:
        baseline = baseline.model_copy(update={"seed": seed})
    alone = replace(options, units=None, settings={})
    now = load(source, alone, scales=baseline.known_scales())
    rubric = options.rubric
    if rubric is not None and rubric.endswith(".toml"):
        rubric = load_rubric(rubric).name
    grader, rubric = now.id_of(grader), rubric and now.id_of(rubric)
    drifts = compared(baseline, now, grader, rubric=rubric, new_rubric=new_rubric, **changes)
    notes = (written("terminal.synthetic"),) if baseline.synthetic or now.synthetic else ()
    checks = tuple(_of_drift(drift, called) for drift in drifts)
    rows = [row for drift in drifts for row in drift.rows]
    shown = now.call(grader)
    return Comparison(_called(source, options), grader, checks, notes, rows=rows, shown=shown)


def _of_drift(drift: Drift, called: str) -> Check:
    figures: dict[str, float | int | str | None] = {}
    figures |= {"verdict": drift.verdict, "more_clusters": drift.more_clusters}
    for row in drift.rows:
        if row["rater_a"] != "humans" or row["statistic"] == KAPPA_BEFORE:
            name = row["statistic"]
            ends = {name: row["estimate"], f"{name}_low": row["low"], f"{name}_high": row["high"]}
            figures |= {key: None if math.isnan(n) else n for key, n in ends.items()}
    name = called + (f", {drift.rubric}" if drift.rubric else "")
    return Check(name, _OF_DRIFT[drift.verdict], drift.sentence, figures)


def _one_rubric(wanted: str | None, rubrics: Sequence[str], *, is_file: bool) -> str:
    """The rubric that is meant; it may be left out where there is one. Where labels are sets of
    options it is one of these: the whole set has no verdict.
    """
    wholes = {name.partition("/")[0] for name in rubrics if "/" in name}
    rubrics = [name for name in rubrics if name not in wholes]
    named = ", ".join(rubrics)
    same = [name for name in rubrics if wanted and same_rubric(name, wanted)]
    if len(rubrics) == 1 and (wanted is None or is_file):  # a file's was read from a rubric's file
        return rubrics[0]
    if same:
        return same[0]
    if wanted is None:
        raise InputError(f"there are several rubrics; choose one with --rubric: {named}")
    raise InputError(f"there is no rubric {wanted!r} here; the rubrics are {named}")


def junit_xml(result: Gate) -> bytes:
    """Return a test case for each check: a failure if it is not met, an error if we cannot tell.

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
        about = {"classname": f"{result.source}, {result.shown}", "name": check.name}
        case = ElementTree.SubElement(suite, "testcase", visible_in(about))
        if check.outcome != "met":
            tag = "failure" if check.outcome == "not_met" else "error"
            ElementTree.SubElement(
                case, tag, {"message": visible(check.sentence), "type": check.outcome}
            )
        else:
            ElementTree.SubElement(case, "system-out").text = visible(check.sentence)
    if result.all_notes:
        ElementTree.SubElement(suite, "system-out").text = visible("\n".join(result.all_notes))
    ElementTree.indent(suites)
    written_out: bytes = ElementTree.tostring(suites, "utf-8", xml_declaration=True)
    return written_out + b"\n"


def summary_markdown(result: Gate) -> str:
    """Return a heading and the sentences, fenced, so that names of raters and files are neither
    formatted nor read as mentions.
    """
    lines = [*(check.line for check in result.checks), *result.all_notes]
    text = visible("\n".join(lines))
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    about = visible(written("gate.about", source=result.source, grader=result.shown))
    title = written(f"gate.title_{result.outcome}")
    return f"### {title}\n\n{fence}text\n{about}\n{text}\n{fence}\n"
