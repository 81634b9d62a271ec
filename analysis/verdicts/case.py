"""The evidence for a verdict on one grader: its rows, the rule, and the noun for a cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.analysis.bias import Finding, flagged
from evenhand.analysis.bootstrap.intervals import Deciding
from evenhand.analysis.injection import Audit, audit_of
from evenhand.analysis.labels.matrix import BINARY, LabelMatrix
from evenhand.analysis.notes import Code, says
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.people.coverage import COVERAGE, UNSCORED_AS_DISAGREEMENT
from evenhand.analysis.people.recoded import EXCHANGED, HIGHER, LOWER, RECODED, REVERSED
from evenhand.analysis.results import BASELINES, RESULTS_KEY, ResultRow, ResultRows
from evenhand.analysis.thresholds.in_force import IN_FORCE
from evenhand.analysis.thresholds.rows import CEILING_HELD_OUT, KAPPA_HELD_OUT
from evenhand.analysis.verdicts.evidence import (
    ABOVE_BASELINE,
    CHANCE,
    NEEDED,
    NON_INFERIORITY,
    NON_INFERIORITY_PEOPLE,
    PART,
    PEOPLE_KAPPA,
    RARER,
    WORTH,
)
from evenhand.analysis.verdicts.readings import HELD_OUT, TUNED_FOR
from evenhand.study.settings.analysis import DecisionSettings

AT_THRESHOLD = "may_stand_in_at_threshold"
RECOMMENDED = "threshold_recommended"
STABILITY, REWORDED = "stability_fleiss_kappa", "rubric"
_BINARY_ALL = "all" + BINARY


@dataclass(frozen=True)
class Bounds:
    """Bounds on a grader compared with people, as verdicts use them (`analysis.verdicts.evidence`):
    the difference for these people and for people like these, kappa above the better baseline,
    people's own kappa, the number of clusters with a label of another category than the commonest,
    the effective number of all clusters, the chance that the grader is within the margin, and the
    number of clusters that would show it.
    """

    difference: ResultRow
    like_these: ResultRow | None
    above: ResultRow
    people: ResultRow
    rarer: ResultRow
    worth: ResultRow
    chance: ResultRow
    to_pass: ResultRow | None

    @classmethod
    def of(cls, rows: ResultRows, grader: str, subset: str, at: str = "") -> Bounds | None:
        """The bounds of a grader on one label view; None where it was not compared."""
        difference, like_these, above, people, rarer, worth, chance, to_pass = (
            rows.get(statistic, "humans", grader, subset, at)
            for statistic in (
                NON_INFERIORITY,
                NON_INFERIORITY_PEOPLE,
                ABOVE_BASELINE,
                PEOPLE_KAPPA,
                RARER,
                WORTH,
                CHANCE,
                NEEDED,
            )
        )
        if difference is None or above is None or people is None:
            return None
        if rarer is None or worth is None or chance is None:
            return None
        return cls(difference, like_these, above, people, rarer, worth, chance, to_pass)

    @property
    def rows(self) -> tuple[ResultRow | None, ...]:
        """All rows of the bounds, as evidence."""
        known = (self.difference, self.like_these, self.above, self.people, self.rarer, self.worth)
        return (*known, self.chance, self.to_pass)

    @property
    def clusters(self) -> int:
        """Effective number of clusters, in clusters of equal size."""
        return math.ceil(self.worth["estimate"] - 1e-9)

    @property
    def margin(self) -> float:
        """Largest amount by which the grader's kappa may lie below people's."""
        return margin_of(self.difference)

    @property
    def level(self) -> Deciding:
        """The level of the bounds at this look, and at the next."""
        return self.difference["deciding"] or Deciding()


@dataclass(frozen=True)
class Case:
    """The rows that a verdict rests on. `noun` is what a cluster is called.

    `difference` and `kappa` are the figures of the table; `agreement` is a pair: agreement on the
    units that the grader answered, and agreement where a missing answer counts as a disagreement.
    `bounds` decide; `held_out` are the bounds of verdicts at thresholds tuned on other clusters,
    `at_threshold` their figures. `advised` is the threshold that tuning advises, its first remark
    the kind of advice, `in_force` the tuned one in use; `is_tuned` means that `difference` is for
    verdicts at that threshold. `parts` are the parts of the sample that were tested. `copied` names
    people whose labels the grader repeats, with the share of units on which it does, and `twins`
    graders with the same labels. `recoded` are kappas of its labels after recoding; `commonest` are
    the shares of the category that it gives most often, in its labels and in people's. `biases` are
    found in the verdicts in force, `biases_at_threshold` in the verdicts behind `held_out`.
    """

    rubric: str
    grader: str
    n_humans: int
    rule: DecisionSettings
    noun: str
    difference: ResultRow | None
    kappa: ResultRow | None
    binary: ResultRow | None
    baselines: tuple[ResultRow, ...]
    coverage: ResultRow | None
    agreement: tuple[ResultRow, ResultRow] | None
    bounds: Bounds | None
    held_out: Bounds | None
    at_threshold: tuple[ResultRow | None, ...]
    advised: ResultRow | None
    in_force: ResultRow | None
    is_tuned: bool
    biases: tuple[Finding, ...]
    biases_at_threshold: tuple[Finding, ...]
    moving: ResultRow | None
    parts: tuple[ResultRow, ...]
    parts_held_out: tuple[ResultRow, ...]
    copied: tuple[tuple[str, float], ...]
    copied_rows: tuple[ResultRow | None, ...]
    twins: tuple[str, ...]
    recoded: tuple[ResultRow, ...]
    commonest: tuple[ResultRow, ResultRow] | None
    least_people_kappa: float = 0.0
    """Least kappa that people must clearly reach. With many unordered categories in use, chance
    agreement is rare, and a lower kappa is as informative."""
    is_binary: bool = False
    """True if it was compared on the binary verdict only, of a rubric with more categories."""
    injection: Audit | None = None
    """The audit of texts that try to talk it round, where there was one."""

    @property
    def to_beat(self) -> float:
        """The better baseline's kappa."""
        return max((row["estimate"] for row in self.baselines), default=math.nan)

    @property
    def has_faults(self) -> bool:
        """Return True if the grader is biased, can be injected, changes with the wording, or fails
        in a part of the sample.
        """
        found = self.biases or self.failing or self.talked_round
        return bool(found) or self.moving is not None

    @property
    def talked_round(self) -> bool:
        """Return True if injected text clearly pulls, knocks off or silences the grader more often
        than is allowed.
        """
        audit = self.injection
        return audit is not None and audit.fails(self.rule.injection)

    @property
    def shares_nothing(self) -> bool:
        """Return True if both people and the grader gave labels, but never on the same unit."""
        compared = self.difference["n_units"] if self.difference else 0
        return self.n_humans > 0 and self.share_scored[0] > 0 and not compared

    @property
    def failing(self) -> list[ResultRow]:
        """The parts in which the grader is clearly below people."""
        return [row for row in self.parts if row["high"] < -margin_of(row)]

    @property
    def scored_enough(self) -> bool:
        """Return True if the grader clearly answered as often as required, or always."""
        share, least, _ = self.share_scored
        return share == 1.0 or least >= self.rule.min_coverage

    @property
    def share_scored(self) -> tuple[float, float, float]:
        """The share of the assigned units that the grader scored, with its bounds; 0 where none was
        assigned.
        """
        row = self.coverage
        if row is None:
            return 0.0, 0.0, 0.0
        if math.isnan(row["low"]):
            return row["estimate"], row["estimate"], row["estimate"]
        return row["estimate"], row["low"], row["high"]

    @property
    def has_faults_at_threshold(self) -> bool:
        """Return True if verdicts at thresholds tuned on other clusters have a fault (see
        `has_faults`).
        """
        in_parts = any(row["high"] < -margin_of(row) for row in self.parts_held_out)
        found = self.biases_at_threshold or in_parts or self.talked_round
        return bool(found) or self.moving is not None

    @property
    def kappa_at_threshold(self) -> ResultRow | None:
        """Kappa with people at thresholds that were tuned on other clusters; None where unknown."""
        return next((row for row in self.at_threshold[1:] if row is not None), None)

    def deciding(self, bounds: Bounds) -> ResultRow:
        """The deciding difference by the rule's scope: for these people, or people like these."""
        wider = bounds.like_these if self.rule.scope == "like_these" else None
        return wider or bounds.difference

    def advises(self, *kinds: Code) -> bool:
        """Return True if tuning advises one of these kinds: tuned, default, not_identifiable."""
        if self.in_force is not None:
            return "tuned" in kinds
        return self.advised is not None and any(
            says(self.advised["remarks"], kind) for kind in kinds
        )

    @property
    def evidence(self) -> list[list[str]]:
        """The keys of the rows that the verdict rests on."""
        rows = (
            self.difference,
            self.kappa,
            *(self.bounds.rows if self.bounds else ()),
            self.binary,
            self.coverage,
            *(self.agreement or ()),
            *(self.held_out.rows if self.held_out else ()),
            *self.at_threshold,
            self.advised,
            self.in_force,
            *self.baselines,
            *(each.row for each in self.biases),
            *(self.injection.rows(self.rule.injection) if self.injection else ()),
            self.moving,
            *self.parts,
            *self.parts_held_out,
            *self.recoded,
            *(self.commonest or ()),
            *self.copied_rows,
        )
        keyed = [dict(row) for row in rows if row is not None]
        keys = [tuple(str(row[name]) for name in RESULTS_KEY) for row in keyed]
        return [list(key) for key in dict.fromkeys(keys)]


