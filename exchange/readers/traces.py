"""Exports of tools that record an application's steps: Langfuse, LangSmith, Opik, Weave, MLflow
and OpenInference, as Phoenix has it. The uppermost step that has an answer is an item; what steps
below it retrieved is its context, and the model that they asked is its subject.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from evenhand.exchange.readers.rows import ItemRows, Reader, Rows, claimed, has_fields
from evenhand.exchange.readers.source import (
    TOOLS,
    Record,
    Source,
    fields_in,
    inside,
    objects,
    only,
    snake_case,
    text_of,
    unpaged,
)
from evenhand.exchange.readers.texts import (
    EXPECTED,
    at,
    documents,
    first_at,
    messages_in,
    name_at,
    opened,
    texts_of,
)
from evenhand.texts import written

_RETRIEVER = "retriever"
_NO_ANSWER = (_RETRIEVER, "embedding", "reranker", "tool", "parser", "prompt", "event", "guardrail")
"""Kinds of steps that answer nobody."""
_STEP = ("id", "trace", "parent", "kind", "model", "cluster")


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

    @classmethod
    def of(cls, record: Record, tool: str, **more: Any) -> Span:
        """Return the step of a record in which its parts have the tool's names (`span` in
        `TOOLS`).
        """
        form = TOOLS[tool]["span"]
        step = {name: name_at(record, form.get(name, ())) for name in _STEP}
        texts = {name: record.get(form[name]) for name in ("given", "made")}
        known: Record = {
            "unit": step["id"],
            "item_id": step["id"],
            "ids": {name: name_at(record, paths) for name, paths in form.get("ids", {}).items()},
            "about": fields_in(record.get(form.get("about"))),
            "expected": at(record, form.get("expected", "")),
            **({name: opened(text) for name, text in texts.items()} if form.get("json") else texts),
        }
        return cls(**step | known | more)

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


def _items_of(
    tool: str, more: Callable[[Record], Record] = lambda record: {}
) -> Callable[[ItemRows, Source], None]:
    """Return a reader of a file of steps: the uppermost of each trace that answer are items."""

    def items(rows: ItemRows, source: Source) -> None:
        records = source.records(source.columns)
        add_traces(rows, [Span.of(each, tool, **more(each)) for each in records])

    return items


def name_of(*values: object) -> str:
    """The first of these that is a name or a number."""
    return next(filter(None, map(text_of, values)), "")


def _add_feedback(rows: Rows, record: Record, tool: str, unit: object = "", **more: Any) -> None:
    """Add the rating that a record is, in which its parts have the tool's names (`feedback` in
    `TOOLS`), but for what a writer of evenhand has noted of it.
    """
    form, kinds = TOOLS[tool]["feedback"], TOOLS[tool]["kinds"]
    origin = name_at(record, [form["origin"]])
    claim = claimed(opened(at(record, form["claim"])))
    claim.pop("rubric", None)
    rows.add(
        unit or name_at(record, form.get("unit", ())),
        claim.pop("rater_id", "")
        or name_at(record, form["raters"].get(origin, form["raters"]["other"])),
        claim.pop("rater_kind", kinds.get(origin, "")),
        more["value"] if "value" in more else first_at(record, form["value"]),
        name_at(record, form["rubric"]),
        created_at=name_at(record, form["created_at"]),
        **claim,
    )


# ---- Langfuse -----------------------------------------------------------------------------------
# Scores as its API (v2, v3) gives them, and as it exports them to files.
_LANGFUSE = TOOLS["langfuse"]


def _is_langfuse(source: Source) -> bool:
    for score in _langfuse_scores([source.first])[:1]:
        about = score.keys() & {"trace_id", "session_id", "subject"}
        origin = score.get("source")
        typed = (
            "data_type" in score
            or origin in _LANGFUSE["origins"]
            or (source.header and origin == "")
        )
        return {"name", "value"} <= score.keys() and bool(about and typed)
    return False


def _read_langfuse(rows: Rows, source: Source) -> None:
    """A trace, observation or session is a unit, a score's name a rubric; annotations are people's,
    evaluations models', and scores that came in by the API may be either.
    """
    for score in _langfuse_scores(source.records()):
        form = text_of(score.get("data_type"))
        if form in ("TEXT", "CORRECTION"):
            rows.leave_out(written("left_out.free_text"))
        else:
            _add_feedback(rows, score, "langfuse", _unit(score), value=_label(score, form))


def _has_langfuse_items(source: Source) -> bool:
    first = _langfuse_records([source.first])[:1]
    return any(_is_trace(each) or _is_observation(each) for each in first)


def _langfuse_items(rows: ItemRows, source: Source) -> None:
    """A trace is an item, or an uppermost observation; those of one session belong together."""
    spans: dict[str, Span] = {}
    for record in _langfuse_records(source.records()):
        for span in _spans(record):
            spans.setdefault(f"{span.trace}/{span.id}", span)
    add_traces(rows, spans.values())


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
    no_facts = _LANGFUSE["no_facts"]
    about = {name: only(each) for name, each in record.items() if name not in no_facts}
    about |= fields_in(opened(record.get("metadata")))
    where = {"trace": trace, "parent": parent, "unit": "/".join(ids.values()), "ids": ids}
    return Span.of(record, "langfuse", about=about, **where)


def _langfuse_records(records: list[Record]) -> list[Record]:
    """The records of a file, of its pages and of a downloaded trace, with names in snake case."""
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


def _label(score: Record, form: str) -> object:
    value, word = score.get("value"), score.get("string_value")
    if form == "BOOLEAN":
        truth = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
        return truth.get(str(value).lower(), word)
    return word if word else value


# ---- LangSmith ----------------------------------------------------------------------------------
# Feedback as `Client.list_feedback` or the API gives it.


def _read_langsmith(rows: Rows, source: Source) -> None:
    """A run is a unit, a feedback's key a rubric. What people gave in the app is theirs; feedback
    by the API may be of either kind.
    """
    for feedback in source.records():
        _add_feedback(rows, feedback, "langsmith")


def _key_values(run: Record) -> Record:
    """The feedback keys that a run has one value of."""
    feedback = fields_in(opened(run.get("feedback_stats")))
    return {"about": {name: _one_value(each) for name, each in feedback.items()}}


def _one_value(stats: object) -> object:
    """The value of a feedback key that was given once; None where several were summed up."""
    if text_of(inside(stats, "n")) != "1":
        return None
    values = inside(stats, "values")
    return next(iter(values)) if isinstance(values, dict) and values else inside(stats, "avg")


# ---- Opik ---------------------------------------------------------------------------------------
# Traces and spans with feedback scores, as `search_traces` gives them and as `opik export` writes
# each to a file.
_OPIK = TOOLS["opik"]


def _is_opik(source: Source) -> bool:
    first = source.first
    own = first.get("trace") if "spans" in first else first
    if not isinstance(own, dict) or not {"id", "start_time"} <= own.keys():
        return False
    return own is not first or ("input" in own and bool({*_OPIK["any_of_trace"]} & own.keys()))


def _read_opik(rows: Rows, source: Source) -> None:
    """A trace or span is a unit, a score's name a rubric. What people gave on the page is theirs,
    online scores are models'; scores by the SDK may be of either kind. A rule that runs under a
    person's name, as where all are called admin, is called online_scoring.
    """
    found = list(_opik_scores(source.records()))
    kinds = _OPIK["kinds"]
    people = {author for _, author, origin, _, _ in found if kinds.get(origin) == "human"}
    for unit, author, origin, name, entry in found:
        is_person = kinds.get(origin) == "human"
        own = "" if origin == "sdk" or (author in people and not is_person) else author
        value = inside(entry, "category_name") or inside(entry, "value")
        when = name_of(inside(entry, "last_updated_at"))
        rows.add(unit, own or origin, kinds.get(origin, ""), value, name, created_at=when)


def _opik_scores(records: list[Record]) -> Iterator[tuple[str, str, str, str, object]]:
    """Yield each score as unit, author, where it was given, name and entry."""
    for record, unit in _opik_records(records):
        for score in objects(record.get("feedback_scores")):
            by = score.get("value_by_author")
            own = by if isinstance(by, dict) and by else {text_of(score.get("created_by")): score}
            for author, entry in own.items():
                origin = name_of(inside(entry, "source"), score.get("source"))
                yield unit, author, origin, text_of(score.get("name")), entry


def _opik_items(rows: ItemRows, source: Source) -> None:
    """A trace is an item, or an uppermost span; those of one thread belong together."""
    records = _opik_records(source.records())
    add_traces(rows, [Span.of(record, "opik", unit=unit) for record, unit in records])


def _opik_records(records: list[Record]) -> Iterator[tuple[Record, str]]:
    """The traces and spans of a file, with the name of each as a unit."""
    for record in records:
        trace = record.get("trace") if "spans" in record else record
        for each in [*objects([trace]), *objects(record.get("spans"))]:
            own = text_of(each.get("id"))
            above = text_of(each.get("trace_id"))
            yield each, f"{above}/{own}" if above else own


# ---- W&B Weave ----------------------------------------------------------------------------------
# Calls with their feedback (`get_calls(include_feedback=True)`, `to_dict`), and feedback by itself.
_WEAVE = TOOLS["weave"]
_ANNOTATION, _RUNNABLE = "wandb.annotation.", "wandb.runnable."
_NOTE, _REACTION = "wandb.note.", "wandb.reaction."


def _read_weave(rows: Rows, source: Source) -> None:
    """A call is a unit, an annotation's name a rubric, and so is each value that a scorer gave.
    Annotations and reactions are people's; a scorer may be a model or code.
    """
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
                if name in _WEAVE["reasons"]:
                    rows.leave_out(written("left_out.free_text"))
                else:
                    rows.add(unit, scorer, "", value, name, created_at=when)
        else:
            annotated = kind.startswith(_ANNOTATION)
            rubric, who = kind.removeprefix(_ANNOTATION), "human" if annotated else ""
            rows.add(unit, person, who, inside(payload, "value"), rubric, created_at=when)


def _feedback(records: list[Record]) -> Iterator[Record]:
    """The feedback of a file, and that of its calls."""
    for record in records:
        if record.keys() >= {*_WEAVE["ratings"]}:
            yield record
        for each in objects(inside(record, "summary", "weave", "feedback")):
            yield {"weave_ref": record.get("id")} | each


def _first_model(call: Record) -> Record:
    return {"model": next(iter(fields_in(inside(call, "summary", "usage"))), "")}


# ---- MLflow -------------------------------------------------------------------------------------
# Traces with assessments, as `Trace.to_dict` or `mlflow.search_traces` has them; the table of the
# latter as JSON, CSV or Parquet.
_NAMED = ("rater_id", "rater_kind", "rubric", "unscored_reason")
_MLFLOW = TOOLS["mlflow"]
_IDS = {*_MLFLOW["ids"]}


def _is_mlflow(source: Source) -> bool:
    if columns := source.columns:
        return "assessments" in columns and not _IDS.isdisjoint(columns)
    if {"assessment_name", "source"} <= source.first.keys():
        return True
    first = unpaged([source.first], ["traces"])
    return bool(first) and any(
        isinstance(inside(each, "assessments"), list)
        for trace in first
        for each in (trace.get("info"), trace)
    )


def _read_mlflow(rows: Rows, source: Source) -> None:
    """A trace or span is a unit, an assessment's name a rubric, its source a rater."""
    columns = [name for name in source.columns if name in (*_IDS, "assessments")]
    for trace in unpaged(source.records(columns), ["traces"]):
        if "assessment_name" in trace:
            _add_assessment(rows, text_of(trace.get("trace_id")), trace)
            continue
        info = trace["info"] if isinstance(trace.get("info"), dict) else trace
        unit = name_at(info, ("trace_id", "request_id"))
        for assessment in objects(info.get("assessments")):
            _add_assessment(rows, unit, assessment)


