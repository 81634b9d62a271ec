"""May a grader stand in for people? Decided from bounds of intervals, never from an estimate.

- *may stand in*: the lower bound of `human_ceiling_difference` lies above minus the margin, the
  lower bound of its mean kappa with humans beats both baselines, it scored at least 98% of what it
  was asked, and at least 30 clusters were labelled.
- *do not use*: the upper bound of the difference lies below minus the margin, or the upper bound of
  its kappa does not beat a baseline.
- *cannot tell*: neither; with what would help.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypedDict

from analysis.ceiling import BASELINES, CEILING
from analysis.coverage import COVERAGE
from analysis.encoding import BINARY, LabelMatrix
from analysis.results import RESULTS_KEY, ResultRow, ResultRows

__all__ = ["MIN_COVERAGE", "Verdict", "judge_graders"]

MIN_COVERAGE = 0.98
MIN_DECIDING_CLUSTERS = 30
"""With fewer clusters a bootstrap interval is too narrow to recommend anything on."""
_REALISTIC = 20
"""Beyond so many times the present sample, "label more" is no advice."""

Judgement = Literal["may_stand_in", "do_not_use", "cannot_tell"]


class Verdict(TypedDict):
    """A verdict on one grader; `evidence` holds the keys (RESULTS_KEY) of the rows it rests on."""

    rubric: str
    grader: str
    verdict: Judgement
    sentence: str
    evidence: list[list[str]]


@dataclass(frozen=True)
class _Case:
    """The rows that a verdict rests on. `noun` is what a cluster is called."""

    rubric: str
    grader: str
    n_humans: int
    margin: float
    noun: str
    difference: ResultRow | None
    kappa: ResultRow | None
    binary: ResultRow | None
    baselines: tuple[ResultRow, ...]
    coverage: ResultRow | None

    @property
    def to_beat(self) -> float:
        """The better baseline's kappa."""
        return max((row["estimate"] for row in self.baselines), default=math.nan)

    @property
    def evidence(self) -> list[list[str]]:
        """The keys of the rows."""
        rows = (self.difference, self.kappa, self.binary, self.coverage, *self.baselines)
        keyed = [dict(row) for row in rows if row is not None]
        return [[str(row[name]) for name in RESULTS_KEY] for row in keyed]

    @property
    def place(self) -> str:
        """Where the verdict holds."""
        return f" on {self.rubric}" if self.rubric else ""


def judge_graders(
    rows: ResultRows, labels: LabelMatrix, *, margin: float, cluster_noun: str
) -> list[Verdict]:
    """One verdict per grader of a rubric, read off its results rows."""
    return [
        _judge(_case(rows, labels, labels.raters[model], margin, cluster_noun))
        for model in labels.models
    ]


def _case(rows: ResultRows, labels: LabelMatrix, grader: str, margin: float, noun: str) -> _Case:
    """The categories decide; the binary verdict where a grader has no categories."""
    level, subset = labels.scale.level, "all"
    categories = rows.get(CEILING, "humans", grader, "all")
    binary = rows.get(CEILING, "humans", grader, "all" + BINARY)
    if binary and (categories is None or categories["n_units"] == 0):
        level, subset, categories, binary = "nominal", "all" + BINARY, binary, None
    kappa = "cohen_kappa" if level == "nominal" else "weighted_kappa_quadratic"
    baselines = (rows.get(kappa, "humans", name, subset) for name in BASELINES)
    return _Case(
        rubric=labels.scale.name,
        grader=grader,
        n_humans=len(labels.humans),
        margin=margin,
        noun=noun,
        difference=categories,
        kappa=rows.get(kappa, "humans", grader, subset),
        binary=binary,
        baselines=tuple(row for row in baselines if row is not None),
        coverage=rows.get(COVERAGE, "", grader),
    )


def _judge(case: _Case) -> Verdict:
    against, missing = _reasons_against(case), _missing(case)
    judgement: Judgement
    if against:
        judgement = "do_not_use"
        sentence = f"Do not use {case.grader} in place of people{case.place}: "
        sentence += f"{' and '.join(against)}."
    elif missing:
        judgement = "cannot_tell"
        sentence = f"Whether {case.grader} may stand in for people{case.place} cannot be told: "
        sentence += f"{'; '.join(missing)}."
    else:
        judgement = "may_stand_in"
        sentence = f"{case.grader} may stand in for people{case.place}: "
        sentence += f"{_reasons_for(case)}."
        sentence += _binary_caveat(case)
    return Verdict(
        rubric=case.rubric,
        grader=case.grader,
        verdict=judgement,
        sentence=sentence + _not_known(case),
        evidence=case.evidence,
    )


def _reasons_for(case: _Case) -> str:
    rows = [row for row in (case.difference, case.kappa) if row is not None]
    difference, kappa = rows
    return (
        f"{_difference_text(difference, case.noun)}, within the margin of {case.margin:g}; "
        f"{_kappa_text(kappa)}, above both baselines"
    )


