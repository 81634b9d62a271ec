"""Shift of a grader's calls with a property, beyond what humans' score of the units explains.

`Shifts.of` estimates the shift with any property, `side_shift` that of the side of a pair that a
grader favours; the first half of the module has the expected calls (`excess_calls`).

The sample is divided by the property that should not matter: own family or not, a part of the
sample or the rest, fifths of the length. In each part the share of the grader's affirmative calls
is compared with the one expected of a grader without bias.

Calls are numbers: how affirmative a unit is, and which side of a pair it favours. A *verdict call*
is 1 or 0. A *directed call* is 1 where side a is favoured, -1 where side b is, else 0: by a pair
rubric's options, or, on responses, the verdict on side a minus that on side b.

The side that a grader favours is adjusted for the side that humans favour. A plain difference of
grader and humans would accuse any grader that merely errs more than humans do: where one side is
favoured more often, it misses more of that. So humans' own lean is scaled by how sharply the grader
sees what humans see, its *sharpness*,

    r = cov(grader, person) / cov(person, another person),

both over the units that two humans labelled. If a rater's errors depend only on the unit's latent
truth T, the expected call is q + s T; then cov(grader, person) = s_g s_p var(T), that of two humans
is s_p^2 var(T), r = s_g / s_p, and *lean of the grader - r x lean of humans* is 0 whatever
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
_SHARED_BY_TWO, _SHARED_BY_MANY = 20.0, 200.0
"""Weight, in units per stratum, of what all strata share: little where there are two strata, more
where strata are small steps along one line, such as a length. Chosen by `benchmarks/bias.py`."""
_MAX_SHARPNESS, _MAX_STRICTNESS, _STEPS, _TOLERANCE, _NUDGE = 4.0, 8.0, 40, 1e-6, 1e-5
_MAX_NOISE, _MAX_SPREAD = 1.0, 2.0
"""Bounds of log noise for each standard deviation of a property, and of log spread."""
_SHARPNESS_GRID = np.linspace(0.0, _MAX_SHARPNESS, 41)
_MIN_FITTING = 0.05
"""If no sharpness fits the data, nor this share of their resamples, chance does not explain it (a
one-sided test at 5%): the grader follows humans in more than what they agree on, or tau has another
distribution. The shift is then undefined. Where chance may explain it, the nearest sharpness is
used."""


@dataclass(frozen=True)
class StratumSums:
    """Sums over the units of every stratum, each (rows, strata).

    Over the units that the grader and a human labelled: their number `n`, the grader's calls, the
    mean human's calls, and the product of both. Over those that two humans labelled: the number,
    the mean human's calls and the product of two humans' calls; over those that three labelled: the
    number, the mean, the product of two and of three.
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
class ScoreDistribution:
    """Distribution of tau in every stratum, (rows, strata).

    `mean` and `variance` are its moments; Phi^-1(tau) is normal with mean `center` and standard
    deviation `sd`. The nodes `at` with their `weight`, (rows, strata, nodes), correct for the
    third moment. NaN in rows where humans agree no better than chance.
    """

    mean: Array
    variance: Array
    center: Array
    sd: Array
    at: Array
    weight: Array

    @classmethod
    def constant(cls, sums: StratumSums) -> ScoreDistribution:
        """Assume that all units of a stratum have the same tau: too few units have two labels."""
        mean = _person_mean(sums)
        zero, none = np.zeros_like(mean), np.zeros((*mean.shape, 0))
        return cls(mean, zero, ndtri(mean), zero, none, none)

    @classmethod
    def of(cls, sums: StratumSums, third: bool, noise: Noise | None = None) -> ScoreDistribution:
        """Fit the first two moments, or three if `third`; `noise` lets the spread vary."""
        mean = _person_mean(sums)
        shared = _SHARED_BY_TWO if mean.shape[1] <= 2 else _SHARED_BY_MANY
        variance = _variance(sums, mean, shared, noise)
        probit_mean = ndtri(mean)
        angle = _angle(probit_mean, variance)
        correlation = np.sin(angle)
        sd = np.sqrt(correlation / (1.0 - correlation))
        center = probit_mean * np.sqrt(1.0 + sd**2)
        if not third:
            none = np.zeros((*mean.shape, 0))
            return cls(mean, variance, center, sd, none, none)
        normal = _third_of_normal(probit_mean, angle)
        # The third moment of tau from units that three humans labelled, beyond the normal law's,
        # averaged with the value that all strata imply.
        m1, m2, m3 = (ratio(total, sums.n3) for total in (sums.person3, sums.two3, sums.three3))
        central = m3 - 3.0 * m1 * m2 + 2.0 * m1**3
        excess = central + 3.0 * mean * (variance + mean**2) - 2.0 * mean**3 - normal
        scale = variance**1.5
        pooled = ratio((sums.n3 * excess).sum(axis=1), (sums.n3 * scale).sum(axis=1))
        implied = pooled[:, None] * scale
        excess = (sums.n3 * excess + shared * implied) / (sums.n3 + shared)
        nodes = _four_nodes(mean, variance, normal)
        apart = nodes[..., :, None] - nodes[..., None, :] + np.eye(4)
        weight = excess[..., None] / apart.prod(axis=-1)  # of the third divided difference
        return cls(mean, variance, center, sd, ndtri(nodes), weight)


