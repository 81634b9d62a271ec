"""What a command has said, and how it is run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]
