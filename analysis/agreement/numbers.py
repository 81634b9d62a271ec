"""Agreement on labels that are numbers: intraclass correlations, mean differences, distances.

A *table* of two raters' numbers is a row of cells (..., cells), sums over pairs of labels. The
first nine are *moments*, (..., 3, 3): each label adds three shares to a side
(`analysis.labels.matrix.number_sides`), so that the sums of x, y, x^2, y^2 and xy can be read off.
Then come the sum of distances |x - y|, on a scale from 0 to 1, the sum of what the pairs contribute
to the correlation of ranks (`rank_contributions`), and how often each rater gave each number: all
that kappa with linear weights needs to know (Cohen 1968), without a cell for each two numbers.

*Intraclass correlations* come from the two-way analysis of variance of units by raters, one label
each: mean squares of units (rows), raters (columns) and the rest (McGraw & Wong 1996, Table 2).
For absolute agreement, ICC(A,1), a rater who is always higher disagrees; for consistency, ICC(C,1),
not. Both are of a single label. In Shrout & Fleiss (1979) they are ICC(2,1) and ICC(3,1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri

from evenhand.analysis.agreement.coefficients import chance_corrected, label_counts
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.labels.matrix import Coded, complete_block
from evenhand.analysis.statistics import join_notes
from evenhand.analysis.types import Array, Codes, Numbers
from evenhand.analysis.writer import View
from evenhand.errors import InputError

AGREEMENT = np.array([[1.0, 1.0, 0.0], [1.0, 1.5, 1.0], [0.0, 1.0, 1.0]])
"""Agreement weights of the cells: 1 - (x - y)^2 for numbers x and y between 0 and 1."""
_FIRST = np.array([0.0, 0.5, 1.0])
_SECOND = np.array([0.0, 0.0, 1.0])
"""What a side's shares add to x and to x^2."""
_MOMENTS = 9
_MARGINS = _MOMENTS + 2
_TINY = 1e-12
_ALMOST_ONE = 1.0 - 1e-15


