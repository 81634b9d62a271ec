"""Two versions of a grader. Has it changed since its baseline? Decided from bounds against the
drift margin.

- *unchanged*: its kappa with people moved by less than the margin, either way.
- *changed*: it moved by more than the margin, or answers are missing.
- *inconclusive*: neither; with how many more units would tell.

The same units and people are on both sides, so that the change is paired: what makes a unit hard
moves both kappas alike and drops out. A verdict is two one-sided tests of the change in kappa with
people (Schuirmann 1987), with the bounds of other verdicts (`analysis.bootstrap.bounds`): a grader
that repeats nearly all of its labels gets a bound on how many it may have changed unseen.
`python -m benchmarks.drift` shows how often verdicts are wrong.

Is a new grader better than the old one? A grader that is tuned to labels looks better on them than
it is. So its proposals come from *learn*, the best of them is chosen on *choose*, and its gain is
bounded on *prove*, which nothing was tuned to. A cluster is never split, and once it has its part
it keeps it.

Candidates are compared on *choose* by successive halving (Jamieson & Talwalkar 2016): all on a few
clusters, the better half on more. The best of many looks better than it is, so its gain is bounded
by the same paired bound, at the level that this reading of *prove* may spend
(`analysis.bootstrap.bounds`). Before that, a proof that is hardly to be expected is not begun
(`chance_of_proof`): that can only save money and readings, never make a *better* likelier.
`python -m benchmarks.improving` shows how often *better* is wrong.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    Overlap,
    deciding_kappa,
    mean_over_pairs,
    measurement_of,
)
from evenhand.analysis.bootstrap.bounds import (
    influence,
    kappas_of,
    level_of_reading,
    reach,
    standard_error,
)
from evenhand.analysis.bootstrap.intervals import Deciding, Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, with_weights
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.people.disagreements import unscored_remark
from evenhand.analysis.requirement import (
    POWER,
    Bound,
    ClusterCounts,
    Reason,
    Requirement,
    Requirements,
    all_met,
    reasons,
    rounded_up,
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
        panel = measurement_of(coded).statistics()
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


Part = Literal["learn", "choose", "prove"]
SHARES: dict[Part, float] = {"prove": 0.5, "choose": 0.3, "learn": 0.2}
"""The share of each part: the proof needs most labels, as its bound decides."""


def part_clusters(
    strata: Mapping[str, str], known: Mapping[str, Part] | None = None, *, seed: int, rubric: str
) -> dict[str, Part]:
    """Give each cluster its part; `strata` is by cluster, `known` are parts given before.

    Within a stratum the clusters come in the order of a hash, and each goes to the part that lacks
    most, in its stratum and in all. So parts have their shares of every stratum, and the parts of
    known clusters, which may have left `strata`, do not change.

    >>> found = part_clusters({f"p{n}": "no" for n in range(10)}, seed=1, rubric="r")
    >>> sorted(found.values())
    ['choose', 'choose', 'choose', 'learn', 'learn', 'prove', 'prove', 'prove', 'prove', 'prove']
    """
    parts = dict(known or {})
    held: dict[str, Counter[Part]] = {stratum: Counter() for stratum in strata.values()}
    for cluster, stratum in strata.items():
        if cluster in parts:
            held[stratum][parts[cluster]] += 1
    total = sum(held.values(), Counter[Part]())

    for cluster in sorted(in_order(strata, seed=seed, rubric=rubric), key=strata.__getitem__):
        if cluster in parts:
            continue
        of_stratum = held[strata[cluster]]
        part = max(SHARES, key=lambda name: _lacks(of_stratum, name) + _lacks(total, name))
        parts[cluster] = part
        of_stratum[part] += 1
        total[part] += 1
    return parts


def in_order(clusters: Iterable[str], *, seed: int, rubric: str) -> list[str]:
    """Return clusters in the order of a hash, which new clusters do not change."""

    def place(cluster: str) -> tuple[bytes, str]:
        text = f"{seed}|{rubric}|{cluster}"
        return hashlib.blake2b(text.encode(), digest_size=16).digest(), cluster

    return sorted(clusters, key=place)


def _lacks(held: Counter[Part], part: Part) -> float:
    """Number of clusters that a part lacks once there is one more; rounded, so that ties are."""
    return round(SHARES[part] * (held.total() + 1) - held[part], 9)


def strata_of(ratings: DataFrame, clusters: Mapping[str, str]) -> dict[str, str]:
    """Return for each cluster the label that is rarest among all labels, of those that a person
    gave in it. `ratings` are of one rubric, `clusters` are by unit; clusters without a person's
    label are left out.
    """
    people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
    counts = people["label"].value_counts().to_dict()
    table = people.assign(cluster=people["unit_id"].map(clusters)).dropna(subset="cluster")
    given = table.groupby("cluster")["label"].unique()
    return {
        str(cluster): str(min(labels, key=lambda label: (counts[label], label)))
        for cluster, labels in given.items()
    }


def commonest_label(ratings: DataFrame) -> str:
    """Return the label that people gave most often, "" where there is none."""
    people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
    counts = people["label"].value_counts().to_dict()
    return str(max(counts, key=lambda label: (counts[label], label))) if counts else ""


def clusters_to_part(
    strata: Mapping[str, str], commonest: str, min_clusters: int, min_rarer: int
) -> int:
    """Return how many clusters are needed, about, before a proof could count: so that *prove* has
    `min_clusters`, and `min_rarer` with another label than the `commonest`; 0 where there are
    enough.

    >>> clusters_to_part({f"p{n}": "yes" if n % 4 else "no" for n in range(40)}, "yes", 30, 10)
    80
    >>> clusters_to_part({f"p{n}": "yes" if n % 2 else "no" for n in range(60)}, "yes", 30, 10)
    0
    """
    count = len(strata)
    rarer = sum(label != commonest for label in strata.values())
    share = SHARES["prove"]
    needed = math.ceil(min_clusters / share)
    if rarer < math.ceil(min_rarer / share):
        needed = max(needed, math.ceil(min_rarer / share * max(count, 1) / max(rarer, 1)))
    return needed if needed > count else 0


LEAST = 20
"""Clusters of the first round: with fewer a kappa says nothing."""
HARDLY = 0.1
"""A proof with a smaller chance, if the gain on *choose* were the true one, is not begun."""
DIFFER = 0.2
"""The share of units on which two graders differ, to forecast what a proof can show."""
Outcome = Literal["better", "not_shown", "worse"]


@dataclass(frozen=True)
class Score:
    """A candidate in a round: its kappa with people, NaN where undefined, and the share of the
    units that it answered.
    """

    kappa: float
    answered: float


@dataclass(frozen=True)
class Round:
    """A round of the choice: the number of clusters, and the scores by name, with the old one's."""

    clusters: int
    scores: dict[str, Score]


