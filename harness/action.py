"""Run a composite GitHub Action locally: its steps, in bash, as a runner would start them.

As much of a runner as `action.yml` uses: inputs with their defaults, `if` made of comparisons, the
files that steps write outputs, paths and summaries to, and a shell that stops at the first error.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_TERM = re.compile(r"([\w.-]+)\s*(==|!=)\s*'([^']*)'")


@dataclass
class ActionRun:
    """The result of an Action: the exit code of the step that failed, or 0, and its outputs."""

    code: int = 0
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    log: str = ""
    steps: list[str] = field(default_factory=list)


@dataclass
class Runner:
    """Runs an action in a folder; `github` is the context, such as {"event_name": "push"}."""

    action: Path
    folder: Path
    github: Mapping[str, str] = field(default_factory=dict)
    path: str = ""

    def run(self, **inputs: str) -> ActionRun:
        """Run every step whose `if` holds, up to the first that fails."""
        content: dict[str, Any] = yaml.safe_load(self.action.read_text("utf-8"))
        known = {name: str(each.get("default", "")) for name, each in content["inputs"].items()}
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= known.keys(), "no such input"
        context = {f"inputs.{name}": value for name, value in (known | given).items()}
        context |= {f"github.{name}": value for name, value in self.github.items()}
        context = {name: _filled(value, context) for name, value in context.items()}
        found = ActionRun()
        self.folder.mkdir(exist_ok=True)
        for number, step in enumerate(content["runs"]["steps"]):
            assert step["shell"] == "bash", step
            if _holds(step.get("if", ""), context):
                found.steps.append(step["name"])
                self._step(number, step, context, found)
            if found.code:
                break
        found.outputs = {
            name: _filled(each["value"], context) for name, each in content["outputs"].items()
        }
        summary = self.folder / "summary"
        found.summary = summary.read_text("utf-8") if summary.exists() else ""
        return found

    def _step(
        self, number: int, step: Mapping[str, Any], context: dict[str, str], found: ActionRun
    ) -> None:
        output, script = self.folder / f"output-{number}", self.folder / f"step-{number}.sh"
        output.touch()
        script.write_text(step["run"], "utf-8")
        paths = {"GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": self.folder / "summary"}
        paths |= {"GITHUB_PATH": self.folder / "path", "RUNNER_TEMP": self.folder}
        paths |= {"GITHUB_ACTION_PATH": self.action.parent}
        own = {name: _filled(str(value), context) for name, value in step.get("env", {}).items()}
        more = self.folder / "path"
        added = more.read_text().split() if more.exists() else []
        places = os.pathsep.join([*added, *filter(None, [self.path]), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            env={**os.environ, **{name: str(place) for name, place in paths.items()}, **own}
            | {"PATH": places},
            capture_output=True,
            text=True,
            check=False,
        )
        found.log += done.stdout + done.stderr
        found.code = done.returncode
        for line in output.read_text("utf-8").splitlines():
            name, _, value = line.partition("=")
            context[f"steps.{step['id']}.outputs.{name}"] = value


def _filled(text: str, context: Mapping[str, str]) -> str:
    """Return a text with its expressions filled in; unknown ones are empty, as on GitHub."""
    return _EXPRESSION.sub(lambda found: context.get(found[1], ""), text)


def _holds(condition: str, context: Mapping[str, str]) -> bool:
    """Comparisons joined by `&&`."""
    for term in filter(None, condition.split("&&")):
        found = _TERM.fullmatch(term.strip())
        assert found, f"the runner does not know {term!r}"
        if (context.get(found[1], "") == found[3]) != (found[2] == "=="):
            return False
    return True
