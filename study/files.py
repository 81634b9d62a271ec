"""Writing files so that a crash leaves the old one or the new one, never half of either."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rubrics.errors import InputError

__all__ = ["atomic_write"]


def atomic_write(path: Path, content: bytes) -> None:
    """Replace the file in one step, on disk when this returns."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it first")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
