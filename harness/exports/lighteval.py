"""Export lighteval's details: a task with choices and one with a judge, with a fake model."""

from __future__ import annotations

import shutil
from pathlib import Path

from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.models.abstract_model import ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from harness.exports.contents import (
    ANSWERED_BY,
    ANSWERS,
    GPT,
    QUESTIONS,
    TRUE,
    UNITS,
    WORDS,
    labels,
)


def make(out: Path) -> None:
    home = out / "lighteval"
    tracker = EvaluationTracker(output_dir=str(home), save_details=True)
    tracker.general_config_logger.log_model_info(ModelConfig(model_name=ANSWERED_BY))
    log = tracker.details_logger
    for unit, ann, _, said in labels():
        choices = list(WORDS.values())
        doc = Doc(f"Is {unit} fair?", choices, choices.index(ann), id=unit, task_name="fair")
        own = [-0.5 if choice == said else -1.5 for choice in choices]
        answer = ModelResponse(logprobs=own, argmax_logits_eq_gold=[said == ann] * 2)
        log.log("fair", doc, answer, {"acc": float(said == ann)})
    for number, (question, answer, true) in enumerate(
        zip(QUESTIONS, ANSWERS, TRUE, strict=True), 1
    ):
        doc = Doc(question, [true], 0, id=f"q{number}", task_name="office")
        metric = {"judge_score": float(answer == true), "exact_match": float(answer == true)}
        log.log("office", doc, ModelResponse(text=[answer]), metric)
    assert len(UNITS) == len(GPT)
    tracker.save()
    for task, kept in (("fair", "lighteval.parquet"), ("office", "items/lighteval.parquet")):
        (made,) = home.rglob(f"details_{task}_*.parquet")
        shutil.copyfile(made, out / kept)
    shutil.rmtree(home)
