"""What graders are tested on: a server that speaks as their providers do, and studies to grade."""

from pathlib import Path
from typing import Any

import pytest

import harness.studies
from evenhand.study import Study
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, completion, message

PROVIDERS = ("anthropic", "openai")


def replied(call: Call, text: str) -> Reply:
    """This text, as the provider replies that was asked."""
    return message(text) if call.path.endswith("/messages") else completion(text)


class Bench(ProtocolServer):
    """The server, under the names of its graders, and small studies in a folder of the test's.

    The environment names it as Anthropic's; `as_openai` names it as OpenAI's too.
    """

    def __init__(self, folder: Path, environment: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.claude = f"anthropic:claude-test@{self.root}"
        self._folder, self._environment = folder, environment
        self._opened: list[Study] = []
        environment.setenv("ANTHROPIC_API_KEY", "sk-ant-test-key-of-nobody")
        environment.setenv("ANTHROPIC_BASE_URL", self.root)

    def as_openai(self, model: str = "gpt-4o") -> str:
        """The name of OpenAI's own model, which is asked here."""
        self._environment.setenv("OPENAI_API_KEY", "key-for-loopback")
        self._environment.setenv("OPENAI_BASE_URL", f"{self.root}/v1")
        return f"openai:{model}"

    def study(self, *arguments: Any, name: str = "study", **more: Any) -> Study:
        """study(pairs=3, rubrics=("hedging",), response=...) -> `marked_study` of the harness."""
        made = harness.studies.marked_study(self._folder / name, *arguments, **more)
        self._opened.append(made)
        return made

    def close(self) -> None:
        for study in self._opened:
            study.close()
        super().close()
