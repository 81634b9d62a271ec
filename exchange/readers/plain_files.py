"""Files of no one tool: a workbook of Excel (.xlsx), of which its one sheet that holds a table, or
the one that is named; JSON logs of chat completions; and JSON data in a few general shapes.
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
from itertools import islice
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
    ASKED,
    CONTEXT,
    EXPECTED,
    TOOLS,
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
from evenhand.study.tables.columns import likely_columns, names_items
from evenhand.study.tables.formats import CELL, FIRST_ROW, MOST_DECODED, cell_text, check_table
from evenhand.texts import written

# ---- Excel --------------------------------------------------------------------------------------
_MOST_UNPACKED = 256 * 1024**2
"""Bytes of a workbook's parts together; who unpacks them holds several times as much."""
_ROW = 100
_MOST_NAMED = 3
_TIMED = re.compile(r"date|time|created|updated|stamp|(^|[_\W])(at|on|day|when)([_\W]|$)", re.I)
"""Names of columns whose cells are times."""
_AS_CSV = "save its sheet as a CSV file (in Excel: 'CSV UTF-8 (Comma delimited)')"
_TOO_LARGE = "{name} is too large a workbook; " + _AS_CSV


class _Row(NamedTuple):
    """A row by number: the texts of its cells, and the places of those that are dates."""

    number: int
    cells: list[str]
    dates: tuple[int, ...]


def _is_excel(source: Source) -> bool:
    names = source.archive.names if source.archive else []
    return "[Content_Types].xml" in names and any(name.startswith("xl/") for name in names)


def _read_excel(_: Rows, source: Source) -> Export:
    """Read units, raters and labels by the same rules as in a CSV file."""
    formulas = False
    if source.archive:
        source.archive.limit_bytes(_MOST_UNPACKED)
        for name in source.archive.names:  # bounded here, before another reader unpacks it
            content = source.archive.read(name)
            formulas = formulas or (name.startswith("xl/worksheets/") and b"<f" in content)
    with readable(f"{source.name} is a workbook of Excel that", f"; {_AS_CSV}"):
        sheet, rows, others = _sheet(source)
        if formulas:
            _refuse_unsaved(source, sheet, rows)
    table = _sheet_table(rows, source.name)
    _refuse_dates(rows, f"{source.name}, sheet {sheet}")
    notes = [written("exchange.excel", sheet=sheet)]
    if others:
        notes.append(written("exchange.excel_others", sheets=", ".join(others)))
    return Export(table, notes)


def _excel_items(_: ItemRows, source: Source) -> ItemTable:
    """Read rows as those of a CSV file."""
    export = _read_excel(Rows(source), source)
    return ItemTable(export.table, export.notes)


def _sheet(source: Source) -> tuple[str, list[_Row], list[str]]:
    """The name of the sheet that is asked for, or else of the only one with a table, its rows that
    hold anything, by number, and the names of sheets that hold something else. Raises InputError
    where several hold a table, or none holds a cell.
    """
    book = _book(source)
    filled = {}
    for sheet in book.worksheets:
        if source.sheet and sheet.title != source.sheet:
            continue
        sheet.reset_dimensions()  # a workbook may claim a million rows
        rows = [row for row in _rows(sheet, source.name) if any(row.cells)]
        if rows:
            filled[str(sheet.title)] = rows
    if not filled and source.sheet:
        names = ", ".join(str(sheet.title) for sheet in book.worksheets)
        raise InputError(f"{source.name} has no sheet {source.sheet!r} with a cell; it has {names}")
    if not filled:
        raise InputError(f"{source.name}: no sheet holds a cell")
    # A table is a row of two or more names with rows below it.
    wide = [name for name, rows in filled.items() if rows[1:] and sum(map(bool, rows[0].cells)) > 1]
    tables = wide or list(filled)
    if len(tables) > 1:
        raise InputError(
            f"{source.name} has several sheets ({', '.join(tables)}); name the one to read with "
            "--sheet NAME"
        )
    others = [name for name in filled if name != tables[0]]
    return tables[0], filled[tables[0]], others


def _book(source: Source, *, formulas: bool = False) -> Any:
    """The workbook, with the values of cells, or with `formulas` in their place."""
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and validations that are not read
        content = io.BytesIO(source.path.read_bytes())
        return load_workbook(content, read_only=True, data_only=not formulas)


