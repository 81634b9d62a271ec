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
from evenhand.analysis.bootstrap.influence import ALPHA, influence, level_of_look
from evenhand.analysis.bootstrap.intervals import Deciding, Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.labels.units import effective_size
from evenhand.analysis.notes import Remark, reason_in_words, says
from evenhand.analysis.requirement import (
    ClusterCounts,
    Reason,
    Requirement,
    Requirements,
    all_met,
    likely_met,
    reasons,
    state_of,
)
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.statistics import shown_apart
from evenhand.analysis.types import Array, Mask
from evenhand.analysis.verdicts import requirements, wording
from evenhand.analysis.verdicts.case import Answers, Case, case_of, keys_of
from evenhand.analysis.verdicts.comparison import (
    HELD_OUT,
    UNTUNED,
    Points,
    Reading,
    readings_of,
    sizes_of,
)
from evenhand.analysis.verdicts.evidence import shared_level
from evenhand.analysis.verdicts.wording import Decision, NextStep
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
    readings = [reading for reading in readings_of(alone) if reading.at != UNTUNED]
    found = [each for reading in readings if (each := _Compared.of(reading, left_out))]
    alpha = level_of_look(look, rule.looks, error)
    level = shared_level([influence(each.kappas) for each in found], len(found), rule, look, error)
    for each in found:
        each.add(rows, alone, alpha, level, rule)


@dataclass(frozen=True)
class _Compared:
    """A grader compared with the `reference`, the only human there is, on one label view: the units
    with `both` labels (units,), and kappa in the data and without each cluster (rows,).
    """

    reading: Reading
    reference: int
    left_out: Resamples
    both: Mask
    kappas: Array

    @classmethod
    def of(cls, reading: Reading, left_out: Resamples) -> _Compared | None:
        """Compare a label view with the reference; None where fewer than 30 units have both labels,
        or kappa is undefined.
        """
        coded, grader, kind = reading.coded, reading.grader, deciding_kappa(reading.coded)
        (reference,) = coded.members("human")
        both = np.asarray(coded.labelled[:, [grader, reference]].all(axis=1))
        if left_out.count(coded.clusters, both)[0] < MIN_SHARED_UNITS:
            return None
        means = KappaMeans(coded, left_out, [kind]).with_rater([reference], grader, both)
        values = means[kind].values
        return (
            cls(reading, reference, left_out, both, values) if np.isfinite(values).all() else None
        )

    def add(
        self,
        rows: ResultRows,
        labels: LabelMatrix,
        alpha: float,
        level: Deciding,
        rule: DecisionSettings,
    ) -> None:
        """Add the rows of this label view of `labels`; the shares' bounds are at `alpha`."""
        coded, grader, reference = self.reading.coded, self.reading.grader, self.reference
        counts = self.left_out.count(coded.clusters, self.both)
        about = self.reading.key | {"rater_a": coded.raters[reference]}
        used = np.bincount(coded.codes[self.both, reference], minlength=coded.q)
        worth = effective_size(sizes_of(coded, self.left_out, self.both))
        kappa = self._bounded(level.alpha, worth).held(replace(level, bar=rule.reference_kappa))
        other = self.both & (coded.codes[:, reference] != used.argmax())
        rarer = Interval.point(float(self.left_out.count(coded.clusters, other)[1]))
        for name, found in ((KAPPA, kappa), (WORTH, Interval.point(worth)), (RARER, rarer)):
            rows.add(name, found, counts, **about)
        if not labels.has_verdicts:
            return
        verdicts = coded if coded.is_binary else labels.on_verdicts()
        about |= {"subset": verdicts.subset}
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
            rows.add(name, found.held(replace(level, bar=bar)), inside, **about)

    def _bounded(self, alpha: float, worth: float) -> Interval:
        """Return kappa with both one-sided bounds, taken at the null."""
        kappa, coded, grader = float(self.kappas[0]), self.reading.coded, self.reading.grader
        if not alpha:
            return Interval(kappa, np.nan, np.nan, (Remark("no_level"),))
        units = np.asarray(coded.labelled[:, grader])
        overlap = Overlap.of(coded, self.left_out, coded.members("human"), units)
        points = Points.of(overlap, self.left_out, [grader])
        return points.at_null(self.kappas, worth).around(kappa, alpha)


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
) -> tuple[Decision, list[list[str]], list[ResultRow]]:
    """The decision, the keys of the rows it rests on, and the grader's kappa with the reference,
    where it has one.
    """
    subset = "all" if rows.get(KAPPA, rule.reference, grader) else BINARY_ALL
    present = _View.of(rows, rule, grader, subset)
    tuned = _View.of(rows, rule, grader, BINARY_ALL, HELD_OUT)
    case = case_of(rows, labels, grader, rule, noun)
    case = replace(case, answers=Answers(case.answers.coverage))
    decision = _decide(case, present, tuned)
    evidence = [row for view in (present, tuned) if view for row in view.rows]
    evidence += [row for row in (case.tuned.advised, case.answers.coverage) if row is not None]
    evidence += case.injection.rows(rule.injection) if case.injection else ()
    evidence += [each.row for each in case.present.biases]
    deciding = present if decision.threshold is None else tuned
    kappa = [row for row, _ in deciding.bars[:1]] if deciding else []
    return decision, keys_of(evidence), kappa


