"""Precision of a study of a given size, before annotators are paid.

Where a formula holds it is used (two raters, a binary verdict, independent units); the rest is
simulated: studies
of binary verdicts or of labels on a scale, in which raters' perceptions of a unit are correlated,
and humans may differ in strictness.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand.analysis.agreement.coefficients import agreement_weights, kappa_on_scale
from evenhand.analysis.bootstrap.intervals import Z
from evenhand.analysis.bootstrap.score import kappas_of, table_sums
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.errors import InputError


@dataclass(frozen=True)
class KappaTest:
    """A test of kappa against `null`, to succeed with `power` where it is `true`."""

    true: float
    null: float
    alpha: float = 0.05
    power: float = 0.8
    two_sided: bool = True

    def __post_init__(self) -> None:
        if not (-1 < self.null < 1 and -1 < self.true < 1) or self.true == self.null:
            raise InputError(
                f"kappa {self.true} against {self.null}: both must lie between -1 and 1 and differ"
            )
        if not (0 < self.alpha < 1 and 0 < self.power < 1):
            raise InputError("alpha and power must lie between 0 and 1")

    @property
    def quantiles(self) -> tuple[float, float]:
        """Standard normal quantiles of the error of the first kind and of the power."""
        from scipy.special import ndtri

        tail = self.alpha / 2 if self.two_sided else self.alpha
        return float(ndtri(1 - tail)), float(ndtri(self.power))


def cantor(test: KappaTest, first: float, second: float) -> int:
    """Return the units for a test of Cohen's kappa (Cantor 1996, equations 4 and 5).

    `first` and `second` are the two raters' shares of affirmative verdicts.

    >>> cantor(KappaTest(0.85, 0.7, two_sided=False), 0.5, 0.5)
    117
    """
    z_alpha, z_power = test.quantiles
    null, true = (_kappa_variance(first, second, each) for each in (test.null, test.true))
    root = z_alpha * math.sqrt(null) + z_power * math.sqrt(true)
    return math.ceil((root / (test.true - test.null)) ** 2)


def donner_eliasziw(test: KappaTest, prevalence: float) -> int:
    """Return the units for a test of the intraclass kappa (Donner & Eliasziw 1992, eq. 8).

    It is their goodness-of-fit test.

    >>> donner_eliasziw(KappaTest(0.6, 0.4), 0.3)
    191
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    critical = chi2.isf(test.alpha, 1)
    noncentral = float(brentq(lambda x: ncx2.sf(critical, 1, x) - test.power, 1e-6, 200.0))
    p, q = prevalence, 1 - prevalence
    shift = (p * q * (test.true - test.null)) ** 2
    per_unit = (
        shift / (p * p + p * q * test.null)
        + 2 * shift / (p * q * (1 - test.null))
        + shift / (q * q + p * q * test.null)
    )
    return math.ceil(noncentral / per_unit)


def two_rater_table(agreement: float, prevalence: float) -> np.ndarray:
    """Cell probabilities (2, 2) of two raters who are affirmative equally often.

    >>> two_rater_table(0.85, 0.5).round(3).tolist()
    [[0.425, 0.075], [0.075, 0.425]]
    """
    off = (1 - agreement) / 2
    return np.array([[prevalence - off, off], [off, 1 - prevalence - off]])


def kappa_half_width(units: float, agreement: float, prevalence: float) -> float:
    """Half the 95% interval of Cohen's kappa of two raters; NaN where the agreement is impossible.

    Uses the large-sample variance of Fleiss, Cohen & Everitt (1969), equation 13.

    >>> round(kappa_half_width(250, 0.85, 0.5), 3)
    0.089
    """
    table = two_rater_table(agreement, prevalence)
    if table.min() <= 0:
        return math.nan
    pe = prevalence**2 + (1 - prevalence) ** 2
    kappa = (agreement - pe) / (1 - pe)
    return Z * math.sqrt(_kappa_variance(prevalence, prevalence, kappa) / units)


