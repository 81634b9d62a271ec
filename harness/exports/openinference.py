"""Spans as OpenInference names their attributes, each on a line as OpenTelemetry writes it."""

from __future__ import annotations

import json
from pathlib import Path

from openinference.instrumentation import (
    TracerProvider,
    get_input_attributes,
    get_llm_attributes,
    get_output_attributes,
    get_retriever_attributes,
    get_span_kind_attributes,
)
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from harness.exports.contents import ANSWERED_BY, ANSWERS, DOCUMENTS, QUESTIONS, write_lines


def make(out: Path) -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("office")
    for question, answer in zip(QUESTIONS, ANSWERS, strict=True):
        asked = get_input_attributes(question)
        with tracer.start_as_current_span("rag") as root:
            root.set_attributes(get_span_kind_attributes("chain") | asked)
            root.set_attributes(get_output_attributes(answer))
            with tracer.start_as_current_span("find") as span:
                found = [{"content": text} for text in DOCUMENTS]
                span.set_attributes(get_span_kind_attributes("retriever") | asked)
                span.set_attributes(get_retriever_attributes(documents=found))
            with tracer.start_as_current_span("ask") as span:
                span.set_attributes(get_span_kind_attributes("llm"))
                span.set_attributes(
                    get_llm_attributes(
                        model_name=ANSWERED_BY,
                        input_messages=[{"role": "user", "content": question}],
                        output_messages=[{"role": "assistant", "content": answer}],
                    )
                )
    spans = [json.loads(span.to_json(indent=None)) for span in kept.get_finished_spans()]
    write_lines(out / "items" / "openinference.jsonl", spans)
