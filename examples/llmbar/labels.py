"""LLMBar's expert labels and its published graders' answers as one ratings table.

`python examples/llmbar/labels.py LLMBar llmbar.csv` reads a clone of the authors' repository.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COLUMNS = ("item_id", "rater_id", "rater_kind", "label", "order", "slice")
SUBSETS = (
    "Natural",
    "Adversarial/Neighbor",
    "Adversarial/GPTInst",
    "Adversarial/GPTOut",
    "Adversarial/Manual",
)
GRADERS = (
    "ChatGPT-0301/CoT",
    "ChatGPT-0301/Vanilla",
    "ChatGPT/CoT",
    "ChatGPT/Metrics_Reference",
    "ChatGPT/Vanilla",
    "Falcon/CoT",
    "Falcon/Vanilla",
    "GPT-4/CoT",
    "GPT-4/Metrics_Reference",
    "GPT-4/Vanilla",
    "LLaMA2/CoT",
    "LLaMA2/Vanilla",
    "PaLM2/CoT",
    "PaLM2/Vanilla",
)
"""Model and prompt, as the authors name them: those that answer in both orders by one label."""

Row = tuple[str, str, str, str, str, str]


def rows(clone: Path) -> Iterator[Row]:
    """By subset: the expert's labels, then each grader's, for both orders of the two outputs.

    The authors have already turned the answers on swapped outputs back to the original order.
    """
    for subset in SUBSETS:
        folder = clone / "Dataset" / "LLMBar" / subset
        for n, unit in enumerate(_read(folder / "dataset.json")):
            yield f"{subset}/{n}", "gold", "human", str(unit["label"]), "", subset
        for grader in GRADERS:
            for n, unit in enumerate(_read(folder / "evaluators" / grader / "result.json")):
                step, answers = _last_step(unit["results"])
                rater = f"{grader}#run{step}" if step else grader
                for order, swap in (("ab", "False"), ("ba", "True")):
                    winner = str(answers[f"swap = {swap}"]["winner"])
                    label = winner if winner in ("1", "2") else ""
                    yield f"{subset}/{n}", rater, "model", label, order, subset


def _last_step(results: list[Any]) -> tuple[int, dict[str, Any]]:
    """The answer, and how many steps (metrics, a reference answer) the grader wrote before it."""
    (found,) = ((step, each) for step, each in enumerate(results) if isinstance(each, dict))
    return found


def _read(file: Path) -> list[dict[str, Any]]:
    units: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return units


def main(clone: str, out: str) -> None:
    with Path(out).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows(Path(clone)))


if __name__ == "__main__":
    main(*sys.argv[1:])
