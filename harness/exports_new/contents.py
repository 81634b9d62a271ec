"""Makes a small export of a tool with the tool itself: the files in tests/exchange/files.

`python harness/exports.py TOOL FOLDER`, with the Python of an environment that has the tool
installed. The contents are synthetic: eight units, the annotators ann and ben, a grader. In each
file something has to be left out, such as a draft or a cancelled annotation.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

ANN, BEN, GPT = "yyyynnnn", "yyynnnny", "yyyynnyn"
WORDS = {"y": "yes", "n": "no"}
UNITS = [f"u{number}" for number in range(1, 9)]
GRADER = "openai/gpt-5-mini"
UUIDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(1, 9)]


def labels() -> list[tuple[str, str, str, str]]:
    """A unit and what ann, ben and the grader said of it."""
    return [
        (unit, WORDS[a], WORDS[b], WORDS[g])
        for unit, a, b, g in zip(UNITS, ANN, BEN, GPT, strict=True)
    ]


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, default=str) + "\n", "utf-8")


def write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def openpyxl(out: Path) -> None:
    import openpyxl as library

    book = library.Workbook()
    sheet = book.active
    sheet.append(["item", "human_1", "human_2", "gpt-4o", "topic"])
    for number, (unit, a, b, g) in enumerate(labels()):
        sheet.append([unit, a, b, g, ("tax", "rent")[number % 2]])
    book.save(out / "wide.xlsx")


def datasets(out: Path) -> None:
    import datasets as library

    names = ["no", "yes"]
    rows = [
        {"unit_id": unit, "rater_id": rater, "rater_kind": kind, "label": names.index(label)}
        for unit, a, b, g in labels()
        for rater, kind, label in (
            ("ann", "human", a), ("ben", "human", b), (GRADER, "model", g)
        )
    ]  # fmt: skip
    features = library.Features(
        dict.fromkeys(("unit_id", "rater_id", "rater_kind"), library.Value("string"))
        | {"label": library.ClassLabel(names=names)}
    )
    one, two = (library.Dataset.from_list(part, features) for part in (rows[:12], rows[12:]))
    library.DatasetDict(train=one, test=two).save_to_disk(str(out / "datasets"))


def inspect_ai(out: Path) -> None:
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.log import ProvenanceData, edit_score, read_eval_log, write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import ScoreEdit, model_graded_qa

    def mock(name: str, texts: list[str]) -> Any:
        said = [ModelOutput.from_content(name, text) for text in texts]
        for each in said:
            each.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return get_model(name, custom_outputs=said)

    grader = mock("mockllm/grader", [f"GRADE: {'C' if each == 'y' else 'I'}" for each in GPT])
    model = mock("mockllm/model", ["42"] * len(UNITS))
    samples = [
        Sample(id=unit, input=f"Question {unit}", target="42", metadata={"topic": "sums"})
        for unit in UNITS
    ]
    task = Task(dataset=samples, scorer=model_graded_qa(model=grader), name="sums")
    (log,) = evaluate(task, model=model, log_dir=str(out / "logs"), display="none", max_samples=1)
    assert log.status == "success", log.error
    log = read_eval_log(log.location)
    for person, said in (("ann", ANN), ("ben", BEN)):
        for unit, letter in zip(UNITS, said, strict=True):
            value = "C" if letter == "y" else "I"
            provenance = ProvenanceData(author=person, reason="read")
            edit = ScoreEdit(value=value, provenance=provenance)
            edit_score(log, unit, "model_graded_qa", edit)
    log.samples[7].scores["model_graded_qa"].history[-1].provenance = None
    write_eval_log(log, str(out / "inspect.eval"))
    shutil.rmtree(out / "logs")


def mlflow(out: Path) -> None:
    import mlflow as library
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback

    folder = out / "store"
    folder.mkdir()
    os.chdir(folder)
    library.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    library.set_experiment("grading")
    for number, (unit, a, b, g) in enumerate(labels()):
        with library.start_span(name="answer") as span:
            span.set_inputs({"question": unit})
            span.set_outputs("42")
        library.flush_trace_async_logging()
        for name, kind, said in (("ann", "HUMAN", a), ("ben", "HUMAN", b)):
            source = AssessmentSource(kind, f"{name}@example.org")
            library.log_feedback(
                trace_id=span.trace_id, name="correct", value=said == "yes", source=source
            )
        source = AssessmentSource("LLM_JUDGE", f"{GRADER}")
        if number == 7:
            error = AssessmentError("TIMEOUT", "no answer")
            feedback = Feedback(name="correct", error=error, source=source)
            library.log_assessment(span.trace_id, feedback)
        else:
            library.log_feedback(
                trace_id=span.trace_id, name="correct", value=g == "yes", source=source
            )
        code = AssessmentSource("CODE", "length.py")
        library.log_feedback(trace_id=span.trace_id, name="length", value=2, source=code)
        if number == 6:  # ann changes her mind; what she said first is no longer valid
            trace = library.get_trace(span.trace_id)
            first = trace.search_assessments(name="correct")[0]
            library.override_feedback(
                trace_id=span.trace_id,
                assessment_id=first.assessment_id,
                value=True,
                source=AssessmentSource("HUMAN", "ann@example.org"),
            )
    traces = library.search_traces(return_type="list")
    write_json(out / "mlflow.json", [trace.to_dict() for trace in traces])
    frame = library.search_traces()
    frame.to_json(out / "mlflow_frame.jsonl", orient="records", lines=True)
    for made in (out / "mlflow.json", out / "mlflow_frame.jsonl"):
        text = made.read_text("utf-8").replace("\\/", "/")
        for here in (f"{Path(__file__).parent}/", f"{Path.cwd()}/"):
            text = text.replace(here, "")
        made.write_text(text, "utf-8")
    shutil.rmtree(folder)


def argilla(out: Path) -> None:
    import argilla as library
    from argilla.records._io import HFDatasetsIO, JsonIO

    records = []
    for number, (unit, a, b, g) in enumerate(labels()):
        said = [(UUIDS[0], a), (UUIDS[1], b)]
        draft = [(UUIDS[2], "no")] if number == 2 else []
        responses = [
            library.Response(
                question_name="fair", value=value, user_id=user, status=status
            )
            for status, pairs in (("submitted", said), ("draft", draft))
            for user, value in pairs
        ]  # fmt: skip
        suggestion = library.Suggestion(question_name="fair", value=g, agent=GRADER, score=0.75)
        records.append(
            library.Record(
                id=unit,
                fields={"text": f"Text {unit}"},
                metadata={"topic": ("tax", "rent")[number % 2]},
                responses=responses,
                suggestions=[suggestion],
            )
        )
    (out / "argilla.json").unlink(missing_ok=True)
    JsonIO.to_json(records, out / "argilla.json")
    frame = HFDatasetsIO.to_datasets(records, _argilla_dataset(library))
    frame.save_to_disk(str(out / "argilla"))


def _argilla_dataset(library: Any) -> Any:
    """What the writer of datasets asks of a dataset that no server knows."""
    from unittest.mock import MagicMock

    library.Argilla._default_client = MagicMock()
    settings = library.Settings(
        fields=[library.TextField(name="text")],
        questions=[library.LabelQuestion(name="fair", labels=["yes", "no"])],
        metadata=[library.TermsMetadataProperty(name="topic")],
    )

    class Offline:
        schema = settings.schema

    Offline.settings = settings
    return Offline()


def langfuse(out: Path) -> None:
    """With langfuse < 4 a page of scores as its server gives it up to version 3, and the same as
    exported to blob storage (docs: blob storage export fields); with a later one a page of v3.
    """
    from datetime import datetime

    stamp = datetime(2026, 11, 1, 12, tzinfo=UTC).isoformat()
    page = {"meta": {"page": 1, "limit": 50, "totalItems": 26, "totalPages": 1}, "data": []}
    flat = []

    def score(unit: str, source: str, who: str, label: str, kind: str = "CATEGORICAL") -> None:
        number = len(flat)
        own = {
            "id": f"s{number}", "traceId": f"trace-{unit}", "name": "fair", "source": source,
            "observationId": None, "sessionId": None, "datasetRunId": None,
            "timestamp": stamp, "createdAt": stamp, "updatedAt": stamp,
            "authorUserId": who if source == "ANNOTATION" else None, "comment": None,
            "metadata": {"model": who} if source == "EVAL" else {}, "configId": None,
            "queueId": None, "environment": "default", "dataType": kind,
            "value": float(label == "yes"), "stringValue": label,
        }  # fmt: skip
        page["data"].append(own)
        flat.append(
            {
                "id": own["id"],
                "timestamp": "2026-11-01 12:00:00.000000",
                "project_id": "p",
                "environment": "default",
                "trace_id": own["traceId"],
                "observation_id": None,
                "session_id": None,
                "dataset_run_id": None,
                "name": "fair",
                "value": own["value"],
                "source": source,
                "comment": None,
                "data_type": kind,
                "string_value": label,
                "author_user_id": own["authorUserId"],
                "evaluator_id": "fair-check" if source == "EVAL" else None,
            }
        )

    for unit, a, b, g in labels():
        score(unit, "ANNOTATION", "ann", a)
        score(unit, "ANNOTATION", "ben", b)
        score(unit, "EVAL", GRADER, g)
    score("u1", "ANNOTATION", "ann", "please look at this again", "TEXT")
    try:
        from langfuse.api import GetScoresResponse as Page
    except ImportError:
        from langfuse.api.scores import GetScoresV3Response as Page

        for own in page["data"]:
            own |= {"project_id": "p", "subject": {"kind": "trace", "id": own.pop("traceId")}}
            own |= {"value": own.pop("stringValue"), "data_type": own.pop("dataType")}
            own |= {"created_at": own.pop("createdAt"), "updated_at": own.pop("updatedAt")}
            own["author_user_id"] = own.pop("authorUserId")
        write_json(out / "langfuse_v3.json", Page.model_validate(page).dict(exclude_none=True))
        return
    write_json(out / "langfuse.json", json.loads(Page.parse_obj(page).json(by_alias=True)))
    write_lines(out / "langfuse_blob.jsonl", flat)


def langsmith(out: Path) -> None:
    from datetime import datetime
    from uuid import UUID

    from langsmith.schemas import Feedback, FeedbackSourceBase

    stamp = datetime(2026, 11, 1, tzinfo=UTC)
    lines = []
    for run, (_, a, b, g) in zip(UUIDS, labels(), strict=True):
        for number, (kind, who, said) in enumerate(
            [("app", "ann", a), ("app", "ben", b), ("model", None, g)]
        ):
            source = FeedbackSourceBase(
                type=kind,
                user_name=who,
                user_id=who and f"user-{who}",
                metadata={} if who else {"evaluator": "fairness", "model": GRADER},
            )
            feedback = Feedback(
                id=UUID(run.replace("-8000-", f"-800{number}-")),
                created_at=stamp,
                modified_at=stamp,
                run_id=UUID(run),
                trace_id=UUID(run),
                key="fair",
                score=float(said == "yes"),
                value=said,
                feedback_source=source,
            )
            lines.append(json.loads(feedback.model_dump_json()))
    lines.append({**lines[0], "id": UUIDS[0], "score": None, "value": None, "comment": "hm"})
    write_lines(out / "langsmith.jsonl", lines)


def deepeval(out: Path) -> None:
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    os.chdir(out)
    from deepeval import evaluate
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase

    class Fair(BaseMetric):
        threshold = 0.5
        evaluation_model = GRADER
        __name__ = "Fair"

        def measure(self, case: Any, *_: Any, **__: Any) -> float:
            self.score = 1.0 if GPT[UNITS.index(case.name)] == "y" else 0.25
            self.success = self.score >= self.threshold
            self.reason = "read"
            return self.score

        async def a_measure(self, case: Any, *_: Any, **__: Any) -> float:
            return self.measure(case)

        def is_successful(self) -> bool:
            return bool(self.success)

    class Length(Fair):
        evaluation_model = None
        __name__ = "Length"

    cases = [LLMTestCase(input=unit, actual_output="42", name=unit) for unit in UNITS]
    found = evaluate(cases, [Fair(), Length()])
    content = found.model_dump(mode="json", by_alias=True)
    write_json(out / "deepeval.json", content)
    run = out / ".deepeval" / ".latest_test_run.json"
    if run.exists():
        (out / "deepeval_run.json").write_bytes(run.read_bytes())
    shutil.rmtree(out / ".deepeval", ignore_errors=True)


def potato(out: Path) -> None:
    from potato.export.base import ExportContext
    from potato.export.registry import export_registry

    scheme = {"annotation_type": "radio", "name": "fair", "labels": ["yes", "no"]}
    annotations = [
        {
            "instance_id": unit,
            "user_id": who,
            "labels": {"fair": {said: said}, "why": {"text_box": f"{who} says so"}},
            "spans": {},
            "links": {},
        }
        for unit, a, b, _ in labels()
        for who, said in (("ann", a), ("ben", b))
    ]
    annotations[0]["labels"]["fair"] = {}
    context = ExportContext({}, annotations, {unit: {} for unit in UNITS}, [scheme], str(out))
    for form in ("jsonl", "csv"):
        done = export_registry.export(form, context, str(out))
        assert done.success, done
    (out / "annotations.jsonl").rename(out / "potato.jsonl")
    (out / "annotations.csv").rename(out / "potato.csv")


def prodigy(out: Path) -> None:
    """By hand, as prodi.gy/docs/api-interfaces has it: the tool is sold, so it is not run here."""
    options = [{"id": "yes", "text": "Yes"}, {"id": "no", "text": "No"}]
    lines = [
        {
            "text": f"Text {unit}", "meta": {"doc": unit}, "_input_hash": 1000 + number,
            "_task_hash": -2000 - number, "options": options, "_view_id": "choice",
            "config": {"choice_style": "single"}, "accept": [said], "answer": "accept",
            "_timestamp": 1762000000 + number, "_annotator_id": f"fair-{who}",
            "_session_id": f"fair-{who}",
        }
        for number, (unit, a, b, _) in enumerate(labels())
        for who, said in (("ann", a), ("ben", b))
    ]  # fmt: skip
    lines[5] |= {"answer": "ignore", "accept": []}
    write_lines(out / "prodigy.jsonl", lines)


def mt_bench(out: Path) -> None:
    """By hand, with the columns of lmsys/mt_bench_human_judgments and of FastChat's judge."""
    people, votes = [], []
    for number, (_, a, b, g) in enumerate(labels()):
        swapped = number % 2 == 1
        models = ["llama-13b", "vicuna-13b"]
        shown = models[::-1] if swapped else models
        for who, said in (("expert_1", a), ("author_2", b)):
            won = models[0] if said == "yes" else models[1]
            people.append(
                {
                    "question_id": 81 + number,
                    "model_a": shown[0],
                    "model_b": shown[1],
                    "winner": f"model_{'ab'[shown.index(won)]}",
                    "judge": who,
                    "turn": 1,
                    "conversation_a": [],
                    "conversation_b": [],
                }
            )
        won = models[0] if g == "yes" else models[1]
        people.append(
            {
                **people[-1],
                "judge": "gpt4_pair",
                "winner": "tie (inconsistent)"
                if number == 3
                else f"model_{'ab'[shown.index(won)]}",
            }
        )
        first = "model_1" if g == "yes" else "model_2"
        votes.append(
            {
                "question_id": 81 + number,
                "model_1": models[0],
                "model_2": models[1],
                "g1_winner": "error" if number == 3 else first,
                "g2_winner": first,
                "judge": ["gpt-4", "pair-v2"],
                "turn": 1,
                "tstamp": 1687.5,
            }
        )
    write_lines(out / "mt_bench.jsonl", people)
    write_lines(out / "gpt-4_pair.jsonl", votes)


