"""Graders against one rater whose labels count as right: an expert, gold answers, a consensus.

One person does not show how far people agree, so no verdict can say that a grader may replace
people. It can say that the grader agrees with this one, by bars set with the reference. Decided
from bounds:

- *agrees with the reference*: all bars are cleared, on clusters enough of both kinds.
- *disagrees with the reference*: a bar is clearly missed, or answers are missing, or the audit
  found that it errs to one side.
- *cannot tell*: neither; with how many more labels would tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.analysis.agreement.overlap import KappaMeans, Overlap
from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, deciding_kappa
from evenhand.analysis.bias import Finding, flagged
from evenhand.analysis.bootstrap.influence import (
    ALPHA,
    influence,
    level_of_look,
    simultaneous_level,
)
from evenhand.analysis.bootstrap.intervals import Deciding, Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.shares import share_bounds
from evenhand.analysis.injection import Audit, audit_of
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.labels.units import effective_size
from evenhand.analysis.notes import Remark, reason_in_words, says
from evenhand.analysis.people.disagreements import COVERAGE
from evenhand.analysis.planning.more_clusters import Bound
from evenhand.analysis.requirement import (
    ClusterCounts,
    Reason,
    Requirement,
    Requirements,
    all_met,
    likely_met,
    reasons,
    rounded_up,
    state_of,
)
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.statistics import shown_apart
from evenhand.analysis.types import Array
from evenhand.analysis.verdicts.case import RECOMMENDED, Answers
from evenhand.analysis.verdicts.comparison import (
    HELD_OUT,
    TUNED_FOR,
    UNTUNED,
    Points,
    Reading,
    readings_of,
    sizes_of,
)
from evenhand.analysis.verdicts.requirements import (
    answers_enough,
    enough_clusters,
    of_both_kinds,
    robust,
    unbiased,
)
from evenhand.analysis.verdicts.wording import (
    Decision,
    NextStep,
    advice,
    interval_of,
    no_level,
    sample_of,
)
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

KAPPA = "reference_kappa"
SENSITIVITY, SPECIFICITY = "reference_sensitivity", "reference_specificity"
RARER = "reference_rarer_clusters"
WORTH = "reference_clusters_worth"
STATISTICS = (KAPPA, SENSITIVITY, SPECIFICITY, RARER, WORTH)
"""All that `add_reference_rows` adds."""


def add_reference_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    rule: DecisionSettings,
    look: int = 1,
    error: float = ALPHA,
) -> None:
    """Add rows comparing every grader with the reference, and at = "held_out" for thresholds tuned
    on other clusters: `reference_kappa`, and where there is a binary verdict
    `reference_sensitivity` and `reference_specificity`; `reference_rarer_clusters` counts the
    clusters in which the reference chose another category than its commonest,
    `reference_clusters_worth` is their effective number.

    `low` and `high` are one-sided bounds at the level of the verdict: kappa's like those of
    `non_inferiority` and for all graders at once, the shares' by Clopper & Pearson (1934) on the
    effective sample size. A pass needs all three bars cleared, so the three need no correction for
    multiple tests.
    """
    alone = labels.beside_only(rule.reference)
    if not alone.humans or not alone.scored[:, alone.humans[0]].any():
        return
    left_out = resamples.left_out(alone.clusters[alone.scored[:, alone.humans[0]]])
    found = [
        each
        for reading in readings_of(alone)
        if reading.at != UNTUNED and (each := _Compared.of(reading, alone, left_out))
    ]
    alpha, after = (level_of_look(each, rule.looks, error) for each in (look, look + 1))
    known = [each.apart for each in found if np.ptp(each.apart) > 0]
    together = simultaneous_level(np.column_stack(known), alpha) if known and alpha else alpha
    following = together * after / alpha if alpha else 0.0
    level = Deciding(together, look, len(found), following)
    for each in found:
        each.add(rows, alpha, level, rule)


class _Compared:
    """A grader compared with the reference, the only human there is, on one label view."""

    def __init__(
        self, reading: Reading, labels: LabelMatrix, left_out: Resamples, kappas: Array
    ) -> None:
        self.reading, self.labels, self.left_out = reading, labels, left_out
        self.kappa, self.kappas, self.apart = float(kappas[0]), kappas, influence(kappas)

    @classmethod
    def of(cls, reading: Reading, labels: LabelMatrix, left_out: Resamples) -> _Compared | None:
        """Compare a label view with the reference; None where fewer than 30 units have both labels,
        or kappa is undefined.
        """
        coded, grader = reading.coded, reading.grader
        (reference,) = coded.members("human")
        both = coded.labelled[:, grader] & coded.labelled[:, reference]
        if left_out.count(coded.clusters, both)[0] < MIN_SHARED_UNITS:
            return None
        kind = deciding_kappa(coded)
        means = KappaMeans(coded, left_out, [kind]).with_rater([reference], grader, both)
        values = means[kind].values
        return cls(reading, labels, left_out, values) if np.isfinite(values).all() else None

    def add(self, rows: ResultRows, alpha: float, level: Deciding, rule: DecisionSettings) -> None:
        """Add the rows of this label view; the shares' bounds are at `alpha`."""
        coded, grader = self.reading.coded, self.reading.grader
        (reference,) = coded.members("human")
        both = coded.labelled[:, grader] & coded.labelled[:, reference]
        counts = self.left_out.count(coded.clusters, both)
        about = {
            "rater_a": coded.raters[reference],
            "rater_b": coded.raters[grader],
            "at": self.reading.at,
        }
        used = np.bincount(coded.codes[both, reference], minlength=coded.q)
        worth = effective_size(sizes_of(coded, self.left_out, both))
        found = self._bounded(level.alpha, worth)
        at_bar = replace(level, bar=rule.reference_kappa)
        rows.add(KAPPA, found.held(at_bar), counts, **about, subset=coded.subset)
        rows.add(WORTH, Interval.point(worth), counts, **about, subset=coded.subset)
        other = both & (coded.codes[:, reference] != used.argmax())
        rarer = self.left_out.count(coded.clusters, other)[1]
        rows.add(RARER, Interval.point(float(rarer)), counts, **about, subset=coded.subset)
        if not self.labels.has_verdicts:
            return
        verdicts = coded if coded.is_binary else self.labels.on_verdicts()
        for name, code, bar in (
            (SENSITIVITY, 0, rule.reference_sensitivity),
            (SPECIFICITY, 1, rule.reference_specificity),
        ):
            whole = (verdicts.codes[:, reference] == code) & verdicts.labelled[:, grader]
            part = whole & (verdicts.codes[:, grader] == code)
            found = Interval.undefined("no_labels")
            if whole.any() and alpha:
                both = np.column_stack([part, whole])
                parts, wholes = self.left_out.by_cluster(verdicts.clusters, both).T
                found = Interval(*share_bounds(parts, wholes, alpha))
            inside = self.left_out.count(verdicts.clusters, whole)
            found = found.held(replace(level, bar=bar))
            rows.add(name, found, inside, **about, subset=verdicts.subset)

    def _bounded(self, alpha: float, worth: float) -> Interval:
        """Return kappa with both one-sided bounds, taken at the null."""
        if not alpha:
            return Interval(self.kappa, np.nan, np.nan, (Remark("no_level"),))
        coded, grader = self.reading.coded, self.reading.grader
        both = np.asarray(coded.labelled[:, grader])
        overlap = Overlap.of(coded, self.left_out, coded.members("human"), both)
        points = Points.of(overlap, self.left_out, [grader])
        return points.at_null(self.kappas, worth).around(self.kappa, alpha)


