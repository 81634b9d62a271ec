"""Graders' probabilities of the categories compared with the shares of many humans per unit.

The humans' labels of a unit are a sample from the labels that all humans like them would give.
Shares in a small sample vary, so that the plain distance to them is too large. The distances here
are corrected, and do not depend on the number of humans who labelled. The ceiling for graders is
the distance between two groups of humans, each as large as the group who labelled.

`counts` (units, q) are the numbers of humans who chose each category of a unit. Arrays (rows,) have
a statistic's value in the data (row 0) and in every resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from evenhand.analysis.agreement.coefficients import category_shares, label_counts
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import Note, Remark, join_notes
from evenhand.analysis.types import Array, Codes, Integers, Mask, Numbers
from evenhand.analysis.writer import RubricView, Writer

TOTAL_VARIATION, EXCESS = "total_variation", "total_variation_excess"
SQUARED, EQUIVALENT = "squared_distance", "people_worth"
"""Statistics of this module."""
HALVES = "halves"
"""The `at` of the total variation between two halves of the humans."""
MIN_PEOPLE = 5
"""Fewest humans per unit: with fewer, half of them cannot be divided into groups."""
MIN_UNITS = 30
"""Fewest units with `MIN_PEOPLE` human labels."""
MOST_PEOPLE = 1000
"""Upper limit of the equivalent number of annotators of a grader."""


def disagreement(counts: Array) -> Array:
    """Return the probability that two humans' labels of a unit differ, (units,); units need two.

    It is unbiased for 1 - sum p^2 (Simpson 1949), with the shares p of all humans, which is also
    the expected squared distance of one human's label from these shares.

    >>> disagreement(np.array([[3.0, 1.0], [5.0, 0.0]])).tolist()
    [0.5, 0.0]
    """
    people = counts.sum(axis=1)
    return np.asarray(1.0 - (counts * (counts - 1.0)).sum(axis=1) / (people * (people - 1.0)))


def squared_distance(stated: Array, counts: Array) -> Array:
    """Return the squared distance (units,) of stated probabilities s (units, q) from all humans'
    shares p: sum s (s - 2 p) + sum p^2. It is unbiased, because 1 - `disagreement` is unbiased for
    sum p^2, and can be negative.

    >>> squared_distance(np.array([[1.0, 0.0]]), np.array([[3.0, 1.0]])).tolist()
    [0.0]
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray((stated * (stated - 2.0 * shares)).sum(axis=1) + 1.0 - disagreement(counts))


def total_variation(stated: Array, counts: Array) -> Array:
    """Return the total variation distance (units,) of stated probabilities from humans' shares."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(0.5 * np.abs(stated - shares).sum(axis=1))


def between_groups(counts: Array, size: Integers) -> Array:
    """Return the total variation (units,) between the shares of two disjoint groups of humans, as
    the mean over all ways to draw two such groups, which is unbiased for groups of all humans.

    Each group has `size` (units,) members, at most half of the humans of the unit.

    >>> between_groups(np.array([[3.0, 1.0], [2.0, 2.0]]), np.array([2, 2])).round(3).tolist()
    [0.5, 0.333]
    """
    people = np.rint(counts.sum(axis=1)).astype(np.intp)
    n_choosers = np.rint(counts).astype(np.intp)
    distance = np.zeros(len(counts))
    for n, m in np.unique(np.stack([people, size]), axis=1).T.tolist():
        units = (people == n) & (size == m)
        distance[units] = 0.5 * _expected_distance(n, m)[n_choosers[units]].sum(axis=1)
    return distance


@lru_cache(maxsize=512)
def _expected_distance(n: int, m: int) -> Array:
    """Return the expected distance between one category's shares in two groups of m of n humans, by
    the number of humans who chose it, (n + 1,).
    """
    n_both, n_first = np.arange(2 * m + 1), np.arange(m + 1)  # choosers in both groups, in one
    distance = np.abs(2 * n_first - n_both[:, None]) / m
    mean_distance = (_hypergeometric(2 * m, n_both, m, n_first) * distance).sum(axis=1)
    return np.asarray(_hypergeometric(n, np.arange(n + 1), 2 * m, n_both) @ mean_distance)


def _hypergeometric(n: int, successes: Codes, draws: int, drawn_successes: Codes) -> Array:
    """Return the probabilities (j, k) of `drawn_successes` (k,), by number of `successes` (j,)."""
    n_successes = successes[:, None]
    log_ways = _log_choose(n_successes, drawn_successes)
    log_ways = log_ways + _log_choose(n - n_successes, draws - drawn_successes)
    return np.asarray(np.exp(log_ways - _log_choose(np.array(n), np.array(draws))))


def _log_choose(n: Codes, k: Codes) -> Array:
    """Return the logarithm of the binomial coefficient, -inf if k is below 0 or above n."""
    from scipy.special import gammaln

    is_possible = (k >= 0) & (k <= n)
    valid_k = np.where(is_possible, k, 0)
    log_ways = gammaln(n + 1.0) - gammaln(valid_k + 1.0) - gammaln(n - valid_k + 1.0)
    return np.where(is_possible, log_ways, -np.inf)


def group_sizes(counts: Array) -> tuple[Codes, Codes]:
    """Return half and a quarter of the number of humans of each unit, each (units,)."""
    half = np.rint(counts.sum(axis=1)).astype(np.intp) // 2
    return half, np.maximum(1, half // 2)


def steps_to_all(counts: Array) -> Array:
    """Return the step from half of humans to all over the step from a quarter to half, (units,)."""
    half, quarter = group_sizes(counts)
    return np.asarray((counts.sum(axis=1) - half) / (half - quarter))


def between_whole_groups(quarter: Numbers, half: Numbers, steps: Numbers) -> Array:
    """Return the mean total variation between two groups as large as the whole group, extrapolated.

    `quarter` and `half` are the means for a quarter and for half of the humans, `steps` is the mean
    of `steps_to_all`; all of one shape.

    Halves differ more than whole groups: by a factor of sqrt(2) for many humans, less if few choose
    a category. The mean is close to a / sqrt(n + b), so 1 / mean^2 is extrapolated linearly. For 5
    humans and usual shares the error is 2%, while that of the factor sqrt(2) is 12%.

    >>> between_whole_groups(np.array(0.2), np.array(0.2 / 2**0.5), np.array(2.0)).round(6).item()
    0.1
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = (half**-2.0 + np.maximum(0.0, half**-2.0 - quarter**-2.0) * steps) ** -0.5
    return np.where(half > 0, whole, 0.0 * half)  # 0 for 0, NaN for NaN