def _has_mlflow_items(source: Source) -> bool:
    columns = source.columns
    first = [dict.fromkeys(columns, "")] if columns else unpaged([source.first], ["traces"])
    return any(
        isinstance(trace.get("info"), dict)
        if isinstance(inside(trace, "data", "spans"), list)
        else not _IDS.isdisjoint(trace) and {"request", "response", "spans"} <= trace.keys()
        for trace in first
    )


def _mlflow_items(rows: ItemRows, source: Source) -> None:
    """A trace is an item, an expectation its reference; those of one session belong together."""
    columns = [name for name in source.columns if name not in _MLFLOW["unused"]]
    for trace in unpaged(source.records(columns), ["traces"]):
        add_traces(rows, _mlflow_spans(trace))


def _mlflow_spans(trace: Record) -> Iterator[Span]:
    """The trace's spans; of one whose spans are not in the file a single one."""
    info = trace["info"] if isinstance(trace.get("info"), dict) else trace
    unit = name_at(info, ("trace_id", "request_id"))
    expected = [
        inside(each, "expectation", "value")
        for each in objects(info.get("assessments"))
        if text_of(each.get("assessment_name") or each.get("name")) in EXPECTED
    ]
    session = inside(info, "trace_metadata", "mlflow.trace.session")
    tags = fields_in(info.get("tags"))
    read = (*_MLFLOW["used"], *_MLFLOW["unused"])
    own = {name: each for name, each in trace.items() if name not in read}
    own |= {name: each for name, each in tags.items() if "." not in name}
    spans = objects(inside(trace, "data", "spans") or opened(trace.get("spans")))
    whole: Record = {"name": "", "attributes": {}, "inputs": trace.get("request")}
    for span in spans or [whole | {"outputs": trace.get("response")}]:
        said = fields_in(span.get("attributes"))
        given, made, kind, model = (
            opened(said.get(f"mlflow.{name}"))
            for name in ("spanInputs", "spanOutputs", "spanType", "llm.model")
        )
        parent = name_of(span.get("parent_span_id"), span.get("parent_id"))
        yield Span(
            id=name_of(span.get("span_id")),
            trace=unit,
            parent=parent,
            inner=bool(parent),
            kind=text_of(kind),
            given=given if given is not None else opened(span.get("inputs")),
            made=made if made is not None else opened(span.get("outputs")),
            unit=unit,
            item_id=unit,
            ids={"trace_id": unit},
            model=name_of(model, inside(made, "model"), inside(given, "model")),
            expected=next(filter(None, expected), None),
            cluster=text_of(session),
            about=own,
        )


