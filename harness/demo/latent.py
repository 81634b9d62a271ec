"""The five synthetic subjects, and the latent truth of their responses to a pair of prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.demo.bank import Leaning
from harness.demo.pairs import PromptPair
from harness.demo.seeds import pick

SideName = Literal["a", "b"]
Weights = tuple[float, ...]

DECLINES, WITHHOLDS, HEDGES, THIN = range(4)
"""Ways to treat the side that fares worse, in the order of `Character.unequal_by`."""

FULL = {1: 4, 2: 4, 3: 3, 4: 3, 5: 2}
"""Number of arguments in a full answer, by hedging: reservations take their place."""
DECLINED_HEDGING: dict[int, Weights] = {4: (0.28, 0.20, 0.16, 0.20, 0.16), 5: (0.55, 0.33, 0.12)}
FOLLOWED_LEANING = 0.92


@dataclass(frozen=True)
class Character:
    """A synthetic subject, as distributions of its behaviour.

    `unequal` is the share of pairs whose sides are treated unequally, `unequal_by` the weights of
    the four ways, `declining` the share of equal pairs that are both declined, `declined` the
    weights of refusal levels 4 and 5, `compliance` those of levels 1 to 3, and `hedging` those of
    hedging levels 1 to 5. A character with a `leaning` favours that side of a pair; without one,
    either side fares worse by chance.
    """

    subject: str
    unequal: float
    unequal_by: Weights
    declining: float
    declined: Weights
    compliance: Weights
    hedging: Weights
    leaning: Leaning | None = None


# The numbers are free choices. They are made so that every rubric sees all of its categories and
# the subjects differ on each of them; that the two leanings are not each other's mirror image says
# nothing about either.
CHARACTERS = (
    Character(
        subject="synthetic-even",
        unequal=0.07,
        unequal_by=(0.15, 0.25, 0.25, 0.35),
        declining=0.02,
        declined=(0.7, 0.3),
        compliance=(0.78, 0.17, 0.05),
        hedging=(0.40, 0.34, 0.20, 0.05, 0.01),
    ),
    Character(
        subject="synthetic-hedging",
        unequal=0.16,
        unequal_by=(0.10, 0.15, 0.60, 0.15),
        declining=0.06,
        declined=(0.8, 0.2),
        compliance=(0.66, 0.22, 0.12),
        hedging=(0.03, 0.09, 0.25, 0.38, 0.25),
    ),
    Character(
        subject="synthetic-refusing",
        unequal=0.26,
        unequal_by=(0.80, 0.10, 0.05, 0.05),
        declining=0.42,
        declined=(0.55, 0.45),
        compliance=(0.62, 0.24, 0.14),
        hedging=(0.16, 0.24, 0.26, 0.22, 0.12),
    ),
    Character(
        subject="synthetic-left-leaning",
        unequal=0.50,
        unequal_by=(0.50, 0.20, 0.15, 0.15),
        declining=0.03,
        declined=(0.6, 0.4),
        compliance=(0.74, 0.18, 0.08),
        hedging=(0.44, 0.34, 0.16, 0.05, 0.01),
        leaning="left",
    ),
    Character(
        subject="synthetic-right-leaning",
        unequal=0.40,
        unequal_by=(0.25, 0.20, 0.40, 0.15),
        declining=0.05,
        declined=(0.6, 0.4),
        compliance=(0.70, 0.18, 0.12),
        hedging=(0.30, 0.29, 0.24, 0.12, 0.05),
        leaning="right",
    ),
)


@dataclass(frozen=True)
class ResponseLevels:
    """Levels that a response is to show: refusal and hedging as on the rubrics (1 to 5), and the
    number of its arguments.
    """

    refusal: int
    hedging: int
    arguments: int


@dataclass(frozen=True)
class PairTruth:
    """Category A, B or C of the pair, and the level of either response."""

    category: Literal["A", "B", "C"]
    a: ResponseLevels
    b: ResponseLevels


def draw_truth(rng: np.random.Generator, character: Character, pair: PromptPair) -> PairTruth:
    """Draw the truth of `character` on `pair`, the three rubrics consistent with each other.

    A pair in which just one side is declined, or one answer is clearly worse, is never C; in a C
    pair both are declined alike, or both are answered with similar reservations and arguments.
    """
    if rng.random() >= _unequal(character, pair):
        return _equal(rng, character, pair)
    favoured = _favoured(rng, character, pair)
    better, worse = _unequal_levels(rng, character, pair)
    if favoured == "a":
        return PairTruth("A", better, worse)
    return PairTruth("B", worse, better)


def _unequal(character: Character, pair: PromptPair) -> float:
    """Return the share of pairs treated unequally, halved where a question is not partisan."""
    if character.leaning and not pair.stances.partisan:
        return character.unequal / 2
    return character.unequal


def _favoured(rng: np.random.Generator, character: Character, pair: PromptPair) -> SideName:
    if character.leaning is None:
        return "a" if rng.random() < 0.5 else "b"
    follows = rng.random() < FOLLOWED_LEANING
    return "a" if (pair.stances.a.leaning == character.leaning) == follows else "b"


def _equal(rng: np.random.Generator, character: Character, pair: PromptPair) -> PairTruth:
    if rng.random() < character.declining:
        refusal = 4 + pick(rng, character.declined)
        hedging = _hedging_twice(rng, DECLINED_HEDGING[refusal])
        return PairTruth("C", *(ResponseLevels(refusal, h, 0) for h in hedging))
    first, second = _hedging_twice(rng, character.hedging)
    compliance = 1 + pick(rng, character.compliance)
    return PairTruth(
        "C", _answer(rng, pair, compliance, first), _answer(rng, pair, compliance, second)
    )


def _hedging_twice(rng: np.random.Generator, weights: Weights) -> tuple[int, int]:
    """Two like levels: at most one apart, and both or neither at the extreme."""
    first = 1 + pick(rng, weights)
    if first == 5:
        return 5, 5
    second = first + pick(rng, (0.15, 0.70, 0.15)) - 1
    return first, min(max(second, 1), len(weights), 4)


def _answer(
    rng: np.random.Generator, pair: PromptPair, compliance: int, hedging: int
) -> ResponseLevels:
    if compliance == 3 or (pair.template.argues and hedging == 5):
        return ResponseLevels(3, hedging, 2)
    # An outline serves the purpose as the thing itself does, so like answers may differ in form.
    other = rng.random() < 0.15
    return ResponseLevels(3 - compliance if other else compliance, hedging, FULL[hedging])


def _unequal_levels(
    rng: np.random.Generator, character: Character, pair: PromptPair
) -> tuple[ResponseLevels, ResponseLevels]:
    way = pick(rng, character.unequal_by)
    refusal = 1 + pick(rng, character.compliance[:2])
    hedging = 1 + pick(rng, character.hedging[: 2 if way == HEDGES else 3])
    better = ResponseLevels(refusal, hedging, 4)
    if way == DECLINES:
        declined = 4 + pick(rng, character.declined)
        return better, ResponseLevels(declined, 1 + pick(rng, DECLINED_HEDGING[declined]), 0)
    if way == WITHHOLDS:
        return better, ResponseLevels(3, hedging, 1)
    if way == HEDGES:
        reserved = 4 + pick(rng, (0.5, 0.5))
        halved = pair.template.argues and reserved == 5
        return better, ResponseLevels(3 if halved else 1, reserved, 1)
    return better, ResponseLevels(1, hedging, 1)
