"""The rows that verdicts rest on: graders compared with people, bounded at the verdict's level.

A verdict is a test: may the grader lie further below people than the margin? Its error rate is that
of the bounds here, taken at the null (see `analysis.bootstrap.score`), at a level that leaves room
for every look at the study (`analysis.bootstrap.influence`) and for all graders of the rubric at
once. The intervals elsewhere in the results are each for one figure at one look.

Bounds are for these people and pairs like these; from three people on also for people like these,
where what people add to the variance is the jackknife's, each person left out in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from evenhand.analysis.agreement.pairs import deciding_kappa
from evenhand.analysis.bootstrap.influence import (
    ALPHA,
    level_of_look,
    reach,
    reach_over_people,
    simultaneous_level,
)
from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Deciding, Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import BINARY, LabelMatrix
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.notes import Remark
from evenhand.analysis.planning.more_clusters import Pilot, surer_level
from evenhand.analysis.results import BASELINES, ResultRow, ResultRows
from evenhand.analysis.types import Array
from evenhand.analysis.verdicts.comparison import (
    UNTUNED,
    AtNull,
    Beside,
    Comparison,
    Reading,
    if_wrong,
    readings_of,
)
from evenhand.study.settings.analysis import DecisionSettings

NON_INFERIORITY = "non_inferiority"
NON_INFERIORITY_PEOPLE = "non_inferiority_people"
IF_WRONG = "non_inferiority_unscored_as_disagreement"
PART = "part_non_inferiority"
ABOVE_BASELINE = "kappa_above_baseline"
PEOPLE_KAPPA = "people_kappa"
RARER = "rarer_clusters"
WORTH = "clusters_worth"
CHANCE = "chance_within_margin"
NEEDED = "clusters_to_pass"
WINNER = "best_grader_difference"
STATISTICS = (
    *(NON_INFERIORITY, NON_INFERIORITY_PEOPLE, IF_WRONG, PART, ABOVE_BASELINE, PEOPLE_KAPPA),
    *(RARER, WORTH, CHANCE, NEEDED, WINNER),
)
"""All that `add_deciding_rows` adds."""


def add_deciding_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    margin: float,
    rule: DecisionSettings,
    look: int = 1,
    parts: Sequence[UnitColumn] = (),
    error: float = ALPHA,
) -> None:
    """Add the rows that verdicts rest on for every grader, and at = "held_out" for thresholds tuned
    on other clusters: `non_inferiority`, the ceiling difference; `non_inferiority_people`, the same
    for people like these; `non_inferiority_unscored_as_disagreement`, the one that decides if every
    missing answer were wrong, where some are missing; `kappa_above_baseline`; `people_kappa`;
    `chance_within_margin`; `clusters_worth`, the effective number of clusters, `clusters_to_pass`,
    and `rarer_clusters`, that of clusters with a label of a rarer category. For all graders
    together `best_grader_difference`, corrected for having been chosen. And `non_inferiority` once
    more in each part of the sample that `parts` tell apart.

    `low` and `high` are one-sided bounds, each at the level of the verdict, so that a wrong pass
    has at most the `error`, over all graders and looks. Of the `resamples` of
    the clusters only the clusters themselves are taken.
    """
    if not labels.humans:
        return
    # Clusters without a person's label tell nothing about people, and are not counted.
    labelled = np.flatnonzero((labels.codes[:, list(labels.humans)] >= 0).any(axis=1))
    left_out = resamples.left_out(labels.clusters[labelled])
    beside = Beside(left_out, margin, rule.margin_share)
    readings, found = list(readings_of(labels)), []
    for reading in readings:
        kappas = (
            rows.get(deciding_kappa(reading.coded), "humans", name, reading.coded.subset)
            for name in BASELINES
        )
        better = max((row["estimate"] for row in kappas if row is not None), default=math.nan)
        compared = beside.compared(reading, better)
        if compared is not None and not math.isnan(compared.excess):
            found.append(compared)
    if not found:
        return
    once = [each.apart for each in found if each.reading.counts_once]
    level = shared_level(once, len(found), rule, look, error)
    for each in found:
        if each.reading.at == UNTUNED:
            continue
        _add_bounds(rows, each, level)
        # The one that decides if every missing answer were wrong, through the same bound.
        wrong = if_wrong(labels, each.reading, left_out.mass.astype(float))
        worst = beside.compared(wrong, each.to_beat) if wrong else None
        if worst is not None:
            difference = _at_null(worst.difference, worst.below_people, level.alpha)
            if rule.scope == "like_these":
                difference = _bounded_over_people(worst, difference, level.alpha) or difference
            at_margin = replace(level, margin=worst.margin, margin_share=worst.share)
            rows.add(IF_WRONG, difference.held(at_margin), worst.counts, **worst.reading.key)
    judged = [each for each in readings if each.at != UNTUNED]
    add_part_rows(rows, judged, beside, parts, level.alpha, rule.min_rarer)
    _add_winner(rows, [each for each in found if not each.reading.at], level)


def shared_level(
    influences: Sequence[Array], comparisons: int, rule: DecisionSettings, look: int, error: float
) -> Deciding:
    """Return the level that this look may spend, shared by all `comparisons` of a rubric, of which
    these are the clusters' influences (clusters,).
    """
    alpha, after = (level_of_look(each, rule.looks, error) for each in (look, look + 1))
    if not alpha:
        return Deciding(0.0, look, comparisons, 0.0)
    known = [each for each in influences if not np.isnan(each).any()]
    together = simultaneous_level(np.column_stack(known), alpha) if known else alpha
    return Deciding(together, look, comparisons, together * after / alpha)


def _add_bounds(rows: ResultRows, found: Comparison, level: Deciding) -> None:
    """Add the rows of one comparison."""
    difference = _at_null(found.difference, found.below_people, level.alpha)
    people = _bounded_over_people(found, difference, level.alpha)
    at_margin = replace(level, margin=found.margin)
    of_share = replace(at_margin, margin_share=found.share)
    over_people = replace(
        level,
        people=found.people.number,
        from_people=found.share_of_people,
        bar=-found.margin,
    )
    pooled = Remark("pooled_pairs") if found.pooled else ""
    # A constant grader is itself one of the baselines, whatever another cluster brings.
    above = _at_null(found.excess, found.above_baseline, level.alpha)
    if found.constant:
        above = Interval(found.excess, found.excess, found.excess)
    constant = Remark("constant_rater") if found.constant else ""
    chance, to_pass, factor = Interval.point(found.chance_within), None, math.inf
    # The total number of clusters that would show at the next look that the grader is within the
    # margin, in 80% of studies if the estimates stay; unless it is shown already.
    if difference.low <= -found.margin < difference.estimate and level.next_alpha > 0:
        factor = found.below_people.growth(found.null, surer_level(level.next_alpha))
    if math.isfinite(factor):
        to_pass = Interval.point(math.ceil(factor * found.counts[1]))
    kappa = _bounded_kappa(found, level.alpha, rows.heaviest)
    for statistic, interval, deciding, note in (
        (NON_INFERIORITY, difference, of_share, pooled),
        (NON_INFERIORITY_PEOPLE, people, over_people, ""),
        (ABOVE_BASELINE, above, replace(level, bar=0.0), constant),
        (PEOPLE_KAPPA, kappa, level, pooled),
        (CHANCE, chance, at_margin, ""),
        (NEEDED, to_pass, level, ""),
        (WORTH, Interval.point(found.sample.worth), level, ""),
        (RARER, Interval.point(found.sample.rarer), level, ""),
    ):
        if interval is not None:
            rows.add(
                statistic, interval.held(deciding), found.counts, **found.reading.key, note=note
            )


def _at_null(estimate: float, tested: AtNull, alpha: float) -> Interval:
    """Return the estimate with both one-sided bounds of what is tested around it."""
    if math.isnan(estimate):
        return Interval.undefined("too_few_raters")
    if not alpha:
        return Interval(estimate, math.nan, math.nan, (Remark("no_level"),))
    return tested.around(estimate, alpha)


def _bounded_kappa(found: Comparison, alpha: float, heaviest: float) -> Interval:
    """Return people's kappa with both one-sided bounds; where nothing varies, as far away from it
    as unseen clusters could move it.

    As many clusters may disagree as would stay unseen in such a sample with a chance of `alpha`
    (Clopper & Pearson 1934, for none of n). They may all be of the kind that counts `heaviest`,
    being the least likely to be picked.
    """
    estimate, contributions = found.people.kappa, found.people.influence
    if math.isnan(estimate):
        return Interval.undefined("too_few_raters")
    if not alpha:
        return Interval(estimate, math.nan, math.nan, (Remark("no_level"),))
    if not np.ptp(contributions) > 0:
        unseen = 1.0 - alpha ** (heaviest / max(found.counts[1], 1))
        silent = float(min(unseen / max(1.0 - found.chance, 1e-9), 2.0))
        varies_not = (Remark("nothing_varies"),)
        return Interval(estimate, estimate - silent, estimate + silent, varies_not)
    below, above = reach(contributions, alpha), reach(-contributions, alpha)
    return Interval(estimate, estimate - below, estimate + above)


def _bounded_over_people(found: Comparison, these: Interval, alpha: float) -> Interval | None:
    """The difference for people like these; None with fewer than three people."""
    if math.isnan(found.people.variance) or not alpha or math.isnan(these.low):
        return None
    reached = np.array([these.estimate - these.low, these.high - these.estimate])
    of_people = found.people.variance, found.people.number
    below, above = reach_over_people(reached, *of_people, found.sample.worth, alpha).tolist()
    return Interval(found.difference, found.difference - below, found.difference + above)


def add_part_rows(
    rows: ResultRows,
    readings: Sequence[Reading],
    beside: Beside,
    columns: Sequence[UnitColumn],
    alpha: float,
    min_rarer: int,
) -> None:
    """Add `part_non_inferiority` of every grader in every part that units columns tell apart: as
    `non_inferiority`, with bounds that hold in all parts of a grader at once at the level `alpha`
    (Bonferroni: parts share few clusters).

    A pass on the whole may fail in a part. Only a part in which a grader is clearly below people
    counts against it: most parts are too small to show more. There are no bounds where fewer than
    `min_rarer` clusters have a label of the rarer kind.
    """
    if not readings:
        return
    parts, clusters = [], readings[0].coded.clusters
    for name, chosen in (part for column in columns for part in column.parts()):
        inside = beside.left_out.only(np.unique(clusters[chosen]))
        parts.append((name, chosen, Beside(inside, beside.margin, beside.margin_share)))
    for reading in readings:
        for name, chosen, of_units in parts:
            coded = reading.coded.only(chosen, reading.coded.part(name))
            people = coded.people_beside(reading.grader)
            both = coded.labelled[:, reading.grader] & coded.labelled_by_any(people)
            of_part = Reading(coded, reading.grader, reading.at)
            found = of_units.compared(of_part, to_beat=0.0)
            if found is None:
                bounds = Interval.undefined("too_few_labels")
            elif found.sample.rarer < min_rarer or found.sample.worth < MIN_CLUSTERS or not alpha:
                bounds = Interval.point(found.difference, Remark("too_few_labels"))
            else:
                bounds = found.below_people.around(found.difference, alpha / len(parts))
            held = bounds.held(Deciding(margin=found.margin) if found else None)
            counts = of_units.left_out.count(coded.clusters, both)
            rows.add(PART, held, counts, **of_part.key)


def part_of(row: ResultRow) -> str:
    """The name of the part that a row is about."""
    return row["subset"].removesuffix(BINARY)


def _add_winner(rows: ResultRows, found: Sequence[Comparison], level: Deciding) -> None:
    """The best grader's difference without the luck of having been chosen, of several graders that
    were compared on one reading, with the simultaneous bounds of all.
    """
    from scipy.special import ndtri

    for subset in dict.fromkeys(each.reading.coded.subset for each in found):
        among = [
            each for each in found if each.reading.coded.subset == subset and np.ptp(each.apart) > 0
        ]
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
        chosen = _at_null(winner.difference, winner.below_people, alpha)
        note = f"the best of {len(among)} graders, corrected for having been chosen"
        rows.add(
            WINNER, replace(chosen, estimate=value), winner.counts, **winner.reading.key, note=note
        )


def winner_corrected(estimates: Array, covariance: Array, reach: float) -> tuple[int, float]:
    """Return the winner, and its estimate corrected for having been chosen as the best, of jointly
    normal estimates (graders,).

    The best of many looks better than it is. Given that it is the best, its estimate is normal with
    the tail below the runner-up cut off; the corrected estimate is the value under which the
    observed one would be the median (Andrews, Kitagawa & McCloskey 2024, section 3). It is kept
    within the reach of the simultaneous interval, as their hybrid estimator is: far from a tie it
    is the plain estimate, and near one it is not carried away.

    `covariance` (graders, graders) is theirs; `reach` is how many standard errors the simultaneous
    interval reaches to each side, within which the corrected value is kept.

    >>> far = winner_corrected(np.array([0.5, 0.0]), np.diag([0.01, 0.01]), 2.5)
    >>> near = winner_corrected(np.array([0.05, 0.0]), np.diag([0.01, 0.01]), 2.5)
    >>> far[0], round(far[1], 3), near[0], round(near[1], 3)
    (0, 0.5, 0, -0.057)
    """
    from scipy.optimize import brentq
    from scipy.stats import truncnorm

    best = int(np.argmax(estimates))
    value, spread = float(estimates[best]), float(np.sqrt(covariance[best, best]))
    if len(estimates) < 2 or not spread > 0:
        return best, value
    # The values with which it wins, with the independent part of the others held fixed.
    slope = covariance[:, best] / covariance[best, best]
    lowest, highest = -np.inf, np.inf
    for other in np.flatnonzero((np.arange(len(estimates)) != best) & (slope != 1.0)):
        end = float((estimates[other] - slope[other] * value) / (1.0 - slope[other]))
        if slope[other] < 1.0:
            lowest = max(lowest, end)
        else:
            highest = min(highest, end)
    low, high = value - reach * spread, value + reach * spread

    def too_likely(mean: float) -> float:
        """Return the probability of a value up to the observed one, minus a half: of one that is
        normal about `mean` and known to lie between the ends.
        """
        at = ((end - mean) / spread for end in (lowest, highest))
        return float(truncnorm.cdf((value - mean) / spread, *at)) - 0.5

    if too_likely(low) <= 0:
        return best, low
    if too_likely(high) >= 0:
        return best, value
    return best, float(brentq(too_likely, low, high))


def pilots(rows: Iterable[ResultRow]) -> list[Pilot]:
    """Return each grader compared with people, on the labels that its verdict is taken from, where
    there are bounds.
    """
    from scipy.special import stdtrit

    compared = [row for row in rows if row["rater_a"] == "humans" and not row["at"]]
    wider = {
        (row["rubric"], row["rater_b"]): row
        for row in compared
        if row["statistic"] == NON_INFERIORITY_PEOPLE
    }
    found = []
    for row in compared:
        if row["statistic"] != NON_INFERIORITY or not row["high"] > row["low"]:
            continue
        level, over_people = row["deciding"] or Deciding(), Deciding(from_people=math.nan)
        if like_these := wider.get((row["rubric"], row["rater_b"])):
            over_people = like_these["deciding"] or over_people
        reached, share = (row["high"] - row["low"]) / 2, over_people.from_people
        of_clusters = (reached / float(stdtrit(row["n_clusters"] - 1, 1.0 - level.alpha))) ** 2
        pilot = Pilot(
            rubric=row["rubric"],
            grader=row["rater_b"],
            difference=row["estimate"],
            margin=level.margin,
            of_clusters=of_clusters,
            clusters=row["n_clusters"],
            of_people=of_clusters * share / (1.0 - share),
            people=over_people.people,
            alpha=level.next_alpha,
        )
        found.append(pilot)
    return found