def _add_assessment(rows: Rows, trace: str, assessment: Record) -> None:
    kind = text_of(inside(assessment, "source", "source_type"))
    if assessment.get("valid") is False:
        rows.leave_out(written("left_out.invalid"))
    elif kind == "CODE" and not claimed(assessment.get("metadata")):
        rows.leave_out(written("left_out.by_code"))
    elif not isinstance(assessment.get("feedback"), dict):
        rows.leave_out(written("left_out.expectations"))
    else:
        span = text_of(assessment.get("span_id"))
        error = inside(assessment, "feedback", "error")
        claim = claimed(assessment.get("metadata"))
        error = inside(error, "error_code") if isinstance(error, dict) else error
        rows.add(
            f"{trace}/{span}" if span else trace,
            inside(assessment, "source", "source_id"),
            claim.get("rater_kind", _MLFLOW["kinds"].get(kind, "")),
            inside(assessment, "feedback", "value"),
            text_of(assessment.get("assessment_name") or assessment.get("name")),
            created_at=name_at(assessment, ("last_update_time", "create_time")),
            **{name: claim[name] for name in claim if name not in _NAMED},
            unscored_reason=error,
        )


# ---- OpenInference ------------------------------------------------------------------------------
# Spans as Phoenix gives them (its table of spans, its REST API) and as OpenTelemetry writes them
# down, an object for each span; and Phoenix's annotations of spans, by themselves, with the spans,
# or as columns `eval.NAME.label` beside them.
# https://arize-ai.github.io/openinference/spec/semantic_conventions.html
_PREFIX = "attributes."
_PHOENIX = TOOLS["phoenix"]
_PAGES = ("data", "spans")
_EVAL = ("eval.", ".label", ".score")
"""Before and after the name of an evaluation that became a column."""


