"""Shift of a grader's calls with a property, beyond what humans' score of the units explains.

A *call* is a label as a number. A *verdict call* is 1 for an affirmative label, else 0. A *directed
call* is 1 if side a of a pair is favoured, -1 if side b is, else 0: by a pair rubric's options, or,
on single responses, the verdict on side a minus the verdict on side b.

The first half of the module leads from sums of humans' calls (`HumanSums`) to the distribution of
their score (`ScoreDistribution`), to the calls expected of a grader (`_Curves`) and to the excess
of its calls over these (`excess_calls`). The second half computes shifts from `Calls`: `side_shift`
for the side of a pair that a grader favours, `Shifts.of` for any property.

*Shift towards a side.* The grader's mean call is compared with the humans' mean call. Their plain
difference would show a bias of any grader that errs more than humans: if one side is favoured more
often, the grader misses more of the calls for that side. So the humans' mean call is multiplied by
the grader's *sharpness*,

    r = cov(grader, human) / cov(human, another human),

both over the units that two humans labelled. If a rater's errors depend only on the unit's latent
truth T, the expected call is q + s T. Then cov(grader, human) = s_g s_h var(T), the covariance of
two humans is s_h^2 var(T), and r = s_g / s_h. The grader's mean call minus r times that of humans
is then 0 for any s_g: for a grader exchangeable with humans (r = 1), for one that guesses (r = 0),
and in between. This is Spearman's (1904) correction for attenuation, applied to a slope.

*Shift with any property.* The sample is divided into strata by a property that should not matter,
such as a model's family, a part of the sample, or fifths of the length. In each stratum the share
of the grader's affirmative calls is compared with the share expected of a grader without bias.

Strictness is not bias: a stricter grader loses fewer affirmative calls where responses are good
than where they are mediocre. Low sharpness is not bias either: such a grader finds smaller
differences everywhere. So the question is whether calls shift with the property among units with
the same score by humans: differential item functioning (Holland & Thayer 1988; Zumbo 1999).

The score of a unit is tau, the share of humans who would affirm it, and its *probit* Phi^-1(tau). A
grader without bias affirms the unit with the probability

    Phi(a + b Phi^-1(tau)),

where `a` is the grader's strictness and `b` its sharpness; both are estimated. tau is not observed,
and conditioning on a few labels instead leaves much of the confounding (Shealy & Stout 1993). But
products of the labels of *different* humans are unbiased for powers of tau (Hausman, Newey,
Ichimura & Powell 1991), so the labels of a stratum identify the moments of tau. Labels of two
humans give its mean and variance. The probit is assumed to be normal with these moments, and the
expected calls have a closed form (Owen 1956). Labels of three humans also give the third moment.
Its difference from that of the normal distribution, times the third divided difference of a
function of tau at four nodes, corrects the function's mean; this is exact for cubics. `a` and `b`
give the expected calls the grader's mean call and its covariance with humans within strata.

`a` is the same in all strata if raters' noise is. If labels of long texts are noisier for every
rater, a strict grader's `a`, in units of that noise, shrinks with the length, which looks like a
bias. The standard deviation of the probit shrinks likewise (`Noise`). But it also shrinks if the
quality of long texts varies less. Labels cannot tell, so the shift is estimated in both cases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.encoding import units_of_both_sides
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL, LabelMatrix, favour_signs
from evenhand.analysis.statistics import Note, Remark
from evenhand.analysis.types import Array, Codes, Mask, Numbers

MIN_TWICE = 30  # fewest units with labels of two humans to estimate sharpness; else it is set to 1
SHARPNESS_ASSUMED = Remark("sharpness_assumed", (MIN_TWICE,))
STRATA = 5  # strata of about equal size, for a property with many values, such as a length
_STEPS, _ANGLE_STEPS, _TOLERANCE, _NUDGE = 40, 30, 1e-6, 1e-5
"""Newton's method: largest numbers of steps, precision, increment for numerical derivatives."""


def _density(z: Array) -> Array:
    """Return the standard normal density."""
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))


def _nonzero(values: Array) -> Array:
    """Return the values, with 1e-9 in place of those nearer to 0."""
    return np.where(np.abs(values) < 1e-9, 1e-9, values)


def _divide(numerator: Array, denominator: Array) -> Array:
    """Return the quotient, with denominators near 0 replaced (`_nonzero`)."""
    return np.asarray(numerator / _nonzero(denominator))


def _solution(first: tuple[Array, ...], second: tuple[Array, ...]) -> tuple[Array, ...]:
    """Solve two linear equations in x and y, each given as its coefficients of x and y and its
    right-hand side, by Cramer's rule: return x, y and the determinant.
    """
    (x1, y1, right1), (x2, y2, right2) = first, second
    det = x1 * y2 - y1 * x2
    return _divide(y2 * right1 - y1 * right2, det), _divide(x1 * right2 - x2 * right1, det), det


# ---- Humans' score of units, by stratum ----------------------------------------------------------
class HumanSums(NamedTuple):
    """Sums over the units of every stratum that the grader and a human labelled, each (rows,
    strata): row 0 is the data, the others are resamples.

    The digit is the smallest number of humans who labelled the units that are summed over. `n` is
    the number of these units, `one` sums the mean of humans' calls on each, `two` and `three` the
    mean product of the calls of two and three different humans.
    """

    n1: Array
    one1: Array
    n2: Array
    one2: Array
    two2: Array
    n3: Array
    one3: Array
    two3: Array
    three3: Array

    @property
    def human_mean(self) -> Array:
        """Mean share of humans' affirmative calls, kept half a unit away from 0 and 1."""
        least = 0.5 / (self.n1.sum(axis=1, keepdims=True) + 1.0)
        return np.clip(ratio(self.one1, self.n1), least, 1.0 - least)

    @property
    def human_covariance(self) -> Array:
        """Covariance of two humans' calls within each stratum; 0 without units of two humans."""
        mean = np.nan_to_num(ratio(self.one2, self.n2))
        return np.asarray(np.nan_to_num(ratio(self.two2, self.n2)) - mean**2)


def _covariance_at(z: Array, mean: Array, angle: Array) -> Array:
    """Return the covariance of two humans' calls in a stratum (Owen 1956).

    A human affirms a unit if the probit plus an error with the variance 1 is above 0. Over units,
    this sum is normal; `z` is its mean in standard deviations, so that the mean call, `mean`, is
    Phi(z). Two humans' sums have the probit in common. If sd is its standard deviation, their
    correlation is sd^2 / (1 + sd^2), the arcsine of which is `angle`.
    """
    return np.asarray(mean - 2.0 * owens_t(z, np.tan(np.pi / 4.0 - angle / 2.0)) - mean**2)


