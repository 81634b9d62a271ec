"""95% intervals from the replicates of a statistic.

Two methods. *percentile*: the 2.5% and 97.5% quantiles of the resamples (Efron 1979). *bca*: the
same quantiles moved for bias, by how far the estimate is from the resamples' median, and for
acceleration, by the skewness of the influence of single clusters (Efron 1987; DiCiccio & Efron
1996, equations 2.3 to 2.10). Both use the same resamples, so nothing is drawn twice.

Resamples of n clusters spread too little, by sqrt((n - 1) / n), and ignore Student's t: both
methods therefore take quantiles further out, so that the interval of a mean is as wide as Student's
(Hesterberg 2015, section 5.3). At 5 clusters the tail is 0.1% instead of 2.5%, at 250 it is 2.4%.

The bootstrap fails where resamples do not vary: where all agree, or no unit is affirmative, every
resample gives the same value, and its quantiles are one number. Yet n identical clusters rule out,
at 97.5%, only that more than 1 - .025^(1/n) of all clusters differ from them: the bound of Clopper
& Pearson (1934) for none of n. The interval lets a statistic move as far as that share of clusters,
each at an end of the statistic's range, could move it. For a share this is Clopper and Pearson's
interval. A kappa of 1 falls by that share over the disagreement expected by chance: 1 - share / (1
- pe).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import get_args

import numpy as np

from evenhand.analysis.notes import Code, Note, Reason, Remark, Remarks, join_notes, text_of
from evenhand.analysis.statistics import Kind, entry_for
from evenhand.analysis.types import Array
from evenhand.study.settings.analysis import IntervalMethod, OrderedWeights

INTERVAL_METHODS: tuple[str, ...] = get_args(IntervalMethod)
LEVEL = 0.95
Z = 1.959963984540054
"""Standard errors that a normal interval at `LEVEL` reaches on either side."""
MIN_CLUSTERS = 5
"""Fewer clusters than this give no interval: their resamples do not show the spread."""
WARN_DEGENERATE, MAX_DEGENERATE = 0.01, 0.10

_ROUNDING = _NO_WIDTH = 1e-12
_TAIL = (1.0 - LEVEL) / 2.0


@dataclass(frozen=True)
class Deciding:
    """Level of the bounds that decide a verdict, and the margin that they are held against.

    `alpha` is their one-sided level at this `look` (0 where no look is left, NaN where there are
    no bounds), `next_alpha` that at the next; they hold for so many `comparisons` at once. Kappa
    may lie below people's by the `margin`, NaN without one, which is `margin_share` of
    people's own kappa, 0 if it is a number of its own. Where a bound is for people like these,
    `people` is how many these are, and `from_people` the share of its variance that comes from the
    choice of people. `bar` is the value that the figure itself must clear, NaN for none.
    """

    alpha: float = math.nan
    look: int = 1
    comparisons: int = 1
    next_alpha: float = 0.0
    margin: float = math.nan
    margin_share: float = 0.0
    people: int = 0
    from_people: float = 0.0
    bar: float = math.nan

    @property
    def limits(self) -> tuple[float, ...]:
        """The values that a decision holds the bounds against."""
        found = (-self.margin, 0.0) if self.margin == self.margin else (self.bar,)
        return tuple(each for each in found if each == each)

    @property
    def remarks(self) -> Remarks:
        """The remarks for a note."""
        level = (self.alpha, self.look, self.comparisons, self.next_alpha)
        said = {
            Remark("decided_at", level): not math.isnan(self.alpha),
            Remark("margin", (self.margin,)): not math.isnan(self.margin),
            Remark("margin_share", (self.margin_share,)): self.margin_share > 0,
            Remark("people", (self.people, self.from_people)): self.people > 0,
        }
        return tuple(remark for remark, is_said in said.items() if is_said)


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% interval; NaN where undefined, with the reasons in `remarks`.

    Where it is `deciding`, `low` and `high` are one-sided bounds at the level of a verdict.
    """

    estimate: float
    low: float
    high: float
    remarks: Remarks = ()
    deciding: Deciding | None = field(default=None, repr=False)

    @classmethod
    def undefined(cls, reason: Reason) -> Interval:
        """Return an undefined estimate, with the reason."""
        remark = reason if isinstance(reason, Remark) else Remark(reason)
        return cls(math.nan, math.nan, math.nan, (remark,))

    @classmethod
    def point(cls, estimate: float, note: Note = "") -> Interval:
        """Return an estimate without bounds."""
        return cls(estimate, math.nan, math.nan, join_notes(note))

    def held(self, deciding: Deciding | None) -> Interval:
        """Return it with how it decides."""
        return replace(self, deciding=deciding)

    @property
    def note(self) -> str:
        """The remarks as text."""
        return text_of(self.remarks)


