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
from typing import Literal

import numpy as np

from evenhand.analysis.agreement.overlap import KappaMeans, Overlap
from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    deciding_kappa,
    mean_over_pairs,
    pair_statistics,
)
from evenhand.analysis.bootstrap.influence import influence, reach
from evenhand.analysis.bootstrap.intervals import Deciding, Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import BINARY_ALL, Coded, LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import with_weights
from evenhand.analysis.notes import reason_in_words
from evenhand.analysis.people.disagreements import unscored_remark
from evenhand.analysis.planning.more_clusters import Bound, surer_level
from evenhand.analysis.requirement import (
    ClusterCounts,
    Reason,
    Requirement,
    Requirements,
    all_met,
    reasons,
    state_of,
)
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.statistics import share_apart, shown_apart
from evenhand.analysis.types import Array, DataFrame, Frequency
from evenhand.analysis.verdicts.case import Answers
from evenhand.analysis.verdicts.comparison import AtNull, Beside, Comparison, Points, Reading
from evenhand.analysis.verdicts.requirements import bound_of, sample_is_enough, share_answered
from evenhand.analysis.verdicts.wording import advice, interval_of, sample_of, signed, why_unscored
from evenhand.analysis.writer import View
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings
from evenhand.texts import written

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
RATE_CHANGE = "rate_change"


@dataclass(frozen=True)
class Versions:
    """Rater names of a grader's earlier and present grades."""

    before: str
    after: str


