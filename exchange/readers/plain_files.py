"""Readers of files that belong to no one tool: a workbook of Excel (.xlsx), of which one sheet is
read; JSON logs of chat completions; and JSON data in a few general shapes. An item is what gets a
label; in a table of ratings it is called a unit.

Each kind has a section of functions that recognise it (`_is_...`), read its ratings (`_read_...`)
and its items (`..._items`). For the general shapes two more sections find the list of items in a
file, and the answers (labels by rater) in an item. `READERS` is at the end.
"""

from __future__ import annotations

import io
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from evenhand.errors import InputError
from evenhand.exchange.readers import source as src
from evenhand.exchange.readers.rows import (
    LONGEST_LABEL,
    Export,
    ItemRows,
    ItemTable,
    Reader,
    Rows,
    label_of,
    one_line,
    plain_kind,
)
from evenhand.lazy import pd
from evenhand.study.tables import formats
from evenhand.study.tables.columns import folded, likely_columns, names_items
from evenhand.texts import written

# ---- Excel --------------------------------------------------------------------------------------

_MOST_UNPACKED = 256 * 1024**2  # bytes of a workbook's parts; as objects they take several times it
_ROW_BYTES = 100  # bytes of memory that a row takes besides its cells
_MOST_NAMED = 3  # cells that a message names
_TIME_COLUMN = re.compile(r"(?i)date|time|created|updated|stamp|(^|[_\W])(at|on|day|when)([_\W]|$)")


class _Row(NamedTuple):
    """A row of a sheet: its number from 1, its cells as texts, and the indices of the dates."""

    number: int
    cells: list[str]
    dates: tuple[int, ...]


class _Sheet(NamedTuple):
    """A sheet by title, with its rows that hold anything, the first with the names of columns."""

    title: str
    rows: list[_Row]


def _is_excel(source: src.Source) -> bool:
    names = source.archive.names if source.archive else []
    return "[Content_Types].xml" in names and any(name.startswith("xl/") for name in names)


def _read_excel(_: Rows, source: src.Source) -> Export:
    """Read one sheet as a table, with the same rules as for a CSV file."""
    has_formulas = False
    if source.archive:
        source.archive.limit_bytes(_MOST_UNPACKED)
        for name in source.archive.names:  # refused here if too large, before openpyxl unpacks it
            content = source.archive.read(name)
            has_formulas |= name.startswith("xl/worksheets/") and b"<f" in content  # the element f
    with src.readable(f"{source.name} is a workbook of Excel that", advice=f"; {formats.AS_CSV}"):
        sheet, *others = _sheets(source)
        if has_formulas:
            _refuse_unsaved(source, sheet)
    table = _sheet_table(sheet.rows, source.name)
    _refuse_dates(sheet.rows, f"{source.name}, sheet {sheet.title}")
    notes = [written("exchange.excel", sheet=sheet.title)]
    if others:
        titles = ", ".join(other.title for other in others)
        notes.append(written("exchange.excel_others", sheets=titles))
    return Export(table, notes)


def _excel_items(_: ItemRows, source: src.Source) -> ItemTable:
    """Read rows as those of a CSV file."""
    export = _read_excel(Rows(source), source)
    return ItemTable(export.table, export.notes)


def _sheets(source: src.Source) -> list[_Sheet]:
    """Return the sheets with cells, first the one to read. Raises InputError if that is unclear."""
    book = _book(source)
    filled = []
    for worksheet in book.worksheets:
        if source.sheet and worksheet.title != source.sheet:
            continue
        worksheet.reset_dimensions()  # a workbook may claim a million rows
        if rows := [row for row in _rows(worksheet, source.name) if any(row.cells)]:
            filled.append(_Sheet(str(worksheet.title), rows))
    if not filled and source.sheet:
        names = ", ".join(str(worksheet.title) for worksheet in book.worksheets)
        raise InputError(f"{source.name} has no sheet {source.sheet!r} with a cell; it has {names}")
    if not filled:
        raise InputError(f"{source.name}: no sheet holds a cell")
    # A table is a row of two or more names with rows below it.
    with_body = [sheet for sheet in filled if sheet.rows[1:]]
    tables = [sheet for sheet in with_body if len([*filter(None, sheet.rows[0].cells)]) > 1]
    first, *rivals = tables or filled
    if rivals:
        titles = ", ".join(sheet.title for sheet in (first, *rivals))
        raise InputError(
            f"{source.name} has several sheets ({titles}); name the one to read with --sheet NAME"
        )
    return [first, *(sheet for sheet in filled if sheet is not first)]


