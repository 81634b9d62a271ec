"""A file or folder from a user, and what readers take from it, in four parts.

*Files*: a `Source` is read once and within bounds, whatever it holds. *Values of JSON*: numbers
keep their digits (`Numeral`), objects are called `Record`. `get_in`, `value_at` and `text_at` find
a value by a path of keys; `text_of` and `first_text` give texts and numbers as text and "" for the
rest, `text_or_json` any value. *Archives*: ZIP files, whose declared sizes are not trusted. *Texts
that raters read*, in a tool's record of an answer (`texts_of`): tools and providers wrap a text in
objects and lists, which `text_in` takes off layer by layer.
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
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.errors import InputError
from evenhand.lazy import pa, pq
from evenhand.study.tables import formats
from evenhand.texts import table_of

# ---- files --------------------------------------------------------------------------------------

MOST_BYTES = formats.MOST_JSON  # bytes of a file read at once; tables are read in pieces elsewhere
MOST_UNPACKED = 1024**3  # bytes of an archive, and bytes that all its members may hold together
_HEAD = 4096  # bytes that tell what a file is
_LONGEST_LINE = 1024**2


class Numeral(str):
    """A number of a JSON file, exactly as it is written there."""

    __slots__ = ()


Record = dict[str, Any]
TOOLS = table_of("evenhand.exchange.readers", "tools.toml")  # names of fields, by tool


@cache
def pattern(tool: str, name: str) -> re.Pattern[str]:
    """Return a pattern of `TOOLS`, in which {NAME} stands for another one of the tool."""
    patterns = TOOLS[tool]
    text = re.sub(r"\{([a-z]+)\}", lambda match: str(patterns[match[1]]), patterns[name])
    return re.compile(text.replace("\n", ""), re.IGNORECASE)


class _FirstValue(NamedTuple):
    """The JSON value that a file begins with, or None, and True if it is all of the file."""

    value: object = None
    is_whole: bool = False


class Source:
    """A path and its content, read when it is first used; only `records` raises an error. With
    `several` an answer may be a list of labels; `sheet` names the one to read of a workbook.
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
        """The ZIP archive that the file is; None if it is none, or too large to be opened."""
        if not self.head.startswith(b"PK\x03\x04") or self.path.stat().st_size > MOST_UNPACKED:
            return None
        with suppress(zipfile.BadZipFile, ValueError, OSError, struct.error, NotImplementedError):
            return Archive(self.path.read_bytes(), self.name)
        return None

    @cached_property
    def _first_value(self) -> _FirstValue:
        beginning = self.head.removeprefix(b"\xef\xbb\xbf").lstrip()  # the mark of UTF-8
        if beginning[:1] not in (b"{", b"["):
            return _FirstValue()
        try:
            if beginning.startswith(b"{") and (value := self._first_line()) is not None:
                return _FirstValue(value)  # JSONL
            if self.path.stat().st_size > MOST_BYTES:
                return _FirstValue()
            text = self.path.read_bytes().decode("utf-8-sig").strip()
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            return _FirstValue()
        return _FirstValue(value, is_whole=end == len(text))  # else more follows: JSONL

    def _first_line(self) -> object:
        """Return the JSON value on the first of several lines, all that is read; else None."""
        with self.path.open("rb") as file:
            line = file.readline(_LONGEST_LINE)
            if not (line.endswith(b"\n") and file.read(_HEAD).strip()):
                return None
        with suppress(ValueError):  # of an object that goes on over several lines
            return _DECODER.decode(line.decode("utf-8-sig").strip())
        return None

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns of a CSV or TSV file; empty for any other file."""
        suffix = self.path.suffix.casefold()
        if suffix not in formats.DELIMITED or self._first_value.value is not None:  # it is JSON
            return []
        line = self.head.decode("utf-8-sig", errors="replace").partition("\n")[0].rstrip("\r")
        with suppress(csv.Error):
            return next(csv.reader([line], delimiter=formats.delimiter_of(line)), [])
        return []

    @property
    def document(self) -> object:
        """The JSON value that is the whole file; None if the file is anything else."""
        return self._first_value.value if self._first_value.is_whole else None

    @property
    def first(self) -> Record:
        """The first object of a JSON or JSONL file, or the columns of a CSV file without values."""
        if self.header:
            return dict.fromkeys(self.header, "")
        value = self._first_value.value
        if isinstance(value, list):
            value = next(iter(objects(value)), None)
        return fields_in(value)

    @cached_property
    def columns(self) -> list[str]:
        """The names of a Parquet file's columns; empty for any other file."""
        if not self.head.startswith(b"PAR1") or not formats.has_small_footer(self.path):
            return []
        with suppress(Exception):  # reading the table raises the error
            return list(pq.read_schema(self.path).names)
        return []

    def records(self, columns: Sequence[str] = ()) -> list[Record]:
        """Return all objects of a JSON list or of a JSONL file, the rows of a CSV file, or those of
        a Parquet file, which alone has `columns`: the ones to read, some of `self.columns`. Raises
        InputError for a file that is damaged, or too large to be read at once.
        """
        is_large = self.path.stat().st_size > MOST_BYTES
        if columns:
            if is_large:
                raise InputError(f"{self.name} is too large; write the columns you need as CSV")
            with readable(self.name):
                formats.check_parquet(self.path)
                typed = pq.read_table(self.path, columns=list(columns)).to_pylist()
            return [map_leaves(row, number_as_text) for row in typed]
        if self.header:

            def decoded(cell: str) -> object:  # an object or a list is written as JSON
                return from_json(cell) if cell[:1] in ("{", "[") else cell

            rows = formats.read_table(self.path).to_dict("records")
            return [map_leaves(row, decoded) for row in rows]
        if self._first_value.is_whole:
            return objects(self.document if isinstance(self.document, list) else [self.document])
        if is_large:
            raise InputError(
                f"{self.name} is too large for an export of a tool (at most "
                f"{MOST_BYTES // 1024**2:,} MB); split it by its lines"
            )
        return records_in(self.path.read_bytes(), self.name)


