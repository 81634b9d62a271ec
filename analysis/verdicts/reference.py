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

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, KappaMeans, deciding_kappa
from evenhand.analysis.bias import Finding, flagged
from evenhand.analysis.bootstrap.influence import influence, simultaneous_level
from evenhand.analysis.bootstrap.intervals import Deciding, Interval
from evenhand.analysis.bootstrap.looks import level_of_look
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.injection import Audit, audit_of
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.labels.weights import effective_size
from evenhand.analysis.notes import Remark, reason_in_words, says
from evenhand.analysis.people.coverage import COVERAGE, share_bounds
from evenhand.analysis.planning.more_clusters import Bound, clusters_to_decide
from evenhand.analysis.results import ResultRow, ResultRows, key_of
from evenhand.analysis.types import Array
from evenhand.analysis.verdicts.case import RECOMMENDED
from evenhand.analysis.verdicts.comparison import Points, sizes_of
from evenhand.analysis.verdicts.readings import HELD_OUT, TUNED_FOR, UNTUNED, Reading, readings_of
from evenhand.analysis.verdicts.wording import (
    Decision,
    Reason,
    advice,
    bias,
    injected,
    level_of,
    no_level,
    sample_of,
    too_few_rarer,
    why_unscored,
)
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

KAPPA = "reference_kappa"
SENSITIVITY, SPECIFICITY = "reference_sensitivity", "reference_specificity"
RARER = "reference_rarer_clusters"
WORTH = "reference_clusters_worth"


def add_reference_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    rule: DecisionSettings,
    look: int = 1,
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
    alpha, after = (level_of_look(each, rule.looks) for each in (look, look + 1))
    known = [each.apart for each in found if np.ptp(each.apart) > 0]
    together = simultaneous_level(np.column_stack(known), alpha) if known and alpha else alpha
    following = together * after / alpha if alpha else 0.0
    level = Deciding(together, look, len(found), following)
    for each in found:
        each.add(rows, alpha, level)


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
        means = KappaMeans(coded, left_out, [kind]).over([(reference, grader)])
        values = means[kind].values
        return cls(reading, labels, left_out, values) if np.isfinite(values).all() else None

    def add(self, rows: ResultRows, alpha: float, level: Deciding) -> None:
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
        rows.add(KAPPA, found.held(level), counts, **about, subset=coded.subset)
        rows.add(WORTH, Interval.point(worth), counts, **about, subset=coded.subset)
        other = both & (coded.codes[:, reference] != used.argmax())
        rarer = self.left_out.count(coded.clusters, other)[1]
        rows.add(RARER, Interval.point(float(rarer)), counts, **about, subset=coded.subset)
        if not self.labels.has_verdicts:
            return
        verdicts = coded if coded.is_binary else self.labels.on_verdicts()
        for name, code in ((SENSITIVITY, 0), (SPECIFICITY, 1)):
            whole = (verdicts.codes[:, reference] == code) & verdicts.labelled[:, grader]
            part = whole & (verdicts.codes[:, grader] == code)
            sums = self.left_out.cluster_sums(verdicts.clusters, np.column_stack([part, whole]))
            if self.left_out.weight is not None:
                sums = sums * self.left_out.weight[:, None]
            each = self.left_out.each_cluster(sums)
            found = Interval.undefined("no_labels")
            if whole.any() and alpha:
                found = Interval(*share_bounds(each[:, 0], each[:, 1], alpha))
            inside = self.left_out.count(verdicts.clusters, whole)
            rows.add(name, found.held(level), inside, **about, subset=verdicts.subset)

    def _bounded(self, alpha: float, worth: float) -> Interval:
        """Return kappa with both one-sided bounds, taken at the null."""
        if not alpha:
            return Interval(self.kappa, np.nan, np.nan, (Remark("no_level"),))
        points = Points.of(self.reading.coded, self.left_out, [self.reading.grader], pooled=False)
        below, above = points.at_null(self.kappas, worth).reach(alpha)
        return Interval(self.kappa, self.kappa - below, self.kappa + above)


_NAMES = {KAPPA: "kappa", SENSITIVITY: "sensitivity", SPECIFICITY: "specificity"}


