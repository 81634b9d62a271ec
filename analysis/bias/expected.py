"""Answers expected of a grader if nothing but the humans' answers on a unit counted.

Strictness is not bias. A grader that asks for more than humans do loses fewer affirmatives where
responses are good than where they are middling, and one that sees less sharply finds smaller
differences everywhere. So a grader is compared with the humans' score of the same units: among
units with the same score, do its answers still shift with something else? That is differential item
functioning (Holland & Thayer 1988; by regression, Zumbo 1999).

The score of a unit is tau, the share of humans who would affirm it. Unbiased, a grader affirms it
with a probability that is some curve of tau, here

    h(tau) = Phi(a + b Phi^-1(tau)),

where `a` is the grader's strictness and `b` how sharply it sees; both are free. tau is not
observed, and conditioning on the labels of two or three humans in its place leaves much of the
confounding (Shealy & Stout 1993). But products of the labels of *different* humans are powers of
tau without error (Hausman, Newey, Ichimura & Powell 1991), so the labels of a stratum identify the
moments of tau. Two humans give its mean and variance: Phi^-1(tau) is taken to be normal with these.
Three give the third moment, and what the normal law misses of it corrects every mean by the third
divided difference, which is exact for cubics. `a` and `b` are chosen so that the expected answers
have the grader's mean, and its covariance with humans within strata.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.types import Array, Codes

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(11)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_THETAS, _PARTS = (each / 2.0 for each in np.polynomial.legendre.leggauss(12))
_THETAS = _THETAS + 0.5
_FEW, _MANY = 20.0, 200.0
"""Weight, in units per stratum, of what all strata share: little where there are two strata, more
where strata are small steps along one line, such as a length. Chosen by `benchmarks/bias.py`."""
_SHARPEST = 4.0
_FREE_STEPS, _STEPS, _CLOSE = 25, 35, 1e-6
"""Steps for strictness and sharpness together, and then some for strictness alone: where the
moments of a resample allow no sharpness, the nearest one is taken."""


@dataclass(frozen=True)
class Labelled:
    """Sums over the units of every stratum, each (rows, strata).

    Over the units that the grader and a human labelled: `n`, the grader's calls, the mean human's,
    and their product. Over those that two humans labelled: `n2`, the mean human and the product of
    two; over those that three did: `n3`, mean, product of two and of three.
    """

    n: Array
    grader: Array
    person: Array
    both: Array
    n2: Array
    person2: Array
    two2: Array
    n3: Array
    person3: Array
    two3: Array
    three3: Array


@dataclass(frozen=True)
class People:
    """Distribution of tau in every stratum.

    `mean` is (rows, strata); Phi^-1(tau) takes the values `at` with the weights `weight`, (rows,
    strata, nodes). NaN in rows where humans agree no better than chance.
    """

    mean: Array
    at: Array
    weight: Array

    @classmethod
    def alike(cls, sums: Labelled) -> People:
        """Take all units of a stratum as the same: assumed where too few units have two labels."""
        mean = _inside(sums)
        at = ndtri(mean)[..., None]
        return cls(mean, at, np.ones_like(at))

    @classmethod
    def of(cls, sums: Labelled, third: bool) -> People:
        """Fit the distribution by the first two moments, and the third where `third` is set."""
        mean = _inside(sums)
        shared = _FEW if mean.shape[1] <= 2 else _MANY
        variance = _variance(sums, mean, shared)
        place = ndtri(mean)
        correlation = np.sin(_angle(place, variance))
        wide = np.sqrt(correlation / (1.0 - correlation))
        at = (place * np.sqrt(1.0 + wide**2))[..., None] + wide[..., None] * _NODES
        weight = np.broadcast_to(_WEIGHTS, at.shape)
        if not third:
            return cls(mean, at, weight)
        normal = (weight * ndtr(at) ** 3).sum(axis=-1)
        more = _third_moment(sums, mean, variance) - normal
        scale = variance**1.5
        usual = ratio((sums.n3 * more).sum(axis=1), (sums.n3 * scale).sum(axis=1))[:, None] * scale
        more = (sums.n3 * more + shared * usual) / (sums.n3 + shared)
        around = _around_two(mean, variance, normal)
        return cls(
            mean,
            np.concatenate([at, ndtri(around)], axis=-1),
            np.concatenate([weight, more[..., None] * _third_difference(around)], axis=-1),
        )


@dataclass(frozen=True)
class Beyond:
    """Difference of the grader from the expected calls, each (rows, strata).

    `share` is its share of affirmative calls minus the expected one, `rise` the slope of expected
    calls on humans' score within a stratum.
    """

    share: Array
    rise: Array


def beyond_expected(sums: Labelled, people: People, *, free: bool) -> Beyond:
    """Compare calls with expected calls by stratum; both have the same mean over all strata.

    `free` lets sharpness vary; else it is that of humans. NaN in rows that have no solution.
    """
    share = ratio(sums.grader, sums.n)
    part = sums.n / sums.n.sum(axis=1, keepdims=True)
    with_people = ratio(sums.both, sums.n) - share * people.mean
    level, together = ((part * each).sum(axis=1) for each in (share, with_people))
    apart = ndtr(people.at) - people.mean[..., None]
    weight = part[..., None] * people.weight
    a, b = np.zeros(len(part)), np.ones(len(part))
    rest = np.arange(len(part))
    cycle = _Cycle(a, b)
    for step in range(_STEPS):
        if step == _FREE_STEPS:
            rest = np.concatenate([rest, *cycle.parked])
        at, own, aside = people.at[rest], weight[rest], apart[rest]
        z = a[rest, None, None] + b[rest, None, None] * at
        curve, steep = own * ndtr(z), own * np.exp(-(z**2) / 2.0) / np.sqrt(2.0 * np.pi)
        off, off_together = _total(curve) - level[rest], _total(curve * aside) - together[rest]
        by_a, by_b = _total(steep), _total(steep * at)
        and_a, and_b = _total(steep * aside), _total(steep * aside * at)
        size = by_a * and_b - by_b * and_a
        new = b[rest] - np.clip(_over(by_a * off_together - and_a * off, size), -0.5, 0.5)
        new = np.clip(new, 0.0, _SHARPEST) if free and step < _FREE_STEPS else b[rest]
        held = new == b[rest]
        part_a = np.where(held, off, and_b * off - by_b * off_together)
        to_a = _over(part_a, np.where(held, by_a, size))
        moved = np.maximum(np.abs(to_a), np.abs(new - b[rest])) > _CLOSE
        a[rest], b[rest] = np.clip(a[rest] - np.clip(to_a, -0.7, 0.7), -8.0, 8.0), new
        rest = rest[moved]
        if step < _FREE_STEPS - 1:
            rest = cycle.without(rest, _FREE_STEPS - 1 - step)
        if not len(rest) and (step >= _FREE_STEPS or not cycle.parked):
            break
    curve = people.weight * ndtr(a[:, None, None] + b[:, None, None] * people.at)
    expected = curve.sum(axis=-1)
    # 0 where all units of a stratum are the same: then there is no slope.
    variance = (people.weight * apart**2).sum(axis=-1)
    rise = np.nan_to_num(ratio((curve * apart).sum(axis=-1), variance))
    solved = np.abs((part * (share - expected)).sum(axis=1)) < 1e-3
    constant = (level < 1e-9) | (level > 1.0 - 1e-9)
    beyond = np.where(solved[:, None], share - expected, np.nan)
    return Beyond(np.where(constant[:, None], 0.0, beyond), rise)


class _Cycle:
    """Rows whose steps alternate between two places, as truncated steps may.

    Their place after all steps is known, and they are `parked` there.
    """

    def __init__(self, a: Array, b: Array) -> None:
        self._a, self._b = a, b
        self._before = self._now = (a.copy(), b.copy())
        self.parked: list[Codes] = []

    def without(self, rest: Codes, left: int) -> Codes:
        """Return the rows that are not in a cycle, when `left` steps are left."""
        (a, b), last = self._before, self._now
        again = (self._a[rest] == a[rest]) & (self._b[rest] == b[rest])
        self._before, self._now = last, (self._a.copy(), self._b.copy())
        if again.any():
            rows = rest[again]
            self.parked.append(rows)
            if left % 2:
                self._a[rows], self._b[rows] = (each[rows] for each in last)
        return np.asarray(rest[~again])


def _total(values: Array) -> Array:
    """Sum over strata and nodes."""
    return np.asarray(values.sum(axis=(1, 2)))


def _over(part: Array, whole: Array) -> Array:
    return np.asarray(part / np.where(np.abs(whole) < 1e-9, 1e-9, whole))


def _inside(sums: Labelled) -> Array:
    """Return the mean human's share, at least half a unit of the sample from 0 and 1."""
    least = 0.5 / (sums.n.sum(axis=1, keepdims=True) + 1.0)
    return np.clip(ratio(sums.person, sums.n), least, 1.0 - least)