# ---- values of JSON -----------------------------------------------------------------------------

_DECODER = json.JSONDecoder(parse_float=Numeral, parse_int=Numeral, parse_constant=lambda _: None)
"""A decoder that keeps the digits of numbers; NaN and infinities become None."""
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # characters that no text of a study can hold
_BETWEEN_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


@contextmanager
def readable(subject: str, advice: str = "") -> Iterator[None]:
    """Turn a library's error into InputError: "SUBJECT cannot be read (ERROR)ADVICE"."""
    try:
        yield
    except InputError:
        raise
    except Exception as fault:
        raise InputError(f"{subject} cannot be read ({type(fault).__name__}){advice}") from None


def parse_json(content: bytes, name: str) -> object:
    """Parse JSON, with numbers as texts. Raises InputError where it cannot be read."""
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
        why = "it is nested too deeply"
    raise InputError(f"{name} cannot be read as JSON ({why})")


def from_json(value: object) -> object:
    """Return the value of a text that is JSON, as some tools store it; other values as they are."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    with suppress(InputError):
        return parse_json(value.encode(errors="replace"), "")
    return value


def records_in(content: bytes, name: str) -> list[Record]:
    """Return the objects of a JSONL file. Raises InputError naming a line that is not JSON."""
    lines = enumerate(content.split(b"\n"), start=1)
    values = (parse_json(line, f"{name}, line {number}") for number, line in lines if line.strip())
    return objects(list(values))


def objects(value: object) -> list[Record]:
    """Return the objects in a list; none where the value is no list."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def fields_in(value: object) -> Record:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def unwrap(value: object) -> object:
    """Return the value of a list that has just one; anything else as it is."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def unpaged(records: list[Record], names: Sequence[str], record_field: str = "") -> list[Record]:
    """Return records, in which each page is replaced by the records on it. A page is an object with
    a list under one of `names`, but without `record_field`, which only records have.
    """
    unpaged_records = []
    for record in records:
        inner = next((record[name] for name in names if isinstance(record.get(name), list)), None)
        is_page = inner is not None and not (record_field and record_field in record)
        unpaged_records += unpaged(objects(inner), names, record_field) if is_page else [record]
    return unpaged_records


def snake_case(record: Record) -> Record:
    """Return a record with its names in small letters and underscores."""
    return {_BETWEEN_WORDS.sub("_", name).lower(): value for name, value in record.items()}


def map_leaves(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a value with `leaf` applied to each value in its lists and objects, at any depth."""
    if isinstance(value, list):
        return [map_leaves(part, leaf) for part in value]
    if isinstance(value, dict):
        return {name: map_leaves(part, leaf) for name, part in value.items()}
    return leaf(value)


