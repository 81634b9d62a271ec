"""doccano: the JSONL export, a ZIP archive with a file for each annotator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from evenhand.errors import InputError
from evenhand.exchange.readers.items import RESPONSES, ItemRows, ItemTable, own_fields
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, objects, records_in, text_of
from evenhand.texts import written

_TOGETHER = ("all", "unknown")
"""File names in doccano of a project in which annotators share one set of labels."""

_TEXTS = ("text", "data")
"""The column of the text; a project may call it otherwise than the tool does."""


def recognises(source: Source) -> bool:
    if source.archive:
        names = source.archive.names
        return bool(names) and all(name.endswith(".jsonl") for name in names)
    first = source.first
    return (
        "id" in first
        and any(name in first for name in _TEXTS)
        and (
            isinstance(first.get("label"), list)
            or any("user" in each for each in objects(first.get("annotations")))
        )
    )


def read(source: Source) -> Export:
    """An example is a unit, an annotator's file a rater. A shared set of labels names no rater."""
    rows = Rows(source)
    for rater, record in _records(source):
        _add(rows, record, rater)
    try:
        return rows.export(written("exchange.doccano"))
    except InputError as fault:
        if written("left_out.shared") not in str(fault):
            raise
        raise InputError(
            f"{source.name} comes from a project with shared annotation, whose export has lost who "
            "labelled what; turn shared annotation off, or rename its file after the one annotator"
        ) from None


def items(source: Source) -> ItemTable | None:
    """An example is an item, and raters read its text. A table with responses, too, is none."""
    if not recognises(source) or RESPONSES & source.first.keys():
        return None
    rows = ItemRows(source, fields=True)
    for _, record in _records(source):
        text = next((record[name] for name in _TEXTS if name in record), None)
        about = {name: record[name] for name in record if name not in ("id", "label", *_TEXTS)}
        rows.add(record.get("id"), own_fields({"text": text}), about=about)
    return rows.items(written("exchange.doccano_items"), show=["text"])


def _records(source: Source) -> Iterator[tuple[str, Record]]:
    """The annotator after whom a file is named, and each of its examples."""
    if source.archive is None:
        yield from ((source.path.stem, record) for record in source.records())
        return
    for name in source.archive.names:
        for record in records_in(source.archive.read(name), f"{source.name}, {name}"):
            yield PurePosixPath(name).stem, record


def _add(rows: Rows, record: Record, rater: str) -> None:
    unit = record.get("id")
    rows.describe(unit, {name: record[name] for name in record if name not in ("id", "label")})
    by_user: dict[str, list[object]] = {}
    if isinstance(record.get("label"), list):
        by_user[rater.removesuffix(".jsonl")] = record["label"]
    for annotation in objects(record.get("annotations")):
        by_user.setdefault(text_of(annotation.get("user")), []).append(annotation.get("label"))
    for user, labels in by_user.items():
        label = labels[0] if len(labels) == 1 else labels or None
        if user in _TOGETHER and not inside(record, "annotations"):
            rows.leave_out(written("left_out.shared"))
        elif isinstance(label, list) and label and isinstance(label[0], (list, dict)):
            rows.leave_out(written("left_out.regions"))
        else:
            rows.add(unit, user, "human", label)