def ac1_half_width(units: float, agreement: float, prevalence: float) -> float:
    """Half the 95% interval of Gwet's AC1 of two raters (Gwet 2008), by the delta method.

    >>> round(ac1_half_width(250, 0.85, 0.5), 3)
    0.089
    """
    table = two_rater_table(agreement, prevalence)
    if table.min() <= 0:
        return math.nan
    pe = 2 * prevalence * (1 - prevalence)
    ac1 = (agreement - pe) / (1 - pe)
    # AC1 linearised in the unit's contribution: its two verdicts' agreement, and its affirmatives.
    affirmative = np.array([[1.0, 0.5], [0.5, 0.0]])
    brings = (np.eye(2) - (1 - ac1) * 2 * (1 - 2 * prevalence) * affirmative) / (1 - pe)
    variance = float((table * brings**2).sum() - (table * brings).sum() ** 2)
    return Z * math.sqrt(variance / units)


def rate_half_width(units: float, rate: float) -> float:
    """Half the 95% interval of a rate of independent units.

    >>> round(rate_half_width(250, 0.5), 3)
    0.062
    """
    return Z * math.sqrt(rate * (1 - rate) / units)


def _kappa_variance(first: float, second: float, kappa: float) -> float:
    """Return n times the variance of kappa (Fleiss, Cohen & Everitt 1969, equation 13)."""
    pe = first * second + (1 - first) * (1 - second)
    po = kappa * (1 - pe) + pe
    yes = (po - 1 + first + second) / 2
    cells = np.array([[yes, first - yes], [second - yes, 1 - first - second + yes]])
    if cells.min() < -1e-12:
        raise InputError(
            f"kappa {kappa:g} is out of reach for raters with {first:g} and {second:g} affirmative"
        )
    rows, columns = np.array([first, 1 - first]), np.array([second, 1 - second])
    diagonal = sum(
        cells[i, i] * ((1 - pe) - (rows[i] + columns[i]) * (1 - po)) ** 2 for i in range(2)
    )
    off = (1 - po) ** 2 * sum(
        cells[i, j] * (columns[i] + rows[j]) ** 2 for i, j in ((0, 1), (1, 0))
    )
    return float((diagonal + off - (po * pe - 2 * pe + po) ** 2) / (1 - pe) ** 4)


_STRICTNESS, _MOST_STRICT = 0.25, 0.6
_SPREAD, _MOST_POINTS = 0.25, 21
_GRID = np.linspace(-6.0, 6.0, 401)
"""Latent qualities to integrate over."""
_STUDIES, _MAX_DRAWS = 2000, 4_000_000
_MAX_UNITS = 100_000
STATISTICS = ("kappa", "alpha", "ac1", "rate", "threshold")
"""Statistics that `half_width` accepts."""


