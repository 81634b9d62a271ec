"""Opik's traces, as `search_traces` gives them and as `opik export` writes each to a file: made of
the client's own classes, since its server is several containers.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from opik.rest_api.types.feedback_score_public import FeedbackScorePublic
from opik.rest_api.types.trace_public import TracePublic
from opik.rest_api.types.value_entry_public import ValueEntryPublic

from harness.exports.contents import (
    ANSWERED_BY,
    ANSWERS,
    DOCUMENTS,
    GRADER,
    QUESTIONS,
    TRUE,
    UNITS,
    labels,
    write_json,
)

TIME = datetime.fromisoformat("2026-11-01T12:00:00+00:00")
VALUES = {"yes": 1.0, "no": 0.0}


def make(out: Path) -> None:
    traces = [
        TracePublic(
            id=f"trace-{unit}",
            start_time=TIME,
            input={"question": QUESTIONS[number % 4]},
            output={"output": ANSWERS[number % 4]},
            metadata={"topic": "office"},
            feedback_scores=[_fair({"ann": a, "ben": b, GRADER: g}), _by_code()],
        )
        for number, (unit, a, b, g) in enumerate(labels())
    ]
    assert len(traces) == len(UNITS)
    write_json(out / "opik.json", [_plain(each) for each in traces])
    items = [
        TracePublic(
            id=f"trace-q{number}",
            start_time=TIME,
            input={"question": question, "context": DOCUMENTS},
            output={"output": answer},
            metadata={"model": ANSWERED_BY, "expected_output": true},
            thread_id=None,
        )
        for number, (question, answer, true) in enumerate(
            zip(QUESTIONS, ANSWERS, TRUE, strict=True), 1
        )
    ]
    write_json(
        out / "items" / "opik_trace.json", [{"trace": _plain(each), "spans": []} for each in items]
    )


def _fair(said: dict[str, str]) -> FeedbackScorePublic:
    """Return one score given by two people on the page and by a rule that asks a model."""
    by = {
        who: ValueEntryPublic(
            value=VALUES[label],
            category_name=label,
            source="online_scoring" if who == GRADER else "ui",
            last_updated_at=TIME,
        )
        for who, label in said.items()
    }
    mean = sum(VALUES[label] for label in said.values()) / len(said)
    names = ", ".join(said.values())
    return FeedbackScorePublic(
        name="fair", value=mean, category_name=names, source="ui", value_by_author=by
    )


def _by_code() -> FeedbackScorePublic:
    return FeedbackScorePublic(name="length", value=3.0, source="sdk", created_by="admin")


def _plain(trace: TracePublic) -> Any:
    return json.loads(json.dumps(trace.model_dump(exclude_none=True), default=str))
