"""MLflow: traces with assessments, as `Trace.to_dict` or `mlflow.search_traces` has them; the table
of the latter as JSON, CSV or Parquet.
"""

from __future__ import annotations

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