def doccano(out: Path) -> None:
    """One project of its own for each kind of export, in a database that is thrown away."""
    home = out / "doccano-home"
    home.mkdir()
    os.environ |= {
        "HOME": str(home),
        "DOCCANO_HOME": str(home),
        "DATABASE_URL": f"sqlite:///{home / 'db.sqlite3'}",
        "DJANGO_SETTINGS_MODULE": "config.settings.development",
        "DEBUG": "True",
    }
    import backend
    import django

    sys.path.insert(0, str(Path(backend.__file__).parent))
    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("create_roles", verbosity=0)
    from data_export.celery_tasks import export_dataset
    from examples.models import Example
    from label_types.models import CategoryType
    from labels.models import Category
    from projects.models import Member, Project, ProjectType
    from roles.models import Role

    user = get_user_model()
    people = [user.objects.create_user(username=name) for name in ("ann", "ben")]
    for together in (False, True):
        project = Project.objects.create(
            name="fair",
            description="",
            project_type=ProjectType.DOCUMENT_CLASSIFICATION,
            collaborative_annotation=together,
            created_by=people[0],
        )
        role = Role.objects.first()
        for person in people:
            Member.objects.get_or_create(project=project, user=person, defaults={"role": role})
        types = {
            name: CategoryType.objects.create(text=name, project=project) for name in ("yes", "no")
        }
        for number, (unit, a, b, _) in enumerate(labels()):
            example = Example.objects.create(project=project, text=unit, meta={"topic": "tax"})
            for person, said in zip(people, (a, b), strict=True):
                Category.objects.create(example=example, user=person, label=types[said])
            if number == 4 and not together:
                Category.objects.create(example=example, user=people[0], label=types["yes"])
        made = Path(export_dataset(project.id, "JSONL", False))
        made.replace(out / ("doccano_together.zip" if together else "doccano.zip"))
    shutil.rmtree(home)


