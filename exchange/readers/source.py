"""A file or folder from a user: opened once, within bounds, whatever it holds. Of a ZIP archive the
sizes that its members declare are not trusted.
"""

from __future__ import annotations

import csv
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.lazy import pa, pq
from evenhand.study.tables.formats import (
    DELIMITED,
    MOST_JSON,
    cell_text,
    check_parquet,
    delimiter_of,
    has_small_footer,
    read_table,
)
from evenhand.texts import table_of

MOST_BYTES = MOST_JSON
"""Bytes read of one file at once; a table goes to a reader that takes it in pieces."""
_HEAD = 4096
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LINE = 1024**2
MOST_UNPACKED = 1024**3
"""Bytes that all members of an archive may hold together."""
_MOST_MEMBERS = 200_000
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_ENCRYPTED = 0x1
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""A member's own header: the signature, and how long its name and its extra field are."""


class Written(str):
    """A number of a JSON file, exactly as it is written there."""

    __slots__ = ()


Record = dict[str, Any]
TOOLS = table_of("evenhand.exchange.readers", "tools.toml")
"""The names of other tools' fields, by tool."""


@cache
def pattern(tool: str, name: str) -> re.Pattern[str]:
    """A pattern of `TOOLS`, in which {NAME} stands for another one of the tool."""
    parts = TOOLS[tool]
    text = re.sub(r"\{([a-z]+)\}", lambda part: str(parts[part[1]]), parts[name])
    return re.compile(text.replace("\n", ""), re.IGNORECASE)


class Source:
    """A path and its content. Nothing here fails before a reader asks for all of it. With `several`
    an answer may be a list of labels; of a workbook the `sheet` of this name is read.
    """

    def __init__(self, path: Path, *, several: bool = False, sheet: str = "") -> None:
        self.path = path
        self.several = several
        self.sheet = sheet
        self.name = path.name

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a file; empty for a folder or a missing file."""
        if not self.path.is_file():
            return b""
        with self.path.open("rb") as file:
            return file.read(_HEAD)

    @cached_property
    def archive(self) -> Archive | None:
        """The ZIP archive that the file is, or None."""
        is_zip = self.head.startswith(b"PK\x03\x04")
        return Archive.of(self.path) if is_zip else None

    @cached_property
    def _start(self) -> tuple[object, bool]:
        """The first JSON value of the file, if it begins with one; and whether it is all of it."""
        plain = self.head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if plain[:1] not in (b"{", b"["):
            return None, False
        try:
            if plain.startswith(b"{") and (record := self._first_line()) is not None:
                return record, False
            if self._too_large:
                return None, False
            text = self.path.read_bytes().decode("utf-8-sig").strip()
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            return None, False
        return value, end == len(text)

    @property
    def _too_large(self) -> bool:
        return self.path.stat().st_size > MOST_BYTES

    def _first_line(self) -> object:
        """The JSON value on the first of several lines, without reading the whole file."""
        with self.path.open("rb") as file:
            line = file.readline(_LINE)
            if not (line.endswith(b"\n") and file.read(_HEAD).strip()):
                return None
        try:
            return _DECODER.decode(line.decode("utf-8-sig").strip())
        except ValueError:  # an object that goes on over several lines
            return None

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns of a CSV or TSV file; none of any other."""
        if self.path.suffix.casefold() not in DELIMITED or self._start != (None, False):
            return []
        line = self.head.decode("utf-8-sig", errors="replace").partition("\n")[0].rstrip("\r")
        try:
            return next(csv.reader([line], delimiter=delimiter_of(line)), [])
        except csv.Error:
            return []

    @property
    def document(self) -> object:
        """The file as one JSON value; None if it is not one."""
        value, whole = self._start
        return value if whole else None

    @property
    def first(self) -> Record:
        """The first object of a JSON list or of a JSONL file, or the one that the file is. Of a
        CSV file the names alone.
        """
        if self.header:
            return dict.fromkeys(self.header, "")
        value, _ = self._start
        if isinstance(value, list):
            value = next(iter(objects(value)), None)
        return fields_in(value)

    @cached_property
    def columns(self) -> list[str]:
        """The names of a Parquet file's columns; empty for any other file."""
        if not self.head.startswith(b"PAR1") or not has_small_footer(self.path):
            return []
        try:
            return list(pq.read_schema(self.path).names)
        except (
            Exception
        ):  # the error for an unreadable Parquet file is raised where tables are read
            return []

    def records(self, columns: Sequence[str] = ()) -> list[Record]:
        """All objects of a JSON list or of a JSONL file, or the rows of a CSV file; of a Parquet
        file the rows with these `columns`, in which numbers are texts at any depth. Raises
        InputError for a file that is damaged, or too large to be read at once.
        """
        if columns:
            return self._typed_records(columns)
        if self.header:
            rows = read_table(self.path).to_dict("records")
            return [
                {  # an object or a list is written as JSON
                    str(name): opened(cell) if cell[:1] in ("{", "[") else cell
                    for name, cell in row.items()
                }
                for row in rows
            ]
        value, whole = self._start
        if whole:
            return objects(value if isinstance(value, list) else [value])
        if self._too_large:
            raise InputError(
                f"{self.name} is too large for an export of a tool (at most "
                f"{MOST_BYTES // 1024**2:,} MB); split it by its lines"
            )
        return records_in(self.path.read_bytes(), self.name)

    def _typed_records(self, columns: Sequence[str]) -> list[Record]:
        if self._too_large:
            raise InputError(
                f"{self.name} is too large; write the columns that count to a CSV file"
            )
        with readable(self.name):
            check_parquet(self.path)
            rows = pq.read_table(self.path, columns=list(columns)).to_pylist()
        return [{name: mapped(value, as_written) for name, value in row.items()} for row in rows]


