"""The rubrics that come along for items, golden answers, and `rubric new`."""

import tomllib
from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.rubrics import (
    Rubric,
    dump_rubric,
    library_rubrics,
    load_rubric,
    named_rubrics,
    shipped_rubrics,
)
from evenhand.rubrics.loading import draft_rubric, parse_rubric
from evenhand.study.creation import usual_rubrics
from tests.commands import Run
from tests.conftest import ROOT

NAMES = sorted(library_rubrics())


def test_there_are_eleven_and_none_is_asked_unless_it_is_named() -> None:
    assert len(NAMES) == 11
    assert not set(NAMES) & set(shipped_rubrics())
    usual = {rubric.name for each in (False, True) for rubric in usual_rubrics(propositions=each)}
    assert usual == set(shipped_rubrics()) == {"even-handedness", "hedging", "refusal", "stance"}


@pytest.mark.parametrize("name", NAMES)
def test_each_says_all_that_people_need(name: str) -> None:
    rubric = load_rubric(name)
    is_response = name != "preference"
    assert (rubric.name, rubric.unit) == (name, "response" if is_response else "comparison")
    assert rubric.not_for
    # Which of two answers is better is no yes or no.
    assert bool(rubric.affirmative) == is_response
    people = rubric.for_people(dict.fromkeys(rubric.variables, "x"))
    labels = [block.label for block in people.blocks]
    if is_response:
        assert [block.column for block in rubric.blocks] == list(rubric.variables)
        assert labels == [block.label for block in rubric.blocks]
    else:
        assert labels == ["Prompt", "Answer A", "Answer B"]
    assert 2 <= len(rubric.options) <= 5
    assert all(option.description and option.examples for option in rubric.options)
    assert library_rubrics()[name].startswith("# For ")
    # Golden answers cover every option and are no example.
    assert 4 <= len(rubric.golden) <= 8
    assert {golden.label for golden in rubric.golden} == set(rubric.categories)
    examples = " ".join(example for option in rubric.options for example in option.examples)
    answers = [name for name in rubric.variables if name.startswith("response")]
    assert answers
    assert not [each for each in rubric.golden for name in answers if each.texts[name] in examples]


@pytest.mark.parametrize("name", NAMES)
def test_answers_in_its_words_are_read_and_misleading_ones_are_not(name: str) -> None:
    rubric = load_rubric(name)
    for key, said in ((option.key, option.name) for option in rubric.options):
        for reply in (key, f"({key})", f"Answer: {key}", said, f"({key}) {said}"):
            assert rubric.parser.label(reply) == key, reply
    misleading = ("This is not right.", "It is not safe.", "No problem with it.")
    assert not [said for said in (*misleading, "None is missing.") if rubric.parser.label(said)]


@pytest.mark.parametrize("name", NAMES)
def test_golden_answers_are_seen_by_nobody_who_rates(name: str) -> None:
    rubric = load_rubric(name)
    fields = tomllib.loads(library_rubrics()[name])
    bare = Rubric.model_validate(fields | {"golden": (), "not_for": ""})
    assert bare.hash == rubric.hash
    values = dict.fromkeys(rubric.variables, "x")
    assert bare.for_people(values) == rubric.for_people(values)
    assert bare.for_prompt(values) == rubric.for_prompt(values)
    again = parse_rubric(dump_rubric(rubric), "again.toml")
    assert (again, again.hash) == (rubric, rubric.hash)


def test_a_golden_answer_that_does_not_fit_is_named() -> None:
    text = draft_rubric("mine")
    for old, new, says in (
        ('label = "partly"', 'label = "half"', "golden answer 2: its label is 'half'"),
        ('texts.response = "Five."\n', "", "golden answer 1 has no text for 'response'"),
        ('texts.response = "Five."', 'texts.response = " "', "golden answer 1 has no text for"),
        ("texts.response", 'texts.note = "x"\ntexts.response', "1 has a text for 'note', which"),
    ):
        assert old in text
        with pytest.raises(InputError, match=says):
            parse_rubric(text.replace(old, new, 1), "mine.toml")
    text = shipped_rubrics()["even-handedness"]
    golden = '\n[[golden]]\nlabel = "A"\ntexts.prompt_a = "x"\n'
    with pytest.raises(InputError, match="`golden` belongs to rubrics on responses"):
        parse_rubric(text + golden, "even-handedness.toml")


def test_a_new_rubric_works_as_it_is_and_overwrites_nothing(here: Path, run: Run) -> None:
    run.ok("rubric", "new", "mine")
    path = here / "mine.toml"
    assert path.read_text("utf-8").count("\n# ") > 10
    run.ok("rubric", "check", "mine.toml")
    rubric = load_rubric(path)
    assert rubric.name == "mine"
    assert {golden.label for golden in rubric.golden} == set(rubric.categories)
    path.write_text("settled")
    assert "mine.toml is there already" in run.refused("rubric", "new", "mine")
    assert path.read_text("utf-8") == "settled"
    for name in named_rubrics():  # one may begin as another
        rubric, begun = load_rubric(name), parse_rubric(draft_rubric("mine", name), "mine.toml")
        assert (begun.name, begun.hash) == ("mine", rubric.hash)
        assert (begun.golden, begun.translations) == (rubric.golden, rubric.translations)


def test_they_are_listed_and_say_where_they_do_not_apply(run: Run) -> None:
    listed = [line.split()[0] for line in run.ok("rubric", "list").splitlines()[2:] if line.strip()]
    assert [name for name in listed if name in named_rubrics()] == [*named_rubrics()]
    assert "Not for: Answers that may draw on" in run.ok("rubric", "show", "faithfulness")
    assert "Not for" not in run.ok("rubric", "show", "refusal")


def test_the_manual_names_them_with_their_questions() -> None:
    page = (ROOT / "docs" / "label-a-file.md").read_text("utf-8")
    for name in [*NAMES, "refusal"]:
        assert f"| `{name}` | {load_rubric(name).question} |" in page
