"""Readers of files that no single tool writes.

They are workbooks of Excel (.xlsx), of which one sheet is read; JSON logs of chat completions; and
JSON data in a few general shapes. Each format has a section of functions that recognise it, read
its ratings, and read its items. For the general shapes, a section finds the list of items and
another one the answers in an item. `READERS` is at the end.
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
from typing import Any, NamedTuple

from evenhand.errors import InputError
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
from evenhand.exchange.readers.source import (
    CONTEXT_KEYS,
    PROMPT_KEYS,
    REFERENCE_KEYS,
    TOOLS,
    Numeral,
    Record,
    Source,
    fields_in,
    get_in,
    label_cell,
    messages_in,
    objects,
    pattern,
    readable,
    text_of,
    texts_of,
)
from evenhand.lazy import pd
from evenhand.study.tables import formats
from evenhand.study.tables.columns import likely_columns, names_items
from evenhand.texts import written

# ---- Excel --------------------------------------------------------------------------------------
_MOST_UNPACKED = 256 * 1024**2
"""Bytes of a workbook's parts together; unpacked they take several times as much memory."""
_ROW_BYTES = 100  # memory of a row in addition to that of its cells
_MOST_NAMED = 3  # cells that an error names
_IS_TIME = re.compile(r"date|time|created|updated|stamp|(^|[_\W])(at|on|day|when)([_\W]|$)", re.I)
"""Names of columns whose cells are times."""


class _Row(NamedTuple):
    """A row of a sheet: its number from 1, its cells as texts, and the indices of date cells."""

    number: int
    cells: list[str]
    date_indices: tuple[int, ...]


class _Sheet(NamedTuple):
    """A sheet with its rows that are not empty, of which the first has the names of columns."""

    title: str
    rows: list[_Row]


def _is_excel(source: Source) -> bool:
    names = source.archive.names if source.archive else []
    return "[Content_Types].xml" in names and any(name.startswith("xl/") for name in names)


def _read_excel(_: Rows, source: Source) -> Export:
    """Read one sheet as a table, with the same rules as for a CSV file."""
    has_formulas = False
    if source.archive:
        source.archive.limit_bytes(_MOST_UNPACKED)
        for name in source.archive.names:  # raises InputError if too large for openpyxl
            content = source.archive.read(name)
            has_formulas |= name.startswith("xl/worksheets/") and b"<f" in content
    with readable(f"{source.name} is a workbook of Excel that", f"; {formats.AS_CSV}"):
        sheet, *other_sheets = _sheets(source)
        if has_formulas:
            _refuse_unsaved(source, sheet)
    table = _sheet_table(sheet.rows, source.name)
    _refuse_dates(sheet.rows, f"{source.name}, sheet {sheet.title}")
    notes = [written("exchange.excel", sheet=sheet.title)]
    if other_sheets:
        titles = ", ".join(other.title for other in other_sheets)
        notes.append(written("exchange.excel_others", sheets=titles))
    return Export(table, notes)


def _excel_items(_: ItemRows, source: Source) -> ItemTable:
    """Read rows as those of a CSV file."""
    export = _read_excel(Rows(source), source)
    return ItemTable(export.table, export.notes)


def _sheets(source: Source) -> list[_Sheet]:
    """Return the sheets with cells, first the one to read. Raises InputError if that is unclear."""
    workbook = _workbook(source)
    sheets = []
    for worksheet in workbook.worksheets:
        if source.sheet and worksheet.title != source.sheet:
            continue
        worksheet.reset_dimensions()  # a workbook may claim a million rows
        if rows := [row for row in _rows(worksheet, source.name) if any(row.cells)]:
            sheets.append(_Sheet(str(worksheet.title), rows))
    if not sheets and source.sheet:
        names = ", ".join(str(worksheet.title) for worksheet in workbook.worksheets)
        raise InputError(f"{source.name} has no sheet {source.sheet!r} with a cell; it has {names}")
    if not sheets:
        raise InputError(f"{source.name}: no sheet holds a cell")
    tables = [sheet for sheet in sheets if _is_table(sheet)]
    if len(tables or sheets) > 1:
        titles = ", ".join(sheet.title for sheet in tables or sheets)
        raise InputError(
            f"{source.name} has several sheets ({titles}); name the one to read with --sheet NAME"
        )
    return tables + [sheet for sheet in sheets if sheet not in tables]