def interval(
    values: Array,
    n_clusters: int,
    *,
    undefined: float | None = None,
    reason: Reason = "no_variation",
    left_out: Array | None = None,
) -> Interval:
    """Read estimate and 95% interval off replicates (rows,), row 0 the data.

    `undefined` is the share of resampled values that were undefined, where `values` cannot show it
    (means over pairs of raters); `reason` explains an undefined estimate. With the jackknife values
    `left_out` (see `bca_bounds`) the interval is BCa, else percentile.
    """
    estimate = float(values[0])
    if np.isnan(estimate):
        return Interval.undefined(reason)
    if n_clusters < MIN_CLUSTERS:
        return Interval.point(estimate, Remark("too_few_clusters"))
    drawn = values[1:]
    if len(drawn) == 0:
        return Interval.point(estimate, Remark("not_resampled"))
    defined = drawn[~np.isnan(drawn)]
    lost = max((len(drawn) - len(defined)) / len(drawn), undefined or 0.0)
    remarks = _degenerate(lost, len(drawn))
    if lost > MAX_DEGENERATE:
        return Interval.point(estimate, remarks)
    tail = expanded_tail(n_clusters)
    bounds = None if left_out is None else bca_bounds(estimate, defined, left_out, tail)
    if left_out is not None and bounds is None:
        remarks = (*remarks, Remark("bca_undefined"))
    low, high = bounds or percentile_bounds(defined, tail)
    return Interval(estimate, low, high, remarks)


@lru_cache(maxsize=4096)
def expanded_tail(n_clusters: int) -> float:
    """Return the share of resamples beyond each bound: 2.5%, or less for few clusters.

    Phi(-sqrt(n / (n - 1)) t), with t the 97.5% quantile of Student's distribution on n - 1
    degrees of freedom (Hesterberg 2015). R's `resample` has the same, `ExpandProbs(0.025, n)`.

    >>> [round(expanded_tail(n), 4) for n in (5, 10, 20, 50, 250)]
    [0.001, 0.0086, 0.0159, 0.0212, 0.0242]
    """
    from scipy.special import ndtr, stdtrit

    t = float(stdtrit(n_clusters - 1, 1.0 - _TAIL))
    return float(ndtr(-math.sqrt(n_clusters / (n_clusters - 1)) * t))


def percentile_bounds(drawn: Array, tail: float = _TAIL) -> tuple[float, float]:
    """Return the quantiles of resampled values that leave `tail` beyond each: 2.5% unless given.

    >>> [round(bound, 3) for bound in percentile_bounds(np.arange(101.0))]
    [2.5, 97.5]
    """
    return _quantiles(drawn, tail, 1.0 - tail)


def bca_bounds(
    estimate: float, drawn: Array, left_out: Array, tail: float = _TAIL
) -> tuple[float, float] | None:
    """Return bias-corrected and accelerated bounds, or None where they are undefined.

    `drawn` are the resampled values and `left_out` the values on the data without one cluster (or
    one small group of clusters) each. Resamples equal to the estimate count half on each side of
    it. Undefined where all resamples lie on one side, or leaving a cluster out leaves nothing to
    compute.
    """
    from scipy.special import ndtr, ndtri

    less, no_more = drawn < estimate - _ROUNDING, drawn <= estimate + _ROUNDING
    below = (less.mean() + no_more.mean()) / 2.0
    bias, skew = float(ndtri(below)), acceleration(left_out)
    if not math.isfinite(bias) or math.isnan(skew):
        return None
    normal = bias + ndtri(np.array([tail, 1.0 - tail]))
    room = 1.0 - skew * normal
    if (room <= 0).any():
        return None
    return _quantiles(drawn, *ndtr(bias + normal / room).tolist())


def _quantiles(drawn: Array, first: float, second: float) -> tuple[float, float]:
    """Return two quantiles, interpolated as by `np.quantile`, which takes four times as long."""
    places = [share * (len(drawn) - 1) for share in (first, second)]
    around = sorted({end for place in places for end in (math.floor(place), math.ceil(place))})
    parted = np.partition(drawn, around)
    low, high = (
        float(parted[math.floor(place)])
        + (place % 1.0) * float(parted[math.ceil(place)] - parted[math.floor(place)])
        for place in places
    )
    return low, high


