"""Starting the app. Its settings stand in `.streamlit/config.toml`, beside `app.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

__all__ = ["command", "serve"]

_APP = Path(__file__).resolve().with_name("app.py")


def command(folder: str | Path, port: int | None = None, open_browser: bool = False) -> list[str]:
    """The command that serves the study in `folder`, for any working directory.

    Without a port Streamlit takes 8501, or the next one that is free; a port that is named and
    taken is an error.
    """
    options = [f"--server.headless={str(not open_browser).lower()}"]
    if port is not None:
        options.append(f"--server.port={port}")
    study = str(Path(folder).resolve())
    return [sys.executable, "-m", "streamlit", "run", str(_APP), *options, "--", study]


def serve(folder: str | Path, port: int | None = None, open_browser: bool = False) -> NoReturn:
    """Serve the study in `folder` until the app is stopped; does not return."""
    arguments = command(folder, port, open_browser)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":  # there exec starts a second process and gives the prompt back at once
        raise SystemExit(subprocess.call(arguments))
    os.execv(arguments[0], arguments)  # noqa: S606 - no shell is wanted
