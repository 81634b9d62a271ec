"""Answers that are no single option: a number, or several options."""

import pytest

from evenhand.rubrics import Rubric, asked_rubric, dump_rubric, load_rubric
from evenhand.rubrics.loading import parse_rubric, read_rubric
from evenhand.rubrics.options import Block, whole_numbers_in_a_row
from harness.studies import TOPICS_HEAD
from tests.cases import refused

BLOCKS = (Block(column="response", label="Response"),)
PAIR = ("pair", "response_a", "response_b")


def rubric_of(number: str, more: str = "", unit: str = "response", *variables: str) -> str:
    return f"""name = "quality"
title = "Quality"
unit = "{unit}"
question = "How good is it?"
instructions = "Read it."
variables = {[*(variables or ["response"])]}
{more}
[number]
{number}
"""


def number(bounds: str, more: str = "") -> Rubric:
    return parse_rubric(rubric_of(bounds) + more, "quality.toml")


def test_the_numbers_are_its_options() -> None:
    rubric, small = number("low = 0\nhigh = 100"), number("low = 0\nhigh = 1\nstep = 0.01")
    assert (rubric.level, rubric.kind.is_ordered) == ("interval", False)
    assert rubric.categories == tuple(str(n) for n in range(101))
    assert rubric.kind.permitted == "a whole number from 0 to 100"
    given = ("73.0", " 7 ", "101", "7.5", "x", "")
    assert [rubric.kind.label_of(text) for text in given] == ["73", "7", None, None, None, None]
    assert small.categories[:3] == ("0", "0.01", "0.02")
    assert small.categories[-2:] == ("0.99", "1")
    assert small.kind.permitted == "a number from 0 to 1 in steps of 0.01"
    for kind, key in ((rubric.kind, "number.whole"), (small.kind, "number.steps")):
        assert kind.permitted_in(lambda key, **bounds: f"{key} to {bounds['high']}")[:12] == key
    assert [rubric.kind.imported_label(text, {}) for text in ("73.0", "x")] == ["73", ""]
    assert [option.name for option in small.number.options][:2] == ["0.00", "0.01"]
    written = number("low = -2\nhigh = 2\nstep = 0.25")
    assert "options" not in dump_rubric(written)
    assert parse_rubric(dump_rubric(written), "quality.toml") == written
    other = (number("low = 0\nhigh = 100\nstep = 2"), number("low = 1\nhigh = 100"))
    assert len({each.hash for each in (rubric, *other)}) == 3
    # A translation needs no options.
    words = '[translations.de]\ntitle = "Güte"\nquestion = "Wie gut?"\ninstructions = "Lesen."\n'
    german = number("low = 0\nhigh = 100", words).in_language("de")
    assert (german.question, german.number) == ("Wie gut?", rubric.number)
    assert german.hash != rubric.hash
    prompt = rubric.for_prompt({"response": "Fine."})
    assert "Options:" not in prompt.system
    assert prompt.system.endswith("Answer with a whole number from 0 to 100 and nothing else.")
    assert (prompt.kind.answer_form, len(prompt.kind.keys)) == ("a whole number from 0 to 100", 101)


@pytest.mark.parametrize(("number", "more", "fault"), [
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
    ("low = 0\nhigh = 100", PAIR, "one on two of them needs options"),
])  # fmt: skip
def test_bad_bounds(number: str, more: str, fault: str) -> None:
    found, faults = read_rubric(rubric_of(number, *(("", *PAIR) if more == PAIR else (more,))))
    assert found is None
    assert fault in " ".join(faults)


@pytest.mark.parametrize(
    ("scale", "points", "number"),
    [("1-5", 5, None), ("0-10", 11, None), ("0-1", 101, 0.01), ("1-100", 100, 1.0)],
)
def test_a_long_scale_is_a_number(scale: str, points: int, number: float | None) -> None:
    rubric = asked_rubric("How good is it?", BLOCKS, scale=scale)
    assert len(rubric.categories) == points
    assert (rubric.number.step if rubric.number else None) == number
    # A question alone makes no instructions.
    assert "instructions" not in dump_rubric(rubric)
    begins = "The material" if number else "Options:\n("
    assert rubric.for_prompt({"response": "x"}).system.startswith(begins)


