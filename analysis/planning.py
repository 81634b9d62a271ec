"""Plan a study before annotators are paid: the precision of a study of some size (`half_width`),
and the probability that a grader as good as a human passes (`pass_chances`).

Formulas are used if they hold (two raters, a binary label, independent units). Otherwise studies
are simulated, of binary labels (`Scenario`) or of labels on a scale (`ScaleScenario`): raters'
perceptions of a unit are correlated, and humans may differ in strictness.

A simulated study is judged by the bounds that verdicts use (`analysis.bootstrap.bounds`), at the
level of the first interim analysis: for these humans, and for humans like them, which includes
differences between humans in the sampling error.

*G-study and D-study* (`g_study`, `d_study`) estimate the sources of disagreement and the gain from
more raters, from one label of each rater for each unit (Brennan 2001, chapters 2 and 3). The
G-study splits the variance of the labels into units, raters (leniency) and the residual by an
analysis of variance; the D-study gives the dependability of the mean of a number of raters.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, owens_t

from evenhand.analysis.agreement import coefficients
from evenhand.analysis.bootstrap import bounds
from evenhand.analysis.bootstrap.intervals import Z
from evenhand.analysis.labels.matrix import LabelMatrix, complete_block
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.errors import InputError
from evenhand.study.settings.analysis import (
    MAX_MARGIN_SHARE,
    AnalysisSettings,
    DecisionSettings,
    Scope,
)
from evenhand.texts import written


@dataclass(frozen=True)
class KappaTest:
    """Test of kappa = `null` at level `alpha`, with this `power` if kappa is `true`."""

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


def cantor(test: KappaTest, first: float, second: float) -> int:
    """Return the number of units for a test of Cohen's kappa (Cantor 1996, equations 4 and 5).

    `first` and `second` are the two raters' shares of affirmative labels.

    >>> cantor(KappaTest(0.85, 0.7, two_sided=False), 0.5, 0.5)
    117
    """
    tail = test.alpha / 2 if test.two_sided else test.alpha
    z_alpha, z_power = float(ndtri(1 - tail)), float(ndtri(test.power))
    variances = [_kappa_variance(first, second, kappa) for kappa in (test.null, test.true)]
    root = z_alpha * math.sqrt(variances[0]) + z_power * math.sqrt(variances[1])
    return math.ceil((root / (test.true - test.null)) ** 2)


def donner_eliasziw(test: KappaTest, prevalence: float) -> int:
    """Return the number of units for Donner & Eliasziw's goodness-of-fit test (1992, equation 8).

    >>> donner_eliasziw(KappaTest(0.6, 0.4), 0.3)
    191
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    critical = chi2.isf(test.alpha, 1)
    noncentral = float(brentq(lambda x: ncx2.sf(critical, 1, x) - test.power, 1e-6, 200.0))
    p, q = prevalence, 1 - prevalence
    shift = (p * q * (test.true - test.null)) ** 2
    noncentral_per_unit = (  # from units that both affirm, only one affirms, neither affirms
        shift / (p * p + p * q * test.null)
        + 2 * shift / (p * q * (1 - test.null))
        + shift / (q * q + p * q * test.null)
    )
    return math.ceil(noncentral / noncentral_per_unit)


def _kappa_variance(first: float, second: float, kappa: float) -> float:
    """Return n times kappa's variance on n units (Fleiss, Cohen & Everitt 1969, equation 13)."""
    pe = first * second + (1 - first) * (1 - second)
    po = kappa * (1 - pe) + pe
    both = (po - 1 + first + second) / 2
    cells = np.array([[both, first - both], [second - both, 1 - first - second + both]])
    if cells.min() < -1e-12:
        raise InputError(
            f"kappa {kappa:g} is out of reach for raters with {first:g} and {second:g} affirmative"
        )
    rows, columns = np.array([first, 1 - first]), np.array([second, 1 - second])
    influence = (1 - pe) * np.eye(2) - (1 - po) * (columns[:, None] + rows)
    return float(((cells * influence**2).sum() - (po * pe - 2 * pe + po) ** 2) / (1 - pe) ** 4)


_DEFAULT_STRICTNESS, _MAX_STRICTNESS_SHARE = 0.25, 0.6
"""Default standard deviation of humans' cuts, and its largest share of humans' disagreement."""
_PERCEIVED_SD, _MAX_POINTS = 0.25, 21
"""Standard deviation of raters' perceptions, as a share of the scale; most simulated points."""
_GRID = np.linspace(-6.0, 6.0, 401)
"""Latent qualities to integrate over."""
_STUDIES, _MAX_DRAWS = 2000, 4_000_000
"""Studies simulated for a half-width, and the largest number of units in all of them."""
_MAX_UNITS = 100_000
"""Largest number of units that `units_needed` tries."""
STATISTICS = ("kappa", "alpha", "rate", "threshold")
"""Statistics that `half_width` accepts."""


def _strict_share(strictness: float) -> float:
    """Return the share of strictness in the variance of raters' latent variable, 1 without it."""
    return strictness**2 / (1.0 + strictness**2)


