"""Plan a study before annotators are paid: the precision of a study of some size (`half_width`),
and the probability that a grader as good as a human passes (`pass_chances`).

Formulas are used if they hold (two raters, a binary label, independent units). Otherwise studies
are simulated, of binary labels (`Scenario`) or of labels on a scale (`ScaleScenario`): raters'
perceptions of a unit are correlated, and humans may differ in strictness.

A simulated study is judged (`Panel`) by the bounds that verdicts use (`analysis.bootstrap.bounds`),
at the level of the first interim analysis: for these humans, and for humans like them, which
includes differences between humans in the sampling error.

*G-study and D-study* (`g_study`, `d_study`; Brennan 2001, chapters 2 and 3) start from one label of
each rater for each unit. The G-study splits the labels' variance into units, raters (leniency) and
the residual by an analysis of variance; the D-study gives the dependability of a number of raters.
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
        raters, human_share = people + graders, _strict_share(self.strictness)
        strict_share = np.repeat([human_share, 0.0], [people, graders])[:, None]  # s, (raters, 1)
        quality = math.sqrt(self.likeness) * rng.standard_normal(shape)
        strictness = np.sqrt(strict_share) * rng.standard_normal((raters, shape[0]))
        noise_sd = np.sqrt(1.0 - self.likeness - strict_share)[..., None]
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
        """Sums of the table of two humans' labels, (1, 2 + 2q), see `_parts_of`."""
        joint, _, _ = self._tables(self.likeness)
        return bounds.table_sums(joint[None], self.distance)

    def kappa_half_width(self, units: float) -> float:
        """Return half the 95% interval of two raters' kappa, by the delta method."""
        _, (slopes,) = bounds.kappas_of(self._sums, self.distance)  # of kappa, by each of `_sums`
        by_size, by_distance, by_first, by_second = _parts_of(slopes)
        influence = by_size + by_distance * self.distance + by_first[:, None] + by_second  # (q, q)
        joint, _, _ = self._tables(self.likeness)
        return float(Z * math.sqrt((joint * influence**2).sum() / units))


def _parts_of(sums: Array) -> tuple[Array, Array, Array, Array]:
    """Return, as views, the size, the summed distance and both raters' margins (..., q) in `sums`
    (..., 2 + 2q), all that kappa depends on (`bounds.table_sums`), or in kappa's slopes by them.
    """
    q = sums.shape[-1] // 2 - 1
    return sums[..., 0], sums[..., 1], sums[..., 2 : 2 + q], sums[..., 2 + q :]


