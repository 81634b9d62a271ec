"""Agreement on labels that are numbers: tables of two raters, intraclass correlations, distances.

A *table* of two raters' numbers (`NumberMeasurement`) is a row of cells (..., cells). The cells are
sums over the pairs of labels that the two raters gave to the same units:

- nine *moments* (..., 3, 3). A number x, scaled to 0 to 1, has the three *terms* (1 - x)^2,
  2 x (1 - x) and x^2 (`analysis.labels.matrix.number_terms`); a moment is the sum of the products
  of a term of the first label (rows) and a term of the second (columns). As the terms sum to 1, all
  nine moments sum to the number of pairs, and they give the sums of x, y, x^2, y^2 and xy;
- the sum of the distances |x - y|, on a scale from 0 to 1;
- the sum of the contributions to the correlation of ranks (`rank_contributions`);
- both margins: the number of times that each rater gave each number, or each point of a grid from
  0 to 1 to which very many different numbers are rounded (`points`), which limits the cells.

These suffice for kappa with linear weights (Cohen 1968), without a cell for each pair of numbers.
Leading axes are the data and its resamples, or pairs of raters.

*Intraclass correlations* come from the two-way analysis of variance of units by raters: mean
squares of units (rows), raters (columns) and the residual (McGraw & Wong 1996, Table 2). A rater
whose labels are always higher lowers ICC(A,1), absolute agreement, but not ICC(C,1), consistency.
Both are for single labels; Shrout & Fleiss (1979) call them ICC(2,1) and ICC(3,1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.labels.matrix import Coded, complete_block, on_unit_scale
from evenhand.analysis.statistics import join_notes
from evenhand.analysis.types import Array, Codes, Integers, Numbers
from evenhand.analysis.writer import View
from evenhand.errors import InputError

_NUMBER = np.array([0.0, 0.5, 1.0])
_SQUARE = np.array([0.0, 0.0, 1.0])
"""Factors of a label's three terms in x and in x^2: x = term 2 / 2 + term 3, x^2 = term 3."""
MOMENT_WEIGHTS = 1.0 - np.add.outer(_SQUARE, _SQUARE) + 2.0 * np.outer(_NUMBER, _NUMBER)
"""Agreement weights of the moments, (3, 3): their weighted sum is that of 1 - (x - y)^2."""
_MOMENTS = 9
"""Number of moments, the first cells of a table."""
_DISTANCE, _RANKS, _MARGINS = 9, 10, 11
"""Positions of the summed distance, the summed contributions of ranks, and the first margin."""
_TINY = 1e-12
"""Tolerance for rounding errors: a variance below it counts as 0."""
_ALMOST_ONE = 1.0 - 1e-15
"""Limit of correlations, so that their atanh is finite."""


@dataclass(frozen=True)
class MeanSquares:
    """Mean squares (...) of units, raters and the residual, from `n` (...) units by `k` raters."""

    units: Array
    raters: Array
    residual: Array
    n: Array
    k: int

    @classmethod
    def of(cls, n: Array, rater_sums: Array, unit_squares: Array, squares: Array) -> MeanSquares:
        """Return the mean squares from sums over units: `rater_sums` (..., k) of each rater's
        labels, `unit_squares` (...) of each unit's squared sum, `squares` (...) of squared labels.
        """
        k = rater_sums.shape[-1]
        n = np.where(n > 1, n, np.nan)
        correction = rater_sums.sum(axis=-1) ** 2 / (n * k)
        units = unit_squares / k - correction
        raters = (rater_sums**2).sum(axis=-1) / n - correction
        residual = np.maximum(squares - correction - units - raters, 0.0)
        return cls(units / (n - 1), raters / (k - 1), residual / ((n - 1) * (k - 1)), n, k)

    @property
    def agreement(self) -> Array:
        """ICC(A,1) (McGraw & Wong 1996, Table 4); NaN where nothing varies."""
        bias = self.k / self.n * (self.raters - self.residual)
        return ratio(self.units - self.residual, self.units + (self.k - 1) * self.residual + bias)

    @property
    def consistency(self) -> Array:
        """ICC(C,1) (McGraw & Wong 1996, Table 4); NaN where units do not vary."""
        return ratio(self.units - self.residual, self.units + (self.k - 1) * self.residual)


