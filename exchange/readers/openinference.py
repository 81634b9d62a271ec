"""OpenInference spans, as Phoenix gives them (its table of spans, its REST API) and as
OpenTelemetry writes them down, an object for each span.

https://arize-ai.github.io/openinference/spec/semantic_conventions.html
"""

from __future__ import annotations

from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.source import (
    Record,
    Source,
    columns_of,
    inside,
    objects,
    records_of,
    text_of,
)
from evenhand.exchange.readers.spans import Span, add_traces, name_of
from evenhand.exchange.readers.texts import messages_in, opened
from evenhand.texts import written

_PREFIX = "attributes."
_PAGES = ("data", "spans")
_EVAL = ("eval.", ".label")
"""What stands around the name of an evaluation that became a column."""


def items(source: Source) -> ItemTable | None:
    """The uppermost span of a trace that has an output is an item; those of one session, or else of
    one trace, belong together. An evaluation that is no person's gives a column.
    """
    columns = columns_of(source)
    first = dict.fromkeys(columns, "") or next(iter(_spans([source.first])), {})
    if _at(first, "context.span_id") is None or not any(
        name == "attributes" or name.startswith(_PREFIX) for name in first
    ):
        return None
    records = records_of(source, columns) if columns else source.records()
    rows = ItemRows(source)
    add_traces(rows, map(_span, _spans(records)))
    return rows.items(written("exchange.openinference_items"), "session")


def _spans(records: list[Record]) -> list[Record]:
    """The spans of a file, also of pages and of traces that hold them."""
    found = []
    for record in records:
        inner = next((record[name] for name in _PAGES if isinstance(record.get(name), list)), None)
        found += [record] if inner is None else _spans(objects(inner))
    return found


def _span(record: Record) -> Span:
    own = opened(record.get("attributes"))
    said = own if isinstance(own, dict) else {}
    said |= {name[len(_PREFIX) :]: each for name, each in record.items() if _PREFIX in name[:11]}
    given, made = _value(said, "input"), _value(said, "output")
    asked, replied = (_messages(said, f"llm.{name}_messages") for name in ("input", "output"))
    found = _numbered(_at(said, "retrieval.documents"))
    trace, span = (_hexadecimal(_at(record, f"context.{name}_id")) for name in ("trace", "span"))
    about = opened(_at(said, "metadata"))
    return Span(
        id=span,
        trace=trace,
        parent=_hexadecimal(record.get("parent_id")),
        kind=name_of(_at(said, "openinference.span.kind"), record.get("span_kind")),
        given=asked or given,
        made=replied or made,
        documents=[_at(each, "document.content") for each in found],
        unit=span,
        item_id=span,
        ids={"span_id": span, "trace_id": trace},
        model=name_of(_at(said, "llm.model_name")),
        cluster=name_of(_at(said, "session.id"), trace),
        about=(about if isinstance(about, dict) else {}) | _evaluations(record),
    )


def _at(record: object, path: str) -> object:
    """The value at a path of names, each of which may be a key or a part of a longer one."""
    if not isinstance(record, dict):
        return None
    if path in record:
        return record[path]
    parts = path.split(".")
    for count in range(1, len(parts)):
        head, rest = ".".join(parts[:count]), ".".join(parts[count:])
        if (found := _at(record.get(head), rest)) is not None:
            return found
    return {
        name.removeprefix(f"{path}."): each
        for name, each in record.items()
        if name.startswith(f"{path}.")
    } or None


def _numbered(value: object) -> list[Record]:
    """A list, or the parts whose keys begin with their number."""
    value = opened(value)
    if not isinstance(value, dict):
        return objects(value)
    numbers = {name.partition(".")[0] for name in value}
    ordered = sorted((name for name in numbers if name.isdecimal()), key=lambda name: name.zfill(9))
    return [part for name in ordered if isinstance(part := _at(value, name), dict)]


def _messages(said: Record, path: str) -> list[Record] | None:
    messages = []
    for each in _numbered(_at(said, path)):
        parts = [
            text
            for part in _numbered(_at(each, "message.contents"))
            if (text := text_of(_at(part, "message_content.text")))
        ]
        calls = [
            {
                "name": _at(call, "tool_call.function.name"),
                "arguments": _at(call, "tool_call.function.arguments"),
            }
            for call in _numbered(_at(each, "message.tool_calls"))
        ]
        message = {
            "role": _at(each, "message.role"),
            "content": _at(each, "message.content") or "\n".join(parts),
            "name": _at(each, "message.name"),
            "tool_calls": calls,
        }
        messages.append({name: part for name, part in message.items() if part or name == "content"})
    return messages_in(messages)


def _value(said: Record, name: str) -> object:
    value = _at(said, f"{name}.value")
    return opened(value) if "json" in text_of(_at(said, f"{name}.mime_type")) else value


def _hexadecimal(value: object) -> str:
    """An id as Phoenix knows it; OpenTelemetry writes 0x before it."""
    return text_of(value).removeprefix("0x")


def _evaluations(record: Record) -> Record:
    """What a model or code said of a span, by name."""
    start, end = _EVAL
    found = {
        name[len(start) : -len(end)]: each
        for name, each in record.items()
        if name.startswith(start) and name.endswith(end)
    }
    for each in objects(record.get("annotations")):
        if text_of(each.get("annotator_kind")) not in ("", "HUMAN"):
            label, score = inside(each, "result", "label"), inside(each, "result", "score")
            found[text_of(each.get("name"))] = label if label not in (None, "") else score
    return found
