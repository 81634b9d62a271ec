"""Start the annotation app, in which people label units, one rubric at a time. Its settings are in
`.streamlit/config.toml`, in the folder of `app.py`.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

__all__ = ["command", "serve"]

_APP = Path(__file__).resolve().with_name("app.py")


def command(
    folders: Sequence[str | Path], port: int, public_host: str = "", path: str | None = None
) -> list[str]:
    """Return the command that serves studies, for any working directory: each under its folder's
    name, or a single one at `path`, such as "/refusals", or "" for the root.

    `public_host` is the host name by which people reach the app through a proxy. The app answers to
    no other, except this machine's names and those in study.toml.
    """
    options = [f"--port={port}", f"--public-host={public_host}"]
    options += [] if path is None else [f"--path={path}"]
    studies = [str(Path(folder).resolve()) for folder in folders]
    return [sys.executable, "-P", str(_APP), *studies, *options]  # -P: no import from its folder


def serve(
    folders: str | Path | Sequence[Path], port: int, public_host: str = "", path: str = ""
) -> NoReturn:
    """Serve one study at `path`, or each of several at `/NAME/`, by the name of its folder, until
    the app is stopped; does not return.
    """
    if isinstance(folders, str | Path):
        arguments = command([folders], port, public_host, path)
    else:
        arguments = command(folders, port, public_host)
    os.chdir(_APP.parent)  # Streamlit obeys the settings in a working directory's `.streamlit`
    sys.stdout.flush()
    sys.stderr.flush()
    # The cookies of a single sign-on hold all that the organisation's provider sends on a user. If
    # they exceed a line's default limit of 8 kB, every request of that browser is refused.
    environment = os.environ | {"WEBSOCKETS_MAX_LINE_LENGTH": str(32 * 1024)}
    if sys.platform == "win32":  # exec would give the terminal back to the shell at once
        raise SystemExit(subprocess.run(arguments, env=environment, check=False).returncode)
    os.execve(arguments[0], arguments, environment)  # noqa: S606 - no shell is wanted
