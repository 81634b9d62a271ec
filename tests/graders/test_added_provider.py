"""The provider that docs/graders.md adds: added as it stands there, asked by the command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply
from harness.studies import MarkedStudy
from tests.conftest import ROOT
from tests.graders.running.test_runner import rows

COMMAND = (sys.executable, "-P", "-m", "evenhand")
PAGE = (ROOT / "docs" / "graders.md").read_text("utf-8")


@pytest.fixture
def with_ollama(tmp_path: Path) -> Path:
    """A folder that holds evenhand with the page's provider in it."""
    package = tmp_path / "changed" / "evenhand"
    package.mkdir(parents=True)
    for item in (ROOT / "evenhand").iterdir():
        if item.name == "graders":
            shutil.copytree(item, package / "graders")
        else:
            (package / item.name).symlink_to(item.resolve())
    (module,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (entry,) = re.findall(r"^```toml\n(\[ollama\].*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    providers = package / "graders" / "providers"
    (providers / "forms" / "ollama.py").write_text(module, "utf-8")
    with (providers / "providers.toml").open("a", encoding="utf-8") as table:
        table.write("\n" + entry)
    return package.parent


def ollama(call: Call) -> Reply:
    """What Ollama's own API answers; to one unit, half of it."""
    if "|a]]" in call.user and call.unit.startswith("p0002"):
        return Reply(200, {"message": "?"})
    return Reply(
        200,
        {
            "model": "qwen3-of-today",
            "message": {"role": "assistant", "content": json.dumps({"answer": "2"})},
            "done": True,
            "done_reason": "length" if call.unit.startswith("p0003") else "stop",
            "prompt_eval_count": 900,
            "eval_count": 3,
        },
    )


def evenhand(
    package: Path, server: ProtocolServer, *words: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        env=os.environ | {"PYTHONPATH": str(package), "OLLAMA_BASE_URL": server.root},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_the_pages_example(
    with_ollama: Path, server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    server.script = ollama
    study = marked_study(pairs=3)
    done = evenhand(with_ollama, server, "grade", str(study.folder), "--grader", "ollama:qwen3")
    assert done.returncode == 0, done.stderr
    kept = {row["unit_id"]: row for row in rows(study)}
    reasons = [kept[unit]["unscored_reason"] for unit in sorted(kept)]
    assert reasons == ["", "", "unparseable", "", "truncated", "truncated"]
    first = kept[min(kept)]
    assert (first["label"], first["rater_id"]) == ("2", f"ollama:qwen3@{server.root}")
    assert first["provenance"]["tokens"]["input"] == 900
    assert {call.path for call in server.calls} == {"/api/chat"}
    assert server.calls[0].body["stream"] is False


@pytest.mark.slow
def test_its_limit_and_what_a_gateway_charges_for_it(
    with_ollama: Path, server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: replace(
        ollama(call), headers={"x-litellm-response-cost": "0.0125"}
    )
    study = marked_study(pairs=1)
    words = ("grade", str(study.folder), "--grader", "ollama:qwen3")
    assert evenhand(with_ollama, server, *words, "--max-tokens", "700").returncode == 0
    assert {call.body["options"]["num_predict"] for call in server.calls} == {700}
    assert {row["provenance"]["cost_usd"] for row in rows(study)} == {0.0125}
    refused = evenhand(with_ollama, server, *words, "--effort", "low")
    assert "ollama takes no effort; leave out --effort" in refused.stderr
    assert len(server.calls) == 2