class _Raters(ABC):
    """Raters who perceive a unit's latent quality, a normal variable, with a normal error, and
    label it by cuts: one cut for yes or no, several cuts for the points of a scale.

    `strictness` is the standard deviation of humans' cuts (see `Scenario`).
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
        """Cuts (q - 1,), ascending, of the latent variable, which has variance 1."""

    @property
    def distance(self) -> Array:
        """Distances between labels (q, q) in the kappa that verdicts use, from 0 to 1."""
        kind = "linear" if self.is_ordered else "identity"
        return 1.0 - coefficients.agreement_weights(len(self.cuts) + 1, kind)

    @property
    def is_strictness_possible(self) -> bool:
        """True if humans can agree as assumed and differ this much in strictness."""
        return self.likeness + _strict_share(self.strictness) < 1

    def least_kappa(self, floor: float) -> float:
        """Return the least human kappa for a verdict on this scale, from the `floor` for yes/no."""
        return coefficients.kappa_on_scale(floor) if self.is_ordered else floor

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, int], people: int, graders: int = 0
    ) -> Codes:
        """Draw codes of labels (raters, studies, units), of humans and then of graders, for a
        `shape` of (studies, units).

        A rater's latent variable is sqrt(l) quality - sqrt(s) strictness + sqrt(1 - l - s) noise,
        all standard normal: the quality of a unit, the strictness of a rater in a study, and the
        noise of a label. l is the `likeness`, s the share of strictness in the variance. Graders
        have s = 0: they are as good as humans, with average strictness.
        """
        raters, strict_share = people + graders, _strict_share(self.strictness)
        share = np.repeat([strict_share, 0.0], [people, graders])[:, None]  # s, (raters, 1)
        quality = math.sqrt(self.likeness) * rng.standard_normal(shape)
        strictness = np.sqrt(share) * rng.standard_normal((raters, shape[0]))
        noise_sd = np.sqrt(1.0 - self.likeness - share)[..., None]
        noise = noise_sd * rng.standard_normal((raters, *shape))
        return np.asarray(np.searchsorted(self.cuts, quality + noise - strictness[..., None]))

    def errorless_units(self, margin: float, level: float) -> int:
        """Return the approximate number of units with which an errorless grader, which gives the
        median of humans' labels, almost surely passes.

        With n units, errors in a share of up to -ln(level) / n of all units may not be observed.
        Kappa is 1 - d / e, with the mean distance d of two labels and the distance e expected by
        chance: a share s of errors over the whole scale, of distance 1, lowers it by s / e. This
        must not exceed the `margin` plus `lead`, the grader's kappa with a human minus that of two
        humans. In simulations it passes in .93 to 1 of such studies, in under half with 2/5 of n.
        """
        joint, with_errorless, shares = self._tables(self.likeness)
        expected_distance = float(shares @ self.distance @ shares)
        lead = float(((joint - with_errorless) * self.distance).sum()) / expected_distance
        return math.ceil(-math.log(level) / expected_distance / (margin + lead))

    def _tables(self, likeness: float) -> tuple[Array, Array, Array]:
        """Return the joint probabilities (q, q) of two humans' labels, those of a human's and an
        errorless grader's, and the shares of labels (q,), from humans' latent correlation.
        """
        density = np.exp(-(_GRID**2) / 2)  # of the latent qualities
        to_cut = self.cuts - math.sqrt(likeness) * _GRID[:, None]
        below = ndtr(to_cut / math.sqrt(max(1.0 - likeness, 1e-6)))  # (qualities, q - 1)
        by_quality = np.diff(below, axis=1, prepend=0.0, append=1.0)  # label shares (qualities, q)
        perfect = np.eye(len(self.cuts) + 1)[(below < 0.5).sum(axis=1)]  # humans' median, one-hot
        weighted = by_quality.T * (density / density.sum())
        return weighted @ by_quality, weighted @ perfect, weighted.sum(axis=1)


@dataclass(frozen=True)
class Scenario(_Raters):
    """Raters of yes/no labels who agree pairwise with probability `agreement`, and affirm the share
    `prevalence` of the units.

    All `humans` annotators label a share `overlap` of the units, one annotator each of the rest.
    `strictness` is the standard deviation of their cuts; that of the latent variable is 1.
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

    def kappa_half_width(self, units: float) -> float:
        """Return half the 95% interval of two raters' kappa; NaN if they never disagree."""
        variance = _kappa_variance(self.prevalence, self.prevalence, self.kappa)
        return Z * math.sqrt(variance / units) if self.agreement < 1 else math.nan

    @property
    def error(self) -> float:
        """Error rate at which two independent raters agree with `agreement`."""
        return (1 - math.sqrt(max(2 * self.agreement - 1, 0.0))) / 2

    @property
    def cuts(self) -> Array:
        """Cut (1,) of the latent variable above which a rater answers yes."""
        return np.array([ndtri(1 - self.prevalence)])

    @cached_property
    def likeness(self) -> float:
        """Correlation of the latent normal variables of two humans (the tetrachoric correlation).

        >>> round(Scenario(0.85, 0.5).likeness, 3)
        0.891
        """
        from scipy.optimize import brentq

        cut = float(ndtri(self.prevalence))  # minus that of `cuts`: Owen's T is the same for both

        def surplus(likeness: float) -> float:
            # Only the first is below the cut with probability 2 T(cut, a), Owen's T (1956).
            a = math.sqrt((1.0 - likeness) / (1.0 + likeness))
            return float(1.0 - 4.0 * owens_t(cut, a)) - self.agreement

        return float(brentq(surplus, 0.0, 1.0))

    @property
    def spread_of_shares(self) -> float:
        """Standard deviation of the humans' shares of affirmatives, by the delta method."""
        from scipy.stats import norm

        return float(norm.pdf(ndtri(self.prevalence)) * math.sqrt(_strict_share(self.strictness)))


