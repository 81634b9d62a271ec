"""Potato: its export (JSONL, CSV, TSV), and the folder with each annotator's answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemRows, ItemTable, own_fields
from evenhand.exchange.readers.rows import LONGEST_LABEL, Export, Rows, plain_kind
from evenhand.exchange.readers.source import (
    MOST_BYTES,
    Record,
    Source,
    Written,
    inside,
    parsed,
    records_in,
    text_of,
)
from evenhand.texts import written

_STATE, _OLD = "user_state.json", "annotated_instances.jsonl"
_TEXTS = ("text_box", "free_response", "bad_text")
_VALUES = ("slider", "number", "value", "rating", "label")
_UNCHOSEN = (False, None, "", "false")
_KINDS = {"llm": "model", "tool": "model"}
_HEAD = {"instance_id", "user_id"}


def recognises(source: Source) -> bool:
    if source.path.is_dir():
        return any(True for _ in _answers(source.path))
    first = source.first
    return (
        {*source.header[:2]} == _HEAD
        or {"instance_id", "user_id", "labels"} <= first.keys()
        or {"user_id", "instance_id_to_label_to_value"} <= first.keys()
    )


def read(source: Source) -> Export:
    """An instance is a unit, a scheme a rubric, a user a person, unless the file has them
    otherwise.
    """
    rows = Rows(source)
    if source.path.is_dir():
        for file in _answers(source.path):
            _add_file(rows, file)
    if source.header and not _is_dotted(source.header):
        return _flat(rows, source)
    for record in source.records() if source.path.is_file() else ():
        if source.header:
            _add(rows, _unflattened(record))
        else:
            _add_state(rows, record) if "labels" not in record else _add(rows, record)
    return rows.export(written("exchange.potato"))


def items(source: Source) -> ItemTable | None:
    """Read the texts of the published table. Other files of Potato are refused, as they have
    answers by the id of an instance, whose text its data file has.
    """
    if not recognises(source):
        return None
    if source.header and not _is_dotted(source.header):
        records = source.records()
        texts, _ = _columns(records)
        rows = ItemRows(source, fields=True)
        for record in records if texts else ():
            rows.add(record["instance_id"], own_fields({name: record[name] for name in texts}))
        if texts:
            return rows.items(written("exchange.potato_items"))
    raise InputError(
        f"{source.name} holds answers of Potato without the texts that they are about; name the "
        "data file of the project (data_files in its configuration), which has them"
    )


def _is_dotted(header: Sequence[str]) -> bool:
    """Return True if a column is called after a scheme and a label, as the tool exports it."""
    return any("." in name.strip(".") for name in header)


def _flat(rows: Rows, source: Source) -> Export:
    """Read the table that studies with Potato publish: a column for each question, beside columns
    about the instance and about the user, which say one thing for each of them.
    """
    records = source.records()
    texts, questions = _columns(records)
    if not questions:
        raise InputError(
            f"{source.name} has a row for each user and instance of Potato, and no column tells "
            "users apart; name the column of labels: --format table --columns "
            f"unit=instance_id,rater=user_id,label={next(iter(records[0].keys() - _HEAD), 'label')}"
        )
    for record in records:
        unit, user = record["instance_id"], record["user_id"]
        rows.describe(unit, {name: record[name] for name in texts})
        for name in questions:
            rubric = name if len(questions) > 1 else ""
            rows.add(unit, user, plain_kind(user) or "human", record[name], rubric)
    rows.note(written("exchange.potato_flat", questions=", ".join(questions)))
    return rows.export(written("exchange.potato"))


def _columns(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """The columns that say one thing of each instance, and those that differ between users and
    between instances, which are answers.
    """
    about: dict[str, list[str]] = {"instance_id": [], "user_id": []}
    names = [name for name in (records[0] if records else {}) if name not in _HEAD]
    for key, found in about.items():
        for name in names:
            known = dict(reversed([(each[key], each[name]) for each in records]))
            if all(each[name] == known[each[key]] for each in records):
                found.append(name)
    of_unit, of_user = about["instance_id"], about["user_id"]
    answers = [name for name in names if name not in of_unit and name not in of_user]
    short = [
        name
        for name in answers
        if all(len(text_of(each[name])) <= LONGEST_LABEL for each in records)
    ]
    return [name for name in of_unit if name not in of_user], short


def _answers(folder: Path) -> Iterator[Path]:
    """The answers of each annotator, who has a folder of their own."""
    for own in sorted(folder.iterdir()):
        files = [own / name for name in (_STATE, _OLD)] if own.is_dir() else []
        yield from [file for file in files if file.is_file()][:1]


def _add_file(rows: Rows, file: Path) -> None:
    if file.stat().st_size > MOST_BYTES:
        return
    content, name = file.read_bytes(), f"{file.parent.name}/{file.name}"
    if file.name == _STATE:
        state = parsed(content, name)
        _add_state(rows, state if isinstance(state, dict) else {})
        return
    for record in records_in(content, name):
        labels = record.get("label_annotations")
        user = {"user_id": file.parent.name, "instance_id": record.get("id"), "labels": labels}
        _add(rows, user)


def _add_state(rows: Rows, state: Record) -> None:
    """A user's state: labels by instance, in newer ones as a list of scheme, label and value."""
    found = state.get("instance_id_to_label_to_value")
    for unit, given in found.items() if isinstance(found, dict) else ():
        labels: Record = given if isinstance(given, dict) else {}
        for pair in given if isinstance(given, list) else ():
            if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], dict):
                own = labels.setdefault(text_of(pair[0].get("schema")), {})
                own[text_of(pair[0].get("name"))] = pair[1]
        _add(rows, {"user_id": state.get("user_id"), "instance_id": unit, "labels": labels})


def _unflattened(cells: dict[str, str]) -> Record:
    """A row of the CSV, whose columns are named `scheme.label`, as a nested record."""
    labels: dict[str, dict[str, str]] = {}
    for name, cell in cells.items():
        scheme, dot, label = name.partition(".")
        if dot and cell and not label.startswith("_"):
            labels.setdefault(scheme, {})[label] = cell
    return {
        "instance_id": cells["instance_id"],
        "user_id": cells["user_id"],
        "labels": labels,
        "annotator_origin": {"kind": cells.get("annotator_origin", "")},
    }


def _add(rows: Rows, record: Record) -> None:
    kind = _KINDS.get(text_of(inside(record, "annotator_origin", "kind")), "human")
    labels = record.get("labels")
    for scheme, given in labels.items() if isinstance(labels, dict) else ():
        nested = inside(given, "labels")  # some keep the answer one layer down
        given = nested if isinstance(nested, (dict, list)) else given
        if isinstance(given, list):
            given = {text_of(each): True for each in given}
        own = given if isinstance(given, dict) else {"": given}
        own = {name: value for name, value in own.items() if value not in _UNCHOSEN}
        said = [_label(name, value) for name, value in own.items() if name not in _TEXTS]
        if len(said) < len(own):
            rows.leave_out(written("left_out.free_text"))
        if said or not own:
            value = said[0] if len(said) == 1 else said or None
            rows.add(record.get("instance_id"), record.get("user_id"), kind, value, scheme)


def _label(name: str, value: object) -> object:
    """The label chosen: mostly the name of the option; of a scale or a slider its value.

    >>> _label("yes", "yes"), _label("scale_3", "3"), _label("positive", True)
    ('yes', '3', 'positive')
    """
    is_value = name in _VALUES or name.startswith("scale_") or not name
    return Written(value) if is_value and isinstance(value, str) else name
