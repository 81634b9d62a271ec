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


class ProtocolServer:
    """Listens on a free port of loopback until closed. `calls` holds every request in order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.script: Callable[[Call], Reply] = answer
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

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = owner.take(self.path, headers, body)
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