def _angle(z: Array, covariance: Array) -> Array:
    """Return the angle at which calls have this covariance, by Newton's method."""
    mean, square = ndtr(z), z**2
    angle = np.full(z.shape, 0.5)
    for _ in range(_ANGLE_STEPS):
        residual = covariance - _covariance_at(z, mean, angle)
        # Divided by the slope at this angle, exp(-z^2 / (1 + rho)) / (2 pi) (Plackett 1954).
        step = np.clip(residual * 2.0 * np.pi * np.exp(square / (1.0 + np.sin(angle))), -0.5, 0.5)
        angle = np.clip(angle + step, 1e-4, 1.55)  # correlations from 0 to 1
        if not (np.abs(step) > _TOLERANCE).any():
            break
    return angle


_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)  # of an integral from -1 to 1
_THETAS, _THETA_WEIGHTS = _NODES / 2.0 + 0.5, _NODE_WEIGHTS / 2.0  # of one from 0 to 1


def _third_of_normal(z: Array, angle: Array) -> Array:
    """Return the third moment of tau if the probit is normal: the probability that three humans
    affirm, by Plackett's (1954) integral over their correlation; arguments as in `_covariance_at`.
    """
    integral = np.zeros_like(z)
    for theta, weight in zip(_THETAS, _THETA_WEIGHTS, strict=True):
        rho = np.sin(theta * angle)
        third_affirms = ndtr(z * np.sqrt((1.0 - rho) / ((1.0 + rho) * (1.0 + 2.0 * rho))))
        integral += weight * np.exp(-(z**2) / (1.0 + rho)) * third_affirms
    return np.asarray(ndtr(z) ** 3 + 3.0 * angle * integral / (2.0 * np.pi))


def _four_nodes(mean: Array, variance: Array, third: Array) -> Array:
    """Return four values of tau, (rows, strata, 4): two around each point of the two-point Gauss
    rule with this mean, variance and third moment.
    """
    skew = (third - 3.0 * mean * variance - mean**3) / variance**1.5
    half = np.sqrt(1.0 + skew**2 / 4.0)
    low = np.clip(mean + np.sqrt(variance) * (skew / 2.0 - half), 1e-3, 1.0)  # inside 0 to 1
    high = np.clip(mean + np.sqrt(variance) * (skew / 2.0 + half), 0.0, 1.0 - 1e-3)
    apart = 0.1 * (high - low)
    below, above = np.minimum(apart, low / 2.0), np.minimum(apart, (1.0 - high) / 2.0)
    return np.stack([low - below, low + apart, high - apart, high + above], axis=-1)


class Noise(NamedTuple):
    """Noise of all raters as exp(rise * x) of a property x, fitted to the humans' calls.

    If quality varies equally in all strata, with the standard deviation exp(log_sd), that of the
    probit is exp(log_sd - rise * x), as its unit is the noise.
    """

    fitted_covariance: Array  # of two humans' calls, (rows, strata)
    strictness_factor: Array  # exp(-rise * x): strictness in units of noise as a multiple of `a`
    rise: Array  # (rows, 1)

    @classmethod
    def along(cls, sums: HumanSums, x: Array) -> Noise:
        """Fit `log_sd` and `rise` by weighted least squares (Gauss-Newton) to the covariances
        within strata; `x` (rows, strata) is the property's mean in each stratum.
        """
        mean, covariance = sums.human_mean, sums.human_covariance
        z, weight = ndtri(mean), sums.n2 / (mean * (1.0 - mean)) ** 2  # z as in `_covariance_at`
        total = weight.sum(axis=1)
        x = x - ratio((weight * x).sum(axis=1), total)[:, None]
        x_sd = np.sqrt(ratio((weight * x**2).sum(axis=1), total))[:, None]
        x = _divide(x, x_sd)
        max_step, max_log_sd, max_rise = 0.5, 2.0, 1.0  # for x with the standard deviation 1
        log_sd, rise = np.zeros((2, len(x), 1))
        for step in range(_STEPS + 1):
            probit_variance = np.exp(2.0 * (log_sd - rise * x))
            correlation = probit_variance / (1.0 + probit_variance)
            fitted = _covariance_at(z, ndtr(z), np.arcsin(correlation))
            if step == _STEPS:  # after the last step, only `fitted` is computed again
                break
            # The derivative of the covariance by the correlation rho (Plackett 1954), times
            # 2 rho (1 - rho), the derivative of the correlation by `log_sd`.
            by_log_sd = np.exp(-(z**2) / (1.0 + correlation)) / np.pi
            by_log_sd *= correlation * np.sqrt((1.0 - correlation) / (1.0 + correlation))
            # The normal equations of the residuals' regression on `by_log_sd` and on the derivative
            # by `rise`, which is -x times that. The digits of sums are powers of x.
            squares, products = weight * by_log_sd**2, weight * by_log_sd * (covariance - fitted)
            s0, s1, s2 = ((squares * x**n).sum(axis=1, keepdims=True) for n in (0, 1, 2))
            r0, r1 = ((products * x**n).sum(axis=1, keepdims=True) for n in (0, 1))
            step_log_sd, step_rise, _ = _solution((s0, -s1, r0), (-s1, s2, -r1))
            log_sd = log_sd + np.clip(step_log_sd, -max_step, max_step)
            log_sd = np.clip(log_sd, -max_log_sd, max_log_sd)
            rise = np.clip(rise + np.clip(step_rise, -max_step, max_step), -max_rise, max_rise)
            if not ((np.abs(step_log_sd) > _TOLERANCE) | (np.abs(step_rise) > _TOLERANCE)).any():
                break  # the step was too small to change `fitted`
        return cls(fitted, np.exp(-rise * x), _divide(rise, x_sd))