@dataclass(frozen=True)
class IntraclassCorrelation:
    """An intraclass correlation with its exact 95% interval, from `n` units by `k` raters."""

    estimate: float
    low: float
    high: float
    n: int
    k: int


def intraclass_correlation(
    values: npt.ArrayLike, *, kind: str = "agreement"
) -> IntraclassCorrelation:
    """Return the intraclass correlation of labels that are numbers, `values` (units, raters), from
    units without NaN: ICC(A,1) if `kind` is "agreement", ICC(C,1) if it is "consistency".

    The interval comes from the F distribution (McGraw & Wong 1996, Tables 4 and 7) and assumes
    independent, normal units and errors. Raises InputError if there are fewer than two raters, or
    for any other `kind`. Six units by four raters (Shrout & Fleiss 1979, Tables 2 and 4):

    >>> rows = ["9 2 5 8", "6 1 3 2", "8 4 6 8", "7 1 2 6", "10 5 6 9", "6 2 4 7"]
    >>> values = [[int(cell) for cell in row.split()] for row in rows]
    >>> icc = intraclass_correlation(values)
    >>> round(icc.estimate, 2), round(icc.low, 2), round(icc.high, 2)
    (0.29, 0.02, 0.76)
    >>> icc = intraclass_correlation(values, kind="consistency")
    >>> round(icc.estimate, 2), round(icc.low, 2), round(icc.high, 2)
    (0.71, 0.34, 0.95)
    """
    if kind not in ("agreement", "consistency"):
        raise InputError(f"kind is {kind!r}; it must be agreement or consistency")
    labels = np.asarray(values, dtype=float)
    if labels.ndim != 2 or labels.shape[1] < 2:
        raise InputError("an intraclass correlation needs numbers (units, raters) of two raters")
    labels = labels[~np.isnan(labels).any(axis=1)]
    n, k = labels.shape
    if n < 2 or np.ptp(labels) <= 0:
        return IntraclassCorrelation(np.nan, np.nan, np.nan, n, k)
    labels = labels - labels.mean()  # squares of large numbers would lose digits
    unit_squares = (labels.sum(axis=1) ** 2).sum()
    n_units, rater_sums = np.array(float(n)), labels.sum(axis=0)
    mean_squares = MeanSquares.of(n_units, rater_sums, unit_squares, (labels**2).sum())
    estimate = float(mean_squares.agreement if kind == "agreement" else mean_squares.consistency)
    return IntraclassCorrelation(estimate, *_exact_interval(mean_squares, kind, estimate), n, k)


def _exact_interval(squares: MeanSquares, kind: str, rho: float) -> tuple[float, float]:
    """Return the exact 95% interval of `rho`, an intraclass correlation of this kind; both ends are
    1 if it is 1. Names except `noise` and `df` (their v) are McGraw & Wong's (1996, Table 7).
    """
    n, k, low, high = float(squares.n), squares.k, rho, rho
    units, raters, residual = map(float, (squares.units, squares.raters, squares.residual))
    residual_df = (n - 1.0) * (k - 1.0)
    if kind == "consistency" and residual > _TINY:
        f = units / residual
        f_low = f / fdtri(n - 1.0, residual_df, 0.975)
        f_high = f * fdtri(residual_df, n - 1.0, 0.975)
        low, high = (f_low - 1.0) / (f_low + k - 1.0), (f_high - 1.0) / (f_high + k - 1.0)
    elif kind == "agreement" and rho < 1.0:
        a, b = k * rho / (n * (1.0 - rho)), 1.0 + k * rho * (n - 1.0) / (n * (1.0 - rho))
        variance = (a * raters) ** 2 / (k - 1.0) + (b * residual) ** 2 / residual_df
        df = (a * raters + b * residual) ** 2 / variance
        f_low, f_high = fdtri(n - 1.0, df, 0.975), fdtri(df, n - 1.0, 0.975)
        noise = k * raters + (k * n - k - n) * residual
        low = n * (units - f_low * residual) / (f_low * noise + n * units)
        high = n * (f_high * units - residual) / (noise + n * f_high * units)
    return float(low), float(high)


