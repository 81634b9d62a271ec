"""Potato's annotations, as its exporters write them; the first is empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from potato.export.base import ExportContext
from potato.export.registry import export_registry

from harness.exports.contents import UNITS, labels


def make(out: Path) -> None:
    scheme = {"annotation_type": "radio", "name": "fair", "labels": ["yes", "no"]}
    annotations: list[dict[str, Any]] = [
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
