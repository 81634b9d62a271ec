"""MLflow: traces with assessments, as `Trace.to_dict` or `mlflow.search_traces` has them; the table
of the latter as JSON, CSV or Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from evenhand.exchange.readers.texts import EXPECTED, opened
from evenhand.texts import written

_NAMED = ("rater_id", "rater_kind", "rubric", "unscored_reason")
_IDS = {"trace_id", "request_id"}
_KINDS = {"HUMAN": "human", "LLM_JUDGE": "model", "AI_JUDGE": "model"}


def recognises(source: Source) -> bool:
    if columns := columns_of(source):
        return "assessments" in columns and not _IDS.isdisjoint(columns)
    if {"assessment_name", "source"} <= source.first.keys():
        return True
    first = _traces([source.first])
    return bool(first) and any(
        isinstance(inside(trace, *path, "assessments"), list) for trace in first for path in _PLACES
    )


def read(source: Source) -> Export:
    """A trace or span is a unit, an assessment's name a rubric, its source a rater."""
    rows = Rows(source)
    columns = [name for name in columns_of(source) if name in (*_IDS, "assessments")]
    records = records_of(source, columns) if columns else _traces(source.records())
    for trace in records:
        if "assessment_name" in trace:
            _add(rows, text_of(trace.get("trace_id")), trace)
            continue
        info = trace["info"] if isinstance(trace.get("info"), dict) else trace
        unit = text_of(info.get("trace_id") or info.get("request_id"))
        for assessment in objects(info.get("assessments")):
            _add(rows, unit, assessment)
    return rows.export(written("exchange.mlflow"))


def items(source: Source) -> ItemTable | None:
    """A trace is an item, an expectation that it holds the reference; traces of one session belong
    together.
    """
    columns = columns_of(source)
    first = [dict.fromkeys(columns, "")] if columns else _traces([source.first])
    if not any(map(_has_texts, first)):
        if recognises(source):
            raise InputError(
                f"{source.name} holds assessments of MLflow without what they are about; write "
                "down the traces, as mlflow.search_traces() or Trace.to_dict() has them"
            )
        return None
    wanted = [name for name in columns if name in (*_IDS, *_TABLE)]
    records = records_of(source, wanted) if columns else _traces(source.records())
    rows = ItemRows(source)
    for trace in records:
        add_traces(rows, _spans(trace))
    return rows.items(written("exchange.mlflow_items"), "session")


_TABLE = ("request", "response", "spans", "assessments", "trace_metadata", "tags")


def _has_texts(trace: Record) -> bool:
    if isinstance(inside(trace, "data", "spans"), list):
        return isinstance(trace.get("info"), dict)
    return not _IDS.isdisjoint(trace) and {"request", "response", "spans"} <= trace.keys()


def _spans(trace: Record) -> Iterator[Span]:
    """The trace's spans; of one whose spans are not in the file a single one."""
    info = trace["info"] if isinstance(trace.get("info"), dict) else trace
    unit = text_of(info.get("trace_id") or info.get("request_id"))
    expected = [
        inside(each, "expectation", "value")
        for each in objects(info.get("assessments"))
        if text_of(each.get("assessment_name") or each.get("name")) in EXPECTED
    ]
    session = inside(info, "trace_metadata", "mlflow.trace.session")
    ids, about = {"trace_id": unit}, info.get("tags")
    tags = about if isinstance(about, dict) else {}
    own = {name: each for name, each in tags.items() if "." not in name}
    spans = objects(inside(trace, "data", "spans") or opened(trace.get("spans")))
    whole: Record = {"name": "", "attributes": {}, "inputs": trace.get("request")}
    for span in spans or [whole | {"outputs": trace.get("response")}]:
        attributes = span.get("attributes")
        said = attributes if isinstance(attributes, dict) else {}
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
            ids=ids,
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
            claim.get("rater_kind", _KINDS.get(kind, "")),
            inside(assessment, "feedback", "value"),
            text_of(assessment.get("assessment_name") or assessment.get("name")),
            created_at=assessment.get("last_update_time") or assessment.get("create_time"),
            **{name: claim[name] for name in claim if name not in _NAMED},
            unscored_reason=error,
        )
