"""Requests to the protocol server and its replies, in both providers' forms."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MESSAGE_ID, COMPLETION_ID = "msg_1", "chatcmpl-1"
UNIT_MARK = re.compile(r"\[\[(.+?)\]\]")


@dataclass(frozen=True)
class Call:
    """A request as received, header names in lower case; `nth` counts calls with this prompt."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float
    nth: int

    @property
    def user(self) -> str:
        content = self.body["messages"][-1]["content"]
        return (
            content
            if isinstance(content, str)
            else "".join(part.get("text", "") for part in content)
        )

    @property
    def system(self) -> str:
        """Empty where a subject is asked, not a grader."""
        if self.path.endswith("/messages"):
            return str(self.body["system"][0]["text"]) if "system" in self.body else ""
        first = self.body["messages"][0]
        return str(first["content"]) if first["role"] == "system" else ""

    @property
    def unit(self) -> str:
        """Return the mark that the test studies put into every response."""
        marks = UNIT_MARK.findall(self.user)
        return str(marks[0]) if marks else ""

    @property
    def keys(self) -> list[str]:
        """Return the option keys, read from the prompt as a grader would."""
        listed = self.system.rpartition(":")[2].strip(" .\n")
        return re.split(r", | or ", listed)

    @property
    def choice(self) -> str:
        """Return an option that depends on the prompt alone."""
        digest = hashlib.sha256((self.system + self.user).encode()).digest()
        return self.keys[digest[0] % len(self.keys)]


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None  # sent instead of a reply of HTTP, before the connection is cut
    delay: float = 0.0


DROPPED = Reply(raw=b"")


def message(text: str, *, stop_reason: str = "end_turn", thinking: str = "") -> Reply:
    """Return a message of the Messages API with this text."""
    content = [{"type": "thinking", "thinking": thinking, "signature": "s"}] if thinking else []
    content.append({"type": "text", "text": text})
    return Reply(
        body={
            "id": MESSAGE_ID,
            "type": "message",
            "role": "assistant",
            "model": "claude-test-20260101",
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 900, "output_tokens": 12},
        },
        headers={"request-id": "req_1"},
    )


def reasoned(call: Call) -> str:
    """Return an option after a reason, in JSON if that is asked for."""
    reason = f"It reads so: {call.unit}."
    if "response_format" in call.body or "output_config" in call.body:
        return json.dumps({"reason": reason, "label": call.choice})
    return f"{reason}\n\n{call.choice}"


def labelled(label: str) -> Reply:
    return message(json.dumps({"label": label}))


def completion(
    text: str | None,
    *,
    positions: list[Mapping[str, float]] | None = None,
    finish_reason: str = "stop",
    refusal: str | None = None,
) -> Reply:
    """Return a chat completion; `positions` are token probabilities, the chosen one first."""
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": text, "refusal": refusal},
        "logprobs": None,
    }
    if positions is not None:
        choice["logprobs"] = {"content": [_position(each) for each in positions]}
    return Reply(
        body={
            "id": COMPLETION_ID,
            "object": "chat.completion",
            "created": 1,
            "model": "test-model-2026",
            "choices": [choice],
            "usage": {"prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901},
        },
        headers={"x-request-id": "req_2"},
    )


def _position(tokens: Mapping[str, float]) -> dict[str, Any]:
    top = [
        {"token": token, "bytes": list(token.encode()), "logprob": math.log(p) if p else -9999.0}
        for token, p in tokens.items()
    ]
    return {**top[0], "top_logprobs": top}


def error(status: int, text: str = "no", headers: Mapping[str, str] | None = None) -> Reply:
    body = {"type": "error", "error": {"type": "some_error", "message": text}}
    return Reply(status, body, headers or {})


def answer(call: Call) -> Reply:
    """Return the reply without faults: a label, or probabilities if asked for, in tokens or in
    words; for a prompt without a rubric, some words.
    """
    claude = call.path.endswith("/messages")
    if not call.system:
        text = f"Here it is: {call.user}"
        return message(text) if claude else completion(text)
    if "in percent" in call.system:
        stated = json.dumps({key: 100 * (key == call.choice) for key in call.keys})
        return message(stated) if claude else completion(stated)
    if "First give your reason" in call.system:
        return message(reasoned(call)) if claude else completion(reasoned(call))
    if claude:
        return labelled(call.choice)
    if not call.body.get("logprobs"):
        return completion(call.choice)
    others = [key for key in call.keys if key != call.choice]
    rest = {key: 0.2 / len(others) for key in others}
    return completion(call.choice, positions=[{call.choice: 0.75, **rest, "(": 0.05}])
