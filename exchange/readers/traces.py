"""Readers of exports of tools that record an application's steps as spans: Langfuse, LangSmith,
Opik, Weave, MLflow and OpenInference, as Phoenix has it. In a trace, the uppermost span with an
answer is an item. Its context are the documents that spans below it retrieved, and its subject is
their model. `Span` and `add_traces` are shared; each tool then has a section, and `READERS` is at
the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from evenhand.exchange.readers.rows import ItemRows, Reader, Rows, has_fields, rating_columns
from evenhand.exchange.readers.source import (
    REFERENCE_KEYS,
    TOOLS,
    Record,
    Source,
    documents_text,
    fields_in,
    first_at,
    first_text,
    from_json,
    get_in,
    messages_in,
    name_at,
    objects,
    snake_case,
    text_of,
    texts_of,
    unpaged,
    unwrap,
    value_at,
)
from evenhand.texts import written

_RETRIEVER = "retriever"
_NO_ANSWER = (_RETRIEVER, "embedding", "reranker", "tool", "parser", "prompt", "event", "guardrail")
"""Kinds of spans whose output is not an answer to the user."""
_NAME_FIELDS = ("id", "trace", "parent", "kind", "model", "cluster")  # of a span


@dataclass(frozen=True, kw_only=True)
class Span:
    """One step of a trace, with its inputs, its outputs and the id of its parent. `unit` is its id
    in the file's ratings and `item_id` the tool's id of the item, if they are not its `id`. `ids`
    are columns for export back to the tool, and `about` other facts by column. `documents` are
    those that it retrieved, if they are not its outputs. An `is_inner` span cannot be an item.
    """

    id: str
    trace: str
    parent: str
    kind: str
    inputs: object
    outputs: object
    ids: Record
    unit: str = ""
    item_id: str = ""
    is_inner: bool = False
    model: str = ""
    documents: object = None
    expected: object = None
    cluster: str = ""
    about: Record = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: Record, tool: str, **fields: Any) -> Span:
        """Return the span in a tool's record, with other values for these fields. The paths of a
        span's fields in the record are `span` in the tool's part of `TOOLS`.
        """
        paths = TOOLS[tool]["span"]
        span: Record = {name: name_at(record, paths.get(name, ())) for name in _NAME_FIELDS}
        for name in ("inputs", "outputs"):
            value = record.get(paths[name])
            span[name] = from_json(value) if paths.get("json") else value
        span["ids"] = {name: name_at(record, path) for name, path in paths.get("ids", {}).items()}
        span["about"] = fields_in(record.get(paths.get("about")))
        span["expected"] = value_at(record, paths.get("expected", ""))
        return cls(**span | fields)

    @property
    def is_answer(self) -> bool:
        """True if the span may be an item: it has an output that may answer the user."""
        has_output = not self.is_inner and self.outputs not in (None, "", [], {})
        return has_output and self.kind.casefold() not in _NO_ANSWER

    @property
    def retrieved_text(self) -> str:
        """The documents that the span retrieved, as one text; "" if there are none."""
        if self.documents:
            return documents_text(self.documents)
        return documents_text(self.outputs) if self.kind.casefold() == _RETRIEVER else ""


def add_traces(rows: ItemRows, spans: Iterable[Span]) -> None:
    """Add the items of all traces: in each trace the uppermost spans that are answers."""
    spans_by_trace: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        spans_by_trace[span.trace].append(span)
    for spans_of_trace in spans_by_trace.values():
        ids = {span.id for span in spans_of_trace}
        children: dict[str, list[Span]] = defaultdict(list)  # by the parent's id, "" at the top
        for span in spans_of_trace:
            children[span.parent if span.parent in ids else ""].append(span)
        answers = ([span for span in level if span.is_answer] for level in _levels("", children))
        uppermost_answers = next(filter(None, answers), [])
        if not uppermost_answers:
            rows.leave_out(written("left_out.no_answer"))
        for span in uppermost_answers:
            subtree = [span, *chain.from_iterable(_levels(span.id, children))]
            documents = filter(None, (step.retrieved_text for step in subtree))
            context = "\n\n".join(dict.fromkeys(documents)) or None
            models = ["", *(step.model for step in subtree if step.model)]
            texts = texts_of(span.inputs, span.outputs, context=context, expected=span.expected)
            item_id, subject = span.item_id or span.id, span.model or models[-1]
            facts: Record = {"cluster": span.cluster, "ids": span.ids, "about": span.about}
            rows.add(span.unit or span.id, texts, item_id=item_id, subject=subject, **facts)


def _levels(top: str, children: Mapping[str, list[Span]]) -> Iterator[list[Span]]:
    """Yield the spans below the one with the id `top`, by level, in the order of the file."""
    parents = [top]
    visited = {top} - {""}  # several spans may be without an id
    while parents:
        level = [span for parent in parents for span in children.get(parent, ())]
        if level := [span for span in level if span.id not in visited]:
            yield level
        parents = list(dict.fromkeys(span.id for span in level))
        visited |= set(parents)


def _add_records(
    tool: str, fields_of: Callable[[Record], Record], rows: ItemRows, source: Source
) -> None:
    """Add the items of a file of spans; `fields_of` returns fields that are not at usual paths."""
    records = source.records(source.parquet_columns)
    add_traces(rows, [Span.from_record(record, tool, **fields_of(record)) for record in records])


def _add_feedback(rows: Rows, record: Record, tool: str, unit: object = "", **columns: Any) -> None:
    """Add the rating in a tool's record, with `unit` and `columns` if they are not in the record.
    The paths of a rating's columns in the record are `feedback` in the tool's part of `TOOLS`.
    Columns that a writer of evenhand stored in the metadata, and then `columns`, take precedence.
    """
    paths, kinds = TOOLS[tool]["feedback"], TOOLS[tool]["kinds"]
    origin = name_at(record, [paths["origin"]])
    columns = rating_columns(from_json(value_at(record, paths["metadata"]))) | columns
    columns.pop("rubric", None)
    rater_paths = paths["raters"].get(origin, paths["raters"]["other"])
    rows.add(
        unit or name_at(record, paths.get("unit", ())),
        columns.pop("rater_id", "") or name_at(record, rater_paths),
        columns.pop("rater_kind", kinds.get(origin, "")),
        columns.pop("value") if "value" in columns else first_at(record, paths["value"]),
        name_at(record, paths["rubric"]),
        created_at=name_at(record, paths["created_at"]),
        **columns,
    )


# ---- Langfuse -----------------------------------------------------------------------------------
# Scores as its API (v2, v3) gives them, and as it exports them to files.
_LANGFUSE = TOOLS["langfuse"]


class _LangfuseStep(NamedTuple):
    """A trace or an observation, with the id of the step above it and its own ids by column."""

    record: Record
    parent: str
    ids: Record


def _is_langfuse(source: Source) -> bool:
    scores, _ = _langfuse_parts([source.first_record])
    score = scores[0] if scores else {}
    has_subject = bool(score.keys() & {"trace_id", "session_id", "subject"})
    origin = score.get("source")
    is_csv = bool(source.csv_columns) and origin == ""  # its first record has no values
    is_typed = "data_type" in score or origin in _LANGFUSE["origins"] or is_csv
    return {"name", "value"} <= score.keys() and has_subject and is_typed


def _read_langfuse(rows: Rows, source: Source) -> None:
    """Read annotations as people's labels, evaluations as models', the API's as of either kind."""
    for score in _langfuse_parts(source.records())[0]:
        data_type = text_of(score.get("data_type"))
        if data_type in ("TEXT", "CORRECTION"):
            rows.leave_out(written("left_out.free_text"))
            continue
        ids = [score.get("trace_id") or score.get("session_id"), score.get("observation_id")]
        if isinstance(subject := score.get("subject"), dict):
            ids = [subject.get("traceId") or subject.get("trace_id"), subject.get("id")]
        unit = "/".join(filter(None, map(text_of, ids)))
        value, string_value = score.get("value"), score.get("string_value")
        label = string_value or value
        if data_type == "BOOLEAN":
            label = _LANGFUSE["boolean_labels"].get(str(value).lower(), string_value)
        _add_feedback(rows, score, "langfuse", unit, value=label)


