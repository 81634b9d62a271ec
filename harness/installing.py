"""Programs that tests run and the project does not depend on: kept in the cache of the user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

__all__ = ["installed", "npm_command", "pip_command"]

_SECONDS = 120


def installed(name: str, command: Callable[[Path], Sequence[str]]) -> Path:
    """Return the folder of an installed program in the user's cache; `command` installs it there.

    Where it cannot be installed the test is skipped, or fails under EVENHAND_REQUIRE_SERVERS=1.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenhand-tests"
    folder = cache / name
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=cache))
    try:
        subprocess.run(
            command(half), cwd=half, check=True, capture_output=True, text=True, timeout=_SECONDS
        )
        if not folder.is_dir():  # another run may have been quicker
            half.rename(folder)
    except (OSError, subprocess.SubprocessError) as error:
        said = " ".join(str(getattr(error, "stderr", None) or error).split())
        _missing(f"{name} cannot be installed: {said[:300]}")
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return folder


def npm_command(package: str) -> Callable[[Path], Sequence[str]]:
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0", "--loglevel=error")
    return lambda folder: ["npm", "install", *quiet, "--prefix", str(folder), package]


def pip_command(*packages: str) -> Callable[[Path], Sequence[str]]:
    pip = [sys.executable, "-P", "-m", "pip"]
    pip += ["--disable-pip-version-check", "--retries=0", "--no-input"]
    return lambda folder: [*pip, "install", "--quiet", "--target", str(folder), *packages]


def _missing(reason: str) -> None:
    if os.environ.get("EVENHAND_REQUIRE_SERVERS") == "1":
        pytest.fail(f"EVENHAND_REQUIRE_SERVERS=1, but {reason}")
    pytest.skip(reason)
