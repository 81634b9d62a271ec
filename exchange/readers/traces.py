"""Exports of tools that record an application's steps: Langfuse, LangSmith, Opik and Weave.
The uppermost step that has an answer is an item; what steps below it retrieved is its context, and
the model that they asked is its subject.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from evenhand.errors import InputError
from evenhand.exchange.readers.rows import Export, ItemRows, ItemTable, Reader, Rows, claimed
from evenhand.exchange.readers.source import (
    Record,
    Source,
    fields_in,
    inside,
    objects,
    only,
    snake_case,
    text_of,
)
from evenhand.exchange.readers.texts import documents, opened, texts_of
from evenhand.texts import written

_RETRIEVER = "retriever"
_NO_ANSWER = (_RETRIEVER, "embedding", "reranker", "tool", "parser", "prompt", "event", "guardrail")
"""Kinds of steps that answer nobody."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """One step of a trace: `given` and `made` are its input and output, `documents` what it
    retrieved, if it says so apart. `unit` is its id among the file's ratings, `item_id` the tool's
    own, and `ids` are the columns by which the tool finds it again. An `inner` one is no item.
    """

    id: str
    trace: str
    parent: str
    kind: str
    given: object
    made: object
    unit: str
    item_id: str
    ids: Record
    inner: bool = False
    model: str = ""
    documents: object = None
    expected: object = None
    cluster: str = ""
    about: Record = field(default_factory=dict)

    @property
    def answers(self) -> bool:
        empty = self.inner or self.made in (None, "", [], {})
        return not empty and self.kind.casefold() not in _NO_ANSWER

    @property
    def retrieved(self) -> str:
        if self.documents:
            return documents(self.documents)
        return documents(self.made) if self.kind.casefold() == _RETRIEVER else ""


def add_traces(rows: ItemRows, spans: Iterable[Span]) -> None:
    """Add the items of all traces: of each the uppermost spans that answer."""
    traces: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        traces[span.trace].append(span)
    for own in traces.values():
        known = {span.id for span in own}
        below: dict[str, list[Span]] = defaultdict(list)
        for span in own:
            below[span.parent if span.parent in known else ""].append(span)
        found = _uppermost(below)
        if not found:
            rows.leave_out(written("left_out.no_answer"))
        for span in found:
            _add(rows, span, _under(span, below))


def _uppermost(below: dict[str, list[Span]]) -> list[Span]:
    level, seen = below.get("", []), {""}
    while level:
        if found := [span for span in level if span.answers]:
            return found
        new = list(dict.fromkeys(span.id for span in level if span.id not in seen))
        seen |= set(new)
        level = [each for name in new for each in below.get(name, ())]
    return []


def _under(span: Span, below: dict[str, list[Span]]) -> list[Span]:
    """The span and all below it, in the order of the file within each level."""
    found, seen = [span], {span.id}
    for each in found:
        new = [own for own in below.get(each.id, ()) if own.id not in seen]
        seen |= {own.id for own in new}
        found += new
    return found


def _add(rows: ItemRows, span: Span, under: list[Span]) -> None:
    retrieved = [text for each in under if (text := each.retrieved)]
    models = [each.model for each in under if each.model]
    rows.add(
        span.unit,
        texts_of(
            span.given,
            span.made,
            context="\n\n".join(dict.fromkeys(retrieved)) or None,
            expected=span.expected,
        ),
        item_id=span.item_id,
        subject=span.model or (models[-1] if models else ""),
        cluster=span.cluster,
        ids=span.ids,
        about=span.about,
    )


def name_of(*values: object) -> str:
    """The first of these that is a name or a number."""
    return next(filter(None, map(text_of, values)), "")


# ---- Langfuse -----------------------------------------------------------------------------------
# Scores as its API (v2, v3) gives them, and as it exports them to files.
_LANGFUSE_KINDS = {"ANNOTATION": "human", "EVAL": "model"}
_ORIGINS = (*_LANGFUSE_KINDS, "API")


def _is_langfuse(source: Source) -> bool:
    for score in _langfuse_scores([source.first])[:1]:
        about = score.keys() & {"trace_id", "session_id", "subject"}
        origin = score.get("source")
        typed = "data_type" in score or origin in _ORIGINS or (source.header and origin == "")
        return {"name", "value"} <= score.keys() and bool(about and typed)
    return False


def _read_langfuse(source: Source) -> Export:
    """A trace, observation or session is a unit, a score's name a rubric; annotations are people's,
    evaluations models', and scores that came in by the API may be either.
    """
    rows = Rows(source)
    for score in _langfuse_scores(source.records()):
        form = text_of(score.get("data_type"))
        if form in ("TEXT", "CORRECTION"):
            rows.leave_out(written("left_out.free_text"))
            continue
        origin = text_of(score.get("source"))
        claim = claimed(score.get("metadata"))
        claim.pop("rubric", None)
        rows.add(
            _unit(score),
            claim.pop("rater_id", "") or _langfuse_rater(score, origin),
            claim.pop("rater_kind", _LANGFUSE_KINDS.get(origin, "")),
            _label(score, form),
            text_of(score.get("name")),
            created_at=score.get("updated_at") or score.get("timestamp"),
            **claim,
        )
    return rows.export(written("exchange.langfuse"))


def _langfuse_items(source: Source) -> ItemTable | None:
    """A trace is an item; in a file of observations alone, those that lie uppermost. Traces of one
    session belong together.
    """
    first = _langfuse_records([source.first])[:1]
    if not any(map(_is_trace, first)) and not any(map(_is_observation, first)):
        if _is_langfuse(source):
            raise InputError(
                f"{source.name} holds scores of Langfuse without what they are about; export the "
                "traces or the observations, which have input and output"
            )
        return None
    spans: dict[str, Span] = {}
    for record in _langfuse_records(source.records()):
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
        yield _langfuse_span(record, trace, "", {"trace_id": trace})
        for each in map(snake_case, objects(record.get("observations"))):
            yield _observation(each, trace)
    elif _is_observation(record):
        yield _observation(record, text_of(record["trace_id"]))


def _observation(record: Record, trace: str) -> Span:
    own = text_of(record.get("id"))
    parent = text_of(record.get("parent_observation_id")) or trace
    return _langfuse_span(record, trace, parent, {"trace_id": trace, "observation_id": own})


def _langfuse_span(record: Record, trace: str, parent: str, ids: Record) -> Span:
    # The page exports a score as a list of one.
    said = {name: only(each) for name, each in record.items() if name not in _NO_FACTS}
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
        about=said | fields_in(opened(record.get("metadata"))),
    )


_NO_FACTS = (
    "id", "trace_id", "observation_id", "parent_observation_id", "session_id", "project_id",
    "input", "output", "metadata", "html_path", "start_time", "end_time", "timestamp",
    "created_at", "updated_at", "completion_start_time",
)  # fmt: skip


def _langfuse_records(records: list[Record]) -> list[Record]:
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
    return [snake_case(record) for record in found]


def _langfuse_scores(records: list[Record]) -> list[Record]:
    """The scores of a file, and those of its traces."""
    found = []
    for record in _langfuse_records(records):
        if isinstance(record.get("scores"), list):
            found += [snake_case(score) for score in objects(record["scores"])]
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


def _langfuse_rater(score: Record, origin: str) -> str:
    """Identify the rater: the author of an annotation, the evaluator or its model, or the API."""
    if origin == "ANNOTATION":
        said = [score.get("author_user_id"), score.get("author_user_name")]
    else:
        said = [inside(score, "metadata", "model"), score.get("evaluator_id"), origin]
    return name_of(*said)


def _label(score: Record, form: str) -> object:
    value, word = score.get("value"), score.get("string_value")
    if form == "BOOLEAN":
        truth = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
        return truth.get(str(value).lower(), word)
    return word if word else value


# ---- LangSmith ----------------------------------------------------------------------------------
# Feedback as `Client.list_feedback` or the API gives it.
_LANGSMITH_KINDS = {"app": "human", "model": "model", "auto_eval": "model"}
_MODEL_NAMES = ("model", "evaluator", "evaluator_name")


def _is_langsmith(source: Source) -> bool:
    return {"key", "run_id", "feedback_source"} <= source.first.keys()


def _read_langsmith(source: Source) -> Export:
    """A run is a unit, a feedback's key a rubric. What people gave in the app is theirs; feedback
    by the API may be of either kind.
    """
    rows = Rows(source)
    for feedback in source.records():
        origin = text_of(inside(feedback, "feedback_source", "type"))
        value = feedback.get("value")
        claim = claimed(inside(feedback, "feedback_source", "metadata"))
        claim.pop("rubric", None)
        rows.add(
            feedback.get("run_id") or feedback.get("trace_id"),
            claim.pop("rater_id", "") or _langsmith_rater(feedback, origin),
            claim.pop("rater_kind", _LANGSMITH_KINDS.get(origin, "")),
            feedback.get("score") if value in (None, "") else value,
            text_of(feedback.get("key")),
            created_at=feedback.get("modified_at") or feedback.get("created_at"),
            **claim,
        )
    return rows.export(written("exchange.langsmith"))


def _langsmith_items(source: Source) -> ItemTable | None:
    """The uppermost run of a trace is an item; runs on one example of a dataset belong together. A
    feedback key that a run has one value of gives a column.
    """
    if not {*(source.columns or source.first)} >= _RUN:
        if _is_langsmith(source):
            raise InputError(
                f"{source.name} holds feedback of LangSmith without what it is about; write down "
                "the runs, as Client.list_runs() has them"
            )
        return None
    rows = ItemRows(source)
    add_traces(rows, map(_langsmith_span, source.records(source.columns)))
    return rows.items(written("exchange.langsmith_items"), "reference_example_id")


_RUN = {"id", "run_type", "inputs", "outputs"}


def _langsmith_span(run: Record) -> Span:
    own = text_of(run.get("id"))
    extra = opened(run.get("extra"))
    known = inside(extra, "metadata")
    feedback = fields_in(opened(run.get("feedback_stats")))
    return Span(
        id=own,
        trace=text_of(run.get("trace_id")) or own,
        parent=text_of(run.get("parent_run_id")),
        kind=text_of(run.get("run_type")),
        given=opened(run.get("inputs")),
        made=opened(run.get("outputs")),
        unit=own,
        item_id=own,
        ids={"run_id": own, "trace_id": text_of(run.get("trace_id"))},
        model=name_of(inside(known, "ls_model_name"), inside(extra, "invocation_params", "model")),
        cluster=text_of(run.get("reference_example_id")),
        about={name: _one_value(each) for name, each in feedback.items()},
    )


def _one_value(stats: object) -> object:
    """The value of a feedback key that was given once; None where several were summed up."""
    if text_of(inside(stats, "n")) != "1":
        return None
    values = inside(stats, "values")
    return next(iter(values)) if isinstance(values, dict) and values else inside(stats, "avg")


def _langsmith_rater(feedback: Record, origin: str) -> str:
    own = feedback.get("feedback_source")
    people = [inside(own, "user_name"), inside(own, "user_id")]
    models = [inside(own, "metadata", name) for name in _MODEL_NAMES]
    said = people if origin == "app" else [*models, *people, origin]
    return name_of(*said)


# ---- Opik ---------------------------------------------------------------------------------------
# Traces and spans with feedback scores, as `search_traces` gives them and as `opik export` writes
# each to a file.
_OPIK_KINDS = {"ui": "human", "online_scoring": "model"}
_TRACE = {"feedback_scores", "project_id", "thread_id", "span_count", "last_updated_at"}


def _is_opik(source: Source) -> bool:
    first = source.first
    own = first.get("trace") if "spans" in first else first
    if not isinstance(own, dict) or not {"id", "start_time"} <= own.keys():
        return False
    return own is not first or ("input" in own and bool(_TRACE & own.keys()))


def _read_opik(source: Source) -> Export:
    """A trace or span is a unit, a score's name a rubric. What people gave on the page is theirs,
    online scores are models'; scores by the SDK may be of either kind. A rule that runs under a
    person's name, as where all are called admin, is called online_scoring.
    """
    rows = Rows(source)
    found = list(_opik_scores(source.records()))
    people = {author for _, author, origin, _, _ in found if _OPIK_KINDS.get(origin) == "human"}
    for unit, author, origin, name, entry in found:
        is_person = _OPIK_KINDS.get(origin) == "human"
        own = "" if origin == "sdk" or (author in people and not is_person) else author
        value = inside(entry, "category_name") or inside(entry, "value")
        at = name_of(inside(entry, "last_updated_at"))
        rows.add(unit, own or origin, _OPIK_KINDS.get(origin, ""), value, name, created_at=at)
    return rows.export(written("exchange.opik"))


def _opik_scores(records: list[Record]) -> Iterator[tuple[str, str, str, str, object]]:
    """Yield each score as unit, author, where it was given, name and entry."""
    for record, unit in _opik_records(records):
        for score in objects(record.get("feedback_scores")):
            by = score.get("value_by_author")
            own = by if isinstance(by, dict) and by else {text_of(score.get("created_by")): score}
            for author, entry in own.items():
                origin = name_of(inside(entry, "source"), score.get("source"))
                yield unit, author, origin, text_of(score.get("name")), entry


def _opik_items(source: Source) -> ItemTable | None:
    """A trace is an item; in a file of spans alone, those that lie uppermost. Traces of one thread
    belong together.
    """
    if not _is_opik(source):
        return None
    rows = ItemRows(source)
    add_traces(rows, [_opik_span(record, unit) for record, unit in _opik_records(source.records())])
    return rows.items(written("exchange.opik_items"), "thread")


def _opik_records(records: list[Record]) -> Iterator[tuple[Record, str]]:
    """The traces and spans of a file, with the name of each as a unit."""
    for record in records:
        trace = record.get("trace") if "spans" in record else record
        for each in [*objects([trace]), *objects(record.get("spans"))]:
            own = text_of(each.get("id"))
            above = text_of(each.get("trace_id"))
            yield each, f"{above}/{own}" if above else own


def _opik_span(record: Record, unit: str) -> Span:
    own, trace = text_of(record.get("id")), text_of(record.get("trace_id"))
    known = fields_in(record.get("metadata"))
    return Span(
        id=own,
        trace=trace or own,
        parent=text_of(record.get("parent_span_id")) or trace,
        kind=text_of(record.get("type")),
        given=record.get("input"),
        made=record.get("output"),
        unit=unit,
        item_id=own,
        ids={"trace_id": trace or own},
        model=name_of(record.get("model"), known.get("model")),
        cluster=text_of(record.get("thread_id")),
        expected=known.get("expected_output"),
        about=known,
    )


# ---- W&B Weave ----------------------------------------------------------------------------------
# Calls with their feedback (`get_calls(include_feedback=True)`, `to_dict`), and feedback by itself.
_CALL = {"op_name", "trace_id", "inputs"}
_FEEDBACK = {"feedback_type", "payload", "weave_ref"}
_ANNOTATION, _RUNNABLE = "wandb.annotation.", "wandb.runnable."
_REASONS = ("reason", "reasoning", "explanation", "rationale", "comment", "justification")
"""What a scorer returns beside its labels."""
_NOTE, _REACTION = "wandb.note.", "wandb.reaction."


def _is_weave(source: Source) -> bool:
    return source.first.keys() >= _CALL or source.first.keys() >= _FEEDBACK


def _read_weave(source: Source) -> Export:
    """A call is a unit, an annotation's name a rubric, and so is each value that a scorer gave.
    Annotations and reactions are people's; a scorer may be a model or code.
    """
    rows = Rows(source)
    for feedback in _feedback(source.records()):
        kind, payload = text_of(feedback.get("feedback_type")), feedback.get("payload")
        unit = text_of(feedback.get("weave_ref")).rpartition("/")[2]
        person = name_of(feedback.get("creator"), feedback.get("wb_user_id"))
        when = feedback.get("created_at")
        if kind.startswith(_NOTE):
            rows.leave_out(written("left_out.free_text"))
        elif kind.startswith(_REACTION):
            value = inside(payload, "alias") or inside(payload, "emoji")
            rows.add(unit, person, "human", value, "reaction", created_at=when)
        elif kind.startswith(_RUNNABLE):
            scorer = kind.removeprefix(_RUNNABLE)
            output = inside(payload, "output")
            given = output if isinstance(output, dict) else {scorer: output}
            for name, value in given.items():
                if name in _REASONS:
                    rows.leave_out(written("left_out.free_text"))
                else:
                    rows.add(unit, scorer, "", value, name, created_at=when)
        else:
            annotated = kind.startswith(_ANNOTATION)
            rubric, who = kind.removeprefix(_ANNOTATION), "human" if annotated else ""
            rows.add(unit, person, who, inside(payload, "value"), rubric, created_at=when)
    return rows.export(written("exchange.weave"))


def _weave_items(source: Source) -> ItemTable | None:
    """The uppermost call of a trace that has an output is an item."""
    if not source.first.keys() >= _CALL:
        return None
    rows = ItemRows(source)
    add_traces(rows, map(_weave_span, source.records()))
    return rows.items(written("exchange.weave_items"), "thread")


def _feedback(records: list[Record]) -> Iterator[Record]:
    """The feedback of a file, and that of its calls."""
    for record in records:
        if record.keys() >= _FEEDBACK:
            yield record
        for each in objects(inside(record, "summary", "weave", "feedback")):
            yield {"weave_ref": record.get("id")} | each


def _weave_span(call: Record) -> Span:
    own = text_of(call.get("id"))
    return Span(
        id=own,
        trace=text_of(call.get("trace_id")),
        parent=text_of(call.get("parent_id")),
        kind="",
        given=call.get("inputs"),
        made=call.get("output"),
        unit=own,
        item_id=own,
        ids={"call_id": own, "trace_id": text_of(call.get("trace_id"))},
        model=next(iter(fields_in(inside(call, "summary", "usage"))), ""),
        cluster=text_of(call.get("thread_id")),
        about=fields_in(call.get("attributes")),
    )


LANGFUSE = Reader(_is_langfuse, _read_langfuse, _langfuse_items)
LANGSMITH = Reader(_is_langsmith, _read_langsmith, _langsmith_items)
OPIK = Reader(_is_opik, _read_opik, _opik_items)
WEAVE = Reader(_is_weave, _read_weave, _weave_items)