def _langfuse_items(rows: ItemRows, source: Source) -> None:
    """Read a trace or its uppermost observations as items; those of one session are a cluster."""
    spans: dict[str, Span] = {}
    for record, parent, ids in _langfuse_parts(source.records())[1]:
        # The page exports a score as a list of one.
        no_facts = _LANGFUSE["no_facts"]
        about = {name: unwrap(value) for name, value in record.items() if name not in no_facts}
        about |= fields_in(from_json(record.get("metadata")))
        fields = {"trace": ids["trace_id"], "unit": "/".join(ids.values()), "ids": ids}
        span = Span.from_record(record, "langfuse", about=about, parent=parent, **fields)
        spans.setdefault(f"{span.trace}/{span.id}", span)
    add_traces(rows, spans.values())


def _is_step(record: Record, kind: str) -> bool:
    """Return True if a record has the fields of this kind, "trace" or "observation"."""
    fields, names = _LANGFUSE[kind], record.keys()
    return {*fields["all"]} <= names and not names.isdisjoint(fields["any"])


def _langfuse_parts(records: list[Record]) -> tuple[list[Record], list[_LangfuseStep]]:
    """Return the scores and the steps in a file, with their fields in snake case."""
    scores, steps = [], []
    for record in records:
        parts = [record]
        if "data" in record:  # a page of the API
            parts = objects(record["data"])
        elif isinstance(record.get("trace"), dict):
            parts = [{"observations": record.get("observations")} | record["trace"]]
        for part in map(snake_case, parts):
            trace_id, observations = "", []
            if _is_step(part, "trace"):
                trace_id, observations = text_of(part["id"]), objects(part.get("observations"))
                steps.append(_LangfuseStep(part, "", {"trace_id": trace_id}))
            elif _is_step(part, "observation"):
                trace_id, observations = text_of(part["trace_id"]), [part]
            elif not isinstance(part.get("scores"), list):
                scores.append(part)
            scores += map(snake_case, objects(part.get("scores")))
            for observation in map(snake_case, observations):
                parent = text_of(observation.get("parent_observation_id")) or trace_id
                ids = {"trace_id": trace_id, "observation_id": text_of(observation.get("id"))}
                steps.append(_LangfuseStep(observation, parent, ids))
    return scores, steps


