"""Shift of a grader's calls with some property, beyond what humans' score of the units explains.

The sample is divided by the property that should not matter: own family or not, a part of the
sample or the rest, fifths of the length. In each part the share of the grader's affirmative calls
is compared with the one expected of a grader without bias.

Calls are numbers: how affirmative a unit is, and which side of a pair it favours. A *verdict call*
is 1 or 0. A *directed call* is 1 where side a is favoured, -1 where side b is, else 0: by a pair
rubric's options, or, on responses, the verdict on side a minus that on side b.

The side that a grader favours is adjusted for the side that humans favour. A plain difference of
grader and humans would accuse any grader that merely errs more than humans do: where one side is
favoured more often, it misses more of that. So humans' own lean is scaled by how sharply the grader
sees what humans see, its *sharpness*

    r = cov(grader, person) / cov(person, another person),

both over the units that two humans labelled. If a rater's errors depend only on the unit's latent
truth T, the expected call is q + s T; then cov(grader, person) = s_g s_p var(T), humans among each
other have s_p^2 var(T), r = s_g / s_p, and *lean of the grader - r x lean of humans* is 0 whatever
s_g is: for a grader exchangeable with humans (r = 1), for one that guesses (r = 0), for any
between. This is Spearman's (1904) correction for attenuation, taken at the level of a slope.

Expected answers are those that a grader would give if nothing but the humans' answers counted.
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
moments of tau. Two humans give its mean and variance: Phi^-1(tau) is taken to be normal with these,
and the expected answers then have a closed form (Owen 1956). Three give the third moment, and what
the normal law misses of it corrects every mean by the third divided difference, which is exact for
cubics. `a` and `b` are chosen so that the expected answers have the grader's mean, and its
covariance with humans within strata.

`a` is the same in all strata if raters' noise is. Where labels of long texts are noisier for every
rater, a strict grader's `a`, in units of that noise, shrinks with the length, which looks like a
bias. The spread of Phi^-1(tau) then shrinks alike (`Noise`). It also does where quality itself
spreads less, and the labels cannot tell these apart: so there are two readings of the same calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.encoding import units_of_both_sides
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL, LabelMatrix, favour_signs
from evenhand.analysis.statistics import Note, Remark
from evenhand.analysis.types import Array, Codes, Mask, Numbers

_THETAS, _THETA_WEIGHTS = (nodes / 2.0 for nodes in np.polynomial.legendre.leggauss(12))
_THETAS = _THETAS + 0.5
_FEW, _MANY = 20.0, 200.0
"""Weight, in units per stratum, of what all strata share: little where there are two strata, more
where strata are small steps along one line, such as a length. Chosen by `benchmarks/bias.py`."""
_SHARPEST, _STRICTEST, _STEPS, _CLOSE, _NUDGE = 4.0, 8.0, 40, 1e-6, 1e-5
_LOUDEST, _WIDEST = 1.0, 2.0
"""Bounds of log noise for each standard deviation of a property, and of log spread."""
_SEARCHED = np.linspace(0.0, _SHARPEST, 41)
_REFUTED = 0.05
"""If no sharpness fits the data, nor this share of their resamples, chance does not explain it (a
one-sided test at 5%): the grader follows humans in more than what they agree on, or tau has another
distribution. The shift is then undefined. Where chance may explain it, the nearest sharpness is
taken."""


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
    """Distribution of tau in every stratum, (rows, strata).

    `mean` and `variance` are its moments; Phi^-1(tau) is normal with mean `center` and standard
    deviation `wide`. The nodes `at` with their `weight`, (rows, strata, nodes), correct for the
    third moment. NaN in rows where humans agree no better than chance.
    """

    mean: Array
    variance: Array
    center: Array
    wide: Array
    at: Array
    weight: Array

    @classmethod
    def alike(cls, sums: Labelled) -> People:
        """Take all units of a stratum as the same: assumed where too few units have two labels."""
        mean = _inside(sums)
        zero, none = np.zeros_like(mean), np.zeros((*mean.shape, 0))
        return cls(mean, zero, ndtri(mean), zero, none, none)

    @classmethod
    def of(cls, sums: Labelled, third: bool, noise: Noise | None = None) -> People:
        """Fit the distribution by the first two moments, and the third where `third` is set. With
        `noise` the spread of all strata together may change along its property.
        """
        mean = _inside(sums)
        shared = _FEW if mean.shape[1] <= 2 else _MANY
        variance = _variance(sums, mean, shared, noise)
        place = ndtri(mean)
        angle = _angle(place, variance)
        correlation = np.sin(angle)
        wide = np.sqrt(correlation / (1.0 - correlation))
        center = place * np.sqrt(1.0 + wide**2)
        if not third:
            none = np.zeros((*mean.shape, 0))
            return cls(mean, variance, center, wide, none, none)
        normal = _third_of_normal(place, angle)
        # The third moment of tau from units that three humans labelled, beyond the normal law's.
        m1, m2, m3 = (ratio(total, sums.n3) for total in (sums.person3, sums.two3, sums.three3))
        central = m3 - 3.0 * m1 * m2 + 2.0 * m1**3
        more = central + 3.0 * mean * (variance + mean**2) - 2.0 * mean**3 - normal
        scale = variance**1.5
        usual = ratio((sums.n3 * more).sum(axis=1), (sums.n3 * scale).sum(axis=1))[:, None] * scale
        more = (sums.n3 * more + shared * usual) / (sums.n3 + shared)
        around = _around_two(mean, variance, normal)
        weight = more[..., None] * _third_difference(around)
        return cls(mean, variance, center, wide, ndtri(around), weight)


@dataclass(frozen=True)
class Noise:
    """Noise of all raters as exp(g x) of a property x, fitted to the annotators' calls.

    If quality spreads alike in all strata, Phi^-1(tau) has a standard deviation of exp(k - g x).
    `covariance` is that of two annotators' calls with this spread, `strictness` exp(-g x), to which
    a grader's strictness in units of noise is proportional; both (rows, strata). `rise` is g in
    units of x, (rows, 1).
    """

    covariance: Array
    strictness: Array
    rise: Array

    @classmethod
    def along(cls, sums: Labelled, x: Array) -> Noise:
        """Fit k and g by weighted least squares (Gauss-Newton) to the covariances within strata.
        `x` is the property's mean in each stratum, (rows, strata).
        """
        mean, covariance = _inside(sums), _covariance(sums)
        place, weight = ndtri(mean), sums.n2 / (mean * (1.0 - mean)) ** 2
        total = weight.sum(axis=1)
        x = x - ratio((weight * x).sum(axis=1), total)[:, None]
        unit = np.sqrt(ratio((weight * x**2).sum(axis=1), total))[:, None]
        x = _over(x, unit)
        k, g = np.zeros((2, len(x), 1))
        for step in range(_STEPS + 1):
            square = np.exp(2.0 * (k - g * x))
            correlation = square / (1.0 + square)
            fitted = _excess(place, ndtr(place), np.arcsin(correlation))
            if step == _STEPS:
                break
            # The slope of the covariance along the correlation (Plackett 1954), times 2 rho (1 -
            # rho), that of the correlation along k.
            steep = np.exp(-(place**2) / (1.0 + correlation)) / np.pi
            steep *= correlation * (1.0 - correlation) / np.sqrt(1.0 - correlation**2)
            kk, kx, xx = (_row_sums(weight * steep**2 * x**power) for power in (0, 1, 2))
            left = weight * steep * (covariance - fitted)
            of_k, of_x = (_row_sums(left * x**power) for power in (0, 1))
            size = kk * xx - kx**2
            to_k, to_g = _over(xx * of_k - kx * of_x, size), _over(kx * of_k - kk * of_x, size)
            k = np.clip(k + np.clip(to_k, -0.5, 0.5), -_WIDEST, _WIDEST)
            g = np.clip(g + np.clip(to_g, -0.5, 0.5), -_LOUDEST, _LOUDEST)
            if not ((np.abs(to_k) > _CLOSE) | (np.abs(to_g) > _CLOSE)).any():
                break
        return cls(fitted, np.exp(-g * x), _over(g, unit))


@dataclass(frozen=True)
class Beyond:
    """Difference of the grader from the expected calls, each (rows, strata).

    `share` is its share of affirmative calls minus the expected one, `rise` the slope of expected
    calls on humans' score within a stratum, `strict` their slope on the logarithm of strictness, if
    that changes with noise. `fits` is False where no sharpness fits the data.
    """

    share: Array
    rise: Array
    strict: Array | None
    fits: bool


def beyond_expected(
    sums: Labelled, people: People, *, free: bool, noise: Noise | None = None
) -> Beyond:
    """Compare calls with expected calls by stratum; both have the same mean over all strata. `free`
    lets sharpness vary; else it is that of humans. With `noise` strictness changes with it. NaN in
    rows that have no solution, and in all rows where no sharpness fits the data.
    """
    share = ratio(sums.grader, sums.n)
    part = ratio(sums.n, sums.n.sum(axis=1, keepdims=True))
    with_people = ratio(sums.both, sums.n) - share * people.mean
    level, together = ((part * weights).sum(axis=1) for weights in (share, with_people))
    strictness = np.ones_like(part) if noise is None else noise.strictness
    curves = _Curves.of_people(people, part, strictness, level, together)
    if free:
        a, b, fits = curves.fitted()
    else:
        b, fits = np.ones(len(part)), np.ones(len(part), dtype=bool)
        a = curves.strictness(b, np.zeros(len(part)))
    constant = (level < 1e-9) | (level > 1.0 - 1e-9)
    fits |= constant
    if not (fits[0] or fits.mean() >= _REFUTED):
        nothing = np.full(part.shape, np.nan)
        return Beyond(nothing, nothing, nothing, fits=False)
    at = curves.at(a, b)
    expected, rising = at.mean.T, at.together.T
    strict = None
    if noise is not None:
        strict = (curves.at(a * (1.0 + _NUDGE), b).mean.T - expected) / _NUDGE
    # 0 where all units of a stratum are alike: then nothing can rise.
    rise = np.nan_to_num(ratio(rising, people.variance))
    solved = np.abs((part * (share - expected)).sum(axis=1)) < 1e-3
    beyond = np.where(solved[:, None], share - expected, np.nan)
    return Beyond(np.where(constant[:, None], 0.0, beyond), rise, strict, fits=True)


@dataclass(frozen=True)
class _Curves:
    """Expected answers of a grader as a function of its strictness and sharpness.

    Arrays are those of `People` with the rows last, so that numpy sums long lines: (strata, rows),
    `at_nodes` and `weight` (strata, nodes, rows). `apart` is tau at the nodes minus its mean,
    `part` each stratum's share of the units, `relative` its strictness as a multiple of `a`.
    `level` and `together` (rows,) are the moments to be met: the grader's mean and its covariance
    with humans.
    """

    part: Array
    relative: Array
    center: Array
    wide: Array
    at_nodes: Array
    weight: Array
    apart: Array
    level: Array
    together: Array

    @classmethod
    def of_people(
        cls, people: People, part: Array, relative: Array, level: Array, together: Array
    ) -> _Curves:
        """Build from the sums and annotators of all rows."""
        apart = ndtr(people.at) - people.mean[..., None]
        given = (part, relative, people.center, people.wide, people.at, people.weight, apart)
        last = (np.ascontiguousarray(np.moveaxis(array, 0, -1)) for array in given)
        return cls(*last, level, together)  # type: ignore[call-arg]

    def of(self, rows: Codes) -> _Curves:
        """Select some rows, which may repeat."""
        return _Curves(*(total.take(rows, axis=-1) for total in vars(self).values()))

    def at(self, a: Array, b: Array) -> _Expected:
        """Return what is expected at a strictness and a sharpness, each (rows,)."""
        center, square, strict = self.center, self.wide**2, self.relative * a
        s2, own = 1.0 + b**2 * square, 1.0 + square
        s, root, nodes = np.sqrt(s2), np.sqrt(own), strict[:, None] + b * self.at_nodes
        return _Expected(
            curves=self, extra=self.weight * ndtr(nodes), steep=self.weight * _density(nodes),
            place=(strict + b * center) / s, people=center / root, rho=b * square / (s * root),
            rest=np.sqrt((own + b**2 * square) / (s2 * own)), place_by_a=1.0 / s,
            place_by_b=(center - strict * b * square) / (s * s2),
            rho_by_b=square / (root * s * s2),
        )  # fmt: skip

    def fitted(self) -> tuple[Array, Array, Mask]:
        """Strictness and sharpness of every row, and whether they fit. With sharpness the
        covariance rises, up to a highest value. A grader's that is below 0 is a guesser's, of
        sharpness 0. Where it lies above the highest, that is as near as one comes.
        """
        a, b = np.full((2, len(self.level)), np.nan)
        fits = np.ones(len(self.level), dtype=bool)
        guess = self.together <= 0.0
        near, b[guess] = np.clip(ndtri(self.level[guess]), -_STRICTEST, _STRICTEST), 0.0
        a[guess] = self.of(np.flatnonzero(guess)).strictness(b[guess], near)
        places = self.of(np.zeros(len(_SEARCHED), dtype=np.intp))
        strict = places.strictness(_SEARCHED, np.zeros(len(_SEARCHED)))
        off, covariance = places.at(strict, _SEARCHED).off()
        # The third moment's correction may send Newton's steps in circles.
        covariance[np.abs(off) > _CLOSE] = np.nan
        crossed = np.flatnonzero((covariance[:-1] < 0.0) & (covariance[1:] >= 0.0))
        if len(crossed) and not guess[0]:
            # Resamples end near the data.
            first = self.of(np.zeros(1, dtype=np.intp))._met(
                strict[crossed[:1]], _SEARCHED[crossed[:1]]
            )
            rest = np.flatnonzero(~guess)
            a[rest], b[rest] = self.of(rest)._met(*(np.repeat(at, len(rest)) for at in first))
        rest = np.flatnonzero(np.isnan(b))
        if len(rest):
            curves, top = self.of(rest), int(np.nan_to_num(covariance, nan=-np.inf).argmax())
            highest = (np.full(len(rest), column[top]) for column in (strict, _SEARCHED))
            a[rest], b[rest] = curves._highest(*highest)
            low = np.flatnonzero(curves.at(a[rest], b[rest]).off()[1] >= 0.0)
            # From below: there the covariance rises fastest, and no step leads beyond the highest.
            half, curves = b[rest[low]] / 2.0, curves.of(low)
            below = curves._met(curves.strictness(half, a[rest[low]]), half)
            met = ~np.isnan(below[1])
            a[rest[low[met]]], b[rest[low[met]]] = (array[met] for array in below)
            fits[np.delete(rest, low)] = False
        return a, b, fits

    def _met(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Solve for both moments of the grader by Newton's steps; NaN where these find nothing."""
        a, b, rest, curves = a.copy(), b.copy(), np.arange(len(a)), self
        found_a, found_b = np.full((2, len(a)), np.nan)
        for _ in range(_STEPS):
            if not len(rest):
                break
            at = curves.at(a, b)
            off, off_together = at.off()
            (by_a, by_b), (and_a, and_b) = at.slopes()
            size = by_a * and_b - by_b * and_a
            to_a = _over(and_b * off - by_b * off_together, size)
            to_b = _over(by_a * off_together - and_a * off, size)
            a, b = a - np.clip(to_a, -0.7, 0.7), b - np.clip(to_b, -0.5, 0.5)
            # Where the covariance falls with sharpness, its highest value has been passed.
            inside = (size > 0.0) & (b >= 0.0) & (b <= _SHARPEST) & (np.abs(a) <= _STRICTEST)
            close = np.maximum(np.abs(to_a), np.abs(to_b)) <= _CLOSE
            done = inside & close
            found_a[rest[done]], found_b[rest[done]] = a[done], b[done]
            left = np.flatnonzero(inside & ~close)
            if len(left) < len(rest):
                rest, curves, a, b = rest[left], curves.of(left), a[left], b[left]
        return found_a, found_b

    def _highest(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Find the highest covariance at the grader's mean by Newton's steps: there its slope
        along sharpness is 0. At the sharpest allowed where it rises up to there; at the given place
        where the steps find nothing.
        """
        start, place = b, b.copy()
        strict, rest, curves = a.copy(), np.arange(len(a)), self
        for _ in range(_STEPS):
            if not len(rest):
                break
            at = curves.at(a, b)
            off = at.mean_off()
            by_a, by_b, size = at.turning()
            size_a = (curves.at(a + _NUDGE, b).turning()[2] - size) / _NUDGE
            size_b = (curves.at(a, b + _NUDGE).turning()[2] - size) / _NUDGE
            whole = by_a * size_b - by_b * size_a
            to_a = _over(size_b * off - by_b * size, whole)
            to_b = _over(by_a * size - size_a * off, whole)
            # A highest place, not a lowest: the slope falls with sharpness.
            falls = whole < 0.0
            to_b = np.where(falls, to_b, -0.25 * np.sign(size))
            to_a = np.where(falls, to_a, _over(off - by_b * to_b, by_a))
            a, b = a - np.clip(to_a, -0.7, 0.7), b - np.clip(to_b, -0.5, 0.5)
            close = np.maximum(np.abs(to_a), np.abs(to_b)) <= _CLOSE
            inside = (b > 0.0) & (b < _SHARPEST) & (np.abs(a) <= _STRICTEST)
            done = close & falls & inside
            place[rest[done]] = b[done]
            strict[rest[done]] = a[done]
            place[rest[b >= _SHARPEST]] = _SHARPEST
            left = np.flatnonzero(inside & ~done)
            if len(left) < len(rest):
                rest, curves, a, b = rest[left], curves.of(left), a[left], b[left]
        unsolved = np.flatnonzero((place == start) | (place == _SHARPEST))
        strict[unsolved] = self.of(unsolved).strictness(place[unsolved], strict[unsolved])
        return strict, place

    def strictness(self, b: Array, a: Array) -> Array:
        """The one that gives the mean at given sharpness, by Newton's steps from `a`."""
        root, rest, curves = a.copy(), np.arange(len(b)), self
        for _ in range(_STEPS):
            at = curves.at(root[rest], b[rest])
            step = _over(at.mean_off(), at.slope_of_mean())
            root[rest] = np.clip(root[rest] - np.clip(step, -0.7, 0.7), -_STRICTEST, _STRICTEST)
            if not len(left := np.flatnonzero(np.abs(step) > _CLOSE)):
                break
            if len(left) < len(rest):
                rest, curves = rest[left], curves.of(left)
        return root


@dataclass(frozen=True)
class _Expected:
    """Expected answers at one strictness and sharpness of every row.

    Closed form for a normal Phi^-1(tau): the mean expected is Phi(place), and that of its product
    with tau the chance that two normal variables of correlation rho lie below `place` and
    `people`; all (strata, rows). To these the nodes add `extra`, which is `steep` along strictness,
    each (strata, nodes, rows).
    """

    curves: _Curves
    extra: Array
    steep: Array
    place: Array
    people: Array
    rho: Array
    rest: Array
    place_by_a: Array
    place_by_b: Array
    rho_by_b: Array

    @property
    def mean(self) -> Array:
        """The mean expected, (strata, rows)."""
        return np.asarray(ndtr(self.place) + self.extra.sum(axis=1))

    @property
    def together(self) -> Array:
        """Its covariance with people's score, (strata, rows), by Owen (1956)."""
        h, k = _nonzero(self.place), _nonzero(self.people)
        below, of_people = ndtr(h), ndtr(k)
        both = 0.5 * (below + of_people) - 0.5 * (h * k < 0.0)
        both -= owens_t(h, (k / h - self.rho) / self.rest)
        both -= owens_t(k, (h / k - self.rho) / self.rest)
        return np.asarray(both - below * of_people + self._with_people(self.extra))

    def off(self) -> tuple[Array, Array]:
        """The mean and the covariance expected minus the grader's, each (rows,)."""
        return self.mean_off(), self._overall(self.together) - self.curves.together

    def mean_off(self) -> Array:
        """The mean expected minus the grader's, (rows,)."""
        return self._overall(self.mean) - self.curves.level

    def slope_of_mean(self) -> Array:
        """How the mean rises with strictness, (rows,)."""
        normal = _density(self.place) * self.place_by_a
        return self._overall(self.curves.relative * (normal + self.steep.sum(axis=1)))

    def slopes(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return how mean and covariance rise with strictness and with sharpness, each (rows,)."""
        h, k = self.place, self.people
        steep, aside = _density(h), (k - self.rho * h) / self.rest
        apart = steep * (ndtr(aside) - ndtr(k))
        at_both = steep * _density(aside) / self.rest
        along = self.steep * self.curves.at_nodes
        and_a = apart * self.place_by_a + self._with_people(self.steep)
        by_b = steep * self.place_by_b + along.sum(axis=1)
        and_b = apart * self.place_by_b + at_both * self.rho_by_b + self._with_people(along)
        with_a = self.slope_of_mean(), self._overall(self.curves.relative * and_a)
        with_b = self._overall(by_b), self._overall(and_b)
        return (with_a[0], with_b[0]), (with_a[1], with_b[1])

    def turning(self) -> tuple[Array, Array, Array]:
        """The slopes of the mean, and the determinant of all, which is 0 where the covariance no
        longer rises with sharpness at the same mean."""
        (by_a, by_b), (and_a, and_b) = self.slopes()
        return by_a, by_b, by_a * and_b - by_b * and_a

    def _with_people(self, at_nodes: Array) -> Array:
        """The covariance with people's score that answers at the nodes bring, (strata, rows)."""
        return np.asarray(np.einsum("snr,snr->sr", at_nodes, self.curves.apart))

    def _overall(self, by_stratum: Array) -> Array:
        return np.asarray((self.curves.part * by_stratum).sum(axis=0))


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))