def _read_phoenix(rows: Rows, source: Source) -> None:
    """A span is a unit, an annotation's name a rubric. A person is named by the user's id or else
    by the annotation's identifier, a model by its name in the metadata or the identifier.
    """
    for record in _records(source):
        found = [record] if _is_annotation(record) else objects(opened(record.get("annotations")))
        span = text_of(at(record, "context.span_id"))
        for each in found:
            kind = text_of(each.get("annotator_kind")).upper()
            if kind == "CODE":
                rows.leave_out(written("left_out.by_code"))
                continue
            unit = _hexadecimal(each.get("span_id") or span)
            _add_feedback(rows, each | {"annotator_kind": kind}, "phoenix", unit)
        for name, label in _columns(record).items():
            rows.add(_hexadecimal(span), name, "model", label, name)


def _phoenix_items(rows: ItemRows, source: Source) -> None:
    """The uppermost span of a trace that has an output is an item; those of one session, or else of
    one trace, belong together. An evaluation that is no person's gives a column.
    """
    add_traces(rows, map(_span, _records(source)))


def _first(source: Source) -> Record:
    """The first span or annotation; of a typed table the names of its columns."""
    return dict.fromkeys(source.columns, "") or next(iter(unpaged([source.first], _PAGES)), {})


def _records(source: Source) -> list[Record]:
    """All spans or annotations."""
    return unpaged(source.records(source.columns), _PAGES)


def _is_annotation(record: Record) -> bool:
    known = {"annotator_kind"} <= record.keys() and ("result" in record or "result.label" in record)
    return known and ("span_id" in record or "context.span_id" in record)


def _is_span(record: Record) -> bool:
    return at(record, "context.span_id") is not None and any(
        name == "attributes" or name.startswith(_PREFIX) for name in record
    )