# ---- LangSmith ----------------------------------------------------------------------------------
# Feedback as `Client.list_feedback` or the API gives it.


def _read_langsmith(rows: Rows, source: Source) -> None:
    """Read feedback from the app as people's labels; feedback from the API may be of any kind."""
    for feedback in source.records():
        _add_feedback(rows, feedback, "langsmith")


def _feedback_facts(run: Record) -> Record:
    """Return the values of a run's feedback as facts, for feedback keys with one value."""
    feedback = fields_in(from_json(run.get("feedback_stats")))
    facts = {
        name: next(iter(fields_in(get_in(stats, "values"))), get_in(stats, "avg"))
        for name, stats in feedback.items()
        if text_of(get_in(stats, "n")) == "1"
    }
    return {"about": facts}


# ---- Opik ---------------------------------------------------------------------------------------
# Traces and spans with feedback scores, as `search_traces` gives them and as `opik export` writes
# each to a file.
_OPIK = TOOLS["opik"]


def _is_opik(source: Source) -> bool:
    record = source.first_record
    step = record.get("trace") if "spans" in record else record
    if not isinstance(step, dict) or not {"id", "start_time"} <= step.keys():
        return False
    is_from_opik = "input" in step and bool({*_OPIK["any_of_trace"]} & step.keys())
    return "spans" in record or is_from_opik