def _over(part: Array, whole: Array) -> Array:
    return np.asarray(part / _nonzero(whole))


def _nonzero(values: Array) -> Array:
    return np.where(np.abs(values) < 1e-9, 1e-9, values)


def _inside(sums: Labelled) -> Array:
    """Return the mean human's share, at least half a unit of the sample from 0 and 1."""
    least = 0.5 / (sums.n.sum(axis=1, keepdims=True) + 1.0)
    return np.clip(ratio(sums.person, sums.n), least, 1.0 - least)


def _covariance(sums: Labelled) -> Array:
    """Covariance of two humans' calls within each stratum, (rows, strata)."""
    mean = np.nan_to_num(ratio(sums.person2, sums.n2))
    return np.asarray(np.nan_to_num(ratio(sums.two2, sums.n2)) - mean**2)


def _row_sums(values: Array) -> Array:
    return np.asarray(values.sum(axis=1, keepdims=True))


def _variance(sums: Labelled, mean: Array, shared: float, noise: Noise | None) -> Array:
    """Estimate the variance of tau, (rows, strata): the covariance of two humans' calls within a
    stratum, averaged with the value implied by all strata, which counts as `shared` units.
    """
    one, covariance = np.nan_to_num(ratio(sums.person2, sums.n2)), _covariance(sums)
    of_all = ratio((sums.n2 * covariance).sum(axis=1), (sums.n2 * one * (1.0 - one)).sum(axis=1))
    of_all = np.where(of_all > 0, of_all, np.nan)[:, None]
    usual = of_all * mean * (1.0 - mean)
    if noise is not None:
        usual = np.where(np.isnan(of_all), np.nan, noise.covariance)
    mixed = (sums.n2 * covariance + shared * usual) / (sums.n2 + shared)
    return np.clip(mixed, 0.01 * mean * (1.0 - mean), 0.97 * mean * (1.0 - mean))


