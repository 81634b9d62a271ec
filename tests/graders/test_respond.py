"""Subjects' responses by the runner: resumable, whole pairs only, refusals kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.graders import respond
from evenhand.graders.locking import only_runner
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, completion, error, message
from harness.studies import MarkedStudy


def said(call: Call) -> Reply:
    text = f"On {call.user}"
    return message(text) if call.path.endswith("/messages") else completion(text)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_every_prompt_is_answered_once(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, provider: str
) -> None:
    server.script = said
    study = marked_study(pairs=4)
    subject = claude if provider == "anthropic" else server.openai
    summary = respond(study, subject, wait_scale=0.001)
    assert (summary.run.scored, summary.added) == (8, 8)
    table = study.store.responses()
    own = table[table["subject"] == subject].set_index(["pair_id", "side"])["response"]
    assert own["p0002", "a"] == "On Argue for 2."
    assert own["p0002", "b"] == "On Argue against 2."
    assert [turn["role"] for turn in server.calls[0].body["messages"]] == ["user"]
    assert "system" not in server.calls[0].body
    assert respond(study, subject).run.planned == 0
    assert len(server.calls) == 8


def test_only_whole_pairs_enter_the_study(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    broken = {"Argue for 1."}
    server.script = lambda call: error(500) if call.user in broken else said(call)
    study = marked_study(pairs=2)
    first = respond(study, claude, wait_scale=0.0005)
    assert (first.run.unscored, first.added) == ({"request_failed": 1}, 2)
    assert "p0001|anthropic:claude-test" not in study.units()["unit_id"].tolist()
    broken.clear()
    assert respond(study, claude).added == 2
    assert len(server.calls) == 3 + 8 + 1


def test_a_refusal_is_a_response(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: message("I would rather not.", stop_reason="refusal")
    study = marked_study(pairs=1)
    assert respond(study, claude).added == 2
    assert study.store.responses()["response"].tolist()[:2] == ["I would rather not."] * 2


def test_a_second_runner_is_kept_off(tmp_path: Path, marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=1)
    with (
        only_runner(study.folder),
        pytest.raises(InputError, match=r"another run \(process \d+\)"),
        only_runner(study.folder),
    ):
        pass
    with only_runner(study.folder):
        pass