def _read_opik(rows: Rows, source: Source) -> None:
    """Read a trace or span as a unit, and a score's name as a rubric. Scores given on the page are
    people's, online scores are models', and scores from the SDK may be of either kind. An online
    rule is named "online_scoring" if it runs under a person's name, as in installations in which
    all authors are called admin.
    """
    scores = []
    for step, unit in _opik_steps(source.records()):
        for feedback in objects(step.get("feedback_scores")):
            by_author = fields_in(feedback.get("value_by_author"))
            by_author = by_author or {text_of(feedback.get("created_by")): feedback}
            for author, score in by_author.items():
                origin = first_text(get_in(score, "source"), feedback.get("source"))
                scores.append((unit, text_of(feedback.get("name")), author, origin, score))
    kinds = _OPIK["kinds"]
    people = {author for _, _, author, origin, _ in scores if kinds.get(origin) == "human"}
    for unit, rubric, author, origin, score in scores:
        kind = kinds.get(origin, "")
        is_under_person = author in people and kind != "human"
        rater = origin if origin == "sdk" or is_under_person else author or origin
        value = get_in(score, "category_name") or get_in(score, "value")
        time = first_text(get_in(score, "last_updated_at"))
        rows.add(unit, rater, kind, value, rubric, created_at=time)


def _opik_items(rows: ItemRows, source: Source) -> None:
    """Read a trace or its uppermost spans as items; those of one thread are a cluster."""
    steps = _opik_steps(source.records())
    add_traces(rows, [Span.from_record(step, "opik", unit=unit) for step, unit in steps])


def _opik_steps(records: list[Record]) -> Iterator[tuple[Record, str]]:
    """Yield the traces and spans of a file, each with its unit, the ids of its trace and span."""
    for record in records:
        trace = record.get("trace") if "spans" in record else record
        for step in [*objects([trace]), *objects(record.get("spans"))]:
            step_id, trace_id = text_of(step.get("id")), text_of(step.get("trace_id"))
            yield step, f"{trace_id}/{step_id}" if trace_id else step_id


# ---- W&B Weave ----------------------------------------------------------------------------------
# Calls with their feedback (`get_calls(include_feedback=True)`, `to_dict`), and feedback by itself.
_WEAVE = TOOLS["weave"]
_ANNOTATION, _RUNNABLE = "wandb.annotation.", "wandb.runnable."
_NOTE, _REACTION = "wandb.note.", "wandb.reaction."
"""How the type of feedback begins, by what gave it."""


def _read_weave(rows: Rows, source: Source) -> None:
    """Read annotations and reactions as people's labels; a scorer may be a model or code."""
    for feedback in _weave_feedback(source.records()):
        feedback_type, payload = text_of(feedback.get("feedback_type")), feedback.get("payload")
        unit = text_of(feedback.get("weave_ref")).rpartition("/")[2]
        person = first_text(feedback.get("creator"), feedback.get("wb_user_id"))
        time = feedback.get("created_at")
        if feedback_type.startswith(_NOTE):
            rows.leave_out(written("left_out.free_text"))
        elif feedback_type.startswith(_REACTION):
            value = get_in(payload, "alias") or get_in(payload, "emoji")
            rows.add(unit, person, "human", value, "reaction", created_at=time)
        elif feedback_type.startswith(_RUNNABLE):
            scorer = feedback_type.removeprefix(_RUNNABLE)
            output = get_in(payload, "output")
            values = output if isinstance(output, dict) else {scorer: output}
            for name, value in values.items():
                if name in _WEAVE["reasons"]:
                    rows.leave_out(written("left_out.free_text"))
                else:
                    rows.add(unit, scorer, "", value, name, created_at=time)
        else:
            rubric = feedback_type.removeprefix(_ANNOTATION)
            kind = "human" if feedback_type.startswith(_ANNOTATION) else ""
            rows.add(unit, person, kind, get_in(payload, "value"), rubric, created_at=time)


def _weave_feedback(records: list[Record]) -> Iterator[Record]:
    """Yield the feedback in a file, by itself or in calls."""
    for record in records:
        if record.keys() >= {*_WEAVE["ratings"]}:
            yield record
        for feedback in objects(get_in(record, "summary", "weave", "feedback")):
            yield {"weave_ref": record.get("id")} | feedback


# ---- MLflow -------------------------------------------------------------------------------------
# Traces with assessments, as `Trace.to_dict` or `mlflow.search_traces` has them; the table of the
# latter as JSON, CSV or Parquet.
_MLFLOW = TOOLS["mlflow"]
_ID_FIELDS = {*_MLFLOW["ids"]}


