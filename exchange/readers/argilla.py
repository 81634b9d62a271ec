"""Argilla: records as `Dataset.records.to_json`, `.to_disk` and `.to_datasets` write them."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemRows, ItemTable, own_fields
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import MOST_BYTES, Record, Source, inside, objects, text_of
from evenhand.texts import written

_RESPONSES, _SUGGESTION = ".responses", ".suggestion"
_NO_AGENT = "suggestion"
_OWN = ("id", "status", "_server_id")


def recognises(source: Source) -> bool:
    if source.path.is_dir():
        return _records_file(source.path).is_file()
    return {"fields", "responses", "suggestions"} <= source.first.keys()


def read(source: Source) -> Export:
    """A record is a unit, a question a rubric, a response is by a person, a suggestion by a model
    (its agent). Only submitted responses count.
    """
    rows = Rows(source)
    drafts_known = True
    for record in _records(source):
        unit = _unit(record)
        rows.describe(unit, record.get("metadata"))
        for question, response in _responses(record):
            drafts_known &= "status" in response
            _add_response(rows, unit, question, response)
        for question, suggestion in _suggestions(record):
            _add_suggestion(rows, unit, question, suggestion)
    taken = written("exchange.argilla")
    return rows.export(taken if drafts_known else f"{taken} {written('exchange.argilla_drafts')}")


def items(source: Source) -> ItemTable | None:
    """A record is an item, and raters read all of its fields."""
    if not recognises(source):
        return None
    rows = ItemRows(source, fields=True)
    shown: dict[str, None] = {}
    for record in _records(source):
        fields = own_fields(record.get("fields"))
        shown |= dict.fromkeys(fields)
        rows.add(_unit(record), fields, about=record.get("metadata"))
    return rows.items(written("exchange.argilla_items"), show=list(shown))


def _records(source: Source) -> list[Record]:
    inner = Source(_records_file(source.path)) if source.path.is_dir() else source
    if inner.path.stat().st_size > MOST_BYTES:
        raise InputError(f"{source.name} is too large; export fewer records")
    return inner.records()


def _unit(record: Record) -> object:
    return record.get("id") or record.get("external_id") or record.get("_server_id")


def _records_file(folder: Path) -> Path:
    return folder / "records.json"


def _responses(record: Record) -> list[tuple[str, Record]]:
    """List each response with its question. In Argilla 1 a record holds a list of them."""
    given = record.get("responses")
    if isinstance(given, dict):
        return [(name, each) for name, own in given.items() for each in objects(own)]
    return [
        (name, {**response, "value": inside(value, "value")})
        for response in objects(given)
        if isinstance(response.get("values"), dict)
        for name, value in response["values"].items()
    ]


def _suggestions(record: Record) -> list[tuple[str, Record]]:
    given = record.get("suggestions")
    if isinstance(given, dict):
        return [(name, each) for name, each in given.items() if isinstance(each, dict)]
    return [(text_of(each.get("question_name")), each) for each in objects(given)]


def _add_response(rows: Rows, unit: object, question: str, response: Record) -> None:
    status = text_of(response.get("status")) or "submitted"
    if status == "draft":
        rows.leave_out(written("left_out.drafts"))
    elif status != "submitted":
        rows.leave_out(written("left_out.discarded"))
    else:
        rows.add(unit, response.get("user_id"), "human", _value(response.get("value")), question)


def _add_suggestion(rows: Rows, unit: object, question: str, suggestion: Record) -> None:
    if suggestion.get("value") is not None:
        agent = text_of(suggestion.get("agent")) or _NO_AGENT
        rows.add(unit, agent, "model", _value(suggestion.get("value")), question)


def _value(value: object) -> object:
    """The one label of a list."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def items_of_dataset(source: Source, records: list[dict[str, Any]]) -> ItemTable:
    """Read items from the columns that `to_datasets` makes; which of them are fields and which are
    metadata is not said there.
    """
    rows = ItemRows(source, fields=True)
    for record in records:
        known = {name: value for name, value in record.items() if "." not in name}
        rows.add(record.get("id"), own_fields({n: known[n] for n in known if n not in _OWN}))
    return rows.items(written("exchange.argilla_items"))


# ---- as a dataset of Hugging Face ---------------------------------------------------------------


def questions_in(columns: list[str]) -> list[str]:
    """The questions that the columns of a dataset by Argilla are about; none in any other."""
    return [
        name.removesuffix(_RESPONSES)
        for name in columns
        if name.endswith(_RESPONSES) and f"{name}.users" in columns
    ]


def rows_of_dataset(source: Source, records: list[dict[str, Any]], questions: list[str]) -> Export:
    """Read records from the columns that `to_datasets` makes, such as `fair.responses.users`."""
    rows = Rows(source)
    for record in records:
        unit = record.get("id")
        known = {name: value for name, value in record.items() if "." not in name}
        rows.describe(unit, {name: known[name] for name in known if name not in _OWN})
        for question in questions:
            parts = [
                record.get(f"{question}{_RESPONSES}{end}") for end in ("", ".users", ".status")
            ]
            for value, user, status in zip_longest(*(part or [] for part in parts)):
                said = {"value": value, "user_id": user, "status": status}
                _add_response(rows, unit, question, said)
            about = f"{question}{_SUGGESTION}"
            suggestion = {"value": record.get(about), "agent": record.get(f"{about}.agent")}
            _add_suggestion(rows, unit, question, suggestion)
    return rows.export(written("exchange.argilla"))