def _angle(place: Array, excess: Array) -> Array:
    """The arcsine of the correlation at which two standard normal variables lie below `place`
    together by `excess` more often than independent ones, by Newton's method.
    """
    below, square = ndtr(place), place**2
    angle = np.full(place.shape, 0.5)
    for _ in range(30):
        off = _excess(place, below, angle) - excess
        step = np.clip(off * 2.0 * np.pi * np.exp(square / (1.0 + np.sin(angle))), -0.5, 0.5)
        angle = np.clip(angle - step, 1e-4, 1.55)
        if not (np.abs(step) > _CLOSE).any():
            break
    return angle


def _excess(place: Array, below: Array, angle: Array) -> Array:
    """Return how much oftener than independent ones both variables lie below (Owen 1956)."""
    return np.asarray(below - 2.0 * owens_t(place, np.tan(np.pi / 4.0 - angle / 2.0)) - below**2)


def _third_of_normal(place: Array, angle: Array) -> Array:
    """The third moment of tau where Phi^-1(tau) is normal: the chance that three such variables lie
    below `place`, by Plackett's (1954) integral over the correlation.
    """
    total = np.zeros_like(place)
    for theta, part in zip(_THETAS, _THETA_WEIGHTS, strict=True):
        r = np.sin(theta * angle)
        third = ndtr(place * np.sqrt((1.0 - r) / ((1.0 + r) * (1.0 + 2.0 * r))))
        total += part * np.exp(-(place**2) / (1.0 + r)) * third
    return np.asarray(ndtr(place) ** 3 + 3.0 * angle * total / (2.0 * np.pi))


