"""`baseline:lexical`: an offline grader that counts words, which are listed in the rubric's file.

It is the lower limit of a comparison with annotators: a grader that agrees with them no better than
this one measures little. `LexicalGrader` reads a response by weighted cues (`CueReader`) or by
lists of words for and against (`PolarityReader`).
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist
from typing import Annotated

from pydantic import Field, TypeAdapter

from evenhand.errors import InputError
from evenhand.graders.replies import Outcome
from evenhand.rubrics.model import LexicalCues, PolarityWords, Rubric
from evenhand.rubrics.rendering import spoken_text

_STANDARD_NORMAL = NormalDist()
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_NEGATIONS = frozenset({"not", "no", "never", "cannot", "without", "neither", "nor"})
_WORD_TABLE = TypeAdapter(dict[str, Annotated[float, Field(strict=True, ge=0)]])
_NEGATED_WITHIN = 3  # words after a negation that it can reverse: "do not fully support"


class LexicalGrader:
    """Grades units under one rubric. Raises InputError if the rubric has no [lexical] table."""

    def __init__(self, rubric: Rubric) -> None:
        if (words := rubric.lexical) is None:
            raise InputError(
                f"rubric {rubric.name!r} has no [lexical] table, so baseline:lexical cannot grade "
                "it; add one to the rubric's file or leave the rubric out"
            )
        self._reader: PolarityReader | CueReader = (
            PolarityReader(words) if isinstance(words, PolarityWords) else CueReader(rubric, words)
        )
        digest = hashlib.sha256(words.model_dump_json().encode()).hexdigest()
        self.evidence = {"cues_hash": digest[:16]}  # stored with each grade

    def grade(self, values: Mapping[str, str]) -> Outcome:
        """Return a label and a probability for every option. Of a conversation, the subject's turns
        are read.
        """
        texts = {name: spoken_text(cell, "assistant") for name, cell in values.items()}
        return replace(self._reader.read(texts), evidence=self.evidence)


class CueReader:
    """Reads units by the cues of one rubric: those of kind "ordinal" place a response on a scale,
    those of kind "contrast" compare two. Raises InputError if they do not fit the rubric.
    """

    def __init__(self, rubric: Rubric, cues: LexicalCues) -> None:
        self._rubric = rubric
        self._cues = cues
        self._patterns = [(re.compile(cue.pattern, re.IGNORECASE), cue.weight) for cue in cues.cues]
        if cues.kind == "contrast":
            self._side_options = _contrast_options(rubric)
        elif rubric.has_sides:
            raise InputError(
                f"rubric {rubric.name!r} is on pairs, but its [lexical] table is of kind "
                '"ordinal"; use kind = "contrast"'
            )

    def read(self, values: Mapping[str, str]) -> Outcome:
        """Return a label and a probability for every option."""
        if self._cues.kind == "ordinal":
            probabilities = self._probabilities_on_scale(self._score(values["response"]))
        else:
            first, second = map(self._helpfulness, (values["response_a"], values["response_b"]))
            probabilities = self._probabilities_of_sides(first - second)
        label = max(probabilities, key=lambda key: probabilities[key])
        return Outcome(label=label, probabilities=probabilities)

    def _helpfulness(self, text: str) -> float:
        """Return the score, bounded by +-`scale`, plus the weighted length."""
        bounded_score = self._cues.scale * math.tanh(self._score(text) / self._cues.scale)
        return bounded_score + self._cues.length_weight * math.log2(1 + len(text.split()))

    def _score(self, text: str) -> float:
        """Return the weighted sum of cue matches, or its rate per `per_words` words if set."""
        score = sum(weight * len(regex.findall(text)) for regex, weight in self._patterns)
        if self._cues.per_words:
            score *= self._cues.per_words / max(len(text.split()), 1)
        return score

    def _probabilities_on_scale(self, score: float) -> dict[str, float]:
        """Return the options' probabilities for a score: 0 is at the first option, `scale` at three
        quarters of the way to the last.
        """
        keys = self._rubric.categories
        centre = (len(keys) - 1) * math.tanh(max(score, 0.0) / self._cues.scale)  # tanh 1 = 0.76
        masses = discretised_normal(centre, self._cues.spread, len(keys))
        return dict(zip(keys, masses, strict=True))

    def _probabilities_of_sides(self, difference: float) -> dict[str, float]:
        """Return the options' probabilities for a difference of two responses: beyond the tolerance
        it favours a side, with normal noise of standard deviation `spread`.
        """
        cues = self._cues
        first, second, neither = self._side_options
        p_first = _STANDARD_NORMAL.cdf((difference - cues.tolerance) / cues.spread)
        p_second = _STANDARD_NORMAL.cdf((-difference - cues.tolerance) / cues.spread)
        masses = {first: p_first, second: p_second, neither: max(1 - p_first - p_second, 0.0)}
        total = sum(masses.values())
        return {key: masses[key] / total for key in self._rubric.categories}


def discretised_normal(centre: float, spread: float, count: int) -> Sequence[float]:
    """Return the probabilities of the integers 0..count-1 under a normal distribution, shape
    (count,); the first and last include the tails.

    >>> [round(p, 3) for p in discretised_normal(1.0, 0.5, 3)]
    [0.159, 0.683, 0.159]
    """
    bounds = [_STANDARD_NORMAL.cdf((edge + 0.5 - centre) / spread) for edge in range(count - 1)]
    return [high - low for low, high in pairwise([0.0, *bounds, 1.0])]


def _contrast_options(rubric: Rubric) -> tuple[str, str, str]:
    """Return the options for the first side, the second side and neither; else raise InputError."""
    swaps = rubric.swaps  # by key: its key once the two sides are exchanged
    sided = [key for key in rubric.categories if swaps[key] != key]
    neither = [key for key in rubric.categories if swaps[key] == key]
    if not rubric.has_sides or len(sided) != 2 or len(neither) != 1:
        raise InputError(
            f'rubric {rubric.name!r}: a [lexical] table of kind "contrast" needs a rubric on pairs '
            "with one option for each side (naming each other in `swapped`) and one for neither"
        )
    return sided[0], sided[1], neither[0]


@dataclass(frozen=True)
class Masses:
    """The evidence for and against in one response, as summed probabilities or counted words."""

    positive: float
    negative: float

    @property
    def share(self) -> float:
        """The positive share of the evidence, 0 to 1; undefined if there is none."""
        return self.positive / (self.positive + self.negative)


class PolarityReader:
    """Reads responses by a rubric's lists of words: texts, or JSON objects {word: probability}.

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
        if (table := _word_table(values["response"])) is None:
            masses = self._count_words(values["response"])
        else:
            folded = [(word.strip().casefold(), p) for word, p in table.items()]
            p_positive = sum(p for word, p in folded if word in self._positive)
            masses = Masses(p_positive, sum(p for word, p in folded if word in self._negative))
        strongly_against, against, in_favour, strongly_for, neither = self._words.scale
        probabilities = dict.fromkeys(self._words.scale, 0.0)
        label = self.label_of(masses)
        if label == neither:
            probabilities[neither] = 1.0
        else:
            probabilities[strongly_for if label == strongly_for else in_favour] = masses.share
            opposite = strongly_against if label == strongly_against else against
            probabilities[opposite] = 1.0 - masses.share
        return Outcome(label=label, probabilities=probabilities)

    def label_of(self, masses: Masses) -> str:
        """Return the option for a balance of masses; equal or no masses give the neutral one."""
        strongly_against, against, in_favour, strongly_for, neither = self._words.scale
        if masses.positive == masses.negative:
            return neither
        # Rounded, since 0.65 - 0.35 is slightly above 0.3.
        difference = round(2.0 * masses.share - 1.0, 9)
        if difference > 0:
            return strongly_for if difference > self._words.strong else in_favour
        return strongly_against if -difference > self._words.strong else against

    def _count_words(self, text: str) -> Masses:
        """Return the numbers of words for and against; a negation before a word reverses it."""
        words = [match.replace("’", "'").casefold() for match in _WORD.findall(text)]
        are_positive = list[bool]()  # for each word of either list, reversed by a negation
        for index, word in enumerate(words):
            if word in self._positive or word in self._negative:
                preceding = words[max(index - _NEGATED_WITHIN, 0) : index]
                is_negated = any(near in _NEGATIONS or near.endswith("n't") for near in preceding)
                are_positive.append((word in self._positive) != is_negated)
        return Masses(float(are_positive.count(True)), float(are_positive.count(False)))


def _word_table(text: str) -> dict[str, float] | None:
    """Return word probabilities if the response is a JSON object of numbers only, else None."""
    try:
        return _WORD_TABLE.validate_json(text) or None
    except ValueError:
        return None
