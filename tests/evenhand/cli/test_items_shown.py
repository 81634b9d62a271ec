"""What annotators will see of a file of items, and that nothing is hidden from them without a
word.
"""

import shlex
from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.reporting.new_study import look_at_items
from evenhand.reporting.ratings_file.declared import ItemOptions
from tests.commands import Run

TEXTS = {
    "prompt": "How do I boil an egg?",
    "response": "Seven minutes in boiling water.",
    "criterion": "Names the time",
    "notes": "seen by two of us in May",
    "topic": "food",
    "model": "gpt 4o of May",
}


def items(path: Path, *columns: str) -> Path:
    rows = [{name: f"{TEXTS.get(name, name)} {n}" for name in columns} for n in range(3)]
    frame = pd.DataFrame(rows)
    if "topic" in frame:
        frame["topic"] = "food"
    frame.to_csv(path / "items.csv", index=False)
    return path / "items.csv"


@pytest.fixture
def new(run: Run, here: Path):
    """new(question, columns, options): what `evenhand new` says of a file with these columns."""

    def new(question: str, *columns: str, options: str = "", folder: str = "study") -> str:
        items(here, *columns)
        asked = ["--question", question, "--options", "yes,no", *shlex.split(options)]
        done = run("new", folder, "--items", "items.csv", *asked)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return new


@pytest.mark.parametrize("name", ["criterion", "criteria", "requirement", "rubric_item"])
def test_what_a_response_is_held_against_is_shown(new, name: str) -> None:
    said = new("Is it met?", "prompt", "response", name, "topic", options="--subject topic")
    assert f"shown: prompt, {name}, response;" in said and "subject: topic" in said
    assert "will not see" not in said


def test_a_text_that_the_question_names_is_shown(new) -> None:
    columns = ("prompt", "instruction", "style_guide", "response")
    said = new("Does it follow the instructions and the style guide?", *columns)
    assert "shown: prompt, instruction, style_guide, response;" in said
    said = new("Is it polite?", *columns, folder="other")
    assert "shown: prompt, response;" in said
    assert "Annotators will not see instruction, style_guide." in said


def test_every_hidden_text_is_listed_with_the_option_that_shows_it(new) -> None:
    columns = ("id", "prompt", "response", "notes", "topic", "model")
    said = new("Is the model right?", *columns)
    show = "--show prompt,response,notes"
    assert f"Annotators will not see notes. {show} shows all." in said
    assert "not shown: notes" in said
    said = new("Is the model right?", *columns, options=show, folder="again")
    assert "shown: prompt, response, notes" in said
    assert "will not see" not in said


def test_texts_beside_two_answers_are_listed_too(new, run: Run, tmp_path: Path) -> None:
    items(tmp_path, "prompt", "response_a", "response_b", "answer", "notes")
    said = run.ok("new", "two", "--items", "items.csv")
    assert "Annotators will not see notes, answer." in said
    assert "--show prompt,response_a,response_b,notes,answer shows all." in said


def test_a_rubric_that_does_not_show_a_text_is_named(run: Run, tmp_path: Path) -> None:
    file = items(tmp_path, "prompt", "context", "reference", "response")
    assert "Annotators will not see reference, which the rubric does not show." in run.ok(
        "new", tmp_path / "study", "--items", file, "--rubric", "faithfulness"
    )


def test_python_and_the_page_are_told(tmp_path: Path) -> None:
    file = items(tmp_path, "prompt", "response", "notes")
    found = eh.label(file, tmp_path / "study", question="Right?", options=["yes", "no"])
    assert any("show=['prompt', 'response', 'notes']" in note for note in found.notes)
    looked = look_at_items(file, ItemOptions(question="Are the notes right?"))
    assert looked.show == ["prompt", "notes", "response"]
    assert ("not shown", "notes") in look_at_items(file, ItemOptions(question="Right?")).taken
