"""Items from a tool's file, rated by people: labels go back under the ids of the tool, and
nothing that annotators will not see of an item is hidden from them without a word.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.reporting.new_study import look_at_items
from evenhand.reporting.ratings_file.declared import ItemOptions
from evenhand.study import open_study
from harness.studies import with_labels
from tests.commands import Run
from tests.exchange.conftest import written
from tests.exchange.test_items import ITEMS, VOTE

ASKED = ("--question", "Is it right?", "--options", "yes,no")


def rated(folder: Path, file: str, judge: str) -> pd.DataFrame:
    """Make a study of a tool's file, and have ann label every unit; return the units."""
    hidden = ["--judge", judge] if judge else []
    assert main(["new", str(folder), "--items", str(ITEMS / file), *ASKED, *hidden]) == 0
    with open_study(folder) as study:
        units = study.units()
        (rubric,) = study.rubrics
        with_labels(study, {"ann": ["yes"] * len(units)}, rubric)
        kinds = study.ratings()["rater_kind"].value_counts().to_dict()
        assert kinds == {"human": len(units)} | ({"model": len(units)} if judge else {})
    return units


def sent(
    folder: Path, form: str, suffix: str = ".jsonl", rater: str = "ann"
) -> list[dict[str, Any]]:
    """What ann said, or everybody, as it goes to the tool."""
    out = folder.parent / f"{form}{suffix}"
    words = ["export", str(folder), "--format", form, "--out", str(out)]
    assert main([*words, *(("--rater", rater) if rater else ())]) == 0
    text = out.read_text("utf-8")
    return json.loads(text) if suffix == ".json" else list(map(json.loads, text.splitlines()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "file", "judge", "key", "told"),
    [
        ("langfuse", "langfuse_traces.json", "fair", "traceId", ("value", "yes")),
        ("mlflow", "mlflow.json", "correct", "trace_id", ("source", "HUMAN")),
        ("langsmith", "langsmith_runs.jsonl", "correct", "run_id", ("feedback_source", "ann")),
        ("phoenix", "openinference.jsonl", "", "span_id", ("annotator_kind", "HUMAN")),
    ],
)
def test_labels_go_back_to_traces_runs_and_spans(tmp_path, form, file, judge, key, told) -> None:
    units = rated(tmp_path / "s", file, judge)
    given = sent(tmp_path / "s", form)
    wanted = {*units["span_id" if form == "phoenix" else "item_id"]}
    if form == "langfuse":
        wanted = {f"trace-q{n}" for n in range(1, 5)}
    elif form == "mlflow":
        wanted = {each["info"]["trace_id"] for each in json.loads((ITEMS / file).read_text())}
    assert {each[key] for each in given} == wanted
    name, value = told
    assert all(value in str(each[name]) for each in given)
    others = {"observationId", "sessionId", "span_id"} - {key}
    assert not any(others & each.keys() for each in given)


@pytest.mark.slow
def test_scores_go_back_to_the_samples_and_epochs_of_inspect(tmp_path: Path) -> None:
    assert rated(tmp_path / "s", "inspect.eval", "model_graded_qa")["cluster_id"].nunique() == 4
    with open_study(tmp_path / "s") as study:
        assert study.config.analysis.cluster == "sample_id"
    records = sent(tmp_path / "s", "inspect", suffix=".json")
    assert sorted((each["id"], each["epoch"]) for each in records) == [
        ("q1", 1), ("q1", 2), ("q2", 1), ("q2", 2)
    ]  # fmt: skip
    assert [each["value"] for each in records] == [{"ann": "yes"}] * 4


@pytest.mark.journey
def test_items_of_a_table_go_back_under_their_own_ids(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,output,task_id\na b,x,5\nc,y,6\n")
    assert main(["new", str(tmp_path / "s"), "--items", str(tmp_path / "t.csv"), *ASKED]) == 0
    with open_study(tmp_path / "s") as study:
        (rubric,) = study.rubrics
        with_labels(study, {who: ["yes", "no"] for who in ("ann", "m:x")}, rubric, graders=["m:x"])
    assert [each["traceId"] for each in sent(tmp_path / "s", "langfuse")] == ["a b", "c"]
    tasks = sent(tmp_path / "s", "label-studio", ".json", rater="")
    assert [(each["id"], each["data"]["item_id"]) for each in tasks] == [("5", "a b"), ("6", "c")]
    words = ["--format", "argilla", "--out", str(tmp_path / "set"), "--rater", "m:x"]
    assert main(["export", str(tmp_path / "s"), *words]) == 0
    records = json.loads((tmp_path / "set" / "records.json").read_text("utf-8"))
    assert [each["id"] for each in records] == ["a b", "c"]


@pytest.mark.slow
def test_votes_of_several_judges_are_compared(tmp_path: Path) -> None:
    votes = []
    for number in range(81, 85):
        asked = [{"role": "user", "content": f"Question {number}"}]
        talks = {side: asked + VOTE[side][1:2] for side in ("conversation_a", "conversation_b")}
        own = VOTE | talks | {"turn": 1, "question_id": number}
        votes += [own | {"judge": judge} for judge in ("expert_1", "gpt-4")]
    path = written(tmp_path / "votes.jsonl", votes)
    assert main(["new", str(tmp_path / "s"), "--items", str(path), "--judge", "gpt-4"]) == 0
    with open_study(tmp_path / "s") as study:
        units = study.units()
        judged = study.ratings()
    assert set(units["item_id"]) == {f"{n}/1/alpaca/org/vicuna" for n in range(81, 85)}
    assert set(judged["label"]) == {"B"}  # vicuna, whose answer stands second in every row
    assert set(judged["rater_id"]) == {"gpt-4"}


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
    cells = {name: [f"{TEXTS.get(name, name)} {n}" for n in range(3)] for name in columns}
    if "topic" in cells:
        cells["topic"] = ["food"] * 3
    pd.DataFrame(cells).to_csv(path / "items.csv", index=False)
    return path / "items.csv"


@pytest.mark.parametrize(("question", "columns", "options", "shown", "hidden"), [
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
])  # fmt: skip
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
    found = eh.label(file, tmp_path / "study", question="Right?", options=["gut", "mies"])
    assert any(note.startswith("Affirmative: gut. To change it") for note in found.notes)
    assert any("show=['prompt', 'response', 'notes']" in note for note in found.notes)
    looked = look_at_items(file, ItemOptions(question="Are the notes right?"))
    assert looked.show == ["prompt", "notes", "response"]
    assert ("not shown", "notes") in look_at_items(file, ItemOptions(question="Right?")).roles
    two = items(tmp_path, "prompt", "response_a", "response_b", "notes")
    assert look_at_items(two, ItemOptions()).show == ["prompt", "response_a", "response_b"]
