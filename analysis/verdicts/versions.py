"""Compare two versions of a grader on the same units, and choose the better of several graders.

The first part (`drift_of`) tests whether a grader has changed by more than the drift margin:

- *unchanged*: its kappa with people changed by less than the margin, up or down.
- *changed*: kappa changed by more than the margin, or labels are missing.
- *inconclusive*: neither, with the number of further units that would decide.

Both versions are compared on the same units with the same people, so that the difficulty of a unit
affects both kappas and cancels out. The verdict is two one-sided tests of the change in kappa with
people (Schuirmann 1987), with the bounds of other verdicts (`analysis.bootstrap.bounds`).
`python -m benchmarks.drift` shows how often verdicts are wrong.

The second part decides whether a new grader is better than the old one. A grader that is tuned to
labels looks better on them than it is, so clusters are split permanently. Candidates are written
from *learn* (training), the best is chosen on *choose* (selection) by successive halving (Jamieson
& Talwalkar 2016), and its gain is bounded on *prove* (test), at the level that this reading of
*prove* may spend. A proof with a small chance of success (`chance_of_proof`) is not begun, which
never makes *better* more likely. `python -m benchmarks.improving` shows how often it is wrong.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from evenhand.analysis import requirement
from evenhand.analysis.agreement import pairs
from evenhand.analysis.bootstrap import bounds
from evenhand.analysis.bootstrap.intervals import Deciding, Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, with_weights
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.people.disagreements import unscored_remark
from evenhand.analysis.results import ResultRow, ResultRows, sample_of
from evenhand.analysis.statistics import reason_in_words, shown_apart
from evenhand.analysis.types import Array, DataFrame, Frequency
from evenhand.analysis.verdicts import comparison
from evenhand.analysis.verdicts.evidence import Answers
from evenhand.analysis.verdicts.requirements import answers_enough, bound_of, sample_is_enough
from evenhand.analysis.verdicts.wording import advice, interval_of, signed
from evenhand.analysis.writer import View
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings
from evenhand.texts import written

# Has the grader changed?

LEVEL = 0.02
"""Nominal error rate of a one-sided bound: below 2.5%, as bounds of very unbalanced samples miss a
little more often than their nominal rate."""
_AT_LEVEL = Deciding(LEVEL, next_alpha=LEVEL)
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


def paired_labels(ratings: DataFrame, units: DataFrame | None, scale: Scale) -> LabelMatrix:
    """Encode the labels of one rubric: `ratings` are those of people and of both versions, whose
    probabilities are read at the scale's thresholds; `units` have the clusters, which are encoded
    as pairs, in `cluster_id`.
    """
    scale = replace(scale, tunings={})
    units = with_weights(units, ratings, "pair")
    return encode(combine_readings(ratings, scale), scale, units, "pair")


@dataclass(frozen=True)
class DriftEvidence:
    """The evidence on a drift. There are rows of the `change` in kappa with people, of kappa
    `before`, and where known of the agreement of both versions with each other and the change in
    the affirmative rate. With `clusters_needed` the change would be shown to be within the margin.
    """

    change: ResultRow
    before: ResultRow
    sample: requirement.ClusterCounts
    margin: float
    clusters_needed: float = math.inf
    self_agreement: ResultRow | None = None
    rate_change: ResultRow | None = None


def drift_rows(
    labels: LabelMatrix,
    versions: Versions,
    settings: AnalysisSettings,
    rule: DecisionSettings,
    seed: int,
) -> tuple[ResultRows, Answers, DriftEvidence | None]:
    """Return the rows of one rubric, from `paired_labels`, and the evidence in them: the share of
    units with a label now, and the evidence on a drift, None if too few units have people's labels.

    `drift` is the change in mean kappa with people, `drift_kappa_before` kappa of the earlier
    version, `drift_answered` the share of the units labelled before that have a label now: `low`
    and `high` are one-sided bounds, each at `LEVEL`. Further rows have 95% intervals from the same
    resamples: both kappas with people, `observed_agreement` and kappa of the versions with each
    other, and `rate_change`, the change in the share of affirmative labels, where there is a binary
    label. All rows but `drift_answered` are on the units with a label in both versions, and are
    only added if people labelled at least 30 of these.
    """
    labels, frequency = labels.folded()  # equal clusters become one, with a frequency
    rows = ResultRows(labels.scale.name)
    rows.heaviest = float(labels.people_weight.max(initial=1.0))  # for widened intervals
    before, after = (labels.raters.index(name) for name in (versions.before, versions.after))
    scored = labels.scored[:, before]
    masks = np.column_stack([labels.scored[:, after] & scored, scored])
    data = Resamples(frequency)  # no draws
    n_both, n_before = data.sums_by_cluster(labels.clusters, masks).T
    answered = Interval(*share_bounds(n_both, n_before, LEVEL)).as_deciding(_AT_LEVEL)
    key = {"rater_a": versions.before, "rater_b": versions.after, "subset": "all"}
    counts = data.count(labels.clusters, scored)
    note = unscored_remark(labels, after, data)
    answers = Answers(rows.added(ANSWERED, answered, counts, **key, note=note))
    paired = VersionComparison.of(labels, frequency, versions, margin_of(rule, settings))
    if paired is None:
        return rows, answers, None
    rows.record_chance(paired.coded, paired.jackknife)  # chance agreement, for widened intervals
    evidence = paired.add_deciding_rows(rows)
    resamples = Resamples(frequency, settings.resamples, np.random.default_rng(seed), labels.weight)
    self_agreement, rate_change = paired.add_descriptive_rows(rows, labels, resamples)
    return rows, answers, replace(evidence, self_agreement=self_agreement, rate_change=rate_change)


def margin_of(rule: DecisionSettings, settings: AnalysisSettings) -> float:
    """Return the largest change in kappa of a grader that counts as unchanged."""
    return rule.drift_margin or settings.margin


@dataclass(frozen=True)
class VersionComparison:
    """Comparisons with people of both versions (`columns` of `coded`), on the units in both."""

    coded: Coded
    jackknife: Resamples
    before: comparison.Comparison
    after: comparison.Comparison
    columns: tuple[int, int]
    margin: float

    @classmethod
    def of(
        cls, labels: LabelMatrix, frequency: Frequency, versions: Versions, margin: float
    ) -> VersionComparison | None:
        """Compare both versions with people; None where people share too few units with the two."""
        columns = labels.raters.index(versions.before), labels.raters.index(versions.after)
        coded = labels.view_of(columns)
        codes = coded.codes.copy()
        codes[~coded.labelled[:, list(columns)].all(axis=1)] = -1
        coded = replace(coded, codes=codes, copies=())  # no human is left out as copied
        with_human = coded.labelled_by_any(coded.members("human"))
        data = Resamples(frequency, weight=labels.weight)  # no draws
        jackknife = data.jackknife_of(coded.clusters[with_human])
        comparator = comparison.Comparator(jackknife, margin, min_people=1)
        views = (comparison.GraderView(coded, column) for column in columns)
        before, after = map(comparator.compare, views)
        if before is None or after is None:
            return None
        return cls(coded, jackknife, before, after, columns, margin)

    def add_deciding_rows(self, rows: ResultRows) -> DriftEvidence:
        """Add the rows that decide the verdict, and return them as evidence."""
        before, after = (self.coded.raters[column] for column in self.columns)
        key = {"rater_a": before, "rater_b": after, "subset": self.coded.subset}
        change, needed = self._change(self.after.kappas - self.before.kappas)
        counts, sample = self.after.counts, self.after.sample
        at_margin = replace(_AT_LEVEL, margin=self.margin)
        change_row = rows.added(DRIFT, change.as_deciding(at_margin), counts, **key)
        estimate, influences = float(self.before.kappas[0]), bounds.influence(self.before.kappas)
        kappa = Interval(estimate, estimate, estimate)
        if not math.isnan(estimate) and np.ptp(influences) > 0:
            below, above = bounds.reach(influences, LEVEL), bounds.reach(-influences, LEVEL)
            kappa = Interval(estimate, estimate - below, estimate + above)
        people_key = key | {"rater_a": "humans", "rater_b": before}
        kappa_before = rows.added(KAPPA_BEFORE, kappa.as_deciding(_AT_LEVEL), counts, **people_key)
        for name, number in ((MINORITY, sample.minority), (EFFECTIVE, sample.effective)):
            rows.add(name, Interval.point(number), counts, **key)
        if needed < math.inf:
            rows.add(NEEDED, Interval.point(needed), counts, **key)
        return DriftEvidence(change_row, kappa_before, sample, self.margin, needed)

    def _change(self, values: Array) -> tuple[Interval, float]:
        """Return the change in kappa with its bounds, and the number of clusters with which 80% of
        studies would show that it is within the margin if the estimates are true; inf if they are
        beyond it, or it is shown. `values` (rows,): the change in the data, then without a cluster.
        """
        if not np.isfinite(values).all():
            return Interval.undefined("no_variation"), math.inf
        score_bounds, change = self.score_bounds(values), float(values[0])
        interval = score_bounds.interval(change, LEVEL)
        if not abs(change) < self.margin or max(-interval.low, interval.high) < self.margin:
            return interval, math.inf
        level = requirement.level_for_power(LEVEL)
        sides = score_bounds, score_bounds.negated()  # not lower, and not higher, by the margin
        growth = max(side.growth(-self.margin, level) for side in sides)
        needed = growth * self.after.sample.clusters
        return interval, math.ceil(needed) if needed < math.inf else needed

    def score_bounds(self, values: Array) -> comparison.ScoreBounds:
        """Return the score bounds of the change, after minus before; `values` as in `_change`."""
        people = self.coded.members("human")
        overlap = pairs.Overlap.of(self.coded, self.jackknife, people, self.after.units)
        support = comparison.Support.of(overlap, self.jackknife, self.columns[::-1])  # after first
        return support.score_bounds(values, self.after.sample.effective)

    def add_descriptive_rows(
        self, rows: ResultRows, labels: LabelMatrix, resamples: Resamples
    ) -> tuple[ResultRow | None, ResultRow | None]:
        """Add rows that decide nothing, from the same resamples: kappas, agreement of the versions
        with each other, and the change in the affirmative rate; return these two rows, if any.
        """
        coded, columns = self.coded, self.columns
        view = View.of(rows, coded, resamples)
        before, after = (coded.raters[column] for column in columns)
        both = np.asarray(coded.labelled[:, list(columns)].all(axis=1))
        people, kappa = coded.members("human"), pairs.deciding_kappa(coded)
        kappas = pairs.KappaMeans(coded, resamples, [kappa])
        means = [kappas.with_rater(people, column, self.after.units)[kappa] for column in columns]
        for name, mean in zip((before, after), means, strict=True):
            view.add(kappa, mean.values, both, a="humans", b=name, undefined=mean.undefined)
        panel = pairs.measurement_of(coded).statistics()
        statistics = {name: panel[name] for name in ("observed_agreement", kappa) if name in panel}
        for name, mean in pairs.mean_over_pairs(coded, [columns], resamples, statistics).items():
            view.add(name, mean.values, both, a=before, b=after, undefined=mean.undefined)
        self_agreement = rows.get("observed_agreement", before, after, coded.subset)
        if not labels.has_binary:
            return self_agreement, None
        binary = labels.on_binary()
        affirmed = [np.asarray(binary.codes[:, column] == 0) for column in columns]  # 0: affirms
        change = view.share(affirmed[1] * 1.0 - affirmed[0], both)
        view.on(binary.subset).add(RATE_CHANGE, change, both, a=before, b=after)
        return self_agreement, rows.get(RATE_CHANGE, before, after, binary.subset)


DriftVerdict = Literal["unchanged", "changed", "inconclusive"]


@dataclass(frozen=True)
class Drift:
    """Verdict on whether a grader has changed on one rubric. `sentence` has the verdict with its
    reasons, `more_clusters` is the number of further clusters that would decide (0 if unknown or if
    none are needed), and `rows` are those of `drift_rows`.
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
    rows, answered, evidence = drift_rows(labels, versions, settings, rule, seed)
    noun = "pair" if scale.unit else "cluster"
    answers = answers_enough(answered, rule.min_coverage, noun, section="drift", alpha=LEVEL)
    if evidence is not None and not math.isnan(evidence.change["estimate"]):
        if evidence.change["n_clusters"] == evidence.change["n_units"]:
            noun = "item"
        verdict, why, more = _decide(evidence, answers, rule, noun)
    else:
        undecided = written("drift.few_shared", least=pairs.MIN_SHARED_UNITS)
        if evidence is not None:
            undecided = written("drift.undefined", why=reason_in_words(evidence.change["remarks"]))
        missing = [reason.sentence for reason in answers.why()] if answers.is_broken else []
        verdict, more = "changed" if missing else "inconclusive", 0
        why = [*missing, undecided]
    place = f" on {scale.name}" if scale.name else ""
    sentence = " ".join([written(f"drift.{verdict}", grader=versions.after, place=place), *why])
    return Drift(scale.name, versions.after, verdict, sentence, more, tuple(rows.rows.values()))