def _book(source: src.Source, *, formulas: bool = False) -> Any:
    """Open a workbook: with the values that are stored for formulas, or with the formulas."""
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and validations, which are not used
        content = io.BytesIO(source.path.read_bytes())
        return load_workbook(content, read_only=True, data_only=not formulas)


def _refuse_unsaved(source: src.Source, sheet: _Sheet) -> None:
    """Raise InputError where cells are formulas and the workbook stores no value of any."""
    worksheets = _book(source, formulas=True).worksheets
    worksheet = next(other for other in worksheets if str(other.title) == sheet.title)
    worksheet.reset_dimensions()
    values_by_row = {row.number: row.cells for row in sheet.rows}
    unsaved: Counter[str] = Counter()  # number of formulas by column
    for number, row in enumerate(worksheet.iter_rows(), start=1):
        values = values_by_row.get(number, [])
        for cell, value, name in zip_longest(row, values, sheet.rows[0].cells):
            if cell is not None and cell.data_type == "f":
                if value:
                    return  # the workbook has values
                unsaved[repr(name) if name else cell.column_letter] += 1
    if unsaved:
        counts = ", ".join(f"{name} ({count:,})" for name, count in unsaved.items())
        raise InputError(
            f"{source.name}, sheet {sheet.title}: cells are formulas without stored values, by "
            f"column {counts}; open the file in Excel or LibreOffice and save it, and they have "
            "values"
        )


def _refuse_dates(rows: Sequence[_Row], sheet_name: str) -> None:
    """Raise InputError for dates among other cells: Excel makes dates of labels such as 1-2."""
    from openpyxl.utils import get_column_letter

    header, *body = rows
    for index, column in enumerate(header.cells):
        date_rows = [row.number for row in body if index in row.dates]
        filled = [row for row in body if any(row.cells[index : index + 1])]  # rows may be shorter
        # A column named like a time, such as "created_at", may mix dates with other cells.
        if not date_rows or len(filled) == len(date_rows) or _TIME_COLUMN.search(column):
            continue
        letter = get_column_letter(index + 1)
        cells = ", ".join(f"{letter}{number}" for number in date_rows[:_MOST_NAMED])
        more = f" and {len(date_rows) - _MOST_NAMED} more" if len(date_rows) > _MOST_NAMED else ""
        raise InputError(
            f"{sheet_name}, column {column!r}: {cells}{more} are dates, and other cells are not; "
            "Excel makes dates of labels such as 1-2. Format the column as Text and type these "
            "labels again"
        )


def _rows(worksheet: Any, name: str) -> Iterator[_Row]:
    """Yield the rows of a worksheet. Raises InputError where they are too many or too large."""
    bytes_left = formats.MOST_DECODED
    for number, row in enumerate(worksheet.iter_rows(values_only=True), start=1):
        formats.check_table(row, number, name)
        # A small file may take much memory: a text that many cells share is stored once in it.
        texts = [cell for cell in row if isinstance(cell, str)]
        bytes_left -= _ROW_BYTES + formats.CELL * len(row) + sum(map(len, texts))
        if bytes_left < 0:
            raise InputError(f"{name} is too large a workbook; {formats.AS_CSV}")
        cells = [src.label_text(cell.strip() if isinstance(cell, str) else cell) for cell in row]
        dates = tuple(index for index, value in enumerate(row) if isinstance(value, (date, time)))
        yield _Row(number, cells, dates)


