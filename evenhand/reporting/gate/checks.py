"""The gate: a grader checked against a rule, and against its saved baseline.

For CI. The result is a list of checks, each met, not met, or undecided, and can be written as
sentences, as JSON, as JUnit XML, and as Markdown for a job's summary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evenhand.errors import InputError
from evenhand.reporting.gate.requirement import (
    VERDICT,
    CheckedClause,
    Rule,
    check_clauses,
    parse_rule,
)
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis import Analysis, Verdict
    from evenhand.analysis.report import ReportContext
    from evenhand.analysis.requirement import State
    from evenhand.analysis.verdicts.drift import Drift

Outcome = Literal["met", "not_met", "cannot_tell"]
_WORST_FIRST: tuple[Outcome, ...] = ("not_met", "cannot_tell", "met")
_OF_STATE: dict[State, Outcome] = {"met": "met", "open": "cannot_tell", "broken": "not_met"}
_OF_DRIFT: dict[str, Outcome] = {
    "unchanged": "met",
    "changed": "not_met",
    "cannot_tell": "cannot_tell",
}
OUTCOMES: dict[str, Outcome] = {
    "may_stand_in": "met",
    "may_stand_in_at_threshold": "met",
    "agrees_with_reference": "met",
    "only_with_correction": "not_met",
    "do_not_use": "not_met",
    "disagrees_with_reference": "not_met",
    "cannot_tell": "cannot_tell",
}
_MARKS: dict[Outcome, str] = {"met": "met", "not_met": "not met", "cannot_tell": "unknown"}
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
        return f"{_MARKS[self.outcome]:<7}  {self.sentence}"


@dataclass(frozen=True)
class Gate:
    """All checks on one grader; `notes` list what was assumed of the labels. `verdict` is that on
    the grader, where the labels were analysed, and `weaker` is a sentence where the rule is met
    without it.
    """

    source: str
    grader: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    verdict: str = ""
    weaker: str = ""

    @property
    def outcome(self) -> Outcome:
        """The worst outcome: not_met, then cannot_tell, then met."""
        given = {each.outcome for each in self.checks}
        return next(each for each in _WORST_FIRST if each in given)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as printed by `--json`."""
        checks = [vars(each) | {"figures": each.figures} for each in self.checks]
        about = {"source": self.source, "grader": self.grader}
        found = {"schema": SCHEMA, "outcome": self.outcome, **about}
        verdict = {"verdict": self.verdict or None, "weaker_than_verdict": bool(self.weaker)}
        return {**found, **verdict, "checks": checks, "notes": self.said}

    @property
    def said(self) -> list[str]:
        """The notes, and that the rule is weaker than the verdict where it is."""
        return [*self.notes, *([self.weaker] if self.weaker else [])]


