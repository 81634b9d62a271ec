"""What a run waits for is said, a server that hangs is given up, and filters are outcomes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from evenhand.errors import InputError
from evenhand.graders.failures import HANGS
from evenhand.graders.running import run as run_module
from harness.protocol_server import ProtocolServer
from harness.replies import Reply, answer, completion, error, message
from harness.studies import MarkedStudy
from tests.graders.grading import grade

FAST = {"wait_scale": 0.0005}


def listening(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Any]:
    """What whoever watches is told, with little patience."""
    monkeypatch.setattr(run_module, "PATIENCE", 0.05)
    said: list[str] = []
    return said, lambda done, total, label: said.append(label)


def test_a_wait_for_a_busy_server_is_said(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "Slow down, please. \x1b[31m[red]" + "x" * 500
    busy = error(429, words, {"retry-after": "0.4"})
    server.script = lambda call: busy if call.nth == 1 else answer(call)
    said, progress = listening(monkeypatch)
    assert grade(marked_study(pairs=1), [claude], progress=progress).scored == 2
    waits = [label for label in said if "waits" in label]
    assert waits
    for label in waits:
        assert label.startswith(f"{claude} waits: 429 (Slow down, please. [31m[red]xxx")
        assert label.endswith(("attempt 2 of 8, next try in 1 s", "attempt 2 of 8 is under way"))
        assert len(label) < 250
        assert label.isprintable()
    assert claude in said[said.index(waits[-1]) :]  # progress takes its place


def test_a_slow_reply_is_said(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = lambda call: Reply(200, answer(call).body, delay=0.3)
    said, progress = listening(monkeypatch)
    grade(marked_study(pairs=1), [claude], progress=progress)
    assert any("waiting for a reply" in label for label in said)


@pytest.mark.parametrize("openai", [False, True])
def test_a_server_that_hangs_is_given_up_after_two_tries(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, openai: bool
) -> None:
    server.script = lambda call: Reply(200, answer(call).body, delay=20.0)
    began = time.monotonic()
    summary = grade(
        marked_study(pairs=5), [server.openai if openai else claude], timeout=0.2, **FAST
    )
    assert len(server.calls) == HANGS == 2
    assert time.monotonic() - began < 10
    assert "no answer within 0.2 s" in summary.stopped[0]
    with pytest.raises(InputError, match="timeout"):
        grade(marked_study(pairs=1, name="other"), [claude], timeout=0)


def refusal(status: int, message: str, **more: Any) -> Reply:
    return Reply(status, {"error": {"message": message, **more}})


FILTERS = {
    "openai": completion("", finish_reason="content_filter"),
    "gemini": completion("", finish_reason="SAFETY"),
    "azure": refusal(
        400,
        "The response was filtered due to the prompt",
        code="content_filter",
        innererror={"code": "ResponsibleAIPolicyViolation"},
    ),
    "litellm": refusal(400, "litellm.ContentPolicyViolationError: the prompt was refused"),
    "openrouter": refusal(403, "Your input was flagged by the moderation of the provider"),
    "alibaba": refusal(400, "Input data may contain", code="data_inspection_failed"),
}


@pytest.mark.parametrize("provider", FILTERS)
def test_a_content_filter_is_an_outcome(
    server: ProtocolServer, marked_study: MarkedStudy, provider: str
) -> None:
    filtered = FILTERS[provider]
    server.script = lambda call: filtered if call.unit == "p0001|m|a" else answer(call)
    study = marked_study(pairs=3)
    summary = grade(study, [server.openai], **FAST)
    assert summary.graders[0].unscored == {"content_filter": 1}
    assert (summary.scored, summary.stopped) == (5, ())
    assert grade(study, [server.openai]).graders[0].planned == 0


@pytest.mark.parametrize(
    ("filtered", "batch"),
    [
        (error(400, "Output blocked by content filtering policy"), False),
        (message("", stop_reason="guardrail_intervened"), False),
        (message("", stop_reason="guardrail_intervened"), True),
    ],
)
def test_claudes_filters_are_outcomes_too(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, filtered: Reply, batch: bool
) -> None:
    server.script = lambda call: filtered if call.unit == "p0001|m|a" else answer(call)
    study = marked_study(pairs=2, rubrics=("hedging",))
    summary = grade(study, [claude], batch=batch, **FAST)
    assert summary.graders[0].unscored == {"content_filter": 1}
    assert summary.scored == 3


@pytest.mark.parametrize("openai", [False, True])
def test_a_refused_probe_sends_no_batch_and_is_asked_again_after_the_mend(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, openai: bool
) -> None:
    grader = server.openai if openai else claude
    server.script = lambda call: error(400, "this model takes no such schema")
    study = marked_study(pairs=3)
    summary = grade(study, [grader], batch=True, **FAST)
    assert server.batches.made == []
    assert "no such schema" in summary.stopped[0]
    assert set(summary.graders[0].unscored) == {"request_failed"}
    server.script = answer
    again = grade(study, [grader], batch=True, **FAST)
    assert (again.graders[0].already, again.scored, again.stopped) == (0, 6, ())


def test_a_filtered_probe_sends_the_batch(
    server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    filtered = [FILTERS["azure"]]
    server.script = lambda call: filtered.pop() if filtered else answer(call)
    summary = grade(marked_study(pairs=2), [server.openai], batch=True, **FAST)
    assert (summary.scored, summary.stopped) == (3, ())
    assert summary.graders[0].unscored == {"content_filter": 1}