def _sheet_table(rows: Sequence[_Row], name: str) -> pd.DataFrame:
    """Return rows as a table. Raises InputError where a cell has no named column."""
    header, body = list(rows[0].cells), rows[1:]
    while header and not header[-1]:
        header.pop()
    advice = "give each column a name of its own in its first row"
    for column in header:
        if not column:
            hint = "" if header[0] else " (cell A1; to_excel(index=False) leaves pandas' index out)"
            raise InputError(f"{name}: a column has no name{hint}; {advice}")
        if header.count(column) > 1:
            raise InputError(f"{name}: two columns are called {column!r}; {advice}")
    width = len(header)
    for row in body:
        if any(row.cells[width:]):
            raise InputError(
                f"{name}, row {row.number}: {len(row.cells)} cells where the first row has {width}"
                "; name every column in the first row, and move other cells to another sheet"
            )
    cells = [[*row.cells[:width], *[""] * (width - len(row.cells))] for row in body]
    index = [row.number - formats.FIRST_ROW for row in body]  # messages add it again
    return pd.DataFrame(cells, columns=header, index=index, dtype=str)


# ---- chat completions ---------------------------------------------------------------------------
# Requests with responses, outputs of batches (of OpenAI and Anthropic), and lists of conversations.

_CHAT = src.TOOLS["chat"]
_INPUT_FIELDS = {*src.ASKED, *src.CONTEXT, *src.EXPECTED}


def _is_chat(source: src.Source) -> bool:
    first = source.first
    is_list = isinstance(source.document, list) and _conversation(first) is not None
    return is_list or bool(_request(first) or _reply(first))


def _conversation(record: src.Record) -> list[src.Record] | None:
    """Return the messages of a record that is a conversation; None if it has none."""
    return next(filter(None, (src.messages_in(record.get(name)) for name in _CHAT["lists"])), None)


def _chat_items(rows: ItemRows, source: src.Source) -> None:
    """Read a completion, with the prompt of its request, or a conversation as an item."""
    records = source.records()
    requests = [(src.text_of(record.get("custom_id")), _request(record)) for record in records]
    request_by_id = {batch_id: request for batch_id, request in requests if batch_id and request}
    has_answers = False
    for record in records:
        batch_id = src.text_of(record.get("custom_id"))
        if batch_id in request_by_id and "response" not in record and "result" not in record:
            continue  # its response is another record
        has_answers = True
        reply, request = _reply(record), _request(record) or request_by_id.get(batch_id)
        conversation = _conversation(record)
        output = reply or src.text_of(record.get("response"))  # the answer on its own
        users_fields = {name: record[name] for name in record if name not in _CHAT["own"]}
        inputs = {name: text for name, text in users_fields.items() if name in _INPUT_FIELDS}
        texts = src.texts_of(inputs, output)
        if messages := _messages_of(request) or conversation:
            texts |= src.texts_of(messages, output)  # replaces a user's field such as "prompt"
        if conversation and not output:  # the answers are among its messages
            texts = {"conversation": conversation}
        models = [src.get_in(reply, name) for name in ("model", "modelVersion")]
        models += [src.get_in(request, "model"), record.get("model")]
        subject = next(filter(None, models), None)  # the model that gave the answer
        facts = {name: value for name, value in users_fields.items() if name not in inputs}
        rows.add(batch_id or record.get("id"), texts, subject=subject, about=facts)
    if not has_answers:
        raise InputError(
            f"{source.name} holds requests without their responses; put the lines of the batch's "
            "output behind them in one file"
        )


def _request(record: src.Record) -> src.Record | None:
    """Return the request of a record, in the form of the provider's API; None if it has none."""
    paths = [("request", "body"), ("request",)] if "response" in record else []
    paths += [("body",), ("params",)] if "custom_id" in record else []  # batches
    requests = (src.get_in(record, *path) for path in paths)
    return next((r for r in requests if isinstance(r, dict) and _messages_of(r)), None)


def _messages_of(request: src.Record | None) -> object:
    """Return a request's messages, or its prompt, with a system prompt that has its own field."""
    names = ("messages", "input", "contents")
    messages = next(filter(None, (src.get_in(request, name) for name in names)), None)
    system = src.get_in(request, "system") or src.get_in(request, "instructions")
    if isinstance(messages, list) and system:
        return [{"role": "system", "content": system}, *messages]
    return messages


