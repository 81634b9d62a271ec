"""What a rubric's file may say, in its language and in translation."""

from itertools import chain
from pathlib import Path

import pytest

from evenhand.rubrics import Rubric, dump_rubric, load_rubric, shipped_rubrics
from evenhand.rubrics.loading import library_rubrics, parse_rubric
from tests.cases import refused
from tests.commands import Run
from tests.rubrics.texts import TEXTS

RUBRIC = (TEXTS / "warmth.toml").read_text("utf-8")


def test_the_shipped_rubrics_have_the_options_of_their_studies() -> None:
    rubrics = [load_rubric(name) for name in shipped_rubrics()]
    pair, five = ("A", "B", "C"), ("1", "2", "3", "4", "5")
    # A label belongs to a text by its hash: another one needs a reason.
    assert {r.name: (r.hash, r.unit, r.categories, r.affirmative) for r in rubrics} == {
        "even-handedness": ("4c232fbcfa01206a", "pair", pair, ("C",)),
        "hedging": ("9998f87842376b3b", "response", five, ("4", "5")),
        "refusal": ("fc84998dc4579b44", "response", five, ("4", "5")),
        "stance": ("93b9aa1c66840fb2", "response", ("1", "2", "3", "4", "U"), ("3", "4")),
    }
    for rubric in rubrics:
        again = parse_rubric(dump_rubric(rubric), "again.toml")
        assert (again, again.hash) == (rubric, rubric.hash)
        sides = dict(zip(pair, "BAC", strict=True)) if rubric.unit == "pair" else {}
        assert rubric.swaps == {key: sides.get(key, key) for key in rubric.categories}
    refused("even-handedness, hedging, refusal", load_rubric, "politeness")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('title = "Tone"', 'title = "Tone"\ncolour = "red"', "unknown field 'colour'"),
        ('title = "Tone"\n', "", "'title' is missing"),
        ('affirmative = ["3"]', 'affirmative = ["9"]', "'9', which is no option's key"),
        ('{key = "1", name = "Cold"}', '{key = "2", name = "Cold"}', "share a key"),
        ("Judge the tone.", "Judge {topic}.", "{topic}, which `variables` does not list"),
        ('variables = ["response"]', 'variables = ["response", "topic"]', "no `[[blocks]]` entry"),
        ("Friendly.", "Friendly on {topic}.", "option '3' holds {topic}"),
        ('variables = ["response"]', 'variables = ["prompt"]', "names no response"),
        ('unit = "response"', 'unit = "pair"', "a rubric on pairs shows prompt_a"),
        ('key = "1"', 'key = "not a key"', "an option key is"),
        ('name = "tone"', "name = tone", "not valid TOML"),
    ],
)
def test_a_broken_rubric_file_is_named_with_its_fault(old: str, new: str, says: str) -> None:
    assert old in RUBRIC
    assert says in refused(r"tone\.toml", parse_rubric, RUBRIC.replace(old, new), "tone.toml")


SHORT = """
[translations.de]
title = "T"
question = "W"
instructions = "B"
options = [{key = "1", name = "K"}, {key = "2", name = "N"},
    {key = "3", name = "W", description = "F", examples = ["H"]}]
[lexical]
kind = "ordinal"
scale = 1
spread = 1
per_words = 0
cues = [{pattern = "w", weight = 1}]
"""


def test_one_letter_is_text_enough() -> None:
    text = RUBRIC
    for whole in ("Tone", "How warm is it?", "Judge the tone.", "Cold"):
        text = text.replace(f'"{whole}"', f'"{whole[0]}"')
    rubric = parse_rubric(text + SHORT, "tone.toml")
    assert (rubric.title, rubric.instructions, rubric.lexical.per_words) == ("T", "J", 0)
    assert rubric.in_language("de").instructions == "B"


def test_the_hash_follows_what_raters_see_and_nothing_else() -> None:
    hashes = [
        parse_rubric(text, "tone.toml").hash
        for text in (
            RUBRIC,
            RUBRIC.replace('affirmative = ["3"]', "threshold = 0.1"),
            f'evidence = ""\n{RUBRIC}',
            RUBRIC.replace("Neutral", "Even"),
            f'evidence = "optional"\n{RUBRIC}',  # that words are to be marked is seen
            f'evidence = "required"\n{RUBRIC}',
        )
    ]
    assert (len({*hashes[:3]}), len({*hashes})) == (1, 4)
    asking = parse_rubric(f'evidence = "optional"\n{RUBRIC}', "tone.toml")
    assert parse_rubric(dump_rubric(asking), "tone.toml") == asking
    refused("evidence", parse_rubric, f'evidence = "sometimes"\n{RUBRIC}', "tone.toml")