def _unchanged_requirements(
    evidence: DriftEvidence, answers: requirement.Requirement, rule: DecisionSettings, noun: str
) -> requirement.Requirements:
    """Require that the grader has changed by less than the margin, that the sample is large enough,
    and that the grader agreed enough with people before for a change to be visible.
    """
    margin, before, change = evidence.margin, evidence.before, evidence.change
    sample = sample_is_enough(evidence.sample, rule, noun)
    is_large = requirement.all_met(sample)
    low, estimate, high = change["low"], change["estimate"], change["high"]
    growth = evidence.clusters_needed / evidence.sample.clusters if abs(estimate) < margin else None

    def above_margin(low: float, estimate: float, high: float, key: str) -> requirement.Requirement:
        """Require a change above -margin; `key` names the sentence on one clearly below it."""
        state = requirement.state_of(met=low > -margin, broken=is_large and high < -margin)
        reason = requirement.Reason(written(f"drift.{key}", margin=margin))
        bound = requirement.Bound(low, estimate, high, -margin, LEVEL, LEVEL, known_growth=growth)
        why, is_likely = [reason] if state == "broken" else [], estimate > -margin
        return requirement.Requirement(state, lambda: why, is_likely=is_likely, unsettled=bound)

    kappa, kappa_low = (shown_apart(before[end], [margin]) for end in ("estimate", "low"))
    hardly_agreed = written("drift.hardly_agreed", kappa=kappa, low=kappa_low, margin=margin)
    return {
        "answers": answers,
        "not_lower": above_margin(low, estimate, high, "lower"),
        "not_higher": above_margin(-high, -estimate, -low, "higher"),  # of the negative change
        **sample,
        "agreed_before": requirement.Requirement(
            requirement.state_of(met=before["low"] > margin),
            why=lambda: [requirement.Reason(hardly_agreed)],
            is_likely=before["estimate"] > margin,
            unsettled=bound_of(before, margin, _AT_LEVEL, either_way=True),
        ),
    }  # fmt: skip


