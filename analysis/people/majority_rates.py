"""True positive and true negative rates of graders, raw and corrected for the majority's errors.

*Against the majority* (or the one rater who is declared the reference): of the units whose majority
is affirmative (other), the share that the grader calls so. Ties are left out. The interval is that
of every share (`analysis.bootstrap.shares`).

*Corrected*: the majority errs too, and every error of it counts against the grader. A latent class
model (Dawid & Skene 1979, with one pair of error rates for all humans; Hui & Walter 1980) treats
the truth of each unit as unobserved, and humans and the grader as independent given it. The
interval is that of the profile likelihood, the likelihood divided by the design effect. It needs
three human labels on a unit: with only two their errors cannot be separated from the prevalence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from evenhand.analysis.agreement.counts import is_tied, label_counts, majority_codes
from evenhand.analysis.bootstrap.influence import ALPHA
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.shares import share_bounds
from evenhand.analysis.labels.matrix import BINARY_ALL, Coded
from evenhand.analysis.notes import join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Mask, Numbers
from evenhand.analysis.writer import Writer

MAJORITY = ("tpr_majority", "tnr_majority")
REFERENCE = ("tpr_reference", "tnr_reference")
CORRECTED = ("tpr_corrected", "tnr_corrected")
MIN_RATERS = 3
"""With two the model has more unknowns than their table has cells: no unique answer."""
MIN_UNITS = 30
"""Units with three human labels, below which the humans' errors are not estimated."""

ENOUGH_CLUSTERS = 10
"""The design effect is estimated from this many clusters with the rarer outcome."""

_CYCLES, _STILL = 60, 1e-5
_EDGE = 1e-6
_LIKELIHOOD_RATIO = 3.841458820694124
"""The 95% point of chi-squared with one degree of freedom."""
_GRID = np.unique(np.round(np.concatenate([np.linspace(0, 1, 41), np.linspace(0.8, 1, 33)]), 6))


class Rate(TypedDict):
    """A rate with its 95% interval, from `n` units; None where it cannot be estimated."""

    estimate: float | None
    low: float | None
    high: float | None
    n: int


def add_majority_rows(
    rows: ResultRows, coded: Coded, resamples: Resamples, *, reference: bool = False
) -> None:
    """Add `tpr_majority` and `tnr_majority` of every grader on the binary verdict.

    They are `tpr_reference` and `tnr_reference` where the one human is a `reference`.
    """
    out = Writer.of(rows, coded, resamples)
    for grader, counts in _graders(coded):
        beside = coded.raters[coded.members("human")[0]] if reference else "humans"
        own, tied = coded.codes[:, grader] >= 0, is_tied(counts)
        lone = ~tied & (counts.sum(axis=1) == 1)
        for code, name in enumerate(REFERENCE if reference else MAJORITY):
            whole, found, _ = _share(coded, counts, grader, code, resamples)
            left_out = _counted(out, tied & own, "tied and left out")
            of_one = "" if reference else _counted(out, lone & whole, "labelled by one person")
            note = join_notes(left_out, of_one)
            out.add_interval(name, found, whole, a=beside, b=coded.raters[grader], note=note)


def add_corrected_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """Add `tpr_corrected` and `tnr_corrected` of every grader on the binary verdict."""
    out = Writer.of(rows, coded, resamples)
    mass = resamples.mass[coded.clusters]
    for grader, counts in _graders(coded):
        own, labels = coded.codes[:, grader], counts.sum(axis=1)
        both, enough = (labels > 0) & (own >= 0), (labels >= MIN_RATERS) & (own >= 0)
        found = [Interval.undefined("too_few_raters")] * 2
        if out.count(enough)[0] >= MIN_UNITS:
            effects = [_share(coded, counts, grader, code, resamples)[2] for code in (0, 1)]
            voted = labels > 0
            found = _LatentClasses.of(counts[voted], own[voted], mass[voted]).intervals(effects)
        for name, each in zip(CORRECTED, found, strict=True):
            out.add_interval(name, each, both, a="humans", b=coded.raters[grader])


def _graders(coded: Coded) -> Iterator[tuple[int, Array]]:
    """Yield each grader with label counts (units, 2) of the humans whose labels it does not
    repeat.
    """
    for grader in coded.members("model"):
        if people := coded.people_beside(grader):
            yield grader, label_counts(coded, people)