@dataclass(frozen=True)
class Bars:
    """Rows of one label view of a grader against the reference, each with its bar to clear."""

    rows: tuple[tuple[ResultRow, float], ...]
    rarer: ResultRow
    worth: ResultRow

    @classmethod
    def of(
        cls, rows: ResultRows, rule: DecisionSettings, grader: str, subset: str, at: str = ""
    ) -> Bars | None:
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
    def clusters(self) -> int:
        """Clusters with both labels."""
        return self.rarer["n_clusters"]

    def is_enough(self, rule: DecisionSettings) -> bool:
        """Return True if there are enough clusters, and of both kinds."""
        worth = math.ceil(self.worth["estimate"] - 1e-9)
        return worth >= rule.min_clusters and self.rarer["estimate"] >= rule.min_rarer

    def passes(self, rule: DecisionSettings) -> bool:
        """Return True if all bars are clearly cleared."""
        return self.is_enough(rule) and all(row["low"] > bar for row, bar in self.rows)

    def missed(self, rule: DecisionSettings) -> list[tuple[ResultRow, float]]:
        """Bars that are clearly missed."""
        if not self.is_enough(rule):
            return []
        return [(row, bar) for row, bar in self.rows if row["high"] < bar]

    def open_yet(self) -> list[tuple[ResultRow, float]]:
        """Bars that are not clearly cleared."""
        return [(row, bar) for row, bar in self.rows if not row["low"] > bar]


def judge_against_reference(
    rows: ResultRows, labels: LabelMatrix, grader: str, rule: DecisionSettings, noun: str
) -> tuple[Decision, list[ResultRow], ResultRow | None]:
    """The decision, the rows it rests on, and the grader's kappa with the reference."""
    case = _case(rows, labels, grader, rule, noun)
    decision = case.decided()
    bars = case.bars if decision.threshold is None else case.held_out
    rows_of = bars.rows if bars else ()
    return decision, case.evidence, next((row for row, _ in rows_of), None)


