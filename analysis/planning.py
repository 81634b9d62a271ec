"""What a study of a given size can decide, said before people are paid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Scenario", "kappa_half_width", "pass_chance", "study_precision"]

_Z = 1.959963984540054
_TYPICAL_AGREEMENT = 0.85
"""How often two people agree on a similar pairwise task, as Shen et al. (2025) report."""
_STUDIES, _MAX_DRAWS = 2000, 4_000_000


@dataclass(frozen=True)
class Scenario:
    """Raters who all agree pairwise with probability `agreement`, at one share of affirmatives."""

    agreement: float
    prevalence: float


def kappa_half_width(units: int, scenario: Scenario) -> float:
    """Half the 95% interval of Cohen's kappa between two raters on a binary verdict.

    Uses the large-sample variance of Fleiss, Cohen & Everitt (1969), equation 13, with units taken
    as independent.

    >>> round(kappa_half_width(250, Scenario(0.85, 0.5)), 3)
    0.089
    """
    from statsmodels.stats.inter_rater import cohens_kappa

    off = (1 - scenario.agreement) / 2
    yes, no = scenario.prevalence - off, 1 - scenario.prevalence - off
    if min(yes, no) <= 0:
        return math.nan
    table = units * np.array([[yes, off], [off, no]])
    return float(_Z * cohens_kappa(table).std_kappa)


def pass_chance(
    units: int, scenario: Scenario, *, humans: int = 3, margin: float = 0.1, seed: int = 1
) -> float:
    """How likely a grader exactly as good as a person is shown to be no worse by `margin` kappa.

    Simulates studies of `units` independent units in which every rater, the grader included, errs
    alike, takes the spread of the ceiling difference (mean kappa of grader and humans less mean
    kappa among humans), and returns the chance that its 95% interval lies above -margin.
    """
    error = (1 - math.sqrt(2 * scenario.agreement - 1)) / 2
    # Errors pull the raters' share of affirmatives towards a half: undo that for the latent share.
    latent = min(max((scenario.prevalence - error) / (1 - 2 * error), 0.0), 1.0)
    rng = np.random.default_rng(seed)
    studies = max(200, min(_STUDIES, _MAX_DRAWS // units))
    truth = rng.random((studies, units)) < latent
    flips = rng.random((humans + 1, studies, units)) < error
    verdicts = truth[None] ^ flips
    kappas = {
        (i, j): _kappa(verdicts[i], verdicts[j])
        for i in range(humans + 1)
        for j in range(i + 1, humans + 1)
    }
    with_grader = np.mean([kappas[i, humans] for i in range(humans)], axis=0)
    among_humans = np.mean([kappas[i, j] for i, j in kappas if j < humans], axis=0)
    spread = float(np.nanstd(with_grader - among_humans))
    return 0.5 * math.erfc((_Z - margin / spread) / math.sqrt(2)) if spread > 0 else 1.0


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
        width = kappa_half_width(pairs, scenario)
        chance = pass_chance(pairs, scenario, humans=humans, margin=margin)
        sentences.append(
            f"  {prevalence:.0%} of verdicts affirmative: kappa of two raters to within "
            f"{width:.2f}; a grader exactly as good as a person is shown to be at most "
            f"{margin:g} kappa worse in about {chance:.0%} of such studies."
        )
    return sentences


def _kappa(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cohen's kappa per row of two boolean arrays (studies, units)."""
    observed = (a == b).mean(axis=1)
    p, q = a.mean(axis=1), b.mean(axis=1)
    expected = p * q + (1 - p) * (1 - q)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
