"""promptfoo: the results of `promptfoo eval -o FILE.json` or `promptfoo export`."""

from __future__ import annotations

from typing import Any

from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.exchange.readers.texts import opened, texts_of
from evenhand.texts import written

_BY_MODEL = (
    "llm-rubric", "model-graded-closedqa", "model-graded-factuality", "factuality", "g-eval",
    "answer-relevance", "context-faithfulness", "context-recall", "context-relevance",
    "conversation-relevance", "select-best", "search-rubric", "agent-rubric", "pi",
)  # fmt: skip
"""Assertions that a model answers (promptfoo.dev, configuration, model-graded metrics)."""

_NOT_UNDERSTOOD = ("Could not extract JSON from ", "Failed to parse ", "No output from ")


def recognises(source: Source) -> bool:
    return any("gradingResult" in result for result in _results(source)[:1])


def read(source: Source) -> Export:
    """An output is a unit. A person's rating is about the whole output, and so is a model's:
    whether all of its assertions passed. If it has several, each is a rubric of its own, too.
    """
    rows = Rows(source)
    results = _results(source)
    units = rows.units([(_unit(result), _content(result)) for result in results])
    for result, unit in zip(results, units, strict=True):
        rows.describe(unit, result.get("vars"))
        graded: dict[str, list[Record]] = {}
        for part in objects(inside(result, "gradingResult", "componentResults")):
            form = text_of(inside(part, "assertion", "type")).removeprefix("not-")
            if form == "human":
                rows.add(unit, _person(part), "human", part.get("pass"))
            elif form in _BY_MODEL:
                graded.setdefault(_grader(part, form), []).append(part)
            else:
                rows.leave_out(written("left_out.by_code"))
        for grader, parts in graded.items():
            _add_grades(rows, unit, grader, parts)
    return rows.export(written("exchange.promptfoo"))


def items(source: Source) -> ItemTable | None:
    """An output is an item; those of one test belong together."""
    if not any("response" in result and "vars" in result for result in _results(source)[:1]):
        return None
    rows = ItemRows(source)
    for result in _results(source):
        own = result.get("vars")
        given = opened(inside(result, "prompt", "raw"))
        texts = texts_of({"prompt": given or own} | (own if isinstance(own, dict) else {}), None)
        made = texts_of(given or own, inside(result, "response", "output"))
        provider = result.get("provider")
        rows.add(
            _unit(result),
            {name: texts[name] for name in ("context", "reference") if name in texts} | made,
            subject=text_of(inside(provider, "label")) or inside(provider, "id") or provider,
            cluster=result.get("testIdx"),
            about=own,
        )
    return rows.items(written("exchange.promptfoo_items"), "test")


def _unit(result: Record) -> str:
    unit = "-".join(text_of(result.get(name)) for name in ("testIdx", "promptIdx"))
    return unit if unit != "-" else text_of(result.get("id"))


def _content(result: Record) -> list[object]:
    """The variables and the output, which differ where a test was repeated."""
    return [result.get("vars"), inside(result, "response", "output")]


def _add_grades(rows: Rows, unit: str, grader: str, parts: list[Record]) -> None:
    """Add whether all assertions passed. Of one that the grader failed to answer nobody knows, and
    so of all of them, unless another has failed.
    """
    known = [part.get("pass") is True for part in parts if not _is_error(part)]
    error = "error" if len(known) < len(parts) and all(known) else ""
    rows.add(unit, grader, "model", None if error else all(known), unscored_reason=error)
    for part in parts if len(parts) > 1 else ():
        metric = text_of(inside(part, "assertion", "metric") or inside(part, "assertion", "value"))
        error = "error" if _is_error(part) else ""
        passed = None if error else part.get("pass")
        rows.add(unit, grader, "model", passed, metric[:80], unscored_reason=error)


def _is_error(part: Record) -> bool:
    """Return True if the grader's answer was not understood; older versions say so in the reason
    alone.
    """
    said = text_of(part.get("reason")).startswith(_NOT_UNDERSTOOD)
    return inside(part, "metadata", "graderError") is True or said


def _results(source: Source) -> list[Record]:
    document: Any = source.document
    for path in (("results", "results"), ("results",)):
        if found := objects(inside(document, *path)):
            return found
    return source.records() if "gradingResult" in source.first else []


def _person(part: Record) -> str:
    """Return the rater of a person's rating, which promptfoo does not name."""
    return text_of(inside(part, "assertion", "author")) or "human"


def _grader(part: Record, form: str) -> str:
    """The model that answered, by its provider's id; promptfoo's default one by the assertion."""
    provider = inside(part, "assertion", "provider")
    return text_of(provider) or text_of(inside(provider, "id")) or form
