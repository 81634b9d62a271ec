"""Starting the app. Its settings are in `.streamlit/config.toml`, in the folder of `app.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

_APP = Path(__file__).resolve().with_name("app.py")


def command(folder: str | Path, port: int, public_host: str = "", path: str = "") -> list[str]:
    """The command that serves the study in `folder`, for any working directory.

    `public_host` is the name under which people reach the app through a proxy: it answers to no
    other, save this machine's own and those in study.toml. `path`, such as "/refusals", is where
    its address begins.
    """
    options = [f"--port={port}", f"--public-host={public_host}", f"--path={path}"]
    return [sys.executable, "-P", str(_APP), str(Path(folder).resolve()), *options]


def serve(folder: str | Path, port: int, public_host: str = "", path: str = "") -> NoReturn:
    """Serve the study in `folder` until the app is stopped; does not return."""
    arguments = command(folder, port, public_host, path)
    sys.stdout.flush()
    sys.stderr.flush()
    environment = app_environment()
    if sys.platform == "win32":  # where exec would leave the terminal to its shell
        raise SystemExit(subprocess.run(arguments, env=environment, check=False).returncode)
    os.execve(arguments[0], arguments, environment)  # noqa: S606 - no shell is wanted


def app_environment() -> dict[str, str]:
    """The environment in which the app runs."""
    # The cookies of a single sign-on hold all that the organisation's provider sends on a user:
    # beyond the default 8 kB of a line they would lock that browser out for as long as it keeps
    # them.
    return os.environ | {"WEBSOCKETS_MAX_LINE_LENGTH": str(32 * 1024)}
