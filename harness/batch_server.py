"""Both providers' batch services, as the protocol server offers them."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from harness.replies import DROPPED, Call, Reply, error


class BatchServer:
    """Both providers' batch services. A batch ends after `looks` looks at it.

    `fate(call)` says what becomes of a request: "" (answered), "expired", "canceled", "errored"
    (a fault of the server), "invalid" or "refused" (in the words of `refusal`). `drop` lists what
    happens to the next batches sent: the connection breaks "before" the batch is made, or "after".
    `refuse` is a reason to refuse every batch. `write` makes what is sent of a line of the results,
    which a batch says are at the address `results_at`, or gone since `archived_at`.
    """

    def __init__(self, script: Callable[[Call], Reply]) -> None:
        self.looks = 2
        self.fate: Callable[[Call], str] = lambda call: ""
        self.drop: list[str] = []
        self.refuse = ""
        self.refusal = error(400)
        self.write: Callable[[str], str] = str
        self.results_at = ""
        self.archived_at: str | None = None
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
            lines = [(d["custom_id"], d["body"]) for d in map(json.loads, text.strip().split("\n"))]
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
        results_url = f"{self.results_at}/v1/messages/batches/{batch['id']}/results"
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
                "archived_at": self.archived_at,
                "cancel_initiated_at": None,
                "results_url": results_url if ended else None,
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
            elif fate == "refused":
                result = {"type": "errored", "error": self.refusal.body}
            elif not fate:
                result["message"] = self._script(call).body
            lines.append({"custom_id": name, "result": result})
        return self._written(lines)

    def _written(self, lines: list[dict[str, Any]]) -> str:
        return "\n".join(self.write(json.dumps(line, ensure_ascii=False)) for line in lines)

    def _output(self, name: str) -> str:
        batch = self._batch(name)
        lines = []
        for custom_id, call in batch["lines"]:
            fate = self._fate(batch, call)
            if bool(fate) == name.startswith("out-"):
                continue
            said = {"code": f"batch_{fate}", "message": f"no {call.headers.get('authorization')}"}
            refused = self.refusal.status
            status = {"": 200, "invalid": 400, "errored": 500, "refused": refused}.get(fate)
            said = self.refusal.body["error"] if fate == "refused" else said
            body = self._script(call).body if not fate else {"error": said}
            response = {"status_code": status, "request_id": "r", "body": body} if status else None
            line = {"custom_id": custom_id, "response": response, "error": None if status else said}
            lines.append(line)
        return self._written(lines)
