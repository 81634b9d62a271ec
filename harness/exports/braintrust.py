"""Rows of a Braintrust experiment: what `Eval` computes, in the form in which an experiment is
exported (its root spans and those of its scorers), as the client's own types describe it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from braintrust import Eval
from braintrust.framework import EvalResultWithSummary

from harness.exports.contents import (
    ANSWERED_BY,
    ANSWERS,
    QUESTIONS,
    TRUE,
    labels,
    write_json,
    write_lines,
)

VALUES = {"yes": 1, "no": 0}


def make(out: Path) -> None:
    said = {unit: (VALUES[a], VALUES[b], VALUES[g]) for unit, a, b, g in labels()}

    def judge(input: str, output: str, expected: str | None = None) -> float:
        return said[input][2]

    found = _run([{"input": unit} for unit in said], lambda unit: f"About {unit}.", judge)
    rows: list[dict[str, Any]] = []
    for each in found.results:
        ann, ben, _ = said[each.input]
        scores = {**each.scores, "ann": ann, "ben": ben}
        # A person who reviews writes a score; the log of changes says that it came from the page.
        audit = [
            {"audit_data": {"action": "merge", "path": ["scores", who]}, "source": "app"}
            for who in ("ann", "ben")
        ]
        rows += _spans(each.input, each, scores, audit)
    write_json(out / "braintrust.json", rows)

    known = dict(zip(QUESTIONS, zip(ANSWERS, TRUE, strict=True), strict=True))
    cases = [{"input": question, "expected": known[question][1]} for question in QUESTIONS]
    found = _run(cases, lambda question: known[question][0], exact)
    write_lines(
        out / "items" / "braintrust.jsonl",
        [
            _spans(f"q{number}", each, dict(each.scores), [])[0]
            for number, each in enumerate(found.results, 1)
        ],
    )


def exact(input: str, output: str, expected: str | None = None) -> float:
    return float(output == expected)


def _run(cases: list[dict[str, Any]], task: Any, scorer: Any) -> EvalResultWithSummary[Any, Any]:
    return Eval("office", data=cases, task=task, scores=[scorer], no_send_logs=True)


def _spans(unit: str, result: Any, scores: dict[str, Any], audit: list[Any]) -> list[Any]:
    """Return a case's root span, its scorer's span, and the scorer's call of a model."""
    root = {
        "id": unit, "span_id": unit, "root_span_id": unit, "is_root": True, "span_parents": None,
        "project_id": "p", "experiment_id": "e", "created": "2026-11-01T12:00:00Z",
        "span_attributes": {"name": "eval", "type": "eval"}, "input": result.input,
        "output": result.output, "expected": result.expected, "scores": scores,
        "metadata": {"model": ANSWERED_BY, **json.loads(json.dumps(result.metadata or {}))},
        "metrics": {"start": 1.0, "end": 2.0}, "audit_data": audit,
    }  # fmt: skip
    rest = {"project_id": "p", "experiment_id": "e", "root_span_id": unit, "is_root": False}
    scorer = {
        **rest, "id": f"{unit}-judge", "span_id": f"{unit}-judge", "span_parents": [unit],
        "span_attributes": {"name": "judge", "type": "score", "purpose": "scorer"},
        "scores": {"judge": result.scores.get("judge")},
    }  # fmt: skip
    asked = {
        **rest, "id": f"{unit}-ask", "span_id": f"{unit}-ask", "span_parents": [f"{unit}-judge"],
        "span_attributes": {"name": "Chat Completion", "type": "llm"}, "scores": None,
    }  # fmt: skip
    return [root, scorer, asked]
