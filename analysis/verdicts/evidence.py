"""The rows that verdicts are taken from: graders beside people, bounded at the verdict's level.

A verdict is a test: may the grader lie further below people than the margin? Its error rate is that
of the bounds here (see `analysis.bootstrap.influence`), at a level that leaves room for every look
at the study (`analysis.verdicts.looks`) and for all graders of the rubric at once. The intervals
elsewhere in the results speak of one figure at one look.

Bounds are for these people and pairs like these; from three people on also for people like these,
where what people add to the variance is the jackknife's, each person left out in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    deciding_kappa,
    pair_statistics,
    shared_units,
    table_chunks,
)
from evenhand.analysis.bootstrap.influence import (
    influence,
    reach,
    reach_over_people,
    simultaneous_level,
)
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.notes import Remark, join_notes
from evenhand.analysis.people.ceiling import with_and_among_humans
from evenhand.analysis.results import BASELINES, ResultRows
from evenhand.analysis.thresholds.held_out import held_out_verdicts
from evenhand.analysis.thresholds.references import human_majority, probability_graders
from evenhand.analysis.types import Array, Frequency, Mask
from evenhand.analysis.verdicts.looks import level_of_look
from evenhand.analysis.verdicts.winner import winner_corrected
from evenhand.study.settings.analysis import DecisionSettings

NON_INFERIORITY = "non_inferiority"
NON_INFERIORITY_PEOPLE = "non_inferiority_people"
ABOVE_BASELINE = "kappa_above_baseline"
PEOPLE_KAPPA = "people_kappa"
RARER = "rarer_clusters"
WINNER = "best_grader_difference"
HELD_OUT, UNTUNED = "held_out", "untuned"
TUNED_FOR = "kappa"


@dataclass(frozen=True)
class Comparison:
    """One grader beside people on one reading: estimates, and what each cluster contributes.

    `apart` (clusters,) is the influence on the difference of kappas, `above` on the grader's kappa
    minus the better baseline's, `own` on people's kappa. `margin` is the one that the difference is
    held against. `people_variance` is the difference's variance over people, NaN for fewer than
    three. `rarer` counts the clusters in which a person chose another category than the commonest;
    `chance` is the agreement that shares like people's would bring.
    """

    subset: str
    at: str
    grader: str
    counts: tuple[int, int]
    difference: float
    apart: Array
    margin: float
    excess: float
    above: Array
    people: float
    own: Array
    n_people: int
    people_variance: float
    rarer: float
    chance: float
    constant: bool
    counts_once: bool = True
    """Else it is there a second time, and the level is not shared with it."""


@dataclass(frozen=True)
class Level:
    """The one-sided level of a rubric's bounds, at this look and at the next.

    `graders` are so many comparisons that all hold at once.
    """

    alpha: float
    look: int
    graders: int
    next_alpha: float


def add_deciding_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    frequency: Frequency,
    margin: float,
    rule: DecisionSettings,
    look: int = 1,
) -> None:
    """For every grader, and at = "held_out" for thresholds tuned on other clusters:
    `non_inferiority`, the ceiling difference; `non_inferiority_people`, the same for people like
    these; `kappa_above_baseline`; `people_kappa`; `rarer_clusters`. For all graders together
    `best_grader_difference`, corrected for having been chosen.

    `low` and `high` are one-sided bounds, each at the level of the verdict. `labels` are folded:
    `frequency` (clusters,) says how often a cluster stands in the data.
    """
    if not labels.humans:
        return
    # Clusters that nobody labelled say nothing of people, and count as none.
    labelled = np.bincount(
        labels.clusters,
        (labels.codes[:, list(labels.humans)] >= 0).any(axis=1),
        minlength=len(frequency),
    )
    counted = np.where(labelled > 0, frequency, 0)
    left_out = Resamples(counted, 0, np.random.default_rng(0), "bca", labels.weight)
    found = list(_Beside(rows, labels, left_out, margin, rule).comparisons())
    if not found:
        return
    level = _level(found, rule, look)
    for each in found:
        if each.at != UNTUNED:
            _add_bounds(rows, each, level)
    _add_winner(rows, [each for each in found if not each.at], level)


@dataclass(frozen=True)
class _Beside:
    """Sets graders beside people, in the data and without each cluster."""

    rows: ResultRows
    labels: LabelMatrix
    left_out: Resamples
    margin: float
    rule: DecisionSettings

    def comparisons(self) -> Iterator[Comparison]:
        """Each grader's categories, or its verdicts where it gives none; and at held-out
        thresholds."""
        labels = self.labels
        verdicts = labels.on_verdicts() if labels.has_verdicts else None
        categories = labels.on_categories()
        known = {
            coded.subset: KappaMeans(coded, self.left_out, [deciding_kappa(coded)])
            for coded in (categories, verdicts)
            if coded is not None
        }
        tunable = probability_graders(labels) if verdicts is not None else []
        for grader in labels.models:
            gives_categories = (labels.codes[:, grader] >= 0).any()
            coded = categories if gives_categories or verdicts is None else verdicts
            tuned = labels.raters[grader] in labels.scale.tunings
            for each in self._compared(known[coded.subset], coded, grader):
                # Verdicts at a tuned threshold are compared below; at the untuned one they were
                # looked at as well, before it was tuned.
                yield replace(each, counts_once=not (tuned and coded is verdicts))
            if tuned and coded is verdicts and verdicts is not None:
                untuned = self._at_untuned(verdicts, grader)
                yield from self._compared(known[coded.subset], untuned, grader, UNTUNED)
            if verdicts is not None and grader in tunable:
                retuned = self._at_held_out(verdicts, grader)
                if retuned is not None:
                    yield from self._compared(known[verdicts.subset], retuned, grader, HELD_OUT)

    def _compared(
        self, kappas: KappaMeans, coded: Coded, grader: int, at: str = ""
    ) -> Iterator[Comparison]:
        mean, people = with_and_among_humans(kappas, coded, grader)
        to_beat = self._to_beat(coded)
        if mean is None or math.isnan(to_beat):
            return
        among = people.values if people else np.full(len(mean.values), np.nan)
        humans = coded.members("human")
        within = coded.labelled[:, grader]
        counts = self.left_out.count(coded.clusters, within & coded.labelled_by_any(humans))
        share = self.rule.margin_share
        n_people, variance = _over_people(coded, self.left_out, grader)
        rarer, chance = _rarer(coded, self.left_out, within)
        own = float(among[0])
        yield Comparison(
            subset=coded.subset,
            at=at,
            grader=coded.raters[grader],
            counts=counts,
            difference=float(mean.values[0]) - own,
            apart=influence(mean.values - (1.0 - share) * among),
            margin=share * own if share else self.margin,
            excess=float(mean.values[0]) - to_beat,
            above=influence(mean.values),
            people=own,
            own=influence(among),
            n_people=n_people,
            people_variance=variance,
            rarer=rarer,
            chance=chance,
            constant=len(np.unique(coded.codes[within, grader])) < 2,
        )

    def _to_beat(self, coded: Coded) -> float:
        """The better baseline's kappa."""
        kind = deciding_kappa(coded)
        found = (self.rows.get(kind, "humans", name, coded.subset) for name in BASELINES)
        return max((row["estimate"] for row in found if row is not None), default=math.nan)

    def _at_untuned(self, verdicts: Coded, grader: int) -> Coded:
        """The verdicts with this grader's by the threshold that was there before tuning."""
        labels = self.labels
        held = ~np.isnan(labels.positive[:, grader])
        usual = labels.scale.untuned_threshold_for(labels.raters[grader])
        return _with_verdicts(verdicts, grader, held, labels.positive[held, grader] >= usual)

    def _at_held_out(self, verdicts: Coded, grader: int) -> Coded | None:
        """The verdicts with this grader's by thresholds tuned on other clusters."""
        labels, majority = self.labels, human_majority(self.labels).verdicts
        held = ~np.isnan(labels.positive[:, grader])
        if len(np.unique(majority[held & (majority >= 0)])) < 2:
            return None
        name = labels.raters[grader]
        if name in labels.scale.tunings:  # no verdict is made by what was tuned on it
            return verdicts
        default = labels.scale.threshold_for(name)
        found = held_out_verdicts(
            labels.positive[held, grader],
            majority[held],
            labels.clusters[held],
            default,
            labels.weight_of(held),
        )
        if TUNED_FOR not in found:
            return None
        return _with_verdicts(verdicts, grader, held, found[TUNED_FOR])