def _around_two(mean: Array, variance: Array, third: Array) -> Array:
    """Return four nodes (rows, strata, 4), two around each point of the two-point Gauss rule."""
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


# Calls, and their shifts


@dataclass(frozen=True)
class Calls:
    """Calls `values` (units, raters), NaN for none, with each unit's cluster and subject. `unit`
    (units,) is the unit's row in the label matrix; `subset` names the rows on all of the calls.
    """

    raters: tuple[str, ...]
    kinds: tuple[str, ...]
    values: Array
    clusters: Codes
    subjects: tuple[str, ...]
    subject: Codes
    unit: Codes
    subset: str

    @property
    def graders(self) -> tuple[int, ...]:
        """Columns of the model graders."""
        return tuple(at for at, kind in enumerate(self.kinds) if kind == "model")

    @property
    def people(self) -> Array:
        """The humans' calls (units, humans)."""
        return self.values[:, [kind == "human" for kind in self.kinds]]

    def oriented(self, sign: Array) -> Calls:
        """Swap the sides of directed calls where `sign` (units,) is -1; no call where it is 0."""
        return replace(self, values=self.values * np.where(sign == 0, np.nan, sign)[:, None])

    def without_graders_but(self, grader: str) -> Calls:
        """Return the calls of humans and this grader."""
        named = enumerate(zip(self.raters, self.kinds, strict=True))
        kept = [at for at, (name, kind) in named if name == grader or kind != "model"]
        raters, kinds = (tuple(names[at] for at in kept) for names in (self.raters, self.kinds))
        return replace(self, raters=raters, kinds=kinds, values=self.values[:, kept])

    def part(self, name: str) -> str:
        """Return the `subset` of rows on a part of the units."""
        return name + BINARY if self.subset.endswith(BINARY) else name