def default_strictness(likeness: float) -> float:
    """Return the default strictness: 0.25, but no more than 3/5 of humans' disagreement.

    >>> default_strictness(0.891), round(default_strictness(Scenario(0.95, 0.5).likeness), 3)
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


def _n_studies(units: int) -> int:
    """Return the number of studies to simulate for a half-width."""
    return max(200, min(_STUDIES, _MAX_DRAWS // max(units, 1)))


def _alpha_half_width(units: int, scenario: Scenario, seed: int) -> float:
    """Return half the 95% interval of alpha, by simulation; every human labels every unit."""
    m = max(scenario.humans, 2)
    yes = scenario.draw(np.random.default_rng(seed), (_n_studies(units), units), m).sum(axis=0)
    disagreed = (2 * yes * (m - yes) / (m * (m - 1))).mean(axis=1)
    share, n = yes.mean(axis=1) / m, units * m
    expected = 2 * share * (1 - share) * n / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(Z * np.nanstd(1 - disagreed / expected))


def _threshold_half_width(units: int, scenario: Scenario, seed: int) -> float:
    """Return half the range of the middle 95% of best thresholds over simulated studies. It falls
    with more units far more slowly than a mean's.

    In each study a grader's labels are as good as a human's. Its probability of yes is Phi(x) if
    the label is yes, else Phi(-x): x = |c + e|, with Phi(c) the probability that a label is right,
    1 - `error`, and e normal with standard deviation 0.5 (assumed). Humans' majority is right.
    """
    rng = np.random.default_rng(seed)
    studies = min(_n_studies(units), 400)  # each takes longer than for alpha
    labels = scenario.draw(rng, (studies, units), scenario.humans, graders=1)
    tie_break = (rng.random((studies, units)) - 0.5) * 1e-9  # an even number of humans may tie
    reference = labels[:-1].mean(axis=0) + tie_break > 0.5
    c = -float(ndtri(scenario.error))  # Phi(c) is 1 - error
    x = np.abs(c + 0.5 * rng.standard_normal((studies, units)))
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

    Studies of `units` independent units, labelled by each number of `people`, are drawn and judged
    (`Panel.passes`). The grader errs as often as humans on average and has their average
    strictness. The scope of humans like them needs three; more than ten count as ten, which
    understates the probability a little.
    """
    simulated = {number: min(number, _MAX_PEOPLE) for number in people}  # n humans, by number
    passed: dict[Scope, dict[int, list[bool]]] = {
        "these": {n: [] for n in simulated.values()},
        "like_these": {n: [] for n in simulated.values() if n > 2},
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
                for scope, by_n in passed.items():
                    if (n := len(panel.grader_kappas)) in by_n:
                        by_n[n] += panel.passes(scope, margin, rule, required).tolist()
    return {
        scope: {number: float(np.mean(by_n[n])) for number, n in simulated.items() if n in by_n}
        for scope, by_n in passed.items()
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
    fields = {"pairs": pairs, "subjects": subjects, "noun": noun, "agreement": _TYPICAL_AGREEMENT}
    sentences = [written("plan.can_decide" if subjects == 1 else "plan.can_decide_with", **fields)]
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


# ---- Verdicts on simulated studies ---------------------------------------------------------------
# A `Panel` has the kappas of a grader and some number of humans in many studies at once; `panels`
# computes it for two humans, three, and so on. `Panel.passes` judges each study by a bound on
#
#     W - r H    W: mean kappa of the grader with a human;  H: mean kappa of two humans;
#                r: share of H that the grader must retain, 1 for a fixed margin.
#
# The bound follows from the *influence* of each unit on W and on H, by the jackknife: of n units,
# (n - 1) x (the mean of the n kappas that leave out one unit - the kappa without this unit). It is
# positive if the unit raises kappa, and has the mean 0.


class Panel(NamedTuple):
    """Labels and kappas of a grader and some number of humans in simulated studies."""

    codes: Codes  # labels (raters, studies, units), the grader's last
    distance: Array  # between labels, (q, q)
    is_ordered: bool
    grader_kappas: Array  # each human's kappa with the grader, (humans, studies)
    human_kappas: Array  # of every two humans, (humans, humans, studies); 0 on the diagonal
    grader_influence: Array  # of each unit on W, (studies, units)
    human_influence: Array  # of each unit on H, (studies, units)

    @property
    def human_kappa(self) -> Array:
        """H, humans' mean kappa with one another, (studies,)."""
        k = len(self.grader_kappas)
        return np.asarray(self.human_kappas.sum(axis=(0, 1)) / (k * (k - 1)))

    def passes(self, scope: Scope, margin: float, rule: DecisionSettings, required: float) -> Mask:
        """Return the mask (studies,) of studies in which the grader meets the rule: W - H has a
        lower bound above minus the allowed loss, and H one of at least `required`. Baselines, which
        such a grader beats, are not simulated.

        For speed, the bound of W - H is a linear approximation. The verdict's (`_score_reach`)
        replaces it where its largest error may change the result, or is as large as its distance
        to W - H, the reach: with 200 units or fewer.
        """
        (n_humans, _), units = self.grader_kappas.shape, self.codes.shape[2]
        alpha = bounds.level_of_look(1, rule.looks)  # of the first interim analysis
        retained, allowed_loss = self._retained_and_loss(margin, rule)
        difference = self.grader_kappas.mean(axis=0) - self.human_kappa  # W - H
        variance = self._variance_over_humans() if scope == "like_these" else None

        def is_within_margin(reach: Array, studies: Mask | slice = slice(None)) -> Mask:
            """Return True where the lower bound, `reach` below `difference`, is in the margin."""
            if variance is not None:
                reach = bounds.reach_over_people(reach, variance[studies], n_humans, units, alpha)
            return np.asarray(difference[studies] - reach > -allowed_loss[studies])

        # The reach is that of W - r H: a loss that is a share of H varies in samples as H does.
        influence = self.grader_influence - retained[:, None] * self.human_influence
        linear_reach = bounds.reaches(influence.T, alpha)
        passed = is_within_margin(linear_reach)
        can_pass = self._meets_requirements(rule, required, alpha)
        error = _LINEAR_ERROR / units * linear_reach  # largest error of `linear_reach`
        is_near = is_within_margin(linear_reach - error) != is_within_margin(linear_reach + error)
        chosen = can_pass & (is_near | (error >= linear_reach) | np.isnan(linear_reach))
        if chosen.any():
            reach = self._score_reach(chosen, retained[chosen], influence[chosen], alpha)
            passed[chosen] = is_within_margin(reach, chosen)
        return np.asarray(passed & can_pass)

    def _retained_and_loss(self, margin: float, rule: DecisionSettings) -> tuple[Array, Array]:
        """Return r and the allowed loss of kappa, (studies,) each. Without a declared share the
        margin is fixed, unless it exceeds the largest share of H allowed, which then applies.
        """
        human_kappa = self.human_kappa
        default = np.where(margin > MAX_MARGIN_SHARE * human_kappa, MAX_MARGIN_SHARE, 0.0)
        share = np.full(len(default), rule.margin_share) if rule.margin_share else default
        return 1.0 - share, np.where(share > 0, share * human_kappa, margin)

    def _meets_requirements(self, rule: DecisionSettings, required: float, alpha: float) -> Mask:
        """Return True (studies,) where humans agree, and units and minority labels are enough."""
        humans_agree = self.human_kappa - bounds.reaches(self.human_influence.T, alpha) >= required
        labels, q = self.codes[:-1], len(self.distance)
        commonest = _counts(_cells(labels, q), q).sum(axis=0).argmax(axis=1)
        minority_units = (labels != commonest[:, None]).sum(axis=2).mean(axis=0)  # humans' mean
        has_units = labels.shape[2] >= rule.min_clusters
        return np.asarray(humans_agree & (minority_units >= rule.min_rarer) & has_units)

    def _variance_over_humans(self) -> Array:
        """Return the jackknife variance of W - H over humans, (studies,)."""
        k = len(self.grader_kappas)
        # Without each human: W, and the sum over the other humans' pairs in both orders.
        grader_kappa = (self.grader_kappas.sum(axis=0) - self.grader_kappas) / (k - 1)
        pair_sums = self.human_kappas.sum(axis=(0, 1)) - 2.0 * self.human_kappas.sum(axis=0)
        differences = grader_kappa - pair_sums / ((k - 1) * (k - 2))
        return np.asarray((k - 1) / k * ((differences - differences.mean(axis=0)) ** 2).sum(axis=0))

    def _score_reach(self, chosen: Mask, retained: Array, influence: Array, alpha: float) -> Array:
        """Return the distance (studies,) of the verdict's lower bound below W - r H in the `chosen`
        studies, with their r, `retained`, and the jackknife's `influence` (studies, units).

        It is a score bound (Tango 1998): the first value that the data clearly contradict, by the
        linear influence of W - r H. `stretch` raises the standard deviation to the jackknife's.
        """
        statistic, units = self._statistic(chosen, retained), influence.shape[1]
        is_data = np.arange(statistic.base.shape[1]) < units
        data = np.broadcast_to(np.where(is_data, 1.0 / units, 0.0), statistic.base.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            _, linear_influence = statistic.at(data)
            spread = np.sqrt((data * linear_influence**2).sum(axis=1))
            stretch = np.where(spread > 1e-9, influence.std(axis=1, ddof=1) / spread, 1.0)
        estimate = self.grader_kappas[:, chosen].mean(axis=0) - retained * self.human_kappa[chosen]
        sample = bounds.Sample(estimate, units, units, np.maximum(stretch, 1.0))  # equal units
        return np.asarray(estimate - bounds.lower_bound(statistic, sample, alpha))

    def _statistic(self, chosen: Mask, retained: Array) -> "_StudyKappas":
        """Return W - r H of the `chosen` studies as a function of the weights of points."""
        codes, q = self.codes[:, chosen], len(self.distance)
        (_, studies, units), humans = codes.shape, codes[:-1].swapaxes(0, 1)
        counts = (humans[..., None] == np.arange(q)).sum(axis=1).reshape(-1, q)  # by study and unit
        step = max(round((q - 1) / 10), 1)  # errors by a tenth of the scale
        unseen = coefficients.unseen_labels(counts, ordered=self.is_ordered, step=step)
        copies = [codes[-1], *(labels.reshape(studies, units) for labels in unseen)]
        grader, n_unseen = np.concatenate(copies, axis=1), units * len(unseen)
        # Each unit of the data has the weight 1, all other copies together half of that, `PSEUDO`.
        base = np.repeat([1.0, bounds.PSEUDO / n_unseen], [units, n_unseen])
        # The mean of these values over units is -r H, as the influence has the mean 0.
        linear = self.human_kappa[chosen, None] + self.human_influence[chosen]
        linear = np.tile(-retained[:, None] * linear, len(copies))
        base = np.broadcast_to(base, grader.shape)
        return _StudyKappas(humans, grader, self.distance, linear, base)


def panels(codes: Codes, distance: Array, *, is_ordered: bool = False) -> Iterator[Panel]:
    """Yield the panels (see there) of the grader with the first two humans, three, and so on."""
    _, studies, units = codes.shape
    humans, grader = len(codes) - 1, codes[-1]
    grader_kappas, human_kappas = np.zeros((humans, studies)), np.zeros((humans, humans, studies))
    grader_influence, human_influence = np.zeros((2, studies, units))  # sums over kappas
    for last in range(humans):
        grader_kappas[last], influence = _kappa_and_influence(codes[last], grader, distance)
        grader_influence += influence
        for other in range(last):
            kappa, influence = _kappa_and_influence(codes[other], codes[last], distance)
            human_kappas[last, other] = human_kappas[other, last] = kappa
            human_influence += influence
        if (n_humans := last + 1) > 1:
            labels = np.concatenate([codes[:n_humans], codes[-1:]])
            kappas = grader_kappas[:n_humans], human_kappas[:n_humans, :n_humans]
            n_pairs = n_humans * (n_humans - 1) / 2
            influences = grader_influence / n_humans, human_influence / n_pairs
            yield Panel(labels, distance, is_ordered, *kappas, *influences)


def _kappa_and_influence(first: Codes, second: Codes, distance: Array) -> tuple[Array, Array]:
    """Return Cohen's kappa (studies,) of two raters with these codes (studies, units), and each
    unit's influence on it (studies, units).
    """
    n, q = first.shape[1], len(distance)
    observed = distance[first, second]
    # Of each unit: distances of each rater's label from all labels of the other rater, summed.
    expected = np.zeros(first.shape)
    for rater, other in ((first, second), (second, first)):
        expected += (_counts(_cells(other, q), q) @ distance).ravel()[_cells(rater, q)]
    total_observed = observed.sum(axis=1)
    total_expected = expected.sum(axis=1) / 2.0  # each of n x n pairs of labels is in two sums
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = 1.0 - n * total_observed / total_expected
        # Without a unit, the pairs that have a label of it are missing. They are those in
        # `expected`, which has the pair of its two labels twice, once for each rater.
        left_expected = total_expected[:, None] - expected + observed
        disagreement = (n - 1) * (total_observed[:, None] - observed) / left_expected  # 1 - kappa
        influence: Array = (n - 1) * (disagreement - disagreement.mean(axis=1, keepdims=True))
    return kappa, influence


@dataclass(frozen=True)
class _StudyKappas:
    """W - r H of many studies, each with its own units, as a function of the weights of points: the
    units with the grader's labels (the data), then copies of all units with labels that it did not
    give. `bounds.Kappas` has the same for one study.
    """

    humans: Codes  # labels (studies, humans, units)
    grader: Codes  # labels (studies, points)
    distance: Array  # between labels, (q, q)
    linear: Array  # values of the points whose mean is -r H, which is linear, (studies, points)
    base: Array  # weights from which a bound starts, almost all on the data, (studies, points)

    @cached_property
    def _distances(self) -> Array:
        """Distance of the grader's label from each human's, (studies, humans, points)."""
        n_copies = self.grader.shape[1] // self.humans.shape[2]  # with the data
        return np.asarray(self.distance[np.tile(self.humans, n_copies), self.grader[:, None]])

    def at(self, weights: Array) -> tuple[Array, Array]:
        """Return the statistic (studies,) and each point's influence on it (studies, points)."""
        (studies, humans, units), q = self.humans.shape, len(self.distance)
        human_cells, grader_cells = _cells(self.humans, q), _cells(self.grader, q)
        unit_weights = weights.reshape(studies, -1, units).sum(axis=1)  # of a unit and its copies
        unit_weights = np.broadcast_to(unit_weights[:, None], self.humans.shape)
        sums = np.empty((studies, humans, 2 + 2 * q))  # of the table of each human with the grader
        size, distance, human_margin, grader_margin = _parts_of(sums)  # filled here:
        size[...] = 1.0  # the sum of the weights
        distance[...] = (self._distances @ weights[..., None])[..., 0]
        human_margin[...] = _counts(human_cells, q, unit_weights)
        grader_margin[...] = _counts(grader_cells, q, weights)[:, None]
        mean_kappa, slopes = bounds.kappas_of(sums, self.distance)
        by_size, by_distance, by_human_margin, by_grader_margin = _parts_of(slopes)
        # A point's influence is what it adds to each sum, times the slope by that sum: by its unit
        # to the size and humans' margin, by its label to the distance and the grader's margin.
        of_unit = (by_size[..., None] + by_human_margin).ravel()[human_cells].sum(axis=1)
        influence = by_grader_margin.sum(axis=1).ravel()[grader_cells]
        influence += (by_distance[:, None] @ self._distances)[:, 0]
        influence += np.tile(of_unit, weights.shape[1] // units)
        linear_mean = (weights * self.linear).sum(axis=1)
        return mean_kappa + linear_mean, influence + self.linear - linear_mean[:, None]


def _cells(codes: Codes, q: int) -> Codes:
    """Return the positions of codes (..., units) in flattened arrays (..., q), which have a row for
    each rater: `values.ravel()[cells]` looks up each label's value in the row of its rater.

    >>> _cells(np.array([[0, 2, 2], [1, 1, 0]]), 3).tolist()  # two raters, three units
    [[0, 2, 2], [4, 4, 3]]
    """
    raters = codes.shape[:-1]
    return np.asarray(codes + q * np.arange(math.prod(raters)).reshape(*raters, 1))


def _counts(cells: Codes, q: int, weight: Array | None = None) -> Array:
    """Return the counts of each label (..., q) from `_cells`, with units' weights (..., units)."""
    raters = cells.shape[:-1]
    flat = None if weight is None else weight.ravel()
    return np.bincount(cells.ravel(), flat, q * math.prod(raters)).astype(float).reshape(*raters, q)


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
