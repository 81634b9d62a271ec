"""The pictures of the app and the report that the pages show, taken anew.

`python -m docs.screenshots` makes two synthetic studies, serves one, and photographs what an
annotator and a lead see, and how a report begins. It needs a Chromium (see harness/chromium.py).
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from evenhand.cli.lead import lead_link
from evenhand.cli.main import main
from harness.annotator import READY
from harness.chromium import launched_chromium
from harness.served import Served

PICTURES = Path(__file__).with_name("pictures")
SIZE = {"width": 1200, "height": 750}
COLOURS = 96
"""Few are needed, and fewer make a smaller file."""


def take_all() -> None:
    expect.set_options(timeout=60_000)  # machines may be crowded
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        browser = launched_chromium(playwright)
        for name, study in (("pairs", "pairs"), ("rag", "items")):
            main(["demo", f"{made}/{name}", "--study", study, "--no-app"])
        with _page(browser, "light") as page:
            page.goto((Path(made) / "rag" / "report" / "report.html").as_uri())
            _keep(page, "report")
        served = Served(Path(made) / "pairs", Path(made))
        served.start()
        try:
            _take_the_app(browser, served)
        finally:
            served.kill()


def _take_the_app(browser: Browser, served: Served) -> None:
    views = (("ada", "light", "annotation"), ("bo", "dark", "annotation-dark"))
    for rater, scheme, name in views:
        served.enter(rater)
        with _page(browser, scheme) as page:
            page.goto(f"{served.url}?rater={rater}")
            page.wait_for_selector(READY)
            _keep(page, name)
    with _page(browser, "light") as page:
        page.goto(lead_link(served.folder, served.url))
        expect(page.get_by_text("Who has come how far")).to_be_visible()
        # The figures are computed meanwhile, for a minute on a busy machine.
        card = page.get_by_text("synthetic:grader-strong").first
        expect(card).to_be_visible(timeout=400_000)
        _keep(page, "lead")


@contextmanager
def _page(browser: Browser, scheme: str) -> Iterator[Page]:
    context = browser.new_context(viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def _keep(page: Page, name: str) -> None:
    taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    PICTURES.mkdir(exist_ok=True)
    taken.quantize(COLOURS).save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    take_all()
