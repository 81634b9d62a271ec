"""Released versions of evenhand, installed from this project's own history as users did then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.installing import installed

__all__ = ["COMMITS", "released"]

ROOT = Path(__file__).resolve().parents[1]
COMMITS = {"0.1.0": "8564585", "0.2.0": "ecf4335"}
_INSTALL = """
git -C "$1" archive "$2" | tar -x
"$3" -m uv venv --quiet --relocatable -p "$3" venv
"$3" -m uv pip install --quiet -p venv/bin/python --require-hashes -r requirements.lock
"$3" -m uv pip install --quiet -p venv/bin/python --no-deps --no-build-isolation .
"""


def released(version: str) -> Path:
    """Return a Python in which this version is installed, with the libraries of its time.

    Where the history or the registry is out of reach the test is skipped: see `installed`.
    """
    commit = COMMITS[version]
    found = subprocess.run(
        ["git", "-C", ROOT, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True
    )
    if found.returncode:
        pytest.skip(f"version {version} is not in this checkout's history")

    command = ["bash", "-euc", _INSTALL, "install", str(ROOT), commit, sys.executable]
    return installed(f"evenhand-{version}", lambda _: command) / "venv" / "bin" / "python"
