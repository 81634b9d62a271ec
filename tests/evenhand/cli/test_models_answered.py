"""Models that answer for a grader: named by `grade` and the report, and `gate` can refuse many."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer
from harness.studies import marked_study, with_labels
from tests.evenhand.cli.commands import Run

RULE = ("--require", "models_answered <= 1")


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    server = ProtocolServer()
    yield server
    server.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("models", "named", "code"),
    [
        (["test-model", "test-model-2026-01-02"], "test-model-2026-01-02 (8)", 0),
        (["test-model", "small-model"], "small-model (4), test-model (4)", 1),
        (["test-model-2026-01-02", "test-model-2026-03-04"], "test-model-2026-03-04 (4)", 1),
    ],
)
def test_the_models_that_answered_are_named(
    run: Run, server: ProtocolServer, tmp_path: Path, models: list[str], named: str, code: int
) -> None:
    turns = itertools.cycle(models)

    def script(call: Call) -> Reply:
        return replace(answer(call), body=answer(call).body | {"model": next(turns)})

    server.script = script
    study = marked_study(tmp_path / "study", pairs=4)
    with_labels(study, {who: ["1", "2"] * 4 for who in ("ann", "ben")}, "hedging")
    study.close()
    graded = run("grade", study.folder, "--grader", server.openai)
    assert named in graded.stdout
    assert ("More than one model answered" in graded.stderr) == bool(code)
    run("report", study.folder)
    report = (study.folder / "report" / "report.md").read_text("utf-8")
    assert named in report
    assert ("More than one model answered" in report) == bool(code)
    assert "the replies came from" in report  # the methods paragraph
    done = run("gate", study.folder, "--grader", server.openai, *RULE)
    assert done.returncode == code, done.stdout + done.stderr
