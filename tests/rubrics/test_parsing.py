"""A label is never guessed: over 200 replies, most of them made to mislead."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.rubrics import RubricParser, load_rubric, shipped_rubrics
from tests.rubrics.answers import CLEAR, LETTERS, NUMBERS, STANCES, TRICKY

PARSERS = {
    "letters": RubricParser(LETTERS),
    "numbers": RubricParser(NUMBERS),
    "stances": RubricParser(STANCES),
    **{name: load_rubric(name).parser() for name in shipped_rubrics()},
}


def test_the_corpus_is_as_large_as_it_says() -> None:
    clear, tricky = (sum(map(len, each.values())) for each in (CLEAR, TRICKY))
    assert clear + tricky >= 200
    assert tricky >= 100


@pytest.mark.parametrize("rubric", PARSERS)
def test_a_clear_answer_is_read(rubric: str) -> None:
    read = {text: PARSERS[rubric].label(text) for text, _ in CLEAR[rubric]}
    assert read == dict(CLEAR[rubric])


@pytest.mark.parametrize("rubric", PARSERS)
def test_a_tricky_one_is_read_right_or_not_at_all(rubric: str) -> None:
    wrong = {
        text: found
        for text, right in TRICKY[rubric]
        if (found := PARSERS[rubric].label(text)) not in (right or None, None)
    }
    assert wrong == {}


@settings(max_examples=200, deadline=None, derandomize=True)
@given(text=st.text(max_size=300))
def test_any_text_is_an_option_or_none(text: str) -> None:
    for parser in PARSERS.values():
        assert parser.label(text) in (*LETTERS, *NUMBERS, *STANCES, "U", None)
