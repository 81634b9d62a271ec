from __future__ import annotations

import math

import pytest

from evenhand.graders.token_probabilities import Position, Token, read_options

ABC = ("A", "B", "C")
PLANTED = {"C": 0.60, " C": 0.15, "B": 0.10, "(": 0.06, "A": 0.05, " Sure": 0.04}


def position(tokens: dict[str, float], **extra: object) -> Position:
    """One position; the chosen token comes first."""
    top = [Token(token=token, logprob=math.log(p)) for token, p in tokens.items()]
    return Position(token=top[0].token, logprob=top[0].logprob, top_logprobs=top, **extra)  # type: ignore[arg-type]


def test_known_answer() -> None:
    reading = read_options([position(PLANTED)], "C", "C", ABC)
    assert reading is not None
    assert reading.in_option_mass == pytest.approx(0.60 + 0.15 + 0.10 + 0.05)  # .90
    assert reading.probabilities == pytest.approx(
        {"A": 0.05 / 0.9, "B": 0.1 / 0.9, "C": 0.75 / 0.9}
    )
    assert round(reading.probabilities["C"], 3) == 0.833
    assert reading.label == "C"
    assert [token for token, _ in reading.top] == list(PLANTED)


@pytest.mark.parametrize("form", ["C", " C", "(C", "C)", "\u0120C", "\u2581C", "\nC", "**C"])
def test_forms_of_one_key_are_merged(form: str) -> None:
    reading = read_options([position({"B": 0.2, form: 0.4})], "B", "B", ABC)
    assert reading is not None
    assert reading.probabilities == pytest.approx({"A": 0, "B": 1 / 3, "C": 2 / 3})


def test_decoded_bytes_count_and_a_token_outside_the_top_20_has_no_mass() -> None:
    tokens = [Token(token="<0x43>", bytes=[0x43], logprob=-0.7), Token(token="A", logprob=-9999.0)]
    asked = Position(token="C", logprob=math.log(0.25), top_logprobs=tokens)
    reading = read_options([asked], "C", "C", ABC)
    assert reading is not None
    assert reading.probabilities == {"A": 0.0, "B": 0.0, "C": 1.0}


def test_an_answer_that_begins_with_words_is_read_where_the_option_stands() -> None:
    positions = [
        position({"Answer": 0.97, "A": 0.03}),
        position({":": 1.0}),
        position({" C": 0.8, " B": 0.2}),
    ]
    reading = read_options(positions, "Answer: C", "C", ABC)
    assert reading is not None
    assert (reading.position, round(reading.probabilities["C"], 3)) == (2, 0.8)


def test_thinking_listed_before_the_answer_is_passed_over() -> None:
    positions = [
        position({"A": 0.9, "B": 0.1}),
        position({" good": 1.0}),
        position({" start": 1.0}),
        position({"B": 0.6, "C": 0.4}),
    ]
    reading = read_options(positions, "B", "B", ABC)
    assert reading is not None
    assert (reading.position, reading.label) == (3, "B")


@pytest.mark.parametrize(
    ("first", "text", "label"),
    [
        ({"A": 0.95, "The": 0.05}, "A fair response would differ.", None),  # an article
        ({"I": 0.99, "A": 0.01}, "I cannot say.", None),  # hardly any mass on options
        ({"Well": 0.9, "A": 0.1}, "Well, C", "C"),  # the little mass names another option
    ],
)
def test_no_reading_where_the_tokens_do_not_carry_the_answer(
    first: dict[str, float], text: str, label: str | None
) -> None:
    assert read_options([position(first)], text, label, ABC) is None


def test_no_tokens_no_reading() -> None:
    assert read_options([], "C", "C", ABC) is None
    assert read_options([position({"C": 1.0})], "C", "C", ("X", "Y")) is None
