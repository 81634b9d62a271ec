"""MLflow's traces with assessments: `Trace.to_dict`, and the table of `search_traces`, twice.

On the seventh ann changes her mind: what she said first is no longer valid. On the last the grader
fails.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import mlflow as library
from mlflow.entities import AssessmentError, AssessmentSource, Feedback

from harness.exports.contents import GRADER, labels, write_json


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
        text = made.read_text("utf-8").replace("\\/", "/")
        for here in (f"{Path(__file__).parent}/", f"{Path.cwd()}/"):
            text = text.replace(here, "")
        made.write_text(text, "utf-8")
    shutil.rmtree(folder)


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
