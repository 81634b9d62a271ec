"""A grader compared with people: estimates, and how far they may lie from the truth.

Where all people share units with one another, kappas are means over pairs of raters; in a crowd
where each person labelled only a few units, all pairs of labels are pooled
(`analysis.people.crowds`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from evenhand.analysis.agreement.coefficients import cohen_kappa
from evenhand.analysis.agreement.counts import label_counts, usual_codes
from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    agreement_between,
    cluster_tables,
    deciding_kappa,
    pair_statistics,
    shared_units,
    table_chunks,
)
from evenhand.analysis.bootstrap.influence import influence, standard_error
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.score import (
    PSEUDO,
    Kappas,
    Sample,
    chance_above,
    lower_bound,
    upper_bound,
)
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.labels.weights import effective_size
from evenhand.analysis.people.ceiling import with_and_among_humans
from evenhand.analysis.people.crowds import is_crowd, pooled_kappas, said_beside
from evenhand.analysis.requirement import ClusterCounts
from evenhand.analysis.types import Array, Codes, Integers, Labels, Mask
from evenhand.analysis.verdicts.readings import Reading
from evenhand.study.settings.analysis import MOST_OF_PEOPLE

_VARIES = 1e-9
"""More standard deviation than rounding leaves."""


@dataclass(frozen=True)
class AtNull:
    """A statistic of a grader, bounded at the null (`analysis.bootstrap.score`)."""

    statistic: Kappas
    sample: Sample

    def reach(self, alpha: float) -> tuple[float, float]:
        """Return the distances of both bounds from the estimate: (below, above), NaN where
        undefined.
        """
        estimate = float(self.sample.estimate)
        if not self.statistic.tables.size:
            return math.nan, math.nan
        low = float(lower_bound(self.statistic, self.sample, alpha))
        return estimate - low, float(upper_bound(self.statistic, self.sample, alpha)) - estimate

    def mirrored(self) -> AtNull:
        """The negative of the statistic: its lower bound is this one's upper bound."""
        sample = replace(self.sample, estimate=-self.sample.estimate)
        return AtNull(self.statistic.sign_changed(), sample)

    def chance_above(self, null: float) -> float:
        """The approximate probability that the statistic is above a value."""
        if not self.statistic.tables.size:
            return math.nan
        return float(chance_above(self.statistic, self.sample, np.array(null)))

    def growth(self, null: float, alpha: float, most: float) -> float:
        """Factor by which the sample must grow for its lower bound to be above a value, if all else
        stays the same; infinite beyond `most`.
        """
        if not float(self.sample.estimate) > null or not alpha > 0:
            return math.inf

        def is_enough(factor: float) -> bool:
            sample, statistic = self.sample, self.statistic
            seen = statistic.base >= 1.0
            grown = replace(statistic, base=np.where(seen, factor, 1.0) * statistic.base)
            many = replace(sample, clusters=factor * sample.clusters, worth=factor * sample.worth)
            return float(lower_bound(grown, many, alpha)) > null

        low, high = 1.0, 1.0
        while not is_enough(high):
            if high >= most:
                return math.inf
            low, high = high, min(2.0 * high, most)
        while high > low * 1.02:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high


@dataclass(frozen=True)
class AmongPeople:
    """People's kappa with one another, and the influence of each cluster on it (clusters,). The
    `variance` is that of a grader's difference over this `number` of people, NaN for fewer than
    three.
    """

    kappa: float
    influence: Array
    number: int
    variance: float


