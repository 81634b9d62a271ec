"""Logs of OpenAI's evals: a task with options, and one whose answers a model graded, written by its
recorder (set OPENAI_API_KEY to anything, as its package asks for one).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evals.base import RunSpec
from evals.record import LocalRecorder

from harness.exports.contents import (
    ANSWERED_BY,
    ANSWERS,
    JUDGED,
    QUESTIONS,
    TRUE,
    labels,
)


def make(out: Path) -> None:
    log = _recorder(out / "openai_evals.jsonl", {"class": "evals.elsuite.basic.match:Match"})
    for unit, ann, _, said in labels():
        with log.as_default_recorder(unit):
            log.record_sampling(prompt=f"Is {unit} fair?", sampled=[said])
            log.record_match(said == ann, expected=ann, picked=said, sampled=said, options=["yes"])
    _end(log, out / "openai_evals.jsonl")

    graded = {
        "class": "evals.elsuite.modelgraded.classify:ModelBasedClassify",
        "args": {"modelgraded_spec": "fair"},
    }
    log = _recorder(out / "items" / "openai_evals.jsonl", graded)
    for number, (question, answer, true, judged) in enumerate(
        zip(QUESTIONS, ANSWERS, TRUE, JUDGED, strict=True), 1
    ):
        with log.as_default_recorder(f"q{number}"):
            messages = [{"role": "user", "content": question}]
            log.record_sampling(prompt=messages, sampled=[answer])
            log.record_metrics(choice=judged, score=float(judged == "yes"), ideal=true)
    _end(log, out / "items" / "openai_evals.jsonl")


def _recorder(file: Path, spec: dict[str, Any]) -> LocalRecorder:
    run = RunSpec(
        completion_fns=[ANSWERED_BY], eval_name="fair.dev.v0", base_eval="fair", split="dev",
        run_config={"eval_spec": spec, "seed": 1}, created_by="", run_id="261101",
        created_at="2026-11-01 12:00:00",
    )  # fmt: skip
    return LocalRecorder(str(file), run)


def _end(log: LocalRecorder, file: Path) -> None:
    log.flush_events()
    log.record_final_report({"accuracy": 0.75})
    assert file.is_file()