def moments(tables: Array) -> Array:
    """Return the moments (..., 3, 3) of tables (..., cells)."""
    return tables[..., :_MOMENTS].reshape(*tables.shape[:-1], 3, 3)


def linear_kappa(tables: Array, values: Array) -> Array:
    """Return kappa with linear weights (...) (Cohen 1968) from tables (..., cells) of numbers with
    these `values` (points,) from 0 to 1; NaN if all labels are the same number.
    """
    n_points = len(values)
    first, second = tables[..., -2 * n_points : -n_points], tables[..., -n_points:]  # the margins
    size = first.sum(axis=-1)
    expected = ((first @ np.abs(values[:, None] - values)) * second).sum(axis=-1)
    distance = ratio(tables[..., _DISTANCE], size)
    return c.chance_corrected(1.0 - distance, 1.0 - ratio(expected, size**2))


def rank_contributions(first: Codes, second: Codes, weight: Numbers) -> Array:
    """Return the contributions (pairs,) of pairs of labels to atanh(rho), of Spearman's rho.

    `first` and `second` (pairs,) are codes in the order of the numbers, `weight` (pairs,) are the
    weights of the pairs: of all pairs of a table, because ranks depend on all of them.

    The weighted mean of the contributions is atanh(rho), with ties at their mean rank. Each is
    atanh(rho) plus the influence of its pair (Croux & Dehon 2010, section 2; here with ties), so
    that their mean in a resample is, to first order, atanh(rho) of the ranks in that resample.
    NaN if one rater's labels do not vary.

    >>> pairs = rank_contributions(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), np.ones(4))
    >>> np.tanh(pairs.mean()).round(4).item()
    0.7071
    """
    share = np.asarray(weight, dtype=np.float64) / max(float(weight.sum()), 1e-300)

    def centred_ranks(codes: Codes) -> Array:
        # The share of pairs with a lower label and half of those with the same, minus the mean.
        margin = np.bincount(codes, share)
        return np.asarray((np.cumsum(margin) - margin / 2.0 - 0.5)[codes])

    def sum_above(codes: Codes, ranks: Array) -> Array:
        # Sum of the ranks of pairs with a higher label, and half of those with the same label.
        sums = np.bincount(codes, share * ranks)
        return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2.0)[codes])

    x, y = centred_ranks(first), centred_ranks(second)
    covariance, variance_x, variance_y = (float(share @ terms) for terms in (x * y, x * x, y * y))
    if min(variance_x, variance_y) <= _TINY:
        return np.full(len(first), np.nan)
    scale = np.sqrt(variance_x * variance_y)
    rho = float(np.clip(covariance / scale, -_ALMOST_ONE, _ALMOST_ONE))
    # A pair counts by its ranks, and by raising the ranks of higher labels (`sum_above`).
    on_covariance = (x * y + sum_above(first, y) + sum_above(second, x)) / scale
    on_variance_x = (x * x + 2.0 * sum_above(first, x)) / variance_x
    on_variance_y = (y * y + 2.0 * sum_above(second, y)) / variance_y
    influence = on_covariance - rho / 2.0 * (on_variance_x + on_variance_y)
    return np.asarray(np.arctanh(rho) + influence / (1.0 - rho**2))


def rank_correlation(tables: Array) -> Array:
    """Return Spearman's rho (...), with ties at their mean rank, from tables (..., cells)."""
    return np.asarray(np.tanh(ratio(tables[..., _RANKS], moments(tables).sum((-2, -1)))))


def squares_of_two(tables: Array) -> MeanSquares:
    """Return the mean squares (...) of two raters from their tables (..., cells)."""
    products = moments(tables)
    first, second = products.sum(-1), products.sum(-2)
    rater_sums = np.stack([first @ _NUMBER, second @ _NUMBER], axis=-1)
    squares = first @ _SQUARE + second @ _SQUARE
    unit_squares = squares + 2.0 * (products @ _NUMBER @ _NUMBER)  # sums of (x + y)^2
    return MeanSquares.of(first.sum(-1), rater_sums, unit_squares, squares)


