"""The real SDKs against servers that nobody here wrote. They are no dependency: name a program that
is installed, and its test runs.

- EVENHAND_AIMOCK: the `llmock` program of the npm package @copilotkit/aimock
- EVENHAND_MOCK_AI_API: the `mock-ai-api` program of the PyPI package of that name
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graders import grade
from tests.graders.conftest import MarkedStudy


def program(variable: str) -> str:
    path = os.environ.get(variable, "")
    if not path:
        pytest.skip(f"set {variable} to the program of a server that others wrote")
    return path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, cwd: Path) -> Iterator[None]:
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            assert process.poll() is None, "the server has stopped"
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture
def aimock(tmp_path: Path) -> Iterator[str]:
    llmock, port = program("EVENHAND_AIMOCK"), free_port()
    fixtures = tmp_path / "fixtures"
    fixtures.mkdir()
    answer = {"match": {"userMessage": "[["}, "response": {"content": "2"}}
    (fixtures / "all.json").write_text(json.dumps({"fixtures": [answer]}))
    command = [llmock, "-p", str(port), "-h", "127.0.0.1", "-f", str(fixtures)]
    with running(command, port, tmp_path):
        yield f"http://127.0.0.1:{port}"


def test_openai_chat(
    aimock: str, marked_study: MarkedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-loopback")
    study = marked_study(pairs=5)
    summary = grade(study, [f"openai:gpt-4o@{aimock}/v1"])
    assert (summary.scored, summary.unscored, summary.stopped) == (10, 0, ())
    assert set(study.ratings()["label"]) == {"2"}


def test_openai_batches(
    aimock: str, marked_study: MarkedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-loopback")
    study = marked_study(pairs=5)
    summary = grade(study, [f"openai:gpt-4o@{aimock}/v1"], batch=True, wait_scale=0.005)
    assert summary.stopped == ()
    # Its batches answer everything with the same words, which name no option.
    assert (summary.scored, summary.graders[0].unscored) == (1, {"unparseable": 9})


def test_claude_messages(
    aimock: str, marked_study: MarkedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-for-loopback")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", aimock)
    assert grade(marked_study(pairs=5), ["anthropic:claude-opus-5"]).scored == 10


def test_claude_batches(
    tmp_path: Path, marked_study: MarkedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = program("EVENHAND_MOCK_AI_API")
    openai_port, port = free_port(), free_port()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-for-loopback")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
    command = [server, "--openai-port", str(openai_port), "--anthropic-port", str(port)]
    with running(command, port, tmp_path):
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