def _with_verdicts(verdicts: Coded, grader: int, held: Mask, affirmed: Mask) -> Coded:
    """The verdicts with others of one grader on the units (units,) that `held` names."""
    codes = verdicts.codes.copy()
    codes[held, grader] = np.where(affirmed, 0, 1)
    return replace(verdicts, codes=codes)


def _level(found: Sequence[Comparison], rule: DecisionSettings, look: int) -> Level:
    """What this look may spend, shared by all comparisons of the rubric."""
    alpha, after = (level_of_look(each, rule.looks) for each in (look, look + 1))
    if not alpha:
        return Level(0.0, look, len(found), 0.0)
    found = [each for each in found if each.counts_once]
    known = [each.apart for each in found if not np.isnan(each.apart).any()]
    together = simultaneous_level(np.column_stack(known), alpha) if known else alpha
    return Level(together, look, len(found), together * after / alpha)


def _add_bounds(rows: ResultRows, found: Comparison, level: Level) -> None:
    """The rows of one comparison."""
    said = Remark("decided_at", (level.alpha, level.look, level.graders, level.next_alpha))
    silent = _silent_reach(found, level.alpha, rows.heaviest)
    people = _bounded_over_people(found, level.alpha)
    beside = Remark("margin", (found.margin,))
    constant = Remark("constant_rater") if found.constant else ""
    # Who always says the same is one of the baselines, whatever another cluster brings.
    silent_above = 0.0 if found.constant else silent
    for statistic, interval, note in (
        (NON_INFERIORITY, _bounded(found.difference, found.apart, level.alpha, silent), beside),
        (NON_INFERIORITY_PEOPLE, people, Remark("people", (found.n_people,))),
        (ABOVE_BASELINE, _bounded(found.excess, found.above, level.alpha, silent_above), constant),
        (PEOPLE_KAPPA, _bounded(found.people, found.own, level.alpha, silent), ""),
    ):
        if interval is not None:
            rows.add(
                statistic,
                interval,
                found.counts,
                rater_a="humans",
                rater_b=found.grader,
                subset=found.subset,
                at=found.at,
                note=join_notes(said, note),
            )
    rows.add(
        RARER,
        Interval.point(found.rarer),
        found.counts,
        rater_a="humans",
        rater_b=found.grader,
        subset=found.subset,
        at=found.at,
    )


