"""Probability that a grader as good as a human passes, before any labelling.

Studies are simulated, and each is judged by the bounds that verdicts use
(`analysis.bootstrap.influence`), at the level of the first look: for these humans, and for humans
like them, where differences between humans count as chance too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.influence import reaches, reaches_over_people
from evenhand.analysis.bootstrap.looks import level_of_look
from evenhand.analysis.bootstrap.score import PSEUDO, Kappas, Sample, lower_bound, table_sums
from evenhand.analysis.planning.scenarios import Scenario, half_width, usual_strictness
from evenhand.analysis.types import Array, Integers, Mask
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
_STUDIES, _MAX_DRAWS, _AT_ONCE = 300, 300_000, 100_000
_MOST_PEOPLE = 10
"""More are simulated as so many: the patterns of verdicts double with each, and the chance rises
only a little from there."""
Chances = Mapping[Scope, Mapping[int, float]]
"""By scope and number of people."""


@dataclass(frozen=True)
class Panel:
    """Some humans and the grader, in simulated studies.

    `grader` (humans, studies) and `among` (humans, humans, studies; 0 on the diagonal) are kappas;
    `grader_moves` and `people_moves` (units, studies) the units' influence on their means;
    `patterns` (units, studies) encodes the verdicts, humans in binary digits and the grader last;
    `rarer` (studies,) counts units of the rarer verdict, the mean over humans.
    """

    grader: Array
    among: Array
    grader_moves: Array
    people_moves: Array
    patterns: Integers
    rarer: Array

    def passes(self, scope: Scope, margin: float, rule: DecisionSettings) -> Mask:
        """Return a mask (studies,) of the studies in which the grader meets the rule.

        That it beats the baselines follows, as it is close to humans who agree.
        """
        (units, _), people = self.grader_moves.shape, len(self.grader)
        alpha = level_of_look(1, rule.looks)
        own = self.among.sum(axis=(0, 1)) / (people * (people - 1))
        share = np.full(len(own), rule.margin_share)
        if not rule.margin_share:
            share = np.where(margin > MOST_OF_PEOPLE * own, MOST_OF_PEOPLE, 0.0)
        allowed = np.where(share > 0, share * own, margin)
        difference = self.grader.mean(axis=0) - own
        reached = self._reached(own, share, alpha)
        if scope == "like_these":
            reached = reaches_over_people(reached, self._over_people(), people, units, alpha)
        is_near = difference - reached > -allowed
        agree = own - reaches(self.people_moves, alpha) >= rule.min_people_kappa
        enough = (self.rarer >= rule.min_rarer) & (units >= rule.min_clusters)
        found: Mask = is_near & agree & enough
        return found

    def _reached(self, own: Array, share: Array, alpha: float) -> Array:
        """Distance of each study's lower bound below its estimate (studies,).

        It is the verdict's own bound, computed on patterns of verdicts in place of single units.
        """
        (units, studies), people = self.grader_moves.shape, len(self.grader)
        every = np.arange(2 ** (people + 1))
        said = (every[:, None] >> np.arange(people, -1, -1)) & 1
        tables = np.zeros((len(every), people, 2, 2))
        for person in range(people):
            tables[every, person, said[:, person], said[:, -1]] = 1.0
        study = np.arange(studies)
        counts = np.zeros((studies, len(every)))
        np.add.at(counts, (np.broadcast_to(study, self.patterns.shape), self.patterns), 1.0)
        by_people = counts.reshape(studies, -1, 2).sum(axis=2, keepdims=True)
        base = counts + np.repeat(by_people, 2, axis=2).reshape(counts.shape) * PSEUDO / units / 2
        moves = np.zeros((studies, len(every) // 2))
        moves[study, self.patterns // 2] = self.people_moves
        linear = -(1.0 - share)[:, None] * (own[:, None] + np.repeat(moves, 2, axis=1))
        apart = 1.0 - np.eye(2)
        statistic = Kappas(table_sums(tables, apart), apart, linear, base)
        with np.errstate(invalid="ignore", divide="ignore"):
            influence = statistic.at(counts / units)[1]
            spread = np.sqrt((counts * influence**2).sum(axis=1) / units)
            moved = self.grader_moves - (1.0 - share) * self.people_moves
            stretch = np.where(spread > 1e-9, moved.std(axis=0, ddof=1) / spread, 1.0)
        estimate = self.grader.mean(axis=0) - (1.0 - share) * own
        sample = Sample(estimate, units, units, np.maximum(stretch, 1.0))
        reached: Array = estimate - lower_bound(statistic, sample, alpha)
        return reached

    def _over_people(self) -> Array:
        """Jackknife variance of the difference over humans (studies,)."""
        k = len(self.grader)
        left = (self.grader.sum(axis=0) - self.grader) / (k - 1)
        both = self.among.sum(axis=(0, 1)) - 2.0 * self.among.sum(axis=0)
        without = left - both / ((k - 1) * (k - 2))
        variance: Array = (k - 1) / k * ((without - without.mean(axis=0)) ** 2).sum(axis=0)
        return variance


def pass_chances(
    units: int,
    scenario: Scenario,
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
    rng = np.random.default_rng(seed)
    studies = max(min(_STUDIES, _MAX_DRAWS // units), 60)
    at_once = max(_AT_ONCE // units, 1)
    for first in range(0, studies, at_once):
        shape = min(at_once, studies - first), units
        verdicts = scenario.draw(rng, shape, max(simulated.values()), graders=1)
        for panel in panels(np.where(verdicts, 1.0, -1.0).swapaxes(1, 2)):
            for scope, by_number in passed.items():
                if (number := len(panel.grader)) in by_number:
                    by_number[number] += panel.passes(scope, margin, rule).tolist()
    return {
        scope: {k: float(np.mean(of[own])) for k, own in simulated.items() if own in of}
        for scope, of in passed.items()
    }


def pass_chance(
    units: int,
    scenario: Scenario,
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
        strictness = usual_strictness(_TYPICAL_AGREEMENT, prevalence)
        scenario = Scenario(_TYPICAL_AGREEMENT, prevalence, strictness=strictness)
        width = half_width("kappa", pairs, scenario)
        passes = written("plan.no_chance", kappa=scenario.kappa)
        if scenario.kappa >= rule.min_people_kappa:
            chance = pass_chance(pairs, scenario, humans=humans, margin=margin, rule=rule)
            passes = written("plan.chance", margin=margin, chance=chance)
        known = written("plan.width", prevalence=prevalence, width=width)
        sentences.append(f"  {known} {passes}")
    return sentences


def panels(said: Array) -> Iterator[Panel]:
    """Yield panels of the grader with the first two humans, the first three, and so on.

    `said` are verdicts (raters, units, studies), 1 for yes and -1 for no, the grader's last.
    """
    _, units, studies = said.shape
    people, grader = len(said) - 1, said[-1]
    patterns = np.zeros((units, studies), dtype=np.int64)
    with_grader, among = np.zeros((people, studies)), np.zeros((people, people, studies))
    grader_moves, people_moves = np.zeros((2, units, studies))
    yes = (said[:-1] > 0).sum(axis=1)
    for new in range(people):
        patterns = 2 * patterns + (said[new] > 0)
        with_grader[new], moves = _kappa(grader, said[new])
        grader_moves += moves
        for other in range(new):
            among[new, other], moves = _kappa(said[other], said[new])
            among[other, new] = among[new, other]
            people_moves += moves
        k = new + 1
        if k > 1:
            affirmed = yes[:k].mean(axis=0)
            yield Panel(
                with_grader[:k],
                among[:k, :k],
                grader_moves / k,
                people_moves / (k * (k - 1) / 2),
                2 * patterns + (grader > 0),
                np.minimum(affirmed, units - affirmed),
            )


def _kappa(first: Array, second: Array) -> tuple[Array, Array]:
    """Return Cohen's kappa (studies,) of two raters, and each unit's influence on it.

    Verdicts (units, studies) are 1 or -1. The influence of a unit is by how much the mean kappa
    without one unit is above that without this one, times the other units.
    """
    n = len(first)
    each = np.stack([first * second, first, second])
    total = each.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = _of_means(*(total / n))
        without = _of_means(*((total[:, None] - each) / (n - 1)))
        brings: Array = (n - 1) * (without.mean(axis=0) - without)
    return kappa, brings


def _of_means(both: Array, first: Array, second: Array) -> Array:
    """Return kappa from the means of two raters' verdicts, 1 or -1, and of their products."""
    return (both - first * second) / (1.0 - first * second)
