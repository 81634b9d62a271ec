"""MLflow's traces with assessments: `Trace.to_dict`, and the table of `search_traces`, twice; and
traces with a retriever's and a model's spans, to be rated.

On the seventh ann changes her mind: what she said first is no longer valid. On the last the grader
fails.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import mlflow as library
from mlflow.entities import AssessmentError, AssessmentSource, Document, Feedback, SpanType

from harness.exports.contents import (
    ANSWERED_BY,
    ANSWERS,
    DOCUMENTS,
    GRADER,
    JUDGED,
    QUESTIONS,
    TRUE,
    labels,
    write_json,
)


def make(out: Path) -> None:
    folder = out / "store"
    folder.mkdir()
    os.chdir(folder)
    library.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    library.set_experiment("grading")
    for number, said in enumerate(labels()):
        _assess(number, *said)
    traces = library.search_traces(return_type="list")
    write_json(out / "mlflow.json", [trace.to_dict() for trace in traces])
    frame = library.search_traces()
    frame.to_json(out / "mlflow_frame.jsonl", orient="records", lines=True)
    frame[["trace_id", "state", "assessments"]].to_parquet(out / "mlflow.parquet")
    for made in (out / "mlflow.json", out / "mlflow_frame.jsonl"):
        _without_places(made)
    library.set_experiment("answering")
    for number, each in enumerate(zip(QUESTIONS, ANSWERS, TRUE, JUDGED, strict=True)):
        _answer(f"chat-{number // 2 + 1}", *each)
    traces = library.search_traces(return_type="list")
    write_json(out / "items" / "mlflow.json", [trace.to_dict() for trace in traces])
    _without_places(out / "items" / "mlflow.json")
    shutil.rmtree(folder)


def _without_places(made: Path) -> None:
    text = made.read_text("utf-8").replace("\\/", "/")
    for here in (f"{Path(__file__).parent}/", f"{Path.cwd()}/"):
        text = text.replace(here, "")
    made.write_text(text, "utf-8")


def _answer(session: str, question: str, answer: str, true: str, judged: str) -> None:
    """Log a trace that retrieves documents, asks a model, and is judged by a grader and by ann."""
    with library.start_span(name="rag", span_type=SpanType.CHAIN) as root:
        root.set_inputs({"question": question})
        with library.start_span(name="find", span_type=SpanType.RETRIEVER) as span:
            span.set_inputs({"query": question})
            span.set_outputs([Document(page_content=each) for each in DOCUMENTS])
        with library.start_span(name="ask", span_type=SpanType.CHAT_MODEL) as span:
            message = {"role": "user", "content": question}
            span.set_inputs({"model": ANSWERED_BY, "messages": [message]})
            reply = {"role": "assistant", "content": answer}
            span.set_outputs({"model": ANSWERED_BY, "choices": [{"index": 0, "message": reply}]})
        root.set_outputs(answer)
        library.update_current_trace(session_id=session)
    library.flush_trace_async_logging()
    trace = root.trace_id
    _say(trace, judged == "yes", AssessmentSource("LLM_JUDGE", GRADER))
    _say(trace, True, AssessmentSource("HUMAN", "ann@example.org"))
    library.log_expectation(trace_id=trace, name="expected_response", value=true)


def _assess(number: int, unit: str, ann: str, ben: str, grader: str) -> None:
    with library.start_span(name="answer") as span:
        span.set_inputs({"question": unit})
        span.set_outputs("42")
    library.flush_trace_async_logging()
    trace = span.trace_id
    _say(trace, ann == "yes", AssessmentSource("HUMAN", "ann@example.org"))
    _say(trace, ben == "yes", AssessmentSource("HUMAN", "ben@example.org"))
    source = AssessmentSource("LLM_JUDGE", GRADER)
    if number == 7:
        error = AssessmentError("TIMEOUT", "no answer")
        library.log_assessment(trace, Feedback(name="correct", error=error, source=source))
    else:
        _say(trace, grader == "yes", source)
    code = AssessmentSource("CODE", "length.py")
    library.log_feedback(trace_id=trace, name="length", value=2, source=code)
    if number == 6:
        library.override_feedback(
            trace_id=trace,
            assessment_id=library.get_trace(trace)
            .search_assessments(name="correct")[0]
            .assessment_id,
            value=True,
            source=AssessmentSource("HUMAN", "ann@example.org"),
        )


def _say(trace: str, value: bool, source: AssessmentSource) -> None:
    library.log_feedback(trace_id=trace, name="correct", value=value, source=source)
