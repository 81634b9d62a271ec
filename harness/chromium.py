"""The Chromium of this machine, or Playwright's own, without what it does in the background."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class NoBrowser(Exception):  # noqa: N818 - a state of the machine; who needs a browser decides
    """No Chromium is installed."""


def launched_chromium(playwright: Playwright, *flags: str) -> Browser:
    """A headless Chromium; raises `NoBrowser` where there is none."""
    path = next(filter(None, map(shutil.which, _NAMES)), playwright.chromium.executable_path)
    if not Path(path).exists():
        raise NoBrowser("no Chromium is installed: `playwright install chromium` brings one")
    return playwright.chromium.launch(executable_path=path, args=[*_FLAGS, *flags])
