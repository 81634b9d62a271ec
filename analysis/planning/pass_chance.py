"""Probability that a grader as good as a human passes, before any labelling.

Studies are simulated, and each is judged by the bounds that verdicts use
(`analysis.bootstrap.influence`), at the level of the first look: for these humans, and for humans
like them, where differences between humans count as chance too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand.analysis.agreement.coefficients import unseen_labels
from evenhand.analysis.bootstrap.influence import level_of_look, reach_over_people, reaches
from evenhand.analysis.bootstrap.score import PSEUDO, Sample, kappas_of, lower_bound
from evenhand.analysis.planning.scenarios import (
    ScaleScenario,
    Scenario,
    half_width,
    usual_strictness,
)
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.study.settings.analysis import (
    MOST_OF_PEOPLE,
    AnalysisSettings,
    DecisionSettings,
    Scope,
)
from evenhand.texts import written

_TYPICAL_AGREEMENT = 0.85
"""Agreement of two annotators on a similar pairwise task, as Shen et al. (2025) report."""
_MARGIN, _RULE = AnalysisSettings().margin, DecisionSettings()
_STUDIES, _MAX_DRAWS, _AT_ONCE, _FIT = 300, 300_000, 100_000, 20_000
_ROUGH = 200.0
"""Over the number of units: the share by which the verdict's bound may differ from a linear one.
With 400 units or more it differed by less than a tenth in simulation."""
_MOST_PEOPLE = 10
"""More are simulated as so many: the patterns of verdicts double with each, and the chance rises
only a little from there."""
Chances = Mapping[Scope, Mapping[int, float]]
"""By scope and number of people."""


@dataclass(frozen=True)
class Panel:
    """Some humans and the grader, in simulated studies.

    `codes` (raters, studies, units) are their labels, the grader's last, with these `distance`s
    (q, q). `grader` (humans, studies) and `among` (humans, humans, studies; 0 on the diagonal) are
    kappas; `grader_moves` and `people_moves` (studies, units) the units' influence on their means.
    """

    codes: Codes
    distance: Array
    is_ordered: bool
    grader: Array
    among: Array
    grader_moves: Array
    people_moves: Array

    def passes(self, scope: Scope, margin: float, rule: DecisionSettings, least: float) -> Mask:
        """Return a mask (studies,) of the studies in which the grader meets the rule, where `least`
        is the kappa that humans must reach.

        That it beats the baselines follows, as it is close to humans who agree.
        """
        (_, units), people = self.grader_moves.shape, len(self.grader)
        alpha = level_of_look(1, rule.looks)
        own = self.among.sum(axis=(0, 1)) / (people * (people - 1))
        share = np.full(len(own), rule.margin_share)
        if not rule.margin_share:
            share = np.where(margin > MOST_OF_PEOPLE * own, MOST_OF_PEOPLE, 0.0)
        allowed = np.where(share > 0, share * own, margin)
        difference = self.grader.mean(axis=0) - own
        of_people = self._over_people() if scope == "like_these" else None

        def is_near(reached: Array, some: Mask | slice = slice(None)) -> Mask:
            if of_people is not None:
                reached = reach_over_people(reached, of_people[some], people, units, alpha)
            return np.asarray(difference[some] - reached > -allowed[some])

        agree = own - reaches(self.people_moves.T, alpha) >= least
        # Units in which a human chose another label than the commonest, the mean over humans.
        given = self.codes[:-1]
        counts = _counts(_cells(given, len(self.distance)), len(self.distance)).sum(axis=0)
        rarer = (given != counts.argmax(axis=1)[:, None]).sum(axis=2).mean(axis=0)
        can_pass = agree & (rarer >= rule.min_rarer) & (units >= rule.min_clusters)
        moves = self.grader_moves - (1.0 - share)[:, None] * self.people_moves
        rough = reaches(moves.T, alpha)
        passed = is_near(rough)
        off = _ROUGH / units * rough
        # The verdict's own bound, wherever it may decide otherwise: all but for speed.
        is_open = ~(is_near(rough - off) == is_near(rough + off)) | (off >= rough) | np.isnan(rough)
        if (is_open & can_pass).any():
            some = is_open & can_pass
            near = self.of(some)._reached(own[some], share[some], moves[some], alpha)
            passed[some] = is_near(near, some)
        return np.asarray(passed & can_pass)

    def of(self, studies: Mask) -> Panel:
        """Return the panel in some of the studies."""
        return replace(
            self,
            codes=self.codes[:, studies],
            grader=self.grader[:, studies],
            among=self.among[..., studies],
            grader_moves=self.grader_moves[studies],
            people_moves=self.people_moves[studies],
        )

    def _reached(self, own: Array, share: Array, moves: Array, alpha: float) -> Array:
        """Distance of each study's lower bound below its estimate (studies,): the verdict's own.
        `moves` (studies, units) are the units' influence on it.
        """
        (studies, units), q = self.grader_moves.shape, len(self.distance)
        people = self.codes[:-1].swapaxes(0, 1)
        counts = (people[..., None] == np.arange(q)).sum(axis=1).reshape(-1, q)
        step = max(round((q - 1) / 10), 1)
        unseen = unseen_labels(counts, ordered=self.is_ordered, step=step)
        grader = np.stack([self.codes[-1], *(each.reshape(studies, units) for each in unseen)], 1)
        kinds = grader.shape[1]
        base = np.ones((kinds, units))
        base[1:] = PSEUDO / (units * (kinds - 1))
        linear = -(1.0 - share)[:, None] * (own[:, None] + self.people_moves)
        statistic = _OfStudies(
            people,
            grader.reshape(studies, -1),
            self.distance,
            np.tile(linear, kinds),
            np.broadcast_to(base.ravel(), (studies, base.size)),
        )
        data = np.where(np.arange(base.size) < units, 1.0 / units, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            influence = statistic.at(np.broadcast_to(data, (studies, base.size)))[1]
            spread = np.sqrt((data * influence**2).sum(axis=1))
            stretch = np.where(spread > 1e-9, moves.std(axis=1, ddof=1) / spread, 1.0)
        estimate = self.grader.mean(axis=0) - (1.0 - share) * own
        sample = Sample(estimate, units, units, np.maximum(stretch, 1.0))
        return np.asarray(estimate - lower_bound(statistic, sample, alpha))

    def _over_people(self) -> Array:
        """Jackknife variance of the difference over humans (studies,)."""
        k = len(self.grader)
        left = (self.grader.sum(axis=0) - self.grader) / (k - 1)
        both = self.among.sum(axis=(0, 1)) - 2.0 * self.among.sum(axis=0)
        without = left - both / ((k - 1) * (k - 2))
        return np.asarray((k - 1) / k * ((without - without.mean(axis=0)) ** 2).sum(axis=0))


@dataclass(frozen=True)
class _OfStudies:
    """What `analysis.bootstrap.score.Kappas` is, of many studies at once, each on its own units:
    labels of `people` (studies, people, units) and of the grader (studies, points), for whom the
    units stand several times, as labelled and with other labels. `linear` and `base` are
    (studies, points).
    """

    people: Codes
    grader: Codes
    distance: Array
    linear: Array
    base: Array

    @cached_property
    def _apart(self) -> Array:
        """Distances of the grader's label from each person's, (studies, people, points)."""
        times = self.grader.shape[1] // self.people.shape[2]
        pairs = np.tile(self.people * len(self.distance), times) + self.grader[:, None]
        return np.asarray(self.distance.ravel()[pairs])

    @cached_property
    def _cells(self) -> tuple[Codes, Codes]:
        """Positions of the labels of people and of the grader in their margins, (.., q) flat."""
        q = len(self.distance)
        return _cells(self.people, q), _cells(self.grader, q)

    def at(self, weights: Array) -> tuple[Array, Array]:
        """Return the statistic (studies,) and each point's influence on it (studies, points)."""
        (studies, people, units), q = self.people.shape, len(self.distance)
        of_people, of_grader = self._cells
        of_units = weights.reshape(studies, -1, units).sum(axis=1)
        of_units = np.broadcast_to(of_units[:, None], self.people.shape)
        sums = np.empty((studies, people, 2 + 2 * q))
        sums[..., 0] = 1.0
        sums[..., 1] = (self._apart @ weights[..., None])[..., 0]
        sums[..., 2 : 2 + q] = _counts(of_people, q, of_units)
        sums[..., 2 + q :] = _counts(of_grader, q, weights)[:, None]
        value, slope = kappas_of(sums, self.distance)
        of_first = (slope[..., :1] + slope[..., 2 : 2 + q]).ravel()[of_people].sum(axis=1)
        moves = slope[..., 2 + q :].sum(axis=1).ravel()[of_grader]
        moves += (slope[:, None, :, 1] @ self._apart)[:, 0]
        moves += np.tile(of_first, weights.shape[1] // units)
        mean = (weights * self.linear).sum(axis=1)
        return value + mean, moves + self.linear - mean[:, None]


def _cells(codes: Codes, q: int) -> Codes:
    """Positions of codes (..., units) in the flat counts (..., q) of each rater's labels."""
    raters = codes.shape[:-1]
    return np.asarray(codes + q * np.arange(math.prod(raters)).reshape(*raters, 1))


def _counts(cells: Codes, q: int, weight: Array | None = None) -> Array:
    """How often each label was given, (..., q), each unit counting by its weight (..., units)."""
    raters = cells.shape[:-1]
    flat = None if weight is None else weight.ravel()
    counts = np.bincount(cells.ravel(), flat, q * math.prod(raters)).astype(float)
    return counts.reshape(*raters, q)


def pass_chances(
    units: int,
    scenario: Scenario | ScaleScenario,
    people: Sequence[int],
    *,
    margin: float = _MARGIN,
    rule: DecisionSettings = _RULE,
    seed: int = 1,
) -> Chances:
    """Probability that a grader as good as a human passes, by scope and number of humans.

    The scopes are these humans, and humans like them.

    By simulated studies of `units` independent units, labelled by each number of `people`. The
    grader errs as often as humans do on average and has their average strictness. For humans like
    them there must be three; more than ten count as ten, which understates their chance a little.
    """
    simulated = {k: min(k, _MOST_PEOPLE) for k in people}
    passed: dict[Scope, dict[int, list[bool]]] = {
        "these": {k: [] for k in simulated.values()},
        "like_these": {k: [] for k in simulated.values() if k > 2},
    }
    least = scenario.least_kappa(rule.min_people_kappa)
    rng = np.random.default_rng(seed)
    studies = max(min(_STUDIES, _MAX_DRAWS // units), 60)
    at_once = max(_AT_ONCE // units, 1)
    for first in range(0, studies, at_once):
        shape = min(at_once, studies - first), units
        codes = scenario.draw(rng, shape, max(simulated.values()), graders=1)
        for some in np.array_split(codes, math.ceil(codes[0].size / _FIT), axis=1):
            for panel in panels(some, scenario.distance, is_ordered=scenario.is_ordered):
                for scope, by_number in passed.items():
                    if (number := len(panel.grader)) in by_number:
                        by_number[number] += panel.passes(scope, margin, rule, least).tolist()
    return {
        scope: {k: float(np.mean(of[own])) for k, own in simulated.items() if own in of}
        for scope, of in passed.items()
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
    """Probability that a grader as good as a human can replace one, on `units` independent units.

    `rule` is the one that it is to meet, and sets the scope: these humans, or humans like them.
    """
    found = pass_chances(units, scenario, [humans], margin=margin, rule=rule, seed=seed)
    return found[rule.scope].get(humans, 0.0)


def size_for(power: float, sizes: Sequence[int], chances: Sequence[float]) -> int | None:
    """Return the size from which the chance reaches `power`, or None where it does not.

    Interpolated between sizes on a logarithmic scale.

    >>> size_for(0.8, [50, 100, 200], [0.2, 0.7, 0.9])
    142
    >>> size_for(0.8, [50, 100], [0.2, 0.7]), size_for(0.8, [50, 100], [0.9, 1.0])
    (None, 50)
    """
    below = max((n for n, chance in enumerate(chances) if chance < power), default=-1)
    if below + 1 == len(sizes):
        return None
    if below < 0:
        return sizes[0]
    ends = chances[below : below + 2]
    share = float((power - ends[0]) / (ends[1] - ends[0]))
    return math.ceil(sizes[below] * math.pow(sizes[below + 1] / sizes[below], share))


def study_precision(
    *,
    pairs: int,
    subjects: int,
    humans: int,
    margin: float,
    rule: DecisionSettings = _RULE,
    noun: str = "pair",
) -> list[str]:
    """Write sentences on what a study decides, for balanced and for lopsided verdicts.

    A pair's answers by several subjects count as one unit, which is the cautious reading: they
    resemble one another. `noun` is the name of a pair, where it is another kind of cluster.
    """
    if humans < 2:
        return [written("plan.one_annotator")]
    if pairs < 2:  # one tells nothing of others
        return []
    sample = {"pairs": pairs, "noun": noun, "agreement": _TYPICAL_AGREEMENT}
    sentences = [
        written("plan.can_decide", **sample)
        if subjects == 1
        else written("plan.can_decide_with", subjects=subjects, **sample)
    ]
    for prevalence in (0.5, 0.9):
        scenario = Scenario(_TYPICAL_AGREEMENT, prevalence)
        scenario = replace(scenario, strictness=usual_strictness(scenario.likeness))
        width = half_width("kappa", pairs, scenario)
        passes = written("plan.no_chance", kappa=scenario.kappa)
        if scenario.kappa >= rule.min_people_kappa:
            chance = pass_chance(pairs, scenario, humans=humans, margin=margin, rule=rule)
            passes = written("plan.chance", margin=margin, chance=chance)
        known = written("plan.width", prevalence=prevalence, width=width)
        sentences.append(f"  {known} {passes}")
    return sentences


def panels(codes: Codes, distance: Array, *, is_ordered: bool = False) -> Iterator[Panel]:
    """Yield panels of the grader with the first two humans, the first three, and so on.

    `codes` are labels (raters, studies, units), the grader's last, with these `distance`s (q, q).
    """
    _, studies, units = codes.shape
    people, grader = len(codes) - 1, codes[-1]
    with_grader, among = np.zeros((people, studies)), np.zeros((people, people, studies))
    grader_moves, people_moves = np.zeros((2, studies, units))
    for new in range(people):
        with_grader[new], moves = _kappa(codes[new], grader, distance)
        grader_moves += moves
        for other in range(new):
            among[new, other], moves = _kappa(codes[other], codes[new], distance)
            among[other, new] = among[new, other]
            people_moves += moves
        k = new + 1
        if k > 1:
            yield Panel(
                np.concatenate([codes[:k], codes[-1:]]),
                distance,
                is_ordered,
                with_grader[:k],
                among[:k, :k],
                grader_moves / k,
                people_moves / (k * (k - 1) / 2),
            )


def _kappa(first: Codes, second: Codes, distance: Array) -> tuple[Array, Array]:
    """Return Cohen's kappa (studies,) of two raters with these codes (studies, units), and each
    unit's influence on it (studies, units).

    The influence of a unit is by how much the mean kappa without one unit is above that without
    this one, times the other units.
    """
    n, q = first.shape[1], len(distance)
    apart = distance.ravel()[first * q + second]
    of_pairs = np.zeros(first.shape)
    for one, other in ((first, second), (second, first)):
        expected = _counts(_cells(other, q), q) @ distance
        of_pairs += expected.ravel()[_cells(one, q)]
    total = apart.sum(axis=1)
    chance = of_pairs.sum(axis=1) / 2.0
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = 1.0 - n * total / chance
        left = (n - 1) * (total[:, None] - apart) / (chance[:, None] - of_pairs + apart)
        brings: Array = (n - 1) * (left - left.mean(axis=1, keepdims=True))
    return kappa, brings
