"""lm-evaluation-harness: the samples of a task (`--log_samples`, `samples_TASK_TIME.jsonl`)."""

from __future__ import annotations

from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.source import Record, Source, inside, text_of
from evenhand.exchange.readers.texts import opened, texts_of
from evenhand.texts import written

_OWN = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash",
}  # fmt: skip


def items(source: Source) -> ItemTable | None:
    """A generated text is an item, those on one document belong together; the metrics are columns.
    Likelihoods of given answers are no texts.
    """
    if not {"doc_id", "doc", "arguments", "resps"} <= source.first.keys():
        return None
    rows = ItemRows(source)
    for sample in source.records():
        given, generated = opened(_prompt(sample)), _generated(sample)
        doc = text_of(sample.get("doc_id"))
        if not generated:
            rows.leave_out(written("left_out.likelihoods"))
        for number, text in enumerate(generated, 1):
            rows.add(
                f"{doc}/{number}" if len(generated) > 1 else doc,
                texts_of(given, text, expected=sample.get("target")),
                cluster=doc,
                about={name: sample[name] for name in sample if name not in _OWN},
            )
    return rows.items(written("exchange.lm_eval_items"), "doc_id")


def _prompt(sample: Record) -> object:
    """What the model was given: newer versions name the arguments of each request."""
    arguments = sample.get("arguments")
    if isinstance(arguments, dict):
        return inside(next(iter(arguments.values()), None), "arg_0")
    first = arguments[0] if isinstance(arguments, list) and arguments else None
    return first[0] if isinstance(first, list) and first else first


def _generated(sample: Record) -> list[str]:
    responses = sample.get("resps")
    first = responses[0] if isinstance(responses, list) and responses else None
    # A number is read as a text, too: what was computed of an answer is a list.
    texts = first if isinstance(first, list) else [first]
    return [text for text in texts if type(text) is str and text]