def _is_mlflow(source: Source) -> bool:
    if columns := source.parquet_columns:
        return "assessments" in columns and not _ID_FIELDS.isdisjoint(columns)
    if {"assessment_name", "source"} <= source.first_record.keys():
        return True
    return any(
        isinstance(get_in(record, "assessments"), list)
        for trace in unpaged([source.first_record], ["traces"])
        for record in (trace.get("info"), trace)
    )


def _read_mlflow(rows: Rows, source: Source) -> None:
    """Read a trace or span as a unit, an assessment's name as a rubric, its source as a rater."""
    columns = [name for name in source.parquet_columns if name in (*_ID_FIELDS, "assessments")]
    for trace in unpaged(source.records(columns), ["traces"]):
        if "assessment_name" in trace:
            _add_assessment(rows, text_of(trace.get("trace_id")), trace)
            continue
        info = trace["info"] if isinstance(trace.get("info"), dict) else trace
        unit = name_at(info, _MLFLOW["ids"])
        for assessment in objects(info.get("assessments")):
            _add_assessment(rows, unit, assessment)


def _has_mlflow_items(source: Source) -> bool:
    """Return True if the first trace has its spans, or its request and response."""
    if columns := source.parquet_columns:
        return _has_texts(dict.fromkeys(columns, ""))
    return any(map(_has_texts, unpaged([source.first_record], ["traces"])))


def _has_texts(trace: Record) -> bool:
    if isinstance(get_in(trace, "data", "spans"), list):
        return isinstance(trace.get("info"), dict)
    return not _ID_FIELDS.isdisjoint(trace) and {"request", "response", "spans"} <= trace.keys()


def _mlflow_items(rows: ItemRows, source: Source) -> None:
    """Read a trace as an item, an expectation as its reference, and a session as a cluster."""
    columns = [name for name in source.parquet_columns if name not in _MLFLOW["unused"]]
    for trace in unpaged(source.records(columns), ["traces"]):
        add_traces(rows, _mlflow_spans(trace))


def _mlflow_spans(trace: Record) -> Iterator[Span]:
    """Yield the spans of a trace, or the trace as one span if its spans are not in the file."""
    info = trace["info"] if isinstance(trace.get("info"), dict) else trace
    unit = name_at(info, _MLFLOW["ids"])
    expectations = [
        get_in(assessment, "expectation", "value")
        for assessment in objects(info.get("assessments"))
        if text_of(assessment.get("assessment_name") or assessment.get("name")) in REFERENCE_KEYS
    ]
    session = get_in(info, "trace_metadata", "mlflow.trace.session")
    tags = fields_in(info.get("tags"))
    mlflow_fields = (*_MLFLOW["used"], *_MLFLOW["unused"])
    facts = {name: fact for name, fact in trace.items() if name not in mlflow_fields}
    facts |= {name: tag for name, tag in tags.items() if "." not in name}
    spans = objects(get_in(trace, "data", "spans") or from_json(trace.get("spans")))
    whole_trace = {"inputs": trace.get("request"), "outputs": trace.get("response")}
    for span in spans or [whole_trace]:
        attributes = fields_in(span.get("attributes"))
        inputs, outputs, kind, model = (
            from_json(attributes.get(f"mlflow.{name}"))
            for name in ("spanInputs", "spanOutputs", "spanType", "llm.model")
        )
        parent = first_text(span.get("parent_span_id"), span.get("parent_id"))
        yield Span(
            id=first_text(span.get("span_id")),
            trace=unit,
            parent=parent,
            is_inner=bool(parent),
            kind=text_of(kind),
            inputs=inputs if inputs is not None else from_json(span.get("inputs")),
            outputs=outputs if outputs is not None else from_json(span.get("outputs")),
            unit=unit,
            item_id=unit,
            ids={"trace_id": unit},
            model=first_text(model, get_in(outputs, "model"), get_in(inputs, "model")),
            expected=next(filter(None, expectations), None),
            cluster=text_of(session),
            about=facts,
        )


