"""Readers of exports of tools that record an application's steps: Langfuse, LangSmith, Opik, Weave,
MLflow and OpenInference, as Phoenix has it. In a trace the uppermost step (span) with an answer is
an item, called a unit in ratings; its context is the documents that steps below it retrieved, its
subject (the rated model) the step's model or, if it names none, the last one named below it.

`Span` and `add_traces` are shared; each tool then has a section of functions that recognise its
files (`_is_...`), and read ratings (`_read_...`) and items (`..._items`). `READERS` is at the end.
In records `get_in` follows keys, `value_at` a path "a.b", and `text_at` the first of several.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from evenhand.exchange.readers import source as src
from evenhand.exchange.readers.rows import ItemRows, Reader, Rows, has_fields, rating_columns
from evenhand.exchange.readers.source import TOOLS, Record, fields_in, get_in, text_of, value_at
from evenhand.texts import written

_RETRIEVER = "retriever"
_NO_ANSWER = (_RETRIEVER, "embedding", "reranker", "tool", "parser", "prompt", "event", "guardrail")
"""Kinds of steps whose output is no answer."""
_NAME_FIELDS = ("id", "trace", "parent", "kind", "model", "cluster")  # of `Span`, read by `text_at`


@dataclass(frozen=True, kw_only=True)
class Span:
    """One step of a trace."""

    id: str
    trace: str
    parent: str  # the id of the step above it
    kind: str
    input: object
    output: object
    ids: Record  # ids by column, for export to the tool
    unit: str = ""  # its name in the file's ratings, "" if `id`
    item_id: str = ""  # its id in the tool, "" if `id`
    inner: bool = False  # no item, because the tool's items are whole traces
    model: str = ""
    documents: object = None  # that it retrieved, if its output does not hold them
    expected: object = None
    cluster: str = ""
    about: Record = field(default_factory=dict)  # other facts

    @classmethod
    def of(cls, record: Record, tool: str, **fields: Any) -> Span:
        """Return the step in a record; `fields` replace what the record has. `TOOLS[tool]["span"]`
        holds the keys of input and output, and paths of other parts: the first filled one counts.
        """
        keys = TOOLS[tool]["span"]  # {"input": "inputs", "model": ["model", "metadata.model"], ...}
        step: Record = {name: src.text_at(record, keys.get(name, ())) for name in _NAME_FIELDS}
        for name in ("input", "output"):
            text = record.get(keys[name])
            step[name] = src.from_json(text) if keys.get("json") else text
        id_paths = keys.get("ids", {}).items()
        step["ids"] = {name: src.text_at(record, paths) for name, paths in id_paths}
        step["about"] = fields_in(record.get(keys.get("about")))
        step["expected"] = value_at(record, keys["expected"]) if "expected" in keys else None
        return cls(**step | fields)

    @property
    def is_answer(self) -> bool:
        """True where the step may be an item: it has an output that answers the user."""
        is_empty = self.inner or self.output in (None, "", [], {})
        return not is_empty and self.kind.casefold() not in _NO_ANSWER

    @property
    def retrieved(self) -> str:
        """The documents that the step retrieved, as one text."""
        if self.documents:
            return src.documents(self.documents)
        return src.documents(self.output) if self.kind.casefold() == _RETRIEVER else ""


def add_traces(rows: ItemRows, spans: Iterable[Span]) -> None:
    """Add the items of all traces, in each the uppermost spans that are answers."""
    traces: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        traces[span.trace].append(span)
    for steps in traces.values():
        ids = {span.id for span in steps}
        children: dict[str, list[Span]] = defaultdict(list)  # by their parent's id, "" if none
        for span in steps:
            children[span.parent if span.parent in ids else ""].append(span)
        answers = ([span for span in level if span.is_answer] for level in _levels("", children))
        uppermost = next(filter(None, answers), [])  # the answers on the first level with any
        if not uppermost:
            rows.leave_out(written("left_out.no_answer"))
        for span in uppermost:
            subtree = [span, *chain.from_iterable(_levels(span.id, children))]
            retrieved = dict.fromkeys(filter(None, (step.retrieved for step in subtree)))
            last_model = next((step.model for step in reversed(subtree) if step.model), "")
            context = "\n\n".join(retrieved) or None
            texts = src.texts_of(span.input, span.output, context=context, expected=span.expected)
            facts: Record = {"cluster": span.cluster, "ids": span.ids, "about": span.about}
            unit, item_id = span.unit or span.id, span.item_id or span.id
            rows.add(unit, texts, item_id=item_id, subject=span.model or last_model, **facts)


def _levels(top: str, children: Mapping[str, list[Span]]) -> Iterator[list[Span]]:
    """Yield the spans below the id `top` by levels, in the file's order, and each id only once."""
    parents, seen = [top], {top} - {""}  # the top "" is no id; a span without an id counts
    while parents:
        below = chain.from_iterable(children.get(parent, ()) for parent in parents)
        if level := [span for span in below if span.id not in seen]:
            yield level
        parents = list(dict.fromkeys(span.id for span in level))
        seen |= set(parents)