def _reply(record: src.Record) -> src.Record | None:
    """Return the reply of a record, such as a completion or a message of Anthropic, or None."""
    for reply in (src.get_in(record, "response", "body"), record.get("response"), record,
                  src.get_in(record, "result", "message")):  # fmt: skip
        if isinstance(reply, dict) and (
            isinstance(reply.get("choices"), list)
            or isinstance(reply.get("candidates"), list)
            or reply.get("type") == "message"
            or reply.get("object") == "response"
        ):
            return reply
    return None


# ---- general shapes -----------------------------------------------------------------------------
# Items in a list, by their ids, or in a wrapper, each with the answers of several raters; or raters
# with their answers by item. Answers are a list of objects that name the rater, an object of labels
# by rater or by question, or a list of labels. Anything else is refused with the path of its key.

_SAMPLED = 50  # items that are looked at to recognise a file
_DEEPEST_WRAPPER = 4  # keys below one another that may lead to the items
_DEEPEST_KEY = 12  # keys below one another in an item
_QUOTED = 60  # characters of keys in a message
_FEW_LABELS = 20  # different answers at most that are labels, and not texts
_JSON = src.TOOLS["json"]
_PEOPLE, _MACHINES = _JSON["people"], _JSON["machines"]
_CERTAIN_RATER_KEYS, _LABEL_KEYS, _TIME_KEYS = _JSON["only_who"], _JSON["what"], _JSON["when"]
_RATER_KEYS = [*_CERTAIN_RATER_KEYS, *_JSON["who"]]  # also "user" or "model"
_ANSWERS_KEY = src.pattern("json", "answers")  # "annotations", "human_labels", "judge_scores"
_RATERS_LABELS_KEY = src.pattern("json", "list")  # "expert_scores": one per rater; not "labels"
_RATER_NAMES_KEY = src.pattern("json", "names")  # "annotators", "worker_ids"


@dataclass(frozen=True)
class _Node:
    """A value at or below the `key` of an item's answers: a label, or a list or object of labels,
    with their rater, question (`rubric`) and time as far as they are known ("": not yet). If
    `is_positional`, the rater is just a position in a list. `item` and `path` are for messages.
    """

    item: str
    path: str
    key: str
    value: Any
    rater: str = ""
    rubric: str = ""
    time: object = ""
    is_positional: bool = False

    def child(self, name: str, value: object) -> _Node:
        """Return the node of the value under a name in this one."""
        return replace(self, path=f"{self.path}.{name}", value=value)

    def for_question(self, question: str) -> _Node:
        """Return this node as an answer to a question, or to a part of the question so far."""
        return replace(self, rubric=f"{self.rubric}.{question}".strip("."))

    @property
    def fault(self) -> InputError:
        """The error to raise for a value that is no answer."""
        return InputError(
            f"{self.item}: {one_line(self.path)} names no annotator, or holds no label; write the "
            'answers as a list of objects, such as [{"annotator": "ann", "label": "yes"}]'
        )


def _is_json(source: src.Source) -> bool:
    if source.header:
        return False
    document = source.document
    if isinstance(document, dict) and source.path.suffix.casefold() == ".json":  # and no JSONL
        return any(map(_may_hold_items, document.values()))
    records = src.objects(document) if isinstance(document, list) else [source.first]
    return any(_answer_keys(item) or _rated_parts_key(item) for item in islice(records, _SAMPLED))


