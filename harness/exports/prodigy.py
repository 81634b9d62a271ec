"""Written by hand after prodi.gy/docs/api-interfaces: the tool is commercial and not run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.exports.contents import labels, write_lines


def make(out: Path) -> None:
    options = [{"id": "yes", "text": "Yes"}, {"id": "no", "text": "No"}]
    lines: list[dict[str, Any]] = [
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
