"""Dawid & Skene's consensus (1979): each unit's most likely category, and each rater's errors.

Every unit has one latent category; a rater who meets category k answers l with a probability of
their own, independently of the other raters. Fitted by maximum likelihood with EM. EM climbs to the
maximum nearest to its start, and there are often several maxima, so it is started from several
places and the best solution is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from evenhand.analysis.labels.match import best_match
from evenhand.analysis.types import Array, Codes, Integers, Labels, Numbers

MIN_RATERS = 3
"""With two raters the model has more unknowns than their table has cells: no unique answer."""
MAX_ITERATIONS = 20_000
STARTS = 10
"""Starts of EM: the shares of labels, and nine places around them."""

_SEED = 1979
_TOLERANCE = 1e-12
_TIE = 1e-6
_CELLS = 5_000_000
"""Starts x units x raters x categories: larger data compare starts on a sample of the units."""
_LEG = 10
"""Steps between two choices of which starts to follow further."""
_SETTLED = 1e-3
"""A start whose likelihood rises by less in a leg has converged closely enough to compare."""
_PATIENCE = 30
"""How many legs at its latest pace a start may need to catch up with the best one."""
_JOINED = 0.01
"""Starts whose posteriors are this close lead to the same solution."""
_SAME = 0.05
"""Two starts whose posteriors differ by less have reached the same solution."""
_UNTOLD = 1.96
"""Vuong's test at 5%: solutions closer than this many standard errors are not distinguished."""


@dataclass(frozen=True)
class DawidSkene:
    """A fit: `posterior` (units, q), `prevalence` (q,) and `confusion` (raters, q, q).

    `confusion[j, k, l]` is the probability that rater j answers l where the category is k (NaN
    where none of the units that the rater labelled has it); `log_likelihood` is that of the labels;
    rows of `posterior` are NaN for units without labels. `unstable` is the largest share of the
    labelled units that another solution assigns to another category, among solutions that the
    labels cannot distinguish from this one (Vuong 1989).
    """

    posterior: Array
    prevalence: Array
    confusion: Array
    log_likelihood: float
    iterations: int
    converged: bool
    unstable: float

    @property
    def codes(self) -> Codes:
        """Most likely category (units,); -1 without labels or where two are equally likely."""
        ranked = np.sort(self.posterior, axis=1)
        clear = ranked[:, -1] - ranked[:, -2] > _TIE
        best = np.nan_to_num(self.posterior).argmax(axis=1)
        return np.where(clear, best, -1)


def counts_of_codes(codes: Integers, q: int) -> Labels:
    """Label counts (units, raters, q) of one label per rater: codes (units, raters), -1 missing."""
    return np.asarray(codes[:, :, None] == np.arange(q), dtype=np.int8)


@np.errstate(divide="ignore")  # log(0) of impossible answers: masking would cost more
def fit(counts: Integers, *, frequency: Numbers | None = None, starts: int = STARTS) -> DawidSkene:
    """Fit the model to label counts (units, raters, q): how often each rater gave each category.

    `frequency` (units,) is how often a unit occurs in the data, or how much it counts. EM starts
    from each unit's shares of labels, as the authors do, and from points around them, `starts` in
    all; in large data the starts are compared on some thousands of units. The most likely solution
    is followed until a step raises the log-likelihood by less than 1e-12 of it and moves no
    posterior by 1e-7; the likelihood never falls. After 20,000 steps EM stops and sets `converged`
    to False. The latent classes have no names of their own: each is named after a category, so that
    as many labels as possible equal their unit's class.
    """
    patterns, where, times = _distinct(counts, frequency)
    data = _Data.of(patterns, times)
    solutions = _Solutions.compared(data, starts) if starts > 1 else None
    first = data.shares[:, None] if solutions is None else solutions.first_of_best(data)
    posterior, iterations, converged = _climb(data, first)
    prevalence, confusion = data.maximise(posterior)
    named = data.names(posterior[:, 0])
    met = confusion[0].sum(axis=2, keepdims=True) > 0
    found = posterior[:, 0, named]
    found[data.weight == 0] = np.nan
    return DawidSkene(
        posterior=found[where],
        prevalence=prevalence[0, named],
        confusion=np.where(met, confusion[0], np.nan)[:, named],
        log_likelihood=float(data.weight @ data.expect(prevalence, confusion)[1][:, 0]),
        iterations=iterations + (solutions.steps if solutions else 0),
        converged=converged,
        unstable=solutions.disagreement if solutions else 0.0,
    )


