"""Exports written by hand from documentation: a batch of OpenAI, requests before their responses,
and examples of doccano with one label each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.exports.contents import ANSWERED_BY, ANSWERS, JUDGED, QUESTIONS, write_lines


def make(out: Path) -> None:
    asked: list[dict[str, Any]] = []
    answered: list[dict[str, Any]] = []
    examples: list[dict[str, Any]] = []
    for number, (question, answer, judged) in enumerate(
        zip(QUESTIONS, ANSWERS, JUDGED, strict=True), 1
    ):
        messages = [{"role": "user", "content": question}]
        reply = {"role": "assistant", "content": answer, "refusal": None}
        completion = {
            "id": f"chatcmpl-{number}", "object": "chat.completion", "model": ANSWERED_BY,
            "choices": [{"index": 0, "message": reply, "finish_reason": "stop"}],
        }  # fmt: skip
        asked.append(
            {"custom_id": f"q{number}", "method": "POST", "url": "/v1/chat/completions",
             "body": {"model": "small", "messages": messages}}
        )  # fmt: skip
        answered.append(
            {"id": f"batch_req_{number}", "custom_id": f"q{number}", "error": None,
             "response": {"status_code": 200, "request_id": f"r{number}", "body": completion}}
        )  # fmt: skip
        examples.append({"id": number, "text": answer, "topic": "office", "label": [judged]})
    write_lines(out / "items" / "batch.jsonl", [*asked, *answered])
    write_lines(out / "items" / "doccano.jsonl", examples)