def _add_feedback(rows: Rows, record: Record, tool: str, unit: object = "", **columns: Any) -> None:
    """Add the rating in a record, whose paths are in `TOOLS[tool]["feedback"]`. Columns that
    evenhand's export stored in the metadata replace the record's values; arguments replace both.
    """
    paths = TOOLS[tool]["feedback"]  # {"origin": "source.type", "value": ["label", "score"], ...}
    kinds = TOOLS[tool]["kinds"]  # by origin: {"app": "human"}
    origin = src.text_at(record, [paths["origin"]])
    columns = rating_columns(src.from_json(value_at(record, paths["metadata"]))) | columns
    columns.pop("rubric", None)  # the record itself names it
    rater_paths = paths["raters"].get(origin, paths["raters"]["other"])
    values = (value_at(record, path) for path in paths.get("value", ()))
    value = next((value for value in values if value not in (None, "")), None)
    rows.add(
        unit or src.text_at(record, paths.get("unit", ())),
        columns.pop("rater_id", "") or src.text_at(record, rater_paths),
        columns.pop("rater_kind", kinds.get(origin, "")),
        columns.pop("value", value),
        src.text_at(record, paths["rubric"]),
        created_at=src.text_at(record, paths["created_at"]),
        **columns,
    )


# ---- Langfuse -----------------------------------------------------------------------------------
# Scores as its API (v2, v3) gives them, and as it exports them to files.
_LANGFUSE = TOOLS["langfuse"]


def _is_langfuse(source: src.Source) -> bool:
    """Return True for scores, of which only the column names are known if the file is a table."""
    scores, _ = _langfuse_parts([source.first])
    score: Record = scores[0] if scores else {}
    names_trace = bool(score.keys() & {"trace_id", "session_id", "subject"})
    origin = score.get("source")
    is_header = bool(source.header) and origin == ""  # the columns, with empty values
    has_origin = "data_type" in score or origin in _LANGFUSE["origins"] or is_header
    return {"name", "value"} <= score.keys() and names_trace and has_origin


def _has_langfuse_items(source: src.Source) -> bool:
    _, steps = _langfuse_parts([source.first])
    return bool(steps)


def _read_langfuse(rows: Rows, source: src.Source) -> None:
    """Read annotations as people's labels, evaluations as models'; the API's may be of any kind."""
    scores, _ = _langfuse_parts(source.records())
    for score in scores:
        data_type = text_of(score.get("data_type"))
        if data_type in ("TEXT", "CORRECTION"):
            rows.leave_out(written("left_out.free_text"))
            continue
        ids = [score.get("trace_id") or score.get("session_id"), score.get("observation_id")]
        if isinstance(subject := score.get("subject"), dict):
            ids = [subject.get("traceId") or subject.get("trace_id"), subject.get("id")]
        value, text = score.get("value"), score.get("string_value")
        truth = _LANGFUSE["truth"].get(str(value).lower(), text)  # True for 1, 1.0 or true
        label = truth if data_type == "BOOLEAN" else text or value
        unit = "/".join(filter(None, map(text_of, ids)))
        _add_feedback(rows, score, "langfuse", unit, value=label)


