"""Exports of tools with OpenTelemetry's traces: MLflow, and OpenInference as Phoenix has it."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.errors import InputError
from evenhand.exchange.readers.rows import Export, ItemRows, ItemTable, Reader, Rows, claimed
from evenhand.exchange.readers.source import Record, Source, fields_in, inside, objects, text_of
from evenhand.exchange.readers.texts import EXPECTED, messages_in, opened
from evenhand.exchange.readers.traces import Span, add_traces, name_of
from evenhand.texts import written

# ---- MLflow -------------------------------------------------------------------------------------
# Traces with assessments, as `Trace.to_dict` or `mlflow.search_traces` has them; the table of the
# latter as JSON, CSV or Parquet.
_NAMED = ("rater_id", "rater_kind", "rubric", "unscored_reason")
_IDS = {"trace_id", "request_id"}
_MLFLOW_KINDS = {"HUMAN": "human", "LLM_JUDGE": "model", "AI_JUDGE": "model"}


def _is_mlflow(source: Source) -> bool:
    if columns := source.columns:
        return "assessments" in columns and not _IDS.isdisjoint(columns)
    if {"assessment_name", "source"} <= source.first.keys():
        return True
    first = _traces([source.first])
    return bool(first) and any(
        isinstance(inside(trace, *path, "assessments"), list) for trace in first for path in _PLACES
    )


def _read_mlflow(source: Source) -> Export:
    """A trace or span is a unit, an assessment's name a rubric, its source a rater."""
    rows = Rows(source)
    columns = [name for name in source.columns if name in (*_IDS, "assessments")]
    for trace in _traces(source.records(columns)):
        if "assessment_name" in trace:
            _add(rows, text_of(trace.get("trace_id")), trace)
            continue
        info = trace["info"] if isinstance(trace.get("info"), dict) else trace
        unit = text_of(info.get("trace_id") or info.get("request_id"))
        for assessment in objects(info.get("assessments")):
            _add(rows, unit, assessment)
    return rows.export(written("exchange.mlflow"))


def _mlflow_items(source: Source) -> ItemTable | None:
    """A trace is an item, an expectation that it holds the reference; traces of one session belong
    together.
    """
    columns = source.columns
    first = [dict.fromkeys(columns, "")] if columns else _traces([source.first])
    if not any(map(_has_texts, first)):
        if _is_mlflow(source):
            raise InputError(
                f"{source.name} holds assessments of MLflow without what they are about; write "
                "down the traces, as mlflow.search_traces() or Trace.to_dict() has them"
            )
        return None
    rows = ItemRows(source)
    for trace in _traces(source.records([name for name in columns if name not in _UNUSED])):
        add_traces(rows, _mlflow_spans(trace))
    return rows.items(written("exchange.mlflow_items"), "session")


_UNUSED = (
    "trace", "client_request_id", "request_time", "timestamp_ms", "request_metadata",
    "execution_duration", "execution_time_ms", "state", "status", "experiment_id",
)  # fmt: skip
"""Columns of `search_traces` that say nothing of what is rated."""
_USED = (
    *_IDS, "info", "data", "request", "response", "spans", "assessments", "trace_metadata", "tags"
)  # fmt: skip


def _has_texts(trace: Record) -> bool:
    if isinstance(inside(trace, "data", "spans"), list):
        return isinstance(trace.get("info"), dict)
    return not _IDS.isdisjoint(trace) and {"request", "response", "spans"} <= trace.keys()


def _mlflow_spans(trace: Record) -> Iterator[Span]:
    """The trace's spans; of one whose spans are not in the file a single one."""
    info = trace["info"] if isinstance(trace.get("info"), dict) else trace
    unit = text_of(info.get("trace_id") or info.get("request_id"))
    expected = [
        inside(each, "expectation", "value")
        for each in objects(info.get("assessments"))
        if text_of(each.get("assessment_name") or each.get("name")) in EXPECTED
    ]
    session = inside(info, "trace_metadata", "mlflow.trace.session")
    tags = fields_in(info.get("tags"))
    beside = {name: each for name, each in trace.items() if name not in (*_USED, *_UNUSED)}
    own = beside | {name: each for name, each in tags.items() if "." not in name}
    spans = objects(inside(trace, "data", "spans") or opened(trace.get("spans")))
    whole: Record = {"name": "", "attributes": {}, "inputs": trace.get("request")}
    for span in spans or [whole | {"outputs": trace.get("response")}]:
        said = fields_in(span.get("attributes"))
        given, made, kind, model = (
            opened(said.get(f"mlflow.{name}"))
            for name in ("spanInputs", "spanOutputs", "spanType", "llm.model")
        )
        parent = name_of(span.get("parent_span_id"), span.get("parent_id"))
        yield Span(
            id=name_of(span.get("span_id")),
            trace=unit,
            parent=parent,
            inner=bool(parent),
            kind=text_of(kind),
            given=given if given is not None else opened(span.get("inputs")),
            made=made if made is not None else opened(span.get("outputs")),
            unit=unit,
            item_id=unit,
            ids={"trace_id": unit},
            model=name_of(model, inside(made, "model"), inside(given, "model")),
            expected=next(filter(None, expected), None),
            cluster=text_of(session),
            about=own,
        )