def _add_assessment(rows: Rows, trace: str, assessment: Record) -> None:
    """Add an assessment of a trace, or of a span in it, unless it is invalid or by code."""
    metadata = fields_in(assessment.get("metadata"))
    if assessment.get("valid") is False:
        rows.leave_out(written("left_out.invalid"))
    elif get_in(assessment, "source", "source_type") == "CODE" and not rating_columns(metadata):
        rows.leave_out(written("left_out.by_code"))
    elif not isinstance(assessment.get("feedback"), dict):
        rows.leave_out(written("left_out.expectations"))
    else:
        columns = _MLFLOW["assessment_columns"]
        other_metadata = {name: metadata[name] for name in metadata if name not in columns}
        error = assessment["feedback"].get("error")
        reason = get_in(error, "error_code") if isinstance(error, dict) else error
        span = text_of(assessment.get("span_id"))
        unit = f"{trace}/{span}" if span else trace
        feedback = assessment | {"metadata": other_metadata}
        _add_feedback(rows, feedback, "mlflow", unit, unscored_reason=reason)


# ---- OpenInference ------------------------------------------------------------------------------
# Spans as Phoenix gives them (its table of spans, its REST API) and as OpenTelemetry writes them,
# an object for each span; and Phoenix's annotations of spans, alone or with the spans.
# https://arize-ai.github.io/openinference/spec/semantic_conventions.html
_PREFIX = "attributes."  # how the names of columns begin that hold attributes of a span, in tables
_PHOENIX = TOOLS["phoenix"]
_PAGE_KEYS = ("data", "spans")
_INDEX_DIGITS = 9  # digits of an index, by which indices are ordered as numbers


def _read_phoenix(rows: Rows, source: Source) -> None:
    """Read a span as a unit, and an annotation's name as a rubric. A person is named after the
    user's id, else the annotation's identifier. A model is named after the model in the metadata,
    else the identifier.
    """
    for record in _phoenix_records(source):
        annotations = objects(from_json(record.get("annotations")))
        span = text_of(value_at(record, "context.span_id"))
        for annotation in [record] if _is_annotation(record) else annotations:
            kind = text_of(annotation.get("annotator_kind")).upper()
            if kind == "CODE":
                rows.leave_out(written("left_out.by_code"))
                continue
            unit = _hexadecimal_id(annotation.get("span_id") or span)
            _add_feedback(rows, annotation | {"annotator_kind": kind}, "phoenix", unit)


def _first_phoenix_record(source: Source) -> Record:
    """Return the first span or annotation; the columns of a Parquet file, without values."""
    if source.parquet_columns:
        return dict.fromkeys(source.parquet_columns, "")
    return next(iter(unpaged([source.first_record], _PAGE_KEYS)), {})


def _phoenix_records(source: Source) -> list[Record]:
    return unpaged(source.records(source.parquet_columns), _PAGE_KEYS)


def _is_annotation(record: Record) -> bool:
    has_result = "result" in record or "result.label" in record
    has_span = "span_id" in record or "context.span_id" in record
    return "annotator_kind" in record and has_result and has_span


def _is_span(record: Record) -> bool:
    return value_at(record, "context.span_id") is not None and any(
        name == "attributes" or name.startswith(_PREFIX) for name in record
    )


def _phoenix_span(record: Record) -> Span:
    """Return a record as a span, with evaluations by a model or code as facts about it."""
    attributes = fields_in(from_json(record.get("attributes")))
    names = [name for name in record if name.startswith(_PREFIX)]
    attributes |= {name.removeprefix(_PREFIX): record[name] for name in names}
    phoenix_fields = {*_PHOENIX["span_fields"], *REFERENCE_KEYS}
    others = [name for name in record if not name.startswith(tuple(_PHOENIX["column_prefixes"]))]
    other_fields = {name: record[name] for name in others if name not in phoenix_fields}
    metadata = fields_in(from_json(value_at(attributes, "metadata")))
    documents = _listed_objects(value_at(attributes, "retrieval.documents"))
    span_id = _hexadecimal_id(value_at(record, "context.span_id"))
    trace_id = _hexadecimal_id(value_at(record, "context.trace_id"))
    return Span(
        id=span_id,
        trace=trace_id,
        parent=_hexadecimal_id(record.get("parent_id")),
        kind=first_text(value_at(attributes, "openinference.span.kind"), record.get("span_kind")),
        inputs=_messages(attributes, "llm.input_messages") or _value(attributes, "input"),
        outputs=_messages(attributes, "llm.output_messages") or _value(attributes, "output"),
        documents=[value_at(document, "document.content") for document in documents],
        ids={"span_id": span_id, "trace_id": trace_id},
        model=first_text(value_at(attributes, "llm.model_name")),
        cluster=first_text(value_at(attributes, "session.id"), trace_id),
        expected=next((record[name] for name in REFERENCE_KEYS if record.get(name)), None),
        about=other_fields | metadata | _evaluations(record),
    )