def acceleration(left_out: Array) -> float:
    """Estimate Efron's acceleration from jackknife values: a sixth of their influence's skewness.

    0 where nothing varies, NaN where a value is undefined.

    >>> acceleration(np.array([1.0, 1.0, 1.0, 0.0])).__round__(4)
    0.0962
    """
    apart = left_out.mean() - left_out
    squares = float((apart**2).sum())
    if math.isnan(squares):
        return math.nan
    return float((apart**3).sum()) / (6.0 * math.sqrt(squares) ** 3) if squares > 1e-24 else 0.0


def _degenerate(lost: float, resamples: int) -> Remarks:
    """Remarks on the share of the resamples that are undefined."""
    if lost == 0.0:
        return ()
    code: Code = "resamples_undefined"
    if lost > MAX_DEGENERATE:
        code = "most_resamples_undefined"
    elif lost > WARN_DEGENERATE:
        code = "many_resamples_undefined"
    # A mean over pairs of raters loses parts of a resample: a part counts as one.
    return (Remark(code, (math.ceil(lost * resamples - 1e-9), resamples)),)


def kind_of(name: str) -> Kind | None:
    """Return the kind of a statistic of results.csv, or None where its range is not known.

    >>> kind_of("coverage"), kind_of("consensus_kappa"), kind_of("stability_sd")
    ('share', 'coefficient', None)
    """
    return entry_for(name).kind


@dataclass(frozen=True)
class Chance:
    """Disagreement that coefficients expect by chance.

    Computed from the categories' shares (q,) of the humans' labels, and from the weights of the
    deciding kappa if they are `ordered`; `values` are those of numbers.
    """

    shares: Array
    ordered: OrderedWeights | None = None
    values: tuple[float, ...] = ()

    def disagreement(self, name: str) -> float:
        """Return 1 - pe for a statistic, by the raters' pooled shares; AC and Brennan-Prediger by
        equal ones, which is the most that they ever take. Weights are the statistic's own, else
        those of the deciding kappa.
        """
        if self.values:
            at = np.asarray(self.values)
            at = at / max(float(np.ptp(at)), 1e-300)
            if (entry_for(name).weights or self.ordered) == "linear":
                return float(self.shares @ np.abs(at[:, None] - at) @ self.shares)
            return float(2.0 * self.shares @ (at - self.shares @ at) ** 2)
        q, entry = len(self.shares), entry_for(name)
        apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / max(q - 1, 1)
        weights = entry.weights or (self.ordered or "identity")
        apart = {"identity": np.sign(apart), "linear": apart, "quadratic": apart**2}[weights]
        if entry.chance == "uniform":
            return float(apart.mean())
        return float(self.shares @ apart @ self.shares)


def unseen(n_clusters: float, tail: float = _TAIL) -> float:
    """Return the largest share of clusters that may differ from all n observed ones, at 97.5%, or 1
    less the `tail`.

    >>> round(unseen(60), 4)
    0.0596
    """
    return float(1.0 - tail ** (1.0 / n_clusters))


def widened(found: Interval, n_clusters: int, kind: Kind | None, apart: float = 1.0) -> Interval:
    """Widen an interval without width as far as the number of clusters allows; keep any other.

    `apart` is the disagreement expected by chance, for coefficients and their differences. Where
    the statistic's range is not known there is no interval.

    >>> widened(Interval(1.0, 1.0, 1.0), 60, "coefficient", 0.5).low.__round__(4)
    0.8807
    """
    if kind == "place" or not found.high - found.low <= _NO_WIDTH:
        return found
    if kind is None or n_clusters < 1:
        return Interval.point(found.estimate, (*found.remarks, Remark("no_resample_differs")))
    at, share = found.estimate, unseen(n_clusters)
    reach = 1.0 / apart if apart > 0 else math.inf
    first, last = {
        "share": (0.0, 1.0),
        "unit": (0.0, 1.0),
        "signed": (-1.0, 1.0),
        "coefficient": (1.0 - reach, 1.0),
        "difference": (at - reach, at + reach),
    }[kind]
    floor = 0.0 if kind in ("share", "unit") else -1.0
    low, high = at - share * (at - first), at + share * (last - at)
    low, high = max(low, min(floor, at)), min(high, max(1.0, at))
    remarks = (*found.remarks, Remark("as_clusters_allow", (n_clusters,)))
    return replace(found, low=low, high=high, remarks=remarks)
