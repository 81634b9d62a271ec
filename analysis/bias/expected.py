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

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.types import Array, Codes, Mask

_THETAS, _PARTS = (each / 2.0 for each in np.polynomial.legendre.leggauss(12))
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
        """Fit the distribution by the first two moments, and the third where `third` is set.

        With `noise` the spread of all strata together may change along its property.
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
        more = _third_moment(sums, mean, variance) - normal
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
            of_k, of_x = (
                _row_sums(weight * steep * (covariance - fitted) * x**power) for power in (0, 1)
            )
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
    calls on humans' score within a stratum, `strict` their slope on the logarithm of strictness.
    `told` is False where no sharpness fits the data.
    """

    share: Array
    rise: Array
    strict: Array
    told: bool


def beyond_expected(
    sums: Labelled, people: People, *, free: bool, noise: Noise | None = None
) -> Beyond:
    """Compare calls with expected calls by stratum; both have the same mean over all strata.

    `free` lets sharpness vary; else it is that of humans. With `noise` strictness changes with it.
    NaN in rows that have no solution, and in all rows where no sharpness fits the data.
    """
    share = ratio(sums.grader, sums.n)
    part = ratio(sums.n, sums.n.sum(axis=1, keepdims=True))
    with_people = ratio(sums.both, sums.n) - share * people.mean
    level, together = ((part * each).sum(axis=1) for each in (share, with_people))
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
        return Beyond(nothing, nothing, nothing, told=False)
    expected, rising = (each.T for each in curves.by_stratum(a, b))
    strict = (curves.by_stratum(a * (1.0 + _NUDGE), b)[0].T - expected) / _NUDGE
    # 0 where all units of a stratum are alike: then nothing can rise.
    rise = np.nan_to_num(ratio(rising, people.variance))
    solved = np.abs((part * (share - expected)).sum(axis=1)) < 1e-3
    beyond = np.where(solved[:, None], share - expected, np.nan)
    return Beyond(np.where(constant[:, None], 0.0, beyond), rise, strict, told=True)


