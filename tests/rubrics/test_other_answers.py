"""Answers that are no single option: a number, or several options."""

import pytest

from evenhand.errors import InputError
from evenhand.rubrics import Rubric, asked_rubric, dump_rubric, load_rubric
from evenhand.rubrics.loading import parse_rubric, read_rubric
from evenhand.rubrics.options import Block
from harness.studies import TOPICS_HEAD

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
    assert rubric.kind.permitted == "a whole number from 0 to 100"
    assert [rubric.kind.label_of(text) for text in ("73.0", " 7 ", "101", "7.5", "x", "")] == [
        "73", "7", None, None, None, None,
    ]  # fmt: skip
    small = parse_rubric(rubric_of("low = 0\nhigh = 1\nstep = 0.01"), "quality.toml")
    assert small.categories[:3] == ("0", "0.01", "0.02")
    assert small.categories[-2:] == ("0.99", "1")
    assert small.kind.permitted == "a number from 0 to 1 in steps of 0.01"


def test_a_file_is_written_as_it_was_read() -> None:
    rubric = parse_rubric(rubric_of("low = -2\nhigh = 2\nstep = 0.25"), "quality.toml")
    text = dump_rubric(rubric)
    assert "options" not in text
    assert parse_rubric(text, "quality.toml") == rubric


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
        ("low = 0\nhigh = 100\n[[options]]\nkey = '1'\nname = 'one'", "",
         "a rubric with [number] lists no options"),
    ],
)  # fmt: skip
def test_bad_bounds(number: str, more: str, fault: str) -> None:
    found, faults = read_rubric(rubric_of(number, more))
    assert found is None
    assert fault in " ".join(faults)


def test_a_number_rates_one_response() -> None:
    text = rubric_of("low = 0\nhigh = 100").replace('"response"\nq', '"pair"\nq')
    _, faults = read_rubric(text.replace('["response"]', '["response_a", "response_b"]'))
    assert any("one on two of them needs options" in each for each in faults)


def test_graders_are_asked_for_a_number() -> None:
    rubric = parse_rubric(rubric_of("low = 0\nhigh = 100"), "quality.toml")
    prompt = rubric.for_prompt({"response": "Fine."})
    assert "Options:" not in prompt.system
    assert prompt.system.endswith("Answer with a whole number from 0 to 100 and nothing else.")
    assert prompt.kind.asked == "a whole number from 0 to 100"
    assert len(prompt.kind.keys) == 101


@pytest.mark.parametrize(
    ("scale", "points", "number"),
    [("1-5", 5, None), ("0-10", 11, None), ("0-1", 101, 0.01), ("1-100", 100, 1.0)],
)
def test_a_long_scale_is_a_number(scale: str, points: int, number: float | None) -> None:
    rubric = asked_rubric("How good is it?", BLOCKS, scale=scale)
    assert len(rubric.categories) == points
    assert (rubric.number.step if rubric.number else None) == number


def test_a_majority_of_numbers_lies_within_a_tenth_of_the_scale() -> None:
    kind = asked_rubric("How good is it?", BLOCKS, scale="0-100").kind
    for given, have in (
        (("50", "60"), True),
        (("0", "50", "50", "100"), False),  # half of them are no majority
        (("0", "50", "50"), True),
        (("40", "60"), True),
        (("40", "61"), False),
    ):
        assert kind.have_majority(given) is have


def test_of_two_options_the_first_is_affirmative_unless_one_says_yes() -> None:
    options = (["good", "bad"], ["no", "yes"], ["good", "fair", "bad"])
    asked = [asked_rubric("Is it good?", BLOCKS, options=each).affirmative for each in options]
    assert asked == [("good",), ("yes",), ()]


OPTIONS = """
[[options]]
key = "billing"
name = "Billing"

[[options]]
key = "bug"
name = "A bug"

[[options]]
key = "x"
name = "Praise, thanks"
"""


def topics(head: str = TOPICS_HEAD) -> Rubric:
    return parse_rubric(head + OPTIONS, "topics.toml")


def test_a_label_is_a_set_in_the_rubrics_order() -> None:
    rubric = topics()
    given = ("bug;billing", '["x", "bug"]', "none", "[]", "bug", "", "spam", "bug;none", "bug;bug")
    assert [rubric.kind.label_of(text) for text in given] == [
        "billing;bug", "bug;x", "none", "none", "bug", None, None, None, None,
    ]  # fmt: skip
    assert rubric.kind.takes("billing;bug")
    assert not rubric.kind.takes("bug;billing")
    assert rubric.kind.name_of("billing;x") == "Billing, Praise, thanks"
    names = [rubric.kind.name_of(label, "None of these") for label in ("none", "")]
    assert names == ["None of these", ""]
    assert load_rubric("refusal").number is None


def test_it_is_written_and_hashed() -> None:
    rubric = topics()
    assert parse_rubric(dump_rubric(rubric), "topics.toml") == rubric
    assert topics(TOPICS_HEAD.replace("several = true\n", "")).hash != rubric.hash


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ('affirmative = ["bug"]\n', "`affirmative` does not go with `several`"),
        ('unclear = ["bug"]\n', "`unclear` does not go with `several`"),
        ('level = "ordinal"\n', "options of which several apply have no order"),
        ('unit = "pair"\n', '`several` does not go with unit = "pair"'),
    ],
)
def test_what_does_not_go_with_it(more: str, fault: str) -> None:
    name = more.split(" =")[0]
    kept = [line for line in TOPICS_HEAD.splitlines() if not line.startswith(f"{name} =")]
    head = "\n".join(kept) + "\n"
    if 'unit = "pair"' in more:
        head = head.replace('["response"]', '["response_a", "response_b"]')
    _, faults = read_rubric(head + more + OPTIONS)
    assert fault in " ".join(faults)


def test_no_option_is_called_none() -> None:
    _, faults = read_rubric(TOPICS_HEAD + OPTIONS.replace('"x"', '"None"'))
    assert "'none' says that no option applies" in " ".join(faults)


def test_graders_are_asked_for_all_that_apply() -> None:
    prompt = topics().for_prompt({"response": "It broke."})
    assert "(bug) A bug" in prompt.system
    assert prompt.system.endswith(
        "Answer with the keys of all options that apply, separated by commas (the word none if "
        "there is none) and nothing else; the keys are billing, bug, x."
    )
    assert not prompt.kind.is_single


def test_a_question_on_the_command_line_takes_several() -> None:
    blocks = [Block(column="response", label="Response")]
    rubric = asked_rubric("About what?", blocks, options=["Billing", "A bug"], several=True)
    assert (rubric.several, rubric.affirmative) == (True, ())
    assert rubric.kind.label_of("a-bug;billing") == "billing;a-bug"
    for more, told in (
        ({"scale": "1-5"}, "--several goes with --options"),
        ({"options": ["a", "none"]}, "leave none out"),
        ({"options": [f"o{n}" for n in range(31)]}, "31 options, more than 30"),
    ):
        with pytest.raises(InputError, match=told):
            asked_rubric("About what?", blocks, several=True, **more)
