"""Inspect (inspect_ai): the logs of its evaluations, `.eval` and `.json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows, claimed, plain_kind
from evenhand.exchange.readers.source import Record, Source, inside, objects, parsed, text_of
from evenhand.exchange.readers.texts import messages_in, texts_of
from evenhand.texts import written

_HEADERS = ("header.json", "_journal/start.json")
_BY_MODEL = ("model_graded_qa", "model_graded_fact")
_BY_CODE = (
    "includes", "match", "pattern", "answer", "choice", "exact", "f1", "math", "perplexity",
)  # fmt: skip
"""Inspect's own scorers, which compare the output with the target."""


def recognises(source: Source) -> bool:
    if source.archive:
        return any(name in source.archive.names for name in _HEADERS)
    document = source.document
    return isinstance(inside(document, "eval"), dict) and inside(document, "samples") is not None


def read(source: Source) -> Export:
    """A sample is a unit (of several epochs each), a scorer a rater. Where scores were edited, the
    scorer is a rubric, and its first value the model's; an edit is its author's.
    """
    rows = Rows(source)
    samples = list(_samples(source))
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


def items(source: Source) -> ItemTable | None:
    """A sample of one epoch is an item; its epochs belong together. Where the model called tools or
    spoke more than once, the item is the conversation. A scorer that is code gives a column.
    """
    if not recognises(source):
        return None
    rows = ItemRows(source)
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
    return rows.items(written("exchange.inspect_items"), "sample_id")


def _kept(sample: Record) -> Record:
    """Return what an item takes of a sample."""
    scores, metadata = sample.get("scores"), sample.get("metadata")
    scored = scores if isinstance(scores, dict) else {}
    by_code = {own: inside(scored[own], "value") for own in scored if own in _BY_CODE}
    return {
        "id": sample.get("id"),
        "epoch": sample.get("epoch"),
        "model": inside(sample, "output", "model"),
        "about": (metadata if isinstance(metadata, dict) else {}) | by_code,
        "texts": _texts(sample),
    }


def _texts(sample: Record) -> Record:
    attachments = sample.get("attachments")
    held = attachments if isinstance(attachments, dict) else {}
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
    if isinstance(value, str):
        return held.get(value.removeprefix("attachment://"), value)
    if isinstance(value, list):
        return [_with_attachments(each, held) for each in value]
    if isinstance(value, dict):
        return {name: _with_attachments(each, held) for name, each in value.items()}
    return value


def _several_epochs(samples: Iterable[Record]) -> bool:
    return any(text_of(sample.get("epoch")) not in ("", "1") for sample in samples)


def _header(source: Source) -> object:
    """What the log says of the evaluation."""
    archive = source.archive
    if archive is None:
        return source.document
    name = next(name for name in _HEADERS if name in archive.names)
    return parsed(archive.read(name), f"{source.name}, {name}")


def _samples(source: Source) -> Iterator[tuple[Record, Record]]:
    """Yield the id, epoch and metadata of each sample, and its scores by scorer."""
    for sample in _all_of_it(source):
        scores = sample.get("scores")
        known = {name: sample.get(name) for name in ("id", "epoch", "metadata")}
        own = scores if isinstance(scores, dict) else {}
        yield known, {name: score for name, score in own.items() if isinstance(score, dict)}


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
    if scorer in _BY_CODE and "rater_kind" not in claim:
        rows.leave_out(written("left_out.by_code"))
        return
    rubric = scorer if edited else ""
    reason = {"unscored_reason": text_of(score.get("reason"))} if not label_given(first) else {}
    _add_one(rows, unit, scorer, first, {**reason, **claim}, more, rubric)
    for before, edit in pairwise(history):
        author = text_of(inside(edit, "provenance", "author"))
        value = edit.get("value", "UNCHANGED")
        value = before.get("value") if value == "UNCHANGED" else value
        edit["value"] = value
        stamp = {"created_at": inside(edit, "provenance", "timestamp")}
        own = {**more, **stamp}
        _add_one(rows, unit, author, value, {"rater_kind": plain_kind(author)}, own, rubric)


def label_given(value: object) -> bool:
    """Return True if a score has a value; an unscored sample has none, or no number."""
    return value not in (None, "")


def _add_one(
    rows: Rows, unit: str, rater: str, value: object, claim: Record, more: Record, rubric: str
) -> None:
    """A rater's value; of several in one (a dictionary) each is a rubric of its own."""
    kind = claim.pop("rater_kind", "model" if rater in _BY_MODEL else "")
    rater, rubric = claim.pop("rater_id", rater), claim.pop("rubric", rubric)
    for part, each in value.items() if isinstance(value, dict) else ((rubric, value),):
        rows.add(unit, rater, kind, each, part, **{**claim, **more})
