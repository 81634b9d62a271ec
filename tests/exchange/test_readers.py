"""Each export, made by the tool itself (harness/exports), is read as what it holds."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from evenhand.exchange.readers.reading import FORMATS, format_of, read_export
from evenhand.exchange.readers.source import Source
from tests.cases import refused
from tests.exchange.conftest import Wrote

FILES = Path(__file__).with_name("files")
ANN, BEN, GPT = "yyyynnnn", "yyynnnny", "yyyynnyn"
GRADER = "openai/gpt-5-mini"
LETTERS = {"yes": "y", "no": "n", "true": "y", "false": "n", "C": "y", "I": "n", "a": "y", "b": "n"}
# Parquet has one type for all values of a table: beside a number, true is 1.
LETTERS |= {"1": "y", "0": "n", "1.0": "y", "0.0": "n"}
"""Whatever a tool calls them: what the raters said, unit by unit; ? is a rating without a label."""
UUID = "00000000-0000-4000-8000-00000000000"
HUMAN, MODEL, UNKNOWN, GOLD = "human", "model", "", "adjudicator"


@dataclass(frozen=True)
class Made:
    """A file, the format that it is known as, and all that is to be read from it.

    `said` has by rubric, rater and kind the labels of eight units in their order in the file, "."
    where there is none. What is left out, and what is known of the units, is in golden.json.
    """

    file: str
    form: str
    said: dict[tuple[str, str, str], str]
    units: tuple[str, ...] = ()


def two(ann: str, ben: str, rubric: str = "") -> dict[tuple[str, str, str], str]:
    """What the two annotators said, under the names that the tool gives them."""
    return {(rubric, ann, HUMAN): ANN, (rubric, ben, HUMAN): BEN}


def three(ann: str, ben: str, gpt: str, rubric: str = "") -> dict[tuple[str, str, str], str]:
    return {**two(ann, ben, rubric), (rubric, gpt, MODEL): GPT}


LANGFUSE = tuple(f"trace-u{n}" for n in range(1, 9))
NUMBERS = tuple(str(n) for n in range(1, 9))
# Newest first; ann has changed her mind on the seventh, the grader timed out on the last.
MLFLOW = {
    ("correct", "ann@example.org", HUMAN): ("yyyynnyn")[::-1],
    ("correct", "ben@example.org", HUMAN): BEN[::-1],
    ("correct", GRADER, MODEL): ("yyyynny?")[::-1],
}
ARGILLA = three(f"{UUID}1", f"{UUID}2", GRADER, "fair")
EVAL = {
    ("model_graded_qa", "model_graded_qa", MODEL): GPT,
    ("model_graded_qa", "ann", UNKNOWN): ANN,
    ("model_graded_qa", "ben", UNKNOWN): "yyynnnn.",
}
LS = {
    **three("ann@example.org", "ben@example.org", GRADER, "fair"),
    ("fair", "ben@example.org", HUMAN): "yyynn.ny",
}
STARRED = {
    ("clear", "ann@example.org", HUMAN): "44442222",
    ("clear", "ben@example.org", HUMAN): "44422.24",
}
PAIRS = tuple(f"{81 + n}/1/llama-13b/vicuna-13b" for n in range(8))
POTATO = {("fair", "ann", HUMAN): ".yyynnnn", ("fair", "ben", HUMAN): BEN}

MADE = [
    Made("label_studio.json", "label-studio", {**LS, **STARRED}, NUMBERS),
    Made("inspect.eval", "inspect", EVAL),
    Made("mlflow.json", "mlflow", MLFLOW),
    Made("mlflow_frame.jsonl", "mlflow", MLFLOW),
    Made("mlflow.parquet", "mlflow", MLFLOW),
    Made("langfuse.json", "langfuse", three("ann", "ben", GRADER, "fair"), LANGFUSE),
    Made("langfuse_v3.json", "langfuse", three("ann", "ben", GRADER, "fair"), LANGFUSE),
    Made("langfuse_blob.jsonl", "langfuse", three("ann", "ben", "fair-check", "fair"), LANGFUSE),
    Made("../items/langfuse_traces.json", "langfuse",
         {("fair", "ann", HUMAN): "yyyy", ("fair", GRADER, MODEL): "ynyy"},
         tuple(f"trace-q{n}" for n in range(1, 5))),
    Made("langsmith.jsonl", "langsmith", three("ann", "ben", GRADER, "fair"),
         tuple(f"{UUID}{n}" for n in range(1, 9))),
    Made("promptfoo.json", "promptfoo",
         {("", "human", HUMAN): "yyyynnn.", ("", "file://./grader.js", MODEL): GPT},
         tuple(f"{n}-0" for n in range(8))),
    Made("deepeval.json", "deepeval", {("Fair", GRADER, MODEL): GPT}),
    Made("deepeval_run.json", "deepeval", {("Fair", GRADER, MODEL): GPT}),
    Made("argilla.json", "argilla", {**ARGILLA, ("fair", f"{UUID}3", HUMAN): "..n....."}),
    Made("potato.jsonl", "potato", POTATO),
    Made("potato.csv", "potato", POTATO),
    Made("prodigy.jsonl", "prodigy",
         {("", "fair-ann", HUMAN): ANN, ("", "fair-ben", HUMAN): "yy.nnnny"},
         tuple(str(1000 + n) for n in range(8))),
    Made("doccano.zip", "doccano", {**two("ann", "ben"), ("", "ann", HUMAN): "yyyy.nnn"}, NUMBERS),
    Made("phoenix.json", "phoenix", three("ann", "ben", GRADER, "fair")),
    Made("phoenix.csv", "phoenix",
         {key: said[::-1] for key, said in three("ann", "ben", GRADER, "fair").items()}),
    Made("opik.json", "opik",
         {**three("ann", "ben", GRADER, "fair"), ("length", "sdk", UNKNOWN): "3.0" * 8},
         tuple(f"trace-u{n}" for n in range(1, 9))),
    Made("weave.jsonl", "weave", {**two("ann", "ben", "fair"), ("fair", "judge", UNKNOWN): GPT}),
    Made("braintrust.json", "braintrust", three("ann", "ben", "judge")),
    Made("samples_fair.jsonl", "lm-eval",
         {("", "gold", GOLD): ANN, ("", "model", MODEL): GPT}, tuple("01234567")),
    Made("nested.json", "json", three("ann_1", "ann_2", "gpt-4o")),
    Made("mt_bench.jsonl", "pair-votes",
         {("", "expert_1", HUMAN): ANN, ("", "author_2", HUMAN): BEN,
          ("", "gpt4_pair", MODEL): "yyy?nnyn"}, PAIRS),
]  # fmt: skip
UNITS = tuple(f"u{n}" for n in range(1, 9))


def said_in(table: pd.DataFrame, *units: str) -> dict[tuple[str, str, str], str]:
    """The labels as a letter a unit, by rubric, rater and kind."""
    order = list(units or dict.fromkeys(table["unit_id"]))
    found: dict[tuple[str, str, str], list[str]] = defaultdict(lambda: ["."] * len(order))
    for row in table.to_dict("records"):
        letters = found[row["rubric"], row["rater_id"], row["rater_kind"]]
        letters[order.index(row["unit_id"])] = LETTERS.get(row["label"], row["label"]) or "?"
    return {key: "".join(letters) for key, letters in found.items()}


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.file)
def test_an_export_is_read_as_what_it_holds(made: Made) -> None:
    assert format_of(Source(FILES / made.file)) == made.form
    export = read_export(FILES / made.file)
    # Traces and spans have random ids.
    units = () if made.form in ("mlflow", "phoenix") else made.units or UNITS
    assert said_in(export.table, *units) == made.said
    assert bool(export.left_out) == any(note.startswith("Left out") for note in export.notes)
    pd.testing.assert_frame_equal(export.table, read_export(FILES / made.file, made.form).table)


def test_every_format_has_a_file() -> None:
    forms = {format_of(Source(path)) for path in FILES.iterdir()}
    assert forms == set(FORMATS) - {"table", "headless"}


def test_a_file_in_another_format_than_the_one_named_is_refused(tmp_path: Path) -> None:
    table, scores = tmp_path / "f.csv", FILES / "langfuse.json"
    table.write_text("item,ann\n1,yes\n")
    for form, file, told in (
        ("Doc-Cano", scores, "is not in the format doccano; it looks like langfuse$"),
        ("json", table, "f.csv is not in the format json$"),
        ("xml", table, "there is no format 'xml'; use table, headless, excel, inspect"),
        ("TABLE", tmp_path / "none.csv", "there is no file"),
    ):
        refused(told, read_export, file, form)
    refused("is no workbook of Excel", read_export, table, sheet="One")


def test_several_choices_are_one_label_where_that_is_said(wrote: Wrote) -> None:
    tasks = []
    for n, choices in enumerate([["bug", "billing"], ["bug"]]):
        result = {"type": "choices", "from_name": "topic", "value": {"choices": choices}}
        given = {"id": n, "data": {"text": f"t{n}"}}
        tasks.append(given | {"annotations": [{"completed_by": 1, "result": [result]}]})
    file = wrote(tasks)
    labels = read_export(file, "label-studio", several=True).table["label"]
    assert labels.tolist() == ['["bug", "billing"]', "bug"]
    assert dict(read_export(file, "label-studio").left_out) == {"answers with several labels": 1}
    export = read_export(FILES / "doccano.zip", several=True)
    assert dict(export.left_out) == {}
    assert [label for label in export.table["label"] if label.startswith("[")] == ['["no", "yes"]']
