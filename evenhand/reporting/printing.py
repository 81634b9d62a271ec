"""A page as PDF, printed by a browser of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evenhand.errors import InputError
from evenhand.study.tables.atomic import atomic_write

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""A Chromium without what it does in the background."""
_SECONDS = 120


def browser_path() -> Path:
    """The Chromium or Chrome of this machine. Raises InputError where there is none."""
    found = next(_browsers(), None)
    if found is None:
        raise InputError(
            "there is no Chromium or Chrome to print with; install one, or open report.html in any "
            "browser and print it to a file"
        )
    return found


def _browsers() -> Iterator[Path]:
    yield from map(Path, filter(None, map(shutil.which, _NAMES)))
    if sys.platform == "darwin" and _MAC.is_file():
        yield _MAC


def print_pdf(browser: Path, page: Path, pdf: Path) -> None:
    """Print a page of this machine, as its style sheet has it for paper. Raises InputError where
    the browser does not manage.
    """
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "page.pdf"
        # Chromium's sandbox does not start for root; the page is our own and loads nothing.
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        profile = [f"--user-data-dir={place}/profile", f"--print-to-pdf={made}"]
        command = [str(browser), "--headless", *QUIET, *as_root, *profile, "--no-pdf-header-footer"]
        try:
            subprocess.run(
                [*command, page.resolve().as_uri()],
                capture_output=True,
                timeout=_SECONDS,
                check=True,
            )
            printed = made.read_bytes()
        except (subprocess.SubprocessError, OSError) as error:
            raise InputError(
                f"{browser.name} could not print {page.name}; open it in a browser and print it "
                "to a file"
            ) from error
    atomic_write(pdf, printed)
