"""What a verdict on one grader rests on: its rows, the rule, and what a cluster is called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.analysis.bias import Finding, flagged
from evenhand.analysis.labels.matrix import BINARY, LabelMatrix
from evenhand.analysis.notes import says
from evenhand.analysis.people.ceiling import BASELINES, CEILING
from evenhand.analysis.people.coverage import COVERAGE
from evenhand.analysis.results import RESULTS_KEY, ResultRow, ResultRows
from evenhand.analysis.thresholds.in_force import IN_FORCE
from evenhand.analysis.thresholds.rows import CEILING_HELD_OUT, KAPPA_HELD_OUT
from evenhand.study.settings.analysis import DecisionSettings

AT_THRESHOLD = "may_stand_in_at_threshold"
RECOMMENDED = "threshold_recommended"
STABILITY, REWORDED = "stability_fleiss_kappa", "rubric"
TUNED_FOR = "kappa"
_BINARY_ALL = "all" + BINARY


@dataclass(frozen=True)
class Case:
    """The rows that a verdict rests on. `noun` is what a cluster is called.

    `is_tuned` says that the deciding difference is of verdicts at a threshold that was tuned.
    """

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
    held_out_kappa: ResultRow | None
    recommended: ResultRow | None
    is_tuned: bool
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
            self.held_out_kappa,
            self.recommended,
            *self.baselines,
            *(each.row for each in self.biases),
            self.moving,
        )
        keyed = [dict(row) for row in rows if row is not None]
        keys = [tuple(str(row[name]) for name in RESULTS_KEY) for row in keyed]
        return [list(key) for key in dict.fromkeys(keys)]


Key = tuple[str, ...]
"""What a row is unique by, as `RESULTS_KEY`."""


def deciding_keys(
    judgement: str, evidence: Sequence[Sequence[str]]
) -> tuple[Key | None, Key | None]:
    """Of a verdict's evidence, the difference to people's kappa and the kappa that decided it.

    Rows on the categories stand first; a verdict at a threshold rests on the last.
    """

    def key(*statistics: str) -> Key | None:
        own = [tuple(each) for each in evidence if each[3] not in BASELINES]
        found = [each for each in own if each[1] in statistics]
        return found[-1 if judgement == AT_THRESHOLD else 0] if found else None

    return (
        key(CEILING, CEILING_HELD_OUT),
        key("cohen_kappa", "weighted_kappa_quadratic", KAPPA_HELD_OUT),
    )


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
    held_out, held_out_kappa, recommended = _tuned(rows, grader, margin)
    in_force = rows.get(IN_FORCE, "", grader, _BINARY_ALL)
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
        held_out_kappa=held_out_kappa,
        recommended=recommended,
        is_tuned=in_force is not None and subset == _BINARY_ALL,
        biases=tuple(flagged(rows, grader, rule.bias_bound)),
        moving=_moving(rows, grader, rule),
    )


def _tuned(
    rows: ResultRows, grader: str, margin: float
) -> tuple[ResultRow | None, ResultRow | None, ResultRow | None]:
    """The ceiling difference and the kappa of verdicts with thresholds chosen on other units, and
    the threshold that they speak for: the tuned one in force, or else the one recommended; where
    they meet the rule and beat the baselines.
    """
    threshold = rows.get(IN_FORCE, "", grader, _BINARY_ALL)
    difference, kappa = (
        rows.get(name, "humans", grader, _BINARY_ALL) for name in (CEILING, "cohen_kappa")
    )
    if threshold is None:
        threshold, difference, kappa = (
            rows.get(name, "humans", grader, _BINARY_ALL, TUNED_FOR)
            for name in (RECOMMENDED, CEILING_HELD_OUT, KAPPA_HELD_OUT)
        )
        if threshold is None or not says(threshold["remarks"], "tuned"):
            return None, None, None
    if difference is None or kappa is None:
        return None, None, None
    baselines = [rows.get("cohen_kappa", "humans", name, _BINARY_ALL) for name in BASELINES]
    to_beat = max((row["estimate"] for row in baselines if row is not None), default=math.nan)
    if difference["low"] > -margin and kappa["low"] > to_beat:
        return difference, kappa, threshold
    return None, None, None


def _moving(rows: ResultRows, grader: str, rule: DecisionSettings) -> ResultRow | None:
    """The grader's stability from wording to wording of the rubric, where it is clearly too low."""
    row = rows.get(STABILITY, grader, "", "all", REWORDED)
    return row if row is not None and row["high"] < rule.min_stability else None
