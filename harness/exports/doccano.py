"""doccano's own export, of a project of its own for each kind, in a database thrown away."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from harness.exports.contents import labels


def make(out: Path) -> None:
    home = out / "doccano-home"
    home.mkdir()
    _set_up(home)
    from django.contrib.auth import get_user_model

    user = get_user_model()
    people = [user.objects.create_user(username=name) for name in ("ann", "ben")]
    for together, name in ((False, "doccano.zip"), (True, "doccano_together.zip")):
        _exported(_project(people, together)).replace(out / name)
    shutil.rmtree(home)


def _set_up(home: Path) -> None:
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
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("create_roles", verbosity=0)


def _project(people: list[Any], together: bool) -> Any:
    """Return a project with labels; ann gives two to the fifth unit if not working together."""
    from examples.models import Example
    from label_types.models import CategoryType
    from labels.models import Category
    from projects.models import Member, Project, ProjectType
    from roles.models import Role

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
    return project


def _exported(project: Any) -> Path:
    from data_export.celery_tasks import export_dataset

    return Path(export_dataset(project.id, "JSONL", False))
