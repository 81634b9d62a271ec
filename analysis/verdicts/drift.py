"""Has a grader changed since its baseline? Decided from bounds against the drift margin.

- *unchanged*: its kappa with people moved by less than the margin, either way.
- *changed*: it moved by more than the margin, or answers are missing.
- *inconclusive*: neither; with how many more units would tell.

The same units and people are on both sides, so that the change is paired: what makes a unit hard
moves both kappas alike and drops out. A verdict is two one-sided tests of the change in kappa with
people (Schuirmann 1987), with the bounds of other verdicts (`analysis.bootstrap.bounds`): a grader
that repeats nearly all of its labels gets a bound on how many it may have changed unseen.
`python -m benchmarks.drift` shows how often verdicts are wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    Overlap,
    deciding_kappa,
    mean_over_pairs,
    pair_statistics,
)
from evenhand.analysis.bootstrap.bounds import influence, reach
from evenhand.analysis.bootstrap.intervals import Deciding, Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, with_weights
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.people.disagreements import unscored_remark
from evenhand.analysis.requirement import (
    Bound,
    ClusterCounts,
    Reason,
    Requirement,
    Requirements,
    all_met,
    reasons,
    state_of,
    surer_level,
)
from evenhand.analysis.results import ResultRow, ResultRows, sample_of
from evenhand.analysis.statistics import reason_in_words, shown_apart
from evenhand.analysis.types import Array, DataFrame, Frequency
from evenhand.analysis.verdicts.comparison import AtNull, Comparator, Comparison, Points, Reading
from evenhand.analysis.verdicts.evidence import Answers
from evenhand.analysis.verdicts.requirements import answers_enough, bound_of, sample_is_enough
from evenhand.analysis.verdicts.wording import advice, interval_of, signed
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
MINORITY = "drift_rarer_clusters"
EFFECTIVE = "drift_clusters_worth"
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


@dataclass(frozen=True)
class DriftEvidence:
    """The evidence on a drift: the rows of the change in kappa with people and of the kappa
    `before`; of the agreement of both versions with each other (`same`) and of the change in how
    often the grader affirms (`rate`), where known; the sample; and how many clusters would show
    that kappa stays within the margin (`needed`).
    """

    change: ResultRow
    before: ResultRow
    sample: ClusterCounts
    margin: float
    needed: float = math.inf
    same: ResultRow | None = None
    rate: ResultRow | None = None


def drift_rows(
    labels: LabelMatrix,
    versions: Versions,
    settings: AnalysisSettings,
    rule: DecisionSettings,
    seed: int,
) -> tuple[ResultRows, Answers, DriftEvidence | None]:
    """Return the rows of one rubric, from `paired_labels`, and the evidence in them.

    `drift` is the change in mean kappa with people, `drift_kappa_before` that kappa before: `low`
    and `high` are one-sided bounds, each at `LEVEL`. So are those of `drift_answered`, the share of
    the units answered before that have an answer now. Further rows have 95% intervals from the same
    resamples: both kappas with people; where there is a binary label `rate_change`, the change in
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
    sums = shared.by_cluster(labels.clusters, parts)
    answered = Interval(*share_bounds(sums[:, 0], sums[:, 1], LEVEL))
    note, about = unscored_remark(labels, after, shared), {"subset": "all"}
    about |= {"rater_a": versions.before, "rater_b": versions.after}
    counts = shared.count(labels.clusters, asked)
    answers = Answers(rows.added(ANSWERED, answered.held(_LEVEL), counts, **about, note=note))
    paired = Paired.of(labels, frequency, versions, margin_of(rule, settings))
    if paired is None:
        return rows, answers, None
    rows.know_chance(paired.coded, paired.left_out)
    evidence = paired.add_deciding(rows)
    rng = np.random.default_rng(seed)
    drawn = Resamples(frequency, settings.resamples, rng, labels.weight)
    same, rate = paired.add_shown(rows, labels, drawn)
    return rows, answers, replace(evidence, same=same, rate=rate)


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
        of_people = coded.clusters[coded.labelled_by_any(coded.members("human"))]
        data = Resamples(frequency, 0, np.random.default_rng(0), weight=labels.weight)
        left_out = data.left_out(of_people)
        comparator = Comparator(left_out, margin, least=1)
        before, after = (comparator.compared(Reading(coded, grader)) for grader in at)
        if before is None or after is None:
            return None
        return cls(coded, left_out, before, after, at, margin)

    def add_deciding(self, rows: ResultRows) -> DriftEvidence:
        """Add the rows that the verdict rests on."""
        before, after = (self.coded.raters[rater] for rater in self.at)
        about = {"rater_a": before, "rater_b": after, "subset": self.coded.subset}
        shift, needed = self._change(self.after.kappas - self.before.kappas)
        counts, sample = self.after.counts, self.after.sample
        change = rows.added(DRIFT, shift.held(replace(_LEVEL, margin=self.margin)), counts, **about)
        estimate, moves = self.before.baseline_difference, influence(self.before.kappas)
        kappa = Interval(estimate, estimate, estimate)
        if not math.isnan(estimate) and np.ptp(moves) > 0:
            ends = estimate - reach(moves, LEVEL), estimate + reach(-moves, LEVEL)
            kappa = Interval(estimate, *ends)
        with_people = about | {"rater_a": "humans", "rater_b": before}
        kappa_before = rows.added(KAPPA_BEFORE, kappa.held(_LEVEL), counts, **with_people)
        for name, number in ((MINORITY, sample.minority), (EFFECTIVE, sample.effective)):
            rows.add(name, Interval.point(number), counts, **about)
        if needed < math.inf:
            rows.add(NEEDED, Interval.point(needed), counts, **about)
        return DriftEvidence(change, kappa_before, sample, self.margin, needed)

    def _change(self, values: Array) -> tuple[Interval, float]:
        """The change in kappa, `values` (rows,) in the data and without each cluster, with bounds
        taken at the null: labels that the grader might have changed are there with their weight.
        And how many clusters, the present ones among them, would show in 80% of studies that it
        stays within the margin, if the estimates stay; infinite where that is shown or looks wrong.
        """
        if not np.isfinite(values).all():
            return Interval.undefined("no_variation"), math.inf
        tested, change = self.at_null(values), float(values[0])
        bounds = tested.around(change, LEVEL)
        if not abs(change) < self.margin or max(-bounds.low, bounds.high) < self.margin:
            return bounds, math.inf
        both, surer = (tested, tested.mirrored()), surer_level(LEVEL)
        factor = max(statistic.growth(-self.margin, surer) for statistic in both)
        return bounds, math.ceil(factor * self.after.counts[1]) if factor < math.inf else factor

    def at_null(self, values: Array) -> AtNull:
        """The change in kappa, `values` (rows,) as in `_change`, to be bounded at the null."""
        people = self.coded.members("human")
        overlap = Overlap.of(self.coded, self.left_out, people, self.after.units)
        points = Points.of(overlap, self.left_out, self.at[::-1])
        return points.at_null(values, self.after.sample.effective)

    def add_shown(
        self, rows: ResultRows, labels: LabelMatrix, drawn: Resamples
    ) -> tuple[ResultRow | None, ResultRow | None]:
        """Add the rows shown with the verdict, from the same resamples: kappas, agreement of the
        versions with each other, and the change in the affirmative rate. Return those of the
        agreement and of the rate, where known.
        """
        coded, (before, after) = self.coded, self.at
        out, names = View.of(rows, coded, drawn), (coded.raters[before], coded.raters[after])
        both = np.asarray(coded.labelled[:, list(self.at)].all(axis=1))
        people, kind = coded.members("human"), deciding_kappa(coded)
        kappas = KappaMeans(coded, drawn, [kind])
        with_people = [kappas.with_rater(people, own, self.after.units)[kind] for own in self.at]
        for name, mean in zip(names, with_people, strict=True):
            out.add(kind, mean.values, both, a="humans", b=name, undefined=mean.undefined)
        panel = pair_statistics(coded)
        shown = {name: panel[name] for name in ("observed_agreement", kind) if name in panel}
        for name, mean in mean_over_pairs(coded, [(before, after)], drawn, shown).items():
            out.add(name, mean.values, both, a=names[0], b=names[1], undefined=mean.undefined)
        same = rows.get("observed_agreement", *names, coded.subset)
        if not labels.has_verdicts:
            return same, None
        verdicts = labels.on_verdicts()
        affirmed = [np.asarray(verdicts.codes[:, each] == 0) for each in self.at]
        shift = out.share(affirmed[1] * 1.0 - affirmed[0], both)
        out.on(verdicts.subset).add(RATE_CHANGE, shift, both, a=names[0], b=names[1])
        return same, rows.get(RATE_CHANGE, *names, verdicts.subset)


