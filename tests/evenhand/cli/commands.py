"""What a command has said, and how it is run."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


def proposals(refusal: str) -> list[str]:
    """The options that a refusal proposes, each as it would be pasted."""
    word = r"(?:'[^']*'(?:\"'\"'[^']*')*|[^\s';,()]+(?:,[^\s';,()]+)*)"
    flag = "--(?:no-normalise|normalise|several|independent)(?![a-z-])"
    found = re.findall(rf"(?:(?:{flag}|--[a-z][a-z-]+[ =]{word}) ?)+", refusal)
    return [each for each in found if not re.search(r"[A-Z]{3}|\.\.\.", each)]