@dataclass(frozen=True)
class ScaleScenario(_Raters):
    """Raters who label on the points from `low` to `high`; the labels of any two have this
    `correlation`, and all have this `mean`.

    A rater's perception has a standard deviation of a quarter of the scale and is rounded to the
    nearest point, or to the end of the scale if it lies beyond. A scale of more than 21 points is
    simulated with 21, as if raters chose multiples of five from 0 to 100. Differences in strictness
    lower the correlation: it is the intraclass correlation ICC(A,1), which kappa with quadratic
    weights and alpha for numbers approximate (Fleiss & Cohen 1973). Other fields: see `Scenario`.
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
        """Midpoints between neighbouring points (q - 1,), moved to give the assumed mean label."""
        from scipy.optimize import brentq

        points = min(self.high - self.low + 1, _MAX_POINTS)
        middles = (np.arange(1, points) - 0.5) / (points - 1)  # of a scale from 0 to 1
        mean = (self.mean - self.low) / (self.high - self.low)

        def surplus(centre: float) -> float:
            return float(ndtr((centre - middles) / _PERCEIVED_SD).mean()) - mean

        centre = float(brentq(surplus, -5.0, 6.0))  # searched far beyond the scale from 0 to 1
        return np.asarray((middles - centre) / _PERCEIVED_SD)

    @cached_property
    def likeness(self) -> float:
        """Correlation of the latent normal variables of two humans, a little above the labels'.

        >>> round(ScaleScenario(1, 5, 0.7, 3.0).likeness, 3)
        0.764
        """
        from scipy.optimize import brentq

        def surplus(likeness: float) -> float:
            joint, _, shares = self._tables(likeness)
            points = np.arange(len(shares)) - np.arange(len(shares)) @ shares
            return float(points @ joint @ points / (shares @ points**2)) - self.correlation

        return float(brentq(surplus, 0.0, 1.0 - 1e-6))

    @property
    def sd(self) -> float:
        """Standard deviation of the labels."""
        _, _, shares = self._tables(self.likeness)
        points = np.linspace(self.low, self.high, len(shares))
        return float(np.sqrt(shares @ (points - shares @ points) ** 2))

    @cached_property
    def kappa(self) -> float:
        """Kappa of two raters with linear weights.

        >>> round(ScaleScenario(1, 5, 0.7, 3.0).kappa, 3)
        0.52
        """
        return float(bounds.kappas_of(self._sums, self.distance)[0])

    @property
    def _sums(self) -> Array:
        """Size, summed distance, both margins of two humans' labels, (1, 2 + 2q): `table_sums`."""
        joint, _, _ = self._tables(self.likeness)
        return bounds.table_sums(joint[None], self.distance)

    def kappa_half_width(self, units: float) -> float:
        """Return half the 95% interval of two raters' kappa, by the delta method."""
        q = len(self.cuts) + 1
        _, (slope,) = bounds.kappas_of(self._sums, self.distance)  # of kappa, by each of `_sums`
        first, second = slope[2 : 2 + q, None], slope[None, 2 + q :]
        influence = slope[0] + slope[1] * self.distance + first + second  # by labels (q, q)
        joint, _, _ = self._tables(self.likeness)
        return float(Z * math.sqrt((joint * influence**2).sum() / units))


def default_strictness(likeness: float) -> float:
    """Return the default strictness: 0.25, but no more than 3/5 of humans' disagreement.

    >>> correlation = Scenario(0.95, 0.5).likeness
    >>> default_strictness(0.891), round(default_strictness(correlation), 3)
    (0.25, 0.086)
    """
    share = _MAX_STRICTNESS_SHARE * (1.0 - likeness)
    return min(_DEFAULT_STRICTNESS, math.sqrt(share / (1.0 - share)))


def half_width(
    statistic: str, units: float, scenario: Scenario | ScaleScenario, *, seed: int = 1
) -> float:
    """Return half the 95% interval of a statistic on `units` independent units; NaN if undefined.

    Computed by formula: `kappa` of two raters, and `rate`, the share of affirmatives. Simulated:
    Krippendorff's `alpha` of all humans, and `threshold`, the cut of a grader's probabilities with
    the highest kappa with humans. Agreement is computed on the overlapping units only. A scale has
    only `kappa`, with linear weights. All are for these humans: strictness does not vary.

    >>> round(half_width("kappa", 250, Scenario(0.85, 0.5)), 3)
    0.089
    """
    shared = units * scenario.overlap
    if isinstance(scenario, ScaleScenario):
        return scenario.kappa_half_width(shared) if statistic == "kappa" else math.nan
    if statistic == "rate":
        return Z * math.sqrt(scenario.prevalence * (1 - scenario.prevalence) / units)
    if not scenario.is_possible:
        return math.nan
    if statistic == "kappa":
        return scenario.kappa_half_width(shared)
    simulated = {"alpha": _alpha_half_width, "threshold": _threshold_half_width}
    return simulated[statistic](max(round(shared), 2), replace(scenario, strictness=0.0), seed)


