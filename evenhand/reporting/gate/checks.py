"""The gate: a grader checked against a rule, and against its saved baseline.

For CI. The result is a list of checks, each met, not met, or undecided, and can be written as
sentences, as JSON, as JUnit XML, and as Markdown for a job's summary.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

import pandas as pd

from evenhand.analysis import Analysis
from evenhand.analysis.verdicts.drift import KAPPA_BEFORE
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_source
from evenhand.reporting.gate.baseline import baseline_of, compared, read_baseline, same_rubric
from evenhand.reporting.gate.requirement import (
    VERDICT,
    CheckedClause,
    Rule,
    check_clauses,
    parse_rule,
)
from evenhand.reporting.load import is_file, load
from evenhand.reporting.panel import Shown
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.rubrics import load_rubric
from evenhand.texts import written
from evenhand.visible import visible

if TYPE_CHECKING:
    from evenhand.analysis import Verdict
    from evenhand.analysis.report import ReportContext
    from evenhand.analysis.requirement import State
    from evenhand.analysis.results import ResultRow
    from evenhand.analysis.verdicts.drift import Drift
    from evenhand.reporting.gate.baseline import Baseline
    from evenhand.reporting.load import Source
    from evenhand.reporting.panel import Line

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
_MARKS: dict[Outcome, str] = {"met": "met", "not_met": "not met", "inconclusive": "unknown"}
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


@dataclass(frozen=True, repr=False)
class Gate(Shown):
    """All checks on one grader; true only if they are all met. `notes` list what was assumed of the
    labels. `verdict` is that on the grader, where the labels were analysed, and `weaker` is a
    sentence where the rule is met without it.
    """

    source: str
    grader: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    verdict: str = ""
    weaker: str = ""
    rows: Sequence[ResultRow] = field(default=(), compare=False)

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
        return " ".join(each.sentence for each in self.checks)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each check: its name, outcome and sentence, and the figures behind it."""
        about = [
            {"check": e.name, "outcome": e.outcome, "sentence": e.sentence} for e in self.checks
        ]
        return pd.DataFrame([{**a, **e.figures} for a, e in zip(about, self.checks, strict=True)])

    @property
    def results(self) -> pd.DataFrame:
        """All figures of the analysis or the comparison, defined in docs/statistics.md."""
        return Analysis(list(self.rows)).results

    @property
    def lines(self) -> list[Line]:
        """The checks with their outcomes, and that the rule is weaker than the verdict if it is."""
        return [*(each.line for each in self.checks), *([self.weaker] if self.weaker else [])]

    @property
    def outcome(self) -> Outcome:
        """The worst outcome: not_met, then inconclusive, then met."""
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


@dataclass(frozen=True, repr=False)
class Comparison(Gate):
    """What became of a grader since its baseline, or under another name."""

    @property
    def changed(self) -> bool | None:
        """False if it is unchanged, True if it has changed, None where we cannot tell."""
        return None if self.passed is None else not self.passed

    @property
    def lines(self) -> list[Line]:
        """A sentence for each rubric."""
        return [each.sentence for each in self.checks]


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
        analysis, context = _analysed(source, options, engine, on_stage)
        checks, verdict, weaker = _of_rule(source, grader, rule, options, analysis)
        notes += context.said
        rows += analysis.rows
    if baseline is not None:
        if isinstance(source, str):
            raise InputError("this is an address; a baseline is compared with a file's labels")
        called = f"baseline {baseline.name}"
        found = _drift(source, grader, read_baseline(baseline), called, options, new_rubric)
        checks += found.checks
        rows += found.rows
        notes += found.notes
    once = tuple(dict.fromkeys(notes))
    return Gate(_called(source, options), grader, tuple(checks), once, verdict, weaker, rows)


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
    options = options or ScaleOptions()
    said: list[str] = []
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
        found = load(source, options)
        saved = baseline_of(found, grader, None if is_file(source) else options.rubric)
        called, said = grader, [written("gate.between", first=grader, second=against)]
    else:
        raise InputError("name the --baseline, or with --against the grader to compare with")
    drift = _drift(source, against or grader, saved, called, options, new_rubric)
    return replace(drift, notes=(*said, *drift.notes))


def _called(source: Source | str, options: ScaleOptions) -> str:
    """The name of a source in messages."""
    if isinstance(source, (str, PathLike)):
        return str(source)
    return str(getattr(source, "name", options.name))