def _refuse_unsaved(source: Source, title: str, rows: Sequence[_Row]) -> None:
    """Raise InputError where cells are formulas and the workbook holds no value of any."""
    sheets = _book(source, formulas=True).worksheets
    sheet = next(sheet for sheet in sheets if str(sheet.title) == title)
    sheet.reset_dimensions()
    values_of = {row.number: row.cells for row in rows}
    columns = rows[0].cells
    unsaved: Counter[str] = Counter()
    for number, row in enumerate(sheet.iter_rows(), start=1):
        values = dict(enumerate(values_of.get(number, ())))
        for at, cell in enumerate(row):
            if cell.data_type == "f":
                if values.get(at):
                    return
                named = at < len(columns) and columns[at]
                unsaved[repr(columns[at]) if named else cell.column_letter] += 1
    if unsaved:
        counts = ", ".join(f"{name} ({count:,})" for name, count in unsaved.items())
        raise InputError(
            f"{source.name}, sheet {title}: cells are formulas without stored values, by column "
            f"{counts}; open the file in Excel or LibreOffice and save it, and they have values"
        )


def _refuse_dates(rows: Sequence[_Row], place: str) -> None:
    """Raise InputError for a column with some dates: Excel makes dates of labels such as 1-2."""
    from openpyxl.utils import get_column_letter

    header, *body = rows
    for at, column in enumerate(header.cells):
        dates = [row.number for row in body if at in row.dates]
        others = [row for row in body if row.cells[at : at + 1] not in ([], [""])]
        if not dates or len(others) == len(dates) or _TIMED.search(column):
            continue
        named = ", ".join(f"{get_column_letter(at + 1)}{date}" for date in dates[:_MOST_NAMED])
        more = f" and {len(dates) - _MOST_NAMED} more" if len(dates) > _MOST_NAMED else ""
        raise InputError(
            f"{place}, column {column!r}: {named}{more} are dates, and other cells are not; Excel "
            "makes dates of labels such as 1-2. Format the column as Text and type these labels "
            "again"
        )


def _rows(sheet: Any, name: str) -> Iterator[_Row]:
    left = MOST_DECODED
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        check_table(row, number, name)
        # A text that many cells share is in the file once.
        left -= _ROW + sum(CELL + (len(cell) if isinstance(cell, str) else 0) for cell in row)
        if left < 0:
            raise InputError(_TOO_LARGE.format(name=name))
        cells = [label_cell(cell.strip() if isinstance(cell, str) else cell) for cell in row]
        dates = tuple(at for at, value in enumerate(row) if isinstance(value, (date, time)))
        yield _Row(number, cells, dates)


def _sheet_table(rows: Sequence[_Row], name: str) -> pd.DataFrame:
    header = list(rows[0].cells)
    body = [(row.number, row.cells) for row in rows[1:]]
    while header and not header[-1]:
        header.pop()
    for column in header:
        if not column or header.count(column) > 1:
            at = " (cell A1; to_excel(index=False) leaves pandas' index out)"
            what = f"a column has no name{'' if any(header[:1]) else at}"
            what = f"two columns are called {column!r}" if column else what
            raise InputError(f"{name}: {what}; give each column a name of its own in its first row")
    for number, row in body:
        if any(row[len(header) :]):
            raise InputError(
                f"{name}, row {number}: {len(row)} cells where the first row has {len(header)}; "
                "name every column in the first row, and move other cells to another sheet"
            )
    cells = [[*islice(row, len(header)), *[""] * (len(header) - len(row))] for _, row in body]
    index = [number - FIRST_ROW for number, _ in body]
    return pd.DataFrame(cells, columns=header, index=index, dtype=str)


# ---- chat completions ---------------------------------------------------------------------------
# Requests with their responses, the output of batches (of OpenAI and Anthropic), and lists of
# conversations.
_CHAT = TOOLS["chat"]
_GIVEN = {*ASKED, *CONTEXT, *EXPECTED}


def _is_chat(source: Source) -> bool:
    first = source.first
    lists = (messages_in(first.get(name)) for name in _CHAT["lists"])
    listed = isinstance(source.document, list) and any(lists)
    return listed or bool(_request(first) or _reply(first))