def interval_alpha(tables: Array) -> Array:
    """Return Krippendorff's alpha (...) at the interval level from tables (..., cells)."""
    products = moments(tables)
    # Coincidences have each pair of labels in both orders.
    return c.alpha_with(products + np.swapaxes(products, -1, -2), distances=1.0 - MOMENT_WEIGHTS)


def mean_difference(tables: Array, span: float) -> Array:
    """Return the mean (...) of the second rater's numbers minus the first's, from tables
    (..., cells) of numbers whose largest is `span` above the smallest.
    """
    products = moments(tables)
    first, second = products.sum(-1), products.sum(-2)
    return span * ratio((second - first) @ _NUMBER, first.sum(-1))


class NumberMeasurement:
    """Counts and statistics of two raters' labels that are numbers.

    A table of two raters is a row of cells (..., cells), which the module's docstring lists. The
    methods are those of `analysis.agreement.pairs.CategoryMeasurement`, which counts categories.
    """

    alpha_levels = ("interval",)
    agreement_weights = MOMENT_WEIGHTS
    square_tables = staticmethod(moments)

    def __init__(self, coded: Coded) -> None:
        self.coded = coded
        self.points, self.point_values = coded.grid  # each code's point; each point's value, 0 to 1
        self.n_cells = _MARGINS + 2 * len(self.point_values)
        self.shape: tuple[int, ...] = (self.n_cells,)

    def statistics(self) -> dict[str, c.PairStatistic]:
        """Return the panel for one pair of raters, by name: functions of tables (..., cells)."""
        span = float(np.ptp(self.coded.values))
        return {
            "weighted_kappa_linear": partial(linear_kappa, values=self.point_values),
            "weighted_kappa_quadratic": lambda tables: c.kappas(moments(tables), MOMENT_WEIGHTS),
            "krippendorff_alpha_interval": interval_alpha,
            "icc_a1": lambda tables: squares_of_two(tables).agreement,
            "icc_c1": lambda tables: squares_of_two(tables).consistency,
            "mean_difference": partial(mean_difference, span=span),
            "spearman": rank_correlation,
        }

    @property
    def distances(self) -> Array:
        """Distances (points, points) between points of the grid, 0 to 1, in the deciding kappa."""
        distance: Array = np.abs(self.point_values[:, None] - self.point_values)
        return distance**2 if self.coded.ordered == "quadratic" else distance

    def cluster_tables(
        self, cluster: Codes, first: Integers, second: Integers, mass: Numbers, weight: Array | None
    ) -> Numbers:
        """Return the cells (clusters, cells, pairs) of each cluster's tables of two raters, whose
        codes are `first` and `second` (units, pairs), -1 missing. Pairs of labels have a `weight`
        (units, pairs), None for all 1; `mass` (clusters,) are the clusters' weights, for ranks.
        """
        n_clusters, n_points = len(mass), len(self.point_values)
        terms, values = self.coded.terms, self.point_values
        cells = np.zeros((n_clusters, self.n_cells, first.shape[1]))
        for pair, shared in enumerate(((first >= 0) & (second >= 0)).T):
            first_codes = first[shared, pair].astype(np.intp)
            second_codes = second[shared, pair].astype(np.intp)
            points = self.points[first_codes], self.points[second_codes]  # on the grid
            clusters = cluster[shared]
            weights = np.ones(len(clusters)) if weight is None else weight[shared, pair]
            products = terms[first_codes][:, :, None] * terms[second_codes][:, None, :]
            distance = np.abs(values[points[0]] - values[points[1]])
            ranks = rank_contributions(first_codes, second_codes, mass[clusters] * weights)
            # In the order of the cells: nine moments, the distance, the contribution of ranks.
            for cell, summand in enumerate([*products.reshape(-1, _MOMENTS).T, distance, ranks]):
                cells[:, cell, pair] = np.bincount(clusters, summand * weights, n_clusters)
            for start, point in zip((_MARGINS, _MARGINS + n_points), points, strict=True):
                counts = np.bincount(clusters * n_points + point, weights, n_clusters * n_points)
                cells[:, start : start + n_points, pair] = counts.reshape(n_clusters, n_points)
        return cells

    def expected_cells(self, features: Numbers, shares: Array) -> Array:
        """Return the expected cells (clusters, cells, tables) if the second rater gave each number
        with probability `shares` (q,), independently of the unit. `features` are the actual cells.
        """
        values = self.point_values
        point_shares = np.bincount(self.points, shares, len(values))
        products = features[:, :_MOMENTS].reshape(-1, 3, 3, features.shape[2])
        first_terms = products.sum(axis=2)  # the second label's three terms sum to 1
        expected_moments = first_terms[:, :, None] * (shares @ self.coded.terms)[:, None]
        first = features[:, _MARGINS : _MARGINS + len(values)]
        mean_distance = np.abs(values[:, None] - values) @ point_shares
        distance = np.einsum("cvt,v->ct", first, mean_distance)[:, None]  # v: values
        second = first.sum(axis=1, keepdims=True) * point_shares[:, None]
        # Random ranks do not correlate with the other rater's; a single number has no ranks.
        ranks = np.full_like(distance, 0.0 if (point_shares > 0).sum() > 1 else np.nan)
        flat_moments = expected_moments.reshape(len(first), _MOMENTS, -1)
        return np.concatenate([flat_moments, distance, ranks, first, second], axis=1)

    def kappa_sums(self, tables: Array) -> Array:
        """Return all that kappa depends on: size, distance and margins, (..., 2 + 2 points)."""
        products = moments(tables)
        size, distance = products.sum((-2, -1)), tables[..., _DISTANCE]
        if self.coded.ordered == "quadratic":
            distance = (products * (1.0 - MOMENT_WEIGHTS)).sum((-2, -1))
        margins = tables[..., _MARGINS:]
        return np.concatenate([size[..., None], distance[..., None], margins], axis=-1)