def _span(record: Record) -> Span:
    said = fields_in(opened(record.get("attributes")))
    said |= {name[len(_PREFIX) :]: each for name, each in record.items() if _PREFIX in name[:11]}
    given, made = _value(said, "input"), _value(said, "output")
    asked, replied = (_messages(said, f"llm.{name}_messages") for name in ("input", "output"))
    found = _numbered(at(said, "retrieval.documents"))
    trace, span = (_hexadecimal(at(record, f"context.{name}_id")) for name in ("trace", "span"))
    own, frames = (*_PHOENIX["own"], *EXPECTED), tuple(_PHOENIX["frames"])
    beside = {
        name: each
        for name, each in record.items()
        if name not in own and not name.startswith(frames)
    }
    return Span(
        id=span,
        trace=trace,
        parent=_hexadecimal(record.get("parent_id")),
        kind=name_of(at(said, "openinference.span.kind"), record.get("span_kind")),
        given=asked or given,
        made=replied or made,
        documents=[at(each, "document.content") for each in found],
        unit=span,
        item_id=span,
        ids={"span_id": span, "trace_id": trace},
        model=name_of(at(said, "llm.model_name")),
        cluster=name_of(at(said, "session.id"), trace),
        expected=next((record[name] for name in EXPECTED if record.get(name)), None),
        about=beside | fields_in(opened(at(said, "metadata"))) | _evaluations(record),
    )


def _numbered(value: object) -> list[Record]:
    """A list, or the parts whose keys begin with their number."""
    value = opened(value)
    if not isinstance(value, dict):
        return objects(value)
    numbers = {name.partition(".")[0] for name in value}
    ordered = sorted((name for name in numbers if name.isdecimal()), key=lambda name: name.zfill(9))
    return [part for name in ordered if isinstance(part := at(value, name), dict)]


def _messages(said: Record, path: str) -> list[Record] | None:
    messages = []
    for each in _numbered(at(said, path)):
        parts = [
            text
            for part in _numbered(at(each, "message.contents"))
            if (text := text_of(at(part, "message_content.text")))
        ]
        calls = [
            {
                "name": at(call, "tool_call.function.name"),
                "arguments": at(call, "tool_call.function.arguments"),
            }
            for call in _numbered(at(each, "message.tool_calls"))
        ]
        message = {
            "role": at(each, "message.role"),
            "content": at(each, "message.content") or "\n".join(parts),
            "name": at(each, "message.name"),
            "tool_calls": calls,
        }
        messages.append({name: part for name, part in message.items() if part or name == "content"})
    return messages_in(messages)


def _value(said: Record, name: str) -> object:
    value = at(said, f"{name}.value")
    return opened(value) if "json" in text_of(at(said, f"{name}.mime_type")) else value


def _hexadecimal(value: object) -> str:
    """An id as Phoenix knows it; OpenTelemetry writes 0x before it."""
    return text_of(value).removeprefix("0x")


def _columns(record: Record) -> Record:
    """Evaluations that became columns, by name: the label, or else the score."""
    start, *ends = _EVAL
    return {
        name[len(start) : -len(end)]: each
        for end in reversed(ends)
        for name, each in record.items()
        if name.startswith(start) and name.endswith(end) and each not in (None, "")
    }


def _evaluations(record: Record) -> Record:
    """Labels that a model or code gave a span, by name."""
    found = _columns(record)
    for each in objects(record.get("annotations")):
        if text_of(each.get("annotator_kind")) not in ("", "HUMAN"):
            label, score = inside(each, "result", "label"), inside(each, "result", "score")
            found[text_of(each.get("name"))] = label if label not in (None, "") else score
    return found


LANGFUSE = Reader(_is_langfuse, _read_langfuse, _langfuse_items, _has_langfuse_items)
LANGSMITH = Reader(
    has_fields("langsmith"),
    _read_langsmith,
    _items_of("langsmith", _key_values),
    has_fields("langsmith", "items", in_tables=True),
)
OPIK = Reader(_is_opik, _read_opik, _opik_items)
WEAVE = Reader(
    lambda source: has_fields("weave", "items")(source) or has_fields("weave")(source),
    _read_weave,
    _items_of("weave", _first_model),
    has_fields("weave", "items"),
)
MLFLOW = Reader(_is_mlflow, _read_mlflow, _mlflow_items, _has_mlflow_items)
PHOENIX = Reader(
    lambda source: _is_annotation(_first(source)) or _is_span(_first(source)),
    _read_phoenix,
    _phoenix_items,
    lambda source: _is_span(_first(source)) and not _is_annotation(_first(source)),
)
