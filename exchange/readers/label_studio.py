"""Label Studio: the exports JSON, JSON-MIN and CSV (labelstud.io/guide/export)."""

from __future__ import annotations

from evenhand.exchange.readers.rows import Export, Rows
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
    rows = Rows(source)
    for record in source.records():
        if _is_task(record):
            _add_task(rows, record)
        else:
            _add_small(rows, record)
    return rows.export(written("exchange.label_studio"))


def _is_task(record: Record) -> bool:
    return isinstance(record.get("data"), dict) and (
        "annotations" in record or "completions" in record or "predictions" in record
    )


def _add_task(rows: Rows, task: Record) -> None:
    unit = task["data"].get("unit_id") or task.get("id") or task.get("inner_id")
    rows.describe(unit, task["data"])
    for annotation in objects(task.get("annotations") or task.get("completions")):
        if annotation.get("was_cancelled") is True:
            rows.leave_out(written("left_out.cancelled"))
            continue
        more = {
            "seconds": annotation.get("lead_time"),
            "created_at": annotation.get("updated_at") or annotation.get("created_at"),
        }
        _add_results(rows, unit, _person(annotation.get("completed_by")), "human", annotation, more)
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


def _add_small(rows: Rows, record: Record) -> None:
    """JSON-MIN and CSV: the task's data, its `id`, the controls, then facts about the answer."""
    names = list(record)
    start = names.index("id") + 1 if "id" in names else len(names)
    end = names.index("annotator") if "annotator" in names[start:] else len(names)
    unit, rater = record.get("unit_id") or record.get("id"), _person(record.get("annotator"))
    rows.describe(unit, {name: record[name] for name in names[: start - 1]})
    more = {
        "seconds": record.get("lead_time"),
        "created_at": record.get("updated_at") or record.get("created_at"),
    }
    for rubric in names[start:end]:
        answer = _single(record[rubric])
        if isinstance(answer, dict):
            answer = answer.get("rating", answer.get("number", answer))
        rows.add(unit, rater, "human", answer, rubric, **more)
