"""A file or folder from a user (`Source`), read once and within limits of size, whatever it holds.

After it come functions for the values in such files (JSON, lists of records, ZIP archives). The
last part finds the texts that raters read, such as prompt and response, in a tool's record of a
model's answer (`texts_of`).
"""

from __future__ import annotations

import csv
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.lazy import pa, pq
from evenhand.study.tables import formats
from evenhand.texts import table_of

MOST_BYTES = formats.MOST_JSON
"""The size in bytes up to which a file is read at once; a larger table is read in pieces."""
_HEAD_BYTES = 4096
_LONGEST_LINE = 1024**2  # bytes of the first line of a JSONL file, at most
_CAMEL_CASE_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])")
MOST_UNPACKED = 1024**3
"""Bytes that all members of an archive may hold together."""
_MOST_MEMBERS = 200_000  # members of an archive that are listed; more are not looked at
_MEMBER_SIGNATURE = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""The header of a member: its signature, and the lengths of its name and its extra field."""
_STORED, _DEFLATED, _ZSTD = 0, 8, 93  # compression methods of a ZIP archive's members, by number
_ENCRYPTED_FLAG = 0x1


class Numeral(str):
    """A number of a JSON file, exactly as it is written there."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=Numeral, parse_int=Numeral, parse_constant=lambda _: None)
Record = dict[str, Any]  # a JSON object, or a row of a table by column
TOOLS = table_of("evenhand.exchange.readers", "tools.toml")
"""The names of other tools' fields, by tool."""


@cache
def pattern(tool: str, name: str) -> re.Pattern[str]:
    """Compile a pattern of `TOOLS`, in which {NAME} stands for another pattern of the tool."""
    patterns = TOOLS[tool]
    text = re.sub(r"\{([a-z]+)\}", lambda field: str(patterns[field[1]]), patterns[name])
    return re.compile(text.replace("\n", ""), re.IGNORECASE)