@contextmanager
def readable(what: str, advice: str = "") -> Iterator[None]:
    """Raise InputError where a file is damaged, for which libraries raise many kinds of errors."""
    try:
        yield
    except InputError:
        raise
    except Exception as fault:
        raise InputError(f"{what} cannot be read ({type(fault).__name__}){advice}") from None


def parsed(content: bytes, name: str) -> object:
    """Parse JSON, keeping numbers as written. Raises InputError where it cannot be read."""
    why = "it is nested too deeply"
    try:
        text = content.decode("utf-8-sig").strip()
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
        why = f"more follows at character {end + 1}"
    except json.JSONDecodeError as fault:
        why = f"{fault.msg[:1].lower()}{fault.msg[1:]} at character {fault.pos + 1}"
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    except (ValueError, RecursionError):
        pass
    raise InputError(f"{name} cannot be read as JSON ({why})")


def opened(value: object) -> object:
    """Return what a text of JSON holds, where a tool keeps values as JSON; other values as they
    are.
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return parsed(value.encode(errors="replace"), "")
    except InputError:
        return value


def records_in(content: bytes, name: str) -> list[Record]:
    """The objects of a JSONL file. Raises InputError naming the line that cannot be read."""
    lines = enumerate(content.split(b"\n"), start=1)
    found = (parsed(line, f"{name}, line {number}") for number, line in lines if line.strip())
    return objects(list(found))


def objects(value: object) -> list[Record]:
    """The objects in a list; none where the value is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def unpaged(records: list[Record], names: Sequence[str], whole: str = "") -> list[Record]:
    """The records of a file, also of pages that hold them under one of these names; one with the
    field `whole` is no page.
    """
    found = []
    for record in records:
        inner = next((record[name] for name in names if isinstance(record.get(name), list)), None)
        is_page = inner is not None and not (whole and whole in record)
        found += unpaged(objects(inner), names, whole) if is_page else [record]
    return found


def inside(record: object, *path: str) -> Any:
    """Return the value at the end of a path of keys; None where the path leads nowhere."""
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def fields_in(value: object) -> Record:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def only(value: object) -> object:
    """Return the one value of a list; anything else as it is."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def snake_case(record: Record) -> Record:
    """Return a record with its names in small letters and underscores."""
    return {_WORDS.sub("_", name).lower(): value for name, value in record.items()}


def text_of(value: object) -> str:
    """A name or a number as text; "" for what is neither.

    >>> text_of(Written("01")), text_of("ann"), text_of(1), text_of(True), text_of(["ann"])
    ('01', 'ann', '1', '', '')
    """
    is_known = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return cell_text(value) if is_known else ""


def label_cell(value: object) -> str:
    """A cell of a typed table as a label: a text, a number, a date, true or false."""
    return str(value).lower() if isinstance(value, bool) else cell_text(value)


_DECODER = json.JSONDecoder(parse_float=Written, parse_int=Written, parse_constant=lambda _: None)


class Archive:
    """A ZIP archive whose members are read one at a time. Zstandard (method 93), which Python's own
    reader knows from 3.14 on, is unpacked here.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self._name = name
        self.keep_within(MOST_UNPACKED)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()[:_MOST_MEMBERS]
        self._members = {each.filename: each for each in members if not each.is_dir()}

    @classmethod
    def of(cls, path: Path) -> Archive | None:
        """The archive of a file; None if it is not one, or too large to be opened."""
        if path.stat().st_size > MOST_UNPACKED:
            return None
        try:
            return cls(path.read_bytes(), path.name)
        except (zipfile.BadZipFile, ValueError, OSError, struct.error, NotImplementedError):
            return None

    def keep_within(self, most: int) -> None:
        """Limit what is read from now on to this number of bytes."""
        self._most = self._left = most

    @property
    def names(self) -> list[str]:
        """Names of all members."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """A member's content. Raises InputError where it cannot be unpacked, or is too large."""
        member = self._members[name]
        if member.flag_bits & _ENCRYPTED:
            raise InputError(
                f"{self._name} is encrypted; unpack it, and pack it without a password"
            )
        try:
            content = self._unpacked(member)
        except (zlib.error, struct.error, OSError, ValueError):
            raise InputError(f"{self._name}: {name} is damaged; export the file again") from None
        self._left -= len(content)
        if self._left < 0:
            limit = self._most // 1024**2
            raise InputError(f"{self._name} unpacks to more than {limit:,} MB; export fewer items")
        return content

    def _unpacked(self, member: zipfile.ZipInfo) -> bytes:
        at = member.header_offset
        signature, name, extra = _LOCAL_HEADER.unpack_from(self._content, at)
        if signature != b"PK\x03\x04":
            raise ValueError("no member begins here")
        start = at + _LOCAL_HEADER.size + name + extra
        packed = self._content[start : start + member.compress_size]
        most = self._left + 1
        if member.compress_type == _STORED:
            return packed[:most]
        if member.compress_type == _DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)
        if member.compress_type == _ZSTD:
            with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
                return bytes(stream.read(most))
        raise ValueError("an unknown compression")


def mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a value with each value in its lists and objects replaced by its `leaf`."""
    if isinstance(value, list):
        return [mapped(each, leaf) for each in value]
    if isinstance(value, dict):
        return {name: mapped(each, leaf) for name, each in value.items()}
    return leaf(value)


def as_written(value: Any) -> Any:
    """Return a value of a typed table as in a JSON file: numbers and dates as texts."""
    known = isinstance(value, (list, dict, bool, str)) or value is None
    return value if known else Written(cell_text(value))