def _reasons_against(case: _Case) -> list[str]:
    reasons = []
    if case.difference and case.difference["high"] < -case.margin:
        text = _difference_text(case.difference, case.noun)
        reasons.append(f"{text}, below the margin of {case.margin:g}")
    if case.kappa and case.kappa["high"] <= case.to_beat:
        text = _kappa_text(case.kappa, case.noun)
        reasons.append(f"{text}, no better than a baseline ({case.to_beat:.2f})")
    return reasons


def _missing(case: _Case) -> list[str]:
    """Why the grader has not passed, in plain words; nothing where it has."""
    difference, kappa = case.difference, case.kappa
    if case.n_humans == 0:
        return ["no person has labelled"]
    if difference is None or kappa is None:
        return ["it labelled no unit that a person labelled"]
    if case.n_humans < 2:
        return ["only one person labelled, so how well people agree with each other is not known"]
    if math.isnan(difference["estimate"]):
        return [f"the comparison with people is undefined ({_first_reason(difference)})"]
    if math.isnan(case.to_beat):
        return ["the baselines are undefined, because people used one category only"]
    if math.isnan(difference["low"]) or math.isnan(kappa["low"]):
        row = difference if math.isnan(difference["low"]) else kappa
        return [f"there is no interval ({_first_reason(row)})"]
    missing = []
    if difference["low"] <= -case.margin:
        text = _difference_text(difference, case.noun)
        missing.append(f"{text}, and the margin is {case.margin:g}")
    if kappa["low"] <= case.to_beat:
        missing.append(f"{_kappa_text(kappa)}, not clearly above a baseline ({case.to_beat:.2f})")
    missing += _advice(
        difference["n_clusters"],
        ((difference, -case.margin), (kappa, case.to_beat)) if missing else (),
        case.noun,
    )
    share = case.coverage["estimate"] if case.coverage else 0.0
    if share < MIN_COVERAGE:
        missing.append(
            f"it scored {share:.1%} of what it was asked, and {MIN_COVERAGE:.0%} is needed"
        )
    return missing


def _advice(clusters: int, undecided: tuple[tuple[ResultRow, float], ...], noun: str) -> list[str]:
    """How many more clusters would decide, if anything is undecided or they are too few."""
    wanted = clusters * (_growth(undecided) - 1.0) if undecided else 0.0
    if wanted > _REALISTIC * clusters:
        return [f"no realistic number of {noun}s would decide it if the estimate stays"]
    more = math.ceil(max(wanted, MIN_DECIDING_CLUSTERS - clusters))
    if more <= 0:
        return []
    nouns = noun if more == 1 else f"{noun}s"
    if undecided:
        return [f"label about {more} more {nouns} to decide, if the estimate stays"]
    return [f"{clusters} {noun}s are too few to recommend on; label {more} more {nouns}"]


def _growth(bounds: tuple[tuple[ResultRow, float], ...]) -> float:
    """By what factor the sample must grow until the intervals clear their bounds.

    Intervals narrow with the root of the number of clusters. To pass, all must clear; where an
    estimate lies on the wrong side, one that settles it is enough.
    """
    passing, failing = [1.0], []
    for row, bound in bounds:
        above = row["estimate"] - bound
        if above > 0:
            passing.append(((row["estimate"] - row["low"]) / above) ** 2)
        elif above < 0:
            failing.append(((row["high"] - row["estimate"]) / above) ** 2)
        else:
            failing.append(math.inf)
    return min(failing) if failing else max(passing)


def _binary_caveat(case: _Case) -> str:
    """What a pass on the categories leaves open: a verdict at the threshold that falls short."""
    if case.binary is None or case.binary["low"] > -case.margin:
        return ""
    return f" On the binary verdict this is not shown: {_difference_text(case.binary, case.noun)}."


def _difference_text(row: ResultRow, noun: str) -> str:
    apart = row["estimate"]
    away = f"{abs(apart):.2f} {'above' if apart > 0 else 'below'}"
    return (
        f"its kappa with people is {away} theirs with each other "
        f"(95% interval {_signed(row['low'])} to {_signed(row['high'])}; {_sample(row, noun)})"
    )


def _kappa_text(row: ResultRow, noun: str = "") -> str:
    sample = f"; {_sample(row, noun)}" if noun else ""
    return (
        f"its mean kappa with people is {_signed(row['estimate'])} "
        f"(95% interval {_signed(row['low'])} to {_signed(row['high'])}{sample})"
    )


def _signed(number: float) -> str:
    """Two decimals, and no minus before a zero."""
    return f"{number:z.2f}"


def _sample(row: ResultRow, noun: str) -> str:
    units = f"{row['n_units']} units"
    return units if noun == "unit" else f"{units} in {row['n_clusters']} {noun}s"


def _not_known(case: _Case) -> str:
    """What no interval here covers."""
    if case.n_humans < 2:
        return ""
    people = "two people" if case.n_humans == 2 else f"{case.n_humans} people"
    return (
        f" Not known: whether this holds beside other people than these {people}, "
        "and in every part of the sample."
    )


def _first_reason(row: ResultRow) -> str:
    return row["note"].split(";")[0].replace("_", " ") or "undefined"
