"""OpenInference spans, as Phoenix gives them (its table of spans, its REST API) and as
OpenTelemetry writes them down, an object for each span; and Phoenix's annotations of spans, by
themselves, with the spans, or as columns `eval.NAME.label` beside them.

https://arize-ai.github.io/openinference/spec/semantic_conventions.html
"""

from __future__ import annotations

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows, claimed
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
from evenhand.exchange.readers.texts import EXPECTED, messages_in, opened
from evenhand.texts import written

_PREFIX = "attributes."
_OWN = (
    "id", "name", "kind", "span_kind", "context", "parent_id", "start_time", "end_time", "status",
    "status_code", "status_message", "events", "links", "attributes", "resource", "annotations",
    "trace_id", "span_id",
)  # fmt: skip
_PAGES = ("data", "spans")
_EVAL = ("eval.", ".label", ".score")
"""Before and after the name of an evaluation that became a column."""
_KINDS = {"HUMAN": "human", "LLM": "model"}
_FRAMES = (_PREFIX, "context.", _EVAL[0], "__index_level_")
"""Beginnings of the names of Phoenix's own columns, and of pandas'."""


def recognises(source: Source) -> bool:
    return _is_annotation(_first(source)) or _is_span(_first(source))


def read(source: Source) -> Export:
    """A span is a unit, an annotation's name a rubric. A person is named by the user's id or else
    by the annotation's identifier, a model by its name in the metadata or the identifier.
    """
    rows = Rows(source)
    for record in _records(source):
        found = [record] if _is_annotation(record) else objects(opened(record.get("annotations")))
        span = text_of(_at(record, "context.span_id"))
        for each in found:
            _add_annotation(rows, each, span)
        for name, label in _columns(record).items():
            rows.add(_hexadecimal(span), name, "model", label, name)
    return rows.export(written("exchange.phoenix"))


def _add_annotation(rows: Rows, record: Record, span: str) -> None:
    kind = text_of(record.get("annotator_kind")).upper()
    if kind == "CODE":
        rows.leave_out(written("left_out.by_code"))
        return
    metadata = opened(record.get("metadata"))
    claim = claimed(metadata)
    claim.pop("rubric", None)
    named = [record.get("user_id"), record.get("identifier"), kind]
    if kind == "LLM":
        named.insert(0, inside(metadata, "model"))
    label = _at(record, "result.label")
    rows.add(
        _hexadecimal(record.get("span_id") or span),
        claim.pop("rater_id", "") or name_of(*named),
        claim.pop("rater_kind", _KINDS.get(kind, "")),
        _at(record, "result.score") if label in (None, "") else label,
        name_of(record.get("annotation_name"), record.get("name")),
        created_at=record.get("updated_at") or record.get("created_at"),
        **claim,
    )


def items(source: Source) -> ItemTable | None:
    """The uppermost span of a trace that has an output is an item; those of one session, or else of
    one trace, belong together. An evaluation that is no person's gives a column.
    """
    first = _first(source)
    if _is_annotation(first):
        raise InputError(
            f"{source.name} holds annotations of Phoenix without what they are about; export the "
            "spans, which have input and output"
        )
    if not _is_span(first):
        return None
    rows = ItemRows(source)
    add_traces(rows, map(_span, _records(source)))
    return rows.items(written("exchange.openinference_items"), "session")


def _first(source: Source) -> Record:
    """The first span or annotation; of a typed table the names of its columns."""
    columns = columns_of(source)
    return dict.fromkeys(columns, "") or next(iter(_spans([source.first])), {})


def _records(source: Source) -> list[Record]:
    """All spans or annotations."""
    columns = columns_of(source)
    return _spans(records_of(source, columns) if columns else source.records())


def _is_annotation(record: Record) -> bool:
    known = {"annotator_kind"} <= record.keys() and ("result" in record or "result.label" in record)
    return known and ("span_id" in record or "context.span_id" in record)


def _is_span(record: Record) -> bool:
    return _at(record, "context.span_id") is not None and any(
        name == "attributes" or name.startswith(_PREFIX) for name in record
    )


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
        expected=next((record[name] for name in EXPECTED if record.get(name)), None),
        about=_beside(record) | (about if isinstance(about, dict) else {}) | _evaluations(record),
    )


def _beside(record: Record) -> Record:
    """The columns that somebody put beside those of Phoenix's table."""
    return {
        name: each
        for name, each in record.items()
        if name not in (*_OWN, *EXPECTED) and not name.startswith(_FRAMES)
    }


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


def _columns(record: Record) -> Record:
    """Evaluations that became columns, by name: the label, or else the score."""
    start, *ends = _EVAL
    return {
        name[len(start) : -len(end)]: each
        for end in reversed(ends)
        for name, each in record.items()
        if name.startswith(start) and name.endswith(end) and each not in (None, "")
    }


def _evaluations(record: Record) -> Record:
    """Labels that a model or code gave a span, by name."""
    found = _columns(record)
    for each in objects(record.get("annotations")):
        if text_of(each.get("annotator_kind")) not in ("", "HUMAN"):
            label, score = inside(each, "result", "label"), inside(each, "result", "score")
            found[text_of(each.get("name"))] = label if label not in (None, "") else score
    return found