class Source:
    """A file or folder, read when its content is first used; only `records` raises an error. With
    `several`, an answer may be a list of labels. `sheet` names the sheet to read of a workbook.
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
            return file.read(_HEAD_BYTES)

    @cached_property
    def archive(self) -> Archive | None:
        """The file as a ZIP archive; None if it is not one, or is too large to be opened."""
        if not self.head.startswith(_MEMBER_SIGNATURE) or self.path.stat().st_size > MOST_UNPACKED:
            return None
        try:
            return Archive(self.path.read_bytes(), self.name)
        except (zipfile.BadZipFile, ValueError, OSError, struct.error, NotImplementedError):
            return None

    @cached_property
    def _first_value(self) -> tuple[object, bool]:
        """The JSON value that the file begins with, or None, and True if it is the whole file."""
        head = self.head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if not head.startswith((b"{", b"[")):
            return None, False
        try:
            if head.startswith(b"{") and (value := self._first_line()) is not None:
                return value, False
            if self._is_too_large:
                return None, False
            text = self.path.read_bytes().decode("utf-8-sig").strip()
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            return None, False
        return value, end == len(text)

    @property
    def _is_too_large(self) -> bool:
        return self.path.stat().st_size > MOST_BYTES

    def _first_line(self) -> object:
        """Parse the first of several lines, without reading the whole file; None if not JSON."""
        with self.path.open("rb") as file:
            line = file.readline(_LONGEST_LINE)
            if not (line.endswith(b"\n") and file.read(_HEAD_BYTES).strip()):
                return None
        try:
            return _DECODER.decode(line.decode("utf-8-sig").strip())
        except ValueError:  # an object that goes on over several lines
            return None

    @cached_property
    def csv_columns(self) -> list[str]:
        """The names of the columns of a CSV or TSV file; [] for any other file."""
        if self.path.suffix.casefold() not in formats.DELIMITED or self._first_value != (
            None,
            False,
        ):
            return []
        line = self.head.decode("utf-8-sig", errors="replace").partition("\n")[0].rstrip("\r")
        try:
            return next(csv.reader([line], delimiter=formats.delimiter_of(line)), [])
        except csv.Error:
            return []

    @property
    def document(self) -> object:
        """The file as one JSON value; None if it is not one."""
        value, is_whole_file = self._first_value
        return value if is_whole_file else None

    @property
    def first_record(self) -> Record:
        """The first object of a JSON or JSONL file; the columns of a CSV file, without values."""
        if self.csv_columns:
            return dict.fromkeys(self.csv_columns, "")
        value, _ = self._first_value
        if isinstance(value, list):
            value = next(iter(objects(value)), None)
        return fields_in(value)

    @cached_property
    def parquet_columns(self) -> list[str]:
        """The names of the columns of a Parquet file; [] for any other file."""
        if not self.head.startswith(b"PAR1") or not formats.has_small_footer(self.path):
            return []
        try:
            return list(pq.read_schema(self.path).names)
        except Exception:  # reading the table raises the error
            return []

    def records(self, columns: Sequence[str] = ()) -> list[Record]:
        """Return all objects of a JSON list or a JSONL file, or the rows of a CSV file. With
        `columns`, return these columns of the rows of a Parquet file, with numbers as texts. Raises
        InputError for a file that is damaged, or too large to be read at once.
        """
        if columns:
            if self._is_too_large:
                raise InputError(
                    f"{self.name} is too large; write the columns that count to a CSV file"
                )
            with readable(self.name):
                formats.check_parquet(self.path)
                typed_rows = pq.read_table(self.path, columns=list(columns)).to_pylist()
            return [map_leaves(row, number_as_text) for row in typed_rows]
        if self.csv_columns:
            rows = formats.read_table(self.path).to_dict("records")
            return [{str(name): _csv_value(row[name]) for name in row} for row in rows]
        value, is_whole_file = self._first_value
        if is_whole_file:
            return objects(value if isinstance(value, list) else [value])
        if self._is_too_large:
            raise InputError(
                f"{self.name} is too large for an export of a tool (at most "
                f"{MOST_BYTES // 1024**2:,} MB); split it by its lines"
            )
        return records_in(self.path.read_bytes(), self.name)


def _csv_value(cell: str) -> object:
    """Return a cell of a CSV file, in which objects and lists are written as JSON."""
    return from_json(cell) if cell[:1] in ("{", "[") else cell


@contextmanager
def readable(subject: str, advice: str = "") -> Iterator[None]:
    """Turn a library's error on a damaged file into InputError about `subject`, with `advice`."""
    try:
        yield
    except InputError:
        raise
    except Exception as fault:
        raise InputError(f"{subject} cannot be read ({type(fault).__name__}){advice}") from None


def parse_json(content: bytes, name: str) -> object:
    """Parse JSON, with numbers as texts. Raises InputError, with the reason, if it is invalid."""
    reason = "it is nested too deeply"
    try:
        text = content.decode("utf-8-sig").strip()
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
        reason = f"more follows at character {end + 1}"
    except json.JSONDecodeError as fault:
        reason = f"{fault.msg[:1].lower()}{fault.msg[1:]} at character {fault.pos + 1}"
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except (ValueError, RecursionError):
        pass
    raise InputError(f"{name} cannot be read as JSON ({reason})")


def from_json(value: object) -> object:
    """Parse a text that is JSON, as some tools store values; return other values unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return parse_json(value.encode(errors="replace"), "")
    except InputError:
        return value


def records_in(content: bytes, name: str) -> list[Record]:
    """Return the objects of a JSONL file. Raises InputError naming a line that is not JSON."""
    lines = enumerate(content.split(b"\n"), start=1)
    values = (parse_json(line, f"{name}, line {number}") for number, line in lines if line.strip())
    return objects(list(values))


def objects(value: object) -> list[Record]:
    """Return the JSON objects in a list, leaving out its other values; [] if it is not a list."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def unpaged(records: list[Record], page_keys: Sequence[str], record_key: str = "") -> list[Record]:
    """Return records, with each page replaced by the records in its list under a page key. A record
    that has `record_key` is not a page, whatever else it has.
    """
    unpaged_records = []
    for record in records:
        pages = [record[key] for key in page_keys if isinstance(record.get(key), list)]
        if pages and not (record_key and record_key in record):
            unpaged_records += unpaged(objects(pages[0]), page_keys, record_key)
        else:
            unpaged_records.append(record)
    return unpaged_records