def get_in(record: object, *path: str) -> Any:
    """Return the value at the end of a path of keys; None where the path leads nowhere."""
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def value_at(record: object, path: str) -> Any:
    """Return the value at a path "a.b", also where keys have dots themselves ("a.b" may be one), or
    an object on the way is stored as JSON text; None where the path leads nowhere.

    >>> value_at({"attributes": '{"llm.name": "m", "llm.id": 1}'}, "attributes.llm.name")
    'm'
    """
    record = fields_in(from_json(record))
    if path in record:
        return record[path]
    names = path.split(".")
    for count in range(1, len(names)):
        key, rest = ".".join(names[:count]), ".".join(names[count:])
        if key in record and (value := value_at(record[key], rest)) is not None:
            return value
    start = f"{path}."  # a path may also be the beginning of several longer keys
    return {name[len(start) :]: record[name] for name in record if name.startswith(start)} or None


def text_at(record: object, paths: Iterable[str]) -> str:
    """Return the first text or number at one of these paths, as text; "" where there is none."""
    return next((text for path in paths if (text := text_of(value_at(record, path)))), "")


def text_of(value: object) -> str:
    """Return a text or a number as text; "" for anything else.

    >>> text_of(Numeral("01")), text_of("ann"), text_of(1), text_of(True), text_of(["ann"])
    ('01', 'ann', '1', '', '')
    """
    is_text = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return formats.cell_text(value) if is_text else ""


def first_text(*values: object) -> str:
    """Return the first value that is a text, not empty, or a number, as text; else ""."""
    return next(filter(None, map(text_of, values)), "")


def label_text(value: object) -> str:
    """Return a cell of a typed table as a label: a text, a number, a date, true or false."""
    return str(value).lower() if isinstance(value, bool) else formats.cell_text(value)


def text_or_json(value: object) -> str:
    """Return a text as one that a study can hold, and other values as JSON; "" for empty ones."""
    if value is None or value == {} or value == []:
        return ""
    if not isinstance(value, str):
        value = json.dumps(map_leaves(value, _as_number), ensure_ascii=False)
    return _NO_TEXT.sub("\ufffd", value)


def number_as_text(value: Any) -> Any:
    """Return a number or a date of a typed table as text; other values as they are."""
    is_other = isinstance(value, (list, dict, bool, str)) or value is None
    return value if is_other else Numeral(formats.cell_text(value))


def _as_number(value: Any) -> Any:
    """Return a `Numeral` as a number; other values as they are."""
    with suppress(ValueError):  # of more digits than Python reads, or a date of a typed table
        return json.loads(value) if isinstance(value, Numeral) else value
    return str(value)


# ---- archives -----------------------------------------------------------------------------------

_MOST_MEMBERS = 200_000
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
"""Methods of compression in ZIP; Python's `zipfile` lacks the last, with which Inspect packs."""
_ENCRYPTED = 0x1  # a bit of a member's flags
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""A member's header (APPNOTE.TXT, 4.3.7): signature, and lengths of its name and extra field."""


class Archive:
    """A ZIP archive with member `names`, read one at a time."""

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self._name = name
        self.limit_bytes(MOST_UNPACKED)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()[:_MOST_MEMBERS]
        self._members = {member.filename: member for member in members if not member.is_dir()}
        self.names = list(self._members)

    def limit_bytes(self, limit: int) -> None:
        """Limit the members that are read from now on to this number of bytes together."""
        self._limit = self._bytes_left = limit

    def read(self, name: str) -> bytes:
        """Return a member's content. Raises InputError where it is damaged, or too large."""
        member = self._members[name]
        if member.flag_bits & _ENCRYPTED:
            raise InputError(f"{self._name} is encrypted; pack it again without a password")
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
        """Return a member's content; of one that is too large, one byte more than may be read."""
        offset = member.header_offset
        signature, name_length, extra_length = _LOCAL_HEADER.unpack_from(self._content, offset)
        if signature != b"PK\x03\x04":
            raise ValueError("no member begins here")
        start = offset + _LOCAL_HEADER.size + name_length + extra_length
        packed = self._content[start : start + member.compress_size]
        most = self._bytes_left + 1  # so that `read` sees that it is too large
        if member.compress_type == _STORED:
            return packed[:most]
        if member.compress_type == _DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)  # without a header
        if member.compress_type == _ZSTD:
            with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
                return bytes(stream.read(most))
        raise ValueError("an unknown compression")


