"""Which files of other tools are read, and what is taken from each: `python -m benchmarks.formats`.

Reads the exports in tests/exchange/files and tests/exchange/items, which the tools made themselves
(`harness/exports`), and writes results/formats.md. Of each file with texts it makes a study, has
every item labelled, and counts the labels that go back under the tool's own ids.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from benchmarks.documents import RESULTS
from evenhand.cli.main import main as run
from evenhand.errors import InputError
from evenhand.exchange.readers.reading import (
    ITEM_READERS,
    TABLE,
    format_of,
    read_export,
    read_items,
)
from evenhand.exchange.readers.rows import Export
from evenhand.exchange.readers.source import Source
from evenhand.study import open_study
from evenhand.study.lead.imports import import_ratings
from evenhand.study.tables.formats import write_table
from evenhand.study.tables.ratings import validate_ratings

ROOT = Path(__file__).parent.parent
FILES = ROOT / "tests" / "exchange" / "files"
WITH_TEXTS = "../items/"
OUT = RESULTS / "formats.md"
BY_HAND = "by hand, from its documentation"
MADE = {
    "wide.xlsx": "openpyxl 3.1.5",
    "label_studio.json": "label-studio 1.23.2, JSON",
    "inspect.eval": "inspect_ai 0.3.285, Zstandard, scores edited",
    "mlflow.json": "mlflow 3.17.2, `Trace.to_dict`",
    "mlflow_frame.jsonl": "mlflow 3.17.2, `search_traces`",
    "mlflow.parquet": "mlflow 3.17.2, `search_traces` as Parquet",
    "langfuse.json": "langfuse 3.15.0, a page of the API (v2)",
    "langfuse_v3.json": "langfuse 5.0.4, a page of the API (v3)",
    "langfuse_blob.jsonl": f"{BY_HAND} (blob storage)",
    "langsmith.jsonl": "langsmith 0.15.0, `Feedback`",
    "promptfoo.json": "promptfoo 0.121.20; manual ratings added as its page stores them",
    "deepeval.json": "deepeval 4.3.1, `evaluate`",
    "deepeval_run.json": "deepeval 4.3.1, the test run",
    "datasets": "datasets 5.2.0, `save_to_disk`",
    "argilla.json": "argilla 2.8.0, `to_json`",
    "potato.jsonl": "potato-annotation 2.12.1, JSONL",
    "potato.csv": "potato-annotation 2.12.1, CSV",
    "prodigy.jsonl": f"{BY_HAND} (the tool is sold)",
    "doccano.zip": "doccano 1.8.4, JSONL, a file for each annotator",
    "phoenix.json": "arize-phoenix 20.26.1, `get_span_annotations`",
    "phoenix.csv": "arize-phoenix 20.26.1, `get_span_annotations_dataframe`",
    "opik.json": "classes of opik 2.2.122, `search_traces`",
    "weave.jsonl": "feedback as weave 0.54.0 sends it, `get_calls`",
    "braintrust.json": "scores of braintrust 0.47.0, `Eval`, in rows as its types have them",
    "samples_fair.jsonl": "lm_eval 0.4.13, `--log_samples`, with choices",
    "mt_bench.jsonl": "by hand, columns of lmsys/mt_bench_human_judgments",
    "nested.json": "by hand, items by id with lists of answers",
    f"{WITH_TEXTS}inspect.eval": "inspect_ai 0.3.285, two epochs",
    f"{WITH_TEXTS}mlflow.json": "mlflow 3.17.2, traces with a retriever",
    f"{WITH_TEXTS}langfuse_traces.json": "langfuse 3.15.0, traces with observations and scores",
    f"{WITH_TEXTS}langsmith_runs.jsonl": "langsmith 0.15.0, `Run`",
    f"{WITH_TEXTS}deepeval.json": "deepeval 4.3.1, `evaluate`, with retrieval context",
    f"{WITH_TEXTS}doccano.jsonl": f"{BY_HAND} (one annotator)",
    f"{WITH_TEXTS}mt_bench.jsonl": "by hand, votes with both conversations",
    f"{WITH_TEXTS}datasets": "datasets 5.2.0, `save_to_disk`, a row for each answer",
    f"{WITH_TEXTS}openinference.jsonl": "openinference-instrumentation 0.1.72, spans as JSON",
    f"{WITH_TEXTS}phoenix.jsonl": "arize-phoenix 20.26.1, `get_spans_dataframe`",
    f"{WITH_TEXTS}samples_office.jsonl": "lm_eval 0.4.13, `--log_samples`",
    f"{WITH_TEXTS}opik_trace.json": "classes of opik 2.2.122, `opik export`",
    f"{WITH_TEXTS}weave.json": "calls in the form of weave 0.54.0, `to_dict`",
    f"{WITH_TEXTS}braintrust.jsonl": "scores of braintrust 0.47.0, `Eval`, rows alone",
    f"{WITH_TEXTS}batch.jsonl": f"{BY_HAND} (OpenAI's batch, requests and responses)",
}
"""Each file, and the tool that made it."""
ANSWERS = f"{WITH_TEXTS}datasets"
"""The one dataset whose rows are no ratings."""
BACK = {
    "inspect": ("inspect", "id"),
    "label-studio": ("label-studio", "id"),
    "mlflow": ("mlflow", "trace_id"),
    "langfuse": ("langfuse", "traceId"),
    "langsmith": ("langsmith", "run_id"),
    "argilla": ("argilla", "id"),
    "phoenix": ("phoenix", "span_id"),
    "hugging-face": ("hugging-face", "item_id"),
}
"""The format to write labels of a format's items in, and its field that names the item."""
OF_A_GRADER = ("argilla", "label-studio")
WRITTEN = {
    "label-studio": "tasks.json",
    "mlflow": "assessments.jsonl",
    "langfuse": "scores.jsonl",
    "langsmith": "feedback.jsonl",
    "phoenix": "annotations.jsonl",
    "argilla": "records",
    "hugging-face": "dataset",
}
"""What evenhand writes, by format, under a name that it may have. What it writes for Inspect goes
into a log by Inspect alone.
"""
FOREIGN = {
    "read at once": 159,
    "read with the options named": 23,
    "refused with a mend": 22,
    "misread": 0,
}
"""What became of the files of harness/foreign.py, which a test counts."""
_COLUMNS = ["unit_id", "rubric", "rater_id", "rater_kind", "label"]

