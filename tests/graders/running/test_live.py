"""Live runs: the throttle, the first contact with a server, and what is told while a run waits."""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from evenhand.errors import InputError
from evenhand.graders import running as live
from evenhand.graders.failures import HANGS, Transient
from evenhand.graders.running import Throttle
from harness.ports import free_port
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, completion, error, message
from harness.studies import MarkedStudy
from tests.graders.bench import Bench
from tests.graders.grading import grade


def test_the_limit_falls_once_per_round_and_rises_again() -> None:
    limits: list[int] = []

    async def main() -> None:
        throttle = Throttle(8)

        async def busy(all_started: anyio.Event) -> None:
            with suppress(Transient):
                async with throttle.slot():
                    await all_started.wait()
                    raise Transient("busy", status=429)

        started = anyio.Event()
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(busy, started)
            await anyio.sleep(0.01)
            started.set()
        limits.append(throttle.limit)  # eight refusals of one round: one fall, 8 -> 6
        for _ in range(6):
            async with throttle.slot():
                pass
        limits.append(throttle.limit)  # six replies: one more
        for _ in range(100):
            async with throttle.slot():
                pass
        limits.append(throttle.limit)  # never above where it began

    anyio.run(main)
    assert limits == [6, 7, 8]


def test_the_limit_never_falls_below_one_and_other_faults_leave_it() -> None:
    async def main() -> int:
        throttle = Throttle(3)
        for status in [500, None, 429, 429, 429, 429]:
            with suppress(Transient):
                async with throttle.slot():
                    raise Transient("no", status=status)
        return throttle.limit

    assert anyio.run(main) == 1


def listening(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Any]:
    """What whoever watches is told, with little patience."""
    monkeypatch.setattr(live, "PATIENCE", 0.05)
    said: list[str] = []
    return said, lambda done, total, label: said.append(label)


def test_a_wait_for_a_busy_server_is_said(bench: Bench, monkeypatch) -> None:
    words = "Slow down, please. \x1b[31m[red]" + "x" * 500
    busy = error(429, words, {"retry-after": "0.4"})
    bench.script = lambda call: busy if call.nth == 1 else answer(call)
    said, progress = listening(monkeypatch)
    assert grade(bench.study(pairs=1), [bench.claude], progress=progress, wait_scale=1).scored == 2
    waits = [label for label in said if "waits" in label]
    assert waits
    for label in waits:
        assert label.startswith(f"{bench.claude} waits: 429 (Slow down, please. [31m[red]xxx")
        assert label.endswith(("attempt 2 of 8, next try in 1 s", "attempt 2 of 8 is under way"))
        assert len(label) < 250
        assert label.isprintable()
    assert bench.claude in said[said.index(waits[-1]) :]  # progress takes its place


def test_a_slow_reply_is_said(bench: Bench, monkeypatch) -> None:
    bench.script = lambda call: Reply(200, answer(call).body, delay=0.3)
    said, progress = listening(monkeypatch)
    grade(bench.study(pairs=1), [bench.claude], progress=progress)
    assert any("waiting for a reply" in label for label in said)


def test_a_server_that_hangs_is_given_up_after_two_tries(bench: Bench, grader: str) -> None:
    bench.script = lambda call: Reply(200, answer(call).body, delay=20.0)
    began = time.monotonic()
    summary = grade(bench.study(pairs=5), [grader], timeout=0.2)
    assert len(bench.calls) == HANGS == 2
    assert time.monotonic() - began < 10
    assert "no answer within 0.2 s" in summary.stopped[0]
    with pytest.raises(InputError, match="timeout"):
        grade(bench.study(pairs=1, name="other"), [bench.claude], timeout=0)


def refusal(status: int, message: str, **more: Any) -> Reply:
    return Reply(status, {"error": {"message": message, **more}})


FILTERS = {
    "openai": completion("", finish_reason="content_filter"),
    "gemini": completion("", finish_reason="SAFETY"),
    "azure": refusal(400, "The response was filtered due to the prompt", code="content_filter",
        innererror={"code": "ResponsibleAIPolicyViolation"}),
    "litellm": refusal(400, "litellm.ContentPolicyViolationError: the prompt was refused"),
    "openrouter": refusal(403, "Your input was flagged by the moderation of the provider"),
    "alibaba": refusal(400, "Input data may contain", code="data_inspection_failed"),
}  # fmt: skip


OF_CLAUDE = [
    (error(400, "Output blocked by content filtering policy"), False),
    (message("", stop_reason="guardrail_intervened"), False),
    (message("", stop_reason="guardrail_intervened"), True),
]


