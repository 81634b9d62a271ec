"""Has a grader changed since its baseline? Decided from bounds against the drift margin.

- *unchanged*: its kappa with people moved by less than the margin, either way.
- *changed*: it moved by more than the margin, or answers are missing.
- *cannot tell*: neither; with how many more units would tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS
from evenhand.analysis.labels.matrix import BINARY, LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.notes import reason_in_words
from evenhand.analysis.planning.more_clusters import Bound, clusters_to_decide
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.verdicts.drift import (
    ANSWERED,
    DRIFT,
    KAPPA_BEFORE,
    LEVEL,
    NEEDED,
    RARER,
    RATE_CHANGE,
    WORTH,
    Versions,
    drift_rows,
    margin_of,
)
from evenhand.analysis.verdicts.reasons import (
    advice,
    level_of,
    sample_of,
    signed,
    too_few_rarer,
    too_few_worth,
    why_unscored,
)
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings
from evenhand.texts import written

DriftVerdict = Literal["unchanged", "changed", "cannot_tell"]


@dataclass(frozen=True)
class Drift:
    """Verdict on whether a grader has changed on one rubric.

    `sentence` has the verdict with its reasons, `more_clusters` is how many more would decide (0
    where that is not known or not needed), and `rows` are those of `drift_rows`.
    """

    rubric: str
    grader: str
    verdict: DriftVerdict
    sentence: str
    more_clusters: int
    rows: tuple[ResultRow, ...]


def drift_of(
    labels: LabelMatrix,
    versions: Versions,
    settings: AnalysisSettings,
    rule: DecisionSettings,
    seed: int = SEED,
) -> Drift:
    """Compare two versions of a grader on one rubric (see `drift_rows`) and decide."""
    scale, rows = labels.scale, drift_rows(labels, versions, settings, rule, seed)
    case = _Case(rows, versions, scale, rule, margin_of(rule, settings))
    verdict, reasons, more = case.decided()
    place = f" on {scale.name}" if scale.name else ""
    head = written(f"drift.{verdict}", grader=versions.after, place=place)
    sentence = " ".join([head, *reasons])
    found = tuple(rows.rows.values())
    return Drift(scale.name, versions.after, verdict, sentence, more, found)


@dataclass(frozen=True)
class _Case:
    rows: ResultRows
    versions: Versions
    scale: Scale
    rule: DecisionSettings
    margin: float

    def _row(self, statistic: str, first: str, second: str) -> ResultRow | None:
        for subset in ("all", "all" + BINARY):
            if (found := self.rows.get(statistic, first, second, subset)) is not None:
                return found
        return None

    @property
    def _both(self) -> tuple[str, str]:
        return self.versions.before, self.versions.after

    def decided(self) -> tuple[DriftVerdict, list[str], int]:
        """Verdict, reasons, and how many more clusters would decide."""
        missing = self._missing(clearly=True)
        change = self._row(DRIFT, *self._both)
        if change is None:
            few = written("drift.few_shared", least=MIN_SHARED_UNITS)
            return ("changed" if missing else "cannot_tell"), [*missing, few], 0
        if math.isnan(change["estimate"]):
            why = written("drift.undefined", why=reason_in_words(change["remarks"]))
            return ("changed" if missing else "cannot_tell"), [*missing, why], 0
        noun = self._noun(change)
        figures = [self._figures(change, noun), *self._beside()]
        against = [*missing, *self._moved(change)]
        if against:
            return "changed", [*against, *figures], 0
        doubts = [*self._missing(clearly=False), *self._too_little(change, noun)]
        within = change["low"] > -self.margin and change["high"] < self.margin
        if within and not doubts:
            return "unchanged", figures, 0
        more = self._more(change)
        told = advice(change["n_clusters"], more, noun, undecided=not within)
        return "cannot_tell", [*figures, *doubts, *(each.sentence for each in told)], more or 0

    def _noun(self, row: ResultRow) -> str:
        if row["n_clusters"] == row["n_units"]:
            return "unit"
        return "pair" if self.scale.unit else "cluster"

    def _is_enough(self, change: ResultRow) -> bool:
        """Return True if there are enough clusters for a bound, and of both kinds."""
        return self._worth(change) >= self.rule.min_clusters and self._rarer >= self.rule.min_rarer

    def _worth(self, change: ResultRow) -> int:
        """Effective number of clusters, in clusters of equal size."""
        worth = self._row(WORTH, *self._both)
        return math.ceil(worth["estimate"] - 1e-9) if worth else change["n_clusters"]

    @property
    def _rarer(self) -> float:
        row = self._row(RARER, *self._both)
        return row["estimate"] if row else 0.0

    def _moved(self, change: ResultRow) -> list[str]:
        """Return a sentence if kappa clearly moved by more than the margin."""
        if not self._is_enough(change):
            return []
        if change["high"] < -self.margin:
            return [written("drift.lower", margin=self.margin)]
        return [written("drift.higher", margin=self.margin)] if change["low"] > self.margin else []

    def _too_little(self, change: ResultRow, noun: str) -> list[str]:
        """Reasons why a change within the margin would prove nothing."""
        found = []
        if self._rarer < self.rule.min_rarer:
            found.append(too_few_rarer(self._rarer, self.rule.min_rarer, noun).sentence)
        least, worth = self.rule.min_clusters, self._worth(change)
        if change["n_clusters"] >= least > worth:
            found.append(too_few_worth(worth, least, noun).sentence)
        before = self._row(KAPPA_BEFORE, "humans", self.versions.before)
        if before is not None and not before["low"] > self.margin:
            fields = {"kappa": before["estimate"], "low": before["low"], "margin": self.margin}
            found.append(written("drift.hardly_agreed", **fields))
        return found

    def _missing(self, *, clearly: bool) -> list[str]:
        """Return a sentence if too many units clearly have no answer now; unless `clearly`, if that
        is possible.
        """
        row, needed = self._row(ANSWERED, *self._both), self.rule.min_coverage
        if row is None or row["estimate"] == 1.0:
            return []
        if clearly:
            if row["high"] >= needed:
                return []
            fields = {"missing": 1 - row["estimate"], "most": row["high"]}
            return [written("drift.no_answer", why=why_unscored(row), needed=needed, **fields)]
        if row["low"] >= needed:
            return []
        fields = {"share": row["estimate"], "least": row["low"]}
        return [written("drift.may_leave_out", why=why_unscored(row), needed=needed, **fields)]

    def _figures(self, change: ResultRow, noun: str) -> str:
        before = self._row(KAPPA_BEFORE, "humans", self.versions.before)
        kappa = before["estimate"] if before else math.nan
        return written(
            "drift.figures",
            before=kappa,
            after=kappa + change["estimate"],
            change=signed(change["estimate"]),
            level=level_of(LEVEL),
            low=change["low"],
            high=change["high"],
            margin=self.margin,
            sample=sample_of(change, noun),
        )

    def _beside(self) -> list[str]:
        """Return sentences on how far the grader agrees with itself, and on a change in how often
        it affirms.
        """
        found = []
        same = self._row("observed_agreement", *self._both)
        if same is not None:
            found.append(written("drift.same", same=same["estimate"]))
        rate = self._row(RATE_CHANGE, *self._both)
        if rate is not None and (rate["low"] > 0 or rate["high"] < 0):
            name = "affirms_more" if rate["low"] > 0 else "affirms_less"
            ends = sorted(abs(rate[end]) for end in _ENDS)
            by = abs(rate["estimate"])
            found.append(written(f"drift.{name}", by=by, low=ends[0], high=ends[1]))
        return found

    def _more(self, change: ResultRow) -> int | None:
        """Number of further clusters that would decide; None if no realistic number would."""
        low, estimate, high = change["low"], change["estimate"], change["high"]
        clusters, margin = change["n_clusters"], self.margin
        needed = math.ceil(clusters * self.rule.min_clusters / max(self._worth(change), 1))
        if self._rarer:
            needed = max(needed, math.ceil(clusters * self.rule.min_rarer / self._rarer))
        sides = [(low, estimate, high), (-high, -estimate, -low)]
        needed_row, growth = self._row(NEEDED, *self._both), None
        if abs(estimate) < margin:
            growth = needed_row["estimate"] / clusters if needed_row else math.inf
        asked = [
            Bound(*each, -margin, LEVEL, LEVEL, known_growth=growth)
            for each in sides
            if not each[0] > -margin
        ]
        before = self._row(KAPPA_BEFORE, "humans", self.versions.before)
        if before is not None and not before["low"] > margin:
            ends = (before["low"], before["estimate"], before["high"])
            asked.append(Bound(*ends, margin, LEVEL, LEVEL, either_way=True))
        answered = self._row(ANSWERED, *self._both)
        if answered is not None and self._missing(clearly=False):
            ends = (answered["low"], answered["estimate"], answered["high"])
            asked.append(Bound(*ends, self.rule.min_coverage, LEVEL, LEVEL))
        return clusters_to_decide(clusters, asked, needed)


_ENDS: tuple[Literal["low"], Literal["high"]] = ("low", "high")
