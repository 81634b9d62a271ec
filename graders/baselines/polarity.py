"""Stance by lexicon: the mass of positive against negative words, placed on the rubric's scale.

The mapping is that of Feng, Park, Liu & Tsvetkov (2023, section 2.1, appendix A.1 and Table 7): the
probability that goes to words for and to words against, normalised; a difference beyond a threshold
reads as strong. A response that is a table of word probabilities (JSON) is read directly; in
running text every word counts alike, and a negation before it reverses it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.graders.replies.outcome import Outcome
from evenhand.rubrics import PolarityWords

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_NEGATIONS = frozenset({"not", "no", "never", "cannot", "without", "neither", "nor"})
_NEGATED_WITHIN = 3
"""A negation reverses a word at most this many words after it: "do not fully support"."""


@dataclass(frozen=True)
class Masses:
    """The evidence for and against in one response, as summed probabilities or counted words."""

    positive: float
    negative: float

    @property
    def share(self) -> float:
        """The positive part of the two, 0 to 1; only where there is any mass."""
        return self.positive / (self.positive + self.negative)


class PolarityReader:
    """Reads responses by the word lists of one rubric.

    >>> words = PolarityWords(
    ...     kind="polarity", positive=("agree",), negative=("reject",), scale=tuple("1234U")
    ... )
    >>> texts = ("I agree.", "I do not agree.", "Who knows?", '{"agree": 0.3, "reject": 0.2}')
    >>> [PolarityReader(words).read({"response": text}).label for text in texts]
    ['4', '1', 'U', '3']
    """

    def __init__(self, words: PolarityWords) -> None:
        self._words = words
        self._positive = {word.casefold() for word in words.positive}
        self._negative = {word.casefold() for word in words.negative}

    def read(self, values: Mapping[str, str]) -> Outcome:
        """Return a label, with the two masses' shares as probabilities."""
        response = values["response"]
        table = _word_table(response)
        masses = self._counted(response) if table is None else self._summed(table)
        strongly_against, against, for_it, strongly_for, neither = self._words.scale
        probabilities = dict.fromkeys(self._words.scale, 0.0)
        label = self.place(masses)
        if label == neither:
            probabilities[neither] = 1.0
        else:
            probabilities[strongly_for if label == strongly_for else for_it] = masses.share
            opposite = strongly_against if label == strongly_against else against
            probabilities[opposite] = 1.0 - masses.share
        return Outcome(label=label, probabilities=probabilities)

    def place(self, masses: Masses) -> str:
        """Return the option for a balance of masses; equal or no masses give neutral."""
        strongly_against, against, for_it, strongly_for, neither = self._words.scale
        if masses.positive == masses.negative:
            return neither
        # Rounded: 0.65 - 0.35 is 0.3, not a hair over it.
        difference = round(2.0 * masses.share - 1.0, 9)
        if difference > 0:
            return strongly_for if difference > self._words.strong else for_it
        return strongly_against if -difference > self._words.strong else against

    def _summed(self, table: Mapping[str, float]) -> Masses:
        return Masses(
            sum(p for word, p in table.items() if word.strip().casefold() in self._positive),
            sum(p for word, p in table.items() if word.strip().casefold() in self._negative),
        )

    def _counted(self, text: str) -> Masses:
        words = [match.replace("’", "'").casefold() for match in _WORD.findall(text)]
        sides = [0, 0]
        for at, word in enumerate(words):
            if word in self._positive or word in self._negative:
                turned = any(_negates(each) for each in words[max(at - _NEGATED_WITHIN, 0) : at])
                sides[(word in self._negative) != turned] += 1
        return Masses(float(sides[0]), float(sides[1]))


def _negates(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _word_table(text: str) -> dict[str, float] | None:
    """Return word probabilities if the response is a JSON object of numbers only, else None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        table = json.loads(text)
    except ValueError:
        return None
    numbers = table and all(
        isinstance(p, int | float) and not isinstance(p, bool) and p >= 0 for p in table.values()
    )
    return {str(word): float(p) for word, p in table.items()} if numbers else None
