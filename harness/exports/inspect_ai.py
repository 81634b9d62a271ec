"""Export a log of Inspect: a grader's scores, edited by ann and ben, once without a name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import ProvenanceData, edit_score, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import ScoreEdit, includes, model_graded_qa

from harness.exports.contents import ANN, ANSWERS, BEN, GPT, JUDGED, QUESTIONS, TRUE, UNITS


def make(out: Path) -> None:
    grader = _mock("mockllm/grader", [f"GRADE: {'C' if each == 'y' else 'I'}" for each in GPT])
    model = _mock("mockllm/model", ["42"] * len(UNITS))
    samples = [
        Sample(id=unit, input=f"Question {unit}", target="42", metadata={"topic": "sums"})
        for unit in UNITS
    ]
    task = Task(dataset=samples, scorer=model_graded_qa(model=grader), name="sums")
    (log,) = evaluate(task, model=model, log_dir=str(out / "logs"), display="none", max_samples=1)
    assert log.status == "success", log.error
    log = read_eval_log(log.location)
    for person, said in (("ann", ANN), ("ben", BEN)):
        for unit, letter in zip(UNITS, said, strict=True):
            value = "C" if letter == "y" else "I"
            provenance = ProvenanceData(author=person, reason="read")
            edit = ScoreEdit(value=value, provenance=provenance)
            edit_score(log, unit, "model_graded_qa", edit)
    log.samples[7].scores["model_graded_qa"].history[-1].provenance = None
    write_eval_log(log, str(out / "inspect.eval"))
    shutil.rmtree(out / "logs")
    _make_items(out)


def _make_items(out: Path) -> None:
    """Write a log of the first two questions in two epochs, with a scorer that is code, too."""
    grader = _mock("mockllm/grader", [f"GRADE: {'C' if j == 'yes' else 'I'}" for j in JUDGED])
    samples = [
        Sample(id=f"q{n}", input=asked, target=TRUE[n - 1], metadata={"topic": "office"})
        for n, asked in enumerate(QUESTIONS[:2], 1)
    ]
    scorers = [model_graded_qa(model=grader), includes()]
    task = Task(dataset=samples, scorer=scorers, name="office", epochs=2)
    model = _mock("mockllm/model", ANSWERS)
    (log,) = evaluate(task, model=model, log_dir=str(out / "logs"), display="none", max_samples=1)
    assert log.status == "success", log.error
    write_eval_log(read_eval_log(log.location), str(out / "items" / "inspect.eval"))
    shutil.rmtree(out / "logs")


def _mock(name: str, texts: list[str]) -> Any:
    said = [ModelOutput.from_content(name, text) for text in texts]
    for each in said:
        each.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return get_model(name, custom_outputs=said)
