"""What a verdict on one grader rests on: its rows, the rule, and what a cluster is called."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.analysis.bias import Finding, flagged
from evenhand.analysis.labels.matrix import BINARY, LabelMatrix
from evenhand.analysis.notes import says
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.people.coverage import COVERAGE
from evenhand.analysis.results import BASELINES, RESULTS_KEY, ResultRow, ResultRows
from evenhand.study.settings.analysis import DecisionSettings

CEILING_HELD_OUT, RECOMMENDED = f"{CEILING}_held_out", "threshold_recommended"
STABILITY, REWORDED = "stability_fleiss_kappa", "rubric"
TUNED_FOR = "kappa"
_BINARY_ALL = "all" + BINARY


@dataclass(frozen=True)
class Case:
    """The rows that a verdict rests on. `noun` is what a cluster is called."""

    rubric: str
    grader: str
    n_humans: int
    margin: float
    rule: DecisionSettings
    noun: str
    difference: ResultRow | None
    kappa: ResultRow | None
    binary: ResultRow | None
    baselines: tuple[ResultRow, ...]
    coverage: ResultRow | None
    held_out: ResultRow | None
    recommended: ResultRow | None
    biases: tuple[Finding, ...]
    moving: ResultRow | None

    @property
    def to_beat(self) -> float:
        """The better baseline's kappa."""
        return max((row["estimate"] for row in self.baselines), default=math.nan)

    @property
    def has_faults(self) -> bool:
        """Whether it errs to one side, or its label moves with the wording."""
        return bool(self.biases) or self.moving is not None

    @property
    def share_scored(self) -> float:
        """The share of what it was asked that the grader scored."""
        return self.coverage["estimate"] if self.coverage else 0.0

    @property
    def evidence(self) -> list[list[str]]:
        """The keys of the rows."""
        rows = (
            self.difference,
            self.kappa,
            self.binary,
            self.coverage,
            self.held_out,
            self.recommended,
            *self.baselines,
            *(each.row for each in self.biases),
            self.moving,
        )
        keyed = [dict(row) for row in rows if row is not None]
        return [[str(row[name]) for name in RESULTS_KEY] for row in keyed]


def case_of(
    rows: ResultRows,
    labels: LabelMatrix,
    grader: str,
    margin: float,
    rule: DecisionSettings,
    noun: str,
) -> Case:
    """The categories decide; the binary verdict where a grader has no categories."""
    level, subset = labels.scale.level, "all"
    categories = rows.get(CEILING, "humans", grader, "all")
    binary = rows.get(CEILING, "humans", grader, _BINARY_ALL)
    if binary and (categories is None or categories["n_units"] == 0):
        level, subset, categories, binary = "nominal", _BINARY_ALL, binary, None
    kappa = "cohen_kappa" if level == "nominal" else "weighted_kappa_quadratic"
    baselines = (rows.get(kappa, "humans", name, subset) for name in BASELINES)
    held_out, recommended = _tuned(rows, grader, margin)
    return Case(
        rubric=labels.scale.name,
        grader=grader,
        n_humans=len(labels.humans),
        margin=margin,
        rule=rule,
        noun=noun,
        difference=categories,
        kappa=rows.get(kappa, "humans", grader, subset),
        binary=binary,
        baselines=tuple(row for row in baselines if row is not None),
        coverage=rows.get(COVERAGE, "", grader),
        held_out=held_out,
        recommended=recommended,
        biases=tuple(flagged(rows, grader, rule.bias_bound)),
        moving=_moving(rows, grader, rule),
    )


def _tuned(
    rows: ResultRows, grader: str, margin: float
) -> tuple[ResultRow | None, ResultRow | None]:
    """The ceiling difference with thresholds chosen on other units, and the threshold recommended:
    where one is, and verdicts at it meet the rule and beat the baselines.
    """
    recommended = rows.get(RECOMMENDED, "humans", grader, _BINARY_ALL, TUNED_FOR)
    held_out = rows.get(CEILING_HELD_OUT, "humans", grader, _BINARY_ALL, TUNED_FOR)
    at_default = rows.get(CEILING, "humans", grader, _BINARY_ALL)
    kappa = rows.get("cohen_kappa", "humans", grader, _BINARY_ALL)
    if recommended is None or held_out is None or at_default is None or kappa is None:
        return None, None
    baselines = [rows.get("cohen_kappa", "humans", name, _BINARY_ALL) for name in BASELINES]
    to_beat = max((row["estimate"] for row in baselines if row is not None), default=math.nan)
    people = kappa["estimate"] - at_default["estimate"]
    passes = held_out["low"] > -margin and people + held_out["low"] > to_beat
    tuned = says(recommended["remarks"], "tuned")
    return (held_out, recommended) if tuned and passes else (None, None)


def _moving(rows: ResultRows, grader: str, rule: DecisionSettings) -> ResultRow | None:
    """The grader's stability from wording to wording of the rubric, where it is clearly too low."""
    row = rows.get(STABILITY, grader, "", "all", REWORDED)
    return row if row is not None and row["high"] < rule.min_stability else None
