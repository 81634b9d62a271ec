"""Langfuse's scores. With langfuse < 4 a page as its server gives it up to version 3, and the same
as exported to blob storage (by hand; docs: blob storage export fields); with a later one a page of
version 3 of its API.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.exports.contents import (
    ANSWERED_BY,
    ANSWERS,
    DOCUMENTS,
    GRADER,
    JUDGED,
    QUESTIONS,
    labels,
    write_json,
    write_lines,
)

STAMP = "2026-11-01T12:00:00+00:00"


def make(out: Path) -> None:
    scores = _scores()
    try:
        from langfuse.api import GetScoresResponse
    except ImportError:
        _write_page_v3(scores, out / "langfuse_v3.json")
        return
    from langfuse.api import TraceWithFullDetails

    traces = [TraceWithFullDetails.parse_obj(each).json(by_alias=True) for each in _traces()]
    write_json(out / "items" / "langfuse_traces.json", list(map(json.loads, traces)))
    page = GetScoresResponse.parse_obj(_page(scores))
    write_json(out / "langfuse.json", json.loads(page.json(by_alias=True)))
    write_lines(out / "langfuse_blob.jsonl", map(_flat, scores))


def _write_page_v3(scores: list[dict[str, Any]], path: Path) -> None:
    from langfuse.api.scores import GetScoresV3Response

    for own in scores:
        own |= {"project_id": "p", "subject": {"kind": "trace", "id": own.pop("traceId")}}
        own |= {"value": own.pop("stringValue"), "data_type": own.pop("dataType")}
        own |= {"created_at": own.pop("createdAt"), "updated_at": own.pop("updatedAt")}
        own["author_user_id"] = own.pop("authorUserId")
    page = GetScoresV3Response.model_validate(_page(scores))
    write_json(path, page.dict(exclude_none=True))


def _page(scores: list[dict[str, Any]]) -> dict[str, Any]:
    meta = {"page": 1, "limit": 50, "totalItems": len(scores), "totalPages": 1}
    return {"meta": meta, "data": scores}


def _scores() -> list[dict[str, Any]]:
    said = []
    for unit, a, b, g in labels():
        said.append((unit, "ANNOTATION", "ann", a, "CATEGORICAL"))
        said.append((unit, "ANNOTATION", "ben", b, "CATEGORICAL"))
        said.append((unit, "EVAL", GRADER, g, "CATEGORICAL"))
    said.append(("u1", "ANNOTATION", "ann", "please look at this again", "TEXT"))
    return [_score(number, *each) for number, each in enumerate(said)]


def _score(number: int, unit: str, source: str, who: str, label: str, kind: str) -> dict[str, Any]:
    return {
        "id": f"s{number}", "traceId": f"trace-{unit}", "name": "fair", "source": source,
        "observationId": None, "sessionId": None, "datasetRunId": None,
        "timestamp": STAMP, "createdAt": STAMP, "updatedAt": STAMP,
        "authorUserId": who if source == "ANNOTATION" else None, "comment": None,
        "metadata": {"model": who} if source == "EVAL" else {}, "configId": None,
        "queueId": None, "environment": "default", "dataType": kind,
        "value": float(label == "yes"), "stringValue": label,
    }  # fmt: skip


def _flat(score: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": score["id"],
        "timestamp": "2026-11-01 12:00:00.000000",
        "project_id": "p",
        "environment": "default",
        "trace_id": score["traceId"],
        "observation_id": None,
        "session_id": None,
        "dataset_run_id": None,
        "name": "fair",
        "value": score["value"],
        "source": score["source"],
        "comment": None,
        "data_type": score["dataType"],
        "string_value": score["stringValue"],
        "author_user_id": score["authorUserId"],
        "evaluator_id": "fair-check" if score["source"] == "EVAL" else None,
    }


def _traces() -> list[dict[str, Any]]:
    """Return four traces with all details: a retriever, a generation, and two scores of each."""
    return [
        _trace(number, *each)
        for number, each in enumerate(zip(QUESTIONS, ANSWERS, JUDGED, strict=True), 1)
    ]


def _trace(number: int, question: str, answer: str, judged: str) -> dict[str, Any]:
    trace = f"trace-q{number}"
    message = {"role": "user", "content": question}
    reply = {"role": "assistant", "content": answer}
    documents = [{"pageContent": text, "metadata": {}} for text in DOCUMENTS]
    said = [(0, trace[6:], "EVAL", GRADER, judged), (1, trace[6:], "ANNOTATION", "ann", "yes")]
    scores = [_score(*each, "CATEGORICAL") for each in said]
    return {
        "id": trace, "timestamp": STAMP, "name": "rag", "input": {"question": question},
        "output": answer, "sessionId": None, "release": None, "version": None, "userId": None,
        "metadata": {"topic": "office"}, "tags": [], "public": False, "environment": "default",
        "htmlPath": f"/project/p/traces/{trace}", "latency": 1.0, "totalCost": 0.0,
        "scores": scores,
        "observations": [
            _observation(trace, "find", "RETRIEVER", {"query": question}, documents, None),
            _observation(trace, "ask", "GENERATION", [message], reply, ANSWERED_BY),
        ],
    }  # fmt: skip


def _observation(
    trace: str, name: str, kind: str, given: object, made: object, model: str | None
) -> dict[str, Any]:
    zero = {"input": 0, "output": 0, "total": 0, "unit": "TOKENS"}
    return {
        "id": f"{trace}-{name}", "traceId": trace, "type": kind, "name": name, "startTime": STAMP,
        "endTime": STAMP, "input": given, "output": made, "model": model, "metadata": {},
        "modelParameters": {}, "level": "DEFAULT", "environment": "default", "usage": zero,
        "usageDetails": {}, "costDetails": {}, "parentObservationId": None, "latency": 1.0,
    }  # fmt: skip