def _read_json(rows: Rows, source: src.Source) -> Export:
    """Add the answers in each item as ratings; if no item has any, return the items as a table."""
    location, records = _items_in(source)
    records = [part for record in records for part in _rated_parts(record)]
    if not any(_answer_keys(record) for record in records):
        return Export(_item_table(records, source.name), _notes(location))
    rows.notes.append(written("exchange.json_where", where=location))
    units = _unit_names(rows, records)
    answers: list[tuple[str, _Node]] = []  # by unit
    for unit, record in zip(units, records, strict=True):
        for key in _answer_keys(record):
            value = _labels_by_rater(key, record[key], record) or record[key]
            node = _Node(f"{source.name}, item {unit}", key, key, value)
            answers += [(unit, answer) for answer in _answers_in(node)]
    raters = {answer.rater for _, answer in answers}
    for unit, answer in answers:
        kind = _rater_kind(answer.rater, answer.key, raters)
        rows.add(unit, answer.rater, kind, answer.value, answer.rubric, created_at=answer.time)
    has_positions = any(answer.is_positional for _, answer in answers)
    # Judges are keys of items named like a model, most of whose values are among raters' labels.
    labels, judges = {folded(src.label_text(answer.value)) for _, answer in answers}, []
    names = dict.fromkeys(name for record in records for name in record)
    for name in filter(src.pattern("json", "judge").search, names):  # "gpt-4o", "my_judge"
        values = {folded(src.label_text(record.get(name))) for record in records} - {""}
        judges += [name] if 2 * len(values & labels) > len(values) else []
    for unit, record in zip(units, records, strict=True):
        for judge in judges:
            rows.add(unit, judge, "model", record.get(judge))
    keys = dict.fromkeys(name for record in records for name in _answer_keys(record))
    rows.notes.append(written("exchange.json_answers", keys=", ".join(keys)))
    if has_positions:
        rows.notes.append(written("exchange.json_places"))
    if judges:
        rows.notes.append(written("exchange.json_judges", names=", ".join(judges)))
    return replace(rows.export(written("exchange.json")), guessed_kinds=True)


def _unit_names(rows: Rows, records: list[src.Record]) -> list[str]:
    """Return the name of each item as a unit, its id or else its number, and describe the unit."""
    id_key = _id_key(records)
    contents = []
    for number, record in enumerate(records, start=1):
        answer_keys = _answer_keys(record)
        content = {name: record[name] for name in record if name not in answer_keys}
        contents.append((one_line(record.get(id_key)) if id_key else str(number), content))
    units = rows.units(contents)
    # Units that were kept apart share what has the id, such as a question, and may be its cluster.
    are_apart = units != [unit for unit, _ in contents]
    id_column = "item" if id_key in ("unit_id", "item_id") else id_key
    for unit, record in zip(units, records, strict=True):
        facts = {name: record[name] for name in record if name != id_key}
        rows.describe(unit, {id_column: record[id_key], **facts} if are_apart else facts)
    return units


def _json_items(_: ItemRows, source: src.Source) -> ItemTable:
    """Read items with their keys as columns; nested values stay JSON."""
    location, records = _items_in(source)
    return ItemTable(_item_table(records, source.name), _notes(location))


def _notes(location: str) -> list[str]:
    return [written("exchange.json_items"), written("exchange.json_where", where=location)]


# ---- the list of items --------------------------------------------------------------------------
def _items_in(source: src.Source) -> tuple[str, list[src.Record]]:
    """Return words for where a file's items are, and the items. Raises InputError if unclear."""
    if not isinstance(source.document, dict) or source.path.suffix.casefold() != ".json":  # JSONL
        return "one list", source.records()
    return _items_below(source.document, source.name, "")


def _items_below(value: object, file_name: str, path: str) -> tuple[str, list[src.Record]]:
    """Return words for where the items are, and the items below a value at a path "key.key"."""
    location = path or "one object"
    if isinstance(value, list):
        return location, src.objects(value)
    values = src.fields_in(value)
    if len(values) > 1 and all(isinstance(part, dict) for part in values.values()):
        if items := _items_by_rater(values):  # {"ann": {"i1": "yes", ...}, "bob": {...}}
            return f"{location}, by annotator and item", items
        has_shared_keys = bool(set.intersection(*map(set, values.values())))
        if has_shared_keys:  # the fields of items: {"i1": {"text": "..."}, "i2": {"text": "..."}}
            return f"{location}, by id", [{"id": key, **part} for key, part in values.items()]
    if len(values) > 1 and all(src.objects(part) for part in values.values()):
        return f"{location}, in several lists", _merged_lists(values)  # {"dev": [{}], "test": [{}]}
    containers = {key: part for key, part in values.items() if _may_hold_items(part)}
    if not containers or path.count(".") >= _DEEPEST_WRAPPER:
        subject = f"{file_name}, {one_line(path)}" if path else file_name
        raise InputError(
            f"{subject} is JSON without a list of items; write a list of objects, an item each, "
            'such as [{"item": "a", "annotations": {"ann": "yes"}}]'
        )
    longest = max(containers, key=lambda key: len(containers[key]))  # {"data": [{}], "info": []}
    if [len(part) for part in containers.values()].count(len(containers[longest])) > 1:
        several = one_line(", ".join(containers))[:_QUOTED]
        keys = "".join(f'["{key}"]' for key in f"{path}.{longest}".split(".") if key)
        query, file = shlex.quote(one_line(f".{keys}")), shlex.quote(file_name)
        raise InputError(
            f"{file_name} has several lists of the same length ({several}), and nothing tells "
            f"which has the items; write one of them to a file: jq {query} {file} > items.json"
        )
    return _items_below(containers[longest], file_name, f"{path}.{longest}".strip("."))