def equivalent_people(distance: Array, one_person: Array) -> Array:
    """Return the number of annotators (rows,) whose shares are as close to all humans' shares as a
    grader's probabilities are.

    The squared `distance` of n humans' shares is `one_person` / n. The number is at most
    `MOST_PEOPLE`, also if the distance is not positive; NaN if humans never differ.

    >>> equivalent_people(np.array([0.1, -0.01, 0.1]), np.array([0.4, 0.4, 0.0])).tolist()
    [4.0, 1000.0, nan]
    """
    is_close = distance * MOST_PEOPLE <= one_person
    equivalent = np.where(is_close, float(MOST_PEOPLE), ratio(one_person, distance))
    return np.where(one_person > 0, equivalent, np.nan)


@dataclass(frozen=True)
class People:
    """Counts of humans' labels (units, q), valid only in the mask `is_enough` (units,)."""

    counts: Array
    is_enough: Mask

    @classmethod
    def of(cls, coded: Coded, members: Sequence[int]) -> People:
        """Return the counts of these humans' labels. Units with too few labels get `MIN_PEOPLE` of
        each category instead, so that every statistic is defined; they must not be used.
        """
        counts = label_counts(coded, members)
        is_enough = counts.sum(axis=1) >= MIN_PEOPLE
        return cls(np.where(is_enough[:, None], counts, float(MIN_PEOPLE)), is_enough)

    @cached_property
    def one_person(self) -> Array:
        """Squared distance of one human's label from all humans' shares, (units,)."""
        return disagreement(self.counts)

    @cached_property
    def group_features(self) -> Array:
        """Features of each unit, (units, 3): the total variation between two groups of a quarter,
        and of half, of the humans, and `steps_to_all`.
        """
        half, quarter = group_sizes(self.counts)
        distances = (between_groups(self.counts, size) for size in (quarter, half))
        return np.column_stack([*distances, steps_to_all(self.counts)])


@dataclass(frozen=True)
class StatedProbabilities:
    """Probabilities of the categories stated by a grader: `shares` (units, q), NaN if it gave
    neither probabilities nor a label. `is_label` (units,) is the mask of the units whose label is
    used instead, with probability 1. `method` is the source of the probabilities.
    """

    name: str
    shares: Array
    is_label: Mask
    method: Note = ""


