"""Label Studio: the exports JSON and JSON-MIN (labelstud.io/guide/export).

Its CSV and TSV sort the columns by name, so that nothing tells labels from the task's own data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemRows, ItemTable, own_fields
from evenhand.exchange.readers.rows import Export, Rows, one_line
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.texts import written

_ANSWERS = {"choices": "choices", "rating": "rating", "number": "number", "pairwise": "selected"}
"""Field of a result's value that has the label, by the type of the result."""
_SMALL = {"id", "annotator", "annotation_id", "lead_time"}


def recognises(source: Source) -> bool:
    first = source.first
    return _is_task(first) or first.keys() >= _SMALL


def read(source: Source) -> Export:
    """A task is a unit, by the `unit_id` of its data if it has one. A control (`from_name`) is a
    rubric; an annotation is a person's rating, a prediction that of a model version.
    """
    if source.header:
        raise InputError(
            f"{source.name} is a table of Label Studio, which does not say which columns are "
            "labels; export the project as JSON, or name a column of labels: --format table "
            "--columns unit=id,rater=annotator,label=COLUMN --human NAME,..."
        )
    rows = Rows(source)
    records = source.records()
    addresses = _addresses(records)
    units = rows.units([_named(record) for record in records])
    for record, unit in zip(records, units, strict=True):
        if _is_task(record):
            _add_task(rows, unit, record, addresses)
        else:
            _add_small(rows, unit, record)
    return rows.export(written("exchange.label_studio"))


def items(source: Source) -> ItemTable | None:
    """A task is an item, its data are texts or facts by the names that they have there."""
    first = source.first
    if source.header and recognises(source):
        raise InputError(
            f"{source.name} is a table of Label Studio, with a row for each annotation; export the "
            "project as JSON"
        )
    plain = isinstance(first.get("data"), dict) and first.keys() <= _PLAIN
    if not plain and not recognises(source):
        return None
    rows = ItemRows(source, fields=True)
    for record in source.records():
        data = record.get("data")
        if not isinstance(data, dict):
            data = _small_data(record)
        fields = own_fields(data)
        task = text_of(record.get("id") or record.get("inner_id"))
        unit = text_of(data.get("unit_id")) or task
        rows.add(unit, fields, item_id=task, ids={"task_id": task} if task else {})
    return rows.items(written("exchange.label_studio_items"))


_PLAIN = {"id", "inner_id", "data", "meta", "created_at", "updated_at", "project"}


def _is_task(record: Record) -> bool:
    return isinstance(record.get("data"), dict) and (
        "annotations" in record or "completions" in record or "predictions" in record
    )


def _addresses(tasks: Iterable[Record]) -> dict[str, object]:
    """The address of each annotator, by id: exports of one project may name a person by either."""
    annotations = (
        each
        for task in tasks
        for each in objects(task.get("annotations") or task.get("completions"))
    )
    people = (each.get("completed_by") for each in annotations)
    return {
        text_of(person.get("id")): person["email"]
        for person in people
        if isinstance(person, dict) and person.get("email")
    }


def _named(record: Record) -> tuple[str, Record]:
    """The id and the data of a task. Tasks of several projects may have one id."""
    data = record["data"] if _is_task(record) else _small_data(record)
    return one_line(data.get("unit_id") or record.get("id") or record.get("inner_id")), data


def _add_task(rows: Rows, unit: str, task: Record, addresses: Mapping[str, object]) -> None:
    rows.describe(unit, task["data"])
    for annotation in objects(task.get("annotations") or task.get("completions")):
        if annotation.get("was_cancelled") is True:
            rows.leave_out(written("left_out.cancelled"))
            continue
        more = {
            "seconds": annotation.get("lead_time"),
            "created_at": annotation.get("updated_at") or annotation.get("created_at"),
        }
        person = _person(annotation.get("completed_by"))
        person = addresses.get(text_of(person), person)
        _add_results(rows, unit, person, "human", annotation, more)
    if drafts := objects(task.get("drafts")):
        rows.leave_out(written("left_out.drafts"), len(drafts))
    predictions = task.get("predictions") or []
    for prediction in predictions if isinstance(predictions, list) else []:
        if not isinstance(prediction, dict):
            rows.leave_out(written("left_out.only_id"))
            continue
        more = {"created_at": prediction.get("created_at")}
        version = prediction.get("model_version")
        _add_results(rows, unit, version, "model", prediction, more)


def _add_results(
    rows: Rows, unit: object, rater: object, kind: str, annotation: Record, more: Record
) -> None:
    given: dict[str, list[object]] = {}
    if annotation.get("result") == []:
        rows.leave_out(written("left_out.empty"))
    for result in objects(annotation.get("result")):
        form = text_of(result.get("type"))
        if form == "textarea":
            rows.leave_out(written("left_out.free_text"))
        elif form not in _ANSWERS:
            rows.leave_out(written("left_out.regions"))
        else:
            answer = inside(result, "value", _ANSWERS[form])
            given.setdefault(text_of(result.get("from_name")), []).append(_single(answer))
    for rubric, answers in given.items():
        rows.add(unit, rater, kind, answers[0] if len(answers) == 1 else answers, rubric, **more)


def _person(completed_by: object) -> object:
    """Identify the annotator: an id, or an object with an address and an id."""
    if isinstance(completed_by, dict):
        return completed_by.get("email") or completed_by.get("id")
    return completed_by


def _single(answer: object) -> object:
    """The one choice of a list."""
    return answer[0] if isinstance(answer, list) and len(answer) == 1 else answer


def _small_data(record: Record) -> Record:
    """The task's data in JSON-MIN, which come before its id."""
    names = list(record)
    return {name: record[name] for name in names[: names.index("id")]} if "id" in record else {}


def _add_small(rows: Rows, unit: str, record: Record) -> None:
    """JSON-MIN: the task's data, its `id`, the controls, then facts about the answer."""
    names = list(record)
    start = names.index("id") + 1 if "id" in names else len(names)
    end = names.index("annotator") if "annotator" in names[start:] else len(names)
    rater = _person(record.get("annotator"))
    rows.describe(unit, _small_data(record))
    more = {
        "seconds": record.get("lead_time"),
        "created_at": record.get("updated_at") or record.get("created_at"),
    }
    for rubric in names[start:end]:
        answer = _single(record[rubric])
        if isinstance(answer, dict):
            one = answer.get("rating", answer.get("number"))
            answer = answer.get("choices", answer) if one is None else one
        rows.add(unit, rater, "human", answer, rubric, **more)
