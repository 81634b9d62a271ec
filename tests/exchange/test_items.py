"""Items to rate from the files of other tools. Those in `items` were made by the tools themselves
(harness/exports); the others are written here as the tools' documentation has them. All synthetic.
"""

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from evenhand.exchange.readers.reading import read_export, read_items
from evenhand.exchange.readers.rows import ItemTable
from evenhand.exchange.readers.source import ANSWERED, ASKED, Numeral, bare_cell, text_in, texts_of
from evenhand.study.tables.formats import write_table
from harness.exports.contents import ANSWERED_BY, ANSWERS, DOCUMENTS, JUDGED, QUESTIONS, TRUE
from tests.cases import refused
from tests.exchange.conftest import packed, written

ITEMS = Path(__file__).with_name("items")
CONTEXT = "\n\n".join(DOCUMENTS)


@dataclass(frozen=True)
class Made:
    """A file that a tool made of the four questions and answers, and which of their texts it has;
    its ids, its other columns and the labels of its judge are in golden.json.
    """

    file: str
    subject: str = ANSWERED_BY
    context: bool = True
    reference: bool = True
    prompt: str = "{}"


MADE = [
    Made("deepeval.json", subject=""),
    Made("langfuse_traces.json", reference=False),
    Made("langsmith_runs.jsonl", reference=False),
    Made("mlflow.json"),
    Made("openinference.jsonl", reference=False),
    Made("phoenix.jsonl", reference=False),
    Made("samples_office.jsonl", subject="", context=False, prompt="Question: {}\nAnswer:"),
    Made("opik_trace.json"),
    Made("weave.json", context=False, reference=False),
    Made("braintrust.jsonl", context=False),
]


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.file)
def test_a_file_of_a_tool_gives_the_items_that_it_holds(made: Made) -> None:
    items = read_items(ITEMS / made.file)
    table = items.table
    if made.file in ("mlflow.json", "phoenix.jsonl"):  # the newest first
        table = table[::-1]
    assert table["prompt"].tolist() == [made.prompt.format(asked) for asked in QUESTIONS]
    assert table["response"].tolist() == ANSWERS
    texts = ["prompt", *["context"] * made.context, *["reference"] * made.reference, "response"]
    assert list(items.show) == texts
    assert not made.context or set(table["context"]) == {CONTEXT}
    assert not made.reference or table["reference"].tolist() == TRUE
    assert set(table.get("subject", [""])) == {made.subject}


def test_a_judge_is_named_or_asked_for() -> None:
    told = "no labels of the judge 'ann'; it has those of fair"
    refused(told, read_items, ITEMS / "langfuse_traces.json", "ann")
    refused("it has no model's labels", read_items, ITEMS / "openinference.jsonl", "fair")


def test_labels_on_other_parts_of_the_file_are_no_items_labels(tmp_path: Path) -> None:
    traces = json.loads((ITEMS / "langfuse_traces.json").read_text())
    for trace in traces:
        for score in trace["scores"]:
            score["observationId"] = f"{trace['id']}-ask"
    told = "the labels of 'fair' are not on the items but on other"
    refused(told, read, tmp_path / "traces.json", traces, "fair")
    seen = [each | {"scores": [], "": "0"} for trace in traces for each in trace["observations"]]
    scores = [score for trace in traces for score in trace["scores"]]
    alone = read(tmp_path / "observations.jsonl", [*seen, *scores], "fair")
    assert alone.table["fair"].tolist() == JUDGED
    assert alone.table["observation_id"].str.endswith("-ask").all()
    assert "reference" not in alone.table  # as pandas writes row numbers, without a name


def read(path: Path, content: Any, judge: str = "") -> ItemTable:
    return read_items(written(path, content), judge)


