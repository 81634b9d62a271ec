"""Published worked examples, and answers declared where libraries disagree: tests/reference."""

import json
from pathlib import Path
from typing import Any


def known_values(name: str) -> dict[str, Any]:
    """`data`, the values `expected` of them, their `source`, and a `tolerance`."""
    file = Path(__file__).parent / "reference" / f"{name}.json"
    loaded: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return loaded