def _decide(
    evidence: DriftEvidence, answers: requirement.Requirement, rule: DecisionSettings, noun: str
) -> tuple[DriftVerdict, list[str], int]:
    """Return the verdict, its sentences, and the number of further clusters that would decide."""
    requirements = dict(_unchanged_requirements(evidence, answers, rule, noun))
    sample, figures = evidence.sample, _sentences(evidence, noun)
    if against := requirement.reasons(requirements, "broken"):
        return "changed", [*(reason.sentence for reason in against), *figures], 0
    if requirement.all_met(requirements):
        return "unchanged", figures, 0
    is_within = requirements["not_lower"].is_met and requirements["not_higher"].is_met
    if sample.clusters < rule.min_clusters:  # the advice names the number of clusters
        del requirements["enough_clusters"]
    more = sample.more_to_settle(rule, requirements)
    further_clusters = advice(sample.clusters, more, noun, undecided=not is_within)
    why = [*requirement.reasons(requirements, "open"), *further_clusters]
    return "inconclusive", [*figures, *(reason.sentence for reason in why)], more or 0


def _sentences(evidence: DriftEvidence, noun: str) -> list[str]:
    """Return sentences on the change in kappa, agreement of the versions, and affirmative rate."""
    change, kappa, margin = evidence.change, evidence.before["estimate"], evidence.margin
    interval = interval_of(change["low"], change["high"], -margin, margin, alpha=LEVEL, sign="+")
    sentences = [
        written(
            "drift.figures", before=kappa, after=kappa + change["estimate"],
            change=signed(change["estimate"]), interval=interval, margin=margin,
            sample=sample_of(change, noun),
        )
    ]  # fmt: skip
    if evidence.self_agreement is not None:
        sentences.append(written("drift.same", same=evidence.self_agreement["estimate"]))
    rate = evidence.rate_change
    if rate is not None and (rate["low"] > 0 or rate["high"] < 0):
        name = "affirms_more" if rate["low"] > 0 else "affirms_less"
        # In percentage points without the sign, which reverses the bounds of a negative change.
        low, points, high = sorted(100 * abs(rate[end]) for end in ("low", "estimate", "high"))
        sentences.append(written(f"drift.{name}", by=points, low=low, high=high))
    return sentences