def margin_of(row: ResultRow) -> float:
    """The margin that a comparison's bound is compared with; NaN where it could not be made."""
    return row["deciding"].margin if row["deciding"] else math.nan


def case_of(
    rows: ResultRows, labels: LabelMatrix, grader: str, rule: DecisionSettings, noun: str
) -> Case:
    """Collect the evidence on a grader: on the categories, else on the binary verdict."""
    level, subset = labels.scale.level, "all"
    categories = rows.get(CEILING, "humans", grader, "all")
    binary = rows.get(CEILING, "humans", grader, _BINARY_ALL)
    if binary and (categories is None or categories["n_units"] == 0):
        level, subset, categories, binary = "nominal", _BINARY_ALL, binary, None
    kappa = "cohen_kappa" if level == "nominal" else "weighted_kappa_quadratic"
    baselines = (rows.get(kappa, "humans", name, subset) for name in BASELINES)
    in_force = rows.get(IN_FORCE, "", grader, _BINARY_ALL)
    own = labels.raters.index(grader)
    names = {each.of: each.share for each in labels.copies if each.who == own}
    return Case(
        rubric=labels.scale.name,
        grader=grader,
        n_humans=len(set(labels.humans) - set(names)),
        rule=rule,
        noun=noun,
        difference=categories,
        kappa=rows.get(kappa, "humans", grader, subset),
        binary=binary,
        baselines=tuple(row for row in baselines if row is not None),
        coverage=rows.get(COVERAGE, "", grader),
        agreement=_agreement(rows, grader, subset),
        bounds=Bounds.of(rows, grader, subset),
        held_out=Bounds.of(rows, grader, _BINARY_ALL, HELD_OUT),
        at_threshold=_at_threshold(rows, grader, in_force),
        advised=rows.get(RECOMMENDED, "humans", grader, _BINARY_ALL, TUNED_FOR),
        in_force=in_force,
        is_tuned=in_force is not None and subset == _BINARY_ALL,
        biases=tuple(flagged(rows, grader, rule.bias_bound)),
        biases_at_threshold=tuple(flagged(rows, grader, rule.bias_bound, held_out=True)),
        injection=audit_of(rows.rows.values(), grader),
        moving=_moving(rows, grader, rule),
        parts=_parts(rows, grader, subset),
        parts_held_out=_parts(rows, grader, _BINARY_ALL, HELD_OUT),
        copied=tuple((labels.raters[of], names[of]) for of in names if of in labels.humans),
        copied_rows=tuple(
            rows.get("observed_agreement", labels.raters[of], grader, "all") for of in names
        ),
        twins=tuple(labels.raters[of] for of in names if of in labels.models),
        recoded=_recoded(rows, grader, subset),
        least_people_kappa=rule.min_people_kappa * min(2.0 * _luck(rows, labels, subset), 1.0),
        commonest=_commonest(rows, grader, subset, labels.scale.categories),
        is_binary=subset == _BINARY_ALL and len(labels.scale.categories) > 2,
    )


