"""Label Studio's own export of a project: a server's database without the server."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from harness.exports.contents import GRADER, TOPICS, labels

CONFIG = (
    '<View><Text name="text" value="$text"/>'
    '<Choices name="fair" toName="text"><Choice value="yes"/><Choice value="no"/></Choices>'
    '<Rating name="clear" toName="text"/></View>'
)


def make(out: Path) -> None:
    home = out / "ls-home"
    home.mkdir()
    _set_up(home)
    project = _project()
    tasks = _exported(project)
    from data_export.models import DataExport

    for form, name in (("JSON", "label_studio.json"), ("JSON_MIN", "label_studio_min.json")):
        stream, _, _ = DataExport.generate_export_file(project, tasks, form, False, {})
        (out / name).write_bytes(stream.read())
    shutil.rmtree(home)


def _set_up(home: Path) -> None:
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


def _project() -> Any:
    """Return a project with labels; ben cancels the sixth task, ann has a draft of the seventh."""
    from organizations.models import Organization
    from projects.models import Project
    from tasks.models import Annotation, AnnotationDraft, Prediction, Task
    from users.models import User

    people = [
        User.objects.create(email=f"{name}@example.org", username=name) for name in ("ann", "ben")
    ]
    body = Organization.create_organization(created_by=people[0], title="lab")
    project = Project.objects.create(
        title="fair", label_config=CONFIG, created_by=people[0], organization=body
    )
    for number, (unit, a, b, g) in enumerate(labels()):
        data = {"text": f"Text {unit}", "topic": TOPICS[number]}
        task = Task.objects.create(data=data, project=project)
        for person, said in zip(people, (a, b), strict=True):
            Annotation.objects.create(
                task=task,
                project=project,
                completed_by=person,
                result=_result(said, 4 if said == "yes" else 2),
                was_cancelled=number == 5 and person is people[1],
                lead_time=12.5,
            )
        Prediction.objects.create(
            task=task, project=project, model_version=GRADER, result=_result(g, 3)[:1], score=0.9
        )
        if number == 6:
            AnnotationDraft.objects.create(task=task, user=people[0], result=_result("no", 1))
    return project


def _result(said: str, stars: int) -> list[dict[str, Any]]:
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


def _exported(project: Any) -> Any:
    from data_export.serializers import ExportDataSerializer
    from tasks.models import Task

    tasks = Task.objects.filter(project=project)
    whole = ["drafts", "predictions", "annotations.completed_by"]
    data = ExportDataSerializer(tasks, many=True, expand=whole).data
    return json.loads(json.dumps(data, default=str))