def stated_by(labels: LabelMatrix, coded: Coded, grader: int) -> StatedProbabilities:
    """Return a grader's probabilities of the categories, or else its label with probability 1."""
    code, positive = coded.codes[:, grader], labels.positive[:, grader, None]
    shares, affirmative = np.full((len(code), coded.q), np.nan), labels.scale.affirmative_codes
    if coded.is_binary:  # the binary view: affirmative, then not affirmative
        shares = np.hstack([positive, 1.0 - positive])
    elif coded.q == 2 and len(affirmative) == 1:  # two categories, in the order of the scale
        first = positive if affirmative[0] == 0 else 1.0 - positive
        shares = np.hstack([first, 1.0 - first])
    stated = None if coded.is_binary else labels.distributions.get(grader)
    if stated is not None:
        total = stated.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, stated / np.where(total > 0, total, 1.0), shares)  # sum to 1
    is_label = np.isnan(shares[:, 0]) & (code >= 0)
    shares = np.where(is_label[:, None], np.eye(coded.q)[code], shares)  # 1 for the label
    return StatedProbabilities(labels.raters[grader], shares, is_label, labels.methods[grader])


def add_distribution_rows(view: RubricView) -> None:
    """Add `total_variation`, `total_variation_excess`, `squared_distance` and `people_worth`, which
    compare probabilities with humans' shares, for humans, every grader and the baselines.

    They are computed on units that at least `MIN_PEOPLE` humans labelled; with fewer than
    `MIN_UNITS` such units nothing is added.
    """
    coded, humans = view.coded, view.coded.members("human")
    everybody = People.of(coded, humans)
    if view.count(everybody.is_enough).units < MIN_UNITS:
        return
    _add_people_rows(view, everybody)
    for grader in view.labels.models:
        others = coded.humans_not_copied(grader)
        people = everybody if others == humans else People.of(coded, others)
        _add_rater_rows(view, people, stated_by(view.labels, coded, grader))
    labelled = everybody.counts * everybody.is_enough[:, None]
    shares = category_shares(labelled, coded, view.resamples)[0]  # row 0: in the data
    constant = np.eye(len(shares))[int(shares.argmax())]  # certain of the commonest category
    no_label = np.zeros(len(labelled), dtype=bool)
    for name, probabilities in zip(BASELINES, (constant, shares), strict=True):
        stated_shares = np.broadcast_to(probabilities, labelled.shape)
        _add_rater_rows(view, everybody, StatedProbabilities(name, stated_shares, no_label))


def _add_people_rows(out: Writer, people: People) -> None:
    """Add the rows of humans, the ceiling for graders."""
    units = people.is_enough
    features = [*people.group_features.T, people.one_person]
    quarter, half, steps, one_person = _mean_values(out, units, features)
    add = partial(out.add, units=out.count(units), a="humans")
    whole = between_whole_groups(quarter, half, steps)
    add(TOTAL_VARIATION, whole, note="another group of as many annotators; carried on from halves")
    add(TOTAL_VARIATION, half, at=HALVES, note="two halves of the annotators")
    add(SQUARED, one_person, note="one annotator's label")


def _mean_values(out: Writer, units: Mask, features: Sequence[Numbers]) -> list[Array]:
    """Return the mean of each feature (units,) over the masked units, (rows,) each, the data's
    first, from a single product with the resamples' weights, which is the slowest step.
    """
    sums = out.sums(*(np.where(units, feature, 0.0) for feature in features), units.astype(float))
    *totals, count = sums.T
    return [ratio(total, count) for total in totals]


def _add_rater_rows(out: Writer, people: People, stated: StatedProbabilities) -> None:
    """Add rows of a grader or baseline, compared with humans."""
    counts, compared = people.counts, people.is_enough & ~np.isnan(stated.shares[:, 0])
    distances = [measure(stated.shares, counts) for measure in (total_variation, squared_distance)]
    means = _mean_values(out, compared, [*distances, *people.group_features.T, people.one_person])
    distance, squared, quarter, half, steps, one_person = means
    add = partial(out.add, units=out.count(compared), a="humans", b=stated.name)
    units, n_labels = out.count(compared).units, out.count(compared & stated.is_label).units
    note: Note = stated.method
    if n_labels:
        on_all = Remark("hard_labels") if n_labels == units else ""
        note = join_notes(note, on_all or f"hard labels taken as certain on {n_labels} items")
    equivalent = equivalent_people(squared, one_person)
    at_limit = Remark("people_or_more", (MOST_PEOPLE,)) if equivalent[0] >= MOST_PEOPLE else ""
    excess = distance - between_whole_groups(quarter, half, steps)
    for statistic, values in ((TOTAL_VARIATION, distance), (EXCESS, excess), (SQUARED, squared)):
        add(statistic, values, note=note, reason="no_pairable_units")
    reason = "no_variation" if units else "no_pairable_units"
    add(EQUIVALENT, equivalent, note=join_notes(note, at_limit), reason=reason)
