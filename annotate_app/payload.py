"""What travels between server and panel: plain data, and nothing that an annotator must not know.

To the panel go an opaque task id, the texts, the rubric's words and the progress; no unit id, no
subject, no order, no label. From the panel come answers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from annotate_app import strings

if TYPE_CHECKING:
    from rubrics import Block, Option
    from study import Study
    from study.annotation import AnnotationDesk, Task

__all__ = ["Answer", "page_data", "read_answers"]

_LONGEST_TEXT = 128
_LONGEST_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class Answer:
    """One submit of the panel; `option_key` is the option as it was shown."""

    submit_id: str
    task_id: str
    option_key: str
    seconds: float


def page_data(desk: AnnotationDesk, rater: str, receipts: Mapping[str, str]) -> dict[str, Any]:
    """Everything that the panel shows, as JSON-able data."""
    study = desk.study
    task = desk.next_task(rater)
    done, total = (task.done, task.total) if task else desk.progress(rater)
    return {
        "shelf": _shelf(study, rater),
        "rater": rater,
        "synthetic": study.config.synthetic,
        "words": strings.PANEL,
        "progress": {"done": done, "total": total},
        "receipts": dict(receipts),
        "task": None if task is None else _task(task),
    }


def read_answers(sent: Any) -> list[Answer]:
    """The answers in what a browser sent. Anything that is not an answer is left out."""
    entries = sent.get("answers") if isinstance(sent, Mapping) else None
    if not isinstance(entries, list):
        return []
    return [answer for entry in entries if (answer := _answer(entry)) is not None]


def _answer(entry: Any) -> Answer | None:
    match entry:
        case {
            "submit_id": str(submit_id),
            "task_id": str(task_id),
            "option_key": str(option_key),
            "seconds": int() | float() as seconds,
        } if math.isfinite(seconds):
            texts = (submit_id, task_id, option_key)
            if all(0 < len(text) <= _LONGEST_TEXT for text in texts):
                return Answer(*texts, seconds=min(max(float(seconds), 0.0), _LONGEST_SECONDS))
    return None


def _task(task: Task) -> dict[str, Any]:
    people = task.people
    return {
        "id": task.task_id,
        "title": people.title,
        "question": people.question,
        "instructions": people.instructions,
        "options": [_option(option) for option in people.options],
        "blocks": [_block(block) for block in people.blocks],
    }


def _option(option: Option) -> dict[str, Any]:
    return {
        "key": option.key,
        "name": option.name,
        "description": option.description,
        "examples": list(option.examples),
    }


def _block(block: Block) -> dict[str, str]:
    return {"label": block.label, "kind": block.kind, "side": block.side, "text": block.text}


def _shelf(study: Study, rater: str) -> str:
    """Where this browser keeps drafts and unsent answers: one place per study and rater."""
    owner = f"{study.folder.resolve()}\n{study.config.name}\n{study.config.seed}\n{rater}"
    return hashlib.sha256(owner.encode()).hexdigest()[:16]
