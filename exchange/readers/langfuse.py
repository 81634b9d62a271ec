"""Langfuse: scores as its API (v2, v3) gives them, and as it exports them to files."""

from __future__ import annotations

import re

from evenhand.exchange.readers.rows import Export, Rows, claimed
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.texts import written

_KINDS = {"ANNOTATION": "human", "EVAL": "model"}
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def recognises(source: Source) -> bool:
    for score in _scores([source.first])[:1]:
        return {"name", "value", "data_type"} <= score.keys() and bool(
            score.keys() & {"trace_id", "session_id", "subject"}
        )
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


def _scores(records: list[Record]) -> list[Record]:
    """The scores of a file, also of pages with `data`, by names with underscores."""
    scores = [
        score
        for record in records
        for score in (objects(record["data"]) if "data" in record else [record])
    ]
    return [
        {_WORDS.sub("_", name).lower(): value for name, value in score.items()} for score in scores
    ]


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