def _is_table(sheet: _Sheet) -> bool:
    """Return True if a row of two or more names has rows below it."""
    header, *body = sheet.rows
    return bool(body) and sum(map(bool, header.cells)) > 1


def _workbook(source: Source, *, formulas: bool = False) -> Any:
    """Open a workbook, with the values of cells, or with `formulas` in their place."""
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and validations, which are not used
        content = io.BytesIO(source.path.read_bytes())
        return load_workbook(content, read_only=True, data_only=not formulas)


def _refuse_unsaved(source: Source, sheet: _Sheet) -> None:
    """Raise InputError if the sheet has formulas and the workbook stores no value of any."""
    worksheets = _workbook(source, formulas=True).worksheets
    worksheet = next(other for other in worksheets if str(other.title) == sheet.title)
    worksheet.reset_dimensions()
    values_by_row = {row.number: row.cells for row in sheet.rows}
    column_names = dict(enumerate(sheet.rows[0].cells))
    formulas_by_column: Counter[str] = Counter()
    for number, row in enumerate(worksheet.iter_rows(), start=1):
        values = dict(enumerate(values_by_row.get(number, ())))
        for index, cell in enumerate(row):
            if cell.data_type == "f":
                if values.get(index):
                    return
                name = column_names.get(index)
                formulas_by_column[repr(name) if name else cell.column_letter] += 1
    if formulas_by_column:
        counts = ", ".join(f"{name} ({count:,})" for name, count in formulas_by_column.items())
        raise InputError(
            f"{source.name}, sheet {sheet.title}: cells are formulas without stored values, by "
            f"column {counts}; open the file in Excel or LibreOffice and save it, and they have "
            "values"
        )


def _refuse_dates(rows: Sequence[_Row], place: str) -> None:
    """Raise InputError for a column of dates and other cells, as Excel makes dates of labels."""
    from openpyxl.utils import get_column_letter

    header, *body = rows
    for index, column in enumerate(header.cells):
        dates = [row.number for row in body if index in row.date_indices]
        n_cells = sum(any(row.cells[index : index + 1]) for row in body)
        if not dates or len(dates) == n_cells or _IS_TIME.search(column):
            continue
        letter = get_column_letter(index + 1)
        cells = ", ".join(f"{letter}{number}" for number in dates[:_MOST_NAMED])
        more = f" and {len(dates) - _MOST_NAMED} more" if len(dates) > _MOST_NAMED else ""
        raise InputError(
            f"{place}, column {column!r}: {cells}{more} are dates, and other cells are not; Excel "
            "makes dates of labels such as 1-2. Format the column as Text and type these labels "
            "again"
        )


def _rows(worksheet: Any, name: str) -> Iterator[_Row]:
    """Yield the rows of a worksheet. Raises InputError if they are too many or too large."""
    bytes_left = formats.MOST_DECODED
    for number, row in enumerate(worksheet.iter_rows(values_only=True), start=1):
        formats.check_table(row, number, name)
        # In the file, a text that many cells share is there once; in memory, in each cell.
        texts = [cell for cell in row if isinstance(cell, str)]
        bytes_left -= _ROW_BYTES + formats.CELL * len(row) + sum(map(len, texts))
        if bytes_left < 0:
            raise InputError(f"{name} is too large a workbook; {formats.AS_CSV}")
        cells = [label_cell(cell.strip() if isinstance(cell, str) else cell) for cell in row]
        date_indices = [index for index, cell in enumerate(row) if isinstance(cell, (date, time))]
        yield _Row(number, cells, tuple(date_indices))


def _sheet_table(rows: Sequence[_Row], name: str) -> pd.DataFrame:
    """Return rows as a table. Raises InputError if a cell has no column with a unique name."""
    header, body = list(rows[0].cells), rows[1:]
    while header and not header[-1]:
        header.pop()
    for column in header:
        if not column or header.count(column) > 1:
            fault = f"two columns are called {column!r}" if column else "a column has no name"
            if not column and not header[0]:
                fault += " (cell A1; to_excel(index=False) leaves pandas' index out)"
            advice = "give each column a name of its own in its first row"
            raise InputError(f"{name}: {fault}; {advice}")
    width = len(header)
    for row in body:
        if any(row.cells[width:]):
            raise InputError(
                f"{name}, row {row.number}: {len(row.cells)} cells where the first row has {width}"
                "; name every column in the first row, and move other cells to another sheet"
            )
    cells = [[*row.cells[:width], *[""] * (width - len(row.cells))] for row in body]
    index = [row.number - formats.FIRST_ROW for row in body]
    return pd.DataFrame(cells, columns=header, index=index, dtype=str)