@dataclass(frozen=True)
class MeanSquares:
    """Mean squares (...) of units, raters and the rest, from `n` (...) units by `k` raters."""

    units: Array
    raters: Array
    rest: Array
    n: Array
    k: int

    @classmethod
    def of(cls, n: Array, columns: Array, rows: Array, squares: Array) -> MeanSquares:
        """The mean squares from sums over units: `columns` (..., k) of each rater's labels, `rows`
        (...) of the squares of each unit's sum of labels, `squares` (...) of the labels' squares.
        """
        k = columns.shape[-1]
        n = np.where(n > 1, n, np.nan)
        mean = columns.sum(axis=-1) ** 2 / (n * k)
        of_units = rows / k - mean
        of_raters = (columns**2).sum(axis=-1) / n - mean
        rest = np.maximum(squares - mean - of_units - of_raters, 0.0)
        return cls(of_units / (n - 1), of_raters / (k - 1), rest / ((n - 1) * (k - 1)), n, k)

    @property
    def agreement(self) -> Array:
        """ICC(A,1) (McGraw & Wong 1996, Table 4); NaN where nothing varies."""
        apart = self.k / self.n * (self.raters - self.rest)
        return ratio(self.units - self.rest, self.units + (self.k - 1) * self.rest + apart)

    @property
    def consistency(self) -> Array:
        """ICC(C,1) (McGraw & Wong 1996, Table 4); NaN where units do not vary."""
        return ratio(self.units - self.rest, self.units + (self.k - 1) * self.rest)


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
    """Intraclass correlation of single labels that are numbers: ICC(A,1), or ICC(C,1).

    Parameters
    ----------
    values : array (units, raters)
        Only units with a number of every rater count.
    kind : "agreement" or "consistency"
        ICC(A,1) or ICC(C,1).

    Returns
    -------
    IntraclassCorrelation
        With the interval of the F distribution (McGraw & Wong 1996, Tables 4 and 7), which takes
        units and errors as independent and normal.

    Raises
    ------
    InputError
        Where there are not two raters, or where `kind` is neither of the two.

    Examples
    --------
    Six targets by four judges (Shrout & Fleiss 1979, Tables 2 and 4):

    >>> rows = ["9 2 5 8", "6 1 3 2", "8 4 6 8", "7 1 2 6", "10 5 6 9", "6 2 4 7"]
    >>> values = [[int(cell) for cell in row.split()] for row in rows]
    >>> found = intraclass_correlation(values)
    >>> round(found.estimate, 2), round(found.low, 2), round(found.high, 2)
    (0.29, 0.02, 0.76)
    >>> found = intraclass_correlation(values, kind="consistency")
    >>> round(found.estimate, 2), round(found.low, 2), round(found.high, 2)
    (0.71, 0.34, 0.95)
    """
    if kind not in ("agreement", "consistency"):
        raise InputError(f"kind is {kind!r}; it must be agreement or consistency")
    x = np.asarray(values, dtype=float)
    if x.ndim != 2 or x.shape[1] < 2:
        raise InputError("an intraclass correlation needs numbers (units, raters) of two raters")
    x = x[~np.isnan(x).any(axis=1)]
    n, k = x.shape
    if n < 2 or np.ptp(x) <= 0:
        return IntraclassCorrelation(np.nan, np.nan, np.nan, n, k)
    x = x - x.mean()
    sums = x.sum(axis=1)
    squares = MeanSquares.of(np.array(float(n)), x.sum(axis=0), (sums**2).sum(), (x**2).sum())
    units, raters, rest = (float(part) for part in (squares.units, squares.raters, squares.rest))
    free, rho = (n - 1.0) * (k - 1.0), float(getattr(squares, kind))
    low = high = rho
    if kind == "consistency" and rest > _TINY:
        f = units / rest
        bounds = f / fdtri(n - 1.0, free, 0.975), f * fdtri(free, n - 1.0, 0.975)
        low, high = ((bound - 1.0) / (bound + k - 1.0) for bound in bounds)
    elif kind == "agreement" and rho < 1.0:
        a, b = k * rho / (n * (1.0 - rho)), 1.0 + k * rho * (n - 1.0) / (n * (1.0 - rho))
        of_raters, of_rest = a * raters, b * rest
        freedom = (of_raters + of_rest) ** 2 / (of_raters**2 / (k - 1.0) + of_rest**2 / free)
        lower, upper = fdtri(n - 1.0, freedom, 0.975), fdtri(freedom, n - 1.0, 0.975)
        noise = k * raters + (k * n - k - n) * rest
        low = n * (units - lower * rest) / (lower * noise + n * units)
        high = n * (upper * units - rest) / (noise + n * upper * units)
    return IntraclassCorrelation(rho, float(low), float(high), n, k)


def moments(tables: Array) -> Array:
    """Return the moments (..., 3, 3) of tables (..., cells)."""
    return tables[..., :_MOMENTS].reshape(*tables.shape[:-1], 3, 3)


def linear_kappa(tables: Array, values: Array) -> Array:
    """Kappa with linear weights (Cohen 1968) of tables (..., cells) of numbers with these `values`
    (points,) from 0 to 1; NaN where one number alone was given.
    """
    points = len(values)
    first, second = tables[..., -2 * points : -points], tables[..., -points:]
    size = first.sum(axis=-1)
    expected = ((first @ np.abs(values[:, None] - values)) * second).sum(axis=-1)
    apart = ratio(tables[..., _MOMENTS], size)
    return chance_corrected(1.0 - apart, 1.0 - ratio(expected, size**2))