PAGE = """# What is read of other tools' files

Written by `python -m benchmarks.formats` from synthetic files of 2026-11-23: eight units, two
annotators, a grader; or four answers. Rows are ratings; *in* counts those left out. *Items in* are
what [`evenhand label FILE`](../../docs/label-a-file.md) takes from the same file: texts, who
answered, what belongs together, and the tool's own ids. *Labels back* is the format of `evenhand
export --format` that takes labels to the tool, and how many of the items it then named by the
tool's own ids.

| `--format` | made by | rows in | rows read | left out | items in | labels back |
| --- | --- | ---: | ---: | --- | ---: | --- |
{rows}

`chat` holds items alone; `a table` is read as one, by its columns. A
file with no texts (*none*) is refused with a sentence that says which one has them.

What `evenhand export --format NAME` writes ([contents](../../docs/formats.md#write-files)) is
read back: of the ratings of eight units by two annotators and a grader, so many return unchanged.

| `--format` | ratings written | read back, unchanged | what does not go there |
| --- | ---: | ---: | --- |
{back}

Refused: doccano's export of a project with shared annotation, which has lost who labelled what.

`tests/exchange/test_foreign.py` reads {foreign} files of tables under other names (separators,
encodings, orders, times, nested values, surveys, workbooks, tools' exports) and types what is said
as it stands: {outcomes}.
"""


def rows() -> Iterator[tuple[str, str, Export | None, Path]]:
    """The format of each file, who made it, the ratings read, if it has any, and its path."""
    for file, maker in MADE.items():
        path = FILES / file
        form = format_of(Source(path))
        if form == TABLE:
            form = next(n for n, each in ITEM_READERS.items() if each.items(Source(path)))
        yield form, maker, None if file == ANSWERS else _ratings(path), path


