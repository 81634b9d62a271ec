"""Number of units that a test or an interval of agreement needs, by formula.

Two raters and a binary verdict; units are independent. Cases without a formula are simulated in
`analysis.planning.scenarios`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.intervals import Z
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
