"""The real SDKs against servers that nobody here wrote: aimock from npm, mock-ai-api from PyPI."""

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import playwright
import pytest

from harness.installing import installed, npm_command, pip_command
from harness.ports import free_port
from harness.served import holds
from tests.graders.grading import grade

pytestmark = pytest.mark.slow


@contextmanager
def running(command, port, cwd, environment=None):
    log = cwd / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=cwd, stdout=file, stderr=file, env=os.environ | (environment or {})
        )

    def is_open() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        assert holds(lambda: process.poll() is not None or is_open(), 30)
        assert process.poll() is None, log.read_text("utf-8", "replace")
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


def test_chat_messages_and_batches_of_aimock(tmp_path, marked_study, monkeypatch) -> None:
    folder, port = installed("aimock-1.43.0", npm_command("@copilotkit/aimock@1.43.0")), free_port()
    # It wants a newer Node than some systems have; Playwright brings its own.
    node = Path(playwright.__file__).parent / "driver" / "node"
    answer = {"match": {"userMessage": "[["}, "response": {"content": "2"}}
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "all.json").write_text(json.dumps({"fixtures": [answer]}))
    command = [str(node), str(folder / "node_modules" / ".bin" / "llmock"), "-p", str(port)]
    command += ["-h", "127.0.0.1", "-f", str(tmp_path / "fixtures")]
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "key-for-loopback")
    address = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    with running(command, port, tmp_path):
        study = marked_study(pairs=5)
        summary = grade(study, [f"openai:gpt-4o@{address}/v1", "anthropic:claude-opus-5"])
        assert (summary.scored, summary.unscored, summary.stopped) == (20, 0, ())
        assert set(study.ratings()["label"]) == {"2"}
        study = marked_study(pairs=5, name="batch")
        batch = grade(study, [f"openai:gpt-4o@{address}/v1"], batch=True, wait_scale=0.005)
    # Its batches answer everything with the same words, which name no option; live it gives labels
    # without probabilities, so that two are asked live.
    assert (batch.scored, batch.graders[0].unscored) == (2, {"unparseable": 8})
    assert batch.stopped == ()


def test_claude_batches(tmp_path, marked_study, monkeypatch):
    port, package = free_port(), installed("mock-ai-api-0.1.1", pip_command("mock-ai-api==0.1.1"))
    address = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-for-loopback")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    # Its own command leaves the servers that it starts behind when it ends.
    command = [sys.executable, "-P", "-m", "uvicorn", "app.anthropic_app:app"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    done = threading.Event()

    def fetch_results() -> None:
        """This server ends a batch only when somebody fetches its results."""
        url = f"http://127.0.0.1:{port}/v1/messages/batches"
        while not done.wait(0.1):
            with suppress(OSError):
                with urllib.request.urlopen(url) as reply:
                    batches = json.load(reply)["data"]
                for batch in batches:
                    urllib.request.urlopen(f"{url}/{batch['id']}/results").close()  # noqa: S310

    with running(command, port, tmp_path, {"PYTHONPATH": str(package)}):
        threading.Thread(target=fetch_results, daemon=True).start()
        study = marked_study(pairs=3)
        summary = grade(study, ["anthropic:claude-opus-5"], batch=True, wait_scale=0.02)
        done.set()
    # What it says is no label; that every reply of the batch is kept is what counts.
    assert summary.stopped == ()
    assert len(study.ratings()) == 6
    assert "request_failed" not in set(study.ratings()["unscored_reason"])
