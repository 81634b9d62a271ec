"""Braintrust: the rows of an experiment or of logs, as its page, its API and `fetch` give them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.exchange.readers.spans import name_of
from evenhand.exchange.readers.texts import opened, texts_of
from evenhand.texts import written

_ROW = {"root_span_id", "scores"}
_PAGES = ("data", "events", "rows")


def recognises(source: Source) -> bool:
    return next(iter(_rows([source.first])), {}).keys() >= _ROW


def read(source: Source) -> Export:
    """A row is a unit, and each score a rater of the same question: Braintrust gives a score one
    name, and not who gave it. What its log of changes has from the page is a person's; a scorer
    whose span asked a model is a model, and one that asked none is code, which is left out.
    """
    rows = Rows(source)
    records = _rows(source.records())
    kinds = _scorers(records)
    for record in filter(_is_root, records):
        people = _reviewed(record)
        scores = record.get("scores")
        for name, value in scores.items() if isinstance(scores, dict) else ():
            kind = "human" if name in people else kinds.get(name, "")
            if kind == "code":
                rows.leave_out(written("left_out.by_code"))
            else:
                rows.add(_unit(record), name, kind, value, created_at=record.get("created"))
        rows.describe(_unit(record), opened(record.get("metadata")))
    return replace(rows.export(written("exchange.braintrust")), by_score=True)


def items(source: Source) -> ItemTable | None:
    """A row with an output is an item."""
    if not recognises(source):
        return None
    rows = ItemRows(source)
    for record in filter(_is_root, _rows(source.records())):
        given, made = opened(record.get("input")), opened(record.get("output"))
        metadata = opened(record.get("metadata"))
        rows.add(
            _unit(record),
            texts_of(given, made, expected=opened(record.get("expected"))),
            subject=name_of(inside(metadata, "model")),
            ids={"span_id": record.get("span_id")},
            about=metadata,
        )
    return rows.items(written("exchange.braintrust_items"))


def _rows(records: list[Record]) -> list[Record]:
    """The rows of a file, also of pages that hold them."""
    found = []
    for record in records:
        inner = next((record[name] for name in _PAGES if isinstance(record.get(name), list)), None)
        found += [record] if inner is None or "root_span_id" in record else objects(inner)
    return found


def _unit(record: Record) -> str:
    return name_of(record.get("id"), record.get("span_id"))


def _is_root(record: Record) -> bool:
    return record.get("is_root") is True or text_of(record.get("span_id")) == text_of(
        record.get("root_span_id")
    )


def _reviewed(record: Record) -> set[str]:
    """The scores that came from the page: a person reviewed the row."""
    changes = record.get("audit_data")
    paths = [
        inside(each, "audit_data", "path")
        for each in objects(changes)
        if each.get("source") == "app"
    ]
    return {text_of(path[1]) for path in paths if isinstance(path, list) and len(path) > 1}


def _scorers(records: list[Record]) -> dict[str, str]:
    """The kind of each scorer that has a span: model, if a model was asked below it, else code."""
    below: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        parents = record.get("span_parents")
        for parent in parents if isinstance(parents, list) else ():
            below[text_of(parent)].append(record)
    kinds: dict[str, str] = {}
    for record in records:
        scores = record.get("scores")
        if inside(record, "span_attributes", "type") != "score" or not isinstance(scores, dict):
            continue
        asks = _asks(text_of(record.get("span_id")), below)
        for name in scores:
            kinds[name] = "model" if asks or kinds.get(name) == "model" else "code"
    return kinds


def _asks(span: str, below: dict[str, list[Record]]) -> bool:
    """Return True if a span below this one asked a model."""
    found, seen = [span], {span}
    for each in found:
        for own in below.get(each, ()):
            if inside(own, "span_attributes", "type") == "llm":
                return True
            name = text_of(own.get("span_id"))
            found += [name] if name not in seen else []
            seen.add(name)
    return False
