"""Samples of lm-evaluation-harness (`--log_samples`): a task of its own, answered by a stand-in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

from harness.exports.contents import ANSWERS, QUESTIONS, TRUE, write_lines

TASK = """
task: office
dataset_path: json
dataset_kwargs: {data_files: {test: DOCS}}
test_split: test
output_type: generate_until
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


class Model(LM):
    """Says the answers in their order."""

    def generate_until(self, requests: list[Any]) -> list[str]:
        return [ANSWERS[request.doc_id] for request in requests]

    def loglikelihood(self, requests: list[Any]) -> Any:
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def make(out: Path) -> None:
    home = out / "lm-eval"
    home.mkdir()
    docs = ({"question": q, "answer": t} for q, t in zip(QUESTIONS, TRUE, strict=True))
    write_lines(home / "docs.jsonl", docs)
    (home / "office.yaml").write_text(TASK.replace("DOCS", str(home / "docs.jsonl")), "utf-8")
    tasks = TaskManager(include_path=str(home), include_defaults=False)
    found = simple_evaluate(Model(), tasks=["office"], task_manager=tasks, log_samples=True)
    tracker = EvaluationTracker(output_path=str(home / "results"))
    tracker.save_results_aggregated(results=found, samples=found["samples"])
    tracker.save_results_samples("office", found["samples"]["office"])
    (made,) = home.rglob("samples_office_*.jsonl")
    lines = [json.loads(line) for line in made.read_text("utf-8").splitlines()]
    write_lines(out / "items" / "samples_office.jsonl", lines)
    shutil.rmtree(home)