# Is the new grader better?

Part = Literal["learn", "choose", "prove"]
SHARES: dict[Part, float] = {"prove": 0.5, "choose": 0.3, "learn": 0.2}
"""Share of the clusters of each part: *prove* has most, as its bound decides."""


def split_clusters(
    strata: Mapping[str, str], assigned: Mapping[str, Part] | None = None, *, seed: int, rubric: str
) -> dict[str, Part]:
    """Assign each cluster to a part. `strata` is by cluster; so is `assigned`, the parts that
    were assigned before and do not change, also of clusters that are not in `strata`.

    Within a stratum the clusters are in the order of a hash. Each is assigned to the part that
    lacks most clusters, in its stratum and in all, so that parts have their shares of each stratum.

    >>> parts = split_clusters({f"p{n}": "no" for n in range(10)}, seed=1, rubric="r")
    >>> sorted(parts.values())
    ['choose', 'choose', 'choose', 'learn', 'learn', 'prove', 'prove', 'prove', 'prove', 'prove']
    """
    parts = dict(assigned or {})
    counts: dict[str, Counter[Part]] = {stratum: Counter() for stratum in strata.values()}
    for cluster, stratum in strata.items():
        if cluster in parts:
            counts[stratum][parts[cluster]] += 1
    total = sum(counts.values(), Counter[Part]())

    def lack(part: Part, counts: Counter[Part]) -> float:
        """Return how many clusters a part lacks of its share after one more, rounded for ties."""
        return round(SHARES[part] * (counts.total() + 1) - counts[part], 9)

    for cluster in sorted(hash_order(strata, seed=seed, rubric=rubric), key=strata.__getitem__):
        if cluster not in parts:
            in_stratum = counts[strata[cluster]]
            part = max(SHARES, key=lambda part: lack(part, in_stratum) + lack(part, total))
            parts[cluster] = part
            in_stratum[part] += 1
            total[part] += 1
    return parts


