"""Graders' probabilities compared with humans' shares, where many humans label each unit.

Humans' labels of a unit are draws from the shares that all humans like them would give. Shares of
few draws stray from these, so the plain distance to them is too long and their plain entropy too
low: the distances here are corrected for it, so that a grader looks no worse for being compared
with few humans. `counts` (units, q) are the numbers of humans who chose each category of a unit.
The noise ceiling is how far apart two groups of as many humans are.
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

MOST_PEOPLE = 1000
"""Upper limit of the number of annotators that a grader is worth."""


def disagreement(counts: Array) -> Array:
    """Probability that two of the humans differ on a unit, (units,); two labels or more.

    Unbiased for 1 - sum p^2 (Simpson 1949), which is also the expected squared distance of one
    human's label, as a certainty, from the shares p.

    >>> disagreement(np.array([[3.0, 1.0], [5.0, 0.0]])).tolist()
    [0.5, 0.0]
    """
    people = counts.sum(axis=1)
    return np.asarray(1.0 - (counts * (counts - 1.0)).sum(axis=1) / (people * (people - 1.0)))


def squared_distance(stated: Array, counts: Array) -> Array:
    """Squared distance (units,) of stated probabilities (units, q) from the shares p of all humans.

    Unbiased, as the estimate of the probability that two humans agree is unbiased for sum p^2; it
    may be below 0 by chance.

    >>> squared_distance(np.array([[1.0, 0.0]]), np.array([[3.0, 1.0]])).tolist()
    [0.0]
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    crossed = (stated * (stated - 2.0 * shares)).sum(axis=1)
    return np.asarray(crossed + 1.0 - disagreement(counts))


def total_variation(stated: Array, counts: Array) -> Array:
    """Total variation distance (units,) of stated probabilities from the shares of these humans."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(0.5 * np.abs(stated - shares).sum(axis=1))


def between_groups(counts: Array, size: Integers) -> Array:
    """Total variation (units,) between the shares of two separate groups of humans.

    Each group has `size` (units,) members; averaged over all ways to draw two such groups from the
    humans of the unit.

    Unbiased for two groups drawn from all humans. Twice the size must not exceed the humans.

    >>> between_groups(np.array([[3.0, 1.0], [2.0, 2.0]]), np.array([2, 2])).round(3).tolist()
    [0.5, 0.333]
    """
    people = np.rint(counts.sum(axis=1)).astype(np.intp)
    chosen = np.rint(counts).astype(np.intp)
    out = np.zeros(len(counts))
    for n, m in np.unique(np.stack([people, size]), axis=1).T.tolist():
        rows = (people == n) & (size == m)
        out[rows] = 0.5 * _apart(n, m)[chosen[rows]].sum(axis=1)
    return out


@lru_cache(maxsize=512)
def _apart(n: int, m: int) -> Array:
    """Expected distance of one category's shares in two groups of m of n, by those who chose it."""
    both, first = np.arange(2 * m + 1), np.arange(m + 1)
    gap = np.abs(2 * first - both[:, None]) / m
    in_both = (_hypergeometric(2 * m, both, m, first) * gap).sum(axis=1)
    return np.asarray(_hypergeometric(n, np.arange(n + 1), 2 * m, both) @ in_both)


def _hypergeometric(n: int, good: Codes, drawn: int, among: Codes) -> Array:
    """Probability of `among` (k,) in `drawn` of n of which so many are `good` (j,): (j, k)."""
    of = good[:, None]
    ways = _log_choose(of, among) + _log_choose(n - of, drawn - among)
    return np.asarray(np.exp(ways - _log_choose(np.array(n), np.array(drawn))))


def _log_choose(n: Codes, k: Codes) -> Array:
    from scipy.special import gammaln

    possible = (k >= 0) & (k <= n)
    inside = np.where(possible, k, 0)
    ways = gammaln(n + 1.0) - gammaln(inside + 1.0) - gammaln(n - inside + 1.0)
    return np.where(possible, ways, -np.inf)