@pytest.mark.parametrize(
    ("grader", "filtered", "batch"),
    [*(("openai", each, False) for each in FILTERS.values()),
     *(("anthropic", *each) for each in OF_CLAUDE)],
    indirect=["grader"],
)  # fmt: skip
def test_a_content_filter_is_an_outcome(bench, grader, filtered, batch):
    bench.script = lambda call: filtered if call.unit == "p0001|m|a" else answer(call)
    study = bench.study(pairs=3)
    summary = grade(study, [grader], batch=batch)
    assert summary.graders[0].unscored == {"content_filter": 1}
    assert (summary.scored, summary.stopped) == (5, ())
    assert grade(study, [grader], batch=batch).graders[0].planned == 0


def test_a_refused_probe_sends_no_batch_and_is_asked_again_after_the_mend(bench, grader):
    bench.script = lambda call: error(400, "this model takes no such schema")
    study = bench.study(pairs=3)
    summary = grade(study, [grader], batch=True)
    assert bench.batches.made == []
    assert "no such schema" in summary.stopped[0]
    assert set(summary.graders[0].unscored) == {"request_failed"}
    bench.script = answer
    again = grade(study, [grader], batch=True)
    assert (again.graders[0].already, again.scored, again.stopped) == (0, 6, ())


def test_a_filtered_probe_sends_the_batch(bench: Bench) -> None:
    filtered = [FILTERS["azure"]]
    bench.script = lambda call: filtered.pop() if filtered else answer(call)
    summary = grade(bench.study(pairs=2), [bench.openai], batch=True)
    assert (summary.scored, summary.stopped) == (3, ())
    assert summary.graders[0].unscored == {"content_filter": 1}


WITHIN = 10.0


def said_of(study: object, grader: str) -> tuple[str, float]:
    """Why it stopped, and after how many seconds, at the usual pace."""
    began = time.monotonic()
    summary = grade(study, [grader], wait_scale=1)  # type: ignore[arg-type]
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
def test_an_address_without_v1(bench: Bench, who: str) -> None:
    bench.script = lambda call: NO_PATH[who]
    sentence, seconds = said_of(bench.study(pairs=3), f"openai:m@{bench.root}")
    assert "no API at that address; for most servers it ends in /v1: write @" in sentence
    assert f"@{bench.root}/v1" in sentence
    assert seconds < WITHIN


NO_MODEL = {
    "Ollama": (404, 'model "m" not found, try pulling it first'),
    "OpenRouter": (400, "m is not a valid model ID"),
    "LiteLLM": (400, "400: {'error': 'Invalid model name passed in model=m'}"),
    "vLLM": (404, "The model `m` does not exist."),
    "DeepSeek": (400, "Model Not Exist"),
}


@pytest.mark.parametrize("who", NO_MODEL)
def test_a_wrong_model(bench: Bench, who: str) -> None:
    bench.script = lambda call: error(*NO_MODEL[who])
    sentence, seconds = said_of(bench.study(pairs=3), f"openai:m@{bench.root}/v1")
    assert f"there is no model 'm' at {bench.root}/v1; check the model's name" in sentence
    assert len(bench.calls) == 1
    assert seconds < WITHIN


@pytest.mark.parametrize(
    "refusal", [error(401, "no"), error(400, "API key not valid. Please pass a valid API key.")]
)
def test_a_wrong_key(bench: Bench, refusal: Reply) -> None:
    bench.script = lambda call: refusal
    sentence, seconds = said_of(bench.study(pairs=3), bench.claude)
    assert "the key in ANTHROPIC_API_KEY was refused; set a valid one and run again" in sentence
    assert seconds < WITHIN


def test_a_request_that_is_too_large_is_not_repeated_and_slows_nobody_down(bench, monkeypatch):
    large = error(
        429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 31538."
    )
    bench.script = lambda call: large if call.unit == "p0003|m|a" else answer(call)
    limits = []
    monkeypatch.setattr(
        live.Throttle, "_set", lambda self, limit: limits.append(limit - self.limit)
    )
    summary = grade(bench.study(pairs=6), [bench.claude])
    assert (summary.scored, summary.graders[0].unscored) == (11, {"request_rejected: 429": 1})
    assert sum(call.unit == "p0003|m|a" for call in bench.calls) == 1
    assert all(step > 0 for step in limits)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_waits_for_what_is_paid_once_and_ends_twice(bench: Bench, times: int) -> None:
    begun = threading.Event()

    def slow(call: Call) -> Reply:
        if len(bench.calls) < 2:
            return answer(call)
        begun.set()
        return Reply(200, answer(call).body, delay=1.5)

    def interrupt() -> None:
        begun.wait(10)
        for _ in range(times):
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

    bench.script = slow
    study = bench.study(pairs=20)
    said: list[str] = []
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        grade(
            study,
            [bench.claude],
            concurrency=4,
            progress=lambda done, total, label: said.append(label),
        )
    thread.join()
    kept = len(study.ratings())
    assert any("press Ctrl-C again to end at once" in label for label in said)
    if times == 1:
        assert kept == len(bench.calls)  # every reply that was asked for, and not one more
    else:
        assert kept < len(bench.calls)
    bench.script = answer
    assert grade(study, [bench.claude]).graders[0].already == kept
