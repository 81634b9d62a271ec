"""Has a grader changed since its baseline? Decided from bounds against the drift margin.

- *unchanged*: its kappa with people moved by less than the margin, either way.
- *changed*: it moved by more than the margin, or answers are missing.
- *cannot tell*: neither; with how many more units would tell.

The same units and people are on both sides, so that the change is paired: what makes a unit hard
moves both kappas alike and drops out. A verdict is two one-sided tests of the change in kappa with
people (Schuirmann 1987), with the bounds of other verdicts (`analysis.bootstrap.score`): a grader
that repeats nearly all of its labels gets a bound on how many it may have changed unseen.
`python -m benchmarks.drift` shows how often verdicts are wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    deciding_kappa,
    mean_over_pairs,
    pair_statistics,
    shared_units,
)
from evenhand.analysis.bootstrap.influence import reach
from evenhand.analysis.bootstrap.intervals import Deciding, Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.matrix import BINARY, Coded, LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.weights import with_weights
from evenhand.analysis.notes import reason_in_words
from evenhand.analysis.people.coverage import share_bounds, unscored_remark
from evenhand.analysis.planning.more_clusters import (
    REALISTIC,
    Bound,
    clusters_to_decide,
    surer_level,
)
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.types import Array, Frequency
from evenhand.analysis.verdicts.comparison import Beside, Comparison, Points
from evenhand.analysis.verdicts.readings import Reading
from evenhand.analysis.verdicts.wording import (
    advice,
    level_of,
    sample_of,
    signed,
    too_few_rarer,
    too_few_worth,
    why_unscored,
)
from evenhand.analysis.writer import Writer
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd


LEVEL = 0.02
"""Nominal error rate of a one-sided bound. The rest of 2.5% is kept for samples so unbalanced that
bounds miss a little more often than they should."""
_LEVEL = Deciding(LEVEL, next_alpha=LEVEL)
DRIFT = "drift"
KAPPA_BEFORE = "drift_kappa_before"
ANSWERED = "drift_answered"
RARER = "drift_rarer_clusters"
WORTH = "drift_clusters_worth"
NEEDED = "drift_clusters_to_decide"
KAPPA_CHANGE = "kappa_change"
RATE_CHANGE = "rate_change"


@dataclass(frozen=True)
class Versions:
    """Rater names of a grader's earlier and present grades."""

    before: str
    after: str


def paired_labels(
    ratings: pd.DataFrame, units: pd.DataFrame | None, scale: Scale, versions: Versions
) -> LabelMatrix:
    """The labels of one rubric: `ratings` are those of people and of both versions, which are read
    at the threshold of the later one; `units` have the clusters as `cluster_id`.
    """
    threshold = scale.threshold_for(versions.after)
    both = {versions.before: threshold, versions.after: threshold}
    scale = replace(scale, thresholds=both, tunings={})
    return encode(combine_readings(ratings, scale), scale, with_weights(units, ratings), "pair")


def drift_rows(
    labels: LabelMatrix,
    versions: Versions,
    settings: AnalysisSettings,
    rule: DecisionSettings,
    seed: int,
) -> ResultRows:
    """Return the rows of one rubric, from `paired_labels`.

    `drift` is the change in mean kappa with people, `drift_kappa_before` that kappa before: `low`
    and `high` are one-sided bounds, each at `LEVEL`. So are those of `drift_answered`, the share of
    the units answered before that have an answer now. Further rows have 95% intervals from the same
    resamples: both kappas with people, `kappa_change`, and where there is a binary verdict
    `rate_change`, the change in the share of affirmative ones; and how far the grader agrees with
    itself, `observed_agreement` and kappa. All but `drift_answered` are on the units with a label
    in both versions. Only `drift_answered` is given where they share fewer than 30 units with
    people.
    """
    labels, frequency = labels.folded()
    rows = ResultRows(labels.scale.name)
    rows.heaviest = float(labels.people_weight.max(initial=1.0))
    _add_answered(rows, labels, frequency, versions)
    paired = _Paired.of(labels, frequency, versions, margin_of(rule, settings))
    if paired is None:
        return rows
    rows.know_chance(paired.coded, paired.left_out)
    paired.add_deciding(rows)
    rng = np.random.default_rng(seed)
    drawn = Resamples(frequency, settings.resamples, rng, settings.interval, labels.weight)
    paired.add_beside(rows, labels, drawn)
    return rows


def margin_of(rule: DecisionSettings, settings: AnalysisSettings) -> float:
    """Largest change in kappa of a grader that counts as unchanged."""
    return rule.drift_margin or settings.margin


def _add_answered(
    rows: ResultRows, labels: LabelMatrix, frequency: Frequency, versions: Versions
) -> None:
    before, after = (labels.raters.index(name) for name in (versions.before, versions.after))
    asked = labels.scored[:, before]
    shared = Resamples(frequency, 0, np.random.default_rng(0))
    parts = np.column_stack([labels.scored[:, after] & asked, asked])
    sums = np.repeat(shared.cluster_sums(labels.clusters, parts), frequency, axis=0)
    counts = shared.count(labels.clusters, asked)
    found = Interval(*share_bounds(sums[:, 0], sums[:, 1], LEVEL))
    note = unscored_remark(labels, after, shared)
    about = {"rater_a": versions.before, "rater_b": versions.after}
    rows.add(ANSWERED, found.held(_LEVEL), counts, **about, subset="all", note=note)