def _listed_objects(value: object) -> list[Record]:
    """Return the objects in a list, or in an object whose keys begin with an index ("0.role")."""
    value = from_json(value)
    if not isinstance(value, dict):
        return objects(value)
    indices = {key.partition(".")[0] for key in value}
    ordered = sorted(filter(str.isdecimal, indices), key=lambda index: index.zfill(_INDEX_DIGITS))
    return objects([value_at(value, index) for index in ordered])


def _messages(attributes: Record, path: str) -> list[Record] | None:
    """Return the messages in a span's attributes at a path; None if there are none."""
    messages = []
    for value in _listed_objects(value_at(attributes, path)):
        parts = _listed_objects(value_at(value, "message.contents"))
        texts = [text_of(value_at(part, "message_content.text")) for part in parts]
        message = {name: value_at(value, f"message.{name}") for name in ("role", "content", "name")}
        message["content"] = message["content"] or "\n".join(filter(None, texts))
        message["tool_calls"] = [
            {name: value_at(call, f"tool_call.function.{name}") for name in ("name", "arguments")}
            for call in _listed_objects(value_at(value, "message.tool_calls"))
        ]
        messages.append({name: part for name, part in message.items() if part or name == "content"})
    return messages_in(messages)


def _value(attributes: Record, name: str) -> object:
    """Return a span's "input" or "output" from its attributes, decoded if it is JSON."""
    value = value_at(attributes, f"{name}.value")
    is_json = "json" in text_of(value_at(attributes, f"{name}.mime_type"))
    return from_json(value) if is_json else value


def _hexadecimal_id(value: object) -> str:
    """Return an id without the 0x that OpenTelemetry writes before it."""
    return text_of(value).removeprefix("0x")


def _evaluations(record: Record) -> Record:
    """Return the labels, or else scores, that a model or code gave a span, by name."""
    evaluations: Record = {}
    for annotation in objects(record.get("annotations")):
        if text_of(annotation.get("annotator_kind")) not in ("", "HUMAN"):
            result = annotation.get("result")
            label, score = get_in(result, "label"), get_in(result, "score")
            evaluations[text_of(annotation.get("name"))] = score if label in (None, "") else label
    return evaluations


READERS = {
    "langfuse": Reader(
        _is_langfuse,
        _read_langfuse,
        _langfuse_items,
        lambda source: bool(_langfuse_parts([source.first_record])[1]),
    ),
    "langsmith": Reader(
        has_fields("langsmith"),
        _read_langsmith,
        partial(_add_records, "langsmith", _feedback_facts),
        has_fields("langsmith", "items", parquet=True),
    ),
    "opik": Reader(_is_opik, _read_opik, _opik_items),
    "weave": Reader(
        lambda source: has_fields("weave", "items")(source) or has_fields("weave")(source),
        _read_weave,
        partial(
            _add_records,
            "weave",
            lambda call: {"model": next(iter(fields_in(get_in(call, "summary", "usage"))), "")},
        ),
        has_fields("weave", "items"),
    ),
    "mlflow": Reader(_is_mlflow, _read_mlflow, _mlflow_items, _has_mlflow_items),
    "phoenix": Reader(
        lambda source: _is_annotation(record := _first_phoenix_record(source)) or _is_span(record),
        _read_phoenix,
        lambda rows, source: add_traces(rows, map(_phoenix_span, _phoenix_records(source))),
        lambda source: (
            _is_span(record := _first_phoenix_record(source)) and not _is_annotation(record)
        ),
    ),
}