def _langfuse_items(rows: ItemRows, source: src.Source) -> None:
    """Read a trace or its uppermost observations as items; those of one session are a cluster."""
    spans: dict[str, Span] = {}
    no_facts = _LANGFUSE["no_facts"]
    _, steps = _langfuse_parts(source.records())
    for step, ids in steps:
        # Scores are facts, too. The page exports each as a list of one value, unwrapped here.
        facts = {name: src.unwrap(fact) for name, fact in step.items() if name not in no_facts}
        facts |= fields_in(src.from_json(step.get("metadata")))
        parent = ""  # a trace has none; an observation without one is below its trace
        if "observation_id" in ids:
            parent = text_of(step.get("parent_observation_id")) or ids["trace_id"]
        links: Record = {"ids": ids, "unit": "/".join(ids.values()), "trace": ids["trace_id"]}
        span = Span.of(step, "langfuse", about=facts, parent=parent, **links)
        spans.setdefault(f"{span.trace}/{span.id}", span)  # a step counts once
    add_traces(rows, spans.values())


def _is_step(record: Record, kind: str) -> bool:
    """Return True if a record has the fields of this kind, "trace" or "observation"."""
    required, names = _LANGFUSE[kind], record.keys()
    return {*required["all"]} <= names and not names.isdisjoint(required["any"])


_Step = tuple[Record, dict[str, str]]  # a trace or observation; its ids by column, a trace has one


def _langfuse_parts(records: list[Record]) -> tuple[list[Record], list[_Step]]:
    """Return the scores, and the traces and observations, in a file; their fields in snake case."""
    scores, steps = [], []
    for record in records:
        parts = [record]
        if "data" in record:
            parts = src.objects(record["data"])  # a page of the API
        elif isinstance(record.get("trace"), dict):  # an export, {"trace": {}, "observations": []}
            parts = [{"observations": record.get("observations")} | record["trace"]]
        for part in map(src.snake_case, parts):
            observations: list[Record] = []
            ids: dict[str, str] = {}
            if _is_step(part, "trace"):
                ids = {"trace_id": text_of(part["id"])}
                steps.append((part, ids))
                observations = src.objects(part.get("observations"))
            elif _is_step(part, "observation"):
                ids, observations = {"trace_id": text_of(part["trace_id"])}, [part]
            elif not isinstance(part.get("scores"), list):
                scores.append(part)
            scores += map(src.snake_case, src.objects(part.get("scores")))
            for step in map(src.snake_case, observations):
                steps.append((step, ids | {"observation_id": text_of(step.get("id"))}))
    return scores, steps


# ---- LangSmith ----------------------------------------------------------------------------------
# Feedback as `Client.list_feedback` or the API gives it.
_has_runs = has_fields("langsmith", "items", in_tables=True)


def _read_langsmith(rows: Rows, source: src.Source) -> None:
    """Read feedback from the app as people's labels; the API's may be of either kind."""
    for feedback in source.records():
        _add_feedback(rows, feedback, "langsmith")


def _langsmith_items(rows: ItemRows, source: src.Source) -> None:
    """Read a run as a step, with the values of feedback that was given once as facts about it."""
    spans = []
    for run in source.records(source.columns):
        facts = {}
        for name, stats in fields_in(src.from_json(run.get("feedback_stats"))).items():
            if text_of(get_in(stats, "n")) == "1":  # {"n": 1, "values": {"yes": 1}}, or "avg": 0.5
                facts[name] = next(iter(fields_in(get_in(stats, "values"))), get_in(stats, "avg"))
        spans.append(Span.of(run, "langsmith", about=facts))
    add_traces(rows, spans)


# ---- Opik ---------------------------------------------------------------------------------------
# Traces and spans with feedback scores, from `search_traces` or, each in a file, `opik export`.
_OPIK = TOOLS["opik"]


