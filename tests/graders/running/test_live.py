"""Live runs: the throttle, the first contact with a server, and what is told while a run waits."""

import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any

import anyio
import pytest

from evenhand.graders import running as live
from evenhand.graders.replies import MAX_TIMEOUTS, Transient
from evenhand.graders.running import Throttle
from harness.ports import free_port
from harness.replies import Call, Reply, answer, completion, error, message
from tests.graders.bench import Bench
from tests.graders.grading import grade


def test_the_limit_falls_once_per_round_and_rises_again() -> None:
    limits: list[int] = []

    async def refused(throttle: Throttle, status: int | None, started: anyio.Event) -> None:
        with suppress(Transient):
            async with throttle.slot():
                await started.wait()
                raise Transient("busy", status=status)

    async def main() -> None:
        throttle, started = Throttle(8), anyio.Event()
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(refused, throttle, 429, started)
            await anyio.sleep(0.01)
            started.set()
        limits.append(throttle.limit)  # eight refusals of one round: one fall, 8 -> 6
        for replies in (6, 100):  # six replies: one more; never above where it began
            for _ in range(replies):
                async with throttle.slot():
                    pass
            limits.append(throttle.limit)
        small = Throttle(3)
        for status in [500, None, 429, 429, 429, 429]:  # other faults leave it
            await refused(small, status, started)
        limits.append(small.limit)

    anyio.run(main)
    assert limits == [6, 7, 8, 1]