@dataclass(frozen=True)
class _View:
    """One label view of a grader beside the reference: rows, each with its bar to clear, and the
    rows of the sample's size.
    """

    bars: tuple[tuple[ResultRow, float], ...]
    rarer: ResultRow
    worth: ResultRow

    @classmethod
    def of(
        cls, rows: ResultRows, rule: DecisionSettings, grader: str, subset: str, at: str = ""
    ) -> _View | None:
        """Collect the rows and their bars; None where the grader was not compared."""
        found = []
        for name, bar, own in (
            (KAPPA, rule.reference_kappa, subset),
            (SENSITIVITY, rule.reference_sensitivity, BINARY_ALL),
            (SPECIFICITY, rule.reference_specificity, BINARY_ALL),
        ):
            row = rows.get(name, rule.reference, grader, own, at)
            found += [(row, bar)] if row is not None else []
        rarer, worth = (rows.get(n, rule.reference, grader, subset, at) for n in (RARER, WORTH))
        return cls(tuple(found), rarer, worth) if rarer is not None and worth is not None else None

    @property
    def rows(self) -> list[ResultRow]:
        """All rows, as evidence."""
        return [*(row for row, _ in self.bars), self.rarer, self.worth]

    @property
    def sample(self) -> ClusterCounts:
        """The sample with both labels."""
        return ClusterCounts(
            self.rarer["n_clusters"], self.worth["estimate"], self.rarer["estimate"]
        )


