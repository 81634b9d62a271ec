"""A server on loopback that speaks the two providers' protocols, with faults on demand.

It takes real requests from the real SDK clients. What it answers is decided by a script: a function
from a call to a reply. Without one it answers every question with an option chosen from the prompt
alone, so that two runs give the same table.
"""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harness.batch_server import BatchServer
from harness.replies import COMPLETION_ID, MESSAGE_ID, Call, Reply, answer, error


class ProtocolServer:
    """Listens on a free port of loopback until closed. `calls` holds every request in order.

    `models` is the catalogue: what it says of a model, by name. It knows none at first.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.script: Callable[[Call], Reply] = answer
        self.models: dict[str, Reply] = {}
        self.batches = BatchServer(self._reply)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.batches.results_at = self.root
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai(self) -> str:
        """Return the name of an OpenAI-style grader at this server."""
        return f"openai:test-model@{self.root}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def look_up(self, path: str, headers: Mapping[str, str]) -> Reply:
        if "/models/" in path:
            return self.models.get(path.rpartition("/")[2], error(404))
        return self.batches.get(path, headers)

    def take(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Reply:
        if "/batches" in path:
            return self.batches.post(path, headers, body)
        prompt = json.dumps(body.get("messages"))
        with self._lock:
            self._asked[prompt] += 1
            call = Call(path, headers, body, time.monotonic(), self._asked[prompt])
            self.calls.append(call)
        return self._reply(call)

    def _reply(self, call: Call) -> Reply:
        """Return the script's reply, with an id as every server gives one."""
        reply = self.script(call)
        if isinstance(reply.body, dict) and reply.body.get("id") in (MESSAGE_ID, COMPLETION_ID):
            kind = reply.body["id"].removesuffix("1")
            return replace(reply, body=reply.body | {"id": f"{kind}{next(self._numbers)}"})
        return reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnects during a reply, which tests do on purpose."""


def _handler(owner: ProtocolServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(owner.look_up(self.path, headers))

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
            if reply.raw is not None:
                self.wfile.write(reply.raw)
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
