"""Files that are small and large at once: what reading or refusing them takes.

    python -m benchmarks.limits [--out FILE]

Each is made here, and read by the command that a user would type, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from benchmarks.documents import RESULTS, library_versions

OUT = RESULTS / "limits.md"
MOST_SECONDS, MOST_MEGABYTES = 20.0, 600.0
_ASKED = ("--question", "Is it right?", "--options", "yes,no")
_MEASURED = """
import json, resource, subprocess, sys
ran = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
print(json.dumps([ran.returncode, seconds, megabytes, ran.stderr]))
"""


class Taken(NamedTuple):
    """What a command took: its exit code, CPU seconds, the most MB at a time, and its complaint."""

    code: int
    seconds: float
    megabytes: float
    said: str


def taken(words: Sequence[str], folder: Path) -> Taken:
    """Run evenhand with these words in a folder."""
    command = [sys.executable, "-m", "evenhand", *words]
    ran = subprocess.run(
        [sys.executable, "-c", _MEASURED, *command], cwd=folder, capture_output=True, check=True
    )
    return Taken(*json.loads(ran.stdout))


def own_keys(folder: Path, rows: int = 4_000) -> list[str]:
    """A JSONL file in which each row has a key of its own."""
    records = ({"id": n, f"key{n}": "a", "response": "It is so."} for n in range(rows))
    (folder / "keys.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return ["check", "keys.jsonl"]


def wide(form: str, columns: int = 200_000) -> Callable[[Path], list[str]]:
    """A table of many columns as CSV, JSON or Parquet."""

    def made(folder: Path) -> list[str]:
        names = [f"c{n}" for n in range(columns)]
        path = folder / f"wide.{form}"
        if form == "csv":
            path.write_text(f"{','.join(names)}\n{','.join('1' * columns)}\n")
        elif form == "json":
            path.write_text(json.dumps([dict.fromkeys(names, 1)] * 2))
        else:
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(pa.table({name: [1] for name in names}), path)
        return ["check", path.name]

    return made


def large_images(folder: Path, rows: int = 60) -> list[str]:
    """A table whose rows each name a PNG of 49 megapixels and a few kilobytes."""
    from PIL import Image

    Image.new("1", (7_000, 7_000)).save(folder / "0.png")
    for n in range(1, rows):
        (folder / f"{n}.png").write_bytes((folder / "0.png").read_bytes())
    lines = (f"{n}.png,Text {n}\n" for n in range(rows))
    (folder / "images.csv").write_text("shot,output\n" + "".join(lines))
    return ["new", "study", "--items", "images.csv", "--show", "shot,output", *_ASKED]


def large_table(folder: Path, rows: int = 120_000, columns: int = 30) -> list[str]:
    """A large table as people have them."""
    header = ",".join(["unit_id", "rater_id", "label", *(f"f{n}" for n in range(columns - 3))])
    facts = ",".join("1" * (columns - 3))
    lines = (f"u{n // 3},r{n % 3},{'yes' if n % 7 else 'no'},{facts}\n" for n in range(rows))
    (folder / "long.csv").write_text(f"{header}\n" + "".join(lines))
    return ["check", "long.csv", "--human", "r0,r1,r2"]


CASES: dict[str, Callable[[Path], list[str]]] = {
    "JSONL, 4,000 rows with a key of their own": own_keys,
    "CSV, 200,000 columns": wide("csv"),
    "JSON, 200,000 columns": wide("json"),
    "Parquet, 200,000 columns": wide("parquet"),
    "CSV, 60 rows with a PNG of 49 megapixels each": large_images,
    "CSV, 120,000 rows of 30 columns": large_table,
}


def _document() -> str:
    rows = []
    for name, made in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            took = taken(made(Path(folder)), Path(folder))
        end = "read" if took.code == 0 else "refused"
        rows.append(f"| {name} | {end} | {took.seconds:.1f} | {took.megabytes:.0f} |")
        print(rows[-1])
    return "\n".join(
        [
            "# Limits",
            "",
            f"Written by `python -m benchmarks.limits`, {date.today()}, {library_versions()}.",
            "",
            f"CPU seconds and the most memory of a whole command; at most {MOST_SECONDS:.0f} s and "
            f"{MOST_MEGABYTES:.0f} MB.",
            "",
            "| file | is | CPU s | MB |",
            "| --- | --- | ---: | ---: |",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.parse_args().out.write_text(_document())