@pytest.mark.journey
def test_a_wait_for_a_busy_server_and_a_slow_reply_are_said(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr(live, "IDLE_SECONDS", 0.05)
    busy = error(429, "Slow down, please. \x1b[31m[red]" + "x" * 500, {"retry-after": "0.4"})

    refused: list[str] = []

    def reply(call: Call) -> Reply:
        """Be busy once, then answer at once about that item, and slowly about the other."""
        if not refused:
            refused.append(call.user)
            return busy
        return Reply(body=answer(call).body, delay=0.0 if call.user in refused else 1.0)

    bench.script = reply
    told: list[str] = []
    progress = {"progress": lambda done, total, label: told.append(label)}
    assert grade(bench.study(pairs=1), [bench.claude], wait_scale=1, **progress).scored == 2
    waits = [label for label in told if "waits" in label]
    assert waits
    for label in waits:
        assert label.startswith(f"{bench.claude} waits: 429 (Slow down, please. [31m[red]xxx")
        assert label.endswith(("attempt 2 of 8, next try in 1 s", "attempt 2 of 8 is under way"))
        assert len(label) < 250
        assert label.isprintable()
    assert bench.claude in told[told.index(waits[-1]) :]  # progress takes its place
    assert any("waiting for a reply" in label for label in told)


def test_a_server_that_hangs_is_given_up_after_two_tries(bench: Bench, grader: str) -> None:
    bench.script = lambda call: Reply(200, answer(call).body, delay=20.0)
    began = time.monotonic()
    summary = grade(bench.study(pairs=2), [grader], timeout=0.05)
    assert len(bench.calls) == MAX_TIMEOUTS == 2
    assert time.monotonic() - began < 10
    assert "no answer within 0.05 s" in summary.stopped[0]


def refusal(status: int, message: str, **more: Any) -> Reply:
    return Reply(status, {"error": {"message": message, **more}})


FILTERS = {
    "openai": completion("", finish_reason="content_filter"),
    "azure": refusal(400, "The response was filtered due to the prompt", code="content_filter",
        innererror={"code": "ResponsibleAIPolicyViolation"}),
    "litellm": refusal(400, "litellm.ContentPolicyViolationError: the prompt was refused"),
    "openrouter": refusal(403, "Your input was flagged by the moderation of the provider"),
}  # fmt: skip
GUARDRAIL = message("", stop_reason="guardrail_intervened")
BLOCKED = error(400, "Output blocked by content filtering policy")
OF_CLAUDE = [(BLOCKED, False), (GUARDRAIL, False), (GUARDRAIL, True)]


@pytest.mark.parametrize(
    ("grader", "filtered", "batch"),
    [*(("openai", each, False) for each in FILTERS.values()),
     *(("anthropic", *each) for each in OF_CLAUDE)],
    indirect=["grader"],
)  # fmt: skip
def test_a_content_filter_is_an_outcome(bench, grader, filtered, batch):
    bench.script = lambda call: filtered if call.unit == "p0001|m|a" else answer(call)
    study = bench.study(pairs=2)
    summary = grade(study, [grader], batch=batch)
    assert summary.graders[0].unscored == {"content_filter": 1}
    assert (summary.scored, summary.stopped) == (3, ())
    assert grade(study, [grader], batch=batch).graders[0].planned == 0


def test_a_refused_probe_sends_no_batch_and_is_asked_again_after_the_mend(bench, grader):
    bench.script = lambda call: error(400, "this model takes no such schema")
    study = bench.study(pairs=2)
    summary = grade(study, [grader], batch=True)
    assert bench.batches.made == []
    assert "no such schema" in summary.stopped[0]
    assert set(summary.graders[0].unscored) == {"request_failed"}
    filtered = [FILTERS["azure"]] if grader == bench.openai else []  # that sends the batch
    bench.script = lambda call: filtered.pop() if filtered else answer(call)
    again = grade(study, [grader], batch=True)
    scored = 3 if grader == bench.openai else 4
    assert (again.graders[0].already, again.scored, again.stopped) == (0, scored, ())


API = "no API at that address; for most servers it ends in /v1: write @{root}/v1"
NO_PATH = {
    "Ollama": Reply(404, "404 page not found"),
    "LM Studio": Reply(200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
    "a web page": Reply(200, "<!DOCTYPE html><html><title>Chat</title></html>"),
    "nginx": Reply(405, "<html><h1>405 Not Allowed</h1></html>"),
}
NO_MODEL = {
    "Ollama": (404, 'model "m" not found, try pulling it first'),
    "OpenRouter": (400, "m is not a valid model ID"),
    "DeepSeek": (400, "Model Not Exist"),
}
BAD_KEY = {"401": (401, "no"), "400": (400, "API key not valid. Please pass a valid API key.")}
NOWHERE = {
    "openai:m@http://127.0.0.1:{port}/v1": "nothing listens there; start the server",
    "anthropic:m@http://127.0.0.1:{port}": "nothing listens there; start the server",
    "openai:m@http://no-such-host.invalid/v1":
        "the name no-such-host.invalid is not known; check how it is spelled",
}  # fmt: skip
KEY = "the key in ANTHROPIC_API_KEY was refused; set a valid one and run again"
FIRST_CONTACT = {
    **{f"path {who}": ("openai:m@{root}", reply, API) for who, reply in NO_PATH.items()},
    **{f"model {who}": ("openai:m@{root}/v1", error(*each), "there is no model 'm' at {root}/v1; "
       "check the model's name") for who, each in NO_MODEL.items()},
    **{f"key {n}": ("anthropic:claude-test", error(*each), KEY) for n, each in BAD_KEY.items()},
    **{name: (name, None, why) for name, why in NOWHERE.items()},
}  # fmt: skip


SLOW = {"path a web page", *NOWHERE}


@pytest.mark.parametrize(
    "case",
    [pytest.param(each, marks=[pytest.mark.slow] * (each in SLOW)) for each in FIRST_CONTACT],
)
def test_a_first_contact_that_fails_stops_soon_with_what_to_mend(bench, case):
    grader, reply, why = FIRST_CONTACT[case]
    bench.script, began = lambda call: reply, time.monotonic()
    grader = grader.format(root=bench.root, port=free_port())
    summary = grade(bench.study(pairs=3), [grader], wait_scale=1)
    assert why.format(root=bench.root) in summary.stopped[0]
    assert time.monotonic() - began < 10, "at the usual pace"


def test_a_request_that_is_too_large_is_not_repeated_and_slows_nobody_down(bench, monkeypatch):
    said = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 31538."
    large, limits = error(429, said), []
    bench.script = lambda call: large if call.unit == "p0002|m|a" else answer(call)
    monkeypatch.setattr(Throttle, "_set", lambda self, limit: limits.append(limit - self.limit))
    summary = grade(bench.study(pairs=4), [bench.claude])
    assert (summary.scored, summary.graders[0].unscored) == (7, {"request_rejected: 429": 1})
    assert sum(call.unit == "p0002|m|a" for call in bench.calls) == 1
    assert all(step > 0 for step in limits)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_waits_for_what_is_paid_once_and_ends_twice(bench: Bench, times: int) -> None:
    begun, told = threading.Event(), []

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

    bench.script, study = slow, bench.study(pairs=20)
    thread = threading.Thread(target=interrupt)
    thread.start()
    progress = {"progress": lambda done, total, label: told.append(label)}
    with pytest.raises(KeyboardInterrupt):
        grade(study, [bench.claude], concurrency=4, **progress)
    thread.join()
    kept = len(study.ratings())
    assert any("press Ctrl-C again to end at once" in label for label in told)
    # Once: every reply that was asked for, and not one more.
    assert kept == len(bench.calls) if times == 1 else kept < len(bench.calls)
    bench.script = answer
    assert grade(study, [bench.claude]).graders[0].already == kept
