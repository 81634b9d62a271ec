"""Export samples of lm-evaluation-harness (`--log_samples`): a task with answers in words and one
with choices, with a fake model.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

from harness.exports.contents import ANSWERS, QUESTIONS, TRUE, labels, write_lines

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
CHOICES = """
task: fair
dataset_path: json
dataset_kwargs: {data_files: {test: DOCS}}
test_split: test
output_type: multiple_choice
doc_to_text: "Is {{unit}} fair?"
doc_to_choice: ["yes", "no"]
doc_to_target: "{{label}}"
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""


class Model(LM):
    """A fake model that gives answers in order, and the grader's label where it has a choice."""

    def generate_until(self, requests: list[Any]) -> list[str]:
        return [ANSWERS[request.doc_id] for request in requests]

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        said = [label for *_, label in labels()]
        own = [request.args[1].strip() == said[request.doc_id] for request in requests]
        return [(-0.5 if chosen else -1.5, chosen) for chosen in own]

    def loglikelihood_rolling(self, requests: list[Any]) -> Any:
        raise NotImplementedError


def make(out: Path) -> None:
    home = out / "lm-eval"
    home.mkdir()
    office = [{"question": q, "answer": t} for q, t in zip(QUESTIONS, TRUE, strict=True)]
    fair = [{"unit": unit, "label": ann} for unit, ann, *_ in labels()]
    for name, task, docs in (("office", TASK, office), ("fair", CHOICES, fair)):
        write_lines(home / f"{name}_docs.jsonl", docs)
        task = task.replace("DOCS", str(home / f"{name}_docs.jsonl"))
        (home / f"{name}.yaml").write_text(task, "utf-8")
    tasks = TaskManager(include_path=str(home), include_defaults=False)
    found = simple_evaluate(Model(), tasks=["office", "fair"], task_manager=tasks, log_samples=True)
    tracker = EvaluationTracker(output_path=str(home / "results"))
    tracker.save_results_aggregated(results=found, samples=found["samples"])
    for name, folder in (("office", out / "items"), ("fair", out)):
        tracker.save_results_samples(name, found["samples"][name])
        (made,) = home.rglob(f"samples_{name}_*.jsonl")
        lines = [json.loads(line) for line in made.read_text("utf-8").splitlines()]
        write_lines(folder / f"samples_{name}.jsonl", lines)
    shutil.rmtree(home)
