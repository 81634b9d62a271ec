"""The real SDKs against servers that nobody here wrote: aimock from npm, mock-ai-api from PyPI."""

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import playwright
import pytest

from harness.installing import installed, npm_command, pip_command
from harness.ports import free_port
from harness.served import holds
from harness.studies import MarkedStudy
from tests.graders.grading import grade

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def aimock_command() -> list[str]:
    folder = installed("aimock-1.43.0", npm_command("@copilotkit/aimock@1.43.0"))
    # It wants a newer Node than some systems have; Playwright brings its own.
    node = Path(playwright.__file__).parent / "driver" / "node"
    return [str(node), str(folder / "node_modules" / ".bin" / "llmock")]


@pytest.fixture(scope="session")
def mock_ai_api() -> Path:
    return installed("mock-ai-api-0.1.1", pip_command("mock-ai-api==0.1.1"))


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(command, port, cwd, environment=None):
    log = cwd / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=cwd, stdout=file, stderr=file, env=os.environ | (environment or {})
        )
    try:
        assert holds(lambda: process.poll() is not None or is_open(port), 30)
        assert process.poll() is None, log.read_text("utf-8", "replace")
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture
def aimock(tmp_path: Path, aimock_command: list[str]) -> Iterator[str]:
    port = free_port()
    fixtures = tmp_path / "fixtures"
    fixtures.mkdir()
    answer = {"match": {"userMessage": "[["}, "response": {"content": "2"}}
    (fixtures / "all.json").write_text(json.dumps({"fixtures": [answer]}))
    command = [*aimock_command, "-p", str(port), "-h", "127.0.0.1", "-f", str(fixtures)]
    with running(command, port, tmp_path):
        yield f"http://127.0.0.1:{port}"


def test_openai_chat(aimock: str, marked_study: MarkedStudy, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-loopback")
    study = marked_study(pairs=5)
    summary = grade(study, [f"openai:gpt-4o@{aimock}/v1"])
    assert (summary.scored, summary.unscored, summary.stopped) == (10, 0, ())
    assert set(study.ratings()["label"]) == {"2"}


def test_openai_batches(aimock: str, marked_study: MarkedStudy, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-loopback")
    study = marked_study(pairs=5)
    summary = grade(study, [f"openai:gpt-4o@{aimock}/v1"], batch=True, wait_scale=0.005)
    assert summary.stopped == ()
    # Its batches answer everything with the same words, which name no option; live it gives labels
    # without probabilities, so that two are asked live.
    assert (summary.scored, summary.graders[0].unscored) == (2, {"unparseable": 8})


def test_claude_messages(aimock: str, marked_study: MarkedStudy, monkeypatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-for-loopback")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", aimock)
    assert grade(marked_study(pairs=5), ["anthropic:claude-opus-5"]).scored == 10


def test_claude_batches(tmp_path, mock_ai_api, marked_study, monkeypatch):
    port = free_port()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-for-loopback")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
    # Its own command leaves the servers that it starts behind when it ends.
    command = [sys.executable, "-P", "-m", "uvicorn", "app.anthropic_app:app"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with running(command, port, tmp_path, {"PYTHONPATH": str(mock_ai_api)}):
        done = threading.Event()
        threading.Thread(target=_fetch_results, args=(port, done), daemon=True).start()
        study = marked_study(pairs=3)
        summary = grade(study, ["anthropic:claude-opus-5"], batch=True, wait_scale=0.02)
        done.set()
    # What it says is no label; that every reply of the batch is kept is what counts.
    assert summary.stopped == ()
    assert len(study.ratings()) == 6
    assert "request_failed" not in set(study.ratings()["unscored_reason"])


def _fetch_results(port: int, done: threading.Event) -> None:
    """This server ends a batch only when somebody fetches its results."""
    url = f"http://127.0.0.1:{port}/v1/messages/batches"
    while not done.wait(0.1):
        try:
            with urllib.request.urlopen(url) as reply:
                batches = json.load(reply)["data"]
            for batch in batches:
                urllib.request.urlopen(f"{url}/{batch['id']}/results").close()  # noqa: S310
        except OSError:
            continue
