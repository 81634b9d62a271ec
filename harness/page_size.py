"""Measure the size of a page for its reader: height in pixels, words, printed pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
_PAGE = re.compile(rb"/Type\s*/Page\b")


@dataclass(frozen=True)
class PageSize:
    """Pixels high at 1440 and at 390 across, words that are seen, printed A4 pages."""

    height: int
    phone_height: int
    words: int
    pages: int


def page_size(browser: Browser, path: Path) -> PageSize:
    """Return the size of a local page as it opens."""
    heights = []
    for viewport in (PHONE, DESKTOP):
        page = browser.new_page(viewport=viewport)  # type: ignore[arg-type]
        page.goto(path.resolve().as_uri())
        heights.append(page.evaluate("document.documentElement.scrollHeight"))
        words = len(page.locator("body").inner_text().split())
        printed = page.pdf(prefer_css_page_size=True)
        page.close()
    return PageSize(heights[1], heights[0], words, len(_PAGE.findall(printed)))