def group_sizes(counts: Array) -> tuple[Codes, Codes]:
    """Return half and a quarter of the humans of each unit, each (units,); four humans or more."""
    half = np.rint(counts.sum(axis=1)).astype(np.intp) // 2
    return half, np.maximum(1, half // 2)


def reach(counts: Array) -> Array:
    """Distance from half to all of the humans, in steps from a quarter to half, (units,)."""
    half, quarter = group_sizes(counts)
    return np.asarray((counts.sum(axis=1) - half) / (half - quarter))


def between_whole_groups(quarter: Numbers, half: Numbers, steps: Numbers) -> Array:
    """Extrapolate the mean total variation between two groups as large as the whole group.

    `quarter` and `half` are the means for a quarter and for half of the humans, `steps` the mean
    `reach`; all of one shape.

    Halves of the humans are further apart than whole groups: by sqrt(2) where they are many, by
    less where few choose a category. The mean is close to a / sqrt(n + b), so 1 / mean^2 is
    extrapolated in a straight line: off by 2% for 5 humans and usual shares, where sqrt(2) is off
    by 12%.

    >>> between_whole_groups(np.array(0.2), np.array(0.2 / 2**0.5), np.array(2.0)).round(6).item()
    0.1
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = (half**-2.0 + np.maximum(0.0, half**-2.0 - quarter**-2.0) * steps) ** -0.5
    return np.where(half > 0, whole, 0.0 * half)


def worth_people(distance: Array, one_person: Array) -> Array:
    """Equivalent number of annotators of a grader, (rows,): their shares are as close to all
    humans'.

    Shares of n humans are one human's squared distance / n away. `MOST_PEOPLE` where it is more, or
    the distance is 0 or below by chance; NaN where humans never differ.

    >>> worth_people(np.array([0.1, -0.01, 0.1]), np.array([0.4, 0.4, 0.0])).tolist()
    [4.0, 1000.0, nan]
    """
    near = distance * MOST_PEOPLE <= one_person
    worth = np.where(near, float(MOST_PEOPLE), ratio(one_person, distance))
    return np.where(one_person > 0, worth, np.nan)


MIN_PEOPLE = 5
"""Humans who must label a unit: halves of fewer are not groups."""
MIN_UNITS = 30
"""Units that must have `MIN_PEOPLE` human labels."""


@dataclass(frozen=True)
class People:
    """Humans' labels: `counts` (units, q), valid where `enough` humans labelled, (units,)."""

    counts: Array
    enough: Mask

    @classmethod
    def of(cls, coded: Coded, members: Sequence[int]) -> People:
        """Count the labels of some humans. Units that too few of them labelled have meaningless
        counts: one label of each category, often enough that any statistic is defined.
        """
        counts = label_counts(coded, members)
        enough = counts.sum(axis=1) >= MIN_PEOPLE
        return cls(np.where(enough[:, None], counts, float(MIN_PEOPLE)), enough)

    @cached_property
    def one_person(self) -> Array:
        """Squared distance of one human from all, (units,)."""
        return disagreement(self.counts)

    @cached_property
    def groups(self) -> Array:
        """Components of the distance between two groups, (units, 3). The total variation of a
        quarter and of half of the humans, and the steps from there to all.
        """
        half, quarter = group_sizes(self.counts)
        apart = (between_groups(self.counts, size) for size in (quarter, half))
        return np.column_stack([*apart, reach(self.counts)])


@dataclass(frozen=True)
class Stated:
    """Probabilities of the categories stated by a grader.

    `shares` (units, q) are probabilities, NaN where there are none. `certain` (units,) marks units
    where a label is used as the probabilities; `method` is the source of the probabilities.
    """

    name: str
    shares: Array
    certain: Mask
    method: Note = ""

    @property
    def known(self) -> Mask:
        """True where it gives probabilities or a label, (units,)."""
        return ~np.isnan(self.shares[:, 0])


def stated_by(labels: LabelMatrix, coded: Coded, grader: int) -> Stated:
    """Return a grader's probabilities of the categories; without any, its label is a certainty."""
    code, positive = coded.codes[:, grader], labels.positive[:, grader, None]
    label = np.where(code[:, None] >= 0, np.eye(coded.q)[code], np.nan)
    shares, affirmative = np.full(label.shape, np.nan), labels.scale.affirmative_codes
    if coded.is_binary:
        shares = np.hstack([positive, 1.0 - positive])
    elif coded.q == 2 and len(affirmative) == 1:
        first = positive if affirmative[0] == 0 else 1.0 - positive
        shares = np.hstack([first, 1.0 - first])
    given = None if coded.is_binary else labels.distributions.get(grader)
    if given is not None:
        total = given.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, given / np.where(total > 0, total, 1.0), shares)
    certain = np.isnan(shares[:, 0]) & (code >= 0)
    shares = np.where(certain[:, None], label, shares)
    return Stated(labels.raters[grader], shares, certain, labels.methods[grader])