def _variance(sums: HumanSums, mean: Array, pooled_units: float, noise: Noise | None) -> Array:
    """Estimate the variance of tau, (rows, strata): the covariance of two humans' calls within a
    stratum, averaged with the value implied by all strata, which counts as `pooled_units` units.
    """
    p, covariance = np.nan_to_num(ratio(sums.one2, sums.n2)), sums.human_covariance
    # Covariance as a share of the largest possible, p (1 - p): humans' agreement in all strata.
    overall = ratio((sums.n2 * covariance).sum(axis=1), (sums.n2 * p * (1.0 - p)).sum(axis=1))
    overall = np.where(overall > 0, overall, np.nan)[:, None]
    implied = overall * mean * (1.0 - mean)
    if noise is not None:
        implied = np.where(np.isnan(overall), np.nan, noise.fitted_covariance)
    averaged = (sums.n2 * covariance + pooled_units * implied) / (sums.n2 + pooled_units)
    # Within the range for which `_angle` converges.
    return np.clip(averaged, 0.01 * mean * (1.0 - mean), 0.97 * mean * (1.0 - mean))


class ScoreDistribution(NamedTuple):
    """Distribution of tau by stratum. NaN in rows where humans agree no better than chance."""

    tau_mean: Array  # (rows, strata)
    tau_variance: Array  # (rows, strata)
    probit_mean: Array  # (rows, strata)
    probit_sd: Array  # (rows, strata)
    node_probits: Array  # probits that correct for the third moment, (rows, strata, nodes)
    node_weights: Array  # (rows, strata, nodes)

    @classmethod
    def constant(cls, sums: HumanSums) -> ScoreDistribution:
        """Return the distribution for equal tau in a stratum; for few units with two labels."""
        zero, no_nodes = np.zeros_like(sums.n1), np.zeros((*sums.n1.shape, 0))
        return cls(sums.human_mean, zero, ndtri(sums.human_mean), zero, no_nodes, no_nodes)

    @classmethod
    def of(cls, sums: HumanSums, fit_third: bool, noise: Noise | None = None) -> ScoreDistribution:
        """Fit two moments, or three if `fit_third`; with `noise`, its variances are used."""
        mean = sums.human_mean
        # A stratum's moments are averaged with those that all strata imply for it. The weight of
        # these, in units, is small for two strata, and large if strata are small steps of a
        # property such as length. Chosen by `benchmarks/bias.py`.
        pooled_units = 20.0 if mean.shape[1] <= 2 else 200.0
        variance = _variance(sums, mean, pooled_units, noise)
        z = ndtri(mean)
        angle = _angle(z, variance)
        correlation = np.sin(angle)  # sd^2 / (1 + sd^2), see `_covariance_at`
        sd = np.sqrt(correlation / (1.0 - correlation))
        probit_mean = z * np.sqrt(1.0 + sd**2)  # z is in standard deviations of probit plus error
        if not fit_third:
            no_nodes = np.zeros((*mean.shape, 0))
            return cls(mean, variance, probit_mean, sd, no_nodes, no_nodes)
        # The third moment of tau, from the central one of units with three labels, and from `mean`
        # and `variance`. Its excess over the normal distribution's is averaged with the implied
        # one, which is the same multiple of variance^1.5 in each stratum.
        m1, m2, m3 = (ratio(total, sums.n3) for total in (sums.one3, sums.two3, sums.three3))
        central = m3 - 3.0 * m1 * m2 + 2.0 * m1**3
        normal_third = _third_of_normal(z, angle)
        excess = central + 3.0 * mean * (variance + mean**2) - 2.0 * mean**3 - normal_third
        scale = variance**1.5
        multiple = ratio((sums.n3 * excess).sum(axis=1), (sums.n3 * scale).sum(axis=1))
        implied = multiple[:, None] * scale
        averaged = (sums.n3 * excess + pooled_units * implied) / (sums.n3 + pooled_units)
        taus = _four_nodes(mean, variance, normal_third)
        # A node's differences from the other nodes, and 1 from itself, which leaves the product.
        differences = taus[..., :, None] - taus[..., None, :] + np.eye(4)
        weights = averaged[..., None] / differences.prod(axis=-1)  # of the third divided difference
        return cls(mean, variance, probit_mean, sd, ndtri(taus), weights)


# ---- Excess of calls over expected calls ---------------------------------------------------------
class ExcessCalls(NamedTuple):
    """Excess of the grader's calls over the expected calls by stratum."""

    share: Array  # of affirmative calls, minus the expected share, (rows, strata)
    slope: Array  # of expected calls on humans' score within a stratum, (rows, strata)
    strictness_slope: Array | None  # of expected calls on log strictness, if noise changes that
    fits: bool  # False if no sharpness fits


_MIN_FITTING = 0.05
"""Smallest share of resamples that a sharpness must fit, if none fits the data. With fewer, the
misfit is not chance (a one-sided test at 5%): the grader follows humans beyond their agreement, or
tau has another distribution. The shift is then undefined; else the nearest sharpness is used."""


def excess_calls(
    n: Array,
    grader_sum: Array,
    product_sum: Array,
    scores: ScoreDistribution,
    *,
    fit_sharpness: bool,
    noise: Noise | None = None,
) -> ExcessCalls:
    """Return the excess of calls over expected calls by stratum; both have the same mean over all
    strata. NaN in rows without a solution, and in all rows if no sharpness fits the data.

    `grader_sum` is the sum of the grader's calls on the `n` units that it and a human labelled,
    `product_sum` that of their products with the mean of humans' calls, each (rows, strata).
    Sharpness is that of humans unless `fit_sharpness`. With `noise`, strictness changes with it.
    """
    share = ratio(grader_sum, n)
    stratum_shares = ratio(n, n.sum(axis=1, keepdims=True))
    covariance_within = ratio(product_sum, n) - share * scores.tau_mean
    grader_mean = (stratum_shares * share).sum(axis=1)
    grader_covariance = (stratum_shares * covariance_within).sum(axis=1)
    factor = np.ones_like(share) if noise is None else noise.strictness_factor
    curves = _Curves.of_scores(scores, stratum_shares, factor, grader_mean, grader_covariance)
    if fit_sharpness:
        a, b, fits = curves.fitted()
    else:
        b, fits = np.ones(len(share)), np.ones(len(share), dtype=bool)
        a = curves.matching_mean(np.zeros(len(share)), b)
    is_constant = (grader_mean < 1e-9) | (grader_mean > 1.0 - 1e-9)  # has no excess, however sharp
    fits |= is_constant
    if not fits[0] and fits.mean() < _MIN_FITTING:  # row 0 is the data
        undefined = np.full(share.shape, np.nan)
        return ExcessCalls(undefined, undefined, undefined, fits=False)
    expected = curves.at(a, b)
    expected_share, covariance = expected.mean_by_stratum.T, expected.covariance_by_stratum.T
    strictness_slope = None
    if noise is not None:
        nudged_share = curves.at(a * (1.0 + _NUDGE), b).mean_by_stratum.T
        strictness_slope = (nudged_share - expected_share) / _NUDGE
    slope = np.nan_to_num(ratio(covariance, scores.tau_variance))  # 0 where a stratum has one tau
    # Newton's method may end early (`_STEPS`): a mean call that is met to 0.1% is precise enough.
    is_solved = np.abs((stratum_shares * (share - expected_share)).sum(axis=1)) < 1e-3
    excess = np.where(is_solved[:, None], share - expected_share, np.nan)
    excess = np.where(is_constant[:, None], 0.0, excess)
    return ExcessCalls(excess, slope, strictness_slope, fits=True)


