"""The report in a real Chromium: for everyone, in light and dark, on a phone and on paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evenhand.analysis import analyse
from evenhand.analysis.report import ReportContext, write_report
from evenhand.rubrics import Published
from tests.analysis.report.small_study import SCALE, tables

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With every kind of block, long names and long texts among them."""
    long = "provider:a-model-whose-name-is-rather-long-20260101@0f3a"
    ratings, units = tables(graders=("provider:sure", long, "provider:constant"))
    order = ratings.groupby("rater_id").cumcount()
    stamps = [f"2026-03-02T10:{n // 60:02}:{n % 60:02}+00:00" for n in order]
    ratings = ratings.assign(seconds=20.0 + order % 7, created_at=stamps)
    units = units.assign(topic=["tax", "war"] * (len(units) // 2))
    found = analyse(ratings, units, [SCALE], resamples=100, slices=["topic"])
    listed = {(each.rubric, each.unit_id) for each in found.disagreements}
    context = ReportContext(
        "A study",
        synthetic=True,
        facts={"seed": 7},
        notes=["12 labels set aside"],
        rubric_titles={"R": "The rubric"},
        published={"R": [Published(raters="Others", source="A 2025", agreement="94%")]},
        texts={unit: {"Response": "word " * 500 + "x" * 500} for unit in listed},
        remarks={unit: {"ann": "not clear to me"} for unit in listed},
    )
    out = tmp_path_factory.mktemp("report")
    write_report(found, context, out)
    return out / "report.html"


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Callable[..., Page]]:
    """opened(**context settings) -> the report; whatever the page complains of fails the test."""
    contexts, said = [], []

    def open_page(**settings: object) -> Page:
        context = browser.new_context(**settings)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: said.append(request.url))
        page.goto(report.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == [report.as_uri()] * len(contexts), "no complaint, nothing loaded"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_no_fault(opened: Callable[..., Page], scheme: str, width: int) -> None:
    """Schemes change nothing but colours and widths nothing but sizes: each is seen once."""
    from axe_playwright_python.sync_playwright import Axe

    page = opened(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    rules = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]
    # What is in order need not be told node by node, which takes most of the time.
    result = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]})

    assert result.violations_count == 0, result.generate_report()


@pytest.mark.parametrize("folded", [True, False])
def test_on_a_phone_the_page_does_not_scroll_sideways(
    opened: Callable[..., Page], folded: bool
) -> None:
    page = opened(viewport=PHONE)
    if not folded:
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator("figure.chart svg").count() > 5


def test_pictures_change_with_light_and_dark(opened: Callable[..., Page]) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        page = opened(color_scheme=scheme)
        text = page.locator("figure.chart svg text").first
        colours.add(text.evaluate("node => getComputedStyle(node).fill"))

    assert len(colours) == 2
    assert "rgb(0, 0, 0)" not in colours


def test_paper_shows_the_evidence_and_what_was_unfolded_in_black(
    opened: Callable[..., Page],
) -> None:
    page = opened(color_scheme="dark")
    page.locator(".chart details").first.evaluate("node => node.open = true")
    page.emulate_media(media="print", color_scheme="dark")

    def heights(selector: str) -> list[float]:
        return page.locator(selector).evaluate_all(
            "all => all.map(node => node.getBoundingClientRect().height)"
        )

    assert min(heights(".card .evidence")) > 20
    assert min(heights(".chart details[open] table")) > 20
    assert max(heights("details:not([open]) blockquote")) == 0
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


def test_pictures_say_what_they_show(opened: Callable[..., Page]) -> None:
    page = opened()

    for picture in page.locator("figure.chart svg").all():
        assert len(picture.get_attribute("aria-label") or "") > 60
        assert picture.get_attribute("role") == "img"