def _chat_items(rows: ItemRows, source: Source) -> None:
    """Read a completion as an item, with the prompt of its request, or a list of conversations."""
    records = source.records()
    requests = [(text_of(record.get("custom_id")), _request(record)) for record in records]
    asked = {key: request for key, request in requests if key and request}
    answered: set[str] = set()
    for record in records:
        key = text_of(record.get("custom_id"))
        reply, request = _reply(record), _request(record) or asked.get(key)
        whole = next((talk for n in _CHAT["lists"] if (talk := messages_in(record.get(n)))), None)
        if key in asked and "response" not in record and "result" not in record:
            continue  # its answer stands on another line
        answered.add(key)
        others = {name: record[name] for name in record if name not in _CHAT["own"]}
        made = reply or text_of(record.get("response"))
        texts_given = {name: text for name, text in others.items() if name in _GIVEN}
        texts = texts_of(texts_given, made)
        if given := _given(request) or whole:
            texts |= texts_of(given, made)
        if whole and not made:
            texts = {"conversation": whole}
        named = (get_in(reply, "model"), get_in(reply, "modelVersion"), get_in(request, "model"))
        subject = next(filter(None, named), record.get("model"))
        about = {name: text for name, text in others.items() if name not in texts_given}
        rows.add(key or record.get("id"), texts, subject=subject, about=about)
    if not answered:
        raise InputError(
            f"{source.name} holds requests without their responses; put the lines of the batch's "
            "output behind them in one file"
        )


def _request(record: Record) -> Record | None:
    """The request of a record: what was sent, as the provider's API takes it."""
    places = [("request", "body"), ("request",)] if "response" in record else []
    places += [("body",), ("params",)] if "custom_id" in record else []
    for place in places:
        held = get_in(record, *place)
        if isinstance(held, dict) and _given(held):
            return held
    return None


def _given(request: Record | None) -> object:
    """The messages of a request, with the system prompt that some APIs take apart."""
    names = ("messages", "input", "contents")
    messages = next((held for name in names if (held := get_in(request, name))), None)
    system = get_in(request, "system") or get_in(request, "instructions")
    if isinstance(messages, list) and system:
        return [{"role": "system", "content": system}, *messages]
    return messages


def _reply(record: Record) -> Record | None:
    """The reply of a record: a completion, or a message of Anthropic."""
    for held in (get_in(record, "response", "body"), record.get("response"), record,
                 get_in(record, "result", "message")):  # fmt: skip
        if isinstance(held, dict) and (
            isinstance(held.get("choices"), list)
            or isinstance(held.get("candidates"), list)
            or held.get("type") == "message"
            or held.get("object") == "response"
        ):
            return held
    return None


# ---- general shapes -----------------------------------------------------------------------------
# Items in a list, by their ids, or inside a wrapper, with the answers of several raters inside each
# of them; or raters with their answers by item. Answers are a list of objects that name the rater,
# an object of labels by rater or by question, or a list of labels. Anything else is refused with
# the path of its key.
_MOST_LOOKED_AT = 50
_DEEPEST = 4
"""Wrappers around each other."""
_MOST_KEYS, _QUOTED = 12, 60
"""Keys below each other, and characters of them in a message."""
_FEW_LABELS = 20
_JSON = TOOLS["json"]
_PEOPLE, _MACHINES = _JSON["people"], _JSON["machines"]
_WHO, _WHAT, _WHEN = _JSON["who"], _JSON["what"], _JSON["when"]
_SURELY_WHO = _WHO[:12]
_ANSWERS, _NAMES = pattern("json", "answers"), pattern("json", "names")


@dataclass(frozen=True)
class _Answer:
    """A label in an item, or what is below a key and known of the labels there: who gave it, on
    what question, and when; the item and the path, for messages; and the key of answers that it is
    under. Raters without a name go by their place in a list (`placed`).
    """

    item: str
    path: str
    key: str
    value: Any
    rater: str = ""
    rubric: str = ""
    time: object = ""
    placed: bool = False

    def below(self, name: str, value: object) -> _Answer:
        """Return the value under a name in this one."""
        return replace(self, path=f"{self.path}.{name}", value=value)

    def on(self, question: str) -> _Answer:
        """Return this value as an answer to a part of the question."""
        return replace(self, rubric=f"{self.rubric}.{question}".strip("."))

    @property
    def fault(self) -> InputError:
        """The error to raise for what is no answer."""
        return InputError(
            f"{self.item}: {one_line(self.path)} names no annotator, or holds no label; write the "
            'answers as a list of objects, such as [{"annotator": "ann", "label": "yes"}]'
        )


def _is_json(source: Source) -> bool:
    if source.header:
        return False
    document = source.document
    if isinstance(document, dict) and source.path.suffix.casefold() == ".json":
        return any(map(_is_container, document.values()))
    records = objects(document) if isinstance(document, list) else [source.first]
    return any(_carriers(record) or _parts(record) for record in islice(records, _MOST_LOOKED_AT))