def _analysed(
    source: Source | str, options: ScaleOptions, engine: str, on_stage: Callable[[str], None] | None
) -> tuple[Analysis, ReportContext]:
    if engine:
        from evenhand.reporting.at_scale import analyse_at_scale

        units, changes = options.units, options.settings
        if not isinstance(source, (str, Path)) or not isinstance(units, (Path, type(None))):
            raise InputError("--engine reads files; a table is here already")
        return analyse_at_scale(
            source, options, engine=engine, units=units, on_stage=on_stage, **changes
        )
    where = Path(source) if isinstance(source, str) else source
    return analyse_source(where, options, on_stage=on_stage)


def _of_rule(
    source: Source | str, grader: str, rule: Rule, options: ScaleOptions, analysis: Analysis
) -> tuple[list[Check], str, str]:
    """Return the checks of the rule; the verdict on the grader; and, where the rule is met without
    the verdict, a sentence that the rule is the weaker of the two.
    """
    rubrics = sorted(set(analysis.results["rubric"]))
    rubric = _one_rubric(options.rubric, rubrics, is_file=is_file(source))
    kappa = f"weighted_kappa_{analysis.settings.ordered}"
    clauses = check_clauses(rule.clauses, analysis.results, rubric, grader, kappa)
    checks = [_of_clause(each) for each in clauses]
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
        return Check(VERDICT, "inconclusive", written("gate.no_verdict", grader=grader))
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
    drifts = compared(baseline, now, grader, rubric=rubric, new_rubric=new_rubric, **changes)
    notes = (written("terminal.synthetic"),) if baseline.synthetic or now.synthetic else ()
    checks = tuple(_of_drift(each, called) for each in drifts)
    rows = [row for each in drifts for row in each.rows]
    return Comparison(_called(source, options), grader, checks, notes, rows=rows)


def _of_drift(found: Drift, called: str) -> Check:
    figures: dict[str, float | int | str | None] = {"verdict": found.verdict}
    figures["more_clusters"] = found.more_clusters
    for row in found.rows:
        if row["rater_a"] != "humans" or row["statistic"] == KAPPA_BEFORE:
            name = row["statistic"]
            ends = {name: row["estimate"], f"{name}_low": row["low"], f"{name}_high": row["high"]}
            figures |= {key: None if math.isnan(n) else n for key, n in ends.items()}
    name = called + (f", {found.rubric}" if found.rubric else "")
    return Check(name, _OF_DRIFT[found.verdict], found.sentence, figures)


def _one_rubric(wanted: str | None, rubrics: Sequence[str], *, is_file: bool) -> str:
    """The rubric that is meant; it may be left out where there is one. Where labels are sets of
    options it is one of these: the whole set has no verdict.
    """
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


def junit_xml(found: Gate) -> bytes:
    """Return a test case for each check: a failure if it is not met, an error if we cannot tell.

    >>> from evenhand.reporting.gate.checks import Check
    >>> found = Gate("r.csv", "g", (Check("kappa > 0 & < 1", "not_met", "no"),))
    >>> junit_xml(found).decode().splitlines()[0]
    "<?xml version='1.0' encoding='utf-8'?>"
    """
    outcomes = [each.outcome for each in found.checks]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("not_met")),
        "errors": str(outcomes.count("inconclusive")),
    }
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "evenhand gate", **counts})
    for each in found.checks:
        about = {"classname": _xml(f"{found.source}, {found.grader}"), "name": _xml(each.name)}
        case = ElementTree.SubElement(suite, "testcase", about)
        if each.outcome != "met":
            tag = "failure" if each.outcome == "not_met" else "error"
            said = {"message": _xml(each.sentence), "type": each.outcome}
            ElementTree.SubElement(case, tag, said)
        else:
            ElementTree.SubElement(case, "system-out").text = _xml(each.sentence)
    if found.said:
        ElementTree.SubElement(suite, "system-out").text = _xml("\n".join(found.said))
    ElementTree.indent(suites)
    written_out: bytes = ElementTree.tostring(suites, "utf-8", xml_declaration=True)
    return written_out + b"\n"


def summary_markdown(found: Gate) -> str:
    """Return a heading and the sentences, fenced, so that names of raters and files are neither
    formatted nor read as mentions.
    """
    lines = [*(each.line for each in found.checks), *found.said]
    text = visible("\n".join(lines))
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    about = visible(written("gate.about", source=found.source, grader=found.grader))
    title = written(f"gate.title_{found.outcome}")
    return f"### {title}\n\n{fence}text\n{about}\n{text}\n{fence}\n"


def _xml(text: str) -> str:
    return visible(text)
