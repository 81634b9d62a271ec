"""Start this machine's Chromium, or Playwright's own, without its background traffic."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright


# A headless Chromium draws the pop-ups of an address bar that nobody sees, two pages for each of
# ours: a third of its time. The last such list counts, so Playwright's own stands here again.
_WITHOUT = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
)
_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    f"--disable-features={','.join(_WITHOUT)}",
)


class NoBrowser(Exception):  # noqa: N818 - a state of the machine; who needs a browser decides
    """No Chromium is installed."""


def launched_chromium(playwright: Playwright, *flags: str) -> Browser:
    """Return a headless Chromium. Raises `NoBrowser` where there is none."""
    installed = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    path = Path(next(installed, playwright.chromium.executable_path))
    if not path.exists():
        raise NoBrowser("no Chromium is installed: `playwright install chromium` brings one")
    return playwright.chromium.launch(executable_path=path, args=[*_FLAGS, *flags])
