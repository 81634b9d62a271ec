"""promptfoo's results, with PROMPTFOO naming its command.

People's ratings are added as its web page stores them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from harness.exports.contents import ANN, GPT, GRADER, UNITS, write_json

CONFIG = """
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
GRADER_SCRIPT = """
module.exports = class {
  id() { return "GRADER"; }
  async callApi(prompt) {
    const unit = /text (u\\d)/.exec(prompt)[1];
    const pass = "SAID"[Number(unit[1]) - 1] === "y";
    return { output: JSON.stringify({ pass, score: pass ? 1 : 0, reason: "read" }) };
  }
};
"""


def make(out: Path) -> None:
    home = out / "home"
    home.mkdir()
    grader = GRADER_SCRIPT.replace("GRADER", GRADER).replace("SAID", GPT)
    (home / "grader.js").write_text(grader, "utf-8")
    tests = "\n".join(f"  - vars: {{topic: text {unit}}}" for unit in UNITS)
    config = home / "config.yaml"
    text = CONFIG.replace("GRADER", str(home / "grader.js")).replace("TESTS", tests)
    config.write_text(text, "utf-8")
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    made = out / "promptfoo.json"
    command = [os.environ["PROMPTFOO"], "eval", "-c", str(config), "-o", str(made), "--no-cache"]
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
