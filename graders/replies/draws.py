"""Probabilities from repeated draws: how often each option came, and how sure that makes them."""

from __future__ import annotations

import math
from dataclasses import replace

from evenhand.graders.replies.outcome import Outcome
from evenhand.rubrics import Rubric

_Z = 1.959963984540054


def as_draw(outcome: Outcome, rubric: Rubric) -> Outcome:
    """Return one draw's outcome, with all probability on the option that was drawn.

    The mean over a unit's draws, which is how repeats are combined everywhere, is then the share of
    each option.
    """
    if not outcome.label:
        return outcome
    drawn = {key: float(key == outcome.label) for key in rubric.categories}
    return replace(outcome, probabilities=drawn, prob_method="draws")


def binomial_interval(successes: int, draws: int) -> tuple[float, float]:
    """Return the 95% score interval of a share (Wilson 1927, JASA 22, 209).

    >>> [round(bound, 3) for bound in binomial_interval(7, 10)]
    [0.397, 0.892]
    >>> binomial_interval(0, 0)
    (0.0, 1.0)
    """
    if draws == 0:
        return 0.0, 1.0
    share, z2 = successes / draws, _Z * _Z
    centre = (share + z2 / (2 * draws)) / (1 + z2 / draws)
    reach = _Z * math.sqrt(share * (1 - share) / draws + z2 / (4 * draws**2)) / (1 + z2 / draws)
    low = 0.0 if successes == 0 else max(centre - reach, 0.0)
    return low, 1.0 if successes == draws else min(centre + reach, 1.0)
