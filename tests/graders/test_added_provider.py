"""The provider that docs/graders.md adds: added as it stands there, asked by the command line."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.study import Study
from harness.replies import Call, Reply
from tests.commands import Done, python
from tests.conftest import ROOT
from tests.graders.bench import Bench
from tests.graders.grading import rows

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
    said = {"role": "assistant", "content": json.dumps({"answer": "2"})}
    why = "length" if call.unit.startswith("p0003") else "stop"
    told = {"model": "qwen3-of-today", "message": said, "done": True, "done_reason": why}
    return Reply(200, told | {"prompt_eval_count": 900, "eval_count": 3})


@pytest.mark.slow
def test_the_pages_example(with_ollama: Path, bench: Bench) -> None:
    def grades(study: Study, *more: str) -> Done:
        environment = os.environ | {"PYTHONPATH": str(with_ollama), "OLLAMA_BASE_URL": bench.root}
        words = ("-m", "evenhand", "grade", study.folder, "--grader", "ollama:qwen3")
        return python(*words, *more, env=environment)

    bench.script, study = ollama, bench.study(pairs=3)
    done = grades(study)
    assert done.returncode == 0, done.stderr
    kept = {row["unit_id"]: row for row in rows(study)}
    reasons = [kept[unit]["unscored_reason"] for unit in sorted(kept)]
    assert reasons == ["", "", "unparseable", "", "truncated", "truncated"]
    first = kept[min(kept)]
    assert (first["label"], first["rater_id"]) == ("2", f"ollama:qwen3@{bench.root}")
    assert first["provenance"]["tokens"]["input"] == 900
    assert {call.path for call in bench.calls} == {"/api/chat"}
    assert bench.calls[0].body["stream"] is False
    # Its limit, and what a gateway charges for it.
    bench.calls.clear()
    bench.script = lambda call: replace(ollama(call), headers={"x-litellm-response-cost": "0.0125"})
    study = bench.study(pairs=1, name="limited")
    assert grades(study, "--max-tokens", "700").returncode == 0
    assert {call.body["options"]["num_predict"] for call in bench.calls} == {700}
    assert {row["provenance"]["cost_usd"] for row in rows(study)} == {0.0125}
    refused = grades(study, "--effort", "low")
    assert "ollama takes no effort; leave out --effort" in refused.stderr
    assert len(bench.calls) == 2
