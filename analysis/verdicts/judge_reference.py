"""Does a grader agree with the declared reference? Decided from bounds against declared bars.

- *agrees with the reference*: all bars are cleared, on clusters enough of both kinds.
- *disagrees with the reference*: a bar is clearly missed, or answers are missing, or the audit
  found that it errs to one side.
- *cannot tell*: neither; with how many more labels would tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.analysis.bias import Finding, flagged
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.notes import reason_in_words, says
from evenhand.analysis.people.coverage import COVERAGE
from evenhand.analysis.planning.more_clusters import Bound, clusters_to_decide
from evenhand.analysis.results import ResultRow, ResultRows, key_of
from evenhand.analysis.verdicts.against_reference import (
    KAPPA,
    RARER,
    SENSITIVITY,
    SPECIFICITY,
)
from evenhand.analysis.verdicts.case import RECOMMENDED
from evenhand.analysis.verdicts.readings import HELD_OUT, TUNED_FOR
from evenhand.analysis.verdicts.words import Judgement, no_level, too_few_rarer, why_unscored
from evenhand.study.settings.analysis import DecisionSettings

_NAMES = {KAPPA: "kappa", SENSITIVITY: "sensitivity", SPECIFICITY: "specificity"}


@dataclass(frozen=True)
class Bars:
    """One reading of a grader against the reference: rows with the bars they have to clear."""

    rows: tuple[tuple[ResultRow, float], ...]
    rarer: ResultRow

    @classmethod
    def of(
        cls, rows: ResultRows, rule: DecisionSettings, grader: str, subset: str, at: str = ""
    ) -> Bars | None:
        """None where it was not compared."""
        found = []
        for name, bar, own in (
            (KAPPA, rule.reference_kappa, subset),
            (SENSITIVITY, rule.reference_sensitivity, BINARY_ALL),
            (SPECIFICITY, rule.reference_specificity, BINARY_ALL),
        ):
            row = rows.get(name, rule.reference, grader, own, at)
            found += [(row, bar)] if row is not None else []
        rarer = rows.get(RARER, rule.reference, grader, subset, at)
        return cls(tuple(found), rarer) if rarer is not None else None

    @property
    def clusters(self) -> int:
        """Clusters with both labels."""
        return self.rarer["n_clusters"]

    def is_enough(self, rule: DecisionSettings) -> bool:
        """Whether there are clusters enough, and of both kinds."""
        return self.clusters >= rule.min_clusters and self.rarer["estimate"] >= rule.min_rarer

    def passes(self, rule: DecisionSettings) -> bool:
        """Whether all bars are clearly cleared."""
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
) -> tuple[Judgement, str, list[ResultRow], int]:
    """Verdict, sentence, the rows it rests on, and how many more clusters would decide."""
    case = _case(rows, labels, grader, rule, noun)
    judgement, sentence, more = case.decided()
    return judgement, sentence, case.evidence, more


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

    @property
    def evidence(self) -> list[ResultRow]:
        """The rows that the verdict rests on."""
        bars = [each for each in (self.bars, self.held_out) if each is not None]
        rows = [row for each in bars for row in (*(row for row, _ in each.rows), each.rarer)]
        rows += [row for row in (self.advised, self.coverage) if row is not None]
        return list({key_of(row): row for row in (*rows, *(b.row for b in self.biases))}.values())

    def decided(self) -> tuple[Judgement, str, int]:
        """Verdict, sentence and advice."""
        if self.bars is None or not self.bars.rows:
            return "cannot_tell", self._untold(["they share fewer than 30 units"]), 0
        kappa = self.bars.rows[0][0]
        if says(kappa["remarks"], "no_level"):
            return "cannot_tell", self._untold([no_level(0)]), 0
        against = [*self._unanswered(clearly=True), *(each.fault for each in self.biases)]
        if not against and self.bars.passes(self.rule) and not self._unanswered(clearly=False):
            return "agrees_with_reference", self._agrees(self.bars, ""), 0
        if not against and self.held_out is not None and self._at_threshold():
            at = f" at threshold {self.advised['estimate']:.3g}" if self.advised else ""
            return "agrees_with_reference", self._agrees(self.held_out, at), 0
        against += [self._figure(row, bar) for row, bar in self.bars.missed(self.rule)]
        if against:
            sentence = f"{self.grader} does not agree with {self._whom()}: {'; '.join(against)}."
            return "disagrees_with_reference", sentence, 0
        reasons = [self._figure(row, bar) for row, bar in self.bars.open_yet()]
        reasons += self._unanswered(clearly=False)
        if (rarer := self.bars.rarer["estimate"]) < self.rule.min_rarer:
            reasons.append(too_few_rarer(rarer, self.rule.min_rarer, self.noun))
        more = self._more(self.bars)
        reasons.append(
            f"no realistic number of {self.noun}s would decide it if the estimates stay"
            if more is None
            else f"label about {more} more {self.noun}{'' if more == 1 else 's'} to decide"
        )
        return "cannot_tell", self._untold(reasons), more or 0

    def _at_threshold(self) -> bool:
        """Whether a tuned threshold is advised, and verdicts clear the bars at such."""
        tuned = self.advised is not None and says(self.advised["remarks"], "tuned")
        passes = self.held_out is not None and self.held_out.passes(self.rule)
        return tuned and passes and not self._unanswered(clearly=False)

    def _unanswered(self, *, clearly: bool) -> list[str]:
        """That it leaves too much without an answer; or, not clearly, that it may do so."""
        row = self.coverage
        if row is None or row["estimate"] == 1.0:
            return []
        bound = row["high"] if clearly else row["low"]
        if bound >= self.rule.min_coverage or math.isnan(bound):
            return []
        said = "best" if clearly else "worst"
        return [
            f"no answer on {1 - row['estimate']:.0%} of units ({why_unscored(row)}at {said} it "
            f"answers {bound:.1%}, and {self.rule.min_coverage:.0%} is needed)"
        ]

    def _more(self, bars: Bars) -> int | None:
        asked, needed = [], self.rule.min_clusters
        if rarer := bars.rarer["estimate"]:
            needed = max(needed, math.ceil(bars.clusters * self.rule.min_rarer / rarer))
        for row, bar in bars.open_yet():
            alpha, following = next(
                (float(str(each.detail[0])), float(str(each.detail[3])))
                for each in row["remarks"]
                if each.code == "decided_at"
            )
            varies = not says(row["remarks"], "nothing_varies")
            ends = (row["low"], row["estimate"], row["high"])
            asked.append(Bound(*ends, bar, alpha, following, varies))
        if self.coverage is not None and self._unanswered(clearly=False):
            low, estimate, high = (self.coverage[name] for name in ("low", "estimate", "high"))
            asked.append(Bound(low, estimate, high, self.rule.min_coverage))
        return clusters_to_decide(bars.clusters, asked, needed)

    def _agrees(self, bars: Bars, at: str) -> str:
        figures = "; ".join(self._figure(row, bar) for row, bar in bars.rows)
        return (
            f"{self.grader} agrees with {self._whom()}{at}: {figures}. How far people agree with "
            "each other is not known from one reference, so this does not say that it may stand in "
            "for people; and it may not hold in every part of the sample."
        )

    def _untold(self, reasons: list[str]) -> str:
        said = "; ".join(reasons)
        return f"Whether {self.grader} agrees with {self._whom()} cannot be told: {said}."

    def _whom(self) -> str:
        place = f" on {self.rubric}" if self.rubric else ""
        return f"{self.rule.reference} well enough{place}"

    def _figure(self, row: ResultRow, bar: float) -> str:
        name = _NAMES[row["statistic"]]
        if math.isnan(row["estimate"]):
            return f"{name} is undefined ({reason_in_words(row['remarks'])})"
        apart = row["n_clusters"] != row["n_units"]
        sample = f"{row['n_units']} units" + (
            f" in {row['n_clusters']} {self.noun}s" if apart else ""
        )
        return (
            f"{name} {row['estimate']:z.2f} (at worst {row['low']:z.2f}, at best "
            f"{row['high']:z.2f}; {sample}; more than {bar:g} is needed)"
        )


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
    )