class _Raters(ABC):
    """Raters who see a unit's latent quality, a normal variable, with an error, and label it by
    cuts: at one they say yes or no, at more they choose a point of a scale.
    """

    strictness: float
    is_ordered = False

    @property
    @abstractmethod
    def likeness(self) -> float:
        """Correlation of two humans' latent variables."""

    @property
    @abstractmethod
    def cuts(self) -> Array:
        """Where the latent variable, of variance 1, is cut: (q - 1,), ascending."""

    @property
    def distance(self) -> Array:
        """Distances of labels (q, q) in the kappa that verdicts use, from 0 to 1."""
        kind = "linear" if self.is_ordered else "identity"
        return 1.0 - agreement_weights(len(self.cuts) + 1, kind)

    @property
    def is_possible_so_strict(self) -> bool:
        """True if humans who differ this much in strictness can agree as assumed."""
        return self.likeness + _own_share(self.strictness) < 1

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, int], people: int, graders: int = 0
    ) -> Codes:
        """Draw codes of labels (raters, studies, units) of humans and then of graders.

        A part of the humans' errors is their strictness, drawn independently in every study.
        Graders see as much as humans, and are of average strictness: as good as a human.
        """
        raters = people + graders
        strict = np.array([_own_share(self.strictness)] * people + [0.0] * graders)[:, None]
        error = np.sqrt(1.0 - self.likeness - strict)[..., None]
        seen = math.sqrt(self.likeness) * rng.standard_normal(shape)
        shift = np.sqrt(strict) * rng.standard_normal((raters, shape[0]))
        noise = error * rng.standard_normal((raters, *shape))
        codes: Codes = np.searchsorted(self.cuts, seen + noise - shift[..., None])
        return codes

    def errorless_units(self, margin: float, level: float) -> int:
        """About how many units even a grader without an error needs to pass almost surely.

        With n units an error in as many as -ln(level) / n of them goes unseen. One over the whole
        scale takes from kappa the largest distance over the one expected by chance, and the
        grader's lead over humans and the `margin` make up for it. A grader without an error gives
        the median of what humans would say. In simulation it passes with this many units in .93 to
        1 of studies, with two fifths of them in less than half.
        """
        joint, best, shares = self._tables(self.likeness)
        chance = float(shares @ self.distance @ shares)
        lead = float(((joint - best) * self.distance).sum()) / chance
        return math.ceil(-math.log(level) / chance / (margin + lead))

    def _tables(self, likeness: float) -> tuple[Array, Array, Array]:
        """Joint probabilities of two raters (q, q), of a human and a grader without error, and the
        shares of labels (q,), where two humans' latent variables have this correlation.
        """
        from scipy.special import ndtr

        quality, weight = _GRID, np.exp(-(_GRID**2) / 2) / np.exp(-(_GRID**2) / 2).sum()
        away = self.cuts - math.sqrt(likeness) * quality[:, None]
        below = ndtr(away / math.sqrt(max(1.0 - likeness, 1e-6)))
        given = np.diff(below, axis=1, prepend=0.0, append=1.0)
        best = np.eye(len(self.cuts) + 1)[(below < 0.5).sum(axis=1)]
        weighted = given.T * weight
        return weighted @ given, weighted @ best, weighted.sum(axis=1)


@dataclass(frozen=True)
class Scenario(_Raters):
    """Raters who all agree pairwise with probability `agreement`, at one share of affirmatives.

    `humans` label each unit; a share `overlap` of the units has all of them, the rest has one.
    `strictness` is the standard deviation of the humans' cuts, relative to 1 for the variable that
    they cut; 0 where all are equally strict.
    """

    agreement: float
    prevalence: float
    humans: int = 3
    overlap: float = 1.0
    strictness: float = 0.0

    @property
    def is_possible(self) -> bool:
        """True if two raters can have this agreement at this prevalence."""
        return self.agreement > 0.5 and min(self.prevalence, 1 - self.prevalence) > self.error

    @property
    def kappa(self) -> float:
        """Kappa of two raters."""
        expected = self.prevalence**2 + (1 - self.prevalence) ** 2
        return (self.agreement - expected) / (1 - expected)

    @property
    def error(self) -> float:
        """Error rate at which two independent raters agree with `agreement`."""
        return (1 - math.sqrt(max(2 * self.agreement - 1, 0.0))) / 2

    @property
    def cuts(self) -> Array:
        """The one cut, above which a rater says yes."""
        from scipy.special import ndtri

        return np.array([ndtri(1 - self.prevalence)])

    @cached_property
    def likeness(self) -> float:
        """Correlation of the latent normal variables of two humans (the tetrachoric correlation).

        >>> round(Scenario(0.85, 0.5).likeness, 3)
        0.891
        """
        from scipy.optimize import brentq
        from scipy.special import ndtri, owens_t

        cut = float(ndtri(self.prevalence))

        def surplus(likeness: float) -> float:
            # Both are below the cut with probability Phi(cut) - 2 T(cut, a), Owen's T (1956).
            a = math.sqrt((1.0 - likeness) / (1.0 + likeness))
            return float(1.0 - 4.0 * owens_t(cut, a)) - self.agreement

        return float(brentq(surplus, 0.0, 1.0))

    def least_kappa(self, floor: float) -> float:
        """Return the kappa that humans must reach where a rule has this floor."""
        return floor

    @property
    def spread_of_shares(self) -> float:
        """Standard deviation of the humans' shares of affirmatives, by the delta method."""
        from scipy.special import ndtri
        from scipy.stats import norm

        return float(norm.pdf(ndtri(self.prevalence)) * math.sqrt(_own_share(self.strictness)))


