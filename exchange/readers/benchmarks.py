"""Logs of benchmarks: Inspect, lm-evaluation-harness, lighteval and OpenAI's evals.

A model under test that chooses among few options is read as a rater beside an adjudicator, who
gives the gold answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from evenhand.exchange.readers.rows import (
    LONGEST_LABEL,
    Export,
    ItemRows,
    Reader,
    Rows,
    claimed,
    has_fields,
    plain_kind,
)
from evenhand.exchange.readers.source import (
    TOOLS,
    Record,
    Source,
    fields_in,
    inside,
    mapped,
    objects,
    parsed,
    text_of,
)
from evenhand.exchange.readers.texts import messages_in, opened, texts_of
from evenhand.texts import written

GOLD, MODEL = "gold", "model"
"""The raters, where a file does not name the model."""
MOST_OPTIONS = 20
_JUDGE = re.compile(r"judge|llm|gpt", re.I)
"""Names of metrics that a model gives."""


@dataclass(frozen=True)
class Answer:
    """What a model said on a unit, and what is true; both may be None."""

    unit: str
    rubric: str
    said: object
    true: object


def _add_answers(rows: Rows, answers: Iterable[Answer], model: str = MODEL) -> None:
    """Add answers as labels if the true ones are options: few, and most of them more than once.
    Others are texts, which are counted as left out.
    """
    found = list(answers)
    options = {text_of(each.true) for each in found} - {""}
    few = 0 < len(options) <= min(MOST_OPTIONS, max(len(found) // 2, 1))
    if not few or any(len(option) > LONGEST_LABEL for option in options):
        if found:
            rows.leave_out(written("left_out.open_answers"), len(found))
        return
    for each in found:
        rows.add(each.unit, GOLD, "adjudicator", each.true, each.rubric)
        rows.add(each.unit, model, "model", each.said, each.rubric)


def _add_metrics(rows: Rows, unit: str, metrics: Mapping[str, object], how: str = "") -> None:
    """Add the metrics that a model gave, each as a rubric, or as one for each way in which answers
    were extracted (`how`); those that code computed are counted.
    """
    for name, value in metrics.items():
        if _JUDGE.search(name):
            rows.add(unit, name, "model", value, f"{name}, {how}" if how else name)
        else:
            rows.leave_out(written("left_out.by_code"))


def _add_texts(
    rows: ItemRows, doc: str, texts: list[str], given: object, expected: object, about: object
) -> None:
    """Add the texts generated on a document; they belong together. Likelihoods of given answers
    are no texts.
    """
    if not texts:
        rows.leave_out(written("left_out.likelihoods"))
    for number, text in enumerate(texts, 1):
        rows.add(
            f"{doc}/{number}" if len(texts) > 1 else doc,
            texts_of(given, text, expected=expected),
            cluster=doc,
            about=about,
        )


# ---- Inspect ------------------------------------------------------------------------------------
# The logs of its evaluations, `.eval` and `.json`.
_INSPECT = TOOLS["inspect"]


def _is_inspect(source: Source) -> bool:
    if source.archive:
        return any(name in source.archive.names for name in _INSPECT["headers"])
    document = source.document
    return isinstance(inside(document, "eval"), dict) and inside(document, "samples") is not None


def _read_inspect(rows: Rows, source: Source) -> Export:
    """A sample is a unit (of several epochs each), a scorer a rater. Where scores were edited, the
    scorer is a rubric, and its first value the model's; an edit is its author's.
    """
    samples = []
    for sample in _all_of_it(source):  # whose events, which fill a log, are let go
        scores = fields_in(sample.get("scores")).items()
        known = {name: sample.get(name) for name in ("id", "epoch", "metadata")}
        samples.append((known, {own: score for own, score in scores if isinstance(score, dict)}))
    several = _several_epochs(sample for sample, _ in samples)
    edited = any(
        objects(inside(score, "history"))[1:] for _, scores in samples for score in scores.values()
    )
    for sample, scores in samples:
        name, epoch = text_of(sample.get("id")), text_of(sample.get("epoch"))
        unit = f"{name}/{epoch}" if several else name
        rows.describe(unit, sample.get("metadata"))
        if not scores:
            rows.leave_out(written("left_out.no_score"))
        for scorer, score in scores.items():
            _add(rows, unit, scorer, score, {"cluster_id": name} if several else {}, edited)
    return rows.export(written("exchange.inspect_edited" if edited else "exchange.inspect"))


def _inspect_items(rows: ItemRows, source: Source) -> None:
    """A sample of one epoch is an item; its epochs belong together. Where the model called tools or
    spoke more than once, the item is the conversation. A scorer that is code gives a column.
    """
    # A sample's events, which fill a log, are let go one sample at a time.
    samples = [_kept(sample) for sample in _all_of_it(source)]
    several = _several_epochs(samples)
    model = inside(_header(source), "eval", "model")
    for sample in samples:
        name, epoch = text_of(sample["id"]), text_of(sample["epoch"])
        rows.add(
            f"{name}/{epoch}" if several else name,
            sample["texts"],
            subject=text_of(sample["model"]) or model,
            cluster=name,
            ids={"sample_id": name, **({"epoch": epoch} if several else {})},
            about=sample["about"],
        )


def _kept(sample: Record) -> Record:
    """Return what an item takes of a sample."""
    scored = fields_in(sample.get("scores"))
    by_code = {own: inside(scored[own], "value") for own in scored if own in _INSPECT["by_code"]}
    return {
        "id": sample.get("id"),
        "epoch": sample.get("epoch"),
        "model": inside(sample, "output", "model"),
        "about": fields_in(sample.get("metadata")) | by_code,
        "texts": _inspect_texts(sample),
    }


def _inspect_texts(sample: Record) -> Record:
    held = fields_in(sample.get("attachments"))
    sample = {
        name: _with_attachments(sample.get(name), held)
        for name in ("input", "target", "messages", "output")
    }
    target = sample["target"]
    target = ", ".join(map(text_of, target)) if isinstance(target, list) else target
    messages = messages_in(sample["messages"]) or []
    spoken = [each for each in messages if each["role"] in ("assistant", "tool")]
    if len(spoken) > 1:
        return texts_of(None, messages, expected=target)
    return texts_of(sample["input"], sample["output"], expected=target)


def _with_attachments(value: object, held: Record) -> object:
    """A value with the long texts that Inspect keeps apart in their places."""

    def text(leaf: object) -> object:
        if not isinstance(leaf, str):
            return leaf
        return held.get(leaf.removeprefix("attachment://"), leaf)

    return mapped(value, text)


def _several_epochs(samples: Iterable[Record]) -> bool:
    return any(text_of(sample.get("epoch")) not in ("", "1") for sample in samples)


def _header(source: Source) -> object:
    """The log's description of its evaluation."""
    archive = source.archive
    if archive is None:
        return source.document
    name = next(name for name in _INSPECT["headers"] if name in archive.names)
    return parsed(archive.read(name), f"{source.name}, {name}")


