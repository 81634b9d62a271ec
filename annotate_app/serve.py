"""Starting the app. Its settings are in `.streamlit/config.toml`, in the folder of `app.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

_APP = Path(__file__).resolve().with_name("app.py")
_LAUNCH = _APP.with_name("launch.py")
SOCKET_VARIABLE = "EVENHAND_SOCKET"
"""The number of a socket that an app inherits, in place of a port: see `side_by_side`."""


def command(
    folder: str | Path,
    port: int | None = None,
    open_browser: bool = False,
    public_host: str = "",
    path: str = "",
) -> list[str]:
    """The command that serves the study in `folder`, for any working directory.

    Without a port Streamlit takes 8501, or the next one that is free; a port that is named and
    taken is an error. `public_host` is the name under which people reach the app through a proxy:
    it answers to no other, save this machine's own and those in study.toml. `path`, such as
    "/refusals", is where its address begins.
    """
    options = [f"--server.headless={str(not open_browser).lower()}"]
    if port is not None:
        options.append(f"--server.port={port}")
    if public_host:
        options.append(f"--browser.serverAddress={public_host}")
    if path:
        options.append(f"--server.baseUrlPath={path}")
    study = str(Path(folder).resolve())
    return [sys.executable, "-P", str(_LAUNCH), "run", str(_APP), *options, "--", study]


def serve(
    folder: str | Path,
    port: int | None = None,
    open_browser: bool = False,
    public_host: str = "",
    path: str = "",
) -> NoReturn:
    """Serve the study in `folder` until the app is stopped; does not return."""
    arguments = command(folder, port, open_browser, public_host, path)
    sys.stdout.flush()
    sys.stderr.flush()
    environment = app_environment()
    if sys.platform == "win32":  # where exec would leave the terminal to its shell
        raise SystemExit(subprocess.run(arguments, env=environment, check=False).returncode)
    os.execve(arguments[0], arguments, environment)  # noqa: S606 - no shell is wanted


def app_environment() -> dict[str, str]:
    """The environment in which the app runs."""
    # By default the server would trust any process on this machine to give a visitor's address;
    # study.toml names the proxies to trust.
    # The cookies of a single sign-on hold all that the organisation's provider sends on a user:
    # beyond the default 8 kB of a line they would lock that browser out for as long as it keeps
    # them.
    return os.environ | {
        "FORWARDED_ALLOW_IPS": "",
        "WEBSOCKETS_MAX_LINE_LENGTH": str(32 * 1024),
    }