# ---- texts that raters read ---------------------------------------------------------------------

Text = str | list[Record]
"""A text, or messages, each with `role` and `content`, and perhaps `name` and `tool_calls`."""
_NAMES = TOOLS["texts"]
# Keys of inputs and outputs by what they hold, the plainest first.
ASKED, ANSWERED = _NAMES["asked"], _NAMES["answered"]  # such as "question", and "answer"
CONTEXT, EXPECTED = _NAMES["context"], _NAMES["expected"]  # "documents", and "reference"
_REPLY_KEYS = set(_NAMES["of_reply"])  # of a reply next to its text, such as "usage"
_SIGNATURE_KEYS = set(_NAMES["signature"])  # that only replies have, such as "finish_reason"
_SPOKEN_TYPES = set(_NAMES["spoken"])  # of a message's parts that are text
_THOUGHT_TYPES = set(_NAMES["thought"])  # of a message's parts that only the model saw
_LANGUAGE_MODEL = pattern("texts", "language_model")  # the name of one
_DEEPEST = 8  # layers of wrapping that are looked through


def texts_of(
    inputs: object, outputs: object, *, context: object = None, expected: object = None
) -> dict[str, Text]:
    """Return the texts of a model's answer, from its input and output, by name: those of `prompt`,
    `context`, `reference` and `response` that are not empty. Where the answer is more than one
    text, such as calls of tools, `conversation` takes the place of prompt and response.
    """
    if context is None:
        context = _filled_under(inputs, CONTEXT) or _filled_under(outputs, CONTEXT)
    if expected is None:
        expected = _filled_under(inputs, EXPECTED)
    prompt, response = text_in(inputs, ASKED), text_in(outputs, ANSWERED, ASKED)
    texts: dict[str, Text] = {"context": documents(context), "reference": text_or_json(expected)}
    if isinstance(response, list):
        asked = as_messages(prompt)
        # Some tools keep the whole history as the answer, so it begins with the prompt.
        texts["conversation"] = response if response[: len(asked)] == asked else asked + response
    else:
        texts |= {"prompt": prompt, "response": response}
    return {name: text for name, text in texts.items() if text}


def _filled_under(value: object, names: Collection[str]) -> object:
    """Return the first filled value under one of these keys, or None. An object with only one
    filled value, which is an object, is a wrapper of that, which is searched in its place.
    """
    for _ in range(_DEEPEST):
        inner = [part for part in value.values() if part] if isinstance(value, dict) else []
        if len(inner) != 1 or not isinstance(inner[0], dict):
            break
        value = inner[0]
    if not isinstance(value, dict):
        return None
    return next((value[name] for name in names if value.get(name)), None)


def text_in(value: object, names: Collection[str], repeated: Collection[str] = ()) -> Text:
    """Return the text of an input or output without what tools wrap around it: the value under one
    of these names, or messages where they are more than one text; JSON for any other form. An
    output may repeat its input, under the names `repeated`.

    >>> text_in({"question": "Why?", "top_k": Numeral("3")}, ASKED)
    'Why?'
    >>> text_in({"a": "x", "b": Numeral("1")}, ASKED)
    '{"a": "x", "b": 1}'
    """
    for _ in range(_DEEPEST):
        value = _reply_in(value)
        if (messages := messages_in(value)) is not None:
            first = messages[0]
            is_one_text = len(messages) == 1 and isinstance(first["content"], str)
            is_spoken = "tool_calls" not in first and first["role"] != "system"
            return first["content"] if is_one_text and is_spoken else messages
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        elif isinstance(value, dict) and (key := _text_key(value, names, repeated)):
            value = value[key]
        else:
            break
    return text_or_json(value)


