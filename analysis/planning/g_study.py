"""Sources of disagreement, and the gain from more raters or units: G-study and D-study.

Units crossed with raters, one label each (Brennan 2001, chapters 2 and 3). The G-study splits the
variance of the labels into units, raters (leniency) and the rest by an analysis of variance; the
D-study gives the dependability of the mean of a number of raters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.analysis.labels.matrix import LabelMatrix, complete_block
from evenhand.errors import InputError


@dataclass(frozen=True)
class VarianceComponents:
    """Variance of units, of raters and of the rest, from `n_units` x `n_raters` labels.

    A negative estimate (its source adds nothing beyond chance) is set to 0, as Brennan (2001,
    section 3.4) advises.
    """

    unit: float
    rater: float
    residual: float
    n_units: int
    n_raters: int

    @property
    def shares(self) -> tuple[float, float, float]:
        """The three components as shares of their sum; NaN where nothing varies."""
        total = self.unit + self.rater + self.residual
        if total <= 0:
            return (np.nan, np.nan, np.nan)
        return (self.unit / total, self.rater / total, self.residual / total)


@dataclass(frozen=True)
class Dependability:
    """Precision of the mean of `raters` raters.

    `relative` is for ordering units, `absolute` for placing them on the scale.

    The generalizability coefficient and the index of dependability, Phi (Brennan 2001, equations
    2.40 and 2.41).
    """

    raters: int
    relative: float
    absolute: float


def g_study(values: npt.ArrayLike) -> VarianceComponents:
    """Estimate variance components from a complete array (units, raters) of numbers.

    Six targets by four judges (Shrout & Fleiss 1979, Table 2):

    >>> rows = ["9 2 5 8", "6 1 3 2", "8 4 6 8", "7 1 2 6", "10 5 6 9", "6 2 4 7"]
    >>> found = g_study([[int(cell) for cell in row.split()] for row in rows])
    >>> round(found.unit, 3), round(found.rater, 3), round(found.residual, 3)
    (2.556, 5.244, 1.019)
    """
    x = np.asarray(values, dtype=float)
    if x.ndim != 2 or min(x.shape) < 2 or np.isnan(x).any():
        raise InputError(
            "a G-study needs at least two units and two raters, every rater on every unit"
        )
    n, k = x.shape
    units, raters, mean = x.mean(axis=1), x.mean(axis=0), x.mean()
    of_units = k * ((units - mean) ** 2).sum() / (n - 1)
    of_raters = n * ((raters - mean) ** 2).sum() / (k - 1)
    rest = x - units[:, None] - raters[None, :] + mean
    residual = (rest**2).sum() / ((n - 1) * (k - 1))
    return VarianceComponents(
        unit=float(max((of_units - residual) / k, 0.0)),
        rater=float(max((of_raters - residual) / n, 0.0)),
        residual=float(residual),
        n_units=n,
        n_raters=k,
    )


def d_study(found: VarianceComponents, raters: int) -> Dependability:
    """Return the dependability of the mean of `raters` raters.

    For one rater these are the intraclass correlations ICC(3,1) and ICC(2,1) of Shrout & Fleiss
    (1979, Table 4):

    >>> one = d_study(VarianceComponents(2.5556, 5.2444, 1.0194, 6, 4), 1)
    >>> round(one.relative, 2), round(one.absolute, 2)
    (0.71, 0.29)
    """
    relative = found.residual / raters
    absolute = (found.rater + found.residual) / raters
    return Dependability(raters, _share(found.unit, relative), _share(found.unit, absolute))


def components_of(labels: LabelMatrix) -> VarianceComponents | None:
    """Run the G-study on the humans' labels of the largest complete part; None if there is none.

    Values are the categories' numbers or ranks; on a nominal scale the binary verdict, 0 or 1.
    """
    humans = list(labels.humans)
    nominal = labels.scale.level == "nominal"
    if len(humans) < 2 or (nominal and not labels.has_verdicts):
        return None
    codes = (labels.verdicts if nominal else labels.codes)[:, humans]
    raters, units = complete_block(codes)
    if not raters:
        return None
    values = np.array([0.0, 1.0] if nominal else labels.scale.values)
    return g_study(values[codes[units][:, list(raters)]])


def _share(wanted: float, error: float) -> float:
    return wanted / (wanted + error) if wanted + error > 0 else float("nan")