@dataclass(frozen=True)
class Noise:
    """Noise of all raters as exp(g x) of a property x, fitted to the annotators' calls.

    If quality spreads alike in all strata, Phi^-1(tau) has a standard deviation of exp(k - g x).
    `covariance` is that of two annotators' calls with this spread, `strictness` exp(-g x),
    proportional to strictness in units of noise; both (rows, strata). `rise` is g, (rows, 1).
    """

    covariance: Array
    strictness: Array
    rise: Array

    @classmethod
    def along(cls, sums: StratumSums, x: Array) -> Noise:
        """Fit k and g by weighted least squares (Gauss-Newton) to the covariances within strata.
        `x` is the property's mean in each stratum, (rows, strata).
        """
        mean, covariance = _person_mean(sums), _covariance(sums)
        probit_mean, weight = ndtri(mean), sums.n2 / (mean * (1.0 - mean)) ** 2
        total = weight.sum(axis=1)
        x = x - ratio((weight * x).sum(axis=1), total)[:, None]
        unit = np.sqrt(ratio((weight * x**2).sum(axis=1), total))[:, None]
        x = _divide(x, unit)
        k, g = np.zeros((2, len(x), 1))
        for step in range(_STEPS + 1):
            square = np.exp(2.0 * (k - g * x))
            correlation = square / (1.0 + square)
            fitted = _excess(probit_mean, ndtr(probit_mean), np.arcsin(correlation))
            if step == _STEPS:
                break
            # The slope of the covariance along the correlation (Plackett 1954), times 2 rho (1 -
            # rho), that of the correlation along k.
            slope = np.exp(-(probit_mean**2) / (1.0 + correlation)) / np.pi
            slope *= correlation * (1.0 - correlation) / np.sqrt(1.0 - correlation**2)
            kk, kx, xx = (_row_sums(weight * slope**2 * x**power) for power in (0, 1, 2))
            residual = weight * slope * (covariance - fitted)
            of_k, of_x = (_row_sums(residual * x**power) for power in (0, 1))
            det = kk * xx - kx**2
            to_k, to_g = _divide(xx * of_k - kx * of_x, det), _divide(kx * of_k - kk * of_x, det)
            k = np.clip(k + np.clip(to_k, -0.5, 0.5), -_MAX_SPREAD, _MAX_SPREAD)
            g = np.clip(g + np.clip(to_g, -0.5, 0.5), -_MAX_NOISE, _MAX_NOISE)
            if not ((np.abs(to_k) > _TOLERANCE) | (np.abs(to_g) > _TOLERANCE)).any():
                break
        return cls(fitted, np.exp(-g * x), _divide(g, unit))


@dataclass(frozen=True)
class ExcessCalls:
    """Excess of the grader's calls over the expected calls, each (rows, strata).

    `share` is the share of affirmative calls minus the expected one, `rise` the slope of expected
    calls on humans' score within a stratum, `strict` their slope on the logarithm of strictness, if
    that changes with noise. `fits` is False if no sharpness fits the data.
    """

    share: Array
    rise: Array
    strict: Array | None
    fits: bool


def excess_calls(
    sums: StratumSums, people: ScoreDistribution, *, free: bool, noise: Noise | None = None
) -> ExcessCalls:
    """Compare calls with expected calls by stratum; both have the same mean over all strata. If not
    `free`, sharpness is that of humans. With `noise`, strictness changes with it. NaN in rows that
    have no solution, and in all rows if no sharpness fits the data.
    """
    share = ratio(sums.grader, sums.n)
    shares = ratio(sums.n, sums.n.sum(axis=1, keepdims=True))
    with_people = ratio(sums.both, sums.n) - share * people.mean
    mean, covariance = ((shares * part).sum(axis=1) for part in (share, with_people))
    strictness = np.ones_like(shares) if noise is None else noise.strictness
    curves = _Curves.of_people(people, shares, strictness, mean, covariance)
    if free:
        a, b, fits = curves.fitted()
    else:
        b, fits = np.ones(len(shares)), np.ones(len(shares), dtype=bool)
        a = curves.strictness(b, np.zeros(len(shares)))
    constant = (mean < 1e-9) | (mean > 1.0 - 1e-9)
    fits |= constant
    if not (fits[0] or fits.mean() >= _MIN_FITTING):
        undefined = np.full(shares.shape, np.nan)
        return ExcessCalls(undefined, undefined, undefined, fits=False)
    at = curves.at(a, b)
    expected, covariances = at.mean.T, at.covariance.T
    strict = None
    if noise is not None:
        strict = (curves.at(a * (1.0 + _NUDGE), b).mean.T - expected) / _NUDGE
    # 0 where all units of a stratum have the same tau.
    rise = np.nan_to_num(ratio(covariances, people.variance))
    solved = np.abs((shares * (share - expected)).sum(axis=1)) < 1e-3
    excess = np.where(solved[:, None], share - expected, np.nan)
    return ExcessCalls(np.where(constant[:, None], 0.0, excess), rise, strict, fits=True)


