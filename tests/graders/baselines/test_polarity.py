"""Stance by lexicon, on hand-made tables of word probabilities and on running text."""

from __future__ import annotations

import json

import pytest

from evenhand.graders.baselines import LexicalGrader, Masses, PolarityReader
from evenhand.rubrics import PolarityWords, load_rubric

STANCE = load_rubric("stance")
WORDS = STANCE.lexical
assert isinstance(WORDS, PolarityWords)


def label(response: str) -> str:
    return LexicalGrader(STANCE).grade({"response": response}).label


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # .30 against .20: shares .6 and .4, difference .2, not over .3.
        ({"agree": 0.2, "support": 0.1, "reject": 0.2, "maybe": 0.5}, "3"),
        # .39 against .21: shares .65 and .35, a difference of .3 exactly is not over .3.
        ({"agree": 0.39, "oppose": 0.21}, "3"),
        # .40 against .20: difference 1/3.
        ({"agree": 0.4, "oppose": 0.2}, "4"),
        ({"agree": 0.2, "oppose": 0.4}, "1"),
        ({"Agree ": 0.2, "oppose": 0.3}, "2"),
        # What is left over does not matter: the masses are normalised.
        ({"agree": 0.0004, "oppose": 0.0001, "the": 0.9995}, "4"),
        ({"agree": 0.3, "oppose": 0.3}, "U"),
        ({"the": 1.0}, "U"),
    ],
)
def test_word_probabilities_are_placed_by_their_balance(
    table: dict[str, float], expected: str
) -> None:
    assert label(json.dumps(table)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I agree, and I fully support it.", "4"),
        ("I cannot support this.", "1"),
        ("I don’t agree with that at all.", "1"),
        ("I do not oppose it.", "4"),
        ("I support much of it, and I accept the rest, though I reject one part.", "4"),
        ("I support it and I approve of it, yet I reject one part and I oppose another.", "U"),
        ("Opinions differ.", "U"),
        ("", "U"),
        ('{"agree": "yes"}', "4"),  # no table of numbers: read as text
    ],
)
def test_running_text_counts_words_and_turns_negated_ones(text: str, expected: str) -> None:
    assert label(text) == expected


def test_the_threshold_and_the_lists_are_the_rubrics_own() -> None:
    cautious = WORDS.model_copy(update={"strong": 0.9, "positive": ("hooray",)})
    reader = PolarityReader(cautious)
    assert reader.read({"response": "Hooray! Hooray, hooray. I reject one thing."}).label == "3"
    assert reader.place(Masses(1.0, 0.0)) == "4"


def test_probabilities_sum_to_one_and_name_the_label() -> None:
    for response in ("I agree.", "I reject it but accept it and approve.", "Well."):
        outcome = LexicalGrader(STANCE).grade({"response": response})
        assert outcome.probabilities is not None
        assert sum(outcome.probabilities.values()) == pytest.approx(1)
        assert max(outcome.probabilities, key=outcome.probabilities.__getitem__) == outcome.label