def paired_labels(
    ratings: DataFrame, units: DataFrame | None, scale: Scale, versions: Versions
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
    resamples: both kappas with people; where there is a binary verdict `rate_change`, the change in
    the share of affirmative ones; and how far the grader agrees with itself, `observed_agreement`
    and kappa. All but `drift_answered` are on the units with a label
    in both versions. Only `drift_answered` is given where they share fewer than 30 units with
    people.
    """
    labels, frequency = labels.folded()
    rows = ResultRows(labels.scale.name)
    rows.heaviest = float(labels.people_weight.max(initial=1.0))
    before, after = (labels.raters.index(name) for name in (versions.before, versions.after))
    shared, asked = Resamples(frequency, 0, np.random.default_rng(0)), labels.scored[:, before]
    parts = np.column_stack([labels.scored[:, after] & asked, asked])
    sums = np.repeat(shared.cluster_sums(labels.clusters, parts), frequency, axis=0)
    answered = Interval(*share_bounds(sums[:, 0], sums[:, 1], LEVEL)).held(_LEVEL)
    note, about = unscored_remark(labels, after, shared), {"subset": "all"}
    about |= {"rater_a": versions.before, "rater_b": versions.after}
    rows.add(ANSWERED, answered, shared.count(labels.clusters, asked), **about, note=note)
    paired = Paired.of(labels, frequency, versions, margin_of(rule, settings))
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


@dataclass(frozen=True)
class Paired:
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
    ) -> Paired | None:
        """Compare both versions with people; None where people share too few units with the two."""
        at = labels.raters.index(versions.before), labels.raters.index(versions.after)
        coded = labels.view_of(at)
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
        beside = Beside(left_out, margin, least=1)
        found = [beside.compared(Reading(coded, grader), to_beat=0.0) for grader in at]
        before, after = found
        if before is None or after is None:
            return None
        return cls(coded, left_out, before, after, at, margin)

    def add_deciding(self, rows: ResultRows) -> None:
        """Add the rows that the verdict rests on."""
        before, after = (self.coded.raters[each] for each in self.at)
        about = {"rater_a": before, "rater_b": after, "subset": self.coded.subset}
        found, needed = self._change(self.after.kappas - self.before.kappas)
        counts = self.after.counts
        rows.add(DRIFT, found.held(replace(_LEVEL, margin=self.margin)), counts, **about)
        estimate, moves = self.before.excess, influence(self.before.kappas)
        kappa = Interval(estimate, estimate, estimate)
        if not math.isnan(estimate) and np.ptp(moves) > 0:
            ends = estimate - reach(moves, LEVEL), estimate + reach(-moves, LEVEL)
            kappa = Interval(estimate, *ends)
        with_people = about | {"rater_a": "humans", "rater_b": before}
        rows.add(KAPPA_BEFORE, kappa.held(_LEVEL), counts, **with_people)
        for name, number in (
            (RARER, self.after.sample.rarer),
            (WORTH, self.after.sample.worth),
            (NEEDED, needed),
        ):
            if number is not None:
                rows.add(name, Interval.point(number), counts, **about)

    def _change(self, values: Array) -> tuple[Interval, float | None]:
        """The change in kappa, `values` (rows,) in the data and without each cluster, with bounds
        taken at the null: labels that the grader might have changed are there with their weight.
        And how many clusters, the present ones among them, would show in 80% of studies that it
        stays within the margin, if the estimates stay; None where that is shown or looks wrong.
        """
        if not np.isfinite(values).all():
            return Interval.undefined("no_variation"), None
        tested, change = self.at_null(values), float(values[0])
        found = tested.around(change, LEVEL)
        if not abs(change) < self.margin or max(-found.low, found.high) < self.margin:
            return found, None
        surer = surer_level(LEVEL)
        both = (tested, tested.mirrored())
        factor = max(each.growth(-self.margin, surer) for each in both)
        return found, math.ceil(factor * self.after.counts[1]) if factor < math.inf else None

    def at_null(self, values: Array) -> AtNull:
        """The change in kappa, `values` (rows,) as in `_change`, to be bounded at the null."""
        people = self.coded.members("human")
        overlap = Overlap.of(self.coded, self.left_out, people, self.after.units)
        points = Points.of(overlap, self.left_out, self.at[::-1])
        return points.at_null(values, self.after.sample.worth)

    def add_beside(self, rows: ResultRows, labels: LabelMatrix, drawn: Resamples) -> None:
        """Add the rows shown with the verdict, from the same resamples: kappas, agreement of the
        versions with each other, and the change in the affirmative rate.
        """
        coded, (before, after) = self.coded, self.at
        out, names = View.of(rows, coded, drawn), [coded.raters[each] for each in self.at]
        both = np.asarray(coded.labelled[:, list(self.at)].all(axis=1))
        people, kind = coded.members("human"), deciding_kappa(coded)
        kappas = KappaMeans(coded, drawn, [kind])
        with_people = [kappas.with_rater(people, own, self.after.units)[kind] for own in self.at]
        for name, mean in zip(names, with_people, strict=True):
            out.add(kind, mean.values, both, a="humans", b=name, undefined=mean.undefined)
        panel = pair_statistics(coded)
        own = {name: panel[name] for name in ("observed_agreement", kind) if name in panel}
        for name, mean in mean_over_pairs(coded, [(before, after)], drawn, own).items():
            out.add(name, mean.values, both, a=names[0], b=names[1], undefined=mean.undefined)
        if labels.has_verdicts:
            verdicts = labels.on_verdicts()
            said = [np.asarray(verdicts.codes[:, each] == 0) for each in self.at]
            shift = out.share(said[1] * 1.0 - said[0], both)
            out.on(verdicts.subset).add(RATE_CHANGE, shift, both, a=names[0], b=names[1])


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
    labels = replace(labels, scale=replace(labels.scale, ordered=settings.ordered))
    scale, rows = labels.scale, drift_rows(labels, versions, settings, rule, seed)
    answers = _still_answers(rows, versions, rule.min_coverage)
    case = _Case.of(rows, versions, scale, margin_of(rule, settings))
    if case is not None and not math.isnan(case.change["estimate"]):
        verdict, why, more = _decide(case, answers, rule)
    else:
        told = written("drift.few_shared", least=MIN_SHARED_UNITS)
        if case is not None:
            told = written("drift.undefined", why=reason_in_words(case.change["remarks"]))
        missing = [each.sentence for each in answers.why()] if answers.is_broken else []
        verdict, why, more = ("changed" if missing else "cannot_tell"), [*missing, told], 0
    place = f" on {scale.name}" if scale.name else ""
    head = written(f"drift.{verdict}", grader=versions.after, place=place)
    sentence, found = " ".join([head, *why]), tuple(rows.rows.values())
    return Drift(scale.name, versions.after, verdict, sentence, more, found)


@dataclass(frozen=True)
class _Case:
    """The evidence on a drift: the change in kappa and the kappa `before`; the agreement of both
    versions with each other (`same`) and the change in how often the grader affirms (`rate`), where
    known; the sample; how many clusters would show that it stays within the margin (`needed`); and
    what a cluster is called.
    """

    change: ResultRow
    before: ResultRow
    same: ResultRow | None
    rate: ResultRow | None
    sample: ClusterCounts
    needed: float
    noun: str
    margin: float

    @classmethod
    def of(cls, rows: ResultRows, versions: Versions, scale: Scale, margin: float) -> _Case | None:
        """Collect the evidence; None where people share too few units with both versions."""
        pair = versions.before, versions.after

        def row(statistic: str, raters: tuple[str, str] = pair) -> ResultRow | None:
            found = (rows.get(statistic, *raters, subset) for subset in ("all", BINARY_ALL))
            return next((each for each in found if each is not None), None)

        change, before = row(DRIFT), row(KAPPA_BEFORE, ("humans", versions.before))
        rarer, worth, needed = row(RARER), row(WORTH), row(NEEDED)
        if change is None or before is None or rarer is None or worth is None:
            return None
        sample = ClusterCounts(change["n_clusters"], worth["estimate"], rarer["estimate"])
        noun = "pair" if scale.unit else "cluster"
        if change["n_clusters"] == change["n_units"]:
            noun = "unit"
        enough = needed["estimate"] if needed else math.inf
        same, rate = row("observed_agreement"), row(RATE_CHANGE)
        return cls(change, before, same, rate, sample, enough, noun, margin)


def _still_answers(rows: ResultRows, versions: Versions, least: float) -> Requirement:
    """Require that the grader still answers what it answered."""
    answers = Answers(rows.get(ANSWERED, versions.before, versions.after))

    def why() -> list[Reason]:
        share, fewest, most = answers.share
        about = {"why": why_unscored(answers.coverage), "needed": least}
        if most < least:
            at_most = share_apart(most, least)
            return [Reason(written("drift.no_answer", missing=1 - share, most=at_most, **about))]
        at_least = share_apart(fewest, least)
        return [Reason(written("drift.may_leave_out", share=share, least=at_least, **about))]

    return share_answered(answers, least, why, LEVEL)


def _unchanged(case: _Case, answers: Requirement, rule: DecisionSettings) -> Requirements:
    """Require that the grader has not changed by more than the margin, on labels that could show
    it, and had agreed enough for a change to show.
    """
    margin, before = case.margin, case.before
    counts = sample_is_enough(case.sample, rule, case.noun)
    low, estimate, high = case.change["low"], case.change["estimate"], case.change["high"]
    growth = case.needed / case.sample.clusters if abs(estimate) < margin else None

    def moved_less(ends: tuple[float, float, float], sentence: str) -> Requirement:
        state = state_of(met=ends[0] > -margin, broken=all_met(counts) and ends[2] < -margin)
        return Requirement(
            state,
            why=lambda: [Reason(sentence)] if state == "broken" else [],
            is_likely=ends[1] > -margin,
            unsettled=Bound(*ends, -margin, LEVEL, LEVEL, known_growth=growth),
        )

    kappa, least = (shown_apart(before[end], [margin]) for end in ("estimate", "low"))
    hardly = Reason(written("drift.hardly_agreed", kappa=kappa, low=least, margin=margin))
    return {
        "answers": answers,
        "not_lower": moved_less((low, estimate, high), written("drift.lower", margin=margin)),
        "not_higher": moved_less((-high, -estimate, -low), written("drift.higher", margin=margin)),
        **counts,
        "agreed_before": Requirement(
            state_of(met=before["low"] > margin),
            why=lambda: [hardly],
            is_likely=before["estimate"] > margin,
            unsettled=bound_of(before, margin, _LEVEL, either_way=True),
        ),
    }


def _decide(
    case: _Case, answers: Requirement, rule: DecisionSettings
) -> tuple[DriftVerdict, list[str], int]:
    """Verdict, sentences, and how many more clusters would decide."""
    noun, sample, held = case.noun, case.sample, dict(_unchanged(case, answers, rule))
    figures = _figures(case)
    if against := reasons(held, "broken"):
        return "changed", [*(each.sentence for each in against), *figures], 0
    if all_met(held):
        return "unchanged", figures, 0
    within = held["not_lower"].is_met and held["not_higher"].is_met
    if sample.clusters < rule.min_clusters:  # said with the advice
        del held["enough_clusters"]
    more = sample.more_to_settle(rule, held)
    told_of = [*reasons(held, "open"), *advice(sample.clusters, more, noun, undecided=not within)]
    return "cannot_tell", [*figures, *(each.sentence for each in told_of)], more or 0


def _figures(case: _Case) -> list[str]:
    """Return sentences on the change, on how far the grader agrees with itself, and on a change in
    how often it affirms.
    """
    change, kappa, margin = case.change, case.before["estimate"], case.margin
    ends = change["low"], change["high"], -margin, margin
    found = [
        written(
            "drift.figures",
            before=kappa,
            after=kappa + change["estimate"],
            change=signed(change["estimate"]),
            interval=interval_of(*ends, alpha=LEVEL, sign="+"),
            margin=margin,
            sample=sample_of(change, case.noun),
        )
    ]
    if case.same is not None:
        found.append(written("drift.same", same=case.same["estimate"]))
    rate = case.rate
    if rate is not None and (rate["low"] > 0 or rate["high"] < 0):
        name = "affirms_more" if rate["low"] > 0 else "affirms_less"
        low, high = sorted((abs(rate["low"]), abs(rate["high"])))
        found.append(written(f"drift.{name}", by=abs(rate["estimate"]), low=low, high=high))
    return found