def _counted(out: Writer, units: Mask, what: str) -> str:
    count = out.count(units)[0] if units.any() else 0
    return f"{count} {'unit' if count == 1 else 'units'} {what}" if count else ""


def rates_of(rows: ResultRows, people: str, grader: str) -> dict[str, Rate]:
    """Return the rates of one grader for its verdict.

    `tpr` and `tnr` are against the majority of `people` ("humans", or the reference), with
    `tpr_corrected` and `tnr_corrected`; empty where there is no binary verdict.
    """
    found: dict[str, Rate] = {}
    for name in (*MAJORITY, *REFERENCE, *CORRECTED):
        row = rows.get(name, people, grader, BINARY_ALL)
        if row is not None:
            short = name if name in CORRECTED else name.partition("_")[0]
            ends = (row["estimate"], row["low"], row["high"])
            estimate, low, high = (None if np.isnan(end) else end for end in ends)
            found[short] = Rate(estimate=estimate, low=low, high=high, n=row["n_units"])
    return found


def _share(
    coded: Coded, counts: Array, grader: int, code: int, resamples: Resamples
) -> tuple[Mask, Interval, float]:
    """Estimate the share of a code's units that the grader gives the code too.

    Returns the units (units,) that the majority gives the code, the share with its interval, and
    the design effect.
    """
    own = coded.codes[:, grader]
    whole = (majority_codes(counts) == code) & (own >= 0)
    units, clusters = resamples.count(coded.clusters, whole) if whole.any() else (0, 0)
    if not units:
        return whole, Interval.undefined("no_labels"), 1.0
    sums = resamples.cluster_sums(coded.clusters, np.column_stack([whole & (own == code), whole]))
    if resamples.weight is not None:
        sums = sums * resamples.weight[:, None]
    parts, wholes = resamples.each_cluster(sums).T
    size = float(units)
    if units > clusters or resamples.weight is not None:
        size = _effective(parts, wholes, units)
    return whole, Interval(*share_bounds(parts, wholes)), units / size


def _effective(part: Numbers, whole: Numbers, units: int) -> float:
    """Effective number of independent units behind a share, from sums over clusters."""
    from scipy.special import ndtri, stdtrit

    part, whole = part[whole > 0], whole[whole > 0]
    clusters = len(whole)
    share, size = part.sum() / whole.sum(), float(units)
    if clusters < 2:
        return 1.0
    varied = clusters / (clusters - 1) * ((part - share * whole) ** 2).sum() / whole.sum() ** 2
    if varied > 0:
        size = min(size, share * (1.0 - share) / varied)
    if min((part > 0).sum(), (part < whole).sum()) < ENOUGH_CLUSTERS:
        size = min(size, float(clusters))  # too few to estimate the correlation within clusters
    few = (ndtri(1.0 - ALPHA) / stdtrit(clusters - 1, 1.0 - ALPHA)) ** 2  # Korn & Graubard 1998
    return max(float(size * few), 1.0)


