"""What every export holds: eight units, the annotators ann and ben, a grader; or four answers to be
rated, with what they were made from. Synthetic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ANN, BEN, GPT = "yyyynnnn", "yyynnnny", "yyyynnyn"
WORDS = {"y": "yes", "n": "no"}
UNITS = [f"u{number}" for number in range(1, 9)]
TOPICS = ["tax", "rent"] * 4
GRADER = "openai/gpt-5-mini"
QUESTIONS = ["Where is the office?", "When did it move?", "Who runs it?", "What does it cost?"]
DOCUMENTS = ["The office moved from Bern to Basel in May.", "Ann runs the office."]
ANSWERS = ["In Basel.", "In March.", "Ann.", "I do not know."]
TRUE = ["In Basel.", "In May.", "Ann.", "Nobody says."]
ANSWERED_BY = "acme/small-2"
JUDGED = ["yes", "no", "yes", "yes"]
"""Four answers to be rated, and what the grader said of each."""
UUIDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(1, 9)]


def labels() -> list[tuple[str, str, str, str]]:
    """Return a unit with the labels of ann, ben and the grader."""
    return [
        (unit, WORDS[a], WORDS[b], WORDS[g])
        for unit, a, b, g in zip(UNITS, ANN, BEN, GPT, strict=True)
    ]


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, default=str) + "\n", "utf-8")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