def rank_contributions(first: Codes, second: Codes, weight: Numbers) -> Array:
    """What each pair of labels contributes to Spearman's rho on Fisher's scale, (pairs,).

    The weighted mean is atanh(rho), with ties at their mean rank. The mean in a resample is that of
    its own ranks to first order: contributions are rho plus its influence (Croux & Dehon 2010,
    section 2; here with ties). All pairs of a table belong in one call. NaN where one rater's
    labels do not vary. `first` and `second` are codes in the order of the numbers.

    >>> pairs = rank_contributions(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), np.ones(4))
    >>> np.tanh(pairs.mean()).round(4).item()
    0.7071
    """
    share = np.asarray(weight, dtype=np.float64)
    share = share / max(float(share.sum()), 1e-300)

    def centred(codes: Codes) -> Array:
        margin = np.bincount(codes, share)
        return np.asarray((np.cumsum(margin) - margin / 2.0 - 0.5)[codes])

    def above(codes: Codes, ranks: Array) -> Array:
        # Sum of the ranks of pairs with a higher label, and half of those with the same one.
        sums = np.bincount(codes, share * ranks)
        return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2.0)[codes])

    x, y = centred(first), centred(second)
    covariance, of_x, of_y = (float(share @ part) for part in (x * y, x * x, y * y))
    if min(of_x, of_y) <= _TINY:
        return np.full(len(first), np.nan)
    scale = np.sqrt(of_x * of_y)
    rho = float(np.clip(covariance / scale, -_ALMOST_ONE, _ALMOST_ONE))
    joint = (x * y + above(first, y) + above(second, x)) / scale
    spread = (x * x + 2.0 * above(first, x)) / of_x + (y * y + 2.0 * above(second, y)) / of_y
    return np.asarray(np.arctanh(rho) + (joint - rho / 2.0 * spread) / (1.0 - rho**2))


def cluster_cells(
    coded: Coded, clusters: Codes, first: Codes, second: Codes, weight: Array | None, mass: Numbers
) -> Array:
    """The cells (clusters, cells) from pairs of labels: their `clusters`, codes and weights, all
    (pairs,). `mass` (clusters,) is how much each cluster counts in the data.
    """
    n = len(mass)
    position, values = coded.grid
    a, b, points = position[first], position[second], len(values)
    out = np.zeros((n, coded.cells))
    sides = coded.sides[first][:, :, None] * coded.sides[second][:, None, :]
    counted = mass[clusters] * (1.0 if weight is None else weight)
    ranks = rank_contributions(first, second, counted)
    sums = [*sides.reshape(len(sides), -1).T, np.abs(values[a] - values[b]), ranks]
    for cell, part in enumerate(sums):
        out[:, cell] = np.bincount(clusters, part if weight is None else part * weight, n)
    for at, codes in ((len(sums), a), (len(sums) + points, b)):
        counts = np.bincount(clusters * points + codes, weight, n * points)
        out[:, at : at + points] = counts.reshape(n, points)
    return out


def number_sums(coded: Coded, tables: Array) -> Array:
    """Return the size, the summed distance and both margins, (..., 2 + 2 points), of tables
    (..., cells) of numbers.
    """
    of_moments = moments(tables)
    size, apart = of_moments.sum((-2, -1)), tables[..., _MOMENTS]
    if coded.ordered == "quadratic":
        apart = (of_moments * (1.0 - AGREEMENT)).sum((-2, -1))
    return np.concatenate([size[..., None], apart[..., None], tables[..., _MARGINS:]], axis=-1)


