"""A server on loopback that speaks the two providers' protocols, with faults on demand.

It takes real requests from the real SDK clients. What it answers is decided by a script: a function
from a call to a reply. Without one it answers every question with an option chosen from the prompt
alone, so that two runs give the same table.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

UNIT_MARK = re.compile(r"\[\[(.+?)\]\]")


@dataclass(frozen=True)
class Call:
    """One request as it came in, header names in lower case. `nth` counts the calls with this
    prompt, from 1.
    """

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float
    nth: int

    @property
    def user(self) -> str:
        return str(self.body["messages"][-1]["content"])

    @property
    def system(self) -> str:
        if self.path.endswith("/messages"):
            return str(self.body["system"][0]["text"])
        return str(self.body["messages"][0]["content"])

    @property
    def unit(self) -> str:
        """The mark that the test studies put into every response."""
        marks = UNIT_MARK.findall(self.user)
        return str(marks[0]) if marks else ""

    @property
    def keys(self) -> list[str]:
        """The options, read off the prompt as a grader would."""
        listed = self.system.rpartition(":")[2].strip(" .\n")
        return re.split(r", | or ", listed)

    @property
    def choice(self) -> str:
        """An option that depends on the prompt alone."""
        digest = hashlib.sha256((self.system + self.user).encode()).digest()
        return self.keys[digest[0] % len(self.keys)]


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    delay: float = 0.0


DROPPED = Reply(drop=True)


def message(text: str, *, stop_reason: str = "end_turn", thinking: str = "") -> Reply:
    """A message of the Messages API whose text is `text`."""
    content = [{"type": "thinking", "thinking": thinking, "signature": "s"}] if thinking else []
    content.append({"type": "text", "text": text})
    return Reply(
        body={
            "id": "msg_1",
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


def labelled(label: str) -> Reply:
    return message(json.dumps({"label": label}))


def completion(
    text: str | None,
    *,
    positions: list[Mapping[str, float]] | None = None,
    finish_reason: str = "stop",
    refusal: str | None = None,
) -> Reply:
    """A chat completion. `positions` are probabilities of tokens, the chosen one first in each."""
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
            "id": "chatcmpl-1",
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
    """The reply without faults: a label, or a token with its probabilities where asked for."""
    if call.path.endswith("/messages"):
        return labelled(call.choice)
    if not call.body.get("logprobs"):
        return completion(call.choice)
    others = [key for key in call.keys if key != call.choice]
    rest = {key: 0.2 / len(others) for key in others}
    return completion(call.choice, positions=[{call.choice: 0.75, **rest, "(": 0.05}])


class BatchService:
    """Both providers' batch services. A batch ends after `looks` looks at it.

    `fate(call)` says what becomes of a request: "" (answered), "expired", "canceled", "errored"
    (a fault of the server) or "invalid". `drop` lists what happens to the next batches sent: the
    connection breaks
    "before" the batch is made, or "after". `refuse` is a reason to refuse every batch.
    """

    def __init__(self, script: Callable[[Call], Reply]) -> None:
        self.looks = 2
        self.fate: Callable[[Call], str] = lambda call: ""
        self.drop: list[str] = []
        self.refuse = ""
        self.calls: list[Call] = []
        self.made: list[dict[str, Any]] = []
        self.get_replies: list[Reply] = []
        self.headers: list[Mapping[str, str]] = []
        self.delay = 0.0
        self._script = script
        self._files: dict[str, str] = {}
        self._lock = threading.Lock()

    def upload(self, content: bytes, headers: Mapping[str, str]) -> Reply:
        self.headers.append(headers)
        boundary = b"--" + headers["content-type"].partition("boundary=")[2].encode()
        parts = [part for part in content.split(boundary) if b"filename=" in part]
        text = parts[0].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n").decode()
        with self._lock:
            name = f"file-{len(self._files)}"
            self._files[name] = text
        return Reply(
            body={
                "id": name,
                "object": "file",
                "bytes": len(text),
                "created_at": 1,
                "filename": "x.jsonl",
                "purpose": "batch",
                "status": "processed",
            }
        )

    def post(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Reply:
        self.headers.append(headers)
        if path.endswith("/cancel"):
            batch = self._batch(path.rpartition("/")[0])
            batch["cancelled"] = True
            return Reply(body=self._shown(batch))
        fault = self.drop.pop(0) if self.drop else ""
        if fault == "before":
            return DROPPED
        if self.refuse and "messages" in path:
            return error(400, self.refuse)
        with self._lock:
            batch = self._make(path, headers, body)
        return DROPPED if fault == "after" else Reply(body=self._shown(batch), delay=self.delay)

    def _make(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
        claude = "/messages/" in path
        if claude:
            lines = [(line["custom_id"], line["params"]) for line in body["requests"]]
        else:
            text = self._files[body["input_file_id"]]
            lines = [(d["custom_id"], d["body"]) for d in map(json.loads, text.splitlines())]
        assert len({name for name, _ in lines}) == len(lines), "custom ids must differ"
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name, _ in lines)
        way = "/v1/messages" if claude else "/v1/chat/completions"
        calls = []
        for name, request in lines:
            nth = 1 + sum(call.body == request for call in self.calls)
            calls.append((name, Call(way, headers, request, time.monotonic(), nth)))
        self.calls += [call for _, call in calls]
        batch = {
            "id": f"batch_{len(self.made)}",
            "claude": claude,
            "lines": calls,
            "looked": 0,
            "metadata": body.get("metadata"),
            "cancelled": False,
            "at": time.time(),
        }
        self.made.append(batch)
        return batch

    def get(self, path: str, headers: Mapping[str, str]) -> Reply:
        self.headers.append(headers)
        if self.get_replies:
            return self.get_replies.pop(0)
        path = path.partition("?")[0]
        if "/models/" in path:
            return error(404)
        if path.endswith("/content"):
            return Reply(body=self._output(path.split("/")[-2]))
        if path.endswith("/results"):
            return Reply(body=self._results(self._batch(path.rpartition("/")[0])))
        if path.endswith("/batches"):
            claude = "/messages/" in path
            shown = [self._shown(b) for b in self.made[::-1] if b["claude"] == claude]
            return Reply(
                body={
                    "data": shown,
                    "has_more": False,
                    "object": "list",
                    "first_id": None,
                    "last_id": None,
                }
            )
        batch = self._batch(path)
        batch["looked"] += 1
        return Reply(body=self._shown(batch))

    def _batch(self, path: str) -> dict[str, Any]:
        return self.made[int(path.rpartition("_")[2])]

    def _shown(self, batch: dict[str, Any]) -> dict[str, Any]:
        ended = batch["looked"] >= self.looks or batch["cancelled"]
        count = len(batch["lines"])
        at = datetime.fromtimestamp(batch["at"], UTC).isoformat()
        if batch["claude"]:
            zero = {"succeeded": 0, "errored": 0, "canceled": 0, "expired": 0, "processing": 0}
            counts = zero | {"succeeded" if ended else "processing": count}
            return {
                "id": batch["id"],
                "type": "message_batch",
                "created_at": at,
                "expires_at": at,
                "processing_status": "ended" if ended else "in_progress",
                "request_counts": counts,
                "ended_at": None,
                "archived_at": None,
                "cancel_initiated_at": None,
                "results_url": f"/v1/messages/batches/{batch['id']}/results" if ended else None,
            }
        failed = self.refuse and not batch["claude"]
        return {
            "id": batch["id"],
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "created_at": int(batch["at"]),
            "input_file_id": "f",
            "status": "failed" if failed else "completed" if ended else "in_progress",
            "errors": {"data": [{"message": self.refuse}]} if failed else None,
            "metadata": batch["metadata"],
            "output_file_id": f"out-{batch['id']}" if ended else None,
            "error_file_id": f"err-{batch['id']}" if ended else None,
            "request_counts": {"completed": count if ended else 0, "failed": 0, "total": count},
        }

    def _fate(self, batch: dict[str, Any], call: Call) -> str:
        return "canceled" if batch["cancelled"] and call.nth % 2 else self.fate(call)

    def _results(self, batch: dict[str, Any]) -> str:
        lines = []
        for name, call in batch["lines"][::-1]:  # in no order that means anything
            fate = self._fate(batch, call)
            result: dict[str, Any] = {"type": fate or "succeeded"}
            if fate in ("errored", "invalid"):
                kind = "invalid_request_error" if fate == "invalid" else "api_error"
                said = {"type": kind, "message": f"no {call.headers.get('authorization')}"}
                result = {"type": "errored", "error": {"type": "error", "error": said}}
            elif not fate:
                result["message"] = self._script(call).body
            lines.append(json.dumps({"custom_id": name, "result": result}))
        return "\n".join(lines)

    def _output(self, name: str) -> str:
        batch = self._batch(name)
        lines = []
        for custom_id, call in batch["lines"]:
            fate = self._fate(batch, call)
            if bool(fate) == name.startswith("out-"):
                continue
            said = {"code": f"batch_{fate}", "message": f"no {call.headers.get('authorization')}"}
            status = {"": 200, "invalid": 400, "errored": 500}.get(fate)
            body = self._script(call).body if not fate else {"error": said}
            response = {"status_code": status, "request_id": "r", "body": body} if status else None
            line = {"custom_id": custom_id, "response": response, "error": None if status else said}
            lines.append(json.dumps(line))
        return "\n".join(lines)


def call_to_batches(path: str) -> bool:
    return "/batches" in path


class ProtocolServer:
    """Listens on a free port of loopback until closed. `calls` holds every request in order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.script: Callable[[Call], Reply] = answer
        self.batches = BatchService(lambda call: self.script(call))
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai(self) -> str:
        """A grader's name for this server."""
        return f"openai:test-model@{self.root}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Reply:
        if call_to_batches(path):
            return self.batches.post(path, headers, body)
        prompt = json.dumps(body.get("messages"))
        with self._lock:
            self._asked[prompt] += 1
            call = Call(path, headers, body, time.monotonic(), self._asked[prompt])
            self.calls.append(call)
        return self.script(call)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away mid-reply is part of the tests."""


def _handler(owner: ProtocolServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(owner.batches.get(self.path, headers))

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            content = self.rfile.read(length)
            if len(content) < length:  # the client was killed while it sent
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            if self.path.endswith("/files"):
                self._send(owner.batches.upload(content, headers))
            else:
                self._send(owner.take(self.path, headers, json.loads(content or b"{}")))

        def _send(self, reply: Reply) -> None:
            time.sleep(reply.delay)
            if reply.drop:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            content = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content.encode())))
            self.end_headers()
            self.wfile.write(content.encode())

    return Handler
