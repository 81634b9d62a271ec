"""A grader set beside people: estimates, and what each cluster contributes to them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
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
from evenhand.analysis.bootstrap.influence import influence, standard_error
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.people.ceiling import with_and_among_humans
from evenhand.analysis.types import Array
from evenhand.analysis.verdicts.readings import Reading


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
    counts_once: bool

    @property
    def share_of_people(self) -> float:
        """The share of the difference's variance that comes with the choice of people."""
        both = self.people_variance + standard_error(self.apart) ** 2
        return self.people_variance / both if both > 0 else 0.0


@dataclass(frozen=True)
class Beside:
    """Sets graders beside people, in the data and without each cluster (`left_out`).

    `margin` is how far below people they may lie, or else `margin_share` of people's own kappa.
    """

    left_out: Resamples
    margin: float
    margin_share: float = 0.0
    _known: dict[tuple[str, tuple[str, ...]], KappaMeans] = field(default_factory=dict)

    def compared(self, reading: Reading, to_beat: float) -> Comparison | None:
        """One reading of a grader; None where it shares too few units with people.

        `to_beat` is the better baseline's kappa.
        """
        coded, grader = reading.coded, reading.grader
        mean, people = with_and_among_humans(self._kappas(coded), coded, grader)
        if mean is None:
            return None
        among = people.values if people else np.full(len(mean.values), np.nan)
        within = coded.labelled[:, grader]
        inside = within & coded.labelled_by_any(coded.people_beside(grader))
        n_people, variance = _over_people(coded, self.left_out, grader)
        rarer, chance = _rarer(coded, self.left_out, grader)
        own, share = float(among[0]), self.margin_share
        return Comparison(
            subset=coded.subset,
            at=reading.at,
            grader=coded.raters[grader],
            counts=self.left_out.count(coded.clusters, inside),
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
            counts_once=reading.counts_once,
        )

    def _kappas(self, coded: Coded) -> KappaMeans:
        """People's side, which graders that label the same units share."""
        key = coded.subset, coded.kinds
        if key not in self._known:
            self._known[key] = KappaMeans(coded, self.left_out, [deciding_kappa(coded)])
        return self._known[key]


def _over_people(coded: Coded, left_out: Resamples, grader: int) -> tuple[int, float]:
    """(people, the difference's variance over them), each person left out in turn.

    People who share at least 30 of the grader's units with it; NaN for fewer than three.
    """
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
        warnings.simplefilter("ignore", RuntimeWarning)  # nobody left to compare: undefined
        without = [
            np.nanmean(with_grader[np.arange(len(people)) != n])
            - np.nanmean(between[(first != person) & (second != person)])
            for n, person in enumerate(people)
        ]
    m = len(people)
    return m, (m - 1) / m * float(((without - np.mean(without)) ** 2).sum())


def _rarer(coded: Coded, left_out: Resamples, grader: int) -> tuple[float, float]:
    """(clusters in which a person chose another category than the commonest, mean over people;
    the agreement that people's shares of the categories would bring by chance)."""
    humans = list(coded.people_beside(grader))
    codes = np.where(coded.labelled[:, [grader]], coded.codes[:, humans], -1)
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