def get_in(record: object, *path: str) -> Any:
    """Return the value at the end of a path of keys; None where the path leads nowhere."""
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def fields_in(value: object) -> Record:
    """Return the value if it is a JSON object, else an empty object."""
    return value if isinstance(value, dict) else {}


def unwrap(value: object) -> object:
    """Return the only value of a list of one; return anything else unchanged."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def snake_case(record: Record) -> Record:
    """Return a record with its keys in snake case, such as `traceId` as `trace_id`."""
    return {_CAMEL_CASE_BORDER.sub("_", name).lower(): value for name, value in record.items()}


def text_of(value: object) -> str:
    """Return a text or a number as text; "" for any other value.

    >>> text_of(Numeral("01")), text_of("ann"), text_of(1), text_of(True), text_of(["ann"])
    ('01', 'ann', '1', '', '')
    """
    is_text = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return formats.cell_text(value) if is_text else ""


def first_text(*values: object) -> str:
    """Return the first value that is a number or a text that is not empty, as text; else ""."""
    return next(filter(None, map(text_of, values)), "")


def label_cell(value: object) -> str:
    """Return a cell of a typed table (text, number, date or boolean) as the text of a label."""
    return str(value).lower() if isinstance(value, bool) else formats.cell_text(value)


class Archive:
    """A ZIP archive, whose members are read by name, one at a time. The sizes that it declares are
    not trusted: what members unpack to is counted. Unlike Python's zipfile before version 3.14, it
    reads members that are compressed with Zstandard.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self._name = name
        self.limit_bytes(MOST_UNPACKED)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()[:_MOST_MEMBERS]
        self._members = {member.filename: member for member in members if not member.is_dir()}
        self.names = list(self._members)

    def limit_bytes(self, limit: int) -> None:
        """Set how many bytes all members that are read from now on may unpack to together."""
        self._limit = self._bytes_left = limit

    def read(self, name: str) -> bytes:
        """Return a member's content. Raises InputError if it is damaged, encrypted or too large."""
        member = self._members[name]
        if member.flag_bits & _ENCRYPTED_FLAG:
            raise InputError(
                f"{self._name} is encrypted; unpack it, and pack it without a password"
            )
        try:
            content = self._unpacked(member)
        except (zlib.error, struct.error, OSError, ValueError):
            raise InputError(f"{self._name}: {name} is damaged; export the file again") from None
        self._bytes_left -= len(content)
        if self._bytes_left < 0:
            limit = self._limit // 1024**2
            raise InputError(f"{self._name} unpacks to more than {limit:,} MB; export fewer items")
        return content

    def _unpacked(self, member: zipfile.ZipInfo) -> bytes:
        """Unpack a member, up to one byte more than may be read, which shows it is too large."""
        offset = member.header_offset
        signature, name_length, extra_length = _LOCAL_HEADER.unpack_from(self._content, offset)
        if signature != _MEMBER_SIGNATURE:
            raise ValueError("no member begins here")
        start = offset + _LOCAL_HEADER.size + name_length + extra_length
        packed = self._content[start : start + member.compress_size]
        most_bytes = self._bytes_left + 1
        if member.compress_type == _STORED:
            return packed[:most_bytes]
        if member.compress_type == _DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most_bytes)
        if member.compress_type == _ZSTD:
            with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
                return bytes(stream.read(most_bytes))
        raise ValueError("an unknown compression")