@dataclass(frozen=True)
class Choice:
    """The rounds, and the best candidate; "" where none had a higher kappa than the old grader."""

    rounds: tuple[Round, ...]
    best: str

    @property
    def gain(self) -> float:
        """The best candidate's gain in kappa on *choose*, which is too high on average."""
        last = self.rounds[-1].scores
        return last[self.best].kappa - next(iter(last.values())).kappa if self.best else math.nan


def round_sizes(clusters: int, candidates: int) -> list[int]:
    """Return the numbers of clusters of the rounds, each twice the one before, the last all.

    >>> round_sizes(75, 20), round_sizes(75, 2), round_sizes(18, 20)
    ([20, 38, 75], [75], [18])
    """
    halvings = max(math.ceil(math.log2(max(candidates, 1))), 1)
    sizes = (max(math.ceil(clusters / 2**n), min(LEAST, clusters)) for n in range(halvings))
    return sorted(set(sizes))


def choose(
    old: str,
    candidates: Sequence[str],
    clusters: Sequence[str],
    labels_of: Callable[[Sequence[str], Sequence[str]], LabelMatrix],
    rule: DecisionSettings,
) -> Choice:
    """Choose the best candidate by successive halving. `labels_of` has the labels of people and
    these graders on these clusters, which come in the order in which they are used. Candidates that
    answer too few units come after all others; equals keep their order.
    """
    left, rounds = list(candidates), []
    for size in round_sizes(len(clusters), len(candidates)):
        of_round = labels_of([old, *left], clusters[:size])
        scores = {name: score_of(of_round, name) for name in (old, *left)}
        rounds.append(Round(size, scores))
        left = sorted(left, key=lambda name: _place(scores[name], rule))
        left = left[: math.ceil(len(left) / 2)]
    last = rounds[-1].scores
    is_better = left and _place(last[left[0]], rule) < _place(last[old], rule)
    return Choice(tuple(rounds), left[0] if is_better else "")