# ---- chat completions ---------------------------------------------------------------------------
# Requests with their responses, the output of batches (of OpenAI and Anthropic), and lists of
# conversations. Here a *reply* is what the provider's API returns, with the text in it.
_CHAT = TOOLS["chat"]
_INPUT_FIELDS = {*PROMPT_KEYS, *CONTEXT_KEYS, *REFERENCE_KEYS}


def _is_chat(source: Source) -> bool:
    first = source.first_record
    is_list = isinstance(source.document, list) and _conversation(first) is not None
    return is_list or bool(_request(first) or _reply(first))


def _conversation(record: Record) -> list[Record] | None:
    """Return the messages of a record from a list of conversations; None if it has none."""
    conversations = (messages_in(record.get(name)) for name in _CHAT["lists"])
    return next(filter(None, conversations), None)


def _chat_items(rows: ItemRows, source: Source) -> None:
    """Read a completion, with the prompt of its request, or a conversation as an item."""
    records = source.records()
    requests = [(text_of(record.get("custom_id")), _request(record)) for record in records]
    request_by_id = {custom_id: request for custom_id, request in requests if custom_id and request}
    has_answers = False
    for record in records:
        custom_id = text_of(record.get("custom_id"))
        if custom_id in request_by_id and "response" not in record and "result" not in record:
            continue  # its answer is on another line
        has_answers = True
        _add_completion(rows, record, _request(record) or request_by_id.get(custom_id))
    if not has_answers:
        raise InputError(
            f"{source.name} holds requests without their responses; put the lines of the batch's "
            "output behind them in one file"
        )


def _add_completion(rows: ItemRows, record: Record, request: Record | None) -> None:
    """Add the completion or conversation in a record, with its other fields as texts or facts."""
    reply, conversation = _reply(record), _conversation(record)
    output = reply or text_of(record.get("response"))
    user_fields = {name: record[name] for name in record if name not in _CHAT["api_fields"]}
    inputs = {name: value for name, value in user_fields.items() if name in _INPUT_FIELDS}
    texts = texts_of(inputs, output)
    if messages := _messages_of(request) or conversation:
        texts |= texts_of(messages, output)
    if conversation and not output:
        texts = {"conversation": conversation}
    models = (get_in(reply, "model"), get_in(reply, "modelVersion"), get_in(request, "model"))
    subject = next(filter(None, models), record.get("model"))
    about = {name: value for name, value in user_fields.items() if name not in inputs}
    item_id = text_of(record.get("custom_id")) or record.get("id")
    rows.add(item_id, texts, subject=subject, about=about)


def _request(record: Record) -> Record | None:
    """Return the request of a record, in the form of the provider's API; None if it has none."""
    paths = [("request", "body"), ("request",)] if "response" in record else []
    paths += [("body",), ("params",)] if "custom_id" in record else []
    requests = (fields_in(get_in(record, *path)) for path in paths)
    return next((request for request in requests if _messages_of(request)), None)


def _messages_of(request: Record | None) -> object:
    """Return the messages of a request, beginning with a system prompt that is apart from them."""
    names = ("messages", "input", "contents")
    messages = next(filter(None, (get_in(request, name) for name in names)), None)
    system = get_in(request, "system") or get_in(request, "instructions")
    if isinstance(messages, list) and system:
        return [{"role": "system", "content": system}, *messages]
    return messages


