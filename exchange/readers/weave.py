"""W&B Weave: calls with their feedback (`get_calls(include_feedback=True)`, `to_dict`), and
feedback by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.exchange.readers.spans import Span, add_traces, name_of
from evenhand.texts import written

_CALL = {"op_name", "trace_id", "inputs"}
_FEEDBACK = {"feedback_type", "payload", "weave_ref"}
_ANNOTATION, _RUNNABLE = "wandb.annotation.", "wandb.runnable."
_REASONS = ("reason", "reasoning", "explanation", "rationale", "comment", "justification")
"""What a scorer returns beside its labels."""
_NOTE, _REACTION = "wandb.note.", "wandb.reaction."


def recognises(source: Source) -> bool:
    return source.first.keys() >= _CALL or source.first.keys() >= _FEEDBACK


def read(source: Source) -> Export:
    """A call is a unit, an annotation's name a rubric, and so is each value that a scorer gave.
    Annotations and reactions are people's; a scorer may be a model or code.
    """
    rows = Rows(source)
    for feedback in _feedback(source.records()):
        kind, payload = text_of(feedback.get("feedback_type")), feedback.get("payload")
        unit = text_of(feedback.get("weave_ref")).rpartition("/")[2]
        person = name_of(feedback.get("creator"), feedback.get("wb_user_id"))
        when = feedback.get("created_at")
        if kind.startswith(_NOTE):
            rows.leave_out(written("left_out.free_text"))
        elif kind.startswith(_REACTION):
            value = inside(payload, "alias") or inside(payload, "emoji")
            rows.add(unit, person, "human", value, "reaction", created_at=when)
        elif kind.startswith(_RUNNABLE):
            scorer = kind.removeprefix(_RUNNABLE)
            output = inside(payload, "output")
            given = output if isinstance(output, dict) else {scorer: output}
            for name, value in given.items():
                if name in _REASONS:
                    rows.leave_out(written("left_out.free_text"))
                else:
                    rows.add(unit, scorer, "", value, name, created_at=when)
        else:
            annotated = kind.startswith(_ANNOTATION)
            rubric, who = kind.removeprefix(_ANNOTATION), "human" if annotated else ""
            rows.add(unit, person, who, inside(payload, "value"), rubric, created_at=when)
    return rows.export(written("exchange.weave"))


def items(source: Source) -> ItemTable | None:
    """The uppermost call of a trace that has an output is an item."""
    if not source.first.keys() >= _CALL:
        return None
    rows = ItemRows(source)
    add_traces(rows, map(_span, source.records()))
    return rows.items(written("exchange.weave_items"), "thread")


def _feedback(records: list[Record]) -> Iterator[Record]:
    """The feedback of a file, and that of its calls."""
    for record in records:
        if record.keys() >= _FEEDBACK:
            yield record
        for each in objects(inside(record, "summary", "weave", "feedback")):
            yield {"weave_ref": record.get("id")} | each


def _span(call: Record) -> Span:
    own = text_of(call.get("id"))
    usage = inside(call, "summary", "usage")
    attributes = call.get("attributes")
    return Span(
        id=own,
        trace=text_of(call.get("trace_id")),
        parent=text_of(call.get("parent_id")),
        kind="",
        given=call.get("inputs"),
        made=call.get("output"),
        unit=own,
        item_id=own,
        ids={"call_id": own, "trace_id": text_of(call.get("trace_id"))},
        model=next(iter(usage), "") if isinstance(usage, dict) else "",
        cluster=text_of(call.get("thread_id")),
        about=attributes if isinstance(attributes, dict) else {},
    )