@dataclass(frozen=True)
class _Curves:
    """Expected answers of a grader as a function of its strictness and sharpness.

    Arrays are those of `ScoreDistribution` with the rows last, so that numpy sums long lines:
    (strata, rows), `at_nodes` and `weight` (strata, nodes, rows). `deviation` is tau at the nodes
    minus its mean, `shares` are the strata's shares of the units, `relative` their strictness as a
    multiple of `a`. `mean` and `covariance` (rows,) are the grader's, the second with humans.
    """

    shares: Array
    relative: Array
    center: Array
    sd: Array
    at_nodes: Array
    weight: Array
    deviation: Array
    mean: Array
    covariance: Array

    @classmethod
    def of_people(
        cls, people: ScoreDistribution, shares: Array, relative: Array, *grader: Array
    ) -> _Curves:
        """Build from the distribution of tau and the `grader`'s mean and covariance; all arrays
        come with the rows first.
        """
        deviation = ndtr(people.at) - people.mean[..., None]
        arrays = (shares, relative, people.center, people.sd, people.at, people.weight, deviation)
        rows_last = (np.ascontiguousarray(np.moveaxis(array, 0, -1)) for array in arrays)
        return cls(*rows_last, *grader)

    def of(self, rows: Codes) -> _Curves:
        """Select some rows, which may repeat."""
        return _Curves(*(total.take(rows, axis=-1) for total in vars(self).values()))

    def at(self, a: Array, b: Array) -> _Expected:
        """Return the expected answers at a strictness and a sharpness, each (rows,)."""
        center, square, strict = self.center, self.sd**2, self.relative * a
        s2, own = 1.0 + b**2 * square, 1.0 + square
        s, root, nodes = np.sqrt(s2), np.sqrt(own), strict[:, None] + b * self.at_nodes
        return _Expected(
            curves=self, extra=self.weight * ndtr(nodes), steep=self.weight * _density(nodes),
            probit=(strict + b * center) / s, people=center / root, rho=b * square / (s * root),
            conditional_sd=np.sqrt((own + b**2 * square) / (s2 * own)), probit_by_a=1.0 / s,
            probit_by_b=(center - strict * b * square) / (s * s2),
            rho_by_b=square / (root * s * s2),
        )  # fmt: skip

    def fitted(self) -> tuple[Array, Array, Mask]:
        """Return strictness and sharpness (rows,), and True where they match both moments (rows,).

        The covariance rises with sharpness up to a maximum. A grader whose covariance is below 0 is
        taken as a guesser, of sharpness 0; where it is above the maximum, the maximum is taken.
        """
        a, b = np.full((2, len(self.mean)), np.nan)
        fits = np.ones(len(self.mean), dtype=bool)
        guesses = self.covariance <= 0.0
        start, b[guesses] = ndtri(self.mean[guesses]), 0.0
        start = np.clip(start, -_MAX_STRICTNESS, _MAX_STRICTNESS)
        a[guesses] = self.of(np.flatnonzero(guesses)).strictness(b[guesses], start)
        # The data, row 0, along a grid of sharpness.
        data = self.of(np.zeros(len(_SHARPNESS_GRID), dtype=np.intp))
        strict = data.strictness(_SHARPNESS_GRID, np.zeros(len(_SHARPNESS_GRID)))
        residual, covariance = data.at(strict, _SHARPNESS_GRID).residuals()
        # With the third moment's correction, Newton's steps may not converge.
        covariance[np.abs(residual) > _TOLERANCE] = np.nan
        crossed = np.flatnonzero((covariance[:-1] < 0.0) & (covariance[1:] >= 0.0))
        if len(crossed) and not guesses[0]:
            # Resamples end near the data.
            first = self.of(np.zeros(1, dtype=np.intp))._solve(
                strict[crossed[:1]], _SHARPNESS_GRID[crossed[:1]]
            )
            rows = np.flatnonzero(~guesses)
            a[rows], b[rows] = self.of(rows)._solve(*(np.repeat(at, len(rows)) for at in first))
        rows = np.flatnonzero(np.isnan(b))
        if len(rows):
            curves, top = self.of(rows), int(np.nan_to_num(covariance, nan=-np.inf).argmax())
            highest = (np.full(len(rows), column[top]) for column in (strict, _SHARPNESS_GRID))
            a[rows], b[rows] = curves._maximum(*highest)
            low = np.flatnonzero(curves.at(a[rows], b[rows]).residuals()[1] >= 0.0)
            # From below, where the covariance rises fastest, no step leads beyond the maximum.
            half, curves = b[rows[low]] / 2.0, curves.of(low)
            solution = curves._solve(curves.strictness(half, a[rows[low]]), half)
            solved = ~np.isnan(solution[1])
            a[rows[low[solved]]], b[rows[low[solved]]] = (array[solved] for array in solution)
            fits[np.delete(rows, low)] = False
        return a, b, fits

    def _solve(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Match both moments by Newton's method from `a` and `b`; NaN if it does not converge."""
        a, b, active, curves = a.copy(), b.copy(), np.arange(len(a)), self
        solved_a, solved_b = np.full((2, len(a)), np.nan)
        for _ in range(_STEPS):
            if not len(active):
                break
            at = curves.at(a, b)
            mean_residual, cov_residual = at.residuals()
            (mean_by_a, mean_by_b), (cov_by_a, cov_by_b) = at.slopes()
            det = mean_by_a * cov_by_b - mean_by_b * cov_by_a
            to_a = _divide(cov_by_b * mean_residual - mean_by_b * cov_residual, det)
            to_b = _divide(mean_by_a * cov_residual - cov_by_a * mean_residual, det)
            a, b = a - np.clip(to_a, -0.7, 0.7), b - np.clip(to_b, -0.5, 0.5)
            # Where the covariance falls with sharpness, its maximum has been passed.
            inside = (
                (det > 0.0) & (b >= 0.0) & (b <= _MAX_SHARPNESS) & (np.abs(a) <= _MAX_STRICTNESS)
            )
            close = np.maximum(np.abs(to_a), np.abs(to_b)) <= _TOLERANCE
            done = inside & close
            solved_a[active[done]], solved_b[active[done]] = a[done], b[done]
            left = np.flatnonzero(inside & ~close)
            if len(left) < len(active):
                active, curves, a, b = active[left], curves.of(left), a[left], b[left]
        return solved_a, solved_b

    def _maximum(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return strictness and sharpness at which the covariance is at its maximum, with the
        grader's mean matched, by Newton's method: its slope along sharpness is 0. It is at the
        largest sharpness if the covariance rises up to there, at the start if there is no
        convergence.
        """
        start, best_b = b, b.copy()
        best_a, active, curves = a.copy(), np.arange(len(a)), self
        for _ in range(_STEPS):
            if not len(active):
                break
            at = curves.at(a, b)
            residual = at.mean_residual()
            mean_by_a, mean_by_b, det = at.turning_point()
            det_by_a = (curves.at(a + _NUDGE, b).turning_point()[2] - det) / _NUDGE
            det_by_b = (curves.at(a, b + _NUDGE).turning_point()[2] - det) / _NUDGE
            jacobian = mean_by_a * det_by_b - mean_by_b * det_by_a
            to_a = _divide(det_by_b * residual - mean_by_b * det, jacobian)
            to_b = _divide(mean_by_a * det - det_by_a * residual, jacobian)
            # At a maximum, unlike a minimum, the slope falls with sharpness.
            falls = jacobian < 0.0
            to_b = np.where(falls, to_b, -0.25 * np.sign(det))
            to_a = np.where(falls, to_a, _divide(residual - mean_by_b * to_b, mean_by_a))
            a, b = a - np.clip(to_a, -0.7, 0.7), b - np.clip(to_b, -0.5, 0.5)
            close = np.maximum(np.abs(to_a), np.abs(to_b)) <= _TOLERANCE
            inside = (b > 0.0) & (b < _MAX_SHARPNESS) & (np.abs(a) <= _MAX_STRICTNESS)
            done = close & falls & inside
            best_b[active[done]] = b[done]
            best_a[active[done]] = a[done]
            best_b[active[b >= _MAX_SHARPNESS]] = _MAX_SHARPNESS
            left = np.flatnonzero(inside & ~done)
            if len(left) < len(active):
                active, curves, a, b = active[left], curves.of(left), a[left], b[left]
        ended = np.flatnonzero((best_b == start) | (best_b == _MAX_SHARPNESS))
        best_a[ended] = self.of(ended).strictness(best_b[ended], best_a[ended])
        return best_a, best_b

    def strictness(self, b: Array, a: Array) -> Array:
        """Return the strictness that matches the mean at sharpness `b`, by Newton from `a`."""
        root, active, curves = a.copy(), np.arange(len(b)), self
        for _ in range(_STEPS):
            at = curves.at(root[active], b[active])
            step = _divide(at.mean_residual(), at.slope_of_mean())
            root[active] = np.clip(
                root[active] - np.clip(step, -0.7, 0.7), -_MAX_STRICTNESS, _MAX_STRICTNESS
            )
            if not len(left := np.flatnonzero(np.abs(step) > _TOLERANCE)):
                break
            if len(left) < len(active):
                active, curves = active[left], curves.of(left)
        return root


@dataclass(frozen=True)
class _Expected:
    """Expected answers at one strictness and sharpness of every row.

    Closed form for a normal Phi^-1(tau): the mean expected is Phi(probit), that of its product with
    tau the chance that two normal variables of correlation rho lie below `probit` and `people`; all
    (strata, rows). `conditional_sd` is sqrt(1 - rho^2). The nodes add `extra`, of slope `steep` in
    strictness (strata, nodes, rows).
    """

    curves: _Curves
    extra: Array
    steep: Array
    probit: Array
    people: Array
    rho: Array
    conditional_sd: Array
    probit_by_a: Array
    probit_by_b: Array
    rho_by_b: Array

    @property
    def mean(self) -> Array:
        """The expected mean, (strata, rows)."""
        return np.asarray(ndtr(self.probit) + self.extra.sum(axis=1))

    @property
    def covariance(self) -> Array:
        """Its covariance with people's score, (strata, rows), by Owen (1956)."""
        h, k = _nonzero(self.probit), _nonzero(self.people)
        below, of_people = ndtr(h), ndtr(k)
        both = 0.5 * (below + of_people) - 0.5 * (h * k < 0.0)
        both -= owens_t(h, (k / h - self.rho) / self.conditional_sd)
        both -= owens_t(k, (h / k - self.rho) / self.conditional_sd)
        return np.asarray(both - below * of_people + self._with_people(self.extra))

    def residuals(self) -> tuple[Array, Array]:
        """Return the expected mean and covariance minus the grader's, each (rows,)."""
        return self.mean_residual(), self._overall(self.covariance) - self.curves.covariance

    def mean_residual(self) -> Array:
        """Return the expected mean minus the grader's, (rows,)."""
        return self._overall(self.mean) - self.curves.mean

    def slope_of_mean(self) -> Array:
        """Return the slope of the mean along strictness, (rows,)."""
        normal = _density(self.probit) * self.probit_by_a
        return self._overall(self.curves.relative * (normal + self.steep.sum(axis=1)))

    def slopes(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return the slopes (rows,) of mean and covariance, each along strictness and sharpness."""
        h, k = self.probit, self.people
        density, conditional = _density(h), (k - self.rho * h) / self.conditional_sd
        by_probit = density * (ndtr(conditional) - ndtr(k))
        by_rho = density * _density(conditional) / self.conditional_sd
        along = self.steep * self.curves.at_nodes
        covariance_a = by_probit * self.probit_by_a + self._with_people(self.steep)
        mean_b = density * self.probit_by_b + along.sum(axis=1)
        covariance_b = by_probit * self.probit_by_b + by_rho * self.rho_by_b
        covariance_b = covariance_b + self._with_people(along)
        of_mean = self.slope_of_mean(), self._overall(mean_b)
        covariance_a = self.curves.relative * covariance_a
        return of_mean, (self._overall(covariance_a), self._overall(covariance_b))

    def turning_point(self) -> tuple[Array, Array, Array]:
        """Return the mean's slopes, and the determinant of all: 0 at the covariance's maximum."""
        (mean_by_a, mean_by_b), (cov_by_a, cov_by_b) = self.slopes()
        return mean_by_a, mean_by_b, mean_by_a * cov_by_b - mean_by_b * cov_by_a

    def _with_people(self, at_nodes: Array) -> Array:
        """Return the covariance of answers at the nodes with people's score, (strata, rows)."""
        return np.asarray(np.einsum("snr,snr->sr", at_nodes, self.curves.deviation))

    def _overall(self, by_stratum: Array) -> Array:
        """Sum over strata, weighted by their shares: (strata, rows) to (rows,)."""
        return np.asarray((self.curves.shares * by_stratum).sum(axis=0))


def _density(z: Array) -> Array:
    """Standard normal density."""
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))


def _divide(part: Array, whole: Array) -> Array:
    """Divide, by 1e-9 instead of about 0."""
    return np.asarray(part / _nonzero(whole))


def _nonzero(values: Array) -> Array:
    return np.where(np.abs(values) < 1e-9, 1e-9, values)


def _person_mean(sums: StratumSums) -> Array:
    """Return the mean human's share, at least half a unit of the sample from 0 and 1."""
    least = 0.5 / (sums.n.sum(axis=1, keepdims=True) + 1.0)
    return np.clip(ratio(sums.person, sums.n), least, 1.0 - least)


def _covariance(sums: StratumSums) -> Array:
    """Covariance of two humans' calls within each stratum, (rows, strata)."""
    mean = np.nan_to_num(ratio(sums.person2, sums.n2))
    return np.asarray(np.nan_to_num(ratio(sums.two2, sums.n2)) - mean**2)


def _row_sums(values: Array) -> Array:
    return np.asarray(values.sum(axis=1, keepdims=True))


def _variance(sums: StratumSums, mean: Array, shared: float, noise: Noise | None) -> Array:
    """Estimate the variance of tau, (rows, strata): the covariance of two humans' calls within a
    stratum, averaged with the value implied by all strata, which counts as `shared` units.
    """
    p, covariance = np.nan_to_num(ratio(sums.person2, sums.n2)), _covariance(sums)
    of_all = ratio((sums.n2 * covariance).sum(axis=1), (sums.n2 * p * (1.0 - p)).sum(axis=1))
    of_all = np.where(of_all > 0, of_all, np.nan)[:, None]
    implied = of_all * mean * (1.0 - mean)
    if noise is not None:
        implied = np.where(np.isnan(of_all), np.nan, noise.covariance)
    mixed = (sums.n2 * covariance + shared * implied) / (sums.n2 + shared)
    return np.clip(mixed, 0.01 * mean * (1.0 - mean), 0.97 * mean * (1.0 - mean))


def _angle(place: Array, excess: Array) -> Array:
    """Return the arcsine of the correlation at which two standard normal variables are both below
    `place` by `excess` more often than independent ones, by Newton's method.
    """
    below, square = ndtr(place), place**2
    angle = np.full(place.shape, 0.5)
    for _ in range(30):
        off = _excess(place, below, angle) - excess
        step = np.clip(off * 2.0 * np.pi * np.exp(square / (1.0 + np.sin(angle))), -0.5, 0.5)
        angle = np.clip(angle - step, 1e-4, 1.55)
        if not (np.abs(step) > _TOLERANCE).any():
            break
    return angle


def _excess(place: Array, below: Array, angle: Array) -> Array:
    """Return the excess of `_angle` at an angle (Owen 1956); `below` is Phi(place)."""
    return np.asarray(below - 2.0 * owens_t(place, np.tan(np.pi / 4.0 - angle / 2.0)) - below**2)


def _third_of_normal(place: Array, angle: Array) -> Array:
    """Return the third moment of tau if Phi^-1(tau) is normal: the chance that three such variables
    are below `place`, by Plackett's (1954) integral over the correlation.
    """
    total = np.zeros_like(place)
    for theta, part in zip(_THETAS, _THETA_WEIGHTS, strict=True):
        r = np.sin(theta * angle)
        third = ndtr(place * np.sqrt((1.0 - r) / ((1.0 + r) * (1.0 + 2.0 * r))))
        total += part * np.exp(-(place**2) / (1.0 + r)) * third
    return np.asarray(ndtr(place) ** 3 + 3.0 * angle * total / (2.0 * np.pi))


def _four_nodes(mean: Array, variance: Array, third: Array) -> Array:
    """Return four nodes (rows, strata, 4), two around each point of the two-point Gauss rule."""
    skew = (third - 3.0 * mean * variance - mean**3) / variance**1.5
    half = np.sqrt(1.0 + skew**2 / 4.0)
    low = np.clip(mean + np.sqrt(variance) * (skew / 2.0 - half), 1e-3, 1.0)
    high = np.clip(mean + np.sqrt(variance) * (skew / 2.0 + half), 0.0, 1.0 - 1e-3)
    step = 0.1 * (high - low)
    below, above = np.minimum(step, low / 2.0), np.minimum(step, (1.0 - high) / 2.0)
    return np.stack([low - below, low + step, high - step, high + above], axis=-1)


# Calls, and their shifts


@dataclass(frozen=True)
class Calls:
    """Calls `values` (units, raters), NaN for none, with each unit's cluster and subject. `unit`
    (units,) is the unit's row in the label matrix; `subset` is that of results on all calls.
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
        return tuple(column for column, kind in enumerate(self.kinds) if kind == "model")

    @property
    def people(self) -> Array:
        """The humans' calls (units, humans)."""
        return self.values[:, [kind == "human" for kind in self.kinds]]

    def oriented(self, sign: Array) -> Calls:
        """Swap the sides of directed calls where `sign` (units,) is -1; no call where it is 0."""
        return replace(self, values=self.values * np.where(sign == 0, np.nan, sign)[:, None])

    def without_graders_but(self, grader: str) -> Calls:
        """Return the calls of humans and this grader."""
        raters = enumerate(zip(self.raters, self.kinds, strict=True))
        columns = [n for n, (name, kind) in raters if name == grader or kind != "model"]
        names, kinds = (tuple(values[n] for n in columns) for values in (self.raters, self.kinds))
        return replace(self, raters=names, kinds=kinds, values=self.values[:, columns])

    def part(self, name: str) -> str:
        """Return the `subset` of results on a part of the units."""
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
    """Return calls with the raters, clusters and subjects of `labels`."""
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
    """Estimate a grader's mean call minus r times that of humans on their common units, if any."""
    people, called = calls.people, calls.values[:, grader]
    has_call = ~np.isnan(people)
    n_people = has_call.sum(axis=1)
    shared = (n_people > 0) & ~np.isnan(called)
    if not shared.any():
        return None
    total, squares = (np.where(has_call, power, 0.0).sum(axis=1) for power in (people, people**2))
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
    # Where humans favour neither side, the grader's sharpness does not matter.
    lean = np.where(sp == 0, 0.0, sharpness * ratio(sp, n))
    reason = "people_agree_by_chance" if np.isnan(sharpness[0]) else "no_variation"
    return Shift(ratio(sg, n) - lean, resamples.count(calls.clusters, shared), note, reason)


class Shifts:
    """Shift of graders' calls with a property x (units,), NaN where unknown, beyond expected calls.

    The shift is the least squares slope of calls minus expected calls on x, which for x of 0 and 1
    is a difference. Within a part expected calls are linear in those of humans. A call of more than
    two values is split into steps, *at least 0* and *at least 1*.

    `noisy` allows for noise of all raters that changes with x: people's spread may change, and the
    shift is estimated a second time with strictness in units of that noise. `called` keeps people's
    calls on the units that a grader called, mostly the same for all, and may be shared on these
    resamples.
    """

    def __init__(
        self,
        calls: Calls,
        x: Array,
        resamples: Resamples,
        *,
        noisy: bool = False,
        called: dict[tuple[bytes | bool, ...], PeopleCalls] | None = None,
    ) -> None:
        self.calls, self.x, self.resamples, self.noisy = calls, x, resamples, noisy
        self.steps = np.unique(calls.values[~np.isnan(calls.values)])[1:]
        self._called = {} if called is None else called
        arrays = (calls.people, calls.clusters, x, self.steps)
        self._key: tuple[bytes | bool, ...] = (noisy, *(array.tobytes() for array in arrays))

    def of(self, grader: int) -> Shift | None:
        """Estimate the shift of one grader; None without a unit that it and a human called."""
        graded, by_people = self.calls.values[:, grader], ~np.isnan(self.calls.people).all(axis=1)
        shared = ~np.isnan(graded) & by_people & ~np.isnan(self.x)
        if not shared.any():
            return None
        key = (*self._key, shared.tobytes())
        people = self._called[key] = self._called.get(key) or PeopleCalls(self, shared)
        noise_options = [False, True] if self.noisy and people.has_pairs else [False]
        totals = np.zeros((len(noise_options), len(self.resamples)))
        reason = "no_variation"
        for step, people_step in zip(self.steps, people.steps, strict=True):
            for total, noisy in zip(totals, noise_options, strict=True):
                slope, fits = people.excess_slope(graded[shared] >= step, people_step, noisy=noisy)
                if people.n_parts > 1 and np.isnan(people_step.law.variance[0]).any():
                    reason = "people_agree_by_chance"
                elif not fits:
                    reason = "no_sharpness_fits"
                total += slope
        note = "" if people.has_pairs else NOT_SCALED
        counts = self.resamples.count(self.calls.clusters, shared)
        return Shift(totals[0], counts, note, reason, totals[1] if len(totals) > 1 else None)


class _Step(NamedTuple):
    """Humans' calls at or above one step: their `mean` on each unit (units,), their part of
    `StratumSums`, the sum of their products with x (`placed`), the distribution of tau (`law`), and
    the `noise` of all raters along x, if that may change.
    """

    mean: Array
    sums: dict[str, Array]
    placed: Array
    law: ScoreDistribution
    noise: Noise | None


class PeopleCalls:
    """Calls of people on units that a grader called, by part of x; sums are (rows, parts)."""

    def __init__(self, shifts: Shifts, shared: Mask) -> None:
        people, x = shifts.calls.people[shared], shifts.x[shared]
        self._x, self._in_part = x, divide(x)
        self._clusters, self._resamples = shifts.calls.clusters[shared], shifts.resamples
        has_two, has_three = (np.count_nonzero(~np.isnan(people), axis=1) >= n for n in (2, 3))
        self.n_parts = self._in_part.shape[1]
        self.has_pairs = bool(has_two.sum() >= MIN_TWICE)
        third = bool((has_three[:, None] & self._in_part).sum(axis=0).min() >= MIN_TWICE)
        self._n, sx, sxx = self._sums(np.ones(len(x)), x, x**2)
        self._mean = ratio(sx, self._n)
        whole = ratio(sx.sum(axis=1), self._n.sum(axis=1))
        self._distance = self._mean - whole[:, None]
        self._within = sxx - sx * self._mean
        self._spread = (self._n * self._distance**2 + self._within).sum(axis=1)
        self.steps = []
        for step in shifts.steps:
            products = _call_products(np.where(np.isnan(people), np.nan, people >= step))
            totals = self._sums(*products.values(), products["person"] * x)
            sums = {"n": self._n, **dict(zip(products, totals[:-1], strict=True))}
            without_grader = StratumSums(grader=self._n, both=self._n, **sums)
            noise, law = None, ScoreDistribution.constant(without_grader)
            if self.has_pairs:
                noise = Noise.along(without_grader, self._mean) if shifts.noisy else None
                law = ScoreDistribution.of(without_grader, third, noise)
            self.steps.append(_Step(products["person"], sums, totals[-1], law, noise))

    def excess_slope(self, calls: Mask, step: _Step, *, noisy: bool) -> tuple[Array, bool]:
        """Return the slope on x of a grader's `calls` of 1 and 0 minus expected calls, (rows,), and
        False if no sharpness fits them. If `noisy`, strictness changes with all raters' noise.
        """
        grader, both, placed = self._sums(calls, calls * step.mean, calls * self._x)
        sums = StratumSums(grader=grader, both=both, **step.sums)
        noise = step.noise if noisy else None
        excess = excess_calls(sums, step.law, free=self.has_pairs, noise=noise)
        within = placed - self._mean * grader
        within -= excess.rise * (step.placed - self._mean * step.sums["person"])
        if noise is not None and excess.strict is not None:
            within += noise.rise * excess.strict * self._within
        between = (self._n * self._distance * excess.share).sum(axis=1)
        return ratio(between + within.sum(axis=1), self._spread), excess.fits

    def _sums(self, *columns: Numbers) -> Array:
        """Sum columns (units,) within each part, (columns, rows, parts)."""
        by_part = np.column_stack(columns)[:, :, None] * self._in_part[:, None, :]
        sums = self._resamples.sums(self._clusters, by_part.reshape(len(by_part), -1))
        return np.moveaxis(sums.reshape(len(sums), len(columns), -1), 1, 0)


def divide(x: Array) -> Mask:
    """Divide values into parts, (units, parts): one for each value where there are few."""
    values = np.unique(x)
    if len(values) > PARTS:
        limits = np.unique(np.quantile(x, np.arange(1, PARTS) / PARTS))
        codes = np.searchsorted(limits, x)
        return np.asarray(codes[:, None] == np.unique(codes))
    return np.asarray(x[:, None] == values)


def _call_products(people: Array) -> dict[str, Array]:
    """Return the products of people's calls of 1 and 0 that `StratumSums` sums, each (units,). Each
    person's leniency is subtracted, so that it is not taken for a difference between units.
    """
    has_call = ~np.isnan(people)
    k = has_call.sum(axis=1).astype(float)
    # A person's leniency is the share of affirmations above the mean on the same units; 0 for one
    # who shares fewer than 30 units with others.
    twice, leniency = people[k >= 2], np.zeros(people.shape[1])
    if len(twice):
        shared = (~np.isnan(twice)).sum(axis=0)
        # The mean over a unit's people includes the person: rescaled to the mean over all people.
        scale = k[k >= 2] / (k[k >= 2] - 1.0) * (1.0 - 1.0 / people.shape[1])
        apart = (twice - np.nanmean(twice, axis=1, keepdims=True)) * scale[:, None]
        mean_apart = np.nansum(apart, axis=0) / np.maximum(shared, 1)
        leniency = np.where(shared >= MIN_TWICE, mean_apart, 0.0)
    calls = np.where(has_call, people - leniency, 0.0)
    first, second, third = (np.asarray((calls**power).sum(axis=1)) for power in (1, 2, 3))
    mean = first / k
    two = np.nan_to_num(ratio(first**2 - second, k * (k - 1.0)))
    three = ratio(first**3 - 3.0 * first * second + 2.0 * third, k * (k - 1.0) * (k - 2.0))
    n2, n3 = (k >= 2).astype(float), (k >= 3).astype(float)
    of_two = {"n2": n2, "person2": n2 * mean, "two2": two}
    of_three = {"n3": n3, "person3": n3 * mean, "two3": n3 * two, "three3": np.nan_to_num(three)}
    return {"person": mean, **of_two, **of_three}