def _reply(record: Record) -> Record | None:
    """Return the provider's reply in a record, such as a completion; None if it has none."""
    response = record.get("response")
    candidates = (get_in(response, "body"), response, record, get_in(record, "result", "message"))
    for reply in map(fields_in, candidates):
        if (
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
_N_SAMPLED = 50  # items by which a file is recognised
_MOST_WRAPPERS = 4  # objects below one another around the list of items
_MOST_KEYS, _LONGEST_QUOTE = 12, 60
"""Keys below one another in an item, and characters of them in a message."""
_MOST_LABELS = 20  # different answers that are still read as labels and not as texts
_JSON = TOOLS["json"]
_PEOPLE, _MACHINES = _JSON["people"], _JSON["machines"]
_CERTAIN_RATER_KEYS = _JSON["certain_rater_keys"]
_RATER_KEYS = (*_CERTAIN_RATER_KEYS, *_JSON["possible_rater_keys"])
_LABEL_KEYS, _TIME_KEYS = _JSON["label_keys"], _JSON["time_keys"]
_ANSWERS_KEY, _RATER_NAMES_KEY = pattern("json", "answers"), pattern("json", "names")


@dataclass(frozen=True)
class _Node:
    """A value in an item, with what the keys above it show of the labels in it. `answers_key` is
    the item's key of answers; the node of its value comes first, and those of labels last. If
    `is_positional`, the rater is named after the position in a list. `item` and `path` are for
    messages.
    """

    item: str
    path: str
    answers_key: str
    value: Any
    rater: str = ""
    rubric: str = ""
    time: object = ""
    is_positional: bool = False

    def child(self, name: str, value: object) -> _Node:
        """Return the node of the value under a key of this node's value."""
        return replace(self, path=f"{self.path}.{name}", value=value)

    def for_question(self, question: str) -> _Node:
        """Return this node as an answer to this question, which may be a part of another one."""
        return replace(self, rubric=f"{self.rubric}.{question}".strip("."))

    @property
    def error(self) -> InputError:
        """The error to raise if the value is not an answer."""
        return InputError(
            f"{self.item}: {one_line(self.path)} names no annotator, or holds no label; write the "
            'answers as a list of objects, such as [{"annotator": "ann", "label": "yes"}]'
        )


def _is_json(source: Source) -> bool:
    if source.csv_columns:
        return False
    document = source.document
    if isinstance(document, dict) and source.path.suffix.casefold() == ".json":
        return any(map(_is_container, document.values()))
    records = objects(document) if isinstance(document, list) else [source.first_record]
    return any(_answer_keys(item) or _rated_parts_key(item) for item in records[:_N_SAMPLED])


def _read_json(rows: Rows, source: Source) -> Export | None:
    """Read an item as a unit, and the raters whom its answers name; without answers, a table."""
    place, items = _items_in(source)
    records = [part for item in items for part in _rated_parts(item)]
    if not any(_answer_keys(record) for record in records):
        return Export(_item_table(records, source.name), _notes(place))
    rows.notes.append(written("exchange.json_where", where=place))
    id_key = _id_key(records)
    numbers = range(1, len(records) + 1)
    ids = [one_line(item.get(id_key)) for item in records] if id_key else list(map(str, numbers))
    contents = [
        {name: record[name] for name in record.keys() - _answer_keys(record)} for record in records
    ]
    units = rows.distinct_units(ids, contents)
    labels: set[str] = set()
    has_positions = False
    for unit, record in zip(units, records, strict=True):
        rows.describe(unit, {name: record[name] for name in record if name != id_key})
        for answer in _answers_of_item(record, f"{source.name}, item {unit}"):
            kind, time = _rater_kind(answer), answer.time
            rows.add(unit, answer.rater, kind, answer.value, answer.rubric, created_at=time)
            labels.add(text_of(answer.value))
            has_positions |= answer.is_positional
    judges = _judge_keys(records, labels)
    for unit, record in zip(units, records, strict=True):
        for judge in judges:
            rows.add(unit, judge, "model", record.get(judge))
    keys = dict.fromkeys(name for record in records for name in _answer_keys(record))
    rows.notes.append(written("exchange.json_answers", keys=", ".join(keys)))
    if has_positions:
        rows.notes.append(written("exchange.json_places"))
    if judges:
        rows.notes.append(written("exchange.json_judges", names=", ".join(judges)))
    return None


def _judge_keys(records: Sequence[Record], labels: set[str]) -> list[str]:
    """Return the items' keys that are called after a model and whose values are all labels."""
    judge_keys = []
    for key in records[0]:
        values = {text_of(record.get(key)) for record in records} - {""}
        if pattern("json", "judge").search(key) and values and values <= labels:
            judge_keys.append(key)
    return judge_keys


def _json_items(_: ItemRows, source: Source) -> ItemTable:
    """Read items with their keys as columns; nested values stay JSON."""
    place, records = _items_in(source)
    return ItemTable(_item_table(records, source.name), _notes(place))


def _notes(place: str) -> list[str]:
    return [written("exchange.json_items"), written("exchange.json_where", where=place)]


# ---- the list of items --------------------------------------------------------------------------


def _items_in(source: Source) -> tuple[str, list[Record]]:
    """Return the place of a file's items in words, and the items. Raises InputError if unclear."""
    if not isinstance(source.document, dict) or source.path.suffix.casefold() != ".json":
        return "one list", source.records()
    return _items_below(source.document, source.name, "")


def _items_below(value: object, file_name: str, path: str) -> tuple[str, list[Record]]:
    """Return the items in a value, which is at this path of keys with dots between them. Raises
    InputError if it is not clear where they are.
    """
    place = path or "one object"
    if isinstance(value, list):
        return place, objects(value)
    values = fields_in(value)
    if len(values) > 1 and all(isinstance(part, dict) for part in values.values()):
        if items := _items_by_rater(values):
            return f"{place}, by annotator and item", items
        if set.intersection(*({*part} for part in values.values())):
            return f"{place}, by id", [{"id": key, **part} for key, part in values.items()]
    if len(values) > 1 and all(objects(part) for part in values.values()):
        return f"{place}, in several lists", _merged_lists(values)
    containers = {key: part for key, part in values.items() if _is_container(part)}
    if not containers or path.count(".") >= _MOST_WRAPPERS:
        place = f"{file_name}, {one_line(path)}" if path else file_name
        raise InputError(
            f"{place} is JSON without a list of items; write a list of objects, an item each, such "
            'as [{"item": "a", "annotations": {"ann": "yes"}}]'
        )
    longest = max(containers, key=lambda key: len(containers[key]))
    lengths = [len(part) for part in containers.values()]
    if lengths.count(len(containers[longest])) > 1:
        names = one_line(", ".join(containers))[:_LONGEST_QUOTE]
        keys = "".join(f'["{key}"]' for key in f"{path}.{longest}".split(".") if key)
        query, file = shlex.quote(one_line(f".{keys}")), shlex.quote(file_name)
        raise InputError(
            f"{file_name} has several lists of the same length ({names}), and nothing tells "
            f"which has the items; write one of them to a file: jq {query} {file} > items.json"
        )
    return _items_below(containers[longest], file_name, f"{path}.{longest}".strip("."))


def _is_container(value: object) -> bool:
    """Return True for a list of objects, or an object that may contain items."""
    if isinstance(value, dict):
        return any(isinstance(part, (dict, list)) for part in value.values()) or len(value) > 1
    return bool(objects(value))


def _items_by_rater(answers_by_rater: Mapping[str, Record]) -> list[Record]:
    """Return items with annotations, from answers by rater and item; [] if these are no answers."""
    answers_by_item: dict[str, Record] = {}
    for rater, answers in answers_by_rater.items():
        for item, answer in answers.items():
            answers_by_item.setdefault(item, {})[rater] = answer
    values = [answer for answers in answers_by_rater.values() for answer in answers.values()]
    has_overlap = len(values) > len(answers_by_item)
    # Fewer keys could be the fields of objects.
    has_many_items = len(answers_by_item) > 2 * len(answers_by_rater)
    are_plain = all(isinstance(value, (str, bool)) for value in values)
    are_labels = are_plain and len({str(value) for value in values}) <= _MOST_LABELS
    have_labels = all(not {*fields_in(value)}.isdisjoint(_LABEL_KEYS) for value in values)
    if not (has_overlap and has_many_items and (are_labels or have_labels)):
        return []
    return [{"id": item, "annotations": answers} for item, answers in answers_by_item.items()]


def _merged_lists(lists: Mapping[str, Any]) -> list[Record]:
    """Return the objects of several lists, each with its list's name: an annotator, or a part."""
    merged = [(name, record) for name, items in lists.items() for record in objects(items)]
    id_key = next((name for name in merged[0][1] if names_items(name)), "")
    first_ids, *other_ids = (
        {text_of(item.get(id_key)) for item in objects(items)} for items in lists.values()
    )
    column = "annotator" if id_key and first_ids & set().union(*other_ids) else "part"
    return [{column: name, **record} for name, record in merged]


def _rated_parts_key(record: Record) -> str:
    """Return the key of an item's parts, such as sentences, if these are rated, else ""."""
    if _answer_keys(record):
        return ""
    keys = [key for key in record if (parts := objects(record[key])) and _answer_keys(parts[0])]
    return keys[0] if len(keys) == 1 else ""


def _rated_parts(record: Record) -> list[Record]:
    """Return an item, or its rated parts as items with the item as their cluster."""
    if not (parts_key := _rated_parts_key(record)):
        return [record]
    item = {name: value for name, value in record.items() if name != parts_key}
    id_key = _id_key([item])
    cluster = item.get(id_key)
    return [
        {**item, id_key or "id": f"{text_of(cluster)}/{number}", "cluster": cluster}
        | {name: value for name, value in part.items() if name != id_key}
        for number, part in enumerate(objects(record[parts_key]), start=1)
    ]


def _id_key(records: list[Record]) -> str:
    """Return the key of the items' ids, if possible one whose values differ, or ""."""
    keys = [key for key in records[0] if all(label_of(record.get(key)) for record in records)]
    varying_keys = [key for key in keys if len({text_of(record[key]) for record in records}) > 1]
    return likely_columns(varying_keys or keys, ["unit_id"]).get("unit_id", "")


def _item_table(records: list[Record], source: str) -> pd.DataFrame:
    """Return items as a table, a column for each key. Raises InputError if it is too large."""
    columns = {name for record in records for name in record}
    formats.check_table(columns, len(records), source)
    cells = [
        {name: formats.cell_text(value) for name, value in record.items()} for record in records
    ]
    index = range(1 - formats.FIRST_ROW, len(records) + 1 - formats.FIRST_ROW)
    return pd.DataFrame(cells, index=index, dtype=str).fillna("")


# ---- the answers in an item ---------------------------------------------------------------------


def _answer_keys(record: Record) -> list[str]:
    """Return the keys of an item below which there are answers; none for a row of one rater."""
    if any(_rater_name(record.get(name)) for name in _CERTAIN_RATER_KEYS):
        return []
    return [key for key, value in record.items() if _holds_answers(key, value, record)]


def _holds_answers(key: str, value: object, record: Record) -> bool:
    """Return True if an item has answers below this key, by its name and the form of its value."""
    is_called_answers = bool(_ANSWERS_KEY.fullmatch(key))
    if isinstance(value, list) and (answers := objects(value)):
        are_all_objects = len(answers) == len(value)
        return are_all_objects and (is_called_answers or all(map(_rater_key, answers)))
    if isinstance(value, list):
        is_called_list = bool(pattern("json", "list").search(key))
        return is_called_answers and is_called_list and not _RATER_NAMES_KEY.fullmatch(key)
    has_labels = isinstance(value, dict) or bool(_labels_by_rater(key, value, record))
    return is_called_answers and has_labels


def _labels_by_rater(key: str, value: object, record: Record) -> dict[str, str]:
    """Return the labels in a list by rater, if another key of the item lists as many raters. Each
    list is a JSON list, or a text with commas between its parts. {} if there are no raters.
    """
    labels = _split_list(value)
    is_list = isinstance(value, list) or len(labels) > 1
    for name in record:
        if is_list and name != key and _RATER_NAMES_KEY.fullmatch(name):
            raters = _split_list(record[name])
            if len(raters) == len(labels) == len({*raters}):
                return dict(zip(raters, labels, strict=True))
    return {}


def _split_list(value: object) -> list[str]:
    if isinstance(value, list):
        return [one_line(part) for part in value]
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else []


def _answers_of_item(record: Record, item: str) -> Iterator[_Node]:
    """Yield the labels in an item, which errors call `item`. Raises InputError for other values."""
    for key in _answer_keys(record):
        value = _labels_by_rater(key, record[key], record) or record[key]
        yield from _answers_in(_Node(item, path=key, answers_key=key, value=value))


def _answers_in(node: _Node) -> Iterator[_Node]:
    """Yield the nodes of the labels in a node. Raises InputError for a value that is no answer."""
    value = node.value
    if value is None or isinstance(value, (str, bool)):
        if not node.rater:
            raise node.error
        yield node
    elif isinstance(value, list):
        yield from _answers_in_list(node)
    elif node.path.count(".") > _MOST_KEYS:
        raise replace(node, path=f"{node.path[:_LONGEST_QUOTE]}...").error
    elif not isinstance(value, dict):
        raise node.error
    elif any(key in value for key in _LABEL_KEYS):
        yield from _answers_of_rater(node)
    else:
        for name, inner in value.items():
            child = node.child(name, inner)
            if node.rater:
                yield from _answers_in(child.for_question(name))
            elif _is_rater(name, inner):
                yield from _answers_in(replace(child, rater=one_line(name)))
            else:
                yield from _answers_to_question(child.for_question(name))


def _answers_to_question(node: _Node) -> Iterator[_Node]:
    """Yield the labels in the node of a question. If a key is called answers, only what is below it
    counts: other keys may have their mean.
    """
    answer_nodes = [
        replace(node.child(key, answers), answers_key=key)
        for key, answers in fields_in(node.value).items()
        if isinstance(answers, (dict, list)) and _ANSWERS_KEY.fullmatch(key)
    ]
    for answer_node in answer_nodes or [node]:
        yield from _answers_in(answer_node)


def _is_rater(name: str, value: object) -> bool:
    """Return True if a key is a rater's name, by its form or by the value below it."""
    if pattern("json", "person").fullmatch(name) or plain_kind(name):
        return True
    if isinstance(value, dict):
        return any(key in value for key in _LABEL_KEYS)
    return not isinstance(value, list)


def _answers_in_list(node: _Node) -> Iterator[_Node]:
    """Yield the labels of a list: objects that name raters, or labels in the order of raters."""
    values = node.value
    if node.rater and not any(isinstance(value, (dict, list)) for value in values):
        yield replace(node, value=values[0] if len(values) == 1 else values)
        return
    rater_noun = _rater_noun(node.answers_key)
    for index, value in enumerate(values):
        rater = node.rater or f"{rater_noun}_{index + 1}"
        part = replace(node, path=f"{node.path}[{index}]", value=value, rater=rater)
        if isinstance(value, dict):
            is_positional = not (node.rater or _rater_key(value))
            for answer in _answers_of_rater(part):
                yield replace(answer, is_positional=is_positional)
        elif isinstance(value, (str, bool)) or value is None:
            yield replace(part, is_positional=True)
        else:
            raise part.error


def _rater_noun(answers_key: str) -> str:
    """Return what raters are called in a key of answers, such as "expert" in "expert_labels"."""
    words = re.split(r"[ _-]", answers_key.lower())
    nouns = [word for word in words if re.fullmatch(f"{_PEOPLE}|{_MACHINES}", word)]
    return next((noun.rstrip("s") for noun in nouns if noun != "individual"), "annotator")


def _answers_of_rater(node: _Node) -> Iterator[_Node]:
    """Yield the labels of an object of one rater: its label, or its numbers by question."""
    value = node.value
    rater_key = _rater_key(value)
    label_key = next((name for name in _LABEL_KEYS if name in value), "")
    question_key = next((name for name in _JSON["question_keys"] if text_of(value.get(name))), "")
    node = replace(
        node,
        rater=_rater_name(value.get(rater_key)) or node.rater,
        rubric=text_of(value.get(question_key)) or node.rubric,
        time=next((value[name] for name in _TIME_KEYS if text_of(value.get(name))), node.time),
    )
    if not node.rater:
        raise node.error
    if label_key:
        yield from _answers_in(node.child(label_key, value[label_key]))
        return
    other_keys = (rater_key, question_key, *_TIME_KEYS)
    for name, label in value.items():
        is_number = isinstance(label, (bool, Numeral))
        if is_number and name not in other_keys and not names_items(name):
            yield replace(node.for_question(name), value=label)


def _rater_key(answer: Record) -> str:
    """Return the key of an answer that holds the rater's name; "" if none does."""
    return next((key for key in _RATER_KEYS if _rater_name(answer.get(key))), "")


def _rater_name(value: object) -> str:
    """Return the name of a rater: a text or a number, or one in an object; "" for other values."""
    if isinstance(value, dict):
        keys = ("email", "name", "username", "id")
        value = next((value[key] for key in keys if key in value), "")
    name = one_line(value)
    return name if len(name) <= LONGEST_LABEL else ""


def _rater_kind(answer: _Node) -> str:
    """Return the kind of rater, by name or by the key of answers; "" if neither shows it."""
    if kind := plain_kind(answer.rater):
        return kind
    if pattern("json", "machine").search(answer.answers_key):
        return "model"
    is_person = pattern("json", "person").fullmatch(answer.rater)
    is_numbered_person = re.fullmatch(f"({_PEOPLE})_\\d+", answer.rater)
    return "human" if is_person or is_numbered_person else ""


READERS = {
    "excel": Reader(_is_excel, _read_excel, _excel_items),
    "chat": Reader(_is_chat, lambda rows, source: None, _chat_items),
    "json": Reader(_is_json, _read_json, _json_items),
}
