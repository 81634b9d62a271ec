"""Reading by weighted cues: where one response stands on a scale, or how two compare."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import NormalDist

from evenhand.errors import InputError
from evenhand.graders.replies.outcome import Outcome
from evenhand.rubrics import LexicalCues, Rubric

_NORMAL = NormalDist()


class CueReader:
    """Reads units by the cues of one rubric. Raises InputError where they do not fit the rubric."""

    def __init__(self, rubric: Rubric, cues: LexicalCues) -> None:
        self._rubric = rubric
        self._cues = cues
        self._patterns = [(re.compile(c.pattern, re.IGNORECASE), c.weight) for c in cues.cues]
        if cues.kind == "contrast":
            self._sides = _contrast_options(rubric)
        elif rubric.unit == "pair":
            raise InputError(
                f"rubric {rubric.name!r} is on pairs, but its [lexical] table is of kind "
                '"ordinal"; use kind = "contrast"'
            )

    def read(self, values: Mapping[str, str]) -> Outcome:
        """Return a label and a probability for every option."""
        if self._cues.kind == "ordinal":
            probabilities = self._place(self._score(values["response"]))
        else:
            a, b = (self._helpfulness(values[f"response_{side}"]) for side in "ab")
            probabilities = self._compare(a - b)
        label = max(probabilities, key=lambda key: probabilities[key])
        return Outcome(label=label, probabilities=probabilities)

    def _score(self, text: str) -> float:
        """Return the weighted cue matches, per `per_words` words where the rubric sets that."""
        score = sum(weight * len(regex.findall(text)) for regex, weight in self._patterns)
        if self._cues.per_words:
            score *= self._cues.per_words / max(len(text.split()), 1)
        return score

    def _helpfulness(self, text: str) -> float:
        """Return the cue score, levelling off at the rubric's scale, plus a term for the length."""
        cues = self._cues
        return cues.scale * math.tanh(self._score(text) / cues.scale) + (
            cues.length_weight * math.log2(1 + len(text.split()))
        )

    def _place(self, score: float) -> dict[str, float]:
        """Return the options' probabilities: a score of 0 is placed at the first option, a score of
        `scale` three quarters up the scale.
        """
        keys = self._rubric.categories
        centre = (len(keys) - 1) * math.tanh(max(score, 0.0) / self._cues.scale)
        masses = discretised_normal(centre, self._cues.spread, len(keys))
        return dict(zip(keys, masses, strict=True))

    def _compare(self, difference: float) -> dict[str, float]:
        """Return the options' probabilities: a difference beyond the tolerance favours a side, with
        normal noise of standard deviation `spread`.
        """
        cues, (first, second, same) = self._cues, self._sides
        p_first = _NORMAL.cdf((difference - cues.tolerance) / cues.spread)
        p_second = _NORMAL.cdf((-difference - cues.tolerance) / cues.spread)
        found = {first: p_first, second: p_second, same: max(1 - p_first - p_second, 0.0)}
        total = sum(found.values())
        return {key: found[key] / total for key in self._rubric.categories}


def discretised_normal(centre: float, spread: float, count: int) -> Sequence[float]:
    """Probabilities of the integers 0..count-1 under a normal; the ends take the tails.

    >>> [round(p, 3) for p in discretised_normal(1.0, 0.5, 3)]
    [0.159, 0.683, 0.159]
    """
    bounds = [_NORMAL.cdf((edge + 0.5 - centre) / spread) for edge in range(count - 1)]
    cumulative = [0.0, *bounds, 1.0]
    return [high - low for low, high in pairwise(cumulative)]


def _contrast_options(rubric: Rubric) -> tuple[str, str, str]:
    """The options for the first side, for the second, and for neither, by what they swap to."""
    swaps = {key: rubric.swap(key) for key in rubric.categories}
    sided = [key for key in rubric.categories if swaps[key] != key]
    neither = [key for key in rubric.categories if swaps[key] == key]
    if rubric.unit != "pair" or len(sided) != 2 or len(neither) != 1:
        raise InputError(
            f'rubric {rubric.name!r}: a [lexical] table of kind "contrast" needs a rubric on pairs '
            "with one option for each side (naming each other in `swapped`) and one for neither"
        )
    return sided[0], sided[1], neither[0]