def test_favoured_sides_are_declared_and_no_rater_sees_them() -> None:
    rubric = load_rubric("even-handedness")
    assert [option.favours for option in rubric.options] == ["a", "b", ""]
    text = dump_rubric(rubric)
    without = parse_rubric(text.replace('favours = "a"\n', "").replace('favours = "b"\n', ""), "e")
    assert without != rubric
    assert without.hash == rubric.hash
    for old, new, told in (
        ('favours = "b"\n', "", "'A' favours 'a', so its `swapped` must name one that"),
        ('favours = "a"', 'favours = "left"', "favours"),
    ):
        refused(told, parse_rubric, text.replace(old, new), "even-handedness.toml")


ORIGINAL = (TEXTS / "tone.toml").read_text("utf-8")
GERMAN = "\n" + (TEXTS / "tone-de.toml").read_text("utf-8")
VALUES = {"response": "Hi.", "topic": "tax"}


def rubric(text: str = ORIGINAL + GERMAN) -> Rubric:
    return parse_rubric(text, "tone.toml")


def test_a_translation_changes_neither_the_hash_nor_the_prompt() -> None:
    alone, shown = rubric(ORIGINAL), rubric().in_language("de")
    assert rubric().hash == alone.hash
    assert rubric().for_prompt(VALUES) == alone.for_prompt(VALUES)
    assert {rubric(): 1}[rubric()] == 1
    assert rubric() != alone
    assert parse_rubric(dump_rubric(rubric()), "again.toml") == rubric()
    # People read it under the same keys; what is not translated is shown as it is.
    people = shown.for_people(VALUES)
    assert (people.title, people.question) == ("Ton", "Wie herzlich ist es, bei tax?")
    assert people.kind.options[1].examples == ("Hallo, mein Lieber!",)
    assert (shown.language, shown.categories) == ("de", rubric().categories)
    assert shown.affirmative == ("2",)
    assert rubric().in_language("es") == rubric()
    assert rubric(f'language = "de"\n{ORIGINAL}').in_language("de").title == "Tone"


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
        ('title = "Ton"', 'title = "Ton"\nfarbe = "rot"', "unknown field 'translations.de.farbe'"),
        ('title = "Ton"\n', "", "'translations.de.title' is missing"),
        ("Beurteilen Sie den Ton.", "", "translate `instructions`, if there are any"),
        ("translations.de", "translations.en", "translations.en: name another language"),
        ("translations.de", 'translations."Deutsch!"', "by a code such as"),
    ],
)
def test_a_faulty_translation_is_one_sentence(old: str, new: str, says: str) -> None:
    german = GERMAN.replace(old, new)
    assert german != GERMAN
    assert says in refused(r"^tone\.toml", rubric, ORIGINAL + german)


@pytest.mark.parametrize("name", shipped_rubrics())
def test_the_shipped_rubrics_are_translated(name: str) -> None:
    def words(rubric: Rubric) -> list[str]:
        options = [(each.name, each.description, *each.examples) for each in rubric.options]
        return [rubric.title, rubric.question, rubric.instructions, *chain(*options)]

    original = load_rubric(name)
    assert {*original.versions} == {"en", "de", "es"}
    assert len({each.hash for each in original.versions.values()}) == 3
    for code in ("de", "es"):
        both = zip(words(original.in_language(code)), words(original), strict=True)
        assert not [here for here, there in both if here == there]


def test_check_names_every_fault_and_ends_in_2(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('nme = "x"\ntitle = "X"\nunit = "both"\n')
    done = run("rubric", "check", path)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("evenhand")]
    assert len(lines) == 7
    assert any("unknown field 'nme'" in line for line in lines)
    assert "there is no rubric" in run.refused("rubric", "check", tmp_path / "none.toml")


def test_check_warns_of_a_key_that_begins_another(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "ten.toml"
    text = dump_rubric(load_rubric("refusal"))
    path.write_text(text.replace('key = "5"', 'key = "10"').replace('"5"]', '"10"]'))
    done = run("rubric", "check", path)
    assert done.returncode == 0
    assert "Option 1 begins like option 10" in " ".join(done.stderr.split())
    done = run("rubric", "check", *shipped_rubrics(), *library_rubrics())
    assert (done.returncode, done.stderr) == (0, "")
    assert "refusal (hash fc84998dc4579b44): response, ordinal, options 1, 2, 3" in done.stdout
    assert "Filled in: prompt, response." in done.stdout