def _is_opik(source: src.Source) -> bool:
    is_exported = "spans" in source.first  # {"trace": {...}, "spans": [...]}
    span = source.first.get("trace") if is_exported else source.first
    if not isinstance(span, dict) or not {"id", "start_time"} <= span.keys():
        return False
    return is_exported or ("input" in span and bool({*_OPIK["any_of_trace"]} & span.keys()))


def _read_opik(rows: Rows, source: src.Source) -> None:
    """Read a trace or span as a unit and a score's name as a rubric. Scores given on the page are
    people's, online scores are models', and the SDK's may be of either kind.
    """
    for record, unit in _opik_records(source.records()):
        for score in src.objects(record.get("feedback_scores")):
            rubric, by_author = text_of(score.get("name")), fields_in(score.get("value_by_author"))
            by_author = by_author or {text_of(score.get("created_by")): score}
            for author, entry in by_author.items():
                origin = src.first_text(get_in(entry, "source"), score.get("source"))
                value = get_in(entry, "category_name") or get_in(entry, "value")
                time = src.first_text(get_in(entry, "last_updated_at"))
                rater = origin if not author or origin == "sdk" else author
                kind = _OPIK["kinds"].get(origin, "")
                rows.add(unit, rater, kind, value, rubric, created_at=time)


def _opik_items(rows: ItemRows, source: src.Source) -> None:
    """Read a trace or its uppermost spans as items; those of one thread are a cluster."""
    records = _opik_records(source.records())
    add_traces(rows, [Span.of(record, "opik", unit=unit) for record, unit in records])


def _opik_records(records: list[Record]) -> Iterator[tuple[Record, str]]:
    """Yield the traces and spans of a file, each with its id as a unit."""
    for record in records:
        trace = record.get("trace") if "spans" in record else record
        for step in [*src.objects([trace]), *src.objects(record.get("spans"))]:
            step_id, trace_id = text_of(step.get("id")), text_of(step.get("trace_id"))
            yield step, f"{trace_id}/{step_id}" if trace_id else step_id


# ---- W&B Weave ----------------------------------------------------------------------------------
# Calls with their feedback (`get_calls(include_feedback=True)`, `to_dict`), and feedback by itself.
_WEAVE = TOOLS["weave"]
_ANNOTATION, _RUNNABLE = "wandb.annotation.", "wandb.runnable."
_NOTE, _REACTION = "wandb.note.", "wandb.reaction."


def _is_weave(source: src.Source) -> bool:
    return has_fields("weave", "items")(source) or has_fields("weave")(source)


def _read_weave(rows: Rows, source: src.Source) -> None:
    """Read annotations and reactions as people's labels; a scorer may be a model or code."""
    for feedback in _weave_feedback(source.records()):
        feedback_type, payload = text_of(feedback.get("feedback_type")), feedback.get("payload")
        unit = text_of(feedback.get("weave_ref")).rpartition("/")[2]  # weave:///.../ID
        person = src.first_text(feedback.get("creator"), feedback.get("wb_user_id"))
        when = feedback.get("created_at")
        if feedback_type.startswith(_NOTE):
            rows.leave_out(written("left_out.free_text"))
        elif feedback_type.startswith(_REACTION):
            value = get_in(payload, "alias") or get_in(payload, "emoji")
            rows.add(unit, person, "human", value, "reaction", created_at=when)
        elif feedback_type.startswith(_RUNNABLE):
            scorer = feedback_type.removeprefix(_RUNNABLE)
            output = get_in(payload, "output")
            values = output if isinstance(output, dict) else {scorer: output}
            for name, value in values.items():
                if name in _WEAVE["reasons"]:
                    rows.leave_out(written("left_out.free_text"))
                else:
                    rows.add(unit, scorer, "", value, name, created_at=when)
        else:
            rubric = feedback_type.removeprefix(_ANNOTATION)
            kind = "human" if feedback_type.startswith(_ANNOTATION) else ""
            rows.add(unit, person, kind, get_in(payload, "value"), rubric, created_at=when)