def _all_of_it(source: Source) -> Iterator[Record]:
    archive = source.archive
    if archive is None:
        yield from objects(inside(source.document, "samples"))
        return
    for name in archive.names:
        if name.startswith("samples/"):
            sample = parsed(archive.read(name), f"{source.name}, {name}")
            if isinstance(sample, dict):
                yield sample


def _add(rows: Rows, unit: str, scorer: str, score: Record, more: Record, edited: bool) -> None:
    known = score.get("metadata")
    claims = {text_of(each.get("name")): each for each in objects(inside(known, "raters"))}
    history = objects(score.get("history"))
    first = history[0].get("value") if history else score.get("value")
    if claims and isinstance(first, dict):  # evenhand's writer: a value for each rater
        for name, value in first.items():
            _add_one(rows, unit, name, value, claimed(claims.get(name)), more, "")
        return
    claim = claimed(known)
    if scorer in _INSPECT["by_code"] and "rater_kind" not in claim:
        rows.leave_out(written("left_out.by_code"))
        return
    rubric = scorer if edited else ""
    reason = {"unscored_reason": text_of(score.get("reason"))} if first in (None, "") else {}
    _add_one(rows, unit, scorer, first, {**reason, **claim}, more, rubric)
    for before, edit in pairwise(history):
        author = text_of(inside(edit, "provenance", "author"))
        value = edit.get("value", "UNCHANGED")
        value = before.get("value") if value == "UNCHANGED" else value
        edit["value"] = value
        stamp = {"created_at": inside(edit, "provenance", "timestamp")}
        own = {**more, **stamp}
        _add_one(rows, unit, author, value, {"rater_kind": plain_kind(author)}, own, rubric)