@dataclass(frozen=True)
class Comparison:
    """A grader compared with people on one label view.

    `difference` is its kappa with people minus theirs with one another, compared with `margin`, or
    with this `share` of their kappa; `apart` (clusters,) is the influence on what is tested,
    `below_people` bounds it at the null. `kappas` (rows,) are its kappa in the data and without
    each cluster, `to_beat` the better baseline's, above which `above_baseline` bounds it.
    `sample.rarer` counts clusters in which a person chose another category than the commonest;
    `chance` is the chance agreement that shares like people's imply. `pooled` is True where all
    pairs of labels are pooled.
    """

    reading: Reading
    counts: tuple[int, int]
    sample: ClusterCounts
    difference: float
    apart: Array
    margin: float
    share: float
    below_people: AtNull
    kappas: Array
    to_beat: float
    above_baseline: AtNull
    people: AmongPeople
    chance: float
    constant: bool
    pooled: bool

    @property
    def grader(self) -> str:
        """The grader's name."""
        return self.reading.coded.raters[self.reading.grader]

    @property
    def subset(self) -> str:
        """The label view's name in the results."""
        return self.reading.coded.subset

    @property
    def excess(self) -> float:
        """Kappa minus the better baseline's."""
        return float(self.kappas[0]) - self.to_beat

    @property
    def share_of_people(self) -> float:
        """The share of the difference's variance that comes from the choice of people."""
        both = self.people.variance + standard_error(self.apart) ** 2
        return self.people.variance / both if both > 0 else 0.0

    @property
    def null(self) -> float:
        """Value of the tested quantity if the grader lies below people by exactly the margin."""
        return float(self.below_people.sample.estimate) - self.difference - self.margin

    @cached_property
    def chance_within(self) -> float:
        """The approximate probability that the grader is within the margin."""
        return self.below_people.chance_above(self.null)


@dataclass(frozen=True)
class Beside:
    """Compare graders with people, in the data and without each cluster (`left_out`).

    `margin` is how far below people they may lie, or else `margin_share` of people's own kappa.
    """

    left_out: Resamples
    margin: float
    margin_share: float = 0.0
    _known: dict[tuple[str, tuple[str, ...]], KappaMeans] = field(default_factory=dict)

    def compared(self, reading: Reading, to_beat: float) -> Comparison | None:
        """Compare one label view of a grader with people; None where they share too few units.

        `to_beat` is the better baseline's kappa.
        """
        coded, grader = reading.coded, reading.grader
        pooled = is_crowd(coded, self.left_out, grader)
        if pooled:
            said = said_beside(coded, self.left_out, grader, pooled=True)
            several = np.asarray((said >= 0).any(axis=1))
            if self.left_out.count(coded.clusters, several)[0] < MIN_SHARED_UNITS:
                return None
            with_people, among = pooled_kappas(coded, self.left_out, grader)
        else:
            mean, people = with_and_among_humans(self._kappas(coded), coded, grader)
            if mean is None:
                return None
            with_people = mean.values
            among = people.values if people else np.full(len(mean.values), np.nan)
        own = float(among[0])
        share = self.margin_share
        if not share and self.margin > MOST_OF_PEOPLE * own > 0:
            share = MOST_OF_PEOPLE
        within = coded.labelled[:, grader]
        inside = within & coded.labelled_by_any(coded.people_beside(grader))
        tested = with_people - (1.0 - share) * among
        sizes = sizes_of(coded, self.left_out, inside)
        points = Points.of(coded, self.left_out, [grader], pooled=pooled)
        n_people, variance = _over_people(coded, self.left_out, grader, pooled)
        rarer, chance = _rarer(coded, self.left_out, grader, sizes, pooled)
        worth = effective_size(sizes) if sizes.any() else 0.0
        counts = self.left_out.count(coded.clusters, inside)
        return Comparison(
            reading=reading,
            counts=counts,
            sample=ClusterCounts(counts[1], worth, rarer),
            difference=float(with_people[0]) - own,
            apart=influence(tested),
            margin=share * own if share else self.margin,
            share=share,
            below_people=points.at_null(tested, worth, (1.0 - share) * among),
            kappas=with_people,
            to_beat=to_beat,
            above_baseline=points.at_null(with_people, worth),
            people=AmongPeople(own, influence(among), n_people, variance),
            chance=chance,
            constant=len(np.unique(coded.codes[within, grader])) < 2,
            pooled=pooled,
        )

    def _kappas(self, coded: Coded) -> KappaMeans:
        """People's pairwise kappas, which graders that label the same units share."""
        key = coded.subset, coded.kinds
        if key not in self._known:
            self._known[key] = KappaMeans(coded, self.left_out, [deciding_kappa(coded)])
        return self._known[key]


