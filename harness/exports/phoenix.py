"""Phoenix's tables of spans and of annotations, from a server of its own that is thrown away."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from phoenix.client import Client

from harness.exports.contents import GRADER, UNITS, labels, write_json
from harness.exports.openinference import record
from harness.ports import free_port

_SECONDS = 90


def make(out: Path) -> None:
    home = out / "phoenix-home"
    home.mkdir()
    port, grpc = free_port(), free_port()
    address = f"http://127.0.0.1:{port}"
    told = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_WORKING_DIR": str(home),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "HOME": str(home),
    }
    command = [sys.executable, "-P", "-m", "phoenix.server.main", "serve"]
    server = subprocess.Popen(command, env=os.environ | told, stdout=subprocess.DEVNULL, cwd=home)
    try:
        _wait_for(port)
        record(OTLPSpanExporter(f"{address}/v1/traces"))
        client = Client(base_url=address)
        until = time.monotonic() + _SECONDS
        while len(frame := client.spans.get_spans_dataframe()) < 12:
            assert time.monotonic() < until, "the spans do not arrive"
            time.sleep(0.5)
        made = out / "items" / "phoenix.jsonl"
        frame.to_json(made, orient="records", lines=True, date_format="iso")
        _annotate(client, [str(span) for span in frame.index[: len(UNITS)]], out)
    finally:
        server.terminate()
        server.wait(30)
    shutil.rmtree(home)


def _annotate(client: Client, spans: list[str], out: Path) -> None:
    """Annotate spans, and write that down as the client gives it: a list, and a table."""
    annotations: list[dict[str, Any]] = []
    for span, (_, *said) in zip(spans, labels(), strict=True):
        raters = ("HUMAN", "ann"), ("HUMAN", "ben"), ("LLM", GRADER)
        for (kind, who), label in zip(raters, said, strict=True):
            annotations.append(_annotation(span, "fair", kind, who, {"label": label}))
        annotations.append(_annotation(span, "length", "CODE", "", {"score": 3.0}))
    client.spans.log_span_annotations(span_annotations=annotations, sync=True)
    found = client.spans.get_span_annotations(span_ids=spans, project_identifier="default")
    place = {(each["span_id"], each["name"], each["identifier"]): each for each in annotations}
    order = list(place)
    found = sorted(
        found, key=lambda each: order.index((each["span_id"], each["name"], each["identifier"]))
    )
    write_json(out / "phoenix.json", found)
    table = client.spans.get_span_annotations_dataframe(span_ids=spans)
    table.reset_index().to_csv(out / "phoenix.csv", index=False)


def _annotation(span: str, name: str, kind: str, who: str, result: object) -> dict[str, Any]:
    return {
        "span_id": span, "name": name, "annotator_kind": kind, "identifier": who, "result": result,
    }  # fmt: skip


def _wait_for(port: int) -> None:
    until = time.monotonic() + _SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < until, "Phoenix does not answer"
            time.sleep(0.5)
