"""What a study of a given size can decide, said before people are paid.

Where a formula is right it is used (`analysis.planning.sample_size`); the rest is simulated:
studies of binary verdicts in which every rater errs alike, independently given the unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.intervals import Z
from evenhand.analysis.planning.sample_size import ac1_half_width, kappa_half_width, rate_half_width
from evenhand.analysis.types import Array, Mask

_TYPICAL_AGREEMENT = 0.85
"""How often two people agree on a similar pairwise task, as Shen et al. (2025) report."""
_STUDIES, _MAX_DRAWS = 2000, 4_000_000
_MAX_UNITS = 100_000
STATISTICS = ("kappa", "alpha", "ac1", "rate", "threshold")
"""What `half_width` knows."""


@dataclass(frozen=True)
class Scenario:
    """Raters who all agree pairwise with probability `agreement`, at one share of affirmatives.

    `humans` label each unit; a share `overlap` of the units has all of them, the rest has one.
    """

    agreement: float
    prevalence: float
    humans: int = 3
    overlap: float = 1.0

    @property
    def is_possible(self) -> bool:
        """Whether two raters can agree so at this prevalence."""
        return self.agreement > 0.5 and min(self.prevalence, 1 - self.prevalence) > self.error

    @property
    def error(self) -> float:
        """How often a rater errs: two who err so, independently, agree with `agreement`."""
        return (1 - math.sqrt(max(2 * self.agreement - 1, 0.0))) / 2

    def draw(self, rng: np.random.Generator, shape: tuple[int, int], raters: int) -> Mask:
        """Verdicts (raters, studies, units)."""
        error = self.error
        # Errors pull the raters' share of affirmatives towards a half: undo that for the truth.
        latent = min(max((self.prevalence - error) / (1 - 2 * error), 0.0), 1.0)
        truth = rng.random(shape) < latent
        return truth[None] ^ (rng.random((raters, *shape)) < error)


def half_width(statistic: str, units: float, scenario: Scenario, *, seed: int = 1) -> float:
    """Half the 95% interval of a statistic on so many independent units; NaN where undefined.

    `kappa` and `ac1` are those of two raters and `rate` a share of affirmatives, by formula;
    `alpha` is Krippendorff's of all people and `threshold` the cut of a probability grader at which
    its kappa with people is highest, by simulation. Agreement rests on the overlapping units only.

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
    return simulated[statistic](max(round(shared), 2), scenario, seed)