def _variance(sums: Labelled, mean: Array, shared: float) -> Array:
    """Variance of tau, (rows, strata).

    The covariance of two humans' calls within a stratum, averaged with the value implied by the
    covariance over all strata, which counts as `shared` units.
    """
    own = np.nan_to_num(ratio(sums.person2, sums.n2))
    covariance = np.nan_to_num(ratio(sums.two2, sums.n2)) - own**2
    of_all = ratio((sums.n2 * covariance).sum(axis=1), (sums.n2 * own * (1.0 - own)).sum(axis=1))
    usual = np.where(of_all > 0, of_all, np.nan)[:, None] * mean * (1.0 - mean)
    mixed = (sums.n2 * covariance + shared * usual) / (sums.n2 + shared)
    return np.clip(mixed, 0.01 * mean * (1.0 - mean), 0.97 * mean * (1.0 - mean))


def _third_moment(sums: Labelled, mean: Array, variance: Array) -> Array:
    """Third moment of tau, (rows, strata), from units that three humans labelled."""
    m1, m2, m3 = (ratio(each, sums.n3) for each in (sums.person3, sums.two3, sums.three3))
    central = m3 - 3.0 * m1 * m2 + 2.0 * m1**3
    return np.asarray(central + 3.0 * mean * (variance + mean**2) - 2.0 * mean**3)