@dataclass(frozen=True)
class _Paired:
    """Comparisons of both versions with people, on one label view and the units in both."""

    coded: Coded
    left_out: Resamples
    before: Comparison
    after: Comparison
    at: tuple[int, int]
    margin: float

    @classmethod
    def of(
        cls, labels: LabelMatrix, frequency: Frequency, versions: Versions, margin: float
    ) -> _Paired | None:
        """Compare both versions with people; None where people share too few units with the two."""
        at = labels.raters.index(versions.before), labels.raters.index(versions.after)
        gives_categories = (labels.codes[:, list(at)] >= 0).any(axis=0).all()
        coded = labels.on_categories()
        if not gives_categories and labels.has_verdicts:
            coded = labels.on_verdicts()
        both = coded.labelled[:, list(at)].all(axis=1)
        codes = coded.codes.copy()
        codes[~both] = -1
        coded = replace(coded, codes=codes, copies=())
        people = list(coded.members("human"))
        labelled = np.bincount(
            coded.clusters, coded.labelled[:, people].any(axis=1), minlength=len(frequency)
        )
        counted = np.where(labelled > 0, frequency, 0)
        left_out = Resamples(counted, 0, np.random.default_rng(0), "bca", labels.weight)
        beside = Beside(left_out, margin)
        found = [beside.compared(Reading(coded, grader), to_beat=0.0) for grader in at]
        before, after = found
        if before is None or after is None:
            return None
        return cls(coded, left_out, before, after, at, margin)

    def add_deciding(self, rows: ResultRows) -> None:
        """Add the rows that the verdict rests on."""
        values = self.after.kappas - self.before.kappas
        names = [self.coded.raters[each] for each in self.at]
        about = {"subset": self.coded.subset, "rater_b": names[1]}
        found, needed = self._change(values)
        counts, at_margin = self.after.counts, replace(_LEVEL, margin=self.margin)
        rows.add(DRIFT, found.held(at_margin), counts, rater_a=names[0], **about)
        kappa = _bounded(self.before.excess, self.before.above)
        kept = {"rater_a": "humans", "rater_b": names[0], "subset": self.coded.subset}
        rows.add(KAPPA_BEFORE, kappa.held(_LEVEL), counts, **kept)
        counted = {RARER: self.after.rarer, WORTH: self.after.worth}
        if needed is not None:
            counted[NEEDED] = needed
        for name, number in counted.items():
            rows.add(name, Interval.point(number), counts, rater_a=names[0], **about)

    def _change(self, values: Array) -> tuple[Interval, float | None]:
        """The change in kappa, `values` (rows,) in the data and without each cluster, with bounds
        taken at the null: labels that the grader might have changed are there with their weight.
        And how many clusters, the present ones among them, would show in 80% of studies that it
        stays within the margin, if the estimates stay; None where that is shown or looks wrong.
        """
        if not np.isfinite(values).all():
            return Interval.undefined("no_variation"), None
        change, pooled = float(values[0]), self.after.pooled
        points = Points.of(self.coded, self.left_out, self.at[::-1], pooled=pooled)
        tested = points.at_null(values, self.after.worth)
        below, above = tested.reach(LEVEL)
        found = Interval(change, change - below, change + above)
        if not abs(change) < self.margin or max(-found.low, found.high) < self.margin:
            return found, None
        surer = surer_level(LEVEL)
        factors = [
            each.growth(-self.margin, surer, 1.0 + REALISTIC)
            for each in (tested, tested.mirrored())
        ]
        return found, math.ceil(max(factors) * self.after.counts[1]) if max(
            factors
        ) < math.inf else None

    def add_beside(self, rows: ResultRows, labels: LabelMatrix, drawn: Resamples) -> None:
        """Add the rows shown with the verdict, from the same resamples: kappas, their change,
        agreement of the versions with each other, and the change in the affirmative rate.
        """
        coded, (before, after) = self.coded, self.at
        out, names = Writer.of(rows, coded, drawn), [coded.raters[each] for each in self.at]
        both = np.asarray(coded.labelled[:, list(self.at)].all(axis=1))
        shared = shared_units(coded, drawn, both)[before]
        people = [each for each in coded.members("human") if shared[each] >= MIN_SHARED_UNITS]
        kind = deciding_kappa(coded)
        kappas = KappaMeans(coded, drawn, [kind])
        with_people = [kappas.over([(each, own) for each in people])[kind] for own in self.at]
        for name, mean in zip(names, with_people, strict=True):
            out.add(kind, mean.values, both, a="humans", b=name, undefined=mean.undefined)
        first, second = with_people
        lost = max(first.undefined, second.undefined)
        apart = second.values - first.values
        out.add(KAPPA_CHANGE, apart, both, a=names[0], b=names[1], undefined=lost)
        panel = pair_statistics(coded)
        own = {name: panel[name] for name in ("observed_agreement", kind)}
        for name, mean in mean_over_pairs(coded, [(before, after)], drawn, own).items():
            out.add(name, mean.values, both, a=names[0], b=names[1], undefined=mean.undefined)
        if labels.has_verdicts:
            verdicts = labels.on_verdicts()
            said = [np.asarray(verdicts.codes[:, each] == 0) for each in self.at]
            shift = out.share(said[1] * 1.0 - said[0], both)
            out.on(verdicts.subset).add(RATE_CHANGE, shift, both, a=names[0], b=names[1])


def _bounded(estimate: float, contributions: Array) -> Interval:
    """Return a kappa with both one-sided bounds."""
    if math.isnan(estimate) or not np.ptp(contributions) > 0:
        return Interval(estimate, estimate, estimate)
    low, high = reach(contributions, LEVEL), reach(-contributions, LEVEL)
    return Interval(estimate, estimate - low, estimate + high)


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