def hash_order(clusters: Iterable[str], *, seed: int, rubric: str) -> list[str]:
    """Return clusters in the order of a hash, which does not change with new clusters."""

    def key(cluster: str) -> tuple[bytes, str]:
        text = f"{seed}|{rubric}|{cluster}"
        return hashlib.blake2b(text.encode(), digest_size=16).digest(), cluster

    return sorted(clusters, key=key)


def strata_of(ratings: DataFrame, clusters: Mapping[str, str]) -> dict[str, str]:
    """Return the stratum of each cluster: the label of people in it that is rarest in all
    `ratings`, which are of one rubric. `clusters` is by unit; those without labels are left out.
    """
    people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
    counts = people["label"].value_counts().to_dict()
    table = people.assign(cluster=people["unit_id"].map(clusters)).dropna(subset="cluster")
    labels_in = table.groupby("cluster")["label"].unique()
    return {
        str(cluster): str(min(labels, key=lambda label: (counts[label], label)))
        for cluster, labels in labels_in.items()
    }


def majority_label(ratings: DataFrame) -> str:
    """Return the most frequent label of people, "" where there is none."""
    people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
    counts = people["label"].value_counts().to_dict()
    return str(max(counts, key=lambda label: (counts[label], label))) if counts else ""


def clusters_to_split(
    strata: Mapping[str, str], majority: str, min_clusters: int, min_minority: int
) -> int:
    """Estimate how many clusters are needed so that *prove* has `min_clusters`, and `min_minority`
    with another label than the `majority`; 0 where there are enough.

    >>> clusters_to_split({f"p{n}": "yes" if n % 4 else "no" for n in range(40)}, "yes", 30, 10)
    80
    >>> clusters_to_split({f"p{n}": "yes" if n % 2 else "no" for n in range(60)}, "yes", 30, 10)
    0
    """
    n_clusters, share = len(strata), SHARES["prove"]
    n_minority = sum(label != majority for label in strata.values())
    needed, needed_minority = math.ceil(min_clusters / share), min_minority / share
    if n_minority < math.ceil(needed_minority):
        needed = max(needed, math.ceil(needed_minority * max(n_clusters, 1) / max(n_minority, 1)))
    return needed if needed > n_clusters else 0