def _read_json(rows: Rows, source: Source) -> Export | None:
    """An item is a unit, by an id of its own; who labels it a rater. Flat items are a table."""
    where, records = _items_in(source)
    records = [part for record in records for part in _whole(record)]
    if not any(_carriers(record) for record in records):
        return Export(_table(records, source.name), _notes(where))
    rows.notes.append(written("exchange.json_where", where=where))
    key = _id_key(records)
    numbered = enumerate(records, start=1)
    units = [one_line(record.get(key)) if key else str(number) for number, record in numbered]
    contents = []
    for record in records:  # without the answers to it
        carriers = _carriers(record)
        contents.append({name: record[name] for name in record if name not in carriers})
    units = rows.units(list(zip(units, contents, strict=True)))
    labels: set[str] = set()
    placed = False
    for unit, record in zip(units, records, strict=True):
        rows.describe(unit, {name: record[name] for name in record if name != key})
        place = f"{source.name}, item {unit}"
        for name in _carriers(record):
            below = _parallel(name, record[name], record) or record[name]
            for answer in _answers(_Answer(place, name, name, below)):
                kind, time = _kind(answer.rater, answer.key), answer.time
                labels.add(text_of(answer.value))
                placed = placed or answer.placed
                rows.add(unit, answer.rater, kind, answer.value, answer.rubric, created_at=time)
    judges = [  # the keys of models' labels, by name and as they have no other labels
        name
        for name in records[0]
        if pattern("json", "judge").search(name)
        and {text_of(record.get(name)) for record in records} - {""} <= labels
        and any(text_of(record.get(name)) for record in records)
    ]
    for unit, record in zip(units, records, strict=True):
        for judge in judges:
            rows.add(unit, judge, "model", record.get(judge))
    used = dict.fromkeys(name for record in records for name in _carriers(record))
    rows.notes.append(written("exchange.json_answers", keys=", ".join(used)))
    if placed:
        rows.notes.append(written("exchange.json_places"))
    if judges:
        rows.notes.append(written("exchange.json_judges", names=", ".join(judges)))
    return None


def _json_items(_: ItemRows, source: Source) -> ItemTable:
    """An item is one, with its columns; what is nested stays JSON."""
    where, records = _items_in(source)
    return ItemTable(_table(records, source.name), _notes(where))


def _notes(where: str) -> list[str]:
    return [written("exchange.json_items"), written("exchange.json_where", where=where)]


# ---- where the items are ------------------------------------------------------------------------


def _items_in(source: Source) -> tuple[str, list[Record]]:
    """The words for where the items are, and the items. Raises InputError where nothing tells."""
    if not isinstance(source.document, dict) or source.path.suffix.casefold() != ".json":
        return "one list", source.records()
    return _descend(source.document, source.name, "")


def _descend(given: object, name: str, path: str) -> tuple[str, list[Record]]:
    where = path or "one object"
    if isinstance(given, list):
        return where, objects(given)
    values = fields_in(given)
    if len(values) > 1 and all(isinstance(value, dict) for value in values.values()):
        if turned := _by_item(values):
            return f"{where}, by annotator and item", turned
        if set.intersection(*({*value} for value in values.values())):
            return f"{where}, by id", [{"id": key, **value} for key, value in values.items()]
    if len(values) > 1 and all(objects(value) for value in values.values()):
        return f"{where}, in several lists", _joined(values)
    inner = {key: value for key, value in values.items() if _is_container(value)}
    if not inner or path.count(".") >= _DEEPEST:
        place = f"{name}, {one_line(path)}" if path else name
        raise InputError(
            f"{place} is JSON without a list of items; write a list of objects, an item each, such "
            'as [{"item": "a", "annotations": {"ann": "yes"}}]'
        )
    longest = max(inner, key=lambda key: len(inner[key]))
    if [len(record) for record in inner.values()].count(len(inner[longest])) > 1:
        several = one_line(", ".join(inner))[:_QUOTED]
        keys = "".join(f'["{key}"]' for key in f"{path}.{longest}".split(".") if key)
        query = shlex.quote(one_line(f".{keys}"))
        raise InputError(
            f"{name} has several lists of the same length ({several}), and nothing tells which has "
            f"the items; write one of them to a file: jq {query} {shlex.quote(name)} > items.json"
        )
    return _descend(inner[longest], name, f"{path}.{longest}".strip("."))


