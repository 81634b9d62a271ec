"""May a grader stand in for people? Decided from bounds of intervals, never from an estimate.

- *may stand in*: it meets the rule (`study.settings.analysis`) as it stands.
- *may stand in at threshold t*: its binary verdicts do, with a threshold that won on units which it
  was not chosen on.
- *only with correction*: it falls short of people, errs to one side, or moves with the wording, but
  carries clear information: rates may be corrected by a sample that people labelled, single labels
  may not be trusted.
- *do not use*: it is clearly below people, or no better than a baseline, and carries no clear
  information.
- *cannot tell*: none of these; with what would help.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypedDict

from evenhand.analysis.bias import Finding, flagged
from evenhand.analysis.labels.matrix import BINARY, LabelMatrix
from evenhand.analysis.people.ceiling import BASELINES, CEILING
from evenhand.analysis.people.coverage import COVERAGE
from evenhand.analysis.planning.more_clusters import Bound, clusters_to_decide
from evenhand.analysis.results import RESULTS_KEY, ResultRow, ResultRows
from evenhand.analysis.verdicts import words
from evenhand.study.settings.analysis import DecisionSettings

__all__ = ["CEILING_HELD_OUT", "JUDGEMENTS", "Judgement", "Verdict", "judge_graders"]

Judgement = Literal[
    "may_stand_in",
    "may_stand_in_at_threshold",
    "only_with_correction",
    "cannot_tell",
    "do_not_use",
]
JUDGEMENTS: tuple[Judgement, ...] = (
    "may_stand_in",
    "may_stand_in_at_threshold",
    "only_with_correction",
    "cannot_tell",
    "do_not_use",
)
"""All verdicts, the best first."""

CEILING_HELD_OUT, RECOMMENDED = f"{CEILING}_held_out", "threshold_recommended"
STABILITY, REWORDED = "stability_fleiss_kappa", "rubric"
TUNED_FOR = "kappa"
_BINARY_ALL = "all" + BINARY


class Verdict(TypedDict):
    """A verdict on one grader; `evidence` holds the keys (RESULTS_KEY) of the rows it rests on.

    `more_clusters` says how many more clusters would decide it, 0 where that is no advice.
    """

    rubric: str
    grader: str
    verdict: Judgement
    sentence: str
    evidence: list[list[str]]
    more_clusters: int


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


def judge_graders(
    rows: ResultRows,
    labels: LabelMatrix,
    *,
    margin: float,
    rule: DecisionSettings,
    cluster_noun: str,
) -> list[Verdict]:
    """One verdict per grader of a rubric, read off its results rows."""
    return [
        _judge(_case(rows, labels, labels.raters[model], margin, rule, cluster_noun))
        for model in labels.models
    ]


def _case(
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
    tuned = recommended["note"].startswith("tuned")
    return (held_out, recommended) if tuned and passes else (None, None)


def _moving(rows: ResultRows, grader: str, rule: DecisionSettings) -> ResultRow | None:
    """The grader's stability from wording to wording of the rubric, where it is clearly too low."""
    row = rows.get(STABILITY, grader, "", "all", REWORDED)
    return row if row is not None and row["high"] < rule.min_stability else None


def _judge(case: Case) -> Verdict:
    judgement, sentence, more = _decide(case)
    return Verdict(
        rubric=case.rubric,
        grader=case.grader,
        verdict=judgement,
        sentence=sentence + words.not_known(case),
        evidence=case.evidence,
        more_clusters=more,
    )


def _decide(case: Case) -> tuple[Judgement, str, int]:
    reasons, more = _missing(case)
    against = _reasons_against(case)
    if not reasons and not against and not case.has_faults:
        return "may_stand_in", words.may_stand_in(case), 0
    if (at := _at_threshold(case)) and not case.has_faults:
        return "may_stand_in_at_threshold", words.at_threshold(case, at), 0
    if (against or (case.has_faults and not reasons)) and _is_informative(case):
        return "only_with_correction", words.only_with_correction(case, against), 0
    if against:
        return "do_not_use", words.do_not_use(case, against), 0
    return "cannot_tell", words.cannot_tell(case, reasons), more


def _at_threshold(case: Case) -> ResultRow | None:
    """The recommended threshold, where verdicts at it meet all of the rule."""
    row, rule = case.held_out, case.rule
    if row is None or case.n_humans < 2:
        return None
    enough = row["n_clusters"] >= rule.min_clusters and case.share_scored >= rule.min_coverage
    return case.recommended if enough else None


def _is_informative(case: Case) -> bool:
    """Whether its labels say enough for rates to be corrected: clearly more than a baseline's, and
    a good part of what one person's labels say of another's.
    """
    kappa, apart = case.kappa, case.difference
    if kappa is None or apart is None or math.isnan(case.to_beat):
        return False
    people = kappa["estimate"] - apart["estimate"]
    least = max(case.to_beat, case.rule.min_information * people)
    return kappa["n_clusters"] >= case.rule.min_clusters and kappa["low"] > least


def _reasons_against(case: Case) -> list[str]:
    reasons = []
    if case.difference and case.difference["high"] < -case.margin:
        text = words.difference(case.difference, case.noun)
        reasons.append(f"{text}, below the margin of {case.margin:g}")
    if case.kappa and case.kappa["high"] <= case.to_beat:
        text = words.kappa(case.kappa, case.noun)
        reasons.append(f"{text}, no better than a baseline ({case.to_beat:.2f})")
    return reasons


def _missing(case: Case) -> tuple[list[str], int]:
    """Why the grader has not passed, in plain words, and how many more clusters would decide."""
    difference, kappa, rule = case.difference, case.kappa, case.rule
    impossible = _impossible(case)
    if impossible or difference is None or kappa is None:
        return [impossible], 0
    missing = []
    if difference["low"] <= -case.margin:
        text = words.difference(difference, case.noun)
        missing.append(f"{text}, and the margin is {case.margin:g}")
    if kappa["low"] <= case.to_beat:
        missing.append(f"{words.kappa(kappa)}, not clearly above a baseline ({case.to_beat:.2f})")
    undecided = (Bound.of(difference, -case.margin), Bound.of(kappa, case.to_beat))
    more = clusters_to_decide(
        difference["n_clusters"], undecided if missing else (), rule.min_clusters
    )
    missing += words.advice(difference["n_clusters"], more, case.noun, undecided=bool(missing))
    if case.share_scored < rule.min_coverage:
        missing.append(
            f"it scored {case.share_scored:.1%} of what it was asked, and "
            f"{rule.min_coverage:.0%} is needed"
        )
    return missing, more or 0


def _impossible(case: Case) -> str:
    """Why nothing can be said at all, if so."""
    difference, kappa = case.difference, case.kappa
    if case.n_humans == 0:
        return "no person has labelled"
    if difference is None or kappa is None:
        return "it labelled no unit that a person labelled"
    if case.n_humans < 2:
        return "only one person labelled, so how well people agree with each other is not known"
    if math.isnan(difference["estimate"]):
        return f"the comparison with people is undefined ({words.first_reason(difference)})"
    if math.isnan(case.to_beat):
        return "the baselines are undefined, because people used one category only"
    if math.isnan(difference["low"]) or math.isnan(kappa["low"]):
        row = difference if math.isnan(difference["low"]) else kappa
        return f"there is no interval ({words.first_reason(row)})"
    return ""