@dataclass(frozen=True)
class _Data:
    """Distinct units: label counts `said` (units, raters x q) and weights `weight` (units,).

    A unit's weight is the number of units like it, or 0 where it has no label. Several starts go
    through a step together, in one product: posteriors are (units, starts, q).

    Several starts are taken through a step together, in one product: posteriors are (units, starts,
    q).
    """

    said: Array
    weight: Array
    raters: int
    q: int

    @classmethod
    def of(cls, patterns: Integers, times: Array) -> _Data:
        units, raters, q = patterns.shape
        labelled = patterns.any(axis=(1, 2))
        return cls(patterns.reshape(units, -1).astype(float), times * labelled, raters, q)

    @property
    def by_rater(self) -> Array:
        """Label counts (units, raters, q)."""
        return self.said.reshape(-1, self.raters, self.q)

    @property
    def votes(self) -> Array:
        """Return the number of labels of each category that a unit was given, (units, q)."""
        return np.asarray(self.by_rater.sum(axis=1))

    @property
    def shares(self) -> Array:
        """Return the shares of the categories among a unit's labels, (units, q)."""
        return _normed(self.votes)

    @cached_property
    def total(self) -> float:
        """Return the weight of all units, at least 1."""
        return max(float(self.weight.sum()), 1.0)

    def sample(self, units: int) -> _Data:
        """Return some of the units, at random; the same ones each time."""
        if units >= len(self.said):
            return self
        chosen = np.random.default_rng(_SEED).choice(len(self.said), units, replace=False)
        return replace(self, said=self.said[chosen], weight=self.weight[chosen])

    def maximise(self, posterior: Array) -> tuple[Array, Array]:
        """Return the most likely prevalence and confusion given posteriors.

        Prevalence is (starts, q), confusion (starts, raters, q, q).
        """
        belief = (posterior * self.weight[:, None, None]).reshape(len(posterior), -1)
        joint = (belief.T @ self.said).reshape(-1, self.q, self.raters, self.q)
        joint = joint.transpose(0, 2, 1, 3)
        total = joint.sum(axis=3, keepdims=True)
        confusion = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
        prevalence = belief.sum(axis=0).reshape(-1, self.q) / self.total
        return prevalence, confusion

    def expect(self, prevalence: Array, confusion: Array) -> tuple[Array, Array]:
        """Return posteriors (units, starts, q), and each unit's log-likelihood (units, starts)."""
        # A finite floor: 0 * -inf would be NaN. It is far below any sum of real logarithms.
        log_confusion = np.maximum(np.log(confusion), -1e9)
        each = log_confusion.transpose(1, 3, 0, 2).reshape(self.raters * self.q, -1)
        joint = (self.said @ each).reshape(len(self.said), *prevalence.shape) + np.log(prevalence)
        # Category by category: numpy takes ten times as long along a last axis that is short.
        top = reduce(np.maximum, joint.transpose(2, 0, 1))
        shares = np.exp(joint - top[:, :, None])
        total = reduce(np.add, shares.transpose(2, 0, 1))
        return np.asarray(shares / total[:, :, None]), top + np.log(total)

    def names(self, posterior: Array) -> Codes:
        """Return the class of a solution (units, q) that each category names, (q,)."""
        return best_match((posterior * self.weight[:, None]).T @ self.votes)