def _is_container(value: object) -> bool:
    """Return True if there may be items in a value."""
    if isinstance(value, dict):
        return any(isinstance(part, (dict, list)) for part in value.values()) or len(value) > 1
    return bool(objects(value))


def _by_item(given: Mapping[str, Record]) -> list[Record]:
    """Return items of answers by rater and item; [] where the objects are items themselves."""
    items = dict.fromkeys(item for one in given.values() for item in one)
    answers = [answer for one in given.values() for answer in one.values()]
    shared = len(answers) > len(items)
    if not shared or len(items) <= 2 * len(given):
        return []
    plain = all(isinstance(answer, (str, bool)) for answer in answers)
    few = len({str(answer) for answer in answers}) <= _FEW_LABELS if plain else False
    if not few and not all(isinstance(answer, dict) and {*answer} & {*_WHAT} for answer in answers):
        return []
    return [
        {"id": item, "annotations": {who: one[item] for who, one in given.items() if item in one}}
        for item in items
    ]


def _joined(given: Mapping[str, Any]) -> list[Record]:
    """Return the objects of several lists, each with its list: a rater's, or a part of the data."""
    every = [record for items in given.values() for record in objects(items)]
    key = next((name for name in every[0] if names_items(name)), "")
    ids = [{text_of(record.get(key)) for record in objects(items)} for items in given.values()]
    called = "annotator" if key and ids[0] & set().union(*ids[1:]) else "part"
    return [{called: name, **record} for name, items in given.items() for record in objects(items)]


def _parts(record: Record) -> str:
    """The key of parts of an item that are rated, as the sentences of a summary; "" for none."""
    if _carriers(record):
        return ""
    keys = [key for key, value in record.items() if (part := objects(value)) and _carriers(part[0])]
    return keys[0] if len(keys) == 1 else ""


def _whole(record: Record) -> list[Record]:
    """The parts of an item that are rated, or the item."""
    if not (key := _parts(record)):
        return [record]
    item = {name: value for name, value in record.items() if name != key}
    named = _id_key([item])
    return [
        {**item, named or "id": f"{text_of(item.get(named))}/{number}", "cluster": item.get(named)}
        | {name: value for name, value in part.items() if name != named}
        for number, part in enumerate(objects(record[key]), start=1)
    ]


def _id_key(records: list[Record]) -> str:
    """The key that names each item; "" where none has a name in all of them."""
    able = [name for name in records[0] if all(label_of(record.get(name)) for record in records)]
    several = [name for name in able if len({text_of(record[name]) for record in records}) > 1]
    return likely_columns(several or able, ["unit_id"]).get("unit_id", "")


def _table(records: list[Record], source: str) -> pd.DataFrame:
    columns = {name for record in records for name in record}
    check_table(columns, len(records), source)
    cells = [{name: cell_text(value) for name, value in record.items()} for record in records]
    index = range(1 - FIRST_ROW, len(records) + 1 - FIRST_ROW)
    return pd.DataFrame(cells, index=index, dtype=str).fillna("")


# ---- the answers in an item ---------------------------------------------------------------------


def _carriers(record: Record) -> list[str]:
    """The keys of an item below which there are answers; none for a row of one rater."""
    if any(_person(record.get(name)) for name in _SURELY_WHO):
        return []
    return [key for key, value in record.items() if _carries(key, value, record)]


def _carries(key: str, value: object, record: Record) -> bool:
    is_called_so = bool(_ANSWERS.fullmatch(key))
    if isinstance(value, list) and (records := objects(value)):
        names_raters = all(any(_person(part.get(name)) for name in _WHO) for part in records)
        return len(records) == len(value) and (names_raters or is_called_so)
    if isinstance(value, list):
        is_list = pattern("json", "list").search(key)
        return bool(is_called_so and is_list and not _NAMES.fullmatch(key))
    return is_called_so and (isinstance(value, dict) or bool(_parallel(key, value, record)))


def _parallel(key: str, value: object, record: Record) -> dict[str, str]:
    """Labels by rater, where a key beside it has as many raters as this one has labels."""
    labels = _split(value)
    for name in record:
        if name != key and _NAMES.fullmatch(name):
            raters = _split(record[name])
            able = len(labels) > 1 or isinstance(value, list)
            if able and len(raters) == len(labels) == len({*raters}):
                return dict(zip(raters, labels, strict=True))
    return {}


def _split(value: object) -> list[str]:
    if isinstance(value, list):
        return [one_line(part) for part in value]
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else []


