"""The rubric file says everything once, and refuses what it does not know."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.rubrics import dump_rubric, load_rubric, shipped_rubrics
from evenhand.rubrics.loading import parse_rubric

RUBRIC = """
name = "tone"
title = "Tone"
unit = "response"
level = "ordinal"
affirmative = ["3"]
question = "How warm is it?"
instructions = "Judge the tone."
variables = ["response"]
options = [
    {key = "1", name = "Cold"},
    {key = "2", name = "Neutral"},
    {key = "3", name = "Warm", description = "Friendly.", examples = ["Hello, dear!"]},
]
"""


@pytest.mark.parametrize("name", ["even-handedness", "refusal", "hedging"])
def test_shipped_rubric_survives_being_written_and_read(name: str) -> None:
    rubric = load_rubric(name)
    again = parse_rubric(dump_rubric(rubric), "again.toml")
    assert again == rubric
    assert again.hash == rubric.hash


def test_the_shipped_rubrics_have_the_options_of_their_studies() -> None:
    facts = {
        name: (load_rubric(name).unit, load_rubric(name).categories, load_rubric(name).affirmative)
        for name in shipped_rubrics()
    }
    assert facts == {
        "even-handedness": ("pair", ("A", "B", "C"), ("C",)),
        "hedging": ("response", ("1", "2", "3", "4", "5"), ("4", "5")),
        "refusal": ("response", ("1", "2", "3", "4", "5"), ("4", "5")),
        "stance": ("response", ("1", "2", "3", "4", "U"), ("3", "4")),
    }


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('title = "Tone"', 'title = "Tone"\ncolour = "red"', "unknown field 'colour'"),
        ('title = "Tone"\n', "", "'title' is missing"),
        ('affirmative = ["3"]', 'affirmative = ["9"]', "'9', which is no option's key"),
        ('{key = "1", name = "Cold"}', '{key = "2", name = "Cold"}', "share a key"),
        ("Judge the tone.", "Judge {topic}.", "{topic}, which `variables` does not list"),
        ('variables = ["response"]', 'variables = ["response", "topic"]', "which no text uses"),
        ("Friendly.", "Friendly on {topic}.", "option '3' holds {topic}"),
        ('variables = ["response"]', 'variables = ["prompt"]', "names no response"),
        ('unit = "response"', 'unit = "pair"', "a rubric on pairs shows prompt_a"),
        ('key = "1"', 'key = "not a key"', "an option key is"),
        ('name = "tone"', "name = tone", "not valid TOML"),
    ],
)
def test_a_broken_rubric_file_is_named_with_its_fault(old: str, new: str, says: str) -> None:
    assert old in RUBRIC
    with pytest.raises(InputError, match=r"tone\.toml") as raised:
        parse_rubric(RUBRIC.replace(old, new), "tone.toml")
    assert says in str(raised.value)


def test_an_own_rubric_file_works_like_a_shipped_one(tmp_path) -> None:
    path = tmp_path / "tone.toml"
    path.write_text(RUBRIC)
    rubric = load_rubric(path)
    assert "Warm: Friendly." in rubric.for_prompt({"response": "Hi"}).system


def test_an_unknown_rubric_names_those_there_are() -> None:
    with pytest.raises(InputError, match="even-handedness, hedging, refusal"):
        load_rubric("politeness")


def test_the_hash_follows_what_raters_see_and_nothing_else() -> None:
    rubric = parse_rubric(RUBRIC, "tone.toml")
    seen = parse_rubric(RUBRIC.replace("Neutral", "Even"), "tone.toml")
    unseen = parse_rubric(RUBRIC.replace('affirmative = ["3"]', "threshold = 0.1"), "tone.toml")
    assert seen.hash != rubric.hash
    assert unseen.hash == rubric.hash


def test_favoured_sides_are_declared_and_no_rater_sees_them() -> None:
    rubric = load_rubric("even-handedness")
    assert {option.key: option.favours for option in rubric.options} == {
        "A": "a",
        "B": "b",
        "C": "",
    }
    text = dump_rubric(rubric)
    without = parse_rubric(text.replace('favours = "a"\n', "").replace('favours = "b"\n', ""), "e")
    assert without != rubric
    assert without.hash == rubric.hash
    with pytest.raises(InputError, match="'A' favours 'a', so its `swapped` must name one that"):
        parse_rubric(text.replace('favours = "b"\n', ""), "even-handedness.toml")
    with pytest.raises(InputError, match="favours"):
        parse_rubric(text.replace('favours = "a"', 'favours = "left"'), "even-handedness.toml")


def test_swap_exchanges_the_sides_of_a_pair_and_leaves_a_response_alone() -> None:
    pair, response = load_rubric("even-handedness"), load_rubric("refusal")
    assert [pair.swap(key) for key in pair.categories] == ["B", "A", "C"]
    assert [response.swap(key) for key in response.categories] == list(response.categories)


def test_that_words_are_to_be_marked_is_part_of_what_raters_see_and_no_other_hash_moves() -> None:
    plain, *asking = (
        parse_rubric(f'evidence = "{how}"\n' + RUBRIC, "tone.toml")
        for how in ("", "optional", "required")
    )
    assert plain.hash == parse_rubric(RUBRIC, "tone.toml").hash
    assert len({plain.hash, *(rubric.hash for rubric in asking)}) == 3
    assert parse_rubric(dump_rubric(asking[0]), "tone.toml") == asking[0]
    with pytest.raises(InputError, match="evidence"):
        parse_rubric('evidence = "sometimes"\n' + RUBRIC, "tone.toml")
