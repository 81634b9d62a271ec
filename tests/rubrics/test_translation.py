"""A rubric's words in other languages leave the rubric, and what graders see, as they are."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.rubrics import Rubric, dump_rubric, load_rubric, shipped_rubrics
from evenhand.rubrics.loading import parse_rubric

ORIGINAL = """
name = "tone"
title = "Tone"
unit = "response"
level = "ordinal"
affirmative = ["2"]
question = "How warm is it, on {topic}?"
instructions = "Judge the tone."
variables = ["response", "topic"]

[[options]]
key = "1"
name = "Cold"

[[options]]
key = "2"
name = "Warm"
description = "Friendly."
examples = ["Hello, dear!"]
"""
GERMAN = """
[translations.de]
title = "Ton"
question = "Wie herzlich ist es, bei {topic}?"
instructions = "Beurteilen Sie den Ton."

[[translations.de.options]]
key = "1"
name = "Kühl"

[[translations.de.options]]
key = "2"
name = "Herzlich"
description = "Freundlich."
examples = ["Hallo, mein Lieber!"]
"""
VALUES = {"response": "Hi.", "topic": "tax"}


def rubric(text: str = ORIGINAL + GERMAN) -> Rubric:
    return parse_rubric(text, "tone.toml")


def test_a_translation_changes_neither_the_hash_nor_the_prompt() -> None:
    alone = rubric(ORIGINAL)
    assert rubric().hash == alone.hash
    assert rubric().for_prompt(VALUES) == alone.for_prompt(VALUES)
    hashes = {name: load_rubric(name).hash for name in shipped_rubrics()}
    assert hashes == {
        "even-handedness": "4c232fbcfa01206a",
        "hedging": "9998f87842376b3b",
        "refusal": "fc84998dc4579b44",
        "stance": "93b9aa1c66840fb2",
    }, "a label belongs to a text by its hash: another one needs a reason"


def test_people_read_the_translation_under_the_same_keys() -> None:
    shown = rubric().in_language("de")
    people = shown.for_people(VALUES)
    assert (people.title, people.question) == ("Ton", "Wie herzlich ist es, bei tax?")
    assert people.options[1].examples == ("Hallo, mein Lieber!",)
    assert shown.categories == rubric().categories
    assert shown.affirmative == ("2",)
    assert shown.language == "de"


def test_each_translation_has_a_hash_over_what_is_shown() -> None:
    original = rubric()
    assert original.hash != ""  # computed before: it must not be handed on
    german = original.in_language("de").hash
    assert german != original.hash
    changed = rubric((ORIGINAL + GERMAN).replace("Freundlich.", "Nett."))
    assert changed.in_language("de").hash != german
    assert changed.hash == original.hash
    other = rubric((ORIGINAL + GERMAN).replace("Friendly.", "Kind."))
    assert other.in_language("de").hash == german  # read by nobody who reads German


def test_what_is_not_translated_is_shown_as_it_is() -> None:
    assert rubric().in_language("es") == rubric()
    assert rubric(f'language = "de"\n{ORIGINAL}').in_language("de").title == "Tone"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('key = "2"\nname = "Herzlich"', 'key = "3"\nname = "Herzlich"', "option '3' is none of"),
        (GERMAN[GERMAN.rindex("[[") :], "", "option '2' is missing; translate it too"),
        ('description = "Freundlich."\n', "", "option '2': translate `description`"),
        ('examples = ["Hallo, mein Lieber!"]', "examples = []", "has 0 examples and the original"),
        ("bei {topic}", "beim Thema", "{topic} stands in only one of original and translation"),
        ("Beurteilen Sie", "Zu {thema}: beurteilen Sie", "{thema} stands in only one"),
        ('"Kühl"', '"Kühl bei {topic}"', "option '1' holds {topic}"),
        ("Ton", "Ton\nfarbe", "is not valid TOML"),
        ('title = "Ton"', 'title = "Ton"\nfarbe = "rot"', "unknown field 'translations.de.farbe'"),
        ('title = "Ton"\n', "", "'translations.de.title' is missing"),
        ("translations.de", "translations.en", "translations.en: name another language"),
        ("translations.de", 'translations."Deutsch!"', "by a code such as"),
    ],
)
def test_a_faulty_translation_is_one_sentence(old: str, new: str, says: str) -> None:
    german = GERMAN.replace(old, new)
    assert german != GERMAN
    with pytest.raises(InputError) as refused:
        rubric(ORIGINAL + german)
    assert says in str(refused.value)
    assert str(refused.value).startswith("tone.toml")


def test_a_translated_rubric_can_be_a_key() -> None:
    assert {rubric(): 1}[rubric()] == 1
    assert rubric() != rubric(ORIGINAL)


def test_a_translated_rubric_survives_being_written_and_read() -> None:
    assert parse_rubric(dump_rubric(rubric()), "again.toml") == rubric()


@pytest.mark.parametrize("name", shipped_rubrics())
def test_the_shipped_rubrics_are_translated(name: str) -> None:
    original = load_rubric(name)
    assert {*original.versions} == {"en", "de", "es"}
    assert len({each.hash for each in original.versions.values()}) == 3
    for code in ("de", "es"):
        own = original.in_language(code)
        pairs = [(own.title, original.title), (own.question, original.question)]
        pairs += [(own.instructions, original.instructions)]
        for here, there in zip(own.options, original.options, strict=True):
            pairs += [(here.name, there.name), (here.description, there.description)]
            pairs += zip(here.examples, there.examples, strict=True)
        assert not [here for here, there in pairs if here == there]
