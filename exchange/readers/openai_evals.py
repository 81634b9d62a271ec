"""OpenAI's evals: the log of a run (`oaieval`, a line for each event)."""

from __future__ import annotations

from evenhand.exchange.readers.gold import MODEL, Answer, add_answers
from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, text_of
from evenhand.exchange.readers.texts import opened, texts_of
from evenhand.texts import written

_EVENT = {"run_id", "event_id", "sample_id", "type", "data"}


def recognises(source: Source) -> bool:
    first = source.first
    return first.keys() >= _EVENT or isinstance(inside(first, "spec", "completion_fns"), list)


def read(source: Source) -> Export:
    """A sample is a unit. What the model picked is its label and what was expected the gold one;
    what a model-graded eval chose is the grader's label, its specification the rubric.
    """
    rows = Rows(source)
    records = source.records()
    answers = []
    for event in records:
        unit, data = text_of(event.get("sample_id")), event.get("data")
        if event.get("type") == "match" and isinstance(data, dict):
            answers.append(Answer(unit, "", data.get("picked"), data.get("expected")))
        elif event.get("type") == "metrics" and isinstance(data, dict):
            if "choice" not in data:
                rows.leave_out(written("left_out.by_code"), len(data))
                continue
            graded = _argument(records, "modelgraded_spec") or "graded"
            grader = _argument(records, "eval_completion_fn") or _model(records, -1) or graded
            rows.add(unit, grader, "model", data["choice"], graded)
    add_answers(rows, answers, _model(records, 0) or MODEL)
    return rows.export(written("exchange.openai_evals"))


def items(source: Source) -> ItemTable | None:
    """The first sampled text of a sample is an item: later ones are a grader's."""
    if not recognises(source):
        return None
    rows = ItemRows(source)
    records = source.records()
    expected = {
        text_of(event.get("sample_id")): inside(event, "data", "expected")
        or inside(event, "data", "ideal")
        for event in records
        if event.get("type") in ("match", "metrics")
    }
    seen = set()
    for event in records:
        unit = text_of(event.get("sample_id"))
        if event.get("type") == "sampling" and unit not in seen:
            seen.add(unit)
            given, made = opened(inside(event, "data", "prompt")), inside(event, "data", "sampled")
            texts = texts_of(given, made, expected=expected.get(unit))
            rows.add(unit, texts, subject=_model(records, 0))
    return rows.items(written("exchange.openai_evals_items"))


def _model(records: list[Record], place: int) -> str:
    """The model under test, which comes first, or the one that grades, which comes last."""
    names = inside(_spec(records), "completion_fns")
    known = names if isinstance(names, list) else []
    return text_of(known[place]) if len(known) > (0 if place == 0 else 1) else ""


def _argument(records: list[Record], name: str) -> str:
    return text_of(inside(_spec(records), "run_config", "eval_spec", "args", name))


def _spec(records: list[Record]) -> object:
    return next((each["spec"] for each in records if "spec" in each), None)