def _reply_in(value: object) -> object:
    """Return the first reply in a provider's or LangChain's result; other values as they are.

    field of the result   what of its first value         written by
    output                all parts, as messages          OpenAI's responses
    choices               message, or text                OpenAI's completions
    generations           text                            Cohere; LangChain, as lists in a list
    candidates            content                         Google
    results, outputs      outputText, or text             Bedrock
    output, or no field   message, or the result itself   Bedrock's Converse, Ollama, Anthropic
    """
    if not isinstance(value, dict):
        return value
    parts = objects(value.get("output"))
    if value.get("object") == "response" or any(part.get("type") == "message" for part in parts):
        return [_response_part(part) for part in parts if part.get("type") not in _THOUGHT_TYPES]
    for name in ("choices", "generations", "candidates", "results", "outputs"):
        first = value.get(name)
        while isinstance(first, list) and first:
            first = first[0]
        is_bedrock = {"outputText", "stop_reason"} & fields_in(first).keys()
        if name in ("results", "outputs") and not is_bedrock:  # which other data has, too
            continue
        if isinstance(first, list):  # an empty one: no reply
            return None
        if isinstance(first, dict) and name == "candidates":
            content = first.get("content")
            return {"role": "model", **content} if isinstance(content, dict) else content
        if isinstance(first, dict):
            return first.get("message") or first.get("text") or first.get("outputText")
    for message in (get_in(value, "output", "message"), value.get("message")):
        if isinstance(message, dict) and "role" in message and _REPLY_KEYS & value.keys():
            return message
    if value.get("type") == "message" and "role" in value:
        return {"role": value["role"], "content": value.get("content")}
    return value


def _response_part(part: Record) -> Record:
    """Return a part of a response of OpenAI as a message, a call of a tool as one by itself."""
    if part.get("type") == "function_call":
        return {"role": "assistant", "content": "", "tool_calls": [part]}
    if part.get("type") == "message":
        return part
    # Any other part, such as a web search, keeps its type: the answer is more than one text then.
    return {"role": "assistant", "content": [{"type": text_of(part.get("type"))}]}


def _text_key(value: Record, names: Collection[str], repeated: Collection[str]) -> str:
    """Return the key of an object's text: the one key among `names`, if all others are `repeated`
    or hold settings, context and expected answers, or else the object's only key; "" if unclear.

    >>> _text_key({"question": "Why?", "model": "m", "answer": "So."}, ANSWERED, ASKED)
    'answer'
    """
    filled = [
        name
        for name, part in value.items()
        if part not in (None, "", [], {}) and not isinstance(part, (bool, Numeral))  # no texts
    ]
    candidates = [name for name in filled if name in names]
    no_text = {"role", "type", *CONTEXT, *EXPECTED, *_NAMES["settings"], *_REPLY_KEYS, *repeated}
    if len(candidates) == 1 and all(name in names or name in no_text for name in filled):
        return candidates[0]
    return filled[0] if len(filled) == len(value) == 1 else ""  # {"any_name": "Text"}


def messages_in(value: object) -> list[Record] | None:
    """Return a message, or a list of them, in one form for all libraries; None for other values."""
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not value:
        return None
    messages = [message for part in value if (message := _message(part))]
    return messages if len(messages) == len(value) else None


def _message(value: object) -> Record | None:
    """Return a message as OpenAI writes it, {"role", "content"} and perhaps "name" and
    "tool_calls". Google has {"role", "parts"}, ShareGPT {"from", "value"}, LangChain {"type",
    "content"}, stored as {"id": ["langchain", ..., "HumanMessage"], "kwargs": {"content"}}.
    """
    if isinstance(value, dict) and isinstance(kwargs := value.get("kwargs"), dict):
        path = value.get("id")
        class_name = text_of(path[-1]) if isinstance(path, list) and path else ""
        role = class_name.removesuffix("Chunk").removesuffix("Message").casefold()
        value = {"type": role} | kwargs
    if not isinstance(value, dict):
        return None
    role = text_of(value.get("role") or value.get("from") or value.get("type"))
    has_role = "role" in value or "from" in value or role in _NAMES["types"]
    calls = [*map(_call, objects(value.get("tool_calls")))]
    content = next((value[key] for key in ("content", "parts", "value") if key in value), None)
    if not has_role or not role or (content is None and not calls):
        return None
    message = {"role": role, "content": _content(content)}
    if name := text_of(value.get("name") or value.get("function")):
        message["name"] = name
    return message | ({"tool_calls": calls} if calls else {})