def _weave_items(rows: ItemRows, source: src.Source) -> None:
    """Read a call as a step, whose model is the first one in the call's usage."""
    spans = []
    for call in source.records(source.columns):
        models = fields_in(get_in(call, "summary", "usage"))
        spans.append(Span.of(call, "weave", model=next(iter(models), "")))
    add_traces(rows, spans)


def _weave_feedback(records: list[Record]) -> Iterator[Record]:
    """Yield the feedback in a file, and that of its calls."""
    for record in records:
        if record.keys() >= {*_WEAVE["ratings"]}:
            yield record
        for feedback in src.objects(get_in(record, "summary", "weave", "feedback")):
            yield {"weave_ref": record.get("id")} | feedback


# ---- MLflow -------------------------------------------------------------------------------------
# Traces with assessments, as `Trace.to_dict` or `mlflow.search_traces` has them; the table of the
# latter as JSON, CSV or Parquet.
_MLFLOW = TOOLS["mlflow"]
_IDS = {*_MLFLOW["ids"]}


def _is_mlflow(source: src.Source) -> bool:
    if columns := source.columns:
        return "assessments" in columns and not _IDS.isdisjoint(columns)
    if {"assessment_name", "source"} <= source.first.keys():
        return True
    return any(
        isinstance(get_in(value, "assessments"), list)
        for trace in src.unpaged([source.first], ["traces"])
        for value in (trace.get("info"), trace)
    )


def _read_mlflow(rows: Rows, source: src.Source) -> None:
    """Read a trace or span as a unit, an assessment's name as a rubric, its source as a rater."""
    columns = [name for name in source.columns if name in (*_IDS, "assessments")]
    for trace in src.unpaged(source.records(columns), ["traces"]):
        if "assessment_name" in trace:
            _add_assessment(rows, text_of(trace.get("trace_id")), trace)
            continue
        info = trace["info"] if isinstance(trace.get("info"), dict) else trace
        unit = src.text_at(info, ("trace_id", "request_id"))
        for assessment in src.objects(info.get("assessments")):
            _add_assessment(rows, unit, assessment)


def _has_mlflow_items(source: src.Source) -> bool:
    columns = source.columns
    first = [dict.fromkeys(columns, "")] if columns else src.unpaged([source.first], ["traces"])
    return any(map(_is_mlflow_trace, first))


def _is_mlflow_trace(record: Record) -> bool:
    """Return True for a trace of `Trace.to_dict`, or a row of the table, with its request."""
    if isinstance(get_in(record, "data", "spans"), list):  # of to_dict
        return isinstance(record.get("info"), dict)
    return not _IDS.isdisjoint(record) and {"request", "response", "spans"} <= record.keys()


def _mlflow_items(rows: ItemRows, source: src.Source) -> None:
    """Read a trace as an item, an expectation as its reference, and a session as a cluster."""
    columns = [name for name in source.columns if name not in _MLFLOW["unused"]]
    for trace in src.unpaged(source.records(columns), ["traces"]):
        add_traces(rows, _mlflow_spans(trace))