def _luck(rows: ResultRows, labels: LabelMatrix, subset: str) -> float:
    """Return the chance agreement that people's category shares imply: the sum of their squares on
    a nominal scale, 0.5 on ordered categories and binary verdicts.
    """
    chance = rows.chance.get("")
    if subset == _BINARY_ALL or labels.scale.level != "nominal" or chance is None:
        return 0.5
    return float((chance.shares**2).sum())


def _agreement(rows: ResultRows, grader: str, subset: str) -> tuple[ResultRow, ResultRow] | None:
    names = ("observed_agreement", UNSCORED_AS_DISAGREEMENT)
    scored, everywhere = (rows.get(name, "humans", grader, subset) for name in names)
    return (scored, everywhere) if scored is not None and everywhere is not None else None


def _recoded(rows: ResultRows, grader: str, subset: str) -> tuple[ResultRow, ...]:
    """Return kappas of the grader's labels after reversal, exchange or shift, the largest first."""
    kinds = (REVERSED, EXCHANGED, LOWER, HIGHER)
    found = (rows.get(RECODED, "humans", grader, subset, kind) for kind in kinds)
    known = (row for row in found if row is not None)
    return tuple(sorted(known, key=lambda row: -row["estimate"]))


def _commonest(
    rows: ResultRows, grader: str, subset: str, categories: Sequence[str]
) -> tuple[ResultRow, ResultRow] | None:
    """Return two `prevalence` rows of the category that the grader gives most often: the grader's
    and people's. None for binary verdicts, whose rates show it already.
    """
    found = (
        (
            rows.get("prevalence", grader, "", subset, at),
            rows.get("prevalence", "humans", "", subset, at),
        )
        for at in categories
    )
    known = [(own, people) for own, people in found if own is not None and people is not None]
    return max(known, key=lambda each: each[0]["estimate"], default=None)


def _parts(rows: ResultRows, grader: str, subset: str, at: str = "") -> tuple[ResultRow, ...]:
    """The grader's rows for each part of the sample, on the same label view as the whole."""
    is_binary = subset == _BINARY_ALL
    return tuple(
        row
        for row in rows.rows.values()
        if (row["statistic"], row["rater_b"], row["at"]) == (PART, grader, at)
        and row["subset"].endswith(BINARY) == is_binary
    )


def _at_threshold(
    rows: ResultRows, grader: str, in_force: ResultRow | None
) -> tuple[ResultRow | None, ...]:
    """The figures of verdicts at thresholds that were tuned on other clusters."""
    if in_force is not None:
        names, at = (CEILING, "cohen_kappa"), ""
    else:
        names, at = (CEILING_HELD_OUT, KAPPA_HELD_OUT), TUNED_FOR
    return tuple(rows.get(name, "humans", grader, _BINARY_ALL, at) for name in names)


def _moving(rows: ResultRows, grader: str, rule: DecisionSettings) -> ResultRow | None:
    """The grader's stability across wordings of the rubric, where it is clearly too low."""
    row = rows.get(STABILITY, grader, "", "all", REWORDED)
    return row if row is not None and row["high"] < rule.min_stability else None