def verdict_calls(labels: LabelMatrix) -> Calls | None:
    """Return 1 for an affirmative verdict, 0 for another; None where the scale has no verdict."""
    if not labels.has_verdicts:
        return None
    return _calls(labels, labels.verdict_values, np.arange(len(labels.codes)), BINARY_ALL)


def directed_calls(labels: LabelMatrix) -> Calls | None:
    """Return the side that every rater favours, or None where rubric or units have no sides."""
    if labels.scale.favours:
        signs = favour_signs(labels.scale.categories, labels.scale.favours)
        return _calls(labels, signs[labels.codes], np.arange(len(labels.codes)), "all")
    verdicts = verdict_calls(labels)
    a, b = units_of_both_sides(labels)
    if verdicts is None or not len(a):
        return None
    return _calls(labels, verdicts.values[a] - verdicts.values[b], a, verdicts.subset)


def _calls(labels: LabelMatrix, values: Array, unit: Codes, subset: str) -> Calls:
    raters, subjects = (labels.raters, labels.kinds), (labels.subjects, labels.subject[unit])
    return Calls(*raters, values, labels.clusters[unit], *subjects, unit, subset)


MIN_TWICE = 30
"""Sharpness is estimated from this many units with two humans' labels; else it is taken as 1."""
NOT_SCALED = Remark("sharpness_assumed", (MIN_TWICE,))