def _may_hold_items(value: object) -> bool:
    """Return True if there may be items in a value."""
    if isinstance(value, dict):
        return any(isinstance(part, (dict, list)) for part in value.values()) or len(value) > 1
    return bool(src.objects(value))


def _items_by_rater(answers_by_rater: Mapping[str, src.Record]) -> list[src.Record]:
    """Return items with annotations from {RATER: {ITEM: ANSWER}}; [] if these are no answers."""
    ids = dict.fromkeys(item for by_item in answers_by_rater.values() for item in by_item)
    answers = [answer for by_item in answers_by_rater.values() for answer in by_item.values()]
    have_overlap = len(answers) > len(ids)  # some item has two answers
    # Few inner keys may be the fields of items: {"i1": {"text": "...", "label": "yes"}, ...}.
    may_be_fields = len(ids) <= 2 * len(answers_by_rater)
    if not have_overlap or may_be_fields:
        return []
    are_plain = all(isinstance(answer, (str, bool)) for answer in answers)
    are_labels = are_plain and len({str(answer) for answer in answers}) <= _FEW_LABELS
    have_label = all(any(key in _LABEL_KEYS for key in src.fields_in(part)) for part in answers)
    if not are_labels and not have_label:  # neither "yes" nor {"label": "yes"}
        return []
    annotations: dict[str, src.Record] = {item: {} for item in ids}  # by item and rater
    for rater, by_item in answers_by_rater.items():
        for item, answer in by_item.items():
            annotations[item][rater] = answer
    return [{"id": item, "annotations": by_rater} for item, by_rater in annotations.items()]


def _merged_lists(lists: Mapping[str, Any]) -> list[src.Record]:
    """Return the objects of several lists, each with its list's name, as an annotator or a part."""
    merged = [(name, record) for name, items in lists.items() for record in src.objects(items)]
    _, first_record = merged[0]
    id_key = next((name for name in first_record if names_items(name)), "")
    record_lists = map(src.objects, lists.values())
    ids, *others = ({src.text_of(part.get(id_key)) for part in parts} for parts in record_lists)
    have_items_in_common = id_key and not ids.isdisjoint(set().union(*others))
    column = "annotator" if have_items_in_common else "part"  # such as "dev" or "test"
    return [{column: name, **record} for name, record in merged]


def _rated_parts_key(record: src.Record) -> str:
    """Return the only key of an item with parts that are rated, such as sentences, else ""."""
    if _answer_keys(record):
        return ""
    keys = [key for key in record if (parts := src.objects(record[key])) and _answer_keys(parts[0])]
    return keys[0] if len(keys) == 1 else ""


def _rated_parts(record: src.Record) -> list[src.Record]:
    """Return an item, or its rated parts as items with the item as their cluster."""
    if not (parts_key := _rated_parts_key(record)):
        return [record]
    item = {name: value for name, value in record.items() if name != parts_key}
    id_key = _id_key([item])
    cluster = item.get(id_key)
    return [
        {"cluster_id": cluster, **item, id_key or "id": f"{src.text_of(cluster)}/{number}"}
        | {name: value for name, value in part.items() if name != id_key}  # replace the item's
        for number, part in enumerate(src.objects(record[parts_key]), start=1)
    ]