TOTAL_VARIATION, EXCESS = "total_variation", "total_variation_excess"
SQUARED, WORTH = "squared_distance", "people_worth"
HALVES = "halves"


def add_distribution_rows(view: RubricView) -> None:
    """Add rows for humans, every grader and the baselines.

    Nothing is added unless at least `MIN_PEOPLE` humans labelled each of at least `MIN_UNITS`
    units, which alone count. `total_variation`, `total_variation_excess`, `squared_distance` and
    `people_worth` compare probabilities with shares.
    """
    coded, humans = view.coded, view.coded.members("human")
    everybody = People.of(coded, humans)
    if view.count(everybody.enough)[0] < MIN_UNITS:
        return
    _add_people_rows(view, everybody)
    for grader in view.labels.models:
        others = coded.people_beside(grader)
        people = everybody if others == humans else People.of(coded, others)
        _add_rows(view, people, stated_by(view.labels, coded, grader))
    labelled = everybody.counts * everybody.enough[:, None]
    shares = category_shares(labelled, coded, view.resamples)[0]
    constant = np.eye(len(shares))[int(shares.argmax())]
    for name, stated, is_hard in zip(BASELINES, (constant, shares), (True, False), strict=True):
        tiled = np.tile(stated, (len(labelled), 1)), np.full(len(labelled), is_hard)
        _add_rows(view, everybody, Stated(name, *tiled))


def _add_people_rows(out: Writer, people: People) -> None:
    """Add rows of humans: the ceiling for graders."""
    units = people.enough
    quarter, half, steps, one_person = _means(out, units, [*people.groups.T, people.one_person])
    add = partial(out.add, units=out.count(units), a="humans")
    whole = between_whole_groups(quarter, half, steps)
    add(TOTAL_VARIATION, whole, note="another group of as many annotators; carried on from halves")
    add(TOTAL_VARIATION, half, at=HALVES, note="two halves of the annotators")
    add(SQUARED, one_person, note="one annotator's label")


def _means(out: Writer, units: Mask, features: Sequence[Numbers]) -> list[Array]:
    """Return means over some units, (units,), of features (units,): (rows,) each, by one product
    with the resamples' weights, which is the most expensive step.
    """
    sums = out.sums(*(np.where(units, feature, 0.0) for feature in features), units.astype(float))
    *totals, count = sums.T
    return [ratio(total, count) for total in totals]


def _add_rows(out: Writer, people: People, stated: Stated) -> None:
    """Add rows of a grader or baseline, compared with humans."""
    counts, both = people.counts, people.enough & stated.known
    distances = [of(stated.shares, counts) for of in (total_variation, squared_distance)]
    means = _means(out, both, [*distances, *people.groups.T, people.one_person])
    apart, squared, quarter, half, steps, one_person = means
    add = partial(out.add, units=out.count(both), a="humans", b=stated.name)
    units, certain = out.count(both)[0], out.count(both & stated.certain)[0]
    note: Note = stated.method
    if certain and stated.name not in BASELINES:
        hard = Remark("hard_labels") if certain == units else ""
        note = join_notes(note, hard or f"hard labels taken as certain on {certain} items")
    worth = worth_people(squared, one_person)
    capped = Remark("people_or_more", (MOST_PEOPLE,)) if worth[0] >= MOST_PEOPLE else ""
    excess = apart - between_whole_groups(quarter, half, steps)
    for statistic, values in ((TOTAL_VARIATION, apart), (EXCESS, excess), (SQUARED, squared)):
        add(statistic, values, note=note, reason="no_pairable_units")
    unclear = "no_variation" if units else "no_pairable_units"
    add(WORTH, worth, note=join_notes(note, capped), reason=unclear)