def _agrees(case: Case, view: _View) -> Requirements:
    """Require that a grader, on one view of its labels, agrees with the reference."""
    rule, noun, sample = case.rule, case.noun, view.sample
    counts = requirements.sample_is_enough(sample, rule, noun)
    bars = (_above_bar(*each, noun, decides=all_met(counts)) for each in view.bars)
    return {
        "no_bias": requirements.unbiased(case.present.biases),
        "robust": requirements.robust(case.injection, rule.injection),
        **{row["statistic"]: bar for (row, _), bar in zip(view.bars, bars, strict=True)},
        "answers": requirements.answers_enough(case.answers, rule.min_coverage, noun),
        **counts,
    }


def _above_bar(row: ResultRow, bar: float, noun: str, *, decides: bool) -> Requirement:
    """Require that a figure is clearly above its bar; below it, that `decides` on a sample that is
    large enough.
    """
    state = state_of(met=row["low"] > bar, broken=decides and row["high"] < bar)
    return Requirement(
        state,
        why=lambda: [_figure(row, bar, noun, "bar_missed" if state == "broken" else "bar_open")],
        is_likely=row["estimate"] > bar,
        unsettled=requirements.bound_of(row, bar, row["deciding"] or Deciding()),
    )


def _decide(case: Case, view: _View | None, tuned: _View | None) -> Decision:
    fields = {**case.fields, "reference": case.rule.reference}
    unclear = written("verdict.cannot_tell_reference", **fields)
    if view is None or not view.bars:
        return Decision("cannot_tell", unclear, [wording.plainly("few_shared")])
    if says(view.bars[0][0]["remarks"], "no_level"):
        step = NextStep(kind="look", number=0)
        return Decision("cannot_tell", unclear, [wording.no_level(0)], step=step)
    held = dict(_agrees(case, view))
    if all_met(held):
        return _pass(case, view)
    advised = case.tuned.advised
    is_advised = advised is not None and says(advised["remarks"], "tuned")
    if tuned is not None and is_advised and all_met(_agrees(case, tuned)):
        return _pass(case, tuned, advised)
    told_first = {"answers": held["answers"], **held}
    if against := reasons(told_first, "broken"):
        head = written("verdict.disagrees", **fields)
        return Decision("disagrees_with_reference", head, against)
    sample, promising = view.sample, likely_met(held)
    if sample.clusters < case.rule.min_clusters:  # said with the advice
        del held["enough_clusters"]
    more = sample.more_to_settle(case.rule, held)
    told = wording.advice(sample.clusters, more, case.noun, undecided=True, promising=promising)
    why = [*reasons(held, "open"), *told]
    return Decision("cannot_tell", unclear, why, more or 0, promising=promising)


def _pass(case: Case, view: _View, threshold: ResultRow | None = None) -> Decision:
    at = f" at threshold {threshold['estimate']:.3g}" if threshold else ""
    tuned = threshold["estimate"] if threshold else None
    head = written("verdict.agrees", **case.fields, reference=case.rule.reference, at=at)
    figures = [_figure(row, bar, case.noun, "bars_cleared") for row, bar in view.bars]
    if tuned is not None:
        short = written("short.at_threshold", threshold=tuned)
        figures = [replace(each, short=short) for each in figures]
    limits = [Reason(written("because.reference_only")), Reason(written("limits.parts"))]
    holds_for: wording.HoldsFor = "" if tuned is None else "binary"
    return Decision("agrees_with_reference", head, [*figures, *limits], 0, holds_for, tuned)


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
        return _reason(text, written("short.undefined"))
    ends = {key: shown_apart(row[key], [bar]) for key in _FIGURES}
    alpha = (row["deciding"] or Deciding()).alpha
    text = written(
        "figures.bar",
        name=name,
        estimate=ends["estimate"],
        interval=wording.interval_of(row["low"], row["high"], bar, alpha=alpha),
        sample=wording.sample_of(row, noun if row["n_clusters"] != row["n_units"] else "unit"),
        bar=bar,
    )
    return _reason(text, written(f"short.{short}", name=name, bar=bar, **ends))


def _reason(text: str, short: str) -> Reason:
    return Reason(written("because.reference_figures", figures=text[0].upper() + text[1:]), short)