MIN_ROUND_CLUSTERS = 20
"""Fewest clusters of the first round: on fewer a kappa is too uncertain."""
MIN_PROOF_CHANCE = 0.1
"""A proof with a smaller chance of success, if the gain on *choose* is true, is not begun."""
DIFFERING_SHARE = 0.2
"""Assumed share of units on which two graders differ, to forecast what a proof can show."""
Outcome = Literal["better", "not_shown", "worse"]


@dataclass(frozen=True)
class Score:
    """A candidate's kappa with people, NaN if undefined, and its share of labelled units."""

    kappa: float
    answered: float


@dataclass(frozen=True)
class Round:
    """A round of successive halving: number of clusters, scores by grader, the old one first."""

    clusters: int
    scores: dict[str, Score]


@dataclass(frozen=True)
class Choice:
    """The rounds, and the best candidate, "" if none had a higher kappa than the old grader."""

    rounds: tuple[Round, ...]
    best: str

    @property
    def gain(self) -> float:
        """Gain in kappa of the best candidate on *choose*, which is too high on average."""
        last = self.rounds[-1].scores
        return last[self.best].kappa - next(iter(last.values())).kappa if self.best else math.nan


def round_sizes(clusters: int, candidates: int) -> list[int]:
    """Return the number of clusters of each round: about twice that of the one before, finally all.

    >>> round_sizes(75, 20), round_sizes(75, 2), round_sizes(18, 20)
    ([20, 38, 75], [75], [18])
    """
    halvings = max(math.ceil(math.log2(max(candidates, 1))), 1)
    smallest = min(MIN_ROUND_CLUSTERS, clusters)
    return sorted({max(math.ceil(clusters / 2**n), smallest) for n in range(halvings)})


def choose(
    old: str,
    candidates: Sequence[str],
    clusters: Sequence[str],
    labels_of: Callable[[Sequence[str], Sequence[str]], LabelMatrix],
    rule: DecisionSettings,
) -> Choice:
    """Choose the best candidate by successive halving. `clusters` are used in their order;
    `labels_of(graders, clusters)` returns the labels of people and these graders on these clusters.
    Candidates that label too few units rank below all others; ties keep their order.
    """
    remaining, rounds = list(candidates), []
    for size in round_sizes(len(clusters), len(candidates)):
        graders = [old, *remaining]
        labels = labels_of(graders, clusters[:size])
        scores = {name: score_of(labels, name) for name in graders}
        rounds.append(Round(size, scores))
        remaining = sorted(remaining, key=lambda name: _rank_key(scores[name], rule))
        remaining = remaining[: math.ceil(len(remaining) / 2)]
    scores, best = rounds[-1].scores, next(iter(remaining), "")
    is_better = best and _rank_key(scores[best], rule) < _rank_key(scores[old], rule)
    return Choice(tuple(rounds), best if is_better else "")