def message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def test_outputs_of_promptfoo_with_a_rendered_chat_and_two_of_one_test(tmp_path: Path) -> None:
    chat = json.dumps([message("system", "Be brief."), message("user", "Why?")])
    known = {"testIdx": 0, "vars": {"question": "Why?", "context": "Since."}, "gradingResult": None}
    results = [
        known | {"promptIdx": n, "prompt": {"raw": chat}, "provider": {"id": f"m{n}"},
                 "response": {"output": f"So {n}."}}
        for n in (0, 1)
    ]  # fmt: skip
    items = read(tmp_path / "f.json", {"results": {"results": results}})
    assert (items.cluster, items.show) == ("test", ("prompt", "context", "response"))
    assert items.table["subject"].tolist() == ["m0", "m1"]
    assert set(items.table["context"]) == {"Since."}


def test_examples_of_doccano_and_a_dataset_on_disk_count_once(tmp_path: Path) -> None:
    line = b'{"id": 5, "text": "Hi.", "label": [], "t": "x"}\n'
    (tmp_path / "f.zip").write_bytes(packed({"ann.jsonl": line, "ben.jsonl": line}))
    items = read_items(tmp_path / "f.zip")
    assert items.table.to_dict("records") == [{"text": "Hi.", "item_id": "5", "t": "x"}]
    assert items.show == ("text",)
    rows = [{"question": "Why?", "answer": "So.", "n": 1}, {"question": "How?", "answer": "Thus."}]
    table, folder = pa.Table.from_pylist(rows), tmp_path / "set"
    folder.mkdir()
    file = str(folder / "data-00000-of-00001.arrow")
    with pa.OSFile(file, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    assert read_items(folder).table["answer"].tolist() == ["So.", "Thus."]


VOTE = {
    "question_id": "q/81", "model_a": "org/vicuna", "model_b": "alpaca", "winner": "model_a",
    "judge": "expert_1", "turn": 2,
    **{f"conversation_{side}": [message("user", "One?"), message("assistant", f"{name}1"),
                                message("user", "Two?"), message("assistant", f"{name}2")]
       for side, name in (("a", "v"), ("b", "a"))},
}  # fmt: skip


def test_two_answers_can_replace_one_row_with_a_judge_s_verdict(tmp_path: Path) -> None:
    votes = [VOTE | {"turn": 1}, VOTE | {"turn": 1, "judge": "gpt-4", "winner": "model_b"}]
    expected = {
        "question": "One?", "answer_a": "a1", "answer_b": "v1",
        "item_id": "q/81/1/alpaca/org/vicuna", "model_a": "alpaca", "model_b": "org/vicuna",
    }  # fmt: skip
    path = written(tmp_path / "votes.jsonl", votes)
    judged = read_items(path, "gpt-4", compared=True).table.to_dict("records")
    assert judged == [expected | {"gpt-4": "a"}]
    answers = read_items(path).table
    assert set(answers["item_id"]) == {"q/81/1/alpaca", "q/81/1/org/vicuna"}
    assert set(answers["question_id"]) == set(read_export(path).table["cluster_id"]) == {"q/81"}
    written(path, [VOTE | {"model_a": "", "winner": "skipped"}, VOTE])
    assert read_export(path).table["label"].tolist() == ["b"]  # the other has none
    pd.DataFrame(votes).to_parquet(tmp_path / "votes.parquet")
    found = read_items(tmp_path / "votes.parquet", compared=True).table
    assert found.to_dict("records") == [expected]
    once = read_items(ITEMS / "mt_bench.jsonl", compared=True).table
    assert {"conversation_a", "conversation_b", "winner"} <= set(once)  # a table of pairs as it is


def test_two_answers_in_a_table_of_one_s_own_stay_a_table(tmp_path: Path) -> None:
    row = {"question": "Why?", "response_a": "x", "response_b": "y", "model_a": "m", "model_b": "n"}
    frame = pd.DataFrame([row | {"winner": "model_a"}])
    for name, compared in product(("f.csv", "f.jsonl", "f.parquet"), (True, False)):
        write_table(frame, tmp_path / name)
        found = read_items(tmp_path / name, "winner", compared=compared).table
        assert found.to_dict("records") == frame.to_dict("records")


REQUEST = {"model": "m1", "messages": [message("user", "Why?")]}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"question": "Why?", "context": ["Since."], "top_k": Numeral("3")}, "Why?"),
        ({"model": "m", "messages": [message("user", "Why?", tool_calls=1)], "tools": [1]}, "Why?"),
        ({"args": ["Why?"], "kwargs": {}}, "Why?"),
        ({"args": [], "kwargs": {"topic": "Why?"}}, "Why?"),
        ({"inputs": {"input": "Why?"}}, "Why?"),
        ({"question": "Why?", "answer": "So."}, '{"question": "Why?", "answer": "So."}'),
        ({"question": "Why?", "history": "Hi."}, '{"question": "Why?", "history": "Hi."}'),
        ({"a": "Why?", "n": Numeral("1.50")}, '{"a": "Why?", "n": 1.5}'),
        ("[not JSON", "[not JSON"),
        (None, ""),
        ({}, ""),
    ],
)
def test_nothing_is_said_to_be_asked_that_is_not_all_of_it(given: object, text: str) -> None:
    assert text_in(given, ASKED) == text


