"""LangSmith: feedback as `Client.list_feedback` or the API gives it."""

from __future__ import annotations

from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, text_of
from evenhand.texts import written

_KINDS = {"app": "human", "model": "model", "auto_eval": "model"}
_MODEL_NAMES = ("model", "evaluator", "evaluator_name")


def recognises(source: Source) -> bool:
    return {"key", "run_id", "feedback_source"} <= source.first.keys()


def read(source: Source) -> Export:
    """A run is a unit, a feedback's key a rubric. What people gave in the app is theirs; feedback
    by the API may be of either kind.
    """
    rows = Rows(source)
    for feedback in source.records():
        origin = text_of(inside(feedback, "feedback_source", "type"))
        value = feedback.get("value")
        rows.add(
            feedback.get("run_id") or feedback.get("trace_id"),
            _rater(feedback, origin),
            _KINDS.get(origin, ""),
            feedback.get("score") if value in (None, "") else value,
            text_of(feedback.get("key")),
            created_at=feedback.get("modified_at") or feedback.get("created_at"),
        )
    return rows.export(written("exchange.langsmith"))


def _rater(feedback: Record, origin: str) -> str:
    own = feedback.get("feedback_source")
    people = [inside(own, "user_name"), inside(own, "user_id")]
    models = [inside(own, "metadata", name) for name in _MODEL_NAMES]
    said = people if origin == "app" else [*models, *people, origin]
    return next(filter(None, map(text_of, said)), "")