@dataclass(frozen=True)
class _LatentClasses:
    """Latent class model of distinct units, (patterns,).

    `yes` is how many of the `people` answered yes; `graded` the grader's verdict, as indicators
    of yes and other, both 0 where it gave none; `weight` how much such units count.

    Parameters are arrays (starts, 5): prevalence, the humans' true positive and true negative rate,
    the grader's. Humans are assumed to be right more often than wrong, which identifies the
    classes.
    """

    yes: Array
    people: Array
    graded: Array
    weight: Array

    @classmethod
    def of(cls, counts: Array, own: Numbers, mass: Numbers) -> _LatentClasses:
        rows = np.column_stack([counts[:, 0], counts.sum(axis=1), own == 0, own == 1])
        patterns, at = np.unique(rows, axis=0, return_inverse=True)
        weight = np.bincount(at.reshape(-1), weights=mass).astype(float)
        yes, people = patterns[:, 0].astype(float), patterns[:, 1].astype(float)
        return cls(yes, people, patterns[:, 2:].astype(float), weight)

    def likelihood(self, given: Array) -> tuple[Array, Array]:
        """Return log-likelihoods (starts,), and each pattern's probability of a yes.

        The latter are (starts, patterns).
        """
        share, true, other, tpr, tnr = (np.log(each)[:, None] for each in given.T)
        no_share, missed, wrong, fnr, fpr = (np.log1p(-each)[:, None] for each in given.T)
        no, (said, unsaid) = self.people - self.yes, self.graded.T
        as_yes = share + self.yes * true + no * missed + said * tpr + unsaid * fnr
        as_no = no_share + self.yes * wrong + no * other + said * fpr + unsaid * tnr
        each = np.logaddexp(as_yes, as_no)
        return each @ self.weight, np.exp(as_yes - each)

    def climbed(self, start: Array, held: Mask | None = None) -> Array:
        """Run EM, keeping the parameters that are `held` (starts, 5) fixed.

        Every third step leaps ahead (Varadhan & Roland 2008, S3), unless that loses likelihood.
        """
        given = start
        for _ in range(_CYCLES):
            first = self._step(given, start, held)
            second = self._step(first, start, held)
            pace, bend = first - given, second - 2.0 * first + given
            norms = [np.sqrt((each**2).sum(axis=1, keepdims=True)) for each in (pace, bend)]
            if norms[0].max() < _STILL:
                return second
            leap = np.maximum(norms[0] / np.maximum(norms[1], 1e-12), 1.0)
            far = np.clip(given + 2.0 * leap * pace + leap**2 * bend, _EDGE, 1.0 - _EDGE)
            far[:, 1:3] = np.maximum(far[:, 1:3], 0.5)
            gains = self.likelihood(far)[0] > self.likelihood(second)[0]
            given = np.where(gains[:, None], far, second)
        return given

    def _step(self, given: Array, start: Array, held: Mask | None) -> Array:
        """Run one step of EM."""
        belief = self.likelihood(given)[1] * self.weight
        rest, graded = self.weight - belief, self.graded.sum(axis=1)
        true, other = belief @ self.yes, rest @ (self.people - self.yes)
        part = np.column_stack(
            [belief.sum(axis=1), true, other, belief @ self.graded[:, 0], rest @ self.graded[:, 1]]
        )
        whole = np.column_stack(
            [
                np.full(len(given), self.weight.sum()),
                belief @ self.people,
                rest @ self.people,
                belief @ graded,
                rest @ graded,
            ]
        )
        moved = np.clip(part / np.maximum(whole, 1e-300), _EDGE, 1.0 - _EDGE)
        moved[:, 1:3] = np.maximum(moved[:, 1:3], 0.5)
        return moved if held is None else np.where(held, start, moved)

    def fitted(self) -> Array:
        """Return the most likely parameters, (1, 5), starting from the majority."""
        majority = np.clip(2.0 * self.yes - self.people, -1, 1) / 2.0 + 0.5
        share = np.clip(majority @ self.weight / self.weight.sum(), 0.02, 0.98)
        return self.climbed(np.array([[share, 0.9, 0.9, 0.8, 0.8]]))

    def intervals(self, effects: Sequence[float]) -> list[Interval]:
        """Return the grader's true positive and negative rate with profile likelihood intervals.

        `effects` are the design effects of the two.
        """
        best = self.fitted()
        start = np.repeat(best, 2 * len(_GRID), axis=0)
        held = np.zeros(start.shape, dtype=bool)
        held[: len(_GRID), 3] = held[len(_GRID) :, 4] = True
        start[held] = np.clip(np.tile(_GRID, 2), _EDGE, 1.0 - _EDGE)
        top = float(self.likelihood(best)[0][0])
        fell = np.maximum(2.0 * (top - self.likelihood(self.climbed(start, held))[0]), 0.0)
        return [
            _interval(float(estimate), own / max(effect, 1.0))
            for estimate, own, effect in zip(best[0, 3:], np.split(fell, 2), effects, strict=True)
        ]


def _interval(estimate: float, fell: Array) -> Interval:
    """Return the interval in which twice the fall of the log-likelihood is below the 95% point."""
    roots = np.where(estimate > _GRID, -np.sqrt(fell), np.sqrt(fell))
    places, roots = np.append(_GRID, estimate), np.append(roots, 0.0)
    order = np.argsort(places, kind="stable")
    places, roots = places[order], np.maximum.accumulate(roots[order])
    reach = math.sqrt(_LIKELIHOOD_RATIO)
    low, high = (float(np.interp(end, roots, places)) for end in (-reach, reach))
    return Interval(_plain(estimate), _plain(low), _plain(high))


def _plain(rate: float) -> float:
    """Round a rate at an edge of the model to 0 or 1."""
    return float(np.round(rate)) if min(rate, 1.0 - rate) < 2.0 * _EDGE else rate