PARTS = 5
"""Number of equal parts into which a property with many values, such as a length, is divided."""


@dataclass(frozen=True)
class Shift:
    """Shift of calls: replicates `values` (rows,), the data first; `counts` (units, clusters);
    `reason` explains an undefined estimate. `if_noisy` (rows,) is the shift if raters' noise
    changes with the property; None where that is not asked.
    """

    values: Array
    counts: tuple[int, int]
    note: Note = ""
    reason: str = "no_variation"
    if_noisy: Array | None = None


def side_shift(calls: Calls, grader: int, resamples: Resamples) -> Shift | None:
    """Estimate a grader's mean call minus r times that of humans, on the units that both called;
    None where there are none.
    """
    people, called = calls.people, calls.values[:, grader]
    held = ~np.isnan(people)
    n_people = held.sum(axis=1)
    shared = (n_people > 0) & ~np.isnan(called)
    if not shared.any():
        return None
    total, squares = (np.where(held, power, 0.0).sum(axis=1) for power in (people, people**2))
    person = np.where(shared, ratio(total, n_people.astype(float)), 0.0)
    graded, twice = np.where(shared, called, 0.0), shared & (n_people >= 2)
    note: Note = NOT_SCALED
    sharpness = np.ones(len(resamples))
    if resamples.count(calls.clusters, twice)[0] >= MIN_TWICE:
        orders = np.where(twice, n_people * (n_people - 1), 1).astype(float)
        two_people = (total**2 - squares) / orders
        products = (twice * moment for moment in (graded, person, graded * person, two_people))
        n, sg, sp, sgp, spp = resamples.sums(calls.clusters, twice, *products).T
        with_person = ratio(sgp, n) - ratio(sg, n) * ratio(sp, n)
        among_people = ratio(spp, n) - ratio(sp, n) ** 2
        # NaN where humans agree no better than chance.
        sharpness = ratio(with_person, np.where(among_people > 1e-12, among_people, 0.0))
        note = ""
    n, sg, sp = resamples.sums(calls.clusters, shared, graded, person).T
    # Where humans do not lean at all the grader's sharpness does not matter.
    lean = np.where(sp == 0, 0.0, sharpness * ratio(sp, n))
    reason = "people_agree_by_chance" if np.isnan(sharpness[0]) else "no_variation"
    return Shift(ratio(sg, n) - lean, resamples.count(calls.clusters, shared), note, reason)