_PLACES: tuple[tuple[str, ...], ...] = (("info",), ())


def _traces(records: list[Record]) -> list[Record]:
    """The traces of a file; of one that wraps them in `traces` as well."""
    return [
        trace
        for record in records
        for trace in (objects(record["traces"]) if "traces" in record else [record])
    ]


def _add(rows: Rows, trace: str, assessment: Record) -> None:
    kind = text_of(inside(assessment, "source", "source_type"))
    if assessment.get("valid") is False:
        rows.leave_out(written("left_out.invalid"))
    elif kind == "CODE" and not claimed(assessment.get("metadata")):
        rows.leave_out(written("left_out.by_code"))
    elif not isinstance(assessment.get("feedback"), dict):
        rows.leave_out(written("left_out.expectations"))
    else:
        span = text_of(assessment.get("span_id"))
        error = inside(assessment, "feedback", "error")
        claim = claimed(assessment.get("metadata"))
        error = inside(error, "error_code") if isinstance(error, dict) else error
        rows.add(
            f"{trace}/{span}" if span else trace,
            inside(assessment, "source", "source_id"),
            claim.get("rater_kind", _MLFLOW_KINDS.get(kind, "")),
            inside(assessment, "feedback", "value"),
            text_of(assessment.get("assessment_name") or assessment.get("name")),
            created_at=assessment.get("last_update_time") or assessment.get("create_time"),
            **{name: claim[name] for name in claim if name not in _NAMED},
            unscored_reason=error,
        )


# ---- OpenInference ------------------------------------------------------------------------------
# Spans as Phoenix gives them (its table of spans, its REST API) and as OpenTelemetry writes them
# down, an object for each span; and Phoenix's annotations of spans, by themselves, with the spans,
# or as columns `eval.NAME.label` beside them.
# https://arize-ai.github.io/openinference/spec/semantic_conventions.html
_PREFIX = "attributes."
_OWN = (
    "id", "name", "kind", "span_kind", "context", "parent_id", "start_time", "end_time", "status",
    "status_code", "status_message", "events", "links", "attributes", "resource", "annotations",
    "trace_id", "span_id",
)  # fmt: skip
_PAGES = ("data", "spans")
_EVAL = ("eval.", ".label", ".score")
"""Before and after the name of an evaluation that became a column."""
_PHOENIX_KINDS = {"HUMAN": "human", "LLM": "model"}
_FRAMES = (_PREFIX, "context.", _EVAL[0], "__index_level_")
"""Beginnings of the names of Phoenix's own columns, and of pandas'."""


def _is_phoenix(source: Source) -> bool:
    return _is_annotation(_first(source)) or _is_span(_first(source))


def _read_phoenix(source: Source) -> Export:
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
        claim.pop("rater_kind", _PHOENIX_KINDS.get(kind, "")),
        _at(record, "result.score") if label in (None, "") else label,
        name_of(record.get("annotation_name"), record.get("name")),
        created_at=record.get("updated_at") or record.get("created_at"),
        **claim,
    )


def _phoenix_items(source: Source) -> ItemTable | None:
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
    return rows.items(written("exchange.phoenix_items"), "session")


def _first(source: Source) -> Record:
    """The first span or annotation; of a typed table the names of its columns."""
    return dict.fromkeys(source.columns, "") or next(iter(_phoenix_spans([source.first])), {})


def _records(source: Source) -> list[Record]:
    """All spans or annotations."""
    return _phoenix_spans(source.records(source.columns))


def _is_annotation(record: Record) -> bool:
    known = {"annotator_kind"} <= record.keys() and ("result" in record or "result.label" in record)
    return known and ("span_id" in record or "context.span_id" in record)


def _is_span(record: Record) -> bool:
    return _at(record, "context.span_id") is not None and any(
        name == "attributes" or name.startswith(_PREFIX) for name in record
    )


def _phoenix_spans(records: list[Record]) -> list[Record]:
    """The spans of a file, also of pages and of traces that hold them."""
    found = []
    for record in records:
        inner = next((record[name] for name in _PAGES if isinstance(record.get(name), list)), None)
        found += [record] if inner is None else _phoenix_spans(objects(inner))
    return found


def _span(record: Record) -> Span:
    said = fields_in(opened(record.get("attributes")))
    said |= {name[len(_PREFIX) :]: each for name, each in record.items() if _PREFIX in name[:11]}
    given, made = _value(said, "input"), _value(said, "output")
    asked, replied = (_messages(said, f"llm.{name}_messages") for name in ("input", "output"))
    found = _numbered(_at(said, "retrieval.documents"))
    trace, span = (_hexadecimal(_at(record, f"context.{name}_id")) for name in ("trace", "span"))
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
        about=_beside(record) | fields_in(opened(_at(said, "metadata"))) | _evaluations(record),
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


MLFLOW = Reader(_is_mlflow, _read_mlflow, _mlflow_items)
PHOENIX = Reader(_is_phoenix, _read_phoenix, _phoenix_items)
