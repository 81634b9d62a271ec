"""LangSmith: feedback as `Client.list_feedback` or the API gives it."""

from __future__ import annotations

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows, claimed
from evenhand.exchange.readers.source import (
    Record,
    Source,
    columns_of,
    inside,
    records_of,
    text_of,
)
from evenhand.exchange.readers.spans import Span, add_traces, name_of
from evenhand.exchange.readers.texts import opened
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
        claim = claimed(inside(feedback, "feedback_source", "metadata"))
        claim.pop("rubric", None)
        rows.add(
            feedback.get("run_id") or feedback.get("trace_id"),
            claim.pop("rater_id", "") or _rater(feedback, origin),
            claim.pop("rater_kind", _KINDS.get(origin, "")),
            feedback.get("score") if value in (None, "") else value,
            text_of(feedback.get("key")),
            created_at=feedback.get("modified_at") or feedback.get("created_at"),
            **claim,
        )
    return rows.export(written("exchange.langsmith"))


def items(source: Source) -> ItemTable | None:
    """The uppermost run of a trace is an item; runs on one example of a dataset belong together. A
    feedback key that a run has one value of gives a column.
    """
    columns = columns_of(source)
    if not (set(columns) or source.first.keys()) >= _RUN:
        if recognises(source):
            raise InputError(
                f"{source.name} holds feedback of LangSmith without what it is about; write down "
                "the runs, as Client.list_runs() has them"
            )
        return None
    runs = records_of(source, columns) if columns else source.records()
    rows = ItemRows(source)
    add_traces(rows, map(_span, runs))
    return rows.items(written("exchange.langsmith_items"), "reference_example_id")


_RUN = {"id", "run_type", "inputs", "outputs"}


def _span(run: Record) -> Span:
    own = text_of(run.get("id"))
    extra = opened(run.get("extra"))
    known = inside(extra, "metadata")
    stats = opened(run.get("feedback_stats"))
    feedback = {
        name: _one_value(each) for name, each in (stats.items() if isinstance(stats, dict) else ())
    }
    return Span(
        id=own,
        trace=text_of(run.get("trace_id")) or own,
        parent=text_of(run.get("parent_run_id")),
        kind=text_of(run.get("run_type")),
        given=opened(run.get("inputs")),
        made=opened(run.get("outputs")),
        unit=own,
        item_id=own,
        ids={"run_id": own, "trace_id": text_of(run.get("trace_id"))},
        model=name_of(inside(known, "ls_model_name"), inside(extra, "invocation_params", "model")),
        cluster=text_of(run.get("reference_example_id")),
        about=feedback,
    )


def _one_value(stats: object) -> object:
    """The value of a feedback key that was given once; None where several were summed up."""
    if text_of(inside(stats, "n")) != "1":
        return None
    values = inside(stats, "values")
    return next(iter(values)) if isinstance(values, dict) and values else inside(stats, "avg")


def _rater(feedback: Record, origin: str) -> str:
    own = feedback.get("feedback_source")
    people = [inside(own, "user_name"), inside(own, "user_id")]
    models = [inside(own, "metadata", name) for name in _MODEL_NAMES]
    said = people if origin == "app" else [*models, *people, origin]
    return next(filter(None, map(text_of, said)), "")