@dataclass(frozen=True)
class Points:
    """Tables from which the kappas of one grader or two are computed: the clusters that they
    labelled (or groups of many, the `rows` of the jackknife) as they are and with every other label
    by a grader: tables (points, tables, q, q), each with its weight. `signs` (tables,) average over
    people.
    """

    tables: Array
    weights: Array
    signs: Array
    agreement: Array
    rows: Integers

    @classmethod
    def of(
        cls, coded: Coded, left_out: Resamples, graders: Sequence[int], *, pooled: bool
    ) -> Points:
        """The points of graders on the same units: of the first, minus those of the second."""
        said = [said_beside(coded, left_out, each, pooled=pooled) for each in graders]
        agreement = agreement_between(coded)

        def tables(which: int, grades: Codes) -> Array:
            return left_out.each_row(_tables(coded, left_out, said[which], grades, pooled=pooled))

        own = [coded.codes[:, each].astype(np.intp) for each in graders]
        if not pooled:
            together = [tables(n, each).sum(axis=0) for n, each in enumerate(own)]
            defined = np.isfinite([cohen_kappa(each, agreement) for each in together]).all(axis=0)
            said = [each[:, defined] for each in said]
        known = [tables(n, each) for n, each in enumerate(own)]
        seen = np.concatenate(known, axis=1)
        rows = np.flatnonzero(seen.any(axis=(1, 2, 3)))
        unseen = []
        for n, grades in enumerate(own):
            labelled = (grades >= 0) & (said[n] >= 0).any(axis=1)
            for other in _unseen(coded, _usual(coded, said[n])):
                given = np.where(labelled, other, -1)
                changed = [tables(n, given) if m == n else each for m, each in enumerate(known)]
                moved = (np.concatenate(changed, axis=1) - seen) / left_out.clusters_in_row
                unseen.append((seen + moved)[rows])
        count, others = len(rows), max(len(rows) * len(unseen), 1)
        clusters = max(seen.shape[1] * left_out.clusters_in_row * count, 1.0)
        pseudo = PSEUDO / math.sqrt(max(seen.sum() / clusters, 1.0))  # units of a cluster
        weights = np.concatenate([np.ones(count), np.full(count * len(unseen), pseudo / others)])
        people = max(known[0].shape[1], 1)
        signs = np.repeat([1.0, -1.0][: len(graders)], people) / people
        return cls(np.concatenate([seen[rows], *unseen]), weights, signs, agreement, rows)

    def at_null(self, values: Array, worth: float, linear: Array | None = None) -> AtNull:
        """A statistic of these tables, minus what is `linear` in the clusters' weights. Both are
        given in the data and without each cluster (rows,); `worth` is the effective number of
        clusters.
        """
        kept, n = np.concatenate([[0], 1 + self.rows]), len(self.rows)
        minus = np.zeros(len(self.weights))
        if linear is not None and n:
            minus -= np.tile(linear[0] + influence(linear[kept]), len(self.weights) // n)
        statistic = Kappas(self.tables, self.signs, self.agreement, minus, self.weights)
        data = np.where(np.arange(len(self.weights)) < n, 1.0 / max(n, 1), 0.0)
        spread = float(np.sqrt((data * statistic.at(data)[1] ** 2).sum()))
        stretch = 1.0
        if n > 1 and spread > _VARIES:
            stretch = max(float(influence(values[kept]).std(ddof=1)) / spread, 1.0)
        return AtNull(statistic, Sample(np.array(values[0]), n, worth, np.array(stretch)))


def _usual(coded: Coded, said: Labels) -> Codes:
    """The label (units,) that most people chose, of those they `said` (units, people); of numbers
    their median.
    """
    everyone = replace(coded, codes=said, raters=("",) * said.shape[1])
    members = range(said.shape[1])
    if coded.is_number:
        return np.maximum(usual_codes(everyone, members), 0)
    most: Codes = label_counts(everyone, members).argmax(axis=1)
    return most


def _unseen(coded: Coded, usual: Codes) -> list[Codes]:
    """Labels that a grader could have given but did not: the categories after the `usual` one
    (units,), which most people chose, in turn; on an ordered scale the usual one and its
    neighbours, of numbers those a tenth of them away.
    """
    if coded.level == "nominal":
        return [(usual + step) % coded.q for step in range(coded.q)]
    step = max(round((coded.q - 1) / 10), 1) if coded.is_number else 1
    return [np.clip(usual + each, 0, coded.q - 1) for each in (-step, 0, step)]


def _tables(
    coded: Coded, left_out: Resamples, said: Labels, grades: Codes, *, pooled: bool
) -> Array:
    """Tables (clusters, people, q, q) of each person's labels `said` (units, people) and `grades`
    (units,), summed over clusters and weighted as these are; one table if `pooled`.
    """
    n, q = left_out.n_types, coded.width
    out = np.zeros((n, 1 if pooled else said.shape[1], q * q))
    for person in range(said.shape[1]):
        found = cluster_tables(coded, said[:, [person]], grades[:, None], n)
        out[:, 0 if pooled else person] += found[..., 0]
    if left_out.weight is not None:
        out *= left_out.weight[:, None, None]
    return out.reshape(n, -1, q, q)


def sizes_of(coded: Coded, left_out: Resamples, inside: Mask) -> Array:
    """Weight of each cluster (clusters,): the number of its units `inside` times its sampling
    weight.
    """
    sums = left_out.cluster_sums(coded.clusters, inside[:, None].astype(float))
    if left_out.weight is not None:
        sums = sums * left_out.weight[:, None]
    found: Array = left_out.each_cluster(sums)[:, 0]
    return found


def _over_people(coded: Coded, left_out: Resamples, grader: int, pooled: bool) -> tuple[int, float]:
    """(people, the difference's variance over them), each person left out in turn.

    People who share at least 30 of the grader's units with it, or any in a crowd; NaN for fewer
    than three.
    """
    if pooled:
        return _over_crowd(coded, left_out, grader)
    within = coded.labelled[:, grader]
    shared = shared_units(coded, left_out, within)
    people = [n for n in coded.people_beside(grader) if shared[n, grader] >= MIN_SHARED_UNITS]
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no person left to compare: undefined
        without = [
            np.nanmean(with_grader[np.arange(len(people)) != n])
            - np.nanmean(between[(first != person) & (second != person)])
            for n, person in enumerate(people)
        ]
    m = len(people)
    return m, (m - 1) / m * float(((without - np.mean(without)) ** 2).sum())


def _over_crowd(coded: Coded, left_out: Resamples, grader: int) -> tuple[int, float]:
    """`_over_people` where all pairs of labels are pooled."""
    people = [n for n in coded.people_beside(grader) if coded.labelled[:, n].any()]
    data = Resamples(left_out.frequency, 0, np.random.default_rng(0), weight=left_out.weight)
    without = []
    for person in people:
        codes = coded.codes.copy()
        codes[:, person] = -1
        with_people, among = pooled_kappas(replace(coded, codes=codes), data, grader)
        without.append(float(with_people[0] - among[0]))
    known = np.array([each for each in without if math.isfinite(each)])
    m = len(known)
    variance = (m - 1) / m * float(((known - known.mean()) ** 2).sum()) if m > 2 else math.nan
    return len(people), variance


def _rarer(
    coded: Coded, left_out: Resamples, grader: int, sizes: Array, pooled: bool
) -> tuple[float, float]:
    """(effective number of the clusters, of these `sizes`, in which a person chose another category
    than the commonest, mean over people, or in a crowd in which most people did; the agreement that
    people's shares of the categories would bring by chance).
    """
    humans = list(coded.people_beside(grader))
    codes = np.where(coded.labelled[:, [grader]], coded.codes[:, humans], -1)
    weights = left_out.mass[coded.clusters][:, None]
    counts = np.array([((codes == code) * weights).sum() for code in range(coded.q)])
    labelled = np.asarray(codes >= 0)
    other = np.asarray(labelled & (codes != counts.argmax()))
    if pooled:
        most = 2 * other.sum(axis=1) > labelled.sum(axis=1)
        other = np.asarray(most)[:, None]
        labelled = np.asarray(labelled.any(axis=1))[:, None]
    each = other[:, labelled.any(axis=0)]
    sums = left_out.cluster_sums(coded.clusters, each.astype(float))
    held = left_out.each_cluster(sums).T > 0
    found = [effective_size(sizes[own]) if sizes[own].any() else 0.0 for own in held]
    shares = counts / max(counts.sum(), 1)
    return float(np.mean(found)) if found else 0.0, float((shares**2).sum())