def _add_one(
    rows: Rows, unit: str, rater: str, value: object, claim: Record, more: Record, rubric: str
) -> None:
    """A rater's value; of several in one (a dictionary) each is a rubric of its own."""
    kind = claim.pop("rater_kind", "model" if rater in _INSPECT["by_model"] else "")
    rater, rubric = claim.pop("rater_id", rater), claim.pop("rubric", rubric)
    for part, each in value.items() if isinstance(value, dict) else ((rubric, value),):
        rows.add(unit, rater, kind, each, part, **{**claim, **more})


# ---- lm-evaluation-harness ----------------------------------------------------------------------
# The samples of a task (`--log_samples`, `samples_TASK_TIME.jsonl`).
def _read_lm_eval(rows: Rows, source: Source) -> None:
    """A document is a unit; the model's choice is its label, the target the gold one. A filter is a
    rubric, where there are several.
    """
    answers = []
    samples = source.records()
    units = rows.units([(text_of(each.get("doc_id")), each.get("doc")) for each in samples])
    filters = [text_of(each.get("filter")) for each in samples]
    several = len({*filters}) > 1
    for sample, unit, how in zip(samples, units, filters, strict=True):
        rows.describe(unit, sample.get("doc"))
        said, true = _lm_eval_choice(sample)
        rubric = how if how != "none" else ""
        answers.append(Answer(unit, rubric, said, true))
        named = sample.get("metrics")
        names = map(text_of, named if isinstance(named, list) else ())
        _add_metrics(rows, unit, {name: sample.get(name) for name in names}, rubric * several)
    _add_answers(rows, answers)


def _lm_eval_items(rows: ItemRows, source: Source) -> None:
    """A generated text is an item; the metrics are columns."""
    own = TOOLS["lm_eval"]["own"]
    for sample in source.records():
        about = {name: sample[name] for name in sample if name not in own}
        doc, prompt = text_of(sample.get("doc_id")), opened(_prompt(sample))
        _add_texts(rows, doc, _generated(sample), prompt, sample.get("target"), about)


def _lm_eval_choice(sample: Record) -> tuple[object, object]:
    """The likeliest of the options and the true one, or the answer as it was filtered and the
    target. The target may be a number of an option, which only the accuracy tells from its text.
    """
    kept, target = sample.get("filtered_resps"), sample.get("target")
    first = _first(kept)
    if _generated(sample) or not isinstance(first, list):
        return _first(first) if first and isinstance(first, list) else first, target
    options, prompt = [], _prompt(sample)
    for each in objects([*fields_in(sample.get("arguments")).values()]):
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
    first = _first(arguments)
    return _first(first) if first and isinstance(first, list) else first


def _generated(sample: Record) -> list[str]:
    first = _first(sample.get("resps"))
    # A number is read as a text, too: what was computed of an answer is a list.
    texts = first if isinstance(first, list) else [first]
    return [text for text in texts if type(text) is str and text]


# ---- lighteval ----------------------------------------------------------------------------------
# The details of a task (`--save-details`, `details_TASK_TIME.parquet`).
_COLUMNS = TOOLS["lighteval"]["ratings"]