def _content(content: object) -> object:
    """Return a message's content without thinking: a text if all of it is text, else its parts."""
    if not isinstance(content, list):
        return "" if content is None else map_leaves(content, _as_number)
    parts = [
        part
        for part in content
        if text_of(get_in(part, "type")) not in _THOUGHT_TYPES
        and not (get_in(part, "thought") or get_in(part, "reasoningContent"))
    ]
    kinds = {text_of(get_in(part, "type")) or "text" for part in parts if isinstance(part, dict)}
    if kinds <= _SPOKEN_TYPES:
        spoken = (get_in(part, "text") or get_in(part, "refusal") or part for part in parts)
        return "\n".join(filter(None, map(text_of, spoken)))
    return map_leaves(parts, _as_number)


def _call(call: Record) -> Record:
    """Return a call of a tool as OpenAI writes it; Inspect and LangChain have other names."""
    function = call.get("function")
    if isinstance(function, dict):
        name, arguments = function.get("name"), function.get("arguments")
    else:
        name, arguments = function or call.get("name"), call.get("arguments", call.get("args"))
    text = arguments if isinstance(arguments, str) else text_or_json(arguments)
    return {"function": {"name": text_of(name), "arguments": text}}


def as_messages(text: Text, role: str = "user") -> list[Record]:
    """Return a text as a list with one message of this role; messages as they are."""
    if isinstance(text, list):
        return text
    return [{"role": role, "content": text}] if text else []


def documents(value: object) -> str:
    """Return retrieved documents as one text, with blank lines between them.

    >>> documents([{"page_content": "One."}, "Two."])
    'One.\\n\\nTwo.'
    """
    if isinstance(value, dict) and (context := _filled_under(value, CONTEXT)) is not None:
        value = context
    parts: list[Any] = value if isinstance(value, list) else [value]
    texts = []
    for part in parts:
        for _ in range(_DEEPEST):
            key = next((name for name in _NAMES["document"] if get_in(part, name)), "")
            part = part[key] if key else part
        texts.append(text_or_json(part))
    return "\n\n".join(filter(None, texts))


def bare_cell(cell: str) -> str:
    """Return the text of a cell that holds a provider's reply as JSON, and other cells as they are:
    the model and the cost are not for annotators. JSON is a reply if it has the form of one, which
    other data may have, too, and is signed: it has a field that only replies have.

    >>> bare_cell('{"model": "a", "response": "Hi", "done": true}')
    'Hi'
    """
    value = unwrap(from_json(cell) if cell[:1] in "[{ \t\r\n" else cell)
    if not isinstance(value, dict):
        return cell
    is_flat = _REPLY_KEYS & value.keys() and _text_key(value, ANSWERED, ASKED) in ANSWERED
    is_nested = _reply_in(value) is not value  # {"choices": [..]}, and not {"model", "response"}
    is_reply = (is_flat or is_nested) and _is_signed(value)
    return (text_or_json(text_in(value, ANSWERED, ASKED)) if is_reply else "") or cell


def _is_signed(reply: Record) -> bool:
    """Return True if the object, or its first reply, has a field that only replies have."""
    names = ("choices", "candidates", "outputs")
    firsts = [one for name in names for one in objects(reply.get(name))[:1]]
    return bool(
        _SIGNATURE_KEYS & reply.keys()
        or isinstance(reply.get("usage"), dict)
        or _LANGUAGE_MODEL.match(text_of(reply.get("model")))
        or text_of(reply.get("object")).startswith(("chat.completion", "text_completion"))
        or any(_SIGNATURE_KEYS & one.keys() or get_in(one, "content", "parts") for one in firsts)
        or (isinstance(reply.get("generations"), list) and "meta" in reply)
    )