def test_a_majority_of_numbers_lies_within_a_tenth_of_the_scale() -> None:
    kind = asked_rubric("How good is it?", BLOCKS, scale="0-100").kind
    for given, have in (
        (("50", "60"), True),
        (("0", "50", "50", "100"), False),  # half of them are no majority
        (("0", "50", "50"), True),
        (("40", "60"), True),
        (("30", "30", "40", "50", "61"), True),  # a tenth itself is near enough
        (("40", "61"), False),
    ):
        assert kind.have_majority(given) is have


def test_of_two_options_the_first_is_affirmative_unless_one_says_yes() -> None:
    for options, affirmative in (
        (["good", "bad"], ("good",)), (["no", "yes"], ("yes",)), (["good", "fair", "bad"], ()),
        (["nein", "ja"], ("ja",)), (["falsch", "Richtig"], ("richtig",)), (["0", "1"], ("1",)),
        (["unclear", "non", "oui"], ("oui",)), (["1", "2", "3"], ()), (["up", "right"], ("up",)),
    ):  # fmt: skip
        assert asked_rubric("Is it good?", BLOCKS, options=options).affirmative == affirmative


def test_a_scale_has_more_than_half_of_its_numbers_and_gaps_of_two_at_most() -> None:
    for given, found in (("135", "12345"), ("0345", "012345"), ("136", ""), ("04567", "")):
        assert whole_numbers_in_a_row(given) == tuple(found)
    assert whole_numbers_in_a_row(["-1", "0", "2"]) == ()


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
    read = ["billing;bug", "bug;x", "none", "none", "bug", None, None, None, None]
    assert [rubric.kind.label_of(text) for text in given] == read
    spellings = {"a bug": "bug", "bug": "bug", "billing": "billing"}
    cells = ("A bug, Billing", "Bug", "", "spam", "bug,bug")
    labels = [rubric.kind.imported_label(cell, spellings) for cell in cells]
    assert labels == ["billing;bug", "bug", "", "", ""]
    assert rubric.kind.in_order({"x;bug", "", "bug"}) == ("bug", "x;bug")
    assert rubric.kind.schema()["type"] == "array"
    assert rubric.kind.schema()["items"]["enum"] == ["billing", "bug", "x"]
    assert rubric.kind.takes("billing;bug")
    assert not rubric.kind.takes("bug;billing")
    assert rubric.kind.name_of("billing;x") == "Billing, Praise, thanks"
    names = [rubric.kind.name_of(label, "None of these") for label in ("none", "")]
    assert names == ["None of these", ""]
    assert load_rubric("refusal").number is None
    assert parse_rubric(dump_rubric(rubric), "topics.toml") == rubric
    assert topics(TOPICS_HEAD.replace("several = true\n", "")).hash != rubric.hash
    prompt = rubric.for_prompt({"response": "It broke."})
    assert "(bug) A bug" in prompt.system
    assert prompt.system.endswith(
        "Answer with the keys of all options that apply, separated by commas (the word none if "
        "there is none) and nothing else; the keys are billing, bug, x."
    )
    assert not prompt.kind.is_single


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
    _, faults = read_rubric(TOPICS_HEAD + OPTIONS.replace('"x"', '"None"'))
    assert "'none' says that no option applies" in " ".join(faults)


def test_a_question_on_the_command_line_takes_several() -> None:
    rubric = asked_rubric("About what?", BLOCKS, options=["Billing", "A bug"], several=True)
    assert (rubric.several, rubric.affirmative) == (True, ())
    assert rubric.kind.label_of("a-bug;billing") == "billing;a-bug"
    for more, told in (
        ({"scale": "1-5"}, "--several goes with --options"),
        ({"options": ["a", "none"]}, "leave none out"),
        ({"options": [f"o{n}" for n in range(31)]}, "31 options, more than 30"),
    ):
        refused(told, asked_rubric, "About what?", BLOCKS, several=True, **more)