def _bounded(estimate: float, contributions: Array, alpha: float, silent: float) -> Interval:
    """Both one-sided bounds; where nothing varies, as far as an unseen cluster could lie."""
    if math.isnan(estimate):
        return Interval.undefined("too_few_raters")
    if not alpha:
        return Interval(estimate, math.nan, math.nan, (Remark("no_level"),))
    if not np.ptp(contributions) > 0:
        unseen = (Remark("nothing_varies"),)
        return Interval(estimate, estimate - silent, estimate + silent, unseen)
    below, above = reach(contributions, alpha), reach(-contributions, alpha)
    return Interval(estimate, estimate - below, estimate + above)


def _bounded_over_people(found: Comparison, alpha: float) -> Interval | None:
    """The difference for people like these; nothing with fewer than three."""
    if math.isnan(found.people_variance) or not alpha or not np.ptp(found.apart) > 0:
        return None
    below, above = (
        reach_over_people(sign * found.apart, found.people_variance, found.n_people, alpha)
        for sign in (1.0, -1.0)
    )
    return Interval(found.difference, found.difference - below, found.difference + above)


def _silent_reach(found: Comparison, alpha: float, heaviest: float) -> float:
    """How far kappa may lie away though nothing varies: as many clusters may disagree as would stay
    unseen in such a sample with a chance of `alpha` (Clopper & Pearson 1934, for none of n). They
    may all be of the kind that counts `heaviest`, being the least likely to be picked.
    """
    if not alpha:
        return math.nan
    unseen = 1.0 - alpha ** (heaviest / max(found.counts[1], 1))
    return float(min(unseen / max(1.0 - found.chance, 1e-9), 2.0))