def _ratings(path: Path) -> Export | None:
    """The ratings of a file; None where it has none."""
    try:
        return None if format_of(Source(path)) == TABLE else read_export(path)
    except InputError:
        return None


def items_in(path: Path) -> str:
    """The number of items in a file; "a table" where they are its rows."""
    try:
        found = read_items(path)
    except InputError:
        return "none"
    return f"{len(found.table)}" if found.units or "answer" in found.table else "a table"


def labels_back(form: str, path: Path) -> str:
    """The format in which labels of a file's items went back, and on how many of them."""
    if form not in BACK:
        return ""
    written, key = BACK[form]
    with TemporaryDirectory() as place, redirect_stdout(StringIO()):
        folder = Path(place) / "study"
        asked = ["--question", "Is it right?", "--options", "yes,no"]
        assert run(["new", str(folder), "--items", str(path), *asked]) == 0
        with open_study(folder) as study:
            units = study.units()
            labels = pd.DataFrame({"unit_id": units["unit_id"], "rubric": "rating", "label": "yes"})
            for rater, kind in (("ann", "human"), ("x:grader", "model")):
                own = labels.assign(rater_id=rater, rater_kind=kind)
                import_ratings(study, validate_ratings(own), "labels.csv")
        rater = "x:grader" if written in OF_A_GRADER else "ann"
        suffix = {"inspect": ".json", "label-studio": ".json"}.get(written, ".jsonl")
        suffix = "" if written in ("argilla", "hugging-face") else suffix
        out = Path(place) / f"out{suffix}"
        words = ["export", str(folder), "--format", written, "--out", str(out), "--rater", rater]
        assert run(words) == 0
        got = {str(each[key]) for each in _records(out)}
    ids = units["sample_id"] if written == "inspect" else units["item_id"]
    assert got == set(ids), (got, ids)
    return f"`{written}`: {len(ids)}{' of a grader' if written in OF_A_GRADER else ''}"


def _records(out: Path) -> list[Any]:
    if (out / "units.parquet").is_file():
        return pd.read_parquet(out / "units.parquet").to_dict("records")
    text = (out / "records.json" if out.is_dir() else out).read_text("utf-8")
    records = [json.loads(line) for line in text.splitlines()] if out.suffix == ".jsonl" else []
    return records or list(json.loads(text))


def round_trips() -> Iterator[str]:
    """A row of the table for each format: write what one file holds, and read it again."""
    ratings = read_export(FILES / "langfuse.json").table[_COLUMNS]
    with TemporaryDirectory() as folder:
        given = Path(folder) / "ratings.csv"
        write_table(ratings, given)
        for form, name in WRITTEN.items():
            out = Path(folder) / name
            with redirect_stdout(StringIO()) as said:
                assert run(["export", str(given), "--format", form, "--out", str(out)]) == 0
            again = read_export(out, form).table[_COLUMNS]
            kept = len(ratings.merge(again))
            assert kept == len(again), said.getvalue()
            rest = sorted(set(ratings["rater_kind"]) - set(again["rater_kind"]))
            lost = "".join(f"labels of {kind} raters" for kind in rest)
            yield f"| `{form}` | {len(ratings)} | {kept} | {lost} |"


def page() -> str:
    order = list(ITEM_READERS)
    found = sorted(rows(), key=lambda row: order.index(row[0]))
    lines: list[list[str]] = []
    for form, maker, export, path in found:
        cells = ["", "", ""]
        if export is not None:
            left = ", ".join(f"{reason} ({count})" for reason, count in export.left_out.items())
            read = len(export.table)
            cells = [f"{read + sum(export.left_out.values())}", f"{read}", left]
        items = items_in(path)
        back = labels_back(form, path) if items.isdecimal() else ""
        lines.append([f"`{form}`", maker, *cells, items, back])
    return PAGE.format(
        foreign=sum(FOREIGN.values()),
        outcomes=", ".join(f"{count} {how}" for how, count in FOREIGN.items()),
        back="\n".join(round_trips()),
        rows="\n".join(f"| {' | '.join(cells)} |" for cells in lines),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(arguments)
    asked.out.write_text(page(), "utf-8")
    print(asked.out.name)


if __name__ == "__main__":
    main()
