"""LangSmith's `Feedback`, one on each line; the last is a comment without a score."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from langsmith.schemas import Feedback, FeedbackSourceBase

from harness.exports.contents import GRADER, UUIDS, labels, write_lines


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
