"""How likely a grader as good as a person passes, before anybody has labelled.

Studies are simulated, and in each the bounds are taken that a verdict is taken from
(`analysis.bootstrap.influence`), at the level of the first look: for these people, and for people
like them, where people's differences count as chance too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.influence import reaches, reaches_over_people
from evenhand.analysis.bootstrap.looks import level_of_look
from evenhand.analysis.planning.scenarios import Scenario, half_width, usual_strictness
from evenhand.analysis.types import Array, Mask
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, Scope
from evenhand.texts import written

_TYPICAL_AGREEMENT = 0.85
"""How often two people agree on a similar pairwise task, as Shen et al. (2025) report."""
_MARGIN, _RULE = AnalysisSettings().margin, DecisionSettings()
_STUDIES, _MAX_DRAWS, _AT_ONCE = 300, 300_000, 100_000
_MAX_UNITS = 10_000
Chances = Mapping[Scope, Mapping[int, float]]
"""By scope and number of people."""


@dataclass(frozen=True)
class Panel:
    """Some people beside the grader, in simulated studies.

    `grader` (people, studies) and `among` (people, people, studies; 0 on the diagonal) are kappas;
    `grader_moves` and `people_moves` (units, studies) what units bring to their means; `rarer`
    (studies,) counts units of the rarer verdict, the mean over people.
    """

    grader: Array
    among: Array
    grader_moves: Array
    people_moves: Array
    rarer: Array

    def passes(self, scope: Scope, margin: float, rule: DecisionSettings) -> Mask:
        """In which studies (studies,) the grader meets the rule. That it beats the baselines
        follows, as it is near people who agree.
        """
        units, people, alpha = (
            len(self.grader_moves),
            len(self.grader),
            level_of_look(1, rule.looks),
        )
        own = self.among.sum(axis=(0, 1)) / (people * (people - 1))
        if rule.margin_share:
            margin = rule.margin_share * own
        apart = self.grader_moves - (1.0 - rule.margin_share) * self.people_moves
        if scope == "these":
            reached = reaches(apart, alpha)
        else:
            reached = reaches_over_people(apart, self._over_people(), people, alpha)
        is_near = self.grader.mean(axis=0) - own - reached > -margin
        agree = own - reaches(self.people_moves, alpha) >= rule.min_people_kappa
        enough = (self.rarer >= rule.min_rarer) & (units >= rule.min_clusters)
        found: Mask = is_near & agree & enough
        return found

    def _over_people(self) -> Array:
        """The difference's variance over people (studies,), each left out in turn."""
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
    """How likely a grader as good as a person passes, for these people and for people like them.

    By simulated studies of `units` independent units, labelled by each number of `people`. The
    grader errs as often as people do on average and has their average strictness. For people like
    them there must be three.
    """
    passed: dict[Scope, dict[int, list[bool]]] = {
        "these": {k: [] for k in people},
        "like_these": {k: [] for k in people if k > 2},
    }
    rng = np.random.default_rng(seed)
    studies = max(min(_STUDIES, _MAX_DRAWS // units), 60)
    at_once = max(_AT_ONCE // units, 1)
    for first in range(0, studies, at_once):
        shape = min(at_once, studies - first), units
        verdicts = scenario.draw(rng, shape, max(people), graders=1)
        for panel in panels(np.where(verdicts, 1.0, -1.0).swapaxes(1, 2)):
            for scope, by_number in passed.items():
                if (number := len(panel.grader)) in by_number:
                    by_number[number] += panel.passes(scope, margin, rule).tolist()
    return {
        scope: {k: float(np.mean(each)) for k, each in of.items()} for scope, of in passed.items()
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
    """How likely a grader as good as a person can replace one, on so many independent units.

    `rule` is the one that it is to meet, and says for whom: these people, or people like them.
    """
    found = pass_chances(units, scenario, [humans], margin=margin, rule=rule, seed=seed)
    return found[rule.scope].get(humans, 0.0)


def size_for(power: float, sizes: Sequence[int], chances: Sequence[float]) -> int | None:
    """From which size on the chance reaches `power`, between sizes on a logarithmic scale; None
    where it does not.

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


def units_to_pass(
    scenario: Scenario,
    *,
    margin: float = _MARGIN,
    power: float = 0.8,
    rule: DecisionSettings = _RULE,
) -> int | None:
    """About how many independent units it takes to pass with such a chance; None above 10,000."""
    sizes, chances = [25], [0.0]
    while chances[-1] < power:
        if 2 * sizes[-1] > _MAX_UNITS:
            return None
        sizes.append(2 * sizes[-1])
        chances.append(
            pass_chance(sizes[-1], scenario, humans=scenario.humans, margin=margin, rule=rule)
        )
    return size_for(power, sizes, chances)


def study_precision(
    *,
    pairs: int,
    subjects: int,
    humans: int,
    margin: float,
    rule: DecisionSettings = _RULE,
    noun: str = "pair",
) -> list[str]:
    """Sentences on what a study decides, for balanced and for lopsided verdicts.

    A pair's answers by several subjects count as one unit, which is the careful reading: they
    resemble one another. `noun` is what a pair is called, where it is another kind of cluster.
    """
    if humans < 2:
        return [written("plan.one_annotator")]
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
    """The first two people beside the grader, the first three, and so on.

    `said` are verdicts (raters, units, studies), 1 for yes and -1 for no, the grader's last.
    """
    _, units, studies = said.shape
    people, grader = len(said) - 1, said[-1]
    with_grader, among = np.zeros((people, studies)), np.zeros((people, people, studies))
    grader_moves, people_moves = np.zeros((2, units, studies))
    yes = (said[:-1] > 0).sum(axis=1)
    for new in range(people):
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
                np.minimum(affirmed, units - affirmed),
            )


def _kappa(first: Array, second: Array) -> tuple[Array, Array]:
    """Cohen's kappa (studies,) of two raters' verdicts (units, studies), 1 or -1, and what each
    unit brings to it.
    """
    both, a, b = first * second, first.mean(axis=0), second.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa: Array = (both.mean(axis=0) - a * b) / (1.0 - a * b)
        moves = both - (1.0 - kappa) * (a * second + b * first)
        brings: Array = (moves - moves.mean(axis=0)) / (1.0 - a * b)
    return kappa, brings