def _rank_key(score: Score, rule: DecisionSettings) -> tuple[bool, float]:
    """Return the key that sorts candidates, the best first: by enough labels, then by kappa."""
    kappa = -math.inf if math.isnan(score.kappa) else score.kappa
    return score.answered < rule.min_coverage, -kappa


def score_of(labels: LabelMatrix, name: str) -> Score:
    """Score a grader against people, each unit counting once."""
    kappas, answered = _kappas_of(labels, name)
    return Score(float(kappas[0]), answered)


def _kappas_of(labels: LabelMatrix, name: str) -> tuple[Array, float]:
    """Return a grader's kappas (1 + clusters,) with people, and its share of labelled units."""
    if name not in labels.raters:
        return np.full(1 + labels.n_clusters, math.nan), 0.0
    grader = labels.raters.index(name)
    coded = labels.view_of([grader])
    overlap = pairs.Overlap.of(coded, Resamples(np.ones(labels.n_clusters)), coded.members("human"))
    by_cluster = overlap.sums_with_rater(coded.codes[:, grader])
    n_both = (overlap.units & coded.labelled[:, grader]).sum()
    answered = float(n_both / max(overlap.units.sum(), 1))
    total = by_cluster.sum(axis=0)
    sums = np.concatenate([total[None], total - by_cluster])  # row 0: all, then without each
    return bounds.kappas_of(sums, pairs.measurement_of(coded).distances)[0], answered


def chance_of_proof(labels: LabelMatrix, old: str, new: str, clusters: int, alpha: float) -> float:
    """Return the approximate chance that a proof on `clusters` clusters succeeds at the one-sided
    level `alpha`, if the gain on `labels`, those of *choose*, is true; it is too high on average.
    """
    gains = _kappas_of(labels, new)[0] - _kappas_of(labels, old)[0]
    if not alpha or not gains[0] > 0:
        return 0.0
    if not np.isfinite(gains).all():
        return 1.0  # unknown: no reason against a proof
    n_chosen_on = len(np.unique(labels.clusters[labels.labelled_by_people]))
    error_here = bounds.standard_error(bounds.influence(gains))
    error = error_here * math.sqrt(n_chosen_on / max(clusters, 1))
    return float(ndtr(gains[0] / error + ndtri(alpha))) if error > 0 else 1.0  # power of z test


def provable_gain(labels: LabelMatrix, clusters: int, alpha: float) -> float:
    """Forecast the gain in kappa that a proof on `clusters` clusters shows in 80% of studies, if
    two graders differ on `DIFFERING_SHARE` of the units. `labels` are people's on other clusters;
    the gain is NaN if all are equal.
    """
    coded = labels.on_categories()
    codes = coded.codes[:, list(coded.members("human"))]
    codes = codes[codes >= 0]
    shares = np.bincount(codes, minlength=coded.q) / max(codes.size, 1)
    chance_disagreement = 1.0 - float((shares**2).sum())
    if not alpha or not chance_disagreement > 0:
        return math.nan
    error = math.sqrt(DIFFERING_SHARE / max(clusters, 1))  # of observed agreement
    return float((ndtri(requirement.POWER) - ndtri(alpha)) * error / chance_disagreement)


class Shortage(NamedTuple):
    """Numbers of clusters: in which a grader errs at most, and must err to be shown to be worse."""

    most: float
    needed: int


def too_few_errors(labels: LabelMatrix, old: str, clusters: int, alpha: float) -> Shortage | None:
    """Return the upper bound (90%) on the number of `clusters` in which the old grader errs, and
    the number in which it must err for a sign test to show that a grader without errors is better.
    None if the bound is not below that number (a proof may succeed), or the grader has no labels.
    """
    if old not in labels.raters:
        return None
    grader = labels.raters.index(old)
    coded = labels.view_of([grader])
    people, grades = coded.codes[:, list(coded.members("human"))], coded.codes[:, [grader]]
    both = (people >= 0) & (grades >= 0)
    masks = (both & (people != grades)).any(axis=1), both.any(axis=1)
    wrong, compared = (np.bincount(labels.clusters, mask, labels.n_clusters) > 0 for mask in masks)
    _, _, share = share_bounds(wrong.astype(float), compared.astype(float), 0.1)  # upper bound
    # A sign test of n gains and no loss has p = 0.5**n, which must be at most alpha.
    most, needed = clusters * share, math.ceil(math.log(alpha) / math.log(0.5))
    return Shortage(most, needed) if most < needed else None


