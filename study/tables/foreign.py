"""Detection of files that are not CSV, JSONL or Parquet, or not what their extension says."""

from __future__ import annotations

import re
from pathlib import Path

from evenhand.errors import InputError

_HEAD = 4096
_AS_CSV = "save its sheet as a CSV file (in Excel: 'CSV UTF-8 (Comma delimited)')"
_WORKBOOK = re.compile(rb"\[Content_Types\]|xl/|opendocument\.spreadsheet")
DELIMITED = (".csv", ".tsv", ".tab")
SUFFIXES = "the extension must be .csv, .jsonl or .parquet"
_ONE_A_LINE = "write one JSON object a line"


def refuse_foreign(path: Path) -> None:
    """Raises InputError for a folder, and for a file that its first bytes or its extension give
    away as something else than it should be.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it")
    if not path.is_file():
        raise InputError(f"there is no file {path.name} in {path.absolute().parent}")
    with path.open("rb") as file:
        head = file.read(_HEAD)
    suffix = path.suffix.casefold()
    if fault := _fault_of(head, suffix) or _fault_of_name(suffix):
        raise InputError(f"{path.name}{fault}")


def _fault_of(head: bytes, suffix: str) -> str:
    """Return how the first bytes of a file contradict its extension; "" if they do not."""
    if head.startswith(b"PK\x03\x04"):
        if _WORKBOOK.search(head):
            return f" is a workbook of Excel or another spreadsheet; {_AS_CSV}"
        return " is a ZIP archive; unpack it first"
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return f" is a workbook of an old Excel; {_AS_CSV}"
    if head.startswith(b"\x1f\x8b"):
        return " is compressed; unpack it with gunzip first"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ", line 1: the file is UTF-16; save the file as UTF-8"
    if head.startswith(b"PAR1") and suffix not in (".parquet", ".pq"):
        return " is a Parquet file; give it the extension .parquet"
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if suffix in (*DELIMITED, ".json") and first == b"{":
        return f" holds JSON; {_ONE_A_LINE} and give it the extension .jsonl"
    if suffix in (*DELIMITED, ".json", ".jsonl", ".ndjson") and first == b"[" and b"{" in head:
        return f" holds one JSON list; {_ONE_A_LINE} (jq -c '.[]') in a .jsonl file"
    return ""


def _fault_of_name(suffix: str) -> str:
    if suffix in (".xlsx", ".xls", ".ods"):
        return f": {SUFFIXES}; {_AS_CSV}"
    if suffix not in (*DELIMITED, ".jsonl", ".ndjson", ".parquet", ".pq"):
        return f": {SUFFIXES}"
    return ""