@dataclass(frozen=True)
class ScaleScenario(_Raters):
    """Raters who label on the points from `low` to `high`; the labels of any two have this
    `correlation`, and all have this `mean`.

    What a rater sees is rounded to the nearest point, or to the end of the scale where it lies
    beyond; it has a standard deviation of a quarter of the scale. A scale of more than 21 points is
    simulated with 21, as by raters who choose multiples of five from 0 to 100. The correlation
    counts a stricter rater as disagreeing: it is the intraclass correlation ICC(A,1), which kappa
    with quadratic weights and Krippendorff's alpha for numbers come close to (Fleiss & Cohen 1973).
    The other fields are those of `Scenario`.
    """

    low: int
    high: int
    correlation: float
    mean: float
    humans: int = 3
    overlap: float = 1.0
    strictness: float = 0.0
    is_ordered = True

    @cached_property
    def cuts(self) -> Array:
        """Middles between neighbouring points, where the mean label is as assumed."""
        from scipy.optimize import brentq
        from scipy.special import ndtr

        points = min(self.high - self.low + 1, _MOST_POINTS)
        middles = (np.arange(1, points) - 0.5) / (points - 1)  # of a scale from 0 to 1
        mean = (self.mean - self.low) / (self.high - self.low)

        def surplus(centre: float) -> float:
            return float(ndtr((centre - middles) / _SPREAD).mean()) - mean

        centre = float(brentq(surplus, -5.0, 6.0))
        return np.asarray((middles - centre) / _SPREAD)

    @cached_property
    def likeness(self) -> float:
        """Correlation of the latent normal variables of two humans, a little above the labels'.

        >>> round(ScaleScenario(1, 5, 0.7, 3.0).likeness, 3)
        0.764
        """
        from scipy.optimize import brentq

        def surplus(likeness: float) -> float:
            joint, _, shares = self._tables(likeness)
            at = np.arange(len(shares)) - np.arange(len(shares)) @ shares
            return float(at @ joint @ at / (shares @ at**2)) - self.correlation

        return float(brentq(surplus, 0.0, 1.0 - 1e-6))

    @cached_property
    def kappa(self) -> float:
        """Kappa of two raters with linear weights.

        >>> round(ScaleScenario(1, 5, 0.7, 3.0).kappa, 3)
        0.52
        """
        return float(kappas_of(self._sums, self.distance)[0])

    def least_kappa(self, floor: float) -> float:
        """Return the kappa that humans must reach where a rule has this floor for yes/no labels."""
        return kappa_on_scale(floor)

    @property
    def _sums(self) -> Array:
        return table_sums(self._tables(self.likeness)[0][None], self.distance)

    def kappa_half_width(self, units: float) -> float:
        """Half the 95% interval of two raters' kappa, by the delta method, as the large-sample
        variance of Fleiss, Cohen & Everitt (1969) is.
        """
        q, slope = len(self.cuts) + 1, kappas_of(self._sums, self.distance)[1][0]
        first, second = slope[2 : 2 + q, None], slope[None, 2 + q :]
        moves = slope[0] + slope[1] * self.distance + first + second
        joint = self._tables(self.likeness)[0]
        return float(Z * math.sqrt((joint * moves**2).sum() / units))


def usual_strictness(likeness: float) -> float:
    """Default spread of humans' strictness: 0.25, or three fifths of their disagreement if less.

    >>> usual_strictness(0.891), round(usual_strictness(Scenario(0.95, 0.5).likeness), 3)
    (0.25, 0.086)
    """
    most = _MOST_STRICT * (1.0 - likeness)
    return min(_STRICTNESS, math.sqrt(most / (1.0 - most)))