def judge_against_reference(
    rows: ResultRows, labels: LabelMatrix, grader: str, rule: DecisionSettings, noun: str
) -> tuple[Decision, list[ResultRow], ResultRow | None]:
    """The decision, the rows it rests on, and the grader's kappa with the reference."""
    case = _case(rows, labels, grader, rule, noun)
    decision = _decide(case)
    view = case.present if decision.threshold is None else case.tuned
    bars = view.bars if view else ()
    return decision, case.evidence, next((row for row, _ in bars), None)


@dataclass(frozen=True)
class _Case:
    rubric: str
    grader: str
    rule: DecisionSettings
    noun: str
    present: _View | None
    tuned: _View | None
    advised: ResultRow | None
    answers: Answers
    biases: tuple[Finding, ...]
    injection: Audit | None

    @property
    def evidence(self) -> list[ResultRow]:
        """The rows that the verdict rests on."""
        rows = [row for view in (self.present, self.tuned) if view for row in view.rows]
        rows += [row for row in (self.advised, self.answers.coverage) if row is not None]
        rows += self.injection.rows(self.rule.injection) if self.injection else ()
        return [*rows, *(each.row for each in self.biases)]

    @property
    def fields(self) -> dict[str, object]:
        """Fields that fill the verdict's sentence."""
        place = f" on {self.rubric}" if self.rubric else ""
        return {"grader": self.grader, "reference": self.rule.reference, "place": place}


def _case(
    rows: ResultRows, labels: LabelMatrix, grader: str, rule: DecisionSettings, noun: str
) -> _Case:
    subset = "all"
    if rows.get(KAPPA, rule.reference, grader, "all") is None:
        subset = BINARY_ALL
    return _Case(
        rubric=labels.scale.name,
        grader=grader,
        rule=rule,
        noun=noun,
        present=_View.of(rows, rule, grader, subset),
        tuned=_View.of(rows, rule, grader, BINARY_ALL, HELD_OUT),
        advised=rows.get(RECOMMENDED, "humans", grader, BINARY_ALL, TUNED_FOR),
        answers=Answers(rows.get(COVERAGE, "", grader)),
        biases=tuple(flagged(rows, grader, rule.bias_bound)),
        injection=audit_of(rows.rows.values(), grader),
    )


def _agrees(case: _Case, view: _View) -> Requirements:
    """Require that a grader, on one view of its labels, agrees with the reference."""
    rule, noun, sample = case.rule, case.noun, view.sample
    counts = {
        "both_kinds": of_both_kinds(sample.rarer, rule.min_rarer, noun),
        "enough_clusters": enough_clusters(rounded_up(sample.worth), rule.min_clusters, noun),
    }
    bars = (_above_bar(*each, noun, decides=all_met(counts)) for each in view.bars)
    return {
        "no_bias": unbiased(case.biases),
        "robust": robust(case.injection, rule.injection),
        **{row["statistic"]: bar for (row, _), bar in zip(view.bars, bars, strict=True)},
        "answers": answers_enough(case.answers, rule.min_coverage, noun),
        **counts,
    }