def _id_key(records: list[src.Record]) -> str:
    """Return the key of the items' ids, if possible one whose values differ, or ""."""
    filled = [name for name in records[0] if all(label_of(record.get(name)) for record in records)]
    varying = [name for name in filled if len({src.text_of(r[name]) for r in records}) > 1]
    return likely_columns(varying or filled, ["unit_id"]).get("unit_id", "")


def _item_table(records: list[src.Record], source: str) -> pd.DataFrame:
    """Return items as a table of texts; messages count them from 1, by index + FIRST_ROW."""
    formats.check_table({name for record in records for name in record}, len(records), source)
    cells = [{k: src.text_or_json(formats.cell_text(v)) for k, v in r.items()} for r in records]
    index = range(1 - formats.FIRST_ROW, len(records) + 1 - formats.FIRST_ROW)
    return pd.DataFrame(cells, index=index, dtype=str).fillna("")


# ---- the answers in an item ---------------------------------------------------------------------
def _answer_keys(record: src.Record) -> list[str]:
    """Return the keys of an item below which there are answers; none for a row of one rater."""
    if any(_rater_name(record.get(name)) for name in _CERTAIN_RATER_KEYS):
        return []
    return [key for key, value in record.items() if _holds_answers(key, value, record)]


def _holds_answers(key: str, value: object, record: src.Record) -> bool:
    """Return True if a value of an item is answers, judged by its key or by the raters in it."""
    is_called_answers = bool(_ANSWERS_KEY.fullmatch(key))
    if isinstance(value, list) and (records := src.objects(value)):  # [{"annotator": "ann", ...}]
        have_raters = all(any(_rater_name(part.get(n)) for n in _RATER_KEYS) for part in records)
        return len(records) == len(value) and (have_raters or is_called_answers)
    if isinstance(value, list):  # "expert_scores": [4, 5]
        are_labels = bool(_RATERS_LABELS_KEY.search(key)) and not _RATER_NAMES_KEY.fullmatch(key)
        return is_called_answers and are_labels
    # {"ann": "yes"}, or "yes, no" where another key has the raters' names.
    has_labels = isinstance(value, dict) or bool(_labels_by_rater(key, value, record))
    return is_called_answers and has_labels


def _labels_by_rater(key: str, value: object, record: src.Record) -> dict[str, object]:
    """Return the labels in a list by rater, where another key of the item lists as many raters."""
    are_objects = isinstance(value, list) and all(isinstance(part, dict) for part in value)
    labels: Any = value if are_objects else _split(value)
    for name in record:
        if name != key and _RATER_NAMES_KEY.fullmatch(name):
            raters = _split(record[name])
            is_list = len(labels) > 1 or isinstance(value, list)  # not a text without commas
            if is_list and len(raters) == len(labels) == len({*raters}):
                return dict(zip(raters, labels, strict=True))  # annotators: a, b; labels: yes, no
    return {}


def _split(value: object) -> list[str]:
    """Return the texts of a list, or of a text with commas between them."""
    if isinstance(value, list):
        return [one_line(part) for part in value]
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else []


def _answers_in(node: _Node) -> Iterator[_Node]:
    """Yield a node for each label in a node. Raises InputError for a value that is no answer."""
    value = node.value
    if value is None or isinstance(value, (str, bool)):  # a number is a Numeral, a str
        if not node.rater:
            raise node.fault
        yield node
    elif isinstance(value, list):
        yield from _answers_in_list(node)
    elif node.path.count(".") > _DEEPEST_KEY:
        raise replace(node, path=f"{node.path[:_QUOTED]}...").fault
    elif not isinstance(value, dict):
        raise node.fault
    elif any(key in value for key in _LABEL_KEYS):
        yield from _answers_of_rater(node)
    else:
        for name, inner in value.items():
            child = node.child(name, inner)
            if node.rater:  # so that the keys below are parts of the question
                yield from _answers_in(child.for_question(name))
            elif _names_rater(name, inner):
                yield from _answers_in(replace(child, rater=one_line(name)))
            else:
                # A question, perhaps with the raters' mean: {"tone": {"mean": 4, "ratings": [...]}}
                question = child.for_question(name)
                raters_answers = [
                    replace(question.child(key, answers), key=key)
                    for key, answers in src.fields_in(inner).items()
                    if isinstance(answers, (dict, list)) and _ANSWERS_KEY.fullmatch(key)
                ]
                for answer_node in raters_answers or [question]:
                    yield from _answers_in(answer_node)


