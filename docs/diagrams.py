"""A mermaid diagram of a page, and the file that holds its drawing."""

from __future__ import annotations

import hashlib
import re

DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```", re.MULTILINE | re.DOTALL)


def picture_name(diagram: str) -> str:
    """Its file below docs/: another one once the diagram has changed."""
    return f"pictures/diagram-{hashlib.sha256(diagram.encode()).hexdigest()[:10]}.svg"
