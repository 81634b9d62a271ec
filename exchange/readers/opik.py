"""Opik: traces and spans with feedback scores, as `search_traces` gives them and as `opik export`
writes each to a file.
"""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.exchange.readers.spans import Span, add_traces, name_of
from evenhand.texts import written

_KINDS = {"ui": "human", "online_scoring": "model"}
_TRACE = {"feedback_scores", "project_id", "thread_id", "span_count", "last_updated_at"}


def recognises(source: Source) -> bool:
    first = source.first
    own = first.get("trace") if "spans" in first else first
    if not isinstance(own, dict) or not {"id", "start_time"} <= own.keys():
        return False
    return own is not first or ("input" in own and bool(_TRACE & own.keys()))


def read(source: Source) -> Export:
    """A trace or span is a unit, a score's name a rubric. What people gave on the page is theirs,
    online scores are models'; scores by the SDK may be of either kind. A rule that runs under a
    person's name, as where all are called admin, is called online_scoring.
    """
    rows = Rows(source)
    found = list(_scores(source.records()))
    people = {author for _, author, origin, _, _ in found if _KINDS.get(origin) == "human"}
    for unit, author, origin, name, entry in found:
        is_person = _KINDS.get(origin) == "human"
        own = "" if origin == "sdk" or (author in people and not is_person) else author
        value = inside(entry, "category_name") or inside(entry, "value")
        at = name_of(inside(entry, "last_updated_at"))
        rows.add(unit, own or origin, _KINDS.get(origin, ""), value, name, created_at=at)
    return rows.export(written("exchange.opik"))


def _scores(records: list[Record]) -> Iterator[tuple[str, str, str, str, object]]:
    """Yield each score as unit, author, where it was given, name and entry."""
    for record, unit in _records(records):
        for score in objects(record.get("feedback_scores")):
            by = score.get("value_by_author")
            own = by if isinstance(by, dict) and by else {text_of(score.get("created_by")): score}
            for author, entry in own.items():
                origin = name_of(inside(entry, "source"), score.get("source"))
                yield unit, author, origin, text_of(score.get("name")), entry


def items(source: Source) -> ItemTable | None:
    """A trace is an item; in a file of spans alone, those that lie uppermost. Traces of one thread
    belong together.
    """
    if not recognises(source):
        return None
    rows = ItemRows(source)
    add_traces(rows, [_span(record, unit) for record, unit in _records(source.records())])
    return rows.items(written("exchange.opik_items"), "thread")


def _records(records: list[Record]) -> Iterator[tuple[Record, str]]:
    """The traces and spans of a file, with the name of each as a unit."""
    for record in records:
        trace = record.get("trace") if "spans" in record else record
        for each in [*objects([trace]), *objects(record.get("spans"))]:
            own = text_of(each.get("id"))
            above = text_of(each.get("trace_id"))
            yield each, f"{above}/{own}" if above else own


def _span(record: Record, unit: str) -> Span:
    own, trace = text_of(record.get("id")), text_of(record.get("trace_id"))
    metadata = record.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return Span(
        id=own,
        trace=trace or own,
        parent=text_of(record.get("parent_span_id")) or trace,
        kind=text_of(record.get("type")),
        given=record.get("input"),
        made=record.get("output"),
        unit=unit,
        item_id=own,
        ids={"trace_id": trace or own},
        model=name_of(record.get("model"), known.get("model")),
        cluster=text_of(record.get("thread_id")),
        expected=known.get("expected_output"),
        about=known,
    )