class Shifts:
    """Rise of graders' calls with x (units,), NaN where not known, beyond what is expected.

    The rise is the least squares slope of calls minus expected ones, which for x of 0 and 1 is a
    difference. Within a part expected calls rise in a straight line with those of humans.

    A call of more than two values is split into steps, *at least 0* and *at least 1*.

    `noisy` allows for noise of all raters that changes with x: annotators' spread may, and the
    shift is estimated a second time with strictness in units of that noise.

    Graders mostly called the same units: what people said there is summed once, in `called`, which
    others on these resamples may share.
    """

    def __init__(
        self,
        calls: Calls,
        x: Array,
        resamples: Resamples,
        *,
        noisy: bool = False,
        called: dict[tuple[bytes | bool, ...], CalledUnits] | None = None,
    ) -> None:
        self.calls, self.x, self.resamples, self.noisy = calls, x, resamples, noisy
        self.steps = np.unique(calls.values[~np.isnan(calls.values)])[1:]
        self._called = {} if called is None else called
        given = (calls.people, calls.clusters, x, self.steps)
        self._key: tuple[bytes | bool, ...] = (noisy, *(each.tobytes() for each in given))

    def of(self, grader: int) -> Shift | None:
        """Estimate the shift of one grader; None without a unit that it and a human called."""
        graded, by_people = self.calls.values[:, grader], ~np.isnan(self.calls.people).all(axis=1)
        held = ~np.isnan(graded) & by_people & ~np.isnan(self.x)
        if not held.any():
            return None
        key = (*self._key, held.tobytes())
        people = self._called[key] = self._called.get(key) or CalledUnits(self, held)
        readings = [False, True] if self.noisy and people.twice else [False]
        totals = np.zeros((len(readings), len(self.resamples)))
        reason = "no_variation"
        for step, at_step in zip(self.steps, people.steps, strict=True):
            for total, noisy in zip(totals, readings, strict=True):
                rise, fits = people.beyond(graded[held] >= step, at_step, noisy=noisy)
                if people.parts > 1 and np.isnan(at_step.law.variance[0]).any():
                    reason = "people_agree_by_chance"
                elif not fits:
                    reason = "no_sharpness_fits"
                total += rise
        note = "" if people.twice else NOT_SCALED
        counts = self.resamples.count(self.calls.clusters, held)
        return Shift(totals[0], counts, note, reason, totals[1] if len(totals) > 1 else None)


class _Step(NamedTuple):
    """Humans' calls at or above one step: their `mean` on each unit (units,), the `sums` that
    `Labelled` needs of them, their sum with the unit's place (`placed`), the distribution of tau
    (`law`), and the `noise` of all raters along the place, if that may change.
    """

    mean: Array
    sums: dict[str, Array]
    placed: Array
    law: People
    noise: Noise | None


