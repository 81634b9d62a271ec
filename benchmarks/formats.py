"""Which files of other tools are read, and what is taken from each: `python -m benchmarks.formats`.

Reads the exports in tests/exchange/files, which the tools made themselves (`harness/exports`),
and writes docs/formats.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from evenhand.cli.main import main as run
from evenhand.exchange.readers.reading import FORMATS, format_of, read_export
from evenhand.exchange.readers.rows import Export
from evenhand.exchange.readers.source import Source
from evenhand.study.tables.formats import write_table

ROOT = Path(__file__).parent.parent
FILES = ROOT / "tests" / "exchange" / "files"
OUT = ROOT / "docs" / "formats.md"
BY_HAND = "by hand, from its documentation"
MADE = {
    "wide.xlsx": "openpyxl 3.1.5",
    "label_studio.json": "label-studio 1.23.2, JSON",
    "label_studio_min.json": "label-studio 1.23.2, JSON-MIN",
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
    "argilla": "argilla 2.8.0, `to_datasets`",
    "argilla.json": "argilla 2.8.0, `to_json`",
    "potato.jsonl": "potato-annotation 2.12.1, JSONL",
    "potato.csv": "potato-annotation 2.12.1, CSV",
    "prodigy.jsonl": f"{BY_HAND} (the tool is sold)",
    "doccano.zip": "doccano 1.8.4, JSONL, a file for each annotator",
    "mt_bench.jsonl": "by hand, columns of lmsys/mt_bench_human_judgments",
    "gpt-4_pair.jsonl": "by hand, columns of FastChat's judge",
}
"""Each file, and the tool that made it."""
WRITTEN = {
    "label-studio": "tasks.json",
    "mlflow": "assessments.jsonl",
    "langfuse": "scores.jsonl",
    "argilla": "records",
    "hugging-face": "dataset",
}
"""What evenhand writes, by format, under a name that it may have. What it writes for Inspect goes
into a log by Inspect alone.
"""
_COLUMNS = ["unit_id", "rubric", "rater_id", "rater_kind", "label"]

PAGE = """# Files that are read

`evenhand check FILE` reads what the tools below write. So do `import`, `gate`, `select` and
`evenhand.read` in Python. A file is known by its content; where it is not, name it by `--format`. A
line says what was taken for what, and what was left out and why.

```
evenhand check export.json
evenhand check log.eval --human ann,ben --model model_graded_qa
evenhand check scores.json --format langfuse
```

A table with a column for each rater, and one with other names for its columns:

```sh
cat > wide.csv <<'END'
item;human_1;human_2;gpt-4o
u1;yes;yes;yes
u2;no;no;yes
u3;no;yes;no
END
cat > long.csv <<'END'
item,who,score
u1,ann,yes
u1,ben,yes
u1,gpt,no
u2,ann,no
u2,ben,yes
u2,gpt,no
END
evenhand check wide.csv
evenhand check long.csv --columns unit=item,rater=who,label=score --human ann,ben --model gpt
```

Who is a person and who a model is taken from the file. Where it does not say, names count only if
they say it plainly, such as *human_1* or *gpt-4o*. Otherwise evenhand asks for `--human` and
`--model`, and lists the raters. Numbers stay as they are written, true and false are labels, and
several scores of one unit are rubrics. A rating without a label that has a reason, such as an error
of the model, is kept as unscored. Labels that are numbers are read with `--level interval`. Answers
of several labels (a cell `a;b`, a JSON list, doccano, choices in Label Studio) are read with
`--several` ([how](howto/own-rubric.md#several-options-at-once)); else an export's are left out.

A file may hold at most 256 MB of JSON, and an archive may unpack to at most 1 GB.

## Tables

`table` is CSV, with commas, semicolons, tabs or vertical bars between its cells, TSV, JSON lines
and Parquet; `excel` is the first sheet of a workbook that holds anything. A table is *long*, with a
row for each rating, or *wide*, with a column for each rater. `--columns` says what it calls its
columns.

## What is read

Written by `python -m benchmarks.formats` from synthetic files: eight units, two annotators, a
grader. Rows are ratings; *in* counts those left out.

| `--format` | made by | rows in | rows read | left out |
| --- | --- | ---: | ---: | --- |
{rows}

What `evenhand export --format NAME` writes ([what each holds](exporting.md)) is read back: of the
ratings of eight units by two annotators and a grader, so many return as they were.

| `--format` | ratings written | read back, unchanged | what does not go there |
| --- | ---: | ---: | --- |
{back}

Refused: doccano's export of a project with shared annotation, which has lost who labelled what.

## What is taken for what

{taken}
"""


def rows() -> Iterator[tuple[str, str, Export]]:
    """The format of each file, who made it, and what was read."""
    for file, maker in MADE.items():
        source = Source(FILES / file)
        yield format_of(source), maker, read_export(FILES / file)


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
    found = sorted(rows(), key=lambda row: FORMATS.index(row[0]))
    lines: list[list[str]] = []
    taken: dict[str, str] = {}
    for form, maker, export in found:
        left = ", ".join(f"{reason} ({count})" for reason, count in export.left_out.items())
        read = len(export.table)
        lines.append(
            [f"`{form}`", maker, f"{read + sum(export.left_out.values())}", f"{read}", left]
        )
        taken.setdefault(form, export.notes[0])
    return PAGE.format(
        back="\n".join(round_trips()),
        rows="\n".join(f"| {' | '.join(cells)} |" for cells in lines),
        taken="\n".join(f"- `{form}`: {note}" for form, note in taken.items()),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(arguments)
    asked.out.write_text(page(), "utf-8")
    print(asked.out.name)


if __name__ == "__main__":
    main()