def units_needed(statistic: str, width: float, scenario: Scenario | ScaleScenario) -> int | None:
    """Return the fewest units, or up to 0.5% more, for this half-`width`; None if over 100,000.

    >>> units_needed("kappa", 0.1, Scenario(0.85, 0.5))
    196
    """
    low, high = 2, 4
    while not half_width(statistic, high, scenario) <= width:
        if high == _MAX_UNITS:
            return None
        low, high = high, min(high * 2, _MAX_UNITS)
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        is_enough = half_width(statistic, middle, scenario) <= width
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def design_effect(per_cluster: float, correlation: float) -> float:
    """Return the factor on the number of units that a clustered sample needs (Kish 1965, section
    5.4). `correlation` is the intraclass correlation, within clusters, of the averaged values.

    >>> design_effect(5, 0.25)
    2.0
    """
    return 1.0 + (per_cluster - 1.0) * correlation


def _studies(units: int) -> int:
    """Return the number of studies to simulate for a half-width."""
    return max(200, min(_STUDIES, _MAX_DRAWS // max(units, 1)))


def _alpha_half_width(units: int, scenario: Scenario, seed: int) -> float:
    """Return half the 95% interval of alpha, by simulation; every human labels every unit."""
    m = max(scenario.humans, 2)
    yes = scenario.draw(np.random.default_rng(seed), (_studies(units), units), m).sum(axis=0)
    disagreed = (2 * yes * (m - yes) / (m * (m - 1))).mean(axis=1)
    share, n = yes.mean(axis=1) / m, units * m
    expected = 2 * share * (1 - share) * n / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(Z * np.nanstd(1 - disagreed / expected))


def _threshold_half_width(units: int, scenario: Scenario, seed: int) -> float:
    """Return half the range of the middle 95% of best thresholds over simulated studies. It falls
    with more units far more slowly than a mean's.

    In each study a grader's labels are as good as a human's. Its probability of yes is Phi(x) if
    the label is yes, else Phi(-x): x = |c + e|, with e of standard deviation 0.5 (assumed), and c
    for a probability of 1 - error of being right. The reference is humans' majority.
    """
    rng = np.random.default_rng(seed)
    studies = min(_studies(units), 400)  # each takes longer than for alpha
    labels = scenario.draw(rng, (studies, units), scenario.humans, graders=1)
    tie_break = (rng.random((studies, units)) - 0.5) * 1e-9  # an even number of humans may tie
    reference = labels[:-1].mean(axis=0) + tie_break > 0.5
    x = np.abs(-float(ndtri(scenario.error)) + 0.5 * rng.standard_normal((studies, units)))
    probabilities = ndtr(np.where(labels[-1] == 1, 1, -1) * x)
    # A study in which the reference is always the same has no kappa, and no best threshold.
    best_thresholds = [
        _best_threshold(probability, affirmed)
        for probability, affirmed in zip(probabilities, reference, strict=True)
        if 0 < affirmed.sum() < units
    ]
    if not best_thresholds:
        return math.nan
    low, high = np.quantile(best_thresholds, [0.025, 0.975])
    return float(high - low) / 2


def _best_threshold(probability: Array, affirmed: Mask) -> float:
    """Return the probability at which a cut has the highest kappa with the `affirmed` units."""
    n, n_reference, order = len(affirmed), int(affirmed.sum()), np.argsort(-probability)
    n_affirmed, hits = np.arange(1, n + 1), np.cumsum(affirmed[order])  # with a cut at each unit
    observed = (hits + (n - n_reference) - (n_affirmed - hits)) / n
    expected = (n_affirmed * n_reference + (n - n_affirmed) * (n - n_reference)) / n**2
    kappa = (observed - expected) / (1 - expected)
    return float(probability[order][int(np.argmax(kappa))])


# ---- Probability of a pass -----------------------------------------------------------------------
_TYPICAL_AGREEMENT = 0.85
"""Agreement of two annotators on a similar pairwise task, as Shen et al. (2025) report."""
_MARGIN, _RULE = AnalysisSettings().margin, DecisionSettings()  # the defaults
_MAX_STUDIES, _MAX_UNITS_IN_ALL, _UNITS_DRAWN, _LABELS_JUDGED = 300, 300_000, 100_000, 20_000
"""Most simulated studies, units in all of them, units drawn at a time, labels judged at a time."""
_LINEAR_ERROR = 200.0
"""Allowance for the relative error of the linear bound, times the number of units: one half with
400 units. The error was less than a tenth in simulations with 400 units or more."""
_MAX_PEOPLE = 10
"""Most humans that are simulated: the number of patterns of verdicts doubles with each, and the
probability of a pass rises little beyond."""
Chances = Mapping[Scope, Mapping[int, float]]
"""Probability of a pass, by scope and number of humans."""


def pass_chances(
    units: int,
    scenario: Scenario | ScaleScenario,
    people: Sequence[int],
    *,
    margin: float = _MARGIN,
    rule: DecisionSettings = _RULE,
    seed: int = 1,
) -> Chances:
    """Return the probability that a grader as good as a human passes, by scope and humans' number.

    Studies of `units` independent units are simulated, labelled by each number of `people`: labels
    are drawn, then `panels` of that many humans computed, and judged (`Panel.passes`). The grader
    errs as often as humans on average and has their average strictness. The scope of humans like
    them needs three; more than ten count as ten, which understates the probability a little.
    """
    simulated = {number: min(number, _MAX_PEOPLE) for number in people}  # humans to simulate
    passed: dict[Scope, dict[int, list[bool]]] = {
        "these": {n_humans: [] for n_humans in simulated.values()},
        "like_these": {n_humans: [] for n_humans in simulated.values() if n_humans > 2},
    }
    required = scenario.least_kappa(rule.min_people_kappa)
    rng = np.random.default_rng(seed)
    studies = max(min(_MAX_STUDIES, _MAX_UNITS_IN_ALL // units), 60)  # at least 60 for a share
    drawn_at_once = max(_UNITS_DRAWN // units, 1)
    for n_drawn in range(0, studies, drawn_at_once):
        shape = min(drawn_at_once, studies - n_drawn), units
        codes = scenario.draw(rng, shape, max(simulated.values()), graders=1)
        for chunk in np.array_split(codes, math.ceil(codes[0].size / _LABELS_JUDGED), axis=1):
            for panel in panels(chunk, scenario.distance, is_ordered=scenario.is_ordered):
                n_humans = len(panel.with_grader)
                for scope, by_number in passed.items():
                    if n_humans in by_number:
                        by_number[n_humans] += panel.passes(scope, margin, rule, required).tolist()
    return {
        scope: {
            number: float(np.mean(by_number[n_humans]))
            for number, n_humans in simulated.items()
            if n_humans in by_number
        }
        for scope, by_number in passed.items()
    }


def pass_chance(
    units: int,
    scenario: Scenario | ScaleScenario,
    *,
    humans: int = 3,
    margin: float = _MARGIN,
    rule: DecisionSettings = _RULE,
    seed: int = 1,
) -> float:
    """Return the probability in `pass_chances` for this number of `humans`, in the rule's scope."""
    chances = pass_chances(units, scenario, [humans], margin=margin, rule=rule, seed=seed)
    return chances[rule.scope].get(humans, 0.0)


def size_for(power: float, sizes: Sequence[int], chances: Sequence[float]) -> int | None:
    """Return the size from which the chance is at least `power`, interpolated between `sizes` on a
    logarithmic scale; None if the chance is less at the last size.

    >>> size_for(0.8, [50, 100, 200], [0.2, 0.7, 0.9])
    142
    >>> size_for(0.8, [50, 100], [0.2, 0.7]), size_for(0.8, [50, 100], [0.9, 1.0])
    (None, 50)
    """
    last = max((k for k, chance in enumerate(chances) if chance < power), default=-1)  # too small
    if last + 1 == len(sizes):
        return None
    if last < 0:
        return sizes[0]
    low, high = chances[last : last + 2]
    share = float((power - low) / (high - low))  # of the way to the next size
    return math.ceil(sizes[last] * math.pow(sizes[last + 1] / sizes[last], share))


def study_precision(
    *,
    pairs: int,
    subjects: int,
    humans: int,
    margin: float,
    rule: DecisionSettings = _RULE,
    noun: str = "pair",
) -> list[str]:
    """Return sentences on what a study can decide, for balanced and unbalanced labels. The answers
    of several subjects to a pair count as one unit, conservatively. `noun` names such a cluster.
    """
    if humans < 2:
        return [written("plan.one_annotator")]
    if pairs < 2:
        return []
    sample = {"pairs": pairs, "noun": noun, "agreement": _TYPICAL_AGREEMENT}
    sentences = [written("plan.can_decide", **sample)]
    if subjects != 1:
        sentences = [written("plan.can_decide_with", subjects=subjects, **sample)]
    for prevalence in (0.5, 0.9):
        scenario = Scenario(_TYPICAL_AGREEMENT, prevalence)
        scenario = replace(scenario, strictness=default_strictness(scenario.likeness))
        width = half_width("kappa", pairs, scenario)
        passes = written("plan.no_chance", kappa=scenario.kappa)
        if scenario.kappa >= rule.min_people_kappa:
            chance = pass_chance(pairs, scenario, humans=humans, margin=margin, rule=rule)
            passes = written("plan.chance", margin=margin, chance=chance)
        sentences.append(f"  {written('plan.width', prevalence=prevalence, width=width)} {passes}")
    return sentences


def _cells(codes: Codes, q: int) -> Codes:
    """Return the positions of codes (..., units) in flattened arrays (..., q), with a row for each
    rater. With them, values by rater and code are looked up for each label:

    >>> cells = _cells(np.array([[0, 2, 2], [1, 1, 0]]), 3)
    >>> cells.tolist()
    [[0, 2, 2], [4, 4, 3]]
    >>> np.array([[0.0, 0.1, 0.2], [1.0, 1.1, 1.2]]).ravel()[cells].tolist()
    [[0.0, 0.2, 0.2], [1.1, 1.1, 1.0]]
    """
    raters = codes.shape[:-1]
    return np.asarray(codes + q * np.arange(math.prod(raters)).reshape(*raters, 1))


def _counts(cells: Codes, q: int, weight: Array | None = None) -> Array:
    """Return the counts of each label (..., q) from `_cells`, with units' weights (..., units)."""
    raters = cells.shape[:-1]
    flat = None if weight is None else weight.ravel()
    return np.bincount(cells.ravel(), flat, q * math.prod(raters)).astype(float).reshape(*raters, q)


class Panel(NamedTuple):
    """Labels and kappas of a grader and some number of humans in simulated studies."""

    codes: Codes  # labels (raters, studies, units), the grader's last
    distance: Array  # between labels, (q, q)
    is_ordered: bool
    with_grader: Array  # each human's kappa with the grader, (humans, studies)
    among_people: Array  # humans' kappas, (humans, humans, studies); 0 on the diagonal
    grader_influence: Array  # of each unit on the mean of `with_grader`, (studies, units)
    people_influence: Array  # of each unit on humans' mean kappa, (studies, units)

    @property
    def human_kappa(self) -> Array:
        """Humans' mean kappa with one another, (studies,)."""
        n_people = len(self.with_grader)
        return np.asarray(self.among_people.sum(axis=(0, 1)) / (n_people * (n_people - 1)))

    def passes(self, scope: Scope, margin: float, rule: DecisionSettings, required: float) -> Mask:
        """Return the mask (studies,) of studies in which the grader meets the rule: the difference,
        its mean kappa with humans minus `human_kappa`, has a lower bound within the margin. Humans'
        kappa must be at least `required`. Baselines, which such a grader beats, are not simulated.

        For speed, bounds are linear approximations. The verdict's is computed where it may differ:
        near the margin, and where the linear bound may be wrong by its distance, the reach.
        """
        (_, units), n_people = self.grader_influence.shape, len(self.with_grader)
        alpha = bounds.level_of_look(1, rule.looks)  # of the first interim analysis
        share, allowed = self._allowed_loss(margin, rule)
        difference = self.with_grader.mean(axis=0) - self.human_kappa
        variance = self._variance_over_people() if scope == "like_these" else None

        def is_within_margin(reach: Array, studies: Mask | slice = slice(None)) -> Mask:
            """Return True where the lower bound, `reach` below `difference`, is in the margin."""
            if variance is not None:
                reach = bounds.reach_over_people(reach, variance[studies], n_people, units, alpha)
            return np.asarray(difference[studies] - reach > -allowed[studies])

        # The reach is that of mean kappa with the grader - (1 - share) x humans' kappa: a loss that
        # is a share of humans' kappa varies as that does, whereas a fixed margin has the share 0.
        influence = self.grader_influence - (1.0 - share)[:, None] * self.people_influence
        linear_reach = bounds.reaches(influence.T, alpha)
        passed = is_within_margin(linear_reach)
        can_pass = self._meets_requirements(rule, required, alpha)
        error = _LINEAR_ERROR / units * linear_reach  # largest error of `linear_reach`
        is_near = is_within_margin(linear_reach - error) != is_within_margin(linear_reach + error)
        chosen = can_pass & (is_near | (error >= linear_reach) | np.isnan(linear_reach))
        if chosen.any():
            reach = self._score_reach(chosen, share[chosen], influence[chosen], alpha)
            passed[chosen] = is_within_margin(reach, chosen)
        return np.asarray(passed & can_pass)

    def _allowed_loss(self, margin: float, rule: DecisionSettings) -> tuple[Array, Array]:
        """Return the share of humans' kappa that may be lost, 0 for a fixed margin, and the loss of
        kappa that is allowed, (studies,) each. Without a declared share the margin is fixed, unless
        it exceeds the largest share allowed, which then applies.
        """
        human_kappa = self.human_kappa
        share = np.full(len(human_kappa), rule.margin_share)
        if not rule.margin_share:
            share = np.where(margin > MAX_MARGIN_SHARE * human_kappa, MAX_MARGIN_SHARE, 0.0)
        return share, np.where(share > 0, share * human_kappa, margin)

    def _meets_requirements(self, rule: DecisionSettings, required: float, alpha: float) -> Mask:
        """Return True (studies,) where humans agree, and units and minority labels are enough."""
        humans_agree = self.human_kappa - bounds.reaches(self.people_influence.T, alpha) >= required
        labels, q = self.codes[:-1], len(self.distance)
        commonest = _counts(_cells(labels, q), q).sum(axis=0).argmax(axis=1)
        # The mean over humans of labels other than the commonest.
        minority_units = (labels != commonest[:, None]).sum(axis=2).mean(axis=0)
        has_units = labels.shape[2] >= rule.min_clusters
        return np.asarray(humans_agree & (minority_units >= rule.min_rarer) & has_units)

    def _score_reach(self, chosen: Mask, share: Array, influence: Array, alpha: float) -> Array:
        """Return the distance (studies,) of the verdict's lower bound below its estimate in the
        `chosen` studies, with their `share` and `influence` (studies, units), the jackknife's.

        It is a score bound (Tango 1998): the first value that the data clearly contradict, while
        `lower_bound` moves weights from the units to copies of them with labels that the grader did
        not give (`unseen`). The steps: all *points*, units and their copies; their weights; the
        statistic of these weights; and its `stretch`, the jackknife's standard deviation over that
        of the linear influence, which the bound uses and which may be too small.
        """
        codes, human_kappa = self.codes[:, chosen], self.human_kappa[chosen]
        (studies, units), q = influence.shape, len(self.distance)
        people = codes[:-1].swapaxes(0, 1)
        counts = (people[..., None] == np.arange(q)).sum(axis=1).reshape(-1, q)
        step = max(round((q - 1) / 10), 1)  # errors by a tenth of the scale
        unseen = coefficients.unseen_labels(counts, ordered=self.is_ordered, step=step)
        copies = [codes[-1], *(labels.reshape(studies, units) for labels in unseen)]
        grader = np.concatenate(copies, axis=1)  # (studies, points): the first copy is the data

        is_data = np.arange(grader.shape[1]) < units
        # The other copies together weigh half a unit, `PSEUDO`.
        base = np.where(is_data, 1.0, bounds.PSEUDO / (units * (len(copies) - 1)))

        # No label of the grader can change humans' kappa, which is `linear` in the units' weights.
        linear = -(1.0 - share)[:, None] * (human_kappa[:, None] + self.people_influence[chosen])
        linear, base = np.tile(linear, len(copies)), np.broadcast_to(base, grader.shape)
        statistic = _StudyKappas(people, grader, self.distance, linear, base)

        data = np.where(is_data, 1.0 / units, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            _, linear_influence = statistic.at(np.broadcast_to(data, grader.shape))
            spread = np.sqrt((data * linear_influence**2).sum(axis=1))
            stretch = np.where(spread > 1e-9, influence.std(axis=1, ddof=1) / spread, 1.0)
        estimate = self.with_grader[:, chosen].mean(axis=0) - (1.0 - share) * human_kappa
        sample = bounds.Sample(estimate, units, units, np.maximum(stretch, 1.0))  # equal units
        return np.asarray(estimate - bounds.lower_bound(statistic, sample, alpha))

    def _variance_over_people(self) -> Array:
        """Return the jackknife variance of the difference over humans, (studies,)."""
        k = len(self.with_grader)
        # Without each human: the mean with the grader, and the sum over pairs in both orders.
        with_grader = (self.with_grader.sum(axis=0) - self.with_grader) / (k - 1)
        among_people = self.among_people.sum(axis=(0, 1)) - 2.0 * self.among_people.sum(axis=0)
        differences = with_grader - among_people / ((k - 1) * (k - 2))
        return np.asarray((k - 1) / k * ((differences - differences.mean(axis=0)) ** 2).sum(axis=0))


def panels(codes: Codes, distance: Array, *, is_ordered: bool = False) -> Iterator[Panel]:
    """Yield the panels (see there) of the grader with the first two humans, three, and so on."""
    _, studies, units = codes.shape
    people, grader = len(codes) - 1, codes[-1]
    with_grader, among = np.zeros((people, studies)), np.zeros((people, people, studies))
    grader_influence, people_influence = np.zeros((2, studies, units))
    for last in range(people):
        with_grader[last], influence = _kappa_and_influence(codes[last], grader, distance)
        grader_influence += influence
        for other in range(last):
            kappa, influence = _kappa_and_influence(codes[other], codes[last], distance)
            among[last, other] = among[other, last] = kappa
            people_influence += influence
        if (n_people := last + 1) > 1:
            labels = np.concatenate([codes[:n_people], codes[-1:]])
            kappas = with_grader[:n_people], among[:n_people, :n_people]
            n_pairs = n_people * (n_people - 1) / 2  # of humans
            influences = grader_influence / n_people, people_influence / n_pairs
            yield Panel(labels, distance, is_ordered, *kappas, *influences)


def _kappa_and_influence(first: Codes, second: Codes, distance: Array) -> tuple[Array, Array]:
    """Return Cohen's kappa (studies,) of two raters with these codes (studies, units), and each
    unit's influence on it (studies, units): of n units, (n - 1) x (the mean of the n kappas that
    leave out one unit - the kappa without this unit), which is positive if the unit raises kappa.
    """
    n, q = first.shape[1], len(distance)
    observed = distance.ravel()[first * q + second]
    # Of each unit: distances of each rater's label from all labels of the other rater, summed.
    expected = np.zeros(first.shape)
    for rater, other in ((first, second), (second, first)):
        expected += (_counts(_cells(other, q), q) @ distance).ravel()[_cells(rater, q)]
    total_observed = observed.sum(axis=1)
    total_expected = expected.sum(axis=1) / 2.0  # each of n x n pairs of labels is in two sums
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = 1.0 - n * total_observed / total_expected
        # Without a unit. Its two labels are in both of its sums, but are one pair.
        left_expected = total_expected[:, None] - expected + observed
        disagreement = (n - 1) * (total_observed[:, None] - observed) / left_expected  # 1 - kappa
        influence: Array = (n - 1) * (disagreement - disagreement.mean(axis=1, keepdims=True))
    return kappa, influence


@dataclass(frozen=True)
class _StudyKappas:
    """The statistic of `bounds.Kappas` for many studies, each with its own units. Its points are
    the units with the grader's labels, then copies of them with labels that it did not give.
    """

    people: Codes  # labels (studies, people, units)
    grader: Codes  # labels (studies, points)
    distance: Array  # between labels, (q, q)
    linear: Array  # (studies, points), as in `Kappas`
    base: Array  # weights of the data, (studies, points), as in `Kappas`

    @cached_property
    def _distances(self) -> Array:
        """Distance of the grader's label from each person's, (studies, people, points)."""
        copies = self.grader.shape[1] // self.people.shape[2]
        cells = np.tile(self.people * len(self.distance), copies) + self.grader[:, None]
        return np.asarray(self.distance.ravel()[cells])

    def at(self, weights: Array) -> tuple[Array, Array]:
        """Return the statistic (studies,) and each point's influence on it (studies, points)."""
        (studies, people, units), q = self.people.shape, len(self.distance)
        people_cells, grader_cells = _cells(self.people, q), _cells(self.grader, q)
        unit_weights = weights.reshape(studies, -1, units).sum(axis=1)
        unit_weights = np.broadcast_to(unit_weights[:, None], self.people.shape)
        # A table of each person with the grader: size, summed distance, and both raters' margins.
        sums = np.empty((studies, people, 2 + 2 * q))
        sums[..., 0] = 1.0  # the sum of the weights
        sums[..., 1] = (self._distances @ weights[..., None])[..., 0]
        sums[..., 2 : 2 + q] = _counts(people_cells, q, unit_weights)
        sums[..., 2 + q :] = _counts(grader_cells, q, weights)[:, None]
        value, slope = bounds.kappas_of(sums, self.distance)  # slope: by each sum, as in `sums`
        # A point's influence is what it adds to each sum, times the slope by that sum: by its unit
        # to the size and people's margin, by its label to the distance and the grader's margin.
        by_unit = (slope[..., :1] + slope[..., 2 : 2 + q]).ravel()[people_cells].sum(axis=1)
        influence = slope[..., 2 + q :].sum(axis=1).ravel()[grader_cells]
        influence += (slope[:, None, :, 1] @ self._distances)[:, 0]
        influence += np.tile(by_unit, weights.shape[1] // units)
        linear_mean = (weights * self.linear).sum(axis=1)
        return value + linear_mean, influence + self.linear - linear_mean[:, None]


# ---- G-study and D-study -------------------------------------------------------------------------
@dataclass(frozen=True)
class VarianceComponents:
    """Components of variance; negative estimates are set to 0 (Brennan 2001, section 3.4)."""

    unit: float
    rater: float
    residual: float
    n_units: int
    n_raters: int

    @property
    def shares(self) -> tuple[float, float, float]:
        """Shares of the three components in their sum; NaN where nothing varies."""
        total = (self.unit + self.rater + self.residual) or math.nan
        return (self.unit / total, self.rater / total, self.residual / total)


@dataclass(frozen=True)
class Dependability:
    """Precision of the mean of a number of `raters` (Brennan 2001, equations 2.40 and 2.41)."""

    raters: int
    relative: float  # for ranking units: the generalizability coefficient
    absolute: float  # for units' place on the scale: the index of dependability Phi


def g_study(values: npt.ArrayLike) -> VarianceComponents:
    """Estimate variance components from a complete array (units, raters) of numbers.

    Six units by four raters (Shrout & Fleiss 1979, Table 2):

    >>> rows = ["9 2 5 8", "6 1 3 2", "8 4 6 8", "7 1 2 6", "10 5 6 9", "6 2 4 7"]
    >>> variances = g_study([[int(cell) for cell in row.split()] for row in rows])
    >>> round(variances.unit, 3), round(variances.rater, 3), round(variances.residual, 3)
    (2.556, 5.244, 1.019)
    """
    labels = np.asarray(values, dtype=float)
    if labels.ndim != 2 or min(labels.shape) < 2 or np.isnan(labels).any():
        raise InputError(
            "a G-study needs at least two units and two raters, every rater on every unit"
        )
    n, k = labels.shape
    unit_means, rater_means, mean = labels.mean(axis=1), labels.mean(axis=0), labels.mean()
    unit_mean_square = k * ((unit_means - mean) ** 2).sum() / (n - 1)
    rater_mean_square = n * ((rater_means - mean) ** 2).sum() / (k - 1)
    residuals = labels - unit_means[:, None] - rater_means[None, :] + mean
    residual = (residuals**2).sum() / ((n - 1) * (k - 1))
    unit = float(max((unit_mean_square - residual) / k, 0.0))
    rater = float(max((rater_mean_square - residual) / n, 0.0))
    return VarianceComponents(unit, rater, float(residual), n_units=n, n_raters=k)


def d_study(components: VarianceComponents, raters: int) -> Dependability:
    """Return the dependability of the mean of `raters` raters.

    For one rater these are ICC(3,1) and ICC(2,1) of Shrout & Fleiss (1979, Table 4):

    >>> one = d_study(VarianceComponents(2.5556, 5.2444, 1.0194, 6, 4), 1)
    >>> round(one.relative, 2), round(one.absolute, 2)
    (0.71, 0.29)
    """
    unit, relative_error = components.unit, components.residual / raters
    absolute_error = (components.rater + components.residual) / raters
    shares = (unit / ((unit + error) or math.nan) for error in (relative_error, absolute_error))
    return Dependability(raters, *shares)


def components_of(labels: LabelMatrix) -> VarianceComponents | None:
    """Return the G-study of the largest complete block of humans' labels; None if there is none.
    Values are the categories' numbers or ranks; on a nominal scale the binary label, 0 or 1.
    """
    humans = list(labels.humans)
    is_nominal = labels.scale.level == "nominal"
    if len(humans) < 2 or (is_nominal and not labels.has_binary):
        return None
    codes = (labels.verdicts if is_nominal else labels.codes)[:, humans]
    raters, units = complete_block(codes)
    if not raters:
        return None
    values = np.array([0.0, 1.0] if is_nominal else labels.scale.values)
    return g_study(values[codes[units][:, list(raters)]])
