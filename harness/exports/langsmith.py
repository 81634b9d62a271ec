"""LangSmith's `Feedback`, one on each line, the last a comment without a score; and its `Run`s."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from langsmith.schemas import Feedback, FeedbackSourceBase, Run

from harness.exports.contents import (
    ANSWERED_BY,
    ANSWERS,
    DOCUMENTS,
    GRADER,
    JUDGED,
    QUESTIONS,
    UUIDS,
    labels,
    write_lines,
)


def make(out: Path) -> None:
    stamp = datetime(2026, 11, 1, tzinfo=UTC)
    lines = []
    for run, (_, a, b, g) in zip(UUIDS, labels(), strict=True):
        for number, (kind, who, said) in enumerate(
            [("app", "ann", a), ("app", "ben", b), ("model", None, g)]
        ):
            source = FeedbackSourceBase(
                type=kind,
                user_name=who,
                user_id=who and f"user-{who}",
                metadata={} if who else {"evaluator": "fairness", "model": GRADER},
            )
            feedback = Feedback(
                id=UUID(run.replace("-8000-", f"-800{number}-")),
                created_at=stamp,
                modified_at=stamp,
                run_id=UUID(run),
                trace_id=UUID(run),
                key="fair",
                score=float(said == "yes"),
                value=said,
                feedback_source=source,
            )
            lines.append(json.loads(feedback.model_dump_json()))
    lines.append({**lines[0], "id": UUIDS[0], "score": None, "value": None, "comment": "hm"})
    write_lines(out / "langsmith.jsonl", lines)
    write_lines(out / "items" / "langsmith_runs.jsonl", _runs(stamp))


def _runs(stamp: datetime) -> list[Any]:
    """Return four traces, each a chain that retrieves documents and asks a model."""
    runs = []
    for number, (question, answer, judged) in enumerate(
        zip(QUESTIONS, ANSWERS, JUDGED, strict=True)
    ):
        root = UUIDS[number]
        retriever, model = (UUID(root.replace("-8000-", f"-800{n}-")) for n in (1, 2))
        message = {"role": "user", "content": question}
        reply = {"role": "assistant", "content": answer}
        found = [{"page_content": text, "metadata": {}, "type": "Document"} for text in DOCUMENTS]
        stats = {"correct": {"n": 1, "avg": None, "values": {judged: 1}}}
        known = {
            "start_time": stamp,
            "end_time": stamp,
            "trace_id": UUID(root),
            "status": "success",
        }
        child = known | {"parent_run_id": UUID(root)}
        runs += [
            Run(id=UUID(root), name="rag", run_type="chain", inputs={"question": question},
                outputs={"answer": answer}, feedback_stats=stats, **known),
            Run(id=retriever, name="find", run_type="retriever", inputs={"query": question},
                outputs={"documents": found}, **child),
            Run(id=model, name="ask", run_type="llm", inputs={"messages": [[message]]},
                outputs={"choices": [{"message": reply}]},
                extra={"metadata": {"ls_model_name": ANSWERED_BY}}, **child),
        ]  # fmt: skip
    return [json.loads(run.model_dump_json()) for run in runs]
