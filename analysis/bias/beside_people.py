"""Side favoured by one grader, adjusted for the side that humans favour.

A plain difference of grader and humans would accuse any grader that merely errs more than humans
do: where one side is favoured more often, it misses more of that. So humans' own lean is scaled by
how sharply the grader sees what humans see, its *sharpness*

    r = cov(grader, person) / cov(person, another person),

both over the units that two humans labelled. If a rater's errors depend only on the unit's latent
truth T, the expected call is q + s T; then cov(grader, person) = s_g s_p var(T), humans among each
other have s_p^2 var(T), r = s_g / s_p, and *lean of the grader - r x lean of humans* is 0 whatever
s_g is: for a grader exchangeable with humans (r = 1), for one that guesses (r = 0), for any
between. This is Spearman's (1904) correction for attenuation, taken at the level of a slope.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.bias.calls import Calls
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.notes import Code, Note, Remark
from evenhand.analysis.types import Array, Mask, Numbers

MIN_TWICE = 30
"""Sharpness is estimated from this many units with two humans' labels; else it is taken as 1."""
NOT_SCALED = Remark("sharpness_assumed", (MIN_TWICE,))


class BesidePeople:
    """Comparison of a grader with the mean human on the units that both called.

    All results are replicates (rows, ...): the data first, then the resamples.
    """

    def __init__(self, calls: Calls, grader: int, resamples: Resamples) -> None:
        self._calls, self._resamples = calls, resamples
        people = calls.people
        held = ~np.isnan(people)
        own = calls.values[:, grader]
        self._n_people = held.sum(axis=1)
        self.shared: Mask = (self._n_people > 0) & ~np.isnan(own)
        self._sum = np.where(held, people, 0.0).sum(axis=1)
        self._squares = np.where(held, people**2, 0.0).sum(axis=1)
        self._person = ratio(self._sum, self._n_people.astype(float))
        self._person[~self.shared] = 0.0
        self._grader = np.where(self.shared, own, 0.0)
        self.note: Note = ""
        self._sharpness = self._seen()

    @property
    def reason(self) -> Code:
        """Reason why a result is undefined, if it is."""
        return "people_agree_by_chance" if np.isnan(self._sharpness[0]) else "no_variation"

    def counts(self, chosen: Mask | None = None) -> tuple[int, int]:
        """Count (units, clusters) that both called, among the chosen."""
        inside = self.shared if chosen is None else self.shared & chosen
        return self._resamples.count(self._calls.clusters, inside)

    def level(self) -> Array:
        """Mean call of the grader minus r times that of humans, (rows,)."""
        n, grader, person = self._totals(self.shared, self._grader, self._person).T
        grader, person = ratio(grader, n), ratio(person, n)
        # Where humans do not lean at all the grader's sharpness does not matter.
        return np.asarray(grader - np.where(person == 0, 0.0, self._sharpness * person))

    def _seen(self) -> Array:
        """Estimate sharpness (rows,); NaN where humans agree no better than chance."""
        twice = self.shared & (self._n_people >= 2)
        if self.counts(twice)[0] < MIN_TWICE:
            self.note = NOT_SCALED
            return np.ones(len(self._resamples))
        orders = np.where(twice, self._n_people * (self._n_people - 1), 1).astype(float)
        two_people = (self._sum**2 - self._squares) / orders
        person, grader = self._person, self._grader
        products = [twice, grader, person, grader * person, two_people]
        n, sg, sp, sgp, spp = self._totals(*(twice * each for each in products)).T
        mean_g, mean_p = ratio(sg, n), ratio(sp, n)
        with_person = ratio(sgp, n) - mean_g * mean_p
        among_people = ratio(spp, n) - mean_p**2
        return ratio(with_person, np.where(among_people > 1e-12, among_people, 0.0))

    def _totals(self, *features: Numbers) -> Array:
        return self._resamples.sums(self._calls.clusters, *features)