def _angle(place: Array, excess: Array) -> Array:
    """Arcsine of the correlation of two normals that are jointly low by `excess` more often.

    This is the correlation at which two standard normal variables lie below `place` together by
    `excess` more often than independent ones: Sheppard's integral, by Newton's method.
    """
    angle = np.full(place.shape, 0.5)
    for _ in range(30):
        heights = [np.exp(-(place**2) / (1.0 + np.sin(part * angle))) for part in _THETAS]
        reached = angle * sum(w * f for w, f in zip(_PARTS, heights, strict=True))
        slope = np.exp(-(place**2) / (1.0 + np.sin(angle)))
        step = np.clip((reached - 2.0 * np.pi * excess) / slope, -0.5, 0.5)
        angle = np.clip(angle - step, 1e-4, 1.55)
        if not (np.abs(step) > _CLOSE).any():
            break
    return angle


def _around_two(mean: Array, variance: Array, third: Array) -> Array:
    """Return four nodes (rows, strata, 4), two around each point of the two-point Gauss rule.

    The two points alone would have these three moments.
    """
    skew = (third - 3.0 * mean * variance - mean**3) / variance**1.5
    half = np.sqrt(1.0 + skew**2 / 4.0)
    low = np.clip(mean + np.sqrt(variance) * (skew / 2.0 - half), 1e-3, 1.0)
    high = np.clip(mean + np.sqrt(variance) * (skew / 2.0 + half), 0.0, 1.0 - 1e-3)
    aside = 0.1 * (high - low)
    below, above = np.minimum(aside, low / 2.0), np.minimum(aside, (1.0 - high) / 2.0)
    return np.stack([low - below, low + aside, high - aside, high + above], axis=-1)


def _third_difference(at: Array) -> Array:
    """Return the weights of the third divided difference over four places, (..., 4)."""
    apart = at[..., :, None] - at[..., None, :] + np.eye(4)
    return np.asarray(1.0 / apart.prod(axis=-1))