def label_studio(out: Path) -> None:
    """A server's database without the server, and its own export of a project."""
    home = out / "ls-home"
    home.mkdir()
    os.environ |= {
        "LABEL_STUDIO_BASE_DATA_DIR": str(home),
        "DJANGO_DB": "sqlite",
        "DJANGO_SETTINGS_MODULE": "label_studio.core.settings.label_studio",
        "HOME": str(home),
        "COLLECT_ANALYTICS": "0",
        "collect_analytics": "0",
    }
    import label_studio as library

    sys.path.insert(0, str(Path(library.__file__).parent))
    os.environ["DJANGO_SETTINGS_MODULE"] = "core.settings.label_studio"
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from data_export.models import DataExport
    from data_export.serializers import ExportDataSerializer
    from organizations.models import Organization
    from projects.models import Project
    from tasks.models import Annotation, AnnotationDraft, Prediction, Task
    from users.models import User

    people = [
        User.objects.create(email=f"{name}@example.org", username=name) for name in ("ann", "ben")
    ]
    body = Organization.create_organization(created_by=people[0], title="lab")
    config = (
        '<View><Text name="text" value="$text"/>'
        '<Choices name="fair" toName="text"><Choice value="yes"/><Choice value="no"/></Choices>'
        '<Rating name="clear" toName="text"/></View>'
    )
    project = Project.objects.create(
        title="fair", label_config=config, created_by=people[0], organization=body
    )

    def result(said: str, stars: int) -> list[dict[str, Any]]:
        return [
            {
                "value": {"choices": [said]}, "id": "c", "from_name": "fair", "to_name": "text",
                "type": "choices", "origin": "manual",
            },
            {
                "value": {"rating": stars}, "id": "r", "from_name": "clear", "to_name": "text",
                "type": "rating", "origin": "manual",
            },
        ]  # fmt: skip

    for number, (unit, a, b, g) in enumerate(labels()):
        data = {"text": f"Text {unit}", "topic": ("tax", "rent")[number % 2]}
        task = Task.objects.create(data=data, project=project)
        for person, said in zip(people, (a, b), strict=True):
            Annotation.objects.create(
                task=task,
                project=project,
                completed_by=person,
                result=result(said, 4 if said == "yes" else 2),
                was_cancelled=number == 5 and person is people[1],
                lead_time=12.5,
            )
        Prediction.objects.create(
            task=task, project=project, model_version=GRADER, result=result(g, 3)[:1], score=0.9
        )
        if number == 6:
            AnnotationDraft.objects.create(task=task, user=people[0], result=result("no", 1))
    tasks = Task.objects.filter(project=project)
    whole = ["drafts", "predictions", "annotations.completed_by"]
    data = ExportDataSerializer(tasks, many=True, expand=whole).data
    data = json.loads(json.dumps(data, default=str))
    for form, name in (("JSON", "label_studio.json"), ("JSON_MIN", "label_studio_min.json")):
        stream, _, _ = DataExport.generate_export_file(project, data, form, False, {})
        (out / name).write_bytes(stream.read())
    shutil.rmtree(home)