def map_leaves(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a value with `convert` applied to the values in its lists and objects at any depth."""
    if isinstance(value, list):
        return [map_leaves(part, convert) for part in value]
    if isinstance(value, dict):
        return {name: map_leaves(part, convert) for name, part in value.items()}
    return convert(value)


def number_as_text(value: Any) -> Any:
    """Return a number or a date of a typed table as a `Numeral`; other values unchanged."""
    if value is None or isinstance(value, (list, dict, bool, str)):
        return value
    return Numeral(formats.cell_text(value))


# ---- texts that raters read ---------------------------------------------------------------------

Text = str | list[Record]
"""A text, or messages, each with `role` and `content`, and perhaps `name` and `tool_calls`."""
_KEYS = TOOLS["texts"]
PROMPT_KEYS, RESPONSE_KEYS = _KEYS["prompt"], _KEYS["response"]
CONTEXT_KEYS, REFERENCE_KEYS = _KEYS["context"], _KEYS["reference"]
"""Keys of inputs and outputs by what they hold, the plainest first."""
_REPLY_KEYS, _REPLY_SIGNATURE = set(_KEYS["reply_fields"]), set(_KEYS["reply_signature"])
_TEXT_PARTS, _THOUGHT_PARTS = set(_KEYS["text_parts"]), set(_KEYS["thought_parts"])
_REPLY_LISTS, _BEDROCK_REPLY_LISTS = _KEYS["reply_lists"], _KEYS["bedrock_reply_lists"]
_BEDROCK_REPLY_KEYS = {"outputText", "stop_reason"}
_LANGUAGE_MODEL = pattern("texts", "language_model")
_MOST_LAYERS = 8  # how many layers of lists and objects around a text are removed
_NOT_IN_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters that no text of a study can hold."""


def texts_of(
    inputs: object, outputs: object, *, context: object = None, expected: object = None
) -> dict[str, Text]:
    """Return the texts of a model's answer by name, from the input and output that a tool recorded.
    The names are `prompt`, `context`, `reference` and `response`; texts that are missing are left
    out. If the answer is more than one text, such as calls of tools, there is a `conversation` in
    place of prompt and response.
    """
    if context is None:
        context = _first_filled(inputs, CONTEXT_KEYS)
    if context is None:
        context = _first_filled(outputs, CONTEXT_KEYS)
    if expected is None:
        expected = _first_filled(inputs, REFERENCE_KEYS)
    prompt, response = text_in(inputs, PROMPT_KEYS), text_in(outputs, RESPONSE_KEYS)
    texts: dict[str, Text] = {"context": documents_text(context), "reference": cell_of(expected)}
    if isinstance(response, list):
        history = as_messages(prompt)
        # Some tools store the whole history as the answer.
        has_history = response[: len(history)] == history
        texts["conversation"] = response if has_history else history + response
    else:
        texts |= {"prompt": prompt, "response": response}
    return {name: text for name, text in texts.items() if text}


def text_in(value: object, keys: Collection[str]) -> Text:
    """Return the text of an input or output, without the lists and objects around it.

    In an object, the text is under one of `keys`. Return messages if there is more than one text,
    and JSON for a value of any other form.

    >>> text_in({"question": "Why?", "top_k": Numeral("3")}, PROMPT_KEYS)
    'Why?'
    >>> text_in([{"role": "user", "content": "Why?"}], PROMPT_KEYS)
    'Why?'
    >>> text_in({"a": "x", "b": Numeral("1")}, PROMPT_KEYS)
    '{"a": "x", "b": 1}'
    """
    for _ in range(_MOST_LAYERS):
        value = _reply_in(value)
        if (messages := messages_in(value)) is not None:
            message = messages[0]
            is_one_text = len(messages) == 1 and isinstance(message["content"], str)
            is_plain = "tool_calls" not in message and message["role"] != "system"
            return message["content"] if is_one_text and is_plain else messages
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        elif isinstance(value, dict) and (key := _text_key(value, keys)):
            value = value[key]
        else:
            break
    return cell_of(value)


def value_at(record: object, path: str) -> Any:
    """Return the value at a path of names with dots between them; None if there is none.

    A key may be one name, or several with dots between them. Objects may be stored as JSON.

    >>> value_at({"attributes": '{"llm.name": "m", "llm.id": 1}'}, "attributes.llm.name")
    'm'
    """
    record = fields_in(from_json(record))
    if path in record:
        return record[path]
    parts = path.split(".")
    for count in range(1, len(parts)):
        key, inner_path = ".".join(parts[:count]), ".".join(parts[count:])
        if key in record and (value := value_at(record[key], inner_path)) is not None:
            return value
    prefix = f"{path}."
    return {key[len(prefix) :]: record[key] for key in record if key.startswith(prefix)} or None


def first_at(record: object, paths: Iterable[str]) -> Any:
    """Return the first value at one of these paths that is not None or ""; else None."""
    values = (value_at(record, path) for path in paths)
    return next((value for value in values if value not in (None, "")), None)


def name_at(record: object, paths: Iterable[str]) -> str:
    """Return the first text or number at one of these paths, as text; "" if there is none."""
    return next((name for path in paths if (name := text_of(value_at(record, path)))), "")


def documents_text(value: object) -> str:
    """Return retrieved documents as one text, with blank lines between them.

    >>> documents_text([{"page_content": "One."}, "Two."])
    'One.\\n\\nTwo.'
    """
    if isinstance(value, dict):
        context = _first_filled(value, CONTEXT_KEYS)
        value = value if context is None else context
    documents: list[Any] = value if isinstance(value, list) else [value]
    texts = []
    for document in documents:
        for _ in range(_MOST_LAYERS):
            key = next((name for name in _KEYS["document"] if get_in(document, name)), "")
            document = document[key] if key else document
        texts.append(cell_of(document))
    return "\n\n".join(filter(None, texts))


def messages_in(value: object) -> list[Record] | None:
    """Return the messages in a value, as OpenAI writes them; None if it is not messages."""
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not value:
        return None
    messages = [message for part in value if (message := _message(part))]
    return messages if len(messages) == len(value) else None


def as_messages(text: Text, role: str = "user") -> list[Record]:
    """Return a text as a list with one message of this role; return messages unchanged."""
    if isinstance(text, list):
        return text
    return [{"role": role, "content": text}] if text else []


def _message(value: object) -> Record | None:
    """Return a message as OpenAI writes it, with role and content; None if it is not a message."""
    if isinstance(value, dict) and isinstance(kwargs := value.get("kwargs"), dict):
        path = value.get("id")  # in LangChain's form: ["langchain", ..., "HumanMessage"]
        class_name = text_of(path[-1]) if isinstance(path, list) and path else ""
        role = class_name.removesuffix("Chunk").removesuffix("Message").casefold()
        value = {"type": role} | kwargs
    if not isinstance(value, dict):
        return None
    role = text_of(value.get("role") or value.get("from") or value.get("type"))
    has_role = "role" in value or "from" in value or role in _KEYS["roles"]
    calls = [_tool_call(call) for call in value.get("tool_calls") or () if isinstance(call, dict)]
    content = value.get("content", value.get("parts", value.get("value")))  # "parts": Google
    if not has_role or not role or (content is None and not calls):
        return None
    message = {"role": role, "content": _content(content)}
    if name := text_of(value.get("name") or value.get("function")):
        message["name"] = name
    return message | ({"tool_calls": calls} if calls else {})


def _content(content: object) -> object:
    """Return the text of a message's content without thoughts, or its parts if one is no text."""
    if not isinstance(content, list):
        return "" if content is None else map_leaves(content, _as_number)
    parts = [
        part
        for part in content
        if text_of(get_in(part, "type")) not in _THOUGHT_PARTS
        and not (get_in(part, "thought") or get_in(part, "reasoningContent"))
    ]
    types = {text_of(part.get("type")) or "text" for part in objects(parts)}
    if types <= _TEXT_PARTS:
        texts = (get_in(part, "text") or get_in(part, "refusal") or part for part in parts)
        return "\n".join(filter(None, map(text_of, texts)))
    return map_leaves(parts, _as_number)


def _tool_call(call: Record) -> Record:
    """Return a call of a tool as OpenAI writes it; Inspect and LangChain have other names."""
    function = call.get("function")
    if isinstance(function, dict):
        name, arguments = function.get("name"), function.get("arguments")
    else:
        name, arguments = function or call.get("name"), call.get("arguments", call.get("args"))
    text = arguments if isinstance(arguments, str) else cell_of(arguments)
    return {"function": {"name": text_of(name), "arguments": text}}


def reply_text(cell: str) -> str:
    """Return the text in a cell that holds a provider's reply as JSON; other cells unchanged.

    So annotators do not see the model and the cost. A reply is recognised by fields that only
    replies have.

    >>> reply_text('{"model": "a", "response": "Hi", "done": true}')
    'Hi'
    """
    value = unwrap(from_json(cell) if cell[:1] in "[{ \t\r\n" else cell)
    if not isinstance(value, dict):
        return cell
    has_reply = _REPLY_KEYS & value.keys() and _text_key(value, RESPONSE_KEYS) in RESPONSE_KEYS
    if _reply_in(value) is value and not has_reply:
        return cell
    lists = (objects(value.get(name)) for name in ("choices", "candidates", "outputs"))
    replies = [records[0] for records in lists if records]
    is_from_provider = (
        bool(_REPLY_SIGNATURE & value.keys())
        or isinstance(value.get("usage"), dict)
        or _LANGUAGE_MODEL.match(text_of(value.get("model")))
        or text_of(value.get("object")).startswith(("chat.completion", "text_completion"))
        or any(
            _REPLY_SIGNATURE & reply.keys() or get_in(reply, "content", "parts")
            for reply in replies
        )
        or (isinstance(value.get("generations"), list) and "meta" in value)
    )
    return (cell_of(text_in(value, RESPONSE_KEYS)) if is_from_provider else "") or cell


def _reply_in(value: object) -> object:
    """Return the first reply in a provider's or LangChain's result; other values unchanged."""
    if not isinstance(value, dict):
        return value
    parts = objects(value.get("output"))
    if value.get("object") == "response" or any(part.get("type") == "message" for part in parts):
        return [_response_part(part) for part in parts if part.get("type") not in _THOUGHT_PARTS]
    for name in (*_REPLY_LISTS, *_BEDROCK_REPLY_LISTS):
        reply = value.get(name)
        while isinstance(reply, list) and reply:
            reply = reply[0]
        if isinstance(reply, dict) and name == "candidates":
            content = reply.get("content")
            return {"role": "model", **content} if isinstance(content, dict) else content
        if isinstance(reply, dict) and (name in _REPLY_LISTS or _BEDROCK_REPLY_KEYS & reply.keys()):
            return reply.get("message") or reply.get("text") or reply.get("outputText")
        if reply == [] and name in _REPLY_LISTS:
            return None
    for message in (get_in(value, "output", "message"), value.get("message")):
        if isinstance(message, dict) and "role" in message and _REPLY_KEYS & value.keys():
            return message
    if value.get("type") == "message" and "role" in value:
        return {"role": value["role"], "content": value.get("content")}
    return value


def _response_part(part: Record) -> Record:
    """Return a part of a result of OpenAI's Responses API as a message."""
    if part.get("type") == "function_call":
        return {"role": "assistant", "content": "", "tool_calls": [part]}
    if part.get("type") == "message":
        return part
    return {"role": "assistant", "content": [{"type": text_of(part.get("type"))}]}


def _text_key(value: Record, keys: Collection[str]) -> str:
    """Return the key of the text in an object; "" if several keys may hold it."""
    filled_keys = [
        key
        for key, part in value.items()
        if part not in (None, "", [], {}) and not isinstance(part, (bool, Numeral))
    ]
    candidates = [key for key in filled_keys if key in keys]
    other_keys = {"role", "type", *CONTEXT_KEYS, *REFERENCE_KEYS, *_KEYS["settings"], *_REPLY_KEYS}
    if keys is RESPONSE_KEYS:  # an output may repeat its input
        other_keys.update(PROMPT_KEYS)
    if len(candidates) == 1 and other_keys.issuperset({*filled_keys} - {*candidates}):
        return candidates[0]
    return filled_keys[0] if len(filled_keys) == 1 == len(value) else ""


def _first_filled(value: object, keys: Collection[str]) -> object:
    """Return the first filled value under one of these keys, looking into wrapping objects."""
    for _ in range(_MOST_LAYERS):
        filled = [part for part in fields_in(value).values() if part]
        if len(filled) != 1 or not isinstance(filled[0], dict):
            break
        value = filled[0]
    fields = fields_in(value)
    return next((fields[key] for key in keys if fields.get(key)), None)


def cell_of(value: object) -> str:
    """Return a value as a cell of a table: text that a study can hold, JSON if it is not text."""
    if value is None or value == {} or value == []:
        return ""
    if not isinstance(value, str):
        value = json.dumps(map_leaves(value, _as_number), ensure_ascii=False)
    return _NOT_IN_TEXT.sub("\ufffd", value)


def _as_number(value: Any) -> Any:
    """Return a `Numeral` as a number; other values unchanged."""
    try:
        return json.loads(value) if isinstance(value, Numeral) else value
    except ValueError:  # more digits than Python reads, or a date of a typed table
        return str(value)
