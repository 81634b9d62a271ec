"""lighteval: the details of a task (`--save-details`, `details_TASK_TIME.parquet`)."""

from __future__ import annotations

from evenhand.exchange.readers.gold import Answer, add_answers, add_metrics
from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import (
    Record,
    Source,
    columns_of,
    inside,
    records_of,
    text_of,
)
from evenhand.exchange.readers.texts import texts_of
from evenhand.texts import written

_COLUMNS = ("doc", "metric", "model_response")


def recognises(source: Source) -> bool:
    return {*_COLUMNS} <= {*columns_of(source)} or {*_COLUMNS} <= source.first.keys()


def read(source: Source) -> Export:
    """A document is a unit, a task a rubric; the model's choice is its label, the gold option that
    of an adjudicator. A metric that a model gave is a rubric, too.
    """
    rows = Rows(source)
    answers = []
    for unit, record in _records(source):
        said, true = _choice(record)
        answers.append(Answer(unit, text_of(inside(record, "doc", "task_name")), said, true))
        metrics = record.get("metric")
        add_metrics(rows, unit, metrics if isinstance(metrics, dict) else {})
    add_answers(rows, answers)
    return rows.export(written("exchange.lighteval"))


def items(source: Source) -> ItemTable | None:
    """A generated text is an item, those on one document belong together; the metrics are columns.
    Likelihoods of given answers are no texts.
    """
    if not recognises(source):
        return None
    rows = ItemRows(source)
    for unit, record in _records(source):
        generated = _texts(record)
        if not generated:
            rows.leave_out(written("left_out.likelihoods"))
        _, true = _choice(record)
        for number, text in enumerate(generated, 1):
            given = inside(record, "model_response", "input") or inside(record, "doc", "query")
            rows.add(
                f"{unit}/{number}" if len(generated) > 1 else unit,
                texts_of(given, text, expected=true),
                cluster=unit,
                about=record.get("metric"),
            )
    return rows.items(written("exchange.lighteval_items"), "doc_id")


def _records(source: Source) -> list[tuple[str, Record]]:
    """The details of each document, by its id, or by its place where it has none."""
    parquet = columns_of(source)
    records = records_of(source, _COLUMNS) if parquet else source.records()
    return [
        (text_of(inside(each, "doc", "id")) or str(number), each)
        for number, each in enumerate(records)
    ]


def _texts(record: Record) -> list[str]:
    said = inside(record, "model_response", "text_post_processed")
    said = said or inside(record, "model_response", "text")
    return [text for text in map(text_of, said if isinstance(said, list) else ()) if text]


def _choice(record: Record) -> tuple[object, object]:
    """The likeliest of the options, or the generated text; and the gold option, or all of them."""
    options = inside(record, "doc", "choices")
    options = [text_of(each).strip() for each in options] if isinstance(options, list) else []
    gold = inside(record, "doc", "gold_index")
    places = [text_of(each) for each in (gold if isinstance(gold, list) else [gold])]
    true = [options[int(at)] for at in places if at.isdecimal() and int(at) < len(options)]
    chances = inside(record, "model_response", "logprobs")
    numbers = [float(text_of(each) or "-inf") for each in chances or ()]
    texts = _texts(record)
    said: object = texts[0].strip() if texts else None
    if len(numbers) == len(options) > 1:
        said = options[numbers.index(max(numbers))]
    return said, true[0] if len(true) == 1 else true or None