DriftVerdict = Literal["unchanged", "changed", "inconclusive"]


@dataclass(frozen=True)
class Drift:
    """Verdict on whether a grader has changed on one rubric. `sentence` has the verdict with its
    reasons, `more_clusters` is how many more would decide (0 where that is not known or not
    needed), and `rows` are those of `drift_rows`.
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
    scale = labels.scale
    rows, given, evidence = drift_rows(labels, versions, settings, rule, seed)
    noun = "pair" if scale.unit else "cluster"
    answers = answers_enough(given, rule.min_coverage, noun, "drift", LEVEL)
    if evidence is not None and not math.isnan(evidence.change["estimate"]):
        if evidence.change["n_clusters"] == evidence.change["n_units"]:
            noun = "item"
        verdict, why, more = _decide(evidence, answers, rule, noun)
    else:
        undecided = written("drift.few_shared", least=MIN_SHARED_UNITS)
        if evidence is not None:
            reason = reason_in_words(evidence.change["remarks"])
            undecided = written("drift.undefined", why=reason)
        missing = [unmet.sentence for unmet in answers.why()] if answers.is_broken else []
        verdict, why, more = ("changed" if missing else "inconclusive"), [*missing, undecided], 0
    place = f" on {scale.name}" if scale.name else ""
    head = written(f"drift.{verdict}", grader=versions.after, place=place)
    sentence = " ".join([head, *why])
    return Drift(scale.name, versions.after, verdict, sentence, more, tuple(rows.rows.values()))


def _unchanged(
    case: DriftEvidence, answers: Requirement, rule: DecisionSettings, noun: str
) -> Requirements:
    """Require that the grader has not changed by more than the margin, on labels that could show
    it, and had agreed enough for a change to show.
    """
    margin, before = case.margin, case.before
    counts = sample_is_enough(case.sample, rule, noun)
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
    case: DriftEvidence, answers: Requirement, rule: DecisionSettings, noun: str
) -> tuple[DriftVerdict, list[str], int]:
    """Verdict, sentences, and how many more clusters would decide."""
    sample, held = case.sample, dict(_unchanged(case, answers, rule, noun))
    figures = _figures(case, noun)
    if against := reasons(held, "broken"):
        return "changed", [*(reason.sentence for reason in against), *figures], 0
    if all_met(held):
        return "unchanged", figures, 0
    within = held["not_lower"].is_met and held["not_higher"].is_met
    if sample.clusters < rule.min_clusters:  # the advice has it
        del held["enough_clusters"]
    more = sample.more_to_settle(rule, held)
    why = [*reasons(held, "open"), *advice(sample.clusters, more, noun, undecided=not within)]
    return "inconclusive", [*figures, *(reason.sentence for reason in why)], more or 0


def _figures(case: DriftEvidence, noun: str) -> list[str]:
    """Return sentences on the change, on how far the grader agrees with itself, and on a change in
    how often it affirms.
    """
    change, kappa, margin = case.change, case.before["estimate"], case.margin
    ends = change["low"], change["high"], -margin, margin
    sentences = [
        written(
            "drift.figures",
            before=kappa,
            after=kappa + change["estimate"],
            change=signed(change["estimate"]),
            interval=interval_of(*ends, alpha=LEVEL, sign="+"),
            margin=margin,
            sample=sample_of(change, noun),
        )
    ]
    if case.same is not None:
        sentences.append(written("drift.same", same=case.same["estimate"]))
    rate = case.rate
    if rate is not None and (rate["low"] > 0 or rate["high"] < 0):
        name = "affirms_more" if rate["low"] > 0 else "affirms_less"
        low, by, high = (100 * abs(rate[end]) for end in ("low", "estimate", "high"))
        low, high = sorted((low, high))
        sentences.append(written(f"drift.{name}", by=by, low=low, high=high))
    return sentences
