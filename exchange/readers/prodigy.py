"""Prodigy: the JSONL of `prodigy db-out`, choices and labels (prodi.gy/docs/api-interfaces)."""

from __future__ import annotations

from evenhand.exchange.readers.items import ItemRows, ItemTable, own_fields
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, text_of
from evenhand.texts import written


def recognises(source: Source) -> bool:
    return {"_input_hash", "_task_hash", "answer"} <= source.first.keys()


def read(source: Source) -> Export:
    """An input is a unit, an annotator's session a person. Of a choice the label is the option, of
    one label to accept or reject it is the answer, and the label is the rubric.
    """
    rows = Rows(source)
    for record in source.records():
        if text_of(record.get("answer")) not in ("accept", "reject"):
            rows.leave_out(written("left_out.ignored"))
            continue
        value, rubric = _answer(record)
        unit = record.get("_input_hash")
        rater = record.get("_annotator_id") or record.get("_session_id")
        rows.describe(unit, record.get("meta"))
        rows.add(unit, rater, "human", value, rubric, created_at=record.get("_timestamp"))
    return rows.export(written("exchange.prodigy"))


def items(source: Source) -> ItemTable | None:
    """An input is an item: the texts of the task by the names that they have there."""
    if not recognises(source):
        return None
    rows = ItemRows(source, fields=True)
    for record in source.records():
        own = {
            name: value
            for name, value in record.items()
            if type(value) is str and name not in ("answer", "label") and name[:1] != "_"
        }
        rows.add(record.get("_input_hash"), own_fields(own), about=record.get("meta"))
    return rows.items(written("exchange.prodigy_items"))


def _answer(record: Record) -> tuple[object, str]:
    """Return the answer of a record, and its rubric."""
    accepted = record.get("accept")
    if isinstance(accepted, list) and record.get("options"):
        chosen = accepted if record["answer"] == "accept" else []
        return (chosen[0] if len(chosen) == 1 else chosen or None), ""
    if "spans" in record and "label" not in record:
        return [], ""
    return record["answer"], text_of(record.get("label"))