def _place(score: Score, rule: DecisionSettings) -> tuple[bool, float]:
    kappa = -math.inf if math.isnan(score.kappa) else score.kappa
    return score.answered < rule.min_coverage, -kappa


def score_of(labels: LabelMatrix, name: str) -> Score:
    """Score a grader against people, each unit counting once."""
    kappas, answered = _kappas_of(labels, name)
    return Score(float(kappas[0]), answered)


def _kappas_of(labels: LabelMatrix, name: str) -> tuple[Array, float]:
    """Return a grader's kappa with people, in the data and without each cluster (1 + clusters,),
    and the share of the units that it answered.
    """
    if name not in labels.raters:
        return np.full(1 + labels.n_clusters, math.nan), 0.0
    grader = labels.raters.index(name)
    coded = labels.view_of([grader])
    resamples = Resamples(np.ones(labels.n_clusters), 0, np.random.default_rng(0))
    overlap = Overlap.of(coded, resamples, coded.members("human"))
    sums = overlap.sums_with_rater(coded.codes[:, grader])
    rated = overlap.units
    answered = float((rated & coded.labelled[:, grader]).sum() / max(rated.sum(), 1))
    whole = sums.sum(axis=0)
    left_out = np.concatenate([whole[None], whole - sums])
    return kappas_of(left_out, measurement_of(coded).distances)[0], answered


def chance_of_proof(labels: LabelMatrix, old: str, new: str, clusters: int, alpha: float) -> float:
    """Return about how likely a proof on so many `clusters` is at the one-sided level `alpha`, if
    the gain on *choose*, whose labels these are, is the true one; it is too high on average.
    """
    gains = _kappas_of(labels, new)[0] - _kappas_of(labels, old)[0]
    if not alpha or not gains[0] > 0:
        return 0.0
    if not np.isfinite(gains).all():
        return 1.0  # nothing is known against it
    present = len(np.unique(labels.clusters[labels.labelled_by_people]))
    error = standard_error(influence(gains)) * math.sqrt(present / max(clusters, 1))
    return float(ndtr(gains[0] / error + ndtri(alpha))) if error > 0 else 1.0


def provable_gain(labels: LabelMatrix, clusters: int, alpha: float) -> float:
    """Forecast the gain in kappa that a proof on so many `clusters` shows in 80% of studies, where
    two graders differ on a fifth of the units; `labels` are people's elsewhere. NaN where they are
    all the same.
    """
    coded = labels.on_categories()
    given = coded.codes[:, list(coded.members("human"))]
    shares = np.bincount(given[given >= 0], minlength=coded.q) / max((given >= 0).sum(), 1)
    room = 1.0 - float((shares**2).sum())
    if not alpha or not room > 0:
        return math.nan
    return float((ndtri(POWER) - ndtri(alpha)) * math.sqrt(DIFFER / max(clusters, 1)) / room)


def too_few_errors(
    labels: LabelMatrix, old: str, clusters: int, alpha: float
) -> tuple[float, int] | None:
    """Return in how many of so many clusters the old grader errs, an upper bound at 90%, and in how
    many it must before one that never errs is shown to be better (sign test). None where there may
    be enough, or nothing is known of the grader.
    """
    if old not in labels.raters:
        return None
    coded = labels.view_of([grader := labels.raters.index(old)])
    labelled, graded = coded.codes[:, list(coded.members("human"))], coded.codes[:, [grader]]
    both = (labelled >= 0) & (graded >= 0)
    cells = ((both & (labelled != graded)).any(axis=1), both.any(axis=1))
    wrong, seen = (np.bincount(labels.clusters, cell, labels.n_clusters) > 0 for cell in cells)
    errors = clusters * share_bounds(wrong.astype(float), seen.astype(float), 0.1)[2]
    needed = math.ceil(math.log(alpha) / math.log(0.5))
    return (errors, needed) if errors < needed else None


