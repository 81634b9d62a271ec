"""What a rubric's file may say, in its language and in translation."""

from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.rubrics import Rubric, dump_rubric, load_rubric, shipped_rubrics
from evenhand.rubrics.loading import library_rubrics, parse_rubric
from tests.commands import Run
from tests.rubrics.texts import TEXTS

RUBRIC = (TEXTS / "warmth.toml").read_text("utf-8")


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


def test_the_hash_follows_what_raters_see_and_nothing_else() -> None:
    rubric = parse_rubric(RUBRIC, "tone.toml")
    seen = parse_rubric(RUBRIC.replace("Neutral", "Even"), "tone.toml")
    unseen = parse_rubric(RUBRIC.replace('affirmative = ["3"]', "threshold = 0.1"), "tone.toml")
    assert seen.hash != rubric.hash
    assert unseen.hash == rubric.hash


def test_favoured_sides_are_declared_and_no_rater_sees_them() -> None:
    rubric = load_rubric("even-handedness")
    favours = {option.key: option.favours for option in rubric.options}
    assert favours == {"A": "a", "B": "b", "C": ""}
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
    assert [pair.swaps[key] for key in pair.categories] == ["B", "A", "C"]
    assert [*response.swaps.values()] == list(response.categories)


def test_that_words_are_to_be_marked_is_part_of_what_raters_see_and_no_other_hash_moves() -> None:
    texts = (f'evidence = "{how}"\n{RUBRIC}' for how in ("", "optional", "required"))
    plain, *asking = (parse_rubric(text, "tone.toml") for text in texts)
    assert plain.hash == parse_rubric(RUBRIC, "tone.toml").hash
    assert len({plain.hash, *(rubric.hash for rubric in asking)}) == 3
    assert parse_rubric(dump_rubric(asking[0]), "tone.toml") == asking[0]
    with pytest.raises(InputError, match="evidence"):
        parse_rubric('evidence = "sometimes"\n' + RUBRIC, "tone.toml")


ORIGINAL = (TEXTS / "tone.toml").read_text("utf-8")
GERMAN = "\n" + (TEXTS / "tone-de.toml").read_text("utf-8")
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
    assert people.kind.options[1].examples == ("Hallo, mein Lieber!",)
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


def test_a_translated_rubric_can_be_a_key_and_survives_its_file() -> None:
    assert {rubric(): 1}[rubric()] == 1
    assert rubric() != rubric(ORIGINAL)
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


def test_check_names_every_fault_and_ends_in_2(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('nme = "x"\ntitle = "X"\nunit = "both"\n')
    done = run("rubric", "check", path)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("evenhand")]
    assert len(lines) == 8
    assert any("unknown field 'nme'" in line for line in lines)
    assert "there is no rubric" in run.refused("rubric", "check", tmp_path / "none.toml")


def test_check_warns_of_a_key_that_begins_another(tmp_path: Path, capsys) -> None:
    path = tmp_path / "ten.toml"
    text = dump_rubric(load_rubric("refusal"))
    path.write_text(text.replace('key = "5"', 'key = "10"').replace('"5"]', '"10"]'))
    assert main(["rubric", "check", str(path)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "Option 1 begins like option 10" in said
    assert main(["rubric", "check", *shipped_rubrics(), *library_rubrics()]) == 0
    said, warned = capsys.readouterr()
    assert "refusal (hash fc84998dc4579b44): response, ordinal, options 1, 2, 3" in said
    assert "Filled in: prompt, response." in said
    assert warned == ""
