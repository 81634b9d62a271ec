"""The first request tells within seconds what is wrong with an address, and what to do about it;
Ctrl-C waits for what is paid.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from evenhand.graders.running import live
from harness.ports import free_port
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, error
from harness.studies import MarkedStudy
from tests.graders.grading import grade

WITHIN = 10.0


def said_of(study: object, grader: str) -> tuple[str, float]:
    """Why it stopped, and after how many seconds, at the usual pace."""
    began = time.monotonic()
    summary = grade(study, [grader])  # type: ignore[arg-type]
    (sentence,) = summary.stopped
    return sentence, time.monotonic() - began


def address(path: str) -> Callable[[ProtocolServer], str]:
    return lambda server: f"openai:m@{server.root}{path}"


@pytest.mark.parametrize(
    "form", ["openai:m@http://127.0.0.1:{port}/v1", "anthropic:m@http://127.0.0.1:{port}"]
)
def test_nothing_listens(marked_study: MarkedStudy, form: str) -> None:
    sentence, seconds = said_of(marked_study(pairs=3), form.format(port=free_port()))
    assert "nothing listens there; start the server" in sentence
    assert seconds < WITHIN


def test_a_name_that_is_not_known(marked_study: MarkedStudy) -> None:
    sentence, seconds = said_of(marked_study(pairs=3), "openai:m@http://no-such-host.invalid/v1")
    assert "the name no-such-host.invalid is not known; check how it is spelled" in sentence
    assert seconds < WITHIN


NO_PATH = {
    "Ollama": Reply(404, "404 page not found"),
    "FastAPI": Reply(404, {"detail": "Not Found"}),
    "llama.cpp": Reply(
        404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}
    ),
    "LM Studio": Reply(200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
    "a web page": Reply(200, "<!DOCTYPE html><html><title>Chat</title></html>"),
    "nginx": Reply(405, "<html><h1>405 Not Allowed</h1></html>"),
}


@pytest.mark.parametrize("who", NO_PATH)
def test_an_address_without_v1(server: ProtocolServer, marked_study: MarkedStudy, who: str) -> None:
    server.script = lambda call: NO_PATH[who]
    sentence, seconds = said_of(marked_study(pairs=3), f"openai:m@{server.root}")
    assert "no API at that address; for most servers it ends in /v1: write @" in sentence
    assert f"@{server.root}/v1" in sentence
    assert seconds < WITHIN


NO_MODEL = {
    "Ollama": (404, 'model "m" not found, try pulling it first'),
    "OpenRouter": (400, "m is not a valid model ID"),
    "LiteLLM": (400, "400: {'error': 'Invalid model name passed in model=m'}"),
    "vLLM": (404, "The model `m` does not exist."),
    "DeepSeek": (400, "Model Not Exist"),
}


@pytest.mark.parametrize("who", NO_MODEL)
def test_a_wrong_model(server: ProtocolServer, marked_study: MarkedStudy, who: str) -> None:
    server.script = lambda call: error(*NO_MODEL[who])
    sentence, seconds = said_of(marked_study(pairs=3), f"openai:m@{server.root}/v1")
    assert f"there is no model 'm' at {server.root}/v1; check the model's name" in sentence
    assert len(server.calls) == 1
    assert seconds < WITHIN


@pytest.mark.parametrize(
    "refusal", [error(401, "no"), error(400, "API key not valid. Please pass a valid API key.")]
)
def test_a_wrong_key(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, refusal: Reply
) -> None:
    server.script = lambda call: refusal
    sentence, seconds = said_of(marked_study(pairs=3), claude)
    assert "the key in ANTHROPIC_API_KEY was refused; set a valid one and run again" in sentence
    assert seconds < WITHIN


def test_a_request_that_is_too_large_is_not_repeated_and_slows_nobody_down(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = error(
        429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 31538."
    )
    server.script = lambda call: large if call.unit == "p0003|m|a" else answer(call)
    limits = []
    monkeypatch.setattr(
        live.Throttle, "_set", lambda self, limit: limits.append(limit - self.limit)
    )
    summary = grade(marked_study(pairs=6), [claude], wait_scale=0.0005)
    assert (summary.scored, summary.graders[0].unscored) == (11, {"request_rejected: 429": 1})
    assert sum(call.unit == "p0003|m|a" for call in server.calls) == 1
    assert all(step > 0 for step in limits)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_waits_for_what_is_paid_once_and_ends_twice(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, times: int
) -> None:
    begun = threading.Event()

    def slow(call: Call) -> Reply:
        if len(server.calls) < 2:
            return answer(call)
        begun.set()
        return Reply(200, answer(call).body, delay=1.5)

    def interrupt() -> None:
        begun.wait(10)
        for _ in range(times):
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

    server.script = slow
    study = marked_study(pairs=20)
    said: list[str] = []
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        grade(
            study, [claude], concurrency=4, progress=lambda done, total, label: said.append(label)
        )
    thread.join()
    kept = len(study.ratings())
    assert any("press Ctrl-C again to end at once" in label for label in said)
    if times == 1:
        assert kept == len(server.calls)  # every reply that was asked for, and not one more
    else:
        assert kept < len(server.calls)
    server.script = answer
    assert grade(study, [claude]).graders[0].already == kept