def content_hash(labels: LabelMatrix, old: str, new: str) -> str:
    """Return a hash of all data of the comparison of two graders: people's labels, both graders'
    labels and probabilities, thresholds, clusters and weights.
    """
    graders = [labels.raters.index(name) for name in (old, new) if name in labels.raters]
    columns = [*labels.humans, *graders]
    digest = hashlib.sha256(repr((len(labels.humans), labels.scale.categories)).encode())
    weight = np.ones(0) if labels.weight is None else labels.weight
    values = [array[:, columns] for array in (labels.codes, labels.positive, labels.thresholds)]
    for array in (*values, labels.clusters, weight):
        digest.update(np.asarray(array, dtype=float).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Gain:
    """Result of a proof: the `outcome`; `why` it is not *better*; the gain in kappa with its
    one-sided bounds, each at `level` (NaN where undefined); both kappas; and the sample's size.
    """

    outcome: Outcome
    level: float
    look: int
    why: tuple[str, ...] = ()
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    before: float = math.nan
    after: float = math.nan
    units: int = 0
    clusters: int = 0

    @property
    def sentence(self) -> str:
        """The outcome with its figures, or why there are none."""
        head = written(f"improve.{self.outcome}")
        if math.isnan(self.low):
            return " ".join([head, *self.why])
        interval = interval_of(self.low, self.high, 0.0, alpha=self.level, sign="+")
        figures = written(
            "improve.figures", before=self.before, after=self.after, gain=signed(self.estimate),
            interval=interval, units=self.units, clusters=self.clusters,
        )  # fmt: skip
        return " ".join([head, figures, *self.why])


def prove(labels: LabelMatrix, old: str, new: str, rule: DecisionSettings, look: int) -> Gain:
    """Bound the gain of a new grader over the old one on the `labels` of *prove*; `look` is the
    number of this reading of them, from 1. Each grader's labels are at its own threshold.

    The new grader is *better* if the lower bound is above 0, clusters (and those with a minority
    label) suffice for a verdict, and it labels enough units; *worse* if the upper bound is below 0.
    """
    alpha = bounds.level_of_reading(look, rule.looks)
    unknown = Gain("not_shown", alpha, look)
    if not alpha:
        return replace(unknown, why=(written("improve.no_level", look=look),))
    has_both = {old, new} <= set(labels.raters)
    paired = VersionComparison.of(*labels.folded(), Versions(old, new), 0.0) if has_both else None
    if paired is None:
        return replace(unknown, why=(written("improve.few_shared", least=pairs.MIN_SHARED_UNITS),))
    values = paired.after.kappas - paired.before.kappas
    units, clusters = paired.after.counts
    gain = replace(
        unknown, estimate=float(values[0]), units=units, clusters=clusters,
        before=float(paired.before.kappas[0]), after=float(paired.after.kappas[0]),
    )  # fmt: skip
    if not np.isfinite(values).all():
        return replace(gain, why=(written("improve.no_variation"),))
    interval = paired.score_bounds(values).interval(gain.estimate, alpha)
    gain = replace(gain, low=interval.low, high=interval.high)
    if gain.high < 0:
        return replace(gain, outcome="worse")
    if not gain.low > 0:
        return gain
    sample, answered, why = paired.after.sample, score_of(labels, new).answered, []
    if requirement.rounded_up(sample.effective) < rule.min_clusters:
        fields = {"worth": sample.effective, "needed": rule.min_clusters}
        why.append(written("improve.few_clusters", **fields))
    if sample.minority < rule.min_rarer:
        why.append(written("improve.few_rarer", rarer=sample.minority, needed=rule.min_rarer))
    if answered < rule.min_coverage:
        why.append(written("improve.answers", share=answered, needed=rule.min_coverage))
    return replace(gain, outcome="not_shown" if why else "better", why=tuple(why))