def _over_people(coded: Coded, left_out: Resamples, grader: int) -> tuple[int, float]:
    """(people, the difference's variance over them), each person left out in turn.

    People who share at least 30 of the grader's units with it; NaN for fewer than three.
    """
    within = coded.labelled[:, grader]
    shared = shared_units(coded, left_out, within)
    people = [n for n in coded.members("human") if shared[n, grader] >= MIN_SHARED_UNITS]
    if len(people) < 3:
        return len(people), math.nan
    among = [pair for pair in combinations(people, 2) if shared[pair] >= MIN_SHARED_UNITS]
    pairs = [*((person, grader) for person in people), *among]
    data = Resamples(left_out.frequency, 0, np.random.default_rng(0), weight=left_out.weight)
    kappa = pair_statistics(coded)[deciding_kappa(coded)]
    values = np.concatenate(
        [kappa(tables)[0] for _, tables in table_chunks(coded, pairs, data, within)]
    )
    with_grader, between = values[: len(people)], values[len(people) :]
    first, second = (np.array([pair[n] for pair in among]) for n in (0, 1))
    without = [
        np.nanmean(with_grader[np.arange(len(people)) != n])
        - np.nanmean(between[(first != person) & (second != person)])
        for n, person in enumerate(people)
    ]
    m = len(people)
    return m, (m - 1) / m * float(((without - np.mean(without)) ** 2).sum())


def _rarer(coded: Coded, left_out: Resamples, within: Mask) -> tuple[float, float]:
    """(clusters in which a person chose another category than the commonest, mean over people;
    the agreement that people's shares of the categories would bring by chance)."""
    humans = list(coded.members("human"))
    codes = np.where(within[:, None], coded.codes[:, humans], -1)
    weights = left_out.mass[coded.clusters][:, None]
    counts = np.array([((codes == code) * weights).sum() for code in range(coded.q)])
    other = (codes >= 0) & (codes != counts.argmax())
    per_person = [
        left_out.count(coded.clusters, other[:, n])[1]
        for n in range(len(humans))
        if (codes[:, n] >= 0).any()
    ]
    shares = counts / max(counts.sum(), 1)
    return float(np.mean(per_person)) if per_person else 0.0, float((shares**2).sum())


def _add_winner(rows: ResultRows, found: Sequence[Comparison], level: Level) -> None:
    """The best grader's difference without the luck of having been chosen, of several graders that
    were compared on one reading, with the simultaneous bounds of all.
    """
    from scipy.special import ndtri

    for subset in dict.fromkeys(each.subset for each in found):
        among = [each for each in found if each.subset == subset and np.ptp(each.apart) > 0]
        if len(among) < 2 or not level.alpha:
            continue
        together = np.column_stack([each.apart for each in among])
        if np.isnan(together).any():
            continue
        alpha = simultaneous_level(together)
        covariance = np.cov(together, rowvar=False) / len(together)
        best, value = winner_corrected(
            np.array([each.difference for each in among]), covariance, -float(ndtri(alpha))
        )
        winner = among[best]
        chosen = _bounded(winner.difference, winner.apart, alpha, math.nan)
        rows.add(
            WINNER,
            replace(chosen, estimate=value),
            winner.counts,
            rater_a="humans",
            rater_b=winner.grader,
            subset=subset,
            note=f"the best of {len(among)} graders, corrected for having been chosen",
        )