class CalledUnits:
    """Calls of annotators on units that a grader called, part by part; sums are (rows, parts)."""

    def __init__(self, shifts: Shifts, held: Mask) -> None:
        people, place = shifts.calls.people[held], shifts.x[held]
        self._place, self._inside = place, parts_of(place)
        self._clusters, self._resamples = shifts.calls.clusters[held], shifts.resamples
        enough = (~np.isnan(people)).sum(axis=1)[:, None] >= [2, 3]
        self.parts = self._inside.shape[1]
        self.twice = bool(enough[:, 0].sum() >= MIN_TWICE)
        third = bool((enough[:, 1, None] & self._inside).sum(axis=0).min() >= MIN_TWICE)
        self.n, sx, sxx = self._sums(np.ones(len(place)), place, place**2)
        self._mean = ratio(sx, self.n)
        whole = ratio(sx.sum(axis=1), self.n.sum(axis=1))
        self.aside = self._mean - whole[:, None]
        self._within = sxx - sx * self._mean
        self.spread = (self.n * self.aside**2 + self._within).sum(axis=1)
        self.steps = []
        for step in shifts.steps:
            products = _products(np.where(np.isnan(people), np.nan, people >= step))
            totals = self._sums(*products.values(), products["person"] * place)
            sums = {"n": self.n, **dict(zip(products, totals[:-1], strict=True))}
            empty = Labelled(grader=self.n, both=self.n, **sums)
            noise = Noise.along(empty, self._mean) if shifts.noisy and self.twice else None
            law = People.of(empty, third, noise) if self.twice else People.alike(empty)
            self.steps.append(_Step(products["person"], sums, totals[-1], law, noise))

    def beyond(self, calls: Mask, step: _Step, *, noisy: bool) -> tuple[Array, bool]:
        """Rise with x of a grader's `calls` of 1 and 0 beyond those expected, (rows,), and False
        where no sharpness fits them. `noisy` has strictness change with all raters' noise.
        """
        grader, both, placed = self._sums(calls, calls * step.mean, calls * self._place)
        labelled = Labelled(grader=grader, both=both, **step.sums)
        noise = step.noise if noisy else None
        rest = beyond_expected(labelled, step.law, free=self.twice, noise=noise)
        inner = placed - self._mean * grader
        inner -= rest.rise * (step.placed - self._mean * step.sums["person"])
        if noise is not None and rest.strict is not None:
            inner += noise.rise * rest.strict * self._within
        share = (self.n * self.aside * rest.share).sum(axis=1)
        return ratio(share + inner.sum(axis=1), self.spread), rest.fits

    def _sums(self, *columns: Numbers) -> Array:
        """Sum columns (units,) within each part, (columns, rows, parts)."""
        each = np.column_stack(columns)[:, :, None] * self._inside[:, None, :]
        sums = self._resamples.sums(self._clusters, each.reshape(len(each), -1))
        return np.moveaxis(sums.reshape(len(sums), len(columns), -1), 1, 0)


def parts_of(x: Array) -> Mask:
    """Assign each value to a part, (units, parts): its own where there are few values."""
    values = np.unique(x)
    if len(values) > PARTS:
        limits = np.unique(np.quantile(x, np.arange(1, PARTS) / PARTS))
        codes = np.searchsorted(limits, x)
        return np.asarray(codes[:, None] == np.unique(codes))
    return np.asarray(x[:, None] == values)


def _products(people: Array) -> dict[str, Array]:
    """Return what `Labelled` sums: annotators' calls of 1 and 0, each (units,). Each one's calls
    count minus their own leniency, so that a difference in it does not pass for one between units.
    """
    held = ~np.isnan(people)
    k = held.sum(axis=1).astype(float)
    # A human's leniency is affirmations above the mean on the same units; 0 for one who shares
    # fewer than 30 units with others.
    twice, leniency = people[k >= 2], np.zeros(people.shape[1])
    if len(twice):
        shared = (~np.isnan(twice)).sum(axis=0)
        # The mean over a unit's humans includes the human; of all humans they are one in many.
        many = k[k >= 2] / (k[k >= 2] - 1.0) * (1.0 - 1.0 / people.shape[1])
        apart = (twice - np.nanmean(twice, axis=1, keepdims=True)) * many[:, None]
        mean_apart = np.nansum(apart, axis=0) / np.maximum(shared, 1)
        leniency = np.where(shared >= MIN_TWICE, mean_apart, 0.0)
    calls = np.where(held, people - leniency, 0.0)
    first, second, third = (np.asarray((calls**power).sum(axis=1)) for power in (1, 2, 3))
    mean = first / k
    two = np.nan_to_num(ratio(first**2 - second, k * (k - 1.0)))
    three = ratio(first**3 - 3.0 * first * second + 2.0 * third, k * (k - 1.0) * (k - 2.0))
    n2, n3 = (k >= 2).astype(float), (k >= 3).astype(float)
    of_two = {"n2": n2, "person2": n2 * mean, "two2": two}
    of_three = {"n3": n3, "person3": n3 * mean, "two3": n3 * two, "three3": np.nan_to_num(three)}
    return {"person": mean, **of_two, **of_three}