def _answers(given: _Answer) -> Iterator[_Answer]:
    """Yield the answers below a key. Raises InputError for what is no answer."""
    value = given.value
    if value is None or isinstance(value, (str, bool)):
        if not given.rater:
            raise given.fault
        yield given
    elif isinstance(value, list):
        yield from _listed(given)
    elif given.path.count(".") > _MOST_KEYS:
        raise replace(given, path=f"{given.path[:_QUOTED]}...").fault
    elif isinstance(value, dict) and any(text in value for text in _WHAT):
        yield from _record(given)
    elif isinstance(value, dict):
        for name, inner in value.items():
            below = given.below(name, inner)
            if given.rater:
                yield from _answers(below.on(name))
            elif _names_rater(name, inner):
                yield from _answers(replace(below, rater=one_line(name)))
            else:
                # An answer to a question; beside its answers there may be their mean or majority.
                asked = below.on(name)
                of_raters = [
                    replace(asked.below(key, answers), key=key)
                    for key, answers in fields_in(inner).items()
                    if isinstance(answers, (dict, list)) and _ANSWERS.fullmatch(key)
                ]
                for answer in of_raters or [asked]:
                    yield from _answers(answer)
    else:
        raise given.fault


def _names_rater(name: str, inner: object) -> bool:
    """Return True if a key is a rater's name by its own look, or by what is below it."""
    if pattern("json", "person").fullmatch(name) or plain_kind(name):
        return True
    if isinstance(inner, dict):
        return any(text in inner for text in _WHAT)
    return not isinstance(inner, list)


def _listed(given: _Answer) -> Iterator[_Answer]:
    """Yield the answers of a list: objects that name raters, or labels in the order of raters."""
    value = given.value
    if given.rater and not any(isinstance(part, (dict, list)) for part in value):
        yield replace(given, value=value[0] if len(value) == 1 else value)
        return
    words = re.split(r"[ _-]", given.key.lower())
    stems = [word for word in words if re.fullmatch(f"{_PEOPLE}|{_MACHINES}", word)]
    stem = next((word.rstrip("s") for word in stems if word != "individual"), "annotator")
    for number, part in enumerate(value, start=1):
        path, rater = f"{given.path}[{number - 1}]", given.rater or f"{stem}_{number}"
        answer_given = replace(given, path=path, value=part, rater=rater)
        if isinstance(part, dict):
            placed = not given.rater and not any(_person(part.get(name)) for name in _WHO)
            for answer in _record(answer_given):
                yield replace(answer, placed=placed)
        elif isinstance(part, (str, bool)) or part is None:
            yield replace(answer_given, placed=True)
        else:
            raise answer_given.fault


def _record(given: _Answer) -> Iterator[_Answer]:
    """Yield the answers of an object of one rater: its label, or its numbers by question."""
    value = given.value
    who = next((name for name in _WHO if _person(value.get(name))), "")
    what = next((name for name in _WHAT if name in value), "")
    asked = next((name for name in _JSON["asked"] if text_of(value.get(name))), "")
    given = replace(
        given,
        rater=_person(value.get(who)) or given.rater,
        rubric=text_of(value.get(asked)) or given.rubric,
        time=next((value[name] for name in _WHEN if text_of(value.get(name))), given.time),
    )
    if not given.rater:
        raise given.fault
    if what:
        yield from _answers(given.below(what, value[what]))
        return
    for name, label in value.items():
        number = isinstance(label, bool) or (isinstance(label, str) and type(label) is not str)
        if number and name not in (who, asked, *_WHEN) and not names_items(name):
            yield replace(given.on(name), value=label)


def _person(value: object) -> str:
    """The name of a rater: a text or a number, or an object with one."""
    if isinstance(value, dict):
        names = ("email", "name", "username", "id")
        value = next((value[name] for name in names if name in value), "")
    name_of_rater = one_line(value)
    return name_of_rater if len(name_of_rater) <= LONGEST_LABEL else ""


def _kind(rater: str, key: str) -> str:
    """The kind of a rater by name, or by the key above the answers; "" where neither shows it."""
    if kind := plain_kind(rater):
        return kind
    if pattern("json", "machine").search(key):
        return "model"
    is_person = pattern("json", "person").fullmatch(rater)
    return "human" if is_person or re.fullmatch(f"({_PEOPLE})_\\d+", rater) else ""


READERS = {
    "excel": Reader(_is_excel, _read_excel, _excel_items),
    "chat": Reader(_is_chat, lambda rows, source: None, _chat_items),
    "json": Reader(_is_json, _read_json, _json_items),
}