def expected_cells(coded: Coded, features: Numbers, share: Array) -> Array:
    """Return sums (clusters, cells, tables) with a second rater who gives each number with
    probability `share` (q,), whatever the unit.
    """
    position, values = coded.grid
    of_points = np.bincount(position, share, len(values))
    first = features[:, _MARGINS : _MARGINS + len(values)]
    sides = features[:, :_MOMENTS].reshape(-1, 3, 3, features.shape[2]).sum(axis=2)
    moments_of = sides[:, :, None] * (share @ coded.sides)[:, None]
    reach = np.abs(values[:, None] - values) @ of_points
    distance = np.einsum("cvt,v->ct", first, reach)[:, None]
    second = first.sum(axis=1, keepdims=True) * of_points[:, None]
    # The ranks of a rater who labels without reading correlate with nobody's.
    ranks = np.full_like(distance, 0.0 if (of_points > 0).sum() > 1 else np.nan)
    return np.concatenate(
        [moments_of.reshape(len(first), _MOMENTS, -1), distance, ranks, first, second], axis=1
    )


def rank_correlation(tables: Array) -> Array:
    """Spearman's rho (...) of two raters, ties at their mean rank, from tables (..., cells)."""
    mean = ratio(tables[..., _MOMENTS + 1], moments(tables).sum((-2, -1)))
    return np.asarray(np.tanh(mean))


def squares_of_two(tables: Array) -> MeanSquares:
    """The mean squares of two raters from their moments (..., 3, 3)."""
    first, second = tables.sum(-1), tables.sum(-2)
    columns = np.stack([first @ _FIRST, second @ _FIRST], axis=-1)
    squares = first @ _SECOND + second @ _SECOND
    rows = squares + 2.0 * (tables @ _FIRST @ _FIRST)
    return MeanSquares.of(first.sum(-1), columns, rows, squares)


def mean_difference(tables: Array, span: float) -> Array:
    """The second rater's labels minus the first's, the mean (...) on a scale of this `span`."""
    first, second = tables.sum(-1), tables.sum(-2)
    return span * ratio((second - first) @ _FIRST, first.sum(-1))


def root_mean_square_difference(tables: Array, span: float) -> Array:
    """The root of the mean squared difference of two raters' labels, (...)."""
    apart = 1.0 - ratio((tables * AGREEMENT).sum((-2, -1)), tables.sum((-2, -1)))
    return np.asarray(span * np.sqrt(np.maximum(apart, 0.0)))


def add_number_rows(view: View) -> None:
    """Add the mean of each rater's numbers, and of each group's, and ICC(A,1) and ICC(C,1) of the
    human raters as a group. The correlations need units that all of the raters labelled: the raters
    and units of the largest complete part count, and a note says which.
    """
    coded = view.coded
    groups = {"humans": coded.members("human"), "models": coded.members("model")}
    who = {name: members for name, members in groups.items() if members}
    who |= {name: (at,) for at, name in enumerate(coded.raters)}
    values = np.asarray(coded.values)
    for name, members in who.items():
        counts = label_counts(coded, members)
        labels = counts.sum(axis=1)
        mean = ratio(*view.sums(counts @ values, labels).T)
        view.add("mean_number", mean, labels > 0, a=name, reason="no_labels")
    humans = groups["humans"]
    members, units = complete_block(coded.codes[:, list(humans)])
    if not members:
        return
    raters = [humans[at] for at in members]
    held = np.zeros(len(coded.codes), dtype=bool)
    held[units] = True
    # The mean squares of these raters on these units, of numbers from -1/2 to 1/2.
    values = (values - values.min()) / max(float(np.ptp(values)), 1e-300) - 0.5
    x = np.zeros((len(coded.codes), len(raters)))
    x[units] = values[coded.codes[units][:, raters]]
    sums = view.sums(held, x.sum(axis=1) ** 2, (x**2).sum(axis=1), x)
    squares = MeanSquares.of(sums[:, 0], sums[:, 3:], sums[:, 1], sums[:, 2])
    note = join_notes(
        f"{len(raters)} raters, on the {view.count(held)[0]} items that all of them labelled",
        "" if len(raters) == len(humans) else "of " + ", ".join(coded.raters[at] for at in raters),
    )
    for statistic, values in (("icc_a1", squares.agreement), ("icc_c1", squares.consistency)):
        view.add(statistic, values, held, a="humans", note=note)
