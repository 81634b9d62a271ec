"""Calls of W&B Weave with their feedback: each feedback is what the client sends to its server,
put where `get_calls(include_feedback=True)` gives it back (`summary.weave.feedback`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weave.trace.feedback import feedback_create_params

from harness.exports.contents import (
    ANSWERED_BY,
    ANSWERS,
    QUESTIONS,
    labels,
    write_json,
    write_lines,
)

_PROJECT = "acme/office"


def make(out: Path) -> None:
    calls = []
    for number, (unit, ann, ben, said) in enumerate(labels()):
        given = [
            _feedback(unit, "wandb.annotation.fair", {"value": ann}, "ann"),
            _feedback(unit, "wandb.annotation.fair", {"value": ben}, "ben"),
            _feedback(unit, "wandb.runnable.judge", {"output": {"fair": said}}, "acme"),
            _feedback(unit, "wandb.note.1", {"note": "Looked at twice."}, "ann"),
        ]
        calls.append(_call(unit, QUESTIONS[number % 4], ANSWERS[number % 4], given))
    write_lines(out / "weave.jsonl", calls)
    items = [
        _call(f"q{number}", question, answer, [])
        for number, (question, answer) in enumerate(zip(QUESTIONS, ANSWERS, strict=True), 1)
    ]
    write_json(out / "items" / "weave.json", items)


def _feedback(unit: str, kind: str, payload: dict[str, Any], creator: str) -> dict[str, Any]:
    name = kind.split(".")[2]
    ref = f"weave:///{_PROJECT}/object/{name}:v1"
    sent = feedback_create_params(
        project_id=_PROJECT,
        weave_ref=f"weave:///{_PROJECT}/call/{unit}",
        feedback_type=kind,
        payload=payload,
        creator=creator,
        annotation_ref=ref if ".annotation." in kind else None,
        runnable_ref=ref if ".runnable." in kind else None,
    )
    kept = {key: value for key, value in sent.items() if not key.startswith(("scorer_", "span_"))}
    return kept | {"id": f"{unit}-{name}-{creator}", "created_at": "2026-11-01T12:00:00Z"}


def _call(unit: str, question: str, answer: str, feedback: list[Any]) -> dict[str, Any]:
    return {
        "id": unit, "project_id": _PROJECT, "trace_id": f"trace-{unit}", "parent_id": None,
        "op_name": f"weave:///{_PROJECT}/op/answer:v1", "display_name": None,
        "started_at": "2026-11-01T12:00:00Z", "ended_at": "2026-11-01T12:00:01Z",
        "attributes": {}, "inputs": {"question": question}, "output": answer, "exception": None,
        "wb_user_id": "acme",
        "summary": {
            "usage": {ANSWERED_BY: {"requests": 1}},
            "weave": {"status": "success", "latency_ms": 1000, "feedback": feedback},
        },
    }  # fmt: skip
