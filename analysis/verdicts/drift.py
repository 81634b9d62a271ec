"""Has a grader changed? Two sets of its grades on the same units, beside the same people's labels.

The same units and people stand on both sides, so that the change is paired: what makes a unit hard
moves both kappas alike and drops out. A verdict is two one-sided tests of the change in kappa with
people (Schuirmann 1987), with the bounds of other verdicts (`analysis.bootstrap.influence`).

A grader that repeats nearly all of its labels leaves the bounds little to go by. Where fewer than
ten clusters changed, they reach at least as far as the clusters that may have changed unseen
(Clopper & Pearson 1934) could move kappa. `python -m benchmarks.drift` shows how often verdicts
are wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    deciding_kappa,
    mean_over_pairs,
    pair_statistics,
    shared_units,
)
from evenhand.analysis.bootstrap.boundary import FEW_CASES
from evenhand.analysis.bootstrap.influence import reach
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.looks import level_of_look
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.matrix import BINARY, Coded, LabelMatrix, encode
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.weights import with_weights
from evenhand.analysis.notes import Remark
from evenhand.analysis.people.coverage import share_bounds
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Frequency
from evenhand.analysis.verdicts.comparison import Beside, Comparison
from evenhand.analysis.verdicts.readings import Reading
from evenhand.analysis.writer import Writer
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings

if TYPE_CHECKING:
    import pandas as pd

LEVEL = level_of_look(1)
"""How often a one-sided bound may miss, 2%: what the first look at a study may spend. The rest is
kept for samples so unbalanced that bounds miss a little more often than they should."""
DRIFT = "drift"
KAPPA_BEFORE = "drift_kappa_before"
ANSWERED = "drift_answered"
RARER = "drift_rarer_clusters"
KAPPA_CHANGE = "kappa_change"
RATE_CHANGE = "rate_change"


@dataclass(frozen=True)
class Versions:
    """What a grader is called in its earlier and in its present grades."""

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
    """The rows of one rubric, from `paired_labels`.

    `drift` is the change in mean kappa with people, `drift_kappa_before` that kappa before: `low`
    and `high` are one-sided bounds, each at `LEVEL`. So are those of `drift_answered`, the share
    of the units of before that have an answer now. Beside them, with 95% intervals from the same
    resamples: both kappas with people, `kappa_change`, and where there is a binary verdict
    `rate_change`, the change in the share of affirmative ones; and how far the grader agrees with
    itself, `observed_agreement` and kappa. All but `drift_answered` are on the units with a label
    in both versions. None but this where they share no unit with 30 labels of a person.
    """
    labels, frequency = labels.folded()
    rows = ResultRows(labels.scale.name)
    rows.heaviest = float(labels.people_weight.max(initial=1.0))
    _add_answered(rows, labels, frequency, versions)
    paired = _Paired.of(labels, frequency, versions, margin_of(rule, settings))
    if paired is None:
        return rows
    rows.know_chance(paired.coded, paired.left_out.mass)
    paired.add_deciding(rows)
    rng = np.random.default_rng(seed)
    drawn = Resamples(frequency, settings.resamples, rng, settings.interval, labels.weight)
    paired.add_beside(rows, labels, drawn)
    return rows


def margin_of(rule: DecisionSettings, settings: AnalysisSettings) -> float:
    """How far kappa may move in a grader that counts as unchanged."""
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
    why = ", ".join(f"{reason} {n}" for reason, n in sorted(labels.reasons[after].items()))
    said = Remark("decided_at", (LEVEL, 1, 1, LEVEL))
    note = (Remark("unscored", (why,)), said) if why else said
    about = {"rater_a": versions.before, "rater_b": versions.after}
    rows.add(ANSWERED, found, counts, **about, subset="all", note=note)


@dataclass(frozen=True)
class _Paired:
    """Both versions on one reading of the labels, on the units that both labelled."""

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
        """None where people share too few units with the two."""
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
        """The rows that the verdict rests on."""
        change = self.after.excess - self.before.excess
        names = [self.coded.raters[each] for each in self.at]
        about = {"subset": self.coded.subset, "rater_b": names[1]}
        said = Remark("decided_at", (LEVEL, 1, 1, LEVEL))
        unseen = self._unseen(rows)
        found = _bounded(change, self.after.above - self.before.above, unseen)
        counts, margin = self.after.counts, Remark("margin", (self.margin,))
        rows.add(DRIFT, found, counts, rater_a=names[0], **about, note=(said, margin))
        kappa = _bounded(self.before.excess, self.before.above, 0.0)
        kept = {"rater_a": "humans", "rater_b": names[0], "subset": self.coded.subset}
        rows.add(KAPPA_BEFORE, kappa, counts, **kept, note=said)
        rarer = Interval.point(self.after.rarer)
        rows.add(RARER, rarer, counts, rater_a=names[0], **about)

    def _unseen(self, rows: ResultRows) -> float:
        """How far kappa could move by the clusters that may have changed beyond those that did."""
        before, after = (self.coded.codes[:, each] for each in self.at)
        _, changed = self.left_out.count(self.coded.clusters, before != after)
        clusters = int(self.after.counts[1] / rows.heaviest)
        if changed >= FEW_CASES or changed >= clusters:
            return 0.0
        from scipy.special import betaincinv

        most = float(betaincinv(changed + 1.0, clusters - changed, 1.0 - LEVEL))
        chance = rows.chance[BINARY if self.coded.is_binary else ""]
        apart = chance.disagreement(deciding_kappa(self.coded))
        return min((most - changed / clusters) / max(apart, 1e-9), 2.0)

    def add_beside(self, rows: ResultRows, labels: LabelMatrix, drawn: Resamples) -> None:
        """What is shown beside the verdict, in the same resamples."""
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


def _bounded(estimate: float, contributions: Array, unseen: float) -> Interval:
    """Both one-sided bounds; they reach at least as far as what may be there unseen."""
    if math.isnan(estimate) or np.isnan(contributions).any():
        return Interval.undefined("no_variation")
    silent = not np.ptp(contributions) > 0
    below, above = (0.0 if silent else reach(sign * contributions, LEVEL) for sign in (1.0, -1.0))
    remarks = (Remark("nothing_varies"),) if silent else ()
    low, high = estimate - max(below, unseen), estimate + max(above, unseen)
    return Interval(estimate, low, high, remarks)
