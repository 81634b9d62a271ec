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

INSTRUCTED = "prompt,instruction,style_guide,response"
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


@pytest.mark.parametrize(
    ("question", "columns", "options", "shown", "hidden"),
    [
        ("Is it met?", "prompt,response,criterion,topic", "--subject topic",
         "shown: prompt, criterion, response; subject: topic", ""),
        ("Is it met?", "prompt,response,rubric_item,topic", "--subject topic",
         "shown: prompt, rubric_item, response; subject: topic", ""),
        ("Does it follow the instructions and the style guide?", INSTRUCTED, "",
         "shown: prompt, instruction, style_guide, response;", ""),
        ("Is it polite?", INSTRUCTED, "", "shown: prompt, response;",
         "Annotators will not see instruction, style_guide."),
        ("Is the model right?", "id,prompt,response,notes,topic,model", "", "not shown: notes",
         "Annotators will not see notes. --show prompt,response,notes shows all."),
        ("Is the model right?", "id,prompt,response,notes,topic,model",
         "--show prompt,response,notes", "shown: prompt, response, notes", ""),
    ],
)  # fmt: skip
def test_what_annotators_see_of_a_file_is_said(
    run: Run, here: Path, question, columns, options, shown, hidden
) -> None:
    items(here, *columns.split(","))
    asked = ["--question", question, "--options", "yes,no", *shlex.split(options)]
    said = run.ok("new", "study", "--items", "items.csv", *asked)
    for part in shown.split("; "):
        assert part in said
    assert hidden in said
    assert bool(hidden) is ("will not see" in said)


def test_texts_beside_two_answers_or_a_rubric_are_listed_too(run: Run, here: Path) -> None:
    items(here, "prompt", "response_a", "response_b", "answer", "notes")
    said = run.ok("new", "two", "--items", "items.csv")
    assert "Annotators will not see notes, answer." in said
    assert "--show prompt,response_a,response_b,notes,answer shows all." in said
    items(here, "prompt", "context", "reference", "response")
    said = run.ok("new", "study", "--items", "items.csv", "--rubric", "faithfulness")
    assert "Annotators will not see reference, which the rubric does not show." in said


def test_python_and_the_page_are_told(tmp_path: Path) -> None:
    file = items(tmp_path, "prompt", "response", "notes")
    found = eh.label(file, tmp_path / "study", question="Right?", options=["yes", "no"])
    assert any("show=['prompt', 'response', 'notes']" in note for note in found.notes)
    looked = look_at_items(file, ItemOptions(question="Are the notes right?"))
    assert looked.show == ["prompt", "notes", "response"]
    assert ("not shown", "notes") in look_at_items(file, ItemOptions(question="Right?")).taken