def _above_bar(row: ResultRow, bar: float, noun: str, *, decides: bool) -> Requirement:
    """Require that a figure is clearly above its bar; below it, that `decides` on a sample that is
    large enough.
    """
    state = state_of(met=row["low"] > bar, broken=decides and row["high"] < bar)
    level = row["deciding"] or Deciding()
    return Requirement(
        state,
        why=lambda: [_figure(row, bar, noun, "bar_missed" if state == "broken" else "bar_open")],
        is_likely=row["estimate"] > bar,
        unsettled=Bound(
            row["low"],
            row["estimate"],
            row["high"],
            bar,
            level.alpha,
            level.next_alpha,
            varies=not says(row["remarks"], "nothing_varies"),
        ),
    )


def _decide(case: _Case) -> Decision:
    view, tuned = case.present, case.tuned
    if view is None or not view.bars:
        few = Reason(written("because.few_shared"), written("short.few_shared"))
        return _cannot_tell(case, [few])
    if says(view.bars[0][0]["remarks"], "no_level"):
        return _cannot_tell(case, [no_level(0)], step=NextStep(kind="look", number=0))
    held = dict(_agrees(case, view))
    if all_met(held):
        return _pass(case, view)
    is_advised = case.advised is not None and says(case.advised["remarks"], "tuned")
    if tuned is not None and is_advised and all_met(_agrees(case, tuned)):
        return _pass(case, tuned, case.advised)
    told_first = {"answers": held["answers"], **held}
    if against := reasons(told_first, "broken"):
        head = written("verdict.disagrees", **case.fields)
        return Decision("disagrees_with_reference", head, against)
    sample, promising = view.sample, likely_met(held)
    if sample.clusters < case.rule.min_clusters:  # said with the advice
        del held["enough_clusters"]
    more = sample.more_to_settle(case.rule, held)
    told = advice(sample.clusters, more, case.noun, undecided=True, promising=promising)
    return _cannot_tell(case, [*reasons(held, "open"), *told], more or 0, promising)


def _pass(case: _Case, view: _View, threshold: ResultRow | None = None) -> Decision:
    at = f" at threshold {threshold['estimate']:.3g}" if threshold else ""
    tuned = threshold["estimate"] if threshold else None
    head = written("verdict.agrees", **case.fields, at=at)
    figures = [_figure(row, bar, case.noun, "bars_cleared") for row, bar in view.bars]
    if tuned is not None:
        short = written("short.at_threshold", threshold=tuned)
        figures = [replace(each, short=short) for each in figures]
    limits = [Reason(written("because.reference_only")), Reason(written("limits.parts"))]
    return Decision(
        "agrees_with_reference",
        head,
        [*figures, *limits],
        holds_for="" if tuned is None else "binary",
        threshold=tuned,
    )


def _cannot_tell(
    case: _Case,
    reasons: list[Reason],
    more: int = 0,
    promising: bool = False,
    step: NextStep | None = None,
) -> Decision:
    head = written("verdict.cannot_tell_reference", **case.fields)
    return Decision("cannot_tell", head, reasons, more, promising=promising, step=step)


_NAMES = {KAPPA: "kappa", SENSITIVITY: "sensitivity", SPECIFICITY: "specificity"}
_FIGURES: tuple[Literal["estimate"], Literal["low"], Literal["high"]] = ("estimate", "low", "high")


def _figure(
    row: ResultRow,
    bar: float,
    noun: str,
    short: Literal["bars_cleared", "bar_missed", "bar_open"],
) -> Reason:
    name = _NAMES[row["statistic"]]
    if math.isnan(row["estimate"]):
        why = reason_in_words(row["remarks"])
        text = written("figures.bar_undefined", name=name, why=why)
        return Reason(_sentence(text), written("short.undefined"))
    ends = {key: shown_apart(row[key], [bar]) for key in _FIGURES}
    alpha = (row["deciding"] or Deciding()).alpha
    text = written(
        "figures.bar",
        name=name,
        estimate=ends["estimate"],
        interval=interval_of(row["low"], row["high"], bar, alpha=alpha),
        sample=sample_of(row, noun if row["n_clusters"] != row["n_units"] else "unit"),
        bar=bar,
    )
    return Reason(_sentence(text), written(f"short.{short}", name=name, bar=bar, **ends))


def _sentence(text: str) -> str:
    return written("because.reference_figures", figures=text[0].upper() + text[1:])
