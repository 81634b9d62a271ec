"""What travels between server and panel: plain data, and nothing that an annotator must not know.

To the panel go opaque task ids, the texts, the rubrics' words, the progress, and - where the rater
looks back - their own earlier answers; no unit id, no subject, no order, no other rater's label.
From the panel come answers, flags, and the wish to look at an earlier unit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from evenhand.annotate_app import strings
from evenhand.study.desk.answers import CONFIDENCE_LEVELS, Answer, Flag

if TYPE_CHECKING:
    from evenhand.rubrics import Option, TextBlock
    from evenhand.study import Study
    from evenhand.study.desk.answers import Receipt
    from evenhand.study.desk.desk import Sheet, Task

_LONGEST_ID = 128
_LONGEST_TEXT = 4000
_LONGEST_EXCERPT = 160
_LONGEST_SECONDS = 24 * 3600.0
_ANY_SECONDS = 1e12  # beyond it a number is no time, and may be none that a float can be
_MOST_AT_ONCE = 100
"""Of answers in a message. The panel sends again what it has no receipt for."""


@dataclass(frozen=True)
class Look:
    """A wish of the panel: "task" shows an earlier one, "list" lists them, "next" goes on."""

    nonce: str
    wish: str
    task_id: str = ""


@dataclass(frozen=True)
class View:
    """What a session looks at: an earlier task, or (None) the one whose turn it is."""

    task_id: str | None = None
    nonce: str = ""
    listing: bool = False


@dataclass(frozen=True)
class Setting:
    """What the panel is there for: practice or labelling, and for whom."""

    practice: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    """Words that differ from the usual ones."""
    finish: str = ""
    """Where to go when nothing is left; sent only then."""
    finish_idle: str = ""
    """The same for who found nothing to do from the start."""


class Desk(Protocol):
    """What the panel needs of a desk: that of the annotators or that of the practice."""

    study: Study

    def next_sheet(self, rater_id: str) -> Sheet | None: ...
    def reopen(self, rater_id: str, task_id: str = "") -> Sheet | None: ...
    def earlier(self, rater_id: str) -> list[Task]: ...
    def progress(self, rater_id: str) -> tuple[int, int]: ...
    def submit_all(self, rater_id: str, sent: Sequence[Answer | Flag]) -> list[Receipt]: ...


def page_data(
    desk: Desk,
    rater: str,
    receipts: Mapping[str, str],
    view: View,
    setting_now: Callable[[], Setting] = Setting,
) -> dict[str, Any]:
    """Everything that the panel shows, as JSON-able data."""
    study = desk.study
    back = None if view.task_id is None else desk.reopen(rater, view.task_id)
    sheet = back or desk.next_sheet(rater)
    done, total = (sheet.done, sheet.total) if sheet else desk.progress(rater)
    annotation = study.config.annotation
    # Asked once it is known that nothing is left: an exclusion that came between is in it.
    setting = setting_now()
    return {
        "drafts": _drafts_name(study, rater, setting.practice),
        "rater": rater,
        "practice": setting.practice,
        "synthetic": study.config.synthetic,
        "words": strings.PANEL | dict(setting.words),
        "asks": {
            "confidence": strings.CONFIDENCE if annotation.confidence else [],
            "rationale": annotation.rationale,
            "skip": strings.SKIP_REASONS,
            "flag": strings.FLAG_REASONS,
        },
        "progress": {"done": done, "total": total},
        "receipts": dict(receipts),
        "looked": view.nonce,
        "earlier": [_earlier(task) for task in desk.earlier(rater)] if view.listing else None,
        "sheet": None if sheet is None else _sheet(sheet, earlier=back is not None),
        "finish": "" if sheet else setting.finish if done else setting.finish_idle,
    }


def read_sent(sent: Any) -> list[Answer | Flag]:
    """The answers and flags in what a browser sent. Anything that is neither is left out."""
    entries = sent.get("answers") if isinstance(sent, Mapping) else None
    if not isinstance(entries, list):
        return []
    read = (_flag(entry) or _answer(entry) for entry in entries[:_MOST_AT_ONCE])
    return [each for each in read if each is not None]


def read_look(sent: Any) -> Look | None:
    """What the panel wants to look at, if it is a wish at all."""
    match sent:
        case {"nonce": str(nonce), "wish": "task" | "list" | "next" as wish, "task_id": str(task)}:
            return Look(nonce, wish, task) if _short([nonce]) and len(task) < _LONGEST_ID else None
    return None


def _answer(entry: Any) -> Answer | None:
    match entry:
        case {
            "submit_id": str(submit_id),
            "task_id": str(task_id),
            "option_key": str(option_key),
            "skip_reason": str(skip_reason),
            "seconds": int() | float() as seconds,
            "edit": bool(edit),
            "confidence": None | int() as confidence,
            "rationale": str(rationale),
        } if (
            -_ANY_SECONDS < seconds < _ANY_SECONDS
            and _short([submit_id, task_id, option_key or skip_reason, skip_reason or option_key])
            and not isinstance(confidence, bool)
            and confidence in (None, *CONFIDENCE_LEVELS)
        ):
            return Answer(
                submit_id=submit_id,
                task_id=task_id,
                option_key=option_key,
                skip_reason=skip_reason,
                seconds=min(max(float(seconds), 0.0), _LONGEST_SECONDS),
                edit=edit,
                confidence=confidence,
                rationale=_note(rationale),
            )
    return None


def _flag(entry: Any) -> Flag | None:
    match entry:
        case {
            "submit_id": str(submit_id),
            "task_id": str(task_id),
            "flag": str(reason),
            "text": str(text),
        } if _short([submit_id, task_id, reason]):
            return Flag(submit_id=submit_id, task_id=task_id, reason=reason, text=_note(text))
    return None


def _short(texts: Iterable[str]) -> bool:
    return all(0 < len(text) <= _LONGEST_ID and text.isprintable() for text in texts)


def _note(text: str) -> str:
    """What somebody wrote, without what no database keeps: halves of characters, and NUL."""
    kept = text.strip()[:_LONGEST_TEXT].encode("utf-8", "ignore").decode("utf-8")
    return kept.replace("\0", "")


def _sheet(sheet: Sheet, earlier: bool) -> dict[str, Any]:
    """The texts that any of the questions needs, once each, and the questions."""
    blocks = {block.variable: block for task in sheet.tasks for block in task.people.blocks}
    first = sheet.tasks[0].given
    return {
        "id": "-".join(task.task_id for task in sheet.tasks),
        "earlier": earlier,
        "before": sheet.before,
        # What was asked stands before what was answered, whichever rubric needs which.
        "blocks": [
            _block(block) for block in sorted(blocks.values(), key=lambda b: b.kind == "response")
        ],
        "questions": [_question(task) for task in sheet.tasks],
        "confidence": first.confidence if first else None,
        "rationale": first.rationale if first else "",
    }


def _question(task: Task) -> dict[str, Any]:
    people = task.people
    return {
        "task": task.task_id,
        "title": people.title,
        "question": people.question,
        "instructions": people.instructions,
        "options": [_option(option) for option in people.options],
        "given": _given(task),
    }


def _given(task: Task) -> dict[str, str] | None:
    if task.given is None:
        return None
    return {"option": task.given.option_key, "skip": task.given.skip_reason}


def _earlier(task: Task) -> dict[str, Any]:
    """One line of the list of earlier answers."""
    given = _given(task) or {"option": "", "skip": ""}
    names = {option.key: option.name for option in task.people.options}
    texts = [block.text for block in task.people.blocks if block.kind == "response"]
    return {
        "task": task.task_id,
        "title": task.people.title,
        "answer": names.get(given["option"]) or strings.SKIP_REASONS.get(given["skip"], ""),
        "skipped": bool(given["skip"]),
        "excerpt": texts[0][:_LONGEST_EXCERPT] if texts else "",
    }


def _option(option: Option) -> dict[str, Any]:
    return {
        "key": option.key,
        "name": option.name,
        "description": option.description,
        "examples": list(option.examples),
    }


def _block(block: TextBlock) -> dict[str, str]:
    return {"label": block.label, "kind": block.kind, "side": block.side, "text": block.text}


def _drafts_name(study: Study, rater: str, practice: bool) -> str:
    """Where this browser keeps drafts and unsent answers: one place per study and rater."""
    owner = f"{study.folder.resolve()}\n{study.config.name}\n{study.config.seed}\n{rater}"
    owner += "\npractice" if practice else ""
    return hashlib.sha256(owner.encode()).hexdigest()[:16]