@dataclass(frozen=True)
class _Case:
    rubric: str
    grader: str
    rule: DecisionSettings
    noun: str
    bars: Bars | None
    held_out: Bars | None
    advised: ResultRow | None
    coverage: ResultRow | None
    biases: tuple[Finding, ...]
    injection: Audit | None

    @property
    def evidence(self) -> list[ResultRow]:
        """The rows that the verdict rests on."""
        bars = [each for each in (self.bars, self.held_out) if each is not None]
        rows = [
            row for each in bars for row in (*(row for row, _ in each.rows), each.rarer, each.worth)
        ]
        rows += [row for row in (self.advised, self.coverage) if row is not None]
        rows += self.injection.rows(self.rule.injection) if self.injection else ()
        return list({key_of(row): row for row in (*rows, *(b.row for b in self.biases))}.values())

    def decided(self) -> Decision:
        """Verdict, reasons and advice."""
        if self.bars is None or not self.bars.rows:
            few = Reason(written("because.few_shared"), written("short.few_shared"))
            return self._untold([few])
        if says(self.bars.rows[0][0]["remarks"], "no_level"):
            return self._untold([no_level(0)])
        against = [*self._unanswered(clearly=True), *(bias(each) for each in self.biases)]
        if self.injection and self.injection.fails(self.rule.injection):
            against += injected(self.injection, self.rule.injection)
        if not against and self.bars.passes(self.rule) and not self._unanswered(clearly=False):
            return self._agrees(self.bars)
        if not against and self.held_out is not None and self._at_threshold():
            return self._agrees(self.held_out, self.advised)
        against += [
            self._figure(row, bar, "bar_missed") for row, bar in self.bars.missed(self.rule)
        ]
        if against:
            head = written("verdict.disagrees", **self._fields)
            return Decision("disagrees_with_reference", head, against)
        reasons = [self._figure(row, bar, "bar_open") for row, bar in self.bars.open_yet()]
        reasons += self._unanswered(clearly=False)
        if (rarer := self.bars.rarer["estimate"]) < self.rule.min_rarer:
            reasons.append(too_few_rarer(rarer, self.rule.min_rarer, self.noun))
        more = self._more(self.bars)
        promising = all(row["estimate"] > bar for row, bar in self.bars.open_yet())
        reasons += advice(self.bars.clusters, more, self.noun, undecided=True, promising=promising)
        return replace(self._untold(reasons, more or 0), promising=promising)

    def _at_threshold(self) -> bool:
        """Return True if a tuned threshold is advised, and verdicts at held-out thresholds clear
        the bars.
        """
        tuned = self.advised is not None and says(self.advised["remarks"], "tuned")
        passes = self.held_out is not None and self.held_out.passes(self.rule)
        return tuned and passes and not self._unanswered(clearly=False)

    def _unanswered(self, *, clearly: bool) -> list[Reason]:
        """Return a reason if the grader clearly leaves too many units without an answer; unless
        `clearly`, if that is possible.
        """
        row = self.coverage
        if row is None or row["estimate"] == 1.0:
            return []
        bound = row["high"] if clearly else row["low"]
        if bound >= self.rule.min_coverage or math.isnan(bound):
            return []
        missing, why, needed = 1 - row["estimate"], why_unscored(row), self.rule.min_coverage
        short = written("short.no_answer", missing=missing)
        if clearly:
            sample = sample_of(row, self.noun)
            fields = {"missing": missing, "sample": sample, "most": bound}
            return [Reason(written("because.no_answer", why=why, needed=needed, **fields), short)]
        fields = {"share": row["estimate"], "least": bound}
        return [Reason(written("because.may_leave_out", why=why, needed=needed, **fields), short)]

    def _more(self, bars: Bars) -> int | None:
        asked, worth = [], max(bars.worth["estimate"], 1.0)
        needed = math.ceil(bars.clusters * self.rule.min_clusters / worth - 1e-9)
        if rarer := bars.rarer["estimate"]:
            needed = max(needed, math.ceil(bars.clusters * self.rule.min_rarer / rarer))
        for row, bar in bars.open_yet():
            level = row["deciding"] or Deciding()
            varies = not says(row["remarks"], "nothing_varies")
            ends = (row["low"], row["estimate"], row["high"])
            asked.append(Bound(*ends, bar, level.alpha, level.next_alpha, varies))
        if self.coverage is not None and self._unanswered(clearly=False):
            low, estimate, high = (self.coverage[name] for name in ("low", "estimate", "high"))
            asked.append(Bound(low, estimate, high, self.rule.min_coverage))
        return clusters_to_decide(bars.clusters, asked, needed)

    def _agrees(self, bars: Bars, threshold: ResultRow | None = None) -> Decision:
        at = f" at threshold {threshold['estimate']:.3g}" if threshold else ""
        tuned = threshold["estimate"] if threshold else None
        head = written("verdict.agrees", **self._fields, at=at)
        figures = [self._figure(row, bar, "bars_cleared") for row, bar in bars.rows]
        if tuned is not None:
            short = written("short.at_threshold", threshold=tuned)
            figures = [replace(each, short=short) for each in figures]
        reasons = [
            *figures,
            Reason(written("because.reference_only")),
            Reason(written("limits.parts")),
        ]
        return Decision(
            "agrees_with_reference",
            head,
            reasons,
            holds_for="" if tuned is None else "binary",
            threshold=tuned,
        )

    def _untold(self, reasons: list[Reason], more: int = 0) -> Decision:
        head = written("verdict.cannot_tell_reference", **self._fields)
        return Decision("cannot_tell", head, reasons, more)

    @property
    def _fields(self) -> dict[str, object]:
        """Fields that fill the verdict's sentence."""
        place = f" on {self.rubric}" if self.rubric else ""
        return {"grader": self.grader, "reference": self.rule.reference, "place": place}

    def _figure(
        self, row: ResultRow, bar: float, short: Literal["bars_cleared", "bar_missed", "bar_open"]
    ) -> Reason:
        name = _NAMES[row["statistic"]]
        if math.isnan(row["estimate"]):
            why = reason_in_words(row["remarks"])
            text = written("figures.bar_undefined", name=name, why=why)
            return Reason(_sentence(text), written("short.undefined"))
        ends = {key: row[key] for key in _FIGURES}
        text = written(
            "figures.bar",
            name=name,
            level=level_of((row["deciding"] or Deciding()).alpha),
            sample=sample_of(row, self.noun if row["n_clusters"] != row["n_units"] else "unit"),
            bar=bar,
            **ends,
        )
        return Reason(_sentence(text), written(f"short.{short}", name=name, bar=bar, **ends))


_FIGURES: tuple[Literal["estimate"], Literal["low"], Literal["high"]] = ("estimate", "low", "high")


def _sentence(text: str) -> str:
    return written("because.reference_figures", figures=text[0].upper() + text[1:])


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
        bars=Bars.of(rows, rule, grader, subset),
        held_out=Bars.of(rows, rule, grader, BINARY_ALL, HELD_OUT),
        advised=rows.get(RECOMMENDED, "humans", grader, BINARY_ALL, TUNED_FOR),
        coverage=rows.get(COVERAGE, "", grader),
        biases=tuple(flagged(rows, grader, rule.bias_bound)),
        injection=audit_of(rows.rows.values(), grader),
    )