def test_what_only_the_model_saw_is_not_rated_and_context_is_found_within() -> None:
    parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "So."}]
    assert text_in([message("assistant", parts)], ANSWERED) == "So."
    said = {"type": "message", "role": "assistant"}
    said["content"] = [{"type": "output_text", "text": "So."}]
    output = [{"type": "reasoning", "summary": []}, said]
    assert text_in({"object": "response", "model": "m", "output": output}, ANSWERED) == "So."
    given = {"inputs": {"question": "Why?", "documents": ["a", {"text": "b"}], "target": "So."}}
    assert texts_of(given, {"output": "Hm."}) == {
        "prompt": "Why?", "context": "a\n\nb", "reference": "So.", "response": "Hm."
    }  # fmt: skip


def test_other_faults_are_one_sentence(tmp_path: Path) -> None:
    tasks = [{"id": 1, "data": {"text": text}, "annotations": []} for text in ("a", "b")]
    refused(r"f\.json: the id '1' comes twice, with other texts", read, tmp_path / "f.json", tasks)
    requests = [{"custom_id": "1", "body": REQUEST}]
    refused("put the lines of the batch's output behind", read, tmp_path / "b.jsonl", requests)
    first = (ITEMS / "langsmith_runs.jsonl").read_text().splitlines()[0]
    (tmp_path / "runs.jsonl").write_text(first + '\n{"id": 1,,}\n')
    refused(r"runs\.jsonl, line 2 cannot be read as JSON", read_items, tmp_path / "runs.jsonl")
    refused(r"there is no file none\.json", read_items, tmp_path / "none.json")


FORMS = Path(__file__).with_name("reply_forms.jsonl").read_text("utf-8").splitlines()
OTHERS = [
    "plain", '{"name": "Ann", "age": 3}', '{"model": "T", "wheels": 4}', '{"text": "x"}',
    '{"answer": "yes", "why": "x"}', '{"type": "refund", "text": "T"}', "[1, 2]",
    '{"title": "A", "message": {"role": "user", "content": "b"}}', '{"outputs": [{"a": 1}]}',
    '{"candidates": [{"name": "Ann", "score": 3}]}', '{"results": [true, false]}',
    '{"question": "Capital?", "choices": [{"text": "Paris"}, {"text": "Lyon"}]}',
    '{"model": "Model 3", "text": "A red car", "provider": "Tesla"}',
    '[{"provider": "Vodafone", "result": "approved"}]', '{"choices": [{"label": "A"}], "q": "?"}',
    '{"results": [{"stop_reason": "x", "station": "Main St"}]}',
]  # fmt: skip


def test_the_text_of_a_reply_is_what_is_shown_and_other_json_stays_as_it_is() -> None:
    """Replies as providers' APIs give them: never with the model or its usage."""
    assert [form for form in FORMS if bare_cell(form) != "Hi."] == []
    assert [bare_cell(cell) for cell in OTHERS] == OTHERS
