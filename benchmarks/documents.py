"""What the pages that benchmarks write have in common."""

from __future__ import annotations

import platform
from importlib.metadata import version

__all__ = ["library_versions"]


def library_versions(*names: str) -> str:
    """Python and the libraries by version, for a reader who wants to repeat the run."""
    listed = [f"Python {platform.python_version()}"]
    listed += [f"{name} {version(name)}" for name in ("numpy", "scipy", *names)]
    return ", ".join(listed)
