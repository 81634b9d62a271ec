"""What each tool makes of a file that was written for it, by the tool's own package.

`python -P reading_back.py NAME FILE`, where the package is installed, prints it as JSON. Nothing of
evenhand is imported here.
"""

import json
import sys
import tempfile
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

PACKAGES = {
    "argilla": ("argilla==2.8.0", "requests"),
    "hugging-face": ("datasets==5.2.0",),
    "inspect": ("inspect_ai==0.3.285",),
    "label-studio": ("label-studio-sdk==2.1.2",),
    "langfuse": ("langfuse==5.0.4",),
    "langsmith": ("langsmith==0.15.0",),
    "mlflow": ("mlflow-skinny==3.17.2",),
    "phoenix": ("arize-phoenix-client==3.5.0",),
}


def argilla(folder: Path) -> Any:
    """The settings and records, read and written again."""
    import argilla as rg

    address, _ = server({"id": "3fa85f64-5717-4562-b3fc-2c963f66afa6", "username": "me"})
    rg.Argilla(api_url=address, api_key="nobody's")
    settings = rg.Settings.from_json(folder / ".argilla" / "settings.json")
    records = json.loads((folder / "records.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as place:
        settings.to_json(Path(place, "settings.json"))
        again = json.loads(Path(place, "settings.json").read_text("utf-8"))
    model = rg._models.DatasetModel(
        **json.loads((folder / ".argilla" / "dataset.json").read_text())
    )
    return {
        "dataset": model.name,
        "settings": again,
        "records": [rg.Record.from_dict(each).to_dict() for each in records],
    }


def hugging_face(folder: Path) -> Any:
    """The rows of both tables."""
    from datasets import load_dataset

    return {
        name: load_dataset(str(folder), name, split="train").to_list()
        for name in ("ratings", "units")
    }


def inspect(file: Path) -> Any:
    """The scores on the samples of a log, by sample."""
    from inspect_ai import Task, eval, score
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import precomputed_scores

    def said(*_: object) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", "So.")
        output.usage = ModelUsage()
        return output

    samples = [Sample(id=name, input="Why?") for name in ("u1", "u2", "u3", "u4")]
    with tempfile.TemporaryDirectory() as logs:
        model = get_model("mockllm/model", custom_outputs=said)
        (log,) = eval(Task(dataset=samples), model=model, display="none", log_dir=logs)
        assert log.status == "success", log.error
        scored = score(log, precomputed_scores(str(file)), action="append", display="none")
    return {
        str(sample.id): {
            name: {"value": given.value, "metadata": given.metadata}
            for name, given in sample.scores.items()
        }
        for sample in scored.samples
    }


def label_studio(file: Path) -> Any:
    """The faults of each prediction under the config, and the tasks as the SDK holds them."""
    from label_studio_sdk.label_interface import LabelInterface
    from label_studio_sdk.label_interface.objects import TaskValue

    config = LabelInterface(file.with_name(f"{file.stem}.config.xml").read_text("utf-8"))
    tasks = json.loads(file.read_text("utf-8"))
    return {
        "labels": {name: list(tag.labels) for name, tag in config._controls.items()},
        "faults": [
            fault
            for task in tasks
            for prediction in task["predictions"]
            for fault in config.validate_prediction(prediction, return_errors=True)
        ],
        "tasks": [TaskValue(**task).model_dump(exclude_unset=True) for task in tasks],
    }


def langfuse(file: Path) -> Any:
    """What the client sends to the service."""
    from langfuse.api import LangfuseAPI
    from langfuse.api.scores.types.create_score_request import CreateScoreRequest

    address, bodies = server({"results": [], "errors": []})
    scores = [CreateScoreRequest(**each) for each in read_lines(file)]
    client = LangfuseAPI(base_url=address, username="nobody", password="none")
    with suppress(Exception):  # the service's reply is not what is tried here
        client.scores.create(request=scores)
    (body,) = bodies
    return body


def read_lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def langsmith(file: Path) -> Any:
    """The feedback, read and written again."""
    from langsmith.schemas import FeedbackCreate

    given = [FeedbackCreate(**each) for each in read_lines(file)]
    return [json.loads(each.model_dump_json(exclude_unset=True)) for each in given]


def phoenix(file: Path) -> Any:
    """What the client sends to the service."""
    from phoenix.client import Client

    address, bodies = server({"data": []})
    Client(base_url=address).spans.log_span_annotations(span_annotations=read_lines(file))
    (body,) = bodies
    return body["data"]


def mlflow(file: Path) -> Any:
    """The assessments, read and written again."""
    from mlflow.entities import Assessment

    return [Assessment.from_dictionary(each).to_dictionary() for each in read_lines(file)]


def server(answer: dict[str, Any]) -> tuple[str, list[Any]]:
    """A service on loopback that answers all with one thing: its address, and what it is sent."""
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.do_GET()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None: ...

    service = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{service.server_port}", bodies


if __name__ == "__main__":
    tool = globals()[sys.argv[1].replace("-", "_")]
    print("\n" + json.dumps(tool(Path(sys.argv[2])), ensure_ascii=False, default=str))