def _names_rater(name: str, inner: object) -> bool:
    """Return True if a key is a rater's name, by its form or by the value below it."""
    if src.pattern("json", "person").fullmatch(name) or plain_kind(name):  # "w12"
        return True
    if isinstance(inner, dict):
        return any(key in inner for key in _LABEL_KEYS)
    return not isinstance(inner, list)  # a list has the answers to a question


def _answers_in_list(node: _Node) -> Iterator[_Node]:
    """Yield the labels of a list: objects that name raters, or labels in the order of raters."""
    values = node.value
    if node.rater and not any(isinstance(value, (dict, list)) for value in values):
        yield replace(node, value=values[0] if len(values) == 1 else values)
        return  # options of one answer: {"ann": ["a", "b"]}
    words = re.split(r"[ _-]", node.key.lower())
    stems = [word for word in words if re.fullmatch(f"{_PEOPLE}|{_MACHINES}", word)]
    # Raters without names are called after the key: `expert_1` for `individual_expert_scores`.
    stem = next((word.rstrip("s") for word in stems if word != "individual"), "annotator")
    for number, value in enumerate(values, start=1):
        path, rater = f"{node.path}[{number - 1}]", node.rater or f"{stem}_{number}"
        part = replace(node, path=path, value=value, rater=rater)
        if isinstance(value, dict):
            has_name = bool(node.rater) or any(_rater_name(value.get(name)) for name in _RATER_KEYS)
            for answer in _answers_of_rater(part):
                yield replace(answer, is_positional=not has_name)
        elif isinstance(value, (str, bool)) or value is None:
            yield replace(part, is_positional=True)
        else:
            raise part.fault


def _answers_of_rater(node: _Node) -> Iterator[_Node]:
    """Yield the labels of an object of one rater: its label, or its numbers by question."""
    value = node.value
    rater_key = next((name for name in _RATER_KEYS if _rater_name(value.get(name))), "")
    label_key = next((name for name in _LABEL_KEYS if name in value), "")
    question_key = next((name for name in _JSON["asked"] if src.text_of(value.get(name))), "")
    node = replace(
        node,
        rater=_rater_name(value.get(rater_key)) or node.rater,
        rubric=src.text_of(value.get(question_key)) or node.rubric,
        time=next((value[name] for name in _TIME_KEYS if src.text_of(value.get(name))), node.time),
    )
    if not node.rater:
        raise node.fault
    if label_key:
        yield from _answers_in(node.child(label_key, value[label_key]))
        return
    for name, label in value.items():
        is_number = isinstance(label, (bool, src.Numeral))  # not texts, such as a comment
        is_other = name in (rater_key, question_key, *_TIME_KEYS) or names_items(name)
        if is_number and not is_other:
            yield replace(node.for_question(name), value=label)


def _rater_name(value: object) -> str:
    """Return the name of a rater: a text or a number, or one in an object; "" for other values."""
    if isinstance(value, dict):
        names = ("email", "name", "username", "id")
        value = next((value[name] for name in names if name in value), "")
    name = one_line(value)
    return name if len(name) <= LONGEST_LABEL else ""


def _rater_kind(rater: str, key: str, raters: set[str]) -> str:
    """Return the kind of one of the raters by name, or by the answers' key; "" if neither does."""
    if kind := plain_kind(rater):
        return kind
    if src.pattern("json", "machine").search(key):  # "model_scores"
        return "model"
    is_person = src.pattern("json", "person").fullmatch(rater)
    if rater.casefold() == "r1" and raters.isdisjoint(("r2", "R2")):
        return ""  # perhaps DeepSeek's R1: annotators are numbered if there are several
    return "human" if is_person or re.fullmatch(f"({_PEOPLE})_\\d+", rater) else ""


READERS = {
    "excel": Reader(_is_excel, _read_excel, _excel_items),
    "chat": Reader(_is_chat, lambda rows, source: None, _chat_items),
    "json": Reader(_is_json, _read_json, _json_items),
}