PROMPTFOO = """
description: fairness
prompts: ["{{topic}}"]
providers: [echo]
defaultTest:
  assert:
    - {type: contains, value: "text"}
    - type: llm-rubric
      value: The answer is fair
      metric: fair
      provider: "file://GRADER"
tests:
TESTS
"""
PROMPTFOO_GRADER = """
module.exports = class {
  id() { return "GRADER"; }
  async callApi(prompt) {
    const unit = /text (u\\d)/.exec(prompt)[1];
    const pass = "SAID"[Number(unit[1]) - 1] === "y";
    return { output: JSON.stringify({ pass, score: pass ? 1 : 0, reason: "read" }) };
  }
};
"""


def promptfoo(out: Path) -> None:
    """With PROMPTFOO naming its command; people's ratings are added as its web page stores them."""
    import subprocess

    home = out / "home"
    home.mkdir()
    grader = PROMPTFOO_GRADER.replace("GRADER", GRADER).replace("SAID", GPT)
    (home / "grader.js").write_text(grader, "utf-8")
    tests = "\n".join(f"  - vars: {{topic: text {unit}}}" for unit in UNITS)
    config = PROMPTFOO.replace("GRADER", str(home / "grader.js")).replace("TESTS", tests)
    (home / "config.yaml").write_text(config, "utf-8")
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    made = out / "promptfoo.json"
    command = [
        os.environ["PROMPTFOO"],
        "eval",
        "-c",
        home / "config.yaml",
        "-o",
        made,
        "--no-cache",
    ]
    environment = os.environ | quiet | {"PROMPTFOO_CONFIG_DIR": str(home / "state")}
    subprocess.run(command, env=environment, check=False, cwd=home)
    content = json.loads(made.read_text("utf-8").replace(str(home), "."))
    for result in content["results"]["results"]:
        unit = result["vars"]["topic"][-2:]
        if unit == "u8":
            continue
        passed = ANN[UNITS.index(unit)] == "y"
        result["gradingResult"]["componentResults"].append(
            {
                "pass": passed,
                "score": float(passed),
                "assertion": {"type": "human"},
                "reason": "Manual result (overrides all other grading results)",
            }
        )
        result["gradingResult"] |= {"pass": passed, "score": float(passed)}
    write_json(made, content)
    shutil.rmtree(home)


TOOLS: tuple[Callable[[Path], None], ...] = (
    openpyxl, datasets, inspect_ai, mlflow, argilla, langfuse, langsmith, deepeval, potato,
    prodigy, mt_bench, doccano, label_studio, promptfoo,
)  # fmt: skip


def main() -> None:
    tool, folder = sys.argv[1:]
    out = Path(folder).resolve()
    out.mkdir(parents=True, exist_ok=True)
    {each.__name__: each for each in TOOLS}[tool](out)


if __name__ == "__main__":
    main()
