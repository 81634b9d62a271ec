"""What a release says of itself holds together, and the workflows do what they say."""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import evenhand
from tests.conftest import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def jobs(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text("utf-8"))
    assert loaded["permissions"] == {"contents": "read"}
    return loaded["jobs"]


def test_version_changelog_and_citation_name_one_release() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    version, day = re.findall(r"^## (\S+) \((\S+)\)$", changes, re.MULTILINE)[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert evenhand.__version__ == version == citation["version"]
    assert day == citation["date-released"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["license"] == citation["license"]
    assert project["requires-python"] == f">={PYTHONS[0]}"


@pytest.mark.parametrize(
    ("tag", "code"), [(f"v{evenhand.__version__}", 0), (evenhand.__version__, 1), ("v9.9.9", 1)]
)
def test_a_tag_that_is_not_the_version_is_not_released(tag: str, code: int) -> None:
    (step,) = (each for each in jobs("release.yml")["build"]["steps"] if "name" in each)
    env = os.environ | {"GITHUB_REF_NAME": tag}
    assert subprocess.run(["bash", "-e", "-c", step["run"]], cwd=ROOT, env=env).returncode == code


def test_only_the_last_job_may_speak_for_the_project_to_pypi() -> None:
    found = jobs("release.yml")
    rights = {name: job.get("permissions") for name, job in found.items()}
    assert rights == {"build": None, "try": None, "publish": {"id-token": "write"}}
    assert found["publish"]["needs"] == "try"
    assert found["try"]["needs"] == "build"
    text = (WORKFLOWS / "release.yml").read_text("utf-8")
    assert not re.search(r"secrets\.|password:", text)
    assert "--no-build-isolation" in text, "what builds a release is pinned by its hash"


def test_every_python_is_guarded_and_tried() -> None:
    guard = jobs("ci.yml")["guard"]
    assert guard["strategy"]["matrix"]["python"] == PYTHONS
    assert jobs("release.yml")["try"]["strategy"]["matrix"]["python"] == PYTHONS
    assert guard["steps"][-1] == {"run": ".ci/run"}
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize("file", sorted(WORKFLOWS.glob("*.yml")), ids=lambda file: file.name)
def test_every_action_is_pinned_by_its_commit(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text("utf-8"))
    assert used
    for each in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), each


def test_forms_for_issues_ask_for_something() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
    assert len(forms) == 3
    for form in (yaml.safe_load(file.read_text("utf-8")) for file in forms):
        assert {"name", "description", "body"} <= form.keys()
        fields = [each for each in form["body"] if each["type"] != "markdown"]
        assert len({each["id"] for each in fields}) == len(fields)
        assert {each["type"] for each in fields} <= {"input", "textarea"}
        assert any(each["validations"]["required"] for each in fields)


def test_contributing_names_files_that_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = {*re.findall(r"`([a-z_./]+/[\w./*-]*)`", text), *re.findall(r"\]\(([^)#:]+)", text)}
    real = {name for name in named if not re.search(r"NAME|TOOL|TEST", name)}
    assert len(real) > 15
    assert [name for name in sorted(real) if not any(ROOT.glob(name.rstrip("/")))] == []