def half_width(
    statistic: str, units: float, scenario: Scenario | ScaleScenario, *, seed: int = 1
) -> float:
    """Half the 95% interval of a statistic on `units` independent units; NaN where undefined.

    `kappa` and `ac1` are those of two raters and `rate` a share of affirmatives, by formula;
    `alpha` is Krippendorff's of all humans and `threshold` the cut of a probability grader at which
    its kappa with humans is highest, by simulation. Agreement rests on the overlapping units only.
    On a scale there is only `kappa`, with linear weights. All are for these humans, whose
    strictness does not count as chance.

    >>> round(half_width("kappa", 250, Scenario(0.85, 0.5)), 3)
    0.089
    """
    shared = units * scenario.overlap
    if isinstance(scenario, ScaleScenario):
        return scenario.kappa_half_width(shared) if statistic == "kappa" else math.nan
    if statistic == "rate":
        return rate_half_width(units, scenario.prevalence)
    if not scenario.is_possible:
        return math.nan
    if statistic == "kappa":
        return kappa_half_width(shared, scenario.agreement, scenario.prevalence)
    if statistic == "ac1":
        return ac1_half_width(shared, scenario.agreement, scenario.prevalence)
    simulated = {"alpha": _alpha_half_width, "threshold": _threshold_half_width}
    alike = replace(scenario, strictness=0.0)
    return simulated[statistic](max(round(shared), 2), alike, seed)


def units_needed(statistic: str, width: float, scenario: Scenario | ScaleScenario) -> int | None:
    """Return the fewest independent units whose interval is as narrow; None above 100,000 units.

    >>> units_needed("kappa", 0.1, Scenario(0.85, 0.5))
    196
    """
    low, high = 2, 4
    while not half_width(statistic, high, scenario) <= width:
        low, high = high, high * 2
        if high > _MAX_UNITS:
            return None
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        is_enough = half_width(statistic, middle, scenario) <= width
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def design_effect(per_cluster: float, likeness: float) -> float:
    """Factor on the number of units that a clustered sample needs (Kish 1965, section 5.4).

    `likeness` is the intraclass correlation within clusters of the values that are averaged.

    >>> design_effect(5, 0.25)
    2.0
    """
    return 1.0 + (per_cluster - 1.0) * likeness


def _own_share(strictness: float) -> float:
    """Share of the variance of raters' latent variable that is due to their own strictness."""
    return strictness**2 / (1.0 + strictness**2)


def _studies(units: int) -> int:
    return max(200, min(_STUDIES, _MAX_DRAWS // max(units, 1)))


def _alpha_half_width(units: int, scenario: Scenario, seed: int) -> float:
    """Half-width from the spread of nominal alpha over studies in which all label every unit."""
    rng = np.random.default_rng(seed)
    m = max(scenario.humans, 2)
    yes = scenario.draw(rng, (_studies(units), units), m).sum(axis=0)
    disagreed = (2 * yes * (m - yes) / (m * (m - 1))).mean(axis=1)
    share, n = yes.mean(axis=1) / m, units * m
    expected = 2 * share * (1 - share) * n / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(Z * np.nanstd(1 - disagreed / expected))


def _threshold_half_width(units: int, scenario: Scenario, seed: int) -> float:
    """Half-width from the middle 95% of the best cuts over simulated studies.

    The grader is as good as a human at 0.5 and gives a normal score's probability; the reference is
    the majority of humans. The spread of best cuts falls far more slowly with n than that of means.
    """
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng(seed)
    studies = min(_studies(units), 400)
    verdicts = scenario.draw(rng, (studies, units), scenario.humans, graders=1)
    reference = verdicts[:-1].mean(axis=0) + rng.random((studies, units)) * 1e-9 > 0.5
    sure = -float(ndtri(scenario.error))
    score = np.where(verdicts[-1] == 1, 1, -1) * np.abs(
        sure + 0.5 * rng.standard_normal((studies, units))
    )
    best = [_best_cut(ndtr(p), yes) for p, yes in zip(score, reference, strict=True)]
    low, high = np.nanquantile(best, [0.025, 0.975])
    return float(high - low) / 2


def _best_cut(probability: Array, reference: Mask) -> float:
    """Return the probability from which verdicts agree with the reference best, by kappa."""
    order = np.argsort(-probability)
    n, positives = len(order), int(reference.sum())
    if positives in (0, n):
        return math.nan
    called = np.arange(1, n + 1)
    hits = np.cumsum(reference[order])
    observed = (hits + (n - positives) - (called - hits)) / n
    expected = (called * positives + (n - called) * (n - positives)) / n**2
    kappa = (observed - expected) / (1 - expected)
    return float(probability[order][int(np.argmax(kappa))])