def gate(
    source: Path | str,
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
    """Check a grader's labels, in a study's folder or a ratings file, against a rule (`require`, as
    in `evenhand gate --help`), against a `baseline` file, or both. With neither the verdict on the
    grader must be a pass.

    `options` name the rubric and describe a file's labels and its units, `changes` are settings.
    With an `engine` the rule is checked on ratings that are reduced while they are read
    (`reporting.at_scale`). Raises InputError where either cannot be checked on these labels.
    """
    if require is None and baseline is None:
        require = VERDICT
    options = options or ScaleOptions()
    changes = {**options.settings, **changes}
    checks: list[Check] = []
    notes: list[str] = []
    verdict, weaker = "", ""
    if require is not None:
        rule = parse_rule(require)
        asked = replace(options, settings=changes)
        analysis, context = _analysed(source, asked, engine, on_stage)
        checks, verdict, weaker = _of_rule(source, grader, rule, options, analysis)
        notes += [*context.notes, *([written("terminal.synthetic")] if context.synthetic else [])]
    if baseline is not None:
        if isinstance(source, str):
            raise InputError("this is an address; a baseline is compared with a file's labels")
        alone = replace(options, units=None, settings={})
        drifts, said = _drifts(source, grader, baseline, alone, new_rubric, **changes)
        checks += drifts
        notes += said
    once = tuple(dict.fromkeys(notes))
    return Gate(str(source), grader, tuple(checks), once, verdict, weaker)


def _analysed(
    source: Path | str,
    options: ScaleOptions,
    engine: str,
    on_stage: Callable[[str], None] | None,
) -> tuple[Analysis, ReportContext]:
    if engine:
        from evenhand.reporting.at_scale.checking import analyse_at_scale

        units, changes = options.units, options.settings
        return analyse_at_scale(
            source, options, engine=engine, units=units, on_stage=on_stage, **changes
        )
    from evenhand.reporting.analysing import analyse_source

    return analyse_source(Path(source), options, on_stage=on_stage)


def _of_rule(
    source: Path | str, grader: str, rule: Rule, options: ScaleOptions, analysis: Analysis
) -> tuple[list[Check], str, str]:
    """Return the checks of the rule; the verdict on the grader; and, where the rule is met without
    the verdict, a sentence that the rule is the weaker of the two.
    """
    rubrics = sorted(set(analysis.results["rubric"]))
    is_file = isinstance(source, str) or source.is_file()
    rubric = _one_rubric(options.rubric, rubrics, is_file=is_file)
    checks = [
        _of_clause(each) for each in check_clauses(rule.clauses, analysis.results, rubric, grader)
    ]
    mine = [v for v in analysis.verdicts if (v["rubric"], v["grader"]) == (rubric, grader)]
    check = _of_verdict(mine[0] if mine else None, grader)
    verdict = mine[0]["verdict"] if mine else ""
    if rule.verdict:
        return [check, *checks], verdict, ""
    is_weaker = check.outcome != "met" and all(each.outcome == "met" for each in checks)
    weaker = written(f"gate.weaker_{check.outcome}", sentence=check.sentence) if is_weaker else ""
    return checks, verdict, weaker


def _of_verdict(found: Verdict | None, grader: str) -> Check:
    """Return the verdict as a check. There is none on people, and none on labels that may not be
    looked at yet.
    """
    if found is None:
        return Check(VERDICT, "cannot_tell", written("gate.no_verdict", grader=grader))
    figures: dict[str, float | int | str | None] = {
        "verdict": found["verdict"],
        "reason": found["reason"],
        "threshold": found["threshold"],
        "more_clusters": found["more_clusters"],
    }
    return Check(VERDICT, OUTCOMES[found["verdict"]], found["sentence"], figures)


def _of_clause(found: CheckedClause) -> Check:
    value = None if math.isnan(found.value) else found.value
    figures = {"value": value, "required": found.clause.number, "note": found.note}
    return Check(str(found.clause), _OF_STATE[found.state], found.sentence, figures)


def _drifts(
    source: Path,
    grader: str,
    file: Path,
    options: ScaleOptions,
    new_rubric: bool,
    seed: int | None = None,
    **changes: Any,
) -> tuple[list[Check], list[str]]:
    """The comparison with the baseline, on each rubric, and whether its labels are made up."""
    from evenhand.reporting.gate.baseline import compared, read_baseline
    from evenhand.reporting.load import load
    from evenhand.rubrics import load_rubric

    baseline = read_baseline(file)
    if seed is not None:
        baseline = baseline.model_copy(update={"seed": seed})
    now = load(source, options, scales=baseline.known_scales())
    rubric = options.rubric
    if rubric is not None and rubric.endswith(".toml"):
        rubric = load_rubric(rubric).name
    found = compared(baseline, now, grader, rubric=rubric, new_rubric=new_rubric, **changes)
    notes = [written("terminal.synthetic")] if baseline.synthetic or now.synthetic else []
    return [_of_drift(each, file.name) for each in found], notes


def _of_drift(found: Drift, file: str) -> Check:
    from evenhand.analysis.verdicts.drift import KAPPA_BEFORE

    figures: dict[str, float | int | str | None] = {"verdict": found.verdict}
    figures["more_clusters"] = found.more_clusters
    for row in found.rows:
        if row["rater_a"] != "humans" or row["statistic"] == KAPPA_BEFORE:
            name = row["statistic"]
            ends = {name: row["estimate"], f"{name}_low": row["low"], f"{name}_high": row["high"]}
            figures |= {key: None if math.isnan(n) else n for key, n in ends.items()}
    name = f"baseline {file}" + (f", {found.rubric}" if found.rubric else "")
    return Check(name, _OF_DRIFT[found.verdict], found.sentence, figures)


def _one_rubric(wanted: str | None, rubrics: Sequence[str], *, is_file: bool) -> str:
    """The rubric that is meant; it may be left out where there is one. Where labels are sets of
    options it is one of these: the whole set has no verdict.
    """
    from evenhand.reporting.gate.baseline import same_rubric

    wholes = {name.partition("/")[0] for name in rubrics if "/" in name}
    rubrics = [name for name in rubrics if name not in wholes]

    if wanted is None:
        if len(rubrics) == 1:
            return rubrics[0]
        raise InputError(
            f"there are several rubrics; choose one with --rubric: {', '.join(rubrics)}"
        )
    same = [name for name in rubrics if same_rubric(name, wanted)]
    if same:
        return same[0]
    if is_file and len(rubrics) == 1:
        return rubrics[0]  # read from a rubric's file
    raise InputError(f"there is no rubric {wanted!r} here; the rubrics are {', '.join(rubrics)}")
