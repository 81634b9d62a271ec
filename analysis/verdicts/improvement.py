"""Is a new grader better than the old one? The choice among candidates, and the proof of the best.

Candidates are compared on *choose* by successive halving (Jamieson & Talwalkar 2016): all on a few
clusters, the better half on more. The best of many looks better than it is, so its gain is bounded
on *prove*, clusters that nothing was tuned to, by the paired bound of `drift`, at the level that
this reading of them may spend (`analysis.bootstrap.influence`). Before that, a proof that is hardly
to be expected is not begun (`chance_of_proof`): that can only save money and readings, never make a
*better* likelier. `python -m benchmarks.improving` shows how often *better* is wrong.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from evenhand.analysis.agreement.overlap import Overlap
from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, distances
from evenhand.analysis.bootstrap.influence import influence, level_of_reading, standard_error
from evenhand.analysis.bootstrap.intervals import share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.score import kappas_of
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.planning.more_clusters import POWER
from evenhand.analysis.requirement import rounded_up
from evenhand.analysis.types import Array
from evenhand.analysis.verdicts.drift import Paired, Versions
from evenhand.analysis.verdicts.wording import interval_of, signed
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

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
    these graders on these clusters, which come in the order in which they are used.

    Candidates that answer too few units come after all others; equals keep their order.
    """
    left, rounds = list(candidates), []
    for size in round_sizes(len(clusters), len(candidates)):
        found = labels_of([old, *left], clusters[:size])
        scores = {name: score_of(found, name) for name in (old, *left)}
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
    sums = overlap.sums_with_rater(coded.codes[:, grader], labels.n_clusters)
    rated = overlap.units
    answered = float((rated & coded.labelled[:, grader]).sum() / max(rated.sum(), 1))
    whole = sums.sum(axis=0)
    each = np.concatenate([whole[None], whole - sums])
    return kappas_of(each, distances(coded))[0], answered


def chance_of_proof(labels: LabelMatrix, old: str, new: str, clusters: int, alpha: float) -> float:
    """Return about how likely a proof on so many `clusters` is at the one-sided level `alpha`, if
    the gain on *choose*, whose labels these are, is the true one; it is too high on average.
    """
    gains = _kappas_of(labels, new)[0] - _kappas_of(labels, old)[0]
    if not alpha or not gains[0] > 0:
        return 0.0
    if not np.isfinite(gains).all():
        return 1.0  # nothing is known against it
    own = len(np.unique(labels.clusters[labels.labelled_by_people]))
    error = standard_error(influence(gains)) * math.sqrt(own / max(clusters, 1))
    return float(ndtr(gains[0] / error + ndtri(alpha))) if error > 0 else 1.0


def provable_gain(labels: LabelMatrix, clusters: int, alpha: float) -> float:
    """Forecast the gain in kappa that a proof on so many `clusters` shows in 80% of studies, where
    two graders differ on a fifth of the units; `labels` are people's elsewhere. NaN where they are
    all the same.
    """
    coded = labels.on_categories()
    said = coded.codes[:, list(coded.members("human"))]
    shares = np.bincount(said[said >= 0], minlength=coded.q) / max((said >= 0).sum(), 1)
    room = 1.0 - float((shares**2).sum())
    if not alpha or not room > 0:
        return math.nan
    return float((ndtri(POWER) - ndtri(alpha)) * math.sqrt(DIFFER / max(clusters, 1)) / room)


def errors_needed(alpha: float) -> int:
    """Return in how many clusters the old grader must be wrong before even one that is right in all
    of them could be shown to be better (sign test).

    >>> errors_needed(0.01125)
    7
    """
    return math.ceil(math.log(alpha) / math.log(0.5))


def most_errors(labels: LabelMatrix, name: str) -> float:
    """Return an upper bound, at 90%, of the share of clusters in which a person labels a unit
    otherwise than this grader; NaN where it has no grades.
    """
    if name not in labels.raters:
        return math.nan
    own = labels.raters.index(name)
    coded = labels.view_of([own])
    said, graded = coded.codes[:, list(coded.members("human"))], coded.codes[:, [own]]
    both = (said >= 0) & (graded >= 0)
    wrong = (both & (said != graded)).any(axis=1)
    differs = np.bincount(labels.clusters, wrong, labels.n_clusters) > 0
    seen = np.bincount(labels.clusters, both.any(axis=1), labels.n_clusters) > 0
    return share_bounds(differs.astype(float), seen.astype(float), 0.1)[2]


def content_of(labels: LabelMatrix, old: str, new: str) -> str:
    """Return a hash of all that the comparison of two graders rests on: people's labels and both
    graders' grades, combined, with their thresholds and clusters.
    """
    columns = [*labels.humans, *(labels.raters.index(e) for e in (old, new) if e in labels.raters)]
    digest = hashlib.sha256(repr((len(labels.humans), labels.scale.categories)).encode())
    weight = np.ones(0) if labels.weight is None else labels.weight
    values = [each[:, columns] for each in (labels.codes, labels.positive, labels.thresholds)]
    for each in (*values, labels.clusters, weight):
        digest.update(np.asarray(each, dtype=float).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Gain:
    """What a proof found: the `outcome`, why it is not more, the gain in kappa with its one-sided
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
    folded, frequency = labels.folded()
    paired = None
    if {old, new} <= set(labels.raters):
        paired = Paired.of(folded, frequency, Versions(old, new), 0.0)
    if paired is None:
        return replace(lacks, why=(written("improve.few_shared", least=MIN_SHARED_UNITS),))
    values = paired.after.kappas - paired.before.kappas
    units, clusters = paired.after.counts
    known = replace(
        lacks,
        estimate=float(values[0]),
        before=float(paired.before.kappas[0]),
        after=float(paired.after.kappas[0]),
        units=units,
        clusters=clusters,
    )
    if not np.isfinite(values).all():
        return replace(known, why=(written("improve.no_variation"),))
    found = paired.at_null(values).around(known.estimate, alpha)
    known = replace(known, low=found.low, high=found.high)
    if found.high < 0:
        return replace(known, outcome="worse")
    if not found.low > 0:
        return known
    sample, answered, why = paired.after.sample, score_of(labels, new).answered, []
    if rounded_up(sample.worth) < rule.min_clusters:
        why.append(written("improve.few_clusters", worth=sample.worth, needed=rule.min_clusters))
    if sample.rarer < rule.min_rarer:
        why.append(written("improve.few_rarer", rarer=sample.rarer, needed=rule.min_rarer))
    if answered < rule.min_coverage:
        why.append(written("improve.answers", share=answered, needed=rule.min_coverage))
    return replace(known, outcome="not_shown" if why else "better", why=tuple(why))
