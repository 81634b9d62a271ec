"""lm-evaluation-harness: the samples of a task (`--log_samples`, `samples_TASK_TIME.jsonl`)."""

from __future__ import annotations

from evenhand.exchange.readers.gold import Answer, add_answers, add_metrics
from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.exchange.readers.texts import opened, texts_of
from evenhand.texts import written

_OWN = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash",
}  # fmt: skip


def recognises(source: Source) -> bool:
    return {"doc_id", "doc", "arguments", "resps"} <= source.first.keys()


def read(source: Source) -> Export:
    """A document is a unit; the model's choice is its label, the target the gold one. A filter is a
    rubric, where there are several.
    """
    rows = Rows(source)
    answers = []
    samples = source.records()
    units = rows.units([(text_of(each.get("doc_id")), each.get("doc")) for each in samples])
    filters = [text_of(each.get("filter")) for each in samples]
    several = len({*filters}) > 1
    for sample, unit, how in zip(samples, units, filters, strict=True):
        rows.describe(unit, sample.get("doc"))
        said, true = _choice(sample)
        rubric = how if how != "none" else ""
        answers.append(Answer(unit, rubric, said, true))
        named = sample.get("metrics")
        names = map(text_of, named if isinstance(named, list) else ())
        add_metrics(rows, unit, {name: sample.get(name) for name in names}, rubric * several)
    add_answers(rows, answers)
    return rows.export(written("exchange.lm_eval"))


def items(source: Source) -> ItemTable | None:
    """A generated text is an item, those on one document belong together; the metrics are columns.
    Likelihoods of given answers are no texts.
    """
    if not recognises(source):
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


def _choice(sample: Record) -> tuple[object, object]:
    """The likeliest of the options and the true one, or the answer as it was filtered and the
    target. The target may be a number of an option, which only the accuracy tells from its text.
    """
    kept, target = sample.get("filtered_resps"), sample.get("target")
    first = kept[0] if isinstance(kept, list) and kept else None
    if _generated(sample) or not isinstance(first, list):
        return (first[0] if isinstance(first, list) and first else first), target
    asked = sample.get("arguments")
    options, prompt = [], _prompt(sample)
    for each in objects([*asked.values()]) if isinstance(asked, dict) else ():
        if each.get("arg_0") == prompt:  # a mutual-information metric asks again without it
            options.append(text_of(each.get("arg_1")).strip())
    chances = [_number(_first(each)) for each in (kept or [])[: len(options)]]
    if not options or len(chances) < len(options):
        return None, target
    said = options[chances.index(max(chances))]
    text, at = text_of(target).strip(), text_of(target)
    able = {text} & {*options}
    if at.isdecimal() and int(at) < len(options):
        able.add(options[int(at)])
    if len(able) > 1 and (hit := _number(sample.get("acc"))) in (0, 1):
        able = {each for each in able if (each == said) == bool(hit)}
    return said, able.pop() if len(able) == 1 else None


def _first(value: object) -> object:
    """The first of a list; None for anything else."""
    return value[0] if isinstance(value, list) and value else None


def _number(value: object) -> float:
    try:
        return float(text_of(value))
    except ValueError:
        return float("-inf")


def _prompt(sample: Record) -> object:
    """The model's input; newer versions name the arguments of each request."""
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