def content_of(labels: LabelMatrix, old: str, new: str) -> str:
    """Return a hash of all that the comparison of two graders rests on: people's labels and both
    graders' grades, combined, with their thresholds and clusters.
    """
    columns = [*labels.humans, *(labels.raters.index(e) for e in (old, new) if e in labels.raters)]
    digest = hashlib.sha256(repr((len(labels.humans), labels.scale.categories)).encode())
    weight = np.ones(0) if labels.weight is None else labels.weight
    values = [array[:, columns] for array in (labels.codes, labels.positive, labels.thresholds)]
    for array in (*values, labels.clusters, weight):
        digest.update(np.asarray(array, dtype=float).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Gain:
    """Result of a proof: the `outcome`, why it is not more, the gain in kappa with its one-sided
    bounds, each at `level` (NaN where undefined), both kappas, and the sample.
    """

    outcome: Outcome
    why: tuple[str, ...]
    estimate: float
    low: float
    high: float
    before: float
    after: float
    level: float
    look: int
    units: int
    clusters: int

    @property
    def sentence(self) -> str:
        """The outcome with its figures, or why there are none."""
        head = written(f"improve.{self.outcome}")
        if math.isnan(self.low):
            return " ".join([head, *self.why])
        figures = written(
            "improve.figures",
            before=self.before,
            after=self.after,
            gain=signed(self.estimate),
            interval=interval_of(self.low, self.high, 0.0, alpha=self.level, sign="+"),
            units=self.units,
            clusters=self.clusters,
        )
        return " ".join([head, figures, *self.why])


def prove(labels: LabelMatrix, old: str, new: str, rule: DecisionSettings, look: int) -> Gain:
    """Bound the gain of a new grader over the old one on *prove*, whose labels are these; `look` is
    the number of this reading of them, from 1. Each grader is read at its own threshold.

    It is *better* where the lower bound is above 0, there are as many clusters, and as many of the
    rarer kind, as a verdict needs, and it answers as many units; *worse* where the upper bound is
    below 0.
    """
    alpha, nan = level_of_reading(look, rule.looks), math.nan
    lacks = Gain("not_shown", (), nan, nan, nan, nan, nan, alpha, look, 0, 0)
    if not alpha:
        return replace(lacks, why=(written("improve.no_level", look=look),))
    are_known = {old, new} <= set(labels.raters)
    paired = Paired.of(*labels.folded(), Versions(old, new), 0.0) if are_known else None
    if paired is None:
        return replace(lacks, why=(written("improve.few_shared", least=MIN_SHARED_UNITS),))
    values = paired.after.kappas - paired.before.kappas
    units, clusters = paired.after.counts
    gain = replace(
        lacks,
        estimate=float(values[0]),
        before=float(paired.before.kappas[0]),
        after=float(paired.after.kappas[0]),
        units=units,
        clusters=clusters,
    )
    if not np.isfinite(values).all():
        return replace(gain, why=(written("improve.no_variation"),))
    bounds = paired.at_null(values).around(gain.estimate, alpha)
    gain = replace(gain, low=bounds.low, high=bounds.high)
    if bounds.high < 0:
        return replace(gain, outcome="worse")
    if not bounds.low > 0:
        return gain
    sample, answered, why = paired.after.sample, score_of(labels, new).answered, []
    if rounded_up(sample.effective) < rule.min_clusters:
        why.append(
            written("improve.few_clusters", worth=sample.effective, needed=rule.min_clusters)
        )
    if sample.minority < rule.min_rarer:
        why.append(written("improve.few_rarer", rarer=sample.minority, needed=rule.min_rarer))
    if answered < rule.min_coverage:
        why.append(written("improve.answers", share=answered, needed=rule.min_coverage))
    return replace(gain, outcome="not_shown" if why else "better", why=tuple(why))