_MAX_SHARPNESS, _MAX_STRICTNESS = 4.0, 8.0  # of b, and of a in either direction
_SHARPNESS_GRID = np.linspace(0.0, _MAX_SHARPNESS, 41)
_MAX_STEP_A, _MAX_STEP_B = 0.7, 0.5  # Newton's method: largest change of each in a step


class _Curves(NamedTuple):
    """Expected calls of a grader as a function of its strictness `a` and sharpness `b`, and the two
    targets that these are fitted to. Rows come last, so that numpy sums long lines.
    """

    stratum_shares: Array  # of the units that are in each stratum, (strata, rows)
    strictness_factor: Array  # strictness in a stratum as a multiple of `a`, (strata, rows)
    probit_mean: Array  # (strata, rows)
    probit_sd: Array  # (strata, rows)
    node_probits: Array  # (strata, nodes, rows)
    node_weights: Array  # (strata, nodes, rows)
    node_deviations: Array  # tau at the nodes minus its mean, (strata, nodes, rows)
    target_mean: Array  # mean of the grader's calls, (rows,)
    target_covariance: Array  # of the grader's calls with humans' calls within strata, (rows,)

    @classmethod
    def of_scores(
        cls, scores: ScoreDistribution, shares: Array, factor: Array, mean: Array, cov: Array
    ) -> _Curves:
        """Return the curves for scores and a grader's moments, from arrays with the rows first."""
        rows_first = {
            "stratum_shares": shares, "strictness_factor": factor,
            "probit_mean": scores.probit_mean, "probit_sd": scores.probit_sd,
            "node_probits": scores.node_probits, "node_weights": scores.node_weights,
            "node_deviations": ndtr(scores.node_probits) - scores.tau_mean[..., None],
            "target_mean": mean, "target_covariance": cov,
        }  # fmt: skip
        moved = {name: np.moveaxis(array, 0, -1) for name, array in rows_first.items()}
        return cls(**{name: np.ascontiguousarray(array) for name, array in moved.items()})

    def of_rows(self, rows: Codes) -> _Curves:
        """Return the curves of some rows, which may repeat."""
        return _Curves(*(array.take(rows, axis=-1) for array in self))

    def at(self, a: Array, b: Array) -> _Expected:
        """Return the expected calls at strictness `a` and sharpness `b`, each (rows,)."""
        return _Expected(self, a, b)

    def fitted(self) -> tuple[Array, Array, Mask]:
        """Return strictness and sharpness (rows,), and True where they match both moments (rows,).

        The covariance rises with sharpness up to a maximum.
        1. Rows whose covariance is at most 0 are taken to guess: sharpness 0.
        2. The data, row 0, are solved from a grid, and all other rows from the data's solution.
        3. Rows still unsolved start at the data's maximum on the grid: a covariance above the row's
           maximum gets the maximum, any other is solved from below.
        """
        a, b = np.full((2, len(self.target_mean)), np.nan)
        fits = np.ones(len(self.target_mean), dtype=bool)
        is_guessing = self.target_covariance <= 0.0  # step 1
        b[is_guessing] = 0.0
        start = np.clip(ndtri(self.target_mean[is_guessing]), -_MAX_STRICTNESS, _MAX_STRICTNESS)
        guessing = self.of_rows(np.flatnonzero(is_guessing))
        a[is_guessing] = guessing.matching_mean(start, b[is_guessing])
        on_grid = self.of_rows(np.zeros(len(_SHARPNESS_GRID), dtype=np.intp))  # step 2: row 0
        grid_a = on_grid.matching_mean(np.zeros(len(_SHARPNESS_GRID)), _SHARPNESS_GRID)
        mean_residual, cov_residual = on_grid.at(grid_a, _SHARPNESS_GRID).residuals()
        # With the third moment's correction, Newton's steps may not converge.
        cov_residual[np.abs(mean_residual) > _TOLERANCE] = np.nan
        last_below = np.flatnonzero((cov_residual[:-1] < 0.0) & (cov_residual[1:] >= 0.0))[:1]
        if len(last_below) and not is_guessing[0]:
            row_0 = self.of_rows(np.zeros(1, dtype=np.intp))
            data_a, data_b = row_0._solve(grid_a[last_below], _SHARPNESS_GRID[last_below])
            rows = np.flatnonzero(~is_guessing)
            start_a, start_b = np.repeat(data_a, len(rows)), np.repeat(data_b, len(rows))
            a[rows], b[rows] = self.of_rows(rows)._solve(start_a, start_b)
        unsolved = np.flatnonzero(np.isnan(b))  # step 3
        if len(unsolved):
            top = int(np.nan_to_num(cov_residual, nan=-np.inf).argmax())  # the data's maximum
            a[unsolved], b[unsolved], fits[unsolved] = self.of_rows(unsolved)._fitted_from_maximum(
                np.full(len(unsolved), grid_a[top]), np.full(len(unsolved), _SHARPNESS_GRID[top])
            )
        return a, b, fits

    def _fitted_from_maximum(self, a: Array, b: Array) -> tuple[Array, Array, Mask]:
        """Return the result of step 3 of `fitted`, with the maximum searched from `a` and `b`."""
        a, b = self._maximum(a, b)
        fits = np.asarray(self.at(a, b).residuals()[1] >= 0.0)
        below = np.flatnonzero(fits)
        # From below, where the covariance rises fastest, no step leads beyond the maximum.
        half, curves = b[below] / 2.0, self.of_rows(below)
        solved_a, solved_b = curves._solve(curves.matching_mean(a[below], half), half)
        is_solved = ~np.isnan(solved_b)
        solved = below[is_solved]
        a[solved], b[solved] = solved_a[is_solved], solved_b[is_solved]
        return a, b, fits

    def _solve(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Match both moments by Newton's method from `a` and `b`; NaN if it does not converge."""
        active, curves = np.arange(len(a)), self  # the rows that are not done yet
        solved_a, solved_b = np.full((2, len(a)), np.nan)
        for _ in range(_STEPS):
            if not len(active):
                break
            expected = curves.at(a, b)
            (mean_residual, cov_residual), slopes = expected.residuals(), expected.slopes()
            # The equations of the steps that would bring the residuals to 0 if both were linear.
            for_mean = slopes.mean_by_a, slopes.mean_by_b, -mean_residual
            for_cov = slopes.cov_by_a, slopes.cov_by_b, -cov_residual
            step_a, step_b, det = _solution(for_mean, for_cov)
            a = a + np.clip(step_a, -_MAX_STEP_A, _MAX_STEP_A)
            b = b + np.clip(step_b, -_MAX_STEP_B, _MAX_STEP_B)
            # Where the determinant is negative, the covariance falls: its maximum has been passed.
            is_in_range = (b >= 0.0) & (b <= _MAX_SHARPNESS) & (np.abs(a) <= _MAX_STRICTNESS)
            inside = (det > 0.0) & is_in_range
            converged = np.maximum(np.abs(step_a), np.abs(step_b)) <= _TOLERANCE
            done = inside & converged
            solved_a[active[done]], solved_b[active[done]] = a[done], b[done]
            remaining = np.flatnonzero(inside & ~converged)
            active, curves = active[remaining], curves.of_rows(remaining)
            a, b = a[remaining], b[remaining]
        return solved_a, solved_b

    def _maximum(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return strictness and sharpness at which the covariance is at its maximum, with the
        grader's mean matched. Newton's method starts at `a` and `b`, looks for the point where the
        mean's residual and the slopes' determinant are 0, and ends in one of three ways:
        1. It converges to a maximum.
        2. The covariance rises up to the largest sharpness, which is returned.
        3. Otherwise the sharpness is `b`. As in 2, the strictness then only matches the mean.
        """
        best_a, best_b, is_maximum = a.copy(), b.copy(), np.zeros(len(a), dtype=bool)
        active, curves = np.arange(len(a)), self  # as in `_solve`
        for _ in range(_STEPS):
            if not len(active):
                break
            expected = curves.at(a, b)
            residual, slopes = expected.mean_residual(), expected.slopes()
            mean_by_a, mean_by_b, det = slopes.mean_by_a, slopes.mean_by_b, slopes.determinant
            det_by_a = (curves.at(a + _NUDGE, b).slopes().determinant - det) / _NUDGE
            det_by_b = (curves.at(a, b + _NUDGE).slopes().determinant - det) / _NUDGE
            for_mean, for_det = (mean_by_a, mean_by_b, -residual), (det_by_a, det_by_b, -det)
            step_a, step_b, jacobian_det = _solution(for_mean, for_det)
            # At a maximum, unlike a minimum, the slope falls with sharpness. Where it does not, go
            # uphill by a fixed step (`det` has the slope's sign), and match the mean by strictness:
            # the equation `for_mean`, solved for `step_a`.
            falls = jacobian_det < 0.0
            step_b = np.where(falls, step_b, 0.25 * np.sign(det))
            step_a = np.where(falls, step_a, _divide(-residual - mean_by_b * step_b, mean_by_a))
            a = a + np.clip(step_a, -_MAX_STEP_A, _MAX_STEP_A)
            b = b + np.clip(step_b, -_MAX_STEP_B, _MAX_STEP_B)
            converged = np.maximum(np.abs(step_a), np.abs(step_b)) <= _TOLERANCE
            inside = (b > 0.0) & (b < _MAX_SHARPNESS) & (np.abs(a) <= _MAX_STRICTNESS)
            done = converged & falls & inside
            is_maximum[active[done]] = True
            best_a[active[done]], best_b[active[done]] = a[done], b[done]
            best_b[active[b >= _MAX_SHARPNESS]] = _MAX_SHARPNESS
            remaining = np.flatnonzero(inside & ~done)
            active, curves = active[remaining], curves.of_rows(remaining)
            a, b = a[remaining], b[remaining]
        unmatched = np.flatnonzero(~is_maximum)  # ways 2 and 3
        curves = self.of_rows(unmatched)
        best_a[unmatched] = curves.matching_mean(best_a[unmatched], best_b[unmatched])
        return best_a, best_b

    def matching_mean(self, a: Array, b: Array) -> Array:
        """Return the strictness (rows,) that matches the mean at sharpness `b`, starting at `a`."""
        root, active, curves = a.copy(), np.arange(len(b)), self
        for _ in range(_STEPS):
            expected = curves.at(root[active], b[active])
            step = _divide(-expected.mean_residual(), expected.mean_by_a())
            stepped = root[active] + np.clip(step, -_MAX_STEP_A, _MAX_STEP_A)
            root[active] = np.clip(stepped, -_MAX_STRICTNESS, _MAX_STRICTNESS)
            remaining = np.flatnonzero(np.abs(step) > _TOLERANCE)
            if not len(remaining):
                break
            active, curves = active[remaining], curves.of_rows(remaining)
        return root


class _Slopes(NamedTuple):
    """Derivatives of the expected mean and covariance by strictness and sharpness, (rows,) each."""

    mean_by_a: Array
    mean_by_b: Array
    cov_by_a: Array
    cov_by_b: Array

    @property
    def determinant(self) -> Array:
        """Determinant of the derivatives, (rows,), which is 0 at the covariance's maximum."""
        return self.mean_by_a * self.cov_by_b - self.mean_by_b * self.cov_by_a


class _Expected:
    """Expected calls at one strictness and sharpness of every row, (strata, rows).

    If the probit of tau is normal, the mean expected call is Phi(grader_z), the mean of tau is
    Phi(human_z), and the mean product of both is the probability that two normal variables with the
    correlation `rho` lie below these numbers. The nodes add `node_calls` to the calls, (strata,
    nodes, rows). Names in `_by_a` and `_by_b` are derivatives; `z_by_a` is that of `grader_z`.
    """

    def __init__(self, curves: _Curves, a: Array, b: Array) -> None:
        self.curves, center, variance = curves, curves.probit_mean, curves.probit_sd**2
        strictness = curves.strictness_factor * a
        grader_variance, human_variance = 1.0 + b**2 * variance, 1.0 + variance
        grader_sd, human_sd = np.sqrt(grader_variance), np.sqrt(human_variance)
        self.grader_z = (strictness + b * center) / grader_sd
        self.z_by_a = 1.0 / grader_sd
        self.z_by_b = (center - strictness * b * variance) / (grader_sd * grader_variance)
        self.human_z = center / human_sd
        self.rho = b * variance / (grader_sd * human_sd)
        self.rho_by_b = variance / (human_sd * grader_sd * grader_variance)
        # 1 - rho^2: for a variance v, (1 + b^2 v) (1 + v) - b^2 v^2 = 1 + v + b^2 v.
        one_minus_rho2 = (human_variance + b**2 * variance) / (grader_variance * human_variance)
        self.conditional_sd = np.sqrt(one_minus_rho2)
        node_z = strictness[:, None] + b * curves.node_probits
        self.node_calls = curves.node_weights * ndtr(node_z)
        self.node_calls_by_a = curves.node_weights * _density(node_z)

    @property
    def mean_by_stratum(self) -> Array:
        """Expected share of affirmative calls, (strata, rows)."""
        return np.asarray(ndtr(self.grader_z) + self.node_calls.sum(axis=1))

    @property
    def covariance_by_stratum(self) -> Array:
        """Covariance of expected calls with tau, (strata, rows), by Owen (1956)."""
        grader, human = _nonzero(self.grader_z), _nonzero(self.human_z)
        grader_mean, human_mean = ndtr(grader), ndtr(human)
        product_mean = 0.5 * (grader_mean + human_mean) - 0.5 * (grader * human < 0.0)
        product_mean -= owens_t(grader, (human / grader - self.rho) / self.conditional_sd)
        product_mean -= owens_t(human, (grader / human - self.rho) / self.conditional_sd)
        of_nodes = self._covariance_with_tau(self.node_calls)
        return np.asarray(product_mean - grader_mean * human_mean + of_nodes)

    def residuals(self) -> tuple[Array, Array]:
        """Return the expected mean and covariance minus their targets, each (rows,)."""
        covariance = self._overall(self.covariance_by_stratum)
        return self.mean_residual(), covariance - self.curves.target_covariance

    def mean_residual(self) -> Array:
        """Return the expected mean minus its target, (rows,)."""
        return self._overall(self.mean_by_stratum) - self.curves.target_mean

    def mean_by_a(self) -> Array:
        """Return the derivative of the mean by strictness, (rows,)."""
        by_strictness = _density(self.grader_z) * self.z_by_a + self.node_calls_by_a.sum(axis=1)
        return self._overall(self.curves.strictness_factor * by_strictness)

    def slopes(self) -> _Slopes:
        """Return the derivatives of mean and covariance by strictness and sharpness."""
        # The mean product is Phi2(g, h; rho), at g of the grader and h of humans. Its slope is
        # phi(g) Phi(conditional_z) by g, and the bivariate density by rho (Plackett 1954). The
        # covariance is this product minus Phi(g) Phi(h).
        g, h = self.grader_z, self.human_z
        density, conditional_z = _density(g), (h - self.rho * g) / self.conditional_sd
        cov_by_g = density * (ndtr(conditional_z) - ndtr(h))
        cov_by_rho = density * _density(conditional_z) / self.conditional_sd
        node_calls_by_b = self.node_calls_by_a * self.curves.node_probits
        cov_by_a = cov_by_g * self.z_by_a + self._covariance_with_tau(self.node_calls_by_a)
        cov_by_a = self.curves.strictness_factor * cov_by_a  # from a stratum's strictness to `a`
        mean_by_b = density * self.z_by_b + node_calls_by_b.sum(axis=1)
        cov_by_b = cov_by_g * self.z_by_b + cov_by_rho * self.rho_by_b
        cov_by_b = cov_by_b + self._covariance_with_tau(node_calls_by_b)
        return _Slopes(self.mean_by_a(), *map(self._overall, (mean_by_b, cov_by_a, cov_by_b)))

    def _covariance_with_tau(self, calls: Array) -> Array:
        """Return the covariance of calls at the nodes with tau, (strata, rows)."""
        return np.asarray(np.einsum("snr,snr->sr", calls, self.curves.node_deviations))

    def _overall(self, by_stratum: Array) -> Array:
        """Sum over strata, weighted by their shares: (strata, rows) to (rows,)."""
        return np.asarray((self.curves.stratum_shares * by_stratum).sum(axis=0))


# ---- Calls, and their shifts ---------------------------------------------------------------------
class Calls(NamedTuple):
    """Calls of raters on units, which are rows of the label matrix."""

    raters: tuple[str, ...]
    kinds: tuple[str, ...]  # of the raters, such as "human" or "model"
    values: Array  # (units, raters), NaN for a missing call
    clusters: Codes  # of the units, (units,)
    subjects: tuple[str, ...]
    subject: Codes  # position of each unit's subject in `subjects`, (units,)
    unit: Codes  # row of each unit in the label matrix, (units,)
    subset: str  # that of results on all units: "all", or "all|binary"

    @property
    def graders(self) -> tuple[int, ...]:
        """Columns of the model graders."""
        return tuple(column for column, kind in enumerate(self.kinds) if kind == "model")

    @property
    def humans(self) -> Array:
        """The humans' calls (units, humans)."""
        return self.values[:, [kind == "human" for kind in self.kinds]]

    def oriented(self, sign: Array) -> Calls:
        """Return directed calls with swapped sides where `sign` (units,) is -1; missing where 0."""
        return self._replace(values=self.values * np.where(sign == 0, np.nan, sign)[:, None])

    def with_one_grader(self, grader: str) -> Calls:
        """Return the calls of humans and this grader."""
        pairs = zip(self.raters, self.kinds, strict=True)
        columns = [n for n, (name, kind) in enumerate(pairs) if name == grader or kind != "model"]
        raters, kinds = (tuple(field[n] for n in columns) for field in (self.raters, self.kinds))
        return self._replace(raters=raters, kinds=kinds, values=self.values[:, columns])

    def part(self, name: str) -> str:
        """Return the `subset` of results on a part of the units: "name", or "name|binary"."""
        return name + BINARY if self.subset.endswith(BINARY) else name


def verdict_calls(labels: LabelMatrix) -> Calls | None:
    """Return the verdict calls: 1 if affirmative, else 0; None if the scale has no verdict."""
    if not labels.has_binary:
        return None
    return _calls(labels, labels.verdict_values, np.arange(len(labels.codes)), BINARY_ALL)


def directed_calls(labels: LabelMatrix) -> Calls | None:
    """Return the directed calls: the side that a rater favours. None if there are no sides."""
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
    raters, kinds, subjects = labels.raters, labels.kinds, labels.subjects
    clusters, subject = labels.clusters[unit], labels.subject[unit]
    return Calls(raters, kinds, values, clusters, subjects, subject, unit, subset)


class Shift(NamedTuple):
    """Shift of calls, with its replicates (rows,), the data first."""

    values: Array
    counts: tuple[int, int]  # of units and clusters
    note: Note = ""
    reason: str = "no_variation"  # of an undefined estimate
    if_noisy: Array | None = None  # values if raters' noise changes with the property, if used


def side_shift(calls: Calls, grader: int, resamples: Resamples) -> Shift | None:
    """Return the shift towards a side: a grader's mean call minus its sharpness times the mean call
    of humans, on the units that both called; None if there are none.
    """
    humans, grader_calls = calls.humans, calls.values[:, grader]
    has_call = ~np.isnan(humans)
    n_humans = has_call.sum(axis=1)
    shared = (n_humans > 0) & ~np.isnan(grader_calls)
    if not shared.any():
        return None
    total, squares = (np.where(has_call, power, 0.0).sum(axis=1) for power in (humans, humans**2))
    mean_human = np.where(shared, ratio(total, n_humans.astype(float)), 0.0)
    grader_call, has_two = np.where(shared, grader_calls, 0.0), shared & (n_humans >= 2)
    note: Note = SHARPNESS_ASSUMED
    sharpness = np.ones(len(resamples))
    if resamples.count(calls.clusters, has_two)[0] >= MIN_TWICE:
        n_pairs = np.where(has_two, n_humans * (n_humans - 1), 1).astype(float)
        two_humans = (total**2 - squares) / n_pairs  # the mean product of two humans' calls
        values = (grader_call, mean_human, grader_call * mean_human, two_humans)
        sums = resamples.sums(calls.clusters, has_two, *(has_two * value for value in values)).T
        n, grader_sum, human_sum, product_sum, two_humans_sum = sums
        cov_with_human = ratio(product_sum, n) - ratio(grader_sum, n) * ratio(human_sum, n)
        cov_of_humans = ratio(two_humans_sum, n) - ratio(human_sum, n) ** 2
        # NaN where humans agree no better than chance.
        sharpness = ratio(cov_with_human, np.where(cov_of_humans > 1e-12, cov_of_humans, 0.0))
        note = ""
    n, grader_sum, human_sum = resamples.sums(calls.clusters, shared, grader_call, mean_human).T
    # If humans favour neither side, the grader's sharpness does not matter.
    expected = np.where(human_sum == 0, 0.0, sharpness * ratio(human_sum, n))
    reason = "people_agree_by_chance" if np.isnan(sharpness[0]) else "no_variation"
    counts = resamples.count(calls.clusters, shared)
    return Shift(ratio(grader_sum, n) - expected, counts, note, reason)


def strata_of(x: Array) -> Mask:
    """Return the mask (units, strata) of the units in each stratum of the values x (units,): one
    for each value, or `STRATA` of about equal size if there are more values.
    """
    values = np.unique(x)
    if len(values) > STRATA:
        codes = np.searchsorted(np.unique(np.quantile(x, np.arange(1, STRATA) / STRATA)), x)
        return np.asarray(codes[:, None] == np.unique(codes))
    return np.asarray(x[:, None] == values)


class _UnitTerms(HumanSums):
    """Terms of each unit in the sums of the same names, (units,)."""


def _unit_terms(humans: Array) -> _UnitTerms:
    """Return the terms of the sums over units, from humans' calls of 1 and 0 (units, humans). A
    human's leniency is subtracted, so that it does not look like a difference of units.
    """
    has_call = ~np.isnan(humans)
    n_calls = has_call.sum(axis=1).astype(float)
    # Leniency is a human's share of affirmative calls minus the mean share on the same units; 0
    # for one who shares fewer than `MIN_TWICE` units with others.
    is_shared, leniency = n_calls >= 2, np.zeros(humans.shape[1])
    if is_shared.any():
        shared, n = humans[is_shared], n_calls[is_shared]
        n_shared = (~np.isnan(shared)).sum(axis=0)
        # The mean of a unit's n calls contains the human's call, more so if n is small: of calls 1
        # and 0, the 1 deviates from the mean by 1/2; if all of N = 4 humans had called the unit,
        # the others with 0 as well, by 3/4. So (n - 1) / n is replaced by (N - 1) / N.
        scale = n / (n - 1.0) * (1.0 - 1.0 / humans.shape[1])
        deviations = (shared - np.nanmean(shared, axis=1, keepdims=True)) * scale[:, None]
        mean_deviation = np.nansum(deviations, axis=0) / np.maximum(n_shared, 1)
        leniency = np.where(n_shared >= MIN_TWICE, mean_deviation, 0.0)
    calls = np.where(has_call, humans - leniency, 0.0)
    # Sums over different humans' products, from sums of powers (Newton's identities).
    first, second, third = (np.asarray((calls**power).sum(axis=1)) for power in (1, 2, 3))
    one, n_pairs = first / n_calls, n_calls * (n_calls - 1.0)  # in both orders
    two = np.nan_to_num(ratio(first**2 - second, n_pairs))
    triples = first**3 - 3.0 * first * second + 2.0 * third
    three = np.nan_to_num(ratio(triples, n_pairs * (n_calls - 2.0)))
    n2, n3 = is_shared.astype(float), (n_calls >= 3).astype(float)
    return _UnitTerms(np.ones(len(one)), one, n2, n2 * one, two, n3, n3 * one, n3 * two, three)


class _Split(NamedTuple):
    """Humans' calls, split at one threshold: 1 at or above it, else 0."""

    mean_calls: Array  # the mean of humans' calls on each unit, (units,)
    sums: HumanSums
    products_with_x: Array  # sums of `mean_calls` times x, (rows, strata)
    scores: ScoreDistribution
    noise: Noise | None


class HumanCalls:
    """Humans' calls on units that a grader called, split at every threshold, and sums by stratum of
    the property `x`. `calls` are (units, humans), `x` and `clusters` (units,).
    """

    def __init__(
        self,
        calls: Array,
        x: Array,
        clusters: Codes,
        thresholds: Array,
        resamples: Resamples,
        noisy: bool,
    ) -> None:
        self._resamples, self._clusters = resamples, clusters
        self._x, self._in_stratum = x, strata_of(x)
        has_two, has_three = (np.count_nonzero(~np.isnan(calls), axis=1) >= n for n in (2, 3))
        self.n_strata = self._in_stratum.shape[1]
        self.has_pairs = bool(has_two.sum() >= MIN_TWICE)
        # Third moments are used if every stratum has enough units with three labels.
        fit_third = bool((has_three[:, None] & self._in_stratum).sum(axis=0).min() >= MIN_TWICE)
        # The slope on x needs the strata's means of x, their distance from the overall mean, and
        # the sums of squares of x within strata (rows, strata) and in total (rows,).
        self._n, sum_x, sum_squares = self._sums(np.ones(len(x)), x, x**2)
        self._x_mean = ratio(sum_x, self._n)
        self._x_distance = self._x_mean - ratio(sum_x.sum(axis=1), self._n.sum(axis=1))[:, None]
        self._x_squares = sum_squares - sum_x * self._x_mean
        self._all_x_squares = (self._n * self._x_distance**2 + self._x_squares).sum(axis=1)
        self.splits = []
        for threshold in thresholds:
            terms = _unit_terms(np.where(np.isnan(calls), np.nan, calls >= threshold))
            *sums_in_order, products_with_x = self._sums(*terms, terms.one1 * x)
            sums = HumanSums(*sums_in_order)
            noise, scores = None, ScoreDistribution.constant(sums)  # without pairs
            if self.has_pairs:
                noise = Noise.along(sums, self._x_mean) if noisy else None
                scores = ScoreDistribution.of(sums, fit_third, noise)
            self.splits.append(_Split(terms.one1, sums, products_with_x, scores, noise))

    def excess_slope(self, calls: Mask, split: _Split, *, noisy: bool) -> tuple[Array, bool]:
        """Return the slope on x of a grader's `calls` of 1 and 0 minus expected calls, (rows,), and
        False if no sharpness fits them. If `noisy`, strictness changes with all raters' noise.
        """
        columns = calls, calls * split.mean_calls, calls * self._x
        grader_sum, product_sum, products_with_x = self._sums(*columns)
        n, noise, scores = split.sums.n1, split.noise if noisy else None, split.scores
        excess = excess_calls(
            n, grader_sum, product_sum, scores, fit_sharpness=self.has_pairs, noise=noise
        )
        # The slope adds up products of x and the excess, within and between strata. Within strata,
        # expected calls are linear in humans' calls, and in x if noise changes strictness.
        within = products_with_x - self._x_mean * grader_sum
        within -= excess.slope * (split.products_with_x - self._x_mean * split.sums.one1)
        if noise is not None and excess.strictness_slope is not None:
            within += noise.rise * excess.strictness_slope * self._x_squares
        between = (self._n * self._x_distance * excess.share).sum(axis=1)
        return ratio(between + within.sum(axis=1), self._all_x_squares), excess.fits

    def _sums(self, *columns: Numbers) -> Array:
        """Return the sums of columns (units,) within each stratum, (columns, rows, strata)."""
        by_stratum = np.column_stack(columns)[:, :, None] * self._in_stratum[:, None, :]
        sums = self._resamples.sums(self._clusters, by_stratum.reshape(len(by_stratum), -1))
        return np.moveaxis(sums.reshape(len(sums), len(columns), -1), 1, 0)


class Shifts:
    """Shift of graders' calls with a property x (units,), NaN where unknown, beyond expected calls.

    The shift is the least squares slope on x of calls minus expected calls, which is a difference
    if x is 0 or 1. Within a stratum of x (`strata_of`), expected calls are linear in humans' calls.
    Calls of more than two values are split at thresholds: -1, 0 and 1 into *at least 0* and *at
    least 1*. Each is a call of 1 or 0, and their shifts add up.

    If `noisy`, the noise of all raters may change with x: the variance of humans' score may change,
    and the shift is also estimated with strictness in units of that noise. The `cache` has humans'
    calls on a grader's units, often the same for all; properties with equal resamples may share it.
    """

    def __init__(
        self,
        calls: Calls,
        x: Array,
        resamples: Resamples,
        *,
        noisy: bool = False,
        cache: dict[tuple[bytes | bool, ...], HumanCalls] | None = None,
    ) -> None:
        self.calls, self.x, self.resamples, self.noisy = calls, x, resamples, noisy
        values = np.unique(calls.values[~np.isnan(calls.values)])
        self.thresholds = values[1:]  # every call is at least the lowest value
        self._cache = {} if cache is None else cache
        arrays = (calls.humans, calls.clusters, x, self.thresholds)
        self._key: tuple[bytes | bool, ...] = (noisy, *(array.tobytes() for array in arrays))

    def of(self, grader: int) -> Shift | None:
        """Estimate the shift of one grader; None if no human called a unit that it called."""
        graded, by_humans = self.calls.values[:, grader], ~np.isnan(self.calls.humans).all(axis=1)
        shared = ~np.isnan(graded) & by_humans & ~np.isnan(self.x)
        if not shared.any():
            return None
        key = (*self._key, shared.tobytes())
        if key not in self._cache:
            on_shared = self.calls.humans[shared], self.x[shared], self.calls.clusters[shared]
            self._cache[key] = HumanCalls(*on_shared, self.thresholds, self.resamples, self.noisy)
        human_calls = self._cache[key]
        values, if_noisy = np.zeros((2, len(self.resamples)))
        is_noisy, reason = self.noisy and human_calls.has_pairs, "no_variation"
        for threshold, split in zip(self.thresholds, human_calls.splits, strict=True):
            grader_calls = graded[shared] >= threshold
            slope, fits = human_calls.excess_slope(grader_calls, split, noisy=False)
            values += slope
            if is_noisy:
                slope, fits_noisy = human_calls.excess_slope(grader_calls, split, noisy=True)
                if_noisy += slope
                fits = fits and fits_noisy
            if human_calls.n_strata > 1 and np.isnan(split.scores.tau_variance[0]).any():
                reason = "people_agree_by_chance"
            elif not fits:
                reason = "no_sharpness_fits"
        note = "" if human_calls.has_pairs else SHARPNESS_ASSUMED
        counts = self.resamples.count(self.calls.clusters, shared)
        return Shift(values, counts, note, reason, if_noisy if is_noisy else None)
