"""Picking pairs with unequal probabilities that are known, so that every estimate can weight.

A pair's probability of being in the sample rises with its score; it is never below what earlier
draws gave it, so no probability comes near 0. Pairs are drawn by the pivotal method (Deville &
Tille 1998), which keeps to these probabilities exactly and to their sum within one pair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    import numpy as np

RATIO = 2.0
"""Ratio by which the pair with the highest score is likelier picked than one with the lowest, at
most. If scores turn out to say nothing, the sample is worth no less than 4 RATIO / (1 + RATIO)^2 of
one picked by chance: eight ninths, where 3 would leave three quarters (Kantorovich's inequality,
for weights). What it brings is in docs/uncertainty.md."""
MOST = 0.9
"""No pair is surer than this to be picked: those passed over must speak for others like them."""


@dataclass(frozen=True, kw_only=True)
class Wave:
    """A draw with known probabilities.

    `chances` has each pair's probability of being taken if it is not in the sample yet, also for
    pairs that were in it already; `taken` are the pairs that it took.
    """

    by: str
    chances: Mapping[str, float]
    taken: Sequence[str]


def inclusion(waves: Sequence[Wave], labelled: Sequence[float] = ()) -> dict[str, float]:
    """Return each pair's probability of being picked by any of the waves.

    `labelled` is the share of each wave's pairs that people have labelled so far, all of them if
    empty: as a wave is labelled in an order of its own, part of it is a smaller wave.

    >>> first = Wave(by="chance", chances={"p1": 0.5, "p2": 0.5}, taken=["p1"])
    >>> second = Wave(by="uncertainty", chances={"p1": 0.2, "p2": 0.6}, taken=["p2"])
    >>> inclusion([first, second])
    {'p1': 0.6, 'p2': 0.8}
    """
    shares = labelled or [1.0] * len(waves)
    missed: dict[str, float] = {}
    for wave, share in zip(waves, shares, strict=True):
        for pair, chance in wave.chances.items():
            missed[pair] = missed.get(pair, 1.0) * (1.0 - share * chance)
    return {pair: 1.0 - each for pair, each in missed.items()}


def chances_for(
    scores: Mapping[str, float], before: Mapping[str, float], more: int
) -> dict[str, float]:
    """Return the probability of taking each pair if it is not in the sample yet, to draw `more`
    pairs.

    `scores` are from 0 to 1, `before` the probabilities of having been picked earlier. A pair's
    total probability is then proportional to the root of its score above a floor - optimal where
    scores are variances (Neyman 1934) - or its earlier probability if that is larger. Raises
    InputError where `more` pairs cannot be picked that way.
    """
    import numpy as np

    floor = 1.0 / (RATIO**2 - 1.0)
    size = np.sqrt([floor + scores[pair] for pair in scores])
    prior = np.array([before[pair] for pair in scores])
    room = float(np.maximum(MOST - prior, 0.0).sum())
    if more > room:
        raise InputError(
            f"at most {math.floor(room)} more pairs can be picked by uncertainty, not {more}: so "
            "many leave no choice; take fewer, or leave --by out"
        )
    low, high = 0.0, MOST / float(size.min())
    for _ in range(100):
        middle = (low + high) / 2.0
        gained = np.maximum(np.minimum(middle * size, MOST) - prior, 0.0).sum()
        low, high = (middle, high) if gained < more else (low, middle)
    chance = np.maximum(np.minimum(high * size, MOST) - prior, 0.0) / (1.0 - prior)
    return dict(zip(scores, chance.tolist(), strict=True))


def pick(chances: Mapping[str, float], rng: np.random.Generator) -> list[str]:
    """Pairs drawn with these probabilities, as many as these add up to (rounded up or down at
    random), in random order.
    """
    import numpy as np

    names = [pair for pair, chance in chances.items() if chance > 0]
    left = {pair: chances[pair] for pair in (names[n] for n in rng.permutation(len(names)))}
    taken: list[str] = []
    duel: tuple[str, float] | None = None
    for pair, chance in left.items():
        if duel is None:
            duel = pair, chance
            continue
        (other, its), both = duel, duel[1] + chance
        # One of the two is settled: out where both chances fit into one, else taken.
        if both < 1.0:
            duel = (other if rng.random() * both < its else pair), both
        else:
            stays = rng.random() * (2.0 - both) < 1.0 - its
            taken.append(pair if stays else other)
            duel = (other if stays else pair), both - 1.0
    if duel is not None and rng.random() < duel[1]:
        taken.append(duel[0])
    return [taken[n] for n in np.argsort(rng.random(len(taken)))]