class _Solutions:
    """Solutions that EM reaches from several starts.

    `posterior` is (units, starts, q), `each` the units' log-likelihood (units, starts).
    """

    def __init__(self, data: _Data, posterior: Array) -> None:
        self.data, self.posterior = data, posterior
        self.each = np.zeros(posterior.shape[:2])
        self.steps = 0

    @classmethod
    def compared(cls, data: _Data, starts: int) -> _Solutions:
        """Run EM from every start, in legs, dropping a start that can no longer become the best."""
        sample = data.sample(_CELLS // (starts * data.said.shape[1]))
        out = cls(sample, _first_posteriors(sample, starts))
        going, before = np.arange(starts), np.full(starts, -np.inf)
        while len(going) and out.steps < MAX_ITERATIONS:
            out._leg(going)
            reached = out.likelihood
            going, before = out._worth_following(going, reached - before), reached
        return out

    @property
    def likelihood(self) -> Array:
        """Log-likelihoods (starts,)."""
        return np.asarray(self.data.weight @ self.each)

    @property
    def best(self) -> int:
        """Return the start with the highest likelihood."""
        return int(self.likelihood.argmax())

    @property
    def disagreement(self) -> float:
        """See `DawidSkene.unstable`."""
        likelihood, weight = self.likelihood, self.data.weight
        behind = likelihood[self.best] - likelihood
        codes = self._named(self.best).argmax(axis=1)
        shares = [
            float(weight @ (self._named(rival).argmax(axis=1) != codes)) / self.data.total
            for rival in np.flatnonzero(behind <= _UNTOLD * self._errors()).tolist()
        ]
        return max(shares)

    def first_of_best(self, data: _Data) -> Array:
        """Return posteriors (units, 1, q) of all units from which to climb to the best solution.

        This is the authors' own start where that leads to the same solution.
        """
        own, best = self._named(0), self._named(self.best)
        if np.abs(own - best).max() < _SAME:
            return data.shares[:, None]
        return data.expect(*self.data.maximise(best[:, None]))[0]

    def _leg(self, going: Codes) -> None:
        posterior = self.posterior[:, going]
        for _ in range(_LEG):
            posterior, each = self.data.expect(*self.data.maximise(posterior))
        self.posterior[:, going], self.each[:, going] = posterior, each
        self.steps += _LEG

    def _worth_following(self, going: Codes, gain: Array) -> Codes:
        """Return the starts that still climb, may catch up, and do not join the best one."""
        likelihood, best = self.likelihood, self.best
        behind = likelihood[best] - likelihood > _PATIENCE * gain + _UNTOLD * self._errors()
        near = np.abs(self.posterior - self.posterior[:, [best]]).max(axis=(0, 2)) < _JOINED
        near[best] = False
        return np.asarray(going[((gain > _SETTLED) & ~behind & ~near)[going]])

    def _errors(self) -> Array:
        """Standard errors (starts,) of each start's log-likelihood minus the best one's."""
        weight, apart = self.data.weight, self.each - self.each[:, [self.best]]
        spread = weight @ apart**2 - (weight @ apart) ** 2 / self.data.total
        return np.asarray(np.sqrt(np.maximum(spread, 0.0)))

    def _named(self, start: int) -> Array:
        """Posteriors (units, q) of one start, with its classes named by the categories."""
        posterior = self.posterior[:, start]
        return np.asarray(posterior[:, self.data.names(posterior)])


def _first_posteriors(data: _Data, starts: int) -> Array:
    """Posteriors (units, starts, q) to start from.

    The first start is the shares of labels; then, in turn, shares drawn around them, shares mixed
    half and half with random ones, and shares mixed half and half with one rater's labels (of the
    raters who labelled most).
    """
    rng = np.random.default_rng(_SEED)
    votes, shares, by_rater = data.votes, data.shares, data.by_rater
    busiest = np.argsort(-(data.weight @ by_rater.sum(axis=2)), kind="stable")
    out = np.empty((len(votes), starts, data.q))
    for start in range(starts):
        turn, kind = divmod(start - 1, 3)
        if start == 0:
            out[:, start] = shares
        elif kind == 0:
            out[:, start] = _normed(rng.standard_gamma(votes + 0.5))
        elif kind == 1:
            out[:, start] = (shares + _normed(rng.standard_exponential(votes.shape))) / 2.0
        else:
            own = by_rater[:, busiest[turn % data.raters]]
            out[:, start] = _normed(shares + np.where(own.any(axis=1, keepdims=True), own, shares))
    return out


def _normed(weights: Array) -> Array:
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))


def _climb(data: _Data, posterior: Array) -> tuple[Array, int, bool]:
    """Follow one start, (units, 1, q), to its maximum.

    Returns the posteriors, the number of steps, and True if EM converged.
    """
    likelihood, step, converged = -np.inf, 0, False
    while step < MAX_ITERATIONS and not converged:
        step += 1
        moved, each = data.expect(*data.maximise(posterior))
        reached = float(data.weight @ each[:, 0])
        gain = reached - likelihood
        still = np.abs(moved - posterior).max(initial=0.0) < 1e-7
        converged = bool(still and gain <= _TOLERANCE * max(1.0, abs(reached)))
        posterior, likelihood = moved, reached
    return posterior, step, converged


def _distinct(counts: Integers, frequency: Numbers | None) -> tuple[Integers, Codes, Array]:
    """Return the distinct units, the index of each unit among them, and how often each occurs."""
    rows = np.ascontiguousarray(counts.reshape(len(counts), -1))
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, kept, where = np.unique(keys, return_index=True, return_inverse=True)
    times = np.bincount(where, weights=frequency, minlength=len(kept))
    return counts[kept], where, times.astype(float)