def add_number_rows(view: View) -> None:
    """Add `mean_number` of each rater and group, and the rows of `_add_correlation_rows`."""
    coded, values = view.coded, np.asarray(view.coded.values)
    groups = {"humans": coded.members("human"), "models": coded.members("model")}
    raters_by_name = {name: members for name, members in groups.items() if members}
    raters_by_name |= {name: (rater,) for rater, name in enumerate(coded.raters)}
    for name, members in raters_by_name.items():
        counts = c.label_counts(coded, members)
        n_labels = counts.sum(axis=1)
        mean = ratio(*view.over(n_labels > 0).sums(counts @ values, n_labels).T)
        view.add("mean_number", mean, n_labels > 0, a=name, reason="no_labels")
    _add_correlation_rows(view)


def _add_correlation_rows(view: View) -> None:
    """Add `icc_a1` and `icc_c1` of the humans. These need units that all of the raters labelled:
    they are computed from the humans and units of the largest complete block, which a note
    describes; nothing is added without such a block.
    """
    coded, humans = view.coded, view.coded.members("human")
    times = view.resamples.frequency[coded.clusters]
    columns, is_complete = complete_block(coded.codes[:, list(humans)], times)
    if not columns:
        return
    raters = [humans[column] for column in columns]
    # Numbers from -1/2 to 1/2: a sum of squares of large numbers would lose digits.
    values = on_unit_scale(coded.values) - 0.5
    labels = np.zeros((len(coded.codes), len(raters)))
    labels[is_complete] = values[coded.codes[is_complete][:, raters]]
    sums = view.sums(is_complete, labels.sum(axis=1) ** 2, (labels**2).sum(axis=1), labels)
    n, unit_squares, squares = sums[:, :3].T
    mean_squares = MeanSquares.of(n, sums[:, 3:], unit_squares, squares)
    names = ", ".join(coded.raters[rater] for rater in raters)
    n_units = view.count(is_complete).units
    note = join_notes(
        f"{len(raters)} raters, on the {n_units} items that all of them labelled",
        "" if len(raters) == len(humans) else f"of {names}",
    )
    view.add("icc_a1", mean_squares.agreement, is_complete, a="humans", note=note)
    view.add("icc_c1", mean_squares.consistency, is_complete, a="humans", note=note)