@dataclass(frozen=True)
class _Curves:
    """Expected answers of a grader as a function of its strictness and sharpness.

    Arrays are those of `People` with the rows last, so that numpy sums long lines: (strata, rows),
    `at` and `weight` (strata, nodes, rows). `apart` is tau at the nodes minus its mean, `part` each
    stratum's share of the units, `relative` its strictness as a multiple of `a`. `level` and
    `together` (rows,) are the moments to be met: the grader's mean and its covariance with humans.
    """

    part: Array
    relative: Array
    center: Array
    wide: Array
    at: Array
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
        last = [
            np.ascontiguousarray(np.moveaxis(each, 0, -1))
            for each in (
                *(part, relative, people.center, people.wide),
                *(people.at, people.weight, apart),
            )
        ]
        return cls(*last, level, together)  # type: ignore[call-arg]

    def of(self, rows: Codes) -> _Curves:
        """Select some rows, which may repeat."""
        return _Curves(*(np.ascontiguousarray(each[..., rows]) for each in vars(self).values()))

    def by_stratum(self, a: Array, b: Array) -> tuple[Array, Array]:
        """The mean expected and its covariance with people's score, each (strata, rows)."""
        own = _Normal.at(self, a, b)
        extra = self.weight * ndtr(self._at_nodes(a, b))
        return (
            ndtr(own.place) + extra.sum(axis=1),
            own.together() + np.einsum("snr,snr->sr", extra, self.apart),
        )

    def fitted(self) -> tuple[Array, Array, Mask]:
        """Strictness and sharpness of every row, and whether they fit.

        With sharpness the covariance rises, up to a highest value. A grader's that is below 0 is a
        guesser's, of sharpness 0. Where it lies above the highest, that is as near as one comes.
        """
        a, b = np.full((2, len(self.level)), np.nan)
        fits = np.ones(len(self.level), dtype=bool)
        guess = self.together <= 0.0
        near, b[guess] = np.clip(ndtri(self.level[guess]), -_STRICTEST, _STRICTEST), 0.0
        a[guess] = self.of(np.flatnonzero(guess)).strictness(b[guess], near)
        places = self.of(np.zeros(len(_SEARCHED), dtype=np.intp))
        strict = places.strictness(_SEARCHED, np.zeros(len(_SEARCHED)))
        off, found = places.off(strict, _SEARCHED)
        # The third moment's correction may send Newton's steps in circles.
        found[np.abs(off) > _CLOSE] = np.nan
        crossed = np.flatnonzero((found[:-1] < 0.0) & (found[1:] >= 0.0))
        if len(crossed) and not guess[0]:
            # Resamples end near the data.
            first = self.of(np.zeros(1, dtype=np.intp))._met(*_one(strict, crossed[0]))
            rest = np.flatnonzero(~guess)
            a[rest], b[rest] = self.of(rest)._met(*(np.repeat(at, len(rest)) for at in first))
        rest = np.flatnonzero(np.isnan(b))
        if len(rest):
            own, top = self.of(rest), int(np.nan_to_num(found, nan=-np.inf).argmax())
            a[rest], b[rest] = own._highest(*(np.repeat(at, len(rest)) for at in _one(strict, top)))
            low = np.flatnonzero(own.off(a[rest], b[rest])[1] >= 0.0)
            # From below: there the covariance rises fastest, and no step leads beyond the highest.
            half, own = b[rest[low]] / 2.0, own.of(low)
            below = own._met(own.strictness(half, a[rest[low]]), half)
            met = ~np.isnan(below[1])
            a[rest[low[met]]], b[rest[low[met]]] = (each[met] for each in below)
            fits[np.delete(rest, low)] = False
        return a, b, fits

    def _met(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Solve for both moments of the grader by Newton's steps; NaN where these find nothing."""
        a, b, rest, own = a.copy(), b.copy(), np.arange(len(a)), self
        found_a, found_b = np.full((2, len(a)), np.nan)
        for _ in range(_STEPS):
            if not len(rest):
                break
            off, off_together = own.off(a, b)
            (by_a, by_b), (and_a, and_b) = own.slopes(a, b)
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
                rest, own, a, b = rest[left], own.of(left), a[left], b[left]
        return found_a, found_b

    def _highest(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Find the highest covariance at the grader's mean by Newton's steps: there its slope
        along sharpness is 0. At the sharpest allowed where it rises up to there; at the given place
        where the steps find nothing.
        """
        start, place = b, b.copy()
        strict, rest, own = a.copy(), np.arange(len(a)), self
        for _ in range(_STEPS):
            if not len(rest):
                break
            off = own.mean_off(a, b)
            by_a, by_b, size = own.turning(a, b)
            size_a = (own.turning(a + _NUDGE, b)[2] - size) / _NUDGE
            size_b = (own.turning(a, b + _NUDGE)[2] - size) / _NUDGE
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
                rest, own, a, b = rest[left], own.of(left), a[left], b[left]
        unsolved = np.flatnonzero((place == start) | (place == _SHARPEST))
        strict[unsolved] = self.of(unsolved).strictness(place[unsolved], strict[unsolved])
        return strict, place

    def off(self, a: Array, b: Array) -> tuple[Array, Array]:
        """The mean and the covariance expected minus the grader's, each (rows,)."""
        mean, together = ((self.part * each).sum(axis=0) for each in self.by_stratum(a, b))
        return mean - self.level, together - self.together

    def mean_off(self, a: Array, b: Array) -> Array:
        """The first of these."""
        mean = ndtr(_Normal.at(self, a, b).place)
        mean += np.einsum("snr,snr->sr", self.weight, ndtr(self._at_nodes(a, b)))
        return np.asarray((self.part * mean).sum(axis=0) - self.level)

    def slopes(self, a: Array, b: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return how mean and covariance rise with strictness and with sharpness, each (rows,)."""
        (by_a, by_b), (and_a, and_b) = _Normal.at(self, a, b).slopes()
        steep = self.weight * _density(self._at_nodes(a, b))
        along = steep * self.at
        by_a = self.relative * (by_a + steep.sum(axis=1))
        and_a = self.relative * (and_a + np.einsum("snr,snr->sr", steep, self.apart))
        by_b = by_b + along.sum(axis=1)
        and_b = and_b + np.einsum("snr,snr->sr", along, self.apart)
        all_a, all_b = ((self.part * each).sum(axis=0) for each in (by_a, by_b))
        return (all_a, all_b), ((self.part * and_a).sum(axis=0), (self.part * and_b).sum(axis=0))

    def _at_nodes(self, a: Array, b: Array) -> Array:
        """Return the argument of the grader's curve at the nodes, (strata, nodes, rows)."""
        return np.asarray((self.relative * a)[:, None] + b * self.at)

    def turning(self, a: Array, b: Array) -> tuple[Array, Array, Array]:
        """The slopes of the mean, and the determinant of all, which is 0 where the covariance no
        longer rises with sharpness at the same mean."""
        (by_a, by_b), (and_a, and_b) = self.slopes(a, b)
        return by_a, by_b, by_a * and_b - by_b * and_a

    def strictness(self, b: Array, a: Array) -> Array:
        """The one that gives the mean at given sharpness, by Newton's steps from `a`."""
        found, rest, own = a.copy(), np.arange(len(b)), self
        for _ in range(_STEPS):
            off = own.mean_off(found[rest], b[rest])
            step = _over(off, own.slopes(found[rest], b[rest])[0][0])
            found[rest] = np.clip(found[rest] - np.clip(step, -0.7, 0.7), -_STRICTEST, _STRICTEST)
            left = np.flatnonzero(np.abs(step) > _CLOSE)
            if not len(left):
                break
            if len(left) < len(rest):
                rest, own = rest[left], own.of(left)
        return found


@dataclass(frozen=True)
class _Normal:
    """Closed form for a normal Phi^-1(tau): the mean expected is Phi(place), and that of its
    product with tau the chance that two normal variables of correlation rho lie below `place` and
    `people`; all (strata, rows).
    """

    place: Array
    people: Array
    rho: Array
    rest: Array
    place_by_a: Array
    place_by_b: Array
    rho_by_b: Array

    @classmethod
    def at(cls, curves: _Curves, a: Array, b: Array) -> _Normal:
        """Evaluate at a strictness and a sharpness."""
        center, square, a = curves.center, curves.wide**2, curves.relative * a
        s2, own = 1.0 + b**2 * square, 1.0 + square
        s = np.sqrt(s2)
        root = np.sqrt(own)
        return cls(
            place=(a + b * center) / s,
            people=center / root,
            rho=b * square / (s * root),
            rest=np.sqrt((own + b**2 * square) / (s2 * own)),
            place_by_a=1.0 / s,
            place_by_b=(center - a * b * square) / (s * s2),
            rho_by_b=square / (root * s * s2),
        )

    def together(self) -> Array:
        """The covariance, by Owen (1956)."""
        h, k = _nonzero(self.place), _nonzero(self.people)
        below, of_people = ndtr(h), ndtr(k)
        both = 0.5 * (below + of_people) - 0.5 * (h * k < 0.0)
        both -= owens_t(h, (k / h - self.rho) / self.rest)
        both -= owens_t(k, (h / k - self.rho) / self.rest)
        return np.asarray(both - below * of_people)

    def slopes(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return the slopes of mean and covariance, each along strictness and along sharpness."""
        h, k = self.place, self.people
        steep, aside = _density(h), (k - self.rho * h) / self.rest
        apart = steep * (ndtr(aside) - ndtr(k))
        at_both = steep * _density(aside) / self.rest
        return (
            (steep * self.place_by_a, steep * self.place_by_b),
            (apart * self.place_by_a, apart * self.place_by_b + at_both * self.rho_by_b),
        )


def _one(strict: Array, at: int) -> tuple[Array, Array]:
    """Return one of the places searched: strictness and sharpness, each (1,)."""
    return strict[at : at + 1], _SEARCHED[at : at + 1]


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
    own = np.nan_to_num(ratio(sums.person2, sums.n2))
    return np.asarray(np.nan_to_num(ratio(sums.two2, sums.n2)) - own**2)


def _row_sums(values: Array) -> Array:
    return np.asarray(values.sum(axis=1, keepdims=True))


def _variance(sums: Labelled, mean: Array, shared: float, noise: Noise | None) -> Array:
    """Variance of tau, (rows, strata).

    The covariance of two humans' calls within a stratum, averaged with the value implied by the
    covariance over all strata, which counts as `shared` units.
    """
    own, covariance = np.nan_to_num(ratio(sums.person2, sums.n2)), _covariance(sums)
    of_all = ratio((sums.n2 * covariance).sum(axis=1), (sums.n2 * own * (1.0 - own)).sum(axis=1))
    of_all = np.where(of_all > 0, of_all, np.nan)[:, None]
    usual = of_all * mean * (1.0 - mean)
    if noise is not None:
        usual = np.where(np.isnan(of_all), np.nan, noise.covariance)
    mixed = (sums.n2 * covariance + shared * usual) / (sums.n2 + shared)
    return np.clip(mixed, 0.01 * mean * (1.0 - mean), 0.97 * mean * (1.0 - mean))


def _third_moment(sums: Labelled, mean: Array, variance: Array) -> Array:
    """Third moment of tau, (rows, strata), from units that three humans labelled."""
    m1, m2, m3 = (ratio(each, sums.n3) for each in (sums.person3, sums.two3, sums.three3))
    central = m3 - 3.0 * m1 * m2 + 2.0 * m1**3
    return np.asarray(central + 3.0 * mean * (variance + mean**2) - 2.0 * mean**3)


def _angle(place: Array, excess: Array) -> Array:
    """The arcsine of the correlation at which two standard normal variables lie below `place`
    together by `excess` more often than independent ones, by Newton's method.
    """
    below, square = ndtr(place), place**2
    angle = np.full(place.shape, 0.5)
    for _ in range(30):
        reached = _excess(place, below, angle)
        step = np.clip(
            (reached - excess) * 2.0 * np.pi * np.exp(square / (1.0 + np.sin(angle))), -0.5, 0.5
        )
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
    for theta, part in zip(_THETAS, _PARTS, strict=True):
        r = np.sin(theta * angle)
        third = ndtr(place * np.sqrt((1.0 - r) / ((1.0 + r) * (1.0 + 2.0 * r))))
        total += part * np.exp(-(place**2) / (1.0 + r)) * third
    return np.asarray(ndtr(place) ** 3 + 3.0 * angle * total / (2.0 * np.pi))


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