def units_needed(statistic: str, width: float, scenario: Scenario) -> int | None:
    """The fewest independent units whose interval is as narrow; None above 100,000 units.

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
    """How many times as many units a clustered sample needs (Kish 1965, section 5.4).

    `likeness` is the intraclass correlation of what is averaged, within clusters.

    >>> design_effect(5, 0.25)
    2.0
    """
    return 1.0 + (per_cluster - 1.0) * likeness


def pass_chance(
    units: int, scenario: Scenario, *, humans: int = 3, margin: float = 0.1, seed: int = 1
) -> float:
    """How likely a grader exactly as good as a person is shown to be no worse by `margin` kappa.

    Simulates studies of `units` independent units in which every rater, the grader included, errs
    alike, takes the spread of the ceiling difference (mean kappa of grader and humans less mean
    kappa among humans), and returns the chance that its 95% interval lies above -margin.
    """
    rng = np.random.default_rng(seed)
    verdicts = scenario.draw(rng, (_studies(units), units), humans + 1)
    kappas = {
        (i, j): _kappa(verdicts[i], verdicts[j])
        for i in range(humans + 1)
        for j in range(i + 1, humans + 1)
    }
    with_grader = np.mean([kappas[i, humans] for i in range(humans)], axis=0)
    among_humans = np.mean([kappas[i, j] for i, j in kappas if j < humans], axis=0)
    spread = float(np.nanstd(with_grader - among_humans))
    return 0.5 * math.erfc((Z - margin / spread) / math.sqrt(2)) if spread > 0 else 1.0


def units_to_pass(scenario: Scenario, *, margin: float = 0.1, power: float = 0.8) -> int | None:
    """The fewest independent units with which `pass_chance` reaches `power`; None above 100,000."""
    low, high = 2, 64
    while pass_chance(high, scenario, humans=scenario.humans, margin=margin) < power:
        low, high = high, high * 2
        if high > _MAX_UNITS:
            return None
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        chance = pass_chance(middle, scenario, humans=scenario.humans, margin=margin)
        low, high = (low, middle) if chance >= power else (middle, high)
    return high


def study_precision(
    *, pairs: int, subjects: int, humans: int, margin: float, noun: str = "pair"
) -> list[str]:
    """Sentences on what a study decides, for balanced and for lopsided verdicts.

    A pair's answers by several subjects count as one unit, which is the careful reading: they
    resemble one another. `noun` is what a pair is called, where it is another kind of cluster.
    """
    if humans < 2:
        return [
            "With one person per unit there is no agreement among people, so no grader can be held "
            "against it; have at least two label each unit."
        ]
    clause = " (one answer each)" if subjects == 1 else f", {subjects} subjects' answers each"
    sentences = [
        f"What {pairs} {noun}s{clause} can decide, where two people agree on "
        f"{_TYPICAL_AGREEMENT:.0%} of units and a {noun} counts as one unit:"
    ]
    for prevalence in (0.5, 0.9):
        scenario = Scenario(_TYPICAL_AGREEMENT, prevalence)
        width = half_width("kappa", pairs, scenario)
        chance = pass_chance(pairs, scenario, humans=humans, margin=margin)
        sentences.append(
            f"  {prevalence:.0%} of verdicts affirmative: kappa of two raters to within "
            f"{width:.2f}; a grader exactly as good as a person is shown to be at most "
            f"{margin:g} kappa worse in about {chance:.0%} of such studies."
        )
    return sentences


def _studies(units: int) -> int:
    return max(200, min(_STUDIES, _MAX_DRAWS // max(units, 1)))


def _alpha_half_width(units: int, scenario: Scenario, seed: int) -> float:
    """From the spread of nominal alpha over simulated studies, everyone labelling every unit."""
    rng = np.random.default_rng(seed)
    m = max(scenario.humans, 2)
    yes = scenario.draw(rng, (_studies(units), units), m).sum(axis=0)
    disagreed = (2 * yes * (m - yes) / (m * (m - 1))).mean(axis=1)
    share, n = yes.mean(axis=1) / m, units * m
    expected = 2 * share * (1 - share) * n / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(Z * np.nanstd(1 - disagreed / expected))


def _threshold_half_width(units: int, scenario: Scenario, seed: int) -> float:
    """From the middle 95% of the best cuts over simulated studies.

    The grader is as good as a person at 0.5 and gives a normal score's probability; the reference
    is the majority of people. Best cuts spread far more slowly with n than means do.
    """
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng(seed)
    studies = min(_studies(units), 400)
    verdicts = scenario.draw(rng, (studies, units), scenario.humans + 1)
    reference = verdicts[:-1].mean(axis=0) + rng.random((studies, units)) * 1e-9 > 0.5
    sure = -float(ndtri(scenario.error))
    score = np.where(verdicts[-1], 1, -1) * np.abs(
        sure + 0.5 * rng.standard_normal((studies, units))
    )
    best = [_best_cut(ndtr(p), yes) for p, yes in zip(score, reference, strict=True)]
    low, high = np.nanquantile(best, [0.025, 0.975])
    return float(high - low) / 2


def _best_cut(probability: Array, reference: Mask) -> float:
    """The probability from which verdicts agree with the reference best, by kappa."""
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


def _kappa(a: Mask, b: Mask) -> Array:
    """Cohen's kappa per row of two boolean arrays (studies, units)."""
    observed = (a == b).mean(axis=1)
    p, q = a.mean(axis=1), b.mean(axis=1)
    expected = p * q + (1 - p) * (1 - q)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
