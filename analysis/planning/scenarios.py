"""Precision of a study of a given size, before annotators are paid.

Where a formula holds it is used (`analysis.planning.sample_size`); the rest is simulated: studies
of binary verdicts in which raters' perceptions of a unit are correlated, and humans may differ in
strictness.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand.analysis.bootstrap.intervals import Z
from evenhand.analysis.planning.sample_size import ac1_half_width, kappa_half_width, rate_half_width
from evenhand.analysis.types import Array, Mask

_STRICTNESS, _MOST_STRICT = 0.25, 0.6
_STUDIES, _MAX_DRAWS = 2000, 4_000_000
_MAX_UNITS = 100_000
STATISTICS = ("kappa", "alpha", "ac1", "rate", "threshold")
"""Statistics that `half_width` accepts."""


@dataclass(frozen=True)
class Scenario:
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

    @cached_property
    def likeness(self) -> float:
        """Correlation of the latent normal variables of two humans (the tetrachoric correlation).

        >>> round(Scenario(0.85, 0.5).likeness, 3)
        0.891
        """
        from scipy.optimize import brentq

        def surplus(likeness: float) -> float:
            return _agreement(likeness, self.prevalence) - self.agreement

        return float(brentq(surplus, 0.0, 1.0))

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, int], people: int, graders: int = 0
    ) -> Mask:
        """Draw verdicts (raters, studies, units) of humans and then of graders.

        A unit's latent quality is a normal variable, which raters see with an error. A part of the
        humans' errors is their strictness, drawn independently in every study. Graders see as much
        as humans, and are of average strictness: as good as a human.
        """
        from scipy.special import ndtri

        raters = people + graders
        strict = np.array([_own_share(self.strictness)] * people + [0.0] * graders)[:, None]
        error = np.sqrt(1.0 - self.likeness - strict)[..., None]
        seen = math.sqrt(self.likeness) * rng.standard_normal(shape)
        cuts = np.sqrt(strict) * rng.standard_normal((raters, shape[0])) + ndtri(
            1 - self.prevalence
        )
        verdicts: Mask = seen + error * rng.standard_normal((raters, *shape)) > cuts[..., None]
        return verdicts

    @property
    def spread_of_shares(self) -> float:
        """Standard deviation of the humans' shares of affirmatives, by the delta method."""
        from scipy.special import ndtri
        from scipy.stats import norm

        return float(norm.pdf(ndtri(self.prevalence)) * math.sqrt(_own_share(self.strictness)))

    @property
    def is_possible_so_strict(self) -> bool:
        """True if humans who differ this much in strictness can have this agreement."""
        return self.likeness + _own_share(self.strictness) < 1


def usual_strictness(agreement: float, prevalence: float) -> float:
    """Default spread of humans' strictness: 0.25, or three fifths of their disagreement if less.

    >>> usual_strictness(0.85, 0.5), round(usual_strictness(0.95, 0.5), 3)
    (0.25, 0.086)
    """
    most = _MOST_STRICT * (1.0 - Scenario(agreement, prevalence).likeness)
    return min(_STRICTNESS, math.sqrt(most / (1.0 - most)))


def half_width(statistic: str, units: float, scenario: Scenario, *, seed: int = 1) -> float:
    """Half the 95% interval of a statistic on `units` independent units; NaN where undefined.

    `kappa` and `ac1` are those of two raters and `rate` a share of affirmatives, by formula;
    `alpha` is Krippendorff's of all humans and `threshold` the cut of a probability grader at which
    its kappa with humans is highest, by simulation. Agreement rests on the overlapping units only.
    All are for these humans, whose strictness does not count as chance.

    >>> round(half_width("kappa", 250, Scenario(0.85, 0.5)), 3)
    0.089
    """
    shared = units * scenario.overlap
    if statistic == "rate":
        return rate_half_width(units, scenario.prevalence)
    if not scenario.is_possible:
        return math.nan
    if statistic == "kappa":
        return kappa_half_width(shared, scenario.agreement, scenario.prevalence)
    if statistic == "ac1":
        return ac1_half_width(shared, scenario.agreement, scenario.prevalence)
    simulated: dict[str, Callable[[int, Scenario, int], float]] = {
        "alpha": _alpha_half_width,
        "threshold": _threshold_half_width,
    }
    alike = replace(scenario, strictness=0.0)
    return simulated[statistic](max(round(shared), 2), alike, seed)


def units_needed(statistic: str, width: float, scenario: Scenario) -> int | None:
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
        if half_width(statistic, middle, scenario) <= width:
            high = middle
        else:
            low = middle
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


def _agreement(likeness: float, prevalence: float) -> float:
    """Agreement of two raters whose latent normal variables have the correlation `likeness`.

    Both are below a cut h with the probability Phi(h) - 2 T(h, a), Owen's T (Owen 1956).
    """
    from scipy.special import ndtri, owens_t

    cut = float(ndtri(prevalence))
    a = math.sqrt((1.0 - likeness) / (1.0 + likeness))
    return float(1.0 - 4.0 * owens_t(cut, a))


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
    score = np.where(verdicts[-1], 1, -1) * np.abs(
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
