"""Is a new grader better than the old one? The parts of the labels, the choice among candidates,
and the proof of the best.

A grader that is tuned to labels looks better on them than it is. So its proposals come from
*learn*, the best of them is chosen on *choose*, and its gain is bounded on *prove*, which nothing
was tuned to. A cluster is never split, and once it has its part it keeps it.

Candidates are compared on *choose* by successive halving (Jamieson & Talwalkar 2016): all on a few
clusters, the better half on more. The best of many looks better than it is, so its gain is bounded
by the paired bound of `drift`, at the level that this reading of *prove* may spend
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

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, Overlap, distances
from evenhand.analysis.bootstrap.bounds import (
    influence,
    kappas_of,
    level_of_reading,
    standard_error,
)
from evenhand.analysis.bootstrap.intervals import share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.requirement import POWER, rounded_up
from evenhand.analysis.types import Array, DataFrame
from evenhand.analysis.verdicts.drift import Paired, Versions
from evenhand.analysis.verdicts.wording import interval_of, signed
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

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
    return kappas_of(left_out, distances(coded))[0], answered


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
    wrong, seen = (np.bincount(labels.clusters, each, labels.n_clusters) > 0 for each in cells)
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
