"""Langfuse: scores as its API (v2, v3) gives them, and as it exports them to files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows, claimed
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.exchange.readers.spans import Span, add_traces, name_of
from evenhand.exchange.readers.texts import opened
from evenhand.texts import written

_KINDS = {"ANNOTATION": "human", "EVAL": "model"}
_ORIGINS = (*_KINDS, "API")
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def recognises(source: Source) -> bool:
    for score in _scores([source.first])[:1]:
        about = score.keys() & {"trace_id", "session_id", "subject"}
        origin = score.get("source")
        typed = "data_type" in score or origin in _ORIGINS or (source.header and origin == "")
        return {"name", "value"} <= score.keys() and bool(about and typed)
    return False


def read(source: Source) -> Export:
    """A trace, observation or session is a unit, a score's name a rubric; annotations are people's,
    evaluations models', and scores that came in by the API may be either.
    """
    rows = Rows(source)
    for score in _scores(source.records()):
        form = text_of(score.get("data_type"))
        if form in ("TEXT", "CORRECTION"):
            rows.leave_out(written("left_out.free_text"))
            continue
        origin = text_of(score.get("source"))
        claim = claimed(score.get("metadata"))
        claim.pop("rubric", None)
        rows.add(
            _unit(score),
            claim.pop("rater_id", "") or _rater(score, origin),
            claim.pop("rater_kind", _KINDS.get(origin, "")),
            _label(score, form),
            text_of(score.get("name")),
            created_at=score.get("updated_at") or score.get("timestamp"),
            **claim,
        )
    return rows.export(written("exchange.langfuse"))


def items(source: Source) -> ItemTable | None:
    """A trace is an item; in a file of observations alone, those that lie uppermost. Traces of one
    session belong together.
    """
    first = _records([source.first])[:1]
    if not any(map(_is_trace, first)) and not any(map(_is_observation, first)):
        if recognises(source):
            raise InputError(
                f"{source.name} holds scores of Langfuse without what they are about; export the "
                "traces or the observations, which have input and output"
            )
        return None
    spans: dict[str, Span] = {}
    for record in _records(source.records()):
        for span in _spans(record):
            spans.setdefault(f"{span.trace}/{span.id}", span)
    rows = ItemRows(source)
    add_traces(rows, spans.values())
    return rows.items(written("exchange.langfuse_items"), "session")


def _is_trace(record: Record) -> bool:
    return {"id", "timestamp", "name", "tags", "output"} <= record.keys() and bool(
        record.keys() & {"html_path", "environment", "bookmarked", "public"}
    )


def _is_observation(record: Record) -> bool:
    return {"id", "trace_id", "type"} <= record.keys() and bool(
        record.keys() & {"parent_observation_id", "environment"}
    )


def _spans(record: Record) -> Iterator[Span]:
    """The trace that a record is, and its observations; or the one observation."""
    if _is_trace(record):
        trace = text_of(record["id"])
        yield _span(record, trace, "", {"trace_id": trace})
        for each in map(_named, objects(record.get("observations"))):
            yield _observation(each, trace)
    elif _is_observation(record):
        yield _observation(record, text_of(record["trace_id"]))


def _observation(record: Record, trace: str) -> Span:
    own = text_of(record.get("id"))
    parent = text_of(record.get("parent_observation_id")) or trace
    return _span(record, trace, parent, {"trace_id": trace, "observation_id": own})


def _span(record: Record, trace: str, parent: str, ids: Record) -> Span:
    metadata = opened(record.get("metadata"))
    said = {name: _single(each) for name, each in record.items() if name not in _NO_FACTS}
    return Span(
        id=text_of(record.get("id")),
        trace=trace,
        parent=parent,
        kind=text_of(record.get("type")),
        given=opened(record.get("input")),
        made=opened(record.get("output")),
        unit="/".join(ids.values()),
        item_id=text_of(record.get("id")),
        ids=ids,
        model=name_of(record.get("model"), record.get("provided_model_name")),
        cluster=text_of(record.get("session_id")),
        about=said | (metadata if isinstance(metadata, dict) else {}),
    )


_NO_FACTS = (
    "id", "trace_id", "observation_id", "parent_observation_id", "session_id", "project_id",
    "input", "output", "metadata", "html_path", "start_time", "end_time", "timestamp",
    "created_at", "updated_at", "completion_start_time",
)  # fmt: skip


def _single(value: object) -> object:
    """A value; the page exports a score as a list of one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _records(records: list[Record]) -> list[Record]:
    """The records of a file, also of pages with `data` and of a trace that was downloaded with its
    observations, by names with underscores.
    """
    found = []
    for record in records:
        inner = [record]
        if "data" in record:
            inner = objects(record["data"])
        elif isinstance(record.get("trace"), dict):
            inner = [{"observations": record.get("observations")} | record["trace"]]
        found += inner
    return [_named(record) for record in found]


def _named(record: Record) -> Record:
    return {_WORDS.sub("_", name).lower(): value for name, value in record.items()}


def _scores(records: list[Record]) -> list[Record]:
    """The scores of a file, and those of its traces."""
    found = []
    for record in _records(records):
        if isinstance(record.get("scores"), list):
            found += [_named(score) for score in objects(record["scores"])]
        elif not _is_trace(record) and not _is_observation(record):
            found.append(record)
    return found


def _unit(score: Record) -> str:
    subject = score.get("subject")
    if isinstance(subject, dict):
        named = [subject.get("traceId") or subject.get("trace_id"), subject.get("id")]
    else:
        named = [score.get("trace_id") or score.get("session_id"), score.get("observation_id")]
    return "/".join(filter(None, map(text_of, named)))


def _rater(score: Record, origin: str) -> str:
    """Identify the rater: the author of an annotation, the evaluator or its model, or the API."""
    if origin == "ANNOTATION":
        said = [score.get("author_user_id"), score.get("author_user_name")]
    else:
        said = [inside(score, "metadata", "model"), score.get("evaluator_id"), origin]
    return next(filter(None, map(text_of, said)), "")


def _label(score: Record, form: str) -> object:
    value, word = score.get("value"), score.get("string_value")
    if form == "BOOLEAN":
        truth = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
        return truth.get(str(value).lower(), word)
    return word if word else value