def _mlflow_spans(trace: Record) -> Iterator[Span]:
    """Yield the spans of a trace, or the trace as one span where its spans are not in the file."""
    info = trace["info"] if isinstance(trace.get("info"), dict) else trace
    unit = src.text_at(info, ("trace_id", "request_id"))
    expected = [
        get_in(record, "expectation", "value")
        for record in src.objects(info.get("assessments"))
        if text_of(record.get("assessment_name") or record.get("name")) in src.EXPECTED
    ]
    tags = fields_in(info.get("tags"))
    no_facts = (*_MLFLOW["used"], *_MLFLOW["unused"])
    facts = {name: fact for name, fact in trace.items() if name not in no_facts}
    facts |= {name: tag for name, tag in tags.items() if "." not in name}  # no "mlflow.user"
    spans = src.objects(get_in(trace, "data", "spans") or src.from_json(trace.get("spans")))
    for span in spans or [{"inputs": trace.get("request"), "outputs": trace.get("response")}]:
        attributes = fields_in(span.get("attributes"))
        inputs, outputs, kind, model = (
            src.from_json(attributes.get(f"mlflow.{name}"))
            for name in ("spanInputs", "spanOutputs", "spanType", "llm.model")
        )
        parent = src.first_text(span.get("parent_span_id"), span.get("parent_id"))
        yield Span(
            id=src.first_text(span.get("span_id")),
            trace=unit,
            parent=parent,
            inner=bool(parent),
            kind=text_of(kind),
            input=inputs if inputs is not None else src.from_json(span.get("inputs")),
            output=outputs if outputs is not None else src.from_json(span.get("outputs")),
            unit=unit,
            item_id=unit,
            ids={"trace_id": unit},
            model=src.first_text(model, get_in(outputs, "model"), get_in(inputs, "model")),
            expected=next(filter(None, expected), None),
            cluster=text_of(get_in(info, "trace_metadata", "mlflow.trace.session")),
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
        facts = {name: metadata[name] for name in metadata if name not in _MLFLOW["given"]}
        span, error = text_of(assessment.get("span_id")), assessment["feedback"].get("error")
        error = get_in(error, "error_code") if isinstance(error, dict) else error
        unit = f"{trace}/{span}" if span else trace
        _add_feedback(rows, assessment | {"metadata": facts}, "mlflow", unit, unscored_reason=error)


# ---- OpenInference ------------------------------------------------------------------------------
# Spans as Phoenix gives them (its table of spans, its REST API) and as OpenTelemetry writes them,
# an object for each span; and Phoenix's annotations of spans, alone or with the spans.
# https://arize-ai.github.io/openinference/spec/semantic_conventions.html
_ATTRIBUTE_PREFIX = "attributes."
_PHOENIX = TOOLS["phoenix"]
_PAGES = ("data", "spans")  # fields that hold the records of a page of the API


def _read_phoenix(rows: Rows, source: src.Source) -> None:
    """Read a span as a unit and an annotation's name as a rubric. A person is named by the user's
    id, a model by its name in the metadata, and either else by the annotation's identifier.
    """
    for record in _span_records(source):
        annotations = src.objects(src.from_json(record.get("annotations")))
        span = text_of(value_at(record, "context.span_id"))
        for annotation in [record] if _is_annotation(record) else annotations:
            kind = text_of(annotation.get("annotator_kind")).upper()
            if kind == "CODE":
                rows.leave_out(written("left_out.by_code"))
                continue
            unit = _hexadecimal(annotation.get("span_id") or span)
            _add_feedback(rows, annotation | {"annotator_kind": kind}, "phoenix", unit)


def _first_in(source: src.Source) -> Record:
    """Return the first span or annotation; of a Parquet file the names of its columns."""
    return dict.fromkeys(source.columns, "") or next(iter(src.unpaged([source.first], _PAGES)), {})


def _span_records(source: src.Source) -> list[Record]:
    return src.unpaged(source.records(source.columns), _PAGES)


def _is_annotation(record: Record) -> bool:
    has_result = "result" in record or "result.label" in record
    has_span = "span_id" in record or "context.span_id" in record
    return "annotator_kind" in record and has_result and has_span


def _is_span(record: Record) -> bool:
    return value_at(record, "context.span_id") is not None and any(
        name == "attributes" or name.startswith(_ATTRIBUTE_PREFIX) for name in record
    )


def _phoenix_span(record: Record) -> Span:
    """Return a record as a span, with evaluations by a model or code as facts about it."""
    attributes = fields_in(src.from_json(record.get("attributes")))
    columns = [name for name in record if name.startswith(_ATTRIBUTE_PREFIX)]  # of a table of spans
    attributes |= {name.removeprefix(_ATTRIBUTE_PREFIX): record[name] for name in columns}
    retrieved = _numbered(value_at(attributes, "retrieval.documents"))
    kind = value_at(attributes, "openinference.span.kind")
    trace = _hexadecimal(value_at(record, "context.trace_id"))
    span = _hexadecimal(value_at(record, "context.span_id"))
    no_facts, prefixes = (*_PHOENIX["own"], *src.EXPECTED), tuple(_PHOENIX["frames"])
    names = [name for name in record if name not in no_facts and not name.startswith(prefixes)]
    others = {name: record[name] for name in names}
    metadata = fields_in(src.from_json(value_at(attributes, "metadata")))
    return Span(
        id=span,
        trace=trace,
        parent=_hexadecimal(record.get("parent_id")),
        kind=src.first_text(kind, record.get("span_kind")),
        input=_span_value(attributes, "input"),
        output=_span_value(attributes, "output"),
        documents=[value_at(document, "document.content") for document in retrieved],
        ids={"span_id": span, "trace_id": trace},
        model=src.first_text(value_at(attributes, "llm.model_name")),
        cluster=src.first_text(value_at(attributes, "session.id"), trace),
        expected=next((record[name] for name in src.EXPECTED if record.get(name)), None),
        about=others | metadata | _evaluations(record),
    )


def _numbered(value: object) -> list[Record]:
    """Return the objects of a list, which may be stored as an object with keys such as "0.NAME"."""
    value = src.from_json(value)
    if not isinstance(value, dict):
        return src.objects(value)
    numbers = {name.partition(".")[0] for name in value}
    ordered = sorted((name for name in numbers if name.isdecimal()), key=lambda name: name.zfill(9))
    return [part for name in ordered if isinstance(part := value_at(value, name), dict)]


def _span_messages(attributes: Record, path: str) -> list[Record] | None:
    """Return the messages in a span's attributes at a path; None if there are none."""
    messages = []
    for value in _numbered(value_at(attributes, path)):
        contents = _numbered(value_at(value, "message.contents"))
        parts = filter(None, (text_of(value_at(part, "message_content.text")) for part in contents))
        message = {name: value_at(value, f"message.{name}") for name in ("role", "content", "name")}
        message["content"] = message["content"] or "\n".join(parts)
        message["tool_calls"] = [
            {name: value_at(call, f"tool_call.function.{name}") for name in ("name", "arguments")}
            for call in _numbered(value_at(value, "message.tool_calls"))
        ]
        messages.append({name: part for name, part in message.items() if part or name == "content"})
    return src.messages_in(messages)


def _span_value(attributes: Record, name: str) -> object:
    """Return a span's "input" or "output" from its attributes: its messages, or else its value."""
    if messages := _span_messages(attributes, f"llm.{name}_messages"):
        return messages
    value, mime_type = (value_at(attributes, f"{name}.{part}") for part in ("value", "mime_type"))
    return src.from_json(value) if "json" in text_of(mime_type) else value


def _hexadecimal(value: object) -> str:
    """Return an id without the 0x that OpenTelemetry writes before it."""
    return text_of(value).removeprefix("0x")


def _evaluations(record: Record) -> Record:
    """Return the labels, or else scores, that a model or code gave a span, by name."""
    labels: Record = {}
    for annotation in src.objects(record.get("annotations")):
        if text_of(annotation.get("annotator_kind")) not in ("", "HUMAN"):
            result = annotation.get("result")
            label, score = get_in(result, "label"), get_in(result, "score")
            labels[text_of(annotation.get("name"))] = score if label in (None, "") else label
    return labels


READERS = {  # `Reader` of functions that recognise a file, and read its ratings and items
    "langfuse": Reader(_is_langfuse, _read_langfuse, _langfuse_items, _has_langfuse_items),
    "langsmith": Reader(has_fields("langsmith"), _read_langsmith, _langsmith_items, _has_runs),
    "opik": Reader(_is_opik, _read_opik, _opik_items),
    "weave": Reader(_is_weave, _read_weave, _weave_items, has_fields("weave", "items")),
    "mlflow": Reader(_is_mlflow, _read_mlflow, _mlflow_items, _has_mlflow_items),
    "phoenix": Reader(
        lambda source: _is_annotation(_first_in(source)) or _is_span(_first_in(source)),
        _read_phoenix,
        lambda rows, source: add_traces(rows, map(_phoenix_span, _span_records(source))),
        lambda source: _is_span(_first_in(source)) and not _is_annotation(_first_in(source)),
    ),
}
