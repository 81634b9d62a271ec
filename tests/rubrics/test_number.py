"""A rubric that asks for a number: its file, its words for people and graders, replies to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.rubrics import Number, asked_rubric, dump_rubric, load_rubric
from evenhand.rubrics.loading import parse_rubric, read_rubric
from evenhand.rubrics.options import Block

BLOCKS = (Block(column="response", label="Response"),)
HEAD = """name = "quality"
title = "Quality"
unit = "response"
question = "How good is it?"
instructions = "Read it."
variables = ["response"]
"""


def rubric_of(number: str, more: str = "") -> str:
    return f"{HEAD}{more}\n[number]\n{number}\n"


def test_the_numbers_are_its_options() -> None:
    rubric = parse_rubric(rubric_of("low = 0\nhigh = 100"), "quality.toml")
    assert rubric.level == "interval"
    assert rubric.categories == tuple(str(n) for n in range(101))
    assert rubric.permitted == "a whole number from 0 to 100"
    assert [rubric.label_of(text) for text in ("73.0", " 7 ", "101", "7.5", "x", "")] == [
        "73", "7", None, None, None, None,
    ]  # fmt: skip
    small = parse_rubric(rubric_of("low = 0\nhigh = 1\nstep = 0.01"), "quality.toml")
    assert small.categories[:3] == ("0", "0.01", "0.02")
    assert small.categories[-2:] == ("0.99", "1")
    assert small.permitted == "a number from 0 to 1 in steps of 0.01"


def test_a_file_is_written_as_it_was_read() -> None:
    rubric = parse_rubric(rubric_of("low = -2\nhigh = 2\nstep = 0.25"), "quality.toml")
    text = dump_rubric(rubric)
    assert "options" not in text
    assert parse_rubric(text, "quality.toml") == rubric


def test_the_hash_tells_bounds_apart() -> None:
    bounds = ("low = 0\nhigh = 100", "low = 0\nhigh = 100\nstep = 2", "low = 1\nhigh = 100")
    hashes = {parse_rubric(rubric_of(each), "quality.toml").hash for each in bounds}
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("number", "more", "fault"),
    [
        ("low = 5\nhigh = 5", "", "low is 5, which is not below high, 5"),
        ("low = 0\nhigh = 1\nstep = 0.3", "", "steps of 0.3 do not lead from 0 to 1"),
        ("low = 1\nhigh = 5", "", "it has 5 numbers; so few are quicker to choose from"),
        ("low = 0\nhigh = 100\nstep = 0.01", "", "10,001 numbers, more than 1,001; take longer"),
        ("low = 0\nhigh = inf", "", "number.high: Input should be a finite number"),
        ("low = 0\nhigh = 100\nmiddle = 5", "", "unknown field 'number.middle'"),
        ("low = 0", "", "the field 'number.high' is missing"),
        ("low = 0\nhigh = 100", 'affirmative = ["100"]', "`affirmative` names options"),
        ("low = 0\nhigh = 100", 'level = "ordinal"', 'the level of a number is "interval"'),
        (
            "low = 0\nhigh = 100\n[[options]]\nkey = '1'\nname = 'one'",
            "",
            "a rubric with [number] lists no options",
        ),
    ],
)
def test_bad_bounds(number: str, more: str, fault: str) -> None:
    found, faults = read_rubric(rubric_of(number, more))
    assert found is None
    assert fault in " ".join(faults)


def test_a_number_rates_one_response() -> None:
    text = rubric_of("low = 0\nhigh = 100").replace('"response"\nq', '"pair"\nq')
    _, faults = read_rubric(text.replace('["response"]', '["response_a", "response_b"]'))
    assert any("a rubric on pairs needs options" in each for each in faults)


def test_a_translation_needs_no_options() -> None:
    words = '[translations.de]\ntitle = "Güte"\nquestion = "Wie gut?"\ninstructions = "Lesen."\n'
    rubric = parse_rubric(rubric_of("low = 0\nhigh = 100") + words, "quality.toml")
    german = rubric.in_language("de")
    assert (german.question, german.number) == ("Wie gut?", rubric.number)
    assert german.hash != rubric.hash


def test_graders_are_asked_for_a_number() -> None:
    rubric = parse_rubric(rubric_of("low = 0\nhigh = 100"), "quality.toml")
    prompt = rubric.for_prompt({"response": "Fine."})
    assert "Options:" not in prompt.system
    assert prompt.system.endswith("Answer with a whole number from 0 to 100 and nothing else.")
    assert prompt.number == "a whole number from 0 to 100"
    assert len(prompt.keys) == 101


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("73", "73"),
        ("73.0", "73"),
        ("**73/100**", "73"),
        ("Score: 73", "73"),
        ("I would rate this 73 out of 100.", "73"),
        ("The answer lists 3 errors and 2 omissions.\n\nScore: 73/100", "73"),
        ('{"score": 73, "confidence": 90}', "73"),
        ("<think>20, no: 30</think>85", "85"),
        ("Confidence: 80. Score: 60", "60"),
        ("On a scale of 0-100, I give it a 73.", "73"),
        ("173", None),
        ("-5", None),
        ("7.5", None),
        ("7/10", None),
        ("Score: 7/10", None),
        ("Rating: 73%", None),
        ("Between 70 and 80", None),
        ("I would say 73, maybe 75.", None),
        ('{"score": 0.73}', None),
        ("It cites 3 of 40 sources.", None),
        ("seventy-three", None),
        ("1e2", None),
        ("", None),
    ],
)
def test_replies(reply: str, label: str | None) -> None:
    rubric = asked_rubric("How good is it?", BLOCKS, scale="0-100")
    assert rubric.parser().label(reply) == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("0.73", "0.73"),
        ("0.50", "0.5"),
        ("1.00", "1"),
        ('{"label": 0.5}', "0.5"),
        ("Score: 0.07.", "0.07"),
        ("0.735", None),
        ("1.5", None),
        ("73", None),
        ("73%", None),
        ("0.7 or 0.8", None),
    ],
)
def test_replies_between_zero_and_one(reply: str, label: str | None) -> None:
    rubric = asked_rubric("How good is it?", BLOCKS, scale="0-1")
    assert rubric.parser().label(reply) == label


@pytest.mark.parametrize(
    ("scale", "points", "number"),
    [("1-5", 5, None), ("0-10", 11, None), ("0-1", 101, 0.01), ("1-100", 100, 1.0)],
)
def test_a_long_scale_is_a_number(scale: str, points: int, number: float | None) -> None:
    rubric = asked_rubric("How good is it?", BLOCKS, scale=scale)
    assert len(rubric.categories) == points
    assert (rubric.number.step if rubric.number else None) == number


def test_names_of_numbers_have_all_places() -> None:
    assert [option.name for option in Number(low=0, high=1, step=0.01).options][:2] == [
        "0.00",
        "0.01",
    ]


def test_the_draft_and_the_shipped_rubrics_ask_for_options(tmp_path: Path) -> None:
    assert load_rubric("refusal").number is None