def _read_lighteval(rows: Rows, source: Source) -> None:
    """A document is a unit, a task a rubric; the model's choice is its label, the gold option that
    of an adjudicator. A metric that a model gave is a rubric, too.
    """
    answers = []
    for unit, record in _records(source):
        said, true = _lighteval_choice(record)
        answers.append(Answer(unit, text_of(inside(record, "doc", "task_name")), said, true))
        _add_metrics(rows, unit, fields_in(record.get("metric")))
    _add_answers(rows, answers)


def _lighteval_items(rows: ItemRows, source: Source) -> None:
    """A generated text is an item; the metrics are columns."""
    for unit, record in _records(source):
        given = inside(record, "model_response", "input") or inside(record, "doc", "query")
        _, true = _lighteval_choice(record)
        _add_texts(rows, unit, _lighteval_texts(record), given, true, record.get("metric"))


def _records(source: Source) -> list[tuple[str, Record]]:
    """The details of each document, by its id, or by its place where it has none."""
    records = source.records(_COLUMNS if source.columns else ())
    return [
        (text_of(inside(each, "doc", "id")) or str(number), each)
        for number, each in enumerate(records)
    ]


def _lighteval_texts(record: Record) -> list[str]:
    said = inside(record, "model_response", "text_post_processed")
    said = said or inside(record, "model_response", "text")
    return [text for text in map(text_of, said if isinstance(said, list) else ()) if text]


def _lighteval_choice(record: Record) -> tuple[object, object]:
    """The likeliest of the options, or the generated text; and the gold option, or all of them."""
    options = inside(record, "doc", "choices")
    options = [text_of(each).strip() for each in options] if isinstance(options, list) else []
    gold = inside(record, "doc", "gold_index")
    places = [text_of(each) for each in (gold if isinstance(gold, list) else [gold])]
    true = [options[int(at)] for at in places if at.isdecimal() and int(at) < len(options)]
    chances = inside(record, "model_response", "logprobs")
    numbers = [float(text_of(each) or "-inf") for each in chances or ()]
    texts = _lighteval_texts(record)
    said: object = texts[0].strip() if texts else None
    if len(numbers) == len(options) > 1:
        said = options[numbers.index(max(numbers))]
    return said, true[0] if len(true) == 1 else true or None


# ---- OpenAI's evals -----------------------------------------------------------------------------
# The log of a run (`oaieval`, a line for each event).


def _is_openai_evals(source: Source) -> bool:
    first = source.first
    return first.keys() >= {*TOOLS["openai_evals"]["ratings"]} or isinstance(
        inside(first, "spec", "completion_fns"), list
    )


def _read_openai_evals(rows: Rows, source: Source) -> None:
    """A sample is a unit. What the model picked is its label and what was expected the gold one;
    what a model-graded eval chose is the grader's label, its specification the rubric.
    """
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
    _add_answers(rows, answers, _model(records, 0) or MODEL)


def _openai_evals_items(rows: ItemRows, source: Source) -> None:
    """The first sampled text of a sample is an item: later ones are a grader's."""
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


def _model(records: list[Record], place: int) -> str:
    """The model under test, which comes first, or the one that grades, which comes last."""
    names = inside(_spec(records), "completion_fns")
    known = names if isinstance(names, list) else []
    return text_of(known[place]) if len(known) > (0 if place == 0 else 1) else ""


def _argument(records: list[Record], name: str) -> str:
    return text_of(inside(_spec(records), "run_config", "eval_spec", "args", name))


def _spec(records: list[Record]) -> object:
    return next((each["spec"] for each in records if "spec" in each), None)


INSPECT = Reader(_is_inspect, _read_inspect, _inspect_items)
LM_EVAL = Reader(has_fields("lm_eval"), _read_lm_eval, _lm_eval_items)
LIGHTEVAL = Reader(has_fields("lighteval", in_tables=True), _read_lighteval, _lighteval_items)
OPENAI_EVALS = Reader(_is_openai_evals, _read_openai_evals, _openai_evals_items)
