"""Which files of other tools are read, and what is taken from each: `python -m benchmarks.formats`.

Reads the exports in tests/exchange/files, which the tools made themselves (`harness/exports.py`),
and writes docs/formats.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from evenhand.exchange.readers.reading import FORMATS, format_of, read_export
from evenhand.exchange.readers.rows import Export
from evenhand.exchange.readers.source import Source

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
ROUND_TRIPS: dict[str, str] = {}
"""By format: what comes back of what evenhand wrote for the tool."""

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
of the model, is kept as unscored.

A file may hold at most 256 MB of JSON, and an archive may unpack to at most 1 GB.

## Tables

`table` is CSV, with commas, semicolons, tabs or vertical bars between its cells, TSV, JSON lines
and Parquet; `excel` is the first sheet of a workbook that holds anything. A table is *long*, with a
row for each rating, or *wide*, with a column for each rater. `--columns` says what it calls its
columns.

## What is read

Written by `python -m benchmarks.formats` from synthetic files: eight units, two annotators, a
grader. Rows are ratings; *in* counts those left out.

| `--format` | made by | rows in | rows read | left out |{round_trip}
| --- | --- | ---: | ---: | --- |{rule}
{rows}

Refused: doccano's export of a project with shared annotation, which has lost who labelled what.

## What is taken for what

{taken}
"""


def rows() -> Iterator[tuple[str, str, Export]]:
    """The format of each file, who made it, and what was read."""
    for file, maker in MADE.items():
        source = Source(FILES / file)
        yield format_of(source), maker, read_export(FILES / file)


def page() -> str:
    found = sorted(rows(), key=lambda row: FORMATS.index(row[0]))
    lines, taken = [], {}
    for form, maker, export in found:
        left = ", ".join(f"{reason} ({count})" for reason, count in export.left_out.items())
        read = len(export.table)
        cells = [f"`{form}`", maker, str(read + sum(export.left_out.values())), str(read), left]
        lines.append(cells + ([ROUND_TRIPS.get(form, "")] if ROUND_TRIPS else []))
        taken.setdefault(form, export.notes[0])
    return PAGE.format(
        round_trip=" round trip |" if ROUND_TRIPS else "",
        rule=" --- |" if ROUND_TRIPS else "",
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
